"""Steps that a person would write as one op: JAX inlines softmax, gelu and the normalizations into the equations.

A rule takes an expression, and `made`, which returns what computed a tensor; it returns another expression of the same
value and gradient, or `None`. Expressions reach a rule with their operands simplified.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

from multiop.porting._graph import SEED, TRAINING, Call, Dim, Expression, Infix, Value, call
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


def is_call(expression: Expression, *functions: str) -> bool:
    """Say whether an expression calls one of some functions."""
    return isinstance(expression, Call) and expression.function in functions


def is_infix(expression: Expression, operators: str) -> bool:
    return isinstance(expression, Infix) and expression.operator in operators


def option(expression: Call, name: str) -> Any:
    return dict(expression.kwargs).get(name)


def close(x: Expression, y: float) -> bool:
    """Say whether a number is another one, as far as float32 can tell."""
    return is_number(x) and not isinstance(x, complex) and math.isclose(x, y, rel_tol=1e-6)


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


def is_true(expression: Expression, made: Made) -> Expression | None:
    """A bool that became a number, compared with zero."""
    if is_call(expression, "ops.not_equal") and is_number(expression.args[1]) and expression.args[1] == 0:
        inner = made(expression.args[0])
        if is_call(inner, "ops.cast") and isinstance(inner.args[0], Value) and inner.args[0].dtype == "bool":
            return inner.args[0]
    return None


def merge_reshapes(expression: Expression, out: Value, made: Made) -> Expression:
    """Return one step for several that only change the shape; none if they give the shape back."""
    shaping = ("ops.reshape", "ops.expand_dims", "ops.squeeze")
    if not is_call(expression, *shaping):
        return expression
    x, steps = expression.args[0], 1
    while is_call(made(x), *shaping):
        x, steps = made(x).args[0], steps + 1
    if isinstance(x, Value) and x.shape == out.shape:
        return x
    return (
        call("ops.reshape", x, sizes(out.shape)) if steps > 1 and expression.function == "ops.reshape" else expression
    )


def identity_matrix(expression: Expression, made: Made) -> Expression | None:
    """Rows and columns of which the numbers are equal."""
    if is_call(expression, "ops.cast"):
        equal = made(expression.args[0])
        if is_call(equal, "ops.equal") and isinstance(equal.args[1], Value):
            rows, columns = made(equal.args[0]), made(equal.args[1])
            is_square = is_call(rows, "ops.expand_dims") and rows.args[0] is equal.args[1] and rows.args[1] == -1
            if is_square and is_call(columns, "ops.arange") and len(columns.args) == 1:
                return call("ops.eye", columns.args[0], dtype=expression.args[1])
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
    if is_infix(expression, "/") or is_call(expression, "ops.divide"):
        left, right = (expression.left, expression.right) if isinstance(expression, Infix) else expression.args
        total = made(left)
        if is_call(total, "ops.sum") and isinstance(total.args[0], Value):
            x = total.args[0]
            count = size_along(x, axes(total, x))
            if (isinstance(right, Dim) and right.text == count) or (is_number(right) and right == count):
                return Call("ops.mean", total.args, total.kwargs)
    return None


def window_mean(expression: Expression, made: Made) -> Expression | None:
    """An average times a number, over the same number."""
    if is_infix(expression, "/") and is_number(expression.right):
        left = made(expression.left)
        if is_infix(left, "*") and is_number(left.right) and left.right == expression.right:
            return left.left
    return None


def fast_variance(expression: Expression, made: Made) -> Expression | None:
    """`mean(x**2) - mean(x)**2`, kept from being negative: the variance, which is not."""
    if not is_call(expression, "ops.maximum"):
        return None
    number, difference = expression.args if is_number(expression.args[0]) else expression.args[::-1]
    difference = made(difference)
    if not is_number(number) or number != 0 or not is_infix(difference, "-"):
        return None
    of_squares, square = made(difference.left), made(difference.right)
    if not is_call(of_squares, "ops.mean") or not is_call(square, "ops.square"):
        return None
    squares, center = made(of_squares.args[0]), made(square.args[0])
    is_same = is_call(squares, "ops.square") and is_call(center, "ops.mean") and squares.args[0] is center.args[0]
    if is_same and center.kwargs == of_squares.kwargs:
        return Call("ops.var", center.args, center.kwargs)
    return None


def slow_variance(expression: Expression, made: Made) -> Expression | None:
    """The mean of the squared distance from the mean."""
    if not is_call(expression, "ops.mean"):
        return None
    square = made(expression.args[0])
    difference = made(square.args[0]) if is_call(square, "ops.square") else None
    if not is_infix(difference, "-"):
        return None
    x, center = difference.left, made(difference.right)
    if is_call(center, "ops.mean") and center.args[0] is x and isinstance(x, Value):
        is_same = axes(center, x) == axes(expression, square.args[0])
        if is_same and (option(center, "keepdims") or axes(center, x) == tuple(range(axes(center, x)[-1] + 1))):
            return Call("ops.var", (x,), expression.kwargs)
    return None


# softmax and its like


def shift_of(expression: Expression, made: Made) -> tuple[Value, Call] | None:
    """Return `x` and the largest entry of `x`, where an expression is the difference of both."""
    expression = made(expression)
    if not is_infix(expression, "-") or not isinstance(expression.left, Value):
        return None
    top = without_guard(made(expression.right), made)
    if is_call(top, "ops.max") and top.args[0] is expression.left and option(top, "keepdims"):
        return expression.left, top
    return None


def without_guard(top: Any, made: Made) -> Any:
    """Return a largest entry where it has no gradient, and 0 stands for an infinite one."""
    top = made(top.args[0]) if is_call(top, "ops.stop_gradient") else top
    condition, chosen, other = map(made, top.args) if is_call(top, "ops.where") else (None, top, None)
    is_guarded = is_call(condition, "ops.isfinite") and other == 0 and made(condition.args[0]) == chosen
    return chosen if is_guarded else top


def one_axis(x: Value, top: Call) -> Any:
    listed = axes(top, x)
    return (-1 if listed[0] == x.ndim - 1 else listed[0]) if len(listed) == 1 else listed


def softmax(expression: Expression, made: Made) -> Expression | None:
    """`exp(x - max) / sum(exp(x - max))`."""
    if not is_infix(expression, "/"):
        return None
    exponential, total = made(expression.left), made(expression.right)
    if not is_call(exponential, "ops.exp") or not is_call(total, "ops.sum") or not option(total, "keepdims"):
        return None
    shift = shift_of(exponential.args[0], made)
    if shift is None or total.args[0] is not expression.left or not isinstance(expression.left, Value):
        return None
    x, top = shift
    if axes(top, x) == axes(total, expression.left):
        return call("ops.softmax", x, axis=one_axis(x, top))
    return None


def log_softmax(expression: Expression, made: Made) -> Expression | None:
    """`(x - max) - log(sum(exp(x - max)))`."""
    if not is_infix(expression, "-"):
        return None
    logarithm = made(expression.right)
    total = made(logarithm.args[0]) if is_call(logarithm, "ops.log") else None
    exponential = made(total.args[0]) if is_call(total, "ops.sum") and option(total, "keepdims") else None
    if not is_call(exponential, "ops.exp") or exponential.args[0] is not expression.left:
        return None
    shift = shift_of(expression.left, made)
    if shift is None or axes(shift[1], shift[0]) != axes(total, shift[0]):
        return None
    return call("ops.log_softmax", shift[0], axis=one_axis(shift[0], shift[1]))


def log_of_softmax(expression: Expression, made: Made) -> Expression | None:
    if is_infix(expression, "-") and isinstance(expression.left, Value):
        other = made(expression.right)
        if is_call(other, "ops.logsumexp") and other.args[0] is expression.left and option(other, "keepdims"):
            return call("ops.log_softmax", expression.left, axis=option(other, "axis"))
    return None


def logsumexp(expression: Expression, made: Made) -> Expression | None:
    """`log(sum(exp(x - max))) + max`."""
    if not is_infix(expression, "+"):
        return None
    logarithm, top = made(expression.left), made(expression.right)
    if not is_call(logarithm, "ops.log"):
        logarithm, top = top, logarithm
    total = made(logarithm.args[0]) if is_call(logarithm, "ops.log") else None
    total = made(total.args[0]) if is_call(total, "ops.abs") else total
    exponential = made(total.args[0]) if is_call(total, "ops.sum") else None
    shift = shift_of(exponential.args[0], made) if is_call(exponential, "ops.exp") else None
    if shift is None:
        return None
    x, shifted = shift
    top = without_guard(top, made)
    is_same = is_call(top, "ops.max") and top.args[0] is x and axes(top, x) == axes(shifted, x) == axes(total, x)
    if is_same and option(top, "keepdims") == option(total, "keepdims"):
        return call("ops.logsumexp", x, axis=one_axis(x, top), keepdims=option(total, "keepdims"))
    return None


# activations


def gelu(expression: Expression, made: Made) -> Expression | None:
    """Half of `x` times 1 plus the error function, or the hyperbolic tangent, of it."""
    if not is_infix(expression, "*"):
        return None
    number, parts = factors(expression, made)
    if len(parts) != 2:
        return None
    for x, other in (parts, parts[::-1]):
        inner = made(other)
        if is_call(inner, "ops.erfc") and close(number, 0.5):
            scale, of = factors(inner.args[0], made)
            negated = made(of[0]) if len(of) == 1 else None
            if is_call(negated, "ops.negative") and negated.args[0] is x and close(scale, math.sqrt(0.5)):
                return call("ops.gelu", x, approximate=False)
        if not is_infix(inner, "+") or not close(number, 0.5):
            continue
        factor, function = (inner.left, made(inner.right)) if is_number(inner.left) else (inner.right, made(inner.left))
        if not is_number(factor) or factor != 1:
            continue
        if is_call(function, "ops.erf"):
            scale, of = factors(function.args[0], made)
            if len(of) == 1 and of[0] is x and close(scale, math.sqrt(0.5)):
                return call("ops.gelu", x, approximate=False)
        if is_call(function, "ops.tanh"):
            scale, of = factors(function.args[0], made)
            added = made(of[0]) if len(of) == 1 else None
            if is_infix(added, "+") and added.left is x and close(scale, math.sqrt(2 / math.pi)):
                third, cubes = factors(added.right, made)
                cube = made(cubes[0]) if len(cubes) == 1 else None
                if is_call(cube, "ops.power") and cube.args[0] is x and cube.args[1] == 3 and close(third, 0.044715):
                    return call("ops.gelu", x, approximate=True)
    return None


def silu(expression: Expression, made: Made) -> Expression | None:
    if is_infix(expression, "*"):
        for x, other in ((expression.left, expression.right), (expression.right, expression.left)):
            inner = made(other)
            if isinstance(x, Value) and is_call(inner, "ops.sigmoid") and inner.args[0] is x:
                return call("ops.silu", x)
    return None


# normalization


def deviation(expression: Expression, made: Made) -> tuple[Value, Any, Expression, float, Any] | None:
    """Return x, its mean, its variance, epsilon and a scale of `(x - mean) * rsqrt(variance + epsilon) * scale`."""
    number, parts = factors(expression, made) if is_infix(expression, "*") else (1, [expression])
    over = made(expression) if not is_infix(expression, "*") else None
    roots = []
    if is_infix(over, "/"):
        root = made(over.right)
        if not is_call(root, "ops.sqrt"):
            return None
        parts, roots = [over.left], [root]
    difference = None
    rest = []
    for part in parts:
        inner = made(part)
        if is_call(inner, "ops.rsqrt"):
            roots.append(inner)
        elif is_infix(inner, "-") and difference is None and isinstance(inner.left, Value):
            difference = inner
        else:
            rest.append(part)
    if number != 1 or len(roots) != 1 or difference is None or len(rest) > 1:
        return None
    added = made(roots[0].args[0])
    if not is_infix(added, "+"):
        return None
    variance, epsilon = (added.left, added.right) if is_number(added.right) else (added.right, added.left)
    if not is_number(epsilon) or not isinstance(variance, Value):
        return None
    return difference.left, difference.right, variance, epsilon, rest[0] if rest else None


def normalization(expression: Expression, made: Made) -> Expression | None:
    if not is_infix(expression, "*/"):
        return None
    parts = deviation(expression, made)
    if parts is None:
        return None
    x, center, variance, epsilon, scale = parts
    average, spread = made(center), made(variance)
    if not isinstance(center, Value) or (scale is not None and not isinstance(scale, Value)):
        return None
    is_own = is_call(average, "ops.mean") and is_call(spread, "ops.var")
    is_own = is_own and average.args[0] is x and spread.args[0] is x
    if is_own and option(average, "keepdims") and option(spread, "keepdims"):
        listed = axes(average, x)
        if listed != axes(spread, x) or listed != tuple(range(x.ndim - len(listed), x.ndim)):
            return None
        if scale is not None and tuple(scale.shape) != tuple(x.shape[axis] for axis in listed):
            return None
        axis = -1 if len(listed) == 1 else tuple(range(-len(listed), 0))
        return call("ops.layer_normalization", x, scale, None, axis=axis, epsilon=epsilon)
    channels = x.shape[-1:]
    if center.shape == variance.shape == channels and (scale is None or scale.shape == channels) and x.ndim > 1:
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


def rms_normalization(expression: Expression, made: Made) -> Expression | None:
    """`x * rsqrt(mean(x**2) + epsilon) * scale`."""
    if not is_infix(expression, "*"):
        return None
    number, parts = factors(expression, made)
    roots = [factor for factor in parts if is_call(made(factor), "ops.rsqrt")]
    if number != 1 or len(roots) != 1 or len(parts) not in (2, 3):
        return None
    added = made(made(roots[0]).args[0])
    if not is_infix(added, "+") or not is_number(added.right):
        return None
    average = made(added.left)
    square = made(average.args[0]) if is_call(average, "ops.mean") and option(average, "keepdims") else None
    if not is_call(square, "ops.square") or not isinstance(square.args[0], Value):
        return None
    x = square.args[0]
    rest = [factor for factor in parts if factor is not roots[0]]
    if not any(factor is x for factor in rest) or axes(average, x) != (x.ndim - 1,):
        return None
    rest = [factor for factor in rest if factor is not x]
    if rest and (not isinstance(rest[0], Value) or rest[0].shape != x.shape[-1:]):
        return None
    return call("ops.rms_normalization", x, rest[0] if rest else None, axis=-1, epsilon=added.right)


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
        if isinstance(inner, Infix) and all(
            is_call(made(operand), "ops.einsum") for operand in (inner.left, inner.right)
        ):
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
    if isinstance(size, int) and close(scale, size**-0.5):
        scale = None
    attended = call("ops.dot_product_attention", queries[0], keys[0], value, scale=scale)
    return attended if right == f"{b}{q}{h}{d}" else call("ops.swapaxes", attended, 1, 2)


def dropout(expression: Expression, made: Made) -> Expression | None:
    """Entries over the share of those that are kept, or 0."""
    if not is_call(expression, "ops.where") or not is_number(expression.args[2]) or expression.args[2] != 0:
        return None
    kept, scaled = made(expression.args[0]), made(expression.args[1])
    if not is_call(kept, "ops.less") or not is_number(kept.args[1]) or not is_infix(scaled, "/*"):
        return None
    drawn = made(kept.args[0])
    if not is_call(drawn, "random.uniform") or len(drawn.args) > 1 or not isinstance(scaled.left, Value):
        return None
    share = kept.args[1]
    factor = scaled.right if scaled.operator == "/" else 1 / scaled.right if is_number(scaled.right) else None
    if drawn.args[0] != scaled.left.shape or not is_number(factor) or not close(factor, share):
        return None
    return call("dropout", scaled.left, float(f"{1 - share:.7g}"), SEED, TRAINING)


# last, when nothing looks for an einsum any more


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
            if (
                is_call(matrix, "ops.transpose")
                and is_leaf(matrix.args[0])
                and matrix.args[0].shape[0] == bias.shape[0]
            ):
                return call("linear", x, weight=matrix.args[0], bias=bias)
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
    log_of_softmax,
    logsumexp,
    gelu,
    silu,
    rms_normalization,
    affine_normalization,
    normalization,
    einsum_of_transposes,
    attention,
    dropout,
]
