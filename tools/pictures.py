"""Draw the pictures of docs/pictures: `python tools/pictures.py`, or with names, `python tools/pictures.py log1pexp`.

Every curve is computed, on all three frameworks where they are compared. The background is transparent and the colours
can be read on white and on black.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
if importlib.util.find_spec("torch"):
    import torch  # noqa: F401, it comes before TensorFlow in one process

import matplotlib as mpl
import numpy as np

mpl.use("svg")
import pages
from matplotlib import pyplot

import multiop
from multiop import ops

PICTURES = ROOT / "docs/pictures"
GREY = "#808080"
RED, BLUE, GREEN = "#e5484d", "#3b82f6", "#30a46c"
COLORS = {"PyTorch": RED, "JAX": BLUE, "TensorFlow": GREEN}
STYLE = {
    "svg.fonttype": "none", "font.family": "sans-serif",
    "svg.hashsalt": "multiop", "font.size": 11, "lines.linewidth": 2,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": GREY, "axes.labelcolor": GREY,
    "text.color": GREY, "xtick.color": GREY, "ytick.color": GREY, "legend.frameon": False,
    "path.simplify_threshold": 1.0,
}  # fmt: skip


def write(name: str, figure: Any) -> None:
    """Write a figure with numbers of two decimals, so that the file is small and the same each time."""
    path = PICTURES / f"{name}.svg"
    figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None})
    text = re.sub(r"(\d+\.\d\d)\d+", r"\1", path.read_text(encoding="utf-8"))
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8", newline="\n")
    print(f"wrote {path.relative_to(ROOT)}, {path.stat().st_size} bytes")


def gradients(f: Any, xs: Any) -> Any:
    """Return the gradient of `f` at each of `xs`."""
    x = ops.convert_to_tensor(xs.astype("float32"))
    return ops.convert_to_numpy(multiop.grad(lambda x: ops.sum(f(x)))(x))


def log1pexp() -> None:
    """Draw the gradient of log(1 + exp(x)), by autodiff and by the rule of the README."""
    page = page_names("tutorials/first_gradient.md", 2)
    xs = np.linspace(-10, 120, 261)
    naive, ours = gradients(page["naive"], xs), gradients(page["log1pexp"], xs)
    for backend in ("torch", "jax", "tensorflow"):  # the picture says that it is so on all three
        with multiop.use_backend(backend):
            np.testing.assert_allclose(gradients(page["naive"], xs), naive, rtol=1e-5, equal_nan=True)
    end = xs[np.isfinite(naive)].max()
    figure, axes = pyplot.subplots(figsize=(7.2, 2.6))
    axes.plot(xs, ours, color=BLUE, label="multiop, with the rule of the ten lines")
    axes.plot(xs, naive, color=RED, linewidth=5, alpha=0.55, zorder=1, label="autodiff, in all three frameworks")
    axes.plot([end], [1], "x", color=RED, markersize=9, markeredgewidth=2)
    axes.annotate("nan from here on", (end, 1), (end + 2, 0.72), color=RED)
    axes.set(xlabel="x", title="gradient of log(1 + exp(x)) in float32", yticks=[0, 0.5, 1])
    axes.legend(loc="lower right")
    write("log1pexp", figure)


def logistic() -> None:
    """Draw the gradient of the logistic loss, through the probability and by the rule of the page."""
    page = page_names("tutorials/stable_losses.md", 2)
    xs = np.linspace(-10, 30, 161)
    naive = gradients(lambda z: page["through_probability"](z, 0.0), xs)
    ours = gradients(lambda z: page["logistic_loss"](z, 0.0), xs)
    figure, axes = pyplot.subplots(figsize=(7.2, 2.6))
    axes.plot(xs, ours, color=BLUE, label="by the rule")
    shown = np.where(np.isfinite(naive) & (np.abs(naive) < 1.4), naive, np.nan)
    axes.plot(xs, shown, color=RED, linewidth=5, alpha=0.55, zorder=1, label="through the probability")
    axes.set(xlabel="logit", title="gradient of the logistic loss for label 0, float32", yticks=[0, 0.5, 1])
    axes.legend(loc="lower right")
    write("logistic", figure)


def physics() -> None:
    """Draw the loss of the tutorial's network on each framework, and its solution."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(7.2, 2.6), gridspec_kw={"wspace": 0.3})
    page = pages.DOCS / "tutorials/physics.md"
    for backend, (title, color), width in zip(("torch", "jax", "tensorflow"), COLORS.items(), (5, 3, 1), strict=True):
        with multiop.use_backend(backend):
            names = pages.run(page, backend)
            u = ops.convert_to_numpy(names["u"](names["layers"], names["t"]))
        left.semilogy(names["curve"], color=color, linewidth=width, alpha=0.8, label=title)
        right.plot(np.linspace(0, 2, 64), u, color=color, linewidth=width, alpha=0.8)
    right.plot(
        np.linspace(0, 2, 13), names["exact"](np.linspace(0, 2, 13)), "o", color=GREY, markersize=4, label="exact"
    )
    left.set(xlabel="step", title="mean square residual")
    right.set(xlabel="t", title="u(t)")
    left.legend()
    right.legend()
    write("physics", figure)


def gallery() -> None:
    """Draw what each example of examples/gallery, and optimal transport, computes."""
    sys.path.insert(0, str(ROOT / "examples/gallery"))
    ran = {name: importlib.import_module(name).run() for name in
           ("implicit", "physics", "molecule", "ode", "flow", "reaction", "bundle", "sparsemax", "quantizer",
            "densities")}  # fmt: skip
    for name, result in ran.items():
        figure, axes = pyplot.subplots(figsize=(4.8, 2.4))
        draw = globals()[f"_{name}"]
        draw(axes, result)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
        write(f"gallery_{name}", figure)
        pyplot.close(figure)
    figure, axes = pyplot.subplots(figsize=(4.8, 2.4))
    _transport(axes)
    write("gallery_transport", figure)


def _implicit(axes: Any, result: Any) -> None:
    axes.semilogy(result["errors"], color=BLUE)
    axes.set(xlabel="step", title="distance from the fixed point")


def _physics(axes: Any, result: Any) -> None:
    axes.plot(np.linspace(0, 3, 61), result["u"], color=BLUE)
    axes.set(xlabel="t", title="the angle that the network learned")


def _molecule(axes: Any, result: Any) -> None:
    axes.plot(result["lengths"], result["energies"], color=BLUE, label="energy")
    axes.plot(result["lengths"], np.array(result["forces"]) / 10, color=RED, label="force / 10")
    axes.set(xlabel="length of a bond of water in angstrom", title="kcal/mol")


def _ode(axes: Any, result: Any) -> None:
    axes.plot(result["prey"], color=BLUE, label="prey")
    axes.plot(result["predators"], color=RED, label="predators")
    axes.set(xlabel="step", title="the path with the rates that were found")


def _flow(axes: Any, result: Any) -> None:
    at = np.linspace(-2, 2, 40)
    axes.contour(at, at, np.exp(result["grid"]), levels=8, colors=BLUE, linewidths=1)
    from flow import crescents

    axes.plot(*crescents()[::3].T, ".", color=GREY, markersize=2)
    axes.set(title="samples, and the density that was learned")


def _reaction(axes: Any, result: Any) -> None:
    axes.imshow(result["state"], cmap="Blues")
    axes.set(title="the second chemical after ten steps", xticks=[], yticks=[])


def _bundle(axes: Any, result: Any) -> None:
    import bundle

    slope = multiop.sparse_jacobian(*bundle.problem(5, 12))
    image = np.where(slope.pattern.toarray(), slope.colors + 1.0, np.nan)
    axes.imshow(image, cmap="tab10", aspect="auto", interpolation="nearest")
    axes.set(xlabel="parameters of 5 cameras and 12 points", ylabel="residuals")
    axes.set(title=f"{slope.nnz} entries, {slope.n_products} products")


def _sparsemax(axes: Any, result: Any) -> None:
    axes.plot(result["x"], result["softmax"], color=GREY, label="softmax")
    axes.plot(result["x"], result["sparsemax"], color=BLUE, label="sparsemax")
    axes.plot(result["x"], result["gradient"], color=RED, label="gradient of the loss")
    axes.set(xlabel="a score, the other is 0")


def _quantizer(axes: Any, result: Any) -> None:
    axes.plot(result["weights"], result["levels"], "o", color=BLUE)
    axes.set(xlabel="weight", title="its level", yticks=sorted({round(level, 2) for level in result["levels"]}))


def _densities(axes: Any, result: Any) -> None:
    from densities import normal_log_density, samples, student_log_density

    x = np.linspace(-1, 10, 200).astype("float32")
    axes.hist(samples(), 44, density=True, color=GREY, alpha=0.4)
    for label, color, f in (("student", BLUE, student_log_density), ("normal", RED, normal_log_density)):
        fit = f(ops.convert_to_tensor(x), *map(np.float32, result[label]))
        axes.plot(x, np.exp(ops.convert_to_numpy(fit)), color=color, label=f"fit of {label}")


def _transport(axes: Any) -> None:
    spec = importlib.util.spec_from_file_location("transport", ROOT / "examples/transport/transport.py")
    transport = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(transport)  # type: ignore[union-attr]
    rng = np.random.default_rng(0)
    x = ops.convert_to_tensor(rng.normal(size=(30, 2)) * 0.3, "float32")
    angle = np.linspace(0, 2 * np.pi, 30)
    y = ops.convert_to_tensor(np.stack([np.cos(angle), np.sin(angle)], 1), "float32")
    path, slope = [x], multiop.jit(multiop.grad(lambda x: transport.distance(x, y, 0.05)))
    for _ in range(30):
        path.append(path[-1] - 3.0 * slope(path[-1]))
    lines = np.stack([ops.convert_to_numpy(x) for x in path])
    axes.plot(*np.moveaxis(lines[::3], -1, 0), color=GREY, linewidth=0.7)
    axes.plot(*lines[-1].T, "o", color=BLUE, markersize=4)
    axes.set(title="points that follow the gradient to a circle", aspect="equal")


def performance() -> None:
    """Draw the means of benchmarks/measured.md: single ops beside Keras's, the suites, and long sequences."""
    text = (ROOT / "benchmarks/measured.md").read_text(encoding="utf-8")
    suites = table(text, "| suite | backend | rows | targets met")
    single = {row[1]: (float(row[4]), float(row[6])) for row in suites if row[0] == "single ops"}
    figure, axes = pyplot.subplots(figsize=(7.2, 1.8))
    for n, (label, color) in enumerate((("multiop", BLUE), ("keras.ops", GREY))):
        bars(axes, n, 2, label, color, [pair[n] for pair in single.values()])
    axes.set(title="single ops on 8 to 64 numbers, eager: time / native time", yticks=range(3), yticklabels=single)
    finish("performance_ops", figure, axes)

    names = [name for name in dict.fromkeys(row[0] for row in suites) if name not in ("importing", "scale")]
    figure, axes = pyplot.subplots(figsize=(7.2, 3.6))
    for n, (backend, color) in enumerate(COLORS.items()):
        means = {row[0]: float(row[4]) for row in suites if row[1] == backend}
        bars(axes, n, 3, backend, color, [means.get(name, np.nan) for name in names])
    axes.set(title="geometric mean of each suite: time / native time", yticks=range(len(names)), yticklabels=names)
    finish("performance_suites", figure, axes)

    ways, *rows = table(text, "|  | float32, eager", heading=True)
    figure, axes = pyplot.subplots(figsize=(7.2, 2.4))
    for n, (backend, color) in enumerate(COLORS.items()):
        (cells,) = (row[1:] for row in rows if row[0] == backend)
        bars(axes, n, 3, backend, color, [float(cell.split()[0]) for cell in cells])
    title = "a step of a transformer block, 1024 tokens: time / native time"
    axes.set(title=title, yticks=range(4), yticklabels=ways[1:])
    finish("performance_long", figure, axes)


def table(text: str, head: str, heading: bool = False) -> list[list[str]]:
    """Return the rows of the first table of a page whose heading begins with `head`."""
    lines = text[text.index(head) :].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [row for row in rows[not heading :] if set("".join(row)) != {"-"}]


def bars(axes: Any, n: int, of: int, label: str, color: str, values: list[float]) -> None:
    """Draw the bars of group member `n` of `of`, with their lengths as text."""
    height = 0.8 / of
    drawn = axes.barh(np.arange(len(values)) + (n - (of - 1) / 2) * height, values, height, color=color, label=label)
    texts = ["" if np.isnan(value) else f"{value:.2f}" for value in values]
    axes.bar_label(drawn, texts, padding=3, fontsize=8, color=GREY)


def finish(name: str, figure: Any, axes: Any) -> None:
    """Mark where native code is, put the first group on top, and write the figure."""
    axes.axvline(1, color=GREY, linewidth=1)
    axes.invert_yaxis()
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    write(name, figure)
    pyplot.close(figure)


def page_names(page: str, n: int) -> dict[str, Any]:
    """Return the names that the first blocks of a page define, without what they print."""
    names: dict[str, Any] = {"print": lambda *_: None}
    for block in pages.blocks((pages.DOCS / page).read_text(encoding="utf-8"))[:n]:
        exec(block.source, names)
    return names


def main() -> None:
    """Draw the pictures that are named, or all."""
    PICTURES.mkdir(exist_ok=True)
    drawn = (log1pexp, logistic, physics, gallery, performance)
    known = {draw.__name__: draw for draw in drawn}
    for name in sys.argv[1:] or known:
        with pyplot.rc_context(STYLE):
            known[name]()


if __name__ == "__main__":
    main()
