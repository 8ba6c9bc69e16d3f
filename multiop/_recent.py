"""A mapping that keeps what was used last, so that a cache of compiled programs does not grow without bound."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

MOST = 256  # programs of one compiled function


class Recent:
    """At most `most` entries: the one that was not used for longest goes first. Threads may share it."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.entries: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        """Return the entry of `key`, or `None`."""
        found = self.entries.get(key)
        if found is not None:
            with contextlib.suppress(KeyError):  # another thread has just dropped it
                self.entries.move_to_end(key)
        return found

    def put(self, key: Hashable, entry: Any) -> None:
        """Keep `entry`."""
        self.entries[key] = entry
        if len(self.entries) > self.most:
            with contextlib.suppress(KeyError):  # other threads have dropped the rest
                self.entries.popitem(last=False)
