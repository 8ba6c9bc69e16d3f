"""Losses, and related decoders and measures."""

from __future__ import annotations

import math
from typing import Any

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading import registry
from multiop._loading.registry import active, composite
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, Tensor

from .conversion import on_device_of, op_cast, op_dtype, op_saturate_cast, op_shape, operands, raised_to_0, real_operand
from .creation import op_arange
from .elementwise import op_log10, op_square
from .indexing import classes
from .logical import op_equal, op_where
from .reduction import op_any, op_mean
from .shapes import op_expand_dims


@boundary
def op_binary_crossentropy(target: ArrayLike, output: ArrayLike, from_logits: bool = False) -> Tensor:
    """Compute `-target * log(output) - (1 - target) * log(1 - output)`, entry by entry.

    Args:
        target: Tensor of probabilities, such as 0 and 1.
        output: Tensor of the shape of `target`: probabilities, which are clipped to 1e-7 and 1 - 1e-7.
        from_logits: Whether `output` holds logits instead, whose sigmoids are the probabilities; these are not clipped.

    Returns:
        Tensor of the shape of `target` and the promoted dtype; integers and bool become `floatx`.

    Raises:
        ArgumentError: The shapes differ; they do not broadcast.
        ArgumentTypeError: `from_logits` is not a bool.
        DTypeError: The operands are complex.

    Gradient:
        0 for a probability that is clipped.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_binary_crossentropy([1.0], [-1000.0], from_logits=True)).tolist()
        [1000.0]
    """
    return active().op_binary_crossentropy(target, output, from_logits)


@boundary
def op_categorical_crossentropy(
    target: ArrayLike, output: ArrayLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """Compute `-sum(target * log(output))` along `axis`.

    Args:
        target: Tensor of the probabilities of each class, such as one 1 among zeros.
        output: Tensor of the shape of `target`: probabilities, which are first normalized to add up to 1, then clipped
            to 1e-7 and 1 - 1e-7.
        from_logits: Whether `output` holds logits instead, whose softmax is the probabilities; these are not clipped.
        axis: Dimension of the classes.

    Returns:
        Tensor without the dimension `axis`, of the promoted dtype; integers and bool become `floatx`.

    Raises:
        ArgumentError: The shapes differ (they do not broadcast), or `axis` is out of range.
        ArgumentTypeError: `from_logits` is not a bool.
        DTypeError: The operands are complex.

    Gradient:
        0 for a probability that is clipped. A logit of -inf where `target` is 0 contributes nothing.

    Example:
        >>> import multiop
        >>> y = multiop.op_categorical_crossentropy([0.0, 1.0], [1000.0, 0.0], from_logits=True)
        >>> multiop.op_convert_to_numpy(y).tolist()
        1000.0
    """
    return active().op_categorical_crossentropy(target, output, from_logits, axis)


@boundary
def op_sparse_categorical_crossentropy(
    target: ArrayLike, output: ArrayLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """Compute `-log(output)` for the class given by `target`, along `axis`.

    Args:
        target: Tensor of classes, of the shape of `output` without `axis`, or with the size 1 there: integers, or
            floats that are whole numbers.
        output: Tensor of probabilities, which are clipped to 1e-7 and 1 - 1e-7, then normalized to add up to 1.
        from_logits: Whether `output` holds logits instead, whose softmax is the probabilities; these are not clipped.
        axis: Dimension of the classes.

    Returns:
        Tensor of the shape of `output` without `axis`, and its dtype; integers and bool become `floatx`. For a
        class that does not exist, the result is NaN where values cannot be read, as in compiled code.

    Raises:
        ArgumentError: The shapes do not fit, `axis` is out of range, or `target` has a class that does not exist
            (negative ones do not).
        ArgumentTypeError: `from_logits` is not a bool.
        DTypeError: `target` is complex or bool, or `output` is complex.

    Gradient:
        That of the logarithms of the clipped probabilities as logits.

    Example:
        >>> import multiop
        >>> y = multiop.op_sparse_categorical_crossentropy([1], [[1000.0, 0.0]], from_logits=True)
        >>> multiop.op_convert_to_numpy(y).tolist()
        [1000.0]
    """
    backend: Any = active() if registry.is_overridden else registry._backend
    labels: Any = target
    are_tensors = backend.is_tensor(labels) and (type(output) is type(labels) or backend.is_tensor(output))
    if not (are_tensors and backend.dtype_name(labels) in dtypes.INTEGER):
        labels, output = backend.together(labels, output)
        labels = classes(labels)
        args.integers(op_dtype(labels), "target")
    scores = backend.floating(output)
    shape = scores.shape
    if isinstance(shape, tuple):
        sizes = labels.shape
    else:  # TensorFlow's, which takes eight calls to become one
        sizes, shape = backend.op_shape(labels), backend.op_shape(scores)
        if not {int}.issuperset(map(type, (*sizes, *shape))):
            sizes, shape = tuple(labels.shape), tuple(scores.shape)
    if type(axis) is int and axis == -1 and shape and sizes == shape[:-1]:  # the usual case
        axis = len(shape) - 1
    else:
        axis = args.single_axis(axis, len(shape))
        args.lacks_axis(sizes, shape, axis)
    return backend.op_sparse_categorical_crossentropy(labels, scores, from_logits, axis)


@boundary
def op_ctc_loss(
    target: ArrayLike,
    output: ArrayLike,
    target_length: ArrayLike,
    output_length: ArrayLike,
    mask_index: int = 0,
) -> Tensor:
    """Compute minus the logarithm of the probability of each sequence of labels, summed over all its alignments.

    This is the loss of connectionist temporal classification. An alignment has a label or the blank at each step; to
    read it, merge repeated labels, then drop the blanks.

    Args:
        target: Integer tensor of shape `(batch, n_labels)`; entries beyond `target_length` are ignored.
        output: Tensor of logits, of shape `(batch, n_steps, n_classes)`, not complex; steps beyond `output_length` are
            ignored.
        target_length: Integer tensor of shape `(batch,)`: how many labels each sequence has.
        output_length: Integer tensor of shape `(batch,)`: how many steps each sequence has.
        mask_index: The class that is the blank; a negative one counts from the end.

    Returns:
        Tensor of shape `(batch,)` and the dtype of `output`; infinite where a sequence has too few steps for its
        labels. If labels or lengths are out of range, it is NaN where values cannot be read, as in compiled code.

    Raises:
        ArgumentError: The shapes do not fit, a label is the blank or not a class, or a length is out of range.
        ArgumentTypeError: `mask_index` is not an int.
        DTypeError: Labels or lengths are not integers, or `output` is complex.

    Gradient:
        0 where the loss is infinite.

    Example:
        >>> import multiop
        >>> y = multiop.op_ctc_loss([[1]], [[[50.0, 0.0]]], [1], [1])
        >>> multiop.op_convert_to_numpy(y).tolist()
        [50.0]
    """
    target, output, target_length, output_length = operands(target, output, target_length, output_length)
    output, dtype = real_operand(output)
    target, target_length = _int32(target, "target"), _int32(target_length, "target_length")
    output_length = _int32(output_length, "output_length")
    shape = op_shape(output)
    lengths = {"target_length": _known_shape(target_length), "output_length": _known_shape(output_length)}
    args.sequences(output.shape, "output", lengths, _known_shape(target))
    (_, steps, size), most = shape, op_shape(target)[1]
    blank = args.entry(mask_index, size, "mask_index")
    inside = on_device_of(target, op_arange(most)) < op_expand_dims(target_length, 1)
    wrong = inside & ((target < 0) | (target >= size) | op_equal(target, blank))
    outside = [
        *_if_unknown(op_any(wrong, 1), "target has a label that is the blank or no class of output"),
        *_outside(target_length, most, "target_length"),
        *_outside(output_length, steps, "output_length"),
    ]
    target = op_where(inside & ~wrong, target, blank)
    loss = active().op_ctc_loss(target, _wide(output), target_length, output_length, blank)
    return op_cast(_with_nan(raised_to_0(loss), outside), dtype)


@boundary
def op_ctc_decode(
    inputs: ArrayLike,
    sequence_lengths: ArrayLike,
    strategy: str = "greedy",
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    mask_index: int = 0,
) -> tuple[Tensor, Tensor]:
    """Find the most probable sequences of labels in the output of connectionist temporal classification.

    Args:
        inputs: Tensor of logits, of shape `(batch, n_steps, n_classes)`, not complex.
        sequence_lengths: Integer tensor of shape `(batch,)`: how many steps each sequence has.
        strategy: `"greedy"` reads the most probable class of each step; `"beam_search"` adds up the probabilities of
            all alignments of a sequence, for the `beam_width` best beginnings.
        beam_width: How many beginnings of sequences the beam search keeps at each step.
        top_paths: How many sequences the beam search returns, at most `beam_width`.
        merge_repeated: Whether the greedy strategy merges a label that is repeated in consecutive steps; the beam
            search always does.
        mask_index: The class that is the blank; a negative one counts from the end.

    Returns:
        The sequences, an `int32` tensor of shape `(1, batch, n_steps)`, for the beam search `(top_paths, batch,
        n_steps)`, padded with -1; and a tensor of the dtype of `inputs`: for the greedy strategy, of shape
        `(batch, 1)`, minus the sum of the largest logits; for the beam search, of shape `(batch, top_paths)`, the
        logarithms of the probabilities, largest first, -inf where there are fewer sequences.

    Raises:
        ArgumentError: The shapes do not fit, a length is out of range, `strategy` is unknown, or `beam_width` or
            `top_paths` is out of range.
        ArgumentTypeError: An option is of the wrong kind.
        DTypeError: `sequence_lengths` does not hold integers, or `inputs` is complex.

    Gradient:
        That of the second result, for the sequences that were found.

    Example:
        >>> import multiop
        >>> labels, _ = multiop.op_ctc_decode([[[0.0, 5.0, 1.0], [0.0, 5.0, 1.0], [1.0, 0.0, 5.0]]], [3])
        >>> multiop.op_convert_to_numpy(labels).tolist()
        [[[1, 2, -1]]]
    """
    if args.choice(strategy, ("greedy", "beam_search"), "strategy") == "greedy":
        beam_width = top_paths = 0
    else:
        beam_width = args.count(beam_width, "beam_width", 1)
        top_paths = args.count(top_paths, "top_paths", 1)
        if top_paths > beam_width:
            raise errors.ArgumentError(f"top_paths {top_paths} is more than beam_width {beam_width}")
    inputs, lengths = operands(inputs, sequence_lengths)
    inputs, dtype = real_operand(inputs)
    lengths = _int32(lengths, "sequence_lengths")
    shape = op_shape(inputs)
    args.sequences(inputs.shape, "inputs", {"sequence_lengths": _known_shape(lengths)})
    _, steps, size = shape
    blank = args.entry(mask_index, size, "mask_index")
    outside = _outside(lengths, steps, "sequence_lengths")
    found = active().op_ctc_decode(_wide(inputs), lengths, beam_width, top_paths, merge_repeated, blank)
    return found[0], op_cast(_with_nan(found[1], [op_expand_dims(mask, 1) for mask in outside]), dtype)


def _int32(x: Tensor, name: str) -> Tensor:
    """Return integers as `int32`; those that do not fit are out of every range."""
    dtype = op_dtype(x)
    args.integers(dtype, name)
    return x if dtype == "int32" else op_saturate_cast(x, "int32")


def _known_shape(x: Tensor) -> tuple[int | None, ...] | None:
    """Return the shape of `x` as far as it is known before the run; `None` for what is not."""
    try:
        return tuple(x.shape)
    except ValueError:  # a TensorFlow shape of unknown rank has no length
        return None


def _wide(x: Tensor) -> Tensor:
    return op_cast(x, dtypes.join(op_dtype(x), "float32"))


def _outside(length: Tensor, most: Any, name: str) -> list[Tensor]:
    return _if_unknown((length < 0) | (length > most), f"{name} must be from 0 to {most}")


def _if_unknown(wrong: Tensor, message: str) -> list[Tensor]:
    """Return a list of the mask `wrong`; if its values are known, raise for any that is true, and return no mask."""
    if not active().is_at_hand(wrong):
        return [wrong]
    if bool(op_any(wrong)):
        raise errors.ArgumentError(message)
    return []


def _with_nan(x: Tensor, masks: list[Tensor]) -> Tensor:
    for mask in masks:
        x = op_where(mask, math.nan, x)
    return x


# composites


@boundary
@composite
def op_psnr(x1: ArrayLike, x2: ArrayLike, max_val: ArrayLike) -> Tensor:
    """Compute the peak signal-to-noise ratio, `10 * log10(max_val**2 / mean((x1 - x2)**2))`.

    Args:
        x1: Tensor, not complex.
        x2: Tensor of the shape of `x1`.
        max_val: The largest value that the signal can have; a number or a 0-d tensor.

    Returns:
        0-d tensor of the promoted dtype, `floatx` for integers and bool; infinite where `x1` and `x2` are equal.

    Raises:
        ArgumentError: The shapes differ; they do not broadcast.
        DTypeError: The operands are complex.

    Example:
        >>> import multiop
        >>> round(float(multiop.op_convert_to_numpy(multiop.op_psnr([1.0, 3.0], [1.0, 1.0], 2.0))), 4)
        3.0103
    """
    x1, x2 = active().promote(x1, x2)
    args.same_shape(_known_shape(x1), _known_shape(x2), "x1", "x2")
    x1, max_val = active().promote_floating(x1, max_val)
    x1, dtype = real_operand(x1)
    error = op_mean(op_square(_wide(x1) - op_cast(x2, dtypes.join(dtype, "float32"))))
    return op_cast(20 * op_log10(_wide(max_val)) - 10 * op_log10(error), dtype)
