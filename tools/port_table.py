"""Port named models, prove each on every installed backend, and write the table in docs/porting.md.

tests/porting/models has a file for each framework, with the names of its models and a function that makes one. A model
that has no port, or whose port does not agree, is an error.

    python tools/port_table.py                 ports all and writes the table
    python tools/port_table.py ResNet-18 BERT  ports these and prints their rows
"""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import multiop
from multiop import porting

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "porting.md"
BEGIN, END = "<!-- models -->\n", "<!-- /models -->"


def files() -> dict[str, Any]:
    """Return the modules that make models, by the name of their framework."""
    found = {}
    for path in sorted((ROOT / "tests" / "porting" / "models").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"models_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[path.stem] = module
    return found


def row(name: str, model: Any, inputs: Any, backends: list[str]) -> tuple[str, bool]:
    """Return a line of the table, and whether all agree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        port = porting.trace(model, *inputs)
        proofs = [porting.prove(port, backend) for backend in backends]
    lines = len(port.source.splitlines())
    cells = [f"{proof.value:.0e}, {proof.gradient:.0e}" + ("" if proof.agrees else " **differs**") for proof in proofs]
    return f"| {' | '.join([name, str(port.operations), str(lines), *cells])} |", all(p.agrees for p in proofs)


def table(chosen: list[str]) -> tuple[str, bool]:
    """Return the table, and whether all agree."""
    multiop.enable_x64()
    backends = list(multiop.available_backends())
    head = ["model", "operations", "lines", *backends]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    agree = True
    for framework, module in files().items():
        for name in module.MODELS:
            if chosen and name not in chosen:
                continue
            line, fine = row(f"{name} ({framework})", *module.made(name), backends)
            print(line, flush=True)
            lines.append(line)
            agree = agree and fine
    return "\n".join(lines), agree


def main(chosen: list[str]) -> None:
    """Port the models, and write the table if these are all and agree."""
    text, agree = table(chosen)
    if not chosen and agree:
        page = PAGE.read_text(encoding="utf-8")
        pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
        PAGE.write_text(re.sub(pattern, lambda _: f"{BEGIN}{text}\n{END}", page, flags=re.DOTALL), encoding="utf-8")
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
