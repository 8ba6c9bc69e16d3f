"""The one definition of a pytree: tuples, lists, dicts, namedtuples and other classes of optree; `None` is a leaf."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import optree

from multiop import _registry

NAMESPACE = "multiop"
_SEQUENCES = (list, tuple)
_SCALARS = (bool, int, float, complex, str, type(None))


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of `tree` and its structure; `None` is a leaf."""
    if _registry.is_compiling():
        leaves: list[Any] = []
        return leaves, _traced(tree, leaves)
    return optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)


def unflatten(treedef: Any, leaves: Any) -> Any:
    """Put `leaves` back into the structure `treedef`."""
    if type(treedef) is _Traced:
        return treedef.unflatten(iter(leaves))
    return optree.tree_unflatten(treedef, leaves)


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of `tree`; `None` is a leaf."""
    if _registry.is_compiling():
        return flatten(tree)[0]
    return optree.tree_leaves(tree, none_is_leaf=True, namespace=NAMESPACE)


def structure(tree: Any) -> Any:
    """Return the structure of `tree`; `None` is a leaf."""
    if _registry.is_compiling():
        return flatten(tree)[1]
    return optree.tree_structure(tree, none_is_leaf=True, namespace=NAMESPACE)


def map(fn: Callable[[Any], Any], tree: Any) -> Any:
    """Apply `fn` to each leaf of `tree`."""
    if _registry.is_compiling():
        leaves, treedef = flatten(tree)
        return unflatten(treedef, [fn(leaf) for leaf in leaves])
    return optree.tree_map(fn, tree, none_is_leaf=True, namespace=NAMESPACE)


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
    return optree.tree_is_leaf(tree, none_is_leaf=True, namespace=NAMESPACE)


def paths(tree: Any) -> list[str]:
    """Return a readable path for each leaf of `tree`, such as `['w'][0]`; empty for a bare leaf."""
    accessors = optree.tree_accessors(tree, none_is_leaf=True, namespace=NAMESPACE)
    return [accessor.codify("") for accessor in accessors]


class _Traced:
    """A structure made while torch.compile traces Python code; it cannot trace what optree makes of a dict."""

    def __init__(self, kind: Any, metadata: Any, make: Any, children: list[_Traced]) -> None:
        self.kind, self.metadata, self.make, self.children = kind, metadata, make, children
        self.num_leaves: int = 1 if kind is None else sum([child.num_leaves for child in children])

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Traced:
            return False
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


def _traced(tree: Any, leaves: list[Any]) -> _Traced:
    """Append the leaves of `tree` to `leaves`; return its structure."""
    if is_leaf(tree):
        leaves.append(tree)
        return _Traced(None, None, None, [])
    subtrees, metadata, make = _one_level(tree)
    return _Traced(type(tree), metadata, make, [_traced(subtree, leaves) for subtree in subtrees])


def _one_level(tree: Any) -> tuple[list[Any], Any, Any]:
    if type(tree) is dict:
        keys = sorted(tree)  # optree's order, which determines the order of the leaves
        return [tree[key] for key in keys], keys, functools.partial(_dict_of, list(tree))
    if type(tree) in _SEQUENCES:
        return list(tree), None, functools.partial(_sequence_of, type(tree))
    subtrees, metadata, _, make = optree.tree_flatten_one_level(tree, none_is_leaf=True, namespace=NAMESPACE)
    return list(subtrees), metadata, make


def _sequence_of(kind: Any, _: None, values: list[Any]) -> Any:
    return kind(values)


def _dict_of(order: list[Any], keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    entries = dict(zip(keys, values, strict=True))
    return {key: entries[key] for key in order}
