"""Train one transformer block to sort short sequences: the same curve on every backend.

Embedding, causal self-attention with two heads, layer normalisation, a GELU network and a read-out, written in multiop
ops alone. A sequence of digits is followed by its sorted form, and the block predicts each next token of the latter.

    MULTIOP_BACKEND=tensorflow python examples/transformer.py --dtype float64
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import multiop
from multiop import ops
from multiop.testing import example_inputs, integers, normal

TOKENS, LENGTH, WIDTH, HEADS = 8, 5, 16, 2
SHAPES = {
    "embedding": (TOKENS, WIDTH),
    "position": (2 * LENGTH - 1, WIDTH),
    "qkv": (WIDTH, 3 * WIDTH),
    "out": (WIDTH, WIDTH),
    "scale1": (WIDTH,),
    "shift1": (WIDTH,),
    "scale2": (WIDTH,),
    "shift2": (WIDTH,),
    "up": (WIDTH, 4 * WIDTH),
    "down": (4 * WIDTH, WIDTH),
    "read": (WIDTH, TOKENS),
}


def initial_parameters(dtype: str, seed: int = 0) -> dict[str, Any]:
    """Draw the matrices, scaled by the square root of their input; scales are one, shifts zero."""
    rng = np.random.default_rng(seed)
    parameters = {}
    for name, shape in SHAPES.items():
        if len(shape) == 1:
            drawn = np.ones(shape) if name.startswith("scale") else np.zeros(shape)
        else:
            drawn = rng.normal(size=shape) / np.sqrt(shape[0] if name not in ("embedding", "position") else WIDTH)
        parameters[name] = ops.convert_to_tensor(drawn.astype(dtype))
    return parameters


def block(p: dict[str, Any], x: Any) -> Any:
    """Return the residual stream (n, length, WIDTH) after attention and the network."""
    n, length = x.shape[0], x.shape[1]
    normed = ops.layer_normalization(x, p["scale1"], p["shift1"], axis=-1, epsilon=1e-5)
    query, key, value = (
        ops.reshape(part, (n, length, HEADS, WIDTH // HEADS))
        for part in ops.split(ops.matmul(normed, p["qkv"]), 3, axis=-1)
    )
    attended = ops.dot_product_attention(query, key, value, is_causal=True)
    x = x + ops.matmul(ops.reshape(attended, (n, length, WIDTH)), p["out"])
    normed = ops.layer_normalization(x, p["scale2"], p["shift2"], axis=-1, epsilon=1e-5)
    return x + ops.matmul(ops.gelu(ops.matmul(normed, p["up"]), approximate=False), p["down"])


@example_inputs(
    {name: normal(*shape, scale=0.3) for name, shape in SHAPES.items()}, integers(2, 2 * LENGTH, low=0, high=TOKENS)
)
def loss(p: dict[str, Any], sequences: Any) -> Any:
    """Return the mean cross-entropy of the second half of `sequences` (n, 2 LENGTH), from the tokens before each."""
    x = ops.take(p["embedding"], sequences[:, :-1], axis=0) + p["position"]
    logits = ops.matmul(block(p, x), p["read"])[:, LENGTH - 1 :]
    return ops.mean(ops.sparse_categorical_crossentropy(sequences[:, LENGTH:], logits, from_logits=True))


def train(steps: int = 50, rate: float = 0.3, n: int = 128, dtype: str = "float32") -> dict[str, Any]:
    """Run `steps` of gradient descent with momentum; return the losses, and the first gradient by parameter."""
    if dtype == "float64":
        multiop.enable_x64()
    drawn = np.random.default_rng(1).integers(0, TOKENS, (n, LENGTH))
    sequences = ops.convert_to_tensor(np.concatenate([drawn, np.sort(drawn)], axis=1).astype("int32"))
    parameters = initial_parameters(dtype)
    momenta = {name: ops.zeros_like(p) for name, p in parameters.items()}
    step = multiop.jit(multiop.value_and_grad(loss))
    curve, first = [], {}
    for _ in range(steps):
        value, grads = step(parameters, sequences)
        first = first or {name: np.asarray(ops.convert_to_numpy(grad)).tolist() for name, grad in grads.items()}
        momenta = {name: 0.8 * momenta[name] + grad for name, grad in grads.items()}
        parameters = {name: p - rate * momenta[name] for name, p in parameters.items()}
        curve.append(float(value))
    return {"losses": curve, "gradient": first}


def main() -> None:
    """Train, and print the loss curve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    options = parser.parse_args()
    result = train(options.steps, dtype=options.dtype)
    print(f"backend: {multiop.backend()}")
    for step, value in enumerate(result["losses"]):
        if step % 10 == 0 or step == len(result["losses"]) - 1:
            print(f"step {step:4d}  loss {value:.9f}")


if __name__ == "__main__":
    main()
