"""Random words from TensorFlow's own Philox kernel."""

from __future__ import annotations

import tensorflow as tf

from .autodiff.custom_gradient import is_within

word = "int64"  # the dtype in which words are multiplied
_PHILOX = tf.random.Algorithm.PHILOX.value


def random_words(key, count, counter):
    """Return the first `count` words of the blocks that start at `counter`, or `None` if the kernel cannot run."""
    if is_within("mapping"):  # tf.vectorized_map cannot convert the kernel for more than one key
        return None
    return tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=tf.reshape(count, [1]),
        key=tf.reshape(join_words(key[0], key[1]), [1]),
        counter=tf.stack([join_words(*counter[:2]), join_words(*counter[2:])]),
        alg=_PHILOX,
        dtype=tf.uint32,
    )


def join_words(low, high):
    """Join two words into one 64-bit integer."""
    low, high = (tf.cast(x, tf.uint64) if hasattr(x, "dtype") else tf.constant(x, tf.uint64) for x in (low, high))
    return tf.bitwise.bitwise_or(low, tf.bitwise.left_shift(high, tf.constant(32, tf.uint64)))


def is_tracing():
    """Say whether ops that run now become part of a graph."""
    return not tf.executing_eagerly()


def taken(x, index):
    """Return the entries of a vector at an index that is known to be inside."""
    return tf.gather(x, index)
