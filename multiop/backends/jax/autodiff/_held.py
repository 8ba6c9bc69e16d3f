"""Functions with a derivative of their own, which they keep inside of `jax.lax.scan`.

Where a scan is differentiated twice, JAX forgets the rules of `jax.custom_jvp` in its body, and takes the derivative of
the function as it is written: https://github.com/patrick-kidger/optimistix/issues/151. It takes no primitive apart.
"""

from __future__ import annotations

import functools
import typing

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .._cpu_compiler import rewritten
from .._versions import are_parts_known


def custom_jvp(fn, options=0):
    """Return `fn`, a function of arrays and then of `options` hashable values, for `defjvp` to give it a rule.

    The rule is that of `jax.custom_jvp`: it takes the options first, then the primals and the tangents.
    """
    if are_parts_known():
        return Held(fn, options)
    n = fn.__code__.co_argcount if options else 0
    return jax.custom_jvp(fn, nondiff_argnums=tuple(range(n - options, n)))


def with_slope(fn, slope, is_constant=None):
    """Return `fn` with the derivative `slope`; where it `is_constant`, an infinite upstream gradient has gradient 0."""
    fn = custom_jvp(fn)

    @one_step
    def change(tangent, *operands):
        found = slope(*operands) * tangent
        return found if is_constant is None else jnp.where(is_constant(*operands), 0, found)

    fn.defjvp(lambda primals, tangents: (fn(*primals), change(tangents[0], *primals)))
    return fn


def one_step(change, options=0, tangents=1):
    """Return `change`, a function linear in its first operands, as one step, so that it runs on the way back alone.

    JAX computes what does not depend on the tangent when the function is called, and keeps it; this keeps the operands.
    """
    if not are_parts_known():
        return change
    held = Held(change, options, tangents)

    def jvp(*args):
        *values, primals, tangents = args
        known = [i for i, t in enumerate(tangents) if type(t) is not SymbolicZero]
        of_known = _of_some(lambda *operands: change(*operands, *values), known, primals)
        return jax.jvp(*of_known, [tangents[i] for i in known])

    held.defjvp(jvp, symbolic_zeros=True)
    return held


def hold_operands(fn):
    """Return `fn`, whose derivative keeps its operands alone, and computes the rest again on the way back."""
    if not are_parts_known():
        return fn
    held = Held(fn)

    @functools.cache
    def change(known):
        """Return the change by the tangents of the operands `known`."""

        def total(*args):
            tangents, primals = list(args[: len(known)]), args[len(known) :]
            return jax.jvp(*_of_some(fn, known, primals), tangents)[1]

        return one_step(total, tangents=len(known))

    def jvp(primals, tangents):
        known = tuple(i for i, t in enumerate(tangents) if type(t) is not SymbolicZero)
        return held(*primals), change(known)(*[tangents[i] for i in known], *primals)

    held.defjvp(jvp, symbolic_zeros=True)
    return held


def _of_some(fn, places, operands):
    """Return `fn` as a function of the operands at `places`, and these."""

    def of_some(*xs):
        given = list(operands)
        for i, x in zip(places, xs, strict=True):
            given[i] = x
        return fn(*given)

    return of_some, [operands[i] for i in places]


def linear(fn, x):
    """Return `fn(x)`, which is linear, with the derivatives of `fn.transpose`."""
    return _linear(x, fn) if are_parts_known() else fn(x)


class Held:
    """A function with a derivative of its own, which is a parameter of the primitive."""

    def __init__(self, fun, options=0, tangents=0, transpose=None):
        self.fun, self.options, self.tangents, self.transpose = fun, options, tangents, transpose
        self.rule, self.takes_zeros = None, False

    def __repr__(self):
        return getattr(self.fun, "__name__", "function")

    def defjvp(self, rule, symbolic_zeros=False):
        self.rule, self.takes_zeros = rule, symbolic_zeros
        return rule

    def __call__(self, *args):
        n = len(args) - self.options
        operands = [x if hasattr(x, "aval") else jnp.asarray(x) for x in args[:n]]
        avals = tuple(map(internals.typeof, operands))
        call_jaxpr = _trace_held(self, args[n:], avals, jax.config.jax_enable_x64)
        return held_p.bind(*operands, call_jaxpr=call_jaxpr, held=self, options=args[n:])


@functools.lru_cache(4096)
def _trace_held(held, options, avals, x64):
    return internals.trace_with_constants(lambda *xs: [held.fun(*xs, *options)], avals)


def _evaluate(*operands, call_jaxpr, held, options):
    return internals.jaxpr_as_fun(rewritten(call_jaxpr))(*operands)[0]


def _jvp(primals, tangents, *, call_jaxpr, held, options):
    zero = SymbolicZero if held.takes_zeros else lambda aval: internals.instantiate_zeros(internals.Zero(aval))
    tangents = [zero(t.aval) if type(t) is internals.Zero else t for t in tangents]
    return held.rule(*options, tuple(primals), tuple(tangents))


def _batch(axis, operands, dims, *, call_jaxpr, held, options):
    if all(dim is None for dim in dims):
        return held(*operands, *options), None
    key = _Axis(axis.name, axis.size, axis.spmd_name)
    return _map_held(held, options, tuple(dims), key)(*operands), 0


class _Axis(typing.NamedTuple):
    """What `internals.vmap` asks of the axis of a batch, as a key."""

    name: typing.Any
    size: int
    spmd_name: typing.Any


@functools.lru_cache(1024)
def _map_held(held, options, dims, axis):
    """Return the function mapped over an axis of its operands, with its rule mapped in the same way."""

    def transpose(cotangent):
        grad = internals.vmap(lambda u: held.transpose(u, *options), (0,), axis)(cotangent)
        return jnp.moveaxis(grad, 0, dims[0])

    fun = internals.vmap(lambda *xs: held.fun(*xs, *options), dims, axis)
    mapped = Held(fun, tangents=held.tangents, transpose=held.transpose and transpose)

    def rule(primals, tangents):
        known = [i for i, t in enumerate(tangents) if type(t) is not SymbolicZero]

        def of_one(primals, given):
            of_known = dict(zip(known, given, strict=True))
            every = [of_known.get(i, tangents[i]) for i in range(len(primals))]
            return held.rule(*options, primals, tuple(every))

        in_axes = (dims, [dims[i] for i in known])
        return internals.vmap(of_one, in_axes, axis)(primals, [tangents[i] for i in known])

    mapped.defjvp(rule, symbolic_zeros=held.takes_zeros)
    return mapped


def _transpose(cotangent, *operands, call_jaxpr, held, options):
    """Transpose the function, by its own rule or as it is written; it is linear in what is not known."""
    unknown = [isinstance(x, internals.UndefinedPrimal) for x in operands]
    if type(cotangent) is internals.Zero:
        return [internals.Zero(x.aval) if u else None for x, u in zip(operands, unknown, strict=True)]
    if held.transpose is not None:
        return [held.transpose(cotangent, *options)]
    avals = tuple(x.aval if u else None for x, u in zip(operands, unknown, strict=True))
    known = [x for x, u in zip(operands, unknown, strict=True) if not u]
    is_linear = bool(held.tangents) and not any(unknown[held.tangents :])
    found = iter(_compiled_transpose(call_jaxpr, avals, is_linear)(cotangent, *known))
    return [next(found) if u else None for u in unknown]


@functools.lru_cache(1024)
def _compiled_transpose(call_jaxpr, avals, is_linear):
    """Return the compiled transpose in the operands that have a type in `avals`, of a cotangent and the others.

    JAX's backward pass raises where the function is not linear. It does not take functions apart that are compiled
    inside, such as jnp.where; jax.vjp does, but takes any function for its linear part.
    """

    def by_backward_pass(cotangent, *known):
        rest = iter(known)
        operands = [next(rest) if aval is None else internals.UndefinedPrimal(aval) for aval in avals]
        found = internals.backward_pass(call_jaxpr.jaxpr, False, call_jaxpr.consts, operands, [cotangent])
        return [internals.instantiate_zeros(g) for g, aval in zip(found, avals, strict=True) if aval is not None]

    def by_vjp(cotangent, *known):
        def of_unknown(*xs):
            unknown, rest = iter(xs), iter(known)
            return internals.jaxpr_as_fun(call_jaxpr)(*[next(rest if aval is None else unknown) for aval in avals])[0]

        zeros = [internals.instantiate_zeros(internals.Zero(aval)) for aval in avals if aval is not None]
        return jax.vjp(of_unknown, *zeros)[1](cotangent)

    transposed = by_vjp if is_linear else by_backward_pass
    return jax.jit(transposed, inline=True)


_linear = Held(lambda x, fn: fn(x), options=1, transpose=lambda u, fn: _linear(u, fn.transpose))


@_linear.defjvp
def _linear_jvp(fn, primals, tangents):
    return _linear(*primals, fn), _linear(*tangents, fn)


if are_parts_known():
    from .. import _internals as internals

    held_p = internals.Primitive("held_jvp_call")
    held_p.def_impl(jax.jit(_evaluate, static_argnames=("call_jaxpr", "held", "options")))
    held_p.to_lojax = held_p.impl  # JAX 0.12 lowers what holds a search apart
    held_p.def_abstract_eval(lambda *_, call_jaxpr, held, options: call_jaxpr.out_avals[0])
    internals.primitive_jvps[held_p] = _jvp
    internals.primitive_transposes[held_p] = _transpose
    internals.fancy_primitive_batchers[held_p] = _batch
    internals.lower_as(held_p, lambda call_jaxpr, **_: rewritten(call_jaxpr))
