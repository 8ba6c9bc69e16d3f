"""Exceptions of a rule that was traced before anybody asked for a gradient: they are raised when somebody does."""

from __future__ import annotations

import os
import sys
import traceback

from multiop import _registry


def without_frames(error: Exception, while_tracing: str) -> Exception:
    """Return an exception of a rule without its frames, which hold tensors of a trace, and with a note of their line.

    Args:
        error: The exception.
        while_tracing: The framework that traced the rule, as a sentence has it.
    """
    where: list[tuple[str, int | None]] = [
        (frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)
    ]
    theirs = [place for place in where if not place[0].startswith(_folders())]
    file, line = (theirs or where)[-1]
    found = again(error)
    found.add_note(f"raised by a gradient function while {while_tracing} traced it, at {file}:{line}")
    return found


def again(error: Exception) -> Exception:
    """Return an exception to raise in the place of `error`, which stays without frames."""
    found = type(error).__new__(type(error), *error.args)
    found.__dict__.update(error.__dict__)
    if notes := error.__dict__.get("__notes__"):
        found.__notes__ = list(notes)
    return found


def _folders() -> tuple[str, ...]:
    frameworks = [getattr(sys.modules.get(name), "__file__", None) for _, name, _ in _registry.BUILT_IN.values()]
    return tuple(os.path.dirname(file) + os.sep for file in [__file__, *frameworks] if file)
