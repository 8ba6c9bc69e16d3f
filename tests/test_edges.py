"""The search at the edges of every dtype finds nothing in a few ops; `nox -s edges` takes all of them, in every way."""

from __future__ import annotations

import dataclasses

import edge_scalars
import edge_search
from edge_search import search

OPS = ["op_reciprocal", "op_relu", "op_sum"]


def test_a_few_ops_agree(backend, multiop_x64):
    report = search(OPS, [backend], ["float16"], ["array", "jvp"])
    assert report.compared > 500
    assert not report.classes, dict(report.classes)


def test_a_fault_is_found(backend, multiop_x64, monkeypatch):
    entries = [entry for entry in edge_scalars.UNARY if entry.op == "op_sin"]
    wrong = [dataclasses.replace(entry, slopes=(lambda x: -entry.slopes[0](x),)) for entry in entries]
    monkeypatch.setattr(edge_search, "UNARY", wrong)
    report = search(["op_sin"], [backend], ["float32"], ["array"])
    assert {what for _, what, *_ in report.classes} == {"gradient"}
