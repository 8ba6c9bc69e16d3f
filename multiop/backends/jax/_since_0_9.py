"""JAX's parts as they are in 0.9 and 0.10."""

from __future__ import annotations

import jax
from jax._src.core import Primitive
from jax._src.interpreters.ad import fallback_linearize_rule, primitive_linearizations


class Intercepted(Primitive):
    """A primitive with many results that may be bound in another way: as its `intercept` returns, if not `None`."""

    multiple_results = True

    def bind_with_trace(self, trace, args, avals, params, /):
        found = self.intercept(trace, args, params)
        return super().bind_with_trace(trace, args, avals, params) if found is None else found


def register_linearization(primitive, rule):
    """Linearize `primitive` by `rule`.

    It takes which operands are perturbed, the operands, and the parameters. It returns the outputs, which of them have
    a tangent, what the tangent map needs, and the tangent map; or `None` for what the rule of forward mode says.
    """

    def linearize(is_vjp, is_perturbed, *primals, **params):
        found = rule(is_perturbed, *primals, **params)
        if found is None:
            return fallback_linearize_rule(primitive, is_vjp, is_perturbed, *primals, **params)
        return found

    primitive_linearizations[primitive] = linearize


def scan_sizes(params):
    """Return how many constants and how many carried values a scan has."""
    return params["num_consts"], params["num_carry"]


def varying(aval):
    """Return the axes of a mesh along which `shard_map` holds values of type `aval` that differ."""
    return aval.mat.varying if hasattr(aval, "mat") else aval.vma  # `mat` from 0.10 on


def vary(x, axes):
    """Return `x` as one that differs along `axes` of a mesh."""
    return jax.lax.pcast(x, axes, to="varying")
