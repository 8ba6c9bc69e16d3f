#!/usr/bin/env bash
# orbax-checkpoint 0.12.8 stores the tree {"a.b": x, "a": {"b": y}} without an error, and restores one array for both
# leaves, from run to run another.
# A leaf's path is joined by dots into the name of its folder, so two different paths share one. State dicts of
# PyTorch are flat dicts of dotted names; a tree that mixes them with nested ones loses weights in silence.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q jax==0.10.2 numpy==2.4.6 orbax-checkpoint==0.12.8
cd "$folder"
JAX_PLATFORMS=cpu "$folder/env/bin/python" -W ignore - <<'PROGRAM'
import logging
import tempfile

import jax.numpy as jnp
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
    checkpointer.save(path, {"a.b": jnp.array([1.0]), "a": {"b": jnp.array([0.0])}})
with ocp.StandardCheckpointer() as checkpointer:
    restored = checkpointer.restore(path)
see("1 and 0 are one number afterwards", bool(restored["a.b"][0] == restored["a"]["b"][0]), True)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
