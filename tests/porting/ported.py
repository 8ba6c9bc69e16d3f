"""What a port computes on the active backend, and how far that is from the original."""

from __future__ import annotations

import numpy as np

import multiop
from multiop import ops
from multiop.porting import _weights


def leaves(tree):
    if isinstance(tree, dict):
        return [leaf for name in sorted(tree) for leaf in leaves(tree[name])]
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [] if tree is None else [tree]


def weights(shape):
    return np.cos(np.arange(int(np.prod(shape)))).reshape(shape)


def ported(port, inputs, training=False, state=None):
    """Return outputs, gradients of a weighted sum of them in parameters and inputs, and the new state of a port."""
    given = port.state if state is None else _weights.nested(state)
    arrays = [np.asarray(x.detach() if hasattr(x, "detach") else x) for x in inputs]
    floats = {f"input {i}": array for i, array in enumerate(arrays) if array.dtype.kind == "f"}

    def compute(named):
        params = _weights.nested({name: leaf for name, leaf in named.items() if not name.startswith("input ")})
        own = [named.get(f"input {i}", array) for i, array in enumerate(arrays)]
        outputs, state = port.function(params, given, *own, training=training, seed=1 if training else None)
        outputs = leaves(outputs)
        floating = [y for y in outputs if "float" in ops.dtype(y)]
        total = sum((ops.sum(ops.multiply(y, weights(y.shape))) for y in floating), ops.zeros((), "float64"))
        return total, (outputs, state)

    named = {name: ops.convert_to_tensor(leaf) for name, leaf in (_weights.flat(port.params) | floats).items()}
    if named:
        (_, (outputs, state)), gradients = multiop.value_and_grad(compute, has_aux=True)(named)
    else:
        _, (outputs, state) = compute(named)
        gradients = {}
    return (
        [ops.convert_to_numpy(y) for y in outputs],
        {name: ops.convert_to_numpy(leaf) for name, leaf in gradients.items()},
        {name: ops.convert_to_numpy(leaf) for name, leaf in _weights.flat(state).items()},
    )


def error_between(computed, expected):
    """Return the largest difference between two lists or dicts of arrays, relative to the largest entry of each.

    An array of entries that are small beside all the others may be what rounding left of a zero.
    """
    names = computed if isinstance(computed, dict) else range(len(expected))
    pairs = [(computed[name], expected[name]) for name in names if not isinstance(computed, dict) or name in expected]
    pairs = [(array.astype("float64"), other.astype("float64")) for array, other in pairs]
    largest = max((np.abs(np.nan_to_num(other, posinf=0, neginf=0)).max(initial=0) for _, other in pairs), default=0)
    worst = 0.0
    for array, other in pairs:
        assert array.shape == other.shape
        assert (np.isfinite(array) == np.isfinite(other)).all()
        difference = np.abs(np.nan_to_num(array) - np.nan_to_num(other)).max(initial=0)
        worst = max(worst, float(difference / max(np.abs(np.nan_to_num(other)).max(initial=0), 1e-4 * largest, 1e-30)))
    return worst
