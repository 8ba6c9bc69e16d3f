"""Write the table of docs/limits.md on the digits of slopes, ours and the frameworks', against mpmath.

python tools/slopes.py            writes the table, in some 10 minutes; all three frameworks have to be installed
python tools/slopes.py NAME ...   prints the rows of some functions
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
import mpmath
import numpy as np
import torch  # noqa: F401, it comes before TensorFlow in one process
from mpmath import mp, mpf
from tables import show_table

import multiop
from multiop import errors
from multiop.testing._results import version

PAGE = ROOT / "docs/limits.md"
BACKENDS = {"torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow", "numpy": "NumPy"}
START = "<!-- the table of digits is made by tools/slopes.py, do not edit -->"
END = "<!-- end of the table of digits -->"
POINTS, DTYPES = 2000, (np.float32, np.float64)
HIGHEST = 4.0  # units in the last place that need no row
mp.prec = 260
LN2, LN10, ROOT_PI = mp.log(2), mp.log(10), mp.sqrt(mp.pi)


@dataclasses.dataclass(frozen=True)
class Function:
    """An op, its derivatives of both orders, where they are asked for, and the frameworks' own functions."""

    op: str
    first: tuple[Callable[..., Any], ...]
    second: tuple[Callable[..., Any], ...]  # with two operands: in the first twice, mixed, in the second twice
    native: tuple[str, str, str]  # of torch, jax, tensorflow
    draw: Callable[..., list[np.ndarray]] = dataclasses.field(default=lambda *given: [by_exponent(*given)])
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    call: Callable[..., Any] | None = None  # calls a function with what it wants beside the operands
    title: str = ""

    @property
    def name(self) -> str:
        """Return the call that a row shows."""
        return self.title or self.op + "".join(f", {k}={v}" for k, v in self.options.items())


def by_exponent(dtype: Any, rng: Any, low: int | None = None, high: int | None = None, signed: bool = True) -> Any:
    """Return numbers of which the exponents are drawn: half of all sizes, half of moderate ones."""
    info = np.finfo(dtype)
    low, high = info.minexp if low is None else low, info.maxexp - 1 if high is None else high
    every = rng.integers(low, high + 1, POINTS)
    moderate = rng.integers(max(low, -14), max(min(high, 11), low) + 1, POINTS)
    x = np.ldexp(1 + rng.random(POINTS), np.where(np.arange(POINTS) % 2, every, moderate))
    return (x * rng.choice([-1, 1], POINTS) if signed else x).astype(dtype)


def positive(dtype: Any, rng: Any) -> list[np.ndarray]:
    """Return numbers above 0."""
    return [by_exponent(dtype, rng, signed=False)]


def below(exponent: int) -> Callable[..., list[np.ndarray]]:
    """Return how to draw numbers below a power of 2."""
    return lambda dtype, rng: [by_exponent(dtype, rng, high=exponent - 1)]


def above_1(dtype: Any, rng: Any) -> list[np.ndarray]:
    """Return numbers above 1, half of them close to it."""
    near = 1 + np.ldexp(1 + rng.random(POINTS), rng.integers(-np.finfo(dtype).nmant, 0, POINTS))
    return [np.where(np.arange(POINTS) % 2, near, by_exponent(dtype, rng, 0, signed=False)).astype(dtype)]


def sides(dtype: Any, rng: Any) -> list[np.ndarray]:
    """Return two numbers, of which neither is much smaller than the other, or up to 2**40 times."""
    x, most = by_exponent(dtype, rng), float(np.finfo(dtype).max)
    ratio = np.ldexp(1 + rng.random(POINTS), rng.integers(-40, 40, POINTS) * (np.arange(POINTS) % 3 > 0))
    return [x, np.clip(x * ratio, -most, most).astype(dtype)]


def bases_and_exponents(dtype: Any, rng: Any) -> list[np.ndarray]:
    """Return operands of which the power is within the range, by its logarithm."""
    x, top = by_exponent(dtype, rng, signed=False), (np.finfo(dtype).maxexp - 2) * np.log(2)
    logs = np.log(x.astype(np.float64))
    wanted = top * np.where(np.arange(POINTS) % 3, np.exp(-20 * rng.random(POINTS)), rng.random(POINTS))
    return [x, (wanted * rng.choice([-1, 1], POINTS) / np.where(np.abs(logs) < 1e-9, 1e-9, logs)).astype(dtype)]


def close(dtype: Any, rng: Any) -> list[np.ndarray]:
    """Return two numbers that differ by less than 512."""
    x = by_exponent(dtype, rng)
    return [x, (x + by_exponent(dtype, rng, high=8)).astype(dtype)]


def ends(dtype: Any, rng: Any) -> list[np.ndarray]:
    """Return exponents of 10, of which the powers are within a tenth of the range."""
    most = np.log10(float(np.finfo(dtype).max)) - 1
    return [rng.uniform(-most, most, POINTS).astype(dtype) for _ in range(2)]


def moderate(dtype: Any, rng: Any) -> list[np.ndarray]:
    """Return two numbers between 1e-6 and 1,000."""
    return [by_exponent(dtype, rng, -20, 9, signed=False) for _ in range(2)]


def exp(x: Any) -> Any:
    """Return the exponential; far out, a number as good as infinite or 0."""
    return mp.exp(max(x, -(mpf(10) ** 6))) if x < 10**6 else mpf(10) ** 400000


def sigmoid(x: Any) -> Any:
    """Return the logistic function."""
    return 1 / (1 + exp(-x)) if x > 0 else exp(x) / (1 + exp(x))


def bump(x: Any) -> Any:
    """Return the slope of sigmoid."""
    return sigmoid(x) * sigmoid(-x)


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    return mp.tanh(x) if abs(x) < 1e5 else mp.sign(x)


def bumps_slope(x: Any) -> Any:
    """Return the second derivative of sigmoid."""
    return -bump(x) * tanh(x / 2)


def sinh(x: Any) -> Any:
    """Return the hyperbolic sine."""
    return mp.sinh(x) if abs(x) < 1e5 else mp.sign(x) * exp(abs(x))


def cosh(x: Any) -> Any:
    """Return the hyperbolic cosine."""
    return (exp(x) + exp(-x)) / 2


def bell(x: Any) -> Any:
    """Return the density of the normal distribution."""
    return exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def normal(x: Any) -> Any:
    """Return the normal distribution."""
    return mp.erfc(-x / mp.sqrt(2)) / 2 if abs(x) < 1e5 else mpf(x > 0)


def gelu_tanh(order: int) -> Callable[..., Any]:
    """Return a derivative of gelu by tanh."""

    def slope(x: Any) -> Any:
        scale, cubic = 2 * mp.sqrt(2 / mp.pi), mpf("0.044715")
        u, du, ddu = scale * (x + cubic * x**3), scale * (1 + 3 * cubic * x * x), scale * 6 * cubic * x
        if order == 1:
            return sigmoid(u) + x * bump(u) * du
        return 2 * bump(u) * du + x * (bumps_slope(u) * du * du + bump(u) * ddu)

    return slope


def arcsin_slope(x: Any) -> Any:
    """Return the slope of the arc sine."""
    return 1 / mp.sqrt((1 - x) * (1 + x))


def power(x: Any, y: Any) -> Any:
    """Return a power."""
    return exp(y * mp.log(x))


def cubed(x: Any, y: Any) -> Any:
    """Return the cube of a length."""
    return mp.hypot(x, y) ** 3


def halfway(x: Any, y: Any) -> Any:
    """Return the power of 10 in the middle between two."""
    return mpf(10) ** ((x + y) / 2)


def betaln_slope(a: Any, b: Any) -> Any:
    """Return the slope of the logarithm of the beta function in its first operand."""
    return mp.psi(0, a) - mp.psi(0, a + b)


def of_both(fn: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """Return the slopes of a symmetric function, from that in its first operand."""
    return fn, lambda x, y: fn(y, x)


def negated(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the negative of a function."""
    return lambda *xs: -fn(*xs)


def unary(op: str, first: Any, second: Any, name: str, jax: str = "", tensorflow: str = "", **others: Any) -> Function:
    """Return a function of one operand, by its name in PyTorch, and those of JAX and TensorFlow that differ."""
    last = name.rpartition(".")[2]
    native = f"torch.{name}", f"jax.numpy.{jax or last}", f"tensorflow.math.{tensorflow or last}"
    if jax.startswith(("jax.", "nn.")):
        native = native[0], jax if jax.startswith("jax.") else f"jax.{jax}", native[2]
    if tensorflow.startswith("nn."):
        native = *native[:2], f"tensorflow.{tensorflow}"
    return Function(op, (first,), (second,), native, **others)


FUNCTIONS = [
    unary("op_tanh", lambda x: 4 * bump(2 * x), lambda x: -8 * tanh(x) * bump(2 * x), "tanh"),
    unary("op_sigmoid", bump, bumps_slope, "sigmoid", "nn.sigmoid"),
    unary(
        "op_log_sigmoid",
        lambda x: sigmoid(-x),
        negated(bump),
        "nn.functional.logsigmoid",
        "nn.log_sigmoid",
        "log_sigmoid",
    ),
    unary("op_softplus", sigmoid, bump, "nn.functional.softplus", "nn.softplus"),
    unary(
        "op_softsign",
        lambda x: (1 + abs(x)) ** -2,
        lambda x: -2 * mp.sign(x) * (1 + abs(x)) ** -3,
        "nn.functional.softsign",
        "nn.soft_sign",
        "nn.softsign",
    ),
    unary(
        "op_silu",
        lambda x: sigmoid(x) + x * bump(x),
        lambda x: 2 * bump(x) + x * bumps_slope(x),
        "nn.functional.silu",
        "nn.silu",
        "nn.silu",
    ),
    unary(
        "op_gelu",
        lambda x: normal(x) + x * bell(x),
        lambda x: (2 - x * x) * bell(x),
        "nn.functional.gelu",
        "nn.gelu",
        "nn.gelu",
        options={"approximate": False},
    ),
    unary(
        "op_gelu", gelu_tanh(1), gelu_tanh(2), "nn.functional.gelu", "nn.gelu", "nn.gelu", options={"approximate": True}
    ),
    unary(
        "op_elu",
        lambda x: 1 if x > 0 else exp(x),
        lambda x: 0 if x > 0 else exp(x),
        "nn.functional.elu",
        "nn.elu",
        "nn.elu",
    ),
    unary("op_tanh_shrink", lambda x: tanh(x) ** 2, lambda x: 8 * tanh(x) * bump(2 * x), "nn.functional.tanhshrink"),
    unary(
        "op_squareplus",
        lambda x: (1 + x / mp.sqrt(x * x + 4)) / 2 if x > 0 else 2 / (mp.sqrt(x * x + 4) * (mp.sqrt(x * x + 4) - x)),
        lambda x: 2 / mp.sqrt(x * x + 4) ** 3,
        "squareplus",
        "nn.squareplus",
    ),
    unary(
        "op_erf",
        lambda x: 2 * exp(-x * x) / ROOT_PI,
        lambda x: -4 * x * exp(-x * x) / ROOT_PI,
        "erf",
        "jax.scipy.special.erf",
    ),
    unary(
        "op_erfc",
        lambda x: -2 * exp(-x * x) / ROOT_PI,
        lambda x: 4 * x * exp(-x * x) / ROOT_PI,
        "erfc",
        "jax.scipy.special.erfc",
    ),
    unary("op_exp2", lambda x: exp(x * LN2) * LN2, lambda x: exp(x * LN2) * LN2**2, "exp2"),
    unary("op_expm1", exp, exp, "expm1"),
    unary("op_log", lambda x: 1 / x, lambda x: -1 / x**2, "log", draw=positive),
    unary("op_log2", lambda x: 1 / x / LN2, lambda x: -1 / x**2 / LN2, "log2", draw=positive),
    unary("op_log10", lambda x: 1 / x / LN10, lambda x: -1 / x**2 / LN10, "log10", draw=positive),
    unary("op_log1p", lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2, "log1p", draw=positive),
    unary("op_sqrt", lambda x: 0.5 / mp.sqrt(x), lambda x: -0.25 / (mp.sqrt(x) * x), "sqrt", draw=positive),
    unary(
        "op_rsqrt",
        lambda x: -0.5 / (mp.sqrt(x) * x),
        lambda x: 0.75 / (mp.sqrt(x) * x * x),
        "rsqrt",
        "jax.lax.rsqrt",
        draw=positive,
    ),
    unary("op_cbrt", lambda x: 1 / (3 * mp.cbrt(x) ** 2), lambda x: -2 / (9 * mp.cbrt(x) ** 5), "cbrt", draw=positive),
    unary("op_reciprocal", lambda x: -1 / x**2, lambda x: 2 / x**3, "reciprocal"),
    unary("op_tan", lambda x: 1 + mp.tan(x) ** 2, lambda x: 2 * mp.tan(x) * (1 + mp.tan(x) ** 2), "tan", draw=below(7)),
    unary("op_arcsin", arcsin_slope, lambda x: x * arcsin_slope(x) ** 3, "asin", "arcsin", draw=below(0)),
    unary("op_arccos", negated(arcsin_slope), lambda x: -x * arcsin_slope(x) ** 3, "acos", "arccos", draw=below(0)),
    unary("op_arctan", lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2, "atan", "arctan"),
    unary("op_sinh", cosh, sinh, "sinh"),
    unary("op_cosh", sinh, cosh, "cosh"),
    unary("op_arcsinh", lambda x: 1 / mp.sqrt(1 + x * x), lambda x: -x / mp.sqrt(1 + x * x) ** 3, "asinh", "arcsinh"),
    unary(
        "op_arccosh",
        lambda x: 1 / mp.sqrt((x - 1) * (x + 1)),
        lambda x: -x / mp.sqrt((x - 1) * (x + 1)) ** 3,
        "acosh",
        "arccosh",
        draw=above_1,
    ),
    unary(
        "op_arctanh",
        lambda x: 1 / ((1 - x) * (1 + x)),
        lambda x: 2 * x / ((1 - x) * (1 + x)) ** 2,
        "atanh",
        "arctanh",
        draw=below(0),
    ),
    unary(
        "op_i0",
        lambda x: mp.besseli(1, x),
        lambda x: mp.besseli(0, x) - mp.besseli(1, x) / x,
        "special.i0",
        "i0",
        "bessel_i0",
        draw=below(10),
    ),
    Function(
        "op_divide",
        (lambda x, y: 1 / y, lambda x, y: -x / y**2),
        (lambda x, y: mpf(0), lambda x, y: -1 / y**2, lambda x, y: 2 * x / y**3),
        ("torch.div", "jax.numpy.divide", "tensorflow.divide"),
        sides,
    ),
    Function(
        "op_power",
        (lambda x, y: y * power(x, y - 1), lambda x, y: power(x, y) * mp.log(x)),
        (
            lambda x, y: y * (y - 1) * power(x, y - 2),
            lambda x, y: power(x, y - 1) * (1 + y * mp.log(x)),
            lambda x, y: power(x, y) * mp.log(x) ** 2,
        ),
        ("torch.pow", "jax.numpy.power", "tensorflow.pow"),
        bases_and_exponents,
    ),
    Function(
        "op_hypot",
        of_both(lambda x, y: x / mp.hypot(x, y)),
        (lambda x, y: y * y / cubed(x, y), lambda x, y: -x * y / cubed(x, y), lambda x, y: x * x / cubed(x, y)),
        ("torch.hypot", "jax.numpy.hypot", ""),
        sides,
    ),
    Function(
        "op_abs",
        of_both(lambda x, y: x / mp.hypot(x, y)),
        (lambda x, y: y * y / cubed(x, y), lambda x, y: -x * y / cubed(x, y), lambda x, y: x * x / cubed(x, y)),
        ("torch.abs", "jax.numpy.abs", "tensorflow.abs"),
        sides,
        call=lambda fn, x, y: fn(multiop.op_view_as_complex(multiop.op_stack([x, y], -1))),
        title="op_abs of x + 1j * y",
    ),
    Function(
        "op_logspace",
        of_both(lambda x, y: halfway(x, y) * LN10 / 2),
        (lambda x, y: halfway(x, y) * LN10**2 / 4,) * 3,
        ("", "jax.numpy.logspace", ""),
        ends,
        call=lambda fn, x, y: fn(x, y, 3)[1],
        title="op_logspace(x, y, 3)[1]",
    ),
    Function(
        "op_arctan2",
        (lambda x, y: y / mp.hypot(x, y) ** 2, lambda x, y: -x / mp.hypot(x, y) ** 2),
        (
            lambda x, y: -2 * x * y / mp.hypot(x, y) ** 4,
            lambda x, y: (x - y) * (x + y) / mp.hypot(x, y) ** 4,
            lambda x, y: 2 * x * y / mp.hypot(x, y) ** 4,
        ),
        ("torch.atan2", "jax.numpy.arctan2", "tensorflow.atan2"),
        sides,
    ),
    Function(
        "op_beta",
        of_both(lambda a, b: mp.beta(a, b) * betaln_slope(a, b)),
        (
            lambda a, b: mp.beta(a, b) * (betaln_slope(a, b) ** 2 + mp.psi(1, a) - mp.psi(1, a + b)),
            lambda a, b: mp.beta(a, b) * (betaln_slope(a, b) * betaln_slope(b, a) - mp.psi(1, a + b)),
            lambda a, b: mp.beta(a, b) * (betaln_slope(b, a) ** 2 + mp.psi(1, b) - mp.psi(1, a + b)),
        ),
        ("", "jax.scipy.special.beta", ""),
        moderate,
    ),
    Function(
        "op_betaln",
        of_both(betaln_slope),
        (
            lambda a, b: mp.psi(1, a) - mp.psi(1, a + b),
            lambda a, b: -mp.psi(1, a + b),
            lambda a, b: mp.psi(1, b) - mp.psi(1, a + b),
        ),
        ("", "jax.scipy.special.betaln", ""),
        moderate,
    ),
    Function(
        "op_logaddexp",
        of_both(lambda x, y: sigmoid(x - y)),
        (lambda x, y: bump(x - y), lambda x, y: -bump(x - y), lambda x, y: bump(x - y)),
        ("torch.logaddexp", "jax.numpy.logaddexp", ""),
        close,
    ),
]


def native(path: str, options: dict[str, Any]) -> Callable[..., Any] | None:
    """Return a function of a framework by its name; nothing if it has none."""
    first, *others = path.split(".")
    found: Any = importlib.import_module(first) if first else None
    for name in others:
        found = getattr(found, name, None)
    if found is None or not options:
        return found
    approximate = options["approximate"]
    if first == "torch":
        approximate = "tanh" if approximate else "none"
    return lambda x: found(x, approximate=approximate)


def derivatives(fn: Callable[..., Any], operands: int) -> tuple[list[Any], list[Any]]:
    """Return the first and second derivatives of a function of each entry."""

    def by(f: Callable[..., Any], place: int) -> Callable[..., Any]:
        return lambda *xs: multiop.vjp(f, *xs)[1](multiop.op_ones_like(xs[0]))[place]

    first = [by(fn, k) for k in range(operands)]
    return first, [by(first[j], k) for j in range(operands) for k in range(j, operands)]


def most_missed(found: Any, exact: list[Any], dtype: Any) -> float:
    """Return by how many units in the last place numbers are off, where what is exact is an ordinary number."""
    info, worst = np.finfo(dtype), 0.0
    for y, e in zip(np.asarray(found, dtype).tolist(), exact, strict=True):
        if e is not None and float(info.tiny) <= abs(e) <= float(info.max):
            off = abs(mpf(y) - e) if np.isfinite(y) else mpmath.inf
            worst = max(worst, float(off / mpf(float(np.spacing(dtype(float(abs(e))))))))
    return worst


def exactly(fn: Callable[..., Any], xs: list[list[Any]]) -> list[Any]:
    """Return the exact derivative at each point, or `None` where there is none."""
    found = []
    for point in zip(*xs, strict=True):
        try:
            found.append(mpf(fn(*point)))
        except (ZeroDivisionError, ValueError):
            found.append(None)
    return found


def measure(function: Function) -> dict[tuple[str, int], list[tuple[float, float | None]]]:
    """Return, by backend and order, how far we and the framework are off, in each dtype."""
    every: dict[tuple[str, int], list[tuple[float, float | None]]] = {}
    for dtype in DTYPES:
        points = function.draw(dtype, np.random.default_rng(7))
        ordinary = np.all([np.abs(x) >= np.finfo(dtype).tiny for x in points], 0)
        points = [x[ordinary] for x in points]
        exact_points = [[mpf(x) for x in column.tolist()] for column in points]
        for order, exact in ((1, function.first), (2, function.second)):
            answers = [exactly(fn, exact_points) for fn in exact]
            for k, backend in enumerate(BACKENDS):
                own = native(function.native[k], function.options) if backend != "numpy" else None
                with multiop.use_backend(backend), np.errstate(all="ignore"):
                    xs = [multiop.op_convert_to_tensor(x) for x in points]
                    off: list[float | None] = []
                    for fn in (functools.partial(getattr(multiop, function.op), **function.options), own):
                        if fn is None:
                            off.append(None)
                            continue
                        if function.call:
                            fn = functools.partial(function.call, fn)
                        slopes = derivatives(fn, len(xs))[order - 1]
                        try:
                            results = [multiop.op_convert_to_numpy(slope(*xs)) for slope in slopes]
                        except errors.NoGradientError:  # TensorFlow has no second derivative of some
                            off.append(None)
                            continue
                        off.append(max(most_missed(y, e, dtype) for y, e in zip(results, answers, strict=True)))
                every.setdefault((backend, order), []).append((off[0] or 0.0, off[1]))
    return every


def told(off: float | None) -> str:
    """Return units in the last place as short text."""
    if off is None:
        return "-"
    if off <= HIGHEST:
        return "≤4"
    return "∞" if np.isinf(off) else f"{off:.3g}" if off < 1e6 else ">1e6"


def told_once(off: Iterable[float | None]) -> str:
    """Return units in the last place in each dtype as short text; once where they are alike."""
    texts = [told(each) for each in off]
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)


def rows(functions: list[Function], every: bool = False) -> list[str]:
    """Return the lines of the table."""
    lines = [f"| slope of | order | {' | '.join(BACKENDS.values())} |", "|---|---|" + "---|" * len(BACKENDS)]
    for function in functions:
        found, by_cells = measure(function), dict[tuple[str, ...], list[str]]()
        for order in (1, 2):
            cells = [found[backend, order] for backend in BACKENDS]
            if every or any(ours > HIGHEST for cell in cells for ours, _ in cell):
                texts = []
                for backend, cell in zip(BACKENDS, cells, strict=True):
                    text, own = (told_once(off) for off in zip(*cell, strict=True))
                    own = "none" if own == "-" else own
                    texts.append(text if backend == "numpy" or own == text else f"{text} ({own})")
                by_cells.setdefault(tuple(texts), []).append(f"{order}")
        lines += [f"| `{function.name}` | {','.join(orders)} | {' | '.join(key)} |" for key, orders in by_cells.items()]
    return lines


def main() -> None:
    """Write the page, or print some rows."""
    multiop.enable_x64()
    if names := sys.argv[1:]:
        print("\n".join(rows([f for f in FUNCTIONS if f.op in names], every=True)))
        return
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    versions = ", ".join(f"{title} {version(name).partition('+')[0]}" for name, title in BACKENDS.items())
    measured = f"Measured on a CPU, eagerly, with {versions}, by `python tools/slopes.py`."
    table = "\n".join(show_table("slopes", rows(FUNCTIONS)))
    PAGE.write_text(f"{before}{START}\n\n{measured}\n\n{table}\n\n{END}{after}", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
