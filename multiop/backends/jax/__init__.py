"""The JAX backend."""

import jax

from .conversion import *  # noqa: F403
from .elementwise import *  # noqa: F403

name = "jax"
version = jax.__version__
Tensor = jax.Array
argument_errors = (TypeError, ValueError, IndexError)
passed_errors = (jax.errors.JAXTypeError, jax.errors.JAXIndexError, jax.errors.UnexpectedTracerError)
