"""The look of the book's figures, and the few plots that more than one chapter draws.

One palette with fixed meanings, safe for colour blindness (Okabe and Ito for the roles inside attention,
Paul Tol's "muted" for encodings and cells), one width, no titles: captions stand under the figures.
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

if TYPE_CHECKING:
    from posenc.experiments import Results

WIDTH = 6.4
"""Width of every figure, in inches."""

ROLES = {
    "query": "#0072B2",
    "key": "#D55E00",
    "value": "#009E73",
    "position": "#A4508B",
}
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

NAMES = {
    "none": "no positions",
    "causal": "causal mask alone",
    "alibi": "ALiBi",
    "elman": "Elman",
    "lstm": "LSTM",
    "gru": "GRU",
}
"""What a figure calls a model, if not by its name in `MODELS`."""

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


def draw_map(ax: Axes, results: "Results", groups: Sequence[int] = (2, 2, 3, 3)) -> None:
    """Draw a table of results: models down, tasks across, darker the nearer a mean score is to the best.

    White is what can be had without order, see `posenc.experiments.Results.shares`. A cell holds the mean over
    seeds and, where seeds differ, the smallest and the largest score. The order-blind ceilings stand below.

    Parameters
    ----------
    ax : Axes
    results : Results
        As from `posenc.experiments.load`.
    groups : sequence of int
        How many rows stand together before each gap.

    Raises
    ------
    ValueError
        If the groups do not hold as many rows as the results.
    """
    rows, columns = results.rows, results.columns
    if sum(groups) != len(rows):
        raise ValueError(f"groups {tuple(groups)} hold {sum(groups)} rows, but the results have {len(rows)}")
    group = np.repeat(np.arange(len(groups)), groups)
    heights = np.arange(len(rows)) + 0.25 * group
    paint = plt.get_cmap("Blues")
    for height, scores, shares in zip(heights, results.scores, results.shares):
        for place, (of_seeds, share) in enumerate(zip(scores, shares)):
            box = plt.Rectangle((place - 0.5, height - 0.5), 1, 1, facecolor=paint(0.8 * share), edgecolor="white", linewidth=1)
            ax.add_patch(box)
            low, mean, high = (_two_digits(x) for x in (of_seeds.min(), of_seeds.mean(), of_seeds.max()))
            ink = {"ha": "center", "color": "white" if share > 0.85 else "black"}
            ax.text(place, height - (0.17 if low != high else 0), mean, va="center", fontsize=9.5, **ink)
            if low != high:
                spread = f"{low}–{high}"
                ax.text(place, height + 0.26, spread, va="center", fontsize=7 if len(spread) < 9 else 6.3, **ink)
    bottom = heights[-1] + 1.25
    for place, ceiling in enumerate(results.ceilings.values()):
        ax.text(place, bottom, "–" if ceiling is None else _two_digits(ceiling), ha="center", va="center", fontsize=9.5)
    names = [*(NAMES.get(row, row) for row in rows), "order-blind ceiling"]
    ax.set_yticks([*heights, bottom], [textwrap.fill(name, 12) for name in names], fontsize=9)
    ax.set_xticks(range(len(columns)), [_stacked(name, results) for name in columns], fontsize=7)
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(bottom + 0.5, -0.5)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _stacked(name: str, results: "Results") -> str:
    """The name of a column in short lines; what is an error says that it is better low."""
    column = results.settings["columns"][name]
    lines = [line for part in name.split(", ") for line in textwrap.wrap(part, 8)]
    return "\n".join([*lines, "error ↓"] if column["top"] < column["floor"] else lines)


def _two_digits(score: float) -> str:
    """0.256 as ".26", and 1 as "1.00"."""
    return f"{score:.2f}".removeprefix("0")
