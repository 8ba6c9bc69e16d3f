"""The standard's extension for Fourier transforms."""

from __future__ import annotations

from typing import Any

from multiop._values.types import ArrayLike, DType, Tensor
from multiop.frontends.conversion import op_view_as_complex
from multiop.frontends.elementwise import op_imag, op_real
from multiop.frontends.shapes import op_stack
from multiop.frontends.signal import (
    op_fftfreq,
    op_fftn,
    op_fftshift,
    op_hfft,
    op_ifft,
    op_ifftn,
    op_ifftshift,
    op_ihfft,
    op_irfftn,
    op_rfftfreq,
    op_rfftn,
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


def _parts(x: ArrayLike) -> tuple[Tensor, Tensor]:
    return op_real(x), op_imag(x)


def _complex(parts: tuple[Tensor, Tensor]) -> Tensor:
    return op_view_as_complex(op_stack(list(parts), -1))


def _lengths(n: int | None) -> list[int] | None:
    return None if n is None else [n]


def fft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the discrete Fourier transform along an axis."""
    return _complex(op_fftn(_parts(x), _lengths(n), [axis], norm))


def ifft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the inverse of `fft`."""
    return _complex(op_ifft(_parts(x), n, axis, norm))


def rfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the first half of `fft` of real numbers, of which the rest follows."""
    return _complex(op_rfftn(x, _lengths(n), [axis], norm))


def irfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the inverse of `rfft`, of `n` real numbers."""
    return op_irfftn(_parts(x), _lengths(n), [axis], norm)


def hfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute `fft` of a signal of which `x` is the first half, and the rest is its conjugate."""
    return op_hfft(_parts(x), n, axis, norm)


def ihfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the inverse of `hfft`."""
    return _complex(op_ihfft(x, n, axis, norm))


def fftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute `fft` along several axes, all by default."""
    return _complex(op_fftn(_parts(x), s, axes, norm))


def ifftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute the inverse of `fftn`."""
    return _complex(op_ifftn(_parts(x), s, axes, norm))


def rfftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute `rfft` along the last of several axes, and `fft` along the others."""
    return _complex(op_rfftn(x, s, axes, norm))


def irfftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute the inverse of `rfftn`."""
    return op_irfftn(_parts(x), s, axes, norm)


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
