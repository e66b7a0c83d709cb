"""The faults that `make mutants` plants are faults, and it sees who notices them."""

import ast
import json
import os
import signal
import sys

import mutate
import pytest
from faults import faults, sound
from work_copy import run

SOURCE = '''
def far(x, y, *, axis=-1):
    """Docstring 1."""
    if x < 0:
        raise ValueError(f"{x + 1} is too small")
    return torch.sin(x - 2 * y).sum(dim=axis)
'''


def run_with_command(code: str):
    """Run Python that can import the command, in a process of its own: one that has computed in threads may not be copied."""
    place = os.pathsep.join(str(mutate.ROOT / folder) for folder in ("tests/mutation", "tests/exercises", "book/_tools"))
    return run(sys.executable, "-c", code, PYTHONPATH=place)


def kinds(source: str) -> set[tuple[str, str, str]]:
    return {(fault.kind, fault.before, fault.after) for fault in faults(source)}


def test_what_can_go_wrong_in_a_line():
    assert kinds(SOURCE) == {
        ("sign", "-1", "1"),
        ("off by one", "1", "2"),
        ("unchecked", "if x < 0: raise ValueError(f'{x + 1} is too small')", "pass"),
        ("comparison", "x < 0", "x <= 0"),
        ("off by one", "0", "1"),
        ("name", "torch.sin", "torch.cos"),
        ("name", "torch.sin(x - 2 * y).sum", "torch.sin(x - 2 * y).mean"),
        ("left out", "torch.sin(x - 2 * y).sum(dim=axis)", "torch.sin(x - 2 * y).sum()"),
        ("operator", "x - 2 * y", "x + 2 * y"),
        ("order", "x - 2 * y", "2 * y - x"),
        ("operator", "2 * y", "2 / y"),
        ("off by one", "2", "3"),
    }


def test_each_fault_changes_one_place_and_compiles():
    sound = ast.unparse(ast.parse(SOURCE))
    for fault in faults(SOURCE):
        compile(fault.source, "faulty", "exec")
        changed = [(a, b) for a, b in zip(sound.splitlines(), fault.source.splitlines()) if a != b]
        assert changed and (len(changed) == 1 or fault.kind == "unchecked"), fault


def test_no_fault_is_the_same_code():
    assert sound(SOURCE, "a").is_none and sound(SOURCE, "a").source == ast.unparse(ast.parse(SOURCE))
    assert not any(fault.is_none for fault in faults(SOURCE))


def test_places_are_named_apart_and_by_what_holds_them():
    names = [fault.name for fault in faults("class A:\n    def f(self, x):\n        return x + 1 + x + 1\n", "a")]
    assert len(set(names)) == len(names)
    assert "a.A.f: 1 -> 2" in names and "a.A.f: 1 -> 2 #2" in names


def test_what_is_not_computed_is_left_alone():
    assert not kinds('"""Text."""\nfrom a import b\n__all__ = ["b"]\nx: int | None\nraise ValueError(1 + 1)\n')


def test_who_reaches_a_module():
    assert mutate.tests_of("recurrent")[0].endswith("tests/lib/test_recurrent.py")
    assert any(name.endswith("test_training.py") for name in mutate.tests_of("attention"))
    assert not any(name.endswith("test_evidence.py") for name in mutate.tests_of("attention"))
    assert mutate.needed({"models"}) >= {"attention", "encodings", "_checks"}


def test_a_work_that_fails_has_noticed_and_one_that_dies_or_hangs_is_told_apart():
    def hangs():
        while True:
            pass

    def waits():
        signal.pause()

    def dies():
        os.kill(os.getpid(), signal.SIGKILL)

    works = [lambda: False, lambda: True, lambda: 1 / 0, dies, hangs, waits, lambda: False]
    became = ["unnoticed", "noticed", "noticed", "died", "hung", "hung", "unnoticed"]
    assert [outcome for _, outcome in sorted(mutate.in_children(works, jobs=3, seconds=0.5))] == became


PLANTED = """
import mutate
(fault,) = [f for f in mutate.faults(mutate.source_of("attention"), "attention") if ".tril" in f.before]
mutate.plant(fault)
from posenc.attention import causal_mask
assert causal_mask(3)[0].all()
"""


def test_a_fault_is_what_the_library_then_computes():
    outcome = run_with_command(PLANTED)
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.parametrize(("printed", "code", "seen"), [("2", "print(2)", False), ("2", "print(3)", True), ("", "1 / 0", True)])
def test_a_chapter_notices_another_line_and_a_stop(tmp_path, printed, code, seen):
    output = [{"name": "stdout", "output_type": "stream", "text": f"{printed}\n"}] if printed else []
    cell = {"cell_type": "code", "execution_count": 1, "id": "a", "metadata": {}, "outputs": output, "source": code}
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    assert mutate.notices(tmp_path / "a.ipynb") is seen


@pytest.mark.parametrize(
    ("unspoilt", "spoilt", "code", "last"),
    [
        ([False], [True] * 19 + [False], 0, "of the others 95.0% are noticed"),
        ([False], [True] * 18 + [False] * 2, 1, "of the others 90.0% are noticed"),
        ([False, True], [True] * 20, 1, "noticed where nothing is wrong"),
    ],
    ids=["enough", "too few", "sound work is noticed"],
)
def test_the_command_fails_where_it_should(monkeypatch, capsys, unspoilt, spoilt, code, last):
    for name in ("OMP_NUM_THREADS", "MPLBACKEND"):  # set by the command, and put back after the test
        monkeypatch.setenv(name, "")
    groups = ([(sound("x = 1", "a"), lambda seen=seen: seen) for seen in unspoilt], [(faults("x = 1", "a")[0], lambda seen=seen: seen) for seen in spoilt])
    monkeypatch.setattr(mutate, "works", lambda options: groups)
    monkeypatch.setattr(sys, "argv", ["mutate.py"])
    assert mutate.main() == code
    assert last in capsys.readouterr().out


def test_importing_the_command_changes_no_setting():
    outcome = run_with_command("import os\nbefore = dict(os.environ)\nimport mutate\nassert dict(os.environ) == before")
    assert outcome.returncode == 0, outcome.stderr


def test_what_is_excused_is_there_and_argued():
    """A reason that has lost its fault goes too, so that the list does not grow old."""
    known = {f.name for module in mutate.MODULES for f in faults((mutate.LIBRARY / f"{module}.py").read_text(encoding="utf-8"), module)}
    known |= {fault.name for _, fault in mutate.solution_faults(None)}
    excused = mutate.excused()
    assert sorted(set(excused) - known) == []
    assert all(len(reason.split()) > 3 for reason in excused.values())
