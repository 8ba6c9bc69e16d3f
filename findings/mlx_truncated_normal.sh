#!/usr/bin/env bash
# MLX 0.32.4 draws a truncated normal by erfinv of a uniform in float32, so a tail has few values: 10,000 draws from
# (5, 6) are 11 different numbers.
# The smallest step of a probability near 1 is 6e-8, and the tail beyond 5 has 3e-7 of it. Draws from (3, 4) look
# right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 'mlx[cpu]==0.32.4'
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)
mx.random.seed(0)

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


for low, values in ((5.0, 11), (3.0, 8000)):
    drawn = np.array(mx.random.truncated_normal(mx.array(low), mx.array(low + 1), shape=(10_000,)))
    different = len(np.unique(drawn))
    see(f"different values in ({low:g}, {low + 1:g})", different if low == 5 else different > values, values if low == 5 else True)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
