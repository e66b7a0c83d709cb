"""The larger measurements: their files say what the code says, every cell is there, and computing them can be broken off."""

import dataclasses
import inspect
import itertools
import json

import numpy as np
import pytest
import torch

from posenc import experiments
from posenc.experiments import MEDIUM, NAMES, ROWS, Cell, Experiment, Problem, Results, build, load, measure, run, try_task
from posenc.models import RecurrentModel
from posenc.tasks import FirstToken, Majority, Reversal, Rule
from posenc.training import fit, parameter_count, seeded

every_experiment = pytest.mark.parametrize("name", NAMES)


# The files


@every_experiment
def test_file_has_the_settings_of_the_code(name):
    stored, wanted = load(name).settings, experiments.experiment(name).settings()
    assert stored.keys() == wanted.keys()
    assert [*stored["rows"].items()] == [*wanted["rows"].items()]
    assert [*stored["problems"].items()] == [*wanted["problems"].items()]
    assert [*stored["columns"]] == [*wanted["columns"]]
    for column, marks in wanted["columns"].items():
        assert stored["columns"][column] == pytest.approx(marks, abs=1e-9), column
    assert stored["seeds"] == wanted["seeds"] and len(stored["seeds"]) >= 3


@every_experiment
def test_every_cell_is_there_once_and_is_plain_numbers(name):
    results = load(name)
    of = results.settings
    assert [*results.cells] == [(r, p, s) for s in of["seeds"] for p in of["problems"] for r in of["rows"]]
    for (_, problem, _), cell in results.cells.items():
        assert len(cell.scores) == len(of["problems"][problem]["tests"])
        assert isinstance(cell.parameters, int) and cell.parameters > 0
        assert all(isinstance(x, float) and np.isfinite(x) for x in (cell.first_loss, cell.final_loss, *cell.scores))
        assert all(0 <= x <= (1 if not problem.startswith("sunspots") else 3) for x in cell.scores)
    assert set(results.versions) == {"posenc", "torch", "numpy", "python"}


@every_experiment
def test_models_and_examples_are_still_those_that_were_measured(name):
    """A change to a model, its initial weights, a task or what is drawn for it shows in the loss before the first step."""
    wanted, results = experiments.experiment(name), load(name)
    for number, (p, r) in enumerate(itertools.product(wanted.problems, wanted.rows)):
        seed, problem = wanted.seeds[number % 3], wanted.problems[p]
        cell = results.cells[r, p, seed]
        with seeded(seed):
            model = build(wanted.rows[r], problem)
            loss = fit(model, problem.task, 1, seed, lengths=problem.lengths, batch=problem.batch).losses[0]
        assert loss == pytest.approx(cell.first_loss, rel=1e-3), (r, p)
        assert experiments._trained(model, problem) == cell.parameters, (r, p)


@every_experiment
def test_rows_have_as_many_parameters_as_each_other(name):
    """Within five per cent, problem by problem; a table of which training uses all of its many rows is the exception."""
    results = load(name)
    for problem in results.settings["problems"]:
        counts = [results.parameters(row)[problem] for row in results.rows if row != "learned, random"]
        assert max(counts) <= 1.05 * min(counts), (problem, counts)


def test_blind_rows_stay_below_their_ceilings():
    """Exactly where orbits are scored whole; else by no more than chance allows."""
    the_map = load("map")
    for column in ("who chased whom", "the same, 3 words", "which came first"):
        assert (the_map.of("none", column) == 0.5).all(), column
    assert (the_map.of("alibi", "the same, 3 words") == 0.5).all()
    for results in (the_map, load("extrapolation")):
        for column, ceiling in results.ceilings.items():
            if ceiling is not None:
                assert (results.of("none", column) < ceiling + 0.035).all(), (results.name, column)


def test_rows_that_read_from_the_left_cannot_reverse_what_they_have_not_read():
    """Half of the answers lie ahead of them and are ten uniform symbols: .55 at best, whatever is trained."""
    for row in ("causal", "elman", "gru", "lstm"):
        assert (load("map").of(row, "reversal") < 0.55 + 0.02).all(), row


def test_runs_that_two_experiments_share_are_the_same():
    the_map, extrapolation = load("map"), load("extrapolation")
    assert experiments.experiment("map").problems["three back"] is experiments.THREE_BACK
    for row, seed in itertools.product(the_map.rows, the_map.settings["seeds"]):
        assert the_map.cells[row, "three back", seed] == extrapolation.cells[row, "three back", seed]
    np.testing.assert_array_equal(the_map.of("gru", "three back, n = 128"), extrapolation.of("gru", "128"))


# Reading them


SETTINGS = {
    "seeds": [0, 1, 2],
    "rows": {"none": {}, "gru": {}},
    "problems": {"easy": {"tests": [4, 8]}, "series": {"tests": [24]}},
    "columns": {
        "far": {"problem": "easy", "length": 8, "ceiling": 0.5, "floor": 0.5, "top": 1.0},
        "error": {"problem": "series", "length": 24, "ceiling": None, "floor": 1.0, "top": 0.5},
    },
}


@pytest.fixture
def folder(tmp_path):
    cells = []
    for seed in (0, 1, 2):
        cells += [["none", "easy", seed, 10, 0.7, 0.6, [0.9, 0.4 + 0.1 * seed]], ["none", "series", seed, 10, 1.0, 1.0, [1.5]]]
        cells += [["gru", "easy", seed, 11, 0.7, 0.1, [0.9, 0.8]], ["gru", "series", seed, 11, 1.0, 0.2, [0.6 + 0.1 * seed]]]
    file = {"experiment": "map", "versions": {"torch": "0"}, "settings": SETTINGS, "cells": cells}
    (tmp_path / "map.json").write_text(json.dumps(file), encoding="utf-8")
    return tmp_path


def test_load_by_hand(folder):
    results = load("map", folder)
    assert (results.name, results.rows, results.columns) == ("map", ("none", "gru"), ("far", "error"))
    assert results.ceilings == {"far": 0.5, "error": None} and results.versions == {"torch": "0"}
    assert results.scores.shape == (2, 2, 3)
    np.testing.assert_allclose(results.of("none", "far"), [0.4, 0.5, 0.6])
    np.testing.assert_allclose(results.of("gru"), [[0.8] * 3, [0.6, 0.7, 0.8]])
    assert results.mean("none", "far") == pytest.approx(0.5) and results.spread("none", "far") == pytest.approx(0.2)
    np.testing.assert_allclose(results.mean("gru"), [0.8, 0.7])
    np.testing.assert_allclose(results.shares, [[0.0, 0.0], [0.6, 0.6]], atol=1e-12)
    assert results.parameters("gru") == {"easy": 11, "series": 11}
    assert results.cells["gru", "easy", 2] == Cell(11, 0.7, 0.1, (0.9, 0.8))


def test_unknown_names_are_answered_with_the_known_ones(folder):
    with pytest.raises(ValueError, match="unknown experiment 'mop'; known are extrapolation, depth, map"):
        load("mop")
    with pytest.raises(ValueError, match="unknown experiment 'mop'"):
        experiments.experiment("mop")
    with pytest.raises(ValueError, match="there is no 'lstm' in map, only none, gru"):
        load("map", folder).of("lstm")
    with pytest.raises(ValueError, match="there is no 'near' in map, only far, error"):
        load("map", folder).mean("gru", "near")
    with pytest.raises(SystemExit) as stopped:
        experiments.main(["mop"])
    assert stopped.value.code == 2


# Measuring


TINY = Problem(Reversal(4), (3, 6), (4, 8), steps=2, batch=4, shape={"d_model": 8, "num_heads": 2, "num_layers": 1})


@pytest.mark.parametrize("row", [*ROWS.values(), {"encoding": "learned", "random_positions": 9}, {"encoding": "sinusoidal", "random_positions": 9}])
def test_a_cell_is_the_same_every_time(row):
    first = measure(row, TINY, 1)
    torch.rand(3)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    assert measure(row, TINY, 1) == first != measure(row, TINY, 2)
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == threads
    assert all(isinstance(x, float) for x in (first.first_loss, first.final_loss, *first.scores)) and len(first.scores) == 2


def test_models_are_what_their_rows_say():
    def layers(row):
        return build(row, TINY)

    assert layers(ROWS["causal"]).causal and not any(layers(ROWS[r]).causal for r in ROWS if r != "causal" and "cell" not in ROWS[r])
    assert layers(ROWS["learned"]).encoding.max_length == 8  # enough for the longest test
    assert layers({"encoding": "learned", "random_positions": 9}).encoding.encoding.max_length == 9
    gru = layers(ROWS["gru"])
    assert isinstance(gru, RecurrentModel) and parameter_count(gru) == pytest.approx(parameter_count(layers(ROWS["none"])), rel=0.05)


def test_rows_that_no_example_reaches_are_not_counted():
    extra = measure(ROWS["learned"], TINY, 0).parameters - measure(ROWS["none"], TINY, 0).parameters
    assert extra == 6 * 8  # positions 0 to 5, of 8 that the tests need
    everywhere = {"encoding": "learned", "random_positions": 9}
    assert measure(everywhere, TINY, 0).parameters - measure(ROWS["none"], TINY, 0).parameters == 9 * 8


def test_settings_name_all_that_a_run_depends_on():
    assert set(TINY.settings()) == {"task", "lengths", "tests", "steps", "batch", "learning_rate", "shape"}
    for change in ({"task": Reversal(5)}, {"lengths": 4}, {"tests": (4,)}, {"steps": 3}, {"batch": 5}, {"shape": MEDIUM}):
        assert dataclasses.replace(TINY, **change).settings() != TINY.settings()
    assert TINY.settings() == json.loads(json.dumps(TINY.settings()))


# Computing the tables


@pytest.fixture
def small(monkeypatch):
    """Two experiments that share a problem, and a count of the runs."""
    easy, other = TINY, dataclasses.replace(TINY, task=FirstToken(4, "last"))
    rows = {name: ROWS[name] for name in ("none", "gru")}
    both = {
        "depth": Experiment(rows, {"easy": easy}, {"near": ("easy", 4)}),
        "map": Experiment(rows, {"also easy": easy, "other": other}, {"far": ("also easy", 8), "other": ("other", 4)}),
    }
    monkeypatch.setattr(experiments, "NAMES", tuple(both))
    monkeypatch.setattr(experiments, "_EXPERIMENTS", {name: lambda name=name: both[name] for name in both})
    runs = []
    monkeypatch.setattr(experiments, "measure", lambda *a: (runs.append(a), measure(*a))[1])
    return runs


def test_tables_are_written_whole_and_shared_runs_are_not_repeated(small, tmp_path, capfd):
    assert run("depth", tmp_path / "work", tmp_path) and len(small) == 2 * 3
    assert run("map", tmp_path / "work", tmp_path) and len(small) == 2 * 3 + 2 * 3
    results = load("map", tmp_path)
    assert results.scores.shape == (2, 2, 3) and results.settings == experiments.experiment("map").settings()
    expected = measure(ROWS["gru"], TINY, 2)
    assert results.cells["gru", "also easy", 2].scores == pytest.approx(expected.scores, rel=1e-5)
    assert results.cells["gru", "also easy", 2] == load("depth", tmp_path).cells["gru", "easy", 2]
    assert list((tmp_path / "work").iterdir()) == []
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == len(small)


def test_a_computation_that_was_broken_off_goes_on(small, tmp_path, monkeypatch):
    work, counted = tmp_path / "work", experiments.measure
    assert not run("depth", work, tmp_path, seconds=-1) and not small

    def interrupted(*run_of):
        if len(small) == 4:
            raise KeyboardInterrupt
        return counted(*run_of)

    monkeypatch.setattr(experiments, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("depth", work, tmp_path)
    assert len(small) == 4 and not (tmp_path / "depth.json").exists()
    monkeypatch.setattr(experiments, "measure", counted)
    assert run("depth", work, tmp_path) and len(small) == 6
    assert len(set(map(repr, small))) == 6


def test_what_stands_is_computed_anew_unless_it_is_to_be_kept(small, tmp_path):
    run("depth", tmp_path / "work", tmp_path)
    text = (tmp_path / "depth.json").read_text(encoding="utf-8")
    run("depth", tmp_path / "work", tmp_path, keep=True)
    assert len(small) == 6
    run("depth", tmp_path / "work", tmp_path)
    assert len(small) == 12 and (tmp_path / "depth.json").read_text(encoding="utf-8") == text


# A task of one's own


def test_try_task_gives_a_score_for_each_row():
    task = Rule(lambda tokens: (tokens == 0).sum(dim=1) % 2, 3, 2)
    scores = try_task(task, (2, 5), ("none", "gru"), test=6, steps=2)
    assert list(scores) == ["none", "gru"] and all(0 <= score <= 1 for score in scores.values())
    assert try_task(task, (2, 5), ("gru",), test=6, steps=2) == {"gru": scores["gru"]}
    assert try_task(Majority(3), 5, ("none",), steps=150)["none"] > 0.9
    with pytest.raises(ValueError, match="unknown row 'mamba'; known are none, causal"):
        try_task(task, 5, ("none", "mamba"))


def test_every_public_name_says_what_it_does():
    for thing in (Problem, Experiment, Results, Cell, measure, build, load, run, try_task, experiments.experiment):
        assert inspect.getdoc(thing)
