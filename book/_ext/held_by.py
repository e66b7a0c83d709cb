"""The page of known faults: what goes wrong, what is right, and what in this repository would notice.

The directive `known-faults FILE` lists the faults of a TOML file, part by part. The file belongs to the tests, which find
every test, lint and exercise that it names; so the page promises nothing that is not there.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from book_domain import anchor
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class ListKnownFaults(SphinxDirective):
    """`known-faults FILE`: a section for each part, in it each fault with what is right and what holds it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir) / self.arguments[0]
        self.env.note_dependency(str(path))
        parts: dict[str, list[dict]] = {}
        for fault in tomllib.loads(path.read_text(encoding="utf-8"))["fault"]:
            parts.setdefault(fault["part"], []).append(fault)
        return [self.part(name, faults) for name, faults in parts.items()]

    def part(self, name: str, faults: list[dict]) -> nodes.section:
        listing = nodes.definition_list("", classes=["known-faults"])
        for fault in faults:
            term = nodes.term("", fault["name"], ids=["fault-" + anchor(fault["name"])])
            self.state.document.ids[term["ids"][0]] = term
            right = nodes.paragraph("", fault["right"])
            held = nodes.paragraph("", "", *holders(fault["held_by"]), classes=["held-by"])
            for node in (term, right, held):
                self.set_source_info(node)
            listing += nodes.definition_list_item("", term, nodes.definition("", right, held))
        section = nodes.section("", nodes.title("", name), listing, names=[nodes.fully_normalize_name(name)])
        self.set_source_info(section)
        self.state.document.note_implicit_target(section, section)
        return section


def holders(names: list[str]) -> list[nodes.Node]:
    """What holds a fault, in words: exercises first, then the tests of each file, then lints."""
    exercises = [name.partition(" ")[2] for name in names if name.startswith("exercise ")]
    lints = [name.partition(" ")[2] for name in names if name.startswith("lint ")]
    tests: dict[str, list[str]] = {}
    for name in names:
        if name.startswith("tests/"):
            path, _, test = name.partition("::")
            tests.setdefault(path, []).extend([test.removeprefix("test_")] if test else [])
    groups: list[list[nodes.Node]] = [[nodes.Text(f"Exercise {number}")] for number in exercises]
    groups += [[*said(of_file), nodes.Text(" in " if of_file else "all of "), nodes.literal("", path)] for path, of_file in tests.items()]
    groups += [[*said([lint]), nodes.Text(" among the lints")] for lint in lints]
    words: list[nodes.Node] = [nodes.Text("Held by ")]
    for place, group in enumerate(groups):
        words += [nodes.Text("; ")] * (place > 0) + group
    return [*words, nodes.Text(".")]


def said(tests: list[str]) -> list[nodes.Node]:
    """The names of tests, which are sentences."""
    words: list[nodes.Node] = []
    for place, test in enumerate(tests):
        words += [nodes.Text(", ")] * (place > 0) + [nodes.emphasis("", test.replace("_", " "))]
    return words


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("known-faults", ListKnownFaults)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
