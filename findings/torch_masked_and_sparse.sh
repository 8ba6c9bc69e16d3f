#!/usr/bin/env bash
# PyTorch 2.13.0: two functions beside the main road give a right number in a wrong form, or a wrong one.
# `torch.masked.argmax` returns its index as a float, which cannot index. A sparse tensor that is not coalesced is
# cast to integers entry by entry: 1.5 and 1.5 at one place are 2, while `floor` and `sqrt` add first. A sparse tensor
# times NaN keeps its empty places at 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import torch

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


mask = torch.tensor([True, True, False])
see("masked.argmax", str(torch.masked.argmax(torch.tensor([1.0, 2.0, 3.0]), 0, mask=mask).dtype), "torch.float32")
twice = torch.sparse_coo_tensor([[0, 0]], [1.5, 1.5], (2,))
see("1.5 + 1.5 as integers", twice.to(torch.int32).to_dense().tolist(), [2, 0])
see("the same, coalesced first", twice.coalesce().to(torch.int32).to_dense().tolist(), [3, 0])
see("floor of them", twice.floor().to_dense().tolist(), [3.0, 0.0])
see("times NaN", str((twice * float("nan")).to_dense().tolist()), "[nan, 0.0]")

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
