"""A port as a module of flax's nnx."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

import multiop
from multiop import errors
from multiop.porting import _modules, _weights

TAKEN = frozenset(dir(nnx.Module)) | {"port", "rngs", "deterministic"}


class Group(nnx.Module):
    """Hold the weights of a layer, and other groups."""


class PortedModule(nnx.Module):
    """Compute a port on JAX, with its parameters as `nnx.Param`, and its state as `nnx.BatchStat`."""

    def __init__(self, port, params, state, rngs=None):
        self.port = port  # without weights of its own
        self.deterministic = True  # what `train` and `eval` of nnx set
        self.rngs = rngs
        frozen = {path: x for path, x in _weights.flat(params).items() if path in port.frozen}
        trained = {path: x for path, x in _weights.flat(params).items() if path not in frozen}
        self._place(_weights.nested(trained), nnx.Param)
        self._place(_weights.nested(frozen), nnx.Variable)
        self._place(state, nnx.BatchStat)

    def _place(self, tree, kind):
        def add(module, name):
            setattr(module, name, Group())

        def register(module, name, x):
            setattr(module, name, kind(jnp.asarray(x)))

        _modules.place(self, tree, TAKEN, add, register)

    def __call__(self, *inputs, **keywords):
        training = not self.deterministic
        params, state = (_modules.tree_of(self, tree, TAKEN) for tree in (self.port.params, self.port.state))
        values = jax.tree.map(value_of, (params, state), is_leaf=lambda x: isinstance(x, nnx.Variable))
        seed = self._key(training) if self.port.draws(training) else None
        with multiop.use_backend("jax"):
            outputs, changed = self.port.function(*values, *inputs, training=training, seed=seed, **keywords)
        if training:
            _modules.update(state, changed, set_value)
        return outputs

    def _key(self, training):
        if self.rngs is None:
            mode = "training" if training else "evaluation"
            raise errors.ArgumentError(
                f"{self.port.name} draws random numbers in {mode}: make it with as_module('flax', rngs=nnx.Rngs(0))"
            )
        return jax.random.key_data(self.rngs()).ravel()[-2:]


def value_of(variable):
    return variable[...]


def set_value(variable, x):
    variable[...] = x
