"""Check arguments of convolution and pooling, and bring them to a canonical form. Nothing here needs a framework."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from multiop import errors
from multiop._values import args

Array = np.ndarray[Any, Any]


Pair: TypeAlias = tuple[Any, Any]


def padding(value: Any, *modes: str) -> Any:
    """Return `"valid"`, `"same"` or one of `modes`; numbers pass, for `pads` to read."""
    if isinstance(value, str) or not (isinstance(value, (tuple, list)) or hasattr(value, "__index__")):
        return str(
            args.choice(value.lower() if isinstance(value, str) else value, ("valid", "same", *modes), "padding")
        )
    return value


def options(padding_: Any, data_format_: Any, *modes: str) -> tuple[Any, str]:
    """Return `padding` and `data_format` of them."""
    if type(padding_) is str and padding_ in _MODES and type(data_format_) in _NAMED and data_format_ in _FORMATS:
        return padding_, _FORMATS[data_format_]  # the usual case
    return padding(padding_, *modes), data_format(data_format_)


_MODES = ("same", "valid")
USUAL = set(itertools.product(_MODES, ("channels_last", "channels_first")))  # which `options` returns as they are
_FORMATS = {None: "channels_last", "channels_last": "channels_last", "channels_first": "channels_first"}
_NAMED = (str, type(None))


def numbers(padding: Any, n: int) -> list[Pair]:
    """Return `padding`, an int or for each of `n` spatial dimensions an int or a pair of ints, as `n` pairs."""
    entries = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * n
    if len(entries) != n:
        raise errors.ArgumentError(f"padding must be a number, or {n} numbers or pairs, got {padding!r}")
    return [spatial(entry, 2, "padding", 0) for entry in entries]  # type: ignore[misc]


def data_format(value: Any) -> str:
    """Return `"channels_last"`, which is the default, or `"channels_first"`."""
    return "channels_last" if value is None else args.choice(value, ("channels_last", "channels_first"), "data_format")


def spatial(value: Any, n: int, name: str, least: int = 1) -> tuple[int, ...]:
    """Return `value`, an int or one int for each of `n` spatial dimensions, as a tuple of ints of at least `least`."""
    if type(value) is int and value >= least:
        return (value,) * n
    entries = tuple(value) if isinstance(value, (tuple, list)) else (value,) * n
    if len(entries) != n:
        raise errors.ArgumentError(f"{name} must be an int or {n} of them, got {value!r}")
    try:
        if any(isinstance(entry, (bool, np.bool_)) for entry in entries):
            raise TypeError
        ints = tuple(operator.index(entry) for entry in entries)
    except TypeError:
        raise errors.ArgumentTypeError(f"{name} must hold ints, got {value!r}") from None
    if min(ints) < least:
        raise errors.ArgumentError(f"{name} must be at least {least}, got {value!r}")
    return ints


def axes(shape: Sequence[int | None], data_format: str) -> tuple[int, ...]:
    """Return the spatial axes of `inputs`; these and the channels may not be empty."""
    if not 3 <= len(shape) <= 5:
        raise errors.ArgumentError(
            f"inputs must have a batch, channels, and 1 to 3 spatial dimensions; it has {len(shape)}"
        )
    for size in shape[1:]:
        if isinstance(size, int) and size == 0:
            raise errors.ArgumentError(f"only the batch of inputs may be empty, got the shape {tuple(shape)}")
    return tuple(range(1, len(shape) - 1) if data_format == "channels_last" else range(2, len(shape)))


def adaptive(
    shape: Sequence[int | None], output_size: Any, data_format: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the spatial axes of the inputs, and how many windows there are along each."""
    dims = axes(shape, data_format)
    return dims, spatial(output_size, len(dims), "output_size")


def convolution(
    shape: Sequence[int | None], kernel: Sequence[int], strides: Any, data_format: str, dilation_rate: Any
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the spatial axes of the inputs, the strides and the dilation rates of a convolution."""
    dims = axes(shape, data_format)
    n = len(dims)
    if len(kernel) != n + 2:
        raise errors.ArgumentError(f"kernel must have {n + 2} dimensions as inputs has; it has {len(kernel)}")
    if 0 in kernel:
        raise errors.ArgumentError(f"kernel must not be empty, got the shape {tuple(kernel)}")
    return dims, spatial(strides, n, "strides"), spatial(dilation_rate, n, "dilation_rate")


def around(
    shape: Sequence[int | None], kernel: Sequence[int], data_format: str, dilation_rate: Any
) -> list[tuple[int, int]]:
    """Return how much of `inputs` to repeat at the ends of each dimension, for `op_conv` to keep its size."""
    dims, _, rates = convolution(shape, kernel, 1, data_format, dilation_rate)
    reach = dict(zip(dims, spans(kernel[:-2], rates), strict=True))
    return [((reach.get(axis, 1) - 1) // 2, reach.get(axis, 1) // 2) for axis in range(len(shape))]


def groups(channels: int | None, kernel: Sequence[int]) -> int:
    """Return into how many groups a kernel of `kernel[-2]` input channels divides those of the inputs."""
    if channels is None:
        raise errors.ArgumentError("inputs must have a number of channels that is known")
    if channels % kernel[-2] or kernel[-1] % (channels // kernel[-2]):
        raise errors.ArgumentError(
            f"kernel takes {kernel[-2]} channels and gives {kernel[-1]}, which does not fit inputs of {channels}"
        )
    return channels // kernel[-2]


def bias(shape: Sequence[int | None], kernel: Sequence[int | None]) -> None:
    """Raise an error for a bias that is not one number for each channel that a kernel gives."""
    if len(shape) != 1 or (isinstance(shape[0], int) and isinstance(kernel[-1], int) and shape[0] != kernel[-1]):
        raise errors.ArgumentError(f"bias must have the shape ({kernel[-1]},), got {tuple(shape)}")


def along_channels(data_format: str, dims: int) -> tuple[int, ...]:
    """Return the shape that a vector of one number for each channel takes beside images of `dims` dimensions."""
    return (-1,) if data_format == "channels_last" else (-1, *[1] * dims)


@functools.lru_cache(maxsize=1024)
def is_exact_in_float32(old: int, new: int) -> bool:
    """Say whether float32 holds the centres of `new` pixels, each of them between two of the `old` ones, exactly."""
    step, parts = old // math.gcd(old, new), new // math.gcd(old, new)
    return parts & (parts - 1) == 0 and step * parts % 2 == 0 and 2 * new * step < 2**24


def is_pair(size: Any) -> bool:
    """Say whether `size` is a height and a width in pixels."""
    return type(size) in (tuple, list) and len(size) == 2 and {int}.issuperset(map(type, size)) and min(size) > 0


def fits(sizes: Sequence[int | None], spans: Sequence[int], pads: Sequence[Pair], name: str) -> None:
    """Raise an error for a window that is larger than the padded inputs."""
    for size, span, (start, end) in zip(sizes, spans, pads, strict=True):
        if isinstance(size, int) and size + start + end < span:
            padding = f" beside the padding {list(pads)}" if any(map(any, pads)) else ""
            raise errors.ArgumentError(
                f"{name} spans {tuple(spans)}, which is more than inputs has{padding}: {tuple(sizes)}"
            )


def spans(sizes: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """Return how many entries windows of `sizes` span."""
    return tuple((size - 1) * rate + 1 for size, rate in zip(sizes, dilation, strict=True))


def same(size: Any, span: int, stride: int, maximum: Callable[[Any, Any], Any] = max) -> tuple[Any, Any]:
    """Return how much to pad at the start and at the end, which gets the larger half."""
    total = maximum((-(-size // stride) - 1) * stride + span - size, 0)
    return total // 2, total - total // 2


def pads(
    sizes: Sequence[Any],
    spans: Sequence[int],
    strides: Sequence[int],
    padding: Any,
    name: str = "kernel",
    maximum: Callable[[Any, Any], Any] = max,
) -> list[Pair]:
    """Return how much to pad at the start and the end of each spatial dimension, for windows named `name` to fit."""
    if padding == "same":
        return [same(size, span, stride, maximum) for size, span, stride in zip(sizes, spans, strides, strict=True)]
    found = [(0, 0)] * len(spans) if padding == "valid" else numbers(padding, len(spans))
    fits(sizes, spans, found, name)
    return found


def crops(
    sizes: Sequence[int | None],
    spans: Sequence[int],
    strides: Sequence[int],
    padding: Any,
    output_padding: Any,
    dilation: Sequence[int],
) -> list[tuple[int, int]]:
    """Return how much of a transposed convolution, `(size - 1) * stride + span` long, to drop at start and end.

    A negative number at the end means that zeros are appended.
    """
    named = isinstance(padding, str)
    if output_padding is not None:
        extra = list(spatial(output_padding, len(spans), "output_padding", 0))
        if any(
            more >= (stride if named else max(stride, rate))
            for more, stride, rate in zip(extra, strides, dilation, strict=True)
        ):
            beside = "" if named else " or dilation_rate"
            raise errors.ArgumentError(f"output_padding must be below strides{beside}, got {output_padding!r}")
    elif named:
        extra = [max(stride - span, 0) if padding == "valid" else stride - span % 2 for span, stride in
                 zip(spans, strides, strict=True)]  # fmt: skip
    else:
        extra = [0] * len(spans)
    if not named:
        drops = [(start, end - more) for (start, end), more in zip(numbers(padding, len(spans)), extra, strict=True)]
        for size, span, stride, (start, end) in zip(sizes, spans, strides, drops, strict=True):
            if size is not None and (size - 1) * stride + span <= start + end:
                raise errors.ArgumentError(f"padding {padding!r} crops all of the {(size - 1) * stride + span} entries")
        return drops
    drops = []
    for span, more in zip(spans, extra, strict=True):
        total = (span - span % 2 if padding == "same" else 0) - more
        before = max(total // 2, 0)
        drops.append((before, total - before))
    return drops


def transposed_groups(channels: int | None, kernel: Sequence[int], groups: Any) -> int:
    """Return the number of groups of a transposed convolution of `channels` input channels."""
    (number,) = spatial(groups, 1, "groups")
    if channels != kernel[-1]:
        raise errors.ArgumentError(f"kernel takes {kernel[-1]} channels, which is not the number of inputs")
    if kernel[-1] % number:
        raise errors.ArgumentError(f"{kernel[-1]} channels do not divide into {number} groups")
    return number


def pooling(
    shape: Sequence[Any],
    pool_size: Any,
    strides: Any,
    padding: Any,
    data_format: str,
    ceil_mode: bool,
    maximum: Callable[[Any, Any], Any] = max,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[Pair, ...], tuple[Any, ...]]:
    """Return the spatial axes of the inputs, the sizes and strides of the windows, the padding, and the overhangs.

    An overhang is how far the last window extends beyond the padding, which it does for `ceil_mode` alone.
    """
    dims = axes(shape, data_format)
    windows = spatial(pool_size, len(dims), "pool_size")
    steps = windows if strides is None else spatial(strides, len(dims), "strides")
    sizes = [shape[axis] for axis in dims]
    found = pads(sizes, windows, steps, padding, "pool_size", maximum)
    if not isinstance(padding, str) and any(max(pair) >= k for pair, k in zip(found, windows, strict=True)):
        raise errors.ArgumentError(f"padding must be below pool_size, got {padding!r} and {pool_size!r}")
    beyond = [0] * len(dims)
    if ceil_mode and padding != "same":
        beyond = [
            overhang(size, k, step, start, end, maximum)
            for size, k, step, (start, end) in zip(sizes, windows, steps, found, strict=True)
        ]
    return dims, windows, steps, tuple(found), tuple(beyond)


def overhang(size: Any, window: int, stride: int, start: Any, end: Any, maximum: Callable[[Any, Any], Any]) -> Any:
    """Return how far windows that start at every stride in the inputs extend beyond the padding at the end."""
    last = -maximum((window - size - start - end) // stride, 1 - (size + start + stride - 1) // stride)
    return maximum(last * stride + window - size - start - end, 0)


def numbers_of_windows(
    sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int], pads: Sequence[Pair], overhangs: Sequence[int]
) -> list[int]:
    """Return how many windows there are along each spatial dimension."""
    return [
        (size + start + end + over - window) // stride + 1
        for size, window, stride, (start, end), over in zip(sizes, windows, strides, pads, overhangs, strict=True)
    ]


def counts(size: int, window: int, stride: int, pads: Pair, overhang: int, include_pad: bool) -> list[int]:
    """Return how many entries of a dimension each window holds; the padding counts if `include_pad` says so."""
    (before, after), edge = pads, (pads if include_pad else (0, 0))
    starts = range(-before, size + after + overhang - window + 1, stride)
    return [min(start + window, size + edge[1]) - max(start, -edge[0]) for start in starts]


def bins(size: int | None, bins: int) -> tuple[Array, Array]:
    """Return the indices of the entries in each bin, and the number of entries in each bin.

    The first dimension of the indices is the position in the bin, the second the bin. A shorter bin repeats its last
    entry.
    """
    if size is None:
        raise errors.ArgumentError("inputs must have spatial dimensions whose sizes are known")
    start, end = np.arange(bins) * size // bins, -(-np.arange(1, bins + 1) * size // bins)
    places = np.arange((end - start).max())
    return np.minimum(start + places[:, None], end - 1), end - start


def blocks(sizes: Sequence[int], kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Any, ...]:
    """Return kernel sizes, dilation, padding and strides of `op_unfold`, and how many blocks there are along each."""
    kernel, rates = spatial(kernel_size, 2, "kernel_size"), spatial(dilation, 2, "dilation")
    pads, steps = spatial(padding, 2, "padding", 0), spatial(stride, 2, "stride")
    reach = [size + 2 * pad - span for size, pad, span in zip(sizes, pads, spans(kernel, rates), strict=True)]
    if min(reach) < 0:
        raise errors.ArgumentError(f"kernel_size spans {spans(kernel, rates)}, which is more than {tuple(sizes)}")
    return kernel, rates, pads, steps, tuple(length // step + 1 for length, step in zip(reach, steps, strict=True))


def positions(number: int, window: int, stride: int, rate: int) -> Array:
    """Return the index of each entry of each window; the first dimension is the position in the window."""
    return np.arange(window)[:, None] * rate + np.arange(number) * stride


def check_fold(shape: Sequence[int], kernel: Sequence[int], number: Sequence[int]) -> None:
    """Raise unless `x` of `op_fold` holds blocks of size `kernel`, `number` of them along each dimension."""
    if len(shape) != 3:
        raise errors.ArgumentError(f"x must have 3 dimensions, not {len(shape)}")
    if shape[1] % (kernel[0] * kernel[1]) or shape[2] != number[0] * number[1]:
        raise errors.ArgumentError(
            f"x of the shape {tuple(shape)} does not hold {number[0] * number[1]} blocks of {tuple(kernel)}"
        )


def depthwise(shape: Sequence[int | None], kernel: Sequence[int], data_format: str) -> None:
    """Raise an error for a kernel that does not have the channels of `inputs`."""
    axes(shape, data_format)
    channels = shape[-1 if data_format == "channels_last" else 1]
    if len(kernel) != len(shape) or (isinstance(channels, int) and kernel[-2] != channels):
        raise errors.ArgumentError(f"kernel of the shape {tuple(kernel)} does not fit inputs of {tuple(shape)}")


def pointwise(depthwise: Sequence[int], pointwise: Sequence[int]) -> None:
    """Raise an error for a kernel that does more than mix the output channels of `depthwise`."""
    if len(depthwise) < 2 or tuple(pointwise[:-1]) != (*[1] * (len(depthwise) - 2), depthwise[-2] * depthwise[-1]):
        raise errors.ArgumentError(
            f"pointwise_kernel of the shape {tuple(pointwise)} does not fit depthwise_kernel of {tuple(depthwise)}"
        )


def block(size: Any) -> int:
    """Return a block size of at least 2."""
    return spatial(size, 1, "block_size", 2)[0]


def image(shape: Sequence[Any], first: bool) -> tuple[Any, Any, Any, Any]:
    """Return batch, height, width and channels of a tensor whose channels are `first` or last."""
    if len(shape) != 4:
        raise errors.ArgumentError(f"x must have 4 dimensions, not {len(shape)}")
    batch, *rest = shape
    channels, height, width = rest if first else (rest[2], rest[0], rest[1])
    return batch, height, width, channels


def divides(sizes: dict[str, Any], block: int) -> None:
    """Raise an error for sizes that are not multiples of `block`."""
    for name, size in sizes.items():
        if isinstance(size, int) and size % block:
            raise errors.ArgumentError(f"x has {size} {name}, which is not a multiple of block_size {block}")
