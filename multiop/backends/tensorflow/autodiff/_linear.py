"""Whether a rule is linear in its upstream gradient, so that forward mode can transpose it."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop._values import foreign

from .. import _internals

# op type -> the operands that it is jointly linear in; those of them that stay fixed must be zero
_ALL = slice(None)
_LINEAR = {
    **dict.fromkeys((
        "AccumulateNV2", "Add", "AddN", "AddV2", "BiasAdd", "Cast", "CheckNumerics", "Complex", "Conj",
        "EnsureShape", "Identity", "IdentityN", "Imag", "Neg", "Pack", "PlaceholderWithDefault", "Real",
        "OptionalFromValue", "Snapshot", "Sub", "TensorListPushBack",
    ), _ALL),
    **dict.fromkeys((
        "AvgPool", "BatchToSpaceND", "BiasAddGrad", "BroadcastTo", "ConjugateTranspose", "Cumsum",
        "DepthToSpace", "Diag", "DiagPart", "Div", "DivNoNan", "EluGrad", "ExpandDims", "ExtractImagePatches",
        "FFT", "FFT2D", "FFT3D", "Gather", "GatherNd", "GatherV2", "IFFT", "IFFT2D", "IFFT3D", "IRFFT",
        "IRFFT2D", "LeakyReluGrad", "MatrixBandPart", "MatrixDiag", "MatrixDiagPart", "MatrixDiagPartV2",
        "MatrixDiagPartV3", "MatrixDiagV2", "MatrixDiagV3", "Mean", "MirrorPad", "MirrorPadGrad",
        "OptionalGetValue", "Pad", "RFFT", "RFFT2D", "RealDiv", "Relu6Grad", "ReluGrad", "Reshape",
        "ResizeBicubic", "ResizeBilinear", "ResizeBilinearGrad", "ResizeNearestNeighbor", "ResizeNearestNeighborGrad",
        "Reverse", "ReverseSequence", "ReverseV2", "Roll", "SegmentMean", "SegmentSum", "SeluGrad", "Slice",
        "SoftplusGrad", "SoftsignGrad", "SpaceToBatchND", "SpaceToDepth", "SplitV", "Squeeze", "StridedSlice",
        "Sum", "TensorListFromTensor", "TensorListGetItem", "TensorListPopBack", "TensorListStack", "Tile",
        "Transpose", "Unpack", "UnsortedSegmentSum", "Xdivy", "Xlog1py", "Xlogy",
    ), slice(0, 1)),
    **dict.fromkeys((
        "CholeskySolve", "MatrixSolve", "MatrixTriangularSolve", "ReciprocalGrad", "InvGrad", "RsqrtGrad",
        "ScatterNd", "SigmoidGrad", "Split", "SqrtGrad", "TanhGrad", "AvgPoolGrad",
    ), slice(1, 2)),
    **dict.fromkeys((
        "MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3",
    ), slice(0, 2)),
    **dict.fromkeys((
        "Select", "SelectV2",
    ), slice(1, 3)),
    **dict.fromkeys((
        "PadV2", "TensorListSetItem", "TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate",
    ), slice(0, 3, 2)),
    "Concat": slice(1, None), "ConcatV2": slice(0, -1), "MaxPoolGrad": slice(2, 3), "StridedSliceGrad": slice(4, 5),
    "TensorStridedSliceUpdate": slice(0, 5, 4),
}  # fmt: skip
# Products: linear in one operand while the others stay fixed
_PRODUCTS = {
    "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput",
    "Conv3D", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2", "Cross", "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput", "Einsum", "MatMul", "Mul",
    "MulNoNan",
}  # fmt: skip
# Their result depends only on the shape of the operand
_OF_SHAPE = {
    "BroadcastGradientArgs", "EmptyTensorList", "OnesLike", "Rank", "Shape", "ShapeN", "Size",
    "TensorListElementShape", "TensorListLength", "TensorListReserve", "ZerosLike",
}  # fmt: skip
# Their result may be zero whatever their operands are
_ZEROS = {"Const", "EmptyTensorList", "Fill", "TensorListReserve", "ZerosLike"}
# The name of a select between the entries of an operand and a fill for missing ones: linear in the operand
FILL = "OutOfRange"
# The name of a bool that is always false, whatever it is computed from
NEVER = "MultiopNever"
_BRANCHES = {"Case", "If", "StatelessCase", "StatelessIf"}
_LOOPS = {"StatelessWhile", "While"}
_CALLS = _BRANCHES | _LOOPS | {"PartitionedCall", "StatefulPartitionedCall"}


def run(rule, upstreams, name):
    """Return the result of `rule(*upstreams)`, and what makes it nonlinear, or `None`.

    Eagerly, there is no result if it is not linear: the rule may refuse upstream zero.
    """
    if tf.executing_eagerly():  # traced for the check, since Python can read values without leaving a trace
        fault = _fault_when_traced(rule, upstreams, name)
        return (None if fault else rule(*upstreams)), fault
    inputs = [None if u is None else tf.identity(u) for u in upstreams]
    tracker = Tracker(inputs)
    with _internals.operations_reported_to(tracker.step):
        grads = rule(*inputs)
    return grads, tracker.fault(grads)


def _fault_when_traced(rule, upstreams, name):
    kept = [i for i, u in enumerate(upstreams) if u is not None]

    def of_kept(*given):
        given = dict(zip(kept, given, strict=True))
        return [grad for grad in rule(*(given.get(i) for i in range(len(upstreams)))) if grad is not None]

    try:
        traced = tf.function(of_kept, autograph=False).get_concrete_function(*(upstreams[i] for i in kept))
    except errors.NonLinearRuleError:
        raise
    except Exception as error:
        try:
            rule(*upstreams)
        except type(error):
            raise  # the rule's own
        except Exception:  # of a value of the upstream
            raise not_linear(name, "it reads values") from error
        raise not_linear(name, "it reads values") from error
    tracker = Tracker(traced.inputs[: len(kept)])
    for op in traced.graph.get_operations():
        tracker.step(op.type, op.inputs, op.outputs)
    return tracker.fault(traced.outputs)


class Tracker:
    """Tracks what depends on the upstreams: linearly, or through `culprit`, a nonlinear operation."""

    def __init__(self, upstreams, zeros=()):
        self.linear = {_internals.tensor_id(u) for u in upstreams if u is not None}
        self.zero = {_internals.tensor_id(x) for x in zeros}
        self.culprit = {}  # tensor id -> the operation that made it nonlinear in the upstreams

    def step(self, op_type, inputs, outputs):
        """Note how `outputs` depend on the upstreams."""
        keys = [_internals.tensor_id(x) for x in inputs]
        depends = [i for i, key in enumerate(keys) if key in self.linear]
        culprit = next((self.culprit[key] for key in keys if key in self.culprit), None)
        if not depends and culprit is None:
            for y, is_zero in zip(outputs, self.gives_zero(op_type, keys, inputs, outputs), strict=True):
                if is_zero:
                    self.zero.add(_internals.tensor_id(y))
            return
        if op_type in _OF_SHAPE or _is_never(op_type, outputs):
            return
        if culprit is None:
            linear = self.through(op_type, inputs, outputs, depends)
        else:
            linear = [False] * len(outputs)
        for y, is_linear in zip(outputs, linear, strict=True):
            if is_linear is None:
                continue
            if is_linear == "zero":
                self.zero.add(_internals.tensor_id(y))
            elif is_linear:
                self.linear.add(_internals.tensor_id(y))
            else:
                self.culprit[_internals.tensor_id(y)] = culprit or op_type

    def through(self, op_type, inputs, outputs, depends):
        """Return for each output whether it is linear in operands `depends`; `None` or "zero" if it is independent."""
        if op_type in _PRODUCTS:
            return [len(depends) == 1] * len(outputs)
        if op_type == "PyFuncStateless":
            said = foreign.linear_from(outputs[0].op.name)
            first = len(inputs) if said is None else said
            rest = [i for i in range(first, len(inputs)) if i not in depends]
            return [depends[0] >= first and all(self.is_zero(inputs[i]) for i in rest)] * len(outputs)
        if op_type in _LINEAR:
            operands = range(len(inputs))[_LINEAR[op_type]]
            if op_type == "IdentityN":
                return [True if i in depends else None for i in operands]
            linear = all(i in operands for i in depends) and (
                all(i in depends or self.is_zero(inputs[i]) for i in operands) or is_fill(outputs[0])
            )
            return [linear and y.dtype not in (tf.int32, tf.int64, tf.bool) for y in outputs]
        if op_type in _LOOPS and (loop := _internals.loop_called(outputs)):
            return self.through_loop(*loop, inputs, depends)
        chosen = op_type in _BRANCHES  # chosen by the first operand, which no branch gets
        bodies = _internals.functions_called(op_type, outputs)
        if not bodies or (chosen and 0 in depends):
            return [False] * len(outputs)
        zeros = [i for i in range(chosen, len(inputs)) if self.is_zero(inputs[i])]
        results = [
            inside(body, [body.inputs[i - chosen] for i in depends], [body.inputs[i - chosen] for i in zeros])
            for body in bodies
        ]
        return [_of_branches(states) for states in zip(*results, strict=True)]

    def through_loop(self, condition, body, inputs, depends):
        """Do what `through` does, for a loop: repeat until the set of dependent loop variables is stable."""
        carried = set(depends)
        zeros = {i for i, x in enumerate(inputs) if self.is_zero(x)}
        while True:
            states = inside(body, [body.inputs[i] for i in carried], [body.inputs[i] for i in zeros - carried])
            found = carried.union(i for i, state in enumerate(states) if state in ("linear", "otherwise"))
            stay = {i for i in zeros if states[i] == "zero" or i in found}
            if (found, stay) == (carried, zeros):
                break
            carried, zeros = found, stay
        length = inside(condition, [condition.inputs[i] for i in carried])
        linear = set(length) <= {"zero", "fixed"} and all(
            states[i] in ("linear", "zero") and (i in depends or self.is_zero(inputs[i])) for i in carried
        )
        return [linear if i in carried else "zero" if i in zeros else None for i in range(len(inputs))]

    def gives_zero(self, op_type, keys, inputs, outputs):
        """Say which outputs are zero: noted as they come, since a walk back from a later operation has an end."""
        if op_type in _ZEROS:
            return [self.is_zero(y) for y in outputs]
        if op_type in _CALLS or _internals.calls_function(op_type):
            if not any(map(self.is_zero, inputs)):
                return [False] * len(outputs)
            return [found == "zero" for found in self.through(op_type, inputs, outputs, [])]
        if self.zero.isdisjoint(keys):
            return [False] * len(outputs)
        if op_type == "IdentityN":
            return [self.is_zero(x) for x in inputs]
        zero = op_type in _PRODUCTS or (op_type in _LINEAR and all(map(self.is_zero, list(inputs)[_LINEAR[op_type]])))
        return [zero] * len(outputs)

    def is_zero(self, x):
        return is_zero(x, self.zero)

    def state(self, x):
        key = _internals.tensor_id(x)
        if key in self.culprit:
            return "otherwise"
        return "linear" if key in self.linear else "zero" if self.is_zero(x) else "fixed"

    def fault(self, grads):
        """Return what makes `grads` nonlinear in the upstreams, or `None`."""
        for grad in grads:
            if grad is None:
                continue
            state = self.state(grad)
            if state == "otherwise":
                return f"the operation {self.culprit[_internals.tensor_id(grad)]}"
            if state == "fixed":
                return "a term that does not depend on it"
        return None


def inside(body, inputs, zeros=()):
    """Return how each output of a graph depends on `inputs`: "linear" or "otherwise"; if not, "zero" or "fixed"."""
    tracker = Tracker(inputs, [*zeros, *filter(is_zero, body.inputs)])
    for op in body.get_operations():
        tracker.step(op.type, op.inputs, op.outputs)
    return [tracker.state(y) for y in body.outputs]


def _of_branches(states):
    """Combine the states of an output in each branch into a result of `through`."""
    if set(states) <= {"zero", "fixed"}:
        return None if "fixed" in states else "zero"
    return set(states) <= {"zero", "linear"}


def is_fill(x):
    """Say whether `x` is an operand whose missing entries were filled in by a select named `FILL`."""
    return not hasattr(x, "numpy") and x.op.type == "SelectV2" and x.op.name.split("/")[-1].startswith(FILL)


def _is_never(op_type, outputs):
    return op_type == "LogicalAnd" and outputs[0].op.name.split("/")[-1].startswith(NEVER)


def is_zero(x, known=(), depth=8):
    """Say whether `x` is known to be zero; `known` has the ids of tensors that are."""
    if _internals.tensor_id(x) in known:
        return True
    if x.dtype == tf.resource:  # a variable
        return False
    if hasattr(x, "numpy"):
        return x.dtype == tf.variant or not np.any(x.numpy())
    source = _internals.outer_source(x.graph, x)
    if source is not None:
        return hasattr(source, "numpy") and is_zero(source)
    value = tf.get_static_value(x)
    if value is not None:
        return not np.any(value)
    op_type = x.op.type
    if op_type in _ZEROS - {"Const", "Fill"}:
        return True
    if op_type in _PRODUCTS:
        return depth > 0 and any(is_zero(y, known, depth - 1) for y in x.op.inputs)
    if op_type == "Fill":
        return is_zero(x.op.inputs[1], known)
    if op_type in _LINEAR:
        return depth > 0 and all(is_zero(y, known, depth - 1) for y in list(x.op.inputs)[_LINEAR[op_type]])
    return False


def not_linear(name, fault):
    return errors.NonLinearRuleError.of(name, fault)


def in_one_graph_alone(name, fault):
    why = (
        f"{fault}; inside a compiled function TensorFlow cannot tell forward mode from second order, so that both are "
        f"refused: take both orders inside the function, or neither"
    )
    return errors.NonLinearRuleError.of(name, why)
