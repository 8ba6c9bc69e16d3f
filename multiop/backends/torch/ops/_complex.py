"""Functions of complex numbers whose native derivatives lose digits, or the side of a branch cut.

Each part is computed separately: `1 - z` and `1j * z` lose the sign of a zero, which tells the side.
"""

from __future__ import annotations

import math

import torch


def times_i(z):
    """Return `1j * z`."""
    return torch.complex(-z.imag, z.real)


def times_minus_i(z):
    """Return `-1j * z`."""
    return torch.complex(z.imag, -z.real)


def shift_real(z, by):
    return torch.complex(z.real + by, z.imag)


def side(part):
    return torch.copysign(torch.ones_like(part), part).detach()


def with_slope_of(fn, z, line):
    """Return `fn(z)` with the derivatives of `line` wherever that is finite."""
    constant = line.detach()
    finite = torch.isfinite(constant)
    return torch.where(finite, fn(z.detach()) + (line - constant), fn(torch.where(finite, 0, z)))


def line_of_arccosh(z):
    far = z.detach().abs() > 1e20
    w = torch.where(far, 0, z)
    return torch.log(torch.where(far, z, w + torch.sqrt(shift_real(w, -1)) * torch.sqrt(shift_real(w, 1))))


def line_of_arcsin(z):
    return 1j * side(z.imag) * line_of_arccosh(z)


def line_of_arctanh(z):
    far = z.detach().abs() > 2
    near = torch.where(far, 0, z)
    return torch.where(
        far, torch.atanh(torch.reciprocal(torch.where(far, z, 4))), (torch.log1p(near) - torch.log1p(-near)) / 2
    )


def line_of_tanh(z):
    """Return tanh where its distance from 1 or -1 tells its slope; elsewhere, infinity."""
    far, sign = z.detach().real.abs() > 0.5, side(z.real)
    rest = torch.exp(-2 * sign * torch.where(far, z, 0))
    return torch.where(far, sign * (1 - 2 * rest / (1 + rest)), math.inf)


def power(z, w):
    zero, level, itself = z == 0, w == 0, (z == 0) & (w == 1)
    y = torch.pow(torch.where(zero & level | itself, 1, z), torch.where(zero, w.detach(), w))
    y = torch.where(zero & ~level & (w.real <= 0), complex(math.nan, math.nan), y)
    return torch.where(itself, z, y)


def power_by_multiplication(z, n):
    """Return `z ** n` by multiplication: the derivatives of torch.pow are NaN at 0."""
    if n < 0:
        return power_by_multiplication(torch.reciprocal(z), -n)
    y = torch.ones_like(z) if n == 0 else None
    while n:
        if n % 2:
            y = z if y is None else y * z
        n, z = n // 2, z * z if n > 1 else z
    return y


def arcsin(z):
    return with_slope_of(torch.asin, z, line_of_arcsin(z))


def arccos(z):
    return with_slope_of(torch.acos, z, -line_of_arcsin(z))


def arctan(z):
    return with_slope_of(torch.atan, z, times_minus_i(line_of_arctanh(times_i(z))))


def arcsinh(z):
    return with_slope_of(torch.asinh, z, times_minus_i(line_of_arcsin(times_i(z))))


def arccosh(z):
    return with_slope_of(torch.acosh, z, line_of_arccosh(z))


def arctanh(z):
    return with_slope_of(torch.atanh, z, line_of_arctanh(z))


def tan(z):
    return with_slope_of(torch.tan, z, times_minus_i(line_of_tanh(times_i(z))))


def tanh(z):
    return with_slope_of(torch.tanh, z, line_of_tanh(z))
