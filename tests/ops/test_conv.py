"""Convolution and pooling: bad arguments, dtypes of two operands, compiled and mapped options, edges of windows."""

import itertools

import numpy as np
import pytest

import multiop as mo
from multiop import errors

X = np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2)
K = np.ones((2, 2, 2, 3), np.float32)
U = np.ones((1, 8, 9), np.float32)


def numpy(x):
    return mo.op_convert_to_numpy(x)


@pytest.mark.parametrize(
    ("op", "args", "kwargs", "match"),
    [
        ("op_conv", (X, K), {"strides": 0}, "strides must be at least 1"),
        ("op_conv", (X, K), {"strides": (1, 1, 1)}, "strides must be an int or 2 of them"),
        ("op_conv", (X, K), {"padding": -1}, "padding must be at least 0"),
        ("op_conv", (X, K), {"padding": (1, 2, 3)}, "padding must be a number, or 2 numbers or pairs"),
        ("op_conv", (X, K), {"padding": ((1, 2, 3), 1)}, "padding must be an int or 2 of them"),
        ("op_conv", (X, K), {"padding": (1, 0), "dilation_rate": 4}, "kernel spans .* beside the padding"),
        ("op_conv", (X, K[0]), {"padding": "circular"}, "kernel must have 4 dimensions"),
        ("op_conv_transpose", (X, K.swapaxes(2, 3)), {"padding": 3}, "padding 3 crops all of the 5 entries"),
        ("op_conv_transpose", (X, K.swapaxes(2, 3)), {"padding": 1, "output_padding": 1}, "below strides or dilation"),
        ("op_conv_transpose", (X, K.swapaxes(2, 3)), {"groups": 3}, "2 channels do not divide into 3 groups"),
        ("op_conv_transpose", (X, K.swapaxes(2, 3)), {"groups": 0}, "groups must be at least 1"),
        ("op_max_pool", (X, 2), {"padding": 2}, "padding must be below pool_size"),
        ("op_average_pool", (X, 7), {"padding": (1, (1, 0))}, "pool_size spans .* beside the padding"),
        ("op_conv", (X, K), {"dilation_rate": 4}, "kernel spans"),
        ("op_conv", (X, K), {"bias": np.ones(2, np.float32)}, "bias must have the shape"),
        ("op_conv", (X, K), {"bias": np.ones((1, 3), np.float32)}, "bias must have the shape"),
        ("op_conv", (X, K[0]), {}, "kernel must have 4 dimensions"),
        ("op_conv", (X[0, 0], K), {}, "inputs must have"),
        ("op_conv", (X, np.ones((2, 2, 3, 3), np.float32)), {}, "kernel takes 3 channels"),
        ("op_conv", (X, np.ones((2, 2, 1, 3), np.float32)), {}, "kernel takes 1 channels"),
        ("op_conv", (X[:, :0], K), {"padding": "same"}, "inputs may be empty"),
        ("op_conv", (X, K[:0]), {}, "kernel must not be empty"),
        ("op_conv_transpose", (X, K), {}, "kernel takes 3 channels"),
        ("op_conv_transpose", (X, K.swapaxes(2, 3)), {"output_padding": 1}, "output_padding must be below strides"),
        ("op_conv_transpose", (X, K.swapaxes(2, 3)), {"strides": 2, "output_padding": -1}, "output_padding"),
        ("op_depthwise_conv", (X, np.ones((2, 2, 1, 3), np.float32)), {}, "kernel of the shape"),
        ("op_depthwise_conv", (X, K[..., :1]), {"strides": (2, 1), "padding": 1.5}, "padding must be one of"),
        ("op_separable_conv", (X, K, K), {}, "pointwise_kernel"),
        ("op_unfold", (X[0], 2), {}, "x must have 4 dimensions"),
        ("op_unfold", (X, 5), {}, "kernel_size spans"),
        ("op_unfold", (X, 2), {"padding": -1}, "padding must be at least 0"),
        ("op_unfold", (X, (2, 2, 2)), {}, "kernel_size"),
        ("op_fold", (U, 4, 2), {"stride": 2}, "blocks"),
        ("op_fold", (U, 4, 3), {}, "blocks"),
        ("op_fold", (U[0], 4, 2), {}, "x must have 3 dimensions"),
        ("op_average_pool", (X, 5), {}, "pool_size spans"),
        ("op_average_pool", (X, 0), {}, "pool_size must be at least 1"),
        ("op_max_pool", (X[0, 0], 2), {}, "inputs must have"),
        ("op_max_pool", (X[..., :0], 2), {}, "inputs may be empty"),
        ("op_max_pool", (X, 2), {"strides": (1,)}, "strides must be an int or 2 of them"),
        ("op_adaptive_average_pool", (X, 0), {}, "output_size must be at least 1"),
        ("op_adaptive_max_pool", (X, (1, 2, 3)), {}, "output_size must be an int or 2 of them"),
        ("op_depth_to_space", (X, 2), {}, "2 channels"),
        ("op_depth_to_space", (X, 1), {}, "block_size must be at least 2"),
        ("op_space_to_depth", (X, 3), {}, "4 height"),
        ("op_space_to_depth", (X[0], 2), {}, "x must have 4 dimensions"),
    ],
)
def test_a_bad_argument(backend, op, args, kwargs, match):
    with pytest.raises(errors.ArgumentError, match=match):
        getattr(mo, op)(*args, **kwargs)


@pytest.mark.parametrize(
    ("op", "args", "kwargs", "name"),
    [
        ("op_conv", (X, K), {"strides": 1.0}, "strides"),
        ("op_conv", (X, K), {"dilation_rate": True}, "dilation_rate"),
        ("op_conv_transpose", (X, K.swapaxes(2, 3)), {"output_padding": "1"}, "output_padding"),
        ("op_unfold", (X, "2"), {}, "kernel_size"),
        ("op_fold", (U, 4.0, 2), {}, "output_size"),
        ("op_max_pool", (X, None), {}, "pool_size"),
        ("op_adaptive_max_pool", (X, 2.0), {}, "output_size"),
        ("op_depth_to_space", (X, 2.0), {}, "block_size"),
    ],
)
def test_an_option_that_is_no_int(backend, op, args, kwargs, name):
    with pytest.raises(errors.ArgumentTypeError, match=f"{name} must hold ints"):
        getattr(mo, op)(*args, **kwargs)


@pytest.mark.parametrize("op", ["op_max_pool", "op_adaptive_max_pool"])
def test_complex_numbers_have_no_largest(backend, op):
    with pytest.raises(errors.DTypeError, match="complex64"):
        getattr(mo, op)(X.astype(np.complex64), 2)


@pytest.mark.parametrize(
    ("one", "other", "dtype"),
    [
        ("float16", "float32", "float32"),
        ("bfloat16", "float16", "float32"),
        ("int32", "float16", "float16"),
        ("bool", "bool", "int32"),
        ("uint8", "int8", "int16"),
        ("uint32", "uint32", "uint32"),
        ("float32", "complex64", "complex64"),
    ],
)
def test_two_operands_meet_in_their_common_dtype(backend, one, other, dtype):
    x, k = mo.op_cast(X % 2, one), mo.op_cast(K, other)
    assert mo.op_dtype(mo.op_conv(x, k)) == dtype
    assert mo.op_dtype(mo.op_conv_transpose(x, mo.op_swapaxes(k, 2, 3))) == dtype
    assert numpy(mo.op_conv(x, k)).real.astype(float).max() == 4.0


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "int16", "int64", "bool"])
def test_the_largest_integer(backend, multiop_x64, dtype):
    x = mo.op_cast(np.array([[[0.0], [3.0], [2.0]]]), dtype)
    for y in (mo.op_max_pool(x, 2, 1, "same"), mo.op_adaptive_max_pool(x, 2)):
        assert mo.op_dtype(y) == ("int32" if dtype == "bool" else dtype)
        assert numpy(y).ravel().tolist()[:2] == ([1, 1] if dtype == "bool" else [3, 3])


def test_integers_of_64_bits_are_exact(backend, multiop_x64):
    big = 2**53 + 1
    x = mo.op_convert_to_tensor(np.array([[[big], [big - 1], [1]]]), "int64")
    k = mo.op_convert_to_tensor(np.array([[[3]], [[-3]]]), "int64")
    assert numpy(mo.op_adaptive_max_pool(x, 2)).ravel().tolist() == [big, big - 1]
    assert numpy(mo.op_conv(x, k)).ravel().tolist() == [3, 3 * (big - 2)]
    assert numpy(mo.op_conv_transpose(x, k)).ravel().tolist() == [3 * big, -3, 3 - 3 * (big - 1), -3]


def test_small_integers_wrap(backend):
    x, k = mo.op_cast(np.full((1, 4, 1), 100), "int8"), mo.op_cast(np.ones((2, 1, 1)), "int8")
    assert numpy(mo.op_conv(x, k)).ravel().tolist() == [-56, -56, -56]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_the_same_padding_as_tensorflow(backend, size, stride, window):
    x = np.arange(1.0, size + 1, dtype=np.float32).reshape(1, size, 1)
    number = -(-size // stride)
    start = [i * stride - max((number - 1) * stride + window - size, 0) // 2 for i in range(number)]
    seen = [np.arange(max(i, 0), min(i + window, size)) + 1 for i in start]
    ones = np.ones((window, 1, 1), np.float32)
    assert numpy(mo.op_conv(x, ones, stride, "same")).ravel().tolist() == [one.sum() for one in seen]
    assert numpy(mo.op_max_pool(x, window, stride, "same")).ravel().tolist() == [one.max() for one in seen]
    np.testing.assert_allclose(
        numpy(mo.op_average_pool(x, window, stride, "same")).ravel(), [one.mean() for one in seen], rtol=1e-6
    )


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_the_transposed_convolution_is_the_gradient(backend, padding, stride, window):
    rng = np.random.default_rng(0)
    x, k = rng.normal(size=(1, 7, 2)).astype(np.float32), rng.normal(size=(window, 2, 3)).astype(np.float32)
    y = mo.op_conv(x, k, stride, padding)
    _, pullback = mo.vjp(lambda x: mo.op_conv(x, k, stride, padding), mo.op_convert_to_tensor(x))
    expected = numpy(pullback(mo.op_ones_like(y))[0])
    found = numpy(mo.op_conv_transpose(mo.op_ones_like(y), k, stride, padding))
    if found.shape == expected.shape:  # a stride may leave entries at the end that no window sees
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    elif padding == "valid":
        size = min(found.shape[1], expected.shape[1])
        np.testing.assert_allclose(found[:, :size], expected[:, :size], rtol=1e-5, atol=1e-5)


def tensors(*shapes):
    rng = np.random.default_rng(0)
    return [mo.op_convert_to_tensor(rng.normal(size=shape).astype(np.float32)) for shape in shapes]


def assert_close(found, expected):
    np.testing.assert_allclose(numpy(found), numpy(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stride", [(2, 2), (3, 2), (2, 1)])
@pytest.mark.parametrize("rate", [(2, 3), (6, 1)])
@pytest.mark.parametrize("channels", [2, 1])
def test_strides_of_a_dilated_convolution_skip_its_windows(backend, stride, rate, channels):
    x, k = tensors((1, 14, 11, 2), (3, 2, channels, 2))
    steps = (slice(None), *(slice(None, None, step) for step in stride))
    y, pull = mo.vjp(lambda x, k: mo.op_conv(x, k, stride, ((1, 2), 0), None, rate), x, k)
    expected, expected_pull = mo.vjp(lambda x, k: mo.op_conv(x, k, 1, ((1, 2), 0), None, rate)[steps], x, k)
    assert_close(y, expected)
    for found, wanted in zip(pull(y), expected_pull(y), strict=True):
        assert_close(found, wanted)


@pytest.mark.parametrize("window", [1, 2, 3, 5, 8])
def test_a_circular_convolution_is_a_product_of_spectra(backend, window):
    x, k = tensors((2, 7, 1), (window, 1, 1))
    y = numpy(mo.op_conv(x, k, padding="circular"))[..., 0]
    spread = np.zeros((7, 1, 1))
    np.add.at(spread, (np.arange(window) - (window - 1) // 2) % 7, numpy(k))
    product = np.fft.fft(numpy(x)[..., 0]) * np.fft.fft(spread[:, 0, 0]).conj()
    np.testing.assert_allclose(y, np.fft.ifft(product).real, rtol=1e-5, atol=1e-5)
    assert_close(mo.op_conv(x, k, 3, "circular"), mo.op_conv(x, k, padding="circular")[:, ::3])


def test_a_reflected_convolution_sees_the_mirror_image(backend):
    x = mo.op_convert_to_tensor([[[1.0], [2.0], [4.0], [8.0]]])
    y = mo.op_conv(x, mo.op_ones((4, 1, 1)), padding="reflect")
    assert numpy(y).ravel().tolist() == [2 + 1 + 2 + 4, 1 + 2 + 4 + 8, 2 + 4 + 8 + 4, 4 + 8 + 4 + 2]


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(
    ("stride", "rate", "padding"), [(1, 1, 1), (2, 1, (0, 1)), (3, 2, ((0, 3), (2, 0))), (2, 3, ((4, 1), 0))]
)
def test_a_transposed_convolution_of_groups_is_the_gradient(backend, groups, stride, rate, padding):
    x, k = tensors((1, 8, 9, 4), (2, 3, 4 // groups, 8))
    y, pull = mo.vjp(lambda x: mo.op_conv(x, k, stride, padding, None, rate), x)
    pads = [np.sum(n if isinstance(n, tuple) else (n, n)) for n in (padding if stride > 1 else (1, 1))]
    spans = [(size - 1) * rate + 1 for size in (2, 3)]
    extra = [int(n + pad - span) % stride for n, pad, span in zip((8, 9), pads, spans, strict=True)]
    assert_close(mo.op_conv_transpose(y, k, stride, padding, extra, None, rate, groups), pull(y)[0])


@pytest.mark.parametrize("size", [2, 5, 6])
@pytest.mark.parametrize(("window", "stride", "start", "end"), [(2, 3, 0, 1), (3, 2, 1, 1), (3, 2, 2, 0), (4, 1, 0, 2)])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_padded_windows_hold_what_they_cover(backend, size, window, stride, start, end, ceil_mode):
    x = np.arange(1.0, size + 1, dtype=np.float32).reshape(1, size, 1)
    limit = size if ceil_mode else size + end - window + 1
    begins = [i for i in range(-start, limit, stride) if i == -start or i + window - stride < size + end]
    seen = [np.arange(max(i, 0), min(i + window, size)) + 1 for i in begins]
    counted = [min(i + window, size + end) - i for i in begins]
    options = {"strides": stride, "padding": ((start, end),), "ceil_mode": ceil_mode}
    assert numpy(mo.op_max_pool(x, window, **options)).ravel().tolist() == [one.max() for one in seen]
    for include, counts in ((False, map(len, seen)), (True, counted)):
        averages = numpy(mo.op_average_pool(x, window, **options, count_include_pad=include)).ravel()
        expected = [one.sum() / count for one, count in zip(seen, counts, strict=True)]
        np.testing.assert_allclose(averages, expected, rtol=1e-6)


@pytest.mark.parametrize("sizes", [(1, 4, 4), (4, 1, 3), (1, 1, 1), (2, 2, 5)])
@pytest.mark.parametrize("include", [False, True])
def test_windows_deeper_than_a_padded_volume_have_their_average(backend, sizes, include):
    x = np.arange(1.0, np.prod(sizes) + 1, dtype=np.float32).reshape(1, *sizes, 1)
    window, pads = (3, 2, 2), ((1, 1), (1, 1), (1, 0))
    found = mo.op_average_pool(x, window, strides=1, padding=pads, count_include_pad=include)
    padded, ones = (np.pad(one, ((0, 0), *pads, (0, 0))) for one in (x, np.ones_like(x)))
    places = [range(n + sum(pad) - k + 1) for n, pad, k in zip(sizes, pads, window, strict=True)]
    expected = []
    for place in itertools.product(*places):
        key = (0, *[slice(i, i + k) for i, k in zip(place, window, strict=True)], 0)
        expected.append(padded[key].sum() / (ones[key].size if include else ones[key].sum()))
    np.testing.assert_allclose(numpy(found).ravel(), expected, rtol=1e-6)


def test_folding_counts_how_often_a_block_sees_an_entry(backend):
    x = np.ones((1, 1, 4, 4), np.float32)
    y = numpy(mo.op_fold(mo.op_unfold(x, 3, padding=1), 4, 3, padding=1))
    row = np.array([2, 3, 3, 2])
    assert (y[0, 0] == np.outer(row, row)).all()


def test_space_to_depth_undoes_depth_to_space(backend):
    x = mo.op_convert_to_tensor(np.arange(32).reshape(1, 2, 2, 8))
    assert (numpy(mo.op_space_to_depth(mo.op_depth_to_space(x, 2), 2)) == numpy(x)).all()
    x = mo.op_transpose(x, (0, 3, 1, 2))
    again = mo.op_space_to_depth(mo.op_depth_to_space(x, 2, "channels_first"), 2, "channels_first")
    assert (numpy(again) == numpy(x)).all()


@pytest.mark.parametrize("op", ["op_average_pool", "op_max_pool", "op_adaptive_average_pool", "op_adaptive_max_pool"])
def test_channels_first_is_the_transposed_answer(backend, op):
    last = numpy(getattr(mo, op)(X, 3))
    first = numpy(getattr(mo, op)(np.moveaxis(X, -1, 1), 3, data_format="channels_first"))
    assert (np.moveaxis(first, 1, -1) == last).all()


def test_compiled_together(backend):
    def network(x):
        return mo.op_average_pool(mo.op_conv(x, mo.op_convert_to_tensor(K), padding="same"), 2, 1, "same")

    x = mo.op_convert_to_tensor(X)
    np.testing.assert_allclose(numpy(mo.jit(network)(x)), numpy(network(x)), rtol=1e-6)
