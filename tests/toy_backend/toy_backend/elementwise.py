"""Elementwise arithmetic and functions."""

import numpy as np

from multiop import errors
from multiop.backends import not_implemented

from .conversion import Tensor, convert, floating, op_real as op_real, promote, promote_floating, record
from .shapes import sum_to


def op_add(x1, x2):
    return binary(np.add, *promote(x1, x2), lambda u: u, lambda u: u)


def op_subtract(x1, x2):
    return binary(np.subtract, *not_bool(*promote(x1, x2)), lambda u: u, op_negative)


def op_multiply(x1, x2):
    x1, x2 = promote(x1, x2)
    return binary(np.multiply, x1, x2, lambda u: op_multiply(u, op_conj(x2)), lambda u: op_multiply(u, op_conj(x1)))


def op_divide(x1, x2):
    x1, x2 = promote_floating(x1, x2)

    def pull2(u):
        return op_negative(op_divide(op_multiply(u, op_conj(op_divide(x1, x2))), op_conj(x2)))

    return binary(np.divide, x1, x2, lambda u: op_divide(u, op_conj(x2)), pull2)


def op_negative(x):
    return record(np.negative, *((x, op_negative) for x in not_bool(convert(x))))


def op_sign(x):
    (x,) = not_bool(convert(x))

    def pull(u):
        if x.dtype.kind != "c":
            return op_multiply(u, 0)
        y = op_sign(x)
        return op_divide(op_subtract(u, op_multiply(y, op_real(op_multiply(u, op_conj(y))))), op_abs(x))

    return record(np.sign, (x, pull))


def op_abs(x):
    x = convert(x)
    return record(np.abs, (x, lambda u: op_multiply(u, op_sign(x))))


def op_square(x):
    x = convert(x)
    x = convert(x, "int32") if x.dtype == bool else x
    return op_multiply(x, x)


def op_sqrt(x):
    x = floating(x)
    return record(np.sqrt, (x, lambda u: op_divide(u, op_multiply(2, op_conj(op_sqrt(x))))))


def op_exp(x):
    x = floating(x)
    return record(np.exp, (x, lambda u: op_multiply(u, op_conj(op_exp(x)))))


def op_log(x):
    x = floating(x)
    return record(np.log, (x, lambda u: op_divide(u, op_conj(x))))


def op_maximum(x1, x2):
    return extreme_of_two(np.maximum, *promote(x1, x2))


def op_minimum(x1, x2):
    return extreme_of_two(np.minimum, *promote(x1, x2))


def op_sin(x):
    x = floating(x)
    return record(np.sin, (x, lambda u: op_multiply(u, op_conj(op_cos(x)))))


def op_cos(x):
    x = floating(x)
    return record(np.cos, (x, lambda u: op_negative(op_multiply(u, op_conj(op_sin(x))))))


def op_tanh(x):
    x = floating(x)
    return record(np.tanh, (x, lambda u: op_multiply(u, op_conj(op_subtract(1, op_square(op_tanh(x)))))))


def op_imag(x):
    x = convert(x)
    pull = (lambda u: op_multiply(u, 1j)) if x.dtype.kind == "c" else (lambda u: op_multiply(u, 0))
    return record(np.imag, (x, pull))


def op_conj(x):
    x = convert(x)
    return record(np.conj, (x, op_conj)) if x.dtype.kind == "c" else x


def binary(function, x1, x2, pull1, pull2):
    """Return `function` of two tensors that are broadcast against each other."""
    return record(function, (x1, lambda u: sum_to(pull1(u), x1.shape)), (x2, lambda u: sum_to(pull2(u), x2.shape)))


def extreme_of_two(function, x1, x2):
    x1, x2 = real(x1, x2)

    def pull(x, other):
        y, half = function(x.array, other.array), x.dtype.type(0.5)
        share = np.where(x.array == y, np.where(other.array == y, half, 2 * half), 0 * half)  # equal ones halve it
        share = Tensor(np.where(np.isnan(x.array), x.array, share))
        return lambda u: op_multiply(u, share)

    return binary(function, x1, x2, lambda u: pull(x1, x2)(u), lambda u: pull(x2, x1)(u))


def not_bool(*xs):
    if xs[0].dtype == bool:
        raise errors.DTypeError("bool is not accepted; use a logical op, or cast to an integer first")
    return xs


def real(*xs):
    if xs[0].dtype.kind == "c":
        raise errors.DTypeError(f"{xs[0].dtype} is not accepted: complex numbers have no order")
    return xs


Tensor.__add__ = Tensor.__radd__ = op_add
Tensor.__mul__ = Tensor.__rmul__ = op_multiply
Tensor.__sub__, Tensor.__rsub__ = op_subtract, lambda x2, x1: op_subtract(x1, x2)
Tensor.__truediv__, Tensor.__rtruediv__ = op_divide, lambda x2, x1: op_divide(x1, x2)
Tensor.__neg__, Tensor.__abs__ = op_negative, op_abs
Tensor.__pow__ = Tensor.__rpow__ = not_implemented("the toy backend has no op_power")
