"""Canonical arguments, and errors that name the op and the argument at fault. Nothing here needs a framework."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from multiop import _registry, errors
from multiop._types import Axis, Shape


def explain(error: Exception, op: str, /, **arguments: Any) -> Exception:
    """Return the error to raise for `error`, caught in `op` called with `arguments`.

    multiop's own errors gain the op's name and its arguments; a framework's complaint about an argument becomes an
    `ArgumentError`, the same class on every backend; anything else (out of memory, a tracer used as a Python bool) is
    the framework's own and only gains a note.
    """
    call = f"{op}({', '.join(f'{name}={describe(value)}' for name, value in arguments.items())})"
    if isinstance(error, errors.MultiopError):
        if error.op is None:
            error.op = op
            error.args = (f"{op}: {error.args[0] if error.args else ''}\n  in {call}", *error.args[1:])
        return error
    backend = _registry.active()
    if isinstance(error, backend.argument_errors) and not isinstance(error, backend.passed_errors):
        message = str(error).strip().split("\n")[0]
        explained = errors.ArgumentError(f"{op}: {message}\n  in {call}")
        explained.op = op
        explained.__cause__ = error
        return explained
    error.add_note(f"in {call}")
    return error


def describe(value: Any, depth: int = 0) -> str:
    """Return a short text for an argument: `float32[2, 3]` for a tensor, the value itself for a small option."""
    if isinstance(value, np.ndarray) and _registry.is_compiling():  # torch.compile cannot look into it
        return "a NumPy array"
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is not None and shape is not None:
        try:
            return f"{getattr(dtype, 'name', str(dtype).rpartition('.')[2])}[{', '.join(str(n) for n in shape)}]"
        except (TypeError, ValueError):  # a TensorFlow shape of unknown rank has no length
            return f"{dtype}[?]"
    if isinstance(value, (list, tuple)) and depth < 2:
        inside = ", ".join(describe(v, depth + 1) for v in value[:6]) + (", ..." if len(value) > 6 else "")
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def axes(axis: Axis, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Return `axis` as a tuple of distinct non-negative ints; `None` is every axis of `ndim` dimensions."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, (tuple, list)):
        found = tuple(single_axis(one, ndim, name) for one in axis)
        if len(set(found)) != len(found):
            raise errors.ArgumentError(f"{name} names a dimension twice: {tuple(axis)}")
        return found
    return (single_axis(axis, ndim, name),)


def single_axis(axis: Any, ndim: int, name: str = "axis") -> int:
    """Return `axis` as one non-negative int below `ndim`."""
    try:
        if isinstance(axis, (bool, np.bool_)):
            raise TypeError
        found = operator.index(axis)
    except TypeError:
        raise errors.ArgumentTypeError(f"{name} must be an int, got {axis!r}") from None
    if not -ndim <= found < ndim:
        raise errors.ArgumentError(f"{name} {found} is out of range for a tensor of {ndim} dimensions")
    return found + ndim if found < 0 else found


def permutation(axes_: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return `axes_`, a permutation of all of `ndim` dimensions, as non-negative ints."""
    found = axes(axes_, ndim, "axes")
    if len(found) != ndim:
        raise errors.ArgumentError(f"axes must name each of {ndim} dimensions once, got {axes_!r}")
    return found


def moved(source: Axis, destination: Axis, ndim: int) -> tuple[int, ...]:
    """Return the permutation that moves the dimensions `source` to `destination`, the others keeping their order."""
    source, destination = axes(source, ndim, "source axis"), axes(destination, ndim, "destination axis")
    if len(source) != len(destination):
        raise errors.ArgumentError(f"{len(source)} source axes cannot go to {len(destination)} destination axes")
    order = [dim for dim in range(ndim) if dim not in source]
    for position, dim in sorted(zip(destination, source, strict=True)):
        order.insert(position, dim)
    return tuple(order)


def two_axes(axis1: int, axis2: int, ndim: int) -> tuple[int, int]:
    """Return two different axes as non-negative ints."""
    found = single_axis(axis1, ndim, "axis1"), single_axis(axis2, ndim, "axis2")
    if found[0] == found[1]:
        raise errors.ArgumentError(f"axis1 and axis2 are both {axis1}")
    return found


def shifts(shift: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return one shift for each of `axes`."""
    found = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(found) != len(axes):
        raise errors.ArgumentError(f"{len(found)} shifts do not fit {len(axes)} axes")
    return tuple(operator.index(one) for one in found)


def pairs(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """Return how much to pad at the start and the end of each of `ndim` dimensions."""
    try:
        found = np.broadcast_to(np.asarray(pad_width), (ndim, 2))
    except ValueError:
        raise errors.ArgumentError(f"pad_width {pad_width!r} does not fit {ndim} dimensions") from None
    if found.dtype.kind not in "iu":
        raise errors.ArgumentTypeError(f"pad_width must hold ints, got {pad_width!r}")
    if (found < 0).any():
        raise errors.ArgumentError(f"pad_width must hold no negative number, got {pad_width!r}")
    return [(int(before), int(after)) for before, after in found]


def padded(size: int | None, pair: tuple[int, int], mode: str) -> np.ndarray[Any, Any]:
    """Return the index into a dimension that each entry of it has once it is padded."""
    if size is None:
        raise errors.ArgumentError(f"mode {mode!r} needs a dimension whose size is known")
    if size == 0:
        raise errors.ArgumentError(f"mode {mode!r} has nothing to repeat in an empty dimension")
    return np.pad(np.arange(size), pair, mode)  # type: ignore[call-overload]


def sequence(xs: Any) -> Any:
    """Return `xs` if it is a sequence of at least one tensor."""
    if not isinstance(xs, (tuple, list)) and not getattr(xs, "shape", ()):
        raise errors.ArgumentTypeError(f"expected a sequence of tensors, got {describe(xs)}")
    if len(xs) == 0:
        raise errors.ArgumentError("expected at least one tensor, got an empty sequence")
    return xs


def size(shape: Shape, name: str = "shape") -> tuple[Any, ...]:
    """Return the shape of a new tensor as a tuple without negative numbers; traced dimensions pass."""
    entries = _entries(shape, name)
    if any(isinstance(entry, int) and entry < 0 for entry in entries):
        raise errors.ArgumentError(f"{name} must hold no negative number, got {entries!r}")
    return entries


def shape(shape: Shape, name: str = "shape") -> tuple[Any, ...]:
    """Return `shape` as a tuple in which one entry may be -1; traced dimensions pass."""
    entries = _entries(shape, name)
    if sum(isinstance(entry, int) and entry < 0 for entry in entries) > 1 or any(
        isinstance(entry, int) and entry < -1 for entry in entries
    ):
        raise errors.ArgumentError(f"{name} must hold no negative number but one -1, got {entries!r}")
    return entries


def _entries(shape: Shape, name: str) -> tuple[Any, ...]:
    if hasattr(shape, "__index__") and not getattr(shape, "shape", ()):
        return (operator.index(shape),)
    try:
        entries = tuple(shape)  # type: ignore[arg-type]
    except TypeError:
        raise errors.ArgumentTypeError(f"{name} must be an int or a sequence of ints, got {shape!r}") from None
    for entry in entries:
        if isinstance(entry, (bool, float, str)) or entry is None:
            raise errors.ArgumentTypeError(f"{name} must hold ints, got {entry!r} in {entries!r}")
    return entries


def choice(value: Any, accepted: tuple[Any, ...], name: str) -> Any:
    """Return `value` if it is one of `accepted`."""
    if value not in accepted:
        raise errors.ArgumentError(f"{name} must be one of {', '.join(map(repr, accepted))}; got {value!r}")
    return value


def function(value: Any, name: str) -> Any:
    """Return `value` if it can be called."""
    if not callable(value):
        raise errors.ArgumentTypeError(f"{name} must be callable, got {describe(value)}")
    return value


def bool_flag(value: Any, name: str) -> bool:
    """Return `value` if it is a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise errors.ArgumentTypeError(f"{name} must be a bool, got {value!r}")
    return bool(value)


def real_number(value: Any, name: str) -> float:
    """Return `value` if it is a real number of Python or NumPy."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise errors.ArgumentTypeError(f"{name} must be a real number, got {describe(value)}")
    return float(value)


def count(value: Any, name: str) -> int:
    """Return `value`, a number of entries, as an int that is not negative."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        raise errors.ArgumentTypeError(f"{name} must be an int, got {describe(value)}") from None
    if found < 0:
        raise errors.ArgumentError(f"{name} must not be negative, got {found}")
    return found


def not_negative(value: Any, name: str) -> float:
    """Return `value` if it is a real number of Python or NumPy, and not negative."""
    found = real_number(value, name)
    if not found >= 0:
        raise errors.ArgumentError(f"{name} must not be negative, got {found}")
    return found
