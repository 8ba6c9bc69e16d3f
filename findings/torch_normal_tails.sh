#!/usr/bin/env bash
# PyTorch 2.13.0: `torch.distributions.Normal` loses the tails that `torch.special` has.
# cdf(-10) in float64 is 0 (7.6e-24), and so is `torch.special.ndtr`, while log_ndtr has it; icdf(1e-20) is -inf,
# while `torch.special.ndtri` has -9.26. `Gumbel(0, 1).cdf(100)` is a ValueError that calls 100 outside of the
# support, since it checks the number after its first transform.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import torch
from torch.distributions import Gumbel, Normal

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


normal = Normal(torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64))
x, p = torch.tensor(-10.0, dtype=torch.float64), torch.tensor(1e-20, dtype=torch.float64)
see("Normal.cdf(-10)", normal.cdf(x).item(), 0.0)
see("ndtr(-10)", torch.special.ndtr(x).item(), 0.0)
see("exp(log_ndtr(-10)), times 1e24", round(torch.special.log_ndtr(x).exp().item() * 1e24, 3), 7.62)
see("Normal.icdf(1e-20)", str(normal.icdf(p).item()), "-inf")
see("ndtri(1e-20)", round(torch.special.ndtri(p).item(), 4), -9.2623)
try:
    seen = float(Gumbel(torch.tensor(0.0), torch.tensor(1.0)).cdf(torch.tensor(100.0)))
except ValueError:
    seen = "ValueError"
see("Gumbel.cdf(100)", seen, "ValueError")

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
