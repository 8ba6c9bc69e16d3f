"""The tier and the backends that the command-line options select."""

from __future__ import annotations

import pytest

TIERS = ("quick", "default", "full")  # each includes the ones before it
IMPLIED = {  # dtype -> the dtype that covers it; derivatives are tested in float64 anyway
    "float16": "bfloat16",
    "float64": "float32",
    "int8": "int32",
    "uint8": "int32",
    "int64": "int32",
    "complex128": "complex64",
}


def asked_tier(config: pytest.Config) -> str:
    """Return the name of the tier that runs."""
    return config.getoption("multiop_tier") or "full"


_ASKED = pytest.StashKey[list[str]]()


def asked_backends(config: pytest.Config) -> list[str]:
    """Return the names of the backends to test."""
    if _ASKED not in config.stash:  # to look for plugins takes milliseconds
        config.stash[_ASKED] = _asked_backends(config)
    return config.stash[_ASKED].copy()


def _asked_backends(config: pytest.Config) -> list[str]:
    import multiop

    from ._shared_process import torch_first

    asked = config.getoption("multiop_backends")
    names = [name.strip() for name in asked.split(",") if name.strip()] if asked else multiop.available_backends()
    torch_first(names)
    return names


def chosen_ops(config: pytest.Config) -> set[str] | None:
    """Return the requested ops; `None` for all."""
    from .cases import rows

    asked: str | None = config.getoption("multiop_ops")
    sliced: str | None = config.getoption("multiop_slice")
    if asked is None and sliced is None:
        return None
    names = {name.strip() for name in asked.split(",") if name.strip()} if asked is not None else set(rows())
    if unknown := sorted(names - set(rows())):
        raise pytest.UsageError(f"--multiop-ops: there is no op called {', '.join(unknown)}")
    if sliced is not None:
        k, slash, n = sliced.partition("/")
        if not (slash and k.isdigit() and n.isdigit() and 0 < int(k) <= int(n)):
            raise pytest.UsageError(f"--multiop-slice must be K/N with 1 <= K <= N; got {sliced!r}")
        names &= set(list(rows())[int(k) - 1 :: int(n)])
    return names
