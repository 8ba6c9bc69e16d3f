"""JAX's parts as they are in 0.11 and 0.12."""

from __future__ import annotations

from jax._src.interpreters.ad import fallback_linearize_rule, primitive_linearizations

from ._since_0_9 import (
    Intercepted as Intercepted,
    evaluate as evaluate,
    lower_as as lower_as,
    vary as vary,
    varying as varying,
)


def register_linearization(primitive, rule):
    """Linearize `primitive` by `rule`, see `_since_0_9`."""

    def linearize(is_vjp, is_perturbed, *primals, **params):
        found = rule(is_perturbed, *primals, **params)
        if found is None:
            return fallback_linearize_rule(primitive, is_vjp, is_perturbed, *primals, **params)
        outputs, is_nonzero, residuals, linearized = found

        def with_structured(residuals, _, *tangents):
            return linearized(residuals, *tangents)

        return outputs, is_nonzero, residuals, None, with_structured

    primitive_linearizations[primitive] = linearize


def scan_sizes(params):
    """Return how many constants and how many carried values a scan has."""
    consts, carry, _ = params["ft_in"].unpack()
    return len(list(consts)), len(list(carry))
