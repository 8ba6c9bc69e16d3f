"""`tf.gradients`: TensorFlow's own in a graph, and built on the known tapes in eager mode."""

from __future__ import annotations

import ml_dtypes
import tensorflow as tf

from multiop import errors

from .. import _internals, _versions
from ..conversion import convert
from .tape import differentiate, known_tapes


def gradients(ys, xs, grad_ys, stop_gradients, aggregation_method, gate_gradients, colocate):
    if not tf.executing_eagerly():
        _internals.refuse_guarded(ys, xs, stop_gradients or ())
        return differentiate(
            tf.compat.v1.gradients, ys, xs, grad_ys, colocate_gradients_with_ops=colocate,
            gate_gradients=gate_gradients, aggregation_method=aggregation_method, stop_gradients=stop_gradients or None,
        )  # fmt: skip
    if _internals.missing is not None:
        raise _versions.unknown("gradients of tensors on TensorFlow")
    tapes = [tape for tape in known_tapes() if tape.concerns(ys)]
    if not tapes:
        return None
    grads = [None] * len(xs)
    for tape in tapes:  # the first one entered has recorded most; a later one may watch what the first does not
        found = (
            _gradients_with_stops(tape, ys, xs, grad_ys, stop_gradients)
            if stop_gradients
            else tape.gradient(ys, xs, grad_ys)
        )
        grads = [new if old is None else old for old, new in zip(grads, found, strict=True)]
    return grads


def _gradients_with_stops(tape, ys, xs, grad_ys, stops):
    """Return the gradients of `xs` when nothing passes through `stops`.

    A tape cannot stop at a tensor. Instead, the gradient that arrives at a stop is subtracted from its seed until
    nothing is left to pass on; the sum of what was subtracted is the gradient of the stop itself.
    """
    stops = list({id(stop): convert(stop) for stop in stops}.values())
    arrived = [None] * len(stops)
    targets, seeds, settled = list(ys), list(grad_ys), False
    for _ in range(len(stops) + 8):  # a chain of stops settles link by link, rounding errors soon after
        found = tape.gradient(targets, [*xs, *stops], seeds)
        grads, left = found[: len(xs)], found[len(xs) :]
        moving = [i for i, grad in enumerate(left) if not _is_nothing(grad, arrived[i])]
        settled = not moving
        if settled:
            break
        for i in moving:
            arrived[i] = left[i] if arrived[i] is None else arrived[i] + left[i]
        held = [i for i, grad in enumerate(arrived) if grad is not None]
        targets, seeds = [*ys, *(stops[i] for i in held)], [*grad_ys, *(-arrived[i] for i in held)]
    passed_on = tape.gradient(stops, xs, [tf.zeros_like(stop) for stop in stops])
    behind = [i for i, grad in enumerate(passed_on) if grad is not None]
    connected = _depend_around_stops(tape, ys, [xs[i] for i in behind], stops) if behind else []
    if not settled or not all(_is_nothing(grad, None) for grad in passed_on):
        raise errors.UnsupportedError(
            "the gradients at or behind stop_gradients are not finite, and TensorFlow's eager tape cannot stop there: "
            "put op_stop_gradient in the computation, or compile it (https://www.tensorflow.org/api_docs/python/tf/gradients)"
        )
    for i, is_connected in zip(behind, connected, strict=True):
        grads[i] = grads[i] if is_connected else None  # a rounding error is not a gradient
    for i, x in enumerate(xs):
        for stop, grad in zip(stops, arrived, strict=True):
            if x is stop:
                grads[i] = grad
    return grads


def _depend_around_stops(tape, ys, xs, stops):
    """Say for each of `xs` whether `ys` depend on it by a path around `stops`, from the graph of the backward pass."""
    with _internals.without_running(), _internals.distinct_gradients():
        seeds = [tf.compat.v1.placeholder(y.dtype, y.shape) for y in ys]
        grads = tape.gradient_parts(ys, [*xs, *stops], seeds)
        reached = {_internals.tensor_id(seed) for seed in seeds}
        ends = {_internals.tensor_id(grad) for grad in grads[len(xs) :] if grad is not None}
        for op in _internals.current_graph().get_operations():
            if not reached.isdisjoint({*map(_internals.tensor_id, op.inputs)} - ends):
                reached.update(map(_internals.tensor_id, op.outputs))
    return [grad is not None and _internals.tensor_id(grad) in reached for grad in grads[: len(xs)]]


def _is_nothing(grad, total):
    """Say whether `grad` is zero, or within the rounding error of `total`."""
    if grad is None:
        return True
    eps = ml_dtypes.finfo(grad.dtype.real_dtype.as_numpy_dtype).eps
    rounding = 0 if total is None else 8 * eps * tf.abs(total)
    return bool(tf.reduce_all(tf.abs(grad) <= rounding))
