"""Show the loss curves of several ways to train beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def show(curves: Mapping[str, Sequence[float]]) -> None:
    """Print every tenth value of each curve, a column for each way."""
    print("step " + " ".join(f"{way:>9}" for way in curves))
    for step, values in enumerate(zip(*curves.values(), strict=True)):
        if step % 10 == 9:
            print(f"{step + 1:4d} " + " ".join(f"{value:9.6f}" for value in values))
