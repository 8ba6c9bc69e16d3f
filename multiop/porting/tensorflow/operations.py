"""TensorFlow's graph operations and what they are in multiop: one row per operation.

A row takes the operation's inputs and attributes under their names in TensorFlow, those that it supports; a single
input is called `x`. Inputs that say where or how large (`STATIC`) are Python ints, or a `Dim` where a size is open. Two
names are special: `out` is what the operation returns (`Value`s without content, for their shapes and dtypes), and
`emit` adds a statement in front and returns its results. An attribute that its row does not take must have its default.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from multiop.porting._graph import Call, Dim, DType, Expression, Infix, Item, Name, Value, call, is_call
from multiop.porting._rows import (
    FLOATS,
    Row,
    Untranslated,
    binary,
    block_replaced,
    cast,
    line,
    pad_by,
    part,
    polygamma,
    short,
    size_text,
    sizes,
    spellings,
    split,
    truncated_quotient,
    unary,
    words,
)

UPDATES = {  # of a variable: whether of entries, or of rows, and how
    f"ResourceScatter{kind}{name}": (kind, name)
    for kind in ("", "Nd")
    for name in ("Update", "Add", "Sub", "Max", "Min")
}
KNOWN = ("ScaleAndTranslate", "HistogramFixedWidth")  # their small inputs are numbers where they are constant
STATIC = words(
    "axis begin block_shape crop_size crops depth dim dimension dims end fft_length input_sizes k multiples nbins "
    "num_lower num_upper num_segments paddings perm reduction_indices shape shift size size_splits split_dim strides"
)


_COMPUTED = (Value, Item, Call)  # what stands for a number that depends on values


# rows that many operations share


def infix(operator, op, x, y, out):
    """An operator of Python where the result is floating, else an op."""
    if out.dtype in FLOATS:
        x, y = (call("ops.cast", z, DType(out.dtype)) if isinstance(z, Dim) else z for z in (x, y))
    else:
        return call(f"ops.{op}", x, y)
    neutral = {"+": 0, "-": 0, "*": 1, "/": 1}[operator]
    if isinstance(x, Value) and x.shape == out.shape and not isinstance(y, Value) and y == neutral:
        return x
    return Infix(operator, x, y)


def extremum(op, x, y):
    """At a tie, the gradient goes to the first one; to the tensor where the other one is a number."""
    bounds = [operand for operand in (x, y) if not isinstance(operand, Value)]
    if not bounds and x.dtype in FLOATS:
        return call("larger" if op == "maximum" else "smaller", x, y)
    if len(bounds) != 1 or isinstance(bounds[0], Dim):
        return call(f"ops.{op}", x, y)
    tensor, bound = (x, y) if isinstance(x, Value) else (y, x)
    low, high = (bound, None) if op == "maximum" else (None, bound)
    return call("ops.clip", tensor, -math.inf if low is None else low, math.inf if high is None else high)


def power(x, y):
    if not isinstance(y, Value) and y == 2:
        return call("ops.square", x)
    return call("ops.power", x, y)


def axes_of(axes, ndim):
    """Return the axes of a reduction: `None` for all."""
    if isinstance(axes, int):
        return axes
    axes = tuple(axes)
    if sorted(axis % max(ndim, 1) for axis in axes) == list(range(ndim)):
        return None
    return axes[0] if len(axes) == 1 else axes


def reduction(op, input, reduction_indices, keep_dims=False):
    if reduction_indices in ((), []):
        return input
    return call(f"ops.{op}", input, axis=axes_of(reduction_indices, input.ndim), keepdims=keep_dims)


def cumulative(op, x, axis, exclusive=False, reverse=False):
    y: Expression = call("ops.flip", x, axis=axis) if reverse else x
    if exclusive:  # each entry is that of the ones before it
        before, width = axis % x.ndim, [(0, 0)] * x.ndim
        width[before] = (1, 0)
        y = Item(y, (*[slice(None)] * before, slice(-1)))
        y = call("ops.pad", y, width, constant_values=int(op == "cumprod"))
    y = call(f"ops.{op}", y, axis=axis)
    return call("ops.flip", y, axis=axis) if reverse else y


def cumulative_logsumexp(x, axis, exclusive=False, reverse=False):
    y: Expression = x
    if exclusive:  # each entry is that of the ones before it, or behind it
        key, width = [slice(None)] * x.ndim, [(0, 0)] * x.ndim
        key[axis], width[axis % x.ndim] = (slice(1, None), (0, 1)) if reverse else (slice(-1), (1, 0))
        lowest = float(np.finfo("float32" if x.dtype == "bfloat16" else x.dtype).min)
        y = call("ops.pad", Item(x, tuple(key)), tuple(width), constant_values=lowest)
    if isinstance(x.shape[axis], Dim):
        raise Untranslated("along an open dimension")
    return call("ops.associative_scan", Name("ops.logaddexp"), y, reverse=reverse, axis=axis)


def divide_and_truncate(x, y, out):
    return call("ops.trunc", Infix("/", x, y)) if out.dtype in FLOATS else truncated_quotient(x, y)


# products


def matmul(a, b, transpose_a=False, transpose_b=False):
    left = call("ops.transpose", a) if transpose_a else a
    right = call("ops.transpose", b) if transpose_b else b
    return call("ops.matmul", left, right)


def batch_matmul(x, y, adj_x=False, adj_y=False):
    if (adj_x or adj_y) and x.dtype.startswith("complex"):
        raise Untranslated("an adjoint of complex matrices")
    left = call("ops.swapaxes", x, -1, -2) if adj_x else x
    right = call("ops.swapaxes", y, -1, -2) if adj_y else y
    return call("ops.matmul", left, right)


def bias_add(value, bias, data_format="NHWC"):
    if data_format != "NHWC" and value.ndim > 2:
        return Infix("+", value, call("ops.reshape", bias, (-1, *[1] * (value.ndim - 2))))
    return Infix("+", value, bias)


# shapes


def write_reshape(x, out):
    if isinstance(x, Value) and x.shape == out.shape:
        return x
    return call("ops.reshape", x, sizes(out.shape))


def squeeze(x, out, squeeze_dims=()):
    if x.shape == out.shape:
        return x
    axes = tuple(axis % x.ndim for axis in squeeze_dims)
    if not axes:
        axes = tuple(axis for axis, size in enumerate(x.shape) if size == 1)
    return call("ops.squeeze", x, axes[0] if len(axes) == 1 else axes)


def transpose(x, perm):
    perm = tuple(perm)
    if perm == tuple(range(len(perm))):
        return x
    if sum(a != b for a, b in enumerate(perm)) == 2:
        return call("ops.swapaxes", x, *[a for a, b in enumerate(perm) if a != b])
    return call("ops.transpose", x, perm)


def concatenate(values, axis):
    parts = [value for value in values if not (isinstance(value, Value) and 0 in value.shape)]
    return parts[0] if len(parts) == 1 else call("ops.concatenate", parts, axis=axis)


def split_at(value, split_dim, out, size_splits=0, num_split=0):
    return split(value, [skeleton.shape[split_dim] for skeleton in out], split_dim)


def unpack(x, out, num=0, axis=0):
    if len(out) == 1:
        return (call("ops.squeeze", x, axis),)
    return call("ops.unstack", x, len(out), axis=axis)


def strided_slice(
    input, begin, end, strides, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0, out=None
):
    key: list[Any] = []
    computed: dict[int, Any] = {}  # the one index along an axis that is computed
    blocks: dict[int, tuple[Any, Any]] = {}  # where a block begins along an axis, and how long it is
    axis = 0
    for i, (start, stop, step) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            rest = sum(not (new_axis_mask >> j & 1) for j in range(i + 1, len(begin)))
            axis = input.ndim - rest
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            if isinstance(start, (Dim, *_COMPUTED)):
                computed[axis] = start
            else:
                key.append(start)
            axis += 1
        elif isinstance(start, _COMPUTED):
            if step != 1 or out is None:
                raise Untranslated("a slice that begins at a value, in steps")
            blocks[axis] = start, out.shape[sum(part is None or isinstance(part, slice) for part in key)]
            key.append(slice(None))
            axis += 1
        else:
            size = input.shape[axis]
            low = None if begin_mask & bit or (start == 0 and step > 0) else start
            high = None if end_mask & bit else stop
            if (
                step > 0
                and high is not None
                and (high == size or (isinstance(high, int) and isinstance(size, int) and high >= size))
            ):
                high = None
            key.append(slice(low, high, None if step == 1 else step))
            axis += 1
    whole = input
    if blocks:
        if any(part is Ellipsis for part in key):
            raise Untranslated("a slice that begins at a value, beside an ellipsis")
        starts = [blocks[axis][0] if axis in blocks else 0 for axis in range(input.ndim)]
        shape = tuple(blocks[axis][1] if axis in blocks else size for axis, size in enumerate(input.shape))
        whole = call("ops.slice", input, call("ops.stack", starts), shape)
    for axis, index in sorted(computed.items(), reverse=True):
        whole = call("ops.take", whole, index, axis=axis)
    if Ellipsis in key and all(part == slice(None) for part in key[key.index(Ellipsis) + 1 :]):
        key = key[: key.index(Ellipsis)]
    while Ellipsis not in key and key and key[-1] == slice(None):
        key.pop()
    if any(isinstance(part, slice) and (part.step or 1) < 0 for part in key):  # PyTorch's brackets do not take these
        back = [axis for axis, part in enumerate(key) if part == slice(None, None, -1)]
        if all(part in (slice(None), slice(None, None, -1)) for part in key):
            return call("ops.flip", whole, axis=back[0] if len(back) == 1 else tuple(back))
        return call("ops.get_item", whole, tuple(key))
    return Item(whole, tuple(key)) if key else whole


def cut(input, begin, size, out):
    if any(isinstance(start, _COMPUTED) for start in begin):
        return call("ops.slice", input, call("ops.stack", list(begin)), out.shape)
    key = []
    for start, length, whole in zip(begin, size, input.shape, strict=True):
        if length == -1:
            key.append(slice(start or None, None))
        elif isinstance(start, Dim) or (isinstance(length, Dim) and start != 0):
            raise Untranslated("a slice between open sizes")
        else:
            stop = length if start == 0 else start + length
            key.append(slice(start or None, None if stop == whole else stop))
    return part(input, key)


def update_block(input, update, indices):
    """Replace a block; XLA moves one back that begins out of range."""
    places: list[Expression] = []
    for start, size, count in zip(indices, input.shape, update.shape, strict=True):
        if size == count:
            places.append(0)
        elif isinstance(size, Dim) or isinstance(count, Dim):
            raise Untranslated("of a block between open sizes")
        elif isinstance(start, _COMPUTED):
            places.append(call("ops.clip", start, 0, size - count))
        else:
            places.append(min(max(int(start), 0), size - count))
    return block_replaced(input, places, update)


def tile(input, multiples):
    if all(multiple == 1 for multiple in multiples):
        return input
    return call("ops.tile", input, tuple(multiples))


def broadcast(input, shape, out):
    if isinstance(input, Value) and input.shape == out.shape:
        return input
    if not isinstance(input, Value):
        return full(out.shape, input, out.dtype)
    return call("ops.broadcast_to", input, out.shape)


def pad(input, paddings, constant_values=0):
    return pad_by(input, tuple(tuple(pair) for pair in paddings), constant_values)


def mirror_pad(input, paddings, mode):
    widths = tuple(tuple(pair) for pair in paddings)
    return call("ops.pad", input, widths, mode=mode.lower())


def flip(tensor, axis):
    axes = tuple(axis)
    return tensor if not axes else call("ops.flip", tensor, axis=axes[0] if len(axes) == 1 else axes)


def to_batch(input, block_shape, paddings, out):
    """Move blocks of space into the batch, in front of it."""
    blocks = tuple(block_shape)
    space = len(blocks)
    widths = ((0, 0), *[tuple(pair) for pair in paddings], *[(0, 0)] * (input.ndim - space - 1))
    y = pad_by(input, widths)
    shape: list[Any] = [input.shape[0]]
    for (low, high), size, block in zip(widths[1:], input.shape[1:], blocks, strict=False):
        if isinstance(size, Dim):
            raise Untranslated("blocks of an open dimension")
        shape += [(size + low + high) // block, block]
    shape += input.shape[space + 1 :]
    y = call("ops.reshape", y, sizes(shape))
    inner = [2 * i + 2 for i in range(space)]
    outer = [2 * i + 1 for i in range(space)]
    y = call("ops.transpose", y, (*inner, 0, *outer, *range(2 * space + 1, len(shape))))
    return call("ops.reshape", y, sizes(out.shape))


def from_batch(input, block_shape, crops, out):
    """Move blocks of the batch back into space."""
    blocks = tuple(block_shape)
    space = len(blocks)
    rest = input.shape[space + 1 :]
    if any(isinstance(size, Dim) for size in input.shape[1:]):
        raise Untranslated("blocks of an open dimension")
    shape = (*blocks, -1, *input.shape[1:])
    y: Expression = call("ops.reshape", input, shape)
    order = [space]
    for i in range(space):
        order += [space + 1 + i, i]
    y = call("ops.transpose", y, (*order, *range(2 * space + 1, len(shape))))
    large = [size * block for size, block in zip(input.shape[1:], blocks, strict=False)]
    y = call("ops.reshape", y, (-1, *large, *rest))
    key = tuple(slice(low or None, -high or None) for low, high in crops)
    return Item(y, (slice(None), *key)) if any(part != slice(None) for part in key) else y


# creation


def full(shape, value, dtype):
    shape = tuple(shape)
    if isinstance(value, Value):
        return call("ops.broadcast_to", value, shape)
    if not isinstance(value, Dim) and value in (0, 1) and not isinstance(value, bool):
        return call("ops.ones" if value else "ops.zeros", shape, dtype=DType(dtype))
    return call("ops.full", shape, value, dtype=DType(dtype))


def arange(start, limit, delta, out):
    return line(start, limit, delta, out.dtype)


def one_hot(indices, depth, on_value, off_value, out, axis=-1):
    y: Expression = call("ops.one_hot", indices, depth, axis=axis, dtype=DType(out.dtype))
    if (on_value, off_value) == (1, 0):
        return y
    if isinstance(on_value, Value) or isinstance(off_value, Value):
        raise Untranslated("values that are tensors")
    chosen = call("ops.one_hot", indices, depth, axis=axis, dtype="bool")
    return call("ops.where", chosen, call("ops.cast", on_value, DType(out.dtype)), off_value)


# convolution and pooling


def spatial(option, data_format):
    """Return the part of an option that is about space."""
    return tuple(option[1:-1] if data_format.endswith("C") else option[2:])


def pad_explicitly(x, padding, explicit, value=0):
    """Return `x` with explicit padding put around it, and the padding that is left."""
    if padding != "EXPLICIT":
        return x, padding.lower()
    widths = tuple(tuple(explicit[i : i + 2]) for i in range(0, len(explicit), 2))
    return pad_by(x, widths, value), "valid"


def conv_options(x, strides, padding, explicit, dilations, data_format):
    """Return the input, strides that must be taken afterwards, and the options of `ops.conv`."""
    steps, rates = spatial(strides, data_format), spatial(dilations, data_format)
    x, pads = pad_explicitly(x, padding, explicit)
    thinned: tuple[int, ...] = ()
    if max(steps) > 1 and max(rates) > 1:
        if pads == "same":
            raise Untranslated("a stride together with a dilation and SAME padding")
        steps, thinned = (1,) * len(steps), steps
    options = {"strides": short(steps), "padding": pads, "dilation_rate": short(rates)}
    if data_format.startswith("NC"):
        options["data_format"] = "channels_first"
    return x, thinned, options


def conv_of(function, input, filter, strides, padding, data_format, dilations, explicit_paddings=(), bias=None):
    x, thinned, options = conv_options(input, strides, padding, explicit_paddings, dilations, data_format)
    y: Expression = call(function, x, kernel=filter, bias=bias, **options)
    if thinned:
        space = tuple(slice(None, None, step) for step in thinned)
        first = data_format.startswith("NC")
        y = Item(y, (slice(None), slice(None), *space) if first else (slice(None), *space))
    return y


def conv_transpose(input_sizes, filter, out_backprop, strides, padding, data_format, dilations, out, bias=None):
    if data_format.startswith("NC"):
        raise Untranslated(f"data_format={data_format}")
    steps, rates = spatial(strides, data_format), spatial(dilations, data_format)
    if max(steps) > 1 and max(rates) > 1:
        raise Untranslated("a stride together with a dilation")
    if any(isinstance(size, Dim) for size in filter.shape):
        raise Untranslated("a kernel of open size")
    for size, wanted, window, step, rate in zip(
        out_backprop.shape[1:], out.shape[1:], filter.shape[:-2], steps, rates, strict=False
    ):
        if isinstance(size, Dim) or isinstance(wanted, Dim):
            is_usual = padding == "SAME" and wanted == (size if step == 1 else Dim(f"{step}*{size.text}", size.symbols))
            if not is_usual or not size.text.isidentifier():
                raise Untranslated(f"from the open size {size_text(size)} to {size_text(wanted)}")
            continue
        reach = (window - 1) * rate + 1
        usual = size * step if padding == "SAME" else (size - 1) * step + max(reach, step)
        if wanted != usual:
            raise Untranslated("an output size other than the usual one")
    options = {"strides": short(steps), "padding": padding.lower(), "dilation_rate": short(rates)}
    return call("transposed_convolution", out_backprop, kernel=filter, bias=bias, **options)


def pool(op, x, ksize, strides, padding, data_format="NHWC", explicit_paddings=()):
    outside = (ksize[0], strides[0], *([ksize[1], strides[1]] if data_format.startswith("NC") else []))
    if data_format.endswith("C"):
        outside = (*outside, ksize[-1], strides[-1])
    if any(width != 1 for width in outside):
        raise Untranslated("windows over batch or channels")
    x, pads = pad_explicitly(x, padding, explicit_paddings, -math.inf if op == "max_pool" else 0)
    layout = "channels_first" if data_format.startswith("NC") else "channels_last"
    sizes = (short(spatial(option, data_format)) for option in (ksize, strides))
    return call(f"ops.{op}", x, *sizes, padding=pads, data_format=layout)


# images: TensorFlow resizes in float32, with weights that it computes in float32


def scale_of(before, after, align_corners):
    """Return how many entries of what is resized an entry of the result stands for, as TensorFlow computes it."""
    is_aligned = align_corners and after > 1
    return np.float32(before - 1) / np.float32(after - 1) if is_aligned else np.float32(before) / np.float32(after)


def places_of(before, after, align_corners, half_pixel_centers):
    """Return where the entries of the result lie, in entries of what is resized."""
    shift = np.float32(0.5 if half_pixel_centers else 0)
    return (np.arange(after, dtype="float32") + shift) * scale_of(before, after, align_corners) - shift


def linear_taps(before, places):
    left = np.floor(places)
    rest = places - left
    return np.clip(np.stack([left, left + 1]), 0, before - 1), np.stack([1 - rest, rest])


def cubic_taps(before, places, is_keys):
    """Take the weights from TensorFlow's table of 1024 steps; Keys's kernel has none beyond the edge."""
    a = np.float32(-0.5 if is_keys else -0.75)
    left = np.floor(places)
    step = np.rint((places - left) * np.float32(1024)).astype("float32") / np.float32(1024)
    near, far = ((lambda x: ((a + 2) * x - (a + 3)) * x * x + 1), (lambda x: ((a * x - 5 * a) * x + 8 * a) * x - 4 * a))
    weights = np.stack([far(step + 1), near(step), near(1 - step), far(2 - step)])
    wanted = left + np.arange(-1, 3, dtype="float32")[:, None]
    index = np.clip(wanted, 0, before - 1)
    if is_keys:
        weights = np.where(index == wanted, weights, 0)
        weights = weights / weights.sum(0)
    return index, weights


def area_taps(before, after, align_corners):
    """Weigh each entry with the part of it that an entry of the result covers."""
    scale = scale_of(before, after, align_corners)
    start = np.arange(after, dtype="float32") * scale
    end = np.arange(1, after + 1, dtype="float32") * scale
    index = np.floor(start) + np.arange(int((np.ceil(end) - np.floor(start)).max()), dtype="float32")[:, None]
    covered = np.minimum(index + 1, end) - np.maximum(index, start)
    return np.clip(index, 0, before - 1), np.maximum(covered, 0) / scale


def kernel_taps(before, after, scale, shift, kernel, antialias):
    """Weigh entries by a kernel that is moved, and widened where entries move together."""
    radius, weigh = KERNELS[kernel]
    step = np.float32(1) / np.float32(scale)
    width = max(step, np.float32(1)) if antialias else np.float32(1)
    places = (np.arange(after, dtype="float32") + np.float32(0.5)) * step - step * np.float32(shift)
    first = np.clip(np.ceil(places - radius * width - np.float32(0.5)), 0, before - 1)
    last = np.clip(np.floor(places + radius * width - np.float32(0.5)), 0, before - 1)
    index = first + np.arange(int((last - first).max()) + 1, dtype="float32")[:, None]
    is_used = (index <= last) & (places >= 0) & (places <= before)
    weights = np.where(is_used, weigh(np.abs((index + np.float32(0.5) - places) / width)), 0)
    total = weights.sum(0)
    return np.clip(index, 0, before - 1), weights / np.where(total == 0, 1, total)


def lanczos(radius):
    return lambda x: np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0)


def mitchell(x):
    near = ((7 * x - 12) * x * x + 16 / 3) / 6
    far = (((-7 / 3 * x + 12) * x - 20) * x + 32 / 3) / 6
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def keys(x):
    return np.where(x < 1, (1.5 * x - 2.5) * x * x + 1, np.where(x < 2, ((-0.5 * x + 2.5) * x - 4) * x + 2, 0))


KERNELS: dict[str, tuple[float, Callable[[Any], Any]]] = {  # the radius, and the weight at a distance
    "lanczos1": (1, lanczos(1)),
    "lanczos3": (3, lanczos(3)),
    "lanczos5": (5, lanczos(5)),
    "gaussian": (1.5, lambda x: np.where(x < 1.5, np.exp(-2 * x * x), 0)),
    "box": (1, lambda x: np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0))),
    "triangle": (1, lambda x: np.where(x < 1, 1 - x, 0)),
    "keyscubic": (2, keys),
    "mitchellcubic": (2, mitchell),
}
_OWN_KERNELS = {"triangle": "bilinear", "keyscubic": "bicubic", "lanczos3": "lanczos3", "lanczos5": "lanczos5"}


def write_resampling(x, taps, keep):
    """Return an expression of a tensor, each of whose two dimensions of space is a weighted sum of entries."""
    for axis, (index, weights) in enumerate(taps, 1):
        counts = (weights != 0).any(1)  # entries that count nowhere are left out
        index, weights = index[counts], weights[counts]
        is_same = index.shape[0] == 1 and (weights == 1).all() and (np.diff(index[0]) == 1).all() and index[0, 0] == 0
        if not is_same:
            x = call("resample", x, keep(index.astype("int32")), keep(weights.astype("float32")), axis)
    return x


def reject_open(images, size):
    """Refuse a resize whose weights are computed while reading, if a size is open."""
    before, after = (" x ".join(map(size_text, extents)) for extents in (images.shape[1:3], size))
    if any(isinstance(extent, Dim) for extent in (*size, *images.shape[1:3])):
        raise Untranslated(f"a resize from {before} to {after}, which are open")


def resize(kind, images, size, keep, align_corners=False, half_pixel_centers=False, out=None):
    x = cast(images, out.dtype)
    if kind == "bilinear" and half_pixel_centers and not align_corners:
        return call("ops.image.resize", x, tuple(size), interpolation=kind, data_format="channels_last")
    reject_open(images, size)
    taps = []
    for before, after in zip(images.shape[1:3], map(int, size), strict=True):
        places = places_of(before, after, align_corners, half_pixel_centers)
        if kind == "area":
            taps.append(area_taps(before, after, align_corners))
        elif kind == "bilinear":
            taps.append(linear_taps(before, places))
        else:
            taps.append(cubic_taps(before, places, half_pixel_centers))
    return write_resampling(x, taps, keep)


def resize_nearest(images, size, align_corners=False, half_pixel_centers=False):
    y: Expression = images
    for axis, (before, after) in enumerate(zip(images.shape[1:3], size, strict=True), 1):
        if after == before:
            continue
        if isinstance(before, Dim) or isinstance(after, Dim):
            if align_corners:
                reject_open(images, size)
            at: Expression = call("ops.arange", after, dtype=DType("float32"))
            at = Infix("*", Infix("+", at, 0.5) if half_pixel_centers else at, Infix("/", before, after))
            at = call("ops.minimum", call("ops.floor", at), Infix("-", before, 1))
            y = call("ops.take", y, call("ops.cast", at, DType("int32")), axis=axis)
            continue
        if after % before == 0 and not align_corners:
            y = call("ops.repeat", y, after // before, axis=axis)
            continue
        shift = np.float32(0.5 if half_pixel_centers else 0)
        places = (np.arange(after, dtype="float32") + shift) * scale_of(before, after, align_corners)
        places = np.floor(places + np.float32(0.5)) if align_corners else np.floor(places)
        y = call("ops.take", y, np.clip(places, 0, before - 1).astype(int).tolist(), axis=axis)
    return y


def scale_and_translate(images, size, scale, translation, out, keep, kernel_type="lanczos3", antialias=True):
    reject_open(images, size)
    x = cast(images, out.dtype)
    own = _OWN_KERNELS.get(kernel_type)
    if isinstance(scale, Value) or isinstance(translation, Value):
        if own is None:
            raise Untranslated(f"with kernel_type={kernel_type}, by a scale that is computed")
        way = [call("ops.stop_gradient", operand) for operand in (scale, translation)]  # as TensorFlow has it
        return call("ops.image.scale_and_translate", x, out.shape, *way, (1, 2), own, antialias)
    ways = list(zip(images.shape[1:3], map(int, size), scale, translation, strict=True))
    is_plain = all(shift == 0 and math.isclose(factor, n / old, rel_tol=1e-6) for old, n, factor, shift in ways)
    if own is not None and is_plain:
        return call("ops.image.resize", x, tuple(size), own, antialias, data_format="channels_last")
    return write_resampling(x, [kernel_taps(*way, kernel_type, antialias) for way in ways], keep)


def crop_and_resize(image, boxes, box_ind, crop_size, method="bilinear", extrapolation_value=0.0):
    image = cast(image, "float32")
    return call("crop_and_resize", image, boxes, box_ind, tuple(crop_size), method, extrapolation_value)


def patches(images, ksizes, strides, rates, padding):
    size, steps, spread = (short(tuple(option[1:3])) for option in (ksizes, strides, rates))
    options = {} if spread == 1 else {"dilation_rate": spread}
    options |= {"padding": padding.lower(), "data_format": "channels_last"}
    return call("ops.image.extract_patches", images, size, steps, **options)


# counting


def counts(input, size, weights, out, binary_output=False):
    """Count each number below `size` in a vector, or in the rows of a matrix."""
    dtype = DType(out.dtype)
    if binary_output:
        hits = call("ops.any", call("ops.one_hot", input, size, dtype=DType("bool")), axis=-2)
        return call("ops.cast", hits, dtype)
    hits = call("ops.one_hot", input, size, dtype=dtype)
    if 0 not in weights.shape:
        hits = Infix("*", hits, call("ops.expand_dims", weights, -1))
    total = call("ops.sum", hits, axis=-2)
    return total if out.dtype in ("int32", "int64", *FLOATS) else call("ops.cast", total, dtype)


def counts_of_all(arr, size, weights, out):
    if arr.ndim != 1:
        raise Untranslated("of more than one dimension")
    return counts(arr, size, weights, out)


def histogram(values, value_range, nbins, out):
    low, high = value_range if isinstance(value_range, tuple) else (Item(value_range, (0,)), Item(value_range, (1,)))
    position = Infix("*", Infix("-", values, low), Infix("/", nbins, Infix("-", high, low)))
    number = call("ops.cast", call("ops.clip", call("ops.floor", position), 0, nbins - 1), DType("int32"))
    hits = call("ops.one_hot", call("ops.reshape", number, -1), nbins, dtype=DType(out.dtype))
    return call("ops.sum", hits, axis=0)


def bucketize(x, boundaries):
    dtype = x.dtype if x.dtype in FLOATS else "float32"
    bounds = call("ops.array", [float(bound) for bound in boundaries], dtype=DType(dtype))
    return call("ops.searchsorted", bounds, x, side="right")


# normalization


def fused_batch_norm(x, scale, offset, mean, variance, out, emit, epsilon=1e-4, data_format="NHWC", is_training=True):
    axis = 1 if data_format.startswith("NC") else x.ndim - 1
    if is_training:
        axes = tuple(dim for dim in range(x.ndim) if dim != axis)
        mean, variance = emit(call("ops.moments", x, axes), *[Value(x.shape, x.dtype) for x in out[1:3]])
    else:  # TensorFlow gives them no gradient
        mean, variance = (
            statistic if statistic.kind == "state" else call("ops.stop_gradient", statistic)
            for statistic in (mean, variance)
        )
    y = call("ops.batch_normalization", x, mean, variance, axis, offset, scale, epsilon)
    if not is_training:
        return (y, mean, variance, None, None, None)[: len(out)]
    count = call("ops.cast", Infix("//", call("ops.size", x), x.shape[axis]), DType(variance.dtype))
    unbiased = Infix("*", variance, Infix("/", count, Infix("-", count, 1)))
    statistics = [call("ops.stop_gradient", statistic) for statistic in (mean, unbiased)]  # as TensorFlow has it
    return (y, *statistics, None, None, None)[: len(out)]


# indices and masks


def gather(params, indices, axis=0, batch_dims=0):
    axis = axis % params.ndim
    if batch_dims:
        if batch_dims != axis or not isinstance(indices, Value) or indices.ndim not in (axis, axis + 1):
            raise Untranslated(f"batch_dims={batch_dims}")
        index: Expression = indices
        if indices.ndim == axis:  # one entry of each row
            index = call("ops.expand_dims", indices, tuple(range(axis, params.ndim)) if axis < params.ndim - 1 else -1)
            return call("ops.squeeze", call("ops.take_along_axis", params, index, axis=axis), axis)
        rest = params.ndim - indices.ndim
        if rest:
            index = call("ops.expand_dims", indices, tuple(range(indices.ndim, params.ndim)) if rest > 1 else -1)
        return call("ops.take_along_axis", params, index, axis=axis)
    if isinstance(indices, int):
        return Item(params, (slice(None),) * axis + (indices,))
    return call("ops.take", params, indices, axis=axis)


def gather_nd(params, indices, emit):
    if not isinstance(indices, Value):
        columns = np.moveaxis(np.asarray(indices), -1, 0).tolist()
        return call("ops.get_item", params, tuple(columns) if len(columns) > 1 else columns[0])
    count = indices.shape[-1]
    if isinstance(count, Dim):
        raise Untranslated("indices of open length")
    key = tuple(Item(indices, (Ellipsis, i)) for i in range(count))
    return call("ops.get_item", params, key if len(key) > 1 else key[0])


def where(condition, t, e, out):
    if not isinstance(t, Value) and not isinstance(e, Value):
        t = call("ops.cast", t, DType(out.dtype))
    return call("ops.where", condition, t, e)


def where_rows(condition, t, e, out):
    """A vector chooses rows."""
    if condition.ndim == 1 and out.ndim > 1 and isinstance(t, Value):
        return call("ops.where", call("ops.reshape", condition, (-1, *[1] * (out.ndim - 1))), t, e)
    return where(condition, t, e, out)


def reverse_sequence(input, seq_lengths, seq_dim, batch_dim=0):
    """Turn the first entries of each row around, as many as its length says."""
    size, ndim = input.shape[seq_dim], input.ndim
    shape = [1] * ndim
    shape[batch_dim] = -1
    lengths = call("ops.reshape", seq_lengths, tuple(shape))
    shape[batch_dim], shape[seq_dim] = 1, -1
    places = call("ops.reshape", call("ops.arange", size, dtype=DType(seq_lengths.dtype)), tuple(shape))
    turned = call("ops.where", call("ops.less", places, lengths), Infix("-", Infix("-", lengths, 1), places), places)
    return call("ops.take_along_axis", input, turned, axis=seq_dim)


def band(input, num_lower, num_upper):
    y: Expression = input
    if num_upper >= 0:
        y = call("ops.tril", y, num_upper)
    if num_lower >= 0:
        y = call("ops.triu", y, -num_lower)
    return y


def scatter_row(reduction):
    options = {} if reduction is None else {"reduction": reduction}
    return lambda tensor, indices, updates: call("ops.scatter_update", tensor, indices, updates, **options)


def update_row(kind, name):
    """What a variable holds after some of its entries, or of its rows, were changed."""
    options = {"reduction": "add" if name == "Sub" else name.lower()} if name != "Update" else {}

    def row(indices, updates, ref=None, resource=None):
        at = indices if kind == "Nd" else call("ops.expand_dims", indices, -1)
        values = call("ops.negative", updates) if name == "Sub" else updates
        return call("ops.scatter_update", resource if ref is None else ref, at, values, **options)

    return row


def bounds(side, sorted_inputs, values, out):
    positions = call("ops.searchsorted", sorted_inputs, values, **({} if side == "left" else {"side": side}))
    return call("ops.cast", positions, DType(out.dtype))


def unless_zero(combine, x, y):
    """A function of `x` and `y` that is 0, with gradients of 0, where `x` is 0."""
    is_zero = call("ops.equal", x, 0)
    return call("ops.where", is_zero, 0.0, combine(x, call("ops.where", is_zero, 1.0, y)))


# matrices


def swap_last_axes(x):
    return call("ops.swapaxes", x, -1, -2)


def real(x):
    if x.dtype.startswith("complex"):
        raise Untranslated("of complex matrices")
    return x


def solve(matrix, rhs, adjoint=False):
    return call("ops.solve", swap_last_axes(real(matrix)) if adjoint else matrix, rhs)


def solve_triangular(matrix, rhs, lower=True, adjoint=False):
    if adjoint:
        return call("ops.solve_triangular", swap_last_axes(real(matrix)), rhs, lower=not lower)
    return call("ops.solve_triangular", matrix, rhs, lower=lower)


def inverse(input, adjoint=False):
    return call("ops.inv", swap_last_axes(real(input)) if adjoint else input)


def svd(input, out, emit, compute_uv=True, full_matrices=False):
    if not compute_uv:
        return call("ops.svd", input, compute_uv=False), None, None
    singular, left, right = out
    adjoint = Value((*right.shape[:-2], right.shape[-1], right.shape[-2]), right.dtype)
    u, s, v = emit(call("ops.svd", real(input), full_matrices=full_matrices), left, singular, adjoint)
    return s, u, swap_last_axes(v)


def eigh(input, out, emit, compute_v=True):
    values, vectors = emit(call("ops.eigh", input), out[0], Value(input.shape, input.dtype))
    return values, vectors if compute_v else None


def check_main(k, rows=-1, columns=-1):
    if k != 0 or rows != -1 or columns != -1:
        raise Untranslated("a diagonal other than the main one")


def on_diagonal(size):
    if isinstance(size, Dim):
        raise Untranslated("a diagonal of open size")
    return call("ops.cast", call("ops.eye", size), DType("bool"))


def diagonal_matrix(diagonal, k, num_rows, num_cols, padding_value, align=""):
    check_main(k, num_rows, num_cols)
    if diagonal.ndim == 1 and padding_value == 0:
        return call("ops.diag", diagonal)
    mask = on_diagonal(diagonal.shape[-1])
    return call("ops.where", mask, call("ops.expand_dims", diagonal, -1), padding_value)


def main_diagonal(input, k, padding_value, align=""):
    check_main(k)
    return call("ops.diagonal", input, 0, -2, -1)


def with_diagonal(input, diagonal, k, align=""):
    check_main(k)
    if input.shape[-1] != input.shape[-2]:
        raise Untranslated("of matrices that are not square")
    mask = on_diagonal(input.shape[-1])
    return call("ops.where", mask, call("ops.expand_dims", diagonal, -1), input)


def length(input, reduction_indices, keep_dims=False):
    squares = call("ops.square", input)
    return call("ops.sqrt", call("ops.sum", squares, axis=axes_of(reduction_indices, input.ndim), keepdims=keep_dims))


def unsorted_segments(op, data, segment_ids, num_segments, out):
    """Combine the rows of each segment; an empty one has the finite number that changes nothing."""
    rows: Expression = data
    if segment_ids.ndim != 1:
        rest = data.shape[segment_ids.ndim :]
        rows = call("ops.reshape", data, (-1, *rest))
        segment_ids = call("ops.reshape", segment_ids, -1)
    segments = call(f"ops.segment_{op}", rows, segment_ids, num_segments)
    if op in ("max", "min") and data.dtype in FLOATS:
        limit = float(np.finfo("float32" if data.dtype == "bfloat16" else data.dtype).max)
        limit = 3.3895313892515355e38 if data.dtype == "bfloat16" else limit
        is_empty = call("ops.equal", segments, -math.inf if op == "max" else math.inf)
        return call("ops.where", is_empty, -limit if op == "max" else limit, segments)
    return segments


def segments(op, data, segment_ids, out, num_segments=None):
    """Combine the rows of segments that are sorted; an empty one is 0, but a product 1."""
    count = out.shape[0] if num_segments is None else num_segments
    if op in ("mean", "sqrt"):
        total = call("ops.segment_sum", data, segment_ids, count)
        ones = call("ops.ones", (data.shape[0], *[1] * (data.ndim - 1)), dtype=DType(data.dtype))
        sizes_of = call("ops.maximum", call("ops.segment_sum", ones, segment_ids, count), 1)
        return Infix("/", total, sizes_of if op == "mean" else call("ops.sqrt", sizes_of))
    combined = call(f"ops.segment_{op}", data, segment_ids, count)
    if op in ("max", "min"):
        ones = call("ops.ones", (data.shape[0], *[1] * (data.ndim - 1)), dtype=DType("int32"))
        is_empty = call("ops.equal", call("ops.segment_sum", ones, segment_ids, count), 0)
        return call("ops.where", is_empty, 0, combined)
    return combined


def sparse_segments(op, data, indices, segment_ids, out, emit, num_segments=None, **_):
    """Combine the rows that indices pick."""
    picked = Value((*segment_ids.shape, *data.shape[1:]), data.dtype)
    (rows,) = emit(call("ops.take", data, indices, axis=0), picked)
    return segments(op, rows, segment_ids, out, num_segments)


# the rest


def bitcast(x, out):
    if x.shape != out.shape:
        raise Untranslated("to a dtype of another width")
    return call("ops.view", x, out.dtype)


def only_operand(x=None, input=None, tensor=None, **_):
    return next(operand for operand in (x, input, tensor) if operand is not None)


def sparse_cross_entropy(features, labels, out):
    picked = call("ops.take_along_axis", call("ops.log_softmax", features), Item(labels, (Ellipsis, None)), axis=-1)
    return call("ops.negative", call("ops.squeeze", picked, -1)), None


def cross_entropy(features, labels, out, emit):
    """TensorFlow's gradient is the softmax less the labels, whatever the labels add up to."""
    whole = call("ops.stop_gradient", call("ops.logsumexp", features, axis=-1, keepdims=True))
    (logs,) = emit(Infix("-", features, whole), Value(features.shape, features.dtype))
    picked = call("ops.sum", Infix("*", labels, logs), axis=-1)
    return Infix("-", call("ops.logsumexp", logs, axis=-1), picked), None


_UNARY = spellings(
    "Abs=abs Angle=angle BesselI0=i0 Acos=arccos Acosh=arccosh Asin=arcsin Asinh=arcsinh Atan=arctan Atanh=arctanh "
    "Ceil=ceil ComplexAbs=abs Conj=conj Cos=cos Cosh=cosh Digamma=digamma Elu=elu Erf=erf Erfc=erfc Erfinv=erfinv "
    "Exp=exp Expm1=expm1 Floor=floor Inv=reciprocal Invert=bitwise_not IsFinite=isfinite IsInf=isinf IsNan=isnan "
    "Imag=imag Lgamma=lgamma Log=log Log1p=log1p LogSoftmax=log_softmax LogicalNot=logical_not Neg=negative Real=real "
    "Reciprocal=reciprocal Relu=relu Relu6=relu6 Rint=round Round=round Rsqrt=rsqrt Selu=selu Sigmoid=sigmoid "
    "Sign=sign Sin=sin Sinh=sinh Softmax=softmax Softplus=softplus Softsign=softsign Sqrt=sqrt Square=square "
    "StopGradient=stop_gradient Tan=tan Tanh=tanh Cholesky=cholesky MatrixDeterminant=det LogMatrixDeterminant=slogdet "
    "InvertPermutation=argsort ZerosLike=zeros_like OnesLike=ones_like"
)

# what a `GradientTape` inside of a model leaves; `y` is the result whose derivative it is, `dy` its upstream gradient


def relu6_gradient(gradients, features):
    is_inside = call("ops.logical_and", call("ops.greater", features, 0), call("ops.less", features, 6))
    return call("ops.where", is_inside, gradients, 0)


def selu_gradient(gradients, outputs):
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    below = Infix("*", gradients, Infix("+", outputs, scale * alpha))
    return call("ops.where", call("ops.less", outputs, 0), below, Infix("*", gradients, scale))


def elu_gradient(gradients, outputs):
    slope = Infix("*", gradients, Infix("+", outputs, 1))
    return call("ops.where", call("ops.less", outputs, 0), slope, gradients)


def slice_gradient(shape, begin, end, strides, dy, **masks):
    """Put the upstream gradient where the slice came from, and zeros elsewhere."""
    whole = Value(tuple(shape), dy.dtype)
    if any(isinstance(start, _COMPUTED) for start in begin):
        names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        is_plain = not masks.get("ellipsis_mask") and not masks.get("new_axis_mask") and set(masks) <= set(names)
        shrunk = masks.get("shrink_axis_mask", 0)
        if not is_plain or any(isinstance(start, _COMPUTED) > (shrunk >> i & 1) for i, start in enumerate(begin)):
            raise Untranslated("the gradient of a slice that begins at a value")
        at = tuple(
            start
            if shrunk >> i & 1
            else slice(*(None if masks.get(mask, 0) >> i & 1 else bound for mask, bound in pair))
            for i, (start, stop) in enumerate(zip(begin, end, strict=True))
            for pair in [(("begin_mask", start), ("end_mask", stop))]
        )
        return call("ops.set_item", call("ops.zeros", whole.shape, dtype=DType(dy.dtype)), at, dy)
    places = strided_slice(whole, begin, end, strides, **masks)
    if places is whole:
        return dy
    if is_call(places, "ops.flip"):
        return Call(places.function, (dy, *places.args[1:]), places.kwargs)
    key = places.key if isinstance(places, Item) else places.args[1]
    return call("ops.set_item", call("ops.zeros", whole.shape, dtype=DType(dy.dtype)), key, dy)


def bias_gradient(x, data_format="NHWC"):
    axis = 1 if data_format.startswith("NC") else x.ndim - 1
    return call("ops.sum", x, axis=tuple(dim for dim in range(x.ndim) if dim != axis))


def fourier(count, inverse, x):
    """Transform the last `count` axes of complex numbers."""
    axes = tuple(range(x.ndim - count, x.ndim))
    return call("fourier", x, axes, inverse=True, power=1.0) if inverse else call("fourier", x, axes)


def real_fourier(count, input, fft_length):
    """Transform as many entries of the last `count` axes of real numbers as `fft_length` says."""
    axes = tuple(range(input.ndim - count, input.ndim))
    return call("real_fourier", first_entries(input, fft_length), axes)


def inverse_real_fourier(count, input, fft_length):
    """Transform back to as many real numbers as `fft_length` says."""
    if isinstance(fft_length[-1], Dim):
        raise Untranslated(f"back to the open size {size_text(fft_length[-1])}")
    x = first_entries(input, [*fft_length[:-1], fft_length[-1] // 2 + 1])
    return call("inverse_real_fourier", x, tuple(range(input.ndim - count, input.ndim)), fft_length[-1])


def first_entries(x, counts):
    """Return the first entries of the last axes, as many as each is to have; TensorFlow has padded what was shorter."""
    if tuple(counts) == tuple(x.shape[x.ndim - len(counts) :]):
        return x
    if any(isinstance(count, Dim) for count in counts):
        raise Untranslated("of another open number of entries")
    return Item(x, (..., *[slice(count) for count in counts]))


_BINARY = (
    "DivNoNan=divide_no_nan FloorDiv=floor_divide FloorMod=mod TruncateMod=fmod LeftShift=left_shift "
    "RightShift=right_shift LogicalAnd=logical_and LogicalOr=logical_or BitwiseAnd=bitwise_and BitwiseOr=bitwise_or "
    "BitwiseXor=bitwise_xor Equal=equal NotEqual=not_equal Less=less LessEqual=less_equal Greater=greater "
    "GreaterEqual=greater_equal"
)
_NAMED = (
    "Bitcast=bitcast TruncateDiv=divide_and_truncate Pow=power BiasAdd=bias_add MatMul=matmul "
    "CumulativeLogsumexp=cumulative_logsumexp EuclideanNorm=length Squeeze=squeeze Transpose=transpose "
    "Unpack=unpack ConcatV2=concatenate StridedSlice=strided_slice Slice=cut XlaDynamicUpdateSlice=update_block "
    "Tile=tile BroadcastTo=broadcast MirrorPad=mirror_pad ReverseV2=flip SpaceToBatchND=to_batch "
    "BatchToSpaceND=from_batch MatrixBandPart=band MatrixInverse=inverse MatrixSolve=solve "
    "MatrixTriangularSolve=solve_triangular Svd=svd SelfAdjointEigV2=eigh MatrixDiagV3=diagonal_matrix "
    "MatrixDiagPartV3=main_diagonal MatrixSetDiagV3=with_diagonal Relu6Grad=relu6_gradient EluGrad=elu_gradient "
    "SeluGrad=selu_gradient StridedSliceGrad=slice_gradient BiasAddGrad=bias_gradient "
    "FusedBatchNormV3=fused_batch_norm ResizeNearestNeighbor=resize_nearest ScaleAndTranslate=scale_and_translate "
    "CropAndResize=crop_and_resize ExtractImagePatches=patches "
    "SparseSoftmaxCrossEntropyWithLogits=sparse_cross_entropy SoftmaxCrossEntropyWithLogits=cross_entropy "
    "GatherV2=gather GatherNd=gather_nd SelectV2=where Select=where_rows OneHot=one_hot "
    "ReverseSequence=reverse_sequence Bincount=counts_of_all DenseBincount=counts HistogramFixedWidth=histogram "
    "Bucketize=bucketize Range=arange"
)
ROWS: dict[str, Row] = {
    **{name: globals()[row] for name, row in spellings(_NAMED).items()},
    # entry by entry
    **{name: unary(op) for name, op in _UNARY.items()},
    "LeakyRelu": lambda x, alpha=0.2: call("ops.leaky_relu", x, negative_slope=alpha),
    "ClipByValue": lambda t, clip_value_min, clip_value_max: call("ops.clip", t, clip_value_min, clip_value_max),
    "Cast": lambda x, out: cast(x, out.dtype),
    **dict.fromkeys(("Identity", "Snapshot", "EnsureShape", "CheckNumerics"), only_operand),
    # arithmetic
    **dict.fromkeys(("Add", "AddV2"), partial(infix, "+", "add")),
    "Sub": partial(infix, "-", "subtract"),
    "Mul": partial(infix, "*", "multiply"),
    **dict.fromkeys(("RealDiv", "Div"), partial(infix, "/", "divide")),
    **{name: binary(op) for name, op in spellings(_BINARY).items()},
    "SquaredDifference": lambda x, y: call("ops.square", Infix("-", x, y)),
    **{op.title(): partial(extremum, op) for op in ("maximum", "minimum")},
    "Atan2": lambda y, x: call("ops.arctan2", y, x),
    "Xlogy": partial(unless_zero, lambda x, y: Infix("*", x, call("ops.log", y))),
    "Xlog1py": partial(unless_zero, lambda x, y: Infix("*", x, call("ops.log1p", y))),
    "Xdivy": partial(unless_zero, lambda x, y: Infix("/", x, y)),
    "Polygamma": polygamma,
    "Igamma": lambda a, x: call("ops.gammainc", a, x),
    "Igammac": lambda a, x: call("ops.gammaincc", a, x),
    "Complex": lambda real, imag: call("ops.view_as_complex", call("ops.stack", [real, imag], axis=-1)),
    "AddN": lambda inputs: functools.reduce(partial(Infix, "+"), inputs),
    # products
    **{f"BatchMatMul{version}": batch_matmul for version in ("", "V2", "V3")},
    "Einsum": lambda inputs, equation: call("ops.einsum", equation.replace(" ", ""), *inputs),
    # reductions
    **{name: partial(reduction, name.lower()) for name in ("Sum", "Mean", "Prod", "Max", "Min", "Any", "All")},
    "ArgMax": lambda input, dimension: call("ops.argmax", input, axis=dimension),
    "ArgMin": lambda input, dimension: call("ops.argmin", input, axis=dimension),
    **{op.title(): partial(cumulative, op) for op in ("cumsum", "cumprod")},
    "L2Loss": lambda x: Infix("/", call("ops.sum", call("ops.square", x)), 2),
    # shapes
    "Reshape": lambda tensor, shape, out: write_reshape(tensor, out),
    "ExpandDims": lambda input, dim: call("ops.expand_dims", input, dim),
    "Pack": lambda values, axis=0: call("ops.stack", list(values), axis=axis),
    **dict.fromkeys(("Split", "SplitV"), split_at),
    **dict.fromkeys(("Pad", "PadV2"), pad),
    "Roll": lambda input, shift, axis: call("ops.roll", input, shift, axis=axis),
    "DepthToSpace": lambda x, block_size, data_format="NHWC": call("ops.depth_to_space", x, block_size),
    "SpaceToDepth": lambda x, block_size, data_format="NHWC": call("ops.space_to_depth", x, block_size),
    # matrices
    "Qr": lambda input, full_matrices=False: call("ops.qr", input, mode="complete" if full_matrices else "reduced"),
    "Cross": lambda a, b: call("ops.cross", a, b),
    # gradients
    "TanhGrad": lambda y, dy: Infix("*", dy, Infix("-", 1, call("ops.square", y))),
    "SigmoidGrad": lambda y, dy: Infix("*", dy, Infix("*", y, Infix("-", 1, y))),
    "SqrtGrad": lambda y, dy: Infix("/", Infix("*", dy, 0.5), y),
    "RsqrtGrad": lambda y, dy: Infix("*", dy, Infix("*", -0.5, call("ops.power", y, 3))),
    **dict.fromkeys(
        ("InvGrad", "ReciprocalGrad"), lambda y, dy: Infix("*", dy, call("ops.negative", call("ops.square", y)))
    ),
    "ReluGrad": lambda gradients, features: call("ops.where", call("ops.greater", features, 0), gradients, 0),
    "LeakyReluGrad": lambda gradients, features, alpha=0.2: call(
        "ops.where", call("ops.greater", features, 0), gradients, Infix("*", gradients, alpha)
    ),
    "SoftplusGrad": lambda gradients, features: Infix("*", gradients, call("ops.sigmoid", features)),
    "SoftsignGrad": lambda gradients, features: Infix(
        "/", gradients, call("ops.square", Infix("+", 1, call("ops.abs", features)))
    ),
    # Fourier transforms
    **{f"FFT{name}": partial(fourier, count, False) for name, count in (("", 1), ("2D", 2), ("3D", 3))},
    **{f"IFFT{name}": partial(fourier, count, True) for name, count in (("", 1), ("2D", 2), ("3D", 3))},
    **{f"RFFT{name}": partial(real_fourier, count) for name, count in (("", 1), ("2D", 2), ("3D", 3))},
    **{f"IRFFT{name}": partial(inverse_real_fourier, count) for name, count in (("", 1), ("2D", 2), ("3D", 3))},
    # layers
    **dict.fromkeys(("Conv2D", "Conv3D"), partial(conv_of, "convolution")),
    "DepthwiseConv2dNative": partial(conv_of, "depthwise_convolution"),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), conv_transpose),
    **{name: partial(pool, "max_pool") for name in ("MaxPool", "MaxPool3D")},
    **{name: partial(pool, "average_pool") for name in ("AvgPool", "AvgPool3D")},
    # images
    **{f"Resize{kind.title()}": partial(resize, kind) for kind in ("bilinear", "bicubic", "area")},
    "RGBToHSV": lambda x: call("rgb_to_hsv", x),
    "HSVToRGB": lambda x: call("hsv_to_rgb", x),
    "AdjustContrastv2": lambda images, contrast_factor: call("adjust_contrast", images, contrast_factor),
    "AdjustHue": lambda images, delta: call("adjust_hue", images, delta),
    "AdjustSaturation": lambda images, scale: call("adjust_saturation", images, scale),
    # indices and masks
    "ResourceGather": lambda resource, indices, batch_dims=0: gather(resource, indices, 0, batch_dims),
    "TensorListGetItem": lambda input_handle, index, element_shape=None: call("ops.take", input_handle, index, axis=0),
    "TopKV2": lambda input, k, sorted=True: call("ops.top_k", input, k),
    "ScatterNd": lambda indices, updates, shape: call("ops.scatter", indices, updates, tuple(shape)),
    "TensorScatterSub": lambda tensor, indices, updates: call(
        "ops.scatter_update", tensor, indices, call("ops.negative", updates), reduction="add"
    ),
    # counting and segments
    **{f"UnsortedSegment{op.title()}": partial(unsorted_segments, op) for op in ("sum", "prod", "max", "min")},
    **{f"Segment{op.title()}": partial(segments, op) for op in ("sum", "mean", "prod", "max", "min")},
    **{f"Segment{op.title()}V2": partial(segments, op) for op in ("sum", "prod", "max", "min")},
    **{
        f"SparseSegment{name}{more}": partial(sparse_segments, op)
        for name, op in (("Sum", "sum"), ("Mean", "mean"), ("SqrtN", "sqrt"))
        for more in ("", "WithNumSegments")
    },
    **{op: update_row(*what) for op, what in UPDATES.items()},
    "TensorScatterUpdate": scatter_row(None),
    **{f"TensorScatter{name.title()}": scatter_row(name) for name in ("add", "max", "min")},
    **{f"{name}Bound": partial(bounds, side) for name, side in (("Lower", "left"), ("Upper", "right"))},
    "InTopKV2": lambda predictions, targets, k: call("ops.in_top_k", targets, predictions, k),
    # creation
    "Fill": lambda dims, value, out: full(out.shape, value, out.dtype),
}
