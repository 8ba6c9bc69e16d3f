"""Fourier transforms of signals, as pairs of real and imaginary parts."""

from __future__ import annotations

import math
from typing import Any

from multiop import _args, _dtypes, errors
from multiop._boundary import boundary
from multiop._registry import active
from multiop._types import ArrayLike, Tensor

from .conversion import on_device_of, op_cast, op_convert_to_tensor, op_dtype, op_shape, operands
from .creation import op_arange, op_ones
from .elementwise import op_add, op_divide, op_minimum, op_multiply, op_sin, op_square
from .indexing import op_get_item
from .logical import op_greater, op_where
from .reduction import op_sum
from .shapes import op_broadcast_to, op_moveaxis, op_pad, op_reshape


@boundary
def op_fft(x: tuple[ArrayLike, ArrayLike]) -> tuple[Tensor, Tensor]:
    """Compute the discrete Fourier transform along the last dimension.

    Args:
        x: Pair of the real and the imaginary part: real tensors of one shape, of at least one dimension.

    Returns:
        Pair of the real and the imaginary part of the transform, of the shape of `x`. They have the dtype of `x`,
        `floatx` for integers and bool; 16-bit floats are transformed in `float32`.

    Raises:
        ArgumentError: The parts differ in shape, or the last dimension is empty.
        ArgumentTypeError: `x` is not a pair.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_fft(([1.0, 2.0], [0.0, 1.0]))]
        [[3.0, -1.0], [1.0, -1.0]]
    """
    return active().op_fft(_pair(x, 1))


@boundary
def op_fft2(x: tuple[ArrayLike, ArrayLike]) -> tuple[Tensor, Tensor]:
    """Compute the discrete Fourier transform along the last two dimensions.

    Args:
        x: Pair of the real and the imaginary part: real tensors of one shape, of at least two dimensions.

    Returns:
        Pair of the real and the imaginary part of the transform, of the shape of `x`. They have the dtype of `x`,
        `floatx` for integers and bool; 16-bit floats are transformed in `float32`.

    Raises:
        ArgumentError: The parts differ in shape, or one of the last two dimensions is missing or empty.
        ArgumentTypeError: `x` is not a pair.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> x = ([[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]])
        >>> multiop.op_convert_to_numpy(multiop.op_fft2(x)[0]).tolist()
        [[10.0, -2.0], [-4.0, 0.0]]
    """
    return active().op_fft2(_pair(x, 2))


@boundary
def op_ifft2(x: tuple[ArrayLike, ArrayLike]) -> tuple[Tensor, Tensor]:
    """Compute the inverse of the discrete Fourier transform along the last two dimensions.

    Args:
        x: Pair of the real and the imaginary part: real tensors of one shape, of at least two dimensions.

    Returns:
        Pair of the real and the imaginary part of the tensor that `op_fft2` transforms to `x`, of the shape of `x`.
        They have the dtype of `x`, `floatx` for integers and bool; 16-bit floats are transformed in `float32`.

    Raises:
        ArgumentError: The parts differ in shape, or one of the last two dimensions is missing or empty.
        ArgumentTypeError: `x` is not a pair.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> x = ([[10.0, -2.0], [-4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
        >>> multiop.op_convert_to_numpy(multiop.op_ifft2(x)[0]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return active().op_ifft2(_pair(x, 2))


@boundary
def op_rfft(x: ArrayLike, fft_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Compute the discrete Fourier transform of real numbers along the last dimension.

    Args:
        x: Real tensor of at least one dimension.
        fft_length: How many entries are transformed: `x` is cut, or padded with zeros. By default as many as it has.

    Returns:
        Pair of the real and the imaginary part of the first `fft_length // 2 + 1` entries of the transform; the others
        are their conjugates. They have the dtype of `x`, `floatx` for integers and bool; 16-bit floats are transformed
        in `float32`.

    Raises:
        ArgumentError: The last dimension is empty, or `fft_length` is not positive.
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_rfft([1.0, 2.0, 3.0, 4.0])]
        [[10.0, -2.0, -2.0], [0.0, 2.0, 0.0]]
    """
    _sizes(x, 1)
    return active().op_rfft(x, None if fft_length is None else _args.count(fft_length, "fft_length", 1))


@boundary
def op_irfft(x: tuple[ArrayLike, ArrayLike], fft_length: int | None = None) -> Tensor:
    """Compute the inverse of `op_rfft` along the last dimension.

    Args:
        x: Pair of the real and the imaginary part: real tensors of one shape, of at least one dimension.
        fft_length: How many entries the result has: `x` is cut to `fft_length // 2 + 1` entries, or padded with zeros.
            By default `2 * (n - 1)` if `x` has `n`; for an odd number it must be given.

    Returns:
        Tensor of the dtype of `x`, `floatx` for integers and bool; 16-bit floats are transformed in `float32`. The
        imaginary part of the first entry, and of the last if `fft_length` is even, counts as 0.

    Raises:
        ArgumentError: The parts differ in shape, the last dimension is empty, or `fft_length` is not positive.
        ArgumentTypeError: `x` is not a pair.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> x = ([10.0, -2.0, -2.0], [0.0, 2.0, 0.0])
        >>> multiop.op_convert_to_numpy(multiop.op_irfft(x)).tolist()
        [1.0, 2.0, 3.0, 4.0]
    """
    x = _pair(x, 1)
    if fft_length is None and op_shape(x[0])[-1] == 1:
        raise errors.ArgumentError("fft_length must be given for a transform of one entry")
    return active().op_irfft(x, None if fft_length is None else _args.count(fft_length, "fft_length", 1))


@boundary
def op_extract_sequences(x: ArrayLike, sequence_length: int, sequence_stride: int) -> Tensor:
    """Cut the last dimension into sequences that may overlap.

    Args:
        x: Tensor of at least one dimension.
        sequence_length: How many entries each sequence has.
        sequence_stride: Distance from the start of one sequence to the start of the next.

    Returns:
        Tensor of shape `(*x.shape[:-1], number, sequence_length)` and of the dtype of `x`, where
        `number = (x.shape[-1] - sequence_length) // sequence_stride + 1`.

    Raises:
        ArgumentError: `sequence_length` or `sequence_stride` is not positive, or no sequence fits.

    Gradient:
        For an entry in several sequences, the sum.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_extract_sequences([1, 2, 3, 4, 5, 6], 3, 2)).tolist()
        [[1, 2, 3], [3, 4, 5]]
    """
    length = _args.count(sequence_length, "sequence_length", 1)
    stride = _args.count(sequence_stride, "sequence_stride", 1)
    (size,) = _sizes(x, 1)
    if isinstance(size, int) and size < length:
        raise errors.ArgumentError(f"sequence_length {length} does not fit in {size} entries")
    return active().op_extract_sequences(x, length, stride)


# composites


@boundary
def op_stft(
    x: ArrayLike,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: Any = "hann",
    center: bool = True,
) -> tuple[Tensor, Tensor]:
    """Compute the Fourier transforms of short overlapping pieces of a signal, along the last dimension.

    Args:
        x: Real tensor of at least one dimension.
        sequence_length: How many entries of the signal each transform covers.
        sequence_stride: Distance from the start of one sequence to the start of the next.
        fft_length: Length of each transform, at least `sequence_length`; the sequence is in the middle.
        window: Factor of each sequence: `"hann"`, `"hamming"` (both periodic), a vector of
            `sequence_length` numbers, or `None` for ones.
        center: Whether to reflect `fft_length // 2` entries of the signal at its ends, so that sequences are centred at
            the multiples of `sequence_stride` instead of starting there.

    Returns:
        Pair of the real and the imaginary part, of shape `(*x.shape[:-1], sequences, fft_length // 2 + 1)`. They have
        the dtype of `x`, `floatx` for integers and bool; 16-bit floats are transformed in `float32`.

    Raises:
        ArgumentError: A number is not positive, `fft_length` is below `sequence_length`, the signal is too short, or
            the window is unknown or does not have `sequence_length` entries.
        DTypeError: `x` or the window is complex.

    Gradient:
        Flows to the window as well.

    Example:
        >>> import multiop
        >>> real, imag = multiop.op_stft([1.0, 2.0, 3.0, 4.0], 2, 2, 2, window=None, center=False)
        >>> multiop.op_convert_to_numpy(real).tolist()
        [[3.0, -1.0], [7.0, -1.0]]
    """
    stride, n = _frames(sequence_length, sequence_stride, fft_length)
    x, window = (x, window) if window is None or isinstance(window, str) else operands(x, window)
    x = op_convert_to_tensor(x)
    dtype = _dtypes.to_floating(op_dtype(x))
    x = op_cast(x, _working(dtype))
    _sizes(x, 1)
    if center:
        x = op_pad(x, [(0, 0)] * (len(op_shape(x)) - 1) + [(n // 2, n // 2)], "reflect")
    weights = _window(window, sequence_length, n, x)
    real, imag = op_rfft(op_multiply(op_extract_sequences(x, n, stride), weights))
    return op_cast(real, dtype), op_cast(imag, dtype)


@boundary
def op_istft(
    x: tuple[ArrayLike, ArrayLike],
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: Any = "hann",
    center: bool = True,
) -> Tensor:
    """Compute the signal that `op_stft` transforms to `x`, or the closest one if there is none.

    Args:
        x: Pair of the real and the imaginary part: real tensors of shape `(..., sequences, fft_length // 2 + 1)`.
        sequence_length: As for `op_stft`.
        sequence_stride: As for `op_stft`, at most `sequence_length`.
        fft_length: As for `op_stft`.
        length: How many entries the signal has; by default as many as the sequences cover, without those that
            `op_stft` reflected.
        window: As for `op_stft`.
        center: As for `op_stft`.

    Returns:
        Tensor of shape `(..., length)`, of the dtype of `x`, `floatx` for integers and bool: the sum of the sequences,
        each times the window, divided by the sum of the squared windows; 0 where that sum is 0, since nothing is known
        there.

    Raises:
        ArgumentError: A number is not positive, `fft_length` is below `sequence_length`, or `sequence_length` is below
            `sequence_stride`, the signal is shorter than `length`, or the window or `x` does not fit.
        ArgumentTypeError: `x` is not a pair.
        DTypeError: `x` or the window is complex.

    Gradient:
        Flows to the window as well.

    Example:
        >>> import multiop
        >>> x = multiop.op_stft([1.0, 2.0, 3.0, 4.0], 2, 1, 2, window=None)
        >>> multiop.op_convert_to_numpy(multiop.op_istft(x, 2, 1, 2, window=None)).tolist()
        [1.0, 2.0, 3.0, 4.0]
    """
    stride, n = _frames(sequence_length, sequence_stride, fft_length)
    if stride > sequence_length:
        raise errors.ArgumentError(f"sequence_stride {stride} leaves gaps between {sequence_length} entries")
    parts = _pair(x, 2)
    if window is None or isinstance(window, str):
        parts = operands(*parts)
    else:
        *parts, window = operands(*parts, window)
    if op_shape(parts[0])[-1] != n // 2 + 1:
        raise errors.ArgumentError(f"x has {op_shape(parts[0])[-1]} entries in its last dimension, not {n // 2 + 1}")
    dtype = _dtypes.to_floating(_dtypes.result_type(*map(op_dtype, parts)))
    pieces = op_irfft((op_cast(parts[0], _working(dtype)), op_cast(parts[1], _working(dtype))), n)
    weights = _window(window, sequence_length, n, pieces)
    number = op_shape(pieces)[-2]
    covered = _overlapped(op_broadcast_to(op_square(weights), (number, n)), stride)
    whole = _overlapped(op_multiply(pieces, weights), stride)
    signal = op_divide(whole, op_where(op_greater(covered, 1e-10), covered, 1.0))
    start = n // 2 if center else 0
    size = n + stride * (number - 1)
    if length is None:
        end = size - start
    else:
        end = start + _args.count(length, "length")
        if end > size:
            raise errors.ArgumentError(f"length {length} is more than the {size - start} entries of the signal")
    return op_cast(op_get_item(signal, (..., slice(start, max(start, end)))), dtype)


def _pair(x: Any, ndim: int) -> tuple[Any, Any]:
    """Return the two parts of complex numbers; their last `ndim` dimensions must not be empty."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise errors.ArgumentTypeError(f"x must be a pair of the real and the imaginary part, got {_args.describe(x)}")
    _sizes(x[0], ndim)
    return x[0], x[1]


def _sizes(x: Any, ndim: int) -> tuple[Any, ...]:
    """Return the last `ndim` sizes of `x`, none of which may be 0."""
    shape = op_shape(x)
    if len(shape) < ndim:
        raise errors.ArgumentError(f"x must have at least {ndim} dimensions, not {len(shape)}")
    if any(isinstance(size, int) and size == 0 for size in shape[-ndim:]):
        raise errors.ArgumentError(f"x must not be empty in its last dimensions, got the shape {shape}")
    return tuple(shape[-ndim:])


def _working(dtype: str) -> str:
    return _dtypes.result_type(dtype, "float32") if dtype in _dtypes.FLOATING else dtype


def _frames(sequence_length: int, sequence_stride: int, fft_length: int) -> tuple[int, int]:
    """Return the stride and the length of the sequences, padded for the transform."""
    length = _args.count(sequence_length, "sequence_length", 1)
    n = _args.count(fft_length, "fft_length", 1)
    if n < length:
        raise errors.ArgumentError(f"fft_length {n} is below sequence_length {length}")
    return _args.count(sequence_stride, "sequence_stride", 1), n


def _window(window: Any, length: int, n: int, x: Tensor) -> Tensor:
    """Return a window of `length` entries for `x`, in the middle of `n` entries."""
    dtype = op_dtype(x)
    if isinstance(window, str):
        _args.choice(window, ("hann", "hamming"), "window")
    if window is None or (isinstance(window, str) and length == 1):  # every window of one entry is 1
        found = op_ones((length,), dtype)
    elif isinstance(window, str):
        places = op_arange(length, dtype=dtype)
        # the distance to the nearer end, at which the sine is exact
        nearer = op_minimum(places, op_add(op_multiply(places, -1), length))
        found = op_square(op_sin(op_multiply(nearer, math.pi / length)))
        if window == "hamming":
            found = op_add(op_multiply(found, 0.92), 0.08)
    else:
        found = op_cast(window, dtype)
        if op_shape(found) != (length,):
            raise errors.ArgumentError(f"window must have the shape ({length},), not {op_shape(found)}")
    if window is None or isinstance(window, str):
        found = on_device_of(x, found)
    return op_pad(found, [((n - length) // 2, n - length - (n - length) // 2)])


def _overlapped(pieces: Tensor, stride: int) -> Tensor:
    """Return the sum of overlapping pieces, each of which starts `stride` entries after the one before."""
    *outer, number, n = op_shape(pieces)
    blocks = -(-n // stride)
    none = [(0, 0)] * len(outer)
    pieces = op_pad(pieces, [*none, (0, 0), (0, blocks * stride - n)])
    pieces = op_moveaxis(op_reshape(pieces, (*outer, number, blocks, stride)), -2, -3)
    # cutting the rows one block shorter makes each start one block later
    pieces = op_reshape(
        op_pad(pieces, [*none, (0, 0), (0, blocks), (0, 0)]), (*outer, blocks * (number + blocks), stride)
    )
    short = number + blocks - 1
    pieces = op_get_item(pieces, (..., slice(0, blocks * short), slice(None)))
    summed = op_sum(op_reshape(pieces, (*outer, blocks, short, stride)), -3)
    return op_get_item(op_reshape(summed, (*outer, short * stride)), (..., slice(0, n + stride * (number - 1))))
