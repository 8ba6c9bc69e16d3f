"""Picking, putting and searching: bad arguments, closed forms, what depends on values in compiled and mapped code."""

import numpy as np
import pytest

import multiop as mo
from multiop import errors

NAN, INF = np.nan, np.inf
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def tensor(x, dtype=None):
    return mo.op_convert_to_tensor(x, dtype)


def value(x):
    return mo.op_convert_to_numpy(x).tolist()


def gradient(f, *xs):
    """Return the gradients of the sum of `f`, as lists."""
    xs = [tensor(np.asarray(x, np.float32)) for x in xs]
    grads = mo.grad(lambda *xs: mo.op_sum(f(*xs)), argnums=tuple(range(len(xs))))(*xs)
    return [value(g) for g in grads]


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        ("op_get_item", (X, 3), {}),
        ("op_get_item", (X, (0, -5)), {}),
        ("op_get_item", (X, [0, 3]), {}),
        ("op_get_item", (X, (0, 0, 0)), {}),
        ("op_get_item", (X, (..., ...)), {}),
        ("op_get_item", (X[None], (slice(None), [0, 1], ..., 0)), {}),  # NumPy puts the indices' dimension in front
        ("op_get_item", (X, slice(None, None, 0)), {}),
        ("op_get_item", (X, [True, False]), {}),
        ("op_get_item", (X, ([0, 1], [0, 1, 2])), {}),
        ("op_subset", (X, 0, 4), {}),
        ("op_set_item", (X, 3, 0.0), {}),
        ("op_set_item", (X, [0, 3], 0.0), {}),
        ("op_set_item", (X, (slice(None), [0, -5]), 0.0), {}),
        ("op_set_item", (X, (0, 0, 0), 0.0), {}),
        ("op_set_item", (X, 0, [1.0, 2.0]), {}),
        ("op_set_item", (X, slice(2), X), {}),
        ("op_set_item", (X[:1], slice(None), X), {}),
        ("op_set_item", (X, [0, 1], X), {}),
        ("op_set_item", (X, X > 3, [1.0, 2.0]), {}),
        ("op_set_item", (X, X[:, 0] > 3, X[:, :2]), {}),
        ("op_set_item", (X, (slice(None), X[0] > 1), X[0]), {}),
        ("op_set_item", (X, [True, False], 0.0), {}),
        ("op_set_item", (X, ([0, 1], [0, 1, 2]), 0.0), {}),
        ("op_set_item", (np.zeros(3, np.uint8), 0, 300), {}),
        ("op_add_at", (X, 0, X), {}),
        ("op_multiply_at", (X, slice(0), X[:2]), {}),
        ("op_maximum_at", (X, [-4], 0.0), {}),
        ("op_minimum_at", (X, (slice(0), [4]), 0.0), {}),
        ("op_slice", (X, (2, 0), (2, 2)), {}),
        ("op_slice", (X, (-1, 0), (2, 2)), {}),
        ("op_slice", (X, (0,), (2,)), {}),
        ("op_slice", (X, (0, 0), (2, -1)), {}),
        ("op_slice_update", (X, (2, 0), X[:2, :2]), {}),
        ("op_slice_update", (X, (0, 0), X[0]), {}),
        ("op_scatter", ([[2]], [1.0], (2,)), {}),
        ("op_scatter", ([[0, 0]], [1.0], (2,)), {}),
        ("op_scatter", (0, [1.0], (2,)), {}),
        ("op_scatter", ([[0], [1]], [1.0, 2.0, 3.0], (2,)), {}),
        ("op_scatter_update", (X, [[-4]], X[:1]), {}),
        ("op_scatter_update", (X, [[0]], X[:1], "mean"), {}),
        ("op_select", ([X > 0], [X, X]), {}),
        ("op_select", ([], []), {}),
        ("op_unravel_index", ([6], (2, 3)), {}),
        ("op_unravel_index", ([-1], (2, 3)), {}),
        ("op_unravel_index", ([3], (2, 2**31 + 1)), {}),
        ("op_one_hot", ([1], -1), {}),
        ("op_multi_hot", (1, 3), {}),
        ("op_top_k", (X, 5), {}),
        ("op_top_k", (X, -1), {}),
        ("op_top_k", (np.float32(1), 0), {}),
        ("op_in_top_k", ([0, 1], X, 1), {}),
        ("op_argpartition", (X, 4), {}),
        ("op_digitize", (X, X), {}),
        ("op_digitize", (X, [2.0, 1.0]), {}),
        ("op_bincount", ([[[1]]],), {}),
        ("op_bincount", ([[1, -1]],), {}),
        ("op_bincount", ([[1, 2]], [1.0, 2.0]), {}),
        ("op_searchsorted", (1.0, 1.0), {}),
        ("op_searchsorted", (X, X[:2]), {}),
        ("op_searchsorted", (X, X[0]), {}),
        ("op_roll", (X, (1, 2, 3), (0, 1)), {}),
        ("op_softmax", (X, (0, 0)), {}),
        ("op_softmax", (X, (0, 2)), {}),
        ("op_column_stack", ([],), {}),
        ("op_column_stack", ([X, X[:1]],), {}),
        ("op_hard_shrink", (X, NAN), {}),
        ("op_bincount", ([-1],), {}),
        ("op_bincount", ([1, 2], [1.0]), {}),
        ("op_histogram", (X,), {}),
        ("op_histogram", (X[0], 0), {}),
        ("op_histogram", (X[0],), {"range": (1.0, 0.0)}),
        ("op_histogram", (X[0],), {"range": (0.0, NAN)}),
        ("op_unique", (X,), {"size": -1}),
    ],
)
def test_a_bad_argument(backend, op, args, kwargs):
    with pytest.raises(errors.ArgumentError):
        getattr(mo, op)(*args, **kwargs)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("op_get_item", (X, 1.0)),
        ("op_get_item", (X, True)),
        ("op_get_item", (X, slice(0.5))),
        ("op_set_item", (X, 1.0, 0.0)),
        ("op_set_item", (X, True, 0.0)),
        ("op_set_item", (X, 0, None)),
        ("op_add_at", (X, "a", 0.0)),
        ("op_select", (X > 0, [X])),
        ("op_multi_hot", ([1],)),
        ("op_top_k", (X, 1.5)),
        ("op_top_k", (X, True)),
        ("op_top_k", (X, 1, True, 1)),
        ("op_argsort", (X, 0, 1)),
        ("op_argpartition", (X, 1.5)),
        ("op_one_hot", ([1], 2.0)),
        ("op_histogram", (X[0], 2.5)),
        ("op_bincount", ([1], None, 1.5)),
    ],
)
def test_an_argument_of_the_wrong_type(backend, op, args):
    with pytest.raises(errors.ArgumentTypeError):
        getattr(mo, op)(*args)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("op_get_item", (X, [0.5])),
        ("op_slice", (X, [0.5, 1.0], (1, 1))),
        ("op_slice_update", ([1, 2], [0], [0.5])),
        ("op_set_item", (X, [0.5], 0.0)),
        ("op_set_item", ([1, 2], 0, 0.5)),
        ("op_set_item", ([1, 2], [0, 0], [0.5])),
        ("op_set_item", ([True], [True], 1)),
        ("op_set_item", (X, 0, 1j)),
        ("op_add_at", ([1, 2], [True, False], 0.5)),
        ("op_maximum_at", ([1j], 0, 1j)),
        ("op_minimum_at", ([1j], [0], 1j)),
        ("op_scatter", ([[0.0]], [1.0], (2,))),
        ("op_scatter_update", ([1, 2], [[0]], [0.5])),
        ("op_scatter_update", ([1j], [[0]], [1j], "max")),
        ("op_unravel_index", ([0.5], (2,))),
        ("op_one_hot", ([0.5j], 2)),
        ("op_one_hot", ([True], 2)),
        ("op_top_k", ([1j], 1)),
        ("op_digitize", ([1j], [0.0])),
        ("op_bincount", ([0.5],)),
        ("op_bincount", ([[0.5]],)),
        ("op_argsort", ([1j], -1, True)),
        ("op_softmax", ([1j], None)),
        ("op_isin", ([1.0], [1j])),
        ("op_unique", ([1j],)),
        ("op_in_top_k", ([0.5], [[1.0]], 1)),
    ],
)
def test_a_wrong_dtype(backend, op, args):
    with pytest.raises(errors.DTypeError):
        getattr(mo, op)(*args)


@pytest.mark.parametrize("op", ["op_one_hot", "op_multi_hot"])
def test_nothing_is_sparse(backend, op):
    with pytest.raises(errors.UnsupportedError):
        getattr(mo, op)([1], 2, sparse=True)
    with pytest.raises(errors.UnsupportedError):
        mo.op_bincount([1], sparse=True)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_the_largest_unsigned_index_is_no_negative_one(backend, dtype):
    x, places = mo.op_arange(5, dtype="float32"), np.array([np.iinfo(dtype).max], dtype)
    assert not mo.op_convert_to_numpy(mo.op_one_hot(places, 3)).any()
    assert not mo.op_convert_to_numpy(mo.op_segment_sum(x[1:2], places, 3)).any()
    for call in (
        lambda: mo.op_take(x, places),
        lambda: mo.op_take_along_axis(x, places),
        lambda: mo.op_get_item(x, places),
        lambda: mo.op_set_item(x, places, 9.0),
        lambda: mo.op_scatter_update(x, places[:, None], [9.0]),
    ):
        with pytest.raises(errors.ArgumentError):
            call()


@pytest.mark.traced
def test_bad_indices_in_compiled_code(backend):
    def picked(x, i):
        return (
            mo.op_get_item(x, (i, slice(1))),
            mo.op_slice(x, i, (2, 1)),
            mo.op_slice_update(x, i, x[:2, :1]),
            mo.op_scatter_update(x[:, 0], i[:, None], x[:2, 1]),
            mo.op_scatter_update(x[:, 0], i[:, None], x[:2, 1], "add"),
            mo.op_scatter_update(x[:, 0], i[:, None], x[:2, 1], "max"),
            mo.op_unravel_index(i, (2,)),
        )

    found = mo.jit(picked)(tensor(X), tensor(np.array([2, 3], np.int32)))
    np.testing.assert_array_equal(value(found[0]), [[8.0], [NAN]])
    np.testing.assert_array_equal(value(found[1]), [[NAN], [NAN]])
    np.testing.assert_array_equal(value(found[2]), X)
    assert value(found[3]) == [0.0, 4.0, 1.0]
    assert value(found[4]) == [0.0, 4.0, 9.0]
    assert value(found[5]) == [0.0, 4.0, 8.0]
    assert value(found[6][0]) == [2, 3]


def test_33_the_last_of_repeated_places_stays(backend):
    def put(x, y):
        return mo.op_scatter_update(x, [[0], [0], [2]], y)

    assert value(put([9.0, 9.0, 9.0], [1.0, 2.0, 3.0])) == [2.0, 9.0, 3.0]
    assert gradient(put, [9.0, 9.0, 9.0], [1.0, 2.0, 3.0]) == [[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]


def test_what_is_scattered_to_one_position_adds_up(backend):
    def put(y):
        return mo.op_scatter([[1], [1], [-2]], y, (2,))

    assert value(put([1.0, 2.0, 5.0])) == [5.0, 3.0]
    assert gradient(put, [1.0, 2.0, 5.0]) == [[1.0, 1.0, 1.0]]
    assert value(put([100, 100, 1])) == [1, 200]
    assert value(put([False, True, False])) == [False, True]


def test_gradients_of_combined_updates(backend):
    def put(reduction):
        return lambda x, y: mo.op_scatter_update(x, [[0], [0]], y, reduction)

    assert gradient(put("mul"), [0.0, INF], [2.0, 3.0]) == [[6.0, 1.0], [0.0, 0.0]]
    assert gradient(put("mul"), [5.0, 1.0], [0.0, 0.0]) == [[0.0, 1.0], [0.0, 0.0]]
    assert gradient(put("max"), [1.0, 1.0], [2.0, 2.0]) == [[0.0, 1.0], [0.5, 0.5]]
    assert gradient(put("max"), [4.0, 1.0], [2.0, 3.0]) == [[1.0, 1.0], [0.0, 0.0]]
    assert gradient(put("min"), [1.0, 1.0], [2.0, 3.0]) == [[1.0, 1.0], [0.0, 0.0]]
    product = gradient(lambda y: mo.op_scatter_update([1.0], [[0], [0], [0]], y, "mul"), [INF, 2.0, 3.0])
    assert product == [[6.0, INF, INF]]  # no factor of a product that is not used


def test_reductions_of_bool(backend):
    x, i = [True, False], [[0], [1]]
    assert value(mo.op_scatter_update(x, i, [False, True], "add")) == [True, True]
    assert value(mo.op_scatter_update(x, i, [False, True], "mul")) == [False, False]
    assert value(mo.op_scatter_update(x, i, [False, True], "max")) == [True, True]
    assert value(mo.op_scatter_update(x, i, [False, True], "min")) == [False, False]


def test_the_inputs_stay_as_they_are(backend):
    x = tensor(X)
    for key in (0, slice(None, None, 2), [0, 0], X > 3, ..., slice(0)):
        for op in (mo.op_set_item, mo.op_add_at, mo.op_multiply_at, mo.op_maximum_at, mo.op_minimum_at):
            op(x, key, 7.0)
            assert value(x) == X.tolist()
    for y in (
        mo.op_slice_update(x, (0, 0), [[-1.0]]),
        mo.op_scatter_update(x, [[0]], -1.0),
        mo.op_scatter_update(x, [[0]], -1.0, "add"),
    ):
        assert value(y) != X.tolist()
    assert value(x) == X.tolist()


KEYS = [
    (slice(None, None, -1), slice(3, None, -2)),
    (None, ..., None, 0),
    ([[0, 1], [2, -1]],),
    (slice(None), [0, 1], None),
    (None, [0, -1]),
    (slice(None), None, [0, -1], None, [1]),
    (None, np.array([True, False, True]), ..., -1),
    ([0, 1], slice(None), [0, 1]),
    ([0, 1], ..., [0, 1], 2),
    (0, slice(None), [2, 0]),
    (slice(5, 1),),
    (slice(1, -9, -1),),
    ([],),
    (np.array([True, False, True]),),
    (..., np.array([True, False, True, True, False])),
    (np.array([True, False, True]), [0, 1], 2),
    (np.arange(12).reshape(3, 4) % 3 == 0,),
    (np.int64(1), np.array(2)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_get_item_is_numpys(backend, key):
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    found = mo.op_convert_to_numpy(mo.op_get_item(x, key))
    np.testing.assert_array_equal(found, x[key], strict=True)
    one = key[0] if len(key) == 1 else key
    np.testing.assert_array_equal(mo.op_convert_to_numpy(mo.op_subset(x, *key)), x[one], strict=True)


UPDATES = {"op_add_at": np.add, "op_multiply_at": np.multiply, "op_maximum_at": np.maximum, "op_minimum_at": np.minimum}


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_updates_by_key_are_numpys(backend, key):
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    shape = x[key].shape
    for update in (np.float32(-2), -3 * np.arange(np.prod(shape), dtype=np.float32).reshape(shape)):
        expected = x.copy()
        expected[key] = update
        found = mo.op_convert_to_numpy(mo.op_set_item(x, key, update))
        np.testing.assert_array_equal(found, expected, strict=True)
        for op, ufunc in UPDATES.items():
            expected = x.copy()
            ufunc.at(expected, key, update)
            found = mo.op_convert_to_numpy(getattr(mo, op)(x, key, update))
            np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.traced
def test_masks_that_are_traced(backend):
    mask = X % 2 == 0
    expected = np.where(mask, np.float32(7), X)
    assert value(mo.jit(lambda x, m: mo.op_set_item(x, m, 7.0))(tensor(X), tensor(mask))) == expected.tolist()
    assert value(mo.vmap(lambda x, m: mo.op_set_item(x, m, 7.0))(tensor(X), tensor(mask))) == expected.tolist()
    rows = np.array([True, False, True])
    columns = mo.jit(lambda x, m: mo.op_multiply_at(x, m, [1.0, 2.0, 3.0, 4.0]))(tensor(X), tensor(rows))
    assert value(columns) == (X * np.where(rows[:, None], [1, 2, 3, 4], 1)).tolist()
    several = mo.jit(lambda x: mo.op_set_item(x, mask, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))(tensor(X))
    assert value(several) == [[1.0, 1.0, 2.0, 3.0], [3.0, 5.0, 4.0, 7.0], [5.0, 9.0, 6.0, 11.0]]
    assert value(mo.jit(lambda x: mo.op_get_item(x, mask))(tensor(X))) == X[mask].tolist()
    each = mo.vmap(lambda x, m: mo.op_set_item(x, m, [1.0, 2.0]))
    if backend == "tensorflow":
        assert value(each(tensor(X), tensor(mask))) == [[1, 1, 2, 3], [1, 5, 2, 7], [1, 9, 2, 11]]
    else:  # the framework's own, about a shape that depends on values
        with pytest.raises(Exception):  # noqa: B017
            each(tensor(X), tensor(mask))


@pytest.mark.traced
def test_bad_keys_in_compiled_code(backend):
    def put(x, i):
        return [
            mo.op_set_item(x, (i, slice(1)), -1.0),
            mo.op_add_at(x, (slice(None, None, -1), i), -1.0),
            mo.op_maximum_at(x, i, 100.0),
        ]

    found = mo.jit(put)(tensor(X), tensor(np.array([2, 4], np.int32)))
    assert value(found[0]) == [*X[:2].tolist(), [-1.0, *X[2, 1:].tolist()]]
    assert value(found[1]) == (X - np.array([0, 0, 1, 0])).tolist()
    assert value(found[2]) == [*X[:2].tolist(), [100.0] * 4]


def test_33_the_last_of_repeated_keys_stays(backend):
    def put(x, y):
        return mo.op_set_item(x, ([0, 0], slice(None, None, -1)), y)

    x, y = np.zeros((2, 2)), np.ones((2, 2))
    assert gradient(put, x, y) == [[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0]]]
    assert gradient(lambda x, y: mo.op_set_item(x, [0, 0], y), x, 1.0) == [[[0.0, 0.0], [1.0, 1.0]], 2.0]
    assert gradient(lambda x, y: mo.op_add_at(x, [0, 0], y), x, y) == [[[1.0, 1.0]] * 2] * 2


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "uint32", "float16", "bfloat16", "complex64", "bool"])
def test_updates_by_key_keep_the_dtype(backend, dtype):
    x, one = mo.op_cast(X[:2], dtype), mo.op_cast(1, dtype)
    ones = np.ones((2, 4), np.float32)
    for key in (0, (slice(None), slice(None, None, -2)), [0, 0], X[:2] > 3, (slice(None), [1])):
        ones[key] = 0
        y = mo.op_set_item(x, key, one)
        assert mo.op_dtype(y) == dtype
        expected = np.where(ones == 0, 1, mo.op_convert_to_numpy(x))
        assert value(mo.op_cast(y, "complex64")) == expected.astype(np.complex64).tolist()
        ones[key] = 1
        assert mo.op_dtype(mo.op_add_at(x, key, one)) == mo.op_dtype(mo.op_multiply_at(x, key, one)) == dtype


def test_places_that_are_computed(backend):
    i = tensor(np.array([1, 0], np.int32))
    cut = mo.vmap(lambda i: mo.op_slice(tensor(X), mo.op_stack([i, i]), (2, 2)))(i)
    assert value(cut) == [X[1:3, 1:3].tolist(), X[:2, :2].tolist()]
    x, i = tensor(X[0]), tensor(np.array([[1], [3]], np.int32))
    put = mo.vmap(lambda i: mo.op_slice_update(x, i, x[:1]))(i)
    assert value(put) == [[0.0, 0.0, 2.0, 3.0], [0.0, 1.0, 2.0, 0.0]]


def test_unique(backend):
    x = np.array([[3, 1, 3], [1, 1, 2]], np.int32)
    found = mo.op_unique(x, return_index=True, return_inverse=True, return_counts=True)
    assert [value(y) for y in found] == [[1, 2, 3], [1, 5, 0], [[2, 0, 2], [0, 0, 1]], [3, 1, 2]]
    rows = np.random.default_rng(0).integers(0, 2, (9, 5)).astype(np.float32)
    expected = np.unique(rows, return_index=True, return_inverse=True, return_counts=True, axis=0)
    found = mo.op_unique(rows, return_index=True, return_inverse=True, return_counts=True, axis=0)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mo.op_convert_to_numpy(one), other)
    assert mo.op_shape(mo.op_unique(np.zeros((3, 0), np.float32), axis=0)) == (1, 0)
    assert mo.op_shape(mo.op_unique(np.zeros(0, np.float32))) == (0,)
    assert gradient(lambda x: mo.op_unique(x), [2.0, 1.0, 2.0]) == [[1.0, 1.0, 0.0]]


def test_unique_of_a_given_size_compiles(backend):
    def fixed(x):
        return mo.op_unique(x, return_inverse=True, return_counts=True, size=4)

    found = mo.jit(fixed)(tensor([5, 2, 5]))
    assert [value(y) for y in found] == [[2, 5, 0, 0], [1, 0, 1], [1, 2, 0, 0]]


def test_bincount(backend):
    assert mo.op_dtype(mo.op_bincount([1, 1])) == "int32"
    assert gradient(lambda w: mo.op_square(mo.op_bincount([1, 0, 1], w)), [1.0, 2.0, 3.0]) == [[8.0, 4.0, 8.0]]
    assert value(mo.op_bincount([0, 0], np.array([100, 100], np.int8))) == [200]
    assert value(mo.op_bincount([0, 0], [True, True])) == [2]


def test_top_k_of_many_ties(backend):
    x = np.random.default_rng(0).integers(-3, 3, (4, 100)).astype(np.float32)
    order = np.argsort(-x, -1, stable=True)[:, :60]
    values, indices = mo.op_top_k(x, 60)
    np.testing.assert_array_equal(mo.op_convert_to_numpy(indices), order)
    np.testing.assert_array_equal(mo.op_convert_to_numpy(values), np.take_along_axis(x, order, -1))
    low = np.array([-128, 127, 0], np.int8)
    assert value(mo.op_top_k(low, 3)[0]) == [127, 0, -128]


def test_histogram_compiles(backend):
    counts, bounds = mo.jit(lambda x: mo.op_histogram(x, 3))(tensor([1.0, 2.0, 2.0, 4.0]))
    assert (value(counts), value(bounds)) == ([1, 2, 1], [1.0, 2.0, 3.0, 4.0])
    counts, bounds = mo.op_histogram([0, 1, 2, 9], 3)
    assert (value(counts), value(bounds), mo.op_dtype(bounds)) == ([3, 0, 1], [0.0, 3.0, 6.0, 9.0], "float32")


def test_multi_hot_takes_the_old_name(backend):
    assert value(mo.op_multi_hot([0, 2], num_tokens=3)) == [1.0, 0.0, 1.0]
    with pytest.raises(errors.ArgumentTypeError, match="tokens"):
        mo.op_multi_hot([0], 3, tokens=3)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("index", [3, 7, -4, -9])
def test_an_index_of_a_tensor_that_is_out_of_range_raises(backend, index, dtype):
    """PyTorch's `take_along_dim` wraps it around, and TensorFlow's kernels return 0 on some devices."""
    x = mo.op_convert_to_tensor(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    rows = mo.op_convert_to_tensor(np.array([0, index], dtype))
    for call in (
        lambda: mo.op_take(x, rows, 0),
        lambda: mo.op_take_along_axis(x[:, 0], rows, 0),
        lambda: mo.op_take_along_axis(x, rows[:, None], 0),
        lambda: mo.op_take_along_axis(x, mo.op_broadcast_to(rows[:, None], (2, 4)), 0),
        lambda: mo.op_get_item(x, rows),
    ):
        with pytest.raises(errors.ArgumentError, match="out of range"):
            call()


@pytest.mark.parametrize(("entry", "k", "expected"), [(1.0, 1, True), (1.0, 0, False), (float("nan"), 1, False)])
def test_the_only_class_is_in_the_top_k(backend, entry, k, expected):
    assert mo.op_convert_to_numpy(mo.op_in_top_k([0], [[entry]], k)).tolist() == [expected]
