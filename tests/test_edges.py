"""A search at the edges of every dtype finds nothing in a few ops; `nox -s search -- edges` takes all of them."""

from __future__ import annotations

import dataclasses

import edge_arrays
import edge_pairs
import edge_scalars
import edge_search
import edge_special
import pytest
from edge_known import EXCLUDED
from edge_search import Report, search

import multiop
from multiop.frontends import activations, elementwise, losses, normalization, reduction, special, statistics

SEARCHED = (activations, elementwise, losses, normalization, reduction, special, statistics)  # what the grid is for
OPS = ["op_reciprocal", "op_relu", "op_sum"]
ADDED = (*edge_special.SPECIAL, *edge_special.QUOTIENTS, *edge_special.ROWS)


def test_a_few_ops_agree(backend, multiop_x64):
    report = search(OPS, [backend], ["float16"], ["array", "jvp"])
    assert report.compared > (200 if backend == "numpy" else 500)
    assert not report.classes, dict(report.classes)


@pytest.mark.tier("full")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["op_gamma", "op_log_ndtr", "op_kl_div", "op_beta", "op_interp", "op_polyval", "op_mod"])
def test_special_functions_quotients_and_rows_agree(op, dtype, backend, multiop_x64):
    report = search([op], [backend], [dtype], ["array", "jvp", "jit"])
    assert report.compared > 250
    assert not report.classes, dict(report.classes)


def test_every_op_is_searched_or_left_out_for_a_reason():
    ops = {
        name
        for module in SEARCHED
        for name, f in vars(module).items()
        if getattr(f, "__module__", "") == module.__name__
    }
    ops = {name for name in ops if name.startswith("op_")} | {"op_interp", "op_polyval"}
    searched = {entry.op for entry in (*edge_scalars.UNARY, *edge_scalars.BINARY, *edge_arrays.ARRAYS, *ADDED)}
    assert not searched & set(EXCLUDED)
    assert ops - searched == set(EXCLUDED)


def test_a_fault_is_found(backend, multiop_x64, monkeypatch):
    entries = [entry for entry in edge_scalars.UNARY if entry.op == "op_sin"]
    wrong = [dataclasses.replace(entry, slopes=(lambda x: -entry.slopes[0](x),)) for entry in entries]
    monkeypatch.setattr(edge_search, "UNARY", wrong)
    report = search(["op_sin"], [backend], ["float32"], ["array"])
    assert {what for _, what, *_ in report.classes} == {"gradient"}


def test_a_compiled_pair_is_held_to_eager_calls(backend, monkeypatch):
    pair, report = "op_logical_not of op_less(x, 1)", Report()
    edge_pairs.check(report, [backend], ["float32"], pair)
    assert report.compared == len(edge_pairs.numbers("float32"))
    assert not report.classes, dict(report.classes)

    def at_least(x):  # what a compiler makes of the pair that forgets NaN
        return [[multiop.op_greater_equal(x, 1.0)]]

    monkeypatch.setattr(multiop, "jit", lambda fun: at_least)
    edge_pairs.check(report, [backend], ["float32"], pair)
    ((name, what, *_),) = report.classes
    assert (name, what) == (pair, "value")
