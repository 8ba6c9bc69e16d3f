"""Rows of the matrix decompositions and the ops built on them.

The vectors of an SVD or eigendecomposition are only unique up to sign: tests/ops/test_linalg.py tests them.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.linalg

from .._case import call, floating, magnitude, pin, row, same
from .._samplers import Sampler, distinct, normal

INF, NAN = np.inf, np.nan
DTYPES = ("float32", "float64", "complex64", "complex128")
ULPS = 200.0


def dominant(*shape: int) -> Sampler:
    """Square matrices that are far from singular."""
    eye = np.eye(shape[-1])
    return Sampler(
        "dominant",
        shape,
        lambda rng, s: rng.normal(size=s) * 0.5 + 2 * eye,
        lambda rng, s: rng.integers(-1, 2, s) + 5 * eye.astype(int),
    )


def near_identity(*shape: int) -> Sampler:
    """Square matrices whose logarithms take no roots: tests/ops/test_linalg.py has others."""
    eye = np.eye(shape[-1])
    return Sampler(
        "near_identity",
        shape,
        lambda rng, s: rng.uniform(-0.1, 0.1, size=s) + eye,
        lambda rng, s: rng.integers(1, 2, s) * eye.astype(int),
    )


def lower(x: Any) -> Any:
    """Return the Hermitian matrices given by the lower triangles of `x`."""
    strict = np.tril(x, -1)
    return strict + np.conj(np.swapaxes(strict, -1, -2)) + np.eye(x.shape[-1]) * x.real


def triangular(a: Any, b: Any, lower: bool = False) -> Any:
    """Solve a system, reading only one triangle."""
    a = np.tril(a) if lower else np.triu(a)
    return solve(a, b)


def solve(a: Any, b: Any) -> Any:
    """Solve systems of vectors or of matrices."""
    return np.linalg.solve(a, b[..., None])[..., 0] if b.ndim == a.ndim - 1 else np.linalg.solve(a, b)


def least_squares(a: Any, b: Any, rcond: Any = None, residuals: bool = False) -> Any:
    """Solve by the pseudoinverse."""
    is_vector = b.ndim < a.ndim
    b = b[..., None] if is_vector else b
    x = np.linalg.pinv(a, rcond=rcond or 1e-13) @ b
    squares = (np.abs(b - a @ x) ** 2).sum(-2)
    x, squares = (x[..., 0], squares[..., 0]) if is_vector else (x, squares)
    return (x, squares) if residuals else x


def sylvester(a: Any, b: Any, q: Any) -> Any:
    """Solve equations, one by one."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in (a, b, q)))
    solutions = [
        scipy.linalg.solve_sylvester(*xs) for xs in zip(*(stack_matrices(x, batch) for x in (a, b, q)), strict=True)
    ]
    return np.reshape(solutions, (*batch, *q.shape[-2:]))


def stack_matrices(x: Any, batch: tuple[int, ...] | None = None) -> Any:
    """Return matrices, broadcast to a batch, in a single row."""
    batch = x.shape[:-2] if batch is None else batch
    return np.broadcast_to(x, (*batch, *x.shape[-2:])).reshape(int(np.prod(batch)), *x.shape[-2:])


def of_each(function: Any) -> Any:
    """Return a function of stacks of matrices."""
    return lambda x: np.reshape([function(matrix) for matrix in stack_matrices(x)], x.shape)


def polar(x: Any, side: str = "right") -> Any:
    """Return the two factors of stacks of matrices."""
    pairs = [scipy.linalg.polar(matrix, side) for matrix in stack_matrices(x)]
    return tuple(np.reshape(part, (*x.shape[:-2], *part[0].shape)) for part in zip(*pairs, strict=True))


def lu(x: Any) -> Any:
    """Factorise with `int32` pivots, one by one: SciPy 1.13 takes a stack of matrices, and is wrong."""
    factors, pivots = zip(*map(scipy.linalg.lu_factor, stack_matrices(x)), strict=True)
    return np.reshape(factors, x.shape), np.reshape(pivots, (*x.shape[:-2], -1)).astype(np.int32)


def sqrtm(x: Any) -> Any:
    """Return the square root, which is real where `x` is: SciPy 1.13 may leave an imaginary part of rounding errors."""
    root = scipy.linalg.sqrtm(x)
    return root if np.iscomplexobj(x) else root.real


def logdet(x: Any) -> Any:
    """Return the logarithm of the determinant."""
    sign, logabsdet = np.linalg.slogdet(x)
    return np.log(sign) + logabsdet


def cholesky_inverse(x: Any, upper: bool = False) -> Any:
    """Return the inverse of the matrix whose Cholesky factor is `x`."""
    factor = np.triu(x) if upper else np.conj(np.swapaxes(np.tril(x), -1, -2))
    return np.linalg.inv(np.conj(np.swapaxes(factor, -1, -2)) @ factor)


def rank(x: Any, tol: float | None = None, hermitian: bool = False) -> Any:
    """Return the rank, which is 0 for an empty matrix."""
    return np.asarray(np.linalg.matrix_rank(x, tol, hermitian) if x.size else np.zeros(x.shape[:-2])).astype(np.int32)


def real(dtypes: Any) -> str:
    """The operands' common dtype of real floats."""
    return magnitude([floating(dtypes)])


of_matrices = functools.partial(row, dtypes=("int32", *DTYPES), returns=floating, ulps=ULPS)
eigendecomposition = functools.partial(
    row,
    dtypes=("float32", "float64"),
    returns=lambda dtypes: {"float32": "complex64", "float64": "complex128"}[dtypes[0]],
    differentiable=False,
)

ROWS = [
    of_matrices(
        "op_cholesky",
        lambda x, upper=False: (
            np.conj(np.swapaxes(np.linalg.cholesky(lower(x)), -1, -2)) if upper else np.linalg.cholesky(lower(x))
        ),
        call(dominant(3, 3)),
        call(dominant(2, 2, 2), upper=True),
        call(dominant(0, 0)),
        pins=[pin([[4.0, NAN], [2.0, 2.0]], value=[[2.0, 0.0], [1.0, 1.0]], gradient=[[0.25, 0.0], [0.0, 0.5]])],
    ),
    of_matrices(
        "op_det",
        np.linalg.det,
        call(dominant(4, 4)),
        call(normal(2, 3, 3)),
        call(normal(2, 2)),
        call(normal(2, 1, 1)),
        call(dominant(2, 0, 0)),
        pins=[
            pin([[1.0, 2.0], [2.0, 4.0]], value=0.0, gradient=[[4.0, -2.0], [-2.0, 1.0]]),
            pin(np.diag([1.0, 2.0, 3.0, 0.0]).tolist(), value=0.0, gradient=np.diag([0.0, 0.0, 0.0, 6.0]).tolist()),
            pin(np.diag([1.0, 2.0, 0.0, 0.0]).tolist(), value=0.0, gradient=np.zeros((4, 4)).tolist()),
            pin(np.zeros((5, 5)).tolist(), value=0.0, gradient=np.zeros((5, 5)).tolist()),
        ],
    ),
    of_matrices(
        "op_slogdet",
        np.linalg.slogdet,
        call(dominant(3, 3)),
        call(normal(2, 4, 4)),
        call(dominant(0, 0)),
        returns=lambda dtypes: (floating(dtypes), real(dtypes)),
        pins=[pin([[1.0, 2.0], [2.0, 4.0]], value=(0.0, -INF), gradient=[[NAN, NAN], [NAN, NAN]])],
    ),
    of_matrices(
        "op_logdet",
        logdet,
        call(dominant(3, 3)),
        call(dominant(2, 4, 4)),
        pins=[
            pin([[1.0, 2.0], [2.0, 4.0]], value=-INF, gradient=[[NAN, NAN], [NAN, NAN]]),
            pin([[0.0, 1.0], [1.0, 0.0]], value=NAN),
        ],
    ),
    of_matrices(
        "op_inv",
        np.linalg.inv,
        call(dominant(3, 3)),
        call(dominant(2, 2, 2)),
        call(dominant(0, 0)),
    ),
    of_matrices(
        "op_pinv",
        lambda x, rcond=None, hermitian=False: np.linalg.pinv(lower(x) if hermitian else x, rcond=rcond or 1e-13),
        call(normal(3, 2)),
        call(dominant(2, 3, 3), hermitian=True),
        call(normal(2, 2, 3)),
        call(np.array([[1.0, 2.0], [2.0, 4.0]]), rcond=1e-5),
        call(normal(0, 3)),
        pins=[
            pin([[2.0, 0.0], [0.0, 0.0]], value=[[0.5, 0.0], [0.0, 0.0]], gradient=[[-0.25, 0.25], [0.25, 0.0]]),
            pin([[1.0, 0.0], [0.0, 1.0]], value=[[1.0, 0.0], [0.0, 1.0]], gradient=[[-1.0, -1.0], [-1.0, -1.0]]),
        ],
    ),
    of_matrices(
        "op_solve",
        solve,
        call(dominant(3, 3), normal(3, 2)),
        call(dominant(2, 3, 3), normal(2, 3)),
        call(dominant(2, 2), normal(2)),
        call(dominant(2, 1, 2, 2), normal(1, 3, 2, 1)),
        call(dominant(2, 2, 2), normal(2)),
        call(dominant(1, 2, 1, 1), normal(1)),
        call(dominant(2, 3, 2, 2), normal(2, 2)),
        call(dominant(2, 2), normal(3, 2, 1)),
        call(dominant(0, 0), normal(0, 2)),
    ),
    of_matrices(
        "op_solve_triangular",
        triangular,
        call(dominant(3, 3), normal(3, 2)),
        call(dominant(2, 3, 3), normal(2, 3), lower=True),
        call(dominant(2, 1, 2, 2), normal(1, 3, 2, 1)),
        call(dominant(2, 2, 2), normal(2)),
        call(dominant(2, 3, 2, 2), normal(2, 2)),
        call(dominant(2, 2), normal(3, 2, 1)),
        call(dominant(0, 0), normal(0, 2)),
        pins=[pin([[1.0, 2.0], [NAN, 1.0]], [3.0, 1.0], value=[1.0, 1.0])],
    ),
    of_matrices(
        "op_cholesky_inverse",
        cholesky_inverse,
        call(dominant(3, 3)),
        call(dominant(2, 2, 2), upper=True),
    ),
    of_matrices(
        "op_lstsq",
        least_squares,
        call(normal(4, 2), normal(4, 2)),
        call(normal(2, 4, 2), normal(2, 4), residuals=True),
        call(normal(2, 2, 3), normal(2, 2, 2)),
        call(normal(4, 2), normal(4, 1), residuals=True),
        call(normal(2, 3), normal(2)),
        call(np.array([[1.0, 2.0], [2.0, 4.0]]), normal(2), rcond=1e-5),
        returns=lambda dtypes: None if "complex" in floating(dtypes) else floating(dtypes),
    ),
    row(
        "op_matrix_power",
        np.linalg.matrix_power,
        call(normal(3, 3), 3),
        call(dominant(2, 2, 2), n=-2),
        call(normal(2, 2, 2), 0),
        call(normal(2, 2), 1),
        call(normal(0, 0), 2),
        dtypes=DTYPES,
        returns=same,
        ulps=ULPS,
    ),
    of_matrices(
        "op_expm",
        scipy.linalg.expm,
        call(normal(3, 3)),
        call(normal(2, 2, 2, scale=5.0)),
        call(normal(1, 1)),
        pins=[
            pin([[0.0, 0.0], [0.0, 0.0]], value=[[1, 0], [0, 1]], gradient=[[1, 1], [1, 1]]),
            pin([[0.0, 3.0], [0.0, 0.0]], value=[[1, 3], [0, 1]]),
            # rotations by angles for which PyTorch has a wrong coefficient
            *[
                pin([[0.0, -x], [x, 0.0]], value=[[np.cos(x), -np.sin(x)], [np.sin(x), np.cos(x)]], dtype=dtype)
                for x, dtype in ((0.5, "float32"), (0.0390625, "float64"))
            ],
        ],
    ),
    of_matrices(
        "op_solve_sylvester",
        sylvester,
        call(dominant(3, 3), dominant(2, 2), normal(3, 2)),
        call(dominant(2, 1, 2, 2), dominant(1, 1), normal(3, 2, 1)),
    ),
    of_matrices(
        "op_polar_decomposition",
        polar,
        call(dominant(3, 3)),
        call(normal(2, 3, 2)),
        call(normal(2, 3), side="left"),
        ulps=4 * ULPS,  # an entry near 0 of a unitary matrix has the rounding errors of 1
        pins=[pin([[2.0, 0.0], [0.0, 2.0]], value=([[1, 0], [0, 1]], [[2, 0], [0, 2]]))],
    ),
    of_matrices(
        "op_sqrtm",
        of_each(sqrtm),
        call(dominant(3, 3)),
        call(dominant(2, 2, 2)),
        pins=[
            pin([[1.0, 0.0], [0.0, 1.0]], value=[[1, 0], [0, 1]], gradient=[[0.5, 0.5], [0.5, 0.5]]),
            pin([[4.0, 4.0], [0.0, 4.0]], value=[[2, 1], [0, 2]]),
        ],
    ),
    of_matrices(
        "op_logm",
        of_each(scipy.linalg.logm),
        call(near_identity(2, 2)),
        call(near_identity(2, 1, 1)),
        pins=[
            pin([[1.0, 0.0], [0.0, 1.0]], value=[[0, 0], [0, 0]], gradient=[[1, 1], [1, 1]]),
            pin([[1.0, 1.0], [0.0, 1.0]], value=[[0, 1], [0, 0]]),
        ],
    ),
    of_matrices(
        "op_lu_factor",
        lu,
        call(normal(3, 3)),
        call(normal(4, 2)),
        call(dominant(2, 3, 3)),
        call(normal(2, 2, 3)),
        call(normal(1, 1)),
        returns=lambda dtypes: (floating(dtypes), "int32"),
        pins=[
            pin([[1.0, 2.0], [2.0, 2.0]], value=([[2.0, 2.0], [0.5, 1.0]], [1, 1])),
            pin([[0.0, 2.0, 4.0], [0.0, 4.0, 2.0]], value=([[0.0, 2.0, 4.0], [0.0, 4.0, 2.0]], [0, 1])),
            pin([[1.0, 2.0], [2.0, 4.0]], value=([[2.0, 4.0], [0.5, 0.0]], [1, 1])),
            pin([[1.0], [-4.0], [2.0]], value=([[-4.0], [-0.25], [-0.5]], [1])),
            pin([[], [], []], value=(np.zeros((3, 0)), np.zeros(0))),
        ],
    ),
    of_matrices(
        "op_qr",
        lambda x, mode="reduced", broadening=None: tuple(np.linalg.qr(x, mode)),
        call(normal(3, 2)),
        call(normal(2, 2, 3), mode="complete"),
        call(dominant(2, 2), broadening=1e-14),
        call(normal(3, 3)),
        returns=lambda dtypes: (floating(dtypes),) * 2,
        pins=[pin([[3.0], [4.0]], value=([[-0.6], [-0.8]], [[-5.0]]))],
    ),
    of_matrices(
        "op_svd",
        lambda x, full_matrices=True, compute_uv=True, broadening=None: np.linalg.svd(x, compute_uv=False),
        call(normal(3, 2), compute_uv=False),
        call(normal(2, 2), compute_uv=False, broadening=1e-14),
        call(normal(2, 2, 3), full_matrices=False, compute_uv=False),
        call(normal(0, 3), compute_uv=False),
        returns=real,
        pins=[pin([[1.0, 0.0], [0.0, 1.0]], value=[1.0, 1.0], gradient=[[1.0, 0.0], [0.0, 1.0]], compute_uv=False)],
    ),
    of_matrices(
        "op_svdvals",
        lambda x: np.linalg.svd(x, compute_uv=False),
        call(normal(3, 2)),
        call(normal(2, 2, 3)),
        returns=real,
    ),
    of_matrices(
        "op_eigvalsh",
        np.linalg.eigvalsh,
        call(normal(3, 3)),
        call(normal(2, 2, 2), UPLO="U"),
        returns=real,
    ),
    eigendecomposition(
        "op_eigvals",
        lambda x: np.linalg.eigvals(x).astype(complex),
        call(np.array([[2.0]])),
        call(np.array([[[-1.0, 2.0], [0.0, 3.0]]])),
    ),
    eigendecomposition(
        "op_eigh",
        lambda x, UPLO="L", broadening=None: tuple(np.linalg.eigh(x, UPLO)),
        call(np.array([[2.0]]), UPLO="U", broadening=1e-14),
        call(np.array([[[-1.0]], [[3.0]]])),
        returns=floating,
    ),
    eigendecomposition(
        "op_eig",
        lambda x, broadening=None: tuple(y.astype(complex) for y in np.linalg.eig(x)),
        call(np.array([[2.0]]), broadening=1e-14),
        call(np.array([[[-1.0]], [[3.0]]])),
    ),
    row(
        "op_matrix_rank",
        rank,
        call(normal(3, 2)),
        call(np.array([[1.0, 2.0], [2.0, 4.0]])),
        call(normal(2, 2, 3), tol=100.0),
        call(np.array([[1.0, -5.0], [2.0, 4.0]]), hermitian=True),
        call(normal(2, 0, 3)),
        dtypes=("int32", *DTYPES),
        returns="int32",
        differentiable=False,
    ),
    of_matrices(
        "op_norm",
        np.linalg.norm,
        call(normal(2, 2, 2)),
        *(call(distinct(3, 2), axis=0, ord=p) for p in (None, 2, 1, 0, INF, -INF, 3, 1.5, -1)),
        *(call(distinct(2, 3), ord=p) for p in ("fro", "nuc", 2, -2, 1, -1, INF, -INF)),
        call(distinct(3, 2, 2), ord=1, axis=(2, 0), keepdims=True),
        call(distinct(3, 2, 2), ord="nuc", axis=(-3, 1), keepdims=True),
        call(normal(3), ord=0.5, axis=-1, keepdims=True),
        call(normal(0)),
        call(normal()),
        returns=real,
        pins=[
            pin([0.0, 0.0], value=0.0, gradient=[0.0, 0.0]),
            pin([0.0, 0.0], ord=3, value=0.0, gradient=[0.0, 0.0]),
            pin([0.0, 0.0], ord=1, value=0.0, gradient=[0.0, 0.0]),
            pin([3.0, -3.0], ord=INF, value=3.0, gradient=[0.5, -0.5]),
            pin([3.0, 4.0], value=5.0, gradient=[0.6, 0.8], dtype="float16"),
            pin([3.0, NAN], value=NAN),
            pin([3.0, INF], value=INF),
            *(pin([2.0, 0.0], ord=p, value=0.0, gradient=[0.0, 0.0]) for p in (-1, -2.5)),
            *(pin([0.0, 0.0], ord=p, value=0.0, gradient=[0.0, 0.0]) for p in (-1, 0.5, 1.5)),
            pin([4.0, 0.0], ord=0.5, value=4.0, gradient=[1.0, 0.0]),
            pin([0.0, NAN], ord=-1, value=NAN),
            pin([[0.0, 0.0], [0.0, 0.0]], ord="nuc", value=0.0, gradient=[[0.0, 0.0], [0.0, 0.0]]),
            pin([[0.0, 0.0], [0.0, 0.0]], ord=2, value=0.0, gradient=[[0.0, 0.0], [0.0, 0.0]]),
            pin([[2.0, 0.0], [0.0, 0.0]], ord="nuc", value=2.0, gradient=[[1.0, 0.0], [0.0, 0.0]]),
        ],
    ),
    row(
        "op_cdist",
        lambda x, y: np.sqrt(np.sum(np.abs(x[..., :, None, :] - y[..., None, :, :]) ** 2, -1)),
        call(normal(2, 3), normal(4, 3)),
        call(normal(2, 1, 2, 2), normal(3, 2, 2)),
        call(normal(2, 3), normal(0, 3)),
        dtypes=("int32", "float16", "bfloat16", *DTYPES),
        returns=real,
        ulps=8.0,
        pins=[pin([[1.0, 2.0]], [[1.0, 2.0]], value=[[0.0]], gradient=([[0.0, 0.0]], [[0.0, 0.0]]))],
    ),
]
