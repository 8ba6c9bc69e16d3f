"""Pooling: the average or the largest entry under each window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from multiop._call.boundary import boundary
from multiop._loading.registry import active
from multiop._values import windows
from multiop._values.types import ArrayLike, Tensor
from multiop.frontends.conversion import op_shape
from multiop.frontends.shapes import op_reshape, op_transpose


@boundary
def op_average_pool(
    inputs: ArrayLike,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: str | int | Sequence[Any] = "valid",
    data_format: str | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Tensor:
    """Average the entries under each window.

    Args:
        inputs: `(batch, *space, channels)`, or `(batch, channels, *space)` for `data_format="channels_first"`,
            with 1 to 3 spatial dimensions. Only the batch may be empty; integers and bool become `floatx`.
        pool_size: The size of the window: an int, or one for each spatial dimension.
        strides: How far the window moves at each step, an int, or one for each spatial dimension; `None` for
            `pool_size`.
        padding: `"valid"`: the window stays inside; `"same"`: it may extend beyond both ends, by the larger half at the
            end, so that `ceil(size / stride)` entries come out. Or how far it may extend beyond both ends, less than
            `pool_size`: a number, or a number or a pair `(start, end)` for each spatial dimension.
        data_format: `"channels_last"` (also for `None`) or `"channels_first"`.
        ceil_mode: Whether the last window may extend beyond the padding too, if it starts before the end of the inputs.
        count_include_pad: Whether entries of the padding count, as zeros. PyTorch's default is `True`.

    Returns:
        Tensor of floats, in the layout of `inputs`. Entries outside the inputs do not count; those beyond the padding
        never do.

    Raises:
        ArgumentError: The window is larger than the padded inputs, or an option is not accepted.
        ArgumentTypeError: `pool_size`, `strides` or `padding` does not hold ints.

    Example:
        >>> import multiop
        >>> y = multiop.op_average_pool([[[1.0], [3.0], [5.0]]], 2, 2, "same")
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[2.0], [5.0]]]
    """
    padding, data_format = windows.options(padding, data_format)
    return active().op_average_pool(inputs, pool_size, strides, padding, data_format, ceil_mode, count_include_pad)


@boundary
def op_max_pool(
    inputs: ArrayLike,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: str | int | Sequence[Any] = "valid",
    data_format: str | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Take the largest entry under each window.

    Args:
        inputs: `(batch, *space, channels)`, or `(batch, channels, *space)` for `data_format="channels_first"`,
            with 1 to 3 spatial dimensions. Only the batch may be empty; bool becomes `int32`.
        pool_size: The size of the window: an int, or one for each spatial dimension.
        strides: How far the window moves at each step, an int, or one for each spatial dimension; `None` for
            `pool_size`.
        padding: `"valid"`: the window stays inside; `"same"`: it may extend beyond both ends, by the larger half at the
            end, so that `ceil(size / stride)` entries come out. Or how far it may extend beyond both ends, less than
            `pool_size`: a number, or a number or a pair `(start, end)` for each spatial dimension.
        data_format: `"channels_last"` (also for `None`) or `"channels_first"`.
        ceil_mode: Whether the last window may extend beyond the padding too, if it starts before the end of the inputs.

    Returns:
        Tensor of the dtype of `inputs`, in the layout of `inputs`. NaN is larger than anything else.

    Raises:
        ArgumentError: The window is larger than the padded inputs, or an option is not accepted.
        ArgumentTypeError: `pool_size`, `strides` or `padding` does not hold ints.
        DTypeError: `inputs` is complex; complex numbers have no order.

    Gradient:
        Goes to the first of several largest entries.

    Example:
        >>> import multiop
        >>> y = multiop.op_max_pool([[[1.0], [3.0], [5.0]]], 2, 2, "same")
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[3.0], [5.0]]]
    """
    padding, data_format = windows.options(padding, data_format)
    return active().op_max_pool(inputs, pool_size, strides, padding, data_format, ceil_mode)


@boundary
def op_adaptive_average_pool(
    inputs: ArrayLike, output_size: int | Sequence[int], data_format: str | None = None
) -> Tensor:
    """Average the entries of each bin, for a result of a given size.

    Bin `i` of `m`, of a dimension of `n` entries, goes from `floor(i * n / m)` up to `ceil((i + 1) * n / m)`.

    Args:
        inputs: `(batch, *space, channels)`, or `(batch, channels, *space)` for `data_format="channels_first"`,
            with 1 to 3 spatial dimensions. Only the batch may be empty; integers and bool become `floatx`.
        output_size: The number of bins: an int, or one for each spatial dimension.
        data_format: `"channels_last"` (also for `None`) or `"channels_first"`.

    Returns:
        Tensor of floats, in the layout of `inputs`.

    Raises:
        ArgumentError: `inputs` or `output_size` has the wrong number of dimensions, or is empty.
        ArgumentTypeError: `output_size` does not hold ints.

    Example:
        >>> import multiop
        >>> y = multiop.op_adaptive_average_pool([[[1.0], [3.0], [5.0]]], 2)
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[2.0], [4.0]]]
    """
    return active().op_adaptive_average_pool(inputs, output_size, windows.data_format(data_format))


@boundary
def op_adaptive_max_pool(inputs: ArrayLike, output_size: int | Sequence[int], data_format: str | None = None) -> Tensor:
    """Take the largest entry of each bin, for a result of a given size.

    Bin `i` of `m`, of a dimension of `n` entries, goes from `floor(i * n / m)` up to `ceil((i + 1) * n / m)`.

    Args:
        inputs: `(batch, *space, channels)`, or `(batch, channels, *space)` for `data_format="channels_first"`,
            with 1 to 3 spatial dimensions. Only the batch may be empty; bool becomes `int32`.
        output_size: The number of bins: an int, or one for each spatial dimension.
        data_format: `"channels_last"` (also for `None`) or `"channels_first"`.

    Returns:
        Tensor of the dtype of `inputs`, in the layout of `inputs`.

    Raises:
        ArgumentError: `inputs` or `output_size` has the wrong number of dimensions, or is empty.
        ArgumentTypeError: `output_size` does not hold ints.
        DTypeError: `inputs` is complex; complex numbers have no order.

    Gradient:
        Goes to the first of several largest entries.

    Example:
        >>> import multiop
        >>> y = multiop.op_adaptive_max_pool([[[1.0], [3.0], [5.0]]], 2)
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[3.0], [5.0]]]
    """
    return active().op_adaptive_max_pool(inputs, output_size, windows.data_format(data_format))


# composites


@boundary
def op_depth_to_space(x: ArrayLike, block_size: int, data_format: str | None = "channels_last") -> Tensor:
    """Rearrange the channels of `x` into blocks of height and width.

    Args:
        x: `(batch, height, width, channels)`, or `(batch, channels, height, width)` for `data_format="channels_first"`.
        block_size: The height and width of a block, at least 2.
        data_format: `"channels_last"` (also for `None`) or `"channels_first"`. Channels are numbered by row in the
            block, column in the block, and channel, for `"channels_first"` by channel, row and column.

    Returns:
        Tensor of the dtype of `x`, with `block_size` times the height and width, and `block_size**2` times fewer
        channels.

    Raises:
        ArgumentError: `x` does not have 4 dimensions or does not divide into blocks, or an option is not accepted.
        ArgumentTypeError: `block_size` is not an int.

    Example:
        >>> import multiop
        >>> y = multiop.op_depth_to_space([[[[1, 2, 3, 4]]]], 2)
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[[1], [2]], [[3], [4]]]]
    """
    first = windows.data_format(data_format) == "channels_first"
    b = windows.block(block_size)
    n, h, w, c = windows.image(op_shape(x), first)
    windows.divides({"channels": c}, b * b)
    if first:
        blocks = op_transpose(op_reshape(x, (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3))
        return op_reshape(blocks, (n, c // (b * b), h * b, w * b))
    blocks = op_transpose(op_reshape(x, (n, h, w, b, b, c // (b * b))), (0, 1, 3, 2, 4, 5))
    return op_reshape(blocks, (n, h * b, w * b, c // (b * b)))


@boundary
def op_space_to_depth(x: ArrayLike, block_size: int, data_format: str | None = "channels_last") -> Tensor:
    """Rearrange blocks of height and width of `x` into channels.

    Args:
        x: `(batch, height, width, channels)`, or `(batch, channels, height, width)` for `data_format="channels_first"`.
        block_size: The height and width of a block, at least 2.
        data_format: `"channels_last"` (also for `None`) or `"channels_first"`. Channels are numbered by row in the
            block, column in the block, and channel, for `"channels_first"` by channel, row and column.

    Returns:
        Tensor of the dtype of `x`, with height and width divided by `block_size`, and `block_size**2` times the
        channels.

    Raises:
        ArgumentError: `x` does not have 4 dimensions or does not divide into blocks, or an option is not accepted.
        ArgumentTypeError: `block_size` is not an int.

    Example:
        >>> import multiop
        >>> y = multiop.op_space_to_depth([[[[1], [2]], [[3], [4]]]], 2)
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[[1, 2, 3, 4]]]]
    """
    first = windows.data_format(data_format) == "channels_first"
    b = windows.block(block_size)
    n, h, w, c = windows.image(op_shape(x), first)
    windows.divides({"height": h, "width": w}, b)
    if first:
        blocks = op_transpose(op_reshape(x, (n, c, h // b, b, w // b, b)), (0, 1, 3, 5, 2, 4))
        return op_reshape(blocks, (n, c * b * b, h // b, w // b))
    blocks = op_transpose(op_reshape(x, (n, h // b, b, w // b, b, c)), (0, 1, 3, 2, 4, 5))
    return op_reshape(blocks, (n, h // b, w // b, c * b * b))
