"""Compare the measurements of all backends for one function, and say which backend is off."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ._tolerances import AGREEMENT_ULPS, eps, farthest, relative_error
from ._worker import from_json

Array = np.ndarray[Any, Any]

COMPARED = ("value", "gradient", "second order")  # compared with the other backends
CHECKED = ("forward mode", "vmap", "compiled")  # compared within one backend
PROPERTIES = ("value", "gradient", "finite differences", "second order", "forward mode", "vmap", "compiled")

OK, FAILED, REFUSED, NOTE, NONE = "ok", "failed", "refused", "note", "none"


@dataclasses.dataclass
class Cell:
    """One property of one function on one backend.

    Attributes:
        status: `ok`; `failed`; `refused`, a documented error on every backend; `note`, a deviation from finite
            differences, which a custom gradient may have on purpose; `none`, nothing to measure.
        error: The largest relative error that was found.
        message: What is wrong, if anything.
    """

    status: str
    error: float | None = None
    message: str = ""


@dataclasses.dataclass
class Report:
    """One function at one input, on every backend.

    Attributes:
        target: The file or module.
        name: The function.
        inputs: The input, in words.
        custom: Whether the function has a custom gradient.
        cells: Property -> backend -> cell.
    """

    target: str
    name: str
    inputs: str
    custom: bool
    cells: dict[str, dict[str, Cell]]

    @property
    def agrees(self) -> bool:
        """Whether nothing failed."""
        return not any(cell.status == FAILED for by_backend in self.cells.values() for cell in by_backend.values())

    @property
    def verdict(self) -> str:
        """The outcome in a few words."""
        if not self.agrees:
            failed = [
                name for name, by_backend in self.cells.items() if any(c.status == FAILED for c in by_backend.values())
            ]
            return f"FAIL: {', '.join(failed)}"
        notes = [c.message for c in self.cells["finite differences"].values() if c.status == NOTE]
        alone = "ok (one backend, nothing to compare with)" if len(self.cells["value"]) == 1 else "agree"
        return f"{alone}, but {notes[0]}" if notes else alone


def compare(target: str, name: str, inputs: str, measured: dict[str, dict[str, Any]]) -> Report:
    """Make the report of one function from the measurements of each backend."""
    custom = any(one.get("custom") for one in measured.values())
    properties = {backend: one["properties"] for backend, one in measured.items()}
    cells: dict[str, dict[str, Cell]] = {}
    broken = {backend for backend, one in properties.items() if any("raised" in found for found in one.values())}
    for which in PROPERTIES:
        found = {backend: one.get(which) for backend, one in properties.items()}
        cells[which] = _raised(found, broken)
        working = {backend: one for backend, one in found.items() if backend not in cells[which]}
        if which in COMPARED:
            cells[which] |= _compared(working)
        elif which in CHECKED:
            cells[which] |= {backend: _checked(one) for backend, one in working.items()}
        else:
            cells[which] |= {backend: _numeric(one) for backend, one in working.items()}
        cells[which] = {backend: cells[which][backend] for backend in measured}
    return Report(target, name, inputs, custom, cells)


def _raised(found: dict[str, Any], broken: set[str]) -> dict[str, Cell]:
    """Return the cells of backends that raised or have no result; a documented refusal on all is not a failure.

    A `broken` backend, which raised before, need not have the results that the others have.
    """
    raised = {backend: one for backend, one in found.items() if one is not None and "raised" in one}
    refused = len(raised) == len(found) and len({one["raised"] for one in raised.values()}) == 1
    cells = {}
    for backend, one in found.items():
        if one is None:
            missing = backend not in broken and any(other is not None for other in found.values())
            cells[backend] = Cell(FAILED, None, "only other backends have it") if missing else Cell(NONE)
        elif "raised" in one:
            cells[backend] = Cell(REFUSED if refused and one["refused"] else FAILED, None, one["message"])
    return cells


def _checked(one: dict[str, Any]) -> Cell:
    if "failed" in one:
        return Cell(FAILED, one["error"], one["failed"] + _hint(one["error"]))
    return Cell(OK, one["error"])


def _numeric(one: dict[str, Any]) -> Cell:
    worst = 0.0
    for order in ("first", "second"):
        found = one.get(order)
        if found is None:
            continue
        if found["same"] is None:
            return Cell(NOTE, None, f"the {order} derivative has no numerical estimate here (a kink, a jump, a NaN)")
        if not found["same"]:
            return Cell(
                NOTE, found["error"], f"the {order} derivative differs from finite differences by {found['error']:.2g}"
            )
        worst = max(worst, found["error"])
    return Cell(OK, worst)


def _compared(found: dict[str, Any]) -> dict[str, Cell]:
    """Compare results pairwise; a backend outside the majority is off, and without a majority all are."""
    differences = {
        (one, other): _difference(found[one], found[other]) for one in found for other in found if one != other
    }
    agreeing = {one: [other for other in found if other != one and differences[one, other][1] == ""] for one in found}
    cells = {}
    for one in found:
        if len(agreeing[one]) + 1 > len(found) / 2:
            cells[one] = Cell(OK, max([differences[one, other][0] for other in agreeing[one]], default=None))
        else:
            worst = max((differences[one, other] for other in found if other != one), key=lambda d: d[0])
            against = next(other for other in found if other != one and differences[one, other] == worst)
            cells[one] = Cell(FAILED, worst[0], f"against {against}: {worst[1]}")
    return cells


def _difference(one: dict[str, Any], other: dict[str, Any]) -> tuple[float, str]:
    """Return the largest relative error between two backends' results, and what is wrong, if anything."""
    if one.get("structure") != other.get("structure"):
        return math.inf, f"the result has structure {one.get('structure')} where {other.get('structure')} is expected"
    if len(one["arrays"]) != len(other["arrays"]):
        return math.inf, f"{len(one['arrays'])} results where {len(other['arrays'])} are expected"
    worst, message = 0.0, ""
    pairs = zip(one["arrays"], other["arrays"], one["scales"], other["scales"], strict=True)
    for k, (stored, expected, *scales) in enumerate(pairs):
        which = f"result {k}: " if len(one["arrays"]) > 1 else ""
        for what in ("dtype", "shape"):
            if stored[what] != expected[what]:
                return math.inf, f"{which}{what} {stored[what]} where {expected[what]} is expected"
        x, y = from_json(stored), from_json(expected)
        error = relative_error(x, y, np.fmax(*map(from_json, scales)))
        if not error <= AGREEMENT_ULPS * eps(x.dtype):
            message = message or f"{which}{_entries(x, y)}{_hint(error)}"
        worst = max(worst, error)
    return worst, message


def _entries(x: Array, y: Array) -> str:
    """Say where two arrays differ most."""
    where = farthest(x, y)
    return f"{f'entry {list(where)} is ' if where else ''}{x[where]:.9g} where {y[where]:.9g} is expected"


def _hint(error: float) -> str:
    like_float32 = 1e-9 < error < 1e-5
    return "\n  the size of float32 rounding: is something float32 on the way? (see --dtype)" if like_float32 else ""
