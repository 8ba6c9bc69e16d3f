"""Statements that undo each other, and steps that a person would write as one, taken out of a graph."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from multiop.porting import _graph, _rows
from multiop.porting._graph import Body, Call, Custom, Dim, DType, Expression, Graph, Infix, Item, Node, Value, call
from multiop.porting._printing import limits, masks

_REDUCTIONS = ("ops.mean", "ops.sum", "ops.var", "ops.std", "ops.max", "ops.min", "ops.prod")


def simplify_graph(graph: Graph) -> list[Node]:
    """Return the statements without exchanges of axes that undo each other, and the like."""
    _drop_neutral(graph.nodes)
    masks.write_masks(graph.nodes)
    nodes, graph.outputs = _shorter(graph.nodes, graph.outputs)
    return _graph.without_dead(nodes, graph.outputs)


def _shorter(nodes: Sequence[Node], outputs: Expression) -> tuple[list[Node], Expression]:
    producers = {id(node.outputs[0]): node for node in nodes if len(node.outputs) == 1}
    counts = _graph.count_uses(nodes, outputs)

    def change(expression: Expression) -> Expression:
        if _graph.is_call(expression, "ops.swapaxes", "ops.reshape"):
            inner = expression.args[0]
            if isinstance(inner, Value) and id(inner) in producers and producers[id(inner)].scopes == scopes:
                inner = producers[id(inner)].expression
            if isinstance(inner, Call) and inner.function == expression.function:
                if expression.function == "ops.reshape":
                    return Call("ops.reshape", (inner.args[0], *expression.args[1:]))
                if inner.args[1:] == expression.args[1:]:
                    return inner.args[0]
            if expression.function == "ops.reshape":
                shorter = _as_channel_shuffle(expression, producers) or _reshaped_mean(expression, producers, counts)
                return shorter or expression
        if isinstance(expression, Item):
            return _sliced_once(expression, producers, counts, scopes) or expression
        if _graph.is_call(expression, "ops.squeeze"):
            inner = _here(expression.args[0], producers, scopes)
            is_undone = _graph.is_call(inner, "ops.expand_dims")
            return inner.args[0] if is_undone and _is_put(inner, expression) else expression
        if _graph.is_call(expression, "ops.expand_dims"):
            kept = _keep_reduced_axes(expression, producers, counts, scopes)
            return kept or _put_once(expression, producers, counts, scopes) or expression
        if _graph.is_call(expression, "ops.bitwise_and", "ops.logical_and"):
            return next((b for a, b in itertools.permutations(expression.args) if _is_one(a, b, producers)), expression)
        if _graph.is_call(expression, "ops.cond") and len(expression.args) > 3:
            return _without_operands(expression)
        return expression

    for node in nodes:
        scopes = node.scopes
        node.expression = _graph.rebuild(limits.named(node), change, inside=False)
        for function in _graph.functions(node.expression):
            if isinstance(function, Custom):
                function.rule_nodes, function.gradients = _shorter(function.rule_nodes, function.gradients)
            function.nodes, function.outputs = _shorter(function.nodes, function.outputs)
    replaced: dict[int, Value] = {}

    def follow(expression: Expression) -> Expression:
        while isinstance(expression, Value) and id(expression) in replaced:
            expression = replaced[id(expression)]
        return expression

    for node in nodes:
        node.expression = _graph.rebuild(node.expression, follow)
        if isinstance(node.expression, Value) and node.update is None:
            replaced[id(node.outputs[0])] = node.expression
    kept: list[Node] = []
    for node in nodes:
        if node.update is not None or not isinstance(node.expression, Value):
            kept += _as_range_loop(node, producers) or [node]
    return _merge_into_unstack(kept), _graph.rebuild(outputs, follow)


def _drop_neutral(nodes: Sequence[Node]) -> None:
    """Put `x` for `x * 1.0` and the like, unless another submodule of the kind has another number there."""
    counts: collections.Counter[Any] = collections.Counter()
    places = collections.defaultdict(list)
    for node in nodes:
        counts[keys := tuple(scope.key for scope in node.scopes)] += 1
        places[tuple(scope.kind for scope in node.scopes), counts[keys]].append(node)
    for same in places.values():
        for node in same if all(_is_neutral(each.expression) for each in same) else ():
            node.expression = node.expression.left


def _is_neutral(expression: Expression) -> bool:
    """Say whether an expression is its left side; `x + 0.0` is not, which makes 0.0 of -0.0."""
    if not isinstance(expression, Infix) or not isinstance(expression.left, Value):
        return False
    x, number, is_int = expression.left, expression.right, "int" in expression.left.dtype
    is_number = type(number) is int or (type(number) is float and not is_int and math.copysign(1, number) > 0)
    neutral = {"*": 1, "-": 0} | ({"+": 0, "//": 1} if is_int else {"/": 1})
    return is_number and x.dtype != "bool" and neutral.get(expression.operator) == number


def _here(value: Expression, producers: Mapping[int, Node], scopes: Sequence[Any]) -> Expression:
    """Return the expression that computes a value in the same submodule, or the value."""
    is_here = isinstance(value, Value) and id(value) in producers and producers[id(value)].scopes == scopes
    return producers[id(value)].expression if is_here else value


def _is_put(expand: Call, squeeze: Call) -> bool:
    """Say whether the axis that is taken away is the one that was put in."""
    ndim = squeeze.args[0].ndim if isinstance(squeeze.args[0], Value) else 0
    axes = [dict(zip(("x", "axis"), each.args, strict=False)) | dict(each.kwargs) for each in (expand, squeeze)]
    put, taken = (each.get("axis") for each in axes)
    return bool(ndim) and isinstance(put, int) and isinstance(taken, int) and put % ndim == taken % ndim


_WHOLE = slice(None)


def _sliced_once(
    expression: Item, producers: Mapping[int, Node], counts: collections.Counter[int], scopes: Sequence[Any]
) -> Item | None:
    """Return slices of different axes, one after the other, as one."""
    inner = _here(expression.x, producers, scopes)
    if not isinstance(inner, Item) or (isinstance(expression.x, Value) and counts[id(expression.x)] > 1):
        return None
    if not all(isinstance(part, slice) for part in (*inner.key, *expression.key)):
        return None
    key = _graph.join_keys(inner.key, expression.key)
    return None if key is None else Item(inner.x, key)


def _merge_into_unstack(nodes: Sequence[Node]) -> list[Node]:
    """Return the statements with one for the parts of a tensor along its first axis that are taken one by one."""
    kept: list[Node] = []
    start = 0
    while start < len(nodes):
        first = nodes[start].expression
        x = first.x if isinstance(first, Item) else None
        size = x.shape[0] if isinstance(x, Value) and x.shape else None
        parts = nodes[start : start + size] if isinstance(size, int) and size > 1 else []
        taken = [part.expression if isinstance(part.expression, Item) else None for part in parts]
        numbers = [item.key[0] for item in taken if item is not None and item.x is x and len(item.key) == 1]
        is_all = len(parts) == size and numbers == [*range(len(parts))] and all(type(n) is int for n in numbers)
        is_all = is_all and all(part.update is None and part.scopes == nodes[start].scopes for part in parts)
        if is_all:
            outputs = [part.outputs[0] for part in parts]
            kept.append(dataclasses.replace(nodes[start], outputs=outputs, expression=call("ops.unstack", x)))
        else:
            kept.append(nodes[start])
        start += len(parts) if is_all else 1
    return kept


def _producing_expression(value: Expression, producers: Mapping[int, Node]) -> Expression:
    """Return the expression that computes a value, or what is no value."""
    return producers[id(value)].expression if isinstance(value, Value) and id(value) in producers else value


def _as_channel_shuffle(expression: Call, producers: Mapping[int, Node]) -> Call | None:
    """Return the channel shuffle that a reshape is the last step of."""
    swap = _producing_expression(expression.args[0], producers)
    if not _graph.is_call(swap, "ops.swapaxes") or swap.args[1:] != (1, 2):
        return None
    split = _producing_expression(swap.args[0], producers)
    if not _graph.is_call(split, "ops.reshape") or not isinstance(split.args[0], Value):
        return None
    x, shape = split.args[0], tuple(split.args[1])
    after = tuple(expression.args[1])
    is_split = len(shape) == x.ndim + 1 and x.ndim > 2 and shape[3:] == x.shape[2:] == after[2:]
    if not is_split or not all(isinstance(size, int) for size in (*shape[1:3], *after[1:])):
        return None
    is_same = shape[0] in (-1, x.shape[0]) and after[0] in (-1, x.shape[0]) and after[1] == x.shape[1]
    return Call("channel_shuffle", (x, shape[1])) if is_same and shape[1] * shape[2] == x.shape[1] else None


def _reshaped_mean(expression: Call, producers: Mapping[int, Node], counts: collections.Counter[int]) -> Call | None:
    """Return the mean without the axes that a reshape of it takes away, or with those that it puts back."""
    value, mean = expression.args[0], _producing_expression(expression.args[0], producers)
    if not _graph.is_call(mean, "ops.mean") or counts[id(value)] > 1:
        return None
    x, options = mean.args[0], dict(mean.kwargs)
    axes = options.get("axis")
    if not isinstance(x, Value) or not isinstance(axes, tuple):
        return None
    reduced = {axis % x.ndim for axis in axes}
    keepdims = not options.get("keepdims", False)
    after = [1 if axis in reduced else size for axis, size in enumerate(x.shape) if keepdims or axis not in reduced]
    shape = list(expression.args[1])
    is_same = len(shape) == len(after) and all(a in (-1, b) for a, b in zip(shape, after, strict=True))
    return call("ops.mean", x, **options | {"keepdims": keepdims}) if is_same and shape.count(-1) < 2 else None


def _keep_reduced_axes(
    expression: Call, producers: Mapping[int, Node], counts: collections.Counter[int], scopes: Sequence[Any]
) -> Call | None:
    """Return the reduction that keeps the axes that `expand_dims` puts back."""
    value, reduction = expression.args[0], _producing_expression(expression.args[0], producers)
    if not isinstance(reduction, Call) or reduction.function not in _REDUCTIONS or counts[id(value)] > 1:
        return None
    x, options = reduction.args[0], dict(reduction.kwargs)
    is_plain = len(reduction.args) == 1 and isinstance(x, Value) and not options.get("keepdims")
    if not is_plain or producers[id(value)].scopes != scopes:
        return None
    reduced, put = _axes(options.get("axis"), x.ndim), _axes(expression.args[1], x.ndim)
    return call(reduction.function, x, **options | {"keepdims": True}) if reduced and reduced == put else None


def _put_once(
    expression: Call, producers: Mapping[int, Node], counts: collections.Counter[int], scopes: Sequence[Any]
) -> Item | None:
    """Return axes that are put in one after the other as one item."""
    value, axis = expression.args[0], expression.args[1]
    inner = _here(value, producers, scopes)
    if counts[id(value)] > 1 or not isinstance(value, Value) or not isinstance(axis, int):
        return None
    if _graph.is_call(inner, "ops.expand_dims") and isinstance(inner.args[1], int):
        x, axes = inner.args[0], [inner.args[1]]
        key: list[Any] = [_WHOLE] * (value.ndim - 1)
        key.insert(axes[0] % value.ndim, None)
    elif isinstance(inner, Item) and _graph.puts_axes(inner):
        x, key = inner.x, [*inner.key, *[_WHOLE] * (value.ndim - len(inner.key))]
    else:
        return None
    key.insert(axis % (value.ndim + 1), None)
    return _rows.part(x, key)


def _is_one(a: Expression, b: Expression, producers: Mapping[int, Node]) -> bool:
    """Say whether `a` is True everywhere, so that `a & b` is the mask `b`."""
    made = _producing_expression(a, producers)
    is_one = _graph.is_call(made, "ops.ones") and isinstance(b, Value)
    return is_one and made.args[0] in ((), b.shape) and "bool" in (a.dtype, b.dtype) and a.dtype == b.dtype


def _axes(axis: Any, ndim: int) -> set[int]:
    """Return which dimensions an axis, or a tuple of them, is; none for `None`."""
    axes = [axis] if isinstance(axis, int) else axis or []
    return {each % ndim for each in axes}


def _without_operands(expression: Call) -> Call:
    """Return a choice between functions of operands as one between functions that close over these."""
    pred, *branches = expression.args[:3]
    closures = []
    for branch in branches:
        operands = dict(zip(map(id, _graph.values(branch.parameters)), _leaves(expression.args[3:]), strict=True))
        inner = _graph.rebuild(branch, functools.partial(_replace, operands))
        closures.append(dataclasses.replace(inner, parameters=()))
    return Call(expression.function, (pred, *closures))


def _replace(by: Mapping[int, Expression], expression: Expression) -> Expression:
    return by.get(id(expression), expression)


def _leaves(expression: Expression) -> list[Expression]:
    """Return the leaves of tuples and lists; `None` is none."""
    if isinstance(expression, (tuple, list)):
        return [leaf for part in expression for leaf in _leaves(part)]
    return [] if expression is None else [expression]


def _as_range_loop(node: Node, producers: Mapping[int, Node]) -> list[Node]:
    """Return a loop that counts up to a fixed number as one over a range, which JAX differentiates; `[]` for others."""
    expression = node.expression
    if not _graph.is_call(expression, "ops.while_loop") or expression.kwargs:
        return []
    cond, body, init = expression.args
    if not isinstance(init, tuple) or len(init) < 2:
        return []
    tested = {id(statement.outputs[0]): statement.expression for statement in cond.nodes}
    test = tested.get(id(cond.outputs), cond.outputs)
    if not (_graph.is_call(test, "ops.less") and len(test.args) == 2):
        return []
    index, upper = test.args
    number = next((i for i, parameter in enumerate(cond.parameters) if parameter is index), None)
    if number is None or type(upper) not in (int, Dim):
        return []
    counter, after = body.parameters[number], body.outputs[number]
    increment = next((inner for inner in body.nodes if any(value is after for value in inner.outputs)), None)
    step = increment.expression if increment else None
    adds = (isinstance(step, Infix) and step.operator == "+" and (step.left, step.right) == (counter, 1)) or (
        isinstance(step, Call) and step.function == "ops.add" and step.args == (counter, 1)
    )
    lower = _producing_expression(init[number], producers)
    is_number = _graph.is_call(lower, "ops.cast", "ops.convert_to_tensor", "ops.array")
    lower = lower.args[0] if is_number else init[number]
    if not adds or type(lower) is not int or (isinstance(upper, Dim) and lower != 0):
        return []

    def others(items: Any) -> Any:
        rest = tuple(item for i, item in enumerate(items) if i != number)
        return rest if len(rest) > 1 else rest[0]

    rest = [inner for inner in body.nodes if inner is not increment]
    kept = (*[inner.expression for inner in rest], others(body.outputs))
    used = [value for part in kept for value in _graph.values(part)]
    makes_ints = any(
        "int" in value.dtype for inner in rest for value in inner.outputs if counter in _graph.values(inner.expression)
    )
    if after in used or makes_ints or counter in _graph.values(others(body.outputs)):
        return []
    loop = Body(body.name, (counter, others(body.parameters)), rest, others(body.outputs))
    last = node.outputs[number]
    total = upper if isinstance(upper, Dim) else max(lower, upper)
    return [
        dataclasses.replace(
            node,
            outputs=[value for value in node.outputs if value is not last],
            expression=Call("ops.fori_loop", (lower, upper, loop, others(init))),
        ),
        dataclasses.replace(node, outputs=[last], expression=Call("ops.cast", (total, DType(last.dtype)))),
    ]
