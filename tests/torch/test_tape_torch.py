"""Tapes on PyTorch's own tensors: what `watch` does to them."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch")

import multiop as mo
from multiop import errors


@pytest.fixture(autouse=True)
def _torch():
    with mo.use_backend("torch"):
        yield


@pytest.mark.parametrize("inside", [False, True], ids=["after", "inside"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor(3.0),
        lambda: torch.ones(2)[1] * 3,
        lambda: torch.tensor([1.0, 3.0])[1],
        lambda: torch.nn.Parameter(torch.tensor(3.0), requires_grad=False),
        lambda: torch.tensor(3.0, requires_grad=True),
        lambda: torch.tensor(1.0, requires_grad=True) * 3,
    ],
    ids=["leaf", "result", "view", "frozen parameter", "requires grad", "intermediate"],
)
def test_result_of_watch_ignored(make, inside):
    """TensorFlow's idiom."""
    x = make()
    before = x.requires_grad
    with mo.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        if inside:
            assert float(tape.gradient(y, x)) == 6.0
    assert float(tape.gradient(y, x)) == 6.0
    assert float(tape.jacobian(y, x)) == 6.0
    assert x.requires_grad == before and x.grad is None
    assert not (x * 2).requires_grad or before


def test_result_of_watch_ignored_and_nested():
    x = torch.tensor(3.0)
    with mo.GradientTape() as outer:
        outer.watch(x)
        with mo.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        g = inner.gradient(y, x)
    assert (float(g.detach()), float(outer.gradient(g, x))) == (27.0, 18.0)
    assert not x.requires_grad


def test_tapes_of_two_threads_watch_one_tensor():
    x = torch.tensor(3.0)
    watched, left = threading.Event(), threading.Event()
    found = []

    def work():
        with mo.use_backend("torch"), mo.GradientTape() as tape:
            tape.watch(x)
            watched.set()
            left.wait(60)
            y = x * x
        found.append(float(tape.gradient(y, x)))

    thread = threading.Thread(target=work)
    with mo.GradientTape() as tape:
        tape.watch(x)
        thread.start()
        watched.wait(60)
        y = x * x
    left.set()
    thread.join()
    assert [*found, float(tape.gradient(y, x))] == [6.0, 6.0]
    assert not x.requires_grad


def test_watched_in_inference_mode():
    with torch.inference_mode():
        x = torch.tensor(3.0)
    with mo.GradientTape() as tape:
        watched = tape.watch(x)
        y = watched * watched
    with pytest.raises(errors.TapeError, match="write x = tape.watch"):
        tape.gradient(y, x)


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace:UserWarning")
def test_gradients_where_a_compiler_stops_at_the_engine():
    def fun(x):
        y = x.sin() * x
        return mo.gradients([y, 3 * x], [x, y], grad_ys=[torch.ones(3), None], stop_gradients=[y])

    x = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    torch._dynamo.reset()
    for found, expected in zip(torch.compile(fun, backend="eager")(x), [3.0, 1.0], strict=True):
        torch.testing.assert_close(found, torch.full((3,), expected))
