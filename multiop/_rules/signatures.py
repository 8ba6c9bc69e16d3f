"""What tells the programs of an op apart: its options. Tensors are the operands of a program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any


def split(args: Sequence[Any], kinds: Collection[type]) -> tuple[list[Any], list[Any]]:
    """Return the options among arguments, as entries of a key, and the tensors, which are of one of `kinds`.

    Raises:
        TypeError: An argument is neither a tensor nor a plain option.
    """
    key: list[Any] = []
    tensors: list[Any] = []
    for x in args:
        kind = type(x)
        if kind in kinds:
            key.append(_Hole)
            tensors.append(x)
        elif kind is float:
            key.append(x.hex())  # 0.0 is not -0.0
        elif kind in _PLAIN:
            key += (kind, x)  # 1 is not True
        elif kind is slice and {type(x.start), type(x.stop), type(x.step)} <= _BOUNDS:
            key += (kind, x.start, x.stop, x.step)
        elif kind is tuple or kind is list:
            inner, found = split(x, kinds)
            key += (kind, len(x), *inner)
            tensors += found
        else:
            raise TypeError("no plain option")
    return key, tensors


class _Hole:
    """The place of a tensor among arguments."""


_BOUNDS = {int, type(None)}
_PLAIN = {int, bool, str, type(None), type(Ellipsis)}


def of_tensors(op: Callable[..., Any], args: tuple[Any, ...], kinds: Collection[type]) -> Callable[..., Any]:
    """Return `op`, called with `args`, as a function of the tensors among them."""
    options = _hollow(args, kinds)  # which keeps no tensor alive

    def call(*tensors: Any) -> Any:
        return op(*_fill(options, iter(tensors)))

    return call


def _hollow(x: Any, kinds: Collection[type]) -> Any:
    if type(x) in (tuple, list):
        return type(x)([_hollow(one, kinds) for one in x])
    return _Hole if type(x) in kinds else x


def _fill(x: Any, tensors: Iterator[Any]) -> Any:
    if type(x) in (tuple, list):
        return type(x)([_fill(one, tensors) for one in x])
    return next(tensors) if x is _Hole else x
