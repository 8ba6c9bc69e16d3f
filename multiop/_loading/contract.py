"""The contract of a backend: what multiop calls on it, and what a backend may call on multiop's custom gradients.

A backend is a module. `Backend` has a member for each name that the module must define, and `Optional` one for each
that it may leave out; the primitive ops are in `primitives.py`. mypy checks the built-in backends against the
contract, and `gaps` checks each backend when it is loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from multiop._loading.primitives import Primitives

Tensor: TypeAlias = Any
"""A tensor of the framework."""

Flat = Callable[..., tuple[list[Tensor], list[Tensor]]]
"""A user's function as a backend's transforms see it: from tensors to a list of outputs and one of auxiliary ones."""


class Backend(Primitives, Protocol):
    """A backend: a module whose functions are the methods here, without `self`.

    All arguments are passed by position. Where a tensor is expected, a primitive op may receive a Python number, a
    NumPy array or a list; `convert`, `promote` and `floating` make tensors of these. Errors are raised without the op's
    name, which the boundary adds.

    Attributes:
        name: The name that `set_backend` takes.
        version: The framework's version.
        Tensor: The class of its tensors, or a tuple of classes, those of tracers included. Tensors have `shape` and
            `dtype`; Python's operators on them, `[]` included, have the values and gradients of the ops they stand for.
    """

    name: str
    version: str
    Tensor: Any

    @property
    def argument_errors(self) -> tuple[type[Exception], ...]:
        """Exceptions that the framework raises for a bad argument: they become an `ArgumentError`."""

    @property
    def passed_errors(self) -> tuple[type[Exception], ...]:
        """Exceptions among `argument_errors`, or their subclasses, that are the framework's own and pass unchanged."""

    # conversion

    def is_tensor(self, x: Any, /) -> bool:
        """Say whether `x` is a tensor, or a variable, of the framework; `isinstance(x, multiop.Tensor)` asks it too."""

    def convert(self, x: Any, dtype: str | None = None, /) -> Tensor:
        """Return a tensor, a variable, a host value or lists of these as a tensor, of `dtype` if it is given."""

    def dtype_name(self, x: Tensor, /) -> str:
        """Return the name of the dtype of a tensor, or of anything with a `dtype` of the framework."""

    def floating(self, x: Any, /) -> Tensor:
        """Return `x` as a tensor of a floating or complex dtype: ints and bools become `floatx`."""

    def promote(self, x1: Any, x2: Any, /) -> Sequence[Tensor]:
        """Return two operands as tensors of the dtype that the promotion table gives them."""

    def promote_floating(self, x1: Any, x2: Any, /) -> Sequence[Tensor]:
        """Return two operands as tensors of one floating or complex dtype."""

    def set_x64(self, enable: bool, /) -> None:
        """Follow multiop's switch of the 64-bit mode."""

    # devices

    def device(self, x: Tensor, /) -> str:
        """Return the name of the device that a tensor is on."""

    def to_device(self, x: Any, device: str, /) -> Tensor:
        """Return `x` on another device."""

    def on_device_of(self, x: Any, made: Tensor, /) -> Tensor:
        """Return `made`, a tensor that multiop created, on the device of `x`."""

    def is_at_hand(self, x: Tensor, /) -> bool:
        """Say whether the values of a tensor can be read without waiting for an accelerator."""

    def name_scope(self, name: str, /) -> Any:
        """Return a context that gives what is computed within it a name."""

    def together(self, *xs: Any) -> Sequence[Any]:
        """Return `xs` with host arrays as tensors that work with its tensors; Python scalars stay as they are."""

    # autodiff

    def stop_gradient(self, x: Tensor, /) -> Tensor:
        """Return the value of `x` as a constant."""

    def custom_call(self, call: Call, primals: list[Tensor], /) -> list[Tensor]:
        """Return the outputs of a custom gradient's function, differentiated by its rule in every mode."""

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
    ) -> Sequence[Tensor | None] | None:
        """Return the gradient of the sum of `ys`, weighted by `grad_ys`, for each of `xs`; `None` if unconnected.

        `None` in place of all of them: nothing recorded `ys`.
        """

    def Tape(self, persistent: bool, watch_accessed_variables: bool, /) -> Tape:  # noqa: N802
        """Return a tape: a context manager that records."""

    def vjp(
        self, fun: Flat, primals: Sequence[Tensor], persistent: bool = True, /
    ) -> tuple[list[Tensor], Callable[..., Any], Any]:
        """Return the outputs of `fun`, the map from cotangents to those of the primals, and the auxiliary outputs.

        Unless `persistent`, the map is called once, and may free what it has used.
        """

    def jvp(
        self, fun: Flat, primals: Sequence[Tensor], tangents: Sequence[Tensor], /
    ) -> tuple[list[Tensor], list[Tensor], Any]:
        """Return the outputs of `fun`, their tangents, and the auxiliary outputs."""

    def vmap(
        self, fun: Callable[..., Any], in_axes: Sequence[int | None], axis_size: Any, is_linear: bool = False, /
    ) -> Callable[..., Any]:
        """Return `fun` mapped over an axis, or none, of each argument; the mapped axis is first in every output.

        `is_linear`: it is a map of tangents or cotangents, which may run row by row if that is faster.
        """

    def jit(self, fun: Callable[..., Any], /) -> Callable[..., Any]:
        """Return `fun` compiled once per signature.

        `fun` returns a list of tensors, and a function of such a list. What is returned calls that function, with the
        tensors that the program computes.
        """

    def checkpoint(self, fun: Callable[..., Any], primals: Sequence[Tensor], /) -> list[Tensor]:
        """Return the outputs of `fun`; differentiating them runs `fun` again."""


class Optional(Protocol):
    """What a backend may leave out.

    Attributes:
        kernels: Functions that stand for ops, under their names, see `multiop._loading.kernels`.
        random: The parts of random numbers that are the framework's, a `RandomParts`.
        compiler: The framework's compiler, if it traces Python itself, a `Compiler`.
        if_untested: The end of the warning about a version that was never tested: what does not work on it. `None`: the
            backend itself warns, where it matters.
    """

    kernels: Any
    random: RandomParts
    compiler: Compiler
    if_untested: str | None

    def traced(self, fun: Callable[..., Any], /) -> Callable[..., Any]:
        """Return a user's function in the form that the framework's tracer needs."""

    def around(self, name: str, op: Callable[..., Any], /) -> Callable[..., Any]:
        """Return the op of a name, primitive or composite, with what the backend does around each of its ops."""

    def composite(self, op: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any:
        """Run a composite op as one program."""

    def has_native_derivatives(self, ys: Sequence[Tensor], /) -> bool:
        """Say whether to take second derivatives of these tensors in reverse mode alone."""

    def is_differentiated(self, x: Tensor, /) -> bool | None:
        """Say whether a derivative is being taken of what `x` is computed from; `None` where this cannot be told."""

    def jit_donating(self, fun: Callable[..., Any], donated: tuple[int, ...], /) -> Callable[..., Any]:
        """Do the same as `jit`; the tensors at the places `donated` are not used again."""

    def linearize(self, fun: Flat, primals: Sequence[Tensor], /) -> tuple[list[Tensor], list[Tensor], Any, Any] | None:
        """Return the outputs of `fun`, the auxiliary ones, its pullback, and what makes the map of its tangents.

        `None` where each tangent needs a run of its own.
        """

    def linear(self, fn: Any, x: Tensor, /) -> Tensor:
        """Return `fn(x)`, where `fn` is linear, and its derivatives are those of `fn.transpose`."""

    def share(self, array: Any, is_asked: bool, frozen: Any = None, /) -> Tensor | None:
        """Return an array of NumPy as a tensor on the same memory; `None` where that cannot be, or is better not done.

        `is_asked` says that the caller insists. `frozen` is whose memory it is, if nobody writes to it again: a tensor
        of a framework whose tensors never change.
        """

    def x64(self) -> bool:
        """Say whether the framework's own 64-bit mode is on, where it has one."""

    def reason(self, error: Exception, /) -> str | None:
        """Return what an exception of the framework means, if it is one of these.

        `"unsupported"`: the framework lacks a kernel, or a rule. `"unknown value"`: a value was read that compiled or
        mapped code lacks. `"two dtypes"`: an operator takes operands of one dtype alone.
        """

    def compute_again(self, error: Exception, fun: Callable[[], Any], /) -> list[Any] | None:
        """Return what `fun()`, an op that ended in `error`, returns, in a list, computed in another way, if any."""

    def first_line(self, error: Exception, /) -> str:
        """Return the message of an exception without the framework's internals."""


class Compiler(Protocol):
    """A compiler that traces Python itself."""

    def is_compiling(self) -> bool:
        """Say whether it is tracing Python code in this thread, or what that code records."""

    def is_tracing_python(self) -> bool:
        """Say whether it is tracing Python code in this thread; each call of an op asks."""

    def retrace(self) -> None:
        """If it is tracing in this thread, make it trace from the start."""

    def refuse_break(self) -> None:
        """Raise if it is tracing in this thread, and would be wrong about what takes a function."""


class RandomParts(Protocol):
    """The parts of random numbers that a framework does in its own way; a backend may leave out each.

    Attributes:
        word: The dtype in which 32-bit words are multiplied, `"uint32"` where there is no int64.
    """

    word: str

    def random_words(self, key: Tensor, n: Any, counter: tuple[Any, Any, Any, Any], /) -> Tensor | None:
        """Return random words as `multiop.random._philox` defines them, or `None`, from a faster source."""

    def draws_on_host(self, x: Tensor | None, /) -> bool:
        """Say whether numbers for the device of `x`, or of the key `x`, are drawn in arrays of the host now.

        They are not where calls are recorded.
        """

    def from_host(self, x: Any, /) -> Tensor:
        """Return an array, which nobody else holds, as a tensor on the same memory."""

    def polynomial(self, x: Tensor, coefficients: tuple[float, ...], /) -> Tensor | None:
        """Return a polynomial by Horner's rule, highest power first, each product and sum rounded, or `None`."""

    def kept(self, words: Tensor, key: Tensor, /) -> Tensor:
        """Return random words, of a key, so that its compiler does not compute them once for each use."""

    def taken(self, x: Tensor, index: Tensor, /) -> Tensor:
        """Return the entries of a vector at an index that is known to be inside."""

    def rounded(self, product: Tensor, /) -> Tensor:
        """Return a product that its compiler does not merge with a sum: it is rounded first."""

    def is_tracing(self) -> bool:
        """Say whether what is called now is recorded, to run again without Python."""

    def data_of_key(self, seed: Any, /) -> Tensor | None:
        """Return the words of a key of the framework's own type, or `None` for anything else."""

    def key_of_ints(self, low: int, high: int, /) -> Tensor:
        """Return the key of two words, which a draw then reads, sooner than by conversion."""


class Call(Protocol):
    """One call of a custom-gradient function, as `custom_call` sees it.

    Attributes:
        f: The user's function.
        name: Its name, for errors.
        rule_name: Its name and the line where it begins, for errors about what its rule computes.
        is_op: Whether it is an op of multiop, whose rule is linear.
    """

    f: Callable[..., Any]
    name: str
    rule_name: str
    is_op: bool

    def forward(self, primals: Sequence[Tensor], /) -> tuple[list[Tensor], Any]:
        """Run the function; return its outputs, and its rule for `backward`."""

    def backward(
        self, grad_fn: Any, upstreams: Sequence[Tensor | None], variables: list[Any], /
    ) -> tuple[list[Tensor | None], list[Tensor | None]]:
        """Run the rule; return the gradients of the primals and of the variables, `None` for zero."""

    def wants_variables(self) -> bool:
        """Say whether the rule takes what the function closes over; it is known after `forward`."""


class Tape(Protocol):
    """A recorder of the operations between `__enter__` and `__exit__`."""

    def __enter__(self) -> Any: ...
    def __exit__(self, *error: Any) -> None: ...

    def watch(self, x: Tensor, /) -> Tensor:
        """Return `x`, recorded from here on."""

    def gradient(
        self, targets: list[Tensor], sources: list[Tensor], output_gradients: list[Tensor] | None, /
    ) -> Sequence[Tensor | None]:
        """Return the gradient of the weighted sum of `targets` for each source; `None` if unconnected.

        `output_gradients` are the weights; `None` is ones.
        """

    def stop_recording(self) -> Any:
        """Return a context within which nothing is recorded."""

    def reset(self) -> None:
        """Forget what was recorded."""

    def watched_variables(self) -> Sequence[Any]:
        """Return the variables that were used, in order."""


def gaps(module: Any) -> list[str]:
    """Return the ways in which a module breaks the contract: missing names, and functions with wrong signatures."""
    problems = []
    for protocol, held, is_needed in (
        (Backend, module, True),
        (Optional, module, False),
        (RandomParts, getattr(module, "random", None), False),
        (Compiler, getattr(module, "compiler", None), hasattr(module, "compiler")),
    ):
        for name, member in _members(protocol).items():
            try:
                given = getattr(held, name)
            except AttributeError:
                problems += [f"{name} is missing"] * is_needed
                continue
            if is_needed or given is not None:
                problems += _misfits(name, given, member)
    return problems


def _misfits(name: str, given: Any, member: Any) -> list[str]:
    """Return what is wrong with a member that a backend gives, at most one thing."""
    if member is None:
        return []
    if not callable(given):
        return [f"{name} is not a function"]
    n = len(inspect.signature(member).parameters) - 1
    try:
        inspect.signature(given).bind(*[None] * n)
    except TypeError:
        return [f"{name}{inspect.signature(given)} must take {n} arguments by position"]
    except ValueError:  # native code without a signature
        pass
    return []


def _members(protocol: type) -> dict[str, Any]:
    """Return the attributes, as `None`, and the functions of a protocol."""
    members: dict[str, Any] = {}
    for base in reversed(protocol.__mro__):
        members |= dict.fromkeys(getattr(base, "__annotations__", {}))
        members |= {name: member for name, member in vars(base).items() if inspect.isfunction(member)}
        members |= dict.fromkeys(name for name, member in vars(base).items() if isinstance(member, property))
    return {name: member for name, member in members.items() if name[0] != "_"}
