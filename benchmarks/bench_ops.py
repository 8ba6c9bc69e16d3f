"""Measure 40 ops, eager, on tiny tensors, against the call that a user would write; and dispatch alone.

    python benchmarks/bench_ops.py --backends torch

A row is the expressions themselves: `multiop.op_` and `keras.ops.` stand before the first one.
"""

from __future__ import annotations

import statistics
import types
from collections.abc import Callable
from typing import Any

from harness import KERAS, Bench, interleave, run

# x, y: float32[8]; m, n: float32[8, 8]; p: positive float32[8]; b: bool[8]; i: int32[4]
OPS = """
add(x, y)                 | torch.add(x, y) | jnp.add(x, y) | tf.add(x, y)
subtract(x, y)            | torch.sub(x, y) | jnp.subtract(x, y) | tf.subtract(x, y)
multiply(x, y)            | torch.mul(x, y) | jnp.multiply(x, y) | tf.multiply(x, y)
multiply(x, 2.0)          | torch.mul(x, 2.0) | jnp.multiply(x, 2.0) | tf.multiply(x, 2.0)
divide(x, p)              | torch.div(x, p) | jnp.divide(x, p) | tf.divide(x, p)
negative(x)               | torch.neg(x) | jnp.negative(x) | tf.negative(x)
square(x)                 | torch.square(x) | jnp.square(x) | tf.square(x)
sqrt(p)                   | torch.sqrt(p) | jnp.sqrt(p) | tf.sqrt(p)
rsqrt(p)                  | torch.rsqrt(p) | jax.lax.rsqrt(p) | tf.math.rsqrt(p)
exp(x)                    | torch.exp(x) | jnp.exp(x) | tf.exp(x)
log(p)                    | torch.log(p) | jnp.log(p) | tf.math.log(p)
sin(x)                    | torch.sin(x) | jnp.sin(x) | tf.sin(x)
tanh(x)                   | torch.tanh(x) | jnp.tanh(x) | tf.tanh(x)
erf(x)                    | torch.erf(x) | jax.lax.erf(x) | tf.math.erf(x)
sigmoid(x)                | torch.sigmoid(x) | jax.nn.sigmoid(x) | tf.sigmoid(x)
relu(x)                   | torch.relu(x) | jax.nn.relu(x) | tf.nn.relu(x)
silu(x)                   | torch.nn.functional.silu(x) | jax.nn.silu(x) | tf.nn.silu(x)
softmax(m)                | torch.softmax(m, -1) | jax.nn.softmax(m) | tf.nn.softmax(m)
log_softmax(m)            | torch.log_softmax(m, -1) | jax.nn.log_softmax(m) | tf.nn.log_softmax(m)
sum(m)                    | torch.sum(m) | jnp.sum(m) | tf.reduce_sum(m)
sum(m, axis=1)            | torch.sum(m, dim=1) | jnp.sum(m, axis=1) | tf.reduce_sum(m, axis=1)
mean(m, axis=1)           | torch.mean(m, dim=1) | jnp.mean(m, axis=1) | tf.reduce_mean(m, axis=1)
max(m, axis=1)            | torch.amax(m, dim=1) | jnp.max(m, axis=1) | tf.reduce_max(m, axis=1)
var(m, axis=1)            | torch.var(m, dim=1, correction=0) | jnp.var(m, axis=1) | tf.math.reduce_variance(m, axis=1)
argmax(m, axis=1)         | torch.argmax(m, dim=1) | jnp.argmax(m, axis=1) | tf.argmax(m, axis=1)
cumsum(m, axis=1)         | torch.cumsum(m, dim=1) | jnp.cumsum(m, axis=1) | tf.cumsum(m, axis=1)
matmul(m, n)              | torch.matmul(m, n) | jnp.matmul(m, n) | tf.matmul(m, n)
einsum('ij,jk', m, n)     | torch.einsum('ij,jk', m, n) | jnp.einsum('ij,jk', m, n) | tf.einsum('ij,jk', m, n)
reshape(m, (4, 16))       | torch.reshape(m, (4, 16)) | jnp.reshape(m, (4, 16)) | tf.reshape(m, (4, 16))
transpose(m)              | torch.transpose(m, 0, 1) | jnp.transpose(m) | tf.transpose(m)
expand_dims(x, 0)         | torch.unsqueeze(x, 0) | jnp.expand_dims(x, 0) | tf.expand_dims(x, 0)
broadcast_to(x, (8, 8))   | torch.broadcast_to(x, (8, 8)) | jnp.broadcast_to(x, (8, 8)) | tf.broadcast_to(x, (8, 8))
concatenate([x, y])       | torch.cat([x, y]) | jnp.concatenate([x, y]) | tf.concat([x, y], 0)
stack([x, y])             | torch.stack([x, y]) | jnp.stack([x, y]) | tf.stack([x, y])
where(b, x, y)            | torch.where(b, x, y) | jnp.where(b, x, y) | tf.where(b, x, y)
greater(x, y)             | torch.gt(x, y) | jnp.greater(x, y) | tf.greater(x, y)
logical_and(b, b)         | torch.logical_and(b, b) | jnp.logical_and(b, b) | tf.logical_and(b, b)
take(m, i, axis=0)        | torch.index_select(m, 0, i) | jnp.take(m, i, axis=0) | tf.gather(m, i, axis=0)
cast(x, 'int32')          | x.to(torch.int32) | x.astype('int32') | tf.cast(x, 'int32')
zeros_like(m)             | torch.zeros_like(m) | jnp.zeros_like(m) | tf.zeros_like(m)
"""
COLUMNS = {"torch": 1, "jax": 2, "tensorflow": 3}
# (the geometric mean of the ratios, the worst one)
LIMITS = {"torch": (1.05, 1.15), "jax": (0.80, 1.05), "tensorflow": (0.80, 1.05)}


def names_for(backend: str) -> dict[str, Any]:
    """Return what the native expressions of a backend read."""
    if backend == "torch":
        import torch

        return {"torch": torch}
    if backend == "jax":
        import jax
        import jax.numpy as jnp

        return {"jax": jax, "jnp": jnp}
    import tensorflow as tf

    return {"tf": tf}


def call(expression: str, names: dict[str, Any]) -> Callable[[], Any]:
    return eval(f"lambda: {expression}", names)  # the same one line for every contender


def dispatch(multiop: Any, rounds: int) -> dict[str, Any]:
    """Time `multiop.op_add` over a backend that does nothing: what is left is the cost of dispatch."""
    from multiop._loading import registry

    stub = types.SimpleNamespace(op_add=lambda x1, x2: x1)
    before, overridden = registry._backend, registry.is_overridden
    registry._backend, registry.is_overridden = stub, False
    try:
        names = {"stub": stub, "multiop": multiop, "x": 1.0}
        calls = {"native": call("stub.op_add(x, x)", names), "multiop": call("multiop.op_add(x, x)", names)}
        return interleave(calls, rounds)
    finally:
        registry._backend, registry.is_overridden = before, overridden


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    multiop = bench.load()
    if not bench.only:
        found = dispatch(multiop, bench.rounds)
        bench.note("dispatch alone", found["ns"]["multiop"] - found["ns"]["native"], 100, "ns", ns=found["ns"])

    names = {"multiop": multiop, "keras": bench.keras, **names_for(bench.backend)}
    names |= {"x": bench.tensor(8), "y": bench.tensor(8, seed=1), "m": bench.tensor(8, 8), "n": bench.tensor(8, 8)}
    names |= {"p": multiop.op_exp(names["x"]), "b": multiop.op_greater(names["x"], 0)}
    names |= {"i": multiop.op_convert_to_tensor([0, 3, 1, 5], "int32")}
    typical, worst = LIMITS[bench.backend]
    ratios, others = [], []
    for line in OPS.strip().splitlines():
        expressions = [part.strip() for part in line.split("|")]
        if bench.only and "op_" + expressions[0].partition("(")[0] not in bench.only:
            continue
        contenders = {
            "native": call(expressions[COLUMNS[bench.backend]], names),
            "multiop": call(f"multiop.op_{expressions[0]}", names),
        }
        if bench.keras is not None:
            contenders[KERAS] = call(f"keras.ops.{expressions[0]}", names)
        row = bench.compare(expressions[0], contenders, worst)
        ratios.append(row["measured"])
        others.append(row["ratio"].get(KERAS, [None, None])[1])
    if bench.only:
        return
    more = {}
    if None not in others:
        more["ratio"] = {KERAS: [round(statistics.geometric_mean(others), 3)] * 3}
    bench.note("geometric mean of all", statistics.geometric_mean(ratios), typical, "x", **more)


if __name__ == "__main__":
    run(["ops"], __doc__)
