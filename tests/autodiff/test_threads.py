"""Threads that load, switch backends, compile, record and differentiate at once; each answer is compared with NumPy."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import multiop
from multiop import errors
from multiop._loading import registry
from multiop._rules import lru

BACKENDS = [name for name in ("torch", "jax", "tensorflow") if registry.is_installed(name)]


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
    monkeypatch.setattr(lru.Recent.__init__, "__defaults__", (2,))
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


def elsewhere(backend, fun, *args):
    """Return what `fun` returns in another thread, which works with `backend`; raise what it raises."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(within, backend, fun, *args).result()


def within(backend, fun, *args):
    with multiop.use_backend(backend):
        return fun(*args)


def squared_elsewhere(backend, x):
    """Square in another thread, by a custom gradient that is right."""

    @multiop.op_custom_gradient
    def squared(x):
        return elsewhere(backend, lambda: x * x), lambda upstream: 2 * upstream * x

    return squared(x)


def busy(backend, fun, x):
    """Call `fun` in a thread that has computed more than this one."""
    with ThreadPoolExecutor(1) as pool:
        slope = multiop.grad(lambda x: sum(x * n for n in range(200)))
        pool.submit(within, backend, slope, multiop.op_convert_to_tensor(2.0)).result()
        return pool.submit(within, backend, fun, x).result()


def recorded_there(x):
    """Differentiate under a tape of the other thread: 4 x**3 * x."""
    with multiop.GradientTape() as tape:
        x = tape.watch(x)
        y = x * x * x * x
    return tape.gradient(y, x) * x


SLOW = {"compiled": pytest.mark.tier("full")}
COMPUTED = {  # what the other thread computes -> its derivative
    "an op": (multiop.op_square, lambda x: 2 * x),
    "operators": (lambda x: x * x * 3 - x, lambda x: 6 * x - 1),
    "several": (lambda x: multiop.op_sum(multiop.op_stack([x, x * x])) + x, lambda x: 2 * x + 2),
    "a custom gradient": (cube, lambda x: 30 * x * x),
    "compiled": (multiop.jit(lambda x: multiop.op_sin(x) * x), lambda x: np.cos(x) * x + np.sin(x)),
    "a gradient": (lambda x: multiop.grad(lambda x: x * x * x)(x), lambda x: 6 * x),
    "forward mode": (lambda x: multiop.jvp(lambda x: x * x * x, (x,), (x,))[1], lambda x: 9 * x * x),
    "a checkpoint": (lambda x: multiop.checkpoint(multiop.op_sin)(x), np.cos),
    "under a tape": (recorded_there, lambda x: 16 * x**3),
}


RECORDING = ("torch", "numpy")  # what other threads compute, too


def with_a_thread(backend, call):
    """Return what `call` finds with another thread's help; check that JAX refuses, and that TensorFlow finds nothing.

    TensorFlow's tapes record their own thread.
    """
    if backend in RECORDING:
        return call()
    if backend == "tensorflow":
        assert all(grad is None or not np.any(grad) for grad in np.atleast_1d(np.asarray(call(), object)))
        return None
    with pytest.raises((errors.TapeError, errors.ClosedOverError, RuntimeError, TypeError)) as refused:
        call()
    assert isinstance(refused.value, errors.TapeError) or type(refused.value).__name__ == "UnexpectedTracerError"
    return None


@pytest.mark.parametrize("run", [elsewhere, busy])
@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, ())) for name in COMPUTED])
def test_what_another_thread_computes_is_recorded_or_refused_or_constant(backend, name, run):
    fun, slope = COMPUTED[name]

    def call():
        with multiop.GradientTape() as tape:
            x = tape.watch(multiop.op_convert_to_tensor(1.5))
            y = run(backend, fun, x * 2) * 3
        return tape.gradient(y, x)

    found = with_a_thread(backend, call)
    assert backend not in RECORDING or close(found, 6 * slope(3.0))


def test_tapes_around_threads_nest(backend):
    def call():
        with multiop.GradientTape() as outer:
            x = outer.watch(multiop.op_convert_to_tensor(1.5))
            with multiop.GradientTape() as inner:
                x = inner.watch(x)
                y = elsewhere(backend, lambda: cube(x))
            first = inner.gradient(y, x)
        return first, None if first is None else outer.gradient(first, x)

    found = with_a_thread(backend, call)
    assert backend not in RECORDING or (close(found[0], 30 * 1.5**2) and close(found[1], 60 * 1.5))


def test_threads_add_to_one_record(backend):
    def call():
        with multiop.GradientTape(persistent=True) as tape:
            x = tape.watch(multiop.op_convert_to_tensor(numbers(3)))
            with ThreadPoolExecutor(4) as pool:
                parts = list(pool.map(lambda k: within(backend, lambda: multiop.op_sum(x * x) * k), range(8)))
            within_block = tape.gradient(parts[3], x)
            total = sum(parts)
        return within_block, tape.gradient(total, x)

    found = with_a_thread(backend, call)
    assert backend not in RECORDING or (close(found[0], 6 * numbers(3)) and close(found[1], 56 * numbers(3)))


TRANSFORMED = {
    "grad": (lambda backend: multiop.grad(lambda x: elsewhere(backend, lambda: x * x * x)), 3 * 2.0**2),
    "second order": (
        lambda backend: multiop.grad(multiop.grad(lambda x: elsewhere(backend, lambda: x * x * x))),
        6 * 2.0,
    ),
    "vjp": (lambda backend: lambda x: multiop.vjp(lambda x: elsewhere(backend, lambda: x * x), x)[1](x)[0], 8.0),
    "checkpoint": (
        lambda backend: multiop.grad(multiop.checkpoint(lambda x: elsewhere(backend, multiop.op_square, x))),
        4.0,
    ),
    "gradients": (lambda backend: lambda x: multiop.gradients(lambda x: elsewhere(backend, lambda: x * x), x)[0], 4.0),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms_of_functions_that_use_threads(backend, name):
    transform, wanted = TRANSFORMED[name]
    found = with_a_thread(backend, lambda: transform(backend)(multiop.op_convert_to_tensor(2.0)))
    assert backend not in RECORDING or close(found, wanted)


def test_a_custom_gradient_that_uses_a_thread(backend):
    """Its function only sees its inputs, so that nothing is lost."""
    with multiop.GradientTape() as tape:
        x = tape.watch(multiop.op_convert_to_tensor(3.0))
        y = squared_elsewhere(backend, x * 2)
    assert close(tape.gradient(y, x), 24.0)


def test_what_a_thread_of_a_custom_gradient_closes_over_is_not_lost(backend):
    if backend == "tensorflow":
        pytest.skip("a tape records its own thread")
    with multiop.GradientTape() as tape:
        x = tape.watch(multiop.op_convert_to_tensor(3.0))

        @multiop.op_custom_gradient
        def times_x(y):
            return elsewhere(backend, lambda: x * y), lambda upstream: upstream * x

        with pytest.raises((errors.ClosedOverError, errors.TapeError)):
            times_x(x * 2)


def test_threads_beside_a_tape_are_undisturbed(backend):
    """What has nothing to do with the tape is computed, differentiated and freed as usual."""
    values = numbers(4)

    def beside():
        x = multiop.op_convert_to_tensor(values)
        with multiop.GradientTape() as tape:
            watched = tape.watch(x)
            y = multiop.op_sum(cube(watched))
        return x * 2, tape.gradient(y, watched), len(tape.watched_variables())

    before = elsewhere(backend, beside)
    with multiop.GradientTape() as tape:
        x = tape.watch(multiop.op_convert_to_tensor(2.0))
        y = x * x
        during = elsewhere(backend, beside)
        with pytest.raises(errors.ArgumentError):
            elsewhere(backend, multiop.op_take, multiop.op_convert_to_tensor(values), [99])
    assert close(tape.gradient(y, x), 4.0)
    for found in (before, during):
        assert close(found[0], 2 * values) and close(found[1], 30 * values**2)
    assert before[2] == during[2]


def test_a_tape_that_ends_while_another_thread_works(backend):
    started, ended = threading.Event(), threading.Event()
    tape = multiop.GradientTape()

    def work(x):
        first = x * 2
        started.set()
        assert ended.wait(60)
        return first + x * 3

    with ThreadPoolExecutor(1) as pool:
        with tape:
            x = tape.watch(multiop.op_convert_to_tensor(2.0))
            y = x * x
            handed = multiop.op_stop_gradient(x)
            future = pool.submit(within, backend, work, handed)
            assert started.wait(60)
        ended.set()
        assert close(future.result(), 10.0)
    assert close(tape.gradient(y, x), 4.0)


class Held:
    """An object with attributes, for a rule to close over."""


@pytest.mark.parametrize("changed_by", ["thread", "garbage collector"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_rule_closes_over_may_change_meanwhile(backend, changed_by):
    """Such as a cache with weak keys: the garbage collector takes entries away while the walk looks at them."""
    entries, held, numbers = {k: [k] for k in range(3000)}, Held(), set(range(100))
    vars(held).update({f"a{k}": [k] for k in range(100)})
    view = types.MappingProxyType(entries)
    counter = itertools.count(10**6)
    done = threading.Event()

    def change(*_):
        k = next(counter)
        entries[k] = [k]
        entries.pop(k - 5, None)
        setattr(held, f"a{k}", k)
        vars(held).pop(f"a{k - 5}", None)
        numbers.symmetric_difference_update((k, k - 5))

    def keep_changing():
        while not done.is_set():
            change()

    @multiop.op_custom_gradient
    def scaled(x):
        return x * 1.0, lambda upstream: upstream * (7.0 if held and entries and view and numbers else 0.0)

    thread = threading.Thread(target=keep_changing)
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    try:
        with multiop.use_backend(backend):
            if changed_by == "thread":
                sys.setswitchinterval(1e-6)
                thread.start()
            else:
                gc.callbacks.append(change)
                gc.set_threshold(50)
            for _ in range(10):
                assert close(multiop.grad(lambda x: multiop.op_sum(scaled(x)))(np.ones(3, "float32")), np.full(3, 7.0))
    finally:
        done.set()
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
        if change in gc.callbacks:
            gc.callbacks.remove(change)
        if thread.is_alive():
            thread.join()
