#!/usr/bin/env bash
# NumPy 2.4.6 neither sorts nor compacts a bfloat16 array (ml_dtypes 0.6.0) that holds a NaN: `sort` returns it as it
# was, `unique` keeps it unsorted with its repetitions.
# NumPy's own dtypes put NaN last. The cause is that the dtype's comparison takes NaN as equal to nothing and as less
# than nothing.
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


values = [3.0, np.nan, 2.0, np.nan]
for dtype, sort, unique in (
    (np.float32, "[2.0, 3.0, nan, nan]", "[2.0, 3.0, nan]"),
    (ml_dtypes.bfloat16, "[3.0, nan, 2.0, nan]", "[3.0, nan, 2.0, nan]"),
):
    x = np.array(values, dtype)
    see(f"sort, {np.dtype(dtype).name}", str(np.sort(x).astype(float).tolist()), sort)
    see(f"unique, {np.dtype(dtype).name}", str(np.unique(x).astype(float).tolist()), unique)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
