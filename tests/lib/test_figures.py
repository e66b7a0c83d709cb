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
