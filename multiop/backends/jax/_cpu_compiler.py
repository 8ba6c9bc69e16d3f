"""What XLA's compiler for a CPU gets wrong, written so that it does not: `known_faults` lists the reports.

JAX computes wrong values, or ends the process, in programs that are right step by step, 0.10.2 in most of them. The
options which avoid that make ordinary sums take four times as long, and JAX refuses them in a `jax.jit` inside another.
So the programs that multiop compiles are traced, and the operations concerned become others that have the same values
and derivatives. Nothing of JAX is replaced: a program of the user's own has these forms in the ops of multiop alone.
"""

from __future__ import annotations

import functools
import math
import weakref

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from multiop._loading import known_faults

from . import _versions

_NARROW, _MANY = 8, 1 << 14  # entries that are summed to each result, results
_HIGH = 7  # rank


def _is_float(x, *_, **__):
    return jnp.issubdtype(x.dtype, np.floating) and x.dtype.itemsize > 1


def _is_signed(x, *_, out_dtype=None, **__):
    return jnp.issubdtype(x.dtype, np.signedinteger) and out_dtype in (None, x.dtype)


def _is_high(x, *_, **__):
    return len(x.shape) >= _HIGH and _is_float(x)


def _is_byte(x, *, new_dtype, **_):
    to_float = jnp.issubdtype(new_dtype, np.floating) and np.dtype(new_dtype).itemsize > 1
    return to_float and jnp.issubdtype(x.dtype, np.integer) and jnp.iinfo(x.dtype).bits == 8


def _is_narrow_product(x, y, *, dimension_numbers, **_):
    """Say whether few entries are summed for each result, or for those of a derivative."""
    (inner, _), (batch, _) = dimension_numbers
    if not (_is_float(x) and _is_float(y)):
        return False
    summed, batched = [[x.shape[axis] for axis in axes] for axes in (inner, batch)]
    if all(type(size) is int for size in (*x.shape, *y.shape)):
        left, right, both = math.prod(x.shape), math.prod(y.shape), max(1, math.prod((*summed, *summed, *batched)))
        if max(left, right, left * right // both) <= _MANY:
            return False
    return any(_is_few(sizes, summed, batched) for sizes in (x.shape, y.shape)) or _is_few(summed, [], [])


def _is_few(sizes, summed, batched):
    """Say whether the sizes, without those summed and batched, may be few; a symbolic size may be anything."""
    left = list(sizes)
    for size in (*summed, *batched):
        left.remove(size)
    return math.prod(size for size in left if type(size) is int) <= _NARROW


def _positive(primitive, x, **params):
    return lax.max(x, lax.neg(x))  # the smallest integer has no other sign


def _in_unsigned(primitive, *xs, **params):
    """Compute in unsigned integers, which wrap in the same way, and whose squares XLA does not take for positive."""
    dtype = xs[0].dtype
    unsigned = np.dtype(jnp.dtype(f"uint{jnp.iinfo(dtype).bits}"))
    if params.get("out_dtype") is not None:
        params["out_dtype"] = unsigned
    result = primitive.bind(*[lax.bitcast_convert_type(x, unsigned) for x in xs], **params)
    return lax.bitcast_convert_type(result, dtype)


def _unfused(x):
    """Return `x` in a way that YNNPACK does not know, and that costs nothing: rounding to its own precision."""
    if not _is_float(x):
        return x
    kind = jnp.finfo(x.dtype)
    return lax.reduce_precision(x, kind.nexp, kind.nmant)


def _alone(primitive, *xs, **params):
    """Let no operand and no result be fused: in a derivative, an operand is a result."""
    return _unfused(primitive.bind(*map(_unfused, xs), **params))


def _of_nan_too(primitive, x, **params):
    """Keep NaN from the function, and multiply by it: a constant NaN becomes an integer, and so any value, or none."""
    is_nan = lax.ne(x, x)
    result = primitive.bind(lax.select(is_nan, lax.full_like(x, 0), x), **params)
    return lax.mul(result, lax.stop_gradient(lax.select(is_nan, x, lax.full_like(x, 1))))


def _apart(primitive, *xs, **params):
    return lax.optimization_barrier(primitive.bind(*xs, **params))


def _is_plain_gather(*_, mode, **__):
    return mode is not lax.GatherScatterMode.FILL_OR_DROP  # which is lowered to one that is


_OF_NAN = (lax.exp_p, lax.exp2_p, lax.cosh_p, lax.sinh_p, lax.expm1_p, lax.logistic_p)
# fault: by the primitive, whether operands of these types are concerned, and what is computed in place of it
_FORMS = {
    known_faults.NARROW_PRODUCTS: {lax.dot_general_p: (_is_narrow_product, _alone)},
    known_faults.HIGH_RANKS: dict.fromkeys(
        (
            *(lax.square_p, lax.integer_pow_p, lax.mul_p),
            *(lax.reduce_sum_p, lax.reduce_max_p, lax.reduce_min_p, lax.reduce_prod_p),
        ),
        (_is_high, _alone),
    ),
    # a reshape that moves before the update would read what was written
    known_faults.SHIFTS: {
        lax.dynamic_update_slice_p: (lambda x, update, *_, **__: any(n != 1 for n in update.shape), _apart)
    },
    known_faults.INTEGERS: {
        lax.abs_p: (_is_signed, _positive),
        **dict.fromkeys((lax.square_p, lax.integer_pow_p, lax.mul_p), (_is_signed, _in_unsigned)),
    },
    # a gather that is fused, or folded, reads other entries
    known_faults.GATHERS: {lax.gather_p: (_is_plain_gather, _apart)},
    known_faults.BYTES: {
        lax.convert_element_type_p: (_is_byte, _alone)
    },  # they were added as floats, which do not wrap
    known_faults.NANS: dict.fromkeys(_OF_NAN, (_is_float, _of_nan_too)),  # in programs alone that have such an operand
}
_forms = {}  # of this version: by the primitive, each such pair
for _fault in known_faults.of("jax", jax.__version__):
    for _primitive, _form in _FORMS.get(_fault, {}).items():
        _forms.setdefault(_primitive, []).append(_form)

# primitives that hold the programs they run
_CALLS = {
    *("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat", "remat2", "scan", "while", "cond", "shard_map"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_vmap_call"),
    *("custom_gradient", "custom_gradient_tangent", "held_jvp_call"),
}
_MARK = "as_written_"  # begins the name of what was rewritten


def mended(function):
    """Return a function of arrays, which `jax.jit` traces, with the operations concerned in their other forms."""
    if not _forms:
        return function

    @functools.wraps(function)
    def run(*args, **kwargs):
        leaves, structure = jax.tree.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if isinstance(x, jax.core.Tracer)]
        if not places or not _versions.are_parts_known():
            return function(*args, **kwargs)
        internals, found = _internals(), []

        def of_tracers(*xs):
            every = list(leaves)
            for i, x in zip(places, xs, strict=True):
                every[i] = x
            args, kwargs = jax.tree.unflatten(structure, every)
            outputs, result = jax.tree.flatten(function(*args, **kwargs))
            found.append(result)
            return outputs

        given = [leaves[i] for i in places]
        closed = internals.trace_with_constants(of_tracers, [internals.typeof(x) for x in given])
        return jax.tree.unflatten(found.pop(), internals.evaluate(rewritten(closed), *given))

    return run


@functools.cache  # an import statement takes longer than a question of these
def _internals():
    """Return the private parts of JAX, where these are known."""
    from . import _internals as internals

    return internals


def rewritten(closed):
    """Return a closed jaxpr with the operations concerned in their other forms."""
    if not _forms:
        return closed
    left_out = () if _is_nan_known(closed) else _OF_NAN
    return _internals().with_equations(closed, functools.partial(_otherwise, left_out), {})


def _otherwise(left_out, eqn, inside):
    """Return an equation in its other form; `inside` is the same for the jaxprs that it holds."""
    if eqn.primitive.name in _CALLS:
        if str(eqn.params.get("name", "")).startswith(_MARK):
            return eqn
        with _internals().as_in(eqn):
            params = {
                name: value.mended(inside) if hasattr(value, "mended") else inside(value)
                for name, value in eqn.params.items()
            }
        return eqn if all(params[name] is value for name, value in eqn.params.items()) else eqn.replace(params=params)
    avals = [x.aval for x in eqn.invars]
    for is_concerned, form in _forms.get(eqn.primitive, ()) if eqn.primitive not in left_out else ():
        if is_concerned(*avals, **eqn.params):
            with eqn.ctx.manager:
                call = _call(eqn, form, avals)
            return eqn.replace(primitive=call.primitive, params=call.params)
    return eqn


def _call(eqn, form, avals):
    """Return the equation that calls a form as one program, which is the same for equal equations."""
    wide = eqn.outvars[0].aval.weak_type
    try:
        return _traced(eqn.ctx, eqn.primitive, form, wide, tuple(avals), tuple(eqn.params.items()))
    except TypeError:  # a parameter without a hash
        return _traced.__wrapped__(eqn.ctx, eqn.primitive, form, wide, avals, eqn.params.items())


@functools.lru_cache(4096)
def _traced(context, primitive, form, is_weak, avals, params):
    internals = _internals()

    def run(*xs):
        result = form(primitive, *xs, **dict(params))
        return internals.weakly_typed(result) if is_weak else result

    run.__name__ = _MARK + primitive.name
    return internals.trace_with_constants(lambda *xs: [jax.jit(run)(*xs)], avals).jaxpr.eqns[-1]


# what the compiler may know of a value, from constants and what is computed from them: in doubt, more
_NOTHING, _FINITE, _INFINITE, _NAN = range(4)
_FEW = 1024  # entries of a constant that are looked at
_LIKE = {  # primitives whose results are numbers of their operands
    *("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "convert_element_type", "copy", "copy_p"),
    *("slice", "rev", "reduce_precision", "neg", "abs", "reduce_max", "reduce_min", "max", "min", "stop_gradient"),
}


def _is_nan_known(closed):
    """Say whether a function that is wrong for a NaN that the compiler knows may have one as its operand."""
    if not any(primitive in _forms for primitive in _OF_NAN):
        return False
    found = []
    _known_results(closed, [_NOTHING] * len(closed.jaxpr.invars), found)
    return bool(found)


_seen = weakref.WeakKeyDictionary()  # of a jaxpr, its results by its constants and operands: JAX has each program once


def _known_results(closed, given, found):
    """Return what is known of the results of a closed jaxpr; add to `found` a primitive with such an operand."""
    seen = _seen.setdefault(closed.jaxpr, {})
    key = tuple(map(_known_of, closed.consts)), tuple(given)
    if key not in seen:
        within = []
        seen[key] = _follow(closed.jaxpr, *key, within), within[:1]
    results, within = seen[key]
    found += within
    return results


def _follow(jaxpr, constants, given, found):
    """Return what is known of the results of a jaxpr, equation by equation."""
    known = dict(zip(jaxpr.constvars, constants, strict=False))  # an open one has no values
    known |= zip(jaxpr.invars, given, strict=True)
    literal = _internals().Literal

    def read(x):
        return _known_of(x.val) if isinstance(x, literal) else known.get(x, _NOTHING)

    for eqn in jaxpr.eqns:
        kinds = [read(x) for x in eqn.invars]
        if eqn.primitive in _OF_NAN and kinds[0] == _NAN:
            found.append(eqn.primitive)
        is_call = eqn.primitive.name in _CALLS
        results = _known_of_call(eqn, kinds, found) if is_call else [_known_of_operation(eqn, kinds)] * len(eqn.outvars)
        known.update(zip(eqn.outvars, results, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _known_of(x):
    """Return what is known of a constant; of many numbers that differ, the compiler knows none."""
    if isinstance(x, jax.core.Tracer):
        return _NOTHING
    if not jnp.issubdtype(jnp.result_type(x), np.inexact):
        return _FINITE
    numbers = np.asarray(x).reshape(-1)
    some = numbers[:: 1 + numbers.size // _FEW]
    if numbers.size > _FEW and some.tobytes() != some[:1].tobytes() * some.size:
        return _NOTHING
    return _NAN if np.isnan(numbers).any() else _FINITE if np.isfinite(numbers).all() else _INFINITE


def _known_of_call(eqn, kinds, found):
    """Return what is known of the results of the program, or the branches, that an equation holds."""
    is_loop = eqn.primitive.name in ("scan", "while")
    every, results = max(kinds, default=_NOTHING), [_NOTHING] * len(eqn.outvars)
    for closed in _programs_of(eqn.params.values()):
        n = len(closed.jaxpr.invars)
        given = kinds[len(kinds) - n :] if n <= len(kinds) and eqn.primitive.name != "while" else [every] * n
        if is_loop:  # what is carried is not what it began with
            given = [kind if kind > _FINITE else _NOTHING for kind in given]
        outputs = _known_results(closed, given, found)
        if is_loop and _NAN in outputs:
            outputs = _known_results(closed, [_NAN] * n, found)
        if len(outputs) == len(results):
            results = list(map(max, results, outputs))
        elif eqn.primitive.name != "while":
            results = [max(every, *outputs)] * len(results)
    return results


def _programs_of(values):
    """Return the closed jaxprs among the parameters of an equation."""
    found = []
    for value in values:
        value = getattr(value, "function", value)  # of a custom gradient
        if isinstance(value, (tuple, list)):
            found += _programs_of(value)
        elif isinstance(value, _internals().ClosedJaxpr):
            found.append(value)
        elif isinstance(value, _internals().Jaxpr):
            found.append(_internals().ClosedJaxpr(value, ()))
    return found


def _known_of_operation(eqn, kinds):
    """Return what is known of the results of one operation."""
    name, most = eqn.primitive.name, max(kinds, default=_FINITE)
    if name == "select_n" and kinds[0] == _NOTHING:  # one of two numbers, of which one is known, is not known
        return least if (least := min(kinds[1:])) > _FINITE else _NOTHING
    is_constant = _NOTHING not in kinds
    if not all(jnp.issubdtype(getattr(x.aval, "dtype", bool), np.inexact) for x in eqn.outvars):
        return _FINITE if is_constant else _NOTHING
    if name in ("max", "min") and most == _INFINITE and not is_constant:  # `max` begins with it
        return _NOTHING
    if not kinds or most == _NAN or name in _LIKE:
        return most
    if is_constant or kinds.count(_INFINITE) > 1 or {_FINITE, _INFINITE} <= set(kinds):
        return _NAN
    return most if most == _INFINITE else _NOTHING
