"""The house style, and the map of weights; and that importing the library changes nothing for anyone."""

import itertools
import os
import pathlib
import pkgutil
import re
import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

import posenc
from posenc import figures
from posenc.experiments import Results, load

WEIGHTS = [[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]]


@pytest.fixture
def ax():
    with matplotlib.rc_context():
        fig, ax = plt.subplots()
        yield ax
        plt.close(fig)


def texts(ax):
    return {(round(t.get_position()[0]), round(t.get_position()[1])): t for t in ax.texts}


@pytest.mark.parametrize(
    "weights",
    [
        WEIGHTS,
        np.array(WEIGHTS),
        torch.tensor(WEIGHTS),
        torch.tensor(WEIGHTS, requires_grad=True),
        torch.tensor(WEIGHTS, dtype=torch.float64),
    ],
)
def test_queries_stand_down_the_side_and_keys_along_the_bottom(ax, weights):
    figures.draw_weights(ax, weights, ["robot", "sees"], ["a", "b", "c"])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["robot", "sees"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b", "c"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("key", "query")
    np.testing.assert_allclose(ax.images[0].get_array(), WEIGHTS, rtol=1e-6)
    written = {place: text.get_text() for place, text in texts(ax).items()}
    assert written[0, 0] == "0.90" and written[2, 1] == "0.50" and written[0, 1] == "0.20" and len(written) == 6
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first query on top
    ax.figure.canvas.draw()


def test_low_precision_weights_are_drawn(ax):
    figures.draw_weights(ax, torch.tensor(WEIGHTS, dtype=torch.bfloat16), "ab", "cde")
    assert ax.images[0].get_array().shape == (2, 3)


def test_the_queries_are_the_keys_unless_others_are_given(ax):
    figures.draw_weights(ax, np.eye(2), ["the", "the"])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["the", "the"]


def test_numbers_can_be_left_out_and_stay_legible(ax):
    figures.draw_weights(ax, WEIGHTS, "ab", "cde")
    ink = {place: text.get_color() for place, text in texts(ax).items()}
    assert ink[0, 0] == "white" and ink[1, 0] == ink[2, 1] == "black"
    ax.clear()
    figures.draw_weights(ax, WEIGHTS, "ab", "cde", numbers=False)
    assert not ax.texts


def test_maps_to_be_compared_share_a_scale(ax):
    figures.draw_weights(ax, WEIGHTS, "ab", "cde")
    assert ax.images[0].get_clim() == (0.0, 1.0)
    ax.clear()
    figures.draw_weights(ax, WEIGHTS, "ab", "cde", largest=0.5)
    assert ax.images[0].get_clim() == (0.0, 0.5)
    assert texts(ax)[1, 1].get_color() == "white"  # 0.3 is dark on a scale that ends at 0.5


@pytest.mark.parametrize(
    "weights, queries, keys, said",
    [
        (WEIGHTS, "abc", "de", ["(2, 3)", "3 queries", "2 keys"]),
        (WEIGHTS, "ab", None, ["(2, 3)", "2 queries", "2 keys"]),
        (np.zeros(3), "abc", None, ["(3,)"]),
        (np.zeros((1, 2, 3)), "ab", "cde", ["(1, 2, 3)"]),
    ],
)
def test_tokens_must_number_the_weights(ax, weights, queries, keys, said):
    with pytest.raises(ValueError) as error:
        figures.draw_weights(ax, weights, queries, keys)
    assert all(word in str(error.value) for word in said), str(error.value)
    assert not ax.images


# The map

COLUMNS = {
    "which came first": {"problem": "a", "length": 4, "ceiling": 0.5, "floor": 0.5, "top": 1.0},
    "set, n = 8": {"problem": "a", "length": 8, "ceiling": 1.0, "floor": 0.25, "top": 1.0},
    "series": {"problem": "b", "length": 24, "ceiling": None, "floor": 1.0, "top": 0.5},
}
SCORES = np.array([[[0.5, 0.5, 0.5], [0.25, 1.0, 1.0], [1.2, 1.0, 1.1]], [[1.0, 1.0, 1.0], [0.996, 0.998, 1.0], [0.4, 0.6, 0.5]]])
RESULTS = Results("map", {"rows": {"none": {}, "rotary": {}}, "columns": COLUMNS}, {}, SCORES, {})


def test_map_holds_means_spreads_and_ceilings(ax):
    figures.draw_map(ax, RESULTS, groups=(1, 1))
    rows = [" ".join(t.get_text().split()) for t in ax.get_yticklabels()]
    assert rows == ["no positions", "rotary", "order-blind ceiling"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["which\ncame\nfirst", "set\nn = 8", "series\nerror ↓"]
    written = {}
    for text in ax.texts:
        column, height = text.get_position()
        written.setdefault((rows[int(np.abs(ax.get_yticks() - height).argmin())], column), []).append(text.get_text())
    assert written == {
        ("no positions", 0): [".50"],
        ("no positions", 1): [".75", ".25–1.00"],
        ("no positions", 2): ["1.10", "1.00–1.20"],
        ("rotary", 0): ["1.00"],
        ("rotary", 1): ["1.00"],  # the seeds differ by less than is written
        ("rotary", 2): [".50", ".40–.60"],
        ("order-blind ceiling", 0): [".50"],
        ("order-blind ceiling", 1): ["1.00"],
        ("order-blind ceiling", 2): ["–"],
    }
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first row on top
    ax.figure.canvas.draw()


def test_map_is_darker_the_nearer_to_the_best_also_where_low_is_good(ax):
    figures.draw_map(ax, RESULTS, groups=(1, 1))
    light = np.array([rgb(box.get_facecolor()).mean() for box in ax.patches]).reshape(2, 3)
    assert light[0, 0] == light[0, 2] == light.max() > 0.95 and light[1, 0] == light[1, 2] == light.min()
    assert light.min() < light[0, 1] < 0.95
    for (row, column), value in np.ndenumerate(light):
        ink = next(t.get_color() for t in ax.texts if t.get_position()[0] == column and abs(t.get_position()[1] - 1.25 * row) < 0.2)
        assert (ink == "white") == (value < 0.5)


def test_map_leaves_a_gap_between_groups_and_wants_them_to_be_all(ax):
    figures.draw_map(ax, RESULTS, groups=(2,))
    assert np.diff(ax.get_yticks())[0] == 1
    ax.clear()
    figures.draw_map(ax, RESULTS, groups=(1, 1))
    assert np.diff(ax.get_yticks())[0] > 1
    with pytest.raises(ValueError, match=r"groups \(2, 2, 3, 3\) hold 10 rows, but the results have 2"):
        figures.draw_map(ax, RESULTS)


def test_every_text_of_the_map_stays_in_its_cell():
    with matplotlib.rc_context():
        figures.use_house_style()
        fig, ax = figures.new_figure(height=4.6)
        try:
            figures.draw_map(ax, load("map"))
            fig.canvas.draw()
            width = ax.get_window_extent().width / len(load("map").columns)
            for text in [*ax.texts, *ax.get_xticklabels()]:
                assert text.get_window_extent().width < width, text.get_text()
        finally:
            plt.close(fig)


def colours():
    return {**figures.ROLES, **figures.MODELS, "ceiling": figures.CEILING["color"]}


def rgb(colour):
    return np.array(matplotlib.colors.to_rgb(colour))


def test_no_colour_stands_for_two_things():
    for (one, a), (other, b) in itertools.combinations(colours().items(), 2):
        assert np.abs(rgb(a) - rgb(b)).max() > 0.03, f"{one} and {other} look alike"
    for palette in (figures.ROLES, figures.MODELS):
        for (one, a), (other, b) in itertools.combinations(palette.items(), 2):
            assert np.linalg.norm(rgb(a) - rgb(b)) > 0.15, f"{one} and {other} look alike"


def test_colours_are_written_in_full_and_named_as_the_book_names_them():
    assert all(re.fullmatch("#[0-9A-F]{6}", colour) for colour in colours().values())
    assert list(figures.ROLES) == ["query", "key", "value", "position"]
    assert {"none", "sinusoidal", "learned", "rotary", "alibi", "relative", "elman", "lstm", "gru"} <= set(figures.MODELS)
    assert set(figures.NAMES) <= set(figures.MODELS)
    assert figures.SEQUENTIAL in matplotlib.colormaps and figures.DIVERGING in matplotlib.colormaps


def test_every_figure_is_as_wide_opaque_and_crisp():
    with matplotlib.rc_context():
        figures.use_house_style()
        fig, axes = figures.new_figure(2, 3, height=4.0, sharex=True)
        try:
            assert tuple(fig.get_size_inches()) == (figures.WIDTH, 4.0)
            assert axes.shape == (2, 3)
            assert fig.dpi >= 150 and fig.get_facecolor() == (1, 1, 1, 1)
            assert not axes[0, 0].spines["top"].get_visible() and axes[0, 0].spines["left"].get_visible()
        finally:
            plt.close(fig)
        fig, ax = figures.new_figure()
        assert isinstance(ax, matplotlib.axes.Axes) and fig.get_size_inches()[0] == figures.WIDTH
        plt.close(fig)


MODULES = sorted(m.name for m in pkgutil.walk_packages(posenc.__path__, "posenc."))
IMPORT_ALL = """
import importlib, random, sys, warnings
import matplotlib, numpy, torch
import matplotlib.pyplot

def world():
    return (
        dict(matplotlib.rcParams), torch.get_rng_state().tolist(), torch.get_default_dtype(), torch.is_grad_enabled(),
        str(numpy.random.get_state()), random.getstate(), numpy.geterr(), numpy.get_printoptions(), list(warnings.filters),
        torch.are_deterministic_algorithms_enabled(), torch.get_num_threads(), sys.path[:], sys.getrecursionlimit(),
    )

before = world()
for name in sys.argv[1:]:
    importlib.import_module(name)
changed = [i for i, (a, b) in enumerate(zip(before, world())) if a != b]
assert not changed, changed
"""


def test_importing_changes_nothing_and_says_nothing():
    """Every module of the library, warnings being errors."""
    assert {"posenc.attention", "posenc.symmetry", "posenc.evidence", "posenc.figures", "posenc.exercises.engine"} <= set(MODULES)
    lib = str(pathlib.Path(posenc.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_ALL, *MODULES],
        env={**os.environ, "PYTHONPATH": lib, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
