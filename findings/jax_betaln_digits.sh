#!/usr/bin/env bash
# JAX 0.10.2 in float64: `betaln`, the logarithm of the beta function, is off by up to 1e-6 where the larger argument is
# 8 or a little more, and by 1e-9 at 50. Below 8, and for two equal arguments, it has all its digits: it jumps at 8.
# B(10, 1) is 0.10000004, and the sum of three `gammaln`, which `betaln` is there to improve, has 13 digits of it.
# So the densities of `jax.scipy.stats.beta` do not integrate to 1, the probabilities of `betabinom` do not add up to
# it, and slopes are off likewise.
# https://github.com/jax-ml/jax/pull/13288
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q jax==0.10.2 numpy==2.4.6 scipy==1.17.1
cd "$folder"
JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 "$folder/env/bin/python" -W ignore - <<'PROGRAM'
import jax
import jax.numpy as jnp
import scipy.special
from jax.scipy import special, stats

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def error(a, b):
    return f"{abs(float(special.betaln(a, b)) - scipy.special.betaln(a, b)):.0e}"


see("B(10, 1), 0.1", round(float(special.beta(10.0, 1.0)), 10), 0.1000000411)
by_gammaln = jnp.exp(special.gammaln(10.0) + special.gammaln(1.0) - special.gammaln(11.0))
see("the same by gammaln", round(float(by_gammaln), 13), 0.1)
for a, b, off in ((2, 8, "1e-06"), (9, 3, "9e-07"), (7, 9, "4e-07"), (20, 2, "5e-08"), (50, 2, "2e-09")):
    see(f"off at ({a}, {b})", error(a, b), off)
for a, b in ((2.0, 7.9), (7.0, 7.9), (15.0, 15.0)):
    see(f"off by less than 1e-13 at ({a}, {b})", float(error(a, b)) < 1e-13, True)
see("slope at (10, 1), -0.1", round(float(jax.grad(special.betaln)(10.0, 1.0)), 9), -0.100000152)
see("density of beta(10, 1) at 1, 10", round(float(stats.beta.pdf(1.0, 10.0, 1.0)), 6), 9.999996)
total = float(stats.betabinom.pmf(jnp.arange(11), 10, 2.0, 3.0).sum())
see("sum of the probabilities of betabinom(10, 2, 3), less 1", f"{total - 1:.0e}", "-7e-08")

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
