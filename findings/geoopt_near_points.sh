#!/usr/bin/env bash
# geoopt 0.5.1: on its unit sphere no two points are closer than 0.0141 in float32, and 0.000447 in float64.
# That is the distance of a point from itself too: the cosine is kept 1e-4 (1e-7) away from 1, and the angle goes with
# the root of that. The gradient of every distance below is 0, and `logmap`, which takes its length from `dist`, points
# beyond the neighbor: for points that are 0.001 apart it is 14 times too long in float32.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 torch==2.13.0 geoopt==0.5.1
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import geoopt
import torch

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


sphere = geoopt.Sphere()
for dtype, apart, distance, log, slope in (
    ("float32", 0.0, 0.01414, 0.0, 0.0),
    ("float32", 0.001, 0.01414, 0.01414, 0.0),
    ("float32", 0.01, 0.01414, 0.01414, 0.0),
    ("float32", 0.1, 0.1, 0.1, 1.0),
    ("float64", 0.0, 0.00045, 0.0, 0.0),
    ("float64", 1e-4, 0.00045, 0.00045, 0.0),
    ("float64", 0.001, 0.001, 0.001, 1.0),
):
    angle = torch.tensor(apart, dtype=getattr(torch, dtype), requires_grad=True)
    x = torch.tensor([1.0, 0.0], dtype=angle.dtype)
    y = torch.stack([torch.cos(angle), torch.sin(angle)])
    found = sphere.dist(x, y)
    gradient = torch.autograd.grad(found, angle)[0]
    see(f"{dtype}, points {apart} apart, distance", round(found.item(), 5), distance)
    see(f"{dtype}, points {apart} apart, length of logmap", round(sphere.logmap(x, y).norm().item(), 5), log)
    see(f"{dtype}, points {apart} apart, slope of the distance", round(gradient.item(), 3), slope)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
