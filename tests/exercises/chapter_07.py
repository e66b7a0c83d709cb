"""Right answers to the exercises of chapter 7, each written in several ways."""

import random

import numpy as np
import torch

from posenc.attention import causal_mask, scaled_dot_product_attention
from posenc.symmetry import unseen_rows


def blind_by_softmax(bias, order):
    moved = bias[order][:, order]
    return torch.allclose(moved.softmax(-1), bias.softmax(-1))


def blind_by_loops(bias, order):
    n = len(order)
    for i in range(n):
        constants = set()
        for j in range(n):
            before, after = float(bias[i][j]), float(bias[order[i]][order[j]])
            if (before == -np.inf) != (after == -np.inf):
                return False
            if before != -np.inf:
                constants.add(round(after - before, 6))
        if len(constants) > 1:
            return False
    return True


def blind_with_numpy(bias, order):
    bias, order = np.asarray(bias), np.asarray(order)
    shifted = bias - bias.max(axis=1, keepdims=True)
    # With the largest entry of each row at zero, constants are gone.
    return np.allclose(shifted[np.ix_(order, order)], shifted)


def blind_by_the_inverse(bias, order):
    """The orders form a group, so P is unseen exactly if its inverse is."""
    return bool(unseen_rows(bias, order.argsort()).all())


def places_from_shares(x, mark):
    is_mark = (x == mark).all(1).double()[:, None]
    out = scaled_dot_product_attention(torch.zeros(len(x), 1).double(), is_mark, is_mark, mask=causal_mask(len(x)))[0]
    return ((1 - out) / (out + 1e-12))[:, 0]


def places_by_projection(x, mark):
    """A linear map would do: here the distance to the mark, told apart from zero."""
    value = (torch.cdist(x[None], mark[None, None])[0] < 1e-9).to(x.dtype)
    weights = scaled_dot_product_attention(0 * x, x, x, mask=causal_mask(len(x)))[1]
    return 1 / (weights @ value).squeeze(1) - 1


def places_beside_the_first(x, mark):
    """Shares as multiples of the first: 0/0 in every row without a mark."""
    value = (x == mark).all(1, keepdim=True).to(x.dtype)
    share = scaled_dot_product_attention(torch.zeros_like(x), x, value, mask=causal_mask(len(x)))[0][:, 0]
    return share[0] / share - 1


def averages_one_at_a_time(n, layers):
    row = [0.0] * (n - 1) + [1.0]
    for _ in range(layers):
        row = [sum(row[j] / (j + 1) for j in range(i, n)) for i in range(n)]
    return row


def averages_with_numpy(n, layers):
    C = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    return np.linalg.matrix_power(C, layers)[-1]


def averages_from_the_front(n, layers):
    C = torch.ones(n, n).tril()
    C = (C / C.sum(1, keepdim=True)).float()
    x = torch.eye(n)
    for _ in range(layers):
        x = C @ x
    return x[-1]


def places_in_python(n, limit):
    if n > limit:
        raise ValueError("too many tokens")
    first = random.randrange(limit - n + 1)
    return list(range(first, first + n))


def places_with_numpy(n, limit):
    first = np.random.default_rng().integers(0, limit - n, endpoint=True)  # a ValueError of NumPy's own if n > limit
    return first + np.arange(n)


def places_as_a_range(n, limit):
    if limit < n:
        raise ValueError(f"{n} > {limit}")
    first = torch.randint(0, 1 + limit - n, (1,)).item()
    return range(first, first + n)


def places_one_by_one(n, limit):
    if n > limit:
        raise ValueError("no room")
    first = int(torch.rand(()) * (limit - n + 1))
    return (first + k for k in range(n))


RIGHT = {
    "7.1": [blind_by_softmax, blind_by_loops, blind_with_numpy, blind_by_the_inverse],
    "7.2": [5],
    "7.3": ["a, d", "both a and d"],
    "7.4": [
        {
            "alibi": ([0, 1, 2, 3], [3, 2, 1, 0]),
            "causal": ([0, 1, 2, 3], [2, 0, 1, 3]),
            "clipped": ([0, 1, 2, 3, 4], [1, 2, 0, 3, 4]),
            "rotary": ([1], [1, 1, 1]),
        },
        {
            "alibi": (torch.tensor([4, 4, 1, 0]), torch.tensor([0, 1, 4, 4])),
            "causal": (np.array([0, 1, 2]), np.array([0, 1, 0, 1, 2, 2])),
            "clipped": [(0, 3, 2, 1, 4, 0), (2, 0, 3, 1, 4, 0)],
            "rotary": [[3] * 8, [3] * 5],
            "more": "is ignored",
        },
    ],
    "7.5": [places_from_shares, places_by_projection, places_beside_the_first],
    "7.6": [3],
    "7.7": [3, "step 3"],
    "7.8": [averages_one_at_a_time, averages_with_numpy, averages_from_the_front],
    "7.9": ["c"],
    "7.10": [places_in_python, places_with_numpy, places_as_a_range, places_one_by_one],
    "7.11": [1 / 7, "1/7", 0.143],
}
