"""The work for many leaves only grows with their number: calls of multiop's own functions are counted, not timed."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import multiop

OURS = os.path.dirname(multiop.__file__)


def total(xs):
    y = 0.0
    for x in xs:
        y = y + x
    return y


@multiop.op_custom_gradient
def stacked(xs):
    return multiop.op_sum(multiop.op_stack(xs)), lambda upstream: [upstream for _ in xs]


def taped(f):
    def gradient(xs):
        with multiop.GradientTape() as tape:
            xs = tape.watch(xs)
            y = f(xs)
        return tape.gradient(y, xs)

    return gradient


WAYS = {
    "grad": multiop.grad(total),
    "grad of a dict": lambda xs: multiop.grad(lambda d: total(d.values()))({str(k): x for k, x in enumerate(xs)}),
    "grad of a custom gradient": multiop.grad(stacked),
    "value_and_grad": multiop.value_and_grad(total),
    "custom gradient": stacked,
    "jvp": lambda xs: multiop.jvp(total, (xs,), (xs,)),
    "jvp of a custom gradient": lambda xs: multiop.jvp(stacked, (xs,), (xs,)),
    "gradients": lambda xs: multiop.gradients(lambda *xs: total(xs), xs),
    "tape": taped(total),
    "tape, custom gradient": taped(stacked),
    "stop_gradient": multiop.op_stop_gradient,
    "checkpoint": multiop.grad(lambda xs: multiop.checkpoint(total)(xs)),
}


def calls(way, n):
    """Return how many calls of Python functions of multiop's own `way` makes for `n` leaves."""
    xs, count = [multiop.op_convert_to_tensor(np.float32(k)) for k in range(n)], 0

    def called(frame, event, argument):
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(OURS)

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        way(xs)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("way", WAYS)
def test_work_grows_with_the_number_of_leaves(backend, way):
    WAYS[way]([multiop.op_convert_to_tensor(np.float32(k)) for k in range(3)])
    assert calls(WAYS[way], 160) <= 2.1 * calls(WAYS[way], 80)
