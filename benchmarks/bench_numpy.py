# ruff: noqa: B008, E731, PLW0108
"""Measure the NumPy backend against NumPy, HIPS autograd and gradients by hand, with calls and memory.

    OPENBLAS_NUM_THREADS=1 python benchmarks/bench_numpy.py --write docs/performance.md

It needs autograd (`pip install autograd`). A time is that of the processor, of one thread. A row of calls counts the
calls of Python and of C functions that `sys.setprofile` sees, and a row of memory the peak of `tracemalloc`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import itertools
import statistics
import sys
import time
import tracemalloc
import types
from collections.abc import Callable
from typing import Any

import harness
import scipy.linalg
from harness import Bench, conditions, markdown, run

SMALL, LARGE = 8, 1_000_000


def measure(bench: Bench) -> None:
    if bench.backend != "numpy":
        return
    multiop = bench.load()
    bench.versions["autograd"] = importlib.metadata.version("autograd")
    harness.clock = time.thread_time
    ops_on_arrays(bench, multiop)
    gradients(bench, multiop)


def ops_on_arrays(bench: Bench, multiop: Any) -> None:
    """Compare ops with NumPy's functions, on few numbers and on many."""
    import numpy as np

    for n, limit in ((SMALL, 2.5), (LARGE, 1.05)):
        rng = np.random.default_rng(0)
        for dtype in ("float32", "float64"):
            x, y = (rng.uniform(0.5, 1.5, n).astype(dtype) for _ in range(2))
            side = int(n**0.5) if n == LARGE else 4
            m, k = x[: side * side] if n == LARGE else rng.uniform(0.5, 1.5, 16).astype(dtype), rng.permutation(n)
            m = m.reshape(side, side) + (0 if n == LARGE else np.eye(side, dtype=dtype))
            row = functools_of(multiop, np, x, y, m, k)
            if dtype == "float32" and n == SMALL:
                row = {name: calls for name, calls in row.items() if name in ("add", "exp", "sum", "matmul")}
            for name, (native, ours) in row.items():
                if n == LARGE and name in (
                    "inv",
                    "cholesky",
                    "solve",
                    "solve_triangular",
                    "matmul",
                    "sort",
                    "argsort",
                    "take",
                    "median",
                ):
                    continue
                contenders = {"native": native, "multiop": ours}
                found = bench.compare(f"{name} of {n} {dtype}", contenders, limit)
                if n == SMALL:
                    found["calls"] = {"multiop": calls(ours), "native": calls(native)}


def functools_of(multiop: Any, np: Any, x: Any, y: Any, m: Any, k: Any) -> dict[str, tuple[Any, Any]]:
    """Return calls of NumPy's functions, and of the ops of these names."""
    rows, z = {}, x + 1
    unary = (
        "negative abs square sqrt exp expm1 log log1p log2 sin cos tan tanh arctan sinh cosh arcsinh sign floor round "
        "reciprocal sum prod mean var std max min argmax argmin cumsum all any sort argsort ravel transpose isnan "
        "isinf isfinite median logical_not flip exp2 log10 ceil trunc arccosh cbrt "
        "zeros_like ones_like"
    )
    for name in unary.split():
        rows[name] = (
            (lambda f=getattr(np, name): f(z if "arccosh" in f.__name__ else x)),
            (lambda f=getattr(multiop, f"op_{name}"): f(z if "arccosh" in f.__name__ else x)),
        )
    for name in [
        "add",
        "subtract",
        "multiply",
        "divide",
        "power",
        "maximum",
        "minimum",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "arctan2",
        "hypot",
        "logaddexp",
    ]:
        native, ours = getattr(np, name), getattr(multiop, f"op_{name}")
        rows[name] = (lambda f=native: f(x, y)), (lambda f=ours: f(x, y))
    for name in ["arcsin", "arccos", "arctanh"]:
        rows[name] = (
            (lambda f=getattr(np, name): f(y - 0.5 - 0.001)),
            (lambda f=getattr(multiop, f"op_{name}"): f(y - 0.5 - 0.001)),
        )
    for name in ["ravel", "transpose", "flip"]:  # an op's result is an array of its own
        rows[name] = (lambda f=getattr(np, name): f(x).copy()), rows[name][1]
    rows["rsqrt"] = (lambda: 1 / np.sqrt(x)), (lambda: multiop.op_rsqrt(x))
    rows["relu"] = (lambda: np.maximum(x, 0)), (lambda: multiop.op_relu(x))
    rows["sigmoid"] = (lambda: 1 / (1 + np.exp(-x))), (lambda: multiop.op_sigmoid(x))
    rows["softplus"] = (lambda: np.logaddexp(x, 0)), (lambda: multiop.op_softplus(x))
    rows["add a number to"] = (lambda: np.add(x, 2.0)), (lambda: multiop.op_add(x, 2.0))
    rows["where"] = (lambda c=x > y: np.where(c, x, y)), (lambda c=x > y: multiop.op_where(c, x, y))
    rows["clip"] = (lambda: np.clip(x, 0.6, 1.2)), (lambda: multiop.op_clip(x, 0.6, 1.2))
    rows["take"] = (lambda: np.take(x, k)), (lambda: multiop.op_take(x, k))
    part = slice(2, -2)  # made once, for both
    rows["get_item"] = (lambda: x[part].copy()), (lambda: multiop.op_get_item(x, part))
    rows["reshape"] = (lambda: np.reshape(x, (2, -1)).copy()), (lambda: multiop.op_reshape(x, (2, -1)))
    rows["broadcast_to"] = (
        lambda: np.broadcast_to(x, (2, x.size)).copy(),
        lambda: multiop.op_broadcast_to(x, (2, x.size)),
    )
    rows["expand_dims"] = (lambda: np.expand_dims(x, 0).copy()), (lambda: multiop.op_expand_dims(x, 0))
    rows["concatenate"] = (lambda: np.concatenate([x, y], 0)), (lambda: multiop.op_concatenate([x, y], 0))
    rows["stack"] = (lambda: np.stack([x, y], 0)), (lambda: multiop.op_stack([x, y], 0))
    for name in ("matmul", "dot", "inner", "outer"):
        a, b = (m, m) if name == "matmul" else (x[:1000], y[:1000]) if name == "outer" else (x, y)
        rows[name] = (
            (lambda f=getattr(np, name), a=a, b=b: f(a, b)),
            (lambda f=getattr(multiop, f"op_{name}"), a=a, b=b: f(a, b)),
        )
    rows["norm"] = (lambda: np.linalg.norm(m)), (lambda: multiop.op_norm(m))
    rows["conj"] = (lambda: np.conj(x)), (lambda: multiop.op_conj(x))
    rows["tensordot"] = (lambda: np.tensordot(m, m, 1)), (lambda: multiop.op_tensordot(m, m, 1))
    rows["einsum"] = (
        lambda: np.einsum("ij,j->i", m, m[0], optimize=m.size > 5000),
        lambda: multiop.op_einsum("ij,j->i", m, m[0]),
    )
    c = m.astype("complex64")
    for name in ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "irfftn"):
        rows[name] = (lambda f=getattr(np.fft, name): f(c)), (lambda f=getattr(multiop, f"op_{name}"): f(c))
    rows["rfftn"] = (lambda: np.fft.rfftn(m)), (lambda: multiop.array_api.fft.rfftn(m))
    for name in ("real", "imag"):  # an op's result is an array of its own
        rows[name] = (lambda f=getattr(np, name): f(c).copy()), (lambda f=getattr(multiop, f"op_{name}"): f(c))
    rows["is_tensor"] = (lambda: isinstance(m, np.ndarray)), (lambda: multiop.op_is_tensor(m))
    rows["cast"] = (lambda: m.astype("float64")), (lambda: multiop.op_cast(m, "float64"))
    rows["view_as_real"] = (lambda: c[..., None].view("float32")), (lambda: multiop.op_view_as_real(c))
    rows["view_as_complex"] = (
        (lambda: m[:, :2].copy().view(np.result_type(m, np.complex64))[..., 0]),
        (lambda: multiop.op_view_as_complex(m[:, :2].copy())),
    )
    rows["sum along an axis of"] = (lambda: np.sum(m, 1)), (lambda: multiop.op_sum(m, 1))
    rows["inv"] = (lambda: np.linalg.inv(m)), (lambda: multiop.op_inv(m))
    rows["solve"] = (lambda: np.linalg.solve(m, m)), (lambda: multiop.op_solve(m, m))
    spd = m @ m.T if m.shape[0] < 100 else m
    rows["cholesky"] = (lambda: np.linalg.cholesky(spd)), (lambda: multiop.op_cholesky(spd))
    rows["solve_triangular"] = (
        lambda: scipy.linalg.solve_triangular(spd, spd, lower=True),
        lambda: multiop.op_solve_triangular(spd, spd, True),
    )
    rows["diagonal"] = (lambda: np.diagonal(m).copy()), (lambda: multiop.op_diagonal(m))
    return rows


def gradients(bench: Bench, multiop: Any) -> None:
    """Compare derivatives with those of autograd, and some with those written by hand."""
    for name, native, ours, limit, by_hand in programs(multiop):
        contenders = {"native: autograd": native, "multiop": ours}
        if by_hand:
            contenders["by hand"] = by_hand
        found = bench.compare(name, contenders, limit, 1e-6)
        found["calls"] = {"multiop": calls(ours), "autograd": calls(native)}
        found["peak"] = {"multiop": peak(ours), "autograd": peak(native)}
        for what, unit in (("calls", ""), ("peak", "MB")):
            pair = found[what]
            mine, theirs = (sum(pair[w]) if what == "calls" else pair[w] for w in ("multiop", "autograd"))
            if what == "calls":
                mine, theirs = pair["multiop"][0], pair["autograd"][0]
                if limit == 1.0:
                    bench.note(f"Python calls of {name} (autograd: {theirs})", mine, theirs, unit)
            elif limit == 0.8:
                bench.note(f"peak of {name} (autograd: {theirs:.1f} MB)", mine, theirs, unit)


def programs(multiop: Any) -> list[tuple[str, Any, Any, float, Any]]:
    """Return each derivative: its name, autograd's call, ours, the target, and the call by hand, if there is one."""
    import autograd
    import autograd.numpy as anp
    import numpy as np

    rng, eye = np.random.default_rng(0), np.eye(100)
    rows: list[tuple[str, Any, Any, float, Any]] = []

    class Ours:
        """The ops under NumPy's names."""

        exp, log, sin, cos, tanh, sqrt = (
            getattr(multiop, f"op_{f}") for f in ["exp", "log", "sin", "cos", "tanh", "sqrt"]
        )
        sum, mean, max, where, dot = (getattr(multiop, f"op_{f}") for f in ["sum", "mean", "max", "where", "dot"])
        log1p, maximum, logaddexp = multiop.op_log1p, multiop.op_maximum, multiop.op_logaddexp
        abs, einsum, diag = multiop.op_abs, multiop.op_einsum, multiop.op_diag
        fft = types.SimpleNamespace(fft=multiop.op_fft)
        linalg = types.SimpleNamespace(inv=multiop.op_inv, solve=multiop.op_solve, cholesky=multiop.op_cholesky)

    def both(name: str, make: Callable[[Any], Any], args: Any, of: str, limit: float, by_hand: Any = None) -> None:
        theirs = {
            "value_and_grad": autograd.value_and_grad,
            "hessian": autograd.hessian,
            "jacobian": autograd.jacobian,
            "jacfwd": autograd.jacobian,
            "hvp": autograd.hessian_vector_product,
            "grad of grad": lambda f: autograd.grad(lambda x: anp.sum(autograd.grad(f)(x))),
        }
        mine = {
            "value_and_grad": multiop.value_and_grad,
            "hessian": multiop.hessian,
            "jacobian": multiop.jacrev,
            "jacfwd": multiop.jacfwd,
            "hvp": lambda f: lambda x, v: multiop.hvp(f, (x,), (v,)),
            "grad of grad": lambda f: multiop.grad(lambda x: multiop.op_sum(multiop.grad(f)(x))),
        }
        native, ours = theirs[of](make(anp)), mine[of](make(Ours))
        rows.append((name, lambda: native(*args), lambda: ours(*args), limit, by_hand))

    def of_exp(np: Any) -> Any:
        return lambda x: np.sum(np.exp(x) * x)

    x = rng.normal(size=SMALL)
    by_hand = lambda: (np.sum(np.exp(x) * x), np.exp(x) * (1 + x))
    both("value_and_grad of sum(exp(x) x), 8 numbers", of_exp, (x,), "value_and_grad", 1.0, by_hand)
    both("hessian of sum(exp(x) x), 8 numbers", of_exp, (x,), "hessian", 1.0)

    t = np.linspace(0.0, 1.0, 50)
    measured = 2 * np.exp(-t) + 0.1 * rng.normal(size=50)

    def fit(np: Any) -> Any:
        def loss(p: Any) -> Any:
            y = p[0] * np.exp(-p[1] * t) + p[2]
            return np.mean((y - measured) ** 2)

        return loss

    both("a fit, n = 50: value and gradient", fit, (np.array([1.0, 0.5, 0.1]),), "value_and_grad", 1.0)

    def logistic(n: int, d: int, is_fixed: bool = False) -> Any:
        data, labels = rng.normal(size=(n, d)), (rng.uniform(size=n) > 0.5) * 2.0 - 1.0
        data.setflags(write=not is_fixed)

        def make(np: Any) -> Any:
            return lambda w: np.mean(np.logaddexp(0.0, -labels * (data @ w)))

        return make, (0.1 * rng.normal(size=d),)

    for n, d, limit in ((1000, 20, 1.0), (20_000, 50, 0.8)):
        make, args = logistic(n, d)
        both(f"logistic regression {n} x {d}", make, args, "value_and_grad", limit)
    make, args = logistic(20_000, 50, True)
    both("logistic regression 20000 x 50, data that cannot be written", make, args, "value_and_grad", 0.8)

    def network(*sizes: int) -> Any:
        shapes = list(itertools.pairwise(sizes))
        ends = np.cumsum([0] + [m * n + n for m, n in shapes])

        def make(np: Any) -> Any:
            def layers(p: Any, x: Any) -> Any:
                for (m, n), start, end in zip(shapes, ends[:-1], ends[1:], strict=True):
                    w, b = p[start : start + m * n].reshape((m, n)) if np is anp else None, p[start + m * n : end]
                    w = w if np is anp else multiop.op_reshape(p[start : start + m * n], (m, n))
                    x = x @ w + b
                    x = np.tanh(x) if n != sizes[-1] else x
                return x

            return layers

        return make, 0.1 * rng.normal(size=ends[-1])

    def regression(sizes: tuple[int, ...], batch: int) -> Any:
        make, p = network(*sizes)
        inputs, targets = rng.normal(size=(batch, sizes[0])), rng.normal(size=(batch, sizes[-1]))

        def loss(np: Any) -> Any:
            layers = make(np)
            return lambda p: np.mean((layers(p, inputs) - targets) ** 2)

        return loss, p

    loss, p = regression((64, 256, 256, 1), 128)
    both("MLP 64-256-256-1, batch 128", loss, (p,), "value_and_grad", 0.8)
    both("MLP 64-256-256-1, batch 128: hvp", loss, (p, rng.normal(size=p.size)), "hvp", 0.8)
    loss, p = regression((4, 8, 8, 1), 16)
    both("MLP 4-8-8-1, batch 16", loss, (p,), "value_and_grad", 1.0)
    both("MLP 4-8-8-1, batch 16: hvp", loss, (p, rng.normal(size=p.size)), "hvp", 1.0)

    def loop(np: Any) -> Any:
        def end(x: Any) -> Any:
            y = x
            for _ in range(1000):
                y = y + 0.001 * np.sin(y)
            return np.sum(y)

        return end

    both("a loop of 1,000 steps", loop, (x,), "value_and_grad", 1.0)

    def oscillator(np: Any) -> Any:
        def end(x: Any) -> Any:
            q, v = x[0], x[1]
            for _ in range(1000):
                v = v - 0.01 * (x[2] * q + 0.1 * v)
                q = q + 0.01 * v
            return q * q

        return end

    both("an ODE of 1,000 steps", oscillator, (np.array([1.0, 0.0, 2.0]),), "value_and_grad", 1.0)

    def chain(np: Any) -> Any:
        return lambda x: np.sum(np.tanh(np.sin(x) * np.exp(-x * x)) + x)

    for n in (10_000, LARGE):
        both(f"an elementwise chain, {n} numbers", chain, (rng.normal(size=n),), "value_and_grad", 0.8)

    matrix = rng.normal(size=(10, 10))
    for of in ("jacobian", "jacfwd"):
        both(f"{of} 10 x 10", lambda np: lambda x: np.tanh(matrix @ x) * x, (rng.normal(size=10),), of, 1.0)
    for n in (10, 100):
        a = rng.normal(size=(n, n))
        make = lambda np, a=a: lambda x: np.sum(np.sin(a @ x)) + np.sum(x * x)
        both(f"hessian of {n}", make, (rng.normal(size=n),), "hessian", 1.0)
    both("hvp, 8 numbers", of_exp, (x, x), "hvp", 1.0)
    both("grad of grad, 8 numbers", of_exp, (x,), "grad of grad", 1.0)

    theirs, mine = autograd.grad(of_exp(anp)), multiop.vmap(multiop.grad(of_exp(Ours)))
    batch = rng.normal(size=(64, SMALL))
    rows.append(
        ("vmap of grad over 64 rows", lambda: np.stack([theirs(row) for row in batch]), lambda: mine(batch), 1.0, None)
    )

    images, labels = rng.normal(size=(64, 20)), np.eye(10)[rng.integers(0, 10, 64)]

    def classifier(np: Any) -> Any:
        def loss(w: Any) -> Any:
            logits = images @ w
            shifted = logits - np.max(logits, axis=1, keepdims=True)
            return -np.mean(np.sum(labels * (shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))), axis=1))

        return loss

    both("a classifier, 20 x 10, batch 64", classifier, (0.1 * rng.normal(size=(20, 10)),), "value_and_grad", 1.0)

    m = rng.normal(size=(8, 8)) + 8 * np.eye(8)
    both(
        "einsum of i,ij,j, 8 numbers", lambda np: lambda x: np.einsum("i,ij,j->", x, m, x), (x,), "value_and_grad", 1.0
    )
    both("inverse of 8 x 8", lambda np: lambda m: np.sum(np.linalg.inv(m)), (m,), "value_and_grad", 1.0)
    for n in (8, 65_536):
        make = lambda np: lambda x: np.sum(np.abs(np.fft.fft(x + 0j)) ** 2)
        both(f"power of {n} frequencies", make, (rng.normal(size=n),), "value_and_grad", 1.0 if n == 8 else 0.8)
    for n in (10, 100):
        points, heights = rng.normal(size=(n, 2)), rng.normal(size=n)
        distances = np.sum((points[:, None] - points) ** 2, -1)

        def process(np: Any, n: int = n, distances: Any = distances, heights: Any = heights) -> Any:
            def loss(p: Any) -> Any:
                factor = np.linalg.cholesky(np.exp(p[0] - distances * np.exp(p[1])) + np.exp(p[2]) * eye[:n, :n])
                white = np.linalg.solve(factor, heights)
                return np.dot(white, white) / 2 + np.sum(np.log(np.diag(factor)))

            return loss

        both(f"a Gaussian process of {n}", process, (np.array([0.1, 0.0, -1.0]),), "value_and_grad", 1.0)

    custom = autograd.extend.primitive(lambda x: np.log1p(np.exp(x)))
    autograd.extend.defvjp(custom, lambda y, x: lambda u: u / (1 + np.exp(-x)))
    ours = multiop.op_custom_gradient(lambda x: (np.log1p(np.exp(x)), lambda u: u / (1 + np.exp(-x))))
    with_rule = autograd.grad(lambda x: anp.sum(custom(x))), multiop.grad(lambda x: multiop.op_sum(ours(x)))
    rows.append(("a custom gradient, 8 numbers", lambda: with_rule[0](x), lambda: with_rule[1](x), 1.0, None))
    return rows


def calls(call: Callable[[], Any]) -> tuple[int, int]:
    """Return how many Python and C functions a call runs, once it is warm."""
    call()
    call()
    counts = {"call": -1, "c_call": -1}  # the call itself, and the end of the count

    def count(frame: Any, event: str, argument: Any) -> None:
        if event in counts:
            counts[event] += 1

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return counts["call"], counts["c_call"]


def peak(call: Callable[[], Any]) -> float:
    """Return the most memory that a call holds, in MB."""
    call()
    tracemalloc.start()
    try:
        call()
        return round(tracemalloc.get_traced_memory()[1] / 1e6, 3)
    finally:
        tracemalloc.stop()


def tables(kept: dict[str, Any]) -> dict[str, str]:
    """Return what an op takes beside NumPy's call, and a line for each derivative beside autograd's."""
    rows = [row for result in kept["results"] for row in result["rows"] if "ratio" in row]
    said = []
    for n in (SMALL, LARGE):
        found = [row["ratio"]["multiop"][1] for row in rows if row["name"].endswith(f" of {n} float64")]
        median = statistics.median(found)
        said.append(f"on {n:,} numbers of `float64` the median of {len(found)} ops takes {median:.2f}")
    lines = [
        [
            row["name"],
            f"{row['ratio']['multiop'][1]:.2f}",
            ", ".join(f"{row['calls'][who][0]:,}" for who in ("multiop", "autograd")),
            ", ".join(f"{row['peak'][who]:.2g}" for who in ("multiop", "autograd")),
        ]
        for row in rows
        if "peak" in row
    ]
    heads = ("", "time: multiop ÷ autograd", "Python calls: multiop, autograd", "peak memory, MB: multiop, autograd")
    text = f"Of the time of NumPy's own call, {said[0]}, {said[1]}. Beside autograd:\n\n{conditions(kept)}"
    return {"numpy": f"\n{text}\n\n{markdown(heads, lines)}\n"}


if __name__ == "__main__":
    importlib.import_module("harness")
    run(["numpy"], __doc__, rounds=31)
