"""The one definition of a pytree: tuples, lists, dicts, namedtuples, registered classes; `None` is a leaf.

Registered are those of optree, of `multiop.tree`, of JAX and of PyTorch; optree does the work on all of them.
"""

from __future__ import annotations

import builtins
import collections
import functools
import importlib
import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from multiop import errors
from multiop._loading import imports, registry as _registry
from multiop._loading.built_in import hide_from_tracer

NAMESPACE = "multiop"
_SEQUENCES = (list, tuple)
_SCALARS = (bool, int, float, complex, str, type(None))


class _Optree:
    """Stands for optree until a tree needs it: a tenth of the time that `import multiop` takes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("optree"), name)


def _take_optree(module: Any) -> None:
    global optree
    optree = module


optree: Any = _Optree()
imports.when_imported("optree", _take_optree)


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of `tree` and its structure; `None` is a leaf."""
    if _registry._is_tracing_python():
        leaves: list[Any] = []
        return leaves, _trace_structure(tree, leaves)
    try:
        leaves, structure = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
    except RecursionError:
        raise errors.ArgumentError("a tree contains itself, or is nested too deeply") from None
    while not _LEAVES.issuperset(builtins.map(type, leaves)) and _adopt(leaves):
        leaves, structure = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
    return leaves, structure


def unflatten(treedef: Any, leaves: Any) -> Any:
    """Put `leaves` back into the structure `treedef`."""
    if type(treedef) is _Traced:
        return treedef.unflatten(iter(leaves))
    return treedef.unflatten(leaves)


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of `tree`; `None` is a leaf."""
    return flatten(tree)[0]


def structure(tree: Any) -> Any:
    """Return the structure of `tree`; `None` is a leaf."""
    return flatten(tree)[1]


def map(fn: Callable[[Any], Any], tree: Any) -> Any:
    """Apply `fn` to each leaf of `tree`."""
    leaves, treedef = flatten(tree)
    return unflatten(treedef, [fn(leaf) for leaf in leaves])


def flatten_beside(tree: Any, others: Sequence[Any]) -> list[Any]:
    """Return the structure of `tree`, its leaves, and what each of `others` has in the place of these."""
    leaves, treedef = flatten(tree)
    return [treedef, leaves, *[treedef.flatten_up_to(other) for other in others]]


def broadcast(prefix: Any, tree: Any) -> list[Any]:
    """Return, for each leaf of `tree`, the leaf of `prefix` above it; raise `ValueError` if there is none."""
    prefix_leaves, treedef = flatten(prefix)
    subtrees = treedef.flatten_up_to(tree)
    pairs = list(zip(prefix_leaves, subtrees, strict=True))  # before PyTorch 2.9, Dynamo cannot break in a strict zip
    return [leaf for leaf, subtree in pairs for _ in leaves(subtree)]


def is_leaf(tree: Any) -> bool:
    """Say whether `tree` is a single leaf."""
    if _registry.is_compiling():  # before PyTorch 2.9, Dynamo cannot trace optree
        if type(tree) in _SEQUENCES or type(tree) is dict:
            return False
        if type(tree) in _SCALARS or _registry.active().is_tensor(tree):
            return True
        return not _adopt_class(type(tree)) and optree.tree_is_leaf(tree, none_is_leaf=True, namespace=NAMESPACE)
    return optree.tree_is_leaf(tree, none_is_leaf=True, namespace=NAMESPACE) and not _adopt([tree])


def paths(tree: Any) -> list[str]:
    """Return a readable path for each leaf of `tree`, such as `['w'][0]`; empty for a bare leaf."""
    structure(tree)  # which adopts the classes in it
    accessors = optree.tree_accessors(tree, none_is_leaf=True, namespace=NAMESPACE)
    return [accessor.codify("") for accessor in accessors]


# registered classes


def register(cls: type, flatten: Callable[[Any], Any], unflatten: Callable[[Any, Any], Any]) -> None:
    """Register a class with optree; `flatten` returns children, metadata and the name of each child, or `None`."""
    optree.register_pytree_node(cls, flatten, unflatten, path_entry_type=_entry(), namespace=NAMESPACE)


@functools.cache
def _entry() -> type:
    class Entry(optree.PyTreeEntry):  # type: ignore[misc]
        """A child of an instance of a registered class, as a path has it: `.w`, or `[0]`."""

        def codify(self, node: str = "") -> str:
            return f"{node}.{self.entry}" if isinstance(self.entry, str) else f"{node}[{self.entry}]"

    return Entry


def register_fields(cls: type, data: Sequence[str], static: Sequence[str]) -> None:
    """Register a class whose instances are their attributes: `data` the children, `static` the metadata."""
    data, static = tuple(data), tuple(static)

    def flatten(x: Any) -> tuple[list[Any], tuple[Any, ...], tuple[str, ...]]:
        return [getattr(x, name) for name in data], tuple([getattr(x, name) for name in static]), data

    def unflatten(metadata: Any, children: Any) -> Any:
        x: Any = object.__new__(cls)  # its __init__ may refuse, or convert, what stands in the place of a tensor
        for name, child in zip(data, children, strict=True):
            object.__setattr__(x, name, child)
        for name, value in zip(static, metadata, strict=True):
            object.__setattr__(x, name, value)
        return x

    register(cls, flatten, unflatten)


def fields(cls: Any) -> dict[str, bool] | None:
    """Return the fields of a dataclass or a class of attrs, and whether each is static; `None` for other classes."""
    import dataclasses

    if dataclasses.is_dataclass(cls):
        declared: Iterable[Any] = dataclasses.fields(cls)
    else:
        declared = getattr(cls, "__attrs_attrs__", None) or ()
        if not declared:
            return None
    return {field.name: bool(field.metadata.get("static", False)) for field in declared}


def how_to_register(leaf: Any) -> str:
    """Return the end of an error about a leaf that is an instance of such a class, and not registered; else nothing."""
    if isinstance(leaf, type) or fields(type(leaf)) is None:
        return ""
    return f"; to make {type(leaf).__name__} a pytree, decorate the class with multiop.tree.register"


def refuse_unregistered(leaves: Iterable[Any]) -> None:
    """Raise where a leaf is such an instance, or a container, and holds tensors, which would stay in it unnoticed."""
    for leaf in leaves:
        if leaf is not None and not isinstance(leaf, (*_SCALARS, type)) and _holds_tensors(leaf, []):
            raise errors.ArgumentTypeError(
                f"{type(leaf).__name__} holds tensors, and is not a pytree{how_to_register(leaf)}"
            )


def _holds_tensors(x: Any, above: list[Any]) -> bool:
    """Say whether an instance of a class that is not registered holds a tensor, itself or by another one."""
    if isinstance(x, Mapping):
        held = list(x.values())
    elif isinstance(x, (list, tuple, set, frozenset, collections.UserList, collections.deque)):
        held = list(x)
    elif (declared := fields(type(x))) is not None:
        held = [getattr(x, name, None) for name in declared]
    else:
        return False
    if any(x is each for each in above):
        return False
    is_tensor = _registry.active().is_tensor
    return any(is_tensor(part) or _holds_tensors(part, [*above, x]) for part in held)


_LEAVES: set[type] = {*_SCALARS, bytes, *(type(x) for x in (len, how_to_register, type, Ellipsis))}
_registering = threading.RLock()


def _adopt(leaves: list[Any]) -> bool:
    """Register with optree what a framework has registered of the classes of `leaves`; say whether there was any."""
    is_any = False
    for leaf in leaves:
        cls = type(leaf)
        if cls in _LEAVES:
            continue
        if _adopt_class(cls) or _adopt_from_jax(cls, leaf):
            is_any = True
        elif hasattr(leaf, "dtype"):  # a tensor; anything else may be registered later
            _LEAVES.add(cls)
    return is_any


@hide_from_tracer
def _adopt_class(cls: type) -> bool:
    """Do that for a class in PyTorch's registry, which is by class; it has been a module of its own since 2.2."""
    registry = getattr(sys.modules.get("torch.utils._pytree"), "SUPPORTED_NODES", {})
    if (node := registry.get(cls)) is None:
        return False
    take, make = node.flatten_fn, node.unflatten_fn

    def flatten(x: Any) -> tuple[list[Any], _Metadata, None]:
        children, context = take(x)
        return list(children), _Metadata(context), None

    return _register_new(cls, flatten, lambda metadata, children: make(list(children), metadata.value))


def _adopt_from_jax(cls: type, leaf: Any) -> bool:
    """Do that for a class in JAX's registry."""
    jax: Any = getattr(sys.modules.get("jax"), "tree_util", None)
    if not hasattr(jax, "all_leaves") or jax.all_leaves([leaf]):  # it has none while JAX is being imported
        return False

    def flatten(x: Any) -> tuple[list[Any], _Metadata, list[Any]]:
        pairs, treedef = jax.tree_flatten_with_path(x, is_leaf=lambda part: part is not x)
        names = [getattr(key, "name", k) for k, ((key, *_), _) in enumerate(pairs)]
        return [child for _, child in pairs], _Metadata(treedef), names

    return _register_new(cls, flatten, lambda metadata, children: metadata.value.unflatten(children))


def _register_new(cls: type, flatten: Callable[[Any], Any], unflatten: Callable[[Any, Any], Any]) -> bool:
    with _registering:
        if optree.register_pytree_node.get(cls, namespace=NAMESPACE) is None:  # no other thread has done so
            register(cls, flatten, unflatten)
    return True


class _Metadata:
    """What a framework's registry keeps beside the children of an instance; it need not be hashable."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Metadata and bool(self.value == other.value)

    def __hash__(self) -> int:
        try:
            return hash(self.value)
        except TypeError:
            return 0  # equality tells them apart


# while torch.compile traces


class _Traced:
    """A structure made while torch.compile traces Python code; it cannot trace what optree makes of a dict."""

    def __init__(self, kind: Any, metadata: Any, make: Any, children: list[_Traced]) -> None:
        self.kind, self.metadata, self.make, self.children = kind, metadata, make, children
        self.num_leaves: int = 1 if kind is None else sum([child.num_leaves for child in children])

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Traced:  # a graph break lies between the two
            tree = self.unflatten(itertools.repeat(0))
            return bool(optree.tree_structure(tree, none_is_leaf=True, namespace=NAMESPACE) == other)
        return (self.kind, self.metadata, self.children) == (other.kind, other.metadata, other.children)

    __hash__ = None  # type: ignore[assignment]

    def is_leaf(self) -> bool:
        return self.kind is None

    def unflatten(self, leaves: Any) -> Any:
        if self.kind is None:
            return next(leaves)
        return self.make(self.metadata, [child.unflatten(leaves) for child in self.children])

    def flatten_up_to(self, tree: Any) -> list[Any]:
        if self.kind is None:
            return [tree]
        if type(tree) is not self.kind:
            raise ValueError(f"expected a {self.kind.__name__}, got {tree!r}")
        subtrees, metadata, _ = _one_level(tree)
        if metadata != self.metadata or len(subtrees) != len(self.children):
            raise ValueError(f"expected {len(self.children)} entries, got {tree!r}")
        below = []
        for child, subtree in zip(self.children, subtrees, strict=True):
            below += child.flatten_up_to(subtree)
        return below


def _trace_structure(tree: Any, leaves: list[Any]) -> _Traced:
    """Append the leaves of `tree` to `leaves`; return its structure."""
    if is_leaf(tree):
        leaves.append(tree)
        return _Traced(None, None, None, [])
    subtrees, metadata, make = _one_level(tree)
    return _Traced(type(tree), metadata, make, [_trace_structure(subtree, leaves) for subtree in subtrees])


def _one_level(tree: Any) -> tuple[list[Any], Any, Any]:
    if type(tree) is dict:
        keys = _in_order(tree)
        return [tree[key] for key in keys], keys, functools.partial(_dict_of, list(tree))
    if type(tree) in _SEQUENCES:
        return list(tree), None, functools.partial(_sequence_of, type(tree))
    subtrees, metadata, _, make = optree.tree_flatten_one_level(tree, none_is_leaf=True, namespace=NAMESPACE)
    return list(subtrees), metadata, make


def _in_order(keys: Iterable[Any]) -> list[Any]:
    """Return the keys of a dict in optree's order, which is that of the leaves."""
    keys = list(keys)
    for by in (None, _by_class):
        try:
            return sorted(keys, key=by)
        except TypeError:
            continue
    return keys


def _by_class(key: Any) -> tuple[str, Any]:
    return f"{type(key).__module__}.{type(key).__qualname__}", key


def _sequence_of(kind: Any, _: None, values: list[Any]) -> Any:
    return kind(values)


def _dict_of(order: list[Any], keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    entries = dict(zip(keys, values, strict=True))
    return {key: entries[key] for key in order}
