#!/usr/bin/env bash
# ml_dtypes 0.6.0 has float types without NaN and one without zero, and NumPy 2.4.6 fills them in silence.
# NaN becomes -0 in float4_e2m1fn and float6_e2m3fn, an infinity their largest number; `np.zeros` of float8_e8m0fnu is
# 2**-127, since all bits 0 mean that; 0 cast to it is NaN. A division of int4 arrays is float16.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 ml_dtypes==0.6.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import ml_dtypes
import numpy as np

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


odd = np.array([np.nan, np.inf, -np.inf], np.float32)
see("NaN, inf, -inf in float4_e2m1fn", odd.astype(ml_dtypes.float4_e2m1fn).astype(float).tolist(), [-0.0, 6.0, -6.0])
see("NaN, inf, -inf in float6_e2m3fn", odd.astype(ml_dtypes.float6_e2m3fn).astype(float).tolist(), [-0.0, 7.5, -7.5])
see("np.zeros of float8_e8m0fnu", float(np.zeros(1, ml_dtypes.float8_e8m0fnu)[0]), 2.0**-127)
see("0, -1 and 3 cast to float8_e8m0fnu", str(np.array([0.0, -1.0, 3.0]).astype(ml_dtypes.float8_e8m0fnu).astype(float).tolist()), "[nan, nan, 4.0]")
halves = np.array([1, 2], ml_dtypes.int4) / np.array([2, 2], ml_dtypes.int4)
see("int4 / int4", (halves.tolist(), halves.dtype.name), ([0.5, 1.0], "float16"))

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
