"""Exceptions of a rule that was traced before a gradient was requested; they are raised when one is."""

from __future__ import annotations

import os
import sys

from multiop._loading import registry

NOTE = "raised by a gradient function while"  # begins the note of an error without frames, which says its line


def without_frames(error: Exception, while_tracing: str) -> Exception:
    """Return a rule's exception without its frames, which hold tensors of a trace, and with a note of the line.

    Args:
        error: The exception.
        while_tracing: The name of the framework that traced the rule, for the note.
    """
    places, step = [], error.__traceback__
    while step is not None:
        places.append((step.tb_frame.f_code.co_filename, step.tb_lineno))
        step = step.tb_next
    users = [place for place in places if not place[0].startswith(_folders())]
    file, line = (users or places)[-1]
    copy = again(error)
    copy.add_note(f"{NOTE} {while_tracing} traced it, at {file}:{line}")
    return copy


def again(error: Exception) -> Exception:
    """Return a copy of `error` to raise, so that `error` itself gets no frames."""
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    if notes := error.__dict__.get("__notes__"):
        copy.__notes__ = list(notes)
    return copy


def _folders() -> tuple[str, ...]:
    frameworks = [getattr(sys.modules.get(name), "__file__", None) for _, name, _ in registry.BUILT_IN.values()]
    return tuple(os.path.dirname(file) + os.sep for file in [__file__, *frameworks] if file)
