"""Train the classifier of `digits.py` on several devices with JAX: the same curve as on one.

    python examples/distributed/digits_jax.py --devices 4            # CPUs, of which JAX makes as many as are asked for

`data`: each device has a part of the images, and the whole of the weights. `map`: the same, written for one device
under `jax.shard_map`, which adds up the gradients of the weights. `tensor`: each device has a part of the hidden layer.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import multiop
from multiop import ops

sys.path.insert(0, str(Path(__file__).parent.parent))

import curves
import digits


def train(way: str, steps: int = 100, rate: float = 0.5) -> list[float]:
    """Return the loss curve of one `way` over all devices: `data`, `map`, `tensor`, or `one`, a single device."""
    import jax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

    many = jax.make_mesh((1 if way == "one" else len(jax.devices()),), ("i",), axis_types=(AxisType.Auto,))

    def put(x: Any, *spec: Any) -> Any:
        return multiop.to_device(x, NamedSharding(many, P(*spec)))

    images, labels, *_ = digits.load()
    n = len(images) // len(jax.devices()) * len(jax.devices())
    targets = np.eye(digits.CLASSES, dtype="float32")[labels]
    specs: list[Any] = [(), (), (), ()] if way != "tensor" else [(None, "i"), ("i",), ("i", None), ()]
    rows = () if way == "tensor" else ("i",)
    parameters = [put(p, *spec) for p, spec in zip(digits.initial_parameters(), specs, strict=True)]
    x, y = put(images[:n], *rows), put(targets[:n], *rows)

    step = multiop.value_and_grad(digits.loss)
    if way == "map":

        def mean_loss(parameters: Any, x: Any, y: Any) -> Any:
            return jax.lax.pmean(digits.loss(parameters, x, y), "i")

        mapped = jax.shard_map(mean_loss, mesh=many, in_specs=([P()] * 4, P("i"), P("i")), out_specs=P())
        step = jax.value_and_grad(mapped)

    def update(parameters: Any, momenta: Any) -> Any:
        value, grads = step(parameters, x, y)
        momenta = [0.8 * m + g for m, g in zip(momenta, grads, strict=True)]
        return value, [p - rate * m for p, m in zip(parameters, momenta, strict=True)], momenta

    update = jax.jit(update)
    momenta = [ops.zeros_like(p) for p in parameters]
    curve = []
    for _ in range(steps):
        value, parameters, momenta = update(parameters, momenta)
        curve.append(float(value))
    return curve


def main() -> None:
    """Train in every way, and print the curves beside each other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--steps", type=int, default=100)
    asked = parser.parse_args()
    import jax

    jax.config.update("jax_num_cpu_devices", asked.devices)
    multiop.set_backend("jax")
    ways = ("one", "data", "map", "tensor")
    shown = {way: train(way, asked.steps) for way in ways}
    curves.show(shown)


if __name__ == "__main__":
    main()
