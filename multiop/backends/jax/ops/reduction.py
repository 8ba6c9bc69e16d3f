"""Reductions along axes."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from multiop._values import args

from ..autodiff._held import custom_jvp, one_step
from ..conversion import (
    accumulation_dtype,
    convert,
    floating,
    in_float32,
    is_float_along,
    jit_inline,
    promote,
    reject_complex,
    resolve_axis,
)
from ._complex import is_complex
from .elementwise import op_divide_no_nan, op_maximum, op_minimum, with_sum_of


def op_sum(x, axis, keepdims):
    if is_float_along(x, axis):
        return _sum(x, axis, keepdims=keepdims)
    x = convert(x)
    # where a dtype is given, JAX adds up 16-bit floats in 16 bits
    dtype = accumulation_dtype(x) if x.dtype.kind in "biu" else None
    return _sum(x, args.axes(axis, x.ndim), dtype, keepdims=keepdims)


def op_prod(x, axis, keepdims, dtype):
    x = convert(x, dtype)
    return _prod(x, args.axes(axis, x.ndim), accumulation_dtype(x) if dtype is None else x.dtype, keepdims)


def op_mean(x, axis, keepdims):
    return over(_mean, floating(x), axis, keepdims)


def op_var(x, axis, keepdims):
    return over(_var, floating(x), axis, keepdims)


def op_std(x, axis, keepdims):
    return over(_std, floating(x), axis, keepdims)


def op_max(x, axis, keepdims, initial):
    return extremum(_max, op_maximum, x, axis, keepdims, initial)


def op_min(x, axis, keepdims, initial):
    return extremum(_min, op_minimum, x, axis, keepdims, initial)


def op_argmax(x, axis, keepdims):
    return arg_extremum(jnp.argmax, x, axis, keepdims)


def op_argmin(x, axis, keepdims):
    return arg_extremum(jnp.argmin, x, axis, keepdims)


def op_all(x, axis, keepdims):
    return over(_all, convert(x), axis, keepdims)


def op_any(x, axis, keepdims):
    return over(_any, convert(x), axis, keepdims)


def op_logsumexp(x, axis, keepdims):
    return over(_logsumexp, *reject_complex(floating(x)), axis, keepdims)


def op_cumsum(x, axis, dtype):
    return cumulate(_cumsum, x, axis, dtype)


def op_cumprod(x, axis, dtype):
    return cumulate(_cumprod, x, axis, dtype)


def over(fn, x, axis, keepdims):
    return fn(x, args.axes(axis, x.ndim), keepdims=keepdims)


def cumulate(fn, x, axis, dtype):
    if dtype is None and is_float_along(x, axis):
        return fn(x, axis)
    x, axis = resolve_axis(convert(x, dtype), axis)
    return fn(x if dtype is not None else x.astype(accumulation_dtype(x)), axis)


_cumsum, _cumprod = (
    jit_inline(lambda x, axis, fn=fn: in_float32(lambda x: fn(x, axis, x.dtype), x), static_argnums=1)
    for fn in (jnp.cumsum, jnp.cumprod)
)


@functools.partial(jit_inline, static_argnums=(1, 2))
def _std(x, dims, keepdims):
    if x.dtype.itemsize == 2:  # squares would overflow
        return _std(x.astype(np.float32), dims, keepdims).astype(x.dtype)
    return (deviation.fun if is_complex(x) else deviation)(x, dims, keepdims)


def reduction(fn, change):
    """Return `fn(x, axes, keepdims)` with the tangent `change(tangent, x, y, axes, keepdims)`; `y` keeps all axes."""
    fn, change = custom_jvp(fn, options=2), one_step(change, options=2)

    @fn.defjvp
    def jvp(axes, keepdims, primals, tangents):
        y = fn(*primals, axes, True)
        tangent = change(*tangents, *primals, y, axes, keepdims)
        return y if keepdims else jax.lax.squeeze(y, axes), tangent

    return fn


def root(x):
    zero = x == 0  # there the gradient of the root is infinite
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, x)))


def change_of_deviation(tangent, x, y, dims, keepdims):
    distance = x - jnp.mean(x, dims, keepdims=True)
    first = x[tuple(slice(0, 1 if dim in dims else None) for dim in range(x.ndim))]
    are_equal = jnp.all(x == first, dims, keepdims=True) & (y < np.inf)  # their mean may be rounded to another number
    y = jnp.where(are_equal, 0, y)
    number = float(math.prod(x.shape[dim] for dim in dims))
    return jnp.sum(op_divide_no_nan(distance, number * y) * tangent, dims, keepdims=keepdims)


deviation = reduction(lambda x, dims, keepdims: root(jnp.var(x, dims, keepdims=keepdims)), change_of_deviation)


@functools.partial(jit_inline, static_argnums=(1, 2))
def euclidean_norm(x, axes, keepdims):
    if x.dtype.itemsize == 2:  # squares overflow and vanish
        return euclidean_norm(x.astype(np.float32), axes, keepdims).astype(x.dtype)
    if is_complex(x):
        return root(jnp.sum(jnp.square(jnp.real(x)) + jnp.square(jnp.imag(x)), axes, keepdims=keepdims))
    return length(x, axes, keepdims)


length = reduction(
    lambda x, axes, keepdims: root(jnp.sum(jnp.square(x), axes, keepdims=keepdims)),
    lambda tangent, x, y, axes, keepdims: jnp.sum(op_divide_no_nan(x, y) * tangent, axes, keepdims=keepdims),
)


def is_not_0(x):
    return x if x.dtype == bool else x != 0  # jnp.all and jnp.any only look at the real part


_all = jit_inline(lambda x, dims, keepdims: jnp.all(is_not_0(x), dims, keepdims=keepdims), static_argnums=(1, 2))
_any = jit_inline(lambda x, dims, keepdims: jnp.any(is_not_0(x), dims, keepdims=keepdims), static_argnums=(1, 2))
_sum = jit_inline(jnp.sum, static_argnames=("axis", "dtype", "keepdims"))
_mean, _var = (jit_inline(fn, static_argnames=("axis", "keepdims")) for fn in (jnp.mean, jnp.var))


def _compile_extremum(native):
    """Compile jnp.max or jnp.min, whose gradient is not lost inside other compiled code."""

    @functools.partial(custom_jvp, options=2)
    def of_floats(x, axis, keepdims):
        return native(x, axis, keepdims=keepdims)

    @of_floats.defjvp
    def _(axis, keepdims, primals, tangents):
        (x,), (tangent,) = primals, tangents
        y = of_floats(x, axis, True)
        equal, count = _ties(native, args.axes(axis, x.ndim))(jax.lax.stop_gradient(x), jax.lax.stop_gradient(y))
        share = equal.astype(x.dtype) / count
        return y if keepdims else jnp.squeeze(y, axis), jnp.sum(tangent * share, axis, keepdims=keepdims)

    def reduce(x, axis, keepdims):
        return (of_floats if jnp.issubdtype(x.dtype, np.floating) else of_floats.fun)(x, axis, keepdims)

    return jit_inline(reduce, static_argnames=("axis", "keepdims"))


@functools.lru_cache(256)
def _ties(native, axes):
    """Return a function that finds the entries of `x` that equal its extremum `y`, and how many they are."""

    def once(x, y):
        equal = x == y
        return equal, jnp.sum(equal, axes, x.dtype, keepdims=True)

    return choice(lambda x, y: jnp.any(once(x, y)[1] == 0), lambda x, _: once(x, native(x, axes, keepdims=True)), once)


@functools.lru_cache(256)
def choice(is_lost, again, once):
    """Return a function that is `again` if the equality of its operands is lost, otherwise `once`.

    XLA may compute an operand a second time to compare it, and round it otherwise: then no entry is equal to the
    extremum. What a branch gets is stored.
    """

    @jax.custom_batching.custom_vmap
    def choose(*operands):
        return jax.lax.cond(is_lost(*operands), again, once, *operands)

    @choose.def_vmap
    def _(size, is_mapped, *operands):  # with one predicate for all, so that it stays a choice
        pairs = zip(operands, is_mapped, strict=True)
        operands = [z if mapped else jnp.broadcast_to(z, (size, *z.shape)) for z, mapped in pairs]
        results = _mapped_choice(is_lost, again, once)(*operands)
        return results, jax.tree.map(lambda _: True, results)

    return choose


@functools.lru_cache(256)
def _mapped_choice(is_lost, again, once):
    return choice(lambda *operands: jnp.any(jax.vmap(is_lost)(*operands)), jax.vmap(again), jax.vmap(once))


_max, _min = _compile_extremum(jnp.max), _compile_extremum(jnp.min)


@functools.partial(custom_jvp, options=2)
def _product(x, axis, keepdims):
    return jnp.prod(x, axis, x.dtype, keepdims=keepdims)


@_product.defjvp
def _product_jvp(axis, keepdims, primals, tangents):
    # do not use the value of jax.jvp: it multiplies in another order, and may underflow where this one does not
    _, tangent = jax.jvp(lambda x: jnp.prod(x, axis, x.dtype, keepdims=keepdims), primals, tangents)
    return _product(*primals, axis, keepdims), tangent


@functools.partial(jit_inline, static_argnums=(1, 2, 3))
def _prod(x, axis, dtype, keepdims):
    return in_float32(lambda x: _product(x, axis, keepdims), x.astype(dtype))  # partial products may overflow


@functools.partial(jit_inline, static_argnums=(0, 2, 3))
def _position(native, x, axis, keepdims):
    return native(x, axis, keepdims=keepdims).astype(np.int32)


@functools.partial(jit_inline, static_argnums=(1, 2))
def _logsumexp(x, dims, keepdims):
    total = with_sum_of(math.prod(x.shape[dim] for dim in dims), lambda x: _log_sum(x, dims), x)
    return total if keepdims else jax.lax.squeeze(total, dims)


def _log_sum(x, dims):
    top = jax.lax.stop_gradient(jnp.max(x, dims, keepdims=True, initial=-np.inf))
    shift = jnp.where(jnp.isfinite(top), top, 0)
    total = jnp.sum(jnp.exp(x - shift), dims, keepdims=True)
    nothing = total == 0  # a row of -inf, where jax.nn.logsumexp's gradient is NaN
    return jnp.where(nothing, -np.inf, shift + jnp.log(jnp.where(nothing, 1, total)))


def extremum(reduce, pairwise, x, axis, keepdims, initial):
    if initial is None and is_float_along(x, axis):
        return reduce(x, axis, keepdims=keepdims)
    (x,) = reject_complex(convert(x))
    dims = args.axes(axis, x.ndim)
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
        axis = args.single_axis(axis, x.ndim)
    return _position(native, x, axis, keepdims)
