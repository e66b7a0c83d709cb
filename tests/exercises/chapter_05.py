"""Right answers to the exercises of chapter 5, each written in several ways."""

import numpy as np
import torch


def counts_by_loops(lengths, max_length):
    counts = [0] * max_length
    for length in lengths:
        for row in range(int(length)):
            counts[row] += 1
    return counts


def counts_by_sum(lengths, max_length):
    return [sum(1 for length in lengths if row < length) for row in range(max_length)]


def counts_by_accumulation(lengths, max_length):
    """How many end at each row or later, from the far end."""
    ends = np.bincount(np.asarray(lengths), minlength=max_length + 1)[1:]
    return ends[::-1].cumsum()[::-1]


def look_up_first_asking(table, length):
    rows = table.shape[0]
    if rows < length:
        raise ValueError(f"sequence of {length} tokens is longer than the table of {rows}")
    return torch.as_tensor(table)[torch.arange(length)]


def look_up_by_failing(table, length):
    try:
        return [table[row].tolist() for row in range(length)] if length else np.zeros((0, table.shape[1]))
    except IndexError:
        raise ValueError(f"max_length={len(table)}, length={length}.") from None


def look_up_row_by_row(table, length):
    """A list of rows, which for no tokens is empty."""
    if length > len(table):
        raise ValueError(f"{length} tokens, {len(table)} rows")
    return [table[row] for row in range(length)]


def rank_by_entropy(table):
    s = np.linalg.svd(np.asarray(table, dtype=float), compute_uv=False)
    p = s[s > 0] / s.sum()
    return float(np.exp(-(p * np.log(p)).sum()))


def rank_by_product(table):
    """The exponential of an entropy is a product of powers."""
    s = torch.linalg.svdvals(torch.as_tensor(table).double())
    p = s / s.sum()
    return (p**-p).prod()


def rank_from_the_gram_matrix(table):
    values = torch.linalg.eigvalsh(table.double() @ table.double().T).clamp(min=1e-30).sqrt()
    return torch.distributions.Categorical(probs=values).entropy().exp()


def rank_from_the_smaller_product(table):
    """Of the columns and not of the rows, in whatever precision the table has."""
    values = torch.linalg.eigvalsh(torch.as_tensor(table).T @ torch.as_tensor(table)).abs().sqrt()
    shares = values / values.sum()
    return torch.exp(torch.special.entr(shares).sum())


def rank_in_bits(table):
    p = torch.linalg.svdvals(table.double())
    p = p / p.sum()
    p = p[p > 0]
    return 2 ** -(p * p.log2()).sum()


def twin_by_turning_both_sides(table):
    left, right = (np.linalg.qr(np.random.default_rng(n).normal(size=(n, n)))[0] for n in table.shape)
    return left @ np.asarray(table) @ right


def twin_from_singular_values(table):
    rows, width = table.shape
    s = torch.diag(torch.linalg.svdvals(table))
    g = torch.Generator().manual_seed(8)
    left = torch.linalg.qr(torch.randn(rows, len(s), generator=g).double()).Q
    right = torch.linalg.qr(torch.randn(width, len(s), generator=g).double()).Q
    return (left @ s @ right.T).float()


def twin_by_one_mirror(table):
    """One reflection among the positions is enough."""
    normal = torch.linspace(1, 2, len(table), dtype=table.dtype)[:, None]
    return table - 2 * normal @ (normal.T @ table) / normal.square().sum()


def corners_along_edges():
    """The corners of a cube in four dimensions, in Gray's order."""
    gray = [place ^ (place >> 1) for place in range(16)]
    return [[2 * (code >> bit & 1) - 1 for bit in range(4)] for code in gray]


def two_dials():
    angle = torch.pi / 8 * torch.arange(16)
    return torch.stack([f(k * angle) for k in (1, 2) for f in (torch.sin, torch.cos)], dim=1)


def two_dials_in_half_precision():
    return two_dials().half()


RIGHT = {
    "5.1": [counts_by_loops, counts_by_sum, counts_by_accumulation],
    "5.2": [look_up_first_asking, look_up_by_failing, look_up_row_by_row],
    "5.3": [1, 1.0, "1", np.float32(1)],
    "5.4": [rank_by_entropy, rank_by_product, rank_from_the_gram_matrix, rank_from_the_smaller_product, rank_in_bits],
    "5.5": [twin_by_turning_both_sides, twin_from_singular_values, twin_by_one_mirror],
    "5.6": [0.9048, "0.905", np.exp(-0.1)],
    "5.7": ["4", 4, "(4)"],
    "5.8": [corners_along_edges(), two_dials(), two_dials_in_half_precision()],
}
