"""Write the table of docs/limits.md: what an op answers where multiop leaves the answer to the framework.

python tools/limits.py            writes the table; all three frameworks have to be installed
python tools/limits.py --check    fails if an answer has changed
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
if importlib.util.find_spec("torch"):
    import torch  # noqa: F401, it comes before TensorFlow in one process

import numpy as np

import multiop
from multiop import errors
from multiop.testing._results import version

PAGE = ROOT / "docs/limits.md"
BACKENDS = {"torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow", "numpy": "NumPy"}
START = "<!-- the table is made by tools/limits.py, do not edit -->"
END = "<!-- end of the table -->"
NAN, INF = math.nan, math.inf
DOMAINS = ("activations", "elementwise", "special", "reduction", "normalization")
LOSSES = {
    "op_binary_crossentropy([0.0], x)": lambda x: multiop.op_binary_crossentropy([0.0], x),
    "op_binary_crossentropy([0.0], x, True)": lambda x: multiop.op_binary_crossentropy([0.0], x, True),
}
CLASSES = {
    "op_categorical_crossentropy([0.0, 1.0], x, True)": lambda x: multiop.op_categorical_crossentropy(
        [0, 1.0], x, True
    ),
    "op_sparse_categorical_crossentropy(1, x, True)": lambda x: multiop.op_sparse_categorical_crossentropy(1, x, True),
}


def ops() -> dict[str, tuple[Callable[..., Any], list[tuple[list[float], ...]]]]:
    """Return each op of one or two tensors with the operands at which it is asked: infinities, and NaN."""
    single = [([-INF],), ([INF],), ([NAN],)]
    pairs = [([INF], [1.0]), ([-INF], [1.0]), ([1.0], [INF]), ([INF], [INF]), ([-INF], [-INF]), ([NAN], [1.0])]
    rows = [([1.0, INF],), ([1.0, -INF],), ([-INF, -INF],), ([1.0, NAN],)]
    given: dict[str, tuple[Callable[..., Any], list[tuple[list[float], ...]]]] = {}
    for domain in DOMAINS:
        module = importlib.import_module(f"multiop.frontends.{domain}")
        for name, op in vars(module).items():
            if not name.startswith("op_") or op.__module__ != module.__name__:
                continue
            parameters = inspect.signature(op).parameters
            required = [
                p.name for p in parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
            ]
            if required == ["x"]:
                given[name] = op, rows if "axis" in parameters else single
            elif required == ["x1", "x2"]:
                given[name] = op, pairs
    given["op_gelu(x, approximate=False)"] = lambda x: multiop.op_gelu(x, approximate=False), single
    return given | {k: (f, single) for k, f in LOSSES.items()} | {k: (f, rows) for k, f in CLASSES.items()}


def answer(op: Callable[..., Any], xs: tuple[list[float], ...]) -> tuple[str, str]:
    """Return the value, and the gradient of its sum, on the active backend, as text; nothing of a value without one."""
    tensors = [multiop.op_convert_to_tensor(x, "float32") for x in xs]
    try:
        y = op(*tensors)
    except errors.DTypeError:  # an op of integers
        return "", ""
    if not multiop.op_is_tensor(y) or multiop.op_dtype(y) != "float32":
        return "", ""
    y, pullback = multiop.vjp(op, *tensors)
    return told([y]), told(pullback(multiop.op_ones_like(y)))


def told(xs: Any) -> str:
    """Return small tensors as short text: a 0 without its sign, since NaN and infinity are what matters."""
    arrays = [np.ravel(multiop.op_convert_to_numpy(x)) for x in xs]
    return ", ".join(" ".join(f"{x + 0.0:.3g}" for x in array) for array in arrays)


def asked(xs: tuple[list[float], ...]) -> str:
    """Return operands as text."""
    return ", ".join("[" + ", ".join(f"{x:g}" for x in each) + "]" if len(each) > 1 else f"{each[0]:g}" for each in xs)


def table() -> list[str]:
    """Return the lines of the table: ops that answer alike share a row."""
    found: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    every = {backend: answers_on(backend) for backend in BACKENDS}
    for name, xs in every["torch"]:
        for k, what in enumerate(("value", "gradient")):
            answers = tuple(every[backend][name, xs][k] for backend in BACKENDS)
            if len(set(answers)) > 1:
                found.setdefault((what, xs, answers), []).append(f"`{name}`")
    lines = [f"| ops | of | at | {' | '.join(BACKENDS.values())} |", "|---|---|---|" + "---|" * len(BACKENDS)]
    for (what, xs, answers), names in sorted(found.items(), key=lambda row: (row[0][0] == "gradient", row[0][1])):
        lines.append(f"| {', '.join(names)} | {what} | `{xs}` | {' | '.join(f'`{x}`' for x in answers)} |")
    return lines


def answers_on(backend: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Return all answers of a backend."""
    with multiop.use_backend(backend), np.errstate(all="ignore"):
        return {(name, asked(xs)): answer(op, xs) for name, (op, every) in ops().items() for xs in every}


def page() -> str:
    """Return the page with the table as it is now."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    versions = ", ".join(f"{title} {version(name).partition('+')[0]}" for name, title in BACKENDS.items())
    measured = f"Measured on a CPU, in `float32`, eagerly, with {versions}, by `python tools/limits.py`."
    return f"{before}{START}\n\n{measured}\n\n" + "\n".join(table()) + f"\n\n{END}{after}"


def main() -> None:
    """Write the page, or check it."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    elif PAGE.read_text(encoding="utf-8") != text:
        raise SystemExit("docs/limits.md is not current: run python tools/limits.py")


if __name__ == "__main__":
    main()
