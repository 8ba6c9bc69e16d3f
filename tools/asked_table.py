"""Write docs/asked.md: the functions of NumPy, SciPy and the Array API that libraries meet, and the ops for them.

python tools/asked_table.py            writes the page
python tools/asked_table.py --check    says whether it is current

The names, and why some are missing, stand in tools/asked.toml.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import op_list

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "asked.md"
TABLES = tomllib.loads((ROOT / "tools" / "asked.toml").read_text(encoding="utf-8"))
HEAD = """# What a library asks for

`python tools/asked_table.py` makes this page: functions of NumPy, of SciPy (of `scipy.special`, those that a framework
has) and of the Array API 2024.12. A function is there where an op has its name, or where another op does its work. The
op may have fewer arguments.

| library | asked for | there | by another name | missing |
|---|---|---|---|---|
"""


def text() -> str:
    """Return the page."""
    ops = {op.bare for op in op_list.ops()} | {"finfo", "iinfo"}
    ops -= {"polar"}  # Keras's op makes complex numbers
    summary, details = [], []
    for library, names in TABLES["asked"].items():
        bare = {name: name.rpartition(".")[2] for name in names.split()}
        there = [name for name in bare if bare[name] in ops and bare[name] not in TABLES["missing"]]
        others = {name: TABLES["elsewhere"][bare[name]] for name in bare if bare[name] in TABLES["elsewhere"]}
        if wrong := [name for name, op in others.items() if op not in ops or name in there]:
            raise SystemExit(f"asked.toml: elsewhere is wrong about {', '.join(wrong)}")
        missing = [name for name in bare if name not in there and name not in others]
        summary.append(f"| {library} | {len(bare)} | {len(there)} | {len(others)} | {len(missing)} |")
        details += ["", f"## {library}", "", "| asked for | why it is missing |", "|---|---|"]
        details += [f"| `{name}` | {why} |" for name in missing if (why := TABLES["missing"].get(bare[name]))]
        plain = [f"`{name}`" for name in missing if bare[name] not in TABLES["missing"]]
        details += [f"| {', '.join(plain)} | {TABLES['others'][library]} |"] * bool(plain)
        details += ["", "| asked for | op that does its work |", "|---|---|"]
        details += [f"| `{name}` | `op_{op}` |" for name, op in others.items()]
    return "\n".join([HEAD.rstrip("\n"), *summary, *details, ""])


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == text() else f"{PAGE} is not current")
    PAGE.write_text(text(), encoding="utf-8")
