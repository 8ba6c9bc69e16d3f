"""Reductions over the segments that a vector of ids divides a tensor into."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from multiop import errors
from multiop._values import dtypes

from ..autodiff._held import custom_jvp
from ..conversion import accumulation_dtype, dtype_name, jit_inline, reject_complex, to_index_integers
from ..devices import is_known
from .elementwise import op_multiply
from .indexing import combine_segments
from .reduction import choice


def op_segment_sum(x, ids, num_segments):
    return _sum(x, *segments(ids, num_segments))


def op_segment_max(x, ids, num_segments):
    return _segment_extremum(*reject_complex(x), *segments(ids, num_segments), "max")


def op_segment_min(x, ids, num_segments):
    return _segment_extremum(*reject_complex(x), *segments(ids, num_segments), "min")


def op_segment_prod(x, ids, num_segments):
    return _prod(x, *segments(ids, num_segments))


def segments(ids, num_segments):
    """Return the ids, and the number of segments."""
    ids = to_index_integers(ids)
    if num_segments is None:
        if not is_known(ids):
            raise errors.ArgumentError("num_segments must be given in compiled or mapped code")
        num_segments = max(int(ids.max()) + 1, 0) if ids.size else 0
    return ids, num_segments


@functools.partial(jit_inline, static_argnums=2)
def _sum(x, ids, n):
    return sum_segments(x.astype(accumulation_dtype(x)), mark_out_of_range(ids, n), n)[:n]


@functools.partial(jit_inline, static_argnums=2)
def _prod(x, ids, n):
    ids = mark_out_of_range(ids, n)
    order = jnp.argsort(ids, stable=True)
    return combine_segments(op_multiply, x.astype(accumulation_dtype(x))[order], ids[order], n)


@functools.partial(jit_inline, static_argnums=(2, 3))
def _segment_extremum(x, ids, n, reduce):
    if x.dtype == bool:
        return _segment_extremum(x.astype(np.uint8), ids, n, reduce).astype(bool)
    extremum = _extremum if jnp.issubdtype(x.dtype, np.floating) else _extremum.fun
    return extremum(x, mark_out_of_range(ids, n), n, reduce)[:n]


@functools.partial(custom_jvp, options=2)  # JAX has no derivative for this
def _extremum(x, ids, n, reduce):
    start = jnp.full((n + 1, *x.shape[1:]), dtypes.IDENTITY[dtype_name(x)][reduce == "min"], x.dtype)
    return getattr(start.at[ids], reduce)(x)


@_extremum.defjvp
def _extremum_jvp(n, reduce, primals, tangents):
    (x, ids), (tangent, _) = primals, tangents
    y = _extremum(x, ids, n, reduce)
    share = _share(n, reduce)(jax.lax.stop_gradient(x), ids, jax.lax.stop_gradient(y))
    return y, sum_segments(jnp.where(share > 0, tangent, 0) * share, ids, n)


@functools.lru_cache(256)
def _share(n, reduce):
    """Return a function that says which share of the gradient of its segment's extremum each entry of `x` has."""

    def count(x, ids, y):
        chosen = jnp.isnan(x) | (x == y[ids])
        return chosen, sum_segments(chosen.astype(jnp.promote_types(x.dtype, np.float32)), ids, n)[ids]

    def once(x, ids, y):
        chosen, size = count(x, ids, y)
        return jnp.where(chosen, jnp.reciprocal(size).astype(x.dtype), 0)

    def again(x, ids, _):
        return once(x, ids, _extremum(x, ids, n, reduce))

    return choice(lambda *operands: jnp.any(count(*operands)[1] == 0), again, once)


def mark_out_of_range(ids, n):
    """Return the ids, with `n` where they are out of range."""
    return jnp.where((ids < 0) | (ids >= n), n, ids)


def sum_segments(x, ids, n):
    """Return the sum of each segment and of what is out of range; 16-bit floats are summed in float32."""
    wide = np.float32 if x.dtype.itemsize == 2 else x.dtype
    return jnp.zeros((n + 1, *x.shape[1:]), wide).at[ids].add(x.astype(wide)).astype(x.dtype)
