"""Resizing by TensorFlow's kernel."""

from __future__ import annotations

import tensorflow as tf

from .autodiff.custom_gradient import can_link, linked
from .conversion import cached_ints, executing_eagerly, in_this_graph, is_finite
from .ops.convolution import channels_last, to_data_format


def native_bilinear(images, axes, target, is_exact, by_taps):
    """Resize by a kernel, right for what is finite; it computes in float32, also the places of the pixels."""
    if images.dtype is not tf.float32 or not is_exact or 0 in images.shape or not can_link(eagerly=True):
        return None
    if executing_eagerly() and not is_finite(images):
        return None
    data_format = "channels_last" if axes[1] == len(images.shape) - 2 else "channels_first"

    def batch(x):
        return channels_last(x if len(x.shape) == 4 else x[None], data_format)

    def restored(y):
        y = to_data_format(y, data_format)
        return y if len(images.shape) == 4 else y[0]

    def resized(x):
        return restored(
            tf.raw_ops.ResizeBilinear(images=batch(x), size=cached_ints(tuple(target)), half_pixel_centers=True)
        )

    def spread(x, u):
        grad = tf.raw_ops.ResizeBilinearGrad(grads=batch(u), original_image=batch(x), half_pixel_centers=True)
        return restored(grad)

    def pull(x, upstream):
        return [linked("resize/transpose", spread, pull_back, x, upstream)]

    def pull_back(_, __, upstream):
        y = native_bilinear(upstream, axes, target, is_exact, by_taps)
        return [None, by_taps(upstream) if y is None else y]

    value = resized if executing_eagerly() else lambda x: where_finite(resized, by_taps, x)
    return linked("op_image_resize", value, pull, images)


def where_finite(kernel, formula, x):
    """Return `kernel(x)` in a graph, or `formula(x)` where an entry, or the sum of their squares, is not finite."""
    seen = tf.math.is_finite(tf.raw_ops.L2Loss(t=x))
    return tf.cond(seen, lambda: kernel(in_this_graph(x)), lambda: formula(in_this_graph(x)))
