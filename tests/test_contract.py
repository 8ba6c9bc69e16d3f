"""The contract of a backend: the built-in ones fulfil it, and one with gaps is refused with all of them."""

from __future__ import annotations

import importlib
import inspect
import re
import types
from pathlib import Path

import pytest

from multiop import errors
from multiop._loading import contract, registry
from multiop._loading.contract import Backend, Optional, gaps

pytestmark = pytest.mark.tier("quick")

BACKEND = re.compile(r"(?:\b(?:active|ready)\(\)|\b_?backend)\.([A-Za-z]\w*)")
TAPE = re.compile(r"(?:\b_tape|\brecorded)\.(\w+)")


def copy_of(module):
    copied = types.ModuleType("planted")
    vars(copied).update({name: member for name, member in vars(module).items() if not name.startswith("__")})
    return copied


@pytest.fixture
def module(backend):
    return importlib.import_module(f"multiop.backends.{backend}")


def test_the_backend_fulfils_the_contract(module):
    assert gaps(module) == []


def mistaken(module):
    """Return the helpers of a backend's ops that have the name of a member of the contract."""
    ops = vars(importlib.import_module(f"{module.__name__}.ops"))
    meant = [vars(importlib.import_module(f"{module.__name__}.{file}")) for file in ("conversion", "devices")]
    members = {*contract._members(Backend), *contract._members(Optional)} - {op for op in ops if op.startswith("op_")}
    return {name for name in members & ops.keys() if all(ops[name] is not file.get(name) for file in meant)}


def test_no_helper_of_ops_is_taken_for_a_member_of_the_contract(module, monkeypatch):
    assert mistaken(module) == set()
    monkeypatch.setattr(importlib.import_module(f"{module.__name__}.ops"), "composite", abs, raising=False)
    assert mistaken(module) == {"composite"}


def test_every_gap_is_told_at_once(module, monkeypatch):
    planted = copy_of(module)
    del planted.op_erf, planted.version
    planted.op_add = lambda x1: x1
    planted.vjp = None
    assert gaps(planted) == [
        "op_add(x1) must take 2 arguments by position",
        "op_erf is missing",
        "version is missing",
        "vjp is not a function",
    ]
    point = types.SimpleNamespace(value="planted", load=lambda: planted)
    monkeypatch.setattr(registry, "plugins", lambda: {"planted": point})
    with pytest.raises(
        errors.BackendError, match=r"'planted' .*op_erf is missing; version is missing; vjp is not a function"
    ):
        registry.load("planted")


def test_what_is_optional_is_documented_for_who_writes_a_backend(module):
    assert len(contract._members(Optional)) <= 17
    for name in contract._members(Optional):
        assert name not in contract._members(Backend)
    assert all(
        inspect.getdoc(member)
        for protocol in (Backend, Optional, contract.Compiler, contract.RandomParts)
        for name, member in vars(protocol).items()
        if inspect.isfunction(member) and name[0] != "_"
    )


def test_what_is_read_of_a_backend_and_its_tape_is_in_the_contract():
    package = Path(contract.__file__).parent.parent
    files = [file for folder in ("frontends", "autodiff", "testing") for file in (package / folder).rglob("*.py")]
    read = {name for file in files for name in BACKEND.findall(file.read_text(encoding="utf-8"))}
    assert {"convert", "op_add", "vjp", "Tape"} <= read
    assert read <= {*contract._members(Backend), *contract._members(Optional)}
    read = set(TAPE.findall((package / "autodiff" / "tape.py").read_text(encoding="utf-8")))
    assert {"watch", "gradient"} <= read <= set(vars(contract.Tape))
