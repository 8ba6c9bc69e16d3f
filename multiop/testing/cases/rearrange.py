"""Rows of the ops that rearrange dimensions by patterns."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._case import BOOLEAN, NUMERIC, call, row, same
from .._samplers import normal

# the meaning of each pattern below, in NumPy
_MEANING: dict[str, Any] = {
    "b h w c -> b c h w": lambda x: np.transpose(x, (0, 3, 1, 2)),
    "b (h1 h) w -> (b h1) (w h)": lambda x: (
        x.reshape(x.shape[0], 2, x.shape[1] // 2, x.shape[2]).transpose(0, 1, 3, 2).reshape(2 * x.shape[0], -1)
    ),
    "... (a b) -> b ... a": lambda x: np.moveaxis(x.reshape(*x.shape[:-1], -1, 2), -1, 0),
    "a ... -> (... a)": lambda x: np.moveaxis(x, 0, -1).reshape(-1),
    "a 1 b -> b () a 1": lambda x: x[:, 0].T[:, None, :, None],
    "->": lambda x: x,
    "a b -> (a b)": lambda x: x.reshape(-1),
}


ROWS = [
    row(
        "op_rearrange",
        lambda tensor, pattern, **axes_lengths: _MEANING[pattern](tensor),
        call(normal(2, 3, 2, 1), "b h w c -> b c h w"),
        call(normal(2, 4, 3), "b (h1 h) w -> (b h1) (w h)", h1=2),
        call(normal(2, 3, 4), pattern="... (a b) -> b ... a", b=2),
        call(normal(2, 3, 2), "a ... -> (... a)"),
        call(normal(2, 1, 3), "a 1 b -> b () a 1"),
        call(normal(), "->"),
        call(normal(0, 3), "a b -> (a b)"),
        dtypes=BOOLEAN + NUMERIC,
        returns=same,
    ),
]
