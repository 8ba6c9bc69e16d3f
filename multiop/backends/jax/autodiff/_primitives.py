"""Custom gradients as primitives of JAX: every mode, every order.

The derivative of the function is `linear_p`, a linear map whose transpose is the rule. Reverse mode transposes the map,
which runs the rule. Forward mode evaluates the map, and only then is the rule itself transposed.

The function is a primitive in two forms. `eager_p` is used while a single transform differentiates concrete values: the
rule remains the user's closure. Everywhere else, `staged_p` holds the traced function and rule; what the rule closes
over becomes residuals, which are operands of `linear_p`, so that higher orders, vmap and compilers see them.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref

import jax
import jax.numpy as jnp

from multiop import errors
from multiop._rules import late_errors

from .. import _internals as internals
from .._cpu_compiler import mended
from .._internals import Tracer, Zero
from ..conversion import drop_weak_type, is_inexact, is_inexact_dtype, is_unknown_value
from . import _linearity as linearity
from ._operations import Operation
from ._recorded import keys_of
from ._recording import Closure, Recorded, Recording, Silent, knowing, recording_of, watched_here
from ._user_rule import closed_over_error, code_of, name_of, pullback, reachable


def custom_call(call, primals):
    mode = _mode()
    if mode == "plain":
        return call.forward(primals)[0]
    primals = [drop_weak_type(x) for x in primals]
    if mode == "eager":
        try:
            return eager_p.bind(*primals, call=call)
        except (jax.errors.UnexpectedTracerError, _ClosesOverTracer):
            pass  # tracing the function shows what it closes over
    return _stage(call, primals)


def _mode():
    """Say how an operation is processed at this point.

    Returns:
        `"plain"` if nothing can differentiate it; `"eager"` if one transform differentiates concrete values, or values
        that a tape records; `"staged"` if it is traced, or differentiated more than once.
    """
    trace = internals.trace_ctx.trace
    if trace is internals.eval_trace:
        return "plain"
    parent = getattr(trace, "parent_trace", None)
    if isinstance(parent, Recording):
        parent = parent.parent_trace
    if parent is internals.eval_trace and not isinstance(trace, _NEVER_EAGER):
        return "eager"
    while isinstance(trace, internals.BatchTrace):
        trace = trace.parent_trace
    return "plain" if trace is internals.eval_trace else "staged"


_NEVER_EAGER = (internals.BatchTrace, internals.DynamicJaxprTrace, internals.JaxprTrace)


# The function on concrete primals


class _Eager(internals.Intercepted):
    def intercept(self, trace, args, params):
        with internals.set_current_trace(trace):
            if _mode() == "staged":  # recorded eagerly and now traced, as a tape does
                return _stage(params["call"], args)
            if recording_of(trace) is not None:
                return _record(args, params["call"], differentiated=False)[0]
        return None


eager_p = _Eager("custom_gradient_eager")


class _ClosesOverTracer(Exception):
    """The function or its rule closes over a tracer."""


@eager_p.def_impl
def _run(*primals, call):
    outputs, _ = call.forward(primals)
    if any(isinstance(y, Tracer) for y in outputs):
        raise _ClosesOverTracer
    return outputs


def _run_with_rule(primals, is_perturbed, call):
    """Return the outputs and the rule for the perturbed primals."""
    if recording_of(internals.trace_ctx.trace) is not None:
        outputs, grad_fn = _record(primals, call, differentiated=True)
    else:
        outputs, grad_fn = call.forward(primals)
    if any(isinstance(x, Tracer) and not isinstance(x, Recorded) for x in (*outputs, *reachable(grad_fn))):
        raise _ClosesOverTracer
    pull = pullback(call, grad_fn, [is_inexact(y) for y in outputs], [])

    def pull_perturbed(_, cotangents):
        grads = _with_closed_over_explained(call, pull, cotangents)
        return [g for g, perturbed in zip(grads, is_perturbed, strict=True) if perturbed]

    return outputs, _Rule(call.rule_name, pull_perturbed, 0, [internals.typeof(y) for y in outputs], list)


def _with_closed_over_explained(call, pull, cotangents):
    try:
        return pull(cotangents)
    except jax.errors.UnexpectedTracerError as error:
        raise errors.ClosedOverError(
            f"the gradient function of {call.name} uses a differentiated value that is neither an argument of "
            f"{call.name} nor in its closure; pass it to {call.name} as an argument"
        ) from error


def _eager_jvp(primals, tangents, *, call):
    outputs, rule = _run_with_rule(primals, [_is_perturbed(t) for t in tangents], call)
    return outputs, _push(rule, (), tangents)


def _eager_linearize(is_perturbed, *primals, call):
    outputs, rule = _run_with_rule(primals, is_perturbed, call)
    return outputs, rule.is_inexact, (), lambda _, *tangents: _push(rule, (), tangents)


internals.primitive_jvps[eager_p] = _eager_jvp
internals.register_linearization(eager_p, _eager_linearize)


# The function on a tape


class _Ruled(Operation):
    """A function with its rule; the function ran once, when it was recorded.

    The operands are its primals, then the variables that it closes over.

    Attributes:
        constants: The outputs that depend on nothing recorded: the rule may close over them.
    """

    __slots__ = ("avals", "call", "constants", "grad_fn", "n_primals")

    def __init__(self, args, keys, n_primals, call, grad_fn, outputs):
        super().__init__(args, keys)
        self.n_primals = n_primals
        self.call, self.grad_fn, self.avals = call, grad_fn, [(y.shape, y.dtype) for y in outputs]
        self.constants = []

    @property
    def name(self):
        return self.call.name

    def pull(self, args, given, wanted, cotangents):
        by_output = dict(zip(given, cotangents, strict=True))
        every = [
            by_output[i] if i in by_output else jnp.zeros(shape, dtype)
            for i, (shape, dtype) in enumerate(self.avals)
            if is_inexact_dtype(dtype)
        ]
        variables = args[self.n_primals :]
        pull = pullback(self.call, self.grad_fn, [is_inexact_dtype(dtype) for _, dtype in self.avals], variables)
        with knowing(self.constants):
            grads = _with_closed_over_explained(self.call, pull, every)
        return [jnp.zeros(args[i].shape, args[i].dtype) if grads[i] is None else grads[i] for i in wanted]


def _record(primals, call, differentiated):
    """Run the function once while tapes are active; return its outputs as the tapes know them, and its rule.

    Its operations are recorded only if they may be differentiated, for higher orders.

    Args:
        primals: The arguments of the function.
        call: The call.
        differentiated: Whether an outer transform differentiates it, so that the tapes record the rule's operations.
    """
    trace = internals.trace_ctx.trace
    recording = recording_of(trace)
    if trace is not recording:
        trace.check(primals)
    tapes, around = recording.tapes, recording.closure
    keys = keys_of(primals, recording.originals)
    if around is not None:
        around.see(primals, keys)
    recording.closure = closure = Closure(recording, keys)
    if len(tapes) == 1 and not tapes[0].persistent and not differentiated:
        recording.tapes = [Silent]
    try:
        outputs, grad_fn = call.forward(primals)
        closure.see(outputs, keys_of(outputs, recording.originals))
    finally:
        recording.tapes, recording.closure = tapes, around
    variables = {key: x for key, x in closure.found.items() if is_inexact(x)}
    if any(isinstance(y, Tracer) and not isinstance(y, Recorded) for y in outputs) or (
        variables and (differentiated or not call.wants_variables())
    ):
        raise _ClosesOverTracer
    if around is not None:
        around.see(variables.values(), variables)
    concerned = recording.concerned([*keys, *variables])
    if concerned:
        inputs = [*primals, *variables.values()]
        operation = _Ruled(inputs, [*keys, *variables], len(primals), call, grad_fn, outputs)
        noted = recording.note(concerned, operation, [y.value if type(y) is Recorded else y for y in outputs])
        for y, out in reversed([*zip(outputs, noted, strict=True)]):  # the rule may close over y, which is the output
            if type(out) is Recorded and not any(y is x for x in inputs):
                if type(y) is Recorded:
                    y.key = out.key
                else:
                    operation.constants.append((y, out.key))
        outputs = noted
    return outputs, grad_fn


# The function traced

staged_p = internals.Primitive("custom_gradient")
staged_p.multiple_results = True


class _Staged:
    """The parameter of `staged_p`.

    Attributes:
        name: The name of the function, for errors.
        function: A jaxpr from the operands (what the function closes over, then its primals) to its results: the
            outputs, then what else the rule closes over.
        n_outputs: The number of outputs.
        rule: A jaxpr from the residuals and the cotangents of the inexact outputs to one gradient per entry of `slots`,
            or the exception that the rule raised, which is raised again when the function is differentiated.
        taken: Each residual of the rule: its index among the results (an output has the rule for its own derivative),
            or, if it is a primal, its index among the operands, from their end.
        slots: The operands that have a gradient; that of any other primal is zero.
        closed_over: A description of each operand that the function closes over.
    """

    def __init__(self, name, function, n_outputs, rule, taken, slots, closed_over):
        self.name, self.function, self.n_outputs = name, function, n_outputs
        self.rule, self.taken, self.slots, self.closed_over = rule, taken, slots, closed_over

    @property
    def n_others(self):
        return len(self.function.out_avals) - self.n_outputs

    def completed(self):
        """Return the function with its rule."""
        return self

    def mended(self, rewritten):
        """Return the function with its jaxpr `rewritten`; the rule is rewritten where it runs."""
        return self._with(rewritten(self.function), self.rule)

    def batched(self, axis, is_mapped):
        """Return the function mapped over an axis of some operands, and which of its results are mapped."""
        mapped_outputs = [True] * self.n_outputs + [False] * self.n_others  # so that each has its own cotangent
        function, is_mapped_out = internals.batch_jaxpr(self.function, axis, is_mapped, mapped_outputs)
        raises = isinstance(self.rule, Exception)
        rule = self.rule if raises else _batched_rule(self, axis, is_mapped, is_mapped_out)
        return self._with(function, rule), is_mapped_out

    def _with(self, function, rule):
        return _once(_Staged, self.name, function, self.n_outputs, rule, self.taken, self.slots, self.closed_over)

    def only(self, outputs):
        """Return the part of the function that computes the outputs, or the part that computes its other results."""
        used = [outputs] * self.n_outputs + [not outputs] * self.n_others
        return internals.prune(self.function, used, True)[0]

    def refuse_closed_over(self, is_perturbed):
        """Raise if the outputs depend differentiably on a perturbed value that the rule has no gradient for."""
        n = len(self.closed_over)
        suspects = [i < n and i not in self.slots and perturbed for i, perturbed in enumerate(is_perturbed)]
        if any(suspects) and any(internals.jvp_jaxpr(self.only(outputs=True), suspects, False)[1]):
            raise closed_over_error(self.name, [self.closed_over[i] for i in range(n) if suspects[i]])


class _Late:
    """A function whose rule calls the function itself: each order traces the next when it is asked for.

    Attributes:
        function: A jaxpr from the operands to the outputs, as that of a `_Staged`.
    """

    n_others = 0

    def __init__(self, name, function, complete):
        self.name, self.function, self.n_outputs = name, function, len(function.out_avals)
        self._complete, self._completed = complete, None

    def completed(self):
        complete = self._complete
        if self._completed is None:
            self._completed, self._complete = complete(), None
        return self._completed

    def batched(self, axis, is_mapped):
        function, is_mapped_out = internals.batch_jaxpr(self.function, axis, is_mapped, [True] * self.n_outputs)
        return _Late(self.name, function, lambda: self.completed().batched(axis, is_mapped)[0]), is_mapped_out

    def mended(self, rewritten):
        function, late = rewritten(self.function), lambda: self.completed().mended(rewritten)
        return self if function is self.function else _Late(self.name, function, late)


def _stage(call, primals):
    avals = [internals.typeof(x) for x in primals]
    variables = None
    calls_itself = code_of(call.f) in _tracing.rules
    put_off = [] if calls_itself else _tracing.put_off
    if calls_itself and _tracing.put_off is not None:
        _tracing.put_off.append(call)
        function, closed_over = internals.trace(lambda *primals: call.forward(primals)[0], avals)
        variables = _variables_among(closed_over) if call.wants_variables() else None
    else:
        try:
            staged, closed_over = _trace(call, avals, variables, None, put_off)
        except _WantsVariables:
            _, closed_over = internals.trace(lambda *primals: call.forward(primals)[0], avals)
            variables = _variables_among(closed_over)
            staged, closed_over = _trace(call, avals, variables, None, put_off)
        function = staged.only(outputs=True) if calls_itself and put_off else None
    if function is not None:
        staged = _Late(call.rule_name, function, lambda: _trace(call, avals, variables, closed_over, None)[0])
    return staged_p.bind(*closed_over, *primals, staged=staged, all_results=False)


class _WantsVariables(Exception):
    """The rule has a `variables` parameter, so what the function closes over must be found first."""


def _variables_among(closed_over):
    watched = watched_here()
    return [x for x in closed_over if (isinstance(x, Tracer) or id(x) in watched) and is_inexact(x)]


class _Tracing(threading.local):
    """What is being traced in this thread.

    Attributes:
        rules: The codes of the functions whose rules are being traced, the outermost first.
        put_off: A list of the calls whose rules were put off, in a trace that only finds what a rule closes over.
    """

    rules = ()
    put_off = None


_tracing = _Tracing()


def _trace(call, avals, variables, closed_over, put_off):
    """Trace the function and its rule; return them, and what they close over.

    Args:
        call: The call.
        avals: The types of the primals.
        variables: What the rule takes as its variables, or `None` before that is known.
        closed_over: What they close over, if an earlier trace, which may have ended, has found it.
        put_off: See `_Tracing`.
    """
    traced, outside = {}, internals.trace_ctx.trace

    def function(*primals):
        if closed_over is not None:
            internals.stand_in(primals[: len(closed_over)], closed_over)
            primals = primals[len(closed_over) :]
        outputs, grad_fn = call.forward(primals)
        if variables is None and call.wants_variables():
            raise _WantsVariables
        inexact = [is_inexact(y) for y in outputs]
        pull = pullback(call, grad_fn, inexact, variables or [])

        def rule(*cotangents):
            grads = pull(cotangents)
            traced["given"] = [g is not None for g in grads]
            return [g for g in grads if g is not None]

        residuals, before = [], (_tracing.rules, _tracing.put_off)
        _tracing.rules, _tracing.put_off = (*_tracing.rules, code_of(call.f)), put_off
        try:
            traced["rule"], residuals = internals.trace(
                rule, [internals.tangent_aval(internals.typeof(y)) for y in itertools.compress(outputs, inexact)]
            )
        except RecursionError:
            raise
        except Exception as error:  # it does not matter unless the call is differentiated
            if is_unknown_value(error) and _is_forward_mode(outside):
                raise _reads_values(call.rule_name) from error
            traced["rule"] = late_errors.without_frames(error, "JAX")
            traced["given"] = [is_inexact(x) for x in [*primals, *(variables or [])]]
        finally:
            _tracing.rules, _tracing.put_off = before
        places = {id(y): i for i, y in reversed([*enumerate(outputs)])}
        for x in variables or []:  # an input that is returned stays an input
            places.pop(id(x), None)
        places.update({id(x): i - len(primals) for i, x in enumerate(primals)})
        others = [x for x in residuals if id(x) not in places]
        places.update({id(x): len(outputs) + i for i, x in enumerate(others)})
        traced["n_outputs"], traced["taken"] = len(outputs), [places[id(x)] for x in residuals]
        return [*outputs, *others]

    if closed_over is None:
        jaxpr, closed_over = internals.trace(function, avals)
    else:
        jaxpr = internals.trace_with_constants(function, [*map(internals.typeof, closed_over), *avals])
        if unknown := [name_of(x, call) for x in jaxpr.consts if isinstance(x, Tracer)]:
            raise errors.ClosedOverError(
                f"the gradient function of {call.name}, which calls {call.name}, closes over {', '.join(unknown)} in a "
                f"way that JAX does not see at first order; pass it to {call.name} as an argument"
            )
    position = {id(x): i for i, x in enumerate(closed_over)}
    operands = [*range(len(closed_over), len(closed_over) + len(avals)), *[position[id(x)] for x in variables or []]]
    slots = [operand for operand, given in zip(operands, traced["given"], strict=True) if given]
    rule = traced["rule"]
    if not isinstance(rule, Exception):
        jaxpr, rule = internals.share(jaxpr), internals.share(rule)
    parts = jaxpr, traced["n_outputs"], rule, tuple(traced["taken"]), tuple(slots)
    return _once(_Staged, call.rule_name, *parts, tuple([name_of(x, call) for x in closed_over])), closed_over


def _once(make, *parts):
    """Return `make(*parts)`, one object for equal parts as long as it lives: JAX's caches know it by its identity."""
    found = _made.get((make, parts))
    if found is None:
        found = _made[make, parts] = make(*parts)
    return found


_made = weakref.WeakValueDictionary()


@staged_p.def_impl
def _evaluate(*operands, staged, all_results):
    results = internals.jaxpr_as_fun(staged.function)(*operands)
    return results if all_results else results[: staged.n_outputs]


@staged_p.def_effectful_abstract_eval
def _staged_abstract_eval(*_, staged, all_results):
    avals = staged.function.out_avals
    return avals if all_results else avals[: staged.n_outputs], staged.function.effects


def _run_for_rule(primals, is_perturbed, staged):
    """Return all results, the rule, the residuals that it needs, and the operands whose tangents it takes."""
    staged.refuse_closed_over(is_perturbed)
    results = staged_p.bind(*primals, staged=staged, all_results=staged.n_others > 0)
    rule = _once(_rule_of, staged, tuple(is_perturbed))
    held = [*results, *primals]
    return results, rule, [held[i] for i in rule.taken], rule.slots


def _staged_jvp(primals, tangents, *, staged, all_results):
    is_perturbed = [_is_perturbed(t) for t in tangents]
    staged = staged.completed()
    n = staged.n_outputs
    results, rule, needed, slots = _run_for_rule(primals, is_perturbed, staged)
    out_tangents = _push(rule, needed, [tangents[slot] for slot in slots])
    if not all_results:
        return results[:n], out_tangents
    # the derivative of the rule goes through its residuals: outputs have the rule, the rest the function's operations
    pushed, is_nonzero = rule.jvp_of_others()
    found = iter(internals.jaxpr_as_fun(pushed)(*primals, *[t for t in tangents if _is_perturbed(t)]))
    for r, nonzero in zip(results[n:], is_nonzero, strict=True):
        out_tangents.append(next(found) if nonzero else Zero(internals.tangent_aval(internals.typeof(r))))
    return results, out_tangents


def _staged_linearize(is_perturbed, *primals, staged, all_results):
    if all_results:
        return None
    staged = staged.completed()
    results, rule, needed, slots = _run_for_rule(primals, is_perturbed, staged)

    def push_tangents(needed, *tangents):
        return _push(rule, needed, [tangents[slot] for slot in slots])

    is_nonzero = [inexact and bool(slots) for inexact in rule.is_inexact]
    return results[: staged.n_outputs], is_nonzero, needed, push_tangents


def _staged_batch(axis, operands, axes, *, staged, all_results):
    if all(d is None for d in axes):
        results = staged_p.bind(*operands, staged=staged, all_results=all_results)
        return results, [None] * len(results)
    operands = [jnp.moveaxis(x, d, 0) if d else x for x, d in zip(operands, axes, strict=True)]
    batched, is_mapped_out = staged.batched(axis, [d is not None for d in axes])
    results = staged_p.bind(*operands, staged=batched, all_results=all_results)
    return results, [0 if mapped else None for mapped in is_mapped_out[: len(results)]]


def _batched_rule(staged, axis, is_mapped, is_mapped_out):
    n_cotangents = len(staged.rule.in_avals) - len(staged.taken)
    is_held_mapped = [*is_mapped_out, *is_mapped]
    is_mapped_in = [*[is_held_mapped[i] for i in staged.taken], *[True] * n_cotangents]
    is_mapped_slot = [is_mapped[slot] for slot in staged.slots]
    rule, is_mapped_grad = internals.batch_jaxpr(staged.rule, axis, is_mapped_in, is_mapped_slot)
    if list(is_mapped_grad) != is_mapped_slot:  # a shared operand: sum its gradient over the examples
        evaluate = internals.jaxpr_as_fun(rule)

        def sum_unmapped(*args):
            grads = zip(evaluate(*args), is_mapped_grad, is_mapped_slot, strict=True)
            return [g.sum(0) if mapped and not slot else g for g, mapped, slot in grads]

        rule, _ = internals.trace(sum_unmapped, rule.in_avals)
    return rule


def _staged_transpose(cotangents, *operands, staged, all_results):
    """Transpose the function, as a part of a rule: it must be linear, and its own rule gives the transpose."""
    staged = staged.completed()
    used = [True] * staged.n_outputs + [all_results] * staged.n_others
    jaxpr, _ = internals.prune(staged.function, used, True)

    def pull_cotangents(cotangents):
        return internals.backward_pass(jaxpr.jaxpr, False, jaxpr.consts, operands, cotangents)

    of_outputs, of_others = cotangents[: staged.n_outputs], cotangents[staged.n_outputs :]
    if all(isinstance(u, Zero) for u in of_outputs):
        return pull_cotangents(cotangents)
    is_linear = [isinstance(x, internals.UndefinedPrimal) for x in operands]
    if not linearity.says_linear(jaxpr.jaxpr, is_linear):
        jax.eval_shape(lambda: [g for g in pull_cotangents(cotangents) if _is_perturbed(g)])  # raises if it is not
    primals = [
        internals.instantiate_zeros(Zero(x.aval)) if unknown else x
        for x, unknown in zip(operands, is_linear, strict=True)
    ]
    _, rule, needed, slots = _run_for_rule(primals, is_linear, staged)
    upstreams = [
        internals.instantiate_zeros(u) for u, inexact in zip(of_outputs, rule.is_inexact, strict=True) if inexact
    ]
    found = [Zero(x.aval) if unknown else None for x, unknown in zip(operands, is_linear, strict=True)]
    if not all(isinstance(u, Zero) for u in of_others):  # the part of the function that computes its other results
        found = pull_cotangents([*[Zero(internals.typeof(y)) for y in rule.out_avals], *of_others])
    for i, g in zip(slots, rule.pull(needed, upstreams), strict=True):
        found[i] = internals.add_tangents(found[i], _on_its_devices(g, operands[i].aval))
    return found


internals.weakref_cache_key_types.add(_Staged)  # so that JAX's caches do not keep it alive
internals.primitive_jvps[staged_p] = _staged_jvp
internals.register_linearization(staged_p, _staged_linearize)
internals.fancy_primitive_batchers[staged_p] = _staged_batch
internals.primitive_transposes[staged_p] = _staged_transpose
internals.lower_as(staged_p, lambda staged, **_: staged.function)


# The tangent map


class _Linear(internals.Intercepted):
    def intercept(self, trace, args, params):
        if not isinstance(trace, Recording):
            return None
        with internals.set_current_trace(trace):  # a tape records the operations of the rule, not a single one
            return _transpose_rule(*args, **params)


linear_p = _Linear("custom_gradient_tangent")


class _Rule:
    """The parameter of `linear_p`, whose operands are the rule's residuals and then the tangents.

    Attributes:
        name: The name of the function, for errors.
        pull: Maps the residuals and the cotangents of the inexact outputs to a gradient, or `None` for zero, for each
            tangent.
        n_residuals: The number of residuals.
        out_avals: The types of the function's outputs.
        residual_kinds: A function that returns the kind of each residual, see `_linearity`.
    """

    def __init__(self, name, pull, n_residuals, out_avals, residual_kinds):
        self.name, self.pull, self.n_residuals, self.out_avals = name, pull, n_residuals, out_avals
        self.residual_kinds = residual_kinds
        self.is_inexact = [is_inexact(aval) for aval in out_avals]
        self.tangent_avals = [internals.tangent_aval(aval) for aval in out_avals if is_inexact(aval)]

    def mended(self, _):
        """Return the map with the operations of its rule rewritten."""
        return _Rule(self.name, mended(self.pull), self.n_residuals, self.out_avals, self.residual_kinds)


def _rule_of(staged, is_perturbed):
    """Return the rule of a function for its perturbed operands, with its residuals and the slots that it fills."""
    wanted = [is_perturbed[slot] for slot in staged.slots]
    jaxpr, taken, out_avals = staged.rule, staged.taken, staged.function.out_avals[: staged.n_outputs]
    calls, program = itertools.count(), []
    if isinstance(jaxpr, Exception):
        taken = []
    elif not (all(wanted) and internals.is_used_whole(jaxpr.jaxpr)):
        n = len(taken)
        jaxpr, used = internals.prune(jaxpr, wanted, [False] * n + [True] * (len(jaxpr.in_avals) - n))
        taken = [i for i, use in zip(taken, used, strict=False) if use]

    def residual_kinds():
        given = [linearity.CONSTANT] * len(staged.function.in_avals)
        found = [*linearity.kinds(staged.function.jaxpr, given), *given]
        return [found[i] for i in taken]

    def pull(residuals, cotangents):
        if isinstance(jaxpr, Exception):
            raise late_errors.again(jaxpr)
        if not next(calls) or not internals.is_transforming():
            return internals.evaluate(jaxpr, *residuals, *cotangents)
        if not program:  # called again: JAX transforms it once, not each operation at each call
            program.append(jax.jit(functools.partial(internals.evaluate, jaxpr), inline=True))
        return program[0](*residuals, *cotangents)

    @functools.cache
    def jvp_of_others():
        """Return a jaxpr of the tangents of the function's other results, and which of them are not zero."""
        found, is_nonzero = internals.jvp_jaxpr(staged.only(outputs=False), is_perturbed, False)
        return internals.prune(found, [False] * len(is_nonzero) + [True] * sum(is_nonzero), True)[0], is_nonzero

    rule = _Rule(staged.name, pull, len(taken), out_avals, residual_kinds)
    rule.taken, rule.slots = taken, list(itertools.compress(staged.slots, wanted))
    rule.jvp_of_others = jvp_of_others
    return rule


def _push(rule, residuals, tangents):
    """Return the tangents of the outputs."""
    tangents = [t for t in tangents if _is_perturbed(t)]
    if not tangents:
        return [Zero(internals.tangent_aval(aval)) for aval in rule.out_avals]
    found = iter(linear_p.bind(*residuals, *tangents, rule=rule))
    return [
        next(found) if inexact else Zero(internals.tangent_aval(aval))
        for aval, inexact in zip(rule.out_avals, rule.is_inexact, strict=True)
    ]


@linear_p.def_impl
def _transpose_rule(*operands, rule):
    """Evaluate the map by transposing the rule."""
    residuals, tangents = operands[: rule.n_residuals], operands[rule.n_residuals :]
    is_given = []

    def pull(*cotangents):
        grads = rule.pull(residuals, cotangents)
        is_given[:] = [g is not None for g in grads]
        return [_on_its_devices(g, internals.typeof(t)) for g, t in zip(grads, tangents, strict=True) if g is not None]

    try:
        jaxpr, closed_over = internals.trace(pull, rule.tangent_avals)
        jaxpr = jaxpr.replace(jaxpr=linearity.without_stops(jaxpr.jaxpr))
        jaxpr, _ = internals.prune(jaxpr, [True] * len(jaxpr.out_avals), True)  # unused operations need not be linear
    except Exception as error:
        if is_unknown_value(error):
            raise _reads_values(rule.name) from error
        raise
    wanted = [t for t, given in zip(tangents, is_given, strict=True) if given]
    undefined = [internals.UndefinedPrimal(aval) for aval in rule.tangent_avals]
    try:
        residual_kinds = {id(x): kind for x, kind in zip(residuals, rule.residual_kinds(), strict=True)}
        given = [residual_kinds.get(id(x)) or linearity.of_value(x) for x in closed_over]
        if linearity.CONSTANT in linearity.kinds(jaxpr.jaxpr, [*given, *[linearity.LINEAR] * len(undefined)]):
            raise linearity.NotLinear("it returns a constant")
        found = internals.backward_pass(jaxpr.jaxpr, False, jaxpr.consts, [*closed_over, *undefined], wanted)
    except jax.errors.UnexpectedTracerError:
        raise
    except (linearity.NotLinear, NotImplementedError, AssertionError, TypeError, ValueError) as error:
        raise errors.NonLinearRuleError.of(rule.name, str(error) or type(error).__name__) from error
    return [internals.instantiate_zeros(t) for t in found[len(closed_over) :]]


@linear_p.def_abstract_eval
def _linear_abstract_eval(*_, rule):
    return rule.tangent_avals


def _linear_jvp(primals, tangents, *, rule):
    n = rule.n_residuals
    out = linear_p.bind(*primals, rule=rule)
    out_tangents = [Zero(aval) for aval in rule.tangent_avals]
    if any(_is_perturbed(t) for t in tangents[n:]):
        out_tangents = linear_p.bind(*primals[:n], *[internals.instantiate_zeros(t) for t in tangents[n:]], rule=rule)
    perturbed = [i for i in range(n) if _is_perturbed(tangents[i])]
    if perturbed:

        def of_residuals(*xs):
            operands = list(primals)
            for i, x in zip(perturbed, xs, strict=True):
                operands[i] = x
            return _transpose_rule(*operands, rule=rule)

        _, found = jax.jvp(of_residuals, [primals[i] for i in perturbed], [tangents[i] for i in perturbed])
        out_tangents = [internals.add_tangents(a, b) for a, b in zip(out_tangents, found, strict=True)]
    return out, out_tangents


def _linear_transpose(cotangents, *operands, rule):
    n = rule.n_residuals
    if any(isinstance(x, internals.UndefinedPrimal) for x in operands[:n]):
        raise NotImplementedError("a tangent map is not linear in its residuals")
    if all(isinstance(u, Zero) for u in cotangents):
        return [None] * len(operands)
    grads = rule.pull(operands[:n], [internals.instantiate_zeros(u) for u in cotangents])
    tangents = operands[n:]
    return [None] * n + [g if g is None else _on_its_devices(g, t.aval) for g, t in zip(grads, tangents, strict=True)]


def _linear_batch(axis, operands, axes, *, rule):
    if all(d is None for d in axes):
        out = linear_p.bind(*operands, rule=rule)
        return out, [None] * len(out)
    n = rule.n_residuals
    operands = [jnp.moveaxis(x, d, 0) if d else x for x, d in zip(operands, axes, strict=True)]
    axes = [None if d is None else 0 for d in axes]
    pull_each = internals.vmap(rule.pull, (axes[:n], [0] * len(rule.tangent_avals)), axis)

    def pull(residuals, cotangents):
        grads = pull_each(list(residuals), list(cotangents))
        return [g if g is None or d == 0 else g.sum(0) for g, d in zip(grads, axes[n:], strict=True)]

    avals = [internals.unmapped_aval(axis.size, 0, aval) for aval in rule.tangent_avals]
    batched = _Rule(rule.name, pull, n, avals, rule.residual_kinds)
    out = linear_p.bind(*operands, rule=batched)
    return out, [0] * len(out)


internals.weakref_cache_key_types.add(_Rule)
internals.primitive_jvps[linear_p] = _linear_jvp
internals.primitive_transposes[linear_p] = _linear_transpose
internals.fancy_primitive_batchers[linear_p] = _linear_batch
internals.register_lowering(linear_p, internals.lower_fun(_transpose_rule, multiple_results=True))


# What forward mode requires of a rule


def _reads_values(name):
    why = "it reads values, as NumPy or Python does, so it cannot be seen to be linear; write it with tensor operations"
    return errors.NonLinearRuleError.of(name, why)


def _is_forward_mode(trace):
    while trace is not None and not isinstance(trace, internals.JVPTrace):
        trace = getattr(trace, "parent_trace", None)
    return trace is not None


def _on_its_devices(grad, aval):
    """Return the gradient of an operand of type `aval`: in `shard_map`, sum that of a replicated operand."""
    found, wanted = internals.varying(internals.typeof(grad)), internals.varying(aval)
    if found != wanted:
        grad = jax.lax.psum(grad, tuple(found - wanted)) if found - wanted else grad
        grad = internals.vary(grad, tuple(wanted - found))
    return grad


def _is_perturbed(tangent):
    return not isinstance(tangent, Zero) and getattr(tangent, "dtype", None) != jax.dtypes.float0
