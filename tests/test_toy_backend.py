"""The backend of `tests/toy_backend` passes the shared suite: the contract is all that a backend needs to be one."""

from __future__ import annotations

import collections
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import multiop
from multiop import errors
from multiop.testing import _results, test_suite as suite
from multiop.testing._shared_process import x64_mode_for
from multiop.testing._tolerances import Mismatch

FREE = """
absolute amax amin append array average cdist conjugate count_nonzero deg2rad depth_to_space diff dstack empty
empty_like fabs fmax fmin hstack image_crop image_sobel_edges image_ssim kron meshgrid nanmax nanmean nanmin nanstd
nansum ndim outer ptp rad2deg ravel rearrange size space_to_depth subset trapezoid true_divide vdot vectorize
vectorized_map vstack
""".split()  # noqa: SIM905
"""Composites of what the toy has."""

GUIDE = Path(__file__).parent.parent / "CONTRIBUTING.md"
RUN = """
import sys, pytest
status = pytest.main(sys.argv[1:])
print("frameworks:", sorted({"torch", "jax", "tensorflow"} & set(sys.modules)))
sys.exit(status)
"""


@pytest.mark.parametrize("tier", ["default", pytest.param("full", marks=pytest.mark.tier("full"))])
def test_the_shared_suite_passes_on_all_that_it_has(toy, toy_paths, tmp_path, tier):
    own = {name for name in vars(importlib.import_module("toy_backend")) if name.startswith("op_")} & set(suite.ROWS)
    free = {f"op_{name}" for name in FREE}
    assert not free & own
    assert f"the\n   toy's {len(own)} primitives make {len(free)} of them" in GUIDE.read_text(encoding="utf-8")
    results, settings = tmp_path / "results.json", tmp_path / "pytest.ini"
    settings.write_text("[pytest]\n")
    options = f"-q -c {settings} --rootdir={tmp_path} --noconftest -p no:cacheprovider -p multiop.testing.plugin"
    ops = ",".join(sorted(own | free))
    asked = f"--multiop-backends=toy --multiop-tier={tier} --multiop-ops={ops} --multiop-results={results}"
    done = subprocess.run(
        [sys.executable, "-c", RUN, *options.split(), "--pyargs", "multiop.testing.test_suite", *asked.split()],
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        | {"PYTHONPATH": os.pathsep.join([*toy_paths, *filter(None, sys.path)]), "MULTIOP_BACKEND": toy},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "frameworks: []" in done.stdout
    cases = [case for case in _results.read(results).cases.values() if case.backend == toy]
    assert not [case for case in cases if case.outcome != "passed"], "nothing that it has is excused"
    passed = collections.defaultdict(set)
    for case in cases:
        passed[case.what].add(case.op)
    assert passed["value"] == own | free
    assert passed["gradient"] == {op for op in own | free if suite.ROWS[op].differentiable}
    assert passed["pinned answers"] == {op for op in own | free if suite.ROWS[op].pins}
    for what in ("gradient", "second order", "forward mode", "vmap", "compiled"):
        assert len(passed[what] & own) > 25, what


def times(factor):
    return lambda function: lambda *args: function(*args) * factor


def unrecorded(function):
    return lambda x: type(x)(function(x).array)


FAULTS = {  # the test and the op that find it, the file and the function that it is in
    "a sign": ("gradient", "op_sin", "elementwise", "op_cos", times(-1.0)),
    "a sum over what was broadcast": ("gradient", "op_add", "elementwise", "sum_to", times(2.0)),
    "a pull of entries": ("gradient", "op_get_item", "indexing", "put", times(1.5)),
    "a conjugate": ("complex_gradient", "op_exp", "elementwise", "op_conj", lambda function: lambda x: x),
    "a pull that is not recorded": ("second_order", "op_sin", "elementwise", "op_cos", unrecorded),
    "a gradient that is passed on twice": ("forward_mode", "op_exp", "transforms", "walk", lambda walk: doubled(walk)),
    "an order": ("vmap", "op_exp", "transforms", "op_stack", lambda stack: lambda xs, axis: stack(xs[::-1], axis)),
}


def doubled(walk):
    return lambda *args: [None if grad is None else grad * 2.0 for grad in walk(*args)]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_it_is_found(toy, fault, monkeypatch, pytestconfig):
    test, op, file, name, faulty = FAULTS[fault]
    arguments = {"op": op, "whole": False, "pytestconfig": pytestconfig, "measured": lambda error, dtype: None}

    def run():
        suite._shared_problems.cache_clear()
        with x64_mode_for("float64"):
            getattr(suite, f"test_{test}")(
                multiop_backend=toy, **arguments, **({} if test == "vmap" else {"x64": None})
            )

    with multiop.use_backend(toy):
        run()
        module = importlib.import_module(f"toy_backend.{file}")
        monkeypatch.setattr(module, name, faulty(getattr(module, name)))
        with pytest.raises(Mismatch):
            run()
    suite._shared_problems.cache_clear()


@pytest.fixture
def cubed(toy):
    """A function whose value is x * x, and whose rule says 3 x squared."""
    with multiop.use_backend(toy):
        yield multiop.op_custom_gradient(lambda x: (x * x, lambda upstream: upstream * x * x * 3.0))


def slopes(cubed):
    """Yield the derivative of `cubed` at 2, or the second one, by each way to it."""
    x = multiop.op_convert_to_tensor(2.0)
    yield 12.0, multiop.grad(cubed)(x)
    yield 12.0, multiop.grad(multiop.jit(multiop.checkpoint(cubed)))(x)
    yield 12.0, multiop.jvp(cubed, (x,), (1.0,))[1]
    yield 12.0, multiop.vmap(multiop.grad(cubed))(x[None])[0]
    yield 12.0, multiop.gradients(cubed, [x])[0]
    yield 12.0, multiop.grad(multiop.grad(cubed))(x)
    yield 12.0, multiop.hvp(cubed, (x,), (1.0,))
    with multiop.GradientTape() as outer:
        x = outer.watch(x)
        with multiop.GradientTape() as inner:
            x = inner.watch(x)
            y = cubed(x)
        slope = inner.gradient(y, x)
    yield 12.0, slope
    yield 12.0, outer.gradient(slope, x)


def test_custom_gradients_work_in_every_transform(cubed):
    for expected, found in slopes(cubed):
        assert float(found) == expected


def test_what_a_custom_gradient_cannot_do_is_refused(toy):
    with multiop.use_backend(toy):
        squared = multiop.op_custom_gradient(lambda x: (x, lambda upstream: upstream * upstream))
        with pytest.raises(errors.NonLinearRuleError, match="linear"):
            multiop.jvp(squared, (2.0,), (1.0,))

        def dropped(w):
            return multiop.op_custom_gradient(lambda x: (x * w, lambda upstream: upstream * w))(2.0)

        with pytest.raises(errors.ClosedOverError, match="closes over"):
            multiop.grad(dropped)(3.0)


def test_the_tape_sees_what_it_watches_while_it_records(toy):
    with multiop.use_backend(toy):
        other = multiop.op_convert_to_tensor(3.0)
        with multiop.GradientTape(persistent=True) as tape:
            x = tape.watch(multiop.op_convert_to_tensor(2.0))
            y = x * other
            with tape.stop_recording():
                z = x * x
        late = y * y
        assert float(tape.gradient(y, x)) == 3.0
        assert [tape.gradient(target, x) for target in (z, late)] == [None, None]
        assert tape.gradient(y, other) is None


def test_a_transform_that_has_ended_leaves_no_record(toy):
    with multiop.use_backend(toy):
        value, slope = multiop.value_and_grad(multiop.op_sin)(2.0)
        _, pushed = multiop.jvp(multiop.op_sin, (2.0,), (1.0,))
        constants = value, slope, pushed
        assert [x.node for x in constants] == [None] * 3
        scaled = multiop.op_custom_gradient(lambda x: (x * slope, lambda upstream: upstream * slope))
        assert float(multiop.grad(scaled)(3.0)) == float(slope)
        _, pullback = multiop.vjp(multiop.op_square, 3.0)
        assert float(multiop.grad(lambda upstream: pullback(upstream)[0])(1.0)) == 6.0
        assert float(multiop.grad(lambda w: multiop.grad(lambda x: w * x * x)(3.0))(1.0)) == 6.0
