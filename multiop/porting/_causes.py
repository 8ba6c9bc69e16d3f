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

from . import _weights
from ._reference import Array, Record, is_inexact

_MOST = 32  # how many times the rest a small difference is that a suspect explains
_Variations: TypeAlias = Iterator[tuple[str, Callable[[], Any]]]
# the computation of a layer, and which of its keyword arguments a suspect changes
_Layer: TypeAlias = tuple[Callable[..., Any], list[tuple[str, dict[str, Any]]]]
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
    tolerance = max(1e4 * max(eps(record.value.dtype), 1e-16), 1e-11)
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
                compute, changes = suspects(record)
                if _is_like(np.asarray(compute()), _wide(record.value), tolerance):
                    yield from ((told, functools.partial(compute, **change)) for told, change in changes)
            except (ValueError, IndexError, KeyError, TypeError, AttributeError):
                pass
            return


# any output


def _of_any(record: Record, y: Array, computed: Array, earlier: Sequence[Record]) -> _Variations:
    inputs = [_wide(x) for x in record.inputs if is_inexact(x)]
    if computed.shape == y.shape:
        yield from _elementwise(inputs, y)
        yield from _rotation_suspects(inputs, y)
        yield from _resampling_suspects(inputs, y)
    for n, x in enumerate(inputs):
        if x.shape == y.shape:
            which = "the input" if n == 0 else f"input {n}"
            yield f"a residual is missing: the output lacks {which}", lambda x=x: y - x  # type: ignore[misc]
            yield f"a residual too many: {which} is added to the output", lambda x=x: y + x  # type: ignore[misc]
            yield f"the layer is missing: the output is {which}", lambda x=x: x  # type: ignore[misc]
    yield from _bias_suspects(record, y)
    yield "the sign is wrong", lambda: -y
    for dtype in ("float32", "float16"):
        yield f"computed in {dtype}", lambda dtype=dtype: y.astype(dtype).astype(y.dtype)  # type: ignore[misc]
    if y.ndim >= 2:
        yield from _axis_suspects(y, computed)
    yield from _scale_suspects(record, y, computed)
    for before in reversed(earlier):
        if before.name != record.name:
            told = f"the output is that of {before.name}: what follows it is missing"
            yield told, lambda before=before: _wide(before.value)  # type: ignore[misc]
    if y.ndim:
        yield from _softmax_suspects(inputs, y)


def _bias_suspects(record: Record, y: Array) -> _Variations:
    """Try the bias of a layer that adds one in the end."""
    bias = _array(record, "bias")
    channel = 1 if record.is_channels_first and y.ndim > 2 and y.ndim == record.inputs[0].ndim else y.ndim - 1
    if bias is None or y.ndim == 0 or bias.shape != (y.shape[channel],):
        return
    shift = np.expand_dims(bias, tuple(range(1, y.ndim - channel)))
    for told, factor in (("missing", -1), ("added twice", 1), ("subtracted", -2)):
        yield f"the bias is {told}", lambda factor=factor: y + factor * shift  # type: ignore[misc]


def _axis_suspects(y: Array, computed: Array) -> _Variations:
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
        if computed.shape == y.shape:
            order = _order(y, computed, axis)
            told = f"the entries along axis {axis} are in another order, {_weights.abridge([*map(str, order)])}"
            yield told, lambda axis=axis, order=order: y.take(order, axis)  # type: ignore[misc]
    if y.ndim >= 3:
        flat = y.reshape(y.shape[0], -1)
        yield (
            "the output is reshaped where its axes had to be transposed",
            lambda: np.moveaxis(flat.reshape(y.shape[0], *y.shape[2:], y.shape[1]), -1, 1),
        )


def _order(y: Array, computed: Array, axis: int) -> Array:
    """Return which entry of `y` along an axis stands at each place of `computed`, if they are a permutation."""
    keys = np.random.default_rng(0).normal(size=y.size // max(y.shape[axis], 1))
    ranks = [np.argsort(np.moveaxis(x, axis, 0).reshape(y.shape[axis], -1) @ keys) for x in (y, computed)]
    return ranks[0][np.argsort(ranks[1])]


def _rotation_suspects(inputs: list[Array], y: Array) -> _Variations:
    """If the reference turns pairs of features, as positions do, try other pairs, and the other direction."""
    if not inputs or inputs[0].shape != y.shape or y.ndim < 2 or y.shape[-1] % 2 or y.dtype.kind == "c":
        return
    layouts = {"(i, i + n/2)": (2, -1, -2), "(2i, 2i + 1)": (-1, 2, -1)}

    def paired(x: Array, first: int, second: int, axis: int) -> Array:
        parts = np.moveaxis(x.reshape(*x.shape[:-1], first, second), axis, 0)
        return parts[0] + 1j * parts[1]

    for own, layout in layouts.items():
        turn = paired(y, *layout) / paired(inputs[0], *layout)
        if not _is_like(np.abs(turn), np.ones(turn.shape), 1e-6):
            continue
        for other, (first, second, axis) in layouts.items():
            for told, factor in (("", turn), (" the other way round", turn.conj())):
                z = paired(inputs[0], first, second, axis) * factor
                made = np.stack((z.real, z.imag), axis).reshape(y.shape)
                words = f"pairs of features {other} are turned{told} where the reference turns {own}"
                yield words, lambda made=made: made  # type: ignore[misc]


_GRIDS: dict[str, Callable[[Array, int, int], Array]] = {  # where an output's place is in the input
    "half-pixel centres": lambda i, n, m: (i + 0.5) * n / m - 0.5,
    "aligned corners": lambda i, n, m: i * (n - 1) / max(m - 1, 1),
    "aligned upper left corners": lambda i, n, m: i * n / m,
}
_KERNELS: dict[str, Callable[[Array], Array]] = {
    "nearest": lambda d: ((d > -0.5) & (d <= 0.5)) * 1.0,
    "nearest, rounded down": lambda d: ((d > -1) & (d <= 0)) * 1.0,
    "linear": lambda d: np.maximum(1 - np.abs(d), 0),
    **{
        f"cubic ({a:g})": lambda d, a=a: np.where(  # type: ignore[misc]
            np.abs(d) < 1,
            ((a + 2) * np.abs(d) - (a + 3)) * d**2 + 1,
            np.where(np.abs(d) < 2, a * (np.abs(d) ** 3 - 5 * d**2 + 8 * np.abs(d) - 4), 0),
        )
        for a in (-0.75, -0.5)
    },
}


def _resampled(x: Array, shape: tuple[int, ...], grid: str, kernel: str, antialias: bool) -> Array:
    """Interpolate along each axis whose size differs; what is outside of the input is its edge, or left out."""
    for axis, (n, m) in enumerate(zip(x.shape, shape, strict=True)):
        if n == m:
            continue
        center, width = _GRIDS[grid](np.arange(m), n, m)[:, None], max(n / m, 1.0) if antialias else 1.0
        places = np.arange(n) if antialias else np.arange(-2, n + 2)
        taps = _KERNELS[kernel]((places - center) / width)
        matrix = np.zeros((m, n))
        np.add.at(matrix.T, np.clip(places, 0, n - 1), taps.T)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ (matrix / matrix.sum(1, keepdims=True)).T, -1, axis)
    return x


def _resampling_suspects(inputs: list[Array], y: Array) -> _Variations:
    """If the reference resizes its input, try other grids and kernels."""
    if not inputs or not inputs[0].ndim == y.ndim >= 3 or inputs[0].shape == y.shape or inputs[0].size > 1 << 20:
        return
    forms = {
        f"{kernel} with {grid}{', antialiased' * smooth}": (grid, kernel, smooth)
        for smooth, kernel, grid in itertools.product((False, True), _KERNELS, _GRIDS)
    }
    with np.errstate(all="ignore"):
        made = {told: _resampled(inputs[0], y.shape, *form) for told, form in forms.items()}
    own = next((told for told, z in made.items() if _is_like(z, y, 1e-6)), None)
    for told, z in made.items() if own is not None else ():
        yield f"{told} where the reference has {own}", lambda z=z: z  # type: ignore[misc]


def _scale_suspects(record: Record, y: Array, computed: Array) -> _Variations:
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
    **{f"leaky relu of slope {a}": lambda x, a=a: np.where(x > 0, x, a * x) for a in (0.01, 0.2, 0.3, 0.1, 0.25)},  # type: ignore[misc]
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


def _softmax_suspects(inputs: list[Array], y: Array) -> _Variations:
    """If the reference is a softmax of its input, or the logarithm of one, try other axes, and the other of the two."""
    if not inputs or inputs[0].shape != y.shape or inputs[0].dtype.kind == "c":
        return
    forms = {
        (is_log, axis): np.log(soft) if is_log else soft
        for axis in range(y.ndim)
        for soft in (_softmax(inputs[0], axis),)
        for is_log in (False, True)
    }
    own = next((form for form, made in forms.items() if _is_like(made, y, 1e-6)), None)
    if own is None:
        return
    is_log, own_axis = own
    for axis in range(y.ndim):
        if axis != own_axis:
            told = f"softmax over axis {axis} where the reference has axis {own_axis}"
            yield told, functools.partial(forms.get, (is_log, axis))
    names = ("softmax", "its logarithm") if is_log else ("the logarithm of softmax", "softmax")
    yield f"{names[0]} where the reference has {names[1]}", functools.partial(forms.get, (not is_log, own_axis))


# layers


def _array(record: Record, *names: str) -> Array | None:
    return next((_wide(record.arrays[name]) for name in names if name in record.arrays), None)


def _dense(record: Record) -> _Layer:
    x, kernel, bias = _wide(record.inputs[0]), _array(record, "kernel"), _array(record, "bias")
    if kernel is None:
        weight = record.arrays["weight"]
        kernel = _wide(weight if record.kind == "Conv1D" else weight.T)

    def compute(kernel: Array = kernel, x: Array = x) -> Any:
        return x @ kernel + (0.0 if bias is None else bias)

    flattened = [(told, {"x": moved}) for told, moved in _flatten_otherwise(x)]
    return compute, [("the kernel is transposed", {"kernel": kernel.T}), *flattened]


def _flatten_otherwise(x: Array) -> Iterator[tuple[str, Array]]:
    size = x.shape[-1]
    told = "the input was flattened in another order: channels last where the reference has them first, or the other way round"
    for channels in (n for n in range(2, size) if size % n == 0):
        yield told, x.reshape(*x.shape[:-1], channels, size // channels).swapaxes(-1, -2).reshape(x.shape)


def _spatial(record: Record, x: Array) -> Array:
    return np.moveaxis(x, 1, -1) if record.is_channels_first else x


def _norm(record: Record) -> _Layer:
    """Normalise with moments of the batch, of a sample or of a vector; each may be wrong in the same ways."""
    x, o, kind = _wide(record.inputs[0]), record.options, record.kind
    gamma, beta = _array(record, "weight", "gamma", "scale"), _array(record, "bias", "beta")
    epsilon = float(o.get("eps") or np.finfo(record.value.dtype).eps)
    is_batch, is_grouped, is_rms = (kind.startswith(names) for names in ("Batch", ("Group", "Instance"), "RMS"))
    running: tuple[Any, Any] = (
        _array(record, "running_mean", "moving_mean", "mean"),
        _array(record, "running_var", "moving_variance", "var"),
    )
    is_frozen = is_batch and not o.get("training", False) and running[0] is not None
    x = _spatial(record, x) if is_batch or is_grouped else x
    shape, vector = x.shape, len(o.get("normalized_shape", (1,)))
    if is_grouped:
        groups = shape[-1] if kind.startswith("Instance") else int(o.get("num_groups", 1))
        x = x.reshape(*shape[:-1], groups, -1)
        own_axes: tuple[int, ...] = (*range(1, len(shape) - 1), len(shape))
    else:
        own_axes = tuple(range(x.ndim - 1)) if is_batch else tuple(range(x.ndim - vector, x.ndim))

    def compute(
        eps: float = epsilon,
        gamma: Any = 1.0 if gamma is None else gamma,
        beta: Any = 0.0 if beta is None else beta,
        is_frozen: bool = is_frozen,
        ddof: int = 0,
        subtracts_mean: bool = not is_rms,
        divides_by_rms: bool = is_rms,
        is_outside: bool = False,
        axes: tuple[int, ...] = own_axes,
    ) -> Any:
        mean, var = running if is_frozen else (x.mean(axes, keepdims=True), x.var(axes, keepdims=True, ddof=ddof))
        var = (x**2).mean(axes, keepdims=True) if divides_by_rms else var
        divisor = np.sqrt(var) + eps if is_outside else np.sqrt(var + eps)
        y = ((x - mean if subtracts_mean else x) / divisor).reshape(shape) * gamma + beta
        return np.moveaxis(y, -1, 1) if record.is_channels_first and (is_batch or is_grouped) else y

    changes: list[tuple[str, dict[str, Any]]] = []
    if gamma is not None:
        changes.append(("gamma is missing", {"gamma": 1.0}))
        changes.append(("gamma is 1 too large: it is added to 1", {"gamma": 1 + gamma}))
        changes.append(("gamma and beta are missing", {"gamma": 1.0, "beta": 0.0}))
        changes += [("gamma and beta are swapped", {"gamma": beta, "beta": gamma})] * (beta is not None)
    changes += [("beta is missing", {"beta": 0.0})] * (beta is not None)
    if is_frozen:
        told = "the moments of the batch in place of the running ones: training mode"
        changes += [(told, {"is_frozen": False, "ddof": ddof}) for ddof in (0, 1)]
    elif is_batch and running[0] is not None:
        changes.append(("the running moments in place of those of the batch: evaluation mode", {"is_frozen": True}))
    changes += [(f"epsilon {e:g} where the reference has {epsilon:g}", {"eps": e}) for e in _EPSILONS if e != epsilon]
    changes.append(("epsilon is added outside of the square root", {"is_outside": True}))
    changes.append(("the variance is unbiased, divided by n - 1", {"ddof": 1}))
    if is_rms:
        changes.append(("the mean is subtracted", {"subtracts_mean": True, "divides_by_rms": False}))
    else:
        told = "root mean square in place of the standard deviation: the mean is not subtracted"
        changes.append(("the mean is not subtracted", {"subtracts_mean": False}))
        changes.append((told, {"subtracts_mean": False, "divides_by_rms": True}))
    sets = (axes for n in range(1, x.ndim + 1) for axes in itertools.combinations(range(x.ndim), n))
    told = f"normalised over other axes of {x.shape} than {[*own_axes]}, {{}}"
    changes += [(told.format([*axes]), {"axes": axes}) for axes in sets if axes != own_axes]
    return compute, changes


def _dropout(record: Record) -> _Layer:
    x, p = _wide(record.inputs[0]), float(record.options["p"])
    told = f"scaled by 1/(1 - p), {1 / (1 - p):g}, in evaluation mode"
    return lambda a=1.0: a * x, [(told, {"a": 1 / (1 - p)}), ("scaled by 1 - p", {"a": 1 - p})]


_SUSPECTS: dict[str, Callable[[Record], _Layer]] = {
    **dict.fromkeys(("Linear", "NonDynamically", "Dense", "Conv1D"), _dense),  # Conv1D of transformers
    **dict.fromkeys(("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm"), _norm),
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
    own = [] if momentum is None else [momentum, 1 - momentum] if momentum else [momentum]
    for m, ddof in itertools.product((*own, 0.1, 0.01, 0.001, 0.99, 0.9, 1.0), (1, 0)):
        batch = x.mean(axes) if is_mean else x.var(axes, ddof=ddof if count > 1 else 0)
        if _is_like((1 - m) * before + m * batch, computed, 1e-5):
            said = []
            if momentum is not None and not math.isclose(m, momentum):
                said.append(f"momentum {m:g} where the reference has {momentum:g}")
            if not is_mean and ddof == 0:
                said.append("the variance is biased, divided by n where the reference divides by n - 1")
            return " and ".join(said) or None
    return None
