"""Pages without what they do not use, and with what links to them show.

The theme loads 1.5 MB of icon fonts and scripts for a dozen icons: book.css draws those (the empty macros are in
_templates/static/webpack-macros.html). Scripts that only some pages need are dropped from the others. The head gains
a description, taken from the first paragraph, and the properties that a link preview reads. Those want whole addresses,
which exist once the book knows where it is published (`repository`).
"""

from __future__ import annotations

import html
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

NEEDED_FOR = {
    "clipboard.min.js": 'class="highlight',
    "copybutton.js": 'class="highlight',
    "copybutton.css": 'class="highlight',
    "copybutton_funcs.js": "never",
    "katex/katex.min.css": 'class="katex',
    "mystnb": 'class="cell',
    "sphinx-design": 'class="sd-',
    "design-tabs.js": 'class="sd-tab-set',
}
"""What must stand in a page for it to need the file whose name starts so."""

PREVIEW = "preview.png"
"""The picture, 1200 by 630, that stands beside a link to the book; `book/_tools/preview.py` draws it."""
PREVIEW_SHOWS = "Three words enter attention in two orders. The rows that come out are the same rows, in the two orders."


def wanted(asset: Any, body: str) -> bool:
    """Whether a page with this body has a use for the script or style sheet."""
    name = str(getattr(asset, "filename", asset) or "").removeprefix("_static/")
    return all(sign in body for start, sign in NEEDED_FOR.items() if name.startswith(start))


def first_paragraph(doctree: nodes.document | None) -> str:
    """The opening words of a page, shortened at a word."""
    if doctree is None:
        return ""
    paragraph = next((node for node in doctree.findall(nodes.paragraph) if isinstance(node.parent, nodes.section)), None)
    text = " ".join(paragraph.astext().split()) if paragraph is not None else ""
    return text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0] + " …"


def trim(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    body = context.get("body", "")
    for kind in ("script_files", "css_files"):
        unique = {str(getattr(asset, "filename", asset)): asset for asset in context[kind]}
        context[kind] = [asset for asset in unique.values() if wanted(asset, body)]

    path = context["pathto"]
    home = app.config.html_baseurl
    page = home + app.builder.get_target_uri(pagename) if home else ""
    description = first_paragraph(doctree)
    properties = {
        "og:type": "article" if doctree is not None else "website",
        "og:site_name": app.config.html_title,
        "og:title": context.get("pagetitle") or app.config.html_title,
        "og:description": description,
        "og:url": page,
        "og:image": home + f"_static/{PREVIEW}" if home else path(f"_static/{PREVIEW}", 1),
        "og:image:alt": PREVIEW_SHOWS,
        "og:image:width": "1200",
        "og:image:height": "630",
    }
    tags = [f'<meta property="{name}" content="{html.escape(text)}" />' for name, text in properties.items() if text]
    tags.append('<meta name="twitter:card" content="summary_large_image" />')
    if description:
        tags.insert(0, f'<meta name="description" content="{html.escape(description)}" />')
    tags.append(f'<link rel="apple-touch-icon" href="{path("_static/touch-icon.png", 1)}" />')
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def drop_files(app: Sphinx, failure: Exception | None) -> None:
    """Leave out of the built book what no page loads: the theme's icon fonts, and maps for those who debug it."""
    if app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    shutil.rmtree(static / "vendor" / "fontawesome", ignore_errors=True)
    for path in static.rglob("*.map"):
        path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    # Jupyter Book always sets this value, whose extension is one of those left out.
    app.add_config_value("comments_config", {}, "")
    app.connect("html-page-context", trim, priority=950)
    app.connect("build-finished", drop_files, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
