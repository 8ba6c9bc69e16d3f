"""What a transform returns is copied and pickled as the function that it is made of, and so is a key."""

import copy
import pickle

import numpy as np
import pytest

import multiop as mo
from multiop import errors


def cube(x):
    return x * x * x


def with_rule(x):
    return cube(x), lambda u: u * 10.0 * x


@mo.op_custom_gradient
def tenfold(x):
    return cube(x), lambda u: u * 10.0 * x


@mo.jit
def compiled(x):
    return cube(x)


class Scaled:
    """A callable object, with a method that has a rule of its own."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        return cube(x) * self.scale

    @mo.op_custom_gradient
    def ruled(self, x):
        return self(x), lambda u: u * self.scale


MADE = {
    "grad": (mo.grad(cube), 12.0),
    "grad twice": (mo.grad(mo.grad(cube)), 12.0),
    "value_and_grad": (mo.value_and_grad(cube), (8.0, 12.0)),
    "jacrev": (mo.jacrev(cube), 12.0),
    "jacfwd": (mo.jacfwd(cube), 12.0),
    "hessian": (mo.hessian(cube), 12.0),
    "jit": (mo.jit(cube), 8.0),
    "checkpoint": (mo.grad(mo.checkpoint(cube)), 12.0),
    "a rule": (mo.grad(mo.op_custom_gradient(with_rule)), 20.0),
    "decorated": (mo.grad(tenfold), 20.0),
    "decorated by jit": (compiled, 8.0),
    "of an object": (mo.grad(Scaled(2.0)), 24.0),
    "of a method": (mo.grad(Scaled(2.0).ruled), 2.0),
}


@pytest.mark.parametrize("name", MADE)
def test_what_a_transform_returns_is_copied_and_pickled(backend, name):
    f, expected = MADE[name]
    for again in (f, pickle.loads(pickle.dumps(f)), copy.deepcopy(f), copy.copy(f)):
        result = again(mo.op_convert_to_tensor(2.0))
        np.testing.assert_allclose([float(y) for y in (result if name == "value_and_grad" else [result])], expected)


def test_a_copy_has_its_own_object(backend):
    scaled = Scaled(2.0)
    f = mo.grad(scaled)
    again = copy.deepcopy(f)
    scaled.scale = 3.0
    assert (float(f(2.0)), float(again(2.0))) == (36.0, 24.0)


def test_a_decorated_function_is_pickled_by_name(backend):
    assert pickle.loads(pickle.dumps(tenfold)) is tenfold is copy.deepcopy(tenfold)


def test_a_key_is_pickled(backend):
    for key in (mo.random.key(2**32 + 5), mo.random.split(3, 4), mo.random.split(3, 4)[1]):
        again = pickle.loads(pickle.dumps([key, key]))[1]
        assert mo.op_dtype(again) == "uint32"
        np.testing.assert_array_equal(mo.op_convert_to_numpy(again), mo.op_convert_to_numpy(key))


def test_a_generator_is_pickled(backend):
    generator = mo.random.SeedGenerator(7)
    generator.next()
    again = pickle.loads(pickle.dumps(generator))
    assert again.state == (7, 1) == copy.deepcopy(generator).state
    np.testing.assert_array_equal(mo.op_convert_to_numpy(again.next()), mo.op_convert_to_numpy(generator.next()))


TRANSFORMS = (mo.op_custom_gradient, mo.grad, mo.value_and_grad, mo.jacrev, mo.hessian, mo.vmap, mo.jit, mo.checkpoint)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda transform: transform.__name__)
def test_a_transform_of_a_static_method_is_one(backend, transform):
    fun = with_rule if transform is mo.op_custom_gradient else cube

    class Model:
        made = transform(staticmethod(fun))
        bound = staticmethod(transform(fun))

    x = mo.op_convert_to_tensor([2.0] if transform is mo.vmap else 2.0)
    expected = transform(fun)(x)
    for f in (Model.made, Model().made, Model.bound, Model().bound):
        np.testing.assert_allclose(host(f(x)), host(expected))


def host(result):
    return [mo.op_convert_to_numpy(y) for y in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.once
def test_a_transform_of_a_class_method_is_refused(backend):
    for transform in TRANSFORMS:
        with pytest.raises(errors.ArgumentTypeError, match="got a classmethod; put @classmethod above it"):
            transform(classmethod(cube))
