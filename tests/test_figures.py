"""The figures that say what the code weighs: their table is whole, and they are within their goals."""

from __future__ import annotations

import ast
import re
import statistics

import figures
import numpy as np
import pytest

from multiop import cli
from multiop._values.quadrature import OF_SQUARE_ROOT
from multiop.frontends import special
from multiop.testing import _tolerances

OPEN: set[str] = set()  # goals that are not reached yet; what is reached leaves this set


def test_figures_are_within_their_goals():
    assert figures.missed(figures.of_source(figures.ROOT)) == OPEN


def test_counts_on_pages_are_those_of_the_code(monkeypatch):
    """A sentence that counts what the tests have is no longer true when they have more."""
    text = {name: (figures.ROOT / name).read_text(encoding="utf-8") for name in COUNTED}
    pages = " ".join("".join(text[name] for name in COUNTED if name.endswith(".md")).split())
    most = ast.literal_eval(re.search(r"^MOST = (.*)$", text["tests/loaded/tables.py"], re.M)[1])
    whole = f"{sum(most.values())} rows ({most['jax']} programs of JAX, {most['torch']} samples of PyTorch's own tests"
    assert f"{whole}, {most['tensorflow']} of TensorFlow and Keras)" in pages
    rows = re.search(r'"--rows", "(\d+)"', text["tests/loaded/test_loaded.py"])[1]
    assert f"a sample of {rows} rows per framework" in pages
    monkeypatch.syspath_prepend(figures.ROOT / "tests" / "mutants")
    from _by_hand import faults_by_hand
    from _fault import FOLDERS

    drawn = eval(re.search(r"^DRAWN = (.*)$", text["tests/mutants/__main__.py"], re.M)[1], {"FOLDERS": FOLDERS})
    assert f"some {round(len(faults_by_hand()), -1)} written by hand" in pages
    assert f"and {sum(drawn.values())} drawn by a seed" in pages
    alarms = text["tests/testing/test_false_alarms.py"]
    functions, seeds = re.search(r"n_functions = (\d+)", alarms)[1], re.search(r"in range\((\d+) if", alarms)[1]
    assert f"{functions} correct functions at {seeds} seeds" in pages
    ported = re.search(r"<!-- models -->(.*)<!-- /models -->", text["benchmarks/ported.md"], re.S)[1]
    assert f"ports [{len(re.findall('^[|] ', ported, re.M)) - 1} models of" in pages  # a row is the header

    def read(name: str, pattern: str) -> str:
        return re.search(pattern, text[name])[1]

    tests, gallery = "tests/test_examples.py", "examples/gallery/{}.py"
    steps, same = read(tests, r"lenet\.train\(steps=(\d+)"), read(tests, r"rtol=0, atol=(.*)\)\n    assert set\(")
    assert f"over {steps} steps their loss curves agree to {same} in `float64`" in pages
    losses, slopes = (read(tests, rf"allowed = (\d+) \* unit \* {of}") for of in ("here", "np"))
    assert f"to {losses} units in the last place of the first loss, and their gradients to {slopes}," in pages
    assert read(gallery.format("physics"), r"steps: int = (\d+)") + " steps hold as many tensors" in pages
    side = int(read(gallery.format("reaction"), r"def run\(n: int = (\d+)"))
    assert f"of {2 * side**2:,} unknowns" in pages
    scene = [int(n) for n in re.findall(r"n_\w+: int = (\d+)", text[gallery.format("bundle")])]
    rng = np.random.default_rng(0)
    rng.normal(size=6 * scene[0] + 3 * scene[1])
    entries = 16 * np.count_nonzero(rng.uniform(size=scene) < 0.6)
    assert "{} cameras and {} points eight products find the {:,} entries".format(*scene, entries) in pages
    shim, library = (figures.count_code(part) for part in text["examples/transport/before.py"].split("# the library"))
    after = figures.count_code(text["examples/transport/transport.py"])
    assert f"| the shim | {shim} | 0 | | the library | {library} | {after} |" in pages
    assert "on every backend, the first to " + read(tests, r"(?s)def test_digits_has.*?atol=(.*?)\)") in pages
    assert read(tests, r'found\["products"\] == (\d+)') == "9" and "nine products find them all" in pages
    programs = ast.literal_eval(read("tests/test_programs.py", r"(?ms)^SHAPES = (\{.*?^\})"))
    assert len(programs) == 10 and "the operations of ten compiled programs" in pages
    assert f"{cli._TIMEOUT:.0f} by default" in pages
    assert f"arrays of more than {_tolerances._SHOWN} numbers as shapes" in pages
    terms = [*OF_SQUARE_ROOT, *special._TERMS.values(), *(nodes for _, nodes, *_ in special._BESSEL.values())]
    assert f"integrals of {min(terms)} to {round(max(terms), -1)} terms in memory" in pages


COUNTED = [
    *("CONTRIBUTING.md", "docs/testing.md", "docs/porting.md", "benchmarks/ported.md", "tests/loaded/tables.py"),
    *("tests/loaded/test_loaded.py", "tests/mutants/__main__.py", "tests/testing/test_false_alarms.py"),
    *("docs/index.md", "docs/gallery.md", "docs/limits.md", "docs/performance.md", "docs/tutorials/library.md"),
    *(
        "tests/test_examples.py",
        "tests/test_programs.py",
        "examples/transport/before.py",
        "examples/transport/transport.py",
    ),
    *(f"examples/gallery/{name}.py" for name in ("physics", "reaction", "bundle")),
]


@pytest.fixture
def tree(tmp_path):
    """A tree of two ops on one backend, to count by hand."""
    files = {
        "_values/args.py": "def check(x):\n    raise ValueError\n",
        "backends/torch/ops/a.py": (
            "from ..devices import is_at_hand\n"
            "from .b import first as begin, is_small\n\n\n"
            "op_alias = begin\n\n\n"
            "def op_one(x):\n"
            '    """Say what it is."""\n'
            "    # why\n"
            "    return begin(op_two(x, LIMIT))  # two helpers\n\n\n"
            "@wrapped\n"
            "def op_two(x, bound):\n"
            "    if is_at_hand(x):\n"
            "        args.check(x)\n"
            "    if is_small(x):\n"
            "        return x\n"
            "    return bound\n"
        ),
        "backends/torch/ops/b.py": (
            "LIMIT = 3\n\n\n"
            "def first(x):\n"
            "    return second(first, x, LIMIT)\n\n\n"
            "def second(f, *xs):\n"
            "    y = f(*xs)\n"
            "    return y\n\n\n"
            "def is_small(x):\n"
            "    return is_at_hand(x) and x < 3\n\n\n"
            "def block(x, start):\n"
            "    if start is None:\n"
            "        if is_at_hand(x):\n"
            "            start = x.tolist()\n"
            "    return args.check(start)\n\n\n"
            "def guarded(x):\n"
            "    if not is_at_hand(x):\n"
            "        return x\n"
            "    if x.any():\n"
            "        raise ValueError\n"
            "    return x\n"
        ),
    }
    for name, text in files.items():
        path = tmp_path / "multiop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_an_op_weighs_what_it_reaches_once(tree):
    found = figures.ops_with_helpers(tree, "torch")
    assert found == {
        "op_alias": (6, ["first", "second"]),
        "op_one": (7, ["first", "second"]),
        "op_two": (9, ["is_small"]),
    }
    assert statistics.median(lines for lines, _ in found.values()) == 7


def test_a_look_chooses_or_is_for_an_error(tree):
    assert figures.looks(tree, "torch") == (["a.op_two"], ["a.op_two", "b.block", "b.guarded"])


def test_a_bare_participle_is_a_name_that_says_no_object(tree):
    names = (
        "folded",
        "_kept",
        "unwound",
        "fold_steps",
        "source_indices",
        "read",
        "seed",
        "put",
        "rebuilt",
        "Folded",
        "op_cast",
    )
    text = "".join(f"def {name}():\n    pass\n\n\n" for name in names)
    (tree / "multiop" / "_values" / "steps.py").write_text(text + "class C:\n    def told(self):\n        told = 1\n")
    assert figures.bare_participles(tree) == {
        "multiop/_values/steps.py": ["_kept", "folded", "rebuilt", "told", "unwound"],
        "multiop/backends/torch/ops/b.py": ["guarded"],
    }


def test_a_figure_is_missed_above_its_most_and_below_its_least(monkeypatch):
    monkeypatch.setattr(figures, "GOALS", {"words": 10})
    monkeypatch.setattr(figures, "LEAST", {"'you'": 4})
    assert figures.missed({"words": "10", "'you'": "4.0"}) == set()
    assert figures.missed({"words": "11", "'you'": "3.9"}) == {"words", "'you'"}


def test_a_file_in_no_layer_is_named(tree):
    (tree / "multiop" / "deeper").mkdir()
    (tree / "multiop" / "deeper" / "new.py").write_text("x = 1\n")
    assert figures.in_no_layer(tree) == ["multiop/deeper/new.py"]
    with pytest.raises(SystemExit, match="new.py"):
        figures.of_source(tree)


def test_the_table_has_every_figure_beside_its_goal(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["figures.py"])
    monkeypatch.setattr(figures, "measured", lambda *_: {"dir": "1", "names": "2"})
    figures.main()
    rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in capsys.readouterr().out.splitlines()]
    table = {name: (now, goal) for name, now, goal in (row if len(row) == 3 else [*row, ""] for row in rows[2:])}
    assert {name for name, (_, goal) in table.items() if goal} == {*figures.GOALS, *figures.LEAST}
    for layer in figures.LAYERS:
        assert int(table[f"{layer}: lines"][0]) >= int(table[f"{layer}: lines of code"][0]) > 0
