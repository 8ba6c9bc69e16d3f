"""Custom gradients on JAX's public API alone: reverse mode to any order.

The function and the rule are traced, so that what they close over becomes operands and residuals. The rule becomes that
of a `jax.custom_vjp`, which has no forward mode.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from multiop._rules import late_errors

from ..conversion import Tracer, drop_weak_type, is_inexact
from ._user_rule import closed_over_error, name_of, pullback


def custom_call(call, primals):
    if not any(isinstance(x, Tracer) for x in primals):
        outputs, _ = call.forward(primals)
        if not any(isinstance(y, Tracer) for y in outputs):  # nothing can differentiate it
            return outputs
    primals = [drop_weak_type(x) for x in primals]
    try:
        traced = _Traced(call, primals, None)
    except _WantsVariables:
        closed_over = jax.make_jaxpr(lambda *primals: call.forward(primals)[0])(*primals).consts
        variables = [x for x in closed_over if isinstance(x, Tracer) and is_inexact(x)]
        traced = _Traced(call, primals, variables)
    return _call(traced, traced.function.consts, primals)


class _WantsVariables(Exception):
    """The rule has a `variables` parameter, so what the function closes over must be found first."""


class _Traced:
    """A function and its rule, traced.

    Attributes:
        call: The call.
        function: A jaxpr from the primals to the outputs, then the residuals; its constants are what the function
            closes over.
        n_outputs: The number of outputs.
        rule: A jaxpr from the cotangents of the inexact outputs to the gradients that are not `None`; its constants are
            the residuals. Or the exception that the rule raised, which is raised again when the function is
            differentiated.
        returned: The residuals that are outputs: index -> index.
        given: For each primal and each variable, whether its gradient is not `None`.
        variables: The indices of the variables among what the function closes over.
    """

    def __init__(self, call, primals, variables):
        def function(*primals):
            outputs, grad_fn = call.forward(list(primals))
            if variables is None and call.wants_variables():
                raise _WantsVariables
            inexact = [is_inexact(y) for y in outputs]
            pull = pullback(call, grad_fn, inexact, variables or [])

            def rule(*cotangents):
                grads = pull(cotangents)
                self.given = [g is not None for g in grads]
                return [g for g in grads if g is not None]

            self.n_outputs, self.inexact = len(outputs), inexact
            of_inexact = [
                jax.ShapeDtypeStruct(y.shape, y.dtype) for y, given in zip(outputs, inexact, strict=True) if given
            ]
            try:
                self.rule = jax.make_jaxpr(rule)(*of_inexact)
            except Exception as error:  # it does not matter unless the call is differentiated
                self.rule = late_errors.without_frames(error, "JAX")
                return outputs
            inputs = {id(x) for x in (*primals, *(variables or []))}  # an input that is returned stays an input
            own = {id(y): i for i, y in reversed([*enumerate(outputs)]) if id(y) not in inputs}
            self.returned = {i: own[id(x)] for i, x in enumerate(self.rule.consts) if id(x) in own}
            return [*outputs, *self.rule.consts]

        self.call, self.returned = call, {}
        self.function = jax.make_jaxpr(function)(*primals)
        position = {id(x): i for i, x in enumerate(self.function.consts)}
        self.variables = [position[id(x)] for x in variables or []]

    def refuse_closed_over(self, is_perturbed):
        """Raise if the outputs depend on a perturbed value that the rule has no gradient for."""
        needed = {x for x in self.function.jaxpr.outvars[: self.n_outputs] if not hasattr(x, "val")}
        for eqn in reversed(self.function.jaxpr.eqns):
            if eqn.primitive.name != "stop_gradient" and any(y in needed and is_inexact(y.aval) for y in eqn.outvars):
                needed.update(x for x in eqn.invars if not hasattr(x, "val"))
        lost = [
            name_of(x, self.call)
            for i, (x, var) in enumerate(zip(self.function.consts, self.function.jaxpr.constvars, strict=True))
            if is_perturbed[i] and i not in self.variables and var in needed
        ]
        if lost:
            raise closed_over_error(self.call.name, lost)

    def run(self, closed_over, primals):
        """Return the outputs and the residuals."""
        results = jax.core.eval_jaxpr(self.function.jaxpr, closed_over, *primals)
        return results[: self.n_outputs], results[self.n_outputs :]

    def pull(self, residuals, cotangents):
        """Return the gradients of what the function closes over and of the primals."""
        of_inexact = [u for u, given in zip(cotangents, self.inexact, strict=True) if given]
        found = iter(jax.core.eval_jaxpr(self.rule.jaxpr, residuals, *of_inexact))
        grads = [next(found) if given else None for given in self.given]
        n = len(grads) - len(self.variables)
        of_closed_over = [None] * len(self.function.consts)
        for i, grad in zip(self.variables, grads[n:], strict=True):
            of_closed_over[i] = grad
        return of_closed_over, grads[:n]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _call(traced, closed_over, primals):
    return traced.run(closed_over, primals)[0]


def _forward(traced, closed_over, primals):
    if isinstance(traced.rule, Exception):
        raise late_errors.again(traced.rule)
    traced.refuse_closed_over([x.perturbed for x in closed_over])
    closed_over, primals = [x.value for x in closed_over], [x.value for x in primals]
    outputs, residuals = traced.run(closed_over, primals)
    if traced.returned:  # an output that the rule closes over has the rule for its own derivative
        outputs = _call(traced, closed_over, primals)
        residuals = [outputs[traced.returned[i]] if i in traced.returned else r for i, r in enumerate(residuals)]
    return outputs, residuals


def _backward(traced, residuals, cotangents):
    return tuple(traced.pull(residuals, [_instantiate_zero(u) for u in cotangents]))


def _instantiate_zero(u):
    return jnp.zeros(u.shape, u.dtype) if type(u) is jax.custom_derivatives.SymbolicZero else u


_call.defvjp(_forward, _backward, symbolic_zeros=True)
