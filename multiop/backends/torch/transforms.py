"""Transforms of flat functions."""

from __future__ import annotations

import torch
import torch.utils.checkpoint


def vjp(fun, primals):
    """Return the outputs of `fun`, their pullback, and the auxiliary outputs."""
    outputs, pull, aux = torch.func.vjp(fun, *primals, has_aux=True)

    def pullback(cotangents):
        return list(pull(list(cotangents)))

    return list(outputs), pullback, list(aux)


def jvp(fun, primals, tangents):
    outputs, out_tangents, aux = torch.func.jvp(fun, tuple(primals), tuple(tangents), has_aux=True)
    return list(outputs), list(out_tangents), list(aux)


def vmap(fun, in_axes, axis_size):
    return torch.vmap(fun, in_dims=tuple(in_axes))


def jit(fun):
    return torch.compile(fun)


def checkpoint(fun, primals):
    return list(torch.utils.checkpoint.checkpoint(fun, *primals, use_reentrant=False))
