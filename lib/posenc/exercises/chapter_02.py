"""The exercises of chapter 2, "Attention cannot see order"."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from posenc.exercises.engine import Choice, Exercise, Function, Mistake, NotAttempted, Open, Value, as_array
from posenc.symmetry import all_orders, order_blind_ceiling

# Orders that are not their own inverse, so that an order and its inverse give different results. The last has cycles
# of two lengths: to apply it again and again does not undo it at the n-th time.
_ORDERS = [torch.tensor(order) for order in ([2, 0, 1], [1, 2, 4, 0, 3], [3, 0, 1, 2], [1, 2, 0, 4, 3])]


def _draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


# 2.1, 2.2


def _permutation_matrix(order: Tensor) -> Tensor:
    return torch.eye(len(order), dtype=torch.float64)[order]


def _undo(y: Tensor, order: Tensor) -> Tensor:
    return y[order.argsort()]


def _round_and_round(y: Tensor, order: Tensor) -> Tensor:
    for _ in range(len(order) - 1):
        y = y[order]
    return y


# 2.3. The maps run on tensors and on arrays; none of them is equivariant.


def _add_place(x):
    place = torch.arange(len(x), dtype=x.dtype) if isinstance(x, Tensor) else np.arange(len(x))
    return x + place[:, None]


def _add_first(x):
    return x + 2 * x[:1]


def _running_sum(x):
    return x.cumsum(0)


def _meet_next(x):
    return x * x[[*range(1, len(x)), 0]] - x[:1]


def _largest_gap(f: Callable, x: Tensor) -> Tensor:
    return _largest(lambda order: f(x[order]) - f(x)[order], x)


def _largest(difference: Callable[[Tensor], Tensor], x: Tensor, orders: Tensor | None = None) -> Tensor:
    orders = all_orders(len(x)) if orders is None else orders
    return torch.stack([difference(order).abs().max() for order in orders]).max()


def _all_gaps(f: Callable, x: Tensor) -> Tensor:
    return torch.stack([f(x[order]) - f(x)[order] for order in all_orders(len(x))])


def _swaps(length: int) -> Tensor:
    orders = all_orders(length)
    return orders[(orders != torch.arange(length)).sum(dim=1) == 2]


# 2.5. Lists in which groups differ in size, in which it matters how often a symbol occurs, and in which two
# groups have one product, one sum and as many symbols, one sum of squares, or the same symbols and one sum.

_LISTS = [
    ([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 0], [2, 1, 0], [0, 1, 2], [1, 1, 1]], [0, 0, 1, 1, 2, 0, 1]),
    ([[3, 1], [1, 3], [3, 1], [1, 1], [3, 3], [2, 3], [3, 2]], [1, 0, 1, 0, 2, 2, 1]),
    ([[0, 1, 1, 0], [1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 0], [0, 1, 0, 1]], [0, 0, 1, 1, 1]),
    ([[1, 6], [6, 1], [6, 1], [2, 3], [3, 2]], [0, 0, 1, 2, 2]),
    ([[0, 3], [3, 0], [1, 1], [1, 1], [2, 1], [1, 2], [0, 5], [5, 0], [4, 3], [3, 4]], [0, 0, 1, 1, 2, 2, 0, 0, 1, 1]),
    ([[0, 0, 1, 2, 2], [2, 1, 2, 0, 0], [1, 1, 0, 2, 1], [1, 2, 1, 0, 1]], [0, 0, 1, 1]),
]


def _grouped(key: Callable[[list[int]], object], tokens: Tensor, targets: Tensor) -> list[Counter]:
    groups = defaultdict(Counter)
    for row, target in zip(tokens.tolist(), targets.tolist()):
        groups[key(row)][target] += 1
    return list(groups.values())


def _multiset(row: list[int]) -> tuple[int, ...]:
    return tuple(sorted(row))


def _ceiling_with(key: Callable[[list[int]], object], tokens: Tensor, targets: Tensor) -> float:
    return sum(max(counts.values()) for counts in _grouped(key, tokens, targets)) / len(targets)


def _mean_over_groups(tokens: Tensor, targets: Tensor) -> float:
    groups = _grouped(_multiset, tokens, targets)
    return sum(max(counts.values()) / sum(counts.values()) for counts in groups) / len(groups)


def _rarest(tokens: Tensor, targets: Tensor) -> float:
    return sum(min(counts.values()) for counts in _grouped(_multiset, tokens, targets)) / len(targets)


# 2.7

_PLACE = torch.arange(6)
_APART = (_PLACE[:, None] - _PLACE).abs()
_RING = torch.minimum(_APART, 6 - _APART)


def _examine_unseen_order(answer: object) -> str | None:
    order = as_array(answer)
    if order is None or order.dtype == bool or not np.isfinite(order).all():
        return "should be an order: a list that holds each of 0, 1, …, 5 once"
    if order.shape == (6, 6) and (np.sort(order, axis=1) == np.eye(6)[-1]).all():
        order = order.argmax(axis=1)  # a permutation matrix is an order too
    if order.shape != (6,) or sorted(order.tolist()) != list(range(6)):
        return "should be an order: a list that holds each of 0, 1, …, 5 once"
    order = torch.from_numpy(order.astype(np.int64))
    if torch.equal(order, _PLACE):
        return "is the identity, which every bias survives; look for another order"
    wrong = (_RING[order][:, order] != _RING).nonzero().tolist()
    if not wrong:
        return None
    i, j = wrong[0]
    a, b = int(order[i]), int(order[j])
    steps = int(_RING[a, b])
    return (
        f"is seen: places {i} and {j} are {_RING[i, j]} apart on the ring, but they receive the tokens {a} and {b}, "
        f"which were {steps} apart"
    )


# 2.8

_A, _B = torch.tensor([[1.0, -0.5, 2.0], [0.25, 1.5, -1.0]], dtype=torch.float64)
_MULTISETS = {
    "a, b": torch.stack([_A, _B]),
    "a, a, b": torch.stack([_A, _A, _B]),
    "a, b, b": torch.stack([_A, _B, _B]),
    "a, a, b, b": torch.stack([_A, _A, _B, _B]),
}


def _examine_read_out(answer: object) -> str | None:
    if not callable(answer):
        return "should be a function from (B, T, D) to (B, D)"
    batch = _draw(3, 4, 2, seed=8)
    result = _read(answer, batch)
    if isinstance(result, str):
        return result
    for order in all_orders(4)[1:]:
        moved = _read(answer, batch[:, order])
        if isinstance(moved, str) or not np.allclose(moved, result, rtol=1e-4, atol=1e-5):
            return f"is not invariant: the order {order.tolist()} of the tokens changes the result"
    for b, name in enumerate(("first", "second", "third")):
        alone = _read(answer, batch[b : b + 1])
        if isinstance(alone, str) or not np.allclose(alone, result[b : b + 1], rtol=1e-4, atol=1e-5):
            return f"mixes the sequences of a batch: the {name} one gives another result when it is alone"
    results = {name: _read(answer, rows[None]) for name, rows in _MULTISETS.items()}
    for name, one in results.items():
        for other_name, other in results.items():
            if isinstance(one, str) or isinstance(other, str):
                return one if isinstance(one, str) else other
            if name < other_name and np.allclose(one, other, rtol=1e-4, atol=1e-5):
                return f"is invariant, but gives the same for the rows {name} as for {other_name}"
    return None


def _read(answer: Callable, x: Tensor) -> np.ndarray | str:
    """The result of the reader's function as an array, or what is wrong with it."""
    try:
        result = answer(x.clone())
    except (NotAttempted, NotImplementedError):
        raise
    except Exception as error:
        try:
            result = answer(x.numpy().copy())  # perhaps it was written for NumPy
        except Exception:
            return f"your function raised {type(error).__name__}: {error}"
    if result is ...:
        raise NotAttempted
    if result is None:
        return "your function returns None: is a return missing?"
    array = as_array(result)
    wanted = (x.shape[0], x.shape[2])
    if array is None or array.shape != wanted:
        got = "something else" if array is None else f"shape {array.shape}"
        return f"should give (B, D) = {wanted} for an input {tuple(x.shape)}, not {got}"
    return array.astype(float) if np.isfinite(array).all() else "contains NaN or infinity"


# 2.9


def _add_codes(x: Tensor, table: Tensor) -> Tensor:
    return x + table[: x.shape[1]]


EXERCISES: list[Exercise] = [
    Function(
        label="2.1",
        praise="Row t of P picks row order[t] of X.",
        reference=_permutation_matrix,
        cases=[(order,) for order in _ORDERS],
        mistakes=[
            Mistake(
                "this is the transpose, the matrix of the inverse order: the 1 of row t belongs in column order[t]",
                lambda order: _permutation_matrix(order).T,
            ),
            Mistake(
                "this is the identity: P @ x would be x itself, whatever the order",
                lambda order: torch.eye(len(order), dtype=torch.float64),
            ),
            Mistake(
                "the order itself stands on the diagonal; row t should be all zeros but for a 1 in column order[t]",
                lambda order: torch.diag(order.double()),
            ),
        ],
    ),
    Function(
        label="2.2",
        praise="The inverse order undoes it; as a matrix it is the transpose of P.",
        reference=_undo,
        cases=[(_draw(len(order), 2, seed=i), order) for i, order in enumerate(_ORDERS)],
        mistakes=[
            Mistake("this applies the order a second time instead of undoing it", lambda y, order: y[order]),
            Mistake("this is y itself: its rows are still in the new order", lambda y, order: y),
            Mistake(
                "this turns y upside down, which undoes only the order that reverses", lambda y, order: y.flip(0)
            ),
            Mistake(
                "this puts the rows in order of size; where each belongs is written in `order`, not in the rows",
                lambda y, order: y[y[:, 0].argsort()],
            ),
            Mistake(
                "this applies the order n - 1 times, which undoes it only if its one cycle runs through all n places",
                _round_and_round,
            ),
        ],
    ),
    Function(
        label="2.3",
        praise="You can now test any map for equivariance in a few lines.",
        reference=_largest_gap,
        cases=[
            (_add_place, _draw(3, 2, seed=1)),
            (_add_first, _draw(4, 3, seed=2)),
            (_running_sum, _draw(4, 2, seed=3)),
            # Neither a swap nor any other order that is its own inverse shows the largest gap of this one.
            (_meet_next, _draw(4, 3, seed=10)),
        ],
        mistakes=[
            Mistake(
                "this tests invariance: it compares f(PX) with f(X), not with P f(X)",
                lambda f, x: _largest(lambda order: f(x[order]) - f(x), x),
            ),
            Mistake(
                "one side is in the inverse order: f(x[order]) belongs beside f(x)[order], "
                "or f(x[order])[order.argsort()] beside f(x)",
                lambda f, x: _largest(lambda order: f(x[order])[order] - f(x), x),
            ),
            Mistake(
                "this compares inputs with outputs: it is the largest |f(PX) - PX|",
                lambda f, x: _largest(lambda order: f(x[order]) - x[order], x),
            ),
            Mistake(
                "this takes the largest difference without its sign: f(PX) can also lie far below P f(X)",
                lambda f, x: _all_gaps(f, x).max(),
            ),
            Mistake(
                "this tries swaps of two tokens only; other orders can show a larger gap, and all n! are asked for",
                lambda f, x: _largest(lambda order: f(x[order]) - f(x)[order], x, _swaps(len(x))),
            ),
            Mistake(
                "this tries one order only, the reversal; take the largest gap over all n!",
                lambda f, x: _largest(lambda order: f(x[order]) - f(x)[order], x, torch.arange(len(x)).flip(0)[None]),
            ),
            Mistake(
                "this averages over the entries before it takes the largest; the largest entry is asked for",
                lambda f, x: _all_gaps(f, x).abs().mean(dim=(1, 2)).max(),
            ),
            Mistake(
                "this is a length, a root of a sum of squares over all entries; the largest single entry is asked for",
                lambda f, x: _all_gaps(f, x).square().sum(dim=(1, 2)).max().sqrt(),
            ),
            Mistake(
                "this adds up the gaps of all orders; the largest of them is asked for",
                lambda f, x: _all_gaps(f, x).abs().amax(dim=(1, 2)).sum(),
            ),
            Mistake(
                "no difference is found, and these maps have one. The smallest gap over all orders is always 0, that of "
                "the identity; and f takes (n, d), so a batch axis in front would be taken for the tokens",
                lambda f, x: torch.zeros(()),
            ),
        ],
    ),
    Value(
        label="2.4",
        praise="The expected share of the commonest symbol among three draws.",
        value=0.75,
        tolerance=0.005,
        mistakes=[
            Mistake("that is guessing blindly: the model does see which tokens there are", 0.5),
            Mistake(
                "that holds for the six mixed sequences; two of the eight hold one symbol only, and are certain", 2 / 3
            ),
            Mistake("that would need the order: in a mixed sequence the first token is not known for certain", 1.0),
            Mistake(
                "the sequences are equally likely, not the four multisets: three sequences share each mixed one", 5 / 6
            ),
            Mistake("this is an accuracy between 0 and 1, not a percentage", 75.0),
        ],
    ),
    Function(
        label="2.5",
        praise="One group for each multiset, one answer for each group.",
        reference=order_blind_ceiling,
        cases=[(torch.tensor(tokens), torch.tensor(targets)) for tokens, targets in _LISTS],
        mistakes=[
            Mistake(
                "this groups equal sequences only, so it still sees their order; reorderings belong in one group",
                lambda tokens, targets: _ceiling_with(tuple, tokens, targets),
            ),
            Mistake(
                "this groups by which symbols occur; an invariant rule also sees how often each does",
                lambda tokens, targets: _ceiling_with(frozenset, tokens, targets),
            ),
            Mistake(
                "this puts all sequences in one group: an order-blind rule still sees which tokens there are",
                lambda tokens, targets: _ceiling_with(lambda row: None, tokens, targets),
            ),
            Mistake(
                "this averages the groups alike; a group counts as often as it has sequences", _mean_over_groups
            ),
            Mistake(
                "this groups by the sum of the tokens, and different tokens can have one sum",
                lambda tokens, targets: _ceiling_with(sum, tokens, targets),
            ),
            Mistake(
                "this groups by the product of the tokens, and different tokens can have one product",
                lambda tokens, targets: _ceiling_with(math.prod, tokens, targets),
            ),
            Mistake(
                "this groups by the largest token only; all tokens count, and how often each occurs",
                lambda tokens, targets: _ceiling_with(max, tokens, targets),
            ),
            Mistake(
                "this sorts each column, across sequences; sort each row by itself",
                lambda tokens, targets: _ceiling_with(tuple, tokens.sort(dim=0).values, targets),
            ),
            Mistake("this counts the rarest target of each group; the best answer is the commonest", _rarest),
            Mistake(
                "this is how many answers are right; divide by how many there are",
                lambda tokens, targets: _ceiling_with(_multiset, tokens, targets) * len(targets),
            ),
        ],
    ),
    Choice(
        label="2.6",
        praise="P moves the codes as well: PY = PX + PE.",
        right="c",
        options={
            "a": "this only gives a sum its name",
            "b": "this is the definition of equivariance, applied to Y",
            "c": "P moves whole rows, codes included",
            "d": "given line (c), this follows: g(PX) is defined as f(PX + E)",
            "e": "given the lines before it, this follows",
        },
    ),
    Open(
        label="2.7",
        praise="The turns and reflections of the ring, twelve orders in all, survive this bias.",
        examine=_examine_unseen_order,
        mistakes=[
            Mistake("is the identity, which every bias survives; look for another order", [0, 1, 2, 3, 4, 5]),
            Mistake(
                "is seen: places 0 and 2 are 2 apart on the ring, but they receive the tokens 1 and 2, "
                "which were 1 apart",
                [1, 0, 2, 3, 4, 5],
            ),
            Mistake("should be an order: a list that holds each of 0, 1, …, 5 once", [1, 2, 3, 4, 5, 6]),
        ],
    ),
    Open(
        label="2.8",
        praise="Invariant, and every copy counts.",
        examine=_examine_read_out,
        mistakes=[
            Mistake(
                "is invariant, but gives the same for the rows a, b as for a, b, b", lambda x: x.max(dim=1).values
            ),
            Mistake("is invariant, but gives the same for the rows a, a, b, b as for a, b", lambda x: x.mean(dim=1)),
            Mistake(
                "is not invariant: the order [0, 2, 1, 3] of the tokens changes the result",
                lambda x: x[:, 0] + 2 * x[:, 1],
            ),
            Mistake(
                "mixes the sequences of a batch: the first one gives another result when it is alone",
                lambda x: x.sum(dim=1) + x.sum(dim=(0, 1)),
            ),
            Mistake(
                "mixes the sequences of a batch: the second one gives another result when it is alone",
                lambda x: x.sum(dim=1).cumsum(dim=0),
            ),
            Mistake(
                "should give (B, D) = (3, 2) for an input (3, 4, 2), not shape (4, 2)", lambda x: x.sum(dim=0)
            ),
        ],
    ),
    Function(
        label="2.9",
        praise="The codes lie along the token axis, the same for every sequence.",
        reference=_add_codes,
        cases=[
            (_draw(2, 3, 4, seed=4), _draw(7, 4, seed=5)),
            (_draw(3, 3, 4, seed=6), _draw(6, 4, seed=7)),
            (_draw(5, 1, 2, seed=9), _draw(8, 2, seed=10)),
        ],
        mistakes=[
            Mistake(
                "every token of sequence b got row b of the table: the codes lie along the batch axis, as if the data "
                "were (T, B, D)",
                lambda x, table: x + table[: x.shape[0], None],
            ),
            Mistake(
                "as many rows of the table were taken as there are sequences; take as many as there are tokens, T",
                lambda x, table: x + table[: x.shape[0]],
            ),
            Mistake(
                "the first code went to every token; token t gets row t of the table", lambda x, table: x + table[0]
            ),
            Mistake(
                "the codes start at row 1 of the table; token 0 gets row 0",
                lambda x, table: x + table[1 : x.shape[1] + 1],
            ),
            Mistake("these are the codes alone, without the tokens", lambda x, table: table[: x.shape[1]].expand_as(x)),
            Mistake("these are the tokens alone, without codes", lambda x, table: x),
            Mistake(
                "these are the last rows of the table; the codes start at row 0", lambda x, table: x + table[-x.shape[1] :]
            ),
            Mistake(
                "the codes stand beside the tokens, which makes them wider; they should be added",
                lambda x, table: torch.cat([x, table[: x.shape[1]].expand_as(x)], dim=-1),
            ),
            Mistake(
                "the tokens are multiplied by the codes; they should be added", lambda x, table: x * table[: x.shape[1]]
            ),
        ],
    ),
]
