"""Permutations, the gaps that measure symmetry, and the ceilings of what cannot see order."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from posenc.attention import MultiHeadAttention, causal_mask, scaled_dot_product_attention
from posenc.encodings import alibi_bias
from posenc.symmetry import (
    all_orders,
    equivariance_gap,
    first_token_ceiling,
    invariance_gap,
    largest_share,
    order_blind_ceiling,
    permute_tokens,
    reversal_ceiling,
    unseen_orders,
    unseen_rows,
)

ORDERS = st.integers(1, 6).flatmap(lambda n: st.permutations(range(n)))


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# Permuting


def test_place_t_holds_token_order_t():
    tokens = torch.tensor([[10, 20, 30, 40], [1, 2, 3, 4]])
    assert permute_tokens(tokens, [2, 0, 3, 1]).tolist() == [[30, 10, 40, 20], [3, 1, 4, 2]]
    vectors = torch.stack([tokens, -tokens], dim=-1)
    assert permute_tokens(vectors, [2, 0, 3, 1])[1].tolist() == [[3, -3], [1, -1], [4, -4], [2, -2]]


def test_only_the_token_axis_moves_when_all_axes_are_equally_long():
    x = torch.arange(27).reshape(3, 3, 3)
    moved = permute_tokens(x, [1, 2, 0])
    assert all(moved[b, t, d] == x[b, (t + 1) % 3, d] for b in range(3) for t in range(3) for d in range(3))


def test_it_is_the_product_with_a_permutation_matrix():
    order, x = [2, 0, 3, 1], random(2, 4, 5)
    matrix = torch.eye(4, dtype=torch.float64)[order]
    torch.testing.assert_close(permute_tokens(x, order), matrix @ x)


@pytest.mark.parametrize(
    "order",
    [
        [2, 1, 0],
        (2, 1, 0),
        range(2, -1, -1),
        np.arange(3)[::-1],
        np.array([2, 1, 0], dtype=np.uint8),
        torch.tensor([2, 1, 0]),
        torch.tensor([2, 1, 0], dtype=torch.int32),
        [np.int64(2), 1, torch.tensor(0)],
        all_orders(3)[-1],
        next(itertools.islice(itertools.permutations(range(3)), 5, None)),
    ],
)
def test_orders_of_every_form(order):
    assert permute_tokens(torch.tensor([[5, 6, 7]]), order).tolist() == [[7, 6, 5]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int32, torch.bool])
def test_the_result_is_new_and_of_the_same_kind(dtype):
    x = torch.tensor([[0, 1, 1]]).to(dtype)
    for order in ([0, 1, 2], [2, 0, 1]):
        moved = permute_tokens(x, order)
        assert moved.dtype == dtype
        moved[0, 0] = 1
        assert x.tolist() == [[0, 1, 1]]


def test_no_tokens_and_no_sequences():
    assert permute_tokens(torch.zeros(2, 0, 3), []).shape == (2, 0, 3)
    assert permute_tokens(torch.zeros(0, 2), [1, 0]).shape == (0, 2)


@given(ORDERS, st.data())
@settings(max_examples=30)
def test_permutations_compose_and_invert(first, data):
    """Q(PX) puts token first[second[t]] in place t; argsort undoes an order."""
    second = data.draw(st.permutations(range(len(first))))
    x = random(2, len(first), 3)
    both = [first[place] for place in second]
    assert torch.equal(permute_tokens(permute_tokens(x, first), second), permute_tokens(x, both))
    inverse = torch.tensor(first).argsort()
    assert torch.equal(permute_tokens(permute_tokens(x, first), inverse), x)


def test_gradients_travel_back_to_the_tokens_they_came_from():
    x = random(1, 3, 1).requires_grad_()
    (permute_tokens(x, [2, 0, 1]) * torch.tensor([1.0, 2.0, 3.0])[:, None]).sum().backward()
    assert x.grad[0, :, 0].tolist() == [2.0, 3.0, 1.0]


BAD_ORDERS = [
    [0, 1],
    [0, 1, 2, 3],
    [0, 0, 1],
    [1, 2, 3],
    [-1, 0, 1],
    [[0, 1, 2]],
    [0.0, 1.0, 2.0],
    [True, False, 2.5],
    torch.tensor([True, False, True]),
    torch.tensor([0.0, 1.0, 2.0]),
    np.array([0.0, 1.0, 2.0]),
    [[0], [1, 2], 3],
    {0, 1, 2},
    "012",
    ["0", "1", "2"],
    None,
    3,
    torch.tensor(3),
    [],
    [2**70, 0, 1],
]


@pytest.mark.parametrize("order", BAD_ORDERS)
def test_what_is_no_order_is_refused(order):
    x = random(2, 3, 4)
    for use in (permute_tokens, lambda x, order: equivariance_gap(abs, x, order), lambda x, order: invariance_gap(abs, x, order)):
        with pytest.raises(ValueError, match=r"order must be a permutation of 0\.\.2"):
            use(x, order)


def test_booleans_are_no_order():
    with pytest.raises(ValueError, match="permutation"):
        permute_tokens(random(1, 2), [True, False])


@pytest.mark.parametrize("x", [torch.zeros(3), torch.tensor(1.0), [[1, 2, 3]], np.zeros((1, 3)), None, "abc"])
def test_what_has_no_token_axis_is_refused(x):
    with pytest.raises(ValueError, match=r"x must be a tensor \(B, T, ...\), not"):
        permute_tokens(x, [0, 1, 2])


def test_an_array_is_named_as_one():
    with pytest.raises(ValueError, match=r"ndarray of shape \(1, 3\)"):
        permute_tokens(np.zeros((1, 3)), [0, 1, 2])


# The gaps


def test_gaps_of_a_running_sum():
    """x = [1, 2, 4]: running sums 1, 3, 7; reversed, 4, 6, 7 stand where 7, 3, 1 should."""
    x = torch.tensor([[1.0, 2.0, 4.0]])

    def running(x):
        return x.cumsum(1)

    assert equivariance_gap(running, x, [2, 1, 0]) == 6.0
    assert invariance_gap(running, x, [2, 1, 0]) == 3.0
    assert invariance_gap(lambda x: x[:, 0], x, [2, 1, 0]) == 3.0


def test_the_gap_is_the_largest_anywhere_and_never_negative():
    x = torch.tensor([[1.0, 2.0], [7.0, 3.0]])
    assert invariance_gap(lambda x: x, x, [1, 0]) == 4.0
    assert invariance_gap(lambda x: -x, x, [1, 0]) == 4.0
    assert isinstance(invariance_gap(lambda x: x, x, [1, 0]), float)


def test_equivariance_follows_the_order_and_not_its_inverse():
    x, order = random(1, 4, 2), [1, 2, 3, 0]
    assert equivariance_gap(lambda x: 2 * x, x, order) == 0.0
    assert equivariance_gap(lambda x: x.roll(1, dims=1), x, order) == 0.0  # a shift commutes with a shift
    assert equivariance_gap(lambda x: x.roll(1, dims=1), x, [1, 0, 2, 3]) > 0.1


@given(ORDERS.filter(lambda order: len(order) > 1), st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
@settings(max_examples=30)
def test_maps_of_every_symmetry(order, batch, width, seed):
    x = random(batch, len(order), width, seed=seed)
    moved = order != sorted(order)
    pointwise = nn.Sequential(nn.Linear(width, 4), nn.GELU(), nn.LayerNorm(4)).double()
    assert equivariance_gap(pointwise, x, order) < 1e-12
    assert equivariance_gap(lambda x: x - x.mean(1, keepdim=True), x, order) < 1e-12
    assert invariance_gap(lambda x: x.mean(1), x, order) < 1e-12
    assert invariance_gap(lambda x: x.amax(1), x, order) == 0.0
    assert (equivariance_gap(lambda x: x.cumsum(1), x, order) > 1e-9) == moved
    assert (invariance_gap(lambda x: x, x, order) > 1e-9) == moved
    codes = torch.arange(len(order), dtype=torch.float64)[:, None]
    assert (equivariance_gap(lambda x: x + codes, x, order) > 0.5) == moved


def test_attention_is_equivariant_not_invariant_and_pooled_invariant_until_positions_come():
    attend = MultiHeadAttention(4, 2).double()
    x, order = random(1, 5, 4), [2, 0, 4, 1, 3]
    assert equivariance_gap(attend, x, order) < 1e-12
    assert invariance_gap(attend, x, order) > 0.01
    assert invariance_gap(lambda x: attend(x).mean(1), x, order) < 1e-12
    codes = random(5, 4, seed=1)
    assert equivariance_gap(lambda x: attend(x + codes), x, order) > 0.01
    assert invariance_gap(lambda x: attend(x + codes).mean(1), x, order) > 0.001
    assert equivariance_gap(lambda x: attend(x, causal_mask(5)), x, order) > 0.01


def test_nan_and_infinity_are_reported():
    x = torch.tensor([[1.0, 2.0, 3.0]])
    for gap in (equivariance_gap, invariance_gap):
        assert math.isnan(gap(lambda x: x * math.nan, x, [2, 1, 0]))
        assert math.isnan(gap(lambda x: torch.where(x == 1, math.nan, 0.0), x, [2, 1, 0]))
        assert gap(lambda x: torch.full_like(x, -math.inf), x, [2, 1, 0]) == 0.0
    assert invariance_gap(lambda x: torch.where(x == 1, math.inf, 0.0), x, [2, 1, 0]) == math.inf


def test_outputs_that_are_not_floats():
    x = torch.tensor([[1, 2, 4]], dtype=torch.uint8)
    assert invariance_gap(lambda x: x, x, [2, 1, 0]) == 3.0  # and not 253, where 1 - 4 wraps around
    assert equivariance_gap(lambda x: x > 1, x, [2, 1, 0]) == 0.0
    assert invariance_gap(lambda x: x > 1, x, [2, 1, 0]) == 1.0
    assert invariance_gap(lambda x: x * 1j, x.float(), [2, 1, 0]) == 3.0
    assert invariance_gap(lambda x: x.argmax(1), x, [2, 1, 0]) == 2.0
    assert invariance_gap(lambda x: x[:, :0], x, [2, 1, 0]) == 0.0
    assert invariance_gap(lambda x: x, torch.tensor([[2**24, 2**24 + 1]]), [1, 0]) == 1.0  # equal as float32


def test_the_input_stays_as_it_is_even_if_the_map_writes_into_it():
    x = random(2, 3, 4)
    before = x.clone()
    assert equivariance_gap(lambda x: x.mul_(2), x, [2, 0, 1]) == 0.0
    assert invariance_gap(lambda x: x.mul_(2).mean(1), x, [2, 0, 1]) < 1e-12
    assert torch.equal(x, before)


def test_maps_with_parameters_are_measured_in_silence(recwarn):
    attend, x = nn.Linear(4, 4).double(), random(2, 3, 4)
    equivariance_gap(attend, x, [2, 0, 1])
    invariance_gap(attend, x.requires_grad_(), [2, 0, 1])
    assert not recwarn.list


@pytest.mark.parametrize(
    "f, said",
    [
        (lambda x: x.mean(1), "(2, 3)"),
        (lambda x: x[:, :2], "(2, 2, 4)"),
        (lambda x: x[:1], "(1, 3, 4)"),
        (lambda x: x.transpose(0, 1), "(3, 2, 4)"),
        (lambda x: x.sum(), "()"),
        (lambda x: (x, x), "tuple"),
        (lambda x: x.numpy(), "ndarray"),
        (lambda x: None, "NoneType"),
    ],
)
def test_equivariance_needs_the_batch_and_token_axes(f, said):
    with pytest.raises(ValueError) as error:
        equivariance_gap(f, random(2, 3, 4), [2, 0, 1])
    assert "f must keep (B, T) = (2, 3)" in str(error.value) and said in str(error.value)


@pytest.mark.parametrize("result", [None, 1.0, (torch.zeros(1),), np.zeros(3)])
def test_invariance_needs_a_tensor(result):
    with pytest.raises(ValueError, match="f must return a tensor, not"):
        invariance_gap(lambda x: result, random(2, 3, 4), [2, 0, 1])


def test_a_shape_that_depends_on_the_order_is_no_gap():
    x = torch.tensor([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError) as error:
        invariance_gap(lambda x: x[x > x[:, :1]], x, [2, 1, 0])
    assert "(2,) before" in str(error.value) and "(0,) after" in str(error.value)


# Every order


def test_all_orders_of_three():
    assert all_orders(3).tolist() == [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]


@pytest.mark.parametrize("length", [0, 1, 2, 5, 8, np.int64(4)])
def test_all_orders_are_all_different_sorted_and_legal(length):
    orders = all_orders(length)
    assert orders.shape == (math.factorial(length), length) and orders.dtype == torch.int64
    rows = [tuple(row) for row in orders.tolist()]
    assert rows == sorted(set(rows)) and all(sorted(row) == list(range(length)) for row in rows)


@pytest.mark.parametrize("length", [-1, 9, 100, 2.0, True, "3", None])
def test_lengths_out_of_reach(length):
    with pytest.raises(ValueError, match="length must be"):
        all_orders(length)


# What a bias leaves unseen


def ring(n):
    """A bias that looks at (key - query) mod n alone."""
    places = torch.arange(n)
    return random(n, seed=n)[(places - places[:, None]) % n]


def masked(n, seed=0):
    """Random numbers, a third of them minus infinity, but no row without a key."""
    bias = random(n, n, seed=seed)
    return bias.masked_fill((random(n, n, seed=seed + 1) < -0.4) & ~torch.eye(n, dtype=torch.bool), -math.inf)


DISTANCE = (torch.arange(5)[:, None] - torch.arange(5)).abs().double()
BIASES = {
    "nothing": (torch.zeros(5, 5), 120),
    "a constant in every row": (random(5, 1).expand(5, 5), 120),
    "a constant in every column": (random(1, 5).expand(5, 5), 1),
    "one number for oneself": (torch.eye(5) * 2, 120),
    "distance": (-DISTANCE, 2),
    "distance and a constant in every row": (-DISTANCE + random(5, 1), 2),
    "direction": (torch.arange(5.0) - torch.arange(5.0)[:, None], 1),
    "a ring": (ring(5), 5),
    "random": (random(5, 5), 1),
    "causal": (causal_mask(5), 1),
    "no one looks at token 4": (torch.arange(5).expand(5, 5) < 4, 24),
    "oneself alone": (torch.eye(5, dtype=torch.bool), 120),
    "two blocks": (torch.block_diag(torch.ones(2, 2), torch.ones(3, 3)).bool(), 12),
    "ALiBi, two heads": (alibi_bias(2, 5), 2),
    "one head sees what the other does not": (torch.stack([torch.zeros(5, 5).double(), ring(5)]), 5),
}


@pytest.mark.parametrize("bias, count", BIASES.values(), ids=BIASES)
def test_how_many_orders_stay_unseen(bias, count):
    orders = unseen_orders(bias)
    assert orders.shape == (count, 5)
    assert orders[0].tolist() == [0, 1, 2, 3, 4]
    assert {tuple(a[b].tolist()) for a in orders[:7] for b in orders} <= {tuple(a.tolist()) for a in orders}


@pytest.mark.parametrize("bias", [masked(4), masked(4, seed=5), ring(4), -DISTANCE[:4, :4], random(4, 4), torch.zeros(4, 4).double()])
def test_attention_is_blind_in_exactly_those_rows(bias):
    x, to_value = random(4, 3, seed=8), random(3, 2, seed=9)

    def rows(tokens, added):
        return scaled_dot_product_attention(tokens, tokens, tokens @ to_value, bias=added)[0]

    for other in (bias, masked(4, seed=20), bias + random(4, 1)):
        for order in all_orders(4):
            gaps = (rows(x[order], other) - rows(x, bias)[order]).abs().amax(dim=1)
            assert torch.equal(gaps < 1e-12, unseen_rows(bias, order, other)), order


def test_with_leading_axes_a_row_must_be_unseen_in_all_of_them():
    distance, lengths = -DISTANCE[:4, :4], [[1, 2, 3, 4, 5], [2, 3, 4, 5, 6], [3, 3, 3, 3, 3]]
    batches = torch.stack([torch.stack([distance * k for k in heads]) for heads in lengths])
    batches[2, 1] = ring(4)
    batches[0, 4, 2] = random(4)
    for order in all_orders(4):
        each = torch.stack([unseen_rows(bias, order) for bias in batches.flatten(0, 1)])
        assert torch.equal(unseen_rows(batches, order), each.all(dim=0))
        assert torch.equal(unseen_rows(batches, order, batches[..., :, :1] + batches), each.all(dim=0))
    assert unseen_orders(batches[1:2, :1]).tolist() == [[0, 1, 2, 3], [3, 2, 1, 0]]


def test_the_last_row_of_a_causal_mask_takes_no_notice_of_its_past():
    assert unseen_rows(causal_mask(4), [2, 0, 1, 3]).tolist() == [False, False, False, True]
    assert unseen_rows(causal_mask(4), [1, 0, 2, 3]).tolist() == [False, False, True, True]


def test_a_mask_stands_for_a_bias_that_forbids():
    forbids = torch.zeros(4, 4).masked_fill(~causal_mask(4), -math.inf)
    for bias, other in ((causal_mask(4), forbids), (forbids, causal_mask(4))):
        assert unseen_rows(bias, [0, 1, 2, 3], other).all()


def test_a_row_without_keys_is_unseen_wherever_it_moves():
    mask = torch.tensor([[False, False, False], [True, True, True], [True, True, True]])
    assert unseen_rows(mask, [0, 2, 1]).all() and not unseen_rows(mask, [1, 0, 2])[:2].any()


def test_large_numbers_in_one_row_do_not_blunt_another():
    bias = torch.zeros(3, 3, dtype=torch.float64)
    bias[0], bias[1, 2] = 1e10, 1.0
    assert unseen_rows(bias, [0, 2, 1]).tolist() == [True, False, False]


def test_narrow_types_and_whole_numbers():
    keys = torch.linspace(0, 1, 5)
    for dtype in (torch.float32, torch.float64):
        row_constants = (torch.zeros(5, 5) + 100 * keys[:, None]).to(dtype) + keys.flip(0)[:, None].to(dtype)
        assert len(unseen_orders(row_constants)) == 120
    assert len(unseen_orders((torch.arange(5)[:, None] - torch.arange(5)).abs())) == 2


@pytest.mark.parametrize(
    "bias, said",
    [
        (torch.zeros(3, 4), "(3, 4)"),
        (torch.zeros(3), "(3,)"),
        (torch.zeros(0, 0), "(0, 0)"),
        (torch.zeros(2, 2, dtype=torch.complex64), "complex64"),
        ([[0, 1], [1, 0]], "list"),
        (torch.full((2, 2), math.nan), "NaN"),
        (torch.full((2, 2), math.inf), "infinity"),
    ],
)
def test_bad_biases(bias, said):
    for ask in (unseen_orders, lambda b: unseen_rows(b, [1, 0])):
        with pytest.raises(ValueError, match="bias must") as error:
            ask(bias)
        assert said in str(error.value)


def test_two_biases_of_different_shape():
    with pytest.raises(ValueError, match=r"\(3, 3\) and \(2, 3, 3\)"):
        unseen_rows(torch.zeros(3, 3), [0, 1, 2], torch.zeros(2, 3, 3))


def test_an_order_of_another_length():
    with pytest.raises(ValueError, match="permutation of 0..2"):
        unseen_rows(torch.zeros(3, 3), [1, 0])


# Ceilings


def best_by_enumeration(length, symbols, target):
    """The best order-blind score over all sequences of uniform symbols, from the definition, exactly.

    `target(sequence)` is one answer, or a tuple of one a token. For every thing that such a rule can see
    the answers are counted; it gives the commonest.
    """
    seen = {}
    for sequence in itertools.product(range(symbols), repeat=length):
        bag = frozenset(Counter(sequence).items())
        answer = target(sequence)
        pairs = [((bag, own), a) for own, a in zip(sequence, answer)] if isinstance(answer, tuple) else [(bag, answer)]
        for view, a in pairs:
            seen.setdefault(view, []).append(a)
    total = sum(map(len, seen.values()))
    return Fraction(sum(max(map(answers.count, answers)) for answers in seen.values()), total)


SMALL = [(2, 1), (2, 2), (2, 5), (3, 2), (3, 4), (4, 2), (4, 3), (5, 2), (5, 3), (6, 2), (6, 3), (7, 2)]


@pytest.mark.parametrize("length, symbols", SMALL)
def test_reversal_against_enumeration(length, symbols):
    exact = best_by_enumeration(length, symbols, lambda sequence: sequence[::-1])
    assert reversal_ceiling(length, symbols) == pytest.approx(float(exact), abs=1e-14)


@pytest.mark.parametrize("length, symbols", [(1, 1), (1, 4), *SMALL])
def test_first_token_against_enumeration(length, symbols):
    exact = best_by_enumeration(length, symbols, lambda sequence: sequence[0])
    assert first_token_ceiling(length, symbols) == pytest.approx(float(exact), abs=1e-14)


@pytest.mark.parametrize("draws, symbols", [(1, 3), (2, 2), (3, 3), (5, 2), (4, 5), (6, 3)])
def test_largest_share_against_enumeration(draws, symbols):
    most = [max(Counter(s).values()) for s in itertools.product(range(symbols), repeat=draws)]
    assert largest_share(draws, symbols) == pytest.approx(sum(most) / len(most) / draws, abs=1e-14)


@pytest.mark.parametrize(
    "length, symbols, percent", [(16, 10, 24.1), (8, 10, 31.7), (12, 8, 29.4), (10, 4, 43.0)]
)
def test_reversal_numbers(length, symbols, percent):
    assert round(100 * reversal_ceiling(length, symbols), 1) == percent


def test_first_token_numbers():
    assert round(100 * first_token_ceiling(8, 10), 1) == 30.0
    assert first_token_ceiling(1, 7) == 1.0
    assert first_token_ceiling(2, 2) == 0.75
    assert first_token_ceiling(5, 1) == 1.0
    assert reversal_ceiling(2, 9) == 1.0  # the other token is the mirror image
    assert largest_share(2, 10) == pytest.approx(0.55)
    assert isinstance(largest_share(2, 10), float)


def test_odd_lengths_include_the_middle_token():
    assert reversal_ceiling(5, 3) == largest_share(5, 3)
    assert reversal_ceiling(6, 3) == largest_share(5, 3)
    assert reversal_ceiling(7, 3) == largest_share(7, 3)


@given(st.integers(2, 20), st.integers(2, 9))
@settings(max_examples=25)
def test_shares_fall_with_length_and_with_symbols_and_stay_above_chance(draws, symbols):
    share = largest_share(draws, symbols)
    assert 1 / symbols < share < 1
    assert share <= largest_share(draws - 1, symbols) and share < largest_share(draws, symbols - 1)


def test_long_sequences_stay_exact():
    assert abs(largest_share(60, 2) - (0.5 + math.comb(60, 30) / 2**61)) < 1e-15


@pytest.mark.parametrize("bad", [0, -1, True, 2.0, "2", None])
def test_bad_counts(bad):
    for call in (lambda: largest_share(bad, 2), lambda: first_token_ceiling(bad, 2)):
        with pytest.raises(ValueError, match="draws must be|length must be"):
            call()
    for call in (lambda: largest_share(2, bad), lambda: first_token_ceiling(2, bad), lambda: reversal_ceiling(2, bad)):
        with pytest.raises(ValueError, match="symbols must be"):
            call()
    for length in (bad, 1):
        with pytest.raises(ValueError, match="length must be an integer of at least 2"):
            reversal_ceiling(length, 2)


def test_numpy_counts_do_not_overflow():
    assert reversal_ceiling(np.int32(32), np.int32(10)) == reversal_ceiling(32, 10)


# The ceiling of given examples


def test_which_came_first_is_a_coin_toss():
    tokens = torch.tensor([[0, 1], [1, 0], [2, 5], [5, 2]])
    assert order_blind_ceiling(tokens, tokens[:, 0]) == 0.5
    assert order_blind_ceiling(tokens, tokens.sum(1)) == 1.0
    assert order_blind_ceiling(tokens, tokens.flip(1)) == 1.0  # the other one


def test_repeated_words_share_one_answer():
    """the dog chased the cat: both "the" must be told the same, so one of their two answers is lost."""
    sentence = torch.tensor([[0, 1, 2, 0, 3]])
    assert order_blind_ceiling(sentence, torch.arange(5)[None]) == 0.8
    assert order_blind_ceiling(sentence, torch.tensor([[7, 1, 2, 7, 3]])) == 1.0


def test_how_often_a_symbol_occurs_is_seen():
    tokens = torch.tensor([[0, 0, 1], [0, 1, 1], [1, 0, 0]])
    assert order_blind_ceiling(tokens, torch.tensor([0, 1, 0])) == 1.0
    assert order_blind_ceiling(tokens, torch.tensor([0, 1, 1])) == pytest.approx(2 / 3)


def test_one_target_a_sequence_and_one_a_token_are_told_apart_when_batch_and_length_agree():
    tokens = torch.tensor([[0, 1], [1, 0]])
    assert order_blind_ceiling(tokens, torch.tensor([0, 1])) == 0.5
    assert order_blind_ceiling(tokens, torch.tensor([[0, 1], [1, 0]])) == 1.0
    assert order_blind_ceiling(tokens, torch.tensor([[0, 1], [0, 1]])) == 0.5


@pytest.mark.parametrize("length, symbols", [(2, 3), (3, 3), (4, 3), (5, 2)])
def test_whole_distributions_give_the_closed_forms(length, symbols):
    tokens = torch.cartesian_prod(*[torch.arange(symbols)] * length)
    assert order_blind_ceiling(tokens, tokens.flip(1)) == pytest.approx(reversal_ceiling(length, symbols))
    assert order_blind_ceiling(tokens, tokens[:, 0]) == pytest.approx(first_token_ceiling(length, symbols))


@st.composite
def examples(draw):
    """Few symbols and few answers, so that many examples look alike."""
    batch, length = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    tokens = torch.tensor(draw(st.lists(st.lists(st.integers(0, 2), min_size=length, max_size=length), min_size=batch, max_size=batch)))
    per_token = draw(st.booleans())
    size = tokens.numel() if per_token else batch
    targets = torch.tensor(draw(st.lists(st.integers(-1, 1), min_size=size, max_size=size)))
    return tokens, targets.reshape(tokens.shape if per_token else (batch,))


@given(examples())
@settings(max_examples=60)
def test_no_rule_does_better_and_one_does_as_well(problem):
    """An independent reckoning: for every view the best of all constant answers, by trying each."""
    tokens, targets = problem
    one_hot = torch.nn.functional.one_hot(tokens, 3)
    bags = one_hot.sum(1)
    if targets.dim() == 2:
        bags = torch.cat([bags[:, None].expand_as(one_hot), one_hot], dim=-1)
    views, answers = bags.reshape(targets.numel(), -1), targets.flatten()
    right = 0
    for view in views.unique(dim=0):
        own = answers[(views == view).all(-1)]
        right += max(int((own == guess).sum()) for guess in (-1, 0, 1))
    assert order_blind_ceiling(tokens, targets) == pytest.approx(right / targets.numel(), abs=1e-15)


@given(examples(), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_the_order_of_examples_and_tokens_does_not_matter(problem, source):
    tokens, targets = problem
    rows, places = list(range(tokens.shape[0])), list(range(tokens.shape[1]))
    source.shuffle(rows)
    moved = targets[rows]
    for row in range(len(rows)):
        source.shuffle(places)
    ceiling = order_blind_ceiling(tokens[rows][:, places], moved[:, places] if targets.dim() == 2 else moved)
    assert ceiling == pytest.approx(order_blind_ceiling(tokens, targets))


def test_the_order_blind_layer_stays_under_its_ceiling():
    """A model without positions, trained on nothing: its best guesses on a whole orbit."""
    orders = all_orders(4)
    scores = MultiHeadAttention(4, 2)(nn.functional.one_hot(orders, 4).float())
    guesses = scores.argmax(-1)
    accuracy = (guesses == orders.flip(1)).double().mean().item()
    assert accuracy <= order_blind_ceiling(orders, orders.flip(1)) + 1e-12
    assert order_blind_ceiling(orders, orders.flip(1)) == pytest.approx(1 / 3)


def test_examples_are_left_as_they_are():
    tokens = torch.tensor([[2, 0, 1]], dtype=torch.int16)
    targets = torch.tensor([1])
    order_blind_ceiling(tokens, targets)
    assert tokens.tolist() == [[2, 0, 1]] and targets.tolist() == [1]


@pytest.mark.parametrize(
    "tokens, said",
    [
        (torch.zeros(3, dtype=torch.long), "(3,)"),
        (torch.zeros(2, 3, 4, dtype=torch.long), "(2, 3, 4)"),
        (torch.zeros(2, 3), "float32"),
        (torch.zeros(2, 3, dtype=torch.complex64), "complex64"),
        (torch.zeros(0, 3, dtype=torch.long), "(0, 3)"),
        (torch.zeros(2, 0, dtype=torch.long), "(2, 0)"),
        (np.zeros((2, 3), int), "ndarray"),
        ([[1, 2, 3]], "list"),
    ],
)
def test_bad_tokens(tokens, said):
    with pytest.raises(ValueError) as error:
        order_blind_ceiling(tokens, torch.zeros(2, dtype=torch.long))
    assert "tokens must be a non-empty integer tensor" in str(error.value) and said in str(error.value)


@pytest.mark.parametrize(
    "targets, said",
    [
        (torch.zeros(3, dtype=torch.long), "(3,)"),
        (torch.zeros(3, 2, dtype=torch.long), "(3, 2)"),
        (torch.zeros(2, 1, dtype=torch.long), "(2, 1)"),
        (torch.zeros(2, 3, 1, dtype=torch.long), "(2, 3, 1)"),
        (torch.tensor(1), "()"),
        (torch.full((2,), math.nan), "float32"),
        (np.zeros(2, int), "ndarray"),
        ([0, 1], "list"),
        (None, "NoneType"),
    ],
)
def test_bad_targets(targets, said):
    with pytest.raises(ValueError) as error:
        order_blind_ceiling(torch.zeros(2, 3, dtype=torch.long), targets)
    assert "targets must be" in str(error.value) and "(2, 3)" in str(error.value) and said in str(error.value)
