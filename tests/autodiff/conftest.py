"""Fixtures of the contract tests, and the table of constructs against backends that is made from their results.

    python -m pytest tests/autodiff --contract-table=docs/contract.md

Each test carries `@pytest.mark.construct("name")`. A test that holds that something wrong is refused says
`construct("name", error=True)`; `error=("jax",)` where only some backends refuse. `only="torch"` names the backend of a
test that does not take the `backend` fixture. The table keeps the columns of backends that were not part of the run.
"""

from __future__ import annotations

import gc
from pathlib import Path

import contract_table
import numpy as np
import pytest

import multiop as mo


def pytest_addoption(parser):
    parser.addoption("--contract-table", metavar="PATH", help="write the table of constructs against backends to PATH")


def pytest_configure(config):
    config.addinivalue_line("markers", "construct(name, error=False, only=None): a row of docs/contract.md")
    if config.getoption("--contract-table", None):
        config.pluginmanager.register(ContractTable(Path(config.getoption("--contract-table"))))


def pytest_collection_modifyitems(config, items):
    asked = config.getoption("--backends")
    if asked is None:
        return
    other = {
        i: mark
        for i in items
        if (mark := i.get_closest_marker("construct")) and mark.kwargs.get("only", asked) not in asked
    }
    config.hook.pytest_deselected(items=list(other))
    items[:] = [item for item in items if item not in other]


class ContractTable:
    """Collect the outcome of each test by construct and backend, and write them as a table."""

    def __init__(self, path):
        self.path = path
        self.cells = {}  # construct -> backend -> set of verdicts
        self.order = []

    @pytest.hookimpl(tryfirst=True)  # what is left out of this run stays on the page
    def pytest_collection_modifyitems(self, items):
        for item in items:
            mark = item.get_closest_marker("construct")
            if mark is None:
                continue
            backend = mark.kwargs.get("only") or next(
                part for part in item.callspec.id.split("-") if part in contract_table.BACKENDS
            )
            error = mark.kwargs.get("error", False)
            expected = "clear error" if error is True or (error and backend in error) else "right"
            if mark.args[0] not in self.order:
                self.order.append(mark.args[0])
            item.user_properties.append(("construct", (mark.args[0], backend, expected)))

    def pytest_runtest_logreport(self, report):
        for key, value in report.user_properties:
            if key != "construct" or (report.when != "call" and report.outcome == "passed"):
                continue
            construct, backend, expected = value
            verdicts = self.cells.setdefault(construct, {}).setdefault(backend, set())
            if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
                continue  # the framework has no such thing
            verdicts.add({"passed": expected, "failed": "WRONG", "skipped": "known failure"}[report.outcome])

    def pytest_sessionfinish(self):
        rows, old = {}, self._read()
        for construct in self.order:
            cells = self.cells.get(construct, {})
            rows[construct] = {b: v for b, v in old.get(construct, {}).items() if b not in cells}  # not run this time
            for backend, verdicts in cells.items():
                if verdicts:
                    told = ["WRONG"] if "WRONG" in verdicts else sorted(verdicts, reverse=True)
                    rows[construct][backend] = ", ".join(told)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(contract_table.text(rows), encoding="utf-8")

    def _read(self):
        return contract_table.read(self.path.read_text(encoding="utf-8")) if self.path.is_file() else {}


@pytest.fixture
def x64():
    """Run the test in the 64-bit mode."""
    before = mo.x64()
    mo.enable_x64()
    yield
    mo.enable_x64(before)


@pytest.fixture
def no_gc():
    """Run the test without the cycle collector, so that only reference counts free memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def native(backend):
    """The framework's own transforms and compilers, under common names."""
    if backend == "numpy":
        pytest.skip(f"{backend} has no transforms of its own")
    return BESIDE[backend]()


@pytest.fixture
def beside(backend):
    """The same, for tests that are about more: NumPy has none of these."""
    return BESIDE.get(backend, Nothing)()


class Nothing:
    """What has no ways of its own."""

    def reverse(self):
        return {}

    forward = compilers = reverse


class Torch:
    """Ways to differentiate, map and compile a scalar or elementwise function with only PyTorch."""

    def reverse(self):
        import torch

        def of_autograd(f):
            def gradient(x):
                x = x.detach().requires_grad_()
                return torch.autograd.grad(f(x).sum(), x)[0]

            return gradient

        def of_backward(f):
            def gradient(x):
                x = x.detach().requires_grad_()
                f(x).sum().backward()
                return x.grad

            return gradient

        return {
            "torch.autograd.grad": of_autograd,
            "Tensor.backward": of_backward,
            "torch.func.grad": lambda f: torch.func.grad(lambda x: f(x).sum()),
            "torch.func.vjp": lambda f: lambda x: torch.func.vjp(f, x)[1](torch.ones_like(x))[0],
            "torch.func.jacrev": lambda f: lambda x: torch.func.jacrev(f)(x).sum(0),
            "torch.autograd.functional.vjp": lambda f: (
                lambda x: torch.autograd.functional.vjp(f, x, torch.ones_like(x))[1]
            ),
            "torch.utils.checkpoint": lambda f: of_autograd(
                lambda x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
            ),
        }

    def forward(self):
        import torch
        import torch.autograd.forward_ad as fwd

        def dual(f):
            def tangent(x, t):
                with fwd.dual_level():
                    return fwd.unpack_dual(f(fwd.make_dual(x, t))).tangent

            return tangent

        return {
            "torch.func.jvp": lambda f: lambda x, t: torch.func.jvp(f, (x,), (t,))[1],
            "torch.autograd.forward_ad": dual,
            "torch.func.jacfwd": lambda f: lambda x, t: torch.func.jacfwd(f)(x) @ t,
        }

    def second(self):
        import torch

        def of_autograd(f):
            def gradient(x):
                x = x.detach().requires_grad_()
                (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
                return torch.autograd.grad(g.sum(), x)[0]

            return gradient

        grad = lambda f: torch.func.grad(lambda x: f(x).sum())
        return {
            "torch.autograd.grad twice": of_autograd,
            "torch.func.grad twice": lambda f: grad(grad(f)),
            "torch.func.hessian": lambda f: lambda x: torch.func.hessian(lambda x: f(x).sum())(x).sum(0),
            "torch.func.jvp of grad": lambda f: lambda x: torch.func.jvp(grad(f), (x,), (torch.ones_like(x),))[1],
            "torch.func.grad of jvp": lambda f: grad(lambda x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1]),
            "torch.func.jvp of jvp": lambda f: (
                lambda x: torch.func.jvp(
                    lambda y: torch.func.jvp(f, (y,), (torch.ones_like(y),))[1], (x,), (torch.ones_like(x),)
                )[1]
            ),
        }

    def mapped(self):
        import torch

        return {"torch.vmap": torch.vmap, "torch.func.vmap": torch.func.vmap}

    def compilers(self):
        import torch

        def compiled(f):
            torch._dynamo.reset()
            return torch.compile(f, fullgraph=True, backend="aot_eager")

        return {"torch.compile(fullgraph=True)": compiled}

    def full_compilers(self):
        import torch

        def compiled(f):
            torch._dynamo.reset()
            return torch.compile(f, fullgraph=True)

        return {"torch.compile(fullgraph=True), inductor": compiled}

    def variable(self, value):
        import torch

        return torch.nn.Parameter(torch.tensor(value))


class Jax:
    """The same with only JAX."""

    def reverse(self):
        import jax
        import jax.numpy as jnp

        grad = lambda f: jax.grad(lambda x: f(x).sum())
        return {
            "jax.grad": grad,
            "jax.vjp": lambda f: lambda x: jax.vjp(f, x)[1](jnp.ones_like(x))[0],
            "jax.jacrev": lambda f: lambda x: jax.jacrev(f)(x).sum(0),
            "jax.linearize, transposed": lambda f: (
                lambda x: jax.linear_transpose(jax.linearize(f, x)[1], x)(jnp.ones_like(x))[0]
            ),
            "jax.checkpoint": lambda f: grad(jax.checkpoint(f)),
        }

    def forward(self):
        import jax

        return {
            "jax.jvp": lambda f: lambda x, t: jax.jvp(f, (x,), (t,))[1],
            "jax.linearize": lambda f: lambda x, t: jax.linearize(f, x)[1](t),
            "jax.jacfwd": lambda f: lambda x, t: jax.jacfwd(f)(x) @ t,
        }

    def second(self):
        import jax
        import jax.numpy as jnp

        grad = lambda f: jax.grad(lambda x: f(x).sum())
        push = lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]
        return {
            "jax.grad twice": lambda f: grad(grad(f)),
            "jax.hessian": lambda f: lambda x: jax.hessian(lambda x: f(x).sum())(x).sum(0),
            "jax.jvp of jax.grad": lambda f: push(grad(f)),
            "jax.grad of jax.jvp": lambda f: grad(push(f)),
            "jax.jvp of jax.jvp": lambda f: push(push(f)),
        }

    def mapped(self):
        import jax

        return {"jax.vmap": jax.vmap}

    def compilers(self):
        import jax

        return {"jax.jit": jax.jit}

    def full_compilers(self):
        import jax

        return {"jax.jit": jax.jit, "jax.lax.map": lambda f: lambda x: jax.lax.map(f, x[None])[0]}


class TensorFlow:
    """The same with only TensorFlow."""

    def reverse(self):
        import tensorflow as tf

        def of_tape(f):
            def gradient(x):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = f(x)
                return tape.gradient(y, x)

            return gradient

        def of_jacobian(f):
            def gradient(x):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = f(x)
                return tf.reduce_sum(tape.jacobian(y, x), 0)

            return gradient

        return {
            "tf.GradientTape": of_tape,
            "GradientTape.jacobian": of_jacobian,
            "tf.gradients": lambda f: tf.function(lambda x: tf.gradients(f(x), x)[0], autograph=False),
            "tf.recompute_grad": lambda f: of_tape(tf.recompute_grad(f)),
        }

    def forward(self):
        import tensorflow as tf

        def of_accumulator(f):
            def tangent(x, t):
                with tf.autodiff.ForwardAccumulator(x, t) as accumulator:
                    y = f(x)
                return accumulator.jvp(y)

            return tangent

        return {"tf.autodiff.ForwardAccumulator": of_accumulator}

    def second(self):
        import tensorflow as tf

        reverse = self.reverse()["tf.GradientTape"]
        forward = self.forward()["tf.autodiff.ForwardAccumulator"]
        push = lambda f: lambda x: forward(f)(x, tf.ones_like(x))
        return {
            "GradientTape twice": lambda f: reverse(reverse(f)),
            "ForwardAccumulator over GradientTape": lambda f: push(reverse(f)),
            "GradientTape over ForwardAccumulator": lambda f: reverse(push(f)),
            "ForwardAccumulator twice": lambda f: push(push(f)),
            "tf.gradients twice": lambda f: tf.function(
                lambda x: tf.gradients(tf.gradients(f(x), x)[0], x)[0], autograph=False
            ),
        }

    def mapped(self):
        import tensorflow as tf

        return {
            "tf.vectorized_map": lambda f: lambda x: tf.vectorized_map(f, x),
            "tf.map_fn": lambda f: lambda x: tf.map_fn(f, x),
        }

    def compilers(self):
        import tensorflow as tf

        return {
            "tf.function": lambda f: tf.function(f, autograph=False),
            "tf.function with autograph": lambda f: tf.function(f),
        }

    def full_compilers(self):
        import tensorflow as tf

        return {"tf.function(jit_compile=True)": lambda f: tf.function(f, jit_compile=True, autograph=False)}

    def variable(self, value):
        import tensorflow as tf

        return tf.Variable(value)


@pytest.fixture
def numpy():
    """Return the NumPy array of a tensor, bfloat16 as float32."""

    def convert(x):
        array = np.asarray(mo.op_convert_to_numpy(x))
        return array.astype(np.float32) if array.dtype.name in ("bfloat16", "float16") else array

    return convert


BESIDE = {"torch": Torch, "jax": Jax, "tensorflow": TensorFlow}
