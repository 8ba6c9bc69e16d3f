#!/usr/bin/env bash
# equinox 0.13.8 serialises the leaves of a tree without their names: they are read back in the order of the target.
# Where a field was renamed so that it sorts elsewhere, two weights of one shape and dtype change places in silence; a
# target with fewer leaves reads the first ones. An array of another dtype is an error; a Python float read into an
# integer is truncated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q jax==0.10.2 numpy==2.4.6 equinox==0.13.8
cd "$folder"
JAX_PLATFORMS=cpu "$folder/env/bin/python" -W ignore - <<'PROGRAM'
import equinox as eqx
import jax.numpy as jnp

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


eqx.tree_serialise_leaves("weights.eqx", {"kernel": jnp.zeros(1), "scale": jnp.ones(1)})
renamed = eqx.tree_deserialise_leaves("weights.eqx", {"kernel": jnp.zeros(1), "gamma": jnp.zeros(1)})
see("kernel, stored as 0, beside scale renamed to gamma", float(renamed["kernel"][0]), 1.0)
see("gamma, stored as 1", float(renamed["gamma"][0]), 0.0)
first = eqx.tree_deserialise_leaves("weights.eqx", {"scale": jnp.zeros(1)})
see("scale alone, stored as 1", float(first["scale"][0]), 0.0)
eqx.tree_serialise_leaves("rate.eqx", {"rate": 1.5})
see("1.5 read into an integer", eqx.tree_deserialise_leaves("rate.eqx", {"rate": 0})["rate"], 1)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
