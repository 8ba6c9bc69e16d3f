"""Each kernel is its op: the same values and derivatives as the meaning that it stands for, and it does run."""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import multiop as mo
from multiop._loading import kernels as _kernels, registry
from multiop.testing._case import call
from multiop.testing._problem import Problem
from multiop.testing._samplers import distinct, normal, positive
from multiop.testing._tiers import asked_tier
from multiop.testing.cases import rows

# problems of an op in a dtype in which its kernel runs, beside those of `LARGE`
MOST, FEW = 4, 2  # in the full tier, and below it
LONG = {"op_gammainc", "op_gammaincc"}  # left to the full tier: TensorFlow takes half a minute for each
ROOT = Path(__file__).parent.parent
ROUNDING = {"float16": 1e-2, "float32": 2e-4, "float64": 1e-9}
SEEN = np.array([[True, False, True], [False, False, False], [True, True, True]])  # a query sees nothing
BIAS = [[0.5, -1.0, 2.0], [0.0, 1.0, 0.5], [-np.inf, 1.0, 0.0]]  # a list is no operand: it has no gradient
SPECTRUM = np.linspace(1 + 2j, -2 + 1j, 6).reshape(2, 3) ** 2
LARGE = {  # calls of the sizes and options that a kernel is for, where the op's own rows are small
    "op_angle": [call(SPECTRUM)],
    "op_batch_normalization": [
        call(normal(3, 4, 5), normal(4), positive(4), 1, **{name: normal(4)}) for name in ("offset", "scale")
    ],
    "op_categorical_crossentropy": [call(positive(3, 4), normal(3, 4), from_logits=True)],
    "op_cdist": [call(normal(9, 40), normal(7, 40)), call(normal(9, 3), normal(7, 3))],
    "op_det": [call(normal(4, 4))],
    "op_diag": [call(normal(3), k=1)],
    "op_dot_product_attention": [
        call(*[normal(2, 3, 2, 4)] * 3, bias=BIAS, mask=SEEN),
        call(*[normal(2, 3, 2, 4)] * 3, bias=BIAS, is_causal=True),
    ],
    "op_expm": [call(normal(4, 4))],
    **{f"op_{name}": [call(SPECTRUM)] for name in ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "irfftn")},
    **{f"op_{name}": [call(SPECTRUM)] for name in ("real", "imag")},
    "op_group_normalization": [
        call(normal(2, 3, 2, 4), 2, normal(4), normal(4)),  # its channels lie last
        call(normal(2, 4, 3, 2), 2, beta=normal(4), axis=1),
    ],
    "op_image_resize": [
        call(normal(2, 6, 6, 3), (12, 12)),
        call(normal(3, 6, 6), (12, 12), data_format="channels_first"),
        call(normal(2, 6, 5, 3), (12, 20), interpolation="nearest"),
    ],
    "op_layer_normalization": [call(normal(3, 2), normal(3, 2), normal(3, 2), axis=None)],
    **{name: [call(*[np.arange(4, dtype=np.int32)] * 2)] for name in ("op_left_shift", "op_right_shift")},
    "op_mean": [call(normal(400, 400), axis=0), call(SPECTRUM, axis=0)],
    "op_one_hot": [call(np.arange(256, dtype=np.int32) % 8, 8)],
    "op_quantile": [call(normal(3, 5), 0.3, axis=1), call(normal(5, 3), 0.5, axis=0, keepdims=True)],
    "op_slogdet": [call(normal(4, 4))],
    "op_std": [call(normal(400, 400), axis=1), call(normal(4, 4))],
    "op_top_k": [call(distinct(60, 60), 3)],
    "op_var": [call(normal(400, 400)), call(normal(400, 400), axis=1, keepdims=True)],
    "op_searchsorted": [call(np.arange(6.0), positive(4))],
}
ONE_ORDER = {"op_slogdet"}  # at the sizes here, the second derivative of either form loses the digits to compare


def problems(op, dtype):
    row = rows()[op]
    calls = [*row.calls, *(LARGE.get(op, ()) if dtype != "float16" else ())]
    return [Problem(getattr(mo, op), each, dtype=dtype, seed=n, name=op) for n, each in enumerate(reversed(calls))]


def parts(problem, dtype, depth):
    """Return what is computed of a problem, functions of its tensors by name: at depth 0 the cheap ones, at 2 all."""
    row = rows()[problem.name]
    found = {"value": problem.outputs}
    if row.differentiable and problem.is_differentiable:
        found |= {"gradient": problem.gradient_tensors, "value under a derivative": problem.primal_tensors}
        if dtype == "float16" or depth == 0:
            return found
        found["tangent"] = problem.forward_tensors
        if row.order >= 2 and problem.name not in ONE_ORDER:
            found["second derivative"] = problem.second_tensors
            if depth == 2:
                found["tangent of the gradient"] = problem.forward_over_reverse_tensors
        if row.vmap and depth == 2:
            mapped = mo.vmap(lambda *xs: tuple(problem.gradient_tensors(*xs)))
            found["batched gradient"] = lambda *xs: mapped(*[mo.op_stack([x, x]) for x in xs])
    return found


def results(functions, arrays, eager=()):
    """Return what functions of tensors give. On JAX, one program computes those that are not `eager`."""

    def compute(names):
        return lambda *xs: {name: list(functions[name](*xs)) for name in names}

    tensors = list(map(mo.op_convert_to_tensor, arrays))
    rest = [name for name in functions if name not in eager or mo.backend() != "jax"]
    found = (mo.jit(compute(rest)) if mo.backend() == "jax" else compute(rest))(*tensors)
    found |= compute([name for name in functions if name not in rest])(*tensors)
    return {name: list(map(mo.op_convert_to_numpy, found[name])) for name in functions}


class Missed(Exception):
    """The kernel called the meaning."""


def compare(op, backend, patch, most=FEW):
    """Compare a kernel with the op's meaning; return in how many problems it ran.

    Below the full tier, what takes long is compared in the widest dtype alone in which the kernel runs, and left out
    where nothing is in it.
    """
    kernel, ran, widest = getattr(backend.kernels, op), 0, None
    meaning = kernel.__kwdefaults__["otherwise"]

    def missed(*_):
        raise Missed

    def runs(problem):
        """Say whether the kernel gives the value of a problem, or the value under a derivative, without the meaning."""
        with patch.context() as alone:
            alone.setitem(kernel.__kwdefaults__, "otherwise", missed)
            is_differentiated = rows()[op].differentiable and problem.inexact
            for part in (problem.outputs, *[problem.primal_tensors] * bool(is_differentiated)):
                with contextlib.suppress(Missed):
                    problem.run(part, problem.arrays)
                    return True
        return False

    dtypes = [dtype for dtype in ROUNDING if dtype in rows()[op].dtypes] or rows()[op].dtypes[:1]
    for dtype in reversed(dtypes):
        for problem in itertools.islice(filter(runs, problems(op, dtype)), most + len(LARGE.get(op, ()))):
            ran, widest = ran + 1, widest or dtype
            is_widest = dtype == widest
            depth = 2 if most == MOST or (is_widest and all(x.size for x in problem.arrays)) else int(is_widest)
            functions = parts(problem, dtype, depth)
            given = results(functions, problem.arrays, eager=("value", "gradient"))
            with patch.context() as alone:
                alone.setattr(backend, op, meaning)
                expected = results(functions, problem.arrays)
            for what, arrays in given.items():
                for x, y in zip(arrays, expected[what], strict=True):
                    at, rounding = f"{op} {problem.call!r} {dtype}: {what}", ROUNDING.get(dtype, 0)
                    room = rounding * max(1, np.abs(y).max(initial=0))
                    np.testing.assert_allclose(x.astype(y.dtype), y, rounding, room, err_msg=at)
    return ran


@pytest.fixture
def module(backend):
    found = registry.load(backend)
    if not _kernels.names(found):
        pytest.skip(f"{backend} has no kernels")
    return found


@pytest.mark.rotating
def test_every_kernel_is_its_op_and_runs(module, monkeypatch, multiop_x64, pytestconfig):
    left_out, most = (set(), MOST) if asked_tier(pytestconfig) == "full" else (LONG, FEW)
    names = [op for op in _kernels.names(module) if op not in left_out]
    assert names
    assert {op: compare(op, module, monkeypatch, most) > 0 for op in names} == dict.fromkeys(names, True)


def test_every_kernel_is_measured(module):
    source = ast.parse((ROOT / "benchmarks" / "bench_kernels.py").read_text(encoding="utf-8"))
    (table,) = [node.value for node in source.body if isinstance(node, ast.AnnAssign) and node.target.id == "CALLS"]
    measured = {key.value for key in table.keys}
    if module.name == "numpy":
        source = (ROOT / "benchmarks" / "bench_numpy.py").read_text(encoding="utf-8")
        measured = {f"op_{word}" for word in re.findall(r"\w+", source)}
    assert set(_kernels.names(module)) <= measured


def test_a_kernel_with_a_wrong_derivative_is_seen(backend, monkeypatch, multiop_x64):
    if backend != "torch":
        pytest.skip("planted in one backend; the comparison is the same")
    from multiop.backends.torch.kernels import elementwise

    right = elementwise.hypot_gradients
    monkeypatch.setattr(elementwise, "hypot_gradients", lambda *xs: [2 * g for g in right(*xs)])
    with pytest.raises(AssertionError, match="op_hypot .*: gradient"):
        compare("op_hypot", registry.load(backend), monkeypatch)


def test_a_kernel_that_never_runs_is_seen(module, monkeypatch, multiop_x64):
    op = _kernels.names(module)[0]

    def idle(*args, otherwise):
        return otherwise(*args)

    idle.__kwdefaults__ = {"otherwise": getattr(module.kernels, op).__kwdefaults__["otherwise"]}
    monkeypatch.setattr(module.kernels, op, idle)
    monkeypatch.setattr(module, op, idle)
    assert compare(op, module, monkeypatch) == 0


def test_without_kernels_an_op_is_its_meaning(module):
    kernels = {op: getattr(module, op) for op in _kernels.names(module)}
    try:
        _kernels.switch(module, False)
        for op, kernel in kernels.items():
            assert getattr(module, op) is kernel.__kwdefaults__["otherwise"]
    finally:
        _kernels.switch(module, True)
    assert all(getattr(module, op) is kernel for op, kernel in kernels.items())


def test_a_backend_is_joined_with_its_kernels_once(module):
    meanings = {op: getattr(module, op).__kwdefaults__["otherwise"] for op in _kernels.names(module)}
    _kernels.join(module, {}, True)
    for op, meaning in meanings.items():
        assert getattr(module, op).__kwdefaults__["otherwise"] is meaning is not getattr(module, op)


def without_kernels(backend, tests):
    names = ",".join(_kernels.names(registry.load(backend)))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "tests/test_conformance.py",
        *tests,
    ]
    command += [f"--multiop-backends={backend}", f"--multiop-ops={names}", "--multiop-tier=default"]
    environment = os.environ | {"MULTIOP_KERNELS": "0", "MULTIOP_BACKEND": backend}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_the_suite_passes_on_what_kernels_stand_for(backend):
    if backend != "torch":
        pytest.skip("the others are in the full tier")
    done = without_kernels(backend, ["-k", "value or test_gradient or second_order or pinned"])
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.tier("full")
def test_the_whole_suite_passes_on_what_kernels_stand_for(backend):
    done = without_kernels(backend, [])
    assert done.returncode == 0, done.stdout[-3000:]
