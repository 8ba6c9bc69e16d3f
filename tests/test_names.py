"""Names that do not exist: each error says what may be meant."""

import subprocess
import sys

import pytest

import multiop
from multiop import _registry, errors, ops

pytestmark = pytest.mark.tier("quick")


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        (multiop, "op_sofmax", "'op_softmax'"),
        (multiop, "softmax", "'op_softmax'"),
        (multiop, "custom_gradient", "'op_custom_gradient'"),
        (multiop, "gradient", "'gradients'"),
        (ops, "sofmax", "'softmax'"),
        (ops, "op_softmax", "'softmax'"),
        (ops, "np", "'numpy'"),
        (ops, "lin_alg", "'linalg'"),
    ],
)
def test_a_similar_name_is_suggested(module, name, meant):
    with pytest.raises(
        AttributeError, match=f"module '{module.__name__}' has no attribute '{name}'; did you mean"
    ) as caught:
        getattr(module, name)
    assert meant in str(caught.value)


def test_nothing_similar_is_not_suggested():
    with pytest.raises(AttributeError, match=r"module 'multiop' has no attribute 'xyzzy'$"):
        multiop.xyzzy
    assert not hasattr(multiop, "__wrapped__") and not hasattr(multiop, "_private")


@pytest.mark.parametrize(
    ("name", "meant"), [("pytorch", "torch"), ("tf", "tensorflow"), ("Jax", "jax"), ("tensorfow", "tensorflow")]
)
def test_a_similar_backend_is_suggested(name, meant):
    assert _registry.unknown(name).endswith(f"; did you mean '{meant}'?")
    with pytest.raises(
        errors.BackendError, match=f"unknown backend '{name}'; known backends: .*; did you mean '{meant}'"
    ):
        multiop.set_backend(name)


def test_a_module_that_is_not_imported_is_named_and_python_guesses_no_more():
    program = "import multiop\nmultiop.testing"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stderr
    assert found.splitlines()[-1] == (
        "AttributeError: module 'multiop' has no attribute 'testing'; write import multiop.testing first"
    )
