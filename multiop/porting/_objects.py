"""Objects among the arguments and the results of a model, such as a cache: their tensors, as dicts and tuples.

An object stands for the dict of its attributes, without those that hold no tensor. Whatever has a shape and a dtype is
a tensor; what else an object holds belongs to the port.
"""

from __future__ import annotations

import copy
import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import optree

from multiop import errors

Path: TypeAlias = tuple[int | str, ...]
_PLAIN = (Mapping, list, tuple)


def is_tensor(x: Any) -> bool:
    """Say whether something is an array, of whatever framework."""
    return hasattr(x, "shape") and hasattr(x, "dtype")


def is_object(x: Any) -> bool:
    """Say whether something has attributes in which there may be tensors."""
    is_number = any(hasattr(type(x), name) for name in ("__int__", "__float__", "__bool__"))
    is_other = is_number or is_tensor(x) or callable(x) or isinstance(x, (*_PLAIN, enum.Enum))
    return hasattr(x, "__dict__") and not is_other


def open_objects(tree: Any) -> Any:
    """Return nested arguments, or results, with the dict of its tensors in the place of each object.

    Raises:
        ArgumentTypeError: An object holds itself.
    """
    try:
        return _open(tree)
    except RecursionError:
        raise errors.ArgumentTypeError("an object among the arguments or results holds itself") from None


def _open(tree: Any) -> Any:
    if is_object(tree):
        return _tensors_of(tree) or {}
    if type(tree) in (list, tuple):
        parts = [_open(part) for part in tree]
        return tree if all(a is b for a, b in zip(parts, tree, strict=True)) else type(tree)(parts)
    if isinstance(tree, Mapping):
        return {key: _open(part) for key, part in tree.items()}
    return tree


def _tensors_of(x: Any) -> Any:
    """Return the tensors in an object, in a dict or in a sequence that an object holds; a sequence keeps its length."""
    if is_tensor(x):
        return x
    if isinstance(x, (list, tuple)):
        parts = [_tensors_of(part) for part in x]
        return tuple({} if x is None else x for x in parts) if any(x is not None for x in parts) else None
    if not (isinstance(x, Mapping) or is_object(x)):
        return None
    named = {key: inner for key, part in _items(x) if (inner := _tensors_of(part)) is not None}
    if list(named) == [*range(len(named))] and named:
        return tuple(named.values())
    return {str(key): inner for key, inner in named.items()} or None


def _items(x: Any) -> list[tuple[Any, Any]]:
    """Return what a dict, a sequence or an object holds, by key."""
    if isinstance(x, (list, tuple)):
        return list(enumerate(x))
    return list((x if isinstance(x, Mapping) else vars(x)).items())


def map_leaves(tree: Any, change: Callable[[Path, Any], Any], path: Path = ()) -> Any:
    """Return nested arguments with copies of the objects, in which other tensors are.

    Args:
        tree: The arguments.
        change: Returns what stands in the place of a tensor, or of anything else that is neither a container nor an
            object, of which it is given the path.
        path: Where `tree` is.
    """
    if is_object(tree):
        made = copy.copy(tree)
        vars(made).update({name: map_leaves(part, change, (*path, name)) for name, part in vars(tree).items()})
        return made
    if isinstance(tree, (list, tuple)):
        parts = [map_leaves(part, change, (*path, number)) for number, part in enumerate(tree)]
        return type(tree)(*parts) if optree.is_namedtuple(tree) else type(tree)(parts)
    if isinstance(tree, Mapping):
        named = {key: map_leaves(part, change, (*path, key)) for key, part in tree.items()}
        if not isinstance(tree, dict):
            kind: Any = type(tree)
            return kind(named)
        made = copy.copy(tree)
        for key, part in named.items():  # what some classes of dicts take one by one alone
            made[key] = part
        return made
    return change(path, tree)


def close_objects(tree: Any, like: Any) -> Any:
    """Return what `open_objects` took apart: `like`, with the tensors of `tree`."""

    def leaf(path: Path, x: Any) -> Any:
        if not is_tensor(x):
            return x
        here = tree
        for key in path:
            here = here[key] if not isinstance(here, dict) or key in here else here[str(key)]
        return here

    return map_leaves(like, leaf)


def leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield what is in nested arguments and the objects among them, each with where it is."""
    if isinstance(tree, _PLAIN) or is_object(tree):
        for key, part in _items(tree):
            yield from leaves(part, (*path, key))
    else:
        yield path, tree


def settings(tree: Any) -> Iterator[tuple[Path, Any]]:
    """Yield what nested arguments hold beside tensors, each with where it is."""
    return ((path, x) for path, x in leaves(tree) if not is_tensor(x))


def tensors(tree: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the tensors among nested arguments, in objects too, each with where it is."""
    return ((path, x) for path, x in leaves(tree) if is_tensor(x))


def as_tuples(tree: Any, leaf: Callable[[Any], Any] = lambda x: x) -> Any:
    """Return what a model returns as tuples and dicts, with `leaf` of everything else."""
    if isinstance(tree, Mapping):
        return {str(name): as_tuples(part, leaf) for name, part in tree.items()}
    return tuple(as_tuples(part, leaf) for part in tree) if isinstance(tree, (tuple, list)) else leaf(tree)


def path_text(path: Path) -> str:
    """Return the text of where something is inside of an argument."""
    return "".join(f".{key}" if isinstance(key, str) else f"[{key}]" for key in path).removeprefix(".")
