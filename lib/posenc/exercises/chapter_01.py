"""The exercises of chapter 1, "Attention, from scratch"."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from posenc.attention import causal_mask, scaled_dot_product_attention
from posenc.exercises.engine import Choice, Function, Mistake, Value


def _numbers(seed: int, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(2 * torch.randn(*shape, generator=generator) for shape in shapes)


def _far_apart(seed: int, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """As `_numbers`, but the scores of one query lie around 50 and those of the last around -50, once they are scaled.

    Queries and keys are multiples of 1/8 with a 1 in their last place or something large, so that the raw scores are
    exact in float32, whatever the order of the sum.
    """
    q, k, *rest = ((part * 8).round() / 8 for part in _numbers(seed, *shapes))
    k[..., -1] = 1.0
    q[..., -1] = 0.0
    q[..., 0, -1], q[..., -1, -1] = (round(sign * 50 * math.sqrt(q.shape[-1])) for sign in (1, -1))
    return q, k, *rest


# 1.1 A softmax that survives large scores


def softmax_rows(scores: Tensor) -> Tensor:
    return scores.softmax(dim=-1)


def _softmax_from(scores: Tensor, largest: Tensor) -> Tensor:
    powers = torch.exp(scores - largest)
    return powers / powers.sum(dim=-1, keepdim=True)


SOFTMAX = Function(
    label="1.1",
    praise="Subtracting a row's largest score changes no share, and nothing overflows.",
    reference=softmax_rows,
    cases=[
        (torch.tensor([[1.0, 2.0, 0.5], [3.0, 4.0, -1.0]]),),
        (torch.tensor([[1000.0, 1001.0], [-1000.0, -1000.0], [0.0, 3.0]]),),
        (torch.tensor([[1000.0, -1000.0], [-2.0, 0.5]]),),
        *((part,) for part in _numbers(11, (4, 3), (2, 5))),
    ],
    mistakes=[
        Mistake("the shares add up to one along the columns: that is a softmax over the queries. "
                "Each row, axis -1, should share one unit among its keys",
                lambda scores: scores.softmax(dim=0)),
        Mistake("all entries together add up to one; each row should, by itself",
                lambda scores: scores.flatten().softmax(dim=0).reshape(scores.shape)),
        Mistake("all entries together add up to one; each row should, by itself. "
                "And a score of 1000 gives NaN, because exp(1000) is infinite",
                lambda scores: scores.exp() / scores.exp().sum()),
        Mistake("right for small scores, but a score of 1000 gives NaN: exp(1000) is infinite. "
                "Subtract something from each row first",
                lambda scores: _softmax_from(scores, torch.zeros(()))),
        Mistake("one maximum for the whole array is not enough: a row far below it underflows to 0/0. "
                "Subtract each row's own largest score (keepdims=True)",
                lambda scores: _softmax_from(scores, scores.max())),
        Mistake("right while the scores of a row are close, but a row from -1000 to 1000 gives NaN: "
                "an exponent is still large. Subtract each row's largest score, and none is positive",
                lambda scores: _softmax_from(scores, scores.amin(dim=-1, keepdim=True))),
        Mistake("these are the logarithms of the shares; take the exponential",
                lambda scores: scores.log_softmax(dim=-1)),
        Mistake("these are the exponentials; divide each row by its sum, and they are shares",
                lambda scores: torch.exp(scores - scores.amax(dim=-1, keepdim=True))),
        Mistake("the scores are divided by their sum as they are, which can be negative or zero; "
                "take their exponentials first", lambda scores: scores / scores.sum(dim=-1, keepdim=True)),
        Mistake("what is subtracted differs from key to key, and that changes the shares: "
                "take the largest score of each row, not of each column (axis=-1, keepdims=True)",
                lambda scores: _softmax_from(scores, scores.amax(dim=0))),
        Mistake("dividing a row by its largest score changes the shares; subtracting it does not",
                lambda scores: (scores / scores.amax(dim=-1, keepdim=True)).softmax(dim=-1)),
        Mistake("right for small scores, but scores that are cut off at a limit become equal, and so do their shares; "
                "subtract each row's largest score instead",
                lambda scores: scores.clamp(-100, 100).softmax(dim=-1)),
    ],
)


# 1.2 Attention for a whole batch


def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return scaled_dot_product_attention(q, k, v)


def _wrong_divisors(made: Callable) -> list[Mistake]:
    """What both attentions are divided by in error; `made` gives the attention for a divisor of (q, k, v)."""
    return [
        Mistake("the scores are not divided by the square root of d_k", made(lambda q, k, v: 1.0)),
        Mistake("the scores are divided by d_k; the standard deviation of a dot product is its square root",
                made(lambda q, k, v: q.shape[-1])),
        Mistake("the scores are divided by the root of the width of the values; "
                "the dot products are of queries and keys, so their width counts",
                made(lambda q, k, v: math.sqrt(v.shape[-1]))),
    ]  # fmt: skip


def _attention_with(divisor, dim: int = -1):
    return lambda q, k, v: _with_weights((q @ k.mT / divisor(q, k, v)).softmax(dim=dim), v)


def _with_weights(weights: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return weights @ v, weights


def _attention_from_one_maximum(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return _with_weights(_softmax_from(scores, scores.max()), v)


ATTENTION = Function(
    label="1.2",
    praise="Match, share, average: three lines, for one sentence or for a batch.",
    reference=attention,
    cases=[
        _numbers(12, (3, 2, 5), (3, 4, 5), (3, 4, 6)),
        _numbers(13, (4, 5, 8), (4, 2, 8), (4, 2, 5)),
        _far_apart(20, (3, 4, 7), (3, 5, 7), (3, 5, 2)),
    ],
    mistakes=[
        Mistake("this is the output alone; return the weights too: output, weights",
                lambda q, k, v: scaled_dot_product_attention(q, k, v)[0]),
        Mistake("these are the weights alone; return the output first: output, weights",
                lambda q, k, v: scaled_dot_product_attention(q, k, v)[1]),
        *_wrong_divisors(_attention_with),
        Mistake("the scores are divided by the root of the number of keys; the width d_k of a key counts",
                _attention_with(lambda q, k, v: math.sqrt(k.shape[-2]))),
        Mistake("the scores are divided by the root of the number of queries; the width d_k of a query counts",
                _attention_with(lambda q, k, v: math.sqrt(q.shape[-2]))),
        Mistake("the softmax runs over the queries: your columns add up to one, your rows do not. Keys are the last axis",
                _attention_with(lambda q, k, v: math.sqrt(q.shape[-1]), dim=-2)),
        Mistake("the softmax runs over the batch: the sentences compete with one another. Keys are the last axis",
                _attention_with(lambda q, k, v: math.sqrt(q.shape[-1]), dim=0)),
        Mistake("both results are right, in the wrong order: output first, then weights",
                lambda q, k, v: scaled_dot_product_attention(q, k, v)[::-1]),
        Mistake("the output is right, but the second result holds the scores before the softmax",
                lambda q, k, v: (scaled_dot_product_attention(q, k, v)[0], q @ k.mT / math.sqrt(q.shape[-1]))),
        Mistake("the output is made with the scores as they are; make weights of them first, by a softmax over the keys",
                lambda q, k, v: (q @ k.mT / math.sqrt(q.shape[-1]) @ v, scaled_dot_product_attention(q, k, v)[1])),
        Mistake("there is no softmax: these are the scores as they are, and the average with them",
                lambda q, k, v: _with_weights(q @ k.mT / math.sqrt(q.shape[-1]), v)),
        Mistake("the division by the root of d_k comes after the softmax; the scores are divided before it",
                lambda q, k, v: _with_weights((q @ k.mT).softmax(dim=-1) / math.sqrt(q.shape[-1]), v)),
        Mistake("the scores are multiplied by the root of d_k; divide by it",
                _attention_with(lambda q, k, v: 1 / math.sqrt(q.shape[-1]))),
        Mistake("the exponentials are not divided by their sum, so the weights do not add up to one",
                lambda q, k, v: _with_weights(torch.exp(q @ k.mT / math.sqrt(q.shape[-1])), v)),
        Mistake("all weights of a sentence together add up to one; each query's should, by themselves",
                lambda q, k, v: _with_weights(
                    (q @ k.mT / math.sqrt(q.shape[-1])).flatten(1).softmax(dim=-1).unflatten(1, (q.shape[1], -1)), v)),
        Mistake("right while all scores are of one size; one maximum for all of them is not enough when they are not. "
                "Subtract the largest score of each row", _attention_from_one_maximum),
    ],
)


# 1.3 The width of a head


def _share(score: float) -> float:
    """The softmax weight of `score` beside a score of 0."""
    return 1 / (1 + math.exp(-score))


HEAD_WIDTH = Value(
    label="1.3",
    praise="The divisor belongs to the vectors that were multiplied, and in a head they are 16 wide.",
    value=_share(8 / math.sqrt(16)),
    tolerance=0.001,
    mistakes=[
        Mistake("that is with the root of d_model, 8. The vectors in a head are narrower", _share(8 / math.sqrt(64))),
        Mistake("that is without dividing the scores", _share(8.0)),
        Mistake("that is with the scores divided by the width, 16; divide by its square root", _share(8 / 16)),
        Mistake("that is with the scores divided by the root of the number of heads; "
                "what counts is how wide each head is", _share(8 / math.sqrt(4))),
        Mistake("that is the weight of the second key", 1 - _share(2.0)),
        Mistake("that is the scaled score itself (or a fraction that needs brackets around its denominator); "
                "the weight is its share in a softmax", 2.0),
        Mistake("that is the exponential of the scaled score; divide it by the sum over both keys", math.exp(2.0)),
        Mistake("this is a percentage; a weight is a share between 0 and 1", 88.1),
    ],
)


# 1.4 Masked weights


def masked_weights(scores: Tensor, allowed: Tensor) -> Tensor:
    weights = scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)
    return weights.masked_fill(~allowed.any(dim=-1, keepdim=True), 0.0)


def _shares_of_allowed(powers: Tensor) -> Tensor:
    total = powers.sum(dim=-1, keepdim=True)
    return powers / total.where(total > 0, 1.0)


def _shares_beside(little: float, scores: Tensor, allowed: Tensor) -> Tensor:
    powers = torch.exp(scores) * allowed
    return powers / (powers.sum(dim=-1, keepdim=True) + little)


def _with_row(allowed: Tensor, row: int, value: bool) -> Tensor:
    allowed = allowed.clone()
    allowed[row] = value
    return allowed


def _masked_case(seed: int, queries: int, keys: int, empty: int, full: int) -> tuple[Tensor, Tensor]:
    scores, noise = _numbers(seed, (queries, keys), (queries, keys))
    allowed = noise > 0
    allowed[:, 0], allowed[:, 1] = True, False
    # Scores far from zero: what is filled in for a masked one must be lower still, and one maximum does not do for all.
    # Multiples of 1/8 make them exact.
    scores = (scores * 8).round() / 8 + torch.linspace(-60.0, 60.0, queries).round()[:, None]
    return scores, _with_row(_with_row(allowed, empty, False), full, True)


MASKED = Function(
    label="1.4",
    praise="Masked keys take no share, and a query with nothing to attend to gets nothing.",
    reference=masked_weights,
    cases=[_masked_case(14, 4, 3, empty=2, full=0), _masked_case(15, 3, 5, empty=0, full=1)],
    mistakes=[
        Mistake("right, but for the query that may attend to nothing: -inf everywhere gives 0/0, NaN. "
                "Its row should be zeros",
                lambda scores, allowed: scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)),
        Mistake("right, but for the query that may attend to nothing: a large negative number everywhere "
                "gives every key the same share, the masked ones included. Its row should be zeros",
                lambda scores, allowed: torch.where(allowed.any(-1, keepdim=True), masked_weights(scores, allowed),
                                                    1 / scores.shape[-1])),
        Mistake("the empty row is not zeros: with a fill that is added to the scores, "
                "the masked keys share the row as if there were no mask",
                lambda scores, allowed: torch.where(allowed.any(-1, keepdim=True), masked_weights(scores, allowed),
                                                    scores.softmax(dim=-1))),
        Mistake("the mask is used the wrong way round: True means that the query may attend",
                lambda scores, allowed: masked_weights(scores, ~allowed)),
        Mistake("the mask is used the wrong way round (True means that the query may attend), "
                "and a row without keys gives NaN",
                lambda scores, allowed: scores.masked_fill(allowed, -math.inf).softmax(dim=-1)),
        Mistake("the weights are set to zero after the softmax, so the masked keys have already taken their share "
                "and the rows no longer add up to one",
                lambda scores, allowed: scores.softmax(dim=-1) * allowed),
        Mistake("the mask has no effect", lambda scores, allowed: scores.softmax(dim=-1)),
        Mistake("the masked scores are set to zero; but exp(0) is 1, so the masked keys still take a share",
                lambda scores, allowed: (scores * allowed).softmax(dim=-1)),
        Mistake("the softmax runs over the queries; keys are the last axis",
                lambda scores, allowed: masked_weights(scores.mT, allowed.mT).mT),
        Mistake("masked keys are at zero and the rest are exponentials; divide each row by its sum",
                lambda scores, allowed: torch.exp(scores) * allowed),
        Mistake("all weights together add up to one; each query's should, by themselves",
                lambda scores, allowed: (torch.exp(scores) * allowed) / (torch.exp(scores) * allowed).sum()),
        Mistake("the scores are scaled already; here they are divided by a root of their size once more",
                lambda scores, allowed: masked_weights(scores / math.sqrt(scores.shape[-1]), allowed)),
        Mistake("right for scores near zero, but one maximum for the whole array lets a row far below it "
                "underflow to zeros. Subtract each row's own largest score",
                lambda scores, allowed: _shares_of_allowed(torch.exp(scores - scores.max()) * allowed)),
        *(Mistake(f"{little:g} added to the sum is not little beside a row of small exponentials, whose weights then no "
                  "longer add up to one. Divide by something else only where the sum is 0",
                  partial(_shares_beside, little)) for little in (1e-12, 1e-10, 1e-9, 1e-8, 1e-6)),
    ],
)


# 1.5 Handing over a mask

MASKS = Choice(
    label="1.5",
    praise="One asks whom to ignore, the other who takes part, so exactly one of them needs the ~.",
    right="c",
    options={
        "a": "F.scaled_dot_product_attention takes True for a key that takes part, so this attends to "
             "the padding and to nothing else",
        "b": "nn.MultiheadAttention ignores the keys that are True, so ~pad hides every real token",
        "c": "right: pad says whom to ignore, ~pad says who takes part",
        "d": "both are the wrong way round: the module is told to ignore the real tokens, "
             "the function to use the padding",
    },
)


# 1.6 Putting heads together


def merge_heads(heads: Tensor) -> Tensor:
    return heads.transpose(1, 2).flatten(-2)


MERGE = Function(
    label="1.6",
    praise="First the head axis moves back beside the features, then the two become one.",
    reference=merge_heads,
    cases=[_numbers(16, (2, 3, 4, 5)), _numbers(17, (3, 2, 5, 4))],
    mistakes=[
        Mistake("right shape, wrong content: reshaping alone puts pieces of different tokens into one row. "
                "T has to move in front of H first",
                lambda heads: heads.reshape(heads.shape[0], heads.shape[2], -1)),
        Mistake("the features of the heads are interleaved: all first features come first. "
                "Keep each head's features together, H before d",
                lambda heads: heads.permute(0, 2, 3, 1).flatten(-2)),
        Mistake("right shape, wrong content: T and d have changed places. T has to move in front of H",
                lambda heads: heads.transpose(2, 3).reshape(heads.shape[0], heads.shape[2], -1)),
        Mistake("right shape, wrong content: H and d have changed places. H has to come to stand beside d, "
                "so it is T that H changes places with",
                lambda heads: heads.transpose(1, 3).reshape(heads.shape[0], heads.shape[2], -1)),
        Mistake("the heads stand side by side in the wrong order: head 0 comes first",
                lambda heads: merge_heads(heads.flip(1))),
        Mistake("the axes are in the right order, but H and d are still two: make them one",
                lambda heads: heads.transpose(1, 2)),
        Mistake("this is the sum over the heads; they should stand side by side", lambda heads: heads.sum(dim=1)),
        Mistake("this is the mean over the heads; they should stand side by side", lambda heads: heads.mean(dim=1)),
        Mistake("the heads follow one another along the tokens; they should stand side by side in each token's row",
                lambda heads: heads.flatten(1, 2)),
    ],
)


# 1.7 The past, without a mask


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, k, v, causal_mask(len(q)))[0]


def _causal_with(mask, scale: float = 1.0):
    return lambda q, k, v: scaled_dot_product_attention(scale * q, k, v, mask(len(q)))[0]


def _causal_divided_by(divisor) -> Callable:
    return lambda q, k, v: causal_attention(q * math.sqrt(q.shape[-1]) / divisor(q, k, v), k, v)


def _row_by_row(row: Callable) -> Callable:
    """A slip in `row`, which gets the raw scores of one query with the keys up to its own, and their values."""
    return lambda q, k, v: torch.stack([row(k[: t + 1] @ q[t], v[: t + 1], q) for t in range(len(q))])


def _cut_after_softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (scaled_dot_product_attention(q, k, v)[1] * causal_mask(len(q))) @ v


def _strict(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, k, v, causal_mask(len(q)).tril(-1))[0]


CAUSAL = Function(
    label="1.7",
    praise="A masked key and an absent key are the same thing, so a model that writes text needs no mask.",
    reference=causal_attention,
    cases=[
        _numbers(18, (4, 3), (4, 3), (4, 2)),
        _numbers(19, (5, 2), (5, 2), (5, 4)),
        _far_apart(21, (4, 5), (4, 5), (4, 3)),
    ],
    mistakes=[
        Mistake("each token is hidden from itself: a slice that ends at t stops one short. "
                "Token t may attend to tokens 0 to t", _strict),
        Mistake("each token is hidden from itself, and the first, which then has nothing to attend to, gives NaN. "
                "Token t may attend to tokens 0 to t",
                lambda q, k, v: torch.cat([torch.full_like(v[:1], math.nan), _strict(q, k, v)[1:]])),
        Mistake("each token sees itself and the future; it should see itself and the past",
                _causal_with(lambda n: causal_mask(n).T)),
        Mistake("each token sees one token of the future: a slice up to and including t ends at t + 1",
                _causal_with(lambda n: torch.ones(n, n, dtype=torch.bool).tril(1))),
        Mistake("every token sees every other: this is attention without a mask",
                lambda q, k, v: scaled_dot_product_attention(q, k, v)[0]),
        *_wrong_divisors(_causal_divided_by),
        Mistake("the scores are divided by the root of the number of tokens; the width d_k of a query counts",
                _causal_divided_by(lambda q, k, v: math.sqrt(len(q)))),
        Mistake("the scores are divided by the root of the number of tokens so far; the width d_k of a query counts",
                _row_by_row(lambda scores, v, q: (scores / math.sqrt(len(v))).softmax(dim=0) @ v)),
        Mistake("the exponentials are not divided by their sum, so the weights do not add up to one",
                _row_by_row(lambda scores, v, q: torch.exp(scores / math.sqrt(q.shape[-1])) @ v)),
        Mistake("every row asks with the last query; row t asks with query t",
                lambda q, k, v: causal_attention(q[-1:].expand_as(q), k, v)),
        Mistake("this is the last row alone; return one for each token",
                lambda q, k, v: causal_attention(q, k, v)[-1]),
        Mistake("the future is cut off after the softmax, so it has already taken its share of the weight; "
                "leave it out before", _cut_after_softmax),
        Mistake("the scores of the future are set to zero; but exp(0) is 1, so the future still takes a share",
                lambda q, k, v: (q @ k.T / math.sqrt(q.shape[-1])).tril().softmax(dim=-1) @ v),
        Mistake("the past is averaged evenly; the weights should come from the match of query and key",
                lambda q, k, v: causal_attention(0 * q, k, v)),
    ],
)


# 1.8 Find the false line

FALSE_LINE = Choice(
    label="1.8",
    praise="What is constant down a column need not be constant along a row, and the softmax runs along rows.",
    right="4",
    options={
        "1": "that is the product of two sums, multiplied out; it is true",
        "2": "neither term contains s, so they are the same for every key; it is true",
        "3": "the term does not contain t, so it is the same for every query; it is true. "
             "Ask what follows from it, and what does not",
        "4": "the first false line: c·k_s changes with s, that is along the row",
        "5": "the constant cancels between numerator and denominator; it is true",
        "6": "it says only what follows if line 4 holds, and that does follow",
    },
)


EXERCISES = [SOFTMAX, ATTENTION, HEAD_WIDTH, MASKED, MASKS, MERGE, CAUSAL, FALSE_LINE]
