"""Random programs agree in every mode, and with NumPy; `nox -s search -- fuzz` draws 500 of each generator.

A difference that was found is kept here as its source, made smaller, until the end of time.
"""

from __future__ import annotations

import argparse
import collections
import os
import time

import dual_numbers as reference
import numpy as np
import pytest
import random_programs
import seam_programs
import sized_programs
import small_programs
from random_programs import (
    ALONE,
    TURNS,
    WAYS,
    Block,
    Difference,
    Kind,
    Step,
    compiled,
    draw,
    find,
    look,
    minimised,
    ways_of,
)
from scripts import failure
from seam_programs import CALLS, Frame, Seam
from sized_programs import FAMILIES, ORDER, Sized
from small_programs import Small
from spread_programs import Found, spread

import multiop
from multiop import ops

HEAD = "import multiop\nfrom multiop import ops\n\n"
KEPT: dict[str, tuple[tuple[str, ...], str, str]] = {  # name -> traits, the way that shows it (or all), source
    "the gradient of forward mode through a kernel": (
        (),
        "",
        HEAD + "def program(x, y, z, s):\n"
        "    return multiop.jvp(lambda a: ops.layer_normalization(a, epsilon=0.1), (x,), (x,))[1] * 0.5\n",
    ),
    "a custom gradient of an intermediate inside another": (
        ("alone", "odd"),
        "",
        HEAD + "def program(x, y, z, s):\n"
        "    @multiop.op_custom_gradient\n"
        "    def inner(a):\n"
        "        return a * 1.0, lambda upstream: upstream * ops.exp(-ops.square(a))\n"
        "    @multiop.op_custom_gradient\n"
        "    def outer(a):\n"
        "        return inner(a * ops.tanh(a)), lambda upstream: 0.5 * a * upstream\n"
        "    return outer(s)\n",
    ),
    "forward mode of a rule through the gradient of a kernel": (
        ("alone",),
        "duality",
        HEAD + "def program(x, y, z, s):\n"
        "    def f(a):\n"
        "        return ops.softmax(a, axis=-1)\n"
        "    @multiop.op_custom_gradient\n"
        "    def custom(a):\n"
        "        return f(a), lambda upstream: multiop.vjp(f, a)[1](upstream)[0]\n"
        "    return custom(y)\n",
    ),
    "forward mode of a rule through a custom gradient that leaves out an argument": (
        ("alone",),
        "duality",
        HEAD + "def program(x, y, z, s):\n"
        "    @multiop.op_custom_gradient\n"
        "    def first(a, b):\n"
        "        return ops.tanh(a), lambda upstream: (upstream * (1 - ops.tanh(a) ** 2), None)\n"
        "    def f(a, b):\n"
        "        return first(a, ops.sin(b))\n"
        "    @multiop.op_custom_gradient\n"
        "    def custom(a, b):\n"
        "        return f(a, b), lambda upstream: multiop.vjp(f, a, b)[1](upstream)\n"
        "    return custom(y, y)\n",
    ),
    "forward mode of a rule through a loop of which some is not used": (
        ("alone",),
        "duality",
        HEAD + "def program(x, y, z, s):\n"
        "    def f(a):\n"
        "        return ops.map(lambda r: (ops.tanh(r), ops.min(a / (1 + ops.square(a))))[0], a)\n"
        "    @multiop.op_custom_gradient\n"
        "    def custom(a):\n"
        "        return f(a), lambda upstream: multiop.vjp(f, a)[1](upstream)[0]\n"
        "    return custom(x)\n",
    ),
    "a checkpoint of inputs that come from each other": (
        (),
        "",
        HEAD + "def program(x, y, z, s):\n"
        "    return multiop.checkpoint(lambda a, b: ops.sin(a) * b)(z, ops.flip(ops.square(z), axis=0))\n",
    ),
    "the gradient of a gradient that is zero, through a kernel": (
        (),
        "second order",
        HEAD + "def program(x, y, z, s):\n    return ops.abs(ops.arctan2(x, 1 + ops.square(x)))\n",
    ),
    "forward mode of a rule that differentiates a loop in reverse": (
        ("alone", "while"),
        "forward mode",
        HEAD + "def program(x, y, z, s):\n"
        "    def f(a):\n"
        "        return ops.while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, ops.tanh(c)), (0, a))[1]\n"
        "    @multiop.op_custom_gradient\n"
        "    def custom(a):\n"
        "        return f(a), lambda upstream: multiop.vjp(f, a)[1](upstream)[0]\n"
        "    return custom(s)\n",
    ),
}


@pytest.mark.tier("full")
@pytest.mark.parametrize("seed", [0, *range(8, 13)])
def test_a_random_program_is_the_same_in_every_mode(backend, seed):
    program = draw(seed, size=(3, 8))
    difference = look(program, [backend])
    assert difference is None, f"{difference.message}\n{program.source}"


@pytest.mark.cross
@pytest.mark.tier("full")
@pytest.mark.parametrize("seed", range(100, 110))
def test_a_random_program_is_the_same_on_every_backend(seed):
    program = draw(seed)
    difference = look(program, ["torch", "jax", "tensorflow"])
    assert difference is None, f"{difference.message}\n{program.source}"


@pytest.mark.parametrize("name", KEPT)
def test_what_was_found_stays_mended(backend, name):
    traits, way, source = KEPT[name]
    assert find(source, [backend], traits=traits, only=way) is None


def test_every_program_can_be_drawn():
    for seed in range(60):
        program = draw(seed)
        compiled(program.source)
        assert 5 <= len(program.block.steps) <= 40


def test_a_program_is_drawn_again_from_its_seed():
    assert draw(3).source == draw(3).source != draw(4).source


@pytest.mark.cross
@pytest.mark.tier("full")
def test_a_value_of_one_backend_alone_is_found():
    source = HEAD + "def program(x):\n    return x * (1 + 1e-9 * (multiop.backend() == 'jax'))\n"
    difference = find(source, ["torch", "jax"], inputs=("x",))
    assert difference is not None
    assert (difference.what, difference.backends) == ("value", ("torch", "jax"))


# the same on both backends but for rounding, of which rounding the inputs otherwise shows nothing
CANCELS = {
    "far from zero": "x if multiop.backend() == 'jax' else (x + 1e6) - 1e6",
    "zero": "x * 0.7 - x * 0.7 if multiop.backend() == 'jax' else (x + 0.3 * x) - x - 0.3 * x",
    "a slope that vanishes": "ops.tanh(9 + x) if multiop.backend() == 'jax' else 1 - 2 / (1 + ops.exp(18 + 2 * x))",
}


@pytest.mark.cross
@pytest.mark.tier("full")
@pytest.mark.parametrize("name", CANCELS)
@pytest.mark.parametrize("way", ["value", "gradient", "forward mode"])
def test_rounding_within_a_program_is_no_difference_and_hides_none(name, way):
    source = HEAD + f"def program(x):\n    return {CANCELS[name]}\n"
    assert find(source, ["torch", "jax"], inputs=("x",), only=way) is None
    faulty = source.replace("return ", "return x * 1e-6 * (multiop.backend() == 'jax') + (").rstrip() + ")\n"
    difference = find(faulty, ["torch", "jax"], inputs=("x",), only=way)
    assert difference is not None
    assert difference.what == way


CUSTOM = "@multiop.op_custom_gradient\ndef program(x):\n    return "
ANEW = "import itertools\ncount = itertools.count()\ndef program(x):\n    return x * (1 + 0.01 * next(count))\n"
FAULTS = {
    "differentiated value": ANEW,
    "finite differences": CUSTOM + "x * x, lambda upstream: upstream * x\n",
    "second finite differences": CUSTOM + "ops.sin(x), lambda upstream: upstream * ops.stop_gradient(ops.cos(x))\n",
    "duality": ANEW,
    "vmap": ANEW,
    "compiled": ANEW.replace("next(count)", "(next(count) + ('Tracer' in type(x).__name__))"),
}


@pytest.mark.parametrize("way", FAULTS)
def test_a_fault_is_found(backend, way):
    difference = find(HEAD + FAULTS[way], [backend], inputs=("x",), only=way)
    assert difference is not None
    assert (difference.what, difference.raised) == (way, "")


def test_every_way_has_a_fault():
    assert FAULTS.keys() == set(ALONE)


@pytest.mark.tier("full")
def test_a_wrong_rule_is_found(backend):
    source = HEAD + FAULTS["finite differences"]
    difference = find(source, [backend], inputs=("x",))
    assert difference is not None
    assert difference.what == "finite differences"
    assert find(source, [backend], inputs=("x",), traits=("odd",)) is None


@pytest.mark.parametrize("backends", [["torch", "jax", "tensorflow"], ["jax"]])
def test_every_way_has_its_turn(backends):
    turns = [ways_of(seed, backends) for seed in range(500)]
    for backend in backends:
        counts = collections.Counter(way for ways in turns for way in ways[backend])
        for way in WAYS:
            every, _ = TURNS.get(way, (1, 0))
            assert counts[way] >= (500 // every // len(backends) if way.endswith("differences") else 100)


def faulty(connection, asked):
    """Take programs as the search does, of which one ends the process and one hangs."""
    connection.send(None)
    while True:
        seed = connection.recv()
        if seed == 1:
            os._exit(3)
        if seed == 3:
            time.sleep(1000)
        connection.send(Found(seed, 0.0, 0.0, [], None, ""))


@pytest.mark.tier("full")
def test_a_program_that_hangs_or_ends_its_process_does_not_end_the_search():
    asked = argparse.Namespace(workers=2, renew=4, timeout=8.0)
    told = dict(spread(asked, range(8), faulty))
    assert told.pop(1) == "ended its process with 3"
    assert told.pop(3) == "took longer than 8 s"
    assert {seed: found.steps for seed, found in told.items()} == {seed: seed for seed in (0, 2, 4, 5, 6, 7)}


@pytest.mark.tier("full")
def test_an_error_is_found(backend):
    source = HEAD + "def program(x):\n    return ops.reshape(x, (5,))\n"
    difference = find(source, [backend], inputs=("x",))
    assert difference is not None
    assert (difference.what, difference.raised) == ("value", "ArgumentError")


@pytest.mark.tier("full")
def test_a_difference_is_made_small(monkeypatch):
    difference = Difference("value", ("torch",), "")

    def looked(program, backends, **options):
        compiled(program.source)
        return difference if "ops.scan" in program.source and "ops.tanh" in program.source else None

    monkeypatch.setattr(random_programs, "look", looked)
    programs = [one for one in map(draw, range(100)) if looked(one, ()) and len(one) > 10]
    assert len(programs) > 5
    for program in programs:
        small = minimised(program, difference)
        assert looked(small, ())
        assert len(small) <= 4, small.source


# training loops, and ops at size, against NumPy

SUM = Kind("ops.sum({0} * ops.sin({1})) * 0.3", "RR", "S")


def seam(*before, **frame):
    """Return a loop around a product, of what one step before it gives."""
    steps = tuple(Step("v0", "R", Kind(source, "R", "R"), ("w",)) for source in before)
    steps += (Step("v1", "S", SUM, ("v0" if before else "w", "t")),)
    return Seam(Block((("w", "R"), ("t", "R")), steps, ("v1",)), 0, Frame(**frame))


def scaled(fun):
    """Return a transform whose results are larger by a millionth."""
    return lambda *args, **kwargs: lambda *primals: fun(*args, **kwargs)(*primals) * (1 + 1e-6)


def keeping(fun):
    """Return a transform that keeps what its functions return."""
    kept = []

    def transform(*args, **kwargs):
        def transformed(*primals):
            kept.append(fun(*args, **kwargs)(*primals))
            return kept[-1] * 1.0

        return transformed

    return transform


def twice(fun):
    """Return a transform that runs its functions twice."""
    return lambda f: lambda *primals: (f(*primals), f(*primals))[1]


SEAM_FAULTS = {  # what it is called -> program, what is replaced, and by what, given the right one
    "value": (seam(), (multiop, "grad"), scaled),
    "a step of a loop keeps a tensor": (seam(), (multiop, "grad"), keeping),
    "a checkpoint draws again": (
        seam("multiop.checkpoint(lambda a: multiop.random.dropout(a, 0.5, seed=generator))({0})", is_random=True),
        (multiop, "checkpoint"),
        twice,
    ),
    "threads": (seam(threads=2), (multiop, "grad"), scaled),
}


@pytest.mark.parametrize("name", SEAM_FAULTS)
def test_a_fault_of_a_training_loop_is_found(backend, young_heap, name, monkeypatch):
    program, (owner, attribute), replaced = SEAM_FAULTS[name]
    if not program.frame.is_random:  # a checkpoint may draw again, or is refused by name
        assert program.look([backend]) is None
    monkeypatch.setattr(owner, attribute, replaced(getattr(owner, attribute)))
    difference = program.look([backend])
    assert difference is not None
    assert difference.what == ("memory" if "keeps" in name else "value")


def test_a_result_with_a_graph_and_a_shared_buffer_are_found(backend, young_heap, monkeypatch):
    if backend != "torch":
        pytest.skip("no other backend has tensors that can be written into")
    import torch

    grad = multiop.grad
    with monkeypatch.context() as patched:
        patched.setattr(multiop, "grad", lambda f: lambda *xs: grad(f)(*xs).requires_grad_())
        assert seam().look(["torch"]).what == "graph"
    with monkeypatch.context() as patched:
        patched.setattr(ops, "convert_to_tensor", torch.from_numpy)
        assert seam(size=4).look(["torch"]).what == "value"
    with monkeypatch.context() as patched:
        patched.setattr(ops, "array", lambda x: x)
        assert seam(writes=True).look(["torch"]).what == "value"


ADD_ONE = {"eager": (ops, "sin"), "compiled": (multiop, "jit"), "gradient": (multiop, "grad")}


@pytest.mark.parametrize("what", ADD_ONE)
def test_a_fault_at_size_is_found(backend, what, monkeypatch):
    step = ("ops.sin(a)", "np.sin(a)", True)
    program = Sized(0, "float32", (("a", "rng.normal(size=16385)"),), (step,))
    assert program.look([backend]) is None
    owner, attribute = ADD_ONE[what]
    right = getattr(owner, attribute)

    def wrong(x):
        return (lambda *xs: right(x)(*xs) + 0.1) if callable(x) else right(x) + 0.1

    monkeypatch.setattr(owner, attribute, wrong)
    difference = program.look([backend])
    assert difference is not None
    assert difference.what == what


SMALL_FAULTS = {  # what is added to a sine in float32, by how far the operand is from itself
    "value": lambda distance: 0.01 + distance * 0,
    "gradient": lambda distance: 0.1 * distance,
    "second order": lambda distance: 0.1 * distance * distance,
}


@pytest.mark.parametrize("what", SMALL_FAULTS)
def test_a_fault_of_a_small_program_is_found(backend, what, monkeypatch):
    program, right = Small(4, "float32", ((3, 1), (1, 1)), ("ops.sin(x)",)), ops.sin

    def wrong(x):
        is_exact = ops.dtype(x) == "float64"
        return right(x) if is_exact else right(x) + SMALL_FAULTS[what](x - ops.stop_gradient(x))

    assert program.look([backend]) is None
    monkeypatch.setattr(ops, "sin", wrong)
    assert program.look([backend]).what == what


@pytest.mark.tier("full")
@pytest.mark.parametrize("seed", range(8))
def test_a_small_program_is_right(backend, seed):
    program = small_programs.draw(seed)
    difference = program.look([backend])
    assert difference is None, f"{difference.message}\n{program.script(backend)}"


def test_a_script_that_ends_its_process_is_a_difference():
    difference = failure("import os\nos.kill(os.getpid(), 9)\n", "torch", apart=True)
    assert (difference.what, difference.raised) == ("error", "Signal")
    difference = failure("assert False, 'value: 1'\n", "torch", apart=True)
    assert (difference.what, difference.message) == ("value", "value: 1")
    assert failure("", "torch", apart=True) is None


def test_the_reference_differentiates():
    w, t = np.array([0.3, -0.7]), np.array([1.1, 0.4])

    def inner(w, t):  # sin(w t), differentiated inside by t
        return reference.grad(lambda t: reference.sum_(reference.sin(reference.mul(w, t))))(t)

    def outer(w):
        return reference.sum_(reference.square(inner(w, t)))

    x = w * t
    np.testing.assert_allclose(inner(w, t), w * np.cos(x))
    np.testing.assert_allclose(reference.grad(outer)(w), 2 * w * np.cos(x) * (np.cos(x) - x * np.sin(x)))
    np.testing.assert_allclose(reference.hessian(lambda w: reference.sum_(reference.exp(w)))(w), np.diag(np.exp(w)))
    _, pullback = reference.vjp(reference.mul, w, t)
    np.testing.assert_allclose(pullback(np.ones(2)), [t, w])
    h = np.array([1e-6, 0])
    numeric = (outer(w + h) - outer(w - h)) / 2e-6
    np.testing.assert_allclose(reference.jvp(outer, (w,), (np.array([1.0, 0.0]),))[1], numeric, rtol=1e-8)


def test_every_script_can_be_drawn():
    calls, families = set(), set()
    for seed in range(60):
        program = seam_programs.draw(seed)
        assert seed % 10 or np.isfinite(program.expected).all()
        calls.add(program.frame.call)
    assert program.body == seam_programs.draw(seed).body
    for seed in range(len(ORDER)):
        program = sized_programs.draw(seed)
        compile(program.script(), "<script>", "exec")
        families.add(program.steps)
    assert program == sized_programs.draw(seed)
    for seed in range(5):
        small = small_programs.draw(seed)
        compile(small.script("numpy"), "<script>", "exec")
        assert small == small_programs.draw(seed)
    assert calls == set(CALLS)
    assert set(ORDER) == set(FAMILIES)
    assert len(families) == len(ORDER)


def test_a_script_is_made_small(monkeypatch):
    difference = Difference("value", ("torch",), "")

    def failing(source, *args, **options):
        return difference if "ops.sum" in source.partition("def train")[0] else None

    monkeypatch.setattr(seam_programs, "failure", failing)
    for program in map(seam_programs.draw, (6, 10)):
        assert program.look(["torch"])
        small = minimised(program, difference)
        assert small.look(["torch"])
        assert len(small) == 1 < len(program)
        assert small.frame == Frame() != program.frame


@pytest.mark.tier("full")
@pytest.mark.parametrize("seed", range(2, 6))
def test_a_random_training_loop_is_right(backend, seed):
    program = seam_programs.draw(seed)
    difference = program.look([backend])
    assert difference is None, f"{difference.message}\n{program.script(backend)}"


@pytest.mark.tier("full")
@pytest.mark.parametrize("seed", range(7))
def test_a_random_program_at_size_is_right(backend, seed):
    program = sized_programs.draw(seed)
    difference = program.look([backend])
    assert difference is None, f"{difference.message}\n{program.script()}"
