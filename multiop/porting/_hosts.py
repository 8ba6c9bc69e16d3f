"""What a model calls in Python while it is traced: functions that are replaced for that time, and draws of numbers."""

from __future__ import annotations

import contextlib
import pickle
import random
import re
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from multiop import errors
from multiop.porting import _graph

_REPLACING = threading.RLock()
_LIBRARIES = re.compile(
    r"-packages[/\\](torch|jax|flax|equinox|optax|numpy|tensorflow|keras)[/\\]|[/\\]multiop[/\\]porting[/\\]|<"
)


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
    return not _LIBRARIES.search(place)


def place_of(error: Exception) -> str:
    """Return where in the user's source an error was met, behind `, at`; the empty text if that is not known."""
    places = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    said = "\n".join([str(error), *getattr(error, "__notes__", [])])
    places += [f"{file}:{line}" for file, line in re.findall(r'File "([^"]+)", line (\d+)', said)]
    own = list(filter(is_own, places))
    return f", at {own[-1]}" if own else ""


def _states() -> dict[str, Any]:
    return {"random": random.getstate(), "numpy.random": pickle.dumps(np.random.get_state())}  # noqa: NPY002
