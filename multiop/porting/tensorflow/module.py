"""A port as a layer of Keras, whose backend may be any of the three."""

from __future__ import annotations

import collections

import keras

import multiop
from multiop.porting import _weights


class PortedLayer(keras.layers.Layer):
    """Compute a port on Keras's backend, with its parameters, and its state as weights that are not trained."""

    _multiop_ported = True  # its weights have the names of the original

    def __init__(self, port, params, state, seed=None, **options):
        dtypes = collections.Counter(str(x.dtype) for x in _weights.flat(params).values() if "float" in str(x.dtype))
        named = {"name": port.name} | ({"dtype": dtypes.most_common(1)[0][0]} if dtypes else {})
        super().__init__(**(named | options))
        self.port = port  # without weights of its own
        names = free_names([*_weights.flat(params), *_weights.flat(state)])
        self.params = {
            path: self._weight(names[path], x, path not in port.frozen) for path, x in _weights.flat(params).items()
        }
        self.state = {path: self._weight(names[path], x, False) for path, x in _weights.flat(state).items()}
        draws = port.draws(False) or port.draws(True)
        self.generator = keras.random.SeedGenerator(seed) if draws else None
        self.built = True

    def _weight(self, name, array, is_trained):
        options = {"shape": array.shape, "dtype": str(array.dtype), "trainable": is_trained, "name": name}
        weight = self.add_weight(**options, initializer="zeros", autocast=False)
        weight.assign(array)
        return weight

    def call(self, *inputs, training=False, **keywords):
        training = bool(training)
        params, state = (
            _weights.nested({path: weight.value for path, weight in weights.items()})
            for weights in (self.params, self.state)
        )
        with multiop.use_backend(keras.backend.backend()):
            seed = multiop.op_cast(self.generator.next(), "uint32") if self.port.draws(training) else None
            outputs, changed = self.port.function(params, state, *inputs, training=training, seed=seed, **keywords)
        if training:
            for path, x in _weights.flat(changed).items():
                self.state[path].assign(x)
        return outputs


def free_names(paths):
    """Return a name for each weight: Keras takes no slash in it, and PyTorch no dot."""
    names, taken = {}, set()
    for path in paths:
        name = path.replace("/", "_").replace(".", "_")
        while name in taken:
            name += "_"
        names[path] = name
        taken.add(name)
    return names
