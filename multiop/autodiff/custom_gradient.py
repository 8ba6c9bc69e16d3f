"""`op_custom_gradient`: a function with its own gradient, the same on every backend.

This file binds arguments, reads the rule's calling convention and checks what the rule returns. It hands the backend
one `Call`. The backend's `custom_call(call, primals)` runs `call.forward(primals)`, puts the outputs on its graph, and
takes their gradients from `call.backward`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

import numpy as np

from multiop import errors
from multiop._call import keras_symbols
from multiop._call.explain import explain
from multiop._loading import registry
from multiop._loading.built_in import is_traced
from multiop._loading.registry import active
from multiop._rules import doors
from multiop._rules.lru import Recent
from multiop._values import args as _args, dtypes, foreign, host, tree
from multiop.autodiff._flat import learn_classes, leaves_like, seen, static_shape
from multiop.autodiff._transformed import decorate_transformed

P = ParamSpec("P")
T = TypeVar("T")


def op_custom_gradient(f: Callable[P, tuple[T, Callable[..., Any]]]) -> Callable[P, T]:
    """Give a function its own gradient.

    Args:
        f: A function or method that returns `(output, grad_fn)`. Its arguments may be tensors, NumPy arrays, Python
            scalars and pytrees of them; anything else (a string, a bool, `None`, a callable) is static. `grad_fn` is
            called in the way that its signature asks for:

            - `grad(upstream)`: the upstream gradient, in the structure of the output;
            - `grad(da, db)` or `grad(*upstreams)`: one upstream gradient for each flat output;
            - `grad(*args, upstream=None)`: the arguments of `f`, and the upstream gradient by keyword, as in Keras;
            - any of these with a `variables` parameter, for a function that closes over differentiable values: it also
              gets the list of them, in the order in which `f` first uses them, and returns `(grads, grad_variables)`.

            It returns one gradient per argument in the arguments' structure (a bare one where there is one
            differentiable argument), or a flat list over the tensor leaves. `None` means zero; static arguments may
            be left out.

    Returns:
        A function with the name, documentation and parameters of `f` that returns `output` alone.

    Raises:
        ArgumentTypeError: `f` is not callable.
        GradientRuleError: `f` or its rule broke the contract: nothing returned, or a gradient of the wrong count,
            structure, shape or dtype.
        ClosedOverError: `f` closes over a differentiable value, and its rule takes no `variables`.
        NonLinearRuleError: Forward mode was applied to a rule that is not linear in the upstream gradient.

    Gradient:
        What `grad_fn` says, in reverse mode, and its transpose in forward mode. Higher orders differentiate `grad_fn`
        itself, through everything that it closes over: an output, the very tensor that is returned, has the function's
        rule; anything else is differentiated as it was computed. Complex gradients follow the conjugate convention of
        TensorFlow and PyTorch on every backend. Unused outputs get an upstream gradient of zeros, integer outputs
        get `None`.

    Example:
        >>> import multiop
        >>> @multiop.op_custom_gradient
        ... def log1pexp(x):
        ...     e = multiop.op_exp(x)
        ...     def grad(upstream):
        ...         return upstream * (1 - 1 / (1 + e))
        ...     return multiop.op_log(1 + e), grad
        >>> float(multiop.grad(log1pexp)(100.0))  # the derivative that autodiff finds is NaN
        1.0
    """
    _args.function(f, "op_custom_gradient: f")
    parameters = _parameters(f)

    @decorate_transformed(f, op_custom_gradient)
    def differentiable(*args: P.args, **kwargs: P.kwargs) -> T:
        backend = active()
        try:
            call = CustomCall(f, parameters, backend, args, kwargs)
        except errors.ForeignTensorError:
            if keras_symbols.takes({"args": args, "kwargs": kwargs}):  # it has its rule as an operation of Keras too
                return keras_symbols.call(differentiable, *args, **kwargs)
            raise
        primals = call.primals
        del call.primals  # a rule keeps `call`, which must not keep tracers or a graph alive
        outputs = backend.custom_call(call, primals)
        return outputs[0] if call.output_leaves is _ONE_LEAF else call.rebuild(outputs)

    return differentiable


op_custom_gradient.__name__ = "custom_gradient"  # as in `multiop.ops`


class _Parameters:
    """The positional parameters of a function: enough to bind keywords, and to name an argument in an error."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.function_name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or repr(f)
        place = _args.place(f)
        self.rule_name = f"{self.function_name} ({place})" if place else self.function_name
        try:
            parameters = list(inspect.signature(f).parameters.values())
        except (ValueError, TypeError):  # a callable written in C may have no signature
            parameters = []
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.names = [p.name for p in positional]
        self.keywords = {p.name for p in positional if p.kind is p.POSITIONAL_OR_KEYWORD}
        self.defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        self.keyword_only = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        self.bare: list[tuple[Any, list[Any]]] = [(None, [_Position(i)]) for i in range(len(self.names))]
        self.rest = ([p.name for p in parameters if p.kind is p.VAR_POSITIONAL] or ["args"])[0]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Put each argument in its parameter's place and fill in defaults, so that `f(x, y=y)` is `f(x, y)`."""
        bound, left = list(args), dict(kwargs)
        for name in self.names[len(args) :]:
            if name in left and name in self.keywords:
                bound.append(left.pop(name))
            elif name in self.defaults:
                bound.append(self.defaults[name])
            else:  # a required argument is missing: f's own TypeError says so
                return args, kwargs
        for name in self.keyword_only:
            if name not in left and name in self.defaults:
                left[name] = self.defaults[name]
        return tuple(bound), left

    def name(self, position: int) -> str:
        if position < len(self.names):
            return self.names[position]
        return f"{self.rest}[{position - len(self.names)}]"


_by_code = Recent(512)


def _parameters(f: Callable[..., Any]) -> _Parameters:
    """Return the parameters of `f`; a function that is defined anew at each step is asked for them once."""
    if type(f) is not types.FunctionType or is_traced() or f.__defaults__ or f.__kwdefaults__ or f.__dict__:
        return _Parameters(f)
    key = f.__code__, f.__code__.co_filename, f.__qualname__
    found: _Parameters | None = _by_code.get(key)
    if found is None:
        _by_code.put(key, found := _Parameters(f))
    return found


class CustomCall:
    """One call of a custom-gradient function, as a backend sees it.

    Attributes:
        name: The name of the function, for errors.
        rule_name: The same with the line where it begins, for errors about what its rule computes.
        primals: The tensor leaves of the arguments, integers included, in order.
    """

    is_op = False

    def __init__(
        self,
        f: Callable[..., Any],
        parameters: _Parameters,
        backend: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.f, self.parameters, self.backend, self.name = f, parameters, backend, parameters.function_name
        self.rule_name = parameters.rule_name
        is_plain = not kwargs and not parameters.keyword_only and len(args) == len(parameters.names)
        if not is_plain:
            args, kwargs = parameters.bind(args, kwargs)
        self.keywords = tuple(kwargs)  # keyword-only arguments, which follow the positional ones
        self.n_positional = len(args)
        is_usual = is_plain and seen[backend.name].classes.issuperset(map(type, args))
        self.is_flat = is_usual or (is_plain and all(map(backend.is_tensor, args)))  # the arguments are the primals
        # per argument: its structure, its leaves with tensors replaced by their position among the primals
        self.arguments: list[tuple[Any, list[Any]]] = parameters.bare
        self.primals: list[Any] = []
        if is_usual:
            self.primals = list(args)
        elif self.is_flat:
            self.primals = [backend.convert(x) for x in args]
            learn_classes(args, self.primals, backend)
        else:
            self.arguments = [self._take(i, argument) for i, argument in enumerate((*args, *kwargs.values()))]
        self.specs: list[_Spec] = []
        for x in self.primals:
            self.specs.append(tuple.__new__(_Spec, (x.shape, x.dtype)))  # a third of the time of a call
        self.convention = _ONE_UPSTREAM
        self.output_structure: Any = None
        self.output_leaves: list[Any] = []

    def _take(self, i: int, argument: Any) -> tuple[Any, list[Any]]:
        if self.backend.is_tensor(argument):
            self.primals.append(self.backend.convert(argument))
            return None, [_Position(len(self.primals) - 1)]
        if isinstance(argument, (str, bytes)) or argument is None or host.is_scalar(argument):
            return None, [argument]
        leaves, structure = tree.flatten(argument)
        taken = []
        for leaf in leaves:
            if (
                self.backend.is_tensor(leaf)
                or isinstance(leaf, (np.ndarray, np.generic))
                or foreign.owner(leaf) is not None
            ):
                try:
                    tensor = self.backend.convert(leaf)  # refuses another framework's tensor
                except errors.MultiopError as error:
                    raise explain(error, self.name, {self.argument_name(i): argument}) from None
                self.primals.append(tensor)
                taken.append(_Position(len(self.primals) - 1))
            else:
                tree.refuse_unregistered([leaf])
                taken.append(leaf)
        return (None if structure.is_leaf() else structure), taken

    def argument_name(self, i: int) -> str:
        """Return the name of an argument of the call."""
        return self.parameters.name(i) if i < self.n_positional else self.keywords[i - self.n_positional]

    # forward

    def forward(self, primals: Any) -> tuple[list[Any], Callable[..., Any]]:
        """Run the function on `primals`; return its flat output tensors, and its rule, ready for `backward`."""
        arguments = primals
        if not self.is_flat:
            arguments = [self._fill_positions(*argument, primals) for argument in self.arguments]
        # its rule says the derivative, so its values may leave for the host
        before, doors.innermost.run = getattr(doors.innermost, "run", None), None
        try:
            if self.keywords:
                keyword_only = dict(zip(self.keywords, arguments[self.n_positional :], strict=True))
                returned = self.f(*arguments[: self.n_positional], **keyword_only)
            else:
                returned = self.f(*arguments)
        finally:
            doors.innermost.run = before
        if not isinstance(returned, tuple) or len(returned) != 2 or not callable(returned[1]):
            forgotten = " (a forgotten return?)" if returned is None else ""
            raise errors.GradientRuleError(
                f"{self.name} must return (output, grad_fn) with a callable grad_fn; it returned "
                f"{_args.describe(returned)}{forgotten}"
            )
        output, grad_fn = returned
        outputs = self._set_output(output)
        self.convention = _convention(grad_fn)
        if self.convention.keras:
            grad_fn = functools.partial(grad_fn, *arguments)
        return outputs, grad_fn

    def with_primals(self, primals: Any) -> Self:
        """Return the call of the same rule with other primals, whose gradients have their shapes."""
        call = copy.copy(self)
        call.specs = [_Spec(x.shape, x.dtype) for x in primals]
        return call

    @staticmethod
    def _fill_positions(structure: Any, leaves: list[Any], tensors: Any) -> Any:
        """Return the pytree in which each `_Position` among `leaves` is replaced by the tensor at that position."""
        filled = [tensors[leaf.number] if type(leaf) is _Position else leaf for leaf in leaves]
        return filled[0] if structure is None else tree.unflatten(structure, filled)

    def _set_output(self, output: Any) -> list[Any]:
        if type(output) in seen[self.backend.name].classes:  # the usual case
            self.output_structure, self.output_leaves = None, _ONE_LEAF
            return [output]
        if self.backend.is_tensor(output):
            self.output_structure, self.output_leaves = None, _ONE_LEAF
            return [self.backend.convert(output)]
        leaves, self.output_structure = tree.flatten(output)
        outputs: list[Any] = []
        self.output_leaves = taken = []
        for leaf in leaves:
            if leaf is None or isinstance(leaf, (str, bytes)) or callable(leaf):
                taken.append(leaf)
                continue
            try:
                outputs.append(self.backend.convert(leaf))
            except errors.MultiopError as error:
                raise errors.GradientRuleError(
                    f"{self.name} returned an output that is not a tensor: {error.args[0]}{tree.how_to_register(leaf)}"
                ) from None
            taken.append(_Position(len(outputs) - 1))
        return outputs

    def rebuild(self, outputs: Any) -> Any:
        """Put flat outputs back into the structure that the function returned."""
        if self.output_leaves is _ONE_LEAF:
            return outputs[0]
        return self._fill_positions(self.output_structure, self.output_leaves, outputs)

    # backward

    def wants_variables(self) -> bool:
        """Say whether the rule that `forward` returned has a `variables` parameter."""
        return self.convention.variables

    def backward(
        self, grad_fn: Callable[..., Any], upstreams: Any, variables: list[Any] | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Call the rule; return a gradient per primal, and one per variable, checked and cast; `None` is zero.

        Args:
            grad_fn: The rule that `forward` returned, or a copy of it that closes over equal values.
            upstreams: One tensor per flat output, `None` for an integer output.
            variables: The values that the function closes over, if the rule has a `variables` parameter.
        """
        convention = self.convention
        extra = {"variables": variables or []} if convention.variables else {}
        positional, keyword = self._arrange(convention, upstreams)
        if registry.is_overridden:  # the framework may run the rule after the block, or in another thread
            returned = registry.run_on(self.backend, grad_fn, *positional, **keyword, **extra)
        else:
            returned = grad_fn(*positional, **keyword, **extra)
        if returned is None:
            raise self._fault("returned None (a forgotten return?); return (None,) for a gradient of zero")
        variable_grads: Any = []
        if convention.variables:
            if not isinstance(returned, (tuple, list)) or len(returned) != 2:
                raise self._fault(
                    f"takes variables, so it must return (grads, grad_variables); it returned "
                    f"{_args.describe(returned)}"
                )
            returned, variable_grads = returned
            variable_grads = self._match_variables(variable_grads, variables or [], upstreams)
        return self._match(returned, upstreams), variable_grads

    def _arrange(self, convention: _Convention, upstreams: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the positional and keyword arguments that hand `upstreams` to a rule of `convention`."""
        if convention.keras:
            return [], {"upstream": upstreams[0] if self.output_structure is None else self.rebuild(upstreams)}
        if self.output_structure is None:
            return upstreams, {}
        if convention.required == 1 and not convention.rest:
            return [self.rebuild(upstreams)], {}
        if convention.rest or convention.required <= len(upstreams) <= convention.positional:
            return upstreams, {}
        raise self._fault(
            f"has {convention.required} required positional parameters, but {self.name} has {len(upstreams)} outputs; "
            f"give it one parameter per output, *upstreams, or one for the upstreams in the output's structure"
        )

    def _match(self, returned: Any, upstreams: Sequence[Any]) -> list[Any]:
        """Lay out what the rule returned as one gradient per primal."""
        if self.is_flat:  # the usual case
            bare = returned if type(returned) in (tuple, list) else (returned,)
            if len(bare) == len(self.specs) and all(map(self._conforms, bare, self.specs)):
                return list(bare)
        entries = self._entries(returned)
        grads: list[Any] = [None] * len(self.specs)
        for i, entry in entries.items():
            structure, leaves = self.arguments[i]
            if entry is None:
                continue
            if structure is None:
                leaf_grads = [entry]
            else:
                try:
                    leaf_grads = leaves_like(entry, structure)
                except ValueError as error:
                    raise self._fault(
                        f"returned a gradient for argument {self.argument_name(i)!r} of another structure: {error}"
                    ) from None
            for leaf, grad in zip(leaves, leaf_grads, strict=True):
                if type(leaf) is _Position:
                    grads[leaf.number] = self._check_gradient(grad, leaf.number, i, upstreams)
                elif grad is not None and not host.is_scalar(leaf):
                    raise self._fault(
                        f"returned a gradient for {_args.describe(leaf)} in argument {self.argument_name(i)!r}, which "
                        f"is static; return None for it"
                    )
        return grads

    def _entries(self, returned: Any) -> dict[int, Any]:
        """Split what the rule returned by argument: position of the argument -> its gradient."""
        every = list(range(len(self.arguments)))
        several = type(returned) in (tuple, list)
        if several and len(returned) == len(every) and all(map(self._fits, every, returned)):  # the usual case
            return dict(enumerate(returned))
        leaves_of = [leaves for _, leaves in self.arguments]
        dynamic = [i for i in every if any(type(leaf) is _Position for leaf in leaves_of[i])]
        differentiable = [i for i in dynamic if any(self._is_inexact(leaf) for leaf in leaves_of[i])]
        numeric = [i for i in every if i in dynamic or any(_is_number(leaf) for leaf in leaves_of[i])]
        choices = (every, numeric, dynamic, differentiable)
        if several:
            for chosen in choices:
                if len(returned) == len(chosen):
                    entries = dict(zip(chosen, returned, strict=True))
                    if all(self._fits(i, entry) for i, entry in entries.items()):
                        return entries
        for chosen in choices:
            if len(chosen) == 1 and self._fits(chosen[0], returned):
                return {chosen[0]: returned}
        if several:
            inexact = [p for p, spec in enumerate(self.specs) if self.backend.dtype_name(spec) in dtypes.INEXACT]
            for leaves in (range(len(self.specs)), inexact):
                if len(returned) == len(leaves) and all(entry is None or tree.is_leaf(entry) for entry in returned):
                    return self._entries_of_flat(dict(zip(leaves, returned, strict=True)))
            for chosen in choices:  # the count fits but the structure does not: `_match` reports where
                if len(returned) == len(chosen):
                    return dict(zip(chosen, returned, strict=True))
        count = len(returned) if several else 1
        names = ", ".join(self.argument_name(i) for i in every)
        raise self._fault(
            f"returned {count} gradient{'s' if count != 1 else ''} ({_args.describe(returned)}) for {len(every)} "
            f"argument{'s' if len(every) != 1 else ''} ({names}) with {len(self.specs)} tensors; return one per "
            f"argument, None for zero"
        )

    def _entries_of_flat(self, by_primal: dict[int, Any]) -> dict[int, Any]:
        entries = {}
        for i, (structure, leaves) in enumerate(self.arguments):
            grads = [by_primal.get(leaf.number) if type(leaf) is _Position else None for leaf in leaves]
            entries[i] = grads[0] if structure is None else tree.unflatten(structure, grads)
        return entries

    def _is_inexact(self, leaf: Any) -> bool:
        return type(leaf) is _Position and self.backend.dtype_name(self.specs[leaf.number]) in dtypes.INEXACT

    def _fits(self, i: int, entry: Any) -> bool:
        structure, _ = self.arguments[i]
        if entry is None:
            return True
        if structure is None:
            return tree.is_leaf(entry)
        try:
            leaves_like(entry, structure)
        except ValueError:
            return False
        return True

    def _match_variables(self, returned: Any, variables: list[Any], upstreams: Sequence[Any]) -> list[Any]:
        grads = [returned] if self.backend.is_tensor(returned) else list(returned or [None] * len(variables))
        if len(grads) != len(variables):
            raise self._fault(f"returned {len(grads)} gradients for {len(variables)} variables")
        return [
            self._conform(grad, variable, f"variable {getattr(variable, 'name', None) or k}", upstreams)
            for k, (grad, variable) in enumerate(zip(grads, variables, strict=True))
        ]

    def _check_gradient(self, grad: Any, primal: int, argument: int, upstreams: Sequence[Any]) -> Any:
        spec = self.specs[primal]
        if self._conforms(grad, spec):
            return grad
        return self._conform(grad, spec, f"argument {self.argument_name(argument)!r}", upstreams)

    def _conforms(self, grad: Any, spec: _Spec) -> bool:
        """Say whether `grad` can be returned as it is; an unknown shape does not conform."""
        if grad is None:
            return True
        known = seen[self.backend.name]
        if not (type(grad) in known.classes and grad.dtype in known.inexact) and not (  # the usual case
            self.backend.is_tensor(grad) and self.backend.dtype_name(grad) in dtypes.INEXACT
        ):
            return False
        return bool(grad.dtype == spec.dtype and grad.shape == spec.shape)

    def _conform(self, grad: Any, x: Any, what: str, upstreams: Sequence[Any]) -> Any:
        """Return `grad` in the dtype of `x`, or raise if it cannot be the gradient with respect to `x`.

        A host value is moved to the device of the upstream gradients.
        """
        shape, dtype = static_shape(x), self.backend.dtype_name(x)
        if grad is None or dtype not in dtypes.INEXACT:
            return None
        if host.is_scalar(grad) and not isinstance(grad, (bool, complex)):
            grad = self._on_upstream_device(upstreams, self.backend.convert(grad, dtype))
        elif not self.backend.is_tensor(grad):
            try:
                grad = self._on_upstream_device(upstreams, self.backend.convert(grad))
            except errors.MultiopError as error:
                raise self._fault(f"returned a gradient for {what} that is not a tensor: {error.args[0]}") from None
        found_shape, found_dtype = static_shape(grad), self.backend.dtype_name(grad)
        if not _args.fits(found_shape, shape):
            raise self._fault(f"returned a gradient of shape {found_shape} for {what} of shape {shape}")
        if found_dtype == dtype:
            return grad
        if found_dtype not in dtypes.INEXACT or (found_dtype in dtypes.COMPLEX and dtype not in dtypes.COMPLEX):
            hint = "; take op_real of it if the imaginary part is zero" if found_dtype in dtypes.COMPLEX else ""
            raise self._fault(f"returned a gradient of dtype {found_dtype} for {what} of dtype {dtype}{hint}")
        return self.backend.convert(grad, dtype)

    def _on_upstream_device(self, upstreams: Sequence[Any], grad: Any) -> Any:
        known = [upstream for upstream in upstreams if upstream is not None]
        return self.backend.on_device_of(known[0], grad) if known else grad

    def _fault(self, message: str) -> errors.GradientRuleError:
        return errors.GradientRuleError(f"the gradient function of {self.name} {message}")


class _Spec(NamedTuple):
    """The framework's own shape and dtype of a primal; it replaces the tensor where nothing else is read."""

    shape: Any
    dtype: Any


class _Position:
    """The position of a tensor leaf among the primals (or outputs)."""

    def __init__(self, number: int) -> None:
        self.number = number


_ONE_LEAF: list[Any] = [_Position(0)]


def _is_number(leaf: Any) -> bool:
    return host.is_scalar(leaf) and not isinstance(leaf, bool)


class _Convention(NamedTuple):
    """What the signature of a rule says about how to call it."""

    required: int
    positional: int
    rest: bool
    keras: bool
    variables: bool


_ONE_UPSTREAM = _Convention(1, 1, False, False, False)
_VARIABLES_ALONE = _Convention(0, 0, False, False, True)


def _convention(grad_fn: Callable[..., Any]) -> _Convention:
    """Return how `grad_fn` asks to be called."""
    if isinstance(grad_fn, types.FunctionType):  # most rules: the code object takes an eighth of the time
        code = grad_fn.__code__
        if code.co_argcount == 1 and not code.co_kwonlyargcount and not code.co_flags & inspect.CO_VARARGS:
            return _ONE_UPSTREAM if code.co_varnames[0] != "variables" else _VARIABLES_ALONE
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        positional = code.co_argcount - ("variables" in names[: code.co_argcount])
        required = positional
        if positional > 1:  # only then: torch.compile cannot read the defaults of a nested function that has some
            defaults = names[code.co_argcount - len(grad_fn.__defaults__ or ()) : code.co_argcount]
            required -= len([n for n in defaults if n != "variables"])
        rest = bool(code.co_flags & inspect.CO_VARARGS)
        return _Convention(required, positional, rest, rest and "upstream" in names, "variables" in names)
    try:
        parameters = inspect.signature(grad_fn).parameters.values()
    except (ValueError, TypeError):
        return _Convention(0, 0, True, False, False)  # without a signature: one upstream per output
    variables = any(p.name == "variables" for p in parameters)
    positionals = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "variables"
    ]
    rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    keras = rest and any(p.name == "upstream" for p in parameters)
    return _Convention(sum(p.default is p.empty for p in positionals), len(positionals), rest, keras, variables)
