#!/usr/bin/env bash
# PyTorch 2.13.0: the Bessel functions of `torch.special` have single precision in float64 between 0 and 10.
# bessel_j0, j1, y0 and y1 are off by up to 8.7e-7 just above 5 and by 1e-8 below; from 20 on they have all digits.
# SciPy 1.17.1 has 1e-15 throughout.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 scipy==1.17.1 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import numpy as np
import scipy.special
import torch

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


x = torch.linspace(0.01, 60, 20_001, dtype=torch.float64)
for name, ours, theirs in (
    ("j0", torch.special.bessel_j0, scipy.special.j0),
    ("j1", torch.special.bessel_j1, scipy.special.j1),
    ("y0", torch.special.bessel_y0, scipy.special.y0),
    ("y1", torch.special.bessel_y1, scipy.special.y1),
):
    error = np.abs(ours(x).numpy() - theirs(x.numpy()))
    near, far = error[(x >= 5) & (x < 10)].max(), error[x >= 20].max()
    see(f"{name}: off by 1e-7 to 1e-6 from 5 to 10", bool(1e-7 < near < 1e-6), True)
    see(f"{name}: off by less than 1e-13 from 20 on", bool(far < 1e-13), True)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
