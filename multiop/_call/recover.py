"""What an op that failed does before it raises: it tries again, in another form or as an operation of Keras."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multiop._call import keras_symbols
from multiop._call.explain import explain
from multiop._call.frames import shorten
from multiop._loading import registry
from multiop._values import args
from multiop.errors import ArgumentError, MultiopError


def recover(error: Exception, op: Callable[..., Any], arguments: dict[str, Any], runs_user_code: bool = False) -> Any:
    """Return the result of an op that failed, if it was given what it takes in another form; else raise the error.

    Args:
        error: What was raised.
        op: The op, without its boundary.
        arguments: Its arguments by name.
        runs_user_code: Whether it calls the user's functions. An error that another op raises in there keeps the name
            of that op, and one that a user's function itself raises passes unchanged.
    """
    caught = MultiopError if runs_user_code else Exception
    if not registry.is_compiling():
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # from below the boundary on
        for name, value in arguments.items():
            if args.is_endless(value):
                nested = ArgumentError(f"{name} is a list that contains itself, or is nested too deeply")
                raise explain(nested, op.__name__, arguments) from None
        again = getattr(registry.active(), "compute_again", None)
        if again is not None and not isinstance(error, MultiopError):
            try:
                if (found := again(error, lambda: _call(op, op, arguments))) is not None:
                    return found[0]
            except MultiopError as refused:
                error, refused.__suppress_context__ = refused, True
        plain = _of_python(op, arguments)
        if plain is not None:
            try:
                return _call(op, op, plain)
            except caught as refused:
                error, refused.__suppress_context__ = refused, True
        if keras_symbols.takes(arguments):
            try:
                return _call(functools.partial(keras_symbols.call, op.__name__), op, arguments)
            except caught as refused:
                error, refused.__suppress_context__ = refused, True
    explained = explain(error, op.__name__, arguments, runs_user_code)
    if runs_user_code or isinstance(explained, MultiopError):
        shorten(explained, depth=2)
    raise explained


def _call(fun: Callable[..., Any], op: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call `fun` with the arguments of `op`."""
    code, by_name = inspect.unwrap(op).__code__, dict(arguments)
    positional = [by_name.pop(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & inspect.CO_VARARGS:
        positional += by_name.pop(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
    return fun(*positional, **by_name)


def _of_python(op: Any, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of a call that failed with tuples of Python's ints for other sequences of them, if any."""
    plain = {name: _ints(value) if name in _options(inspect.unwrap(op)) else value for name, value in arguments.items()}
    return None if all(plain[name] is value for name, value in arguments.items()) else plain


@functools.cache
def _options(op: Any) -> set[str]:
    """Return the names of the parameters of `op` that take ints: an axis, a shape, a number of entries."""
    parameters = inspect.signature(op).parameters.values()
    return {p.name for p in parameters if re.search(r"\b(int|Axis|Shape)\b", str(p.annotation))}


def _ints(value: Any) -> Any:
    """Return a sequence of ints, also in tuples, as Python's ints and tuples; else `value` itself."""
    if type(value).__name__ == "TensorShape" and value.rank is not None:
        return tuple(value)
    if isinstance(value, (np.ndarray, np.integer)):
        if value.dtype == "uint32" and value.shape == (2,):  # a key of multiop.random
            return value
        return _tuples(value.tolist()) if value.dtype.kind in "iu" else value
    if isinstance(value, (tuple, list)):
        plain = tuple(map(_ints, value))
        return value if all(one is other for one, other in zip(plain, value, strict=True)) else plain
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        return tuple(map(_ints, value))
    return value


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
