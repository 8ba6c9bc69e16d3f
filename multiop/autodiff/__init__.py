"""Custom gradients, transforms and tapes: what a user writes. How is the business of the backends."""

from __future__ import annotations

import typing as _typing

if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name: str) -> object:  # such as that of tf.autodiff
        from multiop._loading.suggestions import missing

        raise missing(__name__, name, ())
