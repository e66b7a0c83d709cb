#!/usr/bin/env python3
"""What the book costs its reader, measured on this machine: seconds to run each chapter, bytes and seconds to open each page.

    bench.py [library] [chapters] [pages]     without a word, all three

A chapter is executed once, in memory, by itself, with the threads that OMP_NUM_THREADS allows (1 unless set); the time
includes starting its kernel. How a page is measured is said in page_weight.py.
"""

import os
import pathlib
import sys
import time

import execute
import nbformat
import notebook_files
import page_weight

HTML = notebook_files.ROOT / "_build/html"


def seconds(path: pathlib.Path) -> float:
    """How long one notebook takes."""
    notebook, start = nbformat.read(path, as_version=4), time.perf_counter()
    execute.execute(notebook, path.parent)
    return time.perf_counter() - start


def library() -> None:
    import library_speed

    library_speed.report()


def chapters() -> None:
    execute.warm_fonts()
    print(f"chapters, in seconds ({os.cpu_count()} cores, {execute.environment()['OMP_NUM_THREADS']} thread)")
    for path in notebook_files.paths():
        print(f"{seconds(path):8.1f}  {path.name}", flush=True)


def pages() -> None:
    print("pages, opened for the first time on a phone: kB compressed, requests, seconds at 1.6 Mbit/s and 150 ms")
    print("   total    html  scripts   fonts  pictures  requests  readable  complete")
    for page in page_weight.weights(HTML):
        sizes = (page.total, page.html, page.code, page.fonts, page.pictures)
        total, html, code, fonts, pictures = (size / 1000 for size in sizes)
        print(
            f"{total:8.1f}{html:8.1f}{code:9.1f}{fonts:8.1f}{pictures:10.1f}"
            f"{page.requests:10}{page.readable:10.1f}{page.complete:10.1f}  {page.page}",
            flush=True,
        )


def main() -> None:
    parts = {"library": library, "chapters": chapters, "pages": pages}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
