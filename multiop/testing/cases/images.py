"""Rows of images."""

from __future__ import annotations

import colorsys
import functools
import itertools
from typing import Any

import numpy as np
from scipy import ndimage

from .._case import BOOLEAN, REAL, call, floating, pin, row, same
from .._samplers import Sampler, normal, uniform

INF, NAN = np.inf, np.nan
REDUCED = np.array([0.9, 0.21, 0.33, -0.12, 1.13, 0.27, 0.031, -0.023])
SHIFTED = np.array(
    [[1.13, -0.31, -0.437, 0.21, 0.93, -1.371, 0.0, 0.0], [-0.81, 0.13, 2.357, 0.11, 1.23, 1.641, 0.021, 0.013]]
)
CORNERS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 2.0], [3.0, 2.0]])
MOVED = np.array([[0.3, -0.4], [2.6, 0.2], [-0.5, 2.2], [3.3, 2.7]])


def restore_kind(y, x):
    """Return floats in the kind of `x`; integers are rounded and clipped to their range."""
    if x.dtype.kind not in "iu":
        return y
    info = np.iinfo(x.dtype)
    return np.clip(np.round(np.round(y.astype(float) * 1024) / 1024), info.min, info.max).astype(x.dtype)


def planes(f: Any) -> Any:
    """Return `f`, a function of one channels-last image, as a function of images in any format."""

    def map_planes(images, *args, data_format="channels_last", **kwargs):
        if data_format == "channels_first":
            images = np.moveaxis(images, -3, -1)
        if images.ndim == 3:
            result = f(images, *args, **kwargs)
        else:
            each = [[arg[i] if is_batch(arg) else arg for arg in args] for i in range(len(images))]
            result = np.stack([f(image, *one, **kwargs) for image, one in zip(images, each, strict=True)])
        return np.moveaxis(result, -1, -3) if data_format == "channels_first" else result

    return map_planes


def is_batch(x):
    """Say whether `x` is an array of transforms or of points for a batch of images."""
    return isinstance(x, np.ndarray) and x.ndim > (1 if x.shape[-1] == 8 else 2)


@planes
def _grayscale(image):
    if image.shape[-1] == 1:
        return image
    return restore_kind((image @ np.array([0.2989, 0.5870, 0.1140]))[..., None], image)


def _pixelwise(f: Any) -> Any:
    @planes
    def map_pixels(image):
        return np.array([[f(*pixel) for pixel in line] for line in image])

    return map_pixels


KERNELS = {
    "bilinear": lambda d: max(0.0, 1.0 - d),
    "bicubic": lambda d: (
        1.5 * d**3 - 2.5 * d**2 + 1 if d < 1 else -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2 if d < 2 else 0.0
    ),
    "lanczos3": lambda d: np.sinc(d) * np.sinc(d / 3) if d < 3 else 0.0,
    "lanczos5": lambda d: np.sinc(d) * np.sinc(d / 5) if d < 5 else 0.0,
}


def line(old, new, scale, translation, kernel, antialias):
    """Return the matrix that maps `old` entries to `new` ones."""
    matrix = np.zeros((new, old))
    for i in range(new):
        centre = (i + 0.5 - translation) / scale - 0.5
        if -0.5 <= centre <= old - 0.5:
            wider = max(1.0, 1.0 / scale) if antialias else 1.0
            weights = np.array([KERNELS[kernel](abs(j - centre) / wider) for j in range(old)])
            matrix[i] = weights / weights.sum()
    return matrix


@planes
def _resize(
    image,
    size,
    interpolation="bilinear",
    antialias=False,
    crop_to_aspect_ratio=False,
    pad_to_aspect_ratio=False,
    fill_mode="constant",
    fill_value=0.0,
):
    like = image
    height, width = image.shape[:2]
    wanted = [width * size[0] // size[1], height * size[1] // size[0]]
    if crop_to_aspect_ratio:
        rows, columns = (min(n, max(1, m)) for n, m in zip((height, width), wanted, strict=True))
        top, left = (height - rows) // 2, (width - columns) // 2
        image = image[top : top + rows, left : left + columns]
    if pad_to_aspect_ratio:
        rows, columns = ((max(n, m) - n) // 2 for n, m in zip((height, width), wanted, strict=True))
        image = np.pad(image, ((rows, rows), (columns, columns), (0, 0)), constant_values=fill_value)
    for axis, new in enumerate(size):
        old = image.shape[axis]
        if interpolation == "nearest":
            image = np.take(image, [int((i + 0.5) * old / new) for i in range(new)], axis)
        elif old != new:
            matrix = line(old, new, new / old, 0.0, interpolation, antialias)
            image = np.moveaxis(np.tensordot(matrix, image, (1, axis)), 0, axis)
    return restore_kind(image, like)


def _map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0):
    found = ndimage.map_coordinates(
        inputs.astype(float), coordinates, order=order, mode=fill_mode, cval=fill_value, prefilter=False
    )
    return restore_kind(found, inputs)


def warp(image, place, interpolation="bilinear", fill_mode="constant", fill_value=0.0):
    """Return an image sampled at the positions to which `place` maps the columns and rows of the result."""
    height, width, channels = image.shape
    places = np.array([[place(x, y) for x in range(width)] for y in range(height)])
    coordinates = [places[..., 1], places[..., 0]]
    order = {"nearest": 0, "bilinear": 1}[interpolation]
    found = [_map_coordinates(image[..., c], coordinates, order, fill_mode, fill_value) for c in range(channels)]
    return np.stack(found, -1)


@planes
def _affine_transform(image, transform, **kwargs):
    transform = transform.reshape(8)
    matrix = np.append(transform, 1.0).reshape(3, 3)

    def place(x, y):
        across, down, k = matrix @ [x, y, 1.0]
        return across / k, down / k

    return warp(image, place, **kwargs)


@planes
def _perspective_transform(image, start_points, end_points, **kwargs):
    lines = []
    for (a, b), (x, y) in zip(start_points, end_points, strict=True):
        lines += [[x, y, 1, 0, 0, 0, -a * x, -a * y], [0, 0, 0, x, y, 1, -b * x, -b * y]]
    return _affine_transform(image, np.linalg.solve(np.array(lines), start_points.reshape(-1)), **kwargs)


def _crop(images, top=None, left=None, bottom=None, right=None, height=None, width=None, data_format="channels_last"):
    rows = -3 if data_format == "channels_last" else -2
    for axis, before, after, n in ((rows, top, bottom, height), (rows + 1, left, right, width)):
        first = images.shape[axis] - after - n if before is None else before
        stop = images.shape[axis] - after if n is None else first + n
        images = np.take(images, range(first, stop), axis)
    return images


def _pad_image(
    images, top=None, left=None, bottom=None, right=None, height=None, width=None, data_format="channels_last"
):
    rows = -3 if data_format == "channels_last" else -2
    for axis, before, after, n in ((rows, top, bottom, height), (rows + 1, left, right, width)):
        size = images.shape[axis]
        before = n - after - size if before is None else before
        widths = [(0, 0)] * images.ndim
        widths[axis] = (before, n - before - size if after is None else after)
        images = np.pad(images, widths)
    return images


def borders(reference: Any, which: str) -> Any:
    """Return a reference for cropping or padding that takes the op's keywords."""
    names = [f"{side}_{which}" for side in ("top", "left", "bottom", "right")] + ["target_height", "target_width"]
    short = dict(zip(names, ("top", "left", "bottom", "right", "height", "width"), strict=True))
    return lambda images, *args, **kwargs: reference(images, *args, **{short.get(k, k): v for k, v in kwargs.items()})


def _extract_patches(spatial: int) -> Any:
    def extract(images, size, strides=None, dilation_rate=1, padding="valid", data_format="channels_last"):
        n = len(size) if isinstance(size, tuple) else spatial
        if data_format == "channels_first":
            images = np.moveaxis(images, -n - 1, -1)
        if images.ndim == n + 1:
            return _channels_back(_patches_of(images, n, size, strides, dilation_rate, padding), data_format, n)
        found = [_patches_of(image, n, size, strides, dilation_rate, padding) for image in images]
        return _channels_back(np.stack(found), data_format, n)

    return extract


def _reconstruct_patches(patches, size, output_size=None, strides=None, padding="valid", data_format=None):
    size = size if isinstance(size, tuple) else (size, size)
    n = len(size)
    patches = np.moveaxis(patches, -n - 1, -1) if data_format == "channels_first" else patches
    if patches.ndim > n + 1:
        found = np.stack([_reconstruct_patches(one, size, output_size) for one in patches])
        return _channels_back(found, data_format, n)
    grid = patches.shape[:-1]
    whole = np.zeros((*np.multiply(grid, size), patches.shape[-1] // np.prod(size)), patches.dtype)
    for place in np.ndindex(grid):
        there = tuple(slice(i * k, (i + 1) * k) for i, k in zip(place, size, strict=True))
        whole[there] = patches[place].reshape(*size, -1)
    sizes = output_size or whole.shape[:-1]
    starts = [(a - b) // 2 for a, b in zip(whole.shape, sizes, strict=False)]
    return _channels_back(whole[tuple(slice(i, i + m) for i, m in zip(starts, sizes, strict=True))], data_format, n)


def _channels_back(patches, data_format, n):
    return np.moveaxis(patches, -1, -n - 1) if data_format == "channels_first" else patches


def _patches_of(image, n, size, strides, rates, padding):
    size, rates = (v if isinstance(v, tuple) else (v,) * n for v in (size, rates))
    strides = size if strides is None else strides if isinstance(strides, tuple) else (strides,) * n
    widths, counts = [], []
    for length, k, step, rate in zip(image.shape, size, strides, rates, strict=False):
        reach = (k - 1) * rate + 1
        count = -(-length // step) if padding == "same" else (length - reach) // step + 1
        missing = max(0, (count - 1) * step + reach - length) if padding == "same" else 0
        widths.append((missing // 2, missing - missing // 2))
        counts.append(count)
    image = np.pad(image, [*widths, (0, 0)])
    found = np.zeros((*counts, np.prod(size) * image.shape[-1]), image.dtype)
    for place in itertools.product(*map(range, counts)):
        inside = tuple(
            slice(i * step, i * step + (k - 1) * rate + 1, rate)
            for i, step, k, rate in zip(place, strides, size, rates, strict=True)
        )
        found[place] = image[inside].reshape(-1)
    return found


def _bell(size, sigma):
    weights = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    return weights / weights.sum()


@planes
def _gaussian_blur(image, kernel_size=(3, 3), sigma=(1.0, 1.0)):
    result = image.astype(float)
    for axis, (n, s) in enumerate(zip(kernel_size, sigma, strict=True)):
        origin = -1 if n % 2 == 0 else 0  # SciPy's centre of an even kernel is the entry after ours
        result = ndimage.correlate1d(result, _bell(n, s), axis, mode="constant", origin=origin)
    return restore_kind(result, image)


def _sobel_edges(images, data_format="channels_last"):
    rows = images.ndim - (3 if data_format == "channels_last" else 2)
    edges = []
    for along, other in ((rows, rows + 1), (rows + 1, rows)):
        steps = ndimage.correlate1d(images.astype(float), [-1, 0, 1], along, mode="reflect")
        edges.append(ndimage.correlate1d(steps, [1, 2, 1], other, mode="reflect"))
    return np.stack(edges, -1)


def _ssim(image1, image2, max_val=1.0, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03, data_format="channels_last"):
    if image1.ndim == 4:
        options = (max_val, filter_size, filter_sigma, k1, k2, data_format)
        return np.array([_ssim(x, y, *options) for x, y in zip(image1, image2, strict=True)])
    if data_format == "channels_first":
        image1, image2 = np.moveaxis(image1, 0, -1), np.moveaxis(image2, 0, -1)
    weights = np.outer(_bell(filter_size, filter_sigma), _bell(filter_size, filter_sigma))
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    height, width, channels = image1.shape
    found = []
    for top, left, c in itertools.product(
        range(height - filter_size + 1), range(width - filter_size + 1), range(channels)
    ):
        x, y = (a[top : top + filter_size, left : left + filter_size, c].astype(float) for a in (image1, image2))
        mx, my = (weights * x).sum(), (weights * y).sum()
        vx, vy = (weights * (x - mx) ** 2).sum(), (weights * (y - my) ** 2).sum()
        cov = (weights * (x - mx) * (y - my)).sum()
        found.append((2 * mx * my + c1) * (2 * cov + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2)))
    return np.mean(found)


def _scale_and_translate(images, output_shape, scale, translation, spatial_dims, method, antialias=True):
    kernel = {"linear": "bilinear", "triangle": "bilinear", "cubic": "bicubic"}.get(method, method)
    result = images
    for i, d in enumerate(spatial_dims):
        matrix = line(images.shape[d], output_shape[d], scale[i], translation[i], kernel, antialias)
        result = np.moveaxis(np.tensordot(matrix, result, (1, d)), 0, d)
    return restore_kind(result, images)


def _color(*shape: int) -> Sampler:
    return uniform(*shape, low=0.05, high=0.95)


def _bright(*shape: int) -> Sampler:
    return uniform(*shape, low=0.5, high=1.5)


def _gray(*shape: int) -> Sampler:
    return uniform(*shape, low=0, high=100)


def _elastic_transform(images, alpha=20.0, sigma=5.0, seed=None, data_format="channels_last", **kwargs):
    if data_format == "channels_first":
        return np.moveaxis(_elastic_transform(np.moveaxis(images, -3, -1), alpha, sigma, seed, **kwargs), -1, -3)
    field = np.random.Generator(np.random.Philox(seed)).normal(scale=sigma, size=(2, *images.shape[:-1]))
    weights = _bell(int(6 * sigma) | 1, sigma)
    for axis in (-2, -1):
        field = ndimage.correlate1d(field, weights, axis, mode="constant")
    kwargs = {"fill_mode": "reflect", **kwargs}

    def one(image, across, down):
        def place(x, y):
            return x + alpha * across[y, x], y + alpha * down[y, x]

        return warp(image, place, **kwargs)

    if images.ndim == 3:
        return one(images, *field)
    return np.stack([one(image, *field[:, i]) for i, image in enumerate(images)])


moving_pixels = functools.partial(row, dtypes=BOOLEAN + REAL, returns=same)
interpolation = functools.partial(row, returns=same, ulps=128)

ROWS = [
    row(
        "op_image_rgb_to_grayscale",
        _grayscale,
        call(_gray(2, 3, 3)),
        call(_gray(2, 3, 2, 2), data_format="channels_first"),
        call(_gray(2, 3, 1), data_format="channels_last"),
        dtypes=REAL,
        returns=same,
    ),
    row(
        "op_image_rgb_to_hsv",
        _pixelwise(colorsys.rgb_to_hsv),
        call(_color(3, 4, 3)),
        call(_color(2, 3, 2, 2), data_format="channels_first"),
        returns=same,
        ulps=16,
        pins=[
            pin([[[0.5, 0.5, 0.5]]], value=[[[0.0, 0.0, 0.5]]], gradient=[[[1 / 3, 1 / 3, 1 / 3]]]),
            pin([[[0.0, 0.0, 0.0]]], value=[[[0.0, 0.0, 0.0]]], gradient=[[[1 / 3, 1 / 3, 1 / 3]]]),
            pin([[[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]], value=[[[0.0, 1.0, 1.0], [0.5, 1.0, 1.0]]]),
            pin([[[0.5, NAN, 0.5]]], value=[[[NAN, NAN, NAN]]]),
        ],
    ),
    row(
        "op_image_hsv_to_rgb",
        _pixelwise(colorsys.hsv_to_rgb),
        call(_color(3, 4, 3)),
        call(_color(2, 3, 2, 2), data_format="channels_first"),
        returns=same,
        ulps=16,
        pins=[
            pin([[[1.0, 1.0, 1.0], [0.25, 0.0, 0.5]]], value=[[[1.0, 0.0, 0.0], [0.5, 0.5, 0.5]]]),
            pin([[[0.5, 0.5, NAN]]], value=[[[NAN, NAN, NAN]]]),
        ],
    ),
    moving_pixels(
        "op_image_crop",
        borders(_crop, "cropping"),
        call(normal(4, 5, 2), top_cropping=1, left_cropping=2, bottom_cropping=1, right_cropping=0),
        call(normal(2, 1, 4, 5), 1, 2, target_height=2, target_width=2, data_format="channels_first"),
        call(normal(2, 3, 1), bottom_cropping=0, right_cropping=1, target_height=0, target_width=2),
    ),
    moving_pixels(
        "op_image_pad",
        borders(_pad_image, "padding"),
        call(normal(2, 3, 2), top_padding=1, left_padding=2, bottom_padding=1, right_padding=0),
        call(normal(2, 1, 2, 3), 1, 2, target_height=4, target_width=5, data_format="channels_first"),
        call(normal(0, 3, 1), bottom_padding=0, right_padding=1, target_height=2, target_width=4),
    ),
    interpolation(
        "op_image_resize",
        _resize,
        call(_gray(3, 4, 1), (5, 2)),
        call(_gray(5, 4, 2), (2, 6), antialias=True),
        call(_gray(2, 2, 3, 5), (4, 3), interpolation="bicubic", antialias=True, data_format="channels_first"),
        call(_gray(3, 6, 1), (5, 4), interpolation="lanczos3", crop_to_aspect_ratio=True),
        call(
            _gray(2, 7, 1),
            (3, 4),
            interpolation="lanczos5",
            antialias=True,
            pad_to_aspect_ratio=True,
            fill_mode="constant",
            fill_value=2.0,
        ),
        call(_gray(5, 4, 2), (3, 7), interpolation="nearest"),
        dtypes=REAL,
        pins=[
            pin([[[0.0], [4.0]]], (1, 4), value=[[[0.0], [1.0], [3.0], [4.0]]], gradient=[[[2.0], [2.0]]]),
            pin(
                [[[1.0], [2.0], [3.0], [NAN], [5.0], [6.0], [7.0], [8.0]]],
                (1, 4),
                value=[[[1.5], [NAN], [5.5], [7.5]]],
            ),
        ],
    ),
    interpolation(
        "op_image_affine_transform",
        _affine_transform,
        call(_bright(3, 4, 2), REDUCED, fill_mode="constant", fill_value=1.5),
        call(_bright(2, 1, 2, 3), SHIFTED, fill_mode="reflect", data_format="channels_first"),
        call(_bright(2, 3, 4, 1), REDUCED, interpolation="nearest", fill_mode="mirror"),
    ),
    interpolation(
        "op_image_perspective_transform",
        _perspective_transform,
        call(_bright(3, 4, 1), CORNERS, MOVED, interpolation="nearest"),  # PyTorch takes a minute to compile the others
        call(_bright(3, 4, 2), CORNERS, MOVED, fill_value=0.5),
        call(
            _bright(2, 1, 3, 4),
            np.stack([CORNERS, MOVED]),
            np.stack([MOVED, CORNERS[::-1] + 0.25]),
            data_format="channels_first",
        ),
        ulps=512,
        pins=[pin([[[1.0], [2.0]]], [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [0.0, 1.0]], CORNERS, value=[[[NAN], [NAN]]])],
    ),
    interpolation(
        "op_image_map_coordinates",
        _map_coordinates,
        call(_bright(3, 4), uniform(2, 8, low=-1.5, high=4.5), 1, fill_value=2.5),
        call(_bright(4), uniform(1, 3, 4, low=-15, high=15), 1, fill_mode="nearest"),
        call(_bright(4), uniform(1, 12, low=-15, high=15), 1, fill_mode="wrap"),
        call(_bright(2, 4, 1), uniform(3, 12, low=-15, high=15), 1, fill_mode="mirror"),
        call(_bright(2, 4, 1), uniform(3, 12, low=-15, high=15), 1, fill_mode="reflect"),
        call(_bright(3, 4), uniform(2, 8, low=-1.5, high=4.5), order=0, fill_mode="constant"),
        call(_bright(3, 4), uniform(2, 8, low=-15, high=15), 0, fill_mode="reflect"),
        pins=[
            pin([0.0, 10.0, 20.0], [[-1.5]], 1, fill_mode="reflect", value=[5.0]),
            pin([1.0, 2.0, 3.0], [[-0.5, 0.0, 2.0, 2.5]], 1, fill_value=7.0, value=[7.0, 1.0, 3.0, 7.0]),
            pin([1.0, 2.0, 4.0], [[0.0, 1.0, 2.0]], 1, gradient=([1.0, 1.0, 1.0], [[1.0, 2.0, 2.0]])),
            pin([1.0, 2.0, 4.0], [[-2.0, 2.0, 4.0]], 1, fill_mode="wrap", value=[4.0, 4.0, 1.0]),
            pin([1.0, 2.0, 4.0], [[NAN, 1.0]], 1, value=[NAN, 2.0]),
            pin([1.0, 2.0, 4.0], [[NAN, INF, -INF]], 0, fill_mode="nearest", value=[NAN, 4.0, 1.0]),
            pin([1.0, 2.0, 4.0], [[NAN, INF]], 0, fill_value=5.0, value=[NAN, 5.0]),
            pin([1.0, 2.0, NAN, 4.0], [[0.5, 1.5]], 1, value=[1.5, NAN]),
        ],
    ),
    moving_pixels(
        "op_image_extract_patches",
        _extract_patches(2),
        call(normal(4, 5, 2), (2, 3)),
        call(normal(2, 1, 5, 4), 2, strides=(2, 1), dilation_rate=2, padding="same", data_format="channels_first"),
        call(normal(3, 3, 2, 1), (2, 2, 1), 1),
    ),
    moving_pixels(
        "op_image_extract_patches_3d",
        _extract_patches(3),
        call(normal(2, 3, 4, 1), (2, 1, 2)),
        call(
            normal(2, 2, 3, 3, 2),
            2,
            strides=(1, 2, 1),
            dilation_rate=(1, 2, 1),
            padding="same",
            data_format="channels_first",
        ),
    ),
    moving_pixels(
        "op_image_reconstruct_patches",
        _reconstruct_patches,
        call(normal(2, 2, 12), (2, 3)),
        call(normal(2, 4, 3, 2), 2, (6, 3), strides=2, padding="same", data_format="channels_first"),
        call(normal(2, 1, 2, 2, 6), size=(1, 3, 2), output_size=(1, 6, 4)),
        call(normal(3, 1, 4), 2, output_size=(5, 1), padding="same"),
    ),
    row(
        "op_image_gaussian_blur",
        _gaussian_blur,
        call(_gray(3, 4, 2)),
        call(_gray(2, 1, 3, 4), kernel_size=(5, 2), sigma=(0.7, 2.0), data_format="channels_first"),
        dtypes=REAL,
        returns=same,
        ulps=16,
    ),
    row(
        "op_image_sobel_edges",
        _sobel_edges,
        call(normal(3, 4, 2)),
        call(normal(2, 1, 3, 4), data_format="channels_first"),
        call(normal(1, 2, 1)),
        dtypes=REAL,
        returns=floating,
        accumulates=True,
    ),
    row(
        "op_image_ssim",
        _ssim,
        call(uniform(12, 11, 1, low=0, high=1), uniform(12, 11, 1, low=0, high=1)),
        call(
            uniform(2, 2, 4, 5, low=0, high=1),
            uniform(2, 2, 4, 5, low=0, high=1),
            max_val=2.0,
            filter_size=3,
            filter_sigma=0.8,
            k1=0.02,
            k2=0.05,
            data_format="channels_first",
        ),
        call(_gray(4, 4, 1), _gray(4, 4, 1), max_val=100.0, filter_size=3),
        dtypes=REAL,
        returns=floating,
        ulps=128,
    ),
    interpolation(
        "op_image_elastic_transform",
        _elastic_transform,  # PyTorch takes two minutes to compile the interpolated calls
        call(_bright(2, 1, 4, 3), seed=4, interpolation="nearest", fill_mode="mirror", data_format="channels_first"),
        call(_bright(4, 5, 2), alpha=3.0, sigma=1.0, seed=3),
        call(_bright(3, 4, 1), alpha=2.0, sigma=0.8, seed=5, fill_mode="constant", fill_value=2.0),
    ),
    interpolation(
        "op_image_scale_and_translate",
        _scale_and_translate,
        call(normal(3, 4), (5, 6), np.array([1.7, 0.63]), np.array([-0.4, 0.31]), (0, -1), "linear"),
        call(normal(2, 5), (2, 4), np.array([0.45]), np.array([0.7]), (1,), "cubic", antialias=True),
        call(normal(6), (5,), np.array([1.3]), np.array([-1.1]), (0,), "lanczos3", antialias=False),
        call(normal(6), (7,), np.array([0.8]), np.array([0.2]), (0,), "lanczos5"),
        ulps=256,
    ),
]
