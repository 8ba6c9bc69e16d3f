"""Where the frameworks' own functions differ, and the single answer that multiop gives."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import multiop

NAN, INF = float("nan"), float("inf")


@dataclasses.dataclass(frozen=True)
class Divergence:
    """One input at which native functions disagree.

    Attributes:
        title: The question, in words.
        ours: The expression in multiop ops (as `mo`); `grad(f, *xs)` is the gradient of the sum of `f`.
        answer: Its result on every backend.
        torch: PyTorch's usual spelling, with `torch`.
        jax: JAX's, with `jax` and `jnp`.
        tensorflow: TensorFlow's, with `tf`.
    """

    title: str
    ours: str
    answer: Any
    torch: str
    jax: str
    tensorflow: str

    def native(self, backend: str) -> str:
        """Return the framework's own answer as text; an exception by its name."""
        try:
            return told(_evaluate(getattr(self, backend), _NATIVE[backend]()))
        except Exception as error:
            return type(error).__name__

    def found(self) -> Any:
        """Return multiop's answer on the active backend."""
        return _evaluate(self.ours, {"mo": multiop, "grad": _gradient})

    def __repr__(self) -> str:
        return self.title


def agrees(found: Any, answer: Any) -> bool:
    """Say whether an answer is the pinned one to float32 precision."""
    arrays = [np.asarray(multiop.op_convert_to_numpy(x)) for x in (found if isinstance(found, list) else [found])]
    stacked, expected = np.stack(arrays) if isinstance(found, list) else arrays[0], np.asarray(answer)
    return stacked.shape == expected.shape and bool(np.allclose(stacked, expected, rtol=1e-5, atol=0, equal_nan=True))


def _evaluate(expression: str, names: dict[str, Any]) -> Any:
    return eval(expression, names | {"nan": NAN, "inf": INF, "np": np})  # the expressions of this file


def told(found: Any) -> str:
    """Return an answer as short text."""
    if isinstance(found, (list, tuple)):
        return ", ".join(map(told, found))
    array = np.asarray(found.detach() if hasattr(found, "detach") else found)
    return np.array2string(array, precision=4, separator=", ").replace("\n", "")


def _gradient(f: Callable[..., Any], *xs: Any) -> Any:
    tensors = [multiop.op_convert_to_tensor(x) for x in xs]
    y, pullback = multiop.vjp(f, *tensors)
    grads = pullback(multiop.op_ones_like(y))
    return grads[0] if len(xs) == 1 else list(grads)


def _torch() -> dict[str, Any]:
    torch = importlib.import_module("torch")

    def gradient(f: Callable[..., Any], *xs: Any) -> Any:
        tensors = [torch.tensor(x, requires_grad=True) for x in xs]
        grads = torch.autograd.grad(f(*tensors).sum(), tensors)
        return grads[0] if len(xs) == 1 else list(grads)

    return {"torch": torch, "grad": gradient}


def _jax() -> dict[str, Any]:
    jax = importlib.import_module("jax")

    def gradient(f: Callable[..., Any], *xs: Any) -> Any:
        arrays = tuple(jax.numpy.asarray(x) for x in xs)
        grads = jax.grad(lambda *ys: jax.numpy.sum(f(*ys)), argnums=tuple(range(len(xs))))(*arrays)
        return grads[0] if len(xs) == 1 else list(grads)

    return {"jax": jax, "jnp": jax.numpy, "grad": gradient}


def _tensorflow() -> dict[str, Any]:
    tf = importlib.import_module("tensorflow")

    def gradient(f: Callable[..., Any], *xs: Any) -> Any:
        tensors = [tf.constant(x) for x in xs]
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            y = f(*tensors)
        grads = tape.gradient(y, tensors)
        return grads[0] if len(xs) == 1 else list(grads)

    return {"tf": tf, "grad": gradient}


_NATIVE: dict[str, Callable[[], dict[str, Any]]] = {"torch": _torch, "jax": _jax, "tensorflow": _tensorflow}


def _same(title: str, template: str, answer: Any, ours: str, torch: str, jax: str, tensorflow: str) -> Divergence:
    """Make a divergence of one expression with a different function per framework."""
    spelled = (template.replace("f", name, 1) for name in (torch, jax, tensorflow))
    return Divergence(title, template.replace("f", ours, 1), answer, *spelled)


DIVERGENCES = [
    _same("gradient of abs at 0", "grad(f, [0.0])", [0.0], "mo.op_abs", "torch.abs", "jnp.abs", "tf.abs"),
    Divergence(
        "gradient of clip at its bounds",
        "grad(lambda x: mo.op_clip(x, 0.0, 1.0), [0.0, 1.0])",
        [1.0, 1.0],
        "grad(lambda x: torch.clamp(x, 0.0, 1.0), [0.0, 1.0])",
        "grad(lambda x: jnp.clip(x, 0.0, 1.0), [0.0, 1.0])",
        "grad(lambda x: tf.clip_by_value(x, 0.0, 1.0), [0.0, 1.0])",
    ),
    _same(
        "gradient of maximum at a tie",
        "grad(f, [1.0], [1.0])",
        [[0.5], [0.5]],
        "mo.op_maximum",
        "torch.maximum",
        "jnp.maximum",
        "tf.maximum",
    ),
    _same(
        "gradient of maximum at (NaN, 1)",
        "grad(f, [nan], [1.0])",
        [[NAN], [0.0]],
        "mo.op_maximum",
        "torch.maximum",
        "jnp.maximum",
        "tf.maximum",
    ),
    Divergence(
        "gradient of the maximum over an axis at a tie",
        "grad(lambda x: mo.op_max(x, axis=0), [2.0, 2.0, 1.0])",
        [0.5, 0.5, 0.0],
        "grad(lambda x: torch.max(x, dim=0).values, [2.0, 2.0, 1.0])",
        "grad(lambda x: jnp.max(x, axis=0), [2.0, 2.0, 1.0])",
        "grad(lambda x: tf.reduce_max(x, axis=0), [2.0, 2.0, 1.0])",
    ),
    _same(
        "gradient of the standard deviation of a constant",
        "grad(f, [1.0, 1.0])",
        [0.0, 0.0],
        "mo.op_std",
        "torch.std",
        "jnp.std",
        "tf.math.reduce_std",
    ),
    Divergence(
        "variance of [1, 2, 4]",
        "mo.op_var([1.0, 2.0, 4.0])",
        14.0 / 9.0,
        "torch.var(torch.tensor([1.0, 2.0, 4.0]))",
        "jnp.var(jnp.asarray([1.0, 2.0, 4.0]))",
        "tf.math.reduce_variance(tf.constant([1.0, 2.0, 4.0]))",
    ),
    Divergence(
        "gradient of hypot at (0, 0)",
        "grad(mo.op_hypot, [0.0], [0.0])",
        [[0.0], [0.0]],
        "grad(torch.hypot, [0.0], [0.0])",
        "grad(jnp.hypot, [0.0], [0.0])",
        "grad(lambda x, y: tf.sqrt(x * x + y * y), [0.0], [0.0])",
    ),
    _same(
        "gradient of 0 ** 0",
        "grad(f, [0.0], [0.0])",
        [[0.0], [0.0]],
        "mo.op_power",
        "torch.pow",
        "jnp.power",
        "tf.pow",
    ),
    _same(
        "gradient of (-2) ** 2 in the base and the exponent",
        "grad(f, [-2.0], [2.0])",
        [[-4.0], [NAN]],
        "mo.op_power",
        "torch.pow",
        "jnp.power",
        "tf.pow",
    ),
    Divergence(
        "gradient of the cumulative product of [2, 0, 3]",
        "grad(mo.op_cumprod, [2.0, 0.0, 3.0])",
        [1.0, 8.0, 0.0],
        "grad(lambda x: torch.cumprod(x, 0), [2.0, 0.0, 3.0])",
        "grad(jnp.cumprod, [2.0, 0.0, 3.0])",
        "grad(tf.math.cumprod, [2.0, 0.0, 3.0])",
    ),
    _same(
        "gradient of expm1 at -20",
        "grad(f, [-20.0])",
        [2.0611537e-09],
        "mo.op_expm1",
        "torch.expm1",
        "jnp.expm1",
        "tf.math.expm1",
    ),
    _same(
        "gradient of floor",
        "grad(f, [1.4])",
        [0.0],
        "mo.op_floor",
        "torch.floor",
        "jnp.floor",
        "tf.floor",
    ),
    Divergence(
        "gradient of the sum of the squared modulus at 3+4j",
        "grad(lambda z: mo.op_square(mo.op_abs(z)), 3 + 4j)",
        6 + 8j,
        "grad(lambda z: torch.abs(z) ** 2, 3 + 4j)",
        "grad(lambda z: jnp.abs(z) ** 2, 3 + 4j)",
        "grad(lambda z: tf.abs(z) ** 2, 3 + 4j)",
    ),
    _same(
        "sort of [1, NaN, 3, 3]",
        "f([1.0, nan, 3.0, 3.0])",
        [1.0, 3.0, 3.0, NAN],
        "mo.op_sort",
        "(lambda x: torch.sort(torch.tensor(x)).values)",
        "(lambda x: jnp.sort(jnp.asarray(x)))",
        "tf.sort",
    ),
    _same(
        "where NaN goes in [1, 2]",
        "f([1.0, 2.0], [nan])",
        [2],
        "mo.op_searchsorted",
        "(lambda x, v: torch.searchsorted(torch.tensor(x), torch.tensor(v)))",
        "(lambda x, v: jnp.searchsorted(jnp.asarray(x), jnp.asarray(v)))",
        "tf.searchsorted",
    ),
    _same(
        "argmax of [1, NaN, 2]",
        "f([1.0, nan, 2.0])",
        1,
        "mo.op_argmax",
        "(lambda x: torch.argmax(torch.tensor(x)))",
        "(lambda x: jnp.argmax(jnp.asarray(x)))",
        "tf.argmax",
    ),
    _same(
        "mean of the integers 1 and 2",
        "f([1, 2])",
        1.5,
        "mo.op_mean",
        "(lambda x: torch.mean(torch.tensor(x)))",
        "(lambda x: jnp.mean(jnp.asarray(x)))",
        "tf.reduce_mean",
    ),
    _same(
        "sum of 100 and 100 in int8",
        "f(np.array([100, 100], np.int8))",
        200,
        "mo.op_sum",
        "(lambda x: torch.sum(torch.tensor(x)))",
        "(lambda x: jnp.sum(jnp.asarray(x)))",
        "tf.reduce_sum",
    ),
    _same(
        "mean of 70000 ones in float16",
        "f(np.ones(70000, np.float16))",
        1.0,
        "mo.op_mean",
        "(lambda x: torch.mean(torch.tensor(x)))",
        "(lambda x: jnp.mean(jnp.asarray(x)))",
        "tf.reduce_mean",
    ),
    _same(
        "1 // 0.1 of floats",
        "f(1.0, 0.1)",
        9.0,
        "mo.op_floor_divide",
        "(lambda x, y: torch.tensor(x) // torch.tensor(y))",
        "(lambda x, y: jnp.asarray(x) // jnp.asarray(y))",
        "tf.math.floordiv",
    ),
    _same(
        "the complex number 1j as a bool",
        "f(np.array([1j], np.complex64), 'bool')",
        [True],
        "mo.op_cast",
        "(lambda x, dtype: torch.tensor(x).to(torch.bool))",
        "(lambda x, dtype: jnp.asarray(x).astype(bool))",
        "tf.cast",
    ),
]
