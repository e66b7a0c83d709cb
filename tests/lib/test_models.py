"""The Transformer block: equal to torch's, equivariant, and plain about bad input."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from posenc.attention import causal_mask
from posenc.models import TransformerBlock
from posenc.symmetry import equivariance_gap


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def block(d_model=12, num_heads=3, **kwargs):
    """A block with known weights, its norms included."""
    made = TransformerBlock(d_model, num_heads, **kwargs).double()
    with torch.no_grad():
        for i, parameter in enumerate(made.parameters()):
            parameter.copy_(0.4 * random(*parameter.shape, seed=i))
    return made


def torch_twin(ours):
    """torch's own pre-norm layer with our weights."""
    attention, (first, _, second) = ours.attention, ours.feed_forward
    theirs = nn.TransformerEncoderLayer(
        attention.d_model,
        attention.num_heads,
        dim_feedforward=first.out_features,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
    ).double()
    projections = [attention.to_query, attention.to_key, attention.to_value]
    pairs = {
        theirs.self_attn.in_proj_weight: torch.cat([p.weight for p in projections]),
        theirs.self_attn.in_proj_bias: torch.cat([p.bias for p in projections]),
        theirs.self_attn.out_proj.weight: attention.to_output.weight,
        theirs.self_attn.out_proj.bias: attention.to_output.bias,
    }
    for mine, yours in [
        (ours.attention_norm, theirs.norm1),
        (ours.feed_forward_norm, theirs.norm2),
        (first, theirs.linear1),
        (second, theirs.linear2),
    ]:
        pairs |= {yours.weight: mine.weight, yours.bias: mine.bias}
    with torch.no_grad():
        for target, source in pairs.items():
            target.copy_(source)
    return theirs.train()  # its fast path rounds differently


@pytest.mark.parametrize("masked", ["none", "causal", "padding", "both"])
@pytest.mark.parametrize("expansion", [1, 4])
def test_it_equals_torchs_layer(masked, expansion):
    ours = block(expansion=expansion)
    x = random(2, 5, 12, seed=50)
    mask = causal_mask(5) if masked in ("causal", "both") else None
    key_mask = torch.arange(5) < torch.tensor([5, 3])[:, None] if masked in ("padding", "both") else None
    theirs = torch_twin(ours)(
        x,
        src_mask=None if mask is None else ~mask,
        src_key_padding_mask=None if key_mask is None else ~key_mask,
    )
    torch.testing.assert_close(ours(x, mask, key_mask), theirs, rtol=0, atol=1e-11)


@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 999))
@settings(max_examples=20)
def test_it_is_equivariant_until_a_mask_or_a_bias_names_places(batch, length, seed):
    x = random(batch, length, 12, seed=seed)
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
    assert equivariance_gap(block(), x, order) < 1e-11
    if length > 1:
        order = torch.arange(length).roll(1)
        assert equivariance_gap(lambda x: block()(x, causal_mask(length)), x, order) > 1e-6
        places = torch.arange(length, dtype=torch.float64)
        with_bias = block(position=lambda q, k: (q, k, 3.0 * (places[:, None] - places).relu()))
        assert length == 2 or equivariance_gap(with_bias, x, order) > 1e-6


def test_every_part_is_there_and_learns():
    made = block(expansion=2)
    assert made.feed_forward[0].out_features == 24
    x = random(2, 4, 12).requires_grad_()
    made(x).square().sum().backward()
    still = {name for name, p in made.named_parameters() if p.grad is None or p.grad.abs().max() < 1e-9}
    assert still == {"attention.to_key.bias"}
    assert x.grad.abs().max() > 0
    assert not list(made.buffers())


def test_the_residual_paths_carry_the_tokens_past_silent_layers():
    made = block()
    for layer in (made.attention.to_output, made.feed_forward[-1]):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    x = random(2, 4, 12)
    assert torch.equal(made(x), x)


def test_the_input_stays_as_it_is_and_shapes_are_kept():
    made = block()
    for shape in [(2, 4, 12), (0, 4, 12), (2, 0, 12), (1, 1, 12)]:
        x = torch.ones(shape, dtype=torch.float64)
        assert made(x).shape == shape
        assert (x == 1).all()


@pytest.mark.parametrize(
    "x, said",
    [
        (torch.zeros(4, 12), ["(B, T, 12)", "(4, 12)"]),
        (torch.zeros(2, 4, 11), ["12", "11"]),
        (torch.zeros(2, 4, 12, dtype=torch.float64), ["float64", "float32"]),
        (torch.zeros(2, 4, 12, dtype=torch.long), ["int64", "float32"]),
        (np.zeros((2, 4, 12), np.float32), ["ndarray"]),
    ],
)
def test_bad_input(x, said):
    with pytest.raises(ValueError) as error:
        TransformerBlock(12, 3)(x)
    assert all(word in str(error.value) for word in said), str(error.value)


@pytest.mark.parametrize(
    "kwargs, said",
    [
        ({"d_model": 10}, ["10", "3"]),
        ({"num_heads": 0}, ["num_heads", "0"]),
        ({"d_model": 12.0}, ["d_model", "12.0"]),
        ({"d_model": "12"}, ["d_model", "'12'"]),
        ({"expansion": 0}, ["expansion", "0"]),
        ({"expansion": -1}, ["expansion", "-1"]),
        ({"expansion": 1.5}, ["expansion", "1.5"]),
        ({"expansion": True}, ["expansion", "True"]),
    ],
)
def test_bad_sizes(kwargs, said):
    with pytest.raises(ValueError) as error:
        TransformerBlock(**{"d_model": 12, "num_heads": 3, **kwargs})
    assert all(word in str(error.value) for word in said), str(error.value)
