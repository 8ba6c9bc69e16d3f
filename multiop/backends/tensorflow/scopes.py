"""Names for parts of a computation."""

import tensorflow as tf


def name_scope(name):
    return tf.name_scope(name)
