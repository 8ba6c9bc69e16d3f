"""What is known of each built-in backend before it is loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

# name -> (module that implements the backend, the package that it needs, the pip command that installs it)
BUILT_IN: dict[str, tuple[str, str, str]] = {
    "torch": ("multiop.backends.torch", "torch", "pip install 'multiop[torch]'"),
    "jax": ("multiop.backends.jax", "jax", "pip install 'multiop[jax]'"),
    "tensorflow": ("multiop.backends.tensorflow", "tensorflow", "pip install 'multiop[tensorflow]'"),
    "numpy": ("multiop.backends.numpy", "numpy", "pip install multiop"),
}
EMBEDDED = "numpy"  # it needs no framework

# the versions of each framework that the suite passes on: the first one, and the first one that is too new
TESTED: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "torch": ((2, 13), (2, 16)),
    "jax": ((0, 7), (0, 13)),
    "tensorflow": ((2, 18), (2, 22)),
    "numpy": ((2, 0), (2, 6)),
}


def compiling() -> str | None:
    """Return the backend whose compiler traces Python itself, if it does so in this thread; it may not be loaded."""
    dynamo = sys.modules.get("torch._dynamo.symbolic_convert")
    # the module may be incomplete, while another thread imports it
    return None if getattr(getattr(dynamo, "tls", None), "current_tx", None) is None else "torch"


def untraced(function: F) -> F:
    """Make such a compiler call `function` while tracing, since it cannot trace an import or the reading of a file."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function
