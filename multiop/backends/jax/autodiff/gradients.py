"""`tf.gradients` on the tapes that recorded the tensors, active or finished."""

from __future__ import annotations

import jax.numpy as jnp

from multiop import errors

from .. import _versions


def gradients(ys, xs, grad_ys, stop_gradients, aggregation_method, gate_gradients, colocate):
    if not _versions.are_parts_known():
        raise _versions.unknown("gradients of tensors on JAX")
    from ._recording import is_recording
    from ._tape import backward, tapes_of

    tapes = tapes_of(ys)
    if not tapes and not is_recording():  # an unknown tensor is a constant to an active tape
        return None
    seeds = [None] * len(ys) if grad_ys is None else grad_ys
    for y, seed in zip(ys, seeds, strict=True):
        if seed is None and jnp.iscomplexobj(y):
            raise errors.DTypeError(
                f"ys of dtype {y.dtype} need grad_ys: the gradient of a complex number has no default"
            )
    return backward(tapes, ys, xs, seeds, stop_gradients or ())
