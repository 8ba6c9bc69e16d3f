"""Measure `multiop.random` against the framework's own generator: 10^6 numbers, compiled.

    python benchmarks/bench_random.py                      # every installed backend, one process each
    python benchmarks/bench_random.py --backends torch --json results.json

Both sides take a key as an argument, except PyTorch's own generator, which has a state. They draw different numbers,
so only means and standard deviations are checked to be the same. Run it on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Bench, arrays, interleave, run

LIMIT = 2.0
N = 10**6


def torch_draws() -> tuple[dict[str, Any], Callable[[Any], Any], Any]:
    import torch

    draws = {
        "uniform": lambda _: torch.rand(N),
        "normal": lambda _: torch.randn(N),
        "randint, 1000": lambda _: torch.randint(0, 1000, (N,), dtype=torch.int32),
        "randint, 10^6": lambda _: torch.randint(0, 10**6, (N,), dtype=torch.int32),
        "gamma": lambda _: torch.distributions.Gamma(torch.full((N,), 1.5), 1.0).sample(),
        "binomial": lambda _: torch.binomial(torch.full((N,), 100.0), torch.full((N,), 0.3)),
        "dropout": lambda _: torch.nn.functional.dropout(torch.ones(N), 0.5),
    }
    return draws, torch.compile, None


def jax_draws() -> tuple[dict[str, Any], Callable[[Any], Any], Any]:
    import jax
    import jax.numpy as jnp

    draws = {
        "uniform": lambda key: jax.random.uniform(key, (N,)),
        "normal": lambda key: jax.random.normal(key, (N,)),
        "truncated_normal": lambda key: jax.random.truncated_normal(key, -2.0, 2.0, (N,)),
        "randint, 1000": lambda key: jax.random.randint(key, (N,), 0, 1000),
        "randint, 10^6": lambda key: jax.random.randint(key, (N,), 0, 10**6),
        "gamma": lambda key: jax.random.gamma(key, 1.5, (N,)),
        "binomial": lambda key: jax.random.binomial(key, 100.0, 0.3, (N,)),
        "dropout": lambda key: jnp.where(jax.random.bernoulli(key, 0.5, (N,)), 2.0, 0.0),
    }
    return draws, jax.jit, jax.random.key(3)


def tensorflow_draws() -> tuple[dict[str, Any], Callable[[Any], Any], Any]:
    import tensorflow as tf

    draws = {
        "uniform": lambda seed: tf.random.stateless_uniform([N], seed),
        "normal": lambda seed: tf.random.stateless_normal([N], seed),
        "truncated_normal": lambda seed: tf.random.stateless_truncated_normal([N], seed),
        "randint, 1000": lambda seed: tf.random.stateless_uniform([N], seed, 0, 1000, tf.int32),
        "randint, 10^6": lambda seed: tf.random.stateless_uniform([N], seed, 0, 10**6, tf.int32),
        "gamma": lambda seed: tf.random.stateless_gamma([N], seed, 1.5),
        "binomial": lambda seed: tf.random.stateless_binomial([N], seed, 100.0, 0.3, tf.float32),
        "dropout": lambda seed: tf.nn.experimental.stateless_dropout(tf.ones([N]), 0.5, seed),
    }
    return draws, lambda f: tf.function(f, autograph=False), tf.constant([3, 0])


NATIVE = {"torch": torch_draws, "jax": jax_draws, "tensorflow": tensorflow_draws}


def ours(multiop: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the draws of multiop."""
    random = multiop.random
    return {
        "uniform": lambda key: random.uniform((N,), seed=key),
        "normal": lambda key: random.normal((N,), seed=key),
        "truncated_normal": lambda key: random.truncated_normal((N,), seed=key),
        "randint, 1000": lambda key: random.randint((N,), 0, 1000, seed=key),
        "randint, 10^6": lambda key: random.randint((N,), 0, 10**6, seed=key),
        "gamma": lambda key: random.gamma((N,), 1.5, seed=key),
        "binomial": lambda key: random.binomial((N,), 100, 0.3, seed=key),
        "dropout": lambda key: random.dropout(multiop.op_ones(N), 0.5, seed=key),
    }


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    multiop = bench.load()
    draws, compiled, seed = NATIVE[bench.backend]()
    key, found = multiop.random.key(3), ours(multiop)
    for name, native in draws.items():
        contenders = {"native": calling(compiled(native), seed), "multiop": calling(multiop.jit(found[name]), key)}
        x, y = (np.asarray(arrays(call())[0], "float64") for call in contenders.values())
        assert abs(x.mean() - y.mean()) < 0.01 * y.std(), name
        assert abs(x.std() / y.std() - 1) < 0.01, name
        times = interleave(contenders, bench.rounds, bench.wait)
        bench.note(f"{name}, compiled", times["ratio"]["multiop"][1], LIMIT, "x", **times)


def calling(f: Callable[[Any], Any], key: Any) -> Callable[[], Any]:
    return lambda: f(key)


if __name__ == "__main__":
    run(["random"], __doc__)
