"""Control flow on flat lists of tensors: Python's own in eager mode, TensorFlow's in graphs."""

from __future__ import annotations

import tensorflow as tf

from multiop import errors
from multiop._values import args

from .. import _internals


def op_cond(pred, true_fn, false_fn):
    if isinstance(pred, bool) or tf.executing_eagerly():
        return true_fn() if pred else false_fn()
    return _build(lambda: tf.cond(pred, true_fn, false_fn))


def op_switch(index, branches):
    if isinstance(index, int) or tf.executing_eagerly():
        return branches[min(max(int(index), 0), len(branches) - 1)]()
    last = tf.constant(len(branches) - 1, index.dtype)
    index = tf.cast(tf.minimum(tf.maximum(index, tf.zeros([], index.dtype)), last), tf.int32)
    return _build(lambda: tf.switch_case(index, branches))


def _build(build):
    """Build branches in TensorFlow, which may fail one of its own assertions without a message."""
    try:
        return build()
    except AssertionError as error:
        at = error.__traceback__
        while at.tb_next is not None:
            at = at.tb_next
        if error.args or not at.tb_frame.f_globals.get("__name__", "").startswith((__name__, "tensorflow.")):
            raise  # raised by a branch itself
        raise errors.UnsupportedError(
            "in a branch, a gradient function or a checkpointed function closes over a tensor of the graph around the "
            "branch, and TensorFlow cannot find that when it differentiates the branch: pass it as an argument to the "
            "function (https://github.com/tensorflow/tensorflow/issues/44598)"
        ) from error


def op_while_loop(cond, body, xs, maximum_iterations):
    if not tf.executing_eagerly():
        return _loop(cond, body, xs, maximum_iterations)
    start, steps = xs, 0
    while steps != maximum_iterations and cond(*xs):
        xs, steps = body(*xs), steps + 1
    if not steps:
        args.check_unchosen(lambda: body(*start), run_without_values)
    return xs


def op_fori_loop(lower, upper, body, xs):
    is_static = isinstance(lower, int)
    dtype = tf.int32 if is_static else lower.dtype
    if not tf.executing_eagerly():
        state = _loop(
            lambda index, *xs: index < upper,
            lambda index, *xs: [index + 1, *body(index, *xs)],
            [tf.constant(lower) if is_static else lower, *xs],
            max(upper - lower, 0) if is_static else None,  # a compiled loop only has a gradient if this is known
        )
        return state[1:]
    indices = range(int(lower), int(upper))
    for index in indices:
        xs = body(tf.constant(index, dtype), *xs)
    if not indices:
        args.check_unchosen(lambda: body(tf.zeros([], dtype), *xs), run_without_values)
    return xs


def op_scan(f, init, xs, length, reverse, unroll):
    if tf.executing_eagerly() or (length is not None and (unroll is True or length <= unroll)):
        return _scan_by_python(f, init, xs, length, reverse)
    n = tf.shape(xs[0])[0] if length is None else length
    columns = [tf.TensorArray(x.dtype, n, element_shape=x.shape[1:]).unstack(x) for x in xs]
    rows = [
        tf.TensorArray(y.dtype, n, element_shape=y.shape) for y in run_without_values(lambda: _first_row(f, init, xs))
    ]

    def step(k, carry, rows):
        place = n - 1 - k if reverse else k
        carry, ys = f(carry, [column.read(place) for column in columns])
        return k + 1, carry, [row.write(place, y) for row, y in zip(rows, ys, strict=True)]

    state = (tf.constant(0), list(init), rows)
    _, carry, rows = tf.while_loop(lambda k, carry, rows: k < n, step, state, maximum_iterations=n)
    return carry, [row.stack() for row in rows]


def run_without_values(function):
    """Run a function without values; return its results as tensors without values."""
    with _internals.without_running():
        return function()


def _loop(cond, body, xs, maximum_iterations):
    def step(*inner):
        return [tf.ensure_shape(y, x.shape) for y, x in zip(body(*inner), xs, strict=True)]

    return tf.while_loop(cond, step, list(xs), maximum_iterations=maximum_iterations)


def _first_row(f, init, xs):
    """Return the first row of results, used for shapes and dtypes."""
    return f(init, [tf.zeros(tf.shape(x)[1:], x.dtype) for x in xs])[1]


def _scan_by_python(f, init, xs, length, reverse):
    columns = [tf.unstack(x, length) for x in xs]
    carry, rows = init, []
    for k in range(length)[:: -1 if reverse else 1]:
        carry, ys = f(carry, [column[k] for column in columns])
        rows.append(ys)
    if not rows:
        return carry, [tf.zeros((0, *y.shape), y.dtype) for y in run_without_values(lambda: _first_row(f, init, xs))]
    return carry, [tf.stack(column) for column in zip(*rows[:: -1 if reverse else 1], strict=True)]
