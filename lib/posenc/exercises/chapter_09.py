"""Exercises of chapter 9, attention against recurrence."""

from numbers import Real

import torch
from torch import Tensor
from torch.nn import functional as F

from posenc.exercises.engine import Choice, Function, Mistake, Open, Value
from posenc.experiments import ROWS
from posenc.symmetry import order_blind_ceiling
from posenc.tasks import IGNORED, Rule

_random = torch.Generator().manual_seed(9)


def _draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=_random, dtype=torch.float64)


# 9.1 the work of a layer

_MATRICES = {"attention": 4, "elman": 2, "gru": 6, "lstm": 8}


def multiply_adds(kind: str, n: int, d: int) -> int:
    return _MATRICES[kind] * n * d**2 + (2 * n**2 * d if kind == "attention" else 0)


def _only_attention(wrong) -> object:
    return lambda kind, n, d: wrong(n, d) if kind == "attention" else multiply_adds(kind, n, d)


def _only_cells(wrong) -> object:
    return lambda kind, n, d: multiply_adds(kind, n, d) if kind == "attention" else wrong(kind, n, d)


# 9.3 a step of linear attention


def linear_step(S: Tensor, z: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    S, z = S + key[:, None] * value, z + key
    return query @ S / (query @ z), S, z


def _read_first(S, z, query, key, value):
    _, new_S, new_z = linear_step(S, z, query, key, value)
    return query @ S / (query @ z), new_S, new_z


def _step_case(features: int, width: int) -> tuple[Tensor, ...]:
    return (_draw(features, width), *(_draw(features).abs() + 0.1 for _ in range(3)), _draw(width))


# 9.5 an honest fit


def forecasts(series: Tensor, order: int, held_out: int) -> Tensor:
    rows = _design(series, order)
    return rows[-held_out:] @ _solved(rows[:-held_out], series[order:-held_out])


def _design(series: Tensor, order: int, constant: bool = True) -> Tensor:
    rows = series[:-1].unfold(0, order, 1)
    return torch.cat([torch.ones_like(rows[:, :1]), rows], dim=1) if constant else rows


def _solved(rows: Tensor, targets: Tensor) -> Tensor:
    return torch.linalg.lstsq(rows, targets[:, None]).solution[:, 0]


def _leaking(series, order, held_out):
    rows = _design(series, order)
    return rows[-held_out:] @ _solved(rows, series[order:])


def _refitted(series, order, held_out):
    ends = range(len(series) - held_out + 1, len(series) + 1)
    return torch.cat([forecasts(series[:end], order, 1) for end in ends])


def _without_constant(series, order, held_out):
    rows = _design(series, order, constant=False)
    return rows[-held_out:] @ _solved(rows[:-held_out], series[order:-held_out])


def _turned_around(series, order, held_out):
    rows = _design(series, order)
    found = _solved(rows[:-held_out], series[order:-held_out])
    return rows[-held_out:] @ torch.cat([found[:1], found[1:].flip(0)])


def _feeding_itself(series, order, held_out):
    found = _solved(_design(series, order)[:-held_out], series[order:-held_out])
    past = series[-held_out - order : -held_out].tolist()
    for _ in range(held_out):
        past.append(float(found[0] + found[1:] @ torch.tensor(past[-order:], dtype=series.dtype)))
    return torch.tensor(past[order:], dtype=series.dtype)


def _wave(n: int, pace: float) -> Tensor:
    t = torch.arange(n, dtype=torch.float64)
    return 5 + 3 * torch.sin(pace * t) + 0.05 * t + 0.7 * _draw(n)


# 9.8 a column of one's own

_CELLS = ("elman", "gru", "lstm")
_KEYS = ("task", "length", "predicted", "measured")


def _examine_column(answer: object) -> str | None:
    if not isinstance(answer, dict):
        return f"should be a dictionary with the keys {', '.join(_KEYS)}"
    missing = [key for key in _KEYS if key not in answer]
    if missing:
        return f"the dictionary lacks the key {missing[0]!r}"
    task, length, predicted, measured = (answer[key] for key in _KEYS)
    if not isinstance(task, Rule):
        return f"the task should be a Rule of posenc.tasks, not of type {type(task).__name__}"
    if type(length) is not int or not 2 <= length <= 6 or task.symbols > 4:
        return "choose a length from 2 to 6 and at most 4 symbols, so that every sequence can be listed"
    if task.read_out not in ("pooled", "token"):
        return f"the read-out should be 'pooled' or 'token', not {task.read_out!r}: their order-blind ceilings can be listed"
    return _wrong_scores(predicted, measured) or _impossible(task, length, predicted["none"], measured["none"])


def _wrong_scores(predicted: object, measured: object) -> str | None:
    for name, scores in (("predicted", predicted), ("measured", measured)):
        if not isinstance(scores, dict) or not all(_is_share(value) for value in scores.values()):
            return f"{name!r} should be a dictionary from rows to accuracies between 0 and 1"
    unknown = [row for row in predicted if row not in ROWS]
    if unknown:
        return f"{unknown[0]!r} is not a row of the map; its rows are {', '.join(ROWS)}"
    if len(predicted) < 3 or "none" not in predicted or not set(predicted) & set(_CELLS):
        return "predict at least three rows, among them 'none' and one of the cells elman, gru, lstm"
    if lacking := [row for row in predicted if row not in measured]:
        return f"you predicted {lacking[0]!r} and did not measure it"
    if all(predicted[row] == measured[row] for row in predicted):
        return "the predictions are the measurements, digit for digit: predict before you measure"
    return None


def _is_share(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= value <= 1


def _impossible(task: Rule, length: int, predicted: float, measured: float) -> str | None:
    tokens = torch.cartesian_prod(*[torch.arange(task.symbols)] * length)
    try:
        targets, again = task.answer(tokens.clone()), task.answer(tokens.clone())
        targets, again = torch.as_tensor(targets).long(), torch.as_tensor(again).long()
    except Exception as error:
        return f"the task's answer raised {type(error).__name__}: {error}"
    expected = tuple(tokens.shape) if task.read_out == "token" else (len(tokens),)
    if tuple(targets.shape) != expected:
        return f"for sequences {tuple(tokens.shape)} and read-out {task.read_out!r} answers have shape {expected}, not {tuple(targets.shape)}"
    if not torch.equal(targets, again):
        return "the task answers the same sequence differently from time to time: nothing could learn it"
    if bool((targets == IGNORED).any()):
        return "give every token an answer, or read the answer from the pooled tokens"
    ceiling = order_blind_ceiling(tokens, targets)
    if ceiling >= 0.95:
        return f"without seeing order a model could reach {ceiling:.2f}: order should matter to the task"
    if predicted > ceiling + 0.005:
        return f"you predict {predicted:.2f} for 'none', but no model that is blind to order can pass {ceiling:.3f} on this task"
    if measured > ceiling + 0.06:
        return f"'none' measured at {measured:.2f} is above its exact ceiling {ceiling:.3f} by more than luck: another task or length?"
    return None


def _first_is_smaller(tokens: Tensor) -> Tensor:
    return (tokens[:, 0] < tokens[:, -1]).long()


def _entry(**changes: object) -> dict:
    rule = Rule(_first_is_smaller, symbols=4, num_classes=2, read_out="pooled")
    scores = {"none": 0.63, "sinusoidal": 0.99, "gru": 0.98}
    guess = {"none": 0.6, "sinusoidal": 1.0, "gru": 1.0}
    return {"task": rule, "length": 4, "predicted": guess, "measured": scores} | changes


EXERCISES = [
    Function(
        "9.1",
        "Every weight works once for each token; only attention has products with no weight in them.",
        reference=multiply_adds,
        cases=[(kind, n, d) for kind in _MATRICES for n, d in ((7, 5), (12, 30))],
        mistakes=[
            Mistake(
                "counts two operations for each multiply-add; here a multiply-add is one",
                lambda kind, n, d: 2 * multiply_adds(kind, n, d),
            ),
            Mistake(
                "forgets one of attention's four projections: query, key, value and output",
                _only_attention(lambda n, d: 3 * n * d**2 + 2 * n**2 * d),
            ),
            Mistake(
                "counts the core of attention alone; the layer has four projections too",
                _only_attention(lambda n, d: 2 * n**2 * d),
            ),
            Mistake(
                "counts the cores alone: the layers also have projections, or a product with each token",
                lambda kind, n, d: 2 * n**2 * d if kind == "attention" else multiply_adds(kind, n, d) // 2,
            ),
            Mistake(
                "this is how the core grows, without constants: count every product of the layer",
                lambda kind, n, d: n**2 * d if kind == "attention" else n * d**2,
            ),
            Mistake(
                "counts the scores and not the mixing of the values: both are products with n² d multiply-adds",
                _only_attention(lambda n, d: 4 * n * d**2 + n**2 * d),
            ),
            Mistake(
                "leaves out the products without weights: scores, and weights times values",
                _only_attention(lambda n, d: 4 * n * d**2),
            ),
            Mistake(
                "counts the masked half of the scores away; here there is no mask",
                _only_attention(lambda n, d: 4 * n * d**2 + n * (n + 1) * d),
            ),
            Mistake(
                "a recurrent layer also multiplies each token with its input weights",
                _only_cells(lambda kind, n, d: multiply_adds(kind, n, d) // 2),
            ),
            Mistake(
                "all cells get the work of an Elman network: a GRU has three pairs of matrices, an LSTM four",
                _only_cells(lambda kind, n, d: 2 * n * d**2),
            ),
            Mistake(
                "the numbers of matrices of GRU and LSTM are exchanged: three pairs and four",
                _only_cells(lambda kind, n, d: {"elman": 2, "gru": 8, "lstm": 6}[kind] * n * d**2),
            ),
            Mistake(
                "forgets the number of tokens: each matrix works once for every token",
                lambda kind, n, d: _MATRICES[kind] * d**2 + (2 * n**2 * d if kind == "attention" else 0),
            ),
            Mistake(
                "n and d have changed places: a weight matrix has d² entries, and works once for each of n tokens",
                lambda kind, n, d: multiply_adds(kind, d, n),
            ),
            Mistake(
                "a weight matrix has d² entries, not d",
                lambda kind, n, d: _MATRICES[kind] * n * d + (2 * n**2 * d if kind == "attention" else 0),
            ),
            Mistake(
                "the cells multiply no tokens with one another: 2n²d belongs to attention alone",
                _only_cells(lambda kind, n, d: _MATRICES[kind] * n * d**2 + 2 * n**2 * d),
            ),
            Mistake(
                "the feed-forward network belongs to a block, and a layer was asked for",
                _only_attention(lambda n, d: 12 * n * d**2 + 2 * n**2 * d),
            ),
            Mistake(
                "one pair of matrices is missing in the gated cells: a GRU has three, an LSTM four",
                _only_cells(lambda kind, n, d: {"elman": 2, "gru": 4, "lstm": 6}[kind] * n * d**2),
            ),
        ],
    ),
    Value(
        "9.2",
        "Twice the width: with feed-forward networks and two layers the crossing moves, and so does every rule of thumb.",
        value=192,
        tolerance=0.5,
        mistakes=[
            Mistake("leaves out the feed-forward network, which does 8nd²", 576),
            Mistake(
                "a part of the block is missing: four projections, two products without weights, two feed-forward matrices",
                384,
            ),
            Mistake("n = d is where one attention layer meets one GRU layer", 96),
            Mistake("forgets that there are two LSTM layers: with one, the block does more at every length", -192),
            Mistake("one of the four projections is missing: query, key, value and output", 240),
            Mistake("the hidden layer of the feed-forward network is 4d wide, so it does 8nd², not 2nd²", 480),
        ],
    ),
    Function(
        "9.3",
        "A state that does not grow, and the same outputs as attention over the whole past.",
        reference=linear_step,
        cases=[_step_case(5, 3), _step_case(4, 7), _step_case(6, 6)],
        mistakes=[
            Mistake("reads before the state is brought up to date: a token sees itself", _read_first),
            Mistake(
                "the output is not divided by z · query: the weights would not sum to one",
                lambda S, z, q, k, v: (q @ linear_step(S, z, q, k, v)[1], S + k[:, None] * v, z + k),
            ),
            Mistake(
                "divides by the old z: the new token's weight belongs to the sum too",
                lambda S, z, q, k, v: (q @ (S + k[:, None] * v) / (q @ z), S + k[:, None] * v, z + k),
            ),
            Mistake(
                "the state is replaced: add to what is there",
                lambda S, z, q, k, v: (v * (q @ k) / (q @ k), k[:, None] * v, k),
            ),
            Mistake(
                "the output is right, but the old state is returned: the next token needs the new one",
                lambda S, z, q, k, v: (linear_step(S, z, q, k, v)[0], S, z),
            ),
            Mistake(
                "z is never brought up to date",
                lambda S, z, q, k, v: (q @ (S + k[:, None] * v) / (q @ (z + k)), S + k[:, None] * v, z),
            ),
            Mistake(
                "the query is stored in place of the key: what is stored is found again by its key",
                lambda S, z, q, k, v: linear_step(S, z, q, q, v),
            ),
            Mistake(
                "key and query have changed places: the query reads, the key writes",
                lambda S, z, q, k, v: linear_step(S, z, k, q, v),
            ),
            Mistake(
                "the output is read with the key: the key writes, the query reads",
                lambda S, z, q, k, v: (linear_step(S, z, k, k, v)[0], S + k[:, None] * v, z + k),
            ),
            Mistake(
                "divides by the sum of z: the weights of this query sum to z · query",
                lambda S, z, q, k, v: (q @ (S + k[:, None] * v) / (z + k).sum(), S + k[:, None] * v, z + k),
            ),
            Mistake(
                "query and key are features already: φ is not taken again",
                lambda S, z, q, k, v: linear_step(S, z, F.elu(q) + 1, F.elu(k) + 1, v),
            ),
            Mistake(
                "the order of the results: the output comes first, then the new S and the new z",
                lambda S, z, q, k, v: (S + k[:, None] * v, z + k, linear_step(S, z, q, k, v)[0]),
            ),
        ],
    ),
    Function(
        "9.4",
        "Two steps take as many numbers as one: this is all that a scan needs.",
        reference=lambda a1, b1, a2, b2: (a2 * a1, a2 * b1 + b2),
        cases=[tuple(_draw(5) for _ in range(4)), tuple(_draw(3, 4) for _ in range(4))],
        mistakes=[
            Mistake(
                "this is the other order: (a₁, b₁) comes first, so a₂ acts on b₁",
                lambda a1, b1, a2, b2: (a1 * a2, a1 * b2 + b1),
            ),
            Mistake(
                "the second factor acts on b₁ as well",
                lambda a1, b1, a2, b2: (a1 * a2, b1 + b2),
            ),
            Mistake("b₂ is missing: the second step adds it", lambda a1, b1, a2, b2: (a1 * a2, a2 * b1)),
            Mistake(
                "the factors multiply: two steps in a row, not two steps added",
                lambda a1, b1, a2, b2: (a1 + a2, b1 + b2),
            ),
            Mistake(
                "the factors multiply: h meets a₁, and the result meets a₂",
                lambda a1, b1, a2, b2: (a1 + a2, a2 * b1 + b2),
            ),
            Mistake(
                "b₁ is added after a₁ has acted: a₂ alone acts on it",
                lambda a1, b1, a2, b2: (a1 * a2, a1 * a2 * b1 + b2),
            ),
            Mistake("the terms are added, not multiplied", lambda a1, b1, a2, b2: (a1 * a2, b1 * b2)),
            Mistake(
                "b₂ is added after a₂ has acted, so it is not multiplied",
                lambda a1, b1, a2, b2: (a1 * a2, a2 * (b1 + b2)),
            ),
            Mistake(
                "b₁ passes through the second step, not through its own factor again",
                lambda a1, b1, a2, b2: (a1 * a2, a1 * b1 + b2),
            ),
            Mistake(
                "the two results have changed places: first the factor, then the term",
                lambda a1, b1, a2, b2: (a2 * b1 + b2, a1 * a2),
            ),
        ],
    ),
    Function(
        "9.5",
        "Fitted without a look at the test: now its error can be believed.",
        reference=forecasts,
        cases=[(_wave(60, 0.6), 3, 12), (_wave(80, 0.9), 5, 20), (_wave(45, 0.4), 2, 7)],
        mistakes=[
            Mistake("the fit has seen the test years: fit without the last held_out values", _leaking),
            Mistake("there is no constant term: give the rows a column of ones", _without_constant),
            Mistake(
                "the mean is taken off in place of a fitted constant, which is not the same: give the rows a column of ones",
                lambda s, p, h: _without_constant(s - s[:-h].mean(), p, h) + s[:-h].mean(),
            ),
            Mistake("the fit is made anew for every year, and so sees test years: fit once", _refitted),
            Mistake(
                "the weights are used in the other order than they were fitted in: which column is one step back?",
                _turned_around,
            ),
            Mistake(
                "forecasts are fed back in as if they were values: each is one step ahead of the true past",
                _feeding_itself,
            ),
            Mistake("this repeats the last value, the baseline 'no change'", lambda s, p, h: s[-h - 1 : -1]),
            Mistake("these are the true values themselves", lambda s, p, h: s[-h:]),
            Mistake(
                "the fit is made to the test years alone: fit to the values before them",
                lambda s, p, h: _design(s, p)[-h:] @ _solved(_design(s, p)[-h:], s[-h:]),
            ),
            Mistake("looks one value further back than order", lambda s, p, h: forecasts(s, p + 1, h)),
            Mistake("looks one value less far back than order", lambda s, p, h: forecasts(s, p - 1, h)),
            Mistake(
                "these are the fitted values of the years before the test",
                lambda s, p, h: forecasts(s[:-h], p, h),
            ),
            Mistake(
                "this is the mean of the years before, which uses nothing of the past values",
                lambda s, p, h: s[:-h].mean().expand(h),
            ),
        ],
    ),
    Choice(
        "9.6",
        "The last parity is a function of the set; and what was not found has not been proved impossible.",
        right="b, d",
        options={
            "a": "the last parity does not depend on order at all, so failing there cannot be about order",
            "b": "the last parity is a function of the set of bits",
            "c": "three seeds of one size prove nothing about all; a Transformer for parity has been constructed",
            "d": "this is what was measured, no more",
        },
    ),
    Value(
        "9.7",
        "Two vectors for every token against one for all of them: the ratio is twice the length, whatever the size.",
        value=8192,
        tolerance=0.5,
        mistakes=[
            Mistake("for each token there is a key and a value, two vectors", 4096),
            Mistake("counts the layers on one side alone; both have twelve", 12 * 8192),
            Mistake("this is the number of bytes in the cache; how many times the states' bytes is it?", 2 * 4096 * 768 * 12 * 2),
            Mistake("an Elman layer keeps one state, an LSTM would keep two", 2048),
            Mistake("that is for one token: the cache has grown for 4096", 2),
            Mistake("that is how many numbers one layer's cache holds; how many times a layer's state is it?", 2 * 4096 * 768),
            Mistake("that is how many bytes the states take; how many times as many does the cache?", 12 * 768 * 2),
            Mistake("a number takes two bytes on both sides", 4 * 4096),
        ],
    ),
    Open(
        "9.8",
        "A prediction on record, a measurement beside it, and a ceiling that neither may pass.",
        examine=_examine_column,
        mistakes=[
            Mistake("should be a dictionary with the keys task, length, predicted, measured", [1, 2, 3]),
            Mistake("the dictionary lacks the key 'measured'", {"task": 1, "length": 4, "predicted": {}}),
            Mistake("the task should be a Rule of posenc.tasks, not of type str", _entry(task="first is smaller")),
            Mistake(
                "choose a length from 2 to 6 and at most 4 symbols, so that every sequence can be listed", _entry(length=40)
            ),
            Mistake(
                "the read-out should be 'pooled' or 'token', not 'last': their order-blind ceilings can be listed",
                _entry(task=Rule(_first_is_smaller, 4, 2, "last")),
            ),
            Mistake(
                "'predicted' should be a dictionary from rows to accuracies between 0 and 1",
                _entry(predicted={"none": 60, "gru": 100, "lstm": 100}),
            ),
            Mistake(
                f"'transformer' is not a row of the map; its rows are {', '.join(ROWS)}",
                _entry(predicted={"none": 0.5, "gru": 1.0, "transformer": 1.0}),
            ),
            Mistake(
                "predict at least three rows, among them 'none' and one of the cells elman, gru, lstm",
                _entry(predicted={"none": 0.5, "sinusoidal": 1.0, "rotary": 1.0}),
            ),
            Mistake("you predicted 'lstm' and did not measure it", _entry(predicted={"none": 0.5, "lstm": 1.0, "gru": 1.0})),
            Mistake(
                "the predictions are the measurements, digit for digit: predict before you measure",
                _entry(predicted=_entry()["measured"]),
            ),
            Mistake(
                "for sequences (256, 4) and read-out 'token' answers have shape (256, 4), not (256,)",
                _entry(task=Rule(_first_is_smaller, 4, 2, "token")),
            ),
            Mistake(
                "without seeing order a model could reach 1.00: order should matter to the task",
                _entry(task=Rule(lambda tokens: tokens.sum(dim=1) % 2, 4, 2, "pooled")),
            ),
            Mistake(
                "you predict 0.90 for 'none', but no model that is blind to order can pass 0.625 on this task",
                _entry(predicted={"none": 0.9, "sinusoidal": 1.0, "gru": 1.0}),
            ),
            Mistake(
                "'none' measured at 0.95 is above its exact ceiling 0.625 by more than luck: another task or length?",
                _entry(measured={"none": 0.95, "sinusoidal": 1.0, "gru": 1.0}),
            ),
            Mistake(
                "the task answers the same sequence differently from time to time: nothing could learn it",
                _entry(task=Rule(lambda tokens: torch.randint(2, (len(tokens),)), 4, 2, "pooled")),
            ),
        ],
    ),
]
