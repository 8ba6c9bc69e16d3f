"""Each construct on four CPUs against one, and each op on two; prints what differs, a line each, and how many agree."""

import re
import warnings

warnings.simplefilter("ignore")

import jax
import jax.numpy as jnp
import numpy as np
from compared import CONSTRUCTS, Comparison, loss, scaled_sine, summed
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import multiop as mo
from multiop import ops
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

X, W = np.arange(8, dtype=np.float32) / 4, np.float32(1.5)
COLLECTIVE = re.compile(r" (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)[\w.-]*\(")
ROW = np.arange(4)
FAMILIES = {  # a member of each, along the axis that is spread, and native code for the same
    "sum": (lambda x: ops.sum(x, 0), lambda x: jnp.sum(x, 0)),
    "prod": (lambda x: ops.prod(x, 0), lambda x: jnp.prod(x, 0)),
    "max": (lambda x: ops.max(x, 0), lambda x: jnp.max(x, 0)),
    "max of a row": (lambda x: ops.max(x, 1), lambda x: jnp.max(x, 1)),
    "logsumexp": (lambda x: ops.logsumexp(x, 0), lambda x: jax.scipy.special.logsumexp(x, 0)),
    "std": (lambda x: ops.std(x, 0), lambda x: jnp.std(x, 0)),
    "norm": (ops.norm, jnp.linalg.norm),
    "softmax": (lambda x: ops.softmax(x, 0), lambda x: jax.nn.softmax(x, 0)),
    "softmax of a row": (ops.softmax, jax.nn.softmax),
    "gelu": (ops.gelu, lambda x: jax.nn.gelu(x, approximate=False)),
    "where": (lambda x: ops.where(x > 1, x, 0.0), lambda x: jnp.where(x > 1, x, 0.0)),
    "matmul": (lambda x: ops.matmul(ops.transpose(x), x), lambda x: x.T @ x),
    "cumsum": (lambda x: ops.cumsum(x, 0), lambda x: jnp.cumsum(x, 0)),
    "sort": (lambda x: ops.sort(x, 0), lambda x: jnp.sort(x, 0)),
    "take": (lambda x: ops.take(x, ROW, 0), lambda x: jnp.take(x, ROW, 0)),
    "get_item": (lambda x: ops.get_item(x, slice(1, 5)), lambda x: x[1:5]),
    "concatenate": (lambda x: ops.concatenate([x, x]), lambda x: jnp.concatenate([x, x])),
    "flip": (lambda x: ops.flip(x, 0), lambda x: jnp.flip(x, 0)),
    "pad": (lambda x: ops.pad(x, ((1, 1), (0, 0))), lambda x: jnp.pad(x, ((1, 1), (0, 0)))),
    "segment_sum": (
        lambda x: ops.segment_sum(x, np.repeat(ROW, 2), 4),
        lambda x: jax.ops.segment_sum(x, np.repeat(ROW, 2), 4),
    ),
}
MORE = {"max": 3, "max of a row": 1}  # than native code; see docs/distributed.md
comparison = Comparison()
check = comparison.check


def plain(x, w):
    return jnp.sum(jnp.sin(x) * w)


def on_a_tape(x, w):
    with mo.GradientTape() as tape:
        x, w = tape.watch(x), tape.watch(w)
        y = loss(x, w)
    return tape.gradient(y, [x, w])


def recorded(x, w):
    with mo.GradientTape() as tape:
        x = tape.watch(x)
        y = loss(x, w)
    return tape.gradient(y, x)


def constructs(kind):
    mesh = jax.make_mesh((4,), ("i",), axis_types=(kind,))
    x, w = jax.device_put(X, NamedSharding(mesh, P("i"))), jax.device_put(W, NamedSharding(mesh, P()))
    ones = (jnp.ones_like(x), jnp.ones_like(w))
    first, push = jax.grad(plain, (0, 1))(X, W), jax.jvp(plain, (X, W), (np.ones_like(X), np.ones_like(W)))[1]
    second = -np.sin(X) * W
    with jax.set_mesh(mesh):
        check(f"{kind} eager", lambda: mo.grad(loss, (0, 1))(x, w), first)
        check(f"{kind} compiled", lambda: mo.jit(mo.grad(loss, (0, 1)))(x, w), first)
        check(f"{kind} forward mode", lambda: mo.jvp(loss, (x, w), ones)[1], push)
        check(f"{kind} second order", lambda: mo.hvp(lambda x: loss(x, w), (x,), ones[:1]), second)
        check(f"{kind} tape", lambda: on_a_tape(x, w), first)
        check(f"{kind} no gradient", lambda: mo.grad(lambda x: ops.sum(ops.round(x)))(x), np.zeros(8))
        sharding = mo.grad(lambda x: ops.sum(ops.one_hot(ops.cast(x, "int32"), 4)))(x).sharding
        check(f"{kind} no gradient stays on the mesh", lambda: len(sharding.device_set), 4)
        for vma in (True, False):
            for way in (lambda f: f, jax.jit):

                def mapped(function, out, way=way, vma=vma):
                    return way(jax.shard_map(function, in_specs=(P("i"), P()), out_specs=out, check_vma=vma))

                name = f"{kind} shard_map, check_vma={vma}, {way.__name__}"
                spread = mapped(scaled_sine, P("i"))
                added = mapped(lambda x, w: jax.lax.psum(loss(x, w), "i"), P())
                check(f"{name}, around", lambda f=spread: jax.grad(lambda *a: jnp.sum(f(*a)), (0, 1))(x, w), first)
                check(f"{name}, around psum", lambda f=added: jax.grad(f, (0, 1))(x, w), first)
                check(f"{name}, forward", lambda f=spread: jax.jvp(lambda *a: jnp.sum(f(*a)), (x, w), ones)[1], push)
                check(
                    f"{name}, tape inside",
                    lambda m=mapped: m(recorded, P("i"))(x, w),
                    first[0],
                )
                if vma:
                    inside = mapped(mo.grad(loss, (0, 1)), (P("i"), P()))
                    check(f"{name}, inside", lambda f=inside: f(x, w), first)
        ours, native = (
            collectives(jax.jit(jax.grad(f, (0, 1))), x, w)
            for f in (loss, plain)
        )  # fmt: skip
        check(f"{kind} collectives", lambda: len(ours), len(native))
        for name, construct in CONSTRUCTS.items():
            derivative = mo.grad(summed(construct), (0, 1))
            wanted = derivative(X, W)
            check(f"{kind} {name}", lambda f=derivative: f(x, w), wanted)
            check(f"{kind} {name}, compiled", lambda f=derivative: mo.jit(f)(x, w), wanted)


def collectives(function, *arguments):
    return COLLECTIVE.findall(function.lower(*arguments).compile().as_text())


def collectives_of_families():
    mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))
    x = jax.device_put(np.arange(32, dtype=np.float32).reshape(8, 4) / 4, NamedSharding(mesh, P("i")))
    for name, functions in FAMILIES.items():
        for way in (lambda f: f, lambda f: jax.grad(lambda x: jnp.sum(jnp.sin(f(x))))):
            ours, native = (len(collectives(jax.jit(way(f)), x)) for f in functions)
            check(f"collectives of {name}: {ours}, {native}", lambda: ours <= native + MORE.get(name, 0), True)


def every_op():
    mesh = jax.make_mesh((2,), ("i",), devices=jax.devices()[:2], axis_types=(AxisType.Auto,))
    for op, row in rows().items():
        dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
        problem = Problem(getattr(mo, op), row.calls[0], dtype=dtype, name=op)
        axes = [axis for x in problem.arrays[:1] for axis, size in enumerate(x.shape) if size and size % 2 == 0]
        if not axes or op in ("op_shape", "op_is_tensor"):
            continue
        specs = [P(*[None] * axes[0], "i"), *[P()] * (len(problem.arrays) - 1)]
        spread = [jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in zip(problem.arrays, specs, strict=True)]
        check(op, lambda p=problem, s=spread: p.outputs(*s), problem.value)
        if row.differentiable and problem.inexact:
            check(f"gradient of {op}", lambda p=problem, s=spread: p.gradient_tensors(*s), problem.gradient)


for kind in (AxisType.Auto, AxisType.Explicit):
    constructs(kind)
check("pmap", lambda: jax.pmap(mo.grad(lambda x: loss(x, W)))(X.reshape(4, 2)), (np.cos(X) * W).reshape(4, 2))
collectives_of_families()
every_op()
comparison.end()
