"""The one definition of a pytree: tuples, lists, dicts, namedtuples, dataclasses registered with optree; None is a leaf's absence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optree

NAMESPACE = "multiop"


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of `tree` and its structure; `None` is a leaf."""
    return optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)


def unflatten(treedef: Any, leaves: Any) -> Any:
    """Put `leaves` back into the structure `treedef`."""
    return optree.tree_unflatten(treedef, leaves)


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of `tree`; `None` is a leaf."""
    return optree.tree_leaves(tree, none_is_leaf=True, namespace=NAMESPACE)


def structure(tree: Any) -> Any:
    """Return the structure of `tree`; `None` is a leaf."""
    return optree.tree_structure(tree, none_is_leaf=True, namespace=NAMESPACE)


def map(fn: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply `fn` to each leaf of `tree` (and of `rest`, of the same structure)."""
    return optree.tree_map(fn, tree, *rest, none_is_leaf=True, namespace=NAMESPACE)


def is_leaf(tree: Any) -> bool:
    """Say whether `tree` is a single leaf."""
    return optree.tree_is_leaf(tree, none_is_leaf=True, namespace=NAMESPACE)


def paths(tree: Any) -> list[str]:
    """Return a readable path for each leaf of `tree`, such as `['w'][0]`; empty for a bare leaf."""
    accessors = optree.tree_accessors(tree, none_is_leaf=True, namespace=NAMESPACE)
    return [accessor.codify("")  for accessor in accessors]
