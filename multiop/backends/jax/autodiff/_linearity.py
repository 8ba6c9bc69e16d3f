"""Whether a traced rule is linear in the upstream gradient.

JAX transposes `u + 1` as if it were `u`, and a rule that ignores `u` as if it were zero, so affine rules that are not
linear must be found first. For a rule that is not affine, JAX itself raises an error.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from multiop._values import foreign

from .._internals import Literal, Tracer, scan_sizes

ZERO, CONSTANT, LINEAR = "zero", "constant", "linear"  # zero; independent of u; linear in u

# the operands that are added or joined into the result: a nonzero constant among them makes it affine
_ADDED = {
    "add": slice(None), "add_any": slice(None), "sub": slice(None), "complex": slice(None), "concatenate": slice(None),
    "pad": slice(0, 2), "select_n": slice(1, None), "dynamic_update_slice": slice(0, 2), "scatter": slice(0, 3, 2),
    "scatter-add": slice(0, 3, 2), "scatter-sub": slice(0, 3, 2), "stack": slice(None),
}  # fmt: skip
# operations whose result is zero if their first operand is
_KEEP_ZERO = {
    "broadcast_in_dim", "reshape", "squeeze", "transpose", "convert_element_type", "copy", "copy_p", "neg", "slice",
    "rev", "expand_dims", "reduce_sum", "dynamic_slice", "real", "imag", "conj", "stop_gradient", "gather", "div",
    "cumsum", "fft", "reduce_precision", "reduce_window_sum", "select_and_scatter_add", "select_and_gather_add",
    "scatter-mul", "split", "unstack", "tile", "all_gather", "all_gather_invariant", "all_gather_reduced",
    "reduce_scatter", "all_to_all", "ppermute", "pbroadcast", "reshard", "sharding_constraint", "layout_constraint",
    "abs", "sign", "sqrt", "sin", "square", "tanh",
}  # fmt: skip
# operations with one result for each operand, of the same kind
_ONE_FOR_ONE = {"psum", "psum_invariant", "pvary", "optimization_barrier", "device_put"}
# operations whose result is zero if any operand is
_PRODUCTS = {"mul", "and", "dot_general", "ragged_dot_general", "conv_general_dilated"}
# operations whose result is zero if their last operand, the right-hand side, is
_SOLVE = {"triangular_solve", "tridiagonal_solve", "custom_linear_solve"}
_MOVES = {"broadcast_in_dim", "reshape", "transpose", "squeeze", "copy", "copy_p"}  # what a mapped call has around it
_TANGENT = "custom_gradient_tangent"  # a rule, linear in the tangents, which follow the residuals


class NotLinear(Exception):
    """A rule adds a constant to something linear."""


def without_stops(jaxpr):
    """Remove selects between a value and its own stop_gradient, which JAX inserts into a mapped `cond`."""
    stopped, known, equations = {}, {}, []

    def read(atom):
        return atom if isinstance(atom, Literal) else known.get(atom, atom)

    for eqn in jaxpr.eqns:
        invars, name = [read(x) for x in eqn.invars], eqn.primitive.name
        if name == "stop_gradient" and not isinstance(invars[0], Literal):
            stopped[eqn.outvars[0]] = invars[0]
        elif name == "select_n" and not any(isinstance(x, Literal) for x in invars):
            chosen = {stopped.get(x, x) for x in invars[1:]}
            if len(chosen) == 1:
                known[eqn.outvars[0]] = chosen.pop()
                continue
        equations.append(eqn.replace(invars=invars))
    return jaxpr.replace(eqns=equations, outvars=[read(x) for x in jaxpr.outvars])


def kinds(jaxpr, given):
    """Return for each output of a jaxpr whether it is zero, constant or linear; `given` says so for the inputs."""
    known = dict.fromkeys(jaxpr.constvars, CONSTANT)
    known.update(zip(jaxpr.invars, given, strict=True))

    def read(atom):
        return of_value(atom.val) if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        known.update(zip(eqn.outvars, _of_equation(eqn, [read(x) for x in eqn.invars]), strict=True))
    return [read(x) for x in jaxpr.outvars]


def of_value(x):
    """Return the kind of a value that does not depend on the upstream gradient."""
    return CONSTANT if isinstance(x, Tracer) or np.any(np.asarray(x)) else ZERO


def _of_equation(eqn, given):
    name, params, n = eqn.primitive.name, eqn.params, len(eqn.outvars)
    inner = next((params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr", "callee") if key in params), None)
    if name == "cond":
        return [_either(*found) for found in zip(*[kinds(b.jaxpr, given[1:]) for b in params["branches"]], strict=True)]
    if name == "scan":
        return _of_scan(inner.jaxpr, given, *scan_sizes(params))
    if name == "custom_gradient":
        return kinds(params["staged"].function.jaxpr, given)[:n]
    if params.get("name") == "blank_out_of_range" and given[0] != CONSTANT and given[1] != LINEAR:
        return given[:1]  # an op puts NaN where an index is out of range, if only the compiled program knows the index
    if (first := foreign.linear_from(str(params.get("name")))) is not None:
        if LINEAR in given[:first] or {LINEAR, CONSTANT} <= {*given[first:]}:
            raise NotLinear("it calls another framework with it")
        return [_either(*given[first:])] * n
    if inner is not None:
        return kinds(getattr(inner, "jaxpr", inner), given)
    if name in _ONE_FOR_ONE and n == len(given):
        return given
    if LINEAR not in given:
        if name == "while":
            return _of_loop(given, params)
        if name == "sort":
            return given
        return [ZERO if _keeps_zero(name, params, given) else CONSTANT] * n
    if name == _TANGENT and {LINEAR, CONSTANT} <= {*given[params["rule"].n_residuals :]}:
        raise NotLinear("it takes the tangents of a custom gradient from it and from a constant at once")
    if name in _ADDED and CONSTANT in given[_ADDED[name]]:
        raise NotLinear("it adds a constant to it, or puts one in its place")
    if name == "div" and given[1] == LINEAR:
        raise NotLinear("it divides by it")
    if not all(jnp.issubdtype(y.aval.dtype, np.inexact) for y in eqn.outvars):
        raise NotLinear("it makes integers or bools of it")
    return [LINEAR] * n


def says_linear(jaxpr, is_unknown):
    """Say whether a jaxpr is a call that says that it is linear in the operands that are unknown, alone or mapped."""
    calls = [eqn for eqn in jaxpr.eqns if foreign.linear_from(str(eqn.params.get("name"))) is not None]
    if not calls or any(eqn.primitive.name not in _MOVES for eqn in jaxpr.eqns if eqn not in calls):
        return False
    return CONSTANT not in kinds(jaxpr, [LINEAR if is_so else CONSTANT for is_so in is_unknown])


def _keeps_zero(name, params, given):
    """Say whether an equation that nothing linear enters gives zeros."""
    if name == _TANGENT:
        return {*given[params["rule"].n_residuals :]} == {ZERO}
    if name in _SOLVE:
        return given[-1] == ZERO
    if name in _PRODUCTS:
        return ZERO in given
    return (name in _KEEP_ZERO and given[0] == ZERO) or (name in _ADDED and {*given[_ADDED[name]]} == {ZERO})


def _of_scan(jaxpr, given, n_consts, n_carry):
    """Return the kinds of a scan's results: the carry's are repeated until they stay."""
    carry = given[n_consts : n_consts + n_carry]
    while True:
        found = kinds(jaxpr, [*given[:n_consts], *carry, *given[n_consts + n_carry :]])
        joined = [_either(a, b) for a, b in zip(carry, found[:n_carry], strict=True)]
        if joined == carry:
            return joined + found[n_carry:]
        carry = joined


def _of_loop(given, params):
    """Return the kinds of the results of a `while`, which nothing linear enters."""
    n = params["cond_nconsts"]
    return _of_scan(params["body_jaxpr"].jaxpr, given[n:], params["body_nconsts"], len(given))


def _either(*found):
    if LINEAR in found and CONSTANT in found:
        raise NotLinear("it is a constant in one case")
    return LINEAR if LINEAR in found else CONSTANT if CONSTANT in found else ZERO
