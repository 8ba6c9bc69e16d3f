"""Losses, and decoding the outputs of networks trained with them."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop import errors
from multiop._values import args

from ..autodiff._programs import in_one_call
from ..conversion import choose, floating, known_shape, op_shape, promote, rank, reject_complex, to_wide_float
from ..devices import is_at_hand
from .elementwise import op_clip
from .indexing import are_indices, are_known_inside
from .reduction import logsumexp, op_argmax, op_max

EPSILON = 1e-7


@in_one_call
def op_binary_crossentropy(target, output, from_logits):
    target, output = reject_complex(*map(floating, promote(target, output)))
    args.same_shape(shape(target), shape(output), "target", "output")
    if from_logits:
        return tf.nn.sigmoid_cross_entropy_with_logits(target, output)
    dtype, target, output = to_wide_float(target, output)
    output = op_clip(output, EPSILON, 1 - EPSILON)
    return tf.cast(-target * tf.math.log(output) - (1 - target) * tf.math.log1p(-output), dtype)


@in_one_call
def op_categorical_crossentropy(target, output, from_logits, axis):
    dtype, target, output = to_wide_float(*promote(target, output))
    args.same_shape(shape(target), shape(output), "target", "output")
    axis = args.single_axis(axis, rank(output))
    if from_logits:
        logs = tf.nn.log_softmax(output, axis)
        nothing = tf.equal(target, 0) & tf.equal(logs, -math.inf)
        logs = choose(nothing, tf.zeros([], logs.dtype), logs)
    else:
        logs = tf.math.log(op_clip(output / tf.reduce_sum(output, axis, keepdims=True), EPSILON, 1 - EPSILON))
    return -tf.cast(tf.reduce_sum(target * logs, axis), dtype)


def op_sparse_categorical_crossentropy(target, output, from_logits, axis):
    if are_known_inside(target, known_shape(output)[axis]):
        return sparse_crossentropy(target, output, from_logits, axis, True)
    target, is_checked = target if are_indices(target) else tf.cast(target, tf.int64), is_at_hand(target)
    if is_checked and 0 not in known_shape(target) and not are_known_inside(target, output.shape[axis]):
        raise errors.ArgumentError(f"target has a class that is not among the {output.shape[axis]} of output")
    return sparse_crossentropy(target, output, from_logits, axis, is_checked)


@in_one_call
def sparse_crossentropy(target, output, from_logits, axis, is_checked):
    dtype, output = to_wide_float(output)
    target, outside = tf.cast(target, tf.int64), None
    target = tf.squeeze(target, axis) if rank(target) == rank(output) else target
    if axis < rank(output) - 1:
        output = tf.transpose(output, args.moved_order(axis, -1, rank(output)))
    if not is_checked:
        outside = (target < 0) | (target >= tf.cast(op_shape(output)[-1], target.dtype))
        target = choose(outside, tf.zeros_like(target), target)
    logs = output if from_logits else tf.math.log(op_clip(output, EPSILON, 1 - EPSILON))
    loss = loss_of_class(target, logs)
    loss = loss if outside is None else choose(outside, tf.constant(math.nan, loss.dtype), loss)
    return tf.cast(loss, dtype)


def loss_of_class(target, logs):
    """Return minus the logarithm of the softmax of `logs` at the class `target`."""
    if not logs.shape[-1]:  # the kernel takes a matrix with some class
        return -tf.gather(tf.nn.log_softmax(logs), target, batch_dims=rank(logs) - 1)
    if rank(logs) == 2:
        return tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=logs, labels=target)[0]
    return tf.nn.sparse_softmax_cross_entropy_with_logits(target, logs)


def op_ctc_loss(target, output, target_length, output_length, blank):
    (batch, steps, _), most = op_shape(output), op_shape(target)[1]
    # a blank before, between and after the labels
    states = tf.reshape(tf.stack([tf.fill([batch, most], blank), target], 2), [batch, 2 * most])
    states = tf.concat([states, tf.fill([batch, 1], blank)], 1)
    chosen = tf.tile(states[:, None], [1, steps, 1])
    emitted = tf.transpose(tf.gather(tf.nn.log_softmax(output), chosen, batch_dims=2), [1, 0, 2])
    # a label may directly follow a different label
    skips = tf.pad(tf.not_equal(states[:, 2:], states[:, :-2]), [[0, 0], [2, 0]])[:, : 2 * most + 1]
    nothing = tf.constant(-math.inf, output.dtype)

    never = tf.fill([batch, 2], nothing)

    def advance(logs, given):
        now, step = given
        # tf.vectorized_map always pads with 0
        before = tf.concat([never[:, :1], logs[:, :-1]], 1)
        skipped = tf.concat([never, logs[:, :-2]], 1)[:, : 2 * most + 1]
        skipped = choose(skips, skipped, nothing)
        return choose(step < output_length[:, None], log_sum_exp(logs, before, skipped) + now, logs)

    logs = choose(tf.equal(tf.range(2 * most + 1), 0), tf.zeros([batch, 1], output.dtype), nothing)
    logs = tf.foldl(advance, (emitted, tf.range(steps)), logs)
    end = 2 * tf.clip_by_value(target_length, 0, most)[:, None]
    label = choose(end > 0, tf.gather(logs, tf.maximum(end - 1, 0), batch_dims=1), nothing)
    return -tf.squeeze(log_sum_exp(tf.gather(logs, end, batch_dims=1), label), 1)


def op_ctc_decode(inputs, lengths, beam_width, top_paths, merge_repeated, blank):
    if beam_width:
        return beam_search(inputs, lengths, beam_width, top_paths, blank)
    return greedy(inputs, lengths, merge_repeated, blank)


def shape(x):
    """Return the shape of `x`, with `None` for unknown sizes; an unknown rank is `None`."""
    return None if x.shape.rank is None else x.shape.as_list()


def log_sum_exp(*logs):
    """Return the logarithm of the sum of exponentials, with a gradient of 0 at -inf."""
    return logsumexp(tf.stack(logs), 0, False)


def greedy(inputs, lengths, merge_repeated, blank):
    inside = tf.range(tf.shape(inputs)[1]) < lengths[:, None]
    labels = choose(inside, op_argmax(inputs, 2, False), tf.constant(blank))
    scores = choose(inside, op_max(inputs, 2, False, None), tf.zeros([], inputs.dtype))
    kept = tf.not_equal(labels, blank)
    if merge_repeated:
        before = tf.concat([tf.fill([tf.shape(labels)[0], 1], -1), labels[:, :-1]], 1)[:, : tf.shape(labels)[1]]
        kept = kept & tf.not_equal(labels, before)
    order = tf.argsort(tf.cast(~kept, tf.int32), 1, stable=True)
    labels = tf.gather(choose(kept, labels, tf.constant(-1)), order, batch_dims=1)
    return labels[None], -tf.reduce_sum(scores, 1, keepdims=True)


def beam_search(inputs, lengths, width, paths, blank):
    """Keep the most probable prefixes, each with its probabilities of ending in a blank and in a label."""
    batch, steps, size = op_shape(inputs)
    place, every = tf.range(steps), tf.range(size)
    nothing = tf.constant(-math.inf, inputs.dtype)

    def advance(prefixes, given):
        labels, used, last, in_blank, in_label = prefixes
        now, step = given
        either = log_sum_exp(in_blank, in_label)
        # extend each prefix by one label
        again = tf.equal(every, last[:, :, None])
        longer = now[:, None] + choose(again, in_blank[:, :, None], either[:, :, None])
        longer = choose(tf.equal(every, blank), nothing, longer)
        # the extended prefix may be one that is already kept
        same = tf.equal(labels[:, :, None], labels[:, None]) | (place >= used[:, None, :, None])
        follows = tf.reduce_all(same, 3) & tf.equal(used[:, :, None], used[:, None] + 1)
        follows = follows & tf.not_equal(either, -math.inf)[:, :, None]
        known = tf.tile(tf.maximum(last, 0)[:, None], [1, width, 1])
        joining = tf.transpose(tf.gather(longer, known, batch_dims=2), [0, 2, 1])
        joining = tf.reduce_max(choose(follows, joining, nothing), 2)
        taken = tf.matmul(tf.cast(follows, now.dtype), tf.cast(again, now.dtype), transpose_a=True) > 0
        longer = choose(taken, nothing, longer)
        stay_blank = either + now[:, blank, None]
        stay_label = in_label + choose(last < 0, nothing, tf.gather(now, tf.maximum(last, 0), batch_dims=1))
        stay_label = log_sum_exp(stay_label, joining)
        scores = tf.concat([log_sum_exp(stay_blank, stay_label), tf.reshape(longer, [batch, width * size])], 1)
        best = tf.math.top_k(tf.stop_gradient(scores), width).indices
        new = best >= width
        parent = choose(new, (best - width) // size, best)
        label = choose(new, (best - width) % size, tf.gather(last, parent, batch_dims=1))
        length = tf.gather(used, parent, batch_dims=1)
        text = tf.gather(labels, parent, batch_dims=1)
        text = choose(new[:, :, None] & tf.equal(place, length[:, :, None]), label[:, :, None], text)
        stayed = tf.gather(stay_label, parent, batch_dims=1)
        found = (
            text,
            length + tf.cast(new, tf.int32),
            label,
            choose(new, nothing, tf.gather(stay_blank, parent, batch_dims=1)),
            choose(new, tf.gather(scores, best, batch_dims=1), stayed),
        )
        running = (step < lengths)[:, None]
        return tuple(
            choose(running[:, :, None] if rank(y) == 3 else running, y, x) for x, y in zip(prefixes, found, strict=True)
        )

    never = tf.fill([batch, width], nothing)
    none = tf.fill([batch, width], -1)
    first = choose(tf.equal(tf.range(width), 0), tf.zeros([], inputs.dtype), never)
    start = (tf.fill([batch, width, steps], -1), none + 1, none, first, never)
    given = tf.transpose(tf.nn.log_softmax(inputs), [1, 0, 2]), tf.range(steps)
    labels, _, _, in_blank, in_label = tf.foldl(advance, given, start)
    scores = log_sum_exp(in_blank, in_label)
    best = tf.math.top_k(tf.stop_gradient(scores), paths).indices
    scores = tf.gather(scores, best, batch_dims=1)
    labels = tf.gather(labels, best, batch_dims=1)
    labels = choose(tf.equal(scores, -math.inf)[:, :, None], tf.constant(-1), labels)
    return tf.transpose(labels, [1, 0, 2]), scores
