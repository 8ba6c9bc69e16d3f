"""Fourier transforms, and sequences of a signal."""

from __future__ import annotations

import torch

from multiop import errors

from ..conversion import convert, floating, halves_to_float32, promote_floating, reject_complex


def op_fftn(x, s, axes, norm):
    return of_complex(torch.fft.fftn, x, s, axes, norm)


def op_ifftn(x, s, axes, norm):
    return of_complex(torch.fft.ifftn, x, s, axes, norm)


def op_rfftn(x, s, axes, norm, is_pair):
    (x,) = reject_complex(floating(x))
    y = transform_with_empty_batch(torch.fft.rfftn, halves_to_float32(x), s, axes, norm)
    return (y.real.type(x.dtype), y.imag.type(x.dtype)) if is_pair else y


def op_irfftn(x, s, axes, norm):
    x, dtype = to_complex(x)
    y = transform_with_empty_batch(torch.fft.irfftn, x, s, axes, norm)
    return y if dtype is None else y.type(dtype)


def op_extract_sequences(x, sequence_length, sequence_stride):
    return convert(x).unfold(-1, sequence_length, sequence_stride)


def of_complex(transform, x, s, axes, norm):
    x, dtype = to_complex(x)
    y = transform_with_empty_batch(transform, x, s, axes, norm) if axes else x
    return y if dtype is None else (y.real.type(dtype), y.imag.type(dtype))


def transform_with_empty_batch(transform, x, s, axes, norm):
    """Transform, with an empty batch too, which MKL rejects."""
    if x.numel():
        return transform(x, s, axes, norm)
    one = transform(x.new_zeros([size if k in axes else 1 for k, size in enumerate(x.shape)]), s, axes, norm)
    return one.expand([one.shape[k] if k in axes else size for k, size in enumerate(x.shape)])


def to_complex(x):
    """Return complex numbers, and the dtype of their parts if these are apart."""
    if not isinstance(x, (tuple, list)):
        return convert(x), None
    re, im = reject_complex(*promote_floating(*x))
    if re.shape != im.shape:
        raise errors.ArgumentError(f"x: parts of shapes {tuple(re.shape)} and {tuple(im.shape)} are not of one tensor")
    return torch.complex(halves_to_float32(re), halves_to_float32(im)), re.dtype
