"""What can be referred to in the book, and where it is.

Boxes, captions, chapters and the bibliography each *note* what they define here, under the words a reader would use
for it: "Theorem 2.1", "Figure 2.1", "chapter 2", "Vaswani et al., 2017". The text of the book refers to them in the
same plain words, so that a notebook reads well where no extension runs, and the `references` extension makes the
links. A reference to nothing is a warning, and a warning fails the build.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.domains import Domain
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

LOGGER = logging.getLogger(__name__)

BOX_KINDS = ("Definition", "Theorem", "Lemma", "Proposition", "Corollary", "Exercise")
"""Boxes that carry a number."""

NUMBERED_KINDS = (*BOX_KINDS, "Figure", "Table")
"""Everything that carries a number "chapter.place"."""

_CHAPTER = re.compile(r"notebooks/(\d+)_")


class Target(NamedTuple):
    """One thing that can be referred to."""

    docname: str
    anchor: str
    """The id in the page; empty for the page itself."""
    title: str
    """What a reader sees on pointing at a link to it."""


def chapter_number(docname: str) -> int | None:
    """The number in the name of a chapter's notebook, None for every other page."""
    found = _CHAPTER.match(docname)
    return int(found[1]) if found else None


def anchor(name: str) -> str:
    """The id of what is called `name`: "Theorem 2.1" is at `theorem-2-1`."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


def merge_texts(node: nodes.Element) -> None:
    """Join neighbouring texts, and drop empty ones.

    The Markdown parser makes a text of every piece between line breaks, so "Theorem" and "2.1" may be apart.
    """
    pieces: list[nodes.Node] = []
    for child in node.children:
        if isinstance(child, nodes.Text) and not str(child):
            continue
        if isinstance(child, nodes.Text) and pieces and isinstance(pieces[-1], nodes.Text):
            pieces[-1] = nodes.Text(pieces[-1] + child)
        else:
            pieces.append(child)
    node.children = []
    node.extend(pieces)


def give_id(document: nodes.document, node: nodes.Element, name: str) -> str:
    """Give `node` an id made from `name`; a second one on the page is numbered."""
    base = identifier = anchor(name)
    count = 1
    while identifier in document.ids:
        count += 1
        identifier = f"{base}-{count}"
    node["ids"].append(identifier)
    document.ids[identifier] = node
    return identifier


class BookDomain(Domain):
    """The register of what can be referred to."""

    name = "book"
    label = "Where Order Comes From"
    initial_data: dict[str, dict[str, Any]] = {"targets": {}, "titles": {}, "evidence": {}}
    """Besides the targets: what each box is called, as nodes, and for each chapter its evidence (see `ledger`)."""
    dangling_warnings = {"name": 'nothing in the book is called "%(target)s"'}

    @property
    def targets(self) -> dict[str, Target]:
        """Every name, in the order of definition, with its place."""
        return self.data["targets"]

    def note(self, name: str, anchor: str, title: str, location: Any) -> None:
        """Register what is called `name` on the page being read; two things of one name are a warning."""
        docname = self.env.docname
        other = self.targets.get(name)
        if other and (other.docname != docname or other.anchor):
            LOGGER.warning('"%s" is defined twice, here and in %s', name, other.docname, location=location)
        self.targets[name] = Target(docname, anchor, title)

    def clear_doc(self, docname: str) -> None:
        for name in [name for name, target in self.targets.items() if target.docname == docname]:
            del self.targets[name]
            self.data["titles"].pop(name, None)
        self.data["evidence"].pop(docname, None)

    def merge_domaindata(self, docnames: Iterable[str], otherdata: dict[str, dict[str, Any]]) -> None:
        for name, target in otherdata["targets"].items():
            if target.docname in docnames:
                self.targets[name] = target
                if name in otherdata["titles"]:
                    self.data["titles"][name] = otherdata["titles"][name]
        for docname in set(docnames) & set(otherdata["evidence"]):
            self.data["evidence"][docname] = otherdata["evidence"][docname]

    def check_consistency(self) -> None:
        """Hold the numbers to their chapter and, for each kind, to 1, 2, 3, …"""
        seen: dict[tuple[str, str], int] = {}
        for name, target in self.targets.items():
            kind, _, number = name.partition(" ")
            if kind not in NUMBERED_KINDS:
                continue
            seen[kind, target.docname] = seen.get((kind, target.docname), 0) + 1
            expected = f"{chapter_number(target.docname)}.{seen[kind, target.docname]}"
            if number != expected:
                LOGGER.warning(
                    '"%s" stands where %s %s is due', name, kind, expected, location=target.docname
                )

    def resolve_xref(
        self,
        env: BuildEnvironment,
        fromdocname: str,
        builder: Builder,
        typ: str,
        target: str,
        node: pending_xref,
        contnode: nodes.Element,
    ) -> nodes.reference | None:
        found = self.targets.get(target)
        if found is None:
            return None
        return make_refnode(builder, fromdocname, found.docname, found.anchor or None, contnode, found.title)

    def resolve_any_xref(self, *arguments: Any) -> list[tuple[str, nodes.reference]]:
        return []


def note_target(env: BuildEnvironment, document: nodes.document, node: nodes.Element, name: str, title: str) -> None:
    """Give `node` its id and register it under `name`.

    Markdown links to `page.ipynb#theorem-2-1` and {ref}`theorem-2-1` find it as well.
    """
    identifier = anchor(name)
    node["ids"] = [identifier]
    document.ids[identifier] = node
    document.nameids[identifier] = identifier
    document.nametypes[identifier] = True
    slugs = env.metadata[env.docname].setdefault("myst_slugs", {})
    slugs[identifier] = (node.line, identifier, title)
    env.get_domain("book").note(name, identifier, title, node)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_domain(BookDomain)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
