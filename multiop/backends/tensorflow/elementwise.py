"""Elementwise arithmetic and functions."""

from __future__ import annotations

import tensorflow as tf

from .conversion import floating, promote


def op_add(x1, x2):
    return tf.add(*promote(x1, x2))


def op_exp(x):
    return tf.exp(floating(x))


def op_maximum(x1, x2):
    return tf.maximum(*promote(x1, x2))
