"""What each primitive op does to index sets. An op without a rule here mixes all entries of all of its operands.

A rule takes the tracer, the op's arguments and its result on values, and returns the traced result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multiop._values import args as _args, windows as _windows
from multiop.autodiff.sparse._sets import (
    Map,
    Pairs,
    Traced,
    follow,
    groups,
    is_fixed,
    join_groups,
    matrix,
    places,
    union,
)

LARGEST_GRID = 4_000_000  # products of entries that are listed one by one

# ops by what they do to each entry, after operands were broadcast; what is in none of these has a curved function
CONSTANT = {
    "sign", "floor", "ceil", "trunc", "round", "floor_divide", "equal", "not_equal", "less", "less_equal",
    "greater", "greater_equal", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "isclose", "signbit",
    "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_invert", "left_shift", "right_shift", "gcd", "lcm", "argmax", "argmin", "argsort", "all", "any",
    "searchsorted", "digitize", "one_hot", "zeros_like", "ones_like",
}  # fmt: skip
STRAIGHT = {  # linear, or in pieces
    "add", "subtract", "negative", "abs", "real", "imag", "conj", "maximum", "minimum", "clip", "relu", "relu6",
    "leaky_relu", "hard_sigmoid", "hard_shrink", "soft_shrink", "threshold", "mod", "fmod", "copy", "cast",
    "nan_to_num", "heaviside", "nextafter", "full", "full_like",
}  # fmt: skip
CURVED = {
    "multiply", "divide", "divide_no_nan", "power", "reciprocal", "square", "sqrt", "rsqrt", "exp", "exp2", "expm1",
    "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh",
    "tanh", "arcsinh", "arccosh", "arctanh", "hypot", "logaddexp", "logaddexp2", "cbrt", "ldexp", "polar", "sigmoid",
    "softplus", "elu", "celu", "selu", "silu", "gelu", "log_sigmoid", "softsign", "tanh_shrink", "hard_silu", "erf",
    "erfc", "erfinv", "i0", "binary_crossentropy",
}  # fmt: skip
PRODUCTS = {"multiply": [(0, 1)], "divide": [(0, 1), (1, 1)], "divide_no_nan": [(0, 1), (1, 1)]}

# ops that arrange entries anew: where their operands are. They run on the numbers of the entries
MOVED = {
    "reshape": (0,), "transpose": (0,), "swapaxes": (0,), "moveaxis": (0,), "expand_dims": (0,), "squeeze": (0,),
    "concatenate": (0,), "stack": (0,), "split": (0,), "broadcast_to": (0,), "flip": (0,), "tile": (0,), "repeat": (0,),
    "roll": (0,), "pad": (0, 3), "unstack": (0,), "diagonal": (0,), "get_item": (0,), "slice": (0,),
    "slice_update": (0, 2), "take": (0,), "take_along_axis": (0,), "unfold": (0,), "extract_sequences": (0,),
    "where": (1, 2), "select": (1, 2),
}  # fmt: skip

# reductions, and what keeps the shape: where the axis is among the arguments, and whether the function is straight
REDUCED = {
    "sum": (1, True), "mean": (1, True), "max": (1, True), "min": (1, True), "prod": (1, False), "var": (1, False),
    "std": (1, False), "logsumexp": (1, False),
}  # fmt: skip
ALONG = {
    "softmax": (1, False), "log_softmax": (1, False), "normalize": (1, False), "sort": (1, True),
    "layer_normalization": (3, False), "rms_normalization": (2, False), "glu": (1, False),
}  # fmt: skip
LAST = {  # how many of the last dimensions are mixed, where those before are a batch
    "cholesky": 2, "det": 2, "slogdet": 2, "inv": 2, "pinv": 2, "expm": 2, "lu_factor": 2, "qr": 2, "svd": 2, "eigh": 2,
    "eig": 2, "top_k": 1, "view_as_complex": 1,
}  # fmt: skip
SIZED_BY_VALUES = {"nonzero", "bincount", "arange"}
LINEAR_LAST = {"top_k", "view_as_complex"}
TRANSFORMS = {"fftn", "ifftn", "rfftn", "irfftn"}


def rule_of(name: str) -> Callable[..., Any]:
    """Return the rule of an op by its name."""
    for names, rule in RULES:
        if name in names:
            return rule
    return mix_all


def operands(args: Sequence[Any]) -> list[Traced]:
    """Return the traced tensors among arguments and lists of them."""
    found: list[Traced] = []
    for arg in args:
        if isinstance(arg, Traced):
            found.append(arg)
        elif isinstance(arg, (list, tuple)):
            found += operands(arg)
    return found


def broadcast(x: Traced, shape: Sequence[int]) -> Map:
    """Return the map from a tensor of `shape` to an operand that is broadcast to it."""
    return None if x.shape == tuple(shape) else np.broadcast_to(places(x.shape), tuple(shape)).ravel()


def constant(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    if any(x.dtype.kind == "c" for x in operands(args)):
        return mix_all(tracer, name, args, result)
    return tracer.each(result, lambda y: tracer.make(y, ()))


def elementwise(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    found = [x for x in (args[1:] if name == "full_like" else args) if isinstance(x, Traced)]
    along = {x.number: broadcast(x, result.shape) for x in found}
    if name == "multiply" and len(found) == 1:
        weights = args[1] if args[0] is found[0] else args[0]
        if is_fixed(weights) and not weights.all():
            every = broadcast(found[0], result.shape)
            every = np.arange(result.size) if every is None else every
            along[found[0].number] = np.where(np.broadcast_to(weights, result.shape).ravel() == 0, -1, every)
    parents = [(x, along[x.number]) for x in found]
    if name in STRAIGHT and not (name == "abs" and args[0].dtype.kind == "c"):
        return tracer.make(result, parents)
    if name not in PRODUCTS:
        return tracer.make(result, parents, curved=True)
    every, pairs = np.arange(result.size), []
    for a, b in PRODUCTS[name]:
        if isinstance(args[a], Traced) and isinstance(args[b], Traced):
            left, right = (every if (m := along[args[k].number]) is None else m for k in (a, b))
            right = left if args[a] is args[b] else right
            pairs.append(Pairs(args[a].sets, args[b].sets, left, right, every))
    return tracer.make(result, parents, pairs)


def move_entries(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    positions = MOVED[name]
    given = operands([args[k] for k in positions if k < len(args)])
    others = operands([arg for k, arg in enumerate(args) if k not in positions])
    groups_of: dict[int, Any] = {}
    if others and (name == "repeat" or any(x.dtype == bool for x in others if name == "get_item")):
        raise Traced.refusal("values that decide a shape")
    if others:  # an index that is not known takes any entry along the axes that it indexes
        axes: Sequence[int] | None = None
        if name in ("where", "select"):
            return tracer.make(result, [(x, broadcast(x, result.shape)) for x in given])
        if name in ("take", "take_along_axis") and args[2] is not None:
            axes = [_args.single_axis(args[2], args[0].ndim)]
        elif name not in ("take", "take_along_axis", "get_item", "slice"):
            return mix_all(tracer, name, args, result)
        for x in given:
            groups_of[x.number] = groups(x.shape, range(x.ndim) if axes is None else axes)
    starts: dict[int, int] = {}
    start = 0
    for x in given:
        starts.setdefault(x.number, start)
        start += x.size

    def number(arg: Any) -> Any:
        if isinstance(arg, (list, tuple)):
            return type(arg)(map(number, arg))
        if arg is None or isinstance(arg, str):
            return arg
        if not isinstance(arg, Traced):
            return np.full(np.shape(arg), -1, np.int32)
        shown = groups_of[arg.number][0].reshape(arg.shape) if arg.number in groups_of else places(arg.shape)
        return (shown + starts[arg.number]).astype(np.int32)

    numbered = [number(arg) if k in positions else tracer.plain(arg) for k, arg in enumerate(args)]
    sources = tracer.numpy(name)(*numbered)

    def take(y: Any, source: Any) -> Traced:
        source, parents = np.asarray(source).ravel(), []
        for x in {x.number: x for x in given}.values():
            begin = starts[x.number]
            mine = np.where((source >= begin) & (source < begin + x.size), source - begin, -1).astype(np.int32)
            if x.number in groups_of:
                along, _ = join_groups(x, *groups_of[x.number])
                parents.append((x, follow(along, mine)))
            elif (mine >= 0).any():
                parents.append((x, mine))
        return tracer.make(y, parents)

    if isinstance(result, (list, tuple)):
        return type(result)(take(y, source) for y, source in zip(result, sources, strict=True))
    return take(result, sources)


def update(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    x, indices, updates, reduction = args
    if isinstance(indices, Traced):
        return mix_all(tracer, name, args, result)
    columns = np.moveaxis(np.asarray(indices), -1, 0)
    cells = tuple(np.where(column < 0, column + n, column) for column, n in zip(columns, result.shape, strict=False))
    target = places(result.shape)[cells].ravel()
    parents: list[tuple[Traced, Map]] = []
    if isinstance(x, Traced):
        kept = places(x.shape).ravel().copy()
        if reduction is None:
            kept[target] = -1
        parents.append((x, kept))
    if isinstance(updates, Traced):
        spread = np.broadcast_to(places(updates.shape), places(result.shape)[cells].shape).ravel()
        parents.append((updates, matrix(target, spread, (result.size, updates.size))))
    return tracer.make(result, parents, curved=reduction == "mul")


def segments(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    x, ids = args[0], args[1]
    if isinstance(ids, Traced) or not isinstance(x, Traced):
        return mix_all(tracer, name, args, result)
    ids = np.asarray(ids)
    inside = np.flatnonzero((ids >= 0) & (ids < result.shape[0]))
    target = places(result.shape)[ids[inside]].ravel()
    along = matrix(target, places(x.shape)[inside].ravel(), (result.size, x.size))
    return tracer.make(result, [(x, along)], curved=name == "segment_prod")


def axes_of(args: Sequence[Any], position: int, ndim: int) -> tuple[int, ...]:
    axis = args[position] if position < len(args) else None
    return tuple(range(ndim)) if axis is None else tuple(_args.axes(axis, ndim))


def reduce_axes(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    x = args[0]
    if not isinstance(x, Traced) or len(operands(args)) > 1:
        return mix_all(tracer, name, args, result)
    position, is_straight = REDUCED[name]
    group, n = groups(x.shape, axes_of(args, position, x.ndim))
    along, _ = join_groups(x, group, n)
    return tracer.make(result, [(x, along)], curved=not is_straight)


def along_axes(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    position, is_straight = ALONG[name]
    x = args[0]
    if not isinstance(x, Traced):
        return mix_all(tracer, name, args, result)
    axes = axes_of(args, position, x.ndim)
    if result.shape != x.shape:  # half as many along the axis
        axes = tuple(range(x.ndim))
    return mix_along(tracer, operands(args), axes, result, not is_straight)


def mix_along(tracer: Any, given: Sequence[Traced], axes: Sequence[int], result: Any, curved: bool) -> Traced:
    """Return a result of the shape of its first operand, in which entries along `axes` are mixed."""
    shape = given[0].shape
    group, n = groups(shape, axes)
    parents: list[tuple[Traced, Map]] = []
    for x in given:
        if x.shape == shape:
            parents.append((x, join_groups(x, group, n)[0]))
        else:  # one number for each entry along the axes, or a tensor that is broadcast: any of it
            parents.append((x, matrix(np.repeat(np.arange(n), x.size), np.tile(np.arange(x.size), n), (n, x.size))))
    sets = union([follow(x.sets, along) for x, along in parents])
    out = groups(result.shape, axes)[0] if result.shape == shape else np.zeros(result.size, np.int64)
    pairs = [Pairs(sets, sets, out, out, np.arange(result.size))] if curved else []
    return tracer.make(result, [(x, along[out]) for x, along in parents], pairs)


def mix_last(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    """The last dimensions of the operands are mixed; those before are a batch, which they share."""
    given, last = operands(args), LAST[name]
    batch = given[0].shape[: given[0].ndim - last]
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    if any(x.shape[: x.ndim - last] != batch for x in given) or any(y.shape[: len(batch)] != batch for y in results):
        return mix_all(tracer, name, args, result)
    n = math.prod(batch)
    parts = [join_groups(x, np.repeat(np.arange(n), x.size // max(n, 1)), n) for x in given]
    sets = union([part[1] for part in parts])

    def one(y: Any) -> Traced:
        out = np.repeat(np.arange(n), y.size // max(n, 1))
        pairs = [] if name in LINEAR_LAST else [Pairs(sets, sets, out, out, np.arange(y.size))]
        return tracer.make(y, [(x, part[0][out]) for x, part in zip(given, parts, strict=True)], pairs)

    return tracer.each(result, one)


def transform_axes(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    """A Fourier transform mixes the entries along its axes, whose number it may change."""
    given, axes = operands(args), args[2]
    parts = [join_groups(x, *groups(x.shape, axes))[0] for x in given]

    def one(y: Any) -> Traced:
        out = groups(y.shape, axes)[0]
        return tracer.make(y, [(x, along[out]) for x, along in zip(given, parts, strict=True)])

    return tracer.each(result, one)


def solve_columns(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    """A right-hand side is mixed along its rows, for each of its columns; the matrix goes into all."""
    a, b = args[:2]
    shape = (b.value if isinstance(b, Traced) else np.asarray(b)).shape
    if isinstance(a, Traced) or result.shape != shape:
        return mix_all(tracer, name, args, result)
    return mix_along(tracer, [b], [max(len(shape) - 2, 0)], result, False)


def mix_all(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    given = list({x.number: x for x in operands(args)}.values())
    sets = union([join_groups(x, np.zeros(x.size, np.int64), 1)[1] for x in given])

    def one(y: Any) -> Traced:
        out = np.zeros(y.size, np.int64)
        return tracer.add(Traced(y, sets[out], (), [Pairs(sets, sets, out, out, np.arange(y.size))]))

    tracer.keep_all()
    return tracer.each(result, one)


def accumulate(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    x, axis = args[0], args[1]
    shape = (x.size,) if axis is None else x.shape
    numbers = np.moveaxis(places(shape), 0 if axis is None else _args.single_axis(axis, x.ndim), -1)
    numbers = numbers.reshape(-1, numbers.shape[-1])
    later, earlier = np.tril_indices(numbers.shape[-1])
    along = matrix(numbers[:, later].ravel(), numbers[:, earlier].ravel(), (x.size, x.size))
    return tracer.make(result, [(x, along)], curved=name == "cumprod")


def multiply(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    """A product of tensors, as labels of their dimensions say: those that the result lacks are summed over."""
    xs, labels, out = _labels(name, args)
    sizes: dict[Any, int] = {}
    for x, own in zip(xs, labels, strict=True):
        for label, n in zip(own, np.shape(x), strict=True):
            sizes[label] = max(n, sizes.get(label, 1)) if n else 0
    summed = [label for label in sizes if label not in out]
    order = [*out, *summed]
    grid = [sizes[label] for label in order]
    shape, is_small = tuple(grid[: len(out)]), math.prod(grid) <= LARGEST_GRID

    def on_grid(x: Any, own: Sequence[Any], size: Sequence[int]) -> Any:
        """Return the numbers of the entries of `x` for each entry of a grid of all labels."""
        numbers = places(np.shape(x))
        for label in {label for label in own if own.count(label) > 1}:
            while own.count(label) > 1:
                first = own.index(label)
                second = own.index(label, first + 1)
                numbers = np.moveaxis(np.diagonal(numbers, 0, first, second), -1, first)
                own = [one for k, one in enumerate(own) if k != second]
        ordered = [label for label in order[: len(size)] if label in own]
        numbers = numbers.transpose([own.index(label) for label in ordered])
        beside = iter(numbers.shape)
        return np.broadcast_to(
            numbers.reshape([next(beside) if label in own else 1 for label in order[: len(size)]]), size
        )

    parents, entries = [], places(shape)
    for x, own in zip(xs, labels, strict=True):
        if isinstance(x, Traced):
            mine = [label for label in order if label in own]
            known = [np.asarray(other) for other in xs if not isinstance(other, Traced)]
            has_zeros = len(xs) == 2 and len(known) == 1 and is_fixed(known[0]) and is_small
            if has_zeros and (weights := known[0]).size and not weights.all():
                other = 1 if xs[0] is x else 0
                kept = weights.ravel()[on_grid(weights, list(labels[other]), grid)] != 0
                target = np.broadcast_to(entries.reshape(*shape, *[1] * len(summed)), grid)
                along = matrix(target[kept], on_grid(x, list(own), grid)[kept], (result.size, x.size))
            else:  # first what is summed, then what is repeated
                short = [sizes[label] if label in mine else 1 for label in out]
                within = [sizes[label] if label in mine else 1 for label in summed]
                numbers = on_grid(x, list(own), [*short, *within])
                sums = np.broadcast_to(places(short).reshape(*short, *[1] * len(within)), [*short, *within])
                along = matrix(sums.ravel(), numbers.ravel(), (math.prod(short), x.size))
                along = along[np.broadcast_to(places(short), shape).ravel()]
            parents.append((x, along))
    pairs = []
    for (a, own_a), (b, own_b) in itertools.combinations(zip(xs, labels, strict=True), 2):
        if isinstance(a, Traced) and isinstance(b, Traced):
            if not is_small:
                return tracer.make(result, parents, curved=True)
            io = np.broadcast_to(entries.reshape(*shape, *[1] * len(summed)), grid).ravel()
            ia, ib = on_grid(a, list(own_a), grid).ravel(), on_grid(b, list(own_b), grid).ravel()
            pairs.append(Pairs(a.sets, b.sets, ia, ib, io))
    return tracer.make(result, parents, pairs)


def _labels(name: str, args: Sequence[Any]) -> tuple[list[Any], list[list[Any]], list[Any]]:
    """Return the operands of a product, the labels of their dimensions, and those of the result."""
    if name == "einsum":
        xs = list(args[1])
        subscripts = str(args[0]).replace(" ", "")
        terms, arrow, out = subscripts.partition("->")
        named: list[list[Any]] = [list(term.replace("...", ".")) for term in terms.split(",")]
        batch: list[Any] = []
        for x, own in zip(xs, named, strict=True):
            if "." in own:
                k = own.index(".")
                more = list(range(len(own) - 1 - len(np.shape(x)), 0))
                own[k : k + 1] = more
                batch = more if len(more) > len(batch) else batch
        letters = [label for own in named for label in own if isinstance(label, str)]
        result = (
            list(out.replace("...", ".")) if arrow else [".", *sorted(c for c in set(letters) if letters.count(c) == 1)]
        )
        if "." in result:
            k = result.index(".")
            result[k : k + 1] = batch
        return xs, named, result
    a, b = args[0], args[1]
    n, m = len(np.shape(a)), len(np.shape(b))
    if name == "tensordot":
        dims = _args.axes_to_contract(args[2], np.shape(a), np.shape(b))
        left, right = [("a", k) for k in range(n)], [("b", k) for k in range(m)]
        for i, j in zip(*dims, strict=True):
            right[j] = left[i]
        both = {left[i] for i in dims[0]}
        return [a, b], [left, right], [one for one in [*left, *right] if one not in both]
    left = [*range(2 - n, 0), "i", "k"] if n > 1 else ["k"]
    right = [*range(2 - m, 0), "k", "j"] if m > 1 else ["k"]
    batch = list(range(min(2 - n, 2 - m, 0), 0))
    return [a, b], [left, right], [*batch, *(["i"] if n > 1 else []), *(["j"] if m > 1 else [])]


def convolve(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    x, kernel, bias, strides, padding, data_format, dilation_rate = args
    shape, sizes = np.shape(x), np.shape(kernel)
    _, strides, rates = _windows.convolution(shape, sizes, strides, data_format, dilation_rate)
    is_last = data_format == "channels_last"
    out = places(result.shape) if is_last else np.moveaxis(places(result.shape), 1, -1)
    parents: list[tuple[Traced, Map]] = []
    if isinstance(x, Traced):
        numbers = places(shape) if is_last else np.moveaxis(places(shape), 1, -1)
        n_groups = _windows.groups(numbers.shape[-1], sizes)
        spans = _windows.spans(sizes[:-2], rates)
        pads = _windows.pads(numbers.shape[1:-1], spans, strides, padding)
        padded = np.pad(numbers, [(0, 0), *pads, (0, 0)], constant_values=-1)
        seen = _under_windows(
            padded, range(1, len(spans) + 1), spans, strides, rates
        )  # batch, places, channels, window
        dims = seen.shape[: len(spans) + 1]
        seen = seen.reshape(*dims, n_groups, -1).reshape(math.prod(dims) * n_groups, -1)
        rows = np.repeat(np.arange(len(seen)), seen.shape[1])
        kept = seen.ravel() >= 0
        along = matrix(rows[kept], seen.ravel()[kept], (len(seen), x.size))
        of_out = np.repeat(np.arange(len(seen)), sizes[-1] // n_groups)
        target = np.empty(result.size, np.int64)
        target[out.ravel()] = of_out
        parents.append((x, along[target]))
    if isinstance(kernel, Traced):
        along = join_groups(kernel, groups(sizes, range(len(sizes) - 1))[0], sizes[-1])[0]
        target = np.empty(result.size, np.int64)
        target[out.ravel()] = np.tile(np.arange(sizes[-1]), result.size // sizes[-1])
        parents.append((kernel, along[target]))
    if isinstance(bias, Traced):
        target = np.empty(result.size, np.int32)
        target[out.ravel()] = np.tile(np.arange(sizes[-1]), result.size // sizes[-1])
        parents.append((bias, target))
    return tracer.make(result, parents, curved=isinstance(x, Traced) and isinstance(kernel, Traced))


def pool(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    x, pool_size, strides, padding, data_format, ceil_mode = args[:6]
    axes, size, steps, pads, overhangs = _windows.pooling(x.shape, pool_size, strides, padding, data_format, ceil_mode)
    widths = [(0, 0)] * x.ndim
    for axis, (start, end), over in zip(axes, pads, overhangs, strict=True):
        widths[axis] = start, end + over
    padded = np.pad(places(x.shape), widths, constant_values=-1)
    seen = _under_windows(padded, axes, size, steps, [1] * len(axes)).reshape(result.size, -1)
    kept = seen.ravel() >= 0
    rows = np.repeat(np.arange(result.size), seen.shape[1])
    return tracer.make(result, [(x, matrix(rows[kept], seen.ravel()[kept], (result.size, x.size)))])


def _under_windows(x: Any, axes: Any, spans: Sequence[int], strides: Sequence[int], rates: Sequence[int]) -> Any:
    """Return the entries under each window in new last dimensions."""
    view = np.lib.stride_tricks.sliding_window_view(x, tuple(spans), tuple(axes))
    steps = dict(zip(axes, strides, strict=True))
    key = [*(slice(None, None, steps.get(axis)) for axis in range(x.ndim)), *(slice(None, None, r) for r in rates)]
    return view[tuple(key)]


RULES: list[tuple[Any, Callable[..., Any]]] = [
    (CONSTANT, constant),
    (STRAIGHT | CURVED, elementwise),
    (MOVED, move_entries),
    (REDUCED, reduce_axes),
    (ALONG, along_axes),
    (LAST, mix_last),
    (TRANSFORMS, transform_axes),
    ({"cumsum", "cumprod"}, accumulate),
    ({"solve", "solve_triangular"}, solve_columns),
    ({"matmul", "einsum", "tensordot"}, multiply),
    ({"scatter_update"}, update),
    ({"segment_sum", "segment_max", "segment_min", "segment_prod"}, segments),
    ({"conv"}, convolve),
    ({"average_pool", "max_pool"}, pool),
]
