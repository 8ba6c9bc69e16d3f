"""A step of training with Keras, on its backend."""

from __future__ import annotations

import keras

import multiop
from multiop import errors


def backend():
    return keras.backend.backend()


def step(model, optimizer, loss, batch):
    """Make a step, and return the loss before it."""
    if backend() not in DERIVATIVES:
        raise errors.UnsupportedError(f"Keras runs on {backend()}, which has no gradients: set KERAS_BACKEND")
    tensors = [keras.ops.convert_to_tensor(x) for x in batch]
    y, slopes = DERIVATIVES[backend()](model, lambda: loss(model, *tensors))
    optimizer.apply(slopes, model.trainable_variables)
    return keras.ops.convert_to_numpy(y)


def on_tensorflow(model, loss):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        y = loss()
    return y, tape.gradient(y, [variable.value for variable in model.trainable_variables])


def on_torch(model, loss):
    model.zero_grad()
    y = loss()
    y.backward()
    return y.detach(), [variable.value.grad for variable in model.trainable_variables]


def on_jax(model, loss):
    def compute_loss(values):
        mapping = list(zip(model.trainable_variables, values, strict=True))
        with keras.StatelessScope(mapping) as scope:
            y = loss()
        return y, [scope.get_current_value(variable) for variable in model.non_trainable_variables]

    values = [variable.value for variable in model.trainable_variables]
    (y, state), slopes = multiop.value_and_grad(compute_loss, has_aux=True)(values)
    for variable, value in zip(model.non_trainable_variables, state, strict=True):
        if value is not None:
            variable.assign(value)
    return y, slopes


DERIVATIVES = {"tensorflow": on_tensorflow, "torch": on_torch, "jax": on_jax}
