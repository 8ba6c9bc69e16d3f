"""Random chains of ops at the sizes, ranks, constants and dtypes where compilers and kernels change their ways.

A program is a script: what is run is what is printed. It is run op by op, compiled by `multiop.jit`, and differentiated
if it is smooth, each against NumPy in float64 (integers in their own dtype), at its own size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from random_programs import Difference
from scripts import failure

SIZES = tuple(2**power + offset for power in (14, 15, 16) for offset in (-1, 0, 1))
BLOCK = 2**17  # bytes that compilers take at once: one row more is where they change
TOLERANCE = {"float64": 1e-9, "float32": 1e-3, "float16": 3e-2}


@dataclasses.dataclass(frozen=True)
class Kind:
    """One op.

    Attributes:
        source: The expression: `{x}` is the last value, `{a}`, `{b}`, `{c}` are inputs, `{axis}` is drawn.
        numpy: The same in NumPy and SciPy; by default with `np` in the place of `ops`.
        is_smooth: Whether it has a derivative everywhere.
    """

    source: str
    numpy: str = ""
    is_smooth: bool = False

    @property
    def expected(self) -> str:
        """The expression for NumPy."""
        return self.numpy or self.source.replace("ops.", "np.")


def _kinds(*sources: str, smooth: bool = False) -> list[Kind]:
    return [Kind(source, is_smooth=smooth) for source in sources]


UNARY = [
    *_kinds("ops.exp({x})", "ops.sin({x})", "ops.cosh({x})", "ops.tanh({x})", "ops.square({x})", smooth=True),
    *_kinds("ops.arctan({x})", "ops.expm1({x})", "ops.sinh({x})", "ops.arcsinh({x})", smooth=True),
    *_kinds("ops.abs({x})", "ops.sqrt(ops.abs({x}))", "ops.log1p(ops.abs({x}))"),
    Kind("ops.erf({x})", "special.erf({x})", True),
    Kind("ops.sigmoid({x})", "special.expit({x})", True),
    Kind("ops.silu(ops.arctan({x}))", "np.arctan({x}) * special.expit(np.arctan({x}))", True),
    Kind("ops.softplus({x})", "np.logaddexp({x}, 0)", True),
    Kind("ops.relu({x})", "np.maximum({x}, 0)"),
]
CONSTANT = [
    *(2 * _kinds('{x} * float("nan")', '{x} - float("nan")', '{x} + float("inf")', '{x} * float("-inf")')),
    *_kinds(
        "{x} * 0.0", 'ops.maximum({x}, float("nan"))', 'ops.where({x} > 0.5, {x}, float("nan"))', '{x} / float("inf")'
    ),
    *_kinds('ops.where({x} > 0.5, float("-inf"), {x})'),
]
PRODUCT = [
    *(2 * _kinds("ops.matmul({b}, ops.transpose({a}))", 'ops.einsum("ij,nj->in", {b}, {a})', smooth=True)),
    *_kinds("ops.matmul({a}, {b})", 'ops.einsum("ni,ij->nj", {a}, {b})', "ops.tensordot({a}, {b}, 1)", smooth=True),
    Kind("multiop.vmap(lambda row: ops.matmul({b}, row))({a})", "{a} @ {b}.T", True),
    Kind("ops.matmul({a}, {b}) + ops.matmul({a}, ops.transpose({b}))", "{a} @ {b} + {a} @ {b}.T", True),
]
FOLD = _kinds("ops.sum({x}, {axis})", "ops.mean({x}, {axis})", "ops.var({x}, {axis})", smooth=True)
FOLD += _kinds("ops.max({x}, {axis})", "ops.min({x}, {axis})", "ops.std({x}, {axis})")
REDUCTION = [
    *(4 * FOLD),
    *_kinds("ops.median({x}, {axis})", "ops.sort({x}, {last})", "ops.cumsum({x}, {last})"),
    Kind("ops.logsumexp({x}, {axis})", "special.logsumexp({x}, {axis})", True),
    Kind("ops.softmax({x}, {last})", "special.softmax({x}, {last})", True),
    Kind("ops.norm({x}, axis={last})", "np.linalg.norm({x}, axis={last})"),
]
NAN = _kinds(
    "ops.nansum({x}, {axis})", "ops.nanmean({x}, {axis})", "ops.nanvar({x}, {axis})", "ops.nanmax({x}, {axis})"
)
NAN += _kinds("ops.nanstd({x}, {axis})", "ops.nansum({x})", "ops.nanvar({x})", "ops.nanstd({x})")
PAIR = [
    *_kinds("{x} * {b}", "{x} + {b}", "{x} / (1 + ops.square({b}))", "{x}", smooth=True),
    *_kinds("ops.maximum({x}, {b})", "ops.where({x} > {b}, {x}, float('nan'))"),
]
DEEP = [
    *(FOLD + 2 * NAN),
    *_kinds("ops.transpose({x})", "ops.flip({x}, {last})", "ops.moveaxis({x}, 0, {last})", smooth=True),
    Kind("ops.normalize({x}, {last})", "{x} / np.sqrt(np.sum({x} ** 2, {last}, keepdims=True))", True),
    Kind(
        "ops.categorical_crossentropy(ops.softmax({b}, {last}), {x}, from_logits=True, axis={last})",
        "-np.sum(special.softmax({b}, {last}) * special.log_softmax({x}, {last}), {last})",
        True,
    ),
    Kind("ops.logsumexp({x}, {last})", "special.logsumexp({x}, {last})", True),
]
INTEGER = _kinds("{x} * {x}", "ops.square({x})", "{x} + {b}", "{x} * {b}", "{x} - {b}", "ops.negative({x})", "{x}")
OF_INTEGERS = [
    *_kinds("ops.abs({x})", "{x} < 0", "ops.sign({x})", "ops.square({x}) >= 0", "ops.abs({x}) < 0", "{x} == {b}"),
    *_kinds("ops.max({x}, {axis})", "ops.sort({x}, {last})", "ops.sum({x}, {axis})", "ops.argmin({x}, {axis})"),
    *[Kind("ops.average({x}, {axis}, {c})", "np.average({x}.astype(float), {axis}, {c}.astype(float))")] * 3,
    Kind("ops.average({x}, {axis})", "np.average({x}.astype(float), {axis})"),
    *_kinds("ops.mean({x}, {axis})", "ops.std({x}, {axis})", "ops.var({x}, {axis})"),
    Kind("ops.median({x}, {axis})", "np.median({x}.astype(float), {axis})"),
    Kind("ops.norm(ops.ravel({x}))", "np.linalg.norm({x}.astype(float).ravel())"),
    Kind("ops.linspace({x}[0], {b}[0], 3)", "np.linspace({x}[0].astype(float), {b}[0].astype(float), 3)"),
]
EXTREME = [  # right up to the largest number of any dtype
    *_kinds("ops.median({x}, {axis})", "ops.quantile({x}, 0.25, {axis})", "ops.max({x}, {axis})"),
    *_kinds("ops.sort({x}, {last})", "ops.logaddexp({x}, {b})"),
    *[Kind("ops.logsumexp({x}, {axis})", "special.logsumexp({x}, {axis})")] * 2,
    Kind("ops.softmax({x}, {last})", "special.softmax({x}, {last})"),
    Kind("ops.log_softmax({x}, {last})", "special.log_softmax({x}, {last})"),
]
ORDINARY = [  # of half precision, whatever is added up on the way
    *EXTREME,
    *_kinds("ops.mean({x}, {axis})", "ops.std({x}, {axis})", "ops.average({x}, {axis}, {c})", "ops.hypot({x}, {b})"),
    *_kinds("ops.linspace({x}, {b}, 3)", "ops.var({x}, {axis})"),
    Kind("ops.norm({x}, axis={last})", "np.linalg.norm({x}, axis={last})"),
    Kind("ops.normalize({x}, {last})", "{x} / np.maximum(np.sqrt(np.sum({x} ** 2, {last}, keepdims=True)), 1e-12)"),
]
SHIFT = [
    Kind("ops.set_item({x}, slice(1, None), {x}[:-1])", "np.concatenate([{x}[:1], {x}[:-1]])", True),
    Kind("ops.set_item({x}, slice(None, -1), {x}[1:])", "np.concatenate([{x}[1:], {x}[-1:]])", True),
    Kind("ops.set_item({x}, 0, {x}[-1])", "np.concatenate([{x}[-1:], {x}[1:]])", True),
]
MOVED = _kinds("ops.reshape({x}, (-1,))", "ops.expand_dims({x}, 0)", "ops.transpose({x})", "ops.roll({x}, 1, 0)")
MOVED += _kinds("ops.expand_dims({x}, {last})", "ops.flip({x}, 0)", "ops.ravel(ops.transpose({x}))", "ops.sum({x}, 0)")
DOUBLED = _kinds("{x} * 2", "{x} + 1", "{x}", smooth=True)

# family -> for each step, what it is drawn of, and how often there is one
FAMILIES: dict[str, tuple[tuple[list[Kind], float], ...]] = {
    "tall": ((PRODUCT, 1.0), (UNARY, 0.4), (REDUCTION, 1.0), (UNARY, 0.2)),
    "deep": ((PAIR, 0.8), (UNARY, 0.2), (DEEP, 1.0), (UNARY, 0.2)),
    "constant": ((UNARY, 0.2), (CONSTANT, 1.0), (UNARY, 1.0), (UNARY, 0.3), (REDUCTION, 0.3)),
    "integer": ((INTEGER, 1.0), (INTEGER, 0.3), (OF_INTEGERS, 1.0)),
    "ordinary": ((ORDINARY, 1.0),),
    "extreme": ((EXTREME, 1.0),),
    "shift": ((DOUBLED, 1.0), (SHIFT, 1.0), (MOVED, 1.0), (MOVED, 0.3)),
}

ORDER = (
    "tall",
    "deep",
    "constant",
    "integer",
    "tall",
    "ordinary",
    "extreme",
    "tall",
    "deep",
    "constant",
    "ordinary",
    "shift",
)

HEAD = """import numpy as np
from scipy import special

import multiop
from multiop import ops

"""
CHECK = """

def check(got, want, what):
    got, want = ops.convert_to_numpy(got), np.asarray(want)
    if got.dtype.kind != "f":
        return np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=what)
    scale = np.abs(want[np.isfinite(want)]).max(initial=1)
    np.testing.assert_allclose(got.astype("float64"), want, {tolerance}, {tolerance} * scale, err_msg=what)


wide = [x.astype("float64") if x.dtype.kind == "f" else x for x in ({inputs})]
with np.errstate(all="ignore"):
    want = expected(*wide)
tensors = [ops.convert_to_tensor(x) for x in ({inputs})]
check(program(*tensors), want, "eager")
check(multiop.jit(program)(*tensors), want, "compiled")
"""
SLOPE = """
weights = np.cos(np.arange(want.size)).reshape(want.shape)
direction = np.sin(np.arange(a.size)).reshape(a.shape)


def loss(x):
    return ops.sum(program(x, *tensors[1:]) * ops.cast(weights, ops.dtype(x)))


def slope(h, x):
    ahead, behind = (np.sum(expected(x + step * direction, *wide[1:]) * weights) for step in (h, -h))
    return (ahead - behind) / (2 * h)


right = slope(2e-5, wide[0])
# what a large third derivative makes of the distance, and a bad condition of rounded inputs
noise = 1 + {tolerance} / 100 * np.cos(3.0 * np.arange(a.size)).reshape(a.shape)
slack = abs(right - slope(1e-4, wide[0])) + abs(right - slope(2e-5, wide[0] * noise))
for what, gradient in (("gradient", multiop.grad(loss)), ("compiled gradient", multiop.jit(multiop.grad(loss)))):
    terms = ops.convert_to_numpy(gradient(tensors[0])).astype("float64") * direction
    scale = np.sqrt(np.sum(terms**2)) + abs(np.sum(terms)) + {tolerance}
    difference = abs(np.sum(terms) - right)
    assert difference <= max(1e-5, {tolerance}) * scale + slack, f"{what}: off by {difference} of {np.sum(terms)}"
"""


@dataclasses.dataclass(frozen=True)
class Sized:
    """A function of `a`, `b` and `c`, one op after the other.

    Attributes:
        seed: Seeds the inputs.
        dtype: Dtype of the inputs.
        inputs: Name and source of each.
        steps: For each step, the expression, that of NumPy, and whether it is smooth.
    """

    seed: int
    dtype: str
    inputs: tuple[tuple[str, str], ...]
    steps: tuple[tuple[str, str, bool], ...]

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def _arrays(self) -> str:
        lines = "".join(f"{name} = {source}.astype({self.dtype!r})\n" for name, source in self.inputs)
        return f"rng = np.random.default_rng({self.seed})\n{lines}"

    def _function(self, name: str, which: int) -> str:
        lines = [f"def {name}({', '.join(one for one, _ in self.inputs)}):"]
        lines += [f"    x = {step[which]}" for step in self.steps]
        return "\n".join([*lines, "    return x\n"])

    @property
    def source(self) -> str:
        """What runs by itself."""
        return self.script()

    def script(self, backend: str = "") -> str:
        """Return what runs by itself, the same on every backend."""
        inputs = "".join(f"{name}, " for name, _ in self.inputs).strip()
        is_smooth = all(step[2] for step in self.steps) and self.dtype in ("float32", "float64")
        head = HEAD + ("multiop.enable_x64()\n" if self.dtype == "float64" else "")
        functions = f"\n\n{self._function('program', 0)}\n\n{self._function('expected', 1)}"
        check = CHECK + (SLOPE if is_smooth else "")
        check = check.replace("{inputs}", inputs).replace("{tolerance}", str(TOLERANCE.get(self.dtype, 1e-3)))
        return head + self._arrays + functions + check

    def values(self) -> Iterator[Any]:
        """Yield what NumPy has after each step."""
        names: dict[str, Any] = {}
        exec(HEAD + self._arrays, names)
        for name, _ in self.inputs:
            names[name] = names[name].astype("float64") if names[name].dtype.kind == "f" else names[name]
        for _, expected, _ in self.steps:
            with np.errstate(all="ignore"):
                names["x"] = eval(expected, names)
            yield names["x"]

    def look(self, backends: Sequence[str], notes: list[str] | None = None, **options: Any) -> Difference | None:
        """Run it on each backend."""
        for backend in backends:
            if difference := failure(self.script(backend), backend, notes, **options):
                return difference
        return None

    def smaller(self) -> Iterator[Sized]:
        """Return the programs that have one step less."""
        for k, step in enumerate(self.steps):
            if len(self.steps) > 1 and step[0] != "a":
                rest = self.steps[:k] + self.steps[k + 1 :]
                yield dataclasses.replace(self, steps=rest if k else (("a", "a", True), *rest))


def _inputs(family: str, rng: np.random.Generator) -> tuple[str, dict[str, str]]:
    """Draw a dtype, and the sources of the inputs."""
    size, k = int(rng.choice(SIZES)), int(rng.choice([2, 3, 3, 4]))
    dtype = str(rng.choice(["float32", "float32", "float64"]))
    size = size if rng.random() < 0.6 else BLOCK // np.dtype(dtype).itemsize + 1
    normal = "rng.normal(size={})"
    match family:
        case "tall":
            return dtype, {"a": normal.format((size, k)), "b": normal.format((k, k))}
        case "deep":
            shape = (3, 1, 2, 2, 8, 8, 8)
            if rng.random() < 0.7:
                shape = tuple(int(n) for n in rng.choice([1, 2, 3, 8], int(rng.integers(5, 9)), p=[0.2, 0.3, 0.2, 0.3]))
            shape = shape if np.prod(shape) < 2**17 else (3, 1, 2, 2, 8, 8, 8)
            return dtype, {"a": normal.format(shape), "b": normal.format(shape)}
        case "constant":
            n = int(rng.choice([1, 3, 5, 17, 64, size]))
            return dtype, {"a": f"np.full({n}, 0.123)" if rng.random() < 0.5 else normal.format(n)}
        case "shift":
            shape = ((8,), (5, 7, 3), (1000,), (4, 1, 1), (size,), (size, k))[int(rng.integers(6))]
            dtype = str(rng.choice(["float32", "int32", dtype]))
            return dtype, {"a": f"np.arange(float(np.prod({shape}))).reshape({shape})"}
        case "integer":
            dtype = str(rng.choice(["int8", "uint8", "int16", "int32"]))
            n = int(rng.choice([2, 5, 64, 1000, size]))
            low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
            drawn = f"rng.integers({low}, {high}, {n}, endpoint=True)"
            positive = f"rng.integers(1, {high}, {n}, endpoint=True)"
            return dtype, {"a": drawn, "b": drawn, "c": positive}
        case _:
            n = int(rng.choice([1, 2, 5, size, 100_000, 100_000]))
            dtype, large = ("float16", 6e4) if family == "ordinary" else ("float32", 3e38)
            value = (0.0, 1.0, 200.0, 0.99 * large, -0.99 * large)[int(rng.integers(5))]
            shape = (n,) if rng.random() < 0.6 else (2, n)
            a = f"np.full({shape}, {value:g})" if rng.random() < 0.6 else f"rng.uniform(-{large:g}, {large:g}, {shape})"
            return dtype, {"a": a, "b": a, "c": f"np.full({shape}, {int(rng.choice([1, 200]))})"}


def draw(seed: int) -> Sized:
    """Draw a family, inputs and steps whose results are numbers of the dtype."""
    rng = np.random.default_rng([seed, 43])
    family = ORDER[seed % len(ORDER)]
    dtype, inputs = _inputs(family, rng)
    program = Sized(seed, dtype, tuple(inputs.items()), ())
    for kinds, share in FAMILIES[family]:
        if rng.random() >= share:
            continue
        for _ in range(20):
            kind = kinds[rng.integers(len(kinds))]
            grown = _grown(program, kind, rng)
            if grown is not None:
                program = grown
                break
    return program if program.steps else dataclasses.replace(program, steps=(("ops.sum(a)", "np.sum(a)", True),))


def _grown(program: Sized, kind: Kind, rng: np.random.Generator) -> Sized | None:
    """Return the program with one more step; nothing where the step does not fit or its result is beyond the dtype."""
    with np.errstate(all="ignore"):
        start = program if program.steps else dataclasses.replace(program, steps=(("a", "a", True),))
        *_, value = start.values()
    shape = np.shape(value) or (1,)
    axis = int(np.argmin(shape) if len(shape) == 2 and rng.random() < 0.4 else rng.integers(len(shape)))
    names: dict[str, Any] = {name: name for name in "abcx"} | {"last": axis - len(shape)}
    names["x"] = "x" if program.steps else "a"
    names["axis"] = None if rng.random() < 0.3 else axis
    step = (kind.source.format(**names), kind.expected.format(**names), kind.is_smooth)
    grown = dataclasses.replace(program, steps=(*program.steps, step))
    try:
        *_, value = grown.values()
    except (ValueError, IndexError, TypeError, NameError, ZeroDivisionError):
        return None
    value = np.asarray(value)
    if program.dtype in TOLERANCE and value.dtype.kind == "f":
        finite = np.abs(value[np.isfinite(value)])
        if finite.max(initial=0.0) > float(np.finfo(program.dtype).max) / (1 if len(grown.steps) == 1 else 4):
            return None
    return grown
