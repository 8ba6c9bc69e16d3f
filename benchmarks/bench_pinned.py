"""Measure what pinned answers cost: ops whose native form gives another value or gradient at some point.

    python benchmarks/bench_pinned.py --backends tensorflow

A row tells where the two were compared, the first entry there in which the native form differs, and what multiop pins.
Elsewhere they agree, which is checked, and timed. There is no target: the native form does not do the same.
"""

from __future__ import annotations

import contextlib
from typing import Any

from bench_autodiff import NATIVE
from bench_ops import COLUMNS, call, names_for
from harness import Bench, arrays, run

NAN, INF = float("nan"), float("inf")

# x, y: normal; p: in 0.5 to 1.5; q: near 1; the points where they are compared, argument by argument
OPS: dict[str, list[list[float]]] = {
    """
abs(x) | torch.abs(x) | jnp.abs(x) | tf.abs(x)
relu(x) | torch.relu(x) | jax.nn.relu(x) | tf.nn.relu(x)
sign(x) | torch.sign(x) | jnp.sign(x) | tf.sign(x)
clip(x, -1.0, 1.0) | torch.clamp(x, -1.0, 1.0) | jnp.clip(x, -1.0, 1.0) | tf.clip_by_value(x, -1.0, 1.0)
""": [[0.0, -1.0, 1.0, NAN]],
    """
maximum(x, y) | torch.maximum(x, y) | jnp.maximum(x, y) | tf.maximum(x, y)
minimum(x, y) | torch.minimum(x, y) | jnp.minimum(x, y) | tf.minimum(x, y)
""": [[1.0, NAN, 1.0], [1.0, 1.0, NAN]],
    """
power(p, y) | torch.pow(p, y) | jnp.power(p, y) | tf.pow(p, y)
hypot(p, y) | torch.hypot(p, y) | jnp.hypot(p, y) | tf.sqrt(p * p + y * y)
arctan2(p, y) | torch.atan2(p, y) | jnp.arctan2(p, y) | tf.atan2(p, y)
""": [[0.0, 0.0, -2.0, INF], [0.0, 1.0, 2.0, 1.0]],
    """
prod(q) | torch.prod(q) | jnp.prod(q) | tf.reduce_prod(q)
cumprod(q) | torch.cumprod(q, 0) | jnp.cumprod(q) | tf.math.cumprod(q)
""": [[1e-30, 1e-30, 1e30]],
    """
std(x) | torch.std(x, correction=0) | jnp.std(x) | tf.math.reduce_std(x)
""": [[3.0, 3.0, 3.0]],
    """
norm(x) | torch.linalg.norm(x) | jnp.linalg.norm(x) | tf.norm(x)
""": [[0.0, 0.0]],
    """
max(x) | torch.amax(x, 0) | jnp.max(x) | tf.reduce_max(x)
""": [[2.0, 1.0, 2.0]],
    """
logsumexp(x) | torch.logsumexp(x, 0) | jax.scipy.special.logsumexp(x) | tf.reduce_logsumexp(x)
""": [[INF, 0.0]],
    """
sort(x) | torch.sort(x).values | jnp.sort(x) | tf.sort(x)
argmax(x) | torch.argmax(x) | jnp.argmax(x) | tf.argmax(x)
""": [[1.0, NAN, 2.0]],
}
TOLERANCE = 1e-3  # of the product of 10^6 float32 numbers
NOT_DIFFERENTIABLE = ("argmax",)


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    multiop = bench.load()
    native = NATIVE[bench.backend]()
    names = {"multiop": multiop, **names_for(bench.backend)}
    inputs = {}
    for size in (8, 1_000_000):
        x, y = bench.tensor(size), bench.tensor(size, seed=1)
        inputs[size] = {"x": x, "y": y, "p": multiop.op_sigmoid(x) + 0.5, "q": multiop.op_exp(x / 1000)}
    for table, points in OPS.items():
        for line in table.strip().splitlines():
            expressions = [part.strip() for part in line.split("|")]
            name, _, given = expressions[0].rstrip(")").partition("(")
            arguments = [one for one in given.split(", ") if one in "xypq"]
            pair = {
                "native": function(expressions[COLUMNS[bench.backend]], arguments, names),
                "multiop": function(f"multiop.op_{expressions[0]}", arguments, names),
            }
            point = [multiop.op_convert_to_tensor(values, "float32") for values in points]
            differs = difference(native, pair, point, name in NOT_DIFFERENTIABLE)
            for size, values in inputs.items():
                xs = [values[one] for one in arguments]
                calls = {who: call("f(*xs)", {"f": f, "xs": xs}) for who, f in pair.items()}
                bench.compare(f"{expressions[0]}, forward [{size}]", calls, None, TOLERANCE, **differs)
                if name in NOT_DIFFERENTIABLE:
                    continue
                upstream = ones_like(pair["native"](*xs))
                turned = {who: native.both_ways(f) for who, f in pair.items()}
                calls = {who: call("f(u, *xs)", {"f": f, "u": upstream, "xs": xs}) for who, f in turned.items()}
                bench.compare(f"{expressions[0]}, both ways [{size}]", calls, None, TOLERANCE, **differs)


def function(expression: str, arguments: list[str], names: dict[str, Any]) -> Any:
    return eval(f"lambda {', '.join(arguments)}: {expression}", names)


def difference(native: Any, pair: dict[str, Any], point: list[Any], value_alone: bool) -> dict[str, str]:
    """Say where the native form differs from multiop's: the first entry of the value, or else of a derivative."""
    kinds = {"value": {who: f(*point) for who, f in pair.items()}}
    if not value_alone:
        upstream = ones_like(pair["native"](*point))
        turns = [("gradient", native.both_ways)]
        if upstream.shape == point[0].shape:
            turns.append(("second derivative", native.second))
        for kind, turn in turns:
            with contextlib.suppress(RuntimeError):  # PyTorch's, where the gradient is constant
                kinds[kind] = {who: turn(f)(upstream, *point) for who, f in pair.items()}
    entries = [[float(value) for value in arrays(x)[0]] for x in point]
    for kind, results in kinds.items():
        found = {who: [show(one) for one in flat(result)] for who, result in results.items()}
        for k, (theirs, ours) in enumerate(zip(found["native"], found["multiop"], strict=True)):
            if theirs != ours:
                if len(found["native"]) >= len(entries[0]):
                    at = ", ".join(show(values[k % len(values)]) for values in entries)
                else:
                    at = f"[{', '.join(map(show, entries[0]))}]"
                return {"at": f"{kind} at {at}", "native there": theirs, "pinned there": ours}
    return {"at": "", "native there": "the same", "pinned there": ""}


def ones_like(x: Any) -> Any:
    import multiop

    return multiop.op_ones_like(x)


def flat(result: Any) -> list[float]:
    return [float(value) for array in arrays(result) for value in array.reshape(-1)]


def show(value: float) -> str:
    return f"{value:.4g}"


if __name__ == "__main__":
    run(["pinned"], __doc__)
