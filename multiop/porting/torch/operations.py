"""ATen's operations and what they are in multiop: one row per operation, by its name or that of one of its overloads.

A row takes the call's arguments under ATen's names, those that it supports. Two names are special: `out` is what the
call returns (`Value`s without content, for their shapes and dtypes), and `emit` adds a statement in front and returns
its results. A call with an argument that its row does not take has no translation.
"""

from __future__ import annotations

import functools
import math
from functools import partial
from typing import Any

import numpy as np
import torch

from multiop.porting import _rows
from multiop.porting._graph import (
    CONDITIONS,
    SEED,
    TRAINING,
    Call,
    Dim,
    DType,
    Expression,
    Infix,
    Item,
    Name,
    Number,
    Value,
    call,
)
from multiop.porting._rows import FLOATS, Row, Untranslated, add_sizes, cast, line, pad_by, short, sizes, spellings

# dtypes


def name_of(dtype):
    """Return multiop's name of a dtype."""
    return str(dtype).removeprefix("torch.")


def result_type(left, right):
    """Return the dtype that PyTorch computes with."""
    stand_ins = {
        Value: lambda operand: torch.empty((1,) * min(operand.ndim, 1), dtype=getattr(torch, operand.dtype)),
        Dim: lambda _: 1,
        Number: lambda operand: True if _is_condition(operand) else 1.0,
    }
    return name_of(torch.result_type(*[stand_ins.get(type(each), lambda x: x)(each) for each in (left, right)]))


def _is_condition(number):
    return isinstance(number.expression, Infix) and number.expression.operator in CONDITIONS


def alike(left, right):
    """Return the dtype that PyTorch computes with, and the tensors in it; Python scalars stay."""
    dtype = result_type(left, right)
    return dtype, [in_dtype(operand, dtype) for operand in (left, right)]


def in_dtype(operand, dtype):
    """Return a tensor, or a number that is computed from open sizes, in a dtype; Python scalars stay."""
    if not isinstance(operand, Number):
        return cast(operand, dtype) if isinstance(operand, Value) else operand
    if _is_condition(operand):
        return call("ops.cast", operand, DType(dtype))
    exact = dtype if dtype in ("float32", "float64") else "float32"

    def compute(part):
        if isinstance(part, Infix) and part.operator in ("+", "-", "*", "/", "**"):
            return Infix(part.operator, compute(part.left), compute(part.right))
        if isinstance(part, Call) and part.function in _OF_FLOATS:
            return call(f"ops.{_OF_FLOATS[part.function]}", *map(compute, part.args))
        return part if isinstance(part, (int, float)) else call("ops.cast", part, DType(exact))

    number = compute(operand.expression)
    return number if exact == dtype else call("ops.cast", number, DType(dtype))


_OF_FLOATS = {f"math.{name}": name for name in ("cos", "cosh", "exp", "log", "log2", "sin", "sinh", "tan", "tanh")}


def floating(x, out):
    """Return an operand of a function whose result is floating."""
    return x if x.dtype in FLOATS or x.dtype.startswith("complex") else cast(x, out.dtype)


def last(out, x, dtype):
    """Return `x`, computed in `dtype`, in the dtype of the result (an in-place call keeps its operand's)."""
    return x if out.dtype == dtype else call("ops.cast", x, DType(out.dtype))


# rows that many operations share


def unary(op):
    """A function of floats, entry by entry."""
    return lambda self, out: call(f"ops.{op}", floating(self, out))


def same(op):
    """An op of what PyTorch's takes, in its order."""
    return lambda **operands: call(f"ops.{op}", *operands.values())


def infix(operator, op, is_reversed, self, other, out, alpha=1):
    """An operator of Python where the result is floating, else an op, which promotes integers."""
    dtype, (left, right) = alike(self, other)
    if is_reversed:
        left, right = right, left
    if isinstance(right, int) and right == 0 and op in ("add", "subtract") and dtype == out.dtype == "int64":
        return left  # positions begin at 0
    right = times(right, alpha)
    if dtype not in FLOATS or any(isinstance(operand, Dim) for operand in (left, right)):
        return last(out, call(f"ops.{op}", left, right), dtype)
    return last(out, Infix(operator, left, right), dtype)


def times(x, factor):
    """Write a multiple, but for that by 1."""
    return x if factor == 1 else Infix("*", x, factor)


def comparison(op, self, other):
    return call(f"ops.{op}", *alike(self, other)[1])


def binary(op, self, other, out):
    dtype, operands = alike(self, other)
    if dtype not in FLOATS and out.dtype in FLOATS:
        operands = [cast(operand, out.dtype) if isinstance(operand, Value) else operand for operand in operands]
        dtype = out.dtype
    return last(out, call(f"ops.{op}", *operands), dtype)


def divide(self, other, out, rounding_mode=None):
    dtype, (left, right) = alike(self, other)
    if rounding_mode == "floor":
        return last(out, call("ops.floor_divide", left, right), dtype)
    if rounding_mode == "trunc":
        if dtype in FLOATS:
            return last(out, call("ops.trunc", Infix("/", left, right)), dtype)
        return last(out, _rows.truncated_quotient(left, right), dtype)
    left, right = (cast(operand, out.dtype) if isinstance(operand, Value) else operand for operand in (left, right))
    if any(isinstance(operand, Dim) for operand in (left, right)):
        return call("ops.divide", left, right)
    return Infix("/", left, right)


def axes_of(dim):
    """Return the axes of a reduction: `None` for all."""
    if dim is None or isinstance(dim, int):
        return dim
    dim = tuple(dim)
    return None if not dim else dim[0] if len(dim) == 1 else dim


def reduction(op, self, out, dim=None, keepdim=False, dtype=None):
    x = cast(self, out.dtype) if out.dtype != self.dtype or dtype is not None else self
    return call(f"ops.{op}", x, axis=axes_of(dim), keepdims=keepdim)


def over_axes(op):
    return lambda self, dim=None, keepdim=False: call(f"ops.{op}", self, axis=axes_of(dim), keepdims=keepdim)


def extreme_with_index(op, self, dim, out, emit, keepdim=False):
    """The gradient goes to the entry at the index, as PyTorch's does."""
    return at_index(self, call(f"ops.arg{op}", self, axis=dim, keepdims=True), dim, keepdim, emit)


def variance(op, with_mean, self, out, dim=None, correction=None, keepdim=False, unbiased=True):
    axes, correction = axes_of(dim), int(unbiased) if correction is None else correction
    spread: Expression = call(f"ops.{op}", self, axis=axes, keepdims=keepdim)
    listed = range(self.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    sizes = [self.shape[axis] for axis in listed]
    known = math.prod(size for size in sizes if not isinstance(size, Dim))
    opened = [size for size in sizes if isinstance(size, Dim)]
    if correction and not opened:
        factor = known / (known - correction)
        spread = Infix("*", spread, factor if op == "var" else math.sqrt(factor))
    elif correction:
        n = functools.reduce(partial(Infix, "*"), [*opened, *([known] if known != 1 else [])])
        share = in_dtype(Number(Infix("/", n, Infix("-", n, correction))), (out[0] if with_mean else out).dtype)
        spread = Infix("*", spread, share if op == "var" else call("ops.sqrt", share))
    return (spread, call("ops.mean", self, axis=axes, keepdims=keepdim)) if with_mean else spread


# shapes


def reshape(self, out, **_):
    """Write the one dimension that is open as -1."""
    if out.shape == self.shape:
        return self
    return call("ops.reshape", self, sizes(out.shape))


def flatten(self, out, start_dim=0, end_dim=-1):
    return reshape(self, out)


def permute(self, dims):
    dims = tuple(dim % self.ndim for dim in dims)
    if dims == tuple(range(self.ndim)):
        return self
    return call("ops.transpose", self, dims)


def transpose(self, dim0, dim1):
    first, second = sorted((dim0 % max(self.ndim, 1), dim1 % max(self.ndim, 1)))
    if first == second:
        return self
    return call("ops.swapaxes", self, first, second)


def expand(self, out, size=None):
    if out.shape == self.shape:
        return self
    return call("ops.broadcast_to", self, out.shape)


def cut(self, out, dim=0, start=None, end=None, step=1):
    if out.shape == self.shape:
        return self
    size = self.shape[dim]
    if end is not None and (
        (isinstance(end, int) and (end > 2**62 or (isinstance(size, int) and end >= size))) or end == size
    ):
        end = None
    key = slice(None if start in (0, None) else start, end, None if step == 1 else step)
    return Item(self, along(self, dim, key))


def squeeze(self, out, dim=None):
    if out.shape == self.shape:
        return self
    if dim is None:
        if any(isinstance(size, Dim) for size in self.shape):
            return reshape(self, out)
        return call("ops.squeeze", self)
    listed = [dim] if isinstance(dim, int) else dim
    axes = tuple(axis % self.ndim for axis in listed if self.shape[axis % self.ndim] == 1)
    return call("ops.squeeze", self, axes[0] if len(axes) == 1 else axes)


def split(self, split_size, out, dim=0):
    axis = dim % self.ndim
    parts = [skeleton.shape[axis] for skeleton in out]
    if len(parts) == 1:
        return (self,)
    if len(set(parts)) == 1:
        return call("ops.split", self, len(parts), axis=dim)
    if any(isinstance(part, Dim) for part in parts):
        ends = [add_sizes(*parts[:i]) for i in range(len(parts))]
        keys = [slice(start or None, end) for start, end in zip(ends, [*ends[1:], None], strict=True)]
        return tuple(Item(self, along(self, axis, key)) for key in keys)
    return call("ops.split", self, tuple(sum(parts[: i + 1]) for i in range(len(parts) - 1)), axis=dim)


def repeat(self, repeats):
    if len(repeats) > self.ndim:
        self = call("ops.expand_dims", self, tuple(range(len(repeats) - self.ndim)))
    return call("ops.tile", self, tuple(repeats))


def repeat_interleave(self, repeats, dim=None, output_size=None):
    if not isinstance(repeats, int):
        raise Untranslated("counts in a tensor")
    return call("ops.repeat", self, repeats, axis=dim)


def write_padding(self, pad, mode="constant", value=None):
    pairs = [tuple(pad[i : i + 2]) for i in range(0, len(pad), 2)][::-1]
    widths = ((0, 0),) * (self.ndim - len(pairs)) + tuple(pairs)
    if any(isinstance(side, Dim) for pair in widths for side in pair):
        if mode != "constant":
            raise Untranslated(f"a padding of open size in mode {mode}")
        return call("pad_or_crop", self, widths, value=value or 0)
    x: Expression = self
    if any(side < 0 for pair in widths for side in pair):
        key = tuple(slice(-min(a, 0) or None, min(b, 0) or None) for a, b in widths)
        x = Item(x, key)
        widths = tuple((max(a, 0), max(b, 0)) for a, b in widths)
    if mode == "constant" or not any(side for pair in widths for side in pair):
        return pad_by(x, widths, value)
    if mode not in ("reflect", "replicate", "circular"):
        raise Untranslated(f"padding of mode {mode}")
    return call("ops.pad", x, widths, mode={"replicate": "edge", "circular": "wrap"}.get(mode, mode))


# convolution and pooling


def spread(option, ndim):
    option = (option,) if isinstance(option, int) else tuple(option)
    return option * ndim if len(option) == 1 else option


def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    ndim = weight.ndim - 2
    x: Expression = input
    if input.ndim != weight.ndim:
        x = call("ops.expand_dims", input, 0)
    strides, dilations = spread(stride, ndim), spread(dilation, ndim)
    if isinstance(padding, str):
        pads: Any = (0,) * ndim
        if padding == "same":
            totals = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:], strict=True)]
            pads = tuple(total // 2 for total in totals)
            if any(total % 2 for total in totals):
                widths = ((0, 0), (0, 0), *[(total // 2, total - total // 2) for total in totals])
                x, pads = call("ops.pad", x, widths), (0,) * ndim
    else:
        pads = spread(padding, ndim)
    thinned = max(strides) > 1 and max(dilations) > 1
    options = {"stride": 1 if thinned else short(strides), "padding": short(pads), "dilation": short(dilations)}
    y: Expression = call("conv", x, weight=weight, bias=bias, **options)
    if thinned:
        y = Item(y, (slice(None), slice(None), *[slice(None, None, s) for s in strides]))
    return y if input.ndim == weight.ndim else call("ops.squeeze", y, 0)


def conv_transpose(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    ndim = weight.ndim - 2
    has_batch = input.ndim == weight.ndim
    options = {
        "stride": short(spread(stride, ndim)),
        "crop": short(spread(padding, ndim)),
        "output_padding": short(spread(output_padding, ndim)),
        "groups": groups,
        "dilation": short(spread(dilation, ndim)),
    }
    x = input if has_batch else call("ops.expand_dims", input, 0)
    y = call("conv_transpose", x, weight=weight, bias=bias, **options)
    return y if has_batch else call("ops.squeeze", y, 0)


def windows(self, size, stride, padding, ceil_mode):
    """Return size, strides, padding, and how many entries more the last windows reach over the end."""
    size = spread(size, self.ndim - 2)
    ndim = len(size)
    strides = spread(stride, ndim) if stride not in ([], (), None) else size
    pads = spread(padding, ndim)
    more: list[Any] = [0] * ndim
    if ceil_mode:
        for i, n in enumerate(self.shape[-ndim:]):
            if isinstance(n, Dim):
                more[i] = Dim(f"overhang({n.text}, {size[i]}, {strides[i]}, {pads[i]})", n.symbols)
                continue
            count = -(-(n + 2 * pads[i] - size[i]) // strides[i]) + 1
            if (count - 1) * strides[i] >= n + pads[i]:
                count -= 1
            more[i] = max((count - 1) * strides[i] + size[i] - (n + 2 * pads[i]), 0)
    return size, strides, pads, more


def in_batches(row):
    """Make a row of batches one of single images, too, each as a batch of one."""

    @functools.wraps(row)
    def of_images(ndim, self, emit, **options):
        if self.ndim > ndim + 1:
            return row(ndim, self, emit=emit, **options)
        (batch,) = emit(call("ops.expand_dims", self, 0), Value((1, *self.shape), self.dtype))
        y = row(ndim, batch, emit=emit, **options)
        return (call("ops.squeeze", y[0], 0), None) if isinstance(y, tuple) else call("ops.squeeze", y, 0)

    return of_images


@in_batches
def max_pool(ndim, self, kernel_size, emit, stride=(), padding=0, dilation=1, ceil_mode=False):
    steps = spread(dilation, ndim)
    reach = [d * (k - 1) + 1 for d, k in zip(steps, spread(kernel_size, ndim), strict=True)]
    stride = stride if stride not in ([], (), None) else kernel_size
    size, strides, pads, more = windows(self, reach, stride, padding, ceil_mode)
    widths = tuple((p, add_sizes(p, m)) for p, m in zip(pads, more, strict=True))
    if max(steps) > 1:
        sizes = short(spread(kernel_size, ndim))
        return call("dilated_max_pool", self, sizes, short(strides), widths, short(steps))
    if not any(pads) and not any(more):
        return call("ops.max_pool", self, short(size), short(strides), data_format="channels_first")
    return call("max_pool", self, short(size), short(strides), widths)


@in_batches
def average_pool(
    ndim, self, kernel_size, emit, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    size, strides, pads, more = windows(self, kernel_size, stride, padding, ceil_mode)
    if any(more) or (any(pads) and not count_include_pad and divisor_override is None):
        both = tuple((p, p) for p in pads)
        rest = tuple((0, m) for m in more)
        none = ((0, 0),) * len(pads)
        if divisor_override is not None:
            raise Untranslated("divisor_override with ceil_mode")
        if not count_include_pad:
            rest, both = tuple((p, add_sizes(p, m)) for p, m in zip(pads, more, strict=True)), none
        return call("average_pool", self, short(size), short(strides), both, rest)
    x: Expression = self
    if any(pads):
        x = call("ops.pad", self, ((0, 0), (0, 0), *[(p, p) for p in pads]))
    y = call("ops.average_pool", x, short(size), short(strides), data_format="channels_first")
    if divisor_override is not None:
        y = Infix("*", y, math.prod(size) / divisor_override)
    return y


@in_batches
def adaptive_average_pool(ndim, self, output_size, emit):
    size = spread(output_size, ndim)
    if set(size) == {1}:
        return call("ops.mean", self, axis=tuple(range(2, ndim + 2)) if ndim > 1 else 2, keepdims=True)
    return call("ops.adaptive_average_pool", self, short(size), data_format="channels_first")


@in_batches
def adaptive_max_pool(ndim, self, output_size, emit):
    size = short(spread(output_size, ndim))
    return call("ops.adaptive_max_pool", self, size, data_format="channels_first"), None


# normalization


def batch_norm(input, weight, bias, training, momentum, eps, running_mean=None, running_var=None):
    if running_mean is None:
        return call("batch_norm_of_batch", input, weight=weight, bias=bias, epsilon=eps)
    leaves = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    return call("batch_norm", input, **leaves, num_batches_tracked=None, epsilon=eps)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return call("layer_norm", input, weight=weight, bias=bias, ndim=len(normalized_shape), epsilon=eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    count = len(normalized_shape)
    axis = -1 if count == 1 else tuple(range(-count, 0))
    eps = torch.finfo(getattr(torch, input.dtype)).eps if eps is None else eps
    return call("ops.rms_normalization", input, scale=weight, axis=axis, epsilon=eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    return call("group_norm", input, num_groups, weight=weight, bias=bias, epsilon=eps)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps):
    if not use_input_stats:
        return batch_norm(input, weight, bias, False, momentum, eps, running_mean, running_var)
    if running_mean is not None:
        raise Untranslated("running statistics")
    return call("group_norm", input, input.shape[1], weight=weight, bias=bias, epsilon=eps)


# attention, embeddings, recurrent layers


def attention(query, key, value, out, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    mask = attn_mask if attn_mask is not None and attn_mask.dtype == "bool" else None
    bias = attn_mask if mask is None else None
    scale = None if isinstance(size := query.shape[-1], int) and scale == size**-0.5 else scale
    if is_causal and query.shape[-2] != key.shape[-2]:  # the first query sees the first key
        shape = (query.shape[-2], key.shape[-2])
        mask, is_causal = call("ops.tril", call("ops.ones", shape, dtype=DType("bool"))), False
    if dropout_p:
        if is_causal or enable_gqa:
            raise Untranslated("dropout with is_causal or enable_gqa")
        options = {"mask": mask, "bias": bias, "scale": scale}
        return call("attention", query, key, value, dropout_p, SEED, TRAINING, **options)
    if query.ndim > 4 and not enable_gqa:
        options = {"bias": bias, "mask": mask, "scale": scale, "is_causal": is_causal}
        return attention_in_groups((query, key, value), attn_mask, options, out)
    if query.ndim != 4:
        if query.ndim not in (2, 3) or {key.ndim, value.ndim} != {query.ndim}:
            raise Untranslated("operands that do not have 4 dimensions")
        return attention_of_one_head(query, key, value, mask, bias, is_causal, scale)
    operands = [call("ops.swapaxes", operand, 1, 2) for operand in (query, key, value)]
    y = call("ops.dot_product_attention", *operands, bias=bias, mask=mask, scale=scale, is_causal=is_causal)
    return call("ops.swapaxes", y, 1, 2)


def attention_in_groups(operands, mask, options, out):
    """Write `(..., heads, length, size)` with all but the last three dimensions as one."""
    shapes = [operand.shape[:-3] for operand in operands]
    if any(shape != shapes[0] for shape in shapes) or (mask is not None and mask.ndim > 3):
        raise Untranslated("operands of more than 4 dimensions that broadcast")
    folded = [call("ops.reshape", operand, (-1, *operand.shape[-3:])) for operand in operands]
    given = [call("ops.swapaxes", size, 1, 2) for size in folded]
    y = call("ops.swapaxes", call("ops.dot_product_attention", *given, **options), 1, 2)
    return call("ops.reshape", y, sizes(out.shape))


def attention_of_one_head(query, key, value, mask, bias, is_causal, scale):
    """Write `(length, size)` and `(batch, length, size)`, which `ops.dot_product_attention` takes with heads alone."""
    axes = 2 if query.ndim == 3 else (0, 2)
    operands = [call("ops.expand_dims", operand, axes) for operand in (query, key, value)]
    if query.ndim == 3:  # a head between the batch and the lengths
        mask, bias = (
            term if not isinstance(term, Value) or term.ndim < 3 else call("ops.expand_dims", term, 1)
            for term in (mask, bias)
        )
    y = call("ops.dot_product_attention", *operands, bias=bias, mask=mask, scale=scale, is_causal=is_causal)
    return call("ops.squeeze", y, axis=axes)


def embedding(weight, indices, padding_idx=-1):
    if padding_idx < 0:
        return call("ops.take", weight, indices, axis=0)
    return call("embedding", indices, weight=weight, padding_idx=padding_idx)


def embedding_bag(
    weight, indices, offsets, out, mode=0, per_sample_weights=None, include_last_offset=False, padding_idx=None
):
    if include_last_offset:
        offsets = Item(offsets, (slice(None, -1),))
    bags = out[0].shape[0]
    options = {"weights": per_sample_weights, "padding_idx": padding_idx}
    y = call("embedding_bag", indices, offsets, weight=weight, mode=("sum", "mean", "max")[mode], bags=bags, **options)
    return y, None, None, None


def recurrent(
    kind,
    activation,
    input,
    hx,
    params,
    has_biases,
    num_layers,
    dropout,
    train,
    bidirectional,
    out,
    emit,
    batch_first=False,
    lengths=None,
):
    states = [hx] if isinstance(hx, Value) else hx
    x: Expression = input
    shape = tuple(input.shape)
    if batch_first:
        x, shape = call("ops.swapaxes", x, 0, 1), (shape[1], shape[0], shape[2])
    per_layer = len(params) // (num_layers * (1 + bidirectional))
    ends: list[list[Value]] = [[] for _ in states]
    leaves = iter([tuple(params[i : i + per_layer]) for i in range(0, len(params), per_layer)])
    names = ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if has_biases else ()), "weight_hr")
    options = () if activation is None else (("activation", activation),)
    options += () if lengths is None else (("scan", call("within", lengths)),)
    for layer in range(num_layers):
        ys = []
        for direction in range(1 + bidirectional):
            starts = [Item(state, (len(ends[0]),)) for state in states]
            weights = tuple(zip(names, next(leaves), strict=False))
            ends_in = [(shape[1], state.shape[-1]) for state in states]
            skeletons = [Value((shape[0], *ends_in[0]), input.dtype, own="sequence")]
            skeletons += [Value(end, input.dtype, own=n) for end, n in zip(ends_in, ("hidden", "cell"), strict=False)]
            results = emit(Call(kind, (x, *starts), (*weights, *options, ("reverse", direction == 1))), *skeletons)
            ys.append(results[0])
            for end, last in zip(ends, results[1:], strict=True):
                end.append(last)
        x = ys[0] if len(ys) == 1 else call("ops.concatenate", list(ys), axis=-1)
        if dropout and train and layer + 1 < num_layers:
            x = call("dropout", x, dropout, SEED, TRAINING)
    y = call("ops.swapaxes", x, 0, 1) if batch_first else x
    return (y, *[call("ops.stack", list(end)) for end in ends])


def dropout(input, p, train, layer="dropout"):
    return call(layer, input, p, SEED, TRAINING) if train and p else input


def alpha_dropout(each, input, p, train):
    if p == 1:
        raise Untranslated("a rate of 1")
    return call("alpha_dropout", input, p, SEED, TRAINING, each=each) if train and p else input


# indices and masks


def index_put(self, indices, values, accumulate=False):
    return call("ops.add_at" if accumulate else "ops.set_item", self, key_of(indices), values)


def key_of(indices):
    key = tuple(slice(None) if index is None else index for index in indices)
    return key if len(key) > 1 else key[0]


def set_slice(self, src, dim=0, start=None, end=None, step=1):
    place = cut(self, src, dim, start, end, step)
    return call("ops.set_item", self, place.key, src) if isinstance(place, Item) else src


def along(self, dim, part):
    """Return the key of a part along one dimension."""
    return (*(slice(None),) * (dim % self.ndim), part)


def where(condition, self, other, out):
    chosen = [cast(operand, out.dtype) if isinstance(operand, Value) else operand for operand in (self, other)]
    if not any(isinstance(operand, Value) for operand in chosen):
        chosen[0] = call("ops.cast", chosen[0], DType(out.dtype))
    return call("ops.where", condition, *chosen)


def masked_fill(self, mask, value):
    if isinstance(value, Value):
        value = cast(value, self.dtype)
    return call("ops.where", mask, value, self)


def scatter_row(op, self, dim, index, src=None, value=None):
    """Write, or combine, entries at an index along one dimension; the other indices count up."""
    src = value if src is None else src
    axis = dim % max(self.ndim, 1)
    key: list[Expression] = []
    for i in range(self.ndim):
        line = call("ops.arange", index.shape[i])
        after = index.ndim - 1 - i
        key.append(index if i == axis else call("ops.reshape", line, (-1, *[1] * after)) if after else line)
    if isinstance(src, Value) and src.shape != index.shape:
        ends = [None if a == b else b for a, b in zip(src.shape, index.shape, strict=True)]
        src = Item(src, tuple(map(slice, ends)))
    return call(f"ops.{op}", self, tuple(key), src)


_COMBINED = {"sum": "add_at", "prod": "multiply_at", "amax": "maximum_at", "amin": "minimum_at"}
_COMBINED |= {"add": "add_at", "multiply": "multiply_at"}
_NEUTRAL = {"sum": 0, "prod": 1, "amax": -math.inf, "amin": math.inf, "mean": 0}


def scatter_reduce(self, dim, index, reduce, emit, src=None, value=None, include_self=True):
    def put(op, x, values):
        return scatter_row(op, x, dim, index, values)

    return combined_at(self, value if src is None else src, reduce, include_self, put, emit)


def index_reduce(self, dim, index, source, reduce, emit, include_self=True):
    key = along(self, dim, index)

    def put(op, x, values):
        return call(f"ops.{op}", x, key, values)

    return combined_at(self, source, reduce, include_self, put, emit)


def combined_at(self, source, reduce, include_self, put, emit):
    """Combine entries with those that `put` puts there; without `include_self`, with these alone."""
    if self.dtype not in FLOATS and (not include_self or reduce == "mean"):
        raise Untranslated(f"reduce={reduce}, include_self={include_self} of {self.dtype}")

    def add_statement(expression):
        return emit(expression, Value(self.shape, self.dtype))[0]

    x, counts = self, None
    if not include_self:
        counts = add_statement(put("set_item", add_statement(call("ops.ones_like", self)), 0.0))  # of what stays
        x = add_statement(call("ops.where", call("ops.equal", counts, 0), _NEUTRAL[reduce], self))
    if reduce != "mean":
        return put(_COMBINED[reduce], x, source)
    if counts is None:
        counts = add_statement(call("ops.ones_like", self))
    return Infix("/", put("add_at", x, source), put("add_at", counts, 1.0))


def searchsorted(sorted_sequence, self, out, right=False, side=None):
    option = {"side": "right"} if right or side == "right" else {}
    return call("ops.cast", call("ops.searchsorted", sorted_sequence, self, **option), DType(out.dtype))


def unfold(self, dimension, size, step):
    axis = dimension % self.ndim
    is_last = axis == self.ndim - 1
    x = self if is_last else call("ops.moveaxis", self, axis, -1)
    y = call("ops.extract_sequences", x, size, step)
    return y if is_last else call("ops.moveaxis", y, -2, axis)


def gather(self, dim, index):
    """Cut off what no entry of a smaller index can reach."""
    axis = dim % self.ndim
    sizes = list(enumerate(zip(self.shape, index.shape, strict=True)))
    key = tuple(slice(None, b if a != b and i != axis else None) for i, (a, b) in sizes)
    x = Item(self, key) if any(part.stop is not None for part in key) else self
    return call("ops.take_along_axis", x, index, axis=dim)


# creation


def full(shape, value, dtype):
    shape = tuple(shape)
    if value in (0, 1) and not isinstance(value, (Dim, Value)):
        return call("ops.ones" if value else "ops.zeros", shape, dtype=DType(dtype))
    if isinstance(value, (Number, Value)):
        return call("ops.broadcast_to", in_dtype(value, dtype), shape)
    return call("ops.full", shape, value, dtype=DType(dtype))


def fill_row(value):
    return lambda size, out, self=None, dtype=None: full(out.shape, value, out.dtype)


def like(value, self, out, dtype=None):
    op = "ops.ones_like" if value else "ops.zeros_like"
    return call(op, self) if out.dtype == self.dtype else call(op, self, dtype=DType(out.dtype))


def arange(out, end=None, start=0, step=1, dtype=None):
    return line(start, end, step, out.dtype)


def clamp(self, out, min=None, max=None):
    x = cast(self, out.dtype)
    low, high = (in_dtype(bound, out.dtype) for bound in (min, max))
    if low is None:
        is_clip = isinstance(high, (int, float)) and out.dtype in FLOATS
        return call("ops.clip", x, -math.inf, high) if is_clip else call("ops.minimum", x, high)
    if high is None:
        is_clip = isinstance(low, (int, float)) and out.dtype in FLOATS
        return call("ops.clip", x, low, math.inf) if is_clip else call("ops.maximum", x, low)
    return call("ops.clip", x, low, high)


_POWERS = {2: "ops.square", 0.5: "ops.sqrt", -0.5: "ops.rsqrt"}  # PyTorch's kernels of these, with their zeros


def power(self, exponent, out):
    is_number = isinstance(exponent, (int, float)) and isinstance(self, Value)
    if is_number and exponent in _POWERS and (exponent == 2 or "float" in self.dtype):
        return call(_POWERS[exponent], self)
    return call("ops.power", *alike(self, exponent)[1])


def addmm(self, mat1, mat2, beta=1, alpha=1):
    return Infix("+", times(call("ops.matmul", mat1, mat2), alpha), times(self, beta))


def addbmm(self, batch1, batch2, beta=1, alpha=1):
    product = call("ops.sum", call("ops.matmul", batch1, batch2), axis=0)
    return Infix("+", times(self, beta), times(product, alpha))


def along_axis(op):
    return lambda self, dim, out, dtype=None: call(f"ops.{op}", cast(self, out.dtype), axis=dim)


def add_product(operator):
    return lambda self, tensor1, tensor2, value=1: Infix("+", self, times(Infix(operator, tensor1, tensor2), value))


def cat(tensors, out, dim=0):
    parts = [cast(tensor, out.dtype) for tensor in tensors if tensor.shape != (0,)]
    return parts[0] if len(parts) == 1 < len(tensors) else call("ops.concatenate", parts, axis=dim)


def softplus(self, beta=1, threshold=20):
    """PyTorch's threshold switches to `x` where both agree to 2e-9: a difference in float64, so it is kept."""
    return call("thresholded_softplus", self, beta=float(beta), threshold=float(threshold))


def prelu(self, weight):
    slope: Expression = weight
    if weight.shape != (1,) and self.ndim > 1:
        slope = call("ops.reshape", weight, (-1, *[1] * (self.ndim - 2)))
    return call("ops.where", call("ops.greater", self, 0), self, Infix("*", slope, self))


def random_row(op):
    """Random numbers, in evaluation too; a port draws its own, from the seed that it is called with."""
    return lambda out, self=None, size=None, dtype=None: call(
        f"random.{op}", out.shape, dtype=DType(out.dtype), seed=SEED
    )


def uniform(out, self=None, to=1.0, **options):
    return call("random.uniform", out.shape, options.get("from", 0.0), to, dtype=DType(out.dtype), seed=SEED)


def normal(out, self=None, mean=0.0, std=1.0, size=None):
    return call("random.normal", out.shape, mean, std, dtype=DType(out.dtype), seed=SEED)


def exponential(self, out, lambd=1.0):
    numbers = call("random.uniform", out.shape, dtype=DType(out.dtype), seed=SEED)
    return Infix("/", call("ops.log1p", call("ops.negative", numbers)), -lambd)


def randint(out, high, low=0, self=None, size=None, dtype=None):
    is_whole = out.dtype.startswith(("int", "uint"))
    y = call("random.randint", out.shape, low, high, dtype=DType(out.dtype if is_whole else "int64"), seed=SEED)
    return y if is_whole else cast(y, out.dtype)


def multinomial(self, num_samples, out, replacement=False):
    if num_samples != 1 and not replacement:
        raise Untranslated("without replacement")
    logits = call("ops.log", self if self.ndim > 1 else call("ops.expand_dims", self, 0))
    y = call("random.categorical", logits, num_samples, dtype=DType(out.dtype), seed=SEED)
    return y if self.ndim > 1 else call("ops.squeeze", y, axis=0)


def bernoulli(self, out, p=None):
    numbers = call("random.uniform", out.shape, dtype=DType(out.dtype), seed=SEED)
    return cast(call("ops.less", numbers, self if p is None else p), out.dtype)


def rrelu(self, out, lower=1 / 8, upper=1 / 3, training=False):
    if not training:
        return call("ops.leaky_relu", self, negative_slope=(lower + upper) / 2)
    slopes = call("random.uniform", out.shape, lower, upper, dtype=DType(out.dtype), seed=SEED)
    return call("ops.where", call("ops.greater", self, 0), self, Infix("*", slopes, self))


def copysign(self, other, out):
    size = call("ops.abs", floating(self, out))
    if not isinstance(other, Value):
        return size if math.copysign(1, other) > 0 else call("ops.negative", size)
    return call("ops.where", call("ops.signbit", other), call("ops.negative", size), size)


def bilinear(input1, input2, weight, bias=None):
    y: Expression = call("ops.einsum", "...i,oij,...j->...o", input1, weight, input2)
    return y if bias is None else Infix("+", y, bias)


def hardtanh(self, min_val=-1, max_val=1):
    """The gradient at the bounds is 0, unlike that of a clip."""
    inside = call("ops.logical_and", call("ops.greater", self, min_val), call("ops.less", self, max_val))
    if (min_val, max_val) == (0, 6):
        return call("ops.relu6", self)
    clipped = call("ops.clip", self, min_val, max_val)
    return call("ops.where", inside, self, call("ops.stop_gradient", clipped))


def loss_of_difference(op, self, target, reduction=1):
    loss = call(f"ops.{op}", Infix("-", self, target))
    return loss if reduction == 0 else call("ops.mean" if reduction == 1 else "ops.sum", loss)


def nearest_entries(before, after, ratio, from_centre):
    """Return which of `before` entries each of `after` is, as the kernel rounds."""
    start = np.float32(0.5 if from_centre else 0)
    picked = [min(int((np.float32(i) + start) * ratio), before - 1) for i in range(after)]
    if after <= 16:
        return picked
    line: Expression = call("ops.arange", after, dtype="float32")
    line = Infix("*", Infix("+", line, 0.5) if from_centre else line, float(str(ratio)))
    return call("ops.cast", call("ops.minimum", line, before - 1), DType("int32"))


def interpolate(kind, input, out, output_size=None, align_corners=False, scale_factors=None):
    old, new_size = input.shape[2:], out.shape[2:]
    factors = [] if scale_factors is None else list(scale_factors)
    if any(isinstance(size, Dim) for size in (*old, *new_size)):
        return open_resize(input, old, new_size, kind, align_corners, factors)
    if kind.startswith("nearest"):
        y: Expression = input
        for axis, (before, after) in enumerate(zip(old, new_size, strict=True), 2):
            factor = None if scale_factors is None else scale_factors[axis - 2]
            is_ratio = factor is None or after == before * factor or after == 2 * before  # as the kernel has it
            if after == before:
                continue
            if is_ratio and after % before == 0:
                y = call("ops.repeat", y, after // before, axis=axis)
            else:
                ratio = np.float32(before) / np.float32(after) if factor is None else np.float32(1 / factor)
                y = call("ops.take", y, nearest_entries(before, after, ratio, kind == "nearest exact"), axis=axis)
        return y
    is_ratio = all(after == before * factor for before, after, factor in zip(old, new_size, factors, strict=False))
    if tuple(old) == tuple(new_size) and (is_ratio or align_corners):
        return input
    if kind == "linear" and len(old) == 2 and is_ratio and not align_corners:
        size = tuple(new_size)
        return call("ops.image.resize", input, size, interpolation="bilinear", data_format="channels_first")
    scales = () if is_ratio or align_corners else tuple(factors)
    return call("resize", input, tuple(new_size), kind, align_corners=align_corners, scales=scales)


def open_resize(input, old, size, kind, align_corners, factors):
    """Resize between sizes that are open."""
    whole = [int(factor) for factor in factors if factor == int(factor) > 0]
    is_ratio = len(whole) == len(factors) or align_corners
    if kind == "nearest" and factors and is_ratio:
        y: Expression = input
        for axis, factor in enumerate(whole, 2):
            y = call("ops.repeat", y, factor, axis=axis) if factor > 1 else y
        return y
    scales = () if is_ratio else tuple(factors)
    if kind.startswith("nearest"):
        return call("resize_nearest", input, tuple(size), scales, exact=kind == "nearest exact")
    return call("resize", input, tuple(size), kind, align_corners=align_corners, scales=scales)


def grid_sample(input, grid, interpolation_mode, padding_mode, align_corners):
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    padding = ("zeros", "border", "reflection")[padding_mode]
    return call("grid_sample", input, grid, mode=mode, padding=padding, align_corners=align_corners)


def smooth_resize(mode, input, out, output_size=None, align_corners=False, scale_factors=None):
    old, size = input.shape[2:], tuple(out.shape[2:])
    if any(isinstance(extent, Dim) for extent in (*old, *size)):
        raise Untranslated("a resize between open sizes")
    factors = [] if scale_factors is None else scale_factors
    if align_corners or any(b != a * factor for a, b, factor in zip(old, size, factors, strict=False)):
        raise Untranslated("with align_corners, or a factor that is not the ratio of the sizes")
    return call("ops.image.resize", input, size, interpolation=mode, antialias=True, data_format="channels_first")


def unbind(self, out, dim=0):
    if len(out) == 1:
        return (call("ops.squeeze", self, axis=dim),)
    return call("ops.unstack", self, len(out), axis=dim)


def norm(self, p=None, ord=None, dim=None, keepdim=False, dtype=None):
    order = next((order for order in (p, ord) if order is not None), 2)
    axes = axes_of(dim)
    if order == 1:
        return call("ops.sum", call("ops.abs", self), axis=axes, keepdims=keepdim)
    if order in (math.inf, -math.inf) and dtype is None:
        return call("ops.max" if order > 0 else "ops.min", call("ops.abs", self), axis=axes, keepdims=keepdim)
    if order != 2 and dtype is None and (isinstance(axes, int) or (axes is None and self.ndim == 1)):
        return call("ops.norm", self, ord=order, axis=axes, keepdims=keepdim)
    if order != 2 or dtype is not None:
        raise Untranslated(f"a norm of order {order}")
    if isinstance(axes, tuple) and len(axes) > 2:
        return call("ops.sqrt", call("ops.sum", call("ops.square", self), axis=axes, keepdims=keepdim))
    return call("ops.norm", self, axis=axes, keepdims=keepdim)


def matrix_norm(self, ord="fro", dim=(-2, -1), keepdim=False):
    return call("ops.norm", self, ord=ord, axis=tuple(dim), keepdims=keepdim)


def pick(self, rank, axis, keepdim, emit):
    """Return the entry of a rank along an axis, and its index."""
    axis %= self.ndim
    (order,) = emit(call("ops.argsort", self, axis=axis), Value(self.shape, "int64"))
    return at_index(self, Item(order, along(self, axis, slice(rank, add_sizes(rank, 1)))), axis, keepdim, emit)


def at_index(self, index, dim, keepdim, emit):
    """Return the entries at an index along an axis, and the index."""
    axis = dim % self.ndim
    (index,) = emit(index, Value((*self.shape[:axis], 1, *self.shape[axis + 1 :]), "int64"))
    picked = call("ops.take_along_axis", self, index, axis=dim)
    if keepdim:
        return picked, index
    return call("ops.squeeze", picked, axis=dim), call("ops.squeeze", index, axis=dim)


def middle(*sizes):
    """Return the rank of the entry in the middle, of two the lower one."""
    opened = [size for size in sizes if isinstance(size, Dim)]
    count = math.prod(size for size in sizes if not isinstance(size, Dim))
    if not opened:
        return (count - 1) // 2
    text = "*".join([*([str(count)] if count != 1 else []), *[f"({size.text})" for size in opened]])
    return Dim(f"({text} - 1) // 2", tuple(dict.fromkeys(symbol for size in opened for symbol in size.symbols)))


def median(self):
    flat = self if self.ndim == 1 else call("ops.reshape", self, (-1,))
    return Item(call("ops.sort", flat), (middle(*self.shape),))


def topk(self, k, out, emit, dim=-1, largest=True):
    axis = dim % self.ndim
    if axis == self.ndim - 1 and largest:
        return call("ops.top_k", self, k)
    (order,) = emit(call("ops.argsort", self, axis=axis, descending=largest), Value(self.shape, "int64"))
    (index,) = emit(Item(order, along(self, axis, slice(None, k))), Value(out[1].shape, "int64"))
    return call("ops.take_along_axis", self, index, axis=axis), index


def sort(self, out, emit, dim=-1, descending=False):
    (order,) = emit(call("ops.argsort", self, axis=dim, descending=descending), Value(out[1].shape, "int64"))
    return call("ops.take_along_axis", self, order, axis=dim), order


def running_extreme(largest):
    return lambda self, dim: call("running_extreme", self, dim % max(self.ndim, 1), largest=largest)


def masked_scatter(self, mask, source, out):
    x = self if self.shape == out.shape else call("ops.broadcast_to", self, out.shape)
    return call("masked_scatter", x, mask, source)


def masked_select(self, mask):
    if self.shape != mask.shape:
        raise Untranslated("operands that broadcast")
    return call("ops.get_item", self, mask)


def put(self, index, source, out, accumulate=False):
    flat, places, values = (x if x.ndim == 1 else call("ops.reshape", x, (-1,)) for x in (self, index, source))
    y = call("ops.add_at" if accumulate else "ops.set_item", flat, places, values)
    return y if self.ndim == 1 else call("ops.reshape", y, out.shape)


def window(first, others, window_length, out, periodic=True, alpha=None, beta=None, dtype=None):
    """A sum of cosines, over a period or from end to end."""
    weights = (first if alpha is None else alpha, *(others if beta is None else (-beta,)))
    if not isinstance(window_length, int):
        raise Untranslated("an open number of entries")
    count = window_length if periodic else window_length - 1
    line = call("ops.arange", window_length, dtype=DType(out.dtype))
    if window_length < 2:
        return call("ops.ones_like", line)
    y: Expression = weights[0]
    for i, weight in enumerate(weights[1:], 1):
        term = Infix("*", call("ops.cos", Infix("*", line, 2 * math.pi * i / count)), abs(weight))
        y = Infix("+" if weight > 0 else "-", y, term)
    return y


def triangle(op):
    return lambda row, col, offset=0: call("triangle_indices", row, col, offset, upper=op == "triu")


def frequencies(half, n, out, d=1.0, dtype=None):
    if not isinstance(n, int):
        raise Untranslated("an open number of entries")
    parts = [(0, n // 2 + 1)] if half else [(0, (n + 1) // 2), (-(n // 2), 0)]
    lines = [call("ops.arange", *part, dtype=DType(out.dtype)) for part in parts]
    return Infix("/", lines[0] if half else call("ops.concatenate", lines), n * d)


def solve(A, B):
    if A.ndim != B.ndim:
        raise Untranslated("of vectors")
    return call("ops.solve", A, B)


def cholesky_solve(self, input2, upper=False):
    swapped = call("ops.swapaxes", input2, -1, -2)
    lower, higher = (swapped, input2) if upper else (input2, swapped)
    inner = call("ops.solve_triangular", lower, self, lower=True)
    return call("ops.solve_triangular", higher, inner, lower=False)


def eigenvalues(self, out, emit, UPLO="L"):
    option = {} if UPLO == "L" else {"UPLO": UPLO}
    return emit(call("ops.eigh", self, **option), out, Value(self.shape, self.dtype))[0]


def cholesky(self, upper=False):
    return call("ops.cholesky", self, upper=upper) if upper else call("ops.cholesky", self)


def difference(self, n=1, dim=-1, prepend=None, append=None):
    parts = [piece for piece in (prepend, self, append) if piece is not None]
    return call("ops.diff", self if len(parts) == 1 else call("ops.concatenate", parts, axis=dim), n=n, axis=dim)


def copy(self, src):
    if not isinstance(src, Value):
        return call("ops.full_like", self, src)
    copied = cast(src, self.dtype)
    return copied if src.shape == self.shape else call("ops.broadcast_to", copied, self.shape)


def roll(self, shifts, dims=()):
    if not dims:
        return call("ops.roll", self, short(spread(shifts, 1)))
    return call("ops.roll", self, tuple(shifts), axis=tuple(dims))


def first_operand(self, **_):
    return self


# Fourier transforms; a normalization of 1 is by the root of the sizes, one of 2 by the sizes


def fourier(self, dim, normalization, forward):
    return call("fourier", self, tuple(dim), inverse=not forward, power=normalization / 2)


def real_fourier(self, dim, normalization, onesided):
    return call("real_fourier" if onesided else "fourier", self, tuple(dim), power=normalization / 2)


def inverse_real_fourier(self, dim, normalization, last_dim_size):
    return call("inverse_real_fourier", self, tuple(dim), last_dim_size, power=normalization / 2)


_FLOATING = (  # functions of floats whose names are multiop's
    "cos cosh digamma erf erfc erfinv exp exp2 expm1 lgamma log log10 log1p log2 reciprocal rsqrt selu sigmoid silu sin sinh "
    "sqrt tan tanh"
)
_SAME = (
    "abs angle ceil floor imag isfinite isinf isnan log_sigmoid logical_not real relu relu6 round sign "
    "signbit square trunc view_as_complex view_as_real"
)

_PLAIN = (  # whose operands are those of an op
    "neg=negative _conj=conj conj=conj conj_physical=conj _conj_physical=conj polar=polar threshold=threshold "
    "matmul=matmul mv=matmul dot=dot outer=outer numpy_T=transpose movedim=moveaxis "
    "unsqueeze=expand_dims linalg_inv=inv inverse=inv linalg_det=det linalg_slogdet=slogdet linalg_matrix_exp=expm "
    "fill=full_like zero=zeros_like detach=stop_gradient detach_copy=stop_gradient"
)
_SPELLED = "acos=arccos acosh=arccosh asin=arcsin asinh=arcsinh atan=arctan atanh=arctanh "
_SPELLED += "hardswish=hard_swish hardsigmoid=hard_sigmoid special_i0=i0"

_BINARY = (
    "remainder=mod fmod=fmod maximum=maximum minimum=minimum max.other=maximum min.other=minimum atan2=arctan2 "
    "logaddexp=logaddexp hypot=hypot nextafter=nextafter fmax=fmax fmin=fmin gcd=gcd lcm=lcm "
    "special_gammainc=gammainc special_gammaincc=gammaincc"
)
_NAMED = (
    "rrelu uniform normal exponential multinomial bernoulli prelu softplus hardtanh copysign clamp "
    "addmm addbmm bilinear median flatten permute transpose squeeze expand split unfold "
    "unbind repeat roll batch_norm layer_norm rms_norm group_norm instance_norm embedding embedding_bag dropout "
    "index_put gather scatter_reduce searchsorted masked_scatter masked_select "
    "put index_reduce where masked_fill topk sort cholesky_solve arange "
    "copy"
)
ROWS: dict[str, Row] = {
    # entry by entry
    **{name: unary(name) for name in _FLOATING.split()},
    **{name: same(name) for name in _SAME.split()},
    **{name: unary(op) for name, op in spellings(_SPELLED).items()},
    **{name: same(op) for name, op in spellings(_PLAIN).items()},
    "round.decimals": same("round"),
    "polygamma": lambda n, self, out: call("ops.polygamma", n, floating(self, out)),
    "complex": lambda real, imag: call("ops.view_as_complex", call("ops.stack", [real, imag], axis=-1)),
    "_fft_c2c": fourier,
    "_fft_r2c": real_fourier,
    "_fft_c2r": inverse_real_fourier,
    **{name: globals()[name] for name in _NAMED.split()},
    **dict.fromkeys(("randn", "randn_like"), random_row("normal")),
    **dict.fromkeys(("rand", "rand_like"), random_row("uniform")),
    **dict.fromkeys(("randint", "randint_like"), randint),
    "index": lambda self, indices: call("ops.get_item", self, key_of(indices)),
    "as_strided": lambda self, size, stride, storage_offset=None: call(
        "strided", self, tuple(size), tuple(stride), offset=storage_offset or 0
    ),
    "index_copy": lambda self, dim, index, source: call("ops.set_item", self, along(self, dim, index), source),
    "fill_diagonal": lambda self, fill_value: call("fill_diagonal", self, fill_value),
    "elu": lambda self, alpha=1: call("ops.elu", self, alpha=alpha),
    "celu": lambda self, alpha=1.0: call("ops.celu", self, alpha=alpha),
    "leaky_relu": lambda self, negative_slope=0.01: call("ops.leaky_relu", self, negative_slope=negative_slope),
    "gelu": lambda self, approximate="none": call("ops.gelu", self, approximate=approximate == "tanh"),
    "glu": lambda self, dim=-1: call("ops.glu", self, axis=dim),
    "softshrink": lambda self, lambd=0.5: call("ops.soft_shrink", self, threshold=lambd),
    "hardshrink": lambda self, lambd=0.5: call("ops.hard_shrink", self, threshold=lambd),
    "mish": lambda self: Infix("*", self, call("ops.tanh", call("ops.softplus", self))),
    **{name: along_axis(name) for name in ("softmax", "log_softmax", "cumsum", "cumprod")},
    "_softmax": lambda self, dim, half_to_float: call("ops.softmax", self, axis=dim),
    # arithmetic
    "add": partial(infix, "+", "add", False),
    "sub": partial(infix, "-", "subtract", False),
    "rsub": partial(infix, "-", "subtract", True),
    "mul": partial(infix, "*", "multiply", False),
    **dict.fromkeys(("div", "true_divide"), divide),
    "floor_divide": lambda self, other, out: divide(self, other, out, "floor"),
    **{name: partial(binary, op) for name, op in spellings(_BINARY).items()},
    "pow": power,
    "clip": clamp,
    "clamp_min": lambda self, min, out: clamp(self, out, min=min),
    "clamp_max": lambda self, max, out: clamp(self, out, max=max),
    "addcmul": add_product("*"),
    "addcdiv": add_product("/"),
    "lerp": lambda self, end, weight: Infix("+", self, Infix("*", weight, Infix("-", end, self))),
    **{
        name: partial(comparison, op)
        for name, op in spellings(
            "eq=equal ne=not_equal lt=less le=less_equal gt=greater ge=greater_equal logical_and=logical_and "
            "logical_or=logical_or logical_xor=logical_xor bitwise_and=bitwise_and bitwise_or=bitwise_or "
            "bitwise_xor=bitwise_xor bitwise_left_shift=left_shift bitwise_right_shift=right_shift "
            "__lshift__=left_shift __rshift__=right_shift __and__=bitwise_and __or__=bitwise_or __xor__=bitwise_xor"
        ).items()
    },
    # products
    "linear": lambda input, weight, bias=None: call("linear", input, weight=weight, bias=bias),
    **dict.fromkeys(("mm", "bmm"), lambda self, mat2: call("ops.matmul", self, mat2)),
    "baddbmm": lambda self, batch1, batch2, beta=1, alpha=1: addmm(self, batch1, batch2, beta, alpha),
    "grouped_matmul": lambda x, weight, ends: call("grouped_matmul", x, weight, ends),
    "transformers::grouped_mm_fallback": lambda input, weight, offs: call("grouped_matmul", input, weight, offs),
    "einsum": lambda equation, tensors, path=None: call("ops.einsum", equation.replace(" ", ""), *tensors),
    "cdist": lambda x1, x2: call("ops.cdist", x1, x2),
    "pdist": lambda self: call("pair_distances", self, triangle("triu")(*self.shape[:1] * 2, 1)),
    # reductions
    **{name: partial(reduction, name) for name in ("sum", "mean", "prod")},
    **{op: partial(variance, op, False) for op in ("var", "std")},
    **{f"{op}_mean": partial(variance, op, True) for op in ("var", "std")},
    "median.dim": lambda self, dim, emit, keepdim=False: pick(self, middle(self.shape[dim]), dim, keepdim, emit),
    "kthvalue": lambda self, k, emit, dim=-1, keepdim=False: pick(self, k - 1, dim, keepdim, emit),
    **{name: over_axes(name) for name in ("max", "min", "any", "all", "logsumexp")},
    **{f"a{op}": over_axes(op) for op in ("max", "min")},
    **{f"{op}.dim": partial(extreme_with_index, op) for op in ("max", "min")},
    "argmax": lambda self, dim=None, keepdim=False: call("ops.argmax", self, axis=dim, keepdims=keepdim),
    "argmin": lambda self, dim=None, keepdim=False: call("ops.argmin", self, axis=dim, keepdims=keepdim),
    **{f"cum{op}": running_extreme(op == "max") for op in ("max", "min")},
    "logcumsumexp": lambda self, dim: call(
        "ops.associative_scan", Name("ops.logaddexp"), self, axis=dim % max(self.ndim, 1)
    ),
    "bincount": lambda self, weights=None, minlength=0: call(
        "ops.bincount", self, weights=weights, minlength=minlength
    ),
    "histc": lambda self, bins=100, min=0, max=0: call("histogram", self, bins, min, max),
    "diff": difference,
    **dict.fromkeys(("norm", "linalg_vector_norm"), norm),
    "linalg_matrix_norm": matrix_norm,
    # shapes
    "view": lambda self, size, out: reshape(self, out),
    "bitwise_not": lambda self: call("ops.logical_not" if self.dtype == "bool" else "ops.bitwise_not", self),
    "reshape": lambda self, shape, out: reshape(self, out),
    "_unsafe_view": lambda self, size, out: reshape(self, out),
    "unflatten": lambda self, dim, sizes, out: reshape(self, out),
    "view_as": lambda self, other, out: reshape(self, out),
    "reshape_as": lambda self, other, out: reshape(self, out),
    "ravel": flatten,
    "t": lambda self: self if self.ndim < 2 else call("ops.transpose", self),
    "mT": lambda self: call("ops.swapaxes", self, -1, -2),
    "expand_as": lambda self, other, out: expand(self, out),
    "broadcast_tensors": lambda tensors, out: tuple(map(expand, tensors, out)),
    "broadcast_to": lambda self, size, out: expand(self, out),
    "meshgrid": lambda tensors, out, indexing="ij": (
        call("ops.meshgrid", *tensors, indexing=indexing) if len(out) > 1 else (reshape(tensors[0], out[0]),)
    ),
    "select": lambda self, dim, index: Item(self, along(self, dim, index)),
    "slice": cut,
    "narrow": lambda self, dim, start, length, out: cut(self, out, dim, start, add_sizes(start, length)),
    "split_with_sizes": lambda self, split_sizes, out, dim=0: split(self, None, out, dim),
    "chunk": lambda self, out, chunks=1, dim=0: split(self, None, out, dim),
    **dict.fromkeys(("cat", "concat"), cat),
    "stack": lambda tensors, out, dim=0: call("ops.stack", [cast(tensor, out.dtype) for tensor in tensors], axis=dim),
    "repeat_interleave.self_int": repeat_interleave,
    "flip": lambda self, dims: call("ops.flip", self, axis=tuple(dims)),
    "pad": write_padding,
    "constant_pad_nd": lambda self, pad, value=0: write_padding(self, pad, "constant", value),
    **{
        f"{ours}_pad{n}d": lambda self, padding, mode=mode: write_padding(self, padding, mode)
        for n in (1, 2, 3)
        for ours, mode in (("reflection", "reflect"), ("replication", "replicate"))
    },
    "tril": lambda self, diagonal=0: call("ops.tril", self, diagonal),
    "triu": lambda self, diagonal=0: call("ops.triu", self, diagonal),
    "diagonal": lambda self, offset=0, dim1=0, dim2=1: call("ops.diagonal", self, offset, dim1, dim2),
    "pixel_shuffle": lambda self, upscale_factor: call("ops.depth_to_space", self, upscale_factor, "channels_first"),
    "pixel_unshuffle": lambda self, downscale_factor: call(
        "ops.space_to_depth", self, downscale_factor, "channels_first"
    ),
    # layers
    **{f"conv{n}d": conv for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": conv_transpose for n in (1, 2, 3)},
    **{f"max_pool{n}d": partial(max_pool, n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": partial(average_pool, n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": partial(adaptive_average_pool, n) for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": partial(adaptive_max_pool, n) for n in (1, 2, 3)},
    "_native_batch_norm_legit_no_training": lambda **given: (batch_norm(**given, training=False), None, None),
    "_native_batch_norm_legit.no_stats": lambda **given: (batch_norm(**given), None, None),
    "scaled_dot_product_attention": attention,
    "embedding_bag.padding_idx": embedding_bag,
    "lstm.input": partial(recurrent, "lstm", None),
    "gru.input": partial(recurrent, "gru", None),
    "rnn_tanh.input": partial(recurrent, "rnn", "tanh"),
    "rnn_relu.input": partial(recurrent, "rnn", "relu"),
    "alpha_dropout": partial(alpha_dropout, True),
    "feature_alpha_dropout": partial(alpha_dropout, False),
    "feature_dropout": lambda input, p, train: dropout(input, p, train, "channel_dropout"),
    "native_dropout": lambda input, p, train: (dropout(input, p, bool(train)), None),
    **dict.fromkeys(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), grid_sample),
    **{f"upsample_nearest{n}d.vec": partial(interpolate, "nearest") for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d.vec": partial(interpolate, "nearest exact") for n in (1, 2, 3)},
    **{f"upsample_{kind}.vec": partial(interpolate, "linear") for kind in ("linear1d", "bilinear2d", "trilinear3d")},
    "upsample_bicubic2d.vec": partial(interpolate, "cubic"),
    **{f"_upsample_{mode}2d_aa.vec": partial(smooth_resize, mode) for mode in ("bilinear", "bicubic")},
    # indices and masks
    "index_select": lambda self, dim, index: call("ops.take", self, index, axis=dim),
    **dict.fromkeys(("scatter.src", "scatter.value"), partial(scatter_row, "set_item")),
    "scatter_add": partial(scatter_row, "add_at"),
    "bucketize": lambda self, boundaries, out, right=False: searchsorted(boundaries, self, out, right),
    **dict.fromkeys(("scatter.reduce", "scatter.value_reduce"), scatter_reduce),
    "slice_scatter": set_slice,
    "select_scatter": lambda self, src, dim, index: call("ops.set_item", self, along(self, dim, index), src),
    "argsort": lambda self, dim=-1, descending=False: call("ops.argsort", self, axis=dim, descending=descending),
    # matrices
    "diagonal_scatter": lambda self, src, offset=0, dim1=0, dim2=1: call(
        "set_diagonal", self, src, offset, (dim1, dim2)
    ),
    "linalg_solve": solve,
    "linalg_cholesky": cholesky,
    "linalg_qr": lambda A, mode="reduced": call("ops.qr", A, mode=mode),
    "linalg_eigh": lambda self, UPLO="L": call("ops.eigh", self, UPLO=UPLO),
    "linalg_eigvalsh": eigenvalues,
    "linalg_svd": lambda A, full_matrices=True: call("ops.svd", A, full_matrices=full_matrices),
    "linalg_svdvals": lambda A: call("ops.svd", A, compute_uv=False),
    "linalg_pinv.atol_rtol_tensor": lambda self, hermitian=False: call(
        "ops.pinv", self, **({"hermitian": True} if hermitian else {})
    ),
    "linalg_solve_triangular": lambda self, B, upper: call("ops.solve_triangular", self, B, lower=not upper),
    # creation
    "linspace": lambda start, end, steps, out, dtype=None: call(
        "ops.linspace", start, end, steps, dtype=DType(out.dtype)
    ),
    "randperm": lambda n, out, dtype=None: call(
        "random.shuffle", call("ops.arange", n, dtype=DType(out.dtype)), seed=SEED
    ),
    "eye": lambda n, out, dtype=None: call("ops.eye", n, dtype=DType(out.dtype)),
    **dict.fromkeys(("zeros", "empty", "new_zeros", "new_empty"), fill_row(0)),
    **dict.fromkeys(("ones", "new_ones"), fill_row(1)),
    **dict.fromkeys(
        ("full", "full_like", "new_full"),
        lambda fill_value, out, self=None, size=None, dtype=None: full(out.shape, fill_value, out.dtype),
    ),
    **dict.fromkeys(("zeros_like", "empty_like"), partial(like, 0)),
    "ones_like": partial(like, 1),
    "scalar_tensor": lambda s, out, dtype=None: call("ops.cast", s, DType(out.dtype)),
    **dict.fromkeys(("to", "_to_copy"), lambda self, out, dtype=None, other=None: cast(self, out.dtype)),
    "type_as": lambda self, other: cast(self, other.dtype),
    **dict.fromkeys(("contiguous", "clone", "alias", "lift_fresh_copy", "lift_fresh"), first_operand),
    **dict.fromkeys(("resolve_conj", "resolve_neg"), first_operand),
    "fresh": lambda x: x,
    "hann_window": partial(window, 0.5, (-0.5,)),
    "hamming_window": partial(window, 0.54, (-0.46,)),
    "blackman_window": partial(window, 0.42, (-0.5, 0.08)),
    **{f"{op}_indices": triangle(op) for op in ("tril", "triu")},
    **{f"fft_{kind}fftfreq": partial(frequencies, kind == "r") for kind in ("", "r")},
    # losses
    "ctc_loss": lambda log_probs, targets, input_lengths, target_lengths, blank: call(
        "ctc_loss", log_probs, targets, input_lengths, target_lengths, blank=blank
    ),
    "mse_loss": partial(loss_of_difference, "square"),
    "l1_loss": partial(loss_of_difference, "abs"),
}

# PyTorch's second names; without a row, a call makes PyTorch rewrite the whole program
ALIASES = spellings(
    "absolute=abs arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan arctan2=atan2 arctanh=atanh "
    "concatenate=cat divide=div fix=trunc greater=gt greater_equal=ge less=lt less_equal=le moveaxis=movedim "
    "multiply=mul negative=neg not_equal=ne special_digamma=digamma special_erf=erf special_erfc=erfc "
    "special_expit=sigmoid special_expm1=expm1 special_gammaln=lgamma special_log1p=log1p subtract=sub "
    "swapaxes=transpose swapdims=transpose"
)
ROWS |= {
    alias + key.removeprefix(name): row
    for alias, name in ALIASES.items()
    for key, row in ROWS.items()
    if key.partition(".")[0] == name
}
