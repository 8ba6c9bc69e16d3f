"""Find the functions of a user's file that can be checked, and the inputs to check them with."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from multiop import extend, op_custom_gradient

from ._case import Call
from ._raised import UsageError
from ._samplers import normal
from ._start import add_import_folder

F = TypeVar("F", bound=Callable[..., Any])

_ATTRIBUTE = "multiop_inputs"
HOW = "give some with multiop.testing.example_inputs"
_MARK = re.compile(r"\bcheck: differs\b[,:;]?([^\n\"']*)")
_DRAWN_ANNOTATION = re.compile(r"(\w+\.)*(Tensor|Array|ArrayLike|ndarray|float|Any)(\[.*\])?")


@dataclasses.dataclass(frozen=True)
class Found:
    """A function to check.

    Attributes:
        name: Its name in the module.
        function: The function.
        calls: The inputs to check it with.
        custom: Whether `op_custom_gradient` gave it its gradient.
        differs: Why its gradient is not its derivative, as its mark says; `None` without a mark.
    """

    name: str
    function: Callable[..., Any]
    calls: tuple[Call, ...]
    custom: bool
    differs: str | None


def example_inputs(*args: Any, **kwargs: Any) -> Callable[[F], F]:
    """Set the inputs with which `multiop check` runs a function; stack it for several.

    Args:
        *args: The positional arguments: samplers from `multiop.testing`, NumPy arrays (floats are cast to the dtype
            under test), and anything else as it is; pytrees of these.
        **kwargs: The keyword arguments, likewise.

    Returns:
        A decorator that returns its function unchanged except for an attribute.

    Example:
        >>> import multiop
        >>> from multiop.testing import example_inputs, positive
        >>> @example_inputs(positive(3), positive(2, 3))
        ... def ratio(x, y):
        ...     return x / y
    """

    def mark(function: F) -> F:
        setattr(function, _ATTRIBUTE, (Call(args, kwargs), *getattr(function, _ATTRIBUTE, ())))
        return function

    return mark


def load(target: str) -> ModuleType:
    """Import a file, or a module by its dotted name, and return the module."""
    if not target.endswith(".py"):
        add_import_folder(str(Path.cwd()))
        return importlib.import_module(target)
    path = Path(target).resolve()
    folder, name = path.parent, path.stem
    if name == "__init__":  # the package itself
        folder, name = folder.parent, folder.name
    while (folder / "__init__.py").exists():  # import a file as a part of its package, for relative imports
        name, folder = f"{folder.name}.{name}", folder.parent
    add_import_folder(str(folder))
    if folder != path.parent:
        module = importlib.import_module(name)
        if (found := getattr(module, "__file__", None)) is None or Path(found).resolve() != path:
            raise UsageError(f"another module is called {name}, that of {found}")
        return module
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)  # dataclasses and pickle look the module up by name
    spec.loader.exec_module(module)
    return module


def functions(module: ModuleType, name: str | None) -> tuple[list[Found], list[str], list[str]]:
    """Return the functions to check in `module`, the names of those without known inputs, and of those without a mark.

    Without a `name`, these are the public functions with `example_inputs` or `op_custom_gradient`; if there are none,
    every public function that the module defines and whose required parameters can be drawn.
    """
    defined = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, FunctionType | extend.Transformed)
        and getattr(value, "__module__", None) == module.__name__
        and not key.startswith("_")
    }
    if name is not None:
        function = getattr(module, name, None)
        if not callable(function):
            raise UsageError(f"there is no function {name!r}; there {_list_names(list(defined))}")
        calls = calls_of(function)
        if calls is None:
            raise UsageError(f"no inputs can be drawn for {name}; {HOW}")
        return [Found(name, function, calls, is_custom(function), reason_to_differ(function))], [], []
    marked = {key: value for key, value in defined.items() if hasattr(value, _ATTRIBUTE) or is_custom(value)}
    found, left_out = [], []
    for key, function in (marked or defined).items():
        calls = calls_of(function)
        if calls is None:
            left_out.append(key)
        else:
            found.append(Found(key, function, calls, is_custom(function), reason_to_differ(function)))
    others = {key: function for key, function in defined.items() if marked and key not in marked}
    return found, left_out, [key for key, function in others.items() if calls_of(function) is not None]


def calls_of(function: Callable[..., Any]) -> tuple[Call, ...] | None:
    """Return the inputs to check `function` with; `None` if they are not given and cannot be drawn.

    By default each required parameter is a vector of three normally distributed floats; a parameter with a default
    keeps it.
    """
    if given := getattr(function, _ATTRIBUTE, None):
        return tuple(given)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not required or not all(_can_be_drawn(p.annotation) for p in required):
        return None
    keyword_only = {p.name: normal(3) for p in required if p.kind is p.KEYWORD_ONLY}
    return (Call(tuple(normal(3) for p in required if p.kind is not p.KEYWORD_ONLY), keyword_only),)


def is_custom(function: Any) -> bool:
    """Say whether `op_custom_gradient` made `function`."""
    return isinstance(function, extend.Transformed) and function.is_made_by(op_custom_gradient)


def reason_to_differ(function: Any) -> str | None:
    """Return what a function says behind its mark `check: differs`, in a comment or its docstring."""
    try:
        marked = _MARK.search(inspect.getsource(inspect.unwrap(function)))
    except (OSError, TypeError):  # typed into a shell, or written in C
        return None
    return marked and marked.group(1).strip()


def _can_be_drawn(annotation: Any) -> bool:
    if annotation is inspect.Parameter.empty:
        return True
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return _DRAWN_ANNOTATION.fullmatch(text.strip()) is not None


def _list_names(names: list[str]) -> str:
    return "are: " + ", ".join(names) if names else "is none at all"
