"""A mapping that keeps the most recently used entries, so that a cache of compiled programs is bounded."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

MOST = 256  # programs of one compiled function


class Recent:
    """At most `most` entries: the least recently used one is dropped first. Threads may share it."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.entries: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        """Return the entry of `key`, or `None`."""
        entry = self.entries.get(key)
        if entry is not None:
            try:  # noqa: SIM105  half the time of contextlib.suppress
                self.entries.move_to_end(key)
            except KeyError:  # another thread has just dropped it
                pass
        return entry

    def put(self, key: Hashable, entry: Any) -> None:
        """Keep `entry`."""
        self.entries[key] = entry
        if len(self.entries) > self.most:
            with contextlib.suppress(KeyError):  # other threads have dropped the rest
                self.entries.popitem(last=False)
