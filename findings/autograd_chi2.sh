#!/usr/bin/env bash
# autograd 1.9.1: the gradient of `scipy.stats.chi2.pdf` and `logpdf` is 0 everywhere if the degrees of freedom are not
# a whole number. At 3 degrees it is right; at 3.001 it is 0. The values are SciPy's, and rise and fall. `cdf` is right
# for both, so its second derivative is right where the first one of `pdf`, which is the same function, is 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 scipy==1.17.1 autograd==1.9.1
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import scipy.stats
from autograd import grad
from autograd.scipy.stats import chi2

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def difference(name, x, degrees, step=2.0**-16):
    """Return what SciPy's values say of the slope, with four digits."""
    function = getattr(scipy.stats.chi2, name)
    return round(float(function(x + step, degrees) - function(x - step, degrees)) / step / 2, 4)


for degrees, log_density, density in ((3.0, -0.1667, -0.0385), (3.001, 0.0, 0.0), (2.5, 0.0, 0.0)):
    see(f"logpdf, {degrees} degrees, slope at 1.5", round(float(grad(chi2.logpdf)(1.5, degrees)), 4), log_density)
    see(f"pdf, {degrees} degrees, slope at 1.5", round(float(grad(chi2.pdf)(1.5, degrees)), 4), density)
    second = round(float(grad(grad(chi2.cdf))(1.5, degrees)), 4)
    see(f"cdf, {degrees} degrees, second slope at 1.5, is right", second == difference("pdf", 1.5, degrees), True)
see("logpdf, 3.001 degrees, difference", difference("logpdf", 1.5, 3.001), -0.1663)
see("logpdf, 2.5 degrees, difference", difference("logpdf", 1.5, 2.5), -0.3333)
see("pdf, 2.5 degrees, difference", difference("pdf", 1.5, 2.5), -0.0808)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
