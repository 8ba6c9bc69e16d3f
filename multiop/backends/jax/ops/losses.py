"""Losses, and decoding the outputs of networks trained with them."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from multiop import errors
from multiop._values import args

from ..conversion import floating, jit_inline, promote, reject_complex, to_wide_float
from ..devices import is_readable
from .elementwise import _clip, divide, log1p

EPSILON = 1e-7


def op_binary_crossentropy(target, output, from_logits):
    target, output = reject_complex(*map(floating, promote(target, output)))
    args.same_shape(target.shape, output.shape, "target", "output")
    return (_binary_of_logits if from_logits else _binary)(target, output)


def op_categorical_crossentropy(target, output, from_logits, axis):
    target, output = reject_complex(*map(floating, promote(target, output)))
    args.same_shape(target.shape, output.shape, "target", "output")
    return _categorical(target, output, from_logits, args.single_axis(axis, output.ndim))


def op_sparse_categorical_crossentropy(target, output, from_logits, axis):
    (output,) = reject_complex(output)
    target, outside = check_classes(target, output.shape[axis])
    return _sparse_categorical(target, outside, output, from_logits, axis)


@functools.partial(jax.jit, static_argnums=4)  # inlined, its loop would be compiled anew at each eager call
def op_ctc_loss(target, output, target_length, output_length, blank):
    (batch, steps, _), count = output.shape, 2 * target.shape[1] + 1
    # a blank before, between and after the labels
    states = jnp.full((batch, count), blank, target.dtype).at[:, 1::2].set(target)
    emitted = jnp.take_along_axis(jax.nn.log_softmax(output), states[:, None], 2)
    # a label may directly follow a different label
    skips = jnp.pad(states[:, 2:] != states[:, :-2], ((0, 0), (2, 0)))[:, :count]
    never = jnp.full((batch, count), -np.inf, output.dtype)

    def advance(logs, given):
        step, now = given
        before = jnp.concatenate([never[:, :1], logs[:, :-1]], 1)
        skipped = jnp.where(skips, jnp.concatenate([never[:, :2], logs[:, :-2]], 1)[:, :count], -np.inf)
        return jnp.where(step < output_length[:, None], log_sum_exp(logs, before, skipped) + now, logs), None

    logs, _ = jax.lax.scan(advance, never.at[:, 0].set(0), (jnp.arange(steps), jnp.swapaxes(emitted, 0, 1)))
    end = 2 * target_length[:, None]
    label = jnp.where(end > 0, jnp.take_along_axis(logs, jnp.maximum(end - 1, 0), 1, mode="clip"), -np.inf)
    return -log_sum_exp(jnp.take_along_axis(logs, end, 1, mode="clip"), label)[:, 0]


def op_ctc_decode(inputs, lengths, beam_width, top_paths, merge_repeated, blank):
    if beam_width:
        return _beam_search(inputs, lengths, beam_width, top_paths, blank)
    return _greedy(inputs, lengths, merge_repeated, blank)


@jit_inline
def _binary_of_logits(target, output):
    dtype, target, output = to_wide_float(target, output)
    above = output >= 0  # the kinks of both terms are at 0, and cancel
    loss = jnp.where(above, output, 0) - output * target
    return (loss + jnp.log1p(jnp.exp(jnp.where(above, -output, output)))).astype(dtype)


@jit_inline
def _binary(target, output):
    dtype, target, output = to_wide_float(target, output)
    output = _clip(output, EPSILON, 1 - EPSILON)
    return (-target * jnp.log(output) - (1 - target) * log1p(-output)).astype(dtype)


@functools.partial(jax.jit, inline=True, static_argnums=(2, 3))
def _categorical(target, output, from_logits, axis):
    dtype, target, output = to_wide_float(target, output)
    if from_logits:
        logs = jax.nn.log_softmax(output, axis)
        logs = jnp.where((target == 0) & jnp.isneginf(logs), 0, logs)
    else:
        logs = jnp.log(_clip(divide(output, jnp.sum(output, axis, keepdims=True)), EPSILON, 1 - EPSILON))
    return -jnp.sum(target * logs, axis).astype(dtype)


@functools.partial(jax.jit, inline=True, static_argnums=(3, 4))
def _sparse_categorical(target, outside, output, from_logits, axis):
    dtype, output = to_wide_float(output)
    logs = output if from_logits else jnp.log(_clip(output, EPSILON, 1 - EPSILON))
    place = target if target.ndim == output.ndim else jnp.expand_dims(target, axis)
    loss = -jnp.take_along_axis(jax.nn.log_softmax(logs, axis), place, axis).squeeze(axis).astype(dtype)
    return loss if outside is None else jnp.where(outside.reshape(loss.shape), np.nan, loss)


@functools.partial(jax.jit, inline=True, static_argnums=(2, 3))
def _greedy(inputs, lengths, merge_repeated, blank):
    inside = jnp.arange(inputs.shape[1]) < lengths[:, None]
    labels = jnp.where(inside, jnp.argmax(inputs, 2), blank)
    scores = -jnp.sum(jnp.where(inside, jnp.max(inputs, 2), 0), 1, keepdims=True)
    kept = labels != blank
    if merge_repeated:
        kept &= jnp.pad(labels[:, 1:] != labels[:, :-1], ((0, 0), (1, 0)), constant_values=True)[:, : kept.shape[1]]
    labels = jnp.take_along_axis(jnp.where(kept, labels, -1), jnp.argsort(~kept, 1, stable=True), 1)
    return labels[None].astype(np.int32), scores


@functools.partial(jax.jit, inline=True, static_argnums=(2, 3, 4))
def _beam_search(inputs, lengths, width, paths, blank):
    """Keep the most probable prefixes, each with its probabilities of ending in a blank and in a label."""
    batch, steps, size = inputs.shape
    never = jnp.full((batch, width), -np.inf, inputs.dtype)
    place, every = jnp.arange(steps), jnp.arange(size)

    def advance(prefixes, given):
        labels, used, last, in_blank, in_label = prefixes
        step, now = given
        running = (step < lengths)[:, None]
        either = log_sum_exp(in_blank, in_label)
        # extend each prefix by one label
        again = every == last[:, :, None]
        longer = now[:, None] + jnp.where(again, in_blank[:, :, None], either[:, :, None])
        longer = jnp.where(every == blank, -np.inf, longer)
        # the extended prefix may be one that is already kept
        same = (labels[:, :, None] == labels[:, None]) | (place >= used[:, None, :, None])
        follows = jnp.all(same, 3) & (used[:, :, None] == used[:, None] + 1) & ~jnp.isneginf(either)[:, :, None]
        known = jnp.broadcast_to(jnp.maximum(last, 0)[:, None], (batch, width, width))
        joining = jnp.swapaxes(jnp.take_along_axis(longer, known, 2), 1, 2)
        joining = jnp.max(jnp.where(follows, joining, -np.inf), 2)
        taken = jnp.swapaxes(follows, 1, 2).astype(now.dtype) @ again.astype(now.dtype) > 0
        longer = jnp.where(taken, -np.inf, longer)
        stay_blank = either + now[:, blank, None]
        stay_label = in_label + jnp.where(last < 0, -np.inf, jnp.take_along_axis(now, jnp.maximum(last, 0), 1))
        stay_label = log_sum_exp(stay_label, joining)
        scores = jnp.concatenate([log_sum_exp(stay_blank, stay_label), longer.reshape(batch, -1)], 1)
        best = jax.lax.top_k(jax.lax.stop_gradient(scores), width)[1]
        new = best >= width
        parent = jnp.where(new, (best - width) // size, best)
        label = jnp.where(new, (best - width) % size, jnp.take_along_axis(last, parent, 1))
        length = jnp.take_along_axis(used, parent, 1)
        text = jnp.take_along_axis(labels, parent[:, :, None], 1)
        text = jnp.where(new[:, :, None] & (place == length[:, :, None]), label[:, :, None], text)
        stayed = jnp.take_along_axis(stay_label, parent, 1)
        found = (
            text,
            length + new,
            label,
            jnp.where(new, -np.inf, jnp.take_along_axis(stay_blank, parent, 1)),
            jnp.where(new, jnp.take_along_axis(scores, best, 1), stayed),
        )
        kept = tuple(
            jnp.where(running[:, :, None] if y.ndim == 3 else running, y, x)
            for x, y in zip(prefixes, found, strict=True)
        )
        return kept, None

    start = (
        jnp.full((batch, width, steps), -1, np.int32),
        jnp.zeros((batch, width), np.int32),
        jnp.full((batch, width), -1, np.int32),
        never.at[:, 0].set(0),
        never,
    )
    given = jnp.arange(steps), jnp.swapaxes(jax.nn.log_softmax(inputs), 0, 1)
    (labels, _, _, in_blank, in_label), _ = jax.lax.scan(advance, start, given)
    scores = log_sum_exp(in_blank, in_label)
    best = jax.lax.top_k(jax.lax.stop_gradient(scores), paths)[1]
    scores = jnp.take_along_axis(scores, best, 1)
    labels = jnp.where(jnp.isneginf(scores)[:, :, None], -1, jnp.take_along_axis(labels, best[:, :, None], 1))
    return jnp.swapaxes(labels, 0, 1), scores


def log_sum_exp(*logs):
    """Return the logarithm of the sum of exponentials; unlike that of jnp.logaddexp, its gradient is 0 at -inf."""
    top = jax.lax.stop_gradient(functools.reduce(jnp.maximum, logs))
    top = jnp.where(jnp.isneginf(top), 0, top)
    total = sum(jnp.exp(x - top) for x in logs)
    nothing = total == 0
    return jnp.where(nothing, -np.inf, top + jnp.log(jnp.where(nothing, 1, total)))


def check_classes(target, size):
    """Return classes, and a mask of those out of range; if the values are known, raise, and return no mask."""
    if not is_readable(target):
        outside = (target < 0) | (target >= size)
        return jnp.where(outside, 0, target), outside
    classes = np.asarray(target)
    if classes.size and not 0 <= classes.min() <= classes.max() < size:
        raise errors.ArgumentError(f"target has a class that is not among the {size} of output")
    return target, None
