"""The tasks: what they draw, and their ceilings against a count over every sequence."""

import math
from collections import Counter
from dataclasses import FrozenInstanceError
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.symmetry import order_blind_ceiling
from posenc.tasks import (
    IGNORED,
    FirstOfTwo,
    FirstToken,
    FixedSample,
    Majority,
    Reversal,
    Rule,
    RunningParity,
    TokenBack,
    WhoChasedWhom,
    WithBeginning,
)

TASKS = {
    "reversal": (Reversal(5), 6),
    "token back": (TokenBack(2, 5), 6),
    "first token": (FirstToken(5), 6),
    "first token, last": (FirstToken(5, read_out="last"), 6),
    "first of two": (FirstOfTwo(3), 6),
    "parity": (RunningParity(), 6),
    "majority": (Majority(3), 6),
    "who chased whom": (WhoChasedWhom(), 5),
    "who chased whom, bare": (WhoChasedWhom(articles=False), 3),
    "few": (FixedSample(Reversal(5), 7, 6), 6),
    "rule": (Rule(lambda tokens: tokens.amax(dim=1), 5, 5), 6),
    "rule, token": (Rule(lambda tokens: tokens, 5, 5, "token"), 6),
}
every_task = pytest.mark.parametrize("task, length", TASKS.values(), ids=TASKS.keys())


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def every_sequence(symbols, length):
    return torch.tensor(list(product(range(symbols), repeat=length)))


def blind_best(views_and_answers):
    """The best share of right answers for a rule that gives every view one answer."""
    answers = {}
    for view, answer in views_and_answers:
        answers.setdefault(view, Counter())[answer] += 1
    total = sum(sum(counts.values()) for counts in answers.values())
    return sum(max(counts.values()) for counts in answers.values()) / total


# What every task promises


@every_task
def test_shapes_types_and_ranges(task, length):
    tokens, targets = task.sample(50, length, generator())
    assert tokens.shape == (50, length)
    assert tokens.dtype == targets.dtype == torch.int64
    assert targets.shape == ((50, length) if task.read_out == "token" else (50,))
    assert 0 <= tokens.min() and tokens.max() < task.vocab_size
    asked = targets[targets != IGNORED]
    assert 0 <= asked.min() and asked.max() < task.num_classes


@every_task
def test_the_generator_decides_and_the_global_one_is_left_alone(task, length):
    state = torch.get_rng_state()
    first, again, other = (task.sample(20, length, generator(seed)) for seed in (0, 0, 1))
    assert all(torch.equal(a, b) for a, b in zip(first, again))
    assert not torch.equal(first[0], other[0])
    assert torch.equal(torch.get_rng_state(), state)
    drawn = generator()
    assert not torch.equal(task.sample(20, length, drawn)[0], task.sample(20, length, drawn)[0])


@every_task
def test_targets_do_not_share_memory_with_tokens(task, length):
    tokens, targets = task.sample(20, length, generator())
    before = targets.clone()
    tokens.fill_(0)
    assert torch.equal(targets, before)


@every_task
def test_tasks_are_frozen(task, length):
    with pytest.raises(FrozenInstanceError):
        task.read_out = "last"


@every_task
@pytest.mark.parametrize("batch", [0, -1, 2.0, True])
def test_bad_batch_is_refused(task, length, batch):
    with pytest.raises(ValueError, match="batch must be an integer of at least 1"):
        task.sample(batch, length, generator())


@pytest.mark.parametrize(
    "task, least",
    [(Reversal(), 1), (TokenBack(3), 4), (FirstToken(), 1), (FirstOfTwo(), 2), (RunningParity(), 1), (Majority(), 1)],
)
def test_shortest_sequence(task, least):
    assert task.sample(3, least, generator())[0].shape == (3, least)
    with pytest.raises(ValueError, match=f"length must be an integer of at least {least}, not {least - 1}"):
        task.sample(3, least - 1, generator())


# The answers, by a loop


@given(st.integers(1, 9), st.integers(0, 100))
def test_answers_by_hand(length, seed):
    for tokens, targets in zip(*Reversal(4).sample(3, length, generator(seed))):
        assert targets.tolist() == list(reversed(tokens.tolist()))
    for tokens, target in zip(*FirstToken(4).sample(3, length, generator(seed))):
        assert target == tokens[0]
    for tokens, targets in zip(*RunningParity().sample(3, length, generator(seed))):
        assert targets.tolist() == [sum(tokens[: t + 1].tolist()) % 2 for t in range(length)]
    for tokens, target in zip(*Majority(4).sample(3, length, generator(seed))):
        counts = Counter(tokens.tolist())
        assert target == min(s for s in range(4) if counts[s] == max(counts.values()))


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 100))
def test_token_back_by_hand(lag, more, seed):
    tokens, targets = TokenBack(lag, 4).sample(3, lag + more, generator(seed))
    for row, answers in zip(tokens.tolist(), targets.tolist()):
        assert answers == [IGNORED] * lag + row[:-lag]


@given(st.integers(2, 9), st.integers(0, 100))
def test_first_of_two_by_hand(length, seed):
    for tokens, target in zip(*FirstOfTwo(3).sample(5, length, generator(seed))):
        row = tokens.tolist()
        assert row.count(0) == row.count(1) == 1
        assert target == (0 if row.index(0) < row.index(1) else 1)


def test_first_of_two_uses_every_pair_of_places_alike():
    tokens, targets = FirstOfTwo().sample(12_000, 4, generator())
    places = Counter(zip((tokens == 0).int().argmax(1).tolist(), (tokens == 1).int().argmax(1).tolist()))
    assert len(places) == 12 and all(900 < count < 1100 for count in places.values())
    assert 0.48 < targets.float().mean() < 0.52


# Ceilings


@pytest.mark.parametrize("symbols, length", [(2, 2), (2, 5), (3, 4), (3, 5), (4, 4)])
def test_per_token_ceilings_against_every_sequence(symbols, length):
    tokens = every_sequence(symbols, length)
    assert Reversal(symbols).ceiling(length) == pytest.approx(order_blind_ceiling(tokens, tokens.flip(1)), abs=1e-12)
    for lag in range(1, length):
        views = [
            ((tuple(sorted(row)), row[t]), row[t - lag]) for row in tokens.tolist() for t in range(lag, length)
        ]
        assert TokenBack(lag, symbols).ceiling(length) == pytest.approx(blind_best(views), abs=1e-12)


@pytest.mark.parametrize("symbols, length", [(2, 1), (2, 2), (2, 5), (3, 4), (3, 5), (4, 4)])
def test_per_sequence_ceilings_against_every_sequence(symbols, length):
    tokens = every_sequence(symbols, length)
    assert FirstToken(symbols).ceiling(length) == pytest.approx(order_blind_ceiling(tokens, tokens[:, 0]), abs=1e-12)
    at_last = blind_best(((tuple(sorted(row)), row[-1]), row[0]) for row in tokens.tolist())
    assert FirstToken(symbols, read_out="last").ceiling(length) == pytest.approx(at_last, abs=1e-12)
    counts = [[row.count(s) for s in range(symbols)] for row in tokens.tolist()]
    commonest = torch.tensor([row.index(max(row)) for row in counts])
    assert Majority(symbols).ceiling(length) == order_blind_ceiling(tokens, commonest) == 1.0


@pytest.mark.parametrize("length", [1, 2, 3, 6, 9])
def test_parity_ceiling_against_every_sequence(length):
    tokens = every_sequence(2, length)
    counted = order_blind_ceiling(tokens, tokens.cumsum(dim=1) % 2)
    assert RunningParity().ceiling(length) == pytest.approx(counted, abs=1e-12)


def test_last_parity_is_a_function_of_the_set():
    tokens = every_sequence(2, 6)
    assert order_blind_ceiling(tokens, tokens.sum(dim=1) % 2) == 1.0


def test_first_of_two_ceiling_against_every_sequence():
    rows = [row for row in every_sequence(4, 4).tolist() if row.count(0) == row.count(1) == 1]
    targets = torch.tensor([int(row.index(0) > row.index(1)) for row in rows])
    assert order_blind_ceiling(torch.tensor(rows), targets) == FirstOfTwo(2).ceiling(4) == 0.5


@pytest.mark.parametrize("articles", [True, False])
def test_who_chased_whom_ceiling_against_every_sentence(articles):
    task = WhoChasedWhom(articles=articles)
    assert order_blind_ceiling(*task.everything()) == task.ceiling(task.length) == 0.5


def test_known_ceilings():
    assert Reversal(10).ceiling(16) == pytest.approx(0.241, abs=5e-4)
    assert Reversal(10).ceiling(8) == pytest.approx(0.317, abs=5e-4)
    assert FirstToken(10).ceiling(8) == pytest.approx(0.300, abs=5e-4)
    published = {16: 0.197, 32: 0.153, 64: 0.124, 256: 0.0915}
    for length, value in published.items():
        assert TokenBack(3, 16).ceiling(length) == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize("task", [Reversal(), TokenBack(3), FirstToken(), FirstOfTwo(), RunningParity(), Majority()])
def test_ceiling_refuses_what_sample_cannot_draw(task):
    with pytest.raises(ValueError, match="0"):
        task.ceiling(0)


# Who chased whom


def test_sentences_read_as_english():
    task = WhoChasedWhom()
    tokens, chasers = task.everything()
    sentences = [" ".join(task.words[w] for w in row) for row in tokens.tolist()]
    assert len(set(sentences)) == len(sentences) == 6 * 5 * 3
    assert chasers[sentences.index("the dog chased the cat")] == task.nouns.index("dog")
    bare = WhoChasedWhom(articles=False)
    assert " ".join(bare.words[w] for w in bare.everything()[0][0].tolist()) == "dog chased cat"


@pytest.mark.parametrize("articles", [True, False])
def test_samples_are_sentences_all_of_them_alike(articles):
    task = WhoChasedWhom(articles=articles)
    known = {(*row, target) for row, target in zip(task.everything()[0].tolist(), task.everything()[1].tolist())}
    tokens, targets = task.sample(9000, task.length, generator())
    drawn = Counter((*row, target) for row, target in zip(tokens.tolist(), targets.tolist()))
    assert set(drawn) == known and all(60 < count < 145 for count in drawn.values())


@pytest.mark.parametrize("articles", [True, False])
def test_swap_and_mirror(articles):
    task = WhoChasedWhom(articles=articles)
    tokens, chasers = task.everything()
    before = tokens.clone()
    swapped, chasers_swapped = task.swap(tokens)
    mirrored, chasers_mirrored = task.mirror(tokens)
    assert torch.equal(tokens, before)
    assert torch.equal(swapped.sort(dim=1).values, tokens.sort(dim=1).values)
    assert torch.equal(mirrored, tokens.flip(1))
    assert (chasers_swapped != chasers).all() and torch.equal(chasers_swapped, chasers_mirrored)
    assert torch.equal(task.swap(swapped)[0], tokens) and torch.equal(task.swap(swapped)[1], chasers)
    assert set(map(tuple, swapped.tolist())) == set(map(tuple, tokens.tolist()))
    # Without articles the mirror image is the swap; with them it is no sentence.
    assert torch.equal(swapped, mirrored) is not articles


def test_swap_needs_two_nouns():
    task = WhoChasedWhom()
    with pytest.raises(ValueError, match="exactly two nouns"):
        task.swap(torch.tensor([[9, 0, 6, 9, 7]]))
    with pytest.raises(ValueError, match="exactly two nouns"):
        task.swap(torch.tensor([[9, 0, 1, 9, 2]]))


def test_sentence_length_is_fixed():
    for articles, length in ((True, 5), (False, 3)):
        task = WhoChasedWhom(articles=articles)
        for call in (lambda: task.sample(2, 4, generator()), lambda: task.ceiling(4)):
            with pytest.raises(ValueError, match=f"{length} words, not 4"):
                call()


# A set drawn once


def test_fixed_sample_repeats_its_examples():
    few = FixedSample(Reversal(5), examples=3, length=6, seed=1)
    tokens, targets = few.sample(200, 6, generator())
    assert len(tokens.unique(dim=0)) == 3
    assert torch.equal(targets, tokens.flip(1))
    assert torch.equal(few.tokens, FixedSample(Reversal(5), 3, 6, seed=1).tokens)
    assert not torch.equal(few.tokens, FixedSample(Reversal(5), 3, 6, seed=2).tokens)
    with pytest.raises(ValueError, match="length 6, not 5"):
        few.sample(2, 5, generator())


def test_a_larger_fixed_sample_holds_the_smaller():
    small, large = (FixedSample(Reversal(5), n, 6) for n in (10, 20))
    assert torch.equal(large.tokens[:10], small.tokens)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Reversal(0),
        lambda: TokenBack(0),
        lambda: TokenBack(1, 0),
        lambda: FirstToken(0),
        lambda: FirstToken(3, read_out="token"),
        lambda: FirstOfTwo(0),
        lambda: Majority(1.5),
        lambda: WhoChasedWhom(nouns=("dog",)),
        lambda: WhoChasedWhom(verbs=()),
        lambda: WhoChasedWhom(nouns=("dog", "dog")),
        lambda: FixedSample(Reversal(), 0, 4),
    ],
)
def test_bad_tasks_are_refused(build):
    with pytest.raises(ValueError):
        build()


@pytest.mark.parametrize(
    "task, length",
    [
        (Reversal(1), 2),
        (TokenBack(1, 1), 2),
        (FirstToken(1), 1),
        (FirstOfTwo(1), 3),
        (Majority(1), 1),
        (WhoChasedWhom(nouns=("dog", "cat"), verbs=("saw",), articles=False), 3),
        (FixedSample(Reversal(1), 1, 1), 1),
        (Rule(lambda tokens: tokens[:, 0], 1, 1), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_smallest_tasks(task, length):
    tokens, targets = task.sample(1, length, generator())
    assert tokens.shape == (1, length) and 0 <= int(tokens.min()) <= int(tokens.max()) < task.vocab_size
    assert len(targets) == 1


def test_what_a_task_is_unless_asked():
    """Printed results name the task and not its size."""
    sizes = {Reversal: 10, TokenBack: 10, FirstToken: 8, Majority: 4}
    assert {task: task().symbols for task in sizes} == sizes
    assert (TokenBack().lag, FirstOfTwo().fillers, WhoChasedWhom().length) == (3, 8, 5)


def test_what_is_not_asked_is_marked_as_torch_marks_it():
    assert IGNORED == torch.nn.CrossEntropyLoss().ignore_index


def test_a_fixed_sample_is_named_without_its_examples():
    assert "tensor" not in repr(FixedSample(Reversal(5), 3, 6))


def test_ceilings_are_probabilities_above_chance():
    for task in (Reversal(4), TokenBack(2, 4), FirstToken(4), FirstToken(4, read_out="last")):
        values = [task.ceiling(length) for length in (8, 16, 32)]
        assert 0.25 < values[2] < values[1] < values[0] < 1
    assert all(math.isclose(RunningParity().ceiling(n), 0.5, abs_tol=0.25) for n in (4, 16, 40))


# Tasks made of others, or of a function


@pytest.mark.parametrize("task", [Reversal(5), FirstToken(5), FirstToken(5, "last"), TokenBack(2, 5)], ids=repr)
def test_beginning_is_one_symbol_more_before_the_same_examples(task):
    longer = WithBeginning(task)
    assert (longer.vocab_size, longer.num_classes, longer.read_out) == (6, task.num_classes, task.read_out)
    (tokens, targets), (more, answers) = (t.sample(9, 6, generator()) for t in (task, longer))
    assert more.shape == (9, 7) and (more[:, 0] == 5).all() and torch.equal(more[:, 1:], tokens)
    if task.read_out == "token":
        assert (answers[:, 0] == IGNORED).all() and torch.equal(answers[:, 1:], targets)
    else:
        assert torch.equal(answers, targets)
    assert longer.ceiling(6) == task.ceiling(6)


def test_ceiling_is_not_moved_by_a_beginning():
    tokens = every_sequence(3, 4)
    longer = torch.cat([torch.full((81, 1), 3), tokens], dim=1)
    targets = torch.cat([torch.full((81, 1), 9), tokens.flip(1)], dim=1)
    of_all = order_blind_ceiling(longer, targets) * 5  # the beginning itself is always right here
    assert WithBeginning(Reversal(3)).ceiling(4) == pytest.approx((of_all - 1) / 4, abs=1e-12)


def test_rule_answers_by_its_function_and_may_not_change_the_tokens():
    task = Rule(lambda tokens: tokens.sub_(tokens.amin()).sum(dim=1).int() % 2, 4, 2)
    tokens, targets = task.sample(30, 5, generator())
    assert targets.dtype == torch.int64 and torch.equal(targets, tokens.sum(dim=1) % 2)
    assert torch.equal(tokens, torch.randint(4, (30, 5), generator=generator()))


@pytest.mark.parametrize(
    "answer, read_out, said",
    [
        (lambda tokens: tokens, "pooled", r"read_out 'pooled' needs integer answers \(3,\), not a torch.int64 tensor of shape \(3, 5\)"),
        (lambda tokens: tokens[:, 0], "token", r"read_out 'token' needs integer answers \(3, 5\)"),
        (lambda tokens: tokens[:, 0] / 2, "last", "needs integer answers"),
        (lambda tokens: 1, "last", "not int"),
        (lambda tokens: tokens[:, 0] + 2, "last", r"answers must lie in 0..1, not in 2..4"),
        (lambda tokens: tokens[:, 0] - 9, "last", r"answers must lie in 0..1"),
        (lambda tokens: torch.tensor([1, -1, 0]), "last", r"answers must lie in 0..1, not in -1..1"),
    ],
)
def test_rule_says_what_is_wrong_with_an_answer(answer, read_out, said):
    with pytest.raises(ValueError, match=said):
        Rule(answer, 4, 2, read_out).sample(3, 5, generator(3))


def test_rule_may_leave_tokens_unasked():
    targets = Rule(lambda tokens: torch.where(tokens == 0, IGNORED, 0), 4, 1, "token").sample(3, 5, generator())[1]
    assert set(targets.unique().tolist()) == {IGNORED, 0}
