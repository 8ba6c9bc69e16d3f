"""`tf.gradients`: TensorFlow's in a graph, and made of the known tapes where it runs eagerly."""

from __future__ import annotations

import tensorflow as tf

from multiop import errors

from .conversion import convert
from .tape import known_tapes


def gradients(ys, xs, grad_ys, stop_gradients, aggregation_method, gate_gradients, colocate):
    if not tf.executing_eagerly():
        found = tf.compat.v1.gradients(
            ys, xs, grad_ys, colocate_gradients_with_ops=colocate, gate_gradients=gate_gradients,
            aggregation_method=aggregation_method, stop_gradients=stop_gradients or None,
        )  # fmt: skip
        return [None if grad is None else tf.convert_to_tensor(grad) for grad in found]
    tapes = known_tapes()
    if not tapes:
        raise errors.ArgumentError(
            "ys were not computed under a GradientTape that is still recording or persistent; "
            "give a function of xs, or compute ys inside `with multiop.GradientTape() as tape:`"
        )
    grads = [None] * len(xs)
    for tape in tapes:  # the first entered has seen most; a later one may have been given what the first was not
        found = _stopped(tape, ys, xs, grad_ys, stop_gradients) if stop_gradients else tape.gradient(ys, xs, grad_ys)
        grads = [new if old is None else old for old, new in zip(grads, found, strict=True)]
    return grads


def _stopped(tape, ys, xs, grad_ys, stops):
    """Return the gradients where nothing passes through `stops`.

    A tape cannot be told to stop at a tensor. What arrives there is taken away from the seed instead until nothing
    arrives any more, and what was taken away is the gradient of the stopped tensor itself.
    """
    stops = list({id(stop): convert(stop) for stop in stops}.values())
    arrived = [None] * len(stops)
    targets, seeds = list(ys), list(grad_ys)
    for _ in range(64):
        found = tape.gradient(targets, [*xs, *stops], seeds)
        grads, arriving = found[: len(xs)], found[len(xs) :]
        fresh = [i for i, grad in enumerate(arriving) if grad is not None and bool(tf.reduce_any(grad != 0))]
        if not fresh:
            break
        for i in fresh:
            arrived[i] = arriving[i] if arrived[i] is None else arrived[i] + arriving[i]
        held = [i for i, grad in enumerate(arrived) if grad is not None]
        targets, seeds = [*ys, *(stops[i] for i in held)], [*grad_ys, *(-arrived[i] for i in held)]
    for i, x in enumerate(xs):
        for stop, grad in zip(stops, arrived, strict=True):
            if x is stop:
                grads[i] = grad
    return grads
