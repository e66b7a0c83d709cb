#!/usr/bin/env python3
"""What the book costs its readers and authors, measured on this machine.

    bench.py [library] [chapters] [build] [pages]     without a word, all four

library     the library beside others that do the same, as ratios: see library_speed.py
chapters    seconds to run each, once, in memory, by itself, with the threads that OMP_NUM_THREADS allows (1 unless
            set); the time includes starting its kernel
build       seconds of `make book` in a copy of the book, with everything installed: from nothing, again, and after a
            change to one page (which builds the whole book anew, so that every warning is seen)
pages       bytes and seconds to open each page: see page_weight.py
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import execute
import nbformat
import notebook_files
import page_weight

HTML = notebook_files.ROOT / "_build/html"
MAKE = ["make", "--old-file=.venv/book.made", "book"]
"""Builds the book with what is installed."""


def seconds(call: Callable, *arguments: object) -> float:
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


def library() -> None:
    import library_speed

    library_speed.report()


def chapters() -> None:
    execute.warm_fonts()
    print(f"chapters, in seconds ({os.cpu_count()} cores, {execute.environment()['OMP_NUM_THREADS']} thread)")
    spent = []
    for path in notebook_files.paths():
        spent.append(seconds(execute.execute, nbformat.read(path, as_version=4), path.parent))
        print(f"{spent[-1]:8.1f}  {path.name}", flush=True)
    print(f"{sum(spent):8.1f}  together")


def build() -> None:
    print("make book, in seconds")
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy"
        shutil.copytree(notebook_files.ROOT, copy, ignore=shutil.ignore_patterns(".*", "_build", "build", "__pycache__"))
        (copy / ".venv").symlink_to(sys.prefix)
        environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}

        def made() -> None:
            subprocess.run(MAKE, cwd=copy, env=environment, check=True, stdout=subprocess.DEVNULL)

        print(f"{seconds(made):8.1f}  from nothing", flush=True)
        print(f"{seconds(made):8.1f}  nothing changed", flush=True)
        with open(copy / "book/notation.md", "a", encoding="utf-8") as page:
            page.write("\nOne more paragraph.\n")
        print(f"{seconds(made):8.1f}  one page changed", flush=True)


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


PARTS = {part.__name__: part for part in (library, chapters, build, pages)}


def main() -> None:
    unknown = [name for name in sys.argv[1:] if name not in PARTS]
    if unknown:
        sys.exit(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
        print()


if __name__ == "__main__":
    main()
