"""Write the table of docs/random.md: 10^6 draws of each kind in each dtype, on every backend, against each other.

python tools/random_table.py                          writes the table; all three frameworks have to be installed
python tools/random_table.py --compiled               compiles the draws, too
python tools/random_table.py --only gamma             compares draws with that text in their name; writes nothing
"""

from __future__ import annotations

import importlib.util
import os
import re
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
from multiop import random
from multiop.testing._results import version

PAGE = ROOT / "docs/random.md"
START, END = "<!-- made by tools/random_table.py -->", "<!-- end of the table -->"
BACKENDS = {"torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}
N = 10**6
SEED = 2**40 + 7
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
LARGEST = {dtype: int(np.iinfo(dtype).max) for dtype in INTEGERS}

# what is drawn -> its dtypes, and the draw
DRAWS: dict[str, tuple[tuple[str, ...], Callable[[Any, str], Any]]] = {
    "uniform": (FLOATS, lambda key, dtype: random.uniform((N,), dtype=dtype, seed=key)),
    "uniform, from -3 to 7": (FLOATS, lambda key, dtype: random.uniform((N,), -3.0, 7.0, dtype, key)),
    "normal": (FLOATS, lambda key, dtype: random.normal((N,), dtype=dtype, seed=key)),
    "normal, mean 2, deviation 3": (FLOATS, lambda key, dtype: random.normal((N,), 2.0, 3.0, dtype, key)),
    "complex normal": (COMPLEX, lambda key, dtype: random.normal((N,), dtype=dtype, seed=key)),
    "truncated_normal": (FLOATS, lambda key, dtype: random.truncated_normal((N,), dtype=dtype, seed=key)),
    "exponential": (FLOATS, lambda key, dtype: random.exponential((N,), dtype=dtype, seed=key)),
    "gumbel": (FLOATS, lambda key, dtype: random.gumbel((N,), dtype=dtype, seed=key)),
    "laplace": (FLOATS, lambda key, dtype: random.laplace((N,), dtype=dtype, seed=key)),
    "gamma, 0.4": (FLOATS, lambda key, dtype: random.gamma((N,), 0.4, dtype, key)),
    "gamma, 2.5": (FLOATS, lambda key, dtype: random.gamma((N,), 2.5, dtype, key)),
    "beta, 0.5 and 2": (FLOATS, lambda key, dtype: random.beta((N,), 0.5, 2.0, dtype, key)),
    "binomial, 9 times 0.3": (FLOATS, lambda key, dtype: random.binomial((N,), 9, 0.3, dtype, key)),
    "binomial, 1000 times 0.4": (FLOATS, lambda key, dtype: random.binomial((N,), 1000, 0.4, dtype, key)),
    "poisson, 3": (FLOATS, lambda key, dtype: random.poisson((N,), 3.0, dtype, key)),
    "poisson, 400": (FLOATS, lambda key, dtype: random.poisson((N,), 400.0, dtype, key)),
    "multinomial": (
        FLOATS,
        lambda key, dtype: random.multinomial((N // 4,), 40, [0.1, 0.2, 0.3, 0.4], dtype, key),
    ),
    "randint, 100 numbers": (INTEGERS, lambda key, dtype: random.randint((N,), 0, 100, dtype, key)),
    "randint, all numbers": (INTEGERS, lambda key, dtype: random.randint((N,), *bounds(dtype), dtype, key)),
    "randint, above a tensor": (INTEGERS, lambda key, dtype: random.randint((N,), lows(dtype), 101, dtype, key)),
    "categorical": (
        ("int32", "int64"),
        lambda key, dtype: random.categorical([[0.0, -1.0, 0.5, 2.0]], N, dtype, key),
    ),
    "dropout": (FLOATS, lambda key, dtype: random.dropout(multiop.op_ones((N,), dtype), 0.3, seed=key)),
    "shuffle": (("int32",), lambda key, dtype: random.shuffle(multiop.op_arange(N, dtype=dtype), seed=key)),
    "shuffle_along_axis": (
        ("int32",),
        lambda key, dtype: random.shuffle_along_axis(
            multiop.op_reshape(multiop.op_arange(N, dtype=dtype), (1000, 1000)), 1, key
        ),
    ),
    "split": (("uint32",), lambda key, dtype: random.split(key, N // 2)),
    "fold_in": (("uint32",), lambda key, dtype: multiop.vmap(lambda i: random.fold_in(key, i))(multiop.op_arange(N))),
}  # fmt: skip


def bounds(dtype: str) -> tuple[int, int]:
    """Return the bounds of all integers of a dtype."""
    return int(np.iinfo(dtype).min), LARGEST[dtype] + 1


def lows(dtype: str) -> Any:
    """Return a tensor of lower bounds."""
    return multiop.op_cast(multiop.op_arange(N) % 100, dtype)


def drawn(draw: Callable[[Any, str], Any], dtype: str, compiled: bool) -> dict[str, Any]:
    """Return the numbers of each backend, as NumPy arrays."""
    found = {}
    for backend in BACKENDS:
        with multiop.use_backend(backend):
            key = random.key(SEED)
            f = (lambda key: draw(key, dtype)) if not compiled else multiop.jit(lambda key: draw(key, dtype))
            found[backend] = multiop.op_convert_to_numpy(f(key))
    return found


def ulps(x: Any, y: Any) -> float:
    """Return the largest difference of two arrays in units in the last place; 0 if they have the same bits."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return float("inf")
    if x.tobytes() == y.tobytes():
        return 0.0
    if x.dtype.kind in "iu":
        return float("inf")
    wide = [one.astype("float64") for one in (x, y)]
    return float(np.max(np.abs(wide[0] - wide[1]) / np.spacing(np.abs(x)).astype("float64")))


def row(name: str, modes: list[bool]) -> str:
    """Return the row of one draw, without its name."""
    dtypes, draw = DRAWS[name]
    worst = 0.0
    for dtype in dtypes:
        first = None
        for compiled in modes:
            for backend, x in drawn(draw, dtype, compiled).items():
                first = x if first is None else first
                found = ulps(first, x)
                if found:
                    print(f"{name}, {dtype}, {backend}{', compiled' if compiled else ''}: {found} ulp", flush=True)
                worst = max(worst, found)
    told = "the same bits" if worst == 0 else f"{worst:.0f} ulp"
    return f"{', '.join(f'`{dtype}`' for dtype in dtypes)} | {told}"


def main() -> None:
    """Draw, compare, and write the table."""
    multiop.enable_x64()
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    modes = [False, True] if "--compiled" in sys.argv else [False]
    alike: dict[str, list[str]] = {}
    for name in DRAWS:
        if only in name:
            rest = row(name, modes)
            alike.setdefault(rest, []).append(name)
            print(name, rest, sep=" | ", flush=True)
    rows = [f"| {'; '.join(names)} | {rest} |" for rest, names in alike.items()]
    versions = ", ".join(f"{title} {version(name)}" for name, title in BACKENDS.items())
    table = [
        START,
        f"Seed {SEED}, on a CPU, {'eager and compiled' if len(modes) == 2 else 'eager'}: {versions}.",
        "",
        "| draw | dtypes | the three backends agree to |",
        "|---|---|---|",
        *rows,
        END,
    ]
    if not only:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text[: text.index(START)], text[text.index(END) + len(END) :]
        PAGE.write_text(before + "\n".join(table) + after, encoding="utf-8")
    if any(re.search(r"\| (inf|[1-9]\d*) ulp \|$", line) and not re.search(r"\| [12] ulp \|$", line) for line in rows):
        sys.exit("draws differ by more than two units in the last place")


if __name__ == "__main__":
    main()
