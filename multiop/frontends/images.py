"""Images: colours, cropping and resizing, warping, filtering."""

from __future__ import annotations

import functools
import itertools
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.built_in import hide_from_tracer
from multiop._loading.registry import active, composite
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, Tensor
from multiop.frontends.conversion import (
    on_device_of,
    op_cast,
    op_convert_to_tensor,
    op_dtype,
    op_shape,
    operands,
    raised_to_0,
)
from multiop.frontends.creation import op_arange, op_full_like
from multiop.frontends.elementwise import (
    op_abs,
    op_add,
    op_clip,
    op_floor,
    op_maximum,
    op_mod,
    op_multiply,
    op_round,
    op_sin,
    op_square,
    op_subtract,
)
from multiop.frontends.indexing import op_get_item, op_take
from multiop.frontends.logical import op_equal, op_isnan, op_where
from multiop.frontends.products import op_matmul
from multiop.frontends.reduction import op_max, op_mean, op_min, op_sum
from multiop.frontends.shapes import (
    op_concatenate,
    op_expand_dims,
    op_moveaxis,
    op_pad,
    op_reshape,
    op_split,
    op_stack,
    op_transpose,
)

FILL_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")
ORDERS = {"nearest": 0, "bilinear": 1}

# composites


@boundary
@composite
def op_image_rgb_to_grayscale(images: ArrayLike, data_format: str | None = None) -> Tensor:
    """Convert colour images to grey, with the weights 0.2989, 0.5870 and 0.1140 for red, green and blue.

    Args:
        images: Integer or float tensor of shape `(height, width, channels)`, optionally with a batch axis; 3 channels,
            or 1 for an image that is already grey.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, height, width)`.

    Returns:
        Tensor of the dtype of `images`, with 1 channel; integers are computed in `float32` and rounded.

    Raises:
        ArgumentError: There are neither 3 channels nor 1, or the number of dimensions does not fit.
        DTypeError: `images` are bool or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_image_rgb_to_grayscale([[[100, 200, 50]]])).tolist()
        [[[153]]]
    """
    images = op_convert_to_tensor(images)
    _, channel = _image_axes(images, data_format)
    dtype, working = op_dtype(images), _working(images)
    if op_shape(images)[channel] == 1:
        return images
    red, green, blue = _channels(op_cast(images, working), channel)
    return _restore_dtype(red * 0.2989 + green * 0.5870 + blue * 0.1140, dtype)


@boundary
@composite
def op_image_rgb_to_hsv(images: ArrayLike, data_format: str | None = None) -> Tensor:
    """Convert red, green and blue to hue, saturation and value.

    Args:
        images: Float tensor of shape `(height, width, 3)`, optionally with a batch axis, from 0 to 1.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(3, height, width)`.

    Returns:
        Tensor of the shape and dtype of `images`, from 0 to 1: the hue is 0 for red, 1/3 for green, 2/3 for blue, and
        0 for grey, which has no hue.

    Raises:
        ArgumentError: There are not 3 channels, or the number of dimensions does not fit.
        DTypeError: `images` are not floats, or are complex.

    Gradient:
        0 for the hue of a grey pixel.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_image_rgb_to_hsv([[[0.0, 0.5, 0.5]]])).tolist()
        [[[0.5, 1.0, 0.5]]]
    """
    images = op_convert_to_tensor(images)
    _, channel = _image_axes(images, data_format)
    dtype = _float_dtype(images)
    images = op_cast(images, _working(images))
    red, green, blue = _channels(images, channel)
    value, least = op_max(images, channel, True), op_min(images, channel, True)
    spread = value - least
    is_grey = spread == 0  # NaN counts as a colour here, so that it stays NaN
    safe_spread = op_where(is_grey, 1.0, spread)
    saturation = op_where(value <= 0, 0.0, spread / op_where(value <= 0, 1.0, value))
    turned = op_where(op_equal(value, green), (blue - red) / safe_spread + 2.0, (red - green) / safe_spread + 4.0)
    turned = op_where(op_equal(value, red), (green - blue) / safe_spread, turned)
    hue = op_where(is_grey, 0.0, turned) / 6.0
    hue = op_where(hue < 0, hue + 1.0, hue)
    return op_cast(op_concatenate([hue, saturation, value], channel), dtype)


@boundary
@composite
def op_image_hsv_to_rgb(images: ArrayLike, data_format: str | None = None) -> Tensor:
    """Convert hue, saturation and value to red, green and blue.

    Args:
        images: Float tensor of shape `(height, width, 3)`, optionally with a batch axis, from 0 to 1; the hue is
            periodic, so 1.25 is 0.25.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(3, height, width)`.

    Returns:
        Tensor of the shape and dtype of `images`.

    Raises:
        ArgumentError: There are not 3 channels, or the number of dimensions does not fit.
        DTypeError: `images` are not floats, or are complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_image_hsv_to_rgb([[[0.5, 0.5, 1.0]]])).tolist()
        [[[0.5, 1.0, 1.0]]]
    """
    images = op_convert_to_tensor(images)
    _, channel = _image_axes(images, data_format)
    dtype = _float_dtype(images)
    hue, saturation, value = _channels(op_cast(images, _working(images)), channel)
    sixth = op_mod(hue, 1.0) * 6.0
    shares = [
        op_clip(op_abs(sixth - 3.0) - 1.0, 0.0, 1.0),
        op_clip(2.0 - op_abs(sixth - 2.0), 0.0, 1.0),
        op_clip(2.0 - op_abs(sixth - 4.0), 0.0, 1.0),
    ]
    return op_cast(op_concatenate([value * (1.0 - saturation * (1.0 - s)) for s in shares], channel), dtype)


@boundary
def op_image_crop(
    images: ArrayLike,
    top_cropping: int | None = None,
    left_cropping: int | None = None,
    bottom_cropping: int | None = None,
    right_cropping: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Cut off the borders of images.

    Exactly two of `top_cropping`, `bottom_cropping` and `target_height` must be given, and likewise for the width.

    Args:
        images: Tensor of any dtype and shape `(height, width, channels)`, optionally with a batch axis.
        top_cropping: How many rows to cut off at the top.
        left_cropping: How many columns to cut off on the left.
        bottom_cropping: How many rows to cut off at the bottom.
        right_cropping: How many columns to cut off on the right.
        target_height: Height of the result.
        target_width: Width of the result.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, height, width)`.

    Returns:
        Tensor of the dtype of `images`.

    Raises:
        ArgumentError: Not exactly two of the three numbers are given, or they do not fit the images.

    Example:
        >>> import multiop
        >>> images = [[[1], [2], [3]], [[4], [5], [6]]]
        >>> cropped = multiop.op_image_crop(images, 1, 1, target_height=1, target_width=2)
        >>> multiop.op_convert_to_numpy(cropped).tolist()
        [[[5], [6]]]
    """
    images = op_convert_to_tensor(images)
    (rows, columns), _ = _image_axes(images, data_format)
    height, width = _sizes(images, (rows, columns))
    top, _, height = _borders(top_cropping, bottom_cropping, target_height, height, ("top", "bottom"), -1)
    left, _, width = _borders(left_cropping, right_cropping, target_width, width, ("left", "right"), -1)
    return _slice_axis(_slice_axis(images, rows, top, height), columns, left, width)


@boundary
def op_image_pad(
    images: ArrayLike,
    top_padding: int | None = None,
    left_padding: int | None = None,
    bottom_padding: int | None = None,
    right_padding: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Add borders of zeros to images.

    Exactly two of `top_padding`, `bottom_padding` and `target_height` must be given, and likewise for the width.

    Args:
        images: Tensor of any dtype and shape `(height, width, channels)`, optionally with a batch axis.
        top_padding: How many rows to add at the top.
        left_padding: How many columns to add on the left.
        bottom_padding: How many rows to add at the bottom.
        right_padding: How many columns to add on the right.
        target_height: Height of the result.
        target_width: Width of the result.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, height, width)`.

    Returns:
        Tensor of the dtype of `images`.

    Raises:
        ArgumentError: Not exactly two of the three numbers are given, or they do not fit the images.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_image_pad([[[1], [2]]], 1, 0, 0, target_width=3)).tolist()
        [[[0], [0], [0]], [[1], [2], [0]]]
    """
    images = op_convert_to_tensor(images)
    (rows, columns), _ = _image_axes(images, data_format)
    height, width = _sizes(images, (rows, columns))
    top, bottom, _ = _borders(top_padding, bottom_padding, target_height, height, ("top", "bottom"), 1)
    left, right, _ = _borders(left_padding, right_padding, target_width, width, ("left", "right"), 1)
    return _pad_axes(images, {rows: (top, bottom), columns: (left, right)}, 0)


@boundary
@composite
def op_image_resize(
    images: ArrayLike,
    size: Sequence[int],
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str | None = None,
) -> Tensor:
    """Resize images; pixels are squares whose values are those at their centres.

    Args:
        images: Integer or float tensor of shape `(height, width, channels)`, optionally with a batch axis; for
            `"nearest"` of any dtype.
        size: Height and width of the result.
        interpolation: `"nearest"`, `"bilinear"`, `"bicubic"` (Keys's kernel, a = -0.5), `"lanczos3"` or `"lanczos5"`.
            Pixels beyond the edge have no weight: the weights inside are normalized to sum to 1.
        antialias: Whether to widen the kernel by the factor by which the image shrinks; `"nearest"` has no kernel.
        crop_to_aspect_ratio: Whether to crop first, evenly on both sides, to the new aspect ratio.
        pad_to_aspect_ratio: Whether to pad first, evenly on both sides, to the new aspect ratio.
        fill_mode: `"constant"`: the padding holds `fill_value`.
        fill_value: Number in the padding.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, height, width)`.

    Returns:
        Tensor of the dtype of `images`; integers are computed in `float32`, rounded and clipped to the dtype's range.

    Raises:
        ArgumentError: An option is unknown, a size is not positive, the images are empty, or both ways of
            keeping the aspect ratio are set.
        DTypeError: `images` are bool or complex, and the mode interpolates.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_image_resize([[[0.0], [4.0]]], (1, 4))).tolist()
        [[[0.0], [1.0], [3.0], [4.0]]]
    """
    images = op_convert_to_tensor(images)
    axes, _ = _image_axes(images, data_format)
    target = _pair(size, "size")
    args.choice(interpolation, ("nearest", *_RESIZE_KERNELS), "interpolation")
    args.choice(fill_mode, ("constant",), "fill_mode")
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise errors.ArgumentError("only one of crop_to_aspect_ratio and pad_to_aspect_ratio can be true")
    dtype = op_dtype(images)
    fill_value = _fill(fill_value, dtype)
    height, width = _sizes(images, axes)
    if height == 0 or width == 0:
        raise errors.ArgumentError(f"images of {height} x {width} pixels have nothing to resize")
    same_ratio = width * target[0] // target[1], height * target[1] // target[0]
    if crop_to_aspect_ratio:
        for axis, n, wanted in zip(axes, (height, width), same_ratio, strict=True):
            kept = min(n, max(wanted, 1))
            images = _slice_axis(images, axis, (n - kept) // 2, kept)
    elif pad_to_aspect_ratio:
        added = [(max(wanted, n) - n) // 2 for n, wanted in zip((height, width), same_ratio, strict=True)]
        images = _pad_axes(images, {axis: (n, n) for axis, n in zip(axes, added, strict=True)}, fill_value)
    if interpolation == "nearest":
        for axis, old, new in zip(axes, _sizes(images, axes), target, strict=True):
            nearest = (2 * np.arange(new) + 1) * old // (2 * new)  # exact, in integers
            images = op_take(images, nearest.astype(np.int32), axis) if old != new else images
        return images
    images = _resize_axes(op_cast(images, _working(images)), axes, target, interpolation, antialias)
    return _restore_dtype(images, dtype)


@boundary
@composite
def op_image_affine_transform(
    images: ArrayLike,
    transform: ArrayLike,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Tensor:
    """Warp images by a projective map, which gives for each pixel of the result its place in the image.

    The row `[a0, a1, a2, b0, b1, b2, c0, c1]` sends the pixel in column `x` and row `y` of the result to column
    `(a0 x + a1 y + a2) / k` and row `(b0 x + b1 y + b2) / k` of the image, where `k = c0 x + c1 y + 1`.

    Args:
        images: Integer or float tensor of shape `(height, width, channels)`, optionally with a batch axis; for
            `"nearest"` of any dtype but complex.
        transform: Tensor of shape `(8,)`, or `(batch, 8)` for one map per image.
        interpolation: `"nearest"` or `"bilinear"`.
        fill_mode: What is outside the image, as for `op_image_map_coordinates`.
        fill_value: Value outside the image in the mode `"constant"`.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, height, width)`.

    Returns:
        Tensor of the shape and dtype of `images`.

    Raises:
        ArgumentError: An option is unknown, or the shapes do not fit.
        DTypeError: `images` are complex, or they are bool and the mode interpolates.

    Gradient:
        Goes to `images` and to `transform`, for `"nearest"` only to `images`.

    Example:
        >>> import multiop
        >>> shift = [1.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0]
        >>> warped = multiop.op_image_affine_transform([[[0.0], [4.0], [8.0]]], shift, fill_mode="nearest")
        >>> multiop.op_convert_to_numpy(warped).tolist()
        [[[2.0], [6.0], [8.0]]]
    """
    images, transform = operands(images, transform)
    axes, channel = _image_axes(images, data_format)
    order = ORDERS[args.choice(interpolation, tuple(ORDERS), "interpolation")]
    shape = op_shape(transform)
    if len(shape) not in (1, 2) or shape[-1] != 8:
        raise errors.ArgumentError(f"transform must be of shape (8,) or (batch, 8), got {shape}")
    _check_batch(images, shape[:-1], "transform")
    transform = op_reshape(op_cast(transform, _working(transform, "transform")), (-1, 8, 1, 1))
    a0, a1, a2, b0, b1, b2, c0, c1 = [transform[:, i] for i in range(8)]
    x, y = _grid(*_sizes(images, axes))
    across, down = op_multiply(a0, x) + op_multiply(a1, y) + a2, op_multiply(b0, x) + op_multiply(b1, y) + b2
    k = op_multiply(c0, x) + op_multiply(c1, y) + 1.0
    return _look_up(images, axes, channel, across / k, down / k, order, fill_mode, fill_value)


@boundary
@composite
def op_image_perspective_transform(
    images: ArrayLike,
    start_points: ArrayLike,
    end_points: ArrayLike,
    interpolation: str = "bilinear",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Tensor:
    """Warp images by the projective map that sends four points to four others.

    Args:
        images: Integer or float tensor of shape `(height, width, channels)`, optionally with a batch axis; for
            `"nearest"` of any dtype but complex.
        start_points: Tensor of shape `(4, 2)`, or `(batch, 4, 2)` for points per image: the columns and rows of
            four points in the image, no three of them on a line.
        end_points: Tensor of the same shape: the positions of these points in the result, no three on a line.
        interpolation: `"nearest"` or `"bilinear"`.
        fill_value: Value outside the image.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, height, width)`.

    Returns:
        Tensor of the shape and dtype of `images`; NaN (0 for integers) if three points turn out to be on a line.

    Raises:
        ArgumentError: An option is unknown, or the shapes do not fit.
        DTypeError: `images` are complex, or they are bool and the mode interpolates.

    Gradient:
        Goes to `images` and to the points, for `"nearest"` only to `images`.

    Example:
        >>> import multiop
        >>> corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
        >>> turned = [corners[i] for i in (1, 3, 0, 2)]
        >>> warped = multiop.op_image_perspective_transform([[[1.0], [2.0]], [[3.0], [4.0]]], corners, turned)
        >>> multiop.op_convert_to_numpy(warped).tolist()
        [[[3.0], [1.0]], [[4.0], [2.0]]]
    """
    images, start_points, end_points = operands(images, start_points, end_points)
    axes, channel = _image_axes(images, data_format)
    order = ORDERS[args.choice(interpolation, tuple(ORDERS), "interpolation")]
    shape = op_shape(start_points)
    if len(shape) not in (2, 3) or shape[-2:] != (4, 2):
        raise errors.ArgumentError(f"start_points must be of shape (4, 2) or (batch, 4, 2), got {shape}")
    if op_shape(end_points) != shape:
        raise errors.ArgumentError(f"end_points must be of the shape of start_points, {shape}")
    _check_batch(images, shape[:-2], "start_points")
    starts, ends = _corners(start_points, "start_points"), _corners(end_points, "end_points")
    across, down = _project(_grid(*_sizes(images, axes)), starts, ends)
    return _look_up(images, axes, channel, across, down, order, "constant", fill_value)


@boundary
@composite
def op_image_map_coordinates(
    inputs: ArrayLike,
    coordinates: ArrayLike,
    order: int,
    fill_mode: str = "constant",
    fill_value: float = 0,
) -> Tensor:
    """Look up values at fractional indices, as `scipy.ndimage.map_coordinates` does.

    Args:
        inputs: Integer or float tensor of at least one dimension; for `order=0` of any dtype but complex.
        coordinates: Tensor of shape `(dimensions of inputs, ...)`: for each value an index into each dimension.
        order: 0 for the nearest entry, 1 for linear interpolation.
        fill_mode: What is beyond the centres of the outermost entries. `"constant"`: `fill_value`, without
            interpolation towards it; `"nearest"`: the outermost entry; `"mirror"` and `"reflect"`: the entries,
            mirrored about the centre or about the edge of the outermost entry; `"wrap"`: the entries repeated, with
            the first one on top of the last one.
        fill_value: Value outside in the mode `"constant"`.

    Returns:
        Tensor of the shape of `coordinates` without its first dimension, and of the dtype of `inputs`. NaN coordinates
        give NaN (0 for integers), and so do infinite ones that cannot be folded back.

    Raises:
        ArgumentError: An option is unknown, the shapes do not fit, or `inputs` is empty.
        DTypeError: `inputs` are complex, or they are bool and the mode interpolates.

    Gradient:
        Goes to `inputs` and to `coordinates`, for `order=0` only to `inputs`. At an integer coordinate it is the slope
        on the side of larger coordinates, at the last entry that on the side of smaller ones.

    Example:
        >>> import multiop
        >>> found = multiop.op_image_map_coordinates([0.0, 10.0, 20.0], [[0.5, 2.0, -0.75]], 1, "mirror")
        >>> multiop.op_convert_to_numpy(found).tolist()
        [5.0, 20.0, 7.5]
    """
    inputs, coordinates = operands(inputs, coordinates)
    shape, wanted = op_shape(inputs), op_shape(coordinates)
    if not shape or len(wanted) < 2 or wanted[0] != len(shape):
        raise errors.ArgumentError(
            f"coordinates must be of shape ({len(shape)}, ...) for inputs of {len(shape)} dimensions, got {wanted}"
        )
    args.choice(order, (0, 1), "order")
    coordinates = op_cast(coordinates, _working(coordinates, "coordinates"))
    sizes = _sizes(inputs, range(len(shape)))
    places = [coordinates[i] for i in range(len(shape))]
    found = _looked_up(op_reshape(inputs, (-1, 1)), sizes, places, order, fill_mode, fill_value, 0)
    return found[..., 0]


@boundary
@composite
def op_image_extract_patches(
    images: ArrayLike,
    size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Cut patches out of images, or out of volumes if `size` has length 3.

    Args:
        images: Tensor of any dtype and shape `(height, width, channels)`, optionally with a batch axis; volumes as
            for `op_image_extract_patches_3d`.
        size: Height and width of a patch, or an int for both.
        strides: Distance from one patch to the next, down and across; by default `size`.
        dilation_rate: Distance from one pixel of a patch to the next.
        padding: `"valid"`: patches are inside the image; `"same"`: there is a patch every `strides` pixels, with
            zeros added evenly around the image (an odd one at the bottom and on the right).
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, height, width)`.

    Returns:
        Tensor of the dtype of `images`, with the entries of a patch, by row, column and channel, in place of the
        channels.

    Raises:
        ArgumentError: A number is not positive, `padding` is unknown, or no patch fits.

    Gradient:
        Adds up where patches overlap.

    Example:
        >>> import multiop
        >>> images = [[[1], [2], [3]], [[4], [5], [6]]]
        >>> multiop.op_convert_to_numpy(multiop.op_image_extract_patches(images, 2, strides=1)).tolist()
        [[[1, 2, 4, 5], [2, 3, 5, 6]]]
    """
    spatial = 3 if isinstance(size, (tuple, list)) and len(size) == 3 else 2
    return _patches(op_convert_to_tensor(images), spatial, size, strides, dilation_rate, padding, data_format)


@boundary
@composite
def op_image_extract_patches_3d(
    volumes: ArrayLike,
    size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    dilation_rate: int | Sequence[int] = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Cut patches out of volumes.

    Args:
        volumes: Tensor of any dtype and shape `(depth, height, width, channels)`, optionally with a batch axis.
        size: Depth, height and width of a patch, or an int for all three.
        strides: Distance from one patch to the next along each of them; by default `size`.
        dilation_rate: Distance from one entry of a patch to the next.
        padding: `"valid"`: patches are inside the volume; `"same"`: there is a patch every `strides` entries, with
            zeros added evenly around the volume (an odd one at the end).
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, depth, height, width)`.

    Returns:
        Tensor of the dtype of `volumes`, with the entries of a patch, by depth, row, column and channel, in place of
        the channels.

    Raises:
        ArgumentError: A number is not positive, `padding` is unknown, or no patch fits.

    Gradient:
        Adds up where patches overlap.

    Example:
        >>> import multiop
        >>> volumes = [[[[1], [2], [3]]]]
        >>> multiop.op_convert_to_numpy(multiop.op_image_extract_patches_3d(volumes, (1, 1, 2), strides=1)).tolist()
        [[[[1, 2], [2, 3]]]]
    """
    return _patches(op_convert_to_tensor(volumes), 3, size, strides, dilation_rate, padding, data_format)


@boundary
@composite
def op_image_reconstruct_patches(
    patches: ArrayLike,
    size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    strides: int | Sequence[int] | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """Reassemble images from patches: the inverse of `op_image_extract_patches` for patches that do not overlap.

    Args:
        patches: Tensor of any dtype and shape `(rows, columns, entries)`, or `(layers, rows, columns, entries)` if
            `size` has length 3, with an optional batch dimension in front. The entries of a patch are ordered by
            row, column and channel.
        size: Height and width of a patch, or depth, height and width; an int is both height and width.
        output_size: Height and width of the images, or depth, height and width. With `"valid"` it can be omitted: it
            must be the size that the patches cover.
        strides: The distance from one patch to the next, which must be `size`, the default.
        padding: `"valid"`: the patches lie inside the image; `"same"`: the padding around the image is cut off.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(entries, rows, columns)`.

    Returns:
        Tensor of the dtype of `patches` and shape `(height, width, channels)`, or `(depth, height, width, channels)`,
        with the batch dimension of `patches` in front, if any.

    Raises:
        ArgumentError: A size is not positive, `strides` is not `size`, `padding` is unknown, or the shapes do not
            fit.

    Example:
        >>> import multiop
        >>> patches = [[[1, 2, 5, 6], [3, 4, 7, 8]]]
        >>> images = multiop.op_image_reconstruct_patches(patches, 2)
        >>> multiop.op_convert_to_numpy(multiop.op_squeeze(images, -1)).tolist()
        [[1, 2, 3, 4], [5, 6, 7, 8]]
    """
    spatial = 3 if isinstance(size, (tuple, list)) and len(size) == 3 else 2
    patches = op_convert_to_tensor(patches)
    axes, channel = _image_axes(patches, data_format, spatial, "patches")
    kernel = _tuple(size, spatial, "size")
    if strides is not None and _tuple(strides, spatial, "strides") != kernel:
        raise errors.ArgumentError(f"strides must be the size {kernel}, got {strides}: patches must not overlap")
    is_same = args.choice(padding, ("valid", "same"), "padding") == "same"
    shape, counts = op_shape(patches), _sizes(patches, axes)
    covered = [count * k for count, k in zip(counts, kernel, strict=True)]
    if output_size is None and is_same:
        raise errors.ArgumentError("output_size is needed with padding='same'")
    sizes = covered if output_size is None else _tuple(output_size, spatial, "output_size")
    if [-(-n // k) for n, k in zip(sizes, kernel, strict=True)] != counts or not (is_same or sizes == covered):
        raise errors.ArgumentError(f"output_size {sizes} does not fit patches that cover {covered}")
    channels, rest = divmod(shape[channel], math.prod(kernel))
    if rest:
        raise errors.ArgumentError(f"patches of {shape[channel]} entries do not have the size {kernel}")
    apart = op_reshape(patches, (*shape[:channel], *kernel, channels, *shape[channel + 1 :]))
    is_last, batch = channel > axes[0], min(axes[0], channel)
    grid = [axis if is_last else axis + spatial for axis in axes]
    both = [place for i, axis in enumerate(grid) for place in (axis, channel + i)]
    order = [*both, channel + spatial] if is_last else [channel + spatial, *both]
    whole = op_reshape(
        op_transpose(apart, [*range(batch), *order]),
        (*shape[:batch], *((*covered, channels) if is_last else (channels, *covered))),
    )
    starts = [(n - m) // 2 for n, m in zip(covered, sizes, strict=True)]
    cut = tuple(slice(start, start + m) for start, m in zip(starts, sizes, strict=True))
    return op_get_item(whole, (*[slice(None)] * axes[0], *cut))


@boundary
@composite
def op_image_gaussian_blur(
    images: ArrayLike,
    kernel_size: Sequence[int] = (3, 3),
    sigma: Sequence[float] = (1.0, 1.0),
    data_format: str | None = None,
) -> Tensor:
    """Blur images with a Gaussian kernel whose weights sum to 1; the image is padded with zeros.

    Args:
        images: Integer or float tensor of shape `(height, width, channels)`, optionally with a batch axis.
        kernel_size: Height and width of the kernel, in pixels.
        sigma: Standard deviations of the kernel, down and across, in pixels.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, height, width)`.

    Returns:
        Tensor of the shape and dtype of `images`; integers are computed in `float32` and rounded.

    Raises:
        ArgumentError: A number is not positive, or the number of dimensions does not fit.
        ArgumentTypeError: `sigma` is a tensor, to which no gradient would flow.
        DTypeError: `images` are bool or complex.

    Example:
        >>> import multiop
        >>> blurred = multiop.op_image_gaussian_blur([[[0], [0], [256], [0]]], (1, 3), (1.0, 0.5))
        >>> multiop.op_convert_to_numpy(blurred).tolist()
        [[[0], [27], [201], [27]]]
    """
    images = op_convert_to_tensor(images)
    axes, _ = _image_axes(images, data_format)
    dtype = op_dtype(images)
    images = op_cast(images, _working(images))
    for axis, n, s in zip(axes, _pair(kernel_size, "kernel_size"), _positive(sigma, "sigma"), strict=True):
        around = _pad_axes(images, {axis: ((n - 1) // 2, n // 2)}, 0)
        images = _correlate(around, axis, _gaussian(n, s))
    return _restore_dtype(images, dtype)


@boundary
@composite
def op_image_sobel_edges(images: ArrayLike, data_format: str | None = None) -> Tensor:
    """Return the gradients of brightness by Sobel's filters, as `scipy.ndimage.sobel` does.

    The outermost pixels are repeated around the image.

    Args:
        images: Integer or float tensor of shape `(height, width, channels)`, optionally with a batch axis.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, height, width)`.

    Returns:
        Tensor of the shape of `images` with one more dimension of size 2: the change downwards and the change to the
        right. It has the dtype of `images`, `floatx` for integers.

    Raises:
        ArgumentError: The number of dimensions does not fit, or the images are empty.
        DTypeError: `images` are bool or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_image_sobel_edges([[[0.0], [1.0], [3.0]]])).tolist()
        [[[[0.0, 4.0]], [[0.0, 12.0]], [[0.0, 8.0]]]]
    """
    images = op_convert_to_tensor(images)
    axes, _ = _image_axes(images, data_format)
    dtype = dtypes.to_floating(op_dtype(images))
    images = op_cast(images, _working(images))
    if 0 in _sizes(images, axes):
        raise errors.ArgumentError("images without pixels have no edges")
    around = images
    for axis, n in zip(axes, _sizes(images, axes), strict=True):
        first, last = _slice_axis(around, axis, 0, 1), _slice_axis(around, axis, n - 1, 1)
        around = op_concatenate([first, around, last], axis)
    edges = []
    for along, other in (axes, axes[::-1]):
        smooth = _correlate(around, other, (1.0, 2.0, 1.0))
        size = op_shape(images)[along]
        edges.append(_slice_axis(smooth, along, 2, size) - _slice_axis(smooth, along, 0, size))
    return op_cast(op_stack(edges, -1), dtype)


@boundary
@composite
def op_image_ssim(
    image1: ArrayLike,
    image2: ArrayLike,
    max_val: float = 1.0,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_format: str | None = None,
) -> Tensor:
    """Return the structural similarity of two images, averaged over windows and channels.

    Args:
        image1: Integer or float tensor of shape `(height, width, channels)`, optionally with a batch axis.
        image2: Tensor of the same shape.
        max_val: Difference between the largest and the smallest value that a pixel can have.
        filter_size: Height and width of the windows.
        filter_sigma: Standard deviation of the Gaussian weights in a window, in pixels.
        k1: Constant that keeps the comparison of brightness stable.
        k2: Constant that keeps the comparison of contrast stable.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, height, width)`.

    Returns:
        Scalar, or tensor of shape `(batch,)`, of the promoted dtype, `floatx` for integers; 1 for equal images.

    Raises:
        ArgumentError: The shapes differ, a window does not fit, or a number is not positive.
        DTypeError: The images are bool or complex.

    Example:
        >>> import multiop
        >>> image = multiop.op_reshape(multiop.op_arange(16.0), (4, 4, 1))
        >>> round(float(multiop.op_image_ssim(image, 15.0 - image, max_val=15.0, filter_size=3)), 4)
        -0.8451

    Source: Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment: from error visibility to structural similarity",
    IEEE Transactions on Image Processing 13 (2004).
    """
    image1, image2 = operands(image1, image2)
    axes, channel = _image_axes(image1, data_format, name="image1")
    if op_shape(image1) != op_shape(image2):
        raise errors.ArgumentError(f"image2 must be of the shape of image1, {op_shape(image1)}")
    (n,) = _check_ints([filter_size], 1, "filter_size")
    sigma = _positive([filter_sigma], "filter_sigma")
    (span,), (k1,), (k2,) = _positive([max_val], "max_val"), _positive([k1], "k1"), _positive([k2], "k2")
    if min(_sizes(image1, axes)) < n:
        raise errors.ArgumentError(f"filter_size {n} does not fit in images of {_sizes(image1, axes)} pixels")
    weights = _gaussian(n, *sigma)
    dtype = dtypes.to_floating(dtypes.result_type(op_dtype(image1), op_dtype(image2)))
    working = dtypes.result_type(_working(image1, "image1"), _working(image2, "image2"))
    x, y = op_cast(image1, working), op_cast(image2, working)
    difference = x - y
    windows = op_stack([x, y, op_square(x) + op_square(y), difference, op_square(difference)])
    for axis in axes:
        windows = _correlate(windows, axis + 1, weights)
    mean1, mean2, squares, shift, error = [windows[i] for i in range(5)]
    both, (c1, c2) = op_square(mean1) + op_square(mean2), [k * span * (k * span) for k in (k1, k2)]
    # what is taken from 1 is not negative, which a difference of squares may be when it is rounded
    brightness = 1 - op_square(shift) / (both + c1)
    contrast = 1 - raised_to_0(error - op_square(shift)) / (raised_to_0(squares - both) + c2)
    return op_cast(op_mean(brightness * contrast, (*axes, channel)), dtype)


@boundary
def op_image_elastic_transform(
    images: ArrayLike,
    alpha: float = 20.0,
    sigma: float = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: float = 0.0,
    seed: int | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Warp images by random displacements that vary smoothly.

    The displacements are normally distributed numbers with the standard deviation `sigma`, blurred by a Gaussian kernel
    of the same standard deviation, times `alpha`. NumPy draws them on the host, so they are the same on every backend;
    in compiled code they are drawn once, when it is traced.

    Args:
        images: Integer or float tensor of shape `(height, width, channels)`, optionally with a batch axis; for
            `"nearest"` of any dtype but complex.
        alpha: Factor of the displacements.
        sigma: Standard deviation of the kernel, in pixels.
        interpolation: `"nearest"` or `"bilinear"`.
        fill_mode: What is outside the image, as for `op_image_map_coordinates`.
        fill_value: Value outside the image in the mode `"constant"`.
        seed: Non-negative int that determines the displacements; by default they differ from call to call.
        data_format: `"channels_last"`, the default, or `"channels_first"` for `(channels, height, width)`.

    Returns:
        Tensor of the shape and dtype of `images`.

    Raises:
        ArgumentError: An option is unknown, or a number is out of its range.
        DTypeError: `images` are complex, or they are bool and the mode interpolates.

    Example:
        >>> import multiop
        >>> images = multiop.op_ones((4, 4, 1))
        >>> multiop.op_shape(multiop.op_image_elastic_transform(images, seed=7))
        (4, 4, 1)
    """
    images = op_convert_to_tensor(images)
    axes, channel = _image_axes(images, data_format)
    order = ORDERS[args.choice(interpolation, tuple(ORDERS), "interpolation")]
    (spread,) = _positive([sigma], "sigma")
    if seed is not None:
        (seed,) = _check_ints([seed], 0, "seed")
    batch = _sizes(images, range(len(op_shape(images)) - 3))
    height, width = _sizes(images, axes)
    field = _displacements(seed, (2, *batch, height, width), spread) * _number(alpha, "alpha")
    x, y = _grid(height, width)
    # with the shape and on the device of the values that are looked up
    plane = op_sum(op_cast(images, dtypes.result_type(op_dtype(images), "float32")), channel)
    across, down = op_full_like(plane, field[0] + x[0]), op_full_like(plane, field[1] + y[0])
    return _look_up(images, axes, channel, across, down, order, fill_mode, fill_value)


@boundary
@composite
def op_image_scale_and_translate(
    images: ArrayLike,
    output_shape: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    spatial_dims: Sequence[int],
    method: str,
    antialias: bool = True,
) -> Tensor:
    """Resample a tensor along some of its dimensions, scaled and moved.

    The position `p` of a dimension moves to `p * scale + translation`, where the entry with index `i` extends from `i`
    to `i + 1`. Entries of the result that come from outside are 0.

    Args:
        images: Integer or float tensor of any shape.
        output_shape: Shape of the result, equal to that of `images` except in `spatial_dims`.
        scale: Tensor of shape `(len(spatial_dims),)`, positive.
        translation: Tensor of the same shape, in entries of the result.
        spatial_dims: The dimensions that are resampled.
        method: The kernel: `"linear"` (`"bilinear"`, `"trilinear"`, `"triangle"`), `"cubic"` (`"bicubic"`,
            `"tricubic"`; Keys's, a = -0.5), `"lanczos3"` or `"lanczos5"`.
        antialias: Whether to widen the kernel by the factor by which the image shrinks.

    Returns:
        Tensor of the dtype of `images`; integers are computed in `float32`, rounded and clipped to the dtype's range.
        Each entry is a sum over a whole dimension, so one NaN spreads along it.

    Raises:
        ArgumentError: `method` is unknown, or the shapes do not fit.
        DTypeError: `images` are bool or complex.

    Gradient:
        Goes to `images`, `scale` and `translation`.

    Example:
        >>> import multiop
        >>> wider = multiop.op_image_scale_and_translate([0.0, 4.0], (4,), [2.0], [0.0], (0,), "linear")
        >>> multiop.op_convert_to_numpy(wider).tolist()
        [0.0, 1.0, 3.0, 4.0]
    """
    images, scale, translation = operands(images, scale, translation)
    shape, wanted = op_shape(images), args.countable(args.size(output_shape, "output_shape"), "output_shape")
    dims = args.axes(spatial_dims, len(shape), "spatial_dims")
    kernel = _METHODS[args.choice(method, tuple(_METHODS), "method")]
    if len(wanted) != len(shape) or any(
        old != new for d, (old, new) in enumerate(zip(shape, wanted, strict=True)) if d not in dims
    ):
        raise errors.ArgumentError(f"output_shape {wanted} must be {shape} but for the dimensions {dims}")
    for name, vector in (("scale", scale), ("translation", translation)):
        if op_shape(vector) != (len(dims),):
            raise errors.ArgumentError(f"{name} must be of shape ({len(dims)},), got {op_shape(vector)}")
    dtype = op_dtype(images)
    working = dtypes.result_type(*map(_working, (images, scale, translation), ("images", "scale", "translation")))
    images, scale, translation = (op_cast(x, working) for x in (images, scale, translation))
    for i, (dim, old) in enumerate(zip(dims, _sizes(images, dims), strict=True)):
        matrix = _resampling(old, wanted[dim], scale[i], translation[i], kernel, antialias)
        images = op_moveaxis(op_matmul(op_moveaxis(images, dim, -1), matrix), -1, dim)
    return _restore_dtype(images, dtype)


# arguments


def _image_axes(
    images: Tensor, data_format: str | None, spatial: int = 2, name: str = "images"
) -> tuple[tuple[int, ...], int]:
    """Return the spatial axes of `images`, and the axis of the channels."""
    is_last = data_format is None or (
        args.choice(data_format, ("channels_last", "channels_first"), "data_format") == "channels_last"
    )
    ndim = len(op_shape(images))
    if ndim not in (spatial + 1, spatial + 2):
        raise errors.ArgumentError(
            f"{name} must have {spatial + 1} dimensions, or {spatial + 2} with a batch, got {ndim}"
        )
    first = ndim - spatial - is_last
    return tuple(range(first, first + spatial)), ndim - 1 if is_last else first - 1


def _sizes(images: Tensor, axes: Sequence[int]) -> list[int]:
    """Return the sizes of `images` along `axes`, which must be known."""
    shape = op_shape(images)
    found = [shape[axis] for axis in axes]
    if not all(isinstance(n, int) for n in found):
        raise errors.ArgumentError("the size of an image must be known where a function is traced")
    return found


def _working(x: Tensor, name: str = "images") -> str:
    """Return the dtype to compute `x` in: at least float32."""
    dtype = op_dtype(x)
    if dtype in (*dtypes.BOOLEAN, *dtypes.COMPLEX):
        raise errors.DTypeError(f"{name} must be integers or floats, got {dtype}")
    return dtypes.result_type(dtype, "float32")


def _float_dtype(images: Tensor) -> str:
    dtype = op_dtype(images)
    if dtype not in dtypes.FLOATING:
        raise errors.DTypeError(f"images must be floats from 0 to 1, got {dtype}")
    return dtype


def _channels(images: Tensor, channel: int) -> list[Tensor]:
    """Return the three channels of `images`."""
    if (n := op_shape(images)[channel]) != 3:
        raise errors.ArgumentError(f"images must have 3 channels, got {n}")
    return op_split(images, 3, channel)


def _check_ints(values: Sequence[Any], least: int, name: str) -> list[int]:
    """Return `values` as ints, none of them below `least`."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise errors.ArgumentTypeError(f"{name} must be made of ints, got {value!r}")
        if value < least:
            raise errors.ArgumentError(f"{name} must be at least {least}, got {value}")
    return [int(value) for value in values]


def _tuple(value: Any, n: int, name: str) -> list[int]:
    """Return an int, or a sequence of `n`, as `n` positive ints."""
    values = list(value) if isinstance(value, (tuple, list)) else [value] * n
    if len(values) != n:
        raise errors.ArgumentError(f"{name} must be of length {n}, got {value!r}")
    return _check_ints(values, 1, name)


def _pair(value: Any, name: str) -> list[int]:
    """Return a sequence of two positive ints."""
    if not isinstance(value, (tuple, list)):
        raise errors.ArgumentTypeError(f"{name} must be a pair of ints, got {args.describe(value)}")
    return _tuple(value, 2, name)


def _number(value: Any, name: str) -> float:
    if not isinstance(value, numbers.Real):
        raise errors.ArgumentTypeError(f"{name} must be a number, got {args.describe(value)}")
    return float(value)


def _positive(values: Any, name: str) -> list[float]:
    """Return a sequence of positive numbers as floats."""
    if not isinstance(values, (tuple, list)):
        raise errors.ArgumentTypeError(f"{name} must be a sequence of numbers, got {args.describe(values)}")
    found = [_number(value, name) for value in values]
    if not all(value > 0 for value in found):
        raise errors.ArgumentError(f"{name} must be positive, got {values!r}")
    return found


def _fill(fill_value: Any, dtype: str) -> float | int:
    """Return `fill_value` as a number that a tensor of `dtype` can hold."""
    found = _number(fill_value, "fill_value")
    if dtype not in (*dtypes.INTEGER, "bool"):
        return found
    low, high = dtypes.INTEGER_RANGE.get(dtype, (0, 1))
    if not found.is_integer() or not low <= found <= high:
        raise errors.ArgumentError(f"fill_value {fill_value} is not a number of dtype {dtype}")
    return bool(found) if dtype == "bool" else int(found)


def _borders(
    before: Any, after: Any, target: Any, size: int, sides: tuple[str, str], sign: int
) -> tuple[int, int, int]:
    """Return how much to add (`sign` 1) or cut off (-1) at both ends of `size` pixels, and the resulting size."""
    given = {sides[0]: before, sides[1]: after, "target": target}
    if list(given.values()).count(None) != 1:
        raise errors.ArgumentError(f"exactly two of {sides[0]}, {sides[1]} and target must be given, got {given}")
    for name, value in given.items():
        if value is not None:
            _check_ints([value], 0, name)
    if target is None:
        target = size + sign * (before + after)
    elif before is None:
        before = sign * (target - size) - after
    else:
        after = sign * (target - size) - before
    if min(before, after, target) < 0:
        raise errors.ArgumentError(f"{given} does not fit an image of {size} pixels")
    return before, after, target


def _check_batch(images: Tensor, batch: tuple[Any, ...], name: str) -> None:
    """Raise an error unless there is one of something, or one for each image."""
    if not batch or not isinstance(batch[0], int) or batch[0] == 1:
        return
    shape = op_shape(images)
    if len(shape) == 3 or (isinstance(shape[0], int) and shape[0] != batch[0]):
        raise errors.ArgumentError(f"{name} is a batch of {batch[0]}, images is of shape {shape}")


# parts of images


def _slice_axis(x: Tensor, axis: int, start: int, size: Any) -> Tensor:
    return x[(slice(None),) * axis + (slice(start, start + size),)]


def _pad_axes(x: Tensor, widths: dict[int, tuple[int, int]], fill_value: float) -> Tensor:
    if all(width == (0, 0) for width in widths.values()):
        return x
    return op_pad(x, [widths.get(axis, (0, 0)) for axis in range(len(op_shape(x)))], "constant", fill_value)


def _patches(
    images: Tensor, spatial: int, size: Any, strides: Any, dilation_rate: Any, padding: str, data_format: str | None
) -> Tensor:
    axes, channel = _image_axes(images, data_format, spatial, "images" if spatial == 2 else "volumes")
    kernel, rates = _tuple(size, spatial, "size"), _tuple(dilation_rate, spatial, "dilation_rate")
    steps = kernel if strides is None else _tuple(strides, spatial, "strides")
    is_same = args.choice(padding, ("valid", "same"), "padding") == "same"
    for i, (axis, k, step, rate) in enumerate(zip(axes, kernel, steps, rates, strict=True)):
        n, reach = op_shape(images)[axis + i], (k - 1) * rate + 1
        if is_same:
            count = -(-n // step)
            missing = max((count - 1) * step + reach - n, 0)
            images = _pad_axes(images, {axis + i: (missing // 2, missing - missing // 2)}, 0)
        else:
            count = (n - reach) // step + 1
            if n < reach:
                raise errors.ArgumentError(f"size: a patch that reaches over {reach} does not fit in {n}")
        before = (slice(None),) * (axis + i)
        parts = [images[(*before, slice(j * rate, j * rate + (count - 1) * step + 1, step))] for j in range(k)]
        images = op_stack(parts, axis + i + 1)
    shape = op_shape(images)
    places = [axis + i for i, axis in enumerate(axes)]
    inside = [place + 1 for place in places]
    last = channel + spatial if channel > axes[0] else channel
    entries, counts = math.prod([shape[axis] for axis in (*inside, last)]), [shape[place] for place in places]
    if channel > axes[0]:
        moved = op_moveaxis(images, inside, list(range(len(shape) - spatial - 1, len(shape) - 1)))
        return op_reshape(moved, (*shape[: axes[0]], *counts, entries))
    moved = op_moveaxis(images, inside, list(range(channel, channel + spatial)))
    return op_reshape(moved, (*shape[:channel], entries, *counts))


def _restore_dtype(x: Tensor, dtype: str) -> Tensor:
    """Return floats as `dtype`: integers rounded to the nearest, and within their range."""
    if dtype in dtypes.INTEGER:
        low, high = dtypes.INTEGER_RANGE[dtype]
        digits = 53 if op_dtype(x) == "float64" else 24
        # first to a 1024th, so that rounding errors do not decide which way a half is rounded
        x = op_round(op_round(x * 1024.0) / 1024.0)
        x = op_clip(x, float(low), float(high - (high >> digits)))
    return op_cast(x, dtype)


# filters and resampling


def _correlate(x: Tensor, axis: int, weights: Sequence[float]) -> Tensor:
    """Return weighted sums of neighbours along `axis`, wherever all of them exist."""
    size = op_shape(x)[axis] - len(weights) + 1
    return _add_parts([op_multiply(_slice_axis(x, axis, i, size), weight) for i, weight in enumerate(weights)])


def _add_parts(parts: list[Tensor]) -> Tensor:
    return functools.reduce(op_add, parts)


def _gaussian(size: int, sigma: float) -> list[float]:
    sigma = max(sigma, 1e-9)  # of a smaller one, the weights are the same
    exponents = [-0.5 * ((i - (size - 1) / 2) / sigma) ** 2 for i in range(size)]
    highest = max(exponents)
    weights = [math.exp(exponent - highest) for exponent in exponents]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def _as_factor(array: Any, x: Tensor) -> Any:
    """Return a host array as a factor for tensor `x`, in its dtype and on its device."""
    return op_full_like(x, array) if op_dtype(x) == "float64" else array.astype(np.float32)


def _triangle(x: Any, where: Any, sin: Any) -> Any:
    return where(x < 1.0, 1.0 - x, 0.0)


def _keys(x: Any, where: Any, sin: Any) -> Any:
    """Return Keys's cubic kernel with a = -0.5 at distances `x`."""
    inner, outer = ((1.5 * x - 2.5) * x) * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return where(x < 1.0, inner, where(x < 2.0, outer, 0.0))


def _sinc(x: Any, where: Any, sin: Any) -> Any:
    """Return sin(πx) / (πx), by its series near 0, where the quotient has no derivative."""
    small = x < 0.05
    y = math.pi * where(small, 1.0, x)
    s = (math.pi * where(small, x, 0.0)) ** 2
    series = 1.0 - s / 6.0 * (1.0 - s / 20.0 * (1.0 - s / 42.0 * (1.0 - s / 72.0 * (1.0 - s / 110.0))))
    return where(small, series, sin(y) / y)


def _lanczos(radius: int) -> Callable[[Any, Any, Any], Any]:
    def kernel(x: Any, where: Any, sin: Any) -> Any:
        return where(x < radius, _sinc(x, where, sin) * _sinc(x / radius, where, sin), 0.0)

    return kernel


# kernel -> how far it reaches, and its weights
_RESIZE_KERNELS: dict[str, tuple[int, Callable[[Any, Any, Any], Any]]] = {
    "bilinear": (1, _triangle),
    "bicubic": (2, _keys),
    "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
}
_METHODS: dict[str, Callable[[Any, Any, Any], Any]] = {
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), _triangle),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), _keys),
    "lanczos3": _RESIZE_KERNELS["lanczos3"][1],
    "lanczos5": _RESIZE_KERNELS["lanczos5"][1],
}


def _resize_axes(
    images: Tensor, axes: tuple[int, ...], target: Sequence[int], interpolation: str, antialias: bool
) -> Tensor:
    """Return images of `target` pixels."""
    shape = op_shape(images)
    lines = zip(axes, [shape[axis] for axis in axes], target, strict=True)
    for axis, old, new in sorted(lines, key=lambda line: line[2] / line[1]):  # the dimensions that shrink first
        if old != new:
            images = _resize_axis(images, old, new, interpolation, antialias, axis - len(shape))
    return images


def _resize_axis(x: Tensor, *way: Any) -> Tensor:
    """Return `x` with the line along an axis resized; `way` is what `_line` takes."""
    linear = getattr(active(), "linear", None)
    return _weigh_taps(x, way[-1], *_parts(*way)) if linear is None else linear(_line(*way), x)


def _weigh_taps(x: Tensor, axis: int, taps: Any, is_used: Any) -> Tensor:
    # tap by tap: one tensor of all taps is slow where XLA fuses the gather with the sum
    parts = [op_take(x, picks, axis) for picks, _ in taps]
    y = _add_parts(
        [op_multiply(part, _as_factor(weights, part)) for part, (_, weights) in zip(parts, taps, strict=True)]
    )
    return y if is_used is None else op_where(is_used, y, 0.0)


class _Line:
    """Weighted sums of entries along `axis`, which is negative.

    Attributes:
        taps: Pairs of indices and weights, one entry for each sum.
        is_used: Where a sum has any entries; `None` if all have.
        transpose: The transposed map.
    """

    transpose: _Line

    def __init__(self, sums: Any, picks: Any, weights: Any, size: int, axis: int) -> None:
        order, counts = np.argsort(sums, kind="stable"), np.bincount(sums, minlength=size)
        most, column = counts.max(), (size, *[1] * (-axis - 1))
        self.axis, self.taps = axis, []
        self.is_used = None if counts.all() else (counts > 0).reshape(column)
        for j in range(most):
            # the last entry of a sum of fewer is repeated, with a part of its weight: infinity times 0 would be NaN
            k = order[np.clip(np.cumsum(counts) - counts + np.minimum(j, counts - 1), 0, None)]
            parts = np.where(j < counts - 1, 1, most - counts + 1)
            self.taps.append((picks[k].astype(np.int32), (weights[k] / parts).reshape(column)))

    def __call__(self, x: Tensor) -> Tensor:
        return _weigh_taps(x, self.axis, self.taps, self.is_used)


@hide_from_tracer  # torch.compile keeps arrays as they are, but calls no object that it did not see made
def _parts(*way: Any) -> tuple[Any, Any]:
    line = _line(*way)
    return line.taps, line.is_used


@functools.lru_cache(256)
def _line(old: int, new: int, interpolation: str, antialias: bool, axis: int) -> _Line:
    """Return the map from a line of `old` pixels to one of `new`."""
    radius, kernel = _RESIZE_KERNELS[interpolation]
    wider = max(old / new, 1.0) if antialias else 1.0
    centres = (np.arange(new) + 0.5) * (old / new) - 0.5
    first = np.floor(centres - radius * wider) + 1.0
    picks = first[:, None] + np.arange(math.ceil(2 * radius * wider))
    weights = kernel(np.abs(picks - centres[:, None]) / wider, np.where, np.sin)
    weights = np.where((picks >= 0.0) & (picks < old), weights, 0.0)
    weights = weights / weights.sum(1, keepdims=True)
    sums, tap = np.nonzero(weights)
    picks, weights = picks[sums, tap].astype(np.int64), weights[sums, tap]
    line, back = _Line(sums, picks, weights, new, axis), _Line(picks, sums, weights, old, axis)
    line.transpose, back.transpose = back, line
    return line


def _resampling(old: int, new: int, scale: Tensor, translation: Tensor, kernel: Any, antialias: bool) -> Tensor:
    """Return the matrix that resamples `old` entries into `new` ones."""
    places = op_subtract(translation, (np.arange(new)[None] + 0.5).astype(np.float32)) / -scale - 0.5
    distances = op_abs(op_subtract(places, np.arange(old, dtype=np.float32)[:, None]))
    if antialias:
        distances = distances / op_maximum(1.0 / scale, 1.0)
    weights = kernel(distances, op_where, op_sin)
    total = op_sum(weights, 0, True)
    is_inside = (places >= -0.5) & (places <= old - 0.5)
    is_used = is_inside & (op_abs(total) > 1e-4)
    return op_where(is_used, weights / op_where(is_used, total, 1.0), 0.0)


# warping


def _grid(height: int, width: int) -> tuple[Any, Any]:
    """Return the columns and the rows of the pixels of a batch of one image, which broadcast."""
    return np.arange(width, dtype=np.float32)[None, None, :], np.arange(height, dtype=np.float32)[None, :, None]


def _fold_coordinates(c: Tensor, size: int, fill_mode: str) -> Tensor:
    """Return coordinates `c` moved between the first and the last of `size` entries."""
    last = size - 1
    if last == 0 or fill_mode in ("constant", "nearest"):
        return op_clip(c, 0.0, float(last))
    if fill_mode == "wrap":  # a negative multiple of the period is the last entry, a positive one the first
        back = op_where(c < 0, last - op_mod(-c, float(last)), op_mod(c, float(last)))
    elif fill_mode == "mirror":
        back = op_mod(c, 2.0 * last)
        back = op_where(back > last, 2.0 * last - back, back)
    else:
        back = op_mod(c + 0.5, 2.0 * size) - 0.5
        back = op_where(back > size - 0.5, 2.0 * size - 1.0 - back, back)
    return op_clip(op_where((c < 0) | (c > last), back, c), 0.0, float(last))


def _looked_up(
    pixels: Tensor, sizes: list[int], places: list[Tensor], order: int, fill_mode: str, fill_value: Any, start: Any
) -> Tensor:
    """Return values at fractional indices.

    Args:
        pixels: Tensor of shape `(entries, channels)`, whose entries are row-major over `sizes`.
        sizes: The dimensions that the indices go into.
        places: The indices into each of these dimensions, in float32 or float64, of shapes that broadcast.
        order: 0 or 1.
        fill_mode: What is outside.
        fill_value: The value outside in the mode `"constant"`.
        start: The number of the entry at which `sizes` begin, for each place.
    """
    args.choice(fill_mode, FILL_MODES, "fill_mode")
    dtype = op_dtype(pixels)
    fill_value = _fill(fill_value, dtype)
    if 0 in sizes:
        raise errors.ArgumentError("there is nothing to look up in an empty tensor")
    if math.prod(sizes) > np.iinfo(np.int32).max:
        raise errors.ArgumentError("a tensor of 2**31 entries or more is too large to look up in")
    if dtype in dtypes.COMPLEX:
        raise errors.DTypeError(f"expected integers or floats, got {dtype}")
    if order == 1:
        pixels = op_cast(pixels, dtypes.result_type(_working(pixels), op_dtype(places[0])))
    taps: list[list[tuple[Tensor, Any]]] = []  # for each dimension, indices and weights
    is_nan: Any = None
    is_outside: Any = None
    for c, size in zip(places, sizes, strict=True):
        folded = _fold_coordinates(c, size, fill_mode)
        nan, outside = op_isnan(folded), (c < 0) | (c > size - 1)
        is_nan = nan if is_nan is None else is_nan | nan
        is_outside = outside if is_outside is None else is_outside | outside
        known = op_where(nan, 0.0, folded)
        if order == 0:
            taps.append([(op_cast(op_clip(op_floor(known + 0.5), 0.0, float(size - 1)), "int32"), None)])
        else:
            low = op_clip(op_floor(known), 0.0, float(max(size - 2, 0)))
            share, index = folded - low, op_cast(low, "int32")
            taps.append([(index, 1.0 - share), (index + min(1, size - 1), share)])
    total: Any = None
    for corner in itertools.product(*taps):
        entry, weight = corner[0]
        for (index, share), size in zip(corner[1:], sizes[1:], strict=True):
            entry, weight = entry * size + index, None if order == 0 else weight * share
        part = op_take(pixels, op_add(entry, start), 0)
        part = part if weight is None else part * op_expand_dims(weight, -1)
        total = part if total is None else total + part
    blank = math.nan if dtype in dtypes.FLOATING else False
    total = op_where(op_expand_dims(is_nan, -1), blank, total)
    if fill_mode == "constant":
        total = op_where(op_expand_dims(is_outside, -1), fill_value, total)
    return total if order == 0 else _restore_dtype(total, dtype)


@composite
def _look_up(
    images: Tensor,
    axes: tuple[int, ...],
    channel: int,
    across: Any,
    down: Any,
    order: int,
    fill_mode: str,
    fill_value: Any,
) -> Tensor:
    """Return images looked up at columns `across` and rows `down`, of shape `(batch or 1, height, width)`."""
    height, width = _sizes(images, axes)
    images = op_moveaxis(images, channel, -1)
    shape = op_shape(images)
    batch = shape[:-3]
    start: Any = 0
    if batch:
        order_of = np.arange(batch[0], dtype=np.int32) if isinstance(batch[0], int) else op_arange(batch[0])
        start = on_device_of(images, op_reshape(order_of, (-1, 1, 1))) * (height * width)
    pixels = op_reshape(images, (-1, shape[-1]))
    found = _looked_up(pixels, [height, width], [down, across], order, fill_mode, fill_value, start)
    return op_moveaxis(op_reshape(found, shape), -1, channel)


def _displacements(seed: int | None, shape: tuple[int, ...], sigma: float) -> Any:
    """Return a random field, blurred over its last two dimensions, as a host array."""
    field = np.random.Generator(np.random.Philox(seed)).normal(scale=sigma, size=shape)
    weights = _gaussian(int(6 * sigma) | 1, sigma)
    for axis in (-2, -1):
        ends = [(0, 0)] * len(shape)
        ends[axis] = (len(weights) // 2, len(weights) // 2)
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(field, ends), len(weights), axis)
        field = windows @ np.asarray(weights)
    return field


hide_from_tracer(_displacements)  # a compiler that traces Python keeps its result


def _corners(points: Tensor, name: str) -> list[tuple[Tensor, Tensor]]:
    """Return the columns and the rows of four points, each of shape `(batch, 1, 1)`."""
    points = op_reshape(op_cast(points, _working(points, name)), (-1, 4, 2, 1, 1))
    return [(points[:, i, 0], points[:, i, 1]) for i in range(4)]


def _area(p: Any, q: Any, r: Any) -> Tensor:
    """Return twice the signed area of a triangle."""
    across = op_multiply(op_subtract(q[0], p[0]), op_subtract(r[1], p[1]))
    return across - op_multiply(op_subtract(q[1], p[1]), op_subtract(r[0], p[0]))


def _project(pixels: Any, starts: list[Any], ends: list[Any]) -> tuple[Tensor, Tensor]:
    """Return where the projective map that sends `ends` to `starts` sends `pixels`.

    In barycentric coordinates of the first three points, a projective map that keeps these points is one factor for
    each of them. The fourth point determines the factors, so there is no system of equations to solve.
    """

    def areas(points: list[Any]) -> list[Tensor]:
        p, q, r, s = points
        return [_area(s, q, r), _area(p, s, r), _area(p, q, s), _area(p, q, r)]

    a, b = areas(starts), areas(ends)
    p, q, r, _ = ends
    shares = [
        _area(pixels, q, r) * (a[0] * b[1] * b[2]),
        _area(pixels, r, p) * (a[1] * b[2] * b[0]),
        _area(pixels, p, q) * (a[2] * b[0] * b[1]),
    ]
    total = shares[0] + shares[1] + shares[2]
    for area in (*a, *b):
        total = op_where(op_equal(area, 0), math.nan, total)
    x, y = ((shares[0] * starts[0][i] + shares[1] * starts[1][i] + shares[2] * starts[2][i]) / total for i in (0, 1))
    return x, y
