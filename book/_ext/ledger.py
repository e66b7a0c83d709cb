"""The claims ledger: every verified statement, proof and citation of the chapters, with a link to its place.

The chapters are read for their evidence: the lines that `verify` printed, the boxes that prove, the works cited. The
directive `ledger` lists it all, chapter by chapter, with the counts on top. Nothing is written by hand, so nothing can be
missing or left over.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from book_domain import BOX_KINDS, anchor, chapter_number, give_id
from boxes import box
from docutils import nodes
from outputs import evidence
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)

_PROVED = re.compile(rf"(?:{'|'.join(BOX_KINDS)})\s+\d+\.\d+")
_WORK = re.compile(r".+, \d{4}[a-z]?")


class Found(NamedTuple):
    """One piece of evidence in a chapter."""

    kind: str
    """"claim", "proof" or "citation"."""
    text: str
    anchor: str
    section: list[nodes.Node]
    """The heading under which it stands; empty before the first."""


class GatherEvidence(SphinxTransform):
    """Note, for each chapter, what it verifies, proves and cites, in the order of its pages."""

    default_priority = 430  # after the references have become links

    def apply(self, **_: Any) -> None:
        if chapter_number(self.env.docname) is None:
            return
        found = []
        stated = ""
        for node in list(self.document.findall(nodes.Element)):
            if isinstance(node, box) and node["kind"] == "proof":
                # A proof that names nothing proves what was stated last.
                name = node["name"] if _PROVED.search(node["name"]) else f"Proof of {stated}" if stated else "Proof"
                found.append(Found("proof", name, node["ids"][0], self.section(node)))
            elif isinstance(node, box) and node["kind"] in ("theorem", "lemma", "proposition", "corollary"):
                stated = node["name"].split(" · ")[0]
            elif isinstance(node, nodes.paragraph) and "verified" in node["classes"] and node["ids"]:
                found.append(Found("claim", node.astext(), node["ids"][0], self.section(node)))
            elif isinstance(node, pending_xref) and node["refdomain"] == "book" and _WORK.fullmatch(node["reftarget"]):
                identifier = give_id(self.document, node[0], "cites " + node["reftarget"])
                found.append(Found("citation", node["reftarget"], identifier, self.section(node)))
        self.env.get_domain("book").data["evidence"][self.env.docname] = found

    @staticmethod
    def section(node: nodes.Node) -> list[nodes.Node]:
        """The nearest heading above, without the chapter's own."""
        while node is not None and not (isinstance(node, nodes.section) and isinstance(node.parent, nodes.section)):
            node = node.parent
        return [child.deepcopy() for child in node[0].children] if node is not None else []


def proved(proof: Found) -> str:
    """The name of what a proof proves, such as "Theorem 2.1"; empty if it names nothing."""
    name = _PROVED.search(proof.text)
    return " ".join(name[0].split()) if name else ""


def check_proofs(app: Sphinx, env: BuildEnvironment) -> None:
    """A proof of something that the book does not state is a warning."""
    domain = env.get_domain("book")
    for docname, found in domain.data["evidence"].items():
        for proof in of_kind(found, "proof"):
            if proved(proof) and proved(proof) not in domain.targets:
                LOGGER.warning('nothing in the book is called "%s"', proved(proof), location=docname)


class ledger_counts(nodes.General, nodes.Element):
    """Where the table of counts goes, once all chapters have been read."""


class ledger_chapter(nodes.General, nodes.Element):
    """Where the evidence of one chapter goes; `chapter` is its page."""


class ShowLedger(SphinxDirective):
    """`ledger`: the counts, and a section for each chapter that there is."""

    def run(self) -> list[nodes.Node]:
        parts: list[nodes.Node] = [ledger_counts("")]
        for docname in chapters(self.env):
            name = f"Chapter {chapter_number(docname)}"
            section = nodes.section("", nodes.title("", name), ledger_chapter("", chapter=docname), names=[anchor(name)])
            self.set_source_info(section)
            self.state.document.note_implicit_target(section, section)
            parts.append(section)
        return parts


def chapters(env: BuildEnvironment) -> list[str]:
    """The pages that are chapters, in order."""
    return sorted(name for name in env.found_docs if chapter_number(name) is not None)


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write counts and evidence into the page that asks for them."""
    everything = app.env.get_domain("book").data["evidence"]
    for place in list(doctree.findall(ledger_counts)):
        place.replace_self(counts(app, docname, everything))
    for place in list(doctree.findall(ledger_chapter)):
        place.replace_self(listing(app, docname, place["chapter"], everything.get(place["chapter"], [])))


def link(app: Sphinx, docname: str, target: str, identifier: str, *words: nodes.Node) -> nodes.reference:
    address = app.builder.get_relative_uri(docname, target) + (f"#{identifier}" if identifier else "")
    return nodes.reference("", "", *words, refuri=address, internal=True)


def of_kind(found: list[Found], kind: str) -> list[Found]:
    return [piece for piece in found if piece.kind == kind]


def counts(app: Sphinx, docname: str, everything: dict[str, list[Found]]) -> nodes.table:
    """How many pieces of each kind each chapter holds."""
    heads = ("chapter", "verified", "proofs", "citations")
    rows: list[list[nodes.Node]] = []
    totals = [0, 0, 0]
    for chapter in chapters(app.env):
        numbers = [len(of_kind(everything.get(chapter, []), kind)) for kind in ("claim", "proof", "citation")]
        totals = [total + number for total, number in zip(totals, numbers)]
        title = [child.deepcopy() for child in app.env.titles[chapter].children]
        rows.append([link(app, docname, chapter, "", *title), *(nodes.Text(str(number)) for number in numbers)])
    rows.append([nodes.strong("", "all chapters"), *(nodes.strong("", str(total)) for total in totals)])

    group = nodes.tgroup("", *(nodes.colspec("", colwidth=1) for _ in heads), cols=len(heads))
    group += nodes.thead("", _row([nodes.Text(head) for head in heads]))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=["ledger-counts"])


def _row(cells: list[nodes.Node]) -> nodes.row:
    entries = [nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells]
    for entry in entries[1:]:
        entry["classes"].append("text-right")
    return nodes.row("", *entries)


def listing(app: Sphinx, docname: str, chapter: str, found: list[Found]) -> list[nodes.Node]:
    """The evidence of one chapter: proofs, verified statements, citations."""
    title = [child.deepcopy() for child in app.env.titles[chapter].children]
    parts: list[nodes.Node] = [nodes.paragraph("", "", link(app, docname, chapter, "", *title))]
    proofs = of_kind(found, "proof")
    if proofs:
        parts += [_lead("Proved"), nodes.bullet_list("", *(_proof(app, docname, chapter, proof) for proof in proofs))]
    claims = of_kind(found, "claim")
    if claims:
        parts.append(_lead("Verified by code that ran"))
        for claim in claims:
            line = evidence(claim.text, "verified")
            line[1:] = [link(app, docname, chapter, claim.anchor, nodes.Text(claim.text[2:]))]
            parts.append(line)
    works: dict[str, list[Found]] = {}
    for citation in of_kind(found, "citation"):
        works.setdefault(citation.text, []).append(citation)
    if works:
        items = [_work(app, docname, chapter, name, places) for name, places in sorted(works.items(), key=lambda work: work[0].casefold())]
        parts += [_lead("Cited"), nodes.bullet_list("", *items)]
    return parts


def _lead(words: str) -> nodes.paragraph:
    return nodes.paragraph("", "", nodes.strong("", words), classes=["ledger-lead"])


def _proof(app: Sphinx, docname: str, chapter: str, proof: Found) -> nodes.list_item:
    """The link to a proof, and what it proves in words."""
    item = nodes.paragraph("", "", link(app, docname, chapter, proof.anchor, nodes.Text(proof.text)))
    target = app.env.get_domain("book").targets.get(proved(proof))
    title = app.env.get_domain("book").data["titles"].get(proved(proof), [])
    if target and title:
        words = [child.deepcopy() for child in title]
        item += [nodes.Text(": "), link(app, docname, target.docname, target.anchor, *words)]
    return nodes.list_item("", item)


def _work(app: Sphinx, docname: str, chapter: str, name: str, places: list[Found]) -> nodes.list_item:
    """A work, and the sections in which the chapter cites it."""
    target = app.env.get_domain("book").targets.get(name)
    words = nodes.Text(name)
    line = nodes.paragraph("", "", link(app, docname, target.docname, target.anchor, words) if target else words)
    sections: dict[str, list[Found]] = {}
    for place in places:
        sections.setdefault("".join(node.astext() for node in place.section), []).append(place)
    for number, (first, *more) in enumerate(sections.values()):
        heading = [node.deepcopy() for node in first.section] or [nodes.Text("the opening")]
        line += [nodes.Text("; " if number else ": in "), link(app, docname, chapter, first.anchor, *heading)]
        for count, place in enumerate(more, 2):
            line += [nodes.Text(", "), link(app, docname, chapter, place.anchor, nodes.Text(str(count)))]
    return nodes.list_item("", line)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(GatherEvidence)
    app.add_node(ledger_counts)
    app.add_node(ledger_chapter)
    app.add_directive("ledger", ShowLedger)
    app.connect("doctree-resolved", fill)
    app.connect("env-check-consistency", check_proofs)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
