"""Which frameworks a process imports: none for multiop itself, the chosen one alone for an op."""

from __future__ import annotations

import os
import subprocess
import sys

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


def test_its_parts_import_no_framework():
    assert frameworks_after("import multiop.testing, multiop.cli, multiop.ops, multiop.autodiff") == set()


def test_asking_for_settings_imports_no_framework(backend):
    program = "import multiop\nmultiop.backend(), multiop.floatx(), multiop.x64(), multiop.available_backends()"
    assert frameworks_after(program, MULTIOP_BACKEND=backend) == set()


def test_decorating_imports_no_framework(backend):
    program = (
        "import multiop\nf = multiop.op_custom_gradient(lambda x: (x, lambda upstream: upstream))\nmultiop.grad(f)"
    )
    assert frameworks_after(program, MULTIOP_BACKEND=backend) == set()


def test_first_op_imports_the_chosen_framework_alone(backend):
    found = frameworks_after("import multiop\nmultiop.op_exp(1.0)", MULTIOP_BACKEND=backend)
    assert found == frameworks_after(f"import {backend}")  # TensorFlow Lite imports JAX where it is installed


def test_use_backend_imports_the_one_it_names(backend):
    program = f"import multiop\nwith multiop.use_backend({backend!r}):\n    multiop.op_exp(1.0)"
    assert frameworks_after(program, MULTIOP_BACKEND="") == frameworks_after(f"import {backend}")
