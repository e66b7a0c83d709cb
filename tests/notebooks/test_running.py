"""Failing notebooks fail the run, and a notebook alone in an empty folder runs as it does in the repository."""

import pathlib
import shutil
import sys
from xml.etree import ElementTree

import address
import execute
import nbformat
import notebook_files
import pytest
from pictures import NOTICEABLE, difference, pictures
from work_copy import git, published_copy, run, work_copy

ROOT = notebook_files.ROOT


# A planted failing notebook


def stored(path: pathlib.Path, *cells: tuple[str, str]) -> pathlib.Path:
    """A notebook file with the given code cells and what each is said to have printed."""
    made = []
    for count, (code, printed) in enumerate(cells, 1):
        outputs = [nbformat.v4.new_output("stream", text=printed)] if printed else []
        made.append(nbformat.v4.new_code_cell(code, outputs=outputs, execution_count=count))
    notebook_files.write(path, execute.normalise(nbformat.v4.new_notebook(cells=made)))
    return path


FAILING = {
    "raises": ("1/0", ""),
    "another_number": ("print(3)", "2\n"),
    "new_output": ("print(2)", ""),
    "no_output": ("x", "2\n"),
    "an_unknown_magic_first": ("%notmagic\nraise TypeError", ""),
    "stderr": ("import sys\nprint('careful', file=sys.stderr)", ""),
    "a_warning": ("import warnings\nwarnings.warn('careful')", ""),
}


def nbval(folder: pathlib.Path) -> tuple[int, set[str], set[str]]:
    """Run the notebooks in a folder with the options of `make test`: the exit code, which cells passed, which failed."""
    report = folder / "report.xml"
    options = ["--nbval", "-n", "2", "--dist", "loadscope", "-p", "no:cacheprovider", f"--junitxml={report}"]
    outcome = run(sys.executable, "-m", "pytest", *options, folder, cwd=folder)
    cells = {True: set(), False: set()}
    for case in ElementTree.parse(report).iter("testcase"):
        cells[len(case) == 0].add(f"{case.get('classname')}::{case.get('name')}")
    return outcome.returncode, cells[True], cells[False]


def test_failing_notebooks_fail_the_run_and_a_sound_one_passes(tmp_path):
    stored(tmp_path / "sound.ipynb", ("x = 2", ""), ("print(x)", "2\n"))
    for name, cell in FAILING.items():
        stored(tmp_path / f"{name}.ipynb", ("x = 2", ""), cell)
    code, passed, failed = nbval(tmp_path)
    assert code == 1
    assert failed == {f"{name}.ipynb::Cell 1" for name in FAILING}
    assert passed == {f"{name}.ipynb::Cell 0" for name in FAILING} | {"sound.ipynb::Cell 0", "sound.ipynb::Cell 1"}


@pytest.mark.parametrize("code", ["1/0", "import warnings\nwarnings.warn('careful')"], ids=["raises", "warns"])
def test_a_failing_notebook_is_not_written(tmp_path, code):
    path = stored(tmp_path / "planted.ipynb", ("print(2)", "3\n"), (code, ""))
    before = path.read_bytes()
    outcome = run(sys.executable, ROOT / "book/_tools/execute.py", path)
    assert outcome.returncode == 1
    assert "NOT WRITTEN" in outcome.stderr
    assert path.read_bytes() == before


def test_executing_stores_what_ran_and_nothing_of_the_run(tmp_path):
    path = stored(tmp_path / "planted.ipynb", ("print(1)\nprint(2)", "3\n"), ("raise KeyError", ""))
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].metadata = {"tags": ["raises-exception"], "collapsed": True}
    notebook_files.write(path, notebook)
    execute.execute_in_place(path)
    once = path.read_text(encoding="utf-8")
    notebook = nbformat.read(path, as_version=4)
    assert execute.texts(notebook) == [["1\n2\n"], ["KeyError"]]
    assert [cell.execution_count for cell in notebook.cells] == [1, 2]
    assert notebook.cells[1].metadata == {"tags": ["raises-exception"]}
    assert once == notebook_files.dumps(notebook_files.read(path))
    execute.execute_in_place(path)
    assert path.read_text(encoding="utf-8") == once


def test_a_stored_traceback_shows_the_cell_and_the_message_and_no_file(tmp_path):
    path = stored(tmp_path / "planted.ipynb", ("import json\njson.loads('{')", ""))
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].metadata = {"tags": ["raises-exception"]}
    notebook_files.write(path, notebook)
    execute.execute_in_place(path)
    (error,) = nbformat.read(path, as_version=4).cells[0].outputs
    shown = "\n".join(error.traceback)
    assert "json.loads" in shown and error.evalue in shown
    assert "File" not in shown and ".py" not in shown


# The repository's address, and a notebook alone


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> pathlib.Path:
    return work_copy(tmp_path_factory.mktemp("copy"))


@pytest.fixture(scope="module")
def published(copy, tmp_path_factory) -> pathlib.Path:
    return published_copy(copy, tmp_path_factory.mktemp("bare"), tmp_path_factory.mktemp("published"))


def changed(folder: pathlib.Path) -> list[str]:
    return sorted(line[3:] for line in git("status", "--porcelain", cwd=folder).splitlines())


def test_the_address_is_written_everywhere_and_unset_again(copy):
    names = [f"notebooks/{path.name}" for path in notebook_files.paths()]
    url = "https://github.com/reader/where-order-comes-from"
    address.publish_at(url + ".git/", copy)
    assert changed(copy) == sorted(["README.md", "_config.yml", *names])
    assert address.fact(copy) == (url, "main")
    readme = (copy / "README.md").read_text(encoding="utf-8")
    colab = "https://colab.research.google.com/github/reader/where-order-comes-from/blob/main/"
    assert [name for name in names if f"({colab}{name})" in readme] == names
    for name in names:
        assert f'"{url}", "main"' in (copy / name).read_text(encoding="utf-8").replace('\\"', '"')
    address.publish_at("", copy)
    assert changed(copy) == []


def test_the_address_may_name_a_branch(copy):
    url = "https://github.com/reader/where-order-comes-from"
    address.publish_at(f"{url}/tree/try/colab/", copy)
    assert address.fact(copy) == (url, "try/colab")
    name = f"notebooks/{notebook_files.paths()[0].name}"
    assert f'"{url}", "try/colab"' in (copy / name).read_text(encoding="utf-8").replace('\\"', '"')
    assert f"reader/where-order-comes-from/blob/try/colab/{name})" in (copy / "README.md").read_text(encoding="utf-8")
    address.publish_at(url, copy)
    assert address.fact(copy) == (url, "main")
    address.publish_at("", copy)
    assert changed(copy) == []


def test_the_clone_is_of_the_branch_that_the_address_names(copy, tmp_path):
    work = published_copy(copy, tmp_path, tmp_path, branch="published")
    (tmp_path / "empty").mkdir()
    outcome = run(sys.executable, "-c", address.setup_cell(work), cwd=tmp_path / "empty")
    assert outcome.returncode == 0, outcome.stderr
    clone = tmp_path / "empty" / "where-order-comes-from"
    assert git("branch", "--show-current", cwd=clone).strip() == "published"


@pytest.mark.parametrize("url", ["github.com/reader/book", 'https://x.org/"; rm', "https://x.org/a b", "ssh://x.org/a", "http://x.org/a", "https://x.org/a/b/tree/"])
def test_what_is_no_address_is_refused(copy, url):
    with pytest.raises(ValueError, match="not an address like"):
        address.publish_at(url, copy)
    assert changed(copy) == []


def test_without_an_address_the_command_only_tells(copy):
    outcome = run("make", "repository", f"PYTHON={sys.executable}", cwd=copy, URL="https://x.org/from-the-environment")
    assert (outcome.returncode, outcome.stdout) == (0, "repository: not set\n")
    assert changed(copy) == []


def test_every_copy_of_the_address_is_the_configs():
    url, branch = address.fact()
    template = (ROOT / "book/_tools/setup_cell.py").read_text(encoding="utf-8")
    assert '"", "main"' in template, "the template stays unset; `make repository` fills it in"
    assert f'"{url}", "{branch}"' in address.setup_cell()
    assert address.readme_part() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_set_up_cell_does_nothing_where_the_library_is_installed(tmp_path):
    cell = address.setup_cell()
    code = f"import sys\nsys.path.insert(0, {str(ROOT / 'lib')!r})\nbefore = list(sys.path)\n{cell}\nassert sys.path == before"
    assert run(sys.executable, "-c", code, cwd=tmp_path).stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_the_set_up_cell_without_an_address_says_what_is_missing(tmp_path):
    template = (ROOT / "book/_tools/setup_cell.py").read_text(encoding="utf-8")
    outcome = run(sys.executable, "-c", template, cwd=tmp_path)
    assert outcome.returncode == 1
    assert "posenc is missing" in outcome.stderr


# The "::" in a name makes each chapter a scope of its own, so that several run side by side.
@pytest.mark.parametrize("name", [pytest.param(path.name, id=f"{path.stem}::alone") for path in notebook_files.paths()])
def test_a_lone_notebook_gives_the_same_text_and_pictures(published, tmp_path, name, monkeypatch):
    # nbval executes the chapters with one thread; what they print must not depend on it.
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    # Two of these run side by side: threads that wait must not keep each other from the cores.
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    shutil.copy(published / "notebooks" / name, tmp_path)
    notebook = nbformat.read(tmp_path / name, as_version=4)
    expected, drawn = execute.texts(notebook), pictures(notebook)
    assert execute.texts(execute.execute(notebook, tmp_path)) == expected
    assert len(pictures(notebook)) == len(drawn)
    differ = [difference(before, after) for before, after in zip(drawn, pictures(notebook))]
    assert not [f"figure {i} differs by {gap:.2f}" for i, gap in enumerate(differ, 1) if gap > NOTICEABLE]
    clone = tmp_path / "where-order-comes-from"
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, clone.name]
    assert git("rev-list", "--count", "HEAD", cwd=clone).strip() == "1"


def test_posenc_is_not_installed_beside_the_tests(tmp_path):
    outcome = run(sys.executable, "-c", "import importlib.metadata as m; print(m.version('posenc'))", cwd=tmp_path)
    assert "PackageNotFoundError" in outcome.stderr
