"""Small synthetic tasks, each of which asks one question about order.

A task says what a model for it needs (`vocab_size`, `num_classes`, `read_out`), draws examples from the
generator it is given, and knows the exact ceiling: the best accuracy that any rule blind to order can
reach on examples so drawn. Blind to order means, of a read-out per token, equivariant: such a rule knows
which symbols occur, how often, and the token's own symbol. A pooled read-out knows the first two alone.
A causal mask is not blind to order, so no ceiling here binds a model that has one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import torch
from torch import Tensor

from posenc._checks import checked_count, described
from posenc.symmetry import first_token_ceiling, largest_share, reversal_ceiling

IGNORED = -100
"""The target of a token that is not asked anything, as in torch's ``cross_entropy``."""


class Task(Protocol):
    """What training needs to know of a task.

    Attributes
    ----------
    vocab_size, num_classes : int
        If the sequences are of numbers, there is no vocabulary (None); if the answers are, one "class".
    read_out : str
        "token" if every token has a target, else where one answer a sequence is read, see
        `posenc.models.READ_OUTS`.
    """

    @property
    def vocab_size(self) -> int | None: ...

    @property
    def num_classes(self) -> int: ...

    @property
    def read_out(self) -> str: ...

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Tokens (B, T) and targets (B, T) or (B,): int64, or floating if they are numbers.

        `IGNORED` marks a token without target, among classes.
        """
        ...


class _AnswersAreSymbols:
    """What tasks share whose classes are the symbols themselves, `symbols` of them."""

    symbols: int

    @property
    def vocab_size(self) -> int:
        return self.symbols

    @property
    def num_classes(self) -> int:
        return self.symbols


@dataclass(frozen=True)
class Reversal(_AnswersAreSymbols):
    """Say the sequence backwards: token t answers with the symbol at ``T - 1 - t``. Symbols are uniform."""

    symbols: int = 10
    read_out: str = field(default="token", init=False)

    def __post_init__(self) -> None:
        checked_count("symbols", self.symbols, 1)

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Tokens (B, T) and their mirror image (B, T). ValueError if a size is too small."""
        tokens = _uniform(self.symbols, batch, length, generator)
        return tokens, tokens.flip(1)

    def ceiling(self, length: int) -> float:
        """Order-blind, per token: see `posenc.symmetry.reversal_ceiling`. `length` is at least 2."""
        return reversal_ceiling(length, self.symbols)


@dataclass(frozen=True)
class TokenBack(_AnswersAreSymbols):
    """Name the symbol `lag` places back. The first `lag` tokens have no answer. Symbols are uniform."""

    lag: int = 3
    symbols: int = 10
    read_out: str = field(default="token", init=False)

    def __post_init__(self) -> None:
        checked_count("lag", self.lag, 1)
        checked_count("symbols", self.symbols, 1)

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Tokens (B, T) and targets (B, T). ValueError if a size is too small; T must be above `lag`."""
        checked_count("length", length, self.lag + 1)
        tokens = _uniform(self.symbols, batch, length, generator)
        targets = torch.full_like(tokens, IGNORED)
        targets[:, self.lag :] = tokens[:, : -self.lag]
        return tokens, targets

    def ceiling(self, length: int) -> float:
        """Order-blind, per token that has an answer.

        The token `lag` places back is equally often each of the other ``length - 1``, so the best answer
        is the commonest symbol among those. ValueError if `length` is not above `lag`.
        """
        checked_count("length", length, self.lag + 1)
        return largest_share(length - 1, self.symbols)


@dataclass(frozen=True)
class FirstToken(_AnswersAreSymbols):
    """Name the first symbol of the sequence, from the pooled tokens or at the last one. Symbols are uniform."""

    symbols: int = 8
    read_out: str = "pooled"

    def __post_init__(self) -> None:
        checked_count("symbols", self.symbols, 1)
        if self.read_out not in ("pooled", "last"):
            raise ValueError(f"read_out must be 'pooled' or 'last', not {self.read_out!r}")

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Tokens (B, T) and their first symbols (B,). ValueError if a size is too small."""
        tokens = _uniform(self.symbols, batch, length, generator)
        return tokens, tokens[:, 0].clone()

    def ceiling(self, length: int) -> float:
        """Order-blind, per sequence. `length` is at least 1.

        Pooled: the commonest of all symbols, see `posenc.symmetry.first_token_ceiling`. At the last
        token, that token is known, and the first is one of the others: the commonest among those.
        """
        if self.read_out == "last" and length > 1:
            return largest_share(length - 1, self.symbols)
        return first_token_ceiling(length, self.symbols)


@dataclass(frozen=True)
class FirstOfTwo:
    """Two marks stand among fillers, each once: which comes first? Read from the pooled tokens.

    Symbols 0 and 1 are the marks, the `fillers` symbols from 2 on are uniform; class 0 is "mark 0 first".
    """

    fillers: int = 8
    read_out: str = field(default="pooled", init=False)
    num_classes: int = field(default=2, init=False)

    def __post_init__(self) -> None:
        checked_count("fillers", self.fillers, 1)

    @property
    def vocab_size(self) -> int:
        return self.fillers + 2

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Tokens (B, T) and classes (B,). ValueError if a size is too small; T is at least 2."""
        checked_count("length", length, 2)
        tokens = 2 + _uniform(self.fillers, batch, length, generator)
        places = torch.rand(batch, length, generator=generator).argsort(dim=1)[:, :2]
        tokens.scatter_(1, places, torch.tensor([0, 1]).expand(batch, 2))
        return tokens, (places[:, 0] > places[:, 1]).long()

    def ceiling(self, length: int) -> float:
        """Order-blind, per sequence: one half, since both orders hold the same symbols. `length` ≥ 2."""
        checked_count("length", length, 2)
        return 0.5


@dataclass(frozen=True)
class RunningParity:
    """Is the number of ones so far odd? Asked of every token; bits are uniform.

    The answer at the last token is a function of the *set* of tokens, so failing there is not about order.
    """

    read_out: str = field(default="token", init=False)
    vocab_size: int = field(default=2, init=False)
    num_classes: int = field(default=2, init=False)

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Bits (B, T) and parities (B, T). ValueError if a size is too small."""
        tokens = _uniform(2, batch, length, generator)
        return tokens, tokens.cumsum(dim=1) % 2

    def ceiling(self, length: int) -> float:
        """Order-blind, per token, by counting. `length` is at least 1.

        Such a rule knows the number of ones m and the token's own bit b. Of the sequences with these, those
        with j ones before place t number C(t, j) · C(length - 1 - t, m - b - j).
        """
        checked_count("length", length, 1)
        best = 0
        for ones in range(length + 1):
            for own in range(min(ones, 1) + 1):
                counts = [0, 0]
                for place in range(length):
                    for before in range(min(place, ones - own) + 1):
                        ways = math.comb(place, before) * math.comb(length - 1 - place, ones - own - before)
                        counts[(before + own) % 2] += ways
                best += max(counts)
        return float(Fraction(best, length * 2**length))


@dataclass(frozen=True)
class Majority(_AnswersAreSymbols):
    """Name the commonest symbol, the smallest of them in a tie. A question about the set: order is no help.

    Symbols are uniform; the answer is read from the pooled tokens.
    """

    symbols: int = 4
    read_out: str = field(default="pooled", init=False)

    def __post_init__(self) -> None:
        checked_count("symbols", self.symbols, 1)

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Tokens (B, T) and their commonest symbols (B,). ValueError if a size is too small."""
        tokens = _uniform(self.symbols, batch, length, generator)
        counts = (tokens[..., None] == torch.arange(self.symbols)).sum(dim=1)
        # argmax promises nothing about ties, so the symbol settles them: twice the count, less for a larger one.
        return tokens, (counts * self.symbols - torch.arange(self.symbols)).argmax(dim=1)

    def ceiling(self, length: int) -> float:
        """Order-blind, per sequence: 1, since the answer does not depend on order. `length` ≥ 1."""
        checked_count("length", length, 1)
        return 1.0


@dataclass(frozen=True)
class WhoChasedWhom:
    """Name the chaser in "the dog chased the cat". Read from the pooled tokens.

    Symbols 0 to ``len(nouns) - 1`` are the nouns, then come the verbs, and last "the" if there are
    articles. The class is the noun that comes first; the two nouns differ.

    Two reorderings give the other answer from the same words: `swap` exchanges the nouns and leaves the
    rest, `mirror` reverses the sentence. Scoring a model on each sentence and its partner pins a blind one
    at exactly one half, since it gives both the same answer.
    """

    nouns: tuple[str, ...] = ("dog", "cat", "robot", "child", "bird", "horse")
    verbs: tuple[str, ...] = ("chased", "saw", "followed")
    articles: bool = True
    read_out: str = field(default="pooled", init=False)

    def __post_init__(self) -> None:
        if len(self.nouns) < 2 or not self.verbs or len(set(self.words)) != len(self.words):
            raise ValueError(f"at least two nouns and a verb are needed, all different, not {self.words}")

    @property
    def words(self) -> tuple[str, ...]:
        """What each symbol reads as."""
        return (*self.nouns, *self.verbs, *(("the",) if self.articles else ()))

    @property
    def length(self) -> int:
        """Words in a sentence: 5 with articles, 3 without."""
        return 5 if self.articles else 3

    @property
    def vocab_size(self) -> int:
        return len(self.words)

    @property
    def num_classes(self) -> int:
        return len(self.nouns)

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sentences (B, T) and chasers (B,). ValueError unless `length` is that of a sentence."""
        if length != self.length:
            raise ValueError(f"a sentence has {self.length} words, not {length!r}")
        first = _uniform(len(self.nouns), batch, 1, generator)[:, 0]
        step = 1 + _uniform(len(self.nouns) - 1, batch, 1, generator)[:, 0]
        verb = _uniform(len(self.verbs), batch, 1, generator)[:, 0]
        return self._sentences(first, verb, (first + step) % len(self.nouns))

    def everything(self) -> tuple[Tensor, Tensor]:
        """Every sentence once, and its chaser: a set that `swap` maps onto itself."""
        pairs = [(a, v, b) for a in range(len(self.nouns)) for v in range(len(self.verbs))
                 for b in range(len(self.nouns)) if a != b]  # fmt: skip
        return self._sentences(*torch.tensor(pairs).unbind(dim=1))

    def swap(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The sentences with their two nouns exchanged, and the chasers in those."""
        first, second = self._noun_places(tokens)
        rows = torch.arange(tokens.shape[0])
        swapped = tokens.clone()
        swapped[rows, first], swapped[rows, second] = tokens[rows, second], tokens[rows, first]
        return swapped, tokens[rows, second]

    def mirror(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The sentences read backwards, and the noun that now comes first."""
        _, second = self._noun_places(tokens)
        return tokens.flip(1), tokens[torch.arange(tokens.shape[0]), second]

    def ceiling(self, length: int) -> float:
        """Order-blind, per sentence: one half, since a sentence and its swap hold the same words."""
        if length != self.length:
            raise ValueError(f"a sentence has {self.length} words, not {length!r}")
        return 0.5

    def _sentences(self, first: Tensor, verb: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        the = torch.full_like(first, self.vocab_size - 1)
        verb = verb + len(self.nouns)
        columns = [the, first, verb, the, second] if self.articles else [first, verb, second]
        return torch.stack(columns, dim=1), first

    def _noun_places(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        is_noun = tokens < len(self.nouns)
        if tokens.dim() != 2 or not bool((is_noun.sum(dim=1) == 2).all()):
            raise ValueError("every sentence must hold exactly two nouns")
        places = is_noun.nonzero()[:, 1].reshape(-1, 2)
        return places[:, 0], places[:, 1]


class _AsksWhatItsTaskAsks:
    """What tasks share that are made of another one, their `task`."""

    task: Task

    @property
    def num_classes(self) -> int:
        return self.task.num_classes

    @property
    def read_out(self) -> str:
        return self.task.read_out


@dataclass(frozen=True, eq=False)
class FixedSample(_AsksWhatItsTaskAsks):
    """A task whose examples come, again and again, from a set drawn once: what a model learns from few.

    Parameters
    ----------
    task : Task
        Where the examples come from, and what the metadata is.
    examples : int, at least 1
    length : int
    seed : int
        Of the draw.
    """

    task: Task
    examples: int
    length: int
    seed: int = 0
    tokens: Tensor = field(init=False, repr=False)
    targets: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checked_count("examples", self.examples, 1)
        drawn = self.task.sample(self.examples, self.length, torch.Generator().manual_seed(self.seed))
        object.__setattr__(self, "tokens", drawn[0])
        object.__setattr__(self, "targets", drawn[1])

    @property
    def vocab_size(self) -> int:
        return self.task.vocab_size

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Rows of the set, drawn with replacement. ValueError unless `length` is that of the set."""
        if length != self.length:
            raise ValueError(f"the set holds sequences of length {self.length}, not {length!r}")
        rows = _uniform(self.examples, batch, 1, generator)[:, 0]
        return self.tokens[rows], self.targets[rows]


@dataclass(frozen=True)
class WithBeginning(_AsksWhatItsTaskAsks):
    """The same task with a symbol of its own before every sequence, the same each time.

    `length` stays that of the sequence without it. If every token has a target, this one has none.
    """

    task: Task

    @property
    def vocab_size(self) -> int:
        return self.task.vocab_size + 1

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Tokens (B, T + 1) and targets (B, T + 1) or (B,). ValueError as the task's own."""
        tokens, targets = self.task.sample(batch, length, generator)
        tokens = torch.cat([torch.full_like(tokens[:, :1], self.task.vocab_size), tokens], dim=1)
        if targets.dim() == 2:
            targets = torch.cat([torch.full_like(targets[:, :1], IGNORED), targets], dim=1)
        return tokens, targets

    def ceiling(self, length: int) -> float:
        """Order-blind: that of the task, since a symbol that is always there says nothing."""
        return self.task.ceiling(length)


@dataclass(frozen=True)
class Rule:
    """A task of your own: uniform symbols, and a function that gives their targets.

    Parameters
    ----------
    answer : callable
        From tokens (B, T) to targets: (B, T) if `read_out` is "token", else (B,); integers from 0 to
        ``num_classes - 1``, or `IGNORED`.
    symbols : int
    num_classes : int
    read_out : "pooled", "last" or "token"
    """

    answer: Callable[[Tensor], Tensor]
    symbols: int
    num_classes: int
    read_out: str = "pooled"

    def __post_init__(self) -> None:
        checked_count("symbols", self.symbols, 1)
        checked_count("num_classes", self.num_classes, 1)

    @property
    def vocab_size(self) -> int:
        return self.symbols

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Tokens (B, T) and what `answer` gives for them, as int64. ValueError if that is of another shape."""
        tokens = _uniform(self.symbols, batch, length, generator)
        targets = self.answer(tokens.clone())
        expected = (batch, length) if self.read_out == "token" else (batch,)
        if not isinstance(targets, Tensor) or tuple(targets.shape) != expected or targets.is_floating_point():
            raise ValueError(f"read_out {self.read_out!r} needs integer answers {expected}, not {described(targets)}")
        targets = targets.long()
        classes = targets[targets != IGNORED]
        if classes.numel() and not 0 <= int(classes.min()) <= int(classes.max()) < self.num_classes:
            raise ValueError(
                f"answers must lie in 0..{self.num_classes - 1}, not in {int(classes.min())}..{int(classes.max())}"
            )
        return tokens, targets


def _uniform(symbols: int, batch: int, length: int, generator: torch.Generator) -> Tensor:
    """Independent uniform symbols, (B, T)."""
    checked_count("batch", batch, 1)
    checked_count("length", length, 1)
    return torch.randint(symbols, (batch, length), generator=generator)
