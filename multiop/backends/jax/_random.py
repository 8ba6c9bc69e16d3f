"""What random numbers need of JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .conversion import Tracer

word = "uint32"  # the dtype in which words are multiplied: without its 64-bit mode, JAX has no int64


def rounded(product):
    """Return a product that XLA does not merge with a sum that follows, which it would round but once."""
    return jax.lax.max(product, product.dtype.type(jnp.finfo(product.dtype).min))


def kept(words, key):
    """Return `words`, computed once: XLA would compute them anew in each place where they are used.

    What goes into a loop is stored. This one never runs, but XLA does not know that.
    """
    times = jax.lax.population_count(key[0]) >> 6  # 0
    return jax.lax.while_loop(lambda state: state[0] < times, lambda state: (state[0] + 1, ~state[1]), (times, words))[
        1
    ]


def is_tracing():
    """Say whether what is called now becomes a part of a program."""
    return isinstance(jnp.zeros(()), Tracer)
