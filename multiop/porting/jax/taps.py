"""The modules of flax and equinox: what each returns, and the gradients there."""

from __future__ import annotations

import sys

import jax
import numpy as np

from multiop import errors
from multiop.porting._reference import Record, Reference, is_inexact, numbered
from multiop.porting.jax import models, weights


def record(model, inputs, cotangents, training):
    """Run a bound linen module, or one of nnx or equinox, forward and backward, with each of its modules watched."""
    linen, nnx, equinox = map(sys.modules.get, ("flax.linen", "flax.nnx", "equinox"))
    wide = any(x.dtype.name in ("float64", "complex128") for x in inputs)
    with jax.enable_x64(wide or jax.config.jax_enable_x64):
        if linen is not None and isinstance(model, linen.Module) and model.scope is not None:
            return _record(_Linen(model, training), inputs, cotangents)
        if nnx is not None and isinstance(model, nnx.Module):
            return _record(_Nnx(model, training), inputs, cotangents)
        if equinox is not None and isinstance(model, equinox.Module):
            return _record(_Equinox(model, training), inputs, cotangents)
    raise errors.ArgumentTypeError(
        f"reference: of a {type(model).__name__} no layers are known; give a bound module of flax's linen, a module of nnx or of "
        "equinox, or a function of ops with taps"
    )


class _Watch:
    """Adds a perturbation to what each module returns, and records it."""

    def __init__(self, perturbations):
        self.perturbations, self.values, self.inputs, self.modules, self.counts = perturbations, {}, {}, {}, {}

    def see(self, name, module, args, output):
        called = numbered(name, self.counts)
        leaves, structure = jax.tree.flatten(output)
        made = []
        for n, y in enumerate(leaves):
            full = called if len(leaves) == 1 else f"{called}.{n}"
            y = y + self.perturbations[full] if full in self.perturbations else y
            self.values[full] = y
            self.inputs[full] = [x for x in jax.tree.leaves(args) if hasattr(x, "dtype")]
            self.modules[full] = module
            made.append(y)
        return jax.tree.unflatten(structure, made)


class _Linen:
    def __init__(self, model, training):
        self.module, self.variables = model.unbind()
        self.training = training
        self.title = type(self.module).__name__

    def run(self, params, inputs, watch):
        from flax import linen

        def intercept(call, args, kwargs, context):
            output = call(*args, **kwargs)
            if context.method_name != "__call__" or not context.module.path:
                return output
            return watch.see(".".join(context.module.path), context.module, (args, kwargs), output)

        variables = {**self.variables, "params": params} if params else self.variables
        mutable = [name for name in variables if name != "params"] if self.training else False
        with linen.intercept_methods(intercept):
            outputs = self.module.apply(variables, *inputs, mutable=mutable)
        return outputs if self.training else (outputs, {n: x for n, x in variables.items() if n != "params"})

    def params(self):
        return self.variables.get("params", {})

    def arrays(self, module, name):
        leaves = {}
        for collection in self.variables.values():
            for key in name.partition("#")[0].split("."):
                collection = collection.get(key, {}) if hasattr(collection, "get") else {}
            if hasattr(collection, "items"):
                leaves |= {key: np.array(x) for key, x in collection.items() if hasattr(x, "dtype")}
        return leaves

    def names(self, tree):
        return weights._named(tree) if jax.tree.leaves(tree) else {}


class _Nnx:
    def __init__(self, model, training):
        from flax import nnx

        (model.train if training else model.eval)()
        self.model, self.title = model, type(model).__name__
        self.graph, self.own, self.rest = nnx.split(model, nnx.Param, ...)
        self.paths = {}

    def run(self, params, inputs, watch):
        from flax import nnx

        model = nnx.merge(self.graph, params, self.rest)
        modules = [(m, ".".join(map(str, path))) for path, m in nnx.iter_graph(model) if isinstance(m, nnx.Module)]
        with _watched(modules, watch):
            outputs = model(*inputs)
        return outputs, nnx.split(model, nnx.Param, ...)[2]

    def params(self):
        return self.own

    def arrays(self, module, name):
        from flax import nnx

        return {
            key: np.array(x[...])
            for key, x in vars(module).items()
            if isinstance(x, nnx.Variable) and not isinstance(x[...], jax.core.Tracer)
        }

    def names(self, tree):
        return weights.read(tree).arrays if jax.tree.leaves(tree) else {}


class _Equinox:
    def __init__(self, model, training):
        import equinox

        model = equinox.nn.inference_mode(model, not training)
        self.title, self.combine = type(model).__name__, equinox.combine
        self.own, self.rest = equinox.partition(model, equinox.is_inexact_array)

    def run(self, params, inputs, watch):
        model, nodes, modules = self.combine(params, self.rest), {}, []
        models.modules_in(model, "", nodes, modules, sys.modules["equinox"])
        with _watched([(module, nodes[id(module)][0]) for module in modules], watch):
            outputs = model(*inputs)
        return outputs, {}

    def params(self):
        return self.own

    def arrays(self, module, name):
        leaves = {key: x for key, x in vars(module).items() if hasattr(x, "dtype")}
        return {key: np.array(x) for key, x in leaves.items() if not isinstance(x, jax.core.Tracer)}

    def names(self, tree):
        return {name: np.array(x) for name, x in models.named_leaves(tree)[0].items()} if jax.tree.leaves(tree) else {}


def _watched(modules, watch):
    """Record what each of the modules, given with their names, returns."""
    names = {id(module): name for module, name in modules}

    def intercept(module, call, args, kwargs):
        output = call(*args, **kwargs)
        name = names.get(id(module))
        return watch.see(name, module, (args, kwargs), output) if name else output

    return models.intercepted([module for module, _ in modules], intercept)


def _record(model, inputs, cotangents):
    tensors = [jax.numpy.asarray(x) for x in inputs]
    plain = _Watch({})
    output, new = model.run(model.params(), tensors, plain)
    outputs = [np.array(y) for y in jax.tree.leaves(output)]
    # a layer in a scan has no value
    seen = {name: y for name, y in plain.values.items() if not isinstance(y, jax.core.Tracer)}
    values = {name: np.array(y) for name, y in seen.items()}
    cotangent = cotangents(outputs)
    zeros = {name: jax.numpy.zeros_like(y) for name, y in seen.items() if is_inexact(values[name])}
    which = [n for n, x in enumerate(inputs) if is_inexact(x)]

    def weighted(params, zeros, some):
        filled = list(tensors)
        for n, x in zip(which, some, strict=True):
            filled[n] = x
        leaves = jax.tree.leaves(model.run(params, filled, _Watch(zeros))[0])
        return [y for y, w in zip(leaves, cotangent, strict=True) if w is not None]

    _, pull = jax.vjp(weighted, model.params(), zeros, [tensors[n] for n in which])
    # complex gradients are the conjugates of JAX's, as in PyTorch, TensorFlow and multiop
    pulled = pull([jax.numpy.conj(w) for w in cotangent if w is not None])
    of_params, of_zeros, of_inputs = jax.tree.map(jax.numpy.conj, pulled)
    gradients = [None] * len(inputs)
    for n, g in zip(which, of_inputs, strict=True):
        gradients[n] = np.array(g)
    records = {}
    for name, value in values.items():
        module = plain.modules[name]
        kind = type(module).__name__
        records[name] = Record(
            name,
            value,
            [np.array(x) for x in plain.inputs[name]],
            np.array(of_zeros[name]) if name in of_zeros else None,
            {"Linear": "Dense", "Conv": "Conv", "Embed": "Embed"}.get(kind, kind),
            model.arrays(module, name),
            options(module),
        )
    return Reference(model.title, records, outputs, cotangent, gradients, model.names(of_params), model.names(new), {})


def options(module):
    """Return the options of a module by the names that PyTorch gives them."""
    plain = {}
    names = {"strides": "stride", "padding": "padding", "kernel_dilation": "dilation", "feature_group_count": "groups"}
    for theirs, ours in (names | {"epsilon": "eps", "num_groups": "num_groups"}).items():
        value = getattr(module, theirs, None)
        if value is not None:
            plain[ours] = value
    for name in ("use_running_average",):
        if getattr(module, name, None) is not None:
            plain["training"] = not getattr(module, name)
    if getattr(module, "momentum", None) is not None:
        plain["momentum"] = 1 - module.momentum
    return plain
