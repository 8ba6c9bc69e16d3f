"""A reaction-diffusion equation, solved by implicit steps with a sparse Jacobian.

Two chemicals spread on a square and react (Gray and Scott, 1983). Spreading is stiff: an explicit step must be shorter
than the square of the spacing. An implicit step has no such limit, and solves an equation of 2 n² unknowns by Newton's
method. Its Jacobian has 6 entries in a row, which nine products find, whatever the grid; SciPy factors it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg

import multiop
from multiop import ops
from multiop.testing import example_inputs, normal

FEED, KILL, SPREAD, STEP = 0.04, 0.06, (16.0, 8.0), 20.0


def laplacian(u: Any) -> Any:
    """Return the sum of differences to the four neighbours of each cell of `u` (n, n), whose edges are closed."""
    v = ops.pad(u, ((1, 1), (1, 1)), mode="symmetric")
    return v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2] - 4.0 * u


@example_inputs(normal(2, 4, 4))
def change(state: Any) -> Any:
    """Return how fast both chemicals of `state` (2, n, n) change."""
    u, v = state[0], state[1]
    reaction, scale = u * v * v, (u.shape[0] / 256) ** 2
    return ops.stack(
        [
            SPREAD[0] * scale * laplacian(u) - reaction + FEED * (1.0 - u),
            SPREAD[1] * scale * laplacian(v) + reaction - (FEED + KILL) * v,
        ]
    )


def start(n: int) -> Any:
    """Return a state with a drop of the second chemical in the middle."""
    state = np.stack([np.ones((n, n)), np.zeros((n, n))])
    state[:, 2 * n // 5 : n // 2, 2 * n // 5 : 3 * n // 5] = [[[0.5]], [[0.25]]]
    return ops.convert_to_tensor(state, "float32")


def run(n: int = 64, steps: int = 10, iterations: int = 12) -> dict[str, Any]:
    """Return the second chemical after so many steps, and what the Jacobian is like."""
    state = start(n)
    slope = multiop.sparse_jacobian(change, state)
    values = multiop.jit(slope.values)
    identity, residuals = scipy.sparse.eye_array(slope.shape[0], format="csc"), []
    for _ in range(steps):
        new = state
        for _ in range(iterations):
            residual = ops.convert_to_numpy(new - state - STEP * change(new)).ravel()
            matrix = identity - STEP * slope.matrix(values(new)).tocsc()
            update = scipy.sparse.linalg.splu(matrix).solve(residual.astype(matrix.dtype))
            new = new - ops.convert_to_tensor(update.reshape(new.shape), "float32")
        state = new
        residuals.append(float(np.abs(residual).max()))
    return {
        "state": ops.convert_to_numpy(state)[1].tolist(),
        "entries": slope.nnz,
        "products": slope.n_products,
        "residuals": residuals,
    }


if __name__ == "__main__":
    found = run()
    print({name: found[name] for name in ("entries", "products", "residuals")})
