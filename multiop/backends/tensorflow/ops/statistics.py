"""Statistics: the ops that are not composed of others."""

from __future__ import annotations

import tensorflow as tf

from ..conversion import dense
from .products import product_of


def op_correlate(x1, x2, before, after):
    x1 = tf.pad(x1, [(before, after)])
    if x1.dtype.is_floating:
        return tf.nn.conv1d(x1[None, :, None], x2[:, None, None], 1, "VALID")[0, :, 0]
    if x1.dtype.is_complex:
        (a, b), (c, d) = ((tf.math.real(x), tf.math.imag(x)) for x in (x1, x2))
        return tf.complex(
            op_correlate(a, c, 0, 0) - op_correlate(b, d, 0, 0), op_correlate(a, d, 0, 0) + op_correlate(b, c, 0, 0)
        )
    return product_of(correlate_windows, x1, x2)


def correlate_windows(x1, x2):
    """Correlate integers, which TensorFlow cannot convolve."""
    n = x2.shape[0]
    index = tf.range(x1.shape[0] - n + 1)[:, None] + tf.range(n)
    return tf.reduce_sum(tf.gather(dense(x1), index) * x2, 1)
