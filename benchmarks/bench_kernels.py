"""Measure each kernel against the op that it stands for, at a size at which people call it.

    python benchmarks/bench_kernels.py --backends torch
    python benchmarks/bench_kernels.py --only op_mean,op_std

What is called native here is the op as `ops/` says it, as with `MULTIOP_KERNELS=0`. A kernel stays if one of its rows
is faster by 10 %, or holds 10 % less memory at its peak.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bench_autodiff import NATIVE
from bench_training import peak
from harness import Bench, run

import multiop
from multiop._loading import kernels, registry

LIMIT = 0.9
MANY = (1024, 1024)
IMAGES = (16, 64, 64, 16)

# op -> the shapes of its tensors, and how it is called; tensors hold normal numbers, in half of the range of float16
CALLS: dict[str, tuple[list[tuple[int, ...]], Callable[..., Any]]] = {
    "op_abs": ([(512, 1024, 2)], lambda op, x: op(multiop.op_view_as_complex(x))),
    "op_allclose": ([MANY, MANY], lambda op, x, y: op(x, y)),
    "op_angle": ([(512, 1024, 2)], lambda op, x: op(multiop.op_view_as_complex(x))),
    "op_arange": ([], lambda op: op(1024)),
    "op_arccosh": ([MANY], lambda op, x: op(x * x + 1)),
    "op_arcsinh": ([MANY], lambda op, x: op(x)),
    "op_arctan2": ([MANY, MANY], lambda op, x, y: op(x, y)),
    "op_batch_normalization": (
        [IMAGES, (16,), (16,), (16,), (16,)],
        lambda op, x, mean, variance, offset, scale: op(x, mean, variance * variance + 0.5, -1, offset, scale),
    ),
    "op_batch_normalization_with_moments": (
        [IMAGES, (16,), (16,)],
        lambda op, x, offset, scale: op(x, -1, offset, scale)[0],
    ),
    "op_categorical_crossentropy": ([MANY, MANY], lambda op, x, y: op(y.softmax(-1).detach(), x, from_logits=True)),
    "op_cdist": ([(512, 64), (512, 64)], lambda op, x, y: op(x, y)),
    "op_count_nonzero": ([MANY], lambda op, x: op(x, -1)),
    "op_cross": ([(100_000, 3), (100_000, 3)], lambda op, x, y: op(x, y)),
    "op_det": ([(256, 16, 16)], lambda op, x: op(x)),
    "op_diag": ([(1024,)], lambda op, x: op(x)),
    "op_digamma": ([MANY], lambda op, x: op(x)),
    "op_digitize": ([MANY, (1024,)], lambda op, x, y: op(x, counted(y))),
    "op_dot_product_attention": (
        [(2, 1024, 4, 64)] * 3,
        lambda op, query, key, value: op(query, key, value),
    ),
    "op_erf": ([(1024,)], lambda op, x: op(x)),
    "op_erfinv": ([MANY], lambda op, x: op(x / (x * x + 1))),
    "op_expm": ([(256, 16, 16)], lambda op, x: op(x)),
    "op_expm1": ([MANY], lambda op, x: op(x)),
    "op_eye": ([], lambda op: op(32)),
    "op_fft": ([(64, 2)], lambda op, x: op(multiop.op_view_as_complex(x))),
    "op_fft2": ([(16, 16, 2)], lambda op, x: op(multiop.op_view_as_complex(x))),
    "op_fmax": ([MANY, MANY], lambda op, x, y: op(x, y)),
    "op_fmin": ([MANY, MANY], lambda op, x, y: op(x, y)),
    "op_fmod": ([MANY, MANY], lambda op, x, y: op(x, y)),
    "op_gammainc": ([MANY, MANY], lambda op, a, x: op(a * a, x * x)),
    "op_gammaincc": ([MANY, MANY], lambda op, a, x: op(a * a, x * x)),
    "op_gelu": ([MANY], lambda op, x: op(x)),
    "op_group_normalization": ([IMAGES, (16,), (16,)], lambda op, x, gamma, beta: op(x, 4, gamma, beta)),
    "op_hard_sigmoid": ([MANY], lambda op, x: op(x)),
    "op_heaviside": ([(1024,), (1024,)], lambda op, x, y: op(x, y)),
    "op_hypot": ([MANY, MANY], lambda op, x, y: op(x, y)),
    "op_i0": ([MANY], lambda op, x: op(x)),
    "op_ifft": ([(64, 2)], lambda op, x: op(multiop.op_view_as_complex(x))),
    "op_ifft2": ([(16, 16, 2)], lambda op, x: op(multiop.op_view_as_complex(x))),
    "op_image_resize": ([(4, 128, 128, 3)], lambda op, x: op(x, (256, 256))),
    "op_isin": ([MANY, (1024,)], lambda op, x, y: op(x, y)),
    "op_layer_normalization": ([MANY, (1024,), (1024,)], lambda op, x, gamma, beta: op(x, gamma, beta)),
    "op_ldexp": ([(32, 64)], lambda op, x: op(x, labels(x, 8))),
    "op_left_shift": ([MANY], lambda op, x: op(labels(x, 64), labels(x, 32))),
    "op_lgamma": ([MANY], lambda op, x: op(x)),
    "op_logaddexp": ([MANY, MANY], lambda op, x, y: op(x, y)),
    "op_logaddexp2": ([MANY, MANY], lambda op, x, y: op(x, y)),
    "op_logsumexp": ([MANY], lambda op, x: op(x, -1)),
    "op_mean": ([MANY], lambda op, x: op(x, -1)),
    "op_mod": ([MANY, MANY], lambda op, x, y: op(x, y)),
    "op_nanmean": ([MANY], lambda op, x: op(x, -1)),
    "op_nansum": ([MANY], lambda op, x: op(x, -1)),
    "op_norm": ([MANY], lambda op, x: op(x, axis=-1)),
    "op_normalize": ([MANY], lambda op, x: op(x, -1)),
    "op_one_hot": ([MANY], lambda op, x: op(labels(x, 64), 64)),
    "op_pad": ([MANY], lambda op, x: op(x, 2, "reflect")),
    "op_polygamma": ([MANY], lambda op, x: op(1, x * x + 0.1)),
    "op_power": ([MANY, MANY], lambda op, x, y: op(x * x, y)),
    "op_quantile": ([MANY], lambda op, x: op(x, 0.3, -1)),
    "op_ravel": ([MANY], lambda op, x: op(x)),
    "op_right_shift": ([MANY], lambda op, x: op(labels(x, 64), labels(x, 32))),
    "op_searchsorted": ([(1024,), MANY], lambda op, x, y: op(counted(x), y)),
    "op_segment_sum": ([(65536, 8), (1024, 64)], lambda op, x, y: op(x, rows_of(y), 64)),
    "op_sign": ([MANY], lambda op, x: op(x)),
    "op_sinc": ([MANY], lambda op, x: op(x)),
    "op_slogdet": ([(256, 16, 16)], lambda op, x: op(x)[1]),
    "op_std": ([MANY], lambda op, x: op(x, -1)),
    "op_top_k": ([(64, 32_000)], lambda op, x: op(x, 8)[0]),
    "op_trace": ([MANY], lambda op, x: op(x)),
    "op_trapezoid": ([MANY], lambda op, x: op(x)),
    "op_tril": ([MANY], lambda op, x: op(x)),
    "op_triu": ([MANY], lambda op, x: op(x)),
    "op_unique": ([MANY], lambda op, x: op(labels(x, 64) * 1.0)),
    "op_var": ([MANY], lambda op, x: op(x, -1)),
    "op_view_as_complex": ([(4, 128, 128, 2)], lambda op, x: op(x)),
    "op_view_as_real": ([(4, 128, 128, 2)], lambda op, x: op(multiop.op_view_as_complex(x))),
    "op_xlog1py": ([(1024,), (1024,)], lambda op, x, y: op(x, y * y)),
    "op_xlogy": ([(1024,), (1024,)], lambda op, x, y: op(x, y * y)),
}
FLAT = {
    "op_allclose",
    "op_arange",
    "op_count_nonzero",
    "op_eye",
    "op_digitize",
    "op_isin",
    "op_left_shift",
    "op_one_hot",
    "op_right_shift",
    "op_searchsorted",
    "op_sign",
    "op_unique",
}  # their results have no gradient
SHORT = {"op_erf": "float64", "op_gelu": "float16"}  # the dtype that a kernel is for, where that is not float32
TOLERANCE = {"op_gelu": 1e-2, "op_det": 1e-3}
_KEPT: dict[Any, Any] = {}


def labels(x: Any, n: int) -> Any:
    """Return integers below `n`, as many as `x` has entries, the same at each call."""
    import multiop

    if (kept := ("labels", n)) not in _KEPT:
        _KEPT[kept] = multiop.op_mod(multiop.op_cast(multiop.op_abs(x[:, :64] * 1000), "int32"), n)
    return _KEPT[kept]


def rows_of(x: Any) -> Any:
    """Return a vector of integers below 64, one for each entry of 64 columns, the same at each call."""
    import multiop

    if "rows" not in _KEPT:
        _KEPT["rows"] = multiop.op_reshape(labels(x, 64), (-1,))
    return _KEPT["rows"]


def counted(x: Any) -> Any:
    """Return as many sorted numbers as `x` has, on its device, the same at each call."""
    import multiop

    if "counted" not in _KEPT:
        _KEPT["counted"] = multiop.op_sort(x)
    return _KEPT["counted"]


def formed(backend: Any, name: str, form: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` of the op `name`, computed by a form of it: its kernel or its meaning."""
    import multiop

    op = getattr(multiop, name)

    def called(*xs: Any) -> Any:
        setattr(backend, name, form)  # a few nanoseconds
        return call(op, *xs)

    return called


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    multiop = bench.load()
    backend = registry.load(bench.backend)
    native = NATIVE[bench.backend]()
    for name in kernels.names(backend):
        if bench.only and name not in bench.only:
            continue
        kernel = getattr(backend.kernels, name)
        forms = {"native": kernel.__kwdefaults__["otherwise"], "multiop": kernel}
        shapes, call = CALLS[name]
        xs = [multiop.op_cast(bench.tensor(*s, seed=k), SHORT.get(name, "float32")) for k, s in enumerate(shapes)]
        functions = {who: formed(backend, name, form, call) for who, form in forms.items()}
        ahead = {who: partial(function, *xs) for who, function in functions.items()}
        rows = {"forward": ahead}
        if name not in FLAT:
            y = ahead["native"]()  # an upstream of ones has no gradient under a normalization
            upstream = multiop.op_cast(bench.tensor(*y.shape, seed=9), SHORT.get(name, "float32"))
            turned = {who: native.both_ways(function) for who, function in functions.items()}
            rows["both ways"] = {who: partial(f, upstream, *xs) for who, f in turned.items()}
        for way, contenders in rows.items():
            title = f"{name}, {way}"
            bench.compare(title, contenders, LIMIT, TOLERANCE.get(name, 1e-4))
            if bench.backend == "torch":
                held = {who: peak(contender) for who, contender in contenders.items()}
                bench.note(f"{title}, peak memory", held["multiop"] / held["native"], LIMIT, "x", bytes=held)


if __name__ == "__main__":
    run(["kernels"], __doc__)
