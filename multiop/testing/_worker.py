"""The process in which `multiop check` runs a user's functions on one backend.

It reads lines of JSON, a request and then one task after another, and writes one line of JSON per event; output of the
user's code goes to stderr.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable
from typing import IO, Any

import numpy as np

import multiop
from multiop import errors, extend, tree

from . import _checks
from ._case import Call
from ._discovery import HOW, Found, functions, load
from ._problem import Problem
from ._raised import UsageError, describe_error
from ._tolerances import Mismatch

Array = np.ndarray[Any, Any]


def main() -> None:
    """Serve one request and its tasks."""
    events, tasks = os.fdopen(os.dup(1), "w", encoding="utf-8"), os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(2, 1)  # print() in the user's code and in the frameworks must not mix with the events
    with open(os.devnull, encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 0)  # nor input() read the tasks

    def send(**event: Any) -> None:
        events.write(json.dumps(event) + "\n")
        events.flush()

    request = json.loads(tasks.readline())
    try:
        with multiop.use_backend(request["backend"]):
            send(event="start", version=extend.active().version)
            _serve(request, tasks, send)
    except errors.BackendError as error:
        send(event="failed", message=str(error))
    send(event="end")


def _serve(request: dict[str, Any], tasks: IO[str], send: Callable[..., None]) -> None:
    """List the functions of the targets, then measure those that are asked for."""
    found: dict[tuple[str, str], Found] = {}
    for target, name in request["targets"]:
        found |= {(target, one.name): one for one in _list_functions(target, name, send)}
    send(event="listed")
    for line in tasks:
        task = json.loads(line)
        key = task["target"], task["name"]
        if key not in found:  # another process listed it
            try:
                (found[key],) = functions(load(task["target"]), task["name"])[0]
            except BaseException as error:
                send(event="running")
                send(event="measured", property="value", found=_error_result(error))
                send(event="finished")
                continue
        send(event="running")
        _measure(found[key], found[key].calls[task["case"]], request, send)
        send(event="finished")


def _list_functions(target: str, name: str | None, send: Callable[..., None]) -> list[Found]:
    """Import a target, and tell its functions and their inputs."""
    send(event="importing", target=target)
    try:
        found, left_out, unmarked = functions(load(target), name)
    except UsageError as error:
        send(event="usage", target=target, message=str(error))
        return []
    except BaseException as error:  # SystemExit, and anything else that a file may raise
        send(event="import", target=target, message=describe_error(error))
        return []
    if not found:
        reason = (
            f"no inputs can be drawn for {', '.join(left_out)}; {HOW}" if left_out else "it defines no public function"
        )
        send(event="empty", target=target, message=reason)
    elif left_out or unmarked:
        send(event="left out", target=target, names=left_out, unmarked=unmarked)
    for one in found:
        for n, call in enumerate(one.calls):
            inputs, heading = _text(call.__repr__), _text(call.abridged)
            shown = {"inputs": inputs, "heading": heading, "custom": one.custom, "differs": one.differs}
            send(event="task", target=target, name=one.name, case=n, **shown)
    return found


def _text(write: Callable[[], str]) -> str:
    try:
        return write()
    except Exception as error:
        return f"({type(error).__name__} in repr)"


def _measure(found: Found, call: Call, request: dict[str, Any], send: Callable[..., None]) -> None:
    """Measure every property of one function at one input: results to compare, or the outcome of a check.

    The fastest come first: compiling takes most of the time, except on JAX, where it makes what follows faster.
    """
    measured: dict[str, Any] = {}

    def tell(name: str, found: dict[str, Any]) -> None:
        measured[name] = found
        send(event="measured", property=name, found=found)

    def attempt(name: str, measure: Callable[[], dict[str, Any]]) -> bool:
        send(event="measuring", property=name)
        try:
            tell(name, measure())
        except Mismatch as error:
            tell(name, {"failed": str(error), "error": error.error, "allowed": error.allowed})
        except BaseException as error:
            tell(name, _error_result(error))
        return "raised" not in measured[name]

    def measure_compiled(measure: Callable[[Problem], dict[str, Any]]) -> dict[str, Any]:
        """Measure a function that was already compiled: as one program, or step by step if that raises."""
        if whole is not None:
            try:
                return measure(whole)
            except Mismatch:
                raise
            except Exception:
                pass  # an error that is not about compiling is raised again below
        return measure(problem)

    options = {"dtype": request["dtype"], "seed": request["seed"], "name": found.name}
    try:
        problem = Problem(found.function, call, **options)
    except BaseException as error:
        tell("value", _error_result(error))  # the inputs cannot be drawn
        return
    whole = None
    if not attempt("value", lambda: _value(problem)):
        return
    differentiable = problem.is_differentiable and attempt("gradient", lambda: _gradient(problem))
    gradient = "arrays" in measured.get("gradient", {})  # a gradient that raised was already reported
    step_by_step = multiop.backend() == "jax"  # and compiles each step by itself, which takes longer than all at once
    if step_by_step:
        attempt("compiled", lambda: {"error": _checks.check_compiled(problem, gradient=gradient)})
        if measured["compiled"].keys() == {"error"}:
            whole = Problem(found.function, call, **options, whole=True)
    if differentiable:
        attempt(
            "forward mode", lambda: measure_compiled(lambda problem: {"error": _checks.check_forward_mode(problem)})
        )
        attempt("second order", lambda: measure_compiled(lambda problem: _results(problem, problem.second_tensors)))
    if problem.arrays:
        attempt(
            "vmap", lambda: measure_compiled(lambda problem: {"error": _checks.check_vmap(problem, gradient=gradient)})
        )
    if differentiable and request["dtype"] == "float64":
        second = "raised" not in measured["second order"]
        attempt("finite differences", lambda: measure_compiled(lambda problem: _finite_differences(problem, second)))
    if not step_by_step:
        send(event="measuring", property="compiled")
        _start_compiler()
        send(event="running")  # the limit does not count until here
        attempt("compiled", lambda: {"error": _checks.check_compiled(problem, gradient=gradient)})


@functools.cache
def _start_compiler() -> None:
    """Compile something small once: a compiler's start takes longer than most functions."""
    with contextlib.suppress(Exception):  # a compiler that does not start is an error of what it should compile
        multiop.jit(lambda x: x + 1)(multiop.op_ones((2,)))


def _error_result(error: BaseException) -> dict[str, Any]:
    known = isinstance(error, (errors.UnsupportedError, errors.NonLinearRuleError))
    found = {"raised": type(error).__name__, "message": describe_error(error), "refused": known}
    reason = getattr(extend.active(), "reason", lambda error: None)
    causes = (cause for cause in (error, error.__cause__) if isinstance(cause, Exception))
    return found | {"reads": any(reason(cause) == "unknown value" for cause in causes)}


def _results(problem: Problem, fun: Callable[..., list[Any]]) -> dict[str, Any]:
    return {
        "arrays": [to_json(x) for x in problem.run(fun)],
        "scales": [to_json(x) for x in _checks.rounding_scales(problem, fun)],
    }


def _value(problem: Problem) -> dict[str, Any]:
    found = _results(problem, problem.outputs) | {"structure": _structure(problem)}
    found["vacuous"] = _checks.why_value_is_vacuous(problem)
    if not problem.inexact:
        found["undifferentiated"] = "no input is a float, so nothing is differentiated"
    elif not problem.differentiable_value:
        found["undifferentiated"] = "no result is a float, so nothing is differentiated"
    return found


def _gradient(problem: Problem) -> dict[str, Any]:
    found = _results(problem, problem.gradient_tensors)
    return found | {"vacuous": _checks.why_gradient_is_vacuous(problem.gradient)}


def _structure(problem: Problem) -> str:
    result = problem.apply(problem.f, [multiop.op_convert_to_tensor(x) for x in problem.arrays])
    if not problem.value:
        raise UsageError("the function returns no tensor, so there is nothing to compare")
    return f"{tree.flatten(result)[1]} {[leaf for leaf in tree.leaves(result) if isinstance(leaf, str)]}"


def _finite_differences(problem: Problem, second: bool) -> dict[str, Any]:
    """Compare with numerical derivatives, which a rule may differ from on purpose: the report judges."""
    found: dict[str, Any] = {}
    for order, check in [("first", _checks.check_gradient), ("second", _checks.check_second_order)][: 1 + second]:
        try:
            found[order] = {"same": True, "error": check(problem)}
        except _checks.NoEstimate:
            found[order] = {"same": None}
        except Mismatch as error:
            found[order] = {"same": False, "error": error.error, "allowed": error.allowed, "message": str(error)}
    return found


def to_json(x: Array) -> dict[str, Any]:
    """Convert an array to JSON."""
    parts = np.stack([x.real, x.imag]) if x.dtype.kind == "c" else x
    wide = parts if parts.dtype.kind in "bui" else parts.astype(np.float64)
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": wide.ravel().tolist()}


def from_json(stored: dict[str, Any]) -> Array:
    """Convert the output of `to_json` back to an array."""
    dtype, shape = extend.to_numpy_dtype(stored["dtype"]), tuple(stored["shape"])
    if dtype.kind == "c":
        real, imag = np.asarray(stored["data"], np.float64).reshape(2, *shape)
        return (real + 1j * imag).astype(dtype)
    restored: Array = np.asarray(stored["data"], dtype).reshape(shape)
    return restored
