"""Numbers that a model computes from a dtype are those of the dtype at run time, whatever it was traced in."""

import functools
import math
import re
import threading
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from multiop import errors, ops, porting
from multiop.porting._printing import limits


def of_torch(_):
    class Model(torch.nn.Module):
        def forward(self, x, mask):
            limits = torch.finfo(x.dtype)
            bias = torch.full((3,), limits.min, dtype=x.dtype) * (1 - mask.to(x.dtype))
            y = torch.softmax(x.masked_fill(~mask, limits.min), -1) + torch.softmax(x + bias, -1)
            y = y + torch.softmax(torch.where(mask, x, torch.tensor(limits.max * -0.5, dtype=x.dtype)), -1)
            return (y.clamp(limits.tiny, limits.max) + limits.resolution) / limits.eps

    return Model(), torch.as_tensor


def of_jax(dtype):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def model(_, x, mask):
        limits = jnp.finfo(x.dtype)
        y = jax.nn.softmax(jnp.where(mask, x, limits.min)) + jax.nn.softmax(x + jnp.where(mask, 0, limits.max * -0.5))
        return jnp.clip(y, limits.tiny, limits.max) / float(limits.eps) + float(limits.resolution)

    return functools.partial(model, {"unused": jnp.ones(1, dtype)}), jnp.asarray


def of_tensorflow(_):
    tf = pytest.importorskip("tensorflow")

    @tf.function
    def model(x, mask):
        y = tf.nn.softmax(tf.where(mask, x, x.dtype.min)) + tf.nn.softmax(
            x + (1 - tf.cast(mask, x.dtype)) * x.dtype.min
        )
        return tf.minimum(y, x.dtype.max) / np.finfo(x.dtype.as_numpy_dtype).eps

    return model, tf.constant


@pytest.mark.parametrize("traced", ["float64", "float32"])
@pytest.mark.parametrize("made", [of_torch, of_jax, of_tensorflow])
def test_a_limit_is_that_of_the_dtype_at_run_time(made, traced):
    model, to_tensor = made(traced)
    mask = np.array([[False] * 3, [True, False, True]])
    x = np.arange(6.0).reshape(2, 3)
    port = porting.trace(model, to_tensor(x.astype(traced)), to_tensor(mask))
    for dtype in ("float64", "float32", "float16"):
        wanted = model(to_tensor(x.astype(dtype)), to_tensor(mask))
        seen = ops.convert_to_numpy(port.function(port.params, port.state, x.astype(dtype), mask)[0])
        assert seen.dtype == dtype
        np.testing.assert_allclose(seen, np.asarray(wanted), 2e-3 if dtype == "float16" else 2e-6)


def clamped_by_torch():
    class Model(torch.nn.Module):
        def forward(self, x):
            eps = torch.finfo(x.dtype).eps
            clamped = torch.sigmoid(x).clamp(eps, 1 - eps)
            told = torch.distributions.Bernoulli(probs=torch.sigmoid(x), validate_args=False).logits
            most = math.log(torch.finfo(x.dtype).max)
            told = told + x.clamp(-most, most) + (x.abs() < eps * x.shape[-1]).to(x.dtype)
            return clamped.log() - torch.log1p(-clamped) + told + x / (x.abs() + eps**0.5)

    return Model(), torch.as_tensor


def clamped_by_jax():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def model(_, x):
        eps = jnp.finfo(x.dtype).eps
        clamped = jnp.clip(jax.nn.sigmoid(x), eps, 1 - eps)
        most = math.log(jnp.finfo(x.dtype).max)
        x = jnp.where(jnp.abs(x) < eps * x.shape[-1], 1, jnp.clip(x, -most, most))
        return jnp.log(clamped) - jnp.log1p(-clamped) + x / (jnp.abs(x) + jnp.sqrt(eps).astype(x.dtype))

    return functools.partial(model, {"unused": jnp.ones(1, "float64")}), jnp.asarray


def clamped_by_tensorflow():
    tf = pytest.importorskip("tensorflow")

    @tf.function
    def model(x):
        eps = np.finfo(x.dtype.as_numpy_dtype).eps
        clamped = tf.clip_by_value(tf.sigmoid(x), eps, 1 - eps)
        most = math.log(x.dtype.max)
        x = tf.where(tf.abs(x) < eps * x.shape[-1], tf.ones_like(x), tf.clip_by_value(x, -most, most))
        return tf.math.log(clamped) - tf.math.log1p(-clamped) + x / (tf.abs(x) + eps**0.5)

    return model, tf.constant


@pytest.mark.parametrize("traced", ["float64", "float32"])
@pytest.mark.parametrize("made", [clamped_by_torch, clamped_by_jax, clamped_by_tensorflow])
def test_what_is_computed_of_a_limit_is_that_of_the_dtype_at_run_time(made, traced):
    model, to_tensor = made()
    x = np.array([[-90.0, 0.0, 90.0], [1e-5, 2.0, -1.0]])  # the first and the last of a row are clamped
    port = porting.trace(model, to_tensor(x.astype(traced)))
    for dtype in ("float64", "float32", "float16"):
        wanted = np.asarray(model(to_tensor(x.astype(dtype))))
        seen = ops.convert_to_numpy(port.function(port.params, port.state, x.astype(dtype))[0])
        assert np.isfinite(wanted).all() and seen.dtype == dtype
        np.testing.assert_allclose(seen, wanted, 2e-3 if dtype == "float16" else 2e-6)


MASKS = {
    "a share of the least": lambda x: torch.finfo(x.dtype).min * 0.9,
    "a third of the least": lambda x: torch.finfo(x.dtype).min / 3,
    "of the dtype, by a branch": lambda x: -3e4 if x.dtype == torch.float16 else -1e9,  # as Keras's layers have it
}


@pytest.mark.parametrize("traced", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mask_of", MASKS.values(), ids=MASKS)
def test_a_mask_that_float16_does_not_hold_is_finite_there(mask_of, traced):
    class Model(torch.nn.Module):
        def forward(self, x, mask):
            y = torch.softmax(x.masked_fill(~mask, mask_of(x)), -1)
            return y + torch.softmax(x + (1 - mask.to(x.dtype)) * mask_of(x), -1)

    x, mask = torch.tensor([[1.0, -2.0, 3.0]] * 2), torch.tensor([[False] * 3, [True, False, True]])
    port = porting.trace(Model(), x.to(traced), mask)
    for dtype in ("float64", "float32", "float16"):
        wanted = Model()(x.to(getattr(torch, dtype)), mask).numpy()
        seen = ops.convert_to_numpy(port.function({}, {}, x.numpy().astype(dtype), mask.numpy())[0])
        assert np.isfinite(wanted).all() and seen.dtype == dtype
        np.testing.assert_allclose(seen, wanted, 2e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("made", [torch.bfloat16, torch.float32, torch.float64])
def test_numbers_that_are_not_finite_are_no_limits(made):
    class Model(torch.nn.Module):
        def forward(self, x, i):
            return x.masked_fill(i > 5, math.nan), x.masked_fill(i > 5, -math.inf)

    x, i = torch.ones(2, 3, dtype=made), torch.tensor([[0, 5, 9], [7, 8, 9]])
    port = porting.trace(Model(), x, i)
    found = port.function({}, {}, np.ones((2, 3), "float64"), i.numpy().astype("int32"))[0]
    for y, number in zip(found, (math.nan, -math.inf), strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(y), np.where(i.numpy() > 5, number, 1.0))


def test_a_limit_of_integers_and_numbers_that_are_none():
    class Model(torch.nn.Module):
        def forward(self, x, i):
            return x * 2.0**-7 + 1e-6, i.masked_fill(i > 1, torch.iinfo(i.dtype).max).amin(-1)

    x, i = torch.ones(2, 3, dtype=torch.bfloat16), torch.tensor([[0, 5], [7, 8]])
    port = porting.trace(Model(), x, i)
    y, least = port.function({}, {}, np.ones((2, 3), "float64"), i.numpy().astype("int32"))[0]
    np.testing.assert_array_equal(ops.convert_to_numpy(y), np.full((2, 3), 2.0**-7 + 1e-6))
    assert ops.convert_to_numpy(least).tolist() == [0, 2**31 - 1]


@pytest.mark.parametrize("made", [of_torch, of_jax, of_tensorflow])
def test_a_planted_number_is_seen_by_prove(made):
    model, to_tensor = made("float64")
    port = porting.trace(model, to_tensor(np.ones((2, 3))), to_tensor(np.ones((2, 3), bool)))
    assert porting.prove(port, "numpy").agrees
    limits = set(re.findall(r"finfo\(\w+\.dtype\)\.(?:min|max|eps|tiny)\b(?: \* -0\.5)?", port.source))
    assert len(limits) > 2
    for text in limits:  # each of them is the number that it was in float64
        number = repr(float(eval(re.sub(r"\(.*\)", "('float64')", text), {"finfo": np.finfo})))
        slip = porting.Port(port.name, port.source.replace(text, number), port.params, port.state, port._about)
        proof = porting.prove(slip, "numpy")
        assert not proof.agrees and f"{number.removeprefix('-')} is a limit of a dtype" in proof.hint


def test_inputs_of_another_dtype_than_the_model_are_an_error_that_says_so():
    model, x = torch.nn.Linear(3, 2), torch.ones(4, 3, dtype=torch.float64)
    with pytest.raises(errors.TranslationError, match=r"must have the same dtype.*torch.float64.*cast the one or"):
        porting.trace(model, x)
    assert porting.trace(model.double(), x).modes == [False]


def test_a_model_that_is_traced_hides_finfo_from_no_other_thread():
    own, seen = torch.finfo, []

    def look():
        limits = torch.finfo(torch.float32)
        seen.append((type(limits), isinstance(limits, torch.finfo)))

    class Model(torch.nn.Module):
        def forward(self, x):
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
            seen.append(isinstance(torch.finfo(x.dtype), torch.finfo))
            if x.dtype == torch.float64:
                raise ValueError("no double")
            return x + torch.finfo(x.dtype).resolution

    port = porting.trace(Model(), torch.ones(2, 3))
    assert "finfo(x.dtype).resolution" in port.source
    assert set(seen) == {(own, True), True}
    with pytest.raises(Exception, match="no double"):
        porting.trace(Model(), torch.ones(2, 3, dtype=torch.float64))
    assert torch.finfo is own


def test_two_threads_that_trace_leave_finfo_as_it_was():
    own, both = torch.finfo, threading.Barrier(2)

    def watch():
        both.wait()
        with limits.watch():
            time.sleep(0.01)

    threads = [threading.Thread(target=watch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.finfo is own
