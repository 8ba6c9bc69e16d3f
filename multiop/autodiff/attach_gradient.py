"""Attach a gradient to a value that is already computed."""

from __future__ import annotations

from typing import Any

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active
from multiop._values import args, dtypes, host
from multiop._values.types import ArrayLike, Axis, Tensor
from multiop.autodiff import _flat
from multiop.autodiff.custom_gradient import op_custom_gradient
from multiop.autodiff.stop_gradient import op_stop_gradient
from multiop.frontends.creation import op_ones_like
from multiop.frontends.elementwise import op_multiply
from multiop.frontends.shapes import op_expand_dims, op_reshape


@boundary
def op_attach_gradient(
    fx: ArrayLike,
    gx: ArrayLike,
    x: ArrayLike,
    axis: Axis = (),
    fx_gx_manually_stopped: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return `fx` with the gradient `gx` with respect to `x`.

    Use it where value and derivative come from elsewhere: a table, a simulation, a Monte Carlo estimate. The path from
    `x` to `fx` is not differentiated, and the value is exactly `fx`, even if `x * gx` would overflow.

    Args:
        fx: Value of a function `f` at `x`: tensor of real or complex floats, of the shape of `x` without `axis`; for
            `axis=None` also of the shape `(1,)`.
        gx: Gradient of `f` at `x`: tensor of the shape of `x`; of the shape of `fx`, or a scalar, where it is the same
            for all entries of `x` along `axis`.
        x: Tensor, or a list of tensors with one `gx` each.
        axis: Dimensions of `x` that `f` takes in. `()`: `f` maps scalars to scalars, entry by entry. `None`: `f` makes
            one scalar of all of `x`. An int or several: one scalar for each position in the other dimensions.
        fx_gx_manually_stopped: Whether the caller has already applied `op_stop_gradient` where it is needed. Nothing
            is then stopped here, so some part of `fx` and `gx` can stay differentiable.
        name: String; accepted for compatibility with TensorFlow, and ignored.

    Returns:
        Tensor equal to `fx`.

    Raises:
        ArgumentError: Shapes that do not fit, `axis` out of range, or lists of different lengths.
        DTypeError: `fx` or `x` is an integer, or `gx` is complex and its `x` is real.
        ArgumentTypeError: `axis` is not made of ints.

    Gradient:
        With respect to `x`, the upstream gradient times `gx`, entry by entry. `fx` and `gx` are constants, so second
        derivatives are zero, unless `fx_gx_manually_stopped`: then the gradient of `fx` is added, and second
        derivatives are those of `gx`. A complex `gx` is a gradient in the conjugate convention, as `grad` gives it.

    Example:
        >>> import multiop
        >>> float(multiop.grad(lambda x: multiop.op_attach_gradient(10.0, 7.0, x))(2.0))
        7.0
        >>> x = multiop.op_convert_to_tensor([1.0, 2.0])
        >>> g = multiop.grad(lambda x: multiop.op_attach_gradient(5.0, [3.0, 4.0], x, axis=None))(x)
        >>> multiop.op_convert_to_numpy(g).tolist()
        [3.0, 4.0]

    Source: `tf.contrib.bayesflow.custom_grad.custom_gradient` of TensorFlow 1.
    """
    backend = active()
    if name is not None and not isinstance(name, str):
        raise errors.ArgumentTypeError(f"name must be a string, got {name!r}")
    several = isinstance(x, (list, tuple))
    if several and not isinstance(gx, (list, tuple)):
        raise errors.ArgumentTypeError("x is a list, so gx must be a list with one gradient for each of x")
    xs: Any = x if several else [x]
    gxs: Any = gx if several else [gx]
    if len(xs) != len(gxs) or not xs:
        raise errors.ArgumentError(f"gx has {len(gxs)} entries for the {len(xs)} of x")
    points = [_inexact(point, _entry("x", i, several), backend) for i, point in enumerate(xs)]
    if host.is_scalar(fx) and not isinstance(fx, (bool, int)):  # a Python scalar is weak: it takes the width of x
        fx = backend.convert(fx, dtypes.result_type(dtypes.of_scalar(fx), backend.dtype_name(points[0])))
    value = _inexact(fx, "fx", backend)
    if axis is None and _flat.static_shape(value) == (1,):
        scalars = [_as_scalar(g, backend) for g in gxs]
        flat = op_attach_gradient(op_reshape(value, ()), scalars, points, None, fx_gx_manually_stopped)
        return op_reshape(flat, (1,))
    axes, slopes = [], []
    for i, (g, point) in enumerate(zip(gxs, points, strict=True)):
        taken_in = tuple(sorted(args.axes(axis, len(point.shape))))
        _check_value(value, point, taken_in, _entry("x", i, several))
        slopes.append(_slope(g, _entry("gx", i, several), point, value, taken_in, backend))
        axes.append(taken_in)
    if not fx_gx_manually_stopped:
        value, slopes = op_stop_gradient(value), op_stop_gradient(slopes)
    return _attach_slopes(value, slopes, points, axes)


@op_custom_gradient
def _attach_slopes(value: Any, slopes: list[Any], points: list[Any], axes: list[tuple[int, ...]]) -> Any:
    def grad(upstream: Any) -> Any:
        grads = [op_multiply(_expand_axes(upstream, dims), slope) for dims, slope in zip(axes, slopes, strict=True)]
        return upstream, None, grads, None

    return value, grad


def _entry(name: str, i: int, several: bool) -> str:
    return f"{name}[{i}]" if several else name


def _inexact(x: Any, name: str, backend: Any) -> Any:
    """Return `x` as a tensor, which must be real or complex."""
    try:
        x = backend.convert(x)
    except errors.MultiopError as error:
        raise type(error)(f"{name}: {error.args[0]}") from None
    if backend.dtype_name(x) not in dtypes.INEXACT:
        raise errors.DTypeError(f"{name} must be real or complex floats, got {backend.dtype_name(x)}")
    return x


def _check_value(value: Any, point: Any, axes: tuple[int, ...], name: str) -> None:
    shape = _flat.static_shape(point)
    wanted = shape and tuple(n for i, n in enumerate(shape) if i not in axes)
    if not args.fits(_flat.static_shape(value), wanted):
        raise errors.ArgumentError(
            f"fx has shape {_flat.static_shape(value)}, but a function of {name} of shape {shape} that takes in the "
            f"dimensions {axes} has a value of shape {wanted}; set axis"
        )


def _as_scalar(g: Any, backend: Any) -> Any:
    """Return `g` as a scalar if it has the shape `(1,)`."""
    if isinstance(g, (list, tuple)):
        return g[0] if len(g) == 1 and host.is_scalar(g[0]) else g
    if backend.is_tensor(g):
        return op_reshape(g, ()) if _flat.static_shape(g) == (1,) else g
    return g.reshape(()) if getattr(g, "shape", None) == (1,) else g


def _slope(g: Any, name: str, point: Any, value: Any, axes: tuple[int, ...], backend: Any) -> Any:
    """Return the gradient `g` as a tensor of the shape of `point`."""
    try:
        if not backend.is_tensor(g):
            given = backend.convert(g, backend.dtype_name(point)) if host.is_scalar(g) else backend.convert(g)
            g = backend.on_device_of(point, given)
    except errors.MultiopError as error:
        raise type(error)(f"{name}: {error.args[0]}") from None
    if _flat.is_complex(g, backend) and not _flat.is_complex(point, backend):
        raise errors.DTypeError(f"{name} is complex, but its x is real; take op_real of it")
    if backend.dtype_name(g) not in dtypes.INEXACT:
        g = backend.convert(g, backend.dtype_name(point))
    shape = _flat.static_shape(g)
    if shape is not None and len(shape) == len(point.shape) and args.fits(shape, _flat.static_shape(point)):
        return g
    if shape != () and not args.fits(shape, _flat.static_shape(value)):
        raise errors.ArgumentError(
            f"{name} has shape {shape}; it must have the shape of its x, {_flat.static_shape(point)}, that of fx, "
            f"{_flat.static_shape(value)}, or ()"
        )
    return op_multiply(_expand_axes(g, axes) if shape else g, op_ones_like(point))


def _expand_axes(x: Any, axes: tuple[int, ...]) -> Any:
    """Return `x` with dimensions of size 1 at `axes`, along which it then broadcasts."""
    for axis in axes:
        x = op_expand_dims(x, axis)
    return x
