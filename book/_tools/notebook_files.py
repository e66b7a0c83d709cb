"""Where the notebooks are, and the one form in which they are stored. Standard library only."""

import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def paths(root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """The chapters, in order."""
    return sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def read(path: pathlib.Path) -> dict:
    """A notebook as JSON gives it: sources and texts may be lists of lines."""
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def dumps(notebook: dict) -> str:
    """The stored form: what Jupyter itself writes, so that a save there changes no line."""
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True, separators=(",", ": ")) + "\n"


def write(path: pathlib.Path, notebook: dict) -> None:
    pathlib.Path(path).write_text(dumps(notebook), encoding="utf-8", newline="\n")


def text(value: str | list[str]) -> str:
    """A source or an output text as one string."""
    return value if isinstance(value, str) else "".join(value)


def lines(value: str) -> list[str]:
    """A text as the format stores it: lines that keep their ends (and only "\\n" ends one)."""
    parts = value.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
