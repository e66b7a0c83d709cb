"""Adding a chapter is adding its notebook, its checkers and their right answers: shown on a copy, which is built and asked."""

from __future__ import annotations

import sys
from pathlib import Path

import execute
import nbformat
import notebook_files
import pytest
from bookbuild import Built, build
from bs4 import BeautifulSoup
from work_copy import run, work_copy

NUMBER = len(notebook_files.paths()) + 1
NAME = f"{NUMBER:02d}_one_more"
OPENING = """# One more

**What you will be able to do** add a chapter. **Time** 5 minutes. **You need** nothing.

The rows sum to one (Vaswani et al., 2017), as chapter 1 has shown."""
CARD = f"""> **Exercise {NUMBER}.1 · Double it** (5 min, ●○○)
>
> Return twice `x`."""
FOLDS = """<details><summary>Hint 1</summary>

Add it to itself.

</details>

<details><summary>Solution</summary>

```python
def double(x):
    return x + x
```

Because $x + x = 2x$.

</details>"""
CHECKER = f'''"""The exercises of the last chapter."""

import torch

from posenc.exercises.engine import Function, Mistake

EXERCISES = [
    Function(
        label="{NUMBER}.1",
        praise="twice",
        reference=lambda x: 2 * x,
        cases=[(torch.tensor([1.0, 2.5]),), (torch.tensor([[3.0, -1.5, 0.5]]),)],
        mistakes=[Mistake("that is x itself", lambda x: x)],
    ),
]
'''
RIGHT = f'RIGHT = {{"{NUMBER}.1": [lambda x: x + x, lambda x: x * 2.0]}}\n'


def new_chapter(copy: Path) -> nbformat.NotebookNode:
    v4 = nbformat.v4
    setup = notebook_files.read(notebook_files.paths(copy)[0])["cells"][1]
    cells = [
        v4.new_markdown_cell(OPENING),
        v4.new_code_cell(notebook_files.text(setup["source"]), metadata=setup["metadata"]),
        v4.new_code_cell("from posenc.evidence import verify\nfrom posenc.exercises import check\n\nverify('Two and two are four.', 2 + 2 == 4)"),
        v4.new_markdown_cell("## Summary\n\nIt grew."),
        v4.new_markdown_cell("## Exercises"),
        v4.new_markdown_cell(CARD),
        v4.new_code_cell("def double(x):\n    return ..."),
        v4.new_code_cell(f'check("{NUMBER}.1", double)'),
        v4.new_markdown_cell(FOLDS),
        v4.new_markdown_cell("## Sources\n\nVaswani et al. (2017)."),
    ]
    for i, cell in enumerate(cells):
        cell.id = f"cell-{i}"
    return v4.new_notebook(cells=cells)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with one chapter more, executed by the book's own tool."""
    copy = work_copy(tmp_path_factory.mktemp("copy"))
    path = copy / "notebooks" / f"{NAME}.ipynb"
    notebook_files.write(path, execute.normalise(new_chapter(copy)))
    (copy / f"lib/posenc/exercises/chapter_{NUMBER:02d}.py").write_text(CHECKER, encoding="utf-8")
    (copy / f"tests/exercises/chapter_{NUMBER:02d}.py").write_text(RIGHT, encoding="utf-8")
    outcome = run(sys.executable, copy / "book/_tools/execute.py", path)
    assert outcome.returncode == 0, outcome.stderr
    return copy


@pytest.fixture(scope="module")
def grown_book(grown: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(grown, tmp_path_factory.mktemp("built"))


def asked(copy: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options]
    return run(*command, cwd=copy).stdout


def test_the_pages_take_it_up(grown_book: Built) -> None:
    assert grown_book.status == 0, grown_book.log
    index = BeautifulSoup(grown_book.page("book/index.html"), "html.parser")
    listed = [" ".join(item.a.get_text().split()) for item in index.select(".chapter-list li")]
    assert listed[-1] == f"{NUMBER}. One more"
    assert index.select(f"nav.bd-links a[href$='{NAME}.html']")
    ledger = BeautifulSoup(grown_book.page("book/ledger.html"), "html.parser")
    assert ledger.select(f"a[href*='{NAME}.html#']")
    assert "Two and two are four." in ledger.get_text()
    chapter = BeautifulSoup(grown_book.page(f"notebooks/{NAME}.html"), "html.parser")
    assert chapter.find(id=f"exercise-{NUMBER}-1")


def test_the_tests_take_it_up(grown: Path) -> None:
    paths = ["tests/exercises/test_exercises.py", "tests/notebooks/test_lints.py"]
    outcome = asked(grown, *paths, "-k", f"{NUMBER}.1 or {NAME}")
    assert " passed" in outcome and "failed" not in outcome and "error" not in outcome, outcome
    collected = asked(grown, "--collect-only", "--nbval", "tests/notebooks/test_running.py", "notebooks")
    assert f"[{NAME}::alone]" in collected and f"{NAME}.ipynb::Cell 1" in collected


@pytest.mark.parametrize(
    ("forgotten", "told"),
    [
        (f"lib/posenc/exercises/chapter_{NUMBER:02d}.py", f"has the exercises ['{NUMBER}.1'], posenc.exercises has []"),
        (f"tests/exercises/chapter_{NUMBER:02d}.py", f"chapter_{NUMBER:02d}.py"),
    ],
    ids=["checker", "right answers"],
)
def test_what_is_forgotten_is_named(grown: Path, forgotten: str, told: str) -> None:
    kept = (grown / forgotten).read_text(encoding="utf-8")
    (grown / forgotten).unlink()
    try:
        paths = ["tests/exercises/test_exercises.py", "tests/notebooks/test_lints.py"]
        assert told in asked(grown, *paths, "-k", f"{NUMBER}.1 or {NAME}")
    finally:
        (grown / forgotten).write_text(kept, encoding="utf-8")
