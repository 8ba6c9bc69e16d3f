"""Measure what importing costs, in fresh processes that take turns: multiop alone, and with a framework and a first op.

python benchmarks/bench_import.py --backends torch
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from harness import Bench, run, summary

FIRST_OP = {
    "torch": ("import torch", "torch.add(torch.tensor(1.0), 2.0)"),
    "jax": ("import jax.numpy", "jax.numpy.add(1.0, 2.0)"),
    "tensorflow": ("import tensorflow", "tensorflow.add(1.0, 2.0)"),
}
NEEDED = {"multiop", "numpy", "ml_dtypes"}
WITH_AN_OP = {"optree", "typing_extensions"}  # the last is optree's
PROGRAM = """
import json, sys, time
start = time.perf_counter()
{imports}
imported = time.perf_counter()
{op}
done = time.perf_counter()
modules = sorted({{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names))
print("\\n" + json.dumps([imported - start, done - start, [name for name in modules if not name.startswith("_")]]))
"""


def process(backend: str, imports: str, op: str = "") -> tuple[float, float, set[str]]:
    """Return what a new process took to import, and with a first op (nanoseconds), and the packages it then has."""
    environment = os.environ | {"MULTIOP_BACKEND": backend, "KERAS_BACKEND": backend}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a package in use has its bytecode on disk
    program = [sys.executable, "-c", PROGRAM.format(imports=imports, op=op)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
    imported, both, modules = json.loads(done.stdout.strip().splitlines()[-1])
    return imported * 1e9, both * 1e9, set(modules)


def measure(bench: Bench) -> None:
    """Measure one backend."""
    rounds = max(3, bench.rounds // 20)  # a process takes seconds
    programs = {
        "native": FIRST_OP[bench.backend],
        "multiop": ("import multiop", "multiop.op_add(1.0, 2.0)"),
        "keras.ops": ("import keras", "keras.ops.add(1.0, 2.0)"),
    }
    modules = {}
    for name, program in list(programs.items()):  # the first time reads files from disk
        try:
            *_, modules[name] = process(bench.backend, *program)
        except subprocess.CalledProcessError:
            if name != "keras.ops":
                raise
            del programs[name]
    *_, modules["alone"] = process(bench.backend, "import multiop")

    beyond = [
        process(bench.backend, "import multiop")[0] - process(bench.backend, "import numpy")[0]
        for _ in range(2 * rounds + 1)
    ]
    bench.note("import multiop, no framework, beyond NumPy", sorted(beyond)[rounds] / 1e6, 50, "ms")
    extra = sorted(modules["alone"] - NEEDED)
    bench.note("packages it imports without need", len(extra), 0, "", at=", ".join(extra))

    imported: dict[str, list[float]] = {name: [] for name in programs}
    both: dict[str, list[float]] = {name: [] for name in programs}
    for k in range(rounds):
        names = list(programs)
        for name in names[k % len(names) :] + names[: k % len(names)]:
            first, total, _ = process(bench.backend, *programs[name])
            imported[name].append(first)
            both[name].append(total)

    def row(name: str, times: dict[str, list[float]]) -> None:
        found: dict[str, Any] = summary(times)
        bench.note(name, found["ratio"]["multiop"][1], 1.05, "x", **found)

    row("import and first op / the same of the framework", both)
    row("import and first op / the framework's import alone", both | {"native": imported["native"]})
    extra = sorted(modules["multiop"] - modules["native"] - NEEDED - WITH_AN_OP)
    bench.note("packages imported with a first op without need", len(extra), 0, "", at=", ".join(extra))


if __name__ == "__main__":
    run(["import"], __doc__)
