"""The book, built once for all tests, and the browser that looks at it."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "book" / "_ext")]

import planted  # noqa: E402
from bookbuild import ROOT, Built, build, plant, up_to_date  # noqa: E402
from browsing import OPTIONS, chromium  # noqa: E402


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The book of this repository: the one `make` has built, or else one built here, once for all workers."""
    if up_to_date(ROOT / "_build" / "book.made"):
        return Built(ROOT / "_build" / "html", 0, "")
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "book"
    shared.mkdir(exist_ok=True)
    with open(shared / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        status = shared / "status"
        if not status.exists():
            built = build(ROOT, shared)
            (shared / "log").write_text(built.log, encoding="utf-8")
            status.write_text(str(built.status))
        return Built(shared / "_build" / "html", int(status.read_text()), (shared / "log").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def sink(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A book of two chapters that uses everything, published at an address."""
    notebooks = {"01_first.ipynb": planted.FIRST, "02_everything.ipynb": planted.EVERYTHING}
    source = plant(tmp_path_factory.mktemp("sink"), notebooks, planted.URL)
    return build(source, tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=OPTIONS)
        yield browser
        browser.close()
