"""Right functions are not blamed: random compositions of ops, at random inputs, in every float dtype.

A few run by default; `nox -s search -- alarms` runs 200 functions at 20 seeds each.
"""

from __future__ import annotations

import re

import pytest
from random_programs import compiled, draw

from multiop.testing import check_op, normal
from multiop.testing._tiers import asked_tier


def pytest_generate_tests(metafunc):
    n_functions = 200 if metafunc.config.getoption("alarms") else 6 if asked_tier(metafunc.config) == "full" else 1
    metafunc.parametrize("k", range(n_functions))


def source(k):
    """Return the k-th function of two tensors, of shapes (3, 4) and (4,)."""
    return draw(k, size=(2, 7), control=False, inputs=("x", "y")).source


@pytest.mark.once
def test_a_right_function_is_not_blamed(backend, k, pytestconfig):
    f = compiled(source(k))
    # NumPy's own operators make float32 of bfloat16 and a number
    is_rounded = backend != "numpy" or not re.search(r"[-+*/] \d|\d [-+*/]", source(k))
    for seed in range(20 if pytestconfig.getoption("alarms") else 2):
        first = seed == 0  # what is the same program at every seed is compiled and mapped once
        dtypes = ["float64", "float32", *["bfloat16"] * is_rounded, "float16"]
        order = 2 if first else 1
        check_op(
            f,
            normal(3, 4),
            normal(4),
            backends=[backend],
            dtypes=dtypes,
            order=order,
            seed=seed,
            vmap=first,
            compiled=first and k % 10 == 0,
        )
