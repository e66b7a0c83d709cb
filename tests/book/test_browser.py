"""Every page of the book, opened from disk in a browser that cannot reach the network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import planted
import pytest
from axe_playwright_python.sync_playwright import Axe
from bookbuild import PAGES, Built
from playwright.sync_api import Browser, Page, sync_playwright

OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
]
WIDE, PHONE = {"width": 1300, "height": 900}, {"width": 360, "height": 740}
SHOWN = [("book", name) for name in PAGES] + [("sink", planted.SECOND)]
"""Every page, and one made for the tests that has everything on it."""
OPEN_FOLDS = "document.querySelectorAll('article details').forEach(fold => { fold.open = true; })"

THIN_OUT = """() => {
    const seen = new Set();
    for (const word of document.querySelectorAll('div.highlight span')) {
        if (seen.has(word.className)) word.replaceWith(word.textContent);
        else seen.add(word.className);
    }
    for (const formula of [...document.querySelectorAll('.katex-html')].slice(3)) formula.replaceChildren('x');
}"""
"""Keep one word of each colour of code, and the first few formulas: axe looks at every element, and a chapter has
thousands that differ in nothing it looks at."""


def chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    assert found, "no browser: install Chromium, or set CHROMIUM to its path"
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=OPTIONS)
        yield browser
        browser.close()


class Visit:
    """A page, and what went wrong while it was open."""

    def __init__(self, browser: Browser, book: Built, name: str, size: dict[str, int], theme: str) -> None:
        self.context = browser.new_context(viewport=size, color_scheme=theme)
        self.page: Page = self.context.new_page()
        self.outside: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", self._request)
        self.page.on("requestfailed", lambda request: self.errors.append(f"not loaded: {request.url}"))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto((book.html / name).as_uri())
        self.page.evaluate("document.fonts.ready.then(() => true)")

    def _request(self, request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.outside.append(request.url)

    def __enter__(self) -> Page:
        return self.page

    def __exit__(self, *failure) -> None:
        self.context.close()
        if failure[0] is None:
            assert not self.outside, f"wanted the network: {self.outside}"
            assert not self.errors, f"console: {self.errors}"


@pytest.mark.parametrize(("which", "name"), SHOWN)
def test_complete_without_a_network(request: pytest.FixtureRequest, browser: Browser, which: str, name: str) -> None:
    with Visit(browser, request.getfixturevalue(which), name, WIDE, "light") as page:
        page.evaluate(OPEN_FOLDS)
        assert page.evaluate("[...document.querySelectorAll('.math')].filter(e => !e.querySelector('.katex')).length") == 0
        if page.query_selector(".katex"):
            assert page.evaluate(
                "document.fonts.load('16px KaTeX_Main').then(() => document.fonts.load('16px KaTeX_Math'))"
                ".then(() => [...document.fonts].filter(f => f.family.startsWith('KaTeX') && f.status === 'error').length)"
            ) == 0
            assert page.evaluate("document.fonts.check('16px KaTeX_Main')")
        pictures = page.evaluate("[...document.images].map(i => [i.getAttribute('src'), i.alt, i.complete && i.naturalWidth])")
        for address, alt, width in pictures:
            assert width, f"{address} does not show"
            least = 5 if "/_static/" in address else 20
            assert len(alt.strip()) >= least, f"{address} has no real alternative text: {alt!r}"
            assert not alt.startswith(("Image", "<Figure", "../_images")), f"{address}: {alt!r}"


@pytest.mark.parametrize(("which", "name"), SHOWN)
def test_fits_a_phone(request: pytest.FixtureRequest, browser: Browser, which: str, name: str) -> None:
    with Visit(browser, request.getfixturevalue(which), name, PHONE, "light") as page:
        page.evaluate(OPEN_FOLDS)
        page.wait_for_timeout(50)
        too_wide = page.evaluate(
            """() => {
                const room = document.documentElement.clientWidth, found = [];
                if (document.documentElement.scrollWidth <= room) return found;
                for (const e of document.querySelectorAll('article *'))
                    if (e.getBoundingClientRect().right > room + 1 && !e.closest('div.math, pre, .pst-scrollable-table-container'))
                        found.push(`${e.tagName}.${e.className}: ${e.textContent.trim().slice(0, 60)}`);
                return ['the page scrolls sideways', ...found];
            }"""
        )
        assert not too_wide
        clipped = page.evaluate(
            """() => [...document.querySelectorAll('div.math')].filter(e => {
                const box = e.getBoundingClientRect(), shown = e.querySelector('.katex-html').getBoundingClientRect();
                const tall = e.scrollHeight > e.clientHeight + 1;
                const wide = e.scrollWidth > e.clientWidth + 1;
                const reachable = ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.tabIndex === 0;
                return shown.left < box.left - 1 || tall || (wide && !reachable);
            }).map(e => e.querySelector('annotation').textContent)"""
        )
        assert not clipped
        escaping = page.evaluate(
            """() => [...document.querySelectorAll('article span.math')].filter(e =>
                !e.closest('.pst-scrollable-table-container')
                && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1
            ).map(e => e.querySelector('annotation').textContent)"""
        )
        assert not escaping, "formulas in a line that are wider than a phone"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("which", "name"), SHOWN)
def test_accessible(request: pytest.FixtureRequest, browser: Browser, which: str, name: str, theme: str) -> None:
    with Visit(browser, request.getfixturevalue(which), name, WIDE, theme) as page:
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        page.evaluate(OPEN_FOLDS)
        page.evaluate(THIN_OUT)
        # Without preload: axe would fetch the style sheets once more, which a page opened from disk may not.
        options = {"preload": False, "resultTypes": ["violations"]}
        if theme == "dark":  # all but the colours is the same in both
            options["runOnly"] = ["color-contrast", "link-in-text-block"]
        results = Axe().run(page, options=options).response
        grave = [
            f"{found['id']} ({found['impact']}): {node['html'][:160]} | {node.get('failureSummary', '')[:200]}"
            for found in results["violations"]
            if found["impact"] in ("serious", "critical")
            for node in found["nodes"][:4]
        ]
        assert not grave, "\n".join(grave)


def test_dark_pages_are_dark(book: Built, browser: Browser) -> None:
    with Visit(browser, book, "book/index.html", WIDE, "dark") as page:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(int(part) for part in colour[4:-1].split(",")) < 60


def test_the_theme_button_changes_the_theme(book: Built, browser: Browser) -> None:
    with Visit(browser, book, "book/index.html", WIDE, "light") as page:
        seen = {page.evaluate("document.documentElement.dataset.theme")}
        for _ in range(3):
            page.click(".article-header-buttons .theme-switch-button")
            seen.add(page.evaluate("document.documentElement.dataset.theme"))
        assert seen == {"light", "dark"}


def test_search_finds_a_page(book: Built, browser: Browser) -> None:
    with Visit(browser, book, "search.html", WIDE, "light") as page:
        page.goto((book.html / "search.html").as_uri() + "?q=equivariant")
        page.wait_for_selector("#search-results li a", timeout=5000)
        assert "Notation" in page.inner_text("#search-results")


def test_a_link_into_a_fold_opens_it_and_paper_has_no_folds(book: Built, browser: Browser) -> None:
    with Visit(browser, book, "book/how_to_use.html", WIDE, "light") as page:
        closed = "document.querySelectorAll('article details:not([open])').length"
        assert page.evaluate(closed) == 1
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(closed) == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate(closed) == 1
        page.evaluate("document.querySelector('article details p').id = 'inside'; location.hash = 'inside'")
        page.wait_for_function(closed + " === 0")


def test_what_scrolls_can_be_reached_by_keyboard_and_what_fits_is_no_stop(book: Built, browser: Browser) -> None:
    with Visit(browser, book, "book/notation.html", PHONE, "light") as page:
        stops = page.evaluate(
            "[...document.querySelectorAll('.pst-scrollable-table-container')]"
            ".map(e => [e.scrollWidth > e.clientWidth + 1, e.tabIndex === 0])"
        )
        assert stops and all(scrolls == stop for scrolls, stop in stops)
        assert any(scrolls for scrolls, _ in stops)


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("new Image().src = 'https://example.org/a.png'", "wanted the network"),
        ("console.error('planted')", "planted"),
        ("setTimeout(() => { throw new Error('thrown') })", "thrown"),
        ("document.querySelector('article p').style.color = '#bbb'; document.body.offsetHeight", None),
    ],
)
def test_a_planted_fault_is_noticed(book: Built, browser: Browser, fault: str, complaint: str | None) -> None:
    if complaint is None:
        with Visit(browser, book, "book/notation.html", WIDE, "light") as page:
            page.evaluate(fault)
            found = Axe().run(page, options={"preload": False, "runOnly": ["color-contrast"]}).response["violations"]
            assert [violation["impact"] for violation in found] == ["serious"]
        return
    with pytest.raises(AssertionError, match=complaint):
        with Visit(browser, book, "book/notation.html", WIDE, "light") as page:
            page.evaluate(fault)
            page.wait_for_timeout(100)
