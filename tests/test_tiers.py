"""Each tier holds what it says: nothing that the default tier has to prove is left to the full one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import contract_table
import pytest
from recorded import part_of

from multiop.testing.cases import rows
from multiop.testing.test_suite import _is_primitive, _native

pytestmark = pytest.mark.whole  # what is proven where can be told only where everything is collected

HERE = Path(__file__).parent
ROWS = rows()
RECORD = json.loads((HERE / "durations.json").read_text(encoding="utf-8"))


def test_every_property_of_every_op_is_in_the_default_tier(collected, backend):
    wanted = set()
    for op, row in ROWS.items():
        wanted.add((op, "test_value", _native(row)))
        if not _is_primitive(op, backend) and backend != "numpy":
            continue  # written with others; what else it has is proven on NumPy, and on one framework each week
        wanted |= {(op, "test_value", dtype) for dtype in {"float32", "int32", "bool", "complex64"} & set(row.dtypes)}
        wanted |= {(op, "test_pinned", "") for _ in row.pins[:1]}
        if row.differentiable:
            wanted.add((op, "test_gradient", ""))
            wanted |= {(op, "test_complex_gradient", "") for dtype in row.dtypes if dtype == "complex128"}
        if not _is_primitive(op, backend):
            continue
        if row.differentiable:
            wanted.add((op, "test_forward_mode", ""))
            wanted |= {(op, "test_second_order", "") for _ in range(row.order - 1)}
        wanted |= {(op, "test_vmap", "") for _ in range(row.vmap)} | {(op, "test_compiled", "") for _ in range(row.jit)}
    missing = wanted - collected["ops", backend]
    assert not missing, f"in no test of the default tier on {backend}: {sorted(missing)}"


def test_every_property_of_a_composite_is_proven_on_a_framework_each_week(collected):
    frameworks = [name for name in collected["backends"] if name != "numpy"]
    if len(frameworks) < 3:
        pytest.skip("a case has its turn on one of three frameworks")
    found = {case for name in frameworks for case in collected["ops", name]}
    for op, row in ROWS.items():
        if row.differentiable:
            assert (op, "test_gradient", "") in found, op


def test_every_op_is_computed_in_bfloat16_on_a_backend_in_the_default_tier(collected):
    found = {
        op
        for name in collected["backends"]
        for op, *test in collected["ops", name]
        if test == ["test_value", "bfloat16"]
    }
    assert found >= {op for op, row in ROWS.items() if "bfloat16" in row.dtypes}


def test_every_sentence_of_the_contract_is_in_the_default_tier(collected):
    page = (HERE.parent / "docs" / "contract.md").read_text(encoding="utf-8")
    wanted = {
        (construct, backend)
        for construct, row in contract_table.read(page).items()
        for backend, verdict in row.items()
        if verdict != "not there" and backend in collected["backends"]
    }
    missing = wanted - collected["contract"]
    assert len(wanted) > 50
    assert not missing, f"in no test of the default tier: {sorted(missing)}"


def test_the_tiers_grow(collected):
    quick, default, full = (collected["sizes"][name] for name in ("quick", "default", "full"))
    assert 3000 < quick < default < full


def test_every_file_of_tests_has_its_time_recorded():
    """`nox -s tests -- --record=tests/durations.json --week=this tests/test_new.py` records that of a new file."""
    files = {path.relative_to(HERE.parent).as_posix() for path in HERE.rglob("test_*.py")}
    assert files == {*RECORD["files"], *RECORD["unmeasured"]}


def test_the_core_keeps_its_time():
    """The seconds are those of `nox -s tests -- --record=tests/durations.json`, on a quiet machine."""
    total = sum(seconds for path, seconds in RECORD["files"].items() if part_of(HERE.parent / path) == "core")
    assert total < 950, f"the core takes {total:.0f} core seconds; move to the full tier what repeats"
    # the product of ops, and the first test that is compiled, which starts the compilers
    left_out = r"tests/test_conformance\.py::|tests/autodiff/test_transforms\.py::test_jit_statics"
    slow = {name: seconds for name, seconds in RECORD["functions"].items() if seconds > 0.03 * total}
    slow = {name: seconds for name, seconds in slow.items() if part_of(HERE.parent / name.split("::")[0]) == "core"}
    slow = {name: seconds for name, seconds in slow.items() if not re.match(left_out, name)}
    assert not slow, f"more than 3 % of the core each: {slow}"
