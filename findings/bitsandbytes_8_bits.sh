#!/usr/bin/env bash
# bitsandbytes 0.50.2 on a CPU: quantization to 8 bits by blocks hides NaN. A block of nothing but NaN is read back as
# zeros, and one NaN as minus the largest of its block. The 4 bits of the same library (NF4, FP4) keep both as NaN.
# An infinity comes back with the other sign, and makes the finite numbers of its block infinite. And of 2 and -2, the
# largest and the smallest of a block, 2 is exact and -2 is read back as -1.986.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 torch==2.13.0 bitsandbytes==0.50.2
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import bitsandbytes.functional as F
import torch

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def stored(numbers, bits):
    """Return what numbers are after quantization, with three digits."""
    x = torch.tensor(numbers)
    if bits == "8 bits":
        found = F.dequantize_blockwise(*F.quantize_blockwise(x, blocksize=64))
    else:
        found = F.dequantize_4bit(*F.quantize_4bit(x, blocksize=64, quant_type=bits))
    return [round(number, 3) + 0.0 for number in found.flatten().tolist()]


nan, inf = float("nan"), float("inf")
see("8 bits, NaN, NaN", stored([nan, nan], "8 bits"), [0.0, 0.0])
see("8 bits, NaN, 2, 1", stored([nan, 2.0, 1.0], "8 bits"), [-1.986, 2.0, 1.002])
see("8 bits, inf, 2, 1", stored([inf, 2.0, 1.0], "8 bits"), [-inf, inf, inf])
see("8 bits, 2, -2", stored([2.0, -2.0], "8 bits"), [2.0, -1.986])
for bits in ("nf4", "fp4"):
    see(f"{bits}, NaN, NaN", stored([nan, nan], bits), [nan, nan])
    see(f"{bits}, NaN, 2, 1", stored([nan, 2.0, 1.0], bits), [nan, nan, nan])
    see(f"{bits}, inf, 2, 1", stored([inf, 2.0, 1.0], bits), [inf, nan, nan])
    see(f"{bits}, 2, -2", stored([2.0, -2.0], bits), [2.0, -2.0])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
