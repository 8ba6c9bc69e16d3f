"""Settings reach a framework as soon as it is imported, and multiop itself imports none."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

_waiting: dict[str, Callable[[Any], None]] = {}  # framework -> what to call with its module


def when_imported(name: str, then: Callable[[Any], None]) -> None:
    """Call `then(module)` for a framework: now if it is imported, else when it is."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        then(module)
        return
    _waiting[name] = then
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


class _Finder:
    """The first finder of modules, while a framework is waited for: the other ones find it."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if name not in _waiting:
            return None
        finders: list[Any] = [finder for finder in sys.meta_path if finder is not _Finder]
        spec = next(filter(None, (f.find_spec(name, path, target) for f in finders if hasattr(f, "find_spec"))), None)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: Any) -> None:  # not before: who only asks for the spec imports nothing
            vars(loader).pop("exec_module", None)  # the loader is again what it was
            execute(module)
            if module.__name__ == name:
                _reach(name, module)

        loader.exec_module = exec_module
        return spec


def _reach(name: str, module: Any) -> None:
    then = _waiting.pop(name, None)
    if not _waiting:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(_Finder)
    if then is not None:
        then(module)


def is_jax_tracing() -> bool:
    """Say whether JAX, which is imported, is tracing a function in this thread; a new thread never is."""
    core: Any = importlib.import_module("jax.extend.core")
    state = getattr(core, "get_opaque_trace_state", None) or importlib.import_module("jax.core").get_opaque_trace_state
    ask = functools.partial(state, convention=None)  # JAX 0.5 wants that argument, which stands for nothing
    elsewhere: list[Any] = []
    thread = threading.Thread(target=lambda: elsewhere.append(ask()))
    thread.start()
    thread.join()
    return bool(ask() != elsewhere[0])
