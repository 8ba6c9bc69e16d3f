"""Reductions of segments: what the rows of the case table cannot say."""

import numpy as np
import pytest

import multiop as mo
from multiop import errors

OPS = ["op_segment_sum", "op_segment_max", "op_segment_min", "op_segment_prod"]
X = np.arange(6, dtype=np.float32).reshape(3, 2)
IDS = np.array([1, 0, 1], np.int32)


def value(x):
    return mo.op_convert_to_numpy(x)


@pytest.mark.parametrize("op", OPS)
def test_the_number_of_segments_is_found(backend, op):
    found = getattr(mo, op)(X, IDS)
    np.testing.assert_array_equal(value(found), value(getattr(mo, op)(X, IDS, 2)))
    assert mo.op_shape(getattr(mo, op)(X, np.array([-1, -2, -1], np.int32))) == (0, 2)
    assert mo.op_shape(getattr(mo, op)(X[:0], IDS[:0])) == (0, 2)


@pytest.mark.parametrize("op", OPS)
def test_gradients_where_the_number_of_segments_is_found(backend, op):
    x, upstream = mo.op_convert_to_tensor(X + 1), np.array([[1, 2], [4, 8]], np.float32)
    with_number, without = (
        mo.grad(lambda x, n=n: mo.op_sum(mo.op_multiply(getattr(mo, op)(x, IDS, n), upstream)))(x) for n in (2, None)
    )
    np.testing.assert_array_equal(value(without), value(with_number))
    assert np.all(value(without)[1] == upstream[0])  # alone in the first segment


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("args", "error"),
    [
        ((X, [[0, 1]]), errors.ArgumentError),
        ((X, [0, 1]), errors.ArgumentError),
        ((1.0, [0]), errors.ArgumentError),
        ((X, IDS, -1), errors.ArgumentError),
        ((X, IDS, 1.5), errors.ArgumentTypeError),
        ((X, IDS, True), errors.ArgumentTypeError),
        ((X, IDS, 2, 1), errors.ArgumentTypeError),
        ((X, [0.0, 1.0, 0.0]), errors.DTypeError),
    ],
)
def test_a_bad_argument(backend, op, args, error):
    with pytest.raises(error, match=op):
        getattr(mo, op)(*args)


@pytest.mark.parametrize("op", OPS)
def test_the_ids_have_one_dimension(backend, op):
    for ids in ([[0], [1], [0]], 0):
        with pytest.raises(errors.ArgumentError, match="do not fit data"):
            getattr(mo, op)(X, ids, 2)


@pytest.mark.parametrize("op", ["op_segment_max", "op_segment_min"])
def test_complex_numbers_have_no_order(backend, op):
    with pytest.raises(errors.DTypeError):
        getattr(mo, op)(np.ones(3, np.complex64), IDS, 2)


@pytest.mark.traced
@pytest.mark.parametrize("op", OPS)
def test_mapped_code_must_know_how_many(backend, op):
    with pytest.raises(errors.ArgumentError, match="num_segments must be given"):
        mo.vmap(lambda ids: getattr(mo, op)(X, ids))(mo.op_convert_to_tensor(np.stack([IDS, IDS])))


@pytest.mark.traced
@pytest.mark.parametrize("op", OPS)
def test_compiled_code_must_know_how_many(backend, op):
    with pytest.raises(Exception, match="num_segments must be given"):
        mo.jit(lambda x, ids: getattr(mo, op)(x, ids))(mo.op_convert_to_tensor(X), mo.op_convert_to_tensor(IDS))


def test_the_product_is_right_to_second_order_at_zeros(backend):
    x = mo.op_convert_to_tensor(np.array([0.0, 5.0, 0.0, 3.0], np.float32))
    hessian = mo.hessian(lambda x: mo.op_sum(mo.op_segment_prod(x, np.array([0, 1, 0, 0], np.int32), 2)))(x)
    wanted = np.zeros((4, 4))
    wanted[0, 2] = wanted[2, 0] = 3.0
    np.testing.assert_array_equal(value(hessian), wanted)


def test_integers_have_limits_for_identities(backend):
    for dtype in ("int8", "uint8", "int32"):
        data, limits = np.ones(1, dtype), np.iinfo(dtype)
        assert value(mo.op_segment_max(data, [1], 2)).tolist() == [limits.min, 1]
        assert value(mo.op_segment_min(data, [1], 2)).tolist() == [limits.max, 1]
    assert value(mo.op_segment_max([True], [1], 2)).tolist() == [False, True]
    assert value(mo.op_segment_min([False], [1], 2)).tolist() == [True, False]


def test_many_small_halves_add_up(backend):
    found = mo.op_segment_sum(np.ones(4000, np.float16), np.zeros(4000, np.int32), 1)
    assert value(found).tolist() == [4000.0]
