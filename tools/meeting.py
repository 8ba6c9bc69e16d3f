"""Write docs/meeting.md: what happens to an array that one library makes and another one takes.

python tools/meeting.py            writes the page; NumPy, PyTorch, JAX and TensorFlow have to be installed
python tools/meeting.py --check    fails if an answer has changed

What was measured of a library that is not installed here stays as it is: MLX, pandas, ONNX, flax, dm-tree.
"""

from __future__ import annotations

import collections
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np
from tables import show_table

PAGE = ROOT / "docs/meeting.md"
LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}
DTYPES = ("bool", "int8", "int64", "uint16", "float16", "bfloat16", "float64", "complex64", "float8_e5m2", "int4")
GUESTS = {  # each has a section of its own: the package, and the title
    "ml_dtypes": ("ml_dtypes", "ml_dtypes"),
    "mlx": ("mlx", "MLX's CPU build"),
    "pandas": ("pandas", "pandas"),
    "safetensors": ("safetensors", "safetensors"),
    "scipy": ("scipy", "SciPy"),
    "scipy_array_api": ("scipy", "SciPy's array API"),
    "onnx": ("onnx", "ONNX's reference"),
    "onnxruntime": ("onnxruntime", "onnxruntime"),
}
DIED = "**ends the process**"
INTRODUCTION = """<!-- made by tools/meeting.py, do not edit -->
# Where libraries meet

An array of one library becomes an array of another by DLPack (`from_dlpack`), which is meant to share memory, or by the
conversion of the taking library (`numpy.asarray`, `torch.as_tensor`, `jax.numpy.asarray`, `tf.convert_to_tensor`). The
libraries alone gave these answers, without multiop: *shared* is memory in common, so you see a write on the other side;
*copied* is memory of its own; *taken* is one of the two, of an array that does not say where it is; a name such as
*TypeError* is an exception. NumPy's arrays are at a multiple of 64 bytes here, as PyTorch's always are: elsewhere, JAX
copies them. TensorFlow takes `x.__dlpack__()`. JAX's 64-bit mode is off.

Other libraries follow: which dtypes of ml_dtypes each takes by its own conversion, and where the result of a function
of SciPy lives, without and with `SCIPY_ARRAY_API=1`.

With multiop, an array crosses by `op_convert_to_numpy` and `op_convert_to_tensor`, by `from_dlpack` of [its namespace
of the standard](array_api.md), and, with its gradient, by [`porting.bridge`](porting.md#half-foreign-half-ported). An
op refuses a tensor of another framework with a `ForeignTensorError`. [Weights in files](howto/weights.md) keep every
dtype of the format, or are refused by name.
"""
TREES = """## Containers

Which objects are containers, and the order of their leaves. multiop has the same rule on every backend: tuples, lists,
dicts, named tuples, `OrderedDict`, `defaultdict`, `deque`, and classes registered with multiop, JAX, PyTorch or optree
are containers; all else is a leaf, `None` and arrays too. Keys of a dict and of a `defaultdict` are sorted, those of an
`OrderedDict` are not; keys of several classes, which do not sort, are sorted within each class, and JAX compiles no
function that returns such a dict. Other containers, subclasses of these too, are refused where they hold tensors, which
would stay in them unnoticed.
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


# libraries beside the four


def kind(x: Any) -> str:
    """Return where the class of an array is from, and its dtype."""
    owner = type(x).__module__.partition(".")[0].replace("jaxlib", "jax").replace("builtins", type(x).__name__)
    dtype = str(getattr(x, "dtype", "")).rpartition(".")[2].strip("<>' ").removeprefix("dtype: '")
    return f"{LIBRARIES.get(owner, owner)} {dtype}".strip()


def rows_of_ml_dtypes() -> dict[str, Callable[[str, str], str]]:
    """Return the questions about NumPy's arrays of the dtypes of ml_dtypes: what each library makes of them."""
    ml_dtypes = importlib.import_module("ml_dtypes")

    def ask(dtype: str) -> Callable[[str, str], str]:
        def convert(source: str, _: str) -> str:
            y = by_conversion(source, aligned(np.ones((2, 3), getattr(ml_dtypes, dtype))))
            found = kind(y).partition(" ")[2]
            return "taken" if found == dtype else f"as {found}"

        return convert

    names = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2")
    return {f"`{name}`": ask(name) for name in names}


def rows_of_mlx() -> dict[str, Callable[[str, str], str]]:
    """Return the questions about MLX."""
    mx = importlib.import_module("mlx.core")

    def write_back(source: str, _: str) -> str:
        x = mx.ones((2, 3))
        y = by_dlpack(source, x)
        if source in ("jax", "tensorflow"):
            return "cannot be written"
        y[0, 0] = 7.0
        return "seen" if float(np.array(x)[0, 0]) == 7.0 else "not seen"

    def gradient(source: str, _: str) -> str:
        mx.grad(lambda x: mx.array(np.asarray(by_conversion(source, x))).sum())(mx.ones((2, 3)))
        return "ends in silence"

    found: dict[str, Callable[[str, str], str]] = {
        "`mlx.core.array(x)`": lambda s, _: taken(lambda _, x: mx.array(x), "", make(s)),
        "`from_dlpack` of its array": lambda s, _: shares(x := mx.ones((2, 3)), by_dlpack(s, x)),
        "conversion of its array": lambda s, _: f"{shares(x := mx.ones((2, 3)), y := by_conversion(s, x))}, {kind(y)}",
        "a write into what was taken from it": write_back,
        "a gradient, by conversion": gradient,
        "its array of `bfloat16`": lambda s, _: kind(by_conversion(s, mx.ones((2, 3), mx.bfloat16))),
        "shape ()": lambda s, _: taken(lambda _, x: mx.array(x), "", make(s, shape=())),
        "shape (0, 3)": lambda s, _: taken(lambda _, x: mx.array(x), "", make(s, shape=(0, 3))),
        "transposed": lambda s, _: "" if transposed(s) is None else equal(mx.array(transposed(s)), transposed(s)),
        "reversed": lambda s, _: "" if s != "numpy" else equal(mx.array(special(s, "reversed")), make(s)),
    }
    return found | {f"`{d}`": lambda s, _, d=d: kind(mx.array(make(s, d))).partition(" ")[2] for d in DTYPES}  # type: ignore[misc]


def equal(x: Any, y: Any) -> str:
    """Say whether two arrays have the same entries."""
    return "the same" if np.array_equal(np.array(x), np.array(y)) else "**others**"


def rows_of_pandas() -> dict[str, Callable[[str, str], str]]:
    """Return the questions about pandas."""
    pd = importlib.import_module("pandas")

    def series(source: str, dtype: str) -> Any:
        return pd.Series(make(source, dtype, (3,)))

    def converted(values: Any, dtype: Any = None) -> Callable[[str, str], str]:
        return lambda s, _: kind(by_conversion(s, pd.Series(values, dtype=dtype)))

    def share(source: str, _: str) -> str:
        x = pd.Series(make("numpy", shape=(3,)))
        return shares(np.asarray(x), by_conversion(source, x))

    def write(source: str, _: str) -> str:
        if source in ("jax", "tensorflow"):
            return "cannot be written"
        x = pd.Series(make("numpy", shape=(3,)))
        by_conversion(source, x)[0] = 7.0
        return "seen" if x[0] == 7.0 else "not seen"

    return {
        "`Series(x)`": lambda s, _: str(series(s, "float32").dtype),
        "`Series(x)` of `bfloat16`": lambda s, _: str(series(s, "bfloat16").dtype),
        "`DataFrame(x)`": lambda s, _: " ".join(sorted({str(d) for d in pd.DataFrame(make(s)).dtypes})),
        "memory of a `Series`, by conversion": share,
        "a write into what was taken of a `Series`": write,
        "a `Series` of floats": converted([1.5, 2.5]),
        "of `Float32` with a missing entry": converted([1.5, None], "Float32"),
        "of `Int64`": converted([1, 2], "Int64"),
        "of `Int64` with a missing entry": converted([1, None], "Int64"),
        "of `boolean` with a missing entry": converted([True, None], "boolean"),
        "of categories of integers": converted([1, 2], "category"),
        "of dates": converted(pd.to_datetime(["2020-01-01"])),
        "of strings": converted(["a"]),
    }


def rows_of_safetensors() -> dict[str, Callable[[str, str], str]]:
    """Return the questions about safetensors: what a tensor is that was saved by the library's own functions."""

    def back(source: str, x: Any) -> str:
        module = importlib.import_module(f"safetensors.{'flax' if source == 'jax' else source}")
        y = module.load(module.save({"x": x}))["x"]
        if tuple(y.shape) != tuple(x.shape):
            return f"**of shape {tuple(y.shape)}**"
        if kind(y) != kind(x):
            return f"as {kind(y).partition(' ')[2]}"
        return equal(y.float() if source == "torch" else y, x.float() if source == "torch" else x)

    def turned(source: str, _: str) -> str:
        x = transposed(source)
        if x is not None:
            x[...] = type(x)(np.arange(6).reshape(3, 2)) if source == "torch" else np.arange(6).reshape(3, 2)
        return "" if x is None else back(source, x)

    def shared(source: str, _: str) -> str:
        module = importlib.import_module(f"safetensors.{'flax' if source == 'jax' else source}")
        x = make(source)
        return "twice" if len(module.load(module.save({"x": x, "y": x}))) == 2 else "once"

    found: dict[str, Callable[[str, str], str]] = {
        "transposed": turned,
        "one tensor by two names": shared,
        "shape ()": lambda s, _: back(s, make(s, shape=())),
        "shape (0, 3)": lambda s, _: back(s, make(s, shape=(0, 3))),
    }
    return found | {f"`{d}`": lambda s, _, d=d: back(s, make(s, d)) for d in DTYPES}  # type: ignore[misc]


def rows_of_scipy() -> dict[str, Callable[[str, str], str]]:
    """Return the questions about SciPy: what a function returns of an array, and whether its gradient is carried."""

    def ask(name: str) -> Callable[[str, str], str]:
        module, _, function = name.rpartition(".")
        call = getattr(importlib.import_module(f"scipy.{module}"), function)
        more = {"gaussian_filter": (1.0,), "solve": (np.eye(3, dtype="float32"),)}.get(function, ())

        def run(source: str, _: str) -> str:
            x = make(source, shape=(3, 3)) + (by_conversion(source, np.eye(3, dtype="float32")))
            return kind(call(x, *(by_conversion(source, a) if isinstance(a, np.ndarray) else a for a in more)))

        return run

    def gradient(source: str, _: str) -> str:
        call = importlib.import_module("scipy.special").logsumexp
        if source == "numpy":
            return "none"
        if source == "torch":
            y = call(make(source).requires_grad_())
            return "carried" if getattr(y, "requires_grad", False) else "ends in silence"
        if source == "jax":
            importlib.import_module("jax").grad(call)(make(source))
            return "carried"
        tf = importlib.import_module("tensorflow")
        x = make(source)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.convert_to_tensor(call(x))
        return "ends in silence" if tape.gradient(y, x) is None else "carried"

    names = ("special.logsumexp", "special.gammaln", "stats.skew", "ndimage.gaussian_filter", "linalg.solve")
    return {f"`{name}`": ask(name) for name in names} | {"a gradient of `special.logsumexp`": gradient}


def rows_of_onnx(is_reference: bool) -> dict[str, Callable[[str, str], str]]:
    """Return the questions about ONNX: what comes out of a graph that returns its input, which is fed as it is."""
    onnx = importlib.import_module("onnx")

    def run(source: str, x: Any, dtype: str = "float32") -> str:
        number = getattr(onnx.TensorProto, ONNX_NAMES.get(dtype, dtype.upper()))
        values = [onnx.helper.make_tensor_value_info(name, number, tuple(x.shape)) for name in "xy"]
        graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:])
        opsets = [onnx.helper.make_opsetid("", 21)]
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
        if is_reference:
            y = importlib.import_module("onnx.reference").ReferenceEvaluator(model).run(None, {"x": x})[0]
        else:
            onnxruntime = importlib.import_module("onnxruntime")
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            y = session.run(None, {"x": x})[0]
        same = shares(x, y) if is_reference and 0 not in x.shape else "taken"
        return f"{same}, {kind(y)}"

    found: dict[str, Callable[[str, str], str]] = {
        "its array": lambda s, _: run(s, make(s)),
        "transposed": lambda s, _: "" if transposed(s) is None else run(s, transposed(s)),
        "reversed": lambda s, _: "" if s != "numpy" else run(s, special(s, "reversed")),
        "shape ()": lambda s, _: run(s, make(s, shape=())),
        "shape (0, 3)": lambda s, _: run(s, make(s, shape=(0, 3))),
    }
    return found | {f"`{d}`": lambda s, _, d=d: run(s, make(s, d), d) for d in DTYPES}  # type: ignore[misc]


ONNX_NAMES = {"float32": "FLOAT", "float64": "DOUBLE", "float8_e5m2": "FLOAT8E5M2"}


def questions(target: str) -> dict[str, Callable[[str, str], str]]:
    """Return the questions about what a library takes, or makes of arrays of the four."""
    if target == "scipy_array_api":
        os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when it is imported
    of: dict[str, Callable[[], dict[str, Callable[[str, str], str]]]] = {
        "ml_dtypes": rows_of_ml_dtypes, "mlx": rows_of_mlx, "pandas": rows_of_pandas,
        "safetensors": rows_of_safetensors, "scipy": rows_of_scipy, "scipy_array_api": rows_of_scipy,
        "onnx": lambda: rows_of_onnx(True), "onnxruntime": lambda: rows_of_onnx(False),
    }  # fmt: skip
    return of.get(target, rows)()


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
    for ask in list(questions(target).values())[first:]:
        print(json.dumps(answer(source, target, ask)), flush=True)


def run_pair(source: str, target: str) -> list[str]:
    """Return all answers of a pair; where one has ended the process, a new one goes on."""
    found: list[str] = []
    total = len(questions(target))
    while len(found) < total:
        command = [sys.executable, __file__, "--measure", source, target, str(len(found))]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        found += [json.loads(line) for line in process.stdout.splitlines() if line.startswith('"')]
        if len(found) < total:
            found.append(DIED)
    return found


def flattens() -> dict[str, Callable[[Any], list[Any]]]:
    """Return what makes a list of the leaves of a container, by the name of the library."""
    importlib.import_module("torch")
    multiop, jax, optree = (importlib.import_module(name) for name in ("multiop", "jax", "optree"))
    torch, tf = importlib.import_module("torch.utils._pytree"), importlib.import_module("tensorflow")
    found: dict[str, Callable[[Any], list[Any]]] = {
        "multiop": multiop.tree.leaves,
        "JAX": jax.tree.leaves,
        "optree": optree.tree_leaves,
        "PyTorch": torch.tree_leaves,
        "`tf.nest`": tf.nest.flatten,
    }
    if importlib.util.find_spec("keras"):
        found["Keras"] = importlib.import_module("keras").tree.flatten
    return found


def containers() -> dict[str, Any]:
    """Return containers of Python, by their code."""
    return {
        "`{'b': 1, 'a': 2}`": {"b": 1, "a": 2},
        "`OrderedDict(b=1, a=2)`": collections.OrderedDict(b=1, a=2),
        "`defaultdict(int, b=1, a=2)`": collections.defaultdict(int, b=1, a=2),
        "`MappingProxyType({'b': 1})`": types.MappingProxyType({"b": 1}),
        "`{1: 1, 'a': 2}`": {1: 1, "a": 2},
        "`deque([1, 2])`": collections.deque([1, 2]),
        "`UserList([1, 2])`": collections.UserList([1, 2]),
        "`(None, 1)`": (None, 1),
        "`{1}`, a set": {1},
        "`range(2)`": range(2),
        "`array([1, 2])`": np.array([1, 2]),
    }


def of_flax() -> dict[str, Any]:
    """Return containers of flax, by their code."""
    flax, nnx = importlib.import_module("flax.core"), importlib.import_module("flax.nnx")
    layer = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    return {
        "`nnx.Linear`": layer,
        "its `nnx.state`": nnx.state(layer),
        "its `nnx.split`": nnx.split(layer),
        "its `kernel`, an `nnx.Param`": layer.kernel,
        "`freeze({'b': 1, 'a': 2})`": flax.freeze({"b": 1, "a": 2}),
    }


def trees(
    name: str,
    given: dict[str, Any],
    flatten: dict[str, Callable[[Any], list[Any]]],
    show: Callable[[list[Any]], str],
) -> list[str]:
    """Return the lines that show a table of containers, and of what each library makes of them."""
    lines = [f"| | {' | '.join(flatten)} |", "|---|" + "---|" * len(flatten)]
    for told, tree in given.items():
        found = [answer("", "", lambda *_, f=f, tree=tree: show(f(tree))) for f in flatten.values()]  # type: ignore[misc]
        lines.append(f"| {told} | {' | '.join(found)} |")
    return show_table(name, lines)


def kinds(leaves: list[Any]) -> str:
    """Return the classes of leaves."""
    return f"`{', '.join(type(leaf).__name__ for leaf in leaves)}`"


def guest_trees() -> list[str]:
    """Return the sections of the containers of flax, and of what dm-tree makes of Python's."""
    version = importlib.import_module("multiop.testing._results").version
    lines = kept("Containers of flax")
    if importlib.util.find_spec("flax"):
        lines = [f"## Containers of flax {version('flax')}", "", "The classes of the leaves.", ""]
        lines += [*trees("meeting_flax", of_flax(), flattens(), kinds), ""]
    if not importlib.util.find_spec("tree"):
        return lines + kept("Containers in dm-tree")
    dm_tree = {"multiop": flattens()["multiop"], "dm-tree": importlib.import_module("tree").flatten}
    lines += [f"## Containers in dm-tree {version('dm-tree')}", ""]
    return [*lines, *trees("meeting_dm_tree", containers(), dm_tree, code), ""]


def code(x: Any) -> str:
    """Return a value as code."""
    return f"`{x}`"


def section(target: str, title: str, sources: list[str]) -> list[str]:
    """Return the lines of what a library takes from others."""
    found = [run_pair(source, target) for source in sources]
    by = "by" if target == "ml_dtypes" else "from"
    lines = [f"| | {' | '.join(f'{by} {LIBRARIES[name]}' for name in sources)} |", "|---|" + "---|" * len(sources)]
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, answers in zip(questions(target), zip(*found, strict=True), strict=True):
        if any(answers):  # else no library but the one that takes it has such an array
            alike.setdefault(answers, []).append(name)
    lines += [f"| {', '.join(names)} | {' | '.join(answers)} |" for answers, names in alike.items()]
    return [f"## {title}", "", *show_table(f"meeting_{target}", lines), ""]


def kept(title: str) -> list[str]:
    """Return the lines of a section as they stand in the page."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = re.search(rf"^## {re.escape(title)} .*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return [*found[0].rstrip("\n").split("\n"), ""] if found else []


def page() -> str:
    """Return the text of the page."""
    version = importlib.import_module("multiop.testing._results").version
    versions = ", ".join(f"{title} {version(name).partition('+')[0]}" for name, title in LIBRARIES.items())
    lines = [INTRODUCTION, f"Measured on a CPU with {versions}, by `python tools/meeting.py`.", ""]
    for target, title in LIBRARIES.items():
        lines += section(target, f"{title} takes", [name for name in LIBRARIES if name != target])
    for target, (package, title) in GUESTS.items():
        if importlib.util.find_spec(package):
            lines += section(target, f"{title} {version(package)}", list(LIBRARIES))
        else:
            lines += kept(title)
    lines += [TREES, *trees("meeting_containers", containers(), flattens(), code), "", *guest_trees()]
    return "\n".join(lines).rstrip() + "\n"


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
