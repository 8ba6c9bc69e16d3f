"""Random programs agree in every mode; `nox -s fuzz` draws 500 and compares the backends too.

A difference that was found is kept here as its source, made smaller, until the end of time.
"""

from __future__ import annotations

import argparse
import collections
import os
import time

import pytest
import random_programs
from random_programs import ALONE, TURNS, WAYS, Difference, compiled, draw, find, look, minimised, ways_of
from spread_programs import Found, spread

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
    "compiled": ANEW,
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
