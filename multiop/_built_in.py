"""What is known of each built-in backend before it is loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

# name -> (module that implements the backend, the package that it needs, the pip command that installs it)
BUILT_IN: dict[str, tuple[str, str, str]] = {
    "torch": ("multiop.backends.torch", "torch", "pip install 'multiop[torch]'"),
    "jax": ("multiop.backends.jax", "jax", "pip install 'multiop[jax]'"),
    "tensorflow": ("multiop.backends.tensorflow", "tensorflow", "pip install 'multiop[tensorflow]'"),
    "numpy": ("multiop.backends.numpy", "numpy", "pip install multiop"),
}
EMBEDDED = "numpy"  # it needs no framework


class Versions(NamedTuple):
    """Where each level begins among the versions of a framework, see docs/versions.md.

    Attributes:
        reverse: The first that is not refused. Custom gradients have reverse mode alone, on public API.
        whole: The first on which everything works.
        end: The first that the suite was never run on. It is taken for one of the level `reverse`, with a warning.
    """

    reverse: tuple[int, ...]
    whole: tuple[int, ...]
    end: tuple[int, ...]


VERSIONS = {
    "torch": Versions(reverse=(2, 6), whole=(2, 6), end=(2, 16)),
    "jax": Versions(reverse=(0, 5, 3), whole=(0, 5, 3), end=(0, 13)),
    "tensorflow": Versions(reverse=(2, 18), whole=(2, 18), end=(2, 22)),
    "numpy": Versions(reverse=(2, 0), whole=(2, 0), end=(2, 6)),
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


@untraced
def is_traced() -> bool:
    """Say whether a compiler that traces Python itself calls this."""
    return compiling() is not None
