"""The TensorFlow backend."""

import os
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow logs its CPU features on import

import tensorflow as tf

from . import _versions
from .activations import *  # noqa: F403
from .attention import *  # noqa: F403
from .bitwise import *  # noqa: F403
from .control_flow import *  # noqa: F403
from .conversion import *  # noqa: F403
from .convolution import *  # noqa: F403
from .creation import *  # noqa: F403
from .custom_gradient import custom_call as custom_call, stop_gradient as stop_gradient
from .decompositions import *  # noqa: F403
from .devices import device as device, to_device as to_device
from .elementwise import *  # noqa: F403
from .gradients import gradients as gradients
from .indexing import *  # noqa: F403
from .logical import *  # noqa: F403
from .losses import *  # noqa: F403
from .normalization import *  # noqa: F403
from .pooling import *  # noqa: F403
from .products import *  # noqa: F403
from .reduction import *  # noqa: F403
from .segment import *  # noqa: F403
from .shapes import *  # noqa: F403
from .signal import *  # noqa: F403
from .sorting import *  # noqa: F403
from .special import *  # noqa: F403
from .statistics import *  # noqa: F403
from .tape import Tape as Tape
from .transforms import checkpoint as checkpoint, jit as jit, jvp as jvp, traced as traced, vjp as vjp, vmap as vmap
from .windows import *  # noqa: F403

name = "tensorflow"
version = tf.__version__
Tensor = (tf.Tensor, tf.Variable)
argument_errors = (tf.errors.InvalidArgumentError, ValueError, TypeError, IndexError)
passed_errors = (tf.errors.OperatorNotAllowedInGraphError,)


def first_line(error):
    """Return what an error says, without the names of kernels, nodes and devices."""
    text = error.message if isinstance(error, tf.errors.OpError) else str(error)
    text = re.sub(r"\{\{.*?\}\} ?| \[Op:.*", "", text.strip().split("\n")[0])
    return re.sub(r" for '.*? = .*?' with input shapes", " with input shapes", text)


_versions.warn_of_missing_parts()
