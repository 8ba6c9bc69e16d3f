#!/usr/bin/env bash
# JAX 0.10.2 and 0.12.0.1: `jnp.asarray` of a NumPy array of float64, NumPy's default, compiles a program for each shape.
# So does any conversion that narrows: int64 to int32, float32 to bfloat16. `jax.device_put` of the same array gives the
# same array of float32, and compiles nothing. So a loop over batches of many sizes compiles at each of them, before it
# computes anything.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
cd "$folder"
cat > program.py <<'PROGRAM'
import sys

import jax
import jax.numpy as jnp
import numpy as np

programs = []


def count(name, seconds, **about):
    if name == "/jax/core/compile/backend_compile_duration":
        programs.append(name)


def compiled(convert):
    """Return how many programs were compiled for eight arrays of eight sizes."""
    programs.clear()
    for n in range(3, 11):
        x = np.linspace(0.1, 0.9, n)
        y = convert(x)
        assert np.array_equal(np.asarray(y, np.float32), np.asarray(x.astype(y.dtype), np.float32)), y
    return len(programs)


jax.monitoring.register_event_duration_secs_listener(count)
found = {
    "asarray of float64": compiled(jnp.asarray),
    "array of float32 as bfloat16": compiled(lambda x: jnp.array(x.astype(np.float32), jnp.bfloat16)),
    "asarray of float32": compiled(lambda x: jnp.asarray(x.astype(np.float32))),
    "device_put of float64": compiled(jax.device_put),
}
print(jax.__version__, found)
sys.exit("changed" if list(found.values()) != [8, 8, 0, 0] else 0)
PROGRAM
for version in 0.10.2 0.12.0.1; do
  "$folder/env/bin/pip" install -q "jax==$version"
  JAX_PLATFORMS=cpu "$folder/env/bin/python" program.py
done
