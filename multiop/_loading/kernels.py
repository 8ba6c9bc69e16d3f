"""The one rule that joins speed to meaning: a kernel stands where its op stood, and falls through to it.

A backend may have a module `kernels`. A function there has the name and the parameters of an op, primitive or
composite, and one more, `otherwise`: the op itself, which it calls where it does not apply, and where another
derivative is asked for than it has. So a hit costs no call more. `MULTIOP_KERNELS=0` leaves every kernel out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def join(backend: Any, composites: Mapping[str, Callable[..., Any]], are_used: bool) -> None:
    """Complete a backend with the composite ops, and let its kernels stand for its ops, if they are used."""
    for name, op in composites.items():
        if name not in vars(backend):
            setattr(backend, name, op)
    if hasattr(backend, "around"):
        joined = [name for name in names(backend) if getattr(backend, name) is getattr(backend.kernels, name)]
        for name in [name for name in dir(backend) if name.startswith("op_") and name not in joined]:
            setattr(backend, name, backend.around(name, getattr(backend, name)))
    for name in names(backend):
        kernel, op = getattr(backend.kernels, name), getattr(backend, name)
        if op is not kernel:  # it has been joined before, as where a module is loaded under two names
            kernel.__kwdefaults__ = {"otherwise": op}
    switch(backend, are_used)


def switch(backend: Any, are_used: bool) -> None:
    """Let the kernels of a backend stand for its ops, or the ops for themselves."""
    for name in names(backend):
        kernel = getattr(backend.kernels, name)
        setattr(backend, name, kernel if are_used else kernel.__kwdefaults__["otherwise"])


def names(backend: Any) -> list[str]:
    """Return the names of the ops that a backend has kernels for."""
    return sorted(name for name in dir(getattr(backend, "kernels", None)) if name.startswith("op_"))
