"""What each primitive op does to index sets. An op without a rule here mixes all entries of all of its operands.

A rule takes the tracer, the op's arguments and its result on values, and returns the traced result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multiop._values import args as _args, host, windows as _windows
from multiop.autodiff.sparse import _sets
from multiop.autodiff.sparse._sets import (
    Map,
    Pairs,
    Traced,
    each,
    groups,
    is_fixed,
    join_groups,
    matrix,
    places,
    plain,
    starts,
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
OF_NUMBERS = STRAIGHT | CURVED  # a number among the operands may be a parameter, which happens to make zeros
PRODUCTS = {"multiply": [(0, 1)], "divide": [(0, 1), (1, 1)], "divide_no_nan": [(0, 1), (1, 1)]}

# ops that arrange entries anew: where their operands are. They run on the numbers of the entries
MOVED = {
    "reshape": (0,), "transpose": (0,), "swapaxes": (0,), "moveaxis": (0,), "expand_dims": (0,), "squeeze": (0,),
    "concatenate": (0,), "stack": (0,), "split": (0,), "broadcast_to": (0,), "flip": (0,), "tile": (0,), "repeat": (0,),
    "roll": (0,), "pad": (0, 3), "unstack": (0,), "diagonal": (0,), "get_item": (0,), "slice": (0,),
    "slice_update": (0, 2), "take": (0,), "take_along_axis": (0,), "unfold": (0,), "extract_sequences": (0,),
    "where": (1, 2), "select": (1, 2),
}  # fmt: skip

# ops that mix the entries along axes: where these are among the arguments, or, below 0, how many of the last ones
MIXED = {
    "sum": 1, "mean": 1, "max": 1, "min": 1, "prod": 1, "var": 1, "std": 1, "logsumexp": 1, "softmax": 1,
    "log_softmax": 1, "normalize": 1, "sort": 1, "glu": 1, "layer_normalization": 3, "rms_normalization": 2, "fftn": 2,
    "ifftn": 2, "rfftn": 2, "irfftn": 2, "top_k": -1, "view_as_complex": -1, "cholesky": -2, "det": -2, "slogdet": -2,
    "inv": -2, "pinv": -2, "expm": -2, "lu_factor": -2, "qr": -2, "svd": -2, "eigh": -2, "eig": -2,
}  # fmt: skip
STRAIGHT |= {"sum", "mean", "max", "min", "sort", "fftn", "ifftn", "rfftn", "irfftn", "top_k", "view_as_complex"}
SIZED_BY_VALUES = {"nonzero", "bincount", "arange"}


def operands(args: Sequence[Any]) -> list[Traced]:
    """Return the traced tensors among arguments and lists of them."""
    return [arg for arg in host.flat(args) if isinstance(arg, Traced)]


def broadcast(x: Traced, shape: Sequence[int]) -> Map:
    """Return the map from a tensor of `shape` to an operand that is broadcast to it."""
    return None if x.shape == tuple(shape) else np.broadcast_to(places(x.shape), tuple(shape)).ravel()


def constant(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    if any(x.dtype.kind == "c" for x in operands(args)):
        return mix_all(tracer, name, args, result)
    return each(lambda y: tracer.make(y, ()), result)


def elementwise(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    found = [x for x in (args[1:] if name == "full_like" else args) if isinstance(x, Traced)]
    every = np.arange(result.size)
    along = {x.number: broadcast(x, result.shape) for x in found}
    if name == "multiply" and len(found) == 1:
        weights = args[1] if args[0] is found[0] else args[0]
        if is_fixed(weights) and not weights.all():
            numbers = np.broadcast_to(places(found[0].shape), result.shape)
            along[found[0].number] = np.where(weights == 0, -1, numbers).ravel()
    parents = [(x, along[x.number]) for x in found]
    is_curved = name not in STRAIGHT or (name == "abs" and args[0].dtype.kind == "c")
    if name not in PRODUCTS:
        return tracer.make(result, parents, curved=is_curved)
    pairs = []
    for a, b in PRODUCTS[name]:
        if isinstance(args[a], Traced) and isinstance(args[b], Traced):
            left, right = (every if (m := along[args[k].number]) is None else m for k in (a, b))
            right = left if args[a] is args[b] else right
            pairs.append(Pairs(args[a].sets, args[b].sets, left, right))
    return tracer.make(result, parents, pairs)


def move_entries(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    positions = MOVED[name]
    given = {x.number: x for x in operands([args[k] for k in positions if k < len(args)])}
    others = operands([arg for k, arg in enumerate(args) if k not in positions])
    numbers = {number: places(x.shape) for number, x in given.items()}
    joined: dict[int, Any] = {}
    if others and (name == "repeat" or any(x.dtype == bool for x in others if name == "get_item")):
        raise Traced.refusal("values that decide a shape")
    if others and name in ("where", "select"):
        return tracer.make(result, [(x, broadcast(x, result.shape)) for x in given.values()])
    if others and name not in ("take", "take_along_axis", "get_item", "slice"):
        return mix_all(tracer, name, args, result)
    if others:  # an index that is not known takes any entry along the axes that it indexes
        for number, x in given.items():
            group, n = groups(x.shape, indexed_axes(name, args, x.ndim))
            numbers[number], joined[number] = group.reshape(x.shape), join_groups(x, group, n)
    begins = dict(zip(given, starts(list(given.values())), strict=True))

    def show(arg: Any) -> Any:
        if isinstance(arg, Traced):
            return (numbers[arg.number] + begins[arg.number]).astype(np.int32)
        return arg if arg is None or isinstance(arg, str) else np.full(np.shape(arg), -1, np.int32)

    def take(y: Any, source: Any) -> Traced:
        source, parents = np.asarray(source).ravel(), []
        for number, x in given.items():
            begin = begins[number]
            mine = np.where((source >= begin) & (source < begin + x.size), source - begin, -1).astype(np.int32)
            if (mine >= 0).any():
                parents.append((x, _sets.follow(joined[number], mine) if others else mine))
        return tracer.make(y, parents)

    sources = tracer.numpy(name)(*[each(show, arg) if k in positions else plain(arg) for k, arg in enumerate(args)])
    if isinstance(result, (list, tuple)):
        return type(result)(map(take, result, sources))
    return take(result, sources)


def indexed_axes(name: str, args: Sequence[Any], ndim: int) -> Sequence[int]:
    """Return the axes of an operand along which an index may be that of any entry."""
    if name.startswith("take"):
        return axes_of(args, 2, ndim)
    if name != "get_item":
        return range(ndim)
    entries = [entry for entry in _args.normalize_key(args[1], args[0].shape)[0] if entry is not None]
    return [k for k, entry in enumerate(entries) if isinstance(entry, Traced)]


def update(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    x, indices, updates, reduction = args
    part, cells = result.shape[indices.shape[-1] :], places(result.shape)
    if is_known := not isinstance(indices, Traced):
        cells = cells[tuple(np.moveaxis(np.asarray(indices), -1, 0))]
    else:  # an index that is not known may be that of any cell
        cells = cells.reshape(-1, *[1] * (indices.ndim - 1), *part)
    parents: list[tuple[Traced, Map]] = []
    if isinstance(x, Traced):
        kept = places(x.shape).ravel().copy()
        if reduction is None and is_known:
            kept[cells.ravel()] = -1
        parents.append((x, kept))
    if isinstance(updates, Traced):
        numbers = np.broadcast_to(places(updates.shape), (*indices.shape[:-1], *part))
        numbers, cells = map(np.ravel, np.broadcast_arrays(numbers, cells))
        parents.append((updates, matrix(cells, numbers, (result.size, updates.size))))
    return tracer.make(result, parents, curved=reduction == "mul")


def segments(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    x, ids = args[:2]
    if not isinstance(ids, Traced):  # what has no segment is left out
        inside = np.flatnonzero((ids >= 0) & (ids < result.shape[0]))
        x, ids = tracer.op_take(x, inside, 0), ids[inside]
    return update(tracer, name, [result, ids[..., None], x, "mul" if name == "segment_prod" else "add"], result)


def axes_of(args: Sequence[Any], position: int, ndim: int) -> tuple[int, ...]:
    axis = args[position] if position < len(args) else None
    return tuple(range(ndim)) if axis is None else tuple(_args.axes(axis, ndim))


def mix_axes(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    is_pair = name in ("irfftn", "ifftn", "fftn") and isinstance(args[0], (list, tuple))  # of real and imaginary part
    shape, at = np.shape(args[0][0] if is_pair else args[0]), MIXED[name]
    axes = range(len(shape))[at:] if at < 0 else axes_of(args, at, len(shape))
    return mix_along(tracer, operands(args), shape, axes, result, name not in STRAIGHT)


def mix_along(tracer: Any, given: list[Traced], shape: Any, axes: Any, result: Any, curved: bool) -> Any:
    """Return results in which the entries along `axes` of an operand of `shape` are mixed."""
    group, n = groups(shape, axes)
    parents: list[tuple[Traced, Map]] = []
    for x in given:
        if x.shape == tuple(shape):
            parents.append((x, join_groups(x, group, n)))
        else:  # one number for each entry along the axes, or a tensor that is broadcast: any of it
            parents.append((x, matrix(np.repeat(np.arange(n), x.size), np.tile(np.arange(x.size), n), (n, x.size))))
    mixed = tracer.make(np.ones(n), parents)  # an entry for each group

    def one(y: Any) -> Traced:
        out = np.zeros(y.size, int) if n == 1 else np.arange(n) if y.size == n else groups(y.shape, axes)[0]
        pairs = [Pairs(mixed.sets, mixed.sets, out, out)] if curved else []
        return tracer.make(y, [(mixed, out)], pairs)

    return each(one, result)


def solve(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    """A column of the result has its right-hand side and its matrix, or those rows of them that a triangle needs."""
    a, b = map(tracer.convert, args[:2])
    if is_vectors := _args.is_vector_rhs(a.shape, b.shape):
        b = tracer.op_expand_dims(b, -1)
    shape, every = (*result.shape, 1) if is_vectors else result.shape, np.arange(result.size)
    reach = np.tri(n := a.shape[-1], k=0 if name == "solve_triangular" else n)
    reach.flags.writeable = False  # its zeros count
    reach = reach if args[2:] and args[2] else reach.T
    rows = tracer.op_sum(tracer.op_multiply(a, reach), -1, True)
    of_a, of_b = (tracer.op_broadcast_to(tracer.op_matmul(reach, x), shape) for x in (rows, b))
    made = tracer.make(result, [(y, None) for y in (of_a, of_b) if isinstance(y, Traced)])
    made.pairs = [Pairs(of_a.sets, made.sets, every, every)] if isinstance(of_a, Traced) else []
    return made


def mix_all(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    return mix_along(tracer, list({x.number: x for x in operands(args)}.values()), (), (), result, True)


def accumulate(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    x, axis = args[0], args[1]
    shape = (x.size,) if axis is None else x.shape
    numbers = np.moveaxis(places(shape), 0 if axis is None else _args.single_axis(axis, x.ndim), -1)
    numbers = numbers.reshape(-1, numbers.shape[-1])
    later, earlier = np.tril_indices(numbers.shape[-1])
    along = matrix(numbers[:, later].ravel(), numbers[:, earlier].ravel(), (result.size, x.size))
    return tracer.make(result, [(x, along)], curved=name == "cumprod")


def multiply(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    """A product of tensors, as labels of their dimensions say: those that the result lacks are summed over."""
    xs, labels, out = _labels(name, args)
    sizes: dict[Any, int] = {}
    for x, own in zip(xs, labels, strict=True):
        for label, n in zip(own, np.shape(x), strict=True):
            sizes[label] = max(n, sizes.get(label, 1)) if n else 0
    order = [*out, *(label for label in sizes if label not in out)]
    is_small = math.prod(sizes.values()) <= LARGEST_GRID

    def on_grid(shape: Sequence[int], own: Sequence[Any], long: Sequence[Any] = order) -> Any:
        """Return the numbers of a tensor's entries on a grid of all labels, one wide for those that are not `long`."""
        size = [sizes[label] if label in long else 1 for label in order]
        at = dict(zip(order, np.ix_(*map(np.arange, size)), strict=True))
        key = tuple(at[k] if n > 1 else 0 for k, n in zip(own, shape, strict=True))
        return np.broadcast_to(places(shape)[key], size)

    traced = [(x, own) for x, own in zip(xs, labels, strict=True) if isinstance(x, Traced)]
    known = [(np.asarray(x), own) for x, own in zip(xs, labels, strict=True) if not isinstance(x, Traced)]
    has_zeros = len(xs) == 2 and len(known) == 1 and is_small and is_fixed(known[0][0]) and not known[0][0].all()
    parents = []
    for x, own in traced:
        if has_zeros:
            weights, theirs = known[0]
            kept = weights.ravel()[on_grid(weights.shape, theirs)] != 0
            along = matrix(on_grid(result.shape, out)[kept], on_grid(x.shape, own)[kept], (result.size, x.size))
        else:  # first what is summed, then what is repeated
            short = [sizes[label] if label in own else 1 for label in out]
            numbers = on_grid(x.shape, own, own)
            sums = np.broadcast_to(places(short).reshape(*short, *[1] * (len(order) - len(out))), numbers.shape)
            along = matrix(sums.ravel(), numbers.ravel(), (math.prod(short), x.size))
            along = along[np.broadcast_to(places(short), result.shape).ravel()]
        parents.append((x, along))
    if not is_small and len(traced) > 1:
        return tracer.make(result, parents, curved=True)
    pairs = [
        Pairs(a.sets, b.sets, *(on_grid(*x).ravel() for x in ((a.shape, of_a), (b.shape, of_b), (result.shape, out))))
        for (a, of_a), (b, of_b) in itertools.combinations(traced, 2)
    ]
    return tracer.make(result, parents, pairs)


def _labels(name: str, args: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """Return the operands of a product, the labels of their dimensions, and those of the result."""
    if name == "tensordot":
        n, m = np.ndim(args[0]), np.ndim(args[1])
        left, right = list(range(n)), list(range(n, n + m))
        for i, j in zip(*_args.axes_to_contract(args[2], np.shape(args[0]), np.shape(args[1])), strict=True):
            right[j] = left[i]
        return args[:2], [left, right], [label for label in [*left, *right] if (label in left) != (label in right)]
    if name == "einsum":
        xs, subscripts = args[1], args[0]
    else:
        xs, (n, m) = args[:2], map(np.ndim, args[:2])
        subscripts = f"{'...ik' if n > 1 else 'k'},{'...kj' if m > 1 else 'k'}->...{'i' * (n > 1)}{'j' * (m > 1)}"
    return xs, *_args.labels(subscripts, list(map(np.ndim, xs)))


def convolve(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    """A convolution is a product of the kernel with the entries that its windows take."""
    x, kernel, bias, strides, padding, data_format, dilation_rate = args
    sizes, at = np.shape(kernel), -1 if data_format == "channels_last" else 1
    _, strides, rates = _windows.convolution(np.shape(x), sizes, strides, data_format, dilation_rate)
    x = tracer.op_moveaxis(x, at, -1)
    pads = _windows.pads(x.shape[1:-1], _windows.spans(sizes[:-2], rates), strides, padding)
    x = tracer.op_pad(x, [(0, 0), *pads, (0, 0)], "constant", 0)
    numbers = np.moveaxis(result, at, -1).shape[1:-1]
    for k, window in enumerate(zip(numbers, sizes, strides, rates, strict=False)):
        x = tracer.op_take(x, _windows.positions(*window), 2 * k + 1)
    n_groups = x.shape[-1] // sizes[-2]
    x = tracer.op_reshape(x, (*x.shape[:-1], n_groups, sizes[-2]))
    kernel = tracer.op_reshape(kernel, (*sizes[:-1], n_groups, sizes[-1] // n_groups))
    subscripts = ("bwigc,wcgo->bigo", "bwivjgc,wvcgo->bijgo", "bwivjukgc,wvucgo->bijkgo")[len(numbers) - 1]
    y = tracer.op_reshape(tracer.op_einsum(subscripts, [x, kernel]), np.moveaxis(result, at, -1).shape)
    y = y if bias is None else tracer.op_add(y, bias)
    return tracer.make(result, [(tracer.op_moveaxis(y, -1, at), None)])


def pool(tracer: Any, name: str, args: Sequence[Any], result: Any) -> Any:
    y = args[0]
    for axis, size, stride, pads, over in zip(*_windows.pooling(y.shape, *args[1:6]), strict=True):
        (number,) = _windows.numbers_of_windows([y.shape[axis]], [size], [stride], [pads], [over])
        inside = np.clip(_windows.positions(number, size, stride, 1) - pads[0], 0, y.shape[axis] - 1)
        y = tracer.op_max(tracer.op_take(y, inside, axis), axis, False, None)
    return tracer.make(result, [(y, None)])


BY_KIND: list[tuple[Any, Callable[..., Any]]] = [
    (CONSTANT, constant),
    (MIXED, mix_axes),
    (STRAIGHT | CURVED, elementwise),
    (MOVED, move_entries),
    ({"cumsum", "cumprod"}, accumulate),
    ({"solve", "solve_triangular"}, solve),
    ({"matmul", "einsum", "tensordot"}, multiply),
    ({"scatter_update"}, update),
    ({"segment_sum", "segment_max", "segment_min", "segment_prod"}, segments),
    ({"conv"}, convolve),
    ({"average_pool", "max_pool"}, pool),
]
RULES = {name: rule for names, rule in reversed(BY_KIND) for name in names}
