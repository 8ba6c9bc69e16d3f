"""The case table is complete: each op has a row, each keyword is used by one, each docstring has its parts."""

from __future__ import annotations

import inspect
import re

import pytest

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


@pytest.mark.parametrize("op", sorted(ROWS))
def test_every_argument_is_used_by_a_row(op):
    signature = inspect.signature(getattr(multiop, op))
    used = set()
    for one in (*ROWS[op].calls, *ROWS[op].pins):
        used |= set(signature.bind(*one.args, **one.kwargs).arguments)
    wanted = {name for name, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
    assert used >= wanted, f"no row of {op} gives {', '.join(sorted(wanted - used))}"


@pytest.mark.parametrize("op", sorted(ROWS))
def test_every_row_draws_float32_where_it_draws_floats(op):
    row = ROWS[op]
    assert row.calls
    assert len(set(row.dtypes)) == len(row.dtypes)
    complex_alone = {"complex64", "complex128"} == set(row.dtypes)
    assert not row.differentiable or complex_alone or {"float32", "float64"} <= set(row.dtypes)


@pytest.mark.parametrize("op", PUBLIC)
def test_every_docstring_has_its_parts(op):
    function = getattr(multiop, op)
    doc = inspect.getdoc(function) or ""
    first = doc.partition("\n")[0]
    assert first.endswith("."), "the first line is a sentence"
    assert "Returns:" in doc
    assert ">>> " in doc, "a runnable example"
    for name in inspect.signature(function).parameters:
        assert re.search(rf"^ +\*{{0,2}}{name}\b.*: ", doc, re.MULTILINE), f"{name} is not described"


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
