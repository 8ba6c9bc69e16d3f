"""TensorFlow's `GradientTape`, on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from multiop import errors
from multiop._call.frames import shorten
from multiop._loading.registry import active
from multiop._loading.suggestions import explain_keyword
from multiop._values import args, dtypes, foreign, tree
from multiop._values.types import PyTree, Tensor
from multiop.autodiff import _flat
from multiop.frontends.creation import op_ones_like, op_zeros_like
from multiop.frontends.reduction import op_sum
from multiop.frontends.shapes import op_broadcast_to, op_reshape, op_stack, op_transpose

UNCONNECTED = ("none", "zero")


class UnconnectedGradients:
    """The gradient of a source that the target does not depend on.

    `NONE` is `None`, which guards against mistakes; `ZERO` is a tensor of zeros.
    """

    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Record what is computed inside a `with` block, to differentiate it afterwards.

    Args:
        persistent: Whether `gradient` and `jacobian` may be called more than once. If not, the first call releases
            what was recorded.
        watch_accessed_variables: Whether each trainable variable that is read (a `tf.Variable`, a
            `torch.nn.Parameter`) is watched without a call of `watch`.

    Raises:
        TapeError: The tape was entered while it was recording.

    Tapes nest: what an inner tape computes is recorded by the outer one, for higher orders.

    A tape records its own thread. On PyTorch it also records what other threads compute meanwhile; on TensorFlow that
    is a constant, as for `tf.GradientTape`; on JAX, what `watch` returned raises a `TapeError` in another thread.

    Example:
        >>> import multiop
        >>> with multiop.GradientTape() as tape:
        ...     x = tape.watch(multiop.op_convert_to_tensor(3.0))
        ...     y = x * x
        >>> float(tape.gradient(y, x))
        6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = args.bool_flag(persistent, "GradientTape: persistent")
        self._watch_accessed_variables = args.bool_flag(
            watch_accessed_variables, "GradientTape: watch_accessed_variables"
        )
        self._backend: Any = None
        self._tape: Any = None  # the backend's tape; None before the first entry and when used up
        self._entered: Any = None  # the backend's tape while the block runs
        self._watched: tuple[Any, ...] = ()

    def __enter__(self) -> GradientTape:
        """Start recording."""
        if self._entered is not None:
            raise errors.TapeError("GradientTape: the tape is still recording; it cannot be entered again")
        if self._tape is None:
            self._backend = active()
            self._tape = self._backend.Tape(self._persistent, self._watch_accessed_variables)
        self._tape.__enter__()
        self._entered = self._tape
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop recording."""
        explain_keyword(error)
        entered, self._entered = self._entered, None
        entered.__exit__(error_type, error, traceback)

    def watch(self, x: PyTree) -> PyTree:
        """Record what is computed from `x` from now on.

        Args:
            x: Tensor, variable, NumPy array, Python float, or a pytree of them.

        Returns:
            The tensors to use in place of `x`, in its structure. While the tape records, a framework's own tensor may
            also be used itself; a NumPy array or a Python number may not. Integers cannot be watched and are returned
            unchanged.

        Raises:
            ArgumentTypeError: `x` holds something that is not a tensor.
            TapeError: The tape is not recording.

        Example:
            >>> import multiop
            >>> with multiop.GradientTape() as tape:
            ...     p = tape.watch({"a": 2.0, "b": 3.0})
            ...     y = p["a"] * p["b"]
            >>> {name: float(g) for name, g in tape.gradient(y, p).items()}
            {'a': 3.0, 'b': 2.0}
        """
        if self._entered is None or self._tape is None:
            raise errors.TapeError("GradientTape.watch: the tape is not recording; call watch inside its with block")
        template, leaves = _flat.take(x, self._backend.is_tensor if self._backend.is_tensor(x) else _flat.is_given)
        return template.fill([self._watched_leaf(leaf) for leaf in leaves])

    def _watched_leaf(self, leaf: Any) -> Any:
        if not self._backend.is_tensor(leaf):
            if isinstance(leaf, (str, bytes)) or callable(leaf):
                raise errors.ArgumentTypeError(f"GradientTape.watch: x must hold tensors, got {args.describe(leaf)}")
            try:
                leaf = self._backend.convert(leaf)
            except errors.MultiopError as error:
                raise type(error)(f"GradientTape.watch: {error.args[0]}") from None
        return self._tape.watch(leaf) if self._backend.dtype_name(leaf) in dtypes.INEXACT else leaf

    def gradient(
        self, target: PyTree, sources: PyTree, output_gradients: PyTree = None, unconnected_gradients: str = "none"
    ) -> PyTree:
        """Differentiate the sum of `target` with respect to `sources`.

        Args:
            target: Tensor, or a pytree of tensors whose gradients are added up.
            sources: Tensor or variable, or a pytree of them; watched ones, or anything computed from those.
            output_gradients: Upstream gradients in the structure of `target`, or a flat list of them; `None` is ones.
            unconnected_gradients: `"none"` gives `None` for a source that `target` does not depend on, `"zero"` zeros.

        Returns:
            Gradients in the structure of `sources`, of the shapes and dtypes of the sources.

        Raises:
            TapeError: A tape that is not persistent was used before, or was never entered.
            ArgumentTypeError: `target` or `sources` holds something that is not a tensor.
            ArgumentError: Unknown `unconnected_gradients`, or `output_gradients` that do not fit `target`.
            NoGradientError: An operation between them has no gradient.

        Example:
            >>> import multiop
            >>> with multiop.GradientTape(persistent=True) as tape:
            ...     x = tape.watch(multiop.op_convert_to_tensor(3.0))
            ...     y = x * x
            ...     z = y * y
            >>> float(tape.gradient(z, x)), float(tape.gradient(z, y)), tape.gradient(y, z)
            (108.0, 18.0, None)
        """
        recorded = self._take_record("gradient")
        unconnected_gradients = args.choice(
            unconnected_gradients, UNCONNECTED, "GradientTape.gradient: unconnected_gradients"
        )
        targets, upstreams = self._targets(target, output_gradients)
        template, flat = self._sources(sources, "gradient")
        try:
            grads = self._gradient(recorded, targets, flat, upstreams)
        except Exception as error:
            shorten(error)
            raise
        self._use_up()
        if unconnected_gradients == "zero":
            grads = [op_zeros_like(x) if g is None else g for g, x in zip(grads, flat, strict=True)]
        return template.fill(grads)

    def jacobian(
        self,
        target: Tensor,
        sources: PyTree,
        unconnected_gradients: str = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> PyTree:
        """Differentiate each entry of `target` with respect to `sources`.

        Args:
            target: Real tensor.
            sources: Tensor or variable, or a pytree of them.
            unconnected_gradients: `"none"` gives `None` for a source that `target` does not depend on, `"zero"` zeros.
            parallel_iterations: Accepted for compatibility with TensorFlow, and ignored.
            experimental_use_pfor: `False` computes row by row, which takes less memory; needs a persistent tape.

        Returns:
            Jacobians of shape `(*target.shape, *source.shape)`, in the structure of `sources`.

        Raises:
            TapeError: A tape that is not persistent was used before, or has to be used more than once.
            ArgumentTypeError: `target` or `sources` holds something that is not a tensor.
            DTypeError: `target` is complex: take its real and imaginary part.
            ArgumentError: Unknown `unconnected_gradients`.

        Example:
            >>> import multiop
            >>> with multiop.GradientTape() as tape:
            ...     x = tape.watch(multiop.op_convert_to_tensor([1.0, 2.0]))
            ...     y = x * x
            >>> multiop.op_convert_to_numpy(tape.jacobian(y, x)).tolist()
            [[2.0, 0.0], [0.0, 4.0]]
        """
        recorded = self._take_record("jacobian")
        unconnected_gradients = args.choice(
            unconnected_gradients, UNCONNECTED, "GradientTape.jacobian: unconnected_gradients"
        )
        target = self._real_target(target, "jacobian")
        template, flat = self._sources(sources, "jacobian")
        basis = _flat.Basis([target], self._backend, "GradientTape.jacobian")
        n, units = basis.n, basis.units(0, basis.n)
        try:
            rows = self._rows(recorded, target, flat, units[0], n, experimental_use_pfor, "jacobian")
        except Exception as error:
            shorten(error)
            raise
        jacobians = []
        for x, row in zip(flat, rows, strict=True):
            if row is None:
                zeros = op_broadcast_to(op_zeros_like(x), (*target.shape, *x.shape))
                jacobians.append(zeros if unconnected_gradients == "zero" else None)
            else:
                jacobians.append(op_reshape(row, (*target.shape, *x.shape)))
        return template.fill(jacobians)

    def batch_jacobian(
        self,
        target: Tensor,
        source: Tensor,
        unconnected_gradients: str = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tensor | Any:
        """Differentiate each entry of `target[i]` with respect to `source[i]`, for each `i`.

        `target[i]` must depend on no other entry of `source` than `source[i]`.

        Args:
            target: Real tensor of shape `(batch, ...)`.
            source: Tensor of shape `(batch, ...)`.
            unconnected_gradients: `"none"` gives `None` where `target` does not depend on `source`, `"zero"` zeros.
            parallel_iterations: Accepted for compatibility with TensorFlow, and ignored.
            experimental_use_pfor: `False` computes row by row, which takes less memory; needs a persistent tape.

        Returns:
            Tensor of shape `(batch, *target.shape[1:], *source.shape[1:])`.

        Raises:
            TapeError: A tape that is not persistent was used before, or has to be used more than once.
            ArgumentTypeError: `target` or `source` is not a tensor.
            DTypeError: `target` is complex: take its real and imaginary part.
            ArgumentError: The first dimensions differ, or there is none; or unknown `unconnected_gradients`.

        Example:
            >>> import multiop
            >>> with multiop.GradientTape() as tape:
            ...     x = tape.watch(multiop.op_convert_to_tensor([[1.0, 2.0], [3.0, 4.0]]))
            ...     y = x * x
            >>> multiop.op_convert_to_numpy(tape.batch_jacobian(y, x)).tolist()
            [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
        recorded = self._take_record("batch_jacobian")
        unconnected_gradients = args.choice(
            unconnected_gradients, UNCONNECTED, "GradientTape.batch_jacobian: unconnected_gradients"
        )
        target = self._real_target(target, "batch_jacobian")
        if not self._backend.is_tensor(source):
            raise errors.ArgumentTypeError(
                f"GradientTape.batch_jacobian: source must be a tensor, got {args.describe(source)}"
            )
        if not len(target.shape) or not len(source.shape) or target.shape[0] != source.shape[0]:
            raise errors.ArgumentError(
                f"GradientTape.batch_jacobian: the first dimensions of target {tuple(target.shape)} and source "
                f"{tuple(source.shape)} must be equal"
            )
        batch, shape = target.shape[0], tuple(target.shape[1:])
        basis = _flat.Basis([op_sum(op_zeros_like(target), 0)], self._backend, "GradientTape.batch_jacobian")
        n, units = basis.n, basis.units(0, basis.n)
        unit = op_broadcast_to(units[0][:, None], (n, batch, *shape))
        try:
            row = self._rows(recorded, target, [source], unit, n, experimental_use_pfor, "batch_jacobian")[0]
        except Exception as error:
            shorten(error)
            raise
        result_shape = (batch, *shape, *source.shape[1:])
        if row is None:
            if unconnected_gradients == "none":
                return None
            return op_broadcast_to(op_zeros_like(source)[(slice(None), *[None] * len(shape))], result_shape)
        return op_reshape(op_transpose(row, (1, 0, *range(2, len(row.shape)))), result_shape)

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Do not record what is computed inside a `with` block.

        Raises:
            TapeError: The tape is not recording.

        Example:
            >>> import multiop
            >>> with multiop.GradientTape() as tape:
            ...     x = tape.watch(multiop.op_convert_to_tensor(3.0))
            ...     with tape.stop_recording():
            ...         y = x * x
            >>> print(tape.gradient(y, x))
            None
        """
        if self._entered is None or self._tape is None:
            raise errors.TapeError("GradientTape.stop_recording: the tape is not recording")
        with self._tape.stop_recording():
            yield

    def reset(self) -> None:
        """Discard what was recorded, and go on recording as a new tape would.

        Raises:
            TapeError: The tape is not recording.

        Example:
            >>> import multiop
            >>> with multiop.GradientTape() as tape:
            ...     x = tape.watch(multiop.op_convert_to_tensor(3.0))
            ...     y = x * x
            ...     tape.reset()
            >>> print(tape.gradient(y, x))
            None
        """
        if self._entered is None or self._tape is None:
            raise errors.TapeError("GradientTape.reset: the tape is not recording")
        self._tape.reset()

    def watched_variables(self) -> tuple[Any, ...]:
        """Return the variables that the tape watches, in the order in which they were first used.

        Example:
            >>> import multiop
            >>> with multiop.GradientTape() as tape:
            ...     pass
            >>> tape.watched_variables()
            ()
        """
        if self._tape is not None:
            self._watched = tuple(self._tape.watched_variables())
        return self._watched

    def _take_record(self, method: str) -> Any:
        if self._tape is None:
            used = "its record was used up; make it with persistent=True to differentiate more than once"
            raise errors.TapeError(
                f"GradientTape.{method}: {used if self._backend is not None else 'the tape was never entered'}"
            )
        return self._tape

    def _use_up(self) -> None:
        if not self._persistent:
            self.watched_variables()
            self._tape = None

    def _targets(self, target: PyTree, output_gradients: PyTree) -> tuple[list[Any], list[Any] | None]:
        """Return the differentiable tensors of `target`, and an upstream gradient for each, or `None` for ones."""
        if target is None:
            raise errors.ArgumentTypeError(
                "GradientTape.gradient: target must be a tensor or a pytree of tensors, got None"
            )
        template, leaves = _flat.take(
            target, self._backend.is_tensor if self._backend.is_tensor(target) else _flat.is_given
        )
        targets = [self._tensor(leaf, "gradient: target") for leaf in leaves]
        wanted = [self._backend.dtype_name(y) in dtypes.INEXACT for y in targets]
        chosen = [y for y, is_wanted in zip(targets, wanted, strict=True) if is_wanted]
        if output_gradients is None:
            return chosen, None
        given = [output_gradients] if self._backend.is_tensor(output_gradients) else tree.leaves(output_gradients)
        if len(given) == len(template.leaves):
            given = [given[i] for i in template.positions]
        if len(given) != len(targets):
            raise errors.ArgumentError(
                f"GradientTape.gradient: {len(given)} output_gradients were given for {len(targets)} targets"
            )
        upstreams = []
        for k, (g, y, is_wanted) in enumerate(zip(given, targets, wanted, strict=True)):
            if is_wanted:
                what = f"GradientTape.gradient: output_gradients[{k}]"
                upstreams.append(op_ones_like(y) if g is None else _flat.convert_like(g, y, self._backend, what))
        return chosen, upstreams

    def _sources(self, sources: PyTree, method: str) -> tuple[_flat.Template, list[Any]]:
        template, flat = _flat.take(
            sources, self._backend.is_tensor if self._backend.is_tensor(sources) else _flat.is_given
        )
        return template, [self._tensor(leaf, f"{method}: sources") for leaf in flat]

    def _tensor(self, leaf: Any, what: str) -> Any:
        if (value := foreign.value_of_variable(leaf)) is not None:
            leaf = value
        if not self._backend.is_tensor(leaf):
            if _flat.is_array(self._backend)(leaf):
                try:
                    self._backend.convert(leaf)  # refuses another framework's tensor
                except errors.MultiopError as error:
                    raise type(error)(f"GradientTape.{what}: {error.args[0]}") from None
            raise errors.ArgumentTypeError(f"GradientTape.{what} must hold tensors, got {args.describe(leaf)}")
        return leaf

    def _real_target(self, target: Any, method: str) -> Any:
        self._tensor(target, f"{method}: target")
        if _flat.is_complex(target, self._backend):
            raise errors.DTypeError(
                f"GradientTape.{method}: target is complex; take the Jacobians of its real and imaginary part"
            )
        return target

    def _gradient(
        self, recorded: Any, targets: list[Any], sources: list[Any], upstreams: list[Any] | None
    ) -> list[Any]:
        """Return the gradient for each source, `None` for a source that is an integer or unconnected."""
        grads: list[Any] = [None] * len(sources)
        wanted = [i for i, x in enumerate(sources) if self._backend.dtype_name(x) in dtypes.INEXACT]
        if targets and wanted:
            wanted_grads = recorded.gradient(targets, [sources[i] for i in wanted], upstreams)
            for i, g in zip(wanted, wanted_grads, strict=True):
                grads[i] = g
        return grads

    def _rows(
        self, recorded: Any, target: Any, sources: list[Any], units: Any, n: int, together: bool, method: str
    ) -> list[Any]:
        """Return each source's gradients with each of the `n` upstream gradients `units`; `None` if unconnected."""
        if self._backend.dtype_name(target) not in dtypes.INEXACT:
            return [None] * len(sources)
        if not args.bool_flag(together, f"GradientTape.{method}: experimental_use_pfor") and not self._persistent:
            raise errors.TapeError(
                f"GradientTape.{method}: experimental_use_pfor=False needs a tape made with persistent=True"
            )
        connected = [False] * len(sources)

        def pull(upstream: Any) -> list[Any]:
            grads = self._gradient(recorded, [target], sources, [upstream])
            connected[:] = [g is not None for g in grads]
            return [op_zeros_like(x) if g is None else g for g, x in zip(grads, sources, strict=True)]

        if n == 0:
            rows = [op_zeros_like(g)[None][:0] for g in pull(op_zeros_like(target))]
        elif together:
            rows = self._backend.vmap(pull, [0], n)(units)
        else:
            each = [pull(units[k]) for k in range(n)]
            rows = [op_stack([row[i] for row in each], 0) for i in range(len(sources))]
        self._use_up()
        return [row if is_connected else None for row, is_connected in zip(rows, connected, strict=True)]
