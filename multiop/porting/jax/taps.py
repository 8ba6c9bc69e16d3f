"""Models of JAX: what each of their modules returns, and the gradients there."""

from __future__ import annotations

import sys

import jax
import numpy as np

import multiop
from multiop.porting import _graph, _objects
from multiop.porting._reference import Record, Reference, is_inexact
from multiop.porting._taps import Perturbed, recording
from multiop.porting.jax import models


def record(model, inputs, cotangents, training, arranged):
    """Run a model of JAX forward and backward, with each of its modules watched, and the taps that it has itself."""
    form = models.model_of(model, training)
    leaves = [*inputs, *form.params.values()]
    wide = any(np.dtype(x.dtype).name in ("float64", "complex128") for x in leaves if not models.is_key(x))
    with jax.enable_x64(wide or jax.config.jax_enable_x64), multiop.use_backend("jax"):
        return _record(form, inputs, cotangents, training, arranged)


class _Watch(Perturbed):
    """Adds a perturbation to what each module returns, and records it."""

    def __init__(self, perturbations):
        super().__init__(perturbations)
        self.inputs, self.modules = {}, {}

    def _see(self, name, x):
        # the parts of a tuple come after the modules inside, which may have their names
        return x if name in self.values or not hasattr(x, "dtype") else self.place(name, x)

    def see_module(self, path, module, given, output):
        before = len(self.values)
        output = self.see(path, output)
        for name in list(self.values)[before:]:
            self.inputs[name], self.modules[name] = given, module
        return output


def _arrays(module):
    """Return a module's own arrays, by the names that its class gives them."""
    linen, nnx = map(sys.modules.get, ("flax.linen", "flax.nnx"))
    if linen is not None and isinstance(module, linen.Module):
        arrays = {name: x for collection in module.variables.values() for name, x in collection.items()}
    elif nnx is not None and isinstance(module, nnx.Module):
        arrays = {name: x[...] for name, x in vars(module).items() if isinstance(x, nnx.Variable)}
    else:
        arrays = vars(module)
    return {name: np.array(x) for name, x in arrays.items() if _is_known(x)}


def _is_known(x):
    """Return whether something is an array that has values: in a scan, or under `vmap`, it has none."""
    return hasattr(x, "dtype") and not isinstance(x, jax.core.Tracer)


def _record(form, inputs, cotangents, training, arranged):
    tensors = [jax.numpy.asarray(x) for x in inputs]
    params, state = dict(form.params), dict(form.state)
    key = jax.random.key(0) if training else None
    own = {}

    def run(params, tensors, watch, see):
        form.see = see
        with recording(watch):
            output, new = form.call(params, state, key, *arranged(tensors)[0])
        return _graph.comparable(_objects.open_objects(output)), new

    plain = _Watch({})

    def see(path, module, given, output):
        before = len(plain.values)
        output = plain.see_module(path, module, given, output)
        own.update({name: _arrays(module) for name in list(plain.values)[before:]})
        return output

    outputs, new = run(params, tensors, plain, see)
    outputs = [np.array(y) for y in outputs]
    seen = {name: y for name, y in plain.values.items() if _is_known(y)}
    values = {name: np.array(y) for name, y in seen.items()}
    cotangent = cotangents(outputs)
    zeros = {name: jax.numpy.zeros_like(y) for name, y in seen.items() if is_inexact(values[name])}
    which = [n for n, x in enumerate(inputs) if is_inexact(x)]

    def weighted_sum(params, zeros, some):
        filled = list(tensors)
        for n, x in zip(which, some, strict=True):
            filled[n] = x
        watch = _Watch(zeros)
        leaves, _ = run(params, filled, watch, watch.see_module)
        return [y for y, w in zip(leaves, cotangent, strict=True) if w is not None]

    _, pull = jax.vjp(weighted_sum, params, zeros, [tensors[n] for n in which])
    # complex gradients are the conjugates of JAX's, as in PyTorch, TensorFlow and multiop
    pulled = pull([jax.numpy.conj(w) for w in cotangent if w is not None])
    of_params, of_zeros, of_inputs = jax.tree.map(jax.numpy.conj, pulled)
    gradients = [None] * len(inputs)
    for n, g in zip(which, of_inputs, strict=True):
        gradients[n] = np.array(g)
    records = {}
    for name, value in values.items():
        module = plain.modules.get(name)  # none at a tap that the model has itself
        kind = type(module).__name__
        kind = "Dense" if kind == "Linear" else kind
        given = [np.array(x) for x in plain.inputs.get(name, []) if _is_known(x)]
        slope = np.array(of_zeros[name]) if name in of_zeros else None
        records[name] = Record(name, value, given, slope, kind, own.get(name, {}), options(module))
    of_params = {name: np.array(x) for name, x in of_params.items()}
    after = {form.origins.get(name, name): np.array(x) for name, x in new.items() if not models.is_key(x)}
    return Reference(form.kind, records, outputs, cotangent, gradients, of_params, after, {})


def options(module):
    """Return the options of a module by the names that PyTorch gives them."""
    plain = {}
    for theirs, ours in (("epsilon", "eps"), ("num_groups", "num_groups")):
        value = getattr(module, theirs, None)
        if value is not None:
            plain[ours] = value
    if getattr(module, "use_running_average", None) is not None:
        plain["training"] = not module.use_running_average
    if getattr(module, "momentum", None) is not None:
        plain["momentum"] = 1 - module.momentum
    return plain
