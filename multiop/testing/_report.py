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

OK, VACUOUS, FAILED, REFUSED, NOTE, NONE = "ok", "vacuous", "failed", "refused", "note", "none"


@dataclasses.dataclass
class Cell:
    """One property of one function on one backend.

    Attributes:
        status: `ok`; `vacuous`, nothing differs, but only because everything is 0, or the same at every input;
            `failed`; `refused`, an error that is allowed here: a documented one on every backend, or that compiled or
            mapped code has no numbers to read; `note`, no numerical estimate, or a deviation from finite differences
            that the function's mark announces; `none`, nothing to measure.
        error: The largest relative error that was found.
        message: What is wrong, or vacuous, if anything: in one line, and more in the lines after it.
        allowed: The largest relative error that passes, if one was compared with it.
    """

    status: str
    error: float | None = None
    message: str = ""
    allowed: float | None = None


@dataclasses.dataclass
class Report:
    """One function at one input, on every backend.

    Attributes:
        target: The file or module.
        name: The function.
        inputs: The input, in words.
        custom: Whether the function has a custom gradient.
        cells: Property -> backend -> cell.
        heading: The input in a few words.
        undifferentiated: Why there is no gradient, if that is so.
    """

    target: str
    name: str
    inputs: str
    custom: bool
    cells: dict[str, dict[str, Cell]]
    heading: str = ""
    undifferentiated: str = ""

    @property
    def agrees(self) -> bool:
        """Whether nothing failed."""
        return not any(cell.status == FAILED for by_backend in self.cells.values() for cell in by_backend.values())

    @property
    def differs(self) -> bool:
        """Whether a derivative is not that of finite differences, as the function's mark announces."""
        return any(c.status == NOTE and c.error is not None for c in self.cells["finite differences"].values())

    @property
    def refused(self) -> list[str]:
        """The properties that a backend refuses, where that is allowed."""
        return [name for name, cells in self.cells.items() if any(c.status == REFUSED for c in cells.values())]

    @property
    def verdict(self) -> str:
        """The outcome in a few words."""
        if not self.agrees:
            failed = [
                name for name, by_backend in self.cells.items() if any(c.status == FAILED for c in by_backend.values())
            ]
            return f"FAIL: {', '.join(failed)}"
        differing = [first_line(c.message) for c in self.cells["finite differences"].values() if c.status == NOTE]
        notes = [*differing[:1], *(f"{name} is refused" for name in self.refused), *self.vacuous]
        alone = "ok (one backend, nothing to compare with)" if len(self.cells["value"]) == 1 else "agree"
        return f"{alone}, but {'; '.join(notes)}" if notes else alone

    @property
    def vacuous(self) -> list[str]:
        """Why the checks that passed prove little; empty if they prove what they are for."""
        cells = [cell for by_backend in self.cells.values() for cell in by_backend.values()]
        reasons = dict.fromkeys(cell.message for cell in cells if cell.status == VACUOUS)
        return [*reasons, *filter(None, [self.undifferentiated])]


def compare(
    target: str,
    name: str,
    inputs: str,
    measured: dict[str, dict[str, Any]],
    heading: str = "",
    allow_refused: bool = False,
) -> Report:
    """Make the report of one function from the measurements of each backend."""
    custom = any(one.get("custom") for one in measured.values())
    differs = next((one["differs"] for one in measured.values() if one.get("differs") is not None), None)
    properties = {backend: one["properties"] for backend, one in measured.items()}
    cells: dict[str, dict[str, Cell]] = {}
    broken = {backend for backend, one in properties.items() if any("raised" in found for found in one.values())}
    for which in PROPERTIES:
        found = {backend: one.get(which) for backend, one in properties.items()}
        cells[which] = _raised_cells(found, broken, allow_refused, differs is not None)
        working = {backend: one for backend, one in found.items() if backend not in cells[which]}
        if which in COMPARED:
            cells[which] |= _compare_pairwise(working)
        elif which in CHECKED:
            cells[which] |= {backend: _cell_of_check(one) for backend, one in working.items()}
        else:
            cells[which] |= {backend: _numeric(one, differs) for backend, one in working.items()}
        cells[which] = {backend: cells[which][backend] for backend in measured}
    for backend, one in properties.items():
        _mark_vacuous({which: by_backend[backend] for which, by_backend in cells.items()}, one)
    undifferentiated = [one.get("value", {}).get("undifferentiated", "") for one in properties.values()]
    reason = undifferentiated[0] if all(undifferentiated) else ""
    return Report(target, name, inputs, custom, cells, heading or inputs, reason)


def _mark_vacuous(cells: dict[str, Cell], measured: dict[str, Any]) -> None:
    """Mark what passed on a backend because its results are the same at every input, or its gradient is 0."""
    value, gradient = (measured.get(which, {}).get("vacuous", "") for which in ("value", "gradient"))
    differentiated = "arrays" in measured.get("gradient", {})
    reasons = dict.fromkeys(("gradient", "finite differences", "second order", "forward mode"), gradient)
    reasons["value"] = value
    if value and (gradient or not differentiated):
        reasons |= dict.fromkeys(("vmap", "compiled"), value)
    for which, reason in reasons.items():
        if reason and cells[which].status == OK:
            cells[which].status, cells[which].message = VACUOUS, reason


def _raised_cells(found: dict[str, Any], broken: set[str], allow_refused: bool, differs: bool) -> dict[str, Cell]:
    """Return the cells of backends that raised or have no result.

    A documented refusal on all backends passes where it is allowed; so does, on any, a function that reads a number
    of what is compiled or mapped. That of a rule that is not linear, which has no forward mode, also passes where the
    function's mark says that its gradient `differs`. A `broken` backend, which raised before, need not have the
    results that the others have.
    """
    raised = {backend: one for backend, one in found.items() if one is not None and "raised" in one}
    kinds = {one["raised"] for one in raised.values()}
    everywhere = len(raised) == len(found) and len(kinds) == 1
    allowed = allow_refused or (differs and kinds == {"NonLinearRuleError"})
    cells = {}
    for backend, one in found.items():
        if one is None:
            missing = backend not in broken and any(other is not None for other in found.values())
            cells[backend] = Cell(FAILED, None, "only other backends have it") if missing else Cell(NONE)
        elif "raised" in one:
            refusal = (everywhere and one["refused"]) or one.get("reads", False)  # NumPy compiles nothing
            message = one["message"] + "\n  refused: --allow-refused lets it pass" * refusal
            cells[backend] = Cell(REFUSED, None, one["message"]) if refusal and allowed else Cell(FAILED, None, message)
    return cells


def _cell_of_check(one: dict[str, Any]) -> Cell:
    if "failed" in one:
        return Cell(FAILED, one["error"], one["failed"] + _hint(one["error"]), one.get("allowed"))
    return Cell(OK, one["error"])


def _numeric(one: dict[str, Any], differs: str | None) -> Cell:
    """Judge a comparison with finite differences; `differs` says why a function may differ from them."""
    worst = 0.0
    for order in ("first", "second"):
        found = one.get(order)
        if found is None:
            continue
        if found["same"] is None:
            return Cell(NOTE, None, f"the {order} derivative has no numerical estimate here (a kink, a jump, a NaN)")
        if not found["same"]:
            lines = [f"the {order} derivative differs from finite differences by {found['error']:.2g}"]
            lines += [found["message"]] if "message" in found else []
            if differs is None:
                lines.append("a rule that means to differ says so: write `# check: differs, REASON` in the function")
                return Cell(FAILED, found["error"], "\n".join(lines), found.get("allowed"))
            lines.append(f"on purpose: {differs}" if differs else "on purpose")
            return Cell(NOTE, found["error"], "\n".join(lines), found.get("allowed"))
        worst = max(worst, found["error"])
    return Cell(OK, worst)


def first_line(message: str) -> str:
    """Return what a message says in one line."""
    return message.partition("\n")[0]


def _compare_pairwise(found: dict[str, Any]) -> dict[str, Cell]:
    """Compare results pairwise; a backend outside the majority is off, and without a majority all are."""
    differences = {
        (one, other): _difference(found[one], found[other]) for one in found for other in found if one != other
    }
    agreeing = {
        one: [other for other in found if other != one and differences[one, other].message == ""] for one in found
    }
    cells = {}
    for one in found:
        if len(agreeing[one]) + 1 > len(found) / 2:
            cells[one] = Cell(OK, max([differences[one, other].error for other in agreeing[one]], default=None))
        else:
            against = max((other for other in found if other != one), key=lambda other: differences[one, other].error)
            worst = differences[one, against]
            cells[one] = Cell(FAILED, worst.error, f"against {against}: {worst.message}", worst.allowed)
    return cells


@dataclasses.dataclass
class _Difference:
    """The largest relative error between two backends' results; what is wrong, if anything; and what is allowed."""

    error: float
    message: str
    allowed: float | None = None


def _difference(one: dict[str, Any], other: dict[str, Any]) -> _Difference:
    def unlike(message: str) -> _Difference:
        return _Difference(math.inf, message)

    if one.get("structure") != other.get("structure"):
        return unlike(f"the result has structure {one.get('structure')} where {other.get('structure')} is expected")
    if len(one["arrays"]) != len(other["arrays"]):
        return unlike(f"{len(one['arrays'])} results where {len(other['arrays'])} are expected")
    found = _Difference(0.0, "")
    pairs = zip(one["arrays"], other["arrays"], one["scales"], other["scales"], strict=True)
    for k, (stored, expected, *scales) in enumerate(pairs):
        which = f"result {k}: " if len(one["arrays"]) > 1 else ""
        for what in ("dtype", "shape"):
            if stored[what] != expected[what]:
                return unlike(f"{which}{what} {stored[what]} where {expected[what]} is expected")
        x, y = from_json(stored), from_json(expected)
        error, allowed = relative_error(x, y, np.fmax(*map(from_json, scales))), AGREEMENT_ULPS * eps(x.dtype)
        if not error <= allowed and not found.message:
            text = f"{_entries(x, y)}; relative error {error:.3g}, {allowed:.3g} is allowed"
            found.message, found.allowed = f"{which}{text}{_hint(error)}", allowed
        found.error = max(found.error, error)
    return found


def _entries(x: Array, y: Array) -> str:
    """Say where two arrays differ most."""
    where = farthest(x, y)
    return f"{f'entry {list(where)} is ' if where else ''}{x[where]:.9g} where {y[where]:.9g} is expected"


def _hint(error: float) -> str:
    like_float32 = 1e-9 < error < 1e-5
    return "\n  the size of float32 rounding: is something float32 on the way? (see --dtype)" if like_float32 else ""
