"""Bundle adjustment: cameras and points from pictures, by least squares with a sparse Jacobian.

Each picture shows some of the points. Where a camera (a turn and a shift, 6 numbers) sees a point (3) is compared with
where it was seen; damped Gauss-Newton steps make the sum of squares small. A residual depends on one camera and one
point, so eight products give the whole Jacobian, however many there are of each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg

import multiop
from multiop import ops
from multiop.testing import example_inputs, normal

DISTANCE, DAMPING = 8.0, 1e-4


def turn(v: Any, x: Any) -> Any:
    """Return `x` (n, 3) turned about the axes `v` (n, 3) by their length: Rodrigues' formula."""
    angle = ops.sqrt(ops.sum(v * v, axis=-1, keepdims=True) + 1e-12)
    once, half = ops.cross(v, x), ops.sin(angle / 2.0) / angle
    return x + ops.sin(angle) / angle * once + 2.0 * half * half * ops.cross(v, once)


@example_inputs(normal(4, 6), normal(4, 3))
def project(cameras: Any, points: Any) -> Any:
    """Return where cameras (n, 6) see points (n, 3) in their pictures, (n, 2)."""
    x = turn(cameras[:, :3], points) + cameras[:, 3:]
    return x[:, :2] / (x[:, 2:] + DISTANCE)


def scene(n_cameras: int, n_points: int, seed: int = 0) -> tuple[Any, ...]:
    """Return cameras, points, which camera sees which point, and a first guess of both."""
    rng = np.random.default_rng(seed)
    cameras, points = 0.3 * rng.normal(size=(n_cameras, 6)), rng.normal(size=(n_points, 3))
    sees = np.nonzero(rng.uniform(size=(n_cameras, n_points)) < 0.6)
    guess = [x + 0.1 * rng.normal(size=x.shape) for x in (cameras, points)]
    return cameras, points, sees, guess


def single(x: Any) -> Any:
    return ops.convert_to_tensor(x, "float32")


def problem(n_cameras: int, n_points: int) -> tuple[Any, list[Any]]:
    """Return the function whose squares are to be small, and a first guess of its parameters."""
    cameras, points, (camera, point), guess = scene(n_cameras, n_points)
    seen = project(single(cameras[camera]), single(points[point]))

    def residual(parameters: Any) -> Any:
        there, where = parameters
        return project(ops.take(there, camera, 0), ops.take(where, point, 0)) - seen

    return residual, [single(x) for x in guess]


def run(n_cameras: int = 20, n_points: int = 200, steps: int = 8) -> dict[str, Any]:
    """Return the root mean square of what is left before each step, and what the Jacobian is like."""
    (residual, found), errors = problem(n_cameras, n_points), []
    slope = multiop.sparse_jacobian(residual, found)
    values = multiop.jit(slope.values)
    damping = DAMPING * scipy.sparse.eye_array(slope.shape[1], format="csc")
    for _ in range(steps):
        left = ops.convert_to_numpy(residual(found)).ravel()
        errors.append(float(np.sqrt(np.mean(left**2))))
        J = slope.matrix(values(found)).astype(np.float64)
        update = scipy.sparse.linalg.spsolve((J.T @ J).tocsc() + damping, J.T @ left)
        parts = np.split(update, [6 * n_cameras])
        found = [x - single(part.reshape(x.shape)) for x, part in zip(found, parts, strict=True)]
    return {"errors": errors, "entries": [slope.nnz], "products": [slope.n_products]}


if __name__ == "__main__":
    print(run())
