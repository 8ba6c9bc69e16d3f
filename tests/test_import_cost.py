"""Which frameworks a process imports: none for multiop itself, only the chosen one for an op."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FRAMEWORKS = {"torch", "jax", "tensorflow", "keras"}


def frameworks_after(program, **environment):
    """Run `program` in a new process; return the frameworks it has imported."""
    program += f"\nimport sys; print('imported:', *sorted({FRAMEWORKS} & set(sys.modules)))"
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | environment
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("imported:")[2].split())


def test_importing_multiop_imports_no_framework():
    assert frameworks_after("import multiop") == set()


def test_importing_multiop_imports_little_beside_numpy():
    program = "import sys, numpy\nbefore = {*sys.modules}\nimport multiop\nprint(*{*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    slow = {
        "ml_dtypes",
        "traceback",
        "optree",
        "typing_extensions",
        "dataclasses",
        "pathlib",
        "html",
        "json",
        "random",
        "string",
        "difflib",
    }
    assert slow & {*done.stdout.split()} == set()


def test_its_parts_import_no_framework():
    assert frameworks_after("import multiop.testing, multiop.cli, multiop.ops, multiop.autodiff") == set()


@pytest.mark.once
def test_asking_for_settings_imports_no_framework(backend):
    program = "import multiop\nmultiop.backend(), multiop.floatx(), multiop.x64(), multiop.available_backends()"
    assert frameworks_after(program, MULTIOP_BACKEND=backend) == set()


def test_asking_for_a_type_imports_no_framework():
    program = "import multiop\nassert not isinstance(1.0, multiop.Tensor) and not issubclass(int, multiop.Tensor)"
    assert frameworks_after(program) == set()


@pytest.mark.once
def test_decorating_imports_no_framework(backend):
    program = (
        "import multiop\nf = multiop.op_custom_gradient(lambda x: (x, lambda upstream: upstream))\nmultiop.grad(f)"
    )
    assert frameworks_after(program, MULTIOP_BACKEND=backend) == set()


@pytest.mark.once
def test_first_op_imports_the_chosen_framework_alone(backend):
    found = frameworks_after("import multiop\nmultiop.op_exp(1.0)", MULTIOP_BACKEND=backend)
    assert found == frameworks_after(f"import {backend}")  # TensorFlow Lite imports JAX where it is installed


@pytest.mark.once
def test_use_backend_imports_the_one_it_names(backend):
    program = f"import multiop\nwith multiop.use_backend({backend!r}):\n    multiop.op_exp(1.0)"
    assert frameworks_after(program, MULTIOP_BACKEND="") == frameworks_after(f"import {backend}")


ALONE = """
import importlib, importlib.machinery, pkgutil

finder = importlib.machinery.PathFinder
find = finder.find_spec
finder.find_spec = lambda name, *more: None if name.partition(".")[0] in {others} else find(name, *more)
import multiop, multiop.testing
package = importlib.import_module("multiop.backends.{backend}")
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if module.name != "multiop.backends.torch._philox":  # kernels of a GPU, for Triton alone
        importlib.import_module(module.name)

@multiop.op_custom_gradient
def ten(x):
    return x * x, lambda upstream: 10 * x * upstream

assert {{*multiop.available_backends()}} == {{"{backend}", "numpy"}}
found = [multiop.grad(ten)(3.0), multiop.grad(multiop.grad(ten))(3.0), multiop.jvp(ten, (3.0,), (1.0,))[1]]
found += [multiop.jit(multiop.grad(ten))(3.0), multiop.vmap(multiop.grad(ten))(multiop.op_ones(2))[0]]
with multiop.GradientTape() as tape:
    x = tape.watch(multiop.op_convert_to_tensor(3.0))
    y = ten(x)
found.append(tape.gradient(y, x))
print("found:", *map(float, found))
"""


@pytest.mark.rotating
def test_a_backend_needs_no_other_framework(backend):
    others = FRAMEWORKS - {backend} - ({"keras"} if backend == "tensorflow" else set())  # TensorFlow loads Keras itself
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MULTIOP_BACKEND": ""}
    program = ALONE.format(others=others, backend=backend)
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rpartition("found: ")[2].split() == ["30.0", "10.0", "30.0", "30.0", "10.0", "30.0"]
