#!/usr/bin/env bash
# MindSpore 2.10.0 on a CPU differentiates some functions wrongly, and no error says so. The slope of `selu` below 0 is
# that of no function: 0.57 at -0.3, where its values rise by 1.30. `kl_div` has no gradient in its labels, nor has
# `binary_cross_entropy_with_logits` in `weight` and `pos_weight`: each is 0. `cumprod` over a 0 has the slope NaN, where
# the value is a polynomial. And of float64, `softplus`, `mish` and `sort` have the digits of float32 alone.
# It needs NumPy 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==1.26.4 scipy==1.17.1 mindspore==2.10.0
cat >"$folder/program.py" <<'PROGRAM'
import math

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

ms.set_device("CPU")
changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if value != expected:
        changed.append(f"{what} was {expected}")


def slopes(f, x):
    """Return the gradient of the sum of f(x), in float64, with four digits."""
    x = Tensor(np.asarray(x, np.float32))
    return [round(float(slope), 4) for slope in ms.grad(lambda x: f(x).sum())(x).asnumpy()]


def differences(f, x, step=2.0**-6):
    """Return what the values of f say of its slopes, with two digits."""
    found = []
    for i in range(len(x)):
        ends = [[u + sign * step * (i == j) for j, u in enumerate(x)] for sign in (1, -1)]
        upper, lower = (float(f(Tensor(np.asarray(end, np.float32))).sum()) for end in ends)
        found.append(round((upper - lower) / step / 2, 2))
    return found


p, q = Tensor(np.array([0.25, 0.5], np.float32)), Tensor(np.array([-1.0, -0.5], np.float32))
logits, target = Tensor(np.array([1.0, 2.0], np.float32)), Tensor(np.array([0.5, 1.0], np.float32))
ones = Tensor(np.ones(2, np.float32))


def labels(x):
    return ops.kl_div(q, x, reduction="sum")


def weight(x):
    return ops.binary_cross_entropy_with_logits(logits, target, x, ones, reduction="sum")


def pos_weight(x):
    return ops.binary_cross_entropy_with_logits(logits, target, ones, x, reduction="sum")


def products(x):
    return ops.cumprod(x, 0)


see("selu at -0.3, slope", slopes(ops.selu, [-0.3]), [0.5719])
see("selu at -0.3, differences", differences(ops.selu, [-0.3]), [1.3])
see("kl_div by its labels", slopes(labels, [0.25, 0.5]), [0.0, 0.0])
see("kl_div, differences", differences(labels, [0.25, 0.5]), [0.61, 0.81])
see("cross entropy by weight", slopes(weight, [1.0, 1.0]), [0.0, 0.0])
see("cross entropy by weight, differences", differences(weight, [1.0, 1.0]), [0.81, 0.13])
see("cross entropy by pos_weight", slopes(pos_weight, [1.0, 1.0]), [0.0, 0.0])
see("cross entropy by pos_weight, differences", differences(pos_weight, [1.0, 1.0]), [0.16, 0.13])
see("cumprod over 0, slopes", str(slopes(products, [2.0, 0.0, 3.0])), "[1.0, nan, 0.0]")
see("cumprod over 0, differences", differences(products, [2.0, 0.0, 3.0]), [1.0, 8.0, 0.0])

x = Tensor(np.array([0.1], np.float64))
see("softplus(0.1) of float64 is float64", ops.softplus(x).dtype == ms.float64, True)
see("its error, in eps of float64", abs(float(ops.softplus(x)) - math.log1p(math.exp(0.1))) > 1e7 * 2.0**-52, True)
see("sort(0.1) of float64", float(ops.sort(x)[0]), float(np.float32(0.1)))

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
cd "$folder"
GLOG_v=4 "$folder/env/bin/python" -W ignore program.py
