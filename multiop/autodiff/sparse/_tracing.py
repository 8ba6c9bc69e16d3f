"""Find which entries of a function's results depend on which of its input, for every value: one run of the function.

The tracer is a backend. Its tensors carry index sets beside a value of NumPy's backend, which computes shapes and
dtypes. So the ops of a frontend, transforms and custom gradients within the function come through here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multiop import errors
from multiop._loading import registry
from multiop._loading.primitives import Primitives
from multiop._values import dtypes, foreign, host
from multiop.autodiff.sparse import _rules, _sets
from multiop.autodiff.sparse._sets import Pairs, Parents, Traced, narrow, plain, sparse, starts, widen

MOST_STEPS = 100  # of a loop whose number of steps is not known, until its sets stay the same

MOST_RULES = 4  # of custom gradients within each other that are followed


def find_pattern(flat: Callable[..., Any], arrays: Sequence[Any], second: bool) -> tuple[Any, bool, list[Any]]:
    """Run `flat`, a function of tensors, on tracers of the shapes and dtypes of `arrays`.

    Returns:
        Which inputs each output depends on, or which pairs of them have a second derivative; whether the function has
        custom gradients; and the outputs, NaN where their values are not known.
    """
    tracer = Tracer()
    leaves, n = [tracer.leaf(x) for x in arrays], tracer.width
    with np.errstate(all="ignore"):
        outputs = registry.run_on(tracer, lambda: [tracer.convert(y) for y in flat(*leaves)])
    if second:
        live = _sets.find_live(_rules.operands(outputs), tracer.steps, tracer.live_below)
        found = tracer.pairs_of(tracer.steps, slice(0, n), slice(0, n), live)
        return found + found.T, tracer.has_rules, plain(outputs)
    rows = [narrow(y.sets, 0, n) if isinstance(y, Traced) else _sets.empty(np.size(y), n) for y in outputs]
    return sparse().vstack(rows, format="csr") if rows else _sets.empty(0, n), tracer.has_rules, plain(outputs)


def read(x: Any, backend: Any) -> tuple[Any, bool]:
    """Return a tensor as an array, and whether it has its values: it has ones in a transform, where there are none."""
    try:
        return np.array(backend.op_convert_to_numpy(backend.stop_gradient(x))), True
    except Exception:
        return np.ones(tuple(x.shape), dtypes.to_numpy(backend.dtype_name(x))), False


class Tracer:
    """A backend whose tensors carry index sets."""

    name, version, argument_errors, passed_errors = "tracer", np.__version__, (ValueError, TypeError, IndexError), ()
    composite = traced = None
    Tensor = (np.ndarray, np.generic, Traced)

    def __init__(self) -> None:
        self.backend, self.width, self.has_rules = registry.load("numpy"), 0, False
        self.stands_for = getattr(owner := registry.active(), "stands_for", owner.name)
        self.set_x64, self.name_scope = self.backend.set_x64, self.backend.name_scope
        self.steps: list[Traced] = []
        self.live_below = self.depth = 0  # steps of lower numbers may go into anything; rules that are followed

    def leaf(self, x: Any) -> Traced:
        """Return a tensor with the value of `x` whose entries are inputs of their own, beside those that there are."""
        start, n = self.width, np.size(x)
        self.width += n
        sets = sparse().csr_array((np.ones(n, bool), np.arange(start, start + n), np.arange(n + 1)), (n, self.width))
        return self.add(Traced(plain(x), sets))

    def add(self, made: Traced) -> Traced:
        self.steps.append(made)
        return made

    def keep_all(self) -> None:
        """Take all that was made so far for a part of the results, where no map says which entries are."""
        if self.steps:
            self.live_below = self.steps[-1].number + 1

    def make(
        self, value: Any, parents: Parents, pairs: Any = (), curved: bool = False, beside: Sequence[Any] = ()
    ) -> Traced:
        """Return a tensor that depends on what its parents do, and on what is in the sets `beside`."""
        value = np.asarray(value)
        parts = [*(_sets.follow(x.sets, along) for x, along in parents), *beside]
        sets = widen(_sets.union(parts or [_sets.empty(value.size, self.width)]), self.width)
        every = np.arange(value.size)
        own = [Pairs(sets, sets, every, every)] if curved and sets.nnz else pairs
        return self.add(Traced(value, sets, parents, own))

    def to_array(self, x: Any) -> Any:
        """Return `x` with tensors of a framework, which the function closes over, as arrays, also in lists."""
        return _sets.each(self.read_foreign, x)

    def read_foreign(self, x: Any) -> Any:
        owner = "" if isinstance(x, (Traced, np.ndarray, np.generic)) else foreign.owner(x) or "numpy"
        if owner not in registry.BUILT_IN or not (backend := registry.load(owner)).is_tensor(x):
            return x
        value, is_known = read(x, backend)
        return value if is_known else self.make(value, ())

    def is_tensor(self, x: Any) -> bool:
        return isinstance(x, self.Tensor) or foreign.owner(x) in registry.BUILT_IN

    def convert(self, x: Any, dtype: str | None = None) -> Any:
        x = self.to_array(x)
        if isinstance(x, Traced):
            if dtype in (None, self.dtype_name(x)):
                return x
            value = self.backend.convert(x.value, dtype)
            return self.make(value, [(x, None)] if value.dtype.kind in "fcV" else [])
        if isinstance(x, (list, tuple)) and _rules.operands(x):
            wanted = dtype or dtypes.result_type(*map(self.promotion_dtype, host.flat(x)))
            return self.op_stack([self.convert(entry, wanted) for entry in x], 0)
        return self.backend.convert(x, dtype)

    def dtype_name(self, x: Any) -> str:
        if isinstance(x, Traced):
            return str(self.backend.dtype_name(x.value))
        return str(self.backend.dtype_name(x)) if isinstance(x.dtype, np.dtype) else dtypes.name(x.dtype)

    def promotion_dtype(self, x: Any) -> str:
        return dtypes.of_scalar(x) if host.is_scalar(x) else self.dtype_name(self.convert(x))

    def floating(self, x: Any) -> Any:
        x = self.convert(x)
        return self.convert(x, dtypes.to_floating(self.dtype_name(x)))

    def promote(self, *xs: Any) -> list[Any]:
        dtype = dtypes.result_type(*map(self.promotion_dtype, xs))
        return [self.convert(x, dtype) for x in xs]

    def promote_floating(self, *xs: Any) -> list[Any]:
        return [self.floating(x) for x in self.promote(*xs)]

    def together(self, *xs: Any) -> list[Any]:
        made = [x if host.is_scalar(x) else self.convert(x) for x in xs]
        return list(host.with_digits(xs, made, self.convert, self.dtype_name))

    def on_device_of(self, x: Any, made: Any) -> Any:
        return made

    def to_device(self, x: Any, device: str) -> Any:
        return x

    def is_at_hand(self, x: Any) -> bool:
        return not isinstance(x, Traced)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("op_"):
            raise AttributeError(name)
        bare = name[3:]
        if hasattr(Primitives, name):
            return lambda *args: self.call(bare, [self.to_array(x) for x in args])
        return registry.composite_of(name)

    def numpy(self, name: str) -> Any:
        """Return NumPy's op of a name."""
        return getattr(self.backend, f"op_{name}")

    def call(self, name: str, args: list[Any]) -> Any:
        """Return the result of a primitive op, with sets where an operand has some."""
        if not _rules.operands(args):
            result = self.numpy(name)(*args)
            given = list(host.flat(args))
            may_change = not all(_sets.is_fixed(x) for x in given if isinstance(x, np.ndarray))
            may_change |= name in _rules.OF_NUMBERS and any(map(host.is_scalar, given))
            for y in host.flat([result]):
                if not may_change and isinstance(y, np.ndarray):
                    y.flags.writeable = False
            return result
        if name in _rules.SIZED_BY_VALUES:
            raise Traced.refusal("values that decide a shape")
        rule = _rules.RULES.get(name, _rules.mix_all)
        if rule is _rules.elementwise or rule is _rules.constant:
            args = [self.convert(x) if isinstance(x, list) else x for x in args]
        try:
            result = self.numpy(name)(*plain(args))
        except (errors.MultiopError, np.linalg.LinAlgError, ValueError):  # as of a singular matrix, or of NaN
            result = self.numpy(name)(*plain([_regular(x) for x in args]))
        return rule(self, name, args, result)

    def op_convert_to_tensor(self, x: Any, dtype: Any, sparse: Any, ragged: Any) -> Any:
        return self.convert(x, dtype)

    op_cast = convert

    def op_convert_to_numpy(self, x: Any) -> Any:
        return self.backend.op_convert_to_numpy(self.to_array(x))

    def op_dtype(self, x: Any) -> Any:
        return self.dtype_name(self.convert(x))

    def op_shape(self, x: Any) -> Any:
        return tuple(self.convert(x).shape)

    op_is_tensor = is_tensor

    def op_cond(self, pred: Any, true_fn: Any, false_fn: Any) -> Any:
        return self.op_switch(pred if isinstance(pred, Traced) else not pred, [true_fn, false_fn])

    def op_switch(self, index: Any, branches: Any) -> Any:
        if not isinstance(index, Traced):
            return [self.convert(y) for y in branches[min(max(int(index), 0), len(branches) - 1)]()]
        return self.either([branch() for branch in branches])

    def either(self, results: Sequence[Sequence[Any]]) -> list[Any]:
        """Return tensors that may be those of any of `results`."""
        return [
            self.make(_unknown(np.asarray(plain(ys[0]))), [(y, None) for y in ys if isinstance(y, Traced)])
            for ys in zip(*results, strict=True)
        ]

    def op_while_loop(self, cond: Any, body: Any, xs: Any, maximum_iterations: Any) -> Any:
        xs, steps = [self.convert(x) for x in xs], 0
        while steps != maximum_iterations:
            goes_on = cond(*xs)
            if isinstance(goes_on, Traced):
                return self.repeat(lambda *ys: (cond(*ys), body(*ys))[1], xs)
            if not goes_on:
                break
            xs, steps = [self.convert(x) for x in body(*xs)], steps + 1
        return xs

    def op_fori_loop(self, lower: Any, upper: Any, body: Any, xs: Any) -> Any:
        if isinstance(lower, Traced) or isinstance(upper, Traced):
            index = self.make(np.asarray(plain(lower)), ())
            return self.repeat(lambda *ys: body(index, *ys), xs)
        return self.backend.op_fori_loop(lower, upper, body, xs)

    def repeat(self, body: Any, xs: Sequence[Any]) -> list[Any]:
        """Return what any number of steps may make of `xs`."""
        state = self.either([xs])
        for step in range(MOST_STEPS):
            before = sum(x.sets.nnz for x in state)
            state = self.either([state, body(*state)])
            if sum(x.sets.nnz for x in state) == before and step:
                self.keep_all()  # later steps bring each of its products to any entry that this one reaches
                return state
        mixed = _rules.mix_all(self, "while_loop", state, [x.value for x in state])
        return self.either([mixed, body(*mixed)])

    def op_scan(self, f: Any, init: Any, xs: Any, length: Any, reverse: Any, unroll: Any) -> Any:
        columns, carry, rows = [self.op_unstack(x, length, 0) for x in xs], init, []
        for k in range(length)[:: -1 if reverse else 1]:
            carry, ys = f(carry, [column[k] for column in columns])
            rows.append(ys)
        if not rows:
            return self.backend.op_scan(f, init, xs, length, reverse, unroll)
        return carry, [self.op_stack(list(ys), 0) for ys in zip(*rows[:: -1 if reverse else 1], strict=True)]

    def stop_gradient(self, x: Any) -> Any:
        x = self.to_array(x)
        return self.make(x.value, ()) if isinstance(x, Traced) else np.array(x)

    def is_differentiated(self, x: Any) -> bool | None:
        return None

    def custom_call(self, call: Any, primals: list[Any]) -> list[Any]:
        """Return the outputs of a custom gradient's function, which depend on what its rule says.

        A function, or a rule, that leaves for the host or for another framework mixes all entries of its arguments.
        """
        if not _rules.operands(primals):
            return [self.convert(y) for y in call.forward(primals)[0]]
        first, self.has_rules, self.depth = len(self.steps), True, self.depth + 1
        try:
            if self.depth > MOST_RULES:  # a rule may call its own function
                raise Traced.refusal("rules within rules")
            return self.follow_rule(call, primals, first)
        except Exception:
            for step in self.steps[first:]:
                step.pairs = ()
            outputs = registry.run_on(self.backend, call.forward, plain(primals))[0]
            if (pattern := getattr(call.f, "pattern", None)) is None:
                return list(_rules.mix_all(self, "custom_gradient", primals, outputs))
            return self.follow_pattern(pattern, primals, outputs)
        finally:
            self.depth -= 1

    def follow_pattern(self, pattern: Any, primals: list[Any], outputs: list[Any]) -> list[Any]:
        """Return the outputs of a function that says which of its entries depend on which of its arguments'."""
        shape = sum(np.size(y) for y in outputs), sum(np.size(x) for x in primals)
        whole = _sets.read_pattern(pattern, shape, "foreign")
        columns = [(x, c) for x, c in zip(primals, starts(primals), strict=True) if isinstance(x, Traced)]
        return [
            self.make(y, [(x, whole[r : r + np.size(y), c : c + x.size]) for x, c in columns], curved=True)
            for y, r in zip(outputs, starts(outputs), strict=True)
        ]

    def follow_rule(self, call: Any, primals: list[Any], first: int) -> list[Any]:
        """Return the outputs of a custom gradient's function, and what its rule makes of upstream gradients."""
        from multiop._rules import closures  # here, because it imports optree

        outputs, rule = call.forward(primals)
        outputs, start = [self.convert(y) for y in outputs], self.width
        walk = closures.Walk(Traced, lambda x: True)
        walk.enter([call.f] * call.wants_variables(), False)
        if walk.tensors or len(_rules.operands(outputs)) < len(outputs):
            return list(_rules.mix_all(self, "custom_gradient", [*primals, *walk.tensors], plain(outputs)))
        for y, own in [(y, self.leaf(y)) for y in outputs]:  # one that the rule closes over has this rule
            y.sets = y.sets if any(y is x for x in primals) else _sets.union([y.sets, own.sets])
        first_up = self.width
        ups = [self.leaf(y) if self.dtype_name(y) in dtypes.INEXACT else None for y in outputs]
        grads, _ = call.backward(rule, ups, [])
        pairs = [(x, g) for x, g in zip(primals, grads, strict=True) if isinstance(x, Traced) and isinstance(g, Traced)]
        for step in self.steps[first:]:
            step.pairs = ()  # its rule says the derivative
        made, at = [], first_up
        for y, up in zip(outputs, ups, strict=True):
            end = at + (0 if up is None else up.size)
            parents = [(x, _sets.turn(narrow(grad.sets, at, end))) for x, grad in pairs]
            made.append(self.make(plain(y), parents if end > at else []))
            at = end
        of_outputs = sparse().vstack([narrow(y.sets, 0, start) for y in made])
        for x, grad in pairs:
            every, beside = np.arange(x.size), narrow(grad.sets, start, first_up) @ of_outputs
            self.add(Traced(x.value, x.sets, (), [Pairs(x.sets, narrow(grad.sets, 0, start) + beside, every, every)]))
        self.keep_all()
        return made

    def vjp(self, fun: Any, primals: Sequence[Any], persistent: bool = True) -> tuple[list[Any], Any, Any]:
        leaves, outputs, aux, start, stop, steps = self.inner(fun, primals)

        def pullback(ups: Sequence[Any]) -> list[Any]:
            given = [(y, c) for y, c in zip(outputs, ups, strict=True) if isinstance(y, Traced) and c is not None]
            live = _sets.find_live([y for y, _ in given], steps, self.live_below, [c for _, c in given])
            curved, found = self.curvature(steps, start, stop, live), []
            for x, at in zip(leaves, starts(leaves), strict=True):
                own = start + at, start + at + x.size
                parents = [(c, _sets.turn(narrow(y.sets, *own))) for y, c in given if isinstance(c, Traced)]
                found.append(self.make_alike(x, parents, [curved[at : at + x.size]]))
            self.keep_all()  # a gradient depends on what the function was made of
            return found

        return [self.outer(y, start) for y in outputs], pullback, [self.outer(y, start) for y in aux]

    def jvp(self, fun: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any], Any]:
        leaves, outputs, aux, start, stop, steps = self.inner(fun, primals)
        curved = self.curvature(steps, start, stop, _sets.find_live(_rules.operands(outputs), steps, self.live_below))
        given = [(t, start + at) for t, at in zip(tangents, starts(leaves), strict=True) if isinstance(t, Traced)]

        def push(y: Any) -> Any:
            if not isinstance(y, Traced):
                return np.zeros(y.shape, y.dtype)
            parents = [(t, narrow(y.sets, at, at + t.size)) for t, at in given]
            beside = narrow(y.sets, start, stop) @ curved
            within = beside if self.has_rules else beside.multiply(narrow(y.sets, 0, start))  # not so for a rule
            return self.make_alike(y, parents, [sparse().csr_array(within)])

        pushed = list(map(push, outputs))
        self.keep_all()
        return [self.outer(y, start) for y in outputs], pushed, [self.outer(y, start) for y in aux]

    def curvature(self, steps: Sequence[Any], start: int, stop: int, live: Any) -> Any:
        """Return what the derivative by each input from `start` to `stop` depends on among those before."""
        ends = slice(start, stop), slice(0, start)
        return sparse().csr_array(self.pairs_of(steps, *ends, live) + self.pairs_of(steps, *ends[::-1], live).T)

    def make_alike(self, x: Traced, parents: Parents, beside: Sequence[Any]) -> Traced:
        """Return a gradient or tangent of `x`, which may have any second derivative."""
        return self.make(_unknown(x.value), parents, curved=True, beside=beside)

    def inner(self, fun: Any, primals: Sequence[Any]) -> tuple[Any, ...]:
        """Run `fun` on tensors whose entries are also inputs of their own.

        Returns:
            These, the outputs, the aux, where the inputs begin and end, and the steps of the run.
        """
        start, first, leaves = self.width, len(self.steps), []
        for x in primals:
            own = self.leaf(x)
            if isinstance(x, Traced):
                own.sets = _sets.union([own.sets, x.sets])
                own.parents = [(x, None)]
            leaves.append(own)
        outputs, aux = ([self.convert(y) for y in ys] for ys in fun(*leaves))
        return leaves, outputs, aux, start, self.width, self.steps[first:]

    def outer(self, y: Any, start: int) -> Any:
        """Return an output without what it depends on within."""
        if not isinstance(y, Traced):
            return y
        made = self.make(y.value, [(y, None)])
        made.sets = widen(narrow(y.sets, 0, start), self.width)
        return made

    def pairs_of(self, steps: Sequence[Traced], left: slice, right: slice, live: Any) -> Any:
        """Return the pairs of entries of the inputs, in two ranges, with a second derivative in one of `steps`."""
        total = _sets.empty(left.stop - left.start, right.stop - right.start)
        for step in steps:
            for pairs in step.pairs if step.number in live else ():
                pairs.left, pairs.right = widen(pairs.left, self.width), widen(pairs.right, self.width)
                total = total + pairs.product(live[step.number], left, right)
        return total

    def vmap(self, fun: Any, in_axes: Sequence[int | None], axis_size: Any, is_linear: bool = False) -> Any:
        """Return `fun`, run row by row."""

        def mapped(*xs: Any) -> list[Any]:
            if not axis_size:
                raise Traced.refusal("rows of an empty axis")
            columns = [
                [x] * axis_size if axis is None else self.op_unstack(x, axis_size, axis)
                for x, axis in zip(xs, in_axes, strict=True)
            ]
            rows = [fun(*row) for row in zip(*columns, strict=True)]
            return [self.op_stack(list(ys), 0) for ys in zip(*rows, strict=True)]

        return mapped

    def jit(self, fun: Any) -> Any:
        return lambda *xs: (made := fun(*xs))[1](made[0])

    def checkpoint(self, fun: Any, primals: Sequence[Any]) -> Any:
        return [self.convert(y) for y in fun(*primals)]

    def gradients(self, *args: Any) -> Any:
        raise errors.UnsupportedError("no pattern is found through gradients() and GradientTape: use grad or vjp")

    Tape = gradients


def _unknown(x: Any) -> Any:
    """Return a value like `x` that stands for any: NaN, where there is one."""
    return np.full_like(x, np.nan) if x.dtype.kind in "fcV" else x


def _regular(x: Any) -> Any:
    """Return a traced tensor as a value that is a regular matrix, if it is square: its numbers do not matter."""
    if isinstance(x, Traced) and x.ndim > 1 and x.shape[-1] == x.shape[-2]:
        return np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
    return x
