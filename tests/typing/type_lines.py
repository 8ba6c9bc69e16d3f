"""Hold what a type checker says of the lines of this folder to what they are marked with.

A line that has to be refused ends in `# refused: CODES OF MYPY, CODES OF PYRIGHT`, several joined by `+`; every other
line has to be accepted. `python tests/typing/type_lines.py --pyright=.nox/pyright/bin/basedpyright` asks pyright, as
`nox -s full -- --part pyright` does; tests/test_types.py asks mypy.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CHECKERS = ("mypy", "pyright")
MARK = re.compile(r"# refused: (\S+), (\S+)$")
Verdict = dict[tuple[str, int], set[str]]


def expected(names: list[str], checker: str) -> Verdict:
    """Return the codes with which a checker has to refuse lines, by file and line."""
    found: Verdict = {}
    for name in names:
        for number, line in enumerate((HERE / name).read_text(encoding="utf-8").splitlines(), start=1):
            if mark := MARK.search(line):
                found[name, number] = set(mark[1 + CHECKERS.index(checker)].split("+"))
    return found


def by_mypy(names: list[str], *options: str) -> Verdict:
    """Return the codes with which mypy refuses lines."""
    from mypy import api

    chosen = ["--no-pretty", "--no-error-summary", "--show-absolute-path", "--hide-error-context", *options]
    out, err, _ = api.run([*chosen, *(str(HERE / name) for name in names)])
    found: Verdict = {}
    for line in out.splitlines():
        if match := re.match(r"(.*?):(\d+): error: .*\[([a-z-]+)\]$", line):
            found.setdefault((Path(match[1]).name, int(match[2])), set()).add(match[3])
    if err or (out and not found):
        raise RuntimeError(f"mypy did not run: {err}{out}")
    return found


def by_pyright(names: list[str], program: str) -> Verdict:
    """Return the codes with which pyright refuses lines; it finds the packages of this Python."""
    settings = {
        "include": [str(HERE / name) for name in names],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "standard",  # as pyright has it, not basedpyright
        "pythonVersion": "3.11",
    }
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "pyrightconfig.json")
        project.write_text(json.dumps(settings), encoding="utf-8")
        command = [program, "--outputjson", "--pythonpath", sys.executable, "--project", str(project)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: Verdict = {}
    for one in json.loads(done.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            place = Path(one["file"]).name, one["range"]["start"]["line"] + 1
            found.setdefault(place, set()).add(one.get("rule", one["message"]))
    return found


def differences(found: Verdict, wanted: Verdict) -> list[str]:
    """Return what is not as the lines are marked, line by line."""
    places = sorted(place for place in {*found, *wanted} if found.get(place) != wanted.get(place))
    return [f"{name}:{n}: found {found.get((name, n))}, marked {wanted.get((name, n))}" for name, n in places]


def main() -> None:
    """Ask pyright about every line."""
    parser = argparse.ArgumentParser(description="Hold what pyright says of the lines of tests/typing to their marks.")
    parser.add_argument("--pyright", default="basedpyright", help="the program")
    names = ["accepted.py", "native.py", "refused.py"]
    wrong = differences(by_pyright(names, parser.parse_args().pyright), expected(names, "pyright"))
    if wrong:
        raise SystemExit("\n".join(wrong))
    print(f"pyright: every line of {', '.join(names)} is judged as it is marked")


if __name__ == "__main__":
    main()
