"""Transforms of flat functions."""

from __future__ import annotations

import collections
import contextlib
import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np

from multiop import config, errors
from multiop._values import tree

from .. import _versions, random
from .._cpu_compiler import mended
from ..conversion import CONCRETE, Tracer, conjugate, convert, drop_weak_type, is_inexact
from ._held import hold_operands

_PROGRAMS_EACH = 64  # programs kept per op; with further options, the op runs step by step
_programs = collections.defaultdict(dict)
_INT, _PLAIN = {int}, {str, bool, int, float, type(None)}
_quick = {}  # the same programs, for calls with arrays and plain options alone


def vjp(fun, primals, persistent=True):
    """Return the outputs of `fun`, its pullback, and the auxiliary outputs."""
    outputs, pull, aux = jax.vjp(fun, *[drop_weak_type(x) for x in primals], has_aux=True)

    def pullback(cotangents):
        try:
            grads = pull([_cotangent(y, u) for y, u in zip(outputs, cotangents, strict=True)])
        except ValueError as error:
            if "Reverse-mode differentiation does not work" in str(error):
                raise errors.NoGradientError(str(error).splitlines()[0]) from error
            raise
        return [conjugate(g) for g in grads]

    return list(outputs), pullback, list(aux)


def jvp(fun, primals, tangents):
    try:
        outputs, out_tangents, aux = jax.jvp(fun, [drop_weak_type(x) for x in primals], list(tangents), has_aux=True)
    except TypeError as error:
        if "custom_vjp" in str(error) and not _versions.are_parts_known():
            raise _versions.unknown("forward mode of a custom gradient on JAX") from error
        raise
    # JAX's tangent of an integer has dtype float0, which is not a tensor
    out_tangents = [t if is_inexact(y) else jnp.zeros_like(y) for y, t in zip(outputs, out_tangents, strict=True)]
    return list(outputs), out_tangents, list(aux)


def is_differentiated(x):
    """Say whether `x` is being differentiated; `None` where it has no value, and of an array.

    JAX knows some derivatives to be 0, and goes on with an array.
    """
    if not isinstance(x, Tracer) or x.to_concrete_value() is None:
        return None
    if not hasattr(x, "key"):  # of what a tape records
        return True
    from ._recorded import is_on_tape

    return is_on_tape(x)


def vmap(fun, in_axes, axis_size, is_linear=False):
    return jax.vmap(fun, tuple(in_axes), axis_size=axis_size)


def jit(fun):
    return jit_donating(fun, ())


def jit_donating(fun, donated):
    def run(*tensors):
        finish = None

        def compute_outputs(*given):
            nonlocal finish
            outputs, finish = fun(*given)
            _refuse_unsorted(finish(outputs))
            return outputs

        return _Result((mended(compute_outputs)(*tensors), finish))

    return jax.jit(run, donate_argnums=donated)


def _refuse_unsorted(result):
    """Raise where JAX cannot take the result of a program apart, as it does to find its quick way to call one."""
    try:
        jax.tree_util.tree_structure(result)
    except ValueError as error:
        raise errors.UnsupportedError(
            f"JAX sorts the keys of a dict that a compiled function returns, and these do not sort: {error}; return "
            "a list of its items: https://docs.jax.dev/en/latest/pytrees.html"
        ) from None


class _Result(tuple):
    """Outputs, and the function that makes the result from them: JAX calls it, with the outputs of a program.

    JAX keeps it with the program of each signature.
    """

    __slots__ = ()


jax.tree_util.register_pytree_node(_Result, lambda result: result, lambda finish, outputs: finish(outputs))


def composite(op, args, kwargs):
    """Call a composite op as one compiled program: tensors are traced, and the program is cached by the options."""
    quick, tensors = _quick_key(op, args, kwargs)
    if (program := _quick.get(quick)) is not None:
        try:
            return program(*tensors)
        except Exception:  # a wrong argument
            return op(*args)
    leaves, structure = tree.flatten((args, kwargs))
    tensors = [x for x in leaves if isinstance(x, (jax.Array, np.ndarray))]
    options = [None if isinstance(x, (jax.Array, np.ndarray)) else x for x in leaves]
    if not tensors or not all(isinstance(x, (str, int, float, type(None))) for x in options):
        return op(*args, **kwargs)
    where = tuple(i for i, x in enumerate(leaves) if options[i] is not x)
    programs, key = _programs[op], (structure, where, repr(options), config.floatx())
    if key in programs or len(programs) < _PROGRAMS_EACH:
        program = programs.get(key) or _compile(op, functools.partial(_filled, op, structure, options, where))
        with contextlib.suppress(Exception):  # a wrong argument, or one that cannot be traced: run step by step
            result = program(*map(convert, tensors))
            programs[key] = program
            if quick is not None:
                _quick[quick] = program
            return result
    return op(*args, **kwargs)


def _compile(op, fn):
    # not inlined: a loop in it would be compiled anew at each eager call inside a checkpoint or a custom gradient
    return jax.jit(mended(hold_operands(fn) if getattr(op, "is_recomputed", False) else fn))


def _quick_key(op, args, kwargs):
    """Return what tells the program of a call apart, and its arrays, in a fifth of the time that trees take."""
    if kwargs:
        return None, []
    key, tensors = [op, config.floatx()], []
    for x in args:
        if (kind := type(x)) in CONCRETE:
            key.append(None)
            tensors.append(x)
        elif kind is int or (kind is tuple and _INT.issuperset(map(type, x))):
            key.append(x)
        elif kind in _PLAIN or is_plain(x):
            key.append(repr(x))
        else:
            return None, []
    return tuple(key), tensors


def is_plain(x):
    """Say whether `x` is an option that its `repr` tells apart."""
    return type(x) in _PLAIN or (type(x) is tuple and all(map(is_plain, x)))


def _filled(op, structure, options, where, *tensors):
    leaves = list(options)
    for i, x in zip(where, tensors, strict=True):
        leaves[i] = x
    args, kwargs = tree.unflatten(structure, leaves)
    return op(*args, **kwargs)


def checkpoint(fun, primals):
    once = contextlib.nullcontext if random.is_tracing() else random.traced_to_run_once
    variables = []

    def run(*primals):
        with once(), _assignments_apart() as assigned:
            outputs = list(fun(*primals))
        variables[:] = [variable for variable, _ in assigned.values()]
        return outputs, [value for _, value in assigned.values()]

    outputs, values = jax.checkpoint(run)(*primals)
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    return list(map(convert, outputs))  # a constant is not yet an array


@contextlib.contextmanager
def _assignments_apart():
    """Yield what Keras's variables are assigned inside, by id: in one, a traced value would outlive its trace."""
    assigned = {}
    keras = sys.modules.get("keras")  # which lacks some of these while it is being imported
    chosen = getattr(getattr(keras, "backend", None), "backend", None)
    if not hasattr(keras, "StatelessScope") or chosen is None or chosen() != "jax":
        yield assigned
        return
    with keras.StatelessScope() as scope:
        scope.state_mapping.update(getattr(getattr(scope, "original_scope", None), "state_mapping", {}))
        add_update = scope.add_update

        def note(update):
            add_update(update)
            variable, _ = update
            assigned[id(variable)] = variable, scope.get_current_value(variable)

        scope.add_update = note
        yield assigned


def _cotangent(y, u):
    if is_inexact(y):
        return jnp.zeros_like(y) if u is None else conjugate(u)
    return np.zeros(y.shape, jax.dtypes.float0)
