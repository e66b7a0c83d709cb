"""`pip install .` gives a `posenc` that works anywhere, and a wheel holds exactly the library."""

import pathlib
import sys
import zipfile

import pytest
from work_copy import ROOT, run, work_copy

LIBRARY = ROOT / "lib" / "posenc"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> pathlib.Path:
    source, made = work_copy(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("made")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    outcome = run(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", made, source)
    assert outcome.returncode == 0, outcome.stderr
    (path,) = made.glob("*.whl")
    return path


def test_the_wheel_holds_the_library_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    ours = {p.relative_to(LIBRARY.parent).as_posix() for p in LIBRARY.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert packed == ours
    assert "posenc/py.typed" in packed
    assert {"posenc/data/sunspots.csv", "posenc/data/map.json", "posenc/live/core.js"} <= packed


def test_what_is_installed_works_without_the_repository(wheel, tmp_path):
    place, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    options = ["--no-deps", "--no-index", "--disable-pip-version-check", "--quiet"]
    outcome = run(sys.executable, "-m", "pip", "install", *options, "--target", place, wheel)
    assert outcome.returncode == 0, outcome.stderr
    names = sorted(p.relative_to(LIBRARY.parent).with_suffix("").as_posix().replace("/", ".") for p in LIBRARY.rglob("*.py"))
    code = "\n".join([
        "import importlib, pathlib, posenc",
        f"for name in {names!r}: importlib.import_module(name.removesuffix('.__init__'))",
        "from posenc.series import sunspots",
        "print(pathlib.Path(posenc.__file__).parent, len(sunspots()[0]))",
    ])  # fmt: skip
    outcome = run(sys.executable, "-W", "error::DeprecationWarning:posenc", "-c", code, cwd=elsewhere, PYTHONPATH=str(place))
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == [str(place / "posenc"), "309"]


def test_the_wheel_asks_for_what_the_library_imports(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(name).decode()
    wanted = [line.removeprefix("Requires-Dist: ") for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    always = {line.split(">=")[0] for line in wanted if "extra ==" not in line}
    assert always == {"matplotlib", "numpy", "torch"}
    assert {line.split(">=")[0] for line in wanted} - always == {"safetensors", "tokenizers"}
    assert all(">=" in line for line in wanted), "lower bounds only"
