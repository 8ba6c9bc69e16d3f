"""What a notebook shows of the reports of porting: the verdict in words, and every number in a table."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

from multiop import ops, porting
from multiop.porting import Comparison, Port, Proof, Training, Weights, tap

pytestmark = pytest.mark.tier("quick")


class Read(HTMLParser):
    """The paragraphs and the rows of each table, in order; what is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.tables = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
        else:
            self.words.append(data)


def test_a_comparison_shows_what_differs_and_all_checks(multiop_backend):
    def net(scale, x):
        return tap("<last>", ops.tanh(tap("first", x * 2.0)) * scale)

    x = np.array([0.5, -0.25])
    found = porting.compare(lambda x: net(1.0, x), lambda x: net(1.5, x), [x], backends=[multiop_backend])
    assert isinstance(found, Comparison)
    shown = Read(found._repr_html_())
    assert shown.words == [found.verdict, "all checks"]
    differs, everything = shown.tables
    assert [row[1] for row in differs[1:]] == [check.layer for check in found.differences]
    assert "<last>" in {row[1] for row in differs[1:]}
    assert len(everything) == 1 + len(found.checks) > len(differs)
    first = Read(found.differences[0]._repr_html_())
    assert first.tables == [[everything[0], differs[1]]]
    assert first.words[0].startswith(f"{found.differences[0].quantity} of {found.differences[0].name}: differs")
    right = porting.compare(lambda x: net(1.0, x), lambda x: net(1.0, x), [x], backends=[multiop_backend])
    assert len(Read(right._repr_html_()).tables) == 1


@pytest.mark.parametrize(("value", "word"), [(1e-12, "agrees with"), (1e-3, "differs from")])
def test_a_proof_shows_its_numbers(value, word):
    proof = Proof("torch", value, 2e-12, 1e-9, compared=7)
    shown = Read(proof._repr_html_())
    assert shown.words == [f"the port {word} the original"]
    assert shown.tables == [
        [
            ["backend", "value", "gradient", "state", "allowed", "arrays compared"],
            ["torch", f"{value:.1e}", "2.0e-12", "0.0e+00", "1.0e-09", "7"],
        ]
    ]


def test_a_training_shows_the_losses():
    training = Training([(1.0, 1.0), (0.5, 0.5)], 1e-12, 1e-10, 1e-9)
    shown = Read(training._repr_html_())
    assert shown.words[0].startswith("2 steps agree")
    assert shown.tables == [[["step", "original", "port"], ["0", "1", "1"], ["1", "0.5", "0.5"]]]


def test_a_map_shows_what_is_unresolved_and_its_rows():
    source = Weights({"fc": {"weight": np.ones((4, 4)), "bias": np.ones(4)}}, framework="torch")
    found = porting.map_weights(source, {"fc": {"kernel": np.ones((4, 4)), "bias": np.ones(4)}})
    shown = Read(found._repr_html_())
    assert shown.words == ["1 weights mapped, 1 unresolved", "the map"]
    unresolved, rows = shown.tables
    assert unresolved == [["unresolved"], *[[line] for line in found.unresolved]]
    assert rows == [["target", "shape", "made of", "by"], ["fc.bias", "4", "fc.bias", "name"]]
    chosen = found.choose("fc.kernel", "fc.weight | transpose 1 0")
    assert len(Read(chosen._repr_html_()).tables) == 1


def test_a_port_shows_its_source():
    source = "def net(params, state, x):\n    return x if x.ndim < 3 else -x, state\n"
    shown = Read(Port("net", source, {}, {}, {"framework": "torch", "operations": 2})._repr_html_())
    assert shown.words[0].startswith("Port(net, ") and "".join(shown.words[1:]) == source
