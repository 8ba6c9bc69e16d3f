"""Measure sparse Jacobians against dense ones, and against products that a person colours by hand.

    python benchmarks/bench_sparse.py --backends torch
    python benchmarks/bench_sparse.py                      # every installed backend, one process each
    python benchmarks/bench_sparse.py --backends torch,jax,tensorflow,numpy --write benchmarks/measured.md

The native contenders are the framework's own: its dense Jacobian, and its products with three vectors of a tridiagonal
matrix, mapped at once, with the entries taken from them. Both sides are compiled where the framework's compiler takes
little: on JAX and TensorFlow. The row of NumPy, which has no derivatives of its own, compares with multiop's dense
ones. The rows of asdex are there where it is installed. Preparation is timed alone: a run of the function on index
sets, and the colouring.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import harness
import numpy as np
from harness import TITLES, Bench, conditions, markdown, run, spread

N, LARGE = 1_000, 100_000
LIMITS = {"dense": 0.02, "by hand": 1.1, "asdex": 1.0}
PREPARED = 5.0  # seconds, at most


def heat(u: Any) -> Any:
    """Return the right-hand side of a rod whose conduction depends on its temperature; by operators alone."""
    flow = (1.0 + u[1:] * u[:-1]) * (u[1:] - u[:-1])
    return flow[1:] - flow[:-1]


def seeds() -> Any:
    return (np.arange(N) % 3 == np.arange(3)[:, None]).astype("float32")


def places() -> Any:
    """Return where in the products the entries are, row by row."""
    rows = np.repeat(np.arange(N - 2), 3)
    return (rows + np.tile(np.arange(3), N - 2)) % 3 * (N - 2) + rows


def torch_contenders(u: Any) -> dict[str, Callable[[], Any]]:
    import torch

    vectors, index = torch.tensor(seeds()), torch.tensor(places())
    products = torch.func.vmap(lambda v: torch.func.jvp(heat, (u,), (v,))[1])
    return {"dense": lambda: torch.func.jacrev(heat)(u), "by hand": lambda: products(vectors).take(index)}


def jax_contenders(u: Any) -> dict[str, Callable[[], Any]]:
    import jax

    vectors, index = jax.numpy.array(seeds()), places()
    dense = jax.jit(jax.jacfwd(heat))
    products = jax.jit(lambda u: jax.vmap(lambda v: jax.jvp(heat, (u,), (v,))[1])(vectors).ravel()[index])
    found = {"dense": lambda: dense(u), "by hand": lambda: products(u)}
    try:
        import asdex
    except ImportError:
        return found
    theirs = jax.jit(asdex.jacobian(heat, u))
    return {**found, "asdex": lambda: theirs(u).data}


def tensorflow_contenders(u: Any) -> dict[str, Callable[[], Any]]:
    import tensorflow as tf

    vectors, index = tf.constant(seeds()), tf.constant(places())

    @tf.function(autograph=False)
    def dense(u: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(u)
            y = heat(u)
        return tape.jacobian(y, u)

    @tf.function(autograph=False)
    def products(u: Any) -> Any:
        def one(v: Any) -> Any:
            with tf.autodiff.ForwardAccumulator(u, v) as accumulator:
                y = heat(u)
            return accumulator.jvp(y)

        return tf.gather(tf.reshape(tf.vectorized_map(one, vectors), [-1]), index)

    return {"dense": lambda: dense(u), "by hand": lambda: products(u)}


NATIVE = {"torch": torch_contenders, "jax": jax_contenders, "tensorflow": tensorflow_contenders}


def measure(bench: Bench) -> None:
    """Measure the rows of one backend."""
    multiop = bench.load()
    harness.clock = time.process_time  # the machine is shared, and each contender has all of its threads
    u = bench.tensor(N)
    start = time.process_time()
    multiop.sparse_jacobian(heat, bench.tensor(LARGE))
    bench.note(f"preparation, n = {LARGE:,}", time.process_time() - start, PREPARED, "s")
    J = multiop.sparse_jacobian(heat, u)
    values = J.values if bench.backend in ("torch", "numpy") else multiop.jit(J.values)
    if bench.backend == "numpy":
        contenders = {"dense": lambda: multiop.jacrev(heat)(u)}
    else:
        contenders = NATIVE[bench.backend](u)
    rows, columns = J.rows, J.cols
    entries = multiop.op_convert_to_numpy(contenders["dense"]())[rows, columns]
    for name, native in contenders.items():
        found = harness.interleave({"native": native, "multiop": lambda: values(u)}, bench.rounds, bench.wait)
        bench.note(f"Jacobian, against {name}", found["ratio"]["multiop"][1], LIMITS[name], "x", **found)
    bench.wrong += [] if np.allclose(multiop.op_convert_to_numpy(values(u)), entries, 1e-4, 1e-5) else ["values differ"]


def tables(kept: dict[str, Any]) -> dict[str, str]:
    """Return a line for each backend: the median of each ratio, with its quartiles, and the seconds of preparation."""
    names = list(dict.fromkeys(row["name"] for result in kept["results"] for row in result["rows"]))
    lines = []
    for result in kept["results"]:
        cells = dict.fromkeys(names, "")
        for row in result["rows"]:
            cells[row["name"]] = spread(row["ratio"]["multiop"]) if "ratio" in row else f"{row['measured']:.2f} s"
        lines.append([TITLES[result["backend"]], *cells.values()])
    return {"sparse": f"\n{conditions(kept)}\n\n{markdown(('', *names), lines)}\n"}


if __name__ == "__main__":
    run(["sparse"], __doc__)
