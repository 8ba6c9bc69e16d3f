"""Weights in pytrees of JAX arrays: flax's linen and nnx, equinox, and plain containers."""

from __future__ import annotations

import re
import sys

import jax
import numpy as np

from multiop import errors
from multiop.porting import _weights

NUMBERED = re.compile(r"[A-Z]\w*_\d+")  # the names that flax gives: Dense_0


def read(source):
    linen = sys.modules.get("flax.linen")
    kinds = {}
    if linen is not None and isinstance(source, linen.Module) and source.scope is not None:
        kinds = {".".join(path): _flax_kind(module) for path, module in _modules_in(source, linen)}
    source = _bare(source)
    if _is_nnx(source):
        return _read_nnx(source)
    if _is_equinox(source):
        return _read_equinox(source)
    if isinstance(source, dict) and isinstance(source.get("params"), dict):  # the variables of a linen module
        return _read_linen(source, kinds)
    arrays = _arrays_by_name(source)
    is_flax = _weights.owner(source) == "flax" or any(name.rpartition(".")[2] == "kernel" for name in arrays)
    weights = _weights.split_state(arrays, "flax" if is_flax else None)
    weights.is_ordered = not _weights.is_sorted(weights.params)
    return weights


def _bare(source):
    """Return the variables of a bound linen module, and plain dicts for frozen ones."""
    linen = sys.modules.get("flax.linen")
    if linen is not None and isinstance(source, linen.Module):
        if source.scope is None:
            raise errors.ArgumentError("a linen module has no weights of its own: give its variables, or bind them")
        source = source.variables
    core = sys.modules.get("flax.core")
    return core.unfreeze(source) if core is not None and isinstance(source, (dict, core.FrozenDict)) else source


def _is_nnx(x):
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(x, (nnx.Module, nnx.State))


def _is_equinox(x):
    equinox = sys.modules.get("equinox")
    return equinox is not None and any(
        isinstance(leaf, equinox.Module) for leaf in jax.tree.leaves(x, is_leaf=lambda y: isinstance(y, equinox.Module))
    )


def key_name(key):
    """Return one key of a path as text."""
    return str(next(getattr(key, field) for field in ("key", "idx", "name") if hasattr(key, field)))


def _arrays_by_name(tree):
    """Return the arrays of a pytree by name."""
    named = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        name = ".".join(map(key_name, path))
        if not hasattr(leaf, "dtype"):
            continue
        if name in named:
            raise errors.ArgumentError(f"{name}: two arrays have this name")
        named[name] = to_numpy(leaf)
    if not named:
        raise errors.ArgumentError("weights: the pytree holds no arrays")
    return named


def to_numpy(x):
    """Return a copy of an array's values; of a key, its bits."""
    if isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return np.array(x)


def _modules_in(module, linen):
    """Yield the path of each module among the attributes of a bound one, and the module."""
    yield module.path, module
    hasattr(module, "setup is called by asking for an attribute")
    fields = {name: x for name, x in vars(module).items() if name != "parent"}
    for inner in jax.tree.leaves(fields, is_leaf=lambda x: isinstance(x, linen.Module)):
        if isinstance(inner, linen.Module) and inner.parent is module:
            yield from _modules_in(inner, linen)


def _read_linen(variables, kinds):
    params = _as_dicts(variables["params"])
    state = {name: _as_dicts(tree) for name, tree in variables.items() if name != "params"}
    kinds = _kinds_of_auto_names(params) | kinds
    is_ordered = not _weights.is_sorted(params) or _is_numbered(params)
    return _weights.Weights(_in_order(params), _in_order(state), "flax", kinds, is_ordered)


def _is_numbered(tree):
    """Return whether flax named all layers by itself: then the numbers are the order among those of a class."""
    below = {key: value for key, value in tree.items() if isinstance(value, dict)}
    return all(NUMBERED.fullmatch(key) for key in below) and all(map(_is_numbered, below.values()))


def _in_order(tree):
    """Put Conv_10 after Conv_2, where a sorted dict has it before."""
    if not isinstance(tree, dict):
        return tree
    numbered = [key for key in tree if NUMBERED.fullmatch(key)]
    by_class = {}
    for key in numbered:
        by_class.setdefault(key.rpartition("_")[0], []).append(key)
    for keys in by_class.values():
        keys.sort(key=lambda key: int(key.rpartition("_")[2]))
    keys = [by_class[key.rpartition("_")[0]].pop(0) if key in numbered else key for key in tree]
    return {key: _in_order(tree[key]) for key in keys}


def _as_dicts(tree):
    if isinstance(tree, dict):
        return {str(key): _as_dicts(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return {str(n): _as_dicts(value) for n, value in enumerate(tree)}
    return to_numpy(getattr(tree, "value", tree))  # a box of logical axes holds the array


def _kinds_of_auto_names(tree, prefix=""):
    """Read the classes of layers that flax named by itself: Dense_0, Conv_1."""
    kinds = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            if NUMBERED.fullmatch(key):
                kinds[prefix + key] = key.rpartition("_")[0]
            kinds |= _kinds_of_auto_names(value, f"{prefix}{key}.")
    return kinds


def nnx_variables(source):
    """Return the variables of an nnx module, or of its state, by name."""
    from flax import nnx

    state = source if isinstance(source, nnx.State) else nnx.state(source)
    # keys and counters of random numbers are no weights, nor is what an optimizer masks
    flat = [entry for entry in nnx.to_flat_state(state) if not isinstance(entry[1], nnx.RngState)]
    flat = [entry for entry in flat if jax.tree.leaves(entry[1])]
    if isinstance(source, nnx.Module):  # which come sorted by name
        flat.sort(key=lambda entry: _place(source, entry[0]))
    return {".".join(map(str, path)): variable for path, variable in flat}


def _place(node, path):
    """Return where a variable stands among the attributes of its module, and of those above."""
    place = []
    for key in path:
        if isinstance(node, (list, tuple)):
            place.append(int(key))
            node = node[int(key)]
            continue
        inside = node if isinstance(node, dict) else getattr(node, "__dict__", {})
        place.append(next((n for n, name in enumerate(inside) if str(name) == str(key)), -1))
        node = next((x for name, x in inside.items() if str(name) == str(key)), None)
    return place


def _read_nnx(source):
    from flax import nnx

    variables = nnx_variables(source)
    params, state, kinds = {}, {}, {}
    for name, variable in variables.items():
        (params if isinstance(variable, nnx.Param) else state)[name] = to_numpy(variable[...])
    if isinstance(source, nnx.Module):
        for path, node in nnx.iter_graph(source):
            if isinstance(node, nnx.Module):
                kinds[".".join(map(str, path))] = _flax_kind(node)
    trees = _weights.nested(params), _weights.nested(state)
    return _weights.Weights(*trees, "flax", kinds, isinstance(source, nnx.Module))


def _flax_kind(module):
    name = type(module).__name__
    return (
        f"{name} with{'' if module.transpose_kernel else 'out'} transpose_kernel" if name == "ConvTranspose" else name
    )


def _equinox_parts(tree):
    """Return the arrays of an equinox module by name, the classes of its layers, and the names of state."""
    import equinox

    arrays, kinds, state = _arrays_by_name(tree), {}, set()
    markers = (equinox.nn.State, equinox.nn.StateIndex)

    def visit(node, name):
        if isinstance(node, markers):
            state.update(array for array in arrays if (array + ".").startswith(name + "."))
        elif isinstance(node, equinox.Module):
            kinds[name] = _equinox_kind(node)
        children = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda x: x is not node)[0]
        for path, child in children:
            if child is not node:
                visit(child, ".".join(filter(None, [name, *map(key_name, path)])))

    visit(tree, "")
    return arrays, kinds, state


def _equinox_kind(module):
    name = next((cls.__name__ for cls in type(module).__mro__ if cls.__module__.startswith("equinox.nn")), "")
    if name.startswith("ConvTranspose") and module.groups > 1:
        return f"{name} of {module.groups} groups"
    return name or type(module).__name__


def _read_equinox(source):
    arrays, kinds, named = _equinox_parts(source)
    state = {name: x for name, x in arrays.items() if name in named or _weights.is_state(name, x)}
    params = {name: x for name, x in arrays.items() if name not in state}
    return _weights.Weights(_weights.nested(params), _weights.nested(state), "equinox", kinds)


def write(destination, weights, cast, partial):
    destination = _bare(destination)
    if _is_nnx(destination):
        return _write_nnx(destination, weights, cast, partial)
    arrays = weights.arrays
    names = []
    flat, structure = jax.tree_util.tree_flatten_with_path(destination)
    linen = isinstance(destination, dict) and isinstance(destination.get("params"), dict)
    for path, leaf in flat:
        keys = list(map(key_name, path))
        names.append(".".join(keys[1:] if linen and keys[0] == "params" else keys) if hasattr(leaf, "dtype") else None)
    _weights.check_written(arrays, dict.fromkeys(filter(None, names)), partial)
    leaves = []
    for name, (_, leaf) in zip(names, flat, strict=True):
        leaves.append(as_leaf(name, arrays[name], leaf, cast) if name in arrays else leaf)
    return jax.tree_util.tree_unflatten(structure, leaves)


def as_leaf(name, x, leaf, cast):
    """Return an array as the leaf it takes the place of: a NumPy array stays one."""
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jax.numpy.asarray(np.array(x)), impl=jax.random.key_impl(leaf))
    x = _weights.fit_array(name, x, leaf.shape, np.dtype(leaf.dtype), cast)
    # of a copy: JAX reads arrays after the call has returned
    return x if isinstance(leaf, np.ndarray) else jax.numpy.asarray(np.array(x))


def _write_nnx(destination, weights, cast, partial):
    from flax import nnx

    variables, arrays = nnx_variables(destination), weights.arrays
    _weights.check_written(arrays, variables, partial)
    made = {name: as_leaf(name, x, variables[name][...], cast) for name, x in arrays.items()}
    if isinstance(destination, nnx.State):
        flat = [(path, ".".join(map(str, path)), variable) for path, variable in nnx.to_flat_state(destination)]
        return nnx.from_flat_state([(path, x.replace(made[n]) if n in made else x) for path, n, x in flat])
    for name, x in made.items():
        variables[name].set_value(x)
    return destination
