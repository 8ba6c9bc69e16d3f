"""Special functions by TensorFlow's kernels in float64, which are right to half a unit in the last place of float32.

In float64, and where there is none, SciPy's serve, if nothing is differentiated and values can be read. Not all of the
derivatives of TensorFlow's are right. That of the logarithm of the gamma function is, to two units, in float64, too.
"""

from __future__ import annotations

import tensorflow as tf

from ..autodiff.custom_gradient import can_link, link_rule
from ..conversion import choose, executing_eagerly, floating, in_this_graph, is_tracked, promote_floating
from ..devices import is_at_hand

FEW = 2048  # entries


def op_lgamma(x, *, otherwise):
    x = floating(x)
    if x.dtype.is_complex or not can_link(eagerly=True):
        return otherwise(x)
    if x.dtype not in (tf.float32, tf.float64):
        return tf.cast(op_lgamma(tf.cast(x, tf.float32), otherwise=otherwise), x.dtype)
    if not is_tracked():
        return in_float64(tf.raw_ops.Lgamma, x)

    def slope(x, upstream):
        return link_rule("op_lgamma/slope", lambda x, upstream: upstream * digamma(x), slope_rule, x, upstream)

    def slope_rule(x, upstream, second_upstream):
        x, upstream = in_this_graph(x), in_this_graph(upstream)
        return pull(lambda x, upstream: pull(otherwise, [x], upstream)[0], [x, upstream], second_upstream)

    return link_rule(
        "op_lgamma", lambda x: in_float64(tf.raw_ops.Lgamma, x), lambda x, upstream: [slope(x, upstream)], x
    )


def pull(fn, xs, upstream):
    """Return the gradients of `fn(*xs)`."""
    if not executing_eagerly():
        return tf.gradients(fn(*xs), xs, upstream)
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = fn(*xs)
    return tape.gradient(y, xs, upstream)


def op_digamma(x, *, otherwise):
    x = floating(x)
    if x.dtype.is_complex or is_tracked():
        return otherwise(x)
    if is_at_hand(x):
        return on_host("digamma", x)
    if x.dtype is tf.float64:
        return otherwise(x)
    return tf.cast(digamma(tf.cast(x, tf.float32)), x.dtype)


def op_polygamma(n, x, *, otherwise):
    x = floating(x)
    if not (are_readable_values(x) and type(n) is int and n > 0 and (x.numpy() > 0).all()):
        return otherwise(n, x)
    return on_host("polygamma", n, x)


def op_gammainc(a, x, *, otherwise):
    a, x = promote_floating(a, x)
    return on_host("gammainc", a, x) if a.dtype is not tf.float64 and are_readable_values(a, x) else otherwise(a, x)


def op_gammaincc(a, x, *, otherwise):
    a, x = promote_floating(a, x)
    return on_host("gammaincc", a, x) if a.dtype is not tf.float64 and are_readable_values(a, x) else otherwise(a, x)


def op_erfinv(x, *, otherwise):
    x = floating(x)
    return on_host("erfinv", x) if are_readable_values(x) else otherwise(x)


def op_erf(x, *, otherwise):
    x = floating(x)
    return on_host("erf", x) if x.dtype is tf.float64 and are_few_values(x) else otherwise(x)


def op_xlogy(x, y, *, otherwise):
    x, y = promote_floating(x, y)
    return on_host("xlogy", x, y) if are_few_values(x, y) else otherwise(x, y)


def op_xlog1py(x, y, *, otherwise):
    x, y = promote_floating(x, y)
    return on_host("xlog1py", x, y) if are_few_values(x, y) else otherwise(x, y)


def op_i0(x, *, otherwise):
    x = floating(x)
    return on_host("i0", x) if are_readable_values(x) else otherwise(x)


def are_readable_values(*xs):
    """Say whether nothing differentiates `xs`, and their values can be read: SciPy then saves hundreds of steps."""
    return not is_tracked() and not xs[0].dtype.is_complex and all(map(is_at_hand, xs))


def are_few_values(*xs):
    """Say the same of tensors of few entries: of more, TensorFlow's operations take less time."""
    return are_readable_values(*xs) and max(x.shape.num_elements() for x in xs) <= FEW


def on_host(name, *operands):
    """Return a function of SciPy of tensors and numbers, in the dtype of the last one, a tensor."""
    from multiop._values import scipy_special  # SciPy takes longer to import than multiop

    arrays = [x if isinstance(x, int) else x.numpy().astype("float64") for x in operands]
    dtype = operands[-1].dtype
    return tf.constant(scipy_special.compute(name, *arrays).astype(dtype.as_numpy_dtype), dtype)


def in_float64(kernel, x):
    if x.dtype is tf.float64:
        return kernel(x=x)
    return tf.raw_ops.Cast(x=kernel(x=tf.raw_ops.Cast(x=x, DstT=tf.float64)), DstT=tf.float32)


def digamma(x):
    y = in_float64(tf.raw_ops.Digamma, x)  # NaN at 0
    return choose(tf.raw_ops.Equal(x=x, y=0.0), tf.raw_ops.Neg(x=tf.raw_ops.Reciprocal(x=x)), y)
