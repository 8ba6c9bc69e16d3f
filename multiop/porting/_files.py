"""Arrays in `.safetensors` and `.npz` files: shapes and dtypes come back as they were, or are refused when written."""

from __future__ import annotations

import importlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from multiop import errors

from ._weights import Array, is_extended

METADATA = "multiop"
_NAMES = {  # of dtypes: those of NumPy and ml_dtypes, and those of safetensors
    **{f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint", "float") for bits in (16, 32, 64)},
    "bool": "BOOL",
    "int8": "I8",
    "uint8": "U8",
    "complex64": "C64",
    "bfloat16": "BF16",
}
_EXTENDED = {  # those that its reader of NumPy arrays lacks
    "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
    "float4_e2m1fn": "F4",
}


def write_safetensors(path: Path, arrays: Mapping[str, Array], metadata: str) -> None:
    """Write arrays and a text to a `.safetensors` file.

    Raises:
        ArgumentError: The format has no such dtype, or an array has the name that the text has.
    """
    header: dict[str, Any] = {"__metadata__": {METADATA: metadata}}
    chunks: list[Array] = []
    end = 0
    for name, x in sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize):  # so that all are aligned
        kind = (_NAMES | _EXTENDED).get(x.dtype.name)
        if name in header:
            raise errors.ArgumentError(f"{path.name}: {name} has a name that safetensors keeps for itself")
        if kind is None:
            raise errors.ArgumentError(
                f"{path.name}: {name} is {x.dtype.name}, which safetensors lacks; cast it, or write an .npz file"
            )
        if kind == "F4" and (x.ndim == 0 or x.shape[-1] % 2):
            raise errors.ArgumentError(
                f"{path.name}: {name} is {x.dtype.name} of shape {x.shape}, and safetensors packs two of a row in a "
                "byte; cast it, or write an .npz file"
            )
        chunks.append(_pack(x) if kind == "F4" else x.byteswap() if x.dtype.byteorder == ">" else x)
        start, end = end, end + chunks[-1].nbytes
        header[name] = {"dtype": kind, "shape": x.shape, "data_offsets": (start, end)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for chunk in chunks:
            file.write(chunk.tobytes())


def read_safetensors(path: Path) -> tuple[dict[str, Array], str | None]:
    """Return the arrays of a `.safetensors` file, and the text that multiop wrote beside them.

    Raises:
        ArgumentError: The file is broken, or an array has a dtype that NumPy and ml_dtypes lack.
        BackendError: safetensors is not installed.
    """
    try:
        package = importlib.import_module("safetensors")
    except ImportError:
        raise errors.BackendError(
            "safetensors is not installed, which reads .safetensors: pip install 'multiop[porting]'"
        ) from None
    dtypes = {kind: name for name, kind in _EXTENDED.items()}
    arrays: dict[str, Array] = {}
    name = ""
    try:
        with package.safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - it is no dict
                kind = file.get_slice(name).get_dtype()
                arrays[name] = _read_entries(path, name, dtypes[kind]) if kind in dtypes else file.get_tensor(name)
            return arrays, (file.metadata() or {}).get(METADATA)
    except package.SafetensorError as error:
        at = f"{path.name}: {name}" if name else path.name
        raise errors.ArgumentError(f"{at}: safetensors {package.__version__} cannot read it: {error}") from error


def _read_entries(path: Path, name: str, dtype: str) -> Array:
    """Return an array of the dtype of ml_dtypes from a file that safetensors has found to be one."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(length))[name]
        start, end = entry["data_offsets"]
        file.seek(8 + length + start)
        x = np.frombuffer(bytearray(file.read(end - start)), np.uint8)
    return (_unpack(x) if dtype == "float4_e2m1fn" else x).view(getattr(ml_dtypes, dtype)).reshape(entry["shape"])


def _pack(x: Array) -> Array:
    """Return bytes that hold two entries of 4 bits each, the first in the lower half, as PyTorch has them."""
    pairs = np.asarray(x, order="C").view(np.uint8).reshape(-1, 2)
    return pairs[:, 0] | pairs[:, 1] << 4


def _unpack(x: Array) -> Array:
    return np.stack([x & 15, x >> 4], axis=-1).reshape(-1)


def write_npz(path: Path, arrays: Mapping[str, Array], metadata: str) -> None:
    """Write arrays and a text to an `.npz` file.

    Raises:
        ArgumentError: An array holds objects, or has the name that the text has.
    """
    for name, x in arrays.items():
        if x.dtype.hasobject or name == METADATA:
            why = f"has the name of what {METADATA} writes" if name == METADATA else "holds objects"
            raise errors.ArgumentError(f"{path.name}: {name} {why}, and cannot be written")
    stored: dict[str, Any] = {**arrays, METADATA: np.asarray(metadata)}
    with zipfile.ZipFile(path, "w") as file:  # savez takes no array of the name "file"
        for name, x in stored.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                # NumPy writes the dtypes of ml_dtypes, and cannot read them
                plain = x.view(f"u{x.dtype.itemsize}") if is_extended(x.dtype) else x
                np.lib.format.write_array(entry, np.asarray(plain), allow_pickle=False)


def read_npz(path: Path) -> tuple[dict[str, Array], str | None]:
    """Return the arrays of an `.npz` file, and the text that multiop wrote beside them.

    Raises:
        ArgumentError: An array has a dtype that the file does not name.
    """
    arrays: dict[str, Array] = {}
    try:
        opened = np.load(path, allow_pickle=False)
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise errors.ArgumentError(f"{path.name}: NumPy cannot read it: {error}") from error
    with opened as file:
        for name in file.files:
            try:
                arrays[name] = file[name]
            except ValueError as error:
                raise errors.ArgumentError(f"{path.name}: {name} cannot be read: {error}") from None
    text = arrays.pop(METADATA, None)
    metadata = None if text is None else str(text)
    dtypes = {} if metadata is None else json.loads(metadata)["dtypes"]
    for name, x in arrays.items():
        if name in dtypes:
            arrays[name] = x.view(getattr(ml_dtypes, dtypes[name]))
        elif x.dtype.kind == "V" and x.dtype.names is None:
            raise errors.ArgumentError(
                f"{path.name}: {name} is raw bytes of dtype {x.dtype.str}, as NumPy saves bfloat16; write it with "
                "porting.write_weights, or as .safetensors"
            )
    return arrays, metadata
