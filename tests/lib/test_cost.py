"""Counts agree with counting by hand and with torch's counter, and what cannot be watched is refused."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from posenc.attention import MultiHeadAttention, scaled_dot_product_attention
from posenc.cost import Cost, count
from posenc.models import Transformer
from posenc.recurrent import GRU, LSTM, ElmanRNN


def explicit(layer):
    return lambda x: layer(x, need_weights=True)


@given(*[st.integers(1, 5)] * 4)
def test_matrix_products_by_hand(batch, n, k, m):
    a, b, c = torch.rand(n, k), torch.rand(k, m), torch.rand(m)
    many, more = torch.rand(batch, n, k), torch.rand(batch, k, m)
    assert count(torch.mm, a, b) == (n * k * m, 0, 1)
    assert count(torch.bmm, many, more) == (batch * n * k * m, 0, 1)
    assert count(torch.mv, a, b[:, 0].clone()) == (n * k, 0, 1)
    assert count(torch.addmm, c, a, b) == (n * k * m, 0, 1)
    assert count(torch.matmul, many, b) == (batch * n * k * m, 0, 1)
    assert count(F.linear, many, b.T, c) == (batch * n * k * m, 0, 1)
    assert count(torch.baddbmm, torch.rand(batch, n, m), many, more) == (batch * n * k * m, 0, 1)


def test_entries_by_hand():
    a, b = torch.rand(3, 4), torch.rand(4)
    assert count(lambda: a * b) == (0, 12, 1)
    assert count(lambda: a / b) == (0, 12, 1)
    assert count(lambda: a * 2 + b / 3 - a) == (0, 0, 0)
    assert count(lambda: (a + b).softmax(1).tanh()) == (0, 0, 0)


def test_depth_is_the_longest_chain_and_not_the_number():
    a = torch.rand(4, 4)
    assert count(lambda: (a @ a) + (a @ a) + (a * a)).depth == 1
    assert count(lambda: ((a @ a) @ a) @ a).depth == 3
    assert count(lambda: (a @ a) @ (a @ a)).depth == 2
    assert count(lambda: (a @ a) * (a @ a).tanh() + a * a).depth == 2


def test_results_that_are_thrown_away_leave_no_depth_behind():
    """Their memory is used again, at once and by tensors that wait for nothing."""

    def dropped():
        for _ in range(20):
            fresh = torch.zeros(4, 4)
            fresh @ fresh

    assert count(dropped).depth == 1


def test_depth_passes_through_views_and_changes_in_place():
    a = torch.rand(4, 4)
    assert count(lambda: (a @ a).T[1:].reshape(-1)[:4] * a[0]).depth == 2

    def filled():
        box = torch.zeros(2, 4, 4)
        box[1] = a @ a
        return box * box

    assert count(filled).depth == 2


@given(st.integers(1, 12), st.sampled_from([2, 4, 8]))
def test_attention(n, d):
    x = torch.rand(1, n, d)
    assert count(scaled_dot_product_attention, x, x, x) == (2 * n * n * d, 0, 2)
    for heads in (1, 2):  # more heads, the same work
        layer = MultiHeadAttention(d, heads)
        assert count(explicit(layer), x) == (4 * n * d * d + 2 * n * n * d, 0, 4)


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 5), st.integers(1, 3))
def test_recurrence(n, d, h, batch):
    x = torch.rand(batch, n, d)
    for cell, blocks in ((ElmanRNN, 1), (GRU, 3), (LSTM, 4)):
        cost = count(cell(d, h), x)
        assert cost.matrix == batch * n * blocks * h * (d + h)
        assert cost.elementwise == batch * n * h * {1: 0, 3: 2, 4: 3}[blocks]
        assert cost.depth == {1: n + 1, 3: 3 * n, 4: 3 * n + 1}[blocks]


@pytest.mark.parametrize("layer", [explicit(MultiHeadAttention(6, 3)), ElmanRNN(6, 6), GRU(6, 6), LSTM(6, 6)])
def test_torch_counts_the_same_on_explicit_forms(layer):
    x = torch.rand(2, 7, 6)
    with FlopCounterMode(display=False) as theirs:
        layer(x)
    assert theirs.get_total_flops() == 2 * count(layer, x).matrix


def test_torch_own_layers_are_counted_where_they_can_be_watched():
    x = torch.rand(2, 7, 6)
    assert count(nn.GRU(6, 6, batch_first=True), x).matrix == count(GRU(6, 6), x).matrix


@pytest.mark.parametrize(
    "hidden",
    [
        lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
        nn.LSTM(6, 6),
        nn.Conv1d(7, 7, 3),
        MultiHeadAttention(6, 3),
        lambda x: x.cumsum(dim=1),
        lambda x: x.cumprod(dim=1),
    ],
)
def test_what_multiplies_out_of_sight_is_refused(hidden):
    with pytest.raises(ValueError, match="multiplies out of sight"):
        count(hidden, torch.rand(2, 7, 6))


def test_a_whole_transformer_is_refused_and_its_parts_are_not():
    model = Transformer(5, 5, d_model=8)
    with pytest.raises(ValueError, match="attention"):
        count(model, torch.zeros(1, 4, dtype=torch.long))
    assert count(model.blocks[0].feed_forward, torch.rand(1, 4, 8)).matrix == 4 * 2 * 8 * 32


def test_no_gradient_is_kept_and_errors_come_through():
    seen = []
    count(lambda: seen.append(torch.is_grad_enabled()))
    assert seen == [False] and torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError):
        count(lambda: 1 / 0)
    assert count(lambda: None) == Cost(0, 0, 0)


@given(st.integers(1, 70))
def test_a_chain_in_half_the_steps(n):
    def tree(parts):
        while len(parts) > 1:
            parts = [a * b for a, b in zip(parts[::2], parts[1::2])] + parts[len(parts) - len(parts) % 2 :]
        return parts[0]

    cost = count(tree, [torch.rand(3) for _ in range(n)])
    assert cost == (0, 3 * (n - 1), math.ceil(math.log2(n)))
