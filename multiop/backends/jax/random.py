"""The JAX part of random numbers."""

from __future__ import annotations

import contextlib
import threading

import jax
import jax.numpy as jnp
import numpy as np

from .conversion import Tracer

word = "uint32"  # the dtype in which words are multiplied: JAX has int64 only in its 64-bit mode


def rounded(product):
    """Return a product that XLA does not fuse with a following sum: a fused one would be rounded only once."""
    return jax.lax.max(product, product.dtype.type(jnp.finfo(product.dtype).min))


def kept(words, key):
    """Return `words`, computed only once: otherwise XLA would recompute them at every use.

    XLA stores what enters a loop. This loop never runs, but XLA does not know that.
    """
    times = jax.lax.population_count(key[0]) >> 6  # 0
    return jax.lax.while_loop(lambda state: state[0] < times, lambda state: (state[0] + 1, ~state[1]), (times, words))[
        1
    ]


_local = threading.local()


def is_tracing():
    """Say whether ops that run now are being traced into a program that may run more than once."""
    trace = _trace()
    return trace is not None and not any(trace is x for x in getattr(_local, "once", ()))


def _trace():
    x = jnp.zeros(())
    return getattr(x, "_trace", x) if isinstance(x, Tracer) else None


@contextlib.contextmanager
def traced_to_run_once():
    """Say that what is traced inside becomes a program for one call, as a checkpoint is in eager mode."""
    before = getattr(_local, "once", ())
    _local.once = (*before, _trace())
    try:
        yield
    finally:
        _local.once = before


def taken(x, index):
    """Return the entries of a vector at an index that is known to be inside."""
    return x.at[index].get(mode="promise_in_bounds")


_placed = jax.jit(lambda words: words, inline=True)


def key_of_ints(low, high):
    """Return a key for a draw by a program, in a tenth of the time of `jax.device_put`; a mesh has it whole."""
    return _placed(np.array([low, high], np.uint32))


def data_of_key(seed):
    """Return the words of a typed key of JAX, or `None` for anything else."""
    is_typed = isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(seed) if is_typed else None
