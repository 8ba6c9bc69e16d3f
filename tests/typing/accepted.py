"""Lines that a type checker has to accept; they run as well, on each backend."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, assert_type

import numpy as np

import multiop
from multiop import ops

x = multiop.op_convert_to_tensor([1.0, 2.0])
assert_type(x, multiop.Tensor)

# what a tensor has
assert_type(x + 1, multiop.Tensor)
assert_type(2.0 * x - x / 2, multiop.Tensor)
assert_type(2**x, multiop.Tensor)
assert_type(abs(-x) % 2 // 1, multiop.Tensor)
assert_type(x[None] @ x[:, None], multiop.Tensor)
assert_type(x > 0, multiop.Tensor)
assert_type(x == x, multiop.Tensor)
assert_type(~(x > 1) & (x < 3) | (x <= 0), multiop.Tensor)
assert_type(x[0], multiop.Tensor)
assert_type(x[..., None, 1:], multiop.Tensor)
assert_type(x.ndim, int)
assert_type(len(x), int)
assert_type(float(x[0]), float)
assert_type(int(x[1]), int)
assert_type(bool(x[0] == 1), bool)
sizes: list[int] = [*x.shape, x.shape[0], len(x.shape)]
dtypes = [x.dtype, np.asarray(x).dtype]
x += 1
rows = [row + 1 for row in x]

# what ops take
multiop.op_max(x, axis=0, keepdims=True)
ops.max(x, axis=0)
ops.numpy.max(x, axis=(0,))
ops.add(1, 2.0)
ops.add([[1, 2], [3, 4]], (5, 6))
ops.add(np.ones(2, "float32"), np.float32(1.0))
ops.add(range(2), True)
ops.multiply(x, 1j)
ops.reshape(x, x.shape)
ops.zeros((2, 3), dtype="float32")
ops.zeros(2, dtype=np.float32)
ops.zeros(2, np.dtype("int32"))
ops.cast(x, x.dtype)
ops.cast(x, float)


def total(numbers: Sequence[float], likes: multiop.ArrayLike) -> multiop.Tensor:
    return ops.sum(numbers) + ops.sum(likes)


total([1.0, 2.0], x)


def in_dtype(x: multiop.ArrayLike, dtype: multiop.DType = None) -> multiop.Tensor:
    return ops.convert_to_tensor(x, dtype)


in_dtype(1.0, "float32")


def described(x: object) -> str:
    if isinstance(x, multiop.Tensor):
        return f"{x.dtype} of {x.ndim} dimensions"
    return "no tensor"


described(x)


# a custom gradient keeps the signature
@multiop.op_custom_gradient
def scaled(
    x: multiop.Tensor, factor: float = 2.0, *, name: str = ""
) -> tuple[multiop.Tensor, Callable[[multiop.Tensor], multiop.Tensor]]:
    return x * factor, lambda upstream: upstream * factor


assert_type(scaled(x), multiop.Tensor)
assert_type(scaled(x, 3.0, name="three"), multiop.Tensor)
assert_type(scaled(x=x, factor=3.0), multiop.Tensor)


@multiop.op_custom_gradient
def both(x: multiop.Tensor, y: multiop.Tensor) -> tuple[tuple[multiop.Tensor, multiop.Tensor], Callable[..., Any]]:
    def grad(*upstreams: multiop.Tensor) -> tuple[multiop.Tensor, multiop.Tensor]:
        return upstreams[0] * y, upstreams[1] * x

    return (x * y, y * x), grad


assert_type(both(x, x), tuple[multiop.Tensor, multiop.Tensor])


@multiop.op_custom_gradient
def constant() -> tuple[multiop.Tensor, Callable[..., None]]:
    return ops.ones(()), lambda upstream: None


assert_type(constant(), multiop.Tensor)


class Layer:
    @multiop.op_custom_gradient
    def call(self, x: multiop.Tensor) -> tuple[multiop.Tensor, Callable[..., Any]]:
        return x * 2, lambda upstream: (None, upstream * 2)

    @staticmethod
    @multiop.op_custom_gradient
    def static(x: multiop.Tensor) -> tuple[multiop.Tensor, Callable[..., Any]]:
        return x * 2, lambda upstream: upstream * 2

    @multiop.jit
    def compiled(self, x: multiop.Tensor) -> multiop.Tensor:
        return x * 2


assert_type(Layer().call(x), multiop.Tensor)
assert_type(Layer.static(x), multiop.Tensor)
assert_type(Layer().compiled(x), multiop.Tensor)


# so do transforms
def loss(w: multiop.Tensor, scale: float = 1.0, *, power: int = 2) -> multiop.Tensor:
    return ops.sum(w**power) * scale


def loss_and_aux(w: multiop.Tensor) -> tuple[multiop.Tensor, dict[str, multiop.Tensor]]:
    return ops.sum(w * w), {"w": w}


assert_type(multiop.grad(loss)(x, 2.0, power=3), Any)
assert_type(multiop.grad(lambda x: ops.sum(scaled(x, 3.0)))(x), Any)
assert_type(multiop.grad(loss, argnums=[0])(x), tuple[Any, ...])
assert_type(multiop.grad(loss, (0, 1))(x, 2.0), tuple[Any, ...])
assert_type(multiop.grad(loss_and_aux, has_aux=True)(x), tuple[Any, dict[str, multiop.Tensor]])
assert_type(multiop.value_and_grad(loss)(x), tuple[multiop.Tensor, Any])
assert_type(multiop.value_and_grad(loss, argnums=(0,))(x), tuple[multiop.Tensor, tuple[Any, ...]])
multiop.grad(loss_and_aux, 0, True)(x)
value, slope = multiop.value_and_grad(loss)(x)
(value, aux), slope = multiop.value_and_grad(loss_and_aux, has_aux=True)(x)
assert_type(aux["w"], multiop.Tensor)
assert_type(multiop.jit(loss)(x, power=2), multiop.Tensor)
assert_type(multiop.jit(loss, static_argnames="power")(x, power=2), multiop.Tensor)
assert_type(multiop.vmap(loss)(x), multiop.Tensor)
assert_type(multiop.vmap(ops.add, in_axes=(0, None))(x, 1.0), multiop.Tensor)
assert_type(multiop.checkpoint(loss)(x, 2.0), multiop.Tensor)
multiop.jit(multiop.vmap(multiop.grad(loss)))(x)
multiop.jacrev(loss)(x, scale=2.0)
multiop.jacfwd(loss, argnums=(0, 1))(x, 2.0)
multiop.hessian(loss)(x)
multiop.hvp(loss, (x,), (x,))
multiop.jvp(loss, (x,), (ops.expand_dims(x, 0),), batched=True)[1]
multiop.vjp(loss, x, batched=True)[1](x)
multiop.jacobian(loss, chunk_size=4)(x)
multiop.linearize(loss, x)[1](x)
multiop.sparse_hessian(loss, x).values(x)
multiop.sparse_jacobian(lambda p: p, {"a": x}, mode="reverse").check
output, pullback = multiop.vjp(loss, x, 2.0)
assert_type(output, multiop.Tensor)
assert_type(pullback(output), tuple[Any, ...])
output, pullback, aux = multiop.vjp(loss_and_aux, x, has_aux=True)
output, tangent = multiop.jvp(loss, (x,), (x,))
assert_type(output, multiop.Tensor)
output, tangent = multiop.op_jvp(loss, [x], [x])
output, tangent, aux = multiop.jvp(loss_and_aux, (x,), (x,), has_aux=True)
multiop.grad(lambda x: x * x)(2.0)
multiop.grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
multiop.grad(lambda p: p["w"] * p["b"])({"w": 2.0, "b": 1.0})
multiop.grad(lambda x: (x * x, x), has_aux=True)(2.0)
multiop.value_and_grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
multiop.value_and_grad(ops.sum)(x)
multiop.jacrev(lambda x: x * x)(x)
multiop.jit(lambda x: x * x)(x)
multiop.vmap(lambda x: x * x)(x)
multiop.op_custom_gradient(lambda x: (x, lambda upstream: upstream))(x)


def shim(fun: Callable[..., Any], has_aux: bool = False) -> Callable[..., Any]:
    return multiop.grad(fun, has_aux=has_aux)


shim(loss)(x)


@multiop.jit
def step(w: multiop.Tensor) -> multiop.Tensor:
    return w - 0.1 * multiop.grad(loss)(w)


assert_type(step(x), multiop.Tensor)


@functools.partial(multiop.jit, static_argnames="n")
def repeated(w: multiop.Tensor, n: int) -> multiop.Tensor:
    return w * n


assert_type(repeated(x, n=2), multiop.Tensor)

with multiop.GradientTape() as tape:
    w = tape.watch(x)
    y = w * w
ops.sum(tape.gradient(y, w))
name: str = multiop.backend()
