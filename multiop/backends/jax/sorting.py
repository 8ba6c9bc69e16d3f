"""Order: sorting and searching."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from multiop import errors

from .conversion import along, convert, promote
from .elementwise import real


def op_sort(x, axis):
    x, axis = along(*real(convert(x)), axis)
    return jnp.sort(x, axis)


def op_argsort(x, axis):
    x, axis = along(*real(convert(x)), axis)
    return jnp.argsort(x, axis).astype(np.int32)


def op_searchsorted(sorted_sequence, values, side):
    sorted_sequence, values = real(*promote(sorted_sequence, values))
    if sorted_sequence.ndim != 1:
        raise errors.ArgumentError(f"sorted_sequence must have one dimension, not {sorted_sequence.ndim}")
    return jnp.searchsorted(sorted_sequence, values, side).astype(np.int32)
