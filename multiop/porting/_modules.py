"""Where the modules that compute a port keep its weights, whichever framework they are of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any


def attribute(key: str, taken: Collection[str]) -> str:
    """Return the name of the attribute for a key: that of the original, unless the framework's class has one."""
    return f"{key}_" if key in taken else key


def place(
    owner: Any,
    tree: Mapping[str, Any],
    taken: Collection[str],
    add: Callable[[Any, str], Any],
    register: Callable[[Any, str, Any], Any],
) -> None:
    """Place the arrays of nested dicts in nested modules, of which `add` makes those that are missing."""
    for key, branch in tree.items():
        name = attribute(key, taken)
        if not isinstance(branch, Mapping):
            register(owner, name, branch)
            continue
        if not hasattr(owner, name):
            add(owner, name)
        place(getattr(owner, name), branch, taken, add, register)


def tree_of(owner: Any, tree: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """Return what nested modules hold, in nested dicts of the structure of `tree`."""
    return {
        key: tree_of(held, branch, taken) if isinstance(branch, Mapping) else held
        for key, branch in tree.items()
        for held in (getattr(owner, attribute(key, taken)),)
    }


def update(state: Mapping[str, Any], changed: Mapping[str, Any], assign: Callable[[Any, Any], Any]) -> None:
    """Assign the leaves of the new state to what holds the old one."""
    for key, held in state.items():
        if isinstance(held, Mapping):
            update(held, changed[key], assign)
        elif changed[key] is not held:
            assign(held, changed[key])
