"""Fourier transforms, and sequences of a signal."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from multiop import errors
from multiop._values import windows

from ..conversion import convert, floating, halves_to_float32, jit_inline, promote_floating, reject_complex


def op_fftn(x, s, axes, norm):
    return _transform("fftn", to_numbers(x), s, axes, norm)


def op_ifftn(x, s, axes, norm):
    return _transform("ifftn", to_numbers(x), s, axes, norm)


def op_rfftn(x, s, axes, norm, is_pair):
    (x,) = reject_complex(floating(x))
    return _rfftn(x, s, axes, norm, is_pair)


def op_irfftn(x, s, axes, norm):
    return _irfftn(to_numbers(x), s, axes, norm)


def op_extract_sequences(x, sequence_length, sequence_stride):
    x = convert(x)
    number = (x.shape[-1] - sequence_length) // sequence_stride + 1
    return x[..., windows.positions(number, sequence_length, sequence_stride, 1).T]


def to_numbers(x):
    """Return a complex tensor as it is, and a pair of parts in one dtype."""
    if not isinstance(x, (tuple, list)):
        return convert(x)
    re, im = reject_complex(*promote_floating(*x))
    if re.shape != im.shape:
        raise errors.ArgumentError(f"x: parts of shapes {tuple(re.shape)} and {tuple(im.shape)} are not of one tensor")
    return re, im


def _complex(x):
    return jax.lax.complex(*map(halves_to_float32, x)) if isinstance(x, tuple) else x


def _parts(y, dtype):
    return jnp.real(y).astype(dtype), jnp.imag(y).astype(dtype)


@functools.partial(jit_inline, static_argnums=(0, 2, 3, 4))
def _transform(name, x, s, axes, norm):
    y = getattr(jnp.fft, name)(_complex(x), s, axes, norm) if axes else _complex(x)
    return _parts(y, x[0].dtype) if isinstance(x, tuple) else y


@functools.partial(jit_inline, static_argnums=(1, 2, 3, 4))
def _rfftn(x, s, axes, norm, is_pair):
    y = jnp.fft.rfftn(halves_to_float32(x), s, axes, norm)
    return _parts(y, x.dtype) if is_pair else y


@functools.partial(jit_inline, static_argnums=(1, 2, 3))
def _irfftn(x, s, axes, norm):
    y = jnp.fft.irfftn(_complex(x), s, axes, norm)
    return y.astype(x[0].dtype) if isinstance(x, tuple) else y
