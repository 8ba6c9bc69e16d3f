"""Losses, and decoding the outputs of networks trained with them."""

from __future__ import annotations

import functools
import math

import torch
from torch.nn import functional

from multiop import errors
from multiop._values import args

from .._internals import cross_entropy, is_tracked
from .._slopes import with_slopes
from ..conversion import are_floats, floating, promote, reject_complex, to_wide_float
from ..devices import is_at_hand
from .elementwise import op_clip
from .reduction import op_argmax, op_max

EPSILON = 1e-7


def op_binary_crossentropy(target, output, from_logits):
    if not are_floats(target, output):
        target, output = reject_complex(*map(floating, promote(target, output)))
    args.same_shape(target.shape, output.shape, "target", "output")
    if from_logits:
        return functional.binary_cross_entropy_with_logits(output, target, reduction="none")
    dtype, target, output = to_wide_float(target, output)
    output = op_clip(output, EPSILON, 1 - EPSILON)
    return (-target * torch.log(output) - (1 - target) * torch.log1p(-output)).type(dtype)


def op_categorical_crossentropy(target, output, from_logits, axis):
    if not are_floats(target, output):
        target, output = reject_complex(*map(floating, promote(target, output)))
    args.same_shape(target.shape, output.shape, "target", "output")
    axis = args.single_axis(axis, output.ndim)
    if from_logits:
        rows = target, torch.log_softmax(output, axis)
        target, logs = rows if axis == output.ndim - 1 else (x.movedim(axis, -1) for x in rows)
        return (parts_missed if is_tracked(target, logs) else parts_missed_value)(target, logs).sum(-1)
    dtype, target, output = to_wide_float(target, output)
    logs = torch.log(op_clip(output / output.sum(axis, keepdim=True), EPSILON, 1 - EPSILON))
    return -(target * logs).sum(axis).type(dtype)


def parts_missed_value(target, logs):
    """Return `-target * logs`, in few kernels: 0 where a class is masked; NaN where its row is."""
    none = logs[..., :1].clamp(0, 0)
    return torch.addcmul(none, target, torch.where(target == 0, target, logs), value=-1)


def times_unmasked(upstream, x, target, logs):
    return -upstream * torch.where((target == 0) & torch.isneginf(logs), 0, x)


parts_missed_slope = with_slopes(
    lambda upstream, target, logs: torch.addcmul(upstream.new_zeros(()), upstream, target, value=-1),
    lambda change, upstream, target, logs: parts_missed_slope(change, target, logs),
    times_unmasked,
    lambda change, upstream, target, logs: torch.zeros_like(change),
    is_slope=True,
)
parts_missed = with_slopes(
    parts_missed_value,
    lambda upstream, target, logs: times_unmasked(upstream, logs, target, logs),
    parts_missed_slope,
)


def op_sparse_categorical_crossentropy(target, output, from_logits, axis):
    dtype = output.dtype
    if not from_logits:
        dtype, output = to_wide_float(output)
        output = torch.log(op_clip(output, EPSILON, 1 - EPSILON))
    elif not output.is_floating_point():
        reject_complex(output)
    rows = output if output.ndim == axis + 1 else output.movedim(axis, -1)
    labels = target if target.ndim < output.ndim else target.squeeze(axis)
    classes = labels if labels.dtype is torch.int64 else labels.long()
    if output.ndim != 2:
        rows, classes = rows.reshape(-1, output.shape[axis]), classes.reshape(-1)
    if (type(target) is torch.Tensor and target.is_cpu and not is_tracked(target)) or is_at_hand(target):
        try:
            loss = cross_entropy(rows, classes, None, 0, _NO_INT32)
        except IndexError:
            raise errors.ArgumentError(f"target has a class that is not among the {rows.shape[1]} of output") from None
    else:
        inside = classes.clamp(0, rows.shape[1] - 1)
        loss = functional.cross_entropy(rows, inside, reduction="none").masked_fill(inside != classes, math.nan)
    loss = loss if output.ndim == 2 else loss.view_as(labels)
    return loss if from_logits else loss.type(dtype)


_NO_INT32 = 1 << 40


def op_ctc_loss(target, output, target_length, output_length, blank):
    (batch, _, _), most = output.shape, target.shape[1]
    target, target_length = target.long(), target_length.long()
    # a blank before, between and after the labels
    gap, count = torch.full((batch, 1), blank, device=target.device), 2 * most + 1
    states = torch.cat([torch.stack([torch.full_like(target, blank), target], 2).reshape(batch, 2 * most), gap], 1)
    emitted = torch.take_along_dim(torch.log_softmax(output, 2), states[:, None, :], 2)
    # a label may directly follow a different label
    skips = torch.cat([torch.zeros_like(gap.expand(batch, 2), dtype=bool), states[:, 2:] != states[:, :-2]], 1)[
        :, :count
    ]
    never = torch.full((batch, count), -math.inf, dtype=output.dtype, device=output.device)
    logs = torch.cat([torch.zeros_like(never[:, :1]), never[:, 1:]], 1)
    for step, now in enumerate(emitted.unbind(1)):
        before = torch.cat([never[:, :1], logs[:, :-1]], 1)
        skipped = torch.where(skips, torch.cat([never[:, :2], logs[:, :-2]], 1)[:, :count], never)
        logs = torch.where(step < output_length[:, None], log_sum_exp(logs, before, skipped) + now, logs)
    end = 2 * target_length.clamp(0, most)[:, None]
    label = torch.where(end > 0, torch.take_along_dim(logs, (end - 1).clamp(min=0), 1), -math.inf)
    return -log_sum_exp(torch.take_along_dim(logs, end, 1), label).squeeze(1)


def op_ctc_decode(inputs, lengths, beam_width, top_paths, merge_repeated, blank):
    if beam_width:
        labels, scores = beam_search(inputs, lengths, beam_width, top_paths, blank)
    else:
        labels, scores = greedy(inputs, lengths, merge_repeated, blank)
    return labels.int(), scores


def log_sum_exp(*logs):
    """Return the logarithm of the sum of exponentials; unlike that of torch.logaddexp, its gradient is 0 at -inf."""
    top = functools.reduce(torch.maximum, [x.detach() for x in logs])
    top = torch.where(torch.isneginf(top), 0, top)
    total = sum(torch.exp(x - top) for x in logs)
    nothing = total == 0
    return torch.where(nothing, -math.inf, top + torch.log(torch.where(nothing, 1, total)))


def greedy(inputs, lengths, merge_repeated, blank):
    inside = torch.arange(inputs.shape[1], device=inputs.device) < lengths[:, None]
    labels = torch.where(inside, op_argmax(inputs, 2, False), blank)
    scores = -torch.where(inside, op_max(inputs, 2, False, None), 0).sum(1, keepdim=True)
    kept = labels != blank
    if merge_repeated:
        kept = kept & torch.cat([torch.ones_like(kept[:, :1]), labels[:, 1:] != labels[:, :-1]], 1)[:, : kept.shape[1]]
    order = torch.sort(kept, dim=1, descending=True, stable=True).indices
    labels = torch.take_along_dim(torch.where(kept, labels, -1), order, 1)
    return labels[None], scores


def beam_search(inputs, lengths, width, paths, blank):
    """Keep the most probable prefixes, each with its probabilities of ending in a blank and in a label."""
    (batch, steps, size), device = inputs.shape, inputs.device
    inputs = torch.log_softmax(inputs, 2)
    never = torch.full((batch, width), -math.inf, dtype=inputs.dtype, device=device)
    labels = torch.full((batch, width, steps), -1, device=device)
    used = torch.zeros((batch, width), dtype=torch.int64, device=device)
    last, place, every = used - 1, torch.arange(steps, device=device), torch.arange(size, device=device)
    in_blank, in_label = torch.cat([torch.zeros_like(never[:, :1]), never[:, 1:]], 1), never
    for step, now in enumerate(inputs.unbind(1)):
        running = (step < lengths)[:, None]
        either = log_sum_exp(in_blank, in_label)
        # extend each prefix by one label
        again = every == last[:, :, None]
        longer = now[:, None] + torch.where(again, in_blank[:, :, None], either[:, :, None])
        longer = torch.where(every == blank, -math.inf, longer)
        # the extended prefix may be one that is already kept
        same = (labels[:, :, None] == labels[:, None]) | (place >= used[:, None, :, None])
        follows = same.all(3) & (used[:, :, None] == used[:, None] + 1) & ~torch.isneginf(either)[:, :, None]
        joining = torch.take_along_dim(longer, last.clamp(min=0)[:, None].expand(batch, width, width), 2).mT
        joining = torch.where(follows, joining, -math.inf).amax(2)
        longer = torch.where(follows.mT.type(now.dtype) @ again.type(now.dtype) > 0, -math.inf, longer)
        stay_blank = either + now[:, blank, None]
        stay_label = in_label + torch.where(last < 0, -math.inf, torch.take_along_dim(now, last.clamp(min=0), 1))
        stay_label = log_sum_exp(stay_label, joining)
        scores = torch.cat([log_sum_exp(stay_blank, stay_label), longer.reshape(batch, width * size)], 1)
        best = torch.sort(scores.detach(), dim=1, descending=True, stable=True).indices[:, :width]
        new = best >= width
        parent = torch.where(new, (best - width) // size, best)
        label = torch.where(new, (best - width) % size, torch.take_along_dim(last, parent, 1))
        length = torch.take_along_dim(used, parent, 1)
        text = torch.take_along_dim(labels, parent[:, :, None], 1)
        text = torch.where(new[:, :, None] & (place == length[:, :, None]), label[:, :, None], text)
        in_blank = torch.where(
            running, torch.where(new, -math.inf, torch.take_along_dim(stay_blank, parent, 1)), in_blank
        )
        stayed = torch.take_along_dim(stay_label, parent, 1)
        in_label = torch.where(running, torch.where(new, torch.take_along_dim(scores, best, 1), stayed), in_label)
        labels = torch.where(running[:, :, None], text, labels)
        used, last = torch.where(running, length + new, used), torch.where(running, label, last)
    scores = log_sum_exp(in_blank, in_label)
    best = torch.sort(scores.detach(), dim=1, descending=True, stable=True).indices[:, :paths]
    scores = torch.take_along_dim(scores, best, 1)
    labels = torch.take_along_dim(labels, best[:, :, None], 1)
    return torch.where(torch.isneginf(scores)[:, :, None], -1, labels).transpose(0, 1), scores
