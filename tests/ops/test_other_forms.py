"""Options and operands in forms that others take: ranges, lists of indices, large ints; and what no tensor can be."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import multiop
from multiop import array_api as xp, errors, ops

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7


def numpy(x):
    return np.asarray(multiop.op_convert_to_numpy(x))


# options

AXES = {  # an op of `X` and axes in some form, and NumPy's answer
    "transpose": (lambda x, form: ops.transpose(x, form([2, 1, 0])), X.T),
    "moveaxis": (lambda x, form: ops.moveaxis(x, form([0, 1]), form([1, 2])), np.moveaxis(X, (0, 1), (1, 2))),
    "tensordot": (lambda x, form: ops.tensordot(x, x, (form([0, 1, 2]), form([0, 1, 2]))), np.tensordot(X, X, 3)),
    "sum": (lambda x, form: ops.sum(x, form([0, 1])), X.sum((0, 1))),
    "max": (lambda x, form: ops.max(x, form([1, 2])), X.max((1, 2))),
    "logsumexp": (lambda x, form: ops.logsumexp(x, form([0, 1])), np.log(np.exp(X).sum((0, 1)))),
    "norm": (lambda x, form: ops.norm(x, axis=form([0, 1])), np.linalg.norm(X, axis=(0, 1))),
    "flip": (lambda x, form: ops.flip(x, form([0, 1])), np.flip(X, (0, 1))),
    "expand_dims": (lambda x, form: ops.expand_dims(x, form([0, 1])), X[None, None]),
    "squeeze": (lambda x, form: ops.squeeze(ops.reshape(x, (1, 1, 24)), form([0, 1])), X.reshape(24)),
    "roll": (lambda x, form: ops.roll(x, form([1, 2]), form([1, 2])), np.roll(X, (1, 2), (1, 2))),
    "fftn": (lambda x, form: ops.abs(xp.fft.fftn(x, axes=form([0, 1]))), np.abs(np.fft.fftn(X, axes=(0, 1)))),
    "reshape": (lambda x, form: ops.reshape(x, form([4, 3, 2])), X.reshape(4, 3, 2)),
    "median": (lambda x, form: ops.median(x, form([0, 1])), np.median(X, (0, 1))),
    "softmax": (lambda x, form: ops.softmax(x, form([1, 2])), np.exp(X) / np.exp(X).sum((1, 2), keepdims=True)),
}
FORMS = {
    "range": lambda axes: range(
        axes[0], axes[-1] + (1 if axes[-1] >= axes[0] else -1), 1 if axes[-1] >= axes[0] else -1
    ),
    "deque": collections.deque,
    "UserList": collections.UserList,
}


@pytest.mark.parametrize("name", AXES)
def test_any_sequence_names_axes(backend, name):
    op, expected = AXES[name]
    for form in FORMS.values():
        np.testing.assert_allclose(numpy(op(X, form)), expected, rtol=2e-5, atol=2e-6)
    x = multiop.op_convert_to_tensor(X)
    np.testing.assert_allclose(
        numpy(multiop.vjp(lambda x: op(x, FORMS["range"]), x)[0]), expected, rtol=2e-5, atol=2e-6
    )


@pytest.mark.compiler
@pytest.mark.parametrize("name", ["transpose", "tensordot", "sum"])
def test_any_sequence_names_axes_in_compiled_code(backend, name):
    op, expected = AXES[name]
    np.testing.assert_allclose(numpy(multiop.jit(lambda x: op(x, FORMS["range"]))(X)), expected, rtol=2e-5, atol=2e-6)


EINSUM = {
    "product": ([0, 1, 2], [2, 3], [0, 1, 3]),
    "without a result": ([0, 1, 2], [2, 3]),
    "ellipsis": ([..., 1], [1, 0], [..., 0]),
    "beyond 26": ([50, 30, 2], [2, 3]),
    "tuples and ranges": (range(3), (2, 3), [3]),
    "ints of NumPy": (np.arange(3), list(np.arange(2, 4)), (np.int8(1), ...)),
}


@pytest.mark.parametrize("name", EINSUM)
def test_einsum_takes_lists_of_indices(backend, name):
    left, right, *out = EINSUM[name]
    y = X[0].T @ X[1]
    lists = [list(terms) for terms in out]
    expected = np.einsum(X, list(left), y, list(right), *lists)
    found = multiop.grad(lambda x: ops.sum(ops.einsum(x, left, y, right, *out)))(X)
    np.testing.assert_allclose(numpy(ops.einsum(X, left, y, right, *out)), expected, rtol=1e-5)
    ones = np.ones_like(expected)
    slope = multiop.vjp(lambda x: ops.einsum(x, left, y, right, *out), X)[1](ones)[0]
    np.testing.assert_allclose(numpy(found), numpy(slope), rtol=1e-5)


def test_einsum_refuses_other_indices(backend):
    for given in (
        (X, ["a", "b", "c"]),
        (X, [0, 1, 52]),
        (X, X, [0, 1]),
        (X, "ijk"),
        (X, [True, 1, 2]),
        (X, np.ones(3)),
        (X, np.ones(3, bool)),
        (X,),
    ):
        with pytest.raises(errors.ArgumentTypeError, match="op_einsum"):
            ops.einsum(*given)


# ints

LARGE = 2615348736000


@pytest.mark.usefixtures("multiop_x64")
def test_an_int_beyond_32_bits_has_64_in_the_64_bit_mode(backend):
    for x, expected in (
        (ops.array([LARGE]), [LARGE]),
        (ops.array([[1, 2], [3, -LARGE]]), [[1, 2], [3, -LARGE]]),
        (ops.array(-(2**31) - 1), -(2**31) - 1),
        (xp.asarray(LARGE), LARGE),
        (ops.full((2,), LARGE), [LARGE] * 2),
        (ops.add([1], [LARGE]), [LARGE + 1]),
        (ops.arange(LARGE, LARGE + 3), [LARGE, LARGE + 1, LARGE + 2]),
        (ops.arange(3, -LARGE, -LARGE), [3, 3 - LARGE]),
    ):
        assert numpy(x).tolist() == expected
    assert (
        ops.dtype(ops.array([LARGE]))
        == ops.dtype(ops.array(LARGE))
        == ops.dtype(ops.arange(LARGE, LARGE + 1))
        == "int64"
    )
    assert ops.dtype(ops.array([-(2**31), 2**31 - 1])) == ops.dtype(ops.arange(2**31 - 2, 2**31)) == "int32"
    assert ops.dtype(ops.array([0.5, LARGE])) == "float32"
    for x in ([2**63], 2**63, [2**64]):
        with pytest.raises(errors.ArgumentError, match="fit"):
            ops.array(x)


def test_an_int_beyond_32_bits_is_refused_in_the_32_bit_mode(backend):
    for call in (lambda: ops.array([LARGE]), lambda: ops.array(LARGE), lambda: ops.arange(LARGE, LARGE + 3)):
        with pytest.raises(errors.ArgumentError, match="int32"):
            call()


def test_arange_refuses_what_wraps_around(backend):
    for call in (lambda: ops.arange(0, 500, 100, "int8"), lambda: ops.arange(-1, 3, 1, "uint8")):
        with pytest.raises(errors.ArgumentError, match="fit"):
            call()
    assert numpy(ops.arange(0, 128, 100, "int8")).tolist() == [0, 100]


HUGE = {
    "tile": lambda: ops.tile(X[0, 0], 2**63),
    "tile twice": lambda: ops.tile(X[0, 0], [2**62, 4]),
    "tile within 64 bits": lambda: ops.tile(X[0, 0], 2**60),
    "repeat": lambda: ops.repeat(X[0, 0], 2**63),
    "repeat within 64 bits": lambda: ops.repeat(X[0, 0], 2**62),
    "repeat along an axis": lambda: ops.repeat(X, 2**63, 0),
    "repeat each": lambda: ops.repeat(X[0, 0], [2**63, 1, 1, 1]),
    "pad": lambda: ops.pad(X, 2**63),
    "pad each": lambda: ops.pad(X[0, 0], ((2**63, 0),)),
    "pad by edges": lambda: ops.pad(X[0, 0], 2**63, mode="edge"),
    "eye": lambda: ops.eye(2**63),
    "arange": lambda: ops.arange(0.0, 2**63, dtype="float32"),
    "a window": lambda: ops.hanning(2**63 - 1),
    "resampling": lambda: ops.image.scale_and_translate(X, (2**63 - 1, 1, 4), (1.0,), (0.0,), (0,), "linear"),
    "sum of gammas": lambda: ops.multigammaln(X, 2**63),
    "bincount": lambda: ops.bincount([0, 1], minlength=2**70),
    "sections": lambda: ops.array_split(X, 2**70),
    "places of different entries": lambda: ops.unique(X, size=2**63 - 1),
    "places of a triangle": lambda: ops.tril_indices(2**63 - 1, 0, 2),
}
FAR = (2**31, -(2**31) - 1, 2**32 + 1, 2**63 - 1, 2**70, -(2**70))
OFFSETS = {
    "diagonal": (lambda x, k: ops.diagonal(x, k), []),
    "trace": (lambda x, k: ops.trace(x, k), 0),
    "eye": (lambda x, k: ops.eye(3, 4, k), np.zeros((3, 4))),
    "tri": (lambda x, k: ops.tri(3, 4, k), lambda k: np.full((3, 4), float(k > 0))),
    "tril": (lambda x, k: ops.tril(x, k), lambda k: X[0] * (k > 0)),
    "triu": (lambda x, k: ops.triu(x, k), lambda k: X[0] * (k < 0)),
    "roll": (lambda x, k: ops.roll(x, k), lambda k: np.roll(X[0], k % 12)),
    "roll along axes": (
        lambda x, k: ops.roll(x, (k, 1), (0, 1)),
        lambda k: np.roll(np.roll(X[0], k % 3, 0), 1, 1),
    ),
    "rot90": (lambda x, k: ops.rot90(x, k), lambda k: np.rot90(X[0], k % 4)),
}
ENDING = {  # with which JAX ends the process, as jax.numpy does
    "zeros": lambda: ops.zeros((2**62, 8)),
    "ones": lambda: ops.ones((2**62, 8)),
    "full": lambda: ops.full((2**62, 8), 1.0),
    "broadcast_to": lambda: ops.broadcast_to(X[0, 0, 0], (2**62, 8)),
    "eye": lambda: ops.eye(2**40),
    "one_hot": lambda: ops.one_hot([1], 2**62),
}


@pytest.mark.parametrize("name", [*HUGE, *ENDING])
def test_a_size_that_no_machine_can_hold_is_refused(backend, name):
    known = (errors.ArgumentError, MemoryError) if name in ENDING else errors.ArgumentError
    if backend == "tensorflow" and name in ENDING:
        pytest.skip("TensorFlow says that it is out of memory, as for what a larger machine could hold")
    with pytest.raises(known):
        (HUGE | ENDING)[name]()


@pytest.mark.parametrize("name", OFFSETS)
def test_an_offset_far_beyond_the_tensor_is_taken_or_refused(backend, name):
    call, expected = OFFSETS[name]
    for k in FAR:
        wanted = expected(k) if callable(expected) else expected
        for compute in (lambda x, k=k: call(x, k), multiop.jit(lambda x, k=k: call(x, k))):
            try:
                found = numpy(compute(X[0]))
            except errors.ArgumentError:
                continue
            np.testing.assert_array_equal(found, wanted)
    assert numpy(ops.diff(X[0], 2**70)).shape == (3, 0)


def test_nothing_is_repeated(backend):
    empty = np.zeros((0, 3), np.float32)
    for x, counts, axis, shape in (
        (empty[:, 0], [], None, (0,)),
        (empty[:, 0], np.zeros(0, np.int32), None, (0,)),
        (empty, [], 0, (0, 3)),
        (empty.T, [1, 2, 3], 0, (6, 0)),
        (empty.astype("uint16"), [], 0, (0, 3)),
        (empty.astype("complex64"), [], 0, (0, 3)),
    ):
        y = ops.repeat(x, counts, axis)
        assert numpy(y).shape == shape and numpy(y).dtype == x.dtype
    assert numpy(multiop.grad(lambda x: ops.sum(ops.repeat(x, [])))(empty[:, 0])).shape == (0,)
    with pytest.raises(errors.ArgumentError, match="op_repeat"):
        ops.repeat(X[0, 0], [])


def test_a_tensor_is_no_size(backend):
    x = multiop.op_convert_to_tensor(np.array([1.0, 2.0], np.float32))
    with pytest.raises(errors.ArgumentTypeError, match=r"op_identity: n must be an int, got float32\[2\].*op_copy"):
        ops.identity(x)
    for call in (ops.eye, ops.zeros, ops.ones, lambda x: ops.full(x, 1.0), lambda x: ops.broadcast_to(1.0, x)):
        with pytest.raises(errors.ArgumentTypeError, match=r"must (hold ints|be an int)"):
            call(x)


# what no tensor can be


def endless():
    x = [1.0]
    x.append(x)
    return x


OF_LISTS = {
    "sum": ops.sum,
    "add": lambda x: ops.add(1.0, x),
    "stack": ops.stack,
    "concatenate": ops.concatenate,
    "where": lambda x: ops.where(True, x, 1.0),
    "matmul": lambda x: ops.matmul(x, x),
    "array": ops.array,
    "shape": ops.shape,
    "einsum": lambda x: ops.einsum("i->", x),
    "key": lambda x: ops.get_item(X, x),
    "zeros": ops.zeros,
    "axis": lambda x: ops.sum(X, x),
    "map": lambda x: multiop.op_map(lambda y: y, x),
    "cond": lambda x: multiop.op_cond(True, lambda: x, lambda: x),
    "grad": lambda x: multiop.grad(ops.sum)(x),
    "jvp": lambda x: multiop.jvp(ops.sin, (x,), (x,)),
    "vmap": lambda x: multiop.vmap(ops.sin)(x),
    "jit": lambda x: multiop.jit(ops.sin)(x),
    "stop_gradient": multiop.op_stop_gradient,
    "gradients": lambda x: multiop.gradients(lambda y: y, [x]),
    "tree": multiop.tree.flatten,
}


OF_ARRAYS = list(OF_LISTS)[:10]


@pytest.mark.parametrize("name", OF_LISTS)
def test_a_list_that_contains_itself_is_refused(backend, name):
    deep = 1.0
    for _ in range(1000):
        deep = [deep]
    for x in (endless(), (endless(),), deep) if name in OF_ARRAYS else (endless(), (endless(),)):
        with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError)) as caught:
            OF_LISTS[name](x)
        assert "recursion" not in str(caught.value)


def watched(x):
    with multiop.GradientTape() as tape:
        return tape.watch(x)


def rule_of(gradient):
    @multiop.op_custom_gradient
    def doubled(x):
        return x * 2, lambda u: gradient

    return multiop.grad(lambda x: ops.sum(doubled(x)))(SQUARE)


SQUARE = np.eye(2, dtype=np.float32)
OF_SPARSE = {
    "op": lambda s: ops.add(s, 1.0),
    "convert": multiop.op_convert_to_tensor,
    "in a list": lambda s: ops.stack([s, s]),
    "map": lambda s: multiop.op_map(lambda x: x, s),
    "result of map": lambda s: multiop.op_map(lambda x: s, SQUARE),
    "scan": lambda s: multiop.op_scan(lambda c, x: (c, x), s, SQUARE),
    "carry of scan": lambda s: multiop.op_scan(lambda c, x: (s, x), SQUARE, SQUARE),
    "while_loop": lambda s: multiop.op_while_loop(lambda x: True, lambda x: x, (s,), maximum_iterations=2),
    "cond": lambda s: multiop.op_cond(s, lambda: 1.0, lambda: 2.0),
    "grad": lambda s: multiop.grad(ops.sum)(s),
    "jvp": lambda s: multiop.jvp(ops.sin, (SQUARE,), (s,)),
    "pullback": lambda s: multiop.vjp(ops.sin, SQUARE)[1](s),
    "hvp": lambda s: multiop.hvp(ops.sum, (SQUARE,), (s,)),
    "vmap": lambda s: multiop.vmap(ops.sin)(s),
    "gradients": lambda s: multiop.gradients(ops.sin, [SQUARE], grad_ys=[s]),
    "watch": watched,
    "rule": rule_of,
    "attach_gradient": lambda s: multiop.op_attach_gradient(s, s, SQUARE),
}


@pytest.mark.parametrize("name", OF_SPARSE)
def test_a_sparse_matrix_is_refused_by_name(backend, name):
    sparse = pytest.importorskip("scipy.sparse")
    for kind in (sparse.csr_matrix, sparse.coo_array):
        with pytest.raises((errors.ArgumentTypeError, errors.GradientRuleError), match=kind.__name__):
            OF_SPARSE[name](kind(np.eye(2)))
