"""The larger tables and the picture of the map hold: cells of several kinds are measured again and compared."""

import map_picture
import numpy as np
import pytest
from notebook_files import ROOT
from PIL import Image
from work_copy import run

from posenc import experiments
from posenc.experiments import load, measure

# One of each kind of model, task and read-out, and of what a table can say: blind, half way, all, an error.
SAMPLE = [
    ("map", "none", "who chased whom", 0),
    ("map", "lstm", "the same, 3 words", 1),
    ("map", "sinusoidal", "which came first", 1),
    ("map", "gru", "first token, n = 8", 2),
    ("map", "elman", "sunspots", 0),
    ("depth", "rotary", "1 layer", 0),
    ("recall", "lstm, forget bias 6", "n = 32", 1),
    ("sunspots", "sinusoidal", "sunspots, last", 0),
]


@pytest.mark.parametrize("name, row, problem, seed", SAMPLE)
def test_a_cell_measured_again_is_the_same(name, row, problem, seed):
    """Weights shifted by some millionths, as sums in another order shift them, move these scores and losses by less than 0.001."""
    wanted, stored = experiments.experiment(name), load(name).cells[row, problem, seed]
    again = measure(wanted.rows[row], wanted.problems[problem], seed)
    assert again.parameters == stored.parameters
    assert again.first_loss == pytest.approx(stored.first_loss, rel=1e-3)
    assert again.final_loss == pytest.approx(stored.final_loss, rel=0.02, abs=1e-4)
    assert again.scores == pytest.approx(stored.scores, abs=0.02)


# The picture


def test_picture_shows_these_results():
    with Image.open(map_picture.PICTURE) as picture:
        assert picture.text[map_picture.SOURCE] == map_picture.digest(), "make results, or book/_tools/map_picture.py"
        stored, drawn = (np.asarray(p.convert("L"), dtype=float) for p in (picture, map_picture.draw()))
    assert stored.shape == drawn.shape
    assert np.abs(stored - drawn).mean() < 1.0  # of 255: other fonts' edges pass, another colour or number does not
    assert map_picture.PICTURE.stat().st_size < 100_000


def test_readme_shows_the_picture_and_says_what_is_in_it():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](book/_static/map.png)" in text
    alternative = text[: text.index("](book/_static/map.png)")].rsplit("![", 1)[1]
    assert len(alternative) > 100 and "task" in alternative


def test_the_map_shows_what_the_readme_says_of_it():
    the_map = load("map")
    cells = ("elman", "gru", "lstm")

    def solved(row: str, column: str) -> bool:
        return bool((the_map.of(row, column) > 0.97).all())

    shares = [c for c in the_map.columns if c != "sunspots"]
    assert [c for c in shares if solved("none", c)] == ["majority"]
    for column in ("who chased whom", "which came first"):
        assert all(solved(row, column) for row in ("causal", "sinusoidal", "learned", "rotary", "relative", *cells))
    assert [row for row in the_map.rows if solved(row, "reversal")] == ["sinusoidal", "learned"]
    assert all(solved(row, "three back, n = 128") for row in ("rotary", *cells))
    assert all((the_map.of(row, "three back, n = 128") < 0.5).all() for row in ("sinusoidal", "learned"))
    assert [row for row in the_map.rows if solved(row, "parity, n = 40")] == list(cells)
    assert sum(bool((the_map.of(row, "first token, n = 32") < 0.25).all()) for row in cells) == 2
    worst = max(the_map.of(row, "sunspots").max() for row in cells)
    assert all(the_map.of(row, "sunspots").min() > worst for row in the_map.rows if row not in cells)


def test_one_command_computes_a_table():
    said = run("make", "--dry-run", "results", "ONLY=depth").stdout
    assert "-m posenc.experiments depth" in said and "map_picture.py" in said
