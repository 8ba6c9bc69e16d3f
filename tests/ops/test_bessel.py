"""Bessel functions, of whole orders below 0 and beside overflow, and integrals of gamma and beta, to many digits."""

import functools

import numpy as np
import pytest

mpmath = pytest.importorskip("mpmath")

import multiop

FUNCTIONS = {  # op -> the function, times the exponential of this multiple of its argument
    "op_jv": (mpmath.besselj, 0),
    "op_yv": (mpmath.bessely, 0),
    "op_iv": (mpmath.besseli, 0),
    "op_ive": (mpmath.besseli, -1),
    "op_kv": (mpmath.besselk, 0),
    "op_kve": (mpmath.besselk, 1),
}
ORDERS = [0.25, 1.0, 4.5, 15.5, -1.0, -8.0, -2.5, -6.25]  # numbers of every dtype
HIGH = [30.0, 100.0]  # of the modified functions
SIZES = [2.0**-66, 2.0**-23, 2.0**-8, 0.3125, 2.0, 7.5, 40.0]
SMALLEST = {"float32": 1e-30, "float64": 1e-290}  # what is below is 0 in part of the steps
pytestmark = [
    pytest.mark.tier("default"),
    *(pytest.mark.slow_on(multiop_backend=name) for name in ("jax", "tensorflow", "numpy")),
    *(pytest.mark.slow_on(name=name) for name in ("op_iv", "op_ive")),  # many digits of these take a while
]


@functools.cache
def wanted(function, order, size):
    """Return the value and both derivatives."""

    def f(v, x):
        return function(v, x, maxprec=10000)

    step = size * mpmath.mpf(10) ** -12
    with mpmath.workdps(30):
        slopes = mpmath.diff(lambda v: f(v, size), order), mpmath.diff(lambda x: f(order, x), size, h=step)
        return f(order, size), *slopes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_both_derivatives_are_those_of_many_digits(name, dtype, multiop_backend, multiop_x64):
    op, limit, digits = getattr(multiop, name), np.finfo(dtype).max, 1e-4 if dtype == "float32" else 1e-10
    orders = ORDERS if name in ("op_jv", "op_yv") else ORDERS + HIGH
    v, x = (y.ravel().astype(dtype) for y in np.meshgrid(orders, SIZES))
    gradient = multiop.grad(lambda v, x: multiop.op_sum(op(v, x)), (0, 1))
    tensors = [multiop.op_convert_to_tensor(y) for y in (v, x)]
    found = [multiop.op_convert_to_numpy(y).astype("float64") for y in (op(*tensors), *gradient(*tensors))]
    compared = 0
    for order, size, *ys in zip(map(float, v), map(float, x), *found, strict=True):
        function, multiple = FUNCTIONS[name]
        value, of_order, of_size = wanted(function, order, size)
        answers = [y * mpmath.exp(multiple * size) for y in (value, of_order, of_size + multiple * value)]
        scale = digits * max(abs(answers[0]), abs(answers[2]))
        for y, expected in zip(ys, answers, strict=True):
            at = f"at {order}, {size}: {ys} for {[*map(float, answers)]}"
            if abs(expected) > limit / 1e8:  # a derivative of it overflows
                assert not np.isnan(y) or abs(expected) > limit, at
            else:
                compared += 1
                assert abs(y - expected) <= digits * max(abs(expected), SMALLEST[dtype], scale), at
    assert compared > 100


@pytest.mark.parametrize("name", ["op_jv", "op_iv", "op_ive"])
def test_at_0_the_derivative_with_respect_to_a_positive_order_is_0(name, multiop_backend):
    v = multiop.op_convert_to_tensor(np.array([1e-5, 0.5, 1.0, 1.5], "float32"))
    found = multiop.grad(lambda v: multiop.op_sum(getattr(multiop, name)(v, 0.0)))(v)
    np.testing.assert_array_equal(multiop.op_convert_to_numpy(found), 0)


@pytest.mark.parametrize(
    ("name", "dtype", "orders", "sizes"),
    [
        ("op_kv", "float32", [0.5, 2.25, 7.0], [78.0, 83.67, 85.0]),
        ("op_kv", "float64", [0.5, 2.25, 7.0], [690.0, 703.0, 705.0]),
        ("op_iv", "float32", [60.0, 61.5], [12.0]),
        ("op_iv", "float64", [308.0, 310.0, 311.5], [24.0]),
    ],
)
def test_an_ordinary_value_is_not_0_where_its_terms_would_be(name, dtype, orders, sizes, multiop_backend, multiop_x64):
    op, function, info = getattr(multiop, name), FUNCTIONS[name][0], np.finfo(dtype)
    v, x = (y.ravel().astype(dtype) for y in np.meshgrid(orders, sizes))
    exact = [function(order, size) for order, size in zip(v.tolist(), x.tolist(), strict=True)]
    assert all(float(info.tiny) < y < 1e7 * float(info.tiny) for y in exact)
    for call in (op, multiop.jit(op)):
        found = multiop.op_convert_to_numpy(call(v, x)).astype(float)
        np.testing.assert_allclose(found, np.array(exact, float), rtol=256 * float(info.eps))
    exact = [mpmath.diff(lambda x, order=order: function(order, x), size) for order, size in zip(v, x, strict=True)]
    of_v, of_x = multiop.vjp(op, v, x)[1](np.ones_like(x))
    _, along = multiop.jvp(lambda x: op(v, x), (x,), (np.ones_like(x),))
    for found in (of_x, along):
        slope = multiop.op_convert_to_numpy(found).astype(float)
        np.testing.assert_allclose(slope, np.array(exact, float), rtol=256 * float(info.eps))
    if name == "op_iv":  # that of op_kv is subnormal
        exact = [mpmath.diff(lambda v, size=size: function(v, size), order) for order, size in zip(v, x, strict=True)]
        slope = multiop.op_convert_to_numpy(of_v).astype(float)
        np.testing.assert_allclose(slope, np.array(exact, float), rtol=256 * float(info.eps))


@pytest.mark.parametrize(
    ("name", "dtype", "order", "size"),
    [
        ("op_kv", "float32", 48.0, 5.5625),
        ("op_kv", "float64", 151.0, 1.0),
        ("op_jv", "float32", -3.75, 2.0**-32.75),
        ("op_kv", "float32", 2.0, 2.0**-63.125),
        ("op_kv", "float64", 2.0, 2.0**-511.125),
        ("op_yv", "float32", 2.0, 2.0**-63.125),
        ("op_yv", "float32", 8.0, 2.0**-13.5),
        ("op_yv", "float64", 2.5, 2.0**-408.5),
    ],
)
def test_a_value_close_to_the_largest_number_is_finite(name, dtype, order, size, multiop_backend, multiop_x64):
    v, x = np.array([order], dtype), np.array([size], dtype)
    exact, info = FUNCTIONS[name][0](order, float(x[0])), np.finfo(dtype)
    assert float(info.max) / 16 < abs(exact) < float(info.max) * 0.75
    found = multiop.op_convert_to_numpy(getattr(multiop, name)(v, x)).astype(float)
    np.testing.assert_allclose(found, float(exact), rtol=512 * float(info.eps))


@pytest.mark.parametrize(
    ("name", "order", "slope"),
    [("op_jv", -1.0, -0.5), ("op_jv", -8.0, 0.0), ("op_yv", -0.5, 2.0**40 / np.sqrt(2 * np.pi)), ("op_yv", -1.5, 0.0)],
)
def test_forward_mode_has_a_slope_where_that_of_the_other_function_overflows(name, order, slope, multiop_backend):
    v, x = np.array([order], "float32"), np.array([2.0**-80], "float32")
    _, along = multiop.jvp(lambda x: getattr(multiop, name)(v, x), (x,), (np.ones_like(x),))
    np.testing.assert_allclose(multiop.op_convert_to_numpy(along), slope, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("op_gammainc", [(12.5, 11.0), (40.0, 39.5), (300.0, 290.0), (5000.0, 4980.0)]),
        ("op_gammaincc", [(12.5, 14.0), (40.0, 40.5), (300.0, 310.0), (5000.0, 5020.0)]),
        ("op_betainc", [(11.0, 13.0, 0.5), (12.0, 14.0, 0.4375), (40.0, 50.0, 0.4375), (90.0, 80.0, 0.5)]),
        ("op_betainc", [(2.0, 2.0**-12, 0.9921875), (0.25, 2.0**-9, 0.875), (16.0, 2.0**-6, 0.9921875)]),
        ("op_yv", [(1.5, 3.0), (2.25, 5.0), (4.0, 7.5), (6.0, 11.0)]),
    ],
)
def test_integrals_are_right_to_the_last_digits(name, points, multiop_backend, multiop_x64):
    """The weights of NumPy and SciPy make each of these off by 10 to 30 units."""
    op, columns = getattr(multiop, name), [multiop.op_convert_to_tensor(np.array(x)) for x in zip(*points, strict=True)]
    with mpmath.workdps(40):
        wanted = [
            {
                "op_gammainc": lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
                "op_gammaincc": lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
                "op_betainc": lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
                "op_yv": mpmath.bessely,
            }[name](*map(mpmath.mpf, point))
            for point in points
        ]
    for found in (op(*columns), multiop.vjp(op, *columns)[0]):
        np.testing.assert_allclose(multiop.op_convert_to_numpy(found), np.array(wanted, float), rtol=2.0**-49)
