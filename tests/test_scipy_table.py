"""The table of docs/scipy.md: each kind of answer is told apart."""

from __future__ import annotations

import numpy as np
import pytest
import scipy_table

import multiop


def test_the_tool_tells_tensors_from_arrays_and_errors(backend):
    if backend == "numpy":
        return  # an array of NumPy is its tensor

    def make(x):
        return multiop.op_convert_to_tensor(x)

    def fail(make):
        if not isinstance(make(np.ones(2)), np.ndarray):
            raise KeyError("no such thing")
        return np.ones(2)

    def change(make):
        x = make(np.ones(2, np.float32))
        return x if isinstance(x, np.ndarray) else x + 1e-4

    assert scipy_table.answer(lambda make: make(np.ones(2)), make) == "tensor"
    assert scipy_table.answer(lambda make: (make(np.ones(2)), np.ones(2)), make) == "array"
    assert scipy_table.answer(fail, make) == "*KeyError*"
    assert scipy_table.answer(change, make) == "**wrong**"


@pytest.mark.tier("full")
def test_scipy_computes_with_tensorflow_by_the_namespace():
    pytest.importorskip("tensorflow")
    answers = scipy_table.ask("tensorflow_numpy")
    assert answers["SciPy"]["stats.skew"] == "tensor"
    assert "**wrong**" not in [*answers["SciPy"].values(), *answers["scikit-learn"].values()]
