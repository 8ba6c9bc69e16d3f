"""Write docs/divergences.md: where the frameworks disagree, what each answers, and what multiop answers on all of them.

python tools/divergences.py            writes the page; all three frameworks have to be installed
python tools/divergences.py --check    fails if an answer has changed
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "tests/tables")]
if importlib.util.find_spec("torch"):
    import torch  # noqa: F401, it comes before TensorFlow in one process

import numpy as np
from divergence_rows import DIVERGENCES, TOPICS, Divergence, agrees, answer_text

import multiop
from multiop.testing._results import version

PAGE = ROOT / "docs/divergences.md"
BACKENDS = {"torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}
INTRODUCTION = """<!-- made by tools/divergences.py, do not edit -->
# Where the frameworks disagree

PyTorch, JAX and TensorFlow answer the same question differently at kinks, ties, NaN and the edges of a dtype, each from
the code you see below. multiop gives the same answer on all backends, and the tests hold it:

| where | multiop answers |
|---|---|
| values | NumPy's, or SciPy's |
| a kink, at finite operands | the subgradient of least norm |
| a bound of a clip | the gradient passes |
| a tie | split evenly |
| NaN | propagates in the value; the gradient there is not pinned |
| infinities | values are NumPy's; gradients are pinned where a mask of -inf meets them |
| digits | all of them; of activations, normalizations, losses and pooling, those of the framework's kernel |
| dtypes | one promotion table, JAX's |

You find here the differences people meet most often; in the reference, each op shows all its pinned answers. See also
[what is left to a framework](limits.md#what-is-left-to-the-framework), and [how Keras differs](keras.md).

In the code, `grad(f, *xs)` is the gradient of the sum of `f` at `xs`, by the framework's own reverse mode. An answer in
**bold** is not multiop's. A name such as *RuntimeError* is an exception.
"""


PRICES = """
## What an answer costs

Most answers are free: the framework's own kernel gives them, or another as fast. On PyTorch, these are not: the bytes
an op and its gradient move, as a multiple of those of PyTorch's own function, and the kernels of both, in `bfloat16`,
counted by `python tests/tables/counted.py` on the `meta` device. Other ops of training move the same bytes.

| op | bytes | kernels | because |
|---|---|---|---|"""
ELSEWHERE = """
## In other libraries

What readers may bring along from elsewhere, measured with the versions that are named:

| | answer | multiop |
|---|---|---|
| gradient of `maximum(1, 1)`, MLX 0.32.4 | 0, 1 | 0.5, 0.5 |
| gradient of the maximum of [2, 2, 1], MLX 0.32.4 | 0.5, 0.5, 0 | 0.5, 0.5, 0 |
| gradient of `maximum(1, 1)`, pytensor 3.0.7 | 1, 0 | 0.5, 0.5 |
| gradient of the maximum of [1, 1, 0], pytensor 3.0.7 | 1, 1, 0 | 0.5, 0.5, 0 |
| `std` of [1, 2, 4], autoray 0.11.0 and einx 0.4.3 on NumPy and JAX | 1.2472 | 1.2472 |
| `std` of [1, 2, 4], autoray 0.11.0 and einx 0.4.3 on PyTorch | 1.5275 | 1.2472 |"""
SPELLED = {"maximum_of_number": "op_maximum(x, 0.5)"}


def answers(one: Divergence) -> dict[str, str]:
    """Return each framework's answer, and multiop's under "multiop", which has to be the pinned one on each backend."""
    found = {}
    for backend in ("numpy", *BACKENDS):
        with multiop.use_backend(backend):
            ours = one.found()
            if not agrees(ours, one.answer):
                raise SystemExit(f"{one.title}: {answer_text(ours)} on {backend}, {one.answer} is pinned")
            arrays = [np.asarray(multiop.op_convert_to_numpy(x)) for x in (ours if isinstance(ours, list) else [ours])]
        if backend in BACKENDS:
            found[backend] = one.native(backend)
    return {"multiop": answer_text(arrays if isinstance(ours, list) else arrays[0])} | found


def is_same(answer: str, ours: str) -> bool:
    """Say whether two answers, as text, are the same numbers."""
    number = r"[-+]?(?:nan|inf|\d+\.?\d*(?:e[-+]?\d+)?)"
    one, other = (
        [float(x) for x in re.findall(number, text.lower().replace("true", "1").replace("false", "0"))]
        for text in (answer, ours)
    )
    return len(one) == len(other) > 0 and bool(np.allclose(one, other, rtol=1e-3, atol=0, equal_nan=True))


def cell(answer: str, ours: str) -> str:
    """Return a framework's answer as it stands in a table."""
    if answer.isidentifier() and answer not in ("nan", "inf", "None", "True", "False"):
        return f"**{answer}**"
    return f"`{answer}`" if is_same(answer, ours) else f"**`{answer}`**"


def anchor(title: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def page() -> str:
    """Return the text of the page."""
    found = {one.title: answers(one) for one in DIVERGENCES}
    versions = ", ".join(f"{title} {version(name).partition('+')[0]}" for name, title in BACKENDS.items())
    lines = [INTRODUCTION, f"Measured on a CPU with {versions}, 64-bit mode off, by `python tools/divergences.py`."]
    for topic, heading in TOPICS.items():
        chosen = [one for one in DIVERGENCES if one.topic == topic]
        lines += ["", f"## {heading}", "", "| | multiop | PyTorch | JAX | TensorFlow |", "|---|---|---|---|---|"]
        for one in chosen:
            ours, *natives = found[one.title].values()
            cells = [f"[{one.title}](#{anchor(one.title)})", f"`{ours}`", *(cell(x, ours) for x in natives)]
            lines.append(f"| {' | '.join(cells)} |")
        for one in chosen:
            codes = [one.ours, *(getattr(one, backend) for backend in BACKENDS)]
            answered = zip(codes, ("multiop", *BACKENDS.values()), found[one.title].values(), strict=True)
            lines += ["", f"### {one.title}", "", one.why, "", "```python"]
            lines += [*(f"{spelled(code)}  # {title}: {answer}" for code, title, answer in answered), "```"]
    return "\n".join([*lines, *ELSEWHERE.splitlines(), *prices()]) + "\n"


def prices() -> Iterator[str]:
    """Yield the section about the answers that are not PyTorch's own, and what they cost there."""
    counted = importlib.import_module("counted")
    yield from PRICES.splitlines()
    for name, ours, native, xs in counted.rows(counted.torch.bfloat16):
        if name in counted.DEARER:
            mine, theirs = counted.count(ours, xs), counted.count(native, xs)
            numbers = f"{mine.bytes / theirs.bytes:.2f} | {mine.kernels} / {theirs.kernels}"
            yield f"| `{SPELLED.get(name, f'op_{name}')}` | {numbers} | {counted.DEARER[name][2]} |"


def spelled(code: str) -> str:
    """Return an expression as a reader would write it."""
    return code.replace("mo.", "multiop.")


def main() -> None:
    """Write the page, or check it."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        raise SystemExit("docs/divergences.md is not current: run python tools/divergences.py")


if __name__ == "__main__":
    main()
