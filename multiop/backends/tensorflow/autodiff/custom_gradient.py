"""Custom gradients, and `stop_gradient`.

TensorFlow runs the function unchanged, so that the residuals of its rule are linked to the inputs and second order
differentiates the rule. The caller's outputs are cut off from that run. The rule is recorded on the tapes, its
transpose on the forward accumulators, and in a graph it is the gradient of a node.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager, nullcontext

import tensorflow as tf

from multiop import errors
from multiop._rules import late_errors

from .. import _internals
from ..conversion import convert, is_tracked
from . import _closed_over, _linear

_local = threading.local()


def stop_gradient(x):
    if isinstance(x, tf.Variable):  # read it unnoticed by the tapes: neither tapes nor rules may see it used
        x = tf.raw_ops.ReadVariableOp(resource=x.handle, dtype=x.dtype)
    return tf.stop_gradient(convert(x))


def custom_call(call, primals):
    inputs = [fresh(x) for x in primals]  # so that x itself in the function's closure can be told apart
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
    # what only the rule closes over becomes an input, so that tf.vectorized_map sees what the gradient depends on
    hidden = [] if is_eager else tracker.outside_of(_closed_over.tensors_in(grad_fn))
    recorded += hidden
    rule = Rule(call, grad_fn, variables, len(hidden))
    if outside:  # in a graph: their gradient may be taken later
        error = closed_over_error(call, _closed_over.names(tracker.named(outside), f))
        recorded += [_guard_closed_over(x, error) for x in outside]
    given = {_internals.tensor_id(x) for x in inputs}  # an input that is returned stays an input
    pairs = [(y, k) for k, y in enumerate(outputs) if _internals.tensor_id(y) not in given]

    def use_results(results):
        rule.grad_fn = _closed_over.replace(rule.grad_fn, [(y, results[k]) for y, k in pairs])

    return cut(call.rule_name, outputs, recorded, rule, len(outside), use_results=use_results if follows else None)


def fresh(x):
    """Return `x` as a new tensor, like tf.identity in a third of its time."""
    return tf.raw_ops.Identity(input=x)


def closed_over_error(call, names):
    return errors.ClosedOverError(
        f"{call.name} closes over {names}, whose gradient would be dropped; pass what it closes over as arguments, or "
        f"give the gradient function a variables parameter where it is a tf.Variable"
    )


def cut(name, outputs, inputs, rule, n_guards=0, is_rule=True, use_results=None):
    """Return `outputs` with `rule` as their gradient: one tensor or `None` per output in; one per input out.

    The rule gives no gradient for the last `n_guards` of `inputs`, and asking for one is an error. `is_rule` says
    whether a user wrote the rule, so that it may be nonlinear. `use_results` is called with what is to be returned
    before anything runs the rule.
    """
    if not outputs:
        return []
    n = len(outputs)
    specs = [(x.dtype, x.shape if x.shape.is_fully_defined() else tf.shape(x)) for x in outputs]

    def densify(upstreams):
        return [dense(u, *spec) for u, spec in zip(upstreams, specs, strict=True)]

    def backward(*upstreams):
        upstreams = densify(upstreams)
        if not is_rule:
            return rule(*upstreams)
        with _run_of_rule() as transposed:
            if transposed:
                return transpose(*upstreams)
            return rule(*upstreams) + [tf.zeros_like(x) for x in inputs[len(inputs) - n_guards :]]

    def transpose(*upstreams):
        if not is_rule:
            return rule(*densify(upstreams))
        grads, fault = _linear.run(rule, densify(upstreams), name)
        if fault:
            raise _linear.not_linear(name, fault)
        return grads + [None] * n_guards

    if tf.executing_eagerly():
        with _internals.stop_recording():
            results = [fresh(x) for x in outputs]
    else:
        graph = _internals.current_graph()

        def gradient(node, *upstreams):
            # without a node, the gradient is being traced for a SavedModel, in its own graph
            if node is not None and node.graph is not graph:  # the rule closes over tensors of its own graph
                raise errors.UnsupportedError(
                    f"tf.vectorized_map copied the call of {name} in a tf.function without its gradient function; map "
                    f"over what {name} is called on, or call it outside the tf.function ({_internals.COPIES})"
                )
            if not is_rule or _internals.current_graph() is graph:
                return [None] * n + backward(*upstreams[:n])
            return [None] * n + _across_graphs(name, rule, densify(upstreams[:n]), inputs, n_guards)

        results = _internals.identity_node([*outputs, *inputs], gradient)
        results[0].op.pfor_converter = lambda loop: _vectorize_rule(name, rule, n, is_rule, loop)
        results = results[:n]
    if use_results is not None:
        use_results(results)
    _internals.record_reverse(name, results, inputs, backward)
    _internals.record_forward(name, results, inputs, transpose)
    _closed_over.link(inputs, results)
    return results


def can_link(eagerly=False):
    """Say whether `link_rule` serves here: in a graph, whose numbers are known only when it runs; or `eagerly` too."""
    return (eagerly or not tf.executing_eagerly()) and not is_within("mapping") and _internals.missing is None


def link_rule(name, fn, rule, *inputs, unused=0):
    """Return `fn(*inputs)`, a tensor, whose gradient is `rule(*inputs, upstream)`: a tensor or `None` each.

    The rule must close over no tensor: it then serves copies of a node in other graphs, and keeps no graph alive.
    It does not read the first `unused` inputs, which an eager call does not keep for it.
    """
    return _link(name, [run_unrecorded(fn, *inputs)], rule, inputs, unused)[0]


def run_unrecorded(fn, *xs):
    """Return `fn(*xs)` as a constant: an operation less than `tf.stop_gradient` of it."""
    with _internals.stop_recording():
        return fn(*xs)


def linear(fn, x):
    """Return `fn(x)`, which is linear, with the derivatives of `fn.transpose`."""
    if not is_tracked() or not can_link(eagerly=True):
        return fn(x)
    return link_rule("linear", fn, lambda _, upstream: [linear(fn.transpose, upstream)], x, unused=1)


def _link(name, outputs, rule, inputs, unused=0):
    """Return `outputs`, whose gradients are `rule(*inputs, *upstreams)`, as in `link_rule`."""
    kept = (*[None] * unused, *inputs[unused:])
    is_alone = len(outputs) == 1  # its upstream is never `None`
    specs = [(y.dtype, y.shape if is_alone or y.shape.is_fully_defined() else tf.shape(y)) for y in outputs]

    def backward(*upstreams):
        return rule(*kept, *map(dense, upstreams, *zip(*specs, strict=True)))

    if tf.executing_eagerly():
        outputs = [fresh(y) if any(y is x for x in inputs) else y for y in outputs]
    else:
        outputs = _linked_node(name, outputs, rule, inputs)
    _internals.record_reverse(name, outputs, inputs, backward)
    _internals.record_forward(name, outputs, inputs, backward)
    _closed_over.link(inputs, outputs)
    return outputs


def with_rule(name, outputs, rule, *inputs):
    """Return `outputs` with the gradients `rule(*inputs, *upstreams)` as in `link_rule`, in a mapped function too."""
    if _internals.missing is not None:
        linked = tf.custom_gradient(
            lambda *inputs: ([tf.identity(y) for y in outputs], lambda *upstreams: rule(*inputs, *upstreams))
        )
        return linked(*inputs)
    return _link(name, outputs, rule, inputs)


def _linked_node(name, outputs, rule, inputs):
    """Return `outputs` as those of a node whose symbolic gradient is the rule."""
    n = len(outputs)
    with _internals.stop_recording():
        outputs = tf.identity_n([*outputs, *inputs])[:n]
    op = outputs[0].op
    itself = weakref.ref(op)

    def gradient(node, *upstreams):
        node = itself() if node is None else node  # without a node, the gradient is being traced for a SavedModel
        return [*[None] * n, *rule(*node.inputs[n:], *upstreams[:n])]

    _internals.override_gradient(op, gradient, name)
    op.pfor_converter = lambda loop: _linked_rows(name, n, rule, loop)
    return outputs


def _linked_rows(name, n, rule, loop):
    """Convert a linked node for `tf.vectorized_map`, which would lose its rule: map the rule too."""
    loop.stack_inputs()
    tensors = [x.t for x in loop.inputs]

    def mapped_rule(*operands):
        present = []

        def pull_row(slices):
            grads = rule(*slices)
            present[:] = [grad is not None for grad in grads]
            return [grad for grad in grads if grad is not None]

        found = iter(tf.vectorized_map(pull_row, operands, warn=False))
        return [next(found) if given else None for given in present]

    return [_internals.mark_stacked(x) for x in [*_link(name, tensors[:n], mapped_rule, tensors[n:]), *tensors[n:]]]


class Rule:
    """The rule of one call: one gradient or `None` per output in; one per primal, variable and hidden value out."""

    def __init__(self, call, grad_fn, variables, n_hidden=0):
        self.call, self.grad_fn, self.variables, self.n_hidden = call, grad_fn, variables, n_hidden

    def __call__(self, *upstreams):
        grads, variable_grads = self.call.backward(self.grad_fn, upstreams, self.variables)
        return grads + variable_grads + [None] * self.n_hidden


def dense(upstream, dtype, shape):
    if not (dtype.is_floating or dtype.is_complex):
        return None
    return tf.zeros(shape, dtype) if upstream is None else tf.convert_to_tensor(upstream)


@contextmanager
def in_state(state, value=True):
    """Set a state of this thread inside the context; yield its previous value."""
    before = is_within(state)
    setattr(_local, state, value)
    try:
        yield before
    finally:
        setattr(_local, state, before)


def is_within(state):
    return getattr(_local, state, False)


def transposing():
    """Note, inside the context, that gradients will be transposed, so that rules must be linear."""
    return in_state("transposing")


def is_transposing():
    return is_within("transposing")


def _run_of_rule():
    """Yield whether the rule will be transposed; what the rule itself differentiates will not."""
    return in_state("transposing", False)


# Across the boundary of a function's graph. The graph of its gradient is built once and serves every use: unneeded
# gradients, second order and forward mode. What is wrong in one use can only be refused in all of them, or made NaN.


def _across_graphs(name, rule, upstreams, inputs, n_guards):
    marked = [None if u is None else tf.identity(u) for u in upstreams]
    grads, fault = _linear.run(rule, marked, name)
    if fault:
        for u in marked:
            if u is not None:
                _internals.override_gradient(u.op, _refuse_second_order(name, fault), name)
    return grads + [_not_a_number(x, marked) for x in inputs[len(inputs) - n_guards :]]


def _refuse_second_order(name, fault):
    def gradient(op, upstream):
        if op is None:  # traced for a SavedModel, which cannot raise
            return upstream * tf.cast(float("nan"), upstream.dtype)
        if _internals.current_graph() is op.graph and not is_transposing():
            return upstream
        raise _linear.in_one_graph_alone(name, fault)

    return gradient


def _guard_closed_over(x, error):
    """Return the closed-over `x` with a gradient that raises `error` where it is certain to be needed.

    A call of the function's graph refuses a watched `x`; in other cases where a gradient crosses graphs, it is NaN.
    """

    def gradient(node, upstream):
        if node is not None and _internals.current_graph() is node.graph:
            raise error
        return upstream

    guarded = _internals.identity_node([x], gradient)[0]
    _internals.guard(guarded, str(error))
    return guarded


def _not_a_number(x, upstreams):
    """Return NaN as the gradient of `x`; its transpose is NaN as soon as `x` has a nonzero tangent."""
    upstream = next(u for u in upstreams if u is not None)
    nan = tf.fill(tf.shape(x), tf.cast(float("nan"), x.dtype))

    def gradient(node, tangent, _):
        spoilt = tf.reduce_sum(tf.where(tf.equal(tangent, 0), tf.zeros_like(tangent), nan))
        return [None, tf.fill(tf.shape(upstream), tf.cast(spoilt, upstream.dtype))]

    return _internals.identity_node([nan, upstream], gradient)[0]


def _vectorize_rule(name, rule, n, is_rule, loop):
    """Convert a rule's node for `tf.vectorized_map`: return the mapped outputs of one node with the mapped rule."""
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
        except Exception as error:  # it does not matter unless the call is differentiated
            concrete, fault = None, late_errors.without_frames(error, "TensorFlow")
    captured = [] if fault else concrete.captured_inputs
    place = {_internals.tensor_id(y): i for i, y in enumerate(node.outputs[:n])}  # its own outputs are not mapped yet
    own = [place.get(_internals.tensor_id(x)) for x in captured]
    residuals = [
        _internals.convert_by_loop(loop.pfor, x) if i is None else None for x, i in zip(captured, own, strict=True)
    ]
    loop.stack_inputs()
    tensors = [x.t for x in loop.inputs]

    def use_results(results):
        residuals[:] = [r if i is None else (results[i], True) for r, i in zip(residuals, own, strict=True)]

    def mapped_rule(*upstreams):
        if fault:
            raise late_errors.again(fault)
        moving = [x for x, has_axis in residuals if has_axis]

        def pull_row(slices):
            ours = iter(slices[len(kept) :])
            captured = [next(ours) if has_axis else x for x, has_axis in residuals]
            return _internals.call_with_captures(concrete, list(slices[: len(kept)]), captured)

        found = tf.vectorized_map(pull_row, [*(upstreams[i] for i in kept), *moving], warn=False) if present else []
        grads = [None] * (len(tensors) - n)
        for i, grad in zip(present, found, strict=True):
            grads[i] = grad
        return grads

    results = cut(name, tensors[:n], tensors[n:], mapped_rule, is_rule=is_rule, use_results=use_results)
    return [_internals.mark_stacked(x) for x in [*results, *tensors[n:]]]
