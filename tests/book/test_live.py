"""The live figures in a browser without a network: driven by mouse, finger and keys, their numbers those of the library."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from itertools import permutations

import notebook_files
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from bookbuild import Built
from browsing import PHONE, WIDE, Visit
from playwright.sync_api import Browser, Locator, Page

from posenc import live
from posenc.live import data, numbers

KINDS = ["shuffle", "dials", "offset", "symmetry"]
SHAPES = [(PHONE, "light"), (PHONE, "dark"), (WIDE, "light"), (WIDE, "dark")]
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><body style="margin: 12px"><main><h1>{title}</h1>
{body}</main>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """One page for each figure, and one that holds each of them twice."""
    folder = tmp_path_factory.mktemp("live")
    pieces = {kind: getattr(live, kind)()._repr_html_() for kind in KINDS}
    pages = pieces | {"all": "\n".join(pieces[kind] for kind in KINDS + KINDS)}
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(PAGE.format(title=name, body=body), encoding="utf-8")
    return Built(folder, 0, "")


@pytest.fixture
def open_page(browser: Browser, folder: Built) -> Iterator:
    """Open one of the pages; it must finish without an error or a request."""
    visits = []

    def opened(name: str, size: dict = WIDE, theme: str = "light", **options) -> Page:
        visit = Visit(browser, folder, f"{name}.html", size, theme, **options)
        visits.append(visit)
        return visit.__enter__()

    yield opened
    for visit in visits:
        visit.__exit__(None, None, None)


def shown(page: Page, kind: str, which: int = 0) -> dict:
    """The numbers that a figure shows, in full precision."""
    return json.loads(page.locator(f'[data-live="{kind}"]').nth(which).get_attribute("data-numbers"))


def assert_equal(got: dict, want: dict, tolerance: float = 1e-9) -> None:
    for name, value in want.items():
        if isinstance(value, bool | list):
            assert got[name] == value, name
        else:
            torch.testing.assert_close(
                torch.tensor(got[name], dtype=torch.float64),
                torch.as_tensor(value, dtype=torch.float64),
                rtol=0,
                atol=tolerance,
                msg=lambda text, name=name: f"{name}: {text}",
            )


def number(text: str) -> float:
    """A number as the figures write it: with a true minus, with a power of ten, without a leading zero."""
    digits = text.strip().replace("−", "-")
    raised = re.fullmatch(r"(-?[\d.]+)·10(\S+)", digits)
    if not raised:
        return float(digits)
    return float(f"{raised[1]}e{raised[2].translate(str.maketrans('⁻⁰¹²³⁴⁵⁶⁷⁸⁹', '-0123456789'))}")


def middle(place: Locator) -> tuple[float, float]:
    box = place.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def swipe(page: Page, *path: tuple[float, float]) -> None:
    """One finger from the first point through all others. It rests before it leaves, or the browser would take it for
    a fling, and the next tap for a hand that stops it."""
    touch = page.context.new_cdp_session(page)
    for kind, point in [("touchStart", path[0]), *(("touchMove", point) for point in path[1:])]:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": point[0], "y": point[1]}]})
    page.wait_for_timeout(200)
    touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": path[-1][0], "y": path[-1][1]}]})
    page.wait_for_timeout(50)
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def said(page: Page, kind: str) -> str:
    return page.locator(f'[data-live="{kind}"] .said').first.inner_text()


# Shuffle


def check_shuffle(page: Page, which: int = 0) -> dict:
    """Compare all that the figure holds and shows with the library; return its numbers."""
    got = shown(page, "shuffle", which)
    want = numbers.shuffle(got["sentence"], got["order"], got["positions"])
    assert_equal(got, want)
    figure = page.locator('[data-live="shuffle"]').nth(which)
    rows = figure.locator(".sr tr").evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
    for row, weights, output in zip(rows[1:], want["weights"], want["output"], strict=True):
        assert [number(cell) for cell in row[1:-1]] == pytest.approx(weights.tolist(), abs=0.00501)
        assert [number(part) for part in row[-1].split(",")] == pytest.approx(output.tolist(), abs=0.00501)
    told = number(figure.locator(".verdict b").inner_text())
    assert told == pytest.approx(want["gap"], abs=0.00051)
    assert (told < 1e-9) == (want["gap"] < 1e-9)
    # What is seen is what is read out: cells by their place on the screen.
    seen = figure.locator(".weight").evaluate_all(
        "cells => cells.map(cell => [cell.style.getPropertyValue('--y'), cell.style.getPropertyValue('--x'), cell.textContent])"
    )
    assert [number(cell) for *_, cell in sorted(seen)] == pytest.approx(want["weights"].flatten().tolist(), abs=0.00501)
    return got


@pytest.mark.parametrize("sentence", data.SENTENCES)
def test_shuffle_agrees_with_the_library_in_every_mode(open_page, sentence: str) -> None:
    page = open_page("shuffle")
    page.get_by_role("combobox", name="sentence").select_option(sentence)
    words = sentence.split()
    for mode, label in {"none": "none", "slots": "stay in their slots", "travel": "travel with their tokens"}.items():
        page.get_by_role("radio", name=label).check()
        for _ in range(4):
            page.get_by_role("button", name="Shuffle").click()
            got = check_shuffle(page)
            assert (got["sentence"], got["positions"]) == (sentence, mode)
            assert (got["gap"] > 0.01) == (mode == "slots"), "no order but the first is left alone by codes in slots"
            if len(set(words)) < len(words):
                assert ("rows are equal" in said(page, "shuffle")) == (mode == "none")
        page.get_by_role("button", name="First order").click()
        assert check_shuffle(page)["order"] == list(range(len(words)))
        assert shown(page, "shuffle")["gap"] == 0


def test_shuffle_by_mouse(open_page) -> None:
    page = open_page("shuffle")
    chips = [page.get_by_role("button", name=re.compile("^" + name)) for name in ("the₁", "dog", "chased", "the₂", "cat")]
    (x, y), (to, _) = middle(chips[0]), middle(chips[3])
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move((x + to) / 2, y + 3, steps=4)
    assert check_shuffle(page)["order"][0] == 1, "the others make room while the token is held"
    page.mouse.move(to, y + 3, steps=4)
    page.mouse.up()
    assert check_shuffle(page)["order"] == [1, 2, 3, 0, 4]
    page.wait_for_timeout(350)
    places = [middle(chip)[0] for chip in chips]
    assert sorted(range(5), key=places.__getitem__) == [1, 2, 3, 0, 4]
    # Far beyond either end is the end.
    page.mouse.move(*middle(chips[2]))
    page.mouse.down()
    page.mouse.move(1290, y, steps=3)
    page.mouse.up()
    assert check_shuffle(page)["order"] == [1, 3, 0, 4, 2]


def test_shuffle_by_keys(open_page) -> None:
    page = open_page("shuffle")
    page.get_by_role("button", name=re.compile("^the₁")).focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert check_shuffle(page)["order"] == [1, 2, 0, 3, 4]
    focused = "document.querySelector('.posenc-live').shadowRoot.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused) == "the₁, slot 3 of 5"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "the₂, slot 4 of 5", "the tab key goes from left to right"
    for _ in range(9):
        page.keyboard.press("ArrowLeft")
    assert check_shuffle(page)["order"] == [3, 1, 2, 0, 4]
    page.get_by_role("button", name="Move the chosen token right").click()
    assert check_shuffle(page)["order"] == [1, 3, 2, 0, 4]
    page.get_by_role("button", name=re.compile("^cat")).focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Move the chosen token left").click()
    assert check_shuffle(page)["order"] == [1, 3, 2, 4, 0]
    page.get_by_role("radio", name="none").focus()
    page.keyboard.press("ArrowRight")
    assert check_shuffle(page)["positions"] == "slots"


def test_shuffle_by_finger(open_page) -> None:
    page = open_page("shuffle", PHONE, has_touch=True)
    first, last = (page.get_by_role("button", name=re.compile("^" + name)) for name in ("the₁", "cat"))
    first.scroll_into_view_if_needed()
    (x, y), (to, _) = middle(first), middle(last)
    swipe(page, (x, y), *((x + (to - x) * part / 8, y) for part in range(1, 9)))
    assert check_shuffle(page)["order"] == [1, 2, 3, 4, 0]
    page.get_by_role("button", name="Shuffle").tap()
    assert check_shuffle(page)["order"] != [1, 2, 3, 4, 0]


# Dials


def check_dials(page: Page) -> dict:
    got = shown(page, "dials")
    want = numbers.dials(got["position"], got["base"])
    assert_equal(got, want)
    figure = page.locator('[data-live="dials"]')
    assert int(figure.locator(".digits").inner_text(), 2) == got["position"]
    entries = [number(text.split()[1]) for text in figure.locator(".entry").all_inner_texts()]
    assert entries == pytest.approx(want["row"].tolist(), abs=0.00501)
    tips = figure.locator(".hand").evaluate_all(
        "hands => hands.map(hand => new DOMMatrix(getComputedStyle(hand).transform)).map(turn => [turn.b, turn.a])"
    )
    assert [x for tip in tips for x in tip] == pytest.approx(want["row"].tolist(), abs=1e-5), "where the hands point"
    assert [int(text.split()[2]) for text in figure.locator(".bit").all_inner_texts()] == want["bits"]
    return got


def test_dials_agree_with_the_library(open_page) -> None:
    page = open_page("dials", reduced_motion="reduce")
    slider = page.get_by_role("slider", name="position")
    assert check_dials(page)["position"] == 45
    for base in ("100", "10 000"):
        page.get_by_role("radio", name=base, exact=True).check()
        for position in (0, 1, 2, 3, 100, 127, 128, 254, 255):
            slider.fill(str(position))
            got = check_dials(page)
            assert (got["position"], got["base"]) == (position, float(base.replace(" ", "")))


def test_dials_by_mouse_and_keys(open_page) -> None:
    page = open_page("dials", reduced_motion="reduce")
    slider = page.get_by_role("slider", name="position")
    page.get_by_role("button", name="position: one more").click()
    page.get_by_role("button", name="position: one more").click()
    page.get_by_role("button", name="position: one less").click()
    assert check_dials(page)["position"] == 46
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert check_dials(page)["position"] == 47
    page.keyboard.press("End")
    page.get_by_role("button", name="position: one more").click()
    assert check_dials(page)["position"] == 255, "the end is the end"
    page.keyboard.press("Home")
    slider.press("Home")
    assert check_dials(page)["position"] == 0
    assert slider.get_attribute("aria-valuetext") == "0"
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert abs(check_dials(page)["position"] - 127) <= 2


def test_dials_by_finger(open_page) -> None:
    page = open_page("dials", PHONE, has_touch=True, reduced_motion="reduce")
    page.get_by_role("button", name="position: one more").tap()
    assert check_dials(page)["position"] == 46
    box = page.get_by_role("slider", name="position").bounding_box()
    y = box["y"] + box["height"] / 2
    swipe(page, (box["x"] + 30, y), (box["x"] + 90, y), (box["x"] + box["width"] - 2, y))
    assert check_dials(page)["position"] > 240


def test_dials_play_and_stop(open_page) -> None:
    page = open_page("dials", reduced_motion="reduce")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("JSON.parse(document.querySelector('[data-live]').dataset.numbers).position >= 47")
    assert page.locator(".said").get_attribute("aria-live") == "off", "not a sentence every moment"
    page.get_by_role("button", name="Stop").click()
    stopped = check_dials(page)["position"]
    page.wait_for_timeout(900)
    assert shown(page, "dials")["position"] == stopped
    assert page.locator(".said").get_attribute("aria-live") == "polite"


# Offset


def check_offset(page: Page) -> dict:
    got = shown(page, "offset")
    want = numbers.offset(*(got[name] for name in ("position", "offset", "width", "base", "between", "seed")))
    assert_equal(got, want)
    told = re.search(r"at position (\d+) and offset (\d+) is (\S+)\. It (stands still|moves).* range is (\S+?)\.(?: |$)", said(page, "offset"))
    assert (int(told[1]), int(told[2])) == (got["position"], got["offset"])
    assert number(told[3]) == pytest.approx(got["score"], abs=0.00051)
    assert (told[4] == "stands still") == (want["spread"] < 1e-9) == (number(told[5]) < 1e-9)
    law = re.search(r"logarithmic law says (\S+)\.$", said(page, "offset"))
    assert (law is not None) == (got["between"] == "nothing")
    assert law is None or number(law[1]) == pytest.approx(want["law"], abs=0.00051)
    return got


@pytest.mark.parametrize("base", ["100", "10 000", "1 000 000"])
def test_offset_agrees_with_the_library(open_page, base: str) -> None:
    page = open_page("offset")
    page.get_by_role("radio", name=base, exact=True).check()
    steps = random.Random(base)
    for width in ("16", "32", "128", "512"):
        page.get_by_role("radio", name=width, exact=True).check()
        for between in ("nothing", "random", "turns"):
            page.get_by_role("radio", name=re.compile("^" + between)).check()
            page.get_by_role("slider", name="position").fill(str(steps.randrange(201)))
            page.get_by_role("slider", name="offset").fill(str(steps.randrange(len(data.OFFSET["offsets"]))))
            got = check_offset(page)
            assert (got["width"], got["base"], got["between"]) == (int(width), int(base.replace(" ", "")), between)
            assert (got["spread"] > 0.05) == (between == "random")


def test_offset_draws_what_it_says(open_page) -> None:
    """The curves, read back from the picture."""
    page = open_page("offset")
    page.get_by_role("radio", name=re.compile("^random")).check()
    height, top, bottom = 190, 8, 30

    def values(which: int, kind: str = ".curve") -> list[tuple[float, float]]:
        path = page.locator(f".charts svg >> nth={which}").locator(kind).get_attribute("d")
        points = [tuple(map(float, pair.split())) for pair in path[1:].split("L")]
        return [(x, 1.1 - (y - top) / (height - top - bottom) * 2.2) for x, y in points]

    got = check_offset(page)
    drawn = values(0)
    assert len(drawn) == 201
    for p in range(0, 201, 20):
        want = numbers.offset(p, got["offset"], 32, 10000.0, "random", got["seed"])["score"]
        assert drawn[p][1] == pytest.approx(float(want), abs=0.01)
    fall = values(1)
    assert len(fall) == 1000
    for k in (1, 2, 7, 50, 999):
        assert fall[k - 1][1] == pytest.approx(float(numbers.offset(0, k, 32, 10000.0, "nothing", 1)["kernel"]), abs=0.01)
    ends = values(1, ".law")
    assert [y for _, y in ends] == pytest.approx([numbers.offset(0, k, 32, 10000.0, "nothing", 1)["law"] for k in (1, 1000)], abs=0.01)


def test_offset_by_mouse_keys_and_finger(open_page) -> None:
    page = open_page("offset", PHONE, has_touch=True)
    first = check_offset(page)
    assert (first["position"], first["offset"]) == (20, 7)
    page.get_by_role("button", name="position p: one more").tap()
    page.get_by_role("slider", name="position").press("PageUp")
    moved = check_offset(page)
    assert moved["position"] > 30 and moved["score"] == pytest.approx(first["score"], abs=1e-12)
    offset = page.get_by_role("slider", name="offset")
    offset.press("ArrowRight")
    assert check_offset(page)["offset"] == 8 and offset.get_attribute("aria-valuetext") == "8"
    offset.press("End")
    assert check_offset(page)["offset"] == 1000 and offset.get_attribute("aria-valuetext") == "1000"
    box = offset.bounding_box()
    page.mouse.click(box["x"] + 2, box["y"] + box["height"] / 2)
    assert check_offset(page)["offset"] == 1
    another = page.get_by_role("button", name="Draw another")
    assert another.is_disabled()
    page.get_by_role("radio", name="nothing").press("ArrowRight")
    assert check_offset(page)["between"] == "random"
    before = check_offset(page)["score"]
    another.tap()
    assert check_offset(page)["seed"] == 2 and abs(check_offset(page)["score"] - before) > 1e-3


# Symmetry


def check_symmetry(page: Page) -> dict:
    got = shown(page, "symmetry")
    bias = [[-float("inf") if entry is None else entry for entry in row] for row in got["bias"]]
    assert_equal(got, numbers.symmetry_of(bias, got["order"]))
    figure = page.locator('[data-live="symmetry"]')
    orders = [list(map(int, text)) for text in figure.locator(".tile").all_inner_texts()]
    assert orders == [list(order) for order in permutations(range(got["n"]))]
    lit = figure.locator(".tile").evaluate_all("tiles => tiles.map(tile => tile.dataset.lit)")
    assert [order for order, light in zip(orders, lit) if light == "true"] == got["kept"]
    assert figure.locator(".count").inner_text().startswith(f"{got['count']} of {len(orders)} orders ")
    cells = [text.replace("−∞", "-inf") for text in figure.locator(".matrix").first.locator("button").all_inner_texts()]
    assert [number(cell) for cell in cells] == [entry for row in bias for entry in row]
    order = got["order"]
    moved = figure.locator(".matrix").nth(1).locator("span").all_inner_texts()
    assert [number(cell.replace("−∞", "-inf")) for cell in moved] == [bias[i][j] for i in order for j in order]
    told = re.search(r"The order ([\d ]+) is (unseen|seen).*\| is (\S+)\.$", said(page, "symmetry"))
    assert list(map(int, told[1].split())) == order and (told[2] == "unseen") == got["unseen"]
    assert (number(told[3]) < 1e-9) == got["unseen"]
    return got


@pytest.mark.parametrize(
    ("preset", "four", "five"),
    [("none", 24, 120), ("causal mask", 1, 1), ("−|i − j|", 2, 2), ("−(i − j)", 1, 1), ("cyclic", 4, 5), ("random", None, None)],
)
def test_symmetry_agrees_with_the_library(open_page, preset: str, four: int | None, five: int | None) -> None:
    page = open_page("symmetry")
    steps = random.Random(preset)
    for n, count in ((4, four), (5, five)):
        page.get_by_role("radio", name=str(n), exact=True).check()
        for _ in range(3 if count is None else 1):
            page.get_by_role("button", name=preset, exact=True).click()
            for _ in range(3):
                tiles = page.locator(".tile input")
                tiles.nth(steps.randrange(tiles.count())).check()
                got = check_symmetry(page)
            assert got["n"] == n and count in (None, got["count"])


def test_symmetry_by_mouse(open_page) -> None:
    page = open_page("symmetry")
    page.get_by_role("button", name="none", exact=True).click()
    cells = page.locator(".matrix").first.locator("button")
    page.get_by_role("radio", name="−∞").check()
    cells.nth(1).click()
    got = check_symmetry(page)
    assert got["bias"][0] == [0, None, 0, 0] and got["count"] == 2
    # A line drawn through the first column.
    page.get_by_role("radio", name="2", exact=True).check()
    page.mouse.move(*middle(cells.nth(0)))
    page.mouse.down()
    for i in (4, 8, 12):
        page.mouse.move(*middle(cells.nth(i)), steps=3)
    page.mouse.up()
    page.mouse.move(*middle(cells.nth(6)))
    assert [row[0] for row in check_symmetry(page)["bias"]] == [2, 2, 2, 2]
    assert check_symmetry(page)["bias"][1] == [2, 0, 0, 0], "once the button is up, the brush is up"
    page.locator(".tile").nth(3).click()
    assert check_symmetry(page)["order"] == [0, 2, 3, 1]


def test_symmetry_by_keys(open_page) -> None:
    page = open_page("symmetry")
    page.get_by_role("button", name="none", exact=True).press("Enter")
    assert check_symmetry(page)["count"] == 24
    page.get_by_role("button", name=re.compile("^query 0, key 0")).focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    assert check_symmetry(page)["bias"][1] == [0, 0, 1, 0]
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    assert check_symmetry(page)["bias"][1] == [0, 0, 2, 0], "one stop for the cells, one for the brush"
    chosen = page.locator(".tile input:checked")
    chosen.press("ArrowLeft")
    assert check_symmetry(page)["order"] == [3, 2, 0, 1]


def test_symmetry_by_finger(open_page) -> None:
    page = open_page("symmetry", PHONE, has_touch=True)
    page.get_by_role("button", name="none", exact=True).tap()
    cells = page.locator(".matrix").first.locator("button")
    cells.nth(5).scroll_into_view_if_needed()
    cells.nth(5).tap()
    assert check_symmetry(page)["bias"][1] == [0, 1, 0, 0]
    (x, y), (to, _) = middle(cells.nth(8)), middle(cells.nth(11))
    swipe(page, (x, y), *((x + (to - x) * part / 6, y) for part in range(1, 7)))
    assert check_symmetry(page)["bias"][2] == [1, 1, 1, 1]
    page.locator(".tile").nth(5).tap()
    assert check_symmetry(page)["order"] == [0, 3, 2, 1]


# In the chapters


def drive(page: Page, kind: str) -> dict:
    """One act by mouse and one by key, each compared with the library."""
    figure = page.locator(f'[data-live="{kind}"]')
    if kind == "shuffle":
        figure.get_by_role("radio", name="stay in their slots").check()
        figure.get_by_role("button", name=re.compile("^dog")).press("ArrowRight")
        return check_shuffle(page)
    if kind == "dials":
        figure.get_by_role("button", name="position: one more").click()
        figure.get_by_role("slider").press("ArrowRight")
        return check_dials(page)
    if kind == "offset":
        figure.get_by_role("radio", name=re.compile("^random")).check()
        figure.get_by_role("slider", name="offset").press("ArrowRight")
        return check_offset(page)
    figure.get_by_role("button", name="cyclic").click()
    figure.get_by_role("button", name=re.compile("^query 0, key 1")).press("ArrowRight")
    page.keyboard.press("Enter")
    return check_symmetry(page)


def in_chapters() -> list[tuple[str, list[str]]]:
    """The pages of the book that show live figures, and which."""
    texts = {path: path.read_text(encoding="utf-8") for path in notebook_files.paths()}
    found = {path: re.findall(r'data-live=\\"(\w+)\\"', text) for path, text in texts.items()}
    return [(f"notebooks/{path.stem}.html", kinds) for path, kinds in found.items() if kinds]


def test_every_figure_is_in_the_book_once() -> None:
    assert sorted(kind for _, kinds in in_chapters() for kind in kinds) == sorted(KINDS)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("name", "kinds"), in_chapters())
def test_the_chapters_figures_work(book: Built, browser: Browser, name: str, kinds: list[str], theme: str) -> None:
    size = PHONE if theme == "dark" else WIDE
    with Visit(browser, book, name, size, theme, reduced_motion="reduce") as page:
        for kind in kinds:
            figure = page.locator(f'figure:has([data-live="{kind}"])')
            assert figure.locator("figcaption").inner_text().startswith("Figure ")
            first, moved = shown(page, kind), drive(page, kind)
            assert moved != first
            ground = figure.locator(".posenc-live").evaluate("node => getComputedStyle(node).backgroundColor")
            assert ground == page.evaluate("getComputedStyle(document.body).backgroundColor"), "the book's own theme"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# All of them


def test_several_on_one_page_live_apart(open_page) -> None:
    page = open_page("all")
    assert page.locator(".posenc-live").count() == 8
    second = page.locator('[data-live="shuffle"]').nth(1)
    second.get_by_role("radio", name="stay in their slots").check()
    second.get_by_role("button", name="Shuffle").click()
    assert (shown(page, "shuffle")["positions"], shown(page, "shuffle")["order"]) == ("none", [0, 1, 2, 3, 4])
    assert check_shuffle(page, 1)["positions"] == "slots"
    repeated = page.evaluate(
        """() => [document, ...[...document.querySelectorAll('.posenc-live')].map(root => root.shadowRoot)].flatMap(tree => {
            const ids = [...tree.querySelectorAll('[id]')].map(node => node.id);
            return ids.filter((id, i) => ids.indexOf(id) !== i);
        })"""
    )
    assert not repeated


@pytest.mark.parametrize(("size", "theme"), SHAPES)
def test_accessible_in_every_state(open_page, size: dict, theme: str) -> None:
    page = open_page("all", size, theme, reduced_motion="reduce")
    page.evaluate("[...document.querySelectorAll('.posenc-live')].slice(4).forEach(root => root.nextElementSibling.remove() || root.remove())")
    figures = {kind: page.locator(f'[data-live="{kind}"]') for kind in KINDS}
    states = [
        lambda: None,
        lambda: (
            figures["shuffle"].get_by_role("radio", name="stay in their slots").check(),
            figures["shuffle"].get_by_role("button", name="Shuffle").click(),
            figures["dials"].get_by_role("slider").fill("200"),
            figures["offset"].get_by_role("radio", name=re.compile("random")).check(),
            figures["symmetry"].get_by_role("button", name="causal mask").click(),
        ),
        lambda: (
            figures["shuffle"].get_by_role("radio", name="travel with their tokens").check(),
            figures["shuffle"].get_by_role("combobox", name="sentence").select_option(data.SENTENCES[2]),
            figures["symmetry"].get_by_role("radio", name="5", exact=True).check(),
            figures["symmetry"].get_by_role("button", name="random").click(),
        ),
    ]
    for change in states:
        change()
        page.wait_for_timeout(50)
        found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        assert not [(one["id"], node["html"][:140], node.get("failureSummary", "")[:200]) for one in found for node in one["nodes"][:3]]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
        outside = page.evaluate(
            """() => [...document.querySelectorAll('.posenc-live')].flatMap(root => {
                const frame = root.shadowRoot.querySelector('.frame').getBoundingClientRect();
                return [...root.shadowRoot.querySelectorAll('.frame *')].filter(node => {
                    const box = node.getBoundingClientRect(), at = box.width && !node.closest('.sr');
                    return at && (box.left < frame.left - 1 || box.right > frame.right + 1);
                }).map(node => `${root.dataset.live}: ${node.outerHTML.slice(0, 80)}`);
            })"""
        )
        assert not outside
        clipped = page.evaluate(
            """() => [...document.querySelectorAll('.posenc-live')].flatMap(root =>
                [...root.shadowRoot.querySelectorAll('button, .switches span, .tile span, .entry, .bit, .weight, .label')]
                .filter(node => getComputedStyle(node).display !== 'none' && node.scrollWidth > node.clientWidth + 1)
                .map(node => `${root.dataset.live}: ${node.textContent}`))"""
        )
        assert not clipped, "text that is wider than what holds it"


@pytest.mark.parametrize("kind", KINDS)
def test_fingers_find_what_they_press(open_page, kind: str) -> None:
    page = open_page(kind, PHONE, has_touch=True)
    low = page.evaluate(
        """() => [...document.querySelector('.posenc-live').shadowRoot.querySelectorAll('button, input, select')]
            .map(node => [node.getBoundingClientRect(), node.getAttribute('aria-label') || node.textContent || node.value])
            .filter(([box]) => box.width < 24 || box.height < 24).map(([box, name]) => `${name}: ${box.width} by ${box.height}`)"""
    )
    assert not low


@pytest.mark.parametrize("marked", ["html[data-theme]", "body[data-jp-theme-light]"])
def test_a_pages_theme_goes_before_the_systems(open_page, marked: str) -> None:
    ground = "getComputedStyle(document.querySelector('.posenc-live')).backgroundColor"
    page = open_page("dials", WIDE, "dark")
    assert page.evaluate(ground) == "rgb(20, 24, 29)"
    dark = {"html[data-theme]": "document.documentElement.dataset.theme = '{}'", "body[data-jp-theme-light]": "document.body.dataset.jpThemeLight = '{}'"}
    light_word, dark_word = ("light", "dark") if "data-theme" in marked else ("true", "false")
    page.evaluate(dark[marked].format(light_word))
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.evaluate(dark[marked].format(dark_word))
    assert page.evaluate(ground) == "rgb(20, 24, 29)"


def test_motion_only_for_those_who_want_it(open_page) -> None:
    moving = "getComputedStyle(document.querySelector('.posenc-live').shadowRoot.querySelector('.chip')).transitionDuration"
    assert open_page("shuffle").evaluate(moving) == "0.3s"
    assert open_page("shuffle", reduced_motion="reduce").evaluate(moving) == "0s"


@pytest.mark.parametrize("kind", KINDS)
def test_without_scripts_a_text_stands_there(open_page, kind: str) -> None:
    page = open_page(kind, java_script_enabled=False)
    assert page.locator(".posenc-live p").is_visible()
    assert page.locator(".posenc-live p").inner_text().startswith("This figure needs scripts")


INSERTED = {
    "as JupyterLab and Colab insert an output": """host => { for (const old of host.querySelectorAll('script')) {
        const script = document.createElement('script'); script.textContent = old.textContent; old.replaceWith(script); } }""",
    "as jQuery inserts one": """host => { for (const old of host.querySelectorAll('script')) {
        const script = document.createElement('script'); script.textContent = old.textContent; old.remove();
        document.head.append(script); script.remove(); } }""",
}


@pytest.mark.parametrize("way", INSERTED)
def test_it_starts_where_a_program_inserts_it(open_page, way: str) -> None:
    page = open_page("dials")
    text = "\n".join(getattr(live, kind)()._repr_html_() for kind in KINDS)
    for _ in range(2):  # a cell that is run again
        page.evaluate(f"text => {{ const host = document.querySelector('main'); host.innerHTML = text; ({INSERTED[way]})(host); }}", text)
        assert page.evaluate("[...document.querySelectorAll('.posenc-live')].map(root => !!root.shadowRoot)") == [True] * 4
        page.get_by_role("button", name="Shuffle").click()
        check_shuffle(page)
        check_offset_numbers = shown(page, "offset")
        assert check_offset_numbers["spread"] < 1e-12


def test_keys_stay_in_the_figure(open_page) -> None:
    page = open_page("shuffle")
    page.evaluate("window.heard = []; document.addEventListener('keydown', event => heard.push(event.key))")
    page.get_by_role("button", name=re.compile("^dog")).press("ArrowRight")
    page.get_by_role("button", name=re.compile("^dog")).press("Control+k")
    assert "ArrowRight" not in page.evaluate("heard") and "k" in page.evaluate("heard")
