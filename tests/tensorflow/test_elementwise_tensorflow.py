"""What TensorFlow's compilers make of special numbers: Grappler rewrites powers, XLA's extrema ignore NaN on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

import multiop

tf = pytest.importorskip("tensorflow")

INF, NAN = float("inf"), float("nan")
COMPILERS = {"graph": lambda f: tf.function(f), "xla": lambda f: tf.function(f, jit_compile=True)}
EXTREMA = {
    "op_max": lambda x, y: multiop.op_max(x),
    "op_amax": lambda x, y: multiop.op_amax(x, 1),
    "op_max initial": lambda x, y: multiop.op_max(x, 1, initial=0.0),
    "op_min": lambda x, y: multiop.op_min(x, 0, keepdims=True),
    "op_maximum": multiop.op_maximum,
    "op_minimum": multiop.op_minimum,
    "op_clip": lambda x, y: multiop.op_clip(x, y, 2.0),
    "op_norm": lambda x, y: multiop.op_norm(x, ord=1),
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_compiled_powers_of_infinity_and_zero(exponent, compiler):
    x = np.array([-INF, -1.0, -0.0, 0.0, 4.0], "float32")
    with np.errstate(all="ignore"):  # an array: NumPy takes a root for a scalar 0.5
        power, slope = (np.power(x, np.full(5, p, "float32")) for p in (exponent, exponent - 1))

    @COMPILERS[compiler]
    def both(x):
        f = lambda x: multiop.op_power(x, exponent)
        return f(x), multiop.grad(lambda x: multiop.op_sum(f(x)))(x)

    y, gradient = map(np.asarray, both(tf.constant(x)))
    np.testing.assert_array_equal(y, power)
    numbers = ~np.isnan(power)
    np.testing.assert_array_equal(np.signbit(y)[numbers], np.signbit(power)[numbers])
    if exponent > 0:
        np.testing.assert_allclose(gradient[1:], np.float32(exponent) * slope[1:], rtol=1e-6)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_compiled_differences_from_zero_of_unsigned_integers(dtype, compiler):
    x = np.array([0, 1, 5], dtype)

    @COMPILERS[compiler]
    def differences(x):
        return multiop.op_subtract(0, x), multiop.op_subtract(multiop.op_zeros_like(x), x), multiop.op_negative(x)

    for y in differences(tf.constant(x)):
        np.testing.assert_array_equal(y, np.negative(x), strict=True)


def test_a_compiled_power_keeps_the_sign_of_zero():
    y = tf.function(multiop.op_power)(tf.constant([-0.0, 0.0]), tf.constant([3.0, 3.0]))
    assert np.signbit(y).tolist() == [True, False]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", EXTREMA)
def test_compiled_extrema_beside_nan(name, compiler):
    x = np.array([[1, 2, NAN, 0], [NAN, 1, 2, 0], [4, 5, 6, -INF]], "float32")
    y = np.array([[0, NAN, 1, 2], [NAN, 3, 0, 1], [5, 4, 7, INF]], "float32")
    f = EXTREMA[name]
    expected = f(tf.constant(x), tf.constant(y))
    np.testing.assert_array_equal(COMPILERS[compiler](f)(tf.constant(x), tf.constant(y)), expected)
    assert np.isnan(expected).any()
