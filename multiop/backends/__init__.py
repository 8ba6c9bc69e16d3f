"""What a backend is: the contract for whoever writes one.

A backend is a module (a package with the same file names as `multiop/frontends` and `multiop/autodiff`) that holds,
under the frontend's names and in its order, every primitive op, as an alias where the native function already has
multiop's values, gradients and dtypes, and otherwise as a short `def`. It imports its framework, NumPy, its siblings
and multiop's private ground (`_args`, `_dtypes`, `_host`, `_tree`, `config`, `errors`), never a frontend.

Arguments arrive by position, all of them, with frontend defaults filled in; tensors may still be host values
(Python scalars, NumPy arrays, lists), which `convert`, `floating` and `promote` of `conversion.py` bring in. Errors are
raised without the op's name: the frontend adds it.

What it holds besides the ops, and how each is called, is `Backend` in `multiop/_contract.py`. Loading a backend checks
it, and tells all that is missing at once.

Register it in the package's `pyproject.toml`:

    [project.entry-points."multiop.backends"]
    mine = "my_package.my_backend"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multiop import errors


def not_implemented(reason: str) -> Callable[..., Any]:
    """Return an op that raises `UnsupportedError` with `reason`, which names the upstream URL."""

    def unsupported(*_: Any) -> Any:
        raise errors.UnsupportedError(reason)

    unsupported.reason = reason  # type: ignore[attr-defined]
    return unsupported
