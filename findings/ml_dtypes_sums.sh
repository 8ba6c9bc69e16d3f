#!/usr/bin/env bash
# NumPy 2.4.6 adds bfloat16 arrays (ml_dtypes 0.6.0) one by one in bfloat16: the sum of 1,000 ones is 256, their mean
# 0.2559.
# float16 is NumPy's own and is added in pairs and in float32: 1,000. `@` of the same ones is a float32 of 1,000,
# `np.dot` a bfloat16 of 1,000. float8 stops at 16.
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


ones = np.ones(1000, ml_dtypes.bfloat16)
see("sum", float(ones.sum()), 256.0)
see("mean", float(ones.mean()), 0.255859375)
see("variance of 0 to 299, which is 7,499.9", float(np.arange(300).astype(ml_dtypes.bfloat16).var()), 7040.0)
see("sum in float16", float(np.ones(1000, np.float16).sum()), 1000.0)
see("sum of float8_e4m3fn", float(np.ones(1000, ml_dtypes.float8_e4m3fn).sum()), 16.0)
see("ones @ ones", (float(ones @ ones), (ones @ ones).dtype.name), (1000.0, "float32"))
see("np.dot", (float(np.dot(ones, ones)), np.dot(ones, ones).dtype.name), (1000.0, "bfloat16"))

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
