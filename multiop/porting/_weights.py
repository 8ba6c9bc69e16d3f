"""Weights as NumPy arrays, by name."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from multiop import errors

Array: TypeAlias = np.ndarray[Any, Any]
Tree: TypeAlias = dict[str, Any]

# the class of a model, or of a leaf, tells the framework; a Keras layer is also a class of its backend
OWNERS = {"keras": "tensorflow", "flax": "jax", "equinox": "jax", "torch": "torch", "tensorflow": "tensorflow"}
OWNERS |= {"jax": "jax", "jaxlib": "jax", "optax": "jax"}
STATE = {"running_mean", "running_var", "num_batches_tracked", "moving_mean", "moving_variance", "moving_var"}
STATE |= {"seed_generator_state"}
COUNTERS = {"num_batches_tracked", "seed_generator_state", "count", "counter"}  # a model runs the same without them


@dataclasses.dataclass
class Weights:
    """The arrays of a model.

    Attributes:
        params: What is differentiated: nested dicts of NumPy arrays, under the original's names.
        state: What is not: running statistics, counters, buffers; in nested dicts too.
        framework: Whose layouts the arrays have: "torch", "keras", "flax", "equinox", "tensorflow", or `None`.
        kinds: The class of each layer by its path, as far as it is known: it tells a layout that a shape does not.
        is_ordered: Whether the arrays stand in the order of the layers; in a sorted dict they do not.
    """

    params: Tree = dataclasses.field(default_factory=dict)
    state: Tree = dataclasses.field(default_factory=dict)
    framework: str | None = None
    kinds: dict[str, str] = dataclasses.field(default_factory=dict)
    is_ordered: bool = True

    def __post_init__(self) -> None:
        both = set(flat(self.params)) & set(flat(self.state))
        if both:
            raise errors.ArgumentError(f"{', '.join(sorted(both))}: a name stands for a parameter and for a state")

    @property
    def arrays(self) -> dict[str, Array]:
        """All arrays by name, parameters first; the names of nested dicts are joined by dots."""
        return flat(self.params) | flat(self.state)

    def with_arrays(self, arrays: Mapping[str, Array]) -> Weights:
        """Return weights in this structure and of these layers, with other arrays."""
        trees = rebuild_tree(self.params, arrays), rebuild_tree(self.state, arrays)
        return Weights(*trees, self.framework, dict(self.kinds), self.is_ordered)

    def __repr__(self) -> str:
        params, state = flat(self.params), flat(self.state)
        entries = sum(x.size for x in params.values())
        return f"Weights({self.framework}: {len(params)} parameters of {entries:,} entries, {len(state)} of state)"


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Array]:
    """Return the arrays of nested dicts by their joined names."""
    leaves: dict[str, Array] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        for leaf, array in (flat(value, name + ".") if isinstance(value, Mapping) else {name: value}).items():
            if leaf in leaves:
                raise errors.ArgumentError(f"{leaf}: two arrays have this name")
            leaves[leaf] = array
    return leaves


def nested(arrays: Mapping[str, Any]) -> Tree:
    """Return nested dicts of arrays whose names are joined by dots."""
    tree: Tree = {}
    for name, array in arrays.items():
        *parents, leaf = name.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise errors.ArgumentError(f"{name}: {parent} is both an array and a group of arrays")
        if leaf in place:
            raise errors.ArgumentError(f"{name}: is both an array and a group of arrays")
        place[leaf] = array
    return tree


def rebuild_tree(tree: Mapping[str, Any], arrays: Mapping[str, Any], prefix: str = "") -> Tree:
    """Return nested dicts of the structure of `tree` that hold `arrays`."""
    return {
        key: rebuild_tree(value, arrays, f"{prefix}{key}.") if isinstance(value, Mapping) else arrays[f"{prefix}{key}"]
        for key, value in tree.items()
    }


def owner(x: Any) -> str | None:
    """Return the top-level package of the framework that `x` belongs to: "torch", "keras", "flax", …, or `None`."""
    modules = {cls.__module__.partition(".")[0] for cls in type(x).__mro__}
    modules |= {"jax"} if hasattr(x, "aval") and not modules & {"flax", "torch"} else set()
    return next((name for name in OWNERS if name in modules), None)


def is_extended(dtype: np.dtype[Any]) -> bool:
    """Say whether a dtype is one of ml_dtypes, whose kind may be that of NumPy's floats."""
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes"


def is_state(name: str, array: Array) -> bool:
    """Return whether an array is state, as far as its name and dtype tell."""
    inexact = array.dtype.kind in "fc" or (is_extended(array.dtype) and "float" in array.dtype.name)
    return name.rpartition(".")[2] in STATE or not inexact


def is_sorted(tree: Mapping[str, Any]) -> bool:
    """Return whether the keys of nested dicts are sorted, as JAX sorts them: then their order means nothing."""
    keys = list(tree)
    here = len(keys) > 1 and not all(isinstance(tree[key], np.ndarray) for key in keys)
    below = [is_sorted(x) for x in tree.values() if isinstance(x, Mapping)]
    return (here and keys == sorted(keys)) or (not (here and keys != sorted(keys)) and any(below))


def split_state(
    arrays: Mapping[str, Array], framework: str | None = None, kinds: dict[str, str] | None = None
) -> Weights:
    """Return weights whose names and dtypes tell parameters from state."""
    params = {name: x for name, x in arrays.items() if not is_state(name, x)}
    state = {name: x for name, x in arrays.items() if name not in params}
    return Weights(nested(params), nested(state), framework, kinds or {})


def check_written(arrays: Mapping[str, Any], places: Mapping[str, Any], partial: bool) -> None:
    """Raise `ArgumentError` unless there is a place for each array, and an array for each place that needs one."""
    needed = {} if partial else {name: x for name, x in places.items() if name.rpartition(".")[2] not in COUNTERS}
    check_names(arrays, dict.fromkeys([*needed, *(name for name in arrays if name in places)]), "the weights")


def check_names(names: Mapping[str, Any], wanted: Mapping[str, Any], what: str) -> None:
    """Raise `ArgumentError` unless two sets of names are equal."""
    missing, unknown = [n for n in wanted if n not in names], [n for n in names if n not in wanted]
    if missing or unknown:
        said = [f"{abridge(missing)} missing"] * bool(missing) + [f"{abridge(unknown)} unknown"] * bool(unknown)
        if missing and re.search(r"\b(module|_orig_mod)\.|_[gv]$", "\n".join(unknown), re.M):
            said.append("read_weights(path, like=model) takes such prefixes and spellings away")
        raise errors.ArgumentError(f"{what}: {'; '.join(said)}")


def abridge(names: list[str], most: int = 6) -> str:
    """Return some names as text, abridged."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def fit_array(name: str, x: Array, shape: tuple[int, ...], dtype: Any, cast: bool) -> Array:
    """Return an array as the place it is written to wants it; raise `ArgumentError` where that loses digits."""
    if x.shape != tuple(shape):
        raise errors.ArgumentError(f"{name}: shape {x.shape} where the model has {tuple(shape)}")
    if x.dtype == dtype:
        return x
    if not cast and not _keeps(x.dtype, dtype):
        raise errors.ArgumentError(
            f"{name}: {x.dtype} where the model has {np.dtype(dtype).name}: cast=True rounds the weights"
        )
    return x.astype(dtype)


def _keeps(before: Any, after: Any) -> bool:
    """Return whether each number of one dtype is one of the other; bfloat16 and float8 are not NumPy's own."""
    try:
        old, other = ml_dtypes.finfo(before), ml_dtypes.finfo(after)  # type: ignore[no-untyped-call]
    except ValueError:
        return np.can_cast(before, after, "safe")
    return bool(
        old.nmant <= other.nmant and old.max <= other.max and old.smallest_subnormal >= other.smallest_subnormal
    )


# files
