"""Every private part of TensorFlow that this backend uses; no other file imports `tensorflow.python`."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
import weakref
from contextlib import contextmanager, nullcontext

import tensorflow as tf

from multiop import errors
from multiop._loading import versions

versions.refuse_old("tensorflow", tf.__version__)
IS_TESTED = versions.is_whole("tensorflow", tf.__version__)
MOST_NESTED = 8  # how many forward accumulators may be nested
# pfor's _create_op copies only the attributes of an operation
COPIES = "https://github.com/tensorflow/tensorflow/blob/v2.21.0/tensorflow/python/ops/parallel_for/pfor.py"

missing = None  # why no part is used, if so: what needs the parts is then done by `_public`, or refused
try:
    if not IS_TESTED:
        raise ImportError(versions.untested_message("tensorflow", tf.__version__))
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import backprop, context, execute, forwardprop, record
    from tensorflow.python.eager.polymorphic_function import concrete_function
    from tensorflow.python.framework import function_def_to_graph, op_def_registry, ops
    from tensorflow.python.ops import gradients_util, resource_variable_ops

    _PARTS = (
        pywrap_tfe.TFE_Py_PackJVPs, pywrap_tfe.TFE_Py_TapeSetIsStopped, pywrap_tfe.TFE_Py_TapeSetStopOnThread,
        pywrap_tfe.TFE_Py_TapeSetRestartOnThread, pywrap_tfe.TFE_Py_RegisterGradientFunction,
        backprop._gradient_function, backprop.GradientTape._push_tape,
        forwardprop.ForwardAccumulator._push_accumulator, gradients_util.PossibleTapeGradientTypes,
        gradients_util.POSSIBLE_GRADIENT_TYPES_FIRST_ORDER, gradients_util.POSSIBLE_GRADIENT_TYPES_HIGHER_ORDER,
        context.Context.add_op_callback, context.Context.remove_op_callback,
        context.Context.function_call_options, context.FunctionCallOptions,
        context.Context.get_function_def, execute.execute, execute.execute_with_callbacks,
        resource_variable_ops.variable_accessed,
        record.record_operation_backprop_only, record.record_operation_forwardprop_only,
        concrete_function.ConcreteFunction._select_forward_and_backward_functions,
        concrete_function._DelayedRewriteGradientFunctions.forward_backward,
        ops.gradient_registry.lookup, ops.gradient_registry._registry,
        function_def_to_graph.function_def_to_graph, op_def_registry.get,
    )  # fmt: skip

    EagerTensor = ops.EagerTensor
    sizes, dtype_number = EagerTensor._shape_tuple, EagerTensor._datatype_enum  # of an eager tensor, in no Python call
    VariableWatcher = record.VariableWatcher
    stop_recording = record.stop_recording
    anything_records = record.could_possibly_record
    uid = ops.uid
except (ImportError, AttributeError) as error:
    missing, pywrap_tfe, EagerTensor = str(error), None, None

    def stop_recording():
        return tf.init_scope() if tf.executing_eagerly() else nullcontext()

    def anything_records():
        return True  # a wrong True only costs time


def _convert_product(usual, node):
    """Convert a product of two mapped matrices for `tf.vectorized_map`, as TensorFlow does from 2.19 on."""
    (a, is_a_mapped, _), (b, is_b_mapped, _) = node.input(0), node.input(1)
    if not (is_a_mapped and is_b_mapped):
        return usual(node)
    transposed = {name: node.get_attr(name) for name in ("transpose_a", "transpose_b")}
    return mark_stacked(tf.matmul(a, b, **transposed))


if tf.__version__.startswith("2.18."):
    # it conjugates what is transposed: https://github.com/tensorflow/tensorflow/issues/52148
    from tensorflow.python.ops.parallel_for.pfor import _pfor_converter_registry as converters

    converters["MatMul"] = functools.partial(_convert_product, converters["MatMul"])

errors.MultiopError.ag_pass_through = True  # otherwise AutoGraph replaces it by an error of its own
executing_eagerly = tf.executing_eagerly if missing else context.context().executing_eagerly  # in a third of the calls


def traced(fun):
    """Return a user's function as AutoGraph rewrites it, if AutoGraph would have reached it by itself."""
    own = getattr(fun, "__globals__", {}).get("__name__", type(fun).__module__)  # of a transform's result: its class
    if executing_eagerly() or own.startswith("multiop."):
        return fun
    autograph = getattr(tf.__internal__, "autograph", None)  # internal: it may be missing
    if autograph is None or not _has_readable_source(fun):
        return fun
    return autograph.tf_convert(fun, autograph.control_status_ctx())


def _has_readable_source(fun):
    """Say whether AutoGraph finds the source of a function: otherwise it warns at length, and calls it as it is."""
    if not isinstance(fun, types.FunctionType):
        return True
    try:
        inspect.getsource(fun)
        if fun.__name__ == "<lambda>":  # of two in one line, AutoGraph cannot tell which is meant
            tf.autograph.to_graph(fun)
    except Exception:
        return False
    return True


_local = threading.local()


_replacing = threading.Lock()
_replacements = {}  # (owner, name) -> what stands there, what stood there, and how many blocks of all threads need it


@contextmanager
def _replace_meanwhile(owner, name, make):
    """Let `make(original)` stand for a function of TensorFlow while any thread is inside such a block."""
    with _replacing:
        if (owner, name) not in _replacements:
            original = getattr(owner, name)
            _replacements[owner, name] = [make(original), original, 0]
            setattr(owner, name, _replacements[owner, name][0])
        _replacements[owner, name][2] += 1
    try:
        yield
    finally:
        with _replacing:
            new, original, count = _replacements[owner, name]
            _replacements[owner, name][2] -= 1
            if count == 1:
                del _replacements[owner, name]
                if getattr(owner, name) is new:  # nobody else has replaced it meanwhile
                    setattr(owner, name, original)


@contextmanager
def of_first_order():
    """Note that the tape that is entered next takes first derivatives alone, as far as no other tape records too.

    A persistent tape otherwise has TensorFlow prepare a compiled function for any order: it then passes zeros to its
    intermediate results, and zero times infinity is NaN (https://github.com/tensorflow/tensorflow/issues/60468).
    """
    before = getattr(_local, "to_enter", -1)
    _local.to_enter = -1 if anything_records() else 1
    counts = _count_meanwhile() if _local.to_enter == 1 else nullcontext()
    try:
        with counts:
            yield
    finally:
        _local.to_enter = before


@contextmanager
def _count_meanwhile():
    with (
        _replace_meanwhile(backprop.GradientTape, "_push_tape", _count_entries),
        _replace_meanwhile(forwardprop.ForwardAccumulator, "_push_accumulator", _count_entries),
        _replace_meanwhile(gradients_util, "PossibleTapeGradientTypes", _possible_types),
    ):
        yield


def _count_entries(enter):
    """Return a method that enters a tape or accumulator, and counts."""

    @functools.wraps(enter)
    def enter_counted(self):
        _local.to_enter = getattr(_local, "to_enter", -1) - 1
        enter(self)

    return enter_counted


def _possible_types(usual):
    def possible_types(tensors):
        found = usual(tensors)
        is_first = found == gradients_util.POSSIBLE_GRADIENT_TYPES_HIGHER_ORDER and getattr(_local, "to_enter", -1) == 0
        return gradients_util.POSSIBLE_GRADIENT_TYPES_FIRST_ORDER if is_first and executing_eagerly() else found

    return possible_types


@contextmanager
def variables_reported_to(report):
    """Call `report(variable)` for each variable that this thread reads inside the context, trainable or not."""
    before = getattr(_local, "reports", ())
    _local.reports = (*before, report)
    is_known = missing is None  # TensorFlow's own watcher only sees trainable ones
    try:
        with (
            _replace_meanwhile(resource_variable_ops, "variable_accessed", _report_access)
            if is_known
            else nullcontext()
        ):
            yield
    finally:
        _local.reports = before


def _report_access(usual):
    def variable_accessed(variable):
        for report in getattr(_local, "reports", ()):
            report(variable)
        usual(variable)

    return variable_accessed


def variables_given():
    """Return the variables among the arguments of the reported operation, which reads them without reporting them."""
    frame = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__package__")).startswith(__package__):
        frame = frame.f_back
    given = []
    for value in list(frame.f_locals.values()) if frame is not None else ():
        given += value if isinstance(value, (list, tuple)) else [value]
    return [x for x in given if isinstance(x, resource_variable_ops.BaseResourceVariable)]


def read_variable(handle):
    """Return the value of the variable with `handle` without notifying its watchers."""
    dtype = tf.dtypes.as_dtype(handle._handle_data.shape_and_type[0].dtype)
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)


@contextmanager
def resume_recording():
    """Let tapes and accumulators record inside the context, though they do not while a function is called."""
    stopped = pywrap_tfe.TFE_Py_TapeSetIsStopped()
    if stopped:
        pywrap_tfe.TFE_Py_TapeSetRestartOnThread()
    try:
        yield
    finally:
        if stopped:
            pywrap_tfe.TFE_Py_TapeSetStopOnThread()


def tangents_of(xs):
    """Return the tangents of `xs` on forward accumulators."""
    return pywrap_tfe.TFE_Py_PackJVPs(list(xs))[1]


def is_watched(x):
    """Say whether a tape or a forward accumulator follows `x`."""
    return record.should_record_backprop([x]) or has_tangent(x)


def has_tangent(x):
    """Say whether a forward accumulator follows `x`."""
    return any(pywrap_tfe.TFE_Py_PackJVPs([x])[0])


def has_recorded(tape, xs):
    """Say whether a persistent tape that has ended watched or recorded any of `xs`, or a tape does that records now."""
    pywrap_tfe.TFE_Py_TapeSetAdd(tape._tape._tape)
    try:
        return record.should_record_backprop([x.handle if isinstance(x, tf.Variable) else x for x in xs])
    finally:
        pywrap_tfe.TFE_Py_TapeSetRemove(tape._tape._tape)


def tensor_id(x):
    """Return a key that no other tensor of the process ever gets."""
    return x._id if missing is None else x.ref()


def record_reverse(name, outputs, inputs, backward):
    """Make `backward` the gradient of `outputs` on every tape that watches one of `inputs`."""
    record.record_operation_backprop_only(name, outputs, inputs, backward)


def record_forward(name, outputs, inputs, transposed):
    """Make the transpose of `transposed` the tangent map of `outputs` on every forward accumulator."""
    record.record_operation_forwardprop_only(name, outputs, inputs, transposed, None)


def keep_recorded(tensors):
    """Keep the tapes' records of `tensors` as long as the tapes live.

    An accumulator uses an output before the tapes record it, so that use is missing from the tapes' reference count.
    When the tangent is dropped, as a rule drops those of its residuals, the tapes would take the output for unused.
    """
    with stop_recording():
        held = tf.zeros([])

    def backward(_, held=held):  # the tapes hold this function, which holds the output, so the record stays
        return [None] * (len(tensors) * MOST_NESTED)

    record_reverse("Kept", [held], [*tensors] * MOST_NESTED, backward)


def current_graph():
    """Return the graph that is being built, or `None` in eager mode."""
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def identity_node(tensors, gradient):
    """Return `tensors` as the outputs of one node whose symbolic gradient is `gradient(node, *upstreams)`."""
    graph = ops.get_default_graph()
    name = f"MultiopGradient{uid()}"
    # the graph, not the registry, keeps what the gradient closes over
    if not hasattr(graph, "_multiop_gradients"):
        graph._multiop_gradients = []
    graph._multiop_gradients.append(gradient)
    reference = weakref.ref(gradient)

    def registered(node, *upstreams):
        return reference()(node, *upstreams)

    _register(graph, name, registered)
    with graph.gradient_override_map({"IdentityN": name}), stop_recording():
        return tf.identity_n(tensors)


def _register(graph, name, gradient):
    """Register a gradient under a name for as long as its graph lives: TensorFlow never drops a name by itself.

    A copy of a node stands in a graph that keeps the one which it is a copy from.
    """
    ops.RegisterGradient(name)(gradient)
    if not hasattr(graph, "_multiop_names"):
        graph._multiop_names = []
        weakref.finalize(graph, _forget, graph._multiop_names).atexit = False
    graph._multiop_names.append(name)


def _forget(names):
    for name in names:
        ops.gradient_registry._registry.pop(name, None)


def override_gradient(op, gradient, name):
    """Make `gradient(op, *upstreams)` the symbolic gradient of `op`, under a name that begins with `name`."""
    name = f"Multiop/{name}/{uid()}"
    _register(op.graph, name, gradient)
    op._set_attr("_gradient_op_type", tf.compat.v1.AttrValue(s=name.encode()))


def passes_gradients(op_type):
    """Say whether operations of this type may have a gradient."""
    try:
        return ops.gradient_registry.lookup(op_type) is not None
    except LookupError:  # a function call
        return True


@contextmanager
def operations_reported_to(step):
    """Call `step(op_type, inputs, outputs)` for each operation that this thread runs inside the context.

    In a graph the calls come at the end, and whenever the yielded function is called.
    """
    graph = current_graph()
    if graph is not None:
        passed = len(graph.get_operations())

        def catch_up():
            nonlocal passed
            operations = graph.get_operations()[passed:]
            passed += len(operations)
            for op in operations:
                step(op.type, op.inputs, op.outputs)

        yield catch_up
        catch_up()
        return

    def on_operation(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if graph is None and isinstance(outputs, (tuple, list)):
            step(op_type if isinstance(op_type, str) else op_type.decode(), inputs, outputs)

    ctx = context.context()
    # TensorFlow's own one sees no callbacks; a copy of the other, since a user's callbacks may have put that there
    with _replace_meanwhile(execute, "execute", lambda usual: functools.partial(execute.execute_with_callbacks)):
        ctx.add_op_callback(on_operation)
        try:
            yield lambda: None
        finally:
            ctx.remove_op_callback(on_operation)


@contextmanager
def distinct_gradients():
    """Inside the context, this thread's tapes never pass the same tensor on to two operands of an operation."""

    def apart(*args):
        grads = backprop._gradient_function(*args)
        if not getattr(_local, "apart", False):
            return grads
        if not isinstance(grads, (list, tuple)):
            return [tf.identity(grads)]
        return [tf.identity(grad) if isinstance(grad, (tf.Tensor, tf.IndexedSlices)) else grad for grad in grads]

    _local.apart = True
    pywrap_tfe.TFE_Py_RegisterGradientFunction(apart)
    try:
        yield
    finally:
        _local.apart = False
        pywrap_tfe.TFE_Py_RegisterGradientFunction(backprop._gradient_function)


@contextmanager
def without_running():
    """Inside the context, operations only compute shapes and dtypes, and no tape records them."""
    with stop_recording(), tf.__internal__.FuncGraph("abstract").as_default():
        yield


def functions_called(op_type, outputs):
    """Return the graphs, with `inputs` and `outputs`, of the functions that an operation calls, as far as known."""
    if missing is not None:
        return []
    if op_def_registry.get(op_type) is None:  # an eager function call: its type is the name of the function
        return [_function_graph(op_type)]
    if not outputs or hasattr(outputs[0], "numpy"):
        return []
    attributes = outputs[0].op.node_def.attr.values()
    functions = [f for attribute in attributes for f in (attribute.func, *attribute.list.func)]  # a list in "Case"
    return [_function_graph(f.name, outputs[0].op.graph) for f in functions if f.name]


def loop_called(outputs):
    """Return the graphs of a loop's condition and body, or `None` if it runs eagerly or they are unknown."""
    if missing is not None or not outputs or hasattr(outputs[0], "numpy"):
        return None
    attributes = outputs[0].op.node_def.attr
    return [_function_graph(attributes[name].func.name, outputs[0].op.graph) for name in ("cond", "body")]


def calls_function(op_type):
    """Say whether an eager operation calls a compiled function, as far as known: its type is the function's name."""
    return missing is None and op_def_registry.get(op_type) is None


def reaches(op_type, outputs):
    """Return for each output of an operation the operands that it may pass a gradient to, `None` for all of them."""
    if calls_function(op_type):
        return _reaches(op_type)
    if op_type not in _CALLS:
        return [None] * len(outputs)
    per_body = [_reaches_in(body) for body in functions_called(op_type, outputs)]
    first = _CALLS[op_type]
    return [
        {first + i for body in per_body for i in body[k]} if all(body[k] is not None for body in per_body) else None
        for k in range(len(outputs))
    ]


# operations that pass their operands to functions -> the index of the first operand that is passed
_CALLS = {"Case": 1, "If": 1, "PartitionedCall": 0, "StatefulPartitionedCall": 0, "StatelessCase": 1, "StatelessIf": 1}


@functools.lru_cache(maxsize=256)
def _reaches(name):
    return _reaches_in(_function_graph(name))


def _reaches_in(body):
    """Return for each output of a graph the positions of the inputs that it may pass a gradient to."""
    found = _reached_in(body, body.inputs)
    return [found.get(tensor_id(y), set()) for y in body.outputs]


def _reached_in(body, xs, stops=()):
    """Return for each tensor of a graph, by id, the positions of those of `xs` that it may pass a gradient to."""
    found = {tensor_id(x): {i} for i, x in enumerate(xs)}
    stops = set(map(tensor_id, stops))
    for op in body.get_operations():
        if not passes_gradients(op.type) or not any(tensor_id(x) in found for x in op.inputs):
            continue
        operands = [found.get(tensor_id(x), set()) for x in op.inputs]
        for y, reached in zip(op.outputs, reaches(op.type, op.outputs), strict=True):
            if is_differentiable(y) and tensor_id(y) not in stops:
                chosen = operands if reached is None else [operands[i] for i in reached]
                found.setdefault(tensor_id(y), set()).update(*chosen)
    return found


def guard(x, message):
    """Mark the operation that made `x`: its operand must not get a gradient, for the reason `message`."""
    x.op._set_attr(_GUARD, tf.compat.v1.AttrValue(s=message.encode()))
    _check_calls()


_GUARD = "_multiop_guard"


@functools.cache  # installed once, and only if there is a guard
def _check_calls():
    """Make compiled functions refuse watched operands that may get a gradient through a guard."""
    function = concrete_function.ConcreteFunction
    select = function._select_forward_and_backward_functions  # called if tapes or accumulators may follow the call

    def select_checked(self, args, *how):
        for i, message in _guards_in(self._func_graph).items():
            if is_watched(args[i]):
                raise errors.ClosedOverError(message)
        return select(self, args, *how)

    function._select_forward_and_backward_functions = select_checked


def _guards_in(body):
    """Return, by position, the message of a guard through which an input of a graph may get a gradient."""
    if not hasattr(body, "_multiop_guards"):
        reached, body._multiop_guards = None, {}
        for op in body.get_operations():
            for operand, message in _guards_of(op):
                reached = _reached_in(body, body.inputs) if reached is None else reached
                body._multiop_guards.update(dict.fromkeys(reached.get(tensor_id(operand), ()), message))
    return body._multiop_guards


def refuse_guarded(ys, xs, stops):
    """Raise if a gradient of `ys` with respect to `xs` may pass a guard, also one in a called function."""
    if not _check_calls.cache_info().currsize:  # there is no guard
        return
    ys, xs, stops = ([x for x in of if tf.is_symbolic_tensor(x)] for of in (ys, xs, stops))
    waiting, behind = [y.op for y in ys], set()
    while waiting:
        op = waiting.pop()
        if op not in behind:
            behind.add(op)
            waiting += [x.op for x in op.inputs]
    guarded = [found for op in behind if op.type != "IdentityN" for found in _guards_of(op)]
    reached = _reached_in(current_graph(), xs, stops) if guarded else {}
    for operand, message in guarded:
        if reached.get(tensor_id(operand)):
            raise errors.ClosedOverError(message)


def _guards_of(op):
    """Return the operands that an operation passes to guards, with the messages of the guards."""
    if op.type == "IdentityN":
        attributes = op.node_def.attr
        return [(op.inputs[0], attributes[_GUARD].s.decode())] if _GUARD in attributes else []
    if op.type not in _CALLS and op.type not in _LOOPS:
        return []
    first = _CALLS.get(op.type, 0)
    bodies = functions_called(op.type, op.outputs)
    return [(op.inputs[first + i], message) for body in bodies for i, message in _guards_in(body).items()]


_LOOPS = ("While", "StatelessWhile")


def is_differentiable(x):
    """Say whether a gradient may flow through a tensor of this dtype."""
    return x.dtype.is_floating or x.dtype.is_complex or x.dtype == tf.variant


def _function_graph(name, graph=None):
    """Return the graph of a function; `graph`, which contains the call, may be the only one that knows the function."""
    try:
        return function_def_to_graph.function_def_to_graph(context.context().get_function_def(name))
    except ValueError:
        while graph is not None:
            if name in graph._functions:
                return graph._functions[name].graph
            graph = getattr(graph, "outer_graph", None)
        raise


def op_types(op_type, outputs):
    """Return the types of an operation and of all operations in the functions that it calls."""
    found = {op_type}
    for body in functions_called(op_type, outputs):
        for op in body.get_operations():
            found |= op_types(op.type, op.outputs)
    return found


def outer_source(graph, x):
    """Return the outermost tensor that `x` is a capture of, or `None` if `x` belongs to `graph` itself."""
    source = None
    while x is not None:
        found = next((outer for outer, inner in getattr(graph, "captures", ()) if inner is x), None)
        source = found if found is not None else source
        graph, x = getattr(found, "graph", None), found
    return source


def are_followed(xs):
    """Say whether a tape or a forward accumulator follows any of `xs`."""
    return pywrap_tfe.TFE_Py_TapeSetPossibleGradientTypes(xs) != gradients_util.POSSIBLE_GRADIENT_TYPES_NONE


def traced_function(fn, xs):
    """Return the concrete function of `fn` for tensors like `xs`."""
    return tf.function(fn, autograph=False).get_concrete_function(*[tf.TensorSpec(x.shape, x.dtype) for x in xs])


def callable_of(concrete):
    """Return what calls a concrete function on a list of eager tensors, as its own call does in five times as long."""
    return _callable(concrete._inference_function, concrete.captured_inputs)


def _callable(function, captured):
    name, n, ctx = function.name.decode(), len(function.function_type.flat_outputs), context.context()

    def call(xs):
        return execute.execute(name, n, [*xs, *captured] if captured else xs, _AS_WRITTEN, ctx)

    call.function = function  # which TensorFlow would drop
    return call


# a graph is optimized where that pays, and rounds otherwise than its operations do one by one
_options = tf.compat.v1.ConfigProto()
_options.graph_options.rewrite_options.disable_meta_optimizer = True
_AS_WRITTEN = ("executor_type", "", "config_proto", _options.SerializeToString())


@contextmanager
def without_optimizer():
    """Run graphs as they are written: the optimizer divides by a size of 0, which ends the process."""
    if missing is not None:
        yield
        return
    ctx = context.context()
    before = ctx.function_call_options
    options = tf.compat.v1.ConfigProto.FromString(before.config_proto_serialized)
    options.graph_options.rewrite_options.disable_meta_optimizer = True
    ctx.function_call_options = context.FunctionCallOptions(before.executor_type, options)
    try:
        yield
    finally:
        ctx.function_call_options = before


def spare_optimizer(function, xs):
    """Return `function`, whose graph runs as it is written where one of its tensors `xs` is known to hold nothing."""
    is_any_empty = any(x.shape.rank is not None and 0 in x.shape for x in xs)
    return without_optimizer()(function) if is_any_empty else function


def with_gradient(concrete):
    """Return calls of a concrete function that keeps what its gradient needs, and of that gradient.

    Returns:
        The first returns `n` outputs and what it keeps. The second takes a list of upstreams, one for each output that
        is differentiable, and the two; it is `None` where TensorFlow's gradient is not dense. And `n`.
    """
    n, captured = len(concrete.outputs), concrete.captured_inputs
    forward, backward = concrete._delayed_rewrite_functions.forward_backward()
    places = {id(y): k for k, y in reversed(list(enumerate(concrete.graph.outputs)))}
    sources = [(places.get(id(x)), x) for x in backward.captured_inputs]
    grads = backward.structured_outputs
    call, call_back = _callable(forward, captured), _callable(backward._inference_function, [])
    if any(isinstance(grad, tf.IndexedSlices) for grad in grads):
        return call, None, n

    def pull(upstreams, outputs, kept):
        found = [x if k is None else outputs[k] if k < n else kept[k - n] for k, x in sources]
        found = iter(call_back([*upstreams, *found]))
        return [None if grad is None else next(found) for grad in grads]

    return call, pull, n


def call_with_captures(concrete, inputs, captured):
    """Call a concrete function with other tensors in place of its captures."""
    return concrete._call_flat(inputs, captured)


def convert_by_loop(converter, x):
    """Return what `tf.vectorized_map` converts `x` of its body to: a tensor, and whether it has the mapped axis."""
    if hasattr(x, "numpy") or not converter.op_is_inside_loop(x.op):
        return x, False
    found = converter._convert_helper(x)
    return found.t, found.is_stacked


def mark_stacked(tensor):
    """Mark `tensor` as having the mapped axis, for the conversion of a `tf.vectorized_map` body."""
    from tensorflow.python.ops.parallel_for import pfor  # slow to import and rarely needed

    return pfor.wrap(tensor, True)
