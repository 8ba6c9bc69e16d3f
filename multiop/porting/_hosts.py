"""Numbers that a model draws from Python or NumPy: to a trace these are constants."""

from __future__ import annotations

import contextlib
import pickle
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from multiop import errors
from multiop.porting import _graph


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """Raise for a model that is called inside and draws such numbers.

    Raises:
        TranslationError: One of the two generators has moved.
    """
    before = _states()
    yield
    missing = {f"a draw from {name}": [""] for name, state in _states().items() if state != before[name]}
    if missing:
        raise errors.TranslationError(_graph.listed(missing))


def _states() -> dict[str, Any]:
    return {"random": random.getstate(), "numpy.random": pickle.dumps(np.random.get_state())}  # noqa: NPY002
