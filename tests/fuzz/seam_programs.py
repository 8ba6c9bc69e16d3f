"""Random programs of transforms that nest over closures, run as training loops do, and compared with NumPy's answer.

A program is a script: what is run is what is printed. It draws random numbers, fills one buffer again and again, writes
into what it was given a copy of, and runs in threads; it counts the tensors that are alive, and no result may have a
graph. What it should give comes from `reference`, which runs the same source.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import dual_numbers as reference
import numpy as np
from random_programs import SHAPES, Difference, Drawing, Kind, Program, function
from scripts import failure

STEPS = 3

SMOOTH = [
    *(
        Kind(source, "?", "RS")
        for source in (
            "ops.tanh({0})",
            "ops.sin({0})",
            "ops.sigmoid({0})",
            "ops.softplus({0})",
            "ops.arctan({0})",
            "ops.exp(ops.sin({0}))",
            "ops.log(2 + ops.square({0}))",
            "ops.sqrt(1 + ops.square({0}))",
            "ops.reciprocal(1 + ops.square({0}))",
            "0.9 * ops.cos({0})",
        )
    ),
    *(
        Kind(source, "??", "RS", weight=2.0)
        for source in (
            "0.7 * ({0} + {1})",
            "0.7 * ({0} - {1})",
            "{0} * ops.tanh({1})",
            "{0} / (1 + ops.square({1}))",
            "ops.sin({0} * {1})",
        )
    ),
    Kind("{0} * ops.tanh({1})", "RS", "R", weight=2.0),
    Kind("ops.stack([{0}, ops.sin({1}), {0} * {1}, ops.cos({0})])", "SS", "R"),
    Kind("ops.mean({0})", "R", "S"),
    Kind("ops.sum({0} * ops.sin({1})) * 0.3", "RR", "S", weight=2.0),
    Kind("{0}[1]", "R", "S"),
    Kind("{0} + ops.stop_gradient(ops.sin({0}))", "?", "RS"),
]
_TAPE = "with multiop.GradientTape() as {v}_tape:\n    {v}_x = {v}_tape.watch(1.0 * {0})\n    {v}_y = {f0}({v}_x)\n"
_RULE = "@multiop.op_custom_gradient\ndef {v}_custom(a):\n    return "
TRANSFORMS = [
    Kind("multiop.grad({f0})({0}) * 0.5", "?", "RS", ("?>S",)),
    Kind("multiop.grad(lambda a: ops.sum({f0}(a)))({0}) * 0.5", "R", "R", ("R>R",)),
    Kind("multiop.value_and_grad({f0})({0})[0]", "R", "S", ("R>S",)),
    Kind("multiop.value_and_grad({f0})({0})[1] * 0.5", "?", "RS", ("?>S",)),
    Kind("multiop.grad(lambda a: ({f0}(a), {f1}(a)), has_aux=True)({0})[1]", "R", "R", ("R>S", "R>R")),
    Kind("multiop.vjp({f0}, {0})[1]({1})[0] * 0.5", "??", "RS", ("?>?",)),
    Kind("multiop.vjp({f0}, {0}, {1})[1](1.0)[1] * 0.5", "R?", "RS", ("R?>S",)),
    Kind("multiop.vjp({f0}, {0})[0]", "?", "RS", ("?>?",)),
    Kind("multiop.jvp({f0}, ({0},), ({1},))[1] * 0.5", "??", "RS", ("?>?",)),
    Kind("multiop.jvp({f0}, ({0},), ({1},))[0]", "RR", "R", ("R>R",)),
    Kind("ops.matmul(multiop.jacrev({f0})({0}), {1}) * 0.3", "RR", "R", ("R>R",)),
    Kind("ops.matmul(multiop.jacfwd({f0})({0}), {1}) * 0.3", "RR", "R", ("R>R",)),
    Kind("ops.matmul(multiop.hessian({f0})({0}), {1}) * 0.3", "RR", "R", ("R>S",)),
    Kind("multiop.hvp({f0}, ({0},), ({1},)) * 0.3", "??", "RS", ("?>S",)),
    Kind("multiop.vmap({f0})({0})", "R", "R", ("S>S",)),
    Kind("multiop.vmap(multiop.grad({f0}))({0}) * 0.5", "R", "R", ("S>S",)),
    Kind("multiop.vmap({f0}, in_axes=(0, None))({0}, {1})", "R?", "R", ("S?>S",)),
    Kind("multiop.checkpoint({f0})({0})", "?", "RS", ("?>?",)),
    Kind("multiop.jit({f0})({0})", "?", "RS", ("?>?",), weight=0.3),
    Kind(_TAPE + '{v}_tape.gradient({v}_y, {v}_x, unconnected_gradients="zero") * 0.5', "?", "RS", ("?>S",)),
    Kind(_RULE + "{f0}(a), lambda u: multiop.vjp({f0}, a)[1](u)[0]\n{v}_custom({0})", "?", "RS", ("?>?",)),
    Kind(_RULE + "ops.sin(a), lambda u: u * a\n{v}_custom({0})", "?", "RS"),
]
TRANSFORMS = [dataclasses.replace(kind, traits=("alone",)) if "custom" in kind.source else kind for kind in TRANSFORMS]
_DROPOUT = "multiop.random.dropout({0}, 0.5, seed=generator)"
RANDOM = [
    Kind(_DROPOUT, "R", "R", traits=("outermost",), weight=3.0),
    Kind(
        "multiop.checkpoint(lambda a: {f0}(" + _DROPOUT.replace("{0}", "a") + "))({0})",
        "R",
        "R",
        ("R>R",),
        traits=("outermost",),
        weight=6.0,
    ),
]

# how a step takes the derivative: lines that end in `gradient`, of the shape of `w`
CALLS = {
    "grad": "gradient = multiop.grad({fun})(w, t)",
    "value_and_grad": "value, gradient = multiop.value_and_grad({fun})(w, t)",
    "aux": "(value, aux), gradient = multiop.value_and_grad(lambda w, t: ({fun}(w, t), w * t), has_aux=True)(w, t)",
    "vjp": "value, pullback = multiop.vjp({fun}, w, t)\ngradient, aux = pullback(1.0)",
    "jvp": "value, tangent = multiop.jvp(lambda w: {fun}(w, t), (w,), (t,))\ngradient = tangent * t",
    "jacrev": "gradient = multiop.jacrev({fun})(w, t)",
    "jacfwd": "gradient = multiop.jacfwd({fun})(w, t)",
    "hvp": "gradient = multiop.hvp(lambda w: {fun}(w, t), (w,), (t,))",
    "hessian": "gradient = ops.matmul(multiop.hessian(lambda w: {fun}(w, t))(w), t)",
    "tape": "with multiop.GradientTape() as tape:\n    x = tape.watch(w)\n    loss = {fun}(x, t)\n"
    'gradient = tape.gradient(loss, x, unconnected_gradients="zero")',
    "vmap": "of_each = multiop.vmap(multiop.grad(lambda w, s: {fun}(w, s * t)), in_axes=(None, 0))(w, t)\n"
    "gradient = ops.mean(of_each, axis=0)",
    "native": "gradient = ops.convert_to_numpy(native_grad({fun})(w, t))",
}
NATIVE = {
    "numpy": "native_grad = multiop.grad\n\n",  # it has no transform of its own
    "jax": "import jax\n\nnative_grad = jax.grad\n",
    "torch": "import torch\n\n\ndef native_grad(fun):\n"
    "    return lambda w, t: torch.func.grad(fun)(torch.as_tensor(w), torch.as_tensor(t))\n\n",
    "tensorflow": """import tensorflow as tf


def native_grad(fun):
    def gradient(w, t):
        w, t = tf.convert_to_tensor(w), tf.convert_to_tensor(t)
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = fun(w, t)
        return tape.gradient(y, w, unconnected_gradients="zero")

    return gradient

""",
}
# how a step takes its data
ENTRIES = (
    "{0}",
    "ops.convert_to_tensor({0})",
    "ops.array({0})",
    "ops.add({0}, 0.0)",
    "ops.copy({0})",
    "multiop.jit(lambda a: ops.multiply(a, 1.0))({0})",
)

HEAD = '''import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import multiop
from multiop import ops

{native}multiop.enable_x64()


def alive():
    """Count the tensors of every framework."""
    gc.collect()
    objects = gc.get_objects()
    if multiop.backend() == "numpy":  # arrays are not tracked, what holds them is
        objects = {id(x): x for x in gc.get_referents(*objects)}.values()
    return sum(type(x).__name__ in ("Tensor", "EagerTensor", "ArrayImpl", "ndarray") for x in objects)


def overwrite(x):
    """Write into a tensor, where its framework can."""
    if hasattr(x, "fill_"):
        x.fill_(float("nan"))


'''
CHECK = """
got = np.concatenate([np.ravel(x) for run in results for step in run for x in step])
want = np.array({want})
np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9 * abs(want).max(), err_msg="value")
"""


@dataclasses.dataclass(frozen=True)
class Frame:
    """What a program runs in.

    Attributes:
        call: How the derivative is taken: a name of `CALLS`.
        wrap: What the program is passed through: a format.
        entry: How data gets in: one of `ENTRIES`.
        size: How many numbers are behind each of the data's four; 0: none, and no buffer is filled again.
        writes: Whether a copy of the data is written into.
        threads: How many threads run the loop.
        is_random: Whether there is a generator.
        is_fresh: Whether it needs a process of its own.
    """

    call: str = "grad"
    wrap: str = "{0}"
    entry: str = "ops.convert_to_tensor({0})"
    size: int = 0
    writes: bool = False
    threads: int = 1
    is_random: bool = False
    is_fresh: bool = False

    @property
    def source(self) -> str:
        """The loop, as source after the program's."""
        fun = self.wrap.format("program")
        take = [f"t = {self.entry.format('rows[step]')}"]
        if self.size:
            take = [
                "buffer[:] = rows[step]",
                f"batch = {self.entry.format('buffer')}",
                f"t = ops.mean(ops.reshape(batch, (4, {self.size})), axis=1)",
            ]
            take.insert(2 if self.entry != "{0}" else 3, "buffer[:] = np.nan")
        if self.writes:
            take.append("overwrite(ops.array(t))")
        call = CALLS[self.call].format(fun=fun)
        targets = "".join(line.partition("=")[0] for line in call.split("\n"))
        returned = "".join(f"{name}, " for name in ("value", "aux", "gradient") if name in targets)
        step = [
            *take,
            *call.split("\n"),
            f"for result in [{returned[:-2]}]:",
            '    assert not getattr(result, "requires_grad", False), "graph: a result requires grad"',
            f"steps.append([ops.convert_to_numpy(result).tolist() for result in [{returned[:-2]}]])",
            "w = w - 0.1 * gradient",
        ]
        if self.threads == 1:
            step += ["counts.append(alive())"]
        lines = ["steps, counts = [], []"]
        lines += ["w = ops.convert_to_tensor(w)"] if self.call != "native" else []
        lines += [f"buffer = np.empty({4 * self.size + 1})[1:]"] if self.size else []
        lines += [f"for step in range({STEPS}):", *(f"    {line}" for line in step)]
        if self.threads == 1:
            lines += ['assert counts[-1] <= counts[1], f"memory: tensors that are alive after each step: {counts}"']
        if self.is_random:
            lines += ["steps.append([generator.state[1]])"]
        body = "\n".join(f"    {line}" for line in [*lines, "return steps"])
        before, run = "", "results = [train(w)]"
        if self.threads > 1:
            before = "backend = multiop.backend()\n"
            body = "    with multiop.use_backend(backend):\n" + textwrap.indent(body, "    ")
            run = f"with ThreadPoolExecutor({self.threads}) as pool:\n"
            run += f"    results = list(pool.map(train, [w * (1 + k) for k in range({self.threads})]))"
        before += "generator = multiop.random.SeedGenerator(7)\n" if self.is_random else ""
        return (
            f"{before}w = np.random.default_rng(1).normal(size=4)\n"
            f"rows = np.random.default_rng(2).normal(size=({STEPS}, {4 * self.size or 4}))\n"
            f"\n\ndef train(w):\n{body}\n\n\n{run}\n"
        )

    def plainer(self) -> Iterator[Frame]:
        """Return the frames that are one piece plainer."""
        for field in dataclasses.fields(self):
            if getattr(self, field.name) != field.default and field.name not in ("is_random", "is_fresh"):
                yield dataclasses.replace(self, **{field.name: field.default})


@dataclasses.dataclass(frozen=True)
class Seam(Program):
    """A function `program(w, t)` and the loop around it."""

    frame: Frame = Frame()

    @functools.cached_property
    def body(self) -> str:
        """What both multiop and the reference run."""
        return "\n".join(function("program", self.block)) + f"\n\n\n{self.frame.source}"

    @property
    def source(self) -> str:  # type: ignore[override]
        """The script, as it is run on JAX."""
        return self.script("jax")

    def script(self, backend: str) -> str:
        """Return what runs by itself."""
        native = NATIVE[backend] + "\n" if "native" in self.frame.call else ""
        want = "[" + ", ".join(f"{x:.12g}" for x in self.expected) + "]"
        wrapped = "\n".join(textwrap.wrap(want, 110))
        return HEAD.replace("{native}", native) + self.body + CHECK.replace("{want}", wrapped)

    @functools.cached_property
    def expected(self) -> list[float]:
        """What the results should be, by the reference."""
        names: dict[str, Any] = {
            "np": np,
            "multiop": reference,
            "ops": reference.ops,
            "alive": lambda: 0,
            "overwrite": lambda x: None,
            "native_grad": reference.grad,
            "ThreadPoolExecutor": concurrent.futures.ThreadPoolExecutor,
        }
        exec(compile(self.body, "<reference>", "exec"), names)
        return [float(y) for run in names["results"] for step in run for x in step for y in np.ravel(x)]

    def look(self, backends: Sequence[str], notes: list[str] | None = None, **options: Any) -> Difference | None:
        """Run it on each backend."""
        for backend in backends:
            if difference := failure(self.script(backend), backend, notes, is_fresh=self.frame.is_fresh, **options):
                return difference
        return None

    def smaller(self) -> Iterator[Seam]:
        """Return the programs that are one piece smaller, or in a plainer frame."""
        yield from (dataclasses.replace(self, frame=frame) for frame in self.frame.plainer())
        yield from super().smaller()  # type: ignore[misc]


def draw(seed: int) -> Seam:
    """Draw a program of a few steps, and what it runs in."""
    rng = np.random.default_rng([seed, 42])
    is_random, is_fresh = seed % 4 == 1, seed % 25 == 0

    def some(share: float) -> bool:
        return bool(rng.random() < share)

    kinds = SMOOTH + [dataclasses.replace(kind, weight=2.5 * kind.weight) for kind in TRANSFORMS if some(0.5)]
    calls = [name for name in CALLS if not (is_random and name == "vmap")]
    wraps = ["{0}"] * 4 + ["multiop.checkpoint({0})"] + ["multiop.jit({0})"] * (not is_random)
    size = 0 if is_fresh or some(0.6) else int(rng.choice([1, 250, 4096, 16384, 65536]))
    frame = Frame(
        "native" if is_fresh else str(rng.choice(calls)),
        "{0}" if is_fresh else str(rng.choice(wraps)),
        "{0}" if is_fresh else str(rng.choice(ENTRIES[size == 0 :])),
        size,
        some(0.2) and not is_fresh,
        1 if is_random or some(0.8) else 3,
        is_random,
        is_fresh,
    )
    drawing = Drawing(rng, kinds + (RANDOM if is_random else []), "RRS", closures=0.8)
    block = drawing.block(int(rng.integers(2, 6)), {"w": "R", "t": "R"}, {}, 0, "S")
    return Seam(block, seed, frame)


assert SHAPES["R"] == (4,)
