"""The answers that are pinned where frameworks differ, each with the number or the name of its divergence."""

import numpy as np
import pytest
import scipy.special

import multiop as mo
from multiop import errors

NAN, INF = np.nan, np.inf


def gradient(f, *xs):
    """Return the gradients of the sum of `f`, as lists."""
    xs = [mo.op_convert_to_tensor(np.asarray(x, np.float32)) for x in xs]
    grads = mo.grad(lambda *xs: mo.op_sum(f(*xs)), argnums=tuple(range(len(xs))))(*xs)
    return [mo.op_convert_to_numpy(g).tolist() for g in grads]


def second(f, x):
    """Return the diagonal of the second derivative of an elementwise `f`."""
    x = mo.op_convert_to_tensor(np.asarray(x, np.float32))
    first = mo.grad(lambda x: mo.op_sum(f(x)))
    return mo.op_convert_to_numpy(mo.grad(lambda x: mo.op_sum(first(x)))(x)).tolist()


def value(x):
    return mo.op_convert_to_numpy(x).tolist()


def test_1_abs(backend):
    assert gradient(mo.op_abs, [0.0, -0.0, 2.0, -2.0]) == [[0.0, 0.0, 1.0, -1.0]]
    assert second(mo.op_abs, [0.0, 2.0]) == [0.0, 0.0]


def test_4_clip(backend):
    assert gradient(lambda x: mo.op_clip(x, 0.0, 1.0), [0.0, 1.0, 0.5, -1.0, 2.0]) == [[1.0, 1.0, 1.0, 0.0, 0.0]]
    assert gradient(mo.op_clip, [0.0, 1.0], [0.0, 0.0], [1.0, 1.0])[0] == [1.0, 1.0]


def test_5_maximum_and_minimum_of_ties(backend):
    for op in (mo.op_maximum, mo.op_minimum):
        assert gradient(op, [1.0, 0.0, INF], [1.0, -0.0, INF]) == [[0.5] * 3, [0.5] * 3]


def test_6_maximum_and_minimum_of_nan(backend):
    for op in (mo.op_maximum, mo.op_minimum):
        np.testing.assert_array_equal(value(op([NAN, 1.0], [1.0, NAN])), [NAN, NAN])


def test_7_max_over_an_axis(backend):
    assert gradient(lambda x: mo.op_max(x, axis=-1), [[2.0, 2.0, 1.0], [3.0, 4.0, 4.0]]) == [
        [[0.5, 0.5, 0], [0, 0.5, 0.5]]
    ]
    assert gradient(lambda x: mo.op_min(x), [2.0, 1.0, 1.0]) == [[0.0, 0.5, 0.5]]


def test_11_and_12_std_and_var(backend):
    assert gradient(mo.op_std, [3.0, 3.0, 3.0]) == [[0.0, 0.0, 0.0]]
    assert second(lambda x: mo.op_std(x), [3.0, 3.0]) == [0.0, 0.0]
    assert gradient(mo.op_std, [0.1] * 16) == [[0.0] * 16]  # whose sum is rounded, and whose mean with it
    assert second(lambda x: mo.op_std(x), [0.1] * 16) == [0.0] * 16
    assert value(mo.op_var([1.0, 2.0, 4.0])) == pytest.approx(14 / 9, rel=1e-6)
    assert value(mo.op_var([3.0])) == 0.0
    assert value(mo.op_std([3.0])) == 0.0


@pytest.mark.parametrize("axis", [0, 1])
def test_11_std_of_equal_numbers_whose_mean_is_another_one(backend, axis):
    rows = np.repeat(np.random.default_rng(0).normal(size=(40, 1)), 7, 1).astype(np.float32)
    x = mo.op_convert_to_tensor(rows if axis else rows.T)
    tangents = mo.random.normal(x.shape, seed=1)
    for run in (lambda f: f, mo.jit):
        assert not value(mo.op_any(run(mo.grad(lambda x: mo.op_sum(mo.op_std(x, axis))))(x)))
        assert not value(mo.op_any(run(lambda x: mo.jvp(lambda x: mo.op_std(x, axis), (x,), (tangents,))[1])(x)))


def test_13_and_14_hypot(backend):
    assert gradient(mo.op_hypot, [0.0], [0.0]) == [[0.0], [0.0]]
    for x1, x2 in ((1.0, 1.0), (-1.0, 1.0), (3.0, 3.0)):
        g1, g2 = gradient(mo.op_hypot, [x1], [x2])
        assert (g1[0], g2[0]) == pytest.approx((x1 / np.hypot(x1, x2), x2 / np.hypot(x1, x2)), rel=1e-6)
        expected = x2**2 / np.hypot(x1, x2) ** 3
        assert second(lambda x, x2=x2: mo.op_hypot(x, x2), [x1])[0] == pytest.approx(expected, rel=1e-5)


def test_16_and_17_power(backend):
    assert gradient(mo.op_power, [0.0], [0.0]) == [[0.0], [0.0]]
    (dx,), (dy,) = gradient(mo.op_power, [-2.0], [2.0])
    assert dx == -4.0
    assert np.isnan(dy)
    assert second(lambda x: mo.op_power(x, 0), [0.0, 3.0]) == [0.0, 0.0]
    assert second(lambda x: mo.op_power(x, 1), [0.0, 3.0]) == [0.0, 0.0]
    assert second(lambda x: mo.op_power(x, mo.op_ones_like(x)), [0.0, 3.0]) == [0.0, 0.0]
    assert second(lambda x: mo.op_power(x, 2), [0.0, -3.0]) == [2.0, 2.0]


def test_power_has_its_mixed_derivative_at_exponent_0(backend):
    def slope(x, y):
        return mo.grad(lambda x: mo.op_sum(mo.op_power(x, y)))(x)

    x, y = mo.op_convert_to_tensor([2.0, 4.0]), mo.op_convert_to_tensor([0.0, 0.0])
    mixed = mo.grad(lambda y: mo.op_sum(slope(x, y)))(y)
    assert value(mixed) == pytest.approx([0.5, 0.25], rel=1e-6)


def test_19_where_passes_nan_of_the_branch_not_taken(backend):
    np.testing.assert_array_equal(gradient(lambda x: mo.op_where(x > 0, mo.op_log(x), 0.0), [0.0, 1.0]), [[NAN, 1.0]])
    safe = gradient(lambda x: mo.op_where(x > 0, mo.op_log(mo.op_where(x > 0, x, 1.0)), 0.0), [0.0, 1.0])
    assert safe == [[0.0, 1.0]]


def test_29_integers_divided_by_0(backend):
    for op in (mo.op_floor_divide, mo.op_mod):
        with pytest.raises(errors.ArgumentError, match="divided by 0"):
            op(5, 0)


def test_40_and_41_casting_floats_truncates(backend):
    assert value(mo.op_cast([1.9, -1.9, 0.0], "int32")) == [1, -1, 0]
    assert value(mo.op_cast([NAN, 0.0, -0.5], "bool")) == [True, False, True]


def test_42_sums_of_small_integers(backend):
    assert value(mo.op_sum(mo.op_convert_to_tensor([100, 100], "int8"))) == 200
    assert mo.op_dtype(mo.op_sum(mo.op_convert_to_tensor([100, 100], "int8"))) == "int32"
    assert mo.op_dtype(mo.op_sum(mo.op_convert_to_tensor([200, 100], "uint8"))) == "uint32"
    assert value(mo.op_prod(mo.op_convert_to_tensor([100, 100], "int8"))) == 10000


def test_43_means_of_integers(backend):
    assert value(mo.op_mean([1, 2])) == 1.5
    assert mo.op_dtype(mo.op_mean([1, 2])) == "float32"


def test_44_and_45_promotion(backend):
    assert mo.op_dtype(mo.op_divide([1], [2])) == "float32"
    assert mo.op_dtype(mo.op_add([1], 1.5)) == "float32"
    assert mo.op_dtype(mo.op_add(mo.op_ones(1, "float16"), mo.op_ones(1, "bfloat16"))) == "float32"


def test_46_64_bit_input(backend, host_arrays):
    with pytest.warns(errors.PrecisionWarning):
        assert mo.op_dtype(mo.op_add(np.float64(1), 1)) == "float32"


def test_47_rounding_has_gradient_zero(backend):
    for op in (mo.op_round, mo.op_floor, mo.op_ceil, mo.op_trunc, mo.op_sign):
        assert gradient(op, [1.4, -1.6, 0.0]) == [[0.0, 0.0, 0.0]]
    assert gradient(mo.op_floor_divide, [7.0], [2.0]) == [[0.0], [0.0]]


def test_63_means_of_16_bit_floats(backend):
    for dtype in ("float16", "bfloat16"):
        assert value(mo.op_mean(mo.op_ones(70000, dtype))) == 1.0
    assert value(mo.op_sum(mo.op_ones(4096, "float16"))) == 4096.0
    assert value(mo.op_sum(mo.op_ones(1024, "bfloat16"))) == 1024.0


def test_relu(backend):
    assert gradient(mo.op_relu, [0.0, -1.0, 2.0]) == [[0.0, 0.0, 1.0]]


def test_sqrt(backend):
    assert gradient(mo.op_sqrt, [0.0]) == [[INF]]


def test_rounding_goes_to_even(backend):
    assert value(mo.op_round([0.5, 1.5, 2.5, -0.5, -1.5])) == [0.0, 2.0, 2.0, -0.0, -2.0]
    assert value(mo.op_round([15, 25, -15, 4], -1)) == [20, 20, -20, 0]


def test_signs_of_integer_division(backend):
    x1, x2 = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    assert value(mo.op_floor_divide(x1, x2)) == (x1 // x2).tolist() == [3, -4, -4, 3]
    assert value(mo.op_mod(x1, x2)) == (x1 % x2).tolist() == [1, 1, -1, -1]
    assert gradient(mo.op_mod, [7.0, -7.0], [2.0, 2.0]) == [[1.0, 1.0], [-3.0, 4.0]]


def test_float_floor_division_is_exact(backend):
    rng = np.random.default_rng(0)
    x1 = np.concatenate([rng.normal(size=500) * 10, np.arange(-20, 20) / 10]).astype(np.float32)
    x2 = np.concatenate([rng.normal(size=500), np.full(40, 0.1)]).astype(np.float32)
    np.testing.assert_array_equal(value(mo.op_floor_divide(x1, x2)), np.floor_divide(x1, x2))


def test_prod_with_zeros(backend):
    assert gradient(mo.op_prod, [2.0, 0.0, 3.0]) == [[0.0, 6.0, 0.0]]
    assert gradient(mo.op_prod, [0.0, 0.0, 3.0]) == [[0.0, 0.0, 0.0]]
    x = mo.op_convert_to_tensor([0.0, 0.0, 3.0, 1.0])
    hessian = mo.op_convert_to_numpy(mo.hessian(mo.op_prod)(x))
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 3.0
    np.testing.assert_array_equal(hessian, expected)


def test_int32_wraps(backend):
    assert value(mo.op_add(np.array([2**31 - 1], np.int32), 1)) == [-(2**31)]


def test_logsumexp_at_infinities(backend):
    for x in ([-INF, -INF], [INF, 0.0], [INF, INF], [-INF, 1.0], [1000.0, 1000.0]):
        expected = scipy.special.logsumexp(np.array(x))
        np.testing.assert_allclose(value(mo.op_logsumexp(x)), expected, rtol=1e-6)
    assert gradient(mo.op_logsumexp, [-INF, -INF]) == [[0.0, 0.0]]
    assert gradient(mo.op_logsumexp, [-INF, 1.0]) == [[0.0, 1.0]]
    assert gradient(mo.op_logsumexp, [[-INF, -INF], [0.0, 0.0]]) == [[[0.0, 0.0], [0.5, 0.5]]]


def test_softplus_and_sigmoid_at_extremes(backend):
    assert value(mo.op_softplus([-INF, -1000.0, 1000.0, INF])) == [0.0, 0.0, 1000.0, INF]
    assert gradient(mo.op_softplus, [-INF, -1000.0, 0.0, 1000.0, INF]) == [[0.0, 0.0, 0.5, 1.0, 1.0]]
    assert second(mo.op_softplus, [-INF, -1000.0, 0.0, 1000.0, INF]) == [0.0, 0.0, 0.25, 0.0, 0.0]
    assert value(mo.op_sigmoid([-INF, -1000.0, 0.0, 1000.0, INF])) == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert gradient(mo.op_sigmoid, [-INF, -1000.0, 0.0, 1000.0, INF]) == [[0.0, 0.0, 0.25, 0.0, 0.0]]


def test_arctan2_at_the_origin(backend):
    assert gradient(mo.op_arctan2, [0.0, -0.0], [0.0, -0.0]) == [[0.0, 0.0], [0.0, 0.0]]
    np.testing.assert_allclose(
        value(mo.op_arctan2([0.0, 0.0, -0.0], [0.0, -0.0, -0.0])), [0.0, np.pi, -np.pi], rtol=1e-6
    )


def test_arctan2_of_infinite_operands_is_flat(backend):
    ends = np.array([(a, b) for a in (INF, -INF, 2.0) for b in (INF, -INF, 2.0)][:-1], np.float32)

    def slopes(x):
        return mo.grad(lambda x: mo.op_arctan2(x[0], x[1]))(x)

    def tangent(x):
        return mo.jvp(lambda x: mo.op_arctan2(x[0], x[1]), (x,), (mo.op_ones_like(x),))[1]

    def curvature(x):
        return mo.grad(lambda x: mo.op_sum(slopes(x)))(x)

    for f in (slopes, tangent, curvature):
        assert not np.any(mo.op_convert_to_numpy(mo.vmap(f)(mo.op_convert_to_tensor(ends))))
    assert not np.any(mo.op_convert_to_numpy(mo.jit(mo.vmap(slopes))(mo.op_convert_to_tensor(ends))))
    assert gradient(mo.op_arctan2, *ends.T) == [[0.0] * 8] * 2  # PyTorch has a kernel of its own for it


def test_slopes_of_arctan2_beside_nan_are_nan(backend):
    others = np.array([INF, -INF, 0.0, 2.0, NAN], np.float32)
    nan = np.full_like(others, NAN)

    def along(*xs):
        return mo.jvp(mo.op_arctan2, xs, tuple(map(mo.op_ones_like, xs)))

    def back(*xs):
        y, pull = mo.vjp(mo.op_arctan2, *xs)
        return y, *pull(mo.op_ones_like(y))

    for xs in ((nan, others), (others, nan)):
        tensors = [mo.op_convert_to_tensor(x) for x in xs]
        for f in (along, back, mo.jit(back)):
            assert all(np.isnan(value(y)).all() for y in f(*tensors))


def test_complex_arctan_of_nan_beside_infinity_is_nan(backend):
    z = np.array([complex(NAN, INF), complex(NAN, -INF)], np.complex64)
    assert np.isnan(mo.op_convert_to_numpy(mo.op_arctan(z)).real).all()
    assert np.isnan(mo.op_convert_to_numpy(mo.op_arctanh(-1j * z)).imag).all()


def test_nan_propagates(backend):
    for op in (mo.op_abs, mo.op_exp, mo.op_square, mo.op_sigmoid, mo.op_tanh, mo.op_softplus, mo.op_sin):
        assert np.isnan(value(op([NAN])))
    for op in (mo.op_sign, mo.op_relu, mo.op_floor, mo.op_round, lambda x: mo.op_clip(x, 0.0, 1.0)):
        assert np.isnan(value(op([NAN])))
    for op in (mo.op_sum, mo.op_mean, mo.op_max, mo.op_min, mo.op_prod, mo.op_logsumexp, mo.op_var, mo.op_std):
        assert np.isnan(value(op([1.0, NAN, 2.0])))
