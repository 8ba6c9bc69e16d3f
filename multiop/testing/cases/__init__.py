"""The table of cases: a module per domain, with its rows in `ROWS`, one per op.

For example:

    ROWS = [
        row(
            "op_max", np.max,
            call(distinct(2, 3)),
            call(distinct(2, 3), axis=0, keepdims=True, initial=0.5),
            dtypes=REAL, returns=same,
            pins=[pin([2.0, 2.0, 1.0], value=2.0, gradient=[0.5, 0.5, 0.0])],
        ),
    ]

Rows that share options are made by a function of their module, with the name of the family: `of_matrices(...)`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from .._case import Row


@functools.cache
def rows() -> dict[str, Row]:
    """Return every row, by op."""
    found: dict[str, Row] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        for one in importlib.import_module(f"{__name__}.{module}").ROWS:
            if one.op in found:
                raise ValueError(f"{one.op} has two rows; the second is in {module}")
            found[one.op] = one
    return found
