"""The array type that lets a tape record eager code."""

from __future__ import annotations

import itertools
import operator
import threading

import jax

from multiop import errors
from multiop._values import args as _args

from .._internals import Tracer, is_committed, pytype_aval_mappings, shard_arg_handlers, trace_of
from ..conversion import CONCRETE

here = threading.local()  # .eager: this thread's recording of plain evaluation
number = itertools.count(1)  # numbers operations; negated, it is the key of a recorded value (ids are positive)


class Recorded(Tracer):
    """An eager array whose uses are recorded; it can be used wherever the array could."""

    __slots__ = ("key", "value")
    if isinstance(Tracer.aval, property):  # up to JAX 0.9; a slot since then
        aval = property(lambda self: self.value.aval)

    def __init__(self, trace, value):
        self._trace = trace
        if not isinstance(Tracer.aval, property):
            self.aval = value.aval
        self.value = value
        self.key = -next(number)

    def full_lower(self):  # JAX calls this in eager evaluation: after the tape, the array itself is used
        if self._trace.tapes:
            refuse_elsewhere(self)
            if getattr(here, "eager", None) is self._trace:
                raise jax.errors.UnexpectedTracerError(
                    "a value that an active GradientTape records is used where the tape cannot see it, such as in a "
                    "function with a custom rule that closes over it; pass it as an argument, or use stop_gradient"
                )
        return self.value

    def to_concrete_value(self):
        return self.value

    def __float__(self):
        return float(self.value)

    def __complex__(self):
        return complex(self.value)

    def __round__(self, ndigits=None):
        return round(self.value, ndigits)

    def __format__(self, spec):
        return format(self.value, spec)

    def __repr__(self):
        return repr(self.value)

    def __str__(self):
        return str(self.value)

    def __array__(self, *args, **kwargs):
        return self.value.__array__(*args, **kwargs)

    def __dlpack__(self, *args, **kwargs):
        return self.value.__dlpack__(*args, **kwargs)

    def __dlpack_device__(self):
        return self.value.__dlpack_device__()

    def __reduce__(self):  # a copy or a pickle is a plain array
        return self.value.__reduce__()

    def __copy__(self):
        return self.value.__copy__()

    def __deepcopy__(self, memo):
        return self.value.__deepcopy__(memo)

    def block_until_ready(self):
        self.value.block_until_ready()
        return self

    def copy_to_host_async(self):
        self.value.copy_to_host_async()

    def item(self, *args):
        return self.value.item(*args)

    def tolist(self):
        return self.value.tolist()

    def tobytes(self, order="C"):
        return self.value.tobytes(order)

    def devices(self):
        return self.value.devices()

    def delete(self):
        self.value.delete()

    def is_deleted(self):
        return self.value.is_deleted()

    def is_ready(self):
        return self.value.is_ready()

    def addressable_data(self, index):
        return self.value.addressable_data(index)

    def on_device_size_in_bytes(self):
        return self.value.on_device_size_in_bytes()

    def unsafe_buffer_pointer(self):
        return self.value.unsafe_buffer_pointer()

    sharding = property(lambda self: self.value.sharding)
    device = property(lambda self: self.value.device)
    format = property(lambda self: self.value.format)
    committed = property(lambda self: self.value.committed)
    _committed = property(lambda self: is_committed(self.value))
    addressable_shards = property(lambda self: self.value.addressable_shards)
    global_shards = property(lambda self: self.value.global_shards)
    is_fully_addressable = property(lambda self: self.value.is_fully_addressable)
    is_fully_replicated = property(lambda self: self.value.is_fully_replicated)
    traceback = property(lambda self: self.value.traceback)


CONCRETE.add(Recorded)
pytype_aval_mappings[Recorded] = operator.attrgetter("aval")  # the same as for any tracer, found at once
# outside of a trace, jax.device_put dispatches on the class of its argument
shard_arg_handlers[Recorded] = lambda xs, *rest: shard_arg_handlers[type(xs[0].value)]([x.value for x in xs], *rest)


def refuse_elsewhere(x):
    """Raise if Recorded `x` is used in a thread other than that of an active tape that knows it."""
    trace = trace_of(x)
    if trace.thread == threading.get_ident():
        return
    tapes, closure = tuple(trace.tapes), trace.closure
    if closure is not None and x.key not in closure.passed:  # a function with a custom gradient runs, and closes over x
        tapes += tuple(closure.tapes)
    if any(x.key in tape.entries for tape in tapes):
        raise errors.TapeError(
            f"{_args.describe(x.value)}, which an active GradientTape records, is used in another thread, where the "
            f"tape sees nothing: compute in the thread of the tape, or hand the thread op_stop_gradient(x)"
        )


def is_on_tape(x):
    """Say whether a tape that is active records tracer `x`."""
    return any(x.key in tape.entries for tape in trace_of(x).tapes)


def key_of(x):
    """Return the key of tracer `x` on a tape; code that stores the key of a foreign tracer must keep the tracer too."""
    return x.key if type(x) is Recorded else id(x)


def keys_of(xs, originals):
    """Return the key of each tracer and of each watched array among `xs`, and 0 for anything else.

    Args:
        xs: Operands.
        originals: The keys of watched arrays, by their ids.
    """
    return [x.key if type(x) is Recorded else id(x) if isinstance(x, Tracer) else originals.get(id(x), 0) for x in xs]


def lower(x):
    """Return the array in `x`, unless a tape that could record its use is active."""
    while type(x) is Recorded and not trace_of(x).tapes:
        x = x.value
    return x
