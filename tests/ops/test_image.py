"""Images: errors, integers, and what the rows of the case table cannot say."""

import numpy as np
import pytest
from scipy import ndimage

import multiop as mo
from multiop import errors
from multiop.testing.cases.images import line

X = np.ones((4, 5, 3), np.float32)
POINTS = np.array([[0, 0], [4, 0], [0, 3], [4, 3]], np.float32)
IDENTITY = np.array([1, 0, 0, 0, 1, 0, 0, 0], np.float32)

BAD = [
    ("op_image_rgb_to_grayscale", (X[0],), {}, "images must have 3 dimensions"),
    ("op_image_rgb_to_grayscale", (X[..., :2],), {}, "3 channels, got 2"),
    ("op_image_rgb_to_hsv", (X[..., :1],), {}, "3 channels, got 1"),
    ("op_image_hsv_to_rgb", (X,), {"data_format": "channels_first"}, "3 channels, got 4"),
    ("op_image_crop", (X, 1, 1), {}, "exactly two of"),
    ("op_image_crop", (X, 1, 1, 1, 1, 2), {}, "exactly two of"),
    ("op_image_crop", (X, 3, 0, 2, 0), {}, "does not fit an image of 4"),
    ("op_image_crop", (X, -1, 0, 2, 0), {}, "top must be at least 0"),
    ("op_image_crop", (X, 0, 0), {"target_height": 5, "target_width": 1}, "does not fit an image of 4"),
    ("op_image_pad", (X, 0, 0, 0), {}, "exactly two of"),
    ("op_image_pad", (X, 0, 0), {"target_height": 3, "target_width": 9}, "does not fit an image of 4"),
    ("op_image_resize", (X, (2, 0)), {}, "size must be at least 1"),
    ("op_image_resize", (X, (2, 2, 2)), {}, "size must be of length 2"),
    ("op_image_resize", (X[:0], (2, 2)), {}, "nothing to resize"),
    ("op_image_resize", (X, (2, 2)), {"crop_to_aspect_ratio": True, "pad_to_aspect_ratio": True}, "only one of"),
    ("op_image_affine_transform", (X, IDENTITY[:6]), {}, "transform must be of shape"),
    ("op_image_affine_transform", (X, np.stack([IDENTITY] * 2)), {}, "transform is a batch of 2"),
    ("op_image_affine_transform", (np.stack([X] * 3), np.stack([IDENTITY] * 2)), {}, "transform is a batch of 2"),
    ("op_image_affine_transform", (X[:, :0], IDENTITY), {}, "nothing to look up"),
    ("op_image_perspective_transform", (X, POINTS[:3], POINTS[:3]), {}, "start_points must be of shape"),
    ("op_image_perspective_transform", (X, POINTS, POINTS[None]), {}, "end_points must be of the shape"),
    ("op_image_map_coordinates", (X, np.ones((2, 3), np.float32), 1), {}, "coordinates must be of shape"),
    ("op_image_map_coordinates", (X, np.ones(3, np.float32), 1), {}, "coordinates must be of shape"),
    ("op_image_map_coordinates", (X, np.ones((3, 2), np.float32), 2), {}, "order must be one of"),
    ("op_image_extract_patches", (X, 6), {}, "does not fit in 4"),
    ("op_image_extract_patches", (X, 2, 0), {}, "strides must be at least 1"),
    ("op_image_extract_patches", (X, (2, 2, 2)), {}, "volumes must have 4 dimensions"),
    ("op_image_extract_patches", (X, (2,)), {}, "size must be of length 2"),
    ("op_image_extract_patches_3d", (X, 2), {}, "volumes must have 4 dimensions"),
    ("op_image_reconstruct_patches", (np.zeros((2, 2, 12)), 2), {"strides": 1}, "strides must be the size"),
    ("op_image_reconstruct_patches", (np.zeros((2, 2, 12)), 2), {"padding": "same"}, "output_size is needed"),
    ("op_image_reconstruct_patches", (np.zeros((2, 2, 12)), 2, (4, 5)), {}, "does not fit patches that cover"),
    ("op_image_reconstruct_patches", (np.zeros((2, 2, 12)), 2, 2), {"padding": "same"}, "does not fit"),
    ("op_image_reconstruct_patches", (np.zeros((2, 2, 10)), 2), {}, "do not have the size"),
    ("op_image_reconstruct_patches", (np.zeros((2, 12)), 2), {}, "patches must have 3 dimensions"),
    ("op_image_reconstruct_patches", (np.zeros((2, 2, 12)), 0), {}, "size must be at least 1"),
    ("op_image_gaussian_blur", (X, (3, 3), (1.0, 0.0)), {}, "sigma must be positive"),
    ("op_image_gaussian_blur", (X, (0, 3)), {}, "kernel_size must be at least 1"),
    ("op_image_sobel_edges", (X[0],), {}, "images must have 3 dimensions"),
    ("op_image_ssim", (X, X), {}, "filter_size 11 does not fit"),
    ("op_image_ssim", (X, X), {"filter_size": 2**70}, "does not fit"),
    ("op_image_ssim", (X, X[:3]), {"filter_size": 3}, "image2 must be of the shape"),
    ("op_image_ssim", (X, X), {"filter_size": 3, "max_val": -1.0}, "max_val must be positive"),
    ("op_image_elastic_transform", (X,), {"sigma": 0.0}, "sigma must be positive"),
    ("op_image_elastic_transform", (X,), {"seed": -1}, "seed must be at least 0"),
    ("op_image_scale_and_translate", (X, (2, 5, 3), [0.5], [0.0], (0,), "nearest"), {}, "method must be one of"),
    ("op_image_scale_and_translate", (X, (2, 4, 3), [0.5], [0.0], (0,), "linear"), {}, "output_shape"),
    ("op_image_scale_and_translate", (X, (2, 5, 3), [0.5, 1.0], [0.0], (0,), "linear"), {}, "scale must be of shape"),
    ("op_image_scale_and_translate", (X, (2, 5, 3), [0.5], [0.0], (3,), "linear"), {}, "spatial_dims 3 is out"),
]


@pytest.mark.parametrize(("op", "args", "kwargs", "message"), BAD)
def test_a_bad_argument(backend, op, args, kwargs, message):
    with pytest.raises(errors.ArgumentError, match=f"^{op}: .*{message}"):
        getattr(mo, op)(*args, **kwargs)


@pytest.mark.parametrize(
    ("op", "args", "message"),
    [
        ("op_image_resize", (X, 2), "size must be a pair of ints"),
        ("op_image_resize", (X, (2.0, 2.0)), "size must be made of ints"),
        ("op_image_resize", (X, (2, 2), "bilinear", 1), "antialias must be a bool"),
        ("op_image_crop", (X, 0.5, 0, 0, 0), "top must be made of ints"),
        ("op_image_gaussian_blur", (X, (3, 3), np.ones(2)), "sigma must be a sequence of numbers"),
        ("op_image_map_coordinates", (X, np.ones((3, 2), np.float32), 1, "constant", X), "fill_value must be a number"),
    ],
)
def test_an_argument_of_the_wrong_kind(backend, op, args, message):
    with pytest.raises(errors.ArgumentTypeError, match=f"^{op}: .*{message}"):
        getattr(mo, op)(*args)


def test_a_tensor_that_would_lose_its_gradient_is_refused(backend):
    sigma = mo.op_convert_to_tensor(1.0)
    with pytest.raises(errors.ArgumentTypeError, match="sigma must be a number"):
        mo.op_image_gaussian_blur(X, (3, 3), (sigma, sigma))
    with pytest.raises(errors.ArgumentTypeError, match="alpha must be a number"):
        mo.op_image_elastic_transform(X, sigma)


@pytest.mark.parametrize("dtype", ["bool", "complex64"])
@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("op_image_rgb_to_grayscale", ()),
        ("op_image_rgb_to_hsv", ()),
        ("op_image_hsv_to_rgb", ()),
        ("op_image_resize", ((2, 2),)),
        ("op_image_affine_transform", (IDENTITY,)),
        ("op_image_map_coordinates", (np.ones((3, 2), np.float32), 1)),
        ("op_image_gaussian_blur", ()),
        ("op_image_sobel_edges", ()),
        ("op_image_scale_and_translate", ((2, 5, 3), [0.5], [0.0], (0,), "linear")),
    ],
)
def test_a_dtype_that_cannot_be_interpolated(backend, op, args, dtype):
    with pytest.raises(errors.DTypeError, match=f"^{op}: "):
        getattr(mo, op)(X.astype(dtype), *args)


@pytest.mark.parametrize("op", ["op_image_rgb_to_hsv", "op_image_hsv_to_rgb"])
def test_colours_in_integers_are_refused(backend, op):
    with pytest.raises(errors.DTypeError, match="images must be floats"):
        getattr(mo, op)(X.astype(np.uint8))


def test_a_fill_value_that_the_images_cannot_hold(backend):
    for fill_value in (-1, 256, 0.5, float("nan")):
        with pytest.raises(errors.ArgumentError, match="fill_value"):
            mo.op_image_affine_transform(X.astype(np.uint8), IDENTITY, fill_value=fill_value)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
@pytest.mark.parametrize("order", [0, 1])
def test_integers_are_looked_up_as_scipy_does(backend, dtype, order):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 127, (3, 4)).astype(dtype)
    coordinates = rng.uniform(-6, 9, (2, 30)).astype(np.float32)
    for mode in ("constant", "nearest", "wrap", "mirror", "reflect"):
        found = mo.op_convert_to_numpy(mo.op_image_map_coordinates(x, coordinates, order, mode, 7))
        expected = ndimage.map_coordinates(x.astype(float), coordinates, order=order, mode=mode, cval=7)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, np.round(expected).astype(dtype))


@pytest.mark.parametrize("mode", ["nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_ties_and_edges_fall_as_scipys(backend, mode, size):
    x = np.arange(1.0, size + 1, dtype=np.float32)
    for order in (0, 1):
        # SciPy rounds halves beyond the last entry that are mirrored there to the far side, all others up
        first = -3 * size + (0.125 if (mode, order) == ("mirror", 0) else 0)
        coordinates = np.arange(first, 4 * size, 0.25, dtype=np.float32)[None]
        found = mo.op_convert_to_numpy(mo.op_image_map_coordinates(x, coordinates, order, mode))
        expected = ndimage.map_coordinates(x, coordinates, order=order, mode=mode)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_masks_move_as_masks(backend):
    mask = np.array([[[True], [False], [True]]])
    assert (
        mo.op_convert_to_numpy(mo.op_image_resize(mask, (1, 6), "nearest")).tolist() == np.repeat(mask, 2, 1).tolist()
    )
    moved = mo.op_image_affine_transform(mask, [1.0, 0, 1, 0, 1, 0, 0, 0], "nearest")
    assert mo.op_dtype(moved) == "bool"
    assert mo.op_convert_to_numpy(moved).tolist() == [[[False], [True], [False]]]


def test_what_overshoots_is_clipped_not_wrapped(backend):
    x = np.array([0, 0, 255, 255, 0, 0], np.uint8).reshape(1, 6, 1)
    found = mo.op_convert_to_numpy(mo.op_image_resize(x, (1, 12), "bicubic"))
    assert found.min() == 0
    assert found.max() == 255
    large = np.full((1, 2, 1), 2**31 - 1, np.int32)
    assert mo.op_convert_to_numpy(mo.op_image_resize(large, (1, 3))).min() >= 2**31 - 128


def test_halves_of_integers_are_rounded_alike(backend):
    x = np.arange(0, 36, dtype=np.uint8).reshape(1, 36, 1)
    found = mo.op_convert_to_numpy(mo.op_image_resize(x, (1, 12), "bilinear", True))
    assert found[0, 1:-1, 0].tolist() == list(range(4, 34, 3))
    assert mo.op_convert_to_numpy(mo.op_image_resize(x[:, :2], (1, 1))).tolist() == [[[0]]]
    assert mo.op_convert_to_numpy(mo.op_image_resize(x[:, 1:3], (1, 1))).tolist() == [[[2]]]


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"])
def test_a_nan_stays_where_it_is(backend, interpolation):
    x = np.ones((1, 40, 1), np.float32)
    x[0, 20] = np.nan
    found = mo.op_convert_to_numpy(mo.op_image_resize(x, (1, 80), interpolation))
    assert np.isnan(found[0, 40:42]).any()
    np.testing.assert_allclose(np.delete(found[0, :, 0], range(28, 54)), 1, rtol=1e-6)


def sums_along(x, axis, matrix):
    """Return sums of the entries of `x` with the weights in each row of `matrix`, without those of weight 0."""
    x = np.moveaxis(x, axis, 0)
    with np.errstate(invalid="ignore"):
        sums = [sum((row[j] * x[j] for j in np.flatnonzero(row)), np.zeros(x.shape[1:])) for row in matrix]
    return np.moveaxis(np.array(sums), 0, axis)


SIZES = [((4, 6), (8, 12)), ((8, 4), (4, 16)), ((4, 4), (8, 4)), ((6, 5), (2, 15)), ((7, 4), (3, 9)), ((1, 8), (4, 2))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("way", "old", "new"), [*(("eager", *sizes) for sizes in SIZES), *(("compiled", *SIZES[i]) for i in (1, 4))]
)
def test_what_is_not_finite_reaches_the_pixels_that_it_is_part_of(backend, way, old, new, dtype, multiop_x64):
    draw = np.random.default_rng(0)
    matrices = [line(m, n, n / m, 0.0, "bilinear", False) for m, n in zip(old, new, strict=True)]
    resize = lambda x: mo.op_image_resize(x, new)
    derivatives = lambda x, u: (resize(x), mo.vjp(resize, x)[1](u)[0])
    derivatives = derivatives if way == "eager" else mo.jit(derivatives)
    for spot_of_x, spot_of_u in ((0, 0), (np.nan, 0), (np.inf, np.inf), (0, np.nan), (0, np.inf)):
        for where in ((0, 0), (-1, -1), (old[0] // 2, old[1] // 2)):
            x, u = draw.normal(size=(2, *old, 3)), draw.normal(size=(2, *new, 3))
            x[0, *where, 1] += spot_of_x
            u[1, where[0] * new[0] // old[0], where[1] * new[1] // old[1], 0] += spot_of_u
            y, gradient = x, u
            for axis, matrix in enumerate(matrices, 1):
                y, gradient = sums_along(y, axis, matrix), sums_along(gradient, axis, matrix.T)
            found = derivatives(*(mo.op_convert_to_tensor(t.astype(dtype)) for t in (x, u)))
            for one, expected in zip(found, (y, gradient), strict=True):
                tolerance = 2e-6 if dtype == "float32" else 1e-14
                np.testing.assert_allclose(mo.op_convert_to_numpy(one), expected, rtol=tolerance, atol=tolerance)


def test_a_constant_image_stays_so(backend):
    x = np.full((7, 5, 1), 3, np.float32)
    for interpolation in ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"):
        for antialias in (False, True):
            found = mo.op_convert_to_numpy(mo.op_image_resize(x, (3, 11), interpolation, antialias))
            np.testing.assert_allclose(found, 3, rtol=1e-6)


def test_no_images_give_no_images(backend):
    x = np.ones((0, 4, 5, 3), np.float32)
    assert mo.op_shape(mo.op_image_resize(x, (2, 3))) == (0, 2, 3, 3)
    assert mo.op_shape(mo.op_image_rgb_to_hsv(x)) == (0, 4, 5, 3)
    assert mo.op_shape(mo.op_image_gaussian_blur(x)) == (0, 4, 5, 3)
    assert mo.op_shape(mo.op_image_sobel_edges(x)) == (0, 4, 5, 3, 2)
    assert mo.op_shape(mo.op_image_affine_transform(x, IDENTITY)) == (0, 4, 5, 3)
    assert mo.op_shape(mo.op_image_extract_patches(x, 2)) == (0, 2, 2, 12)
    assert mo.op_shape(mo.op_image_reconstruct_patches(mo.op_image_extract_patches(x, 2), 2)) == (0, 4, 4, 3)
    assert mo.op_shape(mo.op_image_ssim(x, x, filter_size=3)) == (0,)


def test_the_identity_changes_nothing_and_has_a_gradient(backend):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 5, 2)).astype(np.float32)
    same = mo.op_image_perspective_transform(x, POINTS, POINTS)
    np.testing.assert_allclose(mo.op_convert_to_numpy(same), x, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(mo.op_convert_to_numpy(mo.op_image_affine_transform(x, IDENTITY)), x)
    slope = mo.grad(lambda t: mo.op_sum(mo.op_image_affine_transform(x, t)))(mo.op_convert_to_tensor(IDENTITY))
    across = np.concatenate([x[:, 1:] - x[:, :-1], x[:, -1:] - x[:, -2:-1]], 1)  # at the last column, to the left
    np.testing.assert_allclose(mo.op_convert_to_numpy(slope)[2], across.sum(), rtol=1e-4, atol=1e-5)


def test_patches_are_those_of_a_convolution_with_the_identity(backend):
    x = np.arange(20).reshape(1, 4, 5, 1)
    found = mo.op_convert_to_numpy(mo.op_image_extract_patches(x.astype(np.int32), (3, 2), 1))
    windows = np.lib.stride_tricks.sliding_window_view(x[0, ..., 0], (3, 2))
    np.testing.assert_array_equal(found[0], windows.reshape(2, 4, 6))


def test_equal_images_are_similar_and_noise_is_not(backend):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(2, 16, 16, 3)).astype(np.float32)
    np.testing.assert_allclose(mo.op_convert_to_numpy(mo.op_image_ssim(x, x)), [1, 1], rtol=1e-5)
    assert (mo.op_convert_to_numpy(mo.op_image_ssim(x, x[::-1])) < 0.2).all()
    whole = (x * 255).astype(np.uint8)
    found = mo.op_image_ssim(whole, whole, max_val=255)
    assert mo.op_dtype(found) == "float32"
    np.testing.assert_allclose(mo.op_convert_to_numpy(found), [1, 1], rtol=1e-4)


def test_a_seed_gives_the_same_displacements_and_none_gives_others(backend):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(6, 6, 1)).astype(np.float32)
    first, second = (mo.op_convert_to_numpy(mo.op_image_elastic_transform(x, seed=3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    drawn = [mo.op_convert_to_numpy(mo.op_image_elastic_transform(x)) for _ in range(2)]
    assert (drawn[0] != drawn[1]).any()


def test_every_spelling_of_a_method(backend):
    x = np.array([1.0, 4.0, 2.0], np.float32)
    for names in (("linear", "bilinear", "trilinear", "triangle"), ("cubic", "bicubic", "tricubic")):
        found = [
            mo.op_convert_to_numpy(mo.op_image_scale_and_translate(x, (5,), [1.5], [0.2], (0,), name)).tolist()
            for name in names
        ]
        assert found == found[:1] * len(names)


def test_what_comes_from_outside_is_zero(backend):
    found = mo.op_image_scale_and_translate([1.0, 1.0], (5,), [1.0], [2.0], (0,), "linear")
    assert mo.op_convert_to_numpy(found).tolist() == [0, 0, 1, 1, 0]


def test_half_precision_is_computed_in_single(backend):
    x = np.linspace(0, 1, 300, dtype=np.float16).reshape(1, 300, 1)
    found = mo.op_convert_to_numpy(mo.op_image_resize(x, (1, 100), "bilinear", True))
    assert found.dtype == np.float16
    np.testing.assert_allclose(found[0, 1:-1, 0], x[0, 4:-4:3, 0].astype(float), rtol=2e-3)


def test_numbers_whose_squares_overflow_have_their_limits(multiop_backend):
    x = np.arange(16.0, dtype="float32").reshape(4, 4, 1)
    for options in ({"max_val": 1e200}, {"k1": 1e200, "k2": 1e200}):
        found = mo.op_image_ssim(x, x[::-1], filter_size=3, **options)
        np.testing.assert_array_equal(mo.op_convert_to_numpy(found), 1)
    found = mo.op_image_gaussian_blur(x, (3, 3), (1e-200, 5e-324))
    np.testing.assert_array_equal(mo.op_convert_to_numpy(found), x)
