"""Caches: each has a bound, and what is new at each call is let go; counted, not measured."""

from __future__ import annotations

import collections
import gc
import sys
import weakref

import numpy as np
import pytest

import multiop
from multiop._rules import lru
from multiop.testing._shared_process import without_torch_compiler

N = 5
WEAK = weakref.WeakKeyDictionary, weakref.WeakValueDictionary
# functions of arguments of which there are few: dtypes, versions, signatures of ops, no argument at all
FEW = {
    "multiop.autodiff.sparse._sets.sparse",
    "multiop.backends.jax.ops.elementwise.power_of_order",
    "multiop._call.recover._options",
    "multiop._values.dtypes._above",
    "multiop._values.tree._entry",
    "multiop._loading.settings._file",
    "multiop._loading.settings._warn_of_unknown",
    "multiop.backends.jax.conversion.is_inexact_dtype",
    "multiop.backends.jax._cpu_compiler._internals",
    "multiop.backends.jax._versions.are_parts_known",
    "multiop.backends.jax.autodiff.custom_gradient._custom_call",
    "multiop.backends.jax.devices.is_alone",
    "multiop.backends.jax.devices.is_cpu_default",
    "multiop.backends.jax.ops.elementwise.exp2_of_order",
    "multiop.backends.tensorflow._internals._check_calls",
    "multiop.backends.tensorflow.conversion.has_accelerator",
    "multiop.backends.torch.autodiff._effects._kinds",
    "multiop.porting.torch._internals.decompositions",
}


def test_what_was_used_last_is_kept():
    recent = lru.Recent(2)
    for key in "ab":
        recent.put(key, key)
    assert recent.get("a") == "a"
    recent.put("c", "c")
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == ("a", None, "c")


def modules():
    """Return the loaded modules of multiop, except those that test it."""
    names = [name for name in sys.modules if name.split(".")[0] == "multiop" and not name.startswith("multiop.testing")]
    return [(name, vars(sys.modules[name])) for name in sorted(names)]


def work(k):
    """Do everything that might be cached, with new functions, and shapes that differ for each `k`."""
    x = multiop.op_convert_to_tensor(np.linspace(0.1, 0.9, 3 + k, dtype="float32"))

    def f(x):
        return multiop.op_sum(multiop.op_sin(x) * (x + k))

    @multiop.op_custom_gradient
    def halved(x):
        return x * 0.5, lambda upstream: upstream * 0.5 * (x + k)

    def summed(x):
        return multiop.op_sum(halved(x))

    with multiop.GradientTape() as tape:
        watched = tape.watch(x)
        y = f(watched) + summed(watched)
    tape.gradient(y, watched)
    multiop.grad(f)(x), multiop.grad(summed)(x), multiop.hvp(f, (x,), (x,)), multiop.jvp(summed, (x,), (x,))
    multiop.vmap(multiop.grad(f))(x[None]), multiop.gradients(f, [x]), multiop.jit(summed)(x)
    multiop.op_median(x), multiop.checkpoint(f)(x), multiop.op_stop_gradient({"a": x})
    return [weakref.ref(f), weakref.ref(summed), weakref.ref(tape)]


def sizes():
    """Return how much is in each container that a module of multiop holds, in itself and in what is in it."""
    found = {}
    for name, entries in modules():
        for key, value in list(entries.items()):
            if isinstance(value, (dict, set, list, weakref.WeakSet, *WEAK)) and key[:2] != "__":
                inner = value.values() if isinstance(value, dict) else ()
                found[f"{name}.{key}"] = len(value) + sum(len(x) for x in inner if isinstance(x, (dict, set, list)))
    return found


def test_no_cache_is_without_a_bound(backend):
    work(0)
    for name, entries in modules():
        for key, value in entries.items():
            parameters = getattr(value, "cache_parameters", None)
            if parameters is not None and getattr(value, "__module__", "") == name and parameters()["maxsize"] is None:
                assert f"{name}.{key}" in FEW


def test_what_is_kept_does_not_grow_with_functions_and_shapes(backend, young_heap):
    with without_torch_compiler(True):
        for k in range(2):
            work(k)
        gc.collect()
        before = sizes()
        references = [ref for k in range(N) for ref in work(k + 2)]
    gc.collect()
    # what belongs to a jaxpr is kept for as long as JAX keeps that
    grown = {name for name, size in sizes().items() if size > before.get(name, 0)} - {
        "multiop.backends.jax._cpu_compiler._seen",
        "multiop.backends.jax.autodiff._operations._kernels",
    }
    assert not grown
    assert sum(ref() is not None for ref in references) <= 3  # those of the last call, by its caches


@pytest.mark.traced
def test_jit_keeps_a_bounded_number_of_traces_and_programs(backend, young_heap, monkeypatch):
    most = 4
    monkeypatch.setattr(lru.Recent.__init__, "__defaults__", (most,))
    traced = []

    def f(x, factor):
        traced.append(factor)
        return multiop.op_sin(x) * factor

    before = set(map(id, all_recent()))
    compiled = multiop.jit(f)
    slope = multiop.grad(lambda x: multiop.op_sum(compiled(x, 2.0)))
    with without_torch_compiler(True):
        for k in range(2 * most):
            x = multiop.op_ones((3 + k,))
            compiled(x, 1.0), compiled(multiop.op_ones((3,)), float(k)), slope(x)
    kept = [len(recent.entries) for recent in all_recent() if id(recent) not in before]
    assert kept
    assert max(kept) == most
    count = len(traced)
    compiled(multiop.op_ones((3,)), float(2 * most - 1))
    assert len(traced) == count  # what was used last is there
    compiled(multiop.op_ones((3,)), 0.0)
    assert len(traced) > count  # what was used first is not


def all_recent():
    gc.collect()
    return [x for x in gc.get_objects() if type(x) is lru.Recent]


def test_the_programs_of_composite_ops_are_bounded(monkeypatch):
    pytest.importorskip("jax")
    from multiop.backends.jax.autodiff import transforms

    monkeypatch.setattr(transforms, "_programs", collections.defaultdict(dict))
    monkeypatch.setattr(transforms, "_PROGRAMS_EACH", 2)
    with multiop.use_backend("jax"):
        for k in range(4):
            multiop.op_image_resize(multiop.op_ones((1, 2, 2, 1)), (2, 1 + k))
    assert [len(programs) for programs in transforms._programs.values()] == [2]


def test_the_pullbacks_of_a_tape_are_bounded(monkeypatch):
    jnp = pytest.importorskip("jax.numpy")
    from multiop.backends.jax.autodiff import _operations

    monkeypatch.setattr(_operations, "_pullbacks", lru.Recent(2))
    with multiop.use_backend("jax"):
        for f in (jnp.sin, jnp.cos, jnp.tanh, jnp.exp):
            with multiop.GradientTape() as tape:
                x = tape.watch(multiop.op_ones((2,)))
                y = f(x)
            tape.gradient(y, x)
    assert len(_operations._pullbacks.entries) <= 2
