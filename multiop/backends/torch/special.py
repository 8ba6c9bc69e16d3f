"""Special functions."""

from __future__ import annotations

import torch

from .conversion import floating, is_float
from .elementwise import real


def op_erf(x):
    if is_float(x):
        return torch.special.erf(x)
    return torch.special.erf(*real(floating(x)))


def op_erfc(x):
    return torch.special.erfc(*real(floating(x)))


def op_erfinv(x):
    return torch.special.erfinv(*real(floating(x)))


def op_i0(x):
    (x,) = real(floating(x))
    ends = (x == 0) | torch.isinf(x)  # torch.special.i0 is NaN at infinity; the first terms of the series stand for it
    return torch.where(ends, 1 + x * x / 4, torch.special.i0(torch.where(ends, 1, x)))
