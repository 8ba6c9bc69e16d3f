"""Programs that are scripts: run here, or in a process of their own."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from random_programs import LIMITS, Difference, compiled_by

import multiop
from multiop.testing._shared_process import x64_mode_for

CLUE = 600  # characters of an error that are kept
SCRIPTED = ("in this process", "in a process of its own")  # ways a script goes


def failure(
    source: str,
    backend: str,
    notes: list[str] | None = None,
    *,
    is_fresh: bool = False,
    inductor: bool = False,
    only: str = "",
    apart: bool = False,
) -> Difference | None:
    """Run a script on a backend; return what is wrong.

    Args:
        source: Script, whose assertions say `what: message`.
        backend: Name of the backend.
        notes: Where to say what was done, and which limits were met.
        is_fresh: Whether it needs a process of its own.
        inductor: Whether PyTorch compiles with Inductor.
        only: Has no effect: a script ends at its first failure.
        apart: Whether each script runs in a process of its own.
    """
    if is_fresh or apart:
        raised, message = _apart(source, backend, inductor)
    else:
        raised, message = _here(source, backend, inductor)
    notes = [] if notes is None else notes
    notes.append(f"{SCRIPTED[is_fresh or apart]} on {backend}")
    if not raised:
        return None
    if any(text in message for text in LIMITS):
        notes.append(f"a script on {backend} proves nothing: a limit of the framework")
        return None
    if raised == "AssertionError":
        first, *rest = message.strip().split("\n")  # NumPy's own words come before the script's
        what = rest[0] if first.startswith(("Not equal to", "Arrays are not")) else first.partition(":")[0]
        return Difference(what, (backend,), message.strip()[:CLUE])
    return Difference("error", (backend,), f"{backend}: {raised}: {message[-CLUE:]}", raised)


def _here(source: str, backend: str, inductor: bool) -> tuple[str, str]:
    with multiop.use_backend(backend), x64_mode_for("float64" if "enable_x64" in source else ""), compiled_by(inductor):
        try:
            exec(compile(source, "<script>", "exec"), {"__name__": "script"})
        except Exception as error:
            return type(error).__name__, str(error)
    return "", ""


def _apart(source: str, backend: str, inductor: bool, seconds: float = 300.0) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "script.py")
        path.write_text(source, encoding="utf-8")
        try:
            done = subprocess.run(
                [sys.executable, str(path)],
                env=os.environ | {"MULTIOP_BACKEND": backend, "TORCH_COMPILE_DISABLE": str(int(not inductor))},
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "TimeoutExpired", f"no end after {seconds:.0f} s"
    if done.returncode == 0:
        return "", ""
    if done.returncode < 0:
        return "Signal", f"the process ended with signal {-done.returncode}"
    error = re.search(r"(?ms)^(?:\w+\.)*(\w+): (.*)", done.stderr.rpartition("\nTraceback")[2])
    return error.groups() if error else ("Ended", done.stderr[-CLUE:])  # type: ignore[return-value]
