"""Convolution and sliding windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from multiop._call.boundary import boundary
from multiop._loading import registry
from multiop._loading.registry import active
from multiop._values import windows
from multiop._values.types import ArrayLike, Tensor
from multiop.frontends.conversion import op_shape, operands
from multiop.frontends.shapes import op_pad, op_reshape

_CONTINUED = {"circular": "wrap", "reflect": "reflect"}  # how `op_pad` names them


@boundary
def op_conv(
    inputs: ArrayLike,
    kernel: ArrayLike,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = 1,
    bias: ArrayLike | None = None,
) -> Tensor:
    """Slide `kernel` over `inputs`, without flipping it, and sum the products at each position.

    Args:
        inputs: `(batch, *space, channels)`, or `(batch, channels, *space)` for `data_format="channels_first"`,
            with 1 to 3 spatial dimensions. Only the batch may be empty; bool becomes `int32`.
        kernel: `(*window, channels_in, channels_out)` for either `data_format`. If `inputs` has a multiple of
            `channels_in`, its channels form groups, each of which produces its share of `channels_out`.
        strides: How far the window moves at each step: an int, or one for each spatial dimension.
        padding: `"valid"`: the window stays inside. `"same"`: zeros are added, the larger half at the end, so that
            `ceil(size / stride)` entries come out. `"circular"`, `"reflect"`: `span - 1` entries are added, the larger
            half at the end, from the other end, or mirrored about the outermost entry; `span` is the size of the
            dilated window. Or how many zeros to add at both ends: a number, or a number or a pair `(start, end)` for
            each spatial dimension.
        data_format: `"channels_last"` (also for `None`) or `"channels_first"`.
        dilation_rate: How far apart the entries under the window are: an int, or one for each spatial dimension.
        bias: Tensor `(channels_out,)` to add to the result, or `None`. Adding it afterwards costs more.

    Returns:
        Tensor of the common dtype, in the layout of `inputs`, with `channels_out` channels.

    Raises:
        ArgumentError: Shapes do not fit, the window is larger than unpadded inputs, or an option is not accepted.
        ArgumentTypeError: `strides`, `padding` or `dilation_rate` does not hold ints.

    Example:
        >>> import multiop
        >>> y = multiop.op_conv([[[1.0], [2.0], [4.0]]], [[[1.0]], [[-1.0]]])
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[-1.0], [-2.0]]]
    """
    if not (type(padding) is str and type(data_format) is str and (padding, data_format) in windows.USUAL):
        padding, data_format = windows.options(padding, data_format, *_CONTINUED)
    if isinstance(padding, str) and padding in _CONTINUED:
        inputs, kernel = operands(inputs, kernel)
        around = windows.around(op_shape(inputs), op_shape(kernel), data_format, dilation_rate)
        inputs, padding = op_pad(inputs, around, _CONTINUED[padding]), "valid"
    backend: Any = active() if registry.is_overridden else registry._backend
    if bias is not None:
        inputs, kernel, bias = backend.together(inputs, kernel, bias)
        if not isinstance(kernel.shape, tuple) or getattr(bias, "shape", None) != kernel.shape[-1:]:
            windows.bias(backend.op_shape(bias), backend.op_shape(kernel))
    return backend.op_conv(inputs, kernel, bias, strides, padding, data_format, dilation_rate)


@boundary
def op_conv_transpose(
    inputs: ArrayLike,
    kernel: ArrayLike,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    output_padding: int | Sequence[int] | None = None,
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Place copies of `kernel`, each times an entry of `inputs`, `strides` apart, and sum where they overlap.

    This is the gradient of `op_conv` with the same options in its inputs.

    Args:
        inputs: `(batch, *space, channels)`, or `(batch, channels, *space)` for `data_format="channels_first"`,
            with 1 to 3 spatial dimensions. Only the batch may be empty; bool becomes `int32`.
        kernel: `(*window, channels_out / groups, channels_in)` for either `data_format`.
        strides: How far apart the copies are: an int, or one for each spatial dimension.
        padding: `"valid"`: everything that the copies reach is kept; `"same"`: the ends are cropped, the larger half at
            the end, to `size * stride` entries. Or how many entries to crop from both ends, as many as `op_conv` with
            this `padding` adds: a number, or a number or a pair `(start, end)` for each spatial dimension.
        output_padding: How many entries to add at the end, below `strides`: an int, or one for each dimension of
            space. The result has `(size - 1) * stride + extra` entries, where `extra` is `span + output_padding` for
            `"valid"` and `span % 2 + output_padding` for `"same"`, and `span` is the size of the dilated window. `None`
            gives the size that `padding` implies, and at least `size * stride` entries. Where `padding` is numbers,
            `extra` is `span + output_padding - start - end`, `None` is 0, and `output_padding` may also be below
            `dilation_rate`.
        data_format: `"channels_last"` (also for `None`) or `"channels_first"`.
        dilation_rate: How far apart the entries under the window are: an int, or one for each spatial dimension.
        groups: Into how many groups to divide the channels; each produces its share of `channels_out` from its share of
            `channels_in`.

    Returns:
        Tensor of the common dtype, in the layout of `inputs`, with `channels_out` channels.

    Raises:
        ArgumentError: Shapes do not fit, `output_padding` is not below `strides`, `padding` crops everything, or an
            option is not accepted.
        ArgumentTypeError: `strides`, `padding`, `output_padding`, `dilation_rate` or `groups` does not hold ints.

    Example:
        >>> import multiop
        >>> y = multiop.op_conv_transpose([[[1.0], [2.0]]], [[[1.0]], [[3.0]]], strides=2)
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[1.0], [3.0], [2.0], [6.0]]]
    """
    padding, data_format = windows.options(padding, data_format)
    return active().op_conv_transpose(
        inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, groups
    )


@boundary
def op_unfold(
    x: ArrayLike,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Return the blocks of `x` under a sliding window, each as a column.

    Args:
        x: `(batch, channels, height, width)`.
        kernel_size: Height and width of the window, or an int for both.
        dilation: How far apart the entries under the window are.
        padding: How many zeros to add at each end of height and width.
        stride: How far the window moves at each step.

    Returns:
        `(batch, channels * kernel height * kernel width, blocks)`, of the dtype of `x`, blocks in row-major order.

    Raises:
        ArgumentError: `x` does not have 4 dimensions, or the window is larger than `x`.
        ArgumentTypeError: An option does not hold ints.

    Example:
        >>> import multiop
        >>> y = multiop.op_unfold([[[[1, 2, 3], [4, 5, 6]]]], (2, 1))
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[1, 2, 3], [4, 5, 6]]]
    """
    return active().op_unfold(x, kernel_size, dilation, padding, stride)


@boundary
def op_fold(
    x: ArrayLike,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Put blocks in the layout of `op_unfold` back where they came from, and sum where they overlap.

    Args:
        x: `(batch, channels * kernel height * kernel width, blocks)`; bool becomes `int32`.
        output_size: Height and width of the result, or an int for both.
        kernel_size: Height and width of the window, or an int for both.
        dilation: How far apart the entries under the window are.
        padding: How many zeros `op_unfold` added at each end of height and width.
        stride: How far the window moves at each step.

    Returns:
        `(batch, channels, height, width)`, of the dtype of `x`.

    Raises:
        ArgumentError: `x` does not hold the blocks of such a window.
        ArgumentTypeError: An option does not hold ints.

    Example:
        >>> import multiop
        >>> y = multiop.op_fold([[[1, 2], [10, 20]]], (1, 3), (1, 2))
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[[1, 12, 20]]]]
    """
    return active().op_fold(x, output_size, kernel_size, dilation, padding, stride)


# composites


@boundary
def op_depthwise_conv(
    inputs: ArrayLike,
    kernel: ArrayLike,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = 1,
    bias: ArrayLike | None = None,
) -> Tensor:
    """Convolve each channel of `inputs` with its own kernels.

    Args:
        inputs: `(batch, *space, channels)`, or `(batch, channels, *space)` for `data_format="channels_first"`,
            with 1 to 3 spatial dimensions. Only the batch may be empty; bool becomes `int32`.
        kernel: `(*window, channels, multiplier)`: `multiplier` kernels for each channel.
        strides: How far the window moves at each step: an int, or one for each spatial dimension.
        padding: `"valid"`: the window stays inside. `"same"`: zeros are added, the larger half at the end, so that
            `ceil(size / stride)` entries come out. `"circular"`, `"reflect"`: `span - 1` entries are added, the larger
            half at the end, from the other end, or mirrored about the outermost entry; `span` is the size of the
            dilated window. Or how many zeros to add at both ends: a number, or a number or a pair `(start, end)` for
            each spatial dimension.
        data_format: `"channels_last"` (also for `None`) or `"channels_first"`.
        dilation_rate: How far apart the entries under the window are: an int, or one for each spatial dimension.
        bias: Tensor `(channels * multiplier,)` to add to the result, or `None`. Adding it afterwards costs more.

    Returns:
        Tensor of the common dtype, in the layout of `inputs`, with `channels * multiplier` channels; those that come
        from one channel are adjacent.

    Raises:
        ArgumentError: Shapes do not fit, the window is larger than unpadded inputs, or an option is not accepted.
        ArgumentTypeError: `strides`, `padding` or `dilation_rate` does not hold ints.

    Example:
        >>> import multiop
        >>> y = multiop.op_depthwise_conv([[[1.0, 1.0], [2.0, 3.0]]], [[[1.0], [1.0]], [[1.0], [2.0]]])
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[3.0, 7.0]]]
    """
    inputs, kernel = operands(inputs, kernel)
    windows.depthwise(op_shape(inputs), op_shape(kernel), windows.data_format(data_format))
    *window, channels, multiplier = op_shape(kernel)
    flat = op_reshape(kernel, (*window, 1, channels * multiplier))
    return op_conv(inputs, flat, strides, padding, data_format, dilation_rate, bias)


@boundary
def op_separable_conv(
    inputs: ArrayLike,
    depthwise_kernel: ArrayLike,
    pointwise_kernel: ArrayLike,
    strides: int | Sequence[int] = 1,
    padding: str | int | Sequence[Any] = "valid",
    data_format: str | None = None,
    dilation_rate: int | Sequence[int] = 1,
    bias: ArrayLike | None = None,
) -> Tensor:
    """Convolve each channel of `inputs` with its own kernels, then mix the channels.

    Args:
        inputs: `(batch, *space, channels)`, or `(batch, channels, *space)` for `data_format="channels_first"`,
            with 1 to 3 spatial dimensions. Only the batch may be empty; bool becomes `int32`.
        depthwise_kernel: `(*window, channels, multiplier)`, as for `op_depthwise_conv`.
        pointwise_kernel: `(*ones, channels * multiplier, channels_out)`.
        strides: How far the window moves at each step: an int, or one for each spatial dimension.
        padding: `"valid"`: the window stays inside. `"same"`: zeros are added, the larger half at the end, so that
            `ceil(size / stride)` entries come out. `"circular"`, `"reflect"`: `span - 1` entries are added, the larger
            half at the end, from the other end, or mirrored about the outermost entry; `span` is the size of the
            dilated window. Or how many zeros to add at both ends: a number, or a number or a pair `(start, end)` for
            each spatial dimension.
        data_format: `"channels_last"` (also for `None`) or `"channels_first"`.
        dilation_rate: How far apart the entries under the window are: an int, or one for each spatial dimension.
        bias: Tensor `(channels_out,)` to add to the result, or `None`. Adding it afterwards costs more.

    Returns:
        Tensor of the common dtype, in the layout of `inputs`, with `channels_out` channels.

    Raises:
        ArgumentError: Shapes do not fit, the window is larger than unpadded inputs, or an option is not accepted.
        ArgumentTypeError: `strides`, `padding` or `dilation_rate` does not hold ints.

    Example:
        >>> import multiop
        >>> y = multiop.op_separable_conv([[[1.0], [2.0]]], [[[1.0]], [[1.0]]], [[[5.0]]])
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[[15.0]]]
    """
    windows.pointwise(op_shape(depthwise_kernel), op_shape(pointwise_kernel))
    inputs, depthwise_kernel, pointwise_kernel = operands(inputs, depthwise_kernel, pointwise_kernel)
    y = op_depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return op_conv(y, pointwise_kernel, 1, "valid", data_format, 1, bias)
