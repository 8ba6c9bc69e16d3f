"""Numbers that were computed from a dtype, as the limits of the dtype that there is at run time."""

from __future__ import annotations

import contextlib
import contextvars
import math
import operator
import re
import sys
import threading
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

import multiop
from multiop.porting import _graph, _rows
from multiop.porting._graph import Call, DType, Expression, Infix, Limit, Node, Value

# `resolution` is a number that people write, too, as are those of 16 bits but for the largest: only what is asked for
_ALWAYS, _ASKED = ("min", "max", "eps", "tiny", "smallest_subnormal"), ("eps", "tiny", "resolution")
# what people compute of one, `None`: `min / 2`, `1 - eps`
_FORMS: dict[str, list[tuple[str, Any, Any]]] = {
    "max": [("*", None, factor) for factor in (0.5, 0.25, 0.7, -0.5, -0.7)],
    "eps": [("-", 1, None), ("-", None, 1), ("**", None, 0.5), *[("*", None, n) for n in (2, 4, 8, 10, 16, 100, 0.5)]],
}
_OPERATORS = {"*": operator.mul, "-": operator.sub, "**": operator.pow}
_INTEGERS = {"ops.where", "ops.full", "ops.full_like", "ops.maximum", "ops.minimum", "ops.clip"}
_asked: contextvars.ContextVar[Collection[str]]  # the limits that a model has asked for while it was traced
_asked = contextvars.ContextVar("asked", default=())
_ONE_AT_A_TIME = threading.RLock()  # so that each thread puts back what it found


@contextlib.contextmanager
def watch() -> Iterator[None]:
    """Take down which limits a model asks a framework for, in the thread that traces it."""
    asked: set[str] = set()
    _asked.set(asked)
    with _ONE_AT_A_TIME, contextlib.ExitStack() as after:
        modules: list[Any] = [sys.modules[name] for name in ("torch", "jax.numpy") if name in sys.modules]
        for module in modules:
            after.callback(setattr, module, "finfo", module.finfo)
            module.finfo = _Watched(module.finfo, asked, threading.get_ident())
        yield


class _Watched:
    """A `finfo`, or what it has returned, that takes down what one thread asks it for; others see it as it is."""

    def __init__(self, own: Any, asked: set[str], thread: int):
        self._own, self._asked, self._thread = own, asked, thread

    def __call__(self, *args: Any, **options: Any) -> Any:
        found = self._own(*args, **options)
        return _Watched(found, self._asked, self._thread) if threading.get_ident() == self._thread else found

    def __getattr__(self, name: str) -> Any:
        self._asked.add(name)
        return getattr(self._own, name)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, (self._own, _Watched))


def named(node: Node) -> Expression:
    """Return the expression of a statement, with limits of the dtypes in it for the numbers that they were."""
    parts = [*node.outputs, *_graph.walk(node.expression, inside=False)]
    dtypes = [part.dtype for part in parts if isinstance(part, Value)]
    dtypes += [part.name for part in parts if isinstance(part, DType)]

    def change(part: Expression) -> Expression:
        if not isinstance(part, (Call, Infix)):
            return part
        kinds = (float, int) if isinstance(part, Call) and part.function in _INTEGERS else (float,)
        unfolded: Any = _graph.unfold(part)
        return unfolded.fold([_limit(each, dtypes) if type(each) in kinds else each for each in unfolded.parts])

    return _graph.rebuild(node.expression, change, inside=False)


@np.errstate(over="ignore")
def _limit(number: Any, dtypes: Collection[str]) -> Expression:
    for dtype in dict.fromkeys(dtypes):
        if type(number) is int and dtype in ("int32", "int64"):
            function, info, names = "iinfo", multiop.iinfo(dtype), ("min", "max")
        elif type(number) is float and dtype in _rows.FLOATS:
            function, info = "finfo", multiop.finfo(dtype)
            names = (*_ALWAYS[: 2 if info.bits < 32 else None], *(name for name in _ASKED if name in _asked.get()))
        else:
            continue
        of = int if function == "iinfo" else np.dtype(dtype).type
        for name in names:  # readers write as few digits as a dtype needs
            bound, limit = getattr(info, name), Limit(function, DType(dtype, is_open=True), name)
            if of(number) == of(bound):
                return limit
            for sign, *sides in _FORMS.get(name, ()) if function == "finfo" else ():
                made = _OPERATORS[sign](*[bound if side is None else side for side in sides])
                if of(number) == of(made) and not (info.bits < 32 and name == "eps" and sign == "*"):
                    return Infix(sign, *[limit if side is None else side for side in sides])
            if function == "finfo" and info.bits >= 32 and bound > 0:
                log, told = math.log(bound), _graph.call("math.log", limit)
                if of(abs(number)) == of(abs(log)):
                    return told if number * log > 0 else Infix("*", told, -1)
                size = round(min(number / bound, 1025)) if name == "eps" and number > 0 else 0
                if 1 < size < 1025 and of(number) == of(bound * size):  # people write powers of 2, as 1 / 32768
                    return Infix("*", limit, size) if size & (size - 1) or name in _asked.get() else number
    dtype = next((dtype for dtype in dtypes if dtype in _rows.FLOATS), "")
    if dtype and -math.inf < number < -65504.0:  # a mask, which is -inf in float16
        return _graph.call("max", number, Limit("finfo", DType(dtype, is_open=True), "min"))
    return number


def written(source: str, dtypes: Collection[str]) -> list[str]:
    """Return the numbers in a source that are limits of a dtype, as text: another dtype has others."""
    numbers = set(re.findall(r"(?<![\w.])\d+\.\d*(?:e[+-]?\d+)?|(?<![\w.])\d+e[+-]?\d+", source))
    return sorted(text for text in numbers if not isinstance(_limit(float(text), dtypes), float))
