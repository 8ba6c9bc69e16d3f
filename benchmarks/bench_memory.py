"""Measure what memory grows by with each call, while shapes change and functions are new.

    python benchmarks/bench_memory.py --backends torch --calls 100000 --seconds 60

A row first meets all its shapes, then makes its calls; the bytes are those that the process has grown by over the
second half of them, by call. A few megabytes in all are the allocator's noise, so that few calls show little. Rows
named `new` make a function for each call. A row ends early when its seconds are up, and the table counts its calls.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

SHAPES = 60  # of eager code; compiled code takes `PROGRAMS`, for a compiler takes its time over each
PROGRAMS = 6


def resident() -> int:
    """Return the bytes that this process holds."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def live(backend: str) -> int:
    """Return how many tensors of the framework there are."""
    if backend == "jax":
        return len(sys.modules["jax"].live_arrays())
    tensor = sys.modules["multiop._loading.registry"].active().Tensor
    return sum(issubclass(type(x), tensor) for x in gc.get_objects())


def rows(multiop: Any) -> Iterator[tuple[str, int, Callable[[Any, int], Any]]]:
    """Return the name of each row, its shapes, and what it calls with a tensor and the number of the call."""

    @multiop.op_custom_gradient
    def halved(x: Any) -> Any:
        return x * 0.5, lambda upstream: upstream * 0.5 * x

    def f(x: Any) -> Any:
        return multiop.op_sum(multiop.op_sin(x) * x)

    def under_tape(fun: Callable[[Any], Any], x: Any) -> Any:
        with multiop.GradientTape() as tape:
            watched = tape.watch(x)
            y = fun(watched)
        return tape.gradient(y, watched)

    def new(k: int) -> Callable[[Any], Any]:
        return lambda x: multiop.op_sum(multiop.op_sin(x) * (x + k))

    def new_rule(k: int) -> Callable[[Any], Any]:
        return multiop.op_custom_gradient(lambda x: (multiop.op_sum(x * k), lambda upstream: upstream * k * x))

    compiled = multiop.jit(f)
    slope = multiop.grad(f)
    mapped = multiop.vmap(multiop.op_sin)
    yield "eager ops", SHAPES, lambda x, k: f(x)
    yield "custom gradient", SHAPES, lambda x, k: halved(x)
    yield "grad", SHAPES, lambda x, k: slope(x)
    yield "grad of a custom gradient", SHAPES, lambda x, k: multiop.grad(lambda x: multiop.op_sum(halved(x)))(x)
    yield "vmap", SHAPES, lambda x, k: mapped(x)
    yield "jvp", SHAPES, lambda x, k: multiop.jvp(f, (x,), (x,))
    yield "tape", SHAPES, lambda x, k: under_tape(f, x)
    yield "tape, custom gradient", SHAPES, lambda x, k: under_tape(lambda x: multiop.op_sum(halved(x)), x)
    yield "jit", PROGRAMS, lambda x, k: compiled(x)
    yield "grad of jit", PROGRAMS, lambda x, k: multiop.grad(compiled)(x)
    yield "grad, new", SHAPES, lambda x, k: multiop.grad(new(k))(x)
    yield "jvp, new", SHAPES, lambda x, k: multiop.jvp(new(k), (x,), (x,))
    yield "tape, new", SHAPES, lambda x, k: under_tape(new(k), x)
    yield "grad of a custom gradient, new", SHAPES, lambda x, k: multiop.grad(new_rule(k))(x)
    yield "tape, custom gradient, new", SHAPES, lambda x, k: under_tape(new_rule(k), x)
    yield "jit, new", PROGRAMS, lambda x, k: multiop.jit(new(0))(x)
    yield "cond, new", PROGRAMS, lambda x, k: multiop.op_cond(x[0] > 0, lambda: multiop.op_sin(x), lambda: x * k)
    yield "grad of scan, new", PROGRAMS, lambda x, k: multiop.grad(lambda x: scanned(multiop, x))(x)
    yield "tape over scan, new", PROGRAMS, lambda x, k: under_tape(lambda x: scanned(multiop, x), x)


def scanned(multiop: Any, x: Any) -> Any:
    """Return the result of a scan whose function is new."""
    return multiop.op_scan(lambda carry, row: (carry * 0.5 + row, None), x[0], x)[0]


def measure(backend: str, calls: int, seconds: float, only: str) -> list[dict[str, Any]]:
    """Measure one backend in this process."""
    os.environ["MULTIOP_BACKEND"] = backend
    importlib.import_module(backend)
    import numpy as np

    import multiop

    found = []
    for name, shapes, call in rows(multiop):
        if only not in name:
            continue
        xs = [multiop.op_convert_to_tensor(np.ones(4 + k, "float32")) for k in range(shapes)]
        started = time.monotonic()
        for k in range(2 * shapes):  # all there is to compile
            call(xs[k % shapes], k)
        live(backend)  # whose own list takes megabytes, once
        done, halves = 0, []
        for half in (1, 2):
            until = time.monotonic() + seconds / 2
            while done < half * calls // 2 and time.monotonic() < until:
                call(xs[done % shapes], done)
                done += 1
            halves.append((done, resident(), live(backend)))
        (n, before, tensors), (m, after, more) = halves
        per_call = (after - before) / max(m - n, 1)
        found.append({"name": name, "calls": done, "bytes": round(per_call), "tensors": more - tensors})
        told = f"{name}: {per_call:.0f} bytes, {more - tensors} tensors"
        print(f"{told}; {done} calls in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return found


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backends", default="torch,jax,tensorflow", help="comma-separated")
    parser.add_argument("--calls", type=int, default=100_000, help="of each row")
    parser.add_argument("--seconds", type=float, default=60, help="at most, of each row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(measure(asked.child, asked.calls, asked.seconds, asked.only)))
        return
    told: dict[str, dict[str, str]] = {}
    backends = asked.backends.split(",")
    for backend in backends:
        options = ["--calls", str(asked.calls), "--seconds", str(asked.seconds), "--only", asked.only]
        command = [sys.executable, __file__, "--child", backend, *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        for row in json.loads(done.stdout.splitlines()[-1]):
            told.setdefault(row["name"], {})[backend] = f"{row['bytes']}, {row['tensors']} ({row['calls']})"
    print(f"| bytes a call, tensors more (calls) | {' | '.join(backends)} |\n|{'---|' * (len(backends) + 1)}")
    for name, by_backend in told.items():
        print(f"| {name} | {' | '.join(by_backend.get(backend, '') for backend in backends)} |")


if __name__ == "__main__":
    main()
