"""Write docs/meeting.md: what happens to an array that one library makes and another one takes.

python tools/meeting.py            writes the page; NumPy, PyTorch, JAX and TensorFlow have to be installed
python tools/meeting.py --check    fails if an answer has changed
"""

from __future__ import annotations

import collections
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np

PAGE = ROOT / "docs/meeting.md"
LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}
DTYPES = ("bool", "int8", "int64", "uint16", "float16", "bfloat16", "float64", "complex64", "float8_e5m2", "int4")
DIED = "**ends the process**"
INTRODUCTION = """<!-- made by tools/meeting.py, do not edit -->
# Where libraries meet

An array of one library becomes an array of another by DLPack (`from_dlpack`), which is meant to share memory, or by the
conversion of the library that takes it (`numpy.asarray`, `torch.as_tensor`, `jax.numpy.asarray`,
`tf.convert_to_tensor`). The libraries alone gave these answers, without multiop: *shared* is memory in common, so you
see a write on the other side; *copied* is memory of its own; *taken* is one of the two, of an array that does not say
where it is; a name such as *TypeError* is an exception. NumPy's arrays are at a multiple of 64 bytes here, as PyTorch's
always are: elsewhere, JAX copies them. TensorFlow takes `x.__dlpack__()`. JAX's 64-bit mode is off.

With multiop, an array crosses by `op_convert_to_numpy` and `op_convert_to_tensor`, by `from_dlpack` of [its namespace
of the standard](array_api.md), and, with its gradient, by [`porting.bridge`](porting.md). If you give an op a tensor of
another framework, it raises a `ForeignTensorError`. Weights in files keep every dtype of the format, or are refused by
name: [Load weights](howto/weights.md).
"""
TREES = """## Containers

Which objects are containers, and the order of their leaves. multiop has the same rule on every backend: tuples, lists,
dicts, named tuples, `OrderedDict`, `defaultdict`, `deque`, and classes registered with multiop, JAX, PyTorch or optree
are containers; all else is a leaf, `None` and arrays too. Keys of a dict and of a `defaultdict` are sorted, those of an
`OrderedDict` are not; keys of several classes, which do not sort, are sorted within each class.
"""


def make(library: str, dtype: str = "float32", shape: tuple[int, ...] = (2, 3)) -> Any:
    """Return an array of a library whose memory nobody else has; not all of them have each dtype."""
    ones = np.ones(shape)
    if library == "numpy":
        ml_dtypes = importlib.import_module("ml_dtypes")
        return aligned(ones.astype(getattr(ml_dtypes, dtype, dtype)))
    if library == "torch":
        torch = importlib.import_module("torch")
        return torch.ones(shape).to(getattr(torch, dtype))
    if library == "jax":
        jnp = importlib.import_module("jax.numpy")
        return jnp.ones(shape, getattr(jnp, "bool_" if dtype == "bool" else dtype))
    tf = importlib.import_module("tensorflow")
    return tf.cast(tf.ones(shape), getattr(tf, dtype, None) or getattr(tf.dtypes.experimental, dtype))


def aligned(x: Any, offset: int = 0) -> Any:
    """Return a copy of an array, `offset` bytes after a multiple of 64: some libraries share memory there alone."""
    memory = np.empty(x.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    y = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    y[...] = x
    return y


def by_dlpack(library: str, x: Any) -> Any:
    """Take an array by DLPack, in the library's own way."""
    if library == "numpy":
        return np.from_dlpack(x)
    if library == "torch":
        return importlib.import_module("torch").from_dlpack(x)
    if library == "jax":
        return importlib.import_module("jax.numpy").from_dlpack(x)
    return importlib.import_module("tensorflow").experimental.dlpack.from_dlpack(x.__dlpack__())


def by_conversion(library: str, x: Any) -> Any:
    """Take an array by the library's own conversion."""
    if library == "numpy":
        return np.asarray(x)
    if library == "torch":
        return importlib.import_module("torch").as_tensor(x)
    if library == "jax":
        return importlib.import_module("jax.numpy").asarray(x)
    return importlib.import_module("tensorflow").convert_to_tensor(x)


def address(x: Any) -> int:
    """Return where the first entry of an array is in memory."""
    if isinstance(x, np.ndarray):
        return int(x.ctypes.data)
    if hasattr(x, "data_ptr"):
        return int(x.data_ptr())
    if hasattr(x, "unsafe_buffer_pointer"):
        return int(x.unsafe_buffer_pointer())
    return int(np.from_dlpack(x).ctypes.data)


def shares(x: Any, y: Any) -> str:
    """Say whether two arrays have one memory, if they say where it is."""
    try:
        return "shared" if address(x) == address(y) else "copied"
    except Exception:
        return "taken"


def taken(take: Callable[[str, Any], Any], library: str, x: Any) -> str:
    """Return what became of an array."""
    y = take(library, x)
    answer = shares(x, y) if 0 not in x.shape else "taken"
    before, after = (str(each.dtype).rpartition(".")[2].strip("<>' ").removeprefix("dtype: '") for each in (x, y))
    changed = [f"of shape {tuple(y.shape)}"] * (tuple(y.shape) != tuple(x.shape))
    changed += [f"as {after}"] * (before != after and {before, after} not in ({"bool_", "bool"},))
    return ", ".join([answer, *changed])


def write_is_seen(source: str, target: str) -> str:
    """Write into what was handed over; say whether the array that was taken has changed."""
    if source in ("jax", "tensorflow"):
        return "cannot be written"
    x = make(source)
    y = by_dlpack(target, x)
    x[0, 0] = 7.0
    return "seen" if float(np.asarray(y)[0, 0]) == 7.0 else "not seen"


def write_back(source: str, target: str) -> str:
    """Write into what was taken; say whether the array that was handed over has changed."""
    if target in ("jax", "tensorflow"):
        return "cannot be written"
    x = make(source)
    y = by_dlpack(target, x)
    y[0, 0] = 7.0
    return "seen" if float(np.asarray(x)[0, 0]) == 7.0 else "not seen"


def gradient(source: str, target: str) -> str:
    """Say what becomes of a gradient that ought to go through the conversion."""
    if source == "numpy":
        return "none"
    if source == "torch":
        x = make(source).requires_grad_()
        y = by_conversion(target, x)
        return "carried" if getattr(y, "requires_grad", False) else "ends in silence"
    if source == "jax":
        jax = importlib.import_module("jax")
        jax.grad(lambda x: float(np.sum(np.asarray(by_conversion(target, x)))))(make(source))
        return "ends in silence"
    tf = importlib.import_module("tensorflow")
    x = make(source)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.convert_to_tensor(np.asarray(by_conversion(target, x)))
    return "ends in silence" if tape.gradient(y, x) is None else "carried"


def transposed(library: str) -> Any:
    """Return an array whose entries are not in the order of its memory, where the library has such."""
    return make(library).T if library in ("numpy", "torch") else None


def special(library: str, kind: str) -> Any:
    """Return an array of a kind that this library alone has; else `None`."""
    x = make(library)
    if library == "numpy":
        x.flags.writeable = kind != "read-only"
        return {"read-only": x, "reversed": x[::-1], "one byte on": aligned(x, 1)}.get(kind)
    if library == "torch":
        torch = importlib.import_module("torch")
        return {
            "conjugate": torch.ones(3, dtype=torch.complex64).conj(),
            "requires a gradient": x.requires_grad_(),
        }.get(kind)
    return None


def rows() -> dict[str, Callable[[str, str], str]]:
    """Return the questions, by what they are about."""

    def of(kind: str) -> Callable[[str, str], str]:
        def ask(source: str, target: str) -> str:
            x = special(source, kind)
            return "" if x is None else taken(by_dlpack, target, x)

        return ask

    found: dict[str, Callable[[str, str], str]] = {
        "`from_dlpack`": lambda source, target: taken(by_dlpack, target, make(source)),
        "its own conversion": lambda source, target: taken(by_conversion, target, make(source)),
        "a write into what was handed over": write_is_seen,
        "a write into what was taken": write_back,
        "a gradient, by its own conversion": gradient,
        "transposed": lambda s, t: "" if transposed(s) is None else taken(by_dlpack, t, transposed(s)),
        "shape ()": lambda source, target: taken(by_dlpack, target, make(source, shape=())),
        "shape (0, 3)": lambda source, target: taken(by_dlpack, target, make(source, shape=(0, 3))),
        "9 dimensions": lambda source, target: taken(by_dlpack, target, make(source, shape=(1,) * 9)),
    }
    found |= {kind: of(kind) for kind in ("read-only", "reversed", "one byte on", "conjugate", "requires a gradient")}
    found |= {f"`{d}`": lambda s, t, d=d: taken(by_dlpack, t, make(s, d)) for d in DTYPES}  # type: ignore[misc]
    return found


def answer(source: str, target: str, ask: Callable[[str, str], str]) -> str:
    """Return the answer to a question, an exception by its name."""
    try:
        return ask(source, target)
    except Exception as error:
        return f"*{type(error).__name__}*"


def measure(source: str, target: str, first: int) -> None:
    """Print the answers of a pair from a row on, each before the next is asked for: one may end the process."""
    for name in ("torch", "jax", "tensorflow"):
        if name in (source, target):
            importlib.import_module(name)
    for ask in list(rows().values())[first:]:
        print(json.dumps(answer(source, target, ask)), flush=True)


def run_pair(source: str, target: str) -> list[str]:
    """Return all answers of a pair; where one has ended the process, a new one goes on."""
    found: list[str] = []
    while len(found) < len(rows()):
        command = [sys.executable, __file__, "--measure", source, target, str(len(found))]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        found += [json.loads(line) for line in process.stdout.splitlines() if line.startswith('"')]
        if len(found) < len(rows()):
            found.append(DIED)
    return found


def trees() -> list[str]:
    """Return the lines of the table of containers."""
    importlib.import_module("torch")
    multiop, jax, optree = (importlib.import_module(name) for name in ("multiop", "jax", "optree"))
    torch, tf = importlib.import_module("torch.utils._pytree"), importlib.import_module("tensorflow")
    flatten: dict[str, Callable[[Any], list[Any]]] = {
        "multiop": multiop.tree.leaves,
        "JAX": jax.tree.leaves,
        "optree": optree.tree_leaves,
        "PyTorch": torch.tree_leaves,
        "`tf.nest`": tf.nest.flatten,
    }
    if importlib.util.find_spec("keras"):
        flatten["Keras"] = importlib.import_module("keras").tree.flatten
    given = {
        "`{'b': 1, 'a': 2}`": {"b": 1, "a": 2},
        "`OrderedDict(b=1, a=2)`": collections.OrderedDict(b=1, a=2),
        "`defaultdict(int, b=1, a=2)`": collections.defaultdict(int, b=1, a=2),
        "`{1: 1, 'a': 2}`": {1: 1, "a": 2},
        "`deque([1, 2])`": collections.deque([1, 2]),
        "`(None, 1)`": (None, 1),
        "`{1}`, a set": {1},
        "`range(2)`": range(2),
        "`array([1, 2])`": np.array([1, 2]),
    }
    lines = [f"| | {' | '.join(flatten)} |", "|---|" + "---|" * len(flatten)]
    for name, tree in given.items():
        found = [answer("", "", lambda *_, f=f, tree=tree: f"`{f(tree)}`") for f in flatten.values()]  # type: ignore[misc]
        lines.append(f"| {name} | {' | '.join(found)} |")
    return lines


def page() -> str:
    """Return the text of the page."""
    version = importlib.import_module("multiop.testing._results").version
    versions = ", ".join(f"{title} {version(name).partition('+')[0]}" for name, title in LIBRARIES.items())
    lines = [INTRODUCTION, f"Measured on a CPU with {versions}, by `python tools/meeting.py`.", ""]
    for target, title in LIBRARIES.items():
        sources = [name for name in LIBRARIES if name != target]
        found = [run_pair(source, target) for source in sources]
        lines += [f"## {title} takes", "", f"| | {' | '.join(f'from {LIBRARIES[name]}' for name in sources)} |"]
        lines.append("|---|" + "---|" * len(sources))
        alike: dict[tuple[str, ...], list[str]] = {}
        for name, answers in zip(rows(), zip(*found, strict=True), strict=True):
            if any(answers):  # else no library but the one that takes it has such an array
                alike.setdefault(answers, []).append(name)
        lines += [f"| {', '.join(names)} | {' | '.join(answers)} |" for answers, names in alike.items()]
        lines.append("")
    return "\n".join([*lines, TREES, *trees()]) + "\n"


def main() -> None:
    """Write the page, or check it."""
    if "--measure" in sys.argv[1:]:
        source, target, first = sys.argv[2:]
        return measure(source, target, int(first))
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        raise SystemExit("docs/meeting.md is not current: run python tools/meeting.py")
    return None


if __name__ == "__main__":
    main()
