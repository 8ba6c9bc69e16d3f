"""Shapes: the same entries, arranged otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from multiop import _args
from multiop._args import explain
from multiop._registry import active
from multiop._types import ArrayLike, Axis, Shape, Tensor


def op_reshape(x: ArrayLike, newshape: Shape) -> Tensor:
    """Give `x` another shape, with the entries in the same row-major order.

    Args:
        x: Tensor of any dtype and shape.
        newshape: An int, or a sequence of ints of which one may be -1: as many as are left.

    Returns:
        Tensor of shape `newshape`.

    Raises:
        ArgumentError: The number of entries would change.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_reshape([1, 2, 3, 4], (2, -1))).tolist()
        [[1, 2], [3, 4]]
    """
    try:
        return active().op_reshape(x, _args.shape(newshape, "newshape"))
    except Exception as error:
        raise explain(error, "op_reshape", x=x, newshape=newshape)


def op_transpose(x: ArrayLike, axes: Sequence[int] | None = None) -> Tensor:
    """Permute the dimensions of `x`.

    Args:
        x: Tensor of any dtype and shape.
        axes: For each dimension of the result, which one of `x` it is; by default the reverse order.

    Returns:
        Tensor with the dimensions of `x` in the order `axes`.

    Raises:
        ArgumentError: `axes` is no permutation of the dimensions.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_transpose([[1, 2], [3, 4]])).tolist()
        [[1, 3], [2, 4]]
    """
    try:
        return active().op_transpose(x, axes)
    except Exception as error:
        raise explain(error, "op_transpose", x=x, axes=axes)


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
    try:
        return active().op_swapaxes(x, axis1, axis2)
    except Exception as error:
        raise explain(error, "op_swapaxes", x=x, axis1=axis1, axis2=axis2)


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
    try:
        return active().op_moveaxis(x, source, destination)
    except Exception as error:
        raise explain(error, "op_moveaxis", x=x, source=source, destination=destination)


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
    try:
        return active().op_expand_dims(x, axis)
    except Exception as error:
        raise explain(error, "op_expand_dims", x=x, axis=axis)


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
    try:
        return active().op_squeeze(x, axis)
    except Exception as error:
        raise explain(error, "op_squeeze", x=x, axis=axis)


def op_concatenate(xs: Sequence[ArrayLike], axis: int = 0) -> Tensor:
    """Join tensors along an existing dimension.

    Args:
        xs: Sequence of tensors, of equal shapes but for `axis`.
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
    try:
        return active().op_concatenate(xs, axis)
    except Exception as error:
        raise explain(error, "op_concatenate", xs=xs, axis=axis)


def op_stack(x: Sequence[ArrayLike], axis: int = 0) -> Tensor:
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
    try:
        return active().op_stack(x, axis)
    except Exception as error:
        raise explain(error, "op_stack", x=x, axis=axis)


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
    try:
        return active().op_split(x, indices_or_sections, axis)
    except Exception as error:
        raise explain(error, "op_split", x=x, indices_or_sections=indices_or_sections, axis=axis)


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
    try:
        return active().op_broadcast_to(x, _args.size(shape))
    except Exception as error:
        raise explain(error, "op_broadcast_to", x=x, shape=shape)


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
    try:
        return active().op_flip(x, axis)
    except Exception as error:
        raise explain(error, "op_flip", x=x, axis=axis)


# composites


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
