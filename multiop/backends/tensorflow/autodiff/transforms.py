"""Transforms of functions of flat tensors."""

from __future__ import annotations

import tensorflow as tf

from multiop import errors
from multiop._rules.lru import Recent

from .. import _internals, _ranks
from ..conversion import convert, in_this_graph
from . import _closed_over, _effects, _linear
from .custom_gradient import cut, fresh, in_state, transposing
from .tape import differentiate

traced = _internals.traced


def vjp(fun, primals, persistent=True):
    inputs = [fresh(x) for x in primals]
    with _internals.of_first_order(), tf.GradientTape(persistent, watch_accessed_variables=False) as tape:
        tape.watch(inputs)
        outputs, aux = fun(*inputs)
    # a rule may hold the pullback where its function returns the outputs: they are not what it starts at
    results = [fresh(y) for y in outputs] if not tf.executing_eagerly() or _internals.anything_records() else outputs

    def pullback(cotangents):
        try:
            return _gradient(tape, outputs, inputs, cotangents)
        except errors.UnsupportedError as error:
            if not _ranks.is_refused(error.__cause__) or not tf.executing_eagerly():
                raise
            return _ranks.compute(pull_again, error.__cause__, list(primals), list(cotangents))

    def pull_again(primals, cotangents):
        return vjp(fun, primals)[1](cotangents)

    return results, pullback, aux


def _gradient(tape, targets, sources, cotangents):
    """Return the dense gradients of the differentiable targets, zeros where unconnected."""
    pairs = [(y, ct) for y, ct in zip(targets, cotangents, strict=True) if y.dtype.is_floating or y.dtype.is_complex]
    if not pairs:
        return [tf.zeros_like(x) for x in sources]
    found = differentiate(tape.gradient, [y for y, _ in pairs], sources, [ct for _, ct in pairs])
    return [tf.zeros_like(x) if grad is None else grad for grad, x in zip(found, sources, strict=True)]


def jvp(fun, primals, tangents):
    # the transpose of the vjp: ForwardAccumulator loses tangents that pass through tf.function or tf.cond
    outputs, pullback, aux = vjp(fun, primals, persistent=False)
    cotangents = [tf.zeros_like(y) for y in outputs]
    with tf.GradientTape(watch_accessed_variables=False) as tape, transposing():
        tape.watch([ct for ct in cotangents if ct.dtype.is_floating or ct.dtype.is_complex])
        grads = pullback(cotangents)
    return outputs, _gradient(tape, grads, cotangents, list(tangents)), aux


def is_differentiated(x):
    """Say whether a tape or accumulator follows `x`; `None` where none would, and in a graph, which knows by itself."""
    if _internals.missing is not None or not tf.executing_eagerly() or not _internals.anything_records():
        return None
    return _internals.is_watched(x)


_FEW = 16  # rows of an eager pullback take less time than to trace it


def vmap(fun, in_axes, axis_size, is_linear=False):
    def call_mapped(*args):
        moved = [_move_to_front(x, axis) for x, axis in zip(args, in_axes, strict=True) if axis is not None]

        def run_row(slices):
            slices = iter(slices)
            return list(fun(*(x if axis is None else next(slices) for x, axis in zip(args, in_axes, strict=True))))

        try:
            if not (is_linear and 0 < axis_size <= _FEW and tf.executing_eagerly()):
                with in_state("mapping"):
                    return list(_internals.spare_optimizer(tf.vectorized_map, moved)(run_row, moved, warn=False))
        except Exception as error:  # most control flow and some operations cannot be vectorized
            if not axis_size or (isinstance(error, errors.MultiopError) and _internals.missing is None):
                raise
        rows = [run_row([x[k] for x in moved]) for k in range(axis_size)]  # an error here is none about that one
        return [tf.stack(column) for column in zip(*rows, strict=True)]

    return call_mapped


def _move_to_front(x, axis):
    x = convert(x)
    if axis == 0:
        return x
    axis %= x.shape.rank
    return tf.transpose(x, [axis, *(i for i in range(x.shape.rank) if i != axis)])


def jit(fun):
    programs = Recent()

    def call_compiled(*args):
        if not tf.executing_eagerly():
            outputs, finish = fun(*args)  # inside a graph, stay in that graph: a boundary would hide what crosses it
            return finish(outputs)
        key = tuple([(x.dtype, x.shape) for x in args])
        program = programs.get(key)
        if program is None:
            program = _Program(fun)
            result = program(*args)
            programs.put(key, program)  # only after it ran: a failed trace must not stay
            return result
        return program(*args)

    return call_compiled


class _Program:
    """A function compiled for one signature."""

    def __init__(self, fun):
        self.fun, self.run = fun, None
        self.function = tf.function(self.outputs, autograph=False)

    def __call__(self, *args):
        try:
            if self.run is None:
                self.function.get_concrete_function(*args)  # traces it
            outputs = self.run(*args)
        except (tf.errors.UnimplementedError, tf.errors.InvalidArgumentError) as error:
            if not _ranks.is_refused(error):
                raise
            outputs = _ranks.compute(self.outputs, error, *args)
        return self.finish(outputs)

    def outputs(self, *args):
        outputs, self.finish = self.fun(*args)
        made = [y for op in _internals.current_graph().get_operations() for y in op.outputs]
        self.run = _internals.spare_optimizer(self.function, made)
        return outputs


def checkpoint(fun, primals):
    if _internals.missing is not None:
        return list(fun(*primals))  # right, but it saves no memory
    primals = [in_this_graph(x) for x in primals]
    inputs = _without_history(primals)
    changed = _effects.Changed()
    with _closed_over.Tracker(inputs, changed=changed) as tracker, _internals.VariableWatcher() as watcher:
        outputs = list(fun(*inputs))
    if any(map(_internals.has_tangent, [*primals, *outputs])):
        with changed.before():
            return list(fun(*primals))  # forward mode keeps no residuals
    variables, reached = tracker.split(tracker.sources_of(outputs), watcher.watched_variables())
    closed_over = [*variables, *map(tracker.as_closed_over, reached)]

    ends = [None] * len(outputs) if tf.executing_eagerly() else outputs  # eagerly they would keep their history alive

    def recompute(*upstreams):
        ours = _depending_on(primals, next(last for last in zip(ends, upstreams, strict=True) if last[1] is not None))
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([*ours, *closed_over])
            with changed.before():
                again = fun(*ours)
        kept = [i for i, u in enumerate(upstreams) if u is not None]
        sources = [*ours, *closed_over]
        return differentiate(tape.gradient, [again[i] for i in kept], sources, [upstreams[i] for i in kept])

    values = [tf.convert_to_tensor(variable) for variable in variables]
    return cut("checkpoint", outputs, [*primals, *values, *reached], recompute, is_rule=False)


def _without_history(xs):
    """Return `xs` without their history, so that no tape records what is computed from them."""
    with _internals.stop_recording():
        return [fresh(x) for x in xs]


def _depending_on(xs, last):
    """Return `xs` as new tensors that, in a graph, depend on `last`, so that no compiler merges the two runs."""
    if tf.executing_eagerly():
        return [fresh(x) for x in xs]
    entry = tf.add_n([tf.math.real(tf.reshape(y, [-1])[:1]) for y in last])
    never = tf.reduce_any(tf.logical_and(tf.math.is_nan(entry), tf.math.is_inf(entry), name=_linear.NEVER))
    return [tf.where(never, tf.zeros_like(x), x) for x in xs]
