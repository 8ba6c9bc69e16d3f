"""Bad arguments: the same class of error on every backend, which names the op and the argument."""

import numpy as np
import pytest

import multiop as mo
from multiop import errors

X = np.ones((2, 3), np.float32)
I = np.ones((2, 3), np.int32)  # noqa: E741

AXIS = [
    ("op_sum", (X,), {"axis": (0, 0)}),
    ("op_sum", (X,), {"axis": (0, -2)}),
    ("op_softmax", (np.float32(1),), {}),
    ("op_concatenate", ([np.float32(1)],), {}),
    ("op_rot90", (X,), {"axes": (0, 0)}),
    ("op_rot90", (X,), {"axes": (0, -2)}),
    ("op_rot90", (X,), {"axes": (0, 2)}),
    ("op_expand_dims", (X,), {"axis": (0, 0)}),
    ("op_squeeze", (X,), {"axis": 0}),
    ("op_moveaxis", (X, (0, 1), 0), {}),
    ("op_transpose", (X,), {"axes": (0, 2)}),
    ("op_transpose", (X,), {"axes": (0,)}),
    ("op_transpose", (X,), {"axes": (0, 0)}),
]


@pytest.mark.parametrize(("op", "args", "kwargs"), AXIS)
def test_a_bad_axis(backend, op, args, kwargs):
    with pytest.raises(errors.ArgumentError, match=f"^{op}: .*ax[ei]s") as caught:
        getattr(mo, op)(*args, **kwargs)
    assert f"in {op}(" in str(caught.value)


@pytest.mark.parametrize("axis", [0.0, "0", True, [0.5], ("a",)])
@pytest.mark.parametrize("op", ["op_sum", "op_max", "op_flip", "op_squeeze", "op_softmax", "op_argmin"])
def test_an_axis_that_is_no_int(backend, op, axis):
    with pytest.raises(errors.ArgumentTypeError, match="axis must be an int"):
        getattr(mo, op)(X, axis=axis)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("op_where", (X, np.ones(2, np.float32), X)),
        ("op_clip", (X, np.zeros(2, np.float32), 1.0)),
        ("op_matmul", (X, X)),
        ("op_matmul", (X, np.float32(1))),
        ("op_einsum", ("ij,ij->ik", X, X)),
        ("op_einsum", ("ij,jk->ik", X, X)),
        ("op_einsum", ("ij", X, X)),
        ("op_reshape", (X, (4, 2))),
        ("op_reshape", (X, (-1, -1))),
        ("op_reshape", (X, (-2, 3))),
        ("op_reshape", (X, (-1, 4))),
        ("op_broadcast_to", (X, (3, 2))),
        ("op_broadcast_to", (X, (3,))),
        ("op_concatenate", ([X, np.ones((2, 2), np.float32)],)),
        ("op_concatenate", ([X, np.ones(0, np.float32)],)),
        ("op_concatenate", ([np.ones(0, np.float32), X],)),
        ("op_concatenate", ([],)),
        ("op_stack", ([X, np.ones((2, 2), np.float32)],)),
        ("op_stack", ([],)),
        ("op_split", (X, 4)),
        ("op_split", (X, 0)),
        ("op_full", ((2, 2), [1, 2, 3])),
        ("op_zeros", ((2, -1),)),
        ("op_ones", (-1,)),
        ("op_eye", (-1,)),
        ("op_arange", (0, 1, 0)),
        ("op_max", (np.ones((0, 3), np.float32), 0)),
        ("op_min", (np.ones((0,), np.float32),)),
        ("op_argmax", (np.ones((0,), np.float32),)),
        ("op_argmin", (np.ones((3, 0), np.float32), 1)),
        ("op_where", (X, X)),
    ],
)
def test_shapes_that_do_not_fit(backend, op, args):
    with pytest.raises(errors.ArgumentError, match=f"^{op}: "):
        getattr(mo, op)(*args)


@pytest.mark.parametrize("shape", ["a", 1.5, (1.5,), (None,), (True,), None, {2, 3}, frozenset([2]), {2: 3}])
def test_a_shape_that_is_none(backend, shape):
    for op in (
        mo.op_zeros,
        mo.op_ones,
        lambda shape: mo.op_reshape(X, shape),
        lambda shape: mo.op_broadcast_to(X, shape),
    ):
        with pytest.raises(errors.ArgumentTypeError):
            op(shape)


@pytest.mark.parametrize("op", ["op_floor_divide", "op_mod"])
def test_an_integer_divided_by_0(backend, op):
    with pytest.raises(errors.ArgumentError, match="divided by 0"):
        getattr(mo, op)([5, 6], [0, 2])


@pytest.mark.traced
@pytest.mark.parametrize("op", ["op_floor_divide", "op_mod"])
def test_an_integer_divided_by_0_in_compiled_code(backend, op):
    compiled = mo.jit(lambda x, y: getattr(mo, op)(x, y))(
        mo.op_convert_to_tensor([5, 6]), mo.op_convert_to_tensor([0, 4])
    )
    assert mo.op_convert_to_numpy(compiled).tolist() == ([0, 1] if op == "op_floor_divide" else [0, 2])


def test_an_integer_to_a_negative_power(backend):
    for exponent in (-1, [-1, 2]):
        with pytest.raises(errors.ArgumentError, match="negative power"):
            mo.op_power([2, 3], exponent)


@pytest.mark.traced
def test_an_integer_to_a_negative_power_in_compiled_code(backend):
    compiled = mo.jit(lambda x, y: mo.op_power(x, y))(mo.op_convert_to_tensor([5, 6]), mo.op_convert_to_tensor([-1, 2]))
    assert mo.op_convert_to_numpy(compiled).tolist() == [0, 36]


@pytest.mark.traced
@pytest.mark.parametrize("op", ["op_power", "op_floor_divide", "op_mod", "op_fmod"])
def test_an_integer_that_compiled_code_knows(backend, op):
    x, wrong = mo.op_convert_to_tensor([2, 3]), -1 if op == "op_power" else 0
    for known in (wrong, np.int32(wrong), [1, wrong], np.array([1, wrong], "int32")):
        with pytest.raises(errors.ArgumentError, match="negative power|divided by 0"):
            mo.jit(lambda x, known=known: getattr(mo, op)(x, known))(x)


@pytest.mark.parametrize("op", ["op_subtract", "op_negative", "op_sign"])
def test_bools_where_numbers_are_needed(backend, op):
    args = (True, False) if op == "op_subtract" else (True,)
    with pytest.raises(errors.DTypeError, match="bool"):
        getattr(mo, op)(*args)


def test_einsum_takes_no_other_keyword(backend):
    with pytest.raises(errors.ArgumentTypeError, match="unexpected keyword 'order'"):
        mo.op_einsum("ij", X, order="C")


def test_a_sequence_is_needed(backend):
    for op in (mo.op_concatenate, mo.op_stack):
        with pytest.raises(errors.ArgumentTypeError, match="sequence"):
            op(3)


def test_the_message_names_every_argument(backend):
    with pytest.raises(errors.ArgumentError) as caught:
        mo.op_sum(mo.op_convert_to_tensor(X), axis=7, keepdims=True)
    assert "op_sum(x=float32[2, 3], axis=7, keepdims=True, dtype=None)" in str(caught.value)
    assert "axis 7 is out of range for a tensor of 2 dimensions" in str(caught.value)


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        ("op_take", (X, [0, 2]), {"axis": 0}),
        ("op_take", (X, -7), {}),
        ("op_take_along_axis", (X, [[2, 0, 0]]), {"axis": 0}),
        ("op_take_along_axis", (X, [0]), {"axis": 0}),
        ("op_searchsorted", (X, 1.0), {}),
        ("op_pad", (X, ((1, 1), (1, 1), (1, 1))), {}),
        ("op_pad", (X, -1), {}),
        ("op_pad", (X, 1), {"mode": "edge", "constant_values": 1}),
        ("op_pad", (X[:0], 1), {"mode": "reflect"}),
        ("op_roll", (X, (1, 2, 3)), {"axis": (0, 1)}),
        ("op_tile", (X, -1), {}),
        ("op_repeat", (X, [1, 2]), {"axis": 1}),
        ("op_unstack", (X,), {"num": 3}),
        ("op_diagonal", (X,), {"axis1": 1}),
        ("op_diagonal", (X[0],), {}),
        ("op_trace", (X[0],), {}),
        ("op_diag", (np.float32(1),), {}),
        ("op_tril", (X[0],), {}),
        ("op_triu", (X[0],), {}),
        ("op_diff", (X,), {"n": -1}),
        ("op_array_split", (X, 0), {}),
        ("op_hstack", ([],), {}),
    ],
)
def test_options_and_indices_that_are_not_accepted(backend, op, args, kwargs):
    with pytest.raises(errors.ArgumentError):
        getattr(mo, op)(*args, **kwargs)


def test_indices_have_to_be_integers(backend):
    for indices in ([0.0], [True]):
        with pytest.raises(errors.DTypeError, match="indices must be integers"):
            mo.op_take(X, indices)


@pytest.mark.traced
def test_a_bad_index_in_compiled_code_is_blank(backend):
    indices = mo.op_convert_to_tensor([0, 5, -1])

    def f(x, i):
        return mo.op_take(x, i), mo.op_take_along_axis(x, i)

    for found in mo.jit(f)(mo.op_convert_to_tensor([1.0, 2.0]), indices):
        np.testing.assert_array_equal(mo.op_convert_to_numpy(found), [1.0, np.nan, 2.0])
    for found in mo.jit(f)(mo.op_convert_to_tensor([1, 2]), indices):
        assert mo.op_convert_to_numpy(found).tolist() == [1, 0, 2]


def test_a_mapped_pad_keeps_its_constant(backend):
    mapped = mo.vmap(lambda x: mo.op_pad(x, 1, constant_values=7))(mo.op_ones((2, 1)))
    assert mo.op_convert_to_numpy(mapped).tolist() == [[7.0, 1.0, 7.0]] * 2


@pytest.mark.parametrize(("shape", "newshape"), [((0, 3), (0, -1)), ((2, 0), (-1, 0)), ((0,), (3, 0, -1))])
def test_a_size_that_is_left_open_beside_a_zero_raises(backend, shape, newshape):
    with pytest.raises(ValueError, match="reshape"):
        np.zeros(shape).reshape(newshape)
    with pytest.raises(errors.ArgumentError, match="^op_reshape: newshape"):
        mo.op_reshape(mo.op_zeros(shape), newshape)
    assert tuple(mo.op_reshape(mo.op_zeros((0, 3)), (-1, 3)).shape) == (0, 3)
