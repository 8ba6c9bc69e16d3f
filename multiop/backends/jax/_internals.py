"""Every private part of JAX that this backend uses: the one place to look at when JAX changes.

What differs between the tested versions is in `_since_*`.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import weakref

import jax
import numpy as np
from jax._src import config, linear_util, util
from jax._src.ad_util import Zero as Zero, stop_gradient_p as stop_gradient_p
from jax._src.api_util import debug_info
from jax._src.array import ArrayImpl as ArrayImpl
from jax._src.callback import io_callback_p
from jax._src.core import (
    Jaxpr,
    Literal as Literal,
    Primitive as Primitive,
    ShapedArray as ShapedArray,
    Trace as Trace,
    Tracer as Tracer,
    escaped_tracer_error as escaped_tracer_error,
    eval_jaxpr as eval_jaxpr,
    eval_trace as eval_trace,
    extend_axis_env_nd,
    jaxpr_as_fun as jaxpr_as_fun,
    no_axis_name,
    pytype_aval_mappings as pytype_aval_mappings,
    set_current_trace as set_current_trace,
    trace_ctx as trace_ctx,
    typeof as typeof,
    unmapped_aval as unmapped_aval,
)
from jax._src.debugging import debug_callback_p
from jax._src.interpreters.ad import (
    JVPTrace as JVPTrace,
    LinearizeTrace,
    UndefinedPrimal as UndefinedPrimal,
    add_tangents as add_tangents,
    backward_pass as backward_pass,
    instantiate_zeros as instantiate_zeros,
    jvp_jaxpr as jvp_jaxpr,
    primitive_jvps as primitive_jvps,
    primitive_transposes as primitive_transposes,
)
from jax._src.interpreters.batching import (
    BatchTrace as BatchTrace,
    batch_jaxpr as batch_jaxpr,
    fancy_primitive_batchers as fancy_primitive_batchers,
)
from jax._src.interpreters.mlir import lower_fun as lower_fun, register_lowering as register_lowering
from jax._src.interpreters.partial_eval import (
    DynamicJaxprTrace as DynamicJaxprTrace,
    JaxprTrace as JaxprTrace,
    convert_constvars_jaxpr,
    dce_jaxpr as dce_jaxpr,
    trace_to_jaxpr_dynamic,
)
from jax._src.interpreters.pxla import shard_arg_handlers as shard_arg_handlers
from jax._src.lax.lax import _convert_element_type
from jax._src.sharding_impls import UNSPECIFIED as UNSPECIFIED

from multiop import errors

if jax.__version_info__ >= (0, 11):
    from jax.extend.core import ClosedJaxpr
else:
    from jax._src.core import ClosedJaxpr  # jax.extend imports Pallas, which takes 25 ms

if jax.__version_info__ >= (0, 7):
    from jax._src.pjit import jit_p as jit_p
else:
    from jax._src.pjit import pjit_p as jit_p  # noqa: F401

# up to 0.7.0, JAX's caches hold the last 2048 of their keys
weakref_cache_key_types = getattr(util, "weakref_cache_key_types", set())

if jax.__version_info__ >= (0, 11):
    from . import _since_0_11 as differing
elif jax.__version_info__ >= (0, 9):
    from . import _since_0_9 as differing
else:
    from . import _since_0_7 as differing

Intercepted = differing.Intercepted
register_linearization = differing.register_linearization
scan_sizes = differing.scan_sizes
evaluate, lower_as = differing.evaluate, differing.lower_as
varying, vary = differing.varying, differing.vary


def refuse_leaked(x):
    """Raise if tracer `x` belongs to a transformation that has ended."""
    if trace_ctx.trace is eval_trace or not x._trace.is_valid():
        raise escaped_tracer_error(x)


def without_effects(x):
    """Return a primitive's parameter with every `jax.debug` callback removed from its jaxprs.

    For code that runs an operation a second time. A side effect that cannot be removed raises.
    """
    if isinstance(x, (tuple, list)):
        entries = [without_effects(entry) for entry in x]
        return x if all(a is b for a, b in zip(entries, x, strict=True)) else type(x)(entries)
    if isinstance(x, ClosedJaxpr) and x.jaxpr is not x:  # from JAX 0.11 on, the two classes are one
        jaxpr = without_effects(x.jaxpr)
        return x if jaxpr is x.jaxpr else ClosedJaxpr(jaxpr, x.consts)
    if not isinstance(x, Jaxpr) or not x.effects:
        return x
    eqns = []
    for eqn in x.eqns:
        if eqn.primitive is io_callback_p:
            raise errors.UnsupportedError(
                "an io_callback inside a compiled function cannot be recorded: its gradient would run the callback "
                "again; take it out of the function, or use jax.debug.callback"
            )
        if eqn.primitive is debug_callback_p:
            continue
        if eqn.effects:
            params = {name: without_effects(value) for name, value in eqn.params.items()}
            inner = [value for value in params.values() if isinstance(value, (Jaxpr, ClosedJaxpr))]
            eqn = eqn.replace(params=params, effects=set().union(*(jaxpr.effects for jaxpr in inner)))
        eqns.append(eqn)
    return x.replace(eqns=eqns, effects=set().union(*(eqn.effects for eqn in eqns)))


def with_equations(x, changed, done):
    """Return a primitive's parameter with each equation of its jaxprs as `changed(equation, inside)` returns it.

    `inside` does the same for the parameters of that equation, and `done` keeps one result for each jaxpr.
    """
    if isinstance(x, (tuple, list)):
        entries = [with_equations(entry, changed, done) for entry in x]
        if all(a is b for a, b in zip(entries, x, strict=True)):
            return x
        return type(x)(*entries) if hasattr(x, "_fields") else type(x)(entries)
    if not isinstance(x, (Jaxpr, ClosedJaxpr)):
        return x
    if id(x) not in done:
        if isinstance(x, ClosedJaxpr) and x.jaxpr is not x:  # from JAX 0.11 on, the two classes are one
            jaxpr = with_equations(x.jaxpr, changed, done)
            result = x if jaxpr is x.jaxpr else ClosedJaxpr(jaxpr, x.consts)
        else:
            eqns = [changed(eqn, lambda value: with_equations(value, changed, done)) for eqn in x.eqns]
            result = x if all(a is b for a, b in zip(eqns, x.eqns, strict=True)) else x.replace(eqns=eqns)
        done[id(x)] = result, x
    return done[id(x)][0]


@contextlib.contextmanager
def as_in(eqn):
    """Let values have the types that they have inside of an equation that holds a jaxpr."""
    is_checked = eqn.params.get("check_vma")  # of shard_map
    if is_checked is None:
        yield
        return
    manual = eqn.params.get("manual_axes", eqn.params.get("newly_manual_axes"))
    sizes = [(name, n) for name, n in eqn.params["mesh"].shape.items() if name in manual]
    with config._check_vma(is_checked), extend_axis_env_nd(sizes):
        yield


def weakly_typed(x):
    """Return `x` as a value that does not determine the dtype of others."""
    return _convert_element_type(x, x.dtype, weak_type=True)


def trace(function, avals):
    """Trace a flat function on `avals`; return its jaxpr, with closed-over values as first inputs, and those values."""
    closed = trace_with_constants(function, avals)
    if not closed.consts:
        return closed, closed.consts
    return ClosedJaxpr(convert_constvars_jaxpr(closed.jaxpr), ()), closed.consts


def trace_with_constants(function, avals):
    """Trace a flat function on `avals`; return its jaxpr, of which the values that it closes over are constants."""
    wrapped = linear_util.wrap_init(function, debug_info=_description(len(avals)))
    jaxpr, _, closed_over, *_ = trace_to_jaxpr_dynamic(wrapped, avals)  # up to JAX 0.6, there is a fourth
    return ClosedJaxpr(jaxpr, closed_over)


@functools.lru_cache(256)
def _description(n):
    """Return how JAX's errors name a function of `n` operands; to ask its signature takes as long as an operation."""
    return debug_info("custom_gradient", lambda *operands: operands, [0] * n, {})


def share(closed):
    """Return a closed jaxpr that is equal to `closed`, one object while it lives: JAX's caches know it by identity."""
    jaxpr, numbers = closed.jaxpr, {}
    if closed.consts:
        return closed
    key = [(x.aval, numbers.setdefault(x, len(numbers))) for x in jaxpr.invars]

    def number(x):
        return (x.aval, type(x.val), np.asarray(x.val).tobytes()) if isinstance(x, Literal) else numbers[x]

    for eqn in jaxpr.eqns:
        key += eqn.primitive, eqn.source_info.name_stack.stack, eqn.ctx, frozenset(eqn.effects)
        key += map(number, eqn.invars)
        key += map(_exact, eqn.params.items())
        for x in eqn.outvars:  # each has the next number
            numbers[x] = len(numbers)
            key.append(x.aval)
    try:
        return _shared.setdefault((*key, *map(number, jaxpr.outvars)), closed)
    except TypeError:  # a parameter without a hash
        return closed


_shared = weakref.WeakValueDictionary()


def _exact(x):
    """Return a key for `x`: numbers that are equal, as 1 and True, or 0.0 and -0.0, may mean different things."""
    if isinstance(x, tuple):
        return type(x), *map(_exact, x)
    return type(x), repr(x) if isinstance(x, (float, complex, np.generic)) else x


def stand_in(tracers, values):
    """Use `tracers` of the current trace wherever `values` of other traces, which may have ended, are used in it."""
    trace_ctx.trace.frame.constid_to_tracer.update(zip(map(id, values), tracers, strict=True))


def prune(closed, used_outputs, kept_inputs):
    """Return the part of a closed jaxpr that computes the `used_outputs`, and which inputs it keeps."""
    jaxpr, used_inputs = dce_jaxpr(closed.jaxpr, used_outputs, kept_inputs)
    return ClosedJaxpr(jaxpr, closed.consts), used_inputs


def is_used_whole(jaxpr):
    """Say whether every input and result in a jaxpr is used: there is nothing to prune, at an eighth of its time."""
    used = {id(x) for eqn in jaxpr.eqns for x in eqn.invars}.union(map(id, jaxpr.outvars))
    return used.issuperset(map(id, jaxpr.invars)) and used.issuperset([id(x) for e in jaxpr.eqns for x in e.outvars])


def tangent_aval(aval):
    """Return the type of the tangents of a value of type `aval`."""
    return aval.to_tangent_aval().strip_weak_type()


def is_transforming():
    """Say whether operations are traced, each after it is transformed."""
    trace = trace_ctx.trace
    while isinstance(trace, (JVPTrace, LinearizeTrace, BatchTrace)):
        trace = trace.parent_trace
    return trace is not trace_ctx.trace and type(trace) is DynamicJaxprTrace


def vmap(function, in_axes, axis):
    """Map `function` over the `axis` that a batching rule was called with."""
    name = None if axis.name is no_axis_name else axis.name
    return jax.vmap(function, in_axes, axis_name=name, axis_size=axis.size, spmd_axis_name=axis.spmd_name)


trace_of = operator.attrgetter("_trace")  # of a tracer
is_committed = operator.attrgetter("_committed")  # an array, to its devices
