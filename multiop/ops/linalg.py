# made by tools/op_list.py: run `nox -s generate`, do not edit
"""Linear algebra without prefix, as in `keras.ops.linalg`: `ops.linalg.det(x)`."""

import typing as _typing

from multiop._loading.suggestions import (
    public_names as _public_names,
)
from multiop.frontends import (
    linalg as _linalg,
)

cholesky = _linalg.op_cholesky
det = _linalg.op_det
inv = _linalg.op_inv
pinv = _linalg.op_pinv
solve = _linalg.op_solve
solve_triangular = _linalg.op_solve_triangular
expm = _linalg.op_expm
lu_factor = _linalg.op_lu_factor
qr = _linalg.op_qr
svd = _linalg.op_svd
eigh = _linalg.op_eigh
eig = _linalg.op_eig
eigvalsh = _linalg.op_eigvalsh
eigvals = _linalg.op_eigvals
svdvals = _linalg.op_svdvals
cholesky_inverse = _linalg.op_cholesky_inverse
lstsq = _linalg.op_lstsq
matrix_power = _linalg.op_matrix_power
matrix_rank = _linalg.op_matrix_rank
norm = _linalg.op_norm
solve_sylvester = _linalg.op_solve_sylvester
polar_decomposition = _linalg.op_polar_decomposition
sqrtm = _linalg.op_sqrtm
logm = _linalg.op_logm


if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name
    __all__ = _public_names(__name__)

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        raise missing(__name__, name, __all__)
