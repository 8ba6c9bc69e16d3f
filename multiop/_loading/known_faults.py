"""Known faults of the frameworks' compilers, by version: for `multiop info`, and for what a backend does about them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A fault of a framework from version `since` on, up to but without `until`."""

    package: str
    since: tuple[int, ...]
    until: tuple[int, ...]
    what: str
    urls: tuple[str, ...]  # none where it is not reported
    mended: str = ""  # where; elsewhere the user's own programs are as the framework compiles them

    def concerns(self, version: str) -> bool:
        """Say whether a version of the package has the fault."""
        return self.since <= tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < self.until


_JAX, _XLA = "https://github.com/jax-ml/jax/issues/", "https://github.com/openxla/xla/"
_TENSORFLOW = "https://github.com/tensorflow/tensorflow/issues/"
_NEVER = (99,)
_OWN, _JIT = "multiop.jit and each op", "multiop.jit"

NARROW_PRODUCTS = Fault(
    "jax",
    (0, 10, 2),
    (0, 11),
    "CPU: a product of small matrices with over 16,384 rows, and then a reduction, is wrong when compiled",
    (f"{_JAX}39103",),
    mended=f"{_OWN}, but not where these stand under vmap: put multiop.jit around it",
)
HIGH_RANKS = Fault(
    "jax",
    (0, 10, 2),
    (0, 11),
    "CPU: the sum of a product of tensors of rank 7 or 8 ends the process",
    (f"{_JAX}39257", f"{_JAX}40412"),
    mended=_OWN,
)
SHIFTS = Fault(
    "jax",
    (0, 5),
    _NEVER,
    "CPU: an update of a slice by a shifted slice of the same tensor, and then a reshape, is wrong when compiled",
    (f"{_XLA}issues/49176",),
    mended=_OWN,
)
INTEGERS = Fault(
    "jax",
    (0, 5),
    (0, 11),
    "the compiler takes integer squares and absolute values that overflow for positive numbers",
    (f"{_XLA}pull/46628",),
    mended=_OWN,
)
GATHERS = Fault(
    "jax",
    (0, 5),
    (0, 8),
    "CPU: entries that are taken from constants, and on 0.6 from entries that were taken, are others when compiled",
    (f"{_XLA}issues/34260",),
    mended=_OWN,
)
BYTES = Fault(
    "jax",
    (0, 10, 2),
    _NEVER,
    "CPU: integers of 8 bits that overflow, are cast to floats and added up do not wrap when compiled",
    (),
    mended=_OWN,
)
NANS = Fault(
    "jax",
    (0, 5),
    (0, 11),
    "CPU: exp, exp2, sinh, cosh, expm1 and sigmoid of what the compiler knows to be NaN is any number",
    (f"{_JAX}29537",),
    mended=_JIT,
)
FAULTS = (
    NARROW_PRODUCTS,
    HIGH_RANKS,
    SHIFTS,
    INTEGERS,
    GATHERS,
    BYTES,
    NANS,
    Fault(
        "jax",
        (0, 5),
        _NEVER,
        "the angle of what the compiler knows to be 0 + 0i is NaN when compiled",
        (f"{_JAX}38681",),
    ),
    Fault(
        "jax",
        (0, 5),
        _NEVER,
        "a dynamic slice of a dynamic slice, as after op_roll by a tensor, is another one where a start is too large",
        (f"{_XLA}issues/49121",),
    ),
    Fault(
        "jax",
        (0, 5),
        _NEVER,
        "log(exp(x)), sqrt(x * x) and exp(x) * exp(y) are simplified where a step overflows or vanishes",
        (f"{_JAX}37919", f"{_XLA}issues/42732"),
    ),
    Fault(
        "jax",
        (0, 5),
        _NEVER,
        "x / y is 0 where y is one number for many and its reciprocal is subnormal; op_divide is right",
        (f"{_TENSORFLOW}118645", f"{_TENSORFLOW}51643"),
        mended="",
    ),
    Fault(
        "tensorflow",
        (2, 18),
        _NEVER,
        "x / y is 0 where y is a constant, or one for many under jit_compile=True, and its reciprocal is subnormal; "
        "op_divide by a constant is right in other graphs",
        (f"{_TENSORFLOW}118645", f"{_TENSORFLOW}51643", f"{_TENSORFLOW}24061"),
        mended="",
    ),
    Fault(
        "tensorflow",
        (2, 18),
        _NEVER,
        "jit_compile=True takes integer squares and absolute values that overflow for positive numbers",
        (f"{_TENSORFLOW}117142", f"{_TENSORFLOW}118178"),
    ),
    Fault(
        "torch",
        (2, 6),
        _NEVER,
        "torch.compile: extrema of integers of 8 bits, and their indices, are wrong on a CPU",
        ("https://github.com/pytorch/pytorch/issues/191499",),
        mended="each op",
    ),
    Fault(
        "tensorflow",
        (2, 18),
        _NEVER,
        "jit_compile=True simplifies log(exp(x)) and exp(x) * exp(y) where a step overflows or vanishes",
        (f"{_TENSORFLOW}123169", f"{_XLA}issues/42732"),
    ),
)


def of(package: str, version: str, mended: bool | None = None) -> list[Fault]:
    """Return the known faults of a version of a package: all, or only those that multiop mends, or does not."""
    return [
        fault
        for fault in FAULTS
        if fault.package == package and fault.concerns(version) and (mended is None or bool(fault.mended) == mended)
    ]
