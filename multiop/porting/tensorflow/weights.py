"""Weights of Keras models and layers, of `tf.Module`, and of lists of variables."""

from __future__ import annotations

import collections
import re
import sys

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop.porting import _weights
from multiop.porting.tensorflow import _internals


def read(source):
    names, kinds, state, framework = _read_variables(source)
    arrays = {name: to_numpy(variable) for name, variable in names.items()}
    params = {name: x for name, x in arrays.items() if name not in state}
    rest = {name: x for name, x in arrays.items() if name in state}
    return _weights.Weights(_weights.nested(params), _weights.nested(rest), framework, kinds)


def write(destination, weights, cast, partial):
    names, *_ = _read_variables(destination)
    arrays = weights.arrays
    _weights.check_written(arrays, names, partial)
    fitted = {
        name: _weights.fit_array(name, x, tuple(names[name].shape), to_numpy(names[name]).dtype, cast)
        for name, x in arrays.items()
    }
    for name, x in fitted.items():
        names[name].assign(x)
    return destination


def to_numpy(variable):
    """Return a copy of a variable's values, whichever backend Keras has."""
    value = getattr(variable, "value", variable)
    value = value() if callable(value) else value
    if isinstance(value, tf.Tensor):
        return np.array(value.numpy())
    return np.array(sys.modules["keras"].ops.convert_to_numpy(value))


def variables(source):
    """Return the variables of a model by the names that `read` gives them."""
    return _read_variables(source)[0]


def _read_variables(source):
    """Return the variables by name, the classes of the layers, the names of state, and whose layouts they are."""
    if getattr(source, "_multiop_ported", False):
        return source.params | source.state, {"": "PortedLayer"}, set(source.state), None
    if is_keras(source) and _internals.has_layers(source):
        return *_of_layer(source), "keras"
    if is_keras(source) and not isinstance(source, (dict, list, tuple)):
        raise errors.ArgumentError(f"weights: give a model or a layer of Keras, not a {type(source).__name__}")
    if isinstance(source, tf.Module):
        variables = _internals.leaves(source, lambda x: isinstance(x, tf.Variable))
        named = [(".".join(map(str, path)), variable) for path, variable in variables]
        return *_of_variables(named), "tensorflow"
    if isinstance(source, dict):
        named = list(_weights.flat(source).items())
    elif isinstance(source, (list, tuple)):
        named = [(_path(variable), variable) for variable in source]
    else:
        raise errors.ArgumentError(f"weights: a {type(source).__name__} holds no variables")
    framework = "keras" if any(is_keras(variable) for _, variable in named) else "tensorflow"
    return *_of_variables(named), framework


def is_keras(x):
    """Return whether an object is one of Keras's."""
    return any(cls.__module__.partition(".")[0] == "keras" for cls in type(x).__mro__)


def _path(variable):
    return getattr(variable, "path", variable.name).partition(":")[0].replace("/", ".")


def _number_by_layer(names):
    """Number the variables that Keras named from the first one of their layer, not from the first one of the program."""
    counts, numbered = collections.Counter(), []
    for name in names:
        layer, dot, leaf = name.rpartition(".")
        if dot and re.fullmatch(r"variable(_\d+)?", leaf):
            leaf = f"variable_{counts[layer]}" if counts[layer] else "variable"
            counts[layer] += 1
        numbered.append(f"{layer}{dot}{leaf}")
    return numbered


def _of_variables(named):
    names = _distinct([name for name, _ in named])
    variables = dict(zip(names, (variable for _, variable in named), strict=True))
    state = {
        name
        for name, variable in variables.items()
        if not getattr(variable, "trainable", True) or _weights.is_state(name, to_numpy(variable))
    }
    return variables, {}, state


def _distinct(names):
    """Number the second and later occurrences of a name, as Keras does, at its layer."""
    seen, numbered = {}, []
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        parent, dot, leaf = name.rpartition(".")
        numbered.append(name if not seen[name] else f"{parent or leaf}_{seen[name]}{dot}{leaf if dot else ''}")
    if len(set(numbered)) < len(numbered):
        raise errors.ArgumentError("the names of the variables are not distinct; give the layers names")
    return numbered


def _of_layer(model):
    """Name the variables of a layer by their paths, and find the innermost layer that each belongs to."""
    layers = sorted(_internals.layers(model, include_self=True), key=lambda layer: -len(layer.weights))
    owner = {id(variable): layer for layer in layers for variable in layer.variables}
    variables = list(model.variables)
    names = _distinct(_number_by_layer([_path(variable) for variable in variables]))
    kinds, state = {}, set()
    for name, variable in zip(names, variables, strict=True):
        layer = owner[id(variable)]
        kinds[name.rpartition(".")[0]] = type(layer).__name__
        frozen = not variable.trainable and layer.trainable
        if frozen or _weights.is_state(name, to_numpy(variable)):
            state.add(name)
    return dict(zip(names, variables, strict=True)), kinds, state
