#!/usr/bin/env python3
"""Where the book is published: one fact in _config.yml, and every copy of it. Standard library only.

    address.py                 print the address
    address.py URL             write it to _config.yml, the notebooks' set-up cells and README.md
    address.py ''              unset it in all of them

URL may end in /tree/BRANCH, as in the browser; otherwise the branch is main.
"""

import pathlib
import re
import sys

import notebook_files
from notebook_files import ROOT

URL_LINE = re.compile(r"(?m)^(repository:\n(?:[ \t]+.*\n|[ \t]*#.*\n)*?[ \t]+url[ \t]*:)[ \t]*([^\s#]*)")
BRANCH_LINE = re.compile(r"(?m)^(repository:\n(?:[ \t]+.*\n|[ \t]*#.*\n)*?[ \t]+branch[ \t]*:)[ \t]*([^\s#]+)")
CELL_LINE = re.compile(r'(?m)^( *repository, branch = )"[^"]*", "[^"]*"')
README_PART = re.compile(r"(?s)(<!-- repository -->\n).*?(<!-- /repository -->)")
ADDRESS = re.compile(r"((?:https|file)://[\w.~/:@+-]+?)(?:/tree/([\w./+-]*[\w+-]))?/?")


def fact(root: pathlib.Path = ROOT) -> tuple[str, str]:
    """The address ("" when unset) and the branch, from _config.yml."""
    config = (root / "_config.yml").read_text(encoding="utf-8")
    return URL_LINE.search(config)[2].strip("\"'"), BRANCH_LINE.search(config)[2].strip("\"'")


def setup_cell(root: pathlib.Path = ROOT) -> str:
    """The first code cell of every notebook, with the fact filled in."""
    url, branch = fact(root)
    template = (root / "book/_tools/setup_cell.py").read_text(encoding="utf-8").rstrip("\n")
    cell, count = CELL_LINE.subn(lambda found: f'{found[1]}"{url}", "{branch}"', template)
    if count != 1:
        raise ValueError(f"setup_cell.py has {count} lines that name the repository, expected 1")
    return cell


def readme_part(root: pathlib.Path = ROOT) -> str:
    """What README.md says about opening chapters in Colab."""
    url, branch = fact(root)
    if not url.startswith("https://github.com/"):
        return (
            "The chapters open in Colab once the book knows where it is published. Colab reads from GitHub, so after\n"
            "pushing there, run `make repository URL=https://github.com/OWNER/REPOSITORY`, commit and push again: that\n"
            "writes the address into `_config.yml`, the notebooks' set-up cells and this section.\n"
        )
    colab = url.replace("https://github.com/", "https://colab.research.google.com/github/", 1)
    links = [f"- [{title(path)}]({colab}/blob/{branch}/notebooks/{path.name})" for path in notebook_files.paths(root)]
    return "\n".join(["Open a chapter in Colab and choose *Run all*:", "", *links, ""])


def title(path: pathlib.Path) -> str:
    """The heading of a chapter, with its number."""
    first = notebook_files.text(notebook_files.read(path)["cells"][0]["source"]).split("\n")[0]
    return f"{int(path.name[:2])}. {first.lstrip('# ')}"


def publish_at(url: str, root: pathlib.Path = ROOT) -> None:
    """Write `url` to _config.yml and to every copy.

    Raises
    ------
    ValueError
        If it is not an address that git can clone over https (or from a file), or there is no place to write it.
    """
    found = ADDRESS.fullmatch(url.strip()) if url.strip() else None
    if url.strip() and (not found or found[1].endswith("/tree")):
        raise ValueError(f"not an address like https://github.com/OWNER/REPOSITORY: {url!r}")
    home, branch = (found[1], found[2] or "main") if found else ("", "main")
    if home.startswith("https:"):
        home = home.removesuffix(".git")
    _substitute(root / "_config.yml", URL_LINE, lambda line: f'{line[1]} "{home}"')
    _substitute(root / "_config.yml", BRANCH_LINE, lambda line: f"{line[1]} {branch}")
    cell = setup_cell(root)
    for path in notebook_files.paths(root):
        notebook = notebook_files.read(path)
        first = next(part for part in notebook["cells"] if part["cell_type"] == "code")
        if not CELL_LINE.search(notebook_files.text(first["source"])):
            raise ValueError(f"{path.name}: its first code cell is not the set-up cell")
        first["source"] = notebook_files.lines(cell)
        notebook_files.write(path, notebook)
    _substitute(root / "README.md", README_PART, lambda found: found[1] + readme_part(root) + found[2])


def _substitute(path: pathlib.Path, pattern: re.Pattern, replacement) -> None:
    before = path.read_text(encoding="utf-8")
    after, count = pattern.subn(replacement, before, count=1)
    if not count:
        raise ValueError(f"{path.name} has no place for the repository's address")
    if after != before:
        path.write_text(after, encoding="utf-8", newline="\n")


def main() -> int:
    try:
        if len(sys.argv) > 1:
            publish_at(sys.argv[1])
        print(f"repository: {fact()[0] or 'not set'}")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
