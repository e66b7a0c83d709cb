#!/usr/bin/env python3
"""Draw the map, the picture on the first pages, from its results: book/_static/map.png."""

import hashlib
import io
import pathlib
import sys

import matplotlib
from notebook_files import ROOT
from PIL import Image, PngImagePlugin

sys.path.insert(0, str(ROOT / "lib"))
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from posenc import experiments, figures  # noqa: E402

RESULTS = experiments.DATA / "map.json"
PICTURE = ROOT / "book" / "_static" / "map.png"
SOURCE = "Source"  # a field of a PNG; here, which results it shows


def digest(results: pathlib.Path = RESULTS) -> str:
    """Of the file that the picture is made from."""
    return "sha256:" + hashlib.sha256(results.read_bytes()).hexdigest()


def draw() -> Image.Image:
    """The map in a hundred-odd colours, as crisp as the figures of the chapters."""
    with matplotlib.rc_context():
        figures.use_house_style()
        figure, ax = figures.new_figure(height=4.6)
        figures.draw_map(ax, experiments.load("map"))
        written = io.BytesIO()
        figure.savefig(written, format="png")
        plt.close(figure)
    return Image.open(written).convert("RGB").quantize(128, dither=Image.Dither.NONE)


def main() -> None:
    source = PngImagePlugin.PngInfo()
    source.add_text(SOURCE, digest())
    draw().save(PICTURE, optimize=True, pnginfo=source)


if __name__ == "__main__":
    main()
