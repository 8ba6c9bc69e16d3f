#!/usr/bin/env bash
# Flax 0.12.8, Haiku 0.0.17, Keras 3.15.1 on PyTorch, PyTorch 2.13.0: normalizations that lose the digits of numbers far from 0.
# Each takes the variance as the mean square less the square of the mean. Of float32 numbers of deviation 1 around 1000,
# the normalized ones, which are from -4 to 4, are off by 0.1 and more: by Flax's layer, group and batch normalization
# (`use_fast_variance=True` is the default), by Haiku's batch normalization, by Keras's group and batch normalization on
# PyTorch (on JAX and TensorFlow they keep their digits), and by `torch.group_norm` of images whose channels lie last,
# on a CPU. Around 10,000 they are off by hundreds, or NaN. The others keep theirs: layer and group normalization of
# Haiku, Equinox's of groups, `torch.group_norm` where channels lie first, Keras's layer normalization.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q --no-compile numpy==2.4.6 torch==2.13.0 keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 \
  flax==0.12.8 dm-haiku==0.0.17 equinox==0.13.8
cat > "$folder/program.py" <<'PROGRAM'
import warnings

warnings.simplefilter("ignore")

import jax
import keras
import numpy as np
import torch

changed = []
IMAGES = np.random.default_rng(0).standard_normal((2, 8, 8, 16)).astype("float32")
AXES = {"layer": (-1,), "batch": (0, 1, 2)}


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def normalize(x, kind):
    """Return what float64 gives."""
    x = x.astype("float64")
    y, axes = (x.reshape(2, 64, 4, 4), (1, 3)) if kind == "group" else (x, AXES[kind])
    return ((y - y.mean(axes, keepdims=True)) / np.sqrt(y.var(axes, keepdims=True) + 1e-3)).reshape(x.shape)


def judge(kind, function, mean):
    """Say whether a normalization is right to two digits."""
    x = IMAGES + np.float32(mean)
    error = np.abs(np.asarray(function(x), "float64") - normalize(x, kind)).max()
    return "right" if error < 0.02 else "off" if error < 10 else "NaN" if np.isnan(error) else "off by more than ten"


def of_linen(kind):
    from flax import linen

    made = {"layer": linen.LayerNorm, "group": lambda **k: linen.GroupNorm(4, **k)}
    made["batch"] = lambda **k: linen.BatchNorm(use_running_average=False, **k)
    layer = made[kind](epsilon=1e-3)

    def call(x):
        variables = layer.init(jax.random.key(0), x)
        y = layer.apply(variables, x, mutable=["batch_stats"])
        return y[0]

    return call


def of_haiku(kind):
    import haiku

    def run(x):
        if kind == "group":
            return haiku.GroupNorm(4, eps=1e-3)(x)
        if kind == "layer":
            return haiku.LayerNorm(-1, True, True, eps=1e-3)(x)
        return haiku.BatchNorm(True, True, 0.9, eps=1e-3)(x, True)

    def call(x):
        pair = haiku.transform_with_state(run)
        return pair.apply(*pair.init(None, x), None, x)[0]

    return call


def of_equinox(x):
    import equinox

    layer = equinox.nn.GroupNorm(4, 16, eps=1e-3)
    return np.moveaxis(np.asarray(jax.vmap(layer)(np.moveaxis(x, -1, 1))), 1, -1)


def of_keras(kind):
    made = {"layer": keras.layers.LayerNormalization, "batch": keras.layers.BatchNormalization}
    layer = keras.layers.GroupNormalization(4, epsilon=1e-3) if kind == "group" else made[kind](epsilon=1e-3)
    options = {"training": True} if kind == "batch" else {}
    return lambda x: keras.ops.convert_to_numpy(layer(x, **options))


def of_torch(x, where):
    y = torch.from_numpy(np.moveaxis(x, -1, 1).copy())
    y = y.contiguous(memory_format=torch.channels_last) if where == "last" else y
    return np.moveaxis(torch.nn.functional.group_norm(y, 4, eps=1e-3).numpy(), 1, -1)


assert keras.backend.backend() == "torch"
for mean, off in ((0, "right"), (1000, "off"), (10_000, "off by more than ten")):
    for kind in ("layer", "group", "batch"):
        see(f"mean {mean}, Flax, {kind}", judge(kind, of_linen(kind), mean), off)
        bad = {"off by more than ten": "NaN"}.get(off, off)
        see(f"mean {mean}, Haiku, {kind}", judge(kind, of_haiku(kind), mean), bad if kind == "batch" else "right")
        see(f"mean {mean}, Keras on PyTorch, {kind}", judge(kind, of_keras(kind), mean), "right" if kind == "layer" else bad)
    see(f"mean {mean}, Equinox, group", judge("group", of_equinox, mean), "right")
    see(f"mean {mean}, PyTorch, group, channels first", judge("group", lambda x: of_torch(x, "first"), mean), "right")
    see(f"mean {mean}, PyTorch, group, channels last", judge("group", lambda x: of_torch(x, "last"), mean), off)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
cd "$folder"
KERAS_BACKEND=torch JAX_PLATFORMS=cpu "$folder/env/bin/python" -W ignore program.py
