"""The layers of Keras models on TensorFlow: what each returns, and the gradients there."""

from __future__ import annotations

import sys

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop.porting import _graph, _objects
from multiop.porting._reference import Record, Reference, number_call
from multiop.porting.tensorflow import _internals, reader
from multiop.porting.tensorflow.weights import is_keras, to_numpy


def record(model, inputs, cotangents, training, arranged):
    """Run a model forward and backward, with each layer of Keras watched; of other models no layers are known."""
    if is_keras(model) and (engine := sys.modules["keras"].config.backend()) != "tensorflow":
        raise errors.ArgumentTypeError(
            f"reference: Keras runs on {engine}; set KERAS_BACKEND=tensorflow, or give a function"
        )
    described, call = _describe_reference(model, inputs, training, arranged)
    variables, seen, counts = described.variables, [], {}
    before = {name: to_numpy(variable) for name, variable in variables.items()}
    params = {name: variable for name, variable in variables.items() if name not in described.state}
    layers = _internals.layers(model) if is_keras(model) else []
    layers = [layer for layer in layers if type(layer).__name__ != "InputLayer"]
    own = {id(layer): {x.path.rpartition("/")[2]: to_numpy(x) for x in layer.variables} for layer in layers}
    paths = names(model, layers) if layers else {}

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

    tensors = [tf.convert_to_tensor(x) for x in inputs]
    floats = [x for x in tensors if is_inexact(x)]
    try:
        for layer in layers:
            object.__setattr__(layer, "call", watch_call(layer, layer.call))
        with tf.GradientTape() as tape:
            tape.watch([*floats, *params.values()])
            outputs = [tf.convert_to_tensor(y) for y in _graph.comparable(_objects.open_objects(call(tensors)))]
    finally:
        for layer in layers:
            layer.__dict__.pop("call", None)
    after = {name: to_numpy(variables[name]) for name in described.state}
    for name, x in before.items():  # a step in training mode changes the statistics
        variables[name].assign(x)
    values = [np.array(y) for y in outputs]
    weights = cotangents(values)
    pairs = [(y, tf.convert_to_tensor(w)) for y, w in zip(outputs, weights, strict=True) if w is not None]
    places = [y for *_, y in seen]
    sources, (targets, upstream) = [*places, *floats, *params.values()], zip(*pairs, strict=True) if pairs else ((), ())
    zero = tf.UnconnectedGradients.ZERO
    slopes = tape.gradient(list(targets), sources, list(upstream), unconnected_gradients=zero) if pairs else []
    slopes = iter([np.array(tf.convert_to_tensor(slope)) for slope in slopes])
    records = {}
    for name, layer, given, y in seen:
        slope, arrays = next(slopes, None), [np.array(x) for x in given]
        kind = KINDS.get(type(layer).__name__, type(layer).__name__)
        slope = slope if is_inexact(y) else None
        records[name] = Record(name, np.array(y), arrays, slope, kind, own[id(layer)], options(layer, training))
    of_inputs = [next(slopes, None) if is_inexact(x) else None for x in tensors]
    of_params = dict(zip(params, slopes, strict=False))
    title = (is_keras(model) and model.name) or described.kind
    return Reference(title, records, values, weights, of_inputs, of_params, after, before)


def is_inexact(x):
    return x.dtype.is_floating or x.dtype.is_complex


def _describe_reference(model, inputs, training, arranged):
    """Return what is known of a model, and the model as a function of its tensors in the order of the inputs."""
    args, kwargs = arranged([np.asarray(x) for x in inputs])
    described = reader.describe_model(model, training, reader.Arguments(args, kwargs))
    args, kwargs = arranged([np.asarray(number) for number in range(len(inputs))])
    order = [int(number) for number in reader.Arguments(args, kwargs).tensors]
    return described, lambda tensors: described.call(*[tensors[number] for number in order])


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
    **{f"Conv{n}D": "Conv" for n in (1, 2, 3)},
    **{f"MaxPooling{n}D": "MaxPool" for n in (1, 2, 3)},
    **{f"AveragePooling{n}D": "AvgPool" for n in (1, 2, 3)},
}


def options(layer, training):
    """Return the options of a layer by the names that PyTorch gives them."""
    plain = {"training": training}
    for ours, theirs in (("eps", "epsilon"), ("num_groups", "groups")):
        if hasattr(layer, theirs):
            plain[ours] = getattr(layer, theirs)
    if type(layer).__name__ == "BatchNormalization":
        plain["momentum"] = 1 - layer.momentum
    return plain
