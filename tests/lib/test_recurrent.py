"""The recurrent layers: equal to torch's, indifferent to padding, and plain about bad input."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from posenc.models import CELLS, READ_OUTS, RecurrentModel, Transformer, matching_width
from posenc.recurrent import ACTIVATIONS, GRU, LSTM, ElmanRNN
from posenc.symmetry import invariance_gap
from posenc.training import parameter_count, seeded

TWINS = {"elman": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def layer(name, input_size=3, hidden_size=5, seed=0, **options):
    with seeded(seed):
        return CELLS[name](input_size, hidden_size, **options).double()


def torch_twin(ours, name, **options):
    """torch's own layer with our weights."""
    theirs = TWINS[name](ours.input_size, ours.hidden_size, batch_first=True, **options).double()
    with torch.no_grad():
        for parameter in NAMES:
            getattr(theirs, f"{parameter}_l0").copy_(getattr(ours, parameter))
    return theirs


def first_state(name, batch=2, hidden_size=5):
    h, c = random(batch, hidden_size, seed=7), random(batch, hidden_size, seed=8)
    return (h, c) if name == "lstm" else h


def parts(state):
    return state if isinstance(state, tuple) else (state,)


def close(a, b, atol=1e-12):
    torch.testing.assert_close(a, b, rtol=0, atol=atol)


# Equal to torch


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("start", ["zero", "given"])
def test_outputs_final_states_and_gradients_are_torchs(name, start):
    ours, x = layer(name), random(2, 4, 3, seed=1).requires_grad_()
    theirs, their_x = torch_twin(ours, name), x.detach().clone().requires_grad_()
    state = first_state(name) if start == "given" else None
    their_state = None if state is None else tuple(s[None] for s in state) if name == "lstm" else state[None]
    outputs, final = ours(x, state)
    their_outputs, their_final = theirs(their_x, their_state)
    close(outputs, their_outputs)
    for mine, yours in zip(parts(final), parts(their_final), strict=True):
        close(mine, yours[0])
    upstream = random(2, 4, 5, seed=2)
    for out, last in ((outputs, final), (their_outputs, their_final)):
        ((out * upstream).sum() + sum(part.square().sum() for part in parts(last))).backward()
    close(x.grad, their_x.grad)
    for parameter in NAMES:
        close(getattr(ours, parameter).grad, getattr(theirs, f"{parameter}_l0").grad)


def test_relu_is_torchs_too():
    ours, x = layer("elman", activation="relu"), random(2, 4, 3, seed=1)
    close(ours(x)[0], torch_twin(ours, "elman", nonlinearity="relu")(x)[0])


@pytest.mark.parametrize("name", CELLS)
def test_one_seed_gives_torchs_initial_weights(name):
    with seeded(3):
        ours = CELLS[name](3, 5)
    with seeded(3):
        theirs = TWINS[name](3, 5)
    for parameter in NAMES:
        assert torch.equal(getattr(ours, parameter), getattr(theirs, f"{parameter}_l0"))


@pytest.mark.parametrize("name", CELLS)
def test_lengths_are_torchs_packing(name):
    ours, x = layer(name), random(3, 10, 3, seed=1)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([10, 7, 5]), batch_first=True)
    assert packed.batch_sizes.tolist() == [3, 3, 3, 3, 3, 2, 2, 1, 1, 1]
    their_outputs, their_final = torch_twin(ours, name)(packed)
    outputs, final = ours(x, lengths=[10, 7, 5])
    close(outputs, nn.utils.rnn.pad_packed_sequence(their_outputs, batch_first=True)[0])
    for mine, yours in zip(parts(final), parts(their_final), strict=True):
        close(mine, yours[0])


# By hand


def ones(hidden_weight, activation="relu"):
    rnn = ElmanRNN(1, 1, activation)
    with torch.no_grad():
        for parameter in (rnn.bias_ih, rnn.bias_hh):
            parameter.zero_()
        rnn.weight_ih.fill_(1.0)
        rnn.weight_hh.fill_(hidden_weight)
    return rnn


def test_the_last_output_of_two_directions_is_not_their_final_state():
    x, rnn = torch.tensor([0.0, 0.0, 1.0, 1.0])[None, :, None], ones(1.0)
    forth, end = rnn(x)
    back, start = rnn(x.flip(1))
    both = torch.cat([forth, back.flip(1)], dim=-1)
    assert both[0].tolist() == [[0, 2], [0, 2], [1, 2], [2, 1]]
    assert torch.cat([end, start], dim=-1).tolist() == [[2, 2]]


def test_the_last_column_of_a_padded_batch_is_the_state_after_padding():
    x, rnn = torch.tensor([1.0, 1.0, 0.0, 0.0])[None, :, None], ones(0.5)
    assert rnn(x)[0].flatten().tolist() == [1, 1.5, 0.75, 0.375]
    outputs, final = rnn(x, lengths=[2])
    assert final.tolist() == [[1.5]] and outputs.flatten().tolist() == [1, 1.5, 0, 0]


def test_steps_of_the_gated_cells_by_their_formulas():
    def sigmoid(a):
        return 1 / (1 + np.exp(-a))

    x, h, c = (random(4, width, seed=seed).numpy() for width, seed in ((3, 1), (5, 7), (5, 8)))
    lstm, gru = layer("lstm"), layer("gru")
    w, u, b, d = (getattr(lstm, name).detach().numpy() for name in NAMES)
    i, f, g, o = np.split(x @ w.T + b + h @ u.T + d, 4, axis=1)
    next_c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    got_h, got_c = lstm(torch.tensor(x)[:, None], (torch.tensor(h), torch.tensor(c)))[1]
    np.testing.assert_allclose(got_c.detach(), next_c, atol=1e-12)
    np.testing.assert_allclose(got_h.detach(), sigmoid(o) * np.tanh(next_c), atol=1e-12)
    w, u, b, d = (getattr(gru, name).detach().numpy() for name in NAMES)
    (r, z, n), (r_hh, z_hh, n_hh) = np.split(x @ w.T + b, 3, axis=1), np.split(h @ u.T + d, 3, axis=1)
    r, z = sigmoid(r + r_hh), sigmoid(z + z_hh)
    right = (1 - z) * np.tanh(n + r * n_hh) + z * h
    np.testing.assert_allclose(gru(torch.tensor(x)[:, None], torch.tensor(h))[1].detach(), right, atol=1e-12)


def test_a_linear_recurrence_with_the_identity_is_a_running_sum():
    rnn = layer("elman", 5, 5, activation="identity")
    with torch.no_grad():
        rnn.weight_ih.copy_(torch.eye(5))
        rnn.weight_hh.copy_(torch.eye(5))
        rnn.bias_ih.zero_()
        rnn.bias_hh.zero_()
    x = random(2, 6, 5)
    close(rnn(x)[0], x.cumsum(dim=1))
    assert invariance_gap(lambda x: rnn(x)[1], x, [3, 1, 5, 0, 4, 2]) < 1e-12


def test_a_large_forget_bias_keeps_the_cell():
    lstm, hidden = layer("lstm", forget_bias=50.0), 5
    assert (lstm.bias_ih + lstm.bias_hh)[hidden : 2 * hidden].tolist() == [50.0] * hidden
    with torch.no_grad():
        for parameter in (lstm.weight_ih, lstm.weight_hh):
            parameter[:] = 0
        lstm.bias_ih[:hidden] = -50.0
        lstm.bias_hh[:hidden] = 0.0
    h, c = first_state("lstm")
    close(lstm(random(2, 30, 3), (h, c))[1][1], c)


def test_a_forget_bias_changes_nothing_else():
    plain, raised = layer("lstm"), layer("lstm", forget_bias=1.0)
    rest = torch.tensor([row for row in range(20) if not 5 <= row < 10])
    for name in NAMES:
        close(getattr(raised, name)[rest], getattr(plain, name)[rest], atol=0)


# Order, time and padding


@pytest.mark.parametrize("name", CELLS)
def test_order_matters(name):
    ours, x, order = layer(name), random(2, 6, 3), [1, 0, 2, 3, 4, 5]
    assert invariance_gap(lambda x: parts(ours(x)[1])[0], x, order) > 1e-3


@given(st.sampled_from(list(CELLS)), st.integers(1, 3), st.integers(1, 6), st.integers(0, 6), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_a_walk_can_be_interrupted(name, batch, length, cut, seed):
    ours, x, cut = layer(name), random(batch, length, 3, seed=seed), min(cut, length)
    outputs, final = ours(x)
    first, state = ours(x[:, :cut])
    second, end = ours(x[:, cut:], state)
    close(torch.cat([first, second], dim=1), outputs)
    for mine, yours in zip(parts(end), parts(final), strict=True):
        close(mine, yours)


@given(st.sampled_from(list(CELLS)), st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_a_padded_batch_is_its_sequences_one_by_one(name, lengths, seed):
    ours, x = layer(name), random(len(lengths), 6, 3, seed=seed)
    state = first_state(name, batch=len(lengths))
    outputs, final = ours(x, state, lengths)
    for row, length in enumerate(lengths):
        own = tuple(part[row : row + 1] for part in parts(state))
        alone, end = ours(x[row : row + 1, :length], own if name == "lstm" else own[0])
        close(outputs[row, :length], alone[0])
        assert not outputs[row, length:].any()
        for mine, yours in zip(parts(final), parts(end), strict=True):
            close(mine[row], yours[0])


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("filler", [9.0, math.nan, math.inf])
def test_what_stands_in_the_padding_changes_nothing(name, filler):
    results = []
    for value in (0.0, filler):
        ours, x = layer(name), random(2, 6, 3)
        x[0, 4:] = x[1, 2:] = value
        x.requires_grad_()
        outputs, final = ours(x, lengths=torch.tensor([4, 2]))
        (outputs.square().sum() + parts(final)[0].sum()).backward()
        assert not x.grad[0, 4:].any() and not x.grad[1, 2:].any()
        results.append([outputs, *parts(final), x.grad, *(p.grad for p in ours.parameters())])
    for before, after in zip(*results, strict=True):
        close(before, after, atol=0)


def test_a_linear_recurrence_that_explodes_stays_finite_through_padding():
    rnn = ones(1e30, "identity")
    outputs, final = rnn(torch.ones(1, 40, 1), lengths=[1])
    final.sum().backward()
    assert final.item() == 1 and all(p.grad.isfinite().all() for p in rnn.parameters())


@pytest.mark.parametrize("name", CELLS)
def test_samples_and_the_past_are_independent(name):
    ours, x = layer(name), random(3, 5, 3)
    changed = x.clone()
    changed[1, 2] += 1
    difference = (ours(changed)[0] - ours(x)[0]).abs().amax(dim=-1)
    assert not difference[[0, 2]].any() and not difference[1, :2].any()
    assert (difference[1, 2:] > 0).all()


@pytest.mark.parametrize("name", CELLS)
def test_empty_batches_and_sequences(name):
    ours, state = layer(name), first_state(name)
    outputs, final = ours(random(2, 0, 3), state)
    assert outputs.shape == (2, 0, 5)
    for mine, given_ in zip(parts(final), parts(state), strict=True):
        assert torch.equal(mine, given_)
    assert ours(random(0, 4, 3))[0].shape == ours(random(0, 4, 3), lengths=[])[0].shape == (0, 4, 5)


@pytest.mark.parametrize("name", CELLS)
def test_the_input_is_left_alone_and_the_dtype_is_kept(name):
    ours, x = layer(name).float(), random(2, 4, 3).float()
    x[1, 2:] = math.nan
    before = x.clone()
    outputs, final = ours(x, lengths=[4, 2])
    assert torch.equal(x.nan_to_num(7), before.nan_to_num(7))
    assert {outputs.dtype, *(part.dtype for part in parts(final))} == {torch.float32}


@pytest.mark.parametrize("name", CELLS)
def test_under_autocast(name):
    ours, x = layer(name).float(), random(2, 4, 3).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, _ = ours(x, lengths=[4, 2])
    assert (outputs.float() - ours(x, lengths=[4, 2])[0]).abs().max() < 0.05


# Bad input


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda m: m(torch.zeros(2, 4, 9)), r"\(B, T, 3\).*\(2, 4, 9\)"),
        (lambda m: m(torch.zeros(4, 3)), r"\(B, T, 3\).*\(4, 3\)"),
        (lambda m: m(torch.zeros(2, 4, 3)), "float32.*float64"),
        (lambda m: m(random(2, 4, 3), torch.zeros(1, 5).double()), r"\(2, 5\).*\(1, 5\)"),
        (lambda m: m(random(2, 4, 3), torch.zeros(1, 2, 5).double()), r"\(2, 5\).*\(1, 2, 5\)"),
        (lambda m: m(random(2, 4, 3), torch.zeros(2, 5)), "h0 is torch.float32.*x is torch.float64"),
        (lambda m: m(random(2, 4, 3), 0), r"\(2, 5\), not int"),
        (lambda m: m(random(2, 4, 3), lengths=[4]), r"2 integers, one a sequence, not .*\(1,\)"),
        (lambda m: m(random(2, 4, 3), lengths=[4, 5]), r"0\.\.4.*not in 4\.\.5"),
        (lambda m: m(random(2, 4, 3), lengths=[-1, 4]), r"0\.\.4.*not in -1\.\.4"),
        (lambda m: m(random(2, 4, 3), lengths=[4.0, 2.0]), "integers"),
        (lambda m: m(random(2, 4, 3), lengths=torch.tensor([True, False])), "integers"),
        (lambda m: m(random(2, 4, 3), lengths="ab"), "2 integers, not str"),
    ],
)
@pytest.mark.parametrize("name", ["elman", "gru"])
def test_bad_calls_name_what_disagrees(name, call, message):
    with pytest.raises(ValueError, match=message):
        call(layer(name))


@pytest.mark.parametrize("state", [torch.zeros(2, 5).double(), (torch.zeros(2, 5).double(),), 3])
def test_the_lstm_wants_a_pair(state):
    with pytest.raises(ValueError, match=r"pair \(h, c\)"):
        layer("lstm")(random(2, 4, 3), state)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ElmanRNN(0, 5), "input_size must be an integer of at least 1, not 0"),
        (lambda: GRU(3, 2.5), "hidden_size must be an integer of at least 1, not 2.5"),
        (lambda: ElmanRNN(3, 5, "sigmoid"), "'tanh', 'relu', 'identity', not 'sigmoid'"),
        (lambda: LSTM(3, 5, forget_bias=math.nan), "forget_bias must be finite, not nan"),
        (lambda: RecurrentModel(7, 5, cell="rnn"), "unknown cell 'rnn'; known are elman, lstm, gru"),
        (lambda: RecurrentModel(7, 5, read_out="mean"), "'pooled', 'last', 'token', not 'mean'"),
        (lambda: RecurrentModel(7, 5, cell="gru", forget_bias=1.0), "'gru' has no forget gate"),
        (lambda: RecurrentModel(7, 5, hidden=0), "hidden must be an integer of at least 1, not 0"),
        (lambda: RecurrentModel(7, 5, num_layers=0), "num_layers must be"),
        (lambda: RecurrentModel(0, 5), "vocab_size must be"),
        (lambda: RecurrentModel(7, 0), "num_classes must be"),
    ],
)
def test_bad_sizes_and_names(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_activations_are_what_they_are_called():
    x = torch.tensor([-1.0, 2.0])
    assert ACTIVATIONS["identity"](x) is x
    assert ACTIVATIONS["relu"](x).tolist() == [0, 2]
    close(ACTIVATIONS["tanh"](x), x.tanh(), atol=0)


# The model


def model(seed=0, **options):
    with seeded(seed):
        return RecurrentModel(**{"vocab_size": 7, "num_classes": 4, "d_model": 3, "hidden": 5, **options}).double()


def symbols(batch=3, length=6, seed=0):
    return torch.randint(7, (batch, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("read_out", READ_OUTS)
@pytest.mark.parametrize("num_layers", [1, 2])
def test_a_padded_model_is_its_sequences_one_by_one(cell, read_out, num_layers):
    ours, tokens, lengths = model(cell=cell, read_out=read_out, num_layers=num_layers), symbols(), [6, 4, 1]
    key_mask = torch.arange(6) < torch.tensor(lengths)[:, None]
    scores = ours(tokens, key_mask)
    assert scores.shape == ((3, 6, 4) if read_out == "token" else (3, 4))
    for row, length in enumerate(lengths):
        alone = ours(tokens[row : row + 1, :length])[0]
        close(scores[row, :length] if read_out == "token" else scores[row], alone)


def test_the_last_read_out_is_the_final_state():
    ours, tokens = model(cell="gru", read_out="last"), symbols()
    close(ours(tokens), ours.head(ours.layers[0](ours.embedding(tokens))[1]))


@pytest.mark.parametrize(
    "tokens, key_mask, message",
    [
        (symbols().float(), None, "tokens must be an integer tensor"),
        (symbols() + 1, None, r"tokens must lie in 0\.\.6"),
        (symbols(), torch.ones(3, 6), "key_mask must be a boolean tensor.*float32"),
        (symbols(), torch.ones(3, 5, dtype=torch.bool), r"\(3, 6\).*\(3, 5\)"),
        (symbols(), torch.arange(6).expand(3, 6) > 1, "padding at the end"),
        (symbols(), torch.zeros(3, 6, dtype=torch.bool), "needs a real token"),
    ],
)
def test_bad_calls_of_the_model(tokens, key_mask, message):
    with pytest.raises(ValueError, match=message):
        model()(tokens, key_mask)


def test_the_forget_bias_reaches_every_layer():
    for lstm in model(cell="lstm", num_layers=2, forget_bias=2.0).layers:
        assert ((lstm.bias_ih + lstm.bias_hh)[5:10] == 2.0).all()


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("d_model", [32, 64])
def test_matching_width_is_the_nearest(cell, d_model):
    transformer = Transformer(10, 10, d_model, num_layers=2)

    def make(hidden):
        return RecurrentModel(10, 10, d_model, hidden, cell)

    state = torch.random.get_rng_state()
    width = matching_width(transformer, make)
    assert torch.equal(torch.random.get_rng_state(), state)
    target = parameter_count(transformer)
    gaps = [abs(parameter_count(make(near)) - target) for near in (width - 1, width, width + 1)]
    assert gaps[1] == min(gaps) and gaps[1] < 0.05 * target
    assert matching_width(make(1), make) == 1 and matching_width(make(2), make) == 2


def test_sequences_of_numbers():
    ours = model(vocab_size=None, num_classes=1, read_out="last", cell="gru")
    assert ours(random(3, 6)).shape == (3, 1)
    with pytest.raises(ValueError, match="floating tensor"):
        ours(symbols())
