"""Weights are read from every kind of source, written back exactly, and mapped by known layouts alone."""

from __future__ import annotations

import importlib
import re
import sys

import ml_dtypes
import numpy as np
import pytest

from multiop import errors, porting

EVERY = {
    "a": {"kernel": np.arange(6, dtype="float32").reshape(2, 3), "bias": np.zeros(3, "float64")},
    "b": {"0": {"half": np.ones(4, "float16"), "brain": np.arange(5).astype(ml_dtypes.bfloat16)}},
    "scalar": np.array(3.5),
    "empty": np.zeros((0, 3), "float32"),
}
STATE = {
    "b": {"0": {"running_mean": np.ones(2, "float32")}},
    "count": np.array(7, "int64"),
    "mask": np.array([True, False]),
}


def weights():
    return porting.Weights(EVERY, STATE, "keras", {"a": "Dense"})


def assert_same(computed, expected):
    assert list(computed.arrays) == list(expected.arrays)
    for name, x in expected.arrays.items():
        assert (computed.arrays[name].shape, computed.arrays[name].dtype) == (x.shape, x.dtype), name
        np.testing.assert_array_equal(computed.arrays[name], x, err_msg=name)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_files(suffix, tmp_path):
    path = porting.write_weights(tmp_path / f"w{suffix}", weights())
    read = porting.read_weights(path)
    assert_same(read, weights())
    assert (read.framework, read.kinds, read.state.keys()) == ("keras", {"a": "Dense"}, STATE.keys())
    assert_same(porting.read_weights(str(path), like=weights()), weights())


EXTENDED = [name for name in dir(ml_dtypes) if name.startswith(("bfloat", "float", "int", "uint"))]
IN_SAFETENSORS = {"bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"}
IN_SAFETENSORS |= {"float4_e2m1fn", "complex64", ">f4"}
IN_PYTORCH = (IN_SAFETENSORS | {"complex128"}) - {"float4_e2m1fn"}


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pt"])
def test_a_dtype_comes_back_or_is_refused_when_it_is_written(suffix, tmp_path):
    known = {".npz": {*EXTENDED, "complex128", "complex64", ">f4"}, ".safetensors": IN_SAFETENSORS, ".pt": IN_PYTORCH}
    if suffix == ".pt":
        pytest.importorskip("torch")
    for name in (*EXTENDED, "complex64", "complex128", ">f4", "datetime64[s]"):
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        for array in (np.array(1, dtype), np.arange(1, 9).reshape(2, 4).astype(dtype).T, np.zeros((0, 2), dtype)):
            path, is_packed = tmp_path / f"w{suffix}", suffix == ".safetensors" and name == "float4_e2m1fn"
            array = array.T if is_packed else array
            named = {"file": array, "of": {"w": array}}
            if name not in known[suffix] or (is_packed and array.ndim == 0):
                if suffix == ".npz":
                    continue
                with pytest.raises(errors.ArgumentError, match=rf"w{suffix}: file is {re.escape(dtype.name)}"):
                    porting.write_weights(path, named)
                continue
            read = porting.read_weights(porting.write_weights(path, named)).arrays
            for x in read.values():
                assert (x.shape, x.dtype.name) == (array.shape, dtype.name)
                assert x.astype(array.dtype).tobytes() == array.tobytes()
    for file, name in (("w.npz", "multiop"), ("w.safetensors", "__metadata__")):
        with pytest.raises(errors.ArgumentError, match=f"{file}: {name} has (the|a) name"):
            porting.write_weights(tmp_path / file, {name: np.ones(2)})


def test_float8_and_float4_of_pytorch_are_read_and_written(tmp_path):
    torch, native = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    path = tmp_path / "w.safetensors"
    for name in sorted(name for name in IN_SAFETENSORS if name.startswith("float8") and hasattr(torch, name)):
        x = torch.tensor([[1.0, 2.0], [0.5, 4.0]]).to(getattr(torch, name))
        native.save_file({"w": x, "s": x[0, 1].clone()}, path)
        read = porting.read_weights(path).arrays
        np.testing.assert_array_equal(read["w"].astype("float32"), x.float().numpy())
        assert read["s"].shape == () and float(read["s"]) == 2.0
        porting.write_weights(path, {"w": x, "s": x[0, 1].clone()})
        back = native.load_file(path)
        assert back["w"].dtype == x.dtype and back["s"].shape == () and torch.equal(back["w"].float(), x.float())
    if hasattr(torch, "float4_e2m1fn_x2"):
        native.save_file({"w": torch.tensor([0x10, 0x72], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)}, path)
        assert porting.read_weights(path).arrays["w"].astype("float32").tolist() == [0.0, 0.5, 1.0, 6.0]
        packed = torch.ones(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
        with pytest.raises(errors.ArgumentError, match=r"w is torch.float4_e2m1fn_x2"):
            porting.read_weights({"w": packed})


def test_a_foreign_file_tells_state_by_name_and_dtype(tmp_path):
    np.savez(tmp_path / "w.npz", **{"fc/weight": np.ones((2, 2)), "bn/running_var": np.ones(2), "steps": np.array(3)})
    read = porting.read_weights(tmp_path / "w.npz")
    assert list(read.params) == ["fc"]
    assert set(read.state) == {"bn", "steps"}
    assert not read.is_ordered
    np.savez(tmp_path / "raw.npz", w=np.ones(3, ml_dtypes.bfloat16))
    with pytest.raises(errors.ArgumentError, match=r"w is raw bytes .* bfloat16"):
        porting.read_weights(tmp_path / "raw.npz")
    np.savez(tmp_path / "raw.npz", w=np.ones(3, ml_dtypes.float8_e5m2))
    with pytest.raises(errors.ArgumentError, match=r"raw.npz: w cannot be read: .*<f1"):
        porting.read_weights(tmp_path / "raw.npz")
    (tmp_path / "cut.safetensors").write_bytes(b"1234")
    with pytest.raises(errors.ArgumentError, match=r"cut.safetensors: safetensors .* cannot read it"):
        porting.read_weights(tmp_path / "cut.safetensors")


def test_bad_sources(tmp_path, monkeypatch):
    for source, message in (
        (3, "a int holds none"),
        ({}, "a dict holds none"),
        ({"w": "text"}, "w is a str"),
        (tmp_path / "w.txt", "not one of .safetensors"),
        (tmp_path / "w.weights.h5", "model.load_weights"),
        ({"a.b": np.ones(1), "a": {"b": np.ones(1)}}, "a.b: two arrays"),
        ({"a": np.ones(1), "a.b": np.ones(1)}, "both an array and a group"),
    ):
        with pytest.raises(errors.ArgumentError, match=message):
            porting.read_weights(source)
    with pytest.raises(errors.ArgumentError, match=r"mask missing; more unknown"):
        porting.read_weights({"more": np.ones(2)}, like=porting.Weights({}, {"mask": np.ones(2)}))
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(errors.BackendError, match=r"pip install 'multiop\[porting\]'"):
        porting.read_weights(tmp_path / "w.safetensors")
    with pytest.raises(errors.ArgumentError, match="for a parameter and for a state"):
        porting.Weights({"a": np.ones(1)}, {"a": np.ones(1)})


def dense(name, shape, framework=None, kind=None, bias=True):
    leaf = "kernel" if framework in ("keras", "flax") else "weight"
    arrays = {leaf: np.random.default_rng(len(name)).normal(size=shape)} | ({"bias": np.ones(3)} if bias else {})
    return porting.Weights({name: arrays}, {}, framework, {name: kind} if kind else {})


def test_a_square_kernel_is_ambiguous_unless_its_layer_is_known():
    target = dense("fc", (3, 3), "keras", "Dense")
    known = porting.map_weights(dense("fc", (3, 3), "torch", "Linear"), target)
    assert str(known.rows["fc.kernel"].expression) == "fc.weight | transpose 1 0"
    known = porting.map_weights(dense("fc", (3, 3), "torch", "Conv1D"), target)  # of transformers
    assert str(known.rows["fc.kernel"].expression) == "fc.weight"
    unknown = porting.map_weights(dense("fc", (3, 3), "torch"), target)
    assert unknown.ambiguous == {"fc.kernel": ["fc.weight", "fc.weight | transpose 1 0"]}
    assert list(unknown.rows) == ["fc.bias"]
    with pytest.raises(errors.ArgumentError, match=r"fc.kernel: ambiguous: fc.weight or fc.weight \| transpose 1 0"):
        unknown.apply(dense("fc", (3, 3), "torch"))
    assert list(unknown.apply(dense("fc", (3, 3)), unresolved="skip").arrays) == ["fc.bias"]
    assert "ambiguous: fc.kernel" in str(unknown)
    assert not unknown.choose("fc.kernel", 1).unresolved
    np.testing.assert_array_equal(
        unknown.apply(dense("fc", (3, 3))).params["fc"]["kernel"], dense("fc", (3, 3)).params["fc"]["weight"].T
    )


def test_a_shape_that_fits_one_way_decides():
    weight_map = porting.map_weights(dense("fc", (3, 2), "torch"), dense("fc", (2, 3), "keras", "Dense"))
    assert str(weight_map.rows["fc.kernel"].expression) == "fc.weight | transpose 1 0"
    assert not weight_map.unresolved


def test_equal_layers_of_a_sorted_dict_are_not_matched_by_order():
    layers = {"alpha": {"kernel": np.ones((2, 2))}, "beta": {"kernel": np.zeros((2, 2))}}
    source = porting.Weights({"one": {"weight": np.ones((2, 2))}, "two": {"weight": np.ones((2, 2))}}, {}, "torch")
    source.kinds |= {"one": "Linear", "two": "Linear"}
    weight_map = porting.map_weights(source, layers)
    assert list(weight_map.ambiguous) == ["alpha.kernel", "beta.kernel"]
    assert weight_map.ambiguous["beta.kernel"] == ["one.weight | transpose 1 0", "two.weight | transpose 1 0"]
    ordered = porting.map_weights(source, {"in": layers["alpha"], "fc": layers["beta"]})
    assert [str(row.expression)[:3] for row in ordered.rows.values()] == ["one", "two"]
    assert {row.how for row in ordered.rows.values()} == {"order"}


def test_the_names_below_a_common_root_are_compared():
    source = porting.Weights(
        {"first": {"weight": np.ones((2, 2))}, "second": {"weight": np.ones((2, 2))}},
        {}, "torch", {"first": "Linear", "second": "Linear"},
    )  # fmt: skip
    target = {"model": {"second": {"kernel": np.ones((2, 2))}, "first": {"kernel": np.ones((2, 2))}}}
    rows = porting.map_weights(source, porting.Weights(target, {}, "keras")).rows
    assert {name: str(row.expression).partition(".")[0] for name, row in rows.items()} == {
        "model.second.kernel": "second",
        "model.first.kernel": "first",
    }


def test_numbers_alone_are_no_names():
    square = {"weight": np.ones((2, 2))}
    source = porting.Weights(
        {"1": square, "3": square}, {}, "torch", {"1": "Linear", "3": "Linear"}
    )  # 0 has no weights
    target = porting.Weights(
        {"dense": {"kernel": np.ones((2, 2))}, "dense_1": {"kernel": np.ones((2, 2))}}, {}, "keras"
    )
    weight_map = porting.map_weights(source, target)
    assert [(n, str(row.expression)[0], row.how) for n, row in weight_map.rows.items()] == [
        ("dense.kernel", "1", "order"),
        ("dense_1.kernel", "3", "order"),
    ]
    assert weight_map.by_order == ["dense.kernel", "dense_1.kernel"]


def test_what_has_no_counterpart_is_listed():
    source = porting.Weights({"fc": {"weight": np.ones((3, 2))}, "old": {"weight": np.ones((7, 5))}}, {}, "torch")
    target = {"fc": {"kernel": np.ones((2, 3)), "bias": np.ones(3)}}
    weight_map = porting.map_weights(source, target)
    assert (weight_map.missing, weight_map.unused) == (["fc.bias"], ["old.weight"])
    with pytest.raises(errors.ArgumentError, match="2 weights are unresolved"):
        weight_map.apply(source)
    weight_map.keep("fc.bias").ignore("old.weight")
    assert list(weight_map.apply(source).arrays) == ["fc.kernel"]
    with pytest.raises(errors.ArgumentError, match="there is no new"):
        weight_map.keep("new")


def test_fused_query_key_value_are_proposed_and_not_taken():
    fused = porting.Weights(
        {"attn": {"qkv": {"weight": np.arange(24.0).reshape(12, 2), "bias": np.arange(12.0)}}}, {}, "torch"
    )
    fused.kinds["attn.qkv"] = "Linear"
    dense = {"kernel": np.ones((2, 4)), "bias": np.ones(4)}
    target = {"attn": {"query": dict(dense), "key": dict(dense), "value": dict(dense)}}
    weight_map = porting.map_weights(fused, target)
    assert not weight_map.rows
    assert weight_map.ambiguous["attn.key.kernel"] == ["attn.qkv.weight | transpose 1 0 | part 1 4:8/12"]
    for name in weight_map.target:
        weight_map.choose(name)
    made = weight_map.apply(fused)
    np.testing.assert_array_equal(made.arrays["attn.key.kernel"], fused.arrays["attn.qkv.weight"][4:8].T)
    assert_same(weight_map.invert().apply(made), fused)
    back = porting.map_weights(target, fused)
    assert back.ambiguous["attn.qkv.bias"] == ["concat 0 (attn.query.bias; attn.key.bias; attn.value.bias)"]


def test_a_dense_layer_behind_a_flattened_image_has_more_than_one_way():
    source = porting.Weights(
        {"c": {"weight": np.ones((4, 3, 3, 3))}, "d": {"weight": np.arange(96.0).reshape(2, 48)}}, {}, "torch"
    )
    source.kinds |= {"c": "Conv2d", "d": "Linear"}
    target = porting.Weights({"c": {"kernel": np.ones((3, 3, 3, 4))}, "d": {"kernel": np.ones((48, 2))}}, {}, "keras")
    target.kinds |= {"c": "Conv2D", "d": "Dense"}
    weight_map = porting.map_weights(source, target)
    assert len(weight_map.ambiguous["d.kernel"]) == 7
    assert weight_map.ambiguous["d.kernel"][-1] == "d.weight | transpose 1 0"
    image = np.random.default_rng(0).normal(size=(4, 3, 4))  # channels, height, width
    kernel = weight_map.choose(
        "d.kernel", "d.weight | reshape 2x48 -> 2x4x3x4 | transpose 2 3 1 0 | reshape 3x4x4x2 -> 48x2"
    )
    made = kernel.apply(source)
    np.testing.assert_allclose(
        image.transpose(1, 2, 0).reshape(-1) @ made.arrays["d.kernel"], source.arrays["d.weight"] @ image.reshape(-1)
    )
    first = porting.map_weights(source, target).choose("d.kernel", 1)
    assert_same(first.invert().apply(first.apply(source)), source)


def test_a_map_is_saved_edited_and_loaded(tmp_path):
    source, target = dense("fc", (3, 3), "torch"), dense("fc", (3, 3), "keras", "Dense")
    weight_map = porting.map_weights(source, target)
    path = weight_map.save(tmp_path / "map.toml")
    again = porting.WeightMap.load(path)
    assert (again.unresolved, again.ambiguous, str(again.rows["fc.bias"].expression)) == (
        weight_map.unresolved,
        weight_map.ambiguous,
        "fc.bias",
    )
    text = path.read_text().replace("\n[params]", '\n[params]\n"fc.kernel" = "fc.weight | transpose 1 0"')
    path.write_text(text)
    edited = porting.WeightMap.load(path)
    assert not edited.unresolved
    assert_same(edited.apply(source), weight_map.choose("fc.kernel", 1).apply(source))
    assert_same(edited.invert().apply(edited.apply(source)), source)
    path.write_text(text.replace("| transpose 1 0", "| part 0 0:2/3", 1))
    with pytest.raises(errors.ArgumentError, match=r"fc.kernel: .* has shape \(2, 3\), the target has \(3, 3\)"):
        porting.WeightMap.load(path)
    path.write_text("nonsense")
    with pytest.raises(errors.ArgumentError, match="not a map"):
        porting.WeightMap.load(path)


def test_apply_checks_the_weights():
    weight_map = porting.map_weights(dense("fc", (3, 2), "torch", "Linear"), dense("fc", (2, 3), "keras", "Dense"))
    with pytest.raises(errors.ArgumentError, match=r"fc.weight: shape \(3, 4\) where the map has \(3, 2\)"):
        weight_map.apply(dense("fc", (3, 4)))
    with pytest.raises(errors.ArgumentError, match="fc.bias missing"):
        weight_map.apply(dense("fc", (3, 2), bias=False))


def test_importing_it_imports_no_framework():
    import subprocess

    program = (
        "import sys, multiop.porting; print(*{'torch', 'jax', 'tensorflow', 'keras', 'safetensors'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    assert importlib.import_module("multiop.porting").__all__ == sorted(porting.__all__)
