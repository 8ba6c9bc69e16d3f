"""Which frames of an error a user sees: their own, and the first of multiop's that each of those called."""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType

from multiop._loading import registry, settings, suggestions
from multiop._rules.late_errors import NOTE
from multiop.errors import MultiopError

_BETWEEN = frozenset({"contextlib", "functools", "jax", "jaxlib", "numpy", "tensorflow", "torch"})

_FOLDER = os.path.dirname(os.path.dirname(__file__)) + os.sep


def shorten(error: BaseException, depth: int = 1) -> None:
    """Leave the frames between the user's call and the user's function out of the traceback of `error`.

    It is called where an exception leaves multiop, in an `except` before a bare `raise`. The frames stay while multiop
    itself is further out, since it may look at them; in compiled code; and where the setting asks for all of them.

    Args:
        error: The exception.
        depth: How many functions of multiop it leaves, from the caller on.
    """
    if registry.is_compiling() or settings.flag("full_tracebacks") or _has_multiop(sys._getframe(depth).f_back):
        return
    suggestions.explain_keyword(error)
    seen: set[int] = set()  # a chain may be a circle
    chain: list[BaseException | None] = [error]
    while chain:
        link = chain.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            if is_late := any(note.startswith(NOTE) for note in getattr(link, "__notes__", ())):
                link.__cause__, link.__suppress_context__ = None, True  # where JAX traced the rule, in multiop
            chain += link.__cause__, link.__context__
            _drop(link, is_late, is_explained=link is not error and isinstance(error, MultiopError))


def _has_multiop(frame: FrameType | None) -> bool:
    """Say whether a function of multiop is among `frame` and those further out."""
    while frame is not None:
        if _package(frame) == "multiop":
            return True
        frame = frame.f_back
    return False


def _drop(error: BaseException, is_late: bool, is_explained: bool) -> None:
    """Drop, of each run of frames that are not the user's and begin with multiop, all but the first.

    The last run says where the error was raised, so it stays as it is, unless multiop means the error, or a note says;
    of an error that multiop explains, it is the line that raised.
    """
    kept: list[TracebackType] = []
    run: list[TracebackType] = []
    trace, package = error.__traceback__, ""
    while trace is not None:
        package = _package(trace.tb_frame, package)
        if package == "multiop" or package in _BETWEEN:
            run.append(trace)
        else:
            kept += [*_shown(run), trace]
            run = []
        trace = trace.tb_next
    if run:
        is_place = not run[-1].tb_frame.f_globals  # no frame that ran: it shows where JAX met a custom gradient
        is_known = is_late or is_place or isinstance(error, MultiopError)
        kept += _shown(run) if is_known else run[-1:] if is_explained else run
    for i, trace in enumerate(kept):
        trace.tb_next = None if i + 1 == len(kept) else kept[i + 1]
    error.__traceback__ = kept[0] if kept else None


def _shown(run: list[TracebackType]) -> list[TracebackType]:
    return run[:1] if run and _package(run[0].tb_frame) == "multiop" else run


def _package(frame: FrameType, caller: str = "") -> str:
    """Return the package of a frame; code without a module, which PyTorch makes while it traces, is its caller's."""
    name = frame.f_globals.get("__name__")
    if not frame.f_globals and frame.f_code.co_filename.startswith(_FOLDER):  # as JAX notes the frames of a place
        return "multiop"
    return name.partition(".")[0] if isinstance(name, str) else caller if caller in _BETWEEN else ""
