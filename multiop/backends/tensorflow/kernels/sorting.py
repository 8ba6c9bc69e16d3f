"""The largest entries by TensorFlow's kernel, which does not order NaN."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from ..conversion import is_readable, is_tracked


def op_top_k(x, k, sorted, *, otherwise):
    is_fit = is_readable(x) and not is_tracked() and type(k) is int and x.shape.rank and 0 <= k <= x.shape[-1]
    if not is_fit or np.isnan(x.numpy()).any():
        return otherwise(x, k, sorted)
    return tuple(tf.math.top_k(x, k))
