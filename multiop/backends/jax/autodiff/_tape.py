"""`Tape`: TensorFlow's gradient tape on JAX, for plain `jnp` code and Python control flow on values."""

from __future__ import annotations

import contextlib
import threading
import weakref

import jax
import jax.numpy as jnp

from multiop import errors

from .._internals import Tracer, trace_ctx, trace_of
from ..conversion import conjugate, convert, is_inexact_dtype
from ._recorded import Recorded, key_of, lower
from ._recording import is_recording, recording_here

_live = weakref.WeakSet()  # every tape that could still be used
_live_lock = threading.Lock()


class Tape:
    """A record of operations, and the gradients computed from it."""

    def __init__(self, persistent, watch_accessed_variables):
        self.persistent = persistent  # JAX has no variables to watch
        self.entries = {}  # key -> (operation that computed it or None, which output, the tracer if it must be kept)
        self._watched = {}  # key -> the tensor to use
        self.originals = {}  # id of an array -> the Recorded that holds it
        self._recording = None
        self._spent = False
        with _live_lock:
            _live.add(self)

    def __enter__(self):
        if self._recording is not None:
            raise errors.TapeError("this tape is already recording")
        self._recording = recording_here()
        self._recording.enter(self)
        return self

    def __exit__(self, *_):
        recording, self._recording = self._recording, None
        recording.leave(self)

    def watch(self, x):
        """Start recording what is computed from `x`; return the tensor to use in its place."""
        recording = self._recording
        if recording is None:
            raise errors.TapeError("watch needs a tape that is recording: call it inside the tape's `with` block")
        if trace_ctx.trace not in (recording, recording.parent_trace):
            raise errors.TapeError(
                "watch was called inside a JAX transformation (jit, vmap, grad, scan, ...) that began after the tape "
                "did, and the tape cannot see what is computed there; watch the value outside, or open a tape inside"
            )
        x = convert(x)
        if not is_inexact_dtype(x.dtype):
            return x
        if type(x) is Recorded and trace_of(x) is not recording:
            x = lower(x)
        if not isinstance(x, Tracer):
            original = x
            before = _recorded_before(recording, x)
            x = Recorded(recording, x) if before is None else before
            self.originals[id(original)] = x  # x keeps the array alive, so its id is not reused
            recording.originals[id(original)] = x.key
        key = key_of(x)
        self.entries.setdefault(key, (None, 0, x))
        self._watched.setdefault(key, x)
        return x

    def gradient(self, targets, sources, output_gradients):
        """Return the gradient of the sum of `targets` with respect to each of `sources`; `None` where unconnected."""
        if self._spent:
            raise errors.TapeError(
                "a non-persistent GradientTape can only be used to compute one set of gradients (or jacobians); "
                "make it GradientTape(persistent=True)"
            )
        if self._recording is not None and not self.persistent:
            self._recording.stop(self)
        seeds = [None] * len(targets) if output_gradients is None else output_gradients
        grads = backward([self], targets, sources, seeds, ())
        if not self.persistent:
            self.entries.clear()
            self._spent = True
        return grads

    @contextlib.contextmanager
    def stop_recording(self):
        """Record nothing inside the context."""
        recording = self._recording
        if recording is None or self not in recording.tapes:
            raise errors.TapeError("stop_recording needs a tape that is recording")
        recording.stop(self)
        try:
            yield
        finally:
            if self._recording is recording and not self._spent:
                recording.start(self)

    def reset(self):
        """Forget everything recorded and watched."""
        self.entries.clear()
        self._watched.clear()
        self.originals.clear()
        self._spent = False
        if self._recording is not None:
            self._recording.find_originals()

    def watched_variables(self):
        return list(self._watched.values())

    def find(self, x):
        """Return the key by which this tape knows tensor `x`, or `None`."""
        if isinstance(x, Tracer):
            key = key_of(x)
            return key if key in self.entries else None
        found = self.originals.get(id(x))
        return None if found is None or found.value is not x else found.key


def _recorded_before(recording, x):
    """Return the Recorded that a surrounding active tape already uses for array `x`, so that nested tapes connect."""
    trace = recording
    while trace is not None:
        for tape in getattr(trace, "tapes", ()):
            found = tape.originals.get(id(x))
            if found is not None and found.value is x:
                return found
        trace = getattr(trace, "parent_trace", None)
    return None


def tapes_of(xs):
    """Return the tapes that know one of `xs`."""
    with _live_lock:
        tapes = list(_live)
    return [tape for tape in tapes if any(tape.find(x) is not None for x in xs)]


def backward(tapes, targets, sources, seeds, stops):
    """Walk back from `targets`; return the gradient for each of `sources`, in the conjugate convention, or `None`.

    Args:
        tapes: The tapes in which operations are looked up.
        targets: Tensors whose weighted sum is differentiated.
        sources: Tensors to differentiate with respect to.
        seeds: The weight of each target; `None` for ones.
        stops: Tensors treated as constants: nothing passes through them to what they were computed from.
    """
    source_keys = [_find(tapes, x) for x in sources]
    wanted = {key for key in source_keys if key is not None}
    stopped = {_find(tapes, x) for x in stops}
    cotangents = {}
    for target, seed in zip(targets, seeds, strict=True):
        key = _find(tapes, target)
        if key is not None:
            _accumulate(cotangents, key, _seed(target, seed))
    operations, connected = _between(tapes, cotangents, wanted, stopped)
    restore = _as_recorded if is_recording() else lambda x, _: lower(x)
    for operation in operations:
        given = tuple([i for i, key in operation.outs.items() if key in cotangents and key not in stopped])
        if not given:
            continue
        pulled = [cotangents[operation.outs[i]] for i in given]
        for i in given:
            if operation.outs[i] not in wanted:
                del cotangents[operation.outs[i]]
        needed = tuple([i for i, key in enumerate(operation.ins) if key in connected])
        args = [restore(x, key) for x, key in zip(operation.args, operation.ins, strict=True)]
        for i, cotangent in zip(needed, _pull(operation, args, given, needed, pulled), strict=True):
            if cotangent is not None:
                _accumulate(cotangents, operation.ins[i], cotangent)
    grads = [None if key is None else cotangents.get(key) for key in source_keys]
    return [None if g is None else conjugate(g) for g in grads]


def _as_recorded(x, key):
    """Return the operand `x` of an operation under the key that it had when the operation was recorded."""
    if not key or (isinstance(x, Tracer) and key_of(x) == key):
        return x
    recorded = Recorded(trace_ctx.trace, lower(x.value if type(x) is Recorded else x))
    recorded.key = key
    return recorded


def _find(tapes, x):
    return next((key for tape in tapes if (key := tape.find(x)) is not None), None)


def _operation_of(tapes, key):
    operations = [tape.entries.get(key, (None,))[0] for tape in tapes]
    # a tape may watch what another tape recorded, and only the innermost tape knows the rule of a custom function
    return max(operations, key=lambda operation: -1 if operation is None else operation.number)


def _between(tapes, starts, wanted, stopped):
    """Return the operations between `starts` and `wanted`, latest first, and the keys that depend on `wanted`."""
    found, waiting = {}, [key for key in starts if key not in stopped]
    while waiting:
        operation = _operation_of(tapes, waiting.pop())
        if operation is not None and operation.number not in found:
            found[operation.number] = operation
            waiting.extend([key for key in operation.ins if key and key not in stopped])
    connected, operations = set(wanted), []
    for number in sorted(found):
        operation = found[number]
        if not connected.isdisjoint(operation.ins):
            operations.append(operation)
            connected.update([key for key in operation.outs.values() if key not in stopped])
    operations.reverse()
    return operations, connected


def _pull(operation, args, given, needed, cotangents):
    try:
        return operation.pull(args, given, needed, cotangents)
    except errors.MultiopError:
        raise
    except (NotImplementedError, ValueError) as error:
        if isinstance(error, NotImplementedError) or "Reverse-mode" in str(error) or "not support" in str(error):
            raise errors.NoGradientError(
                f"{operation.name} has no gradient in JAX: {str(error).splitlines()[0]}"
            ) from error
        raise


@jax.jit
def _add(a, b):
    return a + b


def _accumulate(cotangents, key, cotangent):
    cotangents[key] = _add(cotangents[key], cotangent) if key in cotangents else cotangent


def _seed(target, seed):
    """Return the cotangent of `target` that the backward pass starts from, in JAX's convention."""
    if seed is None:
        return jnp.ones_like(lower(target))
    seed = convert(seed)
    if seed.shape != target.shape:
        raise errors.ArgumentError(
            f"an output gradient has shape {seed.shape}, and its target has shape {target.shape}"
        )
    if jnp.iscomplexobj(seed) and not jnp.iscomplexobj(target):
        raise errors.DTypeError(f"an output gradient has dtype {seed.dtype}, and its target has dtype {target.dtype}")
    return conjugate(seed if seed.dtype == target.dtype else seed.astype(target.dtype))
