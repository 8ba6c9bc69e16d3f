"""Translations that a user registers: one function per operation of a framework, a row as the readers' own are."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import multiop
from multiop import errors
from multiop.porting import _graph
from multiop.porting._graph import Apply, Call, Dim, DType, Expression, Infix, Item, Value
from multiop.porting._rows import Row, Untranslated

_Function = TypeVar("_Function", bound=Callable[..., Any])
_FRAMEWORKS = ("torch", "jax", "tensorflow")
_TENSORS = (Value, Call, Infix, Item, Apply)
_rows: dict[tuple[str, str], Row] = {}


def converter(operation: str, framework: str, *, replace: bool = False) -> Callable[[_Function], _Function]:
    """Register what an operation of a framework is in multiop, for `trace`.

    The function that is decorated gets the operands and the options of the operation under their names in the
    framework, those that it takes: on PyTorch the names of the operation's schema, on JAX the operands in order and the
    parameters of the primitive, on TensorFlow the names of the inputs (`x` for a single one) and attributes. Operands
    have a `shape`, in which an open size is no int, and a `dtype`, and may be numbers where the model has constants. If
    the function takes `out`, it gets the shape and dtype of the result, or of each. It comes before multiop's own
    translation, and its gradient is that of the ops that it calls.

    Args:
        operation: The name of the operation: on PyTorch `"namespace::name"`, also with the name of an overload,
            `"namespace::name.overload"`; on JAX that of the primitive; on TensorFlow the type of the graph's operation.
        framework: `"torch"`, `"jax"` or `"tensorflow"`.
        replace: Whether the function may replace one that is registered.

    Returns:
        A decorator. The function must return what `call` returns, an operand, or a tuple of these, one for each result;
        or raise `NotImplementedError` for options that it does not support.

    Raises:
        ArgumentError: The framework is not known, or the operation has a converter.
        ArgumentTypeError: What is decorated is not a function.

    Example:
        >>> from multiop import porting
        >>> @porting.converter("shop::swish", "torch")
        ... def swish(x, beta):
        ...     gate = porting.call("ops.sigmoid", porting.call("ops.multiply", x, beta))
        ...     return porting.call("ops.multiply", x, gate)
    """
    if framework not in _FRAMEWORKS:
        raise errors.ArgumentError(f"converter: framework must be one of {', '.join(_FRAMEWORKS)}, got {framework!r}")
    if not isinstance(operation, str):
        raise errors.ArgumentTypeError(f"converter: operation must be a name, got a {type(operation).__name__}")
    if framework == "torch" and "::" not in operation:
        raise errors.ArgumentError(
            f"converter: an operation of PyTorch is called namespace::name, such as aten::relu, got {operation!r}"
        )

    def register(function: _Function) -> _Function:
        if not callable(function):
            raise errors.ArgumentTypeError(
                f"converter: {operation} needs a function, got a {type(function).__name__}; "
                f'write @porting.converter("{operation}", "{framework}") above one'
            )
        known = _rows.get((framework, operation))
        if known is not None and not replace:
            raise errors.ArgumentError(
                f"converter: {operation} of {framework} has a converter, {_place(known)}; replace=True replaces it"
            )
        _rows[framework, operation] = _check_results(operation, function)
        return function

    return register


def call(op: str, /, *args: Any, **kwargs: Any) -> Call:
    """Return a call of an op, for a converter: it is written into the source of the port.

    Args:
        op: The name of the op as in the source, such as `"ops.sigmoid"` or `"ops.linalg.inv"`.
        *args: What the op takes: operands, other calls, numbers, names of dtypes, and tuples and lists of these.
        **kwargs: The same by name.

    Returns:
        The call, which stands for its result.

    Raises:
        ArgumentError: There is no such op, or it does not take these arguments.
        ArgumentTypeError: An argument cannot be written into source.

    Example:
        >>> from multiop import porting
        >>> porting.call("ops.zeros", (2, 3)).function
        'ops.zeros'
    """
    home: Any = multiop
    parts = op.split(".")
    for part in parts:
        home = getattr(home, part, None)
    if parts[0] != "ops" or not callable(home):
        raise errors.ArgumentError(f"call: there is no op {op!r}; ops are called as in the source, such as ops.sigmoid")
    try:
        inspect.signature(home).bind(*args, **kwargs)
    except TypeError as error:
        raise errors.ArgumentError(f"call: {op}: {error}") from None
    for argument in (*args, *kwargs.values()):
        for part in _graph.walk(argument, inside=False):
            is_inner = isinstance(part, (tuple, list, slice, *_TENSORS))
            if not is_inner and part is not Ellipsis and not isinstance(part, (Dim, DType)) and not _is_literal(part):
                raise errors.ArgumentTypeError(f"call: {op} gets a {type(part).__name__}, which has no source")
    return Call(op, args, tuple(kwargs.items()))


def _is_literal(part: Any) -> bool:
    return part is None or type(part) in (bool, int, float, complex, str)


def find(framework: str, *operations: str) -> Row | None:
    """Return the converter of the first of some operations that has one."""
    return next((_rows[framework, name] for name in operations if (framework, name) in _rows), None)


def is_converter(row: Row) -> bool:
    """Say whether a row is a user's: it has to take every option, for no one knows which change nothing."""
    return row in _rows.values()


def _check_results(operation: str, function: Callable[..., Any]) -> Row:
    """Return a converter that checks what it returns; it takes `out` whether or not the function does."""
    parameters = inspect.signature(function).parameters
    takes_out = "out" in parameters or any(each.kind == each.VAR_KEYWORD for each in parameters.values())

    @functools.wraps(function)
    def row(*args: Any, out: Any, **kwargs: Any) -> Expression:
        try:
            result = function(*args, **kwargs | ({"out": out} if takes_out else {}))
        except NotImplementedError as error:
            raise Untranslated(str(error)) from error
        return _check(operation, function, result, out)

    if "out" not in parameters:
        out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY)
        order = sorted((*parameters.values(), out), key=lambda parameter: parameter.kind)
        row.__signature__ = inspect.Signature(order)  # type: ignore[attr-defined]
    return row


def _check(operation: str, function: Callable[..., Any], result: Any, out: Any) -> Expression:
    name = f"the converter of {operation}, {_place(function)},"
    wanted = "it must return what porting.call returns, or an operand"
    results = out if isinstance(out, (tuple, list)) else [out]
    if any(part is skeleton for part in _graph.walk(result) for skeleton in results if skeleton is not None):
        raise errors.ArgumentError(f"{name} computes with out, which has a shape and a dtype, and no content")
    if isinstance(result, _TENSORS):
        return result
    if not isinstance(out, (tuple, list)) or not isinstance(result, (tuple, list)):
        raise errors.ArgumentTypeError(f"{name} returned {_describe(result)}: {wanted}")
    if len(result) != len(out):
        raise errors.ArgumentError(f"{name} returned {len(result)} results: the operation has {len(out)}")
    for part, skeleton in zip(result, out, strict=True):
        if skeleton is not None and not isinstance(part, _TENSORS):
            raise errors.ArgumentTypeError(f"{name} returned {_describe(part)} among its results: {wanted}")
    return tuple(result)


def _describe(result: Any) -> str:
    return "None" if result is None else f"a {type(result).__name__}"


def _place(function: Any) -> str:
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"{getattr(function, '__qualname__', function)}{where}"
