#!/usr/bin/env bash
# Dask 2026.8.0: the product of small integers depends on how an array is cut, and means of float16 are NaN.
# A chunk is multiplied in its own dtype, and chunks are added in the widest. So `einsum("ij->i")` of a thousand int8 of
# 100 is -96 in one chunk, as in NumPy, -9568 in chunks of seven, 100,000 in chunks of one, and int64 in all. `dot` goes
# likewise. `linalg.norm` squares in the integers: it has 8.9 for the uint8 200 and 100, and NumPy 223.6. The mean of
# 70,000 ones in float16 is of two infinities; NumPy has 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 'dask[array]==2026.8.0'
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import dask.array as da
import numpy as np

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


hundreds = np.full((1, 1000), 100, "int8")
see("einsum, NumPy", np.einsum("ij->i", hundreds).tolist(), [-96])
see("dot, NumPy", np.dot(hundreds, hundreds.T).tolist(), [[-128]])
for size, total, product in ((1000, -96, -128), (7, -9568, 16_000), (1, 100_000, 16_000)):
    cut = da.from_array(hundreds, chunks=(1, size))
    found = da.einsum("ij->i", cut)
    see(f"einsum, chunks of {size}", found.compute().tolist(), [total])
    see(f"einsum, chunks of {size}, dtype", str(found.dtype), "int64")
    see(f"dot, chunks of {size}", da.dot(cut, cut.T).compute().tolist(), [[product]])
    see(f"sum, chunks of {size}", int(cut.sum().compute()), 100_000)

pair = np.array([200, 100], "uint8")
see("norm, NumPy", round(float(np.linalg.norm(pair)), 2), 223.61)
see("norm", round(float(da.linalg.norm(da.from_array(pair)).compute()), 2), 8.94)

ones = np.ones(70_000, "float16")
see("mean of float16, NumPy", float(ones.mean()), 1.0)
see("mean of float16", str(float(da.from_array(ones, chunks=7000).mean().compute())), "nan")

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
