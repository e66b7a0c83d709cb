"""Every known fault is held by something that is there."""

import ast
import sys

import lints
import notebook_files
import pytest

from posenc.exercises import registry

sys.path.append(str(notebook_files.ROOT / "tests"))
import known_faults  # noqa: E402


def functions_in(path: str) -> set[str]:
    tree = ast.parse((notebook_files.ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("fault", known_faults.faults(), ids=lambda fault: fault["name"])
def test_its_holders_exist(fault):
    assert fault["held_by"] and len(fault["right"].split()) > 2
    for holder in fault["held_by"]:
        if holder.startswith("lint "):
            assert holder.removeprefix("lint ") in {lint.__name__ for lint in lints.LINTS}
        elif holder.startswith("exercise "):
            assert getattr(registry()[holder.removeprefix("exercise ")], "mistakes", None) or holder == "exercise 2.6"
        else:
            path, _, name = holder.partition("::")
            assert name in functions_in(path) if name else functions_in(path), holder


def test_the_table_has_a_row_for_each_and_none_twice():
    names = [fault["name"] for fault in known_faults.faults()]
    assert len(set(names)) == len(names) >= 40
    assert len(known_faults.table().splitlines()) == len(names) + 2
