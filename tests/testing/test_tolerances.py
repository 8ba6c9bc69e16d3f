"""Comparisons: strict about NaN, infinities, shapes and dtypes; relative to what rounding does."""

import ml_dtypes
import numpy as np
import pytest

from multiop.testing import Mismatch
from multiop.testing._tolerances import assert_close, assert_equal, eps, noise, relative_error

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        ([1.0, NAN], [1.0, NAN], 0.0),
        ([1.0, NAN], [1.0, 1.0], INF),
        ([1.0, 1.0], [1.0, NAN], INF),
        ([INF], [INF], 0.0),
        ([INF], [-INF], INF),
        ([INF], [1e38], INF),
        ([0.0], [-0.0], 0.0),
        ([2.0, 100.0], [1.0, 100.0], 1.0),
        ([], [], 0.0),
        ([1.0], [1.0, 2.0], INF),
        ([1e-310], [0.0], 0.0),  # processors may flush this
        ([1e-300], [0.0], INF),
        ([NAN + 1j], [NAN + 1j], 0.0),
        ([1 + 1j], [1 + 2j], 1 / 5**0.5),
        ([complex(INF, 1)], [complex(INF, 1)], 0.0),
        ([complex(INF, 1)], [complex(INF, 2)], INF),
        (np.array([1, 2]), np.array([1, 2]), 0.0),
        (np.array([1, 2]), np.array([1, 3]), INF),
        (np.array([True]), np.array([False]), INF),
    ],
)
def test_relative_error(found, expected, error):
    computed = relative_error(np.asarray(found), np.asarray(expected))
    if error == INF:
        assert computed > 1e7
    else:
        assert computed == pytest.approx(error)


def test_each_entry_counts_by_itself():
    assert relative_error(np.array([1e20, 2.0]), np.array([1e20, 1.0])) == 1.0


def test_eps_of_each_dtype():
    found = [eps(d) for d in ("float64", "float32", "float16", ml_dtypes.bfloat16, "complex64", "int32", "bool")]
    assert found == [2.0**-52, 2.0**-23, 2.0**-10, 2.0**-7, 2.0**-23, 0.0, 0.0]


def test_noise_is_what_rounding_of_the_input_does():
    value = np.array([1.0, 1e-16])  # the second entry is left over from a cancellation
    moved = noise(value, [np.array([1.0, 3e-16]), np.array([1.0, -1e-16])])
    np.testing.assert_allclose(moved, [0.0, 2e-16])
    assert_close(value, np.array([1.0, 2e-16]), "sum", ulps=2, scale=moved / eps("float64"))
    with pytest.raises(Mismatch, match="relative error"):
        assert_close(value, np.array([1.0, 2e-15]), "sum", ulps=2, scale=moved / eps("float64"))


def test_a_jump_is_no_noise():
    value = np.array([1.0, 0.0])
    assert noise(value, [np.array([1.0, 1.0])]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([np.zeros(2), np.zeros(2)], "2 results where 1 are expected"),
        ([np.zeros(3)], r"shape \(3,\) where \(2,\) is expected"),
        ([np.zeros(2, "float32")], "dtype float32 where float64 is expected"),
        ([np.ones(2)], "relative error"),
    ],
)
def test_assert_equal_says_what_is_unequal(found, message):
    with pytest.raises(Mismatch, match=message):
        assert_equal(found, [np.zeros(2)], "f")


def test_noise_is_believed_where_terms_cancel_to_nothing():
    value = np.array([0.0])  # such as sum(softmax(x)) - 1
    assert noise(value, [np.array([2e-16])]).tolist() == [0.0]
    assert noise(value, [np.array([2e-16])], inputs=1.0).tolist() == [2e-16]
    assert noise(value, [np.array([1.0])], inputs=1e6).tolist() == [0.0]
