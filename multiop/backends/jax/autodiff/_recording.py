"""Recording: a JAX trace that runs every operation at once and records those that depend on a watched value.

A value that was computed eagerly is passed around as a `Recorded`, a tracer that behaves like the array it holds,
during the tape and after it. A tracer of a surrounding transformation (`jax.jit`, `jax.grad`, `jax.vmap`) is passed
around as itself, identified by its id. A closure over either is left to JAX, which handles tracers in all of its
transformations.
"""

from __future__ import annotations

import contextlib
import threading
import types

import jax
import jax.numpy as jnp

from multiop import errors

from .._internals import (
    ArrayImpl,
    ShapedArray,
    Trace,
    Tracer,
    eval_trace,
    jit_p,
    set_current_trace,
    stop_gradient_p,
    trace_ctx,
    trace_of,
)
from ..conversion import is_inexact_dtype
from ._operations import Compiled, Custom, Primitive, copy_host_arrays, kernels_of
from ._recorded import Recorded as Recorded, here, key_of, keys_of, number, refuse_elsewhere

_VALUES = (Recorded, ArrayImpl)  # the usual types of immutable arrays


class Recording(Trace):
    """What JAX calls for every operation while tapes are active; tapes entered under the same trace share one."""

    __slots__ = ("closure", "entered", "originals", "parent_trace", "tapes", "thread")

    def __init__(self, parent):
        super().__init__()
        self.parent_trace = parent
        self.entered = []  # the tapes that were entered and not left
        self.tapes = []  # the tapes that are not paused
        self.originals = {}  # id of an array that a tape watches -> its key, for code that keeps using the array
        self.thread = threading.get_ident()
        self.closure = None  # what a custom-gradient function closes over, while it runs

    def start(self, tape):
        self.tapes.append(tape)
        if trace_ctx.trace is self.parent_trace:
            trace_ctx.set_trace(self)

    def stop(self, tape):
        if tape in self.tapes:
            self.tapes.remove(tape)
        if not self.tapes and trace_ctx.trace is self:
            trace_ctx.set_trace(self.parent_trace)

    def enter(self, tape):
        self.entered.append(tape)
        self.find_originals()
        self.start(tape)

    def leave(self, tape):
        self.stop(tape)
        self.entered.remove(tape)
        self.find_originals()

    def find_originals(self):
        """Collect the arrays that the entered tapes watch."""
        self.originals = {i: x.key for tape in self.entered for i, x in tape.originals.items()}

    def process_primitive(self, primitive, args, params, /):
        keys = keys_of(args, self.originals)
        if self.closure is not None:
            self.closure.see(args, keys)
        if primitive is jit_p:
            return self._jit(args, keys, params)
        tapes = self.concerned(keys)
        if not tapes:
            return self._run(primitive, args, params)
        if primitive is stop_gradient_p:
            out = self._run(primitive, args, params)
            return out if isinstance(out, Tracer) else Recorded(self, out)  # a tape knows the array itself
        _refuse_mutable(primitive, args)
        outs = self._run(primitive, args, params)
        operation = Primitive(args, keys, primitive, params)
        if primitive.multiple_results:
            return self.note(tapes, operation, outs)
        return self.note(tapes, operation, [outs])[0]

    def _jit(self, args, keys, params):
        closed = params["jaxpr"]
        kernels = kernels_of(closed.jaxpr)
        if kernels.closes_over:
            self._refuse_kept(kernels, args)
        held, held_keys = args, keys
        if closed.consts:
            constants = keys_of(closed.consts, self.originals)
            if self.closure is not None:
                self.closure.see(closed.consts, constants)
            held, held_keys = [*closed.consts, *args], [*constants, *keys]
        tapes = self.concerned(held_keys)
        if not tapes:
            return self._run_jit(kernels, args, params)
        _refuse_mutable(jit_p, args)
        if True in params["donated_invars"]:  # the gradient needs the arguments, so they cannot be donated
            params["donated_invars"] = (False,) * len(args)
        outs = self._run_jit(kernels, args, params)
        return self.note(tapes, Compiled(held, held_keys, closed.jaxpr, params["name"]), outs)

    def process_custom_jvp_call(self, primitive, fun, jvp, args, /, *, symbolic_zeros):
        return self._custom(primitive, args, {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros})

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, args, /, *, out_trees, symbolic_zeros):
        return self._custom(
            primitive, args, {"subfuns": (fun, fwd, bwd), "out_trees": out_trees, "symbolic_zeros": symbolic_zeros}
        )

    def process_call(self, primitive, fun, args, params, /):
        with set_current_trace(self):
            return fun.call_wrapped(*args)

    def process_shard_map(self, *_, **__):
        raise errors.UnsupportedError(
            "a GradientTape records jax.shard_map only inside jax.jit: wrap the mapped function in jax.jit"
        )

    def process_custom_transpose(self, *_, **__):
        raise errors.UnsupportedError(
            "a GradientTape records a custom transpose only inside jax.jit: wrap the function in jax.jit"
        )

    def stage_value(self, x):
        return x if isinstance(x, jax.Array) else self.parent_trace.stage_value(x)

    def _refuse_kept(self, kernels, args):
        """Raise if a jitted function still holds what it closed over when an earlier tape recorded that."""
        if not isinstance(args[0], Tracer):  # what it closes over comes first
            return
        names = kernels.jaxpr().debug_info.arg_names
        closed_over = [x for x, name in zip(args, names, strict=False) if not name and isinstance(x, Tracer)]
        if all(any(key_of(x) in tape.entries for tape in self.entered) for x in closed_over):
            kernels.was_recorded = True
        elif kernels.was_recorded:
            raise errors.ClosedOverError(
                f"the jitted function {kernels.jaxpr().debug_info.func_name} closes over a value that an earlier "
                f"GradientTape recorded, and jax.jit keeps it; pass the value as an argument"
            )

    def concerned(self, keys):
        """Return the tapes that know one of `keys`."""
        return [tape for tape in self.tapes if not tape.entries.keys().isdisjoint(keys)]

    def _run(self, primitive, args, params):
        values = self.values_of(args)
        if self.parent_trace is not eval_trace:
            return self.parent_trace.process_primitive(primitive, values, params)
        if trace_ctx.trace is not eval_trace:
            with set_current_trace(eval_trace):
                return eval_trace.process_primitive(primitive, values, params)
        return eval_trace.process_primitive(primitive, values, params)

    def _run_jit(self, kernels, args, params):
        if trace_ctx.trace is eval_trace is self.parent_trace and kernels.is_plain(params):
            return kernels.forward(*params["jaxpr"].consts, *self.values_of(args))
        return self._run(jit_p, args, params)

    def note(self, tapes, operation, outs):
        """Record on `tapes` that `operation` computed `outs`; return the values to use in their place."""
        noted = list(outs)
        for i, out in enumerate(outs):
            if not is_inexact_dtype(out.dtype):
                continue
            if not isinstance(out, Tracer):
                noted[i] = out = Recorded(self, out)
                key, kept = out.key, None
            elif type(operation) is not Custom and any(out is x for x in operation.args):
                continue  # JAX returned an input unchanged: the tape already knows it
            else:
                key, kept = key_of(out), out
            operation.outs[i] = key
            for tape in tapes:
                tape.entries[key] = (operation, i, kept)
        return noted

    def _custom(self, primitive, args, params):
        """Run a function that has its own rule, as one operation.

        The innermost tape concerned takes the rule. Only the tapes around it record the operations of the function and
        the rule, which they differentiate for higher orders, as nested `jax.grad` does.
        """
        tapes = self.tapes
        args = copy_host_arrays(args)
        keys = keys_of(args, self.originals)
        if self.closure is not None:
            self.closure.see(args, keys)
        concerned = self.concerned(keys)
        taker = max([i for i, tape in enumerate(tapes) if tape in concerned], default=-1)
        self.tapes = tapes[: max(taker, 0)]
        try:
            values = args if self.tapes else self.values_of(args)
            bounds = Bounds(self, [*args, *values], tapes[len(self.tapes) :])
            with set_current_trace(bounds):
                if taker < 0:
                    outs = primitive.bind(*values, **params)
                    bounds.check(outs)
                    return outs
                known = tapes[taker].entries
                wanted = [i for i, key in enumerate(keys) if key in known and is_inexact_dtype(args[i].dtype)]
                operation = Custom(args, keys, primitive, params, wanted)
                outs, operation.pullback = operation.vjp(values)
                bounds.check(outs)
                # copy inputs that were returned unchanged, to tell outputs from inputs
                outs = [
                    jnp.copy(out) if isinstance(out, Tracer) and any(out is x for x in args) else out for out in outs
                ]
        finally:
            self.tapes = tapes
        operation.number = next(number)  # after the operations of the rule
        operation.outputs = [(out.shape, out.dtype) for out in outs]
        return self.note([tapes[taker]], operation, outs)

    def values_of(self, args):
        """Return `args` as the surrounding trace should see them."""
        if self.parent_trace is eval_trace:
            return [x if type(x) is not Recorded else x.value if trace_of(x) is self else _of_another(x) for x in args]
        return [x.value if type(x) is Recorded and trace_of(x) is self else x for x in args]


class Bounds(Trace):
    """The trace in which a function with its own rule runs: it refuses closed-over values that a tape would lose."""

    __slots__ = ("parent_trace", "passed", "recording", "tapes")

    def __init__(self, recording, passed, tapes):
        super().__init__()
        self.parent_trace = recording if recording.tapes else recording.parent_trace
        self.recording, self.tapes = recording, tapes
        self.passed = set(map(id, passed))

    def process_primitive(self, primitive, args, params, /):
        return self.parent_trace.process_primitive(primitive, self._check_args(args), params)

    def process_custom_jvp_call(self, primitive, fun, jvp, args, /, **params):
        return self._call(self.parent_trace.process_custom_jvp_call, primitive, fun, jvp, args=args, params=params)

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, args, /, **params):
        return self._call(self.parent_trace.process_custom_vjp_call, primitive, fun, fwd, bwd, args=args, params=params)

    def process_call(self, primitive, fun, args, params, /):
        with set_current_trace(self):
            return fun.call_wrapped(*args)

    def stage_value(self, x):
        return x if isinstance(x, jax.Array) else self.parent_trace.stage_value(x)

    def _call(self, process, primitive, fun, *rules, args, params):
        args = self._check_args(args)
        if self.parent_trace is not eval_trace:
            return process(primitive, fun, *rules, args, **params)
        with set_current_trace(self):
            return fun.call_wrapped(*args)

    def check(self, xs):
        """Raise if a tape would lose one of `xs`."""
        keys = keys_of(xs, self.recording.originals)
        if self.recording.closure is not None:
            self.recording.closure.see(xs, keys)
        foreign = [key for x, key in zip(xs, keys, strict=True) if key and id(x) not in self.passed]
        if any(key in tape.entries for tape in self.tapes for key in foreign):
            raise errors.ClosedOverError(
                "a function with a custom rule closes over a value that a GradientTape records, and its gradient would "
                "be lost; pass the value as an argument"
            )

    def _check_args(self, args):
        self.check(args)
        return args if self.parent_trace is self.recording else self.recording.values_of(args)


class Closure:
    """The values on the tapes that a custom-gradient function closes over, collected while it runs.

    Attributes:
        found: The key of each such value -> the value, in the order of first use.
    """

    def __init__(self, recording, passed):
        self.tapes, self.start, self.passed = recording.tapes, next(number), set(passed)
        self.found = {}

    def see(self, xs, keys):
        for x, key in zip(xs, keys, strict=True):
            # a newer value was computed by the function; positive keys belong to a surrounding trace
            if not key or -key >= self.start or key in self.passed or key in self.found:
                continue
            if any(key in tape.entries for tape in self.tapes):
                self.found[key] = x


class Silent:
    """A stand-in for tapes that must not record."""

    persistent = False
    entries = originals = types.MappingProxyType({})


def recording_here():
    """Return the recording that a tape joins when it is entered here."""
    trace = trace_ctx.trace
    if type(trace) is Recording:
        return trace
    if trace is not eval_trace:
        return Recording(trace)
    if not hasattr(here, "eager"):
        here.eager = Recording(eval_trace)  # one per thread, since JAX's caches hold an entry for each trace
    return here.eager


def recording_of(trace):
    """Return the recording that sees the operations of `trace`, or `None`."""
    if type(trace) is Bounds:
        trace = trace.parent_trace
    return trace if type(trace) is Recording and trace.tapes else None


def watched_here():
    """Return the ids of the arrays that surrounding tapes watch."""
    trace, watched = trace_ctx.trace, set()
    while trace is not None:
        watched.update(getattr(trace, "originals", ()))
        trace = getattr(trace, "parent_trace", None)
    return watched


@contextlib.contextmanager
def knowing(pairs):
    """Have the tapes that record here know each array of `(array, key)` by its key inside the context."""
    recording = recording_of(trace_ctx.trace) if pairs else None
    if recording is None:
        yield
        return
    before = recording.originals
    recording.originals = {**before, **{id(x): key for x, key in pairs}}
    try:
        yield
    finally:
        recording.originals = before


def _of_another(x):
    refuse_elsewhere(x)
    return x.value


def is_recording():
    """Say whether operations are being recorded at this point."""
    trace = trace_ctx.trace
    return type(trace) is Recording and bool(trace.tapes)


def _refuse_mutable(primitive, args):
    """Raise if one of `args` is a mutable array, into which a recorded value would be written."""
    for x in args:
        if type(x) not in _VALUES and not isinstance(jax.typeof(x), ShapedArray):
            raise errors.UnsupportedError(
                f"{primitive} writes a value that a GradientTape records into a {type(x).__name__}, where its "
                f"gradient would be lost; compute with values instead, or use stop_gradient"
            )
