"""Measure the domain ops at realistic sizes against the framework's own call: forward, and forward with backward.

    python benchmarks/bench_domain.py                      # every installed backend, one process each
    python benchmarks/bench_domain.py --backends torch --json results.json

Both sides hold their data in the layout that the framework likes best, and both are differentiated by the framework, so
that a ratio shows the op alone. How contenders take turns is told in `bench_core.py`.
"""

from __future__ import annotations

import gc
import os
import types
from collections.abc import Callable
from typing import Any

from bench_core import calling, interleave, run_all

# what each takes, and how it is scaled
SIZES = {
    "convolution": {"last": [(8, 32, 32, 16), (3, 3, 16, 32)], "first": [(8, 16, 32, 32), (3, 3, 16, 32)]},
    "attention": [(4, 128, 4, 32)] * 3,
    "matmul": [(512, 512)] * 2,
    "FFT": [(64, 4096)],
    "SVD": [(32, 24, 24)],
    "resize": {"last": [(8, 64, 64, 3)], "first": [(8, 3, 64, 64)]},
}


def torch_contenders() -> Any:
    import torch
    from torch.nn import functional

    def attention(query: Any, key: Any, value: Any) -> Any:
        heads_first = (x.transpose(1, 2) for x in (query, key, value))
        return functional.scaled_dot_product_attention(*heads_first).transpose(1, 2)

    def rfft(x: Any) -> Any:
        y = torch.fft.rfft(x)
        return y.real + y.imag

    def both_ways(f: Any) -> Any:
        def run(*xs: Any) -> Any:
            xs = [x.detach().requires_grad_() for x in xs]
            return torch.autograd.grad(f(*xs).sum(), xs)

        return run

    ops = {
        "convolution": lambda x, kernel: functional.conv2d(x, kernel.permute(3, 2, 0, 1), padding=1),
        "attention": attention,
        "matmul": torch.matmul,
        "FFT": rfft,
        "SVD": lambda x: torch.linalg.svd(x, full_matrices=False)[1],
        "resize": lambda x: functional.interpolate(x, (128, 128), mode="bilinear", align_corners=False),
    }
    return types.SimpleNamespace(ops=ops, layout="first", modes={"eager": lambda f: f}, both_ways=both_ways, wait=None)


def jax_contenders() -> Any:
    import jax
    import jax.numpy as jnp

    def convolution(x: Any, kernel: Any) -> Any:
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def rfft(x: Any) -> Any:
        y = jnp.fft.rfft(x)
        return jnp.real(y) + jnp.imag(y)

    def both_ways(f: Any) -> Any:
        return lambda *xs: jax.grad(lambda *xs: f(*xs).sum(), tuple(range(len(xs))))(*xs)

    ops = {
        "convolution": convolution,
        "attention": jax.nn.dot_product_attention,
        "matmul": jnp.matmul,
        "FFT": rfft,
        "SVD": lambda x: jnp.linalg.svd(x, full_matrices=False)[1],
        "resize": lambda x: jax.image.resize(x, (8, 128, 128, 3), "bilinear", antialias=False),
    }
    modes = {"eager": lambda f: f, "jit": jax.jit}
    return types.SimpleNamespace(ops=ops, layout="last", modes=modes, both_ways=both_ways, wait=jax.block_until_ready)


def tensorflow_contenders() -> Any:
    import tensorflow as tf

    def attention(query: Any, key: Any, value: Any) -> Any:  # TensorFlow has no call of its own
        logits = tf.einsum("bthd,bshd->bhts", query, key) * query.shape[-1] ** -0.5
        return tf.einsum("bhts,bshd->bthd", tf.nn.softmax(logits), value)

    def rfft(x: Any) -> Any:
        y = tf.signal.rfft(x)
        return tf.math.real(y) + tf.math.imag(y)

    def both_ways(f: Any) -> Any:
        def run(*xs: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(xs)
                loss = tf.reduce_sum(f(*xs))
            return tape.gradient(loss, xs)

        return run

    ops = {
        "convolution": lambda x, kernel: tf.nn.conv2d(x, kernel, 1, "SAME"),
        "attention": attention,
        "matmul": tf.matmul,
        "FFT": rfft,
        "SVD": lambda x: tf.linalg.svd(x)[0],
        "resize": lambda x: tf.image.resize(x, (128, 128)),
    }
    modes = {"eager": lambda f: f, "tf.function": lambda f: tf.function(f, autograph=False)}
    return types.SimpleNamespace(ops=ops, layout="last", modes=modes, both_ways=both_ways, wait=None)


NATIVE = {"torch": torch_contenders, "jax": jax_contenders, "tensorflow": tensorflow_contenders}


def ours(multiop: Any, layout: str) -> dict[str, Callable[..., Any]]:
    """Return the same in multiop ops."""
    channels = f"channels_{layout}"

    def rfft(x: Any) -> Any:
        real, imag = multiop.op_rfft(x)
        return multiop.op_add(real, imag)

    return {
        "convolution": lambda x, kernel: multiop.op_conv(x, kernel, padding="same", data_format=channels),
        "attention": multiop.op_dot_product_attention,
        "matmul": multiop.op_matmul,
        "FFT": rfft,
        "SVD": lambda x: multiop.op_svd(x, full_matrices=False)[1],
        "resize": lambda x: multiop.op_image_resize(x, (128, 128), data_format=channels),
    }


def measure(backend: str, rounds: int) -> dict[str, Any]:
    """Measure one backend in this process."""
    os.environ.update(MULTIOP_BACKEND=backend, TF_CPP_MIN_LOG_LEVEL="3")
    native = NATIVE[backend]()
    import numpy as np

    import multiop

    rng = np.random.default_rng(0)
    gc.collect()
    gc.freeze()  # the frameworks' own objects, which would take a second to look through between two rounds
    rows = []
    for name, f in ours(multiop, native.layout).items():
        sizes = SIZES[name] if isinstance(SIZES[name], list) else SIZES[name][native.layout]
        args = [multiop.op_convert_to_tensor(rng.normal(size=size).astype("float32")) for size in sizes]
        pair = {"native": native.ops[name], "multiop": f}
        for mode, prepare in native.modes.items():
            for ways, turn in (("forward", lambda f: f), ("both ways", native.both_ways)):
                runs = {who: prepare(turn(one)) for who, one in pair.items()}
                results = {who: multiop_leaves(multiop, run(*args)) for who, run in runs.items()}
                for found, expected in zip(results["multiop"], results["native"], strict=True):
                    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
                wait = native.wait or (lambda y: y)
                contenders = {who: calling(run, args, wait) for who, run in runs.items()}
                rows.append({"name": f"{name}, {ways}, {mode}", **interleave(contenders, rounds)})
    return {"backend": backend, "versions": {backend: multiop._registry.load(backend).version}, "rows": rows}


def multiop_leaves(multiop: Any, results: Any) -> list[Any]:
    results = results if isinstance(results, (tuple, list)) else [results]
    return [multiop.op_convert_to_numpy(x) for x in results]


if __name__ == "__main__":
    run_all(__file__, __doc__, measure, rounds=21)
