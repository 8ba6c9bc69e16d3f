"""What a function that runs again (a checkpointed one) changes beside computing.

The first run notes the state that it meets, and the later ones start from it and leave nothing changed, so that they
repeat the first. The state of multiop's own generators is kept apart for each run, so other threads never see it go
back. That of NumPy's and Python's generators is theirs: it is put back, and afterwards what it was.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

T = TypeVar("T")

_local = threading.local()


class State(Generic[T]):
    """An immutable value, and what replaces it; each run that repeats another has its own.

    Attributes:
        shared: The value outside of such runs.
    """

    __slots__ = ("shared",)

    def __init__(self, value: T) -> None:
        self.shared = value

    @property
    def value(self) -> T:
        """The value that the innermost run in this thread sees."""
        runs: list[Run] = _runs()
        if not runs:
            return self.shared
        first = []
        for run in reversed(runs):
            if run.own is None:
                first.append(run)
            elif self in run.own:
                value = run.own[self]
                break
        else:
            value = self.shared
        for run in first:
            run.met.setdefault(self, value)
        return value

    @value.setter
    def value(self, value: T) -> None:
        runs = _runs()
        if runs:
            _ = self.value  # noted before it changes
        for run in reversed(runs):
            if run.own is not None and self in run.own:
                run.own[self] = value
                return
        self.shared = value


class Run:
    """A run of a function: the first one, or one that repeats it."""

    __slots__ = ("met", "own")

    def __init__(self, first: Run | None = None) -> None:
        self.met: dict[State[Any], Any] = {} if first is None else first.met
        self.own = None if first is None else dict(first.met)


def _runs() -> list[Run]:
    try:
        return _local.runs
    except AttributeError:
        _local.runs = []
        return _local.runs


def is_running() -> bool:
    """Say whether this thread is in a function that may run again."""
    return bool(_runs())


@contextlib.contextmanager
def _enter_run(run: Run) -> Iterator[None]:
    runs = _runs()
    runs.append(run)
    try:
        yield
    finally:
        runs.pop()


class Repeatable:
    """A function whose later calls repeat the first one: they meet the same state, and leave none changed."""

    def __init__(self, fun: Callable[..., Any], generators: Iterable[Any]) -> None:
        self.fun = fun
        self.first: Run | None = None
        self.generators = [(x, _state(x)) for x in generators]

    def __call__(self, *args: Any) -> Any:
        if self.first is None:
            self.first = Run()
            try:
                with _enter_run(self.first):
                    return self.fun(*args)
            finally:
                self.generators = [(x, state) for x, state in self.generators if not _equal(_state(x), state)]
        now = [(x, _state(x)) for x, _ in self.generators]
        for x, state in self.generators:
            _restore(x, state)
        try:
            with _enter_run(Run(self.first)):
                return self.fun(*args)
        finally:
            for x, state in now:
                _restore(x, state)


# generators of the host: Python's module and NumPy's, which need no name in a function, and those that it refers to

_DEPTH = 3  # of containers and objects in each other; functions are followed without end
_ENTRIES = 256  # of a container: a longer one holds data
_AT_ONCE = 2048  # objects looked at
_PLAIN = (str, bytes, int, float, complex, type(None), type, types.ModuleType, types.BuiltinFunctionType, np.ndarray)
_FOREIGN = {"multiop", "numpy", "torch", "jax", "tensorflow", "keras"}  # their functions need no global generator


def host_generators(fun: Any, arguments: Any) -> list[Any]:
    """Return NumPy's and Python's global generators, and the others among what `fun` and its arguments refer to."""
    import random  # np.random takes as long to import as a tenth of multiop, this as a thirtieth

    classes = np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random
    found: dict[int, Any] = {id(x): x for x in (random, np.random)}
    seen: dict[int, Any] = {}  # it holds what it has seen, so no id is used twice
    left = [(fun, 0), (arguments, -2)]
    while left and len(seen) < _AT_ONCE:
        x, depth = left.pop()
        if isinstance(x, _PLAIN) or id(x) in seen or depth > _DEPTH:
            continue
        seen[id(x)] = x
        if isinstance(x, classes) and not isinstance(x, random.SystemRandom):
            found[id(x)] = x
        elif isinstance(x, _FUNCTIONS):
            left += [(y, depth) for y in _of_function(x)]
        else:
            left += [(y, depth + 1) for y in _of_object(x)]
            left.append((getattr(x, "__dict__", {}).get("__wrapped__"), depth))  # a transform's function is a function
    return list(found.values())


_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


def _of_function(f: Any) -> list[Any]:
    """Return what a function refers to."""
    if isinstance(f, types.MethodType):
        return [f.__func__, f.__self__]
    if isinstance(f, functools.partial):
        return [f.func, *f.args, *f.keywords.values()]
    referred = []
    if (f.__module__ or "").partition(".")[0] not in _FOREIGN:
        referred += [f.__globals__[name] for name in f.__code__.co_names if name in f.__globals__]
    referred += [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
    for cell in f.__closure__ or ():
        with contextlib.suppress(ValueError):  # not assigned yet
            referred.append(cell.cell_contents)
    return referred


def _of_object(x: Any) -> list[Any]:
    """Return the entries of a container; the attributes of another object, and what a call of it refers to."""
    if isinstance(x, (list, tuple, set, dict)):
        return [] if len(x) > _ENTRIES else list(x.values() if isinstance(x, dict) else x)
    call = getattr(type(x), "__call__", None)  # noqa: B004  the function, not whether there is one
    called = [call] if isinstance(call, types.FunctionType) else []
    return [*getattr(x, "__dict__", {}).values(), *called]


def _state(x: Any) -> Any:
    if hasattr(x, "get_state"):  # NumPy's module and its RandomState
        return x.get_state()
    if hasattr(x, "getstate"):  # Python's
        return x.getstate()
    return getattr(x, "bit_generator", x).state


def _restore(x: Any, state: Any) -> None:
    if hasattr(x, "set_state"):
        x.set_state(state)
    elif hasattr(x, "setstate"):
        x.setstate(state)
    else:
        getattr(x, "bit_generator", x).state = state


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, tuple) and any(isinstance(x, np.ndarray) for x in a):
        return all(map(_equal, a, b))
    return bool(a == b)
