"""Rows of the losses."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.special

from .._case import FLOATING, call, floating, pin, row
from .._samplers import integers, normal, probabilities, uniform

INF, NAN = np.inf, np.nan
EPSILON = 1e-7


def inner(*shape: int):
    """Draw probabilities that clipping does not change."""
    return uniform(*shape, low=0.1, high=0.9)


def binary_crossentropy(target, output, from_logits=False):
    """Weight the logarithms of a probability and its complement."""
    target, output = target.astype(float), output.astype(float)
    if from_logits:
        return np.logaddexp(output, 0) - output * target
    output = np.clip(output, EPSILON, 1 - EPSILON)
    return -(target * np.log(output) + (1 - target) * np.log(1 - output))


def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    """Weight the logarithms of the probabilities."""
    if from_logits:
        return -(target * scipy.special.log_softmax(output.astype(float), axis)).sum(axis)
    output = np.clip(output / output.sum(axis, keepdims=True), EPSILON, 1 - EPSILON)
    return -(target * np.log(output)).sum(axis)


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    """Pick the logarithm of one probability."""
    logits = output.astype(float) if from_logits else np.log(np.clip(output, EPSILON, 1 - EPSILON))
    target = target if target.ndim == output.ndim else np.expand_dims(target, axis)
    return -np.take_along_axis(scipy.special.log_softmax(logits, axis), target, axis).squeeze(axis)


def psnr(x1, x2, max_val):
    """Compare the mean square error with the square of the maximum."""
    return 10 * np.log10(max_val**2 / np.mean((x1.astype(float) - x2) ** 2))


def readings(steps, size, blank):
    """Return each sequence of labels with the alignments that decode to it."""
    found = {}
    for alignment in itertools.product(range(size), repeat=steps):
        text = tuple(label for label, _ in itertools.groupby(alignment) if label != blank)
        found.setdefault(text, []).append(alignment)
    return found


def probability(logs, alignments):
    """Return the logarithm of the probability of any of the alignments."""
    terms = [sum(logs[step, label] for step, label in enumerate(one)) for one in alignments]
    return np.logaddexp.reduce(terms) if terms else -np.inf


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    """Add up the probabilities of all alignments, one by one."""
    losses = []
    for labels, logits, length, steps in zip(target, output.astype(float), target_length, output_length, strict=True):
        logs = scipy.special.log_softmax(logits[:steps], -1)
        alignments = readings(steps, logits.shape[1], mask_index % logits.shape[1]).get(tuple(labels[:length]), [])
        losses.append(-probability(logs, alignments))
    return np.array(losses)


def ctc_decode(
    inputs,
    sequence_lengths,
    strategy="greedy",
    beam_width=100,
    top_paths=1,
    merge_repeated=True,
    mask_index=0,
):
    """Read the best alignment, or compare all sequences of labels."""
    (batch, most, size), blank = inputs.shape, mask_index % inputs.shape[2]
    paths = 1 if strategy == "greedy" else top_paths
    found = np.full((paths, batch, most), -1)
    scores = np.full((batch, paths), -np.inf)
    for n, (logits, steps) in enumerate(zip(inputs.astype(float), sequence_lengths, strict=True)):
        if strategy == "greedy":
            best = logits[:steps].argmax(-1).tolist()
            merged = [label for label, _ in itertools.groupby(best)] if merge_repeated else best
            texts = [([label for label in merged if label != blank], -logits[:steps].max(-1, initial=-np.inf).sum())]
        else:
            logs = scipy.special.log_softmax(logits[:steps], -1)
            every = readings(steps, size, blank).items()
            texts = sorted(((text, probability(logs, alignments)) for text, alignments in every), key=lambda t: -t[1])
        for path, (text, score) in enumerate(texts[:paths]):
            found[path, n, : len(text)] = text
            scores[n, path] = score
    return found, scores


ROWS = [
    row(
        "op_binary_crossentropy",
        binary_crossentropy,
        call(inner(2, 3), inner(2, 3)),
        call(inner(2, 3), normal(2, 3), from_logits=True),
        call(inner(0), normal(0), from_logits=True),
        returns=floating,
        ulps=32,
        pins=[
            pin([1.0, 0.0], [0.0, 0.0], value=[-np.log(1e-7), 1e-7], gradient=([np.log(1 / 1e-7 - 1)] * 2, [0.0, 0.0])),
            pin([1.0, 0.0], [0.0, 0.0], value=[-np.log(1e-7), 0.0], dtype="float16"),
            pin([1.0], [NAN], value=[NAN]),
            pin([1, 0], [3, -3], value=[np.log1p(np.exp(-3.0))] * 2, dtype="int32", from_logits=True),
            pin(
                [1.0, 0.0, 1.0, 0.0, 0.0],
                [1000.0, 1000.0, -1000.0, -1000.0, 0.0],
                value=[0.0, 1000.0, 1000.0, 0.0, np.log(2.0)],
                gradient=([-1000.0, -1000.0, 1000.0, 1000.0, 0.0], [0.0, 1.0, -1.0, 0.0, 0.5]),
                from_logits=True,
            ),
            pin([1.0], [20.0], value=[np.log1p(np.exp(-20.0))], from_logits=True),
        ],
    ),
    row(
        "op_categorical_crossentropy",
        categorical_crossentropy,
        call(probabilities(2, 3), inner(2, 3)),
        call(probabilities(3, 2), normal(3, 2), from_logits=True, axis=0),
        call(probabilities(0, 2), normal(0, 2), from_logits=True),
        returns=floating,
        ulps=32,
        pins=[
            pin([1, 0], [2, 6], value=np.log(4.0), dtype="int32"),
            pin([1.0, 0.0, 0.0], [0.0, 0.5, 0.5], value=-np.log(1e-7)),
            pin([1.0, 0.0], [2.0**-66] * 2, gradient=([np.log(2.0)] * 2, [-(2.0**65), 2.0**65])),
            pin([1.0, 0.0], [-1000.0, 0.0], value=1000.0, from_logits=True),
            pin([1.0, 0.0], [0.0, -INF], value=0.0, gradient=([0.0, 0.0], [0.0, 0.0]), from_logits=True),
            pin([0.5, 2.0**-66, 0.5], [0.0, -INF, 0.0], value=INF, from_logits=True),
            pin([0.0, 0.0], [NAN, 0.0], value=NAN, from_logits=True),
        ],
    ),
    row(
        "op_sparse_categorical_crossentropy",
        sparse_categorical_crossentropy,
        call(integers(2, low=0, high=3), inner(2, 3)),
        call(integers(2, 2, low=0, high=3), normal(2, 3, 2), from_logits=True, axis=1),
        call(integers(2, 1, low=0, high=3), normal(2, 3), from_logits=True),
        call(integers(0, low=0, high=3), normal(0, 3), from_logits=True),
        returns=lambda dtypes: floating(dtypes[1:]),
        ulps=32,
        pins=[
            pin(np.array(0), [0.0, 0.5, 0.5], value=-np.log(1e-7), gradient=[0.0, 1.0, 1.0]),
            pin(np.array(0), [1000.0, 0.0], value=0.0, gradient=[0.0, 0.0], from_logits=True),
            pin(np.array(1), [-INF, 0.0], value=0.0, gradient=[0.0, 0.0], from_logits=True),
            pin(np.array([1]), [[0.0, NAN]], value=[NAN]),
            pin([1.0], [[1000.0, 0.0]], value=[1000.0], from_logits=True),
        ],
    ),
    row(
        "op_ctc_loss",
        ctc_loss,
        call(
            np.array([[1, 2], [1, 1], [2, -1], [0, 0]]),
            normal(4, 3, 3),
            np.array([2, 2, 1, 0]),
            np.array([3, 3, 2, 3]),
        ),
        call(np.array([[0, 1]]), normal(1, 4, 3), np.array([2]), np.array([4]), mask_index=-1),
        call(np.zeros((1, 0), int), normal(1, 2, 2), np.array([0]), np.array([2])),
        call(np.zeros((0, 1), int), normal(0, 2, 2), np.zeros(0, int), np.zeros(0, int)),
        returns=lambda dtypes: floating(dtypes[1:2]),
        ulps=64,
        pins=[
            pin(
                np.array([[1, 1], [1, 2], [1, 0]]),
                [[[0.0, 0.0, 0.0]] * 2] * 3,
                np.array([2, 2, 0]),
                np.array([2, 1, 0]),
                value=[INF, INF, 0.0],
                gradient=[[[0.0, 0.0, 0.0]] * 2] * 3,
            ),
            pin(np.array([[1]]), [[[1000.0, 0.0]] * 2], np.array([1]), np.array([2]), value=[1000.0 - np.log(2)]),
            pin(np.array([[1]]), [[[-INF, 0.0]]], np.array([1]), np.array([1]), value=[0.0], gradient=[[[0.0, 0.0]]]),
            pin(np.array([[1]]), [[[NAN, 0.0]]], np.array([1]), np.array([1]), value=[NAN]),
        ],
    ),
    row(
        "op_ctc_decode",
        ctc_decode,
        call(normal(2, 4, 3), np.array([4, 2])),
        call(normal(2, 4, 3), np.array([4, 0]), merge_repeated=False, mask_index=-1),
        call(normal(2, 3, 3), np.array([3, 2]), strategy="beam_search", beam_width=20, top_paths=2),
        call(normal(1, 2, 2), np.array([2]), strategy="beam_search", beam_width=6, top_paths=2, mask_index=1),
        returns=lambda dtypes: ["int32", floating(dtypes[:1])],
        ulps=64,
    ),
    row(
        "op_psnr",
        psnr,
        call(normal(2, 3), normal(2, 3), 2.0),
        call(normal(4), normal(4), max_val=uniform(low=1, high=9)),
        dtypes=("uint8", "int32", *FLOATING),
        returns=floating,
        ulps=64,
        pins=[
            pin([1.0], [1.0], 1.0, value=INF),
            pin([300.0], [0.0], 300.0, value=0.0, dtype="float16"),
            pin([NAN], [1.0], 1.0, value=NAN),
        ],
    ),
]
