"""Everything of TensorFlow that is not public and that this backend needs; nothing else imports `tensorflow.python`."""

from __future__ import annotations

import weakref
from contextlib import contextmanager

import tensorflow as tf

from multiop import errors

TESTED = "2.21"
MOST_NESTED = 8  # forward accumulators within each other
# pfor's _create_op copies an operation with its attributes alone
COPIES = "https://github.com/tensorflow/tensorflow/blob/v2.21.0/tensorflow/python/ops/parallel_for/pfor.py"

try:
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context, execute, record
    from tensorflow.python.framework import function_def_to_graph, op_def_registry, ops

    _PARTS = (
        pywrap_tfe.TFE_Py_PackJVPs, context.Context.add_op_callback, context.Context.remove_op_callback,
        context.Context.get_function_def, execute.execute_with_callbacks,
        record.record_operation_backprop_only, record.record_operation_forwardprop_only,
        ops.gradient_registry.lookup, function_def_to_graph.function_def_to_graph, op_def_registry.get,
    )  # fmt: skip
except (ImportError, AttributeError) as error:
    raise errors.BackendError(
        f"TensorFlow {tf.__version__} lacks internals that multiop needs ({error}); install version {TESTED}"
    ) from error

errors.MultiopError.ag_pass_through = True  # AutoGraph would replace it by an error of its own

VariableWatcher = record.VariableWatcher
stop_recording = record.stop_recording
anything_records = record.could_possibly_record
executing_eagerly = context.executing_eagerly
uid = ops.uid


def is_watched(x):
    """Say whether a tape or a forward accumulator follows `x`."""
    return record.should_record_backprop([x]) or has_tangent(x)


def has_tangent(x):
    """Say whether a forward accumulator follows `x`."""
    return any(pywrap_tfe.TFE_Py_PackJVPs([x])[0])


def tensor_id(x):
    """Return a number that no other tensor of the process ever has."""
    return x._id


def record_reverse(name, outputs, inputs, backward):
    """Make `backward` the gradient of `outputs` on every tape that watches one of `inputs`."""
    record.record_operation_backprop_only(name, outputs, inputs, backward)


def record_forward(name, outputs, inputs, transposed):
    """Make the transpose of `transposed` the tangent map of `outputs` on every forward accumulator."""
    record.record_operation_forwardprop_only(name, outputs, inputs, transposed, None)


def keep_recorded(tensors):
    """Keep what the tapes recorded of `tensors` for as long as the tapes live.

    An accumulator uses an output before the tapes record it, and that use is forgotten in the tapes' count; where the
    tangent is dropped, as a rule drops those of what it closes over, the tapes would take the output for unused.
    """
    with stop_recording():
        held = tf.zeros([])

    def backward(_, held=held):  # the tapes hold this function, and it the output, so that the record stays
        return [None] * (len(tensors) * MOST_NESTED)

    record_reverse("Kept", [held], [*tensors] * MOST_NESTED, backward)


def current_graph():
    """Return the graph that is being built, or `None` where operations run at once."""
    return None if tf.executing_eagerly() else ops.get_default_graph()


def identity_node(tensors, gradient):
    """Return `tensors` as the outputs of one node whose symbolic gradient is `gradient(node, *upstreams)`."""
    graph = ops.get_default_graph()
    name = f"MultiopGradient{uid()}"
    # TensorFlow keeps what is registered for good: let the graph, not the registry, keep what the gradient closes over
    if not hasattr(graph, "_multiop_gradients"):
        graph._multiop_gradients = []
    graph._multiop_gradients.append(gradient)
    reference = weakref.ref(gradient)

    @ops.RegisterGradient(name)
    def registered(node, *upstreams):
        return reference()(node, *upstreams)

    with graph.gradient_override_map({"IdentityN": name}), stop_recording():
        return tf.identity_n(tensors)


def override_gradient(op, name, gradient):
    """Make `gradient(op, *upstreams)`, registered once under `name`, the symbolic gradient of `op`."""
    try:
        ops.gradient_registry.lookup(name)
    except LookupError:
        ops.RegisterGradient(name)(gradient)
    op._set_attr("_gradient_op_type", tf.compat.v1.AttrValue(s=name.encode()))


def passes_gradients(op_type):
    """Say whether operations of a type may have a gradient."""
    try:
        return ops.gradient_registry.lookup(op_type) is not None
    except LookupError:  # a call of a function
        return True


@contextmanager
def operations_reported_to(step):
    """Call `step(op_type, inputs, outputs)` for each operation that this thread runs within; at the end in a graph."""
    graph = current_graph()
    if graph is not None:
        before = len(graph.get_operations())
        yield
        for op in graph.get_operations()[before:]:
            step(op.type, op.inputs, op.outputs)
        return

    def on_operation(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if graph is None and isinstance(outputs, (tuple, list)):
            step(op_type if isinstance(op_type, str) else op_type.decode(), inputs, outputs)

    ctx = context.context()
    execute.execute = execute.execute_with_callbacks  # for good: switched back, other threads would lose it too
    ctx.add_op_callback(on_operation)
    try:
        yield
    finally:
        ctx.remove_op_callback(on_operation)


@contextmanager
def abstractly():
    """Within, operations have shapes and dtypes but are not run, and no tape records them."""
    with stop_recording(), tf.__internal__.FuncGraph("abstract").as_default():
        yield


def functions_called(op_type, outputs):
    """Return the graphs, with `inputs` and `outputs`, of the functions that an operation calls."""
    if op_def_registry.get(op_type) is None:  # a function that runs eagerly: its type is its name
        return [_function_graph(op_type)]
    if not outputs or hasattr(outputs[0], "numpy"):
        return []
    attributes = outputs[0].op.node_def.attr.values()
    return [_function_graph(attribute.func.name) for attribute in attributes if attribute.HasField("func")]


def _function_graph(name):
    return function_def_to_graph.function_def_to_graph(context.context().get_function_def(name))


def op_types(op_type, outputs):
    """Return the type of an operation, and those of all that the functions which it calls do."""
    found = {op_type}
    for body in functions_called(op_type, outputs):
        for op in body.get_operations():
            found |= op_types(op.type, op.outputs)
    return found


def outer_source(graph, x):
    """Return the outermost tensor that `x` stands for in a function's graph, or `None` where it is of that graph."""
    source = None
    while x is not None:
        found = next((outer for outer, inner in getattr(graph, "captures", ()) if inner is x), None)
        source = found if found is not None else source
        graph, x = getattr(found, "graph", None), found
    return source


def call_with_captures(concrete, inputs, captured):
    """Call a concrete function with other tensors in place of those that it closes over."""
    return concrete._call_flat(inputs, captured)


def convert_by_loop(converter, x):
    """Return what `tf.vectorized_map` makes of `x` of its body: a tensor, and whether it has the mapped axis."""
    if hasattr(x, "numpy") or not converter.op_is_inside_loop(x.op):
        return x, False
    found = converter._convert_helper(x)
    return found.t, found.is_stacked


def stacked(tensor):
    """Tell the conversion of a `tf.vectorized_map` body that `tensor` has the mapped axis."""
    from tensorflow.python.ops.parallel_for import pfor  # slow to import, and seldom needed

    return pfor.wrap(tensor, True)
