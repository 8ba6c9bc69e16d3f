"""What the rows of the three readers have in common: a row says what one operation of a framework is in multiop.

A row takes the operands and the options of an operation under their names, those that it supports, and returns an
expression, or a tuple of one for each result. Some names are special: `out` is what the operation returns (`Value`s
without content, for their shapes and dtypes), `emit` adds a statement in front and returns its results, and `made`, on
JAX, returns the expression that computed a tensor. With an option that its row does not take, an operation has no
translation.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from multiop.porting._graph import Dim, DType, Expression, Infix, Item, Value, call

Row: TypeAlias = Callable[..., Expression]
FLOATS = ("float16", "bfloat16", "float32", "float64")


class Untranslated(Exception):
    """What stands in the way of a translation, in a few words."""


def spellings(text: str) -> dict[str, str]:
    """Return the names of a framework, and what each is called here, from `"theirs=ours …"`."""
    return {theirs: ours for theirs, _, ours in (word.partition("=") for word in text.split())}


def words(text: str) -> set[str]:
    """Return the words of a text."""
    return set(text.split())


# expressions that rows share


def is_number(x: Expression) -> bool:
    """Say whether an expression is a Python number."""
    return isinstance(x, (bool, int, float, complex)) and not isinstance(x, Value)


def cast(x: Expression, dtype: str) -> Expression:
    """Return `x` in a dtype; nothing happens to a tensor that has it."""
    return x if isinstance(x, Value) and x.dtype == dtype else call("ops.cast", x, DType(dtype))


def sizes(shape: Sequence[Any]) -> tuple[Any, ...]:
    """Return a shape for a reshape: the one dimension that is open as -1."""
    if sum(isinstance(size, Dim) for size in shape) == 1 and 0 not in shape:
        return tuple(-1 if isinstance(size, Dim) else size for size in shape)
    return tuple(shape)


def size_text(size: Any) -> str:
    """Return the text of a size as an operand."""
    return size.text if isinstance(size, Dim) else str(size)


def short(option: Sequence[Any]) -> Any:
    """Write an option that is the same for each dimension of space as one."""
    return option[0] if len(set(option)) == 1 else tuple(option)


def single(parts: Sequence[Any]) -> Any:
    """Return what stands for some tensors: one as itself, several as a tuple, none as `None`."""
    return None if not parts else parts[0] if len(parts) == 1 else tuple(parts)


def ends(parts: Sequence[Any]) -> tuple[Any, ...]:
    """Return where parts of an axis end that stand beside each other, but for the last one."""
    sums: list[Any] = []
    for part in parts[:-1]:
        sums.append(add_sizes(sums[-1] if sums else 0, part))
    return tuple(sums)


def split(x: Value, sizes: Sequence[Any], axis: int) -> Expression:
    """Return the parts of some sizes along an axis."""
    if len(sizes) == 1:
        return (x,)
    return call("ops.split", x, len(sizes) if len(set(sizes)) == 1 else ends(sizes), axis=axis)


def add_sizes(*sizes: Any) -> Any:
    """Return the sum of sizes."""
    known = sum(size for size in sizes if not isinstance(size, Dim))
    opened = [size for size in sizes if isinstance(size, Dim)]
    if not opened:
        return known
    text = " + ".join([*(size.text for size in opened), *([str(known)] if known else [])])
    return Dim(text, tuple(dict.fromkeys(symbol for size in opened for symbol in size.symbols)))


def unary(op: str) -> Row:
    """Make the row of an op of one tensor."""
    return lambda x: call(f"ops.{op}", x)


def binary(op: str) -> Row:
    """Make the row of an op of two tensors."""
    return lambda x, y: call(f"ops.{op}", x, y)


def truncated_quotient(x: Expression, y: Expression) -> Expression:
    """Return the quotient of integers, rounded towards zero."""
    is_tensor, sign = isinstance(y, Value), call("ops.sign", x)
    if is_tensor or y < 0:
        sign = Infix("*", sign, call("ops.sign", y) if is_tensor else -1)
    return Infix("*", call("ops.floor_divide", call("ops.abs", x), call("ops.abs", y) if is_tensor else abs(y)), sign)


def polygamma(a: Expression, x: Expression) -> Expression:
    """Return the polygamma function of an order that is a whole number."""
    if not is_number(a) or a != int(a):
        raise Untranslated("of an order that is computed")
    return call("ops.polygamma", int(a), x)


def pad_by(x: Expression, widths: Sequence[Any], value: Any = 0) -> Expression:
    """Return `x` with entries of one number around it."""
    if not any(side for pair in widths for side in pair):
        return x
    is_plain = not isinstance(value, Value) and not value
    return call("ops.pad", x, widths) if is_plain else call("ops.pad", x, widths, constant_values=value)


def line(start: Expression, stop: Expression, step: Expression, dtype: str) -> Expression:
    """Return the numbers from one to another, written as Python's `range`."""
    args = (stop,) if start == 0 and step == 1 else (start, stop) if step == 1 else (start, stop, step)
    return call("ops.arange", *args, dtype=DType(dtype))


def part(x: Value, key: Sequence[Any]) -> Expression:
    """Return `x[key]`, without slices of everything at the end."""
    key = list(key)
    while key and key[-1] == slice(None):
        key.pop()
    return Item(x, tuple(key)) if key else x


# what readers share


def special(row: Row, **given: Any) -> dict[str, Any]:
    """Return those of the special arguments that a row takes."""
    parameters = inspect.signature(row).parameters
    return {name: value for name, value in given.items() if name in parameters}


def takes_all(row: Row) -> bool:
    """Say whether a row takes any option."""
    return any(each.kind == each.VAR_KEYWORD for each in inspect.signature(row).parameters.values())


def as_python(value: Any, own: Callable[[Any], str | None], reason: str = "") -> str:
    """Return a value as an expression of Python.

    Args:
        value: The value.
        own: Returns the text of what is not a literal of Python; `None` for what it does not know.
        reason: What is raised for a value that has no text.

    Raises:
        Untranslated: It has none.
    """
    text = own(value)
    if text is not None:
        return text
    if isinstance(value, (tuple, list)):
        inner = ", ".join(as_python(part, own, reason) for part in value)
        return f"({inner}{',' * (len(value) == 1)})" if type(value) is tuple else f"[{inner}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    raise Untranslated(reason)


def block_replaced(x: Value, places: list[Expression], update: Value) -> Expression:
    """Return a tensor with a block replaced that begins at some places, which are in range."""
    if all(isinstance(place, int) for place in places) and not any(isinstance(size, Dim) for size in update.shape):
        triples = zip(places, x.shape, update.shape, strict=True)
        key = tuple(slice(None) if count == size else slice(low, low + count) for low, size, count in triples)
        return call("ops.set_item", x, key, update)
    start = call("ops.expand_dims", places[0], 0) if len(places) == 1 else call("ops.stack", places)
    return call("ops.slice_update", x, start, update)
