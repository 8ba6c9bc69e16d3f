"""The JAX part of random numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp

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


def is_tracing():
    """Say whether ops that run now are being traced into a program."""
    return isinstance(jnp.zeros(()), Tracer)


def taken(x, index):
    """Return the entries of a vector at an index that is known to be inside."""
    return x.at[index].get(mode="promise_in_bounds")
