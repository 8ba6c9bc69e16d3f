"""Custom gradients on TensorFlow's public API alone: reverse mode to any order.

The function and the rule are each traced once per call, so that TensorFlow tells what they close over. The function
also returns the residuals of the rule. A node with the rule as its gradient then passes the outputs on. It refuses what
TensorFlow would get wrong: forward mode, gradients of closed-over values, and `tf.vectorized_map`, which copies the
nodes of a graph without their gradient functions.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext, suppress

import tensorflow as tf

from multiop import _deferred, errors

from .. import _internals, _versions
from ..conversion import in_this_graph
from . import _closed_over, _linear
from .custom_gradient import closed_over_error, in_state, is_transposing, is_within


class Unmappable(Exception):
    """A function that is being vectorized has a custom gradient: its rows are computed one by one instead."""


def mapping():
    """Note, inside the context, that a function is being vectorized."""
    return in_state("mapping")


def _check_not_mapping():
    if is_within("mapping"):
        raise Unmappable


def explain(error):
    """Return the error for a function that can neither be vectorized nor run row by row."""
    if not isinstance(error, Unmappable):
        return error
    return _versions.unknown("a custom gradient inside multiop.vmap, over an axis of unknown size,")


def custom_call(call, primals):
    _check_not_mapping()
    if not _replaces_captures():
        raise _versions.unknown(f"{call.name}, which has a custom gradient,")
    primals = [in_this_graph(x) for x in primals]
    f, call.f = call.f, _internals.traced(call.f)
    is_in_rule = is_within("in_rule")
    traced = _Traced(call, primals, is_in_rule)
    outputs, residuals = traced.run(primals)
    inexact = list(map(_internals.is_differentiable, outputs))
    if True not in inexact:
        return outputs
    graph = _internals.current_graph()
    values = [tf.convert_to_tensor(variable) for variable in traced.variables]
    outside = [in_this_graph(x) for x in traced.outside]
    guards = [_guarded(x, closed_over_error(call, _closed_over.names(traced.named, f))) for x in outside]
    hidden = traced.close_over(primals, residuals)
    own = []  # what is returned: the rule closes over it where it closes over an output

    def gradient(*upstreams):
        pulled = traced.again(primals, own) if is_in_rule else traced
        if pulled.fault is not None:
            raise _deferred.again(pulled.fault)
        if is_transposing():
            raise _versions.unknown(f"forward mode of {call.name}, which has a custom gradient,")
        pairs = [(u, y) for u, y, given in zip(upstreams, outputs, inexact, strict=True) if given]
        upstreams = [tf.zeros(tf.shape(y), y.dtype) if u is None else tf.convert_to_tensor(u) for u, y in pairs]
        if graph is None or _internals.current_graph() is graph:
            of_guards = list(map(tf.zeros_like, guards))
        else:
            sources = [*upstreams, *filter(_internals.is_differentiable, primals)]
            of_guards = [_not_a_number(x, sources) for x in guards]
            if fault := pulled.what_is_not_linear():
                upstreams = [_once(u, call.name, fault) for u in upstreams]
        return [None] * len(outputs) + pulled.pull(upstreams) + of_guards + [None] * len(hidden)

    own += _passed_on(call.name, outputs, [*primals, *values, *guards], gradient, hidden)
    traced.close_over_outputs(own)
    return own[:]


@functools.cache
def _replaces_captures():
    """Say whether a compiled function can be called with other tensors in place of its captures."""

    def outer(x, other):
        y = x + 1
        rule = tf.function(lambda u: u * y * two, autograph=False)
        rule = rule.get_concrete_function(tf.TensorSpec([], tf.float32))
        rule.set_external_captures([x if x is two else other for x in rule.captured_inputs])
        return [rule(x), *tf.gradients(rule(x), [x, other])]

    try:
        with tf.init_scope():  # the first call may come inside a graph
            two = tf.constant(2.0)
            results = tf.function(outer, autograph=False)(tf.constant(7.0), tf.constant(5.0))
            return [float(x) for x in results] == [70, 10, 14]
    except Exception:  # another version may raise anything
        return False


def cut(name, outputs, inputs, gradient):
    """Return `outputs` with the linear `gradient`: one tensor per output in; one, or `None`, per input out."""
    _check_not_mapping()
    n = len(outputs)
    return _passed_on(name, outputs, inputs, lambda *upstreams: [None] * n + list(gradient(*upstreams)))


def _passed_on(name, outputs, inputs, gradient, hidden=()):
    """Return `outputs` with `gradient`: one tensor per output in; one, or `None`, per output, input and hidden one out.

    PreventGradient operations precede the node that has this gradient, for the callers that do not see the node:
    forward accumulators and `tf.vectorized_map`.
    """
    n = len(outputs)
    message = _versions.unknown(
        f"{name} in forward mode, or differentiated outside of the tf.vectorized_map around it,"
    )

    @tf.custom_gradient
    def node(*tensors):
        with _no_gradients():
            stopped = [
                tf.raw_ops.PreventGradient(input=x, message=str(message)) if _internals.is_differentiable(x) else x
                for x in tensors
            ]
        return stopped[:n], gradient

    results = node(*outputs, *inputs, *hidden)
    if not tf.executing_eagerly():
        results[0].op._multiop_sources = inputs
    return results


with suppress(KeyError):  # this module registered it already

    @tf.RegisterGradient("MultiopPreventGradient")
    def _refuse(op, upstream):
        raise errors.UnsupportedError(op.get_attr("message").decode())


def _no_gradients():
    """Return a context in which a PreventGradient in a graph raises this package's error, not a LookupError."""
    graph = _internals.current_graph()
    return (
        nullcontext() if graph is None else graph.gradient_override_map({"PreventGradient": "MultiopPreventGradient"})
    )


class _Output(int):
    """The position of an output, where the rule closes over it."""


class _Traced:
    """A function and its rule, traced.

    Attributes:
        variables: The variables that are passed to the rule.
        outside: What the outputs depend on other than the inputs and the values of `variables`.
        named: The same as the function refers to it: variables in place of their values.
        fault: The exception that the rule raised, which is raised again when the function is differentiated.
    """

    def __init__(self, call, primals, without_rule=False):
        self.call, self.fault, self.name, self.without_rule = call, None, call.name, without_rule
        self.rule, self.closed_over, self.given = None, [], []
        is_eager = tf.executing_eagerly()
        specs = [tf.TensorSpec(x.shape, x.dtype) for x in primals]
        try:
            self.function = tf.function(self._traced, autograph=False).get_concrete_function(*specs)
        except Exception as error:
            if not is_eager or not _reads_values(error):
                raise
            raise _versions.unknown(f"{call.name}, whose custom gradient reads values of tensors,") from error
        self.outside, self.named = self._look_outside(len(primals))

    def _traced(self, *inputs):
        with tf.GradientTape() as tape:  # only for the variables
            outputs, grad_fn = self.call.forward(list(inputs))
        self.results = [tf.identity(y) for y in outputs]
        self.variables = _in_order(tape.watched_variables())
        if self.variables and not self.call.wants_variables():
            raise closed_over_error(self.call, ", ".join(variable.name for variable in self.variables))
        inexact = list(map(_internals.is_differentiable, outputs))

        def rule(*upstreams):
            upstreams = iter(upstreams)
            upstreams = [next(upstreams) if needed else None for needed in inexact]
            with _in_rule():
                grads, variable_grads = self.call.backward(grad_fn, upstreams, self.variables)
            self.given = [g is not None for g in (*grads, *variable_grads)]
            return [g for g in (*grads, *variable_grads) if g is not None]

        residuals, self.seen_in_rule = [], _closed_over.tensors_in(grad_fn) if self.without_rule else []
        if True in inexact and not self.without_rule:
            kept = [y for y, needed in zip(self.results, inexact, strict=True) if needed]
            specs = [tf.TensorSpec(y.shape, y.dtype) for y in kept]
            try:
                self.rule = tf.function(rule, autograph=False).get_concrete_function(*specs)
            except Exception as error:  # it does not matter unless the call is differentiated
                self.fault = _deferred.without_frames(error, "TensorFlow")
            else:
                self.upstreams, self.grads = self.rule.inputs[: len(kept)], list(self.rule.outputs)
                residuals = self._residuals(inputs, outputs)
        # the rule is their gradient
        return [tf.stop_gradient(y) for y in self.results] + residuals

    def _residuals(self, inputs, outputs):
        """Return the residuals of the rule in the function's graph; note where each of its captures is found."""
        places, residuals = {x.ref(): i for i, x in enumerate(inputs)}, []
        own = {y.ref(): _Output(k) for k, y in reversed([*enumerate(outputs)]) if y.ref() not in places}
        for x in self.rule.captured_inputs:
            if x.ref() in own:
                self.closed_over.append(own[x.ref()])
            elif hasattr(x, "numpy") or x.graph is not _internals.current_graph():
                self.closed_over.append(x)
            elif x.ref() in places:
                self.closed_over.append(places[x.ref()])
            else:
                self.closed_over.append(len(inputs) + len(residuals))
                residuals.append(x)
        return residuals

    def run(self, primals):
        """Return the outputs and the residuals."""
        n = len(self.results)
        try:
            found = self.function(*primals)
        except LookupError as error:  # TensorFlow looks up the gradients of all operations, needed or not
            found = self.function(*map(tf.stop_gradient, primals))
            message = f"the gradient function of {self.name} cannot be differentiated: {error}"
            return found[:n], [_guarded(x, errors.NoGradientError(message), primals) for x in found[n:]]
        return found[:n], found[n:]

    def close_over(self, primals, residuals):
        """Have the rule close over these primals and residuals.

        Returns:
            What else it closes over in a graph: `tf.vectorized_map` must see that the gradient depends on it.
        """
        self.results, seen = None, self.seen_in_rule
        self.seen_in_rule = None
        if self.rule is None:
            return [x for x in seen if not hasattr(x, "numpy") and x.graph is _internals.current_graph()]
        tensors = [*primals, *residuals]
        hidden = {
            i: in_this_graph(x)
            for i, x in enumerate(self.closed_over)
            if not isinstance(x, int) and x.dtype != tf.resource and not hasattr(x, "numpy")
        }
        self.closed_over = [tensors[x] if type(x) is int else hidden.get(i, x) for i, x in enumerate(self.closed_over)]
        return list(hidden.values())

    def close_over_outputs(self, own):
        """Have the rule close over the function's outputs `own`, as they are returned, where it closes over outputs."""
        if self.rule is not None:
            self.rule.set_external_captures([own[x] if type(x) is _Output else x for x in self.closed_over])
            self.closed_over = []

    def again(self, primals, own):
        """Trace the function again, with its rule; what the function computes is then computed a second time."""
        for op in self.function.graph.get_operations():
            if op.op_def.is_stateful and op.type not in _READS:
                raise _versions.unknown(
                    f"{self.name} in a gradient function, of higher order and with {op.type} inside,"
                )
        found = _Traced(self.call, primals)
        _, residuals = found.run(primals)
        found.close_over(primals, residuals)
        found.close_over_outputs(own)
        return found

    def pull(self, upstreams):
        """Return the gradients of the primals and variables."""
        grads = iter(self.rule(*upstreams))
        return [next(grads) if there else None for there in self.given]

    def _look_outside(self, n_inputs):
        inner, outer = self.function.inputs[n_inputs:], self.function.captured_inputs
        if len(inner) != len(outer):
            raise _versions.unknown(f"{self.name}, which has a custom gradient and closes over tensors,")
        reached = _reached(self.results, inner)
        outside, named = [], []
        for x, source in zip(inner, outer, strict=True):
            if x.ref() not in reached:
                continue
            if x.dtype == tf.variant:
                raise _versions.unknown(f"{self.name}, which has a custom gradient and closes over a tf.TensorArray,")
            if x.dtype != tf.resource:
                outside.append(source)
                named.append(source)
            elif not any(source is variable.handle for variable in self.variables):
                variable = next((v for v in self.function.variables if v.handle is source), None)
                if variable is not None and _internals.is_differentiable(variable):
                    outside.append(tf.raw_ops.ReadVariableOp(resource=source, dtype=variable.dtype))
                    named.append(variable)
        return outside, named

    def what_is_not_linear(self):
        """Return what makes, or may make, the rule nonlinear in its upstream gradients, or `None`."""
        tracker = _linear.Tracker(self.upstreams)
        for op in self.rule.graph.get_operations():
            tracker.step(op.type, op.inputs, op.outputs)
        return tracker.fault(self.grads)


_READS = {"ReadVariableOp", "VarIsInitializedOp"}  # stateful operations that do not change the state


def _in_rule():
    """Trace functions without their rules inside the context: a rule may call its own function."""
    return in_state("in_rule")


def _reads_values(error):
    """Say whether tracing a function failed because it reads the value of a tensor."""
    if isinstance(error, errors.ArgumentTypeError):
        return "symbolic tensor" in str(error)
    if isinstance(error, AttributeError):
        return error.name in ("numpy", "_numpy")
    return isinstance(error, (tf.errors.OperatorNotAllowedInGraphError, NotImplementedError))


def _in_order(variables):
    """Return variables in the order in which the current graph first used them."""
    places = {}
    for variable in variables:
        here = tf.raw_ops.VarIsInitializedOp(resource=variable.handle).op.inputs[0]
        places[variable.ref()] = here.op.name
    order = [op.name for op in _internals.current_graph().get_operations()]
    return sorted(variables, key=lambda variable: order.index(places[variable.ref()]))


# operations that have no gradient, though their operands may have one
_STOPS = {"OnesLike", "StopGradient", "ZerosLike", "Ceil", "Floor", "Rint", "Round", "Sign"}


def _reached(outputs, inputs):
    """Return references to the inputs of a graph that outputs may pass a gradient to."""
    ends, found, seen, waiting = {x.ref() for x in inputs}, set(), set(), list(outputs)
    while waiting:
        x = waiting.pop()
        if x.ref() in seen or not (_internals.is_differentiable(x) or x.dtype == tf.resource):
            continue
        seen.add(x.ref())
        if x.ref() in ends:
            found.add(x.ref())
        elif x.op.type not in _STOPS:
            waiting += getattr(x.op, "_multiop_sources", x.op.inputs)
    return found


def _guarded(x, error, sources=()):
    """Return `x` with a gradient, with respect to itself and `sources`, that raises `error`.

    Across the boundary of a compiled function, TensorFlow computes every gradient, needed or not: there it is NaN.
    """
    if not _internals.is_differentiable(x):
        return x
    graph = _internals.current_graph()

    @tf.custom_gradient
    def guard(x, *sources):
        def gradient(upstream):
            if graph is None or _internals.current_graph() is graph:
                raise error
            return [upstream, *[None] * len(sources)]

        return tf.identity(x), gradient

    return guard(x, *sources)


def _not_a_number(x, sources):
    """Return NaN as the gradient of `x`, which depends on `sources`: theirs become NaN too as soon as it matters."""

    @tf.custom_gradient
    def spoilt(*sources):
        nan = tf.fill(tf.shape(x), tf.cast(float("nan"), x.dtype))

        def gradient(upstream):
            found = tf.reduce_sum(tf.where(tf.equal(upstream, 0), tf.zeros_like(upstream), nan))
            return [tf.fill(tf.shape(source), tf.cast(found, source.dtype)) for source in sources]

        return nan, gradient

    return spoilt(*sources)


def _once(upstream, name, fault):
    """Return `upstream`, which must not be differentiated in a graph other than the current one."""
    graph = _internals.current_graph()

    @tf.custom_gradient
    def mark(upstream):
        def gradient(further):
            if _internals.current_graph() is graph and not is_transposing():
                return further
            raise _linear.in_one_graph_alone(name, fault)

        return tf.identity(upstream), gradient

    return mark(upstream)
