#!/usr/bin/env python3
"""Execute notebooks in place: execute.py [--jobs N] [NOTEBOOK ...]; without names, every chapter.

A notebook is written only when it ran as a reader's would have to: no cell failed (but those tagged
``raises-exception``) and nothing was written to stderr. What changes by itself from run to run is not stored.
"""

import argparse
import base64
import concurrent.futures
import io
import os
import pathlib
import re
import subprocess
import sys
import time

import nbformat
import notebook_files
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image

KEPT_CELL_METADATA = {"tags", "mystnb", "cellView"}
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
# A frame of a traceback outside the notebook: it names folders of this machine, and lines that move with every edit.
FRAME_ELSEWHERE = re.compile(r"(?:\x1b\[[\d;]*m)*File ")


class NotebookFailed(Exception):
    """The notebook cannot be stored: a cell failed or something was written to stderr."""


def environment() -> dict[str, str]:
    """The environment of a kernel: one thread unless told, and none of the known noise on stderr."""
    kept = {name: value for name, value in os.environ.items() if name not in ("MPLBACKEND", "PYTHONPATH")}
    quiet = {"PYDEVD_DISABLE_FILE_VALIDATION": "1", "JUPYTER_PLATFORM_DIRS": "1"}
    return {"OMP_NUM_THREADS": "1"} | kept | quiet


def warm_fonts() -> None:
    """Let matplotlib build its font cache, which on a first run it announces on stderr."""
    subprocess.run(
        [sys.executable, "-c", "import matplotlib.font_manager"], env=environment(), check=True, capture_output=True
    )


def execute(
    notebook: nbformat.NotebookNode, folder: pathlib.Path, timeout: int = 900, kernel: str = "python3"
) -> nbformat.NotebookNode:
    """Execute `notebook` in `folder`, in a kernel that Jupyter knows, and return it as it would be stored.

    Raises
    ------
    NotebookFailed
        If a cell fails that is not tagged ``raises-exception``, or one writes to stderr.
    """
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook, timeout=timeout, kernel_name=kernel, coalesce_streams=True, extra_arguments=["--log-level=ERROR"]
    )
    try:
        client.execute(cwd=str(folder), env=environment())
    except CellExecutionError as error:
        raise NotebookFailed(str(error)) from None
    for number, cell in enumerate(notebook.cells, 1):
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                raise NotebookFailed(f"cell {number} wrote to stderr:\n{output.text}")
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = lighter(output.data["image/png"])
    return normalise(notebook)


def lighter(png: str) -> str:
    """The base64 picture with a palette of 256 colours: the same to the eye, and half as heavy or less."""
    picture, written = Image.open(io.BytesIO(base64.b64decode(png))), io.BytesIO()
    resolution = {"dpi": picture.info["dpi"]} if "dpi" in picture.info else {}
    palette = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    palette.save(written, "png", optimize=True, **resolution)
    return base64.b64encode(written.getvalue()).decode()


def normalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Strip, in place, what depends on the run or the machine; sources, results and cell ids stay."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        cell.metadata = {key: value for key, value in cell.metadata.items() if key in KEPT_CELL_METADATA}
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                output.traceback = [part for part in output.traceback if not FRAME_ELSEWHERE.match(part)]
    nbformat.validate(notebook)
    return notebook


def texts(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """What each code cell printed or returned as text, and the name of what it raised: what a reader compares."""
    return [[_text(output) for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]


def _text(output: nbformat.NotebookNode) -> str:
    if output.output_type == "stream":
        return output.text
    return output.ename if output.output_type == "error" else output.data.get("text/plain", "")


def execute_in_place(path: pathlib.Path) -> float:
    """Execute one notebook file, write it, and return the seconds that it took."""
    path, start = pathlib.Path(path), time.perf_counter()
    notebook = execute(nbformat.read(path, as_version=4), path.resolve().parent)
    path.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", encoding="utf-8", newline="\n")
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1, help="how many to run side by side")
    parser.add_argument("--warm-fonts", action="store_true", help="only build matplotlib's font cache")
    options = parser.parse_args()
    warm_fonts()
    if options.warm_fonts:
        return 0
    failed = 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        runs = {pool.submit(execute_in_place, path): path for path in options.notebooks or notebook_files.paths()}
        for run in concurrent.futures.as_completed(runs):
            try:
                print(f"{runs[run].name}: {run.result():.0f} s", flush=True)
            except Exception as error:
                failed += 1
                print(f"{runs[run].name}: NOT WRITTEN\n{error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
