"""The shared suite: every row of the case table on every backend.

`pytest --pyargs multiop.testing --multiop-backends=NAME` runs it on an installed backend.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pytest

import multiop
from multiop import errors, extend, tree

from . import _checks
from ._case import Pin, Row
from ._problem import Problem, compute_values
from ._samplers import Sampler
from ._shared_process import without_torch_compiler, x64_mode_for
from ._tiers import IMPLIED, TIERS, asked_backends, asked_tier, chosen_ops
from .cases import rows

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
ROWS = rows()
Measured: TypeAlias = Callable[[float, str], None]

# which rows a property applies to
_EVERY = list(ROWS)
_DIFFERENTIABLE = [op for op, row in ROWS.items() if row.differentiable]
_SECOND = [op for op, row in ROWS.items() if row.differentiable and row.order >= 2]
_MAPPED = [op for op, row in ROWS.items() if row.vmap]
_OF_MANY_STEPS = ("op_gammainc", "op_gammaincc", "op_polygamma")  # composites that take seconds to trace
_COMPILED = [op for op, row in ROWS.items() if row.jit]


def _problems(row: Row, dtype: str, whole: bool = False) -> list[Problem]:
    """Return a problem for each call of a row; consecutive tests of an op share what they compute."""
    return _shared_problems(row.op, dtype, whole, multiop.backend(), multiop.x64())


@functools.lru_cache(maxsize=32)
def _shared_problems(op: str, dtype: str, whole: bool, backend: str, x64: bool) -> list[Problem]:
    problems = _draw_problems(ROWS[op], dtype, whole)
    if dtype == _precise(ROWS[op]):
        for n, problem in enumerate(problems):
            problem.together = _together(ROWS[op], n, backend, whole)
    return problems


def _draw_problems(row: Row, dtype: str, whole: bool = False) -> list[Problem]:
    f = getattr(multiop, row.op)
    return [Problem(f, call, dtype=dtype, seed=n, name=row.op, whole=whole) for n, call in enumerate(row.calls)]


def _together(row: Row, n: int, backend: str, whole: bool) -> tuple[str, ...]:
    """Return what is computed at once for call `n`, which is faster; in a program, all that the default tier asks."""
    if not row.differentiable:
        return ()
    both = ("primal_tensors", "gradient_tensors")
    if not whole:
        return both
    if n > 0 or not _is_primitive(row.op, backend):
        return ("outputs", *both)
    return ("outputs", *both, "forward_tensors", *["second_tensors"] * (row.order >= 2))


def _problem(row: Row, n: int, dtype: str, whole: frozenset[str]) -> Problem:
    """Return the problem of one call on the active backend; `whole` names the methods that are compiled."""
    return _problems(row, dtype, multiop.backend() in whole)[n]


def _precise(row: Row) -> str | None:
    """Return the dtype in which derivatives are checked: float64, or complex128 if the row is only complex."""
    return next((name for name in ("float64", "complex128") if name in row.dtypes), None)


def _differentiable(row: Row, whole: bool) -> Iterator[Problem]:
    """Return the problems of a row that have a derivative, in the dtype in which derivatives are checked."""
    dtype = _precise(row)
    if dtype is None:
        pytest.fail(f"{row.op} is differentiable but has no float64 among its dtypes")
    return (problem for problem in _problems(row, dtype, whole) if problem.is_differentiable)


def _some(calls: Iterable[T], config: pytest.Config, few: int) -> list[T]:
    """Return `calls`, or only the first few outside the full tier: most of the time goes into derivatives."""
    return list(itertools.islice(calls, None if asked_tier(config) == "full" else few))


def _native(row: Row) -> str:
    """Return the dtype in which properties other than the value are checked: float32, if the row has it."""
    return "float32" if "float32" in row.dtypes else row.dtypes[0]


@functools.cache
def _is_primitive(op: str, backend: str) -> bool:
    """Say whether a backend defines an op itself; other ops are composed of those that it defines."""
    try:
        own = getattr(extend.load(backend), op, None)
    except errors.BackendError:  # the test reports it
        return True
    composed = extend.composite_of(op)
    if own is None or composed is None:
        return own is not None
    if op in _OF_MANY_STEPS:
        return False  # its kernel is compared with it
    return inspect.unwrap(own) is not inspect.unwrap(composed)  # a backend holds it too, NumPy's within a wrapper


def smallest_tier(test: str, parameters: dict[str, Any], backends: list[str]) -> str:
    """Return the smallest tier that includes a test of this suite, where these `backends` are tested.

    Outside the full tier, only the value, gradient and pinned answers of a composite op are checked: its other
    properties are those of the ops that it is composed of. Its formula, which the backends share, is checked in
    bfloat16 on the first of them.
    """
    if test in ("test_gradient", "test_pinned", "test_divergence"):
        return "quick"
    op, backend, dtype = (str(parameters.get(name, "")) for name in ("op", "multiop_backend", "dtype"))
    if test == "test_value":
        if dtype == _native(ROWS[op]):
            return "quick"
        composing = [name for name in backends if dtype == "bfloat16" and not _is_primitive(op, name)]
        return "full" if IMPLIED.get(dtype) in ROWS[op].dtypes or backend in composing[1:] else "default"
    if test in ("test_second_order", "test_forward_mode", "test_vmap", "test_compiled"):
        return "default" if _is_primitive(op, backend) else "full"
    return "default"


def runs_few(test: str, op: str, dtype: str) -> bool:
    """Say whether a test only runs the first calls outside the full tier."""
    return test != "test_pinned" and not (test == "test_value" and dtype == _native(ROWS[op]))


def runs_whole(test: str, op: str, backend: str, config: pytest.Config) -> bool:
    """Say whether a test compiles what it runs: outside the full tier, most do on JAX, which compiles steps anyway."""
    few = asked_tier(config) != "full" and backend == "jax"
    return few and ROWS[op].jit and test != "test_compiled"


def about(cases: Iterable[tuple[Any, ...]], *names: str) -> Callable[[F], F]:
    """Say what a test is about, beside the backend; a case with one part more than there are names ends in its id.

    Only the cases that were asked for are built: of the full tier, there are tens of thousands.
    """

    def mark(test: F) -> F:
        test.cases = names, list(cases)  # type: ignore[attr-defined]
        return test

    return mark


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test once per backend and case, of those that the options ask for."""
    names, cases = getattr(metafunc.function, "cases", ((), ()))
    if not names:
        return
    config, test = metafunc.config, metafunc.function.__name__
    tiers, ops = TIERS[: TIERS.index(asked_tier(config)) + 1], chosen_ops(config)
    asked = asked_backends(config)
    backends = [(name,) for name in asked] if "multiop_backend" in metafunc.fixturenames else [()]
    names = (*["multiop_backend"] * len(backends[0]), *names)

    def is_asked(case: tuple[Any, ...]) -> bool:
        values = dict(zip(names, case, strict=False))
        return (ops is None or values["op"] in ops) and smallest_tier(test, values, asked) in tiers

    every = [(*backend, *case) for backend in backends for case in cases]
    found = [case for case in every if is_asked(case)] or every[:1]  # which is then left out, as no test of another is
    n = len(names)
    labels = [case if len(case) == n else (*case[: len(backends[0])], case[-1]) for case in found]
    params = [pytest.param(*case[:n], id="-".join(label)) for case, label in zip(found, labels, strict=True)]
    metafunc.parametrize(names, params, indirect=["multiop_backend"] if backends[0] else [])


@pytest.fixture
def whole(request: pytest.FixtureRequest, multiop_backend: str, op: str) -> bool:
    """Whether the test compiles what it runs."""
    return runs_whole(request.function.__name__, op, multiop_backend, request.config)


@pytest.fixture
def x64(multiop_x64: None) -> None:
    """Turn on the 64-bit mode, so that float64 is float64 on every backend."""


@about([(op, dtype) for op, row in ROWS.items() for dtype in row.dtypes], "op", "dtype")
def test_value(
    multiop_backend: str, op: str, dtype: str, whole: bool, request: pytest.FixtureRequest, measured: Measured
) -> None:
    if dtype in extend.WIDE:
        request.getfixturevalue("multiop_x64")
    row = ROWS[op]
    worst = 0.0
    problems = _problems(row, dtype, whole)
    if runs_few("test_value", op, dtype):
        problems = _some(problems, request.config, 1)
    elif whole:  # the first one's own program also serves `test_vmap`, which is for primitives
        compute_values(problems[1:] if _is_primitive(op, multiop_backend) else problems)
    for problem in problems:
        if row.returns is None:
            _check_host_value(problem, row)
            continue
        worst = max(worst, _checks.check_row_values(problem, row))
    measured(worst, dtype)


def _check_host_value(problem: Problem, row: Row) -> None:
    """Compare the answer of an op that returns no tensor."""
    tensors = [multiop.op_convert_to_tensor(x) for x in problem.arrays]
    found, expected = problem.apply(problem.f, tensors), problem.apply(row.reference, problem.arrays)
    assert type(found) is type(expected), f"{row.op} returned a {type(found).__name__}"
    assert found == expected


@about(zip(_DIFFERENTIABLE), "op")
def test_gradient(
    multiop_backend: str, op: str, whole: bool, x64: None, pytestconfig: pytest.Config, measured: Measured
) -> None:
    # in the formulas of a composite, JAX is as the others, and takes seconds to compile a second call
    few = 1 if whole and not _is_primitive(op, multiop_backend) else 2
    row, problems = ROWS[op], _some(_differentiable(ROWS[op], whole), pytestconfig, few)
    for one in problems:
        _checks.check_row_values(one, row)
        _checks.check_primal(one)
    errors = [_checks.check_gradient(one, row.reference, analytic=row.analytic) for one in problems]
    measured(max(errors), "float64")


@about([(op,) for op in _DIFFERENTIABLE if "complex128" in ROWS[op].dtypes], "op")
def test_complex_gradient(
    multiop_backend: str, op: str, whole: bool, x64: None, pytestconfig: pytest.Config, measured: Measured
) -> None:
    problems = (problem for problem in _problems(ROWS[op], "complex128", whole) if problem.is_differentiable)
    problems = _some(problems, pytestconfig, 1)
    measured(max(_checks.check_gradient(problem, ROWS[op].reference) for problem in problems), "complex128")


@about(zip(_SECOND), "op")
def test_second_order(
    multiop_backend: str, op: str, whole: bool, x64: None, pytestconfig: pytest.Config, measured: Measured
) -> None:
    measured(max(map(_checks.check_second_order, _some(_differentiable(ROWS[op], whole), pytestconfig, 1))), "float64")


@about(zip(_DIFFERENTIABLE), "op")
def test_forward_mode(
    multiop_backend: str, op: str, whole: bool, x64: None, pytestconfig: pytest.Config, measured: Measured
) -> None:
    measured(max(map(_checks.check_forward_mode, _some(_differentiable(ROWS[op], whole), pytestconfig, 1))), "float64")


@about(zip(_MAPPED), "op")
def test_vmap(multiop_backend: str, op: str, whole: bool, pytestconfig: pytest.Config, measured: Measured) -> None:
    dtype = _native(ROWS[op])
    problems = _some((problem for problem in _problems(ROWS[op], dtype, whole) if problem.arrays), pytestconfig, 1)
    errors = [_checks.check_vmap(problem, gradient=ROWS[op].differentiable) for problem in problems]
    measured(max(errors, default=0.0), dtype)


@about(zip(_COMPILED), "op")
def test_compiled(multiop_backend: str, op: str, pytestconfig: pytest.Config, measured: Measured) -> None:
    dtype = _native(ROWS[op])
    problems, full = _some(_problems(ROWS[op], dtype), pytestconfig, 1), asked_tier(pytestconfig) == "full"
    # outside the full tier, every gradient on JAX is compiled already, and compared with numerical derivatives
    gradient = ROWS[op].differentiable and (full or multiop_backend != "jax")
    # multiop has traced down to PyTorch's operations, with the gradients inside, and nothing here asks for others
    with without_torch_compiler(not full, "eager"):
        measured(_checks.check_compiled(*problems, gradient=gradient), dtype)


@about([(op, pin, f"{op}-{n}") for op, row in ROWS.items() for n, pin in enumerate(row.pins)], "op", "pin")
def test_pinned(
    multiop_backend: str, op: str, pin: Pin, whole: bool, request: pytest.FixtureRequest, measured: Measured
) -> None:
    if pin.dtype in extend.WIDE:
        request.getfixturevalue("multiop_x64")
    measured(_checks.check_pin(getattr(multiop, op), pin, ulps=ROWS[op].ulps, name=op, whole=whole), pin.dtype)


def test_inputs_are_drawn_alike_each_time() -> None:
    unlike = []
    for op, row in ROWS.items():
        for first, second in zip(_draw_problems(row, _native(row)), _draw_problems(row, _native(row)), strict=True):
            leaves = tree.leaves([first.call.args, first.call.kwargs, first.call.then])
            n = sum(isinstance(leaf, (Sampler, np.ndarray)) for leaf in leaves)
            same = [x.tobytes() for x in first.arrays] == [x.tobytes() for x in second.arrays]
            unlike += [op] * (not same or len(first.arrays) != n)
    assert unlike == []


@pytest.mark.cross
@about(zip(_EVERY), "op")
def test_backends_agree(op: str, pytestconfig: pytest.Config) -> None:
    names = asked_backends(pytestconfig)
    if len(names) < 2:
        pytest.skip("one backend has none to be compared with")
    row: Any = ROWS[op]
    if row.returns is None:
        for problem in _problems(row, _native(row)):
            answers = []
            for name in names:
                with multiop.use_backend(name):
                    answers.append(problem.apply(problem.f, [multiop.op_convert_to_tensor(x) for x in problem.arrays]))
            assert all(answer == answers[0] for answer in answers)
        return
    whole = frozenset(name for name in names if runs_whole("test_backends_agree", op, name, pytestconfig))
    # outside the full tier, use the dtype of the derivatives, which have already been computed
    dtype = _native(row) if asked_tier(pytestconfig) == "full" else _precise(row) or _native(row)
    with x64_mode_for(dtype):
        for n in _some(range(len(row.calls)), pytestconfig, 1):
            problem = functools.partial(_problem, row, n, dtype, whole)
            _checks.check_agreement(problem, names, gradient=row.differentiable)
