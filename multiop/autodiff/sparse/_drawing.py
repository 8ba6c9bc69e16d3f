"""Pictures of a pattern: in characters for a terminal, and in SVG, with its colours, for a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np

WIDTH, HEIGHT = 48, 24  # characters, two of whose dots stand above each other
PIXELS = 64  # cells of a picture along its longer side, at most
PALETTE = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#000000")


def _bin_entries(pattern: Any, height: int, width: int) -> tuple[Any, Any]:
    """Return the row and column, among so many, of each entry."""
    scale = min(1.0, height / pattern.shape[0], width / pattern.shape[1])
    rows, columns = ((numbers * scale).astype(int) for numbers in pattern.tocoo().coords)
    return rows, columns


def draw_text(pattern: Any) -> str:
    """Return a pattern as lines of half blocks, a dot for each cell with an entry."""
    rows, columns = _bin_entries(pattern, 2 * HEIGHT, WIDTH)
    dots = np.zeros((rows.max(initial=0) // 2 * 2 + 2, columns.max(initial=0) + 1), bool)
    dots[rows, columns] = True
    return "\n".join(
        "".join(" ▀▄█"[a + 2 * b] for a, b in zip(*pair, strict=True)).rstrip()
        for pair in dots.reshape(-1, 2, dots.shape[1])
    )


def draw_html(title: str, pattern: Any, colors: Any) -> str:
    """Return a pattern as a picture, each cell in the colour of the product that gives its last entry."""
    import html

    rows, columns = _bin_entries(pattern, PIXELS, PIXELS)
    cells = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), colors.tolist(), strict=True))
    height, width = rows.max(initial=0) + 1, columns.max(initial=0) + 1
    drawn = "".join(
        f'<rect x="{j}" y="{i}" width="1" height="1" fill="{PALETTE[color % len(PALETTE)]}"/>'
        for (i, j), color in cells.items()
    )
    return (
        f'<div><code>{html.escape(title)}</code><br><svg width="{320 * width / max(height, width):.0f}" '
        f'viewBox="0 0 {width} {height}" style="border:1px solid #888">{drawn}</svg></div>'
    )
