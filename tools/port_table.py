"""Port named models, prove each on every installed backend, and write the table in benchmarks/ported.md.

tests/porting/models has a file for each framework, with the names of its models, a function that makes one, and another
that says which files it is written in. A row is written as soon as it is known, and the rows of other models stay, so
the table can be made in parts. A model that is refused has a row with the reason. One whose port does not agree, takes
more than a minute to trace or has as many lines as the original is an error, and has the row that it had.

    python tools/port_table.py                 ports all
    python tools/port_table.py ResNet-18 BERT  ports these
    python tools/port_table.py jax             ports those of a framework
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import optree

import multiop
from multiop import errors, porting
from multiop.porting import _graph, _port, _prove, _weights

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "tests" / "porting" / "models"
PAGE = ROOT / "benchmarks" / "ported.md"
BEGIN, END = "<!-- models -->\n", "<!-- /models -->"
FRAMEWORKS = ("pytorch", "tensorflow", "jax")
LONGEST = 60  # seconds of a trace
EXACT = 1e-9  # the most that values, gradients and statistics may differ by in float64
SINGLE = 1e-6  # the same for a model that computes in float32 inside
UNITS = 512  # the most units in the last place by which they may differ in float32,
TIMES = 8  # or this many times as much as the original's own results move when its inputs are rounded otherwise
NUDGES = 16  # the most ways to round its inputs: a kink that rounding passes over is met in a few of them


def module_of(framework: str) -> Any:
    """Return the module that makes a framework's models."""
    spec = importlib.util.spec_from_file_location(f"models_{framework}", MODELS / f"{framework}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look the module up by name
    spec.loader.exec_module(module)
    return module


def names_in(framework: str) -> list[str]:
    """Return the names of a framework's models, without importing the framework."""
    text = (MODELS / f"{framework}.py").read_text(encoding="utf-8")
    return re.findall(r'^    "([^"]+)": ', text[text.index("\nMODELS = {") :], re.MULTILINE)


Arrays = tuple[Any, dict[str, Any], dict[str, Any]]


def difference(found: Any, expected: Any, zeros: Any = ()) -> float:
    """Return the largest difference of two lists or dicts of arrays, relative to the largest entry of each array.

    Those named in `zeros` are what rounding left of a zero: they are compared with the largest entry of all.
    """
    names = list(expected) if isinstance(expected, dict) else range(len(expected))
    if set(names) != (set(found) if isinstance(found, dict) else set(range(len(found)))):
        return float("inf")
    sizes = {name: size_of(expected[name]) for name in names}
    largest = max(sizes.values(), default=0.0)
    worst = 0.0
    for name, size in sizes.items():
        one, other = np.asarray(found[name], "float64"), np.asarray(expected[name], "float64")
        if one.shape != other.shape or not np.isfinite(one).all():
            return float("inf")
        size = largest if name in zeros else size
        worst = max(worst, float(np.abs(one - other).max(initial=0) / max(size, 1e-30)))
    return worst


def size_of(array: Any) -> float:
    """Return the largest magnitude in an array."""
    return float(np.abs(np.asarray(array, "float64")).max(initial=0))


def zeros_of(original: Arrays, most: float) -> set[str]:
    """Return the parameters whose gradient is zero but for rounding, as of a bias in front of a normalization."""
    sizes = {name: size_of(one) for name, one in original[1].items()}
    return {name for name, size in sizes.items() if size < most * max(sizes.values())}


def apart(found: Arrays, expected: Arrays, zeros: set[str]) -> tuple[float, float]:
    """Return the errors of the outputs, and of gradients and new state; a frozen parameter has no gradient."""
    slopes = {name: one for name, one in expected[1].items() if name in found[1]}
    state = {name: one for name, one in found[2].items() if name in expected[2]}
    others = [
        difference({name: found[1][name] for name in slopes}, slopes, zeros),
        difference(state, {name: expected[2][name] for name in state}),
    ]
    if _prove.difference_of_forms(*map(_prove.form_of, (found[0], expected[0]))):
        return float("inf"), max(others)
    return difference(*map(_graph.comparable, (found[0], expected[0]))), max(others)


def nudged(leaf: Any, seed: int) -> Any:
    """Return an input whose entries are rounded otherwise: each is a neighbour in its dtype, above or below."""
    if not np.issubdtype(leaf.dtype, np.floating):
        return leaf
    up = np.random.default_rng(seed).integers(0, 2, leaf.shape).astype(bool)
    return np.nextafter(leaf, np.where(up, np.inf, -np.inf).astype(leaf.dtype))


def measured(
    module: Any, name: str, dtype: str, training: bool = False, zeros: set[str] | None = None
) -> tuple[Any, float, Arrays, list[tuple[float, float]]]:
    """Return the port of a model, seconds of the trace, what the original computes, and the errors of each backend.

    In float32 the last errors are the original's own: what changes if its inputs are rounded otherwise, in one way, or
    in more where that does not explain the errors of the port. `zeros` are the gradients that are zero but for
    rounding; by default those that are so in the original. The arrays of one backend are dropped before the next one
    computes, since a large model has gigabytes of them.
    """
    model, inputs = module.made(name, dtype)
    start = time.process_time()
    port = porting.trace(model, *inputs, training=training, partial=True)
    seconds = time.process_time() - start
    found_dtypes = {str(leaf.dtype) for leaf in _weights.flat(port.params).values()}
    if found_dtypes != {dtype}:
        raise ValueError(f"parameters in {sorted(found_dtypes)} where {dtype} is wanted")
    drawn = port.inputs()
    args, keywords = port._arguments(drawn)
    options = {"keywords": keywords} if keywords else {}
    reader = _port._reader(model, inputs)
    original = reader.run(model, tuple(args), _prove.weights, training=training, **options)
    zeros = zeros_of(original, allowed_in_double(module, name)) if zeros is None else zeros
    distances = []
    for backend in multiop.available_backends():
        with multiop.use_backend(backend):
            compiled = backend == "jax"  # which otherwise compiles each op by itself, and that is most of the work
            distances.append(apart(_prove.compute_port(port, drawn, training, compiled=compiled), original, zeros))
    if dtype != "float32":
        return port, seconds, original, distances
    own = (0.0, 0.0)
    for seed in range(NUDGES):
        others = optree.tree_map(functools.partial(nudged, seed=seed), tuple(args))
        moved = apart(reader.run(model, others, _prove.weights, training=training, **options), original, zeros)
        own = (max(own[0], moved[0]), max(own[1], moved[1]))
        if max(map(max, distances)) <= allowed(own):
            break
    return port, seconds, original, [*distances, own]


def allowed_in_double(module: Any, name: str) -> float:
    """Return the largest error of a model in float64."""
    return SINGLE if name in getattr(module, "SINGLE", ()) else EXACT


def allowed(own: tuple[float, float]) -> float:
    """Return the largest error in float32, given what changes in the original if its inputs are rounded otherwise."""
    return max(UNITS * float(np.finfo("float32").eps), TIMES * max(own))


def row(module: Any, name: str) -> tuple[list[str], str]:
    """Return the cells of a model in the table, and what does not agree."""
    try:
        port, seconds, exact, doubles = measured(module, name, "float64")
    except (errors.TranslationError, errors.UnsupportedError) as error:
        return [f"refused: {error}"], ""
    if not any(np.abs(one).max(initial=0) > 0 for one in _graph.comparable(exact[0])):
        return [], "its outputs are zero"
    most = allowed_in_double(module, name)
    zeros, count = zeros_of(exact, most), len(exact[1])
    del exact
    if len(zeros) > count / 2:
        return [], f"{len(zeros)} of {count} gradients are zero"
    unit = float(np.finfo("float32").eps)
    rounded = measured(module, name, "float32", zeros=zeros)[-1]
    *single, moved = [(a / unit, b / unit) for a, b in rounded]
    units = allowed(rounded[-1]) / unit
    steps = measured(module, name, "float64", training=True)[-1]
    worst, worst_single = max(map(max, doubles + steps)), max(map(max, single))
    lines, original = len(port.source.splitlines()), sum(map(length, module.written_in(name)))
    wrong = [f"{worst}"] if worst > most else []
    wrong += [f"{worst_single} units in float32, of {units}"] if worst_single > units else []
    wrong += [f"a trace of {seconds:.0f} s"] if seconds > LONGEST else []
    wrong += [f"{lines} lines for {original}"] if lines >= original else []
    cells = [
        "{:.0e}, {:.0e} · {:.0f}, {:.0f} · {:.0e}".format(*a, *b, max(c))
        for a, b, c in zip(doubles, single, steps, strict=True)
    ]
    itself = "{:.0f}, {:.0f}".format(*moved) if any(moved) else "—"
    bridged = ", ".join(sorted(set(port.bridged))) or "—"
    sizes = [str(port.operations), str(lines), str(original), f"{seconds:.1f}", bridged]
    return [*sizes, *cells, itself], ", ".join(wrong)


def length(path: str) -> int:
    """Return the number of lines of a file."""
    return len(Path(path).read_text(encoding="utf-8").splitlines())


def table(chosen: list[str]) -> list[str]:
    """Port the models, and write each into the table; return what fails."""
    multiop.enable_x64()
    head = ["model", "operations", "lines", "of the original", "seconds", "bridged"]
    head += [*multiop.available_backends(), "rounding"]
    names = [f"{name} ({framework})" for framework in FRAMEWORKS for name in names_in(framework)]
    failed = []
    for framework in FRAMEWORKS:
        wanted = [one for one in names_in(framework) if not chosen or {one, framework} & set(chosen)]
        module = module_of(framework) if wanted else None
        for name in wanted:
            start = time.process_time()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    cells, wrong = row(module, name)
            except Exception as error:  # the next models are ported all the same
                traceback.print_exc(limit=4)
                cells, wrong = [], f"{type(error).__name__}: {error}"
            label = f"{name} ({framework})"
            print(label, *cells, f"{time.process_time() - start:.0f} s", wrong, sep=" | ", flush=True)
            if wrong:
                failed.append(f"{label}: {wrong}")
                continue
            rows = {line.split(" | ")[0].removeprefix("| "): line for line in written() if " (" in line}
            cells += [""] * (len(head) - 1 - len(cells))
            rows[label] = f"| {' | '.join([label, *cells])} |"
            lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
            write([*lines, *[rows[one] for one in names if one in rows]])
    return failed


def written() -> list[str]:
    """Return the lines of the table."""
    page = PAGE.read_text(encoding="utf-8")
    return page[page.index(BEGIN) + len(BEGIN) : page.index(END)].splitlines()


def write(lines: list[str]) -> None:
    """Put the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(page[:start] + "\n".join(lines) + "\n" + page[end:], encoding="utf-8")


def main(chosen: list[str]) -> None:
    """Port the models, and write the table; models that fail are listed, and the exit status is 1."""
    failed = table(chosen)
    print(*failed, sep="\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # each program runs once
    main(sys.argv[1:])
