# made by tools/op_list.py: run `nox -s generate`, do not edit
# ruff: noqa: I001
# fmt: off
"""Linear algebra without prefix, as in `keras.ops.linalg`: `ops.linalg.det(x)`."""

import typing as _typing

from multiop.frontends.linalg import (
    op_cholesky as cholesky, op_cholesky_inverse as cholesky_inverse, op_det as det, op_eig as eig, op_eigh as eigh,
    op_eigvals as eigvals, op_eigvalsh as eigvalsh, op_expm as expm, op_inv as inv, op_logm as logm, op_lstsq as lstsq,
    op_lu_factor as lu_factor, op_matrix_power as matrix_power, op_matrix_rank as matrix_rank, op_norm as norm,
    op_pinv as pinv, op_polar_decomposition as polar_decomposition, op_qr as qr, op_solve as solve,
    op_solve_sylvester as solve_sylvester, op_solve_triangular as solve_triangular, op_sqrtm as sqrtm, op_svd as svd,
    op_svdvals as svdvals,
)

__all__ = [
    "cholesky", "cholesky_inverse", "det", "eig", "eigh", "eigvals", "eigvalsh", "expm", "inv", "logm", "lstsq",
    "lu_factor", "matrix_power", "matrix_rank", "norm", "pinv", "polar_decomposition", "qr", "solve", "solve_sylvester",
    "solve_triangular", "sqrtm", "svd", "svdvals",
]

if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        raise missing(__name__, name, __all__)
