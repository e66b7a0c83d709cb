"""Every page of the book, opened from disk in a browser that cannot reach the network."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import planted
import pytest
from axe_playwright_python.sync_playwright import Axe
from bookbuild import PAGES, Built
from browsing import PHONE, WIDE, Visit
from playwright.sync_api import Browser, Page

SHOWN = [("book", name) for name in PAGES] + [("sink", planted.SECOND)]
"""Every page, and one made for the tests that has everything on it."""
LIMIT = 1_000_000
"""Bytes of a page with all that it loads, compressed."""
OPEN_FOLDS = "document.querySelectorAll('article details').forEach(fold => { fold.open = true; })"

THIN_OUT = """() => {
    const seen = new Set();
    for (const word of document.querySelectorAll('div.highlight span')) {
        if (seen.has(word.className)) word.replaceWith(word.textContent);
        else seen.add(word.className);
    }
    for (const part of ['.katex-html', '.katex-mathml'])
        for (const formula of [...document.querySelectorAll(part)].slice(3)) formula.replaceChildren('x');
}"""
"""Keep one word of each colour of code, and the first few formulas: axe looks at every element, and a chapter has
thousands that differ in nothing it looks at."""

TOO_WIDE = """[...document.querySelectorAll('article pre')].filter(e => e.scrollWidth > e.clientWidth + 1)
    .map(e => e.textContent.split('\\n').reduce((a, b) => a.length > b.length ? a : b))"""

SAMPLE = """() => {
    const seen = new Set();
    for (const e of document.querySelectorAll('[data-sample]')) delete e.dataset.sample;
    for (const e of document.querySelectorAll('body *')) {
        if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
        const style = getComputedStyle(e), look = [style.color, style.fontSize, style.fontWeight];
        for (let at = e; at; at = at.parentElement) {
            const {backgroundColor, opacity} = getComputedStyle(at);
            look.push(at.tagName + '.' + at.className, backgroundColor, opacity);
            if (at.tagName === 'ARTICLE') break;
        }
        const key = look.join();
        if (!seen.has(key)) e.dataset.sample = seen.add(key).size;
    }
}"""
"""Mark one text of each look: axe is slow to judge colours, and what looks the same is as readable."""


@pytest.mark.parametrize(("which", "name"), SHOWN)
def test_at_a_desk(request: pytest.FixtureRequest, browser: Browser, which: str, name: str) -> None:
    """Complete without a network, light, and accessible in both themes."""
    book = request.getfixturevalue(which)
    with Visit(browser, book, name, WIDE, "light") as page:
        page.evaluate(OPEN_FOLDS)
        complete(page)
        assert not page.evaluate(TOO_WIDE), "code that scrolls sideways on a desk"
        light(page, book)
        page.evaluate(THIN_OUT)
        page.add_style_tag(content="* { transition: none !important }")  # colours are judged as they end up
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.wait_for_function(f"document.documentElement.dataset.theme === '{theme}'")
            grave = violations(page, theme)
            assert not grave, f"{theme}:\n" + "\n".join(grave)


def complete(page: Page) -> None:
    """Every formula is typeset in its fonts, every picture shows and says what it is."""
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


def light(page: Page, book: Built) -> None:
    """What the browser fetched for this page, fonts too, compressed as a server would send it."""
    asked = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
    files = {Path(unquote(urlsplit(address).path)) for address in [page.url, *asked] if address.startswith("file:")}
    assert all(path.is_relative_to(book.html) for path in files)
    size = {path: path.stat().st_size if path.suffix in (".png", ".woff2") else compressed(path) for path in files}
    assert sum(size.values()) < LIMIT, sorted(((n, path.name) for path, n in size.items()), reverse=True)[:5]


@cache
def compressed(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), compresslevel=6))


def violations(page: Page, theme: str) -> list[str]:
    """What axe calls serious or critical: of the colours of the theme, and in the light one of all else."""
    # Without preload: axe would fetch the style sheets once more, which a page opened from disk may not.
    options = {"preload": False, "resultTypes": ["violations"]}
    page.evaluate(SAMPLE)
    runs = [("[data-sample]", {"runOnly": ["color-contrast"]})]
    if theme == "light":
        runs.append((None, {"rules": {"color-contrast": {"enabled": False}}}))
    return [
        f"{found['id']} ({found['impact']}): {node['html'][:160]} | {node.get('failureSummary', '')[:200]}"
        for context, more in runs
        for found in Axe().run(page, context=context, options=options | more).response["violations"]
        if found["impact"] in ("serious", "critical")
        for node in found["nodes"][:4]
    ]


@pytest.mark.parametrize(("which", "name"), SHOWN)
def test_fits_a_phone(request: pytest.FixtureRequest, browser: Browser, which: str, name: str) -> None:
    with Visit(browser, request.getfixturevalue(which), name, PHONE, "light") as page:
        assert page.evaluate("document.querySelectorAll('details.box-proof[open]').length") == 0
        page.evaluate(OPEN_FOLDS)
        page.wait_for_timeout(50)
        too_wide = page.evaluate(
            """() => {
                const room = document.documentElement.clientWidth, found = [];
                if (document.documentElement.scrollWidth <= room) return found;
                for (const e of document.querySelectorAll('article *'))
                    if (e.getBoundingClientRect().right > room + 1
                        && !e.closest('div.math, pre, figure .view, .pst-scrollable-table-container'))
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
        shrunk = page.evaluate(
            """() => [...document.querySelectorAll('figure.book-figure img')].filter(e => {
                const frame = e.closest('.view');
                return e.clientWidth < 500 || frame.tabIndex !== 0 || getComputedStyle(frame).overflowX !== 'auto'
                    || e.getBoundingClientRect().left < 0;
            }).map(e => e.alt)"""
        )
        assert not shrunk, "pictures whose labels are too small, or that no key can scroll"


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
        page.wait_for_load_state("networkidle")  # what is still on its way when a page is left counts as not loaded
        page.goto((book.html / "search.html").as_uri() + "?q=equivariant")
        page.wait_for_selector("#search-results li a >> text=Notation", timeout=10_000)  # they come one by one


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


def test_a_proof_stands_open_at_a_desk_and_folds_on_a_phone(sink: Built, browser: Browser) -> None:
    state = "document.querySelector('details.box-proof').open"
    with Visit(browser, sink, planted.SECOND, WIDE, "light") as page:
        assert page.evaluate(state)
    with Visit(browser, sink, planted.SECOND, PHONE, "light") as page:
        assert not page.evaluate(state)
        page.focus("details.box-proof summary")
        page.keyboard.press("Enter")
        assert page.evaluate(state)
        page.tap("details.box-proof summary") if page.evaluate("'ontouchstart' in window") else page.click(
            "details.box-proof summary"
        )
        assert not page.evaluate(state)
        page.evaluate("location.hash = 'proof-of-theorem-2-1'")
        page.wait_for_function(state)


def test_without_scripts_nothing_is_out_of_reach(sink: Built, browser: Browser) -> None:
    with Visit(browser, sink, planted.SECOND, PHONE, "light", java_script_enabled=False) as page:
        assert page.locator("details.box-proof").get_attribute("open") is not None
        assert page.locator("details.box-proof p").first.is_visible()


def test_paper_shows_what_is_folded_or_behind_a_tab(book: Built, sink: Built, browser: Browser) -> None:
    with Visit(browser, sink, planted.SECOND, PHONE, "light") as page:
        folded = page.locator("details.box-proof > p").first, page.locator("details > p", has_text="Use Theorem 2.1").first
        page.emulate_media(media="print")
        for paragraph in folded:
            assert paragraph.bounding_box()["height"] > 10
    with Visit(browser, book, "book/other_worlds.html", WIDE, "light") as page:
        page.emulate_media(media="print")
        assert all(story.is_visible() for story in page.locator(".sd-tab-content").all())


def test_one_tab_moves_all_of_them_by_mouse_and_by_key(book: Built, browser: Browser) -> None:
    with Visit(browser, book, "book/other_worlds.html", PHONE, "light") as page:
        shown = "[...document.querySelectorAll('.sd-tab-content')].filter(e => e.checkVisibility()).map(e => e.id)"
        cricket = page.evaluate(shown)
        assert len(cricket) == 8
        page.locator(".sd-tab-set label", has_text="Kitchen").nth(2).click()
        kitchen = page.evaluate(shown)
        assert len(kitchen) == 8 and not set(kitchen) & set(cricket)
        page.locator(".sd-tab-set input:checked").first.focus()
        page.keyboard.press("ArrowLeft")
        assert page.evaluate(shown) == cricket


def test_the_keyboard_reaches_the_text_first_and_shows_where_it_is(book: Built, browser: Browser) -> None:
    with Visit(browser, book, "book/index.html", WIDE, "light") as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent.trim()") == "Skip to main content"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        for _ in range(12):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
            if page.evaluate("document.activeElement.closest('article') !== null"):
                break
            page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('article') !== null")


def test_what_scrolls_can_be_reached_by_keyboard_and_what_fits_is_no_stop(book: Built, browser: Browser) -> None:
    with Visit(browser, book, "book/notation.html", PHONE | {"width": 300}, "light") as page:
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
            assert [found.split(" ")[0] for found in violations(page, "light")] == ["color-contrast"]
        return
    with pytest.raises(AssertionError, match=complaint):
        with Visit(browser, book, "book/notation.html", WIDE, "light") as page:
            page.evaluate(fault)
            page.wait_for_timeout(100)
