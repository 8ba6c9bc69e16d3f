"""Fourier transforms, and sequences of a signal."""

from __future__ import annotations

import torch

from multiop import errors

from ..conversion import convert, floating, halves_to_float32, promote_floating, reject_complex


def op_fft(x):
    return transform_complex(torch.fft.fft, 1, x)


def op_fft2(x):
    return transform_complex(torch.fft.fft2, 2, x)


def op_ifft2(x):
    return transform_complex(torch.fft.ifft2, 2, x)


def op_rfft(x, fft_length):
    (x,) = reject_complex(floating(x))
    y = transform_with_empty_batch(torch.fft.rfft, 1, halves_to_float32(x), fft_length)
    return y.real.to(x.dtype), y.imag.to(x.dtype)


def op_irfft(x, fft_length):
    x, dtype = to_complex(x)
    return transform_with_empty_batch(torch.fft.irfft, 1, x, fft_length).to(dtype)


def op_extract_sequences(x, sequence_length, sequence_stride):
    return convert(x).unfold(-1, sequence_length, sequence_stride)


def transform_complex(transform, dims, x):
    x, dtype = to_complex(x)
    y = transform_with_empty_batch(transform, dims, x)
    return y.real.to(dtype), y.imag.to(dtype)


def transform_with_empty_batch(transform, dims, x, *options):
    """Transform the last `dims` dimensions; an empty batch too, which MKL rejects."""
    if x.numel():
        return transform(x, *options)
    outer = x.shape[:-dims]
    one = transform(x.new_zeros([1] * len(outer) + list(x.shape[-dims:])), *options)
    return one.expand(*outer, *one.shape[-dims:])


def to_complex(x):
    """Return the complex tensor of its two parts, and their dtype."""
    re, im = reject_complex(*promote_floating(*x))
    if re.shape != im.shape:
        raise errors.ArgumentError(f"x: parts of shapes {tuple(re.shape)} and {tuple(im.shape)} are not of one tensor")
    return torch.complex(halves_to_float32(re), halves_to_float32(im)), re.dtype
