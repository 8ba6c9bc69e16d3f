"""Convolution and pooling against PyTorch's own, argument for argument."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional

import multiop as mo

X = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 4, 7, 6)))


def assert_same(found, expected):
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("padding", "window"), [(0, 2), (1, 3), ((0, 1), (1, 3)), ((1, 2), (2, 4))])
def test_pooling(padding, window):
    for stride, ceil_mode in itertools.product((None, 1, 2, (3, 2)), (False, True)):
        options = {"strides": stride, "padding": padding, "data_format": "channels_first", "ceil_mode": ceil_mode}
        for sign in (1, -1):
            expected = functional.max_pool2d(sign * X, window, stride, padding, ceil_mode=ceil_mode)
            assert_same(mo.op_max_pool(sign * X, window, **options), expected)
        for include in (False, True):
            expected = functional.avg_pool2d(X, window, stride, padding, ceil_mode, include)
            assert_same(mo.op_average_pool(X, window, **options, count_include_pad=include), expected)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_transposed_convolution(groups):
    kernel = torch.from_numpy(np.random.default_rng(1).normal(size=(4, 3, 2, 3)))  # in, out / groups, window
    ours = kernel.permute(2, 3, 1, 0)
    for stride, padding, extra, rate in itertools.product((1, (2, 3)), (0, (1, 2)), (0, (1, 0)), (1, (3, 2))):
        if extra and stride == rate == 1:
            continue
        expected = functional.conv_transpose2d(X, kernel, None, stride, padding, extra, groups, rate)
        found = mo.op_conv_transpose(X, ours, stride, padding, extra, "channels_first", rate, groups)
        assert_same(found, expected)


@pytest.mark.parametrize("mode", ["circular", "reflect"])
def test_padding_modes(mode):
    layer = torch.nn.Conv2d(4, 8, 3, 2, 1, groups=2, bias=False, padding_mode=mode, dtype=torch.float64)
    found = mo.op_conv(X, layer.weight.permute(2, 3, 1, 0), 2, mode, "channels_first")
    assert_same(found, layer(X))
