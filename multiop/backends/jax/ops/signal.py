"""Fourier transforms, and sequences of a signal."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from multiop import errors
from multiop._values import windows

from ..conversion import convert, floating, halves_to_float32, jit_inline, promote_floating, reject_complex


def op_fft(x):
    return _transform_parts("fft", *promote_parts(x))


def op_fft2(x):
    return _transform_parts("fft2", *promote_parts(x))


def op_ifft2(x):
    return _transform_parts("ifft2", *promote_parts(x))


def op_rfft(x, fft_length):
    (x,) = reject_complex(floating(x))
    return _rfft(x, fft_length)


def op_irfft(x, fft_length):
    return _irfft(*promote_parts(x), fft_length)


def op_extract_sequences(x, sequence_length, sequence_stride):
    x = convert(x)
    number = (x.shape[-1] - sequence_length) // sequence_stride + 1
    return x[..., windows.positions(number, sequence_length, sequence_stride, 1).T]


def promote_parts(x):
    """Return the two parts of a complex tensor in one dtype."""
    re, im = reject_complex(*promote_floating(*x))
    if re.shape != im.shape:
        raise errors.ArgumentError(f"x: parts of shapes {tuple(re.shape)} and {tuple(im.shape)} are not of one tensor")
    return re, im


@functools.partial(jit_inline, static_argnums=0)
def _transform_parts(transform, re, im):
    y = getattr(jnp.fft, transform)(jax.lax.complex(halves_to_float32(re), halves_to_float32(im)))
    return jnp.real(y).astype(re.dtype), jnp.imag(y).astype(re.dtype)


@functools.partial(jit_inline, static_argnums=1)
def _rfft(x, fft_length):
    y = jnp.fft.rfft(halves_to_float32(x), fft_length)
    return jnp.real(y).astype(x.dtype), jnp.imag(y).astype(x.dtype)


@functools.partial(jit_inline, static_argnums=2)
def _irfft(re, im, fft_length):
    return jnp.fft.irfft(jax.lax.complex(halves_to_float32(re), halves_to_float32(im)), fft_length).astype(re.dtype)
