"""The gradient tape, if JAX's private parts are known."""

from __future__ import annotations

from .. import _versions


def Tape(persistent, watch_accessed_variables):  # noqa: N802
    if not _versions.are_parts_known():
        raise _versions.unknown("GradientTape on JAX")
    from ._tape import Tape

    return Tape(persistent, watch_accessed_variables)
