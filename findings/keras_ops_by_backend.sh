#!/usr/bin/env bash
# Keras 3.15.1: functions of `keras.ops` whose answer depends on the backend, without an error.
# Beside NumPy's: on PyTorch `dot` of a matrix and three dimensions is in another order, `average` with weights of the
# shape of x is not reduced, `average_pool(padding="same")` counts an edge twice, `pad(x, 1)` pads the last axis alone,
# and `correlate(mode="same")` has the length of the first operand; on TensorFlow `vdot` conjugates nothing,
# `map_coordinates(fill_mode="reflect")` is at the wrong place, and the slopes of `celu` and `hypot`, which are smooth
# there, are 2 for 1 at 0 and (1.414, 0) for (0.707, 0.707) at (1, 1).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q --no-compile numpy==2.4.6 keras==3.15.1 torch==2.13.0 tensorflow-cpu==2.21.0
cat > "$folder/program.py" <<'PROGRAM'
import json

import keras
import numpy as np
from keras import ops

x, y = np.arange(6, dtype="float32").reshape(2, 3), np.arange(12, dtype="float32").reshape(2, 3, 2)
line, one, zero = np.arange(1, 7, dtype="float32"), np.float32(1), np.float32(0)
z = np.array([1 + 2j, 3j], "complex64"), np.array([1j, 2], "complex64")


def compute(f):
    """Return the numbers of a result, or the class of an error."""
    try:
        found = np.asarray(ops.convert_to_numpy(f()))
    except Exception as error:
        return type(error).__name__
    return str(np.round(found.astype(complex if found.dtype.kind == "c" else float), 3).ravel().tolist())


def slopes(f, *xs):
    """Return the derivatives of a function of numbers."""
    if keras.backend.backend() == "torch":
        import torch

        xs = [torch.tensor(x, requires_grad=True) for x in xs]
        found = torch.autograd.grad(f(*xs), xs)
    else:
        import tensorflow as tf

        xs = [tf.constant(x) for x in xs]
        with tf.GradientTape() as tape:
            tape.watch(xs)
            found = f(*xs)
        found = tape.gradient(found, xs)
    return [float(slope) for slope in found]


print(json.dumps({
    "dot": compute(lambda: ops.dot(x, y)),
    "average": compute(lambda: ops.average(x, weights=x + 1)),
    "average_pool": compute(lambda: ops.average_pool(line.reshape(1, 6, 1), 3, 2, padding="same")),
    "shape of pad": compute(lambda: np.array(ops.pad(x, 1).shape)),
    "correlate": compute(lambda: ops.correlate(line[:3], line[:4], "same")),
    "vdot": compute(lambda: ops.vdot(*z)),
    "map_coordinates": compute(lambda: ops.image.map_coordinates(line, [np.float32([-0.5])], 1, fill_mode="reflect")),
    "slope of celu": compute(lambda: np.array(slopes(ops.celu, zero))),
    "slopes of hypot": compute(lambda: np.array(slopes(ops.hypot, one, one))),
}))
PROGRAM
cd "$folder"
for backend in torch tensorflow; do
  KERAS_BACKEND=$backend TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1 \
    "$folder/env/bin/python" -W ignore program.py 2> "$backend.txt" | tail -1 > "$backend.json" || cat "$backend.txt"
done
python3 - <<'PROGRAM'
import json
from pathlib import Path

found = {name: json.loads(Path(f"{name}.json").read_text()) for name in ("torch", "tensorflow")}
SEEN = {  # that of NumPy, of SciPy or of calculus; a backend's where it differs
    "dot": ("[10.0, 13.0, 28.0, 31.0, 28.0, 40.0, 100.0, 112.0]", {"torch": "[10.0, 13.0, 28.0, 40.0, 28.0, 31.0, 100.0, 112.0]"}),
    "average": ("[3.333]", {"torch": "[11.667, 4.667]"}),
    "average_pool": ("[2.0, 4.0, 5.5]", {"torch": "[2.0, 4.0, 5.667]"}),
    "shape of pad": ("[4.0, 5.0]", {"torch": "[2.0, 5.0]", "tensorflow": "InvalidArgumentError"}),
    "correlate": ("[11.0, 20.0, 14.0, 8.0]", {"torch": "[11.0, 20.0, 14.0]"}),
    "vdot": ("[(2-5j)]", {"tensorflow": "[(-2+7j)]"}),
    "map_coordinates": ("[1.0]", {"tensorflow": "[1.5]"}),
    "slope of celu": ("[1.0]", {"tensorflow": "[2.0]"}),
    "slopes of hypot": ("[0.707, 0.707]", {"tensorflow": "[1.414, 0.0]"}),
}
changed = []
for name, (right, others) in SEEN.items():
    for backend, answers in found.items():
        expected = others.get(backend, right)
        print(f"{name}, {backend}: {answers[name]}")
        if answers[name] != expected:
            changed.append(f"{name} on {backend} was {expected}")
if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
