"""What a function closes over: take out a rule's tensors, which autograd is to carry; find values by name."""

from __future__ import annotations

import functools
import itertools
import types

import optree
import torch

from multiop import _tree

_PLAIN = (
    type(None), bool, int, float, complex, str, bytes, type, types.ModuleType, types.BuiltinFunctionType, torch.dtype
)  # fmt: skip


def lift(rule):
    """Return the tensors that `rule` closes over, and a template: `lower(template, tensors)` is the rule around others.

    Tensors are found in closure cells, in the defaults and the closures of functions reached from there, in pytrees, in
    `functools.partial` and in the attributes of an object whose method the rule is.
    """
    if type(rule) is types.FunctionType and (found := _take_closure(rule)) is not None:
        return found
    tensors = []
    return tensors, _take(rule, tensors, {})


def lower(template, tensors):
    """Return the rule of `template`, around `tensors`."""
    return template.make(tensors, {}) if isinstance(template, _Template) else template


class _Template:
    """What is left of a value once its tensors are out; `make` fills them in."""

    __slots__ = ()


class _Tensor(_Template):
    __slots__ = ("place",)

    def __init__(self, place):
        self.place = place

    def make(self, tensors, made):
        return tensors[self.place]


class _Dict(_Template):
    __slots__ = ("places",)

    def __init__(self, places):
        self.places = places

    def make(self, tensors, made):
        return {key: tensors[place] for key, place in self.places.items()}


class _Container(_Template):
    __slots__ = ("leaves", "structure")

    def make(self, tensors, made):
        return _tree.unflatten(self.structure, [lower_in(leaf, tensors, made) for leaf in self.leaves])


class _Partial(_Template):
    __slots__ = ("args", "function", "keywords")

    def make(self, tensors, made):
        args = [lower_in(value, tensors, made) for value in self.args]
        keywords = {name: lower_in(value, tensors, made) for name, value in self.keywords.items()}
        return functools.partial(lower_in(self.function, tensors, made), *args, **keywords)


class _Method(_Template):
    __slots__ = ("function", "owner")

    def make(self, tensors, made):
        return types.MethodType(self.function, lower_in(self.owner, tensors, made))


class _Object(_Template):
    __slots__ = ("attributes", "cls")

    def make(self, tensors, made):
        if self not in made:
            made[self] = copy = self.cls.__new__(self.cls)
            copy.__dict__.update({name: lower_in(value, tensors, made) for name, value in self.attributes.items()})
        return made[self]


class _Cell(_Template):
    __slots__ = ("content",)

    def make(self, tensors, made):
        if self not in made:
            made[self] = types.CellType()  # first: a recursive function finds itself in it
            made[self].cell_contents = lower_in(self.content, tensors, made)
        return made[self]


class _Function(_Template):
    __slots__ = ("attributes", "cells", "code", "defaults", "globals", "keyword_defaults", "names")

    def make(self, tensors, made):
        if self not in made:
            cells = tuple([lower_in(cell, tensors, made) for cell in self.cells])
            if self in made:  # one of the cells led back here
                return made[self]
            made[self] = function = types.FunctionType(self.code, self.globals, self.names[0], None, cells)
            function.__qualname__ = self.names[1]
            function.__defaults__ = lower_in(self.defaults, tensors, made)
            function.__kwdefaults__ = lower_in(self.keyword_defaults, tensors, made)
            function.__dict__.update(self.attributes)
        return made[self]


class _Closure(_Template):
    """A `_Function` as most rules are: no defaults, and each cell holds a tensor or a dict of them, or is kept."""

    __slots__ = ("cells", "function")

    def make(self, tensors, made):
        code, variables, names, attributes = self.function
        cells = [
            cell if type(cell) is types.CellType else types.CellType(cell.make(tensors, {})) for cell in self.cells
        ]
        function = types.FunctionType(code, variables, names[0], None, tuple(cells))
        function.__qualname__ = names[1]
        if attributes:
            function.__dict__.update(attributes)
        return function


def lower_in(value, tensors, made):
    """Return `value`, filled in if it is a template; `made` keeps what is shared shared."""
    return value.make(tensors, made) if isinstance(value, _Template) else value


def _take(value, tensors, seen):
    """Return a template of `value` with its tensors appended to `tensors`, or `value` itself where it holds none."""
    if isinstance(value, torch.Tensor):
        if id(value) not in seen:
            seen[id(value)] = _Tensor(len(tensors))
            tensors.append(value)
        return seen[id(value)]
    if isinstance(value, _PLAIN):
        return value
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, types.FunctionType):
        return _take_function(value, tensors, seen)
    if isinstance(value, functools.partial):
        taken = _Partial()
        taken.function = _take(value.func, tensors, seen)
        taken.args = [_take(arg, tensors, seen) for arg in value.args]
        taken.keywords = {name: _take(arg, tensors, seen) for name, arg in value.keywords.items()}
        found = (taken.function, *taken.args, *taken.keywords.values())
    elif isinstance(value, types.MethodType):
        taken = _Method()
        taken.function, taken.owner = value.__func__, _take_object(value.__self__, tensors, seen)
        found = (taken.owner,)
    elif optree.is_structseq(value) or not optree.tree_is_leaf(value, none_is_leaf=True, namespace=_tree.NAMESPACE):
        leaves, structure = _tree.flatten(value)
        taken = _Container()
        taken.structure, taken.leaves = structure, [_take(leaf, tensors, seen) for leaf in leaves]
        found = taken.leaves
    elif callable(value):
        return _take_object(value, tensors, seen)
    else:
        return value
    return taken if any(isinstance(part, _Template) for part in found) else value


def _take_closure(function):
    """Return the tensors and the template of `function`, `None` where it needs more than a `_Closure`."""
    if function.__defaults__ or function.__kwdefaults__ or not function.__closure__:
        return None
    tensors, dicts, cells = [], [], []
    for cell in function.__closure__:
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            return None
        if isinstance(content, torch.Tensor):
            cells.append(_Tensor(len(tensors)))
            tensors.append(content)
        elif isinstance(content, _PLAIN):
            cells.append(cell)
        elif type(content) is dict and content and all(isinstance(entry, torch.Tensor) for entry in content.values()):
            cells.append(_Dict(dict(zip(content, itertools.count(len(tensors)), strict=False))))
            tensors += content.values()
            dicts.append(content)
        else:
            return None
    if len({id(x) for x in (*tensors, *dicts)}) < len(tensors) + len(dicts):  # something is shared
        return None
    template = _Closure()
    template.cells = cells
    names = function.__name__, function.__qualname__
    template.function = function.__code__, function.__globals__, names, function.__dict__
    return tensors, template


def _take_function(function, tensors, seen):
    if function.__closure__ is None and not function.__defaults__ and not function.__kwdefaults__:
        return function
    taken = seen[id(function)] = _Function()
    taken.cells = [_take_cell(cell, tensors, seen) for cell in function.__closure__ or ()]
    taken.defaults = function.__defaults__ and _take(function.__defaults__, tensors, seen)
    taken.keyword_defaults = function.__kwdefaults__ and _take(function.__kwdefaults__, tensors, seen)
    if not any(isinstance(part, _Template) for part in (*taken.cells, taken.defaults, taken.keyword_defaults)):
        seen[id(function)] = function
        return function
    taken.code, taken.globals, taken.attributes = function.__code__, function.__globals__, function.__dict__
    taken.names = (function.__name__, function.__qualname__)
    return taken


def _take_cell(cell, tensors, seen):
    if id(cell) in seen:
        return seen[id(cell)]
    try:
        content = cell.cell_contents
    except ValueError:  # not assigned yet
        return cell
    taken = seen[id(cell)] = _Cell()
    taken.content = _take(content, tensors, seen)
    if not isinstance(taken.content, _Template):
        seen[id(cell)] = cell  # kept as it is, so that `nonlocal` still reaches it
    return seen[id(cell)]


def _take_object(value, tensors, seen):
    """Take the tensors among the attributes of a callable object; a module keeps its own."""
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, (torch.nn.Module, type)) or not getattr(value, "__dict__", None):
        return value
    taken = seen[id(value)] = _Object()
    taken.cls = type(value)
    taken.attributes = {name: _take(attribute, tensors, seen) for name, attribute in vars(value).items()}
    if not any(isinstance(part, _Template) for part in taken.attributes.values()):
        seen[id(value)] = value
    return seen[id(value)]


def reach(function):
    """Return `(name, tensor)` for what `function` can reach: closure, globals, defaults, and what hangs on them."""
    found, seen = [], set()
    _reach(function, "", 0, found, seen)
    return found


def _reach(value, name, depth, found, seen):
    if isinstance(value, torch.Tensor):
        found.append((name, value))
        return
    if depth > 10 or id(value) in seen or isinstance(value, _PLAIN):
        return
    seen.add(id(value))
    if isinstance(value, types.FunctionType):
        for inner, entry in _variables_of(value):
            _reach(entry, inner, depth + 1, found, seen)
    elif isinstance(value, types.MethodType):
        _reach(value.__func__, name, depth + 1, found, seen)
        _reach(value.__self__, "self", depth + 1, found, seen)
    elif isinstance(value, functools.partial):
        for k, entry in enumerate((value.func, *value.args, *value.keywords.values())):
            _reach(entry, f"{name}[{k}]", depth + 1, found, seen)
    elif isinstance(value, torch.nn.Module):
        found.extend((f"{name}.{inner}", entry) for inner, entry in (*value.named_parameters(), *value.named_buffers()))
        for inner, entry in vars(value).items():
            if not inner.startswith("_"):
                _reach(entry, f"{name}.{inner}", depth + 1, found, seen)
    elif isinstance(value, dict):
        for key, entry in list(value.items()):
            _reach(entry, f"{name}[{key!r}]", depth + 1, found, seen)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for k, entry in enumerate(value):
            _reach(entry, f"{name}[{k}]", depth + 1, found, seen)
    elif getattr(value, "__dict__", None):
        for inner, entry in list(vars(value).items()):
            _reach(entry, f"{name}.{inner}", depth + 1, found, seen)


def _variables_of(function):
    """Return `(name, value)` for what the code of `function`, and of functions defined in it, reads from outside."""
    variables = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            variables.append((name, cell.cell_contents))
        except ValueError:  # not assigned yet
            continue
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
        variables.extend((name, function.__globals__[name]) for name in code.co_names if name in function.__globals__)
    if function.__defaults__:
        variables.append(("defaults", function.__defaults__))
    if function.__kwdefaults__:
        variables.append(("defaults", function.__kwdefaults__))
    return variables
