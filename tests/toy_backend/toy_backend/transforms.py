"""Transforms of flat functions, on top of reverse mode."""

import math

import numpy as np

from multiop import errors, extend

from .conversion import Tensor, dtype_name
from .gradients import history, leaf, now, settled, walk
from .shapes import op_stack, op_unstack


def vjp(fun, primals, persistent=True):
    outputs, pullback, aux, span = followed(fun, primals)
    return settled(outputs, span), pullback, settled(aux, span)


def followed(fun, primals):
    """Return what `vjp` does, its outputs and aux still as they were recorded, and when that was."""
    start = now()
    leaves = [leaf(x) for x in primals]
    outputs, aux = fun(*leaves)
    span = start, now()

    def pullback(cotangents):
        start = now()
        grads = walk(outputs, cotangents, leaves)
        found = [zeros_like(x) if g is None else g for x, g in zip(leaves, grads, strict=True)]
        return settled(found, span, (start, math.inf))

    return outputs, pullback, aux, span


def jvp(fun, primals, tangents):
    """Forward mode: the pullback is linear in the cotangents, and the pullback of that is the Jacobian again."""
    outputs, pullback, aux, span = followed(fun, primals)
    where = [k for k, y in enumerate(outputs) if dtype_name(y) in extend.INEXACT]

    def pull(*cotangents):
        given = dict(zip(where, cotangents, strict=True))
        return pullback([given.get(k) for k in range(len(outputs))]), []

    inexact = [outputs[k] for k in where]
    _, push, _ = vjp(pull, [zeros_like(y) for y in inexact])
    pushed = settled(push(tangents), (span[0], math.inf))
    refuse_not_linear(pull, inexact, tangents, pushed)
    found = dict(zip(where, pushed, strict=True))
    out_tangents = [found[k] if k in found else zeros_like(y) for k, y in enumerate(outputs)]
    return settled(outputs, span), out_tangents, settled(aux, span)


def refuse_not_linear(pull, outputs, tangents, pushed):
    """Raise an error if a custom gradient's rule has no transpose: rows and columns of the Jacobian then differ."""
    rules = sorted({node.rule for node in history(outputs) if node.rule})
    if not rules:
        return
    cotangents = [Tensor((100 * np.cos(1 + np.arange(y.array.size))).reshape(y.shape).astype(y.dtype)) for y in outputs]
    rows, columns = inner(pull(*cotangents)[0], tangents), inner(cotangents, pushed)
    allowed = 0.1 if any(y.dtype.itemsize == 2 for y in outputs) else 1e-3
    sizes = [np.abs(entries).sum() for entries in (rows, columns, *(x.array for x in tangents))]
    if abs(rows.sum() - columns.sum()) > allowed * sum(sizes):
        raise errors.NonLinearRuleError(
            f"forward mode needs a gradient function that is linear in its upstream gradient; that of one of "
            f"{', '.join(rules)} is not"
        )


def inner(xs, ys):
    """Return the terms of the inner product of two lists of tensors."""
    with np.errstate(all="ignore"):
        products = [np.conj(x.array) * y.array for x, y in zip(xs, ys, strict=True)]
        return np.concatenate([[0.0], *(product.real.astype(np.float64).ravel() for product in products)])


def vmap(fun, in_axes, axis_size, is_linear=False):
    """Run `fun` entry by entry."""

    def mapped(*xs):
        each = [
            [x] * axis_size if axis is None else op_unstack(x, None, axis) for x, axis in zip(xs, in_axes, strict=True)
        ]
        results = [fun(*[entries[i] for entries in each]) for i in range(axis_size)]
        return [op_stack(entries, 0) for entries in zip(*results, strict=True)]

    return mapped


def jit(fun):
    """Return a function that runs `fun`: NumPy has no compiler."""

    def compiled(*tensors):
        outputs, finish = fun(*tensors)
        return finish(outputs)

    return compiled


def checkpoint(fun, primals):
    """Run `fun` once, and keep its record: the toy does not save memory."""
    return list(fun(*primals))


def zeros_like(x):
    return Tensor(np.zeros(x.shape, x.dtype))
