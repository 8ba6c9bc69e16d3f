"""Suggestions for names that do not exist."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Collection, Iterable

# names that users of other libraries write
ELSEWHERE = {"np": "numpy", "jnp": "numpy", "pytorch": "torch", "tf": "tensorflow", "flax": "jax"}


def similar(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?`, or an empty string if no known name is similar to `name`."""
    known = list(known)
    meant = ELSEWHERE.get(name.lower(), name)
    suggestions = [meant] if meant in known else difflib.get_close_matches(name.lower(), known, n=3)
    return f"; did you mean {' or '.join(map(repr, suggestions))}?" if suggestions else ""


def missing(module: str, name: str, known: Collection[str]) -> AttributeError:
    """Return the error about an attribute that a module does not have, with the public name that may be meant."""
    if not name.startswith("_") and importlib.util.find_spec(f"{module}.{name}") is not None:
        hint = f"; write import {module}.{name} first"
    else:
        bare = name.removeprefix("op_")
        spelt = next((spelling for spelling in (bare, f"op_{bare}") if spelling in known), None)
        hint = f"; did you mean {spelt!r}?" if spelt else similar(name, known)
    # without `name=`, since Python would then add a guess of its own
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")
