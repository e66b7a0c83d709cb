"""The number of a chapter, which stands in the name of its notebook and nowhere else.

A notebook called `notebooks/02_….ipynb` with the heading "Attention cannot see order" becomes chapter 2: "2. Attention
cannot see order" in the contents, in search results and in the window's title, and a small "Chapter 2" above the
heading of the page (book.css).

The directive `chapter-list` lists the chapters that there are, under the captions of the contents, each with the time
that its opening states. Lines such as `2: What the chapter is for.` in the directive give a chapter a sentence of its own;
one for a chapter still to come waits.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any

from book_domain import chapter_number
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

_TIME = re.compile(r"(\d+)(?:(?:\s*(?:to|–|-)\s*)(\d+))?\s+min(?:utes?)?\b")


class chapter_list(nodes.General, nodes.Element):
    """Where the list of chapters goes, once all of them have been read; `lines` are their sentences, by number."""


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

    has_content = True

    def run(self) -> list[nodes.Node]:
        lines: dict[int, list[nodes.Node]] = {}
        for line in self.content:
            number, colon, words = line.partition(":")
            if not colon or not number.strip().isdigit():
                raise self.error(f"not a chapter's number, a colon and a sentence: {line!r}")
            inline, messages = self.state.inline_text(words.strip(), self.lineno)
            lines[int(number)] = [*inline, *messages]
        return [chapter_list("", lines=lines)]


def parts(app: Sphinx, names: list[str]) -> list[tuple[str, list[str]]]:
    """The chapters under the captions that the contents give them."""
    found: list[tuple[str, list[str]]] = []
    for tree in app.env.external_site_map.root.subtrees:
        mine = [name for name in names if any(fnmatchcase(name, str(item)) for item in tree.items)]
        if mine:
            found.append((tree.caption or "", mine))
    return found


def fill_lists(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write the list of chapters into the pages that ask for one."""
    names = sorted(name for name in app.env.titles if chapter_number(name) is not None)
    for place in list(doctree.findall(chapter_list)):
        listed: list[nodes.Node] = []
        for caption, chapters in parts(app, names):
            items = [_item(app, docname, name, place["lines"].get(chapter_number(name), [])) for name in chapters]
            listed.append(nodes.paragraph("", caption, classes=["chapter-part"]))
            listed.append(nodes.bullet_list("", *items, classes=["chapter-list"]))
        place.replace_self(listed)


def _item(app: Sphinx, docname: str, chapter: str, words: list[nodes.Node]) -> nodes.list_item:
    """One chapter: its title, its minutes, its sentence."""
    title = [child.deepcopy() for child in app.env.titles[chapter].children]
    address = app.builder.get_relative_uri(docname, chapter)
    head = nodes.paragraph("", "", nodes.reference("", "", *title, refuri=address, internal=True))
    minutes = app.env.metadata[chapter].get("minutes")
    if minutes:
        head += [nodes.Text(" "), nodes.inline("", f"{minutes} min", classes=["minutes"])]
    item = nodes.list_item("", head)
    if words:
        item += nodes.paragraph("", "", *(node.deepcopy() for node in words), classes=["about"])
    return item


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(NumberChapter)
    app.add_node(chapter_list)
    app.add_directive("chapter-list", ListChapters)
    app.connect("doctree-resolved", fill_lists)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
