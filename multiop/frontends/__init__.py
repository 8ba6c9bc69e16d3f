"""Frontends of the ops: signature, docstring and canonical arguments, one file per domain.

The files have the same names in each backend. A user finds an op as `multiop.op_max` and, without the prefix, as
`multiop.ops.max`.
"""
