"""Custom gradients on TensorFlow's public API alone: reverse mode to any order, and an error for the rest.

The function is traced once, so that TensorFlow tells what it closes over, and then run. A node with the rule as its
gradient passes the outputs on. Refused is what TensorFlow would get wrong: forward mode, gradients of closed-over
values, and `tf.vectorized_map`, which copies the nodes of a graph without their gradient functions.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress

import tensorflow as tf

from multiop import errors

from .. import _internals, _versions
from ..conversion import in_this_graph
from . import _closed_over, _linear
from .custom_gradient import Rule, closed_over_error, dense, fresh, is_transposing, is_within


def custom_call(call, primals):
    if is_within("mapping"):
        raise _versions.unknown("a custom gradient inside multiop.vmap, over an axis of unknown size,")
    primals = [in_this_graph(x) for x in primals]
    f, call.f = call.f, _internals.traced(call.f)
    variables, outside, named = _closed_over_by(call, primals)
    inputs = [fresh(x) for x in primals]  # so that x itself in the function's closure can be told apart
    outputs, grad_fn = call.forward(inputs)
    if not any(map(_internals.is_differentiable, outputs)):
        return outputs
    graph, n = _internals.current_graph(), len(outputs)
    values = [tf.convert_to_tensor(variable) for variable in variables]
    error = closed_over_error(call, _closed_over.names(named, f))
    guards = [_guard_gradient(in_this_graph(x), error) for x in outside]
    rule = Rule(call, grad_fn, variables)
    # `tf.vectorized_map` must see that the gradient depends on what only the rule closes over
    in_rule = [x for x in _closed_over.tensors_in(grad_fn) if not hasattr(x, "numpy") and x.graph is graph]

    def gradient(*upstreams):
        if is_transposing():
            raise _versions.unknown(f"forward mode of {call.name}, which has a custom gradient,")
        upstreams = [dense(u, y.dtype, tf.shape(y)) for u, y in zip(upstreams, outputs, strict=True)]
        if graph is None or _internals.current_graph() is graph:
            return [*[None] * n, *rule(*upstreams), *map(tf.zeros_like, guards), *[None] * len(in_rule)]
        faults = []
        marked = [None if u is None else _once(u, call.rule_name, faults) for u in upstreams]
        grads, fault = _linear.run(rule, marked, call.rule_name)
        faults.append(fault)
        sources = [*[u for u in upstreams if u is not None], *filter(_internals.is_differentiable, primals)]
        return [*[None] * n, *grads, *[_not_a_number(x, sources) for x in guards], *[None] * len(in_rule)]

    results = _passed_on(call.name, outputs, [*primals, *values, *guards, *in_rule], gradient)
    given = {x.ref() for x in inputs}  # an input that is returned stays an input
    pairs = [(y, own) for y, own in zip(outputs, results, strict=True) if y.ref() not in given]
    rule.grad_fn = _closed_over.replace(rule.grad_fn, pairs)
    return results


def _closed_over_by(call, primals):
    """Trace the function of a call.

    Returns:
        The variables that are passed to the rule, what else the outputs depend on other than the primals, and the same
        as the function refers to it: variables in place of their values.
    """
    variables = []

    def trace(*inputs):
        with tf.GradientTape() as tape:  # only for the variables
            outputs, _ = call.forward(list(inputs))
        variables.extend(tape.watched_variables())
        return [tf.identity(y) for y in outputs]

    specs = [tf.TensorSpec(x.shape, x.dtype) for x in primals]
    try:
        traced = tf.function(trace, autograph=False).get_concrete_function(*specs)
    except Exception as error:
        if not tf.executing_eagerly() or not _reads_values(error):
            raise
        raise _versions.unknown(f"{call.name}, whose custom gradient reads values of tensors,") from error
    inner, outer = traced.inputs[len(primals) :], traced.captured_inputs
    if len(inner) != len(outer):
        raise _versions.unknown(f"{call.name}, which has a custom gradient and closes over tensors,")
    if variables and not call.wants_variables():
        raise closed_over_error(call, ", ".join(variable.name for variable in variables))
    variables.sort(key=lambda variable: [x is variable.handle for x in outer].index(True))  # in the order of first use
    reached, outside, named = _inputs_reached(traced.outputs, inner), [], []
    for x, source in zip(inner, outer, strict=True):
        if x.ref() not in reached or any(source is variable.handle for variable in variables):
            continue
        if x.dtype == tf.variant:
            raise _versions.unknown(f"{call.name}, which has a custom gradient and closes over a tf.TensorArray,")
        variable = next((v for v in traced.variables if v.handle is source), None)
        if x.dtype != tf.resource:
            outside.append(source)
            named.append(source)
        elif variable is not None and _internals.is_differentiable(variable):
            outside.append(tf.raw_ops.ReadVariableOp(resource=source, dtype=variable.dtype))
            named.append(variable)
    return variables, outside, named


def _reads_values(error):
    """Say whether tracing a function failed because it reads the value of a tensor."""
    if isinstance(error, errors.ArgumentTypeError):
        return "symbolic tensor" in str(error)
    if isinstance(error, AttributeError):
        return error.name in ("numpy", "_numpy")
    return isinstance(error, (tf.errors.OperatorNotAllowedInGraphError, NotImplementedError))


# operations that have no gradient, though their operands may have one
_STOPS = {"OnesLike", "StopGradient", "ZerosLike", "Ceil", "Floor", "Rint", "Round", "Sign"}


def _inputs_reached(outputs, inputs):
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
            waiting += x.op.inputs
    return found


def _passed_on(name, outputs, inputs, gradient):
    """Return `outputs` with `gradient`: one tensor per output in; one, or `None`, per output and input out.

    PreventGradient operations precede the node that has this gradient, for the callers that do not see the node:
    forward accumulators and `tf.vectorized_map`.
    """
    n, graph = len(outputs), _internals.current_graph()
    message = str(
        _versions.unknown(f"{name} in forward mode, or differentiated outside of the tf.vectorized_map around it,")
    )

    @tf.custom_gradient
    def node(*tensors):
        # in a graph it raises this package's error, not a LookupError
        override = {"PreventGradient": "MultiopPreventGradient"}
        with nullcontext() if graph is None else graph.gradient_override_map(override):
            stopped = [
                tf.raw_ops.PreventGradient(input=x, message=message) if _internals.is_differentiable(x) else x
                for x in tensors
            ]
        return stopped[:n], gradient

    return node(*outputs, *inputs)


with suppress(KeyError):  # this module registered it already

    @tf.RegisterGradient("MultiopPreventGradient")
    def _refuse(op, upstream):
        raise errors.UnsupportedError(op.get_attr("message").decode())


def _guard_gradient(x, error):
    """Return `x` with a gradient that raises `error`.

    Across the boundary of a compiled function, TensorFlow computes every gradient, needed or not: there it is NaN.
    """
    if not _internals.is_differentiable(x):
        return x
    graph = _internals.current_graph()

    @tf.custom_gradient
    def guard(x):
        def gradient(upstream):
            if graph is None or _internals.current_graph() is graph:
                raise error
            return upstream

        return tf.identity(x), gradient

    return guard(x)


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


def _once(upstream, name, faults):
    """Return `upstream`, which must not be differentiated in another graph, or forward, if the rule has a fault."""
    graph = _internals.current_graph()

    @tf.custom_gradient
    def mark(upstream):
        def gradient(further):
            if faults[0] is None or (_internals.current_graph() is graph and not is_transposing()):
                return further
            raise _linear.in_one_graph_alone(name, faults[0])

        return tf.identity(upstream), gradient

    return mark(upstream)
