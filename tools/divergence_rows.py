"""Where the frameworks' own functions differ, and the single answer that multiop gives."""

from __future__ import annotations

import dataclasses
import importlib
import re
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
        topic: What it is about, a key of `TOPICS`.
        why: The reason for the answer, in a sentence or two.
        ours: The expression in multiop ops (as `mo`); `grad(f, *xs)` is the gradient of the sum of `f`.
        answer: Its result on every backend.
        torch: PyTorch's usual spelling, with `torch`.
        jax: JAX's, with `jax` and `jnp`.
        tensorflow: TensorFlow's, with `tf`.
    """

    title: str
    topic: str
    why: str
    ours: str
    answer: Any
    torch: str
    jax: str
    tensorflow: str

    def native(self, backend: str) -> str:
        """Return the framework's own answer as text; an exception by its name."""
        try:
            return answer_text(_evaluate(getattr(self, backend), _NATIVE[backend]()))
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


def answer_text(found: Any) -> str:
    """Return an answer as short text."""
    if isinstance(found, (list, tuple)):
        return ", ".join(map(answer_text, found))
    array = np.asarray(found.detach() if hasattr(found, "detach") else found)
    text = np.array2string(array, precision=4, separator=", ").replace("\n", "")
    return re.sub(r"(?<=[\[ ]) +| +(?=[\],])", "", text)  # NumPy pads the numbers to one width


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


def _same(
    title: str, topic: str, why: str, template: str, answer: Any, ours: str, torch: str, jax: str, tensorflow: str
) -> Divergence:
    """Make a divergence of one expression with a different function per framework."""
    spelled = (template.replace("f", name, 1) for name in (torch, jax, tensorflow))
    return Divergence(title, topic, why, template.replace("f", ours, 1), answer, *spelled)


TOPICS = {
    "kinks": "Kinks, ties and steps",
    "nan": "NaN",
    "values": "Values and formulas",
    "dtypes": "Dtypes",
}

DIVERGENCES = [
    _same(
        "gradient of abs at 0",
        "kinks",
        "A kink: any number from -1 to 1 is a subgradient. The one of least norm is 0.",
        "grad(f, [0.0])",
        [0.0],
        "mo.op_abs",
        "torch.abs",
        "jnp.abs",
        "tf.abs",
    ),
    Divergence(
        "gradient of clip at its bounds",
        "kinks",
        "At a bound the entry is still what it was, so the gradient passes.",
        "grad(lambda x: mo.op_clip(x, 0.0, 1.0), [0.0, 1.0])",
        [1.0, 1.0],
        "grad(lambda x: torch.clamp(x, 0.0, 1.0), [0.0, 1.0])",
        "grad(lambda x: jnp.clip(x, 0.0, 1.0), [0.0, 1.0])",
        "grad(lambda x: tf.clip_by_value(x, 0.0, 1.0), [0.0, 1.0])",
    ),
    _same(
        "gradient of maximum at a tie",
        "kinks",
        "Both operands are the maximum, so they share the gradient: swapping them changes nothing.",
        "grad(f, [1.0], [1.0])",
        [[0.5], [0.5]],
        "mo.op_maximum",
        "torch.maximum",
        "jnp.maximum",
        "tf.maximum",
    ),
    Divergence(
        "gradient of the maximum over an axis at a tie",
        "kinks",
        "The entries that are the maximum share the gradient, as the operands of `maximum` do.",
        "grad(lambda x: mo.op_max(x, axis=0), [2.0, 2.0, 1.0])",
        [0.5, 0.5, 0.0],
        "grad(lambda x: torch.max(x, dim=0).values, [2.0, 2.0, 1.0])",
        "grad(lambda x: jnp.max(x, axis=0), [2.0, 2.0, 1.0])",
        "grad(lambda x: tf.reduce_max(x, axis=0), [2.0, 2.0, 1.0])",
    ),
    _same(
        "gradient of the standard deviation of a constant",
        "kinks",
        "The square root is steep at 0, where 0 is its least subgradient; training survives a constant.",
        "grad(f, [1.0, 1.0])",
        [0.0, 0.0],
        "mo.op_std",
        "torch.std",
        "jnp.std",
        "tf.math.reduce_std",
    ),
    Divergence(
        "variance of [1, 2, 4]",
        "values",
        "NumPy divides by n; PyTorch by n - 1, unless it is told `correction=0`.",
        "mo.op_var([1.0, 2.0, 4.0])",
        14.0 / 9.0,
        "torch.var(torch.tensor([1.0, 2.0, 4.0]))",
        "jnp.var(jnp.asarray([1.0, 2.0, 4.0]))",
        "tf.math.reduce_variance(tf.constant([1.0, 2.0, 4.0]))",
    ),
    Divergence(
        "gradient of hypot at (0, 0)",
        "kinks",
        "The tip of a cone: every vector of length up to 1 is a subgradient. The shortest is 0.",
        "grad(mo.op_hypot, [0.0], [0.0])",
        [[0.0], [0.0]],
        "grad(torch.hypot, [0.0], [0.0])",
        "grad(jnp.hypot, [0.0], [0.0])",
        "grad(lambda x, y: tf.sqrt(x * x + y * y), [0.0], [0.0])",
    ),
    _same(
        "gradient of 0 ** 0",
        "kinks",
        "0 ** 0 is 1, and the limits of the slopes differ by direction. The answer is finite and 0.",
        "grad(f, [0.0], [0.0])",
        [[0.0], [0.0]],
        "mo.op_power",
        "torch.pow",
        "jnp.power",
        "tf.pow",
    ),
    _same(
        "gradient of (-2) ** 2 in the base and the exponent",
        "nan",
        "(-2) ** y is not real between the integers, so there is no slope in the exponent: NaN, not 0.",
        "grad(f, [-2.0], [2.0])",
        [[-4.0], [NAN]],
        "mo.op_power",
        "torch.pow",
        "jnp.power",
        "tf.pow",
    ),
    Divergence(
        "gradient of the cumulative product of [2, 0, 3]",
        "values",
        "Dividing the product by an entry fails at a zero. The derivative is a product of the others, and finite.",
        "grad(mo.op_cumprod, [2.0, 0.0, 3.0])",
        [1.0, 8.0, 0.0],
        "grad(lambda x: torch.cumprod(x, 0), [2.0, 0.0, 3.0])",
        "grad(jnp.cumprod, [2.0, 0.0, 3.0])",
        "grad(tf.math.cumprod, [2.0, 0.0, 3.0])",
    ),
    _same(
        "gradient of expm1 at -20",
        "values",
        "The derivative is exp(x). As expm1(x) + 1 it rounds away: the digits that expm1 is there to keep.",
        "grad(f, [-20.0])",
        [2.0611537e-09],
        "mo.op_expm1",
        "torch.expm1",
        "jnp.expm1",
        "tf.math.expm1",
    ),
    _same(
        "gradient of floor",
        "kinks",
        "The slope of a step is 0. Where the gradient is None, training ends with an error about something else.",
        "grad(f, [1.4])",
        [0.0],
        "mo.op_floor",
        "torch.floor",
        "jnp.floor",
        "tf.floor",
    ),
    Divergence(
        "gradient of the sum of the squared modulus at 3+4j",
        "values",
        "A gradient should point uphill, so that x - rate * gradient goes down. JAX returns the conjugate.",
        "grad(lambda z: mo.op_square(mo.op_abs(z)), 3 + 4j)",
        6 + 8j,
        "grad(lambda z: torch.abs(z) ** 2, 3 + 4j)",
        "grad(lambda z: jnp.abs(z) ** 2, 3 + 4j)",
        "grad(lambda z: tf.abs(z) ** 2, 3 + 4j)",
    ),
    _same(
        "sort of [1, NaN, 3, 3]",
        "nan",
        "NaN sorts last, as in NumPy. Comparisons with NaN are false; a sort by them alone is not sorted.",
        "f([1.0, nan, 3.0, 3.0])",
        [1.0, 3.0, 3.0, NAN],
        "mo.op_sort",
        "(lambda x: torch.sort(torch.tensor(x)).values)",
        "(lambda x: jnp.sort(jnp.asarray(x)))",
        "tf.sort",
    ),
    _same(
        "where NaN goes in [1, 2]",
        "nan",
        "Where the sort would put it: at the end.",
        "f([1.0, 2.0], [nan])",
        [2],
        "mo.op_searchsorted",
        "(lambda x, v: torch.searchsorted(torch.tensor(x), torch.tensor(v)))",
        "(lambda x, v: jnp.searchsorted(jnp.asarray(x), jnp.asarray(v)))",
        "tf.searchsorted",
    ),
    _same(
        "argmax of [1, NaN, 2]",
        "nan",
        "NaN propagates: the maximum is NaN, and this is where it is.",
        "f([1.0, nan, 2.0])",
        1,
        "mo.op_argmax",
        "(lambda x: torch.argmax(torch.tensor(x)))",
        "(lambda x: jnp.argmax(jnp.asarray(x)))",
        "tf.argmax",
    ),
    _same(
        "mean of the integers 1 and 2",
        "dtypes",
        "A mean of integers is a float.",
        "f([1, 2])",
        1.5,
        "mo.op_mean",
        "(lambda x: torch.mean(torch.tensor(x)))",
        "(lambda x: jnp.mean(jnp.asarray(x)))",
        "tf.reduce_mean",
    ),
    _same(
        "sum of 100 and 100 in int8",
        "dtypes",
        "A sum of small integers needs more room than one of them: int32 at least.",
        "f(np.array([100, 100], np.int8))",
        200,
        "mo.op_sum",
        "(lambda x: torch.sum(torch.tensor(x)))",
        "(lambda x: jnp.sum(jnp.asarray(x)))",
        "tf.reduce_sum",
    ),
    _same(
        "mean of 70000 ones in float16",
        "dtypes",
        "The sum, 70000, is more than float16 holds. It is kept in float32 until it is divided.",
        "f(np.ones(70000, np.float16))",
        1.0,
        "mo.op_mean",
        "(lambda x: torch.mean(torch.tensor(x)))",
        "(lambda x: jnp.mean(jnp.asarray(x)))",
        "tf.reduce_mean",
    ),
    _same(
        "1 // 0.1 of floats",
        "values",
        "0.1 is a little more than a tenth, so it fits 9 times. Dividing first and rounding then gives 10.",
        "f(1.0, 0.1)",
        9.0,
        "mo.op_floor_divide",
        "(lambda x, y: torch.tensor(x) // torch.tensor(y))",
        "(lambda x, y: jnp.asarray(x) // jnp.asarray(y))",
        "tf.math.floordiv",
    ),
    _same(
        "the complex number 1j as a bool",
        "dtypes",
        "It is not zero, so it is true.",
        "f(np.array([1j], np.complex64), 'bool')",
        [True],
        "mo.op_cast",
        "(lambda x, dtype: torch.tensor(x).to(torch.bool))",
        "(lambda x, dtype: jnp.asarray(x).astype(bool))",
        "tf.cast",
    ),
    Divergence(
        "gradient of selu at 0",
        "kinks",
        "The slope is 1.0507 on the right and 1.7581 on the left, and the paper puts 0 on the left.",
        "grad(mo.op_selu, [0.0])",
        [1.7580993],
        "grad(torch.nn.functional.selu, [0.0])",
        "grad(jax.nn.selu, [0.0])",
        "grad(tf.nn.selu, [0.0])",
    ),
    Divergence(
        "gradient of hard_tanh at -1 and 1",
        "kinks",
        "It is a clip, and a clip passes the gradient at its bounds.",
        "grad(mo.op_hard_tanh, [-1.0, 1.0])",
        [1.0, 1.0],
        "grad(torch.nn.functional.hardtanh, [-1.0, 1.0])",
        "grad(jax.nn.hard_tanh, [-1.0, 1.0])",
        "grad(lambda x: tf.clip_by_value(x, -1.0, 1.0), [-1.0, 1.0])",
    ),
    Divergence(
        "gradient of the norm of a vector of zeros",
        "kinks",
        "The tip of a cone again: 0 is the shortest subgradient, and weights that start at zero stay finite.",
        "grad(mo.op_norm, [0.0, 0.0])",
        [0.0, 0.0],
        "grad(torch.linalg.norm, [0.0, 0.0])",
        "grad(jnp.linalg.norm, [0.0, 0.0])",
        "grad(tf.norm, [0.0, 0.0])",
    ),
    Divergence(
        "gradient of the determinant of [[1, 2], [2, 4]]",
        "values",
        "A determinant is a polynomial; its derivative, the adjugate transposed, is finite where there is no inverse.",
        "grad(mo.op_det, [[1.0, 2.0], [2.0, 4.0]])",
        [[4.0, -2.0], [-2.0, 1.0]],
        "grad(torch.linalg.det, [[1.0, 2.0], [2.0, 4.0]])",
        "grad(jnp.linalg.det, [[1.0, 2.0], [2.0, 4.0]])",
        "grad(tf.linalg.det, [[1.0, 2.0], [2.0, 4.0]])",
    ),
    Divergence(
        "gradient of the cube root at 0",
        "kinks",
        "The slope grows without bound from both sides, so it is infinity, as that of the square root is.",
        "grad(mo.op_cbrt, [0.0])",
        [INF],
        "grad(lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3), [0.0])",
        "grad(jnp.cbrt, [0.0])",
        "grad(lambda x: tf.sign(x) * tf.abs(x) ** (1 / 3), [0.0])",
    ),
    Divergence(
        "one_hot of the class -1",
        "values",
        "A class that does not exist is a row of zeros, which is how padding is usually marked.",
        "mo.op_one_hot([-1], 3)",
        [[0.0, 0.0, 0.0]],
        "torch.nn.functional.one_hot(torch.tensor([-1]), 3)",
        "jax.nn.one_hot(jnp.asarray([-1]), 3)",
        "tf.one_hot([-1], 3)",
    ),
    Divergence(
        "gradient of the determinant of a matrix with a zero column",
        "values",
        "The derivative is the adjugate, which every matrix has. With the inverse in its place, it is lost.",
        "grad(mo.op_det, [[0.0, 1.0], [0.0, 2.0]])",
        [[2.0, 0.0], [-1.0, 0.0]],
        "grad(torch.linalg.det, [[0.0, 1.0], [0.0, 2.0]])",
        "grad(jnp.linalg.det, [[0.0, 1.0], [0.0, 2.0]])",
        "grad(tf.linalg.det, [[0.0, 1.0], [0.0, 2.0]])",
    ),
    Divergence(
        "whether the gradient of an eigenvector is finite where two eigenvalues are equal",
        "values",
        "Any rotation of the two is a pair of eigenvectors, so there is no derivative: NaN says so, and 0 would not.",
        "mo.op_all(mo.op_isfinite(grad(lambda x: mo.op_eigh(x)[1][0], [[1.0, 0.0], [0.0, 1.0]])))",
        False,
        "torch.isfinite(grad(lambda x: torch.linalg.eigh(x)[1][0], [[1.0, 0.0], [0.0, 1.0]])).all()",
        "jnp.isfinite(grad(lambda x: jnp.linalg.eigh(x)[1][0], [[1.0, 0.0], [0.0, 1.0]])).all()",
        "tf.reduce_all(tf.math.is_finite(grad(lambda x: tf.linalg.eigh(x)[1][0], [[1.0, 0.0], [0.0, 1.0]])))",
    ),
    Divergence(
        "median of 1, 2, 3 and 10",
        "values",
        "The mean of the two in the middle; PyTorch returns the lower one.",
        "mo.op_median([1.0, 2.0, 3.0, 10.0])",
        2.5,
        "torch.median(torch.tensor([1.0, 2.0, 3.0, 10.0]))",
        "jnp.median(jnp.array([1.0, 2.0, 3.0, 10.0]))",
        "tf.keras.ops.median([1.0, 2.0, 3.0, 10.0])",
    ),
    Divergence(
        "where 3 and NaN go in [1, 2, NaN]",
        "nan",
        "NaN is the last of a sorted sequence, so all numbers go in front of it, and NaN itself to the left of it.",
        "mo.op_searchsorted([1.0, 2.0, nan], [3.0, nan])",
        [2, 2],
        "torch.searchsorted(torch.tensor([1.0, 2.0, nan]), torch.tensor([3.0, nan]))",
        "jnp.searchsorted(jnp.array([1.0, 2.0, nan]), jnp.array([3.0, nan]))",
        "tf.searchsorted([1.0, 2.0, nan], [3.0, nan])",
    ),
    Divergence(
        "1 shifted to the left by 32 in int32",
        "dtypes",
        "No bit of it is left, as in NumPy; C leaves it open.",
        "mo.op_left_shift(np.array([1], 'int32'), np.array([32], 'int32'))",
        [0],
        "torch.tensor([1], dtype=torch.int32) << 32",
        "jnp.array([1]) << 32",
        "tf.bitwise.left_shift([1], [32])",
    ),
    Divergence(
        "200 shifted to the right by 9 in uint8",
        "dtypes",
        "No bit of it is left; TensorFlow takes the processor's answer, by the remainder of 9 and 8.",
        "mo.op_right_shift(np.array([200], 'uint8'), np.array([9], 'uint8'))",
        [0],
        "torch.tensor([200], dtype=torch.uint8) >> 9",
        "jnp.array([200], 'uint8') >> 9",
        "tf.bitwise.right_shift(tf.constant([200], tf.uint8), tf.constant([9], tf.uint8))",
    ),
    Divergence(
        "the real quotient of -128 and -1 in int8",
        "dtypes",
        "A quotient of integers is a float, which holds 128; by a function for integers it wraps.",
        "mo.op_trunc(mo.op_divide(np.array([-128], 'int8'), np.array([-1], 'int8')))",
        [128],
        "torch.div(*torch.tensor([[-128], [-1]], dtype=torch.int8), rounding_mode='trunc')",
        "jax.lax.div(jnp.array([-128], 'int8'), jnp.array([-1], 'int8'))",
        "tf.truncatediv(tf.constant([-128], tf.int8), tf.constant([-1], tf.int8))",
    ),
    Divergence(
        "second derivative of sinc at 0",
        "kinks",
        "Its series begins with 1 - (pi x)² / 6. A `where` around the quotient makes NaN of that.",
        "grad(lambda x: grad(mo.op_sinc, x), 0.0)",
        -3.2898681,
        "torch.autograd.functional.hessian(torch.sinc, torch.tensor(0.0))",
        "jax.grad(jax.grad(jnp.sinc))(0.0)",
        "grad(lambda x: grad(tf.keras.ops.sinc, x), 0.0)",
    ),
    Divergence(
        "gradient of the median of [1, 1, 3]",
        "kinks",
        "The entry in the middle of the sorted ones has it; equal entries keep their order.",
        "grad(mo.op_median, [1.0, 1.0, 3.0])",
        [0.0, 1.0, 0.0],
        "grad(torch.median, [1.0, 1.0, 3.0])",
        "grad(jnp.median, [1.0, 1.0, 3.0])",
        "grad(tf.keras.ops.median, [1.0, 1.0, 3.0])",
    ),
    Divergence(
        "whether one of 100000 normal numbers in bfloat16 is beyond 3",
        "dtypes",
        "270 of them are. A uniform number of 7 bits has 128 values, and none of these is so far from the middle.",
        "mo.op_any(mo.op_abs(mo.random.normal((100000,), dtype='bfloat16', seed=0)) > 3.0)",
        True,
        "(torch.randn(100000, dtype=torch.bfloat16).abs() > 3).any()",
        "jnp.any(jnp.abs(jax.random.normal(jax.random.key(0), (100000,), 'bfloat16')) > 3)",
        "tf.reduce_any(tf.abs(tf.random.normal((100000,), dtype=tf.bfloat16)) > 3)",
    ),
]
