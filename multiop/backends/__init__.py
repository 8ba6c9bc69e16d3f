"""What a backend is: the contract for whoever writes one.

A backend is a module (a package with the same file names as `multiop/frontends` and `multiop/autodiff`) that holds,
under the frontend's names and in its order, every primitive op, as an alias where the native function already has
multiop's values, gradients and dtypes, and otherwise as a short `def`. It imports its framework, NumPy, its siblings
and multiop's private ground (`_args`, `_dtypes`, `_host`, `_tree`, `config`, `errors`), never a frontend.

Arguments arrive by position, all of them, with frontend defaults filled in; tensors may still be host values
(Python scalars, NumPy arrays, lists), which `convert`, `floating` and `promote` of `conversion.py` bring in. Errors are
raised without the op's name: the frontend adds it.

Besides the ops, a backend module holds:

| name | meaning |
|---|---|
| `name` | its name, as given to `set_backend` |
| `version` | the framework's version, a string |
| `Tensor` | the class (or tuple of classes) of its tensors, traced ones included |
| `is_tensor(x)` | whether `x` is a tensor (or variable) of the framework |
| `set_x64(enable)` | follow the 64-bit switch |
| `argument_errors` | classes that the framework raises for a bad argument; they become `ArgumentError` |
| `passed_errors` | subclasses of those that are the framework's own business and pass unchanged |
| `is_unsupported(error)` | may be left out: whether the framework says that it has no kernel for this |
| `is_compiling()` | only for a framework whose compiler traces Python itself: whether this thread is in it |
| `stop_gradient`, `custom_call` | custom gradients, see `multiop/autodiff/custom_gradient.py` |
| `vjp`, `jvp`, `vmap`, `jit`, `checkpoint` | transforms of flat functions, see `multiop/autodiff/transforms.py` |
| `jit(fun)` | `fun` returns a list of tensors and anything else; so does the result, which traces it per signature |
| `Tape`, `gradients` | the tape, see `multiop/autodiff/tape.py` and `gradients.py` |
| `composite(op, args, kwargs)` | may be left out: run an op that is made of others as one program |
| `retrace()` | may be left out: have that compiler, if it is tracing in this thread, trace from the start |
| `traced(fun)` | may be left out: a user's function as the backend's tracer wants it |
| `is_free_of_rules(ys)` | may be left out: whether reverse mode alone is to take second derivatives of `ys` |

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
