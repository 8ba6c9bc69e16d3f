"""Complex tensors: PyTorch's own Fourier transforms, which check what they are given, and views of the parts."""

from __future__ import annotations

import torch
from torch.compiler import is_dynamo_compiling

_PARTS = (torch.float32, torch.float64)
_COMPLEX = (torch.complex64, torch.complex128)


def of_one_axis(transform):
    def kernel(x, n=None, axis=-1, norm=None, *, otherwise):
        if isinstance(x, torch.Tensor) and x.dtype in _COMPLEX and type(axis) is int and x.numel():
            try:
                return transform(x, n, axis, norm)
            except (RuntimeError, IndexError, TypeError):  # which the op explains
                pass
        return otherwise(x, n, axis, norm)

    return kernel


def of_two_axes(transform):
    def kernel(x, *, otherwise):
        if isinstance(x, torch.Tensor) and x.dtype in _COMPLEX and x.ndim > 1 and x.numel():
            return transform(x)
        return otherwise(x)

    return kernel


op_fft, op_ifft = of_one_axis(torch.fft.fft), of_one_axis(torch.fft.ifft)
op_fft2, op_ifft2 = of_two_axes(torch.fft.fft2), of_two_axes(torch.fft.ifft2)


def op_view_as_real(x, *, otherwise):
    is_complex = isinstance(x, torch.Tensor) and x.dtype in _COMPLEX and not is_dynamo_compiling()
    if is_complex and not x.is_conj() and not x.is_neg():
        return torch.view_as_real(x)
    return otherwise(x)


def op_view_as_complex(x, *, otherwise):
    """Leave entries that are not beside each other to the op, which copies them."""
    is_pair = isinstance(x, torch.Tensor) and x.dtype in _PARTS and x.ndim and x.shape[-1] == 2
    if is_pair and not is_dynamo_compiling():
        *outer, last = x.stride()
        for stride in outer:
            if stride & 1:
                return otherwise(x)
        if last == 1 and not x.storage_offset() & 1 and not x.is_neg():
            return torch.view_as_complex(x)
    return otherwise(x)
