"""Reductions along axes."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from multiop import _args

from ..autodiff._held import custom_jvp, whole
from ..conversion import compiled, convert, floating, is_float_along, promote, resolve_axis
from ._complex import is_complex
from .elementwise import divide, in_float32, op_maximum, op_minimum, reject_complex, with_sum_of


def op_sum(x, axis, keepdims):
    if is_float_along(x, axis):
        return _sum(x, axis, keepdims=keepdims)
    x = convert(x)
    # where a dtype is given, JAX adds up 16-bit floats in 16 bits
    dtype = accumulation_dtype(x) if x.dtype.kind in "biu" else None
    return _sum(x, _args.axes(axis, x.ndim), dtype, keepdims=keepdims)


def op_prod(x, axis, keepdims, dtype):
    x = convert(x, dtype)
    return _prod(x, _args.axes(axis, x.ndim), accumulation_dtype(x) if dtype is None else x.dtype, keepdims)


def op_mean(x, axis, keepdims):
    x = floating(x)
    return _mean(x, _args.axes(axis, x.ndim), keepdims=keepdims)


def op_var(x, axis, keepdims):
    x = floating(x)
    return _var(x, _args.axes(axis, x.ndim), keepdims=keepdims)


def op_std(x, axis, keepdims):
    x = floating(x)
    return _std(x, _args.axes(axis, x.ndim), keepdims)


def op_max(x, axis, keepdims, initial):
    return extremum(_max, op_maximum, x, axis, keepdims, initial)


def op_min(x, axis, keepdims, initial):
    return extremum(_min, op_minimum, x, axis, keepdims, initial)


def op_argmax(x, axis, keepdims):
    return arg_extremum(jnp.argmax, x, axis, keepdims)


def op_argmin(x, axis, keepdims):
    return arg_extremum(jnp.argmin, x, axis, keepdims)


def op_all(x, axis, keepdims):
    x = convert(x)
    return _all(x, _args.axes(axis, x.ndim), keepdims)


def op_any(x, axis, keepdims):
    x = convert(x)
    return _any(x, _args.axes(axis, x.ndim), keepdims)


def op_logsumexp(x, axis, keepdims):
    (x,) = reject_complex(floating(x))
    return _logsumexp(x, _args.axes(axis, x.ndim), keepdims)


def op_cumsum(x, axis, dtype):
    if dtype is None and is_float_along(x, axis):
        return _cumsum(x, axis)
    x, axis = resolve_axis(to_summands(x, dtype), axis)
    return _cumsum(x, axis)


def op_cumprod(x, axis, dtype):
    if dtype is None and is_float_along(x, axis):
        return _cumprod(x, axis)
    x, axis = resolve_axis(to_summands(x, dtype), axis)
    return _cumprod(x, axis)


def to_summands(x, dtype):
    x = convert(x, dtype)
    return x if dtype is not None or (wide := accumulation_dtype(x)) == x.dtype else x.astype(wide)


@functools.partial(compiled, static_argnums=1)
def _cumsum(x, axis):
    half = x.dtype.itemsize == 2 and jnp.issubdtype(x.dtype, np.floating)
    return jnp.cumsum(x, axis, np.float32 if half else x.dtype).astype(x.dtype)


_cumprod = compiled(lambda x, axis: in_float32(lambda x: jnp.cumprod(x, axis, x.dtype), x), static_argnums=1)


@functools.partial(compiled, static_argnums=(1, 2))
def _std(x, dims, keepdims):
    if x.dtype.itemsize == 2:  # squares would overflow
        return _std(x.astype(np.float32), dims, keepdims).astype(x.dtype)
    return (deviation.fun if is_complex(x) else deviation)(x, dims, keepdims)


@functools.partial(custom_jvp, options=2)
def deviation(x, dims, keepdims):
    variance = jnp.var(x, dims, keepdims=keepdims)
    constant = variance == 0  # there, the root has an infinite gradient, but the deviation a gradient of 0
    return jnp.where(constant, 0, jnp.sqrt(jnp.where(constant, 1, variance)))


@deviation.defjvp
def deviation_jvp(dims, keepdims, primals, tangents):
    (x,), (tangent,) = primals, tangents
    y = deviation(x, dims, True)
    return y if keepdims else jax.lax.squeeze(y, dims), change_of_deviation(tangent, x, y, dims, keepdims)


@functools.partial(whole, options=2)
def change_of_deviation(tangent, x, y, dims, keepdims):
    distance = x - jnp.mean(x, dims, keepdims=True)
    distance -= jnp.mean(distance, dims, keepdims=True)  # the mean of equal numbers may be rounded to another one
    number = float(math.prod(x.shape[dim] for dim in dims))
    share = jnp.where(y == 0, 0, divide(distance, number * jnp.where(y == 0, 1, y)))
    return jnp.sum(share * tangent, dims, keepdims=keepdims)


def is_not_0(x):
    return x if x.dtype == bool else x != 0  # jnp.all and jnp.any only look at the real part


_all = compiled(lambda x, dims, keepdims: jnp.all(is_not_0(x), dims, keepdims=keepdims), static_argnums=(1, 2))
_any = compiled(lambda x, dims, keepdims: jnp.any(is_not_0(x), dims, keepdims=keepdims), static_argnums=(1, 2))
_sum = compiled(jnp.sum, static_argnames=("axis", "dtype", "keepdims"))
_mean, _var = (compiled(fn, static_argnames=("axis", "keepdims")) for fn in (jnp.mean, jnp.var))


def _compile_extremum(native):
    """Compile jnp.max or jnp.min, whose gradient is not lost inside other compiled code."""

    @functools.partial(custom_jvp, options=2)
    def of_floats(x, axis, keepdims):
        return native(x, axis, keepdims=keepdims)

    @of_floats.defjvp
    def _(axis, keepdims, primals, tangents):
        (x,), (tangent,) = primals, tangents
        y = of_floats(x, axis, True)
        equal, count = _ties(native, _args.axes(axis, x.ndim))(jax.lax.stop_gradient(x), jax.lax.stop_gradient(y))
        share = equal.astype(x.dtype) / count
        return y if keepdims else jnp.squeeze(y, axis), jnp.sum(tangent * share, axis, keepdims=keepdims)

    def reduce(x, axis, keepdims):
        is_float = jnp.issubdtype(x.dtype, np.floating)
        return of_floats(x, axis, keepdims) if is_float else native(x, axis, keepdims=keepdims)

    return compiled(reduce, static_argnames=("axis", "keepdims"))


@functools.lru_cache(256)
def _ties(native, axes):
    """Return a function that finds the entries of `x` that equal its extremum `y`, and how many they are."""

    def once(x, y):
        equal = x == y
        return equal, jnp.sum(equal, axes, x.dtype, keepdims=True)

    def again(x, _):
        return once(x, native(x, axes, keepdims=True))

    return choice(lambda x, y: jnp.any(once(x, y)[1] == 0), again, once)


@functools.lru_cache(256)
def choice(is_lost, again, once):
    """Return a function that is `again` if the equality of its operands is lost, otherwise `once`.

    XLA may compute an operand a second time to compare it, and round it otherwise: then no entry is equal to the
    extremum. What a branch gets is stored.
    """

    @jax.custom_batching.custom_vmap
    def chosen(*operands):
        return jax.lax.cond(is_lost(*operands), again, once, *operands)

    @chosen.def_vmap
    def _(size, is_mapped, *operands):  # with one predicate for all, so that it stays a choice
        pairs = zip(operands, is_mapped, strict=True)
        operands = [z if mapped else jnp.broadcast_to(z, (size, *z.shape)) for z, mapped in pairs]
        results = _mapped_choice(is_lost, again, once)(*operands)
        return results, jax.tree.map(lambda _: True, results)

    return chosen


@functools.lru_cache(256)
def _mapped_choice(is_lost, again, once):
    return choice(lambda *operands: jnp.any(jax.vmap(is_lost)(*operands)), jax.vmap(again), jax.vmap(once))


_max, _min = _compile_extremum(jnp.max), _compile_extremum(jnp.min)


@functools.partial(custom_jvp, options=3)
def _product(x, axis, dtype, keepdims):
    return jnp.prod(x, axis, dtype, keepdims=keepdims)


@_product.defjvp
def _product_jvp(axis, dtype, keepdims, primals, tangents):
    # do not use the value of jax.jvp: it multiplies in another order, and may underflow where this one does not
    _, tangent = jax.jvp(lambda x: jnp.prod(x, axis, dtype, keepdims=keepdims), primals, tangents)
    return _product(*primals, axis, dtype, keepdims), tangent


@functools.partial(compiled, static_argnums=(1, 2, 3))
def _prod(x, axis, dtype, keepdims):
    if x.dtype.itemsize == 2 and x.dtype == dtype:  # partial products may overflow
        return in_float32(lambda x: _product(x, axis, x.dtype, keepdims), x)
    return _product(x, axis, dtype, keepdims)


@functools.partial(compiled, static_argnums=(0, 2, 3))
def _position(native, x, axis, keepdims):
    return native(x, axis, keepdims=keepdims).astype(np.int32)


@functools.partial(compiled, static_argnums=(1, 2))
def _logsumexp(x, dims, keepdims):
    total = with_sum_of(math.prod(x.shape[dim] for dim in dims), lambda x: _log_sum(x, dims), x)
    return total if keepdims else jax.lax.squeeze(total, dims)


def _log_sum(x, dims):
    top = jax.lax.stop_gradient(jnp.max(x, dims, keepdims=True, initial=-np.inf))
    shift = jnp.where(jnp.isfinite(top), top, 0)
    total = jnp.sum(jnp.exp(x - shift), dims, keepdims=True)
    nothing = total == 0  # a row of -inf, where jax.nn.logsumexp's gradient is NaN
    return jnp.where(nothing, -np.inf, shift + jnp.log(jnp.where(nothing, 1, total)))


def accumulation_dtype(x):
    """Return the dtype in which a sum or product is computed: at least 32 bits."""
    if x.dtype.kind in "biu" and x.dtype.itemsize < 4:
        return np.dtype(np.uint32 if x.dtype.kind == "u" else np.int32)
    return x.dtype


def extremum(reduce, pairwise, x, axis, keepdims, initial):
    if initial is None and is_float_along(x, axis):
        return reduce(x, axis, keepdims=keepdims)
    (x,) = reject_complex(convert(x))
    dims = _args.axes(axis, x.ndim)
    if initial is not None and any(x.shape[dim] == 0 for dim in dims):
        shape = [1 if d in dims else n for d, n in enumerate(x.shape) if keepdims or d not in dims]
        return jnp.broadcast_to(promote(x, initial)[1], shape)
    x = reduce(x, dims, keepdims=keepdims)
    return x if initial is None else pairwise(x, initial)


def arg_extremum(native, x, axis, keepdims):
    if is_float_along(x, axis):
        return _position(native, x, axis, keepdims)
    (x,) = reject_complex(convert(x))
    if axis is not None:
        axis = _args.single_axis(axis, x.ndim)
    return _position(native, x, axis, keepdims)
