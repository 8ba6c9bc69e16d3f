"""Write the table of docs/sparse_derivatives.md that says how many products a pattern takes, beside asdex.

    python tools/coloring_table.py        # it needs asdex (`pip install asdex`)

`tests/autodiff/test_sparse.py` holds multiop's columns.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from multiop.autodiff.sparse import _coloring

PAGE = ROOT / "docs/sparse_derivatives.md"
HEAD = "| pattern | Jacobian | asdex, columns | Hessian | asdex, symmetric | acyclic |\n"


def band(n: int, *offsets: int) -> Any:
    """Return ones on diagonals."""
    return scipy.sparse.diags_array([1.0] * len(offsets), offsets=offsets, shape=(n, n))


def grid(n: int, dimensions: int) -> Any:
    """Return the stencil of a point and its neighbours on a grid."""
    size, total = n**dimensions, 0
    for k in range(dimensions):
        before, after = scipy.sparse.eye_array(n**k), scipy.sparse.eye_array(size // n ** (k + 1))
        total = total + scipy.sparse.kron(scipy.sparse.kron(before, band(n, -1, 0, 1)), after)
    return total


def arrow(n: int) -> Any:
    """Return the pattern of a full row, a full column and a diagonal."""
    pattern = np.eye(n)
    pattern[0] = pattern[:, 0] = 1
    return pattern


def kkt(n: int, m: int) -> Any:
    """Return the conditions of a minimum under constraints, of three variables each."""
    A = np.zeros((m, n))
    for i in range(m):
        A[i, 2 * i : 2 * i + 3] = 1
    return np.block([[np.eye(n), A.T], [A, np.zeros((m, m))]])


def drawn(n: int) -> Any:
    """Return a symmetric pattern that is drawn."""
    random = np.random.default_rng(0).uniform(size=(n, n)) < 0.03
    return random | random.T | np.eye(n, dtype=bool)


MATRICES = {
    "diagonal": np.eye(30),
    "tridiagonal": band(60, -1, 0, 1),
    "pentadiagonal": band(60, -2, -1, 0, 1, 2),
    "21 diagonals": band(60, *range(-10, 11)),
    "tridiagonal, periodic": band(60, -59, -1, 0, 1, 59),
    "stencil of 5 points, 16 × 16": grid(16, 2),
    "stencil of 7 points, 6 × 6 × 6": grid(6, 3),
    "stencil of 9 points, 16 × 16": scipy.sparse.kron(band(16, -1, 0, 1), band(16, -1, 0, 1)),
    "arrowhead, 50": arrow(50),
    "blocks of 4 × 4": np.kron(np.eye(8), np.ones((4, 4))),
    "KKT, 21 variables and 10 constraints": kkt(21, 10),
    "random and symmetric, 80, 7 %": drawn(80),
}


def patterns() -> dict[str, Any]:
    """Return the pattern of each matrix."""
    found = {name: scipy.sparse.csr_array(matrix, dtype=bool) for name, matrix in MATRICES.items()}
    for pattern in found.values():
        pattern.eliminate_zeros()
    return found


def counts() -> dict[str, tuple[int, int, int]]:
    """Return for each pattern the products for a Jacobian, and for a Hessian by a star and an acyclic colouring."""
    return {
        name: (
            _coloring.color_jacobian(pattern, "auto").size,
            _coloring.color_hessian(pattern).size,
            _coloring.color_hessian(pattern, True).size,
        )
        for name, pattern in patterns().items()
    }


def main() -> None:
    """Write the table."""
    import asdex

    lines = []
    for (name, pattern), (jacobian, star, acyclic) in zip(patterns().items(), counts().values(), strict=True):
        theirs = asdex.SparsityPattern.from_dense(pattern.toarray())
        columns = asdex.jacobian_coloring_from_sparsity(theirs, mode="fwd").num_colors
        symmetric = asdex.hessian_coloring_from_sparsity(theirs).num_colors
        lines.append(f"| {name} | {jacobian} | {columns} | {star} | {symmetric} | {acyclic} |\n")
    text = PAGE.read_text(encoding="utf-8")
    text = re.sub(r"asdex [\d.]+\d", f"asdex {importlib.metadata.version('asdex')}", text)
    start = text.index(HEAD)
    text = text[:start] + HEAD + "|---|---|---|---|---|---|\n" + "".join(lines) + text[text.index("\n\n", start) + 1 :]
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
