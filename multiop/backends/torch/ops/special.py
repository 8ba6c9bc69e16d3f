"""Special functions."""

from __future__ import annotations

import math

import torch

from ..conversion import FLOATING, directly, floating, in_float32, reject_complex


@directly(torch.special.erf, FLOATING - {torch.bfloat16})
def op_erf(x):
    # in bfloat16, torch.special.erf of small numbers in a long array is 0
    return in_float32(torch.special.erf, *reject_complex(floating(x)))


@directly(torch.special.erfc, FLOATING)
def op_erfc(x):
    return torch.special.erfc(*reject_complex(floating(x)))


@directly(torch.special.erfinv, FLOATING)
def op_erfinv(x):
    return torch.special.erfinv(*reject_complex(floating(x)))


def op_i0(x):
    (x,) = reject_complex(floating(x))
    return in_float32(i0, x)


def i0(x):
    # torch.special.i0 overflows before its result does: use the asymptotic series for large x
    size = torch.abs(x)
    far = size > 80
    start = torch.where(far, torch.clamp(size, max=1000), 80)
    inverse, level = torch.reciprocal(start), start - 0.5 * torch.log(2 * math.pi * start)
    beyond, series = level > math.log(torch.finfo(x.dtype).max), 0
    for coefficient in I0:
        series = series * inverse + coefficient
    far_out = torch.exp(torch.where(beyond, 0, level)) * series
    near = torch.special.i0(torch.where((x == 0) | far, 1, x))
    # a square has the right derivatives at 0, where those of torch.special.i0 are wrong, and goes to infinity
    ends = 1 + torch.where(beyond, math.inf, 0.25).type(x.dtype) * torch.where((x == 0) | beyond, x * x, 1)
    return torch.where((x == 0) | beyond, ends, torch.where(far, far_out, near))


# the series of i0(x) exp(-x) (2 pi x) ** .5 in 1 / x, highest power first
I0 = [math.prod((2 * j - 1) ** 2 / (8 * j) for j in range(1, k + 1)) for k in range(11, -1, -1)]
