"""Random programs in multiop ops: drawn, written as Python source, compared across backends and modes, made smaller.

A program is its source: what is run is what is printed, so that a difference can be pasted anywhere.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import itertools
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import multiop
from multiop import errors
from multiop._loading.registry import active
from multiop._values import dtypes
from multiop.testing import Mismatch, _checks, normal
from multiop.testing._case import Call
from multiop.testing._problem import Problem
from multiop.testing._shared_process import x64_mode_for
from multiop.testing._tolerances import assert_equal, eps, noise

# the shapes of what is computed: a matrix, one of its rows, one of its columns, a scalar
SHAPES = {"M": (3, 4), "R": (4,), "C": (3,), "S": ()}
INPUTS = {"x": "M", "y": "R", "z": "C", "s": "S"}
EVERY = "MRCS"


@dataclasses.dataclass(frozen=True)
class Kind:
    """One way to compute something: source with `{0}`, `{1}` for the arguments and `{f0}`, `{f1}` for inner functions.

    Attributes:
        source: The expression; lines before it that end in a line break are statements, where `{v}` is a unique name.
        takes: The letter of each argument's shape; `?` is the shape of the result.
        gives: The letters of the shapes that it may have.
        blocks: For each inner function, the shapes of its parameters, and after `>` that of what it returns.
        weight: How often it is drawn, relative to the others.
        traits: What is special about it. "stops": numerical derivatives see what `stop_gradient` hides. "odd": a rule
            is not the derivative, on purpose. "alone": its functions are of their parameters alone. "while": there is
            no reverse mode on JAX. "outermost": it is in no inner function.
    """

    source: str
    takes: str
    gives: str = EVERY
    blocks: tuple[str, ...] = ()
    weight: float = 1.0
    traits: tuple[str, ...] = ()


def _unary(*sources: str) -> list[Kind]:
    return [Kind(source, "?") for source in sources]


# none of these grows faster than its arguments, so that forty of them stay in the range of every dtype
PLAIN = [
    *_unary(
        "ops.tanh({0})",
        "ops.sin({0})",
        "ops.sigmoid({0})",
        "ops.softplus({0})",
        "ops.arctan({0})",
        "ops.erf({0})",
        "ops.gelu({0})",
        "ops.silu({0})",
        "ops.elu({0})",
        "ops.softsign({0})",
        "ops.abs({0})",
        "ops.relu({0})",
        "ops.negative({0})",
        "ops.clip({0}, -0.7, 0.9)",
        "ops.exp(ops.sin({0}))",
        "ops.expm1(ops.tanh({0}))",
        "ops.log1p(ops.square({0}))",
        "ops.sqrt(1 + ops.square({0}))",
        "ops.reciprocal(1 + ops.square({0}))",
        "ops.arcsinh({0})",
        "ops.cos({0}) * 0.9",
        "ops.where({0} > 0.3, {0}, ops.tanh({0}) - 0.5)",
    ),
    *(
        Kind(source, "??", weight=1.5)
        for source in (
            "0.7 * ({0} + {1})",
            "0.7 * ({0} - {1})",
            "{0} * ops.tanh({1})",
            "ops.maximum({0}, {1})",
            "ops.minimum({0}, {1})",
            "{0} / (1 + ops.square({1}))",
            "ops.hypot({0}, {1}) * 0.7",
            "ops.where({0} > {1}, {0} * ops.sin({1}), ops.cos({1}))",
            "ops.logaddexp({0}, {1}) - 0.5",
            "ops.arctan2({0}, 1 + ops.square({1}))",
        )
    ),
    Kind("ops.softmax({0}, axis=-1)", "?", "MRC"),
    Kind("ops.log_softmax({0}, axis=-1) * 0.5", "?", "MRC"),
    Kind("{0} - ops.mean({0}, axis=-1, keepdims=True)", "?", "MRC"),
    Kind("ops.cumsum({0}, axis=0) * 0.5", "?", "MRC"),
    Kind("ops.cumprod(ops.tanh({0}), axis=-1)", "?", "MRC"),
    Kind("ops.sort({0}, axis=-1)", "?", "MRC"),
    Kind("ops.roll({0}, 1, axis=-1)", "?", "MRC"),
    Kind("ops.flip({0}, axis=0)", "?", "MRC"),
    Kind("ops.concatenate([{0}[1:], ops.sin({0}[:1])], axis=0)", "?", "MRC"),
    Kind("{0} * ops.tanh({1})", "?S"),
    Kind("ops.tanh(ops.matmul(ops.matmul({0}, ops.transpose({0})), {0}) / 4)", "M", "M"),
    Kind("ops.layer_normalization({0}, epsilon=0.1)", "M", "M"),
    Kind("{0} * ops.tanh({1})", "MR", "M"),
    Kind("ops.tanh({1})[:, None] - {0}", "RC", "M"),
    Kind("ops.outer({0}, ops.sin({1}))", "CR", "M"),
    Kind("ops.transpose(ops.reshape({0}, (4, 3)))", "M", "M"),
    Kind("ops.take({0}, [2, 0, 0], axis=0)", "M", "M"),
    Kind("ops.segment_sum({0}, ops.array([1, 0, 1]), 3) * 0.6", "M", "M"),
    Kind("ops.scatter_update({0}, [[0], [2]], ops.stack([{1}, ops.sin({1})]))", "MR", "M"),
    Kind("ops.mean({0}, axis=0)", "M", "R"),
    Kind("ops.max({0}, axis=0)", "M", "R"),
    Kind("ops.prod(ops.sin({0}), axis=0)", "M", "R"),
    Kind("{0}[1]", "M", "R"),
    Kind("ops.matmul(ops.tanh({1}), {0}) * 0.5", "MC", "R"),
    Kind("ops.logsumexp({0}, axis=-1) - 1.0", "M", "C"),
    Kind("ops.min({0}, axis=-1)", "M", "C"),
    Kind("ops.var({0}, axis=-1)", "M", "C"),
    Kind("{0}[:, 2]", "M", "C"),
    Kind("ops.matmul({0}, ops.tanh({1})) * 0.5", "MR", "C"),
    Kind('ops.einsum("ij,j,i->i", ops.tanh({0}), {1}, ops.cos({2})) * 0.5', "MRC", "C"),
    *(
        Kind(source, takes, "S")
        for takes in "MRC"
        for source in (
            "ops.mean({0})",
            "ops.max({0})",
            "ops.norm({0}) * 0.5",
            "ops.logsumexp({0}) - 1.0",
            "ops.std({0})",
        )
    ),
    Kind("ops.sum({0} * ops.tanh({1})) * 0.3", "RR", "S"),
    Kind("ops.dot({0}, ops.sin({1})) * 0.4", "CC", "S"),
]

CONTROL = [
    Kind("ops.cond(ops.sum({0}) > 0.2, lambda: {f0}({1}), lambda: {f1}({1}))", "??", blocks=("?>?", "?>?")),
    Kind("ops.cond({0} > 0.1, {f0}, {f1})", "S", blocks=(">?", ">?")),
    Kind("ops.switch(ops.argmax({0}), [{f0}, {f1}, {f1}], {1})", "C?", blocks=("?>?", "?>?")),
    Kind("ops.fori_loop(0, 3, lambda i, c: {f0}(c) + 0.1 * ops.cast(i, ops.dtype({0})), {0})", "?", blocks=("?>?",)),
    Kind("ops.fori_loop(0, 2, lambda i, c: ({f0}(c[1], c[0]), 0.5 * c[0]), ({0}, {1}))[0]", "??", blocks=("??>?",)),
    Kind("ops.scan(lambda c, r: ({f0}(c, r), c * ops.tanh(r)), {1}, {0})[1]", "MR", "M", blocks=("RR>R",)),
    Kind("ops.scan(lambda c, r: ({f0}(c, r), None), {1}, {0}, reverse=True)[0]", "MR", "R", blocks=("RR>R",)),
    Kind("ops.scan(lambda c, r: (c * 0.5 + ops.mean(r), {f0}(r, c)), {1}, {0})[1]", "MS", "C", blocks=("RS>S",)),
    Kind("ops.associative_scan(lambda a, b: a * ops.cos(b) + b, {0})", "M", "M", weight=0.5),
    Kind("ops.map({f0}, {0})", "M", "M", blocks=("R>R",)),
    Kind("multiop.vmap({f0})({0})", "M", "C", blocks=("R>S",)),
    Kind("multiop.vmap({f0}, in_axes=(0, None))({0}, {1})", "MR", "M", blocks=("RR>R",)),
    Kind("multiop.checkpoint({f0})({0}, {1})", "??", blocks=("??>?",)),
    Kind("multiop.grad(lambda w: ops.sum({f0}(w)))({0}) * 0.5", "?", blocks=("?>?",), weight=0.5),
    Kind("multiop.jvp({f0}, ({0},), ({1},))[1] * 0.5", "??", blocks=("?>?",), weight=0.5),
    Kind(
        "ops.while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, {f0}(c)), (0, {0}))[1]",
        "?",
        blocks=("?>?",),
        traits=("while",),
        weight=0.3,
    ),
    Kind(
        "ops.while_loop(lambda c: ops.sum(ops.abs(c)) > 0.5, lambda c: (0.5 * c,), (ops.stop_gradient({0}),))[0]",
        "?",
        traits=("stops",),
        weight=0.3,
    ),
    Kind("ops.stop_gradient({0})", "?", traits=("stops",)),
    Kind("{0} + ops.stop_gradient(ops.sin({1}))", "??", traits=("stops",)),
]

# rules: right ones, some through vjp or another custom gradient, and some that are another function's on purpose
_RULE = "@multiop.op_custom_gradient\ndef {v}_custom({names}):\n{body}\n{v}_custom({args})"


def _custom(
    body: str, takes: str, gives: str = EVERY, blocks: tuple[str, ...] = (), traits: tuple[str, ...] = ()
) -> Kind:
    names = ", ".join("abc"[: len(takes)])
    source = _RULE.replace("{names}", names).replace("{body}", textwrap.indent(textwrap.dedent(body).strip(), "    "))
    return Kind(
        source.replace("{args}", ", ".join(f"{{{k}}}" for k in range(len(takes)))),
        takes,
        gives,
        blocks,
        2.0,
        ("alone", *traits),
    )


CUSTOM = [
    _custom("t = ops.tanh(a)\nreturn t, lambda upstream: upstream * (1 - t * t)", "?"),
    _custom("return a * ops.sin(b), lambda upstream: (upstream * ops.sin(b), upstream * a * ops.cos(b))", "??"),
    _custom("return {f0}(a), lambda upstream: multiop.vjp({f0}, a)[1](upstream)[0]", "?", blocks=("?>?",)),
    _custom("return {f0}(a, b), lambda upstream: multiop.vjp({f0}, a, b)[1](upstream)", "??", blocks=("??>?",)),
    _custom("return ops.sum(ops.sin(a)), lambda upstream: upstream * ops.cos(a)", "M", "S"),
    _custom(
        "e = ops.exp(-ops.abs(a))\n"
        "def rule(upstream):\n"
        "    return upstream * ops.where(a > 0, 1 / (1 + e), e / (1 + e))\n"
        "return ops.maximum(a, 0.0) + ops.log1p(e), rule",
        "?",
    ),
    _custom(
        "@multiop.op_custom_gradient\n"
        "def inner(u, w):\n"
        "    return u * ops.cos(w), lambda upstream: (upstream * ops.cos(w), -upstream * u * ops.sin(w))\n"
        "return ops.sin(a), lambda upstream: inner(upstream, a)",
        "?",
    ),
    _custom("return ops.round(a * 4) / 4, lambda upstream: upstream", "?", traits=("odd",)),
    _custom("return a * 1.0, lambda upstream: upstream * ops.exp(-ops.square(a))", "?", traits=("odd",)),
    _custom("return {f0}(a), lambda upstream: 0.5 * {f1}(a) * upstream", "?", "RCS", ("?>?", "?>?"), ("odd",)),
]


@dataclasses.dataclass(frozen=True)
class Block:
    """Steps one after the other.

    Attributes:
        parameters: Name and shape of what it takes, beside what is around it.
        steps: The steps.
        results: What it returns: names, of these or of the parameters, or, in an inner function, of what is around it.
    """

    parameters: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    results: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Step:
    """One variable: how it is computed, of what, and its shape."""

    name: str
    shape: str
    kind: Kind
    arguments: tuple[str, ...]
    blocks: tuple[Block, ...] = ()


@dataclasses.dataclass(frozen=True)
class Program:
    """A function `program(x, y, z, s)`."""

    block: Block
    seed: int

    @functools.cached_property
    def source(self) -> str:
        """The program as Python source."""
        return "import multiop\nfrom multiop import ops\n\n\n" + "\n".join(function("program", self.block)) + "\n"

    @functools.cached_property
    def traits(self) -> set[str]:
        """What is special about its steps."""
        return {trait for step in _steps(self.block) for trait in step.kind.traits}

    def __len__(self) -> int:
        return sum(1 for _ in _steps(self.block))

    def script(self, backend: str) -> str:
        """Return what is printed of it: the source, the same on every backend."""
        return self.source

    def look(self, backends: Sequence[str], **options: Any) -> Difference | None:
        """Find a difference."""
        return look(self, backends, **options)

    def smaller(self) -> Iterator[Program]:
        """Return the programs that are one piece smaller."""
        return (dataclasses.replace(self, block=block) for block in _smaller(self.block))


def _steps(block: Block) -> Iterator[Step]:
    for step in block.steps:
        yield step
        for inner in step.blocks:
            yield from _steps(inner)


def function(name: str, block: Block) -> list[str]:
    lines = [f"def {name}({', '.join(parameter for parameter, _ in block.parameters)}):"]
    for step in block.steps:
        functions = {}
        for k, inner in enumerate(step.blocks):
            functions[f"f{k}"] = f"{step.name}_f{k}"
            lines += textwrap.indent("\n".join(function(f"{step.name}_f{k}", inner)), "    ").splitlines()
        *before, last = step.kind.source.format(*step.arguments, v=step.name, **functions).split("\n")
        lines += [f"    {line}" for line in [*before, f"{step.name} = {last}"]]
    return [*lines, f"    return {', '.join(block.results)}"]


# drawing


class Drawing:
    """Draws the steps of one program; so large a share of its inner functions closes over what is around them."""

    def __init__(self, rng: np.random.Generator, kinds: Sequence[Kind], shapes: str, closures: float = 0.4) -> None:
        self.rng, self.kinds, self.shapes, self.closures, self.n = rng, kinds, shapes, closures, 0

    def block(self, size: int, parameters: dict[str, str], outer: dict[str, str], depth: int, gives: str) -> Block:
        """Draw a block of about `size` steps; `gives` is the shape that it returns, or empty for what is left over."""
        known = outer | parameters
        fresh = list(parameters)  # what nothing has used yet
        steps: list[Step] = []
        for n in range(size):
            possible: list[Kind] = []
            while not possible:  # a matrix cannot be made from only a scalar
                drawn = str(self.rng.choice(list(self.shapes)))
                shape = gives if gives and n == size - 1 else drawn
                possible = self._possible(known, shape, depth)
                if not possible and gives and n == size - 1:  # of scalars alone, say, what is returned cannot be made
                    spread = f"ops.broadcast_to(ops.mean({{0}}), {SHAPES[shape]})"
                    possible = [Kind(spread, next(iter(known.values())), shape)]
            weights = np.array([kind.weight for kind in possible])
            kind = possible[self.rng.choice(len(possible), p=weights / weights.sum())]
            arguments: tuple[str, ...] = ()
            for take in kind.takes:
                arguments += (self._argument(shape if take == "?" else take, known, fresh, arguments),)
            name = f"v{self.n}"
            self.n += 1
            closed = {} if "alone" in kind.traits else known
            blocks = tuple(self._inner(one, shape, closed, depth) for one in kind.blocks)
            steps.append(Step(name, shape, kind, arguments, blocks))
            fresh = [one for one in fresh if one not in arguments] + [name]
            known = known | {name: shape}
        if gives:
            return Block(tuple(parameters.items()), tuple(steps), (steps[-1].name,))
        left = [step.name for step in steps if step.name in fresh]
        return Block(tuple(parameters.items()), tuple(steps), tuple(left[-4:]))

    def _inner(self, told: str, shape: str, closed: dict[str, str], depth: int) -> Block:
        takes, gives = told.split(">")
        names = {}
        for take in takes:
            names[f"p{self.n}"] = shape if take == "?" else take
            self.n += 1
        size = int(self.rng.integers(1, 4))
        outer = closed if closed and (not takes or self.rng.random() < self.closures) else {}
        return self.block(size, names, outer, depth + 1, shape if gives == "?" else gives)

    def _possible(self, known: dict[str, str], shape: str, depth: int) -> list[Kind]:
        there = set(known.values())
        return [
            kind
            for kind in self.kinds
            if shape in kind.gives
            and all((shape if take == "?" else take) in there for take in kind.takes)
            and (depth < 2 or not kind.blocks)
            and (depth == 0 or "outermost" not in kind.traits)
        ]

    def _argument(self, shape: str, known: dict[str, str], fresh: list[str], taken: tuple[str, ...]) -> str:
        names = [name for name, has in known.items() if has == shape]
        if self.rng.random() < 0.9:  # twice the same is rare
            names = [name for name in names if name not in taken] or names
        unused = [name for name in names if name in fresh]
        return str(self.rng.choice(unused if unused and self.rng.random() < 0.8 else names))


def draw(
    seed: int,
    size: tuple[int, int] = (5, 40),
    control: bool = True,
    inputs: Sequence[str] = ("x", "y", "z", "s"),
    shapes: str = EVERY,
) -> Program:
    """Draw a program of so many steps, those of inner functions left out; without `control`, of ops alone."""
    rng = np.random.default_rng([seed, 5])
    kinds = PLAIN
    if control:  # a program has a taste, or all of them would be much alike
        tastes = [kind for kind in CONTROL + CUSTOM if rng.random() < 0.4]
        kinds = PLAIN + [dataclasses.replace(kind, weight=2 * kind.weight) for kind in tastes]
    drawing = Drawing(rng, kinds, "MM" + shapes)
    steps = int(rng.integers(size[0], size[1] + 1))
    return Program(drawing.block(steps, {name: INPUTS[name] for name in inputs}, {}, 0, ""), seed)


# running


def compiled(source: str, rounding: int | None = None) -> Callable[..., Any]:
    """Return the function that a program's source defines; `rounding` says in which other way each step is rounded."""
    names: dict[str, Any] = {}
    tree = ast.parse(source)
    if rounding is not None:
        names["rounded"] = functools.partial(_rounded, rounding)
        tree = ast.fix_missing_locations(_Rounding().visit(tree))
        names["from_result"] = {name: _from_result(name, names["rounded"]) for name in FROM_RESULT}
    exec(compile(tree, "<program>", "exec"), names)
    return names["program"]


class _Rounding(ast.NodeTransformer):
    """Writes `rounded(n, step)` for the n-th step: an op that is called, or an operator."""

    steps = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(ast.Name("ops"), name):
                if name in FROM_RESULT:
                    node.func = ast.Subscript(ast.Name("from_result", ast.Load()), ast.Constant(name), ast.Load())
                return self._wrapped(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._wrapped(node)

    def _wrapped(self, node: ast.expr) -> ast.AST:
        self.steps += 1
        return ast.Call(ast.Name("rounded", ast.Load()), [ast.Constant(self.steps), node], [])


# What frameworks compute of the rounded result: where that is next to a limit, few digits of the derivative are left
FROM_RESULT: dict[str, Callable[[Any], Any]] = {
    "tanh": lambda y: 1 - y * y,
    "sigmoid": lambda y: y * (1 - y),
    "elu": lambda y: 1 + multiop.op_minimum(y, 0.0),
}


def _from_result(name: str, rounded: Callable[[int, Any], Any]) -> Callable[[Any], Any]:
    """Return an op whose derivative is computed of the result, rounded otherwise."""

    @multiop.op_custom_gradient
    def op(x: Any) -> Any:
        y = rounded(0, getattr(multiop, f"op_{name}")(x))
        return y, lambda upstream: upstream * FROM_RESULT[name](y)

    return op


def _rounded(rounding: int, step: int, y: Any) -> Any:
    """Return what a step gives, with each entry moved by one unit in the last place, the same way in every run."""
    backend = active()
    if not backend.is_tensor(y) or not backend.dtype_name(y).startswith("float"):
        return y
    dtype = dtypes.to_numpy(backend.dtype_name(y))
    shape = tuple(y.shape)
    shape = shape if all(isinstance(n, int) for n in shape) else ()  # in a graph it may not be known
    signs = np.random.default_rng([rounding, step, *shape]).choice([-1.0, 1.0], shape)
    return y * backend.convert(np.asarray(1 + eps(dtype) * signs, dtype))


class Examined(Problem):
    """A program at one input, and the same with its steps rounded otherwise."""

    def __init__(self, source: str, call: Call, **options: Any) -> None:
        super().__init__(compiled(source), call, **options)
        self.source, self.options, self.backend = source, options, multiop.backend()

    @functools.cached_property
    def variants(self) -> list[Problem]:
        """Fresh copies of the program, as it is and rounded in other ways."""
        options = {**self.options, "together": ()}
        return [Problem(compiled(self.source, k), self.call, **options) for k in (None, *range(Problem.perturbations))]

    def allow_for_steps(self) -> None:
        """Have scales cover what rounding the steps moves: where terms cancel, that of the inputs may not show it."""
        reach = max((float(np.abs(x).max(initial=0.0)) for x in self.arrays), default=0.0)
        for fun, scales in self.scales.items():
            value, *runs = [variant.run(getattr(variant, fun.__name__)) for variant in self.variants]
            for k, y in enumerate(value):
                moved = noise(y, [run[k] for run in runs], reach) / (eps(y.dtype) or 1.0)
                scales[k] = np.fmax(scales[k], moved)


@dataclasses.dataclass(frozen=True)
class Difference:
    """What is wrong with a program: the property, on which backends, and in words."""

    what: str
    backends: tuple[str, ...]
    message: str
    raised: str = ""  # the class of the error, where one was raised

    def is_like(self, other: Difference | None) -> bool:
        """Say whether another program shows the same."""
        return other is not None and (self.what, self.raised) == (other.what, other.raised)


COMPARED = {  # between the backends: way -> the method of `Problem` that computes it
    "value": "outputs",
    "gradient": "gradient_tensors",
    "second order": "second_tensors",
    "forward over reverse": "forward_over_reverse_tensors",
    "forward mode": "forward_tensors",
}
ALONE = ("differentiated value", "finite differences", "second finite differences", "duality", "vmap", "compiled")
WAYS = (*COMPARED, *ALONE)
# What costs most is done in turns: with every so many-th program, from this one on; the numbers are coprime, so that
# any two meet in some program. Step by step, JAX compiles each loop whenever it meets it: what is compared elsewhere is
# one compiled program. Numerical derivatives are taken on one backend, with which the others are compared.
TURNS = {
    "second order": (2, 0),
    "second finite differences": (2, 0),
    "vmap": (3, 1),
    "forward over reverse": (5, 0),
    "compiled on jax": (5, 2),
}
# errors that docs/limits.md tells of, as the framework words them
LIMITS = (
    "Trying to add unsupported dtype 10",
    "https://github.com/tensorflow/tensorflow/issues/44598",
    "don't yet support saved tensor hooks",
    "would draw the same numbers at each call",
    "a tape cannot record inside torch.func transforms",
)


def ways_of(seed: int, backends: Sequence[str]) -> dict[str, list[str]]:
    """Return which ways it is a program's turn to go, by backend; values and gradients always."""
    turns = {way for way, (every, first) in TURNS.items() if seed % every == first}
    ways = {}
    for k, backend in enumerate(backends):
        chosen = [way for way in WAYS if turns.issuperset({way, f"{way} on {backend}"} & TURNS.keys())]
        is_checked = seed // 2 % len(backends) == k
        ways[backend] = [way for way in chosen if is_checked or not way.endswith("finite differences")]
    return ways


def find(
    source: str,
    backends: Sequence[str],
    *,
    traits: Sequence[str] = (),
    seed: int = 0,
    dtype: str = "float64",
    inputs: Sequence[str] = ("x", "y", "z", "s"),
    only: str = "",
    ways: dict[str, list[str]] | None = None,
    inductor: bool = False,
    notes: list[str] | None = None,
) -> Difference | None:
    """Run a program in every way on every backend; return the first difference.

    Args:
        source: What defines `program`.
        backends: Names of backends.
        traits: Those of its kinds, see `Kind`.
        seed: Seeds the inputs.
        dtype: Dtype of the inputs.
        inputs: Which of the inputs `x`, `y`, `z`, `s` it takes.
        only: The one way to go.
        ways: Those to go on each backend, all of `WAYS` by default.
        inductor: Whether PyTorch compiles with Inductor, which takes seconds, or runs what it has traced.
        notes: Where to say what was done, and which ways prove nothing here.
    """
    call = Call(tuple(normal(*SHAPES[INPUTS[name]]) for name in inputs), {})
    measured: dict[str, dict[str, Examined]] = {}
    notes = [] if notes is None else notes
    with x64_mode_for(dtype):
        for backend in backends:
            chosen = [only] if only else ways[backend] if ways else WAYS
            what = "value"
            with multiop.use_backend(backend), compiled_by(inductor):
                options: dict[str, Any] = {"dtype": dtype, "seed": seed, "name": "program"}
                problem = Examined(source, call, **options, whole=backend == "jax")
                loops = "while" in traits and backend == "jax"
                try:
                    reverse = not (loops and _has_none(problem, "gradient_tensors"))
                    # forward mode of a rule that differentiates a loop in reverse is refused with it
                    possible = [*COMPARED] if reverse else ["value", "forward mode"]
                    if not reverse and _has_none(problem, "forward_tensors"):
                        possible.remove("forward mode")
                    if backend == "jax":
                        compared = [way for way in possible if way in chosen]
                        modes = [COMPARED[way] for way in compared if way != "value"]
                        also = ["gradient_tensors", "primal_tensors"] if reverse and not only else []
                        together = dict.fromkeys(["outputs", *also, *modes])
                        problem = Examined(source, call, **options, whole=True, together=tuple(together))
                    for what, mode in COMPARED.items():
                        if what in chosen and what in possible:
                            problem.run(getattr(problem, mode))
                            measured.setdefault(what, {})[backend] = problem
                            notes.append(f"{what} on {backend}")
                    for what in ALONE:
                        if what in chosen:
                            eager = Examined(source, call, **options) if backend == "jax" else problem
                            told = _told(what, problem, eager, traits, reverse)
                            notes.append(f"{what} on {backend}" + (f" proves nothing: {told}" if told else ""))
                except Mismatch as error:
                    return Difference(what, (backend,), str(error))
                except Exception as error:
                    # the program itself may differentiate a loop in reverse
                    if _is_limit(error) or (loops and isinstance(error, errors.NoGradientError)):
                        notes.append(f"{what} on {backend} proves nothing: a limit of the framework")
                        continue
                    name = type(error).__name__
                    return Difference(what, (backend,), f"{what} on {backend} raises {name}: {error}", name)
        for what, problems in measured.items():
            for one, other in itertools.combinations(problems, 2):
                try:
                    _compare(what, {one: problems[one], other: problems[other]})
                except Mismatch as error:
                    return Difference(what, (one, other), str(error))
    return None


@contextlib.contextmanager
def compiled_by(inductor: bool) -> Iterator[None]:
    """Make PyTorch run traced code without compiling it, unless Inductor is requested."""
    if inductor or "torch" not in sys.modules:
        yield
        return
    with sys.modules["torch"].compiler.set_stance("force_eager"):
        yield


def _has_none(problem: Problem, mode: str) -> bool:
    """Say whether there is no derivative in this mode, as documented of a loop on JAX."""
    try:
        problem.run(getattr(problem, mode))
    except errors.NoGradientError:
        return True
    return False


def _settled(check: Callable[[], Any], *problems: Examined) -> None:
    """Run a check; what rounding moves is measured, which takes runs, only if the size of the results won't explain.

    First the inputs are rounded otherwise, then each step of the program.
    """
    try:
        for problem in problems:
            problem.perturbations = 0
        check()
        return
    except _checks.NoEstimate:
        raise
    except Mismatch:
        for problem in problems:
            problem.perturbations = Problem.perturbations
            problem.scales.clear()
    try:
        check()
    except Mismatch:
        for problem in problems:
            with multiop.use_backend(problem.backend):
                problem.allow_for_steps()
        check()


def _compare(what: str, problems: dict[str, Examined]) -> None:
    """Compare what two backends have computed."""

    def check() -> None:
        results: list[Any] = []
        for backend, problem in problems.items():
            fun = getattr(problem, COMPARED[what])
            with multiop.use_backend(backend):
                results += [problem.run(fun), _checks.rounding_scales(problem, fun)]
        _checks.assert_agree(*results, f"{what} on {' against '.join(problems)}")

    _settled(check, *problems.values())


def _told(what: str, problem: Examined, eager: Examined, traits: Sequence[str], reverse: bool) -> str:
    """Check one property; return why it proves nothing, where it doesn't or where a limit of the framework is met."""
    try:
        return _alone(what, problem, eager, traits, reverse)
    except Exception as error:
        if _is_limit(error):
            return "a limit of the framework"
        raise


def _is_limit(error: Exception) -> bool:
    return any(text in str(error) for text in LIMITS)


def _alone(what: str, problem: Examined, eager: Examined, traits: Sequence[str], reverse: bool) -> str:
    """Check one property on the active backend; return why it proves nothing, where it doesn't."""
    if what == "vmap":
        _settled(lambda: _checks.check_vmap(problem, gradient=reverse), problem)
    elif what == "compiled" and problem.whole:
        for mode in ("outputs", "gradient_tensors") if reverse else ("outputs",):
            _settled(lambda mode=mode: _check_steps(problem, eager, mode), problem)  # type: ignore[misc]
    elif what == "compiled":
        _settled(lambda: _checks.check_compiled(problem, gradient=reverse), problem)
    elif not reverse:
        return "no reverse mode"
    elif what == "differentiated value":
        _settled(lambda: _checks.check_primal(problem), problem)
    elif what == "duality":
        _settled(lambda: _checks.check_forward_mode(problem), problem)
    else:
        if {"stops", "odd"} & set(traits):
            return "not the derivative on purpose"
        check = _checks.check_gradient if what == "finite differences" else _checks.check_second_order
        try:
            check(problem)
        except _checks.NoEstimate:
            return "no numerical estimate"
    return ""


def _check_steps(program: Problem, eager: Problem, mode: str) -> None:
    """Compare what one program computes with what is computed step by step."""
    fun = getattr(program, mode)
    expected, scales = eager.run(getattr(eager, mode)), functools.partial(_checks.rounding_scales, program, fun)
    assert_equal(program.run(fun), expected, f"compiled {mode} on {multiop.backend()}", scales=scales)


def look(program: Program, backends: Sequence[str], **options: Any) -> Difference | None:
    """Find a difference of a drawn program."""
    inputs = [name for name, _ in program.block.parameters]
    return find(program.source, backends, traits=sorted(program.traits), seed=program.seed, inputs=inputs, **options)


# making smaller


def minimised(
    program: Program, difference: Difference, tries: int = 400, seconds: float = float("inf"), **options: Any
) -> Program:
    """Drop what a difference does not need, step by step, for as long as it stays."""
    smaller, end = True, time.monotonic() + seconds
    while smaller and tries > 0:
        smaller = False
        for candidate in program.smaller():
            tries = tries - 1 if time.monotonic() < end else 0
            with contextlib.suppress(Exception):
                if difference.is_like(candidate.look(difference.backends, only=difference.what, **options)):
                    program, smaller = candidate, True
                    break
            if tries <= 0:
                break
    return program


def _smaller(block: Block, outermost: bool = True) -> Iterator[Block]:
    """Return the blocks that are one piece smaller, large pieces first; inner functions keep the shape they return."""
    if len(block.results) > 1:
        for result in block.results:
            yield _alive(dataclasses.replace(block, results=(result,)))
    used = _names(block)
    for k, step in enumerate(block.steps):  # one at a time
        if step.name not in used:
            yield dataclasses.replace(block, steps=block.steps[:k] + block.steps[k + 1 :])
    for step in block.steps:  # end early
        if step.name != block.results[-1] and (outermost or step.shape == _shape(block, block.results[-1])):
            yield _alive(dataclasses.replace(block, results=(step.name,)))
    for k, step in enumerate(block.steps):
        there = [*step.arguments, *(name for name, _ in block.parameters)]
        for name in dict.fromkeys(name for name in there if _shape(block, name) == step.shape):
            rest = tuple(_renamed(one, step.name, name) for one in block.steps[k + 1 :])
            results = tuple(name if one == step.name else one for one in block.results)
            without = dataclasses.replace(block, steps=block.steps[:k] + rest, results=results)
            yield _alive(without)
            yield without  # with steps that nothing uses any more, which may matter all the same
    for k, step in enumerate(block.steps):
        for n, inner in enumerate(step.blocks):
            for less in _smaller(inner, outermost=False):
                changed = dataclasses.replace(step, blocks=(*step.blocks[:n], less, *step.blocks[n + 1 :]))
                yield _alive(dataclasses.replace(block, steps=(*block.steps[:k], changed, *block.steps[k + 1 :])))


def _shape(block: Block, name: str) -> str:
    return (dict(block.parameters) | {step.name: step.shape for step in block.steps}).get(name, "")


def _renamed(step: Step, old: str, new: str) -> Step:
    def name(one: str) -> str:
        return new if one == old else one

    blocks = tuple(
        dataclasses.replace(
            block,
            steps=tuple(_renamed(one, old, new) for one in block.steps),
            results=tuple(map(name, block.results)),
        )
        for block in step.blocks
    )
    return dataclasses.replace(step, arguments=tuple(map(name, step.arguments)), blocks=blocks)


def _names(block: Block) -> set[str]:
    """Return the names that a block uses."""
    inner = [one for step in block.steps for one in step.blocks]
    return set(block.results).union(*(step.arguments for step in block.steps), *map(_names, inner))


def _alive(block: Block) -> Block:
    """Return the block without the steps that nothing uses."""
    while True:
        used = _names(block)
        steps = tuple(step for step in block.steps if step.name in used)
        if len(steps) == len(block.steps):
            return block
        block = dataclasses.replace(block, steps=steps)
