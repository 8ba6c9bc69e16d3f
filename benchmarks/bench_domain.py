"""Measure the domain ops at realistic sizes against the framework's own call: forward, and forward with backward.

    python benchmarks/bench_domain.py                      # every installed backend, one process each
    python benchmarks/bench_domain.py --backends torch --json results.json

Both sides hold their data in the layout that the framework likes best, and both are differentiated by the framework, so
that a ratio shows the op alone. TensorFlow has no attention of its own; there it is two einsums and a softmax.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from harness import KERAS, Bench, run

LIMIT = 1.05

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
        def run(upstream: Any, *xs: Any) -> Any:
            xs = [x.detach().requires_grad_() for x in xs]
            y = f(*xs)
            return y, torch.autograd.grad(y, xs, upstream)

        return run

    ops = {
        "convolution": lambda x, kernel: functional.conv2d(x, kernel.permute(3, 2, 0, 1), padding=1),
        "attention": attention,
        "matmul": torch.matmul,
        "FFT": rfft,
        "SVD": lambda x: torch.linalg.svd(x, full_matrices=False)[1],
        "resize": lambda x: functional.interpolate(x, (128, 128), mode="bilinear", align_corners=False),
    }
    modes = {"eager": lambda f: f}
    return types.SimpleNamespace(ops=ops, layout="first", modes=modes, both_ways=both_ways, compiles=torch.compile)


def jax_contenders() -> Any:
    import jax
    import jax.numpy as jnp

    def convolution(x: Any, kernel: Any) -> Any:
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def rfft(x: Any) -> Any:
        y = jnp.fft.rfft(x)
        return jnp.real(y) + jnp.imag(y)

    def both_ways(f: Any) -> Any:
        def run(upstream: Any, *xs: Any) -> Any:
            y, pull = jax.vjp(f, *xs)
            return y, pull(upstream)

        return run

    ops = {
        "convolution": convolution,
        "attention": jax.nn.dot_product_attention,
        "matmul": jnp.matmul,
        "FFT": rfft,
        "SVD": lambda x: jnp.linalg.svd(x, full_matrices=False)[1],
        "resize": lambda x: jax.image.resize(x, (8, 128, 128, 3), "bilinear", antialias=False),
    }
    modes = {"eager": lambda f: f, "jit": jax.jit}
    return types.SimpleNamespace(ops=ops, layout="last", modes=modes, both_ways=both_ways, compiles=jax.jit)


def tensorflow_contenders() -> Any:
    import tensorflow as tf

    def attention(query: Any, key: Any, value: Any) -> Any:  # TensorFlow has no call of its own
        logits = tf.einsum("bthd,bshd->bhts", query, key) * query.shape[-1] ** -0.5
        return tf.einsum("bhts,bshd->bthd", tf.nn.softmax(logits), value)

    def rfft(x: Any) -> Any:
        y = tf.signal.rfft(x)
        return tf.math.real(y) + tf.math.imag(y)

    def both_ways(f: Any) -> Any:
        def run(upstream: Any, *xs: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(xs)
                y = f(*xs)
            return y, tape.gradient(y, xs, upstream)

        return run

    ops = {
        "convolution": lambda x, kernel: tf.nn.conv2d(x, kernel, 1, "SAME"),
        "attention": attention,
        "matmul": tf.matmul,
        "FFT": rfft,
        "SVD": lambda x: tf.linalg.svd(x)[0],
        "resize": lambda x: tf.image.resize(x, (128, 128)),
    }

    def compiles(f: Any) -> Any:
        return tf.function(f, autograph=False)

    modes = {"eager": lambda f: f, "tf.function": compiles}
    return types.SimpleNamespace(ops=ops, layout="last", modes=modes, both_ways=both_ways, compiles=compiles)


NATIVE = {"torch": torch_contenders, "jax": jax_contenders, "tensorflow": tensorflow_contenders}


def ours(multiop: Any, channels: str) -> dict[str, Callable[..., Any]]:
    """Return the same in multiop ops."""

    def rfft(x: Any) -> Any:
        real, imag = multiop.op_rfft(x)
        return multiop.op_add(real, imag)

    def attention(query: Any, key: Any, value: Any) -> Any:  # tf.function binds all the options of an op at each call
        return multiop.op_dot_product_attention(query, key, value)

    return {
        "convolution": lambda x, kernel: multiop.op_conv(x, kernel, padding="same", data_format=channels),
        "attention": attention,
        "matmul": multiop.op_matmul,
        "FFT": rfft,
        "SVD": lambda x: multiop.op_svd(x, full_matrices=False)[1],
        "resize": lambda x: multiop.op_image_resize(x, (128, 128), data_format=channels),
    }


def keras_contenders(ops: Any, channels: str) -> dict[str, Callable[..., Any]]:
    """Return the same in keras.ops."""

    def rfft(x: Any) -> Any:
        real, imag = ops.rfft(x)
        return ops.add(real, imag)

    return {
        "convolution": lambda x, kernel: ops.conv(x, kernel, padding="same", data_format=channels),
        "attention": ops.dot_product_attention,
        "matmul": ops.matmul,
        "FFT": rfft,
        "SVD": lambda x: ops.svd(x, full_matrices=False)[1],
        "resize": lambda x: ops.image.resize(x, (128, 128), data_format=channels),
    }


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    multiop = bench.load()
    native = NATIVE[bench.backend]()
    whose = {"native": native.ops, "multiop": ours(multiop, f"channels_{native.layout}")}
    if bench.keras is not None:
        whose[KERAS] = keras_contenders(bench.keras.ops, f"channels_{native.layout}")
    for name in native.ops:
        sizes = SIZES[name] if isinstance(SIZES[name], list) else SIZES[name][native.layout]
        args = [bench.tensor(*size, seed=k) for k, size in enumerate(sizes)]
        upstream = bench.tensor(*native.ops[name](*args).shape, seed=len(args))
        for mode, prepare in native.modes.items():
            for ways, turn, given in (
                ("forward", lambda f: f, args),
                ("both ways", native.both_ways, [upstream, *args]),
            ):
                contenders = {who: calling(prepare(turn(of[name])), given) for who, of in whose.items()}
                bench.compare(f"{name}, {ways}, {mode}", contenders, LIMIT, 1e-3)


def calling(f: Callable[..., Any], args: Any) -> Callable[[], Any]:
    return lambda: f(*args)


if __name__ == "__main__":
    run(["domain"], __doc__)
