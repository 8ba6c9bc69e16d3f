"""The layers of Keras models on TensorFlow: what each returns, and the gradients there."""

from __future__ import annotations

import sys

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop.porting import _graph, _objects
from multiop.porting._reference import Record, Reference, number_call
from multiop.porting.tensorflow import _internals, reader
from multiop.porting.tensorflow.weights import _of_layer, is_keras, to_numpy


def record(model, inputs, cotangents, training, arranged):
    """Run a Keras model forward and backward, with each of its layers watched; of other models no layers are known."""
    if not is_keras(model):
        return _record_whole(model, inputs, cotangents, training, arranged)
    engine = sys.modules["keras"].config.backend()
    if engine != "tensorflow":
        raise errors.ArgumentTypeError(
            f"reference: Keras runs on {engine}; set KERAS_BACKEND=tensorflow, or give a function"
        )
    tensors = [tf.convert_to_tensor(x) for x in inputs]
    _, call = _describe_reference(model, inputs, training, arranged)
    variables, _, state_names = _of_layer(model)
    before = {name: to_numpy(variables[name]) for name in state_names}
    seen, counts = [], {}
    layers = [layer for layer in _internals.layers(model) if not is_input(layer)]
    own = {id(layer): dict(own_arrays(layer)) for layer in layers}
    paths = names(model, layers)

    def watch_call(layer, call):
        def run(*args, **kwargs):
            output = call(*args, **kwargs)
            given = [x for x in tf.nest.flatten([args, kwargs]) if isinstance(x, tf.Tensor)]
            leaves = [y for y in tf.nest.flatten(output) if isinstance(y, tf.Tensor)]
            called = number_call(paths[id(layer)], counts)
            for n, y in enumerate(leaves):
                seen.append((called if len(leaves) == 1 else f"{called}.{n}", layer, given, y))
            return output

        return run

    params = {name: x for name, x in variables.items() if name not in state_names}
    try:
        for layer in layers:
            object.__setattr__(layer, "call", watch_call(layer, layer.call))
        with tf.GradientTape(persistent=True) as tape:
            floats = [x for x in tensors if x.dtype.is_floating or x.dtype.is_complex]
            tape.watch(floats)
            outputs = [y for y in _graph.leaves(_objects.open_objects(call(tensors))) if isinstance(y, tf.Tensor)]
    finally:
        for layer in layers:
            layer.__dict__.pop("call", None)
    after = {name: to_numpy(variables[name]) for name in state_names}
    for name, x in before.items():  # a step in training mode changes the statistics
        variables[name].assign(x)
    values = [np.array(y) for y in outputs]
    weights = cotangents(values)
    pairs = [(y, w) for y, w in zip(outputs, weights, strict=True) if w is not None]
    targets = [y for y, _ in pairs], [tf.convert_to_tensor(w) for _, w in pairs]
    places = [y for _, _, _, y in seen]
    inner = [x.value if hasattr(x, "value") and not callable(x.value) else x for x in params.values()]
    zero = tf.UnconnectedGradients.ZERO
    at_layers, at_inputs, at_params = (
        tape.gradient(targets[0], wanted, targets[1], unconnected_gradients=zero) if wanted else []
        for wanted in (places, floats, inner)
    )
    del tape
    records = {}
    for (name, layer, given, y), gradient in zip(seen, at_layers, strict=True):
        gradient = np.array(tf.convert_to_tensor(gradient)) if y.dtype.is_floating or y.dtype.is_complex else None
        records[name] = Record(
            name,
            np.array(y),
            [np.array(x) for x in given],
            gradient,
            kind(layer),
            own[id(layer)],
            options(layer, training),
        )
    slopes = iter(at_inputs)
    return Reference(
        type(model).__name__ if model.name is None else model.name,
        records,
        values,
        weights,
        [np.array(next(slopes)) if x.dtype.is_floating or x.dtype.is_complex else None for x in tensors],
        {name: np.array(tf.convert_to_tensor(g)) for name, g in zip(params, at_params, strict=True)},
        after,
        before,
    )


def _describe_reference(model, inputs, training, arranged):
    """Return what is known of a model, and the model as a function of its tensors in the order of the inputs."""
    args, kwargs = arranged([np.asarray(x) for x in inputs])
    described = reader.describe_model(model, tuple(args), kwargs, training)
    args, kwargs = arranged([np.asarray(number) for number in range(len(inputs))])
    order = [int(number) for number in reader.tensors(tuple(args), kwargs)]
    return described, lambda tensors: described.call(*[tensors[number] for number in order])


def _record_whole(model, inputs, cotangents, training, arranged):
    """Run a module, a function or a SavedModel forward and backward."""
    model, call = _describe_reference(model, inputs, training, arranged)
    before = {name: to_numpy(variable) for name, variable in model.variables.items()}
    params = {name: variable for name, variable in model.variables.items() if name not in model.state}
    tensors = [tf.convert_to_tensor(x) for x in inputs]
    floats = [x for x in tensors if x.dtype.is_floating or x.dtype.is_complex]
    with tf.GradientTape() as tape:
        tape.watch([*floats, *params.values()])
        outputs = [tf.convert_to_tensor(y) for y in _graph.comparable(_objects.open_objects(call(tensors)))]
    after = {name: to_numpy(model.variables[name]) for name in model.state}
    for name, x in before.items():
        model.variables[name].assign(x)
    values = [np.array(y) for y in outputs]
    weights = cotangents(values)
    pairs = [(y, tf.convert_to_tensor(w)) for y, w in zip(outputs, weights, strict=True) if w is not None]
    zero = tf.UnconnectedGradients.ZERO
    sources, (targets, given) = [*floats, *params.values()], zip(*pairs, strict=True) if pairs else ((), ())
    slopes = iter(tape.gradient(list(targets), sources, list(given), unconnected_gradients=zero) if pairs else [])
    of_inputs = [np.array(next(slopes)) if pairs and any(x is y for y in floats) else None for x in tensors]
    of_params = {name: np.array(tf.convert_to_tensor(g)) for name, g in zip(params, slopes, strict=False)}
    return Reference(model.kind, {}, values, weights, of_inputs, of_params, after, before)


def is_input(layer):
    return type(layer).__name__ == "InputLayer"


def names(model, layers):
    """Return the names of layers: those below another layer than the model begin with its name."""
    names_of = {}
    parents = [(model, "")]
    while parents:
        parent, prefix = parents.pop()
        for layer in _internals.layers(parent, recursive=False):
            if id(layer) not in names_of:
                names_of[id(layer)] = f"{prefix}{layer.name}"
                parents.append((layer, f"{prefix}{layer.name}."))
    return {id(layer): names_of.get(id(layer), layer.name) for layer in layers}


KINDS = {  # the class that has the same suspects
    "BatchNormalization": "BatchNorm",
    "LayerNormalization": "LayerNorm",
    "GroupNormalization": "GroupNorm",
    "RMSNormalization": "RMSNorm",
    "Embedding": "Embedding",
    "Dense": "Dense",
    **{f"Conv{n}D": "Conv" for n in (1, 2, 3)},
    **{f"MaxPooling{n}D": "MaxPool" for n in (1, 2, 3)},
    **{f"AveragePooling{n}D": "AvgPool" for n in (1, 2, 3)},
}


def kind(layer):
    return KINDS.get(type(layer).__name__, type(layer).__name__)


def own_arrays(layer):
    for variable in layer.variables:
        yield variable.path.rpartition("/")[2], to_numpy(variable)


def options(layer, training):
    """Return the options of a layer by the names that PyTorch gives them."""
    plain = {"training": training}
    for ours, theirs in (("eps", "epsilon"), ("num_groups", "groups")):
        if hasattr(layer, theirs):
            plain[ours] = getattr(layer, theirs)
    if type(layer).__name__ == "BatchNormalization":
        plain["momentum"] = 1 - layer.momentum
    return plain
