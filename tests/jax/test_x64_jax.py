"""JAX's 64-bit switch: multiop's reaches it before any trace, and the user's own is what multiop goes by."""

import contextlib
import os
import subprocess
import sys

import pytest

START = """
import sys
import numpy as np
{first}
assert jax.config.jax_enable_x64 is {on}, "not reached when imported"
f = lambda w: ops.sum(ops.square(ops.exp(w)))
for _ in range(2):
    assert jax.grad(f)(np.ones(3)).dtype == "{dtype}"
    assert jax.jit(lambda x: ops.exp(x) * 2)(np.ones(3)).dtype == "{dtype}"
assert multiop.x64() is {on} and jax.config.jax_enable_x64 is {on}
assert "jax" not in multiop._loading.imports._waiting
assert "exec_module" not in vars(jax.__spec__.loader)
"""
MULTIOP, JAX = "import multiop\nfrom multiop import ops", "import jax"
ENABLED = "multiop.enable_x64()"
TURN = "jax.config.update('jax_enable_x64', {})"
ELSEWHERE = "with multiop.use_backend('torch'):\n    ops.exp(1.0)\n    assert multiop.x64()"
LOOKED_FOR = "import importlib.util\nassert importlib.util.find_spec('jax')\nassert 'jax' not in sys.modules"
ORDERS = {  # the imports, MULTIOP_X64, whether the mode is on
    "variable, JAX first": ([JAX, MULTIOP], "1", True),
    "variable, JAX last": ([MULTIOP, JAX], "1", True),
    "call, JAX first": ([JAX, MULTIOP, ENABLED], "", True),
    "call, JAX last": ([MULTIOP, ENABLED, JAX], "", True),
    "call taken back": ([MULTIOP, ENABLED, "multiop.enable_x64(False)", JAX], "1", False),
    "the user's own": ([MULTIOP, JAX, TURN.format(True)], "", True),
    "the user's own, last": ([JAX, MULTIOP, ENABLED, TURN.format(False)], "1", False),
    "a context": ([JAX, MULTIOP, "jax.enable_x64(True).__enter__()"], "", True),
    "looked for, not imported": ([MULTIOP, ENABLED, LOOKED_FOR, LOOKED_FOR, JAX], "", True),
    "looked for, taken back": ([MULTIOP, ENABLED, LOOKED_FOR, "multiop.enable_x64(False)", JAX], "1", False),
    "turned off, and on again": ([MULTIOP, JAX, ENABLED, TURN.format(False), ENABLED], "", True),
    "another backend first": ([MULTIOP, ENABLED, ELSEWHERE, JAX], "", True),
}  # fmt: skip


def run(program, **variables):
    environment = os.environ | {"MULTIOP_BACKEND": "jax", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def check(order):
    lines, variable, on = ORDERS[order]
    dtype = "float64" if on else "float32"
    run(START.format(first="\n".join(lines), on=on, dtype=dtype), MULTIOP_X64=variable)


@pytest.mark.parametrize("order", ["variable, JAX first", "looked for, not imported"])
def test_the_mode_is_on_before_the_first_trace(order):
    check(order)


@pytest.mark.tier("full")
@pytest.mark.parametrize("order", ORDERS)
def test_the_mode_is_on_before_the_first_trace_in_any_order(order):
    check(order)


def test_the_mode_is_not_switched_inside_a_trace():
    import jax

    import multiop
    from multiop import errors

    before = multiop.x64()
    for transform in (jax.jit, jax.grad, jax.vmap):
        with pytest.raises(errors.ArgumentError, match="cannot be turned on or off inside a function that JAX traces"):
            transform(lambda x: (multiop.enable_x64(not jax.config.jax_enable_x64), x)[1])(
                jax.numpy.ones(1) if transform is jax.vmap else 1.0
            )
        assert multiop.x64() is before


def test_an_error_says_who_turned_the_mode_off(multiop_x64):
    import jax

    import multiop
    from multiop import errors

    with multiop.use_backend("jax"):
        for switched in (jax.enable_x64(False), jax.enable_x64(True)):
            with switched:
                assert multiop.x64() is jax.config.jax_enable_x64
        with jax.enable_x64(False), pytest.raises(errors.DTypeError, match=r"off again by jax\.config\.update"):
            multiop.op_cast(1.0, "float64")
        with jax.enable_x64(True):
            assert multiop.op_dtype(multiop.op_cast(1.0, "float64")) == "float64"


def test_the_mode_is_turned_on_again_after_jax_turned_it_off(multiop_x64):
    import jax

    import multiop
    from multiop.testing._shared_process import x64_mode_for

    with multiop.use_backend("jax"):
        try:
            for in_context in (False, True):
                with jax.enable_x64(False) if in_context else contextlib.nullcontext():
                    assert jax.config.jax_enable_x64 is not in_context
                jax.config.update("jax_enable_x64", False)
                with x64_mode_for("float64"):
                    assert multiop.op_dtype(multiop.op_cast(1.0, "float64")) == "float64"
                assert not multiop.x64()
                multiop.enable_x64()
                assert multiop.x64()
                assert multiop.op_dtype(multiop.op_cast(1.0, "float64")) == "float64"
        finally:
            multiop.enable_x64()


def test_the_users_own_mode_returns_after_a_check_on_another_backend():
    import jax

    import multiop
    from multiop.testing._shared_process import x64_mode_for

    before = jax.config.jax_enable_x64
    multiop.enable_x64(False)
    try:
        for own in (True, False):
            jax.config.update("jax_enable_x64", own)
            for backend in ("numpy", "jax"):
                with multiop.use_backend(backend):
                    with x64_mode_for("float64"):
                        assert multiop.x64() and jax.config.jax_enable_x64
                    assert jax.config.jax_enable_x64 is own and multiop.x64() is (own and backend == "jax")
    finally:
        multiop.enable_x64(before)
