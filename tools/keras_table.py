"""Write docs/keras.md: how each function of `keras.ops` and `keras.random` differs from multiop's.

Each function of both libraries is called on the inputs of the shared suite, with Keras on its NumPy backend. A
difference for which the tables below give no reason is an error. Keras's other backends are compared with that one, in
a process for each.

    python tools/keras_table.py            writes the page
    python tools/keras_table.py --check    fails if the page is out of date
"""

from __future__ import annotations

import collections
import inspect
import itertools
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BACKENDS = {"torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}
ANSWERS = dict(itertools.pairwise(sys.argv)).get("--answers")  # a backend's file, in a process of its own
if ANSWERS is None:
    os.environ["KERAS_BACKEND"] = "numpy"
    os.environ.setdefault("MULTIOP_BACKEND", "torch")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from tables import show_table

import multiop
from multiop._values import dtypes as _dtypes, host, tree
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

ROOT = Path(__file__).parents[1]
DTYPES = ("float32", "float16", "int32", "uint8", "int8", "bool", "complex64")
CALLS = 4  # calls compared for each row and dtype
AMONG_BACKENDS = ("float32", "complex64")
# any entries, order or phase of theirs is right; or Keras takes Hermitian matrices alone, which the inputs are not
NOT_COMPARED = {
    "argpartition", "argsort", "cholesky", "cholesky_inverse", "ctc_decode", "eig", "eigh", "empty", "empty_like",
    "is_tensor", "logdet", "lu_factor", "qr", "svd", "top_k", "view",
}  # fmt: skip

# names that Keras 3.16 adds to those of 3.15
NEW_IN_3_16 = ("digamma", "polygamma", "gammainc", "gammaincc", "expm", "column_stack", "matrix_power")

FLOATX = "integers give `floatx`; Keras on NumPy computes in `float64`"
FLOAT = "integers and bools give `floatx`, as results are not integers; Keras on NumPy gives integers or `float16`"
KEPT = "integers and bools keep their dtype; cast the result to get the float that Keras returns"
WEAK = "a Python number takes the tensor's dtype; Keras widens the tensor"
MORE = "accepts inputs that Keras on NumPy refuses"
SMALL = "`float16` stays `float16`; Keras widens it to `float32`"
COMPLEX = "the right values for complex numbers, in the right dtype"
INDICES = "indices, counts and Python ints are `int32`, as on TensorFlow and JAX; Keras on NumPy uses other dtypes"
SEGMENTS = "the dtype of the entries, even if a segment is empty; sums have at least 32 bits"
REASONS = {  # reasons that the rules in `difference` do not cover
    "argpartition": "any order of the entries before and after `kth` is right",
    "cholesky": "`upper=True` is the conjugate transpose of the lower factor; Keras on NumPy ignores it for stacks",
    "cholesky_inverse": "handles stacks, and conjugates a complex factor",
    "conj": "a bool stays a bool",
    "conjugate": "a bool stays a bool",
    "ctc_decode": "equally probable paths may come in a different order",
    "dot_product_attention": "a fully masked row gives zeros",
    "dtype": "the same name; Keras on NumPy also returns a string",
    "eig": "always complex, as on every other Keras backend",
    "empty": "the entries are undefined",
    "empty_like": "the entries are undefined",
    "full": "the dtype of the number, as in NumPy; pass `dtype` to get Keras's `floatx`",
    "hypot": "integers become floats; Keras on NumPy squares small integers in `float16`",
    "logaddexp2": "integers become floats; Keras on NumPy computes small integers in `float16`",
    "multi_hot": "an index out of range adds nothing, on every backend",
    "normalize": "`uint8` becomes a float; Keras on NumPy squares it in `uint8`",
    "rad2deg": "integers become floats; Keras on NumPy computes small integers in `float16`",
    "relu": "a bool becomes `int32`, as in every other arithmetic function",
    "relu6": "a bool becomes `int32`, as in every other arithmetic function",
    "heaviside": "always a float, as in NumPy",
    "rfft": "a float; Keras on NumPy truncates the result to integers",
    "round": "a bool becomes `int32`",
    "sparsemax": "adds up to 1, by definition; in Keras 3.15 it does for one class alone (keras#23469)",
    "scan": "the carry must keep its shapes; Keras on NumPy does not check this",
    "vectorized_map": "a function with several results gives one tensor for each",
    "associative_scan": "the result has the dtype of the entries; Keras on NumPy gives `float64`",
    "cond": "Python numbers become `floatx`",
    "geomspace": SMALL,
    "argsort": "equal entries keep their order; Keras on NumPy does not guarantee it",
    "is_tensor": "a NumPy array is not a tensor of any framework",
    "saturate_cast": "a cast to bool gives whether an entry is not 0; Keras clips the entry first",
    "view": "without `dtype`, returns the tensor unchanged",
    "polar": "`float16` is computed in `float32`",
    "correlate": "the promoted dtype, as in NumPy's `convolve`; Keras returns a float",
    "vander": "sums and products of small integers have at least 32 bits",
    **dict.fromkeys(("segment_sum", "segment_prod", "segment_max", "segment_min"), SEGMENTS),
    **dict.fromkeys(("histogram", "select", "top_k", "unique", "unravel_index"), INDICES),
}
CONTRACTS = """## What has no place here, and what takes it

| Keras | here |
|---|---|
| `keras.ops`, `keras.random` | `multiop.ops`, `multiop.random`: change the import |
| `ops.custom_gradient` | `op_custom_gradient`: also in forward mode, at second order, and on NumPy |
| `tf.GradientTape`, `jax.grad` or `backward`, by backend | `grad`, `value_and_grad`, `GradientTape` |
| `keras.ops.vectorized_map`, `jax.vmap` | `vmap` |
| layers, models, `fit`, optimisers, metrics, callbacks | Keras's own, with ops of multiop inside |
| a model as a function of its weights | [porting](porting.md) |
| a `train_step` for each backend | one function of ops, `value_and_grad` of it, and the optimiser's `apply` |
| `keras.Variable` | taken as its value |

## On JAX without the 64-bit mode

`cast(x, "int64")`, or any other 64-bit dtype, raises an error, and so does `uint32` beside a signed integer,
as both fit only `int64`. Keras returns `int32`, wrong for larger numbers. For Keras's results, cast to
`"int32"`; for 64 bits, call `multiop.enable_x64()`.

## In Keras's functional models

An op of a `keras.KerasTensor` becomes an operation of the model, with the op's shape and dtype; open sizes stay open.
You train, save and load the model as any other.

```pycon
>>> import keras
>>> from multiop import ops
>>> x = keras.Input((8, 4))
>>> y = ops.softmax(ops.mean(x, axis=1))
>>> y.shape, y.dtype
((None, 4), 'float32')
>>> model = keras.Model(x, y)
```

- Keras and multiop must run on the same backend: `KERAS_BACKEND=jax MULTIOP_BACKEND=jax`.
- If Keras is imported at the first use of multiop, the backend you chose by `KERAS_BACKEND`, or by a `keras.json` with
  another than TensorFlow, is multiop's too, also beside an `import torch`. `MULTIOP_BACKEND`, the configuration file
  and `set_backend` come first. TensorFlow imports Keras itself, so Keras on it, without the variable, is no choice.
- A function with a custom gradient is an operation, and keeps its rule. For any other, write
  `multiop.keras.Op(function)(x)`, or derive a class from `multiop.Operation`, with `keras.Operation`'s interface.
- `import multiop.keras` before you load a saved model, so that Keras knows multiop's operations.
- `shape`, `ndim` and `dtype` of a symbolic tensor are known at once, and so is `size` if no size is open.
- An open size never counts as 1: `squeeze` keeps that dimension. An op that needs the size raises, as does a result
  whose sizes depend on values (`unique`).
- In the `call` method of a Keras layer, you need none of this.

### Save and load

Keras saves a function's name alone. Register yours, above its other decorators, and so a class derived from
`multiop.Operation`, with a `get_config`:

```python
import keras
import numpy as np

import multiop
import multiop.keras
from multiop import ops


@keras.saving.register_keras_serializable("mine")
@multiop.op_custom_gradient
def straight_round(x):
    return ops.round(x), lambda upstream: upstream


x = keras.Input((3,))
model = keras.Model(x, straight_round(keras.layers.Dense(4, activation=ops.gelu)(x)))
model.save("model.keras")
again = keras.saving.load_model("model.keras")
x = np.ones((2, 3), "float32")
print(np.array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0)))
```

```text
True
```

To load it in another process, first import the module that registers `straight_round`. Saving is refused if a function
is not registered, or its name is taken. Elsewhere, write `keras.layers.Activation(straight_round)` in a `Sequential`
model, and `activation=straight_round`.

`activation=ops.gelu` is saved as `multiop>op_gelu`; earlier versions of multiop saved `gelu`, which loads Keras's own.

`multiop.name_scope` and `multiop.Operation` are also `ops.name_scope` and `ops.Operation`, as Keras's own source
expects. If Keras is imported, a name scope is Keras's own, and names its variables too.

## Other differences

- The random functions draw [the same numbers on every backend](random.md), not Keras's. They take a
  `keras.random.SeedGenerator`, its keys, and on JAX a typed key (`jax.random.key`). Within layers, use that
  generator: compiled training steps update its state, a variable.
- A `keras.Variable` is taken as its value, as a source of `GradientTape.gradient` and `gradients` too.
- `clip` also takes NumPy's names of its bounds: `a_min`, `a_max`, `min` and `max`.
- As in Keras: `scatter` adds up at repeated indices (`scatter_update` keeps the last value); `matmul` and `einsum` of
  `int8` give `int32`; class labels may be floats. A label that is no whole number is no class; Keras rounds it down.
- `convert_to_numpy` returns a copy for you to change. In Keras, on PyTorch, a change of the array changes the tensor;
  on JAX, the array is read-only.
- Convolutions also take `padding` as numbers, `"circular"` and `"reflect"`, and strides together with dilation;
  `conv_transpose` takes `groups`; pooling takes `padding` as numbers, `ceil_mode` and `count_include_pad`."""
unexplained: list[str] = []
_OF_NUMBERS = {
    "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor", "fmod", "gcd", "heaviside", "inner", "lcm", "logaddexp",
    "mod", "outer",
}  # fmt: skip


def main() -> None:
    """Write the page, or check it."""
    if ANSWERS is not None:
        Path(ANSWERS).write_bytes(pickle.dumps(answers()))
        return
    text = page()
    if unexplained:
        sys.exit("\n".join(["give a reason for each:", *unexplained]))
    path = ROOT / "docs/keras.md"
    if "--check" not in sys.argv:
        path.write_text(text, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != text:
        sys.exit(f"{path} is not current: python {sys.argv[0]}")


def page() -> str:
    """Return the text of the page."""
    lines = [
        "# Code written for Keras",
        "",
        "Import `ops` and `random` from `multiop` instead of `keras`: names, arguments and defaults are the same.",
        "`python tools/keras_table.py` made this page: it calls both libraries on the inputs of the shared suite, in",
        f"seven dtypes, with Keras {keras.__version__} on its NumPy backend. A function not below gave the same",
        "shapes, dtypes and values, or was not called: random ones, those new in 3.16, and a few without inputs.",
        "",
        "| module | names | missing here | same | different on purpose | arguments compared, not called |",
        "|---|---|---|---|---|---|",
    ]
    table = collections.defaultdict(list)
    for module, ours in (("ops", multiop.ops), ("random", getattr(multiop, "random", None))):
        names = sorted({*functions(getattr(keras, module)), *(NEW_IN_3_16 if module == "ops" else ())})
        missing = [name for name in names if not hasattr(ours, name)]
        for name in names:
            if hasattr(ours, name) and hasattr(getattr(keras, module), name):
                check_arguments(name, getattr(getattr(keras, module), name), getattr(ours, name))
        called = [name for name in names if module == "ops" and f"op_{name}" in rows() and hasattr(keras.ops, name)]
        found = {name: list(reasons(name)) for name in called}
        differing = {name: told for name, told in found.items() if told}
        told = ", ".join(f"`{name}`" for name in missing) or "none"
        counts = len(called) - len(differing), len(differing), len(names) - len(missing) - len(called)
        lines.append(f"| `keras.{module}` | {len(names)} | {told} | {' | '.join(map(str, counts))} |")
        for name, reasons_ in differing.items():
            for reason in reasons_:
                table[reason].append(f"`{name}`")
    every = ["| in multiop | functions |", "|---|---|"]
    every += [f"| {told} | {', '.join(names)} |" for told, names in sorted(table.items(), key=lambda x: -len(x[1]))]
    among = [
        "## Keras beside itself",
        "",
        f"Functions of Keras {keras.__version__} that answer otherwise than on NumPy, without an error:",
        "",
        *show_table("keras_backends", among_backends()),
    ]
    return "\n".join([*lines, "", "## Differences", "", *show_table("keras", every), "", *among, "", CONTRACTS, ""])


def among_backends() -> list[str]:
    """Return a table of the functions of Keras whose answer depends on its backend."""
    table, reference = collections.defaultdict(dict), answers()
    for backend in BACKENDS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "answers")
            environment = os.environ | {"KERAS_BACKEND": backend, "MULTIOP_BACKEND": backend}
            subprocess.run(
                [sys.executable, __file__, "--answers", str(path)],
                env=environment,
                check=True,
                stderr=subprocess.DEVNULL,
            )
            found = pickle.loads(path.read_bytes())
        for what, expected in reference.items():
            if told := unlike(found[what], expected):
                table[what[0]].setdefault(backend, told)
    head = ["| function | " + " | ".join(BACKENDS.values()) + " |", "|---|" + "---|" * len(BACKENDS)]
    rows = (f"| `{name}` | {' | '.join(told.get(b, '') for b in BACKENDS)} |" for name, told in sorted(table.items()))
    return [*head, *rows]


def answers() -> dict[tuple[str, str, int], list[np.ndarray[Any, Any]] | None]:
    """Return what Keras computes of the inputs of the shared suite, `None` where it raises."""
    found: dict[tuple[str, str, int], Any] = {}
    for op, row in rows().items():
        name = op.removeprefix("op_")
        f = getattr(keras.ops, name, None)
        if f is None or name in NOT_COMPARED:
            continue
        for dtype in (dtype for dtype in AMONG_BACKENDS if dtype in row.dtypes):
            for n, call in enumerate(row.calls[:CALLS]):
                got = results(f, Problem(f, call, dtype=dtype, name=name))
                found[name, dtype, n] = None if isinstance(got, Exception) else got
    return found


def unlike(found: list[Any] | None, expected: list[Any] | None) -> str:
    """Say how results differ from those that are expected, but for their dtypes; nothing where one has none."""
    if found is None or expected is None:
        return ""
    if [x.shape for x in found] != [x.shape for x in expected]:
        return "shapes"
    kinds = {x.dtype.kind for x in (*found, *expected)}
    return "" if not kinds <= set("biufc") or all(map(are_close, found, expected)) else "values"


def functions(module: Any) -> list[str]:
    """Return the names of the functions of a module."""
    return [name for name in dir(module) if not name.startswith("_") and callable(getattr(module, name))]


def check_arguments(name: str, theirs: Callable[..., Any], ours: Callable[..., Any]) -> None:
    """Note a function that lacks arguments of Keras's function, or has them in a different order."""
    asked = [key for key in inspect.signature(theirs).parameters if key != "kwargs"]
    found = [key for key in inspect.signature(ours).parameters if key in asked]
    if found != asked:
        unexplained.append(f"{name} has the arguments {found} of {asked}")


def reasons(name: str) -> Iterator[str]:
    """Yield the reasons why a function differs from that of Keras; note differences that no reason explains."""
    theirs, ours = getattr(keras.ops, name), getattr(multiop.ops, name)
    row = rows()[f"op_{name}"]
    found: dict[str, None] = {}
    for dtype in (dtype for dtype in DTYPES if dtype in row.dtypes):
        for call in row.calls[:CALLS]:
            problem = Problem(ours, call, dtype=dtype, name=name)
            told = difference(name, problem, results(ours, problem), results(theirs, problem))
            if told:
                found.setdefault(told)
    yield from found


def results(f: Callable[..., Any], problem: Problem) -> list[np.ndarray[Any, Any]] | Exception:
    """Return the results of `f` as arrays, or the exception that it raises."""
    leaves = list(problem._leaves)
    for place, array in zip(problem._where, problem.arrays, strict=True):
        leaves[place] = array
    args, kwargs, then = tree.unflatten(problem._structure, leaves)
    try:
        with np.errstate(all="ignore"):
            y = f(*args, **kwargs)
            y = y(*then) if then else y
        return [
            multiop.op_convert_to_numpy(leaf) if multiop.op_is_tensor(leaf) else np.asarray(leaf)
            for leaf in tree.leaves(y)
        ]
    except Exception as error:
        return error


def difference(name: str, problem: Problem, ours: Any, theirs: Any) -> str:
    """Return the reason why two results differ, or an empty string if they agree."""
    if isinstance(theirs, Exception):
        return MORE
    if isinstance(ours, Exception):
        unexplained.append(f"{name}({problem.call!r}) raises here: {ours}")
        return "?"
    if len(ours) == len(theirs) and all(map(agree, ours, theirs)):
        return ""
    dtypes = [(x.dtype.name, y.dtype.name) for x, y in zip(ours, theirs, strict=False) if x.dtype != y.dtype]
    if problem.arrays and all(x.dtype == "float32" for x in problem.arrays) and unlike(ours, theirs):
        dtypes = []  # they explain no other values
    rules = (
        (name in REASONS, REASONS.get(name, "")),
        (not dtypes, ""),
        (name in _OF_NUMBERS and any(map(host.is_scalar, problem.call.args)), WEAK),
        (any("complex" in x for pair in dtypes for x in pair), COMPLEX),
        (all(x == "float32" and y == "float64" for x, y in dtypes), FLOATX),
        (all(x in _dtypes.FLOATING and y != "float64" and x == "float32" for x, y in dtypes), FLOAT),
        (all(x in (*_dtypes.INTEGER, "bool") and y in _dtypes.FLOATING for x, y in dtypes), KEPT),
        (all(x == "float16" for x, y in dtypes), SMALL),
        (all(y == "float64" for _, y in dtypes), FLOATX),
        (True, ""),
    )
    told = next(told for is_so, told in rules if is_so)
    if told:
        return told
    unexplained.append(
        f"{name}({problem.call!r}) in {problem.arrays[0].dtype if problem.arrays else 'no dtype'}: "
        f"{[f'{x.dtype}{x.shape}' for x in ours]} here, {[f'{x.dtype}{x.shape}' for x in theirs]} in Keras"
    )
    return "?"


def agree(x: Any, y: Any) -> bool:
    """Say whether two arrays agree in dtype, shape and entries."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    return are_close(x, y)


def are_close(x: Any, y: Any) -> bool:
    """Say whether two arrays of one shape agree in their entries."""
    if not {x.dtype.kind, y.dtype.kind} & set("fc"):
        return bool(np.array_equal(x, y))
    tolerance = 1e-2 if np.float16 in (x.dtype, y.dtype) else 1e-4
    wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
    return bool(np.allclose(x.astype(wide), y.astype(wide), tolerance, tolerance, equal_nan=True))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
