#!/usr/bin/env bash
# Blosc2 4.14.1: one lazy expression, two answers. `e[...]` is NumPy's, `e.compute()` is another engine's.
# -7.5 % 2.0 is 0.5 and -1.5; `round(0.5)` is 0 and 1; `hypot` of the integers 1 and 1 is 1.4142 and 1.0, in float64.
# `sum` and `numpy.asarray` take the second answer; `compute()` of a single entry is NumPy's again. The documentation
# names NumPy's functions for all of these. And by either way, half of True is 0, the variance of complex numbers is
# complex, and `argmax` beside a NaN is 0, wherever it lies.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 blosc2==4.14.1
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import blosc2
import numpy as np

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def both(what, expression, sliced, computed):
    """See the two answers of an expression, with four digits."""
    see(f"{what}, [...]", np.round(expression[...], 4).tolist(), sliced)
    see(f"{what}, compute()", np.round(expression.compute()[...], 4).tolist(), computed)


x = blosc2.asarray(np.array([-7.5, -0.5, 0.5, 2.5]))
ones = blosc2.asarray(np.array([1, 2]))
both("x % 2.0", x % 2.0, [0.5, 1.5, 0.5, 0.5], [-1.5, -0.5, 0.5, 0.5])
see("numpy.asarray(x % 2.0)", np.asarray(x % 2.0).tolist(), [-1.5, -0.5, 0.5, 0.5])
both("a single entry % 2.0", blosc2.asarray(np.array([-7.5])) % 2.0, [0.5], [0.5])
see("sum of x % 2.0", float(blosc2.sum(x % 2.0)), -1.0)
both("round(x)", blosc2.round(x), [-8.0, -0.0, 0.0, 2.0], [-8.0, -1.0, 1.0, 3.0])
both("hypot of integers", blosc2.hypot(ones, ones), [1.4142, 2.8284], [1.0, 2.0])
z = np.array([1 + 2j, -1, 1j])
see("variance of complex numbers", complex(np.round(blosc2.var(blosc2.asarray(z)), 4)), 1.3333j)
see("variance of complex numbers, NumPy", round(float(np.var(z)), 4), 1.3333)
see("half of True", (blosc2.asarray(np.array([True])) / 2)[...].tolist(), [0])
for entries in ([1.0, 3.0, np.nan], [1.0, np.nan, 3.0]):
    see(f"argmax of {entries}", int(blosc2.argmax(blosc2.asarray(np.array(entries)))), 0)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
