"""Prove multiop on an accelerator, from a checkout alone: with whatever PyTorch and JAX the machine has.

    python tools/accelerator.py
    python tools/accelerator.py --backends torch --parts suite,waits --minutes 8 --workers 8

It needs no network, no TensorFlow, no nox, and no installed multiop. What it finds is printed, and written to
`build/accelerator/`: summary.txt is what is printed, results.json the same as data; of each part, *.failures has a line
for each failure as it happens, and *.log all that was said. What multiop needs and the machine has not, it names; put
that into the folder `.deps` of the checkout, on a machine with a network: `pip install --target .deps optree pytest`.

Parts:
  suite   the shared suite, the autodiff contract and the tests of ops, with tensors made on the device
  waits   that no op and no gradient waits for the device
  rows    training steps at 256 to 2048 tokens in float32 and bfloat16: time and peak memory against the framework
  kernels each kernel against the op without it
  counts  what can be known without a device: bytes and kernels on `meta` tensors, devices by tensors without values

Without an accelerator, `suite` is the quick tier on the CPU, `waits` is left out, `rows` are left out, and it says so.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CARRIED = ROOT / ".deps"
NEEDED = ("numpy", "scipy", "ml_dtypes", "optree", "rich", "typer", "pytest")  # by multiop, and by its suite
ON_NUMPY = {"scipy", "ml_dtypes"}  # from pip, they would bring another NumPy
OF_TESTS = {"hypothesis": ["tests/ops/test_properties.py"], "mpmath": []}  # what is left out where one is missing
PARTS = ("suite", "waits", "rows", "kernels", "counts")
SHOWN = 50  # failures of a part that are printed
NEEDS_DEVICE = ("waits", "rows", "kernels")
LOOK = """
import importlib, json, os
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
name = {backend!r}
framework = importlib.import_module(name)
if name == "torch":
    devices = [framework.cuda.get_device_name(0)] if framework.cuda.is_available() else []
    kind = "cuda"
else:
    devices = [d.device_kind for d in framework.devices() if d.platform != "cpu"]
    kind = framework.devices()[0].platform
    kind = "cuda" if kind == "gpu" else kind
print(json.dumps({{"version": framework.__version__, "devices": devices, "kind": kind if devices else ""}}))
"""


def main() -> int:
    """Run the parts; the status is 0 where all pass, 1 where one does not, 2 where something is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backends", default="torch,jax", help="comma-separated; those that are missing are named")
    parser.add_argument("--device", default=None, help="default: the first accelerator that a framework knows")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"comma-separated, of {', '.join(PARTS)}")
    parser.add_argument("--tier", default="default", choices=("quick", "default", "full"), help="of the suite")
    parser.add_argument("--minutes", type=float, default=60, help="after which no part goes on (default: 60)")
    parser.add_argument("--workers", type=int, default=1, help="processes of the suite, where pytest-xdist is there")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "accelerator", help="where results are written")
    options = parser.parse_args()
    if unknown := set(options.parts.split(",")) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    environment = without_network()
    if lacks := missing():
        print(f"missing: {', '.join(lacks.values())}. Install them, or, with this Python on a machine with a network:")
        for flags, names in (("", lacks.keys() - ON_NUMPY), ("--no-deps ", lacks.keys() & ON_NUMPY)):
            if names:
                print(f"    pip install {flags}--target {CARRIED.name} {' '.join(sorted(names))}")
        print(f"and copy the folder {CARRIED.name} into this checkout.")
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    summary = options.out / "summary.txt"
    summary.write_text("", encoding="utf-8")

    def say(line: str) -> None:
        print(line, flush=True)
        with summary.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    deadline = time.monotonic() + options.minutes * 60
    rows = []
    for backend in options.backends.split(","):
        if not has(backend):
            say(f"{backend}: not installed here")
            continue
        found = looked(backend, environment)
        device = options.device if options.device is not None else found["kind"]
        say(f"\n{backend} {found['version']}: {', '.join(found['devices']) or 'no accelerator'}")
        for part in options.parts.split(","):
            rows.append({"backend": backend, **found, "part": part, "device": device or "cpu"})
            rows[-1] |= outcome(part, backend, device, options, deadline, environment)
            say(f"  {part:8} {rows[-1]['outcome']}")
            for failure in rows[-1].get("failures", ())[:SHOWN]:
                say(f"    {failure}")
            (options.out / "results.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    say(f"\nwritten to {options.out}")
    return int(not rows or any(row["status"] for row in rows))


def without_network() -> dict[str, str]:
    """Return the environment of the parts: the checkout and what it carries can be imported."""
    paths = [str(ROOT), *([str(CARRIED)] if CARRIED.exists() else [])]
    sys.path += paths
    inherited = os.environ.get("PYTHONPATH", "")
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([*paths, *filter(None, [inherited])]),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # several processes share the device
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "PYTHONUNBUFFERED": "1",  # what a run that is cut short has said is in its log
    }


def missing() -> dict[str, str]:
    """Return what multiop and its suite need and cannot be imported here, each with what is said of it."""
    lacks = {}
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except ImportError as error:
            lacks[name] = name if error.name == name else f"{name} ({error})"
    return lacks


def has(name: str) -> bool:
    """Say whether a package can be imported here."""
    return importlib.util.find_spec(name) is not None


def looked(backend: str, environment: dict[str, str]) -> dict[str, object]:
    """Return the version of a framework and the accelerators that it knows, asked in a process of its own."""
    program = [sys.executable, "-c", LOOK.format(backend=backend)]
    said = subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(said.strip().splitlines()[-1]))


def outcome(
    part: str,
    backend: str,
    device: str,
    options: argparse.Namespace,
    deadline: float,
    environment: dict[str, str],
) -> dict[str, object]:
    """Run one part; return its status, its last line, its seconds and its failures."""
    if part in NEEDS_DEVICE and not device:
        return {"status": 0, "outcome": "left out: there is no accelerator here"}
    if part == "counts" and backend != "torch":
        return {"status": 0, "outcome": "left out: PyTorch alone has tensors without values"}
    left = deadline - time.monotonic()
    if left <= 0:
        return {"status": -1, "outcome": "not begun: out of time"}
    command = commands(part, backend, device, options)
    log, failures = (options.out / f"{backend}-{part}.{kind}" for kind in ("log", "failures"))
    failures.unlink(missing_ok=True)
    start = time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        try:
            status = subprocess.run(
                [sys.executable, *command],
                cwd=ROOT,
                env=environment | {"MULTIOP_BACKEND": backend},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=left,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            status = -1
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip(" =") for line in text.splitlines() if line.strip()] or ["nothing was said"]
    failed = failures.read_text(encoding="utf-8").splitlines() if failures.exists() else []
    reached = [f" at {share}" for share in re.findall(r"\d+%", text)][-1:]
    said = " / ".join(lines[-1:] if status in (0, 1) else lines[-3:])  # pytest has 0 or 1, unless it could not run
    if status == -1:
        said = f"out of time{''.join(reached)}, {len(failed)} failed"
    seconds = round(time.monotonic() - start)
    return {"status": status, "outcome": said, "seconds": seconds, "log": log.name, "failures": failed}


def commands(part: str, backend: str, device: str, options: argparse.Namespace) -> list[str]:
    """Return what Python runs for a part."""
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--backends={backend}", "--hasty"]
    pytest += [f"--failures={(options.out / f'{backend}-{part}.failures').absolute()}"]
    pytest += [f"--multiop-device={device}"] if device else []
    pytest += [f"-n{options.workers}", "--dist=worksteal"] if options.workers > 1 and has("xdist") else []
    if part == "suite":
        left_out = [f"--ignore={path}" for name, paths in OF_TESTS.items() if not has(name) for path in paths]
        tier = options.tier if device else "quick"
        folders = ["tests/test_conformance.py", "tests/autodiff", "tests/ops"]
        return [*pytest, f"--tier={tier}", "-m", "not cross", *left_out, *folders]
    if part == "waits":
        return [*pytest, "--tier=full", "tests/on_accelerator.py"]
    if part == "counts":
        return [*pytest, "--tier=full", "tests/torch/test_counts_torch.py", "tests/torch/test_devices_torch.py"]
    script = {"rows": "benchmarks/bench_long.py", "kernels": "benchmarks/bench_kernels.py"}[part]
    return [script, f"--backends={backend}", f"--device={device}", f"--json={options.out / f'{backend}-{part}.json'}"]


if __name__ == "__main__":
    sys.exit(main())
