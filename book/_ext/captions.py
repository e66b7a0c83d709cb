"""Captions from the Markdown under a figure or a table.

A caption in a cell's metadata is invisible in Colab, so a notebook writes it as an emphasised paragraph right below:
`*Figure 2.1. …*` under the code cell that draws, `*Table 2.1. …*` under a Markdown table. Here the two become one
<figure> with a <figcaption> and an anchor. Half of a pair is a warning: a figure without its caption, a caption
without its figure, a figure that says nothing to those who cannot see it.

A page that is no notebook shows a picture in the same frame with the directive `picture`.
"""

from __future__ import annotations

import re
from typing import Any

from book_domain import merge_texts, note_target
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)

_CAPTION = re.compile(r"(Figure|Table)\s+(\d+\.\d+)\.\s*")


def _is(node: nodes.Node | None, element: str) -> bool:
    """Whether `node` is the part of a notebook cell that the notebook parser calls `element`."""
    return isinstance(node, nodes.container) and node.get("nb_element") == element


def _displays(node: nodes.Node) -> bool:
    """Whether `node` is an output that is looked at: a picture, or HTML such as a live figure."""
    return _is(node, "mime_bundle") and any(
        part.get("mime_type", "").startswith("image/") or part.get("mime_type") == "text/html" for part in node
    )


def _pictures(node: nodes.Element) -> list[nodes.image]:
    return list(node.findall(nodes.image))


class MakeCaptions(SphinxTransform):
    """Join figures and tables with the captions below them."""

    default_priority = 310

    def apply(self, **_: Any) -> None:
        for paragraph in list(self.document.findall(nodes.paragraph)):
            merge_texts(paragraph)
            emphasis = paragraph[0] if len(paragraph) else None
            if isinstance(emphasis, nodes.emphasis):
                merge_texts(emphasis)
                found = _CAPTION.match(emphasis[0]) if isinstance(emphasis[0], nodes.Text) else None
                if found:
                    self.join(paragraph, emphasis, found)
        for bundle in self.document.findall(lambda node: _is(node, "mime_bundle")):
            if _pictures(bundle) and "view" not in bundle.parent["classes"]:
                LOGGER.warning('a figure without a caption: write "*Figure N.M. …*" below it', location=bundle)
        for figure in self.document.findall(nodes.figure):
            for picture in _pictures(figure):
                if not picture.get("alt", "").strip():
                    LOGGER.warning('"%s" has no alternative text', figure["name"], location=figure)

    def join(self, paragraph: nodes.paragraph, emphasis: nodes.emphasis, found: re.Match[str]) -> None:
        kind, number = found.groups()
        name = f"{kind} {number}"
        place = paragraph.parent.index(paragraph)
        above = paragraph.parent[place - 1] if place else None
        content = self.take_outputs(above) if kind == "Figure" else self.take_table(above)
        if not content:
            what = "cell that draws" if kind == "Figure" else "table"
            LOGGER.warning('the caption "%s" does not stand right below a %s', name, what, location=paragraph)
            paragraph["no_links"] = True
            return
        # A picture may be wider than a phone: it then scrolls in a frame of its own (book.css, book.js).
        content = [nodes.container("", part, classes=["view"]) if _pictures(part) else part for part in content]
        words = [nodes.Text(emphasis[0][found.end() :])] + [child.deepcopy() for child in emphasis[1:]]
        words += [child.deepcopy() for child in paragraph[1:]]
        caption = nodes.caption("", "", nodes.strong("", f"{name}.", classes=["caption-label"]), nodes.Text(" "), *words)
        caption.source, caption.line = paragraph.source, paragraph.line
        figure = nodes.figure("", *content, caption, classes=[f"book-{kind.lower()}"], name=name)
        figure.source, figure.line = paragraph.source, paragraph.line
        paragraph.replace_self(figure)
        note_target(self.env, self.document, figure, name, " ".join(caption.astext().split(". ")[:2]))

    @staticmethod
    def take_outputs(cell: nodes.Node | None) -> list[nodes.Node]:
        """Take what the cell displays out of it; what it prints stays."""
        if not _is(cell, "cell_code"):
            return []
        taken: list[nodes.Node] = []
        for output in [part for part in cell if _is(part, "cell_code_output")]:
            for bundle in [node for node in output if _displays(node)]:
                output.remove(bundle)
                taken.append(bundle)
            if not len(output):
                cell.remove(output)
        return taken

    @staticmethod
    def take_table(table: nodes.Node | None) -> list[nodes.Node]:
        if not isinstance(table, nodes.table):
            return []
        table.parent.remove(table)
        return [table]


class ShowPicture(SphinxDirective):
    """`picture FILE`: a picture with alternative text (`alt`), and its caption as content.

    The class `wide` is for one whose labels are small: on a phone it keeps more of its size.
    """

    required_arguments = 1
    has_content = True
    option_spec = {"alt": directives.unchanged_required, "class": directives.class_option}

    def run(self) -> list[nodes.Node]:
        image = nodes.image("", uri=self.arguments[0], alt=self.options.get("alt", ""))
        figure = nodes.figure("", nodes.container("", image, classes=["view", *self.options.get("class", [])]), classes=["book-figure"])
        figure["name"] = self.arguments[0]
        words, messages = self.state.inline_text(" ".join(self.content), self.lineno)
        figure += nodes.caption("", "", *words)
        self.set_source_info(figure)
        self.set_source_info(image)
        return [figure, *messages]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(MakeCaptions)
    app.add_directive("picture", ShowPicture)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
