"""Patterns that name dimensions: errors, and NumPy's answers."""

import numpy as np
import pytest

import multiop as mo
from multiop import errors

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("pattern", "sizes", "match"),
    [
        ("a b c", {}, "must have one ->"),
        ("a b -> b a", {}, "does not have the 3 dimensions"),
        ("a b c d ... -> a b c d ...", {}, "does not have the 3 dimensions"),
        ("a b c -> a b", {}, "name each dimension once"),
        ("a b b -> a b b", {}, "name each dimension once"),
        ("a b c -> a b ...", {}, "must have ... before the ->"),
        ("(... a) b c -> ... a b c", {}, "must have ... before the ->"),
        ("a b (c -> a b c", {}, "parentheses"),
        ("a b c) -> a b c", {}, "parentheses"),
        ("a b ((c d)) -> a b c d", {}, "parentheses"),
        ("a b 2 -> a b 2", {}, "'2', which is not a name"),
        ("a b (c d) -> a b c d", {}, "leaves the sizes of c and d open"),
        ("a b (c d) -> a b c d", {"c": 3}, "does not fit a dimension of 4"),
        ("a b (c d) -> a b c d", {"c": 0}, "leaves the sizes of d open"),
        ("a b c -> c b a", {"a": 3}, "does not fit a dimension of 2"),
        ("a b c -> c b a", {"d": 3}, "has no d"),
        ("a 1 c -> a c", {}, "does not fit a dimension of 3"),
    ],
)
def test_a_bad_pattern_is_named(backend, pattern, sizes, match):
    with pytest.raises(errors.ArgumentError, match=match) as caught:
        mo.op_rearrange(X, pattern, **sizes)
    assert pattern in str(caught.value)


def test_an_argument_of_the_wrong_type(backend):
    with pytest.raises(errors.ArgumentTypeError, match="pattern must be a string"):
        mo.op_rearrange(X, 3)
    with pytest.raises(errors.ArgumentTypeError, match="d must be an int"):
        mo.op_rearrange(X, "a b (c d) -> a b c d", d=2.0)


def test_patterns_undo_each_other(backend):
    patches = mo.op_rearrange(X, "a b (c d) -> (d a) b c", d=2)
    np.testing.assert_array_equal(
        mo.op_convert_to_numpy(patches), X.reshape(2, 3, 2, 2).transpose(3, 0, 1, 2).reshape(4, 3, 2)
    )
    back = mo.op_rearrange(patches, "(d a) b c -> a b (c d)", d=2)
    np.testing.assert_array_equal(mo.op_convert_to_numpy(back), X)


def test_nothing_splits_into_what_is_said(backend):
    assert mo.op_shape(mo.op_rearrange(X[:0], "(a b) c d -> a b (c d)", b=2)) == (0, 2, 12)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_unsigned_entries_are_repeated_by_counts(backend, dtype):
    x = np.array([[1, np.iinfo(dtype).max]], dtype)
    y = mo.op_repeat(x, [2, 3], axis=1)
    assert mo.op_dtype(y) == dtype
    np.testing.assert_array_equal(mo.op_convert_to_numpy(y), np.repeat(x, [2, 3], 1))


@pytest.mark.parametrize(("axis", "counts"), [(0, []), (1, [1, 2]), (2, [0, 2, 1]), (2, [0, 0, 0])])
def test_counts_repeat_what_has_no_entries(backend, axis, counts):
    x = np.zeros((0, 2, 3), np.float32)
    expected = np.repeat(x, np.array(counts, int), axis).shape
    for f in (lambda x: mo.op_repeat(x, counts, axis), mo.jit(lambda x: mo.op_repeat(x, counts, axis))):
        assert mo.op_shape(f(x)) == expected
    if any(counts):  # of nothing, from nothing, TensorFlow's gradient of tf.gather is an error
        (slope,) = mo.vjp(lambda x: mo.op_repeat(x, counts, axis), x)[1](np.zeros(expected, np.float32))
        assert mo.op_shape(slope) == x.shape
