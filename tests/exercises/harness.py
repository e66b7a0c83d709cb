"""An exercise as the reader meets it: card, stub, check, hints and solution, taken from the notebook.

The tests that hold for every exercise of the book are in test_exercises.py beside this file; what they need to
know of a chapter (right answers, differently written) is in chapter_NN.py.
"""

import builtins
import contextlib
import io
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, field

import matplotlib
import notebook_files
import torch

CARD = re.compile(r"^> \*\*Exercise (\d+\.\d+) · (.+?)\*\* \((\d+) min, ([●○]{3})\)$", re.MULTILINE)
FOLDED = re.compile(r"(?s)<details>\s*<summary>([^<]*)</summary>\n(.*?)</details>")
FENCED_PYTHON = re.compile(r"(?ms)^```python\n(.*?)^```$")


@dataclass
class Card:
    """One exercise, as it stands in a notebook. `before` holds the code cells above its stub."""

    label: str
    title: str
    statement: str
    before: list[str]
    code: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    folds: list[tuple[str, str]] = field(default_factory=list)

    @property
    def hints(self) -> list[str]:
        return [body for summary, body in self.folds if summary.startswith("Hint")]

    @property
    def solution(self) -> str:
        return "\n".join(body for summary, body in self.folds if summary == "Solution")

    @property
    def solution_code(self) -> str:
        return "\n".join(FENCED_PYTHON.findall(self.solution))

    @property
    def check_line(self) -> str:
        """The line ``check("N.M", …)``; empty if there is none, or not exactly one for this exercise."""
        calls = re.findall(rf'(?m)^check\("{re.escape(self.label)}", .+\)$', "\n".join(self.code))
        return calls[0] if len(calls) == 1 else ""


def cards(notebook: dict) -> list[Card]:
    """The exercises of a notebook, in order; a card ends at the next card or the next heading."""
    found, before, card = [], [], None
    for cell in notebook["cells"]:
        source = notebook_files.text(cell["source"])
        if cell["cell_type"] == "code":
            before.append(source)
            if card:
                card.code.append(source)
                card.outputs += [notebook_files.text(output.get("text", "")) for output in cell["outputs"]]
            continue
        lead = CARD.search(source)
        if lead:
            card = Card(lead[1], lead[2], source[lead.end() :], list(before))
            found.append(card)
        elif re.match(r"#+ ", source):
            card = None
        if card:
            card.folds += [(summary.strip(), body) for summary, body in FOLDED.findall(source)]
    return found


def all_cards() -> dict[str, Card]:
    """Every exercise of the book, by label."""
    return {card.label: card for path in notebook_files.paths() for card in cards(notebook_files.read(path))}


@contextlib.contextmanager
def settings_kept() -> Iterator[None]:
    """What a chapter sets for its own kernel (default dtype, look of figures) ends with the block."""
    dtype = torch.get_default_dtype()
    with matplotlib.rc_context(), torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


def run_solution(card: Card) -> str:
    """What ``check`` prints when the reader puts the solution in the stub's place.

    Of the cells above the stub, only those are run that the solution rests on.
    """
    code = f"{card.solution_code}\n{card.check_line}"
    namespace, printed = {}, io.StringIO()
    with settings_kept():
        for source in [*needed_cells(card.before, code), card.solution_code]:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(source, f"exercise {card.label}", "exec"), namespace)
        with contextlib.redirect_stdout(printed):
            exec(compile(card.check_line, f"exercise {card.label}", "exec"), namespace)
    return printed.getvalue()


def needed_cells(cells: list[str], code: str) -> list[str]:
    """Those of `cells` that define, directly or through one another, the names that `code` uses."""
    wanted, kept = _names(code)[0] - _names(code)[1], []
    for source in reversed(cells):
        loads, stores = _names(source)
        if stores & wanted:
            kept.insert(0, source)
            wanted = (wanted - stores) | loads
    return kept


def _names(code: str) -> tuple[set[str], set[str]]:
    """The global names that a piece of code reads, and those that it defines."""
    top = symtable.symtable(code, "cell", "exec")
    stores = {name.get_name() for name in top.get_symbols() if name.is_assigned() or name.is_imported()}
    loads, tables = {name.get_name() for name in top.get_symbols() if name.is_referenced()}, list(top.get_children())
    for table in tables:
        loads |= {name.get_name() for name in table.get_symbols() if name.is_global()}
        tables += table.get_children()
    return loads - set(dir(builtins)), stores
