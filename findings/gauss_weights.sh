#!/usr/bin/env bash
# The nodes of Gauss's and Legendre's rule are right to the last digit in NumPy 2.4.6, and its weights are not: those at
# both ends of a rule of 64 terms are off by more than 4,000 units of 2**-52, of 112 terms by more than 20,000, though a
# weight is a smooth function of its node. Weights in the middle are off by 10 and 20. SciPy 1.17.1, whose rule is another
# program, is off likewise. So an integral of a function that lives near an end has 12 digits and no error.
# https://github.com/scipy/scipy/issues/19283
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 scipy==1.17.1 mpmath==1.3.0
cat >"$folder/program.py" <<'PROGRAM'
import mpmath
import numpy as np
from scipy.special import roots_legendre

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if value != expected:
        changed.append(f"{what} was {expected}")


def exact(n):
    """Return the weights of the rule of n terms: 2 / ((1 - x^2) P'(x)^2) at the roots of P, by Newton's iteration."""
    with mpmath.workdps(50):
        for start in np.polynomial.legendre.leggauss(n)[0]:
            x = mpmath.mpf(float(start))
            for _ in range(3):
                before, value = mpmath.mpf(1), x
                for k in range(2, n + 1):
                    before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
                slope = n * (x * value - before) / (x * x - 1)
                x -= value / slope
            yield x, 2 / ((1 - x * x) * slope**2)


def units(found, want):
    """Return the largest relative error, in units of 2**-52."""
    return max(float(abs(mpmath.mpf(float(a)) - b) / abs(b)) * 2**52 for a, b in zip(found, want))


for n, least in ((64, 4000), (112, 20000)):
    places, weights = zip(*exact(n))
    with mpmath.workdps(50):
        see(f"{n} terms: the exact weights add up to 2", abs(mpmath.fsum(weights) - 2) < 1e-30, True)
    for name, rule in (("NumPy", np.polynomial.legendre.leggauss), ("SciPy", roots_legendre)):
        found = rule(n)
        see(f"{n} terms, {name}: a weight is off by more than {least} units", units(found[1], weights) > least, True)
        print(f"    nodes {units(found[0], places):.1f}, weights {units(found[1], weights):.0f} units")
    see(f"{n} terms, NumPy: nodes are within a unit", units(np.polynomial.legendre.leggauss(n)[0], places) < 1, True)
if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
"$folder/env/bin/python" "$folder/program.py"
