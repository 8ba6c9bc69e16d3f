"""Load a backend on first use, and say which one is active.

Every frontend op calls `active()`, which must stay two loads and a branch.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from multiop import errors
from multiop._loading import kernels, settings, suggestions, versions
from multiop._loading.built_in import (
    BUILT_IN as BUILT_IN,
    EMBEDDED as EMBEDDED,
    compiling,
    hide_from_tracer,
    is_imported,
    is_package as is_package,
    is_traced,
    of_keras,
    prepare,
)

if TYPE_CHECKING:
    from multiop._loading.contract import Backend

F = TypeVar("F", bound=Callable[..., Any])
ENTRY_POINT_GROUP = "multiop.backends"

_loaded: dict[str, Any] = {}
_composites: dict[str, Callable[..., Any]] = {}  # the ops that no backend must have, and any may have a kernel for
_loading = threading.RLock()  # importing two frameworks at the same time can fail
_counting = threading.Lock()


class _Unloaded:
    """A placeholder for the default backend until the first op needs it."""

    def __getattr__(self, attribute: str) -> Any:
        return getattr(_load_default(), attribute)


def ready() -> Any:
    """Return the module of the active backend, loaded, so that `is_compiling` knows its compiler."""
    module = active() if is_overridden else _backend
    return _load_default() if type(module) is _Unloaded else module


@hide_from_tracer
def _load_default() -> Any:
    with _loading:
        if isinstance(_backend, _Unloaded):  # no other thread has loaded it meanwhile
            set_default(default())
    retrace()
    return _backend


@hide_from_tracer
def default() -> str:
    """Return the name of the backend that is used unless code asks for another."""
    return chosen_name()[0]


def chosen_name() -> tuple[str, str]:
    """Return that name, and what chose it."""
    if name := settings.given_value("backend"):
        return str(name), settings.source("backend")
    if (name := of_keras()) is not None:
        return name, "Keras runs on it"
    frameworks = [name for name in BUILT_IN if name != EMBEDDED]
    imported = [name for name in frameworks if is_imported(name)]
    if len(imported) == 1:  # the tensors that there are can only be its own
        return imported[0], f"{BUILT_IN[imported[0]][1]} is the framework that is imported"
    if imported:
        return imported[0], f"the first imported of {', '.join(frameworks)}"
    for name in filter(is_installed, frameworks):
        return name, f"the first installed of {', '.join(frameworks)}"
    return EMBEDDED, "no framework is installed"


def retrace() -> None:
    """Make a compiler that traces Python in this thread start over: multiop's state has changed since it read it."""
    compiler = _compiler
    if compiler is None and (name := compiling()) is not None:
        compiler = load(name)
    if hasattr(compiler, "compiler"):
        compiler.compiler.retrace()


_backend: Any = _Unloaded()
is_overridden = False  # while another backend than the default may be the active one; else no ContextVar is read
_n_overrides = 0.0  # of those that may be so; where a second backend was chosen, this never ends
FOR_GOOD = math.inf
override: ContextVar[Any] = ContextVar("multiop_backend", default=None)
_compiler: Any = None  # the loaded backend whose compiler traces Python itself
_is_tracing_python: Callable[[], bool] = bool  # whether it does so now, in this thread; the shortest way to ask


def active() -> Backend:
    """Return the module of the active backend."""
    if not is_overridden:
        return _backend
    # such a compiler cannot trace a ContextVar; the backend of what it compiles is its own by definition
    if _compiler is None and is_traced():
        _load_default()
    if _is_tracing_python():
        return _compiler
    found = override.get() or _backend
    if found is not _compiler and _compiler is not None and _compiler.compiler.is_compiling():  # in this thread
        return _compiler
    return found


def is_compiling() -> bool:
    """Say whether a compiler that traces Python itself is doing so."""
    return _compiler is not None and bool(_compiler.compiler.is_compiling())


def refuse_break() -> None:
    """Raise where such a compiler cannot trace what takes a function, and would be wrong without it."""
    if _compiler is not None and _compiler.compiler.is_compiling():
        _compiler.compiler.refuse_break()


def add_composite(op: Callable[..., Any]) -> None:
    """Have every backend that is loaded from now on hold a composite op, as it does its primitives."""
    _composites[op.__name__] = op


def composite_of(name: str) -> Callable[..., Any] | None:
    """Return the composite op of a name; `None` of a name that every backend must have."""
    return _composites.get(name)


def random_part(name: str) -> Any:
    """Return one of the active backend's `RandomParts`; `None` if it leaves that out."""
    return getattr(getattr(active() if is_overridden else _backend, "random", None), name, None)


def composite(op: F) -> F:
    """Let a backend compile `op` as one program, as where each eager step would be compiled separately."""

    @functools.wraps(op)
    def call(*args: Any, **kwargs: Any) -> Any:
        whole = getattr(active() if is_overridden else _backend, "composite", None)
        return op(*args, **kwargs) if whole is None else whole(op, args, kwargs)

    return call  # type: ignore[return-value]


def mark_recomputed(op: F) -> F:
    """Mark a composite op with one output, and of few operations: its derivative may compute them again."""
    op.is_recomputed = True  # type: ignore[attr-defined]
    return op


def traced(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a user's function in the form that the active backend's tracer needs: it may rewrite Python code."""
    rewrite = getattr(active(), "traced", None)
    return fun if rewrite is None else rewrite(fun)


def override_by(module: Any) -> Any:
    """Make `module` the backend of this thread or task; return the token that `restore` takes."""
    if _n_overrides != FOR_GOOD and module is not _backend:
        _count_override(FOR_GOOD)
    return override.set(module)


@hide_from_tracer
def _count_override(change: float) -> None:
    global is_overridden, _n_overrides
    with _counting:
        _n_overrides += change
        is_overridden = _n_overrides > 0


def restore(token: Any) -> None:
    """Undo one `override`."""
    override.reset(token)


def run_on(module: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function with `module` as the backend of this thread or task."""
    if active() is module:
        return function(*args, **kwargs)
    _count_override(1)
    token = override.set(module)
    try:
        return function(*args, **kwargs)
    finally:
        override.reset(token)
        _count_override(-1)


def set_default(name: str) -> None:
    """Make `name` the backend of every thread that has no override."""
    global _backend
    module = load(name)
    if module is not _backend and type(_backend) is not _Unloaded:
        _count_override(FOR_GOOD)
    _backend = module


def plugins() -> dict[str, Any]:
    """Return the third-party backends that are installed, by name."""
    import importlib.metadata  # a tenth of the time that `import multiop` would take

    return {point.name: point for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)}


def list_known() -> list[str]:
    """Return the names of all backends, installed or not."""
    return [*BUILT_IN, *(name for name in plugins() if name not in BUILT_IN)]


def is_installed(name: str) -> bool:
    """Say whether backend `name` can be imported here, without importing it."""
    return is_package(BUILT_IN[name][1]) if name in BUILT_IN else name in plugins()


def load(name: str) -> Any:
    """Import backend `name`, once, and return its module."""
    if not isinstance(name, str):
        raise errors.ArgumentTypeError(f"a backend is named by a string, got {name!r}")
    return _loaded[name] if name in _loaded else _load_now(name)


@hide_from_tracer
def _load_now(name: str) -> Any:
    with _loading:
        if name not in _loaded:  # no other thread has loaded it meanwhile
            _load(name)
    retrace()
    return _loaded[name]


def unknown_message(name: str) -> str:
    """Return the message about a backend that does not exist."""
    return (
        f"unknown backend {name!r}; known backends: {', '.join(list_known())}{suggestions.similar(name, list_known())}"
    )


@contextlib.contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Keep the garbage collector from looking through a framework's objects again and again while modules are made."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def _load(name: str) -> None:
    global _compiler, _is_tracing_python
    if name in BUILT_IN:
        module_name, requirement, command = BUILT_IN[name]
        if not is_package(requirement):
            raise errors.BackendError(
                f"backend {name!r} was asked for, but {requirement} is not installed; install it with: {command}"
            )
        with _collector_at_rest():
            prepare(name)
            module: Any = importlib.import_module(module_name)
    elif (point := plugins().get(name)) is not None:
        try:
            module = point.load()
        except Exception as error:
            raise errors.BackendError(
                f"backend {name!r} ({point.value}) failed to load: {type(error).__name__}: {error}"
            ) from error
    else:
        raise errors.BackendError(unknown_message(name))
    from multiop._loading import contract  # a twentieth of the time that `import multiop` would take

    if missing := contract.gaps(module):
        raise errors.BackendError(f"backend {name!r} does not fulfil the contract: {'; '.join(missing)}")
    for optional in ("composite", "traced"):  # asked for on each call, and a miss takes five times as long
        if not hasattr(module, optional):
            setattr(module, optional, None)
    lacks = getattr(module, "if_untested", "")
    if name in BUILT_IN and lacks is not None and versions.level(name, module.version) == "untested":
        warnings.warn(versions.untested_message(name, module.version) + lacks, stacklevel=2)
    settings.settle_x64()
    if settings.x64 and name not in BUILT_IN:  # if it is off, a framework's own switch is left as it is
        module.set_x64(True)
    if hasattr(module, "compiler"):
        _compiler, _is_tracing_python = module, module.compiler.is_tracing_python
        settings.settle_floatx()  # read now, because a compiler that traces Python cannot read the configuration file
    kernels.join(module, _composites, settings.uses_kernels())
    _loaded[name] = module


def loaded_backends() -> dict[str, Any]:
    """Return the backends loaded so far, by name."""
    return dict(_loaded)
