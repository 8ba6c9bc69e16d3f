"""Threads that load, switch backend, compile, record and differentiate at once; each answer is held to NumPy's."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import multiop
from multiop import _recent, _registry, errors

BACKENDS = [name for name in ("torch", "jax", "tensorflow") if _registry.is_installed(name)]


def together(n, work):
    """Return what `work(k)` finds wrong in each of `n` threads, which begin at once."""
    barrier = threading.Barrier(n)

    def begin(k):
        barrier.wait(120)
        return work(k)

    with ThreadPoolExecutor(n) as pool:
        return [wrong for found in pool.map(begin, range(n)) for wrong in found]


def close(found, wanted, dtype="float32"):
    found = np.asarray(multiop.op_convert_to_numpy(found), "float64")
    digits = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    return found.shape == np.shape(wanted) and np.allclose(found, wanted, digits, digits)


@multiop.op_custom_gradient
def cube(x):
    return x * x * x, lambda upstream: upstream * 30.0 * x * x  # ten times too large, so that it shows


def numbers(k, dtype="float32", size=None):
    return np.random.default_rng(k).uniform(0.5, 1.5, k % 5 + 1 if size is None else size).astype(dtype)


def test_one_compiled_function(backend):
    """Threads give it shapes and dtypes of their own, and some the same; the first calls are at once."""
    inner = multiop.jit(lambda x: multiop.op_tanh(x) * 2)
    compiled = multiop.jit(lambda x: {"sum": multiop.op_sum(cube(inner(x))), "twice": x * 2})
    dtypes = ["float32", "float64"] if multiop.x64() else ["float32", "float16"]

    def work(k):
        wrong = []
        with multiop.use_backend(backend):
            for n in range(2):
                dtype = dtypes[k // 2 % 2]
                values = numbers((k // 2 + n) % 2, dtype)
                x, exact = multiop.op_convert_to_tensor(values), values.astype("float64")
                found = compiled(x)
                slope = 30 * (2 * np.tanh(exact)) ** 2 * 2 / np.cosh(exact) ** 2
                right = {
                    "sum": close(found["sum"], np.sum((2 * np.tanh(exact)) ** 3), dtype),
                    "twice": close(found["twice"], 2 * exact, dtype),
                    "gradient": close(multiop.grad(lambda x: compiled(x)["sum"])(x), slope, dtype),
                }
                wrong += [(k, n, what) for what, is_right in right.items() if not is_right]
        return wrong

    assert together(8, work) == []


def test_more_programs_than_are_kept(backend, monkeypatch):
    """Threads drop each other's programs all the time."""
    monkeypatch.setattr(_recent.Recent.__init__, "__defaults__", (2,))
    compiled = multiop.jit(lambda x, k: multiop.op_sum(x * x) + k)

    def work(k):
        wrong = []
        with multiop.use_backend(backend):
            for n in range(6):
                values = numbers(k + n, size=1 + n % 3)
                found = compiled(multiop.op_convert_to_tensor(values), n % 3)
                wrong += [] if close(found, np.sum(values * values) + n % 3) else [(k, n, found)]
        return wrong

    assert together(8, work) == []


def one_round(k, n, backends, shared):
    """Switch, compile, record, differentiate, raise; return what is wrong."""
    name = backends[(k + n) % len(backends)]
    values = numbers(k + n, size=2 + n % 3)
    exact = values.astype("float64")
    with multiop.use_backend(name):
        x = multiop.op_convert_to_tensor(values)
        with multiop.GradientTape(persistent=True) as tape:
            watched = tape.watch(x)
            with multiop.GradientTape() as inner:
                again = inner.watch(watched)
                y = multiop.op_sum(cube(again)) + multiop.op_sum(shared(again))
            first = inner.gradient(y, again)
            total = multiop.op_sum(first)
        own = multiop.jit(lambda x: multiop.op_sum(multiop.op_square(x)) + k)
        columns = multiop.vmap(lambda column: cube(column) + shared(column))(x)
        right = {
            "backend": multiop.backend() == name,
            "tape": close(first, 30 * exact**2 + np.cos(exact)),
            "second order": close(tape.gradient(total, watched), 60 * exact - np.sin(exact)),
            "shared": close(shared(x), np.sin(exact)),
            "gradient of shared": close(multiop.grad(lambda x: multiop.op_sum(shared(x)))(x), np.cos(exact)),
            "gradient": close(multiop.grad(lambda x: multiop.op_sum(cube(x)))(x), 30 * exact**2),
            "forward mode": close(multiop.jvp(cube, (x,), (x,))[1], 30 * exact**3),
            "vmap": close(columns, exact**3 + np.sin(exact)),
            "own": close(own(x), np.sum(exact**2) + k),
        }
        with pytest.raises(errors.ArgumentError):
            multiop.op_take(x, [99])
        with multiop.use_backend(backends[(k + n + 1) % len(backends)]):
            right["within"] = close(multiop.op_exp(multiop.op_convert_to_tensor(values)), np.exp(exact))
    return [(k, n, name, what) for what, is_right in right.items() if not is_right]


def stress(threads, rounds, backends):
    shared = multiop.jit(multiop.op_sin)

    def work(k):
        return [wrong for n in range(rounds) for wrong in one_round(k, n, backends, shared)]

    return together(threads, work)


def test_four_threads_of_one_backend(backend):
    assert stress(4, 1, [backend]) == []


@pytest.mark.cross
def test_four_threads_of_every_backend():
    assert stress(4, 1, BACKENDS) == []


@pytest.mark.cross
@pytest.mark.tier("full")
def test_sixteen_threads_of_every_backend():
    assert stress(16, 12, BACKENDS) == []


@pytest.mark.cross
@pytest.mark.tier("full")
def test_nine_threads_load_every_backend_at_once():
    program = (
        "import threading, multiop\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "barrier = threading.Barrier(9)\n"
        "def load(k):\n"
        f"    name = {BACKENDS!r}[k % {len(BACKENDS)}]; barrier.wait()\n"
        "    with multiop.use_backend(name):\n"
        "        return multiop.backend() == name and float(multiop.op_exp(0.0)) == 1.0\n"
        "print(all(ThreadPoolExecutor(9).map(load, range(9))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
