"""Figures that move under the reader's hand, in the book's pages, in Colab and in Jupyter.

Each function returns an object that a notebook shows as one self-contained piece of HTML: it runs without a kernel,
asks the network for nothing, and is the same every time, so that a stored output can be compared. The figures compute
in the browser; `posenc.live.numbers` computes the same with the library, and tests compare the two.
"""

import html
import json
from functools import cache
from importlib.resources import files

from posenc.live import data

__all__ = ["LiveFigure", "dials", "offset", "shuffle", "symmetry"]


class LiveFigure:
    """A live figure, shown by whatever displays HTML.

    Parameters
    ----------
    kind : str
        Names its script and its style sheet.
    label : str
        What it is, for those who cannot see it.
    still : str
        What is shown where scripts are off: the figure's message in words.
    options : dict
        What its script is given, as JSON.
    """

    def __init__(self, kind: str, label: str, still: str, options: dict) -> None:
        self.kind, self.label, self.still, self.options = kind, label, still, options

    def __repr__(self) -> str:
        return f"<live figure: {self.kind}>"

    def _repr_html_(self) -> str:
        attributes = {
            "class": "posenc-live",
            "data-live": self.kind,
            "data-label": self.label,
            "data-options": json.dumps(self.options, ensure_ascii=False, separators=(",", ":")),
            "data-lm-suppress-shortcuts": "true",  # JupyterLab's keys leave the figure alone
        }
        opening = " ".join(f'{name}="{html.escape(value)}"' for name, value in attributes.items())
        style = json.dumps(_text("live.css") + _text(f"{self.kind}.css"), ensure_ascii=False)
        # A plain script and not a module: it also runs where a program inserts the output into its page.
        code = _text("core.js") + _text(f"{self.kind}.js")
        script = f'(() => {{\n"use strict";\nconst STYLE = {style};\n{code}}})();'.replace("</", "<\\/")
        return (
            f"<style>{_text('theme.css')}</style>\n<div {opening}><p>{html.escape(self.still)}</p></div>\n"
            f"<script>\n{script}\n</script>"
        )


@cache
def _text(name: str) -> str:
    """A file of this package without its indentation, its empty lines and its lines of comment."""
    lines = map(str.strip, (files(__name__) / name).read_text(encoding="utf-8").splitlines())
    return "".join(line + "\n" for line in lines if line and not line.startswith(("//", "/*")))


def shuffle() -> LiveFigure:
    """Tokens that change places: attention weights and output rows travel with them, until codes stay behind."""
    return LiveFigure(
        "shuffle",
        "Live figure: shuffle the tokens of a sentence under attention",
        "This figure needs scripts, which are off here. It lets you move the words of a sentence under attention. "
        "Without position codes every weight and every output row moves with its word; nothing else changes. If codes "
        "travel with their words, the same holds. If codes stay in their slots, the outputs change.",
        data.shuffle_options(),
    )


def dials() -> LiveFigure:
    """A position turns one clock hand per pair of columns, beside its row of the table and its binary digits."""
    return LiveFigure(
        "dials",
        "Live figure: the clocks of a position",
        "This figure needs scripts, which are off here. A slider moves the position from 0 to 255. Each of eight clocks "
        "turns at its own speed, each slower than the one before by the same factor, as each binary digit flips half as "
        "often as the one before.",
        data.DIALS,
    )


def offset() -> LiveFigure:
    """Two codes at a fixed offset: their product stands still when both move, unless a matrix comes between."""
    return LiveFigure(
        "offset",
        "Live figure: two codes at a fixed offset",
        "This figure needs scripts, which are off here. It moves two positions together. The dot product of their codes "
        "stands still, since it depends on the offset alone, and falls with the offset nearly as 1 − (ln k + γ) / ln base. "
        "With a random matrix between the codes it does not stand still.",
        data.OFFSET,
    )


def symmetry() -> LiveFigure:
    """A bias matrix to paint, and the reorderings that attention cannot see under it."""
    return LiveFigure(
        "symmetry",
        "Live figure: the reorderings that a bias leaves unseen",
        "This figure needs scripts, which are off here. It lights up the orders that attention with a bias B cannot see: "
        "for four tokens all 24 without a bias, the first order and its reversal for the distance −|i − j|, four for a "
        "cyclic bias, and only the first order under a causal mask.",
        data.symmetry_options(),
    )
