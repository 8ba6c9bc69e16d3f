"""What training pays for: an op and its gradient are the nodes of TensorFlow's own graph, or few more, and no choice."""

from __future__ import annotations

import pytest

tf = pytest.importorskip("tensorflow")

from counted_nodes import CHOICES, nodes, rows

import multiop as mo

DTYPES = {"float32": tf.float32, "bfloat16": tf.bfloat16, "float16": tf.float16}
MORE = 2
DEARER = {  # what is pinned, and its price in nodes beyond TensorFlow's
    "selu": (9, "tf.nn.selu has another gradient at 0 eagerly and by XLA"),
    "max_pool": (10, "the kernel ignores NaN, and gives a number for windows of -inf alone"),
    "sparse_categorical_crossentropy": (8, "a class that is out of range makes NaN where no value can be read"),
    "categorical_crossentropy": (12, "0 * log(0) is 0 where a class is masked"),
}
