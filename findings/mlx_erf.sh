#!/usr/bin/env bash
# MLX 0.32.4 on a CPU: erf is off by 2 % at 1e-5 and by 6 % at 1e-6 in float32, while its gradient is right.
# The function is a polynomial with an absolute error; every odd function of the field (tanh, sinh, arctanh) keeps its
# digits near 0 there. So a GELU's slope is right, and its finite differences are not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 'mlx[cpu]==0.32.4'
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import mlx.core as mx

mx.set_default_device(mx.cpu)

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


slope = 1.1283791670955126
for x, error in ((1e-6, 5.6), (1e-5, -1.7), (1e-3, 0.003)):
    see(f"erf at {x}, percent off", round(100 * (mx.erf(mx.array(x)).item() / (slope * x) - 1), 3 if x == 1e-3 else 1), error)
see("gradient at 1e-5", round(mx.grad(mx.erf)(mx.array(1e-5)).item(), 5), 1.12838)
see("arctanh at 1e-5", round(mx.arctanh(mx.array(1e-5)).item() * 1e5, 6), 1.0)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
