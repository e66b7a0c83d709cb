"""Right answers to the exercises of chapter 3, each written in several ways."""

import numpy as np
import torch


def gray_by_xor(length, bits):
    return [[(p ^ (p >> 1)) >> b & 1 for b in range(bits)] for p in range(length)]


def gray_by_numpy(length, bits):
    table = np.arange(length)[:, None] // 2 ** np.arange(bits + 1) % 2
    return np.abs(np.diff(table, axis=1)).astype(np.float32)


def gray_by_reflection(length, bits):
    """The list, and then its mirror image with a 1 in the next column, as Gray built it."""
    rows = [[0] * 12]
    for b in range(12):
        rows += [row[:b] + [1] + row[b + 1 :] for row in reversed(rows)]
    return torch.tensor(rows[:length])[:, :bits].double()


def unevenness_by_loops(codes, k):
    lengths = []
    for p in range(len(codes) - k):
        lengths.append(sum((float(a) - float(b)) ** 2 for a, b in zip(codes[p], codes[p + k])) ** 0.5)
    return max(lengths) - min(lengths)


def unevenness_by_all_pairs(codes, k):
    codes = torch.as_tensor(codes).double()
    return torch.cdist(codes, codes).diagonal(k).max() - torch.cdist(codes, codes).diagonal(k).min()


def unevenness_by_numpy(codes, k):
    return np.ptp(np.linalg.norm(np.asarray(codes)[k:] - np.asarray(codes)[:-k], axis=1))


def loudness_by_norm(table, target):
    return table / (table**2).sum() ** 0.5 * target * len(table.flatten()) ** 0.5


def loudness_by_loops(table, target):
    squares = [float(v) ** 2 for row in table for v in row]
    factor = target / (sum(squares) / len(squares)) ** 0.5
    return [[float(v) * factor for v in row] for row in table]


def pair_by_einsum(x, p, weight):
    top, bottom = torch.as_tensor(weight).split([x.shape[1], p.shape[1]])
    return torch.einsum("td,dm->tm", torch.as_tensor(x), top) + torch.einsum("te,em->tm", torch.as_tensor(p), bottom)


def pair_by_numpy(x, p, weight):
    return np.concatenate([x, p], axis=1).astype(np.float64) @ weight


def pair_from_behind(x, p, weight):
    return p @ weight[-p.shape[-1] :] + x @ weight[: -p.shape[-1]]


def code_with_another_base(length, d_model):
    angle = np.arange(length)[:, None] * 1000.0 ** (-np.arange(d_model // 2) / (d_model // 2))
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1).reshape(length, d_model)


def code_turned(length, d_model):
    """The paper's sinusoid in another basis."""
    omega = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = torch.arange(length)[:, None] * omega
    square = torch.randn(d_model, d_model, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return torch.cat([angle.sin(), angle.cos()], dim=1) @ torch.linalg.qr(square).Q


def code_by_walking(length, d_model):
    """One fixed rotation, applied again and again to one start."""
    omega = 60.0 ** -torch.linspace(0, 1, d_model // 2, dtype=torch.float64)
    step = torch.block_diag(*[torch.tensor([[w.cos(), -w.sin()], [w.sin(), w.cos()]]) for w in omega])
    rows = [torch.ones(d_model, dtype=torch.float64) / 2]
    while len(rows) < length:
        rows.append(step @ rows[-1])
    return torch.stack(rows).float()


RIGHT = {
    "3.1": [gray_by_xor, gray_by_numpy, gray_by_reflection],
    "3.2": [13, "13", np.float64(13)],
    "3.3": [unevenness_by_loops, unevenness_by_all_pairs, unevenness_by_numpy],
    "3.4": [loudness_by_norm, loudness_by_loops],
    "3.5": [pair_by_einsum, pair_by_numpy, pair_from_behind],
    "3.6": ["4", 4, "(4)"],
    "3.7": [code_with_another_base, code_turned, code_by_walking],
}
