"""Measure the training step of each example of the gallery, against a native version on JAX, and its memory over steps.

    python benchmarks/bench_gallery.py --backends jax        # the ratios, and the memory
    python benchmarks/bench_gallery.py                       # the memory on every backend
    python benchmarks/bench_gallery.py --backends jax --write docs/gallery.md

A step is the value of an example's loss and its gradient, compiled by `multiop.jit`, and by `jax.jit`, whose call costs
no Python. The native version is what a person writes with JAX alone, with the same rule by `jax.custom_vjp` where the
example has one. Memory is how many more tensors there are after 1000 steps than after 100, and by how many kilobytes
the process has grown meanwhile.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import harness
import numpy as np
from bench_memory import live, resident
from harness import Bench, conditions, markdown, run, spread

EXAMPLES = Path(__file__).parent.parent / "examples"
LIMIT = 1.05
TOLERANCE = 2e-5


def losses() -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    """Yield each example's name, its loss, a function of its first argument, and the arguments."""
    import densities
    import flow
    import implicit
    import molecule
    import ode
    import physics
    import quantizer
    import sparsemax
    import transport

    from multiop import ops

    rng = np.random.default_rng(0)

    def draw(*shape: int, scale: float = 0.3) -> Any:
        return ops.convert_to_tensor((scale * rng.normal(size=shape)).astype("float32"))

    def squares(x: Any) -> Any:
        return ops.mean(ops.square(x))

    yield "implicit layer", lambda w, x: ops.sum(implicit.fixed_point(w, x)), [draw(4, 4), draw(8, 4)]
    layers = [draw(*shape) for shape in ((1, 16), (16,), (16, 16), (16,), (16, 1))]
    yield "physics", lambda p, t: squares(physics.residual(p, t)), [layers, ops.linspace(0.0, 3.0, 61)]
    yield "molecule", molecule.energy, [ops.convert_to_tensor(molecule.water(0.1).astype("float32"))]
    path = ops.convert_to_tensor(rng.uniform(1, 5, size=(ode.COUNT, 2)).astype("float32"))
    start = [ops.convert_to_tensor(x) for x in (ode.TRUE, ode.START)]
    yield "ODE", lambda rates, y, path: squares(ode.solve(rates, y, ode.END, ode.COUNT) - path), [*start, path]
    yield "transport", lambda x, y: transport.distance(x, y, 0.05), [draw(30, 2), draw(30, 2)]
    layers = [draw(*shape) for shape in [(1, 16), (16,), (16, 2)] * 4]
    samples = ops.convert_to_tensor(flow.crescents())
    yield "flow", lambda p, x: -ops.mean(flow.log_density(p, x)), [layers, samples]
    target = ops.one_hot(np.arange(64) % 10, 10)
    yield "sparsemax", lambda x, y: ops.mean(sparsemax.loss(x, y)), [draw(64, 10, scale=1.0), target]
    weights = [draw(16), ops.convert_to_tensor(np.float32(0.4))]
    known = [draw(128, 16, scale=1.0), draw(128, scale=1.0)]
    yield "quantizer", lambda p, x, y: squares(ops.matmul(x, quantizer.quantized(*p)) - y), [weights, *known]
    fit = [ops.convert_to_tensor(np.float32(x)) for x in (1.0, 0.8, 2.5)]
    samples = ops.convert_to_tensor(densities.samples())
    yield "log densities", lambda p, x: -ops.mean(densities.student_log_density(x, *p)), [fit, samples]


def natives() -> dict[str, Callable[..., Any]]:
    """Return the same losses with JAX alone."""
    import jax
    import jax.numpy as jnp
    import molecule
    import ode
    from jax.scipy.special import gammaln, logsumexp

    def squares(x: Any) -> Any:
        return jnp.mean(jnp.square(x))

    def iterate(w: Any, x: Any, z: Any) -> Any:
        return jnp.tanh(z @ w + x)

    @jax.custom_vjp
    def fixed_point(w: Any, x: Any) -> Any:
        z = jnp.zeros_like(x)
        for _ in range(40):
            z = iterate(w, x, z)
        return z

    def fixed_point_rule(kept: Any, upstream: Any) -> Any:
        _, pull = jax.vjp(iterate, *kept)
        v = upstream
        for _ in range(40):
            v = upstream + pull(v)[2]
        return pull(v)[:2]

    fixed_point.defvjp(lambda w, x: ((z := fixed_point(w, x)), (w, x, z)), fixed_point_rule)

    def physics(p: Any, t: Any) -> Any:
        w1, b1, w2, b2, w3 = p

        def u(t: Any) -> Any:
            h = jnp.tanh(jnp.tanh(t[:, None] * w1 + b1) @ w2 + b2)
            return 1 + t * t * (h @ w3)[:, 0]

        def slope(t: Any) -> Any:
            return jax.grad(lambda t: u(t).sum())(t)

        return squares(jax.grad(lambda t: slope(t).sum())(t) + jnp.sin(u(t)))

    def energy(x: Any) -> Any:
        a, b = x[1] - x[0], x[2] - x[0]
        r, s = jnp.linalg.norm(a), jnp.linalg.norm(b)
        angle = jnp.arctan2(jnp.linalg.norm(jnp.cross(a, b)), a @ b)
        stretch = (r - molecule.BOND) ** 2 + (s - molecule.BOND) ** 2
        return molecule.STRETCH / 2 * stretch + molecule.BEND / 2 * (angle - molecule.ANGLE) ** 2

    h = ode.END / ode.COUNT

    def advance(rates: Any, y: Any) -> Any:
        def field(y: Any) -> Any:
            met = y[0] * y[1]
            return jnp.stack([rates[0] * y[0] - rates[1] * met, rates[2] * met - rates[3] * y[1]])

        k1 = field(y)
        k2 = field(y + h / 2 * k1)
        k3 = field(y + h / 2 * k2)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + field(y + h * k3))

    @jax.custom_vjp
    def solve(rates: Any, y: Any) -> Any:
        return jax.lax.scan(lambda y, _: ((after := advance(rates, y)), after), y, length=ode.COUNT)[1]

    def solve_rule(kept: Any, upstream: Any) -> Any:
        rates, y, states = kept

        def back(carry: Any, at: Any) -> Any:
            slope, adjoint = jax.vjp(advance, rates, at[0])[1](carry[1] + at[1])
            return (carry[0] + slope, adjoint), None

        before = jnp.concatenate([y[None], states[:-1]])
        zeros = jnp.zeros_like(rates), jnp.zeros_like(y)
        return jax.lax.scan(back, zeros, (before, upstream), reverse=True)[0]

    solve.defvjp(lambda rates, y: ((states := solve(rates, y)), (rates, y, states)), solve_rule)

    @jax.custom_vjp
    def transported(cost: Any, a: Any, b: Any) -> Any:
        return transported_forward(cost, a, b)[0]

    def transported_forward(cost: Any, a: Any, b: Any, blur: float = 0.05) -> Any:
        f, g = jnp.zeros_like(a), jnp.zeros_like(b)
        for _ in range(10):
            f = -blur * logsumexp((g - cost) / blur + jnp.log(b), 1)
            g = -blur * logsumexp((f[:, None] - cost) / blur + jnp.log(a)[:, None], 0)
        plan = a[:, None] * b * jnp.exp((f[:, None] + g - cost) / blur)
        return a @ f + b @ g, (plan, f, g)

    transported.defvjp(transported_forward, lambda kept, upstream: tuple(upstream * x for x in kept))

    def transport(x: Any, y: Any) -> Any:
        alike = (jnp.full(len(points), 1 / len(points)) for points in (x, y))
        return transported(((x[:, None] - y[None]) ** 2).sum(-1), *alike)

    def flow(p: Any, x: Any) -> Any:
        kept, moved, total = x[:, 0], x[:, 1], jnp.zeros(len(x))
        for w1, b1, w2 in zip(p[::3], p[1::3], p[2::3], strict=True):
            out = jnp.tanh(kept[:, None] * w1 + b1) @ w2
            log_scale = jnp.tanh(out[:, 0])
            kept, moved = moved * jnp.exp(log_scale) + out[:, 1], kept
            total = total + log_scale
        return -jnp.mean(total - (kept**2 + moved**2) / 2 - np.log(2 * np.pi))

    def sparsemax_forward(scores: Any, target: Any) -> Any:
        centred = scores - scores.max(-1, keepdims=True)
        falling = -jnp.sort(-centred, -1)
        counts = jnp.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
        kept = (1 + counts * falling > jnp.cumsum(falling, -1)).astype(scores.dtype)
        threshold = ((falling * kept).sum(-1, keepdims=True) - 1) / kept.sum(-1, keepdims=True)
        p = jnp.maximum(centred - threshold, 0)
        return ((p - target) * centred - (p * p - target * target) / 2).sum(-1), (p, target, centred)

    @jax.custom_vjp
    def sparsemax(scores: Any, target: Any) -> Any:
        return sparsemax_forward(scores, target)[0]

    def sparsemax_rule(kept: Any, upstream: Any) -> Any:
        p, target, centred = kept
        return upstream[:, None] * (p - target), upstream[:, None] * (target - centred)

    sparsemax.defvjp(sparsemax_forward, sparsemax_rule)

    def quantizer(p: Any, x: Any, y: Any) -> Any:
        w, scale = p
        z = jnp.clip(w / scale, -3, 3)
        return squares(x @ ((z + jax.lax.stop_gradient(jnp.round(z) - z)) * scale) - y)

    def student(p: Any, x: Any) -> Any:
        mean, scale, freedom = p
        z = (x - mean) / scale
        constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - jnp.log(freedom * np.pi) / 2
        return -jnp.mean(constant - jnp.log(scale) - (freedom + 1) / 2 * jnp.log1p(z * z / freedom))

    return {
        "implicit layer": lambda w, x: fixed_point(w, x).sum(),
        "physics": physics,
        "molecule": energy,
        "ODE": lambda rates, y, path: squares(solve(rates, y) - path),
        "transport": transport,
        "flow": flow,
        "sparsemax": lambda x, y: sparsemax(x, y).mean(),
        "quantizer": quantizer,
        "log densities": student,
    }


def measure(bench: Bench) -> None:
    """Measure each example: on JAX its time over the native one, everywhere its memory."""
    multiop = bench.load()
    harness.clock = time.process_time  # the machine may be shared
    sys.path[:0] = [str(EXAMPLES / "gallery"), str(EXAMPLES / "transport")]
    native = natives() if bench.backend == "jax" else {}
    for name, loss, arguments in losses():
        step = multiop.jit(multiop.value_and_grad(loss))
        if native:
            jax = importlib.import_module("jax")
            steps = {
                "native": jax.jit(jax.value_and_grad(native[name])),
                "multiop": jax.jit(multiop.value_and_grad(loss)),
                "multiop.jit": step,
            }
            bench.compare(name, {who: partial(f, *arguments) for who, f in steps.items()}, LIMIT, TOLERANCE)
        held = [held_after(bench, step, arguments, count) for count in (100, 900)]
        (tensors, size), (more, larger) = held
        bench.note(f"{name}, tensors after 1000 steps", more - tensors, 0, " more")
        bench.note(f"{name}, process after 1000 steps", max(0, larger - size) // 1024, None, " KB more")


def held_after(bench: Bench, step: Callable[..., Any], arguments: list[Any], count: int) -> tuple[int, int]:
    """Return how many tensors there are after some steps, and how many bytes the process holds."""
    for _ in range(count):
        bench.wait(step(*arguments))
    size = resident()  # collects garbage, which tensors may be part of
    return live(bench.backend), size


def tables(kept: dict[str, Any]) -> dict[str, str]:
    """Return a line for each example on JAX: its native time, the ratios, and the growth over 900 steps."""
    (rows,) = ({row["name"]: row for row in one["rows"]} for one in kept["results"] if one["backend"] == "jax")
    lines = []
    for name, row in rows.items():
        if "ratio" in row:
            tensors, size = (rows[f"{name}, {what} after 1000 steps"]["measured"] for what in ("tensors", "process"))
            ratios = [spread(row["ratio"][who]) for who in ("multiop", "multiop.jit")]
            lines.append([name, f"{row['ns']['native'] / 1e3:.0f}", *ratios, str(tensors), str(size)])
    heads = ("step of", "native, µs", "in `jax.jit`", "by `multiop.jit`", "more tensors", "more KB")
    return {"gallery": f"\n{conditions(kept)}\n\n{markdown(heads, lines)}\n"}


if __name__ == "__main__":
    run(["gallery"], __doc__, rounds=101)
