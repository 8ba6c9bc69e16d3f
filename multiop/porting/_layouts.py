"""What the arrays of a layer mean in each framework: the layouts, each written once, as equations.

A *form* gives a layer's arrays in one layout that all frameworks share: dense kernels (in, out), convolution kernels (spatial,
in, out), transposed ones (spatial, out, in), gates i f g o and r z n. `_expressions.solve` turns it around.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ._expressions import Expression, Name, Shape, blocks, concat, flip, part, reshape, total, transpose

Leaves: TypeAlias = Mapping[str, Shape]  # the shape of each array of a layer, by its name in the layer
Form: TypeAlias = dict[str, Expression]  # role -> expression in the names of the layer's arrays
Layout: TypeAlias = Callable[[Leaves], list[Form]]

_NAMES_OF_ROLES = {"scale": "weight gamma scale", "offset": "bias beta", "mean": "running_mean moving_mean mean"}
_NAMES_OF_ROLES |= {"variance": "running_var moving_variance moving_var var"}
ROLES = {name: role for role, names in _NAMES_OF_ROLES.items() for name in names.split()}  # a leaf's last name -> role


def _present(leaves: Leaves, *named: str) -> str | None:
    return next((name for name in named if name in leaves), None)


def _bias(leaves: Leaves) -> Form:
    """Return the bias of a layer, which may have dimensions of size 1 beside it."""
    name = _present(leaves, "bias", "b")
    if name is None:
        return {}
    size = max(leaves[name], default=1)
    flat = reshape(Name(name), leaves[name], (size,)) if sum(n != 1 for n in leaves[name]) <= 1 else Name(name)
    return {"bias": flat}


def _kernel(leaves: Leaves) -> str | None:
    return _present(leaves, "kernel", "weight", "w", "W", "weights", "depthwise_kernel", "pointwise_kernel")


def _kernel_and_bias(leaves: Leaves, ranks: range, turn: Callable[[Expression, Shape], Expression]) -> list[Form]:
    name = _kernel(leaves)
    if name is None or len(leaves[name]) not in ranks:
        return []
    return [{"kernel": turn(Name(name), leaves[name]), **_bias(leaves)}]


def _roles_of(leaves: Leaves, **names: str) -> Form:
    """Return the arrays that a layer has, of those that are what another layout has."""
    return {role: Name(name) for role, name in names.items() if name in leaves}


def _turned_kernels(leaves: Leaves, **names: str) -> Form:
    return {role: transpose(x, 1, 0) for role, x in _roles_of(leaves, **names).items()}


def dense_in_out(leaves: Leaves) -> list[Form]:
    return _kernel_and_bias(leaves, range(2, 3), lambda x, shape: x)


def dense_out_in(leaves: Leaves) -> list[Form]:
    return _kernel_and_bias(leaves, range(2, 3), lambda x, shape: transpose(x, 1, 0))


def _convolution(leaves: Leaves, kernel: Callable[[Expression, Shape], Expression]) -> list[Form]:
    return _kernel_and_bias(leaves, range(3, 6), kernel)


def conv_channels_last(leaves: Leaves) -> list[Form]:
    """Kernels (spatial, in, out)."""
    return _convolution(leaves, lambda x, shape: x)


def conv_channels_first(leaves: Leaves) -> list[Form]:
    """Kernels (out, in, spatial)."""
    return _convolution(leaves, lambda x, shape: transpose(x, *range(2, len(shape)), 1, 0))


def depthwise(leaves: Leaves) -> list[Form]:
    """Kernels (spatial, channels, multiplier): those of as many groups as there are channels."""
    return _convolution(leaves, lambda x, shape: reshape(x, shape, (*shape[:-2], 1, shape[-2] * shape[-1])))


transposed_out_in = conv_channels_last  # kernels (spatial, out, in)
transposed_torch = conv_channels_first  # kernels (in, out, spatial)


def transposed_in_out(leaves: Leaves) -> list[Form]:
    """Kernels (spatial, in, out) that slide over the spread input: the spatial axes run the other way."""
    return _convolution(leaves, lambda x, shape: _turned(x, *range(n := len(shape) - 2), n + 1, n))


def transposed_out_in_first(leaves: Leaves) -> list[Form]:
    """Kernels (out, in, spatial) that slide over the spread input."""
    return _convolution(leaves, lambda x, shape: _turned(x, *range(2, len(shape)), 0, 1))


def _turned(x: Expression, *axes: int) -> Expression:
    return flip(transpose(x, *axes), *range(len(axes) - 2))


def embedding(leaves: Leaves) -> list[Form]:
    name = _present(leaves, "weight", "embeddings", "embedding")
    return [{"embedding": Name(name)}] if name and len(leaves[name]) == 2 else []


def norm(leaves: Leaves) -> list[Form]:
    """Scale, offset and running moments of any normalisation."""
    form: Form = {ROLES[name]: Name(name) for name in leaves if name in ROLES}
    return [form] if form else []


def gru_torch(leaves: Leaves) -> list[Form]:
    """`weight_ih`, `weight_hh` (3 units, in), with two biases; gates r z n, the last with a bias of its own inside."""
    if "weight_ih" not in leaves:
        return []
    form = recurrent_torch(leaves)[-1]
    form.pop("bias", None)
    if "bias_ih" not in leaves:
        return [form]
    return _with_two_biases(form, Name("bias_ih"), Name("bias_hh"), leaves["bias_ih"][0])


def _with_two_biases(form: Form, first: Expression, second: Expression, size: int) -> list[Form]:
    """Return the form of a GRU with its two biases, and with what is the same where these are added up."""
    units, merged = size // 3, dict(form)
    for n, gate in enumerate("rz"):
        bounds = (n * units, (n + 1) * units, size)
        merged[f"bias_{gate}"] = total(part(first, 0, *bounds), part(second, 0, *bounds))
    merged["bias_n"], merged["bias_hn"] = (part(half, 0, 2 * units, size, size) for half in (first, second))
    return [{**form, "bias_input": first, "bias_recurrent": second}, merged]


def recurrent_torch(leaves: Leaves) -> list[Form]:
    """`weight_ih`, `weight_hh` (gates, in), with two biases, or of equinox one; gates i f g o."""
    if "weight_ih" not in leaves:
        return []
    kernels = _turned_kernels(leaves, kernel="weight_ih", recurrent="weight_hh", projection="weight_hr")
    if "bias_ih" not in leaves:
        return [kernels | _roles_of(leaves, bias="bias")]
    first, second = Name("bias_ih"), Name("bias_hh")
    return [{**kernels, "bias_input": first, "bias_recurrent": second}, {**kernels, "bias": total(first, second)}]


def recurrent_keras(leaves: Leaves) -> list[Form]:
    """`kernel`, `recurrent_kernel` (in, gates), one bias; gates i f g o."""
    form = _roles_of(leaves, kernel="kernel", recurrent="recurrent_kernel", bias="bias")
    return [form] if "recurrent" in form else []


def gru_keras(leaves: Leaves) -> list[Form]:
    """`kernel`, `recurrent_kernel` (in, gates); gates z r n; with `reset_after` two biases, one above the other."""
    if "recurrent_kernel" not in leaves:
        return []
    kernels = _roles_of(leaves, kernel="kernel", recurrent="recurrent_kernel")
    form = {role: blocks(x, 1, 1, 0, 2) for role, x in kernels.items()}
    if "bias" not in leaves:
        return [form]
    shape = leaves["bias"]
    if len(shape) == 1:  # without `reset_after` the cell is another one: torch and flax have none like it
        return [{**form, "bias_before": blocks(Name("bias"), 0, 1, 0, 2)}]
    size = shape[-1]
    rows = [reshape(part(Name("bias"), 0, n, n + 1, 2), (1, size), (size,)) for n in range(2)]
    first, second = (blocks(row, 0, 1, 0, 2) for row in rows)
    return _with_two_biases(form, first, second, size)


def lstm_flax(leaves: Leaves) -> list[Form]:
    """A dense layer for each gate and operand: `ii`, `if`, `ig`, `io` without a bias, `hi`, `hf`, `hg`, `ho` with one."""
    inputs = [_present(leaves, f"{n}.kernel", f"{n}_.kernel") for n in ("ii", "if", "ig", "io")]
    if None not in inputs:
        hidden = [f"h{gate}" for gate in "ifgo"]
        form: Form = {
            "kernel": concat(1, *(Name(name) for name in inputs if name)),
            "recurrent": concat(1, *(Name(f"{name}.kernel") for name in hidden)),
        }
        return [form | ({"bias": concat(0, *(Name(f"{n}.bias") for n in hidden))} if "hi.bias" in leaves else {})]
    form = _roles_of(leaves, kernel="dense_i.kernel", recurrent="dense_h.kernel", bias="dense_h.bias")
    return [form] if "kernel" in form else []  # nnx.OptimizedLSTMCell


def gru_flax(leaves: Leaves) -> list[Form]:
    """`ir`, `iz`, `in` with a bias, `hr`, `hz` without, `hn` with; or `dense_i` with a bias and `dense_h` (nnx)."""
    inputs = [_present(leaves, f"{n}.kernel", f"{n}_.kernel") for n in ("ir", "iz", "in")]
    if None in inputs:
        return _gru_of_two(leaves)
    named = [name for name in inputs if name]
    form: Form = {
        "kernel": concat(1, *map(Name, named)),
        "recurrent": concat(1, *(Name(f"h{gate}.kernel") for gate in "rzn")),
    }
    biases = {f"bias_{gate}": name.replace("kernel", "bias") for gate, name in zip("rzn", named, strict=True)}
    return [form | _roles_of(leaves, **biases, bias_hn="hn.bias")]


def _gru_of_two(leaves: Leaves) -> list[Form]:
    """The cell of nnx: `dense_i` with a bias, `dense_h` without; the last gate has no bias of its own inside."""
    if "dense_i.kernel" not in leaves:
        return []
    form = _roles_of(leaves, kernel="dense_i.kernel", recurrent="dense_h.kernel")
    return [form | (_gate_biases("dense_i.bias", leaves) if "dense_i.bias" in leaves else {})]


def _gate_biases(name: str, leaves: Leaves) -> Form:
    """Take the bias of the gates r z n apart."""
    return {f"bias_{gate}": _third(name, n, leaves) for n, gate in enumerate("rzn")}


def _third(name: str, n: int, leaves: Leaves) -> Expression:
    size = leaves[name][0]
    return part(Name(name), 0, n * size // 3, (n + 1) * size // 3, size)


def prelu(leaves: Leaves) -> list[Form]:
    """Slopes, which may have dimensions of size 1 beside them."""
    name = _present(leaves, "weight", "alpha", "negative_slope")
    if name is None or sum(n != 1 for n in leaves[name]) > 1:
        return []
    return [{"slope": reshape(Name(name), leaves[name], (max(leaves[name], default=1),))}]


def rnn_flax(leaves: Leaves) -> list[Form]:
    """`i` without a bias and `h` with one, or the other way round."""
    inputs, hidden = _present(leaves, "i.kernel", "dense_i.kernel"), _present(leaves, "h.kernel", "dense_h.kernel")
    if inputs is None or hidden is None:
        return []
    bias = _present(leaves, "h.bias", "i.bias", "dense_h.bias", "dense_i.bias") or ""
    return [_roles_of(leaves, kernel=inputs, recurrent=hidden, bias=bias)]


def gru_equinox(leaves: Leaves) -> list[Form]:
    """`weight_ih`, `weight_hh` (3 units, in); gates r z n; `bias_n` is the bias inside the last."""
    form = recurrent_torch(leaves)
    if form and "bias" in leaves:
        del form[0]["bias"]
        form[0] |= {**_gate_biases("bias", leaves), "bias_hn": Name("bias_n")}
    return form


ROLES_OF_ATTENTION = ("query", "key", "value")


def attention_torch(leaves: Leaves) -> list[Form]:
    """`in_proj_weight` holds the kernels of query, key and value one below the other (out, in)."""
    if not {"in_proj_weight", "q_proj_weight"} & set(leaves):
        return []
    form = _turned_kernels(leaves, out="out_proj.weight") | _roles_of(leaves, out_bias="out_proj.bias")
    for n, role in enumerate(ROLES_OF_ATTENTION):
        is_joint = "in_proj_weight" in leaves
        kernel = _third("in_proj_weight", n, leaves) if is_joint else Name(f"{role[0]}_proj_weight")
        form[role] = transpose(kernel, 1, 0)
        if "in_proj_bias" in leaves:
            form[f"{role}_bias"] = _third("in_proj_bias", n, leaves)
    return [form]


def attention_heads(leaves: Leaves) -> list[Form]:
    """Kernels (in, heads, depth), and (heads, depth, out) of the result: Keras and flax."""
    out = _present(leaves, "attention_output.kernel", "output_dense.kernel", "out.kernel")
    kernels = [*(f"{role}.kernel" for role in ROLES_OF_ATTENTION), out or ""]
    if "query.kernel" not in leaves or any(len(leaves.get(kernel, ())) != 3 for kernel in kernels):
        return []
    a, b, c = leaves[kernels[-1]]
    form: Form = {"out": reshape(Name(kernels[-1]), (a, b, c), (a * b, c))}
    form |= _roles_of(leaves, out_bias=kernels[-1].replace("kernel", "bias"))
    for role, kernel in zip(ROLES_OF_ATTENTION, kernels, strict=False):
        a, b, c = leaves[kernel]
        form[role] = reshape(Name(kernel), (a, b, c), (a, b * c))
        if f"{role}.bias" in leaves:
            form[f"{role}_bias"] = reshape(Name(f"{role}.bias"), leaves[f"{role}.bias"], (b * c,))
    return [form]


def attention_separate(leaves: Leaves) -> list[Form]:
    """A dense layer (out, in) for query, key, value and the result."""
    out = _present(leaves, "out_proj.weight", "o_proj.weight", "output_proj.weight")
    first = _present(leaves, "query_proj.weight", "q_proj.weight")
    if out is None or first is None:
        return []
    short = not first.startswith("query")
    layers = {role: f"{role[0] if short else role}_proj" for role in ROLES_OF_ATTENTION}
    layers["out"] = out.removesuffix(".weight")
    form = _turned_kernels(leaves, **{role: f"{layer}.weight" for role, layer in layers.items()})
    return [form | _roles_of(leaves, **{f"{role}_bias": f"{layer}.bias" for role, layer in layers.items()})]


def weight_norm(leaves: Leaves) -> list[Form]:
    """Kernels as lengths and directions, in both of PyTorch's spellings."""
    parametrized = "parametrizations.weight.original0", "parametrizations.weight.original1"
    for scale, direction in (("weight_g", "weight_v"), parametrized):
        if scale in leaves and direction in leaves:
            return [{"scale": Name(scale), "direction": Name(direction), **_bias(leaves)}]
    return []


# framework -> class of the layer -> its type and layout; layers of one type are matched
KINDS: dict[str, dict[str, tuple[str, Layout]]] = {
    "torch": {
        **dict.fromkeys(("Linear", "NonDynamicallyQuantizableLinear", "LazyLinear"), ("dense", dense_out_in)),
        "Conv1D": ("dense", dense_in_out),  # of transformers: not a convolution
        **{f"Conv{n}d": ("conv", conv_channels_first) for n in (1, 2, 3)},
        **{f"ConvTranspose{n}d": ("conv_transpose", transposed_torch) for n in (1, 2, 3)},
        **dict.fromkeys(("Embedding", "EmbeddingBag"), ("embedding", embedding)),
        **{f"BatchNorm{n}d": ("norm", norm) for n in (1, 2, 3)},
        **{f"InstanceNorm{n}d": ("norm", norm) for n in (1, 2, 3)},
        **dict.fromkeys(("SyncBatchNorm", "LayerNorm", "GroupNorm", "RMSNorm"), ("norm", norm)),
        **dict.fromkeys(("LSTM", "LSTMCell"), ("lstm", recurrent_torch)),
        **dict.fromkeys(("GRU", "GRUCell"), ("gru", gru_torch)),
        **dict.fromkeys(("RNN", "RNNCell"), ("rnn", recurrent_torch)),
        "MultiheadAttention": ("attention", attention_torch),
        "PReLU": ("slope", prelu),
    },
    "keras": {
        "Dense": ("dense", dense_in_out),
        **{f"Conv{n}D": ("conv", conv_channels_last) for n in (1, 2, 3)},
        **{f"DepthwiseConv{n}D": ("conv", depthwise) for n in (1, 2)},
        **{f"Conv{n}DTranspose": ("conv_transpose", transposed_out_in) for n in (1, 2, 3)},
        "Embedding": ("embedding", embedding),
        **dict.fromkeys(("BatchNormalization", "LayerNormalization", "GroupNormalization"), ("norm", norm)),
        "RMSNormalization": ("norm", norm),
        "PReLU": ("slope", prelu),
        **dict.fromkeys(("LSTM", "LSTMCell"), ("lstm", recurrent_keras)),
        **dict.fromkeys(("GRU", "GRUCell"), ("gru", gru_keras)),
        **dict.fromkeys(("SimpleRNN", "SimpleRNNCell"), ("rnn", recurrent_keras)),
        **dict.fromkeys(("MultiHeadAttention", "GroupQueryAttention"), ("attention", attention_heads)),
    },
    "flax": {
        **dict.fromkeys(("Dense", "Linear"), ("dense", dense_in_out)),
        "Conv": ("conv", conv_channels_last),
        "ConvTranspose without transpose_kernel": ("conv_transpose", transposed_in_out),
        "ConvTranspose with transpose_kernel": ("conv_transpose", transposed_out_in),
        "Embed": ("embedding", embedding),
        **dict.fromkeys(("BatchNorm", "LayerNorm", "GroupNorm", "RMSNorm", "InstanceNorm"), ("norm", norm)),
        **dict.fromkeys(("LSTMCell", "OptimizedLSTMCell"), ("lstm", lstm_flax)),
        "GRUCell": ("gru", gru_flax),
        "SimpleCell": ("rnn", rnn_flax),
        "PReLU": ("slope", prelu),
        **dict.fromkeys(
            ("MultiHeadAttention", "MultiHeadDotProductAttention", "SelfAttention"), ("attention", attention_heads)
        ),
    },
    "equinox": {
        "Linear": ("dense", dense_out_in),
        **dict.fromkeys(("Conv", "Conv1d", "Conv2d", "Conv3d"), ("conv", conv_channels_first)),
        **{f"ConvTranspose{n}": ("conv_transpose", transposed_out_in_first) for n in ("", "1d", "2d", "3d")},
        "Embedding": ("embedding", embedding),
        **dict.fromkeys(("BatchNorm", "LayerNorm", "GroupNorm", "RMSNorm"), ("norm", norm)),
        "LSTMCell": ("lstm", recurrent_torch),
        "GRUCell": ("gru", gru_equinox),
        "MultiheadAttention": ("attention", attention_separate),
    },
}
# of a linen module in a compact one the variables alone do not tell whether a transposed convolution has `transpose_kernel`
OPEN: dict[tuple[str | None, str | None], list[tuple[str, Layout]]] = {
    ("flax", "ConvTranspose"): [("conv_transpose", transposed_in_out), ("conv_transpose", transposed_out_in)]
}
KINDS["tensorflow"] = KINDS["keras"]

# sets of names that are one layer together, whatever its class is called
TOGETHER: list[tuple[set[str], tuple[str, Layout]]] = [
    ({"in_proj_weight", "out_proj"}, ("attention", attention_torch)),
    ({"q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj"}, ("attention", attention_torch)),
    ({"query", "key", "value", "attention_output"}, ("attention", attention_heads)),
    ({"query", "key", "value", "output_dense"}, ("attention", attention_heads)),
    ({"query", "key", "value", "out"}, ("attention", attention_heads)),
    ({"query_proj", "key_proj", "value_proj", "output_proj"}, ("attention", attention_separate)),
    ({"q_proj", "k_proj", "v_proj", "out_proj"}, ("attention", attention_separate)),
    ({"q_proj", "k_proj", "v_proj", "o_proj"}, ("attention", attention_separate)),
    *((names, ("weight_norm", weight_norm)) for names in ({"weight_g", "weight_v"}, {"parametrizations"})),
    *(({f"i{gate}" for gate in "igo"} | {f, "hi", "hf", "hg", "ho"}, ("lstm", lstm_flax)) for f in ("if", "if_")),
    *(({"ir", "iz", n, "hr", "hz", "hn"}, ("gru", gru_flax)) for n in ("in", "in_")),
]
NUMBERED = re.compile(
    r"(weight_ih|weight_hh|weight_hr|bias_ih|bias_hh)_l(\d+)(_reverse)?"
)  # of torch's recurrent layers


def of_kind(framework: str | None, kind: str | None, leaves: Leaves) -> list[tuple[str, Layout]]:
    """Return the types and layouts that a layer may have: one if its class is known, else all that its names allow."""
    if (framework, kind) in OPEN:
        return OPEN[framework, kind]
    known = KINDS.get(framework or "", {}).get(kind or "")
    return [known] if known is not None else _by_names(framework, leaves)


def _by_names(framework: str | None, leaves: Leaves) -> list[tuple[str, Layout]]:
    if {"weight_ih", "weight_hh"} <= set(leaves):
        gates = leaves["weight_ih"][0] // max(leaves["weight_hh"][1], 1)
        by_gates: dict[int, tuple[str, Layout]]
        by_gates = {4: ("lstm", recurrent_torch), 3: ("gru", gru_torch), 1: ("rnn", recurrent_torch)}
        return [by_gates[gates]] if gates in by_gates else []
    if {"kernel", "recurrent_kernel"} <= set(leaves):
        gates = leaves["kernel"][1] // max(leaves["recurrent_kernel"][0], 1)
        by_gates = {4: ("lstm", recurrent_keras), 3: ("gru", gru_keras), 1: ("rnn", recurrent_keras)}
        return [by_gates[gates]] if gates in by_gates else []
    if {"embedding", "embeddings"} & set(leaves):
        return [("embedding", embedding)]
    name = _kernel(leaves)
    rank = 0 if name is None else len(leaves[name])
    if rank <= 1:
        return [("norm", norm)] if any(leaf in ROLES for leaf in leaves) else []
    native = name == "kernel"  # Keras and flax have one layout for what is called so
    if rank == 2:
        layouts: list[tuple[str, Layout]] = [("dense", dense_in_out)]
        if not native:
            layouts.append(("dense", dense_out_in))
            layouts += [("embedding", embedding)] if name == "weight" and len(leaves) == 1 else []
        return layouts
    last: list[tuple[str, Layout]] = [("conv", conv_channels_last)]
    last += [("conv_transpose", transposed_in_out), ("conv_transpose", transposed_out_in)]
    if framework in (None, "keras", "tensorflow"):
        last.append(("conv", depthwise))
    first: list[tuple[str, Layout]] = [("conv", conv_channels_first), ("conv_transpose", transposed_torch)]
    return last if native else first if framework in ("torch", "equinox") else first + last
