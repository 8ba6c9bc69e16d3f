#!/usr/bin/env bash
# TensorFlow 2.21.0 and JAX 0.10.2: `import tensorflow` imports all of JAX where that is installed.
# The converter of TensorFlow Lite, which the package imports, asks for JAX's tracing. So `"jax" in sys.modules` says
# nothing about the program, and JAX's configuration from the environment is read by then. Without JAX it is left out.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q tensorflow-cpu==2.21.0
cd "$folder"
cat > program.py <<'PROGRAM'
import sys

import tensorflow

del tensorflow
names = list(sys.modules)  # in the order in which they were ready
after = names[names.index("jax") + 1] if "jax" in names else None
n = sum(name.split(".")[0] == "jax" for name in names)
print(f"JAX's modules: {n}; ready after JAX: {after}")
expected = None if sys.argv[1] == "alone" else "tensorflow.lite.python.util"
sys.exit(f"changed: it was {expected}" if after != expected or (n > 100) != (expected is not None) else 0)
PROGRAM
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1 JAX_PLATFORMS=cpu
"$folder/env/bin/python" program.py alone
"$folder/env/bin/pip" install -q jax==0.10.2
"$folder/env/bin/python" program.py beside
