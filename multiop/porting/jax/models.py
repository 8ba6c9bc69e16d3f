"""What can be traced: modules of flax's linen and nnx and of equinox, and functions, each as a function of its leaves.

| model | parameters | state |
|---|---|---|
| `(module, variables)` or `module.bind(variables)` of linen | `variables["params"]` | the other collections |
| a module of nnx, or `functools.partial(function, tree)` of a tree with some | its `nnx.Param` | its other variables |
| a module of equinox | its floating arrays | its other arrays |
| `functools.partial(function, params)`, called as `function(params, *inputs)` | the floating arrays of `params` | its others |
| `functools.partial(function, params, state)`, called as `function(params, state, *inputs)` | all of `params` | all of `state` |
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import jax
import numpy as np

from multiop import errors
from multiop.porting import _weights
from multiop.porting._graph import Scope
from multiop.porting.jax import weights

ON = ("train", "training", "is_training")
OFF = ("deterministic", "inference", "use_running_average")
KEYS = ("key", "rng", "rngs", "prng_key")
_SCOPE = "multiop-scope-"


See: TypeAlias = Callable[[str, Any, list[Any], Any], Any]


class Model:
    """A model as `function(params, state, key, *inputs) -> (outputs, new state)`, with its leaves by name."""

    def __init__(self, kind: str, framework: str, names: list[str]):
        self.kind, self.framework, self.names = kind, framework, names
        self.params: dict[str, Any] = {}
        self.state: dict[str, Any] = {}
        self.origins: dict[str, str] = {}  # what `read_weights` calls a leaf, where that is another name
        self.scopes: dict[str, Scope] = {}
        self.call: Callable[..., tuple[Any, dict[str, Any]]] = lambda *_: (None, {})
        self.see: See = lambda path, module, given, output: output  # is given what each call of a submodule returns
        self._count = itertools.count()

    @contextlib.contextmanager
    def scope(self, path: str, kind: str, is_container: bool = False) -> Iterator[None]:
        """Mark the equations of one call of a submodule."""
        name = f"{_SCOPE}{next(self._count)}"
        self.scopes[name] = Scope(name, path, kind, is_container)
        with jax.named_scope(name):
            yield

    def scopes_of(self, stack: str) -> tuple[Scope, ...]:
        """Return the submodules that an equation belongs to; those of a derivative are not told apart."""
        if "jvp(" in stack or "transpose(" in stack:
            return ()
        return tuple(self.scopes[name] for name in re.findall(rf"{_SCOPE}\d+", stack) if name in self.scopes)


def model_of(model: Any, training: bool) -> Model:
    """Return a model of JAX in one form."""
    linen, nnx, equinox = (sys.modules.get(name) for name in ("flax.linen", "flax.nnx", "equinox"))
    if isinstance(model, tuple) and len(model) == 2 and linen is not None and isinstance(model[0], linen.Module):
        return _linen(model[0], model[1], training)
    if linen is not None and isinstance(model, linen.Module):
        if model.scope is None:
            raise errors.ArgumentError("a linen module has no weights of its own: give (module, variables), or bind it")
        return _linen(*model.unbind(), training)
    if nnx is not None and isinstance(model, nnx.Module):
        kind, called = type(model).__name__, type(model).__call__
        return _nnx(model, lambda module, *inputs, **options: module(*inputs, **options), {}, training, kind, called)
    if equinox is not None and isinstance(model, equinox.Module):
        name = type(model).__name__
        return _function(lambda module, *inputs, **options: module(*inputs, **options), (model,), {}, training, name)
    if isinstance(model, functools.partial):
        if nnx is not None and len(model.args) == 1 and _outermost(model.args, nnx.Module):
            return _nnx(model.args[0], model.func, model.keywords, training, _name_of(model.func), model.func)
        return _function(model.func, model.args, model.keywords, training)
    return _function(model, (), {}, training)


def _options(function: Callable[..., Any], given: Any, training: bool) -> tuple[dict[str, Any], str | None]:
    """Return the flags of training that a function takes by their usual names, and its argument for a key."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}, None
    flags = {name: training for name in ON if name in parameters and name not in given}
    flags |= {name: not training for name in OFF if name in parameters and name not in given}
    key = next((name for name in KEYS if name in parameters and name not in given), None)
    return flags, key


def _names(function: Callable[..., Any], skipped: int) -> list[str]:
    """Return the names of a function's positional parameters."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    return [
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ][skipped:]


# trees with names


def named_leaves(tree: Any) -> tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]:
    """Return the arrays of a pytree by name, and what puts others in their place; an array alone is `value`."""
    flat, structure = jax.tree_util.tree_flatten_with_path(tree)
    names = [".".join(map(weights.key_name, path)) or "value" if hasattr(x, "dtype") else None for path, x in flat]
    by_name = {name: leaf for name, (_, leaf) in zip(names, flat, strict=True) if name is not None}
    if len(by_name) != sum(name is not None for name in names):
        raise errors.ArgumentError("two arrays of the parameters have the same name")

    def rebuild(arrays: dict[str, Any]) -> Any:
        leaves = [leaf if name is None else arrays[name] for name, (_, leaf) in zip(names, flat, strict=True)]
        return jax.tree_util.tree_unflatten(structure, leaves)

    return by_name, rebuild


def is_key(leaf: Any) -> bool:
    """Say whether an array is a key of random numbers."""
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


# linen


def _linen(module: Any, variables: Any, training: bool) -> Model:
    from flax import core, linen as nn

    model = Model(type(module).__name__, "flax", _names(module.__call__, 0))
    variables = core.unfreeze(nn.meta.unbox(variables))
    flags, _ = _options(module.__call__, {}, training)
    collections = [name for name in variables if name != "params"]
    changing = [name for name in collections if training or name == "cache"]  # which decoding moves on in evaluation
    parts = {name: named_leaves(tree) for name, tree in variables.items()}
    model.params = parts["params"][0] if "params" in parts else {}
    for name in collections:
        if clash := set(parts[name][0]) & set(model.state):
            raise errors.ArgumentError(f"two collections have a variable of the name {min(clash)}")
        model.state |= parts[name][0]
        model.origins |= {path: f"{name}.{path}" for path in parts[name][0]}

    def intercept(function: Any, args: Any, kwargs: Any, context: Any) -> Any:
        path = ".".join(context.module.path)
        if not path or context.method_name == "setup":
            return function(*args, **kwargs)
        with model.scope(path, type(context.module).__name__, isinstance(context.module, nn.Sequential)):
            output = function(*args, **kwargs)
        given = jax.tree.leaves((args, kwargs))
        return model.see(path, context.module, given, output) if context.method_name == "__call__" else output

    def call(params: Any, state: Any, key: Any, *inputs: Any) -> Any:
        leaves = params | state
        given = {name: rebuilt({part: leaves[part] for part in by_name}) for name, (by_name, rebuilt) in parts.items()}
        rngs = {} if key is None else {"rngs": {"params": key}}
        with nn.intercept_methods(intercept):
            if not changing:
                return module.apply(given, *inputs, **flags, **rngs), state
            outputs, new = module.apply(given, *inputs, mutable=changing, **flags, **rngs)
        return outputs, state | {path: leaf for name in changing for path, leaf in named_leaves(new[name])[0].items()}

    model.call = call
    return model


# nnx


def _nnx(
    tree: Any,
    function: Callable[..., Any],
    options: dict[str, Any],
    training: bool,
    kind: str,
    called: Callable[..., Any],
) -> Model:
    """Return a function of a module, or of a tree with modules; `called` is what has the names of the inputs."""
    from flax import nnx

    model = Model(kind, "flax", _names(called, 1))
    flags, _ = _options(called, options, training)
    structure, everything = nnx.split(tree)
    flat = nnx.to_flat_state(everything)
    names = {path: ".".join(map(str, path)) for path, _ in flat}
    random = {path for path, variable in flat if isinstance(variable, nnx.RngState)}
    for path, variable in flat:
        if path not in random:
            is_variable = isinstance(variable, nnx.Variable)  # or an array that a module holds as it is
            (model.params if isinstance(variable, nnx.Param) else model.state)[names[path]] = (
                variable[...] if is_variable else variable
            )

    def call(params: Any, state: Any, key: Any, *inputs: Any) -> Any:
        leaves = params | state
        keys = 0
        replaced = []
        for path, variable in flat:
            if not isinstance(variable, nnx.Variable):
                variable = leaves[names[path]]
            elif path not in random:
                variable = variable.replace(leaves[names[path]])
            elif key is not None and isinstance(variable, nnx.RngKey):
                variable, keys = variable.replace(jax.random.fold_in(key, keys)), keys + 1
            else:
                variable = variable.replace(variable[...])
            replaced.append((path, variable))
        merged = nnx.merge(structure, nnx.from_flat_state(replaced))
        for module in _outermost(merged, nnx.Module):
            module.train() if training else module.eval()
        nodes = {
            id(node): (".".join(map(str, path)), isinstance(node, nnx.Sequential))
            for path, node in nnx.iter_graph(merged)
            if isinstance(node, nnx.Module) and path
        }
        with _watch_modules(model, nodes, [node for _, node in nnx.iter_graph(merged) if id(node) in nodes]):
            outputs = function(merged, *inputs, **options, **flags)
        after = nnx.to_flat_state(nnx.state(merged))
        new = {names[path]: jax.numpy.asarray(variable) for path, variable in after if names.get(path) in state}
        return outputs, state | new

    model.call = call
    return model


def _outermost(tree: Any, kind: Any) -> list[Any]:
    """Return the outermost modules of a class in a tree."""
    leaves = jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, kind))
    return [leaf for leaf in leaves if isinstance(leaf, kind)]


# functions of pytrees, equinox


def _name_of(function: Any) -> str:
    name: str = getattr(function, "__name__", type(function).__name__).strip("<>_")
    return "Function" if name == "lambda" else name


def _function(
    function: Any, trees: tuple[Any, ...], options: dict[str, Any], training: bool, kind: str | None = None
) -> Model:
    if not callable(function):
        raise errors.ArgumentTypeError(
            f"model must be callable, got {type(function).__name__}; parameters are bound: "
            f"functools.partial(function, params), or (module, variables) of linen"
        )
    if len(trees) > 2:
        raise errors.ArgumentError("model: a partial function binds its parameters, or its parameters and its state")
    equinox = sys.modules.get("equinox")
    is_equinox = equinox is not None and bool(_outermost(trees, equinox.Module))
    is_module = kind is not None
    callable_ = type(trees[0]).__call__ if is_module else function
    model = Model(
        kind or _name_of(function),
        "equinox" if is_equinox else "JAX",
        _names(callable_, 1 if is_module else len(trees)),
    )
    flags, key_name = _options(callable_, options, training)
    if is_equinox and not training:
        trees = equinox.nn.inference_mode(trees)
    parts = [named_leaves(tree) for tree in trees]
    constants: dict[str, Any] = {}
    if len(parts) == 2:
        model.params, model.state = parts[0][0], parts[1][0]
        if clash := set(model.params) & set(model.state):
            raise errors.ArgumentError(f"a parameter and a part of the state have the name {min(clash)}")
    elif parts:
        for path, leaf in parts[0][0].items():
            if is_key(leaf):
                constants[path] = leaf
            else:
                (model.params if jax.dtypes.issubdtype(leaf.dtype, np.inexact) else model.state)[path] = leaf

    def call(params: Any, state: Any, key: Any, *inputs: Any) -> Any:
        leaves = params | state | constants
        built = [rebuilt({part: leaves[part] for part in by_name}) for by_name, rebuilt in parts]
        keys = {} if key is None or key_name is None else {key_name: key}
        nodes: dict[int, tuple[str, bool]] = {}
        modules: list[Any] = []
        if equinox is not None:
            for tree in built:
                _modules_in(tree, "", nodes, modules, equinox)
        with _watch_modules(model, nodes, modules):
            outputs = function(*built, *inputs, **options, **flags, **keys)
        if len(parts) < 2:
            return outputs, state
        if not isinstance(outputs, tuple) or len(outputs) != 2:
            raise errors.ArgumentTypeError("a function of parameters and state must return its outputs and a new state")
        return outputs[0], named_leaves(outputs[1])[0]

    model.call = call
    return model


def _modules_in(tree: Any, path: str, nodes: dict[int, tuple[str, bool]], modules: list[Any], equinox: Any) -> None:
    """Note the path of each module of equinox in a tree."""
    if isinstance(tree, equinox.Module) and path:
        nodes[id(tree)] = (path, isinstance(tree, equinox.nn.Sequential))
        modules.append(tree)
    for keys, child in jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: x is not tree)[0]:
        if child is not tree:
            below = ".".join(filter(None, [path, *map(weights.key_name, keys)]))
            _modules_in(child, below, nodes, modules, equinox)


@contextlib.contextmanager
def _watch_modules(model: Model, nodes: dict[int, tuple[str, bool]], modules: list[Any]) -> Iterator[None]:
    """Mark what submodules compute, while the model runs."""

    def watch(original: Any) -> Any:
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            own = original.__get__(module, type(module))
            if id(module) not in nodes:
                return own(*args, **kwargs)
            path, is_container = nodes[id(module)]
            given = jax.tree.leaves((args, kwargs))  # equinox's states can be read once alone
            with model.scope(path, type(module).__name__, is_container):
                output = own(*args, **kwargs)
            return model.see(path, module, given, output)

        return call

    classes = {kind: inspect.getattr_static(kind, "__call__", None) for kind in map(type, modules)}
    changed = {kind: original for kind, original in classes.items() if original is not None}
    inherited = [kind for kind in changed if "__call__" not in vars(kind)]
    try:
        for kind, original in changed.items():
            type.__setattr__(kind, "__call__", watch(original))
        yield
    finally:
        for kind, original in changed.items():
            if kind in inherited:
                type.__delattr__(kind, "__call__")
            else:
                type.__setattr__(kind, "__call__", original)


def flat_order(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return arrays by name in the order of their module's layers, as NumPy arrays."""
    return _weights.flat(weights._in_order(_weights.nested({name: np.array(leaf) for name, leaf in arrays.items()})))
