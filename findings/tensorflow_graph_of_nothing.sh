#!/usr/bin/env bash
# A graph of TensorFlow 2.21.0 ends the process (SIGFPE) where it computes a root mean square normalization of a batch of
# no rows, its gradient, and the gradient of that: an optimizer of graphs (`arithmetic_optimization`) drops what keeps an
# integer division from being one by 0. Eagerly, with that optimizer off, and with two rows it computes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q tensorflow-cpu==2.21.0
cat >"$folder/program.py" <<'PROGRAM'
import sys

import tensorflow as tf

rows, is_optimized = int(sys.argv[1]), sys.argv[2] == "optimized"
tf.config.optimizer.set_experimental_options({"arithmetic_optimization": is_optimized})


@tf.function
def second_order(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6)
        gradient = inner.gradient(y, x, output_gradients=tf.ones_like(x))
    return y, gradient, outer.gradient(gradient, x, output_gradients=tf.ones_like(x))


print(*(y.shape for y in second_order(tf.zeros((rows, 3)))))
PROGRAM
cd "$folder"
run() { ./env/bin/python -W ignore program.py "$@" 2>/dev/null; }
run 2 optimized
run 0 plain
if run 0 optimized; then
    echo "changed: the process did not end"
    exit 1
fi
echo "ended by a signal, as seen before"
