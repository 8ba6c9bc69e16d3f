"""Energy and forces of a Lennard-Jones cluster: forces are minus the gradient of the energy, on every backend.

Lengths are in units of sigma, energies in units of epsilon, masses are one. The forces are held against the closed
form, against finite differences and against Newton's third law; then a short run of velocity Verlet conserves energy.

    MULTIOP_BACKEND=torch python examples/lennard_jones.py
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import multiop
from multiop import ops
from multiop.testing import example_inputs


def cluster(side: int = 3, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return positions and velocities, float64 (side**3, 3): a disturbed cubic lattice, at rest as a whole."""
    rng = np.random.default_rng(seed)
    lattice = 1.1 * np.stack(np.meshgrid(*[np.arange(float(side))] * 3, indexing="ij"), -1).reshape(-1, 3)
    velocities = 0.3 * rng.normal(size=lattice.shape)
    return lattice + 0.03 * rng.normal(size=lattice.shape), velocities - velocities.mean(0)


ATOMS = cluster(2)[0]


@example_inputs(ATOMS)
def energy(positions: Any) -> Any:
    """Return the energy of atoms at `positions` (n, 3): the sum over pairs of 4 (r^-12 - r^-6)."""
    _, r2, mask = _pairs(positions)
    s6 = mask / r2**3
    return ops.sum(2 * (s6 * s6 - s6))  # each pair is counted twice: 4 / 2


@example_inputs(ATOMS)
def forces(positions: Any) -> Any:
    """Return the force on each atom, (n, 3), as minus the gradient of `energy`."""
    return -multiop.grad(energy)(positions)


@example_inputs(ATOMS)
def closed_form_forces(positions: Any) -> Any:
    """Return the force on each atom, (n, 3), from the derivative worked out by hand."""
    apart, r2, mask = _pairs(positions)
    s6 = mask / r2**3
    return ops.sum(ops.expand_dims(24 * (2 * s6 * s6 - s6) / r2, -1) * apart, axis=1)


def _pairs(positions: Any) -> tuple[Any, Any, Any]:
    """Return the vectors between atoms (n, n, 3), their squared lengths, one on the diagonal, and a mask off it."""
    apart = ops.expand_dims(positions, 1) - ops.expand_dims(positions, 0)
    diagonal = ops.convert_to_tensor(np.eye(positions.shape[0]), dtype=ops.dtype(positions))
    return apart, ops.sum(apart * apart, axis=-1) + diagonal, 1 - diagonal


def finite_difference_forces(positions: np.ndarray[Any, Any], step: float = 1e-5) -> np.ndarray[Any, Any]:
    """Return the force on each atom from central differences of `energy`."""
    found = np.zeros_like(positions)
    for index in np.ndindex(*positions.shape):
        shift = np.zeros_like(positions)
        shift[index] = step
        ahead, behind = (float(energy(ops.convert_to_tensor(positions + sign * shift))) for sign in (1, -1))
        found[index] = (behind - ahead) / (2 * step)
    return found


def verlet(positions: Any, velocities: Any, steps: int, dt: float = 0.002) -> tuple[Any, list[float]]:
    """Run velocity Verlet for `steps` of `dt`; return the last positions and the total energy at each step."""
    energy_and_gradient = multiop.value_and_grad(energy)
    potential, gradient = energy_and_gradient(positions)
    totals = [float(potential + 0.5 * ops.sum(velocities * velocities))]
    for _ in range(steps):
        halfway = velocities - 0.5 * dt * gradient
        positions = positions + dt * halfway
        potential, gradient = energy_and_gradient(positions)
        velocities = halfway - 0.5 * dt * gradient
        totals.append(float(potential + 0.5 * ops.sum(velocities * velocities)))
    return positions, totals


def run(steps: int = 200, side: int = 3) -> dict[str, Any]:
    """Compute energy and forces in float64, hold them against their oracles, and run the dynamics."""
    multiop.enable_x64()
    start, velocities = cluster(side)
    positions = ops.convert_to_tensor(start)
    found = ops.convert_to_numpy(forces(positions))
    end, totals = verlet(positions, ops.convert_to_tensor(velocities), steps)
    return {
        "energy": float(energy(positions)),
        "forces": found.tolist(),
        "closed_form_error": float(np.abs(found - ops.convert_to_numpy(closed_form_forces(positions))).max()),
        "finite_difference_error": float(np.abs(found - finite_difference_forces(start)).max()),
        "net_force": float(np.abs(found.sum(0)).max()),
        "totals": totals,
        "positions": ops.convert_to_numpy(end).tolist(),
    }


def main() -> None:
    """Print the energy, how far the forces are from each oracle, and the drift of the total energy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    result = run(parser.parse_args().steps)
    totals = np.asarray(result["totals"])
    print(f"backend: {multiop.backend()}")
    print(f"potential energy                      {result['energy']:.9f}")
    print(f"largest force component               {np.abs(result['forces']).max():.9f}")
    print(f"forces against the closed form        {result['closed_form_error']:.1e}")
    print(f"forces against finite differences     {result['finite_difference_error']:.1e}")
    print(f"sum of the forces                     {result['net_force']:.1e}")
    print(f"total energy at the start             {totals[0]:.9f}")
    print(f"largest change over {len(totals) - 1:4d} steps         {np.abs(totals - totals[0]).max():.1e}")


if __name__ == "__main__":
    main()
