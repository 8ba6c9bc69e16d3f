"""What NumPy, SciPy and Python ask an array for: one that is differentiated answers by the op of that name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from multiop import errors
from multiop._call import numpy_functions
from multiop._loading import registry
from multiop._values import host

SPELLED = {"AxisConcatenator": "r_"}


def refused(function: str, name: str, way: str = "") -> errors.UnsupportedError:
    """Return the error for a function of NumPy that would lose the record."""
    has_op = name != "cond" and numpy_functions.op_of(name)
    which = f"multiop.op_{numpy_functions.NAMES.get(name, name)}" if has_op else "one of those in docs/ops.md"
    return errors.UnsupportedError(
        f"{function} of an array that is differentiated: use an op of multiop, {which}, or take op_stop_gradient of "
        f"it first, where its value is meant as a constant{way}"
    )


def refused_conversion() -> errors.UnsupportedError:
    """Return the error for what only takes arrays of NumPy, by the name of the function that asks for one."""
    frame: Any = inspect.currentframe()
    frame, names = frame.f_back.f_back, []
    while frame is not None and (module := frame.f_globals.get("__name__", "")).startswith(("numpy", "scipy")):
        name = frame.f_code.co_name if module[0] == "s" else frame.f_code.co_qualname.partition(".")[0]
        if not name.startswith(("_", "wrap", "asarray", "asanyarray")):
            names.append(f"polynomial's {name}" if module.startswith("numpy.polynomial") else SPELLED.get(name, name))
        frame, package = frame.f_back, "scipy's " if module[0] == "s" else "np."
    name = next(filter(numpy_functions.op_of, reversed(names)), names[-1] if names else "stack")
    way = "; SciPy's functions and matrices, and methods of arrays, take none either: write np.dot(a, x), not a.dot(x)"
    return refused(f"{package}{name}", name) if names else refused("np.asarray", name, way)


def refuse_operators(xs: Iterable[Any]) -> None:
    """Raise an error for an array of a class whose operators mean something else, as `*` does for `np.matrix`."""
    for x in xs:
        if is_subclass(x) and not isinstance(x, np.ma.MaskedArray):  # which conversion refuses
            own = type(x)
            if own.__mul__ is not np.ndarray.__mul__ or own.__array_ufunc__ is not np.ndarray.__array_ufunc__:
                raise errors.ArgumentTypeError(
                    f"{own.__name__} has operators of its own, which an array that is differentiated does not follow: "
                    f"give np.asarray of it"
                )


def is_subclass(x: Any) -> bool:
    return isinstance(x, np.ndarray) and type(x) is not np.ndarray


class ArrayProtocols:
    """The protocols of an array that is recorded; a backend's class gives the record, and its ops by name."""

    __hash__ = object.__hash__
    __pandas_priority__ = 5000  # its operators come before those of a Series or DataFrame beside it
    ops: Any
    array: Any
    is_differentiated: Callable[[Any], bool]  # says whether a gradient is being taken of an operand, or one in a list
    locked: Callable[[Any], Any]  # returns operands as plain arrays that nobody can write to
    number: Callable[[str], Any]  # returns the array for a conversion to one number, if that may drop its gradient

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self.is_differentiated(self):
            raise refused_conversion()
        return np.array(self.array, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute a function of NumPy by the op of its name."""
        is_live = self.is_differentiated(self) or self.is_differentiated(inputs)
        if not is_live and method != "at":  # it writes
            if "out" in options:
                options["out"] = self.locked(options["out"])
            return getattr(ufunc, method)(*self.locked(inputs), **options)
        try:
            found = numpy_functions.called_by_ufunc(self.ops, ufunc, method, inputs, options)
        except errors.ArgumentTypeError:
            if any(map(is_of_other_run, inputs)):
                return NotImplemented
            raise
        if found is NotImplemented:
            way = "; `y += x` and `out=` write into an array, which cannot record: write y = y + x"
            function = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            name = host.name_of_ufunc(ufunc) if method == "__call__" else function
            raise refused(f"np.{function}", name, way if "out" in options else "")
        return found

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        is_live = self.is_differentiated(self) or self.is_differentiated([args, list(kwargs.values())])
        if not is_live or function.__name__ in numpy_functions.FACTS:
            return function(*self.locked(args), **{name: self.locked(x) for name, x in kwargs.items()})
        refuse_operators(args)
        found = numpy_functions.called_by_op(function, args, kwargs)
        if found is NotImplemented:
            raise refused(f"np.{function.__name__}", function.__name__)
        return found

    def __getattr__(self, name: str) -> Any:
        """Return what an array has: of one that is differentiated, the method by the op of its name."""
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a tensor has no attribute {name!r}")
        if not self.is_differentiated(self):
            return getattr(self.locked(self), name)
        found = numpy_functions.method_of(self, name)
        if found is None:
            raise AttributeError(str(refused(f"ndarray.{name}", name)))
        return found

    @property
    def T(self) -> Any:  # noqa: N802  the name that arrays have
        return self.ops.transpose(self, None)

    def __repr__(self) -> str:
        return repr(self.array)

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        return self.ops.get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise errors.UnsupportedError("an array that is recorded cannot be written to: use multiop.op_set_item")

    def __float__(self) -> float:
        return float(self.number("float"))

    def __complex__(self) -> complex:
        return complex(self.number("complex"))

    def __int__(self) -> int:  # and what has no slope, as Python rounds: an int
        return int(self.array)

    __trunc__ = __int__

    def __floor__(self) -> int:
        return math.floor(self.array)

    def __ceil__(self) -> int:
        return math.ceil(self.array)

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self.array[()]) if ndigits is None else self.ops.round(self, ndigits)

    def __format__(self, spec: str) -> str:
        return format(self.array[()], spec)  # of one number, the number

    def __deepcopy__(self, memo: Any) -> Any:
        return self  # it is not written to, and a copy would have a record of its own

    def __index__(self) -> int:
        return int(self.array.__index__())

    def __bool__(self) -> bool:
        return bool(self.array)

    def __pos__(self) -> Any:
        return self

    def __divmod__(self, y: Any) -> Any:
        return self // y, self % y

    def __rdivmod__(self, y: Any) -> Any:
        return y // self, y % self


def is_of_other_run(x: Any) -> bool:
    """Say whether an operand is a tensor of a run that finds a pattern: its class computes, then."""
    return isinstance(x, registry.active().Tensor) and not isinstance(x, (ArrayProtocols, np.ndarray, np.generic))


def operator_of(name: str) -> Any:
    def operate(x: Any, y: Any) -> Any:
        try:
            return getattr(x.ops, name)(x, y)
        except errors.ArgumentTypeError:
            if is_of_other_run(y):
                return NotImplemented
            raise

    return operate


for _operator, _name in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "mod",
    "pow": "power", "matmul": "matmul", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal",
}.items():  # fmt: skip
    setattr(ArrayProtocols, f"__{_operator}__", operator_of(_name))
    setattr(ArrayProtocols, f"__r{_operator}__", lambda x, y, name=_name: getattr(x.ops, name)(y, x))
for _operator, _name in {"neg": "negative", "abs": "abs"}.items():
    setattr(ArrayProtocols, f"__{_operator}__", lambda x, name=_name: getattr(x.ops, name)(x))
