"""The switch for NumPy's methods and indexing on TensorFlow's tensors, in a process of its own: it cannot be undone."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("tensorflow")

PROGRAM = """
import numpy as np
import multiop as mo

mo.set_backend("tensorflow")
before = {before}
if {late}:
    mo.enable_tensorflow_numpy()
M = np.arange(6, dtype=np.float32).reshape(2, 3)
x = mo.op_convert_to_tensor(M)
assert (mo.op_convert_to_numpy(x.T) == M.T).all()
assert (mo.op_convert_to_numpy(x.reshape(3, 2)) == M.reshape(3, 2)).all()
assert (mo.op_convert_to_numpy(x[[1, 0], [2, 0]]) == M[[1, 0], [2, 0]]).all()
assert (mo.op_convert_to_numpy(x[x > 2]) == M[M > 2]).all()
assert mo.op_dtype(x * 2.5) == mo.op_dtype(1 / x) == "float32"
assert mo.op_dtype(x + mo.op_ones(3, "float64")) == "float64"
assert mo.op_dtype(x + mo.op_ones(3, "int32")) == "float32"
assert (mo.op_convert_to_numpy(mo.jit(lambda x: x[[1, 0]].T)(x)) == M[[1, 0]].T).all()
assert (mo.op_convert_to_numpy(mo.op_get_item(x, (slice(None), [2, 0]))) == M[:, [2, 0]]).all()
g = mo.grad(lambda x: mo.op_sum(mo.op_max_pool(x[None, ..., None], 2, 1, ceil_mode=True) * 2.0))(x)
assert mo.op_convert_to_numpy(g).tolist() == [[0, 0, 0], [0, 2, 2]]
"""


@pytest.mark.tier("full")
@pytest.mark.parametrize("way", ["variable", "early", "late"])
def test_tensors_have_numpys_methods(way):
    before = {"late": "mo.op_zeros(2)", "early": "mo.enable_tensorflow_numpy()", "variable": "None"}[way]
    environment = os.environ | {"MULTIOP_TENSORFLOW_NUMPY": "1" if way == "variable" else "0"}
    program = PROGRAM.format(before=before, late=way == "late")
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.tier("full")
def test_ops_give_the_same_results():
    ops = "op_get_item,op_conv,op_average_pool,op_add,op_divide,op_mean,op_pad"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "multiop.testing"]
    command += ["--multiop-backends=tensorflow", "--multiop-tier=quick", f"--multiop-ops={ops}"]
    environment = os.environ | {"MULTIOP_TENSORFLOW_NUMPY": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
