"""Derivatives of products of matrices and of tensors."""

from __future__ import annotations

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
    terms, result = _args.labels(subscripts, [x.ndim for x in xs])
    return None, [
        of_operand(u, result, terms[:k] + terms[k + 1 :], xs[:k] + xs[k + 1 :], terms[k], x.shape)
        if isinstance(x, Traced)
        else None
        for k, x in enumerate(operands)
    ]


def of_operand(u, result, terms, others, term, shape):
    """Return the gradient of an operand: the product of `u` and the other ones, on the diagonal of repeated labels."""
    wanted, factors, fresh = "", list(map(conj, others)), _args.unused_letters("".join([result, *terms, term]))
    terms = [result, *terms]
    for label, size in zip(term, shape, strict=True):
        if label in wanted:  # twice in this operand
            twin = next(fresh)
            terms, factors, label = [*terms, label + twin], [*factors, np.eye(size, dtype=u.dtype)], twin
        elif not any(label in other for other in terms):  # summed over, in this operand alone
            terms, factors = [*terms, label], [*factors, np.ones(size, u.dtype)]
        wanted += label
    return ops.einsum(f"{','.join(terms)}->{wanted}", (u, *factors))
