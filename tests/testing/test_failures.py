"""A failure under pytest is short: what differs, by how much, what is allowed, and how to repeat it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import multiop
from multiop.testing import Mismatch, check_op, check_values, normal
from multiop.testing._tolerances import assert_close, short

ROOT = Path(__file__).parent.parent.parent

PLANTED = """
import logging
import numpy as np
import pytest
import multiop
from multiop.testing import Mismatch, check_dtypes, check_gradients, check_op, check_values, normal

multiop.available_backends = lambda: ["BACKEND"]  # others are tried where a reference raises

@multiop.op_custom_gradient
def area(x, y):
    return x * y, lambda upstream: (upstream * y, -upstream * x)

def broken(x):
    return {}["missing"] + x

def double(x):
    return x + x

def unwilling(x):
    raise RuntimeError("not today")

def crooked(x):
    if x.sum() != 0.0 and not crooked.calls:
        crooked.calls.append(1)
        return 2 * x
    raise RuntimeError("only once")

crooked.calls = []
WHERE = {"backends": ["BACKEND"], "compiled": False}

def test_gradient():
    check_op(area, normal(3), normal(3), **WHERE)

def test_large_arrays():
    check_op(double, normal(30, 40), reference=lambda x: 2.001 * x, **WHERE)

def test_many_arrays():
    check_op(lambda p: double(p["w0"]) * np.nan, {f"w{k}": normal(9, 9) for k in range(11)},
             reference=lambda p: p["w0"], **WHERE)

def test_raises():
    check_op(broken, normal(3), **WHERE)

def test_dtypes_raise():
    check_dtypes(broken, normal(3), backends=["BACKEND"])

def test_a_piece():
    check_gradients(area, normal(3), normal(3), backends=["BACKEND"])

traces = logging.getLogger("torch.__trace")  # as PyTorch has it
traces.propagate = False
traces.setLevel(logging.DEBUG)

def test_compiler_that_traces():
    for _ in range(30):
        traces.debug("")
    check_op(area, normal(3), normal(3), **WHERE)

def test_reference_raises():
    check_op(double, normal(3), reference=unwilling, **WHERE)

def test_reference_raises_later():
    check_op(double, normal(3), reference=crooked, **WHERE)
"""
LONGEST = 25  # lines, with the source of the test


@pytest.mark.once
def test_a_failure_is_told_in_a_few_lines_without_a_frame_of_multiop(backend, tmp_path):
    (tmp_path / "test_planted.py").write_text(PLANTED.replace("BACKEND", backend))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--disable-warnings"]
    command = [sys.executable, "-m", "pytest", *options, "test_planted.py"]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=environment | {"PYTHONPATH": paths}, check=False
    )
    _, *sections = re.split(r"^_{3,} (test_\w+) _{3,}$", done.stdout.partition("= short test summary")[0], flags=re.M)
    failures = dict(zip(sections[::2], sections[1::2], strict=True))
    assert set(failures) == set(re.findall(r"def (test_\w+)", PLANTED)), done.stdout
    for name, told in failures.items():
        lines = told.strip("\n").splitlines()
        assert len(lines) <= LONGEST, told
        assert set(re.findall(r"^(\S+\.py):\d+:", told, re.M)) == {"test_planted.py"}, told
        assert str(ROOT) not in told.replace(str(tmp_path), "")
        if name != "test_reference_raises":
            assert "E       multiop.testing.Mismatch: " in told
        if name not in ("test_reference_raises", "test_dtypes_raise"):
            assert told.count("again: check_") == 1
    assert "is allowed" in failures["test_gradient"]
    assert "float64[30, 40]" in failures["test_large_arrays"]
    assert "{w0: [9, 9], … 11 arrays}" in failures["test_many_arrays"]
    assert "KeyError: 'missing'" in failures["test_raises"]
    assert "at test_planted.py, line 15" in failures["test_raises"]
    assert "again: check_gradients(area, normal(3), normal(3)" in failures["test_a_piece"]
    assert "unwilling raises RuntimeError: not today" in failures["test_reference_raises"]
    assert (
        "the reference crooked(normal(3)) in NumPy raises RuntimeError: only once"
        in (failures["test_reference_raises_later"])
    )


def test_the_name_of_the_exception_is_the_one_to_catch_it_by():
    assert f"{Mismatch.__module__}.{Mismatch.__qualname__}" == "multiop.testing.Mismatch"
    assert Mismatch is multiop.testing.Mismatch


def test_what_is_allowed_stands_beside_what_was_found():
    with pytest.raises(Mismatch, match="relative error 0.5, 8.88e-16 is allowed") as caught:
        assert_close(np.ones(3), np.full(3, 2.0), "f", ulps=4)
    assert (caught.value.error, caught.value.allowed) == (0.5, 4 * np.finfo(float).eps)


@pytest.mark.parametrize(
    ("x", "told"),
    [
        (np.arange(8.0), "[0. 1. 2. 3. 4. 5. 6. 7.]"),
        (np.arange(9.0), "float64[9]"),
        (np.zeros((20, 30), "int32"), "int32[20, 30]"),
        (np.array(1.5), "1.5"),
    ],
)
def test_large_arrays_are_told_by_their_shape(x, told):
    assert short(x) == told


def test_the_command_that_repeats_a_failure_fails_alike(backend):
    def off(x):
        return 2 * x

    with pytest.raises(Mismatch) as first:
        check_op(
            off, normal(4), reference=np.sin, backends=[backend], dtypes=["float64"], seed=3, order=0, compiled=False
        )
    again = str(first.value).rpartition("again: ")[2]
    with pytest.raises(Mismatch) as second:
        eval(again, {"check_op": check_op, "off": off, "normal": normal, "sin": np.sin})
    assert str(second.value) == str(first.value)
    with pytest.raises(Mismatch, match=r"again: check_values\(off, normal\(4\)"):
        check_values(off, normal(4), reference=np.sin, backends=[backend])
