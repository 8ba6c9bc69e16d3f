"""What several operations together are: a layer, as a person would write it.

A pattern is looked for from the last operation backwards.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from multiop.porting import _patterns
from multiop.porting._graph import SEED, TRAINING, Call, Dim, DType, Expression, Item, call
from multiop.porting._patterns import Named, Number, close
from multiop.porting._rows import Untranslated, sizes, spellings
from multiop.porting.tensorflow import operations
from multiop.porting.tensorflow.flat import Edge, Operation

_COMMUTES = {"Add", "AddV2", "Mul"}
_SAME = {"Identity", "Snapshot"}
_RESHAPES = {"Reshape", "Squeeze", "ExpandDims"}


@dataclasses.dataclass
class Match:
    """What stands for an operation: the tensors that it takes, and the expression of what they are."""

    edges: list[Edge]
    build: Callable[..., Expression]  # of the expressions of the edges


class _Reading:
    """How operations are read backwards: through those that pass a tensor on."""

    def number(self, x: Edge) -> Any:
        return scalar(seen_through(x))

    def is_close(self, number: Any, wanted: float, x: Edge) -> bool:
        return close(number, wanted, x.dtype)

    def orders(self, x: Edge, kinds: str, count: int) -> list[list[Edge]]:
        x = seen_through(x)
        operation, operands = x.operation, x.operation.inputs[:count]
        if operation.is_overridden or x.index or operation.kind not in kinds.split("|") or len(operands) < count:
            return []
        return [operands, operands[::-1]] if operation.kind in _COMMUTES else [operands]


def matches(pattern: Any, edge: Edge) -> Iterator[dict[str, Any]]:
    """Yield what the names of a pattern stand for."""
    return _patterns.matches(pattern, edge, _Reading())


def seen_through(edge: Edge) -> Edge:
    """Return the tensor that was passed on unchanged."""
    while edge.operation.kind in _SAME and edge.static is None and not edge.operation.is_overridden:
        edge = edge.operation.inputs[0]
    return edge


def scalar(edge: Edge) -> Any:
    """Return the number that a tensor holds, if that is known."""
    if edge.static is None or edge.static.size != 1 or isinstance(edge.static.flat[0], Dim):
        return None
    return number(edge.static.flat[0], edge.dtype)


def number(value: Any, dtype: str) -> Any:
    """Return a number with as few digits as its dtype needs."""
    if isinstance(value, float) and dtype in ("float32", "float16") and math.isfinite(value):
        return float(str(np.dtype(dtype).type(value)))
    return value


def leaf(edge: Edge) -> Edge:
    """Return the vector that was reshaped to stand behind dimensions of size 1."""
    start = seen_through(edge)
    current = start
    while is_reshape(current):
        current = seen_through(current.operation.inputs[0])
        if current.shape == (1,) * (len(current.shape) - 1) + edge.shape[-1:] and len(current.shape) <= len(edge.shape):
            start = current
    ones = edge.shape[:-1] == (1,) * (len(edge.shape) - 1)
    return start if ones else seen_through(edge)


def is_reshape(edge: Edge) -> bool:
    return edge.operation.kind in _RESHAPES and edge.static is None and not edge.operation.is_overridden


def original(edge: Edge) -> Edge:
    """Return the tensor of the same shape, or else the first one, that was reshaped to this one."""
    edge = seen_through(edge)
    current = edge
    while is_reshape(current):
        current = seen_through(current.operation.inputs[0])
        if current.shape == edge.shape:
            return current
    return edge


# normalization

_VARIANCE = ("AddV2|Add", "variance", Number("epsilon"))
_INVERSE = [("Mul", ("Rsqrt", _VARIANCE), "gamma"), ("Rsqrt", _VARIANCE)]
_NORMS = [
    ("AddV2|Add", ("Mul", "x", inverse), rest)
    for inverse in _INVERSE
    for rest in (
        ("Sub", "beta", ("Mul", "mean", inverse)),
        ("AddV2|Add", ("Mul", ("Neg", "mean"), inverse), "beta"),
        ("Mul", ("Neg", "mean"), inverse),
    )
]
_MEAN = ("Mean", "x", "axes")
_SPREAD = ("Mean", ("SquaredDifference", "x", "center"), "axes")


@dataclasses.dataclass
class Norm:
    """A normalization: its operands, and the axes of the moments that it normalizes with."""

    x: Edge
    mean: Edge
    variance: Edge
    gamma: Edge | None
    beta: Edge | None
    epsilon: float
    axes: tuple[int, ...] | None  # None where mean and variance come from elsewhere


def norm(operation: Operation) -> Norm | None:
    """Return the normalization that an operation ends."""
    if operation.kind not in ("AddV2", "Add"):
        return None
    for match in matches(_NORMS, operation.outputs[0]):
        if match["epsilon"] < 0 or match["x"].shape != operation.outputs[0].shape:  # a scale may have more dimensions
            continue
        x, mean, variance = match["x"], original(match["mean"]), original(match["variance"])
        axes = moments(x, mean, variance)
        if axes is None:
            mean, variance = leaf(mean), leaf(variance)
        gamma, beta = (leaf(match[name]) if name in match else None for name in ("gamma", "beta"))
        return Norm(x, mean, variance, gamma, beta, match["epsilon"], axes)
    return None


def before_reshapes(edge: Edge) -> Edge:
    """Return the moment before its dimensions of size 1 were removed, or put back."""
    edge = seen_through(edge)
    while is_reshape(edge):
        edge = seen_through(edge.operation.inputs[0])
    return edge


def moments(x: Edge, mean: Edge, variance: Edge) -> tuple[int, ...] | None:
    """Return the axes that mean and variance are the moments of `x` along."""
    given = [mean, variance]
    mean, variance = before_reshapes(mean), before_reshapes(variance)
    for match in matches(_SPREAD, variance):
        center = seen_through(match["center"])
        if center.operation.kind == "StopGradient":
            center = seen_through(center.operation.inputs[0])
        if match["x"] is not x or before_reshapes(center) is not mean:
            continue
        for other in matches(_MEAN, mean):
            along, same = (np.ravel(each["axes"].static).tolist() for each in (match, other))
            if other["x"] is not x or along != same:
                continue
            axes = tuple(sorted(axis % len(x.shape) for axis in along))
            shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
            # in a square tensor, moments of the rows may stand beside the columns
            if all(((1,) * len(shape) + edge.shape)[-len(shape) :] == shape for edge in (*given, match["center"])):
                return axes
    return None


def is_vector(edge: Edge | None, x: Edge) -> bool:
    return edge is None or (len(edge.shape) == 1 and edge.shape == x.shape[-1:])


def normalization(operation: Operation) -> Match | None:
    """Batch and layer normalization."""
    parts = norm(operation)
    if parts is None or not is_vector(parts.gamma, parts.x) or not is_vector(parts.beta, parts.x):
        return None
    ndim = len(parts.x.shape)
    options = [("gamma", parts.gamma), ("beta", parts.beta)]
    edges = [parts.x]
    if parts.axes is None:
        if not is_vector(parts.mean, parts.x) or not is_vector(parts.variance, parts.x):
            return None
        function = "batch_normalization"
        options = [("moving_mean", parts.mean), ("moving_variance", parts.variance), *options]
    elif parts.axes == tuple(range(ndim - 1)):
        function = "batch_normalization_of_batch"
    elif parts.axes == (ndim - 1,):
        function = "layer_normalization"
    else:
        return None
    names = [name for name, edge in options if edge is not None]
    edges += [edge for _, edge in options if edge is not None]

    def build(x: Expression, *given: Expression) -> Expression:
        kwargs = (*zip(names, given, strict=True), ("epsilon", parts.epsilon))
        return Call(function, (x,), kwargs)

    return Match(edges, build)


def moving_average(assignment: Operation) -> tuple[Edge, Edge, float] | None:
    """Return the moving statistic, the new one and the momentum, if an assignment updates the one with the other."""
    pattern = ("AddV2|Add", ("Mul", "old", Number("momentum")), ("Mul", "new", Number("rest")))
    for match in matches(pattern, assignment.inputs[-1]):
        old = match["old"]
        if old.variable != assignment.variable or old.changed:
            continue
        if close(match["rest"] + match["momentum"], 1.0, "float32"):
            return old, match["new"], match["momentum"]
    return None


def match_tracked_norm(
    operation: Operation, assignments: Sequence[Operation]
) -> tuple[Match, list[Operation], str] | None:
    """Batch normalization by the batch, with the two assignments that keep moving statistics, and where these are."""
    parts = norm(operation)
    if parts is None or parts.axes is None or parts.axes != tuple(range(len(parts.x.shape) - 1)):
        return None
    if not is_vector(parts.gamma, parts.x) or not is_vector(parts.beta, parts.x):
        return None
    pairs = {}
    for assignment in assignments:
        average = moving_average(assignment)
        if average is None:
            continue
        old, new, momentum = average
        for name, moment in (("moving_mean", parts.mean), ("moving_variance", parts.variance)):
            if before_reshapes(new) is before_reshapes(moment):
                pairs[name] = (assignment, old, momentum)
    if len(pairs) != 2 or pairs["moving_mean"][2] != pairs["moving_variance"][2]:
        return None
    paths = {name: str(pair[0].variable) for name, pair in pairs.items()}
    prefix = paths["moving_mean"].rpartition(".")[0]
    if not prefix or any(path != f"{prefix}.{name}" for name, path in paths.items()):
        return None
    options = [(name, pair[1]) for name, pair in pairs.items()]
    options += [(name, edge) for name, edge in (("gamma", parts.gamma), ("beta", parts.beta)) if edge is not None]
    momentum = pairs["moving_mean"][2]

    def build(x: Expression, *given: Expression) -> Expression:
        kwargs = tuple(zip([name for name, _ in options], given, strict=True))
        more = (("momentum", momentum), ("epsilon", parts.epsilon), ("training", TRAINING))
        return Call("tracked_batch_normalization", (x,), (*kwargs, *more))

    match = Match([parts.x, *[edge for _, edge in options]], build)
    return match, [pair[0] for pair in pairs.values()], prefix


# products


def product(edge: Edge) -> Match | None:
    """A product with a matrix over the last dimension, which TensorFlow computes on a table."""
    operation = seen_through(edge).operation
    if operation.is_overridden:
        return None
    if operation.kind == "Reshape":
        inner = seen_through(operation.inputs[0])
        if inner.operation.kind != "MatMul" or inner.operation.is_overridden:
            return None
        return _table(inner.operation, edge.shape)
    if operation.kind == "MatMul" and not _is_turned(operation):
        x, kernel = operation.inputs
        return Match([x, kernel], lambda x, kernel: call("ops.matmul", x, kernel))
    if operation.kind == "BatchMatMulV2" and not (operation.attribute("adj_x") or operation.attribute("adj_y")):
        x, kernel = operation.inputs
        if len(kernel.shape) == 2:
            return Match([x, kernel], lambda x, kernel: call("ops.matmul", x, kernel))
    return None


def _is_turned(operation: Operation) -> bool:
    return bool(operation.attribute("transpose_a") or operation.attribute("transpose_b"))


def _table(operation: Operation, shape: tuple[Any, ...]) -> Match | None:
    x, kernel = map(seen_through, operation.inputs)
    if _is_turned(operation) or x.operation.kind != "Reshape" or x.operation.is_overridden:
        return None
    x = seen_through(x.operation.inputs[0])
    if x.operation.kind == "Transpose" and not x.operation.is_overridden:
        order = x.operation.inputs[1].static
        if order is not None and list(order) == list(range(len(order))):
            x = x.operation.inputs[0]
    if len(kernel.shape) != 2 or x.shape[-1:] != kernel.shape[:1] or shape != (*x.shape[:-1], kernel.shape[-1]):
        return None
    return Match([x, kernel], lambda x, kernel: call("ops.matmul", x, kernel))


def with_bias(operation: Operation) -> Match | None:
    """A product or a convolution, and a vector added to it."""
    if operation.kind not in ("BiasAdd", "AddV2", "Add"):
        return None
    if operation.kind == "BiasAdd" and operation.attribute("data_format") != "NHWC":
        return None
    for left, right in (operation.inputs, operation.inputs[::-1]):
        bias = leaf(right)
        if len(bias.shape) != 1 or left.shape != operation.outputs[0].shape or bias.shape != left.shape[-1:]:
            continue
        if bias.variable is None:
            continue
        whole = product(left)
        if whole is not None and whole.edges[1].variable is not None:
            return Match(
                [*whole.edges, bias], lambda x, kernel, bias: Call("dense", (x,), (("kernel", kernel), ("bias", bias)))
            )
        inner = convolution(seen_through(left).operation)
        if inner is not None:
            return Match([*inner.edges, bias], lambda x, kernel, bias, build=inner.build: build(x, kernel, bias))
        if operation.kind == "BiasAdd":
            return None
    return None


def bias_add(operation: Operation) -> Match | None:
    """A vector that was reshaped, and back."""
    if operation.kind != "BiasAdd" or operation.attribute("data_format") != "NHWC":
        return None
    value, bias = operation.inputs
    return Match([value, original(bias)], operations.bias_add)


def convolution(operation: Operation) -> Match | None:
    """A convolution, also one of sequences, which TensorFlow computes on images of height 1."""
    if operation.is_overridden:
        return None
    if operation.kind in ("Conv2D", "Conv3D", "DepthwiseConv2dNative"):
        if operation.attribute("data_format").startswith("NC"):
            return None
        options = _options(operation)
        row = operations.ROWS[operation.kind]
        return Match(list(operation.inputs[:2]), lambda x, kernel, bias=None: row(x, kernel, **options, bias=bias))
    if operation.kind != "Squeeze":
        return None
    inner = seen_through(operation.inputs[0]).operation
    if inner.kind != "Conv2D" or inner.is_overridden or inner.attribute("data_format") != "NHWC":
        return None
    lifted = [seen_through(edge).operation for edge in inner.inputs]
    if any(edge.kind != "ExpandDims" or edge.is_overridden for edge in lifted):
        return None
    x, kernel = (edge.inputs[0] for edge in lifted)
    if lifted[0].outputs[0].shape[1] != 1 or lifted[1].outputs[0].shape[0] != 1 or len(x.shape) != 3:
        return None
    if operation.outputs[0].shape != (inner.outputs[0].shape[0], *inner.outputs[0].shape[2:]):
        return None
    options = _options(inner)
    if options["padding"] == "EXPLICIT":
        return None
    for name in ("strides", "dilations"):
        options[name] = (1, *options[name][2:3], 1)
    options["data_format"] = "NWC"
    row = operations.ROWS["Conv2D"]
    return Match([x, kernel], lambda x, kernel, bias=None: row(x, kernel, **options, bias=bias))


def _options(operation: Operation) -> dict[str, Any]:
    names = ("strides", "padding", "explicit_paddings", "dilations", "data_format")
    return {name: operation.attribute(name) for name in names if name in operation.node.node_def.attr}


# activations


_ROOT = math.sqrt(0.5)
_ERF = [
    ("Mul", ("Mul", 0.5, "x"), ("Erfc", ("Mul", ("Neg", "x"), _ROOT))),
    ("Mul", ("Mul", 0.5, "x"), ("AddV2", 1.0, ("Erf", ("RealDiv", "x", math.sqrt(2))))),
    ("Mul", ("Mul", 0.5, "x"), ("AddV2", 1.0, ("Erf", ("Mul", "x", _ROOT)))),
]
_CUBIC = ("AddV2", "x", ("Mul", 0.044715, ("Pow", "x", 3)))
_TANH = [("Mul", ("Mul", 0.5, "x"), ("AddV2", 1.0, ("Tanh", ("Mul", math.sqrt(2 / math.pi), _CUBIC))))]
_HARD_SIGMOID = [("RealDiv", ("Relu6", ("AddV2", "x", 3.0)), 6.0), ("Mul", ("Relu6", ("AddV2", "x", 3.0)), 1 / 6)]
_HARD = [("Mul", "x", pattern) for pattern in _HARD_SIGMOID]


def _activation(pattern: Any, function: str, **kwargs: Any) -> Callable[[Operation], Match | None]:
    def find(operation: Operation) -> Match | None:
        out = operation.outputs[0]  # a number with dimensions of its own may give it more than `x` has
        match = next((match for match in matches(pattern, out) if match["x"].shape == out.shape), None)
        return match and Match([match["x"]], lambda x: call(function, x, **kwargs))

    return find


# dropout

_DRAWN = ("RandomUniform|StatelessRandomUniform|StatelessRandomUniformV2", "shape")
_UNIFORM = [("AddV2", ("Mul", _DRAWN, 1.0), 0.0), _DRAWN]
_MASK = Named("mask", ("GreaterEqual", Named("uniform", _UNIFORM), Number("rate")))
_DROPOUT = ("SelectV2", _MASK, ("Mul", "x", Number("scale")), 0.0)


def dropout(operation: Operation) -> Match | None:
    """Entries over the share of those that are kept, or 0, by a mask that nothing else takes: another would differ."""
    bindings = next(matches(_DROPOUT, operation.outputs[0]), None)
    if bindings is None:
        return None
    x, rate = bindings["x"], bindings["rate"]
    drawn = [edge for name in ("mask", "uniform") for edge in (bindings[name], seen_through(bindings[name]))]
    if rate >= 1 or not close(bindings["scale"], 1 / (1 - rate), "float32") or any(edge.takers != 1 for edge in drawn):
        return None
    noise = bindings["uniform"].shape
    if noise == x.shape:
        return Match([x], lambda x: call("dropout", x, rate, SEED, TRAINING))
    if len(noise) != len(x.shape) or any(a not in (1, b) for a, b in zip(noise, x.shape, strict=True)):
        raise Untranslated("dropout with a noise_shape that does not fit the tensor")
    shape = tuple(1 if a == 1 and b != 1 else None for a, b in zip(noise, x.shape, strict=True))
    return Match([x], lambda x: call("block_dropout", x, rate, shape, SEED, TRAINING))


_DRAWS = spellings(
    "RandomStandardNormal=random.normal StatelessRandomNormal=random.normal StatelessRandomNormalV2=random.normal "
    "RandomUniform=random.uniform StatelessRandomUniform=random.uniform StatelessRandomUniformV2=random.uniform "
    "TruncatedNormal=random.truncated_normal StatelessTruncatedNormal=random.truncated_normal "
    "StatelessTruncatedNormalV2=random.truncated_normal"
)


def draw(operation: Operation) -> Match | None:
    """Random numbers; a port draws its own, from the seed that it is called with."""
    if operation.kind not in _DRAWS:
        return None
    op, out = _DRAWS[operation.kind], operation.outputs[0]
    return Match([], lambda: call(op, out.shape, dtype=DType(out.dtype), seed=SEED))


def match_unstack(operation: Operation) -> Match | None:
    """One of the parts of size 1 that a tensor was split into, without that dimension."""
    if operation.kind not in ("Squeeze", "Reshape"):
        return None
    part = seen_through(operation.inputs[0])
    if part.operation.kind != "Split" or part.operation.is_overridden or part.operation.inputs[0].static is None:
        return None
    axis = part.operation.inputs[0].static.item()
    shape = part.shape
    axis %= len(shape)
    if shape[axis] != 1 or operation.outputs[0].shape != (*shape[:axis], *shape[axis + 1 :]):
        return None
    key = (*(slice(None),) * axis, part.index)
    return Match([part.operation.inputs[1]], lambda x: Item(x, key))


def match_reshapes(operation: Operation) -> Match | None:
    """Reshapes one after another."""
    if operation.kind not in _RESHAPES:
        return None
    out = operation.outputs[0]
    first = original(out)
    if first is not out:
        return Match([first], lambda x: x)
    first = seen_through(operation.inputs[0])
    if is_reshape(first):
        while is_reshape(first):
            first = seen_through(first.operation.inputs[0])
        return Match([first], lambda x: call("ops.reshape", x, sizes(out.shape)))
    return None


FINDERS: list[Callable[[Operation], Match | None]] = [
    normalization,
    with_bias,
    bias_add,
    lambda operation: product(operation.outputs[0]) if operation.kind == "Reshape" else None,
    convolution,
    _activation(_ERF, "ops.gelu", approximate=False),
    _activation(_TANH, "ops.gelu", approximate=True),
    _activation(_HARD, "ops.hard_swish"),
    _activation(_HARD_SIGMOID, "ops.hard_sigmoid"),
    _activation(("Mul", "x", ("Sigmoid", "x")), "ops.silu"),
    dropout,
    draw,
    match_unstack,
    match_reshapes,
]


def find(operation: Operation) -> Match | None:
    """Return what an operation is the end of, or `None` if it stands for itself."""
    is_known = not operation.outputs or operation.outputs[0].static is not None
    if is_known or operation.is_overridden or operation.kind in _SAME:
        return None
    return next((matched for finder in FINDERS if (matched := finder(operation)) is not None), None)
