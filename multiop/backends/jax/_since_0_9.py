"""JAX's parts as they are in 0.9 and 0.10."""

from __future__ import annotations

import jax
from jax._src.core import Primitive
from jax._src.interpreters.ad import fallback_linearize_rule, primitive_linearizations


class Intercepted(Primitive):
    """A primitive with multiple results; if `intercept` returns results, they replace those of binding it."""

    multiple_results = True

    def bind_with_trace(self, trace, args, avals, params, /):
        found = self.intercept(trace, args, params)
        return super().bind_with_trace(trace, args, avals, params) if found is None else found


def register_linearization(primitive, rule):
    """Linearize `primitive` by `rule`.

    The rule takes which operands are perturbed, the operands, and the parameters. It returns the outputs, which of them
    have a tangent, the residuals of the tangent map, and the tangent map; or `None` to use the jvp rule instead.
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
    """Return the axes of a mesh along which values of type `aval` vary in `shard_map`."""
    if hasattr(aval, "mat"):  # from 0.10 on
        return aval.mat.varying
    return getattr(aval, "vma", frozenset())  # from 0.6 on


def vary(x, axes):
    """Return `x` as a value that varies along `axes` of a mesh."""
    return jax.lax.pcast(x, axes, to="varying")
