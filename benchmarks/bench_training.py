"""Measure training steps, loss and gradients, eager and compiled, against the framework's own best spelling.

    python benchmarks/bench_training.py --backends torch

A transformer block with a loss (8 sequences of 64 tokens, 128 features, 4 heads) and a convolutional network of two
layers (16 images of 32 x 32); on PyTorch, the memory of an eager step at its peak, too. The native step holds images
and kernels in the layout that the framework likes best, and is differentiated and compiled by the framework; multiop's
by `value_and_grad` and `jit`; that of `keras.ops` by the framework.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any

from harness import KERAS, Bench, run

LIMITS = {"eager": 1.10, "compiled": 1.02}
MEMORY = 1.05
BATCH, STEPS, WIDTH, HEADS, WORDS = 8, 64, 128, 4, 100
IMAGES, SIZE, COLOURS, CLASSES = 16, 32, 3, 10
TOLERANCE = 1e-3


def convolutional_shapes(size: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the network's parameters, for images of `size` x `size`."""
    return {
        "kernel1": (3, 3, COLOURS, 16),
        "bias1": (16,),
        "kernel2": (3, 3, 16, 32),
        "bias2": (32,),
        "classes": (32 * (size // 4) ** 2, CLASSES),
        "classes_bias": (CLASSES,),
    }


def transformer_shapes(width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the block's parameters."""
    return {
        "scale1": (width,),
        "shift1": (width,),
        "mix": (width, 3 * width),
        "join": (width, width),
        "scale2": (width,),
        "shift2": (width,),
        "up": (width, 4 * width),
        "up_bias": (4 * width,),
        "down": (4 * width, width),
        "down_bias": (width,),
        "words": (width, WORDS),
    }


def transformer(ops: Any) -> Callable[..., Any]:
    """Return the loss of the block, written with what `ops` has."""

    def loss(p: Any, x: Any, target: Any) -> Any:
        batch, steps, width = x.shape
        h = ops.matmul(ops.normalized(x, p["scale1"], p["shift1"]), p["mix"])
        query, key, value = (ops.reshape(part, (batch, steps, HEADS, width // HEADS)) for part in ops.thirds(h))
        seen = ops.reshape(ops.attention(query, key, value), (batch, steps, width))
        x = x + ops.matmul(seen, p["join"])
        h = ops.gelu(ops.matmul(ops.normalized(x, p["scale2"], p["shift2"]), p["up"]) + p["up_bias"])
        x = x + ops.matmul(h, p["down"]) + p["down_bias"]
        return ops.crossentropy(target, ops.matmul(x, p["words"]))

    return loss


def convolutional(ops: Any) -> Callable[..., Any]:
    """Return the loss of the network, written with what `ops` has."""

    def loss(p: Any, x: Any, target: Any) -> Any:
        for layer in ("1", "2"):
            x = ops.pool(ops.relu(ops.convolution(x, p[f"kernel{layer}"], p[f"bias{layer}"])))
        x = ops.reshape(x, (x.shape[0], -1))
        return ops.crossentropy(target, ops.matmul(x, p["classes"]) + p["classes_bias"])

    return loss


def torch_ops() -> Any:
    import torch
    from torch.nn import functional

    def attention(query: Any, key: Any, value: Any) -> Any:
        heads_first = (x.transpose(1, 2) for x in (query, key, value))
        return functional.scaled_dot_product_attention(*heads_first).transpose(1, 2)

    return types.SimpleNamespace(
        matmul=torch.matmul,
        reshape=torch.reshape,
        normalized=lambda x, scale, shift: functional.layer_norm(x, x.shape[-1:], scale, shift, 1e-5),
        thirds=lambda x: torch.chunk(x, 3, -1),
        attention=attention,
        gelu=functional.gelu,
        relu=torch.relu,
        convolution=lambda x, kernel, bias: functional.conv2d(x, kernel, bias, padding=1),
        pool=lambda x: functional.max_pool2d(x, 2),
        crossentropy=lambda target, x: functional.cross_entropy(x.flatten(0, -2), target.flatten()),
    )


def jax_ops() -> Any:
    import jax
    import jax.numpy as jnp

    def normalized(x: Any, scale: Any, shift: Any) -> Any:
        mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift

    def convolution(x: Any, kernel: Any, bias: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout) + bias

    def crossentropy(target: Any, x: Any) -> Any:
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), target[..., None], -1))

    return types.SimpleNamespace(
        matmul=jnp.matmul,
        reshape=jnp.reshape,
        normalized=normalized,
        thirds=lambda x: jnp.split(x, 3, -1),
        attention=jax.nn.dot_product_attention,
        gelu=lambda x: jax.nn.gelu(x, approximate=False),
        relu=jax.nn.relu,
        convolution=convolution,
        pool=lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        crossentropy=crossentropy,
    )


def tensorflow_ops() -> Any:
    import tensorflow as tf

    def normalized(x: Any, scale: Any, shift: Any) -> Any:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, shift, scale, 1e-5)

    def attention(query: Any, key: Any, value: Any) -> Any:  # TensorFlow has no call of its own
        logits = tf.einsum("bthd,bshd->bhts", query, key) * query.shape[-1] ** -0.5
        return tf.einsum("bhts,bshd->bthd", tf.nn.softmax(logits), value)

    def crossentropy(target: Any, x: Any) -> Any:
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=x))

    return types.SimpleNamespace(
        matmul=tf.matmul,
        reshape=tf.reshape,
        normalized=normalized,
        thirds=lambda x: tf.split(x, 3, -1),
        attention=attention,
        gelu=tf.nn.gelu,
        relu=tf.nn.relu,
        convolution=lambda x, kernel, bias: tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), bias),
        pool=lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"),
        crossentropy=crossentropy,
    )


def portable(ops: Any, channels: str, takes_bias: bool) -> Any:
    """Return what the networks need, of `multiop.ops` or of `keras.ops`, whose convolution takes no bias."""

    def convolution(x: Any, kernel: Any, bias: Any) -> Any:
        if takes_bias:
            return ops.conv(x, kernel, padding="same", data_format=channels, bias=bias)
        bias = bias if channels == "channels_last" else ops.reshape(bias, (-1, 1, 1))
        return ops.conv(x, kernel, padding="same", data_format=channels) + bias

    return types.SimpleNamespace(
        matmul=ops.matmul,
        reshape=ops.reshape,
        normalized=lambda x, scale, shift: ops.layer_normalization(x, scale, shift, epsilon=1e-5),
        thirds=lambda x: ops.split(x, 3, -1),
        attention=ops.dot_product_attention,
        gelu=lambda x: ops.gelu(x, approximate=False),
        relu=ops.relu,
        convolution=convolution,
        pool=lambda x: ops.max_pool(x, 2, data_format=channels),
        crossentropy=lambda target, x: ops.mean(ops.sparse_categorical_crossentropy(target, x, from_logits=True)),
    )


def torch_step(loss: Any, compiled: bool) -> Callable[..., Any]:
    import torch

    loss = torch.compile(loss) if compiled else loss

    def step(p: Any, x: Any, target: Any) -> Any:
        p = {key: t.detach().requires_grad_() for key, t in p.items()}
        y = loss(p, x, target)
        return y.detach(), dict(zip(p, torch.autograd.grad(y, list(p.values())), strict=True))

    return step


def jax_step(loss: Any, compiled: bool) -> Callable[..., Any]:
    import jax

    step = jax.value_and_grad(loss)
    return jax.jit(step) if compiled else step


def tensorflow_step(loss: Any, compiled: bool) -> Callable[..., Any]:
    import tensorflow as tf

    def step(p: Any, x: Any, target: Any) -> Any:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(p)
            y = loss(p, x, target)
        return y, tape.gradient(y, p)

    return tf.function(step, autograph=False) if compiled else step


def multiop_step(loss: Any, compiled: bool) -> Callable[..., Any]:
    import multiop

    step = multiop.value_and_grad(loss)
    return multiop.jit(step) if compiled else step


NATIVE = {
    "torch": (torch_ops, torch_step),
    "jax": (jax_ops, jax_step),
    "tensorflow": (tensorflow_ops, tensorflow_step),
}


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    multiop = bench.load()
    native_ops, native_step = NATIVE[bench.backend]
    channels = "channels_first" if bench.backend == "torch" else "channels_last"
    whose = {"native": (native_ops(), native_step), "multiop": (portable(multiop.ops, channels, True), multiop_step)}
    if bench.keras is not None:
        whose[KERAS] = (portable(bench.keras.ops, channels, False), native_step)
    images = (IMAGES, SIZE, SIZE, COLOURS) if channels == "channels_last" else (IMAGES, COLOURS, SIZE, SIZE)
    for name, network, shapes, inputs, targets, classes in (
        ("transformer block", transformer, transformer_shapes(WIDTH), (BATCH, STEPS, WIDTH), (BATCH, STEPS), WORDS),
        ("convolutional network", convolutional, convolutional_shapes(SIZE), images, (IMAGES,), CLASSES),
    ):
        p = {key: bench.tensor(*shape, seed=k) * shape[-1] ** -0.5 for k, (key, shape) in enumerate(shapes.items())}
        x = bench.tensor(*inputs, seed=99)
        target = multiop.op_cast(multiop.op_abs(bench.tensor(*targets, seed=100)) * 7, "int32") % classes
        for mode, limit in LIMITS.items():
            steps = {who: step(network(ops), mode == "compiled") for who, (ops, step) in whose.items()}
            contenders = {who: calling(step, (p, x, target)) for who, step in steps.items()}
            if bench.backend == "torch":
                contenders["native"] = calling(
                    with_channels_first(steps["native"]), (channels_first(p), x, target.long())
                )
            bench.compare(f"{name}, {mode}", contenders, limit, TOLERANCE)
            if bench.backend == "torch" and mode == "eager":
                held = {who: peak(call) for who, call in contenders.items()}
                bench.note(f"{name}, {mode}, peak memory", held["multiop"] / held["native"], MEMORY, "x", bytes=held)


def peak(call: Callable[[], Any]) -> int:
    """Return the most bytes that PyTorch holds during a call, beyond what it held before."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    result = call()
    if (result[0] if isinstance(result, tuple) else result).device.type != "cpu":
        before = torch.accelerator.memory_allocated()
        torch.accelerator.reset_peak_memory_stats()
        call()
        torch.accelerator.synchronize()
        return int(torch.accelerator.max_memory_allocated() - before)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        call()
    events = [event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    return max(itertools.accumulate(event.nbytes() for event in events), default=0)


def channels_first(p: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with the kernels as PyTorch likes them."""
    return {key: t.permute(3, 2, 0, 1).contiguous() if t.ndim == 4 else t for key, t in p.items()}


def with_channels_first(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return `step` with the gradients of kernels turned back, which moves no data."""

    def run(p: Any, x: Any, target: Any) -> Any:
        y, grads = step(p, x, target)
        return y, {key: t.permute(2, 3, 1, 0) if t.ndim == 4 else t for key, t in grads.items()}

    return run


def calling(step: Callable[..., Any], args: Any) -> Callable[[], Any]:
    return lambda: step(*args)


if __name__ == "__main__":
    run(["training"], __doc__)
