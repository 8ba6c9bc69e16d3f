"""A planted fault."""

from __future__ import annotations

import dataclasses
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclasses.dataclass(frozen=True)
class Fault:
    """One wrong line: the text of a file with it, and the top-level function that it is in."""

    name: str
    group: str  # a backend, or "autodiff"
    path: str
    function: str
    kind: str
    by_hand: bool
    changed: str
