"""Elementwise arithmetic and functions."""

from __future__ import annotations

import torch

from .conversion import floating, promote


def op_add(x1, x2):
    return torch.add(*promote(x1, x2))


def op_exp(x):
    return torch.exp(floating(x))


def op_maximum(x1, x2):
    return torch.maximum(*promote(x1, x2))  # splits ties, and propagates NaN
