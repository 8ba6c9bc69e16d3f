"""What XLA's compiler for a CPU gets wrong, lowered so that it does not: `known_faults` lists the reports.

JAX computes wrong values, or ends the process, in programs that are right step by step, 0.10.2 in most of them. The
options which avoid that make ordinary sums take four times as long, and JAX refuses them in a `jax.jit` inside another.
So the operations concerned are lowered to others that have the same values, on a CPU alone. This holds in every program
of the process, the user's own `jax.jit` included; jaxprs, and so derivatives, are unchanged.
"""

from __future__ import annotations

import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from multiop._loading import known_faults

_NARROW, _MANY = 8, 1 << 14  # entries that are summed to each result, results
_HIGH = 7  # rank


def _is_float(x, *_, **__):
    return jnp.issubdtype(x.dtype, np.floating) and np.dtype(x.dtype).itemsize > 1


def _is_signed(x, *_, **__):
    return jnp.issubdtype(x.dtype, np.signedinteger)


def _is_high(x, *_, **__):
    return len(x.shape) >= _HIGH and _is_float(x)


def _is_product(x, *_, **__):
    return _is_signed(x) or _is_high(x)


def _is_byte(x, *, new_dtype, **_):
    return jnp.issubdtype(x.dtype, np.integer) and x.dtype.itemsize == 1 and jnp.issubdtype(new_dtype, np.floating)


def _is_narrow_product(x, y, *, dimension_numbers, **_):
    """Say whether few entries are summed for each of many results."""
    (inner, _), (batch, _) = dimension_numbers
    sizes = [*x.shape, *y.shape]
    if not _is_float(x) or any(type(n) is not int for n in sizes):  # a symbolic size may be anything
        return _is_float(x)
    summed, batched = math.prod(x.shape[axis] for axis in inner), math.prod(x.shape[axis] for axis in batch)
    return summed <= _NARROW and math.prod(sizes) > _MANY * summed**2 * batched


def _positive(result, x, **_):
    return lax.max(x, lax.neg(x))  # the smallest integer has no other sign


def _in_unsigned(function):
    """Compute in unsigned integers, which wrap in the same way, and whose squares XLA does not take for positive."""

    def computed(result, /, *xs, **params):
        params.pop("out_dtype", None)
        unsigned = [lax.bitcast_convert_type(x, f"uint{8 * x.dtype.itemsize}") for x in xs]
        return lax.bitcast_convert_type(function(*unsigned, **params), result.dtype)

    return computed


def _product(function):
    of_integers = _in_unsigned(function)

    def multiplied(result, /, *xs, **params):
        return of_integers(result, *xs, **params) if _is_signed(result) else _unfused(result)

    return multiplied


def _unfused(x, *_, **__):
    """Return `x` in a way that YNNPACK does not know, and that costs nothing: rounding to its own precision."""
    kind = jnp.finfo(x.dtype)
    return lax.reduce_precision(x, kind.nexp, kind.nmant)


def _reduction(combine, first):
    def reduced(result, x, *, axes, **_):
        return lax.reduce(x, np.array(first, x.dtype), lambda a, b: _unfused(combine(a, b)), axes)

    return reduced


def _with_nan(result, x, **_):
    return lax.select(lax.ne(x, x), x, result)  # a constant NaN becomes an integer, and so any value to LLVM


def _apart(result, *_, **__):
    return lax.optimization_barrier(result)


# primitive: whether operands of these types are concerned, and the result from the usual result and the operands
_OTHERWISE = {
    lax.abs_p: (_is_signed, _positive),
    lax.square_p: (_is_product, _product(lax.square)),
    lax.integer_pow_p: (_is_product, _product(lax.integer_pow)),
    lax.mul_p: (_is_product, _product(lax.mul)),
    lax.exp_p: (_is_float, _with_nan),
    lax.exp2_p: (_is_float, _with_nan),
    lax.cosh_p: (_is_float, _with_nan),
    lax.sinh_p: (_is_float, _with_nan),
    lax.expm1_p: (_is_float, _with_nan),
    lax.convert_element_type_p: (_is_byte, _unfused),  # integers of 8 bits were added as floats, which do not wrap
    lax.dot_general_p: (_is_narrow_product, _unfused),
    lax.reduce_sum_p: (_is_high, _reduction(lax.add, 0)),
    lax.reduce_max_p: (_is_high, _reduction(lax.max, -np.inf)),
    lax.reduce_min_p: (_is_high, _reduction(lax.min, np.inf)),
    lax.reduce_prod_p: (_is_high, _reduction(lax.mul, 1)),
    # a reshape that moves before the update would read what was written
    lax.dynamic_update_slice_p: (lambda x, update, *_, **__: math.prod(update.shape) > 1, _apart),
}


def _is_plain_gather(*_, mode, **__):
    return mode is not lax.GatherScatterMode.FILL_OR_DROP  # which is lowered to one that is


_UP_TO_0_7 = {lax.gather_p: (_is_plain_gather, _apart)}  # a gather that is fused, or folded, reads other entries


def mend():
    """Lower the operations concerned otherwise; called once, when the backend is loaded."""
    if not known_faults.of("jax", jax.__version__, mended=True):
        return
    try:
        from ._internals import lower_fun, register_lowering, usual_lowering

        mended = _OTHERWISE | (_UP_TO_0_7 if jax.__version_info__ < (0, 8) else {})
        usual = {primitive: usual_lowering(primitive) for primitive in mended}
    except (ImportError, AttributeError, KeyError) as error:
        warnings.warn(
            f"jax {jax.__version__} compiles some programs wrongly on a CPU, and multiop cannot prevent it, since a "
            f"private part of JAX is missing ({error}): `multiop info` lists what is concerned",
            stacklevel=2,
        )
        return
    for primitive, (is_concerned, otherwise) in mended.items():
        rule = _rule(usual[primitive], is_concerned, otherwise, lower_fun)
        register_lowering(primitive, rule, platform="cpu")


def _rule(usual, is_concerned, otherwise, lower_fun):
    def rule(ctx, *operands, **params):
        found = usual(ctx, *operands, **params)
        if not is_concerned(*ctx.avals_in, **params):
            return found
        inner = ctx.replace(primitive=None, avals_in=(*ctx.avals_out, *ctx.avals_in))
        lowered = lower_fun(lambda *xs: otherwise(*xs, **params), multiple_results=False)
        return lowered(inner, *found, *operands)

    return rule
