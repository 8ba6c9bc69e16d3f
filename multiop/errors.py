"""Every exception and warning that multiop raises on purpose.

Each error also derives from the built-in exception that a caller would expect, so `except TypeError` keeps working.
"""

from __future__ import annotations


class MultiopError(Exception):
    """Base of every error that multiop raises on purpose.

    Attributes:
        op: The name of the op that raised it, or `None`.
    """

    op: str | None = None
    _explained: tuple[str, dict[str, int]]  # the message without the op, and the id of each argument by name

    # TensorFlow's AutoGraph keeps the class of an error that it re-raises only if the class has this `__init__`
    __init__ = Exception.__init__


class BackendError(MultiopError, ImportError):
    """The requested backend is unknown, not installed, or of an unsupported version."""


class UnsupportedError(MultiopError, NotImplementedError):
    """An op, or one of its options, cannot work on the active backend; the message has the upstream URL."""


class ForeignTensorError(MultiopError, TypeError):
    """A tensor of one framework was passed while another framework's backend is active."""


class DTypeError(MultiopError, TypeError):
    """A dtype that is unknown, is not accepted here, or needs the 64-bit mode, which is off."""


class ArgumentError(MultiopError, ValueError):
    """An argument whose value is not accepted: an axis out of range, shapes that do not fit, an unknown option."""


class ArgumentTypeError(MultiopError, TypeError):
    """An argument of the wrong kind: not callable, not a tensor, too few or too many positional arguments."""


class GradientRuleError(MultiopError, ValueError):
    """A custom gradient rule broke its contract: wrong count, structure, shape or dtype, or nothing returned."""


class ClosedOverError(MultiopError, ValueError):
    """A custom-gradient function closes over a differentiable value whose gradient would be dropped."""


class NonLinearRuleError(MultiopError, ValueError):
    """Forward mode was applied to a rule that is not linear in its upstream gradient, so it has no transpose.

    A note says what showed it, in the terms of the backend.
    """

    @classmethod
    def of(cls, rule_name: str, why: str) -> NonLinearRuleError:
        """Return the error about a rule, which is the same on every backend but for the note."""
        error = cls(
            f"the gradient function of {rule_name} is not linear in its upstream gradient, so forward mode, which is "
            f"its transpose, does not exist; use reverse mode"
        )
        error.add_note(why)
        return error


class NoGradientError(MultiopError, LookupError):
    """There is no gradient for an operation between `ys` and `xs`."""


class TapeError(MultiopError, RuntimeError):
    """A `GradientTape` cannot do this in its present state: used up, not recording, or already recording."""


class TranslationError(MultiopError, NotImplementedError):
    """Parts of a model have no translation; the message lists each, how often it occurs, and where."""


class ReferenceRaisedError(MultiopError, RuntimeError):
    """The model that a port is compared with raised an error of its own."""


class UnconnectedWarning(UserWarning):
    """A function was differentiated whose output depends on none of its arguments, so that all derivatives are 0.

    `warnings.simplefilter("error", multiop.errors.UnconnectedWarning)` makes it an error.
    """


class PrecisionWarning(UserWarning):
    """64-bit values were converted to 32 bits because the 64-bit mode is off."""
