#!/usr/bin/env bash
# JAX 0.10.2: some functions of `jax.scipy.stats` make a number of NaN, where SciPy's of the same names are NaN.
# The density of a uniform distribution is 1 at NaN, as if it lay within; a truncated normal one has 1 for both `cdf`
# and `sf`; the densities of gamma and wrapped Cauchy ones, and the probabilities of binomial and Poisson ones, are 0. A
# NaN as a parameter is hidden likewise. So a likelihood of broken data, or of a broken parameter, looks good or
# impossible, not broken. Those of the normal, exponential, beta and Student's distribution are NaN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q jax==0.10.2 numpy==2.4.6 scipy==1.17.1
cd "$folder"
JAX_PLATFORMS=cpu "$folder/env/bin/python" -W ignore - <<'PROGRAM'
import jax.scipy.stats
import scipy.stats
from jax.numpy import nan

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


for name, function, arguments, options, expected in (
    ("uniform", "pdf", (nan,), {}, "1.0"),
    ("uniform", "pdf", (0.5,), {"loc": nan}, "1.0"),
    ("uniform", "cdf", (nan,), {}, "0.0"),
    ("truncnorm", "cdf", (nan, -1.0, 2.0), {}, "1.0"),
    ("truncnorm", "sf", (nan, -1.0, 2.0), {}, "1.0"),
    ("truncnorm", "cdf", (0.5, -1.0, 2.0), {"scale": nan}, "1.0"),
    ("gamma", "logpdf", (nan, 2.0), {}, "-inf"),
    ("gamma", "pdf", (0.5, 2.0), {"loc": nan}, "0.0"),
    ("wrapcauchy", "pdf", (nan, 0.5), {}, "0.0"),
    ("binom", "pmf", (nan, 10, 0.3), {}, "0.0"),
    ("binom", "pmf", (1.0, nan, 0.3), {}, "0.0"),
    ("poisson", "pmf", (nan, 3.0), {}, "0.0"),
    ("pareto", "cdf", (1.0, nan), {}, "0.0"),
    ("norm", "pdf", (nan,), {}, "nan"),
    ("expon", "pdf", (nan,), {}, "nan"),
    ("beta", "pdf", (nan, 2.0, 3.0), {}, "nan"),
    ("t", "pdf", (nan, 5.0), {}, "nan"),
    ("truncnorm", "pdf", (nan, -1.0, 2.0), {}, "nan"),
):
    ours, others = (
        str(float(getattr(getattr(stats, name), function)(*arguments, **options)))
        for stats in (jax.scipy.stats, scipy.stats)
    )
    see(f"{name}.{function} {arguments} {options}, in JAX and SciPy", (ours, others), (expected, "nan"))

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
