#!/usr/bin/env bash
# orbax-checkpoint 0.12.8 holds a restored leaf to its target's shape where the target is a JAX array, and not where
# it is a NumPy array.
# A NumPy target of another shape is answered with the stored shape. A Python integer as target truncates a stored 2.5
# to 2; keys that were integers come back as strings; tuples come back as lists.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q jax==0.10.2 numpy==2.4.6 orbax-checkpoint==0.12.8
cd "$folder"
JAX_PLATFORMS=cpu "$folder/env/bin/python" -W ignore - <<'PROGRAM'
import logging
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

logging.disable(logging.CRITICAL)

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


path = f"{tempfile.mkdtemp()}/checkpoint"
with ocp.StandardCheckpointer() as checkpointer:
    checkpointer.save(path, {"w": jnp.ones((2, 3)), "rate": 2.5, "layers": {1: jnp.zeros(1)}, "pair": (jnp.zeros(1),)})


def restore(**leaves):
    target = {"w": jnp.ones((2, 3)), "rate": 0.0, "layers": {1: jnp.zeros(1)}, "pair": (jnp.zeros(1),)} | leaves
    with ocp.StandardCheckpointer() as checkpointer:
        return checkpointer.restore(path, target)


try:
    seen = restore(w=jnp.ones((4, 4)))["w"].shape
except ValueError:
    seen = "ValueError"
see("target: a JAX array of shape (4, 4)", seen, "ValueError")
see("target: a NumPy array of shape (4, 4)", restore(w=np.ones((4, 4), np.float32))["w"].shape, (2, 3))
see("2.5 into an integer", restore(rate=1)["rate"], 2)
with ocp.StandardCheckpointer() as checkpointer:
    untyped = checkpointer.restore(path)
see("keys without a target", list(untyped["layers"]), ["1"])
see("a tuple without a target", type(untyped["pair"]).__name__, "list")

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
