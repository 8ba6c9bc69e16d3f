"""What the benchmarks share: turns, a process per backend, tables, a JSON file, plots, the document.

Contenders take turns inside one process (A B C, B C A, ...), so that what the machine does meanwhile hits all of them
alike. A time is the median over the rounds; a ratio is the median of each round's ratio to the native time, with its
quartiles. Where a framework has several native spellings, the fastest is the one to beat. Contenders that do not
compute the same are not timed. Targets are shown, not asserted: a ratio is read, not tested.
"""

from __future__ import annotations

import argparse
import fnmatch
import gc
import importlib
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time
import tomllib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
PAGE = FOLDER.parent / "docs/performance.md"
BATCH_SECONDS = 5e-4  # a timed batch of calls lasts about this long: less than a turn of another process
ROW_SECONDS = 1.5  # a row of slow calls takes fewer rounds, so as to last no longer than this
TITLES = {"torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow", "numpy": "NumPy"}
KERAS = "keras.ops"
# glibc gives freed memory back to the system and asks for it again: a contender would pay for pages that another left
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}

Contenders = dict[str, Callable[[], Any]]
clock = time.perf_counter  # a suite of one thread takes the processor's own time


class Bench:
    """The rows of one suite on one backend, measured in this process; of the ops in `only`, if there are any."""

    def __init__(
        self, backend: str, rounds: int, only: frozenset[str] = frozenset(), device: str = "", few: bool = False
    ) -> None:
        self.backend = backend
        self.device = device
        self.rounds = rounds
        self.only = only
        self.few = few
        self.rows: list[dict[str, Any]] = []
        self.wrong: list[str] = []
        self.wait: Callable[[Any], Any] = _at_once
        self.versions: dict[str, str] = {}

    def load(self) -> Any:
        """Import the framework, Keras if it is there and all is measured, and multiop, which is returned."""
        os.environ.update(MULTIOP_BACKEND=self.backend, KERAS_BACKEND=self.backend)
        framework = importlib.import_module(self.backend)
        if self.backend == "jax":
            self.wait = framework.block_until_ready
        elif self.device and self.backend == "torch":  # calls return before the device has computed
            self.wait = lambda result: framework.accelerator.synchronize()
        elif self.device:
            self.wait = lambda result: framework.test.experimental.sync_devices()
        import multiop

        try:
            self.keras = None if self.only else importlib.import_module("keras")
        except ImportError:
            self.keras = None
        self.versions = {self.backend: framework.__version__}
        if self.keras is not None:
            self.versions["keras"] = self.keras.__version__
        gc.collect()
        gc.freeze()  # the frameworks' own objects, which would take a second to look through between two rounds
        return multiop

    def tensor(self, *shape: int, seed: int = 0) -> Any:
        """Return normal numbers as one of the framework's tensors."""
        import numpy as np

        import multiop

        x = multiop.op_convert_to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))
        return multiop.to_device(x, self.device) if self.device else x

    def compare(
        self,
        name: str,
        contenders: Contenders,
        limit: float | None = None,
        tolerance: float = 1e-5,
        expected: Any = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Check that all compute what the first one does, time them in turn, and note the ratio of multiop to native.

        Args:
            name: The row's name.
            contenders: Calls without arguments: `"native"`, or several that begin with it; `"multiop"`; others.
            limit: The target for the ratio.
            tolerance: Relative to the largest number of each result.
            expected: What the others compute, in place of what the first one does.
            more: What else the row is to hold.
        """
        left_out = {}
        first, *others = contenders.items()
        expected = arrays(first[1]() if expected is None else expected)
        for who, call in others:
            try:
                check_equal(name, who, arrays(call()), expected, tolerance)
            except Exception as error:
                if who != KERAS:  # the rows after it are measured all the same, and the status says so
                    self.wrong.append(f"{name}: {type(error).__name__}: {error}".strip())
                    return self.note(name, float("nan"), limit, "x", left_out={who: "wrong"}, **more)
                left_out[who] = f"{type(error).__name__}: {error}".strip().splitlines()[0][:120]
                del contenders[who]
        found = interleave(contenders, self.rounds, self.wait)
        return self.note(name, found["ratio"]["multiop"][1], limit, "x", **found, left_out=left_out, **more)

    def note(self, name: str, measured: float, limit: float | None, unit: str, **more: Any) -> dict[str, Any]:
        """Add a row; its target is met where `measured` is at most `limit`."""
        met = None if limit is None else measured <= limit
        row = {"name": name, "measured": measured, "limit": limit, "unit": unit, "met": met, **more}
        self.rows.append(row)
        return row


def _at_once(x: Any) -> Any:
    return x


# timing


def interleave(contenders: Contenders, rounds: int, wait: Callable[[Any], Any] = _at_once) -> dict[str, Any]:
    """Time each contender in turn; return medians in nanoseconds, and ratios to the fastest native one."""
    counts, seconds = {}, 0.0
    for name, call in contenders.items():
        counts[name], took = calibrate(call, wait)
        seconds += took
    rounds = max(3, min(rounds, int(ROW_SECONDS / seconds)))
    names: list[str] = list(contenders)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    gc.disable()
    try:
        for round_ in range(rounds):
            shift = round_ % len(names)
            for name in names[shift:] + names[:shift]:
                times[name].append(batch(contenders[name], counts[name], wait) / counts[name] * 1e9)
            if round_ % 10 == 9:
                gc.collect()
    finally:
        gc.enable()
    return summary(times)


def summary(times: dict[str, list[float]]) -> dict[str, Any]:
    """Return the medians of times taken in turn, and the quartiles of each round's ratio to the fastest native one."""
    medians = {name: statistics.median(found) for name, found in times.items()}
    native = min((name for name in times if name.startswith("native")), key=medians.__getitem__)
    ratios = {
        name: statistics.quantiles([t / n for t, n in zip(found, times[native], strict=True)], n=4)
        for name, found in times.items()
        if name != native
    }
    return {
        "native": native,
        "rounds": len(times[native]),
        "ns": {name: round(median, 1) for name, median in medians.items()},
        "ratio": {name: [round(q, 3) for q in quartiles] for name, quartiles in ratios.items()},
    }


def batch(call: Callable[[], Any], count: int, wait: Callable[[Any], Any]) -> float:
    start = clock()
    for _ in range(count):
        result = call()
    wait(result)
    return clock() - start


def calibrate(call: Callable[[], Any], wait: Callable[[Any], Any]) -> tuple[int, float]:
    """Return how many calls fill a batch, once the call is warm, and what the batch takes."""
    count = 5 if batch(call, 1, wait) < 0.01 else 1
    batch(call, count, wait)
    count = 1
    while (took := batch(call, count, wait)) < BATCH_SECONDS and count < 1_000_000:
        count = max(count + 1, min(count * 10, int(count * BATCH_SECONDS / max(took, 1e-9)) + 1))
    return count, took


# checking


def arrays(result: Any) -> list[Any]:
    """Return the tensors of nested tuples, lists and dicts as NumPy arrays, by the framework's own means."""
    import numpy as np

    if isinstance(result, dict):
        result = [result[key] for key in sorted(result)]
    if isinstance(result, (tuple, list)):
        return [array for leaf in result for array in arrays(leaf)]
    if hasattr(result, "dense_shape"):  # TensorFlow's gradient of a gather
        result = importlib.import_module("tensorflow").convert_to_tensor(result)
    if hasattr(result, "detach"):
        result = result.detach().float() if str(result.dtype) == "torch.bfloat16" else result  # NumPy has none
        return [result.numpy(force=True)]  # a zero of PyTorch's, which it does not store, too
    # np.asarray refuses a scalar of bfloat16 on TensorFlow
    return [np.asarray(result.numpy() if hasattr(result, "numpy") else result)]


def check_equal(name: str, who: str, found: list[Any], expected: list[Any], tolerance: float) -> None:
    """Raise if a contender computes something else."""
    import numpy as np

    for one, other in zip(found, expected, strict=True):
        scale = float(np.abs(other).max()) if other.size and other.dtype != bool else 1.0
        np.testing.assert_allclose(
            one, other, rtol=tolerance, atol=tolerance * scale, err_msg=f"{name}: {who} computes something else"
        )


# running


def run(suites: list[str], about: str | None = None, rounds: int = 101) -> None:
    """Measure suites, each on every backend in a process of its own; print, and keep what was found."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backends", default=None, help="comma-separated; default: all frameworks that are installed")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"timed batches per contender; default: {rounds}")
    parser.add_argument("--json", default=None, metavar="PATH", help="default: benchmarks/results/NAME.json")
    parser.add_argument("--write", default=None, metavar="PATH", help="put the summary into this document")
    parser.add_argument("--from", dest="kept", nargs="+", metavar="PATH", help="measure nothing; read these JSON files")
    parser.add_argument(
        "--only", default="", metavar="WORDS", help="comma-separated: the rows of these ops or words alone"
    )
    parser.add_argument(
        "--device", default="", help="where tensors lie, as cuda; default: where the framework puts them"
    )
    parser.add_argument("--few", action="store_true", help="of every op, the calls on few numbers alone, eagerly")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        only = frozenset(filter(None, options.only.split(",")))
        bench = Bench(options.child, options.rounds, only, options.device, options.few)
        try:
            importlib.import_module(f"bench_{suites[0]}").measure(bench)
        except Exception:  # the rows before it are kept
            bench.wrong.append(traceback.format_exc())
        print("\n" + json.dumps({"versions": bench.versions, "rows": bench.rows, "wrong": bench.wrong}))
        return
    name = "all" if len(suites) > 1 else suites[0]
    path = Path(options.json or RESULTS / f"{name}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    if options.kept:
        kept, *others = [json.loads(Path(one).read_text(encoding="utf-8")) for one in options.kept]
        kept["results"] += [result for other in others for result in other["results"]]
        if options.json:
            path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    else:
        import multiop

        named = options.backends.split(",") if options.backends else None
        installed = multiop.available_backends()
        kept = {"machine": about_machine(), "rounds": options.rounds, "results": []}
        for suite in suites:
            # NumPy has a suite of its own, since the others compare with a framework
            for backend in named or [name for name in installed if (name == "numpy") == (suite == "numpy")]:
                kept["results"].append(child(suite, backend, options))
                path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")  # an aborted run leaves its part
    show_missed(kept)
    wrong = [line for result in kept["results"] for line in result.get("wrong", ())]
    if options.only:
        names = " ".join(row["name"] for result in kept["results"] for row in result["rows"])
        if without := [word for word in options.only.split(",") if word.removeprefix("op_") not in names]:
            print(f"without a row: {', '.join(without)}")
        sys.exit("\n\n".join(wrong) or 0)
    if options.write:
        write(kept, Path(options.write))
    plot(kept, path.parent)
    sys.exit("\n\n".join(wrong) or 0)


def about_machine() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": cores,
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0,  # of other programs, before the run
    }


def child(suite: str, backend: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one suite on one backend in a new process, and print its table."""
    start = time.perf_counter()
    command = [sys.executable, str(FOLDER / f"bench_{suite}.py"), "--child", backend, "--rounds", str(options.rounds)]
    command += ["--only", options.only] * bool(options.only) + ["--device", options.device] * bool(options.device)
    command += ["--few"] * options.few
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | KEEP_MEMORY
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"bench_{suite}.py failed on {backend}, with status {done.returncode}:\n{done.stderr}")
    result = {"suite": suite, "backend": backend, **json.loads(done.stdout.strip().splitlines()[-1])}
    result["seconds"] = round(time.perf_counter() - start, 1)
    show(result)
    return result


# showing


def cells(row: dict[str, Any]) -> list[str]:
    """Return a row of the table: name, native time, multiop's, the ratio, the target, whether it is met, others."""
    times, ratios = row.get("ns", {}), dict(row.get("ratio", {}))
    measured = spread(ratios.pop("multiop")) if "multiop" in ratios else quantity(row["measured"], row["unit"])
    native = row.get("native", "native")
    others = [f"{who.removeprefix('native: ')} {quartiles[1]:.2f}" for who, quartiles in ratios.items()]
    others += [f"{who}: not the same" for who in row.get("left_out", {})]
    return [
        row["name"],
        duration(times.get(native)) + (f" ({native.removeprefix('native: ')})" if ": " in native else ""),
        duration(times.get("multiop")),
        measured,
        "" if row["limit"] is None else quantity(row["limit"], row["unit"]),
        {True: "yes", False: "NO", None: ""}[row["met"]],
        ", ".join(others),
    ]


HEADINGS = ("", "native", "multiop", "ratio", "target", "met", "ratio of others")


def quantity(value: float, unit: str) -> str:
    return f"{value:.2f}" if unit == "x" else f"{value:.3g} {unit}".strip()


def duration(ns: float | None) -> str:
    if ns is None:
        return ""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def spread(quartiles: list[float]) -> str:
    return f"{quartiles[1]:.2f} ({quartiles[0]:.2f} to {quartiles[2]:.2f})"


def versions(result: dict[str, Any]) -> str:
    found = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return f" ({found})" if found else ""


def show(result: dict[str, Any]) -> None:
    """Print the table of one suite on one backend."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    title = f"{result['suite']} on {result['backend']}{versions(result)}, {result['seconds']} s"
    table = Table(title=title, title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in ("native", "multiop") else "left", no_wrap=True)
    for row in result["rows"]:
        table.add_row(*map(escape, cells(row)), style="bold red" if row["met"] is False else None)
    Console(width=None if sys.stdout.isatty() else 180).print(table)


def missed(kept: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any], str]]:
    """Return each row that misses its target, with its result and the reason that `reasons.toml` gives."""
    reasons = tomllib.loads((FOLDER / "reasons.toml").read_text(encoding="utf-8")).get("reason", [])

    def reason(result: dict[str, Any], row: dict[str, Any]) -> str:
        for known in reasons:
            place = known["suite"] == result["suite"] and fnmatch.fnmatchcase(result["backend"], known["backend"])
            is_more = row["measured"] > known.get("most", math.inf)
            if place and not is_more and any(fnmatch.fnmatchcase(row["name"], pattern) for pattern in known["rows"]):
                return known["why"]
        return "not looked into"

    return [
        (result, row, reason(result, row))
        for result in kept["results"]
        for row in result["rows"]
        if row["met"] is False
    ]


def show_missed(kept: dict[str, Any]) -> None:
    targets = sum(row["met"] is not None for result in kept["results"] for row in result["rows"])
    found = missed(kept)
    print(f"\n{targets - len(found)} of {targets} targets are met{'; missed:' if found else ''}")
    for result, row, why in found:
        shown = cells(row)
        print(f"  {result['suite']} on {result['backend']}: {row['name']}: {shown[3]}, target {shown[4]}: {why}")


def plot(kept: dict[str, Any], folder: Path) -> None:
    """Draw each suite's ratios with their quartiles, beside Keras's and the targets."""
    try:
        import matplotlib
    except ImportError:
        print("no plots: matplotlib is not installed")
        return
    matplotlib.use("agg")
    from matplotlib import pyplot

    for suite in dict.fromkeys(result["suite"] for result in kept["results"]):
        results = [result for result in kept["results"] if result["suite"] == suite and result["rows"]]
        shown = [[row for row in result["rows"] if "multiop" in row.get("ratio", {})] for result in results]
        height = 1.2 + 0.22 * max(len(rows) for rows in shown)
        figure, axes = pyplot.subplots(1, len(results), figsize=(7 * len(results), height), squeeze=False)
        for axis, result, rows in zip(axes[0], results, shown, strict=True):
            places = range(len(rows), 0, -1)
            low, middle, high = zip(*(row["ratio"]["multiop"] for row in rows), strict=True)
            whiskers = [
                [m - q for m, q in zip(middle, low, strict=True)],
                [q - m for m, q in zip(middle, high, strict=True)],
            ]
            axis.errorbar(middle, places, xerr=whiskers, fmt="o", color="C0", markersize=4, label="multiop")
            keras = [(row["ratio"][KERAS][1], y) for row, y in zip(rows, places, strict=True) if KERAS in row["ratio"]]
            axis.plot(*zip(*keras, strict=True) if keras else ([], []), "x", color="0.6", markersize=4, label=KERAS)
            limits = [(row["limit"], y) for row, y in zip(rows, places, strict=True) if row["limit"] is not None]
            axis.plot(*zip(*limits, strict=True) if limits else ([], []), "|", color="C3", markersize=9, label="target")
            axis.axvline(1, color="0.8", linewidth=1, zorder=0)
            axis.set(xscale="log", xlabel="time / native time", title=TITLES.get(result["backend"], result["backend"]))
            axis.set_yticks(list(places), [row["name"] for row in rows], fontsize=7)
            axis.legend(fontsize=7)
        figure.tight_layout()
        figure.savefig(folder / f"{suite}.png", dpi=80)
        pyplot.close(figure)


# the document


def write(kept: dict[str, Any], path: Path) -> None:
    """Put the summary between the markers of `path`: `<!-- bench: NAME -->` to `<!-- end -->`."""
    suites = {result["suite"] for result in kept["results"]}
    if len(suites) == 1 and hasattr(suite := importlib.import_module(f"bench_{min(suites)}"), "tables"):
        put(path, suite.tables(kept))
        return
    if missing := set(TITLES_OF_SUITES) - suites:
        sys.exit(
            f"{path} is of all suites: run `python benchmarks --write {path}` (missing: {', '.join(sorted(missing))})"
        )
    put(PAGE, {"headline": headline(kept)})
    put(path, {"machine": machine(kept), "results": results_table(kept), "missed": missed_table(kept)})


def put(path: Path, parts: dict[str, str]) -> None:
    """Put each part between its markers in a document."""
    text = path.read_text(encoding="utf-8")
    for name, body in parts.items():
        text, count = re.subn(
            rf"(<!-- bench: {name} -->\n).*?(<!-- end -->)", lambda m, body=body: m[1] + body + m[2], text, flags=re.S
        )
        if not count:
            sys.exit(f"{path} has no place for {name}: <!-- bench: {name} --> and <!-- end -->")
    path.write_text(text, encoding="utf-8")


TITLES_OF_SUITES = {
    "import": "importing",
    "ops": "single ops",
    "autodiff": "autodiff",
    "scale": "scale",
    "domain": "domain ops",
    "training": "training steps",
    "launch": "launches",
    "ported": "ported models",
    "pinned": "pinned answers",
}


def markdown(headings: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def results_table(kept: dict[str, Any]) -> str:
    """Return a line for each suite and backend: targets met, the mean ratio, the slowest row, and Keras's mean."""
    rows = []
    for result in kept["results"]:
        if not result["rows"]:
            continue
        ratios = {
            row["name"]: row["ratio"]["multiop"][1] for row in result["rows"] if "multiop" in row.get("ratio", {})
        }
        keras = [row["ratio"][KERAS][1] for row in result["rows"] if KERAS in row.get("ratio", {})]
        targets = [row["met"] for row in result["rows"] if row["met"] is not None]
        slowest = max(ratios, key=ratios.__getitem__, default=None)
        rows.append([
            TITLES_OF_SUITES[result["suite"]],
            TITLES.get(result["backend"], result["backend"]),
            str(len(result["rows"])),
            f"{sum(targets)} of {len(targets)}" if targets else "none set",
            f"{statistics.geometric_mean(ratios.values()):.2f}" if ratios else "",
            "" if slowest is None else f"{ratios[slowest]:.2f}, {slowest}",
            f"{statistics.geometric_mean(keras):.2f}" if keras else "",
        ])  # fmt: skip
    headings = ("suite", "backend", "rows", "targets met", "mean ratio", "slowest", f"mean ratio of {KERAS}")
    return f"\n{markdown(headings, rows)}\n"


# a line of the page's table: the suite, and the names of its rows
HEADLINE = {
    "{count} ops on 8 to 64 numbers, eager: geometric mean": ("ops", ".*"),
    "a custom gradient, both ways, 8 numbers, eager": ("autodiff", r"log1pexp \[8\], eager"),
    "the same, 10^6 numbers": ("autodiff", r"log1pexp \[1000000\], eager"),
    "the same, 8 numbers, compiled": ("autodiff", r"log1pexp \[8\], (?!eager).*"),
    "the same, 10^6 numbers, compiled": ("autodiff", r"log1pexp \[1000000\], (?!eager).*"),
    "a training step of a transformer block, eager": ("training", "transformer block, eager"),
    "the same, compiled": ("training", "transformer block, compiled"),
}


def headline(kept: dict[str, Any]) -> str:
    """Return the table that the page begins with: the ratios of multiop and of Keras on each framework."""
    lines = []
    for label, (suite, names) in HEADLINE.items():
        cells, count = [], 0
        for backend in ("torch", "tensorflow", "jax"):
            found = [
                result["rows"] for result in kept["results"] if (result["suite"], result["backend"]) == (suite, backend)
            ]
            ratios = [
                row["ratio"] for rows in found for row in rows if "ratio" in row and re.fullmatch(names, row["name"])
            ]
            count = max(count, len(ratios))
            for who in ("multiop", KERAS):
                known = [ratio[who][1] for ratio in ratios if who in ratio]
                cells.append(f"{statistics.geometric_mean(known):.2f}" if known else "")
        lines.append([label.format(count=count), *cells])
    headings = [f"{TITLES[name]}: multiop" for name in ("torch", "tensorflow", "jax")]
    return "\n" + markdown(("", *[cell for one in headings for cell in (one, KERAS)]), lines) + "\n"


def conditions(kept: dict[str, Any]) -> str:
    """Return the sentence that says on what a table was measured."""
    found = dict(pair for result in kept["results"] for pair in result["versions"].items())
    whose = ", ".join(f"{TITLES.get(name, name)} {version}" for name, version in found.items() if name != "keras")
    about = kept["machine"]
    cores = f"{about['cores']} core{'s' * (about['cores'] > 1)}"
    cores += f" of a busy machine (load {about['load']})" * (about["load"] > (os.cpu_count() or 1))
    return f"On {cores}, {kept['rounds']} rounds, Python {about['python']}, {whose}:"


def machine(kept: dict[str, Any]) -> str:
    about = kept["machine"]
    targets = [row["met"] for result in kept["results"] for row in result["rows"] if row["met"] is not None]
    trial = "**A trial of few rounds on a busy machine, not a measurement.** " if kept["rounds"] < 31 else ""
    minutes = sum(result["seconds"] for result in kept["results"]) / 60
    return (
        f"\n{trial}Measured on {about['system']} {about['machine']} with {about['cores']} cores, "
        f"Python {about['python']}, float32, {kept['rounds']} rounds, {minutes:.0f} minutes. "
        f"{sum(targets)} of {len(targets)} targets are met.\n\n"
    )


def missed_table(kept: dict[str, Any]) -> str:
    """Return the missed targets, those of one reason on one line, with the row that misses most."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for result, row, why in missed(kept):
        groups.setdefault((result["suite"], result["backend"], why), []).append(row)
    rows = []
    for (suite, backend, why), found in groups.items():
        worst = max(found, key=lambda row: row["ratio"]["multiop"][1] if "multiop" in row.get("ratio", {}) else 0)
        name, _, _, measured, target, *_ = cells(worst)
        place = [TITLES_OF_SUITES[suite], TITLES.get(backend, backend), str(len(found))]
        rows.append([*place, f"{name}: {measured}", target, why])
    headings = ("suite", "backend", "rows", "the one that misses most", "its target", "reason")
    return "\n" + (markdown(headings, rows) if rows else "None.\n") + "\n"
