"""A planted fault."""

from __future__ import annotations

import dataclasses
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = {name: f"multiop/backends/{name}" for name in ("torch", "jax", "tensorflow", "numpy")}
BACKENDS = tuple(FOLDERS)
FOLDERS |= {name: f"multiop/{name}" for name in ("autodiff", "frontends", "random", "porting")}


@dataclasses.dataclass(frozen=True)
class Fault:
    """One wrong line: the text of a file with it, and the top-level function that it is in."""

    name: str
    group: str  # one of FOLDERS
    path: str
    function: str
    kind: str
    by_hand: bool
    changed: str
