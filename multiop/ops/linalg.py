# made by tools/op_list.py: run `nox -s generate`, do not edit
"""Linear algebra without prefix, as in `keras.ops.linalg`: `ops.linalg.det(x)`."""

import typing as _typing

from multiop._loading.suggestions import (
    public_names as _public_names,
)
from multiop.frontends import (
    decompositions as _decompositions,
)

cholesky = _decompositions.op_cholesky
det = _decompositions.op_det
inv = _decompositions.op_inv
pinv = _decompositions.op_pinv
solve = _decompositions.op_solve
solve_triangular = _decompositions.op_solve_triangular
expm = _decompositions.op_expm
lu_factor = _decompositions.op_lu_factor
qr = _decompositions.op_qr
svd = _decompositions.op_svd
eigh = _decompositions.op_eigh
eig = _decompositions.op_eig
eigvalsh = _decompositions.op_eigvalsh
eigvals = _decompositions.op_eigvals
svdvals = _decompositions.op_svdvals
cholesky_inverse = _decompositions.op_cholesky_inverse
lstsq = _decompositions.op_lstsq
matrix_power = _decompositions.op_matrix_power
matrix_rank = _decompositions.op_matrix_rank
norm = _decompositions.op_norm
solve_sylvester = _decompositions.op_solve_sylvester
polar_decomposition = _decompositions.op_polar_decomposition
sqrtm = _decompositions.op_sqrtm
logm = _decompositions.op_logm


if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name
    __all__ = _public_names(__name__)

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        raise missing(__name__, name, __all__)
