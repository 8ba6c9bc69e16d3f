"""Devices."""

import math

import pytest

torch = pytest.importorskip("torch")

import multiop as mo
from multiop._call.explain import explain
from multiop.backends.torch.devices import is_at_hand
from multiop.backends.torch.ops.bitwise import in_wider_dtype_off_cpu
from multiop.backends.torch.ops.products import product_of_parts
from multiop.backends.torch.ops.sorting import stable_sort_nan_last


def test_every_op_on_another_device(passed_alone, week):
    assert passed_alone("elsewhere.py") > (900 if week == "every" else 300)


def test_values_elsewhere_are_not_at_hand():
    assert is_at_hand(torch.ones(3))
    assert not is_at_hand(torch.ones(3, device="meta"))


def test_meta_tensors_have_a_device_of_their_own():
    x = mo.to_device([1.0, 2.0], "meta")
    assert mo.device(x) == "meta" and mo.op_shape(x) == (2,)
    y = mo.op_softmax(x * 2)
    assert mo.device(y) == "meta" and mo.op_shape(y) == (2,)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("width", [16, 8])
def test_products_of_integers_by_parts_are_exact(dtype, width, monkeypatch):
    limits = torch.iinfo(dtype)
    x1 = torch.randint(limits.min, limits.max, (7, 9), dtype=dtype)
    x2 = torch.randint(limits.min, limits.max, (9, 5), dtype=dtype)
    if width == 8:  # what is long is cut finer
        monkeypatch.setattr(torch.Tensor, "numel", lambda x: 2**21)
    found = product_of_parts(torch.matmul, x1, x2)
    monkeypatch.undo()
    wide = x1.numpy().astype("uint64") @ x2.numpy().astype("uint64")  # wraps around
    assert torch.equal(found, torch.from_numpy(wide.astype("int64")).to(dtype))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("shape", "dim"), [((), -1), ((5,), 0), ((2, 5), -1), ((2, 5), 0)])
def test_sorted_by_places_is_sorted(shape, dim, descending):
    x = torch.tensor([[0.5, math.copysign(math.nan, -1.0), -1.0, 0.5, 2.0], [1.0, 0.5, -math.nan, 0.5, -3.0]])
    x = (x if shape == (2, 5) else x[0] if shape else x[0, 1]).clone().requires_grad_()
    values, places = stable_sort_nan_last(x, dim, descending)
    wanted = torch.sort(x, dim=dim, descending=descending, stable=True)
    torch.testing.assert_close(values, wanted.values, equal_nan=True)
    assert torch.equal(places, wanted.indices)
    weights = torch.arange(1.0, 1 + x.numel()).reshape(shape)
    found = torch.autograd.grad((values * weights).sum(), x)[0]
    assert torch.equal(found, torch.autograd.grad((wanted.values * weights).sum(), x)[0])


def test_unsigned_integers_elsewhere():
    x, y = torch.tensor([65535, 1], dtype=torch.uint16, device="meta"), torch.ones(2, dtype=torch.uint16, device="meta")
    assert in_wider_dtype_off_cpu(torch.bitwise_and, x, y).dtype is torch.uint16


@pytest.mark.parametrize("device", ["cuda:99", "nowhere", "gpu:x"])
def test_no_such_device(device):
    with pytest.raises(mo.errors.ArgumentError, match=r"to_device: there is no device .* here; there is cpu"):
        mo.to_device([1.0], device)


def test_a_missing_kernel_is_unsupported():
    with pytest.raises(mo.errors.UnsupportedError, match=r"op_sort: .*not implemented for '"):
        try:
            raise NotImplementedError("\"sort\" not implemented for 'Int'")
        except NotImplementedError as error:
            raise explain(error, "op_sort", {"x": 1})


def test_a_missing_batching_rule_is_unsupported():
    """PyTorch 2.11 and 2.12 have none for a view in another dtype (pytorch issue 180727)."""
    error = RuntimeError("Batching rule not implemented for aten::view.dtype; the fallback path doesn't work\nmore")
    with pytest.raises(mo.errors.UnsupportedError, match=r"op_view: .*torch>=2\.13: https://.*180727\n  in op_view"):
        raise explain(error, "op_view", {"x": 1})
    with pytest.raises(mo.errors.UnsupportedError, match="op_any: Batching rule not implemented for aten::x;"):
        raise explain(RuntimeError("Batching rule not implemented for aten::x; the"), "op_any", {"x": 1})
