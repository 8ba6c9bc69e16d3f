"""A framework does by itself what it does alone, after multiop was loaded and used; what multiop changes is listed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import effects
import pytest

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "multiop"


def run(script, *arguments, backend):
    command = [sys.executable, str(script), *arguments]
    environment = os.environ | {"MULTIOP_BACKEND": backend, "KERAS_BACKEND": "tensorflow"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(params=["jax", "torch", "tensorflow"])
def framework(request):
    if not importlib.util.find_spec(request.param):
        pytest.skip(f"{request.param} is not installed")
    return request.param


def differing(framework, *runs):
    alone, loaded = (
        table for options in runs for table in run(HERE / "tables.py", framework, *options, backend=framework)
    )
    assert alone.keys() == loaded.keys()
    print(len(alone))
    return {name: (found, loaded[name]) for name, found in alone.items() if found != loaded[name]}, len(alone)


@pytest.mark.rotating
def test_a_sample_is_the_same_alone_and_loaded(framework):
    found, count = differing(framework, ["--then-loaded", "--rows", "20"])
    assert count == 20
    assert not found


@pytest.mark.tier("full")
def test_every_row_is_the_same_alone_and_loaded(framework):
    found, count = differing(framework, [], ["--loaded"])
    assert count >= {"jax": 400, "torch": 300, "tensorflow": 180}[framework]
    assert not found


def test_each_listed_effect_has_a_place_in_the_package():
    for effect in effects.EFFECTS:
        file, text = effect.source
        assert text in (PACKAGE / file).read_text(encoding="utf-8"), effect.what


def test_the_table_of_effects_is_current():
    assert effects.PAGE.read_text(encoding="utf-8") == effects.page()


@pytest.mark.tier("full")
def test_nothing_else_is_changed(framework):
    assert effects.measured_apart(framework) == []


PLANTS = {
    "jax": """
        from jax._src.interpreters import mlir
        import jax
        mlir._lowerings[jax.lax.sin_p] = lambda *_: None
        jax.config.update("jax_default_matmul_precision", "float32")
        """,
    "tensorflow": """
        import tensorflow as tf
        tf.RegisterGradient("Planted")(lambda *_: None)
        tf.config.set_soft_device_placement(False)
        """,
    "torch": """
        import torch
        torch.set_default_dtype(torch.float64)
        torch.nn.Linear.forward = lambda *_: None
        """,
}
SEEN = {
    "jax": ["_lowerings[sin]", "jax_default_matmul_precision"],
    "tensorflow": ["Planted", "soft_device_placement"],
    "torch": ["get_default_dtype", "Linear.forward"],
}


@pytest.mark.tier("full")
def test_what_is_planted_is_seen(framework, tmp_path):
    script = tmp_path / "plant.py"
    body = "\n".join(line[8:] for line in PLANTS[framework].splitlines())
    script.write_text(
        f"""import importlib, json, sys
sys.path[:0] = {[str(Path(effects.__file__).parent), str(PACKAGE.parent)]!r}
import effects
importlib.import_module({framework!r})
before = effects.state({framework!r})
{body}
print(json.dumps(effects.unknown({{"after": effects.changes(before, effects.state({framework!r}))}}, {framework!r})))
"""
    )
    found = run(script, backend=framework)
    for text in SEEN[framework]:
        assert any(text in place for place in found), (text, found)
