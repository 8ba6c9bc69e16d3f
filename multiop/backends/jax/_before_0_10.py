"""Eigenvalues and eigenvectors with derivatives, which JAX before 0.10 has for eigenvalues alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .autodiff._held import custom_jvp

lax = jax.lax


def eig(x):
    both = eig_in_rows(x)
    return eigvals(x, both), both[..., :-1, :]


@custom_jvp
def eigvals(x, both):
    return both[..., -1, :]


@eigvals.defjvp
def eigvals_jvp(primals, tangents):
    """Return the tangents that are finite for equal eigenvalues too, where those of the vectors are not."""
    x, both = primals
    return eigvals(x, both), jnp.diagonal(change_within(tangents[0], both[..., :-1, :]), axis1=-2, axis2=-1)


def change_within(tangent, vectors):
    """Return the change of matrices in the bases of their eigenvectors."""
    return jnp.linalg.solve(vectors, jnp.matmul(tangent.astype(vectors.dtype), vectors, precision="highest"))


@custom_jvp
def eig_in_rows(x):
    """Return the eigenvectors of matrices with the eigenvalues as a row below them."""
    values, vectors = lax.linalg.eig(x, compute_left_eigenvectors=False)
    return jnp.concatenate([vectors, values[..., None, :]], -2)


@eig_in_rows.defjvp
def eig_in_rows_jvp(primals, tangents):
    """Return the tangents of what keeps the length of each vector, and its largest entry real."""
    (x,), (tangent,) = primals, tangents
    both = eig_in_rows(x)
    values, vectors = both[..., -1:, :], both[..., :-1, :]
    within = change_within(tangent, vectors)
    itself = jnp.eye(x.shape[-1], dtype=bool)
    gaps = jnp.where(itself, 1, values - values.mT)
    turned = jnp.matmul(vectors, jnp.where(itself, 0, within / gaps), precision="highest")
    length = jnp.sum(jnp.conj(vectors) * turned, -2, keepdims=True).real
    largest = jnp.argmax(jnp.abs(vectors), -2, keepdims=True)
    phase = jnp.take_along_axis(turned, largest, -2).imag / jnp.take_along_axis(vectors, largest, -2).real
    change = turned - vectors * lax.complex(length, phase)
    slopes = jnp.diagonal(within, axis1=-2, axis2=-1)[..., None, :]
    return both, jnp.concatenate([change, slopes], -2)
