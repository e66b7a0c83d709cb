"""Boxes from plain block quotes.

Colab and JupyterLab show a block quote with a bold first line, and that is what a notebook holds:

    > **Theorem 2.1 · Attention is equivariant**
    >
    > For every permutation matrix …

On the page it becomes a box with a heading, a class for its kind, and an anchor (`#theorem-2-1`) when it has a number.
A proof can be folded: it stands open in the page, and book.js folds it on a phone. A quote whose bold first line is no
known kind stays a quote; one that looks like a slip of the pen is a warning.
"""

from __future__ import annotations

import re
from typing import Any

from book_domain import BOX_KINDS, chapter_number, give_id, merge_texts, note_target
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)

PLAIN_KINDS = ("Proof", "Warning", "Note", "Predict", "Bridge")
"""Boxes that carry no number."""

_LEAD = re.compile(r"(?P<kind>[A-Z]\w+)(?:\s+(?P<number>\d+\.\d+))?\s*(?:·\s*|$)")
_PROOF = re.compile(r"Proof\b")
_SLIP = re.compile(r"[A-Z]\w+\s+\d+(\.\d+)?\b|[A-Z]\w+\s+·")
_EFFORT = re.compile(r"\s*\((?P<minutes>\d+) min, (?P<dots>●+○*)\)\s*")


class box(nodes.General, nodes.Element):
    """A box; `kind` is its kind in lower case, `name` what it is called in full."""


class box_title(nodes.General, nodes.TextElement):
    """The heading of a box."""


class MakeBoxes(SphinxTransform):
    """Replace the block quotes that are boxes."""

    default_priority = 300

    def apply(self, **_: Any) -> None:
        for quote in list(self.document.findall(nodes.block_quote)):
            paragraph = quote[0] if len(quote) else None
            if isinstance(paragraph, nodes.paragraph):
                merge_texts(paragraph)
                if len(paragraph) and isinstance(paragraph[0], nodes.strong):
                    self.convert(quote, paragraph, paragraph[0])

    def convert(self, quote: nodes.block_quote, paragraph: nodes.paragraph, lead: nodes.strong) -> None:
        merge_texts(lead)
        start = str(lead[0]) if len(lead) and isinstance(lead[0], nodes.Text) else ""
        if _PROOF.match(start):
            kind, number, title = "Proof", None, []
            label: list[nodes.Node] = [child.deepcopy() for child in lead]
        else:
            found = _LEAD.match(start)
            kind, number = (found["kind"], found["number"]) if found else (None, None)
            if kind not in (*BOX_KINDS, *PLAIN_KINDS) or bool(number) != (kind in BOX_KINDS):
                if _SLIP.match(start):
                    LOGGER.warning('"%s" opens no known kind of box', lead.astext(), location=quote)
                return
            label = [nodes.Text(f"{kind} {number}" if number else kind)]
            rest = start[found.end() :]
            title = ([nodes.Text(rest)] if rest else []) + [child.deepcopy() for child in lead[1:]]
        name = " ".join(lead.astext().split()).rstrip(".")

        result = box("", kind=kind.lower(), name=name)
        result.source, result.line = quote.source, quote.line
        heading = box_title("", "", nodes.inline("", "", *label, classes=["box-label"]))
        heading.source, heading.line = quote.source, quote.line
        if title:
            heading += [nodes.Text(" "), nodes.inline("", "", *title, classes=["box-name"])]
        remainder = paragraph[1:]
        if kind == "Exercise":
            remainder = self.take_effort(heading, remainder, name)
        result += heading
        if any(node.astext().strip() or not isinstance(node, nodes.Text) for node in remainder):
            first = nodes.paragraph("", "", *(node.deepcopy() for node in remainder))
            first.source, first.line = quote.source, quote.line
            result += first
        result += [child.deepcopy() for child in quote[1:]]
        if number:
            if chapter_number(self.env.docname) is None:
                LOGGER.warning('"%s" is numbered but stands in no chapter', name, location=quote)
            note_target(self.env, self.document, result, f"{kind} {number}", name)
            self.env.get_domain("book").data["titles"][f"{kind} {number}"] = [child.deepcopy() for child in title]
        elif kind == "Proof":
            give_id(self.document, result, name)
        quote.replace_self(result)

    def take_effort(self, heading: box_title, remainder: list[nodes.Node], name: str) -> list[nodes.Node]:
        """Move "(10 min, ●●○)" from behind the bold words into the heading."""
        text = remainder[0].astext() if remainder and isinstance(remainder[0], nodes.Text) else ""
        found = _EFFORT.match(text)
        if not found:
            LOGGER.warning('"%s" does not say how long and how hard it is: (10 min, ●●○)', name, location=heading)
            return remainder
        dots = found["dots"]
        spoken = f"difficulty {dots.count('●')} of {len(dots)}"
        picture = f'<span class="dots" role="img" aria-label="{spoken}" title="{spoken}">{dots}</span>'
        effort = nodes.inline("", f"{found['minutes']} min ", classes=["box-effort"])
        effort += nodes.raw("", picture, format="html")
        heading += [nodes.Text(" "), effort]
        after = text[found.end() :]
        return ([nodes.Text(after)] if after else []) + remainder[1:]


def visit_box(self: HTML5Translator, node: box) -> None:
    tag, state = ("details", {"open": "open"}) if node["kind"] == "proof" else ("div", {"role": "group"})
    attributes = {"aria-label": node["name"], **state}
    self.body.append(self.starttag(node, tag, "", CLASS=f"box box-{node['kind']}", **attributes))


def depart_box(self: HTML5Translator, node: box) -> None:
    self.body.append("</details>\n" if node["kind"] == "proof" else "</div>\n")


def visit_box_title(self: HTML5Translator, node: box_title) -> None:
    tag = "summary" if node.parent["kind"] == "proof" else "p"
    self.body.append(self.starttag(node, tag, "", CLASS="box-title"))


def depart_box_title(self: HTML5Translator, node: box_title) -> None:
    if node.parent["kind"] == "proof":
        self.body.append("</summary>\n")
        return
    if node.parent["ids"]:
        self.add_permalink_ref(node.parent, f"Link to {node.parent['name'].split(' · ')[0]}")
    self.body.append("</p>\n")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(box, html=(visit_box, depart_box))
    app.add_node(box_title, html=(visit_box_title, depart_box_title))
    app.add_transform(MakeBoxes)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
