"""Train the classifier of `digits.py` in several processes with PyTorch: the same curve as in one.

    torchrun --nproc-per-node 2 examples/distributed/digits_torch.py

`ddp`: each process has a part of the images; DistributedDataParallel adds up the gradients. `fsdp`: each has a part of
the weights too (FSDP2). `tensor`: each has a part of the hidden layer, as DTensors.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import multiop
from multiop import ops

sys.path.insert(0, str(Path(__file__).parent.parent))

import curves
import digits


class Network(torch.nn.Module):
    """The network of `digits.py`, with its parameters where PyTorch's wrappers look for them."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(digits.initial_parameters())

    def forward(self, images: Any, targets: Any) -> Any:
        """Return the mean cross-entropy."""
        return digits.loss(list(self.weights), images, targets)


def train(way: str, steps: int = 100, rate: float = 0.5) -> list[float]:
    """Return the loss curve of one `way`: `ddp`, `fsdp`, `tensor`, or `one`, where each process does all of it."""
    rank, size = dist.get_rank(), dist.get_world_size()
    images, labels, *_ = digits.load()
    n = len(images) // size * size
    targets = np.eye(digits.CLASSES, dtype="float32")[labels]
    part = slice(rank * n // size, (rank + 1) * n // size) if way in ("ddp", "fsdp") else slice(n)
    x, y = ops.convert_to_tensor(images[part]), ops.convert_to_tensor(targets[part])
    network: Any = Network()
    if way == "ddp":
        network = torch.nn.parallel.DistributedDataParallel(network)
    elif way == "fsdp":
        from torch.distributed.fsdp import fully_shard

        network = fully_shard(network)
    elif way == "tensor":
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

        mesh = init_device_mesh("cpu", (size,))
        places = [Shard(1), Shard(0), Shard(0), Replicate()]
        network.weights = torch.nn.ParameterList(
            torch.nn.Parameter(distribute_tensor(p.detach(), mesh, [place]))
            for p, place in zip(network.weights, places, strict=True)
        )
        x, y = (distribute_tensor(tensor, mesh, [Replicate()]) for tensor in (x, y))
    optimizer = torch.optim.SGD(network.parameters(), rate, momentum=0.8)
    curve = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = network(x, y)
        loss.backward()
        optimizer.step()
        value = (loss.full_tensor() if way == "tensor" else loss).detach().clone()
        if way in ("ddp", "fsdp"):
            dist.all_reduce(value)
            value /= size
        curve.append(float(value))
    return curve


def main() -> None:
    """Train in every way, and print the curves beside each other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    asked = parser.parse_args()
    dist.init_process_group("gloo")
    multiop.set_backend("torch")
    ways = ("one", "ddp", "fsdp", "tensor")
    shown = {way: train(way, asked.steps) for way in ways}
    if dist.get_rank() == 0:
        curves.show(shown)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
