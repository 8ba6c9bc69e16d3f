"""Code written for `keras.ops` runs unchanged on `multiop.ops`: functions of the kind found in Keras's examples.

The oracle is Keras itself on its NumPy backend.
"""

from __future__ import annotations

import numpy as np
import pytest

import multiop

pytestmark = pytest.mark.cross


def draw(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype("float32")


def sinusoidal_positions(ops):
    positions = ops.cast(ops.arange(10), "float32")
    exponents = ops.arange(0, 8, 2, dtype="float32") / 8.0
    angles = ops.expand_dims(positions, 1) / ops.power(10000.0, ops.expand_dims(exponents, 0))
    return ops.reshape(ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1), (10, 8))


def causal_attention(ops, x, w):
    query, key, value = ops.split(ops.matmul(x, w), 3, axis=-1)
    scores = ops.einsum("bqd,bkd->bqk", query, key) / ops.sqrt(ops.cast(8, "float32"))
    length = ops.shape(x)[1]
    rows = ops.expand_dims(ops.arange(length), 1)
    mask = ops.greater_equal(rows, ops.arange(length))
    scores = ops.where(mask, scores, -1e9)
    return ops.einsum("bqk,bkd->bqd", ops.softmax(scores, axis=-1), value)


def focal_loss(ops, logits, labels):
    p = ops.sigmoid(logits)
    crossentropy = ops.binary_crossentropy(labels, p)
    p_true = labels * p + (1 - labels) * (1 - p)
    weight = labels * 0.25 + (1 - labels) * 0.75
    return ops.mean(weight * ops.power(1.0 - p_true, 2.0) * crossentropy)


def vector_quantizer(ops, x, codebook):
    flat = ops.reshape(x, (-1, 6))
    distances = ops.sum(flat**2, axis=1, keepdims=True) + ops.sum(codebook**2, axis=0) - 2 * ops.matmul(flat, codebook)
    chosen = ops.one_hot(ops.argmin(distances, axis=1), 10)
    quantized = ops.reshape(ops.matmul(chosen, ops.transpose(codebook)), ops.shape(x))
    return x + ops.stop_gradient(quantized - x)


def intersection_over_union(ops, a, b):
    a, b = (ops.concatenate([x[..., :2], x[..., :2] + ops.abs(x[..., 2:])], axis=-1) for x in (a, b))
    top_left = ops.maximum(a[:, None, :2], b[None, :, :2])
    bottom_right = ops.minimum(a[:, None, 2:], b[None, :, 2:])
    overlap = ops.prod(ops.maximum(0.0, bottom_right - top_left), axis=-1)
    areas = [ops.prod(x[:, 2:] - x[:, :2], axis=-1) for x in (a, b)]
    union = areas[0][:, None] + areas[1] - overlap
    return ops.clip(overlap / ops.maximum(union, 1e-8), 0.0, 1.0)


def contrastive_loss(ops, a, b, temperature):
    a, b = ops.normalize(a, axis=1), ops.normalize(b, axis=1)
    similarities = ops.matmul(a, ops.transpose(b)) / temperature
    labels = ops.arange(5)
    forward = ops.sparse_categorical_crossentropy(labels, similarities, from_logits=True)
    backward = ops.sparse_categorical_crossentropy(labels, ops.transpose(similarities), from_logits=True)
    return ops.mean(forward + backward) / 2


def gated_recurrence(ops, xs, w, u):
    def step(state, x):
        state = ops.tanh(ops.matmul(x, w) + ops.matmul(state, u))
        return state, state

    return ops.scan(step, ops.zeros((2, 4)), xs)[1]


def kl_of_gaussians(ops, mean, log_variance):
    terms = 1 + log_variance - ops.square(mean) - ops.exp(log_variance)
    return ops.mean(ops.sum(-0.5 * terms, axis=1))


def volume_rendering(ops, density, color, depth):
    gaps = ops.concatenate([depth[1:] - depth[:-1], ops.array([1e10], "float32")], axis=-1)
    alpha = 1.0 - ops.exp(-ops.relu(density) * gaps)
    light = ops.cumprod(1.0 - alpha + 1e-10, axis=-1)
    weights = alpha * ops.concatenate([ops.ones_like(light[:, :1]), light[:, :-1]], axis=-1)
    return ops.sum(weights[..., None] * ops.sigmoid(color), axis=-2)


def patches_of_an_image(ops, images):
    patches = ops.image.extract_patches(images, 4)
    return ops.reshape(patches, (2, 4, 48))


def convolutional_block(ops, x, kernel):
    x = ops.nn.relu(ops.nn.conv(x, kernel, strides=1, padding="same"))
    x = ops.max_pool(x, pool_size=2, strides=2, padding="valid")
    mean, variance = ops.moments(x, axes=(0, 1, 2))
    return ops.mean(ops.batch_normalization(x, mean, variance, axis=-1, epsilon=1e-3), axis=(1, 2))


CODE = {
    sinusoidal_positions: (),
    causal_attention: (draw(2, 5, 8), draw(8, 24)),
    focal_loss: (draw(6), np.array([0, 1, 1, 0, 1, 0], "float32")),
    vector_quantizer: (draw(3, 4, 6), draw(6, 10)),
    intersection_over_union: (np.abs(draw(4, 4)), np.abs(draw(3, 4))),
    contrastive_loss: (draw(5, 7), draw(5, 7, seed=1), 0.1),
    gated_recurrence: (draw(6, 2, 3), draw(3, 4), draw(4, 4)),
    kl_of_gaussians: (draw(4, 3), draw(4, 3, seed=2)),
    volume_rendering: (np.abs(draw(4, 8)), draw(4, 8, 3), np.sort(np.abs(draw(8)))),
    patches_of_an_image: (draw(2, 8, 8, 3),),
    convolutional_block: (draw(2, 8, 8, 3), draw(3, 3, 3, 4)),
}
DIFFERENTIABLE = [code for code, inputs in CODE.items() if inputs]


def tensors(inputs):
    return [multiop.op_convert_to_tensor(x) if isinstance(x, np.ndarray) else x for x in inputs]


@pytest.mark.parametrize("code", CODE, ids=[code.__name__ for code in CODE])
def test_keras_code_runs_unchanged(backend, code, keras):
    found = multiop.op_convert_to_numpy(code(multiop.ops, *tensors(CODE[code])))
    expected = np.asarray(code(keras.ops, *CODE[code]))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("code", DIFFERENTIABLE, ids=[code.__name__ for code in DIFFERENTIABLE])
def test_and_has_gradients(backend, code, keras):
    """Compare along one direction with finite differences of Keras's own values."""
    x, *others = CODE[code]
    direction = draw(*x.shape, seed=9)

    def total(x):
        return multiop.op_sum(code(multiop.ops, x, *tensors(others)))

    gradient = multiop.op_convert_to_numpy(multiop.grad(total)(multiop.op_convert_to_tensor(x)))
    if code is vector_quantizer:  # straight through: the identity's gradient
        np.testing.assert_allclose(gradient, np.ones_like(x), rtol=1e-6)
        return

    def value(step):
        moved = code(keras.ops, x + np.float32(step) * direction, *others)
        return float(np.sum(np.asarray(moved), dtype=np.float64))

    step = 1e-2
    expected = (8 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12 * step)
    assert float(np.sum(gradient * direction)) == pytest.approx(expected, rel=2e-2, abs=2e-2)


@pytest.mark.parametrize("space", ["image", "linalg", "nn", "numpy"])
def test_no_name_of_keras_is_missing(space, keras):
    names = {name for name in dir(getattr(keras.ops, space)) if not name.startswith("_")}
    assert names - {"jvp"} <= set(getattr(multiop.ops, space).__all__)  # jvp is multiop.ops.jvp
