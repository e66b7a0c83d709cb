"""What the live figures must show, computed by the library: the other side of the tests that compare the two."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from posenc import symmetry
from posenc.attention import scaled_dot_product_attention
from posenc.encodings import frequencies, sinusoidal_encoding
from posenc.live import data

EULER = 0.5772156649015329


def shuffle(sentence: str, order: Sequence[int], positions: str) -> dict:
    """The weights and output rows of a reordered sentence, and its equivariance gap.

    Parameters
    ----------
    sentence : one of `data.SENTENCES`
    order : permutation of its words; place t holds word ``order[t]``
    positions : "none", "slots" or "travel"
        No codes, codes that stay in their slots, or codes that travel with their tokens.
    """
    options, words, order = data.shuffle_options(), sentence.split(), torch.tensor(order)
    x = _tensor([options["vectors"][word] for word in words])
    codes = sinusoidal_encoding(len(words), 4, dtype=torch.float64) * (positions != "none")
    if positions == "slots":
        here = x[order] + codes
        gap = symmetry.equivariance_gap(lambda x: _attend(x + codes, options)[0], x[None], order)
    else:
        here = (x + codes)[order]
        gap = symmetry.equivariance_gap(lambda x: _attend(x, options)[0], (x + codes)[None], order)
    output, weights = _attend(here, options)
    moved = _attend(x + codes, options)[0][order]
    return {"weights": weights, "output": output, "moved": moved, "gap": gap}


def dials(position: int, base: float) -> dict:
    """The row of the table, the angles of the hands since position 0, and the binary digits, lowest first."""
    width = data.DIALS["width"]
    row = sinusoidal_encoding(1, width, base=base, start=position, dtype=torch.float64)[0]
    bits = [int(bit) for bit in reversed(f"{position:0{width // 2}b}")]
    return {"row": row, "turned": position * frequencies(width, base), "bits": bits}


def offset(position: int, k: int, width: int, base: float, between: str, seed: int) -> dict:
    """The score of positions p and p + k, its range over p, the kernel at k and the logarithmic law.

    Parameters
    ----------
    position, k : int
    width : int
    base : float
    between : "nothing", "random" or "turns"
        What stands between the codes: the identity, a random W_Q W_Kᵀ of rank 16, or a block aI + bJ for each pair.
    seed : int
    """
    most = data.OFFSET["most"]
    table = sinusoidal_encoding(most + 1 + k, width, base=base, dtype=torch.float64)
    scores = (table[: most + 1] @ _between(between, width, seed) * table[k:]).sum(dim=1) / (width / 2)
    kernel = torch.cos(k * frequencies(width, base)).mean()
    law = 1 - (math.log(k) + EULER) / math.log(base)
    return {"score": scores[position], "spread": scores.max() - scores.min(), "kernel": kernel, "law": law}


def symmetry_of(bias: Sequence[Sequence[float]], order: Sequence[int]) -> dict:
    """The orders P with P B Pᵀ − B constant in each row, and how far one order moves the outputs of attention.

    Parameters
    ----------
    bias : n rows of n numbers
        Minus infinity forbids a key.
    order : permutation of 0..n-1
    """
    B, options = _tensor(bias), data.symmetry_options()
    kept = symmetry.unseen_orders(B).tolist()
    x = _tensor(options["tokens"][: len(B)])[None]
    gap = symmetry.equivariance_gap(lambda x: _attend(x, options, B)[0], x, order)
    return {"kept": kept, "count": len(kept), "unseen": list(order) in kept, "gap": gap}


def _attend(x: Tensor, options: dict, bias: Tensor | None = None) -> tuple[Tensor, Tensor]:
    query, key, value = (x @ _tensor(options[name]) for name in ("W_Q", "W_K", "W_V"))
    return scaled_dot_product_attention(query, key, value, bias=bias)


def _between(between: str, width: int, seed: int) -> Tensor:
    numbers = data.draws(seed)
    if between == "nothing":
        return torch.eye(width, dtype=torch.float64)
    if between == "turns":
        pairs = [(next(numbers), next(numbers)) for _ in range(width // 2)]
        return torch.block_diag(*(_tensor([[a, b], [-b, a]]) for a, b in pairs))
    head = 16
    W_Q, W_K = (math.sqrt(0.9 / math.sqrt(head)) * _tensor([[next(numbers) for _ in range(head)] for _ in range(width)])
                for _ in range(2))  # fmt: skip
    return W_Q @ W_K.T


def _tensor(rows: Sequence) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)
