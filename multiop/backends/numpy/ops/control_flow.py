"""Control flow on flat lists of tensors: Python's own."""

from __future__ import annotations

import numpy as np

from multiop._values import host

from .._record import Traced, ops


def op_cond(pred, true_fn, false_fn):
    return copy_results(true_fn() if pred else false_fn())


def op_switch(index, branches):
    return copy_results(branches[min(max(int(index), 0), len(branches) - 1)]())


def op_while_loop(cond, body, xs, maximum_iterations):
    steps, maximum_iterations = 0, 1 if host.made_up.is_on else maximum_iterations
    while steps != maximum_iterations and cond(*xs):
        xs = body(*xs)
        steps += 1
    return xs


def op_fori_loop(lower, upper, body, xs):
    for index in range(int(lower), int(upper)):
        xs = body(np.asarray(index, np.int32 if isinstance(lower, int) else lower.dtype), *xs)
    return xs


def op_scan(f, init, xs, length, reverse, unroll):
    columns, carry, rows = [ops.unstack(x, length, 0) for x in xs], init, []
    for k in range(length)[:: -1 if reverse else 1]:
        carry, ys = f(carry, [column[k] for column in columns])
        rows.append(ys)
    if not rows:
        ys = f(init, [np.zeros(x.shape[1:], x.dtype) for x in xs])[1]
        return carry, [np.zeros((0, *y.shape), y.dtype) for y in ys]
    return carry, [ops.stack(column, 0) for column in zip(*rows[:: -1 if reverse else 1], strict=True)]


def copy_results(ys):
    """Return the results of a branch in memory of their own: it may have returned what it closes over."""
    return [y if isinstance(y, Traced) else np.array(y) for y in ys]
