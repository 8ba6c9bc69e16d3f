"""Layers that take more than an expression: the source of those that a port uses is written into its file.

Tensors have the layout of the model that is ported: channels stand in front of space, kernels are `(out, in, *window)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from multiop import Tensor, ops, random, vjp


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply `(..., in)` by a matrix `(out, in)`, and add a vector `(out,)`."""
    y = ops.matmul(x, ops.transpose(weight))
    return y if bias is None else y + bias


def grouped_matmul(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """Multiply the rows of `x` up to each of `ends` by a matrix of their own, one of `(groups, in, out)`."""
    rows = ops.arange(ops.shape(x)[0], dtype=ends.dtype)
    group = ops.expand_dims(ops.searchsorted(ends, rows, side="right"), 1)
    parts = [ops.where(ops.equal(group, i), ops.matmul(x, weight[i]), 0.0) for i in range(weight.shape[0])]
    return sum(parts[1:], parts[0])


def conv(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1
) -> Tensor:
    """Slide kernels `(out, in / groups, *window)` over `(batch, in, *space)`."""
    ndim = len(weight.shape) - 2
    kernel = ops.transpose(weight, (*range(2, ndim + 2), 1, 0))
    return ops.conv(x, kernel, stride, padding, "channels_first", dilation, bias)


def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    crop: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Place copies of kernels `(in, out / groups, *window)`, each times an entry of `(batch, in, *space)`, and crop."""
    ndim = len(weight.shape) - 2
    kernel = ops.transpose(weight, (*range(2, ndim + 2), 1, 0))
    y = ops.conv_transpose(x, kernel, stride, crop, output_padding, "channels_first", dilation, groups)
    return y if bias is None else y + ops.reshape(bias, (-1, *[1] * ndim))


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Take the channels of `(batch, channels, *space)` from each of `groups` groups in turn."""
    shape = ops.shape(x)
    y = ops.reshape(x, (shape[0], groups, x.shape[1] // groups, *shape[2:]))
    return ops.reshape(ops.swapaxes(y, 1, 2), shape)


def max_pool(x: Tensor, size: Any, stride: Any, pads: Sequence[tuple[int, int]] = ()) -> Tensor:
    """Take the largest entry under each window of `(batch, channels, *space)`."""
    return ops.max_pool(x, size, stride, pads or "valid", "channels_first")


def dilated_max_pool(x: Tensor, size: Any, stride: Any, pads: Sequence[tuple[int, int]], dilation: Any) -> Tensor:
    """Take the largest of entries that lie `dilation` apart in `(batch, channels, *space)`; the first one of equals."""
    ndim = len(x.shape) - 2
    sizes, strides, steps = ([n] * ndim if isinstance(n, int) else n for n in (size, stride, dilation))
    x = ops.pad(x, [(0, 0), (0, 0), *pads], constant_values=-float("inf"))
    entries = windows(x, *([1, 1, *option] for option in (sizes, strides, steps)))
    largest = ops.take_along_axis(entries, ops.argmax(entries, axis=-1, keepdims=True), axis=-1)
    return ops.squeeze(largest, axis=-1)


def overhang(n: int, size: int, stride: int, pad: int) -> int:
    """Return by how much the last window reaches over the end: none begins behind the `n` entries and their `pad`."""
    count = min(-(-(n + 2 * pad - size) // stride) + 1, -(-(n + pad) // stride))
    return max((count - 1) * stride + size - (n + 2 * pad), 0)


def window_keys(
    shape: Sequence[Any], sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> list[tuple[slice, ...]]:
    """Return for each place in a window the slices of what stands there while the window slides."""
    keys = []
    for place in product(*map(range, sizes)):
        key = []
        for n, size, stride, step, i in zip(shape, sizes, strides, dilation, place, strict=True):
            last = (n - (size - 1) * step - 1) // stride * stride if size * stride > 1 else None
            key.append(slice(None) if last is None else slice(i * step, i * step + last + 1, stride))
        keys.append(tuple(key))
    return keys


def windows(x: Tensor, sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Tensor:
    """Stack the entries under each window that slides over `x` in a new last dimension."""
    return ops.stack([x[key] for key in window_keys(x.shape, sizes, strides, dilation)], axis=-1)


def extremes(x: Tensor, sizes: Any, strides: Any, pads: Any, value: float) -> Tensor:
    """Return where in each window over `x`, padded with the infinite `value`, the first extreme entry stands."""
    entries = windows(ops.pad(x, pads, constant_values=value), sizes, strides, [1] * len(sizes))
    return ops.argmax(entries, axis=-1) if value < 0 else ops.argmin(entries, axis=-1)


def gather_extremes(x: Tensor, y: Tensor, sizes: Any, strides: Any, pads: Any, value: float) -> Tensor:
    """Pick from each window over `y` the entry that is the extreme one in `x`."""
    place = ops.expand_dims(extremes(x, sizes, strides, pads, value), -1)
    entries = windows(ops.pad(y, pads), sizes, strides, [1] * len(sizes))
    return ops.squeeze(ops.take_along_axis(entries, place, axis=-1), axis=-1)


def scatter_extremes(x: Tensor, u: Tensor, sizes: Any, strides: Any, pads: Any, value: float) -> Tensor:
    """Add each entry of `u` to zeros, where the extreme entry of its window over `x` stands."""
    place = extremes(x, sizes, strides, pads, value)
    y = ops.zeros_like(ops.pad(x, pads))
    for i, key in enumerate(window_keys(y.shape, sizes, strides, [1] * len(sizes))):
        y = ops.add_at(y, key, ops.where(ops.equal(place, i), u, 0.0))
    return y[tuple(slice(low or None, -high or None) for low, high in pads)]


def average_pool(
    x: Tensor, size: Any, stride: Any, counted: Sequence[tuple[int, int]], pads: Sequence[tuple[int, int]]
) -> Tensor:
    """Average the entries under each window of `(batch, channels, *space)`: zeros in `counted` count, in `pads` not."""
    ones = ops.pad(ops.ones_like(x), [(0, 0), (0, 0), *counted], constant_values=1)
    ones = ops.pad(ones, [(0, 0), (0, 0), *pads])
    x = ops.pad(ops.pad(x, [(0, 0), (0, 0), *counted]), [(0, 0), (0, 0), *pads])
    total = ops.average_pool(x, size, stride, data_format="channels_first")
    return total / ops.average_pool(ones, size, stride, data_format="channels_first")


def pad_or_crop(x: Tensor, widths: Sequence[tuple[int, int]], value: float = 0) -> Tensor:
    """Add entries at both ends of the dimensions, or take away as many as a negative width says."""
    x = x[tuple(slice(max(-a, 0), -max(-b, 0) or None) for a, b in widths)]
    return ops.pad(x, [(max(a, 0), max(b, 0)) for a, b in widths], constant_values=value)


def resize_nearest(x: Tensor, size: Sequence[int], scales: Sequence[float] = (), exact: bool = False) -> Tensor:
    """Resize the space of `(batch, channels, *space)` by entries at the start of a pixel, or `exact` at its centre."""
    for axis, after in enumerate(size, 2):
        before = ops.shape(x)[axis]
        ratio = 1 / scales[axis - 2] if scales else before / after
        at = ops.arange(after, dtype="float32")  # as PyTorch rounds
        at = ops.floor((at + 0.5 if exact else at) * ratio)
        x = ops.take(x, ops.cast(ops.minimum(at, before - 1), "int32"), axis=axis)
    return x


def resize(
    x: Tensor, size: Sequence[int], kind: str, align_corners: bool = False, scales: Sequence[float] = ()
) -> Tensor:
    """Resize the space of `(batch, channels, *space)` by lines, or by cubics with the parameter -0.75."""
    for axis, after in enumerate(size, 2):
        before = x.shape[axis]
        ratio = (before - 1) / max(after - 1, 1) if align_corners else before / after
        if scales and not align_corners:
            ratio = 1 / scales[axis - 2]
        at = ops.arange(after, dtype=x.dtype) * ratio
        at = at if align_corners else at + (ratio - 1) / 2
        if kind == "cubic":
            left = ops.floor(at)
            weights = dict(zip((-1, 0, 1, 2), cubic_weights(at - left), strict=True))
        else:
            at = ops.maximum(at, 0.0)
            left = ops.floor(at)
            weights = {0: 1 - (at - left), 1: at - left}
        parts = []
        for offset, weight in weights.items():
            index = ops.cast(ops.clip(left + offset, 0, before - 1), "int32")
            parts.append(ops.take(x, index, axis=axis) * ops.reshape(weight, (-1, *[1] * (len(x.shape) - axis - 1))))
        x = sum(parts[1:], parts[0])
    return x


def batch_norm(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    num_batches_tracked: Tensor | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """Normalize `(batch, channels, ...)` with the running statistics of each channel."""
    return ops.batch_normalization(x, running_mean, running_var, 1, bias, weight, epsilon)


def batch_norm_of_batch(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, epsilon: float = 1e-5
) -> Tensor:
    """Normalize `(batch, channels, ...)` with the statistics of the batch."""
    return ops.batch_normalization_with_moments(x, 1, bias, weight, epsilon)[0]


def moved_statistics(
    x: Tensor, running_mean: Tensor, running_var: Tensor, momentum: float = 0.1, each: bool = False
) -> tuple[Tensor, Tensor]:
    """Move running statistics towards those of `(batch, channels, ...)`, or to the mean of those of `each` example."""
    axes = tuple(range(2, len(x.shape))) if each else (0, *range(2, len(x.shape)))
    mean, variance = ops.moments(ops.stop_gradient(x), axes)
    count = ops.cast(ops.size(x) // ops.size(mean), x.dtype)
    variance = variance * (count / (count - 1))  # the unbiased variance
    if each:
        mean, variance = ops.mean(mean, axis=0), ops.mean(variance, axis=0)
    return (1 - momentum) * running_mean + momentum * mean, (1 - momentum) * running_var + momentum * variance


def tracked_batch_norm(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    num_batches_tracked: Tensor | None = None,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
    training: bool = False,
) -> tuple[Tensor, dict[str, Any]]:
    """Normalize `(batch, channels, ...)`, in training by the batch; return the new statistics too."""
    statistics: dict[str, Any] = {
        "running_mean": running_mean,
        "running_var": running_var,
        "num_batches_tracked": num_batches_tracked,
    }
    if training:
        y, mean, variance = ops.batch_normalization_with_moments(
            x, 1, bias, weight, epsilon, running_mean, running_var, 1 - momentum, correction=1
        )
        statistics |= {"running_mean": ops.stop_gradient(mean), "running_var": ops.stop_gradient(variance)}
        if num_batches_tracked is not None:
            statistics["num_batches_tracked"] = num_batches_tracked + 1
    else:
        y = ops.batch_normalization(x, running_mean, running_var, 1, bias, weight, epsilon)
    return y, {name: leaf for name, leaf in statistics.items() if leaf is not None}


def tracked_channels_last_batch_norm(
    x: Tensor,
    mean: Tensor,
    var: Tensor,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    momentum: float = 0.99,
    epsilon: float = 1e-5,
    training: bool = False,
) -> tuple[Tensor, dict[str, Any]]:
    """Normalize `(batch, ..., channels)`, in training by the batch; return the new statistics too."""
    if not training:
        return ops.batch_normalization(x, mean, var, -1, bias, scale, epsilon), {"mean": mean, "var": var}
    y, mean, var = ops.batch_normalization_with_moments(x, -1, bias, scale, epsilon, mean, var, momentum)
    return y, {"mean": ops.stop_gradient(mean), "var": ops.stop_gradient(var)}


def layer_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, ndim: int = 1, epsilon: float = 1e-5
) -> Tensor:
    """Normalize the last `ndim` dimensions together, then scale and shift each entry of them."""
    return ops.layer_normalization(x, weight, bias, axis=tuple(range(-ndim, 0)), epsilon=epsilon)


def group_norm(
    x: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None, epsilon: float = 1e-5
) -> Tensor:
    """Normalize each group of channels of `(batch, channels, ...)`, then scale and shift each channel."""
    return ops.group_normalization(x, groups, weight, bias, axis=1, epsilon=epsilon)


def dropout(x: Tensor, rate: float, seed: Any, training: bool) -> Tensor:
    """Drop a share `rate` of the entries in training."""
    return random.dropout(x, rate, seed=seed) if training and rate else x


def channel_dropout(x: Tensor, rate: float, seed: Any, training: bool) -> Tensor:
    """Drop a share `rate` of the channels of `(batch, channels, ...)` in training."""
    shape = (None, None, *[1] * (len(x.shape) - 2))
    return random.dropout(x, rate, shape, seed=seed) if training and rate else x


def alpha_dropout(x: Tensor, rate: float, seed: Any, training: bool, each: bool = True) -> Tensor:
    """Set a share `rate` of the entries, or of the channels, to the limit of SELU; keep mean and variance."""
    if not (training and rate):
        return x
    shape = ops.shape(x) if each else (*ops.shape(x)[:2], *[1] * (len(x.shape) - 2))
    dropped = ops.less(random.uniform(shape, dtype=x.dtype, seed=seed), rate)
    limit = 1.7580993408473766
    scale = ((1 - rate) * (1 + rate * limit**2)) ** -0.5
    return scale * (ops.where(dropped, -limit, x) + rate * limit)


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0
) -> Tensor:
    """Compute minus the log-probability of labels `(batch, labels)` under `(time, batch, classes)`.

    The gradient is that of logits, as PyTorch has it, whether the probabilities sum to 1 or not.
    """
    x = ops.swapaxes(log_probs, 0, 1)
    loss = ops.ctc_loss(targets, x, target_lengths, input_lengths, blank)
    probs = ops.exp(x)
    rest = ops.sum(probs - ops.stop_gradient(probs), axis=-1) - ops.logsumexp(x, axis=-1)
    inside = ops.less(ops.arange(ops.shape(x)[1], dtype="int32"), ops.cast(input_lengths, "int32")[:, None])
    return loss + ops.sum(ops.where(inside, rest, 0.0), axis=1)


def gradient(function: Any, xs: Sequence[Tensor], cotangent: Tensor | None = None) -> Any:
    """Return the gradient of a function in each of its arguments, as a tuple; in a single one, the gradient alone."""
    y, pull = vjp(function, *xs)
    slopes = pull(ops.ones_like(y) if cotangent is None else cotangent)
    return slopes if len(xs) > 1 else slopes[0]


def running_extreme(x: Tensor, axis: int, largest: bool = True) -> tuple[Tensor, Tensor]:
    """Return the largest or smallest entry up to each one along `axis`, and where it is; of equals the last."""
    reaches, combine = (ops.greater_equal, ops.maximum) if largest else (ops.less_equal, ops.minimum)
    best = ops.associative_scan(combine, ops.stop_gradient(x), axis=axis)
    is_new = ops.logical_or(reaches(x, best), ops.not_equal(x, x))
    places = ops.reshape(ops.arange(ops.shape(x)[axis], dtype="int32"), (-1, *[1] * (len(x.shape) - axis - 1)))
    index = ops.associative_scan(ops.maximum, ops.where(is_new, places, 0), axis=axis)
    return ops.take_along_axis(x, index, axis=axis), index


def histogram(x: Tensor, bins: int, low: float, high: float) -> Tensor:
    """Count the entries in bins of equal width, from the smallest to the largest entry if `low` is `high`."""
    x = ops.reshape(ops.stop_gradient(x), (-1,))
    ends = (ops.min(x), ops.max(x)) if low == high else (low, high)
    first, last = (ops.cast(end, x.dtype) for end in ends)
    is_one = ops.equal(first, last)
    first, last = ops.where(is_one, first - 1.0, first), ops.where(is_one, last + 1.0, last)
    place = ops.cast((x - first) * bins / (last - first), "int32")
    inside = ops.logical_and(ops.greater_equal(x, first), ops.less_equal(x, last))
    place = ops.where(inside, ops.minimum(place, bins - 1), 0)
    return ops.segment_sum(ops.cast(inside, x.dtype), place, bins)


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Write the entries of `source`, one after the other, where `mask` is true."""
    mask = ops.broadcast_to(mask, ops.shape(x))
    place = ops.cumsum(ops.cast(ops.reshape(mask, (-1,)), "int32"), axis=0) - 1
    picked = ops.take(ops.reshape(source, (-1,)), ops.maximum(place, 0))
    return ops.where(mask, ops.reshape(picked, ops.shape(x)), x)


def set_diagonal(x: Tensor, y: Tensor, offset: int, axes: tuple[int, int]) -> Tensor:
    """Write `(..., count)` to the diagonal of `x` over two axes that is `offset` above the main one."""
    x = ops.moveaxis(x, axes, (-2, -1))
    places = ops.arange(ops.shape(y)[-1], dtype="int32")
    key = (..., places + max(-offset, 0), places + max(offset, 0))
    return ops.moveaxis(ops.set_item(x, key, y), (-2, -1), axes)


def fill_diagonal(x: Tensor, value: float) -> Tensor:
    """Write `value` where all indices are equal."""
    places = ops.arange(min(ops.shape(x)), dtype="int32")
    return ops.set_item(x, (places,) * len(x.shape), value)


def strided(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int = 0) -> Tensor:
    """Pick entries of the flattened `x`: a step along an axis of the result is `stride` entries of it."""
    place = ops.full([1] * len(size), offset, dtype="int32")
    for axis, (n, step) in enumerate(zip(size, stride, strict=True), 1):
        place = place + ops.reshape(ops.arange(n, dtype="int32") * step, (-1, *[1] * (len(size) - axis)))
    return ops.take(ops.reshape(x, (-1,)), place)


def triangle_indices(rows: int, columns: int, offset: int = 0, upper: bool = False) -> Tensor:
    """Return the indices `(2, count)` of the entries of a matrix up to a diagonal, or from it on."""
    places = [(i, j) for i in range(rows) for j in range(columns) if (j >= i + offset if upper else j <= i + offset)]
    return ops.transpose(ops.reshape(ops.convert_to_tensor(places, dtype="int32"), (-1, 2)))


def pair_distances(x: Tensor, pairs: Tensor) -> Tensor:
    """Return the distance between two rows of `x` for each column of `pairs`."""
    return ops.norm(ops.take(x, pairs[0], axis=0) - ops.take(x, pairs[1], axis=0), axis=-1)


def thresholded_softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Compute `log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` is above the threshold."""
    scaled = x if beta == 1 else x * beta
    y = ops.softplus(scaled) if beta == 1 else ops.softplus(scaled) / beta
    return ops.where(ops.greater(scaled, threshold), x, y)


def embedding(indices: Tensor, weight: Tensor, padding_idx: int) -> Tensor:
    """Pick rows of `(count, size)`; the row `padding_idx` gets no gradient."""
    y = ops.take(weight, indices, axis=0)
    return ops.where(ops.expand_dims(ops.equal(indices, padding_idx), -1), ops.stop_gradient(y), y)


def embedding_bag(
    indices: Tensor,
    offsets: Tensor,
    weight: Tensor,
    mode: str,
    bags: int,
    weights: Tensor | None = None,
    padding_idx: int | None = None,
) -> Tensor:
    """Combine the rows of `(count, size)` that `indices` pick from each offset up to the next one."""
    bag = ops.searchsorted(offsets, ops.arange(ops.size(indices), dtype=offsets.dtype), side="right") - 1
    rows = ops.take(weight, indices, axis=0)
    counts = ops.ones_like(rows[:, :1])
    if weights is not None:
        rows = rows * ops.expand_dims(weights, -1)
    if padding_idx is not None:
        left_out = ops.expand_dims(ops.equal(indices, padding_idx), -1)
        rows = ops.where(left_out, -float("inf") if mode == "max" else 0.0, rows)
        counts = ops.where(left_out, 0.0, counts)
    if mode == "max":
        largest = ops.segment_max(rows, bag, bags)
        return ops.where(ops.isfinite(largest), largest, 0.0)
    total = ops.segment_sum(rows, bag, bags)
    return total if mode == "sum" else total / ops.maximum(ops.segment_sum(counts, bag, bags), 1.0)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rate: float,
    seed: Any,
    training: bool,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """Attend with `(batch, heads, length, size)`; a share `rate` of the weights is dropped in training."""
    logits = ops.matmul(query, ops.swapaxes(key, -1, -2)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        logits = logits + bias
    if mask is not None:
        logits = ops.where(mask, logits, -float("inf"))
    return ops.matmul(dropout(ops.softmax(logits), rate, seed, training), value)


def fourier(x: Tensor, axes: Sequence[int], inverse: bool = False, power: float = 0.0) -> Tensor:
    """Transform complex numbers along some axes, and divide by a power of how many these have."""
    for axis in axes:
        x = ops.moveaxis(x, axis, -1)
        real, imag = ops.real(x), ops.imag(x)
        if inverse:  # the same with real and imaginary part exchanged
            imag, real = ops.fft((imag, real))
        else:
            real, imag = ops.fft((real, imag))
        scale = ops.cast(ops.shape(x)[-1], ops.dtype(real)) ** -power
        x = ops.moveaxis(ops.view_as_complex(ops.stack([real * scale, imag * scale], axis=-1)), -1, axis)
    return x


def real_fourier(x: Tensor, axes: Sequence[int], power: float = 0.0) -> Tensor:
    """Transform real numbers along some axes; of the last of these, the first half is computed."""
    x = ops.moveaxis(x, axes[-1], -1)
    scale = ops.cast(ops.shape(x)[-1], ops.dtype(x)) ** -power
    y = ops.view_as_complex(ops.stack(ops.rfft(x * scale), axis=-1))
    return fourier(ops.moveaxis(y, -1, axes[-1]), axes[:-1], power=power)


def inverse_real_fourier(x: Tensor, axes: Sequence[int], size: Any, power: float = 1.0) -> Tensor:
    """Transform the first half of what belongs to real numbers back; the last of the axes gets `size` entries."""
    x = ops.moveaxis(fourier(x, axes[:-1], inverse=True, power=power), axes[-1], -1)
    y = ops.irfft((ops.real(x), ops.imag(x)), size)
    return ops.moveaxis(y * ops.cast(size, ops.dtype(y)) ** (1 - power), -1, axes[-1])


def lstm(
    x: Tensor,
    hidden: Tensor,
    cell: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    weight_hr: Tensor | None = None,
    reverse: bool = False,
    scan: Any = ops.scan,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run a long short-term memory over `(time, batch, in)`; the gates are input, forget, cell, output."""

    def step(carry: Any, inputs: Tensor) -> Any:
        hidden, cell = carry
        gates = inputs + linear(hidden, weight_hh, bias_hh)
        i, f, g, o = ops.split(gates, 4, axis=-1)
        cell = ops.sigmoid(f) * cell + ops.sigmoid(i) * ops.tanh(g)
        hidden = ops.sigmoid(o) * ops.tanh(cell)
        hidden = hidden if weight_hr is None else linear(hidden, weight_hr)
        return (hidden, cell), hidden

    (hidden, cell), y = scan(step, (hidden, cell), linear(x, weight_ih, bias_ih), reverse=reverse)
    return y, hidden, cell


def gru(
    x: Tensor,
    hidden: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    reverse: bool = False,
    scan: Any = ops.scan,
) -> tuple[Tensor, Tensor]:
    """Run a gated recurrent unit over `(time, batch, in)`; the gates are reset, update, new."""

    def step(hidden: Tensor, inputs: Tensor) -> Any:
        r, z, n = ops.split(inputs, 3, axis=-1)
        hr, hz, hn = ops.split(linear(hidden, weight_hh, bias_hh), 3, axis=-1)
        z = ops.sigmoid(z + hz)
        hidden = (1 - z) * ops.tanh(n + ops.sigmoid(r + hr) * hn) + z * hidden
        return hidden, hidden

    hidden, y = scan(step, hidden, linear(x, weight_ih, bias_ih), reverse=reverse)
    return y, hidden


def rnn(
    x: Tensor,
    hidden: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    activation: str = "tanh",
    reverse: bool = False,
    scan: Any = ops.scan,
) -> tuple[Tensor, Tensor]:
    """Run a recurrent layer over `(time, batch, in)`."""

    def step(hidden: Tensor, inputs: Tensor) -> Any:
        y = inputs + linear(hidden, weight_hh, bias_hh)
        hidden = ops.relu(y) if activation == "relu" else ops.tanh(y)
        return hidden, hidden

    hidden, y = scan(step, hidden, linear(x, weight_ih, bias_ih), reverse=reverse)
    return y, hidden


def within(lengths: Tensor) -> Any:
    """Return what `ops.scan` is for a batch of which each example ends after its own number of steps."""

    def scan(step: Any, carry: Any, xs: Tensor, reverse: bool = False) -> Any:
        def kept(carry: Any, inputs: Any) -> Any:
            x, place = inputs
            new, y = step(carry, x)
            inside = ops.expand_dims(ops.less(place, ops.cast(lengths, "int32")), -1)
            if isinstance(carry, tuple):
                return tuple(ops.where(inside, a, b) for a, b in zip(new, carry, strict=True)), y
            return ops.where(inside, new, carry), y

        return ops.scan(kept, carry, (xs, ops.arange(ops.shape(xs)[0], dtype="int32")), reverse=reverse)

    return scan


def unpacked(x: Tensor, lengths: Tensor, total: int | None = None, value: float = 0.0) -> Tensor:
    """Write `value` behind the end of each example of `(time, batch, ...)`; keep `total` steps, or the longest's."""
    steps, *_ = ops.shape(x)
    inside = ops.less(ops.expand_dims(ops.arange(steps, dtype="int32"), 1), ops.cast(lengths, "int32"))
    for _ in x.shape[2:]:
        inside = ops.expand_dims(inside, -1)
    x = ops.where(inside, x, value)
    if total is None:
        return x[: ops.max(lengths)]
    return ops.pad(x, [(0, total - steps), *[(0, 0)] * (len(x.shape) - 1)], constant_values=value)


# layers of Keras and TensorFlow: channels stand behind space, kernels are `(*window, in, out)`


def part(params: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the weights of the layers of one block, whose names begin with `prefix`."""
    return {name.removeprefix(prefix): leaf for name, leaf in params.items() if name.startswith(prefix)}


def whole(part: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the weights of the layers of one block under their whole names, which begin with `prefix`."""
    return {f"{prefix}{name}": leaf for name, leaf in part.items()}


def ending_in(params: dict[str, Any], ending: str) -> dict[str, Any]:
    """Return the weights of the layers of one block, whose names end in `ending`."""
    return {name.removesuffix(ending): leaf for name, leaf in params.items() if name.endswith(ending)}


def with_ending(part: dict[str, Any], ending: str) -> dict[str, Any]:
    """Return the weights of the layers of one block under their whole names, which end in `ending`."""
    return {f"{name}{ending}": leaf for name, leaf in part.items()}


def dense(x: Tensor, kernel: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply `(..., in)` by a matrix `(in, out)`, and add a vector `(out,)`."""
    y = ops.matmul(x, kernel)
    return y if bias is None else y + bias


def convolution(
    x: Tensor,
    kernel: Tensor,
    bias: Tensor | None = None,
    strides: Any = 1,
    padding: str = "valid",
    dilation_rate: Any = 1,
    data_format: str = "channels_last",
) -> Tensor:
    """Slide kernels `(*window, in / groups, out)` over `(batch, *space, in)`."""
    return ops.conv(x, kernel, strides, padding, data_format, dilation_rate, bias)


def depthwise_convolution(
    x: Tensor,
    kernel: Tensor,
    bias: Tensor | None = None,
    strides: Any = 1,
    padding: str = "valid",
    dilation_rate: Any = 1,
    data_format: str = "channels_last",
) -> Tensor:
    """Slide kernels `(*window, channels, multiplier)` over the channels of `(batch, *space, channels)` one by one."""
    return ops.depthwise_conv(x, kernel, strides, padding, data_format, dilation_rate, bias)


def transposed_convolution(
    x: Tensor,
    kernel: Tensor,
    bias: Tensor | None = None,
    strides: Any = 1,
    padding: str = "valid",
    dilation_rate: Any = 1,
) -> Tensor:
    """Place copies of kernels `(*window, out, in)`, each times an entry of `(batch, *space, in)`."""
    y = ops.conv_transpose(x, kernel, strides, padding, None, "channels_last", dilation_rate)
    return y if bias is None else y + bias


def batch_normalization(
    x: Tensor,
    moving_mean: Tensor,
    moving_variance: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: float = 1e-3,
) -> Tensor:
    """Normalize `(..., channels)` with the moving statistics of each channel."""
    return ops.batch_normalization(x, moving_mean, moving_variance, -1, beta, gamma, epsilon)


def batch_normalization_of_batch(
    x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, epsilon: float = 1e-3
) -> Tensor:
    """Normalize `(..., channels)` with the statistics of the batch."""
    mean, variance = ops.moments(x, tuple(range(len(x.shape) - 1)))
    return ops.batch_normalization(x, mean, variance, -1, beta, gamma, epsilon)


def tracked_batch_normalization(
    x: Tensor,
    moving_mean: Tensor,
    moving_variance: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    training: bool = False,
) -> tuple[Tensor, dict[str, Any]]:
    """Normalize `(..., channels)`, in training by the batch; return the new statistics too."""
    mean, variance = moving_mean, moving_variance
    if training:
        mean, variance = ops.moments(x, tuple(range(len(x.shape) - 1)))
        moving_mean = momentum * moving_mean + (1 - momentum) * ops.stop_gradient(mean)
        moving_variance = momentum * moving_variance + (1 - momentum) * ops.stop_gradient(variance)
    y = ops.batch_normalization(x, mean, variance, -1, beta, gamma, epsilon)
    return y, {"moving_mean": moving_mean, "moving_variance": moving_variance}


def layer_normalization(
    x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, epsilon: float = 1e-3
) -> Tensor:
    """Normalize the last dimension, then scale and shift each entry of it."""
    return ops.layer_normalization(x, gamma, beta, axis=-1, epsilon=epsilon)


def resample(x: Tensor, index: Tensor, weights: Tensor, axis: int) -> Tensor:
    """Add up along an axis of `(batch, *space, channels)` what each row of `index` picks, times its weights."""
    parts = []
    for i in range(index.shape[0]):
        factor = ops.reshape(ops.cast(weights[i], x.dtype), (-1, *[1] * (len(x.shape) - axis - 1)))
        parts.append(ops.take(x, index[i], axis=axis) * factor)
    return sum(parts[1:], parts[0])


def crop_and_resize(
    x: Tensor, boxes: Tensor, rows: Tensor, size: Sequence[int], method: str = "bilinear", outside: float = 0.0
) -> Tensor:
    """Cut boxes `(top, left, bottom, right)`, from 0 to 1, out of rows of `(batch, height, width, channels)`."""

    def places(i: int, n: int) -> tuple[Tensor, ...]:
        last, start, end = x.shape[i + 1] - 1, boxes[:, i, None], boxes[:, i + 2, None]
        if n > 1:
            at = start * last + ops.arange(n, dtype=boxes.dtype) * ((end - start) * last / (n - 1))
        else:
            at = 0.5 * (start + end) * last
        is_inside = ops.logical_and(ops.greater_equal(at, 0), ops.less_equal(at, last))
        at = ops.clip(at, 0, last)
        near, far, nearest = (ops.cast(y, "int32") for y in (ops.floor(at), ops.ceil(at), ops.floor(at + 0.5)))
        return near, far, nearest, at - ops.stop_gradient(ops.floor(at)), is_inside

    top, bottom, middle, down, is_high = places(0, size[0])
    left, right, center, across, is_wide = places(1, size[1])

    def picked(x: Tensor, down: Tensor, across: Tensor) -> Tensor:
        return ops.get_item(x, (rows[:, None, None], down[:, :, None], across[:, None, :]))

    def between(x: Tensor) -> Tensor:
        shares = down[:, :, None, None], across[:, None, :, None]
        upper, lower = picked(x, top, left), picked(x, bottom, left)
        upper = upper + (picked(x, top, right) - upper) * shares[1]
        return upper + (lower + (picked(x, bottom, right) - lower) * shares[1] - upper) * shares[0]

    if method == "nearest":  # the gradient of the boxes is that between the pixels, as TensorFlow has it
        slope = between(ops.stop_gradient(x))
        y = picked(x, middle, center) + (slope - ops.stop_gradient(slope))
    else:
        y = between(x)
    within = ops.logical_and(is_high[:, :, None], is_wide[:, None, :])
    return ops.where(ops.expand_dims(within, -1), y, outside)


def rgb_to_hsv(x: Tensor) -> Tensor:
    """Turn red, green and blue in the last dimension into hue, saturation and value, with TensorFlow's gradient."""
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    is_red, is_green = ops.logical_and(ops.greater_equal(r, g), ops.greater_equal(r, b)), ops.greater_equal(g, b)
    is_red_least, is_green_least = ops.logical_and(ops.less(r, b), ops.less(r, g)), ops.less(g, b)

    def ends(r: Tensor, g: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        largest = ops.where(is_red, r, ops.where(is_green, g, b))
        return largest, ops.where(is_red_least, r, ops.where(is_green_least, g, b))

    value, least = ends(r, g, b)
    is_black, is_grey = ops.less_equal(value, 0), ops.equal(value, least)
    spread = ops.where(is_grey, 1.0, value - least)
    turned = ops.where(is_green, 2 + (b - r) / spread, 4 + (r - g) / spread)
    hue = ops.where(is_grey, 0.0, ops.where(is_red, (g - b) / spread, turned) / 6)
    hue = ops.where(ops.less(hue, 0), hue + 1, hue)
    hue = ops.where(is_black, ops.stop_gradient(hue), hue)
    r, g, b = (ops.where(ops.greater(y, 0), y, ops.stop_gradient(y)) for y in (r, g, b))
    largest, smallest = ends(r, g, b)
    saturation = ops.where(is_black, 0.0, (largest - smallest) / ops.where(is_black, 1.0, largest))
    return ops.stack([hue, saturation, value], axis=-1)


def shares_of(hue: Tensor) -> list[Tensor]:
    """Return how much red, green and blue there is in a hue, from 0 to 1."""
    sixth = hue * 6
    return [ops.clip(y, 0, 1) for y in (ops.abs(sixth - 3) - 1, 2 - ops.abs(sixth - 2), 2 - ops.abs(sixth - 4))]


def hsv_to_rgb(x: Tensor) -> Tensor:
    """Turn hue, saturation and value in the last dimension into red, green and blue."""
    saturation, value = x[..., 1], x[..., 2]
    return ops.stack([value * (1 - saturation + saturation * y) for y in shares_of(x[..., 0])], axis=-1)


def adjust_hue(x: Tensor, delta: Any) -> Tensor:
    """Turn the hue of red, green and blue in the last dimension."""
    low, high = ops.min(x, axis=-1), ops.max(x, axis=-1)
    hue = ops.mod(rgb_to_hsv(x)[..., 0] + delta, 1.0)
    return ops.stack([low + (high - low) * y for y in shares_of(hue)], axis=-1)


def adjust_saturation(x: Tensor, scale: Any) -> Tensor:
    """Scale the saturation of red, green and blue in the last dimension; it is at most 1."""
    y = rgb_to_hsv(x)
    return hsv_to_rgb(ops.stack([y[..., 0], ops.clip(y[..., 1] * scale, 0, 1), y[..., 2]], axis=-1))


def adjust_contrast(x: Tensor, factor: Any) -> Tensor:
    """Scale the distance of each channel of `(..., height, width, channels)` from its mean."""
    mean = ops.mean(x, axis=(-3, -2), keepdims=True)
    return (x - mean) * factor + mean


def block_dropout(x: Tensor, rate: float, noise_shape: Sequence[int | None], seed: Any, training: bool) -> Tensor:
    """Drop in training a share `rate` of the blocks, which reach over the dimensions of size 1 in `noise_shape`."""
    return random.dropout(x, rate, noise_shape, seed=seed) if training and rate else x


# gradients at kinks, as the original has them


def absolute(x: Tensor) -> Tensor:
    """Compute the absolute value, with the slope 1 at 0."""
    return ops.where(ops.equal(x, 0), x + 0.0, ops.abs(x))


def larger(x: Tensor, y: Tensor) -> Tensor:
    """Take the larger one of two; the gradient of equal ones goes to the first."""
    return ops.where(ops.equal(x, y), x, ops.maximum(x, y))


def smaller(x: Tensor, y: Tensor) -> Tensor:
    """Take the smaller one of two; the gradient of equal ones goes to the first."""
    return ops.where(ops.equal(x, y), x, ops.minimum(x, y))


def inverse_root(x: Tensor) -> Tensor:
    """Compute `1 / sqrt(x)`, which has no gradient at 0."""
    is_zero = ops.equal(x, 0)
    return ops.where(is_zero, float("inf"), ops.rsqrt(ops.where(is_zero, 1.0, x)))


# what JAX does with an index that is out of range


def in_range(x: Tensor, low: Any, high: Any) -> Tensor:
    """Say which entries of `x` are from `low` up to `high`, which is not included."""
    return ops.logical_and(ops.greater_equal(x, low), ops.less(x, high))


def take_or_fill(x: Tensor, indices: Tensor, axis: int = 0, fill: Any = float("nan")) -> Tensor:
    """Pick entries of `x` along `axis`; an index out of range, also from the end, picks `fill`.

    That is the nearest entry, without a gradient, where `fill` is `None`.
    """
    size = ops.shape(x)[axis]
    y = ops.take(x, ops.clip(indices, -size, size - 1), axis=axis)
    inside = in_range(indices, -size, size)
    for _ in x.shape[axis + 1 :]:
        inside = ops.expand_dims(inside, -1)
    return ops.where(inside, y, ops.stop_gradient(y) if fill is None else fill)


def update_in_range(update: Any, x: Tensor, key: Sequence[Any], value: Tensor) -> Tensor:
    """Return `update(x, key, value)` without the values of which an index is out of range."""
    first, *others = zip(key, ops.shape(x), strict=False)
    inside = in_range(first[0], -first[1], first[1])
    for index, size in others:
        inside = ops.logical_and(inside, in_range(index, -size, size))
    index, size = first
    index = ops.where(inside, ops.where(ops.less(index, 0), index + size, index), size)  # others go to a row more
    rest = [ops.clip(index, -size, size - 1) for index, size in others]
    x = ops.pad(x, [(0, 1), *[(0, 0)] * (len(x.shape) - 1)])
    return update(x, (index, *rest), value)[:-1]


# resampling


def cubic_weights(t: Tensor) -> list[Tensor]:
    """Return the weights of four entries around a place that is `t` behind the second one: cubics with -0.75."""
    near = [((1.25 * u - 2.25) * u * u + 1) for u in (t, 1 - t)]
    far = [((-0.75 * u + 3.75) * u - 6) * u + 3 for u in (t + 1, 2 - t)]
    return [far[0], near[0], near[1], far[1]]


def folded(at: Tensor, size: int, padding: str, align_corners: bool) -> Tensor:
    """Move places beyond `size` entries to the border of these, or mirror them there."""
    if padding == "reflection":
        low, span = (0.0, size - 1) if align_corners else (-0.5, size)
        distance = ops.abs(at - low)
        extra = ops.fmod(distance, max(span, 1))
        is_even = ops.equal(ops.fmod(ops.floor(distance / max(span, 1)), 2.0), 0.0)
        at = ops.where(is_even, extra + low, span - extra + low)
    inside = ops.logical_and(ops.greater(at, 0.0), ops.less(at, size - 1))
    return ops.where(inside, at, ops.stop_gradient(ops.clip(at, 0.0, size - 1)))


def grid_sample(
    x: Tensor, grid: Tensor, mode: str = "bilinear", padding: str = "zeros", align_corners: bool = False
) -> Tensor:
    """Look up `(batch, channels, *space)` at `(batch, *points, ndim)` from -1 to 1, the last axis of space first."""
    sizes = x.shape[2:]
    axes = []  # for each axis of space, the entries that count: where each is, and its weight
    for axis, size in enumerate(sizes, 1):
        at = (grid[..., -axis] + 1) * ((size - 1 if align_corners else size) / 2) - (0.0 if align_corners else 0.5)
        if mode != "bicubic" and padding != "zeros":
            at = folded(at, size, padding, align_corners)
        if padding == "zeros":
            at = ops.clip(at, -3.0, size + 2.0)  # farther away there is nothing either
        left = ops.stop_gradient(ops.floor(at))
        if mode == "nearest":
            entries = [(ops.round(ops.stop_gradient(at)), ops.ones_like(at))]
        elif mode == "bicubic":
            entries = [(left + offset, w) for offset, w in zip((-1, 0, 1, 2), cubic_weights(at - left), strict=True)]
            if padding != "zeros":
                entries = [(folded(place, size, padding, align_corners), weight) for place, weight in entries]
        else:
            entries = [(left, 1 - (at - left)), (left + 1, at - left)]
        axes.append(entries)
    batch, channels, *_ = ops.shape(x)
    flat, parts = ops.reshape(x, (batch, channels, -1)), []
    for corner in product(*axes):
        index, weight = ops.zeros_like(corner[0][0], dtype="int32"), ops.ones_like(corner[0][0])
        for (place, share), size in zip(corner, sizes, strict=True):
            nearest = ops.clip(place, 0.0, size - 1)
            index = index * size + ops.cast(nearest, "int32")
            weight = weight * ops.where(ops.equal(nearest, place), share, 0.0)
        entries = ops.take_along_axis(flat, ops.reshape(index, (batch, 1, -1)), axis=2)
        parts.append(entries * ops.reshape(weight, (batch, 1, -1)))
    return ops.reshape(sum(parts[1:], parts[0]), (batch, channels, *ops.shape(grid)[1:-1]))
