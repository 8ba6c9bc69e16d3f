#!/usr/bin/env bash
# jax 0.10.2 on a CPU, with the compiler option xla_disable_hlo_passes="fusion": a product of complex arrays that is summed
# over two axes, einsum("bti,btn->in", x, y), is wrong in every digit. Real arrays, and one axis, are right. Passes of XLA
# that read as optimizations are needed for its results, so leave none out where these are compared with others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
draw = np.random.default_rng(0).normal


def error(dtype, equation, *shapes):
    """Return how far the program without the pass is from NumPy."""
    arrays = [jnp.asarray(draw(size=shape) + 1j * draw(size=shape) if "c" in dtype else draw(size=shape), dtype) for shape in shapes]
    program = jax.jit(lambda *xs: jnp.einsum(equation, *xs)).trace(*arrays).lower()
    computed = program.compile(compiler_options={"xla_disable_hlo_passes": "fusion"})(*arrays)
    wanted = np.einsum(equation, *map(np.asarray, arrays))
    assert np.allclose(program.compile()(*arrays), wanted, 1e-4, 1e-4)  # with the pass it is right
    return float(np.abs(np.asarray(computed) - wanted).max())


for dtype in ("complex64", "complex128", "float32", "float64"):
    two = error(dtype, "bti,btn->in", (2, 7, 6), (2, 7, 8))
    one = error(dtype, "ti,tn->in", (14, 6), (14, 8))
    print(f"{dtype}: over two axes {two:.1e}, over one {one:.1e}")
    assert (two > 1) == (dtype[0] == "c") and one < 1e-4
PYTHON
