"""What an editor shows, by the language server jedi: names after a dot, and a name's signature and first line."""

from __future__ import annotations

import inspect

import pytest

import multiop
from multiop import ops, porting, random
from multiop.porting import Comparison, Port

jedi = pytest.importorskip("jedi")

pytestmark = pytest.mark.tier("full")  # jedi reads the whole package: ten seconds

COMPARED = "from multiop import porting\nreport = porting.compare(model, port, [x])\n"
TRACED = "from multiop import porting\nport = porting.trace(model, x)\n"
# what stands before the dot, the object that it is, and one of its functions
PLACES = {
    "ops": ("from multiop import ops\nops.", ops, "softmax"),
    "multiop": ("import multiop\nmultiop.", multiop, "op_custom_gradient"),
    "random": ("import multiop\nmultiop.random.", random, "normal"),
    "a report": (f"{COMPARED}report.", Comparison, "to_html"),
    "a port": (f"{TRACED}port.", Port, "with_weights"),
}


@pytest.mark.parametrize("place", PLACES)
def test_completion_and_hover(place):
    code, owner, name = PLACES[place]
    offered = {entry.name for entry in jedi.Script(code).complete()}
    assert {public for public in dir(owner) if public[0] != "_"} <= offered
    (shown,) = jedi.Script(code + name).help()
    function = getattr(owner, name)
    (signature,) = shown.get_signatures()
    parameters = [p for p in inspect.signature(function).parameters if p != "self"]
    assert [parameter.name for parameter in signature.params] == parameters
    assert shown.docstring(raw=True).splitlines()[0] == inspect.getdoc(function).splitlines()[0]


def test_every_op_shows_its_signature_and_first_line():
    entries = {entry.name: entry for entry in jedi.Script("from multiop import ops\nops.").complete()}
    for name in ("add", "sum", "conv", "custom_gradient", "while_loop"):
        assert entries[name].get_signatures(), name
        assert entries[name].docstring(raw=True).startswith(inspect.getdoc(getattr(ops, name)).splitlines()[0])


def test_help_begins_with_what_multiop_is_and_where_to_look():
    text = inspect.getdoc(multiop)
    assert text.startswith("Write an operation and its gradient once")
    for line in text.split("Where to look")[1].splitlines():
        for name in line.partition(":")[0].split("`")[1::2] if line[:2] == "- " else []:
            owner = multiop
            for part in name.removeprefix("multiop.").split("."):
                owner = porting if part == "porting" else getattr(owner, part)
            assert inspect.getdoc(owner), name
