"""Names for parts of a computation."""

import jax


def name_scope(name):
    return jax.named_scope(name)
