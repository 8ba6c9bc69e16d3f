"""Fourier transforms, and sequences of a signal."""

from __future__ import annotations

import tensorflow as tf

from multiop import errors

from ..conversion import convert, floating, halves_to_float32, promote_floating, reject_complex
from .convolution import size


def op_fft(x):
    return transform_complex(tf.signal.fft, x)


def op_fft2(x):
    return transform_complex(tf.signal.fft2d, x)


def op_ifft2(x):
    return transform_complex(tf.signal.ifft2d, x)


def op_rfft(x, fft_length):
    (x,) = reject_complex(floating(x))
    n = size(x, -1) if fft_length is None else fft_length
    wide = resize_last(halves_to_float32(x), n)
    complex_ = tf.complex128 if wide.dtype is tf.float64 else tf.complex64
    return parts(tf.raw_ops.RFFT(input=wide, fft_length=[n], Tcomplex=complex_), x.dtype)


def op_irfft(x, fft_length):
    x, dtype = to_complex(x)
    n = 2 * (size(x, -1) - 1) if fft_length is None else fft_length
    return tf.cast(tf.signal.irfft(resize_last(x, n // 2 + 1), [n]), dtype)


def op_extract_sequences(x, sequence_length, sequence_stride):
    x = convert(x)
    starts = tf.range(0, size(x, -1) - sequence_length + 1, sequence_stride)
    return tf.gather(x, starts[:, None] + tf.range(sequence_length), axis=-1)


def transform_complex(transform, x):
    x, dtype = to_complex(x)
    y = transform(x)
    return parts(y, dtype)


def parts(y, dtype):
    """Return the two parts of a complex tensor in `dtype`."""
    wide = tf.float64 if y.dtype is tf.complex128 else tf.float32
    found = tf.raw_ops.Real(input=y, Tout=wide), tf.raw_ops.Imag(input=y, Tout=wide)
    return found if dtype is wide else tuple(tf.cast(part, dtype) for part in found)


def to_complex(x):
    """Return the complex tensor of its two parts, and their dtype."""
    re, im = reject_complex(*promote_floating(*x))
    if not re.shape.is_compatible_with(im.shape):
        raise errors.ArgumentError(f"x: parts of shapes {tuple(re.shape)} and {tuple(im.shape)} are not of one tensor")
    return tf.complex(halves_to_float32(re), halves_to_float32(im)), re.dtype


def resize_last(x, n):
    """Truncate or zero-pad the last dimension to `n` entries: the native gradient accepts no other size."""
    if x.shape[-1] == n:
        return x
    widths = [[0, 0]] * (x.shape.rank - 1) + [[0, tf.maximum(n - size(x, -1), 0)]]
    return tf.pad(x[..., :n], widths)
