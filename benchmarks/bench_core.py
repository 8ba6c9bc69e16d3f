"""Measure multiop against hand-written native code and keras.ops: dispatch, single ops, a custom gradient both ways.

    python benchmarks/bench_core.py                      # every installed backend, one process each
    python benchmarks/bench_core.py --backends torch --json results.json

Contenders take turns inside one process (A B C, B C A, ...), so that what the machine does meanwhile hits all of them
alike. A time is the median over the rounds; a ratio is the median of each round's ratio to the native time, with its
quartiles. Nothing is asserted: a ratio is read, not tested.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import types
from collections.abc import Callable
from typing import Any

BATCH_SECONDS = 2e-3  # a timed batch of calls lasts about this long

Contenders = dict[str, Callable[[], Any]]


def interleave(contenders: Contenders, rounds: int) -> dict[str, Any]:
    """Time each contender in turn, `rounds` times; return medians in nanoseconds and ratios to the first."""
    counts = {name: calibrate(call) for name, call in contenders.items()}
    names, times = list(contenders), {name: [] for name in contenders}
    gc.disable()
    try:
        for round_ in range(rounds):
            shift = round_ % len(names)
            for name in names[shift:] + names[:shift]:
                times[name].append(batch(contenders[name], counts[name]) / counts[name] * 1e9)
            gc.collect()
    finally:
        gc.enable()
    native = times[names[0]]
    ratios = {name: sorted(t / n for t, n in zip(times[name], native, strict=True)) for name in names[1:]}
    return {
        "ns": {name: round(statistics.median(found), 1) for name, found in times.items()},
        "ratio": {name: [round(q, 3) for q in statistics.quantiles(found, n=4)] for name, found in ratios.items()},
    }


def batch(call: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


def calibrate(call: Callable[[], Any]) -> int:
    """Return how many calls fill a batch, once the call is warm."""
    for _ in range(5):
        call()
    count = 1
    while (took := batch(call, count)) < BATCH_SECONDS and count < 1_000_000:
        count = max(count + 1, min(count * 10, int(count * BATCH_SECONDS / max(took, 1e-9)) + 1))
    return count


# the hand-written forms


def torch_contenders() -> Any:
    import torch

    class Log1pExp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            e = torch.exp(x)
            ctx.save_for_backward(e)
            return torch.log(1 + e)

        @staticmethod
        def backward(ctx: Any, upstream: Any) -> Any:
            (e,) = ctx.saved_tensors
            return upstream * (1 - 1 / (1 + e))

    ops = {
        "add": torch.add, "exp": torch.exp, "maximum": torch.maximum, "matmul": torch.matmul,
        "sum": torch.sum, "softmax": lambda x: torch.softmax(x, -1), "reshape": lambda x: torch.reshape(x, (2, 4)),
    }  # fmt: skip

    def both_ways(f: Any) -> Any:
        def run(x: Any, upstream: Any) -> Any:
            x = x.detach().requires_grad_()
            return torch.autograd.grad(f(x), x, upstream)

        return run

    return types.SimpleNamespace(ops=ops, log1pexp=Log1pExp.apply, both_ways={"eager": both_ways}, wait=lambda y: y)


def jax_contenders() -> Any:
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def log1pexp(x: Any) -> Any:
        return jnp.log(1 + jnp.exp(x))

    def forward(x: Any) -> Any:
        e = jnp.exp(x)
        return jnp.log(1 + e), e

    log1pexp.defvjp(forward, lambda e, upstream: (upstream * (1 - 1 / (1 + e)),))
    ops = {
        "add": jnp.add, "exp": jnp.exp, "maximum": jnp.maximum, "matmul": jnp.matmul,
        "sum": jnp.sum, "softmax": jax.nn.softmax, "reshape": lambda x: jnp.reshape(x, (2, 4)),
    }  # fmt: skip

    def eager(f: Any) -> Any:
        return lambda x, upstream: jax.vjp(f, x)[1](upstream)

    def compiled(f: Any) -> Any:
        return jax.jit(eager(f))

    return types.SimpleNamespace(
        ops=ops, log1pexp=log1pexp, both_ways={"eager": eager, "jit": compiled}, wait=jax.block_until_ready
    )


def tensorflow_contenders() -> Any:
    import tensorflow as tf

    @tf.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = tf.exp(x)

        def grad(upstream: Any) -> Any:
            return upstream * (1 - 1 / (1 + e))

        return tf.math.log(1 + e), grad

    ops = {
        "add": tf.add, "exp": tf.exp, "maximum": tf.maximum, "matmul": tf.matmul,
        "sum": tf.reduce_sum, "softmax": tf.nn.softmax, "reshape": lambda x: tf.reshape(x, (2, 4)),
    }  # fmt: skip

    def eager(f: Any) -> Any:
        def run(x: Any, upstream: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            return tape.gradient(y, x, upstream)

        return run

    def compiled(f: Any) -> Any:
        return tf.function(eager(f))

    return types.SimpleNamespace(
        ops=ops, log1pexp=log1pexp, both_ways={"eager": eager, "tf.function": compiled}, wait=lambda y: y
    )


NATIVE = {"torch": torch_contenders, "jax": jax_contenders, "tensorflow": tensorflow_contenders}


def dispatch(multiop: Any, rounds: int) -> dict[str, Any]:
    """Time `multiop.op_add` over a backend that does nothing: what is left is the cost of dispatch."""
    from multiop import _registry

    stub = types.SimpleNamespace(op_add=lambda x1, x2: x1)
    before, overridden = _registry._backend, _registry._overridden
    _registry._backend, _registry._overridden = stub, False
    try:
        direct, frontend = stub.op_add, multiop.op_add
        found = interleave({"native": lambda: direct(1.0, 2.0), "multiop": lambda: frontend(1.0, 2.0)}, rounds)
    finally:
        _registry._backend, _registry._overridden = before, overridden
    return {"name": "dispatch alone", "extra_ns": round(found["ns"]["multiop"] - found["ns"]["native"], 1), **found}


def measure(backend: str, rounds: int) -> dict[str, Any]:
    """Measure one backend in this process."""
    os.environ.update(MULTIOP_BACKEND=backend, KERAS_BACKEND=backend, TF_CPP_MIN_LOG_LEVEL="3")
    native = NATIVE[backend]()
    import numpy as np

    import multiop

    try:
        import keras
    except ImportError:
        keras = None

    rng = np.random.default_rng(0)

    def tensor(*shape: int) -> Any:
        return multiop.op_convert_to_tensor(rng.normal(size=shape).astype("float32"))

    gc.collect()
    gc.freeze()  # the frameworks' own objects, which would take a second to look through between two rounds
    rows = [dispatch(multiop, rounds)]
    vectors, matrices = [tensor(8), tensor(8)], [tensor(8, 8), tensor(8, 8)]
    extra = {"reshape": ((2, 4),)}
    for name, native_op in native.ops.items():
        args = {"matmul": matrices}.get(name, vectors if name in ("add", "maximum") else vectors[:1])
        options = extra.get(name, ())
        contenders = {"native": calling(native_op, args, native.wait)}
        contenders["multiop"] = calling(getattr(multiop, f"op_{name}"), (*args, *options), native.wait)
        if keras is not None:
            contenders["keras.ops"] = calling(getattr(keras.ops, name), (*args, *options), native.wait)
        shape = "8x8" if name == "matmul" else "8"
        rows.append({"name": f"{name} [{shape}]", **interleave(contenders, rounds)})

    def ours(x: Any) -> Any:
        e = multiop.op_exp(x)

        def grad(upstream: Any) -> Any:
            return upstream * (1 - 1 / (1 + e))

        return multiop.op_log(1 + e), grad

    def theirs(x: Any) -> Any:
        e = keras.ops.exp(x)

        def grad(*args: Any, upstream: Any = None) -> Any:
            upstream = args[0] if upstream is None else upstream
            return keras.ops.multiply(upstream, 1 - 1 / (1 + e))

        return keras.ops.log(1 + e), grad

    functions = {"native": native.log1pexp, "multiop": multiop.op_custom_gradient(ours)}
    if keras is not None:
        functions["keras.ops"] = keras.ops.custom_gradient(theirs)
    for size in (8, 1_000_000):
        x, upstream = tensor(size), tensor(size)
        for mode, both_ways in native.both_ways.items():
            runs = {name: both_ways(f) for name, f in functions.items()}
            check_equal(multiop, {name: run(x, upstream) for name, run in runs.items()})
            contenders = {name: calling(run, (x, upstream), native.wait) for name, run in runs.items()}
            rows.append({"name": f"log1pexp both ways, {mode} [{size}]", **interleave(contenders, rounds)})
    versions = {backend: multiop._registry.load(backend).version, "keras": getattr(keras, "__version__", None)}
    return {"backend": backend, "versions": versions, "rows": rows}


def calling(f: Callable[..., Any], args: Any, wait: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: wait(f(*args))


def check_equal(multiop: Any, results: dict[str, Any]) -> None:
    """Refuse to time contenders that do not compute the same gradient."""
    import numpy as np

    found = {
        name: multiop.op_convert_to_numpy(g[0] if isinstance(g, (tuple, list)) else g) for name, g in results.items()
    }
    for name, gradient in found.items():
        np.testing.assert_allclose(gradient, found["native"], rtol=1e-5, atol=1e-6, err_msg=name)


def show(results: list[dict[str, Any]]) -> None:
    """Print one table per backend."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 140)
    for result in results:
        versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items() if version)
        table = Table(title=f"{result['backend']} ({versions})", title_justify="left")
        names = [name for name in ("native", "multiop", "keras.ops") if name in result["rows"][-1]["ns"]]
        for heading in ("", *names, *(f"{name} / native" for name in names[1:])):
            table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
        for row in result["rows"]:
            times = [microseconds(row["ns"].get(name)) for name in names]
            table.add_row(row["name"], *times, *(spread(row["ratio"].get(name)) for name in names[1:]))
        console.print(table)


def microseconds(ns: float | None) -> str:
    return "" if ns is None else f"{ns / 1000:,.2f} us"


def spread(quartiles: list[float] | None) -> str:
    return "" if quartiles is None else f"{quartiles[1]:.2f} ({quartiles[0]:.2f} to {quartiles[2]:.2f})"


def run_all(script: str, about: str | None, measure: Callable[[str, int], dict[str, Any]], rounds: int) -> None:
    """Run each backend in its own process, print the tables, and write the JSON where asked."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backends", default=None, help="comma-separated; default: all that are installed")
    parser.add_argument("--rounds", type=int, default=rounds, help="timed batches per contender")
    parser.add_argument("--json", default=None, metavar="PATH", help="write all results there")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print("\n" + json.dumps(measure(options.child, options.rounds)))
        return
    import multiop

    names = options.backends.split(",") if options.backends else multiop.available_backends()
    results = []
    for name in names:
        command = [sys.executable, script, "--child", name, "--rounds", str(options.rounds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        results.append(json.loads(done.stdout.strip().splitlines()[-1]))
    show(results)
    if options.json:
        machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine, "results": results}, file, indent=1)


if __name__ == "__main__":
    run_all(__file__, __doc__, measure, rounds=51)
