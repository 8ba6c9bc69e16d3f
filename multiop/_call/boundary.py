"""The one error boundary: an exception that leaves an op names the op that the user called, and its arguments.

Each op is called through a function of `boundaries.py`, which the generator writes. Its `try` costs nothing unless an
error is raised, and where an op only passes its arguments on, or is a composite, it calls the backend itself.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

from multiop._call import boundaries, keras_symbols
from multiop._loading import registry

F = TypeVar("F", bound=Callable[..., Any])


def boundary(op: F) -> F:
    """Make every exception that leaves `op` name `op` and its arguments."""
    written: Any = inspect.unwrap(op)
    code, make = written.__code__, getattr(boundaries, op.__name__, None)
    called: Any
    called, n_decorators = make(op) if make else (None, 0)
    if called is None or not _is_current(called.__code__, code, op.__name__):
        raise ImportError(f"multiop/_call/boundaries.py is older than {op.__name__}; run: nox -s generate")
    # a traceback shows the `def` of the op: every instruction is on its line, and has no columns
    called.__code__ = called.__code__.replace(
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno + n_decorators,
        co_linetable=b"\xe8\x00" * (len(called.__code__.co_code) // 2),
    )
    called.__defaults__, called.__kwdefaults__ = written.__defaults__, written.__kwdefaults__
    keras_symbols.boundaries.add(called.__code__)
    if op.__name__ in boundaries.COMPOSITES:
        registry.add_composite(op)
    functools.update_wrapper(called, op)
    called.__name__ = op.__name__.removeprefix("op_")  # as in `multiop.ops`; pickles and errors have `__qualname__`
    return keras_symbols.save_as_ours(called)


def _is_current(made: CodeType, written: CodeType, name: str) -> bool:
    """Say whether a function takes what its op takes, and calls the backend itself only if the op does nothing else."""
    parameters = made.co_varnames[:-1]  # the last one is the error
    if (made.co_argcount, parameters) != (written.co_argcount, written.co_varnames[: len(parameters)]):
        return False
    if name not in made.co_names or name in boundaries.COMPOSITES:
        return True
    names = {*written.co_names} - _AROUND
    if name in boundaries.GUARDED:  # it calls the op where that does something else
        return {*made.co_names} - _AROUND <= names
    return {*made.co_names} - _AROUND == names and {*made.co_consts} >= {*written.co_consts[1:]}


_AROUND = {"active", "registry", "is_overridden", "_backend", "bool_flag", "recover", "Exception", "MultiopError"}
