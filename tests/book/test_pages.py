"""The files of the built book, read without a browser."""

from __future__ import annotations

import gzip
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bookbuild import PAGES, ROOT, Built
from bs4 import BeautifulSoup
from pybtex.database import parse_file

LIMIT = 1_000_000
"""Bytes of a page with all that it loads, compressed."""
TEXT_LIMIT = 400_000
"""The same without its pictures."""


@cache
def parsed(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(path: Path) -> frozenset[str]:
    return frozenset(tag["id"] for tag in parsed(path).select("[id]"))


def loaded(page: Path) -> list[str]:
    """What a browser fetches by itself to show the page."""
    soup = parsed(page)
    found = [tag["src"] for tag in soup.select("script[src], img[src], iframe[src], source[src]")]
    return found + [tag["href"] for tag in soup.select("link[rel~=stylesheet], link[rel~=icon], link[rel~=preload]")]


def test_the_book_builds_without_a_warning(book: Built) -> None:
    assert book.status == 0, book.log


def test_every_page_of_the_contents_is_built_and_no_other(book: Built) -> None:
    built = {path.relative_to(book.html).as_posix() for path in book.html.rglob("*.html")}
    built = {name for name in built if not name.startswith(("_static/", "_sources/"))}
    assert built == {*PAGES, "index.html"}


def test_every_notebook_is_in_the_contents() -> None:
    notebooks = {path.relative_to(ROOT).with_suffix(".html").as_posix() for path in ROOT.glob("notebooks/*.ipynb")}
    assert notebooks <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_every_link_inside_the_book_leads_somewhere(book: Built, name: str) -> None:
    page = book.html / name
    broken = []
    for tag in parsed(page).select("a[href]"):
        address = urlsplit(tag["href"])
        if address.scheme or address.netloc:
            continue
        target = (page.parent / unquote(address.path)).resolve() if address.path else page
        if not target.is_file():
            broken.append(tag["href"])
        elif address.fragment and target.suffix == ".html" and unquote(address.fragment) not in anchors(target):
            broken.append(tag["href"])
    assert not broken


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_only_what_the_book_carries(book: Built, name: str) -> None:
    page = book.html / name
    for address in loaded(page):
        assert not urlsplit(address).scheme, f"{name} fetches {address}"
        assert (page.parent / urlsplit(address).path).resolve().is_file(), f"{name} lacks {address}"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_script_that_it_does_not_use(book: Built, name: str) -> None:
    scripts = [tag["src"].split("?")[0].rsplit("/", 1)[-1] for tag in parsed(book.html / name).select("script[src]")]
    assert len(scripts) == len(set(scripts))
    text = (book.html / name).read_text(encoding="utf-8").lower()
    for word in ("thebe", "mathjax@", "fontawesome", "togglebutton"):
        assert word not in text
    assert ("tabs.js" in text) == ("sphinx-design" in text) == ('class="sd-tab-set' in text)
    if "highlight" not in text:
        assert "copybutton.js" not in scripts


@pytest.mark.parametrize("name", PAGES)
def test_ids_are_unique(book: Built, name: str) -> None:
    ids = [tag["id"] for tag in parsed(book.html / name).select("article [id]") if not tag.find_parent("svg")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", [page for page in PAGES if page != "search.html"])
def test_headings_are_in_order(book: Built, name: str) -> None:
    levels = [int(tag.name[1]) for tag in parsed(book.html / name).select("article :is(h1, h2, h3, h4, h5, h6)")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:]))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_light(book: Built, name: str) -> None:
    page = book.html / name
    files = {page} | {(page.parent / urlsplit(address).path).resolve() for address in loaded(page)}
    size = {path: len(gzip.compress(path.read_bytes())) for path in files}
    # The faces of an ordinary formula, which the style sheet of KaTeX asks for.
    if "katex" in page.read_text(encoding="utf-8"):
        for face in ("Main-Regular", "Math-Italic", "Size1-Regular", "Size2-Regular", "AMS-Regular"):
            font = book.html / f"_static/katex/fonts/KaTeX_{face}.woff2"
            size[font] = font.stat().st_size
    pictures = sum(size[path] for path in files if "_images" in path.parts)
    text = sum(size.values()) - pictures
    assert text < TEXT_LIMIT, f"{text:,} bytes"
    assert text + pictures < LIMIT, f"{text + pictures:,} bytes, {pictures:,} of them pictures"


def test_the_style_of_formulas_asks_only_for_fonts_that_are_there(book: Built) -> None:
    folder = book.html / "_static" / "katex"
    fonts = set(re.findall(r"url\(([^)]+)\)", (folder / "katex.min.css").read_text(encoding="utf-8")))
    assert fonts == {f"fonts/{path.name}" for path in folder.glob("fonts/*")}
    assert all(font.endswith(".woff2") for font in fonts)


@pytest.mark.parametrize("name", [page for page in PAGES if page != "search.html"])
def test_a_page_says_what_it_is_to_those_who_link_to_it(book: Built, name: str) -> None:
    soup = parsed(book.html / name)
    assert 30 < len(soup.find("meta", attrs={"name": "description"})["content"]) <= 202
    for name in ("og:title", "og:description", "og:site_name", "og:type"):
        assert soup.find("meta", attrs={"property": name})["content"].strip()
    assert soup.find("html")["lang"] == "en"


def test_every_work_can_be_linked_to(book: Built) -> None:
    works = parse_file(str(ROOT / "book" / "references.bib")).entries
    listed = [name for name in anchors(book.html / "book" / "references.html") if name.startswith("ref-")]
    assert len(listed) == len(works)
    for work in works.values():
        assert {"doi", "eprint", "url"} & set(work.fields), f"{work.key} says nowhere where to find it"
    assert not re.search(r"[{}]", parsed(book.html / "book" / "references.html").article.get_text())


def test_an_unpublished_book_has_no_button_that_leads_nowhere(book: Built) -> None:
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    published = bool(config["repository"]["url"])
    for name in PAGES:
        links = [tag["href"] for tag in parsed(book.html / name).select("a[href*='colab.research'], a[href*='github.com']")]
        if not published:
            assert not links
        assert all("/blob/main/notebooks/" in link for link in links if "colab.research" in link)


def test_jupyter_book_is_held_below_version_2() -> None:
    for name in ("requirements.txt", "book/requirements.txt"):
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if re.match(r"jupyter-book==1\.", line)]
        assert not [line for line in lines if re.match(r"jupyter-book(?!==1\.)", line)]


def test_building_asks_for_no_torch() -> None:
    light = (ROOT / "book" / "requirements.txt").read_text(encoding="utf-8")
    assert not re.search(r"(?m)^(torch|numpy|matplotlib|posenc)\b", light)
