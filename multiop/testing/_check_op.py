"""The checks for users: one function, on every backend, in every mode."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import multiop
from multiop import errors, extend, tree

from . import _checks, _html
from ._case import Call
from ._discovery import reason_to_differ
from ._problem import Problem
from ._raised import describe_error
from ._shared_process import torch_first, x64_mode_for
from ._tolerances import AGREEMENT_ULPS, Mismatch

Array = np.ndarray[Any, Any]
__tracebackhide__ = True  # pytest leaves out the frames of this module
MODES = ("reverse", "forward")
COMPARED = ("value", "gradient", "second order")  # compared with the other backends and with a reference


class _Errors(dict[str, float]):
    """The largest relative error of each property."""

    def _repr_html_(self) -> str:
        """Return them as a table, for a notebook."""
        return _html.fragment("all checks pass", True, {"": (tuple(self), [[f"{x:.1e}" for x in self.values()]])})


def check_op(
    fn: Callable[..., Any],
    *args: Any,
    reference: Callable[..., Any] | None = None,
    backends: Sequence[str] | None = None,
    order: int = 2,
    modes: Sequence[str] = MODES,
    dtypes: Sequence[str] = ("float64",),
    tolerances: float | dict[str, float] = AGREEMENT_ULPS,
    numerical: bool = True,
    vmap: bool = True,
    compiled: bool = True,
    fast: bool = False,
    seed: int = 0,
    **kwargs: Any,
) -> dict[str, float]:
    """Prove that `fn` gives the same, correct values and gradients on every backend.

    On each backend, the value is computed twice; the gradient and second order are compared with numerical derivatives
    (in float64), forward mode with reverse mode, `vmap` with a loop, and compiled code with eager code. Values and
    derivatives are then compared between the backends and with `reference`.

    Args:
        fn: The function, written in multiop ops: tensors (pytrees of tensors) in and out.
        *args: Its positional arguments: samplers of `multiop.testing`, NumPy arrays, and anything else as it is.
        reference: The original of `fn`: a function of the same arguments in PyTorch, JAX, TensorFlow or NumPy. A
            NumPy reference is differentiated numerically, the others by their framework.
        backends: Names of the backends; by default all installed ones.
        order: The highest order of derivative: 0, 1 or 2.
        modes: Which of `"reverse"` and `"forward"` to check.
        dtypes: The dtypes that samplers draw and float arrays are cast to, one round of checks each.
        tolerances: How many units in the last place two backends may differ, at the scale of each entry's rounding
            error; or such a number per dtype.
        numerical: Whether derivatives must be the true ones: `False` for a rule that differs on purpose, such as a
            straight-through estimator or a clipped gradient. A function with the mark of `multiop check`, a comment
            `# check: differs, REASON`, needs no `False`.
        vmap: Whether to check `vmap`.
        compiled: Whether to check `multiop.jit`.
        fast: Whether to check the value and the gradient alone, against finite differences and between backends: in
            seconds, while a function is being written. It is `order=1, modes=["reverse"], vmap=False, compiled=False`.
        seed: Seed of the samplers.
        **kwargs: Keyword arguments of `fn`.

    Returns:
        The largest relative error found, per property.

    Raises:
        Mismatch: Something differs. The message names the function, the backend, the argument, the worst entry, both
            values, the tolerance, and how to reproduce it.
        ArgumentError: An option is not one of those above.

    Example:
        >>> import multiop
        >>> from multiop.testing import check_op, normal
        >>> def swish(x):
        ...     return x * multiop.op_sigmoid(x)
        >>> found = check_op(swish, normal(3), backends=[multiop.backend()], compiled=False)
        >>> sorted(found)
        ['forward mode', 'gradient', 'second order', 'value', 'vmap']
    """
    wanted = ["value"]
    if not set(modes) <= set(MODES) or isinstance(modes, str):
        raise errors.ArgumentError(f"check_op: modes: {modes!r} is given; a sequence of {', '.join(MODES)} is accepted")
    if order not in (0, 1, 2):
        raise errors.ArgumentError(f"check_op: order: {order!r} is given; 0, 1 or 2 is accepted")
    if fast:
        order, modes, vmap, compiled = min(order, 1), ["reverse"], False, False
    if "reverse" in modes:
        wanted += ["gradient", "second order"][:order]
    if "forward" in modes and order:
        wanted.append("forward mode")
    wanted += ["vmap"] * vmap + ["compiled"] * compiled
    _refuse_misspelt(fn, kwargs)
    numerical = numerical and reason_to_differ(fn) is None
    options = _Options(wanted, backends, dtypes, tolerances, numerical, seed)
    given = {"order": order, "modes": modes, "vmap": vmap, "compiled": compiled}
    usual = {"order": 2, "modes": MODES, "vmap": True, "compiled": True}
    given = {"fast": True} if fast else {name: value for name, value in given.items() if value != usual[name]}
    return _check("check_op", fn, Call(args, kwargs), options, reference, given)


def _refuse_misspelt(fn: Callable[..., Any], kwargs: dict[str, Any]) -> None:
    """Raise an error for a keyword that is close to an option of `check_op` and that `fn` does not take."""
    try:
        taken = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken):
        return
    options = [name for name, one in inspect.signature(check_op).parameters.items() if one.kind is one.KEYWORD_ONLY]
    for name in kwargs.keys() - {parameter.name for parameter in taken}:
        if hint := extend.similar(name, options):
            raise errors.ArgumentError(f"check_op: {_name(fn)} has no parameter {name!r}{hint}")


def check_values(fn: Callable[..., Any], *args: Any, **options: Any) -> float:
    """Check that `fn` gives the same values on every backend; arguments as for `check_op`."""
    return _piece("check_values", ["value"], fn, args, options)


def check_gradients(fn: Callable[..., Any], *args: Any, **options: Any) -> float:
    """Check that the gradient of `fn` is right in both modes, on every backend; arguments as for `check_op`."""
    return _piece("check_gradients", ["value", "gradient", "forward mode"], fn, args, options)


def check_second_order(fn: Callable[..., Any], *args: Any, **options: Any) -> float:
    """Check that the gradient of the gradient of `fn` is right, on every backend; arguments as for `check_op`."""
    return _piece("check_second_order", ["second order"], fn, args, options)


def check_vmap(fn: Callable[..., Any], *args: Any, **options: Any) -> float:
    """Check that `vmap` of `fn`, and of its gradient, agrees with a loop; arguments as for `check_op`."""
    return _piece("check_vmap", ["vmap"], fn, args, options)


def check_compiled(fn: Callable[..., Any], *args: Any, **options: Any) -> float:
    """Check that compiled code agrees with eager code, gradients included; arguments as for `check_op`."""
    return _piece("check_compiled", ["compiled"], fn, args, options)


def _piece(
    command: str, wanted: list[str], fn: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> float:
    named = {
        key: options.pop(key) for key in ("backends", "dtypes", "tolerances", "numerical", "seed") if key in options
    }
    reference = options.pop("reference", None)
    found = _check(command, fn, Call(args, options), _Options(wanted, **named), reference, {})
    return max(found.values(), default=0.0)


def check_dtypes(
    fn: Callable[..., Any],
    *args: Any,
    dtypes: Sequence[str] = ("float16", "bfloat16", "float32", "float64"),
    returns: Callable[[str], str] | str | None = None,
    backends: Sequence[str] | None = None,
    seed: int = 0,
    **kwargs: Any,
) -> None:
    """Check that the results of `fn` have the expected dtype on every backend.

    Args:
        fn: The function, written in multiop ops.
        *args: Its positional arguments, as for `check_op`.
        dtypes: The dtypes of the inputs.
        returns: The dtype of the results, or a function from the dtype of the inputs to it; the same by default.
        backends: Names of the backends; by default all installed ones.
        seed: Seed of the samplers.
        **kwargs: Keyword arguments of `fn`.

    Raises:
        Mismatch: A result has another dtype.

    Example:
        >>> import multiop
        >>> from multiop.testing import check_dtypes, normal
        >>> check_dtypes(multiop.op_exp, normal(3), backends=[multiop.backend()])
    """
    call = Call(args, kwargs)
    for dtype in dtypes:
        expected = returns(dtype) if callable(returns) else returns or dtype
        for backend in _backends(backends):
            with x64_mode_for(dtype), multiop.use_backend(backend):
                problem = Problem(fn, call, dtype=dtype, seed=seed, name=_name(fn))
                where = f"{problem.name}({call.abridged()}) on {backend}"
                try:
                    results = problem.value
                except Exception as error:
                    raise Mismatch(f"{where} raises {describe_error(error)}\n  with inputs of {dtype}") from None
                for k, y in enumerate(results):
                    if (found := extend.dtype_name(y.dtype)) != expected:
                        raise Mismatch(
                            f"result {k} of {where} is {found} for inputs of {dtype}; {expected} is expected"
                        )


@dataclasses.dataclass(frozen=True)
class _Options:
    """What to check, where and how."""

    wanted: list[str]
    backends: Sequence[str] | None = None
    dtypes: Sequence[str] = ("float64",)
    tolerances: float | dict[str, float] = AGREEMENT_ULPS
    numerical: bool = True
    seed: int = 0

    def given(self) -> dict[str, Any]:
        """Return the options that were chosen by the caller, but for dtypes and the seed."""
        names = ("backends", "tolerances", "numerical")
        usual = {field.name: field.default for field in dataclasses.fields(self)}
        return {name: getattr(self, name) for name in names if getattr(self, name) != usual[name]}

    def ulps(self, dtype: str) -> float:
        """Return how far apart two backends may be."""
        return self.tolerances.get(dtype, AGREEMENT_ULPS) if isinstance(self.tolerances, dict) else self.tolerances


def _backends(backends: Sequence[str] | None) -> list[str]:
    if isinstance(backends, str):
        raise errors.ArgumentError(f"check_op: backends: {backends!r} is given; a sequence of names is accepted")
    names = multiop.available_backends() if backends is None else list(backends)
    if not names:
        raise errors.BackendError("check_op: no backend is given, or none is installed")
    torch_first(names)
    return names


def _check(
    command: str,
    fn: Callable[..., Any],
    call: Call,
    options: _Options,
    reference: Callable[..., Any] | None,
    given: dict[str, Any],
) -> dict[str, float]:
    """Run the checks; if one fails, add the `command` that repeats it, with the options that were `given`."""
    if isinstance(options.dtypes, str):
        raise errors.ArgumentError(f"check_op: dtypes: {options.dtypes!r} is given; a sequence of dtypes is accepted")
    worst = _Errors()
    for dtype in map(extend.dtype_name, options.dtypes):
        with x64_mode_for(dtype):
            try:
                for what, error in _in_dtype(fn, call, dtype, options, reference):
                    worst[what] = max(worst.get(what, 0.0), error)
            except Mismatch as error:
                chosen = "".join(f", {name}={value!r}" for name, value in (options.given() | given).items())
                if reference is not None:
                    chosen += f", reference={_path(reference)}"
                again = f"{command}({_name(fn)}, {call!r}, dtypes=[{dtype!r}], seed={options.seed}{chosen})"
                message = f"{error}\n  with inputs of {dtype}{_place(fn)}; again: {again}"
                raise Mismatch(message, error.error, error.allowed) from None
    return worst


def _place(fn: Callable[..., Any]) -> str:
    """Return where a function of the user's begins, as an editor takes it; nothing for an op."""
    is_op = (getattr(fn, "__module__", None) or "").partition(".")[0] == "multiop"
    place = "" if is_op else extend.definition_of(fn)
    return f", in {place}" if place else ""


def _in_dtype(
    fn: Callable[..., Any], call: Call, dtype: str, options: _Options, reference: Callable[..., Any] | None
) -> Iterator[tuple[str, float]]:
    results: dict[str, dict[str, _Result]] = {}
    for backend in _backends(options.backends):
        with multiop.use_backend(backend):
            problem = Problem(fn, call, dtype=dtype, seed=options.seed, name=_name(fn))
            try:
                yield from _alone(problem, options)
                results[backend] = _measure_results(problem, options)
            except Mismatch:
                raise
            except Exception as error:
                raise Mismatch(
                    f"{problem.name}({call.abridged()}) on {backend} raises {describe_error(error)}"
                ) from None
    for what in COMPARED:
        measured = {backend: found[what] for backend, found in results.items() if what in found}
        if measured:
            yield what, _against_each_other(what, measured, options.ulps(dtype))
    if reference is not None:
        yield from _against_reference(fn, reference, call, dtype, options, results)


class _Result:
    """The results of one backend, and the scale of each entry's rounding errors."""

    def __init__(self, problem: Problem, fun: Callable[..., list[Any]]) -> None:
        self.where = f"{problem.name}({problem.call.abridged()})"
        self.arrays = problem.run(fun)
        self.scales = _checks.rounding_scales(problem, fun)


def _measure_results(problem: Problem, options: _Options) -> dict[str, _Result]:
    """Measure what is compared between backends."""
    functions = {
        "value": problem.outputs,
        "gradient": problem.gradient_tensors,
        "second order": problem.second_tensors,
    }
    wanted = [what for what in COMPARED if what in options.wanted and (what == "value" or problem.is_differentiable)]
    return {what: _Result(problem, functions[what]) for what in wanted}


def _alone(problem: Problem, options: _Options) -> Iterator[tuple[str, float]]:
    """Run the checks that need only one backend."""
    where = f"{problem.name}({problem.call.abridged()}) on {multiop.backend()}"
    if "value" in options.wanted and not _repeats(problem):
        raise Mismatch(f"value of {where}: a second call gives another result; random numbers need a seed")
    differentiable = problem.is_differentiable
    numerical = options.numerical and differentiable and all(x.dtype in _DOUBLE for x in problem.tangents)
    if numerical and _is_coarse(problem):
        raise Mismatch(
            f"value of {where} is computed in less precision than float64, so its derivatives cannot be checked: "
            f"is something cast to float32?"
        )
    for what, check in (("gradient", _checks.check_gradient), ("second order", _checks.check_second_order)):
        if what in options.wanted and numerical:
            with contextlib.suppress(_checks.NoEstimate):  # a kink: nothing disproves the derivative
                yield what, check(problem)
    if "forward mode" in options.wanted and differentiable:
        yield "forward mode", _checks.check_forward_mode(problem)
    gradient = differentiable and options.wanted != ["value"]
    if "vmap" in options.wanted and problem.arrays:
        yield "vmap", _checks.check_vmap(problem, gradient=gradient)
    if "compiled" in options.wanted:
        yield "compiled", _checks.check_compiled(problem, gradient=gradient)


def _repeats(problem: Problem) -> bool:
    """Say whether a second call gives the same bits."""
    return [x.tobytes() for x in problem.value] == [x.tobytes() for x in problem.run(problem.outputs, problem.arrays)]


def _is_coarse(problem: Problem) -> bool:
    """Say whether the values are too coarse for float64: a step of 1e-3 changes them, one of 1e-11 does not."""
    rng = np.random.default_rng(problem.seed)
    directions = [rng.normal(size=problem.arrays[i].shape) for i in problem.inexact]

    def move_inputs(step: float) -> list[bytes]:
        inexact = [problem.arrays[i] + step * d for i, d in zip(problem.inexact, directions, strict=True)]
        return [y.tobytes() for y in problem.run(problem.outputs, problem.inputs_with(inexact))]

    still = move_inputs(0.0)
    return move_inputs(1e-3) != still and all(move_inputs(step) == still for step in (1e-11, -1e-11, 2e-11))


def _against_each_other(what: str, found: dict[str, _Result], ulps: float) -> float:
    """Compare backends pairwise; a backend that differs from all others is named as the culprit."""
    failures: dict[tuple[str, str], Mismatch] = {}
    worst = 0.0
    for one, other in itertools.combinations(found, 2):
        try:
            worst = max(worst, _compare(what, found[one], found[other], one, other, ulps))
        except Mismatch as error:
            failures[one, other] = error
    for culprit in found:
        pairs = [pair for pair in failures if culprit in pair]
        if len(found) > 2 and len(pairs) == len(failures) == len(found) - 1:
            others = " and ".join(name for name in found if name != culprit)
            raise Mismatch(f"{culprit} is off, {others} agree: {failures[pairs[0]]}", failures[pairs[0]].error)
    for error in failures.values():
        raise error
    return worst


def _compare(what: str, found: _Result, expected: _Result, one: str, other: str, ulps: float) -> float:
    where = f"{what} of {found.where} on {one} against {other}"
    return _checks.assert_agree(found.arrays, found.scales, expected.arrays, expected.scales, where, ulps=ulps)


def _against_reference(
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    call: Call,
    dtype: str,
    options: _Options,
    results: dict[str, dict[str, _Result]],
) -> Iterator[tuple[str, float]]:
    framework = _framework(reference, call, dtype, options.seed)
    if framework != "numpy":
        with _telling_of(reference, call, framework), multiop.use_backend(framework):
            native = _measure_results(
                Problem(reference, call, dtype=dtype, seed=options.seed, name=_name(reference)), options
            )
        for backend, found in results.items():
            for what in native:
                if what in found:
                    name = f"{_name(reference)} in {framework}"
                    yield what, _compare(what, found[what], native[what], backend, name, options.ulps(dtype))
        return
    for backend in results:
        with multiop.use_backend(backend):
            problem = Problem(fn, call, dtype=dtype, seed=options.seed, name=_name(fn))
            differentiates = "gradient" in options.wanted and problem.is_differentiable and dtype in _WIDE
            _ = problem.value, differentiates and problem.gradient
            with _telling_of(reference, call, "NumPy"):
                error = _checks.check_values(problem, reference, ulps=options.ulps(dtype))
            yield "value", error
            if differentiates:
                with _telling_of(reference, call, "NumPy"):
                    error = _checks.check_gradient(problem, reference)
                yield "gradient", error


@contextlib.contextmanager
def _telling_of(reference: Callable[..., Any], call: Call, framework: str) -> Iterator[None]:
    """Say that it is the reference that raises."""
    try:
        yield
    except Mismatch:
        raise
    except Exception as error:
        where = f"the reference {_path(reference)}({call.abridged()}) in {framework}"
        raise Mismatch(f"{where} raises {describe_error(error)}") from None


def _framework(reference: Callable[..., Any], call: Call, dtype: str, seed: int) -> str:
    """Say whose tensors `reference` takes, by calling it with NumPy arrays, then with each framework's tensors."""
    problem = Problem(reference, call, dtype=dtype, seed=seed)
    reasons = []
    for name in dict.fromkeys(["numpy", *multiop.available_backends()]):
        try:
            if name == "numpy":
                found = tree.leaves(problem.apply(reference, problem.arrays))
                if all(isinstance(y, (np.ndarray, np.generic, float, int, bool, complex)) for y in found):
                    return name
            else:
                with multiop.use_backend(name):
                    module = extend.active()
                    found = tree.leaves(problem.apply(reference, [module.convert(x) for x in problem.arrays]))
                    if all(module.is_tensor(y) for y in found):
                        return name
            returned = type(found[0]).__name__ if found else "nothing"
            reasons.append(f"with {name}, {_path(reference)} returns {returned}")
        except Exception as error:
            reasons.append(f"with {name}, {_path(reference)} raises {describe_error(error)}")
    reasons = ["\n    ".join(reason.splitlines()) for reason in reasons]
    raise errors.ArgumentError("check_op: reference: it takes the tensors of no backend\n  " + "\n  ".join(reasons))


def _name(fn: Callable[..., Any]) -> str:
    qualified = getattr(fn, "__qualname__", "")  # of an op, whose `__name__` is that of `multiop.ops`
    return qualified if qualified.startswith("op_") else getattr(fn, "__name__", repr(fn))


def _path(fn: Callable[..., Any]) -> str:
    """Return how a program names `fn`: with its module, if that is public and has a package."""
    module, name = getattr(fn, "__module__", None) or "", getattr(fn, "__qualname__", None) or ""
    public = "." in module and name.isidentifier() and not any(part.startswith("_") for part in module.split("."))
    return f"{module}.{name}" if public else _name(fn)


_WIDE = ("float64", "complex128")
_DOUBLE = (np.dtype(np.float64), np.dtype(np.complex128))
