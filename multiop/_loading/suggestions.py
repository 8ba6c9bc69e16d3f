"""Suggestions for names that do not exist."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import types
from collections.abc import Collection, Iterable

# names that users of other libraries write
ELSEWHERE = {
    "np": "numpy", "jnp": "numpy", "pytorch": "torch", "tf": "tensorflow", "flax": "jax",
    "bmm": "matmul", "mm": "matmul", "cat": "concatenate", "concat": "concatenate", "permute": "transpose",
    "unsqueeze": "expand_dims", "gather": "take", "inverse": "inv", "logsigmoid": "log_sigmoid",
    "elementwise_grad": "grad", "egrad": "grad", "deriv": "grad", "holomorphic_grad": "grad",
    "make_vjp": "vjp", "vector_jacobian_product": "vjp", "tensor_jacobian_product": "vjp", "make_jvp": "jvp",
    "hessian_vector_product": "hvp", "hessian_tensor_product": "hvp", "make_hvp": "hvp",
    "primitive": "custom_gradient", "defvjp": "custom_gradient", "defgrad": "custom_gradient",
}  # fmt: skip

PUBLIC: dict[str, Collection[str]] = {}  # the names of each namespace, where one may be that was looked for elsewhere


def public_names(module: str, *modules: str) -> list[str]:
    """Return what a module of other modules' names gives: all that is not private, and of modules the ones named."""
    members = vars(sys.modules[module])
    return sorted(
        name
        for name, value in members.items()
        if name[0] != "_" and (name in modules or not isinstance(value, types.ModuleType))
    )


class _Missing(AttributeError):
    """An `AttributeError` that hides its name, since Python would add a guess of its own to the traceback."""

    name = property(lambda self: None, lambda self, name: None)

    def __reduce__(self) -> tuple[type[AttributeError], tuple[object, ...]]:
        return AttributeError, self.args


_Missing.__module__, _Missing.__qualname__, _Missing.__name__ = "builtins", "AttributeError", "AttributeError"


def similar(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?`, or an empty string if no known name is similar to `name`."""
    known = list(known)
    meant = ELSEWHERE.get(name.lower(), name)
    suggestions = [meant] if meant in known else difflib.get_close_matches(name.lower(), known, n=3)
    return f"; did you mean {' or '.join(map(repr, suggestions))}?" if suggestions else ""


def missing(module: str, name: str, known: Collection[str]) -> AttributeError:
    """Return the error about an attribute that a module does not have, with the public name that may be meant."""
    is_package = "__path__" in vars(sys.modules[module])
    if name.startswith("_"):  # asked for by tools, which try many
        hint = ""
    elif is_package and importlib.util.find_spec(f"{module}.{name}") is not None:
        hint = f"; write import {module}.{name} first"
    else:
        bare = name.removeprefix("op_").removeprefix("reduce_").removeprefix("random_")
        meant = ELSEWHERE.get(bare, bare)
        spellings = (meant, f"op_{meant}")
        found = [spelling for spelling in spellings if spelling in known]
        for other, names in () if found else PUBLIC.items():
            found += [f"{other}.{spelling}" for spelling in spellings if spelling in names]
        spelt = next(iter(found), None)
        hint = f"; did you mean {spelt!r}?" if spelt else similar(name, known)
    return _Missing(f"module {module!r} has no attribute {name!r}{hint}")
