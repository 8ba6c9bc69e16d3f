"""The standard's extension for Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from multiop import _args, errors
from multiop._types import ArrayLike, DType, Tensor
from multiop.frontends.conversion import op_convert_to_tensor, op_shape, op_view_as_complex
from multiop.frontends.creation import op_arange
from multiop.frontends.elementwise import op_conj, op_imag, op_multiply, op_real
from multiop.frontends.indexing import op_get_item
from multiop.frontends.shapes import op_concatenate, op_moveaxis, op_pad, op_roll, op_stack
from multiop.frontends.signal import op_fft, op_irfft, op_rfft

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

_POWERS = {"backward": 0.0, "ortho": -0.5, "forward": -1.0}  # of the length, which a forward transform is multiplied by


def _scaled(x: Tensor, length: int, norm: str, inverse: bool) -> Tensor:
    """Return a sum of exponentials as the transform of a norm."""
    if norm not in _POWERS:
        raise errors.ArgumentError(f"norm must be one of {', '.join(_POWERS)}; got {norm!r}")
    power = -1.0 - _POWERS[norm] if inverse else _POWERS[norm]
    return op_multiply(x, float(length) ** power) if power else x


def _of_length(x: Tensor, length: int) -> Tensor:
    """Return `x`, cut or padded with zeros at the end of its last axis."""
    more = length - op_shape(x)[-1]
    if more > 0:
        return op_pad(x, [(0, 0)] * (len(op_shape(x)) - 1) + [(0, more)])
    return op_get_item(x, (..., slice(length))) if more else x


def _last(x: ArrayLike, n: int | None, axis: int) -> Tensor:
    x = op_moveaxis(x, axis, -1)
    return x if n is None else _of_length(x, n)


def _complex(parts: tuple[Tensor, Tensor]) -> Tensor:
    return op_view_as_complex(op_stack(list(parts), -1))


def _sums(x: Tensor) -> Tensor:
    """Return the unscaled transform along the last axis."""
    return _complex(op_fft((op_real(x), op_imag(x))))


def fft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the discrete Fourier transform along an axis."""
    x = _last(x, n, axis)
    return op_moveaxis(_scaled(_sums(x), op_shape(x)[-1], norm, False), -1, axis)


def ifft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the inverse of `fft`."""
    x = _last(x, n, axis)
    return op_moveaxis(_scaled(op_conj(_sums(op_conj(x))), op_shape(x)[-1], norm, True), -1, axis)


def rfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the first half of `fft` of real numbers, of which the rest follows."""
    x = _last(x, n, axis)
    return op_moveaxis(_scaled(_complex(op_rfft(x)), op_shape(x)[-1], norm, False), -1, axis)


def irfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the inverse of `rfft`, of `n` real numbers."""
    x = op_moveaxis(x, axis, -1)
    length = 2 * (op_shape(x)[-1] - 1) if n is None else n
    x = _of_length(x, length // 2 + 1)
    y = op_irfft((op_real(x), op_imag(x)), length)
    return op_moveaxis(_scaled(op_multiply(y, float(length)), length, norm, True), -1, axis)


def hfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute `fft` of a signal of which `x` is the first half, and the rest is its conjugate."""
    return irfft(op_conj(x), n=n, axis=axis, norm=_opposite(norm))


def ihfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Compute the inverse of `hfft`."""
    return op_conj(rfft(x, n=n, axis=axis, norm=_opposite(norm)))


def _opposite(norm: str) -> str:
    return {"backward": "forward", "forward": "backward"}.get(norm, norm)


def _axes(x: ArrayLike, s: Sequence[int] | None, axes: Sequence[int] | None) -> list[tuple[int | None, int]]:
    """Return pairs of a length and an axis."""
    ndim = len(op_shape(x))
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    lengths = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
    if len(lengths) != len(axes):
        raise errors.ArgumentError(f"s has {len(lengths)} lengths for {len(axes)} axes")
    return list(zip(lengths, axes, strict=True))


def _each(transform: Any, x: Any, pairs: list[tuple[int | None, int]], norm: str) -> Tensor:
    for n, axis in pairs:
        x = transform(x, n=n, axis=axis, norm=norm)
    return x


def fftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute `fft` along several axes, all by default."""
    return _each(fft, x, _axes(x, s, axes), norm)


def ifftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute the inverse of `fftn`."""
    return _each(ifft, x, _axes(x, s, axes), norm)


def rfftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute `rfft` along the last of several axes, and `fft` along the others."""
    *others, (n, axis) = _axes(x, s, axes)
    return _each(fft, rfft(x, n=n, axis=axis, norm=norm), others, norm)


def irfftn(x: ArrayLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """Compute the inverse of `rfftn`."""
    *others, (n, axis) = _axes(x, s, axes)
    return irfft(_each(ifft, x, others, norm), n=n, axis=axis, norm=norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType = None, device: Any = None) -> Tensor:
    """Return the frequencies of the entries of `fft`, for samples at distance `d`."""
    half = (n - 1) // 2 + 1
    turns = op_concatenate([op_arange(half), op_arange(-(n // 2), 0)], 0)
    return _frequencies(turns, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType = None, device: Any = None) -> Tensor:
    """Return the frequencies of the entries of `rfft`."""
    return _frequencies(op_arange(n // 2 + 1), n, d, dtype, device)


def _frequencies(turns: Tensor, n: int, d: float, dtype: DType, device: Any) -> Tensor:
    return on(device, op_multiply(op_convert_to_tensor(turns, dtype or "float"), 1.0 / (n * d)))


def fftshift(x: ArrayLike, /, *, axes: Any = None) -> Tensor:
    """Move the frequency zero to the middle of the axes."""
    return _shifted(x, axes, lambda n: n // 2)


def ifftshift(x: ArrayLike, /, *, axes: Any = None) -> Tensor:
    """Undo `fftshift`."""
    return _shifted(x, axes, lambda n: -(n // 2))


def _shifted(x: ArrayLike, axes: Any, by: Callable[[int], int]) -> Tensor:
    shape = op_shape(x)
    axes = _args.axes(axes, len(shape))
    return op_roll(x, tuple(by(shape[k]) for k in axes), axes)
