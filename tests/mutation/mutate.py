"""Plant single faults and count who notices: `make mutants`.

    mutate.py                    a sample of faults in the library, against its tests
    mutate.py --against chapters the faults against the chapters that import the faulty module
    mutate.py --against checks   every fault in every reference solution, against its own `check`

A fault that nothing notices is printed, and the command fails, unless `unnoticed.toml` says why it is none.
The sample is the same every time; `--seed` draws another, `--faults 0` takes all, `--module NAME` one module's.
"""

import argparse
import ast
import contextlib
import dataclasses
import importlib.abc
import importlib.util
import io
import os
import pathlib
import random
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, partial

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "book/_tools", "tests/notebooks", "tests/exercises", "tests/mutation")]

import harness  # noqa: E402
import notebook_files  # noqa: E402
from faults import Fault, faults  # noqa: E402

LIBRARY = ROOT / "lib" / "posenc"
MODULES = (
    "_checks", "attention", "cost", "encodings", "evidence", "models", "recurrent", "series", "symmetry", "tasks", "training",
)  # fmt: skip
SECONDS = {"tests": 240, "chapters": 900, "checks": 60}


def plant(fault: Fault) -> str:
    """From now on this process imports the module with the fault in it; its name."""
    assert not any(name.partition(".")[0] == "posenc" for name in sys.modules), "the library has been imported already"
    module = fault.where.split(".")[0]
    sys.meta_path.insert(0, Faulty(module, fault.source))
    return module


class Faulty(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports one module of the library with a fault in it, and leaves every other to those who know better."""

    def __init__(self, module: str, source: str) -> None:
        self.name, self.source = f"posenc.{module}", source

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, LIBRARY / f"{name.split('.')[1]}.py", loader=self)

    def get_source(self, name: str) -> str:
        return self.source

    def get_code(self, name: str):
        return compile(self.source, str(LIBRARY / f"{name.split('.')[1]}.py"), "exec", dont_inherit=True)

    def exec_module(self, module) -> None:
        exec(self.get_code(module.__name__), module.__dict__)

    def create_module(self, spec):
        return None


def in_children(works: Iterable[Callable[[], bool]], jobs: int, seconds: float) -> list[bool]:
    """What each work says, done in a copy of this process; one that dies or does not end has noticed something."""
    works, running, said = list(works), {}, {}
    while len(said) < len(works):
        started = len(running) + len(said)
        if len(running) < jobs and started < len(works):
            running[_child(works[started])] = (started, time.monotonic() + seconds)
        for child, (i, end) in list(running.items()):
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                said[i] = status != 0
                del running[child]
        time.sleep(0.01)
    return [said[i] for i in range(len(works))]


def _child(work: Callable[[], bool]) -> int:
    child = os.fork()
    if child:
        return child
    noticed = True
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            noticed = work()
    finally:
        os._exit(int(noticed))


# Against the tests


def imported(source: str) -> set[str]:
    """The modules of the library that a piece of Python names in its imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "posenc":
                found |= {parts[1]} if parts[1:] else {name.name for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if name.name.startswith("posenc.")}
    return found


def needed(modules: set[str]) -> set[str]:
    """These modules of the library and all that they import in turn."""
    todo, known = list(modules), set(modules)
    while todo:
        new = imported_by(todo.pop()) - known
        known |= new
        todo += new
    return known


@cache
def imported_by(module: str) -> set[str]:
    path = LIBRARY / f"{module}.py"
    return imported(path.read_text(encoding="utf-8")) if path.exists() else set()


def tests_of(module: str) -> list[str]:
    """The files of tests/lib that reach a module: those that import it themselves come first."""
    paths = [path for path in sorted((ROOT / "tests/lib").glob("test_*.py")) if path.stem != "test_wheel"]
    reach = {path: imported(path.read_text(encoding="utf-8")) for path in paths}
    paths = [path for path in paths if module in needed(reach[path])]
    return [str(path) for path in sorted(paths, key=lambda p: (p.stem != f"test_{module}", module not in reach[p]))]


def tests_notice(fault: Fault) -> bool:
    """Whether a test fails, in a process that has not imported the library yet."""
    import pytest

    module = plant(fault)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:nbval", f"--rootdir={ROOT}", "--hypothesis-seed=0"]
    return any(pytest.main([*options, path]) != 0 for path in tests_of(module))


# Against the chapters


def chapters_of(module: str) -> list[pathlib.Path]:
    """The chapters that import a module, themselves or through another."""
    found = []
    for path in notebook_files.paths():
        cells = [notebook_files.text(c["source"]) for c in notebook_files.read(path)["cells"] if c["cell_type"] == "code"]
        if module in needed(imported("\n".join(cells))):
            found.append(path)
    return found


def notices(chapter: pathlib.Path) -> bool:
    """Whether a cell stops, or prints other lines than those stored."""
    import matplotlib.pyplot as plt

    plt.show = lambda: plt.close("all")
    namespace = {"__name__": "__main__"}
    for cell in notebook_files.read(chapter)["cells"]:
        if cell["cell_type"] != "code":
            continue
        raises = "raises-exception" in cell["metadata"].get("tags", [])
        stored = "".join(notebook_files.text(o["text"]) for o in cell["outputs"] if o.get("name") == "stdout")
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(notebook_files.text(cell["source"]), "cell", "exec"), namespace)
        except Exception:
            if raises:
                continue
            return True
        if raises or printed.getvalue() != stored:
            return True
    return False


def chapters_notice(fault: Fault) -> bool:
    module = plant(fault)
    os.chdir(ROOT / "notebooks")
    return any(notices(path) for path in chapters_of(module))


# Against the checks


def solution_faults(chapter: str | None) -> list[tuple[harness.Card, Fault]]:
    """Every fault in every reference solution, or in those of one chapter."""
    cards = [card for label, card in harness.all_cards().items() if chapter in (None, label.split(".")[0])]
    return [(card, fault) for card in cards for fault in faults(card.solution_code, f"solution {card.label}")]


def check_notices(card: harness.Card, fault: Fault) -> bool:
    spoilt = dataclasses.replace(card, folds=[("Solution", f"```python\n{fault.source}\n```\n")])
    return not harness.run_solution(spoilt).startswith("✓")


# The command


def excused() -> dict[str, str]:
    """The faults that change nothing that anybody could see, each with the reason."""
    listed = tomllib.loads((ROOT / "tests/mutation/unnoticed.toml").read_text(encoding="utf-8"))
    return {name: group["reason"] for group in listed.get("harmless", []) for name in group["faults"]}


def sample(options: argparse.Namespace) -> list[Fault]:
    modules = [options.module] if options.module else [m for m in MODULES if (LIBRARY / f"{m}.py").exists()]
    every = [f for m in modules for f in faults((LIBRARY / f"{m}.py").read_text(encoding="utf-8"), m)]
    count = options.faults or len(every)
    drawn = random.Random(options.seed).sample(range(len(every)), min(count, len(every)))
    return [every[i] for i in sorted(drawn)]


def report(kind: str, planted: Counter, missed: list[Fault]) -> int:
    reasons = excused()
    rows = Counter(fault.where.split(".")[0] for fault in missed)
    for module, count in planted.items():
        print(f"  {module:14} {count - rows[module]:4} of {count:4}")
    open_, total = [fault for fault in missed if fault.name not in reasons], sum(planted.values())
    share = (total - len(missed)) / max(total - (len(missed) - len(open_)), 1)
    print(f"{kind}: noticed {total - len(missed)} of {total}; {len(missed) - len(open_)} are argued to be no faults; {share:.1%} of the rest")
    for fault in open_:
        print(f"  not noticed: {fault.kind}: {fault.name}")
    return len(open_)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", choices=("tests", "chapters", "checks"), default="tests")
    parser.add_argument("--faults", type=int, default=None, help="how many: 160 against tests, 30 against chapters; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", help="a module of the library; or the number of a chapter, against checks")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    # Here and not above: what imports this module, the tests, goes on to start kernels that draw.
    os.environ.update(OMP_NUM_THREADS="1", MPLBACKEND="agg")
    # Imported once, and shared by the children: a second for each fault.
    import hypothesis  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import pytest  # noqa: F401
    import torch

    torch.set_num_threads(1)
    start = time.monotonic()
    if options.against == "checks":
        from posenc.exercises import registry

        registry()
        pairs = solution_faults(options.module)
        drawn = [fault for _, fault in pairs]
        works = [partial(check_notices, card, fault) for card, fault in pairs]
    else:
        options.faults = {"tests": 160, "chapters": 30}[options.against] if options.faults is None else options.faults
        drawn = sample(options)
        works = [partial({"tests": tests_notice, "chapters": chapters_notice}[options.against], fault) for fault in drawn]
    planted = Counter(fault.where.split(".")[0] for fault in drawn)
    noticed = in_children(works, options.jobs, SECONDS[options.against])
    missed = [fault for fault, seen in zip(drawn, noticed) if not seen]
    left = report(options.against, planted, missed)
    print(f"{time.monotonic() - start:.0f} s")
    # Chapters are not asked to notice everything: they are there to be read.
    return 1 if left and options.against != "chapters" else 0


if __name__ == "__main__":
    sys.exit(main())
