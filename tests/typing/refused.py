"""Lines that a type checker has to refuse, each with the codes of mypy and of pyright for what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import multiop
from multiop import ops

x = multiop.op_convert_to_tensor([1.0, 2.0])


@multiop.op_custom_gradient
def f(x: multiop.Tensor, factor: float = 2.0) -> tuple[multiop.Tensor, Callable[..., Any]]:
    return x * factor, lambda upstream: upstream * factor


def loss(w: multiop.Tensor, scale: float = 1.0) -> multiop.Tensor:
    return ops.sum(w) * scale


# ops
multiop.op_max(x, axs=0)  # refused: call-arg, reportCallIssue
ops.sum(x, axs=0)  # refused: call-arg, reportCallIssue
ops.numpy.mean(x, axs=0)  # refused: call-arg, reportCallIssue
multiop.op_max()  # refused: call-arg, reportCallIssue
multiop.op_maximum(x, x, x)  # refused: call-arg, reportCallIssue
multiop.op_maxx(x)  # refused: attr-defined, reportAttributeAccessIssue
ops.maxx(x)  # refused: attr-defined, reportAttributeAccessIssue
multiop.op_add("text", object())  # refused: arg-type, reportArgumentType
multiop.op_add("text", x)  # refused: arg-type, reportArgumentType
multiop.op_add(x, object())  # refused: arg-type, reportArgumentType
ops.exp(None)  # refused: arg-type, reportArgumentType
ops.exp({"a": 1.0})  # refused: arg-type, reportArgumentType
ops.exp({1.0, 2.0})  # refused: arg-type, reportArgumentType
ops.exp(b"text")  # refused: arg-type, reportArgumentType
ops.exp(ops.exp)  # refused: arg-type, reportArgumentType
ops.sum(x, axis="0")  # refused: arg-type, reportArgumentType
ops.sum(x, axis=0.5)  # refused: arg-type, reportArgumentType
ops.zeros((2, 3), dtype=32)  # refused: arg-type, reportArgumentType
ops.zeros("2")  # refused: arg-type, reportArgumentType
n: int = ops.max(x)  # refused: assignment, reportAssignmentType
ops.exp(x).shpae  # refused: attr-defined, reportAttributeAccessIssue
x.shape = (2,)  # refused: misc, reportAttributeAccessIssue
number: int = multiop.backend()  # refused: assignment, reportAssignmentType
multiop.enable_x64("yes")  # refused: arg-type, reportArgumentType
multiop.set_backend(None)  # refused: arg-type, reportArgumentType

# custom gradients
f("wrong", bogus=1)  # refused: arg-type+call-arg, reportCallIssue
f(x, bogus=1)  # refused: call-arg, reportCallIssue
f()  # refused: call-arg, reportCallIssue
f("wrong")  # refused: arg-type, reportArgumentType
f(x, factor="2")  # refused: arg-type, reportArgumentType
f(x)[1](x)  # refused: operator, reportCallIssue
multiop.op_custom_gradient(loss)  # refused: arg-type, reportArgumentType
multiop.op_custom_gradient(1)  # refused: arg-type, reportArgumentType

# transforms
multiop.grad(lambda x: x)("a", "b")  # refused: call-arg, reportCallIssue
multiop.grad(loss)("a", "b")  # refused: arg-type, reportArgumentType
multiop.grad(loss)(x, bogus=1)  # refused: call-arg, reportCallIssue
multiop.grad(loss, argnum=0)  # refused: call-overload, reportCallIssue
multiop.grad(loss, argnums="0")  # refused: arg-type, reportArgumentType+reportCallIssue
multiop.grad(loss, has_aux=True)  # refused: arg-type, reportArgumentType+reportCallIssue
multiop.grad(1)  # refused: call-overload, reportArgumentType
multiop.value_and_grad(loss)()  # refused: call-arg, reportCallIssue
multiop.value_and_grad(lambda x: x)("a", "b")  # refused: call-arg, reportCallIssue
multiop.jit(loss)(x, bogus=1)  # refused: call-arg, reportCallIssue
multiop.jit(loss, static=0)  # refused: call-arg, reportCallIssue
multiop.vmap(loss)()  # refused: call-arg, reportCallIssue
multiop.vmap(loss, axis=0)  # refused: call-arg, reportCallIssue
multiop.checkpoint(loss)(x, 1.0, 2.0)  # refused: call-arg, reportCallIssue
multiop.jacrev(loss)("text")  # refused: arg-type, reportArgumentType
multiop.jacfwd(loss)()  # refused: call-arg, reportCallIssue
multiop.hessian(loss)(x, bogus=1)  # refused: call-arg, reportCallIssue
multiop.sparse_jacobian(loss)  # refused: call-arg, reportCallIssue
multiop.hvp(loss, x)  # refused: arg-type+call-arg, reportCallIssue
multiop.vjp(loss, x, aux=True)  # refused: call-overload, reportCallIssue
multiop.jvp(loss, (x,))  # refused: call-overload, reportCallIssue
