"""What a function closes over: the tensors that a rule holds, which autograd must save, and values by name."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import gc
import sys
import threading
import types

import torch

from multiop import errors
from multiop._rules.closures import PLAIN, VIEWS, Walk, attributes, carrying, entries_of, read

from .._internals import functorch, is_of_transform


class Hidden:
    """Holds what a walk from a rule must not look into."""

    def __init__(self, content):
        self.content = content


_PLAIN = (*PLAIN, torch.dtype, torch.device, Hidden)
_replay = threading.local()


def is_carrying():
    """Say whether a rule runs whose tensors have been replaced by those of a level of a transform."""
    return getattr(_replay, "depth", 0) > 0


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


def closed_over_places(box, outputs=(), is_recorded=False):
    """Return the tensors that the rule `box[0]` closes over, and the places that hold them.

    All of them where the call is recorded, to run on other tensors; else those that autograd or a transform may know.
    """
    kept = {id(y) for y in outputs}

    def is_residual(x):
        return is_recorded or x.grad_fn is not None or id(x) in kept or is_of_transform(x)

    walk = Walk(torch.Tensor, is_residual, _is_internal, _PLAIN)
    walk.enter(box, True)
    for place in walk.places:
        place.is_carried = is_recorded or any(is_of_transform(walk.tensors[k]) for k in place.numbers)
    return walk.tensors, walk.places


def _is_internal(value, name):
    return isinstance(value, torch.nn.Module) and name.startswith("_")  # such as its parameters, buffers and hooks


@contextlib.contextmanager
def with_tensors(box, found, carried):
    """Yield the rule with `carried` in the places that are to carry them; places it rebinds stay rebound.

    What belongs to a transform is only usable in its own thread, so no other thread can see the change.
    """
    _replay.depth = getattr(_replay, "depth", 0) + 1
    try:
        with carrying([place for place in found if place.is_carried], carried):
            yield box[0]
    finally:
        _replay.depth -= 1


@contextlib.contextmanager
def with_outputs(box, pairs):
    """Yield the rule with the second tensor of each of `pairs` in the place of the first, wherever that is held."""
    tensors, places = closed_over_places(box, [x for x, _ in pairs])
    outputs = {id(x): y for x, y in pairs}
    for place in places:
        place.is_carried = any(id(tensors[k]) in outputs for k in place.numbers)
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
            why = "it keeps a value computed from its upstream gradient, which in forward mode does not exist"
            raise errors.NonLinearRuleError.of(name, why)


def drain(found, held):
    """Clear the places that only the rule can see; return them, and the tensors of `held` in the other places."""
    own = [place for place in found if place.is_own]
    for place in own:
        place.put(None)
        place.content = None
    return own, [held[k] for place in found if not place.is_own for k in place.numbers]


def refill(drained, carried):
    """Put `carried` back into the places that `drain` cleared."""
    for place in drained:
        place.put(place.make(carried))


# Values by name

# pytest's assertions name its module, and its plugins hold all tests
_LIBRARIES = frozenset(("_pytest", "builtins", "multiop", "numpy", "optree", "torch")) | (
    sys.stdlib_module_names - {"__main__", "test"}
)


def reads_only(rule, known):
    """Say, where it is quick to tell, whether a rule reads only tensors whose ids are known, and libraries."""
    if type(rule) is not types.FunctionType or rule.__defaults__ or rule.__kwdefaults__:
        return False
    for cell in rule.__closure__ or ():
        try:
            if id(cell.cell_contents) not in known:
                return False
        except ValueError:  # not assigned yet
            continue
    for name in names_in(rule.__code__):
        value = rule.__globals__.get(name)
        if value is not None and (type(value) is not types.ModuleType or not _is_library(value.__name__)):
            return False
    return True


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
        return [(f"{name}[{key!r}]", entry) for key, entry in entries_of(value)]
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return [(f"{name}[{k}]", entry) for k, entry in enumerate(list(value))]
    if isinstance(value, functools.partial):
        every = value.func, *value.args, *value.keywords.values()
        return [(f"{name}[{k}]", entry) for k, entry in enumerate(every)]
    if isinstance(value, VIEWS):
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
    for holder, keys in attributes(value, _is_internal):
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
        for key, entry in entries_of(attributes)
        if not key.startswith("__") and not isinstance(entry, (types.FunctionType, *_ENDS))
    ]


def _read_or_none(holder, key):
    try:
        return read(holder, key)
    except (AttributeError, LookupError):  # not assigned yet
        return None


def _is_library(module):
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES


@functools.lru_cache(maxsize=512)
def names_in(code):
    """Return the names that `code`, or that of a function defined in it, may read from outside, each once."""
    codes = [code]
    for code in codes:  # the list grows during the loop
        codes.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return dict.fromkeys(name for code in codes for name in code.co_names)


def variables_of(function):
    """Return `(name, value)` for each outer variable that `function`, or a function defined in it, reads."""
    variables = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            variables.append((name, cell.cell_contents))
        except ValueError:  # not assigned yet
            continue
    if not _is_library(function.__globals__.get("__name__")):
        names = names_in(function.__code__)
        variables += [(name, function.__globals__[name]) for name in names if name in function.__globals__]
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
