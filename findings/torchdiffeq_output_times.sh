#!/usr/bin/env bash
# torchdiffeq 0.2.5: with a method of fixed steps and a `step_size`, the gradient in an output time is 0 where that time
# lies on the grid. What it lacks is given to the first time, whose gradient is wrong by as much.
# A time between two points of the grid has its gradient, and the last time too. So have all without a `step_size`, with
# "dopri5", and by `odeint_adjoint`. The times of real data often lie on the grid: every half with steps of a hundredth.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 torch==2.13.0 torchdiffeq==0.2.5
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import math

import torch
import torchdiffeq

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def solve(times, **options):
    """Return the second output of y' = y cos(t) from 1, which is exp(sin(t) - sin(t0))."""
    solver = options.pop("solver", torchdiffeq.odeint)
    return solver(lambda t, y: torch.cos(t) * y, torch.ones(1, dtype=torch.float64), times, **options)[1, 0]


def slopes(middle, **options):
    """Return the slopes of the second output in the three times, with two digits."""
    times = torch.tensor([0.0, middle, 1.0], dtype=torch.float64, requires_grad=True)
    return [round(slope, 2) + 0.0 for slope in torch.autograd.grad(solve(times, **options), times)[0].tolist()]


def differences(middle, step=1e-3, **options):
    """Return what the solver's own values say of the slope in the second time, with two digits."""
    ends = [solve(torch.tensor([0.0, middle + sign * step, 1.0], dtype=torch.float64), **options) for sign in (1, -1)]
    return round((ends[0] - ends[1]).item() / step / 2, 2)


grid = {"method": "rk4", "options": {"step_size": 0.01}}
adjoint = {"solver": torchdiffeq.odeint_adjoint, "adjoint_params": ()}
for middle in (0.5, 0.505):
    exact = math.exp(math.sin(middle))
    see(f"time {middle}, exact", [round(-exact, 2), round(math.cos(middle) * exact, 2), 0.0], [-1.62, 1.42, 0.0])
    see(f"time {middle}, rk4, differences in the time", differences(middle, **grid), 1.42)
    see(f"time {middle}, rk4", slopes(middle, **grid), [-0.2, 0.0, 0.0] if middle == 0.5 else [-1.62, 1.42, 0.0])
    see(f"time {middle}, rk4, no step_size, slope in it", slopes(middle, method="rk4")[1], 1.42)
    see(f"time {middle}, rk4, adjoint", slopes(middle, **grid, **adjoint), [-1.62, 1.42, 0.0])
    see(f"time {middle}, dopri5", slopes(middle, method="dopri5"), [-1.62, 1.42, 0.0])
for method in ("euler", "midpoint", "heun3", "explicit_adams", "implicit_adams"):
    options = {"method": method, "options": {"step_size": 0.01}}
    see(f"time 0.5, {method}, slope in it", slopes(0.5, **options)[1], 0.0)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
