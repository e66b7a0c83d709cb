"""Training and scoring, the same for every model and task of the book.

What a run gives depends on the model, the task and its arguments, and on nothing else: examples come from
a generator of their own, the global one is left as it was, and a run uses one thread however many there are.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from posenc._checks import check_positive, checked_count, described
from posenc.tasks import IGNORED, Task

_SCORING_BATCH = 256


@dataclass(frozen=True)
class History:
    """What a training run was like.

    Attributes
    ----------
    losses : tuple of float
        The mean cross-entropy of each batch before its step, in nats; or the mean squared error, if the
        targets are numbers.
    seconds : float
        Wall time of the steps.
    parameters : int
        Numbers that were trained.
    """

    losses: tuple[float, ...]
    seconds: float
    parameters: int

    def final_loss(self, steps: int = 20) -> float:
        """The mean loss of the last `steps` batches. ValueError if there is none."""
        last = self.losses[-steps:] if steps > 0 else ()
        if not last:
            raise ValueError(f"no loss among the last {steps} of {len(self.losses)} steps")
        return sum(last) / len(last)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside the block torch's global generator starts from `seed`; after it, it is as it was before.

    Build a model in it, and the same seed gives the same initial weights whatever ran earlier.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside the block torch computes in one thread; after it, in as many as before.

    Models as small as the book's gain nothing from a second thread: the threads wait for each other, on a
    busy machine for long. And sums taken in another order round otherwise, which training then magnifies.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def fit(
    model: nn.Module,
    task: Task,
    steps: int,
    seed: int,
    *,
    lengths: int | tuple[int, int],
    batch: int = 128,
    learning_rate: float = 1e-2,
    weight_decay: float = 0.01,
    progress: bool = False,
) -> History:
    """Train `model` on fresh examples of `task`: AdamW, with a learning rate that rises and falls once.

    Parameters
    ----------
    model : Module
        From tokens `(B, T)` to scores `(B, classes)` or `(B, T, classes)`, of one class if the task's
        targets are numbers. Trained in place; build it under `seeded` for a run that can be repeated.
    task : Task
        See `posenc.tasks`.
    steps : int, at least 1
        Batches, each used once.
    seed : int, at least 0
        Of the examples, and of dropout if the model has any.
    lengths : int or (int, int)
        Length of the sequences; or the smallest and largest of lengths drawn uniformly, one a batch.
    batch : int, at least 1
        Sequences in a batch.
    learning_rate : float
        The peak of the one-cycle schedule (Smith and Topin, 2017): up for the first 30 % of the steps, then
        down to almost nothing.
    weight_decay : float
        Of AdamW (Loshchilov and Hutter, 2019).
    progress : bool
        Write the step and the loss to standard error now and then. Otherwise nothing is written.

    Returns
    -------
    History

    Raises
    ------
    ValueError
        If a number is out of range, or the model answers per token and the task asks per sequence, or
        the other way round; or the targets are numbers, and the model gives more than one score for each.
    """
    for name, value, least in (("steps", steps, 1), ("seed", seed, 0), ("batch", batch, 1)):
        checked_count(name, value, least)
    check_positive("learning_rate", learning_rate)
    shortest, longest = _range_of(lengths)
    generator = _examples_from(seed, scoring=False)
    device = _device_of(model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=learning_rate, total_steps=steps + 1)
    losses = []
    was_training = model.training
    model.train()
    started = time.perf_counter()
    with seeded(seed), one_thread():
        for step in range(steps):
            length = int(torch.randint(shortest, longest + 1, (), generator=generator))
            tokens, targets = (t.to(device) for t in task.sample(batch, length, generator))
            scores = model(tokens)
            _check_answers(scores, targets)
            loss = _loss(scores, targets)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            losses.append(loss.item())
            if progress and (step + 1 == steps or step % max(1, steps // 20) == 0):
                print(f"\rstep {step + 1} of {steps}, loss {losses[-1]:.3f}", end="", file=sys.stderr, flush=True)
    if progress:
        print(file=sys.stderr)
    model.train(was_training)
    return History(tuple(losses), time.perf_counter() - started, parameter_count(model))


def score(model: nn.Module, tokens: Tensor, targets: Tensor) -> float:
    """The share of right answers on these examples; targets that are `IGNORED` do not count.

    Parameters
    ----------
    model : Module
        From tokens `(B, T)` to scores `(B, classes)` or `(B, T, classes)`. Used in evaluation mode and
        left in the mode it was in.
    tokens : integer Tensor, shape (B, T)
    targets : integer Tensor, shape (B,) or (B, T)

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        If no token has a target, the numbers of sequences differ, or the model answers another question.
    """
    for name, given in (("tokens", tokens), ("targets", targets)):
        if not isinstance(given, Tensor) or not given.dim():
            raise ValueError(f"{name} must be a tensor with one row a sequence, not {described(given)}")
    if tokens.shape[0] != targets.shape[0]:
        raise ValueError(f"there are {tokens.shape[0]} sequences, but {targets.shape[0]} targets")
    asked = int((targets != IGNORED).sum())
    if not asked:
        raise ValueError("no example has a target")
    device = _device_of(model)
    was_training = model.training
    model.eval()
    right = 0
    with torch.no_grad(), one_thread():
        for some_tokens, some_targets in zip(tokens.split(_SCORING_BATCH), targets.split(_SCORING_BATCH)):
            scores = model(some_tokens.to(device))
            _check_answers(scores, some_targets)
            # A class is never IGNORED, so an ignored target is never counted as right.
            right += int((scores.argmax(dim=-1).cpu() == some_targets.cpu()).sum())
    model.train(was_training)
    return right / asked


def accuracy(model: nn.Module, task: Task, length: int, seed: int = 0, examples: int = 1024) -> float:
    """The share of right answers on fresh examples of `task`, never those that `fit` drew for any seed.

    Parameters
    ----------
    model : Module
        As for `score`.
    task : Task
    length : int
        Of the sequences.
    seed : int, at least 0
        Of the examples: the same seed gives every model the same ones.
    examples : int, at least 1
        Sequences.

    Returns
    -------
    float
        Between 0 and 1. It is a sample: with n answers of probability p it strays by about
        ``sqrt(p (1 - p) / n)``.

    Raises
    ------
    ValueError
        As `score` and the task's `sample`.
    """
    checked_count("seed", seed, 0)
    return score(model, *task.sample(examples, length, _examples_from(seed, scoring=True)))


def parameter_count(model: nn.Module) -> int:
    """How many numbers training may change."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def _loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy if the targets are classes, squared error if they are numbers."""
    if targets.is_floating_point():
        return F.mse_loss(scores[..., 0], targets)
    return F.cross_entropy(scores.flatten(0, -2), targets.flatten(), ignore_index=IGNORED)


def _range_of(lengths: int | tuple[int, int]) -> tuple[int, int]:
    ends = tuple(lengths) if isinstance(lengths, (tuple, list)) else (lengths, lengths)
    if len(ends) != 2:
        raise ValueError(f"lengths must be one length or two, the smallest and the largest, not {lengths!r}")
    checked_count("lengths", ends[0], 1)
    checked_count("the largest of lengths", ends[1], ends[0])
    return ends


def _examples_from(seed: int, scoring: bool) -> torch.Generator:
    # Even numbers seed training and odd ones scoring, so that no run is scored on what it was trained on.
    return torch.Generator().manual_seed(2 * seed + scoring)


def _device_of(model: nn.Module) -> torch.device:
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def _check_answers(scores: Tensor, targets: Tensor) -> None:
    if scores.shape[:-1] != targets.shape:
        raise ValueError(
            f"the model gives scores {tuple(scores.shape)}, but the task has targets {tuple(targets.shape)}: "
            f"one answer a token needs read_out 'token', one a sequence 'pooled' or 'last'"
        )
    if targets.is_floating_point() and scores.shape[-1] != 1:
        raise ValueError(f"the targets are numbers, so the model needs one score an answer, not {scores.shape[-1]}")
