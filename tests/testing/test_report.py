"""Verdicts on what backends measured: who is off, what is refused, what is only a note."""

from __future__ import annotations

import math

import numpy as np
import pytest

from multiop import cli
from multiop.testing import _report
from multiop.testing._worker import from_json, to_json

ARRAYS = [np.array([1.0, -2.0]), np.array(3.0)]


def results(*arrays, scale=0.0, structure="*"):
    scales = [to_json(np.full(np.shape(x), scale)) for x in arrays]
    return {"arrays": [to_json(np.asarray(x)) for x in arrays], "scales": scales, "structure": structure}


def measured(**changes):
    right = {
        "value": results(*ARRAYS),
        "gradient": results(*ARRAYS),
        "second order": results(*ARRAYS),
        "finite differences": {"first": {"same": True, "error": 1e-12}, "second": {"same": True, "error": 1e-11}},
        "forward mode": {"error": 1e-16},
        "vmap": {"error": 0.0},
        "compiled": {"error": 0.0},
    }
    return {"custom": True, "properties": {key: value for key, value in (right | changes).items() if value is not None}}


def compare(allow_refused=False, **by_backend):
    return _report.compare("file.py", "f", "normal[2]", by_backend, allow_refused=allow_refused)


def statuses(report, which):
    return {backend: cell.status for backend, cell in report.cells[which].items()}


def test_all_agree():
    report = compare(a=measured(), b=measured(), c=measured())
    assert report.agrees
    assert report.verdict == "agree"
    assert {cell.status for cells in report.cells.values() for cell in cells.values()} == {"ok"}
    assert report.cells["finite differences"]["a"].error == 1e-11


def test_one_of_three_is_off_and_named():
    wrong = measured(gradient=results(np.array([1.0, -2.1]), ARRAYS[1]))
    report = compare(a=measured(), b=wrong, c=measured())
    assert not report.agrees
    assert statuses(report, "gradient") == {"a": "ok", "b": "failed", "c": "ok"}
    cell = report.cells["gradient"]["b"]
    assert cell.error == pytest.approx(0.05)
    assert "against a: result 0: entry [1] is -2.1 where -2 is expected" in cell.message
    assert report.verdict == "FAIL: gradient"


def test_two_that_differ_are_both_off():
    report = compare(a=measured(), b=measured(value=results(np.zeros(2), ARRAYS[1])))
    assert statuses(report, "value") == {"a": "failed", "b": "failed"}


def test_two_against_two_are_all_off():
    other = results(np.zeros(2), ARRAYS[1])
    report = compare(a=measured(), b=measured(), c=measured(value=other), d=measured(value=other))
    assert set(statuses(report, "value").values()) == {"failed"}


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (results(ARRAYS[0].astype("float32"), ARRAYS[1]), "dtype float32 where float64"),
        (results(np.ones((2, 1)), ARRAYS[1]), r"shape \[2, 1\] where \[2\]"),
        (results(ARRAYS[0]), "1 results where 2"),
        (results(*ARRAYS, structure="(*, *)"), "structure"),
        (results(np.array([np.nan, -2.0]), ARRAYS[1]), "entry \\[0\\] is nan where 1"),
        (results(np.array([1.0 + 1e-7, -2.0]), ARRAYS[1]), "float32 rounding"),
    ],
)
def test_what_is_off_is_said(odd, message):
    report = compare(a=measured(), b=measured(value=odd), c=measured())
    assert statuses(report, "value") == {"a": "ok", "b": "failed", "c": "ok"}
    assert message.replace("\\", "") in report.cells["value"]["b"].message


def test_rounding_is_allowed_at_the_scale_that_it_has():
    small, other = np.array([1e-17]), np.array([3e-17])
    assert compare(a=measured(value=results(small, scale=1.0)), b=measured(value=results(other, scale=1.0))).agrees
    assert not compare(a=measured(value=results(small)), b=measured(value=results(other))).agrees


def test_an_error_on_one_backend_fails():
    raised = {"raised": "ValueError", "message": "ValueError: no", "refused": False}
    report = compare(a=measured(), b=measured(compiled=raised))
    assert statuses(report, "compiled") == {"a": "ok", "b": "failed"}
    assert report.cells["compiled"]["b"].message == "ValueError: no"


def test_an_error_on_all_backends_fails_too():
    raised = {"raised": "GradientRuleError", "message": "wrong shape", "refused": False}
    report = compare(a=measured(gradient=raised), b=measured(gradient=raised))
    assert statuses(report, "gradient") == {"a": "failed", "b": "failed"}


@pytest.mark.parametrize("error", ["UnsupportedError", "NonLinearRuleError"])
def test_a_documented_refusal_on_all_backends_passes_where_it_is_allowed(error):
    refused = measured(**{"forward mode": {"raised": error, "message": "not there", "refused": True}})
    assert statuses(compare(a=refused, b=refused), "forward mode") == {"a": "failed", "b": "failed"}
    allowed = compare(a=refused, b=refused, allow_refused=True)
    assert statuses(allowed, "forward mode") == {"a": "refused", "b": "refused"}
    assert allowed.agrees and allowed.verdict == "agree, but forward mode is refused"
    lone = compare(a=refused, b=measured(), allow_refused=True)
    assert statuses(lone, "forward mode") == {"a": "failed", "b": "ok"}
    marked = refused | {"differs": "it clips"}  # such a rule need not be linear
    assert compare(a=marked, b=marked).agrees == (error == "NonLinearRuleError")


def test_a_function_that_reads_what_a_backend_maps_is_refused_on_that_backend():
    reads = measured(vmap={"raised": "ArgumentError", "message": "no numbers", "refused": False, "reads": True})
    assert statuses(compare(a=reads, b=measured()), "vmap") == {"a": "failed", "b": "ok"}
    allowed = compare(a=reads, b=measured(), allow_refused=True)
    assert statuses(allowed, "vmap") == {"a": "refused", "b": "ok"}
    assert allowed.agrees and allowed.verdict == "agree, but vmap is refused"


def test_a_property_that_one_backend_lacks_fails():
    report = compare(a=measured(), b=measured(gradient=None))
    assert statuses(report, "gradient") == {"a": "ok", "b": "failed"}
    assert statuses(compare(a=measured(vmap=None), b=measured(vmap=None)), "vmap") == {"a": "none", "b": "none"}


def test_a_backend_that_raised_before_is_not_blamed_twice():
    raised = {"raised": "ValueError", "message": "no", "refused": False}
    report = compare(a=measured(), b=measured(**{"gradient": raised, "second order": None, "finite differences": None}))
    assert statuses(report, "second order") == {"a": "ok", "b": "none"}
    assert report.verdict == "FAIL: gradient"


def test_a_failed_check_has_its_message_and_error():
    report = compare(a=measured(), b=measured(vmap={"failed": "vmap of the value of f", "error": 0.5}))
    cell = report.cells["vmap"]["b"]
    assert (cell.status, cell.error, cell.message) == ("failed", 0.5, "vmap of the value of f")


OFF = {"finite differences": {"first": {"same": False, "error": 0.3}, "second": {"same": True, "error": 0.0}}}


def test_differing_from_finite_differences_fails():
    report = compare(a=measured(**OFF), b=measured(**OFF))
    assert not report.agrees
    assert report.verdict == "FAIL: finite differences"
    assert "# check: differs, REASON" in report.cells["finite differences"]["a"].message
    kink = {"finite differences": {"first": {"same": None}}}
    assert "no numerical estimate" in compare(a=measured(**kink), b=measured(**kink)).verdict


def test_a_mark_announces_that_a_gradient_differs():
    marked = measured(**OFF) | {"differs": "a straight-through estimator"}
    report = compare(a=marked, b=marked)
    assert report.agrees and report.differs
    assert statuses(report, "finite differences") == {"a": "note", "b": "note"}
    assert report.verdict == "agree, but the first derivative differs from finite differences by 0.3"


def test_a_difference_from_finite_differences_is_told_with_numbers_and_a_command(capsys):
    message = "gradient of f(normal(3)) on a, with respect to x: 1 where finite differences give 2; 1e-12 is allowed"
    off = {"same": False, "error": 0.5, "allowed": 1e-12, "message": message}
    found = measured(**{"finite differences": {"first": off, "second": {"same": True, "error": 0.0}}})
    for differs, ending in ((None, ": 1 fails"), ("on purpose", "all agree; 1 differs from finite differences")):
        report = compare(**dict.fromkeys("ab", found | {"differs": differs}))
        agree = report.agrees
        cli._print_tables(cli._Outcome([report], {"a": "1", "b": "2"}, {}, "float64", 0, cli._TIMEOUT, agree=agree))
        lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
        assert lines.count(message) == 1  # it is alike on all backends
        assert agree or any(line.startswith("finite differences on a, b: the first derivative") for line in lines)
        assert "again: multiop check " in "\n".join(lines)
        assert lines[-1].endswith(ending)


def test_one_backend_has_none_to_be_compared_with():
    report = compare(a=measured())
    assert report.agrees
    assert "nothing to compare" in report.verdict


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int8", "bool", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 2)])
def test_arrays_survive_json(dtype, shape):
    from multiop._values.dtypes import to_numpy

    x = (np.arange(math.prod(shape)).reshape(shape) * (1 + 2j if "complex" in dtype else 1)).astype(to_numpy(dtype))
    back = from_json(to_json(x))
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back, x)
