"""The operations on a tape, and their pullbacks."""

from __future__ import annotations

import operator
import weakref

import jax
import jax.numpy as jnp
import numpy as np

from multiop._rules.lru import Recent

from .._internals import UNSPECIFIED, dce_jaxpr, eval_jaxpr, trace_ctx, without_effects
from ..conversion import is_inexact_dtype
from ._recorded import number


def copy_host_arrays(xs):
    """Return `xs` with NumPy arrays copied: they may be changed in place before the gradient is taken."""
    return [x.copy() if isinstance(x, np.ndarray) else x for x in xs]


class Operation:
    """One operation: its inputs, the keys of its outputs, and its pullback."""

    __slots__ = ("args", "ins", "number", "outs")

    def __init__(self, args, keys):
        self.args = copy_host_arrays(args)
        self.ins = keys  # 0 for values that no tape can know
        self.outs = {}
        self.number = next(number)

    def pull(self, args, given, wanted, cotangents):
        """Return the cotangents of the inputs `wanted` from those of the outputs `given`; `None` is zero."""
        raise NotImplementedError


class Primitive(Operation):
    """A primitive of JAX with its parameters."""

    __slots__ = ("params", "primitive")

    def __init__(self, args, keys, primitive, params):
        super().__init__(args, keys)
        self.primitive, self.params = primitive, params

    @property
    def name(self):
        return self.primitive.name

    def pull(self, args, given, wanted, cotangents):
        key = (self.primitive, tuple(sorted(self.params.items())), given, wanted)
        try:
            pullback = _pullbacks.get(key)
        except TypeError:  # a parameter is not hashable
            pullback, key = None, None
        if pullback is None:  # compiled on second use: the parameters of a rule or a scan may be new in each call
            pullback = _primitive_pullback(self.primitive, self.params, given, wanted)
            if key is not None and not self.name.startswith("custom_gradient"):
                _pullbacks.put(key, jax.jit(pullback))
        return pullback(args, cotangents)


_pullbacks = Recent(2048)


def _primitive_pullback(primitive, params, given, wanted):
    # the side effects took place when the operation ran
    params = {name: without_effects(value) for name, value in params.items()}

    def fun(*args):
        outs = primitive.bind(*args, **params)
        return outs if primitive.multiple_results else [outs]

    return _pullback(fun, given, wanted)


def _pullback(fun, given, wanted):
    """Return the function that pulls cotangents of the outputs `given` back to the inputs `wanted`."""

    def pull(args, cotangents):
        def call_with(*differentiated):
            merged = list(args)
            for i, x in zip(wanted, differentiated, strict=True):
                merged[i] = x
            outs = fun(*merged)
            return [outs[i] for i in given]

        return jax.vjp(call_with, *[args[i] for i in wanted])[1](cotangents)

    return pull


class Compiled(Operation):
    """A function under `jax.jit`, as most of `jax.numpy` is."""

    __slots__ = ("jaxpr", "name")

    def __init__(self, args, keys, jaxpr, name):
        super().__init__(args, keys)
        self.jaxpr, self.name = jaxpr, name

    def pull(self, args, given, wanted, cotangents):
        kernels = kernels_of(self.jaxpr)
        if (given, wanted) not in kernels.pullbacks:
            used = dce_jaxpr(self.jaxpr, [i in given for i in range(len(self.jaxpr.outvars))])[1]
            n = len(self.jaxpr.constvars)
            used = tuple([i for i in wanted if i < n or used[i - n]])  # the others are unconnected, not zero
            kernels.pullbacks[given, wanted] = used, jax.jit(_pullback(_once_more(self.jaxpr), given, used))
        used, kernel = kernels.pullbacks[given, wanted]
        if used == wanted:
            return kernel(args, cotangents)
        found = dict(zip(used, kernel(args, cotangents), strict=True)) if used else {}
        return [found.get(i) for i in wanted]


def _once_more(jaxpr):
    """Return the function of a jaxpr without its effects, which have already taken place."""
    silent, n = without_effects(jaxpr), len(jaxpr.constvars)
    held = weakref.ref(jaxpr) if silent is jaxpr else lambda: silent
    return lambda *args: eval_jaxpr(held(), args[:n], *args[n:])


class Kernels:
    """The compiled functions of a jaxpr, kept as long as the jaxpr lives."""

    __slots__ = ("closes_over", "forward", "jaxpr", "plain", "pullbacks", "was_recorded")

    def __init__(self, jaxpr):
        index = id(jaxpr)
        self.jaxpr = ref = weakref.ref(jaxpr, lambda _: _kernels.pop(index, None))  # nothing here may keep it alive
        n = len(jaxpr.constvars)
        self.forward = jax.jit(lambda *args: eval_jaxpr(ref(), args[:n], *args[n:]))  # flat arguments: lists cost more
        self.pullbacks = {}
        names = jaxpr.debug_info.arg_names
        self.closes_over = bool(names) and not names[0]  # what a function closes over comes first and has no name
        self.was_recorded = False
        self.plain = None  # the options of a plain jit

    def is_plain(self, params):
        """Say whether `forward` can replace a jit with these parameters: it costs half as much as the primitive."""
        options = _options_of(params)
        if options == self.plain:
            return True
        plain = (
            not params["jaxpr"].effects
            and True not in params["donated_invars"]
            and (params["ctx_mesh"] is None or params["ctx_mesh"].empty)  # `None` up to JAX 0.6
            and not params["compiler_options_kvs"]
            and all(s is UNSPECIFIED for s in (*params["in_shardings"], *params["out_shardings"]))
            and not any((*params["in_layouts"], *params["out_layouts"]))
        )
        if plain:
            self.plain = options
        return plain


_options_of = operator.itemgetter(
    "in_shardings", "out_shardings", "in_layouts", "out_layouts", "donated_invars", "ctx_mesh", "compiler_options_kvs"
)
_kernels = {}  # id of a jaxpr -> its kernels


def kernels_of(jaxpr):
    found = _kernels.get(id(jaxpr))
    if found is None:
        found = _kernels[id(jaxpr)] = Kernels(jaxpr)
    return found


class Custom(Operation):
    """A function with its own rule; the rule may depend on anything, so nothing about it is cached."""

    __slots__ = ("outputs", "params", "primitive", "pullback", "wanted")
    name = "a function with a custom rule"

    def __init__(self, args, keys, primitive, params, wanted):
        super().__init__(args, keys)
        self.primitive, self.params, self.wanted = primitive, params, wanted
        self.outputs = self.pullback = None

    def vjp(self, args):
        """Return the outputs and their pullback to the inputs `wanted`."""

        def fun(*differentiated):
            merged = list(args)
            for i, x in zip(self.wanted, differentiated, strict=True):
                merged[i] = x
            return self.primitive.bind(*merged, **self.params)

        return jax.vjp(fun, *[args[i] for i in self.wanted])

    def pull(self, args, given, wanted, cotangents):
        by_output = dict(zip(given, cotangents, strict=True))
        every = [
            by_output[i]
            if i in by_output
            else jnp.zeros(shape, dtype)
            if is_inexact_dtype(dtype)
            else np.zeros(shape, jax.dtypes.float0)
            for i, (shape, dtype) in enumerate(self.outputs)
        ]
        pullback = self.pullback
        if self._is_recorded():  # for higher orders on one tape, the rule has to run again while the tape records
            for fun in self.params["subfuns"]:
                for store in fun.stores:
                    store and store.reset()
            pullback = self.vjp(args)[1]
        grads = dict(zip(self.wanted, pullback(every), strict=True))
        return [grads.get(i) for i in wanted]

    def _is_recorded(self):
        tapes = getattr(trace_ctx.trace, "tapes", ())
        return any(tape.entries.get(key, (None,))[0] is self for tape in tapes for key in self.outs.values())
