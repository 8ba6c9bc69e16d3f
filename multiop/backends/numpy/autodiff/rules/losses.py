"""Derivatives of losses."""

from __future__ import annotations

import numpy as np

from ..._record import ops
from ...ops.losses import EPSILON, beam_search
from .formula import by_formula


@by_formula
def op_binary_crossentropy(target, output, from_logits):
    if from_logits:
        return ops.softplus(output) - ops.multiply(output, target)
    output = ops.clip(output, EPSILON, 1 - EPSILON)
    return ops.multiply(ops.subtract(target, 1.0), np.log1p(-output)) - ops.multiply(target, np.log(output))


@by_formula
def op_categorical_crossentropy(target, output, from_logits, axis):
    if from_logits:
        logs = ops.log_softmax(output, axis)
        logs = ops.where(ops.equal(target, 0) & ops.isneginf(logs), 0, logs)  # a class that is masked
    else:
        logs = np.log(ops.clip(ops.divide(output, ops.sum(output, axis, True)), EPSILON, 1 - EPSILON))
    return -ops.sum(ops.multiply(target, logs), axis, False)


@by_formula
def op_sparse_categorical_crossentropy(target, output, from_logits, axis):
    logits = output if from_logits else np.log(ops.clip(output, EPSILON, 1 - EPSILON))
    return -ops.squeeze(ops.take_along_axis(ops.log_softmax(logits, axis), target, axis), axis)


@by_formula
def op_ctc_loss(target, output, target_length, output_length, blank):
    states = np.full((len(target), 2 * target.shape[1] + 1), blank)  # a blank before, between and after the labels
    states[:, 1::2] = target
    size = states.shape[1]
    skips = np.pad(states[:, 2:] != states[:, :-2], ((0, 0), (2, 0)))[:, :size]  # past the blank between two labels
    emitted = ops.take_along_axis(ops.log_softmax(output, 2), states[:, None], 2)
    logs = np.where(np.arange(size) == 0, 0, np.full(states.shape, -np.inf, output.dtype))
    for step in range(emitted.shape[1]):
        earlier = ops.pad(logs, ((0, 0), (2, 0)), "constant", -np.inf)
        terms = [logs, earlier[:, 1 : size + 1], ops.where(skips, earlier[:, :size], -np.inf)]
        reached = log_sum_exp(terms) + emitted[:, step]
        logs = ops.where((step < output_length)[:, None], reached, logs)
    ends = 2 * target_length[:, None]
    last, label = (ops.take_along_axis(logs, np.maximum(ends - k, 0), 1) for k in (0, 1))
    return -ops.squeeze(log_sum_exp([last, ops.where(ends > 0, label, -np.inf)]), 1)


def op_ctc_decode(u, inputs, lengths, beam_width, top_paths, merge_repeated, blank):
    def scores(inputs):
        if not beam_width:
            inside = np.arange(inputs.shape[1]) < lengths[:, None]
            return -ops.sum(ops.where(inside, ops.max(inputs, 2, False, None), 0), 1, True)
        logs = ops.log_softmax(inputs, 2)
        found = [beam_search(x[:n], beam_width, top_paths, blank) for x, n in zip(logs, lengths, strict=True)]
        return ops.stack([ops.stack([score for _, score in paths], 0) for paths in found], 0)

    return by_formula(scores)(u[1], inputs)


def log_sum_exp(logs):
    """Return the logarithm of the sum of exponentials, which has no gradient where all of them are 0."""
    logs = ops.stack(logs, 0)
    nothing = ops.isneginf(ops.max(logs, 0, False, None))
    return ops.where(nothing, -np.inf, ops.logsumexp(ops.where(nothing, 0, logs), 0, False))
