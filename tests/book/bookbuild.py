"""Building the book and small books made from planted notebooks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import yaml
from book_domain import NUMBERED_KINDS

ROOT = Path(__file__).parents[2]


class Built(NamedTuple):
    """The outcome of a build."""

    html: Path
    status: int
    log: str

    def page(self, name: str) -> str:
        return (self.html / name).read_text(encoding="utf-8")


def build(source: Path, output: Path) -> Built:
    """Build a book as `make book` does: every warning counts, and all of them are shown."""
    command = "from jupyter_book.cli.main import main; main()"
    options = ["build", str(source), "--path-output", str(output), "--all", "-q", "-n", "-W", "--keep-going"]
    done = subprocess.run(
        [sys.executable, "-c", command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
    )
    return Built(output / "_build" / "html", done.returncode, re.sub(r"\x1b\[[\d;]*m", "", done.stdout))


def toc_pages() -> list[str]:
    """The pages that the table of contents asks for, as files of the built book."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    names = [toc["root"]]
    for part in toc["parts"]:
        for entry in part["chapters"]:
            if "file" in entry:
                names.append(entry["file"])
            else:
                found = sorted(ROOT.glob(entry["glob"] + ".ipynb"))
                names += [path.relative_to(ROOT).with_suffix("").as_posix() for path in found]
    return [name + ".html" for name in names]


FAULTS = "tests/known_faults.toml"
"""What a page is made from, besides the book's own folders."""

PAGES = [*toc_pages(), "search.html"]


def up_to_date(made: Path) -> bool:
    """Whether `make book` has built the sources as they are."""
    if not made.exists():
        return False
    inputs = [ROOT / "_config.yml", ROOT / "_toc.yml", ROOT / FAULTS]
    for folder in ("book", "lib", "notebooks"):
        inputs += [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return all(path.stat().st_mtime <= made.stat().st_mtime for path in inputs)


def plant(folder: Path, notebooks: dict[str, str], url: str = "") -> Path:
    """A copy of the book whose chapters are the given notebooks (name: JSON).

    What its other pages say of chapters that are not there is made to speak of chapter 2.
    """
    for name in ("book", "lib"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for page in [*folder.glob("book/*.md"), *folder.glob("lib/posenc/*.py")]:
        text = re.sub(rf"\b({'|'.join(NUMBERED_KINDS)}) \d+\.\d+", r"\1 2.1", page.read_text(encoding="utf-8"))
        text = re.sub(r"\b([Cc]hapters?)\s+\d+(?:(?:,|\s+(?:and|to))\s+\d+)*", r"\1 2", text)
        page.write_text(text, encoding="utf-8")
    (folder / FAULTS).parent.mkdir()
    known = (ROOT / FAULTS).read_text(encoding="utf-8")
    (folder / FAULTS).write_text(re.sub(r'"exercise \d+\.\d+"', '"exercise 2.1"', known), encoding="utf-8")
    shutil.copy(ROOT / "_toc.yml", folder)
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    config = re.sub(r'(?m)^  url:.*$', f'  url: "{url}"', config, count=1)
    (folder / "_config.yml").write_text(config, encoding="utf-8")
    (folder / "notebooks").mkdir()
    for name, text in notebooks.items():
        (folder / "notebooks" / name).write_text(text, encoding="utf-8")
    return folder
