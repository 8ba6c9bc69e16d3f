"""Reductions of the segments that a vector of ids divides a tensor into."""

from __future__ import annotations

from multiop._call.boundary import boundary
from multiop._loading.registry import active
from multiop._values import args
from multiop._values.types import ArrayLike, Tensor


@boundary
def op_segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    sorted: bool = False,  # noqa: A002
) -> Tensor:
    """Add up the rows of each segment of `data`.

    Args:
        data: Tensor of at least one dimension, complex or not.
        segment_ids: Integer vector: the segment that each row of `data` belongs to. Rows whose id is negative, or is
            `num_segments` or more, are dropped.
        num_segments: How many segments there are; by default the largest id plus one.
        sorted: Whether the ids are known to be sorted; the result is the same.

    Returns:
        Tensor of shape `(num_segments, *data.shape[1:])`, of the dtype of `data`, but
        integers and bool are added up in at least 32 bits. An empty segment gives 0.

    Raises:
        ArgumentError: `segment_ids` is not a vector or does not fit `data`, or `num_segments` is negative, or is
            missing in compiled or mapped code, where the shape must not depend on values.
        DTypeError: `segment_ids` are not integers.

    Gradient:
        Goes to each entry that is not dropped.

    Example:
        >>> import multiop
        >>> found = multiop.op_segment_sum([1, 2, 3], [0, 0, 1], num_segments=3)
        >>> multiop.op_convert_to_numpy(found).tolist()
        [3, 3, 0]
    """
    return active().op_segment_sum(*args.segments(active(), data, segment_ids, num_segments))


@boundary
def op_segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    sorted: bool = False,  # noqa: A002
) -> Tensor:
    """Take the largest entry of each segment of `data`.

    Args:
        data: Tensor of at least one dimension, not complex.
        segment_ids: Integer vector: the segment that each row of `data` belongs to. Rows whose id is negative, or is
            `num_segments` or more, are dropped.
        num_segments: How many segments there are; by default the largest id plus one.
        sorted: Whether the ids are known to be sorted; the result is the same.

    Returns:
        Tensor of shape `(num_segments, *data.shape[1:])`, of the dtype of `data`;
        NaN in a segment gives NaN. An empty segment gives -inf, or the least number of the dtype.

    Raises:
        ArgumentError: `segment_ids` is not a vector or does not fit `data`, or `num_segments` is negative, or is
            missing in compiled or mapped code, where the shape must not depend on values.
        DTypeError: `segment_ids` are not integers, or `data` is complex; complex numbers have no order.

    Gradient:
        Splits evenly between entries that tie.

    Example:
        >>> import multiop
        >>> found = multiop.op_segment_max([1, 2, 3], [0, 0, 1], num_segments=3)
        >>> multiop.op_convert_to_numpy(found).tolist()
        [2, 3, -2147483648]
    """
    return active().op_segment_max(*args.segments(active(), data, segment_ids, num_segments))


@boundary
def op_segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    sorted: bool = False,  # noqa: A002
) -> Tensor:
    """Take the smallest entry of each segment of `data`.

    Args:
        data: Tensor of at least one dimension, not complex.
        segment_ids: Integer vector: the segment that each row of `data` belongs to. Rows whose id is negative, or is
            `num_segments` or more, are dropped.
        num_segments: How many segments there are; by default the largest id plus one.
        sorted: Whether the ids are known to be sorted; the result is the same.

    Returns:
        Tensor of shape `(num_segments, *data.shape[1:])`, of the dtype of `data`;
        NaN in a segment gives NaN. An empty segment gives inf, or the largest number of the dtype.

    Raises:
        ArgumentError: `segment_ids` is not a vector or does not fit `data`, or `num_segments` is negative, or is
            missing in compiled or mapped code, where the shape must not depend on values.
        DTypeError: `segment_ids` are not integers, or `data` is complex; complex numbers have no order.

    Gradient:
        Splits evenly between entries that tie.

    Example:
        >>> import multiop
        >>> found = multiop.op_segment_min([1, 2, 3], [0, 0, 1], num_segments=3)
        >>> multiop.op_convert_to_numpy(found).tolist()
        [1, 3, 2147483647]
    """
    return active().op_segment_min(*args.segments(active(), data, segment_ids, num_segments))


@boundary
def op_segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    sorted: bool = False,  # noqa: A002
) -> Tensor:
    """Multiply the rows of each segment of `data`.

    Args:
        data: Tensor of at least one dimension, complex or not.
        segment_ids: Integer vector: the segment that each row of `data` belongs to. Rows whose id is negative, or is
            `num_segments` or more, are dropped.
        num_segments: How many segments there are; by default the largest id plus one.
        sorted: Whether the ids are known to be sorted; the result is the same.

    Returns:
        Tensor of shape `(num_segments, *data.shape[1:])`, of the dtype of `data`, but
        integers and bool are multiplied in at least 32 bits. An empty segment gives 1.

    Raises:
        ArgumentError: `segment_ids` is not a vector or does not fit `data`, or `num_segments` is negative, or is
            missing in compiled or mapped code, where the shape must not depend on values.
        DTypeError: `segment_ids` are not integers.

    Gradient:
        The product of the other entries of the segment, even if some are zero.

    Example:
        >>> import multiop
        >>> found = multiop.op_segment_prod([1, 2, 3], [0, 0, 1], num_segments=3)
        >>> multiop.op_convert_to_numpy(found).tolist()
        [2, 3, 1]
    """
    return active().op_segment_prod(*args.segments(active(), data, segment_ids, num_segments))
