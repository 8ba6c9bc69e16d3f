"""Conversion of what only PyTorch has."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import multiop as mo
from multiop import errors
from multiop.testing._problem import Problem
from multiop.testing.cases import rows


def test_a_parameter_is_a_tensor_and_keeps_its_gradient():
    x = torch.nn.Parameter(torch.tensor([1.5]))
    assert mo.op_convert_to_tensor(x) is x
    assert mo.op_convert_to_tensor(x, "float64").requires_grad
    assert mo.op_convert_to_tensor([x[0], 2.0]).requires_grad
    mo.op_exp(x).sum().backward()
    assert torch.equal(x.grad, x.exp())


def test_host_values_go_to_the_device_of_the_other_operand():
    x = torch.ones(2, device="meta")
    for y in (mo.op_add(x, 1), mo.op_add([1.0, 2.0], x), mo.op_stack([x, [1.0, 2.0]]), mo.op_where(x > 0, x, 0.0)):
        assert y.device.type == "meta"
        assert y.dtype is torch.float32


def test_host_values_alone_go_to_the_default_device():
    with torch.device("meta"):
        assert mo.op_convert_to_tensor([1.0]).device.type == "meta"
        assert mo.op_zeros(2).device.type == "meta"
        assert mo.op_arange(3).device.type == "meta"
    assert mo.op_zeros_like(torch.ones(2, device="meta")).device.type == "meta"
    assert mo.op_full_like(torch.ones(2, device="meta"), 3).device.type == "meta"


@pytest.mark.parametrize(
    "x", [torch.ones(2, dtype=torch.float8_e5m2fnuz), torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)]
)
def test_odd_dtypes_raise(x):
    for call in (mo.op_exp, lambda x: mo.op_add(x, x), lambda x: mo.op_cast(x, "float32"), mo.op_dtype):
        with pytest.raises(errors.DTypeError, match="not supported"):
            call(x)


def test_conjugate_and_negative_views_are_read():
    x = torch.tensor([1 + 2j])
    assert mo.op_convert_to_numpy(x.conj()).tolist() == [1 - 2j]
    assert mo.op_convert_to_numpy(x.conj().imag).tolist() == [-2.0]


def test_bfloat16_of_any_strides_is_read():
    x = torch.arange(6.0).reshape(2, 3).T.to(torch.bfloat16)
    assert mo.op_convert_to_numpy(x).tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert mo.op_convert_to_numpy(x[1]).tolist() == [1.0, 4.0]
    assert mo.op_convert_to_numpy(torch.tensor(2.5, dtype=torch.bfloat16)).tolist() == 2.5


@pytest.mark.parametrize("op", ["op_tril", "op_triu", "op_cholesky_inverse", "op_repeat", "op_nanquantile"])
def test_what_an_op_makes_on_its_way_stands_beside_a_list(op):
    x, more = [[2.0, 0.0], [1.0, 3.0]], {"op_repeat": ([1, 2], 0), "op_nanquantile": (0.3,)}.get(op, ())
    with mo.use_backend("torch"):
        f = getattr(mo, op)
        assert torch.equal(f(x, *more), f(torch.tensor(x), *more))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn])
def test_zeros_of_forward_mode_that_hold_no_memory(dtype):
    zeros = torch._efficientzerotensor((2,), dtype=dtype)
    assert mo.op_convert_to_numpy(zeros).astype("float32").tolist() == [0.0, 0.0]


def test_one_record_of_a_record_array():
    """NumPy takes its strides for contiguous, whatever they are."""
    record = np.zeros(1, [("a", "f4"), ("b", "f4", (3,)), ("c", "i1")])
    record["b"] = [1.0, 2.0, 3.0]
    for x in (record["a"], record["b"], record["b"][0], np.zeros((), "f4"), np.zeros((0, 2), "f4")):
        found = mo.op_convert_to_tensor(x)
        assert found.shape == x.shape and found.tolist() == x.tolist()


@pytest.fixture
def default_of_float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def results(row):
    problem = Problem(getattr(mo, row.op), row.calls[0], dtype="float32" if "float32" in row.dtypes else row.dtypes[0])
    return problem.value + (problem.gradient if row.differentiable and problem.is_differentiable else [])


def test_the_default_dtype_of_pytorch_changes_nothing(request):
    with mo.use_backend("torch"):
        wanted = {op: results(row) for op, row in rows().items()}
        request.getfixturevalue("default_of_float64")
        for op, row in rows().items():
            for x1, x2 in zip(results(row), wanted[op], strict=True):
                np.testing.assert_allclose(x1, x2, rtol=1e-5, atol=1e-5, err_msg=op)
                assert x1.dtype == x2.dtype, op


@pytest.mark.parametrize(("dtype", "wide"), [(torch.float32, torch.float64), (torch.complex64, torch.complex128)])
def test_derivatives_of_a_determinant_where_the_default_dtype_is_wider(dtype, wide, default_of_float64):
    def height(x):
        return mo.op_sum(mo.op_real(mo.op_det(x)))

    primal, tangent = torch.randn(2, 2, 5, 5, dtype=dtype, generator=torch.Generator().manual_seed(0))
    with mo.use_backend("torch"):
        for derivatives in (mo.jvp, mo.hvp, lambda f, primals, _: mo.value_and_grad(f)(*primals)):
            found, wanted = (derivatives(height, (primal.to(kind),), (tangent.to(kind),)) for kind in (dtype, wide))
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4, check_dtype=False)
