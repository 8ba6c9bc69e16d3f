#!/usr/bin/env bash
# CasADi 3.8.2: the two kinds of `interpolant` answer alike within their grid and opposite beyond it.
# "linear" goes on along its last piece; "bspline" is 0, a jump from the last value with a derivative of 0, so that an
# optimiser that steps over the end is told that it stands at a minimum.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q casadi==3.8.2
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import casadi

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


grid, values = [0, 1, 2, 3, 4], [0, 1, 4, 9, 16]
linear = casadi.interpolant("linear", "linear", [grid], values)
spline = casadi.interpolant("spline", "bspline", [grid], values)
see("at 3: linear, bspline", (float(linear(3)), round(float(spline(3)), 9)), (9.0, 9.0))
see("at 5: linear, bspline", (float(linear(5)), float(spline(5))), (23.0, 0.0))
x = casadi.MX.sym("x")
slope = casadi.Function("slope", [x], [casadi.gradient(spline(x), x)])
see("slope of bspline at 5", float(slope(5)), 0.0)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
