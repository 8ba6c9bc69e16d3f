#!/usr/bin/env bash
# PyTorch 2.13.0, optax 0.2.8, Keras 3.15.1: one name of an optimizer, the same hyperparameters, gradients and dtype,
# and other weights. NAdam is three optimizers: ten steps bring a weight of 1 to 0.93, 0.77 and 0.92, and the first ones
# are 0.1056, 0.1474 and 0.1063. AMSGrad of optax keeps the largest second moment after its correction, the others
# before it: 0.78, where they are at 0.76. Rprop of optax does not move at first, nor in the step that follows a change
# of sign, where PyTorch's does: 0.85 and 0.64. SGD with Nesterov's momentum, Adam, AdamW, Adamax, RMSprop, Adagrad and
# Adadelta agree.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q --no-compile numpy==2.4.6 torch==2.13.0 keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 \
    optax==0.2.8
cat > "$folder/program.py" <<'PROGRAM'
import jax.numpy as jnp
import keras
import optax
import torch

keras.config.set_floatx("float64")
changed = []
gradients = [1.0, -0.5, 2.0, 0.1, 0.1, -3.0, 0.0, 0.0, 1e-3, 1e-2]


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def by_torch(optimizer, *arguments, **options):
    weight = torch.nn.Parameter(torch.tensor(1.0, dtype=torch.float64))
    optimizer = optimizer([weight], *arguments, **options)
    for gradient in gradients:
        weight.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        yield weight.item()


def by_optax(optimizer):
    weight = jnp.array(1.0)
    state = optimizer.init(weight)
    for gradient in gradients:
        updates, state = optimizer.update(jnp.array(gradient), state, weight)
        weight = optax.apply_updates(weight, updates)
        yield float(weight)


def by_keras(optimizer):
    weight = keras.Variable(1.0)
    optimizer.build([weight])
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient, "float64")], [weight])
        yield float(weight)


t, k, rate, eps = torch.optim, keras.optimizers, 0.1, 1e-12
nadam = (
    by_torch(t.NAdam, rate, (0.9, 0.99), eps),
    by_optax(optax.nadam(rate, 0.9, 0.99, eps)),
    by_keras(k.Nadam(rate, 0.9, 0.99, eps)),
)
amsgrad = (
    by_torch(t.Adam, rate, (0.9, 0.99), eps, amsgrad=True),
    by_optax(optax.amsgrad(rate, 0.9, 0.99, eps)),
    by_keras(k.Adam(rate, 0.9, 0.99, eps, amsgrad=True)),
)
rprop = by_torch(t.Rprop, rate, (0.5, 1.2), (1e-6, 50.0)), by_optax(optax.rprop(rate, 0.5, 1.2, 1e-6, 50.0))
for name, weights, first, last in (
    ("NAdam", nadam, [0.8944, 0.8526, 0.8937], [0.9289, 0.7711, 0.9154]),
    ("AMSGrad", amsgrad, [0.9, 0.9, 0.9], [0.7614, 0.7792, 0.7614]),
    ("Rprop", rprop, [0.9, 1.0], [0.6388, 0.854]),
):
    firsts, *_, lasts = zip(*weights, strict=True)
    see(f"{name}: the first weights, from 1", [round(weight, 4) for weight in firsts], first)
    see(f"{name}: the last weights", [round(weight, 4) for weight in lasts], last)

for name, *weights in (
    (
        "Nesterov",
        by_torch(t.SGD, rate, momentum=0.9, nesterov=True),
        by_optax(optax.sgd(rate, 0.9, nesterov=True)),
        by_keras(k.SGD(rate, 0.9, nesterov=True)),
    ),
    (
        "Adam",
        by_torch(t.Adam, rate, (0.9, 0.99), eps),
        by_optax(optax.adam(rate, 0.9, 0.99, eps)),
        by_keras(k.Adam(rate, 0.9, 0.99, eps)),
    ),
    (
        "AdamW",
        by_torch(t.AdamW, rate, (0.9, 0.99), eps, weight_decay=0.1),
        by_optax(optax.adamw(rate, 0.9, 0.99, eps, weight_decay=0.1)),
        by_keras(k.AdamW(rate, 0.1, 0.9, 0.99, eps)),
    ),
    (
        "Adamax",
        by_torch(t.Adamax, rate, (0.9, 0.99), eps),
        by_optax(optax.adamax(rate, 0.9, 0.99, eps)),
        by_keras(k.Adamax(rate, 0.9, 0.99, eps)),
    ),
    (
        "RMSprop",
        by_torch(t.RMSprop, rate, 0.9, eps),
        by_optax(optax.rmsprop(rate, 0.9, eps)),
        by_keras(k.RMSprop(rate, 0.9, epsilon=eps)),
    ),
    (
        "Adagrad",
        by_torch(t.Adagrad, rate, initial_accumulator_value=0.1, eps=eps),
        by_optax(optax.adagrad(rate, 0.1, eps)),
        by_keras(k.Adagrad(rate, 0.1, eps)),
    ),
    (
        "Adadelta",
        by_torch(t.Adadelta, rate, 0.9, 1e-6),
        by_optax(optax.adadelta(rate, 0.9, 1e-6)),
        by_keras(k.Adadelta(rate, 0.9, 1e-6)),
    ),
):
    apart = max(max(step) - min(step) for step in zip(*weights, strict=True))
    see(f"{name}: apart by less than 1e-10", apart < 1e-10, True)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
cd "$folder" && JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 KERAS_BACKEND=jax "$folder/env/bin/python" -W ignore program.py
