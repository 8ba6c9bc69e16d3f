"""The process in which `multiop check` runs a user's functions on one backend.

It reads one request, a line of JSON, and writes one line of JSON per event; output of the user's code goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import multiop
from multiop import _tree, errors

from . import _checks
from ._case import Call
from ._discovery import HOW, Found, UsageError, functions, load
from ._problem import Problem
from ._tolerances import Mismatch

Array = np.ndarray[Any, Any]


def main() -> None:
    """Serve one request."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # print() in the user's code and in the frameworks must not mix with the events

    def send(**event: Any) -> None:
        events.write(json.dumps(event) + "\n")
        events.flush()

    request = json.loads(sys.stdin.readline())
    try:
        with multiop.use_backend(request["backend"]):
            send(event="start", version=multiop._registry.active().version)
            for target, name in request["targets"]:
                if [target] not in request["skip"]:
                    _run_target(target, name, request, send)
    except errors.BackendError as error:
        send(event="failed", message=str(error))
    send(event="end")


def _run_target(target: str, name: str | None, request: dict[str, Any], send: Callable[..., None]) -> None:
    send(event="importing", target=target)
    try:
        found, left_out = functions(load(target), name)
    except UsageError as error:
        send(event="usage", target=target, message=str(error))
        return
    except BaseException as error:  # SystemExit, and anything else that a file may raise
        send(event="import", target=target, message=_told(error))
        return
    if not found:
        reason = (
            f"no inputs can be drawn for {', '.join(left_out)}; {HOW}" if left_out else "it defines no public function"
        )
        send(event="empty", target=target, message=reason)
    elif left_out:
        send(event="left out", target=target, names=left_out)
    for one in found:
        for n, call in enumerate(one.calls):
            if [target, one.name, n] not in request["skip"]:
                case = {"case": n, "inputs": _inputs(call), "custom": one.custom}
                send(event="running", target=target, name=one.name, **case)
                _measure(one, call, request, send)
                send(event="finished")


def _inputs(call: Call) -> str:
    try:
        return repr(call)
    except Exception as error:
        return f"({type(error).__name__} in repr)"


def _measure(found: Found, call: Call, request: dict[str, Any], send: Callable[..., None]) -> None:
    """Measure every property of one function at one input: results to compare, or the outcome of a check."""
    measured: dict[str, Any] = {}

    def tell(name: str, found: dict[str, Any]) -> None:
        measured[name] = found
        send(event="measured", property=name, found=found)

    def attempt(name: str, measure: Callable[[], dict[str, Any]]) -> bool:
        send(event="measuring", property=name)
        try:
            tell(name, measure())
        except Mismatch as error:
            tell(name, {"failed": str(error), "error": error.error})
        except BaseException as error:
            tell(name, _raised(error))
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
        tell("value", _raised(error))  # the inputs cannot be drawn
        return
    whole = None
    if not attempt("value", lambda: _results(problem, problem.outputs) | {"structure": _structure(problem)}):
        return
    differentiable = problem.is_differentiable and attempt(
        "gradient", lambda: _results(problem, problem.gradient_tensors)
    )
    gradient = "arrays" in measured.get("gradient", {})  # a gradient that raised was already reported
    attempt("compiled", lambda: {"error": _checks.check_compiled(problem, gradient=gradient)})
    if multiop.backend() == "jax" and measured["compiled"].keys() == {"error"}:
        # JAX compiles each step separately, which takes longer
        whole = Problem(found.function, call, **options, whole=True)
    if differentiable:
        attempt("second order", lambda: measure_compiled(lambda problem: _results(problem, problem.second_tensors)))
        if request["dtype"] == "float64":
            second = "raised" not in measured["second order"]
            attempt(
                "finite differences", lambda: measure_compiled(lambda problem: _finite_differences(problem, second))
            )
        attempt(
            "forward mode", lambda: measure_compiled(lambda problem: {"error": _checks.check_forward_mode(problem)})
        )
    if problem.arrays:
        attempt(
            "vmap", lambda: measure_compiled(lambda problem: {"error": _checks.check_vmap(problem, gradient=gradient)})
        )


def _raised(error: BaseException) -> dict[str, Any]:
    known = isinstance(error, (errors.UnsupportedError, errors.NonLinearRuleError))
    return {"raised": type(error).__name__, "message": _told(error), "refused": known}


def _results(problem: Problem, fun: Callable[..., list[Any]]) -> dict[str, Any]:
    return {
        "arrays": [to_json(x) for x in problem.run(fun)],
        "scales": [to_json(x) for x in _checks.rounding_scales(problem, fun)],
    }


def _structure(problem: Problem) -> str:
    result = problem.apply(problem.f, [multiop.op_convert_to_tensor(x) for x in problem.arrays])
    if not problem.value:
        raise UsageError("the function returns no tensor, so there is nothing to compare")
    return f"{_tree.structure(result)} {[leaf for leaf in _tree.leaves(result) if isinstance(leaf, str)]}"


def _finite_differences(problem: Problem, second: bool) -> dict[str, Any]:
    """Compare with numerical derivatives; a rule may differ from them on purpose, so a difference is not a failure."""
    found: dict[str, Any] = {}
    for order, check in [("first", _checks.check_gradient), ("second", _checks.check_second_order)][: 1 + second]:
        try:
            found[order] = {"same": True, "error": check(problem)}
        except _checks.NoEstimate:
            found[order] = {"same": None}
        except Mismatch as error:
            found[order] = {"same": False, "error": error.error}
    return found


def to_json(x: Array) -> dict[str, Any]:
    """Convert an array to JSON."""
    parts = np.stack([x.real, x.imag]) if x.dtype.kind == "c" else x
    wide = parts if parts.dtype.kind in "bui" else parts.astype(np.float64)
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": wide.ravel().tolist()}


def from_json(stored: dict[str, Any]) -> Array:
    """Convert the output of `to_json` back to an array."""
    from multiop._dtypes import to_numpy

    dtype, shape = to_numpy(stored["dtype"]), tuple(stored["shape"])
    if dtype.kind == "c":
        real, imag = np.asarray(stored["data"], np.float64).reshape(2, *shape)
        return (real + 1j * imag).astype(dtype)
    restored: Array = np.asarray(stored["data"], dtype).reshape(shape)
    return restored


def _told(error: BaseException) -> str:
    """Describe an error in a few lines: what it is, and where in the user's code it was raised."""
    try:
        lines = [line for line in str(error).strip().split("\n") if line.strip()]
    except Exception as unreadable:
        lines = [f"({type(unreadable).__name__} in its message)"]
    if lines and lines[0] == "in user code:":  # TensorFlow puts the traceback first
        lines = lines[-1:]
    lines = [line if len(line) <= 300 else f"{line[:297]}..." for line in lines[:4]]
    name = "" if isinstance(error, UsageError) else f"{type(error).__name__}: "
    return name + "\n".join(lines or ["(no message)"]) + _place(error)


def _place(error: BaseException) -> str:
    here, traceback = os.path.dirname(os.path.dirname(__file__)), error.__traceback__
    place = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        theirs = file.startswith((here, "<", os.path.dirname(os.__file__))) or "__autograph_generated" in file
        if not theirs and "site-packages" not in file:
            place = f"\n  at {os.path.basename(file)}, line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
