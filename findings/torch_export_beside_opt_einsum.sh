#!/usr/bin/env bash
# PyTorch 2.13.0 and opt_einsum 3.4.0: an installed package decides whether a program can be exported.
# `torch.export` leaves the batch of an einsum of three operands open. With opt_einsum in the environment, which JAX and
# TensorFlow bring along, PyTorch searches a path by the sizes, and so the batch becomes the example's: an error where
# it has a name, silent with `Dim.AUTO`. `torch.backends.opt_einsum.enabled = False` leaves it open again.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 torch==2.13.0
cd "$folder"
cat > program.py <<'PROGRAM'
import sys

import torch


class Product(torch.nn.Module):
    def forward(self, x, weights, y):
        return torch.einsum("bi,bij,bj->b", x, weights, y)


def batch(dim):
    """Return whether the batch of an exported program is open."""
    example = torch.ones(3, 4), torch.ones(3, 4, 5), torch.ones(3, 5)
    try:
        program = torch.export.export(Product(), example, dynamic_shapes=[{0: dim}] * 3)
    except torch._dynamo.exc.UserError as error:
        return "refused" if "specialized it to be a constant (3)" in str(error) else str(error)
    sizes = [str(node.meta["val"].shape[0]) for node in program.graph.nodes if node.op == "placeholder"]
    return "fixed" if sizes == ["3", "3", "3"] else "open"


searches, *expected = sys.argv[1:]
torch.backends.opt_einsum.enabled = searches == "on" and torch.backends.opt_einsum.is_available()
found = [batch(torch.export.Dim("batch")), batch(torch.export.Dim.AUTO)]
print(f"opt_einsum there: {torch.backends.opt_einsum.is_available()}; path search {searches}: named, automatic: {found}")
sys.exit(f"changed: it was {expected}" if found != expected else 0)
PROGRAM
"$folder/env/bin/python" -W ignore program.py on open open
"$folder/env/bin/pip" install -q opt_einsum==3.4.0
"$folder/env/bin/python" -W ignore program.py on refused fixed
"$folder/env/bin/python" -W ignore program.py off open open
