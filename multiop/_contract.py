"""The contract of a backend: what multiop calls of it, and what it may call of multiop's custom gradients and tapes.

A backend is a module. `Backend` has a member for each name that it must have, `OPTIONAL` those that it may leave out;
its primitive ops are in `_primitives.py`. mypy checks the built-in backends against it, and `gaps` each backend when it
is loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from multiop._primitives import Primitives

Tensor: TypeAlias = Any
"""A tensor of the framework."""

Flat = Callable[..., tuple[list[Tensor], list[Tensor]]]
"""A user's function as a backend's transforms see it: tensors in; a list of outputs, and auxiliary ones, out."""


class Backend(Primitives, Protocol):
    """A backend: a module, whose functions are the methods here without `self`.

    Arguments come by position, all of them. Where a tensor is expected, a primitive op may be given a Python number, a
    NumPy array or a list, which `convert`, `promote` and `floating` make tensors of. Errors are raised without the op's
    name: its boundary adds it.

    Attributes:
        name: What `set_backend` calls it.
        version: The framework's version.
        Tensor: The class of its tensors, or a tuple of them, traced ones included. They have `shape` and `dtype`, and
            Python's operators on them, `[]` included, are the ops of that meaning, gradients too.
    """

    name: str
    version: str
    Tensor: Any

    @property
    def argument_errors(self) -> tuple[type[Exception], ...]:
        """Exceptions that the framework raises for a bad argument: they become an `ArgumentError`."""

    @property
    def passed_errors(self) -> tuple[type[Exception], ...]:
        """Subclasses of these that are the framework's own business and pass unchanged."""

    # conversion

    def is_tensor(self, x: Any, /) -> bool:
        """Say whether `x` is a tensor, or a variable, of the framework; `isinstance(x, multiop.Tensor)` asks it too."""

    def convert(self, x: Any, dtype: str | None = None, /) -> Tensor:
        """Return `x` as a tensor, of `dtype` where it is given: a tensor, a variable, a host value or lists of them."""

    def dtype_name(self, x: Tensor, /) -> str:
        """Return the name of the dtype of a tensor, or of anything with a `dtype` of the framework."""

    def floating(self, x: Any, /) -> Tensor:
        """Return `x` as a tensor of a floating or complex dtype: ints and bools become `floatx`."""

    def promote(self, x1: Any, x2: Any, /) -> Sequence[Tensor]:
        """Return two operands as tensors of the dtype that the promotion table gives them."""

    def promote_floating(self, x1: Any, x2: Any, /) -> Sequence[Tensor]:
        """Return two operands as tensors of one floating or complex dtype."""

    def set_x64(self, enable: bool, /) -> None:
        """Follow multiop's switch for 64-bit dtypes."""

    # devices

    def device(self, x: Tensor, /) -> str:
        """Return the name of the device where a tensor lies."""

    def to_device(self, x: Any, device: str, /) -> Tensor:
        """Return `x` on another device."""

    def on_device_of(self, x: Any, made: Tensor, /) -> Tensor:
        """Return `made`, which multiop made itself, where `x` lies."""

    def together(self, *xs: Any) -> Sequence[Any]:
        """Return host values among `xs` where its tensors lie; the rest as it is."""

    # autodiff

    def stop_gradient(self, x: Tensor, /) -> Tensor:
        """Return the value of `x` as a constant."""

    def custom_call(self, call: Call, primals: list[Tensor], /) -> list[Tensor]:
        """Return the outputs of a custom gradient's function, with its rule for their derivative in every mode."""

    def gradients(
        self,
        ys: list[Tensor],
        xs: list[Tensor],
        grad_ys: list[Tensor | None],
        stop_gradients: list[Tensor],
        aggregation_method: Any,
        gate_gradients: Any,
        colocate: Any,
        /,
    ) -> Sequence[Tensor | None]:
        """Return the gradient of the sum of `ys`, weighted by `grad_ys`, for each of `xs`; `None` where none flows."""

    def Tape(self, persistent: bool, watch_accessed_variables: bool, /) -> Tape:  # noqa: N802
        """Return a tape, which records as a context manager."""

    def vjp(self, fun: Flat, primals: Sequence[Tensor], /) -> tuple[list[Tensor], Callable[..., Any], Any]:
        """Return the outputs of `fun`, the map from cotangents to those of the primals, and the auxiliary outputs."""

    def jvp(
        self, fun: Flat, primals: Sequence[Tensor], tangents: Sequence[Tensor], /
    ) -> tuple[list[Tensor], list[Tensor], Any]:
        """Return the outputs of `fun`, their tangents, and the auxiliary outputs."""

    def vmap(self, fun: Callable[..., Any], in_axes: Sequence[int | None], axis_size: Any, /) -> Callable[..., Any]:
        """Return `fun` over an axis of each argument, or none; it stands first in every output."""

    def jit(self, fun: Callable[..., Any], /) -> Callable[..., Any]:
        """Return `fun`, which returns a list of tensors and anything else, compiled once per signature."""

    def checkpoint(self, fun: Callable[..., Any], primals: Sequence[Tensor], /) -> list[Tensor]:
        """Return the outputs of `fun`, which runs again when they are differentiated."""


OPTIONAL = {
    "is_compiling": "Say whether this thread is in the framework's compiler, where that traces Python itself.",
    "retrace": "Have that compiler, if it is tracing in this thread, trace from the start.",
    "traced": "Return a user's function as the framework's tracer wants it.",
    "composite": "Run an op that is made of others as one program.",
    "is_free_of_rules": "Say whether reverse mode alone is to take second derivatives of what is given.",
    "is_unsupported": "Say whether an exception means that the framework has no kernel for this.",
    "first_line": "Return what an exception says, without what only the framework's authors understand.",
    "word": "The dtype in which 32-bit words of random numbers are multiplied, uint32 where there is no int64.",
    "random_words": "Return random words as `multiop.random._philox` defines them, or `None`, from a faster source.",
    "kept": "Return random words, of a key, so that its compiler does not compute them once for each use.",
    "rounded": "Return a product that its compiler does not merge with a sum: it is rounded first.",
    "is_tracing": "Say whether what is called now is recorded, to run again without Python.",
    "if_untested": "What does not work on a version that was never tested, for the warning.",
}


class Call(Protocol):
    """One call of a custom-gradient function, as `custom_call` sees it.

    Attributes:
        f: The user's function.
        name: Its name, for errors.
        specs: Shape and dtype of each primal.
        arguments: Each argument of the call: the structure of its pytree, and its leaves.
    """

    f: Callable[..., Any]
    name: str
    specs: list[Any]
    arguments: list[Any]

    def forward(self, primals: Sequence[Tensor], /) -> tuple[list[Tensor], Any]:
        """Run the function; return its outputs, and its rule for `backward`."""

    def backward(
        self, grad_fn: Any, upstreams: Sequence[Tensor | None], variables: list[Any], /
    ) -> tuple[list[Tensor | None], list[Tensor | None]]:
        """Run the rule; return the gradients of the primals and of the variables, `None` for zero."""

    def wants_variables(self) -> bool:
        """Say whether the rule, known after `forward`, takes what the function closes over."""

    def argument_name(self, i: int, /) -> str:
        """Return the name of an argument of the call, for errors."""


class Tape(Protocol):
    """What records operations between `__enter__` and `__exit__`."""

    def __enter__(self) -> Any: ...
    def __exit__(self, *error: Any) -> None: ...

    def watch(self, x: Tensor, /) -> Tensor:
        """Return `x`, recorded from here on."""

    def gradient(
        self, targets: list[Tensor], sources: list[Tensor], output_gradients: list[Tensor] | None, /
    ) -> Sequence[Tensor | None]:
        """Return the gradient of the sum of `targets`, each weighted or by ones, for each source; `None` for none."""

    def stop_recording(self) -> Any:
        """Return a context within which nothing is recorded."""

    def reset(self) -> None:
        """Forget what was recorded."""

    def watched_variables(self) -> Sequence[Any]:
        """Return the variables that were used, in order."""


def gaps(module: Any) -> list[str]:
    """Return what a module lacks to be a backend: missing names, and functions that cannot be called as here."""
    found = []
    for name, member in _members(Backend).items():
        try:
            given = getattr(module, name)
        except AttributeError:
            found.append(f"{name} is missing")
            continue
        if member is None:
            continue
        if not callable(given):
            found.append(f"{name} is no function")
            continue
        n = len(inspect.signature(member).parameters) - 1
        try:
            inspect.signature(given).bind(*[None] * n)
        except TypeError:
            found.append(f"{name}{inspect.signature(given)} must take {n} arguments by position")
        except ValueError:  # native code without a signature
            continue
    return found


def _members(protocol: type) -> dict[str, Any]:
    """Return the attributes, as `None`, and the functions of a protocol."""
    found: dict[str, Any] = {}
    for base in reversed(protocol.__mro__):
        found |= dict.fromkeys(getattr(base, "__annotations__", {}))
        found |= {name: member for name, member in vars(base).items() if inspect.isfunction(member)}
        found |= dict.fromkeys(name for name, member in vars(base).items() if isinstance(member, property))
    return {name: member for name, member in found.items() if name[0] != "_"}
