"""Every chapter keeps to every lint, and every lint can fail: each is shown a chapter with the fault that it is for."""

import copy

import address
import execute
import lints
import notebook_files
import pytest
from lints import LINTS, Chapter

from posenc.exercises import registry

SETUP = address.setup_cell()
PATHS = notebook_files.paths()


def chapter(path) -> Chapter:
    number = int(path.name[:2])
    labels = [label for label in registry() if label.split(".")[0] == str(number)]
    return Chapter(number, path.read_text(encoding="utf-8"), SETUP, labels)


@pytest.mark.parametrize("lint", LINTS, ids=lambda lint: lint.__name__)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_chapter_keeps_to(path, lint):
    assert list(lint(chapter(path))) == []


def test_chapters_are_numbered_from_one():
    assert [int(path.name[:2]) for path in PATHS] == list(range(1, len(PATHS) + 1))


# A chapter without a fault, and what each lint must say when one is put into it.


def markdown(text: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def code(text: str, outputs=(), **metadata) -> dict:
    return {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": list(outputs), "source": text}


def printed(text: str, name: str = "stdout") -> dict:
    return {"name": name, "output_type": "stream", "text": text}


def drawn() -> dict:
    data = {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure size 640x480 with 1 Axes>"}
    return {"data": data, "metadata": {}, "output_type": "display_data"}


def living() -> dict:
    data = {"text/html": '<div class="posenc-live" data-live="dials">', "text/plain": "<live figure: dials>"}
    return {"data": data, "metadata": {}, "execution_count": None, "output_type": "execute_result"}


ALT = {"image": {"alt": "A heat-map of three rows; the first is the brightest."}}
OPENING = "# A title\n\n**You will be able to** do it. **Time.** 30 minutes. **You need** nothing."
EXERCISE = (
    "<details><summary>Hint 1</summary>\n\nThink.\n\n</details>\n\n"
    '<details><summary>Solution</summary>\n\n```python\nanswer = "b"\n```\n\nBecause.\n\n</details>'
)
FAILED = {"ename": "ValueError", "evalue": "no", "output_type": "error", "traceback": ["ValueError: no"]}
GOOD = [
    markdown(OPENING),
    code(SETUP, tags=["hide-input"], cellView="form"),
    markdown("## Weights\n\nSoftmax turns $a < b$ and $\\frac{1}{2}$ into\n\n$$\n\\begin{aligned}x &= 1\\end{aligned}\n$$"),
    markdown("> **Definition 7.1 · Weights**\n>\n> They sum to one.\n\n> **Proof.**\n>\n> Sum them."),
    code("assert 1 + 1 == 2\nplt.plot([1, 2])\nplt.show()", [drawn()], mystnb=ALT),
    markdown("*Figure 7.1. Two numbers, the larger above.*\n\nAnd then `a < b`:\n\n```text\nif a <b> c\n```"),
    code('raise ValueError("no")', [FAILED], tags=["raises-exception"]),
    markdown("| a | b |\n|---|---|\n| 1 | $x \\mid y$ |\n\n*Table 7.1. Letters.*"),
    markdown("## Summary\n\nIt sums."),
    markdown("## Exercises"),
    markdown("> **Exercise 7.1 · Choose** (5 min, ●○○)\n>\n> Which?"),
    code("answer = ..."),
    code('check("7.1", answer)', [printed("○ 7.1 not attempted yet\n")]),
    markdown(EXERCISE),
    markdown("## Sources\n\nNone."),
]
LONG_LINE, LONG_CELL = "x = " + "1" * 80, "\n".join(["x = 1"] * 16)


def planted(change=lambda cells: None) -> Chapter:
    """The good chapter with a change made to its cells."""
    cells = copy.deepcopy(GOOD)
    change(cells)
    for count, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), 1):
        cell["execution_count"] = cell["execution_count"] or count
    for i, cell in enumerate(cells):
        cell.setdefault("id", f"cell-{i}")
        cell["source"] = notebook_files.lines(cell["source"])
        if cell.get("execution_count") == "null":
            cell["execution_count"] = None
    notebook = {"cells": cells, "metadata": copy.deepcopy(execute.METADATA), "nbformat": 4, "nbformat_minor": 5}
    return Chapter(7, notebook_files.dumps(notebook), SETUP, ["7.1"])


def add(*cells):
    return lambda good: good.__setitem__(slice(2, 2), copy.deepcopy(cells))


def put(i: int, **changed):
    return lambda cells: cells[i].update(copy.deepcopy(changed))


def swap(i: int, old: str, new: str):
    def change(cells):
        assert old in cells[i]["source"]
        cells[i]["source"] = cells[i]["source"].replace(old, new)

    return change


FAULTS = {
    lints.counts_run_from_one: [put(4, execution_count=9), put(11, execution_count="null")],
    lints.outputs_are_clean: [
        add(code("f()", [printed("careful\n", "stderr")])),
        add(code("f()", [FAILED])),
        add(code("f()", tags=["raises-exception"])),
        add(code("f()", [printed("<object at 0x7f3a>\n")])),
        add(code("f()", [{"data": {"text/plain": "<Figure size 6x4>"}, "metadata": {}, "output_type": "display_data"}])),
    ],
    lints.size_is_modest: [add(markdown("word " * 210_000))],
    lints.no_trace_of_a_machine: [
        add(markdown("See /home/me/notes.txt.")),
        add(code('open("/tmp/x")')),
        add(code("f()", [printed("File /usr/lib/python3/json.py\n")])),
        add(code("f()", [printed("lib/site-packages/torch\n")])),
        add(markdown("Served from localhost.")),
    ],
    lints.metadata_is_plain: [
        add(code("f()", execution={})),
        add(code("f()", tags=["skip"])),
        add(code("f()", tags=["nbval-ignore-output"])),
        add(code("# NBVAL_IGNORE_OUTPUT\nf()")),
        add(code(" \n")),
    ],
    lints.file_is_in_stored_form: [put(3, id="cell-2")],
    lints.setup_cell_is_the_books: [
        swap(1, "main", "master"),
        put(1, metadata={"cellView": "form"}),
        put(1, metadata={"tags": ["hide-input"]}),
        put(1, outputs=[printed("hello\n")]),
        lambda cells: cells.insert(1, markdown("Before it.")),
    ],
    lints.code_cells_are_short: [
        add(code(LONG_LINE)),
        add(code(LONG_CELL)),
        swap(13, 'answer = "b"', LONG_LINE),
    ],
    lints.code_is_plain_python: [
        add(code("%matplotlib inline")),
        add(code("!ls")),
        add(code("%%time\nf()")),
        add(code("f?")),
        add(code("f();")),
        add(code("f(); # quiet")),
        add(code("def f(:")),
    ],
    lints.code_knows_no_front_end: [
        add(code("from google.colab import files")),
        add(code("get_ipython().system('ls')")),
        add(code("import os\nos.chdir('/content')")),
    ],
    lints.claims_can_fail: [
        add(code("assert 1 < 2\nverify('One is less than two.', True)")),
        add(code("verify('Nothing is said for it.')")),
        add(code("verify('One is less than two.', condition=1)")),
    ],
    lints.markdown_is_not_myst: [
        add(markdown("```{note}\nHi\n```")),
        add(markdown(":::{note}\nHi\n:::")),
        add(markdown("See {ref}`theorem`.")),
        add(markdown("See {cite:p}`vaswani`.")),
        add(markdown("(a-target)=\n")),
        add(markdown("$$x$$ (eq)")),
        add(markdown("{{ name }}")),
        add(markdown("% a comment")),
        add(markdown("+++")),
        add(markdown("[x]{.red}")),
    ],
    lints.markdown_leaves_nothing_over: [
        add(markdown("**Note ·**and **a **b")),
        add(markdown("A word *that leans.")),
        add(markdown("A `name that does not end.")),
        add(markdown("Wrong ~~and right.")),
        add(markdown("See [there](no end.")),
        add(markdown("See below.[^1]")),
        add(markdown("#Heading")),
        add(markdown("Without a head:\n\n| a | b |\n| 1 | 2 |")),
        add(markdown("> [!NOTE]\n> Mind this.")),
        add(markdown("token\n: a row of x")),
        add(markdown("- [ ] read it")),
        add(markdown("It costs $5.")),
        add(markdown("R&unknown;D")),
    ],
    lints.html_is_only_details: [
        add(markdown("<b>bold</b>")),
        add(markdown("A line<br>break")),
        add(markdown("<!-- hidden -->")),
        add(markdown('<img src="x">')),
        swap(13, "</details>", "", ),
        swap(13, "</summary>\n\n", "</summary>\n"),
        swap(13, "\n\n</details>", "\n</details>"),
        swap(13, "</details>\n\n<details>", "</details>\nand\n\n<details>"),
    ],
    lints.links_hold_for_a_lone_notebook: [
        add(markdown("![A picture](picture.png)")),
        add(markdown("[notation](../book/notation.md)")),
        add(markdown("[there](http://example.org)")),
    ],
    lints.headings_nest: [
        swap(0, "# A", "## A"),
        swap(0, "# A", "# 7. A"),
        swap(0, "# A", "# Chapter A"),
        add(markdown("# Another")),
        add(markdown("#### Deep")),
        swap(8, "Summary", "Closing"),
        lambda cells: cells.append(markdown("## More")),
        lambda cells: cells.append(cells.pop(8)),
    ],
    lints.opening_tells_the_reader: [swap(0, "minutes", "min"), swap(0, "need", "have"), swap(0, "be able to", "")],
    lints.math_is_known_everywhere: [
        add(markdown(r"$\bm{x}$")),
        add(markdown(r"$\RR$")),
        add(markdown("\\begin{align}x\\end{align}")),
        add(markdown("$$\\begin{align}x\\end{align}$$")),
        add(markdown(r"\[x\]")),
        add(markdown("It costs $5.")),
        add(markdown(r"> $$\newcommand{\R}{R}$$")),
        swap(7, "\\mid", "|"),
    ],
    lints.boxes_are_numbered_in_order: [
        swap(3, "7.1", "7.2"),
        swap(3, "7.1", "6.1"),
        add(markdown("> **Definition 7.1 · Same**\n>\n> Again.")),
        swap(3, "**\n>\n> They", "**\n> They"),
        swap(3, "> **Proof.**\n>\n", "> **Proof.**\n"),
        swap(3, " · Weights", ": Weights"),
    ],
    lints.figures_can_be_read_by_everyone: [
        put(4, metadata={}),
        put(4, metadata={"mystnb": {"image": {"alt": "Image"}}}),
        put(4, outputs=[drawn(), drawn()]),
        put(4, outputs=[]),
        swap(4, "plt.show()", "plt.plot([1])"),
        swap(4, "assert 1 + 1 == 2\n", ""),
        swap(5, "7.1", "7.2"),
        swap(5, "7.1", "6.1"),
        swap(5, "above.*", "above."),
        lambda cells: cells.insert(5, markdown("Between.")),
        lambda cells: cells.pop(5),
        add(markdown("*Figure 7.2. Of nothing.*")),
        add(code("live.dials()", [living()]), markdown("No caption.")),
        add(code("live.dials()\nlive.offset()", [living(), living()]), markdown("*Figure 7.1. Two.*")),
    ],
    lints.tables_have_captions_in_order: [
        swap(7, "*Table 7.1.", "*Table 7.2."),
        swap(7, "\n\n*Table 7.1. Letters.*", ""),
        add(markdown("*Table 7.2. Of nothing.*")),
        add(markdown("| a |\n|---|\n| 1 |\n\nText.")),
    ],
    lints.exercises_are_complete: [
        swap(10, "(5 min, ●○○)", "(5 min)"),
        swap(10, "●○○", "●○○○"),
        lambda cells: cells.__delitem__(slice(10, 14)),
        swap(13, "Hint 1", "Hint 2"),
        swap(13, "Hint 1", "Help"),
        swap(13, "Solution", "Answer"),
        swap(13, "Think.", ""),
        swap(13, "```python\nanswer = \"b\"\n```", "The second."),
        swap(12, "7.1", "7.2"),
        put(12, outputs=[printed("✓ 7.1 yes\n")]),
        add(code('check("7.9", answer)')),
    ],
}


@pytest.mark.parametrize("lint", LINTS, ids=lambda lint: lint.__name__)
def test_a_chapter_without_a_fault_passes(lint):
    assert list(lint(planted())) == []


def test_every_lint_has_a_planted_fault():
    assert set(FAULTS) == set(LINTS)


@pytest.mark.parametrize(
    "lint, change", [pytest.param(lint, c, id=f"{lint.__name__}-{i}") for lint, cs in FAULTS.items() for i, c in enumerate(cs)]
)
def test_a_planted_fault_is_found(lint, change):
    assert list(lint(planted(change)))


def test_a_hand_formatted_file_is_not_in_stored_form():
    good = planted()
    good.stored = good.stored.replace('\n "cells"', ' "cells"', 1)
    assert list(lints.file_is_in_stored_form(good))


@pytest.mark.parametrize("metadata", [{}, execute.METADATA | {"kernelspec": {"name": "my-env"}}, execute.METADATA | {"x": 1}])
def test_private_metadata_is_found(metadata):
    bad = planted()
    bad.notebook["metadata"] = metadata
    assert list(lints.metadata_is_plain(bad))
