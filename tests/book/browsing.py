"""A browser that cannot reach the network, and what it notices while a page is open."""

from __future__ import annotations

import os
import shutil

from bookbuild import Built
from playwright.sync_api import Browser, Page

OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
]
WIDE, PHONE = {"width": 1300, "height": 900}, {"width": 360, "height": 740}


def chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    assert found, "no browser: install Chromium, or set CHROMIUM to its path"
    return found


class Visit:
    """A page, and what went wrong while it was open."""

    def __init__(
        self, browser: Browser, book: Built, name: str, size: dict[str, int], theme: str, **options: object
    ) -> None:
        self.context = browser.new_context(viewport=size, color_scheme=theme, **options)
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
