"""Gradients of tensors that an active or finished tape saw computed."""

from __future__ import annotations

from multiop import errors

from .tape import backward, tapes_of


def gradients(ys, xs, grad_ys, stop_gradients, aggregation_method, gate_gradients, colocate):
    tapes = tapes_of(ys)
    if not tapes:
        raise errors.ArgumentError(
            "ys were not computed from a watched value under a GradientTape, and JAX keeps no record of its own: compute them inside "
            "`with GradientTape() as tape:` from `x = tape.watch(x)`, or give a function of xs as ys"
        )
    return backward(tapes, ys, xs, [None] * len(ys) if grad_ys is None else grad_ys, stop_gradients or ())
