"""Which versions of JAX are known.

Ops and transforms stand on JAX's public API alone. Custom gradients and the tape need parts that are not public: a
version that they were never tested on has them on the public API as far as that goes, see `_public`.
"""

from __future__ import annotations

import functools
import warnings

import jax

from multiop import _registry, errors

OLDEST = (0, 7, 0)

if jax.__version_info__ < OLDEST:
    raise errors.BackendError(
        f"the jax backend needs jax>={'.'.join(map(str, OLDEST))}, and {jax.__version__} is installed; "
        f"upgrade it with: pip install --upgrade 'multiop[jax]'"
    )


@functools.cache
def are_parts_known():
    """Say whether this JAX has the parts that custom gradients and the tape stand on; warn once if not."""
    if _registry.is_tested("jax", jax.__version__):
        return True
    warnings.warn(_registry.untested("jax", jax.__version__) + _registry.REVERSE_MODE_ALONE, stacklevel=2)
    return False


def unknown(what):
    """Return the error for `what` this version of JAX cannot do."""
    return _registry.unknown_parts("jax", "JAX", jax.__version__, what)
