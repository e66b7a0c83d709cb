"""Lines of evidence among what the cells print.

`verify` prints "✓ " and a statement that has just been found true; `check` prints one line that starts with ○, ✗ or ✓
and the number of an exercise. Printed output is otherwise left as it is; these lines get a class, so that the page can
show them quietly, and wrap them on a phone (book.css).
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


class MarkEvidence(SphinxTransform):
    """Split printed output into runs of lines of one class."""

    default_priority = 320

    def apply(self, **_: Any) -> None:
        for block in list(self.document.findall(nodes.literal_block)):
            if "stream" not in block["classes"]:
                continue
            lines = block.astext().rstrip("\n").split("\n")
            if not any(map(line_class, lines)):
                continue
            parts = []
            for name, run in itertools.groupby(lines, key=line_class):
                text = "\n".join(run)
                if text.strip():
                    part = nodes.literal_block(text, text, **block.attributes)
                    part["classes"] = block["classes"] + ([name] if name else [])
                    part["language"] = "none" if name else block.get("language", "none")
                    part.source, part.line = block.source, block.line
                    parts.append(part)
            block.replace_self(parts)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(MarkEvidence)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
