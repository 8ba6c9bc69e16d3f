"""Compute what a framework does by itself, row -> digest of the results: alone, or after multiop was used.

python tests/loaded/tables.py torch            300 rows, alone
python tests/loaded/tables.py torch --loaded --rows 40
python tests/loaded/tables.py torch --then-loaded --rows 20     both, in one process
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib
import importlib.util
import json
import os
import sys
import types
import unittest
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
os.environ["TF_NUM_INTRAOP_THREADS"] = "1"  # sums are in one order
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"


def digest(value):
    """Return a short text that is the same for the same numbers, in the same dtypes and shapes."""
    made = hashlib.sha256()

    def add(x):
        if isinstance(x, (list, tuple)):
            made.update(f"{len(x)}".encode())
            for each in x:
                add(each)
        elif isinstance(x, dict):
            add(sorted(x.items()))
        elif x is None or isinstance(x, str):
            made.update(repr(x).encode())
        else:
            array = np.asarray(x)
            made.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())

    add(value)
    return made.hexdigest()[:16]


# JAX: from its documentation


def rows_of_jax():
    import jax
    import jax.numpy as jnp

    def given(dtype, *shape):
        numbers = np.arange(1, 1 + int(np.prod(shape))).reshape(shape) % 5 - 1
        return jnp.asarray(numbers, "float32").astype(dtype) if shape else jnp.asarray(2.0).astype(dtype)

    floats = ("float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "complex64")
    ints = ("int2", "int4", "uint4", "int8", "uint8", "int32")
    single = [
        "abs",
        "exp",
        "exp2",
        "expm1",
        "log1p",
        "sinh",
        "cosh",
        "tanh",
        "sin",
        "cos",
        "sqrt",
        "square",
        "negative",
        "sign",
        "cbrt",
        "floor",
        "isnan",
    ]
    for name in single:
        for dtype in (*floats, "int4", "int32"):
            yield f"jnp.{name} {dtype}", lambda name=name, d=dtype: getattr(jnp, name)(given(d, 2, 3))
    for name in ["add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "equal", "less"]:
        for dtype in floats + ints:
            yield f"jnp.{name} {dtype}", lambda name=name, d=dtype: getattr(jnp, name)(given(d, 2, 3), given(d, 3))
    for name in ["sum", "prod", "max", "min"]:
        for dtype in floats + ints:
            for shape in ((2, 3), (1, 1, 1, 1, 1, 1, 2)):
                yield (
                    f"jnp.{name} {dtype} {len(shape)}",
                    lambda name=name, d=dtype, s=shape: getattr(jnp, name)(given(d, *s)),
                )
    for k in (-2, 2, 3, 5):
        for dtype in ("float32", "bfloat16", "int8", "int32", "complex64"):
            yield f"integer_pow {k} {dtype}", lambda k=k, d=dtype: jax.lax.integer_pow(given(d, 2, 2), k)
    for start in floats + ints:
        for end in floats + ints:
            if start != end:
                yield f"{start} to {end}", lambda a=start, b=end: given(a, 2, 3).astype(b)
    for dtype in floats + ints:
        yield f"matmul {dtype}", lambda d=dtype: given(d, 4, 2) @ given(d, 2, 3)
        yield f"einsum {dtype}", lambda d=dtype: jnp.einsum("bij,bjk->bik", given(d, 2, 3, 2), given(d, 2, 2, 3))
        yield f"set {dtype}", lambda d=dtype: given(d, 4).at[1:3].set(given(d, 2))
    yield from _programs_of_jax(jax, jnp, given)


def _programs_of_jax(jax, jnp, given):
    import jax.export
    from jax import lax
    from jax.experimental import checkify, pallas
    from jax.sharding import NamedSharding, PartitionSpec

    mesh = jax.sharding.Mesh(jax.devices()[:2], ("i",))

    def sharded(f, *shape):
        return f(jax.device_put(given("float32", *shape), NamedSharding(mesh, PartitionSpec("i"))))

    def exported(f, sizes, *shape):
        spec = jax.ShapeDtypeStruct(jax.export.symbolic_shape(sizes), "float32")
        return jax.export.export(jax.jit(f))(spec).call(given("float32", *shape))

    def doubled(x):
        def kernel(x, y):
            y[...] = 2 * x[...] ** 3

        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pallas.pallas_call(kernel, out_shape=shape, interpret=True)(x)

    def checked(x):
        error, y = checkify.checkify(lambda x: jnp.sqrt(x) ** 5 + 1 / x, errors=checkify.float_checks)(x)
        return y, str(error.get())

    scan = functools.partial(lax.scan, lambda c, x: (c * x + 1, c), 1.0)
    mapped = jax.shard_map(
        lambda x: lax.psum(jnp.max(x, 0), "i"), mesh=mesh, in_specs=PartitionSpec("i"), out_specs=PartitionSpec()
    )
    x = given("float32", 4)
    for name in ["max", "min", "prod", "sum"]:
        yield f"sharded {name}", lambda name=name: sharded(getattr(jnp, name), 4, 1, 1, 1, 1, 1, 2)
    yield "shard_map", lambda: mapped(given("float32", 4, 3))
    yield "scan", lambda: scan(x)
    yield "grad of scan", lambda: jax.grad(lambda x: scan(x)[0])(x)
    yield "while", lambda: lax.while_loop(lambda c: c < 50, lambda c: c**2 + 1, 2)
    yield "fori", lambda: lax.fori_loop(0, 4, lambda i, c: c * i + 1, x)
    yield "cond", lambda: jax.jit(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x))(x)
    yield "switch", lambda: lax.switch(1, [jnp.exp, jnp.sinh, jnp.cosh], x)
    yield "map", lambda: lax.map(lambda x: x**3, x)
    yield "exported scan", lambda: exported(lambda x: lax.scan(lambda c, _: (c + 1, c), x, None, length=3), "b", 3)
    yield "exported, two sizes", lambda: exported(lambda x: jnp.max(x**4, 1), "a, b", 2, 3)
    yield "exported gamma", lambda: exported(lambda x: jax.random.gamma(jax.random.key(0), abs(x) + 1), "b", 3)
    yield "pallas", lambda: doubled(x)
    yield "checkify", lambda: checked(x)
    yield "hessian", lambda: jax.hessian(lambda x: jnp.sum(jnp.exp(x) ** 3))(x)
    yield "jvp of vmap", lambda: jax.jvp(jax.vmap(lambda x: jnp.sinh(x) ** 5), (x,), (x,))
    yield "vmap of max", lambda: jax.vmap(jax.grad(jnp.max))(given("float32", 3, 4))
    yield "vmap int4", lambda: jax.vmap(lambda x: x * x)(given("int4", 2, 2))
    yield "checkpoint", lambda: jax.grad(jax.checkpoint(lambda x: jnp.sum(jnp.sin(x) ** 3)))(x)
    yield "associative_scan", lambda: lax.associative_scan(jnp.multiply, x)
    yield "precision", lambda: jnp.dot(jnp.ones((4, 4)), jnp.ones((4, 4)), precision="TF32_TF32_F32")
    yield "float times complex", lambda: jnp.ones((70000, 2)) @ jnp.ones((2, 3), "complex64")
    yield "preferred", lambda: lax.dot(given("int8", 3, 2), given("int8", 2, 3), preferred_element_type="int32")
    yield "mul out_dtype", lambda: lax.mul_p.bind(given("int8", 2), given("int8", 2), out_dtype=np.dtype("int32"))
    yield "cholesky", lambda: jnp.linalg.cholesky(jnp.eye(3) * 4 + 1)
    yield "fft", lambda: jnp.fft.fft(x)
    yield "sort", lambda: jnp.sort(given("bfloat16", 3, 4))
    yield "conv", lambda: jnp.convolve(x, x)
    yield "random", lambda: jax.random.normal(jax.random.key(3), (3,))
    yield "debug_nans", lambda: jax.jit(lambda x: jnp.log(-jnp.abs(x) - 1))(x)


# PyTorch: the samples of its own tests


def rows_of_torch():
    import torch

    # what the tests of PyTorch are made of, and their samples do not use
    if "expecttest" not in sys.modules and not importlib.util.find_spec("expecttest"):
        sys.modules["expecttest"] = types.ModuleType("expecttest")
        sys.modules["expecttest"].TestCase = unittest.TestCase
    from torch.testing._internal.common_methods_invocations import op_db

    torch.set_num_threads(1)
    passed_over = ("empty", "_batch_norm_with_update", "linalg.svd", "svd", "pca_lowrank", "lowrank", "geqrf")
    entries = sorted(op_db, key=lambda entry: (entry.name, entry.variant_test_name))
    for entry in entries:
        if torch.float32 in entry.dtypes and not any(part in entry.name for part in passed_over):
            yield f"{entry.name} {entry.variant_test_name}".strip(), lambda entry=entry: _sample_of_torch(torch, entry)


def _sample_of_torch(torch, entry):
    torch.manual_seed(0)
    sample = next(iter(entry.sample_inputs("cpu", torch.float32, requires_grad=entry.supports_autograd)))
    torch.manual_seed(0)
    found = entry.op(sample.input, *sample.args, **sample.kwargs)
    outputs = [y for y in torch.utils._pytree.tree_leaves(found) if isinstance(y, torch.Tensor)]
    needed = [y for y in outputs if y.requires_grad and y.is_floating_point()]
    inputs = [x for x in torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
              if isinstance(x, torch.Tensor) and x.requires_grad]  # fmt: skip
    grads = torch.autograd.grad([y.sum() for y in needed], inputs, allow_unused=True) if needed and inputs else ()
    read = [None if y is None else y.detach().to_dense().resolve_conj().resolve_neg() for y in (*outputs, *grads)]
    return [None if y is None else (y.float() if y.dtype == torch.bfloat16 else y).numpy() for y in read]


# TensorFlow and Keras


def rows_of_tensorflow():
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import tensorflow as tf

    names = "abs acosh asinh atan cos cosh erf exp expm1 floor lgamma log1p log_sigmoid negative reciprocal_no_nan"
    names += " rsqrt sigmoid sign sin sinh softplus softsign sqrt square tan tanh zero_fraction cumsum cumprod"
    names += " reduce_sum reduce_prod reduce_max reduce_min reduce_mean reduce_std reduce_logsumexp l2_normalize"
    for name in names.split():
        f = getattr(tf.math, name)
        x = tf.constant([[1.25, 2.5, 3.0], [1.5, 2.0, 4.0]])
        yield f"tf.math.{name}", lambda f=f, x=x: f(x)
        yield f"gradient of {name}", lambda f=f, x=x: _slope(tf, f, x)
        yield f"tf.function of {name}", lambda f=f, x=x: _slope(tf, tf.function(f), x)
    for name in ["sin", "exp", "tanh", "softplus", "square", "reduce_max", "cumsum"]:
        f = getattr(tf.math, name)
        yield f"vectorized_map of {name}", lambda f=f, x=x: tf.vectorized_map(f, x)
        yield f"accumulator of {name}", lambda f=f, x=x: _tangent(tf, f, x)
    names = "relu gelu silu softmax log_softmax elu selu hard_sigmoid swish erf logsumexp sort argmax cumsum cumprod"
    names += " diff flip mean var std median sum prod max min any all transpose isnan sign round exp2 cbrt"
    for name in names.split():
        f = getattr(keras.ops, name)
        yield f"keras.ops.{name}", lambda f=f, x=x: f(x)
        if name not in ("argmax", "any", "all", "isnan"):
            yield f"gradient of keras.ops.{name}", lambda f=f, x=x: _slope(tf, f, x)
    yield from _programs_of_tensorflow(tf, keras, x)


def _slope(tf, f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return y, tape.gradient(y, x)


def _tangent(tf, f, x):
    with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
        y = f(x)
    return accumulator.jvp(y)


def _programs_of_tensorflow(tf, keras, x):
    @tf.custom_gradient
    def own(x):
        return x * x, lambda upstream: 7 * upstream

    def fit():
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "gelu"), keras.layers.Dense(1)])
        model.compile("adam", "mse")
        return model.fit(x, tf.ones((2, 1)), epochs=3, verbose=0).history["loss"], model.get_weights()

    def second():
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as inner:
                inner.watch(x)
                y = tf.exp(x) * x
            slope = inner.gradient(y, x)
        return outer.gradient(slope, x)

    def of_variables():
        trained, kept = tf.Variable(2.0), tf.Variable(3.0, trainable=False)
        with tf.GradientTape() as tape:
            y = trained * kept * kept
        return tape.gradient(y, [trained, kept]), len(tape.watched_variables())

    loop = tf.function(lambda x: tf.while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, c * x), [0, x])[1])
    yield "custom_gradient", lambda: _slope(tf, own, x)
    yield "custom_gradient in a function", lambda: _slope(tf, tf.function(own), x)
    yield "while_loop", lambda: _slope(tf, loop, x)
    yield "fit", fit
    yield "second order", second
    yield "variables", of_variables
    yield "jacobian", lambda: _jacobian(tf, x)
    yield "uint8 + float32", lambda: tf.constant([1], tf.uint8) + tf.constant([1.0])
    yield "x.T", lambda: x.T
    yield "gradient names", lambda: tf.raw_ops.PreventGradient(input=x)


def _jacobian(tf, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.linalg.matmul(x, x, transpose_b=True)
    return tape.jacobian(y, x)


ROWS = {"jax": rows_of_jax, "torch": rows_of_torch, "tensorflow": rows_of_tensorflow}
MOST = {"jax": 440, "torch": 300, "tensorflow": 190}


def table(backend, rows):
    """Return `rows` rows, evenly from all; an error is the name of its class."""
    every = list(ROWS[backend]())
    count = min(rows, len(every))
    found = {}
    for name, compute in [every[k * len(every) // count] for k in range(count)]:
        try:
            found[name] = digest(compute())
        except Exception as error:
            found[name] = type(error).__name__
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", choices=ROWS)
    parser.add_argument("--loaded", action="store_true")
    parser.add_argument("--then-loaded", action="store_true")
    parser.add_argument("--rows", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    count, found = asked.rows or MOST[asked.backend], []
    if not asked.loaded:
        found.append(table(asked.backend, count))
    if asked.loaded or asked.then_loaded:
        import effects

        effects.use_multiop(asked.backend)
        if asked.backend == "jax":
            importlib.import_module("jax").clear_caches()  # a program that is compiled again shows what has changed
        found.append(table(asked.backend, count))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
