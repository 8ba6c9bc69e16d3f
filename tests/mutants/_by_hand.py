"""Faults planted by hand: where a framework differs from the pinned answer, and ways to lose a rule."""

from __future__ import annotations

import ast

from _fault import ROOT, Fault

# (file of this name below multiop/backends or multiop/autodiff, class of fault, old text, new text); the old text occurs once
TORCH = [
    ("elementwise", "wrong sign", "return torch.where(x < 0, functional.elu(x), torch.expm1(x))",
     "return torch.where(x < 0, -functional.elu(x), torch.expm1(x))"),
    ("elementwise", "NaN swallowed", "return torch.sign(x).add_(torch.clamp(x.detach(), 0, 0)) if x.is_floating_point() else torch.sign(x)",
     "return torch.sign(x)"),
    ("elementwise", "tie to one side", "@directly(torch.maximum, FLOATING)\n",
     "@directly(lambda x1, x2: torch.where(x1 >= x2, x1, x2), FLOATING)\n"),
    ("elementwise", "keyword ignored", "return in_float32(lambda x: round_decimals(x, decimals), x) if decimals else torch.round(x)",
     "return torch.round(x)"),
    ("elementwise", "wrong at second order",
     "upstream * cbrt_slope(x) / (-1.5 * x),", "upstream * cbrt_slope(x) / (-1.0 * x),"),
    ("reduction", "tie to one side", "x = in_comparable_dtype(lambda x: reduce(x, dims, keepdims), x)",
     "x = in_comparable_dtype(lambda x: (x.max(dims[0], keepdims).values if reduce is torch.amax else x.min(dims[0], keepdims).values)"
     " if len(dims) == 1 else reduce(x, dims, keepdims), x)"),
    ("reduction", "off-by-one axis", "dims = sorted(args.axes(axis, x.ndim), reverse=True)",
     "dims = sorted(args.axes(axis, x.ndim))"),
    ("reduction", "wrong dtype", "torch.sum(x, dims, keepdims, dtype=dtype)", "torch.sum(x, dims, keepdims)"),
    ("reduction", "keyword ignored", "return torch.var(x, dims, correction=0, keepdim=keepdims)",
     "return torch.var(x, dims, keepdim=keepdims)"),
    ("indexing", "ignored when compiled",
     "    return torch.remainder(indices, max(size, 1)), outside",
     "    return torch.where(outside, 0, indices.clamp(min=0)), outside"),
    ("segment", "broadcast not summed back",
     "share = share.type(x.dtype)[ids]", "share = torch.ones_like(x)"),
    ("normalization", "dropped term", "x = centred * torch.rsqrt(", "x = x * torch.rsqrt("),
    ("losses", "wrong at a kink", "top + torch.log(torch.where(nothing, 1, total))", "top + torch.log(total)"),
    ("linalg", "wrong for complex", "return strict + strict.mH + torch", "return strict + strict.mT + torch"),
    ("attention", "keyword ignored", "logits = logits if cap is None else cap * torch.tanh(logits / cap)",
     "logits = logits if cap is None else torch.tanh(logits / cap)"),
    ("signal", "wrong sign", "return y if dtype is None else (y.real.type(dtype), y.imag.type(dtype))",
     "return y if dtype is None else (y.real.to(dtype), -y.imag.to(dtype))"),
    ("pooling", "off-by-one axis", "y = y if y.shape[dim] == number else y.narrow(dim, start, number)",
     "y = y if y.shape[dim] == number else y.narrow(dim, 0, number)"),
    ("custom_gradient", "rule ignored in forward mode",
     "            found = _linear.transpose(rule, plan.call.rule_name, zeros, tangents[: plan.outputs_from])",
     "            found = [0 * z for z in zeros]"),
    ("custom_gradient", "rule ignored under vmap",
     "        grads = ctx.plan.grads(ctx.saved_tensors, upstreams)\n",
     "        grads = ctx.plan.grads(ctx.saved_tensors, [u * 0 if functorch.is_batchedtensor(u) else u for u in upstreams])\n"),
    ("custom_gradient", "rule ignored when compiled", "    return list(_Traced.apply(backward, outputs, *aliases))",
     "    return call.forward(aliases)[0]"),
    ("custom_gradient", "wrong at second order",
     "            grads, variable_grads = backward(box[0], upstreams, list(saved[ctx.n_residuals :]))\n",
     "            with torch.no_grad():\n"
     "                grads, variable_grads = backward(box[0], upstreams, list(saved[ctx.n_residuals :]))\n"),
    ("transforms", "wrong at second order", "retain_graph, create_graph, tuple(leaves))",
     "retain_graph, False, tuple(leaves))"),
    ("transforms", "residual freed",
     "retain_graph = persistent or linked", "retain_graph = linked"),
    ("tape", "swapped condition", "create_graph = torch.is_grad_enabled() and (", "create_graph = False and ("),
]  # fmt: skip
JAX = [
    ("elementwise", "tie to one side", "jnp.where(x1 == x2, 0.5 * tangent, jnp", "jnp.where(x1 == x2, tangent, jnp"),
    ("elementwise", "NaN swallowed", "x = jnp.where((x >= x_min) | (x != x), x, x_min)", "x = jnp.where(x >= x_min, x, x_min)"),
    ("elementwise", "wrong sign", "for side in (x, -y))", "for side in (x, y))"),
    ("elementwise", "wrong at a kink", "return absolute(x) if", "return jnp.abs(x) if"),
    ("reduction", "wrong dtype", "return native(x, axis, keepdims=keepdims).astype(np.int32)",
     "return native(x, axis, keepdims=keepdims).astype(np.uint32)"),
    ("reduction", "infinity to NaN", "shift = jnp.where(jnp.isfinite(top), top, 0)", "shift = top"),
    ("activations", "tie to one side", "_relu = jit_inline(lambda x: jnp.where(x <= 0, 0, x))",
     "_relu = jit_inline(lambda x: jnp.maximum(x, 0))"),
    ("activations", "dropped term", "    return x - jnp.tanh(x)", "    return x - jax.lax.stop_gradient(jnp.tanh(x))"),
    ("indexing", "off-by-one axis", "return jnp.where(indices < 0, indices + size, indices), outside, jnp.any(outside)",
     "return jnp.where(indices < 0, indices + size - 1, indices), outside, jnp.any(outside)"),
    ("indexing", "keyword ignored", 'if reduction == "add" and rows.dtype != bool:', 'if reduction in ("add", "mul") and rows.dtype != bool:'),
    ("segment", "tie to one side", "chosen = jnp.isnan(x) | (x == y[ids])", "chosen = x == y[ids]"),
    ("losses", "wrong constant", "EPSILON = 1e-7", "EPSILON = 1e-6"),
    ("_user_rule", "wrong for complex", "upstreams = [conjugate(next(cotangents)) if given else None for given in inexact]",
     "upstreams = [next(cotangents) if given else None for given in inexact]"),
    ("_primitives", "broadcast not summed back",
     "return [g.sum(0) if mapped and not slot else g for g, mapped, slot in grads]",
     "return [g[0] if mapped and not slot else g for g, mapped, slot in grads]"),
    ("_primitives", "wrong under vmap", "return [g if g is None or d == 0 else g.sum(0) for g, d in zip(grads, axes[n:], strict=True)]",
     "return [g if g is None or d == 0 else g[0] for g, d in zip(grads, axes[n:], strict=True)]"),
    ("_primitives", "wrong at second order",
     "out_tangents = [internals.add_tangents(a, b) for a, b in zip(out_tangents, found, strict=True)]", "out_tangents = list(found)"),
    ("_primitives", "rule ignored when compiled", "    return _stage(call, primals)\n\n\ndef _mode", "    return call.forward(primals)[0]\n\n\ndef _mode"),
    ("_primitives", "gradient dropped in silence", "        if any(suspects) and any(internals", "        if False and any(internals"),
    ("_tape", "residual freed", "            if operation.outs[i] not in wanted:\n                del cotangents",
     "            if True:\n                del cotangents"),
    ("_tape", "wrong for complex", "return [None if g is None else conjugate(g) for g in grads]", "return list(grads)"),
    ("_linearity", "rule not linear is let through", "    if name in _ADDED and CONSTANT in given[_ADDED[name]]:", "    if False:"),
    ("transforms", "wrong for complex", "return jnp.zeros_like(y) if u is None else conjugate(u)", "return jnp.zeros_like(y) if u is None else u"),
    ("transforms", "keyword ignored", "(structure, where, repr(options), config.floatx())", "(structure, where, config.floatx())"),
]  # fmt: skip
TENSORFLOW = [
    ("elementwise", "tie to one side", "choose(tf.equal(x1, x2), tf.constant(0.5, x1.dtype) * upstream, upstream)",
     "upstream"),
    ("elementwise", "NaN swallowed", "return with_nan(y, lambda: tf.math.is_nan(x2))", "return y"),
    ("elementwise", "wrong sign", "rest - x2, rest)", "rest + x2, rest)"),
    ("elementwise", "wrong at a kink", "upstream = choose(flat, tf.zeros_like(upstream), upstream)",
     "upstream = choose(flat, tf.ones_like(upstream), upstream)"),
    ("reduction", "wrong at a kink", "tf.sqrt(choose(constant, tf.ones_like(variance), variance))", "tf.sqrt(variance)"),
    ("elementwise", "dropped term", "quotient - 1, quotient))", "quotient, quotient))"),
    ("reduction", "keyword ignored", "return tf.expand_dims(found, axis) if keepdims else found", "return found"),
    ("reduction", "NaN swallowed", "found = choose(tf.raw_ops.Any(input=nan, axis=axis), first, found)", "found = found"),
    ("conversion", "wrong dtype", "return tf.cast(x, _ACCUMULATED[x.dtype]) if x.dtype in _ACCUMULATED else x", "return x"),
    ("reduction", "off by one", "lambda x: tf.shape(x)[0] > 1, lambda x: [multiply_halves(x)]", "lambda x: tf.shape(x)[0] > 2, lambda x: [multiply_halves(x)]"),
    ("custom_gradient", "rule ignored in forward mode", "    _internals.record_forward(name, results, inputs, transpose)\n", ""),
    ("custom_gradient", "gradient dropped in silence", "    if outside and any(_internals.is_watched(x) for x in [*outside, *closed_over]):",
     "    if False:"),
    ("custom_gradient", "rule ignored under vmap", "        results[0].op.pfor_converter = lambda loop: _vectorize_rule(name, rule, n, is_rule, loop)\n", ""),
    ("custom_gradient", "gradient dropped in silence", "            return [None] * n + _across_graphs(name, rule, densify(upstreams[:n]), inputs, n_guards)",
     "            return [None] * n + rule(*densify(upstreams[:n])) + [None] * n_guards"),
    ("custom_gradient", "wrong at second order", "            return rule(*upstreams) + [tf.zeros_like(x) for x in inputs[len(inputs) - n_guards :]]",
     "            with _internals.stop_recording():\n                return rule(*upstreams) + [tf.zeros_like(x) for x in inputs[len(inputs) - n_guards :]]"),
    ("transforms", "off-by-one axis", "return tf.transpose(x, [axis, *(i for i in range(x.shape.rank) if i != axis)])",
     "return tf.transpose(x, [axis, *(i for i in reversed(range(x.shape.rank)) if i != axis)])"),
    ("transforms", "broadcast not summed back", "return [tf.zeros_like(x) if grad is None else grad for grad, x in zip(found, sources, strict=True)]",
     "return [tf.zeros_like(x) if grad is None else grad * 2 for grad, x in zip(found, sources, strict=True)]"),
    ("tape", "dropped gradient", "    return [tf.convert_to_tensor(grad) if isinstance(grad, tf.IndexedSlices) else grad for grad in found]", "    return list(found)"),
    ("_linear", "rule not linear is let through", '            if state == "fixed":\n                return', '            if False:\n                return'),
]  # fmt: skip
AUTODIFF = [
    ("attach_gradient", "wrong at second order", "value, slopes = op_stop_gradient(value), op_stop_gradient(slopes)", "value = op_stop_gradient(value)"),
    ("attach_gradient", "keyword ignored", "    if not fx_gx_manually_stopped:\n", "    if True:\n"),
    ("attach_gradient", "dropped term", "        return upstream, None, grads, None\n", "        return None, None, grads, None\n"),
    ("custom_gradient", "residual kept", "        del call.primals  #", "        #"),
    ("custom_gradient", "wrong dtype", "        return self.backend.convert(grad, dtype)\n", "        return grad\n"),
    ("custom_gradient", "check left out", "        if not _args.fits(found_shape, shape):", "        if False:"),
    ("custom_gradient", "check left out", "        if grad is None or dtype not in dtypes.INEXACT:\n            return None", "        if grad is None:\n            return None"),
    ("custom_gradient", "keyword ignored", "            if name not in left and name in self.defaults:", "            if False:"),
    ("custom_gradient", "swapped arguments", "        choices = (every, numeric, dynamic, differentiable)", "        choices = (differentiable, dynamic, numeric, every)"),
    ("custom_gradient", "keyword ignored", '    keras = rest and any(p.name == "upstream" for p in parameters)', "    keras = False"),
    ("gradients", "keyword ignored", "stops = _tensors(stop_gradients, \"stop_gradients\", backend)", "stops = []"),
    ("gradients", "dropped term", 'weights.append(_flat.convert_like(weight, y, backend, f"gradients: grad_ys[{k}]"))', "weights.append(op_ones_like(y))"),
    ("gradients", "keyword ignored", '    if unconnected_gradients == "zero":', "    if False:"),
    ("tape", "dropped term", "upstreams.append(op_ones_like(y) if g is None else _flat.convert_like(g, y, self._backend, what))", "upstreams.append(op_ones_like(y))"),
    ("tape", "off-by-one axis", "return op_reshape(op_transpose(row, (1, 0, *range(2, len(row.shape)))), result_shape)", "return op_reshape(row, result_shape)"),
    ("tape", "keyword ignored", "        if not self._persistent:\n            self.watched_variables()\n            self._tape = None", "        pass"),
    ("tape", "residual kept", "            self.watched_variables()\n            self._tape = None", "            self.watched_variables()"),
]  # fmt: skip

# name without its line -> why no test can detect it
EQUIVALENT: dict[str, str] = {
    "porting/taps.own:x.numel() < 1 << 24 -> (x.numel()) <= (1 << 24)": "a bound on what is kept, of which one is as good",
    "porting/_port._example_values:math.prod(np.shape(x)) <= _FEW -> (math.prod(np.shape(x))) < (_FEW)": "a bound on what "
    "is kept, of which one is as good",
    "torch/_compiler.refuse_break:11 -> 12": "a version that is not the installed one: nox -s versions",
    "jax/_recording.Recording:(False,) * len(args) -> ((False,))": "JAX donates no argument that is not in the list",
    "random/_gamma._digamma:x < 10.0 -> (x) <= (10.0)": "at 10 either way has the digits",
    "frontends/products.op_vander:columns - 1 -> (columns)": "a column more is cut off before the powers",
    'numpy/products.contiguous:np.asarray(u, order="C") -> np.asarray(u)': "the layout of an array is no matter to its "
    "products, only to their time",
    "tensorflow/reduction.product: lambda x: tf.shape(x)[0] > 1, lambda x: [multiply_halves(x)]": "the two that stay over are "
    "multiplied by tf.reduce_prod, as those of an empty dimension are",
    "tensorflow/linalg.op_qr:rows < columns -> (rows) <= (columns)": "a square matrix is right in either branch",
    "tensorflow/elementwise.op_trunc:x < 0 -> (x) <= (0)": "at 0 the ceiling is the floor",
    "jax/bitwise.op_bitwise_xor:promote(x, y) -> promote(y, x)": "the operands may change places",
    "torch/elementwise.op_minimum:promote(x1, x2) -> promote(x2, x1)": "the operands may change places",
    "autodiff/custom_gradient.CustomCall: choices = (every, numeric, dynamic, differentiable)": "each is a part of the one "
    "before, so that two of one length are the same",
    "jax/bitwise.op_lcm:promote(x1, x2) -> promote(x2, x1)": "the operands may change places",
    "torch/bitwise.op_lcm:divisible(x1, x2) -> divisible(x2, x1)": "the operands may change places",
    "torch/segment.op_segment_prod:True -> False": "the factors of a product may change places",
    "jax/random.kept:6 -> 7": "at most 32 bits are counted, so that either shift gives 0",
    "tensorflow/pooling.is_finite:x.dtype == tf.float16 -> (x.dtype) != (tf.float16)": "where the sum overflows, the slower "
    "way gives the same answer",
    "tensorflow/gradients._is_nothing:8 -> 9": "a bound on a rounding error, which is smaller than either",
    "tensorflow/special.op_erf:30 -> 31": "erf is 1 from 6 on, and TensorFlow's kernel fails only beyond 1e100",
    "torch/elementwise.arcsinh:1 -> 2": "what is given to the logarithm, or to asinh, is not chosen there",
    "jax/special.i1_jvp:1 -> 2": "what is divided by near 0 is not chosen there",
    "jax/segment._share: chosen = jnp.isnan(x) | (x == y[ids])": "what an entry that is NaN gets is not pinned",
    "jax/logical.op_equal:alike(x1, x2) -> alike(x2, x1)": "the operands may change places",
    "autodiff/_transformed.Transformed:functools.update_wrapper(self, fun, upda...RAPPER_UPDATES) -> "
    "functools.update_wrapper(self, fun)": "it is for the tracer of PyTorch before 2.12",
    "frontends/creation._number_dtype:1 -> 2": "an int of Python has one dtype, whatever its value",
    "random/_keys._of_process:4 -> 5": "a seed of 40 bits that nobody knows serves as one of 32 does",
    "numpy/linalg.diagonal:np.eye(x.shape[-1], dtype=bool) -> np.eye(x.shape[-1])": "a condition is made bool",
    "random/_multinomial._share:1.0 -> 1.5": "what is divided by it is 0, as a part of a whole that is 0",
    'random/_discrete._as_word:_philox.word() != "int64" -> (_philox.word()) == ("int64")': "the difference of two "
    "bounds is the same word in uint32 as in int64",
    'frontends/indexing._place_value:op_arange(op_size(x), dtype="int64") -> op_arange(op_size(x))': "only 2**31 "
    "entries, more than a test makes, need int64",
    "frontends/special._cos_and_sin_of_turns:1.0 -> 1.5": "what is subtracted where the angle is low is not chosen there",
    "frontends/special._cos_and_sin_of_turns:size < 0.8 -> (size) <= (0.8)": "at 0.8 both formulas are right",
    "frontends/special._cos_and_sin_of_turns:op_multiply(sign, cosine) -> op_multiply(cosine, sign)": "the factors may "
    "change places",
    "frontends/shapes.op_hstack:-1 -> (1)": "a tensor of no dimension has one entry",
    "porting/written._diagonal_shape:offset >= 0 -> (offset) > (0)": "the diagonal at 0 is counted alike from either side",
    'porting/exchange.share:x.device.endswith("CPU:0") -> not (x.device.endswith("CPU:0"))': "tf.identity of a "
    "tensor on the CPU is the same memory; a machine with an accelerator would see it",
    "jax/_recorded.keys_of:0 -> 1": "a key is the address of an object or below 0: 1 is none, and is looked up in vain",
}


def faults_by_hand() -> list[Fault]:
    """Return the faults of the tables; each old text must occur once in its file."""
    found, stale = [], []
    for group, table in (("torch", TORCH), ("jax", JAX), ("tensorflow", TENSORFLOW), ("autodiff", AUTODIFF)):
        folder = "multiop/autodiff" if group == "autodiff" else f"multiop/backends/{group}"
        for file, kind, old, new in table:
            places = {place: place.read_text() for place in (ROOT / folder).rglob(f"{file}.py")}
            counts = {place: source.count(old) for place, source in places.items()}
            if sum(counts.values()) != 1:
                stale.append(f"{group}/{file}.py: {old!r} stands there {sum(counts.values())} times")
                continue
            place = max(counts, key=lambda place: counts[place])
            path, source = place.relative_to(ROOT).as_posix(), places[place]
            line = source.count("\n", 0, source.index(old) + len(old) - len(old.lstrip())) + 1
            owners = [node for node in ast.parse(source).body if _first_line(node) <= line <= node.end_lineno]
            changed = source.replace(old, new)
            ast.parse(changed)
            function = getattr(owners[0], "name", "") or getattr(owners[0].targets[0], "id", "")
            shown = " ".join(old.split())[:70]
            found.append(
                Fault(f"{group}/{file}.{function}: {shown}@{line}", group, path, function, kind, True, changed)
            )
    if stale:
        raise ValueError("faults that have to be planted elsewhere:\n" + "\n".join(stale))
    return found


def _first_line(node: ast.stmt) -> int:
    """Return where a statement begins, its decorators included."""
    return min([node.lineno, *[decorator.lineno for decorator in getattr(node, "decorator_list", [])]])
