"""A framework that another thread is importing at this moment is read as far as it is there."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from multiop._loading import registry

PROGRAM = """
    import os, sys, types
    if os.environ["MULTIOP_BACKEND"] == "torch":
        import torch
    import multiop as mo
    for name in sys.argv[1].split():
        half = types.ModuleType(name)
        half.__spec__ = types.SimpleNamespace(_initializing=True)
        half.name_scope = half.StatelessScope = None
        sys.modules[name] = half
    class Foreign: pass
    assert float(mo.op_add(1.0, 2.0)) == 3
    mo.set_backend(os.environ["MULTIOP_BACKEND"])
    assert mo.x64() in (False, True)
    with mo.use_backend("numpy"), mo.name_scope("a"):
        assert float(mo.op_add(1.0, 2.0)) == 3
    with mo.name_scope("a"):
        assert float(mo.grad(lambda p: p["a"] * 2)({"a": 1.0})["a"]) == 2
    try:
        mo.op_stop_gradient([Foreign()])
    except mo.errors.MultiopError:
        pass
    assert not isinstance(1.0, mo.Tensor)
    assert float(mo.grad(lambda x: x * x)(3.0)) == 6
"""
HALVES = {
    "numpy": "torch._dynamo.symbolic_convert torch.utils._pytree jax jax.tree_util keras tensorflow torch",
    "torch": "torch._dynamo.symbolic_convert torch._dynamo.config jax jax.tree_util keras tensorflow",
    "jax": "torch._dynamo.symbolic_convert torch.utils._pytree torch keras tensorflow",
    "tensorflow": "torch._dynamo.symbolic_convert jax jax.tree_util torch",
}


@pytest.mark.parametrize("backend", HALVES)
def test_reads_of_half_a_module(backend):
    if not registry.is_installed(backend):
        pytest.skip(f"{backend} is not installed")
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PROGRAM), HALVES[backend]]
    done = subprocess.run(command, env={**os.environ, "MULTIOP_BACKEND": backend}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
