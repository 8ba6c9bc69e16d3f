"""Right functions are not blamed: random compositions of ops, at random inputs, in every float dtype.

A few run by default; `nox -s alarms` runs 200 functions at 20 seeds each.
"""

from __future__ import annotations

import numpy as np
import pytest

from multiop import ops
from multiop.testing import check_op, normal
from multiop.testing.plugin import asked_tier

UNARY = {
    "tanh": ops.tanh,
    "sin": ops.sin,
    "sigmoid": ops.sigmoid,
    "softplus": ops.softplus,
    "arctan": ops.arctan,
    "erf": ops.erf,
    "gelu": ops.gelu,
    "abs": ops.abs,
    "relu": ops.relu,
    "square": ops.square,
    "exp_of_sin": lambda x: ops.exp(ops.sin(x)),
    "log1p_of_square": lambda x: ops.log1p(ops.square(x)),
    "root": lambda x: ops.sqrt(1 + ops.square(x)),
    "softmax": lambda x: ops.softmax(x, axis=-1),
    "centred": lambda x: x - ops.mean(x, axis=-1, keepdims=True),
    "cumsum": lambda x: ops.cumsum(x, axis=0),
    "sort": lambda x: ops.sort(x, axis=-1),
    "roll": lambda x: ops.roll(x, 1, axis=-1),
    "flip": lambda x: ops.flip(x, axis=0),
    "gram": lambda x: ops.matmul(ops.matmul(x, ops.transpose(x)), x) / 8,
    "clip": lambda x: ops.clip(x, -0.7, 0.9),
}
BINARY = {
    "add": ops.add,
    "subtract": ops.subtract,
    "multiply": ops.multiply,
    "maximum": ops.maximum,
    "minimum": ops.minimum,
    "ratio": lambda x, y: x / (1 + ops.square(y)),
    "hypot": lambda x, y: ops.hypot(x, y),
    "chosen": lambda x, y: ops.where(x > y, x * y, ops.sin(y)),
    "logaddexp": ops.logaddexp,
}
LAST = {
    "itself": lambda x: x,
    "sum": ops.sum,
    "rows": lambda x: ops.mean(x, axis=0),
    "largest": lambda x: ops.max(x, axis=-1),
    "logsumexp": lambda x: ops.logsumexp(x, axis=-1),
    "var": lambda x: ops.var(x, axis=-1),
    "norm": lambda x: ops.norm(x),
}


def pytest_generate_tests(metafunc):
    n_functions = 200 if metafunc.config.getoption("alarms") else 6 if asked_tier(metafunc.config) == "full" else 2
    metafunc.parametrize("k", range(n_functions))


def composed(k):
    """Return the k-th function of two tensors, of shapes (3, 4) and (4,)."""
    rng = np.random.default_rng(k)
    steps = []
    for _ in range(rng.integers(1, 4)):
        steps.append(rng.choice([*UNARY]))
        steps.append(rng.choice([*BINARY]))
    steps.append(rng.choice([*LAST]))

    def f(x, y):
        for step in steps[:-1]:
            x = UNARY[step](x) if step in UNARY else BINARY[step](x, y)
        return LAST[steps[-1]](x)

    f.__name__ = "_".join(steps)
    return f


@pytest.mark.once
def test_a_right_function_is_not_blamed(backend, k, pytestconfig):
    f = composed(k)
    for seed in range(20 if pytestconfig.getoption("alarms") else 2):
        first = seed == 0  # what is the same program at every seed is compiled and mapped once
        dtypes = ["float64", "float32", "bfloat16", "float16"]
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
