#!/usr/bin/env bash
# PyTorch 2.13.0: torch.compile gives equal numbers a deviation, and its gradient, that they do not have eagerly.
# The mean of seven equal numbers may be rounded to another number; the eager kernel does not show it. Compiled,
# torch.std of some such rows is of the size of 1e-7, and its gradient 1/7 for each entry, where both are 0 eagerly.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 setuptools torch==2.13.0
cat > "$folder/program.py" <<'PROGRAM'
import torch

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def deviation(x):
    return torch.std(x, 1, correction=0)


x = torch.linspace(0.1, 3.3, 40).reshape(40, 1).expand(40, 7).clone().requires_grad_()
for way, function, is_rounded in (("eager", deviation, False), ("compiled", torch.compile(deviation), True)):
    y = function(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    see(f"{way}: a deviation that is not 0", bool(y.any()), is_rounded)
    see(f"{way}: the largest slope, times 7", round(float(gradient.abs().max()) * 7, 5), float(is_rounded))

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
cd "$folder" && "$folder/env/bin/python" -W ignore program.py
