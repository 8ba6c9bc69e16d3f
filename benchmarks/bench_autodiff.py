"""Measure custom gradients, transforms and the tape against hand-written native code, eager and compiled.

    python benchmarks/bench_autodiff.py --backends jax

A custom gradient is timed both ways: the call, and the framework's own reverse mode through it. The native ones are
right at second order too, as multiop's are. Transforms are taken of a network of three layers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from harness import KERAS, Bench, run

# the ratio to native: (custom gradients eager, transforms eager, everything compiled)
LIMITS = {"torch": (0.75, 1.10, 1.02), "jax": (1.00, 1.10, 1.02), "tensorflow": (1.05, 1.10, 1.02)}
TAPE_OPS = 200
TAPE_LIMITS = (3, 5)  # recording / eager calls, step and gradient / eager jax.vjp


def custom_gradients(multiop: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions in multiop."""

    @multiop.op_custom_gradient
    def log1pexp(x: Any) -> Any:
        e = multiop.op_exp(x)

        def grad(upstream: Any) -> Any:
            return upstream * (1 - 1 / (1 + e))

        return multiop.op_log(1 + e), grad

    @multiop.op_custom_gradient
    def area(x: Any, y: Any) -> Any:
        def grad(upstream: Any) -> Any:
            return 2 * upstream * x * y, upstream * x * x

        return x * x * y, grad

    @multiop.op_custom_gradient
    def line(p: Any, x: Any) -> Any:
        def grad(upstream: Any) -> Any:
            return {"b": upstream, "w": upstream * x}, upstream * p["w"]

        return p["w"] * x + p["b"], grad

    return {"log1pexp": log1pexp, "area": area, "line": line}


def keras_gradients(ops: Any) -> dict[str, Callable[..., Any]]:
    """Return the same in keras.ops, for what it does."""

    @ops.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = ops.exp(x)

        def grad(*args: Any, upstream: Any = None) -> Any:
            upstream = args[0] if upstream is None else upstream
            return ops.multiply(upstream, 1 - 1 / (1 + e))

        return ops.log(1 + e), grad

    @ops.custom_gradient
    def area(x: Any, y: Any) -> Any:
        def grad(*args: Any, upstream: Any = None) -> Any:
            upstream = args[0] if upstream is None else upstream
            return 2 * upstream * x * y, upstream * x * x

        return x * x * y, grad

    return {"log1pexp": log1pexp, "area": area}


def torch_gradients() -> tuple[dict[str, Callable[..., Any]], dict[str, Callable[..., Any]]]:
    """Return the same as Functions with `setup_context`, which `torch.func` asks for, and as classic ones."""
    import torch
    from torch.autograd import Function

    class Log1pExp(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            e = torch.exp(x)
            return torch.log(1 + e), e

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output[1])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, upstream: Any, de: Any) -> Any:
            (e,) = ctx.saved_tensors
            grad = None if upstream is None else upstream * (1 - 1 / (1 + e))
            if de is None:
                return grad
            return de * e if grad is None else grad + de * e

    class Area(Function):
        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * x * y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, upstream: Any) -> Any:
            x, y = ctx.saved_tensors
            return 2 * upstream * x * y, upstream * x * x

    class Line(Function):
        @staticmethod
        def forward(b: Any, w: Any, x: Any) -> Any:
            return w * x + b

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs[1:])

        @staticmethod
        def backward(ctx: Any, upstream: Any) -> Any:
            w, x = ctx.saved_tensors
            return upstream, upstream * x, upstream * w

    def classic(of: Any) -> Any:
        def forward(ctx: Any, *inputs: Any) -> Any:
            outputs = of.forward(*inputs)
            of.setup_context(ctx, inputs, outputs)
            return outputs

        return type(of.__name__, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(of.backward)})

    def functions(of: Callable[[Any], Any]) -> dict[str, Callable[..., Any]]:
        first, second, third = of(Log1pExp), of(Area), of(Line)
        return {
            "log1pexp": lambda x: first.apply(x)[0],
            "area": second.apply,
            "line": lambda p, x: third.apply(p["b"], p["w"], x),
        }

    return functions(lambda of: of), functions(classic)


def jax_gradients() -> dict[str, Callable[..., Any]]:
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def log1pexp(x: Any) -> Any:
        return jnp.log(1 + jnp.exp(x))

    def log1pexp_forward(x: Any) -> Any:
        e = jnp.exp(x)
        return jnp.log(1 + e), e

    log1pexp.defvjp(log1pexp_forward, lambda e, upstream: (upstream * (1 - 1 / (1 + e)),))

    @jax.custom_vjp
    def area(x: Any, y: Any) -> Any:
        return x * x * y

    def area_backward(kept: Any, upstream: Any) -> Any:
        x, y = kept
        return 2 * upstream * x * y, upstream * x * x

    area.defvjp(lambda x, y: (x * x * y, (x, y)), area_backward)

    @jax.custom_vjp
    def line(p: Any, x: Any) -> Any:
        return p["w"] * x + p["b"]

    def line_backward(kept: Any, upstream: Any) -> Any:
        w, x = kept
        return {"b": upstream, "w": upstream * x}, upstream * w

    line.defvjp(lambda p, x: (p["w"] * x + p["b"], (p["w"], x)), line_backward)
    return {"log1pexp": log1pexp, "area": area, "line": line}


def tensorflow_gradients() -> dict[str, Callable[..., Any]]:
    import tensorflow as tf

    @tf.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    @tf.custom_gradient
    def area(x: Any, y: Any) -> Any:
        return x * x * y, lambda upstream: (2 * upstream * x * y, upstream * x * x)

    @tf.custom_gradient
    def line(p: Any, x: Any) -> Any:
        return p["w"] * x + p["b"], lambda upstream: ({"b": upstream, "w": upstream * x}, upstream * p["w"])

    return {"log1pexp": log1pexp, "area": area, "line": line}


class Torch:
    """How PyTorch differentiates, compiles and spells a network."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.gradients, self.classic = torch_gradients()
        self.layer = lambda x, w, b: torch.tanh(torch.matmul(x, w) + b)
        self.output = lambda x, w, b: torch.matmul(x, w) + b
        self.loss = lambda y: torch.mean(torch.square(y))

    def both_ways(self, f: Any) -> Any:
        return self.pulling(f, lambda f: f)

    def compiled(self, f: Any) -> Any:
        return self.pulling(f, self.torch.compile)

    def pulling(self, f: Any, prepare: Any) -> Any:
        f = prepare(f)

        def pull(upstream: Any, *xs: Any) -> Any:
            xs = [x.detach().requires_grad_() for x in xs]
            return self.torch.autograd.grad(f(*xs), xs, upstream)

        return pull

    def second(self, f: Any) -> Any:
        def pull(upstream: Any, *xs: Any) -> Any:
            xs = [x.detach().requires_grad_() for x in xs]
            grads = self.torch.autograd.grad(f(*xs), xs, upstream, create_graph=True)
            return self.torch.autograd.grad(grads, xs, [upstream] * len(grads))

        return pull

    def transforms(self, loss: Any, outputs: Any, energy: Any) -> dict[str, dict[str, Any]]:
        """Return the native spellings of each transform."""
        func, grad, functional = self.torch.func, self.torch.autograd.grad, self.torch.autograd.functional

        def value_and_grad(p: Any, x: Any) -> Any:
            p = {name: t.detach().requires_grad_() for name, t in p.items()}
            y = loss(p, x)
            return y.detach(), dict(zip(p, grad(y, list(p.values())), strict=True))

        def both(p: Any, x: Any) -> Any:
            grads, y = func.grad_and_value(loss)(p, x)
            return y, grads

        def hvp(x: Any, v: Any) -> Any:
            x = x.detach().requires_grad_()
            (g,) = grad(energy(x), x, create_graph=True)
            return grad(g, x, v)[0]

        return {
            "value_and_grad": {"autograd": value_and_grad, "torch.func": both},
            "jacrev": {
                "torch.func": func.jacrev(outputs),
                "functional": lambda x: functional.jacobian(outputs, x, vectorize=True),
            },
            "hessian": {
                "torch.func": func.hessian(energy),
                "functional": lambda x: functional.hessian(energy, x, vectorize=True),
            },
            "hvp": {
                "autograd": hvp,
                "torch.func": lambda x, v: func.jvp(func.grad(energy), (x,), (v,))[1],
            },
        }

    def compile(self, f: Any) -> Any:
        return self.torch.compile(f)

    compiler = "torch.compile"
    compiled_spelling = "torch.func"  # what torch.compile takes whole


class Jax:
    """How JAX does."""

    classic = None
    compiler = "jit"
    compiled_spelling = ""

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        self.jax = jax
        self.gradients = jax_gradients()
        self.layer = lambda x, w, b: jnp.tanh(jnp.matmul(x, w) + b)
        self.output = lambda x, w, b: jnp.matmul(x, w) + b
        self.loss = lambda y: jnp.mean(jnp.square(y))

    def both_ways(self, f: Any) -> Any:
        return lambda upstream, *xs: self.jax.vjp(f, *xs)[1](upstream)

    def compiled(self, f: Any) -> Any:
        return self.jax.jit(self.both_ways(f))

    def second(self, f: Any) -> Any:
        def pull(upstream: Any, *xs: Any) -> Any:
            _, again = self.jax.vjp(lambda *xs: self.jax.vjp(f, *xs)[1](upstream), *xs)
            return again((upstream,) * len(xs))

        return pull

    def transforms(self, loss: Any, outputs: Any, energy: Any) -> dict[str, dict[str, Any]]:
        jax = self.jax
        return {
            "value_and_grad": {"": jax.value_and_grad(loss)},
            "jacrev": {"": jax.jacrev(outputs)},
            "hessian": {"": jax.hessian(energy)},
            "hvp": {"": lambda x, v: jax.jvp(jax.grad(energy), (x,), (v,))[1]},
        }

    def compile(self, f: Any) -> Any:
        return self.jax.jit(f)


class TensorFlow:
    """How TensorFlow does."""

    classic = None
    compiler = "tf.function"
    compiled_spelling = "tapes"

    def __init__(self) -> None:
        import tensorflow as tf

        self.tf = tf
        self.gradients = tensorflow_gradients()
        self.layer = lambda x, w, b: tf.tanh(tf.matmul(x, w) + b)
        self.output = lambda x, w, b: tf.matmul(x, w) + b
        self.loss = lambda y: tf.reduce_mean(tf.square(y))

    def both_ways(self, f: Any) -> Any:
        def pull(upstream: Any, *xs: Any) -> Any:
            with self.tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(xs)
                y = f(*xs)
            return tape.gradient(y, xs, upstream)

        return pull

    def compiled(self, f: Any) -> Any:
        return self.compile(self.both_ways(f))

    def second(self, f: Any) -> Any:
        def pull(upstream: Any, *xs: Any) -> Any:
            with self.tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(xs)
                # dense, since the gradient of a gather is not
                grads = [self.tf.convert_to_tensor(grad) for grad in self.both_ways(f)(upstream, *xs)]
            zero = self.tf.UnconnectedGradients.ZERO  # where the gradient is constant
            return tape.gradient(grads, xs, [upstream] * len(grads), unconnected_gradients=zero)

        return pull

    def transforms(self, loss: Any, outputs: Any, energy: Any) -> dict[str, dict[str, Any]]:
        tape_of = self.tf.GradientTape

        def value_and_grad(p: Any, x: Any) -> Any:
            with tape_of() as tape:
                tape.watch(p)
                y = loss(p, x)
            return y, tape.gradient(y, p)

        def jacrev(x: Any) -> Any:
            with tape_of() as tape:
                tape.watch(x)
                y = outputs(x)
            return tape.jacobian(y, x)

        def gradient(x: Any) -> Any:
            with tape_of() as tape:
                tape.watch(x)
                y = energy(x)
            return tape.gradient(y, x)

        def hessian(x: Any) -> Any:
            with tape_of() as tape:
                tape.watch(x)
                g = gradient(x)
            return tape.jacobian(g, x)

        def hvp(x: Any, v: Any) -> Any:
            with tape_of() as tape:
                tape.watch(x)
                g = gradient(x)
            return tape.gradient(g, x, v)

        def forward(x: Any, v: Any) -> Any:
            with self.tf.autodiff.ForwardAccumulator(x, v) as accumulator:
                g = gradient(x)
            return accumulator.jvp(g)

        return {
            "value_and_grad": {"tapes": value_and_grad},
            "jacrev": {"tapes": jacrev},
            "hessian": {"tapes": hessian},
            "hvp": {"tapes": hvp, "ForwardAccumulator": forward},
        }

    def compile(self, f: Any) -> Any:
        return self.tf.function(f, autograph=False)


NATIVE = {"torch": Torch, "jax": Jax, "tensorflow": TensorFlow}


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    multiop = bench.load()
    native = NATIVE[bench.backend]()
    measure_custom_gradients(bench, multiop, native)
    measure_transforms(bench, multiop, native)
    if bench.backend == "jax":
        measure_tape(bench, multiop)


def measure_custom_gradients(bench: Bench, multiop: Any, native: Any) -> None:
    eager, _, compiled = LIMITS[bench.backend]
    whose = {"native": native.gradients, "multiop": custom_gradients(multiop)}
    if native.classic:
        whose["classic"] = native.classic
    if bench.keras is not None:
        whose[KERAS] = keras_gradients(bench.keras.ops)

    def row(name: str, function: str, turn: Any, limit: float, *args: Any, flat: bool = True) -> None:
        functions = {who: of[function] for who, of in whose.items() if function in of}
        if function == "line":  # takes a dict; each framework differentiates by flat arguments
            functions = {who: taking_dict(f) for who, f in functions.items()}
        contenders = {who: calling(turn(f), args) for who, f in functions.items()}
        bench.compare(name, contenders, limit)

    for size in (8, 1_000_000):
        upstream, x, y, z = (bench.tensor(size, seed=k) for k in range(4))
        for mode, turn, limit in (("eager", native.both_ways, eager), (native.compiler, native.compiled, compiled)):
            row(f"log1pexp [{size}], {mode}", "log1pexp", turn, limit, upstream, x)
            if size == 8:
                row(f"two inputs [{size}], {mode}", "area", turn, limit, upstream, x, y)
                row(f"a dict and a tensor [{size}], {mode}", "line", turn, limit, upstream, x, y, z)
        row(f"log1pexp, second order [{size}], eager", "log1pexp", native.second, eager, upstream, x)
        if bench.backend != "torch":  # torch.compile has no double backward
            turn = lambda f: native.compile(native.second(f))  # noqa: E731
            row(f"log1pexp, second order [{size}], {native.compiler}", "log1pexp", turn, compiled, upstream, x)


def taking_dict(f: Any) -> Any:
    return lambda b, w, x: f({"b": b, "w": w}, x)


def calling(f: Callable[..., Any], args: Any) -> Callable[[], Any]:
    return lambda: f(*args)


def network(layer: Any, output: Any, loss: Any) -> tuple[Any, Any]:
    """Return the loss of three layers as a function of parameters and batch, and the outputs for one example."""

    def outputs(p: Any, x: Any) -> Any:
        x = layer(layer(x, p["w1"], p["b1"]), p["w2"], p["b2"])
        return output(x, p["w3"], p["b3"])

    return lambda p, x: loss(outputs(p, x)), outputs


def measure_transforms(bench: Bench, multiop: Any, native: Any) -> None:
    _, eager, compiled = LIMITS[bench.backend]
    sizes = (16, 32, 32, 8)
    p = {f"w{k + 1}": bench.tensor(sizes[k], sizes[k + 1], seed=k) * 0.3 for k in range(3)}
    p |= {f"b{k + 1}": bench.tensor(sizes[k + 1], seed=k) * 0.1 for k in range(3)}
    batch, x, v = bench.tensor(64, 16), bench.tensor(1, 16), bench.tensor(1, 16, seed=1)
    loss, outputs = network(native.layer, native.output, native.loss)
    spellings = native.transforms(loss, lambda x: outputs(p, x), lambda x: loss(p, x))

    our_loss, our_outputs = network(
        lambda x, w, b: multiop.op_tanh(multiop.op_add(multiop.op_matmul(x, w), b)),
        lambda x, w, b: multiop.op_add(multiop.op_matmul(x, w), b),
        lambda y: multiop.op_mean(multiop.op_square(y)),
    )
    ours = {
        "value_and_grad": multiop.value_and_grad(our_loss),
        "jacrev": multiop.jacrev(lambda x: our_outputs(p, x)),
        "hessian": multiop.hessian(lambda x: our_loss(p, x)),
        "hvp": lambda x, v: multiop.hvp(lambda x: our_loss(p, x), (x,), (v,)),
    }
    given = {"value_and_grad": (p, batch), "jacrev": (x,), "hessian": (x,), "hvp": (x, v)}
    for name, f in ours.items():
        args, known = given[name], spellings[name]
        natives = {f"native: {how}" if how else "native": calling(one, args) for how, one in known.items()}
        bench.compare(f"{name}, eager", natives | {"multiop": calling(f, args)}, eager, 1e-4)
        whole = native.compile(known[native.compiled_spelling])
        pair = {"native": calling(whole, args), "multiop": calling(multiop.jit(f), args)}
        bench.compare(f"{name}, {native.compiler}", pair, compiled, 1e-4)


def measure_tape(bench: Bench, multiop: Any) -> None:
    jax = importlib.import_module("jax")
    jnp = jax.numpy
    x, w = bench.tensor(8), bench.tensor(8, seed=1)

    def chain(sin: Any, multiply: Any) -> Any:
        def run(x: Any) -> Any:
            for _ in range(TAPE_OPS // 2):
                x = multiply(sin(x), w)
            return x

        return run

    theirs, ours = chain(jnp.sin, jnp.multiply), chain(multiop.op_sin, multiop.op_multiply)

    def recorded() -> Any:
        with multiop.GradientTape() as tape:
            return ours(tape.watch(x))

    def step() -> Any:
        with multiop.GradientTape() as tape:
            watched = tape.watch(x)
            y = ours(watched)
        return tape.gradient(y, watched)

    def pulled() -> Any:
        return jax.vjp(theirs, x)[1](w * 0 + 1)[0]

    recording, both = TAPE_LIMITS
    bench.compare(
        f"tape: {TAPE_OPS} ops recorded / eager jnp", {"native": lambda: theirs(x), "multiop": recorded}, recording
    )
    bench.compare(f"tape: step and gradient, {TAPE_OPS} ops / eager jax.vjp", {"native": pulled, "multiop": step}, both)


if __name__ == "__main__":
    run(["autodiff"], __doc__)
