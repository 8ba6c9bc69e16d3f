"""The differentiable values that a function's outputs depend on other than through its inputs."""

from __future__ import annotations

import inspect
import threading
import types
from contextlib import ExitStack, nullcontext

import tensorflow as tf

from multiop._rules import closures
from multiop._values import args

from .. import _internals

_local = threading.local()


class Tracker:
    """Tracks, while entered, what depends differentiably on values from outside, which are not inputs.

    In eager mode these are the values that a tape or forward accumulator follows. In a graph they also include earlier
    tensors that are not constants, since a gradient with respect to them may be taken later.
    """

    def __init__(self, inputs, keeps=False, changed=None):
        self.keeps, self.changed = keeps, changed
        self.variables = {}  # id of its handle -> each variable that was read
        self.values = {}  # id of a value that `split` read -> its variable
        self.handles = {}  # tensor id -> each variable handle that was used, in the order of first use
        self.graph = _internals.current_graph()
        self.start = _internals.uid()
        self.known = {_internals.tensor_id(x) for x in inputs}
        self.op_types = set()
        self.results = []  # every tensor that was computed, if `keeps`
        self.reached = {}  # tensor id -> the outside values that it depends on, by tensor id
        self.reporting = ExitStack()

    def __enter__(self):
        _trackers().append(self)
        self.reporting.enter_context(_internals.variables_reported_to(self.note))
        self.catch_up = self.reporting.enter_context(_internals.operations_reported_to(self.step))
        return self

    def __exit__(self, *exception):
        _trackers().remove(self)
        self.reporting.__exit__(*exception)

    def note(self, variable):
        self.variables[_internals.tensor_id(variable.handle)] = variable

    def step(self, op_type, inputs, outputs):
        self.op_types |= (types := _internals.op_types(op_type, outputs))
        if self.changed is not None:
            self.changed.note(op_type, types, inputs, outputs, self.known)
        if not len(inputs) and self.is_brought_in(outputs):
            return
        if _internals.passes_gradients(op_type):
            self.link(inputs, outputs, op_type)
        self.known.update(map(_internals.tensor_id, outputs))
        if self.keeps:
            self.results += outputs

    def link(self, inputs, outputs, op_type=None):
        """Note that `outputs` depend on `inputs` through an operation; all on all if `op_type` is `None`."""
        called = op_type is not None and self.graph is None and _internals.calls_function(op_type)
        with _internals.resume_recording() if called else nullcontext():
            given = [self.sources(x) for x in inputs]
            if called and any(given):  # in forward mode, the inputs end with the tangents of the operands
                tangents = {_internals.tensor_id(x) for x in _internals.tangents_of(inputs)}
                given = [{} if _internals.tensor_id(x) in tangents else s for x, s in zip(inputs, given, strict=True)]
        self.known.update(map(_internals.tensor_id, outputs))
        if not any(given):
            return
        every = [None] * len(outputs) if op_type is None else _internals.reaches(op_type, outputs)
        for y, reached in zip(outputs, every, strict=True):
            if _internals.is_differentiable(y):
                found = self.reached.setdefault(_internals.tensor_id(y), {})
                for i, sources in enumerate(given):
                    if reached is None or i in reached:
                        found.update(sources)

    def sources(self, x):
        """Return the outside values that `x` depends on, by tensor id; for a variable, its handle."""
        key = _internals.tensor_id(x)
        if key in self.known:
            return self.reached.get(key, {})
        if not (x.dtype.is_floating or x.dtype.is_complex):
            if x.dtype != tf.resource:
                return {}
            self.handles.setdefault(key, x)
        if self.graph is None and key >= self.start:  # not reported: a constant, or a variable's value
            found = {}
            for variable in _internals.variables_given():
                self.note(variable)
                found.update(self.sources(variable.handle))
            return found
        if self.graph is None:
            return {key: x} if _internals.is_watched(x) else {}
        return {key: x} if x.op.type != "Const" or self.is_brought_in([x]) else {}

    def is_brought_in(self, xs):
        """Say whether any of `xs` is a capture of a tensor from outside the function's graph."""
        return self.graph is not None and any(_internals.outer_source(self.graph, x) is not None for x in xs)

    def sources_of(self, outputs):
        """Return the outside values that any of `outputs` depends on."""
        found = {}
        for y in outputs:
            found.update(self.sources(y))
        return list(found.values())

    def split(self, outside, trainable):
        """Split the outside values that outputs depend on.

        Args:
            outside: The result of `sources_of`.
            trainable: The trainable variables that were read.

        Returns:
            The variables that are certain to be differentiated, in the order of their first use, and the values that
            may be differentiated later: tensors, and in a graph the values of non-trainable variables.
        """
        variables, tensors = list(trainable), []
        for x in outside:
            if x.dtype != tf.resource:
                tensors.append(x)
            elif not any(self.is_handle(x, variable) for variable in trainable):
                variable = self.variables.get(_internals.tensor_id(self.as_closed_over(x)))
                if variable is not None and any(map(_internals.is_watched, (x, variable.handle))):
                    variables.append(variable)
                else:
                    tensors.append(_internals.read_variable(self.as_closed_over(x)))
                    if variable is not None:
                        self.values[_internals.tensor_id(tensors[-1])] = variable
        used = list(self.handles.values())
        places = [next((k for k, x in enumerate(used) if self.is_handle(x, v)), len(used)) for v in variables]
        return [variables[i] for i in sorted(range(len(variables)), key=places.__getitem__)], tensors

    def named(self, xs):
        """Return outside values as the function refers to them: variables in place of their values."""
        return [self.values.get(_internals.tensor_id(x), self.as_closed_over(x)) for x in xs]

    def is_handle(self, x, variable):
        return self.as_closed_over(x) is variable.handle

    def outside_of(self, xs):
        """Return those of `xs` that were in the current graph before the function was called."""
        here = [x for x in xs if not hasattr(x, "numpy") and x.graph is self.graph]
        return [x for x in here if _internals.tensor_id(x) not in self.known]

    def as_closed_over(self, x):
        """Return the outside value `x` as the function refers to it: not yet captured by the current graph."""
        source = None if self.graph is None else _internals.outer_source(self.graph, x)
        return x if source is None else source


def _trackers():
    if not hasattr(_local, "trackers"):
        _local.trackers = []
    return _local.trackers


def link(inputs, outputs):
    """Tell every tracker of this thread that `outputs` depend on `inputs`, which no operation shows."""
    for tracker in _trackers():
        if tracker.graph is _internals.current_graph():
            tracker.catch_up()
            tracker.link(inputs, outputs)


def closure(f):
    """Return what `f` closes over, by name."""
    while hasattr(f, "func") or hasattr(f, "__func__") or hasattr(f, "__wrapped__"):
        f = getattr(f, "func", None) or getattr(f, "__func__", None) or f.__wrapped__
    found = {}
    names = getattr(getattr(f, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(f, "__closure__", None) or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def tensors_in(f, depth=3):
    """Return the tensors in the closure of `f`, and in functions, lists, tuples and dicts in it."""
    found = []
    values = list(closure(f).values())
    while values and depth:
        nested = []
        for value in values:
            if isinstance(value, tf.Tensor):
                found.append(value)
            elif isinstance(value, (list, tuple)):
                nested += value
            elif isinstance(value, dict):
                nested += value.values()
            elif callable(value):
                nested += closure(value).values()
        values, depth = nested, depth - 1
    return found


def replace(f, pairs):
    """Return `f`, changed to hold the second tensor of each of `pairs` wherever it closes over the first."""
    by_id = {id(x): y for x, y in reversed(pairs)}
    if type(f) is types.FunctionType and not f.__defaults__ and not f.__kwdefaults__:  # most rules
        for cell in f.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            if id(content) in by_id:
                cell.cell_contents = by_id[id(content)]
            elif not isinstance(content, (*closures.PLAIN, tf.Tensor)):
                break
        else:
            return f
    walk = closures.Walk(tf.Tensor, lambda x: id(x) in by_id)
    walk.enter(box := [f], True)
    carried = [by_id.get(id(x), x) for x in walk.tensors]
    for place in walk.places:
        if any(id(walk.tensors[k]) in by_id for k in place.numbers):
            place.put(place.make(carried))
    return box[0]


def names(values, f):
    """Return names for tensors and variables that `f` closes over: those in its code, if they can be found there."""
    f = inspect.unwrap(f)
    used = getattr(getattr(f, "__code__", None), "co_names", ())
    seen = {**{name: getattr(f, "__globals__", {}).get(name) for name in used}, **closure(f)}
    found = [next((repr(name) for name, value in seen.items() if value is x), None) for x in values]
    return ", ".join(name or f"a tensor {args.describe(x)}" for name, x in zip(found, values, strict=True))
