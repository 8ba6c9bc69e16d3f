"""Measure programs in the style of libraries: many calls on a few numbers, with the framework behind a shim of theirs.

    python benchmarks/bench_library.py --backends torch
    python benchmarks/bench_library.py --write docs/performance.md

The calls are those of pyhf (likelihoods of some bins, a fit, a limit), geomstats (maps and means on manifolds),
TensorCircuit (the energy of some qubits) and pymanopt (cost, gradient, product with the Hessian). Each program is
written once, and takes its functions from a namespace: a shim, as these libraries write one for each framework by
hand; `multiop.ops`; and the framework's own calls, looked up in advance. The ratio is to the shim.
"""

from __future__ import annotations

import functools
import statistics
import time
import types
from collections.abc import Callable
from typing import Any

import harness
import numpy as np
from harness import TITLES, Bench, conditions, markdown, run

LIMIT = 1.15


# the shims: a class for each framework, a method for each function


class TorchShim:
    """What a library writes over PyTorch."""

    def __init__(self) -> None:
        import torch

        self.torch = torch

    def sum(self, x, axis=None, keepdims=False):
        return self.torch.sum(x) if axis is None else self.torch.sum(x, axis, keepdim=keepdims)

    def log(self, x):
        return self.torch.log(x)

    def exp(self, x):
        return self.torch.exp(x)

    def sqrt(self, x):
        return self.torch.sqrt(x)

    def sin(self, x):
        return self.torch.sin(x)

    def cos(self, x):
        return self.torch.cos(x)

    def arccos(self, x):
        return self.torch.acos(x)

    def lgamma(self, x):
        return self.torch.lgamma(x)

    def clip(self, x, low, high):
        return self.torch.clamp(x, low, high)

    def where(self, condition, x1, x2):
        return self.torch.where(condition, x1, x2)

    def matmul(self, x1, x2):
        return self.torch.matmul(x1, x2)

    def einsum(self, subscripts, *xs):
        return self.torch.einsum(subscripts, *xs)

    def tensordot(self, x1, x2, axes):
        return self.torch.tensordot(x1, x2, axes)

    def reshape(self, x, shape):
        return self.torch.reshape(x, shape)

    def transpose(self, x, axes):
        return self.torch.permute(x, axes)

    def swapaxes(self, x, axis1, axis2):
        return self.torch.transpose(x, axis1, axis2)

    def stack(self, xs, axis=0):
        return self.torch.stack(xs, axis)

    def mean(self, x, axis):
        return self.torch.mean(x, axis)

    def eigh(self, x):
        return self.torch.linalg.eigh(x)

    def conj(self, x):
        return self.torch.conj(x)

    def real(self, x):
        return self.torch.real(x)

    def cast(self, x, dtype):
        return x.to(getattr(self.torch, dtype))

    def cond(self, pred, true_fn, false_fn):
        return true_fn() if pred else false_fn()

    def value_and_grad(self, fun):
        def differentiated(x):
            x = x.detach().requires_grad_(True)
            y = fun(x)
            (gradient,) = self.torch.autograd.grad(y, x)
            return y.detach(), gradient

        return differentiated

    def hvp(self, fun, x, v):
        x = x.detach().requires_grad_(True)
        (gradient,) = self.torch.autograd.grad(fun(x), x, create_graph=True)
        (product,) = self.torch.autograd.grad(gradient, x, v)
        return product

    def jit(self, fun):
        return self.torch.compile(fun)


class JaxShim:
    """What a library writes over JAX."""

    def __init__(self) -> None:
        import jax

        self.jax, self.jnp = jax, jax.numpy

    def sum(self, x, axis=None, keepdims=False):
        return self.jnp.sum(x, axis=axis, keepdims=keepdims)

    def log(self, x):
        return self.jnp.log(x)

    def exp(self, x):
        return self.jnp.exp(x)

    def sqrt(self, x):
        return self.jnp.sqrt(x)

    def sin(self, x):
        return self.jnp.sin(x)

    def cos(self, x):
        return self.jnp.cos(x)

    def arccos(self, x):
        return self.jnp.arccos(x)

    def lgamma(self, x):
        return self.jax.scipy.special.gammaln(x)

    def clip(self, x, low, high):
        return self.jnp.clip(x, low, high)

    def where(self, condition, x1, x2):
        return self.jnp.where(condition, x1, x2)

    def matmul(self, x1, x2):
        return self.jnp.matmul(x1, x2)

    def einsum(self, subscripts, *xs):
        return self.jnp.einsum(subscripts, *xs)

    def tensordot(self, x1, x2, axes):
        return self.jnp.tensordot(x1, x2, axes)

    def reshape(self, x, shape):
        return self.jnp.reshape(x, shape)

    def transpose(self, x, axes):
        return self.jnp.transpose(x, axes)

    def swapaxes(self, x, axis1, axis2):
        return self.jnp.swapaxes(x, axis1, axis2)

    def stack(self, xs, axis=0):
        return self.jnp.stack(xs, axis)

    def mean(self, x, axis):
        return self.jnp.mean(x, axis=axis)

    def eigh(self, x):
        return self.jnp.linalg.eigh(x)

    def conj(self, x):
        return self.jnp.conj(x)

    def real(self, x):
        return self.jnp.real(x)

    def cast(self, x, dtype):
        return x.astype(dtype)

    def cond(self, pred, true_fn, false_fn):
        return true_fn() if pred else false_fn()

    def value_and_grad(self, fun):
        return self.jax.value_and_grad(fun)

    def hvp(self, fun, x, v):
        return self.jax.jvp(self.jax.grad(fun), (x,), (v,))[1]

    def jit(self, fun):
        return self.jax.jit(fun)


class TensorFlowShim:
    """What a library writes over TensorFlow."""

    def __init__(self) -> None:
        import tensorflow

        self.tf = tensorflow

    def sum(self, x, axis=None, keepdims=False):
        return self.tf.reduce_sum(x, axis=axis, keepdims=keepdims)

    def log(self, x):
        return self.tf.math.log(x)

    def exp(self, x):
        return self.tf.exp(x)

    def sqrt(self, x):
        return self.tf.sqrt(x)

    def sin(self, x):
        return self.tf.sin(x)

    def cos(self, x):
        return self.tf.cos(x)

    def arccos(self, x):
        return self.tf.acos(x)

    def lgamma(self, x):
        return self.tf.math.lgamma(x)

    def clip(self, x, low, high):
        return self.tf.clip_by_value(x, low, high)

    def where(self, condition, x1, x2):
        return self.tf.where(condition, x1, x2)

    def matmul(self, x1, x2):
        return self.tf.matmul(x1, x2)

    def einsum(self, subscripts, *xs):
        return self.tf.einsum(subscripts, *xs)

    def tensordot(self, x1, x2, axes):
        return self.tf.tensordot(x1, x2, axes)

    def reshape(self, x, shape):
        return self.tf.reshape(x, shape)

    def transpose(self, x, axes):
        return self.tf.transpose(x, axes)

    def swapaxes(self, x, axis1, axis2):
        axes = list(range(len(x.shape)))
        axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
        return self.tf.transpose(x, axes)

    def stack(self, xs, axis=0):
        return self.tf.stack(xs, axis)

    def mean(self, x, axis):
        return self.tf.reduce_mean(x, axis=axis)

    def eigh(self, x):
        return self.tf.linalg.eigh(x)

    def conj(self, x):
        return self.tf.math.conj(x)

    def real(self, x):
        return self.tf.math.real(x)

    def cast(self, x, dtype):
        return self.tf.cast(x, dtype)

    def cond(self, pred, true_fn, false_fn):
        return true_fn() if pred else false_fn()

    def value_and_grad(self, fun):
        def differentiated(x):
            with self.tf.GradientTape() as tape:
                tape.watch(x)
                y = fun(x)
            return y, tape.gradient(y, x)

        return differentiated

    def hvp(self, fun, x, v):
        with self.tf.GradientTape() as outer:
            outer.watch(x)
            with self.tf.GradientTape() as inner:
                inner.watch(x)
                y = fun(x)
            gradient = inner.gradient(y, x)
        return outer.gradient(gradient, x, output_gradients=v)

    def jit(self, fun):
        return self.tf.function(fun, autograph=False)


SHIMS = {"torch": TorchShim, "jax": JaxShim, "tensorflow": TensorFlowShim}


def own_calls(backend: str) -> Any:
    """Return the same functions without a method before them, where the framework has one that takes the same."""
    shim = SHIMS[backend]()
    own = types.SimpleNamespace(**{name: getattr(shim, name) for name in vars(SHIMS[backend]) if name[0] != "_"})
    if backend == "torch":
        found, renamed = shim.torch, {"arccos": "acos", "clip": "clamp", "transpose": "permute"}
        found = {name: getattr(found, renamed.get(name, name), None) for name in vars(own)}
        found |= {"swapaxes": shim.torch.transpose, "eigh": shim.torch.linalg.eigh}
        left_out = {"sum", "jit", "cast", "cond", "value_and_grad", "hvp"}
    elif backend == "jax":
        found = {name: getattr(shim.jnp, name, None) for name in vars(own)}
        found |= {"lgamma": shim.jax.scipy.special.gammaln, "eigh": shim.jnp.linalg.eigh}
        found |= {"value_and_grad": shim.jax.value_and_grad, "jit": shim.jax.jit}
        left_out = {"sum", "cast", "cond", "hvp"}
    else:
        renamed = {"arccos": "acos", "clip": "clip_by_value", "sum": "reduce_sum", "mean": "reduce_mean"}
        found = {name: getattr(shim.tf, renamed.get(name, name), None) for name in vars(own)}
        found |= {name: getattr(shim.tf.math, name) for name in ("log", "lgamma", "conj", "real")}
        found |= {"eigh": shim.tf.linalg.eigh}
        left_out = {"swapaxes", "cond", "value_and_grad", "hvp", "jit"}
    vars(own).update({name: f for name, f in found.items() if f is not None and name not in left_out})
    return own


# pyhf: log densities of counts, a fit, a limit


def poisson(t: Any, counts: Any, rates: Any) -> Any:
    return counts * t.log(rates) - rates - t.lgamma(counts + 1.0)


def normal(t: Any, x: Any, mean: Any, width: Any) -> Any:
    return -0.5 * ((x - mean) / width) ** 2 - t.log(width * 2.5066282746310002)


def densities(t: Any, counts: Any, rates: Any) -> Any:
    """Return 20 log densities of 30 bins, an empty bin counting nothing."""
    zeros = rates[0] * 0.0
    return t.stack([t.sum(t.where(lam > 0, poisson(t, n, lam), zeros)) for n, lam in zip(counts, rates, strict=True)])


def likelihood(t: Any, counts: Any, signal: Any, background: Any) -> Callable[[Any], Any]:
    """Return the negative log likelihood of a strength, and of a factor for each bin of the background."""
    width = background * 0.0 + 0.1

    def f(pars: Any) -> Any:
        factors = pars[1:]
        rates = pars[0] * signal + factors * background
        return -(t.sum(poisson(t, counts, rates)) + t.sum(normal(t, factors, 1.0, width)))

    return f


def fit(t: Any, step: Any, pars: Any) -> Any:
    for _ in range(50):
        _, gradient = step(pars)
        pars = pars - 1e-4 * gradient
    return pars


def limit(t: Any, f: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """Return where a likelihood of 2 bins is 1.92 above that at `low`, by bisection."""
    wanted = f(low) + 1.92
    for _ in range(20):
        middle = 0.5 * (low + high)
        is_above = f(middle) > wanted
        low, high = t.cond(is_above, lambda: (low, middle), lambda: (middle, high))  # noqa: B023
    return low


# geomstats: maps of points on a sphere, of positive definite matrices


def sphere_exp(t: Any, tangents: Any, base: Any) -> Any:
    square = t.sum(tangents * tangents, -1, True)
    norm = t.sqrt(t.where(square > 0, square, square * 0.0 + 1.0))
    return t.cos(norm) * base + t.sin(norm) / norm * tangents


def sphere_log(t: Any, points: Any, base: Any) -> Any:
    inner = t.clip(t.einsum("...i,...i->...", points, base), -1.0, 1.0)[..., None]
    angle = t.arccos(inner)
    return (points - inner * base) * angle / t.sqrt(1.0 - inner * inner)


def sphere_maps(t: Any, tangents: Any, base: Any) -> Any:
    return sphere_log(t, sphere_exp(t, tangents, base), base)


def dispersion(t: Any, points: Any, base: Any) -> Any:
    """Return the mean squared distance of points on the sphere from one."""
    base = base / t.sqrt(t.sum(base * base))
    angle = t.arccos(t.clip(t.einsum("...i,...i->...", points, base), -0.999999, 0.999999))
    return t.mean(angle * angle, 0)


def of_eigenvalues(t: Any, f: Callable[[Any], Any], x: Any) -> Any:
    values, vectors = t.eigh(x)
    return t.matmul(vectors * f(values)[..., None, :], t.swapaxes(vectors, -1, -2))


def mean_matrix(t: Any, xs: Any) -> Any:
    """Return the mean of positive definite matrices in the affine-invariant metric, after 5 steps."""
    mean = t.mean(xs, 0)
    for _ in range(5):
        root = of_eigenvalues(t, t.sqrt, mean)
        inverse = of_eigenvalues(t, lambda values: 1.0 / t.sqrt(values), mean)
        tangents = of_eigenvalues(t, t.log, t.matmul(t.matmul(inverse, xs), inverse))
        mean = t.matmul(t.matmul(root, of_eigenvalues(t, t.exp, t.mean(tangents, 0))), root)
    return mean


# TensorCircuit: the energy of 6 qubits


def energy(t: Any, gates: dict[str, Any], angles: Any) -> Any:
    """Return the energy of an Ising chain in the state that two layers of rotations and controlled gates make."""
    state = gates["state"]
    n = len(state.shape)
    for layer in range(2):
        for k in range(n):
            half = t.cast(angles[layer, k] * 0.5, "complex64")
            rotation = t.cos(half) * gates["one"] - t.sin(half) * gates["turn"]
            state = moved(t, t.tensordot(rotation, state, [[1], [k]]), (k,))
        for k in range(n - 1):
            state = moved(t, t.tensordot(gates["controlled"], state, [[2, 3], [k, k + 1]]), (k, k + 1))
    conjugate = t.conj(state)
    letters = "abcdef"
    total = 0.0
    for k in range(n):
        other = letters.replace(letters[k], "z")
        total = total + t.real(t.einsum(f"{letters},z{letters[k]},{other}->", state, gates["flip"], conjugate))
    probability = t.real(state * conjugate)
    for k in range(n - 1):
        rest = [axis for axis in range(n) if axis not in (k, k + 1)]
        total = total + t.sum(t.sum(probability, rest) * gates["signs"])
    return total


def moved(t: Any, x: Any, places: tuple[int, ...]) -> Any:
    """Move the first axes of `x` to `places`."""
    axes = list(range(len(places), len(x.shape)))
    for axis, place in enumerate(places):
        axes.insert(place, axis)
    return t.transpose(x, axes)


# pymanopt: a cost on a Stiefel manifold


def subspace(t: Any, a: Any, x: Any) -> Any:
    return -t.sum(x * t.matmul(a, x))


def projected(t: Any, x: Any, v: Any) -> Any:
    product = t.matmul(t.transpose(x, (1, 0)), v)
    return v - t.matmul(x, 0.5 * (product + t.transpose(product, (1, 0))))


def descent(t: Any, a: Any, x: Any) -> Any:
    value, gradient = t.value_and_grad(functools.partial(subspace, t, a))(x)
    return value, projected(t, x, gradient)


def curvature(t: Any, a: Any, x: Any, v: Any) -> Any:
    return projected(t, x, t.hvp(functools.partial(subspace, t, a), x, v))


# measuring


def ours(multiop: Any) -> Any:
    """Return what an adapter of a library is: multiop's ops and transforms."""
    found = {name: getattr(multiop.ops, name) for name in vars(TorchShim) if hasattr(multiop.ops, name)}
    found["hvp"] = lambda fun, x, v: multiop.hvp(fun, (x,), (v,))
    return types.SimpleNamespace(**found | {"value_and_grad": multiop.value_and_grad, "jit": multiop.jit})


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    multiop = bench.load()
    harness.clock = time.process_time  # the machine may be shared
    multiop.enable_x64()
    random = np.random.default_rng(0)
    whose = {
        "native: shim": SHIMS[bench.backend](),
        "multiop": ours(multiop),
        "own calls": own_calls(bench.backend),
    }

    def tensor(x: Any, dtype: str = "float64") -> Any:
        return multiop.op_convert_to_tensor(np.asarray(x, dtype), dtype)

    def compare(name: str, make: Callable[[Any], Callable[[], Any]], tolerance: float = 1e-9) -> None:
        if not bench.only or any(word in name for word in bench.only):
            bench.compare(name, {who: make(t) for who, t in whose.items()}, LIMIT, tolerance)

    counts = [tensor(random.poisson(50, 30)) for _ in range(20)]
    rates = [tensor(random.uniform(40, 60, 30)) for _ in range(20)]
    compare("pyhf: 20 log densities of 30 bins", lambda t: lambda: densities(t, counts, rates))
    signal, background = tensor(random.uniform(1, 9, 30)), tensor(random.uniform(40, 60, 30))
    pars = tensor(np.ones(31))

    def fitting(t: Any) -> Callable[[], Any]:
        step = t.value_and_grad(likelihood(t, counts[0], signal, background))
        return lambda: fit(t, step, pars)

    compare("pyhf: a fit of 50 steps", fitting)
    if bench.backend != "torch":  # pyhf compiles nothing there

        def compiled(t: Any) -> Callable[[], Any]:
            step = t.jit(t.value_and_grad(likelihood(t, counts[0], signal, background)))
            return lambda: fit(t, step, pars)

        compare("pyhf: a fit of 50 steps, compiled", compiled)

    def limiting(t: Any) -> Callable[[], Any]:
        few = tensor([50.0, 60.0]), tensor([5.0, 6.0]), tensor([48.0, 57.0])
        factors = tensor([1.0, 1.0])
        of = likelihood(t, *few)
        low, high = tensor(0.5), tensor(9.0)

        def f(strength: Any) -> Any:
            return of(t.reshape(t.stack([strength, factors[0], factors[1]]), (3,)))

        return lambda: limit(t, f, low, high)

    compare("pyhf: a limit of 2 bins", limiting)

    tangents = tensor(random.normal(size=(500, 3)) * [0.3, 0.3, 0.0])
    base = tensor([0.0, 0.0, 1.0])
    compare("geomstats: maps of 500 points on a sphere", lambda t: lambda: sphere_maps(t, tangents, base), 1e-6)
    points = sphere_exp(whose["native: shim"], tangents, base)
    start = tensor([0.3, 0.2, 0.9])

    def dispersed(t: Any) -> Callable[[], Any]:
        step = t.value_and_grad(functools.partial(dispersion, t, points))
        return lambda: step(start)

    compare("geomstats: a gradient on a sphere", dispersed)
    factors = random.normal(size=(20, 3, 3))
    matrices = tensor(factors @ factors.transpose(0, 2, 1) + np.eye(3))
    compare("geomstats: a mean of 20 matrices", lambda t: lambda: mean_matrix(t, matrices))

    state = np.zeros([2] * 6)
    state[(0,) * 6] = 1
    controlled = np.eye(4)[[0, 1, 3, 2]].reshape([2] * 4)
    gates = {"state": state, "one": np.eye(2), "turn": [[0, 1j], [1j, 0]], "controlled": controlled}
    gates = {name: tensor(x, "complex64") for name, x in (gates | {"flip": [[0, 1], [1, 0]]}).items()}
    gates["signs"] = tensor([[1, -1], [-1, 1]], "float32")
    angles = tensor(random.normal(size=(2, 6)), "float32")
    compare("TensorCircuit: an energy of 6 qubits", lambda t: lambda: energy(t, gates, angles), 1e-4)

    def stepping(t: Any, turn: Callable[[Any], Any]) -> Callable[[], Any]:
        step = turn(t.value_and_grad(functools.partial(energy, t, gates)))
        return lambda: step(angles)

    compare("TensorCircuit: its gradient", lambda t: stepping(t, lambda step: step), 1e-4)
    if bench.backend != "torch" or bench.only:  # PyTorch's compiler takes a minute for each
        compare("TensorCircuit: its gradient, compiled", lambda t: stepping(t, t.jit), 1e-4)

    a = random.normal(size=(20, 20))
    a, x, v = tensor(a + a.T), tensor(np.linalg.qr(random.normal(size=(20, 3)))[0]), tensor(random.normal(size=(20, 3)))
    compare("pymanopt: cost and gradient, Stiefel", lambda t: lambda: descent(t, a, x))
    compare("pymanopt: a product with the Hessian", lambda t: lambda: curvature(t, a, x, v))


def tables(kept: dict[str, Any]) -> dict[str, str]:
    """Return a line for each program, a column for each framework; then the means, and how many meet the target."""
    columns = [{row["name"]: row["ratio"] for row in result["rows"]} for result in kept["results"]]
    names = dict.fromkeys(name for column in columns for name in column)
    lines = [
        [name, *[f"{column[name]['multiop'][1]:.2f}" if name in column else "" for column in columns]] for name in names
    ]
    for who, label in (("multiop", "geometric mean"), ("own calls", "that of the framework's own calls")):
        means = [statistics.geometric_mean(ratio[who][1] for ratio in column.values()) for column in columns]
        lines.append([label, *[f"{mean:.2f}" for mean in means]])
    met = [sum(ratio["multiop"][1] <= LIMIT for ratio in column.values()) for column in columns]
    lines.append([f"at most {LIMIT}", *[f"{n} of {len(column)}" for n, column in zip(met, columns, strict=True)]])
    heads = ("program", *[TITLES[result["backend"]] for result in kept["results"]])
    return {"library": f"\n{conditions(kept)}\n\n{markdown(heads, lines)}\n"}


if __name__ == "__main__":
    run(["library"], __doc__)
