"""Functions that were written for NumPy are differentiated as they are."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import multiop as mo
from multiop import errors

rng = np.random.default_rng(0)
A, X = rng.normal(size=(4, 4)), rng.uniform(0.5, 1.5, 4)
M = A @ A.T + 4 * np.eye(4)

FUNCTIONS = {
    "sum of a power": lambda p: np.sum(p**3),
    "sum along an axis": lambda p: np.sum(np.sum(A * p, 1) ** 2),
    "sum by name": lambda p: (np.sum(A * p, axis=1, keepdims=True) ** 2).sum(),
    "mean, max and min": lambda p: np.mean(p) * np.max(p) * p.min(),
    "var with ddof": lambda p: np.var(p, ddof=1) + np.std(A * p, axis=0, ddof=1).sum(),
    "prod and cumsum": lambda p: np.prod(p) * np.cumsum(p).sum(),
    "where": lambda p: np.sum(np.where(X > 1, p, p * p)),
    "a mask": lambda p: np.sum(p[X > 1] ** 2),
    "clip": lambda p: np.clip(p * p, 0.6, 1.2).sum(),
    "norm": lambda p: np.linalg.norm(2 * p),
    "concatenate": lambda p: np.sum(np.concatenate([p, p * p], axis=0) ** 2),
    "stack": lambda p: np.sum(np.stack([p, p * p], axis=1) ** 2) + np.vstack([p, X]).sum(),
    "split": lambda p: np.sum(np.split(p, 2)[1] ** 2),
    "reshape": lambda p: np.sum(p.reshape(2, 2) @ np.reshape(p, (2, 2))),
    "products": lambda p: np.dot(p, p) * np.outer(p, p).T.sum() + p @ A @ p + (A @ p).sum(),
    "einsum": lambda p: np.einsum("ij,i,j->", A, p, p),
    "tensordot": lambda p: np.sum(np.tensordot(A, p, 1) ** 2),
    "solve, inv and slogdet": lambda p: np.sum(np.linalg.solve(M, p)) + np.linalg.slogdet(M + np.diag(p))[1],
    "cholesky": lambda p: np.linalg.cholesky(M + np.diag(p)).sum(),
    "rfft": lambda p: np.sum(np.abs(np.fft.rfft(p)) ** 2 * [1, 2, 3]),
    "fft": lambda p: np.sum(np.abs(np.fft.fft(p * p, 6)) ** 2 * np.arange(6)),
    "irfft": lambda p: np.sum(np.fft.irfft(np.fft.rfft(p)) ** 3),
    "a scalar of NumPy": lambda p: np.sum(np.float64(2) * p * p),
    "ufunc methods": lambda p: np.add.reduce(p * p) + np.maximum.reduce(p) + np.add.accumulate(p).sum(),
    "roll, diff and flip": lambda p: np.sum(np.roll(p, 1) * np.flip(p)) + np.sum(np.diff(p) ** 2),
    "sort and median": lambda p: np.sum(np.sort(p) * np.arange(4)) + np.median(p),
    "a function of SciPy": lambda p: np.sum(scipy.special.expit(p) * scipy.special.gammaln(p)),
    "rows": lambda p: sum(q**2 for q in p),
    "transforms along several axes": lambda p: (
        (np.abs(np.fft.fft2(A * p, (3, 6))) ** 2 * np.arange(6)).sum()
        + (np.fft.irfftn(np.fft.rfftn(A * p, axes=(1, 0), norm="ortho")) ** 3).sum()
    ),
    "transforms whose options are named": lambda p: (
        np.sum(
            np.abs(np.fft.fftn(A * p, s=(3, 6), axes=(1, 0))) ** 2 * np.arange(3)
            + np.real(np.fft.fft(A * p, n=6, axis=0) * np.fft.ifft(A * p, 3, 1, "ortho")[0, 0])[:, :3] ** 2
        )
        + np.sum(np.fft.hfft(np.fft.ihfft(p), n=5) ** 3)
    ),
    "counts and correlations": lambda p: (
        np.sum(np.bincount([0, 2, 0, 1], weights=p) ** 2) + np.sum(np.correlate(p, p, "full") ** 2)
    ),
    "entries that are picked twice": lambda p: np.sum(p[[1, 2, 2, -1]] ** 3) + np.sum((A * p)[1:, [0, 0, 3]] ** 2),
    "labels that are numbers": lambda p: np.einsum(A, [0, 1], p, [1], A * p, [1, ...], [...]).sum(),
    "a plan of products": lambda p: np.einsum("i,ij,jk->k", p, A * p, M, optimize="greedy") @ X,
    "a list among arrays": lambda p: np.sum(np.concatenate([p, [p[0] * p[1], 2.0], A[0]]) ** 3),
    "entries one by one": lambda p: sum(q**2 for q in (A * p).flat) * (A * p).flat[5],
    "Hurwitz's zeta function": lambda p: np.sum(scipy.special.zeta(3.0, p) * p),
    "blocks": lambda p: np.sum(np.block([[A * p, p[:, None]], [p, 1.0]]) ** 3),
    "parts in order": lambda p: np.sum(np.partition(p * p, 2)[:2] ** 2),
    "eigenvalues": lambda p: np.sum(np.linalg.eig(M + np.diag(p))[0] ** 2),
    "Bessel functions": lambda p: np.sum(scipy.special.j0(p) * scipy.special.i1e(p) * scipy.special.yn(2, p)),
    "degrees": lambda p: np.sum(np.sin(np.radians(p * 9)) + np.degrees(p) * p),
    "windows that slide": lambda p: (
        np.sum(np.lib.stride_tricks.sliding_window_view(p, 3).mean(-1) ** 3)
        + np.sum(np.lib.stride_tricks.sliding_window_view(A * p, (2, 3)) ** 2 * np.arange(6).reshape(2, 3))
    ),
    "a table of pairs": lambda p: np.sum(np.subtract.outer(p, A * p) ** 3) + np.multiply.outer(X, p).sum(),
    "a product of several": lambda p: np.linalg.multi_dot([A * p, M, A, p]).sum() + np.polyfit(X, p**2, 1).sum(),
    "numbers of Python": lambda p: (
        p[0] * round(p[1], 1) * (1 + round(p[1])) * math.floor(p[2] * 9) * math.ceil(p[3]) * (1 + math.trunc(p[0]))
        + divmod(p[1], 0.3)[1] ** 2 * divmod(p[1], 0.3)[0]
        + divmod(2.0, p[0])[1] ** 2
    ),
    "entries that are left out": lambda p: (
        np.sum(np.delete(p, 1) ** 2)
        + np.sum(np.delete(A * p, [0, 2], 1) ** 2)
        + np.sum(np.delete(A * p, 1, axis=0))
        + np.sum(np.compress([0, 1], A * p, axis=0) ** 2)
        + np.sum(np.extract(A > 0, A * p) ** 2)
    ),
    "names of the array API": lambda p: (
        np.sum(np.matrix_transpose(A * p) @ p)
        + np.sum((A * p).mT @ p)
        + np.linalg.svdvals(A * p)[:2].sum()
        + np.linalg.vector_norm(A * p, axis=1, ord=3).sum()
        + np.linalg.matrix_norm(A * p, ord="nuc")
        + np.sum(np.unstack(A * p, axis=1)[2] ** 2)
    ),
    "roots": lambda p: np.sum(np.abs(np.roots(p)) * np.arange(3)) + np.sum(np.poly(p) * np.arange(5)),
    "unique": lambda p: np.sum(np.unique(p) * np.arange(4)) + np.sum(np.unique(p, return_index=True)[0] ** 2),
    "truth": lambda p: np.sum(p * True * (p * p / True)) + np.dot(p, p) * isinstance(A, np.ndarray) - False * p[0],
    "a copy": lambda p: np.sum(copy.deepcopy({"p": p})["p"] * copy.copy(p) * np.copy(p)),
    "text": lambda p: np.sum(p**2) * len(f"{p[0]:.3f} {p[1]:8.2e}{p[2]:>+7.2f}"),
    "the order of Fortran": lambda p: (
        np.sum(np.reshape(A * p, (2, 8), order="F")[1] ** 2 * np.arange(8))
        + np.sum((A * p).ravel("F") * (A * p).flatten("F") * np.arange(16))
        + np.sum(p.reshape((2, 2), order="F") @ np.ravel(p, "F").reshape(2, 2))
    ),
    "Python's float": lambda p: np.sum(p.astype(float) ** 2) + np.sum(p, dtype=float) * np.mean(p, None, float),
    "entries that are put between": lambda p: (
        np.sum(np.insert(p, [1, 3], p[:2] ** 2) * np.arange(6))
        + np.sum(np.insert(A, 2, p * p, axis=1) ** 2)
        + np.sum(np.insert(A * p, 1, 2.0) ** 2)
    ),
    "divmod, rint and fix": lambda p: np.divmod(p, 0.3)[1] @ np.divmod(2.0, p)[1] + np.sum(np.rint(p) * p * np.fix(+p)),
    "products of rows": lambda p: (
        np.vecdot(A * p, p) @ X
        + np.sum(np.linalg.vecdot(A * p, A * p) ** 2)
        + (np.matvec(A * p, p) @ np.vecmat(p, A * p) if hasattr(np, "matvec") else 0)
    ),
    "parts of a domain": lambda p: np.sum(
        np.piecewise(p, [p < 0.8, p > 1.2], [lambda q, k: np.log(q) * k, 3.0, lambda q, k: k * q * q], 2.0) ** 3
    ),
    "functions of rows": lambda p: (
        np.sum(np.apply_along_axis(lambda q: q.sum() ** 2, 0, A * p))
        + np.sum(np.apply_along_axis(lambda q: q[:2] * q[2:], 1, A * p) ** 2)
    ),
    "differences with ends": lambda p: (
        np.sum(np.diff(p, prepend=p[0] ** 2, append=0.0) ** 2)
        + np.sum(np.diff(A * p, 2, 0, append=A[:2]) ** 2)
        + np.sum(np.ediff1d(p, to_end=p[:2]) ** 3)
    ),
    "entries that a mask picks": lambda p: (
        np.sum(p, where=X > 1) ** 2
        + np.prod(A * p, 1, where=A > 0, initial=2.0).sum()
        + np.max(p, initial=0.1, where=X < 1)
        + np.sum(p**2, initial=3.0) ** 2
    ),
    "choices and places": lambda p: (
        np.sum(np.choose([0, 1, 1, 0], [p, p * p]) ** 2)
        + np.sum(np.take(p, [1, 6], mode="wrap") * np.take(p, [1, 6], mode="clip"))
        + np.sum(np.resize(p, (2, 3)) ** 2 * np.arange(3))
        + np.concatenate([A * p, p], axis=None)[4:] @ np.arange(16)
    ),
    "results with names": lambda p: (
        np.linalg.slogdet(M + np.diag(p)).logabsdet
        + np.linalg.eigh(M + np.diag(p)).eigenvalues @ X
        + np.linalg.svd(A * p, compute_uv=True).S @ X
        + np.sum(np.linalg.qr(A * p).R ** 3)
        + np.sum(np.linalg.qr(A * p, "r") ** 3)
    ),
    "least squares and condition": lambda p: (
        np.sum(np.linalg.lstsq(A[:, :2] * p[:2], p, rcond=None)[0])
        + np.linalg.lstsq(A[:, :2] * p[:2], p, rcond=None)[1].sum()
        + np.linalg.cond(A * p)
        + np.linalg.cond(A * p, 1)
    ),
    "polynomials": lambda p: (
        np.sum(np.polymul(p, p) ** 2)
        + np.polyadd(p, [1.0, 2]) @ p
        + np.polysub([2.0], p) @ p
        + np.sum(np.polyder(p, 2) ** 2)
        + np.sum(np.polyint(p) ** 2)
    ),
    "sums so far": lambda p: (
        np.sum(np.cumulative_sum(p, include_initial=True) ** 2) + np.cumulative_prod(A * p, axis=1).sum()
        if hasattr(np, "cumulative_sum")
        else np.sum(np.cumsum(p) ** 2)
    ),
    "entries as a list": lambda p: (
        sum(p.tolist()) * p.item(2) * p[1].item() + (A * p).tolist()[1][2] * (A * p).item(1, 0)
    ),
    "orders that are cut": lambda p: np.sum(scipy.special.kn(2, p) * scipy.special.k0e(p)) + np.i0(p) @ p,
    "more names": lambda p: np.sum(np.angle(p + 2j, deg=True) * scipy.special.exp10(p)) + np.corrcoef(p, X)[0, 1],
    "ufuncs of the entries in order": lambda p: (
        np.subtract.reduce(p) * np.hypot.reduce(A * p, axis=1, keepdims=True)[0, 0]
        + np.logaddexp.accumulate(p) @ np.logaddexp.reduce(A * p)
        + np.sum(np.divide.accumulate(A * p, 1)[:, 2] ** 2)
        + np.logaddexp.reduce(A * p, axis=None, keepdims=True)[0, 0]
        + np.add.reduceat(p, [0, 2, 1]) @ np.multiply.reduceat(A * p, [0, 1, 3], axis=1)[0]
    ),
    "equations of tensors": lambda p: (
        np.linalg.tensorsolve(np.reshape(M * p, (2, 2, 4)), A[:2, :2]) @ X
        + np.linalg.tensorsolve(np.reshape(M * p, (2, 4, 2)), A[:2, :2], axes=(1,)) @ X
        + np.sum(np.linalg.tensorinv(np.reshape(M * p, (4, 2, 2)), ind=1)[0] ** 2)
    ),
    "weights in bins": lambda p: (
        np.histogram([0.0, 0.3, 1.0, 3.0], 4, (0, 1), weights=p * p)[0] @ X
        + np.histogram([0.0, 0.3, 1.0, 3.0], [0, 0.3, 0.7, 3.0], weights=p, density=True)[0] @ X[:3]
    ),
    "sets": lambda p: np.setdiff1d(p * p, p[:1] ** 2) @ X[:3] * np.intersect1d(A[0] * p, A[0, :2] * p[:2]) @ X[:2],
    "functions of statistics": lambda p: (
        np.sum(scipy.special.huber(0.8, p - 1) * scipy.special.huber(p, 2.0))
        + np.sum(scipy.special.chdtr(3, p) * scipy.special.gdtr(p[0], 2.0, p))
        + np.sum(scipy.special.chdtrc(3, p) * scipy.special.gdtrc(2, 3.0, p))
    ),
    "noise": lambda p: np.sum(np.random.default_rng(1).normal(size=4) * p**2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_numpy_is_differentiated(name):
    f, steps = FUNCTIONS[name], 1e-5 * np.eye(4)
    wanted = np.array([(f(X + step) - f(X - step)) / 2e-5 for step in steps])
    gradient = mo.grad(f)
    np.testing.assert_allclose(gradient(X), wanted, rtol=1e-7, atol=1e-8)
    assert gradient(X).dtype == np.float64
    np.testing.assert_allclose(mo.jvp(f, (X,), (A[0],))[1], wanted @ A[0], rtol=1e-7, atol=1e-8)
    second = np.array([(gradient(X + step) - gradient(X - step)) / 2e-5 for step in steps])
    np.testing.assert_allclose(mo.hessian(f)(X), second, rtol=1e-6, atol=1e-7)


WAYS = {  # calls that end a gradient, and what their errors name
    r"scipy's logsumexp.*op_logsumexp": lambda p: scipy.special.logsumexp(p * p),
    r"np.asarray.*SciPy's functions and matrices": lambda p: np.sum(scipy.linalg.cho_factor(M + np.diag(p))[0]),
    r"np.asarray.*write np.dot\(a, x\)": lambda p: A.dot(p).sum(),
    r"np.add.*write y = y \+ x": lambda p: np.ones(4).__iadd__(p).sum(),
    r"entry of another array.*op_stack or op_set_item": lambda p: np.zeros(4).__setitem__(0, p[0]),
    r"np.vectorize.*op_vectorize": lambda p: np.vectorize(lambda q: q * q)(p).sum(),
    r"np.r_.*op_concatenate": lambda p: np.sum(np.r_[p, 1.0]),
    r"np.copyto.*op_set_item": lambda p: np.sum(np.full_like(X, p[0])),
    r"np.polynomial's polyval.*one of those in docs/ops.md": lambda p: np.polynomial.polynomial.polyval(2.0, p),
    r"np.add.at.*op_add_at": lambda p: np.add.at(np.zeros(4), [0, 0], p[:2]),
    r"np.put .*op_set_item": lambda p: np.put(np.zeros(4), [0], p[:1]),
    r"np.MaskedArray.*op_where": lambda p: np.ma.masked_array(p, X > 1).sum(),
    r"np.take .*op_take": lambda p: np.take(p, [1], out=np.zeros(1)),
    r"np.maximum.at.*one of those in docs/ops.md": lambda p: np.maximum.at(np.zeros(4), [0], p[:1]),
    r"np.histogram_bin_edges": lambda p: np.sum(np.histogram(p)[1]),
    r"np.ravel.*op_ravel": lambda p: p.ravel("K").sum(),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_would_end_a_gradient_names_the_way_out(way):
    with pytest.raises(errors.UnsupportedError, match=way):
        mo.grad(WAYS[way])(X)


OPERATIONS = [
    lambda p, m: m * p, lambda p, m: p * m, lambda p, m: m @ p, lambda p, m: p**m, lambda p, m: np.multiply(p, m),
    lambda p, m: np.dot(m, p), lambda p, m: np.concatenate([m, p]), lambda p, m: np.where(A > 0, p, m),
    lambda p, m: np.linalg.solve(m, p), lambda p, m: np.einsum("ij,jk", p, m), lambda p, m: np.arctan2(m, p),
]  # fmt: skip


@pytest.mark.parametrize("call", OPERATIONS)
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_an_array_whose_operators_are_its_own_is_refused(call):
    class Unit(np.ndarray):
        def __array_ufunc__(self, *args, **kwargs):
            return NotImplemented

    for own in (np.matrix(M), M.view(Unit), np.ma.masked_array(M, A > 0)):
        with pytest.raises(errors.MultiopError, match=r"operators of its own.*np.asarray|masked array|np.MaskedArray"):
            mo.grad(lambda p, own=own: call(p, own).sum())(A)
    plain = M.view(np.recarray)  # as np.memmap is: only its memory is another
    gradient = mo.grad(lambda p, m: call(p, m).sum())
    np.testing.assert_array_equal(gradient(A, plain), gradient(A, M))


def test_what_has_no_op_says_what_to_use():
    for call in (
        lambda p: np.trim_zeros(p), lambda p: np.var(p, mean=0.0), lambda p: np.mean(p, where=X > 1),
        lambda p: np.hypot.reduce(A * p, (0, 1)), lambda p: np.sum(p, out=X), lambda p: np.exp(p, where=X > 1),
        lambda p: np.linalg.svd(M * p, True, True, True), lambda p: np.concatenate([p, p], dtype="float32"),
    ):  # fmt: skip
        with pytest.raises(errors.UnsupportedError, match="use an op of multiop"):
            mo.grad(call)(X)


VALUES = [
    lambda p: np.interp(p, [0.0, 1.0, 2.0], [1.0, 3.0, 2.0]),
    lambda p: np.select([p > 1, p > 0.7], [p, 2 * p], 5.0),
    lambda p: np.kron(p, A),
    lambda p: np.cross(p[:3], A[0, :3]),
    lambda p: np.append(p, [1.0, 2.0]),
    lambda p: np.percentile(p, 30.0),
    lambda p: np.quantile(A * p, 0.3, axis=1),
    lambda p: np.convolve(p, X, "same"),
    lambda p: np.average(p, weights=[1.0, 2, 3, 4]),
    lambda p: np.trapezoid(p, dx=0.5),
    lambda p: np.trapezoid(p, X),
    lambda p: np.pad(p, (1, 2), "edge"),
    lambda p: np.pad(p, 1, constant_values=2.0),
    lambda p: np.tile(p, (2, 3)),
    lambda p: np.repeat(A * p, 2, 1),
    lambda p: np.moveaxis(A * p, 0, 1),
    lambda p: np.take(p, [1, 2], 0),
    lambda p: np.take_along_axis(p, np.array([1, 0]), 0),
    lambda p: np.round(p, 1),
    lambda p: np.full_like(p, 3.0),
    lambda p: np.linalg.eigh(M + np.diag(p))[0],
    lambda p: np.linalg.svd(A * p)[1],
    lambda p: np.linalg.pinv(A * p),
    lambda p: np.linalg.norm(A * p, 1),
    lambda p: np.linalg.norm(A * p, axis=1),
    lambda p: np.linalg.det(M + np.diag(p)),
    lambda p: np.vdot(p, p),
    lambda p: np.inner(A, p),
    lambda p: np.trace(A * p, 1),
    lambda p: np.tril(A * p, -1),
    lambda p: np.diag(p, 1),
    lambda p: np.diagonal(A * p),
    lambda p: np.dstack([p, p]),
    lambda p: np.column_stack([p, p]),
    lambda p: np.array_split(p, 3)[0],
    lambda p: np.broadcast_to(p, (2, 4)),
    lambda p: np.nan_to_num(p / 0.0),
    lambda p: np.argsort(-p),
    lambda p: np.argmax(A * p, 1),
    lambda p: np.cumprod(A * p, 0),
    lambda p: np.fliplr(A * p),
    lambda p: p.astype("float32"),
    lambda p: (A * p).transpose(1, 0),
    lambda p: (p * 1j).imag,
    lambda p: p.flatten(),
    lambda p: np.nonzero(p > 1)[0],
    lambda p: np.cov(A)[0] * p,
    lambda p: np.linalg.eigvalsh(M + np.diag(p)),
    lambda p: np.fft.fft(A * p, axis=0).real,
    lambda p: np.fft.ifft(p).imag,
    lambda p: np.split(p, [1, 3])[1],
    lambda p: np.einsum("i,j", p, p, optimize=True),
    lambda p: np.mean(p, dtype="float32"),
    lambda p: np.max(p, initial=9.0),
    lambda p: np.fft.ifftn(A * p, axes=(0,)).real,
    lambda p: np.fft.irfft(np.fft.rfft(p, 5), 5),
    lambda p: np.fft.fftshift(p),
    lambda p: np.einsum(A, [0, 1], p, [1]),
    lambda p: np.atleast_1d(p[0], p)[0],
    lambda p: np.atleast_2d(p),
    lambda p: np.atleast_3d(p),
    lambda p: np.atleast_3d(A * p),
    lambda p: np.block([[p, p], [p, p]]),
    lambda p: np.block([p, np.ones(2)]),
    lambda p: np.rollaxis(np.reshape(p, (2, 1, 2)), 2),
    lambda p: np.rollaxis(np.reshape(p, (2, 1, 2)), 0, 3),
    lambda p: np.rollaxis(np.reshape(p, (2, 1, 2)), 1, -1),
    lambda p: np.real_if_close(p + 0j),
    lambda p: np.real_if_close(p + 1j).real,
    lambda p: np.gradient(p, 0.5),
    lambda p: np.linspace(p, 2.0, 5),
    lambda p: np.nanmean(A * p, axis=1),
    lambda p: np.cov(A * p),
    lambda p: np.unwrap(9 * p),
    lambda p: np.meshgrid(p, X)[1],
    lambda p: np.rot90(A * p),
    lambda p: np.angle(p * (1 + 2j)),
    lambda p: np.searchsorted(p, 0.9),
    lambda p: np.isclose(p, 1.0, atol=0.3),
    lambda p: np.count_nonzero(p > 1),
    lambda p: scipy.special.k1(p),
    lambda p: np.union1d(p, A[0]),
    lambda p: np.linalg.solve(np.stack([M * p, M, M, M + p]), M),
    lambda p: np.linalg.solve(np.stack([M * p, M]), X),
    lambda p: np.linalg.trace(np.stack([A * p, A])),
    lambda p: np.linalg.diagonal(np.stack([A * p, A, A])),
    lambda p: np.sum(p, dtype="f8"),
    lambda p: np.insert(np.arange(3), 1, p[:2]),
    lambda p: np.concatenate([p, A], axis=None, casting="same_kind"),
]


@pytest.mark.parametrize("k", range(len(VALUES)))
def test_values_are_those_of_numpy(k):
    with np.errstate(all="ignore"), mo.GradientTape() as tape:
        wanted = VALUES[k](X)
        found = mo.op_convert_to_numpy(mo.op_stop_gradient(VALUES[k](tape.watch(X))))
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12)


def test_float32_stays():
    for call in (lambda p: np.ediff1d(p, to_end=p), lambda p: np.insert(p, 1, 2.0), lambda p: np.diff(p, prepend=0)):
        assert mo.vjp(call, X.astype(np.float32))[0].dtype == np.float32


class Series:
    """What multiop sees of a Series of pandas: it makes an array of itself, and of what stands beside it."""

    __module__ = "pandas.core.series"

    def __init__(self, numbers):
        self.numbers = np.asarray(numbers)
        self.dtype, self.shape = self.numbers.dtype, self.numbers.shape

    def __array__(self, dtype=None, copy=None):
        return np.array(self.numbers, dtype)

    def to_numpy(self):
        return np.array(self.numbers)

    def __mul__(self, other):
        return NotImplemented if getattr(other, "__pandas_priority__", 0) > 3000 else self.numbers * np.asarray(other)


@pytest.fixture(params=["stand-in", "pandas"])
def series(request):
    return Series if request.param == "stand-in" else pytest.importorskip("pandas").Series


def test_a_column_of_pandas_is_its_numbers(series):
    column = series(X)
    assert mo.op_exp(column).dtype == mo.op_convert_to_tensor([column, column]).dtype == np.float64
    for call in (
        lambda p: mo.op_sum(mo.op_multiply(p, column)), lambda p: mo.op_sum(p * column), lambda p: (column * p).sum(),
        lambda p: np.sum(np.multiply(p, column)), lambda p: mo.op_sum(mo.op_where(X > 0, p * column, 0.0)),
    ):  # fmt: skip
        assert mo.grad(call)(np.ones(4)).tolist() == X.tolist()
    assert mo.grad(lambda p: mo.op_hypot(p, series([4.0]))[0])(np.array([3.0])).tolist() == [0.6]


def test_an_error_names_what_pandas_gave(series):
    with pytest.raises(errors.ArgumentTypeError, match=r"got pandas\.Series of float64\[4\]; write \.to_numpy\(\)"):
        mo.grad(mo.op_sum)(series(X))
    with pytest.raises(errors.DTypeError, match=r"a pandas\S*\.Series of dtype datetime64"):
        mo.op_exp(series(np.array(["2020-01-01"], "datetime64[s]")))
