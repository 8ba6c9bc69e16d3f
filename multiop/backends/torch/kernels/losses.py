"""Losses by PyTorch's own functions, which are NaN where a class is masked."""

from __future__ import annotations

import math

from .._internals import cross_entropy
from .._kernels import LONG, is_readable
from ..conversion import are_floats


def op_categorical_crossentropy(target, output, from_logits, axis, *, otherwise):
    is_usual = from_logits and are_floats(target, output) and output.dtype in LONG and not target.requires_grad
    is_usual = is_usual and target.shape == (shape := output.shape) and axis in (-1, len(shape) - 1)
    if is_usual and is_readable(output):
        rows = output, target
        if len(shape) != 2:  # of a matrix, each would be a node of the graph
            rows = output.reshape(-1, shape[-1]), target.reshape(-1, shape[-1])
        loss = cross_entropy(*rows, None, 0, -100)
        if math.isfinite(loss.detach().sum().item()):
            return loss if len(shape) == 2 else loss.view(shape[:-1])
    return otherwise(target, output, from_logits, axis)
