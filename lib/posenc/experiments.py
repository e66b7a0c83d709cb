"""The book's larger measurements: what was measured, how one cell of a table is measured, and the tables.

An experiment trains every row (an encoding or a recurrent cell) on every problem (a task with its budget), once
for each seed, and tests it in every column. `measure` does one of these runs. The tables of all of them are in
`posenc/data`, and `load` reads one. ``make results`` computes them anew, which takes the better part of an hour of
one core; a test measures some cells again.
"""

import argparse
import dataclasses
import json
import pathlib
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import nn

import posenc
from posenc.encodings import LearnedEncoding, RandomPositions, SinusoidalEncoding
from posenc.models import RecurrentModel, Transformer, matching_width
from posenc.series import NextValue, fit_autoregression, sunspots
from posenc.tasks import (
    FirstOfTwo,
    FirstToken,
    Majority,
    Reversal,
    RunningParity,
    Task,
    TokenBack,
    WhoChasedWhom,
    WithBeginning,
)
from posenc.training import accuracy, fit, one_thread, parameter_count, score, seeded

DATA = pathlib.Path(__file__).parent / "data"
"""Where the tables are."""

Row = Mapping[str, object]
"""What sets a model apart: ``{"cell": …}``, with a ``"forget_bias"`` for an LSTM if wanted; or ``{"encoding": …}``
with ``"causal": True`` and ``"random_positions": n`` if wanted."""

ROWS: dict[str, Row] = {
    "none": {"encoding": "none"},
    "causal": {"encoding": "none", "causal": True},
    "sinusoidal": {"encoding": "sinusoidal"},
    "learned": {"encoding": "learned"},
    "rotary": {"encoding": "rotary"},
    "alibi": {"encoding": "alibi"},
    "relative": {"encoding": "relative"},
    "elman": {"cell": "elman"},
    "gru": {"cell": "gru"},
    "lstm": {"cell": "lstm"},
}
"""The rows of the map, named as in `posenc.figures.MODELS`. Only "causal" has a causal mask."""

SMALL = {"d_model": 32, "num_heads": 1}
MEDIUM = {"d_model": 64, "num_heads": 4, "num_layers": 2}


@dataclass(frozen=True)
class Problem:
    """A task, the Transformer that it is given to, and how that is trained and tested.

    Attributes
    ----------
    task : Task
    lengths : int or (int, int)
        Of the training sequences, as in `posenc.training.fit`.
    tests : tuple of int
        Lengths to test at.
    shape : dict
        `d_model`, `num_heads` and `num_layers` of a Transformer; recurrent rows are made to match it.
    steps, batch, learning_rate
        As in `posenc.training.fit`.
    """

    task: Task
    lengths: int | tuple[int, int]
    tests: tuple[int, ...]
    steps: int
    batch: int = 64
    learning_rate: float = 3e-3
    shape: Mapping[str, int] = field(default_factory=lambda: MEDIUM)

    @property
    def longest_trained(self) -> int:
        return max(self.lengths) if isinstance(self.lengths, tuple) else self.lengths

    def settings(self) -> dict:
        """All of it in JSON's terms."""
        rest = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "task"}
        return _plain({"task": _described(self.task)} | rest)


@dataclass(frozen=True)
class Experiment:
    """Rows, problems, seeds, and the columns of the table: a problem each, and a length it is tested at."""

    rows: Mapping[str, Row]
    problems: Mapping[str, Problem]
    columns: Mapping[str, tuple[str, int]]
    seeds: tuple[int, ...] = (0, 1, 2)

    def settings(self) -> dict:
        """What the results depend on, in JSON's terms."""
        problems = {name: problem.settings() for name, problem in self.problems.items()}
        columns = {name: self._column(*where) for name, where in self.columns.items()}
        return _plain({"seeds": self.seeds, "rows": self.rows, "problems": problems, "columns": columns})

    def _column(self, problem: str, length: int) -> dict:
        floor, top, blind = _marks(self.problems[problem].task, length)
        return {"problem": problem, "length": length, "ceiling": blind, "floor": floor, "top": top}


@dataclass(frozen=True)
class Cell:
    """What one run gave: numbers that were trained, the loss of the first batch and of the last 20, the scores."""

    parameters: int
    first_loss: float
    final_loss: float
    scores: tuple[float, ...]


def measure(row: Row, problem: Problem, seed: int, steps: int | None = None) -> Cell:
    """Build the model of `row`, train it on `problem` and test it at each of the problem's lengths.

    Parameters
    ----------
    row : mapping
    problem : Problem
    seed : int
        Of the initial weights, the training examples and the test examples.
    steps : int, optional
        Fewer than the problem's, to try something out.

    Returns
    -------
    Cell
        The same every time: one thread, and nothing drawn that is not seeded. A learned table's rows beyond the
        longest training sequence are not counted, since no example trains them.
    """
    with one_thread(), seeded(seed):
        model = build(row, problem)
        history = fit(
            model,
            problem.task,
            steps or problem.steps,
            seed,
            lengths=problem.lengths,
            batch=problem.batch,
            learning_rate=problem.learning_rate,
        )
        scores = tuple(_score(model, problem.task, length, seed) for length in problem.tests)
    return Cell(_trained(model, problem), history.losses[0], history.final_loss(), scores)


def build(row: Row, problem: Problem) -> nn.Module:
    """The model of `row` for `problem`; its weights are drawn from torch's global generator."""
    task, width = problem.task, problem.shape["d_model"]
    options = {"read_out": task.read_out}
    if "cell" in row:
        plain = Transformer(task.vocab_size, task.num_classes, **problem.shape, **options)
        options |= {"forget_bias": row.get("forget_bias")}

        def of_width(hidden: int) -> RecurrentModel:
            return RecurrentModel(task.vocab_size, task.num_classes, width, hidden, row["cell"], **options)

        return of_width(matching_width(plain, of_width))
    encoding, positions = row["encoding"], row.get("random_positions")
    if positions:
        codes = SinusoidalEncoding(width) if encoding == "sinusoidal" else LearnedEncoding(positions, width)
        encoding = RandomPositions(codes, positions)
    options |= {"encoding": encoding, "causal": row.get("causal", False)}
    longest = max(problem.longest_trained, *problem.tests)
    return Transformer(task.vocab_size, task.num_classes, max_length=longest, **problem.shape, **options)


def _trained(model: nn.Module, problem: Problem) -> int:
    layer = getattr(model, "encoding", None)
    untouched = max(0, layer.max_length - problem.longest_trained) if isinstance(layer, LearnedEncoding) else 0
    return parameter_count(model) - untouched * problem.shape["d_model"]


def _score(model: nn.Module, task: Task, length: int, seed: int) -> float:
    """Share of right answers, on whole orbits where a task has small ones; or the error, if it forecasts."""
    if isinstance(task, NextValue):
        return task.model_error(model) / _last_value_error(task)
    if isinstance(task, WhoChasedWhom):
        return score(model, *task.everything())
    if isinstance(task, FirstOfTwo):  # each sequence, and the same with the marks exchanged
        tokens, targets = task.sample(512, length, torch.Generator().manual_seed(2 * seed + 1))
        exchanged = torch.where(tokens < 2, 1 - tokens, tokens)
        return score(model, torch.cat([tokens, exchanged]), torch.cat([targets, 1 - targets]))
    return accuracy(model, task, length, seed, examples=256 if task.read_out == "token" else 1024)


def _marks(task: Task, length: int) -> tuple[float, float, float | None]:
    """Where a column's colours begin and end, and the order-blind ceiling (None if none is known).

    They begin at the ceiling, or at guessing if the ceiling is 1. An error begins at that of "no change" and ends
    at that of a linear autoregression over nine years.
    """
    if isinstance(task, NextValue):
        return 1.0, _autoregression_error(task, 9) / _last_value_error(task), None
    blind = task.ceiling(length)
    return (blind if blind < 1 else 1 / task.num_classes), 1.0, blind


def _last_value_error(task: NextValue) -> float:
    return task.error(task.test_set()[0][:, -1])


def _autoregression_error(task: NextValue, order: int) -> float:
    intercept, coefficients = fit_autoregression(task.series[: -task.held_out], order)
    return task.error(intercept + task.test_set()[0][:, -order:].flip(1).double() @ coefficients)


THREE_BACK = Problem(TokenBack(3, 16), (8, 32), (16, 32, 48, 64, 128, 256), steps=400)
CHASED = Problem(WhoChasedWhom(), 5, (5,), steps=150, batch=128)


def _extrapolation() -> Experiment:
    """Name the token three back: trained up to 32 tokens, tested up to 256."""
    rows = {
        **ROWS,
        "alibi, causal": {"encoding": "alibi", "causal": True},
        "sinusoidal, random": {"encoding": "sinusoidal", "random_positions": 256},
        "learned, random": {"encoding": "learned", "random_positions": 256},
    }
    columns = {str(length): ("three back", length) for length in THREE_BACK.tests}
    return Experiment(rows, {"three back": THREE_BACK}, columns)


def _depth() -> Experiment:
    """Reverse 16 tokens: encodings that act on scores alone, by number of layers."""

    def problem(layers: int, task: Task) -> Problem:
        shape = {**SMALL, "num_layers": layers}
        return Problem(task, 16, (16,), steps=500, batch=128, learning_rate=1e-2, shape=shape)

    problems = {
        "1 layer": problem(1, Reversal(10)),
        "2 layers": problem(2, Reversal(10)),
        "3 layers": problem(3, Reversal(10)),
        "2 layers, beginning": problem(2, WithBeginning(Reversal(10))),
    }
    rows = {name: ROWS[name] for name in ("rotary", "relative", "alibi")}
    return Experiment(rows, problems, {name: (name, 16) for name in problems})


def _map() -> Experiment:
    """Every encoding and every cell against every task of the book."""
    problems = {
        "who chased whom": CHASED,
        "the same, 3 words": dataclasses.replace(CHASED, task=WhoChasedWhom(articles=False), lengths=3, tests=(3,)),
        "which came first": Problem(FirstOfTwo(), 16, (16,), steps=200),
        "reversal": Problem(Reversal(10), 16, (16,), steps=300),
        "three back": THREE_BACK,
        "first token, n = 8": Problem(FirstToken(8, "last"), 8, (8,), steps=300),
        "first token, n = 32": Problem(FirstToken(8, "last"), 32, (32,), steps=300),
        "parity": Problem(RunningParity(), (1, 20), (20, 40), steps=400),
        "majority": Problem(Majority(4), 16, (16,), steps=200),
        "sunspots": Problem(NextValue(sunspots()[1]), 24, (24,), steps=150),
    }
    columns: dict[str, tuple[str, int]] = {}
    for name, problem in problems.items():
        if name == "three back":
            columns |= {"three back, n = 32": (name, 32), "three back, n = 128": (name, 128)}
        elif name == "parity":
            columns |= {"parity, n = 20": (name, 20), "parity, n = 40": (name, 40)}
        else:
            columns[name] = (name, problem.tests[0])
    return Experiment(ROWS, problems, columns)


def _recall() -> Experiment:
    """Name the first token at the last one: by length, by budget, and with forget gates that start open."""

    def problem(length: int, steps: int, lengths: int | tuple[int, int] | None = None) -> Problem:
        task = FirstToken(8, "last")
        return Problem(task, lengths or length, (length,), steps, batch=32, learning_rate=1e-2, shape=SMALL)

    problems = {
        "n = 32": problem(32, 150),
        "four times the steps": problem(32, 600),
        "lengths 1 to 32": problem(32, 300, (1, 32)),
        "n = 64": problem(64, 300),
        "n = 128": problem(128, 300),
    }
    rows = {name: ROWS[name] for name in ("sinusoidal", "elman", "gru", "lstm")}
    rows |= {f"lstm, forget bias {bias}": {"cell": "lstm", "forget_bias": float(bias)} for bias in (1, 4, 6)}
    return Experiment(rows, problems, {name: (name, problem.tests[0]) for name, problem in problems.items()})


def _sunspots() -> Experiment:
    """The next year's sunspot number, by where the forecast is read."""
    numbers = sunspots()[1]
    problems = {
        f"sunspots, {where}": Problem(
            NextValue(numbers, read_out=where), 24, (24,), 300, batch=32, learning_rate=1e-2, shape=SMALL
        )
        for where in ("last", "pooled")
    }
    # A table of 24 rows would make the learned encoding more than five per cent larger than the smallest cell.
    rows = {name: row for name, row in ROWS.items() if name != "learned"}
    return Experiment(rows, problems, {name: (name, 24) for name in problems})


_EXPERIMENTS = {"extrapolation": _extrapolation, "depth": _depth, "map": _map, "recall": _recall, "sunspots": _sunspots}
NAMES = tuple(_EXPERIMENTS)
"""The experiments there are."""


def experiment(name: str) -> Experiment:
    """What experiment `name` consists of. ValueError if there is none of that name."""
    if name not in _EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; known are {', '.join(NAMES)}")
    return _EXPERIMENTS[name]()


@dataclass(frozen=True)
class Results:
    """A table of results.

    Attributes
    ----------
    name : str
    settings : dict
        As of `Experiment.settings`: what was trained on what, and how.
    versions : dict
        Of the software that computed it.
    scores : float array, shape (rows, columns, seeds)
        Shares of right answers. For sunspots, the root mean square error as a multiple of that of forecasting
        "no change", so lower is better there.
    cells : dict
        From (row, problem, seed) to the `Cell`.
    """

    name: str
    settings: dict
    versions: dict
    scores: np.ndarray
    cells: dict[tuple[str, str, int], Cell]

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(self.settings["rows"])

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.settings["columns"])

    @property
    def ceilings(self) -> dict[str, float | None]:
        """The exact order-blind ceiling of each column; None where none is known."""
        return {name: column["ceiling"] for name, column in self.settings["columns"].items()}

    def of(self, row: str, column: str | None = None) -> np.ndarray:
        """The scores of a row: (columns, seeds), or (seeds,) in one column. ValueError for an unknown name."""
        for name, known in ((row, self.rows), (column, self.columns)):
            if name is not None and name not in known:
                raise ValueError(f"there is no {name!r} in {self.name}, only {', '.join(known)}")
        scores = self.scores[self.rows.index(row)]
        return scores if column is None else scores[self.columns.index(column)]

    def mean(self, row: str, column: str | None = None) -> np.ndarray:
        """The mean over seeds of what `of` gives."""
        return self.of(row, column).mean(axis=-1)

    def spread(self, row: str, column: str | None = None) -> np.ndarray:
        """The largest minus the smallest over seeds of what `of` gives."""
        return np.ptp(self.of(row, column), axis=-1)

    @cached_property
    def shares(self) -> np.ndarray:
        """Mean scores (rows, columns) on one scale: 0 is what can be had without order, 1 the best.

        See `Experiment.settings` for each column's "floor" and "top". Values are cut off below 0 and above 1.
        """
        columns = self.settings["columns"].values()
        floor, top = (np.array([column[mark] for column in columns]) for mark in ("floor", "top"))
        return ((self.scores.mean(axis=-1) - floor) / (top - floor)).clip(0.0, 1.0)

    def parameters(self, row: str) -> dict[str, int]:
        """How many numbers of a row's models were trained, by problem."""
        return {problem: cell.parameters for (r, problem, _), cell in self.cells.items() if r == row}


def load(name: str, folder: pathlib.Path = DATA) -> Results:
    """The results of experiment `name`, from the package. ValueError if there is none of that name."""
    if name not in _EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; known are {', '.join(NAMES)}")
    file = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    settings = file["settings"]
    cells = {}
    for row, problem, seed, *numbers, scores in file["cells"]:
        cells[row, problem, seed] = Cell(*numbers, tuple(scores))
    scores = [
        [
            [
                cells[row, column["problem"], seed].scores[
                    settings["problems"][column["problem"]]["tests"].index(column["length"])
                ]
                for seed in settings["seeds"]
            ]
            for column in settings["columns"].values()
        ]
        for row in settings["rows"]
    ]
    return Results(name, settings, file["versions"], np.array(scores), cells)


def try_task(
    task: Task,
    lengths: int | tuple[int, int],
    rows: Sequence[str] = ("none", "sinusoidal", "rotary", "gru"),
    *,
    test: int | None = None,
    steps: int = 200,
    seed: int = 0,
) -> dict[str, float]:
    """Put a task of your own into the map: train small models on it for some seconds, and score them.

    Parameters
    ----------
    task : Task
        Any of `posenc.tasks`; `posenc.tasks.Rule` makes one of a function.
    lengths : int or (int, int)
        Of the training sequences.
    rows : sequence of str
        From `ROWS`.
    test : int, optional
        Length of the test sequences: the longest trained one if not given.
    steps : int
    seed : int

    Returns
    -------
    dict
        For each row the share of right answers.

    Raises
    ------
    ValueError
        If a row is unknown, or as `posenc.training.fit`.
    """
    unknown = [row for row in rows if row not in ROWS]
    if unknown:
        raise ValueError(f"unknown row {unknown[0]!r}; known are {', '.join(ROWS)}")
    longest = max(lengths) if isinstance(lengths, (tuple, list)) else lengths
    shape = {"d_model": 32, "num_heads": 2, "num_layers": 2}
    problem = Problem(task, lengths, (longest if test is None else test,), steps, learning_rate=5e-3, shape=shape)
    return {row: measure(ROWS[row], problem, seed).scores[0] for row in rows}


# Computing the tables anew


def run(name: str, work: pathlib.Path, data: pathlib.Path = DATA, keep: bool = False, seconds: float | None = None) -> bool:
    """Compute the results of experiment `name`; write them to `data` when all are there, and say so by True.

    Runs that are done are put down in `work` at once, one a line, so that a broken-off computation goes on where it
    stopped. A run that two experiments share is taken from the other's file, if it was made with the same settings.

    Parameters
    ----------
    name : str
    work : path
        A folder for unfinished work.
    data : path
        The folder of the tables.
    keep : bool
        Take what this experiment's own table already holds with the same settings, too.
    seconds : float, optional
        Stop after the run during which this time is over.
    """
    started = time.monotonic()
    wanted = experiment(name)
    settings = wanted.settings()
    work.mkdir(parents=True, exist_ok=True)
    journal = work / f"{name}.jsonl"
    done = _finished([n for n in NAMES if keep or n != name], data) | _journal(journal)
    table = []
    for seed in wanted.seeds:
        for problem in wanted.problems:
            for row in wanted.rows:
                key = _key(settings, row, problem, seed)
                if key not in done:
                    if seconds is not None and time.monotonic() - started > seconds:
                        return False
                    cell = measure(wanted.rows[row], wanted.problems[problem], seed)
                    done[key] = list(dataclasses.astuple(cell))
                    with journal.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([key, done[key]]) + "\n")
                    print(f"{name}: {row}, {problem}, seed {seed}: {cell.scores}", file=sys.stderr, flush=True)
                table.append([row, problem, seed, *done[key]])
    versions = {"posenc": posenc.__version__, "torch": torch.__version__, "numpy": np.__version__, "python": platform.python_version()}
    head = {"experiment": name, "versions": versions, "settings": settings}
    lines = json.dumps(head, indent=1)[:-2] + ',\n "cells": [\n  ' + ",\n  ".join(json.dumps(_rounded(cell)) for cell in table) + "\n ]\n}\n"
    (data / f"{name}.json").write_text(lines, encoding="utf-8")
    journal.unlink(missing_ok=True)
    return True


def _finished(names: Sequence[str], data: pathlib.Path) -> dict[str, list]:
    done = {}
    for path in (data / f"{name}.json" for name in names):
        if path.exists():
            file = json.loads(path.read_text(encoding="utf-8"))
            for row, problem, seed, *numbers in file["cells"]:
                done[_key(file["settings"], row, problem, seed)] = numbers
    return done


def _journal(path: pathlib.Path) -> dict[str, list]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return dict(json.loads(line) for line in lines)


def _key(settings: dict, row: str, problem: str, seed: int) -> str:
    """What a run depends on, as text."""
    return json.dumps([settings["rows"][row], settings["problems"][problem], seed], sort_keys=True)


def _described(task: Task) -> dict:
    """A task by its name and what it was made with."""
    made_with = {f.name: getattr(task, f.name) for f in dataclasses.fields(task) if f.init and f.repr}
    return {"name": type(task).__name__} | {k: _described(v) if k == "task" else v for k, v in made_with.items()}


def _plain(value: object) -> dict:
    return json.loads(json.dumps(value))


def _rounded(value: object) -> object:
    """Six digits are more than another machine would repeat."""
    if isinstance(value, (list, tuple)):
        return [_rounded(v) for v in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m posenc.experiments [NAME …]``: compute the tables anew; all of them if none is named."""
    parser = argparse.ArgumentParser(prog="python -m posenc.experiments", description="Compute the book's tables anew.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"from {', '.join(NAMES)}; all if none is named")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("_build/results"), help="folder for unfinished work")
    parser.add_argument("--keep", action="store_true", help="keep the cells whose settings have not changed")
    parser.add_argument("--seconds", type=float, help="stop after so long; the next call goes on")
    given = parser.parse_args(arguments)
    for name in given.names or NAMES:
        if name not in NAMES:
            parser.error(f"unknown experiment {name!r}; known are {', '.join(NAMES)}")
    started = time.monotonic()
    for name in given.names or NAMES:
        left = None if given.seconds is None else given.seconds - (time.monotonic() - started)
        if not run(name, given.work, keep=given.keep, seconds=left):
            print(f"{name} is not finished; the same command goes on", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
