"""Frontends of the ops: signature, docstring, arguments made canonical; a file per domain.

They have the backends' file names. A user finds them as `multiop.op_max` and, without the prefix, as `multiop.ops.max`.
"""
