"""Functions of complex numbers on their branch cuts, and where squares overflow or vanish, in long doubles."""

import numpy as np

LONG = np.clongdouble


def parts(x, y):
    """Return `x + 1j * y` with the signs of zeros that a sum loses."""
    z = np.empty(np.broadcast(x, y).shape, LONG)
    z.real, z.imag = x, y
    return z


def shifted(z, by):
    return parts(z.real + by, z.imag)


def bounded(z):
    """Return the derivative of arcsin."""
    return 1 / (np.sqrt(shifted(-z, 1)) * np.sqrt(shifted(z, 1)))


def turned(z):
    return parts(-z.imag, z.real)


def log1p(z):  # NumPy's has few digits near 0
    near = np.abs(z) < 0.5
    x, y = (np.where(near, part, 0) for part in (z.real, z.imag))
    far = np.log(shifted(z, 1))
    return parts(np.where(near, np.log1p(x * (2 + x) + y * y) / 2, far.real), far.imag)


def sech_squared(z):
    return 1 / np.square(np.cosh(parts(np.clip(z.real, -5000, 5000), z.imag)))  # beyond, it is 0


FUNCTIONS = {
    "op_sqrt": (np.sqrt, lambda z: 0.5 / np.sqrt(z)),
    "op_rsqrt": (lambda z: 1 / np.sqrt(z), lambda z: -0.5 / np.sqrt(z) / z),
    "op_log": (np.log, lambda z: 1 / z),
    "op_log2": (lambda z: np.log(z) / np.log(np.longdouble(2)), lambda z: 1 / z / np.log(np.longdouble(2))),
    "op_log10": (lambda z: np.log(z) / np.log(np.longdouble(10)), lambda z: 1 / z / np.log(np.longdouble(10))),
    "op_log1p": (log1p, lambda z: 1 / shifted(z, 1)),
    "op_sinh": (np.sinh, np.cosh),
    "op_cosh": (np.cosh, np.sinh),
    "op_tan": (np.tan, lambda z: sech_squared(turned(z))),
    "op_tanh": (np.tanh, sech_squared),
    "op_arcsin": (np.arcsin, bounded),
    "op_arccos": (np.arccos, lambda z: -bounded(z)),
    "op_arctan": (np.arctan, lambda z: 1 / (shifted(turned(z), 1) * shifted(-turned(z), 1))),
    "op_arcsinh": (np.arcsinh, lambda z: bounded(turned(z))),
    "op_arccosh": (np.arccosh, lambda z: 1 / (np.sqrt(shifted(z, -1)) * np.sqrt(shifted(z, 1)))),
    "op_arctanh": (np.arctanh, lambda z: 1 / (shifted(-z, 1) * shifted(z, 1))),
}
SIZES = {"complex64": (0.0, 1e-30, 1e-3, 0.5, 1.0, 2.0, 1e20, 8e37), "complex128": (0.0, 1e-200, 0.5, 2.0, 1e200)}


def points(op, dtype):
    sizes = np.array(SIZES[dtype])
    if op in ("op_sinh", "op_cosh", "op_tan", "op_tanh"):
        sizes = np.append(sizes[sizes < 10], 12)
    sides = np.concatenate([-sizes, sizes])
    x, y = (part.ravel() for part in np.meshgrid(sides, sides))
    pole = (np.hypot(x, y) == 1) | ((x == 0) & (y == 0))
    z = parts(x, y)[~pole].astype(dtype)
    return z, z.astype(LONG)


def missed(found, expected, dtype):
    """Say at which points the numbers differ by more than a few units in the last place."""
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        wrong = ~(np.abs(found.astype(LONG) - expected) <= 32 * info.eps * np.abs(expected) + 4 * info.tiny)
    return np.flatnonzero(wrong & (np.abs(expected) < info.max / 8))
