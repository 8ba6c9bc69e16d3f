"""Windows for the analysis of signals."""

from __future__ import annotations

import tensorflow as tf


def op_kaiser(triangle, beta):
    beta = tf.convert_to_tensor(beta, triangle.dtype)
    root = tf.sqrt(triangle * (2 - triangle))
    below = tf.square(1 - triangle) / (1 + root)  # 1 - root without cancellation
    # both functions are scaled by exp(-beta); unscaled, they would overflow
    return tf.exp(-beta * below) * tf.math.bessel_i0e(beta * root) / tf.math.bessel_i0e(beta)
