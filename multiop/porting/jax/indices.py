"""JAX's gathers, scatters and slices at places that are computed, with its rules for indices that are out of range.

A gather clips such an index or fills in a number, a scatter clips it or drops the update, a slice is moved back into
the tensor. The ops of multiop raise instead, so an index that may be out of range is clipped, and what does not count
is replaced, in the source.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from multiop.porting._graph import Call, Dim, DType, Expression, Infix, Item, Name, Value, call, is_call
from multiop.porting._rows import Untranslated, add_sizes, block_replaced, is_number, part, sizes

_LIMITS = {name: np.iinfo(name) for name in ("int8", "uint8", "int16", "uint16", "uint32", "uint64")}
_RESHAPING = {"reshape", "expand_dims", "squeeze", "broadcast_to", "transpose", "swapaxes", "moveaxis", "flip"}
_RESHAPING |= {"repeat", "tile", "stop_gradient"}
_UPDATES = {"set": "set_item", "add": "add_at", "mul": "multiply_at", "max": "maximum_at", "min": "minimum_at"}


def integers(numbers):
    """Return dimensions as ints, which NumPy's may be."""
    return tuple(map(int, numbers))


def reorder_axes(x, order):
    """Return a tensor with its dimensions in another order."""
    return x if list(order) == list(range(len(order))) else call("ops.transpose", x, tuple(order))


def expand_axes(x, axes, ndim):
    """Return a tensor with dimensions of size 1 at some axes of the result, which has `ndim`."""
    axis: Any = tuple(axes) if len(axes) > 1 else axes[0] if axes and axes[0] < ndim - 1 else -1
    return call("ops.expand_dims", x, axis) if axes else x


# sizes, and the ranges of indices


def difference(size, count):
    """Return a size less another one."""
    if not isinstance(size, Dim) and not isinstance(count, Dim):
        return size - count
    if size == count:
        return 0
    if isinstance(count, int) and count == 0:
        return size
    parts = [each for each in (size, count) if isinstance(each, Dim)]
    symbols = tuple(sorted({symbol for each in parts for symbol in each.symbols}))
    taken = f"({count.text})" if isinstance(count, Dim) else str(count)
    return Dim(f"{size.text if isinstance(size, Dim) else size} - {taken}", symbols)


def negate_size(size):
    if not isinstance(size, Dim):
        return -size
    return Dim(f"-{size.text}" if size.text.isidentifier() else f"-({size.text})", size.symbols)


def span(x, made):
    """Return the smallest and the largest entry that a tensor of integers may have, where these are known."""
    if isinstance(x, (int, list, np.ndarray)) and not isinstance(x, bool):
        array = np.asarray(x)
        return (int(array.min()), int(array.max())) if array.size and array.dtype.kind in "iu" else None
    dtype = x.dtype if isinstance(x, Value) else ""
    limits = (0, 1) if dtype == "bool" else (_LIMITS[dtype].min, _LIMITS[dtype].max) if dtype in _LIMITS else None
    expression = made(x)
    if isinstance(expression, Item):
        return span(expression.x, made) or limits
    if isinstance(expression, Infix) and expression.operator in "+-" and type(expression.right) is int:
        inner, step = span(expression.left, made), expression.right * (1 if expression.operator == "+" else -1)
        is_known = inner is not None and all(isinstance(bound, int) for bound in inner)
        return (inner[0] + step, inner[1] + step) if is_known and inner else limits
    if not isinstance(expression, Call):
        return limits
    function, args, options = expression.function.removeprefix("ops."), expression.args, dict(expression.kwargs)
    if function == "arange" and len(args) == 1 and not isinstance(args[0], float):
        return 0, difference(args[0], 1)
    if function in ("argmax", "argmin", "argsort") and isinstance(args[0], Value):
        axis = options.get("axis", -1 if function == "argsort" else None)
        count = args[0].shape if axis is None else [args[0].shape[axis]]
        return (0, difference(count[0] if len(count) == 1 else math.prod(count), 1)) if _is_known(count) else limits
    if function == "clip" and all(type(bound) is int for bound in args[1:3]) and args[1] <= args[2]:
        return args[1], args[2]
    if function == "mod" and type(args[1]) is int and args[1] > 0:
        return 0, args[1] - 1
    is_cast = function == "cast" and getattr(args[0], "dtype", "float")[:3] in ("int", "uin", "boo")
    if function in _RESHAPING or is_cast or function == "convert_to_tensor":
        return span(args[0], made) or limits
    if function in ("zeros", "ones", "full"):
        return span({"zeros": 0, "ones": 1}.get(function, args[-1]), made) or limits
    if function in ("concatenate", "stack", "where"):
        spans = [span(each, made) for each in (args[1:] if function == "where" else args[0])]
        known = [each for each in spans if each is not None and all(isinstance(bound, int) for bound in each)]
        return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(spans) else limits
    return limits


def _is_known(shape):
    return len(shape) == 1 or not any(isinstance(size, Dim) for size in shape)


def is_inside(index, low, top, made):
    """Say whether all entries of an index are known to be from `low` to `top`."""
    bounds = span(index, made)
    if bounds is None or isinstance(bounds[0], Dim):
        return False
    is_low = bounds[0] >= 0 or (isinstance(low, int) and bounds[0] >= low)
    is_high = bounds[1] == top or (isinstance(bounds[1], int) and isinstance(top, int) and bounds[1] <= top)
    return is_low and is_high


def clip_index(index, low, top):
    limits = _LIMITS.get(getattr(index, "dtype", ""))
    if limits is not None:  # a bound must fit in the dtype of the index
        low = max(low, int(limits.min)) if isinstance(low, int) else 0 if limits.min == 0 else low
        top = min(top, int(limits.max)) if isinstance(top, int) else top
    return call("ops.clip", index, low, top)


def drop_wrap(index, size, made):
    """Return an index without the step that lets it count from the end, which multiop's ops do by themselves."""
    expression = made(index)
    if is_call(expression, "ops.cast") and isinstance(expression.args[0], Value):
        inner = drop_wrap(expression.args[0], size, made)
        return index if inner is expression.args[0] else inner
    if is_call(expression, "ops.where") and len(expression.args) == 3:
        condition, shifted, plain = expression.args
        condition, shifted = made(condition), made(shifted)
        is_negative = is_call(condition, "ops.less") and condition.args[1:] == (0,)
        if is_negative and condition.args[0] is plain:
            if isinstance(shifted, Infix) and shifted.operator == "+":
                first, step = shifted.left, shifted.right
            elif is_call(shifted, "ops.add"):
                first, step = shifted.args
            else:
                return index
            step = made(step)
            step = step.args[0] if is_call(step, "ops.cast") else step
            if first is plain and step == size:
                return plain  # type: ignore[no-any-return]
    return index


class Place:
    """Where a gather or a scatter picks from one dimension: an index that is in range, and where it was so."""

    def __init__(self, index, size, count, made, wraps=True):
        """Take an index of JAX, the size of the dimension, and how many entries there are from the index on."""
        self.plain = drop_wrap(index, size, made) if count == 1 and wraps else index
        self.is_unsigned = getattr(self.plain, "dtype", "").startswith("uint")
        counts = self.plain is not index and not self.is_unsigned
        self.low, self.top = negate_size(size) if counts else 0, difference(size, count)
        self.is_safe = is_inside(self.plain, self.low, self.top, made)
        self.end = difference(size, difference(count, 1))  # the first index that is too large
        self.size = size

    @property
    def index(self):
        """The index, clipped; negative ones may count from the end."""
        if self.is_safe:
            return self.plain
        if not isinstance(self.plain, (int, list)) or isinstance(self.top, Dim):
            return clip_index(self.plain, self.low, self.top)
        return np.clip(np.asarray(self.plain), self.low, self.top).tolist()  # type: ignore[no-any-return]

    @property
    def inside(self):
        """Which indices are in range."""
        return call("in_range", self.plain, self.low, self.end)

    @property
    def counted(self):
        """The index, for a function that lets negative ones count from the end whether JAX does so or not."""
        if self.is_unsigned:
            return call("ops.cast", clip_index(self.plain, 0, self.size), DType("int32"))
        if self.is_safe or isinstance(self.low, Dim) or self.low < 0:
            return self.plain
        return call("ops.where", call("ops.less", self.plain, 0), self.size, self.plain)


def all_inside(places):
    """Return where all of some indices are in range; `None` if that is known."""
    unsafe = [place.inside for place in places if not place.is_safe]
    inside = unsafe[0] if unsafe else None
    for other in unsafe[1:]:
        inside = call("ops.logical_and", inside, other)
    return inside


# slices


def bound_start(start, size, count, made):
    """Return where a slice begins, moved back so that it fits."""
    top = difference(size, count)
    if size == count or (is_number(start) and start <= 0):
        return 0
    if is_number(start) and isinstance(top, int):
        return min(int(start), top)
    return start if is_inside(start, 0, top, made) else clip_index(start, 0, top)


def dynamic_slice(x, *starts, slice_sizes, out, made):
    """Cut a block; JAX moves one that would reach over the end back into the tensor."""
    key, moving = [], []
    for axis, (start, count) in enumerate(zip(starts, slice_sizes, strict=True)):
        size = x.shape[axis]
        place = bound_start(start, size, count, made)
        if count == size:
            key.append(slice(None))
        elif isinstance(place, int) and isinstance(count, int):
            key.append(slice(place, place + count))
        elif type(start) is int and count == 1:  # an open dimension; one that is shorter raises
            key.append(slice(start, start + 1))
        elif isinstance(start, Dim) and count == 1 and start.text == f"{getattr(size, 'text', size)} - 1":
            key.append(slice(-1, None))
        else:
            key.append(None)
            moving.append(axis)
    if not moving:
        return part(x, key)
    if (len(moving) == len(key) and len(key) > 1) or any(
        isinstance(x.shape[axis], Dim) and slice_sizes[axis] != 1 for axis in moving
    ):
        places = [bound_start(*each, made) for each in zip(starts, x.shape, slice_sizes, strict=True)]
        return call("ops.slice", x, call("ops.stack", places), out.shape)
    y: Expression = part(x, [slice(None) if part is None else part for part in key])
    for axis in moving:
        count = slice_sizes[axis]
        if count == 1:
            index = call("ops.expand_dims", Place(starts[axis], x.shape[axis], 1, made).index, 0)
        else:
            dtype = DType(getattr(starts[axis], "dtype", "int32"))
            index = call(
                "ops.add", bound_start(starts[axis], x.shape[axis], count, made), call("ops.arange", count, dtype=dtype)
            )
        y = call("ops.take", y, index, axis=axis)
    return y


def dynamic_update(x, update, *starts, made):
    places = [bound_start(*each, made) for each in zip(starts, x.shape, update.shape, strict=True)]
    return block_replaced(x, places, update)


# gathers and scatters


def index_columns(indices, count, made):
    """Return what stands in each column of a tensor of index vectors, whose last dimension is removed."""
    if isinstance(indices, np.ndarray):
        return [indices[..., i].tolist() for i in range(count)]
    expression = made(indices)
    if is_call(expression, "ops.expand_dims") and count == 1:
        inner, axis = expression.args
        if isinstance(inner, Value) and (axis == -1 or axis == inner.ndim):
            return [inner]
    if is_call(expression, "ops.concatenate") and len(expression.args[0]) == count:
        return [index_columns(arg, 1, made)[0] for arg in expression.args[0]]
    if is_call(expression, "ops.zeros", "ops.ones") and count == 1:
        return [int(expression.function == "ops.ones")]
    if is_call(expression, "ops.full") and count == 1:
        return [expression.args[1]]
    if count == 1:
        return [call("ops.squeeze", indices, axis=-1)]
    return [Item(indices, (Ellipsis, i)) for i in range(count)]


def _columns(indices, count, made, emit):
    """Return the columns of index vectors as tensors, and as what is known of them."""
    columns = []
    for column in index_columns(indices, count, made):
        if isinstance(column, (Call, Item)):
            (column,) = emit(column, Value(tuple(indices.shape[:-1]), indices.dtype))
        columns.append(column)
    return columns


def _fill(mode, fill_value, dtype):
    """Return what a gather puts in for what is out of range.

    That is `Ellipsis` for the nearest entry, and `None` for it without a gradient: so JAX takes an index that is
    promised to be in range.
    """
    if mode.name in ("CLIP", "PROMISE_IN_BOUNDS"):
        has_gradient = dtype.startswith(("float", "bfloat", "complex"))
        return None if mode.name == "PROMISE_IN_BOUNDS" and has_gradient else ...
    if fill_value is not None:
        return fill_value.item() if hasattr(fill_value, "item") else fill_value
    if dtype == "bool":
        return True
    if dtype.startswith("uint"):
        return int(np.iinfo(dtype).max)
    return int(np.iinfo(dtype).min) if dtype.startswith("int") else math.nan


def gather(x, indices, dimension_numbers, slice_sizes, mode, fill_value, out, made, emit):
    """Write what `take`, `take_along_axis` and `x[...]` make of a gather."""
    numbers = dimension_numbers
    lone = lone_axes(x, indices, numbers, slice_sizes)
    if lone:  # a dimension of size 1 that stays is put back at the end
        rest = [axis for axis in range(x.ndim) if axis not in numbers.collapsed_slice_dims]
        rest = [axis for axis in rest if axis not in numbers.operand_batching_dims]
        places = [place for axis, place in zip(rest, integers(numbers.offset_dims), strict=True) if axis in lone]
        kept = [place for place in range(out.ndim) if place not in places]
        changed = type(numbers)(
            offset_dims=tuple(kept.index(place) for place in integers(numbers.offset_dims) if place not in places),
            collapsed_slice_dims=tuple(sorted((*integers(numbers.collapsed_slice_dims), *lone))),
            start_index_map=numbers.start_index_map,
            operand_batching_dims=numbers.operand_batching_dims,
            start_indices_batching_dims=numbers.start_indices_batching_dims,
        )
        inner = Value(tuple(out.shape[place] for place in kept), out.dtype)
        gathered = gather(x, indices, changed, slice_sizes, mode, fill_value, inner, made, emit)
        return expand_axes(gathered, places, out.ndim)
    picked, collapsed = integers(numbers.start_index_map), integers(numbers.collapsed_slice_dims)
    index_shape = tuple(indices.shape[:-1])
    fill = _fill(mode, fill_value, out.dtype)
    fill = ... if fill is None and not index_shape else fill  # with sizes that are known it is a slice
    starts = _known_place(x, indices, picked)
    if starts is not None:
        return constant_slices(x, starts, collapsed, slice_sizes, index_shape, fill, out)
    columns = _columns(indices, len(picked), made, emit)
    pairs = [
        (axis, pair)
        for axis, pair in zip(picked, columns, strict=True)
        if not (pair == 0 and slice_sizes[axis] == x.shape[axis] != 1)
    ]
    places = {axis: Place(column, x.shape[axis], slice_sizes[axis], made) for axis, column in pairs}
    inside = None if fill is ... else all_inside(list(places.values()))
    offsets = integers(numbers.offset_dims)
    gathered = _as_one_gather(x, places, numbers, slice_sizes, index_shape, ... if inside is None else fill, out)
    if gathered is None:
        whole = {axis: Place(column, x.shape[axis], slice_sizes[axis], made, False) for axis, column in pairs}
        gathered = _entries(x, {axis: place.index for axis, place in whole.items()}, numbers, slice_sizes, index_shape)
    if inside is None or (is_call(gathered, "take_or_fill")):
        return gathered
    inside = expand_axes(inside, offsets, out.ndim)
    if fill is None:
        (gathered,) = emit(gathered, Value(out.shape, out.dtype))
        fill = call("ops.stop_gradient", gathered)
    return call("ops.where", inside, gathered, fill)


def _as_one_gather(x, places, numbers, slice_sizes, index_shape, fill, out):
    """Return a gather as one op; `None` for a form that no op has."""
    batch, collapsed = integers(numbers.operand_batching_dims), integers(numbers.collapsed_slice_dims)
    picked, offsets = tuple(places), integers(numbers.offset_dims)
    key: list[Any] = [slice(None)] * x.ndim
    if batch and not collapsed and len(picked) == 1 and slice_sizes[picked[0]] == 1:
        (axis,) = picked
        is_plain = batch == integers(numbers.start_indices_batching_dims) == tuple(range(len(batch)))
        if is_plain and len(index_shape) == len(batch) and out.ndim == x.ndim:
            index = call("ops.expand_dims", places[axis].index, tuple(range(len(batch), x.ndim)))
            return call("ops.take_along_axis", x, index, axis=axis if axis < x.ndim - 1 else -1)
    for axis, place in places.items():
        if axis not in collapsed:
            start, count = place.index, slice_sizes[axis]
            if type(start) is not int or not isinstance(count, int):
                return None
            key[axis] = slice(start or None, start + count if start + count != x.shape[axis] else None)
    whole = [axis for axis in range(x.ndim) if axis not in collapsed and axis not in (*batch, *picked)]
    if any(slice_sizes[axis] != x.shape[axis] for axis in whole) or set(collapsed) - set(picked):
        return None
    picked = tuple(axis for axis in picked if axis in collapsed)
    source = part(x, key)
    if batch:
        return _along(source, x, places, picked, numbers, index_shape, whole)
    where = out.ndim - len(offsets)
    if len(picked) == 1:
        (axis,) = picked
        ndim = len(index_shape)
        if offsets == tuple(i for i in range(out.ndim) if not axis <= i < axis + ndim):
            last = axis if axis < x.ndim - 1 or x.ndim == 1 else -1
            is_alone = source is x and (fill is not None or places[axis].low != 0 or places[axis].is_unsigned)
            if fill is not ... and is_alone and all(place.is_safe for a, place in places.items() if a != axis):
                options = {} if isinstance(fill, float) and math.isnan(fill) else {"fill": fill}
                return call("take_or_fill", x, places[axis].counted, axis=axis, **options)
            return call("ops.take", source, places[axis].index, axis=last)
    if offsets != tuple(range(where, out.ndim)) or picked != tuple(range(len(picked))):
        is_together = bool(picked) and picked == tuple(range(picked[0], picked[0] + len(picked)))
        if not is_together:
            return None
        expected = tuple(i for i in range(out.ndim) if not picked[0] <= i < picked[0] + len(index_shape))
        if offsets != expected:
            return None
    if not picked:
        return None
    at = (*[slice(None)] * picked[0], *[places[axis].index for axis in picked])
    return call("ops.get_item", source, at if len(at) > 1 else at[0])


def lone_axes(x, indices, numbers, slice_sizes):
    """Return the dimensions in which a gather picks one entry and keeps the dimension."""
    if isinstance(indices, np.ndarray) or numbers.operand_batching_dims:
        return []
    picked = [axis for axis in integers(numbers.start_index_map) if axis not in numbers.collapsed_slice_dims]
    return [axis for axis in picked if slice_sizes[axis] == 1 != x.shape[axis]]


def _along(source, x, places, picked, numbers, index_shape, whole):
    """Write a gather with batch dimensions as `take_along_axis`."""
    batch, of_index = integers(numbers.operand_batching_dims), integers(numbers.start_indices_batching_dims)
    if len(picked) != 1 or whole or sorted((*batch, picked[0])) != list(range(x.ndim)):
        return None
    (axis,) = picked
    index = places[axis].index
    if len(index_shape) == x.ndim and of_index == batch:
        return call("ops.take_along_axis", source, index, axis=axis if axis < x.ndim - 1 else -1)
    if len(index_shape) == x.ndim - 1 and of_index == tuple(range(len(batch))) and batch == tuple(sorted(batch)):
        index = call("ops.expand_dims", index, axis)
        return call("ops.squeeze", call("ops.take_along_axis", source, index, axis=axis), axis=axis)
    return None


def _known_place(x, indices, picked):
    """Return the only place that is picked from, if it is known whether it is in range."""
    if not isinstance(indices, np.ndarray) or indices.size != len(picked):
        return None
    at = dict(zip(picked, [int(index) for index in indices.ravel()], strict=True))
    return at if all(start <= 0 or isinstance(x.shape[axis], int) for axis, start in at.items()) else None


def bound_places(x, at, counts):
    """Return where a known block begins, moved back so that it fits, and whether it was out of range."""
    tops = {axis: difference(x.shape[axis], counts.get(axis, 1)) for axis in at}
    known = {axis: top for axis, top in tops.items() if isinstance(top, int)}
    bounded = {axis: min(max(start, 0), known.get(axis, start)) for axis, start in at.items()}
    return bounded, bounded != at


def constant_slices(x, at, collapsed, slice_sizes, index_shape, fill, out):
    """Write a gather at one place that is known as `x[...]`."""
    at, is_outside = bound_places(x, at, dict(enumerate(slice_sizes)))
    if fill not in (None, ...) and is_outside:
        return call("ops.full", out.shape, fill, dtype=DType(out.dtype))
    key: list[Any] = []
    for axis, size in enumerate(x.shape):
        start, count = at.get(axis, 0), slice_sizes[axis]
        if axis in collapsed:
            key.append(start)
        elif count == size:
            key.append(slice(None))
        else:
            is_rest = isinstance(count, Dim) and isinstance(size, Dim) and count.text == f"{size.text} - {start}"
            stop = add_sizes(count, start)
            key.append(slice(start or None, None if is_rest or stop == size else stop))
    cut_out = part(x, key)
    return cut_out if not index_shape else call("ops.reshape", cut_out, sizes(out.shape))


class _Axes:
    """The dimensions of a tensor that a gather picks from: those with an index come first, those that are whole last."""

    def __init__(self, shape, counts, starts):
        """Take a shape, how many entries of each dimension that stays are picked, and where these begin."""
        self.windows = list(counts)
        self.moved = [axis for axis in counts if axis in starts or counts[axis] != shape[axis]]
        self.whole = [axis for axis in counts if axis not in self.moved]
        self.order = [*[axis for axis in range(len(shape)) if axis not in self.whole], *self.whole]
        self.indexed = self.order[: len(shape) - len(self.whole)]

    def keys(self, starts, batches, index_shape, counts):
        """Return an index for each dimension that is not whole; together they broadcast to what is picked."""
        ndim, more = len(index_shape), len(self.moved)
        keys: list[Expression] = []
        for axis in self.indexed:
            if axis in batches:
                line = call("ops.arange", index_shape[batches[axis]], dtype=DType("int32"))
                keys.append(expand_axes(line, range(1, ndim - batches[axis] + more), 2))
                continue
            index = starts.get(axis, 0)
            if more and not isinstance(index, int) and ndim:
                index = expand_axes(index, range(ndim, ndim + more), ndim + more)
            if axis in self.moved and counts[axis] != 1:
                line = call("ops.arange", counts[axis], dtype=DType("int32"))
                behind = more - 1 - self.moved.index(axis)
                line = expand_axes(line, range(1, 1 + behind), 1 + behind)
                index = line if isinstance(index, int) and index == 0 else call("ops.add", index, line)
            keys.append(index)
        return keys

    def places(self, offsets, ndim):
        """Return where each dimension of what is picked stands in the result: the index's, then the moved, the whole."""
        of_window = dict(zip(self.windows, offsets, strict=True))
        front = [axis for axis in range(ndim) if axis not in offsets]
        return [*front, *[of_window[axis] for axis in (*self.moved, *self.whole)]]


def _entries(x, starts, numbers, slice_sizes, index_shape):
    """Write a gather of any form, by the index of each entry."""
    batch, offsets = integers(numbers.operand_batching_dims), integers(numbers.offset_dims)
    removed = {*integers(numbers.collapsed_slice_dims), *batch}
    counts = {axis: slice_sizes[axis] for axis in range(x.ndim) if axis not in removed}
    batches = dict(zip(batch, integers(numbers.start_indices_batching_dims), strict=True))
    axes = _Axes(x.shape, counts, starts)
    keys = axes.keys(starts, batches, index_shape, counts)
    if not keys or all(isinstance(key, int) for key in keys):
        raise Untranslated("a gather of this form")
    y = call("ops.get_item", reorder_axes(x, axes.order), tuple(keys) if len(keys) > 1 else keys[0])
    places = axes.places(offsets, len(index_shape) + len(offsets))
    return reorder_axes(y, np.argsort(places).tolist())


def scatter(kind, x, indices, updates, dimension_numbers, mode, out, made, emit):
    """Write what `x.at[...].set(...)` and `.add(...)` make of a scatter."""
    numbers = dimension_numbers
    op = f"ops.{_UPDATES[kind]}"
    is_clipped = getattr(mode, "name", "") == "CLIP"
    picked, inserted = integers(numbers.scatter_dims_to_operand_dims), integers(numbers.inserted_window_dims)
    window, batch = integers(numbers.update_window_dims), integers(numbers.operand_batching_dims)
    axes = [axis for axis in range(x.ndim) if axis not in (*inserted, *batch)]
    counts = {axis: updates.shape[place] for axis, place in zip(axes, window, strict=True)}
    at = None if batch else _known_place(x, indices, picked)
    if at is not None:
        return _constant_scatter(op, x, updates, at, counts, window, is_clipped)
    index_shape = tuple(indices.shape[:-1])
    columns = dict(zip(picked, _columns(indices, len(picked), made, emit), strict=True))
    columns = {
        axis: column
        for axis, column in columns.items()
        if not (type(column) is int and column == 0 and counts.get(axis, 1) == x.shape[axis])
    }
    is_plain = tuple(columns) == inserted == tuple(range(len(inserted))) and not batch
    is_plain = is_plain and window == tuple(range(updates.ndim - len(window), updates.ndim)) and bool(columns)
    is_plain = is_plain and all(counts[axis] == x.shape[axis] for axis in axes)
    places = {axis: Place(c, x.shape[axis], counts.get(axis, 1), made, is_plain) for axis, c in columns.items()}
    drops = not is_clipped and not all(place.is_safe for place in places.values())
    if is_plain:
        if _is_segment_sum(kind, x, places, index_shape, made):
            return call("ops.segment_sum", updates, places[0].plain, x.shape[0])
        key = tuple(place.counted if drops else place.index for place in places.values())
        if drops:
            return call("update_in_range", Name(op), x, key, updates)
        return call(op, x, key if len(key) > 1 else key[0], updates)
    starts = {axis: place.index for axis, place in places.items()}
    if drops:
        first = next(axis for axis, place in places.items() if not place.is_safe)
        starts[first] = call("ops.where", all_inside(list(places.values())), starts[first], x.shape[first])
    arrangement = _Axes(x.shape, counts, starts)
    batches = dict(zip(batch, integers(numbers.scatter_indices_batching_dims), strict=True))
    keys = arrangement.keys(starts, batches, index_shape, counts)
    if not keys or all(isinstance(each, int) for each in keys):
        raise Untranslated("a scatter of this form")
    updates = reorder_axes(updates, arrangement.places(window, updates.ndim))
    y = reorder_axes(x, arrangement.order)
    key = tuple(keys)
    y = call("update_in_range", Name(op), y, key, updates) if drops else call(op, y, key, updates)
    return reorder_axes(y, np.argsort(arrangement.order).tolist())


def _is_segment_sum(kind, x, places, index_shape, made):
    """Say whether a scatter adds rows to zeros, without those whose index is negative or too large."""
    zeros = made(x)
    is_zero = is_call(zeros, "ops.zeros") and x.dtype.startswith(("float", "bfloat"))
    is_one = len(places) == 1 and len(index_shape) == 1 and isinstance(x.shape[0], int)
    return kind == "add" and is_zero and is_one and isinstance(places[0].plain, Value) and places[0].low == 0


def _constant_scatter(op, x, updates, at, counts, window, clips):
    """Write a scatter to one place that is known."""
    at, is_outside = bound_places(x, at, counts)
    if is_outside and not clips:
        return x
    key: list[Any] = []
    for axis, size in enumerate(x.shape):
        count, start = counts.get(axis), at.get(axis, 0)
        if count is None:
            key.append(start)
        elif count == size:
            key.append(slice(None))
        else:
            key.append(slice(start, add_sizes(count, start)))
    shape = tuple(updates.shape[axis] for axis in window)
    if len(shape) != updates.ndim:
        updates = call("ops.reshape", updates, sizes(shape))
    while key and key[-1] == slice(None):
        key.pop()
    return call(op, x, tuple(key) if len(key) != 1 else key[0], updates)


def scatter_difference(x, indices, updates, dimension_numbers, mode, out, made, emit):
    (negative,) = emit(call("ops.negative", updates), Value(updates.shape, updates.dtype))
    added: Expression = scatter("add", x, indices, negative, dimension_numbers, mode, out, made, emit)
    return added
