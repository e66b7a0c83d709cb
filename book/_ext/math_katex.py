"""Formulas typeset while the book is built, by KaTeX in a JavaScript engine from a wheel.

The page then needs no script for its formulas, nothing from another machine, and nothing that has to be committed: it
holds HTML for the eye and MathML for the ear, and the book carries KaTeX's style sheet and fonts. KaTeX is told to
stop at the first thing it does not understand, so a misspelt macro fails the build instead of showing up in red.
"""

from __future__ import annotations

import functools
import html
import importlib.metadata
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)

PACKAGE = "djangocms-katex"
"""The package that carries KaTeX. Its files are used, its code never is."""

OPTIONS = {"throwOnError": True, "strict": "error", "output": "htmlAndMathml", "trust": False}
"""`strict` refuses what KaTeX accepts and LaTeX does not, since Colab and JupyterLab use another typesetter."""


def katex_folder() -> Path:
    """Where KaTeX is installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.as_posix().endswith("/vendor/katex/katex.min.js"):
            return Path(str(file.locate())).parent
    raise ExtensionError("KaTeX is missing: pip install --no-deps -r book/requirements-katex.txt")


@functools.cache
def engine() -> MiniRacer:
    """A JavaScript engine with KaTeX in it."""
    racer = MiniRacer()
    racer.eval((katex_folder() / "katex.min.js").read_text(encoding="utf-8"))
    return racer


@functools.cache
def render(latex: str, display: bool) -> str:
    """The markup of one formula.

    Raises
    ------
    ValueError
        If KaTeX cannot read it; the message is KaTeX's.
    """
    try:
        return engine().call("katex.renderToString", latex, {**OPTIONS, "displayMode": display})
    except JSEvalException as error:
        reason = re.search(r"ParseError: (.*?)(?:\n|$)", str(error))
        raise ValueError(reason[1] if reason else str(error).strip().split("\n")[0]) from None


def typeset(node: nodes.math | nodes.math_block, display: bool) -> str:
    """The markup of a formula, or its source after a warning that names the page and the formula."""
    latex = node.astext().strip()
    try:
        return render(latex, display)
    except ValueError as error:
        place: nodes.Node | None = node
        while place is not None and place.line is None:
            place = place.parent
        LOGGER.warning("formula %r: %s", latex, error, location=place)
        return f"<code>{html.escape(latex)}</code>"


class KeepPunctuation(SphinxTransform):
    """Hold a short formula and the punctuation around it together, since browsers would break the line between."""

    default_priority = 420
    before, behind = re.compile(r"[(\[“‘]+$"), re.compile(r"[.,;:!?)\]’”…]+(?=\s|$)|[-’]\w+[.,;:!?)]*")

    def apply(self, **_: Any) -> None:
        for formula in list(self.document.findall(nodes.math)):
            if not self.in_one_piece(formula):
                continue
            parent, place = formula.parent, formula.parent.index(formula)
            group = nodes.inline("", classes=["nobr"])
            left = parent[place - 1] if place else None
            right = parent[place + 1] if place + 1 < len(parent) else None
            opening = self.before.search(left) if isinstance(left, nodes.Text) else None
            closing = self.behind.match(right) if isinstance(right, nodes.Text) else None
            if not opening and not closing:
                continue
            parent.replace(formula, group)
            if opening:
                parent.replace(left, nodes.Text(left[: opening.start()]))
                group += nodes.Text(opening[0])
            group += formula
            if closing:
                parent.replace(right, nodes.Text(right[closing.end() :]))
                group += nodes.Text(closing[0])

    @staticmethod
    def in_one_piece(formula: nodes.math) -> bool:
        """Whether KaTeX itself would never break this formula."""
        try:
            return render(formula.astext().strip(), display=False).count('class="base"') == 1
        except ValueError:
            return False


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(self.starttag(node, "span", "", CLASS="math") + typeset(node, display=False) + "</span>")
    raise nodes.SkipNode


def visit_display(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", "", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})</span>')
    self.body.append(typeset(node, display=True) + "</div>\n")
    raise nodes.SkipNode


def copy_katex(app: Sphinx) -> None:
    """Put the style sheet and the fonts that browsers of today ask for among the book's static files."""
    if app.builder.format != "html":
        return
    source, target = katex_folder(), Path(app.outdir) / "_static" / "katex"
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    style = (source / "katex.min.css").read_text(encoding="utf-8")
    style = re.sub(r',url\([^)]*\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)', "", style)
    (target / "katex.min.css").write_text(style, encoding="utf-8")
    for font in source.glob("fonts/*.woff2"):
        shutil.copyfile(font, target / "fonts" / font.name)
    shutil.copyfile(source / "LICENSE", target / "LICENSE")
    app.add_css_file("katex/katex.min.css")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("katex", inline_renderers=(visit_inline, None), block_renderers=(visit_display, None))
    app.add_transform(KeepPunctuation)
    app.connect("builder-inited", copy_katex)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
