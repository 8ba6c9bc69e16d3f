"""Fourier transforms of signals: of complex tensors, or of pairs of real and imaginary parts, as Keras has them."""

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
from .elementwise import (
    op_add,
    op_conj,
    op_divide,
    op_imag,
    op_minimum,
    op_multiply,
    op_negative,
    op_real,
    op_sin,
    op_square,
)
from .indexing import op_get_item
from .logical import op_greater, op_where
from .reduction import op_sum
from .shapes import op_broadcast_to, op_concatenate, op_moveaxis, op_pad, op_reshape, op_roll

Complex: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike]


@boundary
def op_fftn(
    x: Complex,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Any:
    """Compute the discrete Fourier transform along several axes.

    Args:
        x: Complex tensor, or a pair of the real and the imaginary part: real tensors of one shape.
        s: How many entries are transformed along each axis: `x` is cut, or padded with zeros. By default, and for -1,
            as many as it has.
        axes: Dimensions to transform; by default all, or the last `len(s)`.
        norm: What divides by the number of entries: `"backward"` (or `None`), the inverse; `"forward"`, this transform;
            `"ortho"`, each by the square root.

    Returns:
        Complex tensor of the dtype of `x`; of a pair, a pair. Its parts have the dtype of `x`, `floatx` for integers
        and bool; 16-bit floats are transformed in `float32`.

    Raises:
        ArgumentError: The parts differ in shape, a dimension is empty, a length is not positive, `s` and `axes` differ
            in length, an axis is out of range or named twice, or `norm` is unknown.
        ArgumentTypeError: `x` is neither a pair nor complex.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_fftn([[1.0 + 0j, 2.0], [3.0, 4.0]])).tolist()
        [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    x, sizes = _numbers(x)
    lengths, axes = _plan(sizes, s, axes)
    return active().op_fftn(x, lengths, axes, _norm(norm))


@boundary
def op_ifftn(
    x: Complex,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Any:
    """Compute the inverse of the discrete Fourier transform along several axes.

    Args:
        x: As for `op_fftn`.
        s: As for `op_fftn`.
        axes: As for `op_fftn`.
        norm: As for `op_fftn`.

    Returns:
        What `op_fftn` transforms to `x`: a complex tensor of the dtype of `x`; of a pair, a pair, as from `op_fftn`.

    Raises:
        ArgumentError: As for `op_fftn`.
        ArgumentTypeError: `x` is neither a pair nor complex.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> x = ([[10.0, -2.0], [-4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
        >>> multiop.op_convert_to_numpy(multiop.op_ifftn(x)[0]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    x, sizes = _numbers(x)
    lengths, axes = _plan(sizes, s, axes)
    return active().op_ifftn(x, lengths, axes, _norm(norm))


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
        floats are transformed in `float32`. `multiop.array_api.fft.rfftn` returns one complex tensor.

    Raises:
        ArgumentError: As for `op_fftn`.
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_rfftn([[1.0, 2.0], [3.0, 4.0]])]
        [[[10.0, -2.0], [-4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]
    """
    lengths, axes = _some(_plan(op_shape(x), s, axes))
    return active().op_rfftn(x, lengths, axes, _norm(norm), True)


@boundary
def op_irfftn(
    x: Complex,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Tensor:
    """Compute the inverse of `op_rfftn`.

    Args:
        x: Complex tensor, or a pair of the real and the imaginary part: real tensors of one shape.
        s: How many entries the result has along each axis. By default, and for -1, as many as `x`, but along the last
            of `axes` `2 * (n - 1)` if `x` has `n`; for an odd number it must be given.
        axes: As for `op_fftn`, at least one.
        norm: As for `op_fftn`.

    Returns:
        Tensor of the dtype of the parts of `x`, `floatx` for integers and bool; 16-bit floats are transformed in
        `float32`.

    Raises:
        ArgumentError: As for `op_fftn`.
        ArgumentTypeError: `x` is neither a pair nor complex.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> x = ([[10.0, -2.0], [-4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
        >>> multiop.op_convert_to_numpy(multiop.op_irfftn(x)).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    x, sizes = _numbers(x)
    lengths, axes = _halves(sizes, s, axes, "s")
    return active().op_irfftn(x, lengths, axes, _norm(norm))


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
def op_fft(x: Complex, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Compute the discrete Fourier transform along an axis.

    Args:
        x: Complex tensor, or a pair of the real and the imaginary part: real tensors of one shape. It has at least one
            dimension.
        n: How many entries are transformed: `x` is cut, or padded with zeros. By default as many as it has.
        axis: Dimension to transform.
        norm: What divides by the number of entries: `"backward"` (or `None`), the inverse; `"forward"`, this transform;
            `"ortho"`, each by the square root.

    Returns:
        Complex tensor of the dtype of `x`; of a pair, a pair. Its parts have the dtype of `x`, `floatx` for integers
        and bool; 16-bit floats are transformed in `float32`.

    Raises:
        ArgumentError: The parts differ in shape, the dimension is empty, `n` is not positive, or `norm` is unknown.
        ArgumentTypeError: `x` is neither a pair nor complex.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_fft(([1.0, 2.0], [0.0, 1.0]))]
        [[3.0, -1.0], [1.0, -1.0]]
    """
    x, sizes = _numbers(x)
    return active().op_fftn(x, *_one(sizes, n, axis), _norm(norm))


@boundary
def op_ifft(x: Complex, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Compute the inverse of the discrete Fourier transform along an axis.

    Args:
        x: As for `op_fft`.
        n: As for `op_fft`.
        axis: As for `op_fft`.
        norm: As for `op_fft`.

    Returns:
        What `op_fft` transforms to `x`: a complex tensor of the dtype of `x`; of a pair, a pair, as from `op_fft`.

    Raises:
        ArgumentError: The parts differ in shape, the dimension is empty, `n` is not positive, or `norm` is unknown.
        ArgumentTypeError: `x` is neither a pair nor complex.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_ifft(([3.0, -1.0], [1.0, -1.0]))]
        [[1.0, 2.0], [0.0, 1.0]]
    """
    x, sizes = _numbers(x)
    return active().op_ifftn(x, *_one(sizes, n, axis), _norm(norm))


@boundary
def op_fft2(x: Complex) -> Any:
    """Compute the discrete Fourier transform along the last two dimensions.

    Args:
        x: Complex tensor, or a pair of the real and the imaginary part: real tensors of one shape. It has at least two
            dimensions.

    Returns:
        Complex tensor of the dtype of `x`; of a pair, a pair, as from `op_fft`.

    Raises:
        ArgumentError: The parts differ in shape, or one of the last two dimensions is missing or empty.
        ArgumentTypeError: `x` is neither a pair nor complex.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> x = ([[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]])
        >>> multiop.op_convert_to_numpy(multiop.op_fft2(x)[0]).tolist()
        [[10.0, -2.0], [-4.0, 0.0]]
    """
    x, sizes = _numbers(x)
    return active().op_fftn(x, None, _last(sizes, 2), "backward")


@boundary
def op_ifft2(x: Complex) -> Any:
    """Compute the inverse of the discrete Fourier transform along the last two dimensions.

    Args:
        x: As for `op_fft2`.

    Returns:
        What `op_fft2` transforms to `x`: a complex tensor of the dtype of `x`; of a pair, a pair, as from `op_fft`.

    Raises:
        ArgumentError: The parts differ in shape, or one of the last two dimensions is missing or empty.
        ArgumentTypeError: `x` is neither a pair nor complex.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> x = ([[10.0, -2.0], [-4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
        >>> multiop.op_convert_to_numpy(multiop.op_ifft2(x)[0]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    x, sizes = _numbers(x)
    return active().op_ifftn(x, None, _last(sizes, 2), "backward")


@boundary
def op_rfft(x: ArrayLike, fft_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Compute the discrete Fourier transform of real numbers along the last dimension.

    Args:
        x: Real tensor of at least one dimension.
        fft_length: How many entries are transformed: `x` is cut, or padded with zeros. By default as many as it has.

    Returns:
        Pair of the real and the imaginary part of the first `fft_length // 2 + 1` entries of the transform; the others
        are their conjugates. They have the dtype of `x`, `floatx` for integers and bool; 16-bit floats are transformed
        in `float32`. `multiop.array_api.fft.rfft` returns one complex tensor.

    Raises:
        ArgumentError: The last dimension is empty, or `fft_length` is not positive.
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_rfft([1.0, 2.0, 3.0, 4.0])]
        [[10.0, -2.0, -2.0], [0.0, 2.0, 0.0]]
    """
    return active().op_rfftn(x, *_one(op_shape(x), fft_length, -1, "fft_length"), "backward", True)


@boundary
def op_irfft(x: Complex, fft_length: int | None = None) -> Tensor:
    """Compute the inverse of `op_rfft` along the last dimension.

    Args:
        x: Complex tensor, or a pair of the real and the imaginary part: real tensors of one shape. It has at least one
            dimension.
        fft_length: How many entries the result has: `x` is cut to `fft_length // 2 + 1` entries, or padded with zeros.
            By default `2 * (n - 1)` if `x` has `n`; for an odd number it must be given.

    Returns:
        Tensor of the dtype of the parts of `x`, `floatx` for integers and bool; 16-bit floats are transformed in
        `float32`. The imaginary part of the first entry, and of the last if `fft_length` is even, counts as 0.

    Raises:
        ArgumentError: The parts differ in shape, the last dimension is empty, or `fft_length` is not positive.
        ArgumentTypeError: `x` is neither a pair nor complex.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> x = ([10.0, -2.0, -2.0], [0.0, 2.0, 0.0])
        >>> multiop.op_convert_to_numpy(multiop.op_irfft(x)).tolist()
        [1.0, 2.0, 3.0, 4.0]
    """
    x, sizes = _numbers(x)
    return active().op_irfftn(x, *_half(sizes, fft_length, -1, "fft_length"), "backward")


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
    x: Complex,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: Any = "hann",
    center: bool = True,
) -> Tensor:
    """Compute the signal that `op_stft` transforms to `x`, or the closest one if there is none.

    Args:
        x: Complex tensor, or a pair of the real and the imaginary part: real tensors, of shape
            `(..., sequences, fft_length // 2 + 1)`.
        sequence_length: As for `op_stft`.
        sequence_stride: As for `op_stft`, at most `sequence_length`.
        fft_length: As for `op_stft`.
        length: How many entries the signal has; by default as many as the sequences cover, without those that
            `op_stft` reflected.
        window: As for `op_stft`.
        center: As for `op_stft`.

    Returns:
        Tensor of shape `(..., length)`, of the dtype of the parts of `x`, `floatx` for integers and bool: the sum of
        the sequences, each times the window, divided by the sum of the squared windows; 0 where that sum is 0, since
        nothing is known there.

    Raises:
        ArgumentError: A number is not positive, `fft_length` is below `sequence_length`, or `sequence_length` is below
            `sequence_stride`, the signal is shorter than `length`, or the window or `x` does not fit.
        ArgumentTypeError: `x` is neither a pair nor complex.
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
    x, sizes = _numbers(x)
    _last(sizes, 2)
    parts = x if isinstance(x, tuple) else (op_real(x), op_imag(x))
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
def op_hfft(x: Complex, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Compute the discrete Fourier transform of a signal whose second half is the conjugate of its first: real numbers.

    Args:
        x: The first half: a complex tensor, or a pair of the real and the imaginary part: real tensors of one shape.
        n: How many entries the result has: `x` is cut to `n // 2 + 1` entries, or padded with zeros. By default
            `2 * (m - 1)` if `x` has `m`; for an odd number it must be given.
        axis: Dimension to transform.
        norm: As for `op_fftn`.

    Returns:
        Tensor of the dtype of the parts of `x`, `floatx` for integers and bool; 16-bit floats are transformed in
        `float32`. The imaginary part of the first entry, and of the last if `n` is even, counts as 0.

    Raises:
        ArgumentError: The parts differ in shape, the dimension is empty, `n` is not positive, or `norm` is unknown.
        ArgumentTypeError: `x` is neither a pair nor complex.
        DTypeError: A part is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hfft(([1.0, 2.0, 3.0], [0.0, 1.0, 0.0]))).tolist()
        [8.0, 0.0, 0.0, -4.0]
    """
    x, sizes = _numbers(x)
    return active().op_irfftn(_conjugate(x), *_half(sizes, n, axis, "n"), _OPPOSITE[_norm(norm)])


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
    return _conjugate(active().op_rfftn(x, *_one(op_shape(x), n, axis), _OPPOSITE[_norm(norm)], True))


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


_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _norm(norm: str | None) -> str:
    return "backward" if norm is None else args.choice(norm, tuple(_OPPOSITE), "norm")


def transform_reals(x: ArrayLike, s: Any, axes: Any, norm: str | None) -> Tensor:
    """Return the transform of real numbers as one complex tensor."""
    lengths, axes = _some(_plan(op_shape(x), s, axes))
    return active().op_rfftn(x, lengths, axes, _norm(norm), False)


def transform_back(x: ArrayLike, n: int | None, axis: int, norm: str | None) -> Tensor:
    """Return `op_irfft` along an axis."""
    x, sizes = _numbers(x)
    return active().op_irfftn(x, *_half(sizes, n, axis, "n"), _norm(norm))


def transform_first_half(x: ArrayLike, n: int | None, axis: int, norm: str | None, inverse: bool) -> Tensor:
    """Return `op_rfft`, or `op_ihfft`, along an axis as one complex tensor."""
    norm = _OPPOSITE[_norm(norm)] if inverse else _norm(norm)
    y = active().op_rfftn(x, *_one(op_shape(x), n, axis), norm, False)
    return op_conj(y) if inverse else y


def _numbers(x: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return complex numbers, a tensor or a pair of its parts, and their shape."""
    if isinstance(x, (tuple, list)) and len(x) == 2:
        return tuple(x), op_shape(x[0])
    x = active().convert(x)
    if active().dtype_name(x) not in dtypes.COMPLEX:
        raise errors.ArgumentTypeError(
            f"x must be a pair of the real and the imaginary part, or a complex tensor, got {args.describe(x)}"
        )
    return x, op_shape(x)


def _conjugate(x: Any) -> Any:
    if not isinstance(x, tuple):
        return op_conj(x)
    re, im = active().together(*x)
    return re, op_negative(im)


def _one(sizes: Any, n: Any, axis: Any, name: str = "n") -> tuple[Any, tuple[int]]:
    """Return the length of a transform along one axis, `None` for as many entries as there are, and the axis."""
    if n is None and type(axis) is int and -len(sizes) <= axis < len(sizes):
        size = sizes[axis]
        if type(size) is int and size:
            return None, (axis % len(sizes),)
    _last(sizes, 1)
    axis = args.single_axis(axis, len(sizes))
    _refuse_empty(sizes, (axis,))
    return None if n is None else (args.count(n, name, 1),), (axis,)


def _half(sizes: Any, n: Any, axis: Any, name: str) -> tuple[Any, tuple[int]]:
    """Return the same for a transform of the first half."""
    lengths, axes = _one(sizes, n, axis, name)
    if lengths is None and sizes[axes[0]] == 1:
        raise errors.ArgumentError(f"{name} must be given for a transform of one entry")
    return lengths, axes


def _plan(sizes: Any, s: Any, axes: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the lengths of a transform along several axes, `None` for as many entries as there are, and the axes."""
    s = None if s is None else tuple(None if n is None or n == -1 else args.count(n, "n", 1) for n in s)
    if axes is None:
        axes = range(len(sizes)) if s is None else range(len(sizes) - len(s), len(sizes))
    axes = args.axes(tuple(axes), len(sizes), "axes")
    if s is not None and len(s) != len(axes):
        raise errors.ArgumentError(f"s has {len(s)} lengths for {len(axes)} axes")
    _refuse_empty(sizes, axes)
    return s if s is None or all(n is None for n in s) else tuple(
        sizes[axis] if n is None else n for n, axis in zip(s, axes, strict=True)
    ), axes


def _some(plan: Any) -> Any:
    if not plan[1]:
        raise errors.ArgumentError("axes must name at least one dimension")
    return plan


def _halves(sizes: Any, s: Any, axes: Any, name: str) -> Any:
    """Return the same for a transform of the first half, along the last of the axes."""
    given = None if s is None else [*s]
    lengths, axes = _some(_plan(sizes, s, axes))
    if given is None or given[-1] in (None, -1):
        _half(sizes, None, axes[-1], name)
        lengths = lengths and (*lengths[:-1], 2 * (sizes[axes[-1]] - 1))
    return lengths, axes


def _refuse_empty(sizes: Any, axes: Sequence[int]) -> None:
    if any(isinstance(sizes[axis], int) and sizes[axis] == 0 for axis in axes):
        raise errors.ArgumentError(f"x must not be empty in a dimension that is transformed, got the shape {sizes}")


def _last(sizes: Any, ndim: int) -> tuple[int, ...]:
    """Return the last `ndim` axes of a tensor of these sizes."""
    if len(sizes) < ndim:
        raise errors.ArgumentError(f"x must have at least {ndim} dimensions, not {len(sizes)}")
    axes = tuple(range(len(sizes) - ndim, len(sizes)))
    _refuse_empty(sizes, axes)
    return axes


def _frequencies(turns: Any, n: int, d: float, dtype: Any) -> Any:
    if not (d := args.number(d, "d")):
        raise errors.ArgumentError("d must not be 0")
    return op_multiply(op_cast(turns, dtype or config.floatx()), 1.0 / (n * d))


def _shift_by_halves(x: Any, axes: Axis, sign: int) -> Any:
    shape = op_shape(x)
    axes = args.axes(axes, len(shape), "axes")
    return op_roll(x, tuple(sign * (shape[k] // 2) for k in axes), axes)


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
