"""A tensor that is being differentiated does not leave for the host in silence."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import multiop as mo
from multiop import errors, ops

X = np.array([1.0, 2.0], np.float32)
KINDS = {
    "grad": lambda f, x: mo.grad(f)(x),
    "value_and_grad": lambda f, x: mo.value_and_grad(f)(x)[1],
    "vjp": lambda f, x: mo.vjp(f, x)[1](1.0)[0],
    "jvp": lambda f, x: mo.jvp(f, (x,), (x,))[1],
    "jacrev": lambda f, x: mo.jacrev(f)(x),
    "jacfwd": lambda f, x: mo.jacfwd(f)(x),
    "hvp": lambda f, x: mo.hvp(f, (x,), (x,)),
    "hessian": lambda f, x: mo.hessian(f)(x),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def given():
    return mo.op_convert_to_tensor(X)


def total(host):
    return ops.sum(mo.op_convert_to_tensor(np.asarray(host, np.float32)))


LEAVING = {
    "whole": lambda x: total(mo.op_convert_to_numpy(x)),
    "a part": lambda x: ops.sum(ops.multiply(x, total(mo.op_convert_to_numpy(x)))),
    "computed": lambda x: total(mo.op_convert_to_numpy(2 * x[0])),
    "in a list": lambda x: total(mo.op_convert_to_numpy([x[0], x[1]])),
}


@kinds
@pytest.mark.parametrize("leaving", LEAVING)
def test_leaving_by_the_op(backend, kind, leaving):
    refusals = errors.UnsupportedError
    if (backend, kind) in (
        ("tensorflow", "jacfwd"),
        ("tensorflow", "hessian"),
    ):  # mapped first, where nothing has a value
        refusals = (errors.UnsupportedError, errors.ArgumentTypeError)
    with pytest.raises(refusals) as caught:
        KINDS[kind](LEAVING[leaving], given())
    if isinstance(caught.value, errors.UnsupportedError):
        assert "op_stop_gradient" in str(caught.value)


MEANT = {
    "stopped": (lambda x: ops.multiply(x, mo.op_convert_to_numpy(mo.op_stop_gradient(2 * x))), 2 * X),
    "integers": (lambda x: ops.multiply(x, mo.op_convert_to_numpy(ops.argmax(x))), np.ones(2)),
    "a mask": (lambda x: ops.multiply(x, mo.op_convert_to_numpy(x > 1)), [0, 1]),
    "closed over": (lambda x: ops.multiply(x, mo.op_convert_to_numpy(given())), X),
}


@pytest.mark.parametrize("kind", ["grad", "jacrev", "jacfwd"])
@pytest.mark.parametrize("meant", MEANT)
def test_what_may_leave(backend, numpy, kind, meant):
    if (backend, kind) == ("tensorflow", "jacfwd"):
        pytest.skip("mapped, where nothing has a value")
    f, wanted = MEANT[meant]
    np.testing.assert_allclose(numpy(KINDS[kind](lambda x: ops.sum(f(x)), given())), wanted)


def logistic(x):
    y = mo.op_convert_to_tensor(1 / (1 + np.exp(-mo.op_convert_to_numpy(x))))
    return y, lambda u: u * y * (1 - y)


@pytest.mark.parametrize("kind", ["grad", "vjp", "jvp"])
def test_a_function_with_a_rule_may_read_its_arguments(backend, numpy, kind):
    y = 1 / (1 + np.exp(-X))
    found = numpy(KINDS[kind](lambda x: ops.sum(mo.op_custom_gradient(logistic)(x)), given()))
    np.testing.assert_allclose(found, (y * (1 - y) * X).sum() if kind == "jvp" else y * (1 - y), rtol=1e-5)


UNSEEN = {
    "np.asarray": lambda x: total(np.asarray(x)),
    "an array of entries": lambda x: total(np.array([x[0], x[1]])),
    "float": lambda x: total(float(x[0])),
    "a function of NumPy": lambda x: total(np.rint(x)),
}


@kinds
@pytest.mark.parametrize("leaving", UNSEEN)
def test_leaving_by_other_doors(backend, kind, leaving):
    """It is an error, or, where the framework gives its numbers out, a warning that can be made one."""
    if (backend, leaving) == ("tensorflow", "float") and kind in ("jacfwd", "hessian"):
        pytest.skip("AutoGraph makes it a cast, with its gradient")
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.UnconnectedWarning)
        with pytest.raises((errors.UnsupportedError, errors.UnconnectedWarning), match="op_stop_gradient"):
            KINDS[kind](UNSEEN[leaving], given())


STOPPED = {
    "np.asarray": lambda x: total(np.asarray(mo.op_stop_gradient(x))),
    "float": lambda x: total(float(mo.op_stop_gradient(x[0]))),
}


@pytest.mark.parametrize("leaving", STOPPED)
def test_a_stopped_gradient_is_meant(backend, numpy, leaving):
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.UnconnectedWarning)
        assert numpy(mo.grad(STOPPED[leaving])(given())).tolist() == [0, 0]


QUIET = {
    "one of two": lambda x: mo.grad(lambda p: ops.sum(p["w"]))({"w": x, "bias": x}),
    "one argument of two": lambda x: mo.grad(lambda x, y: ops.sum(y), (0, 1))(x, x),
    "rounded": lambda x: mo.grad(lambda x: ops.sum(ops.round(x) + ops.sign(x)))(x),
    "a slope of a line": lambda x: mo.hvp(lambda x: ops.sum(3 * x), (x,), (x,)),
    "a slope of a line, nested": lambda x: mo.grad(lambda x: ops.sum(mo.grad(lambda x: ops.sum(3 * x))(x)))(x),
    "no gradient in a rule": lambda x: mo.grad(
        lambda x: ops.sum(mo.op_custom_gradient(lambda x: (2 * x, lambda u: (None,)))(x))
    )(x),
    "integers out": lambda x: mo.vjp(lambda x: ops.argmax(x), x)[1](None),
    "nothing in": lambda x: mo.jacfwd(lambda x: ops.sum(x) * given())(x[:0]),
    "compiled": lambda x: mo.jit(mo.grad(lambda x: ops.sum(ops.sign(x))))(x),
    "row by row": lambda x: mo.vmap(mo.grad(lambda x: ops.sign(x)))(x),
}


@pytest.mark.parametrize("quiet", QUIET)
def test_zeros_that_alarm_nobody(backend, quiet):
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.UnconnectedWarning)
        QUIET[quiet](given())


def test_one_warning_for_each_call_site(backend):
    if backend == "jax":
        pytest.skip("JAX goes on with an array where a derivative is 0, and cannot tell the two")
    x = given()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            mo.grad(lambda x: ops.sum(ops.ones(2)))(x)
        mo.jvp(lambda x: ops.sum(ops.ones(2)), (x,), (x,))
    found = [w for w in caught if w.category is errors.UnconnectedWarning]
    assert [re.match(r"\w+", str(w.message)).group() for w in found] == ["grad", "jvp"]
    assert {w.filename for w in found} == {__file__}


def test_a_tape_reads_numbers(backend, numpy):
    """As TensorFlow's does: its gradient is None, which is seen."""
    with mo.GradientTape() as tape:
        x = tape.watch(given())
        y = total(mo.op_convert_to_numpy(x))
    assert tape.gradient(y, x) is None
