#!/usr/bin/env bash
# PyTorch Geometric 2.8.1: the root mean square of 20 and 20 is 10, and its gradient 0.
# The two bounds of `PowerMeanAggregation`, on which its formula is silent, hold for the entries, and once more for the
# mean of their powers: an upper one of 100 keeps every result at a power of 2 to 10, every one at a power of 3 to 4.64,
# and with a lower one of 0.01, no result at a power of 2 is below 0.1. At the power 1 nothing is bounded, so that a
# power of 1.0001 has other numbers. Neither bound at all, which the documentation allows for each, is an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 torch==2.13.0 torch-geometric==2.8.1
cat > "$folder/program.py" <<'PROGRAM'
import torch
from torch_geometric.nn.aggr import PowerMeanAggregation

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def mean_and_slope(entry, power, low, high):
    x = torch.tensor([[entry], [entry]], dtype=torch.float64, requires_grad=True)
    y = PowerMeanAggregation(power, clamp_min=low, clamp_max=high)(x, torch.tensor([0, 0]))
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return round(y.item(), 4), round(gradient.sum().item(), 4)


for entry, power, low, high, expected in (
    (20.0, 2.0, 0.01, 100.0, (10.0, 0.0)),
    (20.0, 2.0, 0.01, 1000.0, (20.0, 1.0)),
    (20.0, 2.0, None, 1000.0, (20.0, 1.0)),
    (5.0, 3.0, 0.01, 100.0, (4.6416, 0.0)),
    (0.05, 2.0, 0.01, 100.0, (0.1, 0.0)),
    (0.05, 2.0, None, 100.0, (0.05, 1.0)),
    (200.0, 1.0, 0.01, 100.0, (200.0, 1.0)),
    (200.0, 1.0001, 0.01, 100.0, (99.954, 0.0)),
    (9.0, 2.0, 0.01, 100.0, (9.0, 1.0)),
):
    what = f"mean of {entry} and itself, and its slope, power {power}, from {low} to {high}"
    see(what, mean_and_slope(entry, power, low, high), expected)
try:
    error = mean_and_slope(1.0, 2.0, None, None)
except RuntimeError as caught:
    error = str(caught)
see("neither bound", error, "torch.clamp: At least one of 'min' or 'max' must not be None")

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
cd "$folder" && "$folder/env/bin/python" -W ignore program.py
