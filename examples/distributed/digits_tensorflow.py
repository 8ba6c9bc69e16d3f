"""Train the classifier of `digits.py` on several devices with TensorFlow: the same curve as on one.

    python examples/distributed/digits_tensorflow.py --devices 2     # CPUs, of which TensorFlow makes as many

`mirrored`: each device has a part of the images, and its own copy of the variables; `MirroredStrategy`
keeps them alike.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import multiop

sys.path.insert(0, str(Path(__file__).parent.parent))

import curves
import digits


def train(way: str, steps: int = 100, rate: float = 0.5) -> list[float]:
    """Return the loss curve of one `way`: `mirrored`, or `one`, a single device."""
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    many = tf.distribute.MirroredStrategy(devices)
    strategy = many if way == "mirrored" else tf.distribute.OneDeviceStrategy(devices[0])
    size = strategy.num_replicas_in_sync
    images, labels, *_ = digits.load()
    n = len(images) // len(devices) * len(devices)
    targets = np.eye(digits.CLASSES, dtype="float32")[labels]
    with strategy.scope():
        parameters = [tf.Variable(p) for p in digits.initial_parameters()]
        momenta = [tf.Variable(tf.zeros_like(p)) for p in parameters]

    def part(context: Any, x: Any) -> Any:
        k = context.replica_id_in_sync_group
        return tf.constant(x[k * n // size : (k + 1) * n // size])

    x = strategy.experimental_distribute_values_from_function(lambda context: part(context, images))
    y = strategy.experimental_distribute_values_from_function(lambda context: part(context, targets))

    def step(x: Any, y: Any) -> Any:
        with multiop.GradientTape() as tape:
            value = digits.loss(parameters, x, y) / size
        grads = tape.gradient(value, parameters)
        grads = tf.distribute.get_replica_context().all_reduce("SUM", grads)
        for p, m, g in zip(parameters, momenta, grads, strict=True):
            m.assign(0.8 * m + g)
            p.assign_sub(rate * m)
        return value

    @tf.function
    def run() -> Any:
        return strategy.reduce("SUM", strategy.run(step, (x, y)), axis=None)

    return [float(run()) for _ in range(steps)]


def main() -> None:
    """Train in both ways, and print the curves beside each other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    asked = parser.parse_args()
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * asked.devices)
    multiop.set_backend("tensorflow")
    ways = ("one", "mirrored")
    shown = {way: train(way, asked.steps) for way in ways}
    curves.show(shown)


if __name__ == "__main__":
    main()
