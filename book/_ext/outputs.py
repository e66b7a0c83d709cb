"""Lines of evidence among what the cells print.

`verify` prints "✓ " and a statement that has just been found true; `check` prints one line that starts with ○, ✗ or ✓
and the number of an exercise. Such lines are sentences: on the page they are set as text, wrapped on a phone, with
their sign in front and a class for their kind (book.css). All other output stays as it was printed.

The directive `claim` shows one of these statements on a page that runs no code, with a link to where it was checked. A
claim that no chapter prints is a warning, and so fails the build.
"""

from __future__ import annotations

import itertools
import re
import zlib
from typing import Any

from book_domain import chapter_number
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

_CHECK = re.compile(r"[○✗✓] \d+\.\d+\b")


def line_class(line: str) -> str:
    """The class of one printed line, "" for ordinary ones."""
    if _CHECK.match(line):
        return {"○": "check-open", "✗": "check-wrong", "✓": "check-right"}[line[0]]
    return "verified" if line.startswith("✓ ") else ""


def evidence(line: str, name: str) -> nodes.paragraph:
    """One line as a paragraph, verbatim: nothing in it becomes a link or a curly quotation mark."""
    paragraph = nodes.paragraph("", "", classes=["evidence", name], no_links=True, support_smartquotes=False)
    paragraph += [nodes.inline("", line[:2], classes=["sign"]), nodes.Text(line[2:])]
    return paragraph


class SetEvidence(SphinxTransform):
    """Take the lines of evidence out of the printed blocks."""

    default_priority = 320

    def apply(self, **_: Any) -> None:
        for block in list(self.document.findall(nodes.literal_block)):
            lines = block.astext().rstrip("\n").split("\n")
            if "stream" not in block["classes"] or not any(map(line_class, lines)):
                continue
            parts: list[nodes.Node] = []
            for name, run in itertools.groupby(lines, key=line_class):
                if name:
                    parts += [self.place(evidence(line, name), line, name) for line in run]
                else:
                    text = "\n".join(run)
                    part = nodes.literal_block(text, text, **block.attributes)
                    part.source, part.line = block.source, block.line
                    parts += [part] if text.strip() else []
            # Not replace_self, which would hand the block's classes to one of its parts.
            block.parent.replace(block, parts)

    def place(self, paragraph: nodes.paragraph, line: str, name: str) -> nodes.paragraph:
        """Give a chapter's claim its id, the first time the page makes it, and register it."""
        identifier = f"claim-{zlib.crc32(line.encode()):08x}"
        if name == "verified" and chapter_number(self.env.docname) is not None and identifier not in self.document.ids:
            paragraph["ids"] = [identifier]
            self.document.ids[identifier] = paragraph
            domain = self.env.get_domain("book")
            if line not in domain.targets:
                domain.note(line, identifier, "Where this was checked", paragraph)
        return paragraph


class ShowClaim(SphinxDirective):
    """`claim`: a statement that a chapter has checked, with a link to the check."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        line = "✓ " + " ".join(" ".join(self.content).split())
        paragraph = evidence(line, "verified")
        reference = pending_xref(
            "", nodes.inline("", line[2:]), refdomain="book", reftype="name", reftarget=line, refwarn=True,
            refdoc=self.env.docname,
        )  # fmt: skip
        self.set_source_info(reference)
        paragraph[1:] = [reference]
        return [paragraph]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(SetEvidence)
    app.add_directive("claim", ShowClaim)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
