"""Attention: exact values, equality with torch, and what no input may do to it."""

import inspect
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from posenc.attention import MultiHeadAttention, causal_mask, scaled_dot_product_attention

INF = math.inf
PRECISE = {"rtol": 0, "atol": 1e-12}
SINGLE = {"rtol": 1e-5, "atol": 1e-6}


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def random_mask(*shape, seed=0, full_rows=True):
    mask = torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) < 0.6
    if full_rows:
        mask[..., 0] = True
    return mask


def layer(d_model=12, num_heads=3, position=None, dtype=torch.float64, seed=0):
    """A layer with known weights that leaves the global generator alone."""
    made = MultiHeadAttention(d_model, num_heads, position).to(dtype)
    with torch.no_grad():
        for i, parameter in enumerate(made.parameters()):
            parameter.copy_(0.4 * random(*parameter.shape, seed=100 * seed + i))
    return made


def identity_layer(d_model, num_heads, position=None):
    """Projections that hand the tokens on as they are."""
    made = MultiHeadAttention(d_model, num_heads, position).double()
    with torch.no_grad():
        for projection in (made.to_query, made.to_key, made.to_value, made.to_output):
            projection.weight.copy_(torch.eye(d_model))
            projection.bias.zero_()
    return made


def torch_twin(ours):
    """torch's own layer with our weights."""
    theirs = nn.MultiheadAttention(ours.d_model, ours.num_heads, batch_first=True).to(ours.to_query.weight.dtype)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([p.weight for p in (ours.to_query, ours.to_key, ours.to_value)]))
        theirs.in_proj_bias.copy_(torch.cat([p.bias for p in (ours.to_query, ours.to_key, ours.to_value)]))
        theirs.out_proj.weight.copy_(ours.to_output.weight)
        theirs.out_proj.bias.copy_(ours.to_output.bias)
    return theirs


def weights_of_scores(scores, mask=None, bias=None):
    """The weights when the scaled scores are exactly `scores`, through the function's own door."""
    scores = torch.tensor(scores, dtype=torch.float64)
    width = scores.shape[-1]
    query, key = scores * math.sqrt(width), torch.eye(width, dtype=torch.float64)
    return scaled_dot_product_attention(query, key, key, mask, bias)[1]


def close(a, b, **tolerance):
    torch.testing.assert_close(a, b, **(tolerance or PRECISE))


def tensor(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


# Exact values


def test_softmax_runs_over_the_keys():
    close(weights_of_scores([[1, 2], [3, 4]]), tensor([[0.268941421, 0.731058579]] * 2), rtol=0, atol=1e-8)


def test_one_query_over_two_keys_is_not_all_ones():
    query, key = tensor([[0.0, 0.0]]), tensor([[1.0, 2.0], [3.0, 4.0]])
    output, weights = scaled_dot_product_attention(query, key, key)
    close(weights, tensor([[0.5, 0.5]]))
    close(output, tensor([[2.0, 3.0]]))


def test_rows_sum_to_one_and_columns_do_not():
    weights = scaled_dot_product_attention(random(2, 4), random(3, 4, seed=1), random(3, 5, seed=2))[1]
    close(weights.sum(-1), torch.ones(2, dtype=torch.float64))
    assert (weights.sum(-2) - 1).abs().min() > 0.01


def test_scores_are_divided_by_the_root_of_the_width():
    query, key = tensor([[1.0, 0.0]]), torch.eye(2, dtype=torch.float64)
    close(scaled_dot_product_attention(query, key, key)[1], tensor([[0.6697615493, 0.3302384507]]), rtol=0, atol=1e-9)


def test_the_width_that_scales_is_that_of_a_head():
    """d_model 64 and 4 heads: the raw scores [8, 0] are divided by 4, not by 8, and not left alone."""
    x = torch.zeros(1, 2, 64, dtype=torch.float64)
    x[0, 0, ::16] = math.sqrt(8.0)  # token 0 scores 8 against itself and 0 against token 1, in every head
    _, weights = identity_layer(64, 4)(x, need_weights=True)
    close(weights[0, :, 0], tensor([[0.880797078, 0.119202922]] * 4), rtol=0, atol=1e-8)
    _, weights = identity_layer(64, 1)(x / 2, need_weights=True)  # one head: 4 · 8 / 4 = 8, over sqrt(64)
    close(weights[0, 0, 0], tensor([0.731058579, 0.268941421]), rtol=0, atol=1e-8)


def test_values_may_be_wider_than_queries_and_do_not_change_the_scale():
    query, key = random(3, 4), random(5, 4, seed=1)
    narrow, wide = random(5, 1, seed=2), random(5, 9, seed=3)
    output, weights = scaled_dot_product_attention(query, key, wide)
    assert output.shape == (3, 9)
    close(weights, scaled_dot_product_attention(query, key, narrow)[1])
    close(output, torch.softmax(query @ key.T / 2, dim=-1) @ wide)


def test_causal_mask_of_three():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    weights = weights_of_scores([[0, 0, 0]] * 3, causal_mask(3))
    close(weights, tensor([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]))


@pytest.mark.parametrize("length", [0, 1, 2, 5, np.int64(4)])
def test_causal_mask_sizes(length):
    mask = causal_mask(length)
    assert mask.shape == (length, length) and mask.dtype == torch.bool
    assert mask.sum() == length * (length + 1) // 2
    assert mask.device.type == "cpu" and causal_mask(length, "meta").device.type == "meta"


@pytest.mark.parametrize("explicit", [True, False])
def test_a_token_influences_itself_and_what_follows_only(explicit):
    attend, x = layer(), random(1, 6, 12, seed=3)

    def run(x):
        return attend(x, causal_mask(6), need_weights=True)[0] if explicit else attend(x, causal_mask(6))

    before = run(x)
    for t in range(6):
        changed = x.clone()
        changed[0, t] += 1.0
        moved = (run(changed) - before).abs().amax(-1)[0]
        assert (moved[:t] == 0).all() and (moved[t:] > 1e-6).all()


def test_true_means_may_attend_as_in_torchs_function():
    """The upper triangle as a mask: the last query has no key, the first sees only the future."""
    future = torch.ones(3, 3, dtype=torch.bool).triu(1)
    output, weights = scaled_dot_product_attention(random(3, 2), random(3, 2, seed=1), random(3, 2, seed=2), future)
    assert weights[0, 0] == 0 and (weights[2] == 0).all() and (output[2] == 0).all()
    close(weights[1], tensor([0.0, 0.0, 1.0]))
    args = random(1, 3, 2), random(1, 3, 2, seed=1), random(1, 3, 2, seed=2)
    close(scaled_dot_product_attention(*args, ~future)[0], F.scaled_dot_product_attention(*args, is_causal=True))


def test_a_bias_is_added_to_the_scaled_scores():
    close(weights_of_scores([[0, 0]], bias=tensor([[0.0, 1.0]])), tensor([[0.268941421, 0.731058579]]), atol=1e-8, rtol=0)
    close(weights_of_scores([[1, 2]], bias=tensor([[2.0, 1.0]])), tensor([[0.5, 0.5]]))
    wide = torch.zeros(1, 16, dtype=torch.float64)
    weights = scaled_dot_product_attention(wide, torch.zeros(2, 16).double(), torch.zeros(2, 1).double(), None, tensor([[0.0, 1.0]]))[1]
    close(weights, tensor([[0.268941421, 0.731058579]]), atol=1e-8, rtol=0)


def test_a_constant_along_a_row_of_the_bias_changes_nothing():
    args = random(2, 3, 4), random(2, 5, 4, seed=1), random(2, 5, 6, seed=2)
    bias = random(3, 5, seed=3)
    shifted = bias + random(3, 1, seed=4)
    close(scaled_dot_product_attention(*args, None, shifted)[1], scaled_dot_product_attention(*args, None, bias)[1])


# Rows with nothing to attend to

EMPTY_ROW = 2


def closed(form, *shape, dtype=torch.float64):
    """(mask, bias) that leave row 2 without a key, as a mask, as a bias, or as both halves of one."""
    mask = torch.ones(shape, dtype=torch.bool)
    bias = torch.zeros(shape, dtype=dtype)
    if form == "mask":
        mask[..., EMPTY_ROW, :] = False
        return mask, None
    if form == "bias":
        bias[..., EMPTY_ROW, :] = -INF
        return None, bias
    mask[..., EMPTY_ROW, 0::2] = False
    bias[..., EMPTY_ROW, 1::2] = -INF
    return mask, bias


@pytest.mark.parametrize("form", ["mask", "bias", "both"])
def test_an_empty_row_is_zero_in_weights_output_and_gradient(form):
    args = [random(2, 4, 3, seed=i).requires_grad_() for i in range(3)]
    mask, bias = closed(form, 4, 4)
    if bias is not None:
        bias.requires_grad_()
    output, weights = scaled_dot_product_attention(*args, mask, bias)
    assert (weights[:, EMPTY_ROW] == 0).all() and (output[:, EMPTY_ROW] == 0).all()
    (output * random(*output.shape, seed=9)).sum().backward()
    for argument in args:
        assert argument.grad.isfinite().all()
    assert (args[0].grad[:, EMPTY_ROW] == 0).all()
    assert (args[0].grad[:, [0, 1, 3]].abs().sum(-1) > 0).all()
    if bias is not None:
        assert bias.grad.isfinite().all() and (bias.grad[EMPTY_ROW] == 0).all()


@pytest.mark.parametrize("form", ["mask", "bias", "both"])
def test_an_empty_row_sends_no_gradient_at_all(form):
    args = [random(4, 3, seed=i).requires_grad_() for i in range(3)]
    output, _ = scaled_dot_product_attention(*args, *closed(form, 4, 4))
    output[EMPTY_ROW].sum().backward()
    assert all((argument.grad == 0).all() for argument in args)


@pytest.mark.parametrize("form", ["mask", "bias", "both"])
def test_no_nan_arises_even_on_the_way_back(form):
    args = [random(4, 3, seed=i).requires_grad_() for i in range(3)]
    with torch.autograd.set_detect_anomaly(True):
        scaled_dot_product_attention(*args, *closed(form, 4, 4))[0].sum().backward()


@pytest.mark.parametrize("form", ["mask", "bias", "both"])
def test_the_other_rows_do_not_notice(form):
    args = random(2, 4, 3), random(2, 4, 3, seed=1), random(2, 4, 5, seed=2)
    output, weights = scaled_dot_product_attention(*args, *closed(form, 4, 4))
    plain_output, plain_weights = scaled_dot_product_attention(*args)
    rows = [0, 1, 3]
    assert torch.equal(output[:, rows], plain_output[:, rows]) and torch.equal(weights[:, rows], plain_weights[:, rows])


@pytest.mark.parametrize("form", ["mask", "bias", "both"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_the_layer_has_zero_heads_where_there_is_nothing_to_attend_to(form, need_weights):
    mask, bias = closed(form, 4, 4)
    attend = layer(position=lambda q, k: (q, k, bias))
    x = random(2, 4, 12).requires_grad_()
    result = attend(x, mask, need_weights=need_weights)
    output = result[0] if need_weights else result
    close(output[:, EMPTY_ROW], attend.to_output.bias.expand(2, -1))
    output.square().sum().backward()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in attend.parameters())
    if need_weights:
        assert (result[1][:, :, EMPTY_ROW] == 0).all()


@pytest.mark.parametrize("need_weights", [True, False])
def test_lengths_with_an_empty_sequence_and_left_padding_under_a_causal_mask(need_weights):
    attend, x = layer(), random(4, 5, 12).requires_grad_()
    for key_mask in (
        torch.arange(5) < torch.tensor([5, 4, 1, 0])[:, None],  # lengths 5, 4, 1, 0
        torch.arange(5) >= torch.tensor([0, 1, 4, 5])[:, None],  # the same from the left
    ):
        result = attend(x, causal_mask(5), key_mask, need_weights)
        output = result[0] if need_weights else result
        assert output.isfinite().all()
        allowed = causal_mask(5) & key_mask[:, None]
        empty = ~allowed.any(-1)
        close(output[empty], attend.to_output.bias.expand(int(empty.sum()), -1))
        (gradient,) = torch.autograd.grad(output.square().sum(), x)
        assert gradient.isfinite().all()
        if need_weights:
            assert torch.equal(result[1] > 0, allowed[:, None].expand_as(result[1]))


# Masks meet the head axis


def zero_layer(d_model, num_heads):
    """A layer whose scores are all zero, so that the weights show the mask alone."""
    made = identity_layer(d_model, num_heads)
    nn.init.zeros_(made.to_query.weight)
    return made


def test_three_axes_mean_one_mask_a_sequence_also_when_batch_heads_and_length_agree():
    """B = H = 2: sample 0 sees everything, sample 1 is causal, in both heads."""
    mask = torch.stack([torch.ones(3, 3, dtype=torch.bool), causal_mask(3)])
    _, weights = zero_layer(4, 2)(random(2, 3, 4), mask, need_weights=True)
    full, causal = [1 / 3] * 3, [1.0, 0.0, 0.0]
    close(weights[:, :, 0], tensor([[full, full], [causal, causal]]))


@pytest.mark.parametrize("batch, heads, length", [(3, 3, 3), (2, 3, 4), (4, 2, 3), (3, 4, 2), (1, 2, 3), (2, 1, 2)])
@pytest.mark.parametrize("need_weights", [True, False])
def test_every_mask_shape_gives_what_the_full_mask_gives(batch, heads, length, need_weights):
    attend, x = layer(12, heads), random(batch, length, 12)
    shapes = {
        (length, length): lambda m: m[None, None],
        (batch, length, length): lambda m: m[:, None],
        (batch, 1, length, length): lambda m: m,
        (batch, heads, length, length): lambda m: m,
    }
    for seed, (shape, spread) in enumerate(shapes.items()):
        mask = random_mask(*shape, seed=seed)
        full = spread(mask).expand(batch, heads, length, length)
        got, expected = attend(x, mask, need_weights=need_weights), attend(x, full, need_weights=True)
        close(got[0] if need_weights else got, expected[0])
        if need_weights:
            assert (got[1] == 0)[~full].all() and (got[1] > 0)[full].all()
            close(got[1], expected[1])


def test_each_head_may_have_its_own_mask():
    mask = torch.stack([causal_mask(3), causal_mask(3).T])[None]
    _, weights = zero_layer(4, 2)(random(1, 3, 4), mask, need_weights=True)
    close(weights[0, 0, 0], tensor([1.0, 0.0, 0.0]))
    close(weights[0, 1, 2], tensor([0.0, 0.0, 1.0]))


@pytest.mark.parametrize("need_weights", [True, False])
def test_key_mask_hides_keys_and_joins_the_mask(need_weights):
    attend, x = layer(), random(3, 4, 12)
    key_mask = torch.tensor([[True, True, True, True], [True, True, True, False], [True, False, False, False]])

    def run(*masks):
        result = attend(x, *masks, need_weights=need_weights)
        return result[0] if need_weights else result

    close(run(None, key_mask), run(key_mask[:, None, :].expand(3, 4, 4)))
    close(run(causal_mask(4), key_mask), run(causal_mask(4) & key_mask[:, None, :]))
    per_head = random_mask(3, 3, 4, 4)
    close(run(per_head, key_mask), run(per_head & key_mask[:, None, None, :]))
    assert (run(None, key_mask)[0] - run()[0]).abs().max() < 1e-12
    assert (run(None, key_mask)[1] - run()[1]).abs().min() > 1e-9


@pytest.mark.parametrize("need_weights", [True, False])
def test_masked_padding_does_not_touch_the_real_tokens(need_weights):
    attend, x = layer(dtype=torch.float32), random(2, 5, 12, dtype=torch.float32)
    padded = torch.cat([x, torch.full((2, 2, 12), 9.0)], dim=1)
    real = torch.arange(7).expand(2, 7) < 5

    def run(x, key_mask=None):
        result = attend(x, key_mask=key_mask, need_weights=need_weights)
        return result[0] if need_weights else result

    close(run(padded, real)[:, :5], run(x), **SINGLE)
    assert (run(padded, ~real)[:, :5] - run(x)).abs().max() > 1


def test_a_mask_of_size_one_along_an_axis_holds_all_along_it():
    args = random(2, 3, 4, 5), random(2, 3, 6, 5, seed=1), random(2, 3, 6, 5, seed=2)
    for shape in [(2, 1, 1, 6), (1, 3, 4, 1), (1, 1, 1, 1), (2, 3, 1, 6), (4, 6)]:
        mask = random_mask(*shape, full_rows=False)
        full = mask.expand(2, 3, 4, 6)
        for a, b in zip(scaled_dot_product_attention(*args, mask), scaled_dot_product_attention(*args, full)):
            assert torch.equal(a, b)
        bias = random(*shape, seed=3)
        full = bias.expand(2, 3, 4, 6)
        close(scaled_dot_product_attention(*args, mask, bias)[0], scaled_dot_product_attention(*args, mask, full)[0])


# Equal to torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("form", ["plain", "mask", "bias", "causal"])
def test_the_function_equals_torchs(dtype, leading, form):
    T, S = (5, 5) if form == "causal" else (4, 6)
    query, key = random(*leading, T, 3, dtype=dtype), random(*leading, S, 3, seed=1, dtype=dtype)
    value = random(*leading, S, 3, seed=2, dtype=dtype)
    mask = {"mask": random_mask(*leading, T, S), "causal": causal_mask(5)}.get(form)
    bias = random(*leading, T, S, seed=3, dtype=dtype) if form == "bias" else None
    output, weights = scaled_dot_product_attention(query, key, value, mask, bias)
    theirs = F.scaled_dot_product_attention(query, key, value, attn_mask=mask if bias is None else bias)
    close(output, theirs, **(SINGLE if dtype == torch.float32 else PRECISE))
    assert output.dtype == weights.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("heads", [1, 3, 4])
@pytest.mark.parametrize("masked", ["none", "causal", "padding", "both", "per head"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_the_layer_equals_torchs(dtype, heads, masked, need_weights):
    B, T = 2, 5
    ours = layer(12, heads, dtype=dtype)
    theirs = torch_twin(ours)
    x = random(B, T, 12, dtype=dtype)
    mask = causal_mask(T) if masked in ("causal", "both") else None
    if masked == "per head":
        mask = random_mask(B, heads, T, T)
    key_mask = torch.arange(T) < torch.tensor([5, 3])[:, None] if masked in ("padding", "both") else None
    result = ours(x, mask, key_mask, need_weights)
    output, weights = result if need_weights else (result, None)
    drop = None if mask is None else ~mask  # True = ignored, over there
    expected, expected_weights = theirs(
        x,
        x,
        x,
        attn_mask=drop.flatten(0, 1) if drop is not None and drop.dim() == 4 else drop,
        key_padding_mask=None if key_mask is None else ~key_mask,
        need_weights=need_weights,
        average_attn_weights=False,
    )
    tolerance = SINGLE if dtype == torch.float32 else PRECISE
    close(output, expected, **tolerance)
    if need_weights:
        assert weights.shape == (B, heads, T, T)
        close(weights, expected_weights, **tolerance)


def test_weights_are_one_map_a_head_and_not_their_mean():
    attend, x = layer(12, 4), random(2, 3, 12)
    _, weights = attend(x, need_weights=True)
    assert weights.shape == (2, 4, 3, 3)
    close(weights.sum(-1), torch.ones(2, 4, 3, dtype=torch.float64))
    assert (weights[:, 0] - weights[:, 1]).abs().max() > 0.01
    _, mean = torch_twin(attend)(x, x, x)
    close(weights.mean(1), mean)


def test_the_layer_equals_a_loop_over_samples_and_heads():
    attend, x = layer(12, 3), random(2, 5, 12)
    output, weights = attend(x, need_weights=True)
    for b in range(2):
        heads = []
        for h in range(3):
            columns = slice(4 * h, 4 * h + 4)
            query, key, value = (p(x[b])[:, columns] for p in (attend.to_query, attend.to_key, attend.to_value))
            heads.append(torch.softmax(query @ key.T / 2, -1) @ value)
            close(weights[b, h], torch.softmax(query @ key.T / 2, -1))
        close(output[b], attend.to_output(torch.cat(heads, -1)))


def hooks(B, H, T):
    """Every form of what an encoding inside attention may do."""
    turn = torch.linalg.qr(random(4, 4, seed=7))[0]
    gain = torch.arange(1, T + 1, dtype=torch.float64)[:, None]
    closing = random(T, T, seed=8).masked_fill(~random_mask(T, T, seed=8), -INF)
    return {
        "none": None,
        "nothing": lambda q, k: (q, k, None),
        "(T, S)": lambda q, k: (q, k, random(T, T, seed=5)),
        "(H, T, S)": lambda q, k: (q, k, random(H, T, T, seed=5)),
        "(B, H, T, S)": lambda q, k: (q, k, random(B, H, T, T, seed=5)),
        "(1, H, T, S)": lambda q, k: (q, k, random(1, H, T, T, seed=5)),
        "closing": lambda q, k: (q, k, closing),
        "turned": lambda q, k: (q @ turn, k @ turn * gain, None),
        "turned and biased": lambda q, k: (q @ turn, k * gain, random(H, T, T, seed=6)),
    }


@pytest.mark.parametrize("hook", hooks(1, 1, 1))
@pytest.mark.parametrize("masked", ["none", "causal", "padding", "per sequence", "per head"])
def test_explicit_and_fused_agree_and_so_do_their_gradients(hook, masked):
    B, H, T = 2, 3, 5
    attend = layer(12, H, position=hooks(B, H, T)[hook])
    x = random(B, T, 12)
    mask = {
        "causal": causal_mask(T),
        "per sequence": random_mask(B, T, T, full_rows=False),
        "per head": random_mask(B, H, T, T, full_rows=False),
    }.get(masked)
    key_mask = random_mask(B, T, full_rows=False, seed=4) if masked == "padding" else None
    results = []
    for need_weights in (True, False):
        inputs = x.clone().requires_grad_()
        result = attend(inputs, mask, key_mask, need_weights)
        output = result[0] if need_weights else result
        loss = (output * random(*output.shape, seed=9)).sum()
        results.append((output, *torch.autograd.grad(loss, [inputs, *attend.parameters()])))
    for explicit, fused in zip(*results):
        close(explicit, fused)


def test_a_bias_from_the_hook_is_the_function_s_bias_and_learns_on_both_paths():
    B, H, T = 2, 3, 5
    for shape in [(T, T), (H, T, T), (B, H, T, T)]:
        bias = random(*shape, seed=5).requires_grad_()
        attend = layer(12, H, position=lambda q, k: (q, k, bias))
        x = random(B, T, 12)
        _, weights = attend(x, need_weights=True)
        query, key = (p(x).unflatten(-1, (H, 4)).transpose(1, 2) for p in (attend.to_query, attend.to_key))
        close(weights, torch.softmax(query @ key.transpose(-2, -1) / 2 + bias, -1))
        gradients = [
            torch.autograd.grad(output.square().sum(), bias)[0]
            for output in (attend(x, need_weights=True)[0], attend(x))
        ]
        close(*gradients)
        assert gradients[0].abs().max() > 0


def test_a_three_axis_bias_belongs_to_heads_also_when_batch_and_heads_agree():
    bias = torch.zeros(2, 3, 3, dtype=torch.float64)
    bias[1] = tensor([[0.0, -INF, -INF]] * 3)
    attend = zero_layer(4, 2)
    attend.position = lambda q, k: (q, k, bias)
    _, weights = attend(random(2, 3, 4), need_weights=True)
    close(weights[:, 0], torch.full((2, 3, 3), 1 / 3, dtype=torch.float64))
    assert (weights[:, 1, :, 0] == 1).all()


def test_the_hook_sees_heads_and_leaves_the_values_alone():
    seen = []

    def position(query, key):
        seen.append((query, key))
        return torch.zeros_like(query), key, None

    attend, x = identity_layer(6, 2, position), random(4, 5, 6)
    output = attend(x)
    query, key = seen[0]
    assert query.shape == key.shape == (4, 2, 5, 3)
    close(query[1, 1, 2], x[1, 2, 3:])
    close(output, x.mean(1, keepdim=True).expand_as(x))


def test_turning_queries_and_keys_alike_changes_nothing():
    turn = torch.linalg.qr(random(4, 4))[0]
    x = random(2, 5, 12)
    close(layer(position=lambda q, k: (q @ turn, k @ turn, None))(x), layer()(x))


# Properties over shapes

SIZES = st.integers(1, 5)


@st.composite
def problems(draw):
    """Queries, keys and values of any leading axes, T and S at will, with or without mask and bias."""
    leading = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    T, S, d, d_v = (draw(SIZES) for _ in range(4))
    seed = draw(st.integers(0, 10**6))
    shape = draw(st.sampled_from([(T, S), (*leading, T, S)]))
    mask = random_mask(*shape, seed=seed, full_rows=draw(st.booleans())) if draw(st.booleans()) else None
    bias = 3 * random(*shape, seed=seed + 3) if draw(st.booleans()) else None
    args = random(*leading, T, d, seed=seed), random(*leading, S, d, seed=seed + 1), random(*leading, S, d_v, seed=seed + 2)
    return *args, mask, bias


@given(problems())
@settings(max_examples=60)
def test_weights_are_shares_and_outputs_lie_among_the_values(problem):
    query, key, value, mask, bias = problem
    output, weights = scaled_dot_product_attention(*problem)
    assert weights.shape == (*query.shape[:-1], key.shape[-2]) and output.shape == (*query.shape[:-1], value.shape[-1])
    full = torch.ones_like(weights, dtype=torch.bool) if mask is None else mask.expand_as(weights)
    assert (weights >= 0).all() and (weights[~full] == 0).all()
    close(weights.sum(-1), full.any(-1).double())
    rows = full.any(-1)
    lowest, highest = (f(value, -2, keepdim=True).expand_as(output) for f in (torch.amin, torch.amax))
    assert (output >= lowest - 1e-9)[rows].all() and (output <= highest + 1e-9)[rows].all()
    assert (output[~rows] == 0).all()


@given(problems())
@settings(max_examples=60)
def test_an_independent_loop_gives_the_same(problem):
    query, key, value, mask, bias = problem
    output, _ = scaled_dot_product_attention(*problem)
    T, S, d = query.shape[-2], key.shape[-2], query.shape[-1]
    allowed = (torch.ones(T, S, dtype=torch.bool) if mask is None else mask).expand(*query.shape[:-2], T, S)
    added = (torch.zeros(T, S, dtype=torch.float64) if bias is None else bias).expand(*query.shape[:-2], T, S)
    for place in np.ndindex(*query.shape[:-1]):
        total, answer = 0.0, torch.zeros(value.shape[-1], dtype=torch.float64)
        for s in range(S):
            if allowed[place][s]:
                score = sum(a * b for a, b in zip(query[place].tolist(), key[place[:-1]][s].tolist()))
                share = math.exp(score / d**0.5 + added[place][s].item())
                total, answer = total + share, answer + share * value[place[:-1]][s]
        close(output[place], answer / total if total else answer, rtol=1e-9, atol=1e-9)


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_the_order_of_the_keys_is_nothing_and_that_of_the_queries_everything(problem, random_source):
    query, key, value, mask, bias = problem
    keys, queries = list(range(key.shape[-2])), list(range(query.shape[-2]))
    random_source.shuffle(keys)
    random_source.shuffle(queries)

    def moved(tensor):
        return None if tensor is None else tensor[..., queries, :][..., keys]

    output, weights = scaled_dot_product_attention(*problem)
    permuted, permuted_weights = scaled_dot_product_attention(
        query[..., queries, :], key[..., keys, :], value[..., keys, :], moved(mask), moved(bias)
    )
    close(permuted, output[..., queries, :])
    close(permuted_weights, moved(weights))


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(0, 10**6))
@settings(max_examples=30)
def test_the_layer_is_equivariant_and_its_samples_are_independent(batch, heads, length, seed):
    attend, x = layer(6 * heads, heads, seed=seed), random(batch, length, 6 * heads, seed=seed)
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
    close(attend(x[:, order]), attend(x)[:, order])
    for b in range(batch):
        close(attend(x)[b], attend(x[b : b + 1])[0])


@pytest.mark.parametrize("need_weights", [True, False])
def test_one_sample_does_not_leak_into_another(need_weights):
    attend, x = layer(), random(3, 3, 12)
    changed = x.clone()
    changed[1] += 5.0

    def run(x):
        return attend(x, need_weights=need_weights)[0] if need_weights else attend(x)

    moved = (run(changed) - run(x)).abs().amax((1, 2))
    assert moved[0] == moved[2] == 0 and moved[1] > 0.1


@pytest.mark.parametrize("shape", [(0, 3, 12), (2, 0, 12), (0, 0, 12), (1, 1, 12)])
def test_nothing_to_do_is_done(shape):
    attend, x = layer(), torch.zeros(shape, dtype=torch.float64)
    B, T, _ = shape
    for mask in (None, causal_mask(T), torch.ones(B, 3, T, T, dtype=torch.bool)):
        output, weights = attend(x, mask, torch.ones(B, T, dtype=torch.bool), need_weights=True)
        assert output.shape == attend(x, mask).shape == shape
        assert weights.shape == (B, 3, T, T)


@pytest.mark.parametrize("T, S", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("masked", [False, True])
def test_no_queries_or_no_keys(T, S, masked):
    query, key, value = random(2, T, 4).requires_grad_(), random(2, S, 4).requires_grad_(), random(2, S, 5).requires_grad_()
    mask = torch.ones(T, S, dtype=torch.bool) if masked else None
    output, weights = scaled_dot_product_attention(query, key, value, mask)
    assert output.shape == (2, T, 5) and weights.shape == (2, T, S) and (output == 0).all()
    output.sum().backward()
    assert (query.grad == 0).all()


# Numbers and their kinds


def test_inputs_are_left_as_they_are():
    args = [random(2, 4, 3, seed=i) for i in range(3)]
    mask, bias = random_mask(4, 4, full_rows=False), random(4, 4, seed=4)
    attend, x = layer(position=lambda q, k: (q, k, bias)), random(2, 4, 12)
    key_mask = random_mask(2, 4)
    everything = [*args, mask, bias, x, key_mask]
    copies = [item.clone() for item in everything]
    scaled_dot_product_attention(*args, mask, bias)
    attend(x, mask, key_mask)
    attend(x, mask, key_mask, need_weights=True)
    assert all(torch.equal(item, copy) for item, copy in zip(everything, copies))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("masked", [False, True])
def test_dtype_is_kept_and_low_precision_is_near(dtype, masked):
    mask = torch.tensor([[True] * 4, [False] * 4, [True, False] * 2, [False, True] * 2]) if masked else None
    attend, x = layer(dtype=dtype), random(2, 4, 12, dtype=dtype)
    exact, exact_weights = attend.double()(x.double(), mask, need_weights=True)
    attend.to(dtype)
    output, weights = attend(x, mask, need_weights=True)
    fused = attend(x, mask)
    assert output.dtype == weights.dtype == fused.dtype == dtype
    near = {"rtol": 0.05, "atol": 0.05} if dtype.itemsize == 2 else SINGLE
    for got, right in [(output, exact), (weights, exact_weights), (fused, exact)]:
        close(got.double(), right, **near)
    bias = torch.zeros(4, 4, dtype=dtype)
    assert scaled_dot_product_attention(x, x, x, mask, bias)[0].dtype == dtype


def test_autocast_works_on_both_paths():
    attend, x = layer(dtype=torch.float32), random(2, 4, 12, dtype=torch.float32)
    right = attend(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for output in (attend(x), attend(x, need_weights=True)[0], attend(x.bfloat16())):
            assert output.dtype == torch.bfloat16
            close(output.float(), right, rtol=0.05, atol=0.05)
        with pytest.raises(ValueError, match="int64"):
            attend(x.long())


def test_devices_are_kept():
    attend, x = layer().to("meta"), torch.zeros(2, 4, 12, dtype=torch.float64, device="meta")
    mask = causal_mask(4, device="meta")
    output, weights = attend(x, mask, need_weights=True)
    assert output.device.type == weights.device.type == attend(x).device.type == "meta"


def test_large_scores_do_not_overflow():
    weights = weights_of_scores([[1e4, 0.0], [-1e4, 0.0]])
    close(weights, tensor([[1.0, 0.0], [0.0, 1.0]]))
    query = random(3, 4, dtype=torch.float32) * 1e4
    assert scaled_dot_product_attention(query, query, query)[0].isfinite().all()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_gradients_are_those_of_the_numbers(masked, biased):
    args = [random(2, 3, 2), random(2, 4, 2, seed=1), random(2, 4, 3, seed=2)]
    mask = torch.tensor([[True, True, False, True], [False] * 4, [True, False, False, False]]) if masked else None
    if biased:
        args.append(random(3, 4, seed=3))
    inputs = [argument.requires_grad_() for argument in args]
    assert torch.autograd.gradcheck(
        lambda q, k, v, b=None: scaled_dot_product_attention(q, k, v, mask, b), inputs, eps=1e-6, atol=1e-6
    )


def test_every_parameter_learns():
    attend = layer()
    for output in (attend(random(2, 4, 12)), attend(random(2, 4, 12), need_weights=True)[0]):
        attend.zero_grad()
        output.square().sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in attend.parameters())
        # A constant added to a query's scores is no difference, so the keys' bias alone cannot learn.
        still = {name for name, p in attend.named_parameters() if p.grad.abs().max() < 1e-9}
        assert still == {"to_key.bias"}


def test_the_same_twice():
    attend, x = layer(), random(2, 4, 12)
    assert torch.equal(attend(x), attend(x))
    assert torch.equal(attend(x, need_weights=True)[1], attend(x, need_weights=True)[1])
    state = torch.get_rng_state()
    attend(x, causal_mask(4), need_weights=True)
    attend(x)
    assert torch.equal(torch.get_rng_state(), state)


def test_what_a_layer_holds():
    attend = MultiHeadAttention(12, 3)
    names = [f"to_{part}.{kind}" for part in ("query", "key", "value", "output") for kind in ("weight", "bias")]
    assert list(attend.state_dict()) == names
    assert not list(attend.buffers())
    assert sum(p.numel() for p in attend.parameters()) == 4 * (12 * 12 + 12)
    assert (attend.d_model, attend.num_heads, attend.position) == (12, 3, None)
    assert MultiHeadAttention(np.int64(12), np.int32(3)).to_query.weight.shape == (12, 12)


def test_an_encoding_that_is_a_module_learns_with_its_layer():
    class Slope(nn.Module):
        def __init__(self):
            super().__init__()
            self.slope = nn.Parameter(torch.tensor(1.0))

        def forward(self, query, key):
            places = torch.arange(query.shape[-2])
            return query, key, -self.slope * (places[:, None] - places).abs()

    attend = MultiHeadAttention(8, 2, Slope())
    assert "position.slope" in attend.state_dict()
    attend(random(1, 3, 8, dtype=torch.float32)).square().sum().backward()
    assert attend.position.slope.grad.abs() > 0


def test_signatures_are_as_printed():
    assert list(inspect.signature(scaled_dot_product_attention).parameters) == ["query", "key", "value", "mask", "bias"]
    assert list(inspect.signature(MultiHeadAttention.forward).parameters) == ["self", "x", "mask", "key_mask", "need_weights"]
    assert isinstance(layer()(random(1, 2, 12)), torch.Tensor)
    assert isinstance(layer()(random(1, 2, 12), need_weights=True), tuple)


# Bad input: a ValueError of ours that names what disagrees, never an error from inside torch


def ones(*shape, dtype=torch.float32, device=None):
    return torch.ones(*shape, dtype=dtype, device=device)


@pytest.mark.parametrize(
    "args, said",
    [
        ((ones(3), ones(2, 3), ones(2, 3)), ["query", "(3,)"]),
        ((ones(2, 3), ones(3), ones(2, 3)), ["key", "(3,)"]),
        ((ones(2, 3), ones(2, 3), ones(())), ["value", "()"]),
        ((ones(2, 3), ones(2, 4), ones(2, 3)), ["3", "4", "wide"]),
        ((ones(2, 3), ones(4, 3), ones(5, 3)), ["4 keys", "5 values"]),
        ((ones(2, 0), ones(2, 0), ones(2, 3)), ["at least 1 wide", "0"]),
        ((ones(2, 4, 3), ones(5, 4, 3), ones(5, 4, 3)), ["(2, 4, 3)", "(5, 4, 3)"]),
        ((ones(2, 4, 3), ones(1, 4, 3), ones(1, 4, 3)), ["(2, 4, 3)", "(1, 4, 3)"]),
        ((ones(1, 4, 3), ones(2, 4, 3), ones(2, 4, 3)), ["(1, 4, 3)", "(2, 4, 3)"]),
        ((ones(2, 4, 3), ones(2, 4, 3), ones(1, 4, 3)), ["(2, 4, 3)", "(1, 4, 3)"]),
        ((ones(2, 4, 3), ones(4, 3), ones(4, 3)), ["(2, 4, 3)", "(4, 3)"]),
        ((ones(4, 3), ones(2, 4, 3), ones(2, 4, 3)), ["(4, 3)", "(2, 4, 3)"]),
        ((ones(2, 3), ones(2, 3).double(), ones(2, 3)), ["key", "float64", "float32"]),
        ((ones(2, 3), ones(2, 3), ones(2, 3).half()), ["value", "float16", "float32"]),
        ((ones(2, 3).long(), ones(2, 3).long(), ones(2, 3).long()), ["query", "int64"]),
        ((ones(2, 3), ones(2, 3), ones(2, 3).long()), ["value", "int64"]),
        ((ones(2, 3).bool(), ones(2, 3), ones(2, 3)), ["query", "bool"]),
        ((ones(2, 3, dtype=torch.complex64),) * 3, ["query", "complex64"]),
        ((np.ones((2, 3), np.float32), ones(2, 3), ones(2, 3)), ["query", "ndarray", "(2, 3)"]),
        ((ones(2, 3), [[1.0, 2.0, 3.0]], ones(2, 3)), ["key", "list"]),
        ((ones(2, 3), ones(2, 3), None), ["value", "NoneType"]),
        ((ones(2, 3), ones(2, 3, device="meta"), ones(2, 3)), ["key", "meta", "cpu"]),
    ],
)
def test_bad_input_to_the_function(args, said):
    with pytest.raises(ValueError) as error:
        scaled_dot_product_attention(*args)
    assert all(word in str(error.value) for word in said), str(error.value)


QKV = (ones(2, 3, 4, 5), ones(2, 3, 6, 5), ones(2, 3, 6, 5))


@pytest.mark.parametrize(
    "mask, said",
    [
        (ones(4, 6, dtype=torch.uint8), ["mask", "boolean", "uint8"]),
        (ones(4, 6), ["mask", "boolean", "float32"]),
        (ones(4, 6).long(), ["mask", "boolean", "int64"]),
        (np.ones((4, 6), bool), ["mask", "ndarray"]),
        ([[True] * 6] * 4, ["mask", "list"]),
        (True, ["mask", "bool"]),
        (ones(6, 4).bool(), ["mask", "(4, 6)", "(2, 3, 4, 6)", "(6, 4)"]),
        (ones(6).bool(), ["mask", "(6,)"]),
        (ones(1, 6).bool(), ["mask", "(1, 6)"]),
        (ones(3, 4, 6).bool(), ["mask", "(3, 4, 6)"]),
        (ones(2, 4, 6).bool(), ["mask", "(2, 4, 6)"]),
        (ones(3, 2, 4, 6).bool(), ["mask", "(3, 2, 4, 6)"]),
        (ones(1, 2, 3, 4, 6).bool(), ["mask", "(1, 2, 3, 4, 6)"]),
        (ones(2, 3, 4, 0).bool(), ["mask", "(2, 3, 4, 0)"]),
        (ones(4, 6, device="meta").bool(), ["mask", "meta", "cpu"]),
    ],
)
def test_bad_masks_of_the_function(mask, said):
    with pytest.raises(ValueError) as error:
        scaled_dot_product_attention(*QKV, mask)
    assert all(word in str(error.value) for word in said), str(error.value)


BAD_BIASES = [
    (ones(4, 4).bool(), ["bias", "bool", "float32"]),
    (ones(4, 4).long(), ["bias", "int64", "float32"]),
    (ones(4, 4).double(), ["bias", "float64", "float32"]),
    (np.ones((4, 4), np.float32), ["bias", "ndarray"]),
    (1.0, ["bias", "float"]),
    (ones(4, 3), ["bias", "(4, 4)", "(4, 3)"]),
    (ones(4), ["bias", "(4,)"]),
    (ones(4, 4, 4), ["bias", "(4, 4, 4)"]),
    (ones(1, 1, 1, 4, 4), ["bias", "(1, 1, 1, 4, 4)"]),
    (ones(4, 4, device="meta"), ["bias", "meta", "cpu"]),
]


@pytest.mark.parametrize("bias, said", BAD_BIASES)
def test_bad_biases_of_the_function(bias, said):
    with pytest.raises(ValueError) as error:
        scaled_dot_product_attention(*(ones(2, 3, 4, 5),) * 3, None, bias)
    assert all(word in str(error.value) for word in said), str(error.value)


@pytest.mark.parametrize("bias, said", BAD_BIASES)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_bad_biases_from_the_hook(bias, said, need_weights, masked):
    attend = MultiHeadAttention(12, 3, position=lambda q, k: (q, k, bias))
    with pytest.raises(ValueError) as error:
        attend(ones(2, 4, 12), causal_mask(4) if masked else None, need_weights=need_weights)
    assert "bias" in str(error.value), str(error.value)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    "hook",
    [
        lambda q, k: (q[:, :1], k, None),
        lambda q, k: (q, k[..., :2], None),
        lambda q, k: (q, k[:, :, :-1], None),
        lambda q, k: (q.double(), k, None),
        lambda q, k: (q, k.numpy(force=True), None),
    ],
)
def test_bad_queries_and_keys_from_the_hook(hook, need_weights):
    with pytest.raises(ValueError):
        MultiHeadAttention(12, 3, position=hook)(ones(2, 4, 12), need_weights=need_weights)


@pytest.mark.parametrize(
    "x, said",
    [
        (ones(4, 12), ["(B, T, 12)", "(4, 12)"]),
        (ones(2, 3, 4, 12), ["(B, T, 12)", "(2, 3, 4, 12)"]),
        (ones(2, 4, 11), ["12", "11"]),
        (ones(12), ["12", "(12,)"]),
        (ones(2, 4, 12).long(), ["int64", "float32"]),
        (ones(2, 4, 12).double(), ["float64", "float32"]),
        (ones(2, 4, 12).bool(), ["bool", "float32"]),
        (ones(2, 4, 12, device="meta"), ["meta", "cpu"]),
        (np.ones((2, 4, 12), np.float32), ["ndarray", "(2, 4, 12)"]),
        ([[[1.0] * 12]], ["list"]),
        (None, ["NoneType"]),
    ],
)
@pytest.mark.parametrize("need_weights", [True, False])
def test_bad_input_to_the_layer(x, said, need_weights):
    with pytest.raises(ValueError) as error:
        MultiHeadAttention(12, 3)(x, need_weights=need_weights)
    assert all(word in str(error.value) for word in said), str(error.value)


@pytest.mark.parametrize(
    "mask, key_mask, said",
    [
        (ones(4, 4), None, ["mask", "boolean", "float32"]),
        (ones(4, 4, dtype=torch.uint8), None, ["mask", "uint8"]),
        (np.ones((4, 4), bool), None, ["mask", "ndarray"]),
        (ones(4, 4, device="meta").bool(), None, ["mask", "meta"]),
        (ones(4, 5).bool(), None, ["(4, 4)", "(4, 5)"]),
        (ones(5, 5).bool(), None, ["(4, 4)", "(5, 5)"]),
        (ones(2, 4).bool(), None, ["mask", "(2, 4)"]),
        (ones(4).bool(), None, ["mask", "(4,)"]),
        (ones(3, 4, 4).bool(), None, ["(2, 4, 4)", "(3, 4, 4)"]),
        (ones(1, 4, 4).bool(), None, ["(2, 4, 4)", "(1, 4, 4)"]),
        (ones(1, 3, 4, 4).bool(), None, ["(2, 3, 4, 4)", "(1, 3, 4, 4)"]),
        (ones(2, 2, 4, 4).bool(), None, ["(2, 3, 4, 4)", "(2, 2, 4, 4)"]),
        (ones(6, 4, 4).bool(), None, ["(2, 4, 4)", "(6, 4, 4)"]),
        (None, ones(2, 4), ["key_mask", "float32"]),
        (None, ones(2, 4, dtype=torch.uint8), ["key_mask", "uint8"]),
        (None, np.ones((2, 4), bool), ["key_mask", "ndarray"]),
        (None, [[True] * 4] * 2, ["key_mask", "list"]),
        (None, ones(4).bool(), ["key_mask", "(2, 4)", "(4,)"]),
        (None, ones(1, 4).bool(), ["key_mask", "(2, 4)", "(1, 4)"]),
        (None, ones(4, 2).bool(), ["key_mask", "(2, 4)", "(4, 2)"]),
        (None, ones(2, 1, 4).bool(), ["key_mask", "(2, 4)", "(2, 1, 4)"]),
        (None, ones(2, 4, device="meta").bool(), ["key_mask", "meta"]),
    ],
)
@pytest.mark.parametrize("need_weights", [True, False])
def test_bad_masks_of_the_layer(mask, key_mask, said, need_weights):
    with pytest.raises(ValueError) as error:
        MultiHeadAttention(12, 3)(ones(2, 4, 12), mask, key_mask, need_weights)
    assert all(word in str(error.value) for word in said), str(error.value)


@pytest.mark.parametrize(
    "d_model, num_heads, said",
    [
        (10, 3, ["10", "3", "divide"]),
        (2, 4, ["2", "4", "divide"]),
        (0, 1, ["d_model", "0"]),
        (-8, 2, ["d_model", "-8"]),
        (8, 0, ["num_heads", "0"]),
        (8, -2, ["num_heads", "-2"]),
        (8.0, 2, ["d_model", "8.0"]),
        (8, 2.0, ["num_heads", "2.0"]),
        (True, 1, ["d_model", "True"]),
        (8, True, ["num_heads", "True"]),
        ("8", 2, ["d_model", "'8'"]),
        (None, 2, ["d_model", "None"]),
        (8, None, ["num_heads", "None"]),
    ],
)
def test_bad_sizes_of_the_layer(d_model, num_heads, said):
    with pytest.raises(ValueError) as error:
        MultiHeadAttention(d_model, num_heads)
    assert all(word in str(error.value) for word in said), str(error.value)


@pytest.mark.parametrize("length", [-1, True, 2.0, "3", None, torch.tensor([3])])
def test_bad_lengths_of_a_causal_mask(length):
    with pytest.raises(ValueError, match="length must be an integer of at least 0"):
        causal_mask(length)
