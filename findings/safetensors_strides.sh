#!/usr/bin/env bash
# safetensors 0.8.0 writes the memory of a NumPy array, not its elements: an array in Fortran order comes back
# scrambled.
# The shape in the header is right, so nothing is raised on either side. A transposed view is scrambled the same way.
# The same array through `numpy.ascontiguousarray` is right (which makes an array of shape () one of shape (1,)).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 safetensors==0.8.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import numpy as np
from safetensors.numpy import load, save

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


x = np.arange(6.0).reshape(2, 3)
see("C order", load(save({"x": x}))["x"].tolist(), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
see("Fortran order", load(save({"x": np.asfortranarray(x)}))["x"].tolist(), [[0.0, 3.0, 1.0], [4.0, 2.0, 5.0]])
see("transposed", load(save({"x": x.T}))["x"].tolist(), [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
see("big endian, which is converted", load(save({"x": x[0].astype(">f8")}))["x"].tolist(), [0.0, 1.0, 2.0])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
