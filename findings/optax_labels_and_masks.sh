#!/usr/bin/env bash
# optax 0.2.8: three options that do the opposite of what their names suggest to readers from elsewhere, all in
# silence.
# An integer label of -1 is the last class, and PyTorch's -100 is NaN; `masked(sgd(1.0), False)` hands the raw
# gradient on, so that a "frozen" weight climbs the loss (`freeze` and `set_to_zero` hold it); `linear_schedule(1.0,
# 0.0, 0)` stays at 1.0 for ever.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q jax==0.10.2 numpy==2.4.6 optax==0.2.8
cd "$folder"
JAX_PLATFORMS=cpu "$folder/env/bin/python" -W ignore - <<'PROGRAM'
import logging

import jax.numpy as jnp
import optax

logging.disable(logging.CRITICAL)

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


logits = jnp.array([[1.0, 2.0, 3.0]])
loss = optax.softmax_cross_entropy_with_integer_labels
see("label -1 - label 2", float(loss(logits, jnp.array([-1]))[0] - loss(logits, jnp.array([2]))[0]), 0.0)
see("label -100", str(float(loss(logits, jnp.array([-100]))[0])), "nan")
weight, gradient = jnp.array(1.0), jnp.array(1.0)
for name, transform, after in (("masked", optax.masked(optax.sgd(1.0), False), 2.0), ("freeze", optax.freeze(True), 1.0)):
    updates, _ = transform.update(gradient, transform.init(weight), weight)
    see(f"a weight of 1 after a step, {name}", float(optax.apply_updates(weight, updates)), after)
schedule = optax.linear_schedule(1.0, 0.0, 0)
see("linear_schedule over 0 steps, at 0, 1 and 100", [float(schedule(step)) for step in (0, 1, 100)], [1.0, 1.0, 1.0])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
