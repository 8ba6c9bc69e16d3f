"""Measure what a step costs beside its kernels: Python calls, and time where the tensors are tiny.

    OMP_NUM_THREADS=1 python benchmarks/bench_launch.py --backends torch

A GPU waits for Python to launch the next kernel; on a CPU, kernels hide it. So the tensors are so small that dispatch
is all there is: the steps of bench_training for one sequence of 4 tokens of 16 features, and one image of 8 x 8. A time
is that of the processor, of one thread. Calls are those of Python functions that `sys.setprofile` sees, once warm.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import bench_training as training
import harness
from harness import Bench, run

STEPS = {"torch": {"native derivatives": 1.25, "value_and_grad": 1.3}, "jax": 1.0, "tensorflow": 1.0}
CALLS_OF_A_STEP = 2.5  # those of the native one
BUDGET = {"numpy": 8, "torch": 10, "jax": 25, "tensorflow": 25}
MORE = {"torch": {"scatter_update": 15, "value_and_grad": 40, "hvp": 110, "custom gradient": 15, "its gradient": 70}}
DIFFERENTIATED = ("value_and_grad", "hvp", "custom gradient", "its gradient")
SIZE, WIDTH = 8, 16


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    multiop = bench.load()
    harness.clock = time.process_time
    for name, call in calls_of_ops(multiop, bench.tensor).items():
        limit = MORE.get(bench.backend, {}).get(name, None if name in DIFFERENTIATED else BUDGET[bench.backend])
        bench.note(f"{name}: calls", count_calls(call), limit, "calls")
    steps(bench, multiop)
    if bench.backend == "torch":
        blocks(bench, multiop)


def count_calls(call: Callable[[], Any], warm: int = 30) -> int:
    """Return how many Python functions run in a call, which has run before: TensorFlow's programs are made late."""
    for _ in range(warm):
        call()
    found = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found - 1  # `call` itself


def calls_of_ops(multiop: Any, tensor: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
    """Return one call for each row of the table."""
    ops, rows = multiop.ops, {}
    x, y, row = tensor(4, 8), tensor(4, 8, seed=1), tensor(8, seed=2)
    heads, image = tensor(1, 4, 2, 8), tensor(1, 8, 8, 3)
    kernel, bias, channels = tensor(3, 3, 3, 4), tensor(4), tensor(3)
    integers = {n: multiop.op_convert_to_tensor([k % 4 for k in range(n)], "int32") for n in (4, 8)}
    variance = ops.abs(channels) + 1
    cells = ops.reshape(integers[4], (4, 1))
    condition, columns = ops.greater(x, 0), ops.transpose(y)
    rows["add"] = lambda: ops.add(x, y)
    rows["matmul"] = lambda: ops.matmul(x, columns)
    rows["where"] = lambda: ops.where(condition, x, y)
    rows["concatenate"] = lambda: ops.concatenate([x, y], -1)
    rows["reshape"] = lambda: ops.reshape(x, (8, 4))
    rows["mean"] = lambda: ops.mean(x, -1)
    rows["sum"] = lambda: ops.sum(x, (0, 1))
    rows["split"] = lambda: ops.split(x, 2, -1)
    rows["softmax"] = lambda: ops.softmax(x)
    rows["gelu"] = lambda: ops.gelu(x, approximate=False)
    rows["silu"] = lambda: ops.silu(x)
    rows["layer_normalization"] = lambda: ops.layer_normalization(x, row, row)
    rows["group_normalization"] = lambda: ops.group_normalization(heads, 2, row, row)
    rows["rms_normalization"] = lambda: ops.rms_normalization(x, row)
    rows["batch_normalization_with_moments"] = lambda: ops.batch_normalization_with_moments(
        image, -1, channels, channels
    )
    rows["batch_normalization"] = lambda: ops.batch_normalization(image, channels, variance, -1, channels, channels)
    rows["dot_product_attention"] = lambda: ops.dot_product_attention(heads, heads, heads)
    rows["sparse_categorical_crossentropy"] = lambda: ops.sparse_categorical_crossentropy(integers[4], x, True)
    rows["categorical_crossentropy"] = lambda: ops.categorical_crossentropy(x, y, True)
    rows["binary_crossentropy"] = lambda: ops.binary_crossentropy(x, y, True)
    rows["conv"] = lambda: ops.conv(image, kernel, padding="same", bias=bias)
    rows["max_pool"] = lambda: ops.max_pool(image, 2)
    rows["average_pool"] = lambda: ops.average_pool(image, 2)
    rows["take"] = lambda: ops.take(x, integers[4], 0)
    rows["get_item"] = lambda: ops.get_item(x, (slice(1, 3), 2))
    rows["get_item of a tensor"] = lambda: ops.get_item(x, integers[4])
    rows["one_hot"] = lambda: ops.one_hot(integers[4], 8)
    rows["segment_sum"] = lambda: ops.segment_sum(x, integers[4], 4)
    rows["scatter_update"] = lambda: ops.scatter_update(x, cells, y)
    rows["dropout"] = lambda: multiop.random.dropout(x, 0.5, seed=1)
    rows["normal"] = lambda: multiop.random.normal((8,), seed=1)

    @multiop.op_custom_gradient
    def square(x: Any) -> Any:
        def rule(upstream: Any) -> Any:
            return upstream * 2 * x

        return x * x, rule

    total = ops.sum
    value_and_grad = multiop.value_and_grad(lambda x: total(x * x))
    of_rule = multiop.grad(lambda x: total(square(x)))
    rows["value_and_grad"] = lambda: value_and_grad(x)
    rows["hvp"] = lambda: multiop.hvp(lambda x: total(x * x * x), (x,), (y,))
    rows["custom gradient"] = lambda: square(x)
    rows["its gradient"] = lambda: of_rule(x)
    return rows


def steps(bench: Bench, multiop: Any) -> None:
    """Compare whole steps with native ones, in calls and in time."""
    import numpy as np

    native_ops, native_step = training.NATIVE[bench.backend]
    channels = "channels_first" if bench.backend == "torch" else "channels_last"
    ours = training.portable(multiop.ops, channels, True)
    images = (1, SIZE, SIZE, training.COLOURS) if channels == "channels_last" else (1, training.COLOURS, SIZE, SIZE)
    limits = STEPS[bench.backend]
    limits = limits if isinstance(limits, dict) else {"value_and_grad": limits}
    for name, network, shapes, inputs, targets, classes in (
        ("transformer", training.transformer, training.transformer_shapes(WIDTH), (1, 4, WIDTH), (1, 4), 100),
        ("convolutional", training.convolutional, training.convolutional_shapes(SIZE), images, (1,), training.CLASSES),
    ):
        p = {key: bench.tensor(*shape, seed=k) * shape[-1] ** -0.5 for k, (key, shape) in enumerate(shapes.items())}
        x, target = bench.tensor(*inputs, seed=99), np.random.default_rng(1).integers(0, classes, targets)
        target = multiop.op_convert_to_tensor(target.astype("int32"))
        given = {"native": (p, x, target)}
        native = native_step(network(native_ops()), False)
        if bench.backend == "torch":
            native = training.with_channels_first(native)
            given["native"] = training.channels_first(p), x, target.long()
        whose = {"value_and_grad": training.multiop_step, "native derivatives": native_step}
        for way, limit in limits.items():
            step = whose[way](network(ours), False)
            contenders = {
                "native": training.calling(native, given["native"]),
                "multiop": training.calling(step, (p, x, target)),
            }
            bench.compare(f"{name} step, {way}", contenders, limit, training.TOLERANCE)
            found = {who: count_calls(call) for who, call in contenders.items()}
            ratio, most = found["multiop"] / found["native"], CALLS_OF_A_STEP if bench.backend == "torch" else None
            bench.note(f"{name} step, {way}, calls", ratio, most, "x", calls=found)


def blocks(bench: Bench, multiop: Any) -> None:
    """Compare the calls of steps of other blocks with native ones, on PyTorch."""
    import torch

    def native_step(loss: Callable[..., Any]) -> Callable[..., Any]:
        def step(p: dict[str, Any], x: Any) -> Any:
            leaves = {key: value.detach().requires_grad_() for key, value in p.items()}
            y = loss(leaves, x)
            return y.detach(), torch.autograd.grad(y, list(leaves.values()))

        return step

    for name, (native, ours, shapes, inputs) in losses_of_blocks(multiop).items():
        p = {key: bench.tensor(*shape, seed=k) * 0.3 for k, (key, shape) in enumerate(shapes.items())}
        x, steps = bench.tensor(*inputs, seed=99), (native_step(native), multiop.value_and_grad(ours))
        calls = [training.calling(*each) for each in zip(steps, ((training.channels_first(p), x), (p, x)), strict=True)]
        value, same = (float(call()[0]) for call in calls)
        assert "dropout" in name or abs(value - same) < training.TOLERANCE * abs(value)
        counts = list(map(count_calls, calls))
        found, ratio = dict(zip(("native", "multiop"), counts, strict=True)), counts[1] / counts[0]
        bench.note(f"{name} step, value_and_grad, calls", ratio, CALLS_OF_A_STEP, "x", calls=found)


def losses_of_blocks(multiop: Any) -> dict[str, tuple[Any, Any, dict[str, tuple[int, ...]], tuple[int, ...]]]:
    """Return the native loss of each block, the same of ops, and the shapes of its parameters and of its operand."""
    import torch
    from torch.nn import functional

    ops, n, half = multiop.ops, WIDTH, WIDTH // 2
    source, target = torch.tensor([0, 1, 2, 3, 4, 5, 0, 2]), torch.tensor([1, 2, 3, 4, 5, 0, 3, 5])
    old, cell, rows = torch.ones(2, n), torch.ones(2, n), torch.tensor([[0, 1, 2], [3, 4, 5]])
    moment, frequencies = torch.tensor([3.0]), torch.exp(torch.arange(half) * -0.5)

    def vit(p: Any, x: Any) -> Any:
        h = functional.layer_norm(x, (n,), p["w1"], p["b1"])
        query, key, value = (h @ p["qkv"]).unflatten(-1, (3, 2, half)).permute(2, 0, 3, 1, 4)
        h = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(-2)
        x = x + h @ p["o"]
        h = functional.gelu(functional.layer_norm(x, (n,), p["w2"], p["b2"]) @ p["up"] + p["c"])
        return (x + h @ p["down"] + p["d"]).square().mean()

    def our_vit(p: Any, x: Any) -> Any:
        h = ops.layer_normalization(x, p["w1"], p["b1"], epsilon=1e-5)
        query, key, value = ops.split(ops.reshape(ops.matmul(h, p["qkv"]), (1, 4, 6, half)), 3, 2)
        x = ops.add(x, ops.matmul(ops.reshape(ops.dot_product_attention(query, key, value), (1, 4, n)), p["o"]))
        h = ops.add(ops.matmul(ops.layer_normalization(x, p["w2"], p["b2"], epsilon=1e-5), p["up"]), p["c"])
        h = ops.matmul(ops.gelu(h, approximate=False), p["down"])
        return ops.mean(ops.square(ops.add(ops.add(x, h), p["d"])))

    def unet(p: Any, x: Any) -> Any:
        h = functional.conv2d(x, p["k1"], padding=1)
        h = functional.silu(functional.group_norm(h, 4, p["w"], p["b"]))
        return functional.conv2d(functional.interpolate(h, scale_factor=2), p["k2"], padding=1).square().mean()

    def our_unet(p: Any, x: Any) -> Any:
        h = ops.conv(x, p["k1"], padding="same", data_format="channels_first")
        h = ops.silu(ops.group_normalization(h, 4, p["w"], p["b"], 1, 1e-5))
        h = ops.image_resize(h, (8, 8), "nearest", data_format="channels_first")
        h = ops.conv(h, p["k2"], padding="same", data_format="channels_first")
        return ops.mean(ops.square(h))

    def lstm(p: Any, x: Any) -> Any:
        into, forget, new, out = (x @ p["w"] + old @ p["u"] + p["b"]).chunk(4, -1)
        state = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(new)
        return (torch.sigmoid(out) * torch.tanh(state)).square().mean()

    def our_lstm(p: Any, x: Any) -> Any:
        gates = ops.add(ops.add(ops.matmul(x, p["w"]), ops.matmul(old, p["u"])), p["b"])
        into, forget, new, out = ops.split(gates, 4, -1)
        new = ops.multiply(ops.sigmoid(into), ops.tanh(new))
        state = ops.add(ops.multiply(ops.sigmoid(forget), cell), new)
        return ops.mean(ops.square(ops.multiply(ops.sigmoid(out), ops.tanh(state))))

    def mlp(p: Any, x: Any) -> Any:
        return (functional.dropout(torch.relu(x @ p["w"] + p["b"]), 0.5) @ p["v"]).square().mean()

    def our_mlp(p: Any, x: Any) -> Any:
        h = multiop.random.dropout(ops.relu(ops.add(ops.matmul(x, p["w"]), p["b"])), 0.5, seed=1)
        return ops.mean(ops.square(ops.matmul(h, p["v"])))

    def gnn(p: Any, x: Any) -> Any:
        messages = torch.zeros(6, n).index_add(0, target, x.index_select(0, source) @ p["w"])
        return torch.relu(messages + x @ p["u"]).square().mean()

    def our_gnn(p: Any, x: Any) -> Any:
        messages = ops.segment_sum(ops.matmul(ops.take(x, source, 0), p["w"]), target, 6)
        return ops.mean(ops.square(ops.relu(ops.add(messages, ops.matmul(x, p["u"])))))

    def diffusion(p: Any, x: Any) -> Any:
        angles = moment[:, None] * frequencies
        h = functional.silu(torch.cat([torch.sin(angles), torch.cos(angles)], -1) @ p["t1"] + p["c"]) @ p["t2"]
        y = functional.conv2d(functional.silu(functional.group_norm(x, 4, p["w"], p["b"])), p["k1"], padding=1)
        y = functional.conv2d(functional.silu(y + h[:, :, None, None]), p["k2"], padding=1)
        return (x + y).square().mean()

    def our_diffusion(p: Any, x: Any) -> Any:
        angles = ops.multiply(ops.expand_dims(moment, 1), frequencies)
        h = ops.matmul(ops.concatenate([ops.sin(angles), ops.cos(angles)], -1), p["t1"])
        h = ops.reshape(ops.matmul(ops.silu(ops.add(h, p["c"])), p["t2"]), (1, half, 1, 1))
        y = ops.silu(ops.group_normalization(x, 4, p["w"], p["b"], 1, 1e-5))
        y = ops.conv(y, p["k1"], padding="same", data_format="channels_first")
        y = ops.conv(ops.silu(ops.add(y, h)), p["k2"], padding="same", data_format="channels_first")
        return ops.mean(ops.square(ops.add(x, y)))

    def bag(p: Any, x: Any) -> Any:
        y = functional.embedding(rows, p["e"]).mean(1) @ p["w"]
        return (1 - functional.cosine_similarity(y, x, -1)).mean()

    def our_bag(p: Any, x: Any) -> Any:
        y = ops.normalize(ops.matmul(ops.mean(ops.take(p["e"], rows, 0), 1), p["w"]))
        return ops.mean(ops.subtract(1.0, ops.sum(ops.multiply(y, ops.normalize(x)), -1)))

    vectors = dict.fromkeys(("w1", "b1", "w2", "b2", "d"), (n,))
    of_vit = {**vectors, "qkv": (n, 3 * n), "o": (n, n), "up": (n, 4 * n), "c": (4 * n,), "down": (4 * n, n)}
    of_unet = {"k1": (3, 3, 8, 8), "w": (8,), "b": (8,), "k2": (3, 3, 8, 8)}
    of_diffusion = {**of_unet, "t1": (n, n), "c": (n,), "t2": (n, half)}
    return {
        "ViT block": (vit, our_vit, of_vit, (1, 4, n)),
        "UNet block": (unet, our_unet, of_unet, (1, 8, 4, 4)),
        "LSTM cell": (lstm, our_lstm, {"w": (n, 4 * n), "u": (n, 4 * n), "b": (4 * n,)}, (2, n)),
        "MLP with dropout": (mlp, our_mlp, {"w": (n, n), "b": (n,), "v": (n, 4)}, (2, n)),
        "GNN layer": (gnn, our_gnn, {"w": (n, n), "u": (n, n)}, (6, n)),
        "diffusion block": (diffusion, our_diffusion, of_diffusion, (1, 8, 4, 4)),
        "embedding bag": (bag, our_bag, {"e": (6, n), "w": (n, n)}, (2, n)),
    }


if __name__ == "__main__":
    run(["launch"], __doc__)
