#!/usr/bin/env bash
# JAX 0.10.2: `jax.experimental.jet` is NaN for a power with a float exponent at 0 and at negative numbers, where
# `jax.grad` is right.
# x ** 3 (an integer in Python) is right, `jnp.power(x, 3.0)` has NaN for [3, -6, 6] at -1: its rule goes through a
# logarithm. A function with a custom rule (softplus, relu, logaddexp) ends in an UnexpectedTracerError that speaks of
# side effects.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q jax==0.10.2 numpy==2.4.6
cd "$folder"
JAX_PLATFORMS=cpu "$folder/env/bin/python" -W ignore - <<'PROGRAM'
import jax
import jax.numpy as jnp
from jax.experimental.jet import jet

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def differentiate(function, x):
    return [round(float(value), 4) for value in jet(function, (x,), ((1.0, 0.0, 0.0),))[1]]


def cube(x):
    return jnp.power(x, 3.0)


see("x ** 3 at -1", differentiate(lambda x: x**3, -1.0), [3.0, -6.0, 6.0])
see("power(x, 3.) at -1", str(differentiate(cube, -1.0)), "[nan, nan, nan]")
see("grad of it", float(jax.grad(cube)(-1.0)), 3.0)
see("grad of grad of grad of it", float(jax.grad(jax.grad(jax.grad(cube)))(-1.0)), 6.0)
for name, function in (("softplus", jax.nn.softplus), ("relu", jax.nn.relu), ("logaddexp", lambda x: jnp.logaddexp(x, 2 * x))):
    try:
        seen = str(differentiate(function, 0.7))
    except jax.errors.UnexpectedTracerError:
        seen = "UnexpectedTracerError"
    see(name, seen, "UnexpectedTracerError")

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
