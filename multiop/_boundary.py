"""The one error boundary: an exception that leaves an op names the op that the user called, and its arguments.

Each op is called through a function with the op's own signature, which is compiled here. Its `try` costs nothing unless
an error is raised, and the extra call some 10 ns.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, TypeVar, overload

import numpy as np

from multiop import _registry, _symbolic, errors
from multiop._args import describe

F = TypeVar("F", bound=Callable[..., Any])


@overload
def boundary(op: F, /) -> F: ...
@overload
def boundary(*, runs_user_code: bool) -> Callable[[F], F]: ...
def boundary(op: Any = None, /, *, runs_user_code: bool = False) -> Any:
    """Make every exception that leaves `op` name `op` and its arguments.

    Args:
        op: The op.
        runs_user_code: Whether it calls the user's functions. An error that another op raises in there keeps the name
            of that op.
    """
    if op is None:
        return functools.partial(boundary, runs_user_code=runs_user_code)
    return functools.update_wrapper(_bind(op, runs_user_code), op)


def _bind(op: Any, runs_user_code: bool) -> Any:
    """Return the function that calls `op` inside the boundary."""
    written = inspect.unwrap(op)
    code = written.__code__
    n_named, flags = code.co_argcount + code.co_kwonlyargcount, code.co_flags & _VARIADIC
    parameters = code.co_varnames[: n_named + flags.bit_count()]
    kinds = (code.co_posonlyargcount, code.co_argcount, code.co_kwonlyargcount, flags)
    # the boundary of an op that only passes its arguments on, or is a composite, calls the backend directly
    is_dispatched = code.co_names == ("active", op.__name__) and code.co_code == _passed_on(*kinds).co_code
    if op.__module__.startswith("multiop.frontends.") and not (runs_user_code or _reads(code, op.__name__)):
        _registry.add_composite(op)
        is_dispatched = True
    bind = _boundary(*kinds, is_dispatched, runs_user_code)
    names = {_NAME: op.__name__} | {f"_{i}": parameter for i, parameter in enumerate(parameters)}
    line = code.co_firstlineno + (1 if written is op else 2)  # the line of the `def`, for tracebacks
    inner = next(constant for constant in bind.co_consts if isinstance(constant, CodeType))
    named = inner.replace(
        co_name=op.__name__,
        co_qualname=op.__name__,
        co_names=_renamed_all(inner.co_names, names),
        co_varnames=_renamed_all(inner.co_varnames, names),
        co_consts=_renamed_all(inner.co_consts, names),
        co_filename=code.co_filename,
        co_firstlineno=line,
    )
    bind = bind.replace(co_consts=tuple(named if constant is inner else constant for constant in bind.co_consts))
    called = FunctionType(bind, op.__globals__)(op, _registry.active, errors, explain, _symbolic, _of_python)
    _symbolic.boundaries.add(called.__code__)
    called.__defaults__, called.__kwdefaults__ = written.__defaults__, written.__kwdefaults__
    return called


def _reads(code: CodeType, name: str) -> bool:
    """Say whether code, or a function in it, reads a name: that of a primitive op from the active backend."""
    return name in code.co_names or any(_reads(part, name) for part in code.co_consts if isinstance(part, CodeType))


_NAME = "op_name"
_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _renamed_all(constants: Any, names: dict[str, str]) -> Any:
    """Return the constants of a function with the names that it was compiled with replaced by others."""
    return tuple(
        _renamed_all(x, names) if isinstance(x, tuple) else names.get(x, x) if isinstance(x, str) else x
        for x in constants
    )


@functools.cache
def _boundary(n_only: int, n: int, n_keywords: int, flags: int, is_dispatched: bool, runs_user_code: bool) -> CodeType:
    """Compile a function that makes boundaries for ops with these numbers of parameters of each kind."""
    takes, gives, arguments = _parameters(n_only, n, n_keywords, flags)
    called = f"active().{_NAME}" if is_dispatched else "op"
    # an exception that a user's function itself raises passes unchanged
    caught = "errors.MultiopError" if runs_user_code else "Exception"
    # arrays of ints where the op takes Python's; operands may be too many to name
    again = (
        f"   if (plain := of_python(op, {{{arguments}}})) is not None:\n"
        f"    try: return op(**plain)\n"
        f"    except {caught} as refused: error, refused.__suppress_context__ = refused, True\n"
    )
    return _compile(
        f"def bind(op, active, errors, explain, symbolic, of_python):\n"
        f" def {_NAME}({takes}):\n"
        f"  try: return {called}({gives})\n"
        f"  except {caught} as error:\n"
        f"{'' if n_only or flags & inspect.CO_VARARGS else again}"
        f"   if symbolic.takes({{{arguments}}}):\n"
        f"    try: return symbolic.call(op.__name__, {gives})\n"
        f"    except {caught} as refused: error, refused.__suppress_context__ = refused, True\n"
        f"   raise explain(error, op.__name__, {{{arguments}}}, {runs_user_code})\n"
        f" return {_NAME}\n"
    )


def _of_python(op: Any, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of a call that failed with Python's ints for NumPy's arrays of them, if an option is one."""
    if _registry.is_compiling():
        return None
    plain = {name: _ints(value) if name in _options(inspect.unwrap(op)) else value for name, value in arguments.items()}
    return None if all(plain[name] is value for name, value in arguments.items()) else plain


@functools.cache
def _options(op: Any) -> set[str]:
    """Return the names of the parameters of `op` that take ints: an axis, a shape, a number of entries."""
    parameters = inspect.signature(op).parameters.values()
    return {p.name for p in parameters if re.search(r"\b(int|Axis|Shape)\b", str(p.annotation))}


def _ints(value: Any) -> Any:
    """Return an array of ints or a static shape, also in tuples, as Python's ints and tuples; else `value` itself."""
    if type(value).__name__ == "TensorShape" and value.rank is not None:
        return tuple(value)
    if isinstance(value, (np.ndarray, np.integer)):
        return _tuples(value.tolist()) if value.dtype.kind in "iu" else value
    if isinstance(value, (tuple, list)):
        plain = tuple(map(_ints, value))
        return value if all(one is other for one, other in zip(plain, value, strict=True)) else plain
    return value


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@functools.cache
def _passed_on(n_only: int, n: int, n_keywords: int, flags: int) -> CodeType:
    """Compile a function that only passes its arguments on to the backend's function of the same name."""
    takes, gives, _ = _parameters(n_only, n, n_keywords, flags)
    return _compile(f"def {_NAME}({takes}): return active().{_NAME}({gives})")


def _parameters(n_only: int, n: int, n_keywords: int, flags: int) -> tuple[str, str, str]:
    """Return an op's parameters as source text: in its definition, in a call that passes them on, in a dict by name."""
    names = [f"_{i}" for i in range(n + n_keywords + flags.bit_count())]
    positional, keywords, rest = names[:n], names[n : n + n_keywords], iter(names[n + n_keywords :])
    args = [f"*{next(rest)}"] if flags & inspect.CO_VARARGS else []
    kwargs = [f"**{next(rest)}"] if flags & inspect.CO_VARKEYWORDS else []
    star = args or (["*"] if keywords else [])
    takes = [*positional[:n_only], *(["/"] if n_only else []), *positional[n_only:], *star, *keywords, *kwargs]
    gives = [*positional, *args, *(f"{name}={name}" for name in keywords), *kwargs]
    named = [f"{name!r}: {name}" for name in [*positional, *(name[1:] for name in args), *keywords]]
    return ", ".join(takes), ", ".join(gives), ", ".join([*named, *kwargs])


def _compile(source: str) -> CodeType:
    """Compile one function as if its whole source were on one line."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.expr, ast.excepthandler, ast.arg, ast.keyword)):
            node.lineno, node.end_lineno, node.col_offset, node.end_col_offset = 1, 1, 0, 0
    module = compile(tree, "<boundary>", "exec")
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))


def explain(error: Exception, op: str, arguments: dict[str, Any], runs_user_code: bool = False) -> Exception:
    """Return the exception to raise for `error`, which was raised in `op`, called with `arguments`.

    multiop's own errors name the op that the user called, and its arguments; a framework's complaint about an argument
    becomes an `ArgumentError`, the same class on every backend; anything else (out of memory) is the framework's own
    and only gains a note.
    """
    call = f"{op}({', '.join(f'{name}={describe(value)}' for name, value in arguments.items())})"
    if not isinstance(error, errors.MultiopError):
        explained = _of_framework(error, op, arguments)
        if explained is None:
            if not runs_user_code:
                _note(error, f"in {call}")
            return error
        explained.__cause__ = error
        error = explained
    elif error.op is not None and runs_user_code:  # an op inside the user's function has named itself
        return error
    identities = {name: id(value) for name, value in arguments.items()}
    text = error.args[0] if error.args else ""
    if error.op is not None:
        text, within = error._explained
        text = _renamed(text, within, identities)
    error.op, error._explained = op, (text, identities)
    error.args = (f"{op}: {text}\n  in {call}", *error.args[1:])
    return error


def _of_framework(error: Exception, op: str, arguments: dict[str, Any]) -> errors.MultiopError | None:
    """Return multiop's error for an error of the framework, or `None` if no argument is to blame."""
    backend = _registry.active()
    first_line = getattr(backend, "first_line", lambda error: str(error).strip().split("\n")[0])
    is_unsupported = getattr(backend, "is_unsupported", None)
    if is_unsupported is not None and is_unsupported(error):
        return errors.UnsupportedError(first_line(error))
    is_unknown_value = getattr(backend, "is_unknown_value", None)
    if is_unknown_value is not None and is_unknown_value(error) and not _is_of_rule(error):
        advice = _ADVICE.get(op, "compute it outside, and give options as numbers of Python")
        return errors.ArgumentError(f"a value that it needs is not known in compiled or mapped code; {advice}")
    is_passed = isinstance(error, backend.passed_errors) or _is_of_rule(error)
    if isinstance(error, backend.argument_errors) and not is_passed:
        return errors.ArgumentError(_misfit(op, arguments) or first_line(error))
    return None


_ADVICE = {  # where the size of the result depends on values
    "op_bincount": "use op_segment_sum with num_segments",
    "op_get_item": "use op_where instead of a mask",
    "op_nonzero": "use op_where with three arguments",
    "op_unique": "give size",
    "op_where": "give x1 and x2",
}
_PRODUCTS = ("op_matmul", "op_dot", "op_inner", "op_vdot", "op_tensordot")


def _misfit(op: str, arguments: dict[str, Any]) -> str | None:
    """Return the message for two operands whose shapes do not fit, since each framework words it differently."""
    if not {"x1", "x2"} <= arguments.keys() or _registry.is_compiling():
        return None
    try:
        shapes = [tuple(map(int, np.shape(arguments[name]))) for name in ("x1", "x2")]
    except Exception:  # nested lists of unequal lengths, or a size that is unknown while tracing
        return None
    if op in _PRODUCTS:
        return f"the shapes {shapes[0]} and {shapes[1]} do not fit a product"
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return f"the shapes {shapes[0]} and {shapes[1]} do not broadcast"
    return None


def _renamed(text: str, within: dict[str, int], arguments: dict[str, int]) -> str:
    """Return an inner op's message with the argument names of the op that the user called."""
    for name, identity in within.items():
        if arguments.get(name) == identity:
            continue
        others = [other for other, value in arguments.items() if value == identity]
        if len(others) == 1:
            text = re.sub(rf"(?<=')({name})(?=')|^({name})(?= (must|is|has|cannot|names) )", others[0], text)
    return text


def _note(error: Exception, note: str) -> None:
    """Leave a single note about a call: that of the op that the user called."""
    notes = getattr(error, "__notes__", [])
    notes[:] = [note for note in notes if not note.startswith("in op_")]
    error.add_note(note)


def _is_of_rule(error: Exception) -> bool:
    """Say whether a custom gradient's rule raised `error`; then no argument is to blame."""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name == "backward" and frame.f_globals.get("__name__") == "multiop.autodiff.custom_gradient":
            return True
        trace = trace.tb_next
    return False
