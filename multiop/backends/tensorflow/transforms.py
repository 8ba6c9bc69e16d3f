"""Transforms of functions of flat tensors."""

from __future__ import annotations

import tensorflow as tf

from .conversion import convert
from .custom_gradient import transposing


def vjp(fun, primals):
    inputs = [tf.identity(x) for x in primals]
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(inputs)
        outputs, aux = fun(*inputs)

    def pullback(cotangents):
        return _gradient(tape, outputs, inputs, cotangents)

    return outputs, pullback, aux


def _gradient(tape, targets, sources, cotangents):
    """Return the dense gradients of those targets that have one, zeros where unconnected."""
    pairs = [(y, ct) for y, ct in zip(targets, cotangents, strict=True) if y.dtype.is_floating or y.dtype.is_complex]
    found = tape.gradient([y for y, _ in pairs], sources, output_gradients=[ct for _, ct in pairs]) if pairs else [None] * len(sources)
    return [tf.zeros_like(x) if g is None else tf.convert_to_tensor(g) for g, x in zip(found, sources, strict=True)]


def jvp(fun, primals, tangents):
    # the transpose of the vjp: ForwardAccumulator loses what reaches it through tf.function or tf.cond
    outputs, pullback, aux = vjp(fun, primals)
    cotangents = [tf.zeros_like(y) for y in outputs]
    with tf.GradientTape(watch_accessed_variables=False) as tape, transposing():
        tape.watch([ct for ct in cotangents if ct.dtype.is_floating or ct.dtype.is_complex])
        grads = pullback(cotangents)
    return outputs, _gradient(tape, grads, cotangents, list(tangents)), aux


def vmap(fun, in_axes, axis_size):
    def mapped(*args):
        moved = [_move_to_front(x, axis) for x, axis in zip(args, in_axes, strict=True) if axis is not None]

        def one(slices):
            slices = iter(slices)
            return fun(*(x if axis is None else next(slices) for x, axis in zip(args, in_axes, strict=True)))

        return list(tf.vectorized_map(one, moved))

    return mapped


def _move_to_front(x, axis):
    x = convert(x)
    if axis == 0:
        return x
    axis %= x.shape.rank
    return tf.transpose(x, [axis, *(i for i in range(x.shape.rank) if i != axis)])


def jit(fun):
    return tf.function(fun, autograph=False)


def checkpoint(fun, primals):
    return list(tf.recompute_grad(fun)(*primals))
