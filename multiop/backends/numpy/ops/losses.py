"""Losses, and decoding the outputs of networks trained with them."""

from __future__ import annotations

import numpy as np

from multiop import errors
from multiop._values import args

from ..conversion import floating, in_float32, promote_floating, reject_complex
from .activations import log_softmax

EPSILON = 1e-7


def op_binary_crossentropy(target, output, from_logits):
    target, output = reject_complex(*promote_floating(target, output))
    args.same_shape(target.shape, output.shape, "target", "output")
    return in_float32(of_logits if from_logits else of_probabilities, target, output)


def op_categorical_crossentropy(target, output, from_logits, axis):
    target, output = reject_complex(*promote_floating(target, output))
    args.same_shape(target.shape, output.shape, "target", "output")
    axis = args.single_axis(axis, output.ndim)
    return in_float32(lambda target, output: categorical(target, output, from_logits, axis), target, output)


def op_sparse_categorical_crossentropy(target, output, from_logits, axis):
    (output,) = reject_complex(floating(output))
    if ((target < 0) | (target >= output.shape[axis])).any():
        raise errors.ArgumentError(f"target has a class that is not among the {output.shape[axis]} of output")
    loss = in_float32(lambda x: -log_softmax(x if from_logits else np.log(clip_probabilities(x)), axis), output)
    return np.squeeze(np.take_along_axis(loss, target, axis), axis)


def op_ctc_loss(target, output, target_length, output_length, blank):
    """Add up the probabilities of all alignments: after each step, of those that end in each state."""
    emitted = log_softmax(output, 2)
    loss = [alignments(*one, blank) for one in zip(target, emitted, target_length, output_length, strict=True)]
    return np.array(loss, output.dtype)


def op_ctc_decode(inputs, lengths, beam_width, top_paths, merge_repeated, blank):
    if not beam_width:
        return greedy(inputs, lengths, merge_repeated, blank)
    logs, steps = log_softmax(inputs.astype(np.float64), 2), inputs.shape[1]
    found = [beam_search(x[:n], beam_width, top_paths, blank) for x, n in zip(logs, lengths, strict=True)]
    labels = [[(*path, *[-1] * (steps - len(path))) for path, _ in paths] for paths in found]
    labels = np.array(labels, np.int32).reshape(inputs.shape[0], top_paths, steps)
    return np.swapaxes(labels, 0, 1), np.array([[score for _, score in paths] for paths in found], inputs.dtype)


def clip_probabilities(x):
    return np.clip(x, EPSILON, 1 - EPSILON)


def of_logits(target, output):
    return np.maximum(output, 0) - output * target + np.log1p(np.exp(-np.abs(output)))


def of_probabilities(target, output):
    return -target * np.log(clip_probabilities(output)) - (1 - target) * np.log1p(-clip_probabilities(output))


def categorical(target, output, from_logits, axis):
    if from_logits:
        logs = log_softmax(output, axis)
        logs = np.where((target == 0) & (logs == -np.inf), 0, logs)  # a class that is masked
    else:
        logs = np.log(clip_probabilities(output / np.sum(output, axis, keepdims=True)))
    return -np.sum(target * logs, axis)


def alignments(target, emitted, labels, steps, blank):
    """Return minus the logarithm of the probability of one sequence of labels."""
    states = np.full(2 * labels + 1, blank)  # a blank before, between and after the labels
    states[1::2] = target[:labels]
    skips = np.append([False, False], states[2:] != states[:-2])[: len(states)]  # past the blank between two labels
    logs = np.where(np.arange(len(states)) == 0, 0, np.full(len(states), -np.inf, emitted.dtype))
    for now in emitted[:steps]:
        before = np.append(-np.inf, logs[:-1])
        skipped = np.where(skips, np.append([-np.inf, -np.inf], logs[:-2])[: len(states)], -np.inf)
        logs = np.logaddexp(np.logaddexp(logs, before), skipped) + now[states]
    return -np.logaddexp.reduce(logs[-2:])


def greedy(inputs, lengths, merge_repeated, blank):
    inside = np.arange(inputs.shape[1]) < lengths[:, None]
    labels = np.where(inside, np.argmax(inputs, 2), blank)
    scores = -np.sum(np.where(inside, np.max(inputs, 2), 0), 1, keepdims=True)
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
