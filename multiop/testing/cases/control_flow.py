"""Rows of control flow.

The functions in them only use operators, so that they take NumPy arrays and the tensors of every framework.
"""

from __future__ import annotations

import functools

import numpy as np
from optree.functools import partial

from multiop import tree as _tree

from .._case import FLOATING, call, pin, row
from .._samplers import booleans, integers, normal, positive, unit


def _stack(trees):
    """Return one pytree with the leaves of several stacked."""
    columns = zip(*[_tree.leaves(tree) for tree in trees], strict=True)
    stacked = [None if column[0] is None else np.stack(column) for column in columns]
    return _tree.unflatten(_tree.flatten(trees[0])[1], stacked)


def _flat(tree):
    found = [leaf for leaf in _tree.leaves(tree) if leaf is not None]
    return tuple(found) if len(found) > 1 else found[0]


def _cond(pred, true_fn, false_fn, *operands):
    return _flat((true_fn if pred else false_fn)(*operands))


def _switch(index, branches, *operands):
    return _flat(branches[min(max(int(index), 0), len(branches) - 1)](*operands))


def _while_loop(cond, body, loop_vars, maximum_iterations=None):
    steps = 0
    while steps != maximum_iterations and cond(*loop_vars):
        loop_vars, steps = body(*loop_vars), steps + 1
    return _flat(loop_vars)


def _fori_loop(lower, upper, body_fun, init_val):
    for index in range(int(lower), int(upper)):
        init_val = body_fun(index, init_val)
    return _flat(init_val)


def _scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    n = length if length is not None else len(_tree.leaves(xs)[0])
    carry, ys = init, []
    for k in range(n)[:: -1 if reverse else 1]:
        carry, y = f(carry, _tree.map(lambda x, k=k: None if x is None else x[k], xs))
        ys.append(y)
    return _flat((carry, _stack(ys[:: -1 if reverse else 1])))


def _associative_scan(f, elems, reverse=False, axis=0):
    axis %= _tree.leaves(elems)[0].ndim
    n = _tree.leaves(elems)[0].shape[axis]
    entries = [_tree.map(lambda x, k=k: np.take(x, k, axis), elems) for k in range(n)[:: -1 if reverse else 1]]
    found = entries[:1]
    for entry in entries[1:]:
        found.append(f(found[-1], entry))
    return _flat(_tree.map(lambda x: np.moveaxis(x, 0, axis), _stack(found[:: -1 if reverse else 1])))


def _map(f, xs):
    return _flat(_stack([f(_tree.map(lambda x, k=k: x[k], xs)) for k in range(len(_tree.leaves(xs)[0]))]))


def _vectorize(pyfunc, excluded=None, signature=None):
    return np.vectorize(pyfunc, excluded=excluded, signature=signature)


def _square(x):
    return x * x


def _cube(x):
    return x * x * x


def _product_and_sum(a, b):
    return {"p": a["p"] * b["p"], "s": a["s"] + a["p"] * b["s"]}


def _operand(dtypes):
    """The dtype of the last operand."""
    return dtypes[-1]


of_trees = functools.partial(row, dtypes=("int32", *FLOATING), returns=_operand)

ROWS = [
    row(
        "op_cond",
        _cond,
        call(booleans(), partial(_square, normal(3)), partial(_cube, unit(3))),
        call(True, lambda: 1.0, lambda: 2.0),
        call(booleans(), lambda x, y: (x, y["k"]), lambda x, y: (x * y["k"], x), normal(2), {"k": normal(2)}),
        call(
            False,
            partial(lambda x, y: {"a": x * y, "b": None}, normal(2), normal(2)),
            partial(lambda x: {"a": x, "b": None}, normal(2)),
        ),
        returns=lambda dtypes: dtypes[-1] if len(dtypes) > 1 else "float32",
    ),
    row(
        "op_switch",
        _switch,
        call(integers(low=-1, high=4), [_square, _cube, lambda x: -x], unit(3)),
        call(1, (lambda x, y: (x, y["k"]), lambda x, y: (x * y["k"], y["k"] * y["k"])), normal(2), {"k": normal()}),
        call(7, [lambda x: x, lambda x: x * x], normal(2)),
        returns=_operand,
    ),
    row(
        "op_while_loop",
        _while_loop,
        call(
            lambda i, x: i < 3, lambda i, x: (i + 1, x * x - x), (integers(low=0, high=3), integers(3, low=-3, high=4))
        ),
        call(lambda x: x < 1000, lambda x: (x * 3,), [integers(low=1, high=9)], maximum_iterations=3),
        call(lambda x: x < 0, lambda x: [x * 3], (integers(low=1, high=9),)),
        dtypes=("int32",),
        differentiable=False,
        pins=[
            pin(lambda x: x < 50.0, lambda x: x * 2.0, 1.5, value=96.0),
            pin(lambda x: x < 50.0, lambda x: x * 2.0, np.nan, value=np.nan),
        ],
    ),
    row(
        "op_fori_loop",
        _fori_loop,
        call(0, 3, lambda i, x: x * x + 0.5, unit(2)),
        call(-1, 2, lambda i, state: {"x": state["x"] * state["y"], "y": state["y"]}, {"x": normal(2), "y": unit(2)}),
        call(2, 2, lambda i, x: x * x, normal(2)),
        ulps=16.0,
        returns=_operand,
    ),
    row(
        "op_scan",
        _scan,
        call(lambda c, x: (c * x, c + x), unit(), unit(4)),
        call(
            lambda c, x: (c * x["a"], {"y": c + x["b"], "none": None}),
            unit(2),
            {"a": unit(3, 2), "b": normal(3)},
            reverse=True,
        ),
        call(lambda c, _: (c * c, (c, c + 1)), unit(2), length=3, unroll=2),
        call(lambda c, x: (None, x * x), None, unit(3), unroll=True),
        ulps=16.0,
        returns=_operand,
    ),
    of_trees(
        "op_associative_scan",
        _associative_scan,
        call(lambda a, b: a * b, positive(5)),
        call(lambda a, b: a + b, normal(2, 4), axis=-1, reverse=True),
        call(_product_and_sum, {"p": unit(3, 2), "s": normal(3, 2)}),
        call(lambda a, b: a * b, normal(1, 2)),
        ulps=32.0,
        pins=[pin(lambda a, b: a + b, [1.0, np.inf, -np.inf, 2.0], value=[1.0, np.inf, np.nan, np.nan])],
    ),
    of_trees(
        "op_map",
        _map,
        call(_cube, unit(3, 2)),
        call(lambda pair: (pair[0] * pair[1], -pair[1]), (normal(3), normal(3))),
    ),
    of_trees(
        "op_vectorized_map",
        _map,
        call(_cube, unit(3, 2)),
        call(lambda pair: {"a": pair[0] * pair[1]}, [normal(3), normal(3)]),
    ),
    of_trees(
        "op_vectorize",
        _vectorize,
        call(lambda x, y: x * y + x).on(normal(3, 1), normal(2)),
        call(lambda x, y: x * y[0], excluded={1}).on(normal(2), np.array([1.0, 2.0])),
        call(lambda x, y: (x[0] * y, y[0] * x[1]), signature="(2),(n)->(n),()").on(normal(2, 1, 2), normal(3)),
        call(lambda x: x * x).on(normal()),
        returns=lambda dtypes: dtypes[0],
    ),
]
