"""One-line functions, one or more for each row of the table of TensorFlow's operations."""

from __future__ import annotations

import contextlib
import functools

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from ported import leaves, weights

from multiop import porting

nn = tf.nn


def normal(*shape):
    return lambda rng: rng.normal(size=shape)


def positive(*shape):
    return lambda rng: rng.uniform(0.5, 1.5, size=shape)


def unit(*shape):
    return lambda rng: rng.uniform(-0.8, 0.8, size=shape)


def integers(*shape, below=5, dtype="int64"):
    return lambda rng: rng.integers(0, below, size=shape).astype(dtype)


X = normal(3, 4)
IMAGE = normal(2, 7, 8, 3)


def pixels(*shape):
    return lambda rng: rng.uniform(0.05, 0.95, size=shape)


def single(draw):
    return lambda rng: draw(rng).astype("float32")


def parts(z):
    return tf.math.real(z), tf.math.imag(z)


def entrywise(names, draw=X, module=tf):
    return {name: (getattr(module, name), draw) for name in names.split()}


def value(function):
    """A function whose gradient TensorFlow has on no CPU."""
    return lambda x, *args, **kwargs: function(
        tf.stop_gradient(x), *map(tf.stop_gradient, args[:1]), *args[1:], **kwargs
    )


def matrix(x):
    return x @ tf.linalg.matrix_transpose(x) + 3 * tf.eye(3, dtype=x.dtype)


def zeroed(x):
    """With a zero in each row, where these functions are 0 whatever the other operand is."""
    return x * tf.constant([1.0, 0.0, 1.0, 1.0], x.dtype)


def static(x):
    """A shape that is computed from the batch: `Shape`, `StridedSlice`, `Pack`, `Reshape`."""
    shape = tf.shape(x)
    return tf.reshape(x, [shape[0] * shape[1], -1]) + tf.cast(shape[0], x.dtype)


def tail(x):
    shape = tf.shape(x)
    return tf.reshape(x, tf.concat([shape[:-2], [shape[-1] * shape[-2]]], 0))


def moments(x):
    mean, variance = nn.moments(x, [0, 1, 2])
    return nn.batch_normalization(x, mean, variance, None, None, 1e-3)


def grouped(x):
    """A normalization over groups of channels, which has no name in the table."""
    y = tf.reshape(x, [tf.shape(x)[0], -1, 2, 2])
    mean, variance = nn.moments(y, [1, 3], keepdims=True)
    return tf.reshape(nn.batch_normalization(y, mean, variance, None, None, 1e-3), tf.shape(x))


def slope(function):
    """The gradient in `x` that a `GradientTape` inside of a model takes."""

    def line(x, *others):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x, *others)
        return tape.gradient(y, x)

    return line


SLOPES = {
    "tanh": lambda x: tf.tanh(x),
    "sigmoid": lambda x: tf.sigmoid(x),
    "sqrt": lambda x: tf.sqrt(x * x + 1),
    "rsqrt": lambda x: tf.math.rsqrt(x * x + 1),
    "reciprocal": lambda x: tf.math.reciprocal(x * x + 2),
    "relu": lambda x: tf.nn.relu(x) ** 2,
    "relu6": lambda x: tf.nn.relu6(4 * x) ** 2,
    "leaky relu": lambda x: tf.nn.leaky_relu(x) ** 2,
    "elu": lambda x: tf.nn.elu(x) ** 2,
    "selu": lambda x: tf.nn.selu(x) ** 2,
    "softplus": lambda x: tf.nn.softplus(x),
    "broadcast": lambda x: tf.where(x > 0.1, tf.sin(x), x) * x[:1],
    "slices": lambda x: x[:, 1:3] ** 2 * x[..., -1:] + tf.reduce_sum(x[1] ** 3),
}


def TIES(rng):
    return np.array([[0.0, 0.5, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [2.0, 0.0, -0.5, 1.0]])


IDS = tf.constant([0, 0, 1, 1, 3, 3])
SEGMENTS = ("sum", "mean", "prod", "max", "min")
RESIZES = ("bicubic", "area", "lanczos3", "mitchellcubic", "gaussian")
COLOURS = {
    "contrast": lambda x: tf.image.adjust_contrast(x, 1.7),
    "hue": lambda x: tf.image.adjust_hue(x, -0.3),
    "saturation": lambda x: tf.image.adjust_saturation(x, 2.5),
    "hsv_to_rgb": tf.image.hsv_to_rgb,
}


def rows_beside_columns(x, shape, is_turned=False):
    mean, variance = nn.moments(x, [1])
    if is_turned:
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), 1)
    return nn.batch_normalization(x, tf.reshape(mean, shape), tf.reshape(variance, shape), None, None, 0.1)


ONE_BY_ONE, ROW = np.ones((1, 1)), functools.partial(tf.reshape, shape=(1, 4))
NEAR = {  # what differs from a layer by little: a shape, a sign
    "moments of rows": (lambda x: rows_beside_columns(x, (4, 1)), normal(4, 4)),
    "moments of rows beside columns": (lambda x: rows_beside_columns(x, (4,)), normal(4, 4)),
    "moments of rows beside columns, reshaped": (lambda x: rows_beside_columns(x, (1, 4)), normal(4, 4)),
    "variance about rows beside columns": (lambda x: rows_beside_columns(x, (4, 1), True), normal(4, 4)),
    "normalization, a negative epsilon": (
        lambda x, m, v: nn.batch_normalization(x, m, v + 1, None, None, -0.1),
        X,
        normal(4),
        positive(4),
    ),
    "normalization with a scale of two dimensions": (
        lambda x, m, v, g: nn.batch_normalization(x, m, v, None, ROW(g), 0.1),
        normal(4),
        normal(4),
        positive(4),
        normal(4),
    ),
    "vectors that are rows": (lambda x, y: (ROW(x) * 2.0, y - ROW(x), ROW(x) * ROW(y)), normal(4), normal(4)),
    "gelu of a number with dimensions": (lambda x: 0.5 * ONE_BY_ONE * x * (1 + tf.math.erf(x / 2**0.5)), normal(4)),
    "gelu tanh of a number with dimensions": (
        lambda x: 0.5 * x * (ONE_BY_ONE + tf.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
        normal(4),
    ),
    "hard_sigmoid of a number with dimensions": (lambda x: nn.relu6(x + 3 * ONE_BY_ONE) / 6, normal(4)),
}
ROWS = NEAR | {
    # images, which TensorFlow resizes in float32
    **{
        f"image {name} to {size}": (
            lambda x, name=name, size=size: tf.cast(tf.image.resize(x, (size, 5), name), x.dtype),
            pixels(2, 7, 8, 3),
        )
        for name in RESIZES
        for size in (4, 13)
    },
    "image smoothed": (
        lambda x: tf.cast(tf.image.resize(x, (3, 5), "gaussian", antialias=True), x.dtype),
        pixels(2, 7, 8, 3),
    ),
    **{
        f"image {name} of the first version": (
            lambda x, name=name, corners=corners: tf.cast(
                getattr(tf.raw_ops, name)(images=x, size=[13, 5], align_corners=corners), x.dtype
            ),
            pixels(2, 7, 8, 3),
        )
        for name, corners in (("ResizeBilinear", False), ("ResizeBicubic", True), ("ResizeNearestNeighbor", True))
    },
    "image moved": (
        lambda x: tf.raw_ops.ScaleAndTranslate(
            images=x, size=[5, 9], scale=[0.7, 1.2], translation=[0.5, -1.0], kernel_type="triangle"
        ),
        single(pixels(2, 7, 8, 3)),
    ),
    **{
        f"image crops, {method}": (
            lambda x, boxes, i, method=method: tf.image.crop_and_resize(x, boxes, i, (3, 4), method, 2.0),
            single(pixels(2, 7, 8, 3)),
            lambda rng: rng.uniform(-0.2, 1.2, (3, 4)).astype("float32"),
            integers(3, below=2, dtype="int32"),
        )
        for method in ("bilinear", "nearest")
    },
    "rgb_to_hsv": (tf.image.rgb_to_hsv, pixels(2, 3, 4, 3)),
    "rgb_to_hsv of zeros": (tf.image.rgb_to_hsv, lambda rng: rng.integers(0, 3, (2, 8, 3)) / 2),
    **{f"image {name}": (function, single(pixels(2, 3, 4, 3))) for name, function in COLOURS.items()},
    "image patches": (
        lambda x: tf.image.extract_patches(x, [1, 2, 3, 1], [1, 2, 1, 1], [1, 2, 2, 1], "SAME"),
        pixels(2, 7, 8, 3),
    ),
    # counts and segments
    "bincount": (
        lambda i: (
            tf.math.bincount(i, minlength=4, maxlength=4, axis=-1),
            tf.math.bincount(i, minlength=6, maxlength=6, axis=-1, binary_output=True),
            tf.math.bincount(i, tf.cos(tf.cast(i, "float64")), minlength=6, maxlength=6, axis=-1),
        ),
        integers(3, 7),
    ),
    "bucketize": (
        lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[-1.0, 0.0, 0.5]),
        lambda rng: np.array([-1.0, -1.1, 0.0, 0.5, 0.6]),
    ),
    "histogram": (lambda x: tf.histogram_fixed_width(x, [-1.0, 1.0], 5), normal(12)),
    **{
        f"segment_{name}": (lambda x, name=name: getattr(tf.math, f"segment_{name}")(x, IDS), normal(6, 2))
        for name in SEGMENTS
    },
    **{
        f"unsorted_segment_{name}": (
            lambda x, i, name=name: getattr(tf.math, f"unsorted_segment_{name}")(x, i, 5),
            normal(3, 2, 2),
            integers(3, 2),
        )
        for name in ("sum", "prod", "max", "min", "sqrt_n")
    },
    "segment ties": (
        lambda x: tf.math.unsorted_segment_max(x, IDS, 4),
        lambda rng: np.array([[1.0], [1.0], [2.0], [2.0], [1.0], [0.0]]),
    ),
    "sparse segments": (
        lambda x: (
            tf.sparse.segment_mean(x, tf.constant([0, 2, 1, 4]), tf.constant([0, 0, 1, 2])),
            tf.sparse.segment_sqrt_n(x, tf.constant([0, 2, 1, 4]), tf.constant([0, 0, 1, 2]), num_segments=4),
        ),
        normal(6, 2),
    ),
    "cumulative_logsumexp": (
        lambda x: (
            tf.math.cumulative_logsumexp(x, 1, reverse=True),
            tf.exp(tf.math.cumulative_logsumexp(x, 1, exclusive=True)),
        ),
        X,
    ),
    "invert_permutation": (
        lambda x: tf.gather(x, tf.math.invert_permutation(tf.argsort(x[:, 0]))),
        normal(5, 2),
    ),
    "truncatediv": (
        lambda i: tf.truncatediv(i - 4, -3) + tf.truncatediv(i - 4, i + 1),
        integers(3, 4, below=9),
    ),
    # slices that begin at a value
    "slice at an index": (
        lambda x, i: (x[i[0]], x[:, i[1]], x[i[0], i[1]], x[..., i[1], None], x[:, -1 - i[0]]),
        X,
        integers(2, below=3, dtype="int32"),
    ),
    "slice of a block": (
        lambda x, i: (x[:, i[0] : i[0] + 2], x[i[1] : i[1] + 2, :3], tf.slice(x, [0, i[0]], [-1, 2])),
        normal(4, 5),
        integers(2, below=3, dtype="int32"),
    ),
    "gradient of a slice": (lambda x, i: slope(lambda x: x[:, i[0]] ** 3)(x), X, integers(1, below=3, dtype="int32")),
    "last of each row": (
        lambda x, i: tf.gather(x, i, batch_dims=1),
        normal(3, 5, 2),
        integers(3, below=5, dtype="int32"),
    ),
    "reverse_sequence": (
        lambda x, i: tf.reverse_sequence(x, i, seq_axis=1),
        normal(3, 5, 2),
        integers(3, below=5, dtype="int32"),
    ),
    "scatter_sub": (lambda x, i: tf.tensor_scatter_nd_sub(x, i[:, None], x[:2]), X, integers(2, below=3)),
    **{f"gradient of {name}": (slope(function), X) for name, function in SLOPES.items()},
    "gradient of a bias": (slope(lambda b, x: tf.nn.bias_add(x, b) ** 3), normal(4), X),
    "gradient of a gradient": (slope(slope(lambda x, w: tf.tanh(x @ w))), X, normal(4, 2)),
    # entry by entry
    **entrywise("abs sin cos sinh cosh tanh exp sign floor square sigmoid round negative stop_gradient"),
    **entrywise("log sqrt", positive(3, 4), tf.math),
    **entrywise("rsqrt log1p reciprocal digamma lgamma", positive(3, 4), tf.math),
    **entrywise("asin acos atanh tan erfinv", unit(3, 4), tf.math),
    **entrywise("erf erfc expm1 asinh atan ceil rint softplus is_nan is_finite is_inf", X, tf.math),
    "acosh": (tf.acosh, lambda rng: rng.uniform(1.5, 3, (3, 4))),
    **entrywise("relu relu6 elu selu softsign softmax log_softmax silu gelu", X, nn),
    "gelu tanh": (lambda x: nn.gelu(x, approximate=True), X),
    "gelu erfc": (lambda x: 0.5 * x * tf.math.erfc(-x * 0.5**0.5), X),
    "hard_swish": (lambda x: x * nn.relu6(x + 3) / 6, X),
    "hard_sigmoid": (lambda x: nn.relu6(x + 3) / 6, X),
    "softmax first": (lambda x: nn.softmax(x, 0), X),
    "leaky_relu": (lambda x: nn.leaky_relu(x, 0.3), X),
    "logsumexp": (lambda x: tf.reduce_logsumexp(x, 1), X),
    "cast": (lambda x: tf.cast(tf.cast(x, "float32"), "float64") + tf.cast(tf.cast(x, "int32"), "float64"), X),
    "bitcast": (lambda x: (tf.bitcast(x, "int64"), x), X),
    "identity": (lambda x: tf.identity(tf.ensure_shape(x, [None, 4])), X),
    "check_numerics": (lambda x: tf.debugging.check_numerics(x, "x"), X),
    "logical_not": (lambda x: ~(x > 0), X),
    "complex": (
        lambda x: tf.math.real(x) + tf.math.imag(tf.math.conj(x)) * tf.abs(x),
        lambda rng: rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)),
    ),
    # arithmetic
    "arithmetic": (lambda x, y: (x + y) * x - y / x, positive(3, 4), normal(4)),
    "numbers": (lambda x: 2.5 - x * 3 + 1 / x, positive(3, 4)),
    "integers": (lambda x, i: (x * tf.cast((i + 1) * i - 2, x.dtype), i // 2, i % 3), X, integers(3, 4)),
    "floordiv": (lambda x, y: (x // y, x % y), X, positive(4)),
    "truncatemod": (lambda x: tf.stop_gradient(tf.truncatemod(x, tf.constant(0.7, x.dtype))) * x, X),
    "divide_no_nan": (tf.math.divide_no_nan, X, positive(4)),
    "pow": (lambda x, y: x**3 + x**y + 2.0**x + x**2, positive(3, 4), X),
    "squared_difference": (tf.math.squared_difference, X, normal(4)),
    "maximum": (lambda x, y: tf.maximum(x, y) - tf.minimum(x, y * 2), X, normal(4)),
    "maximum tie": (lambda x, y: tf.maximum(x, y) + 3 * tf.minimum(y, x), TIES, lambda rng: np.zeros((3, 4))),
    "rsqrt of zeros": (lambda x: x * tf.minimum(tf.math.rsqrt(tf.reduce_sum(x * x, 1, keepdims=True)), 1e3), TIES),
    "maximum number": (lambda x: tf.maximum(x, 0.1) + tf.minimum(tf.constant(0.2, x.dtype), x), X),
    "clip": (lambda x: tf.clip_by_value(x, -0.3, 0.4), X),
    "atan2": (tf.atan2, X, X),
    "add_n": (lambda x, y: tf.add_n([x, y, x]), X, X),
    "bias_add": (lambda x, y: nn.bias_add(x, y), IMAGE, normal(3)),
    "comparisons": (lambda x, y: (x > y, x >= 0.1, x < y, x <= 0, x == y, x != y), X, X),
    "logical": (lambda x, y: ((x > 0) & (y > 0), (x > 0) | (y > 0)), X, X),
    "bitwise": (
        lambda x, y: tf.bitwise.bitwise_and(x, y) + tf.bitwise.bitwise_or(x, y) + tf.bitwise.invert(x),
        integers(3, 4),
        integers(3, 4),
    ),
    "bitwise xor": (tf.bitwise.bitwise_xor, integers(3, 4), integers(3, 4)),
    # products
    "matmul": (tf.matmul, X, normal(4, 2)),
    "matmul transposed": (lambda x, y: tf.matmul(x, y, transpose_a=True, transpose_b=True), normal(4, 3), normal(2, 4)),
    "batch matmul": (lambda x, y: tf.matmul(x, y, transpose_b=True), normal(2, 3, 4), normal(2, 5, 4)),
    "batch matmul adjoint": (lambda x, y: tf.matmul(x, y, adjoint_a=True), normal(2, 3, 4), normal(2, 3, 4)),
    "tensordot": (lambda x, y: tf.tensordot(x, y, 1), normal(2, 3, 4), normal(4, 5)),
    "tensordot axes": (lambda x, y: tf.tensordot(x, y, [[1], [0]]), normal(2, 3, 4), normal(3, 5)),
    "einsum": (lambda x, y: tf.einsum("bij, bkj -> bik", x, y), normal(2, 3, 4), normal(2, 5, 4)),
    # reductions
    "sum": (lambda x: tf.reduce_sum(x), X),
    "sum axis": (lambda x: tf.reduce_sum(x, 1, keepdims=True), X),
    "mean": (lambda x: tf.reduce_mean(x, [1, 2]), normal(2, 3, 4)),
    "prod": (lambda x: tf.reduce_prod(x, 1), X),
    "max": (lambda x: tf.reduce_max(x, 1) - tf.reduce_min(x, -1), X),
    "max ties": (lambda x: tf.reduce_max(x, 1), lambda rng: np.array([[1.0, 2.0, 2.0], [3.0, 3.0, 1.0]])),
    "any": (lambda x: (tf.reduce_any(x > 0, 1), tf.reduce_all(x > 0)), X),
    "std": (lambda x: tf.math.reduce_std(x, 1), X),
    "l2_loss": (lambda x: nn.l2_loss(x), X),
    "argmax": (lambda x: (tf.argmax(x, 1), tf.argmin(x, 0)), X),
    "cumsum": (lambda x: tf.cumsum(x, 1) + tf.cumsum(x, 0, reverse=True), X),
    "cumprod": (lambda x: tf.math.cumprod(x, 1), X),
    "exclusive cumsum": (lambda x: tf.cumsum(x, 0, exclusive=True), X),
    "exclusive cumprod": (lambda x: tf.math.cumprod(x, -1, exclusive=True, reverse=True), X),
    # shapes
    "reshape": (lambda x: tf.reshape(x, [-1, 12]), normal(2, 3, 4)),
    "reshape static": (static, normal(2, 3, 4)),
    "reshape tail": (tail, normal(2, 3, 4)),
    "expand_dims": (lambda x: tf.squeeze(tf.expand_dims(x, 1), [1]) + tf.squeeze(x[:, :, None]), X),
    "transpose": (lambda x: tf.transpose(x, [0, 2, 1]), normal(2, 3, 4)),
    "transpose all": (lambda x: tf.transpose(x), normal(2, 3, 4)),
    "stack": (lambda x, y: tf.stack([x, y], 1), X, X),
    "unstack": (lambda x: tf.unstack(x, axis=1), X),
    "concat": (lambda x, y: tf.concat([x, y, x], 1), X, normal(3, 2)),
    "concat batch": (lambda x: tf.concat([x, x], 0) * tf.cast(tf.shape(x)[0] + 1, x.dtype), X),
    "split": (lambda x: tf.split(x, 2, 1), X),
    "split sizes": (lambda x: tf.split(x, [1, 2, 4], 1), normal(2, 7)),
    "slice": (lambda x: x[:, 1:-1:2], normal(3, 6)),
    "slice masks": (lambda x: x[..., 1, None, :2] + x[:, -1:, 0][:, None, :1], normal(3, 6, 4)),
    "slice reversed": (lambda x: x[:, ::-1] + x[:, 3:1:-1, None][:, 0], X),
    "tf.slice": (lambda x: tf.slice(x, [0, 1], [-1, 2]) + tf.slice(x, [0, 0], [tf.shape(x)[0], 2]), X),
    "tile": (lambda x: tf.tile(x, [2, 1, 2]), normal(2, 3, 4)),
    "repeat": (lambda x: tf.repeat(x, 2, 1), X),
    "broadcast_to": (lambda x: tf.broadcast_to(x[:, None], [tf.shape(x)[0], 5, 4]), X),
    "pad": (lambda x: tf.pad(x, [[0, 1], [1, 2]]) + tf.pad(x, [[0, 1], [1, 2]], constant_values=0.5), X),
    "pad reflect": (lambda x: tf.pad(x, [[0, 0], [1, 2]], "REFLECT"), X),
    "pad symmetric": (lambda x: tf.pad(x, [[0, 0], [1, 2]], "SYMMETRIC"), X),
    "reverse": (lambda x: tf.reverse(x, [1]), X),
    "roll": (lambda x: tf.roll(x, [1, -1], [0, 1]), X),
    "space_to_batch": (
        lambda x: tf.space_to_batch(x, [2, 2], [[0, 1], [1, 1]]),
        normal(2, 7, 8, 3),
    ),
    "batch_to_space": (lambda x: tf.batch_to_space(x, [2, 2], [[0, 1], [1, 0]]), normal(8, 3, 4, 2)),
    "depth_to_space": (lambda x: nn.depth_to_space(x, 2), normal(2, 3, 4, 8)),
    "space_to_depth": (lambda x: nn.space_to_depth(x, 2), normal(2, 4, 6, 2)),
    "band_part": (lambda x: tf.linalg.band_part(x, 1, 0) + tf.linalg.band_part(x, -1, 1), normal(2, 4, 4)),
    # layers
    "conv2d": (lambda x, w: nn.conv2d(x, w, 2, "SAME"), IMAGE, normal(3, 3, 3, 4)),
    "conv2d even": (lambda x, w: nn.conv2d(x, w, [1, 2], "SAME"), IMAGE, normal(4, 2, 3, 4)),
    "conv2d valid": (lambda x, w: nn.conv2d(x, w, 1, "VALID"), IMAGE, normal(3, 2, 3, 4)),
    "conv2d explicit": (
        lambda x, w: nn.conv2d(x, w, 2, [[0, 0], [1, 0], [2, 1], [0, 0]]),
        IMAGE,
        normal(3, 3, 3, 4),
    ),
    "conv2d dilated": (lambda x, w: value(nn.conv2d)(x, w, 1, "SAME", dilations=2), IMAGE, normal(3, 3, 3, 4)),
    "conv2d groups": (lambda x, w: value(nn.conv2d)(x, w, 2, "SAME"), normal(2, 6, 7, 4), normal(3, 3, 2, 6)),
    "conv1d": (lambda x, w: nn.conv1d(x, w, 2, "SAME"), normal(2, 8, 3), normal(3, 3, 4)),
    "conv3d": (lambda x, w: nn.conv3d(x, w, [1] * 5, "SAME"), normal(2, 4, 4, 4, 2), normal(2, 2, 2, 2, 3)),
    "depthwise": (lambda x, w: nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME"), IMAGE, normal(3, 3, 3, 2)),
    "depthwise dilated": (
        lambda x, w: nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", dilations=[2, 2]),
        IMAGE,
        normal(3, 3, 3, 2),
    ),
    "separable": (
        lambda x, w, v: nn.separable_conv2d(x, w, v, [1, 1, 1, 1], "VALID"),
        IMAGE,
        normal(3, 3, 3, 2),
        normal(1, 1, 6, 4),
    ),
    "conv2d_transpose": (
        lambda x, w: nn.conv2d_transpose(x, w, [tf.shape(x)[0], 14, 16, 4], 2, "SAME"),
        IMAGE,
        normal(3, 3, 4, 3),
    ),
    "conv2d_transpose valid": (
        lambda x, w: nn.conv2d_transpose(x, w, [tf.shape(x)[0], 15, 17, 4], 2, "VALID"),
        IMAGE,
        normal(3, 3, 4, 3),
    ),
    "max_pool": (lambda x: nn.max_pool2d(x, 3, 2, "SAME"), IMAGE),
    "max_pool explicit": (lambda x: nn.max_pool2d(x, 3, 2, [[0, 0], [1, 0], [0, 1], [0, 0]]), IMAGE),
    "avg_pool": (lambda x: nn.avg_pool2d(x, 3, 2, "SAME") + nn.avg_pool2d(x, 2, [2, 2], "SAME"), IMAGE),
    "avg_pool valid": (lambda x: nn.avg_pool2d(x, [3, 2], 1, "VALID"), IMAGE),
    "batch_norm": (
        lambda x, m, v, o, s: nn.batch_normalization(x, m, v, o, s, 1e-3),
        IMAGE,
        normal(3),
        positive(3),
        normal(3),
        normal(3),
    ),
    "batch_norm bare": (
        lambda x, m, v: nn.batch_normalization(x, m, v, None, None, 1e-3),
        IMAGE,
        normal(3),
        positive(3),
    ),
    "batch_norm of batch": (moments, IMAGE),
    "group norm": (grouped, normal(2, 3, 3, 4)),
    "fused_batch_norm": (
        lambda x, s, o, m, v: tf.compat.v1.nn.fused_batch_norm(x, s, o, m, v, 0.01, is_training=False)[0],
        lambda rng: rng.normal(size=(2, 3, 3, 4)).astype("float32"),
        *[lambda rng: rng.uniform(0.5, 1, 4).astype("float32")] * 4,
    ),
    "fused_batch_norm training": (
        lambda x, s, o: tf.compat.v1.nn.fused_batch_norm(x, s, o, epsilon=0.01),
        lambda rng: rng.normal(size=(2, 3, 3, 4)).astype("float32"),
        *[lambda rng: rng.uniform(0.5, 1, 4).astype("float32")] * 2,
    ),
    "bilinear": (lambda x: tf.cast(tf.image.resize(x, (5, 9)), x.dtype), IMAGE),
    "nearest": (lambda x: tf.image.resize(x, (14, 5), "nearest"), IMAGE),
    "cross_entropy": (lambda x, i: nn.sparse_softmax_cross_entropy_with_logits(i, x), X, integers(3, below=4)),
    # indices and masks
    "gather": (lambda x, i: tf.gather(x, i, axis=1), X, integers(2, below=4)),
    "gather rows": (lambda x, i: tf.gather(x, i) + tf.gather(x, 1), X, integers(3, below=3)),
    "gather batch": (lambda x, i: tf.gather(x, i, batch_dims=1), X, integers(3, 2, below=4)),
    "gather_nd": (lambda x, i: tf.gather_nd(x, i), X, integers(5, 2, below=3)),
    "where": (lambda x, y: tf.where(x > 0, x, y), X, normal(4)),
    "where number": (lambda x: tf.where(x > 0, x, tf.constant(0.5, x.dtype)), X),
    "top_k": (lambda x: tf.math.top_k(x, 2), X),
    "one_hot": (
        lambda i: (
            tf.one_hot(i, 5, dtype="float64")
            + tf.one_hot(i, 5, on_value=tf.constant(2.0, "float64"), off_value=tf.constant(-1.0, "float64"))
        ),
        integers(3),
    ),
    "scatter_nd": (lambda i, x: tf.scatter_nd(i[:, None], x, tf.constant([6, 4], i.dtype)), integers(3, below=6), X),
    "segment_sum": (lambda x, i: tf.math.unsorted_segment_sum(x, i, 5), X, integers(3)),
    "gather_nd at constants": (lambda x: tf.gather_nd(x, [[0, 1], [2, 3]]), X),
    "tensor_scatter": (
        lambda x, i, y: (
            tf.tensor_scatter_nd_update(x, [[2], [0]], y[:2]),
            tf.tensor_scatter_nd_add(x, i[:, None], y),
            tf.tensor_scatter_nd_max(x, i[:, None], y),
            tf.tensor_scatter_nd_min(x, i[:, None], y),
        ),
        X,
        integers(3, below=3),
        X,
    ),
    "searchsorted": (
        lambda x, y: (
            tf.searchsorted(tf.sort(y), x),
            tf.searchsorted(tf.sort(y), x, side="right", out_type="int64"),
        ),
        normal(3, 4),
        normal(3, 6),
    ),
    "in_top_k": (lambda x: tf.math.in_top_k([0, 1, 3], tf.cast(x, "float32"), 2), X),
    "soft_cross_entropy": (nn.softmax_cross_entropy_with_logits, unit(3, 4), X),
    "brackets": (
        lambda x: (x[..., None, :] * x[..., None], x[..., 1, :], x[:, ..., None], x[..., :2], x[None]),
        normal(2, 4, 4),
    ),
    # matrices
    "cholesky": (lambda x: tf.linalg.cholesky(matrix(x)), normal(2, 3, 3)),
    "cholesky_solve": (
        lambda x, y: tf.linalg.cholesky_solve(tf.linalg.cholesky(matrix(x)), y),
        normal(2, 3, 3),
        normal(2, 3, 4),
    ),
    "logdet": (lambda x: tf.linalg.logdet(matrix(x)), normal(2, 3, 3)),
    "det": (lambda x: (tf.linalg.det(x), tf.linalg.slogdet(x)), normal(2, 3, 3)),
    "inv": (lambda x: tf.linalg.inv(x) + tf.linalg.inv(x, adjoint=True), normal(2, 3, 3)),
    "solve": (lambda x, y: tf.linalg.solve(x, y) + tf.linalg.solve(x, y, adjoint=True), normal(3, 3), normal(3, 4)),
    "triangular_solve": (
        lambda x, y: (
            tf.linalg.triangular_solve(matrix(x), y),
            tf.linalg.triangular_solve(matrix(x), y, lower=False, adjoint=True),
        ),
        normal(2, 3, 3),
        normal(2, 3, 4),
    ),
    "qr": (tf.linalg.qr, normal(2, 4, 3)),
    "svdvals": (lambda x: tf.linalg.svd(x, compute_uv=False), normal(2, 4, 3)),
    "svd": (lambda x: (lambda s, u, v: (s, (u * s[..., None, :]) @ tf.transpose(v)))(*tf.linalg.svd(x)), normal(4, 3)),
    "eigh": (lambda x: (lambda w, v: (w, v * v))(*tf.linalg.eigh(matrix(x))), normal(3, 3)),
    "eigvalsh": (lambda x: tf.linalg.eigvalsh(matrix(x)), normal(2, 3, 3)),
    "pinv": (tf.linalg.pinv, normal(4, 3)),
    "diagonals": (lambda x: (tf.linalg.diag_part(x), tf.linalg.diag(x[0]), tf.linalg.trace(x)), normal(3, 3)),
    "diagonals in a batch": (lambda x: (tf.linalg.diag(x), tf.linalg.set_diag(tf.linalg.diag(x), 2 * x)), X),
    "cross": (tf.linalg.cross, normal(4, 3), normal(4, 3)),
    # special functions
    "xlogy": (lambda x, y: tf.math.xlogy(zeroed(x), y) + tf.math.xlog1py(zeroed(x), y), X, positive(3, 4)),
    "xdivy": (lambda x, y: tf.math.xdivy(zeroed(x), y * zeroed(y)), X, positive(3, 4)),
    "igamma": (lambda x: tf.math.igamma(tf.ones_like(x), x) - tf.math.igammac(2 * tf.ones_like(x), x), positive(3, 4)),
    "i0": (tf.math.special.bessel_i0 if hasattr(tf.math.special, "bessel_i0") else tf.math.bessel_i0, X),
    "FFT": (lambda x, y: parts(tf.signal.fft(tf.complex(x, y))), X, X),
    "IFFT2D": (lambda x, y: parts(tf.signal.ifft2d(tf.complex(x, y))), normal(2, 3, 4), normal(2, 3, 4)),
    "RFFT": (lambda x: parts(tf.signal.rfft(x, [6])), X),
    "RFFT2D": (lambda x: parts(tf.signal.rfft2d(x)), normal(2, 3, 5)),
    "IRFFT": (lambda x: tf.signal.irfft(tf.signal.rfft(x) ** 2, [5]), normal(2, 5)),
    "IRFFT2D": (lambda x: tf.signal.irfft2d(tf.signal.rfft2d(x) * 2), normal(2, 4, 6)),
    "stft": (lambda x: parts(tf.signal.stft(x, 8, 4)), normal(2, 20)),
    "complex parts": (lambda x, y: (tf.abs(tf.complex(x, y)), tf.math.angle(tf.complex(x, y * 2))), X, X),
    "shifts": (lambda i: tf.bitwise.left_shift(i, i) + tf.bitwise.right_shift(i, i // 2), integers(3, 4)),
    "norm": (lambda x: tf.math.reduce_euclidean_norm(x, 1, keepdims=True), X),
    # creation
    "zeros": (lambda x: tf.zeros([tf.shape(x)[0], 4], x.dtype) + x + tf.ones([4], x.dtype), X),
    "fill": (lambda x: tf.fill([tf.shape(x)[0], 1], tf.constant(2.5, x.dtype)) * x, X),
    "like": (lambda x: tf.ones_like(x) + tf.zeros_like(x) * x, X),
    "range": (lambda x: tf.cast(tf.range(4), x.dtype) * x, X),
    "range batch": (lambda x: tf.cast(tf.range(tf.shape(x)[0]), x.dtype)[:, None] * x, X),
    "constant": (lambda x: x * tf.constant([1.0, 2.0, 3.0, 4.0], x.dtype) + tf.constant(2.0, x.dtype), X),
    "large constant": (lambda x: x + tf.constant(np.arange(20.0).reshape(5, 1, 4)), X),
}


# TensorFlow has no gradient of these, of the first ones none in float64
VALUES = {f"image {name} to {size}" for name in RESIZES[1:] for size in (4, 13)} | {"image smoothed"}
VALUES |= {f"image {name}" for name in COLOURS}


def drawn(case):
    rng = np.random.default_rng(0)
    line, *draws = ROWS[case]
    return line, tuple(draw(rng) for draw in draws)


def original(function, inputs, variables=(), has_gradient=True):
    """Return the outputs, the gradients of a weighted sum of them in variables and inputs, and the new state."""
    tensors = [tf.constant(x) for x in inputs]
    before = {name: variable.numpy() for name, variable in dict(variables).items()}
    trained = {name: variable for name, variable in dict(variables).items() if variable.trainable}
    floats = {f"input {i}": tensor for i, tensor in enumerate(tensors) if tensor.dtype.is_floating}
    with tf.GradientTape() if has_gradient else contextlib.nullcontext() as tape:
        if has_gradient:
            tape.watch(list(floats.values()))
        outputs = leaves(function(*tensors))
        terms = [tf.reduce_sum(tf.cast(y, "float64") * weights(y.shape)) for y in outputs if y.dtype.is_floating]
        total = tf.add_n(terms) if terms else tf.zeros((), "float64")
    named = {**trained, **floats}
    named = named if has_gradient else {}
    slopes = tape.gradient(total, list(named.values()), unconnected_gradients="zero") if named else []
    state = {name: variable.numpy() for name, variable in dict(variables).items() if name not in trained}
    for name, value in before.items():
        dict(variables)[name].assign(value)
    gradients = {name: tf.convert_to_tensor(slope).numpy() for name, slope in zip(named, slopes, strict=True)}
    return [y.numpy() for y in outputs], gradients, state


@functools.cache
def traced(case):
    line, inputs = drawn(case)
    function = tf.function(line, autograph=False)
    return porting.trace(function, *inputs, name="line"), original(function, inputs, (), case not in VALUES)
