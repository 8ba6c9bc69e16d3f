#!/usr/bin/env bash
# PaddlePaddle 3.3.1 on a CPU differentiates some functions wrongly, and no error says so. `group_norm` without a weight
# is off, with a weight of 1 right. `prod` of complex numbers does not conjugate its factors, as its other complex ops
# do, and `acosh` has the wrong sign left of 0. `prod` over one 0 has the slope NaN, where it is the product of the
# others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 setuptools==80.9.0 paddlepaddle==3.3.1
cat >"$folder/program.py" <<'PROGRAM'
import numpy as np
import paddle
import paddle.nn.functional as F

paddle.set_device("cpu")
changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if value != expected:
        changed.append(f"{what} was {expected}")


def slopes(f, x):
    """Return the gradient of the sum of f(x), with four digits."""
    x = paddle.to_tensor(np.asarray(x, np.float64), stop_gradient=False)
    found = paddle.grad(f(x).sum(), [x])[0].numpy()
    return [round(slope, 4) + 0.0 for slope in found.ravel().tolist()]


def differences(f, x, step=2.0**-16):
    """Return what the values of f say of its slopes, with four digits."""
    x, found = np.asarray(x, np.float64), []
    for i in range(x.size):
        shift = step * (np.arange(x.size) == i).reshape(x.shape)
        upper, lower = (float(f(paddle.to_tensor(end)).sum()) for end in (x + shift, x - shift))
        found.append(round((upper - lower) / step / 2, 4) + 0.0)
    return found


def is_right(f, x):
    return bool(np.allclose(slopes(f, x), differences(f, x), atol=1e-3))


x = np.array([0.25, 0.75, 1.25, 2.25])
for places in (1, 2, 9):
    shaped = np.repeat(x[None, :, None], places, 2) * np.linspace(1, 1.5, places)
    for weight in (None, paddle.ones([4], "float64")):
        f = lambda t, w=weight: F.group_norm(t, 2, weight=w) * t
        name = f"group_norm, {places} a channel, {'no weight' if weight is None else 'a weight of 1'}, is right"
        see(name, is_right(f, shaped), weight is not None)

part = lambda f: lambda t: paddle.real(f(paddle.complex(t, t * t)))
see("prod of complex numbers, slopes", slopes(part(paddle.prod), [1.0, 2.0]), [10.0, 5.0])
see("prod of complex numbers, differences", differences(part(paddle.prod), [1.0, 2.0]), [-6.0, -3.0])
see("acosh at -0.5 + 0.25i, slope", slopes(part(paddle.acosh), [-0.5]), [1.2338])
see("acosh at -0.5 + 0.25i, difference", differences(part(paddle.acosh), [-0.5]), [-1.2338])
see("prod over one 0, slopes", str(slopes(paddle.prod, [2.0, 0.0, 3.0])), "[0.0, nan, 0.0]")
see("prod over one 0, differences", differences(paddle.prod, [2.0, 0.0, 3.0]), [0.0, 6.0, 0.0])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
cd "$folder"
"$folder/env/bin/python" -W ignore program.py
