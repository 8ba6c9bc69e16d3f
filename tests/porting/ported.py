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
        return [leaf for one in tree for leaf in leaves(one)]
    return [] if tree is None else [tree]


def weights(shape):
    return np.cos(np.arange(int(np.prod(shape)))).reshape(shape)


def ported(port, inputs, training=False, state=None):
    """Return outputs, gradients of a weighted sum of them in parameters and inputs, and the new state of a port."""
    given = port.state if state is None else _weights.nested(state)
    arrays = [np.asarray(one.detach() if hasattr(one, "detach") else one) for one in inputs]
    floats = {f"input {i}": one for i, one in enumerate(arrays) if one.dtype.kind == "f"}

    def compute(named):
        params = _weights.nested({name: one for name, one in named.items() if not name.startswith("input ")})
        own = [named.get(f"input {i}", one) for i, one in enumerate(arrays)]
        outputs, state = port.function(params, given, *own, training=training, seed=1 if training else None)
        outputs = leaves(outputs)
        floating = [one for one in outputs if "float" in ops.dtype(one)]
        total = sum((ops.sum(ops.multiply(one, weights(one.shape))) for one in floating), ops.zeros((), "float64"))
        return total, (outputs, state)

    named = {name: ops.convert_to_tensor(one) for name, one in (_weights.flat(port.params) | floats).items()}
    if named:
        (_, (outputs, state)), gradients = multiop.value_and_grad(compute, has_aux=True)(named)
    else:
        _, (outputs, state) = compute(named)
        gradients = {}
    return (
        [ops.convert_to_numpy(one) for one in outputs],
        {name: ops.convert_to_numpy(one) for name, one in gradients.items()},
        {name: ops.convert_to_numpy(one) for name, one in _weights.flat(state).items()},
    )


def error_between(found, expected):
    """Return the largest difference between two lists or dicts of arrays, relative to the largest entry of each.

    An array of entries that are small beside all the others may be what rounding left of a zero.
    """
    names = found if isinstance(found, dict) else range(len(expected))
    pairs = [(found[name], expected[name]) for name in names if not isinstance(found, dict) or name in expected]
    pairs = [(one.astype("float64"), other.astype("float64")) for one, other in pairs]
    largest = max((np.abs(np.nan_to_num(other, posinf=0, neginf=0)).max(initial=0) for _, other in pairs), default=0)
    worst = 0.0
    for one, other in pairs:
        assert one.shape == other.shape
        assert (np.isfinite(one) == np.isfinite(other)).all()
        difference = np.abs(np.nan_to_num(one) - np.nan_to_num(other)).max(initial=0)
        worst = max(worst, float(difference / max(np.abs(np.nan_to_num(other)).max(initial=0), 1e-4 * largest, 1e-30)))
    return worst
