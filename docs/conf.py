"""The site: Sphinx makes it from the Markdown of this folder, and the reference from docstrings: `nox -s docs`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import op_list
import pages
import reference

import multiop

# The address under which a file of the repository can be read, with a slash at its end. Links to files outside of this
# folder lead there; until there is one, they are shown as the file's name.
FILES = ""

project = "multiop"
author = "the multiop authors"
copyright = "the multiop authors, Apache License 2.0"  # noqa: A001, Sphinx reads this name
release = version = multiop.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["reference/README.md"]
html_theme = "furo"
html_title = f"multiop {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "default"
pygments_dark_style = "github-dark"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # the page of a changelog may jump from a title to small headings

default_role = "code"  # docstrings are read in an editor first: `x` is code
autodoc_typehints = "none"  # each argument's section says what it takes
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Gradient", "returns_style"), ("Source", "returns_style")]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
linkcheck_timeout = 10  # seconds; `nox -s docs -- --links` without a network ends soon

# pages of the site that are files outside of this folder
ELSEWHERE = {
    "reference/contributing": "CONTRIBUTING.md",
    "reference/changelog": "CHANGELOG.md",
    "reference/measured": "benchmarks/measured.md",
    "reference/ported": "benchmarks/ported.md",
}
END_OF_DOCTEST = re.compile(r"^(```pycon\n.*?)\n+```$", re.M | re.S)
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s#]*)(#[^)\s]*)?\)")


def read(app: Any, name: str, source: list[str]) -> None:
    """Take the page from where its file is, and turn links to files outside of this folder."""
    home = HERE / Path(name).parent
    if name in ELSEWHERE:
        path = ROOT / ELSEWHERE[name]
        home, source[0] = path.parent, path.read_text(encoding="utf-8")
    if name == "ops":
        source[0] += f"\n{op_list.table()}"
    if os.fspath(app.env.doc2path(name, base=False)).endswith(".md"):
        source[0] = pages.flowcharts_as_tables(source[0])
        source[0] = END_OF_DOCTEST.sub(r"\1\n```", source[0])  # doctest needs the empty line, a reader does not
        source[0] = LINK.sub(lambda found: turned(found, home, HERE / Path(name).parent), source[0])


def turned(found: re.Match[str], home: Path, page: Path) -> str:
    """Return a link as it has to be on a page of the site.

    Args:
        found: The link.
        home: The folder that it starts from.
        page: The folder of the page that it stands on.
    """
    text, target, anchor = found[1], found[2], found[3] or ""
    if not target:
        return found[0]
    path = Path(os.path.normpath(home / target))
    for name, original in ELSEWHERE.items():
        if path == ROOT / original:
            path = HERE / f"{name}.md"
    if path == ROOT / "README.md":
        path = HERE / "index.md"
    if path.is_relative_to(HERE):
        text = "" if text in (target, target.rpartition("/")[2]) else text  # a path becomes its page's title
        return f"[{text}]({Path(os.path.relpath(path, page)).as_posix()}{anchor})"
    if not path.exists():
        raise FileNotFoundError(f"{found[0]}: there is no {path}")
    if FILES:
        return f"[{text}]({FILES}{path.relative_to(ROOT).as_posix()}{anchor})"
    return text if "`" in text or "/" not in text else f"`{text}`"


def setup(app: Any) -> None:
    """Write the pages of the reference before Sphinx looks for pages."""
    reference.write(HERE / "reference")
    for name in ELSEWHERE:
        (HERE / f"{name}.md").touch()
    app.connect("source-read", read)
