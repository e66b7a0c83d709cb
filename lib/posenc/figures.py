"""The look of the book's figures, and the few plots that more than one chapter draws.

One palette with fixed meanings, safe for colour blindness (Okabe and Ito for the roles inside attention,
Paul Tol's "muted" for encodings and cells), one width, no titles: captions stand under the figures.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

WIDTH = 6.4
"""Width of every figure, in inches."""

ROLES = {"query": "#0072B2", "key": "#D55E00", "value": "#009E73", "position": "#A4508B"}
"""Colours of the parts of attention."""

MODELS = {
    "none": "#777777",
    "sinusoidal": "#332288",
    "learned": "#999933",
    "rotary": "#117733",
    "alibi": "#CC6677",
    "relative": "#882255",
    "causal": "#44AA99",
    "elman": "#DDCC77",
    "lstm": "#AA4499",
    "gru": "#88CCEE",
}
"""Colours of encodings and recurrent cells, the same through the whole book."""

CEILING = {"color": "#222222", "linestyle": (0, (4, 3)), "linewidth": 1.2}
"""How an exact ceiling is drawn."""

SEQUENTIAL, DIVERGING = "cividis", "RdBu_r"
"""Colour maps: amounts from zero up, and signed values around zero."""

_STYLE = {
    "figure.dpi": 200,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "axes.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "image.cmap": SEQUENTIAL,
    "image.interpolation": "nearest",
}


def use_house_style() -> None:
    """Set matplotlib's defaults to the look of the book, for the rest of the session."""
    plt.rcParams.update(_STYLE)


def new_figure(rows: int = 1, columns: int = 1, height: float = 2.8, **kwargs) -> tuple[Figure, np.ndarray | Axes]:
    """A figure as wide as every other in the book.

    Parameters
    ----------
    rows, columns : int
        Grid of axes.
    height : float
        Inches.
    **kwargs
        Passed on to ``plt.subplots``.

    Returns
    -------
    figure, axes
        As from ``plt.subplots``.
    """
    return plt.subplots(rows, columns, figsize=(WIDTH, height), **kwargs)


def draw_weights(
    ax: Axes,
    weights,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str] | None = None,
    numbers: bool = True,
    largest: float = 1.0,
) -> None:
    """Draw one attention map: queries down, keys across, darker for more weight.

    Parameters
    ----------
    ax : Axes
    weights : array or Tensor, shape (T, S)
    query_tokens : sequence of T str
    key_tokens : sequence of S str, optional
        The query tokens, if not given.
    numbers : bool
        Write each weight into its cell.
    largest : float
        The value at the dark end of the scale; the same for maps that are to be compared.

    Raises
    ------
    ValueError
        If the tokens do not number (T, S).
    """
    weights = np.asarray(weights.detach().cpu().double() if isinstance(weights, Tensor) else weights)
    key_tokens = query_tokens if key_tokens is None else key_tokens
    if weights.shape != (len(query_tokens), len(key_tokens)):
        raise ValueError(
            f"weights {weights.shape} do not fit {len(query_tokens)} queries and {len(key_tokens)} keys"
        )
    ax.imshow(weights, cmap="Blues", vmin=0.0, vmax=largest, aspect="auto")
    ax.set_xticks(range(len(key_tokens)), key_tokens)
    ax.set_yticks(range(len(query_tokens)), query_tokens)
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if numbers:
        for (row, column), weight in np.ndenumerate(weights):
            ink = "white" if weight > 0.55 * largest else "black"
            ax.text(column, row, f"{weight:.2f}", ha="center", va="center", fontsize=8, color=ink)
