"""The case table is complete: each op has a row, each keyword is used by one, each docstring has its parts."""

from __future__ import annotations

import inspect
import re

import pytest
import test_table

import multiop
import multiop.ops
from multiop.testing.cases import rows
from multiop.testing.known_failures import KNOWN_FAILURES

pytestmark = pytest.mark.tier("quick")

ROWS = rows()
PUBLIC = sorted(name for name in dir(multiop) if name.startswith("op_"))
OPS = [name for name in PUBLIC if getattr(multiop, name).__module__.startswith("multiop.frontends.")]


def test_every_op_has_a_row():
    assert set(OPS) <= set(ROWS), f"without a row: {sorted(set(OPS) - set(ROWS))}"


def test_every_row_has_an_op():
    assert set(ROWS) <= set(OPS), f"without an op: {sorted(set(ROWS) - set(OPS))}"


def test_every_argument_is_used_by_a_row():
    unused = {}
    for op, row in ROWS.items():
        signature = inspect.signature(getattr(multiop, op))
        used = {name for one in (*row.calls, *row.pins) for name in signature.bind(*one.args, **one.kwargs).arguments}
        wanted = {name for name, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
        if not used >= wanted:
            unused[op] = sorted(wanted - used)
    assert not unused, f"arguments that no row gives: {unused}"


def test_every_row_draws_float32_where_it_draws_floats():
    assert [op for op, row in ROWS.items() if not row.calls] == []
    assert [op for op, row in ROWS.items() if len(set(row.dtypes)) != len(row.dtypes)] == []
    differentiable = {op: set(row.dtypes) for op, row in ROWS.items() if row.differentiable}
    complex_alone = {"complex64", "complex128"}
    floats = {"float32", "float64"}
    assert [op for op, dtypes in differentiable.items() if dtypes != complex_alone and not floats <= dtypes] == []


def missing_parts(op):
    """Yield what the docstring of an op lacks."""
    function = getattr(multiop, op)
    doc = inspect.getdoc(function) or ""
    if not doc.partition("\n")[0].endswith("."):
        yield "a sentence in its first line"
    yield from (part for part in ("Returns:", ">>> ") if part not in doc)
    for name in inspect.signature(function).parameters:
        if not re.search(rf"^ +\*{{0,2}}{name}\b.*: ", doc, re.MULTILINE):
            yield f"a description of {name}"


def test_every_docstring_has_its_parts():
    assert {op: missing for op in PUBLIC if (missing := list(missing_parts(op)))} == {}


def test_the_page_says_which_tests_are_about_which_domain():
    page = test_table.PAGE.read_text("utf-8")
    assert test_table.written(page) == page, "python tools/test_table.py"


def test_ops_without_the_prefix_are_the_same():
    for op in OPS:
        assert getattr(multiop.ops, op.removeprefix("op_")) is getattr(multiop, op)


@pytest.mark.parametrize("backend_name", ["torch", "jax", "tensorflow"])
def test_every_gap_of_a_backend_is_a_known_failure(backend_name):
    pytest.importorskip(backend_name)
    module = multiop._loading.registry.load(backend_name)
    for op in OPS:
        if hasattr(getattr(module, op, None), "reason"):
            named = [
                known for known in KNOWN_FAILURES if known.backend == backend_name and known.parameters.get("op") == op
            ]
            assert named, f"{op} on {backend_name} is not implemented, and no known failure says so"
