"""What a call costs in Python functions, in a process that never chose another backend."""

from __future__ import annotations

import sys

from multiop._loading import registry


def leave_alone(monkeypatch, name):
    """Let a backend be active as where no code has called `use_backend`, which tests do: it costs a call more."""
    monkeypatch.setattr(registry, "is_overridden", False)
    monkeypatch.setattr(registry, "_backend", registry.load(name))


def count_calls(call, *args, warm=2):
    """Return how many Python functions a call runs, itself among them, once it has run a few times."""
    for _ in range(warm):
        call(*args)
    found = 0

    def add(frame, event, argument):
        nonlocal found
        found += event == "call"

    sys.setprofile(add)
    try:
        call(*args)
    finally:
        sys.setprofile(None)
    return found
