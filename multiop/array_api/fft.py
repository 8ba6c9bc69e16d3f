"""The standard's extension for Fourier transforms."""

from __future__ import annotations

from typing import Any

from multiop._loading.registry import active
from multiop._values import dtypes
from multiop._values.types import ArrayLike, DType, Tensor
from multiop.frontends.conversion import op_cast
from multiop.frontends.signal import (
    op_fft,
    op_fftfreq,
    op_fftn,
    op_fftshift,
    op_hfft,
    op_ifft,
    op_ifftn,
    op_ifftshift,
    op_irfftn,
    op_rfftfreq,
    transform_back,
    transform_first_half,
    transform_reals,
)

from ._devices import on

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _complex(x: ArrayLike) -> Any:
    """Return real numbers, which the standard does not ask for, as complex ones."""
    backend = active()
    x = backend.convert(x)
    dtype = backend.dtype_name(x)
    return x if dtype in dtypes.COMPLEX else op_cast(x, dtypes.result_type(dtype, "complex64"))


def fft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the discrete Fourier transform along an axis."""
    return op_fft(_complex(x), n, axis, norm)


def ifft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the inverse of `fft`."""
    return op_ifft(_complex(x), n, axis, norm)


def rfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the first half of `fft` of real numbers, of which the rest follows."""
    return transform_first_half(x, n, axis, norm, False)


def irfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the inverse of `rfft`, of `n` real numbers."""
    return transform_back(_complex(x), n, axis, norm)


def hfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute `fft` of a signal of which `x` is the first half, and the rest is its conjugate."""
    return op_hfft(_complex(x), n, axis, norm)


def ihfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the inverse of `hfft`."""
    return transform_first_half(x, n, axis, norm, True)


def fftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute `fft` along several axes, all by default."""
    return op_fftn(_complex(x), s, axes, norm)


def ifftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute the inverse of `fftn`."""
    return op_ifftn(_complex(x), s, axes, norm)


def rfftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute `rfft` along the last of several axes, and `fft` along the others."""
    return transform_reals(x, s, axes, norm)


def irfftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute the inverse of `rfftn`."""
    return op_irfftn(_complex(x), s, axes, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType = None, device: Any = None) -> Tensor:
    """Return the frequencies of the entries of `fft`, for samples at distance `d`."""
    return on(device, op_fftfreq(n, d, dtype))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType = None, device: Any = None) -> Tensor:
    """Return the frequencies of the entries of `rfft`."""
    return on(device, op_rfftfreq(n, d, dtype))


def fftshift(x: ArrayLike, /, *, axes: Any = None) -> Tensor:
    """Move the frequency zero to the middle of the axes."""
    return op_fftshift(x, axes)


def ifftshift(x: ArrayLike, /, *, axes: Any = None) -> Tensor:
    """Undo `fftshift`."""
    return op_ifftshift(x, axes)
