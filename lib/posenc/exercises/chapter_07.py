"""Exercises of chapter 7, what each encoding cannot see."""

import functools
import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor, nn

from posenc.attention import causal_mask, scaled_dot_product_attention
from posenc.encodings import RelativeBias
from posenc.exercises.engine import Choice, Function, Mistake, NotAttempted, Open, Value, as_array
from posenc.models import Transformer
from posenc.symmetry import unseen_rows
from posenc.training import seeded

_random = torch.Generator().manual_seed(7)


def _draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=_random, dtype=torch.float64)


# 7.1 blindness from the bias


def is_blind(bias: Tensor, order: Tensor) -> bool:
    moved = bias[order][:, order]
    if not torch.equal(moved == -math.inf, bias == -math.inf):
        return False
    for row, other in zip(moved, bias):
        change = (row - other)[other != -math.inf]
        if change.max() - change.min() > 1e-9:
            return False
    return True


def _spread(bias: Tensor, order: Tensor, dim: int) -> bool:
    change = bias[order][:, order] - bias
    return bool((change.amax(dim) - change.amin(dim) < 1e-9).all())


def _finite_only(bias: Tensor, order: Tensor) -> bool:
    moved = bias[order][:, order]
    change = torch.where((moved == -math.inf) | (bias == -math.inf), torch.nan, moved - bias)
    return all(row.max() - row.min() < 1e-9 for row in (r[~r.isnan()] for r in change) if len(row))


def _one_row_will_do(bias: Tensor, order: Tensor) -> bool:
    return bool(torch.isclose(bias[order][:, order].softmax(-1), bias.softmax(-1)).all(-1).any())


_PLACE = torch.arange(5)
_DISTANCE = -(_PLACE - _PLACE[:, None]).abs().double()
_RING = _draw(5)[(_PLACE - _PLACE[:, None]) % 5]
_CAUSAL = torch.zeros(4, 4).double().masked_fill(~causal_mask(4), -math.inf)
_LEVEL_FIRST_ROW = torch.where(_PLACE[:, None] == 0, 0.0, _draw(5, 5))
_NOT_THE_LAST = _draw(5, 1).expand(5, 5).masked_fill(_PLACE == 4, -math.inf)

_BACKWARDS, _ON = torch.tensor([4, 3, 2, 1, 0]), torch.tensor([1, 2, 3, 4, 0])


# 7.4 twins


@functools.cache
def _model(name: str, seed: int) -> nn.Module:
    options = {
        "alibi": {"encoding": "alibi", "num_layers": 3, "read_out": "pooled"},
        "causal": {"causal": True, "num_layers": 1, "read_out": "last"},
        "clipped": {"encoding": "relative", "max_distance": 2, "num_layers": 1, "read_out": "last"},
        "rotary": {"encoding": "rotary", "causal": True, "num_layers": 3, "read_out": "last"},
    }[name]
    with seeded(seed):
        model = Transformer(5, 8, d_model=16, num_heads=2, **options)
        for layer in model.modules():
            if isinstance(layer, RelativeBias):
                nn.init.normal_(layer.table)
    return model.to(torch.float64).eval()


def _sequence(thing: object) -> list[int] | None:
    array = as_array(thing)
    if array is None or array.ndim != 1 or not 1 <= array.size <= 8:
        return None
    numbers = array.astype(float).tolist()
    return [int(x) for x in numbers] if all(x in (0, 1, 2, 3, 4) for x in numbers) else None


def _examine_twins(answer: object) -> str | None:
    names = ("alibi", "causal", "clipped", "rotary")
    if not isinstance(answer, dict):
        return f"should be a dictionary with the keys {', '.join(names)}, not of type {type(answer).__name__}"
    missing = [name for name in names if name not in answer]
    if missing:
        return f"the pair for {missing[0]} is missing"
    if any(answer[name] is ... for name in names):
        raise NotAttempted
    for name in names:
        if fault := _no_twins(name, answer[name]):
            return f"{name}: {fault}"
    return None


def _no_twins(name: str, pair: object) -> str | None:
    try:
        first, second = pair
    except (TypeError, ValueError):
        return "should be a pair of sequences"
    first, second = _sequence(first), _sequence(second)
    if first is None or second is None:
        return "each sequence should be a list of 1 to 8 symbols from 0 to 4"
    if first == second:
        return "the two sequences are one and the same"
    if name != "rotary" and min(len(set(first)), len(set(second))) < 3:
        return "each sequence should have at least three different symbols"
    for seed in (0, 1):
        with torch.no_grad():
            gap = (_model(name, seed)(torch.tensor([first])) - _model(name, seed)(torch.tensor([second]))).abs().max()
        if not gap < 1e-9:
            return f"a model with random weights tells them apart{_why(name, first, second)}"
    return None


def _why(name: str, first: list[int], second: list[int]) -> str:
    if name == "rotary" and set(first) != set(second):
        return "; a symbol that only one of the two holds is read"
    if name == "rotary" and sorted(first) == sorted(second):
        return "; rotary sees every order of different symbols, but length is something else"
    if name in ("causal", "clipped") and first[-1] != second[-1]:
        return "; the last row knows its own token, so that must be the same"
    if name == "clipped" and sorted(first) == sorted(second):
        return "; seen from the last place, only the places two or more back share one number"
    if name == "rotary":
        return "; wherever two different symbols meet, it sees how far apart they are"
    if name == "alibi" and sorted(first) == sorted(second):
        return "; of the orders, only one is unseen"
    if name == "alibi":
        return "; a mean over the rows knows the share that each symbol has"
    return "; an average over the past knows the share that each symbol has in it"


# 7.5 the cure


def places(x: Tensor, mark: Tensor) -> Tensor:
    value = (x == mark).all(dim=1, keepdim=True).to(x.dtype)
    share, _ = scaled_dot_product_attention(torch.zeros_like(x), x, value, mask=causal_mask(len(x)))
    return 1 / share[:, 0] - 1


def _marked(length: int, width: int, equal: bool) -> tuple[Tensor, Tensor]:
    x, mark = _draw(length, width), _draw(width)
    if equal and length > 1:
        x[1:] = x[1]
    x[0] = mark
    return x, mark


def _decoys() -> tuple[Tensor, Tensor]:
    """A mark, and tokens that are like it in a number, in direction, in length or in sum."""
    mark = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    like = torch.tensor([[0.5, 3.0, 1.0], [1.0, -2.0, 4.0], [-0.5, 1.0, -2.0], [2.0, 0.5, -1.0], [4.0, -1.0, 2.0], [0.0, 0.0, 0.0]])
    return torch.cat([mark[None], like.double()]), mark


_MARKED = [_marked(7, 3, True), _marked(5, 4, False), _marked(1, 3, True), _marked(12, 2, False), _decoys()]
_ALIKE = "a token that is like the mark, in one number or in direction, is taken for it; compare whole rows"
_SMUGGLED = "places have come in by another way than the head"
_FIRST_ROW = "the first row is taken for the mark; compare each row with the vector of the mark"
_UNMARKED = [(_draw(1, 3).repeat(6, 1), _draw(3)), (_draw(4, 3), _draw(3))]


def _examine_places(answer: object) -> str | None:
    if not callable(answer):
        return f"should be a function of tokens and a mark, not of type {type(answer).__name__}"
    for case, (x, mark) in enumerate(_MARKED, 1):
        length = len(x)
        got = _numbers(answer, x, mark)
        if isinstance(got, str):
            return got
        want = np.arange(length)
        if np.allclose(got, want, atol=1e-3):
            continue
        if case == len(_MARKED):
            return _ALIKE
        if length > 1 and np.ptp(np.nan_to_num(got)) < 1e-9:
            return "all rows are equal although there is a mark: without a causal mask the head gives every row the same share"
        if np.allclose(got, 1 / (want + 1), atol=1e-3):
            return "these are the shares 1/(t + 1) of the head; turn each into the place t"
        if np.allclose(got, want + 1, atol=1e-3):
            return "counts from 1; the mark stands at place 0"
        if np.isclose(got[0], length - 1) and not np.isfinite(got[1:]).any():
            return "the mask is turned around: each row has to attend to the places up to its own"
        return "the share is not 1/(t + 1): are all scores equal (zero queries), and is the value 1 for the mark alone?"
    for (x, mark), why in zip(_UNMARKED, (_SMUGGLED, _FIRST_ROW)):
        got = _numbers(answer, x, mark)
        if isinstance(got, str):
            return got
        if not np.isnan(got).all() and not (got == got[0]).all() and not np.ptp(got) < 1e-9 * (1 + abs(got[0])):
            return f"rows differ although there is no mark: {why}"
    return None


def _numbers(answer: Callable, x: Tensor, mark: Tensor) -> np.ndarray | str:
    given = x.clone(), mark.clone()
    try:
        result = answer(*given)
    except NotImplementedError:
        raise
    except Exception as error:
        return f"your function raised {type(error).__name__}: {error}"
    if result is ...:
        raise NotAttempted
    if result is None:
        return "your function returns None: is a return missing?"
    if not (torch.equal(given[0], x) and torch.equal(given[1], mark)):
        return "your function changes its input in place; build a new result instead"
    got = as_array(result)
    if got is None or got.shape != (len(x),):
        shape = "something else" if got is None else f"shape {got.shape}"
        return f"for {len(x)} token{'s' * (len(x) > 1)} the result should have shape ({len(x)},), not {shape}"
    return got.astype(float)


def _by_head(x: Tensor, mark: Tensor, query: Tensor, mask: Tensor | None) -> Tensor:
    value = (x == mark).all(dim=1, keepdim=True).to(x.dtype)
    return scaled_dot_product_attention(query, x, value, mask=mask)[0][:, 0]


# 7.8 averages of averages


def last_row(n: int, layers: int) -> Tensor:
    return torch.linalg.matrix_power(_averages(n), layers)[-1]


def _averages(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.float64).tril() / torch.arange(1, n + 1)[:, None]


# 7.10 random beginnings


def random_places(n: int, limit: int) -> Tensor:
    if n > limit:
        raise ValueError(f"{n} tokens, but only {limit} places")
    first = int(torch.randint(limit - n + 1, ()))
    return torch.arange(first, first + n)


_DRAWS = 900
"""So many that a fair third falls short of a quarter of them once in a hundred million times."""


def _examine_random_places(answer: object) -> str | None:
    if not callable(answer):
        return f"should be a function of n and limit, not of type {type(answer).__name__}"
    with seeded(0):
        begins = []
        for _ in range(_DRAWS):
            got = _drawn(answer, 3, 5)
            if isinstance(got, str):
                return got
            begins.append(got[0])
        counts = [begins.count(first) for first in range(3)]
        if max(counts) == _DRAWS:
            return f"begins at {begins[0]} in every call; draw the beginning anew each time"
        if 0 in counts:
            return f"3 of 5 places may begin at 0, 1 or 2; yours never begin at {counts.index(0)}"
        if min(counts) < _DRAWS / 4:
            return "the possible beginnings should be equally likely"
        for n, limit in ((4, 4), (1, 1), (8, 256)):
            got = _drawn(answer, n, limit)
            if isinstance(got, str):
                return got
        try:
            result = answer(5, 4)
        except ValueError:
            return None
        except Exception as error:
            return f"5 tokens for 4 places should raise a ValueError, not {type(error).__name__}"
        returned = "; yours returns one, which stops nobody" if isinstance(result, Exception) else ""
        return f"5 tokens for 4 places should raise a ValueError{returned}"


def _drawn(answer: Callable, n: int, limit: int) -> list[int] | str:
    try:
        result = answer(n, limit)
    except NotImplementedError:
        raise
    except Exception as error:
        return f"{n} of {limit} places raised {type(error).__name__}: {error}"
    if result is ...:
        raise NotAttempted
    if result is None:
        return "your function returns None: is a return missing?"
    got = as_array(list(result) if isinstance(result, range | Iterator) else result)
    if got is None or got.shape != (n,):
        return f"{n} of {limit} places should be {n} numbers in a row"
    got = got.astype(float)
    if sorted(np.diff(got)) == [1 - limit] + [1] * (n - 2):
        return "the places go round to 0 at the end; the beginning has to leave room for all of them"
    if not (np.diff(got) == 1).all():
        return "the places should go up by one: distances between tokens must stay what they are"
    if not (got[0] >= 0 and got[-1] < limit and got[0] == int(got[0])):
        return f"the places should be integers from 0 to {limit - 1}; yours go from {got[0]:g} to {got[-1]:g}"
    return [int(x) for x in got]


def _from_zero(n: int, limit: int) -> Tensor:
    return torch.arange(n)


def _scattered(n: int, limit: int) -> Tensor:
    return torch.randperm(limit)[:n].sort().values


def _one_short(n: int, limit: int) -> Tensor:
    first = int(torch.randint(max(1, limit - n), ()))
    return torch.arange(first, first + n)


def _too_far(n: int, limit: int) -> Tensor:
    first = limit - int(torch.randint(1, 3, ()))
    return torch.arange(first, first + n)


def _no_refusal(n: int, limit: int) -> Tensor:
    first = int(torch.randint(max(0, limit - n) + 1, ()))
    return torch.arange(first, first + n)


def _same_seed(n: int, limit: int) -> Tensor:
    first = int(torch.randint(limit - n + 1, (), generator=torch.Generator().manual_seed(0)))
    return torch.arange(first, first + n)


def _round(n: int, limit: int) -> Tensor:
    return (int(torch.randint(limit, ())) + torch.arange(n)) % limit


def _uneven(n: int, limit: int) -> Tensor:
    first = min(int(torch.randint(limit - n + 2, ())), limit - n)
    return torch.arange(first, first + n)


def _returns_error(n: int, limit: int) -> object:
    return random_places(n, limit) if n <= limit else ValueError("too many")


EXERCISES = [
    Function(
        "7.1",
        "What a head cannot see stands in its bias, before any training.",
        reference=is_blind,
        cases=[
            (_DISTANCE, _BACKWARDS),
            (_DISTANCE + _draw(5, 1), _BACKWARDS),
            (_DISTANCE, _ON),
            (_draw(1, 5).expand(5, 5).contiguous(), torch.tensor([0, 2, 1, 3, 4])),
            (_draw(5, 5), _ON),
            (_CAUSAL, torch.tensor([0, 1, 3, 2])),
            (_CAUSAL, torch.arange(4)),
            (_NOT_THE_LAST.contiguous(), torch.tensor([2, 0, 3, 1, 4])),
            (_RING, _ON),
            (_RING, _BACKWARDS),
            (_LEVEL_FIRST_ROW, torch.tensor([0, 2, 1, 3, 4])),
        ],
        mistakes=[
            Mistake(
                "asks for P B Pᵀ = B, or one constant for the whole; each row may have a constant of its own, which the softmax drops",
                lambda bias, order: torch.equal(bias[order][:, order], bias),
            ),
            Mistake(
                "allows a constant in each column; the softmax forgets one in each row",
                lambda bias, order: _spread(bias, order, 0),
            ),
            Mistake(
                "−inf minus −inf and 0 times −inf are NaN, so that every masked bias looks seen: treat −inf apart",
                lambda bias, order: _spread(bias, order, 1),
            ),
            Mistake(
                "compares only where both are finite; −inf must also stand in the same places",
                _finite_only,
            ),
            Mistake(
                "is content with one row in which the difference is constant; it must be so in every row",
                _one_row_will_do,
            ),
            Mistake(
                "moves the rows alone; P B Pᵀ moves rows and columns",
                lambda bias, order: torch.equal(bias[order].softmax(-1), bias.softmax(-1)),
            ),
            Mistake(
                "moves the columns alone; P B Pᵀ moves rows and columns",
                lambda bias, order: torch.equal(bias[:, order].softmax(-1), bias.softmax(-1)),
            ),
            Mistake(
                "takes the softmax down the columns; that of a head runs along each row",
                lambda bias, order: torch.allclose(bias[order][:, order].softmax(0), bias.softmax(0)),
            ),
            Mistake(
                "this says it of each row; one answer is asked for, and a head is blind if all its rows are",
                unseen_rows,
            ),
        ],
    ),
    Value(
        "7.2",
        "A ring with a direction keeps its turns and loses its reflections.",
        value=5,
        tolerance=0.01,
        mistakes=[
            Mistake("ten would be right if g were even; here ahead and behind are told apart", 10),
            Mistake("that would be right on a line; a ring has no end from which to count", 1),
            Mistake("five different values of g are not one value: most orders are seen", 120),
            Mistake("the reversal turns ahead into behind, and there are more turns than that", 2),
            Mistake("the order that changes nothing is always unseen", 0),
            Mistake("turns by one, two, three and four places, and one more order that changes nothing", 4),
        ],
    ),
    Choice(
        "7.3",
        "Row constants are free, column constants are not, and under a causal mask ALiBi is a matter of keys.",
        right="a, d",
        options={
            "a": "a constant in each row is what the softmax forgets.",
            "b": "a constant in a column makes one key more attractive to every query, and the softmax sees that.",
            "c": "for keys after the query the two differ by −2mj plus a constant of the row, which is no constant.",
            "d": "under the mask only keys up to the query count, and there the two differ by −mi, a constant of row i.",
            "e": "−1000 is finite: a score of more than 1000 outweighs it, so some input shows the difference.",
        },
    ),
    Open(
        "7.4",
        "Four blind spots, found by theorem and confirmed by models that know nothing of it.",
        examine=_examine_twins,
        mistakes=[
            Mistake(
                "the pair for rotary is missing",
                {"alibi": ([0, 1, 2], [2, 1, 0]), "causal": ([0, 1, 2], [1, 0, 2]), "clipped": ([0, 1, 2, 3], [1, 0, 2, 3])},
            ),
            Mistake(
                "alibi: the two sequences are one and the same",
                {"alibi": ([0, 1, 2], [0, 1, 2]), "causal": 0, "clipped": 0, "rotary": 0},
            ),
            Mistake(
                "alibi: each sequence should have at least three different symbols",
                {"alibi": ([1], [1, 1]), "causal": 0, "clipped": 0, "rotary": 0},
            ),
            Mistake(
                "alibi: each sequence should be a list of 1 to 8 symbols from 0 to 4",
                {"alibi": ([0, 1, 5], [5, 1, 0]), "causal": 0, "clipped": 0, "rotary": 0},
            ),
            Mistake(
                "alibi: a model with random weights tells them apart; of the orders, only one is unseen",
                {"alibi": ([0, 1, 2, 3], [1, 0, 2, 3]), "causal": 0, "clipped": 0, "rotary": 0},
            ),
            Mistake(
                "alibi: a model with random weights tells them apart; a mean over the rows knows the share that each symbol has",
                {"alibi": ([0, 1, 2], [2, 1, 0, 0]), "causal": 0, "clipped": 0, "rotary": 0},
            ),
            Mistake(
                "causal: a model with random weights tells them apart; an average over the past knows the share that each symbol has in it",
                {"alibi": ([0, 1, 2, 3], [3, 2, 1, 0]), "causal": ([0, 1, 2], [0, 1, 1, 2]), "clipped": 0, "rotary": 0},
            ),
            Mistake(
                "rotary: a model with random weights tells them apart; wherever two different symbols meet, it sees how far apart they are",
                {
                    "alibi": ([0, 1, 2, 3], [3, 2, 1, 0]),
                    "causal": ([0, 1, 2, 3], [1, 2, 0, 3]),
                    "clipped": ([0, 1, 2, 3, 4], [1, 0, 2, 3, 4]),
                    "rotary": ([0, 1], [0, 1, 0, 1]),
                },
            ),
            Mistake(
                "causal: a model with random weights tells them apart; the last row knows its own token, so that must be the same",
                {"alibi": ([0, 1, 2, 3], [3, 2, 1, 0]), "causal": ([0, 1, 2, 3], [3, 2, 1, 0]), "clipped": 0, "rotary": 0},
            ),
            Mistake(
                "clipped: should be a pair of sequences",
                {"alibi": ([0, 1, 2, 3], [3, 2, 1, 0]), "causal": ([0, 1, 2, 3], [1, 2, 0, 3]), "clipped": 0, "rotary": 0},
            ),
            Mistake(
                "rotary: a model with random weights tells them apart; rotary sees every order of different symbols, but length is something else",
                {
                    "alibi": ([0, 1, 2, 3], [3, 2, 1, 0]),
                    "causal": ([0, 1, 2, 3], [1, 2, 0, 3]),
                    "clipped": ([0, 1, 2, 3, 4], [1, 0, 2, 3, 4]),
                    "rotary": ([0, 1, 2], [1, 0, 2]),
                },
            ),
        ],
    ),
    Open(
        "7.5",
        "One mark and one causal average, and every token knows its place.",
        examine=_examine_places,
        mistakes=[
            Mistake(
                f"rows differ although there is no mark: {_SMUGGLED}",
                lambda x, mark: torch.arange(len(x)),
            ),
            Mistake(
                f"rows differ although there is no mark: {_FIRST_ROW}",
                lambda x, mark: places(x, x[0]),
            ),
            Mistake(
                "these are the shares 1/(t + 1) of the head; turn each into the place t",
                lambda x, mark: _by_head(x, mark, torch.zeros_like(x), causal_mask(len(x))),
            ),
            Mistake(
                "counts from 1; the mark stands at place 0",
                lambda x, mark: 1 / _by_head(x, mark, torch.zeros_like(x), causal_mask(len(x))),
            ),
            Mistake(
                "all rows are equal although there is a mark: without a causal mask the head gives every row the same share",
                lambda x, mark: 1 / _by_head(x, mark, torch.zeros_like(x), None) - 1,
            ),
            Mistake(
                "the share is not 1/(t + 1): are all scores equal (zero queries), and is the value 1 for the mark alone?",
                lambda x, mark: 1 / _by_head(x, mark, x, causal_mask(len(x))) - 1,
            ),
            Mistake(
                "the mask is turned around: each row has to attend to the places up to its own",
                lambda x, mark: 1 / _by_head(x, mark, torch.zeros_like(x), causal_mask(len(x)).T) - 1,
            ),
            Mistake(
                _ALIKE,
                lambda x, mark: places((x == mark).any(dim=1, keepdim=True).to(x.dtype), torch.ones(1, dtype=x.dtype)),
            ),
            Mistake(
                "for 7 tokens the result should have shape (7,), not shape (7, 1)",
                lambda x, mark: places(x, mark)[:, None],
            ),
        ],
    ),
    Choice(
        "7.6",
        "Averaging forgets how many there were; a sum does not.",
        right="3",
        options={
            "1": "that is Definition 7.2, and it holds for every head with a softmax.",
            "2": "that is Theorem 7.2.",
            "3": "the mean and the maximum are the same, the sum of n equal rows grows with n.",
            "4": "it rests on the line before it. Look for the first false line.",
            "5": "it is false as it stands, but not the first false line.",
        },
    ),
    Choice(
        "7.7",
        "A token takes its past along only if every order of it looks the same; under a causal mask the past is cut by place.",
        right="3",
        options={
            "1": "it only says what is done.",
            "2": "that is Proposition 7.5, for the last row.",
            "3": "when a token moves, other tokens stand before it, so its row is new and not only moved.",
            "4": "it rests on the line before it. Look for the first false line.",
            "5": "it would follow if the second block read the same rows. Look for the first false line.",
        },
    ),
    Function(
        "7.8",
        "Each layer moves weight towards the beginning: the only token that keeps all of itself.",
        reference=last_row,
        cases=[(6, 1), (5, 2), (7, 3), (4, 6)],
        mistakes=[
            Mistake(
                "this is the first row, where there is one token only; take the last",
                lambda n, layers: torch.linalg.matrix_power(_averages(n), layers)[0],
            ),
            Mistake(
                "this is the last column; a row says where one query looks",
                lambda n, layers: torch.linalg.matrix_power(_averages(n), layers)[:, -1],
            ),
            Mistake(
                "C ** L raises every entry to a power; the layers call for the matrix product",
                lambda n, layers: (_averages(n) ** layers)[-1],
            ),
            Mistake(
                "one layer too many: with one layer the last row is a plain mean",
                lambda n, layers: last_row(n, layers + 1),
            ),
            Mistake(
                "one layer too few: L layers are C to the power L",
                lambda n, layers: last_row(n, layers - 1),
            ),
            Mistake(
                "this divides column j by j + 1; divide row i by i + 1, so that the rows sum to one",
                lambda n, layers: torch.linalg.matrix_power(torch.ones(n, n, dtype=torch.float64).tril() / torch.arange(1, n + 1), layers)[-1],
            ),
            Mistake(
                "without a causal mask every layer gives the plain mean; the mask is what makes early tokens count more",
                lambda n, layers: torch.full((n,), 1 / n, dtype=torch.float64),
            ),
            Mistake(
                "the number of layers is not used: this is what two of them give",
                lambda n, layers: last_row(n, 2),
            ),
            Mistake(
                "this is the whole matrix; only its last row is asked for",
                lambda n, layers: torch.linalg.matrix_power(_averages(n), layers),
            ),
            Mistake(
                "the columns sum to one here; it is the rows that are averages",
                lambda n, layers: torch.linalg.matrix_power(_averages(n).sign() / _averages(n).sign().sum(0), layers)[-1],
            ),
            Mistake(
                "the mask leaves out the token itself; row i is the mean of the tokens 0 to i",
                lambda n, layers: torch.linalg.matrix_power(torch.ones(n, n, dtype=torch.float64).tril(-1) / torch.arange(n).clamp(min=1)[:, None], layers)[-1],
            ),
            Mistake(
                "from the far end: token 0 is the one with the largest weight",
                lambda n, layers: last_row(n, layers).flip(0),
            ),
            Mistake(
                "the rows of C have to sum to one: divide row i by i + 1",
                lambda n, layers: torch.linalg.matrix_power(torch.ones(n, n, dtype=torch.float64).tril(), layers)[-1],
            ),
        ],
    ),
    Choice(
        "7.9",
        "Order is kept and distance is lost, and this task asks for a distance.",
        right="c",
        options={
            "a": "look at the column for length 16, which is well inside the training lengths.",
            "b": "compare the columns for 16 and 32 with the rows without random positions.",
            "c": "at 16 tokens both are far from solving it.",
            "d": "neither of the two rows is near the other encodings, even at length 16.",
        },
    ),
    Open(
        "7.10",
        "Every row is trained and every distance kept. Now run longer(random_places).",
        examine=_examine_random_places,
        mistakes=[
            Mistake("begins at 0 in every call; draw the beginning anew each time", _from_zero),
            Mistake("the places should go up by one: distances between tokens must stay what they are", _scattered),
            Mistake("3 of 5 places may begin at 0, 1 or 2; yours never begin at 2", _one_short),
            Mistake("the places should be integers from 0 to 4; yours go from 4 to 6", _too_far),
            Mistake("5 tokens for 4 places should raise a ValueError", _no_refusal),
            Mistake("begins at 2 in every call; draw the beginning anew each time", _same_seed),
            Mistake("the places go round to 0 at the end; the beginning has to leave room for all of them", _round),
            Mistake("the possible beginnings should be equally likely", _uneven),
            Mistake("5 tokens for 4 places should raise a ValueError; yours returns one, which stops nobody", _returns_error),
        ],
    ),
    Value(
        "7.11",
        "A decay shares: whoever wants the token k back must also serve all that are nearer.",
        value=1 / 7,
        tolerance=0.001,
        mistakes=[
            Mistake("that is the bound under a causal mask; here there are tokens on the other side as well", 1 / 4),
            Mistake("the token at distance three on the other side gets as much, too", 1 / 6),
            Mistake("that counts distances 1 and 2 on both sides and the token itself, but neither token at distance 3", 1 / 5),
            Mistake("the token itself is at distance zero, and is the best served of all", 1 / 3),
            Mistake("that is the share of both tokens at distance three; only the one that is three back is asked for", 2 / 7),
            Mistake("that is the share of the three tokens on one side together; only the one that is three back is asked for", 3 / 7),
            Mistake("seven tokens get at least as much, so the share is a seventh", 7),
        ],
    ),
]
