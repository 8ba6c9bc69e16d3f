"""What a type checker sees from outside: signatures, so that a misspelt keyword is flagged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import multiop

pytest.importorskip("mypy")

RIGHT = """
import multiop
from multiop import ops

x = multiop.op_convert_to_tensor([1.0, 2.0])
multiop.op_max(x, axis=0, keepdims=True)
ops.max(x, axis=0)
multiop.grad(lambda x: multiop.op_sum(x), argnums=0)(x)

@multiop.op_custom_gradient
def f(x: object) -> object:
    return x, lambda upstream: upstream

f(x)
name: str = multiop.backend()
"""

WRONG = [
    ("multiop.op_max(x, axs=0)", 'Unexpected keyword argument "axs" for "op_max"'),
    ("multiop.ops.max(x, axs=0)", 'Unexpected keyword argument "axs"'),
    ("multiop.op_max()", 'Missing positional argument "x" in call to "op_max"'),
    ("multiop.op_maximum(x, x, x)", 'Too many arguments for "op_maximum"'),
    ("multiop.op_maxx(x)", 'has no attribute "op_maxx"'),
    ("multiop.grad(lambda x: x, argnum=0)", 'Unexpected keyword argument "argnum" for "grad"'),
    ("multiop.enable_x64('yes')", 'Argument 1 to "enable_x64" has incompatible type "str"'),
    ("multiop.set_backend(None)", 'Argument 1 to "set_backend" has incompatible type "None"'),
    ("n: int = multiop.backend()", "Incompatible types in assignment"),
]

SPACES = ["image", "linalg", "nn", "numpy"]


@pytest.fixture(scope="module")
def verdict(tmp_path_factory):
    """Run mypy once over a module of right uses and one of wrong ones; return its lines."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "right.py").write_text(RIGHT)
    (folder / "wrong.py").write_text(
        "import multiop\nx = multiop.op_convert_to_tensor([1.0])\n" + "".join(f"{line}\n" for line, _ in WRONG)
    )
    root = Path(__file__).parent.parent
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        str(root / "pyproject.toml"),
        "right.py",
        "wrong.py",
    ]
    variables = os.environ | {"MYPYPATH": str(root), "MYPY_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


def test_right_uses_pass(verdict):
    assert [line for line in verdict if line.startswith("right.py")] == []


@pytest.mark.parametrize(("line", "message"), WRONG, ids=[line for line, _ in WRONG])
def test_wrong_use_is_flagged(verdict, line, message):
    place = f"wrong.py:{3 + [wrong for wrong, _ in WRONG].index(line)}: error:"
    assert any(found.startswith(place) and message in found for found in verdict), "\n".join(verdict)


def test_the_namespace_without_the_prefix_is_declared_and_complete():
    declared = set(multiop.ops.__all__) - set(SPACES)
    assert declared == {name.removeprefix("op_") for name in vars(multiop) if name.startswith("op_")}
    assert all(getattr(multiop.ops, name) is getattr(multiop, f"op_{name}") for name in declared)


@pytest.mark.parametrize("space", SPACES)
def test_the_namespaces_hold_the_same_ops(space):
    module = getattr(multiop.ops, space)
    assert module.__all__
    for name in module.__all__:
        whole = {"crop_images": "image_crop", "pad_images": "image_pad"}.get(name, f"image_{name}")
        assert getattr(module, name) is getattr(multiop.ops, whole if space == "image" else name)
