#!/usr/bin/env bash
# PyTorch 2.13.0: the gradient of torch.linalg.det fails for float32 and complex64 where the default dtype is float64.
# The factors are widened on the way: "linalg.lu_solve: Expected LU and B to have the same dtype". The value, and the
# gradients of slogdet, inv, qr and singular values, are as ever; a default dtype that is narrower does no harm.
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
    if value != expected:
        changed.append(f"{what} was {expected}")


def outcome(function, x):
    """Return "fine", or how differentiating a sum of magnitudes fails."""
    x = x.clone().requires_grad_()
    y = function(x)
    try:
        torch.autograd.grad(sum(part.abs().sum() for part in (y if isinstance(y, tuple) else (y,))), x)
    except RuntimeError as error:
        return str(error).partition(":")[0]
    return "fine"


linalg = torch.linalg
for default in (torch.float16, torch.float32, torch.float64):
    torch.set_default_dtype(default)
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        x = torch.randn(4, 4, dtype=dtype, generator=torch.Generator().manual_seed(0))
        is_narrow = default is torch.float64 and dtype in (torch.float32, torch.complex64)
        see(f"det of {dtype}, default {default}", outcome(linalg.det, x), "linalg.lu_solve" if is_narrow else "fine")
        for function in (linalg.slogdet, linalg.inv, linalg.qr, linalg.svdvals):
            see(f"{function.__name__} of {dtype}, default {default}", outcome(function, x), "fine")

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
cd "$folder" && "$folder/env/bin/python" -W ignore program.py
