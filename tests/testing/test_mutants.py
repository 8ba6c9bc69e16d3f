"""The faults that `nox -s mutants` plants: each of them can be planted, and is one change."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "mutants"


@pytest.fixture
def mutants(monkeypatch):
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and Path(sys.modules[name].__file__).parent == FOLDER:
            del sys.modules[name]


def test_faults_by_hand_stand_where_they_are_said_to(mutants):
    from _by_hand import EQUIVALENT, faults_by_hand

    faults = faults_by_hand()
    assert len(faults) >= 60
    assert len({fault.name for fault in faults}) == len(faults)
    assert all(reason for reason in EQUIVALENT.values())


def test_drawn_faults_are_the_same_for_the_same_seed(mutants):
    from _generated import draw

    counts = {"torch": 3, "jax": 3, "tensorflow": 3, "autodiff": 3}
    faults = draw(0, counts)
    assert len(faults) == 12
    assert [fault.name for fault in draw(0, counts)] == [fault.name for fault in faults]
    assert {fault.name for fault in draw(1, counts)} != {fault.name for fault in faults}


def test_a_drawn_fault_changes_the_function_that_it_names(mutants):
    from _fault import ROOT
    from _generated import draw

    def functions(text):
        return {node.name: ast.dump(node) for node in ast.parse(text).body if hasattr(node, "name")}

    for fault in draw(0, {"torch": 8, "autodiff": 8}):
        before, after = functions((ROOT / fault.path).read_text()), functions(fault.changed)
        assert [name for name in before if before[name] != after[name]] == [fault.function]


def test_ops_that_reach_a_function_are_found(mutants):
    from _reach import ops_reaching

    assert ops_reaching("torch", "op_max")[0] == "op_max"
    assert "op_det" in ops_reaching("torch", "small_det")
    assert ops_reaching("jax", "no_such_function") == []


def test_a_case_has_its_turn_on_each_framework_once_in_three_weeks_and_on_numpy_each_week(pytestconfig):
    is_in_turn = pytestconfig.pluginmanager.get_plugin(str(FOLDER.parents[1] / "conftest.py")).is_in_turn
    for k in range(20):
        on = {name: f"tests/ops/test_axes.py::test_axes[{name}-{k}]" for name in ("torch", "jax", "tensorflow")}
        weeks = ["2026-W53", "2027-W01", "2027-W02"]
        weeks = [{name for name in on if is_in_turn(on[name], name, week)} for week in weeks]
        assert sorted(name for found in weeks for name in found) == sorted(on)
        assert all(len(found) == 1 for found in weeks)
        assert all(is_in_turn(on[name], name, "every") for name in on)
        assert is_in_turn(f"tests/ops/test_axes.py::test_axes[numpy-{k}]", "numpy", "2026-W46")


def test_every_stage_of_a_fault_asks_for_the_week(mutants):
    from _reach import stages

    for group, path in {
        "torch": "backends/torch/ops/linalg.py",
        "random": "random/_bits.py",
        "porting": "porting/_graph.py",
    }.items():
        todo, _ = stages("torch", group, f"multiop/{path}", "op_det", "default", "2026-W48", [])
        assert todo
        assert all("--week=2026-W48" in stage["args"] for stage in todo)
