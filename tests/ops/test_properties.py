"""Differential tests: drawn shapes, axes and dtypes, against the NumPy reference of each op's row.

What the rows check at chosen inputs is checked here at inputs that nobody chose. The data come from the
rows' own samplers, which stay inside the op's domain.
"""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import multiop
from multiop import errors
from multiop.testing import _checks
from multiop.testing._case import call, samplers
from multiop.testing._problem import Problem
from multiop.testing._samplers import integers, normal
from multiop.testing._shared_process import x64_mode_for
from multiop.testing.cases import elementwise, logical, reduction, rows

ROWS = rows()
# the data are made from a seed and the examples are few: a run draws the same ones each time
drawn = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
seeds = st.integers(0, 2**16)
lengths = st.integers(0, 4)
shapes = st.lists(lengths, max_size=4).map(tuple)


def parameters(op):
    return list(inspect.signature(getattr(multiop, op)).parameters)


def operands(row):
    """Return the samplers of the first call of `row`, whose domains are those of the op's operands."""
    return samplers([row.calls[0].args, {}])


def compare(row, problem):
    """Hold an op against its reference; where NumPy refuses the input, multiop has to."""
    try:
        problem.apply(row.reference, problem.reference_arrays(floating=False))
    except (ValueError, IndexError):
        with pytest.raises(errors.MultiopError):
            problem.outputs(*map(multiop.op_convert_to_tensor, problem.arrays))
        return
    _checks.check_row_values(problem, row)


def check(row, one, dtype, seed):
    with x64_mode_for(dtype):
        compare(row, Problem(getattr(multiop, row.op), one, dtype=dtype, seed=seed, name=row.op))


def check_gradient(row, one, seed):
    with x64_mode_for("float64"):
        problem = Problem(getattr(multiop, row.op), one, dtype="float64", seed=seed, name=row.op)
        if problem.is_differentiable:
            _checks.check_gradient(problem, row.reference, analytic=row.analytic)


# elementwise

ELEMENTWISE = [
    row
    for row in elementwise.ROWS + logical.ROWS
    if row.vmap and parameters(row.op) in (["x"], ["x1", "x2"]) and len(operands(row)) == len(parameters(row.op))
]


@st.composite
def broadcastable(draw, n):
    """Draw `n` shapes that broadcast: each takes the last axes of one shape, with some of length 1."""
    whole = draw(shapes)
    found = []
    for _ in range(n):
        kept = whole[draw(st.integers(0, len(whole))) :]
        found.append(tuple(1 if draw(st.booleans()) else length for length in kept))
    return found


@st.composite
def elementwise_calls(draw):
    row = draw(st.sampled_from(ELEMENTWISE))
    dtype = draw(st.sampled_from(row.dtypes))
    given_samplers = operands(row)
    resized = [
        dataclasses.replace(sampler, shape=shape)
        for sampler, shape in zip(given_samplers, draw(broadcastable(len(given_samplers))), strict=True)
    ]
    return row, call(*resized), dtype


@drawn
@given(elementwise_calls(), seeds)
def test_elementwise(backend, drawn_call, seed):
    check(*drawn_call, seed)


def test_elementwise_covers_the_family():
    assert {"op_add", "op_exp", "op_arctan2", "op_less", "op_isnan", "op_maximum"} <= {row.op for row in ELEMENTWISE}


# reductions

REDUCTIONS = [row for row in reduction.ROWS if parameters(row.op)[:3] == ["x", "axis", "keepdims"]]
ONE_AXIS = {"op_argmax", "op_argmin"}


@st.composite
def axes(draw, op, ndim):
    if not ndim:
        return None
    one = st.integers(-ndim, ndim - 1)
    if op in ONE_AXIS:
        return draw(st.none() | one)
    several = st.lists(st.integers(0, ndim - 1), max_size=ndim, unique=True).map(tuple)
    return draw(st.none() | one | several)


@st.composite
def reduction_calls(draw):
    row = draw(st.sampled_from(REDUCTIONS))
    dtype = draw(st.sampled_from(row.dtypes))
    shape = draw(shapes)
    options = {"axis": draw(axes(row.op, len(shape))), "keepdims": draw(st.booleans())}
    (sampler,) = operands(row)[:1]
    return row, call(dataclasses.replace(sampler, shape=shape), **options), dtype


@drawn
@given(reduction_calls(), seeds)
def test_reductions(backend, drawn_call, seed):
    row, one, dtype = drawn_call
    with np.errstate(all="ignore"):
        check(row, one, dtype, seed)


@settings(drawn, max_examples=50)
@given(reduction_calls(), seeds)
def test_gradients_of_reductions(backend, drawn_call, seed):
    row, one, _ = drawn_call
    if 0 not in one.args[0].shape and row.differentiable:
        check_gradient(row, one, seed)


# shapes


def permutations(n):
    return st.permutations(range(n)).map(tuple)


@st.composite
def factors(draw, size):
    """Draw a shape of `size` entries, one length perhaps left to be found."""
    if size == 0:
        found = [*draw(st.lists(lengths, max_size=2)), 0]
        return tuple(draw(st.permutations(found)))
    found, left = [], size
    while left > 1:
        factor = draw(st.sampled_from([n for n in range(2, left + 1) if left % n == 0]))
        found.append(factor)
        left //= factor
    found = draw(st.permutations(found + [1] * draw(st.integers(0, 2))))
    if found and draw(st.booleans()):
        found[draw(st.integers(0, len(found) - 1))] = -1
    return tuple(found)


@st.composite
def arrangements(draw):
    """Draw a call of an op that arranges entries."""
    shape = draw(st.lists(lengths, min_size=1, max_size=4).map(tuple))
    n = len(shape)
    x, axis = normal(*shape), st.integers(-n, n - 1)
    options = {
        "op_reshape": lambda: call(x, draw(factors(int(np.prod(shape))))),
        "op_transpose": lambda: call(x, draw(st.none() | permutations(n))),
        "op_swapaxes": lambda: call(x, draw(axis), draw(axis)),
        "op_moveaxis": lambda: call(x, draw(axis), draw(axis)),
        "op_expand_dims": lambda: call(x, draw(st.integers(-n - 1, n))),
        "op_squeeze": lambda: call(x, draw(st.none() | axis)),
        "op_ravel": lambda: call(x),
        "op_flip": lambda: call(x, draw(st.none() | axis)),
        "op_roll": lambda: call(x, draw(st.integers(-5, 5)), axis=draw(st.none() | axis)),
        "op_repeat": lambda: call(x, draw(st.integers(0, 3)), axis=draw(st.none() | axis)),
        "op_tile": lambda: call(x, tuple(draw(st.lists(st.integers(0, 2), min_size=1, max_size=3)))),
        "op_pad": lambda: call(x, tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape)),
        "op_concatenate": lambda: call([x] * draw(st.integers(1, 3)), axis=draw(axis)),
        "op_stack": lambda: call([x] * draw(st.integers(1, 3)), axis=draw(st.integers(-n - 1, n))),
        "op_broadcast_to": lambda: call(x, (*draw(st.lists(lengths, max_size=2)), *shape)),
        "op_tril": lambda: call(normal(2, *shape), draw(st.integers(-3, 3))),
        "op_triu": lambda: call(normal(2, *shape), draw(st.integers(-3, 3))),
        "op_diagonal": lambda: call(normal(2, *shape), draw(st.integers(-1, 1))),
        "op_cumsum": lambda: call(x, axis=draw(st.none() | axis)),
        "op_sort": lambda: call(dataclasses.replace(operands(ROWS["op_sort"])[0], shape=shape), draw(axis)),
    }
    op = draw(st.sampled_from(sorted(options)))
    return ROWS[op], options[op](), draw(st.sampled_from(ROWS[op].dtypes))


@drawn
@given(arrangements(), seeds)
def test_shapes(backend, drawn_call, seed):
    check(*drawn_call, seed)


@settings(drawn, max_examples=50)
@given(arrangements(), seeds)
def test_gradients_of_shapes(backend, drawn_call, seed):
    row, one, _ = drawn_call
    if all(0 not in sampler.shape for sampler in samplers([one.args, {}])):
        check_gradient(row, one, seed)


# indexing


@st.composite
def index_calls(draw):
    """Draw a call of an op that picks entries."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    length = shape[axis]
    index_shape = draw(st.lists(lengths, max_size=2))
    if draw(st.booleans()):
        one = call(normal(*shape), integers(*index_shape, low=-length, high=length), axis=axis)
        return ROWS["op_take"], one, draw(st.sampled_from(ROWS["op_take"].dtypes))
    along = list(shape)
    along[axis] = draw(lengths)
    one = call(normal(*shape), integers(*along, low=-length, high=length), axis=axis)
    return ROWS["op_take_along_axis"], one, draw(st.sampled_from(ROWS["op_take_along_axis"].dtypes))


@drawn
@given(index_calls(), seeds)
def test_indexing(backend, drawn_call, seed):
    check(*drawn_call, seed)


@settings(drawn, max_examples=50)
@given(index_calls(), seeds)
def test_gradients_of_indexing(backend, drawn_call, seed):
    row, one, _ = drawn_call
    if all(0 not in sampler.shape for sampler in samplers([one.args, {}])):
        check_gradient(row, one, seed)


@st.composite
def keyed(draw):
    """Draw an array, a key of any kind for it, and a value that nearly always fits."""
    shape = draw(st.lists(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, 4), max_size=4))
    rng = np.random.default_rng(draw(seeds))
    index_shape = draw(st.sampled_from([(), (1,), (3,), (2, 1), (0,)]))
    key, dim = [], 0
    while dim < len(shape):
        n = shape[dim]
        kind = draw(st.sampled_from(["int", "slice", "slice", "index", "list", "mask", "None", "Ellipsis"]))
        if kind == "int":
            key.append(draw(st.integers(-n - (draw(st.integers(0, 19)) == 0), max(n - 1, -n))))
        elif kind == "slice":
            bound = st.none() | st.integers(-5, 5)
            key.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3, -1, -2, -3]))))
        elif kind in ("index", "list"):
            index = rng.integers(-n, max(n, 1 - n), draw(st.sampled_from([index_shape, (1,)])))
            key.append(index.tolist() if kind == "list" and index.ndim else index.astype(np.int32))
        elif kind == "mask":
            width = draw(st.integers(1, min(2, len(shape) - dim)))
            key.append(rng.integers(0, 2, shape[dim : dim + width]).astype(bool))
            dim += width - 1
        elif kind == "None":
            key.append(None)
            continue
        else:
            if Ellipsis not in [one for one in key if one is Ellipsis]:
                key.append(...)
            break
        dim += 1
    key = tuple(key[: draw(st.integers(0, len(key)))] if draw(st.booleans()) else key)
    key = key[0] if len(key) == 1 and draw(st.booleans()) else key
    x = rng.normal(size=shape).astype(np.float32)
    try:
        picked = x[key].shape
    except IndexError:
        picked = (2,)
    picked = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in picked[draw(st.integers(0, len(picked))) :])
    return x, key, rng.normal(size=picked + (draw(st.integers(0, 19)) == 0) * (3,)).astype(np.float32)


def check_key(x, key, value):
    """Hold each update against NumPy's, at the numbers of the places that `key` picks."""
    try:
        places = np.arange(x.size).reshape(x.shape)[key]
        spread = np.empty(places.shape, np.float32)
        spread[...] = value  # which may have more dimensions, of size 1
    except (IndexError, ValueError):
        with pytest.raises(errors.MultiopError):
            multiop.op_set_item(x, key, value)
        return
    for op, ufunc in UPDATES.items():
        expected = x.copy()
        if ufunc is None:
            expected[key] = spread
        else:
            ufunc.at(expected.reshape(-1), places, spread)
        found = multiop.op_convert_to_numpy(getattr(multiop, op)(x, key, value))
        np.testing.assert_allclose(found, expected, 1e-5, 1e-6, err_msg=op)


UPDATES = {
    "op_set_item": None,
    "op_add_at": np.add,
    "op_multiply_at": np.multiply,
    "op_maximum_at": np.maximum,
    "op_minimum_at": np.minimum,
}


@settings(drawn, max_examples=12)
@given(keyed())
def test_updates_by_key(backend, drawn_key):
    check_key(*drawn_key)


@pytest.mark.tier("full")
@settings(drawn, max_examples=400, derandomize=False)
@given(keyed())
def test_updates_by_many_keys(backend, drawn_key):
    check_key(*drawn_key)
