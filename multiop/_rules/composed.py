"""A function of a frontend with its own rule, both made of ops. A user's function has `op_custom_gradient`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from multiop._loading.registry import active

Rule = Callable[..., Sequence[Any]]


def with_rule(name: str, f: Callable[..., tuple[Sequence[Any], Rule]], *primals: Any) -> list[Any]:
    """Return the outputs of `f`, whose gradients are what its rule says, in every mode and at every order.

    Args:
        name: The op, for errors.
        f: Function of tensors that returns its outputs and the rule: a function of an upstream gradient for each output
            that returns a gradient for each primal. An output that the rule closes over has this rule, too.
        primals: Inexact tensors.
    """
    return active().custom_call(_Call(name, f), list(primals))


class _Call:
    """What `contract.Call` says."""

    is_op = True

    def __init__(self, name: str, f: Callable[..., Any]) -> None:
        self.name = self.rule_name = name
        self.f = f

    def forward(self, primals: Sequence[Any]) -> tuple[list[Any], Rule]:
        outputs, rule = self.f(*primals)
        return list(outputs), rule

    def backward(self, rule: Rule, upstreams: Sequence[Any], variables: Any = None) -> tuple[list[Any], list[Any]]:
        return list(rule(*upstreams)), []

    def wants_variables(self) -> bool:
        return False
