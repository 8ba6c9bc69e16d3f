"""Custom gradients, and `stop_gradient`.

TensorFlow runs the function as it stands, so that what its rule closes over is linked to the inputs and second order
differentiates the rule. The outputs that the caller gets are cut off from that run: one record on the tapes, one on the
forward accumulators (the transpose of the rule) and, in a graph, one node carry the rule.
"""

from __future__ import annotations

import tensorflow as tf

from multiop import errors

from . import _internals
from .conversion import convert


def stop_gradient(x):
    if isinstance(x, tf.Variable):  # read it behind the tapes' back: watching tapes and rules must not see it used
        x = tf.raw_ops.ReadVariableOp(resource=x.handle, dtype=x.dtype)
    return tf.stop_gradient(convert(x))


def custom_call(call, primals):
    with _internals.VariableWatcher() as watcher:
        inputs = [tf.identity(x) for x in primals]
        outputs, grad_fn = call.forward(inputs)
    variables = list(watcher.watched_variables())
    if variables and not call.wants_variables(grad_fn):
        names = ", ".join(variable.name for variable in variables)
        raise errors.ClosedOverError(
            f"{call.name} closes over {names}, whose gradient would be dropped; pass them as arguments, "
            f"or give the gradient function a variables parameter"
        )
    recorded = [*primals, *(tf.convert_to_tensor(variable) for variable in variables)]
    backward = _backward_of(call, grad_fn, variables, outputs)
    if tf.executing_eagerly():
        with _internals.stop_recording():
            cut = [tf.identity(x) for x in outputs]
    else:
        unneeded = [None] * len(outputs)
        cut = _internals.graph_node([*outputs, *recorded], lambda *upstreams: unneeded + backward(*upstreams[: len(unneeded)]))
        cut = cut[: len(outputs)]
    _internals.record_reverse(call.name, cut, recorded, backward)
    _internals.record_forward(call.name, cut, recorded, backward)
    return cut


def _backward_of(call, grad_fn, variables, outputs):
    """Return the function from a gradient per output to one per primal and variable."""
    specs = [(x.dtype, x.shape if x.shape.is_fully_defined() else tf.shape(x)) for x in outputs]

    def backward(*upstreams):
        grads, variable_grads = call.backward(grad_fn, [_upstream(u, *spec) for u, spec in zip(upstreams, specs, strict=True)], variables)
        return grads + variable_grads

    return backward


def _upstream(upstream, dtype, shape):
    if not (dtype.is_floating or dtype.is_complex):
        return None
    return tf.zeros(shape, dtype) if upstream is None else tf.convert_to_tensor(upstream)
