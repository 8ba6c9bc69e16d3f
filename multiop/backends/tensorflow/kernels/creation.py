"""Tensors of numbers alone, which NumPy makes in a tenth of the time of TensorFlow's operations."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from ..conversion import executing_eagerly, native

FEW = 2048  # entries


def op_arange(start, stop, step, dtype, *, otherwise):
    if not (executing_eagerly() and type(start) is type(stop) is type(step) is int and step):
        return otherwise(start, stop, step, dtype)
    return tf.constant(np.arange(start, stop, step), native(dtype))


def op_eye(n, m, k, dtype, *, otherwise):
    if not (executing_eagerly() and n * m <= FEW):
        return otherwise(n, m, k, dtype)
    return tf.constant(np.eye(n, m, k), native(dtype))
