"""What a name that does not exist may stand for."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Collection, Iterable

# what people write who come from elsewhere
ELSEWHERE = {"np": "numpy", "jnp": "numpy", "pytorch": "torch", "tf": "tensorflow", "flax": "jax"}


def similar(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?`, or nothing where no known name is like `name`."""
    known = list(known)
    meant = ELSEWHERE.get(name.lower(), name)
    found = [meant] if meant in known else difflib.get_close_matches(name.lower(), known, n=3)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def missing(module: str, name: str, known: Collection[str]) -> AttributeError:
    """Return the error about an attribute that a module has not, with the public name that may be meant."""
    if not name.startswith("_") and importlib.util.find_spec(f"{module}.{name}") is not None:
        hint = f"; write import {module}.{name} first"
    else:
        bare = name.removeprefix("op_")
        spelt = next((one for one in (bare, f"op_{bare}") if one in known), None)
        hint = f"; did you mean {spelt!r}?" if spelt else similar(name, known)
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")  # unnamed: Python would guess too
