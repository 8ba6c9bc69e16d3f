"""The places that hold the tensors which a function closes over: where they can be found, and replaced."""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import optree

PLAIN: tuple[type, ...] = (
    type(None), bool, int, float, complex, str, bytes, type, types.ModuleType, types.BuiltinFunctionType,
)  # fmt: skip
VIEWS: tuple[type, ...] = type({}.values()), type({}.items()), types.MappingProxyType
_WITH_ENTRIES = dict, list, collections.deque


class Place:
    """A place that holds a tensor, or an immutable value with tensors in it: entry, attribute, cell or defaults.

    Attributes:
        numbers: The index of each tensor in it among those of the walk.
        is_own: Whether only the function sees this place.
        is_carried: For a backend to say whether the tensors in it are to be replaced.
    """

    __slots__ = ("content", "holder", "is_carried", "is_own", "key", "template")

    def __init__(self, holder: Any, key: Any, template: _Template, content: Any, is_own: bool) -> None:
        self.holder, self.key, self.template, self.content, self.is_own = holder, key, template, content, is_own
        self.is_carried = False

    @property
    def numbers(self) -> list[int]:
        return self.template.numbers()

    def get(self) -> Any:
        """Return what the place holds now."""
        if isinstance(self.holder, dict):
            return self.holder.get(self.key)
        try:
            return read(self.holder, self.key)
        except (AttributeError, LookupError, ValueError):  # it no longer exists
            return None

    def make(self, carried: Sequence[Any]) -> Any:
        """Return the content with `carried` in place of the tensors of the walk."""
        return self.template.make(carried)

    def put(self, content: Any) -> None:
        """Have the place hold `content`."""
        if isinstance(self.holder, _WITH_ENTRIES):
            self.holder[self.key] = content
        else:
            object.__setattr__(self.holder, self.key, content)  # works for frozen classes too


def read(holder: Any, key: Any) -> Any:
    """Return an entry of a dict, list or deque, or an attribute of anything else."""
    return holder[key] if isinstance(holder, _WITH_ENTRIES) else getattr(holder, key)


def entries_of(mapping: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Return the entries of a dict; a thread, or the garbage collector in a weak one, may change it meanwhile."""
    return [(key, entry) for key in list(mapping) if (entry := mapping.get(key, _GONE)) is not _GONE]


_GONE = object()


class _Template:
    """A value without its tensors; `make` fills them in."""

    __slots__ = ()

    def numbers(self) -> list[int]:
        raise NotImplementedError

    def make(self, carried: Sequence[Any]) -> Any:
        raise NotImplementedError


class _Tensor(_Template):
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def numbers(self) -> list[int]:
        return [self.number]

    def make(self, carried: Sequence[Any]) -> Any:
        return carried[self.number]


class _State(_Template):
    """A tensor that is not to be carried."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def numbers(self) -> list[int]:
        return []

    def make(self, carried: Sequence[Any]) -> Any:
        return self.value


class _Immutable(_Template):
    """A tuple, a set or a `functools.partial`."""

    __slots__ = ("build", "parts")

    def __init__(self, build: Any, parts: list[Any]) -> None:
        self.build, self.parts = build, parts

    def numbers(self) -> list[int]:
        return [number for part in self.parts if isinstance(part, _Template) for number in part.numbers()]

    def make(self, carried: Sequence[Any]) -> Any:
        return self.build([part.make(carried) if isinstance(part, _Template) else part for part in self.parts])


def _immutable(value: Any) -> tuple[list[Any], Any] | None:
    """Return the parts of a tuple, set or partial, and a function that rebuilds it; `None` for anything else."""
    cls = type(value)
    if isinstance(value, tuple):
        return list(value), cls if optree.is_structseq(value) else functools.partial(tuple.__new__, cls)
    if cls in (set, frozenset):
        return list(value), cls
    if isinstance(value, functools.partial):
        n, names = len(value.args), list(value.keywords)

        def build(parts: list[Any]) -> Any:
            made = cls(parts[0], *parts[1 : n + 1], **dict(zip(names, parts[n + 1 :], strict=True)))
            made.__dict__.update(attributes)
            return made

        attributes = dict(vars(value))
        return [value.func, *value.args, *value.keywords.values()], build
    return None


@contextlib.contextmanager
def carrying(places: Collection[Place], tensors: Sequence[Any]) -> Iterator[None]:
    """Let places hold the tensors of a walk in another form; places that are bound anew stay so."""
    changed = []
    try:
        for place in places:
            if place.get() is place.content:
                content = place.make(tensors)
                place.put(content)
                changed.append((place, content))
        yield
    finally:
        for place, content in reversed(changed):
            if place.get() is content:  # otherwise somebody wrote to it
                place.put(place.content)


def _count_holders(box: list[Any]) -> int:
    """Return how many references `box[0]` has, including those of the box and of this call."""
    return sys.getrefcount(box[0])


_ALONE = _count_holders([object()])  # measured, because it depends on the version of Python


class Walk:
    """The walk from a function to its tensors; reference counts tell which objects only the function holds.

    Attributes:
        tensors: The tensors, each once.
        places: The places that hold them.
    """

    def __init__(
        self,
        tensor_class: type,
        is_residual: Callable[[Any], bool],
        is_internal: Callable[[Any, str], bool] = lambda value, name: False,
        plain: tuple[type, ...] = PLAIN,
    ) -> None:
        """Prepare a walk.

        Args:
            tensor_class: The class of tensors.
            is_residual: Says whether a tensor counts that an object holds which others share: it may be state.
            is_internal: Says whether an attribute of an object is not to be looked at.
            plain: The classes of values that hold no tensor: the walk ends there.
        """
        self.tensors: list[Any] = []
        self.places: list[Place] = []
        self._tensor_class, self._plain = tensor_class, plain
        self._is_residual, self._is_internal = is_residual, is_internal
        self._numbers: dict[int, int] = {}  # id of a tensor -> its index in `tensors`
        self._seen: dict[int, Any] = {}  # by id; kept alive, so that no id is reused

    def enter(self, holder: Any, is_own: bool, keys: Collection[Any] | None = None, is_state: bool = False) -> None:
        """Look at the entries of a dict, list or deque, or at the attributes `keys` of anything else."""
        if keys is None:
            keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            try:
                box = [read(holder, key)]
            except (AttributeError, LookupError, ValueError):  # not assigned yet
                continue
            self._look(holder, key, box, is_own, is_state)

    def _look(self, holder: Any, key: Any, box: list[Any], is_own: bool, is_state: bool) -> None:
        template = self._take(box, is_own and _count_holders(box) <= _ALONE + 1, is_state)
        if template is not None:
            self.places.append(Place(holder, key, template, box[0], is_own))

    def _take(self, box: list[Any], is_own: bool, is_state: bool) -> _Template | None:
        """Return a template of `box[0]` if it is a tensor, or immutable and holds tensors; otherwise walk into it."""
        value = box[0]
        if isinstance(value, self._tensor_class):
            if is_state and not self._is_residual(value):
                return _State(value)
            if id(value) not in self._numbers:
                self._numbers[id(value)] = len(self.tensors)
                self.tensors.append(value)
            return _Tensor(self._numbers[id(value)])
        if isinstance(value, self._plain):
            return None
        if (found := _immutable(value)) is not None:
            parts, build = found
            taken = [self._take([part], False, is_state) for part in parts]
            if any(template is not None for template in taken):
                pairs = zip(parts, taken, strict=True)
                return _Immutable(build, [part if template is None else template for part, template in pairs])
            return None
        if id(value) not in self._seen:
            self._seen[id(value)] = value
            self._look_into(value, is_own, is_state)
        return None

    def _look_into(self, value: Any, is_own: bool, is_state: bool) -> None:
        if isinstance(value, types.FunctionType):
            closure = value.__closure__ or ()
            for k in range(len(closure)):
                cell = [closure[k]]
                is_sole = is_own and _count_holders(cell) <= _ALONE + 1
                if id(cell[0]) not in self._seen:
                    self._seen[id(cell[0])] = cell[0]
                    self.enter(cell[0], is_sole, ["cell_contents"], is_state)
            if value.__defaults__:
                self.enter(value, is_own, ["__defaults__"], is_state)
            if value.__kwdefaults__:
                self.enter(value.__kwdefaults__, is_own, None, is_state)
        elif isinstance(value, types.MethodType):
            self._take([value.__self__], is_own and _count_holders([value.__self__]) <= _ALONE + 1, is_state)
        elif isinstance(value, _WITH_ENTRIES):
            self.enter(value, is_own, None, is_state)
        elif isinstance(value, VIEWS):
            self._take(gc.get_referents(value)[:1], False, is_state)
        elif is_own or not is_state or callable(value):  # the walk goes one level into a shared object, and no further
            is_state = is_state or not is_own
            for holder, keys in attributes(value, self._is_internal):
                self.enter(holder, is_own, keys, is_state)


def attributes(value: Any, is_internal: Callable[[Any, str], bool]) -> list[tuple[Any, list[str]]]:
    """Return the holders of an object's attributes and their names: its dict, and the object itself for slots."""
    found: list[tuple[Any, list[str]]] = []
    if isinstance(entries := getattr(value, "__dict__", None), dict) and entries:
        found.append((entries, [name for name in list(entries) if not is_internal(value, name)]))
    cls: Any = type(value)
    if slots := _slots(cls):
        found.append((value, slots))
    return found


@functools.lru_cache(maxsize=512)
def _slots(cls: type) -> list[str]:
    return [
        name
        for base in cls.__mro__
        if "__slots__" in vars(base)
        for name, entry in entries_of(vars(base))
        if isinstance(entry, types.MemberDescriptorType)
    ]
