#!/usr/bin/env bash
# PyTorch 2.13.0: the derivative of a determinant at a singular matrix depends on how one asks.
# At [[1, 2], [2, 4]] it is [[4, -2], [-2, 1]], the adjugate, and `torch.func.grad` and `jacrev` say so. `backward` and
# `torch.autograd.grad` say 0, and so does forward mode: `torch.func.jacfwd` and `torch.autograd.forward_ad`. All are
# right beside that matrix, where the determinant is 1e-6.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import torch
from torch.autograd import forward_ad

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def rounded(slopes):
    """Return slopes with two digits."""
    return [[round(slope, 2) + 0.0 for slope in row] for row in slopes.tolist()]


def differences(matrix, step=2.0**-10):
    """Return what the determinant's own values say of its slopes."""
    found = torch.zeros_like(matrix)
    for i in range(2):
        for j in range(2):
            shift = torch.zeros_like(matrix)
            shift[i, j] = step
            found[i, j] = (torch.linalg.det(matrix + shift) - torch.linalg.det(matrix - shift)) / step / 2
    return found


def dual(matrix):
    """Return the slope in the first entry, by dual numbers."""
    with forward_ad.dual_level():
        tangent = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=matrix.dtype)
        return round(forward_ad.unpack_dual(torch.linalg.det(forward_ad.make_dual(matrix, tangent))).tangent.item(), 2)


det, adjugate, zeros = torch.linalg.det, [[4.0, -2.0], [-2.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]
for name, corner, some in (("singular", 4.0, zeros), ("beside it", 4.0 + 1e-6, adjugate)):
    matrix = torch.tensor([[1.0, 2.0], [2.0, corner]], dtype=torch.float64, requires_grad=True)
    see(f"{name}, differences", rounded(differences(matrix.detach())), adjugate)
    see(f"{name}, torch.func.grad", rounded(torch.func.grad(det)(matrix.detach())), adjugate)
    see(f"{name}, torch.func.jacrev", rounded(torch.func.jacrev(det)(matrix.detach())), adjugate)
    see(f"{name}, torch.autograd.grad", rounded(torch.autograd.grad(det(matrix), matrix)[0]), some)
    see(f"{name}, torch.func.jacfwd", rounded(torch.func.jacfwd(det)(matrix.detach())), some)
    see(f"{name}, forward_ad, first entry", dual(matrix.detach()) + 0.0, some[0][0])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
