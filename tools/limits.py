"""Write the tables of docs/limits.md: what an op answers where multiop leaves the answer to the framework.

python tools/limits.py            writes the tables; all three frameworks have to be installed
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
from tables import show_table

import multiop
from multiop import errors
from multiop.testing._results import version

PAGE = ROOT / "docs/limits.md"
BACKENDS = {"torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow", "numpy": "NumPy"}
START = "<!-- the table is made by tools/limits.py, do not edit -->"
END = "<!-- end of the table -->"
NAN, INF = math.nan, math.inf
SMALL_START = START.replace("the table is", "the table of small numbers is")
SMALL_END = "<!-- end of the table of small numbers -->"
SMALL = {  # 1e-40 is subnormal in float32, whose smallest normal number is 1.18e-38
    "op_sort([1e-40, 0, 2e-40])": lambda x: multiop.op_sort([1e-40, 0.0, 2e-40]),
    "op_argmax([0, 1e-40, 2e-40])": lambda x: multiop.op_argmax([0.0, 1e-40, 2e-40]),
    "op_unique([0, 1e-40])": lambda x: multiop.op_unique([0.0, 1e-40]),
    "op_count_nonzero([0, 1e-40])": lambda x: multiop.op_count_nonzero([0.0, 1e-40]),
    "op_maximum(0, 1e-40)": lambda x: multiop.op_maximum(x * 0.0, x),
    "1e-40 > 0": lambda x: x > 0.0,
    "1e-40 == 0": lambda x: multiop.op_equal(x, 0.0),
    "1e-40 + 0": lambda x: x + 0.0,
    "1e-40 * 1e10": lambda x: x * 1e10,
    "1e-30 * 1e-10": lambda x: multiop.op_convert_to_tensor(1e-30) * 1e-10,
    "op_abs(-1e-40)": lambda x: multiop.op_abs(-x),
    "op_sign(1e-40)": multiop.op_sign,
    "op_heaviside(1e-40, 0.5)": lambda x: multiop.op_heaviside(x, 0.5),
    "op_divide_no_nan(1e-40, 1e-40)": lambda x: multiop.op_divide_no_nan(x, x),
    "op_arctan2(1e-40, 1e-40)": lambda x: multiop.op_arctan2(x, x),
    "op_sqrt(1e-40)": multiop.op_sqrt,
    "op_log(1e-40)": multiop.op_log,
    "op_cast(1e-40, 'float64')": lambda x: multiop.op_cast(x, "float64"),
    "op_cast(float64(1 + 2**-8 + 2**-30), 'bfloat16')": lambda x: cast(1 + 2**-8 + 2**-30, "float64", "bfloat16"),
    "op_cast(float64(1 + 2**-11 + 2**-40), 'float16')": lambda x: cast(1 + 2**-11 + 2**-40, "float64", "float16"),
    "op_cast(int32(2**24 + 2**16 + 1), 'bfloat16')": lambda x: cast(2**24 + 2**16 + 1, "int32", "bfloat16"),
}
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


def cast(number: float, before: str, after: str) -> Any:
    """Return a number of one dtype in another, as a tensor on the active backend."""
    return multiop.op_cast(multiop.op_convert_to_tensor(number, before), after)


def small_table() -> list[str]:
    """Return the lines of the table of what becomes of small numbers, and of the digits that a cast cuts off."""
    lines = [f"| | {' | '.join(BACKENDS.values())} |", "|---|" + "---|" * len(BACKENDS)]
    found: dict[str, list[str]] = {name: [] for name in SMALL}
    multiop.enable_x64()
    for backend in BACKENDS:
        with multiop.use_backend(backend), np.errstate(all="ignore"):
            for name, compute in SMALL.items():
                y = multiop.op_convert_to_numpy(compute(multiop.op_convert_to_tensor(1e-40, "float32")))
                digits = ".10g" if "cast" in name else ".3g"
                found[name].append(" ".join(f"{x:{digits}}" for x in np.ravel(y).astype("float64")))
    multiop.enable_x64(False)
    return lines + [f"| `{name}` | {' | '.join(f'`{x}`' for x in row)} |" for name, row in found.items()]


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
    versions = ", ".join(f"{title} {version(name).partition('+')[0]}" for name, title in BACKENDS.items())
    measured = f"Measured on a CPU, in `float32`, eagerly, with {versions}, by `python tools/limits.py`."
    text = replace_between(text, START, END, [measured, "", *show_table("answers", table())])
    lines = [measured.replace(", in `float32`", ""), "", *show_table("small_numbers", small_table())]
    return replace_between(text, SMALL_START, SMALL_END, lines)


def replace_between(text: str, start: str, end: str, lines: list[str]) -> str:
    """Return a page with other lines between two comments."""
    before, _, rest = text.partition(start)
    return f"{before}{start}\n\n" + "\n".join(lines) + f"\n\n{end}{rest.partition(end)[2]}"


def main() -> None:
    """Write the page, or check it."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    elif PAGE.read_text(encoding="utf-8") != text:
        raise SystemExit("docs/limits.md is not current: run python tools/limits.py")


if __name__ == "__main__":
    main()
