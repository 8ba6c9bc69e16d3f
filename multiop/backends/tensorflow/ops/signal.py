"""Fourier transforms, and sequences of a signal."""

from __future__ import annotations

import tensorflow as tf

from multiop import errors

from ..conversion import convert, floating, halves_to_float32, promote_floating, reject_complex
from .convolution import size


def op_fftn(x, s, axes, norm):
    return of_complex(FORWARD, x, s, axes, norm)


def op_ifftn(x, s, axes, norm):
    return of_complex(BACK, x, s, axes, norm)


def op_rfftn(x, s, axes, norm, is_pair):
    (x,) = reject_complex(floating(x))
    wide, last = to_last(halves_to_float32(x), axes[-1]), axes[-1]
    n = size(wide, -1) if s is None or s[-1] is None else s[-1]
    complex_ = tf.complex128 if wide.dtype is tf.float64 else tf.complex64
    y = tf.raw_ops.RFFT(input=resize_last(wide, n), fft_length=[n], Tcomplex=complex_)
    y = transform_along(FORWARD, to_last(scale(y, n, POWERS[norm]), last), s and s[:-1], axes[:-1], norm)
    return parts(y, x.dtype) if is_pair else y


def op_irfftn(x, s, axes, norm):
    x, dtype = to_complex(x)
    x = to_last(transform_along(BACK, x, s and s[:-1], axes[:-1], norm), axes[-1])
    n = 2 * (size(x, -1) - 1) if s is None or s[-1] is None else s[-1]
    y = tf.signal.irfft(resize_last(x, n // 2 + 1), [n])
    y = to_last(scale(y, n, -POWERS[norm]), axes[-1])
    return y if dtype is None else tf.cast(y, dtype)


def op_extract_sequences(x, sequence_length, sequence_stride):
    x = convert(x)
    starts = tf.range(0, size(x, -1) - sequence_length + 1, sequence_stride)
    return tf.gather(x, starts[:, None] + tf.range(sequence_length), axis=-1)


POWERS = {"backward": 0.0, "ortho": -0.5, "forward": -1.0}  # of the length, by which TensorFlow's transform is scaled
FORWARD = (1.0, (tf.signal.fft, tf.signal.fft2d, tf.signal.fft3d))
BACK = (-1.0, (tf.signal.ifft, tf.signal.ifft2d, tf.signal.ifft3d))


def of_complex(direction, x, s, axes, norm):
    x, dtype = to_complex(x)
    y = transform_along(direction, x, s, axes, norm)
    return y if dtype is None else parts(y, dtype)


def transform_along(direction, x, s, axes, norm):
    """Transform along some axes: in one call if they are the last ones, else along each."""
    sign, (one, *several) = direction
    lengths = dict(zip(axes, s or [None] * len(axes), strict=True))
    for axis, n in lengths.items():
        if n is not None:
            x = to_last(resize_last(to_last(x, axis), n), axis)
    sizes = [size(x, axis) for axis in axes] if norm != "backward" else []
    if 1 < len(axes) <= 3 and sorted(axes) == list(range(x.shape.rank - len(axes), x.shape.rank)):
        x = several[len(axes) - 2](x)
    else:
        for axis in axes:
            x = to_last(one(to_last(x, axis)), axis)
    for n in sizes:
        x = scale(x, n, sign * POWERS[norm])
    return x


def to_last(x, axis):
    """Exchange an axis with the last one."""
    last = x.shape.rank - 1
    return (
        x
        if axis == last
        else tf.transpose(x, [last if k == axis else axis if k == last else k for k in range(last + 1)])
    )


def scale(x, n, power):
    """Multiply by a power of a number of entries."""
    return x * tf.cast(tf.cast(n, tf.float64) ** power, x.dtype) if power else x


def parts(y, dtype):
    """Return the two parts of a complex tensor in `dtype`."""
    wide = tf.float64 if y.dtype is tf.complex128 else tf.float32
    found = tf.raw_ops.Real(input=y, Tout=wide), tf.raw_ops.Imag(input=y, Tout=wide)
    return found if dtype is wide else tuple(tf.cast(part, dtype) for part in found)


def to_complex(x):
    """Return complex numbers, and the dtype of their parts if these are apart."""
    if not isinstance(x, (tuple, list)):
        return convert(x), None
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
