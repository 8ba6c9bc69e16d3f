"""Sequences of numbers whose ends are known: what they share is computed on the host."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.compiler import is_dynamo_compiling

from multiop import config


def op_linspace(start, stop, num, endpoint, dtype, axis, *, otherwise):
    are_taken = type(start) is type(stop) is float and endpoint and num > 1 and axis in (0, -1)
    if not are_taken or (dtype or config.floatx()) != "float32" or is_dynamo_compiling():
        return otherwise(start, stop, num, endpoint, dtype, axis)
    with np.errstate(over="ignore"):
        first, last = np.float32(start), np.float32(stop)
        step = float((last - first) / np.float32(num - 1))
    if not math.isfinite(step):
        return otherwise(start, stop, num, endpoint, dtype, axis)
    samples = torch.arange(num, dtype=torch.float32).mul_(step).add_(float(first))
    samples[-1] = float(last)
    return samples, torch.scalar_tensor(step)
