#!/usr/bin/env bash
# TensorFlow 2.21.0: with the dtype promotion "safe" of its NumPy mode, means have no gradient.
# The derivative of reduce_mean divides float32 by a count of int64, which that promotion refuses, so reduce_mean,
# reduce_variance, reduce_std, nn.moments and the Keras loss of squares have values and raise TypeError backward, though
# the caller mixes no dtypes. Sums, products, norms, softmax, segment means and the loss of classes have gradients; so
# do means with the promotion "all".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 tensorflow-cpu==2.21.0
cat > "$folder/program.py" <<'PROGRAM'
import sys

import tensorflow as tf

promotion = sys.argv[1]
tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=promotion)
changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{promotion}, {what}: {value}")
    if value != expected:
        changed.append(f"{what} was {expected}")


def outcome(function, x):
    """Return the dtype of the gradient, or the name of the error that differentiating raises."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    try:
        return tape.gradient(y, x).dtype.name
    except TypeError as error:
        return type(error).__name__


means = {
    "reduce_mean": lambda x: tf.reduce_mean(x, 1),
    "reduce_variance": lambda x: tf.math.reduce_variance(x, 1),
    "reduce_std": lambda x: tf.math.reduce_std(x, 1),
    "nn.moments": lambda x: tf.nn.moments(x, [1])[1],
    "losses.MeanSquaredError": lambda x: tf.keras.losses.MeanSquaredError()(x, tf.zeros_like(x)),
}
others = {
    "reduce_sum": lambda x: tf.reduce_sum(x, 1),
    "reduce_prod": lambda x: tf.reduce_prod(x, 1),
    "norm": lambda x: tf.norm(x, axis=1),
    "nn.softmax": tf.nn.softmax,
    "math.segment_mean": lambda x: tf.math.segment_mean(x, [0, 1]),
    "nn.sparse_softmax_cross_entropy_with_logits": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1], x),
}
x = tf.constant([[1.0, 2.0], [3.0, 5.0]])
for name, function in means.items():
    see(name, outcome(function, x), "TypeError" if promotion == "safe" else "float32")
for name, function in others.items():
    see(name, outcome(function, x), "float32")

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
cd "$folder"
for promotion in safe all; do
    TF_CPP_MIN_LOG_LEVEL=2 "$folder/env/bin/python" -W ignore program.py $promotion 2> errors.txt || { cat errors.txt; exit 1; }
done
