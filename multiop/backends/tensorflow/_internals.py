"""Everything of TensorFlow that is not public and that this backend needs; nothing else imports `tensorflow.python`."""

from __future__ import annotations

import tensorflow as tf

from multiop import errors

TESTED = ((2, 16), (2, 21))  # the first and the last release whose internals were seen to behave as used here

try:
    from tensorflow.python.eager import record
    from tensorflow.python.framework import ops
except ImportError as error:
    raise errors.BackendError(
        f"TensorFlow {tf.__version__} has moved internals that multiop needs ({error}); "
        f"install a version from {TESTED[0]} to {TESTED[1]}"
    ) from error

stop_recording = record.stop_recording
VariableWatcher = record.VariableWatcher


def record_reverse(name, outputs, inputs, backward):
    """Make `backward` the gradient of `outputs` on every tape that watches one of `inputs`."""
    record.record_operation_backprop_only(name, outputs, inputs, backward)


def record_forward(name, outputs, inputs, transposed):
    """Make the transpose of `transposed` the tangent map of `outputs` on every forward accumulator."""
    record.record_operation_forwardprop_only(name, outputs, inputs, transposed, None)


def graph_node(tensors, gradient):
    """Return `tensors` as the outputs of one identity node whose symbolic gradient is `gradient(*upstreams)`."""
    name = f"MultiopCustomGradient-{ops.uid()}"
    ops.RegisterGradient(name)(lambda _, *upstreams: gradient(*upstreams))
    with tf.compat.v1.get_default_graph().gradient_override_map({"IdentityN": name}), stop_recording():
        return tf.identity_n(tensors)
