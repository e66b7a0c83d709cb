"""The glossary, and links to it from the first use of each of its terms in a chapter.

The page `book/glossary` holds definition lists. A term line reads

    permutation matrix
    equivariant | equivariant, equivariance, equivariantly
    value |

and what follows the bar is what links to it: other forms of the word, or nothing where the word has an everyday
meaning as well. Without a bar the term itself does. Plurals in -s and -es are understood.

In a chapter, the first time that running text uses a term, the word becomes an unobtrusive link, with the first sentence
of the definition for those who point at it. Headings, the leads of boxes, captions, tables, bold words, code, formulas
and other links are left alone.
"""

from __future__ import annotations

import re
from typing import Any

from book_domain import chapter_number, give_id
from boxes import box_title
from docutils import nodes
from references import LinkReferences
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)

PAGE = "book/glossary"

_SENTENCE = re.compile(r".+?[.?!](?=\s|$)", re.DOTALL)
_UNTOUCHED = (nodes.caption, nodes.entry, nodes.strong, nodes.term, nodes.option_list, box_title)


def terms(env: BuildEnvironment) -> dict[str, tuple[str, str]]:
    """Every form that links: its anchor, and what a reader sees on pointing at the link."""
    return env.metadata.get(PAGE, {}).get("terms", {})


class ReadGlossary(SphinxTransform):
    """Give the terms of the glossary their ids, and remember their forms."""

    default_priority = 330

    def apply(self, **_: Any) -> None:
        if self.env.docname != PAGE:
            return
        forms: dict[str, tuple[str, str]] = {}
        for item in self.document.findall(nodes.definition_list_item):
            term, definition = item[0], item[-1]
            shown, bar, others = (part.strip() for part in term.astext().partition("|"))
            term[:] = [nodes.Text(shown)]
            identifier = give_id(self.document, term, f"term {shown}")
            opening = _SENTENCE.match(" ".join(definition.astext().split()))
            if opening is None:
                LOGGER.warning('the term "%s" is not explained in a sentence', shown, location=term)
                continue
            for form in others.split(",") if bar else [shown]:
                form = " ".join(form.split())
                if form in forms:
                    LOGGER.warning('"%s" is in the glossary twice', form, location=term)
                if form:
                    forms[form] = (identifier, opening[0])
        self.env.metadata[PAGE]["terms"] = forms


def pattern(forms: dict[str, Any]) -> re.Pattern[str]:
    """What finds any of these words in a text, at the start of a sentence too; the longest first."""
    alternatives = []
    for form in sorted(forms, key=len, reverse=True):
        first, rest = form[0], re.escape(form[1:]).replace(r"\ ", r"\s+")
        alternatives.append(f"[{first.upper()}{first}]{rest}")
    return re.compile(rf"(?<![\w-])({'|'.join(alternatives)})(?:s|es)?(?![\w-])")


class LinkTerms(SphinxPostTransform):
    """Turn the first use of each term in a chapter into a link."""

    default_priority = 5
    formats = ("html",)

    def run(self, **_: Any) -> None:
        forms = terms(self.env)
        if chapter_number(self.env.docname) is None or not forms:
            return
        find = pattern(forms)
        by_words = {" ".join(form.split()).lower(): target for form, target in forms.items()}
        page = self.app.builder.get_relative_uri(self.env.docname, PAGE)
        linked: set[str] = set()
        for text in list(self.document.findall(nodes.Text)):
            if not self.skipped(text):
                self.link(text, find, by_words, page, linked)

    @staticmethod
    def skipped(text: nodes.Text) -> bool:
        if LinkReferences.skipped(text.parent):
            return True
        place = text.parent
        while place is not None:
            if isinstance(place, _UNTOUCHED) or place.get("nb_element") == "cell_code":
                return True
            place = place.parent
        return False

    @staticmethod
    def link(
        text: nodes.Text, find: re.Pattern[str], forms: dict[str, tuple[str, str]], page: str, linked: set[str]
    ) -> None:
        pieces: list[nodes.Node] = []
        at = 0
        for found in find.finditer(text):
            identifier, explained = forms[" ".join(found[1].split()).lower()]
            if identifier in linked:
                continue
            linked.add(identifier)
            pieces.append(nodes.Text(text[at : found.start()]))
            words = nodes.inline("", found[0])
            address = {"refuri": f"{page}#{identifier}", "internal": True, "reftitle": explained}
            pieces.append(nodes.reference("", "", words, classes=["term"], **address))
            at = found.end()
        if pieces:
            text.parent.replace(text, [*pieces, nodes.Text(text[at:])])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(ReadGlossary)
    app.add_post_transform(LinkTerms)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
