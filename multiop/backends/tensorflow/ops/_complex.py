"""Functions of complex numbers on NumPy's side of each branch cut, with derivatives that hold at every magnitude.

Each part is computed separately: `1 - z` and `1j * z` lose the sign of a zero, which tells the side.
"""

from __future__ import annotations

import math

import tensorflow as tf

from ..conversion import choose, is_tracked
from .logical import op_isfinite


def parts(z):
    return tf.math.real(z), tf.math.imag(z)


def times_i(z):
    """Return `1j * z`."""
    x, y = parts(z)
    return tf.complex(-y, x)


def times_minus_i(z):
    """Return `-1j * z`."""
    x, y = parts(z)
    return tf.complex(y, -x)


def shift_real(z, by):
    x, y = parts(z)
    return tf.complex(x + by, y)


def side(part):
    """Return the sign of a real number, including that of a zero."""
    part = tf.stop_gradient(part)
    one = tf.ones_like(part)
    negative = choose(tf.equal(part, 0), tf.math.reciprocal(part), part) < 0
    return choose(negative, -one, one)


def with_slope_of(fn, z, line):
    """Return `fn(z)` with the derivatives of `line` wherever that is finite."""
    if not is_tracked():
        return fn(z)
    constant = tf.stop_gradient(line(z))
    finite = op_isfinite(constant)
    here, other = choose(finite, z, tf.zeros_like(z)), choose(finite, tf.zeros_like(z), z)
    return choose(finite, fn(tf.stop_gradient(z)) + (line(here) - constant), fn(other))


def sqrt(z):
    y = tf.raw_ops.Sqrt(x=z)
    real, imaginary = parts(y)
    one = tf.ones_like(real)
    other = tf.not_equal(imaginary, 0) & tf.not_equal(side(imaginary), side(tf.math.imag(z)))
    sign = choose(other, -one, one)  # TensorFlow confuses -0.0 and 0.0 in scalars
    return tf.complex(real * sign + 0.0, imaginary * sign)


def log(z):
    """Return the logarithm; TensorFlow's squares `z`, which overflows or underflows."""
    x, y = parts(z)
    larger, smaller = tf.maximum(tf.abs(x), tf.abs(y)), tf.minimum(tf.abs(x), tf.abs(y))
    step = 2.0**80 if z.dtype is tf.complex64 else 2.0**600
    one = tf.ones_like(larger)
    scale = tf.stop_gradient(choose(larger > step**0.5, one / step, choose(larger < step**-0.5, one * step, one)))
    low, angle = parts(tf.raw_ops.Log(x=tf.complex(x * scale, y * scale)))
    size, near = low - tf.math.log(scale), (larger > 0.5) & (larger < 2)
    exact = tf.math.log1p(choose(near, (larger - 1) * (larger + 1) + smaller * smaller, tf.zeros_like(larger))) / 2
    correction = tf.stop_gradient(choose(near, exact - size, tf.zeros_like(size)))
    return tf.complex(size + correction, angle)


def log1p(z):
    """Return the logarithm of `1 + z`; TensorFlow's has few correct digits near 0, and NaN at -1."""
    x, y = parts(z)
    larger = tf.stop_gradient(tf.maximum(tf.abs(x), tf.abs(y)))
    near, far, left = larger < 0.25, larger > 1e10, x < -0.5
    size, angle = parts(tf.raw_ops.Log1p(x=choose(far | left, tf.zeros_like(z), z)))
    exact = tf.math.log1p(choose(near, x * (2 + x) + y * y, tf.zeros_like(x))) / 2
    correction = tf.stop_gradient(choose(near, exact - size, tf.zeros_like(size)))
    whole = log(choose(far, z, choose(left, shift_real(z, 1), tf.ones_like(z))))
    return choose(far | left, whole, tf.complex(size + correction, angle))


def expm1(z):
    """Return `exp(z) - 1`; TensorFlow's is NaN where the real part is infinite."""
    high, zero = tf.math.real(z) > 80, tf.zeros_like(z)  # then 1 is below the digits of exp(z)
    return choose(high, tf.exp(choose(high, z, zero)), tf.raw_ops.Expm1(x=choose(high, zero, z)))


def rsqrt(z):
    return tf.math.reciprocal(sqrt(z))


def line_of_arccosh(z):
    far = tf.stop_gradient(tf.abs(z)) > 1e20
    w = choose(far, tf.zeros_like(z), z)
    return log(choose(far, z, w + sqrt(shift_real(w, -1)) * sqrt(shift_real(w, 1))))


def line_of_arcsin(z):
    return tf.complex(tf.zeros_like(tf.math.real(z)), side(tf.math.imag(z))) * line_of_arccosh(z)


def line_of_arctanh(z):
    far = tf.stop_gradient(tf.abs(z)) > 2
    near = choose(far, tf.zeros_like(z), z)
    inverse = tf.math.reciprocal(choose(far, z, tf.constant(4, z.dtype)))
    return choose(far, tf.atanh(inverse), (tf.math.log1p(near) - tf.math.log1p(-near)) / 2)


def line_of_tanh(z):
    """Return tanh where its distance from 1 or -1 tells its slope; elsewhere, infinity."""
    far, sign = tf.abs(tf.stop_gradient(tf.math.real(z))) > 0.5, tf.cast(side(tf.math.real(z)), z.dtype)
    rest = tf.exp(-2 * sign * choose(far, z, tf.zeros_like(z)))
    return choose(far, sign * (1 - 2 * rest / (1 + rest)), tf.constant(math.inf, z.dtype))


def power(z, w):
    zero, level, one = tf.equal(z, 0), tf.equal(w, 0), tf.ones_like(z)
    itself = zero & tf.equal(w, 1)
    y = tf.pow(choose(zero & level | itself, one, z), choose(zero, tf.stop_gradient(w), w))
    missing = tf.constant(complex(math.nan, math.nan), z.dtype)
    y = choose(zero & ~level & (tf.math.real(w) <= 0), missing, y)
    return choose(itself, z, y)


def arcsin(z):
    return with_slope_of(tf.asin, z, line_of_arcsin)


def arccos(z):
    return with_slope_of(tf.acos, z, lambda z: -line_of_arcsin(z))


def arctan(z):
    return with_slope_of(tf.atan, z, lambda z: times_minus_i(line_of_arctanh(times_i(z))))


def arcsinh(z):
    return with_slope_of(tf.asinh, z, lambda z: times_minus_i(line_of_arcsin(times_i(z))))


def arccosh(z):
    return with_slope_of(tf.acosh, z, line_of_arccosh)


def arctanh(z):
    return with_slope_of(tf.atanh, z, line_of_arctanh)


def tan(z):
    return with_slope_of(tf.tan, z, lambda z: times_minus_i(line_of_tanh(times_i(z))))


def tanh(z):
    return with_slope_of(tf.tanh, z, line_of_tanh)
