"""JAX's parts as they are in 0.9 and 0.10."""

from __future__ import annotations

import jax
from jax._src import custom_derivatives, source_info_util
from jax._src.core import Literal, Primitive, jaxpr_as_fun, trace_ctx, typeof
from jax._src.interpreters.ad import fallback_linearize_rule, primitive_linearizations
from jax._src.interpreters.mlir import lower_fun, register_lowering
from jax._src.interpreters.partial_eval import DynamicJaxprTrace, DynamicJaxprTracer


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


def evaluate(closed, *args):
    """Return the results of a closed jaxpr; where it is traced, its equations are taken over as they are."""
    trace, jaxpr = trace_ctx.trace, closed.jaxpr
    # NumPy's arrays, and operands of other types than it was traced on, are for each operation to convert
    is_as_traced = None not in [getattr(x, "aval", None) for x in args] and list(map(typeof, args)) == closed.in_avals
    if type(trace) is not DynamicJaxprTrace or jaxpr.is_high or jaxpr.effects or not is_as_traced:
        return jaxpr_as_fun(closed)(*args)
    here = source_info_util.current()
    given = [trace.to_jaxpr_tracer(x, here) for x in (*closed.consts, *args)]
    tracers = dict(zip((*jaxpr.constvars, *jaxpr.invars), given, strict=True))

    def read(x):
        return DynamicJaxprTracer(trace, x.aval, x, here) if isinstance(x, Literal) else tracers[x]

    for eqn in jaxpr.eqns:
        avals, written = [x.aval for x in eqn.outvars], eqn.source_info
        source = written.replace(name_stack=here.name_stack + written.name_stack)
        operands = list(map(read, eqn.invars))
        results = trace.emit_eqn(operands, avals, eqn.primitive, eqn.params, eqn.effects, source, eqn.ctx)
        tracers.update(zip(eqn.outvars, results, strict=True))
    return list(map(read, jaxpr.outvars))


def lower_as(primitive, program):
    """Lower `primitive` as the closed jaxpr `program(**params)`, whose first results are its own."""
    by_trace = lowering_by_trace(program)

    def lower(context, *operands, **params):
        closed = program(**params)
        if closed.jaxpr.is_high:
            return by_trace(context, *operands, **params)
        found = custom_derivatives._custom_jvp_vjp_call_lowering(context, *operands, call_jaxpr=closed)
        return found[: len(context.avals_out)]

    register_lowering(primitive, lower)


def lowering_by_trace(program):
    """Return the lowering of a primitive as a closed jaxpr that is traced once more."""
    whole = lower_fun(lambda *operands, **params: jaxpr_as_fun(program(**params))(*operands))
    return lambda context, *operands, **params: whole(context, *operands, **params)[: len(context.avals_out)]


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
