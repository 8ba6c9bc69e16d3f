"""JAX's primitives and what they are in multiop: one row per primitive, or per function of JAX that is called by name.

A row takes the operands in order, then the equation's parameters under JAX's names, those that it supports. Three names
are special: `out` is the result (a `Value` without content, for its shape and dtype; a tuple of several), `emit` adds a
statement in front and returns its results, and `made` returns the expression that computed a tensor. An equation with a
parameter that its row does not take has no translation.

Operands of `ENTRYWISE` are tensors that broadcast, Python numbers and sizes (`Dim`); those of `ROWS` are tensors of the
shapes that the equation says, and Python numbers where it has scalars that are constant.
"""

from __future__ import annotations

import math
import string
from functools import partial
from typing import Any

import numpy as np

from multiop.porting._graph import SEED, Call, Dim, DType, Expression, Infix, Item, Name, Value, call, is_call
from multiop.porting._rows import (
    Row,
    Untranslated,
    add_sizes,
    binary,
    cast,
    is_number,
    pad_by,
    part,
    polygamma,
    short,
    sizes,
    spellings,
    split,
    truncated_quotient,
    unary,
)
from multiop.porting.jax.indices import dynamic_slice, dynamic_update, gather, scatter, scatter_difference


def is_floating(x):
    """Say whether a tensor holds real floating-point numbers."""
    return x.dtype.startswith(("float", "bfloat"))


def axes_of(axes, ndim):
    """Return the axes of a reduction: `None` for all, the last one as -1."""
    axes = tuple(int(axis) for axis in axes)
    if len(axes) == ndim:
        return None
    return (axes[0] if axes[0] < ndim - 1 else -1) if len(axes) == 1 else axes


# entry by entry


def infix(operator, op, x, y, out):
    """An operator of Python; an op allows tensors of integers of several widths, and unsigned ones on PyTorch."""
    is_integer = out.dtype.startswith("int") and isinstance(x, Value) and isinstance(y, Value)
    if is_integer or out.dtype.startswith("uint") or isinstance(x, Dim) or isinstance(y, Dim):
        return call(f"ops.{op}", x, y)
    return Infix(operator, x, y)


def divide(x, y, out):
    if out.dtype.startswith(("float", "bfloat", "complex")):
        return infix("/", "divide", x, y, out)
    if is_number(y) and y > 0 and out.dtype.startswith("u"):
        return call("ops.floor_divide", x, y)
    return truncated_quotient(x, y)


def power(x, y, out):
    if isinstance(y, Value) and y.dtype != out.dtype:
        y = cast(y, out.dtype)
    return call("ops.square", x) if is_number(y) and y == 2 else call("ops.power", x, y)


def integer_power(x, y):
    if y < 0:
        positive = x if y == -1 else integer_power(x, -y)
        return call("ops.reciprocal", positive)
    return call("ops.square", x) if y == 2 else call("ops.power", x, y)


def maximum(x, y, made):
    """JAX reduces from the smallest number on, which changes nothing."""
    for bound, other in ((x, y), (y, x)):
        if is_number(bound) and bound == -math.inf and isinstance(other, Value):
            return other
    for bound, other in ((x, y), (y, x)):
        expression = made(other)
        if is_number(bound) and bound == 0 and is_call(expression, "ops.var"):
            return other  # a variance is not negative
    return call("ops.maximum", x, y)


def logical(op, *operands, out):
    """`and`, `or`, `xor`: of bools or of bits."""
    return call(f"ops.{'logical' if out.dtype == 'bool' else 'bitwise'}_{op}", *operands)


def select(which, *cases, out):
    if is_number(which):
        return cases[int(which)]
    if len(cases) > 2:
        *rest, chosen = cases
        if not isinstance(chosen, Value):
            chosen = call("ops.cast", chosen, DType(out.dtype))
        for number, case in reversed(list(enumerate(rest))):
            chosen = call("ops.where", call("ops.equal", which, number), case, chosen)
        return chosen
    if isinstance(which, Value) and which.dtype != "bool":
        which = call("ops.not_equal", which, 0)
    no, yes = cases
    if not any(isinstance(case, Value) for case in cases):
        yes = call("ops.cast", yes, DType(out.dtype))
    return call("ops.where", which, yes, no)


def clamp(low, x, high, out):
    """The gradient at the bounds is 0, unlike that of a clip."""
    clipped = call("ops.clip", x, low, high)
    if not is_floating(out):
        return clipped
    inside = call("ops.logical_and", call("ops.greater", x, low), call("ops.less", x, high))
    return call("ops.where", inside, x, call("ops.stop_gradient", clipped))


def write_round(x, rounding_method):
    if int(rounding_method) == 1:
        return call("ops.round", x)
    return Infix("*", call("ops.sign", x), call("ops.floor", Infix("+", call("ops.abs", x), 0.5)))


def shifted_right(kind, x, y, out):
    """Bits shifted to the right, in front of them those of the sign or zeros, whatever the dtype would take."""
    other = out.dtype.removeprefix("u") if kind == "arithmetic" else f"u{out.dtype.removeprefix('u')}"
    if other == out.dtype:
        return call("ops.right_shift", x, y)
    x, y = (call("ops.view", operand, other) if isinstance(operand, Value) else operand for operand in (x, y))
    if not (isinstance(x, Call) and isinstance(y, Call)):  # a number takes the dtype of the tensor beside it
        x, y = (call("ops.cast", operand, DType(other)) if is_number(operand) else operand for operand in (x, y))
    return call("ops.view", call("ops.right_shift", x, y), out.dtype)


def bits_of(x, dtype):
    """Return the bits of integers in a new last dimension, the lowest one first."""
    width = np.dtype(dtype).itemsize * 8
    shifted = call("ops.right_shift", call("ops.expand_dims", x, -1), call("ops.arange", width, dtype=DType(dtype)))
    return call("ops.bitwise_and", shifted, 1)


def leading_zeros(x):
    """Count the zeros in front of the highest bit that is set."""
    is_zero = call("ops.subtract", 1, call("ops.flip", bits_of(x, x.dtype), axis=-1))
    return call("ops.cast", call("ops.sum", call("ops.cumprod", is_zero, axis=-1), axis=-1), DType(x.dtype))


def bitcast(x, new_dtype, out):
    """JAX has a dimension of its own for what one entry becomes, or several become one of."""
    if out.ndim > x.ndim:
        x = call("ops.expand_dims", x, -1)
        return call("ops.view", x, out.dtype)
    viewed = call("ops.view", x, out.dtype)
    return call("ops.squeeze", viewed, axis=-1) if out.ndim < x.ndim else viewed


def total(op, x, y):
    """A comparison for which NaN is larger than any number."""
    compared = call(f"ops.{op}", x, y)
    if not (isinstance(y, Value) and is_floating(y)):
        return compared
    is_last = call("ops.isnan", y)
    if op == "less" and isinstance(x, Value):
        is_last = call("ops.logical_and", is_last, call("ops.logical_not", call("ops.isnan", x)))
    return call("ops.logical_or", compared, is_last)


# products


def product(x, y, dimension_numbers, out):
    """Write a product as an einsum; the patterns make a matrix product of it where it is one."""
    (x_sum, y_sum), (x_batch, y_batch) = [[tuple(map(int, side)) for side in pair] for pair in dimension_numbers]
    letters = iter(string.ascii_lowercase)
    first = {axis: next(letters) for axis in range(x.ndim)}
    second = {axis: first[other] for axis, other in zip((*y_sum, *y_batch), (*x_sum, *x_batch), strict=True)}
    for axis in range(y.ndim):
        if axis not in second:
            second[axis] = next(letters)
    result = [first[axis] for axis in x_batch]
    result += [first[axis] for axis in range(x.ndim) if axis not in (*x_sum, *x_batch)]
    result += [second[axis] for axis in range(y.ndim) if axis not in (*y_sum, *y_batch)]
    texts = ["".join(names[axis] for axis in range(len(names))) for names in (first, second)]
    operands = [operand if operand.dtype == out.dtype else cast(operand, out.dtype) for operand in (x, y)]
    return call("ops.einsum", f"{texts[0]},{texts[1]}->{''.join(result)}", *operands)


# reductions


def reduction(op, x, axes):
    return call(f"ops.{op}", x, axis=axes_of(axes, x.ndim), keepdims=False) if axes else x


def of_bits(op, of_bools, x, axes, out):
    """A reduction of bools, or of the bits of integers."""
    if x.dtype == "bool":
        if of_bools == "odd":
            counted = call("ops.sum", call("ops.cast", x, DType("int32")), axis=axes_of(axes, x.ndim))
            return call("ops.equal", call("ops.mod", counted, 2), 1)
        return reduction(of_bools, x, axes)
    y: Expression = x
    for axis in sorted(map(int, axes), reverse=True):
        if isinstance(x.shape[axis], Dim):
            raise Untranslated("the bits along an open dimension")
        y = call("ops.associative_scan", Name(f"ops.bitwise_{op}"), y, axis=axis)
        y = Item(y, (*[slice(None)] * axis, -1))
    return y


def general_reduction(*operands, jaxpr, dimensions, out, computation=None):
    """Reduce tensors by a function, each of them by itself, from numbers on."""
    xs, starts = operands[: len(out)], operands[len(out) :]
    reduced = []
    for x, start, op in zip(xs, starts, operations_of(jaxpr, len(out)), strict=True):
        if not is_number(start):
            raise Untranslated("from a number that is computed")
        y = call(f"ops.{_REDUCTIONS[op][0]}", x, axis=axes_of(dimensions, x.ndim))
        reduced.append(y if start == neutral(op, x.dtype) else call(f"ops.{_REDUCTIONS[op][2]}", y, start))
    return tuple(reduced)


def reduce_precision(x, exponent_bits, mantissa_bits):
    formats = {(5, 10): "float16", (8, 7): "bfloat16", (8, 23): "float32", (11, 52): "float64"}
    dtype = formats.get((exponent_bits, mantissa_bits))
    if dtype is None:
        raise Untranslated(f"to {exponent_bits} and {mantissa_bits} bits")
    return x if x.dtype == dtype else call("ops.cast", call("ops.cast", x, DType(dtype)), DType(x.dtype))


def sum_over_mapped(*xs, axes, axis_index_groups, out):
    """What is summed over an axis that `vmap` maps over."""
    if axis_index_groups is not None or not all(isinstance(axis, int) for axis in axes):
        raise Untranslated("over devices")
    return tuple(call("ops.sum", x, axis=axes_of(axes, x.ndim), keepdims=False) for x in xs)


def extreme_index(op, x, axes, out):
    position = call(f"ops.{op}", x, axis=axes_of(axes, x.ndim))
    return position if out.dtype in ("int32", "int64") else cast(position, out.dtype)


def running(op):
    """The extreme of all entries so far."""
    return lambda x, axis, reverse: call("ops.associative_scan", Name(f"ops.{op}"), x, reverse=reverse, axis=axis)


def cumulative(op, x, axis, reverse):
    if reverse:
        flipped = call(f"ops.{op}", call("ops.flip", x, axis=axis), axis=axis)
        return call("ops.flip", flipped, axis=axis)
    return call(f"ops.{op}", x, axis=axis)


# shapes


def reshape(x, out, new_sizes, dimensions):
    if dimensions is not None and list(dimensions) != list(range(x.ndim)):
        return call("ops.reshape", transpose(x, dimensions), sizes(out.shape))
    if out.shape == x.shape:
        return x
    kept = [axis for axis, size in enumerate(out.shape) if size != 1]
    if out.ndim == x.ndim + 1 and [out.shape[axis] for axis in kept] == [size for size in x.shape if size != 1]:
        for axis in range(out.ndim):
            if out.shape[axis] == 1 and (*out.shape[:axis], *out.shape[axis + 1 :]) == x.shape:
                return call("ops.expand_dims", x, axis if axis < out.ndim - 1 else -1)
    return call("ops.reshape", x, sizes(out.shape))


def transpose(x, permutation):
    axes = tuple(map(int, permutation))
    moved = [axis for axis in range(x.ndim) if axes[axis] != axis]
    if not moved:
        return x
    if len(moved) == 2:
        return call("ops.swapaxes", x, *moved) if x.ndim > 2 else call("ops.transpose", x)
    return call("ops.transpose", x, axes)


def squeeze(x, dimensions, made):
    axes = tuple(int(axis) % x.ndim for axis in dimensions)
    inner = made(x)
    if isinstance(inner, Item) and isinstance(inner.x, Value) and all(isinstance(part, slice) for part in inner.key):
        key = [*inner.key, *[slice(None)] * (inner.x.ndim - len(inner.key))]
        starts = {axis: key[axis].start or 0 for axis in axes if inner.x.shape[axis] != 1}
        if len(starts) == len(axes):
            return part(inner.x, [starts.get(axis, part) for axis, part in enumerate(key)])
    return call("ops.squeeze", x, axis=axes[0] if len(axes) == 1 else axes) if axes else x


def cut(x, start_indices, limit_indices, strides):
    key = []
    for axis, size in enumerate(x.shape):
        start, stop, step = start_indices[axis], limit_indices[axis], 1 if strides is None else strides[axis]
        key.append(slice(start or None, None if stop == size else stop, None if step == 1 else step))
    return part(x, key)


def concatenate(*xs, dimension):
    axis = dimension if dimension < xs[0].ndim - 1 or xs[0].ndim == 1 else -1
    return xs[0] if len(xs) == 1 else call("ops.concatenate", list(xs), axis=axis)


def write_open_padding(x, widths, value, between=()):
    """Write a padding whose widths are open: each may be negative, which takes entries away."""
    if any(between):
        raise Untranslated("a padding of open width, with more between the entries")
    return call("pad_or_crop", x, tuple(map(tuple, widths)), *([value] if value else []))


def with_padding(x, pads, axes, value, emit):
    """Return a tensor that is padded along some axes, and what is left to pad: all, unless a width is open."""
    if not any(isinstance(width, Dim) for pair in pads for width in pair):
        return x, [tuple(map(int, pair)) for pair in pads]
    widths, shape = [(0, 0)] * x.ndim, list(x.shape)
    for axis, (low, high) in zip(axes, pads, strict=True):
        widths[axis] = (low, high)
        shape[axis] = add_sizes(shape[axis], low, high)
    (y,) = emit(write_open_padding(x, widths, value), Value(tuple(shape), x.dtype))
    return y, [(0, 0)] * len(pads)


def pad(x, value, padding_config, out):
    if isinstance(value, Value):
        raise Untranslated("padding with a computed number")
    if any(isinstance(width, Dim) for widths in padding_config for width in widths):
        return write_open_padding(
            x, [config[:2] for config in padding_config], value, [config[2] for config in padding_config]
        )
    config = [(int(low), int(high), int(inner)) for low, high, inner in padding_config]
    cropped = [slice(-min(low, 0) or None, min(high, 0) or None) for low, high, _ in config]
    widths = tuple((max(low, 0), max(high, 0)) for low, high, _ in config)
    if any(inner for _, _, inner in config):
        shape: list[Any] = list(out.shape)
        for axis, (low, high, _) in enumerate(config):
            if min(low, high) < 0:
                if isinstance(shape[axis], Dim):
                    raise Untranslated("a negative padding of an open dimension, with more between the entries")
                shape[axis] -= min(low, 0) + min(high, 0)
        key = tuple(
            slice(low or None, -high or None, inner + 1 if inner else None)
            for (low, high), (_, _, inner) in zip(widths, config, strict=True)
        )
        op = ("ops.zeros",) if value == 0 else ("ops.full", value)
        blank = call(op[0], tuple(shape), *op[1:], dtype=DType(out.dtype))
        return part(call("ops.set_item", blank, key, x), cropped)
    return pad_by(part(x, cropped), widths, value)


def sort(*xs, dimension, is_stable, num_keys, out, emit):
    axis = dimension if dimension < xs[0].ndim - 1 else -1
    if len(xs) == 1:
        return (call("ops.sort", xs[0], axis=axis),)
    index: Expression = call("ops.argsort", xs[num_keys - 1], axis=axis)
    for key in reversed(xs[: num_keys - 1]):  # by the last key first; each step keeps the order of equals
        (before,) = emit(index, Value(key.shape, "int32"))
        after = call("ops.argsort", call("ops.take_along_axis", key, before, axis=axis), axis=axis)
        index = call("ops.take_along_axis", before, after, axis=axis)
    if num_keys == 1:
        return (call("ops.sort", xs[0], axis=axis), *[call("ops.take_along_axis", x, index, axis=axis) for x in xs[1:]])
    (order,) = emit(index, Value(xs[0].shape, "int32"))
    return tuple(call("ops.take_along_axis", x, order, axis=axis) for x in xs)


def approximate_top_k(
    x,
    k,
    reduction_dimension,
    is_max_k,
    out,
    emit,
    recall_target=None,
    reduction_input_size_override=None,
    aggregate_to_topk=True,
):
    """Take the largest, or the smallest, entries; JAX finds all of them on a CPU and a GPU."""
    if reduction_dimension not in (-1, x.ndim - 1) or not aggregate_to_topk:
        raise Untranslated("an axis that is not the last")
    if is_max_k:
        return call("ops.top_k", x, k)
    largest, index = emit(call("ops.top_k", call("ops.negative", x), k), *out)
    return call("ops.negative", largest), index


def top_k(x, k, out, axis=-1):
    if axis not in (-1, x.ndim - 1):
        raise Untranslated("an axis that is not the last")
    return call("ops.top_k", x, k)


# convolution and pooling


def conv(
    x,
    kernel,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    out,
    emit,
):
    ndim = x.ndim - 2
    x_spec, kernel_spec, out_spec = (
        tuple(getattr(dimension_numbers, name)) for name in ("lhs_spec", "rhs_spec", "out_spec")
    )
    if max(lhs_dilation) == 1:
        x, padding = with_padding(x, padding, x_spec[2:], 0, emit)
    layouts = {(0, ndim + 1, *range(1, ndim + 1)): "channels_last", tuple(range(ndim + 2)): "channels_first"}
    layout = layouts.get(x_spec)
    y: Expression = x
    if layout is None or batch_group_count > 1:
        layout = "channels_last"
        y = transpose(x, (x_spec[0], *x_spec[2:], x_spec[1]))
    space = [x.shape[axis] for axis in x_spec[2:]]
    if batch_group_count > 1:  # each part of the batch meets its own kernels, as groups of channels do
        y = batch_as_channels(y, x.shape[x_spec[0]], space, x.shape[x_spec[1]], batch_group_count)
        feature_group_count = batch_group_count
    # the kernel's dimensions are (out, in, *window) in its specification
    window = [kernel.shape[axis] for axis in kernel_spec[2:]]
    pads = [tuple(map(int, pair)) for pair in padding]
    spans = [(k - 1) * d + 1 for k, d in zip(window, rhs_dilation, strict=True)]

    def of_space(keys, other):
        return [other, *keys, other] if layout == "channels_last" else [other, other, *keys]

    is_transposed = max(lhs_dilation) > 1
    if is_transposed and (max(window_strides) > 1 or feature_group_count > 1):  # an ordinary one, of what is spread
        config = of_space(
            [(low, high, step - 1) for (low, high), step in zip(pads, lhs_dilation, strict=True)], (0,) * 3
        )
        spread = [(n - 1) * step + 1 + sum(pair) for n, step, pair in zip(space, lhs_dilation, pads, strict=True)]
        front = [x.shape[axis] for axis in (x_spec[0], x_spec[1])]
        shape = (front[0], *spread, front[1]) if layout == "channels_last" else (*front, *spread)
        y = pad(y, 0, config, Value(shape, x.dtype))
        space, pads, is_transposed = spread, [(0, 0)] * ndim, False
    if is_transposed:
        weights = transpose(kernel, (*kernel_spec[2:], kernel_spec[0], kernel_spec[1]))
        weights = call("ops.flip", weights, axis=tuple(range(ndim)) if ndim > 1 else 0)
        crops = [(span - 1 - low, span - 1 - high) for span, (low, high) in zip(spans, pads, strict=True)]
        more = [(max(-low, 0), max(-high, 0)) for low, high in crops]
        crops = [(max(low, 0), max(high, 0)) for low, high in crops]
        options = {"strides": short(lhs_dilation), "padding": tuple(crops), "output_padding": None}
        options |= {} if any(map(any, crops)) else {"padding": "valid", "output_padding": 0}
        options |= {"data_format": layout, "dilation_rate": short(rhs_dilation)}
        y = call("ops.conv_transpose", y, weights, **options)
        if any(map(any, more)):
            y = call("ops.pad", y, tuple(of_space(more, (0, 0))))
    else:
        thinned = max(window_strides) > 1 and max(rhs_dilation) > 1
        strides = [1] * ndim if thinned else list(window_strides)
        if any(side < 0 for pair in pads for side in pair):
            y = part(y, of_space([slice(-min(a, 0) or None, min(b, 0) or None) for a, b in pads], slice(None)))
            space = [
                n if isinstance(n, Dim) else n + min(a, 0) + min(b, 0) for n, (a, b) in zip(space, pads, strict=True)
            ]
            pads = [(max(a, 0), max(b, 0)) for a, b in pads]
        options = {"strides": short(strides), "padding": named_padding(space, spans, strides, pads)}
        options |= {"data_format": layout, "dilation_rate": short(rhs_dilation)}
        y = call("ops.conv", y, transpose(kernel, (*kernel_spec[2:], kernel_spec[1], kernel_spec[0])), **options)
        if thinned:
            y = Item(y, tuple(of_space([slice(None, None, step) for step in window_strides], slice(None))))
    # where batch, space and channels stand in y, and where in the result
    places = (0, *range(1, ndim + 2)) if layout == "channels_last" else (0, *range(2, ndim + 2), 1)
    order = [0] * (ndim + 2)
    for target, source in zip((out_spec[0], *out_spec[2:], out_spec[1]), places, strict=True):
        order[target] = source
    return y if order == list(range(ndim + 2)) else call("ops.transpose", y, tuple(order))


def batch_as_channels(x, batch, space, channels, groups):
    """Put the parts of the batch of `(batch, *space, channels)` beside each other, as groups of channels."""
    if isinstance(batch, Dim) or isinstance(channels, Dim):
        raise Untranslated("batch_group_count of an open dimension")
    ndim = len(space)
    y = call("ops.reshape", x, (groups, batch // groups, *space, channels))
    y = call("ops.transpose", y, (*range(1, ndim + 2), 0, ndim + 2))
    return call("ops.reshape", y, (batch // groups, *space, groups * channels))


def named_padding(space, spans, strides, pads):
    """Return `"valid"`, `"same"` or the numbers; `"same"` is independent of sizes where the stride is 1."""
    if not any(map(any, pads)):
        return "valid"
    same = []
    for size, span, stride in zip(space, spans, strides, strict=True):
        if isinstance(size, Dim):
            if stride > 1:
                break
            total = span - 1
        else:
            total = max((-(-size // stride) - 1) * stride + span - size, 0)
        same.append((total // 2, total - total // 2))
    if same == list(pads):
        return "same"
    numbers = [pair[0] if pair[0] == pair[1] else pair for pair in pads]
    return numbers[0] if len(set(numbers)) == 1 and isinstance(numbers[0], int) else tuple(numbers)


_REDUCTIONS = {  # of a window: its op, what changes nothing, and the op of two
    "add": ("sum", 0, "add"),
    "mul": ("prod", 1, "multiply"),
    "max": ("max", -math.inf, "maximum"),
    "min": ("min", math.inf, "minimum"),
    "and": ("all", True, "logical_and"),
    "or": ("any", False, "logical_or"),
}


def pooling(op, x, window_dimensions, window_strides, padding, base_dilation, window_dilation, out, emit):
    x, pads = with_padding(x, padding, range(x.ndim), neutral(op, x.dtype), emit)
    options = (tuple(window_dimensions), tuple(window_strides), pads)
    if max(*base_dilation, *window_dilation) == 1 and is_floating(x):
        pooled = plain_pool(op, x, *options, out, emit)
        if pooled is not None:
            return pooled
    number = neutral(op, x.dtype)
    return write_window_reduction(op, x, number, *options, base_dilation, window_dilation, out, emit)


def neutral(op, dtype):
    """Return the number that changes no reduction of a dtype."""
    number = _REDUCTIONS[op][1]
    if math.isinf(number) and dtype.startswith(("int", "uint")):
        return int(np.iinfo(dtype).min if number < 0 else np.iinfo(dtype).max)
    return number


def plain_pool(op, x, window, strides, pads, out, emit):
    """Write a reduction of windows as a pooling over one, two or three dimensions beside each other, if it is one."""
    active = [axis for axis in range(x.ndim) if window[axis] != 1 or strides[axis] != 1 or any(pads[axis])]
    if not active:
        return x
    first, last = active[0], active[-1] + 1
    if last - first > 3 or any(side < 0 for pair in pads for side in pair):
        return None
    window, strides, pads = window[first:last], strides[first:last], pads[first:last]
    front, space, back = x.shape[:first], x.shape[first:last], x.shape[last:]
    layouts = {(1, 1): "channels_last", (2, 0): "channels_first"}
    layout = layouts.get((len(front), len(back)), "channels_last")
    y: Expression = x
    is_folded = (len(front), len(back)) not in layouts
    if is_folded:  # what stands in front of space becomes the batch, what stands behind it the channels
        if sum(isinstance(size, Dim) for size in front) > 1 or any(isinstance(n, Dim) for n in (*space, *back)):
            return None
        y = call("ops.reshape", x, (-1, *space, math.prod(back)))
    if op == "min":
        (y,) = emit(call("ops.negative", y), Value((*front, *space, *back), x.dtype))
    named = named_padding(space, window, strides, pads)
    widths = tuple([(0, 0), *pads, (0, 0)] if layout == "channels_last" else [(0, 0), (0, 0), *pads])
    if op == "add":
        y = call("ops.pad", y, widths) if named != "valid" else y
        y = call("ops.average_pool", y, short(window), short(strides), data_format=layout)
        y = Infix("*", y, float(math.prod(window)))
    else:
        if any(side >= size for pair, size in zip(pads, window, strict=True) for side in pair):
            y, named = call("ops.pad", y, widths, constant_values=-math.inf), "valid"
        y = call("ops.max_pool", y, short(window), short(strides), padding=named, data_format=layout)
        y = call("ops.negative", y) if op == "min" else y
    return call("ops.reshape", y, sizes(out.shape)) if is_folded else y


def write_window_reduction(op, x, number, window, strides, pads, base_dilation, window_dilation, out, emit):
    """Reduce windows of any form, of entries with `number` around and between them: the first of equals is taken."""
    if 0 in out.shape:
        raise Untranslated("windows larger than what they slide over")
    config = [(*pair, step - 1) for pair, step in zip(pads, base_dilation, strict=True)]
    shape = [
        size if isinstance(size, Dim) else (size - 1) * step + 1 + sum(pair)
        for size, step, pair in zip(x.shape, base_dilation, pads, strict=True)
    ]
    if any(isinstance(n, Dim) and any(c) for n, c in zip(x.shape, config, strict=True)):
        raise Untranslated("padding of an open dimension")
    y = pad(x, number, config, Value(tuple(shape), x.dtype))
    entries = Value((*out.shape, math.prod(window)), x.dtype)
    (entries,) = emit(call("windows", y, window, strides, window_dilation), entries)
    if op in ("max", "min") and is_floating(x):
        place = call(f"ops.arg{op}", entries, axis=-1, keepdims=True)
        return call("ops.squeeze", call("ops.take_along_axis", entries, place, axis=-1), axis=-1)
    return cast_as(call(f"ops.{_REDUCTIONS[op][0]}", entries, axis=-1), out, op)


def cast_as(reduced, out, op):
    """Sums and products of small integers are wider in multiop."""
    is_narrow = op in ("add", "mul") and not out.dtype.startswith(("float", "bfloat", "complex", "int64", "uint64"))
    return call("ops.cast", reduced, DType(out.dtype)) if is_narrow else reduced


def general_pool(
    x, initial, jaxpr, consts, window_dimensions, window_strides, padding, base_dilation, window_dilation, out, emit
):
    """Reduce windows by a function of two entries, which starts from a number that also stands around the entries."""
    (op,) = operations_of(jaxpr, 1)
    if isinstance(initial, Value):
        raise Untranslated("from a number that is computed")
    pads = [tuple(map(int, pair)) for pair in padding]
    options = (tuple(window_dimensions), tuple(window_strides), pads, base_dilation, window_dilation, out[0], emit)
    reduced = write_window_reduction(op, x, initial, *options)
    return (reduced if initial == neutral(op, x.dtype) else call(f"ops.{_REDUCTIONS[op][2]}", reduced, initial),)


def operations_of(jaxpr, count):
    """Return the primitives that a function of `count` pairs of numbers consists of: one for each pair."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    made = {equation.outvars[0]: equation for equation in jaxpr.eqns}
    names = []
    for result, *pair in zip(jaxpr.outvars, jaxpr.invars[:count], jaxpr.invars[count:], strict=True):
        equation = made.get(result) if not hasattr(result, "val") else None
        if equation is None or equation.primitive.name not in _REDUCTIONS or set(equation.invars) != set(pair):
            raise Untranslated("by a function of more than one step")
        names.append(str(equation.primitive.name))
    return names


def gathered_at_extremes(
    tangents, x, select_prim, window_dimensions, window_strides, padding, base_dilation, window_dilation, out
):
    """What forward mode makes of a pooling: the tangent of the entry that is chosen."""
    options, value = of_extremes(select_prim, x, window_dimensions, window_strides, padding)
    if max(*base_dilation, *window_dilation) > 1:
        raise Untranslated("a dilation")
    return call("gather_extremes", x, tangents, *options, value)


def scattered_to_extremes(cotangents, x, select_prim, window_dimensions, window_strides, padding):
    """What reverse mode makes of a pooling: the entry that is chosen gets the cotangent of its window."""
    options, value = of_extremes(select_prim, x, window_dimensions, window_strides, padding)
    return call("scatter_extremes", x, cotangents, *options, value)


def of_extremes(select_prim, x, window, strides, padding):
    pads = tuple(tuple(map(int, pair)) for pair in padding)
    if any(side < 0 for pair in pads for side in pair) or not is_floating(x):
        raise Untranslated("of integers, or with a negative padding")
    value = -math.inf if select_prim.name.startswith("ge") else math.inf
    return (tuple(window), tuple(strides), pads), value


# linear algebra


def qr(x, full_matrices, pivoting=False, use_magma=None):
    if pivoting:
        raise Untranslated("with pivots")
    return call("ops.qr", x, mode="complete" if full_matrices else "reduced")


def eigh(x, lower, sort_eigenvalues, out, emit):
    vectors, values = out
    factors = emit(call("ops.eigh", x, **({} if lower else {"UPLO": "U"})), values, vectors)
    return factors[1], factors[0]


def eig(x, compute_left_eigenvectors, compute_right_eigenvectors, out, implementation=None, enable_eigvec_derivs=False):
    if compute_left_eigenvectors or implementation is not None:
        raise Untranslated("with eigenvectors from the left")
    return call("ops.eig", x) if compute_right_eigenvectors else (Item(call("ops.eig", x), (0,)),)


def svd(x, full_matrices, compute_uv, out, emit):
    if not compute_uv:
        return (call("ops.svd", x, compute_uv=False),)
    singular, left, right = out
    factors = emit(call("ops.svd", x, full_matrices=full_matrices), left, singular, right)
    return factors[1], factors[0], factors[2]


def cholesky(x, symmetrize_input=False):
    if symmetrize_input:
        x = Infix("/", Infix("+", x, call("ops.swapaxes", x, -1, -2)), 2)
    return call("ops.linalg.cholesky", x)


def fourier(x, fft_type, fft_lengths):
    """Transform the last axes: JAX has cut or padded them, but for the last one of a real result."""
    kind, axes = fft_type.name, tuple(range(x.ndim - len(fft_lengths), x.ndim))
    if kind == "RFFT":
        return call("real_fourier", x, axes)
    if kind == "IRFFT":
        return call("inverse_real_fourier", x, axes, int(fft_lengths[-1]))
    return call("fourier", x, axes, inverse=True, power=1.0) if kind == "IFFT" else call("fourier", x, axes)


def triangular_solve(a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    if unit_diagonal or (conjugate_a and a.dtype.startswith("complex")):
        raise Untranslated("with these options")
    if not left_side:
        a = a if transpose_a else call("ops.swapaxes", a, -1, -2)
        y = call("ops.linalg.solve_triangular", a, call("ops.swapaxes", b, -1, -2), lower=lower == transpose_a)
        return call("ops.swapaxes", y, -1, -2)
    if transpose_a:
        return call("ops.linalg.solve_triangular", call("ops.swapaxes", a, -1, -2), b, lower=not lower)
    return call("ops.linalg.solve_triangular", a, b, lower=lower)


# functions of JAX that are one op


def of_body(primitive, option, body):
    """Return an option of the first equation of a kind in a function's body."""
    for equation in body.eqns:
        if equation.primitive.name == primitive:
            return equation.params[option]
    raise Untranslated("in this form")


def variance(x, correction, body, out):
    """The axes are those of the sums in it; what is not reduced but stays has size 1."""
    if not is_number(correction):
        raise Untranslated("a correction that is computed")
    axes = of_body("reduce_sum", "axes", body)
    biased = call("ops.var", x, axis=axes_of(axes, x.ndim), keepdims=out.ndim == x.ndim)
    if correction == 0:
        return biased
    counted = [x.shape[axis] for axis in axes]
    if any(isinstance(size, Dim) for size in counted) or math.prod(counted) <= correction:
        raise Untranslated("an unbiased variance along a dimension that is open")
    n = math.prod(counted)
    return Infix("*", biased, n / (n - correction))


def uniform(key, low, high, out):
    if not (is_number(low) and is_number(high)):
        raise Untranslated("bounds that are computed")
    args = () if (low, high) == (0, 1) else (low, high)
    return call("random.uniform", out.shape, *args, dtype=DType(out.dtype), seed=SEED)


def bernoulli(key, p, body, out):
    dtype = next(eqn.params["jaxpr"].out_avals[0].dtype.name for eqn in body.eqns if "jaxpr" in eqn.params)
    return call("ops.less", call("random.uniform", out.shape, dtype=DType(dtype), seed=SEED), p)


def copysign(x, y):
    size = call("ops.abs", x)
    return call("ops.where", call("ops.signbit", y), call("ops.negative", size), size)


def logaddexp(x, y):
    for bound, other in ((x, y), (y, x)):
        if is_number(bound) and bound == 0:
            return call("ops.softplus", other)
    return call("ops.logaddexp", x, y)


_FLOATING = "cos cosh sin sinh tan tanh exp exp2 expm1 log log2 log1p sqrt rsqrt cbrt erf erfc digamma lgamma abs floor ceil sign"

_UNARY = (
    "acos=arccos acosh=arccosh asin=arcsin asinh=arcsinh atan=arctan atanh=arctanh erf_inv=erfinv logistic=sigmoid "
    "neg=negative square=square is_finite=isfinite real=real imag=imag stop_gradient=stop_gradient"
)
_BINARY = (
    "rem=fmod min=minimum atan2=arctan2 nextafter=nextafter igamma=gammainc igammac=gammaincc eq=equal ne=not_equal "
    "lt=less le=less_equal gt=greater ge=greater_equal shift_left=left_shift"
)
ENTRYWISE: dict[str, Row] = {
    **{name: unary(name) for name in _FLOATING.split()},
    **{name: unary(op) for name, op in spellings(_UNARY).items()},
    "round": write_round,
    "conj": lambda x, input_dtype=None: call("ops.conjugate", x),
    "complex": lambda x, y: call("ops.view_as_complex", call("ops.stack", [x, y], axis=-1)),
    "convert_element_type": lambda x, new_dtype, out: x if is_number(x) else cast(x, out.dtype),
    **dict.fromkeys(("add", "add_any"), partial(infix, "+", "add")),
    "sub": partial(infix, "-", "subtract"),
    "mul": partial(infix, "*", "multiply"),
    "div": divide,
    **{name: binary(op) for name, op in spellings(_BINARY).items()},
    "pow": power,
    "integer_pow": integer_power,
    "max": maximum,
    "polygamma": polygamma,
    "lt_to": partial(total, "less"),
    "le_to": partial(total, "less_equal"),
    **{name: partial(logical, name) for name in ("and", "or", "xor", "not")},
    **{f"shift_right_{kind}": partial(shifted_right, kind) for kind in ("arithmetic", "logical")},
    "population_count": lambda x: call("ops.cast", call("ops.sum", bits_of(x, x.dtype), axis=-1), DType(x.dtype)),
    "clz": leading_zeros,
    "select_n": select,
    "clamp": clamp,
}

_NAMED = (
    "dot_general=product reduce=general_reduction reduce_precision psum=sum_over_mapped "
    "bitcast_convert_type=bitcast reshape transpose squeeze slice=cut concatenate pad sort top_k "
    "conv_general_dilated=conv reduce_window=general_pool select_and_gather_add=gathered_at_extremes "
    "select_and_scatter_add=scattered_to_extremes eig approx_top_k=approximate_top_k qr eigh svd cholesky "
    "triangular_solve fft=fourier "
    ""
)
ROWS: dict[str, Row] = {
    **{name: globals()[row or name] for name, row in spellings(_NAMED).items()},
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update,
    "gather": gather,
    **{f"reduce_{op}": partial(reduction, op) for op in ("sum", "max", "min", "prod")},
    "reduce_and": partial(of_bits, "and", "all"),
    "reduce_or": partial(of_bits, "or", "any"),
    "reduce_xor": partial(of_bits, "xor", "odd"),
    **{op: partial(extreme_index, op) for op in ("argmax", "argmin")},
    **{op: partial(cumulative, op) for op in ("cumsum", "cumprod")},
    **{f"cum{name}": running(op) for name, op in spellings("max=maximum min=minimum logsumexp=logaddexp").items()},
    "tile": lambda x, reps: call("ops.tile", x, tuple(reps)),
    "split": lambda x, sizes, axis, out: split(x, sizes, axis if axis < x.ndim - 1 else -1),
    "rev": lambda x, dimensions: call("ops.flip", x, axis=tuple(dimensions) if len(dimensions) > 1 else dimensions[0]),
    "stack": lambda *xs, axis: call("ops.stack", list(xs), axis=axis if axis < xs[0].ndim else -1),
    "unstack": lambda x, axis, out: tuple(Item(x, (*[slice(None)] * axis, i)) for i in range(len(out))),
    "scatter": partial(scatter, "set"),
    **{f"scatter-{how}": partial(scatter, how) for how in ("add", "mul", "max", "min")},
    "scatter-sub": scatter_difference,
    **{f"reduce_window_{name}": partial(pooling, op) for name, op in spellings("max=max sum=add min=min").items()},
}

# functions of JAX's own that are jitted or have a derivative of their own, by the part of JAX that they are in
NAMED: dict[str, Row] = {
    "numpy.solve": lambda a, b: call("ops.linalg.solve", a, b),
    "numpy.inv": lambda a: call("ops.linalg.inv", a),
    "numpy.det": lambda a: call("ops.linalg.det", a),
    "numpy.slogdet": lambda a: call("ops.slogdet", a),
    "numpy._var": variance,
    "random._uniform": uniform,
    "random._bernoulli": bernoulli,
    "random._normal": lambda key, out: call("random.normal", out.shape, dtype=DType(out.dtype), seed=SEED),
}
NAMED_ENTRYWISE: dict[str, Row] = {
    **{f"nn.{op}": unary(op) for op in ("relu", "silu")},
    **{f"numpy.{op}": unary(op) for op in ("sinc", "signbit")},
    **{f"numpy.{op}": binary(op) for op in ("ldexp", "gcd", "lcm", "floor_divide")},
    "numpy.remainder": binary("mod"),
    "numpy.copysign": copysign,
    **dict.fromkeys(("numpy.logaddexp", "lax.logaddexp"), logaddexp),
}
