"""Steps that a person would write as one op: JAX inlines softmax, gelu and the normalizations into the equations.

A rule takes an expression, and `made`, which returns what computed a tensor; it returns another expression of the same
value and gradient, or `None`. Expressions reach a rule with their operands simplified.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from multiop.porting import _graph, _patterns
from multiop.porting._graph import SEED, TRAINING, Call, Dim, Expression, Infix, Value, call, is_call
from multiop.porting._patterns import Named, Number, close
from multiop.porting._rows import sizes
from multiop.porting.jax.primitives import is_number

Made = Callable[[Expression], Expression]
_REDUCTIONS = ("ops.sum", "ops.mean", "ops.max", "ops.min", "ops.prod", "ops.var", "ops.any", "ops.all")


def simplify(expression: Expression, made: Made) -> Expression:
    """Return an expression in the terms of a person."""
    for _ in range(8):
        for rule in RULES:
            written = rule(expression, made)
            if written is not None:
                expression = written
                break
        else:
            return expression
    return expression


def is_infix(expression: Expression, operators: str) -> bool:
    return isinstance(expression, Infix) and expression.operator in operators


def option(expression: Call, name: str) -> Any:
    return dict(expression.kwargs).get(name)


def axes(expression: Call, x: Value) -> tuple[int, ...]:
    """Return the axes of a reduction of `x`, counted from the front."""
    axis = option(expression, "axis")
    listed = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    return tuple(sorted(item % x.ndim for item in listed))


def size_along(x: Value, listed: Any) -> Any:
    """Return how many entries there are along some axes: an int, or the text of an open size."""
    sizes = [x.shape[axis] for axis in listed]
    known = math.prod(size for size in sizes if isinstance(size, int))
    opened = [size for size in sizes if isinstance(size, Dim)]
    if not opened:
        return known
    if len(opened) > 1:
        return None
    text = opened[0].text
    return text if known == 1 else f"{known}*{text if text.isidentifier() else f'({text})'}"


def factors(expression: Expression, made: Made, depth: int = 0) -> tuple[float, list[Expression]]:
    """Return a product as a number and the expressions of its factors."""
    inner = made(expression) if depth < 4 else expression
    if is_number(inner):
        return inner, []
    if is_infix(inner, "*"):
        a, left = factors(inner.left, made, depth + 1)
        b, right = factors(inner.right, made, depth + 1)
        return a * b, left + right
    if is_infix(inner, "/") and is_number(inner.right):
        a, left = factors(inner.left, made, depth + 1)
        return a / inner.right, left
    return 1, [expression]


class _Reading:
    """How expressions are read backwards; a `"product"` is its number and its factors, in any order."""

    def __init__(self, made: Made, expression: Expression):
        self.made, self.expression = made, expression

    def number(self, x: Expression) -> Any:
        return x if is_number(x) else None

    def is_close(self, number: Any, wanted: float, x: Expression) -> bool:
        dtypes = (part.dtype for part in _graph.walk(self.expression) if isinstance(part, Value))
        return number == wanted if isinstance(wanted, int) else close(number, wanted, next(dtypes, ""))

    def orders(self, x: Expression, kinds: str, count: int) -> Iterable[Sequence[Expression]]:
        inner = self.made(x)
        if kinds == "product" and is_infix(inner, "*/"):
            number, parts = factors(x, self.made)
            return [(number, *order) for order in permutations(parts)] if len(parts) == count - 1 else ()
        kind, operands = "", ()
        if isinstance(inner, Call):
            kind, operands = inner.function, inner.args
        elif isinstance(inner, Infix):
            kind, operands = inner.operator, (inner.left, inner.right)
        if kind not in kinds.split("|") or len(operands) < count:
            return ()
        return permutations(operands) if kind in ("*", "+", "ops.maximum") else [operands]


def matches(pattern: Any, expression: Expression, made: Made) -> Iterator[dict[str, Any]]:
    """Yield what the names of a pattern stand for in an expression."""
    return _patterns.matches(pattern, expression, _Reading(made, expression))


def is_true(expression: Expression, made: Made) -> Expression | None:
    """A bool that became a number, compared with zero."""
    for match in matches(("ops.not_equal", ("ops.cast", "x"), 0), expression, made):
        if isinstance(match["x"], Value) and match["x"].dtype == "bool":
            return match["x"]
    return None


def merge_reshapes(expression: Expression, out: Value, made: Made) -> Expression:
    """Return one step for several that only change the shape; none if they give the shape back."""
    shaping = ("ops.reshape", "ops.expand_dims", "ops.squeeze")
    if not isinstance(expression, Call) or expression.function not in shaping:
        return expression
    x, steps = expression.args[0], 1
    while is_call(made(x), *shaping):
        x, steps = made(x).args[0], steps + 1
    if isinstance(x, Value) and x.shape == out.shape:
        return x
    return (
        call("ops.reshape", x, sizes(out.shape)) if steps > 1 and expression.function == "ops.reshape" else expression
    )


_SQUARE = ("ops.cast", ("ops.equal", ("ops.expand_dims", "columns", -1), Named("columns", ("ops.arange", "n"))))


def identity_matrix(expression: Expression, made: Made) -> Expression | None:
    """Rows and columns of which the numbers are equal."""
    for match in matches(_SQUARE, expression, made):
        if len(made(match["columns"]).args) == 1:
            return call("ops.eye", match["n"], dtype=expression.args[1])
    return None


def pooling_in_front(expression: Expression, made: Made) -> Expression | None:
    """A pooling between two exchanges of axes that put the channels behind space and back."""
    if not is_call(expression, "ops.transpose") or len(expression.args) < 2:
        return None
    pool = made(expression.args[0])
    if not is_call(pool, "ops.max_pool", "ops.average_pool") or option(pool, "data_format") != "channels_last":
        return None
    inner = made(pool.args[0])
    order = tuple(expression.args[1])
    ndim = len(order)
    is_back = is_call(inner, "ops.transpose") and order == (0, ndim - 1, *range(1, ndim - 1))
    if is_back and tuple(inner.args[1]) == (0, *range(2, ndim), 1):
        kwargs = tuple((name, "channels_first" if name == "data_format" else arg) for name, arg in pool.kwargs)
        return Call(pool.function, (inner.args[0], *pool.args[1:]), kwargs)
    return None


# means and variances


def mean(expression: Expression, made: Made) -> Expression | None:
    """A sum over how many entries there are."""
    for match in matches(("/|ops.divide", Named("total", ("ops.sum", "x")), "count"), expression, made):
        x, total, count = match["x"], made(match["total"]), match["count"]
        size = size_along(x, axes(total, x)) if isinstance(x, Value) else None
        if size is not None and (count.text if isinstance(count, Dim) else count) == size:
            return Call("ops.mean", total.args, total.kwargs)
    return None


def window_mean(expression: Expression, made: Made) -> Expression | None:
    """An average times a number, over the same number."""
    return next((match["y"] for match in matches(("/", ("*", "y", Number("n")), Number("n")), expression, made)), None)


_OF_SQUARES = Named("of_squares", ("ops.mean", ("ops.square", "x")))
_FAST = ("ops.maximum", 0, ("-", _OF_SQUARES, ("ops.square", Named("center", ("ops.mean", "x")))))
_SLOW = ("ops.mean", ("ops.square", Named("difference", ("-", "x", Named("center", ("ops.mean", "x"))))))


def fast_variance(expression: Expression, made: Made) -> Expression | None:
    """`mean(x**2) - mean(x)**2`, kept from being negative: the variance, which is not."""
    for match in matches(_FAST, expression, made):
        center = made(match["center"])
        if center.kwargs == made(match["of_squares"]).kwargs:
            return Call("ops.var", center.args, center.kwargs)
    return None


def slow_variance(expression: Expression, made: Made) -> Expression | None:
    """The mean of the squared distance from the mean."""
    for match in matches(_SLOW, expression, made):
        x, center = match["x"], made(match["center"])
        if not isinstance(x, Value) or axes(center, x) != axes(expression, x):
            continue
        if option(center, "keepdims") or axes(center, x) == tuple(range(axes(center, x)[-1] + 1)):
            return Call("ops.var", (x,), expression.kwargs)
    return None


def largest(name: str, is_stopped: bool) -> Any:
    """Return the pattern of a largest entry of `x`, with or without a gradient; 0 may stand for an infinite one."""
    top = Named(name, ("ops.max", "x"))
    entries = [top, ("ops.where", ("ops.isfinite", top), top, 0)]
    return ("ops.stop_gradient", entries) if is_stopped else entries


_SHIFT = Named("shift", ("-", "x", [largest("top", False), largest("top", True)]))
_SOFTMAX = ("/", Named("exp", ("ops.exp", _SHIFT)), Named("total", ("ops.sum", "exp")))
_LOG_SOFTMAX = ("-", _SHIFT, ("ops.log", Named("total", ("ops.sum", ("ops.exp", "shift")))))
_LOGSUMEXP: list[Any] = []
for _is_stopped in (False, True):  # what is taken away and what is added back: their gradients cancel
    _TOTAL = Named("total", ("ops.sum", ("ops.exp", ("-", "x", largest("top", _is_stopped)))))
    _LOGSUMEXP.append(("+", ("ops.log", [_TOTAL, ("ops.abs", _TOTAL)]), largest("added", _is_stopped)))


def exp_sums(pattern: Any, expression: Expression, made: Made) -> Iterator[tuple[Value, Any, Call, dict[str, Any]]]:
    """Yield `x`, the axes of its largest entry, and the sum of exponentials, which is along the same ones."""
    for match in matches(pattern, expression, made):
        x, top, total = match["x"], made(match["top"]), made(match["total"])
        if isinstance(x, Value) and option(top, "keepdims") and axes(top, x) == axes(total, x):
            yield x, one_axis(x, top), total, match


def one_axis(x: Value, top: Call) -> Any:
    listed = axes(top, x)
    return (-1 if listed[0] == x.ndim - 1 else listed[0]) if len(listed) == 1 else listed


def softmax(expression: Expression, made: Made) -> Expression | None:
    """`exp(x - max) / sum(exp(x - max))`."""
    for x, axis, total, _ in exp_sums(_SOFTMAX, expression, made):
        if option(total, "keepdims"):
            return call("ops.softmax", x, axis=axis)
    return None


def log_softmax(expression: Expression, made: Made) -> Expression | None:
    """`(x - max) - log(sum(exp(x - max)))`, or `x - logsumexp(x)`."""
    for x, axis, total, _ in exp_sums(_LOG_SOFTMAX, expression, made):
        if option(total, "keepdims"):
            return call("ops.log_softmax", x, axis=axis)
    for match in matches(("-", "x", Named("total", ("ops.logsumexp", "x"))), expression, made):
        if isinstance(match["x"], Value) and option(made(match["total"]), "keepdims"):
            return call("ops.log_softmax", match["x"], axis=option(made(match["total"]), "axis"))
    return None


def logsumexp(expression: Expression, made: Made) -> Expression | None:
    """`log(sum(exp(x - max))) + max`."""
    for x, axis, total, match in exp_sums(_LOGSUMEXP, expression, made):
        added = made(match["added"])
        if axes(added, x) == axes(total, x) and option(added, "keepdims") == option(total, "keepdims"):
            return call("ops.logsumexp", x, axis=axis, keepdims=option(total, "keepdims"))
    return None


# activations


_ROOT = math.sqrt(0.5)
_CUBIC = ("+", "x", ("product", 0.044715, ("ops.power", "x", 3)))
_GELU = [
    ("product", 0.5, "x", ("ops.erfc", ("product", _ROOT, ("ops.negative", "x")))),
    ("product", 0.5, "x", ("+", 1, ("ops.erf", ("product", _ROOT, "x")))),
    ("product", 0.5, "x", Named("tanh", ("+", 1, ("ops.tanh", ("product", math.sqrt(2 / math.pi), _CUBIC))))),
]


def gelu(expression: Expression, made: Made) -> Expression | None:
    """Half of `x` times 1 plus the error function, or the hyperbolic tangent, of it."""
    match = next(matches(_GELU, expression, made), None)
    return match and call("ops.gelu", match["x"], approximate="tanh" in match)


def silu(expression: Expression, made: Made) -> Expression | None:
    for match in matches(("*", "x", ("ops.sigmoid", "x")), expression, made):
        if isinstance(match["x"], Value):
            return call("ops.silu", match["x"])
    return None


# normalization


_DIFFERENCE, _SPREAD = ("-", "x", "center"), ("+", "variance", Number("epsilon"))
_NORMALIZED = [
    ("/", _DIFFERENCE, ("ops.sqrt", _SPREAD)),
    ("product", 1, _DIFFERENCE, ("ops.rsqrt", _SPREAD)),
    ("product", 1, _DIFFERENCE, ("ops.rsqrt", _SPREAD), "scale"),
]


def normalization(expression: Expression, made: Made) -> Expression | None:
    """`(x - mean) * rsqrt(variance + epsilon) * scale`."""
    for match in matches(_NORMALIZED, expression, made):
        x, center, variance, scale = (match.get(name) for name in ("x", "center", "variance", "scale"))
        tensors = [x, center, variance] if scale is None else [x, center, variance, scale]
        average, spread, epsilon = made(center), made(variance), match["epsilon"]
        if epsilon < 0 or not all(isinstance(each, Value) for each in tensors):
            continue
        is_own = is_call(average, "ops.mean") and is_call(spread, "ops.var")
        is_own = is_own and average.args[0] is x and spread.args[0] is x
        if is_own and option(average, "keepdims") and option(spread, "keepdims"):
            listed = axes(average, x)
            if listed != axes(spread, x) or listed != tuple(range(x.ndim - len(listed), x.ndim)):
                continue
            if scale is not None and tuple(scale.shape) != tuple(x.shape[axis] for axis in listed):
                continue
            axis = -1 if len(listed) == 1 else tuple(range(-len(listed), 0))
            return call("ops.layer_normalization", x, scale, None, axis=axis, epsilon=epsilon)
        if x.ndim > 1 and all(each.shape == x.shape[-1:] for each in tensors[1:]):
            return call("ops.batch_normalization", x, center, variance, -1, None, scale, epsilon)
    return None


_FREE = {  # where a scale and an offset stand among the arguments, and what must be free then
    ("*", "ops.layer_normalization"): (1, slice(1, 3)),
    ("+", "ops.layer_normalization"): (2, slice(2, 3)),
    ("*", "ops.batch_normalization"): (5, slice(4, 6)),
    ("+", "ops.batch_normalization"): (4, slice(4, 5)),
}


def affine_normalization(expression: Expression, made: Made) -> Expression | None:
    """A scale, or the offset that is added, in a step of its own behind a normalization."""
    for vector, other in permutations((expression.left, expression.right)) if is_infix(expression, "*+") else ():
        inner = made(other)
        if not isinstance(vector, Value) or not is_call(inner, "ops.layer_normalization", "ops.batch_normalization"):
            continue
        at, free = _FREE[expression.operator, inner.function]
        axis, args = option(inner, "axis"), inner.args
        shape = args[0].shape[-len(axis) if isinstance(axis, tuple) else -1 :]
        if vector.shape == shape and set(args[free]) == {None}:
            return Call(inner.function, (*args[:at], vector, *args[at + 1 :]), inner.kwargs)
    return None


_SQUARES = Named("average", ("ops.mean", ("ops.square", "x")))
_RMS = ("ops.rsqrt", ("+", _SQUARES, Number("epsilon")))


def rms_normalization(expression: Expression, made: Made) -> Expression | None:
    """`x * rsqrt(mean(x**2) + epsilon) * scale`."""
    for match in matches([("product", 1, "x", _RMS), ("product", 1, "x", _RMS, "scale")], expression, made):
        x, average, scale = match["x"], made(match["average"]), match.get("scale")
        if not isinstance(x, Value) or not option(average, "keepdims") or axes(average, x) != (x.ndim - 1,):
            continue
        if match["epsilon"] < 0:
            continue
        if scale is None or (isinstance(scale, Value) and scale.shape == x.shape[-1:]):
            return call("ops.rms_normalization", x, scale, axis=-1, epsilon=match["epsilon"])
    return None


# products


def einsum_of_transposes(expression: Expression, made: Made) -> Expression | None:
    """Move exchanges of axes into the subscripts."""
    if is_call(expression, "ops.einsum"):
        left, _, right = expression.args[0].partition("->")
        texts, operands, changed = left.split(","), list(expression.args[1:]), False
        for i, operand in enumerate(operands):
            order = permutation(made(operand), operand)
            if order is not None:
                inner = made(operand).args[0]
                if isinstance(inner, Value):
                    names = [""] * len(texts[i])
                    for place, axis in enumerate(order):
                        names[axis] = texts[i][place]
                    texts[i], operands[i], changed = "".join(names), inner, True
        return call("ops.einsum", f"{','.join(texts)}->{right}", *operands) if changed else None
    if is_call(expression, "ops.transpose", "ops.swapaxes"):
        inner = made(expression.args[0])
        if is_call(inner, "ops.einsum"):
            order = permutation(expression, None, expression.args[0])
            left, _, right = inner.args[0].partition("->")
            if order is not None:
                return call("ops.einsum", f"{left}->{''.join(right[axis] for axis in order)}", *inner.args[1:])
        if isinstance(inner, Infix) and all(is_call(made(x), "ops.einsum") for x in (inner.left, inner.right)):
            order = permutation(expression, None, expression.args[0])
            sides = []
            for side in map(made, (inner.left, inner.right)):
                left, _, right = side.args[0].partition("->")
                if order is None or len(right) != len(order):
                    return None
                sides.append(call("ops.einsum", f"{left}->{''.join(right[axis] for axis in order)}", *side.args[1:]))
            return Infix(inner.operator, *sides)
    return None


def permutation(expression: Expression, out: Any, x: Any = None) -> tuple[int, ...] | None:
    """Return the order of axes that a transposition gives."""
    if not is_call(expression, "ops.transpose", "ops.swapaxes"):
        return None
    ndim = (out if isinstance(out, Value) else x).ndim
    if expression.function == "ops.transpose":
        return tuple(expression.args[1]) if len(expression.args) > 1 else tuple(range(ndim))[::-1]
    order = list(range(ndim))
    a, b = (axis % ndim for axis in expression.args[1:])
    order[a], order[b] = order[b], order[a]
    return tuple(order)


def attention(expression: Expression, made: Made) -> Expression | None:
    """Products of queries with keys, their softmax, and the products of it with values."""
    if not is_call(expression, "ops.einsum") or len(expression.args) != 3:
        return None
    left, _, right = expression.args[0].partition("->")
    names, operands = left.split(","), list(expression.args[1:])
    for first in (0, 1):
        weights = made(operands[first])
        if is_call(weights, "ops.softmax") and option(weights, "axis") == -1:
            break
    else:
        return None
    value, w, v = operands[1 - first], names[first], names[1 - first]
    if len(w) != 4 or len(v) != 4 or not isinstance(value, Value):
        return None
    b, h, q, k = w
    if {*v} - {b, h, k} == set() or len(set(v) - {b, h, k}) != 1:
        return None
    (d,) = set(v) - {b, h, k}
    if v != f"{b}{k}{h}{d}" or right not in (f"{b}{q}{h}{d}", f"{b}{h}{q}{d}"):
        return None
    scale, logits = factors(weights.args[0], made)
    products = made(logits[0]) if len(logits) == 1 else None
    if not is_call(products, "ops.einsum") or len(products.args) != 3:
        return None
    left, _, result = products.args[0].partition("->")
    q_names, k_names = left.split(",")
    query, key = products.args[1:]
    if len(result) != 4 or len(q_names) != 4 or len(k_names) != 4:
        return None
    b2, h2, q2, k2 = result
    if q2 not in q_names:
        q_names, k_names, query, key = k_names, q_names, key, query
    depth = set(q_names) - {b2, h2, q2}
    if len(depth) != 1:
        return None
    (e,) = depth
    if q_names != f"{b2}{q2}{h2}{e}" or k_names != f"{b2}{k2}{h2}{e}":
        return None
    for_query, queries = factors(query, made)
    for_key, keys = factors(key, made)
    if len(queries) != 1 or len(keys) != 1:
        return None
    scale = scale * for_query * for_key
    size = queries[0].shape[-1]
    if isinstance(size, int) and close(scale, size**-0.5, value.dtype):
        scale = None
    attended = call("ops.dot_product_attention", queries[0], keys[0], value, scale=scale)
    return attended if right == f"{b}{q}{h}{d}" else call("ops.swapaxes", attended, 1, 2)


# last, when all is read: what takes a mask, and that nothing looks for an einsum any more


_SCALED = [("/", "x", Number("factor")), ("*", "x", Number("inverse"))]
_DRAWN = ("ops.less", Named("drawn", ("random.uniform", "shape")), Number("share"))
_DROPOUT = ("ops.where", Named("mask", _DRAWN), _SCALED, 0)


def dropout(expression: Expression, made: Made, counts: Mapping[int, int]) -> Expression | None:
    """Entries over the share of those that are kept, or 0, by a mask that nothing else takes: another would differ."""
    for match in matches(_DROPOUT, expression, made):
        x, share = match["x"], match["share"]
        is_whole = isinstance(x, Value) and match["shape"] == x.shape and len(made(match["drawn"]).args) == 1
        is_whole &= all(counts[id(each)] == 1 for each in (match["mask"], match["drawn"]) if isinstance(each, Value))
        if is_whole and close(match["factor"] if "factor" in match else 1 / match["inverse"], share, "float32"):
            return call("dropout", x, float(f"{1 - share:.7g}"), SEED, TRAINING)
    return None


def einsum_as_matmul(expression: Expression, made: Made) -> Expression:
    """Return an einsum as a matrix product, where it is one."""
    if not is_call(expression, "ops.einsum") or len(expression.args) != 3:
        return expression
    left, _, right = expression.args[0].partition("->")
    names, operands = left.split(","), list(expression.args[1:])
    for i, j in ((0, 1), (1, 0)):
        a, b, x, y = names[i], names[j], operands[i], operands[j]
        if len(a) >= 1 and len(b) == 2 and a[-1] in b and b[0] != b[1] and not set(b) - {a[-1]} & set(a):
            other = b.replace(a[-1], "")
            if right == a[:-1] + other:
                return call("ops.matmul", x, y if b[0] == a[-1] else call("ops.transpose", y))
        if len(a) == len(b) > 2 and a[:-2] == b[:-2] and right[:-2] == a[:-2] and len(right) == len(a):
            rows, columns = right[-2:]
            summed = set(a[-2:]) & set(b[-2:])
            if len(summed) == 1 and rows in a[-2:] and columns in b[-2:] and rows != columns:
                (k,) = summed
                if rows == k or columns == k:
                    continue
                first = x if a[-1] == k else call("ops.swapaxes", x, -1, -2)
                second = y if b[-2] == k else call("ops.swapaxes", y, -1, -2)
                return call("ops.matmul", first, second)
    return expression


def with_slope(expression: Expression) -> Expression:
    """Return an absolute value with the slope that JAX gives it at 0."""
    if not is_call(expression, "ops.abs") or not isinstance(expression.args[0], Value):
        return expression
    return call("absolute", *expression.args) if expression.args[0].dtype.startswith(("float", "bfl")) else expression


def linear(expression: Expression, made: Made, is_leaf: Callable[[Expression], bool]) -> Expression | None:
    """A product with a matrix of the parameters, and the vector that is added to it."""
    if not is_infix(expression, "+"):
        return None
    for product, bias in ((expression.left, expression.right), (expression.right, expression.left)):
        inner = made(product)
        if not isinstance(bias, Value) or bias.ndim != 1 or not is_leaf(bias):
            continue
        if is_call(inner, "ops.matmul") and isinstance(inner.args[0], Value):
            x, matrix = inner.args
            weight = matrix.args[0] if is_call(matrix, "ops.transpose") else None
            if weight is not None and is_leaf(weight) and weight.shape[0] == bias.shape[0]:
                return call("linear", x, weight=weight, bias=bias)
    return None


RULES = [
    identity_matrix,
    pooling_in_front,
    is_true,
    mean,
    window_mean,
    fast_variance,
    slow_variance,
    softmax,
    log_softmax,
    logsumexp,
    gelu,
    silu,
    rms_normalization,
    affine_normalization,
    normalization,
    einsum_of_transposes,
    attention,
]
