"""What the publishing workflow does, done here: a copy of the repository publishes itself at its own address."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import yaml
from bookbuild import ROOT, Built, build, toc_pages
from bs4 import BeautifulSoup
from work_copy import git, run, work_copy

REPOSITORY = "https://github.com/somebody/a-fork"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare repository after the workflow's commands have run in a clone of it; but for the build, which comes below."""
    bare, clone = tmp_path_factory.mktemp("origin") / "book.git", tmp_path_factory.mktemp("runner") / "work"
    git("clone", "-q", "--bare", work_copy(tmp_path_factory.mktemp("copy")), bare, cwd=bare.parent)
    git("clone", "-q", bare, clone, cwd=bare.parent)
    platform = {
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "somebody/a-fork",
        "GITHUB_SHA": git("rev-parse", "HEAD", cwd=clone).strip(),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PYTHON": sys.executable,
    }
    workflow = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text(encoding="utf-8"))
    commands = [step["run"] for step in workflow["jobs"]["publish"]["steps"] if "run" in step]
    assert "make book" in commands
    for command in commands:
        if command != "make book":
            outcome = run("bash", "-e", "-c", command, cwd=clone, **platform)
            assert outcome.returncode == 0, outcome.stderr
    return bare


@pytest.fixture(scope="module")
def book_there(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    source = tmp_path_factory.mktemp("source") / "work"
    git("clone", "-q", "--branch", "published", published, source, cwd=published)
    return build(source, tmp_path_factory.mktemp("built"))


def test_main_stays_as_it_was(published: Path) -> None:
    assert git("log", "--format=%s", "main", cwd=published).splitlines() == ["as it is"]
    assert git("show", "main:_config.yml", cwd=published) == (ROOT / "_config.yml").read_text(encoding="utf-8")


def test_each_notebook_there_clones_the_branch_it_stands_on(published: Path) -> None:
    names = git("ls-tree", "-r", "--name-only", "published", "notebooks", cwd=published).split()
    assert len(names) == len(list((ROOT / "notebooks").glob("[0-9]*.ipynb")))
    for name in names:
        notebook = json.loads(git("show", f"published:{name}", cwd=published))
        assert f'"{REPOSITORY}", "published"' in "".join(notebook["cells"][1]["source"])


def test_every_colab_button_there_opens_a_notebook_of_that_branch(published: Path, book_there: Built) -> None:
    assert book_there.status == 0, book_there.log
    names = set(git("ls-tree", "-r", "--name-only", "published", "notebooks", cwd=published).split())
    for page in toc_pages():
        soup = BeautifulSoup(book_there.page(page), "html.parser")
        links = [link["href"] for link in soup.select("a[href*='colab.research']")]
        files = [link["href"] for link in soup.select("a[href$='.ipynb']") if "colab.research" not in link["href"]]
        if page.startswith("notebooks/"):
            name = page.removesuffix(".html") + ".ipynb"
            assert links == [f"https://colab.research.google.com/github/somebody/a-fork/blob/published/{name}"]
            assert name in names
            (download,) = {link for link in files if not link.startswith("http")}
            assert json.loads((book_there.html / page).parent.joinpath(download).read_text(encoding="utf-8"))["cells"]
        else:
            assert not links, page
            assert not [link for link in files if link.startswith("_sources")], page
