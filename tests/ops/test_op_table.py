"""The table of ops is what the package has: every name, with its signature."""

from __future__ import annotations

import inspect
from pathlib import Path

import multiop
from multiop.testing.cases import rows

TABLE = [line.split("\t") for line in (Path(__file__).parent / "op_table.tsv").read_text().splitlines() if line]
NAMES = [name for name, *_ in TABLE]
GRADIENTS = {"op_custom_gradient", "op_stop_gradient", "op_jvp"}  # proved in tests/autodiff


def parameters(function):
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def written(signature):
    """Return the parameters of a signature of the table."""
    scope = {}
    exec(f"def f{signature.partition('#')[0].strip()}: pass", scope)  # the table is a file of this repository
    return parameters(scope["f"])


def test_the_table_is_whole():
    assert len(NAMES) == len(set(NAMES)) > 300


def test_what_is_missing():
    assert not {name for name in NAMES if not hasattr(multiop, name)}


def test_signatures():
    found = {name: (parameters(getattr(multiop, name)), written(signature)) for name, _, _, signature in TABLE}
    assert {name: pair for name, pair in found.items() if pair[0] != pair[1]} == {}


def test_every_op_has_a_row():
    assert set(NAMES) - set(rows()) == GRADIENTS
