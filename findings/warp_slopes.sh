#!/usr/bin/env bash
# Some functions of NVIDIA Warp 1.19.0 have a slope of 0 in reverse mode where their own values rise, and no error says
# so: `frac(x)`, which is x less an integer, and `mod(x, y)` in y, which is x less a multiple of y. `min` and `max` give
# the whole gradient of a tie to their second operand, and `abs` at 0 has the slope 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 warp-lang==1.19.0
cat >"$folder/program.py" <<'PROGRAM'
import numpy as np
import warp as wp

wp.config.quiet = True
wp.config.kernel_cache_dir = "kernels"
f64, changed = wp.float64, []


@wp.kernel
def frac(x: wp.array(dtype=f64), y: wp.array(dtype=f64), z: wp.array(dtype=f64)):
    z[wp.tid()] = wp.frac(x[wp.tid()])


@wp.kernel
def mod(x: wp.array(dtype=f64), y: wp.array(dtype=f64), z: wp.array(dtype=f64)):
    z[wp.tid()] = wp.mod(x[wp.tid()], y[wp.tid()])


@wp.kernel
def maximum(x: wp.array(dtype=f64), y: wp.array(dtype=f64), z: wp.array(dtype=f64)):
    z[wp.tid()] = wp.max(x[wp.tid()], y[wp.tid()])


@wp.kernel
def absolute(x: wp.array(dtype=f64), y: wp.array(dtype=f64), z: wp.array(dtype=f64)):
    z[wp.tid()] = wp.abs(x[wp.tid()])


def differentiate(kernel, *operands):
    """Return the value of a kernel at two numbers, and its slopes in both."""
    x, y = (wp.array([v], dtype=f64, requires_grad=True, device="cpu") for v in operands)
    z = wp.zeros(1, dtype=f64, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[x, y], outputs=[z], device="cpu")
    tape.backward(grads={z: wp.array([1.0], dtype=f64, device="cpu")})
    return tuple(a.numpy().item() for a in (z, x.grad, y.grad))


def differences(kernel, x, y, step=2.0**-20):
    """Return what the kernel's own values say of its slopes."""
    values = [differentiate(kernel, x + dx, y + dy)[0] for dx, dy in ((step, 0), (-step, 0), (0, step), (0, -step))]
    slopes = (values[0] - values[1]) / step / 2, (values[2] - values[3]) / step / 2
    return tuple(float(np.round(slope, 6)) for slope in slopes)


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if value != expected:
        changed.append(f"{what} was {expected}")


see("frac(1.25), value and slopes", differentiate(frac, 1.25, 1.0), (0.25, 0.0, 0.0))
see("frac(1.25), differences", differences(frac, 1.25, 1.0), (1.0, 0.0))
see("mod(7.5, 2), value and slopes", differentiate(mod, 7.5, 2.0), (1.5, 1.0, 0.0))
see("mod(7.5, 2), differences", differences(mod, 7.5, 2.0), (1.0, -3.0))
see("max(1, 1), value and slopes", differentiate(maximum, 1.0, 1.0), (1.0, 0.0, 1.0))
see("abs(0), value and slopes", differentiate(absolute, 0.0, 0.0), (0.0, 1.0, 0.0))

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
cd "$folder"
"$folder/env/bin/python" -W ignore program.py
