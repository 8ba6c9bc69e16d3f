"""Known failures, with reasons: each entry names a test that must fail on one backend.

The list is strict. If a test with an entry passes, the run fails, so entries are removed as soon as upstream is fixed.
An entry that names no test, or has no upstream URL, fails too.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from multiop import errors

from . import _results


@dataclasses.dataclass(frozen=True)
class KnownFailure:
    """One test that must fail.

    Attributes:
        test: The name of the test function.
        backend: The backend on which it fails.
        url: The upstream issue, or the documentation that states the limit.
        reason: What does not work, in one line.
        parameters: Values of the test's parameters, by name, such as `{"op": "op_add", "dtype": "int8"}`; the entry
            covers every test with these values.
        raises: The exception that the test fails with; any other is a real failure.
        before: The first version of the framework on which it passes; by default no version does.
    """

    test: str
    backend: str
    url: str
    reason: str
    parameters: dict[str, Any] = dataclasses.field(default_factory=dict)
    raises: type[BaseException] | tuple[type[BaseException], ...] = (AssertionError, errors.UnsupportedError)
    before: tuple[int, ...] = ()

    def matches(self, test: str, parameters: dict[str, Any]) -> bool:
        """Say whether this entry covers `test` with `parameters`."""
        backend = parameters.get("multiop_backend")
        return (
            test == self.test
            and backend == self.backend
            and all(str(parameters.get(key)) == str(value) for key, value in self.parameters.items())
            and (not self.before or _version(self.backend) < self.before)
        )


@functools.cache
def _version(backend: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _results.version(backend).split(".")[:2])


KNOWN_FAILURES: list[KnownFailure] = [
    KnownFailure(
        "test_uint64_division",
        "torch",
        "https://github.com/pytorch/pytorch/issues/58734",
        "PyTorch has no division of uint64",
        {"op": op},
        raises=errors.UnsupportedError,
    )
    for op in ("op_floor_divide", "op_mod", "op_fmod", "op_gcd", "op_lcm")
]
KNOWN_FAILURES += [
    KnownFailure(
        "test_vmap",
        "torch",
        "https://github.com/pytorch/pytorch/issues/180727",
        "PyTorch had no batching rule for a view in another dtype",
        {"op": op},
        raises=errors.UnsupportedError,
        before=(2, 13),
    )
    for op in ("op_view", "op_ldexp", "op_frexp")
]
KNOWN_FAILURES += [
    KnownFailure(
        "test_inside_native",
        "torch",
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#hooks-for-saved-tensors",
        "PyTorch did not tell whether a checkpoint is around what multiop.jit traces",
        raises=RuntimeError,
        before=(2, 8),
    ),
    *[
        KnownFailure(
            test,
            "numpy",
            "https://github.com/jax-ml/ml_dtypes/issues/189",
            "x + 0.5 of an array x of bfloat16 is float32, so that the body of a loop changes the dtype",
            {"op": "op_fori_loop", "dtype": "bfloat16"},
            raises=errors.ArgumentError,
        )
        for test in ("test_value", "test_narrow_gradient")
    ],
    KnownFailure(
        "test_forward_mode_of_a_composed_rule",
        "jax",
        "https://docs.jax.dev/en/latest/changelog.html",
        "JAX could not take a loop for the linear function that it is",
        {"name": "op_scan"},
        raises=errors.NonLinearRuleError,
        before=(0, 10),
    ),
    KnownFailure(
        "test_forward_mode_of_a_composed_rule",
        "jax",
        "https://docs.jax.dev/en/latest/changelog.html",
        "JAX could not take a branch for the linear function that it is",
        {"name": "op_cond"},
        raises=errors.NonLinearRuleError,
        before=(0, 8),
    ),
]
