"""Encodings that act inside attention: exact values, independent forms, and their place in the layer."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.attention import MultiHeadAttention, causal_mask, scaled_dot_product_attention
from posenc.encodings import Alibi, RelativeBias, Rotary, alibi_bias, alibi_slopes, apply_rotary, frequencies
from posenc.models import Transformer
from posenc.training import parameter_count, seeded

PRECISE = {"rtol": 0, "atol": 1e-12}
layouts = st.sampled_from(["interleaved", "concat"])


def close(a, b, **tolerance):
    torch.testing.assert_close(a, b, **(tolerance or PRECISE))


def tensor(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def at(x, position, **options):
    """One row turned as if it stood at `position`."""
    return apply_rotary(tensor(x)[None], start=position, **options)[0]


def relative(num_heads=3, max_distance=2, seed=0):
    with seeded(seed):
        return RelativeBias(num_heads, max_distance, std=1.0).double()


# Rotary


def test_rotary_pairs_neighbours_or_halves():
    close(at([1, 2, 3, 4], 1), tensor([-1.142640, 1.922076, 2.959851, 4.029799]), rtol=0, atol=1e-6)
    halves = at([1, 2, 3, 4], 1, layout="concat")
    close(halves, tensor([-1.984111, 1.959901, 2.462378, 4.019800]), rtol=0, atol=1e-6)


def test_rotary_score_depends_on_the_offset_if_the_layouts_agree():
    q, k = [1, 0, 0, 1], [0, 1, 1, 0]
    for i, j in ((3, 1), (12, 10)):
        assert float(at(q, i) @ at(k, j)) == pytest.approx(0.889299, abs=1e-6)
    mixed = [float(at(q, i) @ at(k, j, layout="concat")) for i, j in ((3, 1), (12, 10))]
    assert mixed == pytest.approx([0.967952, 0.124745], abs=1e-6)


@given(st.integers(1, 8), st.integers(1, 6), st.integers(-20, 2000), layouts, st.integers(0, 99))
def test_rotary_turns_by_position_times_frequency(pairs, length, start, layout, seed):
    x = random(2, 3, length, 2 * pairs, seed=seed)
    turned = apply_rotary(x, start, layout=layout)
    columns = [(2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + pairs) for i in range(pairs)]
    for (first, second), frequency in zip(columns, frequencies(2 * pairs).tolist()):
        angle = frequency * torch.arange(start, start + length, dtype=torch.float64)
        number = torch.complex(x[..., first], x[..., second]) * torch.polar(torch.ones_like(angle), angle)
        close(turned[..., first], number.real)
        close(turned[..., second], number.imag)
    close(turned.norm(dim=-1), x.norm(dim=-1))


@given(layouts, st.integers(0, 500), st.integers(0, 9))
def test_rotary_scores_do_not_move_with_the_start(layout, start, seed):
    q, k = random(2, 4, 6, seed=seed), random(2, 5, 6, seed=seed + 100)
    here = apply_rotary(q, layout=layout) @ apply_rotary(k, layout=layout).transpose(-2, -1)
    there = apply_rotary(q, start, layout=layout) @ apply_rotary(k, start, layout=layout).transpose(-2, -1)
    close(here, there, rtol=0, atol=1e-11)


def test_rotary_layouts_are_one_permutation_apart():
    x, order = random(5, 4), [0, 2, 1, 3]
    close(apply_rotary(x[:, order], layout="concat")[:, order], apply_rotary(x))


def test_rotary_leaves_position_zero_and_its_input_alone():
    x = random(1, 4)
    close(apply_rotary(x), x, rtol=0, atol=0)
    x = random(2, 3, 5, 4)
    before = x.clone()
    apply_rotary(x)
    assert torch.equal(x, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_rotary_keeps_dtype_and_every_position(dtype):
    x = torch.tensor([[1.0, 0.0]], dtype=dtype).expand(4096, 2)
    turned = apply_rotary(x)
    assert turned.dtype == dtype
    close(turned[257].double(), tensor([math.cos(257), math.sin(257)]), rtol=0, atol=4e-3)
    assert not torch.equal(turned[256], turned[257])


def test_rotary_empty_and_meta():
    assert apply_rotary(torch.zeros(2, 0, 4)).shape == (2, 0, 4)
    assert apply_rotary(torch.zeros(0, 3, 4)).shape == (0, 3, 4)
    assert apply_rotary(torch.zeros(2, 3, 4, device="meta")).device.type == "meta"


def test_rotary_gradient():
    assert torch.autograd.gradcheck(apply_rotary, random(2, 3, 4).requires_grad_())


@pytest.mark.parametrize(
    "x, options, message",
    [
        (torch.zeros(3, 5), {}, "head width must be even and positive.*not 5"),
        (torch.zeros(3, 0), {}, "head width.*not 0"),
        (torch.zeros(4), {}, "floating tensor"),
        (torch.zeros(3, 4, dtype=torch.long), {}, "floating tensor"),
        ([1.0], {}, "not list"),
        (torch.zeros(3, 4), {"layout": "halves"}, "'interleaved', 'concat', not 'halves'"),
        (torch.zeros(3, 4), {"base": -1.0}, "base"),
        (torch.zeros(3, 4), {"start": 0.5}, "start must be an integer"),
    ],
)
def test_rotary_refuses_by_name(x, options, message):
    with pytest.raises(ValueError, match=message):
        apply_rotary(x, **options)


def test_rotary_as_a_position():
    q, k = random(2, 3, 5, 4), random(2, 3, 5, 4, seed=1)
    turned_q, turned_k, bias = Rotary(layout="concat")(q, k)
    close(turned_q, apply_rotary(q, layout="concat"))
    close(turned_k, apply_rotary(k, layout="concat"))
    assert bias is None
    close(Rotary()(q[..., 3:, :], k)[0], apply_rotary(q)[..., 3:, :])  # the newest queries of a cache
    for wrong in ({"layout": "x"}, {"base": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Rotary(**wrong)


def test_rotary_does_not_turn_the_values():
    """On equal tokens every weight is the same, and the mean of equal values is that value."""
    with seeded(0):
        layer = MultiHeadAttention(12, 3, Rotary()).double()
    x = random(1, 1, 12).expand(1, 6, 12)
    out = layer(x)
    close(out, out[:, :1].expand_as(out))
    close(out[0, 0], layer.to_output(layer.to_value(x[0, 0])))


# ALiBi


@pytest.mark.parametrize(
    "num_heads, slopes",
    [
        (1, [0.00390625]),
        (2, [0.0625, 0.00390625]),
        (3, [0.0625, 0.00390625, 0.25]),
        (6, [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]),
        (8, [2.0**-h for h in range(1, 9)]),
        (12, [2.0**-h for h in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
    ],
)
def test_alibi_slopes(num_heads, slopes):
    close(alibi_slopes(num_heads, torch.float64), tensor(slopes))
    assert alibi_slopes(num_heads).dtype == torch.float32


@given(st.integers(1, 40))
def test_alibi_slopes_are_distinct_and_below_one(num_heads):
    slopes = alibi_slopes(num_heads)
    assert len(slopes) == len(slopes.unique()) == num_heads
    assert 0 < slopes.min() and slopes.max() < 1


def test_alibi_bias_by_hand():
    """Eight heads, so the first has slope one half."""
    bias = alibi_bias(8, 4)[0]
    close(bias[-1], torch.tensor([-1.5, -1.0, -0.5, 0.0]))
    close(bias[0], torch.tensor([0.0, -0.5, -1.0, -1.5]))
    close(alibi_bias(8, 1, 5)[0], torch.tensor([[-2.0, -1.5, -1.0, -0.5, 0.0]]))
    assert alibi_bias(3, 0).shape == (3, 0, 0)


@given(st.integers(1, 9), st.integers(0, 6), st.integers(0, 6))
def test_alibi_bias_falls_with_distance(num_heads, length, more):
    bias = alibi_bias(num_heads, length, length + more, torch.float64)
    assert bias.shape == (num_heads, length, length + more)
    for h, slope in enumerate(alibi_slopes(num_heads, torch.float64).tolist()):
        for t in range(length):
            close(bias[h, t], tensor([-slope * abs(t + more - s) for s in range(length + more)]))
    close(bias, alibi_bias(num_heads, length + more, dtype=torch.float64)[:, more:])


def test_one_row_for_all_queries_is_the_same_under_a_causal_mask_only():
    q, k = random(1, 2, 5, 4), random(1, 2, 5, 4, seed=1)
    full = alibi_bias(2, 5, dtype=torch.float64)[None]
    row = full[..., -1:, :].expand_as(full)
    causal = [scaled_dot_product_attention(q, k, k, causal_mask(5), bias)[1] for bias in (full, row)]
    close(*causal, rtol=0, atol=1e-15)
    both_ways = [scaled_dot_product_attention(q, k, k, None, bias)[1] for bias in (full, row)]
    assert (both_ways[0] - both_ways[1]).abs().max() > 0.01


def test_alibi_refuses_by_name():
    for call, message in (
        (lambda: alibi_slopes(0), "num_heads"),
        (lambda: alibi_bias(2, -1), "query_length"),
        (lambda: alibi_bias(2, 3, -1), "key_length"),
        (lambda: alibi_bias(2, 3, 2), "3 queries, but only 2 keys"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


# Relative bias


def test_relative_bias_looks_up_the_clipped_offset():
    layer = relative(max_distance=2)
    _, _, bias = layer(random(1, 3, 5, 4), random(1, 3, 5, 4))
    assert bias.shape == (3, 5, 5)
    for t in range(5):
        for s in range(5):
            assert torch.equal(bias[:, t, s], layer.table[:, 2 + max(-2, min(2, s - t))])
    close(layer(random(1, 3, 1, 4), random(1, 3, 5, 4))[2], bias[:, -1:])
    assert relative(max_distance=0)(random(1, 3, 2, 4), random(1, 3, 2, 4))[2].shape == (3, 2, 2)


def test_relative_bias_is_trained_where_it_is_used():
    layer = relative(max_distance=4)
    layer(random(1, 3, 3, 4), random(1, 3, 3, 4))[2].sum().backward()
    close(layer.table.grad, tensor([0, 0, 1, 2, 3, 2, 1, 0, 0]).expand(3, 9))
    with seeded(0):
        assert float(RelativeBias(8, 500).table.detach().std()) == pytest.approx(0.02, rel=0.05)


def test_relative_bias_may_start_at_zero():
    assert not RelativeBias(2, 3, std=0.0).table.any()


def test_relative_bias_refuses_by_name():
    for call, message in (
        (lambda: RelativeBias(0, 3), "num_heads"),
        (lambda: RelativeBias(2, -1), "max_distance"),
        (lambda: RelativeBias(2, 3, std=-1.0), "std"),
        (lambda: relative()(random(1, 2, 3, 4), random(1, 2, 3, 4)), "2 heads of queries, but the table has 3"),
        (lambda: relative()(random(1, 3, 3, 4), random(1, 3, 2, 4)), "3 queries, but only 2 keys"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("make", [Rotary, Alibi, relative])
@pytest.mark.parametrize("keys", [(2, 3, 5, 4), (1, 2, 5, 4), (1, 3, 5, 6)], ids=["batch", "heads", "width"])
def test_queries_and_keys_may_differ_in_length_alone(make, keys):
    assert make()(random(1, 3, 2, 4), random(1, 3, 5, 4))[1].shape == (1, 3, 5, 4)
    with pytest.raises(ValueError, match="differ in more than their length"):
        make()(random(1, 3, 2, 4), random(*keys))


@pytest.mark.parametrize("make", [Rotary, Alibi, relative])
@pytest.mark.parametrize("wrong", [torch.zeros(3, 4), torch.zeros(1, 3, 5, 4, dtype=torch.long), None], ids=["two axes", "whole numbers", "nothing"])
def test_what_is_no_queries_or_keys_is_named(make, wrong):
    for name, pair in {"query": (wrong, random(1, 3, 5, 4)), "key": (random(1, 3, 5, 4), wrong)}.items():
        with pytest.raises(ValueError, match=f"{name} must be a floating tensor with four axes"):
            make()(*pair)


# In the layer and in the model


@pytest.mark.parametrize("make", [Rotary, Alibi, relative])
def test_both_paths_of_attention_agree(make):
    with seeded(0):
        layer = MultiHeadAttention(12, 3, make()).double()
    x, mask = random(2, 5, 12), causal_mask(5)
    for options in ({}, {"mask": mask}, {"key_mask": torch.tensor([[True] * 3 + [False] * 2] * 2)}):
        close(layer(x, **options), layer(x, need_weights=True, **options)[0])


@pytest.mark.parametrize("make", [Rotary, Alibi, relative])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layer_keeps_its_dtype(make, dtype):
    with seeded(0):
        layer = MultiHeadAttention(12, 3, make()).to(dtype)
    assert layer(random(2, 5, 12, dtype=dtype)).dtype == dtype
    assert layer(torch.zeros(2, 0, 12, dtype=dtype)).shape == (2, 0, 12)


@pytest.mark.parametrize("encoding", ["rotary", "alibi", "relative"])
def test_model_by_name(encoding):
    options = {"d_model": 12, "num_heads": 3, "num_layers": 2, "read_out": "token"}
    with seeded(0):
        plain = Transformer(7, 5, **options).double()
    with seeded(0):
        made = Transformer(7, 5, encoding=encoding, max_distance=4, **options).double()
    assert all(torch.equal(value, made.state_dict()[name]) for name, value in plain.state_dict().items())
    assert parameter_count(made) - parameter_count(plain) == (2 * 3 * 9 if encoding == "relative" else 0)
    tokens = torch.tensor([[3, 1, 4, 1, 5, 2]])
    assert (made(tokens) - plain(tokens)).abs().max() > 1e-4
    # None of these sees where a sequence stands: padding in front, not attended to, changes nothing.
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.long), tokens], dim=1)
    real = torch.tensor([[False] * 3 + [True] * 6])
    close(made(padded, real)[:, 3:], made(tokens))


def test_model_refuses_an_odd_head_width_for_rotary():
    with pytest.raises(ValueError, match="even head width, not 12 / 4 = 3"):
        Transformer(7, 5, d_model=12, num_heads=4, encoding="rotary")
