"""What a model calls in Python while it is traced: functions that are replaced for that time, and draws of numbers."""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import pickle
import random
import re
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from multiop import errors
from multiop.porting import _graph

_REPLACING = threading.RLock()
_LIBRARIES = re.compile(r"-packages[/\\](torch|jax|flax|equinox|optax|numpy|tensorflow|keras)[/\\]|<(?!doctest|i?py)")
_PACKAGE = str(pathlib.Path(__file__).parent).removesuffix("porting")  # with the slash: a neighbour is not in it


@contextlib.contextmanager
def replacing() -> Iterator[Callable[[Any, str, Any], None]]:
    """Give a function that replaces an attribute of a module or class until the block ends.

    What is replaced belongs to the whole process, so one thread at a time may do so: two at once would not put back
    what was there.
    """
    with _REPLACING, contextlib.ExitStack() as undo:

        def replace(owner: Any, name: str, new: Any) -> None:
            if name in vars(owner):
                undo.callback(setattr, owner, name, vars(owner)[name])
            else:
                undo.callback(delattr, owner, name)
            setattr(owner, name, new)

        yield replace


@contextlib.contextmanager
def refuse_draws() -> Iterator[None]:
    """Raise for a model that is called inside and draws such numbers.

    Raises:
        TranslationError: One of the two generators has moved.
    """
    before = _states()
    yield
    missing = {f"a draw from {name}": [""] for name, state in _states().items() if state != before[name]}
    if missing:
        raise errors.TranslationError(_graph.list_missing(missing))


def is_own(place: str) -> bool:
    """Say whether a file is the user's, or that of a library of models."""
    return not place.startswith(_PACKAGE) and not _LIBRARIES.search(place)


def own_places(frames: Iterable[tuple[Any, Any]]) -> str:
    """Return a line for each place in a model's source where an operation is called, from the innermost outwards."""
    inside = itertools.takewhile(lambda frame: is_own(frame[0]) or not frame[0].endswith("reader.py"), frames)
    return "\n".join(filter(is_own, (f"{file}:{line}" for file, line in inside)))


def place_of(error: Exception) -> str:
    """Return where in the user's source an error was met, behind `, at`; the empty text if that is not known."""
    places = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    said = "\n".join([str(error), *getattr(error, "__notes__", [])])
    places += [f"{file}:{line}" for file, line in re.findall(r'File "([^"]+)", line (\d+)', said)]
    own = list(filter(is_own, places))
    return f", at {own[-1]}" if own else ""


def cannot_trace(framework: str, name: str, error: Exception, opened: Sequence[str] = (), line: int = 0) -> str:
    """Return the words of an error that a trace met, of which one line says the reason, and where that was."""
    name += f" with the open size{'s' * (len(opened) > 1)} {', '.join(opened)}" if opened else ""
    reason = (str(error).strip().splitlines() or [""])[line].strip()
    return f"{framework} cannot trace {name}{place_of(error)}: {type(error).__name__}: {reason}"


def _states() -> dict[str, Any]:
    return {"random": random.getstate(), "numpy.random": pickle.dumps(np.random.get_state())}  # noqa: NPY002
