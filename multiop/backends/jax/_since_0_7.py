"""JAX's parts as they are in 0.5 to 0.8."""

from __future__ import annotations

import jax
from jax._src.core import Primitive, jaxpr_as_fun
from jax._src.interpreters.ad import fallback_linearize_rule, primitive_linearizations
from jax._src.interpreters.mlir import register_lowering

from ._since_0_9 import lowering_by_trace, scan_sizes as scan_sizes, varying as varying


class Intercepted(Primitive):
    """A primitive with multiple results; if `intercept` returns results, they replace those of binding it."""

    multiple_results = True

    def bind_with_trace(self, trace, args, params):
        found = self.intercept(trace, args, params)
        return super().bind_with_trace(trace, args, params) if found is None else found


def register_linearization(primitive, rule):
    """Linearize `primitive` by `rule`, see `_since_0_9`."""

    def linearize(is_perturbed, *primals, **params):
        found = rule(is_perturbed, *primals, **params)
        return fallback_linearize_rule(primitive, is_perturbed, *primals, **params) if found is None else found

    primitive_linearizations[primitive] = linearize


def evaluate(closed, *args):
    """Return the results of a closed jaxpr."""
    return jaxpr_as_fun(closed)(*args)


def lower_as(primitive, program):
    """Lower `primitive` as the closed jaxpr `program(**params)`, see `_since_0_9`."""
    register_lowering(primitive, lowering_by_trace(program))


def vary(x, axes):
    """Return `x` as a value that varies along `axes` of a mesh."""
    return jax.lax.pvary(x, axes)
