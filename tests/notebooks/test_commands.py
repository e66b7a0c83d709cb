"""The commands of the Makefile: they notice changes, fail when the book does, and say in one line what is missing."""

import os
import pathlib
import re
import shutil
import stat
import sys

import pytest
from notebook_files import ROOT
from work_copy import run, work_copy


def script(path: pathlib.Path, text: str) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


PYTHON = f'exec "{sys.executable}" "$@"'


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> pathlib.Path:
    """A copy with a book of two pages, whose .venv is the environment of these tests, with everything installed."""
    folder = work_copy(tmp_path_factory.mktemp("commands"))
    for path in [*folder.glob("notebooks/*.ipynb"), *folder.glob("book/*.md")]:
        path.unlink()
    (folder / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n- file: book/other\n", encoding="utf-8")
    (folder / "book/index.md").write_text("# A book\n", encoding="utf-8")
    (folder / "book/other.md").write_text("# Another page\n", encoding="utf-8")
    script(folder / ".venv/bin/python", PYTHON)
    for made in ("made", "book.made", "test.made"):
        (folder / ".venv" / made).touch()
    return folder


def test_a_book_is_built_once_and_again_after_a_change(copy):
    first = run("make", "book", cwd=copy)
    assert first.returncode == 0, first.stderr
    assert re.search(r"Building the book.*\n.*Open .*/_build/html/index.html", first.stdout, re.DOTALL)
    assert (copy / "_build/html/index.html").is_file()
    page = copy / "_build/html/book/index.html"
    text = page.read_text(encoding="utf-8")
    page.write_text("kept", encoding="utf-8")
    assert "Building" not in run("make", "book", cwd=copy).stdout
    assert page.read_text(encoding="utf-8") == "kept"
    (copy / "book/new.md").write_text("# A page that no table of contents names\n", encoding="utf-8")
    assert "Building" in run("make", "book", cwd=copy).stdout
    assert page.read_text(encoding="utf-8") == text
    (copy / "book/new.md").unlink()


def test_a_fault_in_a_page_fails_the_build_each_time(copy):
    page = copy / "book/other.md"
    sound = page.read_text(encoding="utf-8")
    page.write_text(sound + "\nAs Theorem 99.1 says.\n", encoding="utf-8")
    for _ in range(2):
        outcome = run("make", "book", cwd=copy)
        assert outcome.returncode != 0
        assert "99.1" in outcome.stderr
        assert "Open" not in outcome.stdout
    page.write_text(sound, encoding="utf-8")


@pytest.mark.parametrize(
    "path, installed",
    [
        ("book/requirements.txt", "book/requirements.txt"),
        ("book/constraints.txt", "book/requirements.txt"),
        ("book/requirements-katex.txt", "book/requirements-katex.txt"),
        ("requirements.txt", "-r requirements.txt"),
        ("book/requirements-model.txt", "book/requirements-model.txt"),
    ],
)
def test_an_edited_requirements_file_is_installed(copy, path, installed):
    assert "pip" not in run("make", "-n", ".venv/test.made", cwd=copy).stdout
    newer = (copy / ".venv/test.made").stat().st_mtime + 10
    os.utime(copy / path, (newer, newer))
    commands = run("make", "-n", ".venv/test.made", cwd=copy).stdout
    assert re.search(rf"pip .*{installed}", commands)
    os.utime(copy / path, (0, 0))


def test_the_package_itself_is_never_installed(copy):
    commands = run("make", "-n", "-W", "book/requirements.txt", ".venv/test.made", cwd=copy).stdout
    installs = [line for line in commands.splitlines() if " install " in line]
    assert len(installs) == 4
    assert not [line for line in installs if re.search(r"install.* (-e|\.|posenc|lib/?)( |$)", line)]


def test_an_old_python_is_refused_in_one_line(copy, tmp_path):
    old = script(tmp_path / "python-old", "exit 1")
    outcome = run("make", "book", f"PYTHON={old}", cwd=fresh(copy, tmp_path))
    assert outcome.returncode != 0
    assert outcome.stderr.startswith("Python 3.11 or newer is needed: make PYTHON=python3.12 book\n")


def test_a_python_without_venv_is_refused_in_one_line(copy, tmp_path):
    bare = script(tmp_path / "python-bare", f'case "$2" in *ensurepip*) exit 1;; esac; {PYTHON}')
    outcome = run("make", "book", f"PYTHON={bare}", cwd=fresh(copy, tmp_path))
    assert outcome.returncode != 0
    assert "has no venv module: install it" in outcome.stderr.splitlines()[0]


def fresh(copy: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    shutil.copytree(copy / "book", folder / "book")
    for name in ("Makefile", "requirements.txt"):
        shutil.copy(copy / name, folder)
    return folder


def test_a_failing_test_fails_make(copy):
    planted = copy / "tests/notebooks/test_planted.py"
    planted.write_text("def test_planted():\n    assert False\n", encoding="utf-8")
    python = script(copy / ".venv/bin/python", f'[ "$2" != pytest ] || set -- "$@" {planted}; {PYTHON}')
    outcome = run("make", "test", cwd=copy)
    script(python, PYTHON)
    assert "1 failed" in outcome.stdout, outcome.stderr
    assert outcome.returncode != 0


def test_help_names_every_command():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"(?m)^\.PHONY: (.*)$", makefile)[1].split()
    told = re.findall(r"(?m)^make (\w+) ", run("make", "help").stdout)
    assert set(told) == set(phony) - {"FORCE"}


# Chromium


def chromium(folder: pathlib.Path, **programs: str):
    """Run chromium.sh where the only programs are those given and a few plain ones."""
    for name, text in programs.items():
        script(folder / "bin" / name.replace("_", "-"), text)
    for name in ("id", "sh", "chmod"):
        if not (folder / "bin" / name).exists():
            (folder / "bin" / name).symlink_to(shutil.which(name))
    return run(shutil.which("sh"), ROOT / "book/_tools/chromium.sh", cwd=folder, PATH=str(folder / "bin"), CHROMIUM="")


INSTALLING = """echo "$@" >> log; [ "$1" = update ] || { echo '#!/bin/sh' > bin/chromium; chmod +x bin/chromium; }"""


def test_a_chromium_that_is_there_is_taken(tmp_path):
    outcome = chromium(tmp_path, google_chrome="exit 0", chromium="exit 1", apt_get=INSTALLING)
    assert outcome.stdout == f"{tmp_path}/bin/google-chrome\n"
    assert not (tmp_path / "log").exists()


def test_a_missing_chromium_is_installed_after_an_update(tmp_path):
    outcome = chromium(tmp_path, id="echo 0", apt_get=INSTALLING)
    assert (outcome.returncode, outcome.stdout) == (0, f"{tmp_path}/bin/chromium\n")
    assert (tmp_path / "log").read_text() == "update\ninstall -y --no-install-recommends chromium\n"


@pytest.mark.parametrize("programs", [{"id": "echo 1000", "sudo": "exit 1", "apt_get": INSTALLING}, {"id": "echo 0"}])
def test_one_line_says_what_to_install(tmp_path, programs):
    outcome = chromium(tmp_path, **programs)
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr.splitlines()[-1].startswith("The browser tests need Chromium: install the package 'chromium'")
    assert not (tmp_path / "log").exists()
