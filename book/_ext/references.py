"""Links from plain words, and the page they lead to for the literature.

A notebook says "Theorem 2.1", "Figures 2.1 and 2.2", "chapter 2", "(Vaswani et al., 2017, Table 3)" or "Vaswani et al.
(2017)". Each becomes a link; one that leads nowhere is a warning, and so fails the build. What belongs to somebody
else's paper, such as the table in the example, is left alone. Nothing is linked in code, formulas, headings, or links.

The bibliography is a BibTeX file. The directive `book-references` lists it; only what is listed can be cited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from book_domain import NUMBERED_KINDS, anchor, merge_texts
from boxes import box_title
from docutils import nodes
from pybtex.database import Entry, Person, parse_file
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)

# One surname, perhaps with a particle; one author, two, or the first of several; a year.
_SURNAME = r"(?:(?:van|von|de|der|den)\s+)*[A-ZÀ-ÖØ-Þ][^\W\d_]*(?:[-'’][^\W\d_]{2,})*"
_SEVERAL = rf"{_SURNAME}(?:\s+et\s+al\.|\s+(?:and|&)\s+{_SURNAME})"
_YEAR = r"(?:19|20)\d\d[a-z]?"
# A place in somebody else's paper.
_PART = r"(?:[Tt]ables?|[Ff]ig(?:ures?|\.)|[Ss]ec(?:tions?|\.|t\.)|[Aa]ppendi(?:x|ces)|[Tt]heorems?|[Ll]emmas?|[Pp]ropositions?" \
    r"|[Cc]orollar(?:y|ies)|[Dd]efinitions?|[Ee]q(?:uations?|\.)|[Cc]hapters?|[Aa]lgorithms?|[Rr]ows?|[Cc]olumns?|pp?\.|pages?)"
_PLACE = rf"{_PART}\s+[\w.–-]*\w(?:\s+and\s+[\w.–-]*\w)?"
_TAIL = rf"(?:,\s+{_PLACE})*"
_LEAD = rf"(?:{_PLACE}\s+(?:of|in|from)\s+)?"
_OPEN = r"(?:(?<=\()|(?<=;\s)|(?<=\(see\s)|(?<=\(after\s)|(?<=\(from\s)|(?<=\(following\s)|(?<=\(e\.g\.\s))"
_KINDS = "|".join(NUMBERED_KINDS)
_PLURALS = {**{f"{kind}s": kind for kind in NUMBERED_KINDS}, "Corollaries": "Corollary"}
_AND = r"(?:,\s+and\s+|,\s+|\s+and\s+|\s+or\s+|\s+to\s+|–)"

REFERENCE = re.compile(
    "|".join(
        [
            # Vaswani et al. (2017, Table 3), Table 2 of Hahn (2020)
            rf"(?P<textual>{_LEAD}(?P<t_link>(?P<t_name>{_SEVERAL}|{_SURNAME})(?:['’]s)?\s+"
            rf"\((?P<t_year>{_YEAR})(?:{_TAIL}\)|(?=[,;]))){_TAIL})",
            # (Vaswani et al., 2017, Table 3; see Hahn, 2020)
            rf"(?P<bracketed>{_LEAD}(?P<b_link>(?P<b_name>{_SEVERAL}|{_OPEN}{_SURNAME}),?\s+(?P<b_year>{_YEAR})\b){_TAIL})",
            rf"(?P<single>(?P<s_kind>{_KINDS})\s+(?P<s_number>\d+\.\d+))",
            rf"(?P<plural>(?P<p_kind>{'|'.join(_PLURALS)})\s+\d+\.\d+(?:{_AND}\d+\.\d+)*)",
            r"(?P<chapter>[Cc]hapter\s+(?P<c_number>\d+))\b",
            rf"(?P<chapters>[Cc]hapters\s+\d+(?:{_AND}\d+)*)\b",
            rf"(?P<bare>(?:{_KINDS})\s+\d+)\b",
        ]
    )
)

_PARTS = ("textual", "bracketed", "single", "plural", "chapter", "chapters", "bare")

_UNTOUCHED = (
    nodes.FixedTextElement, nodes.literal, nodes.math, nodes.math_block, nodes.raw, nodes.reference, nodes.title,
    nodes.comment, nodes.image, pending_xref,
)  # fmt: skip


def _within(node: nodes.Node, kind: type[nodes.Element]) -> nodes.Element | None:
    """The outermost element of this kind around a node."""
    found, place = None, node.parent
    while place is not None:
        found = place if isinstance(place, kind) else found
        place = place.parent
    return found


def _place(node: nodes.Node) -> tuple[str | None, int | None]:
    """The file and line of a node, or of what it stands in."""
    while node.line is None and node.parent is not None:
        node = node.parent
    return node.source or node.document["source"], node.line


class Link(NamedTuple):
    """A piece of text that refers to something."""

    start: int
    end: int
    target: str


def links(text: str, cites: bool) -> Iterator[Link]:
    """The references in `text`, from left to right.

    `cites` says whether the passage cites the literature at all. A number without a chapter ("Table 3") then belongs to
    the work cited; otherwise it is ours, and wrong, and comes out as a target that does not exist.
    """
    for found in REFERENCE.finditer(text):
        part = next(group for group in _PARTS if found[group] is not None)
        if part == "textual":
            yield Link(found.start("t_link"), found.end("t_link"), citation(found["t_name"], found["t_year"]))
        elif part == "bracketed":
            yield Link(found.start("b_link"), found.end("b_link"), citation(found["b_name"], found["b_year"]))
        elif part == "single":
            yield Link(found.start(), found.end(), f"{found['s_kind']} {found['s_number']}")
        elif part == "chapter":
            yield Link(found.start(), found.end(), f"chapter {found['c_number']}")
        elif part in ("plural", "chapters"):
            kind, pattern = (_PLURALS[found["p_kind"]], r"\d+\.\d+") if part == "plural" else ("chapter", r"\d+")
            for place, number in enumerate(re.finditer(pattern, found[0])):
                start = found.start() + (number.start() if place else 0)
                yield Link(start, found.start() + number.end(), f"{kind} {number[0]}")
        elif part == "bare" and not cites:
            yield Link(found.start(), found.end(), " ".join(found[0].split()))


def citation(name: str, year: str) -> str:
    """What a work is registered as: "Hendrycks and Gimpel, 2016"."""
    return f"{' '.join(name.replace('&', 'and').split())}, {year}"


class LinkReferences(SphinxTransform):
    """Turn the references in running text into links."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        for element in list(self.document.findall(nodes.TextElement)):
            if not self.skipped(element):
                merge_texts(element)
        for text in list(self.document.findall(nodes.Text)):
            if not self.skipped(text.parent):
                self.link(text)

    @staticmethod
    def skipped(node: nodes.Node | None) -> bool:
        while node is not None:
            if isinstance(node, _UNTOUCHED) or "caption-label" in getattr(node, "attributes", {}).get("classes", ()):
                return True
            if isinstance(node, box_title):  # the summary of a proof too: a fold's handle holds no link
                return True
            if isinstance(node, nodes.Element) and node.get("no_links"):
                return True
            node = node.parent
        return False

    def link(self, text: nodes.Text) -> None:
        passage = _within(text, nodes.row) or _within(text, nodes.TextElement)
        cites = any(found["textual"] or found["bracketed"] for found in REFERENCE.finditer(passage.astext()))
        pieces: list[nodes.Node] = []
        at = 0
        for link in links(str(text), cites):
            if link.start > at:
                pieces.append(nodes.Text(text[at : link.start]))
            words = text[link.start : link.end]
            reference = pending_xref(
                "", nodes.inline("", words), refdomain="book", reftype="name", reftarget=link.target, refwarn=True,
                refdoc=self.env.docname,
            )  # fmt: skip
            reference.source, reference.line = _place(text)
            pieces.append(reference)
            at = link.end
        if pieces:
            text.parent.replace(text, [*pieces, nodes.Text(text[at:])] if at < len(text) else pieces)


def label(entry: Entry) -> str:
    """The authors as a citation names them."""
    surnames = [" ".join(person.prelast_names + person.last_names) for person in entry.persons["author"]]
    if len(surnames) == 1:
        return surnames[0]
    return f"{surnames[0]} and {surnames[1]}" if len(surnames) == 2 else f"{surnames[0]} et al."


class ListReferences(SphinxDirective):
    """`book-references FILE`: every entry of a BibTeX file, in order of author and year."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        relative, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        entries = parse_file(str(Path(path)), bib_format="bibtex").entries.values()
        for entry in entries:  # braces keep capitals where BibTeX would lower them; nothing is lowered here
            entry.fields["title"] = entry.fields["title"].replace("{", "").replace("}", "")
        listing = nodes.bullet_list("", classes=["references"], no_links=True)
        for entry in sorted(entries, key=lambda entry: (label(entry).casefold(), entry.fields["year"])):
            name = citation(label(entry), entry.fields["year"])
            identifier = "ref-" + anchor(name)
            item = nodes.list_item("", self.describe(entry), ids=[identifier])
            self.set_source_info(item)
            listing += item
            self.env.get_domain("book").note(name, identifier, entry.fields["title"], item)
        return [listing]

    @staticmethod
    def describe(entry: Entry) -> nodes.paragraph:
        fields = entry.fields
        people = [_written(person) for person in entry.persons["author"]]
        authors = people[0] if len(people) == 1 else f"{', '.join(people[:-1])} and {people[-1]}"
        venue = fields.get("journal") or fields.get("booktitle") or fields.get("publisher")
        paragraph = nodes.paragraph("", f"{authors} ({fields['year']}). ")
        paragraph += nodes.strong("", fields["title"] + ("" if fields["title"].endswith("?") else "."))
        paragraph += nodes.Text(" ")
        if venue:
            paragraph += [nodes.emphasis("", venue), nodes.Text(f"{_volume(entry)}. ")]
        if "note" in fields:
            paragraph += nodes.Text(f"{fields['note']}. ")
        for name, prefix, address in (
            ("doi", "doi:", "https://doi.org/"),
            ("eprint", "arXiv:", "https://arxiv.org/abs/"),
            ("url", "", ""),
        ):
            if name in fields:
                paragraph += nodes.reference("", prefix + fields[name], refuri=address + fields[name], internal=False)
                break
        return paragraph


def _written(person: Person) -> str:
    """ "Vaswani, A." """
    initials = " ".join(
        "-".join(f"{part[0]}." for part in name.split("-")) for name in person.first_names + person.middle_names
    )
    return f"{' '.join(person.prelast_names + person.last_names)}, {initials}"


def _volume(entry: Entry) -> str:
    volume, number, pages = (entry.fields.get(name) for name in ("volume", "number", "pages"))
    text = f" {volume}" if volume else ""
    text += f"({number})" if number else ""
    return text + (f", {pages.replace('--', '–')}" if pages else "")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("book-references", ListReferences)
    app.add_transform(LinkReferences)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
