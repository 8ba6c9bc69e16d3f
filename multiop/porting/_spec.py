"""What is known of a tensor before it has values."""

from __future__ import annotations

from typing import NamedTuple


class Spec(NamedTuple):
    """The shape and the dtype, by name, of a tensor; an unknown size is `None`."""

    shape: tuple[int | None, ...]
    dtype: str
