"""Resizing by TensorFlow's kernel."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from multiop._values import windows

from ..autodiff.custom_gradient import can_link, link_rule
from ..conversion import cached_ints, convert, executing_eagerly, in_this_graph, is_readable, is_tensor
from ..ops.convolution import channels_last, to_data_format


def op_image_resize(images, size, *options, otherwise):
    """Resize by a kernel, right for what is finite; it computes in float32, also the places of the pixels."""
    *usual, fill_value, data_format = options
    is_usual = usual == ["bilinear", False, False, False, "constant"] and type(fill_value) in (int, float)
    if not (is_usual and data_format in (None, "channels_last", "channels_first") and windows.is_pair(size)):
        return otherwise(images, size, *options)
    images = convert(images) if is_tensor(images) else images
    return resize_natively(images, tuple(size), data_format or "channels_last", lambda x: otherwise(x, size, *options))


def resize_natively(images, size, data_format, by_taps):
    if not (isinstance(images, tf.Tensor) and images.dtype is tf.float32 and images.shape.rank in (3, 4)):
        return by_taps(images)
    sizes = images.shape[-3:-1] if data_format == "channels_last" else images.shape[-2:]
    if None in sizes or 0 in images.shape or not all(map(windows.is_exact_in_float32, sizes, size)):
        return by_taps(images)
    if not can_link(eagerly=True) or (executing_eagerly() and not is_finite(images)):
        return by_taps(images)

    def batch(x):
        return channels_last(x if len(x.shape) == 4 else x[None], data_format)

    def restore_layout(y):
        y = to_data_format(y, data_format)
        return y if len(images.shape) == 4 else y[0]

    def resize(x):
        return restore_layout(
            tf.raw_ops.ResizeBilinear(images=batch(x), size=cached_ints(size), half_pixel_centers=True)
        )

    def spread(x, u):
        grad = tf.raw_ops.ResizeBilinearGrad(grads=batch(u), original_image=batch(x), half_pixel_centers=True)
        return restore_layout(grad)

    def pull(x, upstream):
        return [link_rule("resize/transpose", spread, pull_back, x, upstream)]

    def pull_back(_, __, upstream):
        return [None, resize_natively(upstream, size, data_format, by_taps)]

    value = resize if executing_eagerly() else lambda x: where_finite(resize, by_taps, x)
    return link_rule("op_image_resize", value, pull, images)


def is_finite(x):
    """Say whether `x` is on the CPU, where NumPy can look at it, and all is finite: no sum of squares is otherwise."""
    if is_readable(x):
        entries = np.asarray(x).reshape(-1)
        with np.errstate(over="ignore"):
            return math.isfinite(entries.dot(entries))
    return False


def where_finite(kernel, formula, x):
    """Return `kernel(x)` in a graph, or `formula(x)` where an entry, or the sum of their squares, is not finite."""
    seen = tf.math.is_finite(tf.raw_ops.L2Loss(t=x))
    return tf.cond(seen, lambda: kernel(in_this_graph(x)), lambda: formula(in_this_graph(x)))
