"""The pages of docs/: their code runs on every backend and prints what they say, and their links lead somewhere."""

from __future__ import annotations

import ast
import datetime
import inspect
import pkgutil
import re

import check_minutes
import divergences
import notebook
import pages
import pytest
import reference
from divergence_rows import DIVERGENCES, TOPICS

import multiop
import multiop.extend
from multiop import cli
from multiop.testing.cases import rows

PAGES = sorted(path for path in pages.DOCS.rglob("*.md") if pages.DOCS / "reference" not in path.parents)
ELSEWHERE = sorted([*pages.ROOT.glob("*.md"), *pages.ROOT.glob("benchmarks/*.md")])
WITH_CODE = [
    pages.DOCS / f"{name}.md"
    for name in ("index", "limits", "mathematics", "distributed", "devices", "sparse", "sparse_derivatives")
]
WITH_CODE += sorted((pages.DOCS / "tutorials").glob("*.md")) + sorted((pages.DOCS / "howto").glob("*.md"))
ON_NUMPY = [pages.DOCS / "howto" / name for name in ("numpy.md", "autograd.md")]
ON_ALL = [pages.DOCS / "tutorials" / name for name in ("framework.md", "generation.md")]  # tests/porting runs these
WITH_CODE = [path for path in WITH_CODE if path not in (*ON_NUMPY, *ON_ALL)]
# pages whose code takes longer: what stands there, and what is run in its place outside the full tier
LONG = {"physics.md": {"steps = 1000": "steps = 2"}}


def name(path):
    return path.relative_to(pages.ROOT).as_posix()


@pytest.mark.parametrize("path", [path for path in WITH_CODE if path.name not in LONG], ids=name)
def test_code_prints_what_the_page_says(path, backend):
    pages.run(path, backend)


@pytest.mark.parametrize("path", ON_NUMPY, ids=name)
def test_code_for_numpy_prints_what_the_page_says(path):
    with multiop.use_backend("numpy"):
        pages.run(path, "numpy")


@pytest.mark.parametrize("path", [path for path in WITH_CODE if path.name in LONG], ids=name)
def test_long_code_runs(path, backend):
    pages.run(path, backend, LONG[path.name])


@pytest.mark.tier("full")
@pytest.mark.parametrize("path", [path for path in WITH_CODE if path.name in LONG], ids=name)
def test_long_code_prints_what_the_page_says(path, backend):
    pages.run(path, backend)


@pytest.mark.tier("full")
@pytest.mark.parametrize("path", [path for path in WITH_CODE if "def test_" in path.read_text()], ids=name)
def test_tests_on_the_page_pass(path, backend):
    tests = {key: value for key, value in pages.run(path, backend).items() if key.startswith("test_")}
    assert tests
    for test in tests.values():
        test(*[backend] * len(inspect.signature(test).parameters))


@pytest.mark.parametrize("path", [*PAGES, *ELSEWHERE], ids=name)
def test_links_lead_somewhere(path):
    assert not pages.broken(path)


def test_navigation_names_pages_that_exist_and_all_of_them():
    named = pages.navigation()
    assert [name(path) for path in named if not path.exists()] == []
    assert {*map(name, PAGES)} - {*map(name, named)} == {"docs/index.md"}


def test_ops_that_a_page_names_exist():
    known = {*dir(multiop), "op_sofmax", "op_list"}  # misspelt on purpose; a tool
    for path in [*PAGES, pages.ROOT / "README.md"]:
        text = path.read_text(encoding="utf-8")
        assert {*re.findall(r"\bop_\w+", text)} - known == set(), path
        assert {one for one in re.findall(r"\bops\.(\w+)\(", text) if not hasattr(multiop.ops, one)} == set(), path


def test_modules_and_functions_that_a_page_names_exist():
    named = set()
    for path in [*PAGES, pages.ROOT / "README.md"]:  # Keras would be imported
        named |= {*re.findall(r"(?<![\w./])multiop(?!\.keras)(?:\.[a-zA-Z]\w*)+", path.read_text(encoding="utf-8"))}
    assert len(named) > 100
    assert {one for one in named if not is_there(one)} == {"multiop.make_jvp", "multiop.op_sofmax"}  # wrong on purpose


def is_there(name):
    try:
        return pkgutil.resolve_name(name) is not None
    except (ImportError, AttributeError):
        return False


@pytest.mark.parametrize("path", [*PAGES, *ELSEWHERE], ids=name)
def test_commands_that_a_page_names_exist(path):
    """Sessions and their parts, scripts and the commands of `multiop`: a name that is gone is found here."""
    text, noxfile = path.read_text(encoding="utf-8"), ast.parse((pages.ROOT / "noxfile.py").read_text(encoding="utf-8"))
    functions = [node for node in noxfile.body if isinstance(node, ast.FunctionDef)]
    sessions = {one.name for one in functions if any("nox.session" in ast.unparse(d) for d in one.decorator_list)}
    assert {*re.findall(r"nox -s ([\w-]+)", text)} - sessions == set()
    strings = [
        node.value for node in ast.walk(noxfile) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert {*re.findall(r"--part ([\w-]+)", text)} - {string.partition(" ")[0] for string in strings} == set()
    folders = ["tools", "benchmarks", "examples", *["tests"] * (path in ELSEWHERE)]  # a tutorial has tests of its own
    scripts = re.findall(rf"(?<![\w/])(?:{'|'.join(folders)})/[\w/]+\.py\b", text)
    assert [script for script in scripts if not (pages.ROOT / script).exists()] == []
    commands = re.findall(r"(?:^\$ |`)multiop (\w+)", text, re.M)
    assert {*commands} - {one.name or one.callback.__name__ for one in cli.app.registered_commands} == set()


def test_the_notebook_is_made_from_the_page():
    assert notebook.NOTEBOOK.read_text(encoding="utf-8") == notebook.notebook()


def test_the_page_of_divergences_names_each():
    text = divergences.PAGE.read_text(encoding="utf-8")
    assert [one.title for one in DIVERGENCES if f"### {one.title}\n\n{one.why}\n" not in text] == []
    assert {one.topic for one in DIVERGENCES} == {*TOPICS}


def test_an_answer_that_is_another_number_is_told_apart():
    assert divergences.is_same("[nan 1.]", "[nan, 1.]")
    assert divergences.is_same("200", "200.0")
    assert not divergences.is_same("nan", "0.")
    assert not divergences.is_same("RuntimeError", "0.")
    assert not divergences.is_same("[1. 2.]", "1.")


def test_each_op_has_a_place_in_the_reference():
    """The pages are made from the source at each build, so that all there is to hold is that nothing is left out."""
    texts = reference.pages()
    shown = {name for text in texts.values() for name in re.findall(r"^\.\. auto\w+:: multiop\.(\w+)$", text, re.M)}
    assert {name for name in multiop.__all__ if name not in ("errors", "ops", "random", "tree")} == shown - {"errors"}
    assert f"``op_abs({rows()['op_abs'].pins[0]!r})``" in texts["elementwise"]
    assert all(f"\n   {name}\n" in f"{texts['index']}\n" for name in texts if name != "index")


def test_the_page_for_authors_of_backends_says_what_each_name_is():
    names = {name for name in vars(multiop.extend) if name[0].isalpha()}
    lines = [line for section in reference.doors().values() for line in section]
    assert {name for name, _ in lines} == names
    assert [name for name, told in lines if not told] == []


def test_a_page_that_prints_something_else_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match="page.md:2 printed\n1"):
        pages.run(page, "")
    page.write_text("```pycon\n>>> 1\n2\n```\n")
    with pytest.raises(AssertionError, match="Expected"):
        pages.run(page, "")


def test_a_block_of_a_framework_runs_on_its_backend_alone(tmp_path):
    page = tmp_path / "page.md"
    own, *_ = multiop.available_backends()
    other = "jax" if own == "torch" else "torch"
    blocks = ["x = 1", f"import {other}.nowhere"]
    page.write_text("".join(f"```python\n{block}\n```\n\n" for block in blocks))
    assert pages.run(page, own)["x"] == 1
    page.write_text(page.read_text().replace(f"{other}.nowhere", f"{own}.nowhere"))
    with pytest.raises(ImportError):
        pages.run(page, own)


def test_a_flowchart_is_shown_as_a_table():
    chart = '```mermaid\nflowchart TD\n  a["one<br/>first"] --> b["two"]\n  b -. "at times" .-> a\n  b --> c\n```'
    assert pages.flowcharts_as_tables(f"Before\n\n{chart}\n\nafter").splitlines()[2:-2] == [
        "| | | leads to |",
        "|---|---|---|",
        "| one | first | two |",
        "| two |  | one (at times); c |",
    ]


def test_a_link_that_leads_nowhere_is_noticed(tmp_path):
    (tmp_path / "there.md").write_text("# One heading: `code`\n")
    page = tmp_path / "page.md"
    page.write_text("[a](there.md#one-heading-code) [b](there.md#two) [c](nowhere.md) `[d](nowhere.md)`\n")
    assert pages.broken(page) == ["there.md#two", "nowhere.md"]


@pytest.mark.once
def test_the_readme_says_how_long_its_check_takes(backend):
    text = check_minutes.README.read_text(encoding="utf-8")
    written = check_minutes.write_minutes(text, 61.0, 2, datetime.date(2026, 1, 2))
    assert "the check itself took 2 minutes on two cores (2026-01-02)" in written.replace("\n", " ")
    assert "took 1 minute on 16 cores (" in check_minutes.write_minutes(text, 60.0, 16, datetime.date(2026, 1, 2))
    with pytest.raises(SystemExit, match="0 times, not once"):
        check_minutes.write_minutes("", 61.0, 2, datetime.date(2026, 1, 2))
