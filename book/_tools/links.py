#!/usr/bin/env python3
"""Ask for every address outside the book that its pages link to. Needs the network, so no test does this.

    links.py [FOLDER]     the built book, _build/html unless given

Prints one line for each address that does not answer as it should, and fails if one is broken. Some sites refuse whoever
is no person; they are named, and counted as neither good nor broken. A DOI is good when doi.org knows where it leads.
"""

import concurrent.futures
import html
import http.client
import pathlib
import re
import sys
import time
import urllib.error
import urllib.request

import notebook_files

HTML = notebook_files.ROOT / "_build/html"
HEADERS = {"User-Agent": "Mozilla/5.0 (compatible; link check of a book)", "Accept": "text/html,*/*"}
REFUSED = {401, 403, 405, 406, 418, 429, 503, 999}
TIMEOUT = 20
LINK = re.compile(r'<a\b[^>]*?\shref="(https?://[^"#]+)')
DOI = "https://doi.org/"


class StayHere(urllib.request.HTTPRedirectHandler):
    """Do not follow: that a DOI leads somewhere is what doi.org is asked."""

    def redirect_request(self, *_: object) -> None:
        return None


def outside_links(folder: pathlib.Path) -> dict[str, list[str]]:
    """Every address outside the book, with the pages that link to it."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder).as_posix()
        if name.startswith(("_static/", "_sources/")):
            continue
        for address in sorted(set(LINK.findall(path.read_text(encoding="utf-8")))):
            found.setdefault(html.unescape(address), []).append(name)
    return found


def status(address: str) -> int:
    """The status with which an address answers; a redirection counts only for a DOI."""
    handlers = [StayHere] if address.startswith(DOI) else []
    opener = urllib.request.build_opener(*handlers)
    try:
        with opener.open(urllib.request.Request(address, headers=HEADERS), timeout=TIMEOUT) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def judge(address: str, pause: float = 2.0) -> str:
    """"good", "refused 403", or "broken: …"; what fails for want of an answer is asked twice."""
    for attempt in (1, 2):
        try:
            code = status(address)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if attempt == 2:
                return f"broken: {getattr(error, 'reason', error)}"
            time.sleep(pause)
            continue
        if code in REFUSED:
            return f"refused {code}"
        return "good" if code < 400 else f"broken: {code}"
    raise AssertionError("unreachable")


def main(folder: pathlib.Path = HTML) -> int:
    links = outside_links(folder)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        verdicts = dict(zip(links, pool.map(judge, links)))
    for address, verdict in sorted(verdicts.items(), key=lambda pair: pair[1]):
        if verdict != "good":
            print(f"{verdict:12}  {address}  ({', '.join(links[address][:3])})")
    kinds = [verdict.split(" ")[0].rstrip(":") for verdict in verdicts.values()]
    print(f"{len(links)} addresses: " + ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("good", "refused", "broken")))
    return 1 if "broken" in kinds else 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
