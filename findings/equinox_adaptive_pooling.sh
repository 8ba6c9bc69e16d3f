#!/usr/bin/env bash
# equinox 0.13.8 and PyTorch 2.13.0 disagree about adaptive average pooling where the sizes do not divide.
# PyTorch's windows overlap (window i runs from floor(i n / m) to ceil((i + 1) n / m)); equinox's do not. A model that
# is ported with its weights differs from the first such layer on.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q jax==0.10.2 numpy==2.4.6 equinox==0.13.8 torch==2.13.0
cd "$folder"
JAX_PLATFORMS=cpu "$folder/env/bin/python" -W ignore - <<'PROGRAM'
import torch
import equinox as eqx
import jax.numpy as jnp

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


values = list(range(5))
see("PyTorch, 5 to 3", torch.nn.AdaptiveAvgPool1d(3)(torch.tensor([values], dtype=torch.float32)).tolist(), [[0.5, 2.0, 3.5]])
see("equinox, 5 to 3", eqx.nn.AdaptiveAvgPool1d(3)(jnp.array([values], dtype="float32")).tolist(), [[0.5, 2.5, 4.0]])
see("PyTorch, 6 to 3", torch.nn.AdaptiveAvgPool1d(3)(torch.arange(6.0)[None]).tolist(), [[0.5, 2.5, 4.5]])
see("equinox, 6 to 3", eqx.nn.AdaptiveAvgPool1d(3)(jnp.arange(6.0)[None]).tolist(), [[0.5, 2.5, 4.5]])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
