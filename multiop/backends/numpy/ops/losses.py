"""Losses, and decoding the outputs of networks trained with them."""

from __future__ import annotations

import numpy as np

from multiop import errors
from multiop._values import args

from .._record import array_of, ops
from ..conversion import dtype_name, floating, in_float32, promote_floating, reject_complex

EPSILON = 1e-7


def op_binary_crossentropy(target, output, from_logits):
    target, output = reject_complex(*promote_floating(target, output))
    args.same_shape(target.shape, output.shape, "target", "output")
    return in_float32(lambda target, output: binary(target, output, from_logits), target, output)


def op_categorical_crossentropy(target, output, from_logits, axis):
    target, output = reject_complex(*promote_floating(target, output))
    args.same_shape(target.shape, output.shape, "target", "output")
    axis = args.single_axis(axis, output.ndim)
    return in_float32(lambda target, output: categorical(target, output, from_logits, axis), target, output)


def op_sparse_categorical_crossentropy(target, output, from_logits, axis):
    (output,) = reject_complex(floating(output))
    if ((target < 0) | (target >= output.shape[axis])).any():
        raise errors.ArgumentError(f"target has a class that is not among the {output.shape[axis]} of output")
    loss = in_float32(lambda x: -ops.log_softmax(x if from_logits else np.log(clip_probabilities(x)), axis), output)
    target = target if target.ndim == output.ndim else ops.expand_dims(target, axis)
    return ops.squeeze(ops.take_along_axis(loss, target, axis), axis)


def op_ctc_loss(target, output, target_length, output_length, blank):
    states = np.full((len(target), 2 * target.shape[1] + 1), blank)  # a blank before, between and after the labels
    states[:, 1::2] = target
    return in_float32(lambda output: alignments(states, output, target_length, output_length), output)


def op_ctc_decode(inputs, lengths, beam_width, top_paths, merge_repeated, blank):
    if not beam_width:
        return greedy(inputs, lengths, merge_repeated, blank)
    logs, steps = ops.log_softmax(ops.cast(inputs, "float64"), 2), inputs.shape[1]
    found = [beam_search(x[:n], beam_width, top_paths, blank) for x, n in zip(logs, lengths, strict=True)]
    labels = [[(*path, *[-1] * (steps - len(path))) for path, _ in paths] for paths in found]
    labels = np.array(labels, np.int32).reshape(inputs.shape[0], top_paths, steps)
    scores = ops.stack([ops.stack([y for _, y in one], 0) for one in found], 0) if found else np.zeros((0, top_paths))
    return np.swapaxes(labels, 0, 1), ops.cast(scores, dtype_name(inputs))


def clip_probabilities(x):
    return ops.clip(x, EPSILON, 1 - EPSILON)


def binary(target, output, from_logits):
    if from_logits:
        return (1 - target) * ops.softplus(output) + target * ops.softplus(-output)
    output = clip_probabilities(output)
    return (target - 1) * np.log1p(-output) - target * np.log(output)


def categorical(target, output, from_logits, axis):
    if from_logits:
        logs = ops.log_softmax(output, axis)
        logs = ops.where(ops.equal(target, 0) & ops.isneginf(logs), 0, logs)  # a class that is masked
    else:
        logs = np.log(clip_probabilities(output / ops.sum(output, axis, True)))
    return -ops.sum(target * logs, axis, False)


def alignments(states, output, labels, steps):
    """Add up the probabilities of all alignments: after each step, of those that end in each state."""
    size = states.shape[1]
    skips = np.pad(states[:, 2:] != states[:, :-2], ((0, 0), (2, 0)))[:, :size]  # past the blank between two labels
    emitted = ops.take_along_axis(ops.log_softmax(output, 2), states[:, None], 2)
    logs = np.where(np.arange(size) == 0, 0, np.full(states.shape, -np.inf, output.dtype))
    for step in range(emitted.shape[1]):
        earlier = ops.pad(logs, ((0, 0), (2, 0)), "constant", -np.inf)
        terms = [logs, earlier[:, 1 : size + 1], ops.where(skips, earlier[:, :size], -np.inf)]
        logs = ops.where((step < steps)[:, None], log_sum_exp(terms) + emitted[:, step], logs)
    ends = 2 * labels[:, None]
    last, label = (ops.take_along_axis(logs, np.maximum(ends - k, 0), 1) for k in (0, 1))
    return -ops.squeeze(log_sum_exp([last, ops.where(ends > 0, label, -np.inf)]), 1)


def log_sum_exp(logs):
    """Return the logarithm of the sum of exponentials, which has no gradient where all of them are 0."""
    logs = ops.stack(logs, 0)
    nothing = ops.isneginf(ops.max(logs, 0, False, None))
    return ops.where(nothing, -np.inf, ops.logsumexp(ops.where(nothing, 0, logs), 0, False))


def greedy(inputs, lengths, merge_repeated, blank):
    inside = np.arange(inputs.shape[1]) < lengths[:, None]
    labels = np.where(inside, np.argmax(array_of(inputs), 2), blank)
    scores = -ops.sum(ops.where(inside, ops.max(inputs, 2, False, None), 0), 1, True)
    kept = labels != blank
    if merge_repeated:
        kept[:, 1:] &= labels[:, 1:] != labels[:, :-1]
    labels = np.take_along_axis(np.where(kept, labels, -1), np.argsort(~kept, 1, stable=True), 1)
    return labels[None].astype(np.int32), scores


def beam_search(logs, width, paths, blank):
    """Keep the most probable prefixes, each with its probabilities of ending in a blank and in a label."""
    beams = {(): (0.0, -np.inf)}
    for now in logs:
        longer = {
            prefix: (np.logaddexp(*ends) + now[blank], ends[1] + now[prefix[-1]] if prefix else -np.inf)
            for prefix, ends in beams.items()
        }
        for prefix, ends in beams.items():
            for label in range(len(now)):
                if label != blank:
                    start = ends[0] if prefix[-1:] == (label,) else np.logaddexp(*ends)
                    in_blank, in_label = longer.get((*prefix, label), (-np.inf, -np.inf))
                    longer[(*prefix, label)] = in_blank, np.logaddexp(in_label, start + now[label])
        best = sorted(longer, key=lambda prefix: -np.logaddexp(*longer[prefix]))[:width]
        beams = {prefix: longer[prefix] for prefix in best}
    scores = {prefix: np.logaddexp(*ends) for prefix, ends in beams.items()}
    best = [(prefix, scores[prefix]) for prefix in sorted(scores, key=lambda prefix: -scores[prefix])]
    best = [(prefix if score > -np.inf else (), score) for prefix, score in best]
    return (best + [((), -np.inf)] * paths)[:paths]
