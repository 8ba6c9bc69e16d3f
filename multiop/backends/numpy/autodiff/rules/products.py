"""Derivatives of products of matrices and of tensors."""

from __future__ import annotations

import functools

import numpy as np

from multiop._values import args as _args

from ..._record import Traced, array_of, is_traced, ops
from ...conversion import convert
from .formula import conj, reshape_gradient


def adjoint(x):
    return conj(ops.swapaxes(x, -1, -2) if isinstance(x, Traced) else x.swapaxes(-1, -2))


def of_first(u, _y, like1, x2):
    x2 = convert(x2)
    u = expanded(expanded(u, -1, x2.ndim), -2, like1.ndim)
    return ops.matmul(contiguous(u), adjoint(expanded(x2, 1, x2.ndim)))


def of_second(u, _y, x1, like2):
    x1 = convert(x1)
    if x1.ndim == 2 and like2.ndim == 1:
        return ops.matmul(adjoint(x1), contiguous(u))
    u = expanded(expanded(u, -1, like2.ndim), -2, x1.ndim)
    grad = ops.matmul(adjoint(expanded(x1, 0, x1.ndim)), contiguous(u))
    return reshape_gradient(grad, grad.shape[:-1]) if like2.ndim == 1 else grad


op_matmul = (of_first, of_second)


def expanded(x, axis, ndim):
    """Return `x` with one dimension more, which a vector beside it lacks."""
    return x if ndim > 1 else ops.expand_dims(x, axis) if isinstance(x, Traced) else np.expand_dims(x, axis)


def contiguous(u):
    """Return numbers that were spread in memory of their own, without which NumPy multiplies them slowly."""
    return u if isinstance(u, Traced) else np.asarray(u, order="C")


def op_einsum(u, subscripts, operands):
    xs = [convert(x if is_traced(x) else array_of(x)) for x in operands]
    shapes, factors, grads = tuple([x.shape for x in xs]), list(map(conj, xs)), []
    for k, x in enumerate(operands):
        if isinstance(x, (Traced, list, tuple)):
            plan, eyes, lengths = plan_of_operand(subscripts, shapes, k)
            fresh = [np.eye(n, dtype=u.dtype) for n in eyes] + [np.ones(n, u.dtype) for n in lengths]
            grads.append(ops.einsum(plan, (u, *factors[:k], *factors[k + 1 :], *fresh)))
        else:
            grads.append(None)
    return None, grads


@functools.lru_cache(1024)
def plan_of_operand(subscripts, shapes, k):
    """Return the sum of products that is the gradient of an operand: of the upstream, the others, and what is new.

    That is an identity for each label that this operand has twice, and ones for each that it has alone, by their sizes.
    """
    terms, result = _args.labels(subscripts, list(map(len, shapes)))
    term, others = terms[k], [result, *terms[:k], *terms[k + 1 :]]
    letters, wanted, twins, lone, eyes, lengths = _args.unused_letters("".join([*others, term])), "", [], [], [], []
    for label, size in zip(term, shapes[k], strict=True):
        if label in wanted:
            twin = next(letters)
            twins, eyes, label = [*twins, label + twin], [*eyes, size], twin
        elif not any(label in other for other in others):
            lone, lengths = [*lone, label], [*lengths, size]
        wanted += label
    return f"{','.join([*others, *twins, *lone])}->{wanted}", eyes, lengths
