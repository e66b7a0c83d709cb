"""The number of a chapter, which stands in the name of its notebook and nowhere else.

A notebook called `notebooks/02_….ipynb` with the heading "Attention cannot see order" becomes chapter 2: "2. Attention
cannot see order" in the contents, in search results and in the window's title, and a small "Chapter 2" above the
heading of the page (book.css).

The directive `chapter-list` lists the chapters that there are, each with the time that its opening states.
"""

from __future__ import annotations

import re
from typing import Any

from book_domain import chapter_number
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

_TIME = re.compile(r"(\d+)(?:(?:\s*(?:to|–|-)\s*)(\d+))?\s+min(?:utes?)?\b")


class chapter_list(nodes.General, nodes.Element):
    """Where the list of chapters goes, once all of them have been read."""


class NumberChapter(SphinxTransform):
    """Put the number in front of the heading, and register "chapter N"."""

    default_priority = 290

    def apply(self, **_: Any) -> None:
        number = chapter_number(self.env.docname)
        title = next(self.document.findall(nodes.title), None)
        if number is None or title is None:
            return
        plain = title.astext()
        title.insert(0, nodes.inline("", str(number), nodes.inline("", ". ", classes=["dot"]), classes=["chapter"]))
        self.env.get_domain("book").note(f"chapter {number}", "", plain, title)
        opening = " ".join(node.astext() for node in title.parent[1:] if not isinstance(node, nodes.section))
        time = _TIME.search(" ".join(opening.split()))
        self.env.metadata[self.env.docname]["minutes"] = "–".join(filter(None, time.groups())) if time else ""


class ListChapters(SphinxDirective):
    """`chapter-list`: every chapter, with a link and the time it takes to read."""

    def run(self) -> list[nodes.Node]:
        return [chapter_list("")]


def fill_lists(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write the list of chapters into the pages that ask for one."""
    for place in list(doctree.findall(chapter_list)):
        listing = nodes.bullet_list("", classes=["chapter-list"])
        for chapter in sorted(name for name in app.env.titles if chapter_number(name) is not None):
            title = [child.deepcopy() for child in app.env.titles[chapter].children]
            address = app.builder.get_relative_uri(docname, chapter)
            line = nodes.paragraph("", "", nodes.reference("", "", *title, refuri=address, internal=True))
            minutes = app.env.metadata[chapter].get("minutes")
            if minutes:
                line += [nodes.Text(" "), nodes.inline("", f"{minutes} min", classes=["minutes"])]
            listing += nodes.list_item("", line)
        place.replace_self(listing if len(listing) else [])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(NumberChapter)
    app.add_node(chapter_list)
    app.add_directive("chapter-list", ListChapters)
    app.connect("doctree-resolved", fill_lists)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
