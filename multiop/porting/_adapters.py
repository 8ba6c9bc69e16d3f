"""Low-rank adapters, as PEFT saves them, added to the weights that they adapt."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from multiop import errors
from multiop.porting import _io
from multiop.porting._weights import Array, Weights

PREFIX = "base_model.model."
PARTS = re.compile(r"(?P<layer>.*)\.lora_(?P<embedding>embedding_)?(?P<part>[AB])(\.weight)?")
# what changes the product of the two matrices otherwise
OTHERS = ("use_dora", "lora_bias", "megatron_config", "trainable_token_indices")


def merge_adapter(weights: Any, adapter: str | Path) -> Weights:
    """Add a low-rank adapter to the weights that it adapts.

    Args:
        weights: `Weights`, or what `read_weights` reads: those of the model without the adapter.
        adapter: The folder in which PEFT saved a LoRA adapter: `adapter_config.json` and its weights.

    Returns:
        The weights of a model that needs no adapter, in the dtypes of `weights`. Layers that were trained whole are
        those of the adapter.

    Raises:
        ArgumentError: The adapter is of another kind than LoRA, or adapts what `weights` does not have.

    Source: https://arxiv.org/abs/2106.09685
    """
    weights, folder = _io.read_weights(weights), Path(adapter)
    path = folder / "adapter_config.json"
    if not path.exists():
        raise errors.ArgumentError(f"{os.fspath(folder)} holds no adapter: there is no {path.name}")
    config = json.loads(path.read_text(encoding="utf-8"))
    other = next((name for name in OTHERS if config.get(name)), None)
    if config.get("peft_type") != "LORA" or other is not None:
        raise errors.ArgumentError(f"the adapter must be a plain LORA, got {other or config.get('peft_type')}")
    arrays, pairs = dict(weights.arrays), dict[str, dict[str, Any]]()
    for name, x in _io.read_weights(folder).arrays.items():
        name = name.removeprefix(PREFIX)
        match = PARTS.fullmatch(name)
        if match is None:
            name = name.replace(".modules_to_save.", ".").replace(".base_layer.", ".")
            check_known(name, arrays)
            arrays[name] = x.astype(arrays[name].dtype)
        else:
            layer, embedding, part = match.group("layer", "embedding", "part")
            pairs.setdefault(layer, {})[part] = x
            pairs[layer]["is transposed"] = bool(embedding) or config.get("fan_in_fan_out", False)
    for layer, pair in pairs.items():
        name = f"{layer}.weight"
        check_known(name, arrays)
        if not {"A", "B"} <= pair.keys():
            raise errors.ArgumentError(f"the adapter has one of the two matrices of {layer}")
        change = _scale(layer, config, len(pair["A"])) * _product(pair["A"], pair["B"])
        change = change.T if pair["is transposed"] else change
        if change.shape != arrays[name].shape:
            raise errors.ArgumentError(f"{name}: shape {arrays[name].shape} where the adapter has {change.shape}")
        arrays[name] = (arrays[name].astype(change.dtype) + change).astype(arrays[name].dtype)
    return weights.with_arrays(arrays)


def check_known(name: str, arrays: dict[str, Array]) -> None:
    if name not in arrays:
        raise errors.ArgumentError(f"the adapter changes {name}, which the weights do not have")


def _scale(layer: str, config: dict[str, Any], rank: int) -> float:
    patterns = config.get("alpha_pattern") or {}
    given = (alpha for pattern, alpha in patterns.items() if re.fullmatch(rf"(.*\.)?({pattern})", layer))
    alpha = float(next(given, config["lora_alpha"]))
    return alpha / (rank**0.5 if config.get("use_rslora") else rank)


def _product(a: Array, b: Array) -> Array:
    """Return the change of a dense kernel (out, in), or of a convolution (out, in, *spatial), whose `b` is 1 wide."""
    dtype = np.float64 if a.dtype == np.float64 else np.float32
    flat = b.reshape(len(b), -1).astype(dtype) @ a.reshape(len(a), -1).astype(dtype)
    product: Array = flat.reshape(len(b), *a.shape[1:])
    return product
