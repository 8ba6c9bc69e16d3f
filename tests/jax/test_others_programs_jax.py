"""The user's own JAX, once multiop is loaded: every program is what JAX alone makes of it."""

import subprocess
import sys

import pytest

pytest.importorskip("jax")

BEGIN = """
import os
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
import traceback
import jax, jax.numpy as jnp, numpy as np
import jax.export
from jax.sharding import PartitionSpec as P
"""
STATE = """
from jax._src.interpreters import ad, batching, mlir, partial_eval

def state():
    found = {}
    for module in (ad, batching, mlir, partial_eval):
        for name, value in vars(module).items():
            if isinstance(value, dict) and not name.startswith("__"):
                tables = value if name == "_platform_specific_lowerings" else {"": value}
                for table, rules in tables.items():
                    for key, rule in getattr(rules, "items", tuple)():
                        found[module.__name__, name, table, key] = rule
    return found

before = state()
"""
LOAD = """
import multiop
multiop.set_backend("jax")
multiop.op_exp(0.0)
multiop.jit(lambda x: multiop.op_sum(x * x))(jnp.arange(3))
"""
ROWS = {
    "integer power": """
        assert (jnp.array([5, 7, 3], "int32") ** 5).tolist() == [3125, 16807, 243]""",
    "mapped integer power": """
        assert jax.vmap(lambda i: jnp.power(i, 5))(jnp.array([5, 7], "int32")).tolist() == [3125, 16807]""",
    "int2 product": """
        product = jnp.array([1, -1, 1, 0], "int2") * jnp.array([1, 1, -2, 1], "int2")
        assert product.tolist() == [1, -1, -2, 0]""",
    "int4 square, mapped": """
        assert jax.vmap(lambda a: a * a)(jnp.array([[1, 2], [2, -1]], "int4")).tolist() == [[1, 4], [4, 1]]""",
    "int4 einsum": """
        x = jnp.array([[1, 2], [-1, 1]], "int4")
        assert jnp.einsum("ij,jk->ik", x, x).tolist() == [[-1, 4], [-2, -1]]""",
    "uint8 to float8": """
        x = jnp.array([248, 255], "uint8").astype("float8_e4m3fn")
        assert x.astype("float32").tolist() == [256.0, 256.0]""",
    "int8 to float4": """
        x = jnp.array([4, -3], "int8").astype("float4_e2m1fn")
        assert x.astype("float32").tolist() == [4.0, -3.0]""",
    "float8 product": """
        x = jnp.ones((70000, 2), "float8_e4m3fn")
        assert float((x @ jnp.ones((2, 3), "float8_e4m3fn"))[0, 0].astype("float32")) == 2""",
    "float times complex": """
        y = jnp.ones((70000, 2)) @ jnp.ones((2, 3), "complex64")
        assert y.dtype == "complex64" and float(y[0, 0].real) == 2""",
    "preferred element type": """
        y = jnp.matmul(jnp.ones((70000, 2)), jnp.ones((2, 3)), preferred_element_type="complex64")
        assert y.dtype == "complex64"
        y = jnp.matmul(jnp.ones((70000, 2), "int8"), jnp.ones((2, 3), "int8"), preferred_element_type="int32")
        assert y.dtype == "int32" and int(y[0, 0]) == 2""",
    "scan of an open batch, exported": """
        f = jax.jit(lambda x: jax.lax.scan(lambda c, _: (c + 1, c), x, None, length=5))
        exported = jax.export.export(f)(jax.ShapeDtypeStruct(jax.export.symbolic_shape("b"), "float32"))
        assert exported.call(jnp.ones(3))[0].tolist() == [6, 6, 6]""",
    "two open sizes, exported": """
        f = jax.jit(lambda x: jnp.sum(jnp.exp(x @ x.T), 0))
        exported = jax.export.export(f)(jax.ShapeDtypeStruct(jax.export.symbolic_shape("a, b"), "float32"))
        assert exported.call(jnp.zeros((3, 2))).tolist() == [3, 3, 3]""",
    "rank 7 power": """
        assert float(jnp.sum(jnp.full((1, 1, 1, 1, 1, 1, 2), 2.0) ** 4)) == 32""",
    "sharded extrema and product of rank 7": """
        mesh = jax.make_mesh((2,), ("i",))
        for dtype in ("float32", "bfloat16"):
            x = jnp.arange(1.0, 9.0, dtype=dtype).reshape(4, 1, 1, 1, 1, 1, 2)
            x = jax.device_put(x, jax.NamedSharding(mesh, P("i")))
            assert (float(jnp.max(x)), float(jnp.min(x))) == (8, 1)
            if dtype == "float32":
                assert float(jnp.prod(x)) == 40320""",
    "shard_map": """
        mesh = jax.make_mesh((2,), ("i",))
        f = jax.shard_map(lambda x: jax.lax.psum(jnp.sum(x**4), "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
        x = jax.device_put(jnp.arange(4.0), jax.NamedSharding(mesh, P("i")))
        assert float(f(x)) == 98""",
    "Pallas": """
        from jax.experimental import pallas

        def kernel(x, y):
            y[...] = x[...] ** 5

        x = jnp.array([5, 7], "int32")
        y = pallas.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((2,), "int32"), interpret=True)(x)
        assert y.tolist() == [3125, 16807]""",
    "checkify": """
        from jax.experimental import checkify

        error, y = checkify.checkify(lambda x: x**5)(jnp.array([5, 7], "int32"))
        error.throw()
        assert y.tolist() == [3125, 16807]""",
    "precision refused": """
        try:
            jnp.dot(jnp.ones((4, 4)), jnp.ones((4, 4)), precision="TF32_TF32_F32")
        except ValueError:
            pass
        else:
            raise AssertionError("computed")""",
    "rules of JAX": """
        after = state()
        assert len(before) > 500
        assert [key for key, rule in before.items() if after.get(key) is not rule] == []""",
    "lowering of the user's own": """
        from jax.interpreters import mlir

        mlir.register_lowering(jax.lax.cosh_p, mlir.lower_fun(lambda x, **_: x + 41, multiple_results=False))
        assert float(jax.jit(jax.lax.cosh)(1.0)) == 42""",
}


def tried(load, rows):
    """Return the rows that fail, with the last line of each error; all run in one process."""
    code = [BEGIN, STATE, load]
    for name, row in rows.items():
        lines = "\n".join("    " + line[8:] for line in row.strip("\n").splitlines())
        code.append(f"try:\n{lines}\nexcept Exception:\n    print({name!r}, traceback.format_exc(limit=1))")
    done = subprocess.run([sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_programs_of_jax_are_as_without_multiop():
    assert tried(LOAD, ROWS) == []
