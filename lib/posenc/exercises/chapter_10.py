"""Exercises of chapter 10, a real model without its positions."""

import re
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from posenc import pretrained
from posenc.exercises.engine import Choice, Function, Mistake, Open, Value

_random = torch.Generator().manual_seed(10)


def _draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=_random)


def _real(*rows: str) -> Tensor:
    """Which tokens are real: "x" for a token, "." for padding."""
    return torch.tensor([[mark == "x" for mark in row] for row in rows])


# 10.1 the sentence vector


def _mean(x: Tensor, real: Tensor) -> Tensor:
    weight = real[..., None].to(x.dtype)
    return (x * weight).sum(dim=1) / weight.sum(dim=1)


# 10.2 places under padding


def position_numbers(real: Tensor) -> Tensor:
    return (real.long().cumsum(dim=1) - 1) * real


# 10.4 the gap, layer by layer


def gap_by_layer(states: Tensor, moved: Tensor, order: Tensor) -> Tensor:
    return (moved - states[:, order]).flatten(1).norm(dim=1) / states.flatten(1).norm(dim=1)


# 10.6 a split that keeps words apart


def split_by_words(pairs: Tensor, held_out: Tensor) -> tuple[Tensor, Tensor]:
    inside = torch.isin(pairs, held_out)
    return ~inside.any(dim=1), inside.all(dim=1)


# 10.8 two sentences that the model cannot tell apart

_WANTED = 0.999


@cache
def _model() -> tuple:
    return pretrained.load_model(), pretrained.load_tokenizer()


def _examine_pair(answer: object) -> str | None:
    if not isinstance(answer, (tuple, list)) or len(answer) != 2 or not all(isinstance(text, str) for text in answer):
        return "should be a pair of sentences, (first, second)"
    words = [re.findall(r"[\w']+", text.lower()) for text in answer]
    if words[0] == words[1]:
        return "both have the same words in the same order: the tokenizer drops capitals, and commas are no words here"
    if sorted(words[0]) != sorted(words[1]):
        return "the second sentence should have the words of the first, each as often, in another order"
    if not 4 <= len(words[0]) <= 8:
        return f"the sentences have {len(words[0])} words; give 4 to 8, since in a long text any exchange is small"
    try:
        model, tokenizer = _model()
    except pretrained.WeightsMissing as missing:
        return str(missing)
    tokens, real = pretrained.batch(tokenizer, [" ".join(some) for some in words])
    with torch.no_grad():
        first, second = pretrained.sentence_vectors(model(tokens, real), real)
    cosine = float(first @ second)
    if cosine < _WANTED:
        return f"the model does tell them apart a little: their cosine is {cosine:.4f}, and {_WANTED} is wanted"
    return None


EXERCISES = [
    Function(
        "10.1",
        "Padding has vectors too; only the mask keeps them out of the mean.",
        reference=lambda x, real: F.normalize(_mean(x, real), dim=-1),
        cases=[
            (_draw(2, 5, 3), _real("xxx..", "xxxx.")),
            (_draw(3, 4, 6), _real("xxxx", "x...", "xx..")),
            (5 * _draw(1, 6, 2), _real("..xxxx")),
        ],
        mistakes=[
            Mistake("padding is in the mean: sum over the real tokens, divide by their number", lambda x, real: F.normalize(x.mean(dim=1), dim=-1)),
            Mistake("this is the mean; scale it to length 1", _mean),
            Mistake("this is the sum; scale it to length 1", lambda x, real: (x * real[..., None]).sum(dim=1)),
            Mistake(
                "all sentences are divided by the length of the whole batch; each should be divided by its own",
                lambda x, real: _mean(x, real) / _mean(x, real).norm(),
            ),
            Mistake(
                "the lengths are taken along the batch; each sentence vector should have length 1, along its columns",
                lambda x, real: F.normalize(_mean(x, real), dim=0),
            ),
            Mistake(
                "this is the vector of the first token; this model was trained to be read from the mean",
                lambda x, real: F.normalize(x[:, 0], dim=-1),
            ),
            Mistake(
                "the mask is turned around: True marks a real token",
                lambda x, real: F.normalize(_mean(x, ~real), dim=-1),
            ),
            Mistake(
                "this is the largest value of each column; take the mean",
                lambda x, real: F.normalize(x.masked_fill(~real[..., None], -torch.inf).amax(dim=1), dim=-1),
            ),
            Mistake(
                "the token vectors are scaled to length 1 and then averaged: average first, scale the mean",
                lambda x, real: _mean(F.normalize(x, dim=-1), real),
            ),
            Mistake(
                "every number is divided by the sum of the absolute values; length is the root of the sum of squares",
                lambda x, real: F.normalize(_mean(x, real), p=1, dim=-1),
            ),
            Mistake(
                "divided by the square of the length: the root is missing",
                lambda x, real: _mean(x, real) / _mean(x, real).square().sum(dim=-1, keepdim=True),
            ),
            Mistake(
                "the sum over the real tokens is divided by the number of all places, and not scaled to length 1",
                lambda x, real: (x * real[..., None]).mean(dim=1),
            ),
            Mistake(
                "this is the vector of the last place, padding or not; take the mean over the real tokens",
                lambda x, real: F.normalize(x[:, -1], dim=-1),
            ),
            Mistake(
                "this is a LayerNorm, which takes the mean of the columns away; only scale to length 1",
                lambda x, real: F.layer_norm(_mean(x, real), x.shape[-1:]),
            ),
        ],
    ),
    Function(
        "10.2",
        "Numbered among the real tokens, a sentence has the same codes wherever its padding stands.",
        reference=position_numbers,
        cases=[
            (_real("xxxx..", "xxxxxx"),),
            (_real("..xxxx", "...xxx", "xxxxxx"),),
            (_real(".xxx.", "xx..."),),
        ],
        mistakes=[
            Mistake(
                "the columns are numbered: padding in front would push the sentence to later rows of the table",
                lambda real: torch.arange(real.shape[1]).expand(real.shape) * real,
            ),
            Mistake(
                "the columns are numbered, padding or not",
                lambda real: torch.arange(real.shape[1]).expand(real.shape),
            ),
            Mistake("the first real token should have number 0, not 1", lambda real: real.long().cumsum(dim=1) * real),
            Mistake(
                "padding counts on where the sentence ends, and in front of it gets −1, which is the table's last row: give padding 0",
                lambda real: real.long().cumsum(dim=1) - 1,
            ),
            Mistake(
                "padding behind a sentence should have 0 as well",
                lambda real: (real.long().cumsum(dim=1) - 1).clamp(min=0),
            ),
            Mistake(
                "padding should have 0, not −1, which a table would read as its last row",
                lambda real: torch.where(real, real.long().cumsum(dim=1) - 1, -1),
            ),
            Mistake(
                "numbers start at 2: some models keep row 1 for padding, this one does not",
                lambda real: torch.where(real, real.long().cumsum(dim=1) + 1, 1),
            ),
            Mistake(
                "counted along the batch; places are counted along each sequence",
                lambda real: (real.long().cumsum(dim=0) - 1) * real,
            ),
            Mistake(
                "counted from the end: the first real token has number 0",
                lambda real: (real.flip(1).long().cumsum(dim=1).flip(1) - 1) * real,
            ),
            Mistake(
                "this counts the padding before each token; count the real tokens before it",
                lambda real: (~real).long().cumsum(dim=1) * real,
            ),
        ],
    ),
    Choice(
        "10.3",
        "Equal codes carry no order, whatever they are; yet they are not nothing to the weights that meet them.",
        right="a, c, e",
        options={
            "a": "all tokens get the same code, so the map is equivariant, as without codes.",
            "b": "a vector that is added before a LayerNorm changes what comes out of it, even if it is the same for all tokens.",
            "c": "equivariant token vectors have the same mean in every order.",
            "d": "[SEP] says that there is an end, not where: moved to the middle, it has the same code there.",
            "e": "adding c to every code or to every word is the same sum.",
        },
    ),
    Function(
        "10.4",
        "Move the outputs along before comparing: what remains is what the layer noticed.",
        reference=gap_by_layer,
        cases=[
            (_draw(3, 5, 4), _draw(3, 5, 4), torch.tensor([0, 2, 3, 1, 4])),
            (3 * _draw(2, 6, 2), 3 * _draw(2, 6, 2), torch.tensor([0, 4, 1, 2, 3, 5])),
            (torch.stack([_draw(4, 3)] * 2), _draw(2, 4, 3), torch.tensor([1, 2, 0, 3])),
        ],
        mistakes=[
            Mistake(
                "compares token by token without moving them: that is the gap of invariance",
                lambda states, moved, order: (moved - states).flatten(1).norm(dim=1) / states.flatten(1).norm(dim=1),
            ),
            Mistake(
                "moves the outputs the wrong way: place t of the reordered sentence holds token order[t]",
                lambda states, moved, order: gap_by_layer(states, moved, order.argsort()),
            ),
            Mistake(
                "the gap is not divided by the size of the states",
                lambda states, moved, order: (moved - states[:, order]).flatten(1).norm(dim=1),
            ),
            Mistake(
                "divided by the size of the reordered sentence's vectors; divide by that of `states`",
                lambda states, moved, order: (moved - states[:, order]).flatten(1).norm(dim=1) / moved.flatten(1).norm(dim=1),
            ),
            Mistake(
                "a ratio for each token, and their mean: take both norms over tokens and columns together",
                lambda states, moved, order: ((moved - states[:, order]).norm(dim=-1) / states.norm(dim=-1)).mean(dim=1),
            ),
            Mistake(
                "the mean over tokens is taken on both sides of the ratio: take both norms over tokens and columns together",
                lambda states, moved, order: (moved - states[:, order]).norm(dim=-1).mean(dim=1)
                / states.norm(dim=-1).mean(dim=1),
            ),
            Mistake(
                "the sums of absolute values are compared; a norm is the root of the sum of squares",
                lambda states, moved, order: (moved - states[:, order]).flatten(1).abs().sum(dim=1)
                / states.flatten(1).abs().sum(dim=1),
            ),
            Mistake(
                "this is the spectral norm, the largest singular value; take the root of the sum of all squared entries",
                lambda states, moved, order: torch.linalg.matrix_norm(moved - states[:, order], ord=2)
                / torch.linalg.matrix_norm(states, ord=2),
            ),
            Mistake(
                "this is the square: take the root of the sums of squares",
                lambda states, moved, order: gap_by_layer(states, moved, order) ** 2,
            ),
            Mistake(
                "compares the means over the tokens, which is the gap of the sentence vector",
                lambda states, moved, order: (moved.mean(dim=1) - states.mean(dim=1)).norm(dim=1) / states.mean(dim=1).norm(dim=1),
            ),
            Mistake(
                "takes the largest difference; sum the squares over tokens and columns",
                lambda states, moved, order: (moved - states[:, order]).flatten(1).abs().amax(dim=1)
                / states.flatten(1).abs().amax(dim=1),
            ),
            Mistake(
                "this is one number for all layers together",
                lambda states, moved, order: ((moved - states[:, order]).norm() / states.norm()).expand(len(states)),
            ),
        ],
    ),
    Value(
        "10.5",
        "The half is a theorem about whole pairs. A sentence whose partner is missing can be had by its words.",
        value=0.6,
        tolerance=0.001,
        mistakes=[
            Mistake("one half holds for whole pairs; of 20 sentences the partner is not in the list", 0.5),
            Mistake("that is the share of the pairs alone; the other 20 sentences can be right too", 0.4),
            Mistake("of each whole pair, one sentence is answered wrongly", 1.0),
            Mistake("a pair gives one right answer, not two: both sentences get the same one", 0.8),
            Mistake("that is what it must get wrong at least", 0.2),
            Mistake("a share lies between 0 and 1", 60.0),
        ],
    ),
    Function(
        "10.6",
        "What the probe is tested on shares no noun with what it was fitted on, and no pair is torn.",
        reference=split_by_words,
        cases=[
            (torch.tensor([[0, 1], [1, 0], [2, 3], [3, 1], [2, 0], [3, 2], [4, 2]]), torch.tensor([3, 2])),
            (torch.tensor([[5, 6], [6, 5], [7, 8], [5, 9], [9, 7]]), torch.tensor([5, 9, 6])),
        ],
        mistakes=[
            Mistake(
                "a sentence with one held-out noun is in the test: its other noun was trained on. Both must be held out",
                lambda pairs, out: (~torch.isin(pairs, out).any(dim=1), torch.isin(pairs, out).any(dim=1)),
            ),
            Mistake(
                "everything that is not tested is trained on, so held-out nouns are seen in training beside others",
                lambda pairs, out: (~torch.isin(pairs, out).all(dim=1), torch.isin(pairs, out).all(dim=1)),
            ),
            Mistake(
                "only the first noun is looked at; the second may be held out as well",
                lambda pairs, out: (~torch.isin(pairs[:, 0], out), torch.isin(pairs[:, 0], out)),
            ),
            Mistake(
                "only the second noun is looked at; the first may be held out as well",
                lambda pairs, out: (~torch.isin(pairs[:, 1], out), torch.isin(pairs[:, 1], out)),
            ),
            Mistake(
                "any and all have changed places: train where no noun is held out, test where both are",
                lambda pairs, out: (~torch.isin(pairs, out).all(dim=1), torch.isin(pairs, out).any(dim=1)),
            ),
            Mistake(
                "the test has the sentences with one held-out noun: it should have those with two",
                lambda pairs, out: (~torch.isin(pairs, out).any(dim=1), torch.isin(pairs, out).sum(dim=1) == 1),
            ),
            Mistake(
                "the training mask marks the sentences that hold a held-out noun: turn it around",
                lambda pairs, out: (torch.isin(pairs, out).any(dim=1), torch.isin(pairs, out).all(dim=1)),
            ),
            Mistake(
                "training and test are exchanged: return (train, test)",
                lambda pairs, out: split_by_words(pairs, out)[::-1],
            ),
        ],
    ),
    Choice(
        "10.7",
        "That a model does as well on a test is no sign that it does the same.",
        right="4",
        options={
            "1": "that is Corollary 10.1.",
            "2": "that was measured, on exactly these pairs.",
            "3": "it says no more than the line before it: by this score, on these pairs, nothing was lost.",
            "4": "the ranking survived, the vectors did not: their mean cosine with the model's own was about 0.67.",
            "5": "it is wrong as well, and it rests on the line before it. Look for the first false line.",
        },
    ),
    Open(
        "10.8",
        "By this model they are one sentence. A search that ranks by cosine cannot know which of them was asked for.",
        examine=_examine_pair,
        mistakes=[
            Mistake(
                "both have the same words in the same order: the tokenizer drops capitals, and commas are no words here",
                ("the dog chased the cat", "The dog chased the cat."),
            ),
            Mistake(
                "the second sentence should have the words of the first, each as often, in another order",
                ("the dog chased the cat", "the cat was chased by the dog"),
            ),
            Mistake(
                "the sentences have 3 words; give 4 to 8, since in a long text any exchange is small",
                ("robot detects anomaly", "anomaly detects robot"),
            ),
            Mistake(
                "the model does tell them apart a little: their cosine is 0.9909, and 0.999 is wanted",
                ("the dog chased the cat", "the cat chased the dog"),
            ),
            Mistake("should be a pair of sentences, (first, second)", "the dog chased the cat"),
        ],
    ),
]
