#!/usr/bin/env bash
# TensorFlow 2.21.0: functions of `tf.experimental.numpy` that take NumPy's arguments and answer otherwise, without an
# error.
# `take` clips a negative index to 0; `signbit(-0.)` and of a negative NaN is False; `heaviside(nan)` is the second
# argument; `isclose(inf, inf)` is False; the mean of 70,000 ones in float16 is NaN; `x[None, [0, 1], None, 1]` puts
# the axes otherwise than NumPy.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 tensorflow-cpu==2.21.0
cd "$folder"
TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1 "$folder/env/bin/python" -W ignore - <<'PROGRAM'
import numpy as np
import tensorflow as tf

tnp = tf.experimental.numpy
tnp.experimental_enable_numpy_behavior()

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


for name, compute, here, there in (
    ("take(x, -1)", lambda xp: xp.take(xp.array([1, 2, 3]), xp.array([-1])).tolist(), [1], [3]),
    ("signbit(-0.)", lambda xp: bool(xp.signbit(xp.array(-0.0))), False, True),
    ("heaviside(nan, 0.5)", lambda xp: str(float(xp.heaviside(xp.array(np.nan), 0.5))), "0.5", "nan"),
    ("isclose(inf, inf)", lambda xp: bool(xp.isclose(xp.array(np.inf), xp.array(np.inf))), False, True),
    ("mean of float16", lambda xp: str(float(xp.mean(xp.full((70_000,), 1.0, dtype=xp.float16)))), "nan", "1.0"),
    ("x[None, [0, 1], None, 1]", lambda xp: tuple(xp.zeros((2, 3))[None, xp.array([0, 1]), None, 1].shape), (1, 2, 1), (2, 1, 1)),
):
    see(f"{name}, TensorFlow", compute(tnp), here)
    see(f"{name}, NumPy", compute(np), there)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
