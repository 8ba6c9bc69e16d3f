"""Write what follows from the list of ops: `multiop`, `multiop.ops` with its namespaces, what a backend has.

The list is the source itself. An op is a function `op_*` of `multiop/frontends`: primitive where it calls the active
backend's function of its name, composite where it does not. What the source does not say stands in the tables below.

    python tools/op_list.py            writes the files, as `nox -s generate` does
    python tools/op_list.py --check    names those that are not current
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import itertools
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEADER = "made by tools/op_list.py: run `nox -s generate`, do not edit"

# the namespaces of `keras.ops`
NAMESPACES = {
    "image": "Ops on images without their prefix, as in `keras.ops.image`: `ops.image.resize(x, (32, 32))`.",
    "linalg": "Linear algebra without prefix, as in `keras.ops.linalg`: `ops.linalg.det(x)`.",
    "nn": "Ops of neural networks without prefix, as in `keras.ops.nn`: `ops.nn.softmax(x)`.",
    "numpy": "Array ops without prefix, as in `keras.ops.numpy`: `ops.numpy.add(x, y)`.",
}

# a file of frontends -> the namespace of its ops, if Keras has them in one
NAMESPACE_OF_FILE = {
    "activations": "nn",
    "attention": "nn",
    "bitwise": "numpy",
    "control_flow": None,
    "conversion": None,
    "convolution": "nn",
    "creation": "numpy",
    "linalg": "linalg",
    "elementwise": "numpy",
    "images": "image",
    "indexing": None,
    "logical": "numpy",
    "losses": "nn",
    "normalization": "nn",
    "polynomials": "numpy",
    "pooling": "nn",
    "products": "numpy",
    "rearrange": None,
    "reduction": "numpy",
    "samples": "numpy",
    "segment": None,
    "shapes": "numpy",
    "signal": None,
    "sorting": "numpy",
    "spacing": "numpy",
    "special": None,
    "statistics": "numpy",
    "windows": "numpy",
}

# the ops that are in another namespace than the rest of their file, or in none
EXCEPTIONS = {
    "numpy": "array get_item i0 select slogdet take take_along_axis unravel_index vectorize view",
    "nn": "moments multi_hot one_hot polar",
    None: "cdist in_top_k logdet logsumexp rsqrt top_k unstack",
}

# names in `multiop.ops.image` that are more than the op's without `image_`
IMAGE_NAMES = {"op_image_crop": "crop_images", "op_image_pad": "pad_images"}

# what `multiop` has beside ops: module -> names
OTHERS = {
    "multiop": "errors ops random tree",
    "multiop._values.types": "ArrayLike DType PyTree Tensor",
    "multiop.autodiff.checkpoint": "checkpoint",
    "multiop.autodiff.gradients": "AggregationMethod gradients",
    "multiop.autodiff.implicit": "linear_solve root",
    "multiop.autodiff.jit": "jit",
    "multiop.autodiff.sparse.derivatives": "SparseDerivative sparse_hessian sparse_jacobian",
    "multiop.autodiff.tape": "GradientTape UnconnectedGradients",
    "multiop.autodiff.transforms": "grad hessian hvp jacfwd jacobian jacrev jvp linearize value_and_grad vjp",
    "multiop.autodiff.vmap": "vmap",
    "multiop.config": (
        "available_backends backend enable_narrowing enable_tensorflow_numpy enable_x64 floatx narrowing set_backend "
        "set_floatx use_backend x64"
    ),
    "multiop.devices": "device to_device",
    "multiop.dtypes": "dtype_name finfo iinfo native_dtype",
    "multiop.namespaces": "namespace",
    "multiop.operation": "Operation",
    "multiop.scopes": "name_scope",
}

# modules that `multiop` imports when they are asked for
LAZY = ("array_api",)
DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
]

# what `multiop.ops` has beside ops, because Keras's own code takes it from there: module -> names
IN_OPS = ("multiop.operation", "multiop.scopes")


@dataclasses.dataclass(frozen=True)
class Op:
    """An op, as its source has it."""

    name: str
    module: str
    signature: str
    summary: str
    is_primitive: bool
    namespace: str | None

    @property
    def file(self) -> str:
        """The name of its file, in the frontends and in each backend."""
        return self.module.rpartition(".")[2]

    @property
    def bare(self) -> str:
        """Its name in `multiop.ops`."""
        return self.name.removeprefix("op_")


@functools.cache
def ops() -> list[Op]:
    """Return every op, file by file, in the order of the source."""
    files = sorted(path for path in (ROOT / "multiop/frontends").glob("[a-z]*.py"))
    if unknown := {path.stem for path in files} ^ set(NAMESPACE_OF_FILE):
        raise SystemExit(f"NAMESPACE_OF_FILE of {__file__}: not as multiop/frontends is: {', '.join(sorted(unknown))}")
    elsewhere = {f"op_{name}": space for space, names in EXCEPTIONS.items() for name in names.split()}
    found = []
    for path in [*files, *sorted((ROOT / "multiop/autodiff").glob("[a-z]*.py"))]:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for function in functions(path):
            space = elsewhere.pop(function.name, NAMESPACE_OF_FILE.get(path.stem))
            summary = (ast.get_docstring(function) or "").partition("\n")[0]
            found.append(Op(function.name, module, signature(function), summary, is_primitive(function), space))
    names = [op.name for op in found]
    if wrong := [*elsewhere, *{name for name in names if names.count(name) > 1}]:
        raise SystemExit(f"these ops are defined twice, or in no file: {', '.join(wrong)}")
    return found


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    """Return the ops that a file defines."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("op_") and not is_overload(node):
            yield node


def is_overload(function: ast.FunctionDef) -> bool:
    """Say whether a function is one of the signatures of another, which follows."""
    return any(getattr(decorator, "id", None) == "overload" for decorator in function.decorator_list)


def is_primitive(function: ast.FunctionDef) -> bool:
    """Say whether an op calls the function of its name of the active backend."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == function.name
        and ast.unparse(node.value) in ("active()", "backend")
        for node in ast.walk(function)
    )


def passed_on(function: ast.FunctionDef) -> tuple[str, str] | None:
    """Return what an op passes on to the active backend's function of its name, if that is all it does in usual cases.

    An argument may be checked on the way, by what `CHECKS` names. The first item of the result is the condition under
    which the op does something else, in an `if` that it begins with; it is empty where there is none.
    """
    body = function.body[1:] if ast.get_docstring(function) else function.body
    *before, last = body
    call = last.value if isinstance(last, ast.Return) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != f"active().{function.name}":
        return None
    guard = before[0].test if len(before) == 1 and isinstance(before[0], ast.If) else None
    if before and (guard is None or before[0].orelse or not isinstance(before[0].body[-1], (ast.Return, ast.Raise))):
        return None
    known = {*CHECKS, *dir(builtins), "active", *(x.arg for x in ast.walk(function.args) if isinstance(x, ast.arg))}
    parts = [call] if guard is None else [guard, call]
    if not known.issuperset(node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)):
        return None
    arguments = ", ".join(map(ast.unparse, [*call.args, *call.keywords])).replace("active()", ACTIVE)
    return "" if guard is None else ast.unparse(guard), arguments


CHECKS = ("args", "config", "dtypes", "windows")  # modules that the boundaries import, too


def passed(arguments: ast.arguments) -> str:
    """Return the arguments of a call that passes on what a function was given."""
    given = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    given += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    given += [f"{argument.arg}={argument.arg}" for argument in arguments.kwonlyargs]
    given += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return ", ".join(given)


def named(arguments: ast.arguments) -> str:
    """Return a dict of what a function was given, by name."""
    parameters = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs]
    given = [f'"{parameter.arg}": {parameter.arg}' for parameter in parameters if parameter]
    given += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return f"{{{', '.join(given)}}}"


def signature(function: ast.FunctionDef) -> str:
    """Return the parameters of a function without their types."""
    return f"({ast.unparse(without_types(function.args))})"


def without_types(arguments: ast.arguments) -> ast.arguments:
    """Remove the types of parameters."""
    for node in ast.walk(arguments):
        if isinstance(node, ast.arg):
            node.annotation = None
    return arguments


def without_defaults(arguments: ast.arguments) -> ast.arguments:
    """Remove the defaults of parameters."""
    arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    return arguments


BACKENDS = ("numpy", "torch", "jax", "tensorflow")


def method(name: str, parameters: list[str]) -> str:
    """Return a method of a protocol, broken into lines as ruff breaks it."""
    line = f"    def {name}({', '.join(parameters)}) -> Any: ..."
    if len(line) <= 120:
        return line
    inner = f"        {', '.join(parameters)}"
    if len(inner) > 120:
        inner = "\n".join(f"        {parameter}," for parameter in parameters)
    return f"    def {name}(\n{inner}\n    ) -> Any: ..."


def place(file: str) -> str:
    """Return where a backend has the ops of a file of the frontends, as a module below its package."""
    return file if file == "conversion" else f"ops.{file}"


def parameters(op: Op) -> list[str]:
    """Return the names of the parameters of a primitive, which are the same in every backend."""
    for backend in BACKENDS:
        path = ROOT / f"multiop/backends/{backend}/{place(op.file).replace('.', '/')}.py"
        for function in functions(path) if path.exists() else ():
            if function.name == op.name:
                names = [argument.arg for argument in function.args.args]
                return [f"{name}_" if hasattr(builtins, name) else name for name in names]
    raise SystemExit(f"{op.name}: no backend defines it")


def primitives() -> str:
    """Return the file of the primitives that a backend has."""
    lines = [
        '"""The primitive ops of a backend. The op of the same name in `multiop/frontends` says what each means."""',
        "",
        f"# {HEADER}",
        "",
        "from __future__ import annotations",
        "",
        "from typing import Any, Protocol",
        "",
        "",
        "class Primitives(Protocol):",
        '    """One function per primitive op. Arguments come by position, all of them."""',
        "",
    ]
    for file, found in itertools.groupby((op for op in ops() if op.is_primitive), key=lambda op: op.file):
        lines += [f"    # multiop/backends/*/{place(file).replace('.', '/')}.py", ""]
        lines += [method(op.name, ["self", *(f"{name}: Any" for name in parameters(op)), "/"]) for op in found]
        lines.append("")
    lines.pop()
    return "\n".join(lines) + "\n"


BOUNDARIES = '''# {header}
# ruff: noqa
# fmt: off
# mypy: ignore-errors
"""The functions through which ops are called: what fails within one is recovered, or explained, see `_call/recover`."""

from multiop import config
from multiop._call.frames import shorten
from multiop._call.recover import recover
from multiop._loading import registry
from multiop._values import args, dtypes, windows
from multiop._values.args import bool_flag
from multiop.errors import MultiopError

active = registry.active

COMPOSITES = frozenset(
    """
{composites}
    """.split()
)
GUARDED = {{{guarded}}}
'''

ACTIVE = "(active() if registry.is_overridden else registry._backend)"  # a call less for the usual case

BOUNDARY = """
def {name}(op):
 def {name}({parameters}):
  try:{checks} return {called}({passed})
  except {caught} as error: return recover(error, op, {named}{flag}){passes}
 return {name}, {decorators}
"""


def checks(arguments: ast.arguments, guard: str) -> str:
    """Return the lines that refuse what is no bool for a parameter that is one, which takes 10 ns, and the guard."""
    names = [
        p.arg for p in (*arguments.args, *arguments.kwonlyargs) if p.annotation and ast.unparse(p.annotation) == "bool"
    ]
    lines = [f'   if {x} is not False and {x} is not True: {x} = bool_flag({x}, "{x}")\n' for x in names]
    lines += [f"   if {guard}: return op({passed(arguments)})\n"] if guard else []
    return "\n" + "".join(lines) + "  " if lines else ""


def boundaries() -> str:
    """Return the file of the functions through which ops are called, each with the parameters of its op."""
    made: dict[str, str] = {}
    composites, guarded = [], []
    for path in sorted((ROOT / "multiop").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for function in ast.parse(text).body if "\n@boundary\n" in text else ():
            if isinstance(function, ast.FunctionDef) and "boundary" in map(ast.unparse, function.decorator_list):
                # a user's function that is called may raise what it likes
                runs_user_code = "Callable" in ast.unparse(function.args)
                is_composite = path.parent.name == "frontends" and not (runs_user_code or is_primitive(function))
                composites += [function.name] * is_composite
                if function.name in made:
                    raise SystemExit(f"{path}: another {function.name} has a boundary: one name has one")
                guard, found = ("", passed(function.args)) if is_composite else passed_on(function) or ("", None)
                guarded += [function.name] * bool(guard)
                made[function.name] = BOUNDARY.format(
                    name=function.name,
                    checks=checks(function.args, guard),  # before the types are removed
                    parameters=ast.unparse(without_defaults(without_types(function.args))),
                    called="op" if found is None else f"{ACTIVE}.{function.name}",
                    passed=passed(function.args) if found is None else found,
                    caught="MultiopError" if runs_user_code else "Exception",
                    named=named(function.args),
                    flag=", True" if runs_user_code else "",
                    passes="\n  except Exception as error: shorten(error); raise" if runs_user_code else "",
                    decorators=len(function.decorator_list),
                )
    names = textwrap.fill(" ".join(composites), 118, initial_indent="    ", subsequent_indent="    ")
    quoted = ", ".join(f'"{name}"' for name in guarded)
    return BOUNDARIES.format(header=HEADER, composites=names, guarded=quoted) + "".join(made.values())


def files() -> dict[Path, str]:
    """Return the text of every file that is made here."""
    spaces = {ROOT / f"multiop/ops/{name}.py": namespace(name) for name in NAMESPACES}
    return {
        ROOT / "multiop/_call/boundaries.py": boundaries(),
        ROOT / "multiop/_loading/primitives.py": primitives(),
        ROOT / "multiop/__init__.py": face(),
        ROOT / "multiop/ops/__init__.py": without_prefix(),
        **spaces,
    }


DOC = """Write an operation and its gradient once; run it on TensorFlow, PyTorch, JAX and NumPy.

    >>> import multiop
    >>> @multiop.op_custom_gradient
    ... def log1pexp(x):
    ...     e = multiop.op_exp(x)
    ...     return multiop.op_log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))
    >>> float(multiop.grad(log1pexp)(100.0))
    1.0

Where to look, with `help`:

- `multiop.op_max`, or `multiop.ops.max`: an op; `multiop.ops` has them all, with the names of `keras.ops`
- `multiop.op_custom_gradient`: a function with a gradient of its own
- `multiop.grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `hvp`, `vmap`, `jit`, `checkpoint`: JAX's transforms
- `multiop.sparse_jacobian`, `sparse_hessian`: derivatives most of whose entries are zero
- `multiop.GradientTape`, `multiop.gradients`: TensorFlow's way
- `multiop.random`: random numbers, the same on every backend
- `multiop.tree`: pytrees, and classes of your own that are some
- `multiop.testing.check_op`: the proof that a function is right on every backend
- `multiop.porting`: models and weights from one framework to another
- `multiop.set_backend`, `use_backend`: which framework computes; without them, the one that the program imported
- `multiop.namespace`: the ops of the framework that a tensor is of
"""


def face() -> str:
    """Return the source of `multiop`."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    exports = [(op.module, op.name, op.name) for op in ops()]
    exports += [(module, name, name) for module, names in OTHERS.items() for name in names.split()]
    return source(DOC, exports, "multiop", version)


def without_prefix() -> str:
    """Return the source of `multiop.ops`."""
    exports = [(op.module, op.name, op.bare) for op in ops()]
    exports += [("multiop.ops", name, name) for name in NAMESPACES]
    exports += [(module, name, name) for module in IN_OPS for name in OTHERS[module].split()]
    return source("Every op without its prefix: `from multiop import ops; ops.add(x, y)`.", exports, "multiop.ops")


def namespace(space: str) -> str:
    """Return the source of a namespace of `multiop.ops`."""
    found = [op for op in ops() if op.namespace == space]
    exports = [
        (op.module, op.name, IMAGE_NAMES.get(op.name, op.bare.removeprefix("image_") if space == "image" else op.bare))
        for op in found
    ]
    return source(NAMESPACES[space], exports, f"multiop.ops.{space}")


FACE = """
__all__ = [
{names}
]
{typed}
if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name
{published}
    def __dir__() -> list[str]:
        return {dir}

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing
{lazy}
        raise missing(__name__, name, __all__)
"""

TYPED = """
if _typing.TYPE_CHECKING:
    from multiop._values.types import DType as _DType

{dtypes}
"""

DTYPE = """
        if name in _DTYPES:
            return _dtype_object(name)
"""

ON_DEMAND = """
        if name == "{name}":
            import multiop.{name}

            return multiop.{name}
"""


def source(doc: str, exports: list[tuple[str, str, str]], module: str, version: str = "") -> str:
    """Return the source of a module that has nothing but names of others: of (module, name, name here).

    They are imported, by which an editor finds their docstrings, and are listed, by which they are public to a checker.
    """
    lines = [f"# {HEADER}", "# ruff: noqa: I001", "# fmt: off", f'"""{doc}"""', "", "import typing as _typing", ""]
    dtypes = DTYPES if module == "multiop.ops" else []  # objects of the active backend's framework
    imported = list(exports)
    if is_asked := module in ("multiop", "multiop.ops"):  # about names that are missing elsewhere
        imported.append(("multiop._loading.suggestions", "PUBLIC", "_PUBLIC"))
    if dtypes:
        imported += [("multiop._values.dtypes", "ALL", "_DTYPES"), ("multiop.dtypes", "dtype_object", "_dtype_object")]
    for origin in sorted({origin for origin, _, _ in imported}):
        names = {name: here for one, name, here in imported if one == origin}
        lines += [f"from {origin} import (", packed(f"{name} as {names[name]}" for name in ordered(names)), ")"]
    if version:
        lines += ["", f'__version__ = "{version}"']
    return (
        "\n".join(lines)
        + "\n"
        + FACE.format(
            names=packed(f'"{here}"' for here in ordered(here for _, _, here in exports)),
            published="    _PUBLIC[__name__] = __all__\n" * is_asked,
            dir='[*__all__, "__version__"]' if version else "__all__",
            typed=TYPED.format(dtypes="\n".join(f"    {name}: _DType" for name in dtypes)) if dtypes else "",
            lazy="".join(ON_DEMAND.format(name=name) for name in LAZY) if version else DTYPE * bool(dtypes),
        )
    )


def packed(names: Iterable[str]) -> str:
    """Return names in as few lines as hold them, each name whole."""
    words = " ".join(f"{name},".replace(" ", "\0") for name in names)
    return textwrap.fill(words, 120, initial_indent="    ", subsequent_indent="    ").replace("\0", " ")


def ordered(names: Iterable[str]) -> list[str]:
    """Sort names as ruff does: classes first, and log2 before log10."""
    parts = {name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)] for name in names}
    return sorted(parts, key=lambda name: (not name[0].isupper(), parts[name]))


def table() -> str:
    """Return the list of ops for people, which docs/conf.py puts at the end of docs/ops.md when it builds the site."""
    frontends = [op for op in ops() if op.module.startswith("multiop.frontends.")]
    rest = [f"`{op.name}`" for op in ops() if op not in frontends]
    primitives = sum(op.is_primitive for op in frontends)
    lines = [
        "## All ops, by domain",
        "",
        f"{len(frontends)} ops: {primitives} primitives, which every backend defines, and {len(frontends) - primitives}"
        " composites, which are written with other ops.",
        "Each is also in `multiop.ops` without `op_`, and in the namespace that is named: `multiop.op_relu` is"
        " `multiop.ops.relu` and `multiop.ops.nn.relu`.",
        f"The other ops, {', '.join(rest)}, are on the page [Gradients and transforms](reference/autodiff.rst).",
    ]
    for file in NAMESPACE_OF_FILE:
        path = f"multiop/frontends/{file}.py"
        doc = ast.get_docstring(ast.parse((ROOT / path).read_text(encoding="utf-8"))) or ""
        links = [f"[{path}](../{path})"]
        specification = f"multiop/backends/numpy/{place(file).replace('.', '/')}.py"
        if (ROOT / specification).exists():
            links.append(f"what the primitives mean, in NumPy: [{specification}](../{specification})")
        lines += ["", f"### {doc.partition(chr(10))[0].removesuffix('.')}", "", "; ".join(links), ""]
        lines += ["| op | what it does | written as | namespace |", "|---|---|---|---|"]
        for op in frontends:
            if op.module.endswith(f".{file}"):
                kind = "primitive" if op.is_primitive else "composite"
                cells = [f"`{op.name}{op.signature}`", op.summary, kind, op.namespace or "–"]
                lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def changed() -> dict[str, str]:
    """Return the texts of the files that are not as they would be written, by name."""
    return {
        path.relative_to(ROOT).as_posix(): text
        for path, text in files().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }


def main() -> None:
    """Write the files, or check them."""
    texts = changed()
    if "--check" in sys.argv[1:] and texts:
        raise SystemExit(f"not current: {', '.join(texts)}; run: nox -s generate")
    for name, text in texts.items():
        (ROOT / name).write_text(text, encoding="utf-8", newline="\n")
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
