"""What a function closes over: the tensors that a rule holds, which autograd must save, and values by name."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import gc
import sys
import types

import optree
import torch

from multiop import errors

from ._internals import functorch, is_of_transform

_PLAIN = (
    type(None), bool, int, float, complex, str, bytes, type, types.ModuleType, types.BuiltinFunctionType, torch.dtype,
    torch.device,
)  # fmt: skip
_VIEWS = type({}.values()), type({}.items()), types.MappingProxyType


def closed_over_tensors(box, outputs=()):
    """Return the tensors that the rule `box[0]` closes over, each once.

    They are found in closure cells, in the defaults and closures of functions reached from there, in containers, in
    `functools.partial` and in the attributes of objects. An object that the rule shares with others may be state that
    is legitimately changed in place: only its tensors with a history are taken, and those among `outputs`.
    """
    rule = box[0]
    if type(rule) is types.FunctionType and not rule.__defaults__ and not rule.__kwdefaults__:
        found = []
        for cell in rule.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            if isinstance(content, torch.Tensor):
                found.append(content)
            elif type(content) is dict and all(isinstance(entry, torch.Tensor) for entry in content.values()):
                found += content.values()
            elif not isinstance(content, _PLAIN):
                break
        else:
            return found if len(found) < 2 else list({id(x): x for x in found}.values())
    rule = content = cell = None  # these references would count as holders
    return closed_over_places(box, outputs)[0]


def closed_over_places(box, outputs=()):
    """Return the tensors that the rule `box[0]` closes over, and the places that hold them."""
    walk = _Walk(outputs)
    walk.enter(box, True)
    return walk.tensors, walk.places


@contextlib.contextmanager
def with_tensors(box, found, carried):
    """Yield the rule with `carried` in the places that are to carry them; places it rebinds stay rebound.

    What belongs to a transform is only usable in its own thread, so no other thread can see the change.
    """
    changed = []
    try:
        for place in found:
            if place.is_carried and place.get() is place.content:
                content = place.template.make(carried)
                place.put(content)
                changed.append((place, content))
        yield box[0]
    finally:
        for place, content in reversed(changed):
            if place.get() is content:  # otherwise the rule wrote to it
                place.put(place.content)


@contextlib.contextmanager
def with_outputs(box, pairs):
    """Yield the rule with the second tensor of each of `pairs` in the place of the first, wherever that is held."""
    tensors, places = closed_over_places(box, [x for x, _ in pairs])
    outputs = {id(x): y for x, y in pairs}
    for place in places:
        place.is_carried = any(id(tensors[k]) in outputs for k in place.template.numbers())
    with with_tensors(box, places, [outputs.get(id(x), x) for x in tensors]) as rule:
        yield rule


@contextlib.contextmanager
def refuse_stored_upstream(found, name):
    """Refuse a rule that stores a value computed from its upstream: in forward mode there is no such value."""
    before = [place.get() for place in found]
    level = functorch.maybe_current_level() or 0
    yield
    for place, content in zip(found, before, strict=True):
        kept = place.get()
        if kept is content or not isinstance(kept, torch.Tensor):
            continue
        if functorch.is_functorch_wrapped_tensor(kept) and not 0 < functorch.maybe_get_level(kept) <= level:  # dead
            place.put(content)
            raise errors.NonLinearRuleError(
                f"the gradient function of {name} keeps a value computed from its upstream gradient, which in forward "
                f"mode does not exist; use reverse mode"
            )


def drain(found, held):
    """Clear the places that only the rule can see; return them, and the tensors of `held` in the other places."""
    own = [place for place in found if place.is_own]
    for place in own:
        place.put(None)
        place.content = None
    return own, [held[k] for place in found if not place.is_own for k in place.template.numbers()]


def refill(drained, carried):
    """Put `carried` back into the places that `drain` cleared."""
    for place in drained:
        place.put(place.template.make(carried))


class _Place:
    """A place that holds a tensor, or an immutable value with tensors in it: entry, attribute, cell or defaults."""

    __slots__ = ("content", "holder", "is_carried", "is_own", "key", "template")

    def get(self):
        if isinstance(self.holder, dict):
            return self.holder.get(self.key)
        try:
            return _read(self.holder, self.key)
        except (AttributeError, LookupError, ValueError):  # it no longer exists
            return None

    def put(self, content):
        if isinstance(self.holder, _WITH_ENTRIES):
            self.holder[self.key] = content
        else:
            object.__setattr__(self.holder, self.key, content)  # works for frozen classes too


_WITH_ENTRIES = dict, list, collections.deque


def _read(holder, key):
    return holder[key] if isinstance(holder, _WITH_ENTRIES) else getattr(holder, key)


class _Template:
    """A value without its tensors; `make` fills them in."""

    __slots__ = ()


class _Tensor(_Template):
    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number

    def numbers(self):
        return [self.number]

    def make(self, carried):
        return carried[self.number]


class _Immutable(_Template):
    """A tuple, a set or a `functools.partial`."""

    __slots__ = ("build", "parts")

    def __init__(self, build, parts):
        self.build, self.parts = build, parts

    def numbers(self):
        return [number for part in self.parts if isinstance(part, _Template) for number in part.numbers()]

    def make(self, carried):
        return self.build([part.make(carried) if isinstance(part, _Template) else part for part in self.parts])


def _immutable(value):
    """Return the parts of a tuple, set or partial, and a function that rebuilds it; `None` for anything else."""
    cls = type(value)
    if isinstance(value, tuple):
        return list(value), cls if optree.is_structseq(value) else functools.partial(tuple.__new__, cls)
    if cls in (set, frozenset):
        return list(value), cls
    if isinstance(value, functools.partial):
        n, names = len(value.args), list(value.keywords)

        def build(parts):
            made = cls(parts[0], *parts[1 : n + 1], **dict(zip(names, parts[n + 1 :], strict=True)))
            made.__dict__.update(attributes)
            return made

        attributes = dict(vars(value))
        return [value.func, *value.args, *value.keywords.values()], build
    return None


def _count_holders(box):
    """Return how many references `box[0]` has, including those of the box and of this call."""
    return sys.getrefcount(box[0])


_ALONE = _count_holders([object()])  # measured, because it depends on the version of Python


class _Walk:
    """The walk from a rule to its tensors; reference counts tell which objects only the rule holds."""

    def __init__(self, outputs):
        self.tensors, self.places = [], []
        self._outputs = {id(y) for y in outputs}
        self._numbers = {}  # id of a tensor -> its index in `tensors`
        self._seen = {}  # by id; kept alive, so that no id is reused

    def enter(self, holder, is_own, keys=None, is_state=False):
        """Look at the entries of a dict, list or deque, or at the attributes `keys` of anything else."""
        if keys is None:
            keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            try:
                box = [_read(holder, key)]
            except (AttributeError, LookupError, ValueError):  # not assigned yet
                continue
            self._look(holder, key, box, is_own, is_state)

    def _look(self, holder, key, box, is_own, is_state):
        template = self._take(box, is_own and _count_holders(box) <= _ALONE + 1, is_state)
        if isinstance(template, _Template):
            place = _Place()
            place.holder, place.key, place.template, place.content = holder, key, template, box[0]
            place.is_own = is_own
            place.is_carried = any(is_of_transform(self.tensors[k]) for k in template.numbers())
            self.places.append(place)

    def _take(self, box, is_own, is_state):
        """Return a template of `box[0]` if it is a tensor, or immutable and holds tensors; otherwise walk into it."""
        value = box[0]
        if isinstance(value, torch.Tensor):
            if is_state and not (value.grad_fn or id(value) in self._outputs or is_of_transform(value)):
                return _Immutable(None, [])  # nothing to carry
            if id(value) not in self._numbers:
                self._numbers[id(value)] = len(self.tensors)
                self.tensors.append(value)
            return _Tensor(self._numbers[id(value)])
        if isinstance(value, _PLAIN):
            return None
        if (found := _immutable(value)) is not None:
            parts, build = found
            taken = [self._take([part], False, is_state) for part in parts]
            if any(isinstance(part, _Template) for part in taken):
                pairs = zip(parts, taken, strict=True)
                return _Immutable(build, [part if template is None else template for part, template in pairs])
            return None
        if id(value) not in self._seen:
            self._seen[id(value)] = value
            self._look_into(value, is_own, is_state)
        return None

    def _look_into(self, value, is_own, is_state):
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
        elif isinstance(value, _VIEWS):
            self._take(gc.get_referents(value)[:1], False, is_state)
        elif is_own or not is_state or callable(value):  # the walk goes one level into a shared object, and no further
            is_state = is_state or not is_own
            for holder, keys in _attributes(value):
                self.enter(holder, is_own, keys, is_state)


def _attributes(value):
    """Return the holders of an object's attributes and their names: its dict, and the object itself for slots."""
    found = []
    if isinstance(attributes := getattr(value, "__dict__", None), dict) and attributes:
        found.append((attributes, [name for name in attributes if not _is_internal(value, name)]))
    if slots := _slots(type(value)):
        found.append((value, slots))
    return found


def _is_internal(value, name):
    return isinstance(value, torch.nn.Module) and name.startswith("_")  # such as its parameters, buffers and hooks


@functools.lru_cache(maxsize=512)
def _slots(cls):
    return [
        name
        for base in cls.__mro__
        if "__slots__" in vars(base)
        for name, entry in vars(base).items()
        if isinstance(entry, types.MemberDescriptorType)
    ]


# Values by name

# pytest's assertions name its module, and its plugins hold all tests
_LIBRARIES = frozenset(("_pytest", "builtins", "multiop", "numpy", "optree", "torch")) | (
    sys.stdlib_module_names - {"__main__", "test"}
)


def reachable(function):
    """Return `(name, tensor)` for every tensor reachable from the closure, globals and defaults of `function`."""
    found, seen = [], {}
    stack = [("", function)]
    while stack:
        name, value = stack.pop()
        if isinstance(value, torch.Tensor):
            found.append((name, value))
        elif id(value) not in seen and not isinstance(value, _ENDS):
            seen[id(value)] = value  # kept alive, so that no id is reused
            stack += reversed(_children(name, value))
    return found


_ENDS = tuple(set(_PLAIN) - {type, types.ModuleType})


def _children(name, value):
    """Return `(name, value)` for each object that `value` holds."""
    if isinstance(value, types.FunctionType):
        return variables_of(value)
    if isinstance(value, types.MethodType):
        return [(name, value.__func__), ("self", value.__self__)]
    if isinstance(value, (dict, types.MappingProxyType)):
        return [(f"{name}[{key!r}]", entry) for key, entry in list(value.items())]
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return [(f"{name}[{k}]", entry) for k, entry in enumerate(list(value))]
    if isinstance(value, functools.partial):
        every = value.func, *value.args, *value.keywords.values()
        return [(f"{name}[{k}]", entry) for k, entry in enumerate(every)]
    if isinstance(value, _VIEWS):
        return [(name, gc.get_referents(value)[0])]
    if isinstance(value, contextvars.ContextVar):
        return [(f"{name}.get()", value.get(None))]
    if isinstance(value, types.ModuleType):
        return []  # `variables_of` lists the attributes that are read
    if isinstance(value, type):
        return [] if _is_library(value.__module__) else _entries(name, vars(value))
    found = []
    if isinstance(value, torch.nn.Module):
        found += [(f"{name}.{inner}", x) for inner, x in (*value.named_parameters(), *value.named_buffers())]
    for holder, keys in _attributes(value):
        found += [(f"{name}.{key}", _read_or_none(holder, key)) for key in keys]
    for cls in type(value).__mro__:
        if not _is_library(cls.__module__):
            found += _entries(name, vars(cls))
            if "__call__" in vars(cls):
                found.append((name, vars(cls)["__call__"]))
    return found


def _entries(name, attributes):
    """Return `(name, value)` for the attributes of a class; methods are not followed."""
    return [
        (f"{name}.{key}", entry)
        for key, entry in list(attributes.items())
        if not key.startswith("__") and not isinstance(entry, (types.FunctionType, *_ENDS))
    ]


def _read_or_none(holder, key):
    try:
        return _read(holder, key)
    except (AttributeError, LookupError):  # not assigned yet
        return None


def _is_library(module):
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES


def variables_of(function):
    """Return `(name, value)` for each outer variable that `function`, or a function defined in it, reads."""
    variables = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            variables.append((name, cell.cell_contents))
        except ValueError:  # not assigned yet
            continue
    if not _is_library(function.__globals__.get("__name__")):
        codes = [function.__code__]
        for code in codes:  # the list grows during the loop
            codes.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
        names = dict.fromkeys(name for code in codes for name in code.co_names)
        variables.extend((name, function.__globals__[name]) for name in names if name in function.__globals__)
        modules = [(name, value) for name, value in variables if isinstance(value, types.ModuleType)]
        for name, module in modules:
            if not _is_library(module.__name__):
                read = [inner for inner in names if inner in vars(module)]
                variables.extend((f"{name}.{inner}", vars(module)[inner]) for inner in read)
    if function.__defaults__:
        variables.append(("defaults", function.__defaults__))
    if function.__kwdefaults__:
        variables.append(("defaults", function.__kwdefaults__))
    return variables
