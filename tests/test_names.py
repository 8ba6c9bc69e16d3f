"""Names that do not exist: each error says what may be meant."""

import inspect
import operator
import pickle
import re
import subprocess
import sys

import pytest

import multiop
import multiop.backends
import multiop.testing
from multiop import errors, ops, porting
from multiop._loading import registry, suggestions

pytestmark = pytest.mark.tier("quick")


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        (multiop, "op_sofmax", "'op_softmax'"),
        (multiop, "softmax", "'op_softmax'"),
        (multiop, "custom_gradient", "'op_custom_gradient'"),
        (multiop, "gradientz", "'gradients'"),
        (ops, "sofmax", "'softmax'"),
        (ops, "op_softmax", "'softmax'"),
        (ops, "np", "'numpy'"),
        (ops, "lin_alg", "'linalg'"),
        (ops, "reduce_sum", "'sum'"),
        (ops.nn, "sofmax", "'softmax'"),
        (ops.numpy, "softmax", "'multiop.ops.softmax'"),
        (ops.linalg, "inverse", "'inv'"),
        (multiop, "nn", "'multiop.ops.nn'"),
        (multiop, "np", "'multiop.ops.numpy'"),
        (multiop, "make_vjp", "'vjp'"),
        (multiop, "primitive", "'op_custom_gradient'"),
        (multiop, "op_random_normal", "'multiop.random.normal'"),
        (ops, "random", "'multiop.random'"),
        (multiop.random, "PRNGKey", "'multiop.random.key'"),
        (multiop, "vjp_rule", "'op_custom_gradient'"),
        (multiop.testing, "gradcheck", "'multiop.testing.check_op'"),
        (multiop.testing, "chek_op", "'check_op'"),
        (multiop.random, "stateless_normal", "'normal'"),
        (multiop.tree, "tree_map", "'multiop.tree.map'"),
        (ops, "random_uniform", "'multiop.random.uniform'"),
        (ops, "grad", "'multiop.grad'"),
        (ops, "acos", "'arccos'"),
        (ops, "sqrt_", "'sqrt'"),
        (ops, "flatten", "'ravel'"),
        (multiop, "derivative", "'grad'"),
        (porting, "port", "'multiop.porting.trace'"),
        (porting, "prov", "'prove'"),
    ],
)
def test_a_similar_name_is_suggested(module, name, meant):
    with pytest.raises(
        AttributeError, match=f"module '{module.__name__}' has no attribute '{name}'; did you mean"
    ) as caught:
        getattr(module, name)
    assert meant in str(caught.value)


@pytest.mark.parametrize("module", [multiop, ops, multiop.autodiff, multiop.backends, multiop.testing])
def test_a_name_of_another_library_is_answered_with_what_takes_its_place(module):
    elsewhere = {name for name, meant in suggestions.ELSEWHERE.items() if meant not in registry.BUILT_IN}
    for name in {"ForwardAccumulator", "PRNGKey", "Variable"} | elsewhere | suggestions.INSTEAD.keys():
        if hasattr(module, name):  # `ops.concat` and others, which are multiop's own too
            continue
        with pytest.raises(AttributeError) as caught:
            getattr(module, name)
        told = str(caught.value).partition(f"has no attribute {name!r}; ")[2]
        if name.lower() in suggestions.INSTEAD:
            assert told == suggestions.INSTEAD[name.lower()].format(name=name)
            named = re.findall(r"\bop_\w+|\bgrad\b|\bjacobian\b|multiop[.]\w+", told)
            assert all(found(multiop, one.removeprefix("multiop.")) for one in named)
        else:
            meant = re.fullmatch(r"did you mean '([^']+)'\?", told).group(1)
            assert found(multiop if meant.startswith("multiop.") else module, meant.removeprefix("multiop."))


def found(module, name):
    return operator.attrgetter(name)(module) is not None


X = [[1.0, 2.0], [3.0, 4.0]]
CALLS = [  # a keyword of another library, and what the error names
    (lambda: multiop.jit(abs, input_signature=[]), "input_signature", "leave it out"),
    (lambda: multiop.vmap(abs, axis_name="i"), "axis_name", "reduce what vmap returns"),
    (lambda: multiop.vmap(abs, in_dims=0), "in_dims", "write in_axes="),
    (lambda: multiop.grad(abs, argnum=0), "argnum", "write argnums="),
    (lambda: multiop.grad(lambda x: ops.one_hot(x, depth=3))(X), "depth", "write num_classes="),
    (lambda: multiop.grad(lambda x: ops.sum(x, reduction_indices=0))(X), "reduction_indices", "write axis="),
    (lambda: multiop.grad(lambda x: ops.sum(x, keep_dims=True))(X), "keep_dims", "write keepdims="),
    (lambda: multiop.jit(lambda x: ops.sum(x, dim=0))(X), "dim", "write axis="),
    (lambda: multiop.vmap(lambda x: ops.transpose(x, perm=0))(ops.array(X)), "perm", "write axes="),
    (lambda: multiop.vjp(lambda x: ops.max(x, 0, keepdim=True), X), "keepdim", "write keepdims="),
    (lambda: multiop.jvp(lambda x: ops.add(x, y=x), (X,), (X,)), "y", "write x2="),
    (lambda: multiop.grad(lambda x: ops.where(ops.isfinite(x), size=2)[0])(X), "size", "leave it out"),
    (lambda: multiop.grad(lambda x: ops.var(x, ddof=1))(X), "ddof", "op_sum"),
    (lambda: in_a_tape(lambda: ops.ones(2, requires_grad=True)), "requires_grad", "multiop.grad"),
]


def in_a_tape(call):
    with multiop.GradientTape():
        call()


@pytest.mark.parametrize(("call", "keyword", "meant"), CALLS, ids=[keyword for _, keyword, _ in CALLS])
def test_a_keyword_of_another_library_is_answered(backend, call, keyword, meant):
    with pytest.raises(TypeError, match=rf"\(\) got an unexpected keyword argument '{keyword}'; .*{meant}"):
        call()


def test_each_answer_about_a_keyword_names_parameters_that_there_are():
    functions = [value for name, value in vars(multiop).items() if callable(value) and name[0] != "_"]
    taken = {name for f in functions if inspect.isfunction(f) for name in inspect.signature(f).parameters}
    names = [name for advice in suggestions.KEYWORDS.values() if isinstance(advice, tuple) for name in advice]
    assert {*names} <= taken


def test_an_error_about_a_keyword_of_a_users_function_stays():
    def grad(x):
        return x

    def op_sum(x, axis):
        return grad(x, argnum=axis)

    for wrong in (lambda x: grad(x, argnum=0), lambda x: ops.sum(x, foo=1), lambda x: op_sum(x, 1)):
        with pytest.raises(TypeError, match="(?m)unexpected keyword argument '(argnum|foo)'(. Did you mean .*)?$"):
            multiop.grad(wrong)(1.0)


def test_an_exception_of_a_users_class_is_left_alone():
    class Own(TypeError):
        def __str__(self):
            return "op_sum() got an unexpected keyword argument 'dim'"

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    for own in (Own(3), Mute(4)):
        given = own.args
        with pytest.raises(type(own)), multiop.GradientTape():
            raise own
        assert own.args == given


def test_nothing_similar_is_not_suggested():
    for module, name in ((multiop, "xyzzy"), (multiop, "summary"), (ops, "summary"), (porting, "summary")):
        with pytest.raises(AttributeError, match=rf"module '{module.__name__}' has no attribute '{name}'$"):
            getattr(module, name)
    assert not hasattr(multiop, "__wrapped__") and not hasattr(multiop, "_private")


@pytest.mark.parametrize(
    ("name", "meant"), [("pytorch", "torch"), ("tf", "tensorflow"), ("Jax", "jax"), ("tensorfow", "tensorflow")]
)
def test_a_similar_backend_is_suggested(name, meant):
    assert registry.unknown_message(name).endswith(f"; did you mean '{meant}'?")
    with pytest.raises(
        errors.BackendError, match=f"unknown backend '{name}'; known backends: .*; did you mean '{meant}'"
    ):
        multiop.set_backend(name)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("multiop.testing", "module 'multiop' has no attribute 'testing'; write import multiop.testing first"),
        ("multiop.ops.np", "module 'multiop.ops' has no attribute 'np'; did you mean 'numpy'?"),
    ],
)
def test_python_adds_no_guess_of_its_own(program, told):
    command = [sys.executable, "-c", f"import multiop\n{program}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert found.splitlines()[-1] == f"AttributeError: {told}"


def test_the_error_about_a_name_can_be_sent_to_another_process():
    with pytest.raises(AttributeError) as caught:
        ops.np
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is AttributeError and str(again) == str(caught.value)
