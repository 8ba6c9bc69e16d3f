"""Port a model from one framework to source that runs on three, and prove each layer of it."""

from __future__ import annotations

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
