"""Energies, forces and vibrations of a molecule: one energy, the rest is derivatives.

Water with springs for its two bonds and its angle. The forces are minus the gradient; the frequencies are the roots of
the eigenvalues of the Hessian over the masses. Six of the nine are 0: the molecule may move and turn without a force.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import multiop
from multiop import ops
from multiop.testing import example_inputs

BOND, ANGLE = 0.9572, np.deg2rad(104.52)  # angstrom, radian
STRETCH, BEND = 1059.162, 75.90  # kcal/mol per angstrom^2, per radian^2
MASSES = np.array([15.999, 1.008, 1.008])
WAVENUMBER = 108.59  # of the square root of kcal/mol/angstrom^2/u, in 1/cm


def water(stretched: float = 0.0) -> np.ndarray[Any, Any]:
    """Return positions (3, 3) of O, H and H, with the first bond longer by `stretched`."""
    second = BOND * np.array([np.cos(ANGLE), np.sin(ANGLE), 0])
    return np.array([[0, 0, 0], [BOND + stretched, 0, 0], second])


@example_inputs(water(0.1))
def energy(positions: Any) -> Any:
    """Return the energy of the atoms at `positions` (3, 3), in kcal/mol."""
    a, b = positions[1] - positions[0], positions[2] - positions[0]
    r, s = ops.norm(a), ops.norm(b)
    angle = ops.arctan2(ops.norm(ops.cross(a, b)), ops.sum(a * b))  # exact where arccos would lose its digits
    stretch = ops.square(r - BOND) + ops.square(s - BOND)
    return STRETCH / 2 * stretch + BEND / 2 * ops.square(angle - ANGLE)


@example_inputs(water(0.1))
def forces(positions: Any) -> Any:
    """Return the force on each atom, (3, 3)."""
    return -multiop.grad(energy)(positions)


def wavenumbers(positions: Any) -> Any:
    """Return the wavenumbers of the nine modes in 1/cm, the smallest first."""
    roots = ops.convert_to_tensor(np.repeat(MASSES, 3) ** 0.5, dtype=ops.dtype(positions))
    hessian = ops.reshape(multiop.hessian(energy)(positions), (9, 9)) / (roots[:, None] * roots)
    return WAVENUMBER * ops.sqrt(ops.maximum(ops.eigvalsh((hessian + ops.transpose(hessian)) / 2), 0.0))


def run(steps: int = 41) -> dict[str, list[float]]:
    """Return energies and the force on the first hydrogen while its bond is stretched, and the wavenumbers."""
    lengths = np.linspace(-0.2, 0.2, steps)
    at = [ops.convert_to_tensor(water(length).astype("float32")) for length in lengths]
    return {
        "lengths": (BOND + lengths).tolist(),
        "energies": [float(energy(x)) for x in at],
        "forces": [float(forces(x)[1, 0]) for x in at],
        "wavenumbers": ops.convert_to_numpy(wavenumbers(ops.convert_to_tensor(water().astype("float32")))).tolist(),
    }


if __name__ == "__main__":
    print(run()["wavenumbers"])
