"""Shapes: the same entries in another arrangement."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from multiop import config, errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite
from multiop._values import args
from multiop._values.types import ArrayLike, Axis, DType, Shape, Tensor
from multiop.frontends.conversion import on_device_of, op_cast, op_convert_to_tensor, op_shape, operands
from multiop.frontends.creation import op_arange, op_eye, op_zeros_like
from multiop.frontends.elementwise import op_subtract
from multiop.frontends.logical import op_greater_equal, op_where


@boundary
def op_reshape(x: ArrayLike, newshape: Shape) -> Tensor:
    """Give `x` another shape, with the entries in the same row-major order.

    Args:
        x: Tensor of any dtype and shape.
        newshape: An int, or a sequence of ints of which one may be -1: it is then computed from the others.

    Returns:
        Tensor of shape `newshape`.

    Raises:
        ArgumentError: The number of entries would change.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_reshape([1, 2, 3, 4], (2, -1))).tolist()
        [[1, 2], [3, 4]]
    """
    return active().op_reshape(x, args.shape(newshape, "newshape"))


@boundary
def op_transpose(x: ArrayLike, axes: Sequence[int] | None = None) -> Tensor:
    """Permute the dimensions of `x`.

    Args:
        x: Tensor of any dtype and shape.
        axes: For each dimension of the result, the dimension of `x` that it is; by default the reverse order.

    Returns:
        Tensor with the dimensions of `x` in the order `axes`.

    Raises:
        ArgumentError: `axes` is not a permutation of the dimensions.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_transpose([[1, 2], [3, 4]])).tolist()
        [[1, 3], [2, 4]]
    """
    return active().op_transpose(x, axes)


@boundary
def op_swapaxes(x: ArrayLike, axis1: int, axis2: int) -> Tensor:
    """Exchange two dimensions of `x`.

    Args:
        x: Tensor of any dtype and shape.
        axis1: One dimension.
        axis2: The other.

    Returns:
        Tensor with the two dimensions exchanged.

    Raises:
        ArgumentError: An axis is out of range.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_swapaxes([[1, 2], [3, 4]], 0, 1)).tolist()
        [[1, 3], [2, 4]]
    """
    return active().op_swapaxes(x, axis1, axis2)


@boundary
def op_moveaxis(x: ArrayLike, source: Axis, destination: Axis) -> Tensor:
    """Move dimensions of `x` to other positions; the rest keep their order.

    Args:
        x: Tensor of any dtype and shape.
        source: Dimension or dimensions to move.
        destination: Where each of them goes.

    Returns:
        Tensor with the dimensions moved.

    Raises:
        ArgumentError: An axis is out of range or named twice, or the two have different lengths.

    Example:
        >>> import multiop
        >>> multiop.op_shape(multiop.op_moveaxis(multiop.op_zeros((2, 3, 4)), 0, -1))
        (3, 4, 2)
    """
    return active().op_moveaxis(x, source, destination)


@boundary
def op_expand_dims(x: ArrayLike, axis: Axis) -> Tensor:
    """Insert dimensions of size 1 into `x`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Position or positions of the new dimensions in the result.

    Returns:
        Tensor with the new dimensions.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Example:
        >>> import multiop
        >>> multiop.op_shape(multiop.op_expand_dims([1, 2, 3], 0))
        (1, 3)
    """
    return active().op_expand_dims(x, axis)


@boundary
def op_squeeze(x: ArrayLike, axis: Axis = None) -> Tensor:
    """Remove dimensions of size 1 from `x`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Dimension or dimensions to remove; by default all of size 1.

    Returns:
        Tensor without those dimensions.

    Raises:
        ArgumentError: `axis` is out of range or named twice, or such a dimension has another size.

    Example:
        >>> import multiop
        >>> multiop.op_shape(multiop.op_squeeze([[[1], [2]]]))
        (2,)
    """
    return active().op_squeeze(x, axis)


@boundary
def op_concatenate(xs: Sequence[ArrayLike], axis: int = 0) -> Tensor:
    """Join tensors along an existing dimension.

    Args:
        xs: Sequence of tensors, of equal shapes except along `axis`.
        axis: Dimension along which to join.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        ArgumentError: The sequence is empty, the shapes do not fit, or `axis` is out of range.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_concatenate([[1, 2], [3]])).tolist()
        [1, 2, 3]
    """
    return active().op_concatenate(xs, axis)


@boundary
def op_stack(x: Sequence[ArrayLike] | Tensor, axis: int = 0) -> Tensor:
    """Join tensors along a new dimension.

    Args:
        x: Sequence of tensors of equal shapes.
        axis: Position of the new dimension in the result.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        ArgumentError: The sequence is empty, the shapes differ, or `axis` is out of range.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_stack([[1, 2], [3, 4]], axis=1)).tolist()
        [[1, 3], [2, 4]]
    """
    return active().op_stack(x, axis)


@boundary
def op_split(x: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cut `x` into parts along a dimension.

    Args:
        x: Tensor of any dtype and shape.
        indices_or_sections: How many equal parts; or the indices before which to cut.
        axis: Dimension to cut.

    Returns:
        List of tensors.

    Raises:
        ArgumentError: The parts would not be equal, or `axis` is out of range.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_split([1, 2, 3, 4], 2)]
        [[1, 2], [3, 4]]
    """
    return active().op_split(x, indices_or_sections, axis)


@boundary
def op_broadcast_to(x: ArrayLike, shape: Shape) -> Tensor:
    """Repeat `x` along dimensions of size 1 and new leading ones, up to `shape`.

    Args:
        x: Tensor of any dtype and shape.
        shape: An int, or a sequence of ints.

    Returns:
        Tensor of shape `shape`.

    Raises:
        ArgumentError: `x` does not broadcast to `shape`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_broadcast_to([1, 2], (2, 2))).tolist()
        [[1, 2], [1, 2]]
    """
    return active().op_broadcast_to(x, args.size(shape))


@boundary
def op_flip(x: ArrayLike, axis: Axis = None) -> Tensor:
    """Reverse the order of the entries of `x` along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reverse; by default all of them.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_flip([1, 2, 3])).tolist()
        [3, 2, 1]
    """
    return active().op_flip(x, axis)


@boundary
def op_tile(x: ArrayLike, repeats: int | Sequence[int]) -> Tensor:
    """Repeat the whole of `x` along its dimensions.

    Args:
        x: Tensor of any dtype and shape.
        repeats: How many times along each dimension; if there are more numbers than dimensions, `x` gets leading ones.

    Returns:
        Tensor of the dtype of `x`.

    Raises:
        ArgumentError: A number of repeats is negative.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_tile([1, 2], 2)).tolist()
        [1, 2, 1, 2]
    """
    return active().op_tile(x, args.countable(args.size(repeats, "repeats"), "repeats"))


@boundary
def op_repeat(x: ArrayLike, repeats: int | Sequence[int], axis: int | None = None) -> Tensor:
    """Repeat each entry of `x` along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        repeats: How many times: one number, or one for each entry along `axis`.
        axis: Dimension along which to repeat; by default `x` is flattened first.

    Returns:
        Tensor of the dtype of `x`.

    Raises:
        ArgumentError: `axis` is out of range, or the numbers of repeats do not fit.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_repeat([1, 2], 2)).tolist()
        [1, 1, 2, 2]
        >>> multiop.op_convert_to_numpy(multiop.op_repeat([1, 2], [2, 1], axis=0)).tolist()
        [1, 1, 2]
    """
    return active().op_repeat(x, args.repeats(repeats), axis)


@boundary
def op_roll(x: ArrayLike, shift: int | Sequence[int], axis: Axis = None) -> Tensor:
    """Move the entries of `x` along `axis`; those beyond the end come back at the start.

    Args:
        x: Tensor of any dtype and shape.
        shift: The number of positions: an int for each axis, a single int for all axes, or several ints for one axis,
            which add up.
        axis: Dimension or dimensions along which to move; by default `x` is moved as if it were flat.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ArgumentError: `axis` is out of range, or the number of shifts does not fit the number of axes.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_roll([1, 2, 3], 1)).tolist()
        [3, 1, 2]
    """
    return active().op_roll(x, shift, axis)


@boundary
def op_pad(
    x: ArrayLike, pad_width: int | Sequence[Any], mode: str = "constant", constant_values: ArrayLike | None = None
) -> Tensor:
    """Add entries at both ends of the dimensions of `x`.

    Args:
        x: Tensor of any dtype and shape.
        pad_width: How many: a number, a pair of numbers for the start and the end, or a pair for each dimension.
        mode: What to add: `"constant"`; `"edge"` repeats the outermost entry; `"reflect"` mirrors the
            entries about the outermost one, `"symmetric"` about the edge; `"wrap"` continues from the other end.
        constant_values: Scalar for the mode `"constant"`; 0 by default.

    Returns:
        Tensor of the dtype of `x`.

    Raises:
        ArgumentError: `pad_width` does not fit the dimensions of `x` or is negative, `mode` is unknown, or
            `constant_values` is given with another mode.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_pad([1, 2, 3], (1, 2))).tolist()
        [0, 1, 2, 3, 0, 0]
        >>> multiop.op_convert_to_numpy(multiop.op_pad([1, 2, 3], 1, mode="reflect")).tolist()
        [2, 1, 2, 3, 2]
    """
    modes = ("constant", "edge", "reflect", "symmetric", "wrap")
    if constant_values is not None and args.choice(mode, modes, "mode") != "constant":
        raise errors.ArgumentError(f"constant_values has no meaning in mode {mode!r}")
    return active().op_pad(
        x, pad_width, args.choice(mode, modes, "mode"), 0 if constant_values is None else constant_values
    )


@boundary
def op_unstack(x: ArrayLike, num: int | None = None, axis: int = 0) -> list[Tensor]:
    """Split `x` into its slices along a dimension.

    Args:
        x: Tensor of any dtype and shape.
        num: How many slices there are; only needed, and checked, if the dimension is known only at run time.
        axis: Dimension to remove.

    Returns:
        List of tensors without that dimension.

    Raises:
        ArgumentError: `axis` is out of range, or `num` differs from the number of slices.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_unstack([[1, 2], [3, 4]])]
        [[1, 2], [3, 4]]
    """
    return active().op_unstack(x, num, axis)


@boundary
def op_diagonal(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return diagonals of `x`.

    Args:
        x: Tensor of at least two dimensions.
        offset: Which diagonal: 0 is the main one, positive ones are above it, negative ones below.
        axis1: Dimension of the rows.
        axis2: Dimension of the columns.

    Returns:
        Tensor with those two dimensions removed, and the diagonal last.

    Raises:
        ArgumentError: An axis is out of range, or both are the same.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_diagonal([[1, 2], [3, 4]])).tolist()
        [1, 4]
    """
    return active().op_diagonal(x, args.integer(offset, "offset"), axis1, axis2)


# composites


@boundary
def op_ravel(x: ArrayLike) -> Tensor:
    """Return `x` as one dimension, in row-major order.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Tensor of one dimension.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_ravel([[1, 2], [3, 4]])).tolist()
        [1, 2, 3, 4]
    """
    return op_reshape(x, -1)


@boundary
def op_ndim(x: ArrayLike) -> int:
    """Return the number of dimensions of `x`.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        An int.

    Example:
        >>> import multiop
        >>> multiop.op_ndim([[1, 2]])
        2
    """
    return len(active().op_shape(x))


@boundary
def op_size(x: ArrayLike) -> Any:
    """Return the number of entries of `x`.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        An int; inside `tf.function`, a scalar tensor if a dimension is known only at run time.

    Example:
        >>> import multiop
        >>> multiop.op_size([[1, 2]])
        2
    """
    return math.prod(op_shape(x))


@boundary
def op_hstack(xs: Sequence[ArrayLike]) -> Tensor:
    """Join tensors along the second dimension, or the first if they have only one.

    Args:
        xs: Sequence of tensors; scalars become vectors.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        ArgumentError: The sequence is empty, or the shapes do not fit.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hstack([[1, 2], [3]])).tolist()
        [1, 2, 3]
    """
    parts = [op_reshape(x, -1) if op_ndim(x) == 0 else x for x in operands(*args.sequence(xs))]
    return op_concatenate(parts, 0 if op_ndim(parts[0]) == 1 else 1)


@boundary
def op_vstack(xs: Sequence[ArrayLike]) -> Tensor:
    """Join tensors along the first dimension; vectors become rows.

    Args:
        xs: Sequence of tensors.

    Returns:
        Tensor of the promoted dtype, of at least two dimensions.

    Raises:
        ArgumentError: The sequence is empty, or the shapes do not fit.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_vstack([[1, 2], [3, 4]])).tolist()
        [[1, 2], [3, 4]]
    """
    return op_concatenate([op_reshape(x, (1, -1)) if op_ndim(x) < 2 else x for x in operands(*args.sequence(xs))])


@boundary
def op_dstack(xs: Sequence[ArrayLike]) -> Tensor:
    """Join tensors along the third dimension, which vectors and matrices gain.

    Args:
        xs: Sequence of tensors.

    Returns:
        Tensor of the promoted dtype, of at least three dimensions.

    Raises:
        ArgumentError: The sequence is empty, or the shapes do not fit.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_dstack([[1, 2], [3, 4]])).tolist()
        [[[1, 3], [2, 4]]]
    """
    rows = [op_reshape(x, (1, -1)) if op_ndim(x) < 2 else x for x in operands(*args.sequence(xs))]
    return op_concatenate([op_expand_dims(x, 2) if op_ndim(x) == 2 else x for x in rows], 2)


@boundary
def op_column_stack(xs: Sequence[ArrayLike]) -> Tensor:
    """Join tensors along their second dimension, with vectors as columns.

    Args:
        xs: Sequence of tensors; vectors and scalars count as matrices with one column.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        ArgumentError: `xs` is empty, or the shapes differ in another dimension.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_column_stack([[1, 2], [3, 4]])).tolist()
        [[1, 3], [2, 4]]
    """
    xs = operands(*args.sequence(xs))
    return op_concatenate([op_reshape(x, (-1, 1)) if op_ndim(x) < 2 else x for x in xs], 1)


@boundary
def op_append(x1: ArrayLike, x2: ArrayLike, axis: int | None = None) -> Tensor:
    """Join `x2` to the end of `x1`.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor of the shape of `x1` except along `axis`.
        axis: Dimension along which to join; by default both are flattened first.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        ArgumentError: The shapes do not fit, or `axis` is out of range.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_append([1, 2], [3])).tolist()
        [1, 2, 3]
    """
    if axis is None:
        return op_concatenate([op_ravel(x) for x in operands(x1, x2)])
    return op_concatenate([x1, x2], axis)


@boundary
def op_array_split(x: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cut `x` into parts along a dimension, of nearly equal sizes if they cannot be equal.

    Args:
        x: Tensor of any dtype and shape.
        indices_or_sections: How many parts; or the indices before which to cut.
        axis: Dimension to cut.

    Returns:
        List of tensors, the larger ones first.

    Raises:
        ArgumentError: The number of parts is not positive, or `axis` is out of range.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_array_split([1, 2, 3], 2)]
        [[1, 2], [3]]
    """
    if not isinstance(indices_or_sections, int):
        return op_split(x, indices_or_sections, axis)
    size = op_shape(x)[args.single_axis(axis, op_ndim(x))]
    if indices_or_sections < 1:
        raise errors.ArgumentError("there must be at least one part")
    small, larger = divmod(size, indices_or_sections)
    ends = list(itertools.accumulate([small + 1] * larger + [small] * (indices_or_sections - larger)))
    return op_split(x, ends[:-1], axis)


@boundary
def op_hsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Cut `x` into parts along its second dimension, or the first if it has only one.

    Args:
        x: Tensor of any dtype and shape.
        indices_or_sections: How many equal parts; or the indices before which to cut.

    Returns:
        List of tensors.

    Raises:
        ArgumentError: The parts would not be equal, or `x` has too few dimensions.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_hsplit([1, 2], 2)]
        [[1], [2]]
    """
    return op_split(x, indices_or_sections, 0 if op_ndim(x) == 1 else 1)


@boundary
def op_vsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Cut `x` into parts along its first dimension.

    Args:
        x: Tensor of any dtype and shape.
        indices_or_sections: How many equal parts; or the indices before which to cut.

    Returns:
        List of tensors.

    Raises:
        ArgumentError: The parts would not be equal, or `x` has too few dimensions.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_vsplit([[1], [2]], 2)]
        [[[1]], [[2]]]
    """
    return op_split(x, indices_or_sections, 0)


@boundary
def op_dsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Cut `x` into parts along its third dimension.

    Args:
        x: Tensor of any dtype and shape.
        indices_or_sections: How many equal parts; or the indices before which to cut.

    Returns:
        List of tensors.

    Raises:
        ArgumentError: The parts would not be equal, or `x` has too few dimensions.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_dsplit([[[1, 2]]], 2)]
        [[[[1]]], [[[2]]]]
    """
    return op_split(x, indices_or_sections, 2)


@boundary
def op_fliplr(x: ArrayLike) -> Tensor:
    """Reverse the order of the columns of `x`.

    Args:
        x: Tensor of at least two dimensions.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ArgumentError: `x` has fewer than two dimensions.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_fliplr([[1, 2]])).tolist()
        [[2, 1]]
    """
    return op_flip(x, 1)


@boundary
def op_flipud(x: ArrayLike) -> Tensor:
    """Reverse the order of the rows of `x`.

    Args:
        x: Tensor of at least one dimension.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ArgumentError: `x` is a scalar.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_flipud([1, 2])).tolist()
        [2, 1]
    """
    return op_flip(x, 0)


@boundary
@composite
def op_rot90(array: ArrayLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Rotate `array` by multiples of 90 degrees, from the first axis to the second.

    Args:
        array: Tensor of at least two dimensions.
        k: How many times 90 degrees; negative for the other direction.
        axes: The two dimensions of the plane.

    Returns:
        Tensor of the dtype of `array`.

    Raises:
        ArgumentError: `axes` are not two different dimensions.
        ArgumentTypeError: `k` is not an int.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_rot90([[1, 2], [3, 4]])).tolist()
        [[2, 4], [1, 3]]
    """
    ndim = len(op_shape(array))
    first, second = (args.single_axis(axis, ndim, "axes") for axis in axes)
    if first == second:
        raise errors.ArgumentError(f"axes must be two different dimensions, got {axes!r}")
    k = args.integer(k, "k")
    if k % 4 == 0:
        return op_flip(array, ())
    if k % 4 == 2:
        return op_flip(array, (first, second))
    turned = op_swapaxes(array, first, second)
    return op_flip(turned, first if k % 4 == 1 else second)


@boundary
def op_broadcast_arrays(*x: ArrayLike) -> list[Tensor]:
    """Repeat tensors along dimensions of size 1, so that all have the same shape.

    Args:
        *x: Tensors of shapes that broadcast.

    Returns:
        A tensor of the broadcast shape for each, in its own dtype.

    Raises:
        ArgumentError: The shapes do not broadcast.

    Example:
        >>> import multiop
        >>> [y.shape == (2, 3) for y in multiop.op_broadcast_arrays(multiop.op_ones((2, 1)), multiop.op_ones(3))]
        [True, True]
    """
    xs = [op_convert_to_tensor(entry) for entry in active().together(*x)] if x else []
    shape = op_broadcast_shapes(*[op_shape(entry) for entry in xs])
    return [op_broadcast_to(entry, shape) for entry in xs]


@boundary
def op_broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """Return the shape to which tensors of `shapes` broadcast.

    Args:
        *shapes: Tuples of ints.

    Returns:
        Tuple of ints; empty if there are no shapes.

    Raises:
        ArgumentError: The shapes do not broadcast, or a size is negative.

    Example:
        >>> import multiop
        >>> multiop.op_broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    sizes = [args.size(shape, "shapes") for shape in shapes]
    shape: list[Any] = []
    for column in itertools.zip_longest(*map(reversed, sizes), fillvalue=1):
        others = [n for n in column if not isinstance(n, int) or n != 1]
        if any(n is not others[0] and n != others[0] for n in others[1:]):
            raise errors.ArgumentError(f"shapes {', '.join(map(str, sizes))} do not broadcast")
        shape.append(others[0] if others else 1)
    return tuple(reversed(shape))


@boundary
def op_meshgrid(*x: ArrayLike, indexing: str = "xy") -> list[Tensor]:
    """Return the coordinates of every point of a grid.

    Args:
        *x: Vectors of coordinates; scalars count as vectors of one.
        indexing: `"xy"`: the first vector runs along the second dimension, as in a plot; `"ij"`: along the first.

    Returns:
        List of tensors, one for each vector, all of the shape of the grid.

    Raises:
        ArgumentError: `indexing` is unknown.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(part).tolist() for part in multiop.op_meshgrid([1, 2], [3, 4])]
        [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise errors.ArgumentError(f"indexing must be 'xy' or 'ij', got {indexing!r}")
    xs = operands(*x)
    axes = list(range(len(xs)))  # the dimension that each vector runs along
    if indexing == "xy" and len(xs) > 1:
        axes[:2] = 1, 0
    sizes = [op_size(xs[k]) for k in axes]
    columns = [
        op_reshape(x, [-1 if k == axis else 1 for k in range(len(xs))]) for x, axis in zip(xs, axes, strict=True)
    ]
    return [op_broadcast_to(column, sizes) for column in columns]


@boundary
@composite
def op_diag(x: ArrayLike, k: int = 0) -> Tensor:
    """Return the diagonal of a matrix, or the matrix with a vector on its diagonal.

    Args:
        x: Matrix or vector.
        k: Which diagonal: 0 is the main one, positive ones are above it, negative ones below.

    Returns:
        Tensor of the dtype of `x`.

    Raises:
        ArgumentError: `x` has neither one nor two dimensions.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_diag([1, 2])).tolist()
        [[1, 0], [0, 2]]
    """
    shape = op_shape(x)
    if len(shape) == 2:
        return op_diagonal(x, k)
    if len(shape) != 1:
        raise errors.ArgumentError("x must have one or two dimensions")
    n = shape[0] + abs(k)
    padded = op_pad(x, (max(k, 0), max(-k, 0)))
    return op_where(on_device_of(padded, op_eye(n, n, k, "bool")), padded, op_zeros_like(padded))


@boundary
def op_diagflat(x: ArrayLike, k: int = 0) -> Tensor:
    """Return the matrix with the entries of `x` on its diagonal.

    Args:
        x: Tensor of any dtype and shape.
        k: Which diagonal: 0 is the main one, positive ones are above it, negative ones below.

    Returns:
        Matrix of the dtype of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_diagflat([[1], [2]])).tolist()
        [[1, 0], [0, 2]]
    """
    return op_diag(op_ravel(x), k)


@boundary
def op_tri(N: int, M: int | None = None, k: int = 0, dtype: DType = None) -> Tensor:
    """Return a matrix with ones on and below a diagonal and zeros above it.

    Args:
        N: Number of rows.
        M: Number of columns, `N` by default.
        k: Which diagonal: 0 is the main one, positive ones are above it, negative ones below.
        dtype: Dtype of the result; by default `floatx`.

    Returns:
        Tensor of shape `(N, M)`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_tri(2)).tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """
    rows = op_expand_dims(op_arange(args.integer(N, "N")), 1)
    columns = op_expand_dims(op_arange(N if M is None else args.integer(M, "M")), 0)
    below = op_greater_equal(rows, op_subtract(columns, args.integer(k, "k")))
    return op_cast(below, config.floatx() if dtype is None else dtype)


@boundary
@composite
def op_tril(x: ArrayLike, k: int = 0) -> Tensor:
    """Replace the entries of `x` above a diagonal by zeros.

    Args:
        x: Tensor of at least two dimensions: matrices in the last two.
        k: Which diagonal: 0 is the main one, positive ones are above it, negative ones below.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ArgumentError: `x` has fewer than two dimensions.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_tril([[1, 2], [3, 4]])).tolist()
        [[1, 0], [3, 4]]
    """
    rows, columns = args.matrices(op_shape(x))
    return op_where(on_device_of(x, op_tri(rows, columns, k, "bool")), x, op_zeros_like(x))


@boundary
@composite
def op_triu(x: ArrayLike, k: int = 0) -> Tensor:
    """Replace the entries of `x` below a diagonal by zeros.

    Args:
        x: Tensor of at least two dimensions: matrices in the last two.
        k: Which diagonal: 0 is the main one, positive ones are above it, negative ones below.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ArgumentError: `x` has fewer than two dimensions.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_triu([[1, 2], [3, 4]])).tolist()
        [[1, 2], [0, 4]]
    """
    rows, columns = args.matrices(op_shape(x))
    return op_where(on_device_of(x, op_tri(rows, columns, k - 1, "bool")), op_zeros_like(x), x)


@boundary
def op_set_diag(x: ArrayLike, diagonal: ArrayLike) -> Tensor:
    """Return matrices with another diagonal.

    Args:
        x: Tensor of shape `(..., m, n)`.
        diagonal: A number, or a tensor that broadcasts with the diagonals, to `(..., min(m, n))`.

    Returns:
        Tensor of the shape of `x` and the promoted dtype.

    Raises:
        ArgumentError: `x` has fewer than two dimensions, or `diagonal` does not fit.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_set_diag([[1, 2], [3, 4]], 0)).tolist()
        [[0, 2], [3, 0]]
    """
    x, diagonal = active().promote(x, diagonal)
    m, n = args.matrices(op_shape(x))
    diagonal = op_broadcast_to(diagonal, (*op_shape(x)[:-2], min(m, n)))
    across = op_pad(diagonal, [(0, 0)] * (op_ndim(x) - 2) + [(0, n - min(m, n))])
    return op_where(on_device_of(x, op_eye(m, n, dtype="bool")), op_expand_dims(across, -2), x)


@boundary
def op_tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """Return the indices of the lower triangle of a matrix, row by row.

    Args:
        n: The number of its rows.
        k: The last diagonal to include; 0 is the main one, negative ones are below it.
        m: The number of its columns; by default `n`.

    Returns:
        Two `int32` tensors of one dimension: the rows and the columns.

    Raises:
        ArgumentError: A size is negative.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(i).tolist() for i in multiop.op_tril_indices(2)]
        [[0, 1, 1], [0, 0, 1]]
    """
    return _indices(np.tril_indices, n, k, m)


@boundary
def op_triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """Return the indices of the upper triangle of a matrix, row by row.

    Args:
        n: The number of its rows.
        k: The first diagonal to include; 0 is the main one, negative ones are below it.
        m: The number of its columns; by default `n`.

    Returns:
        Two `int32` tensors of one dimension: the rows and the columns.

    Raises:
        ArgumentError: A size is negative.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(i).tolist() for i in multiop.op_triu_indices(2)]
        [[0, 0, 1], [0, 1, 1]]
    """
    return _indices(np.triu_indices, n, k, m)


@boundary
def op_block_diag(*arrs: ArrayLike) -> Tensor:
    """Return a matrix with matrices along its diagonal, and 0 elsewhere.

    Args:
        *arrs: Matrices, at least one; a vector counts as one row, and a scalar as one entry.

    Returns:
        Matrix of the promoted dtype, with as many rows and columns as the matrices have together.

    Raises:
        ArgumentError: There are no matrices, or one has more than two dimensions.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_block_diag([[1, 2]], 3)).tolist()
        [[1, 2, 0], [0, 0, 3]]
    """
    blocks = operands(*args.sequence(arrs))
    if any(len(op_shape(block)) > 2 for block in blocks):
        raise errors.ArgumentError(
            f"arrs must have at most two dimensions, got {[op_shape(block) for block in blocks]}"
        )
    blocks = [op_reshape(block, (1,) * (2 - len(op_shape(block))) + op_shape(block)) for block in blocks]
    ends = list(itertools.accumulate(op_shape(block)[1] for block in blocks))
    rows = [
        op_pad(block, [(0, 0), (end - op_shape(block)[1], ends[-1] - end)])
        for block, end in zip(blocks, ends, strict=True)
    ]
    return op_concatenate(rows)


def _indices(of: Any, n: int, k: int, m: int | None) -> tuple[Tensor, Tensor]:
    n, m = args.count(n, "n"), None if m is None else args.count(m, "m")
    args.countable((n, n if m is None else m), "n, m")
    rows, columns = of(n, args.integer(k, "k"), m)
    return op_convert_to_tensor(rows.astype(np.int32)), op_convert_to_tensor(columns.astype(np.int32))
