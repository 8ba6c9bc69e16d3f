"""The built-in backends are backends to mypy: every function is there, and can be called as the contract calls it."""

import multiop.backends.jax
import multiop.backends.tensorflow
import multiop.backends.torch
import multiop.backends.torch.conversion
from multiop._loading.contract import Backend

torch: Backend = multiop.backends.torch
jax: Backend = multiop.backends.jax
tensorflow: Backend = multiop.backends.tensorflow
a_part_of_one: Backend = multiop.backends.torch.conversion  # refused: assignment, reportAssignmentType


def calls(backend: Backend) -> None:
    """What a frontend may call, and what it may not."""
    backend.op_max(1.0, None, False, None)
    backend.op_max(1.0)  # refused: call-arg, reportCallIssue
    backend.op_maximal(1.0)  # refused: attr-defined, reportAttributeAccessIssue
    backend.retrace()  # refused: attr-defined, reportAttributeAccessIssue
