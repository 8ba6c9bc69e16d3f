"""Write docs/scipy.md and its tables: what SciPy and scikit-learn make of a framework's tensors.

python tools/scipy_table.py            writes them; SciPy, scikit-learn and the frameworks have to be installed
python tools/scipy_table.py --check    fails if an answer has changed

Each framework is asked in a process of its own, in which `SCIPY_ARRAY_API=1`. What is not installed is left out, and
the page says so.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import numpy as np
from tables import show_table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/scipy.md"
FRAMEWORKS = {
    "torch": "PyTorch",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
    "tensorflow_numpy": "TensorFlow, `enable_tensorflow_numpy`",
}
INTRODUCTION = """<!-- made by tools/scipy_table.py, do not edit -->
# SciPy and scikit-learn with a framework's tensors

Give SciPy or scikit-learn a tensor, and you get a *tensor* of the framework, an *array* (or number) of NumPy, where a
gradient ends, or an error. Tensors and arrays have the values for NumPy's arrays, to 6 digits in `float64`; no wrong
answer was met. Where a gradient has to pass, write the function with [ops](ops.md): under SciPy's names, multiop has
{special}, and {linalg}.

"""
WAYS = """SciPy's answers need `SCIPY_ARRAY_API=1`, set before its import, and scikit-learn's
`sklearn.config_context(array_api_dispatch=True)`. After `multiop.enable_tensorflow_numpy()`, `__array_namespace__` of
TensorFlow's tensors returns [`multiop.array_api`](array_api.md): TensorFlow must be the active backend."""
X = np.linspace(0.2, 0.9, 12).reshape(3, 4)
SQUARE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
V = np.linspace(0.3, 1.7, 16)
COUNTS = np.array([1.0, 2.0, 3.0, 4.0])
OF_ONE = {  # module -> functions of one array, named with what else they take
    "special": "digamma entr erf erfc expit exp1 gammaln gamma i0 i0e i1 i1e j0 j1 log1p log_ndtr logit ndtr ndtri "
    "psi sinc expm1 logsumexp softmax log_softmax",
    "stats": "skew kurtosis gmean hmean zscore moment variation sem entropy skewtest normaltest jarque_bera circmean "
    "circstd differential_entropy describe rankdata iqr tmean tstd",
    "fft": "fft ifft rfft hfft fftn rfft2 dct dst fftshift",
    "linalg": "inv det norm expm cholesky svdvals eigvalsh pinv lu_factor",
    "ndimage": "sobel laplace uniform_filter label center_of_mass",
    "signal": "detrend hilbert argrelmax find_peaks welch",
    "integrate": "trapezoid simpson cumulative_trapezoid",
}
OF_MORE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {  # with two arrays, or an option
    "special.xlogy": (lambda f, x, y: f(x, y), (X, X + 1)),
    "special.betaln": (lambda f, x, y: f(x, y), (X, X + 1)),
    "special.rel_entr": (lambda f, x, y: f(x, y), (X, X + 1)),
    "special.gammainc": (lambda f, x, y: f(x, y), (X, X + 1)),
    "special.betainc": (lambda f, x, y, z: f(x, y, z), (X, X + 1, X)),
    "special.zeta": (lambda f, x, y: f(x, y), (X + 2, X + 1)),
    "stats.pearsonr": (lambda f, x, y: f(x, y).statistic, (V, V**2)),
    "stats.ttest_ind": (lambda f, x, y: f(x, y).statistic, (V, V**2)),
    "stats.ks_1samp": (lambda f, x: f(x, lambda q: q).statistic, (V / 2,)),
    "linalg.solve": (lambda f, x, y: f(x, y), (SQUARE, COUNTS[:3])),
    "linalg.lstsq": (lambda f, x, y: f(x, y)[0], (SQUARE, COUNTS[:3])),
    "ndimage.gaussian_filter": (lambda f, x: f(x, 1.0), (X,)),
    "ndimage.median_filter": (lambda f, x: f(x, 3), (X,)),
    "ndimage.gaussian_laplace": (lambda f, x: f(x, 1.0), (X,)),
    "ndimage.rotate": (lambda f, x: f(x, 30.0), (X,)),
    "ndimage.zoom": (lambda f, x: f(x, 2.0), (X,)),
    "signal.fftconvolve": (lambda f, x, y: f(x, y), (V, COUNTS)),
    "signal.convolve": (lambda f, x, y: f(x, y), (V, COUNTS)),
    "signal.lfilter": (lambda f, x, y: f(x, [1.0, 0.5], y), (COUNTS, V)),
    "interpolate.make_interp_spline": (lambda f, x, y: f(x, y)(x), (V, V**2)),
    "interpolate.Akima1DInterpolator": (lambda f, x, y: f(x, y)(x), (V, V**2)),
    "spatial.distance.cdist": (lambda f, x, y: f(x, y), (X, X + 1)),
    "cluster.vq.whiten": (lambda f, x: f(x), (X**2,)),
    "cluster.hierarchy.linkage": (lambda f, x: f(x), (V[:6],)),
    "optimize.elementwise.find_root": (lambda f, x: f(lambda z: z**2 - 0.5, (x, x + 1)).x, (X * 0.5,)),
}
OF_LEARN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "preprocessing.StandardScaler().fit_transform": ("preprocessing", "StandardScaler", {}),
    "preprocessing.MinMaxScaler().fit_transform": ("preprocessing", "MinMaxScaler", {}),
    "preprocessing.Normalizer().fit_transform": ("preprocessing", "Normalizer", {}),
    "preprocessing.MaxAbsScaler().fit_transform": ("preprocessing", "MaxAbsScaler", {}),
    "decomposition.PCA(2).fit_transform": ("decomposition", "PCA", {"n_components": 2}),
}


def scipy_calls() -> dict[str, Callable[[Callable[[Any], Any]], Any]]:
    """Return the calls of SciPy: each takes what makes a tensor of an array."""
    calls: dict[str, Callable[[Callable[[Any], Any]], Any]] = {}
    arrays = {"special": X, "stats": V, "fft": X, "linalg": SQUARE, "ndimage": X, "signal": V, "integrate": V}
    for module, names in OF_ONE.items():
        for name in names.split():
            calls[f"{module}.{name}"] = lambda make, m=module, n=name: _found(f"{m}.{n}")(make(arrays[m]))
    for name, (call, given) in OF_MORE.items():
        calls[name] = lambda make, n=name, c=call, g=given: c(_found(n), *map(make, g))
    return calls


def learn_calls() -> dict[str, Callable[[Callable[[Any], Any]], Any]]:
    """Return the uses of scikit-learn, with its array API dispatch on."""
    samples = np.random.default_rng(0).normal(size=(20, 4))

    def fit(make: Callable[[Any], Any], module: str, name: str, options: dict[str, Any]) -> Any:
        sklearn = importlib.import_module("sklearn")
        made = getattr(importlib.import_module(f"sklearn.{module}"), name)(**options)
        with sklearn.config_context(array_api_dispatch=True):
            return made.fit_transform(make(samples))

    def score(make: Callable[[Any], Any], name: str) -> Any:
        sklearn, metrics = importlib.import_module("sklearn"), importlib.import_module("sklearn.metrics")
        with sklearn.config_context(array_api_dispatch=True):
            return getattr(metrics, name)(make(samples[:, 0]), make(samples[:, 1]))

    calls: dict[str, Any] = {}
    for text, spec in OF_LEARN.items():
        calls[text] = lambda make, spec=spec: fit(make, *spec)
    for name in ("mean_squared_error", "r2_score"):
        calls[f"metrics.{name}"] = lambda make, n=name: score(make, n)
    return calls


def _found(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"scipy.{module}"), name)


def leaves(found: Any) -> list[Any]:
    """Return the arrays in a result: a tuple, or an object with fields."""
    if isinstance(found, (tuple, list)):
        return [leaf for entry in found for leaf in leaves(entry)]
    if isinstance(found, dict):
        return [leaf for entry in found.values() for leaf in leaves(entry)]
    return [found]


def _host(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.detach().resolve_conj().resolve_neg() if hasattr(x, "detach") else x)


def answer(call: Callable[[Callable[[Any], Any]], Any], make: Callable[[Any], Any]) -> str:
    """Return what a call gives for tensors, compared with what it gives for NumPy's arrays."""
    expected = leaves(call(lambda x: x))
    try:
        found = leaves(call(make))
    except Exception as error:
        return f"*{type(error).__name__}*"
    kind = type(make(np.ones(2))).__module__.partition(".")[0].removesuffix("lib")
    is_tensor = [type(x).__module__.partition(".")[0].removesuffix("lib") == kind for x in found if hasattr(x, "shape")]
    for x, y in zip(found, expected, strict=True):
        if not np.allclose(_host(x), _host(y), rtol=1e-6, atol=1e-8, equal_nan=True):
            return "**wrong**"
    return "tensor" if is_tensor and all(is_tensor) else "array"


def measure(framework: str) -> dict[str, dict[str, str]]:
    """Return the answers of one framework, in this process."""
    make: Any
    if framework == "torch":
        make = importlib.import_module("torch").tensor
    elif framework == "jax":
        importlib.import_module("jax").config.update("jax_enable_x64", True)
        make = importlib.import_module("jax.numpy").asarray
    else:
        make = importlib.import_module("tensorflow").convert_to_tensor
        if framework == "tensorflow_numpy":
            sys.path.insert(0, str(ROOT))
            importlib.import_module("multiop").enable_tensorflow_numpy()
    found: dict[str, dict[str, str]] = {"SciPy": {}, "scikit-learn": {}}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        calls = [("SciPy", *call) for call in scipy_calls().items()]
        if importlib.util.find_spec("sklearn") is not None:
            calls += [("scikit-learn", *call) for call in learn_calls().items()]
        for k, (library, name, call) in enumerate(calls, 1):
            print(f"{framework}, {k} of {len(calls)}: {library}, {name}", file=sys.stderr, flush=True)
            found[library][name] = answer(call, make)
    return found


def _distribution(package: str) -> str:
    """Return what is installed as a package: TensorFlow has several names."""
    found = [name for name in packages_distributions().get(package, [package]) if name.startswith(package)]
    return found[0] if found else package


def table(answers: dict[str, dict[str, dict[str, str]]], library: str, package: str) -> str:
    """Return a section, whose table is data: the functions with the same answers are in one row."""
    frameworks = [name for name in FRAMEWORKS if name in answers]
    names = list(answers[frameworks[0]][library])
    if not names:
        return f"## {library}\n\nIt was not installed where this page was made.\n\n"
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        rows.setdefault(tuple(answers[framework][library][name] for framework in frameworks), []).append(f"`{name}`")
    head = ["functions", *(f"{FRAMEWORKS[framework]}" for framework in frameworks)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    order = sorted(rows, key=lambda row: ([cell != "tensor" for cell in row], row))
    lines += [f"| {', '.join(sorted(rows[row]))} | {' | '.join(row)} |" for row in order]
    sums = [sum(answers[framework][library][name] == "tensor" for name in names) for framework in frameworks]
    lines.append(f"| right as tensors | {' | '.join(map(str, sums))} |")
    shown = show_table(library.lower().replace("-", "_"), lines)
    return "\n".join([f"## {library} {version(package)}", "", f"{len(names)} calls.", "", *shown]) + "\n\n"


def page(answers: dict[str, dict[str, dict[str, str]]]) -> str:
    """Return the page."""
    sys.path.insert(0, str(ROOT))
    ops = importlib.import_module("multiop.ops")
    special = sum(hasattr(ops, name.partition(".")[2]) for name in scipy_calls() if name.startswith("special."))
    linalg = sum(hasattr(ops, name.partition(".")[2]) for name in scipy_calls() if name.startswith("linalg."))
    n_special = sum(name.startswith("special.") for name in scipy_calls())
    n_linalg = sum(name.startswith("linalg.") for name in scipy_calls())
    text = INTRODUCTION.replace("{special}", f"{special} of {n_special} functions of `scipy.special` below")
    text = text.replace("{linalg}", f"{linalg} of {n_linalg} of `scipy.linalg`")
    versions = []
    for framework in ("torch", "jax", "tensorflow"):
        with contextlib.suppress(PackageNotFoundError):
            versions.append(f"{FRAMEWORKS[framework]} {version(_distribution(framework)).partition('+')[0]}")
    measured = f"{', '.join(versions)} and NumPy {np.__version__}"
    text += f"Measured on a CPU with {measured}, by `python tools/scipy_table.py`.\n\n{WAYS}\n\n"
    return text + table(answers, "SciPy", "scipy") + table(answers, "scikit-learn", "scikit-learn").rstrip("\n") + "\n"


def ask(framework: str) -> dict[str, dict[str, str]]:
    """Return the answers of one framework, in a process of its own."""
    command = [sys.executable, __file__, "--one", framework]
    variables = {"MULTIOP_BACKEND": "tensorflow", "SCIPY_ARRAY_API": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment = os.environ | variables | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{framework}: the process ended with {done.returncode}")
    answers: dict[str, dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def main() -> None:
    """Ask each framework in a process of its own."""
    if len(sys.argv) > 2 and sys.argv[1] == "--one":
        print(json.dumps(measure(sys.argv[2])))
        return
    answers = {}
    for framework in FRAMEWORKS:
        if importlib.util.find_spec(framework.partition("_")[0]) is None:
            print(f"{framework} is not installed: left out")
            continue
        answers[framework] = ask(framework)
    text = page(answers)
    if "--check" in sys.argv:
        if PAGE.read_text(encoding="utf-8") != text:
            raise SystemExit("docs/scipy.md is not what was measured: python tools/scipy_table.py")
    else:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
