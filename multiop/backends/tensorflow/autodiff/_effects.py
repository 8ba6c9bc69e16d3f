"""What a function does beside computing: it draws random numbers from a state, and changes variables."""

from __future__ import annotations

import contextlib

import tensorflow as tf

from multiop import errors

from .. import _internals


class Changed:
    """What the operations of a function change that exists outside, and what it was; refused if that is not known."""

    def __init__(self):
        self.reads = {}  # tensor id of a variable's handle -> what was first read
        self.changed = {}  # the same -> the handle, and its value before; None if it was overwritten unread

    def note(self, op_type, types, inputs, outputs, known):
        """Note an operation; `types` are those of all operations in it, `known` the tensors that were made inside."""
        if draws := DRAWS & types:
            raise errors.UnsupportedError(
                f"a checkpointed function cannot draw random numbers by {min(draws)}: it would draw others when it is "
                f"run again; draw them outside, or from an explicit seed "
                f"(https://www.tensorflow.org/guide/random_numbers)"
            )
        handles = [x for x in inputs if x.dtype == tf.resource and _internals.tensor_id(x) not in known]
        if not handles:
            return
        key = _internals.tensor_id(handles[0])
        if op_type == "ReadVariableOp":
            if tf.executing_eagerly() and key not in self.changed:
                self.reads.setdefault(key, outputs[0])
            return
        if not (writes := sorted(filter(_is_write, types))):
            return
        if key in self.changed and _is_write(op_type):
            return
        before = outputs[0] if op_type == "RngReadAndSkip" else self.reads.get(key)
        is_repeatable = op_type in _ON_VARIABLES and (before is not None or op_type == "AssignVariableOp")
        if not tf.executing_eagerly() or not is_repeatable:
            raise errors.UnsupportedError(
                f"a checkpointed function cannot change state by {writes[0]}: it would change it "
                f"again when it is run again; change it outside, or in eager mode assign a value computed from one "
                f"that was read (https://www.tensorflow.org/api_docs/python/tf/recompute_grad)"
            )
        self.changed[key] = handles[0], before

    @contextlib.contextmanager
    def before(self):
        """Put everything back as it was before, and afterwards as it is now."""
        with _internals.stop_recording():
            now = [(handle, _internals.read_variable(handle)) for handle, _ in self.changed.values()]
            for handle, value in self.changed.values():
                _assign(handle, value)
        try:
            yield
        finally:
            with _internals.stop_recording():
                for handle, value in now:
                    _assign(handle, value)


def _assign(handle, value):
    if value is not None:
        tf.raw_ops.AssignVariableOp(resource=handle, value=value)


# operations that draw random numbers from a state of their own
DRAWS = {
    "AllCandidateSampler", "FixedUnigramCandidateSampler", "FractionalAvgPool", "FractionalMaxPool",
    "LearnedUnigramCandidateSampler", "LogUniformCandidateSampler", "Multinomial", "NonDeterministicInts",
    "ParameterizedTruncatedNormal", "RandomCrop", "RandomGamma", "RandomPoisson", "RandomPoissonV2", "RandomShuffle",
    "RandomStandardNormal", "RandomUniform", "RandomUniformInt", "SampleDistortedBoundingBox",
    "SampleDistortedBoundingBoxV2", "StatefulRandomBinomial", "StatefulStandardNormal", "StatefulStandardNormalV2",
    "StatefulTruncatedNormal", "StatefulUniform", "StatefulUniformFullInt", "StatefulUniformInt",
    "ThreadUnsafeUnigramCandidateSampler", "TruncatedNormal", "UniformCandidateSampler",
}  # fmt: skip

_ON_VARIABLES = {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "RngReadAndSkip", "RngSkip"}
_WRITES = (
    "ResourceApply", "ResourceScatter", "ResourceSparseApply", "ResourceStridedSliceAssign", "ResourceCountUpTo",
    "IteratorGetNext", "MultiDeviceIteratorGetNext", "LookupTableImport", "LookupTableInsert", "LookupTableRemove",
    "QueueDequeue", "QueueEnqueue",
)  # fmt: skip


def _is_write(op_type):
    """Say whether an operation changes what the handle among its operands stands for."""
    return op_type in _ON_VARIABLES or op_type.startswith(_WRITES)
