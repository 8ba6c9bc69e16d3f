"""The checks: each tests one property of a `Problem` on the active backend.

Each raises `Mismatch`, or returns the largest relative error that it found.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import multiop
from multiop import extend

from . import _numerical
from ._case import OPEN, Call, Pin, Row, has_gradient
from ._problem import Problem
from ._tolerances import AGREEMENT_ULPS, Mismatch, assert_close, assert_equal, eps, noise, short, worst_entry

Array = np.ndarray[Any, Any]
__tracebackhide__ = True  # pytest leaves out the frames of this module


_KEPT = 8
_ESTIMATES: dict[Any, tuple[Call, tuple[list[Array], float, float]]] = {}  # the last ones of `_estimate`


class NoEstimate(Mismatch):
    """The numerical derivative does not converge and proves nothing: a kink, a jump, or too much rounding."""


def check_values(
    problem: Problem,
    reference: Callable[..., Any],
    returns: Any = None,
    *,
    ulps: float = 4.0,
    accumulates: bool | Callable[..., Any] = False,
) -> float:
    """Check shape, dtype and value of the results against a NumPy reference.

    Args:
        problem: The function and its inputs.
        reference: A function of the same arguments, with float64 (complex128) arrays in place of float tensors.
        returns: The dtype of the results, by name; a sequence for several; `None` leaves it open.
        ulps: Units in the last place allowed.
        accumulates: `ulps` counts per term, relative to `reference` (or this function) of the absolute values.
    """
    found = problem.value
    arrays = problem.reference_arrays(floating=bool(problem.differentiable_value))
    expected = _results(problem, reference, arrays)
    if len(found) != len(expected):
        raise Mismatch(f"{problem.name}: {len(found)} results, the reference has {len(expected)}")
    wanted = list(returns) if isinstance(returns, (list, tuple)) else [returns] * len(found)
    scales: list[Any] = [None] * len(found)
    if accumulates:
        ulps *= max([1, *(x.size for x in arrays)])
        sized = accumulates if callable(accumulates) else reference
        scales = _results(problem, sized, [np.abs(x) if x.dtype.kind in "fc" else x for x in arrays])
    worst = 0.0
    for k, (one, other, dtype, scale) in enumerate(zip(found, expected, wanted, scales, strict=True)):
        what = _at(problem) + (f", result {k}" if len(found) > 1 else "")
        if one.shape != other.shape:
            raise Mismatch(f"{what}: shape {one.shape}, the reference has {other.shape}")
        if dtype is not None and extend.dtype_name(one.dtype) != dtype:
            raise Mismatch(f"{what}: dtype {one.dtype}, {dtype} is expected")
        if one.dtype.kind in "bui":
            other = other.astype(one.dtype)
        else:
            with np.errstate(over="ignore"):  # values too large for the dtype become infinite
                other = np.where(
                    np.isinf(other.astype(one.dtype)), np.asarray(other.astype(one.dtype), other.dtype), other
                )
        worst = max(worst, assert_close(one, other, what, ulps=ulps, scale=scale, dtype=one.dtype))
    return worst


def check_row_values(problem: Problem, row: Row) -> float:
    """Check shape, dtype and value of the results of an op against its row."""
    returns = row.returns(problem.operand_dtypes()) if callable(row.returns) else row.returns
    if problem.call.kwargs.get("dtype") is not None:  # an explicit dtype is the expected one
        returns = extend.dtype_name(problem.call.kwargs["dtype"])
    return check_values(problem, row.reference, returns, ulps=row.ulps, accumulates=row.accumulates)


def check_primal(problem: Problem) -> float:
    """Check that the results do not change under differentiation, where an op may be computed in another way."""
    found = problem.run(problem.primal_tensors)

    def scales() -> list[Array]:
        every = zip(rounding_scales(problem, problem.outputs), problem.value, strict=True)
        return [scale for scale, y in every if y.dtype.kind not in "bui"]

    return _assert_equal_first(found, problem.differentiable_value, f"differentiated {_at(problem)}", scales)


def check_gradient(problem: Problem, reference: Callable[..., Any] | None = None, *, analytic: bool = False) -> float:
    """Check the gradient, in float64, against numerical derivatives.

    Args:
        problem: The function and its inputs, in float64.
        reference: The NumPy function to differentiate with respect to each entry. Without one, the function itself is
            differentiated along one random direction.
        analytic: The reference takes complex input, so a complex step is exact.
    """
    if reference is None:
        return _check_direction(problem, problem.outputs, problem.gradient, problem.cotangents, "gradient")
    expected, error, magnitude = _estimate(problem, reference, analytic)
    what = f"gradient of {_at(problem)}"
    if len(problem.gradient) != len(expected):
        raise Mismatch(f"{what}: {len(problem.gradient)} gradients for {len(expected)} inputs")
    worst = 0.0
    for k, one, other in zip(problem.inexact, problem.gradient, expected, strict=True):
        to = f"{what}, with respect to {problem.input_names[k]}"
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Mismatch(f"{to}: {one.dtype}{list(one.shape)} where {other.dtype}{list(other.shape)} is expected")
        worst = max(worst, _assert_within(one, other, error, to, magnitude=magnitude))
    return worst


def _estimate(problem: Problem, reference: Callable[..., Any], analytic: bool) -> tuple[list[Array], float, float]:
    """Return the numerical gradient of a reference, its error and the size of its terms; once for all backends."""
    bits = tuple((x.dtype, x.shape, x.tobytes()) for x in (*problem.arrays, *problem.cotangents))
    key = id(problem.call), reference, analytic, bits
    if key not in _ESTIMATES:
        points = [problem.arrays[i] for i in problem.inexact]

        def fn(*inexact: Array) -> list[Array]:
            return [y for y in _results(problem, reference, problem.inputs_with(inexact)) if y.dtype.kind in "fc"]

        expected, error = _numerical.gradient(fn, points, problem.cotangents, analytic)
        while len(_ESTIMATES) >= _KEPT:
            del _ESTIMATES[next(iter(_ESTIMATES))]
        # the call is kept, so that no other has its id
        _ESTIMATES[key] = problem.call, (expected, error, _numerical.magnitude(problem.cotangents, fn(*points)))
    return _ESTIMATES[key][1]


def check_second_order(problem: Problem) -> float:
    """Check the gradient of the gradient, in float64, against a numerical derivative of the gradient."""
    found = problem.run(problem.second_tensors)
    return _check_direction(problem, problem.gradient_tensors, found, problem.tangents, "second order")


def _check_direction(
    problem: Problem, fun: Callable[..., list[Any]], grads: list[Array], weights: list[Array], which: str
) -> float:
    """Compare `grads`, the pullback of `weights` through `fun`, with a derivative along a random direction."""
    try:
        return _along(problem, fun, grads, weights, f"{which} of {_at(problem)}", _directions(problem))
    except NoEstimate:
        raise
    except Mismatch:
        for k, i in enumerate(problem.inexact):  # find the input that is wrong
            alone = [d if n == k else np.zeros_like(d) for n, d in enumerate(_directions(problem))]
            what = f"{which} of {_at(problem)}, with respect to {problem.input_names[i]}"
            _along(problem, fun, grads, weights, what, alone)
        raise


def _along(
    problem: Problem,
    fun: Callable[..., list[Any]],
    grads: list[Array],
    weights: list[Array],
    what: str,
    directions: list[Array],
) -> float:
    points = [problem.arrays[i] for i in problem.inexact]

    def evaluate(*inexact: Array) -> list[Array]:
        return [y for y in problem.run(fun, problem.inputs_with(inexact)) if y.dtype.kind in "fc"]

    expected, error = _numerical.directional(evaluate, points, directions, weights)
    found = np.asarray(_numerical.weighted_sum(directions, grads))
    scale = _numerical.magnitude(directions, grads)
    magnitude = _numerical.magnitude(weights, evaluate(*points))
    along = f"{what}, along a random direction"
    return _assert_within(found, np.asarray(expected), error, along, scale=scale, magnitude=magnitude)


def why_value_is_vacuous(problem: Problem) -> str:
    """Say why comparing the results proves little: they are 0, not finite, or the same at other inputs."""
    value = problem.value
    if not any(y.size for y in value):
        return "every result is empty"
    if not any(np.isfinite(y).any() for y in value):
        return "no result is finite"
    if not any((y != 0).any() for y in value):
        return "every result is 0"
    others = [arrays for arrays in problem.batch() if not _same(arrays, problem.arrays)]
    try:
        constant = all(_same(problem.run(problem.outputs, arrays), value) for arrays in others)
    except Exception:  # these inputs are outside of its domain
        return ""
    return "the result is the same at other inputs" if others and constant else ""


def why_gradient_is_vacuous(gradient: list[Array]) -> str:
    """Say why comparing the gradient proves little."""
    if not any(np.isfinite(g).any() for g in gradient):
        return "no entry of the gradient is finite"
    return "" if any((g != 0).any() for g in gradient) else "the gradient is 0 everywhere"


def _same(found: list[Array], expected: list[Array]) -> bool:
    pairs = zip(found, expected, strict=True) if len(found) == len(expected) else []
    return len(found) == len(expected) and all(
        one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())
        for one, other in pairs
    )


def check_forward_mode(problem: Problem) -> float:
    """Check that forward mode is the transpose of reverse mode: `<w, J t>` is `<Jᵀ w, t>`."""
    pushed = problem.run(problem.forward_tensors)
    what = f"forward mode of {_at(problem)}"
    for one, other in zip(pushed, problem.differentiable_value, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Mismatch(
                f"{what}: a tangent {one.dtype}{list(one.shape)} for a result {other.dtype}{list(other.shape)}"
            )
    forward = _numerical.weighted_sum(problem.cotangents, pushed)
    reverse = _numerical.weighted_sum(problem.gradient, problem.tangents)
    scale = _numerical.magnitude(problem.cotangents, pushed) + _numerical.magnitude(problem.gradient, problem.tangents)
    dtype = (problem.differentiable_value or [np.zeros(())])[0].dtype
    terms = max([1, *(x.size for x in (*pushed, *problem.gradient))])

    def compare(scale: float) -> float:
        ulps = AGREEMENT_ULPS + terms
        return assert_close(
            np.asarray(forward), np.asarray(reverse), what, ulps=ulps, scale=np.asarray(scale), dtype=dtype
        )

    try:
        return compare(scale)
    except Mismatch:  # terms that cancel inside the function leave larger rounding errors than their sum suggests
        rounded = _numerical.magnitude(problem.cotangents, rounding_scales(problem, problem.forward_tensors))
        rounded += _numerical.magnitude(rounding_scales(problem, problem.gradient_tensors), problem.tangents)
        return compare(scale + rounded)


def check_vmap(problem: Problem, *, gradient: bool = True) -> float:
    """Check that mapping the function, and optionally its gradient, over a leading axis agrees with a loop."""
    batch = problem.batch()
    stacked = [np.stack(entries) for entries in zip(*batch, strict=True)]
    functions = _functions(problem, gradient)

    def everything(*tensors: Any) -> list[Any]:
        return [y for _, fun in functions for y in fun(*tensors)]

    def each(of: Callable[..., list[Array]]) -> list[Array]:  # `fun` is compiled, or the problem's own results there
        return _stack_results([[y for _, fun in functions for y in of(fun, arrays)] for arrays in batch])

    mapped = problem.run(lambda *xs: list(multiop.vmap(everything)(*xs)), stacked)
    looped = each(lambda fun, arrays: problem.run(fun, None if arrays is problem.arrays else arrays))
    rounding = functools.cache(lambda: each(lambda fun, arrays: rounding_scales(problem, fun, arrays)))

    def scales(part: slice) -> list[Array]:
        return rounding()[part]

    if len(mapped) != len(looped):
        raise Mismatch(f"vmap of {_at(problem)}: {len(mapped)} results, {len(looped)} without it")
    worst, first = 0.0, len(problem.value)
    for (what, _), part in zip(functions, (slice(first), slice(first, None)), strict=False):
        told = f"vmap of the {what} of {_at(problem)}"
        worst = max(worst, assert_equal(mapped[part], looped[part], told, scales=functools.partial(scales, part)))
    return worst


def check_compiled(*problems: Problem, gradient: bool = True) -> float:
    """Check that compiled code gives the eager values and, optionally, the eager gradients.

    Several problems are compiled as one program, which takes much less time.
    """
    pieces = [(problem, what, fun) for problem in problems for what, fun in _functions(problem, gradient)]

    def everything(*tensors: Any) -> list[Any]:
        starts = dict(zip(problems, itertools.accumulate([0, *(len(p.arrays) for p in problems)]), strict=False))
        return [y for p, _, fun in pieces for y in fun(*tensors[starts[p] : starts[p] + len(p.arrays)])]

    arrays = [x for problem in problems for x in problem.arrays]
    compiled = problems[0].run(lambda *xs: list(multiop.jit(everything)(*xs)), arrays)
    eager = [problem.run(fun) for problem, _, fun in pieces]
    if len(compiled) != sum(map(len, eager)):
        raise Mismatch(f"compiled {_at(problems[0])}: {len(compiled)} results, {sum(map(len, eager))} when eager")
    worst = 0.0
    for (problem, what, fun), expected in zip(pieces, eager, strict=True):
        found, compiled = compiled[: len(expected)], compiled[len(expected) :]
        scales = functools.partial(rounding_scales, problem, fun)
        worst = max(worst, assert_equal(found, expected, f"compiled {what} of {_at(problem)}", scales=scales))
    return worst


def check_agreement(problem_on: Callable[[], Problem], backends: list[str], gradient: bool = True) -> float:
    """Check that the value and `gradient` agree on all `backends`, each made active in turn."""
    results = {}
    for name in backends:
        with multiop.use_backend(name):
            problem = problem_on()
            results[name] = (
                problem,
                problem.value + (problem.gradient if gradient and problem.is_differentiable else []),
            )
    worst = 0.0
    for one, other in itertools.combinations(backends, 2):
        (problem, found), (_, expected) = results[one], results[other]
        what = f"{problem.name}({problem.call.abridged()}) on {one} against {other}"
        moved = functools.partial(_larger_noise, [(name, results[name][0]) for name in (one, other)], gradient)
        worst = max(worst, _assert_equal_first(found, expected, what, moved))
    return worst


def _larger_noise(problems: list[tuple[str, Problem]], gradient: bool) -> list[Array]:
    """Return, entry by entry, the larger of the scales of the rounding errors on two backends."""
    scales = []
    for name, problem in problems:
        with multiop.use_backend(name):
            scales.append(measured_noise(problem, gradient))
    return [np.fmax(*both) for both in zip(*scales, strict=True)]


def _assert_equal_first(
    found: list[Array], expected: list[Array], what: str, scales: Callable[[], list[Array]]
) -> float:
    """Compare at the scale of the entries, and at that of their rounding errors, which take long, where that fails."""
    try:
        return assert_equal(found, expected, what)
    except Mismatch:
        return assert_equal(found, expected, what, scales=scales)


def assert_agree(
    found: list[Array],
    moved: list[Array],
    expected: list[Array],
    also_moved: list[Array],
    what: str,
    *,
    ulps: float = AGREEMENT_ULPS,
) -> float:
    """Raise `Mismatch` unless two programs agree, each entry at the scale of its rounding errors in either."""

    def scales() -> list[Array]:
        return [np.fmax(*both) for both in zip(moved, also_moved, strict=True)]

    return assert_equal(found, expected, what, ulps=ulps, scales=scales)


def measured_noise(problem: Problem, gradient: bool = True) -> list[Array]:
    """Return, for the value and then the `gradient`, the scale of each entry's rounding errors."""
    return [scale for _, fun in _functions(problem, gradient) for scale in rounding_scales(problem, fun)]


def _functions(problem: Problem, gradient: bool = True) -> list[tuple[str, Callable[..., list[Any]]]]:
    functions: list[tuple[str, Callable[..., list[Any]]]] = [("value", problem.outputs)]
    if gradient and problem.is_differentiable:
        functions.append(("gradient", problem.gradient_tensors))
    return functions


def rounding_scales(problem: Problem, fun: Callable[..., list[Any]], arrays: list[Array] | None = None) -> list[Array]:
    """Return the scale of the rounding errors of each result, entry by entry.

    It is how far the entry moves when the inputs are rounded, and at least large enough to allow one unit in the last
    place of the result's largest entry: whether an entry below that is zero depends on how the program is written.
    """
    own = arrays is None or arrays is problem.arrays
    if own and fun in problem.scales:
        return problem.scales[fun]
    arrays = problem.arrays if arrays is None else arrays
    value = problem.run(fun) if own else problem.run(fun, arrays)
    perturbed = [problem.perturbed(k, arrays) for k in range(problem.perturbations)] if problem.inexact else []
    moved = [problem.run(fun, one) for one in perturbed]
    inputs = [np.abs(arrays[i][np.isfinite(arrays[i])]).max(initial=0.0) for i in problem.inexact]
    reach = float(max(inputs, default=0.0))
    scales = []
    for k, y in enumerate(value):
        unit = eps(y.dtype)
        largest = np.abs(y[np.isfinite(y)]).max(initial=0.0) if unit else 0.0
        scales.append(np.fmax(noise(y, [m[k] for m in moved], reach) / (unit or 1.0), float(largest) / AGREEMENT_ULPS))
    if own:
        problem.scales[fun] = scales
    return scales


def _stack_results(results: list[list[Array]]) -> list[Array]:
    return [np.stack(entries) for entries in zip(*results, strict=True)]


def _at(problem: Problem) -> str:
    return f"{problem.name}({problem.call.abridged()}) on {multiop.backend()}"


def _results(problem: Problem, reference: Callable[..., Any], arrays: list[Array]) -> list[Array]:
    with np.errstate(all="ignore"):
        returned = problem.apply(reference, arrays)
    return [np.asarray(y) for y in (returned if isinstance(returned, (list, tuple)) else [returned])]


def _directions(problem: Problem) -> list[Array]:
    rng = np.random.default_rng([problem.seed, 4])
    return [np.asarray(rng.normal(size=x.shape) * (1 + 1j if x.dtype.kind == "c" else 1)) for x in problem.tangents]


def _assert_within(
    found: Array, expected: Array, error: float, what: str, *, scale: float = 0.0, magnitude: float = 0.0
) -> float:
    """Compare with a numerical derivative to within its error estimate, which has to be small.

    Args:
        found: The derivative under test.
        expected: The numerical one.
        error: Its estimated error.
        what: What is compared, for the message.
        scale: The size of terms that may have cancelled in `found`.
        magnitude: The size of the function's values, whose rounding limits the accuracy of the derivative.
    """
    size = max(scale if np.isfinite(scale) else 0.0, float(np.abs(expected).max(initial=0.0)))
    if not error <= max(1e-5 * size, 1e-10 * magnitude):
        raise NoEstimate(
            f"{what}: the numerical derivative does not converge (error {error:.3g} of {size:.3g}); is this a kink?"
        )
    allowed = 10 * error + 1024 * eps(np.float64) * size
    difference = float(np.abs(found - expected).max(initial=0.0))
    size = max(size, magnitude) or 1.0
    relative = difference / size
    if not difference <= allowed:
        text = f"{what}: {short(found)} where finite differences give {short(expected)} (±{error:.2g})"
        if found.size > 1:
            text += f": {difference:.2g} apart{worst_entry(found, expected)}"
        raise Mismatch(f"{text}; {allowed:.2g} is allowed", relative, allowed / size)
    return relative


def check_pin(
    f: Callable[..., Any], pin: Pin, *, ulps: float = 4.0, name: str | None = None, whole: bool = False
) -> float:
    """Check a pinned answer: the value, and the gradient of the sum of the results, at one input.

    With `whole`, the gradient is compiled as one program; the value is still computed step by step.
    """
    dtype = extend.to_numpy_dtype(pin.dtype)

    def operand(x: Any) -> Any:
        return np.asarray(x, dtype) if isinstance(x, (list, float, complex)) else x

    problem = Problem(f, Call(tuple(map(operand, pin.args)), pin.kwargs), dtype=pin.dtype, name=name)
    what, worst = f"{problem.name}({pin!r}) on {multiop.backend()}", 0.0
    _ = problem.value
    problem.whole, problem.together = whole, ("primal_tensors", "gradient_tensors")
    if has_gradient(pin):
        problem.cotangents = [np.ones_like(y) for y in problem.differentiable_value]
    if pin.value is not None:
        values = pin.value if isinstance(pin.value, tuple) else (pin.value,)
        if len(values) != len(problem.value):
            raise Mismatch(f"{what}: {len(problem.value)} results, {len(values)} are pinned")
        for found, value in zip(problem.value, values, strict=True):
            worst = max(worst, assert_close(found, np.asarray(value).astype(found.dtype), what, ulps=ulps))
            if has_gradient(pin) and len(values) == len(problem.differentiable_value) == 1:
                (found,) = problem.run(problem.primal_tensors)
                expected = np.asarray(value).astype(found.dtype)
                worst = max(worst, assert_close(found, expected, f"differentiated {what}", ulps=ulps))
    if has_gradient(pin):
        grads = pin.gradient if isinstance(pin.gradient, tuple) else (pin.gradient,)
        if len(grads) != len(problem.gradient):
            raise Mismatch(f"{what}: {len(problem.gradient)} gradients, {len(grads)} are pinned")
        for k, (found, grad) in enumerate(zip(problem.gradient, grads, strict=True)):
            pinned: Array = np.asarray(grad, object)
            expected = np.where(pinned == np.array(OPEN), found, pinned).astype(found.dtype)
            worst = max(worst, assert_close(found, expected, f"gradient of {what}, input {k}", ulps=ulps))
    return worst
