#!/usr/bin/env bash
# MLX 0.32.4: the sum of a uint64 and an int64 array is float32, so that 2**24 + 1 is lost; an integer to the power -1
# is 0; an int32 of 1 shifted by 33 is 2.
# NumPy promotes the same pair to float64, PyTorch has no such pair, JAX refuses or gives float by its table. `//` by
# 0 is 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 'mlx[cpu]==0.32.4'
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import mlx.core as mx

mx.set_default_device(mx.cpu)

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


total = mx.array([2**24 + 1], mx.uint64) + mx.array([0], mx.int64)
see("uint64 + int64", (str(total.dtype), int(total.item())), ("mlx.core.float32", 2**24))
see("2 to the power -1", (mx.array([2]) ** mx.array([-1])).tolist(), [0])
see("1 << 33", (mx.array([1]) << 33).tolist(), [2])
see("7 // 0", (mx.array([7]) // 0).tolist(), [0])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
