"""Ops of many steps, each run as one function in eager mode, where every step has its own price in Python.

A function runs the same kernels in the same order as the op does step by step, so its values are the same to the bit.
Each signature (options, dtypes and shapes) has its own, which is made when the signature comes back.
"""

from __future__ import annotations

import functools
import math
import threading

import tensorflow as tf

from multiop import config
from multiop._loading import settings
from multiop._rules import signatures
from multiop._rules.lru import Recent

from .. import _internals
from ..conversion import executing_eagerly, in_this_graph
from . import _closed_over
from .custom_gradient import dense, fresh, in_state
from .tape import differentiate

CALLS_BEFORE = 12  # calls that run step by step, at each order: to trace takes as long as 12 to 30 of them
_signatures = Recent(1024)  # key -> how many calls there were, then the program; `_NONE` where there can be none


def in_one_call(op):
    """Run an op, whose arguments are tensors and plain options, as one function where its signature comes back.

    It must not look at values.
    """

    @functools.wraps(op)
    def call(*args):
        if not executing_eagerly() or _internals.missing is not None:
            return op(*args)
        try:
            key, tensors = signatures.split(args, KINDS)
        except TypeError:
            return op(*args)
        if not tensors:
            return op(*args)
        key += [op, settings.floatx or config.floatx()]
        for x in tensors:
            key += (_internals.dtype_number(x), _internals.sizes(x))
        program = _signatures.get(key := tuple(key)) or 0
        if type(program) is not Program:
            if program is _NONE:
                return op(*args)
            program = program + 1 if program < CALLS_BEFORE else _made(op, args, tensors)
            _signatures.put(key, program)
        if type(program) is Program:
            try:
                result = program(tensors)
            except tf.errors.OpError:  # step by step, it says what is wrong
                result = None
            if result is not None:
                return result
        return op(*args)

    return call


def composite(op, args, kwargs):
    """Call a composite op as one function, where its signature comes back."""
    return op(*args, **kwargs) if kwargs or not executing_eagerly() else _whole(op)(*args)


_whole = functools.lru_cache(maxsize=1024)(in_one_call)
_NONE = -math.inf  # calls of a signature of which there is no program
KINDS = (_internals.EagerTensor,)


def _made(op, args, tensors):
    """Return the program of a call, or `_NONE` where it cannot be traced."""
    try:
        with _making, in_state("transposing", False), _internals.stop_recording():
            return Program(op.__name__, signatures.of_tensors(op, args, KINDS), tensors)
    except Exception:
        return _NONE


class Program:
    """A function of tensors as one function of TensorFlow; its gradient is another one, and so on.

    The gradient is computed from what the function has kept, or, where a tape may follow it, from the arguments again.
    A call returns `None` where the function with its gradient is not made yet.
    """

    def __init__(self, name, fn, xs):
        self.name, self.fn, self.kind = name, fn, None
        self.traced = _internals.traced_function(self.outputs, xs)
        self.inference = _internals.callable_of(self.traced)
        self.pair = self.gradient = None
        self.early = self.early_gradients = 0

    def outputs(self, *xs):
        result = self.fn(*xs)
        if type(result) in (tuple, list):
            self.kind, outputs = type(result), list(result)
        else:
            outputs = [result]
        if not all(isinstance(y, tf.Tensor) for y in outputs):
            raise TypeError
        return outputs

    def __call__(self, xs):
        if not _internals.are_followed(xs):
            outputs = self.inference(xs)
        elif self.early < CALLS_BEFORE:
            self.early += 1
            return None
        else:
            outputs = self.recorded(xs)
        return outputs[0] if self.kind is None else self.kind(outputs)

    def recorded(self, xs):
        if self.pair is None:
            with _making, in_state("transposing", False), _internals.stop_recording():
                self.pair = self.pair or _internals.with_gradient(self.traced)
        function, pull, n = self.pair
        found = function(xs)
        outputs, kept = found[:n], found[n:]
        specs = [(y.dtype, y.shape) for y in outputs]

        def backward(*upstreams, is_transposed=False):
            upstreams = [dense(u, *spec) for u, spec in zip(upstreams, specs, strict=True)]
            upstreams = [u for u in upstreams if u is not None]
            operands = [*xs, *upstreams]
            if not executing_eagerly():
                return self.gradients(*map(in_this_graph, operands))
            if pull is None or _internals.are_followed(operands):
                return self.followed(operands, is_transposed)
            return pull(upstreams, outputs, kept)

        _internals.record_reverse(self.name, outputs, xs, backward)
        _internals.record_forward(self.name, outputs, xs, functools.partial(backward, is_transposed=True))
        _closed_over.link(xs, outputs)
        return outputs

    def gradients(self, *operands):
        """Return the gradient of each argument, `None` where there is none."""
        if executing_eagerly():
            return self.gradients_by_step(operands)
        xs = operands[: len(self.traced.inputs)]
        ys = [y for y in self.outputs(*xs) if _internals.is_differentiable(y)]
        grads = tf.gradients(ys, xs, operands[len(xs) :])
        return [None if grad is None else tf.convert_to_tensor(grad) for grad in grads]

    def followed(self, operands, is_transposed):
        """Return the gradients by a program, which has gradients, too: an accumulator transposes nothing else."""
        if self.early_gradients < CALLS_BEFORE and not is_transposed:
            self.early_gradients += 1
            return self.gradients_by_step(operands)
        if self.gradient is None:
            present = []

            def present_gradients(*operands):
                grads = self.gradients(*operands)
                present[:] = [grad is not None for grad in grads]
                return [grad for grad in grads if grad is not None]

            with _making, in_state("transposing", False), _internals.stop_recording():
                self.gradient = Program(f"{self.name}/gradient", present_gradients, operands), present
        program, present = self.gradient
        found = program.recorded(operands) if is_transposed else program(operands)
        if found is None:
            return self.gradients_by_step(operands)
        found = iter(found)
        return [next(found) if is_present else None for is_present in present]

    def gradients_by_step(self, operands):
        xs = [fresh(x) for x in operands[: len(self.traced.inputs)]]  # two may be the same tensor
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([x for x in xs if _internals.is_differentiable(x)])
            ys = [y for y in self.outputs(*xs) if _internals.is_differentiable(y)]
        return differentiate(tape.gradient, ys, xs, operands[len(xs) :])


_making = threading.RLock()  # TensorFlow changes the graph of a function where it makes that of the gradient
