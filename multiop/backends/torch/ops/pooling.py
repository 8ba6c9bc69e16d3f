"""Pooling: the average or the largest entry in each window."""

from __future__ import annotations

import functools

import torch
from torch.nn import functional

from multiop._values import windows as _windows

from ..conversion import LONG, bool_to_int32, convert, floating, in_comparable_dtype, is_float, reject_complex, resolve
from .convolution import channels_first, to_data_format

_AVERAGE = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}
_ADAPTIVE_AVERAGE = {
    1: functional.adaptive_avg_pool1d,
    2: functional.adaptive_avg_pool2d,
    3: functional.adaptive_avg_pool3d,
}
_MAX = {2: torch.max_pool2d, 3: torch.max_pool3d}
_ADAPTIVE_MAX = {
    1: functional.adaptive_max_pool1d,
    2: functional.adaptive_max_pool2d,
    3: functional.adaptive_max_pool3d,
}


def op_average_pool(inputs, pool_size, strides, padding, data_format, ceil_mode, count_include_pad):
    inputs = floating(inputs)
    windows = resolve(plan_windows, inputs.shape, pool_size, strides, padding, data_format, ceil_mode)
    x = inputs if data_format == "channels_first" else inputs.movedim(-1, 1)
    if not windows[2] and x.dtype in LONG:
        y = _AVERAGE[len(windows[0])](x, *windows[:2])
        return y if data_format == "channels_first" else y.movedim(1, -1)
    return to_data_format(average_in_wider_dtype(lambda x: average(x, *windows, count_include_pad), x), data_format)


def op_max_pool(inputs, pool_size, strides, padding, data_format, ceil_mode):
    if not is_float(inputs):
        (inputs,) = reject_complex(*bool_to_int32(convert(inputs)))
    windows = resolve(plan_windows, inputs.shape, pool_size, strides, padding, data_format, ceil_mode)
    x = inputs if data_format == "channels_first" else inputs.movedim(-1, 1)
    if not windows[2] and x.ndim > 3 and x.is_floating_point():
        y = _MAX[len(windows[0])](x, *windows[:2])
        return y if data_format == "channels_first" else y.movedim(1, -1)
    return to_data_format(largest_of_each(x, *windows), data_format)


@functools.lru_cache(maxsize=1024, typed=True)
def plan_windows(shape, pool_size, strides, padding, data_format, ceil_mode):
    """Return the sizes and strides of windows, the padding, which is empty where there is none, and the overhangs."""
    _, *windows, pads, overhangs = _windows.pooling(shape, pool_size, strides, padding, data_format, ceil_mode)
    return *windows, pads if any(overhangs) or any(map(any, pads)) else (), overhangs


def largest_of_each(x, size, strides, pads, overhangs):
    """Return the largest entry in each window."""
    if x.ndim == 3:  # PyTorch has no kernel for integers
        windows = (1, *size), (1, *strides), ((0, 0), *pads), (0, *overhangs)
        return in_comparable_dtype(lambda x: largest(x, *windows), x.unsqueeze(2)).squeeze(2)
    return in_comparable_dtype(lambda x: largest(x, size, strides, pads, overhangs), x)


def op_adaptive_average_pool(inputs, output_size, data_format):
    inputs = floating(inputs)
    _, size = _windows.adaptive(inputs.shape, output_size, data_format)
    x = channels_first(inputs, data_format)
    return to_data_format(average_in_wider_dtype(lambda x: _ADAPTIVE_AVERAGE[len(size)](x, size), x), data_format)


def op_adaptive_max_pool(inputs, output_size, data_format):
    (inputs,) = reject_complex(*bool_to_int32(convert(inputs)))
    _, size = _windows.adaptive(inputs.shape, output_size, data_format)
    x = channels_first(inputs, data_format)
    if not x.is_floating_point():
        return to_data_format(in_comparable_dtype(lambda x: adaptive_integer_max(x, size), x), data_format)
    return to_data_format(_ADAPTIVE_MAX[len(size)](x, size), data_format)


def adaptive_integer_max(x, size):
    """Take the maximum of each bin, one dimension after the other: PyTorch has no kernel for integers."""
    for dim, bins in enumerate(size, 2):
        n = x.shape[dim]
        start = torch.arange(bins, device=x.device) * n // bins
        last = (torch.arange(1, bins + 1, device=x.device) * n - 1) // bins
        places = torch.arange(max(((i + 1) * n - 1) // bins - i * n // bins for i in range(bins)) + 1, device=x.device)
        index = torch.minimum(start[:, None] + places, last[:, None])
        x = x.index_select(dim, index.reshape(-1)).unflatten(dim, tuple(index.shape)).amax(dim + 1)
    return x


def average(x, size, strides, pads, overhangs, count_include_pad):
    pool, n = _AVERAGE[len(size)], x.shape[2:]
    # PyTorch refuses such a volume, padded or not
    is_small = len(size) == 3 and min(m - k for m, k in zip(n, size, strict=True)) < 0
    if count_include_pad and any(map(any, pads)):
        number = _windows.numbers_of_windows(n, size, strides, pads, overhangs)
        if is_small or any(start != end or start > k // 2 for (start, end), k in zip(pads, size, strict=True)):
            x, pads = with_zeros(x, pads), [(0, 0)] * len(size)
        return narrow_to_windows(pool(x, size, strides, [start for start, _ in pads], any(overhangs), True), number)
    padded = lambda x, pads, ceil: pool(x, size, strides, pads, ceil, False)  # noqa: E731
    found = None if is_small else pool_padded(padded, x, size, strides, pads, overhangs)
    if found is None:
        found = pool(with_zeros(x, beyond(pads, overhangs)), size, strides)
        for dim, windows in enumerate(zip(n, size, strides, pads, overhangs, strict=True)):
            counts = torch.tensor(_windows.counts(*windows, False), dtype=x.dtype, device=x.device)
            found = found / (counts / size[dim]).reshape(-1, *[1] * (len(size) - dim - 1))
    return found


def largest(x, size, strides, pads, overhangs):
    pool = _MAX[len(size)]
    found = pool_padded(lambda x, pads, ceil: pool(x, size, strides, pads, 1, ceil), x, size, strides, pads, overhangs)
    if found is None:
        for dim, (start, end) in enumerate(beyond(pads, overhangs), 2):
            if start or end:  # repeat the edges, which are in the windows that extend beyond them
                n = x.shape[dim]
                x = x.index_select(dim, torch.arange(-start, n + end, device=x.device).clamp(0, n - 1))
        found = pool(x, size, strides)
    return found


def pool_padded(pool, x, size, strides, pads, overhangs):
    """Call `pool`, which pads both ends equally, by at most half a window; `None` if windows lie elsewhere then.

    `pool` takes how much to pad, and whether a window may extend beyond the end.
    """
    if not any(overhangs) and not any(map(any, pads)):
        return pool(x, [0] * len(size), False)
    numbers = _windows.numbers_of_windows(x.shape[2:], size, strides, pads, overhangs)
    for ceil in (False, True):
        both = [symmetric(*dim, ceil) for dim in zip(x.shape[2:], size, strides, pads, numbers, strict=True)]
        if None not in both:
            first = [less - start for less, (start, _) in zip(both, pads, strict=True)]
            return narrow_to_windows(pool(x, both, ceil), numbers, first)
    return None


def symmetric(n, k, stride, pads, number, ceil):
    """Return a padding of both ends for which a window starts where the first of `number` windows has to."""
    start, end = pads
    for both in {start, end} if stride == 1 and end > start else (start,):  # then the first windows are dropped
        over = _windows.overhang(n, k, stride, both, both, max) if ceil else 0
        if both <= k // 2 and both - start + number <= (n + 2 * both + over - k) // stride + 1:
            return both
    return None


def narrow_to_windows(y, numbers, first=(0, 0, 0)):
    """Return the windows of `y` that are wanted."""
    for dim, (number, start) in enumerate(zip(numbers, first, strict=False), 2):
        y = y if y.shape[dim] == number else y.narrow(dim, start, number)
    return y


def beyond(pads, overhangs):
    return [(start, end + over) for (start, end), over in zip(pads, overhangs, strict=True)]


def with_zeros(x, pads):
    return functional.pad(x, [one for pair in reversed(pads) for one in pair])


def average_in_wider_dtype(average, x):
    """Call `average` on `x` in a dtype that PyTorch has a kernel for and that does not overflow."""
    if x.is_complex():
        return torch.complex(average(x.real), average(x.imag))
    if x.dtype in (torch.float16, torch.bfloat16) and x.device.type == "cpu":
        return average(x.float()).type(x.dtype)
    return average(x)
