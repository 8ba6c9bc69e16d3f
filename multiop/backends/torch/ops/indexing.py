"""Indexing: entries selected by their indices."""

from __future__ import annotations

import math

import torch
from torch.compiler import is_dynamo_compiling

from multiop import errors
from multiop._values import args

from .._internals import is_tracing, is_tracked
from ..conversion import (
    INDEX,
    LONG,
    TO_NATIVE,
    choose,
    convert,
    device_among,
    in_float32,
    in_wider_dtype,
    is_compiling,
    move_to,
    on_device_of,
    promote_all,
    resolve_axis,
    to_index_integers,
    together,
    truth,
    where_differentiated,
)
from ..devices import is_at_hand
from .elementwise import op_add, op_maximum, op_minimum, op_multiply

SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def op_take(x, indices, axis):
    if type(axis) is int and isinstance(x, torch.Tensor) and x.dtype in LONG and -(ndim := x.ndim) <= axis < ndim:
        picked = take_checked(x, indices, axis % ndim)
        if picked is not None:
            return picked
    x, indices = convert_with_indices(x, indices)
    x, axis = resolve_axis(x, axis)
    if type(indices) is int and -(size := x.shape[axis]) <= indices < size:
        return torch.select(x, axis, indices).clone()
    if is_left_to_device(x, indices):  # whose kernels add up gradients in float32
        return index_on_device(x, indices, axis)
    return where_differentiated(lambda x: _take(x, indices, axis), x)


def take_checked(x, indices, axis):
    """Return entries at indices that PyTorch checks, the usual case; `None` for others."""
    try:
        return index_along(x, indices, axis, False) if checks_indices(x, indices) else None
    except (IndexError, RuntimeError):  # an index is out of range or negative
        return None


def _take(x, indices, axis):
    picked = take_checked(x, indices, axis)
    if picked is not None:
        return picked
    given = indices
    indices, outside = check_indices(indices, x.shape[axis], x.device)
    indices = indices if isinstance(given, torch.Tensor) else on_device_of(x, indices)
    picked = index_along(x, indices, axis, is_dynamo_compiling())
    return picked if outside is None else mask_outside(picked, outside[(..., *[None] * (x.ndim - axis - 1))])


def op_take_along_axis(x, indices, axis):
    x, indices = convert_with_indices(x, indices)
    if x.dtype in SIGNED:
        return op_take_along_axis(x.view(SIGNED[x.dtype]), indices, axis).view(x.dtype)
    x, axis = resolve_axis(x, axis)
    return where_differentiated(lambda x: _take_along_axis(x, indices, axis), x)


def _take_along_axis(x, indices, axis):
    if checks_indices(x, indices) and indices.ndim == x.ndim and _fits(indices.shape, x.shape, axis):
        try:
            return torch.gather(x, axis, indices.long())
        except (IndexError, RuntimeError):  # an index is out of range or negative
            pass
    indices, outside = check_indices(indices, x.shape[axis], x.device)
    if indices.ndim != x.ndim:
        raise errors.ArgumentError(f"indices has {indices.ndim} dimensions, x has {x.ndim}")
    picked = torch.take_along_dim(x, indices, axis)
    return picked if outside is None else mask_outside(picked, outside)


def op_get_item(x, key):
    if isinstance(x, torch.Tensor):
        if type(key) is torch.Tensor:
            picked = take_checked(x, key, 0) if x.ndim and x.dtype in LONG else None
            if picked is not None:
                return picked
        elif is_basic(key, x.shape):
            return x[key]
    else:
        parts = key if isinstance(key, tuple) else (key,)
        x = convert(x, device=device_among(parts))
    entries, arrays = args.normalize_key(key, x.shape)
    x = slice_by_key(x, [slice(None) if place in arrays else entry for place, entry in enumerate(entries)])
    if not arrays:
        return x
    found = [check_indices(entries[place], x.shape[place], x.device) for place in arrays]
    places = [None] * (arrays[-1] + 1)
    for place, (indices, _) in zip(arrays, found, strict=True):
        places[place] = indices
    if type(x) is not torch.Tensor:
        places = [place if place is None else on_device_of(x, place) for place in places]
    # x[...] would read the value of a scalar index
    picked = where_differentiated(lambda x: torch.ops.aten.index(x, places), x)
    behind = x.ndim - len(arrays) - args.index_axis(arrays)
    for _, outside in found:
        picked = picked if outside is None else mask_outside(picked, outside[(..., *[None] * behind)])
    return picked


def is_basic(key, sizes):
    """Say whether PyTorch reads a key as NumPy does: ints that are inside, slices that go forwards, `None`, `...`."""
    dim, entries = 0, key if type(key) is tuple else (key,)
    for place, entry in enumerate(entries):
        kind = type(entry)
        if kind is int:
            if not (dim < len(sizes) and -sizes[dim] <= entry < sizes[dim]):
                return False
        elif kind is slice:
            if not (dim < len(sizes) and _BOUNDS.issuperset((type(entry.start), type(entry.stop), type(entry.step)))):
                return False
            if entry.step is not None and entry.step < 1:
                return False
        elif entry is Ellipsis:
            rest = entries[place + 1 :]
            if not _ENTRIES.issuperset(map(type, rest)):
                return False
            dim = max(dim, len(sizes) - len([one for one in rest if one is not None])) - 1
        elif entry is not None:
            return False
        dim += entry is not None
    return True


_BOUNDS = {int, type(None)}
_ENTRIES = {int, slice, type(None)}  # behind an ellipsis


def op_slice(inputs, start_indices, shape):
    x, start_indices = convert_with_indices(inputs, start_indices)
    starts, outside = block_start(start_indices, x, shape)
    for dim, (start, n) in enumerate(zip(starts, shape, strict=True)):
        if n == x.shape[dim]:
            continue
        x = torch.narrow(x, dim, start, n) if outside is None else torch.index_select(x, dim, offsets_from(start, n))
    return x if outside is None else mask_outside(x, outside)


def op_slice_update(x, start_indices, updates):
    starts, outside = block_start(start_indices, x, updates.shape)
    if outside is None:
        return updates.clone() if updates.shape == x.shape else write_block(x, starts, updates, 0)
    grid = torch.meshgrid(*map(offsets_from, starts, updates.shape), indexing="ij")
    return choose(outside, x, torch.index_put(x, grid, updates))


def op_scatter_update(x, indices, updates, reduction):
    cells, inner, any_outside = flat_indices(indices, x)
    outer, width = x.shape[: x.ndim - len(inner)], math.prod(inner)
    n = cells.numel()
    updates = torch.broadcast_to(updates, (*cells.shape, *inner)).reshape(n, width)
    if n == 0 or width == 0:
        return x.clone()
    rows = x.reshape(math.prod(outer), width)
    if any_outside:  # an extra row for indices out of range
        rows = torch.cat([rows, rows.new_zeros(1, width)])
    rows = scatter_rows(rows, cells.reshape(n), updates, reduction)
    return rows[: math.prod(outer)].reshape(x.shape)


def op_select(condlist, choicelist, default):
    n, given = len(condlist), together(*condlist, *choicelist, default)
    condlist, (*choices, result) = given[:n], promote_all(*given[n:])
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = choose(truth(condition), choice, result)
    return result


def op_unravel_index(indices, shape):
    indices = to_index_integers(indices)
    outside = (indices < 0) | (indices >= math.prod(shape))
    if is_at_hand(outside) and bool(outside.any()):
        raise errors.ArgumentError(f"an index is out of range for shape {shape}")
    found = []
    for n in reversed(shape[1:]):
        found.append(torch.remainder(indices, max(n, 1)))
        indices = torch.div(indices, max(n, 1), rounding_mode="floor")
    return tuple(index.int() for index in reversed([*found, indices][: len(shape)]))


def op_one_hot(x, num_classes, axis, dtype):
    x = x if x.dtype in INDEX else to_index_integers(x)
    y = torch.eq(x.unsqueeze(-1), on_device_of(x, torch.arange(num_classes, device=x.device))).type(TO_NATIVE[dtype])
    return y if type(axis) is int and axis == -1 else y.movedim(-1, args.single_axis(axis, x.ndim + 1))


def _fits(shape, other, axis):
    """Say whether two shapes are equal but for one dimension."""
    return shape[:axis] == other[:axis] and shape[axis + 1 :] == other[axis + 1 :]


def checks_indices(x, indices):
    """Say whether PyTorch itself checks `indices` into `x`, and raises if one is negative or too large."""
    return type(indices) is torch.Tensor and indices.dtype in INDEX and x.is_cpu and x.numel() and not is_tracked()


def is_left_to_device(x, indices):
    """Say whether a device checks `indices` into `x` as it runs: a mask would read and write all that is taken."""
    is_known_kind = isinstance(indices, torch.Tensor) and indices.dtype in INDEX
    return not x.is_cpu and is_known_kind and not (is_compiling() or is_tracing())


def index_on_device(x, indices, axis):
    if axis or x.ndim != 2 or x.is_complex():  # an embedding has no gradient of complex rows
        return torch.ops.aten.index(x, [*[None] * axis, indices])  # x[...] would read an index of no dimension
    sign = torch.bitwise_right_shift(indices, 8 * indices.itemsize - 1)  # -1 where an index counts from the end
    return torch.embedding(x, torch.add(indices, sign, alpha=-x.shape[0]))


def index_along(x, indices, axis, compiles):
    if x.dtype in SIGNED:  # index_select has no kernel
        return index_along(x.view(SIGNED[x.dtype]), indices, axis, compiles).view(x.dtype)
    if indices.ndim == 1 and x.ndim < 3:
        return torch.index_select(x, axis, indices)
    is_table = x.ndim == 2 and not axis and x.dtype in LONG
    if is_table and not compiles and type(n := indices.numel()) is int and n <= 128:  # its gradient goes row by row
        return torch.embedding(x, indices)  # a node for three
    # along the last axis, a matrix is three times as fast as a tensor with more dimensions
    rows, dim = (x.flatten(0, -2), 1) if x.ndim > 2 and axis == x.ndim - 1 and x.is_contiguous() else (x, axis)
    picked = torch.index_select(rows, dim, indices.reshape(-1))
    return picked.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :])


def check_indices(indices, size, device=None):
    """Return non-negative indices, and a mask of those out of range; if the values are known, raise, and no mask."""
    known = None if is_compiling() else args.host_indices(indices, size)
    if known is not None:
        found = torch.tensor(known, dtype=torch.int64, device="cpu")
        return found if device is None else move_to(found, device), None
    return wrap_indices(to_index_integers(indices, device), size)


def wrap_indices(indices, size):
    """Return what `check_indices` returns, of a tensor of int64."""
    if (type(indices) is torch.Tensor and indices.is_cpu and not is_tracked()) or is_at_hand(indices):
        low, high = map(int, torch.aminmax(indices)) if indices.numel() else (0, -1)
        if low < -size or high >= size:
            raise args.out_of_range(size)
        return torch.where(indices < 0, indices + size, indices) if low < 0 else indices, None
    outside = torch.clamp(indices, -size, size - 1) != indices
    return torch.remainder(indices, max(size, 1)), outside


def mask_outside(x, outside):
    if x.dtype is torch.bool:
        return x & ~outside
    return choose(outside, x.new_full((), math.nan if x.is_floating_point() or x.is_complex() else 0), x)


def convert_with_indices(x, indices):
    """Return `x` as a tensor, and `indices`; host values go to the device of the other operand."""
    if isinstance(x, torch.Tensor):
        return x, indices
    x, indices = together(x, indices) if isinstance(indices, torch.Tensor) else (x, indices)
    return convert(x), indices


def slice_by_key(x, key):
    """Index with ints, slices and `None`; PyTorch has no negative steps."""
    places, backwards, dim, kept = [], [], 0, 0
    for part in key:
        if isinstance(part, slice) and (part.step or 1) < 0:
            run = range(*part.indices(x.shape[dim]))[::-1]
            part = slice(run.start, run.stop, run.step) if run else slice(0)
            backwards.append(kept)
        places.append(part)
        dim += part is not None
        kept += not isinstance(part, int)
    x = x[tuple(places)]
    return in_wider_dtype(lambda x: torch.flip(x, backwards), x) if backwards else x


def block_start(start_indices, x, shape):
    """Return where a block of `shape` starts in `x` and, if the values are not known, whether it exceeds `x`."""
    starts = args.host_ints(start_indices)
    if starts is None:
        starts = to_index_integers(start_indices, x.device)
        if is_at_hand(starts):
            starts = starts.tolist() if starts.ndim else [starts.item()]
    if not isinstance(starts, torch.Tensor):
        return args.corner(starts, x.shape, shape), None
    args.block(starts, x.shape, shape)
    sizes = [torch.where(start < 0, start + size, start) for start, size in zip(starts.unbind(), x.shape, strict=True)]
    room = [size - n for size, n in zip(x.shape, shape, strict=True)]
    outside = torch.stack([(start < 0) | (start > most) for start, most in zip(sizes, room, strict=True)]).any()
    return [torch.where(outside, 0, start) for start in sizes], outside


def offsets_from(start, n):
    return start + torch.arange(n, device=start.device)


def write_block(x, starts, updates, dim):
    """Return `x` with the block `updates` written at `starts`, one dimension after the other."""
    if dim == x.ndim:
        return updates
    start, n = starts[dim], updates.shape[dim]
    if n == x.shape[dim]:
        return write_block(x, starts, updates, dim + 1)
    inner = write_block(torch.narrow(x, dim, start, n), starts, updates, dim + 1)
    if x.is_complex() or x.dtype in SIGNED:  # torch.slice_scatter has no complex gradient, and no code from Inductor
        return torch.cat([x.narrow(dim, 0, start), inner, x.narrow(dim, start + n, x.shape[dim] - start - n)], dim)
    return torch.slice_scatter(x, inner, dim, start, start + n)


def flat_indices(indices, x):
    """Return the flat index of each cell of `x` that `indices` select, the shape of a cell, and if any may be outside.

    Indices out of range that cannot raise become the first index after the last cell.
    """
    indices = to_index_integers(indices, x.device)
    depth = indices.shape[-1]
    cells, left_out = torch.zeros(indices.shape[:-1], dtype=torch.int64, device=x.device), []
    for size, column in zip(x.shape, indices.unbind(-1), strict=False):
        column, outside = wrap_indices(column, size)
        cells = cells * size + column
        left_out += [] if outside is None else [outside]
    for outside in left_out:
        cells = torch.where(outside, math.prod(x.shape[:depth]), cells)
    return cells, x.shape[depth:], bool(left_out)


def scatter_rows(rows, cells, updates, reduction):
    """Return `rows` with `updates` of the rows `cells`, applied in order; `cells` may repeat."""
    if reduction == "add" and rows.dtype is not torch.bool:
        return index_add(rows, cells, updates)
    numbers = torch.arange(cells.shape[0], device=cells.device)
    last = torch.full_like(rows[:, :1], -1, dtype=torch.int64).reshape(-1).scatter_reduce(0, cells, numbers, "amax")
    hit = (last >= 0)[:, None]
    if reduction is None:
        pick = torch.where if rows.is_cpu and rows.dtype in LONG else choose
        return pick(hit, torch.index_select(updates, 0, last.clamp(min=0)), rows)
    order, combine = torch.sort(cells, stable=True).indices, _COMBINE[reduction]
    updates = combine_segments(combine, updates[order], cells[order], rows.shape[0])
    one = rows.new_ones(())  # a zero gradient must not be multiplied by infinity
    return choose(hit, combine(choose(hit, rows, one), updates), rows)


def index_add(rows, cells, updates):
    """Return `rows` with `updates` added to the rows `cells`; 16-bit floats are added up in float32."""
    add = lambda rows, updates: torch.index_add(rows, 0, cells, updates)  # noqa: E731
    return in_float32(lambda *xs: in_wider_dtype(add, *xs), rows, updates)


_COMBINE = {"add": op_add, "max": op_maximum, "min": op_minimum, "mul": op_multiply}


def combine_segments(combine, x, ids, n):
    """Return the rows of each segment combined pairwise, ones for an empty one; the ids are sorted, and `n` is none."""
    rows, behind, one = torch.arange(x.shape[0], device=x.device), [1] * (x.ndim - 1), x.new_ones(())
    first = torch.full((n + 1,), x.shape[0], device=x.device).scatter_reduce(0, ids, rows, "amin")
    place, step = rows - first[ids], 1
    while step < x.shape[0]:
        joins = (place[:-step] % (2 * step) == 0) & (ids[:-step] == ids[step:]) & (ids[:-step] < n)
        joins = joins.reshape(-1, *behind)
        joined = combine(choose(joins, x[:-step], one), choose(joins, x[step:], one))
        x = torch.cat([choose(joins, joined, x[:-step]), x[-step:]])
        step *= 2
    x = torch.cat([x, x.new_ones((1, *x.shape[1:]))])
    return x[first[:n]]
