"""Custom gradients, and `stop_gradient`.

TensorFlow runs the function as it stands, so that what its rule closes over is linked to the inputs and second order
differentiates the rule. The outputs that the caller gets are cut off from that run: a record on the tapes, one on the
forward accumulators (the transpose of the rule) and, in a graph, a node carry the rule.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext

import tensorflow as tf

from multiop import _deferred, errors

from . import _closed_over, _internals, _linear
from .conversion import convert

_local = threading.local()


def stop_gradient(x):
    if isinstance(x, tf.Variable):  # read it behind the tapes' back: watching tapes and rules must not see it used
        x = tf.raw_ops.ReadVariableOp(resource=x.handle, dtype=x.dtype)
    return tf.stop_gradient(convert(x))


def custom_call(call, primals):
    inputs = [fresh(x) for x in primals]  # so that x itself in the function's closure is told apart
    is_eager = tf.executing_eagerly()
    follows = not is_eager or _internals.anything_records()
    pushes = is_eager and follows and any(map(_internals.has_tangent, inputs))
    tracker = _closed_over.Tracker(inputs, keeps=pushes) if follows else None
    f, call.f = call.f, _internals.traced(call.f)
    with tracker or nullcontext(), _internals.VariableWatcher() as watcher:
        outputs, grad_fn = call.forward(inputs)
    if pushes:
        _internals.keep_recorded([*inputs, *tracker.results])
    variables, outside = list(watcher.watched_variables()), []
    if follows:
        variables, outside = tracker.split(tracker.sources_of(outputs), variables)
    if variables and not call.wants_variables():
        raise closed_over_error(call, ", ".join(variable.name for variable in variables))
    closed_over = [tracker.as_closed_over(x) for x in outside]
    if outside and any(_internals.is_watched(x) for x in [*outside, *closed_over]):
        raise closed_over_error(call, _closed_over.names(tracker.named(outside), f))
    recorded = [*primals, *(tf.convert_to_tensor(variable) for variable in variables)]
    # what the rule alone closes over becomes an input, so that tf.vectorized_map sees what the gradient depends on
    hidden = [] if is_eager else tracker.outside_of(_closed_over.tensors_in(grad_fn))
    recorded += hidden
    rule = _Rule(call, grad_fn, variables, len(hidden))
    if outside:  # in a graph, where their gradient may be asked for later
        error = closed_over_error(call, _closed_over.names(tracker.named(outside), f))
        recorded += [_guarded(x, error) for x in outside]
    return cut(call.name, outputs, recorded, rule, len(outside))


def fresh(x):
    """Return `x` as another tensor: tf.identity in a third of its time."""
    return tf.raw_ops.Identity(input=x)


def closed_over_error(call, names):
    return errors.ClosedOverError(
        f"{call.name} closes over {names}, whose gradient would be dropped; pass what it closes over as arguments, or "
        f"give the gradient function a variables parameter where it is a tf.Variable"
    )


def cut(name, outputs, inputs, rule, n_guards=0, is_rule=True):
    """Return `outputs` with `rule` for their gradient, from one tensor or `None` per output to one per input.

    The last `n_guards` of `inputs` have no gradient of the rule, and must not be asked for one. `is_rule` says whether
    the rule was written by hand, so that it may be other than linear.
    """
    if not outputs:
        return []
    n = len(outputs)
    specs = [(x.dtype, x.shape if x.shape.is_fully_defined() else tf.shape(x)) for x in outputs]

    def dense(upstreams):
        return [_dense(u, *spec) for u, spec in zip(upstreams, specs, strict=True)]

    def backward(*upstreams):
        upstreams = dense(upstreams)
        if not is_rule:
            return rule(*upstreams)
        with _run_of_rule() as transposed:
            if transposed:
                return transpose(*upstreams)
            return rule(*upstreams) + [tf.zeros_like(x) for x in inputs[len(inputs) - n_guards :]]

    def transpose(*upstreams):
        if not is_rule:
            return rule(*dense(upstreams))
        grads, fault = _linear.run(rule, dense(upstreams), name)
        if fault:
            raise _linear.not_linear(name, fault)
        return grads + [None] * n_guards

    if tf.executing_eagerly():
        with _internals.stop_recording():
            results = [fresh(x) for x in outputs]
    else:
        graph = _internals.current_graph()

        def gradient(node, *upstreams):
            # without a node, the gradient is traced for a SavedModel: in a graph of its own
            if (
                node is not None and node.graph is not graph
            ):  # the rule closes over tensors of the graph that it was made in
                raise errors.UnsupportedError(
                    f"tf.vectorized_map copied the call of {name} in a tf.function without its gradient function; map "
                    f"over what {name} is called on, or call it outside the tf.function ({_internals.COPIES})"
                )
            if not is_rule or _internals.current_graph() is graph:
                return [None] * n + backward(*upstreams[:n])
            return [None] * n + _across_graphs(name, rule, dense(upstreams[:n]), inputs, n_guards)

        results = _internals.identity_node([*outputs, *inputs], gradient)
        results[0].op.pfor_converter = lambda loop: _vectorized(name, rule, n, is_rule, loop)
        results = results[:n]
    _internals.record_reverse(name, results, inputs, backward)
    _internals.record_forward(name, results, inputs, transpose)
    _closed_over.link(inputs, results)
    return results


class _Rule:
    """The rule of one call: a gradient or `None` per output in; one per primal and variable, and hidden value, out."""

    def __init__(self, call, grad_fn, variables, n_hidden):
        self.call, self.grad_fn, self.variables, self.n_hidden = call, grad_fn, variables, n_hidden

    def __call__(self, *upstreams):
        grads, variable_grads = self.call.backward(self.grad_fn, upstreams, self.variables)
        return grads + variable_grads + [None] * self.n_hidden


def _dense(upstream, dtype, shape):
    if not (dtype.is_floating or dtype.is_complex):
        return None
    return tf.zeros(shape, dtype) if upstream is None else tf.convert_to_tensor(upstream)


@contextmanager
def in_state(state, value=True):
    """Within, this thread is in a state, or is not; give whether it was."""
    before = is_within(state)
    setattr(_local, state, value)
    try:
        yield before
    finally:
        setattr(_local, state, before)


def is_within(state):
    return getattr(_local, state, False)


def transposing():
    """Within, gradients are taken to be transposed, so that a rule must be linear."""
    return in_state("transposing")


def is_transposing():
    return is_within("transposing")


def _run_of_rule():
    """Give whether the rule is to be transposed; what the rule itself differentiates is not."""
    return in_state("transposing", False)


# Across the boundary of a function's graph. The graph of its gradient is made once and serves every use: gradients that
# nobody asked for, second order and forward mode. So what is wrong in one use can only be refused in all, or made NaN.


def _across_graphs(name, rule, upstreams, inputs, n_guards):
    marked = [None if u is None else tf.identity(u) for u in upstreams]
    grads, fault = _linear.run(rule, marked, name)
    if fault:
        for u in marked:
            if u is not None:
                refusal = _refuse_second_order(name, fault)
                _internals.override_gradient(u.op, f"MultiopNotLinear/{name}/{fault}", refusal)
    return grads + [_not_a_number(x, marked) for x in inputs[len(inputs) - n_guards :]]


def _refuse_second_order(name, fault):
    def gradient(op, upstream):
        if op is None:  # traced for a SavedModel, which cannot refuse
            return upstream * tf.cast(float("nan"), upstream.dtype)
        if _internals.current_graph() is op.graph and not is_transposing():
            return upstream
        raise _linear.in_one_graph_alone(name, fault)

    return gradient


def _guarded(x, error):
    """Return `x`, which a function closes over, with a gradient that raises `error` where it is surely asked for.

    A call of the function's graph refuses what is watched; where a gradient crosses graphs otherwise, it is NaN.
    """

    def gradient(node, upstream):
        if node is not None and _internals.current_graph() is node.graph:
            raise error
        return upstream

    guarded = _internals.identity_node([x], gradient)[0]
    _internals.guard(guarded, str(error))
    return guarded


def _not_a_number(x, upstreams):
    """Return NaN for the gradient of `x`: its transpose gives NaN as soon as `x` has a tangent that is not zero."""
    upstream = next(u for u in upstreams if u is not None)
    nan = tf.fill(tf.shape(x), tf.cast(float("nan"), x.dtype))

    def gradient(node, tangent, _):
        spoilt = tf.reduce_sum(tf.where(tf.equal(tangent, 0), tf.zeros_like(tangent), nan))
        return [None, tf.fill(tf.shape(upstream), tf.cast(spoilt, upstream.dtype))]

    return _internals.identity_node([nan, upstream], gradient)[0]


def _vectorized(name, rule, n, is_rule, loop):
    """Return the outputs of a rule's node with the axis of `tf.vectorized_map`: one node, with the rule mapped."""
    node = loop.op
    kept = [i for i, y in enumerate(node.outputs[:n]) if y.dtype.is_floating or y.dtype.is_complex]
    present = []

    def flat_rule(*upstreams):
        upstreams = dict(zip(kept, upstreams, strict=True))
        grads = rule(*(upstreams.get(i) for i in range(n)))
        present[:] = [i for i, grad in enumerate(grads) if grad is not None]
        return [grads[i] for i in present]

    with node.graph.as_default():
        specs = [tf.TensorSpec(node.outputs[i].shape, node.outputs[i].dtype) for i in kept]
        try:
            concrete, fault = tf.function(flat_rule, autograph=False).get_concrete_function(*specs), None
        except Exception as error:  # no matter to a call that nobody differentiates
            concrete, fault = None, _deferred.without_frames(error, "TensorFlow")
    residuals = [] if fault else [_internals.convert_by_loop(loop.pfor, x) for x in concrete.captured_inputs]
    loop.stack_inputs()
    tensors = [x.t for x in loop.inputs]

    def mapped_rule(*upstreams):
        if fault:
            raise _deferred.again(fault)
        moving = [x for x, has_axis in residuals if has_axis]

        def one(slices):
            ours = iter(slices[len(kept) :])
            captured = [next(ours) if has_axis else x for x, has_axis in residuals]
            return _internals.call_with_captures(concrete, list(slices[: len(kept)]), captured)

        found = tf.vectorized_map(one, [*(upstreams[i] for i in kept), *moving], warn=False) if present else []
        grads = [None] * (len(tensors) - n)
        for i, grad in zip(present, found, strict=True):
            grads[i] = grad
        return grads

    results = cut(name, tensors[:n], tensors[n:], mapped_rule, is_rule=is_rule)
    return [_internals.stacked(x) for x in [*results, *tensors[n:]]]
