"""Plant faults in copies of the package, and count those that the tests find.

`python tests/mutants --tier default`; `--list` shows the faults, `--only TEXT` takes those whose name has TEXT in it.
A fault counts as caught by a test that fails with it and passes without it.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from _by_hand import EQUIVALENT, faults_by_hand
from _fault import BACKENDS, FOLDERS, ROOT, Fault
from _generated import draw
from _reach import stages, told_by
from rich.console import Console
from rich.table import Table

BOUND = {"default": 0.95, "full": 1.0}
DRAWN = dict.fromkeys(FOLDERS, 18) | {"autodiff": 12}
CONSOLE = Console(highlight=False, width=None if sys.stdout.isatty() else 160)


class Copy:
    """A copy of what is tested, and a server that runs tests of it on one backend."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.folder = Path(tempfile.mkdtemp(prefix=f"mutants-{backend}-")).resolve()
        self.tree = self.folder / "tree"
        ignore = shutil.ignore_patterns("__pycache__", "*.png")
        for name in ("multiop", "tests", "tools", "examples", "docs"):
            if (ROOT / name).exists():
                shutil.copytree(ROOT / name, self.tree / name, ignore=ignore)
        for name in ("conftest.py", "pyproject.toml", "README.md", "noxfile.py"):
            shutil.copy(ROOT / name, self.tree / name)
        environment = os.environ | {"MULTIOP_BACKEND": backend, "PYTHONPATH": str(self.tree)}
        self.server = subprocess.Popen(
            [sys.executable, "-u", str(Path(__file__).with_name("_server.py")), backend],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
            cwd=self.folder,
        )  # fmt: skip

    def run(self, todo: list[dict], ops: list[str], left_out: list[str], limit: float) -> dict:
        job = {
            "folder": str(self.tree), "stages": todo, "ops": ops, "left_out": left_out, "limit": limit,
            "result": tempfile.mktemp(dir=self.folder, suffix=".json"),
        }  # fmt: skip
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def plant(self, path: str, text: str) -> None:
        file = self.tree / path
        file.write_text(text)
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            compiled.unlink()  # it may be of the same second

    def close(self) -> None:
        self.server.stdin.close()
        self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def tried(copy: Copy, fault: Fault, tier: str, week: str, left_out: list[str]) -> dict:
    """Run the tests of one fault up to the first failure."""
    start, told = time.monotonic(), told_by(fault.name, fault.kind)
    todo, ops = stages(copy.backend, fault.group, fault.path, fault.function, tier, week, told)
    copy.plant(fault.path, fault.changed)
    try:
        answer = copy.run(todo, ops, left_out, 4 * sum(stage["seconds"] for stage in todo))
    finally:
        copy.plant(fault.path, (ROOT / fault.path).read_text())
    how, test, message = answer["failure"] or (None, None, None)
    return {
        "name": fault.name, "group": fault.group, "kind": fault.kind, "by_hand": fault.by_hand, "backend": copy.backend,
        "caught": how is not None, "how": how, "test": test, "message": message, "ran": answer["ran"],
        "stopped": answer["stopped"], "seconds": round(time.monotonic() - start, 1),
    }  # fmt: skip


def fail_without(copy: Copy, found: list[dict], tier: str, week: str) -> set[str]:
    """Return which of the tests that caught something fail without a fault, too."""
    tests = sorted({one["test"] for one in found if one["how"] == "test"})
    ops = sorted(
        {word.rstrip("]") for test in tests for word in test.replace("[", "-").split("-") if word.startswith("op_")}
    )
    if not tests:
        return set()
    options = [f"--multiop-backends={copy.backend}", f"--multiop-tier={tier}", f"--week={week}"]
    suite = [test for test in tests if test.startswith("tests/test_conformance.py")]
    runs = [ones for ones in (suite, [test for test in tests if test not in suite]) if ones]
    answer = copy.run([{"args": [*ones, *options], "seconds": 900} for ones in runs], ops, [], 2000)
    if answer["ran"] < len(tests) - len(answer["failed"]):
        CONSOLE.print(f"{copy.backend}: of {len(tests)} tests {answer['ran']} ran without a fault: {answer['failure']}")
    return set(answer["failed"])


def work(backend: str, faults: list[Fault], tier: str, week: str, done: list, lock: threading.Lock, write) -> None:
    copy, found, left_out = Copy(backend), [], []
    try:
        waiting = list(faults)
        while waiting:
            for fault in waiting:
                one = tried(copy, fault, tier, week, left_out)
                found.append(one)
                with lock:
                    done.append(one)
                    write()
                    text = (
                        f"caught by {one['test']}" if one["caught"] else "OUT OF TIME" if one["stopped"] else "MISSED"
                    )
                    CONSOLE.print(f"{one['seconds']:6.1f} s {backend:10} {one['name']}: {text}", markup=False)
            unsound = fail_without(copy, found, tier, week)
            left_out += sorted(unsound)
            again = {one["name"] for one in found if one["test"] in unsound}
            with lock:
                done[:] = [one for one in done if one["backend"] != backend or one["name"] not in again]
            found = [one for one in found if one["name"] not in again]
            waiting = [fault for fault in faults if fault.name in again]
    finally:
        copy.close()


def home(fault: Fault, backends: list[str]) -> str:
    """Return the backend on which a fault is tried first: what is about a framework is tried with it."""
    return next((name for name in backends if name in Path(fault.path).parts), backends[0])


def tables(done: list[dict]) -> list[dict]:
    """Print class by class what was caught, and what was missed; return what was missed and is not equivalent."""
    final = {}
    for one in done:  # of a fault in what the backends share, on any of them
        if one["name"] not in final or one["caught"]:
            final[one["name"]] = one
    real = [one for one in final.values() if key(one["name"]) not in EQUIVALENT or one["caught"]]
    for title, of in (("class of fault", "kind"), ("where", "group")):
        table = Table(title, "planted", "caught", "by the shared suite", "by other tests", "missed")
        groups = collections.defaultdict(list)
        for one in real:
            groups[one[of]].append(one)
        for name, ones in [*sorted(groups.items()), ("all", real)]:
            caught = [one for one in ones if one["caught"]]
            suite = [one for one in caught if "test_conformance.py" in one["test"]]
            counts = (len(ones), len(caught), len(suite), len(caught) - len(suite), len(ones) - len(caught))
            table.add_row(name, *map(str, counts))
        CONSOLE.print(table)
    return [one for one in real if not one["caught"]]


def key(name: str) -> str:
    """Return a name without its line, which moves."""
    return name.rpartition("@")[0] or name


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the faults that are drawn")
    parser.add_argument("--tier", choices=list(BOUND), default="default")
    parser.add_argument("--week", default="every", help="of the rotating tests, one week's, such as 2026-W48, alone")
    parser.add_argument("--backends", default=",".join(BACKENDS), help="comma-separated")
    parser.add_argument("--groups", default=",".join(FOLDERS), help="where the faults are: " + ", ".join(FOLDERS))
    parser.add_argument("--only", default=None, metavar="TEXT", help="faults with TEXT in their name")
    parser.add_argument("--kind", choices=["hand", "drawn"], default=None, help="those by hand, or those drawn, alone")
    parser.add_argument("--list", action="store_true", help="show the faults and stop")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time, at most one per backend")
    parser.add_argument("--write", type=Path, default=None, metavar="PATH", help="write what caught what, as JSON")
    parser.add_argument("--keep", action="store_true", help="take what PATH says was caught as caught")
    asked = parser.parse_args()

    backends = asked.backends.split(",")
    faults = [] if asked.kind == "drawn" else faults_by_hand()
    faults += [] if asked.kind == "hand" else draw(asked.seed, DRAWN)
    groups = [group for group in asked.groups.split(",") if group in backends or group not in BACKENDS]
    faults = [fault for fault in faults if fault.group in groups]
    if asked.only:
        faults = [fault for fault in faults if asked.only in fault.name]
    if asked.list:
        for fault in faults:
            CONSOLE.print(f"{fault.kind:20} {fault.name}", markup=False)
        CONSOLE.print(f"{len(faults)} faults")
        return 0

    done: list[dict] = json.loads(asked.write.read_text()) if asked.keep and asked.write.exists() else []
    known = {one["name"] for one in done if one["caught"]}
    done = [one for one in done if one["name"] in known]
    faults = [fault for fault in faults if fault.name not in known]
    lock = threading.Lock()

    def write() -> None:
        if asked.write:
            asked.write.write_text(json.dumps(done, indent=1))

    def round_of(chosen: dict[str, list[Fault]]) -> None:
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            running = []
            for backend, ones in chosen.items():
                if ones:
                    running.append(pool.submit(work, backend, ones, asked.tier, asked.week, done, lock, write))
            for one in running:
                one.result()

    first = {fault: home(fault, backends) for fault in faults}
    round_of({name: [fault for fault in faults if first[fault] == name] for name in backends})
    for name in backends:  # what the backends share is tried on the next one where the first sees nothing
        caught = {one["name"] for one in done if one["caught"]}
        shared = [fault for fault in faults if fault.group not in BACKENDS and first[fault] != name]
        round_of({name: [fault for fault in shared if fault.name not in caught]})

    missed = tables(done)
    for one in missed:
        how = "out of time" if one["stopped"] else "missed"
        CONSOLE.print(f"{how}: {one['kind']}: {one['name']}", markup=False)
    for one in done:
        if not one["caught"] and key(one["name"]) in EQUIVALENT:
            CONSOLE.print(f"equivalent: {one['name']}: {EQUIVALENT[key(one['name'])]}", markup=False)
    counted = len({one["name"] for one in done if one["caught"] or key(one["name"]) not in EQUIVALENT})
    share = 1 - len(missed) / counted if counted else 1.0
    CONSOLE.print(
        f"{share:.1%} of {counted} faults were caught by the tier {asked.tier}; {BOUND[asked.tier]:.0%} have to be"
    )
    return int(share < BOUND[asked.tier])


if __name__ == "__main__":
    raise SystemExit(main())
