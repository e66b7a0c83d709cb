"""Plant single faults and count who notices: `make mutants`.

    mutate.py                    a sample of faults in the library, against its tests
    mutate.py --against chapters the faults against the chapters that import the faulty module
    mutate.py --against checks   every fault in every reference solution, against its own `check`

A fault that nothing notices is printed; `unnoticed.toml` lists those that are none, and says why. The command fails
where fewer are noticed than are wanted, or where something is noticed without a fault.
The sample is the same every time; `--seed` draws another, `--faults 0` takes all, `--module NAME` one module's.
"""

import argparse
import ast
import contextlib
import dataclasses
import importlib.abc
import importlib.util
import io
import math
import os
import pathlib
import random
import resource
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("lib", "book/_tools", "tests/notebooks", "tests/exercises", "tests/mutation")]

import harness  # noqa: E402
import notebook_files  # noqa: E402
from faults import Fault, faults, sound  # noqa: E402

LIBRARY = ROOT / "lib" / "posenc"
MODULES = (
    "_checks", "attention", "cost", "encodings", "evidence", "models", "recurrent", "series", "symmetry", "tasks", "training",
)  # fmt: skip
# Of the processor: sound work needs less than a third of it. Five times as long on the clock, for what waits and does not end.
SECONDS = {"tests": 150, "chapters": 900, "checks": 30}
TARGETS = {"tests": 0.95, "chapters": 0.7, "checks": 1.0}


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


def in_children(works: Iterable[Callable[[], bool]], jobs: int, seconds: float) -> Iterator[tuple[int, str]]:
    """Each work done in a copy of this process, in the order of their ends: its number and what became of it.

    That is "noticed" or "unnoticed", as it says itself, or "hung" or "died" where it could not say anything.
    """
    waiting, running = list(enumerate(works))[::-1], {}
    while waiting or running:
        if waiting and len(running) < jobs:
            i, work = waiting.pop()
            running[_child(work, seconds)] = (i, time.monotonic() + 5 * seconds)
        for child, (i, end) in list(running.items()):
            if time.monotonic() > end:
                os.kill(child, signal.SIGXCPU)
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                del running[child]
                if os.WIFSIGNALED(status):
                    yield i, "hung" if os.WTERMSIG(status) == signal.SIGXCPU else "died"
                else:
                    yield i, "noticed" if os.WEXITSTATUS(status) else "unnoticed"
        time.sleep(0.01)


def _child(work: Callable[[], bool], seconds: float) -> int:
    child = os.fork()
    if child:
        return child
    noticed = True
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
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


def chapters_notice(fault: Fault, chapters: list[pathlib.Path] | None = None) -> bool:
    module = plant(fault)
    os.chdir(ROOT / "notebooks")
    return any(notices(path) for path in chapters or chapters_of(module))


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


def source_of(module: str) -> str:
    return (LIBRARY / f"{module}.py").read_text(encoding="utf-8")


def sample(options: argparse.Namespace) -> list[Fault]:
    every = [f for module in ([options.module] if options.module else MODULES) for f in faults(source_of(module), module)]
    count = options.faults or len(every)
    drawn = random.Random(options.seed).sample(range(len(every)), min(count, len(every)))
    return [every[i] for i in sorted(drawn)]


Works = list[tuple[Fault, Callable[[], bool]]]


def works(options: argparse.Namespace) -> tuple[Works, Works]:
    """What is asked first, without a fault, and then with one. Who notices something in sound work has noticed nothing."""
    if options.against == "checks":
        pairs = solution_faults(options.module)
        cards = {card.label: card for card, _ in pairs}
        unspoilt = [(card, sound(card.solution_code, f"solution {card.label}")) for card in cards.values()]
        return tuple([(fault, partial(check_notices, card, fault)) for card, fault in group] for group in (unspoilt, pairs))
    drawn, nothing = sample(options), sound(source_of("_checks"), "_checks")
    if options.against == "tests":
        return [(nothing, partial(tests_notice, nothing))], [(fault, partial(tests_notice, fault)) for fault in drawn]
    each = [(sound(source_of("_checks"), path.stem), partial(chapters_notice, nothing, [path])) for path in notebook_files.paths()]
    return each, [(fault, partial(chapters_notice, fault)) for fault in drawn]


def watch(works: Works, options: argparse.Namespace) -> list[str]:
    """What became of each; on the way, a line for each that nothing noticed or that could not say."""
    became = [""] * len(works)
    for done, (i, outcome) in enumerate(in_children([work for _, work in works], options.jobs, SECONDS[options.against]), 1):
        became[i] = outcome
        if outcome != ("unnoticed" if works[i][0].is_none else "noticed"):
            print(f"  {done:4} of {len(works)}  {outcome}: {works[i][0].kind}: {works[i][0].name}", flush=True)
    return became


def report(kind: str, drawn: list[Fault], became: list[str]) -> bool:
    """Print the table; whether the target is met."""
    reasons, planted = excused(), Counter(fault.where.split(".")[0] for fault in drawn)
    missed = [fault for fault, outcome in zip(drawn, became) if outcome == "unnoticed"]
    rows = Counter(fault.where.split(".")[0] for fault in missed)
    for module, count in planted.items():
        print(f"  {module:14} {count - rows[module]:4} of {count:4}")
    open_ = [fault for fault in missed if fault.name not in reasons]
    counted = len(drawn) - (len(missed) - len(open_))
    share = (counted - len(open_)) / max(counted, 1)
    print(f"{kind}: noticed {len(drawn) - len(missed)} of {len(drawn)}, {became.count('hung')} of them by not ending, {became.count('died')} by dying;")
    print(f"{len(missed) - len(open_)} are argued to be no faults; of the others {share:.1%} are noticed (target: {TARGETS[kind]:.0%})")
    for fault in open_:
        print(f"  not noticed: {fault.kind}: {fault.name}")
    return share >= TARGETS[kind]


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
    if options.faults is None:
        options.faults = {"tests": 160, "chapters": 30, "checks": 0}[options.against]
    unspoilt, spoilt = works(options)
    if set(watch(unspoilt, options)) != {"unnoticed"}:
        print("Something is noticed where nothing is wrong: mend that first.")
        return 1
    met = report(options.against, [fault for fault, _ in spoilt], watch(spoilt, options))
    print(f"{time.monotonic() - start:.0f} s")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
