"""What the rows of statistics, tensor products and padding cannot say: errors, options, derivatives beside NaN."""

from __future__ import annotations

import numpy as np
import pytest

import multiop
from multiop import errors

NAN, INF = np.nan, np.inf
SKIPPING = ["sum", "prod", "mean", "var", "std", "max", "min", "median"]


def tensor(x):
    return multiop.op_convert_to_tensor(np.asarray(x, np.float32))


def numbers(x):
    return multiop.op_convert_to_numpy(x)


def gradient(f, x):
    y, pullback = multiop.vjp(f, x)
    return pullback(multiop.op_ones_like(y))[0]


@pytest.mark.parametrize("name", SKIPPING)
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_beside_nan_are_those_without_it(backend, name, order):
    def derivative(op, x):
        if order == 1:
            return gradient(op, x)
        return gradient(lambda x: multiop.op_sum(multiop.op_square(gradient(op, x))), x)

    found = numbers(derivative(getattr(multiop, f"op_nan{name}"), tensor([2.0, NAN, 3.0, 5.0])))
    expected = numbers(derivative(getattr(multiop, f"op_{name}"), tensor([2.0, 3.0, 5.0])))
    assert found[1] == 0.0
    np.testing.assert_allclose(np.delete(found, 1), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SKIPPING)
def test_derivatives_of_nothing_but_nan_are_zero(backend, name):
    op, x = getattr(multiop, f"op_nan{name}"), tensor([[NAN, NAN], [1.0, 2.0]])
    assert numbers(gradient(lambda x: op(x, 1), x))[0].tolist() == [0.0, 0.0]
    _, tangent = multiop.jvp(lambda x: op(x, 1), (x,), (multiop.op_ones_like(x),))
    assert numbers(tangent)[0] == 0.0


def test_quantiles_of_shares_that_are_tensors(backend):
    x, q = tensor([4.0, 1.0, 2.0]), tensor([0.25, 1.0])
    assert numbers(multiop.op_quantile(x, q)).tolist() == [1.5, 4.0]
    assert numbers(multiop.op_nanpercentile(tensor([4.0, NAN, 1.0, 2.0]), tensor(25.0))).tolist() == 1.5
    assert numbers(gradient(lambda q: multiop.op_quantile(x, q), tensor(0.25))).tolist() == 2.0
    with pytest.raises(errors.ArgumentError):
        multiop.op_quantile(x, tensor([0.5, 1.5]))


@pytest.mark.traced
def test_quantiles_of_shares_that_are_not_known(backend):
    x = tensor([4.0, 1.0, 2.0])
    beyond = multiop.jit(lambda x, q: multiop.op_quantile(x, q))(x, tensor([0.5, -0.5, NAN]))
    np.testing.assert_array_equal(numbers(beyond), [2.0, NAN, NAN])


def test_ranks_are_those_of_numpy_where_float32_would_round_to_others(backend):
    x = np.arange(101, dtype=np.float32)
    for q in (0.29, 0.57, 0.58):  # of 100, a little less than a whole number in float64
        for op, reference in ((multiop.op_quantile, np.quantile), (multiop.op_nanquantile, np.nanquantile)):
            expected = reference(x.astype(np.float64), q, method="lower")
            assert numbers(op(x, q, method="lower")) == expected


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (errors.ArgumentError, lambda x: multiop.op_quantile(x, 1.5)),
        (errors.ArgumentError, lambda x: multiop.op_percentile(x, [-1, 50])),
        (errors.ArgumentError, lambda x: multiop.op_nanquantile(x, NAN)),
        (errors.ArgumentError, lambda x: multiop.op_quantile(x, [[0.5]])),
        (errors.ArgumentError, lambda x: multiop.op_nanmax(x[:0])),
        (errors.ArgumentError, lambda x: multiop.op_nanargmin(x[:0])),
        (errors.ArgumentTypeError, lambda x: multiop.op_nanmean(x, 0.5)),
        (errors.UnsupportedError, lambda x: multiop.op_moments(x, 0, synchronized=True)),
        (errors.ArgumentError, lambda x: multiop.op_corrcoef(multiop.op_reshape(x, (1, 1, 6)))),
        (errors.ArgumentError, lambda x: multiop.op_correlate(x, x)),
        (errors.ArgumentError, lambda x: multiop.op_correlate(x[0], x[0, :0])),
        (errors.ArgumentError, lambda x: multiop.op_trapezoid(x, x=[0.0, 1.0])),
        (errors.ArgumentError, lambda x: multiop.op_tensordot(x, x[:, :2])),
        (errors.ArgumentError, lambda x: multiop.op_tensordot(x, x, 3)),
        (errors.ArgumentError, lambda x: multiop.op_tensordot(x, x, ((0, 1), (0,)))),
        (errors.ArgumentError, lambda x: multiop.op_tensordot(x, x, ((0, 0), (0, 0)))),
        (errors.ArgumentError, lambda x: multiop.op_tensordot(x, x, (2, 0))),
        (errors.ArgumentError, lambda x: multiop.op_dot(x, x)),
        (errors.ArgumentError, lambda x: multiop.op_inner(x, x[:, :2])),
        (errors.ArgumentError, lambda x: multiop.op_vdot(x, x[0])),
        (errors.ArgumentError, lambda x: multiop.op_cross(x[:, :1], x)),
        (errors.DTypeError, lambda x: multiop.op_cross([True, False, True], [True, True, True])),
        (errors.ArgumentError, lambda x: multiop.op_vander(x)),
        (errors.ArgumentError, lambda x: multiop.op_vander(x[0], -1)),
        (errors.DTypeError, lambda x: multiop.op_nanmax(multiop.op_cast(x, "complex64"))),
        (errors.DTypeError, lambda x: multiop.op_median(multiop.op_cast(x, "complex64"))),
    ],
)
def test_errors(backend, error, call):
    with pytest.raises(error):
        call(tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


def test_correlation_of_sizes_whose_squares_do_not_fit(backend):
    x = tensor([[1e30, 2e30, 4e30], [1e-30, 4e-30, 2e-30]])
    np.testing.assert_allclose(numbers(multiop.op_corrcoef(x)), [[1.0, 1 / 7], [1 / 7, 1.0]], rtol=1e-5)
    assert np.abs(numbers(gradient(multiop.op_corrcoef, tensor([1.0, 2.0, 4.0])))).max() < 1e-6


def test_numbers_are_weak_beside_tensors(backend):
    x = multiop.op_cast(tensor([1.0, 2.0]), "float16")
    for op in (multiop.op_outer, multiop.op_kron, multiop.op_dot, multiop.op_inner):
        assert multiop.op_dtype(op(x, 2.0)) == "float16"


def test_hundreds_of_tensors_joined(backend):
    arrays = [np.full((2, 1 + k % 3), k, np.float32) for k in range(300)]
    joined = multiop.op_concatenate([multiop.op_convert_to_tensor(x) for x in arrays], -1)
    np.testing.assert_array_equal(multiop.op_convert_to_numpy(joined), np.concatenate(arrays, -1))
    arrays = [np.full((2, 3), k, np.float32) for k in range(300)]
    stacked = multiop.op_stack([multiop.op_convert_to_tensor(x) for x in arrays], -2)
    np.testing.assert_array_equal(multiop.op_convert_to_numpy(stacked), np.stack(arrays, -2))
    weights = np.arange(300, dtype=np.float32)
    f = lambda x: multiop.op_sum(multiop.op_multiply(multiop.op_stack([x * k for k in range(300)]), weights))
    found = multiop.grad(f)(2.0)
    assert float(found) == (weights**2).sum()


WIDTHS = [
    2,
    (1,),
    (1, 2),
    ((1, 2),),
    [[1], [2]],
    [(1, 0), (0, 3)],
    np.array([[1, 2], [0, 1]]),
    np.int64(1),
    (np.int32(1), 2),
]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_pad_takes_the_widths_that_numpy_takes(backend, mode):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    for widths in [*WIDTHS, ((7, 9), (8, 5))]:  # the last go around more than once
        found = multiop.op_convert_to_numpy(multiop.op_pad(x, widths, mode))
        np.testing.assert_array_equal(found, np.pad(x, widths, mode))
    one = multiop.op_pad(x[:, :1], ((0, 0), (2, 3)), mode)
    np.testing.assert_array_equal(multiop.op_convert_to_numpy(one), np.pad(x[:, :1], ((0, 0), (2, 3)), mode))


@pytest.mark.parametrize(
    "widths", [(1, 2, 3), ((1, 2), (3, 4), (5, 6)), (), -1, 1.5, True, "a", [(1, True), (0, 0)]], ids=repr
)
def test_pad_refuses_widths_that_are_none(backend, widths):
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match="pad_width"):
        multiop.op_pad(np.zeros((2, 3), "float32"), widths)
