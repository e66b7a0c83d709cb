"""How far two pictures differ to the eye: a moved line shows, another machine's anti-aliasing does not."""

import base64
import io
import re

import nbformat
import numpy as np
from PIL import Image

SIDE = 120
"""Pictures are compared at this width, where one point is some ten of theirs."""
NOTICEABLE = 0.2
"""A point of the small picture that is lighter or darker by so much of the whole range is seen to differ."""


TIMED = re.compile(r"\b(best_times|perf_counter)\(")
"""A cell that draws what a stopwatch said draws something else each time; test_pictures.py counts these."""


def pictures(notebook: nbformat.NotebookNode) -> list[str]:
    """The pictures of a notebook in order, as base64, but for those of times."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and not TIMED.search(cell.source)]
    outputs = [output for cell in cells for output in cell.outputs]
    return [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]


def difference(one: str, other: str) -> float:
    """The largest difference of two pictures at any small point and in any colour, between 0 and 1."""
    first, second = (Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB") for png in (one, other))
    if abs(first.width - second.width) > 2 or abs(first.height - second.height) > 2:
        return 1.0
    size = (SIDE, max(1, round(SIDE * first.height / first.width)))
    small = [np.asarray(picture.resize(size, Image.Resampling.BOX), dtype=float) / 255 for picture in (first, second)]
    return float(np.abs(small[0] - small[1]).max())
