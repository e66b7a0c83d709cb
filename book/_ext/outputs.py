"""Lines of evidence among what the cells print.

`verify` prints "✓ " and a statement that has just been found true; `check` prints one line that starts with ○, ✗ or ✓
and the number of an exercise. Such lines are sentences: on the page they are set as text, wrapped on a phone, with
their sign in front and a class for their kind (book.css). All other output stays as it was printed.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

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
                    parts += [evidence(line, name) for line in run]
                else:
                    text = "\n".join(run)
                    part = nodes.literal_block(text, text, **block.attributes)
                    part.source, part.line = block.source, block.line
                    parts += [part] if text.strip() else []
            # Not replace_self, which would hand the block's classes to one of its parts.
            block.parent.replace(block, parts)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(SetEvidence)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
