"""What multiop needs of JAX that JAX does not call public: the one place to look at when JAX changes."""

from __future__ import annotations

import jax

from multiop import errors

SUPPORTED = ((0, 10, 2), (0, 11, 0))  # from, and up to but without

if not SUPPORTED[0] <= jax.__version_info__ < SUPPORTED[1]:
    oldest, newest = (".".join(map(str, version)) for version in SUPPORTED)
    raise errors.BackendError(
        f"the jax backend supports jax>={oldest},<{newest}, and {jax.__version__} is installed; "
        f"install a supported one with: pip install 'jax>={oldest},<{newest}'"
    )

from jax._src.core import (  # noqa: E402
    CallPrimitive as CallPrimitive,
    Jaxpr as Jaxpr,
    ShapedArray as ShapedArray,
    Trace as Trace,
    Tracer as Tracer,
    eval_jaxpr as eval_jaxpr,
    eval_trace as eval_trace,
    set_current_trace as set_current_trace,
    trace_ctx as trace_ctx,
)
from jax._src.interpreters.partial_eval import dce_jaxpr as dce_jaxpr  # noqa: E402
from jax._src.pjit import jit_p as jit_p  # noqa: E402
