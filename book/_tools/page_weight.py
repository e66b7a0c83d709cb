"""What a first-time reader of each page receives, measured in a browser from a server that compresses.

Every page is opened with an empty cache, as a phone on an ordinary connection would open it: 1.6 Mbit/s, 150 ms from
request to answer, a processor four times slower than this one. Bytes are those of the answers' bodies: text compressed
by gzip, pictures and fonts as they are. A page is *readable* when its text has been painted, and *complete* when
everything that it asks for has arrived.
"""

import contextlib
import gzip
import http.server
import os
import pathlib
import shutil
import threading
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, sync_playwright

KINDS = {".html": "html", ".css": "code", ".js": "code", ".woff2": "fonts"}
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml",
         ".png": "image/png", ".woff2": "font/woff2"}  # fmt: skip
CONNECTION = {"offline": False, "latency": 150, "downloadThroughput": 1_600_000 / 8, "uploadThroughput": 750_000 / 8}
PAINTED = """() => {
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    const [page] = performance.getEntriesByType("navigation");
    return [paint ? paint.startTime / 1000 : NaN, page.loadEventEnd / 1000];
}"""


class Weight(NamedTuple):
    """What one page costs: bytes by kind, requests, seconds."""

    page: str
    html: int
    code: int
    fonts: int
    pictures: int
    requests: int
    readable: float
    complete: float

    @property
    def total(self) -> int:
        return self.html + self.code + self.fonts + self.pictures


@contextlib.contextmanager
def served(folder: pathlib.Path) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """A server of `folder`: its address, and the list of answers (path, bytes) that grows as it is asked."""
    answers: list[tuple[str, int]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = folder / unquote(urlsplit(self.path).path).lstrip("/")
            if not path.is_file():
                self.send_error(404)
                return
            body = path.read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", TYPES.get(path.suffix, "application/octet-stream"))
            if path.suffix not in (".png", ".woff2"):
                body = gzip.compress(body, compresslevel=6, mtime=0)
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):  # the reader has left the page
                self.wfile.write(body)
            answers.append((path.suffix, len(body)))

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", answers
    finally:
        server.shutdown()


def weigh(browser: Browser, address: str, answers: list[tuple[str, int]], page: str) -> Weight:
    """Open one page with an empty cache."""
    answers.clear()
    context = browser.new_context(viewport={"width": 360, "height": 740})
    tab = context.new_page()
    session = context.new_cdp_session(tab)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", CONNECTION)
    session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    tab.goto(address + page, wait_until="load", timeout=120_000)
    tab.evaluate("document.fonts.ready.then(() => true)")
    readable, complete = tab.evaluate(PAINTED)
    context.close()
    size = {"html": 0, "code": 0, "fonts": 0, "pictures": 0}
    for suffix, length in answers:
        size[KINDS.get(suffix, "pictures")] += length
    return Weight(page, *size.values(), len(answers), readable, complete)


def weights(folder: pathlib.Path) -> Iterator[Weight]:
    """The weight of every page in `folder`."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as play, served(folder) as (address, answers):
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for path in sorted(folder.rglob("*.html")):
            if "_static" not in path.parts and path.name not in ("genindex.html",) and path != folder / "index.html":
                yield weigh(browser, address, answers, path.relative_to(folder).as_posix())
        browser.close()
