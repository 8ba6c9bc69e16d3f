"""The derivative of each primitive op: how the gradient of its result goes back to its operands.

A rule has the name of its op. It takes the upstream gradient, a list of them if the op has several results, and the
op's arguments. It returns the gradient of the first argument, or of as many as the tuple has that it returns; that of a
list of tensors is a list. What was broadcast is summed afterwards, and the gradient of a real operand is real.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

import numpy as np

from multiop._call.numpy_protocols import is_subclass, refuse_operators
from multiop._loading.primitives import Primitives
from multiop._values import dtypes

from ... import kernels
from ..._record import (
    WIDE,
    Traced,
    array_of,
    is_inexact,
    is_traced,
    operands,
    ops,
    record_step,
    recorded,
)
from ...conversion import convert, dtype_name, is_tensor, own
from .formula import by_formula, zero

MODULES = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
RULES = {name: rule for module in MODULES for name, rule in vars(module).items() if name.startswith("op_")}
FORMULAS = {  # they are made of ops, and differentiated as they are
    "op_dot_product_attention", "op_batch_normalization", "op_layer_normalization", "op_rms_normalization",
    "op_binary_crossentropy", "op_categorical_crossentropy", "op_sparse_categorical_crossentropy", "op_ctc_loss",
    "op_average_pool", "op_max_pool", "op_adaptive_average_pool", "op_adaptive_max_pool", "op_glu", "op_tensordot",
    "op_extract_sequences", "op_divide_no_nan", "op_normalize", "op_clip", "op_polar", "op_ctc_decode",
}  # fmt: skip
STRUCTURAL = {"op_cond", "op_switch", "op_while_loop", "op_fori_loop", "op_scan"}  # they run functions of traced arrays

PLAIN = {np.ndarray, np.float64, np.float32, np.bool_, bool, int, float, complex, str, slice, type(None), type(...)}
SEQUENCES = {  # they take several tensors as a list, which is one tensor anywhere else
    "op_concatenate", "op_stack", "op_select", "op_einsum", "op_fftn", "op_ifftn", "op_irfftn",
    "op_convert_to_tensor",
}  # fmt: skip


def around(name, op):
    """Return an op as the backend holds it: recorded where an operand is, and with results of their own."""

    @functools.wraps(op)
    def run(*args, **kwargs):
        errors = kernels.ERRORS.set(kernels.IGNORED)
        try:
            result = op(*args, **kwargs)
        finally:
            kernels.ERRORS.reset(errors)
        return own(result, [*args, *kwargs.values()])

    if name in STRUCTURAL or not hasattr(Primitives, name):  # a composite is differentiated as what it is made of
        return run
    rule = by_formula(op) if name in FORMULAS else RULES[name]
    view = kernels.VIEWS.get(name)
    n_operands = len(rule) if type(rule) is tuple and name not in SEQUENCES else 0

    def is_option(k, x):
        is_operand = k < n_operands and rule[k] is not None
        return type(x) in (list, tuple) and not is_operand and not any(isinstance(y, (Traced, list, tuple)) for y in x)

    def with_lists(args, kwargs):
        """Run the op on operands that are lists, or that have tensors in them."""
        if rule is zero or not is_traced(args):
            return run(*array_of(args), **kwargs)
        refuse_operators(operands(args))
        again = getattr(ops, name[3:])
        if name in SEQUENCES:
            return recorded(again, rule, args)
        for k, x in enumerate(args):
            if isinstance(x, (list, tuple)):
                is_wide = any(
                    isinstance(y, (np.ndarray, Traced)) and y.dtype in ("float64", "complex128") for y in args
                )
                args = (*args[:k], one_tensor(x, k < n_operands and rule[k] is not None, is_wide), *args[k + 1 :])
            elif hasattr(x, "__array__") and (not is_tensor(x) or is_subclass(x)):  # a Series of pandas, a np.memmap
                args = (*args[:k], convert(x), *args[k + 1 :])
        return recorded(again, rule, args)

    @functools.wraps(run)
    def call(*args, **kwargs):
        if not n_operands:
            return with_lists(args, kwargs)
        arrays, is_recorded, is_plain = [], False, True
        for k, x in enumerate(args):
            if isinstance(x, Traced):
                arrays.append(x.array)
                is_plain = False
                for owner in x.node.owners:
                    is_recorded = is_recorded or owner.is_open
            elif type(x) in PLAIN or is_option(k, x):
                arrays.append(x)
            else:
                return with_lists(args, kwargs)
        if is_plain:
            return run(*arrays, **kwargs)
        again = getattr(ops, name[3:])
        if not is_recorded:
            return again(*arrays, **kwargs)
        result = view(*arrays) if view is not None and arrays[0].dtype in WIDE else None
        result = again(*arrays, **kwargs) if result is None else result
        is_usual = type(result) is np.ndarray and result.dtype in WIDE
        traced = record_step(rule, args, result) if is_usual else None
        return recorded(again, rule, args, result) if traced is None else traced

    return call


def one_tensor(x, is_operand, is_wide):
    """Return a list of tensors that are differentiated, or one that is an operand, as a tensor, of 64 bits if wide."""
    if not is_operand and not any(isinstance(leaf, Traced) and is_inexact(leaf) for leaf in operands(x)):
        return x
    y = ops.convert_to_tensor(x, None, None, None)
    if not is_wide or not is_inexact(y):
        return y
    return ops.convert_to_tensor(x, dtypes.result_type(dtype_name(y), "float64"), None, None)
