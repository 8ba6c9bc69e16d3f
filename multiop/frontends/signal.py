"""Fourier transforms of signals, as pairs of real and imaginary parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from multiop import config, errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, Axis, DType, Tensor

from .conversion import on_device_of, op_cast, op_convert_to_tensor, op_dtype, op_shape, operands
from .creation import op_arange, op_ones
from .elementwise import op_add, op_divide, op_minimum, op_multiply, op_negative, op_sin, op_square
from .indexing import op_get_item
from .logical import op_greater, op_where
from .reduction import op_sum
from .shapes import op_broadcast_to, op_concatenate, op_moveaxis, op_pad, op_reshape, op_roll


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
    return active().op_rfft(x, None if fft_length is None else args.count(fft_length, "fft_length", 1))


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
    return active().op_irfft(x, None if fft_length is None else args.count(fft_length, "fft_length", 1))


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
    length = args.count(sequence_length, "sequence_length", 1)
    stride = args.count(sequence_stride, "sequence_stride", 1)
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
    dtype = dtypes.to_floating(op_dtype(x))
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
    dtype = dtypes.to_floating(dtypes.result_type(*map(op_dtype, parts)))
    pieces = op_irfft((op_cast(parts[0], _working(dtype)), op_cast(parts[1], _working(dtype))), n)
    weights = _window(window, sequence_length, n, pieces)
    number = op_shape(pieces)[-2]
    covered = _overlap_add(op_broadcast_to(op_square(weights), (number, n)), stride)
    whole = _overlap_add(op_multiply(pieces, weights), stride)
    signal = op_divide(whole, op_where(op_greater(covered, 1e-10), covered, 1.0))
    start = n // 2 if center else 0
    size = n + stride * (number - 1)
    if length is None:
        end = size - start
    else:
        end = start + args.count(length, "length")
        if end > size:
            raise errors.ArgumentError(f"length {length} is more than the {size - start} entries of the signal")
    return op_cast(op_get_item(signal, (..., slice(start, max(start, end)))), dtype)


@boundary
def op_ifft(
    x: tuple[ArrayLike, ArrayLike], n: int | None = None, axis: int = -1, norm: str | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the inverse of the discrete Fourier transform along an axis.

    Args:
        x: Pair of the real and the imaginary part: real tensors of one shape, of at least one dimension.
        n: How many entries are transformed: `x` is cut, or padded with zeros. By default as many as it has.
        axis: Dimension to transform.
        norm: What divides by the number of entries: `"backward"` (or `None`), this inverse; `"forward"`, the transform;
            `"ortho"`, each by the square root.

    Returns:
        Pair of the real and the imaginary part. They have the dtype of `x`, `floatx` for integers and bool; 16-bit
        floats are transformed in `float32`.

    Raises:
        ArgumentError: The parts differ in shape, the dimension is empty, `n` is not positive, or `norm` is unknown.
        ArgumentTypeError: `x` is not a pair.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_ifft(([3.0, -1.0], [1.0, -1.0]))]
        [[1.0, 2.0], [0.0, 1.0]]
    """
    return _transform(x, [(n, axis)], norm, True)


@boundary
def op_fftn(
    x: tuple[ArrayLike, ArrayLike],
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the discrete Fourier transform along several axes.

    Args:
        x: Pair of the real and the imaginary part: real tensors of one shape.
        s: How many entries are transformed along each axis: `x` is cut, or padded with zeros. By default, and for -1,
            as many as it has.
        axes: Dimensions to transform; by default all, or the last `len(s)`.
        norm: What divides by the number of entries: `"backward"` (or `None`), the inverse; `"forward"`, this transform;
            `"ortho"`, each by the square root.

    Returns:
        Pair of the real and the imaginary part. They have the dtype of `x`, `floatx` for integers and bool; 16-bit
        floats are transformed in `float32`.

    Raises:
        ArgumentError: The parts differ in shape, a dimension is empty, a length is not positive, `s` and `axes` differ
            in length, an axis is out of range or named twice, or `norm` is unknown.
        ArgumentTypeError: `x` is not a pair.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> x = ([[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]])
        >>> multiop.op_convert_to_numpy(multiop.op_fftn(x)[0]).tolist()
        [[10.0, -2.0], [-4.0, 0.0]]
    """
    return _transform(x, _lengths(_parts(x)[0], s, axes), norm, False)


@boundary
def op_ifftn(
    x: tuple[ArrayLike, ArrayLike],
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the inverse of the discrete Fourier transform along several axes.

    Args:
        x: As for `op_fftn`.
        s: As for `op_fftn`.
        axes: As for `op_fftn`.
        norm: As for `op_fftn`.

    Returns:
        Pair of the real and the imaginary part of what `op_fftn` transforms to `x`. They have the dtype of `x`,
        `floatx` for integers and bool; 16-bit floats are transformed in `float32`.

    Raises:
        ArgumentError: As for `op_fftn`.
        ArgumentTypeError: `x` is not a pair.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> x = ([[10.0, -2.0], [-4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
        >>> multiop.op_convert_to_numpy(multiop.op_ifftn(x)[0]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return _transform(x, _lengths(_parts(x)[0], s, axes), norm, True)


@boundary
def op_rfftn(
    x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the discrete Fourier transform of real numbers along several axes.

    Args:
        x: Real tensor.
        s: As for `op_fftn`.
        axes: As for `op_fftn`, at least one.
        norm: As for `op_fftn`.

    Returns:
        Pair of the real and the imaginary part. Along the last of `axes` they have the first `n // 2 + 1` of `n`
        entries; the others are conjugates of these. They have the dtype of `x`, `floatx` for integers and bool; 16-bit
        floats are transformed in `float32`.

    Raises:
        ArgumentError: As for `op_fftn`.
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_rfftn([[1.0, 2.0], [3.0, 4.0]])]
        [[[10.0, -2.0], [-4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]
    """
    return _transformed_reals(x, _lengths(x, s, axes), norm)


@boundary
def op_irfftn(
    x: tuple[ArrayLike, ArrayLike],
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """Compute the inverse of `op_rfftn`.

    Args:
        x: Pair of the real and the imaginary part: real tensors of one shape.
        s: How many entries the result has along each axis. By default, and for -1, as many as `x`, but along the last
            of `axes` `2 * (n - 1)` if `x` has `n`; for an odd number it must be given.
        axes: As for `op_fftn`, at least one.
        norm: As for `op_fftn`.

    Returns:
        Tensor of the dtype of `x`, `floatx` for integers and bool; 16-bit floats are transformed in `float32`.

    Raises:
        ArgumentError: As for `op_fftn`.
        ArgumentTypeError: `x` is not a pair.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> x = ([[10.0, -2.0], [-4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
        >>> multiop.op_convert_to_numpy(multiop.op_irfftn(x)).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return _reals_of(x, _lengths(_parts(x)[0], s, axes), norm, "s")


@boundary
def op_hfft(x: tuple[ArrayLike, ArrayLike], n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Compute the discrete Fourier transform of a signal whose second half is the conjugate of its first: real numbers.

    Args:
        x: Pair of the real and the imaginary part of the first half: real tensors of one shape.
        n: How many entries the result has: `x` is cut to `n // 2 + 1` entries, or padded with zeros. By default
            `2 * (m - 1)` if `x` has `m`; for an odd number it must be given.
        axis: Dimension to transform.
        norm: As for `op_fftn`.

    Returns:
        Tensor of the dtype of `x`, `floatx` for integers and bool; 16-bit floats are transformed in `float32`. The
        imaginary part of the first entry, and of the last if `n` is even, counts as 0.

    Raises:
        ArgumentError: The parts differ in shape, the dimension is empty, `n` is not positive, or `norm` is unknown.
        ArgumentTypeError: `x` is not a pair.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hfft(([1.0, 2.0, 3.0], [0.0, 1.0, 0.0]))).tolist()
        [8.0, 0.0, 0.0, -4.0]
    """
    re, im = active().together(*_parts(x))
    return _reals_of((re, op_negative(im)), [(n, axis)], _opposite(norm), "n")


@boundary
def op_ihfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> tuple[Tensor, Tensor]:
    """Compute the inverse of `op_hfft`.

    Args:
        x: Real tensor of at least one dimension.
        n: How many entries are transformed: `x` is cut, or padded with zeros. By default as many as it has.
        axis: Dimension to transform.
        norm: As for `op_fftn`.

    Returns:
        Pair of the real and the imaginary part of the first `n // 2 + 1` entries. They have the dtype of `x`, `floatx`
        for integers and bool; 16-bit floats are transformed in `float32`.

    Raises:
        ArgumentError: The dimension is empty, `n` is not positive, or `norm` is unknown.
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_ihfft([8.0, 0.0, 0.0, -4.0])[1]).tolist()
        [0.0, 1.0, 0.0]
    """
    re, im = _transformed_reals(x, [(n, axis)], _opposite(norm))
    return re, op_negative(im)


@boundary
def op_fftfreq(n: int, d: float = 1.0, dtype: DType = None) -> Tensor:
    """Return the frequencies of the entries of a discrete Fourier transform.

    Args:
        n: How many entries.
        d: Distance between samples.
        dtype: Dtype of the result, `floatx` by default.

    Returns:
        Vector of `n` frequencies, in cycles per unit of `d`: 0 and the positive ones, then the negative ones.

    Raises:
        ArgumentError: `n` is not positive, or `d` is 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_fftfreq(4)).tolist()
        [0.0, 0.25, -0.5, -0.25]
    """
    n = args.count(n, "n", 1)
    return _frequencies(op_concatenate([op_arange((n + 1) // 2), op_arange(-(n // 2), 0)]), n, d, dtype)


@boundary
def op_rfftfreq(n: int, d: float = 1.0, dtype: DType = None) -> Tensor:
    """Return the frequencies of the entries of a discrete Fourier transform of real numbers.

    Args:
        n: How many numbers are transformed.
        d: Distance between samples.
        dtype: Dtype of the result, `floatx` by default.

    Returns:
        Vector of `n // 2 + 1` frequencies, in cycles per unit of `d`.

    Raises:
        ArgumentError: `n` is not positive, or `d` is 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_rfftfreq(4)).tolist()
        [0.0, 0.25, 0.5]
    """
    n = args.count(n, "n", 1)
    return _frequencies(op_arange(n // 2 + 1), n, d, dtype)


@boundary
def op_fftshift(x: ArrayLike, axes: Axis = None) -> Tensor:
    """Move the frequency 0 from the first entry to the middle.

    Args:
        x: Tensor of any dtype: frequencies, or one part of a transform.
        axes: Axis or axes; by default all of them.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ArgumentError: An axis is out of range or named twice.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_fftshift([0, 1, -2, -1])).tolist()
        [-2, -1, 0, 1]
    """
    return _shift_by_halves(x, axes, 1)


@boundary
def op_ifftshift(x: ArrayLike, axes: Axis = None) -> Tensor:
    """Undo `op_fftshift`.

    Args:
        x: Tensor of any dtype.
        axes: Axis or axes; by default all of them.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ArgumentError: An axis is out of range or named twice.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_ifftshift([-2, -1, 0, 1])).tolist()
        [0, 1, -2, -1]
    """
    return _shift_by_halves(x, axes, -1)


_POWERS = {None: 0.0, "backward": 0.0, "ortho": -0.5, "forward": -1.0}  # of the length, by which a transform is divided
_Lengths: TypeAlias = Sequence[tuple[int | None, int]]


def _power(norm: str | None, inverse: bool) -> float:
    args.choice(norm, tuple(_POWERS), "norm")
    return -1.0 - _POWERS[norm] if inverse else _POWERS[norm]


def _opposite(norm: str | None) -> str | None:
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def _lengths(x: Any, s: Any, axes: Any) -> _Lengths:
    """Return pairs of a length and an axis of `x`."""
    ndim = len(op_shape(x))
    lengths = None if s is None else [None if n == -1 else n for n in s]
    if axes is None:
        axes = range(ndim) if lengths is None else range(ndim - len(lengths), ndim)
    axes = args.axes(tuple(axes), ndim, "axes")
    lengths = [None] * len(axes) if lengths is None else lengths
    if len(lengths) != len(axes):
        raise errors.ArgumentError(f"s has {len(lengths)} lengths for {len(axes)} axes")
    return list(zip(lengths, axes, strict=True))


def _transform(x: Any, lengths: _Lengths, norm: str | None, inverse: bool) -> tuple[Any, Any]:
    (re, im), dtype = _in_working(*_parts(x))
    power = _power(norm, inverse)
    re, im, sizes = _sums(re, im, lengths, inverse)
    re, im = (op_cast(_scale_by_sizes(part, sizes, power), dtype) for part in (re, im))
    return re, im


def _transformed_reals(x: Any, lengths: _Lengths, norm: str | None) -> tuple[Any, Any]:
    (x,), dtype = _in_working(x)
    power = _power(norm, False)
    (n, axis), others = _last_of(lengths)
    x = op_moveaxis(x, axis, -1)
    size = op_shape(x)[-1] if n is None else n
    re, im = (op_moveaxis(part, -1, axis) for part in op_rfft(x, n))
    re, im, sizes = _sums(re, im, others, False)
    re, im = (op_cast(_scale_by_sizes(part, [*sizes, size], power), dtype) for part in (re, im))
    return re, im


def _reals_of(x: Any, lengths: _Lengths, norm: str | None, name: str) -> Any:
    (re, im), dtype = _in_working(*_parts(x))
    power = _power(norm, True)
    (n, axis), others = _last_of(lengths)
    re, im, sizes = _sums(re, im, others, True)
    re, im = op_moveaxis(re, axis, -1), op_moveaxis(im, axis, -1)
    if n is None and (n := 2 * (op_shape(re)[-1] - 1)) == 0:
        raise errors.ArgumentError(f"{name} must be given for a transform of one entry")
    y = op_moveaxis(op_irfft((re, im), n), -1, axis)
    y = _scale_by_sizes(y, sizes, power)
    return op_cast(_scale_by_sizes(y, [n], power + 1.0), dtype)


def _last_of(lengths: _Lengths) -> tuple[Any, _Lengths]:
    if not lengths:
        raise errors.ArgumentError("axes must name at least one dimension")
    return lengths[-1], lengths[:-1]


def _in_working(*xs: Any) -> tuple[list[Any], str]:
    """Return real tensors of one shape in the dtype to compute in, and the name of their own."""
    xs = operands(*xs)
    dtype = dtypes.to_floating(dtypes.result_type(*map(op_dtype, xs)))
    if dtype in dtypes.COMPLEX:
        raise errors.DTypeError(f"x must be real, got {dtype}")
    if op_shape(xs[0]) != op_shape(xs[-1]):
        raise errors.ArgumentError(f"x: parts of shapes {op_shape(xs[0])} and {op_shape(xs[1])} are not of one tensor")
    return [op_cast(x, _working(dtype)) for x in xs], dtype


def _sums(re: Any, im: Any, lengths: _Lengths, inverse: bool) -> tuple[Any, Any, list[Any]]:
    """Return transforms without factors, of the conjugate and back for the inverse; and the numbers of entries."""
    sizes = []
    im = op_negative(im) if inverse else im
    for n, axis in lengths:
        re, im = (_of_length(op_moveaxis(part, axis, -1), n) for part in (re, im))
        sizes.append(op_shape(re)[-1])
        re, im = (op_moveaxis(part, -1, axis) for part in op_fft((re, im)))
    return re, op_negative(im) if inverse else im, sizes


def _of_length(x: Any, n: Any) -> Any:
    """Return `x`, cut or padded with zeros at the end of its last axis."""
    if n is None:
        return x
    more = args.count(n, "n", 1) - op_shape(x)[-1]
    if more > 0:
        return op_pad(x, [(0, 0)] * (len(op_shape(x)) - 1) + [(0, more)])
    return op_get_item(x, (..., slice(n))) if more else x


def _scale_by_sizes(x: Any, sizes: Sequence[Any], power: float) -> Any:
    if not power or not sizes:
        return x
    if not all(isinstance(size, int) for size in sizes):
        raise errors.ArgumentError("norm needs numbers of entries that are known: give them")
    return op_multiply(x, float(math.prod(sizes)) ** power)


def _frequencies(turns: Any, n: int, d: float, dtype: Any) -> Any:
    if not (d := args.number(d, "d")):
        raise errors.ArgumentError("d must not be 0")
    return op_multiply(op_cast(turns, dtype or config.floatx()), 1.0 / (n * d))


def _shift_by_halves(x: Any, axes: Axis, sign: int) -> Any:
    shape = op_shape(x)
    axes = args.axes(axes, len(shape), "axes")
    return op_roll(x, tuple(sign * (shape[k] // 2) for k in axes), axes)


def _parts(x: Any) -> tuple[Any, Any]:
    """Return the two parts of complex numbers."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise errors.ArgumentTypeError(f"x must be a pair of the real and the imaginary part, got {args.describe(x)}")
    return x[0], x[1]


def _pair(x: Any, ndim: int) -> tuple[Any, Any]:
    """Return the two parts of complex numbers; their last `ndim` dimensions must not be empty."""
    parts = _parts(x)
    _sizes(parts[0], ndim)
    return parts


def _sizes(x: Any, ndim: int) -> tuple[Any, ...]:
    """Return the last `ndim` sizes of `x`, none of which may be 0."""
    shape = op_shape(x)
    if len(shape) < ndim:
        raise errors.ArgumentError(f"x must have at least {ndim} dimensions, not {len(shape)}")
    if any(isinstance(size, int) and size == 0 for size in shape[-ndim:]):
        raise errors.ArgumentError(f"x must not be empty in its last dimensions, got the shape {shape}")
    return tuple(shape[-ndim:])


def _working(dtype: str) -> str:
    return dtypes.result_type(dtype, "float32") if dtype in dtypes.FLOATING else dtype


def _frames(sequence_length: int, sequence_stride: int, fft_length: int) -> tuple[int, int]:
    """Return the stride and the length of the sequences, padded for the transform."""
    length = args.count(sequence_length, "sequence_length", 1)
    n = args.count(fft_length, "fft_length", 1)
    if n < length:
        raise errors.ArgumentError(f"fft_length {n} is below sequence_length {length}")
    return args.count(sequence_stride, "sequence_stride", 1), n


def _window(window: Any, length: int, n: int, x: Tensor) -> Tensor:
    """Return a window of `length` entries for `x`, in the middle of `n` entries."""
    dtype = op_dtype(x)
    if isinstance(window, str):
        args.choice(window, ("hann", "hamming"), "window")
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


def _overlap_add(pieces: Tensor, stride: int) -> Tensor:
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
