#!/usr/bin/env bash
# Where two values are written to one place, the last one stays, and the gradient of the first is 0. Three libraries
# give both of them the whole gradient.
# MLX 0.32.4 (`x[indices] = v` and put_along_axis) and pytensor 3.0.7 (set_subtensor) hand back a gather of the
# upstream; the value is [2, 0] from [1, 2], the gradient [1, 1].
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 'mlx[cpu]==0.32.4' pytensor==3.0.7
cd "$folder"
PYTENSOR_FLAGS=cxx=,mode=FAST_COMPILE,base_compiledir=compiled "$folder/env/bin/python" -W ignore - <<'PROGRAM'
import mlx.core as mx
import numpy as np
import pytensor
import pytensor.tensor as pt

mx.set_default_device(mx.cpu)

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


places, v = mx.array([0, 0]), mx.array([1.0, 2.0])


def set_places(v):
    x = mx.zeros(2)
    x[places] = v
    return x


def put(v):
    return mx.put_along_axis(mx.zeros(2), places, v, 0)


for name, write in (("MLX, x[indices] = v", set_places), ("MLX, put_along_axis", put)):
    gradient = mx.grad(lambda v, write=write: write(v).sum())(v)
    see(name, (write(v).tolist(), gradient.tolist()), ([2.0, 0.0], [1.0, 1.0]))
v = pt.dvector()
written = pt.set_subtensor(pt.zeros(2)[[0, 0]], v)
values = pytensor.function([v], [written, pytensor.grad(written.sum(), v)])([1.0, 2.0])
see("pytensor, set_subtensor", tuple(np.asarray(value).tolist() for value in values), ([2.0, 0.0], [1.0, 1.0]))

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
