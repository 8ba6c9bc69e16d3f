"""What an error of an op says: multiop's own names the op that the user called, a framework's becomes multiop's."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from multiop import errors
from multiop._loading import registry
from multiop._values import host
from multiop._values.args import describe


def explain(error: Exception, op: str, arguments: dict[str, Any], runs_user_code: bool = False) -> Exception:
    """Return the exception to raise for `error`, which was raised in `op`, called with `arguments`.

    multiop's own errors name the op that the user called, and its arguments; a framework's complaint about an argument
    becomes an `ArgumentError`, the same class on every backend; anything else (out of memory) is the framework's own
    and only gains a note.
    """
    call = f"{op}({', '.join(f'{name}={describe(value)}' for name, value in arguments.items())})"
    if not isinstance(error, errors.MultiopError):
        explained = _of_framework(error, op, arguments)
        if explained is None:
            if not runs_user_code:
                _note(error, f"in {call}")
            return error
        explained.__cause__ = error
        error = explained
    elif error.op is not None and runs_user_code:  # an op inside the user's function has named itself
        return error
    identities = {name: id(value) for name, value in arguments.items()}
    text = error.args[0] if error.args else ""
    if error.op is not None:
        text, within = error._explained
        text = _rename_arguments(text, within, identities)
    error.op, error._explained = op, (text, identities)
    error.args = (f"{op}: {text}\n  in {call}", *error.args[1:])
    return error


def _of_framework(error: Exception, op: str, arguments: dict[str, Any]) -> errors.MultiopError | None:
    """Return multiop's error for an error of the framework, or `None` if no argument is to blame."""
    backend = registry.active()
    first_line = getattr(backend, "first_line", lambda error: str(error).strip().split("\n")[0])
    reason = backend.reason(error) if hasattr(backend, "reason") else None
    if reason == "unsupported":
        return errors.UnsupportedError(first_line(error))
    if reason == "unknown value" and not _is_of_rule(error):
        advice = _ADVICE.get(op, "compute it outside, and give options as numbers of Python")
        return errors.ArgumentError(f"a value that it needs is not known in compiled or mapped code; {advice}")
    is_passed = isinstance(error, backend.passed_errors) or _is_of_rule(error)
    is_overflow = isinstance(error, OverflowError)
    if isinstance(error, backend.argument_errors) or is_overflow:
        beyond = _beyond(2**31 if is_overflow else 2**63, arguments)
        if not is_passed and (beyond or not is_overflow):
            return errors.ArgumentError(beyond or _misfit(op, arguments, error) or first_line(error))
    return None


def _beyond(most: int, arguments: dict[str, Any]) -> str | None:
    """Return the message for an int that is too large for the framework, of which some do not say which it is."""
    for name, value in arguments.items():
        if any(isinstance(n, int) and not -most <= n < most for n in host.flat([value])):
            return f"{name} is beyond what the framework can count to, got {describe(value)}"
    return None


_ADVICE = {  # where the size of the result depends on values
    "op_bincount": "use op_segment_sum with num_segments",
    "op_get_item": "use op_where instead of a mask",
    "op_nonzero": "use op_where with three arguments",
    "op_unique": "give size",
    "op_where": "give x1 and x2",
}
_OF_DEVICES = re.compile(r"(same|two|different|incompatible) devices?\b")  # TensorFlow names its device in any error
_OF_ANY_SHAPES = ("op_append", "op_intersect1d", "op_isin", "op_kron", "op_outer", "op_setdiff1d", "op_union1d")
_PRODUCTS = ("op_matmul", "op_dot", "op_inner", "op_vdot", "op_tensordot")


def _misfit(op: str, arguments: dict[str, Any], error: Exception) -> str | None:
    """Return the message for two operands whose shapes do not fit, since each framework words it differently."""
    if (
        op in _OF_ANY_SHAPES
        or not {"x1", "x2"} <= arguments.keys()
        or registry.is_compiling()
        or _OF_DEVICES.search(str(error))
    ):
        return None
    try:
        shapes = [tuple(map(int, np.shape(arguments[name]))) for name in ("x1", "x2")]
    except Exception:  # nested lists of unequal lengths, or a size that is unknown while tracing
        return None
    if op in _PRODUCTS:
        return f"the shapes {shapes[0]} and {shapes[1]} do not fit a product"
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return f"the shapes {shapes[0]} and {shapes[1]} do not broadcast"
    return None


def _rename_arguments(text: str, within: dict[str, int], arguments: dict[str, int]) -> str:
    """Return an inner op's message with the argument names of the op that the user called."""
    for name, identity in within.items():
        if arguments.get(name) == identity:
            continue
        others = [other for other, value in arguments.items() if value == identity]
        if len(others) == 1:
            text = re.sub(rf"(?<=')({name})(?=')|^({name})(?= (must|is|has|cannot|names) )", others[0], text)
    return text


def _note(error: Exception, note: str) -> None:
    """Leave a single note about a call: that of the op that the user called."""
    notes = getattr(error, "__notes__", [])
    notes[:] = [note for note in notes if not note.startswith("in op_")]
    error.add_note(note)


def _is_of_rule(error: Exception) -> bool:
    """Say whether a custom gradient's rule raised `error`; then no argument is to blame."""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name == "backward" and frame.f_globals.get("__name__") == "multiop.autodiff.custom_gradient":
            return True
        trace = trace.tb_next
    return False
