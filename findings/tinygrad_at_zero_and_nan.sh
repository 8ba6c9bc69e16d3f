#!/usr/bin/env bash
# tinygrad 0.14.0: four smooth functions have the slope 0 at 0, and `sort` puts another number in the place of a NaN.
# `asin`, `acos` and `erf` are made of the sign and the magnitude, both of which have the slope 0 at 0, and `atan` is an
# `asin`: beside 0 all are right. `atan(1e30)` is 0. `sort` of [1, NaN, 2, 3] is [1, 1, 2, 3], and `argmax` of
# [NaN, 1, 2] is 3, which is no index of it. Seen on the device PYTHON, which needs no compiler.
# https://github.com/tinygrad/tinygrad/pull/17861
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 tinygrad==0.14.0
cd "$folder"
DEV=PYTHON "$folder/env/bin/python" -W ignore - <<'PROGRAM'
from tinygrad import Tensor

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def slopes(name, *points):
    """Return the slopes of a function at some points, with two digits."""
    x = Tensor(list(points))
    return [round(slope, 2) + 0.0 for slope in getattr(x, name)().sum().gradient(x)[0].tolist()]


def difference(name, step=2.0**-7):
    """Return what the function's values say of its slope at 0, with two digits."""
    upper, lower = getattr(Tensor([step, -step]), name)().tolist()
    return round((upper - lower) / step / 2, 2)


for name, slope in (("asin", 1.0), ("atan", 1.0), ("acos", -1.0), ("erf", 1.13)):
    see(f"{name}, slopes at -0.01, 0 and 0.01", slopes(name, -0.01, 0.0, 0.01), [slope, 0.0, slope])
    see(f"{name}, difference at 0", difference(name), slope)
for name in ("sin", "tanh", "atanh", "asinh"):
    see(f"{name}, slope at 0", slopes(name, 0.0), [1.0])
see("atan(1e10)", round(Tensor([1e10]).atan().item(), 4), 1.5708)
see("atan(1e30)", Tensor([1e30]).atan().item(), 0.0)
nan = float("nan")
see("sort of [1, NaN, 2, 3]", Tensor([1.0, nan, 2.0, 3.0]).sort()[0].tolist(), [1.0, 1.0, 2.0, 3.0])
see("argmax of [NaN, 1, 2]", Tensor([nan, 1.0, 2.0]).argmax().item(), 3)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
