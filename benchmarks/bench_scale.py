"""Measure how the cost of one thing grows with their number: leaves, custom gradients, operations on a tape.

    python benchmarks/bench_scale.py --backends torch

A ratio is the time for one of many by the time for one of few. Where the cost is linear it is 1, or less, since what a
call costs once is shared by more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import Bench, interleave, run

LIMIT = 1.2


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    multiop = bench.load()
    x = bench.tensor()

    @multiop.op_custom_gradient
    def halved(x: Any) -> Any:
        return x * 0.5, lambda upstream: upstream * 0.5

    @multiop.op_custom_gradient
    def ends(p: Any) -> Any:
        first, *_, last = p.values()
        return first + last, lambda upstream: dict.fromkeys(p, upstream)

    def first_and_last(p: Any) -> Any:
        first, *_, last = p.values()
        return first * last

    def of_leaves(f: Callable[..., Any]) -> Callable[[int], Callable[[], Any]]:
        def make(n: int) -> Callable[[], Any]:
            p = {f"p{k:05}": x + k for k in range(n)}
            return lambda: f(p)

        return make

    def chain(n: int) -> Callable[[], Any]:
        def f(x: Any) -> Any:
            for _ in range(n):
                x = halved(x)
            return x

        return lambda: multiop.grad(f)(x)

    def recorded(n: int) -> Callable[[], Any]:
        def step() -> Any:
            with multiop.GradientTape() as tape:
                y = watched = tape.watch(x)
                for _ in range(n):
                    y = multiop.op_sin(y)
            return tape.gradient(y, watched)

        return step

    def row(name: str, make: Callable[[int], Callable[[], Any]], few: int, many: int) -> None:
        found = interleave({"native": make(few), "multiop": make(many)}, bench.rounds, bench.wait)
        ratio = [round(q * few / many, 3) for q in found["ratio"]["multiop"]]
        bench.note(f"{name}: one of {many} / one of {few}", ratio[1], LIMIT, "x", ratio={"multiop": ratio})

    row("leaves of grad", of_leaves(multiop.grad(first_and_last)), 100, 10_000)
    row("leaves of a custom gradient", of_leaves(multiop.grad(ends)), 100, 10_000)
    row("leaves of jit", of_leaves(multiop.jit(first_and_last)), 100, 1_000)
    row("custom gradients in a chain", chain, 100, 1_000)
    row("operations on a tape", recorded, 100, 1_000)


if __name__ == "__main__":
    run(["scale"], __doc__)
