"""What the extensions make of notebooks, and what they refuse."""

from __future__ import annotations

import re

import planted
import pytest
from bookbuild import Built, build, plant
from bs4 import BeautifulSoup, Tag
from references import links

URL, SECOND = planted.URL, planted.SECOND


@pytest.fixture(scope="module")
def page(sink: Built) -> Tag:
    return BeautifulSoup(sink.page(SECOND), "html.parser").article


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Built:
    source = plant(tmp_path_factory.mktemp("wrong"), {"02_wrong.ipynb": planted.WRONG})
    return build(source, tmp_path_factory.mktemp("refused"))


def words(tag: Tag) -> str:
    return " ".join(tag.get_text().split())


def test_builds_without_a_warning(sink: Built) -> None:
    assert sink.status == 0, sink.log
    assert "WARNING" not in sink.log


@pytest.mark.parametrize(
    ("anchor", "label", "name"),
    [
        ("definition-2-1", "Definition 2.1", "Two words"),
        ("theorem-2-1", "Theorem 2.1", "About f(PX)"),
        ("lemma-2-1", "Lemma 2.1", None),
        ("proposition-2-1", "Proposition 2.1", "P"),
        ("corollary-2-1", "Corollary 2.1", "C"),
        ("exercise-2-1", "Exercise 2.1", "Undo it"),
    ],
)
def test_numbered_boxes_have_an_anchor_and_a_heading(page: Tag, anchor: str, label: str, name: str | None) -> None:
    box = page.find(id=anchor)
    assert f"box-{anchor.split('-')[0]}" in box["class"]
    assert words(box.select_one(".box-label")) == label
    assert box.find("a", class_="headerlink")["href"] == f"#{anchor}"
    if name is None:
        assert box.select_one(".box-name") is None
    elif label == "Theorem 2.1":
        assert box.select_one(".box-name .katex")
    else:
        assert words(box.select_one(".box-name")) == name


@pytest.mark.parametrize("kind", ["warning", "note", "predict", "bridge"])
def test_other_boxes_have_a_heading_and_no_anchor(page: Tag, kind: str) -> None:
    (box,) = page.select(f".box-{kind}")
    assert not box.get("id")
    assert box.select_one(".box-title")


def test_a_box_is_named_for_those_who_hear_it(page: Tag) -> None:
    assert page.select_one(".box-warning")["aria-label"] == "Warning · Mind this"
    assert page.find(id="exercise-2-1").select_one(".dots")["aria-label"] == "difficulty 2 of 3"


def test_a_proof_can_be_folded_and_stands_open(page: Tag) -> None:
    (proof,) = page.select("details.box-proof")
    assert proof["id"] == "proof-of-theorem-2-1"
    assert proof.has_attr("open")
    assert words(proof.summary) == "Proof of Theorem 2.1."
    assert not proof.summary.find("a"), "a link within the handle of a fold cannot be reached by every reader"


def test_other_quotations_stay_quotations(page: Tag) -> None:
    assert [words(quote) for quote in page.find_all("blockquote")] == [
        "Bold words that open a quotation and nothing else.",
        "An ordinary quotation.",
    ]


def test_the_caption_below_a_cell_becomes_the_caption_of_its_figure(page: Tag) -> None:
    figure = page.find(id="figure-2-1")
    assert figure.name == "figure"
    assert figure.img["alt"] == "A grey rectangle, twice as wide as it is high."
    assert words(figure.figcaption).startswith("Figure 2.1. A grey rectangle, and ")
    assert not figure.figcaption.find("em")
    assert not figure.find_parent(class_="cell")
    assert not page.select(".cell img")


def test_the_caption_below_a_table_becomes_its_caption(page: Tag) -> None:
    figure = page.find(id="table-2-1")
    assert figure.table
    assert words(figure.figcaption) == "Table 2.1. Two columns, as in Theorem 2.1.#"
    assert figure.figcaption.find("a", string=re.compile(r"Theorem\s+2.1"))["href"] == "#theorem-2-1"


def test_plain_words_become_links(page: Tag) -> None:
    section = page.find(id="references")
    found = {words(a): a["href"] for a in section.select("p > a.internal")}
    papers = "../book/references.html#ref-"
    assert found == {
        "Vaswani et al. (2017)": papers + "vaswani-et-al-2017",
        "Lee et al., 2019": papers + "lee-et-al-2019",
        "Zaheer et al., 2017": papers + "zaheer-et-al-2017",
        "Hahn (2020, section 4)": papers + "hahn-2020",
        "Hendrycks & Gimpel, 2016": papers + "hendrycks-and-gimpel-2016",
        "Kingma and Ba’s (2015)": papers + "kingma-and-ba-2015",
        "Delétang et al. (2022)": papers + "deletang-et-al-2022",
        "Press et al. (2021)": papers + "press-et-al-2021",
        "Figures 2.1": "#figure-2-1",
        "Figure 2.1": "#figure-2-1",
        "Table 2.1": "#table-2-1",
    }


def test_links_across_chapters(sink: Built) -> None:
    article = BeautifulSoup(sink.page("notebooks/01_first.html"), "html.parser").article
    assert {words(a): a["href"] for a in article.select("p > a.internal")} == {
        "Chapter 2": "02_everything.html",
        "Theorem 2.1": "02_everything.html#theorem-2-1",
        "chapters 1": "#",
        "2": "02_everything.html",
        "Definitions 1.1": "#definition-1-1",
        "2.1": "02_everything.html#definition-2-1",
    }


def test_lines_of_evidence_are_set_apart_and_verbatim(page: Tag) -> None:
    lines = [(p["class"][1], p.get_text()) for p in page.select("p.evidence")]
    assert lines == [
        ("check-open", "○ 2.1 not attempted yet"),
        ("check-wrong", "✗ 2.1 that is the order itself"),
        ("check-right", "✓ 2.1 right"),
        ("verified", '✓ Weights "sum" to one (Theorem 9.9).'),
        ("verified", "✓ Drawn."),
    ]
    assert not page.select("p.evidence a")
    assert [pre.get_text().strip() for pre in page.select(".stream pre")] == ["a plain line", "another"]


def test_a_claim_on_another_page_leads_to_its_check(sink: Built) -> None:
    link = BeautifulSoup(sink.page("book/index.html"), "html.parser").select_one("p.evidence a")
    address, _, identifier = link["href"].partition("#")
    assert address == "../notebooks/01_first.html"
    made = BeautifulSoup(sink.page("notebooks/01_first.html"), "html.parser").find(id=identifier)
    assert words(made)[2:] == words(link)


def test_a_claim_that_no_chapter_makes_is_named(wrong: Built) -> None:
    for claim in planted.claims().splitlines():
        assert any(claim in line and "WARNING" in line for line in wrong.log.splitlines())


def test_formulas_are_typeset_for_eye_and_ear(page: Tag) -> None:
    formulas = page.select(".math")
    assert len(formulas) > 8
    for formula in formulas:
        assert formula.select_one(".katex-html[aria-hidden=true]")
        assert formula.select_one(".katex-mathml math")


def test_the_number_of_a_chapter_comes_from_its_file(sink: Built) -> None:
    whole = BeautifulSoup(sink.page(SECOND), "html.parser")
    assert whole.title.get_text() == "2. Everything — Where Order Comes From"
    assert words(whole.article.h1.select_one(".chapter")) == "2."
    assert [words(a) for a in whole.select("nav.bd-links a[href*=first], nav.bd-links li.active a")] == [
        "1. The first",
        "2. Everything",
    ]


def test_the_front_page_lists_chapters_with_their_time(sink: Built) -> None:
    index = BeautifulSoup(sink.page("book/index.html"), "html.parser")
    assert [(words(li.a), words(li.select_one(".minutes"))) for li in index.select(".chapter-list li")] == [
        ("1. The first", "30–40 min"),
        ("2. Everything", "45 min"),
    ]


def test_a_published_book_has_its_buttons_on_the_right_pages(sink: Built) -> None:
    colab = f"https://colab.research.google.com/github/someone/somewhere/blob/main/{SECOND[:-5]}.ipynb"
    chapter = BeautifulSoup(sink.page(SECOND), "html.parser")
    assert [a["href"] for a in chapter.select("a[href*=colab]")] == [colab]
    notation = BeautifulSoup(sink.page("book/notation.html"), "html.parser")
    assert not notation.select("a[href*=colab]")
    for soup in (chapter, notation):
        assert URL in [a["href"] for a in soup.select("a[href]")]
        assert "master" not in str(soup.select("a[href*='github.com']"))


def test_a_book_with_faults_is_not_built(wrong: Built) -> None:
    assert wrong.status != 0


@pytest.mark.parametrize("fault", [*planted.FAULTS, *planted.DRAWN_FAULTS])
def test_each_fault_is_named_with_its_page(wrong: Built, fault: str) -> None:
    lines = [line for line in wrong.log.splitlines() if fault in line]
    assert lines, f"nothing in the log says {fault}:\n{wrong.log}"
    assert any("02_wrong" in line and "WARNING" in line for line in lines)


def test_nothing_else_is_faulted(wrong: Built) -> None:
    """The fixture holds one fault a cell, so that no warning hides behind another."""
    expected = len(planted.FAULTS) + len(planted.DRAWN_FAULTS)
    warnings = [line for line in wrong.log.splitlines() if "WARNING" in line and "02_wrong" in line]
    assert len(warnings) == expected, "\n".join(warnings)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("Theorem 2.1 and 0.5 of it", ["Theorem 2.1"]),
        ("Theorems 2.1, 2.2 and 2.10", ["Theorem 2.1", "Theorem 2.2", "Theorem 2.10"]),
        ("Exercises 2.1–2.3", ["Exercise 2.1", "Exercise 2.3"]),
        ("Corollaries 2.1 and 2.2", ["Corollary 2.1", "Corollary 2.2"]),
        ("chapter 2, and chapters 1, 2 and 3", ["chapter 2", "chapter 1", "chapter 2", "chapter 3"]),
        ("(Vaswani et al., 2017, Table 3, row E)", ["Vaswani et al., 2017"]),
        ("Vaswani et al. (2017), Table 2.1, and Table 2.2", ["Vaswani et al., 2017", "Table 2.2"]),
        ("Table 2.1 of Shaw et al. (2018) and Table 2.1", ["Shaw et al., 2018", "Table 2.1"]),
        ("(see Hahn, 2020; Lee et al., 2019, section 4)", ["Hahn, 2020", "Lee et al., 2019"]),
        ("Hochreiter and Schmidhuber (1997)", ["Hochreiter and Schmidhuber, 1997"]),
        ("(Hochreiter & Schmidhuber, 1997)", ["Hochreiter and Schmidhuber, 1997"]),
        ("Delétang et al.’s (2022) table", ["Delétang et al., 2022"]),
        ("In Paris, 2017 was warm; in 2017 (2 000 people)", []),
        ("sunspots (1700–2008), the year (2017)", []),
        ("the Theorem, a Table, chapter and verse", []),
    ],
)
def test_what_plain_words_refer_to(text: str, targets: list[str]) -> None:
    assert [link.target for link in links(text, cites=True)] == targets


def test_a_number_without_a_chapter_is_ours_unless_something_is_cited() -> None:
    assert [link.target for link in links("Theorem 3", cites=False)] == ["Theorem 3"]
    assert not list(links("Theorem 3", cites=True))
