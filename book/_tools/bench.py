#!/usr/bin/env python3
"""What the book costs its reader, measured on this machine: seconds to run each chapter, bytes to open each page.

A chapter is executed once, in memory, by itself, with the threads that OMP_NUM_THREADS allows (1 unless set); the time
includes starting its kernel. A page's bytes are those of its HTML and of the style sheets, scripts and pictures that it
names, each compressed by gzip as a server would send it. Fonts are not counted.
"""

import gzip
import os
import pathlib
import time
from urllib.parse import unquote, urlsplit

import execute
import nbformat
import notebook_files
from bs4 import BeautifulSoup

HTML = notebook_files.ROOT / "_build/html"


def seconds(path: pathlib.Path) -> float:
    """How long one notebook takes."""
    notebook, start = nbformat.read(path, as_version=4), time.perf_counter()
    execute.execute(notebook, path.parent)
    return time.perf_counter() - start


def compressed(path: pathlib.Path) -> int:
    return len(gzip.compress(path.read_bytes(), compresslevel=6, mtime=0))


def named_files(page: pathlib.Path) -> set[pathlib.Path]:
    """The files that a browser fetches because the page names them."""
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    names = [link["href"] for link in soup.select("link[rel~=stylesheet][href], link[rel~=icon][href]")]
    names += [tag["src"] for tag in soup.select("script[src], img[src]")]
    local = [urlsplit(name) for name in names]
    return {(page.parent / unquote(part.path)).resolve() for part in local if not part.scheme and not part.netloc}


def main() -> None:
    execute.warm_fonts()
    print(f"chapters, in seconds ({os.cpu_count()} cores, {execute.environment()['OMP_NUM_THREADS']} thread)")
    for path in notebook_files.paths():
        print(f"{seconds(path):8.1f}  {path.name}", flush=True)
    print("pages, in kB compressed: all, of which HTML")
    for page in sorted(page for page in HTML.rglob("*.html") if "_static" not in page.parts):
        html = compressed(page)
        total = html + sum(compressed(path) for path in named_files(page))
        print(f"{total / 1000:8.1f}  {html / 1000:8.1f}  {page.relative_to(HTML)}")


if __name__ == "__main__":
    main()
