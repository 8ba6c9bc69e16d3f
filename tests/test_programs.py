"""What the compilers are given: programs in multiop ops hold the operations of hand-written native ones, and no more.

Ten functions, most with their gradients, are written once in multiop and once natively. The multiset of operations of
the compiled program must be the same: of the optimised HLO on JAX and TensorFlow (XLA), of the aten operations that
reach Inductor on PyTorch. Where they differ, `DIFFERENCES` says in exactly what, and why. Nothing is timed.
"""

from __future__ import annotations

import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import multiop as mo

IDS = np.array([0, 2, 1, 0, 2, 2, 1, 0], np.int32)
SHAPES = {
    "mlp": [(8, 16), (16,), (16, 4), (4,), (32, 8)],
    "hvp": [(8,), (8,), (8, 16), (16,), (16,)],
    "layer_norm": [(4, 16), (16,), (16,)],
    "cross_entropy": [(8, 10), (8, 10)],
    "attention": [(2, 6, 8), (2, 6, 8), (2, 6, 8)],
    "convolution": [(2, 8, 8, 3), (3, 3, 3, 4), (4,)],
    "log1pexp": [(32,)],
    "recurrence": [(4,), (4, 4), (5, 4)],
    "segment_sum": [(8, 3)],
    "matmul_chain": [(3, 4, 5), (3, 5, 6), (3, 6, 2)],
}
OPTIMIZED = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False}  # in a quick run too
FLAT = ("mlp", "hvp")  # these hold their own gradients; the others are taken both ways


# written once


def multiop_programs(backend):
    channels = "channels_first" if backend == "torch" else "channels_last"  # what each framework likes best

    def loss(w1, b1, w2, b2, x):
        hidden = mo.op_tanh(mo.op_add(mo.op_matmul(x, w1), b1))
        return mo.op_mean(mo.op_square(mo.op_add(mo.op_matmul(hidden, w2), b2)))

    def energy(x, w, b, c):
        return mo.op_sum(mo.op_multiply(mo.op_tanh(mo.op_add(mo.op_matmul(x, w), b)), c))

    @mo.op_custom_gradient
    def log1pexp(x):
        e = mo.op_exp(x)
        return mo.op_log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    def attention(q, k, v):
        scores = mo.op_multiply(mo.op_matmul(q, mo.op_transpose(k, (0, 2, 1))), 8**-0.5)
        return mo.op_matmul(mo.op_softmax(scores), v)

    def convolution(x, kernel, b):
        y = mo.op_conv(x, kernel, padding="same", data_format=channels)
        return mo.op_tanh(mo.op_add(y, mo.op_reshape(b, (4, 1, 1)) if backend == "torch" else b))

    def recurrence(h, w, xs):
        def step(h, x):
            h = mo.op_tanh(mo.op_add(mo.op_matmul(h, w), x))
            return h, h

        return mo.op_scan(step, h, xs)[1]

    return {
        "mlp": mo.value_and_grad(loss, (0, 1, 2, 3)),
        "hvp": lambda x, v, w, b, c: mo.hvp(lambda x: energy(x, w, b, c), (x,), (v,)),
        "layer_norm": lambda x, gamma, beta: mo.op_layer_normalization(x, gamma, beta, epsilon=1e-5),
        "cross_entropy": lambda x, y: mo.op_negative(
            mo.op_mean(mo.op_sum(mo.op_multiply(y, mo.op_log_softmax(x)), axis=-1))
        ),
        "attention": attention,
        "convolution": convolution,
        "log1pexp": log1pexp,
        "recurrence": recurrence,
        "segment_sum": lambda x: mo.op_segment_sum(x, mo.op_convert_to_tensor(IDS), 3),
        "matmul_chain": lambda a, b, c: mo.op_matmul(mo.op_matmul(a, b), c),
    }


# written by hand for each framework, and how each one differentiates and compiles


def on_jax():
    import jax
    import jax.numpy as jnp

    def loss(w1, b1, w2, b2, x):
        return jnp.mean(jnp.square(jnp.tanh(x @ w1 + b1) @ w2 + b2))

    def energy(x, w, b, c):
        return jnp.sum(jnp.tanh(x @ w + b) * c)

    @jax.custom_vjp
    def log1pexp(x):
        return jnp.log(1 + jnp.exp(x))

    def forward(x):
        e = jnp.exp(x)
        return jnp.log(1 + e), e

    log1pexp.defvjp(forward, lambda e, upstream: (upstream * (1 - 1 / (1 + e)),))

    def layer_norm(x, gamma, beta):
        centred = x - jnp.mean(x, -1, keepdims=True)
        return centred * jax.lax.rsqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-5) * gamma + beta

    def recurrence(h, w, xs):
        def step(h, x):
            h = jnp.tanh(h @ w + x)
            return h, h

        return jax.lax.scan(step, h, xs)[1]

    def convolution(x, kernel, b):
        numbers = ("NHWC", "HWIO", "NHWC")
        return jnp.tanh(jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers) + b)

    def both_ways(f):
        def run(upstream, *xs):
            y, pull = jax.vjp(f, *xs)
            return y, pull(upstream)

        return run

    native = {
        "mlp": jax.value_and_grad(loss, (0, 1, 2, 3)),
        "hvp": lambda x, v, w, b, c: jax.jvp(jax.grad(lambda x: energy(x, w, b, c)), (x,), (v,))[1],
        "layer_norm": layer_norm,
        "cross_entropy": lambda x, y: -jnp.mean(jnp.sum(y * jax.nn.log_softmax(x), -1)),
        "attention": lambda q, k, v: jax.nn.softmax(q @ jnp.swapaxes(k, 1, 2) * 8**-0.5) @ v,
        "convolution": convolution,
        "log1pexp": log1pexp,
        "recurrence": recurrence,
        "segment_sum": lambda x: jax.ops.segment_sum(x, jnp.asarray(IDS), 3),
        "matmul_chain": lambda a, b, c: a @ b @ c,
    }
    return SimpleNamespace(
        native=native,
        both_ways=both_ways,
        count=lambda f, xs: hlo_operations(jax.jit(f).lower(*xs).compile(OPTIMIZED).as_text()),
    )


def on_tensorflow():
    import tensorflow as tf

    def loss(w1, b1, w2, b2, x):
        return tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, w1) + b1), w2) + b2))

    def mlp(*xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = loss(*xs)
        return y, tape.gradient(y, xs[:4])

    def hvp(x, v, w, b, c):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(tf.tanh(tf.linalg.matvec(w, x, transpose_a=True) + b) * c)
            (g,) = tape.gradient(y, [x])
        return outer.gradient(g, x, v)

    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    def layer_norm(x, gamma, beta):
        centred = x - tf.reduce_mean(x, -1, keepdims=True)
        return centred * tf.math.rsqrt(tf.reduce_mean(tf.square(centred), -1, keepdims=True) + 1e-5) * gamma + beta

    def recurrence(h, w, xs):
        n = xs.shape[0]
        columns = tf.TensorArray(xs.dtype, n, element_shape=h.shape).unstack(xs)
        rows = tf.TensorArray(xs.dtype, n, element_shape=h.shape)

        def step(k, h, rows):
            h = tf.tanh(tf.squeeze(tf.matmul(h[None, :], w), 0) + columns.read(k))
            return k + 1, h, rows.write(k, h)

        start = (tf.constant(0), h, rows)
        return tf.while_loop(lambda k, h, rows: k < n, step, start, maximum_iterations=n)[2].stack()

    def both_ways(f):
        def run(upstream, *xs):
            with tf.GradientTape() as tape:
                tape.watch(xs)
                y = f(*xs)
            return y, tape.gradient(y, xs, upstream)

        return run

    def count(f, xs):
        function = tf.function(f, autograph=False, jit_compile=True)
        return hlo_operations(function.experimental_get_compiler_ir(*xs)(stage="optimized_hlo"))

    native = {
        "mlp": mlp,
        "hvp": hvp,
        "layer_norm": layer_norm,
        "cross_entropy": lambda x, y: -tf.reduce_mean(tf.reduce_sum(y * tf.nn.log_softmax(x), -1)),
        "attention": lambda q, k, v: tf.matmul(tf.nn.softmax(tf.matmul(q, tf.transpose(k, (0, 2, 1))) * 8**-0.5), v),
        "convolution": lambda x, kernel, b: tf.tanh(tf.nn.conv2d(x, kernel, 1, "SAME") + b),
        "log1pexp": log1pexp,
        "recurrence": recurrence,
        "segment_sum": lambda x: tf.math.unsorted_segment_sum(x, tf.constant(IDS), 3),
        "matmul_chain": lambda a, b, c: tf.matmul(tf.matmul(a, b), c),
    }
    return SimpleNamespace(native=native, both_ways=both_ways, count=count)


def on_torch():
    import torch
    from torch.nn import functional

    def loss(w1, b1, w2, b2, x):
        return torch.mean(torch.square(torch.matmul(torch.tanh(torch.matmul(x, w1) + b1), w2) + b2))

    def mlp(*xs):
        leaves = [x.detach().requires_grad_() for x in xs[:4]]
        y = loss(*leaves, xs[4])
        return y, torch.autograd.grad(y, leaves)

    def hvp(x, v, w, b, c):
        def energy(x):
            return torch.sum(torch.tanh(torch.matmul(x, w) + b) * c)

        return torch.func.jvp(torch.func.grad(energy), (x,), (v,))[1]

    class Log1pExp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            e = torch.exp(x)
            ctx.save_for_backward(e)
            return torch.log(1 + e)

        @staticmethod
        def backward(ctx, upstream):
            (e,) = ctx.saved_tensors
            return upstream * (1 - 1 / (1 + e))

    def recurrence(h, w, xs):
        rows = []
        for x in xs.unbind(0):
            h = torch.tanh(torch.matmul(h, w) + x)
            rows.append(h)
        return torch.stack(rows)

    def convolution(x, kernel, b):
        return torch.tanh(functional.conv2d(x, kernel.permute(3, 2, 0, 1), padding=1) + b.reshape(4, 1, 1))

    def both_ways(f):
        def run(upstream, *xs):
            xs = [x.detach().requires_grad_() for x in xs]
            y = f(*xs)
            return y, torch.autograd.grad(y, xs, upstream)

        return run

    native = {
        "mlp": mlp,
        "hvp": hvp,
        "layer_norm": lambda x, gamma, beta: functional.layer_norm(x, (16,), gamma, beta, 1e-5),
        "cross_entropy": lambda x, y: -torch.mean(torch.sum(y * torch.log_softmax(x, -1), -1)),
        "attention": lambda q, k, v: torch.softmax(q @ k.transpose(1, 2) * 8**-0.5, -1) @ v,
        "convolution": convolution,
        "log1pexp": Log1pExp.apply,
        "recurrence": recurrence,
        "segment_sum": lambda x: x.new_zeros(3, 3).index_add(0, torch.as_tensor(IDS), x),
        "matmul_chain": lambda a, b, c: a @ b @ c,
    }
    return SimpleNamespace(native=native, both_ways=both_ways, count=aten_operations)


BACKENDS = {"jax": on_jax, "tensorflow": on_tensorflow, "torch": on_torch}


# counting


def hlo_operations(text):
    """Count the operations of an HLO module, those inside fusions included."""
    return Counter(re.findall(r"^\s*(?:ROOT )?%?[\w.\-]+ = (?:\([^=]*?\)|\S+) ([\w\-]+)\(", text, re.MULTILINE))


def aten_operations(f, xs):
    """Count the operations of the graph that Inductor is given: traced, made functional, decomposed, dead code gone."""
    import torch
    from torch._dynamo.backends.common import aot_autograd
    from torch._inductor.decomposition import select_decomp_table
    from torch.fx.experimental.proxy_tensor import make_fx

    found = Counter()

    def compiler(graph, inputs):
        graph.graph.eliminate_dead_code()
        calls = [node for node in graph.graph.nodes if node.op == "call_function"]
        found.update(str(node.target).removeprefix("aten.") for node in calls)
        return graph.forward

    graph = make_fx(lambda *xs: leaves(f(*xs)))(*xs)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    with torch.no_grad():
        torch.compile(graph, backend=aot_autograd(fw_compiler=compiler, decompositions=select_decomp_table()))(*xs)
    for name in ("detach.default", "alias.default"):  # no computation
        del found[name]
    return found


def leaves(result):
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, (tuple, list)) else [result]


DROPPED = (
    "rows whose segment is out of range go to one segment more, which is cut off: the native sums drop some of them"
)

# (backend, program) -> operations multiop has more, operations it has fewer, and why; see benchmarks/measured.md
TANH = "the slope of tanh is (1 - y) * (1 + y), whose own slope keeps its digits near 0; it takes fewer operations"
DIFFERENCES: dict[tuple[str, str], tuple[dict[str, int], dict[str, int], str]] = {
    ("jax", "segment_sum"): ({"pad": 1, "slice": 1, "constant": 1, "parameter": 1, "fusion": 1}, {}, DROPPED),
    ("tensorflow", "segment_sum"): ({"pad": 1, "slice": 1, "constant": 1, "parameter": 1, "fusion": 1}, {}, DROPPED),
    ("tensorflow", "mlp"): (
        {},
        {"constant": 2, "broadcast": 2, "multiply": 2},
        "XLA folds products with a gradient of ones that is an operation, not those with the constant of tf.ones_like",
    ),
    ("jax", "hvp"): ({"constant": 1, "broadcast": 1}, {"add": 2, "multiply": 1, "negate": 1}, TANH),
    ("jax", "recurrence"): (
        {"broadcast": 2, "constant": 1, "subtract": 2},
        {
            "parameter": 6,
            "bitcast": 4,
            "dynamic-update-slice": 1,
            "dynamic-slice": 3,
            "get-tuple-element": 3,
            "copy": 1,
            "fusion": 1,
        },
        TANH,
    ),
    ("torch", "log1pexp"): (
        {"view.default": 1},
        {},
        "the function runs on aliases of its arguments, to see what its rule closes over: a view, without a kernel",
    ),
    ("torch", "segment_sum"): (
        {
            "lt.Scalar": 1,
            "ge.Scalar": 1,
            "bitwise_or.Tensor": 1,
            "scalar_tensor.default": 1,
            "where.self": 1,
            "full.default": 1,
            "slice.Tensor": 1,
            "slice_scatter.default": 1,
            "prims.convert_element_type.default": 2,
        },
        {},
        f"{DROPPED}; ids are compared as int64",
    ),
}


@pytest.mark.traced
@pytest.mark.compiler
@pytest.mark.parametrize("program", SHAPES)
def test_program_holds_the_operations_of_the_native_one(backend, program):
    framework = BACKENDS[backend]()
    rng = np.random.default_rng(0)
    shapes = SHAPES[program]
    if (backend, program) == ("torch", "convolution"):
        shapes = [(2, 3, 8, 8), *shapes[1:]]
    xs = [mo.op_convert_to_tensor(rng.normal(size=shape).astype(np.float32)) for shape in shapes]
    pair = multiop_programs(backend)[program], framework.native[program]
    values = [[mo.op_convert_to_numpy(y) for y in leaves(f(*xs))] for f in pair]
    for ours, theirs in zip(*values, strict=True):  # else a program could hold less by computing less
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    if program not in FLAT:
        upstream = rng.normal(size=values[0][0].shape).astype(np.float32)
        xs = [mo.op_convert_to_tensor(upstream), *xs]
        pair = tuple(map(framework.both_ways, pair))
    ours, theirs = (framework.count(f, xs) for f in pair)
    more, fewer, why = DIFFERENCES.get((backend, program), ({}, {}, "nothing pinned costs operations here"))
    assert (dict(ours - theirs), dict(theirs - ours)) == (more, fewer), why
