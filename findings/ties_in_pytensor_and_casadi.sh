#!/usr/bin/env bash
# Which operand gets the gradient at a tie depends on the function, in pytensor 3.0.7 and in CasADi 3.8.2.
# pytensor: `max` gives the whole gradient to each of the ties (they add up to 2), `maximum` gives it to its first
# operand. CasADi: fmax halves it, and mmax halves it pairwise from the left, so that three ties get a quarter, a
# quarter and a half.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 pytensor==3.0.7 casadi==3.8.2
cd "$folder"
PYTENSOR_FLAGS=cxx=,mode=FAST_COMPILE,base_compiledir=compiled "$folder/env/bin/python" -W ignore - <<'PROGRAM'
import casadi
import pytensor
import pytensor.tensor as pt

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


x, y = pt.dvector(), pt.dvector()
gradient = pytensor.function([x], pytensor.grad(pt.max(x), x))
see("pytensor, max of [1, 1, 0]", gradient([1.0, 1.0, 0.0]).tolist(), [1.0, 1.0, 0.0])
gradients = pytensor.function([x, y], pytensor.grad(pt.maximum(x, y).sum(), [x, y]))
see("pytensor, maximum(1, 1)", [g.tolist() for g in gradients([1.0], [1.0])], [[1.0], [0.0]])
v = casadi.SX.sym("v", 3)
slope = casadi.Function("slope", [v], [casadi.gradient(casadi.fmax(v[0], v[1]), v)])
see("CasADi, fmax(1, 1)", slope([1, 1, 0]).full().ravel().tolist(), [0.5, 0.5, 0.0])
slope = casadi.Function("slope", [v], [casadi.gradient(casadi.mmax(v), v)])
see("CasADi, mmax of [1, 1, 1]", slope([1, 1, 1]).full().ravel().tolist(), [0.25, 0.25, 0.5])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
