"""Reading and writing weights: of models, pytrees and files."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from multiop import errors

from . import _files
from ._weights import OWNERS, Array, Weights, check_names, flat, is_extended, is_sorted, nested, owner, split_state

SUFFIXES = (".safetensors", ".npz", ".pt", ".pth", ".bin", ".h5", ".keras")
INDEX = ".index.json"  # which file of several has which array, as the Hugging Face hub has it


def reader(framework: str) -> Any:
    """Return the module that reads and writes the weights of a framework's objects."""
    return importlib.import_module(f"multiop.porting.{OWNERS[framework]}.weights")


def read_weights(source: Any, *, like: Any = None) -> Weights:
    """Read the weights of a model, a pytree or a file as NumPy arrays.

    Args:
        source: A `torch.nn.Module` or its `state_dict`; a Keras model or layer; a `tf.Module`, or a list of
            variables; a pytree of JAX arrays (the variables of flax's linen, a module or state of nnx, a module of
            equinox); nested dicts of NumPy arrays; or the path of a `.safetensors`, `.npz`, `.pt`, `.pth` or `.bin`
            file, of the index of several (`model.safetensors.index.json`), or of the folder of a checkpoint.
        like: A model, or `Weights`, with the same names. A file says neither which arrays are parameters nor which
            layers they belong to, unless multiop wrote it; `like` does. Its names may have a prefix that those of the
            checkpoint lack, or lack one that these have, as `module.` and `_orig_mod.`; an array that `like` shares
            under two names may be there once, and `weight_g` may be named as parametrizations name it.

    Returns:
        `Weights`: parameters and state, in the layouts that they have.

    Raises:
        ArgumentError: `source` holds no weights, or they are not those of `like`.
        BackendError: The package that reads the file is not installed.

    Example:
        >>> import numpy as np
        >>> from multiop import porting
        >>> weights = porting.read_weights({"dense": {"kernel": np.ones((2, 3)), "bias": np.zeros(3)}})
        >>> weights.params["dense"]["kernel"].shape
        (2, 3)
    """
    weights = _read(source)
    return weights if like is None else _as_in(weights, like if isinstance(like, Weights) else read_weights(like))


def _read(source: Any) -> Weights:
    if isinstance(source, Weights):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _read_file(Path(source))
    framework = owner(source)
    if framework is None and isinstance(source, (Mapping, list, tuple)):
        leaves = list(_leaves(source))
        owners = {name for leaf in leaves if (name := owner(leaf)) is not None}
        if len({OWNERS[name] for name in owners}) > 1:
            raise errors.ArgumentError(f"weights of several frameworks: {', '.join(sorted(owners))}")
        framework = next((name for name in OWNERS if name in owners), None)
        if framework is None and isinstance(source, Mapping) and leaves:
            return _of_arrays(source)
    if framework is None:
        raise errors.ArgumentError(
            f"weights: a {type(source).__name__} holds none; give a module, a state_dict, a Keras model, variables, "
            "a pytree of arrays, or a path; a WeightMap makes some by apply(source)"
        )
    weights: Weights = reader(framework).read(source)
    return weights


def _leaves(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        tree = tree.values()
    elif not isinstance(tree, (list, tuple)):
        yield tree
        return
    for part in tree:
        yield from _leaves(part)


def _of_arrays(tree: Mapping[str, Any]) -> Weights:
    """Return the weights in nested dicts of NumPy arrays; flat names with dots are taken apart."""
    arrays: dict[str, Array] = {}
    for name, leaf in flat(tree).items():
        arrays[name] = np.asarray(leaf)
        if arrays[name].dtype.kind in "OUS":
            raise errors.ArgumentError(f"weights: {name} is a {type(leaf).__name__}, not an array")
    weights = split_state(arrays)
    weights.is_ordered = not is_sorted(weights.params)
    return weights


def _as_in(weights: Weights, like: Weights) -> Weights:
    wanted = like.arrays
    arrays = _with_shared(_with_prefix(weights.arrays, wanted), wanted)
    check_names(arrays, wanted, "the weights")
    for name, x in arrays.items():
        if x.shape != wanted[name].shape:
            raise errors.ArgumentError(f"{name}: shape {x.shape} where the model has {wanted[name].shape}")
    return like.with_arrays(arrays)


# what wraps modules, and two ways of PyTorch to name the parts of a normalized weight
_WRAPPERS = re.compile(r"(?<![^.])(?:module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")


def _respell(name: str) -> str:
    """Return the name that `torch.nn.utils.parametrizations` gives to a part of a normalized weight."""
    return re.sub(r"(\w+)_([gv])$", lambda m: f"parametrizations.{m[1]}.original{'gv'.index(m[2])}", name)


def _respell_back(name: str) -> str:
    return re.sub(r"parametrizations\.(\w+)\.original([01])$", lambda m: f"{m[1]}_{'gv'[int(m[2])]}", name)


def _with_prefix(arrays: dict[str, Array], wanted: Mapping[str, Any]) -> dict[str, Array]:
    """Return arrays under the names in `wanted`, if one prefix of all names is what tells them from theirs."""
    spelled = {_WRAPPERS.sub("", name): x for name, x in arrays.items()}
    if not arrays.keys() <= wanted.keys() and len(spelled) == len(arrays):
        for respell in (str, _respell, _respell_back):
            renamed = {name if name in wanted else respell(name): x for name, x in spelled.items()}
            if renamed.keys() <= wanted.keys():
                return renamed
    present = [name for name in wanted if name in arrays]
    if present or not arrays or not wanted:
        return arrays
    theirs, ours = _shared_parts(arrays), _shared_parts(wanted)
    ways = [{name.split(".", n)[n]: x for name, x in arrays.items()} for n in range(1, len(theirs) + 1)]
    ways += [{".".join([*ours[:n], name]): x for name, x in arrays.items()} for n in range(1, len(ours) + 1)]
    fits = [way for way in ways if way.keys() <= wanted.keys()]
    return fits[0] if len(fits) == 1 else arrays


def _shared_parts(names: Iterable[str]) -> list[str]:
    """Return the parts, between dots, with which all names begin."""
    columns = zip(*(name.split(".")[:-1] for name in names), strict=False)
    return [column[0] for column in itertools.takewhile(lambda column: len(set(column)) == 1, columns)]


def _with_shared(arrays: dict[str, Array], wanted: Mapping[str, Array]) -> dict[str, Array]:
    """Return arrays with those that stand under another name, because `wanted` has one array under both."""
    given = {id(x): name for name, x in wanted.items() if name in arrays}
    missing = {name: arrays[given[id(x)]] for name, x in wanted.items() if name not in arrays and id(x) in given}
    return arrays | missing


def _read_folder(path: Path) -> Weights:
    """Read a checkpoint of one file, of several with an index, or of several that are numbered."""
    for suffix in (".safetensors", ".bin", ".pt", ".pth", ".npz"):
        indices = sorted(path.glob(f"*{suffix}{INDEX}"))
        files = sorted(path.glob(f"*{suffix}"))
        if len(indices) == 1:
            return _read_shards(indices[0])
        if files and all(re.search(r"-\d+-of-\d+$", file.stem) for file in files):
            (count,) = {int(file.stem.rpartition("-")[2]) for file in files}
            if count != len(files):
                raise errors.ArgumentError(f"{path} has {len(files)} of {count} parts of a checkpoint")
            return _join_files(files)
        if len(files) == 1:
            return _read_file(files[0])
        if files or indices:
            names = ", ".join(file.name for file in [*indices, *files])
            raise errors.ArgumentError(f"{path} holds several checkpoints, name one: {names}")
    if any((path / name).exists() for name in ("_METADATA", "_CHECKPOINT_METADATA", "manifest.ocdbt", "checkpoint")):
        raise errors.ArgumentError(
            f"{path}: only orbax can read it: read_weights(StandardCheckpointer().restore({str(path)!r})), with that "
            "of orbax.checkpoint"
        )
    raise errors.ArgumentError(f"{path}: there is no {', '.join(SUFFIXES[:5])} file in this folder")


def _read_shards(index: Path) -> Weights:
    names = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    weights = _join_files([index.parent / file for file in dict.fromkeys(names.values())])
    check_names(weights.arrays, names, index.name)
    return weights


def _join_files(files: list[Path]) -> Weights:
    parts = [_read_file(file) for file in files]
    arrays: dict[str, Array] = {}
    for part in parts:
        arrays |= part.arrays
    if len(arrays) < sum(len(part.arrays) for part in parts):
        raise errors.ArgumentError(f"two of the files {', '.join(x.name for x in files)} have an array of one name")
    weights = split_state(arrays, parts[0].framework)
    weights.is_ordered = False
    return weights


def _read_file(path: Path) -> Weights:
    if path.is_dir():
        return _read_folder(path)
    if path.name.endswith(INDEX):
        return _read_shards(path)
    match path.suffix:
        case ".safetensors":
            return _with_metadata(*_files.read_safetensors(path))
        case ".npz":
            return _with_metadata(*_files.read_npz(path))
        case ".pt" | ".pth" | ".bin":
            weights: Weights = reader("torch").read_file(path)
            return weights
        case ".msgpack":
            raise errors.ArgumentError(
                f"{path.name}: only flax can read it: read_weights(msgpack_restore(Path({str(path)!r}).read_bytes())), "
                "with that of flax.serialization"
            )
        case ".h5" | ".keras":
            raise errors.ArgumentError(
                f"{path.name}: only a Keras model can read it: model.load_weights({path.name!r}), then "
                "read_weights(model)"
            )
        case _:
            raise errors.ArgumentError(f"{path.name}: not one of {', '.join(SUFFIXES)}")


def _with_metadata(arrays: dict[str, Array], metadata: str | None) -> Weights:
    """Return the weights of a file: as multiop described them, in its order, or as their names tell."""
    if metadata is None:
        separated = {name.replace("/", "."): x for name, x in arrays.items()}
        if len(separated) < len(arrays):
            raise errors.ArgumentError("two arrays of the file have the same name but for the separator")
        weights = split_state(separated)
        weights.is_ordered = False
        return weights
    said = json.loads(metadata)
    check_names(arrays, dict.fromkeys([*said["params"], *said["state"]]), "the file's arrays")
    params, state = ({name: arrays[name] for name in said[which]} for which in ("params", "state"))
    return Weights(nested(params), nested(state), said["framework"], said["kinds"], said["is_ordered"])


def _metadata(weights: Weights) -> str:
    params, state = flat(weights.params), flat(weights.state)
    if flat(nested(params)).keys() != params.keys() or _has_dots(weights.params) or _has_dots(weights.state):
        raise errors.ArgumentError("a name with a dot in it cannot be written to a file")
    said: dict[str, Any] = {"framework": weights.framework, "kinds": weights.kinds, "is_ordered": weights.is_ordered}
    said |= {"params": list(params), "state": list(state)}
    return json.dumps(said | {"dtypes": {n: x.dtype.name for n, x in weights.arrays.items() if is_extended(x.dtype)}})


def _has_dots(tree: Mapping[str, Any]) -> bool:
    return any("." in str(key) or (isinstance(x, Mapping) and _has_dots(x)) for key, x in tree.items())


def write_weights(destination: Any, weights: Any, *, cast: bool = False, partial: bool = False) -> Any:
    """Write weights into a model, or to a file.

    Args:
        destination: A `torch.nn.Module`, a Keras model or layer, a `tf.Module`, a list of variables, or a module of
            nnx, which is changed; a pytree of JAX arrays, whose structure the result has; or the path of a
            `.safetensors`, `.npz`, `.pt` or `.pth` file.
        weights: `Weights`, or what `read_weights` reads, in the destination's names, shapes and layouts.
        cast: Whether weights may be rounded to the destination's dtypes.
        partial: Whether the destination may have arrays that `weights` lacks; they stay. Counters always do.

    Returns:
        The model that was changed, the new pytree, or the path.

    Raises:
        ArgumentError: Names or shapes differ, or a dtype does and `cast` is false.
        BackendError: The package that writes the file is not installed.

    Example:
        >>> import numpy as np, pathlib, tempfile
        >>> from multiop import porting
        >>> path = pathlib.Path(tempfile.mkdtemp(), "weights.npz")
        >>> _ = porting.write_weights(path, {"dense": {"kernel": np.ones((2, 3))}})
        >>> porting.read_weights(path)
        Weights(None: 1 parameters of 6 entries, 0 of state)
    """
    weights = read_weights(weights)
    if isinstance(destination, (str, os.PathLike)):
        return _write_file(Path(destination), weights)
    framework = owner(destination)
    if framework is None:
        framework = next((name for leaf in _leaves(destination) if (name := owner(leaf)) is not None), None)
    if framework is None:
        raise errors.ArgumentError(f"weights cannot be written to a {type(destination).__name__}")
    return reader(framework).write(destination, weights, cast, partial)


def _write_file(path: Path, weights: Weights) -> Path:
    arrays = weights.arrays
    match path.suffix:
        case ".safetensors":
            _files.write_safetensors(path, arrays, _metadata(weights))
        case ".npz":
            _files.write_npz(path, arrays, _metadata(weights))
        case ".pt" | ".pth":
            reader("torch").write_file(path, arrays)
        case _:
            raise errors.ArgumentError(f"{path.name}: not one of .safetensors, .npz, .pt, .pth")
    return path
