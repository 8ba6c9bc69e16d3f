#!/usr/bin/env bash
# TensorFlow 2.21.0: `tf.experimental.numpy.around([15, 25], -1)` is [19, 29].
# The rounded quotient is multiplied back in floating point and then cut to an integer, so that 19.99... is 19. NumPy
# has [20, 20] (halves to even).
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


see("tnp.around([15, 25], -1)", tnp.around(tnp.array([15, 25]), -1).numpy().tolist(), [19, 29])
see("np.around([15, 25], -1)", np.around([15, 25], -1).tolist(), [20, 20])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
