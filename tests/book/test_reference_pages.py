"""The pages that are made from others: glossary and its links, library, claims ledger; and the tools that look at them all."""

from __future__ import annotations

import dataclasses
import http.server
import importlib
import inspect
import json
import pkgutil
import re
import threading
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.request import urlopen

import links
import page_weight
import planted
import posenc
import pytest
from bookbuild import FAULTS, PAGES, ROOT, Built
from bs4 import BeautifulSoup, Tag
from repository import pages_address

NOTEBOOKS = sorted(ROOT.glob("notebooks/[0-9][0-9]_*.ipynb"))


@cache
def parsed(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def article(book: Built, name: str) -> Tag:
    return parsed(book.html / name).article


def chapter_page(book: Built, path: Path) -> Tag:
    return article(book, f"notebooks/{path.stem}.html")


def words(tag: Tag) -> str:
    return " ".join(tag.get_text().split())


# Glossary


def test_the_first_use_of_a_term_is_a_link_and_no_other(sink: Built) -> None:
    page = article(sink, planted.SECOND)
    section = page.find(id="words")
    linked = {words(a): a["href"].partition("#")[2] for a in section.select("a.term")}
    assert linked == {"mask": "term-mask", "Tokens": "term-token", "head": "term-head"}
    assert words(section.p).count("A mask does, once; masks come later.") == 1
    assert section.select_one("a.term").parent.get_text().index("A mask") < 120
    targets = [a["href"] for a in page.select("a.term")]
    assert len(targets) == len(set(targets))
    assert page.select_one("#definition-2-1 a.term")["title"] == (
        "Said of a map whose output is reordered in the same way as its input."
    )


def test_terms_are_not_linked_outside_of_chapters(book: Built) -> None:
    for name in PAGES:
        if name.startswith("book/"):
            assert not article(book, name).select("a.term")


def test_terms_are_linked_in_no_heading_lead_or_code(book: Built) -> None:
    for name in PAGES:
        if name.startswith("notebooks/"):
            page = article(book, name)
            assert page.select("a.term")
            assert not page.select(":is(h1, h2, h3, h4, .box-title, pre, code, .math, strong, figcaption, .evidence, a) a.term")


def test_the_glossary_is_in_order_and_explains_itself_without_formulas_first(book: Built) -> None:
    page = article(book, "book/glossary.html")
    terms = [words(term) for term in page.select("dt")]
    assert len(terms) > 40
    assert terms == sorted(terms, key=str.casefold)
    assert not [term for term in terms if "|" in term]
    for definition in page.select("dd"):
        first = re.split(r"(?<=[.?!])\s", words(definition))[0]
        assert "\\" not in first and "$" not in first, first


# Ledger


def printed_claims(path: Path) -> list[str]:
    """The different statements that a notebook has verified, in order."""
    found: dict[str, None] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            for line in "".join(output.get("text", [])).split("\n"):
                if line.startswith("✓ ") and not re.match(r"✓ \d+\.\d+\b", line):
                    found[line.rstrip()] = None
    return list(found)


def written_proofs(path: Path) -> int:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return len(re.findall(r"(?m)^> \*\*Proof", text))


def test_the_ledger_holds_what_the_chapters_hold(book: Built) -> None:
    page = article(book, "book/ledger.html")
    rows = [[words(cell) for cell in row.select("td")] for row in page.select("table tbody tr")]
    for path, row in zip(NOTEBOOKS, rows, strict=False):
        section = page.find(id=f"chapter-{int(path.name[:2])}")
        listed = [line.get_text() for line in section.select("p.evidence")]
        assert listed == printed_claims(path)
        assert row[1:3] == [str(len(listed)), str(written_proofs(path))]
        assert len(section.select("a[href*='#proof']")) == written_proofs(path)
    assert rows[-1][0] == "all chapters" and len(rows) == len(NOTEBOOKS) + 1
    for column in (1, 2, 3):
        assert int(rows[-1][column]) == sum(int(row[column]) for row in rows[:-1])


def test_a_line_of_the_ledger_leads_to_the_very_same_line(book: Built) -> None:
    page = article(book, "book/ledger.html")
    lines = {path.stem: {line.get("id"): line.get_text() for line in chapter_page(book, path).select("p.evidence")}
             for path in NOTEBOOKS}  # fmt: skip
    for line in page.select("p.evidence"):
        chapter, identifier = re.fullmatch(r"\.\./notebooks/(\w+)\.html#(.+)", line.a["href"]).groups()
        assert lines[chapter][identifier] == line.get_text()


def test_every_citation_of_a_chapter_is_in_the_ledger(book: Built) -> None:
    ledger = article(book, "book/ledger.html")
    for path in NOTEBOOKS:
        page = chapter_page(book, path)
        cited = {a["href"].partition("#")[2] for a in page.select("a.internal[href*='references.html#ref-']")}
        listed = ledger.find(id=f"chapter-{int(path.name[:2])}").select("a[href*='references.html#ref-']")
        assert {a["href"].partition("#")[2] for a in listed} == cited


# Library


def modules() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(posenc.__path__) if not module.name.startswith("_")]


@pytest.mark.parametrize("name", modules())
def test_the_library_page_has_every_public_name_with_its_signature(book: Built, name: str) -> None:
    module = importlib.import_module(f"posenc.{name}")
    page = article(book, "book/library.html")
    assert page.find(id=f"posenc.{name}")
    public = getattr(module, "__all__", None) or [
        item for item, thing in vars(module).items()
        if not item.startswith("_") and getattr(thing, "__module__", "") == module.__name__
        and (inspect.isfunction(thing) or inspect.isclass(thing))
    ]  # fmt: skip
    for item in public:
        section = page.find(id=f"posenc.{name}.{item}")
        assert section, f"{name}.{item} is missing"
        thing = getattr(module, item)
        if getattr(thing, "_is_protocol", False):
            continue
        if inspect.isclass(thing) and not dataclasses.is_dataclass(thing) and "__init__" not in vars(thing):
            continue
        shown = section.select_one("pre").get_text()
        for parameter in inspect.signature(thing).parameters:
            assert re.search(rf"\b{parameter}\b", shown), f"{item} is shown without {parameter}: {shown}"


def test_the_core_is_shown_as_it_is(book: Built) -> None:
    source = (ROOT / "lib/posenc/attention.py").read_text(encoding="utf-8")
    assert article(book, "book/library.html").find("pre").get_text().strip() == source.strip()


# Known faults


def test_every_known_fault_is_shown_with_all_that_holds_it(book: Built) -> None:
    page = article(book, "book/known_faults.html")

    def typed(tag: Tag) -> str:
        return words(tag).replace("’", "'")

    shown = {typed(term): term.find_next_sibling("dd") for term in page.select("dl.known-faults dt")}
    faults = tomllib.loads((ROOT / FAULTS).read_text(encoding="utf-8"))["fault"]
    assert len(page.select("dl.known-faults dt")) == len(faults)
    for fault in faults:
        definition = shown[fault["name"]]
        right, held = map(typed, definition.select("p"))
        assert right == fault["right"] and held.startswith("Held by ")
        linked = {words(a): a["href"].partition("#")[2] for a in definition.select("a")}
        for holder in fault["held_by"]:
            kind, _, name = holder.partition(" ")
            path, _, test = holder.partition("::")
            if kind == "exercise":
                assert linked[f"Exercise {name}"] == "exercise-" + name.replace(".", "-")
            elif kind == "lint":
                assert f"{name.replace('_', ' ')} among the lints" in held
            else:
                assert test.removeprefix("test_").replace("_", " ") in held and path in held
    headings = [words(heading).rstrip("#") for heading in page.select("h2")]
    assert headings == list(dict.fromkeys(fault["part"] for fault in faults)) and len(headings) > 4


# Other worlds


def test_each_idea_is_told_in_both_worlds_and_says_where_it_ends(book: Built) -> None:
    page = article(book, "book/other_worlds.html")
    sections = page.select("section section")
    assert len(sections) == 8
    for section in sections:
        assert [words(label) for label in section.select("label")] == ["Cricket", "Kitchen"]
        for story in section.select(".sd-tab-content"):
            assert words(story).count("Where it breaks down.") == 1
            assert len(words(story).split()) > 80
        assert section.find("a", string=re.compile("^Chapters? "))


# What a link to the book shows


def test_a_published_book_names_its_picture_and_pages_in_full(sink: Built) -> None:
    page = BeautifulSoup(sink.page(planted.SECOND), "html.parser")
    home = "https://someone.github.io/somewhere/"
    assert page.find("meta", property="og:url")["content"] == home + planted.SECOND
    assert page.find("link", rel="canonical")["href"] == home + planted.SECOND
    assert page.find("meta", property="og:image")["content"] == home + "_static/preview.png"
    assert page.find("meta", attrs={"name": "twitter:card"})["content"] == "summary_large_image"


def test_the_pictures_that_stand_for_the_book_are_there(book: Built) -> None:
    page = BeautifulSoup(book.page("book/index.html"), "html.parser")
    for tag, attribute in (
        (page.find("meta", property="og:image"), "content"),
        (page.find("link", rel="apple-touch-icon"), "href"),
        (page.find("link", rel="icon"), "href"),
    ):
        address = tag[attribute]
        path = book.html / address.partition("_static/")[1] / address.partition("_static/")[2].partition("?")[0]
        assert path.is_file(), address


@pytest.mark.parametrize(
    ("repository", "pages"),
    [
        ("https://github.com/Someone/Some.where", "https://someone.github.io/Some.where/"),
        ("https://github.com/someone/someone.github.io", "https://someone.github.io/"),
        ("https://gitlab.com/someone/somewhere", ""),
        ("", ""),
    ],
)
def test_where_github_shows_the_pages_of_a_repository(repository: str, pages: str) -> None:
    assert pages_address(repository) == pages


# Tools


@pytest.fixture
def outside() -> Iterator[str]:
    """A server that knows a page, refuses robots, forgets a page, and redirects as doi.org does."""
    answers = {"/page": 200, "/robots": 403, "/gone": 404, "/doi": 302}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(answers[self.path])
            if self.path == "/doi":
                self.send_header("Location", "/gone")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_make_links_tells_good_from_broken(outside: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    page = tmp_path / "book" / "page.html"
    page.parent.mkdir()
    page.write_text(f'<a href="{outside}/page#x">a</a> <a href="{outside}/page">b</a> <a href="other.html">c</a>')
    assert links.outside_links(tmp_path) == {f"{outside}/page": ["book/page.html"]}
    assert links.main(tmp_path) == 0
    assert capsys.readouterr().out == "1 addresses: 1 good, 0 refused, 0 broken\n"
    page.write_text(f'<a href="{outside}/robots">a</a> <a href="{outside}/gone">b</a>')
    assert links.main(tmp_path) == 1
    out = capsys.readouterr().out
    assert f"refused 403   {outside}/robots  (book/page.html)" in out
    assert f"broken: 404   {outside}/gone  (book/page.html)" in out
    assert links.judge("http://127.0.0.1:9/", pause=0).startswith("broken: ")


def test_a_doi_is_good_when_it_leads_somewhere(outside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert links.judge(f"{outside}/doi") == "broken: 404"
    monkeypatch.setattr(links, "DOI", outside)
    assert links.judge(f"{outside}/doi") == "good"


def test_the_book_links_outside_only_by_https(book: Built) -> None:
    found = links.outside_links(book.html)
    assert len(found) > 20
    assert all(address.startswith("https://") for address in found)


def test_a_page_is_weighed_as_it_arrives(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<link rel=stylesheet href=s.css><p>" + "text " * 1000)
    (tmp_path / "s.css").write_text("p { color: red }" * 1000)
    with page_weight.served(tmp_path) as (address, answers):
        request = urlopen(address + "page.html?v=1")
        assert request.headers["Content-Encoding"] == "gzip"
        body = request.read()
    assert answers == [(".html", len(body))]
    assert len(body) < 200
