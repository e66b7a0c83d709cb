"""What a map does with the order of its tokens, and what a map that ignores order can score.

Token axes come second, as everywhere in this library: ``(B, T)`` for symbols, ``(B, T, D)`` for vectors.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np
import torch
from torch import Tensor

from posenc._checks import checked_count, described

Order = Sequence[int] | Tensor
"""A permutation of 0..T-1. Place t of the result holds token ``order[t]`` of the input."""


def permute_tokens(x: Tensor, order: Order) -> Tensor:
    """Put token ``order[t]`` in place t, in every sequence alike: the product P X of the book.

    Parameters
    ----------
    x : Tensor, shape (B, T) or (B, T, ...)
    order : sequence of int or Tensor, length T
        A permutation of 0..T-1.

    Returns
    -------
    Tensor, same shape
        A new tensor; `x` is left as it is.

    Raises
    ------
    ValueError
        If `x` has no token axis, or `order` is not a permutation of its T positions.
    """
    if not isinstance(x, Tensor) or x.dim() < 2:
        raise ValueError(f"x must be a tensor (B, T, ...), not {described(x)}")
    return x[:, _checked_order(order, x.shape[1]).to(x.device)]


def equivariance_gap(f: Callable[[Tensor], Tensor], x: Tensor, order: Order) -> float:
    """How far `f` is from moving its outputs with its inputs: the largest ``|f(PX) - P f(X)|``.

    Parameters
    ----------
    f : callable, (B, T, ...) to (B, T, ...)
    x : Tensor, shape (B, T) or (B, T, ...)
    order : permutation of 0..T-1

    Returns
    -------
    float
        Zero, up to rounding, for an equivariant map; NaN if an output is NaN.

    Raises
    ------
    ValueError
        If `order` is not a permutation, or `f` does not keep the batch and token axes.
    """
    permuted, original = f(permute_tokens(x, order)), f(x.clone())
    if not isinstance(original, Tensor) or original.shape[:2] != x.shape[:2]:
        raise ValueError(f"f must keep (B, T) = {tuple(x.shape[:2])}, but returned {described(original)}")
    return _largest_difference(permuted, permute_tokens(original, order))


def invariance_gap(f: Callable[[Tensor], Tensor], x: Tensor, order: Order) -> float:
    """How far `f` is from ignoring the order of its inputs: the largest ``|f(PX) - f(X)|``.

    Parameters
    ----------
    f : callable, (B, T, ...) to a tensor of any shape
    x : Tensor, shape (B, T) or (B, T, ...)
    order : permutation of 0..T-1

    Returns
    -------
    float
        Zero, up to rounding, for an invariant map; NaN if an output is NaN.

    Raises
    ------
    ValueError
        If `order` is not a permutation of the T positions, or `f` does not return a tensor.
    """
    return _largest_difference(f(permute_tokens(x, order)), f(x.clone()))


def all_orders(length: int) -> Tensor:
    """Every permutation of 0..length-1, one per row, in lexicographic order.

    Parameters
    ----------
    length : int, from 0 to 8

    Returns
    -------
    Tensor of int64, shape (length!, length)

    Raises
    ------
    ValueError
        If `length` is outside 0..8: beyond it the table would have more than 40 320 rows.
    """
    if checked_count("length", length, 0) > 8:
        raise ValueError(f"length must be at most 8, not {length}")
    return torch.tensor(list(permutations(range(length))), dtype=torch.int64)


def unseen_rows(bias: Tensor, order: Order, other: Tensor | None = None) -> Tensor:
    """The rows in which attention with `bias` takes no notice of `order`: those where P B Pᵀ - B is constant.

    Softmax drops a constant from its row, so in such a row i the output for the reordered tokens is the one
    that token ``order[i]`` had before; in every other row it differs for some tokens (Theorem 7.1 of the book).

    Parameters
    ----------
    bias : Tensor, shape (..., n, n)
        What is added to the scores: real numbers, or minus infinity where a query may not attend. A boolean
        mask (True = may attend) stands for the bias of 0 and minus infinity. With leading axes, for example
        heads, a row is unseen if it is in every one of them.
    order : permutation of 0..n-1
    other : Tensor, like `bias`, optional
        Compare P B Pᵀ with this bias instead of B itself.

    Returns
    -------
    Tensor of bool, shape (n,)

    Raises
    ------
    ValueError
        If a bias is not (..., n, n), holds NaN or plus infinity, the two differ in shape, or `order` is not a
        permutation of its n places.
    """
    slack = 1e-5 if isinstance(bias, Tensor) and bias.dtype in (torch.float16, torch.bfloat16, torch.float32) else 1e-9
    bias = _checked_bias(bias)
    still = bias if other is None else _checked_bias(other)
    if still.shape != bias.shape:
        raise ValueError(f"the biases have shapes {tuple(bias.shape)} and {tuple(still.shape)}")
    places = _checked_order(order, bias.shape[-1]).to(bias.device)
    moved = bias[..., places, :][..., places]
    open_before, open_after = still != -math.inf, moved != -math.inf
    both = open_before & open_after
    change = torch.where(both, moved, 0.0) - torch.where(both, still, 0.0)
    size = torch.where(both, torch.maximum(moved.abs(), still.abs()), 0.0).amax(-1)
    spread = change.masked_fill(~both, -math.inf).amax(-1) - change.masked_fill(~both, math.inf).amin(-1)
    same = (open_before == open_after).all(-1) & (spread <= slack * (1 + size))
    return same.reshape(-1, same.shape[-1]).all(0)


def unseen_orders(bias: Tensor) -> Tensor:
    """Every order that attention with `bias` cannot see in any row: its residual symmetry, by trying them all.

    Parameters
    ----------
    bias : Tensor, shape (..., n, n), n at most 8
        As for `unseen_rows`.

    Returns
    -------
    Tensor of int64, shape (K, n)
        The K orders in lexicographic order, the identity first. They form a group.

    Raises
    ------
    ValueError
        As `unseen_rows` and `all_orders`.
    """
    orders = all_orders(_checked_bias(bias).shape[-1])
    kept = [bool(unseen_rows(bias, order).all()) for order in orders]
    return orders[torch.tensor(kept)]


def order_blind_ceiling(tokens: Tensor, targets: Tensor) -> float:
    """The best accuracy on these examples of any rule that cannot see order. Exact, by counting.

    With one target a sequence, such a rule knows only which symbols occur and how often. With one
    target a token, it is equivariant: it knows that and the token's own symbol. Examples that it
    cannot tell apart get one answer, so the best it can do is the commonest target among them.

    Parameters
    ----------
    tokens : integer Tensor, shape (B, T)
    targets : integer Tensor, shape (B,) or (B, T)

    Returns
    -------
    float
        Between 0 and 1. It holds for exactly these examples; give it whole orbits (every order of
        each sequence) for the value over a distribution that does not prefer any order.

    Raises
    ------
    ValueError
        If there is no example, the shapes disagree, or the symbols are not integers.
    """
    if not isinstance(tokens, Tensor) or tokens.dim() != 2 or not _is_integer(tokens) or not tokens.numel():
        raise ValueError(f"tokens must be a non-empty integer tensor (B, T), not {described(tokens)}")
    if not isinstance(targets, Tensor) or not _is_integer(targets) or targets.shape not in (
        tokens.shape[:1],
        tokens.shape,
    ):
        raise ValueError(f"targets must be integers (B,) or (B, T) for tokens {tuple(tokens.shape)}, not {described(targets)}")
    answers: dict[tuple, Counter] = {}
    for row, target in zip(tokens.tolist(), targets.tolist()):
        seen = tuple(sorted(row))
        examples = [(seen, target)] if targets.dim() == 1 else [((seen, own), t) for own, t in zip(row, target)]
        for view, answer in examples:
            answers.setdefault(view, Counter())[answer] += 1
    best = sum(max(counts.values()) for counts in answers.values())
    return best / targets.numel()


def reversal_ceiling(length: int, symbols: int) -> float:
    """The order-blind ceiling of reversal, per token, on uniform random symbols.

    A token's mirror image is equally often each of the other tokens, so the best guess is the commonest
    symbol among those: the expected largest share of length - 1 draws. With an odd length the middle
    token is its own mirror; the token itself then joins the draw.

    Parameters
    ----------
    length : int, at least 2
    symbols : int, at least 1

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is too small.
    """
    length = checked_count("length", length, 2)
    return largest_share(length if length % 2 else length - 1, symbols)


def first_token_ceiling(length: int, symbols: int) -> float:
    """The order-blind ceiling of naming the first of `length` uniform random symbols, one answer a sequence.

    Parameters
    ----------
    length : int, at least 1
    symbols : int, at least 1

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is too small.
    """
    return largest_share(length, symbols)


def largest_share(draws: int, symbols: int) -> float:
    """The expected share of the commonest symbol among independent uniform draws, exactly.

    The number of sequences in which no symbol occurs more than m times is draws! times the coefficient
    of x^draws in (1 + x + x²/2! + … + x^m/m!)^symbols; the expectation is a sum over m.

    Parameters
    ----------
    draws : int, at least 1
    symbols : int, at least 1

    Returns
    -------
    float
        Between 1 / symbols and 1.

    Raises
    ------
    ValueError
        If an argument is too small.
    """
    draws, symbols = checked_count("draws", draws, 1), checked_count("symbols", symbols, 1)
    sequences = symbols**draws
    expected = sum(1 - Fraction(_sequences_with_at_most(m, draws, symbols), sequences) for m in range(draws))
    return float(expected / draws)


def _sequences_with_at_most(most: int, draws: int, symbols: int) -> int:
    """How many sequences of `draws` symbols use none more than `most` times."""
    # Any symbol may follow a good sequence of length n, except one that it holds `most` times already:
    # those places can be chosen in C(n, most) ways, and the rest is a good sequence of the other symbols.
    fewer = [1] + [0] * draws
    for known in range(1, symbols + 1):
        counts = [1]
        for n in range(draws):
            full = known * math.comb(n, most) * fewer[n - most] if n >= most else 0
            counts.append(known * counts[n] - full)
        fewer = counts
    return fewer[draws]


def _checked_order(order: Order, length: int) -> Tensor:
    # By way of NumPy, which also reads reversed views such as np.arange(n)[::-1].
    try:
        places = np.array(order.tolist() if isinstance(order, Tensor) else order)
    except (TypeError, ValueError):
        places = np.array(None)
    whole = places.dtype.kind in "iu" or places.size == 0
    if not whole or places.shape != (length,) or sorted(places.tolist()) != list(range(length)):
        raise ValueError(f"order must be a permutation of 0..{length - 1}, not {order}")
    return torch.from_numpy(places.astype(np.int64))


def _checked_bias(bias: Tensor) -> Tensor:
    if not isinstance(bias, Tensor) or bias.dim() < 2 or bias.shape[-1] != bias.shape[-2] or bias.is_complex() or not bias.numel():
        raise ValueError(f"bias must be a real tensor (..., n, n) with an entry at least, not {described(bias)}")
    if bias.dtype == torch.bool:
        return torch.zeros(bias.shape, dtype=torch.float64, device=bias.device).masked_fill(~bias, -math.inf)
    bias = bias.detach().to(torch.float64)
    if bool((bias.isnan() | (bias == math.inf)).any()):
        raise ValueError("bias must hold real numbers or minus infinity, and holds NaN or plus infinity")
    return bias


def _largest_difference(a: Tensor, b: Tensor) -> float:
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        raise ValueError(f"f must return a tensor, not {described(b)}")
    if a.shape != b.shape:
        raise ValueError(f"f gave shape {tuple(b.shape)} before the permutation and {tuple(a.shape)} after it")
    if not a.numel():
        return 0.0
    # Wide enough that unsigned symbols do not wrap around; equal infinities do not differ.
    wide = torch.promote_types(a.dtype, torch.float64)
    gap = (a.detach().to(wide) - b.detach().to(wide)).abs()
    return gap.masked_fill(a == b, 0.0).max().item()


def _is_integer(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex())
