"""Training and scoring: the same numbers every time, nothing else disturbed, and the facts the book builds on."""

import inspect
import math
import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from posenc.models import Transformer
from posenc.tasks import IGNORED, FixedSample, Majority, Reversal, TokenBack, WhoChasedWhom
from posenc.training import History, accuracy, fit, parameter_count, score, seeded


def model(task, seed=0, **options):
    with seeded(seed):
        return Transformer(task.vocab_size, task.num_classes, read_out=task.read_out, **{"d_model": 16, **options})


class Constant(nn.Module):
    """The same scores for every token, or for every sequence."""

    def __init__(self, scores, per_token=True):
        super().__init__()
        self.scores, self.per_token = torch.tensor(scores), per_token

    def forward(self, tokens):
        return self.scores.expand(*(tokens.shape if self.per_token else tokens.shape[:1]), -1)


# A run can be repeated and disturbs nothing


def test_same_seed_same_run():
    runs = []
    for _ in range(2):
        net = model(Reversal(4), encoding="learned", max_length=8)
        history = fit(net, Reversal(4), 12, 3, lengths=(5, 8), batch=16)
        runs.append((history.losses, accuracy(net, Reversal(4), 8, examples=50), net.state_dict()))
        torch.rand(7)  # whatever ran in between
    assert runs[0][:2] == runs[1][:2]
    assert all(torch.equal(a, b) for a, b in zip(runs[0][2].values(), runs[1][2].values()))


def test_a_run_is_the_same_with_any_number_of_threads():
    class Threads(Constant):
        """Notes how many threads it was called with; and has a number to train."""

        def __init__(self, per_token=True):
            super().__init__([0.0, 1.0, 0.0, 0.0], per_token)
            self.scores, self.seen = nn.Parameter(self.scores), set()

        def forward(self, tokens):
            self.seen.add(torch.get_num_threads())
            return super().forward(tokens)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        net = Threads()
        fit(net, Reversal(4), 2, 0, lengths=6, batch=4)
        accuracy(net, Reversal(4), 6, examples=8)
        with pytest.raises(ValueError, match="per sequence|one a sequence"):
            fit(Threads(per_token=False), Reversal(4), 2, 0, lengths=6, batch=4)
        assert net.seen == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_seed_changes_the_examples():
    losses = [fit(model(Reversal(4)), Reversal(4), 3, seed, lengths=6, batch=8).losses for seed in (0, 1)]
    assert losses[0] != losses[1]


def test_global_generator_is_left_alone():
    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(4, 4)

        def forward(self, tokens):
            return F.dropout(self.table(tokens), 0.5, self.training)

    state = torch.get_rng_state()
    with seeded(5):
        nets = [Dropping(), Dropping()]
    nets[1].load_state_dict(nets[0].state_dict())
    losses = []
    for net in nets:
        losses.append(fit(net, Reversal(4), 3, 0, lengths=6, batch=8).losses)
        accuracy(net, Reversal(4), 6, examples=8)
        torch.rand(3)
        torch.set_rng_state(state)
    assert losses[0] == losses[1]
    assert torch.equal(torch.get_rng_state(), state)


def test_seeded_gives_the_generator_back_after_an_error_too():
    state = torch.get_rng_state()
    with pytest.raises(KeyError), seeded(3):
        first = torch.rand(2)
        raise KeyError
    assert torch.equal(torch.get_rng_state(), state)
    with seeded(3):
        assert torch.equal(torch.rand(2), first)


@pytest.mark.parametrize("training", [True, False])
def test_mode_is_left_as_it_was(training):
    seen = []
    net = model(Reversal(4)).train(training)
    net.head.register_forward_hook(lambda layer, *_: seen.append(layer.training))
    fit(net, Reversal(4), 1, 0, lengths=6, batch=8)
    accuracy(net, Reversal(4), 6, examples=8)
    assert seen == [True, False] and net.training is training


def test_silent_unless_progress_is_wanted(capfd):
    fit(model(Reversal(4)), Reversal(4), 3, 0, lengths=6, batch=8)
    assert capfd.readouterr() == ("", "")
    fit(model(Reversal(4)), Reversal(4), 3, 0, lengths=6, batch=8, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and "step 3 of 3, loss " in err and err.endswith("\n")


@pytest.mark.parametrize("steps, shown", [(5, [1, 2, 3, 4, 5]), (40, [*range(1, 41, 2), 40]), (50, [*range(1, 51, 2), 50])])
def test_progress_is_shown_from_the_first_step_to_the_last(steps, shown, capfd):
    fit(model(Reversal(4)), Reversal(4), steps, 0, lengths=2, batch=1, progress=True)
    written = capfd.readouterr().err
    assert [int(step) for step in re.findall(rf"step (\d+) of {steps}", written)] == shown
    assert written.count("\n") == 1 and written.endswith("\n")  # one line, written over and over


def test_scoring_keeps_no_gradient_and_changes_no_weight():
    net = model(Reversal(4))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    accuracy(net, Reversal(4), 6, examples=8)
    assert all(p.grad is None for p in net.parameters())
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


# What it trains on


class Watched:
    """A task that remembers what it drew."""

    def __init__(self, task):
        self.task, self.drawn = task, []

    def __getattr__(self, name):
        return getattr(self.task, name)

    def sample(self, batch, length, generator):
        self.drawn.append(self.task.sample(batch, length, generator))
        return self.drawn[-1]


def test_lengths_are_drawn_from_both_ends():
    task = Watched(Reversal(4))
    fit(model(task), task, 40, 0, lengths=(3, 6), batch=2)
    assert {tokens.shape for tokens, _ in task.drawn} == {(2, length) for length in (3, 4, 5, 6)}
    task = Watched(Reversal(4))
    fit(model(task), task, 3, 0, lengths=5, batch=2)
    assert [tuple(tokens.shape) for tokens, _ in task.drawn] == [(2, 5)] * 3


def test_scored_examples_are_not_the_trained_ones():
    task = Watched(Reversal(10))
    net = model(task)
    for seed in range(3):
        fit(net, task, 1, seed, lengths=16, batch=64)
        accuracy(net, task, 16, seed, examples=64)
    rows = torch.cat([tokens for tokens, _ in task.drawn])
    assert len(rows.unique(dim=0)) == len(rows)


def test_accuracy_gives_every_model_the_same_examples():
    task = Watched(Reversal(10))
    for seed in (0, 1):
        accuracy(model(task, seed), task, 6, seed=4, examples=9)
    assert torch.equal(task.drawn[0][0], task.drawn[1][0])


def test_loss_is_the_mean_over_tokens_that_are_asked():
    task = TokenBack(2, 4)
    net = model(task, encoding="sinusoidal")
    start = {name: value.clone() for name, value in net.state_dict().items()}
    watched = Watched(task)
    history = fit(net, watched, 1, 0, lengths=6, batch=8)
    net.load_state_dict(start)
    tokens, targets = watched.drawn[0]
    nats = -net(tokens).log_softmax(dim=-1).detach()
    asked = [nats[b, t, targets[b, t]] for b in range(8) for t in range(2, 6)]
    assert history.losses[0] == pytest.approx(float(sum(asked)) / len(asked), rel=1e-5)


@pytest.mark.parametrize("steps", [1, 2, 3, 10])
def test_rate_rises_to_its_peak_and_falls_to_nothing(steps, monkeypatch):
    rates = []
    step = torch.optim.AdamW.step
    monkeypatch.setattr(
        torch.optim.AdamW, "step", lambda self, *a: (rates.append(self.param_groups[0]["lr"]), step(self, *a))[1]
    )
    history = fit(model(Reversal(4)), Reversal(4), steps, 0, lengths=6, batch=8, learning_rate=0.5)
    assert len(history.losses) == len(rates) == steps
    assert all(0 < rate <= 0.5 for rate in rates)
    if steps == 10:
        peak = rates.index(max(rates))
        assert rates[: peak + 1] == sorted(rates[: peak + 1]) and rates[peak:] == sorted(rates[peak:], reverse=True)
        assert max(rates) > 0.45 and rates[-1] < 0.05


# What it reports


def test_history():
    net = model(Reversal(4))
    history = fit(net, Reversal(4), 5, 0, lengths=6, batch=8)
    assert len(history.losses) == 5 and history.seconds > 0
    assert history.parameters == parameter_count(net)
    assert history.losses[0] == pytest.approx(math.log(4), abs=1)
    assert history.final_loss(2) == pytest.approx(sum(history.losses[-2:]) / 2)
    assert history.final_loss() == pytest.approx(sum(history.losses) / 5)
    assert history.final_loss(1) == history.losses[-1]
    for wrong in (History((), 0.0, 0).final_loss, lambda: history.final_loss(0)):
        with pytest.raises(ValueError, match="no loss"):
            wrong()


def test_weights_decay_as_in_adamw_unless_asked():
    layer = nn.Linear(1, 1)
    assert inspect.signature(fit).parameters["weight_decay"].default == torch.optim.AdamW(layer.parameters()).defaults["weight_decay"]


def test_parameter_count_leaves_out_what_is_frozen():
    layers = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    assert parameter_count(layers) == 3 * 5 + 5 + 5 * 2 + 2
    layers[0].requires_grad_(False)
    assert parameter_count(layers) == 12


def test_score_by_hand():
    tokens = torch.zeros(2, 3, dtype=torch.long)
    targets = torch.tensor([[1, 0, IGNORED], [1, IGNORED, IGNORED]])
    assert score(Constant([0.0, 1.0]), tokens, targets) == pytest.approx(2 / 3)
    assert score(Constant([0.0, 1.0], per_token=False), tokens, torch.tensor([1, 0])) == 0.5


def test_score_does_not_depend_on_batches():
    task = Reversal(4)
    net = model(task, encoding="sinusoidal")
    tokens, targets = task.sample(700, 5, torch.Generator().manual_seed(0))
    parts = [score(net, tokens[i : i + 7], targets[i : i + 7]) for i in range(0, 700, 7)]
    assert score(net, tokens, targets) == pytest.approx(sum(parts) / 100, abs=1e-12)


# Bad input


@pytest.mark.parametrize(
    "options, message",
    [
        ({"steps": 0}, "steps must be an integer of at least 1, not 0"),
        ({"steps": 1.0}, "steps"),
        ({"seed": -1}, "seed must be an integer of at least 0, not -1"),
        ({"batch": 0}, "batch"),
        ({"lengths": 0}, "lengths must be an integer of at least 1, not 0"),
        ({"lengths": (0, 5)}, "lengths must be an integer of at least 1, not 0"),
        ({"lengths": (5, 4)}, "largest of lengths must be an integer of at least 5, not 4"),
        ({"lengths": (5,)}, "lengths must be one length or two"),
        ({"lengths": 2.0}, "lengths"),
        ({"lengths": None}, "lengths"),
        ({"learning_rate": 0.0}, "learning_rate must be positive and finite, not 0.0"),
    ],
)
def test_bad_settings_are_refused_by_name(options, message):
    settings = {"steps": 1, "seed": 0, "lengths": 6, **options}
    with pytest.raises(ValueError, match=message):
        fit(model(Reversal(4)), Reversal(4), **settings)


def test_the_wrong_read_out_is_named():
    token, pooled = model(Reversal(4)), model(Majority(4))
    for net, task in ((token, Majority(4)), (pooled, Reversal(4))):
        with pytest.raises(ValueError, match="read_out"):
            fit(net, task, 1, 0, lengths=6)
        with pytest.raises(ValueError, match="read_out"):
            accuracy(net, task, 6)


def test_scoring_nothing_is_refused():
    tokens = torch.zeros(2, 3, dtype=torch.long)
    with pytest.raises(ValueError, match="no example has a target"):
        score(Constant([0.0, 1.0]), tokens, torch.full((2, 3), IGNORED))
    with pytest.raises(ValueError, match="2 sequences, but 3 targets"):
        score(Constant([0.0, 1.0]), tokens, torch.zeros(3, 3, dtype=torch.long))


# The facts that the book builds on, at a size that trains in about a second


def test_order_blind_model_stays_at_its_ceiling_and_codes_lift_it():
    task = Reversal(4)
    reached = {}
    for encoding in ("none", "sinusoidal", "learned"):
        net = model(task, encoding=encoding, max_length=6)
        fit(net, task, 200, 0, lengths=6, batch=64)
        reached[encoding] = accuracy(net, task, 6, examples=2000)
    assert reached["none"] == pytest.approx(task.ceiling(6), abs=0.03)
    assert reached["sinusoidal"] > 0.97 and reached["learned"] > 0.97


@pytest.mark.parametrize("articles", [True, False])
def test_order_blind_model_scores_one_half_on_swaps_exactly(articles):
    task = WhoChasedWhom(articles=articles)
    tokens, targets = task.everything()
    net = model(task, encoding="none", num_heads=2)
    history = fit(net, task, 40, 0, lengths=task.length, batch=64)
    assert score(net, tokens, targets) == 0.5
    assert history.final_loss() > math.log(2) - 0.02
    net = model(task, encoding="sinusoidal", num_heads=2)
    fit(net, task, 100, 0, lengths=task.length, batch=64)
    assert score(net, tokens, targets) > 0.99


def test_few_examples_are_learned_by_heart():
    few = FixedSample(Reversal(4), examples=8, length=6)
    net = model(few, encoding="sinusoidal")
    fit(net, few, 100, 0, lengths=6, batch=32)
    assert score(net, few.tokens, few.targets) > 0.95
    assert accuracy(net, Reversal(4), 6, examples=500) < 0.7
