"""Right answers to the exercises of chapter 10, each written in several ways."""

import numpy as np
import torch


def vector_by_loops(x, real):
    result = []
    for rows, kept in zip(x, real):
        some = [row for row, keep in zip(rows, kept) if keep]
        total = sum(some)
        result.append(total / (total**2).sum() ** 0.5)  # the number of tokens does not change a direction
    return torch.stack(result) if isinstance(x, torch.Tensor) else np.stack(result)


def vector_by_einsum(x, real):
    weight = real / real.sum(1, keepdims=True)
    mean = np.einsum("bt,btd->bd", weight, x)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def vector_by_filling(x, real):
    total = x.double().masked_fill(~real.unsqueeze(-1), 0).sum(1)
    mean = total / real.sum(1)[:, None]
    return mean / mean.norm(dim=1, keepdim=True)


def numbers_by_loops(real):
    result = []
    for row in real:
        place, numbers = 0, []
        for token in row:
            numbers.append(place if token else 0)
            place += int(token)
        result.append(numbers)
    return result


def numbers_by_cumsum(real):
    return np.where(real, np.cumsum(real, axis=1) - 1, 0)


def numbers_by_filling(real):
    count = real.int().cumsum(1)
    return (count - 1).masked_fill(~real, 0)


def gap_by_loops(states, moved, order):
    gaps = []
    for before, after in zip(states, moved):
        above = sum(((after[t] - before[int(order[t])]) ** 2).sum() for t in range(len(order)))
        gaps.append((above / (before**2).sum()) ** 0.5)
    return [float(gap) for gap in gaps]


def gap_by_moving_back(states, moved, order):
    """Undo the order on the other side: the norm does not mind."""
    difference = moved[:, np.argsort(order)] - states
    return np.sqrt((np.asarray(difference) ** 2).sum(axis=(1, 2)) / (np.asarray(states) ** 2).sum(axis=(1, 2)))


def gap_by_matrix(states, moved, order):
    p = torch.eye(len(order), dtype=states.dtype)[order]
    return torch.linalg.matrix_norm(moved - p @ states) / torch.linalg.matrix_norm(states)


def split_by_sets(pairs, held_out):
    out = {int(word) for word in held_out}
    known = [{int(a), int(b)} for a, b in pairs]
    return np.array([not words & out for words in known]), np.array([words <= out for words in known])


def split_by_counting(pairs, held_out):
    count = (pairs[..., None] == held_out).any(-1).sum(-1)
    return count == 0, count == 2


def split_stacked(pairs, held_out):
    inside = torch.isin(pairs, held_out)
    return torch.stack([~(inside[:, 0] | inside[:, 1]), inside[:, 0] & inside[:, 1]])


RIGHT = {
    "10.1": [vector_by_loops, vector_by_einsum, vector_by_filling],
    "10.2": [numbers_by_loops, numbers_by_cumsum, numbers_by_filling],
    "10.3": ["a, c, e", "ace"],
    "10.4": [gap_by_loops, gap_by_moving_back, gap_by_matrix],
    "10.5": [0.6, "3/5", "60%", np.float32(0.6)],
    "10.6": [split_by_sets, split_by_counting, split_stacked],
    "10.7": ["4", 4, "Line 4 is false"],
    "10.8": [
        ("night trains from Paris to Rome", "night trains from Rome to Paris"),
        ["Cheap flights from Paris to Rome on Monday?", "Cheap flights from Rome to Paris on Monday?"],
        ("rainfall in cities in 2019 and 2018", "rainfall in cities in 2018 and 2019"),  # numbers are words, too
    ],
}
