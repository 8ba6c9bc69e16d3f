"""Random chains of a few ops on few numbers: shapes with 0 and 1, every dtype, numbers of every size, ties and ends.

A program is run on each backend, eagerly or compiled. Its value, its gradient and the gradient of that are held to what
NumPy's backend finds in float64 or complex128. There, each step is also moved by rounding errors: what they decide is
not compared, nor what leaves the range of the dtype on the way.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from random_programs import Difference, _is_limit, compiled_by

import multiop
from multiop import errors, ops
from multiop._rules.composed import with_rule
from multiop._values import dtypes
from multiop.testing._shared_process import x64_mode_for

DTYPES = ("float16", "bfloat16", *["float32"] * 4, *["float64"] * 3, "complex64", "complex128", "int32", "int8", "bool")
SHAPES = ((), (1,), (0,), (5,), (5,), (3, 4), (3, 4), (1, 4), (3, 1), (2, 0), (1, 1), (2, 1, 3), (0, 3))
WHAT = ("value", "gradient", "gradient", "second order", "second order")
ROUNDINGS = 3  # runs with rounding errors
# docs/limits.md: they square their entries; they, or their slopes, have the digits of what is rounded on the way
SQUARED = re.compile(r"\.(var|std|norm|normalize|layer_normalization|group_normalization|rms_normalization|vdot|dot)\(")
ROUGH = re.compile(
    r"(tanh|sigmoid|silu|gelu|elu|softplus|softsign|mish|shrink|squareplus|erf|erfc|erfcx|entr|kl_div|softmax|nanmean)\("
)

# what a step does: `x` is the last value, `y` another one, and what is behind a comma follows them
OF_ANY = """
    abs exp log sqrt square reciprocal sin cos tan tanh sinh cosh arcsin arccos arctan arcsinh arccosh arctanh negative
    sign cumsum,-1 cumprod,-1 flip,-1 roll,1,-1 transpose ravel sum,{axis} mean,{axis} prod,{axis} expand_dims,0
    diff,1,-1 var,{axis} std,{axis} norm,axis=-1 repeat,2,-1 power,2 power,3 power,0.5 power,-1.0 power,0 power,1.5
    expm1 log1p log2 log10 sinc
"""
OF_REAL = """
    rsqrt exp2 cbrt erf erfc erfinv sigmoid softplus log_sigmoid relu gelu silu elu selu softsign softmax,-1
    log_softmax,-1 logsumexp,{axis} max,{axis} min,{axis} sort,-1 median,{axis} lgamma digamma i0 erfcx ndtr log_ndtr
    entr logit floor ceil round trunc nan_to_num clip,-1.0,1.0 maximum,0.0 minimum,1.0 hard_silu leaky_relu relu6
    squareplus tanh_shrink hard_sigmoid cummax,-1 cummin,-1 nansum,{axis} nanmax,{axis} nanmean,{axis}
    sum,{axis},keepdims=True max,{axis},keepdims=True normalize,-1 quantile,0.25,{axis} gamma erfcinv ndtri
    softmax,{axis} hard_tanh ptp,{axis} celu hard_shrink soft_shrink mish layer_normalization rms_normalization
"""
OF_TWO = """
    add subtract multiply divide divide power matmul outer dot vdot divide_no_nan stack([x,y]) concatenate([x,y],-1)
    where(x!=y,x,y)
"""
OF_TWO_REAL = """
    maximum minimum hypot arctan2 logaddexp mod fmod floor_divide xlogy xlog1py copysign fmax fmin heaviside
    where(x>y,x,y) rel_entr kl_div clip(x,-1,y) nextafter betaln beta cross
"""
OF_INTEGERS = """
    abs negative sign square sum,{axis} prod,{axis} mean,{axis} max,{axis} min,{axis} cumsum,-1 sort,-1 flip,-1 exp sqrt
    argmax,{axis} any,{axis} all,{axis} logical_not var,{axis} median,{axis} ravel diff,1,-1 bitwise_not power,2
    clip,-1,1 cumprod,-1 std,{axis} log argsort,-1 count_nonzero,{axis} sin tanh
"""
OF_TWO_INTEGERS = """
    add subtract multiply divide floor_divide mod fmod maximum minimum power bitwise_and bitwise_or bitwise_xor equal
    less where(ops.greater(x,y),x,y) logical_and logical_xor matmul gcd lcm concatenate([x,y],-1) arctan2 hypot dot
"""


def _steps(text: str, operands: str) -> list[str]:
    """Return the calls that words stand for."""
    calls = []
    for word in text.split():
        name, comma, rest = word.partition(",")
        calls.append(f"ops.{word}" if "(" in word else f"ops.{name}({operands}{', ' * bool(comma)}{rest})")
    return calls


KINDS = {
    "real": [*_steps(OF_ANY, "x"), *2 * _steps(OF_REAL, "x"), *2 * _steps(OF_TWO + OF_TWO_REAL, "x, y")],
    "complex": [*_steps(OF_ANY, "x"), *2 * _steps(OF_TWO, "x, y")],
    "integer": [*_steps(OF_INTEGERS, "x"), *_steps(OF_TWO_INTEGERS, "x, y")],
}


def _info(dtype: str) -> Any:
    """Return what `finfo` says of a dtype, or of its real part; of float32 for integers."""
    part = dtypes.REAL_PART.get(dtype, dtype)
    return ml_dtypes.finfo(part if part in dtypes.FLOATING else "float32")


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Draw the entries of an array; none of them is subnormal."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in dtypes.INTEGER:
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, shape, endpoint=True)
        return np.where(rng.random(shape) < 0.8, rng.integers(-4, 5, shape), wide).astype(dtype)
    if dtype in dtypes.COMPLEX:
        return (numbers(rng, shape, part := dtypes.REAL_PART[dtype]) + 1j * numbers(rng, shape, part)).astype(dtype)
    info = _info(dtype)
    wide = np.ldexp(1 + rng.random(shape), rng.integers(info.minexp, info.maxexp, shape))
    moderate = np.ldexp(1 + rng.random(shape), rng.integers(-6, 5, shape))
    special = rng.choice([0.0, 0.0, 1.0, 0.5, 2.0, 3.0, *map(float, (info.max, info.tiny, info.eps))], shape)
    style = rng.choice(["moderate", "moderate", "wide", "special", "ties", "mixed", "infinite"])
    which = {"moderate": 0, "wide": 1, "special": 2, "ties": 0}.get(style)
    found = np.choose(rng.integers(0, 3, shape) if which is None else which, [moderate, wide, special])
    found = np.asarray(found * rng.choice([-1.0, 1.0, 1.0], shape))
    if style == "ties" and found.size:
        found = rng.choice(found.ravel()[:2], shape)
    if style == "infinite":
        found = np.where(rng.random(shape) < 0.3, rng.choice([-np.inf, np.inf], shape), found)
    return np.asarray(found).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _same(k: int, x: Any) -> Any:
    return x


@dataclasses.dataclass(frozen=True)
class Small:
    """A function of `a` and `b`.

    Attributes:
        seed: What it was drawn from.
        dtype: Dtype of the operands.
        shapes: Their shapes.
        steps: The expressions, each of the last value `x`.
    """

    seed: int
    dtype: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    steps: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def kind(self) -> str:
        """Which steps there may be."""
        return "complex" if self.dtype in dtypes.COMPLEX else "real" if self.dtype in dtypes.FLOATING else "integer"

    @property
    def exact(self) -> str:
        """The dtype of what is expected."""
        return {"complex": "complex128", "real": "float64"}.get(self.kind, self.dtype)

    @functools.cached_property
    def operands(self) -> list[Any]:
        """What `a` and `b` are, in the dtype of what is expected."""
        rng = np.random.default_rng([self.seed, 1])
        with np.errstate(all="ignore"):
            return [numbers(rng, shape, self.dtype).astype(self.exact) for shape in self.shapes]

    @property
    def source(self) -> str:
        """What defines `program`."""
        steps = "".join(f"    x = {step}\n" for step in self.steps)
        return f"def program(a, b):\n    x = a\n{steps}    return x\n"

    def script(self, backend: str = "") -> str:
        """Return what runs by itself, on one backend."""
        head = "import multiop\nimport numpy as np\nfrom multiop import ops\nfrom numpy import inf\n\n"
        head += f"multiop.set_backend({backend!r})\n" + "multiop.enable_x64()\n" * (self.dtype in dtypes.WIDE)
        for name, x in zip("ab", self.operands, strict=True):
            head += f"{name} = ops.cast(np.array({x.tolist()}, {self.exact!r}).reshape({x.shape}), {self.dtype!r})\n"
        return f"{head}\n\n{self.source}\n\nprint(program(a, b))"

    def function(self, hook: Callable[[int, Any], Any] = _same, used: Callable[[int, Any], Any] = _same) -> Any:
        """Return the program, of which each operand and value passes through a hook, and through another where used."""
        names: dict[str, Any] = {"ops": ops, "hook": hook, "used": used}
        count = itertools.count()
        steps = [re.sub(r"\b[abx]\b", lambda name: f"used({next(count)}, {name[0]})", step) for step in self.steps]
        steps = "".join(f"    x = hook({k}, {step})\n" for k, step in enumerate(steps, 2))
        exec(f"def program(a, b):\n    x, b = hook(0, a), hook(1, b)\n{steps}    return x\n", names)
        return names["program"]

    def tensors(self, dtype: str) -> list[Any]:
        """Return the operands as tensors of the active backend."""
        return [ops.cast(x, dtype) for x in self.operands]

    def results(self, fun: Callable[..., Any], dtype: str, is_compiled: bool = False) -> list[Any]:
        """Return the value, the gradients, and the gradients of these."""
        derived = functools.partial(_derived, fun)
        found = (multiop.jit(derived) if is_compiled else derived)(*self.tensors(dtype))
        return [_on_host(y) for y in found]

    def values(self) -> list[Any]:
        """Return the operands, and the value after each step."""
        found: list[Any] = []
        self.function(lambda k, x: found.append(x) or x)(*self.tensors(self.exact))
        return found

    def expected(self) -> tuple[list[Any], list[Any]]:
        """Return what NumPy's backend finds, and how far rounding moves it: NaN where it is not to be compared."""
        found = self.results(self.function(), self.exact)
        moved = [np.zeros(np.shape(y)) for y in found]
        if self.kind == "integer":
            return found, moved
        for run in range(ROUNDINGS):
            hooks = (functools.partial(moved_by, self.dtype, run) for moved_by in (_moved, _moved_slope))
            others = self.results(self.function(*hooks), self.exact)
            for k, (y, other) in enumerate(zip(found, others, strict=True)):
                same = (y == other) | (np.isnan(y) & np.isnan(other))
                moved[k] = np.maximum(moved[k], np.where(same, 0, np.abs(y - other)))
        is_finite = all(np.isfinite(y).all() for y in (*self.operands, found[0]))
        if len(found) > 1:
            slopes = self.slopes() if is_finite else []
            compared = [is_finite and _is_ordinary(slopes, self.dtype)] * 2
            compared += [compared[0] and _is_ordinary([*map(_on_host, self.values()), *slopes], self.dtype, 0.5)] * 2
            nothing = (np.full(np.shape(y), np.nan) for y in found[1:])
            moved[1:] = [x if is_right else y for is_right, x, y in zip(compared, moved[1:], nothing, strict=True)]
        return found, moved

    def slopes(self) -> list[Any]:
        """Return the slopes of all values on the way."""
        added = {k: ops.zeros_like(x) for k, x in enumerate(self.values()) if _is_inexact(x)}

        def moved(*parts: Any) -> Any:
            each = dict(zip(added, parts, strict=True))
            return self.function(lambda k, x: x + each[k] if k in each else x)(*self.tensors(self.exact))

        value, pull = multiop.vjp(moved, *added.values())
        return list(map(_on_host, pull(_weights(value))))

    def look(
        self, backends: Sequence[str], notes: list[str] | None = None, only: str = "", **options: Any
    ) -> Difference | None:
        """Return the first difference: of a value or gradient, or `only` of what was found before."""
        with multiop.use_backend("numpy"), x64_mode_for("float64"), np.errstate(all="ignore"):
            try:
                expected, moved = self.expected()
            except Exception as error:
                return Difference("error", ("numpy",), f"numpy, {self.exact}: {error}", type(error).__name__)
        for backend in backends:
            is_compiled = backend in ("jax", "tensorflow") and self.seed % 4 > 0
            way = f"{'compiled' if is_compiled else 'eager'} on {backend}"
            with multiop.use_backend(backend), x64_mode_for(self.dtype), compiled_by(False), np.errstate(all="ignore"):
                try:
                    found = self.results(self.function(), self.dtype, is_compiled)
                except Exception as error:
                    if _is_limit(error) or isinstance(error, errors.NoGradientError):
                        continue
                    return Difference("error", (backend,), f"{way}: {error}"[:600], type(error).__name__)
            for what, y, right, room in zip(WHAT, found, expected, moved, strict=False):
                part = 0.01 if what == "second order" else 64 * float(_info(self.dtype).eps)
                is_rough = bool(ROUGH.search(self.source))
                if only in ("", what) and (told := missed(y, right, room, self.dtype, part, is_rough)):
                    return Difference(what, (backend,), f"{way}: {told}")
        return None

    def smaller(self) -> Iterator[Small]:
        """Return the programs that have one step less."""
        for k in range(len(self.steps)):
            if len(self.steps) > 1:
                yield dataclasses.replace(self, steps=self.steps[:k] + self.steps[k + 1 :])


def _is_inexact(x: Any) -> bool:
    return str(ops.dtype(x)) in dtypes.INEXACT


def _on_host(y: Any) -> Any:
    y = ops.convert_to_numpy(y)
    return y if y.dtype.kind in "biuc" else y.astype("float64")


def _weights(y: Any) -> Any:
    """Return an upstream gradient: numbers from 1 to 2, of three bits."""
    shape = ops.shape(y)
    return ops.cast((1 + (np.arange(int(np.prod(shape))) * 3 % 8) / 8).reshape(shape), ops.dtype(y))


def _derived(fun: Callable[..., Any], a: Any, b: Any) -> list[Any]:
    """Return the value, the gradients and the gradients of these, as far as there are any."""
    value = fun(a, b)
    if not _is_inexact(value) or not _is_inexact(a):
        return [value]

    def gradients(a: Any, b: Any) -> Any:
        y, pull = multiop.vjp(fun, a, b)
        return pull(_weights(y))

    first, pull = multiop.vjp(gradients, a, b)
    return [value, *first, *pull(tuple(map(_weights, first)))]


def _moved(dtype: str, run: int, k: int, x: Any) -> Any:
    """Return a value with rounding errors, the same for equal numbers."""
    if not _is_inexact(x):
        return x
    part = np.frexp(np.abs(ops.convert_to_numpy(ops.stop_gradient(x))))[0]
    return x * ops.cast(1 + 2 * float(_info(dtype).eps) * np.cos(37.0 * run + k + 1e5 * part), ops.dtype(x))


def _moved_slope(dtype: str, run: int, k: int, x: Any) -> Any:
    """Return a value whose slope has a rounding error."""
    factor = 1 + 2 * float(_info(dtype).eps) * math.cos(37.0 * run + 5 * k)
    return with_rule("slope", lambda x: ([x], lambda upstream: [upstream * factor]), x)[0] if _is_inexact(x) else x


def _is_ordinary(ys: Sequence[Any], dtype: str, power: float = 1.0) -> bool:
    """Say whether numbers are 0, infinite, NaN, or within the range of the dtype, to this power."""
    least, most = (float(x) ** power for x in (_info(dtype).tiny, _info(dtype).max / 4))
    sizes = (np.abs(y[np.isfinite(y) & (y != 0)]) for y in ys)
    return all(bool(((size >= least) & (size <= most)).all()) for size in sizes)


def missed(y: Any, right: Any, room: Any, dtype: str, part: float, is_rough: bool = False) -> str:
    """Say which entry is off by more than a part of it, or of the largest one, and than rounding explains."""
    if np.shape(y) != np.shape(right):
        return f"shape {np.shape(y)}, not {np.shape(right)}"
    if right.dtype.kind in "biu":
        wrong = y != right
    else:
        info, size = _info(dtype), np.where(np.isfinite(right), np.abs(right), 0)
        bound = part * (max(1.0, size.max(initial=1.0)) if is_rough else size) + 16 * room + 64 * float(info.tiny)
        close = (y == right) | (np.isnan(y) & np.isnan(right)) | (np.abs(y - right) <= bound)
        wrong = ~close & (room <= size / 64) & (size <= float(info.max) / 4)
    if not np.any(wrong):
        return ""
    at = tuple(map(int, np.argwhere(wrong)[0]))
    return f"{y[at]} at {at}, not {right[at]}, which rounding moves by {room[at]:.2g}"


def draw(seed: int) -> Small:
    """Draw operands, and steps whose results are numbers of the dtype."""
    rng = np.random.default_rng([seed, 44])
    dtype, shape = str(rng.choice(DTYPES)), SHAPES[rng.integers(len(SHAPES))]
    other = tuple(1 if rng.random() < 0.5 else n for n in shape) if rng.random() < 0.5 else shape
    other = SHAPES[rng.integers(len(SHAPES))] if rng.random() < 0.3 else other
    program, wanted = Small(seed, dtype, (shape, other), ()), int(rng.integers(2, 6))
    kinds = KINDS[program.kind]
    with multiop.use_backend("numpy"), x64_mode_for("float64"), np.errstate(all="ignore"):
        for _ in range(60):
            step = kinds[rng.integers(len(kinds))].replace("{axis}", str(rng.choice(["None", "0", "-1"])))
            names = {"x": "x", "y": str(rng.choice(["b", "b", "b", "a", "x"]))}
            if re.search(r"\by\b", step) and rng.random() < 0.3:
                names = {"x": names["y"], "y": "x"}
            step = re.sub(r"\b[xy]\b", lambda found: names[found[0]], step)
            grown = dataclasses.replace(program, steps=(*program.steps, step))
            with contextlib.suppress(Exception):
                if _fits(grown):
                    program = grown
            if len(program) == wanted:
                break
    return program if program.steps else dataclasses.replace(program, steps=("ops.negative(x)",))


def _fits(program: Small) -> bool:
    """Say whether the last step makes no number that the dtype has not, and no infinity or NaN by itself."""
    *_, before, y = map(_on_host, program.values())
    if y.size > 100 or y.ndim > 4 or y.dtype.kind not in "fc":
        return y.size <= 100 and y.ndim <= 4
    was_finite = before.dtype.kind not in "fc" or np.isfinite(before).all()
    if SQUARED.search(program.steps[-1]) and not _is_ordinary([before, *program.operands], program.dtype, 0.45):
        return False
    return _is_ordinary([y], program.dtype) and (not was_finite or bool(np.isfinite(y).all()))
