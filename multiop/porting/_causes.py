"""Why a layer differs: each suspect is computed, and the one that gives the wrong output is named.

A layer is computed in NumPy and float64 from its input and its own parameters, first as it is, which has to give the reference's
output, then with one thing changed. What is not known by its class is compared with what can be done to any output.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from multiop.testing._tolerances import eps

from ._reference import Array, Record

_MOST = 32  # how many times the rest a small difference is that a suspect explains
_Variations: TypeAlias = Iterator[tuple[str, Callable[[], Any]]]
_EPSILONS = (1e-3, 1e-5, 1e-6, 1e-8, 1e-12, 1e-7, 1e-4, 0.0)


def explain(
    computed: Array,
    wanted: Array,
    record: Record | None = None,
    *,
    earlier: Sequence[Record] = (),
    leaf: str = "",
    before: Array | None = None,
) -> str | None:
    """Return why an array is not the reference's, or `None` if no suspect gives it.

    Args:
        computed: What stands where the reference has `wanted`.
        wanted: A gradient of the reference, unless `record` says otherwise.
        record: The layer of the reference that returns `wanted`, or whose statistic it is.
        earlier: The layers in front of that one.
        leaf: The name of the statistic.
        before: The statistic before the step in training mode.
    """
    if record is None:
        return _of_gradient(wanted, computed)
    if before is not None:
        return _of_state(record, leaf, before, wanted, computed)
    return _of_value(record, computed, earlier)


def _of_value(record: Record, computed: Array, earlier: Sequence[Record]) -> str | None:
    """Return why the output of a layer differs."""
    record, computed = _one_example(record, computed)
    wanted, computed = _wide(record.value), _wide(computed)
    tolerance = _tolerance(record.value, computed)
    for told, compute in itertools.chain(_of_kind(record, tolerance), _of_any(record, wanted, computed, earlier)):
        try:
            with np.errstate(all="ignore"):
                made = np.asarray(compute())
        except (ValueError, IndexError, ZeroDivisionError, KeyError, TypeError):  # this suspect does not fit this layer
            continue
        if _is_like(made, computed, tolerance) and _explains(made, computed, wanted, tolerance):
            return told
    return None


def _explains(made: Array, computed: Array, wanted: Array, tolerance: float) -> bool:
    """Say whether a suspect differs from the reference; if that is little, as in float32, it has to leave next to nothing."""
    if not _is_like(made, wanted, tolerance):
        return True
    with np.errstate(invalid="ignore"):
        left, whole = (np.nan_to_num(np.abs(x - computed)).max(initial=0.0) for x in (made, wanted))
    return bool(whole >= _MOST * left and whole > 0)


def _one_example(record: Record, computed: Array) -> tuple[Record, Array]:
    """Cut a large batch of images to its first: the windows of all of them may not fit into memory."""
    x = record.inputs[0] if record.inputs else record.value
    alone = record.kind.startswith(("Conv", "MaxPool", "AvgPool", "Upsample", "Linear", "Dense"))
    if not alone or x.size < 1 << 20 or x.ndim < 3 or not len(x) == len(record.value) == len(computed):
        return record, computed
    return dataclasses.replace(record, value=record.value[:1], inputs=[y[:1] for y in record.inputs]), computed[:1]


def _wide(x: Array) -> Array:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _tolerance(value: Array, computed: Array) -> float:
    return max(1e4 * max(eps(value.dtype), 1e-16), 1e-11)


def _is_like(x: Array, other: Array, tolerance: float) -> bool:
    if x.shape != other.shape or x.size == 0:
        return False
    scale = np.abs(other[np.isfinite(other)]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        close = np.abs(x - other) <= tolerance * max(scale, 1e-300)
    return bool(np.all(close | (x == other) | (np.isnan(x) & np.isnan(other))))


def _of_kind(record: Record, tolerance: float) -> _Variations:
    """Return the suspects of a layer whose class is known, if computing it gives the reference's output."""
    name = record.kind
    for prefix, suspects in _SUSPECTS.items():
        if name.startswith(prefix):
            try:
                compute = suspects(record)
                plain = compute()
                if _is_like(np.asarray(plain), _wide(record.value), tolerance):
                    yield from compute.variations
            except (ValueError, IndexError, KeyError, TypeError, AttributeError):
                pass
            return


class _Layer:
    """A computation with keyword arguments, and the changes of them that are suspects."""

    def __init__(self, compute: Callable[..., Any], changes: list[tuple[str, dict[str, Any]]]) -> None:
        self.compute, self.changes = compute, changes

    def __call__(self) -> Any:
        return self.compute()

    @property
    def variations(self) -> _Variations:
        for told, change in self.changes:
            yield told, lambda change=change: self.compute(**change)  # type: ignore[misc]


# any output


def _of_any(record: Record, y: Array, computed: Array, earlier: Sequence[Record]) -> _Variations:
    inputs = [_wide(x) for x in record.inputs if x.dtype.kind in "fc" or x.dtype.name == "bfloat16"]
    if computed.shape == y.shape:
        yield from _elementwise(inputs, y)
    for n, x in enumerate(inputs):
        if x.shape == y.shape:
            which = "the input" if n == 0 else f"input {n}"
            yield f"a residual is missing: the output lacks {which}", lambda x=x: y - x  # type: ignore[misc]
            yield f"a residual too many: {which} is added to the output", lambda x=x: y + x  # type: ignore[misc]
            yield f"the layer is missing: the output is {which}", lambda x=x: x  # type: ignore[misc]
    yield "the sign is wrong", lambda: -y
    for dtype in ("float32", "float16"):
        yield f"computed in {dtype}", lambda dtype=dtype: y.astype(dtype).astype(y.dtype)  # type: ignore[misc]
    if y.ndim >= 2:
        yield from _moved(y)
    yield from _scaled(record, y, computed)
    for before in reversed(earlier):
        if before.name != record.name:
            told = f"the output is that of {before.name}: what follows it is missing"
            yield told, lambda before=before: _wide(before.value)  # type: ignore[misc]
    if y.ndim:
        yield from _softmaxed(inputs, y)


def _moved(y: Array) -> _Variations:
    for order in itertools.permutations(range(y.ndim)) if y.ndim <= 4 else ():
        if order != tuple(range(y.ndim)):
            yield f"the axes of the output are transposed, {list(order)}", lambda order=order: y.transpose(order)  # type: ignore[misc]
            moved = y.transpose(order)
            yield (
                f"the output is reshaped where its axes had to be transposed, or flattened in another order, {list(order)}",
                lambda moved=moved: moved.reshape(y.shape),  # type: ignore[misc]
            )
    for axis in range(y.ndim):
        yield f"the output is reversed along axis {axis}", lambda axis=axis: np.flip(y, axis)  # type: ignore[misc]
        for n in (2, 3, 4):
            if y.shape[axis] % n == 0 and y.shape[axis] >= n:
                for order in itertools.permutations(range(n)):
                    yield (
                        f"the {n} blocks along axis {axis} are in another order, {list(order)}",
                        lambda axis=axis, n=n, order=order: np.concatenate(  # type: ignore[misc]
                            [np.split(y, n, axis)[k] for k in order], axis
                        ),
                    )
    if y.ndim >= 3:
        flat = y.reshape(y.shape[0], -1)
        yield (
            "the output is reshaped where its axes had to be transposed",
            lambda: np.moveaxis(flat.reshape(y.shape[0], *y.shape[2:], y.shape[1]), -1, 1),
        )


def _scaled(record: Record, y: Array, computed: Array) -> _Variations:
    """Find one factor, or one summand, that all entries share, along an axis or not, and say what it is."""
    if y.shape != computed.shape:
        return
    with np.errstate(all="ignore"):
        ratio = np.median((computed / y)[y != 0].real) if (y != 0).any() else math.nan
    if math.isfinite(ratio) and ratio not in (0.0, 1.0):
        yield f"a scale is wrong or missing: {_number(ratio, record)} times the reference", lambda: y * ratio
    offset = float(np.median((computed - y).real))
    if offset:
        yield f"an offset is wrong: {offset:.6g} is added", lambda: y + offset
    low, high = float(computed.real.min()), float(computed.real.max())
    yield f"clipped to [{low:.6g}, {high:.6g}]", lambda: np.clip(y, low, high)
    if computed.ndim >= 2 and not computed.any():
        yield "the output is zero everywhere", lambda: np.zeros_like(y)


def _number(x: float, record: Record) -> str:
    sizes = {n for array in (record.value, *record.inputs) for n in array.shape if n > 1}
    for n in sorted(sizes | {2, 3, 4}):
        for text, value in ((f"sqrt({n})", n**0.5), (f"1/sqrt({n})", n**-0.5), (f"{n}", n), (f"1/{n}", 1 / n)):
            if math.isclose(x, value, rel_tol=1e-5):
                return text
    return f"{x:.6g}"


# activations, by PyTorch's names

_erf = np.vectorize(math.erf, otypes=[float])


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(x / 2))


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _leaky(a: float, x: Array) -> Array:
    return np.where(x > 0, x, a * x)


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu (erf)": lambda x: x * 0.5 * (1 + _erf(x / 2**0.5)),
    "gelu with tanh": lambda x: 0.5 * x * (1 + np.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3))),
    "gelu with a sigmoid": lambda x: x * _sigmoid(1.702 * x),
    "relu": _relu,
    "relu6": lambda x: np.clip(x, 0, 6),
    "silu": lambda x: x * _sigmoid(x),
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "softplus": lambda x: np.logaddexp(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    **{f"leaky relu of slope {a}": functools.partial(_leaky, a) for a in (0.01, 0.2, 0.3, 0.1, 0.25)},
    "hard sigmoid, x/6 + 1/2": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard sigmoid, 0.2 x + 1/2": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "hard silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "exp": np.exp,
    "square": np.square,
    "abs": np.abs,
    "clip to [-1, 1]": lambda x: np.clip(x, -1, 1),
    "log sigmoid": lambda x: -np.logaddexp(-x, 0),
    "squared relu": lambda x: _relu(x) ** 2,
}


def _elementwise(inputs: list[Array], y: Array) -> _Variations:
    """If the reference is an activation of its input, try the others."""
    for x in inputs[:1]:
        if x.shape != y.shape or x.size > 1 << 20 or x.dtype.kind == "c":
            continue
        with np.errstate(all="ignore"):
            own = next((name for name, f in _ACTIVATIONS.items() if _is_like(np.asarray(f(x)), y, 1e-6)), None)
        if own is not None:
            for name, f in _ACTIVATIONS.items():
                yield f"{name} where the reference has {own}", lambda f=f, x=x: f(x)  # type: ignore[misc]
            yield f"{own} is missing", lambda x=x: x  # type: ignore[misc]
            yield f"{own} is applied twice", lambda own=own: _ACTIVATIONS[own](y)  # type: ignore[misc]


def _softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _softmaxed(inputs: list[Array], y: Array) -> _Variations:
    for x in inputs[:1]:
        if x.shape != y.shape or x.dtype.kind == "c":
            continue
        own = next((axis for axis in range(x.ndim) if _is_like(_softmax(x, axis), y, 1e-6)), None)
        logs = next((axis for axis in range(x.ndim) if _is_like(np.log(_softmax(x, axis)), y, 1e-6)), None)
        if own is None and logs is None:
            continue
        for axis in range(x.ndim):
            soft = _softmax(x, axis)
            here = own if own is not None else logs
            if axis != here:
                told = f"softmax over axis {axis} where the reference has axis {here}"
                yield told, lambda soft=soft, own=own: soft if own is not None else np.log(soft)  # type: ignore[misc]
            elif own is not None:
                yield "the logarithm of softmax where the reference has softmax", lambda soft=soft: np.log(soft)  # type: ignore[misc]
            else:
                yield "softmax where the reference has its logarithm", lambda soft=soft: soft  # type: ignore[misc]


# layers


def _array(record: Record, *names: str) -> Array | None:
    return next((_wide(record.arrays[name]) for name in names if name in record.arrays), None)


def _dense(record: Record) -> _Layer:
    x, w, b = _wide(record.inputs[0]), _array(record, "kernel"), _array(record, "bias")
    if w is None:
        torch_weight = _array(record, "weight")
        assert torch_weight is not None
        w = torch_weight if record.kind == "Conv1D" else torch_weight.T
    bias = 0.0 if b is None else b

    def compute(kernel: Any = w, b: Any = bias, x: Any = x) -> Any:
        return x @ kernel + b

    changes: list[tuple[str, dict[str, Any]]] = [("the kernel is transposed", {"kernel": w.T})]
    if b is not None:
        changes += [("the bias is missing", {"b": 0.0}), ("the bias is added twice", {"b": 2 * bias})]
        changes += [("the bias is subtracted", {"b": -bias})]
    changes += [(told, {"x": moved}) for told, moved in _flattened(x)]
    return _Layer(compute, changes)


def _flattened(x: Array) -> Iterator[tuple[str, Array]]:
    size = x.shape[-1]
    told = "the input was flattened in another order: channels last where the reference has them first, or the other way round"
    for channels in (n for n in range(2, size) if size % n == 0):
        yield told, x.reshape(*x.shape[:-1], channels, size // channels).swapaxes(-1, -2).reshape(x.shape)


def _spatial(record: Record, x: Array) -> Array:
    return np.moveaxis(x, 1, -1) if record.is_channels_first else x


def _back(record: Record, y: Array) -> Array:
    return np.moveaxis(y, -1, 1) if record.is_channels_first else y


def _each(value: Any, n: int) -> tuple[int, ...]:
    return (int(value),) * n if not isinstance(value, (tuple, list)) else tuple(map(int, value))


def _patches(
    x: Array, window: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> tuple[Array, list[int]]:
    """Return the windows of padded images with channels last: (batch, positions…, window…, channels)."""
    n = len(window)
    sizes = [(x.shape[k + 1] - (window[k] - 1) * dilation[k] - 1) // strides[k] + 1 for k in range(n)]
    if min(sizes) < 1:
        raise ValueError("no window fits")
    pieces = []
    for place in itertools.product(*map(range, window)):
        index = tuple(
            slice(place[k] * dilation[k], place[k] * dilation[k] + (sizes[k] - 1) * strides[k] + 1, strides[k])
            for k in range(n)
        )
        pieces.append(x[(slice(None), *index)])
    return np.stack(pieces, axis=-2), sizes


def _convolve(
    x: Array,
    kernel: Array,
    bias: Any,
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
    mode: str = "constant",
) -> Array:
    """Convolve images with channels last with a kernel (spatial, in / groups, out)."""
    x = np.pad(x, [(0, 0), *padding, (0, 0)], mode=mode)  # type: ignore[call-overload]
    window = kernel.shape[:-2]
    windows, _ = _patches(x, window, strides, dilation)
    flat = kernel.reshape(-1, *kernel.shape[-2:])
    if flat.shape[1] * groups != x.shape[-1]:
        raise ValueError("the channels do not fit")
    results = [
        np.tensordot(piece, part, axes=([-2, -1], [0, 1]))
        for piece, part in zip(np.split(windows, groups, -1), np.split(flat, groups, -1), strict=True)
    ]
    return np.concatenate(results, -1) + bias


def _same(
    sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    pads = []
    for size, k, s, d in zip(sizes, window, strides, dilation, strict=True):
        total = max((math.ceil(size / s) - 1) * s + (k - 1) * d + 1 - size, 0)
        pads.append((total // 2, total - total // 2))
    return pads


def _pads(
    padding: Any, sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> Any:
    if isinstance(padding, str):
        if padding.lower() == "same":
            return _same(sizes, window, strides, dilation)
        return [(0, 0)] * len(window)
    if isinstance(padding, (tuple, list)) and padding and isinstance(padding[0], (tuple, list)):
        return [tuple(p) for p in padding]
    return [(p, p) for p in _each(padding, len(window))]


def _paddings(pads: list[tuple[int, int]], same: list[tuple[int, int]], key: str) -> list[tuple[str, dict[str, Any]]]:
    none = [(0, 0)] * len(pads)
    changes: list[tuple[str, dict[str, Any]]] = []
    if pads != same:
        changes.append((f"padding 'same', {_plain(same)}, where the reference has {_plain(pads)}", {key: same}))
    if pads != none:
        changes.append((f"no padding where the reference has {_plain(pads)}", {key: none}))
        after = [(0, a + b) for a, b in pads]
        changes.append(
            (f"padding after the image alone, {_plain(after)}, where the reference has {_plain(pads)}", {key: after})
        )
        before = [(a + b, 0) for a, b in pads]
        changes.append(
            (f"padding before the image alone, {_plain(before)}, where the reference has {_plain(pads)}", {key: before})
        )
        moved = [(max(a - 1, 0), b + 1) for a, b in pads]
        changes.append(("the windows start one entry too late (an offset of the strides)", {key: moved}))
        moved = [(a + 1, max(b - 1, 0)) for a, b in pads]
        changes.append(("the windows start one entry too early (an offset of the strides)", {key: moved}))
    return changes


def _plain(pads: Sequence[tuple[int, int]]) -> str:
    return str([list(p) for p in pads]) if len(set(pads)) > 1 else str(list(pads[0]))


def _conv(record: Record) -> _Layer:
    x, o = _spatial(record, _wide(record.inputs[0])), record.options
    kernel, b = _array(record, "kernel"), _array(record, "bias")
    if kernel is None:
        weight = _array(record, "weight")
        assert weight is not None
        kernel = weight.transpose(*range(2, weight.ndim), 1, 0)
    n = kernel.ndim - 2
    window = kernel.shape[:n]
    strides, dilation, groups = _each(o.get("stride", 1), n), _each(o.get("dilation", 1), n), int(o.get("groups", 1))
    sizes = x.shape[1:-1]
    mode = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[
        o.get("padding_mode", "zeros")
    ]
    pads = _pads(o.get("padding", 0), sizes, window, strides, dilation)
    bias: Any = 0.0 if b is None else b

    def compute(
        kernel: Any = kernel,
        b: Any = bias,
        x: Any = x,
        pads: Any = pads,
        strides: Any = strides,
        dilation: Any = dilation,
        groups: Any = groups,
        mode: Any = mode,
        order: Any = None,
    ) -> Any:
        y = _convolve(x, kernel, b, strides, pads, dilation, groups, mode)
        return _back(record, y if order is None else y[..., order])

    same = _same(sizes, window, strides, dilation)
    changes = _paddings(pads, same, "pads")
    if b is not None:
        changes += [("the bias is missing", {"b": 0.0}), ("the bias is added twice", {"b": 2 * bias})]
    changes.append(
        (
            "the kernel is flipped: a convolution where the reference correlates",
            {"kernel": np.flip(kernel, tuple(range(n)))},
        )
    )
    if n == 2:
        changes.append(("height and width of the kernel are swapped", {"kernel": kernel.swapaxes(0, 1)}))
    changes.append(("inputs and outputs of the kernel are swapped", {"kernel": kernel.swapaxes(-1, -2)}))
    changes += [("the stride is reversed", {"strides": strides[::-1]})] * (len(set(strides)) > 1)
    if max(dilation) > 1:
        ones = (1,) * n
        changes.append(("the dilation is missing", {"dilation": ones}))
        changes.append(("the dilation is missing", {"dilation": ones, "pads": _same(sizes, window, strides, ones)}))
    if max(strides) > 1:
        changes.append(("the stride is missing", {"strides": (1,) * n}))
    if groups > 1:
        out = kernel.shape[-1]
        mixed = np.arange(out).reshape(groups, -1).T.reshape(-1)
        changes.append(("the channels of the groups are interleaved", {"order": mixed}))
        changes.append(("the channels of the groups are interleaved", {"kernel": kernel[..., mixed]}))
        changes.append(
            ("the multipliers of a depthwise kernel are in another order", {"kernel": kernel[..., np.argsort(mixed)]})
        )
        inputs = np.arange(x.shape[-1]).reshape(groups, -1).T.reshape(-1)
        changes.append(("the channels of the groups are interleaved", {"x": x[..., inputs]}))
    if mode != "constant" or pads != [(0, 0)] * n:
        for other, name in (
            ("constant", "zeros"),
            ("reflect", "reflection"),
            ("edge", "repetition"),
            ("wrap", "wrapping"),
        ):
            changes += [
                (f"padding by {name} where the reference has {o.get('padding_mode', 'zeros')}", {"mode": other})
            ] * (other != mode)
    given = record.inputs[0]
    if record.is_channels_first and given.ndim > 2:
        read = _wide(given).reshape(given.shape[0], *given.shape[2:], given.shape[1])
        changes.append(("an image with channels first is read as one with channels last", {"x": read}))
        if n == 2:
            changes.append(("height and width of the image are swapped", {"x": x.swapaxes(1, 2)}))
    return _Layer(compute, changes)


def _conv_transpose(record: Record) -> _Layer:
    """Spread the input, and slide the flipped kernel over it."""
    x, o = _spatial(record, _wide(record.inputs[0])), record.options
    weight, b = _array(record, "weight"), _array(record, "bias")
    assert weight is not None
    n = weight.ndim - 2
    groups = int(o.get("groups", 1))
    strides, dilation = _each(o.get("stride", 1), n), _each(o.get("dilation", 1), n)
    crop, extra = _each(o.get("padding", 0), n), _each(o.get("output_padding", 0), n)
    kernel = weight.transpose(*range(2, weight.ndim), 0, 1)  # (spatial, in, out / groups)
    bias: Any = 0.0 if b is None else b

    def compute(
        kernel: Any = kernel, b: Any = bias, lows: Any = crop, extra: Any = extra, groups: Any = groups, late: Any = 0
    ) -> Any:
        spread = np.zeros(
            (x.shape[0], *((s - 1) * k + 1 for s, k in zip(x.shape[1:-1], strides, strict=True)), x.shape[-1])
        )
        spread[(slice(None), *(slice(None, None, k) for k in strides))] = x
        full = [(k - 1) * d for k, d in zip(kernel.shape[:n], dilation, strict=True)]
        pads = [(f - c - late, f - c + e + late) for f, c, e in zip(full, lows, extra, strict=True)]
        cut = tuple(
            slice(max(-low, 0), size - max(-high, 0))
            for (low, high), size in zip(pads, spread.shape[1:-1], strict=True)
        )
        spread = spread[(slice(None), *cut)]
        pads = [(max(low, 0), max(high, 0)) for low, high in pads]
        flipped = np.flip(kernel, tuple(range(n)))
        ins = np.split(flipped, groups, axis=-2)
        return _back(record, _convolve(spread, np.concatenate(ins, axis=-1), b, (1,) * n, pads, dilation, groups))

    changes: list[tuple[str, dict[str, Any]]] = [
        ("the kernel is not flipped: it slides over the spread input", {"kernel": np.flip(kernel, tuple(range(n)))}),
        ("inputs and outputs of the kernel are swapped", {"kernel": kernel.swapaxes(-1, -2)}),
        ("the output is cropped one entry too late", {"late": -1}),
        ("the output is cropped one entry too early", {"late": 1}),
    ]
    if n == 2:
        changes.append(("height and width of the kernel are swapped", {"kernel": kernel.swapaxes(0, 1)}))
    changes += [("the bias is missing", {"b": 0.0})] * (b is not None)
    if groups > 1:
        mixed = np.arange(kernel.shape[-2]).reshape(groups, -1).T.reshape(-1)
        changes.append(("the groups are not kept apart as the reference has them", {"kernel": kernel[..., mixed, :]}))
    return _Layer(compute, changes)


def _norm(record: Record) -> _Layer:
    """Normalise with moments of the batch, of a sample or of a vector; each may be wrong in the same ways."""
    x, o, kind = _wide(record.inputs[0]), record.options, record.kind
    scale, offset = _array(record, "weight", "gamma", "scale"), _array(record, "bias", "beta")
    epsilon = float(o.get("eps") or np.finfo(record.value.dtype).eps)
    is_batch, is_rms = kind.startswith("Batch"), kind.startswith("RMS")
    x = _spatial(record, x) if is_batch or kind.startswith(("Group", "Instance")) else x
    is_spatial = is_batch or kind.startswith(("Group", "Instance"))
    own = (
        _array(record, "running_mean", "moving_mean", "mean"),
        _array(record, "running_var", "moving_variance", "var"),
    )
    frozen = is_batch and not o.get("training", False) and own[0] is not None
    vector = len(o.get("normalized_shape", (1,)))
    groups = int(o.get("num_groups", 1))
    ones: Any = 1.0 if scale is None else scale
    zeros: Any = 0.0 if offset is None else offset

    def moments(x: Array, how: str, axes: Any, ddof: int, groups: int) -> tuple[Any, Any]:
        if how == "running":
            return own
        return x.mean(axes, keepdims=True), x.var(axes, keepdims=True, ddof=ddof)

    def compute(
        eps: float = epsilon,
        scale: Any = ones,
        offset: Any = zeros,
        how: str = "running" if frozen else "batch",
        ddof: int = 0,
        centred: bool = not is_rms,
        root: str = "inside",
        groups: int = groups,
        last: int = vector,
        interleaved: bool = False,
        first_axis: bool = False,
    ) -> Any:
        y = x
        if kind.startswith(("Group", "Instance")) and not first_axis:
            channels = x.shape[-1]
            n = channels if kind.startswith("Instance") else groups
            order = np.arange(channels).reshape(-1, n).T.reshape(-1) if interleaved else np.arange(channels)
            y = x[..., order].reshape(*x.shape[:-1], n, channels // n)
            axes: Any = (*range(1, x.ndim - 1), x.ndim)
        elif is_batch:
            axes = tuple(range(x.ndim - 1)) if not first_axis else tuple(range(1, x.ndim))
        else:
            axes = tuple(range(x.ndim - last, x.ndim)) if not first_axis else tuple(range(1, x.ndim - last)) or (0,)
        mean, var = moments(y, how, axes, ddof, groups)
        if is_rms and not centred:
            mean, var = 0.0, (y**2).mean(axes, keepdims=True)
        elif not centred:
            mean, var = (0.0, (y**2).mean(axes, keepdims=True)) if root != "mean" else (0.0, var)
        if root == "outside":
            divisor = np.sqrt(var) + eps
        elif root == "none":
            divisor = var + eps
        elif root == "inverse":
            divisor = 1 / np.sqrt(var + eps)
        else:
            divisor = np.sqrt(var + eps)
        y = (y - mean) / divisor
        if y.shape != x.shape:
            y = y.reshape(x.shape)
            y = y[..., np.argsort(order)]
        y = y * scale + offset
        return _back(record, y) if is_spatial else y

    changes: list[tuple[str, dict[str, Any]]] = []
    if scale is not None and offset is not None:
        changes.append(("gamma and beta are swapped", {"scale": offset, "offset": scale}))
    changes += [("gamma is missing", {"scale": 1.0})] * (scale is not None)
    changes += [("gamma is 1 too large: it is added to 1", {"scale": 1.0 + ones})] * (scale is not None)
    changes += [("beta is missing", {"offset": 0.0})] * (offset is not None)
    changes += [("gamma and beta are missing", {"scale": 1.0, "offset": 0.0})] * (scale is not None)
    if frozen:
        changes.append(("the moments of the batch in place of the running ones: training mode", {"how": "batch"}))
        changes.append(
            ("the moments of the batch in place of the running ones: training mode", {"how": "batch", "ddof": 1})
        )
    elif is_batch and own[0] is not None:
        changes.append(("the running moments in place of those of the batch: evaluation mode", {"how": "running"}))
    changes += [(f"epsilon {e:g} where the reference has {epsilon:g}", {"eps": e}) for e in _EPSILONS if e != epsilon]
    changes.append(("the variance is unbiased, divided by n - 1", {"ddof": 1}))
    changes.append(("the mean is subtracted", {"centred": True})) if is_rms else changes.append(
        ("the mean is not subtracted", {"centred": False, "root": "mean"})
    )
    if not is_rms:
        changes.append(
            ("root mean square in place of the standard deviation: the mean is not subtracted", {"centred": False})
        )
    changes.append(("epsilon is added outside of the square root", {"root": "outside"}))
    changes.append(("the variance is used as the standard deviation", {"root": "none"}))
    changes.append(("multiplied by the standard deviation where it had to be divided", {"root": "inverse"}))
    changes.append(("normalised over other axes", {"first_axis": True}))
    changes += [("normalised over other axes", {"last": n}) for n in range(1, x.ndim) if n != vector and not is_spatial]
    if kind.startswith("Group"):
        changes.append(("the channels of the groups are interleaved", {"interleaved": True}))
        changes += [
            (f"{n} groups where the reference has {groups}", {"groups": n})
            for n in range(1, x.shape[-1] + 1)
            if n != groups and x.shape[-1] % n == 0
        ]
    return _Layer(compute, changes)


def _pool(record: Record) -> _Layer:
    x, o = _spatial(record, _wide(record.inputs[0])), record.options
    n = x.ndim - 2
    window = _each(o["kernel_size"], n)
    strides = _each(o.get("stride") or o["kernel_size"], n)
    dilation = _each(o.get("dilation", 1), n)
    pads = _pads(o.get("padding", 0), x.shape[1:-1], window, strides, dilation)
    is_max = record.kind.startswith("Max")
    include = bool(o.get("count_include_pad", False))
    ceil = bool(o.get("ceil_mode", False))

    def compute(
        pads: Any = pads,
        is_max: bool = is_max,
        include: bool = include,
        ceil: bool = ceil,
        fill: float = -np.inf,
        strides: Any = strides,
    ) -> Any:
        extra, inside = [(0, 0)] * n, [(0, 0)] * n
        if ceil:
            for k in range(n):
                size = x.shape[k + 1] + sum(pads[k])
                reach = (window[k] - 1) * dilation[k] + 1
                count = math.ceil((size - reach) / strides[k]) + 1
                if (count - 1) * strides[k] >= x.shape[k + 1] + pads[k][0]:
                    count -= 1
                extra[k] = (0, max((count - 1) * strides[k] + reach - size, 0))
        whole = [(a + c, b + d) for (a, b), (c, d) in zip(pads, extra, strict=True)]
        padded = np.pad(x, [(0, 0), *whole, (0, 0)], constant_values=fill if is_max else 0.0)
        windows, _ = _patches(padded, window, strides, dilation)
        if is_max:
            return _back(record, windows.max(-2))
        mark = np.pad(np.ones(x.shape[1:-1]), pads, constant_values=1.0 if include else 0.0)
        mark = np.pad(mark, extra)[None, ..., None]
        counts, _ = _patches(mark, window, strides, dilation)
        del inside
        return _back(record, windows.sum(-2) / counts.sum(-2))

    changes = _paddings(pads, _same(x.shape[1:-1], window, strides, dilation), "pads")
    if is_max:
        changes.append(("padding with zeros where the reference has minus infinity", {"fill": 0.0}))
        changes.append(("average pooling where the reference has max pooling", {"is_max": False}))
    else:
        told = "the padding counts in the average" if not include else "the padding does not count in the average"
        changes.append((told, {"include": not include}))
        changes.append(("max pooling where the reference has average pooling", {"is_max": True}))
    changes.append((f"ceil_mode is {not ceil} where the reference has {ceil}", {"ceil": not ceil}))
    changes += [("the stride is 1 where the reference has the stride of the window", {"strides": (1,) * n})] * (
        max(strides) > 1
    )
    return _Layer(compute, changes)


def _embedding(record: Record) -> _Layer:
    ids = record.inputs[0].astype(int)
    table = _array(record, "weight", "embedding", "embeddings")
    assert table is not None

    def compute(table: Any = table, shift: int = 0) -> Any:
        return table[(ids + shift) % len(table)]

    d = table.shape[1]
    changes: list[tuple[str, dict[str, Any]]] = [
        (f"multiplied by sqrt({d}), the square root of the width", {"table": table * d**0.5}),
        ("the indices are 1 too small", {"shift": -1}),
        ("the indices are 1 too large", {"shift": 1}),
        ("the table is transposed", {"table": table.T}),
        ("each vector is normalised", {"table": table / np.linalg.norm(table, axis=1, keepdims=True)}),
    ]
    for row in {0, int(o) if (o := record.options.get("padding_idx")) is not None else 0}:
        emptied = table.copy()
        emptied[row] = 0.0
        changes.append((f"row {row} of the table is zero", {"table": emptied}))
    return _Layer(compute, changes)


def _lstm(record: Record) -> _Layer:
    return _recurrent(record, 4)


def _gru(record: Record) -> _Layer:
    return _recurrent(record, 3)


def _recurrent(record: Record, gates: int) -> _Layer:
    o = record.options
    if o.get("num_layers", 1) != 1 or o.get("bidirectional"):
        raise ValueError("one layer, one direction")
    x = _wide(record.inputs[0])
    sequence = x if o.get("batch_first") else x.swapaxes(0, 1)
    arrays = [_array(record, f"{name}_l0", name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    w, u, b, c = arrays
    assert w is not None
    assert u is not None
    units = u.shape[1]
    zeros = np.zeros(gates * units)
    b, c = zeros if b is None else b, zeros if c is None else c
    whole = record.value.ndim == 3 and record.value.shape[-1] == units

    def compute(
        order: Sequence[int] = tuple(range(gates)),
        w: Any = w,
        u: Any = u,
        b: Any = b,
        c: Any = c,
        forget: float = 0.0,
        reverse: bool = False,
        cell: bool = False,
        before: bool = False,
        swap: bool = False,
        inner: Any = np.tanh,
    ) -> Any:
        w, u, b, c = (np.concatenate([np.split(z, gates)[k] for k in order]) for z in (w, u, b, c))
        state = [np.zeros((len(sequence), units))] * 2
        steps = []
        for t in range(sequence.shape[1])[:: -1 if reverse else 1]:
            state = _step(sequence[:, t], state, w, u, b, c, forget, before, swap, inner)
            steps.append(state[1] if cell else state[0])
        if not whole:
            raise ValueError("the last state")
        y = np.stack(steps[:: -1 if reverse else 1], 1)
        return y if o.get("batch_first") else y.swapaxes(0, 1)

    names = "ifgo" if gates == 4 else "rzn"
    changes: list[tuple[str, dict[str, Any]]] = []
    for order in itertools.permutations(range(gates)):
        if order != tuple(range(gates)):
            given = " ".join(names[k] for k in np.argsort(order))
            changes.append(
                (f"the gates are in another order: read as {' '.join(names)}, they are {given}", {"order": order})
            )
    changes += [("the recurrent bias is missing", {"c": zeros}), ("the input bias is missing", {"b": zeros})]
    changes += [
        ("the biases are missing", {"b": zeros, "c": zeros}),
        ("the biases are added twice", {"b": 2 * b, "c": 2 * c}),
    ]
    changes += [("the sequence is read backwards", {"reverse": True})]
    changes += [("kernel and recurrent kernel are swapped", {"w": u, "u": w})]
    blocks = [
        np.concatenate([gate.T for gate in np.split(z, gates)]) if z.shape[0] == gates * z.shape[1] else z
        for z in (w, u)
    ]
    changes += [
        ("the kernels are transposed", {"w": blocks[0], "u": blocks[1]}),
        ("the recurrent kernel is transposed", {"u": blocks[1]}),
    ]
    if gates == 4:
        changes += [
            ("1 is added to the forget bias", {"forget": 1.0}),
            ("the cell state in place of the output", {"cell": True}),
        ]
    else:
        changes += [("the reset gate is applied before the recurrent product (reset_after=False)", {"before": True})]
        changes += [("the update gate is used the other way round: z and 1 - z", {"swap": True})]
    changes += [
        ("a sigmoid where the reference has tanh", {"inner": _sigmoid}),
        ("relu where the reference has tanh", {"inner": _relu}),
    ]
    return _Layer(compute, changes)


def _step(
    x: Array,
    state: list[Array],
    w: Array,
    u: Array,
    b: Array,
    c: Array,
    forget: float,
    before: bool,
    swap: bool,
    inner: Any,
) -> list[Array]:
    h, memory = state
    if len(w) == 4 * h.shape[1]:
        i, f, g, o = np.split(x @ w.T + b + h @ u.T + c, 4, axis=1)
        memory = _sigmoid(f + forget) * memory + _sigmoid(i) * inner(g)
        return [_sigmoid(o) * inner(memory), memory]
    given, (ur, uz, un), (cr, cz, cn) = np.split(x @ w.T + b, 3, axis=1), np.split(u, 3), np.split(c, 3)
    r, z = _sigmoid(given[0] + h @ ur.T + cr), _sigmoid(given[1] + h @ uz.T + cz)
    n = inner(given[2] + ((r * h) @ un.T + cn if before else r * (h @ un.T + cn)))
    h = z * n + (1 - z) * h if swap else (1 - z) * n + z * h
    return [h, h]


def _attention(record: Record) -> _Layer:
    """Several heads, from projected query, key and value to the projected result."""
    o = record.options
    inputs = [_wide(x) for x in record.inputs[:3]]
    if not o.get("batch_first"):
        inputs = [x.swapaxes(0, 1) for x in inputs]
    heads = int(o["num_heads"])
    weight, bias = _array(record, "in_proj_weight"), _array(record, "in_proj_bias")
    out, out_bias = _array(record, "out_proj.weight"), _array(record, "out_proj.bias")
    assert weight is not None
    assert out is not None
    width = weight.shape[1]
    zeros = np.zeros(3 * width)
    depth = width // heads
    given = o.get("attn_mask")
    mask = None if given is None else (np.where(given, -np.inf, 0.0) if given.dtype == bool else _wide(given))
    padded = o.get("key_padding_mask")
    if padded is not None:
        hidden = np.where(padded, -np.inf, 0.0)[:, None, None, :] if padded.dtype == bool else padded[:, None, None, :]
        mask = hidden if mask is None else mask + hidden

    def split(x: Array, interleaved: bool) -> Array:
        shape = (*x.shape[:2], depth, heads) if interleaved else (*x.shape[:2], heads, depth)
        return x.reshape(shape).transpose((0, 3, 1, 2) if interleaved else (0, 2, 1, 3))

    def compute(
        scale: float = depth**-0.5,
        mask: Any = mask,
        order: Sequence[int] = (0, 1, 2),
        interleaved: bool = False,
        axis: int = -1,
        bias: Any = zeros if bias is None else bias,
        out: Any = out,
        out_bias: Any = 0.0 if out_bias is None else out_bias,
        transposed: bool = False,
    ) -> Any:
        kernels, biases = np.split(weight, 3), np.split(bias, 3)
        kernels = [k.T for k in kernels] if transposed else kernels
        q, k, v = (split(inputs[n] @ kernels[m].T + biases[m], interleaved) for n, m in enumerate(order))
        scores = q @ k.swapaxes(-1, -2) * scale
        scores = scores if mask is None else scores + mask
        y = _softmax(scores, axis) @ v
        y = y.transpose(0, 2, 1, 3).reshape(*y.shape[:1], y.shape[2], width)
        y = y @ out.T + out_bias
        return y if o.get("batch_first") else y.swapaxes(0, 1)

    length = inputs[0].shape[1]
    causal = np.triu(np.full((length, inputs[1].shape[1]), -np.inf), 1)
    changes: list[tuple[str, dict[str, Any]]] = [
        (f"the scale 1/sqrt({depth}) of the scores is missing", {"scale": 1.0}),
        (f"the scores are scaled by 1/{depth}, not its square root", {"scale": 1 / depth}),
        (f"the scale is 1/sqrt({width}), of all heads together", {"scale": width**-0.5}),
        ("the scores are multiplied by the square root where they had to be divided", {"scale": depth**0.5}),
    ]
    if mask is not None:
        inverted = np.where(np.isneginf(mask), 0.0, -np.inf)
        changes += [("the mask is inverted", {"mask": inverted}), ("the mask is missing", {"mask": None})]
        changes += [("the mask adds 1 where the reference hides", {"mask": np.where(np.isneginf(mask), 1.0, 0.0)})]
        changes += [("the mask adds 1 where the reference sees", {"mask": np.where(np.isneginf(mask), 0.0, 1.0)})]
        changes += [("the mask is transposed", {"mask": mask.swapaxes(-1, -2)})]
    changes.append(("a causal mask, which the reference does not have", {"mask": causal}))
    for order in itertools.permutations(range(3)):
        told = " ".join(("query", "key", "value")[k] for k in order)
        changes.append((f"query, key and value are in another order: {told}", {"order": order}))
    changes += [("the heads are split in another order: depth before heads", {"interleaved": True})]
    changes += [("softmax over the queries, not the keys", {"axis": -2})]
    changes += [
        ("the biases of query, key and value are missing", {"bias": zeros}),
        ("the bias of the result is missing", {"out_bias": 0.0}),
    ]
    changes += [
        ("the kernel of the result is transposed", {"out": out.T}),
        ("the kernels of query, key and value are transposed", {"transposed": True}),
    ]
    return _Layer(compute, changes)


def _resize(record: Record) -> _Layer:
    x, o = _spatial(record, _wide(record.inputs[0])), record.options
    y = _spatial(record, record.value)
    sizes, wanted = x.shape[1:-1], y.shape[1:-1]
    mode, aligned = o.get("mode", "nearest"), bool(o.get("align_corners") or False)

    def weights(size: int, to: int, how: str, corners: bool) -> Array:
        matrix = np.zeros((to, size))
        places = np.arange(to, dtype=float)
        if how == "nearest":
            index = np.floor(places * size / to)
        elif how == "nearest-exact":
            index = np.floor((places + 0.5) * size / to)
        elif how == "nearest, rounded":
            index = np.round(places * size / to)
        else:
            centre = places * (size - 1) / max(to - 1, 1) if corners else (places + 0.5) * size / to - 0.5
            centre = places * size / to if how == "linear from the corner" else centre
            centre = np.clip(centre, 0, size - 1)
            low = np.floor(centre).astype(int)
            high = np.minimum(low + 1, size - 1)
            np.add.at(matrix, (np.arange(to), low), 1 - (centre - low))
            np.add.at(matrix, (np.arange(to), high), centre - low)
            return matrix
        matrix[np.arange(to), np.minimum(index.astype(int), size - 1)] = 1.0
        return matrix

    own = "linear" if "linear" in mode else mode

    def compute(how: str = own, corners: bool = aligned) -> Any:
        z = x
        for axis, (size, to) in enumerate(zip(sizes, wanted, strict=True), 1):
            z = np.moveaxis(np.tensordot(weights(size, to, how, corners), z, axes=(1, axis)), 0, axis)
        return _back(record, z)

    changes: list[tuple[str, dict[str, Any]]] = [
        (
            f"align_corners is {not aligned} where the reference has {aligned}",
            {"corners": not aligned, "how": "linear"} if own == "linear" else {"how": "linear", "corners": True},
        )
    ]
    for how in ("nearest", "nearest-exact", "nearest, rounded", "linear", "linear from the corner"):
        changes += [(f"interpolation {how!r} where the reference has {mode!r}", {"how": how, "corners": False})] * (
            how != own
        )
    return _Layer(compute, changes)


def _activation(record: Record) -> _Layer:
    """Activations with a parameter, whose value may be wrong."""
    x, o, kind = _wide(record.inputs[0]), record.options, record.kind
    if kind == "LeakyReLU":
        own = float(o["negative_slope"])
        return _Layer(
            lambda a=own: np.where(x > 0, x, a * x),
            [(f"slope {a:g} where the reference has {own:g}", {"a": a}) for a in (0.01, 0.2, 0.3, 0.1, 0.25, 0.0)],
        )
    if kind == "ELU":
        own = float(o["alpha"])
        values = (1.0, 0.5, 0.1, 2.0)
        return _Layer(
            lambda a=own: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0))),
            [(f"alpha {a:g} where the reference has {own:g}", {"a": a}) for a in values],
        )
    if kind == "Softplus":
        own = float(o["beta"])
        return _Layer(
            lambda a=own: np.logaddexp(a * x, 0) / a,
            [(f"beta {a:g} where the reference has {own:g}", {"a": a}) for a in (1.0, 2.0, 0.5)],
        )
    raise ValueError(kind)


def _dropout(record: Record) -> _Layer:
    x, p = _wide(record.inputs[0]), float(record.options["p"])
    return _Layer(
        lambda a=1.0: a * x,
        [
            (f"scaled by 1/(1 - p), {1 / (1 - p):g}, in evaluation mode", {"a": 1 / (1 - p)}),
            ("scaled by 1 - p", {"a": 1 - p}),
        ],
    )


_SUSPECTS: dict[str, Callable[[Record], _Layer]] = {
    "ConvTranspose": _conv_transpose,
    "Conv1D": _dense,  # of transformers
    "Conv": _conv,
    "Linear": _dense,
    "NonDynamically": _dense,
    "Dense": _dense,
    **dict.fromkeys(("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm"), _norm),
    **dict.fromkeys(("MaxPool", "AvgPool"), _pool),
    "Embed": _embedding,
    "LSTM": _lstm,
    "GRU": _gru,
    **dict.fromkeys(("MultiheadAttention",), _attention),
    "Upsample": _resize,
    **dict.fromkeys(("LeakyReLU", "ELU", "Softplus"), _activation),
    "Dropout": _dropout,
}


# gradients and statistics


def _of_gradient(wanted: Array, computed: Array) -> str | None:
    """Return why a gradient differs where the values agree."""
    wanted, computed = _wide(wanted), _wide(computed)
    if wanted.shape != computed.shape:
        return None
    if not computed.any():
        return "no gradient flows: op_stop_gradient, a rule that returns zero, or a step function"
    if _is_like(-wanted, computed, 1e-6):
        return "the gradient has the wrong sign"
    with np.errstate(all="ignore"):
        ratio = float(np.median((computed / wanted)[wanted != 0].real)) if (wanted != 0).any() else math.nan
    if math.isfinite(ratio) and ratio and abs(ratio - 1) > 1e-4 and _is_like(wanted * ratio, computed, 1e-5):
        return f"the gradient is scaled by {ratio:.6g}"
    bound = np.abs(wanted).max()
    beyond = 1 + 1e-4
    if np.abs(computed).max() > bound * beyond and _is_like(np.clip(computed, -bound, bound), wanted, 1e-6):
        return f"the reference clips the gradient at {bound:.6g}: its rule is lost"
    bound = np.abs(computed).max()
    if np.abs(wanted).max() > bound * beyond and _is_like(np.clip(wanted, -bound, bound), computed, 1e-6):
        return f"the gradient is clipped at {bound:.6g}"
    return None


def _of_state(record: Record, leaf: str, before: Array, wanted: Array, computed: Array) -> str | None:
    """Return why a running statistic differs after a step in training mode."""
    before, wanted, computed = (_wide(x) for x in (before, wanted, computed))
    if _is_like(before, computed, 1e-7):
        return "the statistics are not updated"
    momentum = record.options.get("momentum")
    x = _spatial(record, _wide(record.inputs[0]))
    axes = tuple(range(x.ndim - 1))
    count = x.size // x.shape[-1]
    is_mean = "mean" in leaf
    for m, ddof in itertools.product(
        (momentum, *(1 - m for m in (momentum,) if m), 0.1, 0.01, 0.001, 0.99, 0.9, 1.0), (1, 0)
    ):
        if m is None:
            continue
        batch = x.mean(axes) if is_mean else x.var(axes, ddof=ddof if count > 1 else 0)
        if _is_like((1 - m) * before + m * batch, computed, 1e-5):
            said = []
            if momentum is not None and not math.isclose(m, momentum):
                said.append(f"momentum {m:g} where the reference has {momentum:g}")
            if not is_mean and ddof == 0:
                said.append("the variance is biased, divided by n where the reference divides by n - 1")
            return " and ".join(said) or None
    return None
