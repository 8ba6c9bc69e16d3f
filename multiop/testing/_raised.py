"""How an error that a user's function raises is told: in a few lines, with the place in the user's own code."""

from __future__ import annotations

import os

from multiop import errors


class UsageError(errors.MultiopError):
    """The request cannot be checked; the message says why, and needs no traceback."""


def describe_error(error: BaseException) -> str:
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
