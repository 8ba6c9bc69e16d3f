"""Fourier transforms, and the pieces of a signal."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from multiop import _windows, errors

from .conversion import convert, floating, promote_floating
from .elementwise import real


def op_fft(x):
    return transformed(jnp.fft.fft, x)


def op_fft2(x):
    return transformed(jnp.fft.fft2, x)


def op_ifft2(x):
    return transformed(jnp.fft.ifft2, x)


def op_rfft(x, fft_length):
    (x,) = real(floating(x))
    y = jnp.fft.rfft(widest(x), fft_length)
    return jnp.real(y).astype(x.dtype), jnp.imag(y).astype(x.dtype)


def op_irfft(x, fft_length):
    x, dtype = joined(x)
    return jnp.fft.irfft(x, fft_length).astype(dtype)


def op_extract_sequences(x, sequence_length, sequence_stride):
    x = convert(x)
    number = (x.shape[-1] - sequence_length) // sequence_stride + 1
    return x[..., _windows.positions(number, sequence_length, sequence_stride, 1).T]


def transformed(transform, x):
    x, dtype = joined(x)
    y = transform(x)
    return jnp.real(y).astype(dtype), jnp.imag(y).astype(dtype)


def joined(x):
    """Return the complex tensor of its two parts, and their dtype."""
    re, im = real(*promote_floating(*x))
    if re.shape != im.shape:
        raise errors.ArgumentError(f"x: parts of shapes {tuple(re.shape)} and {tuple(im.shape)} are not of one tensor")
    return jax.lax.complex(widest(re), widest(im)), re.dtype


def widest(x):
    """Return halves, which have no transform, in float32."""
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x
