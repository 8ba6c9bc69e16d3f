"""The table of ported models in benchmarks/ported.md: it has what it promises, for models that are still there."""

from __future__ import annotations

import re

import numpy as np
import port_table
import pytest

NAMED = [f"{name} ({framework})" for framework in port_table.FRAMEWORKS for name in port_table.names_in(framework)]
HEAD, _, *ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in port_table.written()]
PORTED = [row for row in ROWS if not row[1].startswith("refused: ")]
BACKENDS = ["torch", "jax", "tensorflow", "numpy"]
ERRORS = re.compile(r"(\S+), (\S+) · (\d+), (\d+) · (\S+)")


def test_models_are_many_and_named_in_order():
    assert ["model", "operations", "lines", "of the original", "seconds", "bridged", *BACKENDS, "rounding"] == HEAD
    names = [row[0] for row in ROWS]
    assert names == [name for name in NAMED if name in names]
    assert len(names) >= 60


def test_the_guide_says_how_many():
    guide = (port_table.ROOT / "docs/porting.md").read_text(encoding="utf-8")
    assert f"[{len(PORTED)} models of " in guide


def test_few_models_are_refused_and_each_for_a_reason():
    refused = [row for row in ROWS if row not in PORTED]
    assert len(refused) <= 3
    assert all(re.search(r"refused: \w+", row[1]) for row in refused)


@pytest.mark.parametrize("row", PORTED, ids=lambda row: row[0])
def test_row_agrees_and_is_short(row):
    lines, original, seconds = int(row[2]), int(row[3]), float(row[4])
    assert lines < original
    assert seconds <= port_table.LONGEST
    moved = [] if row[-1] == "—" else row[-1].split(", ")
    units = max(port_table.UNITS, *[port_table.TIMES * (int(each) + 0.5) for each in moved], 0)
    for cell in row[6:-1]:
        match = ERRORS.fullmatch(cell)
        assert match is not None, cell
        assert max(float(match[i]) for i in (1, 2, 5)) <= port_table.SINGLE
        assert max(int(match[i]) for i in (3, 4)) <= units


def test_a_difference_is_seen_in_outputs_gradients_and_state():
    exact = [np.array([1.0, 2.0])], {"w": np.array([4.0]), "frozen": np.array([1.0])}, {"mean": np.array([8.0])}
    for number, worst in enumerate((0.5, 0.25, 0.125)):
        port = [np.array([1.0, 2.0])], {"w": np.array([4.0])}, {"mean": np.array([8.0])}
        values = port[number]
        values[0 if number == 0 else next(iter(values))][-1] += 1
        assert max(port_table.apart(port, exact, set())) == worst
