#!/usr/bin/env bash
# safetensors 0.8.0 writes NumPy arrays of ml_dtypes that its own NumPy loader cannot read back.
# `save` takes bfloat16 and float8 by the name of their dtype; `load` raises a KeyError with the name of the format's
# own dtype.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 safetensors==0.8.0 ml_dtypes==0.6.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import ml_dtypes
import numpy as np
from safetensors.numpy import load, save

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
    stored = save({"x": np.ones(2, getattr(ml_dtypes, name))})
    try:
        seen = str(load(stored)["x"].dtype)
    except KeyError as error:
        seen = f"KeyError {error}"
    see(name, seen, {"bfloat16": "KeyError 'BF16'", "float8_e4m3fn": "KeyError 'F8_E4M3'", "float8_e5m2": "KeyError 'F8_E5M2'"}[name])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
