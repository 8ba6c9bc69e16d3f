#!/usr/bin/env bash
# One dict, three orders of leaves: JAX 0.10.2 and optree 0.20.0 sort the keys, PyTorch 2.13.0's pytree keeps the
# order of insertion.
# An OrderedDict of the same keys in another order is refused by JAX and matched by key in optree. Keys that cannot be
# compared are an error in JAX, and are sorted by the names of their types in optree. A list of leaves that crosses
# from one library to another is permuted.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q jax==0.10.2 numpy==2.4.6 optree==0.20.0 torch==2.13.0
cd "$folder"
JAX_PLATFORMS=cpu "$folder/env/bin/python" -W ignore - <<'PROGRAM'
from collections import OrderedDict

import torch.utils._pytree as torch_tree
import jax
import optree

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


tree = {"b": 1, "a": 2}
see("leaves of b = 1, a = 2: JAX", jax.tree.leaves(tree), [2, 1])
see("leaves of b = 1, a = 2: optree", optree.tree_leaves(tree), [2, 1])
see("leaves of b = 1, a = 2: PyTorch", torch_tree.tree_leaves(tree), [1, 2])


def attempt(function, *arguments):
    try:
        return function(*arguments)
    except (ValueError, TypeError) as error:
        return type(error).__name__


one, other = OrderedDict(b=1, a=2), OrderedDict(a=10, b=20)
add = lambda x, y: x + y
see("OrderedDicts added: JAX", attempt(jax.tree.map, add, one, other), "ValueError")
see("OrderedDicts added: optree", dict(attempt(optree.tree_map, add, one, other)), {"b": 21, "a": 12})
see("keys 1 and 'a': JAX", attempt(jax.tree.leaves, {1: 1, "a": 2}), "ValueError")
see("keys 1 and 'a': optree", attempt(optree.tree_leaves, {1: 1, "a": 2}), [1, 2])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
