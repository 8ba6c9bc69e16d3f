"""Fourier transforms, and sequences of a signal."""

from __future__ import annotations

import numpy as np

from multiop import errors

from .._record import ops
from ..conversion import complex_of, convert, floating, promote_floating, reject_complex


def transform_parts(transform):
    """Return the op that computes a transform of the real and imaginary parts of numbers."""

    def op(x):
        z, dtype = join_parts(x)
        return parts(transform(z), dtype)

    return op


op_fft = transform_parts(np.fft.fft)
op_fft2 = transform_parts(np.fft.fft2)
op_ifft2 = transform_parts(np.fft.ifft2)


def op_rfft(x, fft_length):
    (x,) = reject_complex(floating(x))
    return parts(np.fft.rfft(x.astype(np.result_type(x.dtype, np.float32)), fft_length), x.dtype)


def op_irfft(x, fft_length):
    z, dtype = join_parts(x)
    return np.fft.irfft(z, fft_length).astype(dtype)


def op_extract_sequences(x, sequence_length, sequence_stride):
    x = convert(x)
    starts = np.arange(0, x.shape[-1] - sequence_length + 1, sequence_stride)
    return ops.take(x, starts[:, None] + np.arange(sequence_length), -1)


def join_parts(x):
    """Return the complex tensor of its two parts, and their dtype."""
    re, im = reject_complex(*promote_floating(*x))
    if re.shape != im.shape:
        raise errors.ArgumentError(f"x: parts of shapes {re.shape} and {im.shape} are not of one tensor")
    return complex_of(re, im), re.dtype


def parts(z, dtype):
    return z.real.astype(dtype), z.imag.astype(dtype)
