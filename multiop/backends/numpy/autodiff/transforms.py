"""Transforms of flat functions, on top of reverse mode."""

from __future__ import annotations

import contextlib

import numpy as np

from multiop import errors

from .._record import Node, Owner, Traced, array_of, is_inexact, is_traced, now, ops
from ..conversion import own
from ._walk import between, history, leaf, settled, walk
from .custom_gradient import closed_over


def vjp(fun, primals, persistent=True):
    outputs, pullback, aux = record_run(fun, primals, persistent)
    apart = [Traced(y.array, *y.place) if is_traced(y) else y for y in outputs]  # one may become an `Output`
    return settled(apart), pullback, settled(aux) if aux else aux


def record_run(fun, primals, persistent=True):
    """Return what `vjp` does, its outputs and aux still as they were recorded."""
    with Owner(is_used_once=not persistent) as owner:
        leaves = [leaf(x, owner) for x in primals]
        outputs, aux = fun(*leaves)

    path = between({x.place for x in leaves}, history(outputs))

    def pullback(cotangents):
        return walk(outputs, cotangents, leaves, once=None if persistent else owner, path=path, settle=True)

    return outputs, pullback, aux


def jvp(fun, primals, tangents):
    """Forward mode: the pullback is linear in the cotangents, and the pullback of that is the Jacobian again."""
    outputs, pullback, aux = record_run(fun, primals)
    where = [k for k, y in enumerate(outputs) if is_inexact(y)]

    def pull(*cotangents):
        given = dict(zip(where, cotangents, strict=True))
        return pullback([given.get(k) for k in range(len(outputs))]), []

    inexact = [outputs[k] for k in where]
    cotangents, others = anything_like(inexact, 1), anything_like(inexact, 40)
    pulled, push, _ = vjp(pull, cotangents)
    pushed = push(tangents)
    if rules := sorted({node.rule for node in history(outputs) if node.rule}):
        # not along the given tangents, which may be those along which it fits
        along = [y if array_of(t).any() else t for t, y in zip(tangents, anything_like(tangents, 7), strict=True)]
        refuse_not_linear(rules, [cotangents, others], [pulled, pull(*others)[0]], along, push(along))
    given = dict(zip(where, pushed, strict=True))
    out_tangents = [given[k] if k in given else np.zeros(y.shape, y.dtype) for k, y in enumerate(outputs)]
    return settled(outputs), out_tangents, settled(aux)


def linearize(fun, primals):
    """Return the outputs and aux of a function without a rule, its pullback, and what makes its map of tangents."""
    outputs, pullback, aux = record_run(fun, primals)
    if not has_native_derivatives(outputs):
        return None

    def make_push():
        return vjp(lambda *cotangents: (pullback(cotangents), []), anything_like(outputs, 1))[1]

    return settled(outputs), settled(aux), pullback, make_push


def has_native_derivatives(ys):
    """Say whether nothing that `ys` came from has the rule of a custom gradient, whose transpose may not fit."""
    return not any(node.rule for node in history(ys))


def anything_like(xs, scale):
    """Return arrays of the shapes and dtypes of `xs` whose entries have nothing to do with each other, nor with 0."""
    rng = np.random.default_rng(scale)
    return [(scale * rng.choice([-1, 1], x.shape) * rng.uniform(0.1, 0.9, x.shape)).astype(x.dtype) for x in xs]


def refuse_not_linear(rules, cotangents, pulled, tangents, pushed):
    """Raise an error if a custom gradient's rule has no transpose: rows and columns of the Jacobian then differ.

    It is looked at for two lists of cotangents. What is linear and does not overflow is finite for both or neither.
    """
    is_half = any(y.dtype.itemsize == 2 for y in cotangents[0])
    rows, columns = [inner(y, tangents) for y in pulled], [inner(x, pushed) for x in cotangents]
    fits = is_half or (np.isfinite(rows[0]) == np.isfinite(rows[1])).all()
    allowed = 0.1 if is_half else 1e-3
    for row, column in zip(rows, columns, strict=True):
        fits = fits and not abs(row.sum() - column.sum()) > allowed * (np.abs(row).sum() + np.abs(column).sum())
    if not fits:
        raise errors.NonLinearRuleError.of(" or ".join(rules), "its transpose does not fit what it gives")


def inner(xs, ys):
    """Return the terms of the inner product of two lists of tensors."""
    with np.errstate(all="ignore"):
        products = [np.conj(array_of(x)) * array_of(y) for x, y in zip(xs, ys, strict=True)]
        return np.concatenate([[0.0], *(product.real.astype(np.float64).ravel() for product in products)])


def vmap(fun, in_axes, axis_size, is_linear=False):
    """Run `fun` row by row."""

    def mapped(*xs):
        columns = [x if axis is None else first(x, axis) for x, axis in zip(xs, in_axes, strict=True)]

        def row(k):
            return fun(*(x if axis is None else x[k, ...] for x, axis in zip(columns, in_axes, strict=True)))

        if axis_size:
            if axis_size == 1:
                return [ops.expand_dims(y, 0) for y in row(0)]
            return [ops.stack(list(entries), 0) for entries in zip(*map(row, range(axis_size)), strict=True)]
        columns = [
            x if axis is None else np.zeros((1, *x.shape[1:]), x.dtype)
            for x, axis in zip(columns, in_axes, strict=True)
        ]
        return [np.zeros((0, *y.shape), y.dtype) for y in row(0)]

    return mapped


def first(x, axis):
    """Return `x` with an axis moved to the front, in memory of its own."""
    return ops.moveaxis(x, axis, 0) if is_traced(x) else np.moveaxis(x, axis, 0).copy()


def jit(fun):
    """Return a function that runs `fun`: NumPy has no compiler."""

    def run(*tensors):
        outputs, finish = fun(*tensors)
        return finish(own(outputs, tensors))

    return run


def checkpoint(fun, primals):
    """Run `fun`, forget its record, and run it again for the way back."""
    start = now()
    outputs = fun(*primals)
    inputs, arrays = closed_over(outputs, start), own(list(map(array_of, outputs)), list(map(array_of, primals)))
    if not inputs:
        return arrays

    owners = {owner for x in inputs for owner in x.node.owners}

    def pull(upstreams):
        with contextlib.ExitStack() as stack:
            for owner in owners:
                if not owner.is_open:
                    stack.enter_context(owner)
            since, again = now(), fun(*primals)
        return walk(again, upstreams, inputs, (), history(again, since))  # not on, from one input to another

    node = Node(inputs, pull, arrays)
    return [Traced(y, node, k) if is_inexact(y) else y for k, y in enumerate(arrays)]
