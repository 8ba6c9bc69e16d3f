"""Comparison, tests of values, logic and selection."""

from __future__ import annotations

import torch

from multiop import errors

from ..conversion import (
    FLOATING,
    are_floats,
    choose,
    convert,
    directly,
    first_among,
    in_comparable_dtype,
    is_exact_scalar,
    promote,
    reject_complex,
    together,
    truth,
    truth_beside,
    truths,
)

_NUMBERS = (float, int)


@directly(torch.eq, FLOATING, _NUMBERS)
def op_equal(x1, x2):
    return torch.eq(*promote(x1, x2))


@directly(torch.ne, FLOATING, _NUMBERS)
def op_not_equal(x1, x2):
    return torch.ne(*promote(x1, x2))


@directly(torch.lt, FLOATING, _NUMBERS)
def op_less(x1, x2):
    return in_comparable_dtype(torch.lt, *reject_complex(*promote(x1, x2)))


@directly(torch.le, FLOATING, _NUMBERS)
def op_less_equal(x1, x2):
    return in_comparable_dtype(torch.le, *reject_complex(*promote(x1, x2)))


@directly(torch.gt, FLOATING, _NUMBERS)
def op_greater(x1, x2):
    return in_comparable_dtype(torch.gt, *reject_complex(*promote(x1, x2)))


@directly(torch.ge, FLOATING, _NUMBERS)
def op_greater_equal(x1, x2):
    return in_comparable_dtype(torch.ge, *reject_complex(*promote(x1, x2)))


def op_isnan(x):
    return torch.isnan(convert(x))


def op_isinf(x):
    return torch.isinf(convert(x))


def op_isfinite(x):
    return torch.isfinite(convert(x))


@directly(torch.logical_and, {torch.bool})
def op_logical_and(x1, x2):
    return torch.logical_and(*truths(x1, x2))


@directly(torch.logical_or, {torch.bool})
def op_logical_or(x1, x2):
    return torch.logical_or(*truths(x1, x2))


@directly(torch.logical_xor, {torch.bool})
def op_logical_xor(x1, x2):
    return torch.logical_xor(*truths(x1, x2))


@directly(torch.logical_not, {torch.bool})
def op_logical_not(x):
    return torch.logical_not(truth(x))


def op_where(condition, x1, x2):
    if isinstance(condition, torch.Tensor) and condition.dtype is torch.bool:
        are_alike = type(x1) not in _NUMBERS and (is_exact_scalar if type(x2) in _NUMBERS else are_floats)(x1, x2)
        if are_alike or is_exact_scalar(x2, x1):
            is_filled = not are_alike and type(x2) is torch.Tensor and x2.shape == condition.shape
            # of a number, `where` makes a tensor, and one of 0 on the way back
            return x2.masked_fill(condition, x1) if is_filled else torch.where(condition, x1, x2)
    x1, x2, condition = together(x1, x2, condition)
    return choose(truth(truth_beside(first_among((x1, x2)), condition)), *promote(x1, x2))


def op_nonzero(x):
    x = convert(x)
    if not x.ndim:
        raise errors.ArgumentError("x must have at least one dimension")
    return tuple(torch.nonzero(truth(x)).int().unbind(1))


def op_isposinf(x):
    return torch.isposinf(*reject_complex(convert(x)))


def op_isneginf(x):
    return torch.isneginf(*reject_complex(convert(x)))


def op_isreal(x):
    return torch.isreal(convert(x))


def op_signbit(x):
    return torch.signbit(*reject_complex(convert(x)))


def op_isclose(x1, x2, rtol, atol, equal_nan):
    x1, x2 = promote(x1, x2)
    if x1.dtype not in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        wide = torch.float32 if x1.is_floating_point() else torch.float64  # it holds integers exactly
        x1, x2 = x1.type(wide), x2.type(wide)
    return torch.isclose(x1, x2, rtol, atol, equal_nan)
