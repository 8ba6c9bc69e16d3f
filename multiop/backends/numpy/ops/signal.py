"""Fourier transforms, and sequences of a signal."""

from __future__ import annotations

import numpy as np

from multiop import errors

from .._fourier import back, back_to_reals, forward, forward_of_reals
from .._record import ops
from ..conversion import complex_of, convert, floating, promote_floating, reject_complex


def op_fftn(x, s, axes, norm):
    return of_complex(forward(s, axes, norm), x)


def op_ifftn(x, s, axes, norm):
    return of_complex(back(s, axes, norm), x)


def op_rfftn(x, s, axes, norm, is_pair):
    (x,) = reject_complex(floating(x))
    z = forward_of_reals(s, axes, norm)(x.astype(np.result_type(x.dtype, np.float32), copy=False))
    return parts(z, x.dtype) if is_pair else z


def op_irfftn(x, s, axes, norm):
    z, dtype = to_complex(x)
    return back_to_reals(s, axes, norm)(z).astype(dtype or z.real.dtype, copy=False)


def op_extract_sequences(x, sequence_length, sequence_stride):
    x = convert(x)
    starts = np.arange(0, x.shape[-1] - sequence_length + 1, sequence_stride)
    return ops.take(x, starts[:, None] + np.arange(sequence_length), -1)


def of_complex(transform, x):
    z, dtype = to_complex(x)
    return transform(z) if dtype is None else parts(transform(z), dtype)


def to_complex(x):
    """Return complex numbers, and the dtype of their parts if these are apart."""
    if not isinstance(x, (tuple, list)):
        return convert(x), None
    re, im = reject_complex(*promote_floating(*x))
    if re.shape != im.shape:
        raise errors.ArgumentError(f"x: parts of shapes {re.shape} and {im.shape} are not of one tensor")
    return complex_of(re, im), re.dtype


def parts(z, dtype):
    return z.real.astype(dtype), z.imag.astype(dtype)
