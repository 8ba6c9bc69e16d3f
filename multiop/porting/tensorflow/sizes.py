"""Open sizes that a model's own Python compares: TensorFlow gives it `None` for them, which equals no number."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

import tensorflow as tf

from multiop import errors
from multiop.porting import _hosts


class _Comparison(NamedTuple):
    size: int
    other: Any
    result: bool
    place: str


class Compared:
    """What a model compares with sizes that are open: it is traced once more, with those of the example."""

    def __init__(self) -> None:
        self.unknown: set[tuple[CodeType, int, int, int]] = set()  # where in the user's code `None` was read
        self.comparisons: list[_Comparison] = []
        self.again = False

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Note where the user's code is given `None`; once more, give it numbers there that tell what they meet."""
        kind = tf.TensorShape
        item, equal, as_list = kind.__getitem__, kind.__eq__, kind.as_list

        def compare(shape: Any, other: Any) -> Any:
            result = equal(shape, other)
            known = None not in (shape.rank, result) and result is not NotImplemented
            other = kind(other) if known else None
            if other is None or other.rank is None:
                return result
            return self._seen(as_list(shape), 1) == self._seen(as_list(other), 2)

        with _hosts.replacing() as replace:
            for name, listed in (("as_list", list), ("__iter__", iter)):
                of = vars(kind)[name]
                replace(kind, name, lambda shape, of=of, listed=listed: listed(self._seen(list(of(shape)))))
            replace(kind, "__getitem__", lambda shape, key: self._seen([item(shape, key)])[0])
            replace(kind, "num_elements", lambda shape, of=kind.num_elements: self._seen([of(shape)])[0])
            replace(kind, "__eq__", compare)
            yield

    def _seen(self, sizes: list[Any], side: int = 0) -> list[Any]:
        frame = _own_frame() if self.again or None in sizes else None
        if frame is None:
            return sizes
        keys = [(frame.f_code, frame.f_lasti, side, number) for number in range(len(sizes))]
        if not self.again:
            self.unknown.update(key for key, size in zip(keys, sizes, strict=True) if size is None)
            return sizes
        is_open = [key in self.unknown and type(size) is int for key, size in zip(keys, sizes, strict=True)]
        return [_Size(size, self) if opened else size for size, opened in zip(sizes, is_open, strict=True)]

    def guards(self, symbols: dict[str, int], kind: str, trace: Callable[[], Any], named: bool) -> list[str]:
        """Return what sizes have to fulfil so that each comparison is the one that was traced.

        Args:
            symbols: The open sizes, and what they are in the example.
            kind: The name of the model.
            trace: Traces it with the sizes of the example.
            named: Whether the caller gave the sizes their names.

        Raises:
            TranslationError: With the sizes of the example it is another one, and the sizes have names.
            ValueError: And they have none.
        """
        if self.unknown:
            self.again = True
            try:
                with self.noted(), tf.Graph().as_default():  # in another graph, no function is taken from the cache
                    trace()
            except RuntimeError:  # a model that computes eagerly while it is traced
                self.comparisons.clear()
                with self.noted():
                    trace()
        guards: list[str] = []
        for size, other, result, place in self.comparisons:
            names = [name for name, length in symbols.items() if length == size]
            others = [name for name, length in symbols.items() if length == other]
            if not names or result is not isinstance(other, _Size):  # `None` equals `None` alone
                which = " or ".join(names) or f"{size}, which is computed from an open one,"
                words = f"the size {which} is to stay open, and {kind} fixes it to {size}, at {place}"
                raise errors.TranslationError(words) if named else ValueError(words)
            if not result:
                guards += [f"{name} != {other}" for name in names]
            else:
                guards += [f"{names[0]} == {name}" for name in dict.fromkeys(names + others) if name != names[0]]
        return guards


class _Size(int):
    """A size that tells what a user's code compares it with; to look it up, or to ask whether it is 0, is to fix it."""

    compared: Compared

    def __new__(cls, size: int, compared: Compared) -> _Size:
        self = super().__new__(cls, size)
        self.compared = compared
        return self

    def __hash__(self) -> int:
        self._note(self.real, True)
        return int.__hash__(self)

    def __bool__(self) -> bool:
        self._note(self.real, True)
        return int.__bool__(self)

    def __eq__(self, other: object) -> bool:
        result = int.__eq__(self, other)  # type: ignore[arg-type]
        if isinstance(other, int):
            self._note(other, result)
        return result

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def _note(self, other: int, result: bool) -> None:
        frame = _own_frame()
        if frame is not None:
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            self.compared.comparisons.append(_Comparison(int(self), other, result, place))


def _own_frame() -> FrameType | None:
    """Return the frame that called what is here; `None` if it is not the user's."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame if frame is not None and _hosts.is_own(frame.f_code.co_filename) else None
