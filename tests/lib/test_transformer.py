"""The Transformer: encodings by name, read-outs, padding, causality, and what it does with order."""

import inspect
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from posenc.encodings import FixedCodes, LearnedEncoding, SinusoidalEncoding, sinusoidal_encoding
from posenc.models import ENCODINGS, READ_OUTS, RecurrentModel, Transformer, TransformerBlock
from posenc.symmetry import all_orders, equivariance_gap, invariance_gap
from posenc.training import parameter_count, seeded

SIZES = {"vocab_size": 7, "num_classes": 5, "d_model": 12, "num_heads": 3, "num_layers": 2}


def model(seed=0, **options):
    with seeded(seed):
        return Transformer(**{**SIZES, "max_length": 11, **options}).double().eval()


def symbols(batch=2, length=6, seed=0, vocab_size=7):
    return torch.randint(vocab_size, (batch, length), generator=torch.Generator().manual_seed(seed))


def close(a, b, atol=1e-12):
    torch.testing.assert_close(a, b, rtol=0, atol=atol)


# Shapes and names


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("read_out", READ_OUTS)
@pytest.mark.parametrize("causal", [False, True])
def test_shapes(encoding, read_out, causal):
    scores = model(encoding=encoding, read_out=read_out, causal=causal)(symbols(4, 6))
    assert scores.shape == ((4, 6, 5) if read_out == "token" else (4, 5))
    assert scores.dtype == torch.float64


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match="'sinusoid'; known are " + ", ".join(ENCODINGS)):
        Transformer(7, 5, encoding="sinusoid")
    with pytest.raises(ValueError, match="'pooled', 'last', 'token', not 'mean'"):
        Transformer(7, 5, read_out="mean")


def test_names_tables_and_layers_are_one_thing():
    table, tokens = sinusoidal_encoding(11, 12, dtype=torch.float64), symbols()
    by_name = model(encoding="sinusoidal")(tokens)
    for encoding in (table, FixedCodes(table), SinusoidalEncoding(12)):
        close(model(encoding=encoding)(tokens), by_name)
    close(model(encoding=torch.zeros(11, 12))(tokens), model(encoding="none")(tokens))


def test_layers_made_for_the_names():
    assert isinstance(model(encoding="none").encoding, nn.Identity)
    assert isinstance(model(encoding="sinusoidal").encoding, SinusoidalEncoding)
    learned = model(encoding="learned").encoding
    assert isinstance(learned, LearnedEncoding) and learned.table.shape == (11, 12)


def test_a_layer_of_ones_own():
    class Louder(nn.Module):
        def forward(self, x):
            return 2 * x

    close(model(encoding=Louder())(symbols()), model(encoding="none", scale_embedding=False)(symbols()), atol=9)
    assert model(encoding=Louder()).encoding(torch.ones(1)) == 2


@pytest.mark.parametrize(
    "options, message",
    [
        ({"encoding": torch.zeros(11, 8)}, "encoding is 8 wide, but d_model is 12"),
        ({"encoding": SinusoidalEncoding(8)}, "encoding is 8 wide, but d_model is 12"),
        ({"encoding": None}, "a name, a table or a layer, not NoneType"),
        ({"encoding": 3}, "a name, a table or a layer, not int"),
        ({"encoding": "learned", "max_length": None}, "needs max_length"),
        ({"encoding": "learned", "max_length": 0}, "max_length"),
        ({"encoding": "sinusoidal", "d_model": 15}, "d_model must be even.*15"),
        ({"num_heads": 5}, "num_heads 5 does not divide d_model 12"),
        ({"vocab_size": 0}, "vocab_size must be an integer of at least 1, not 0"),
        ({"num_classes": 2.0}, "num_classes"),
        ({"num_layers": 0}, "num_layers"),
        ({"expansion": 0}, "expansion"),
    ],
)
def test_bad_construction_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        Transformer(**{**SIZES, "max_length": 11, **options})


@pytest.mark.parametrize(
    "tokens, message",
    [
        (torch.zeros(2, 3), r"integer tensor \(B, T\), not a torch.float32"),
        (torch.zeros(3, dtype=torch.long), r"not a torch.int64 tensor of shape \(3,\)"),
        (torch.zeros(2, 3, 4, dtype=torch.long), "integer tensor"),
        (torch.tensor([[0, 7]]), r"lie in 0..6, not in 0..7"),
        (torch.tensor([[-1, 3]]), r"lie in 0..6, not in -1..3"),
        ([[0, 1]], "not list"),
    ],
)
def test_bad_tokens_are_refused(tokens, message):
    with pytest.raises(ValueError, match=message):
        model()(tokens)


def test_the_smallest_models():
    for encoding in ("none", "learned", "alibi", "relative"):
        options = {"d_model": 1, "num_heads": 1, "num_layers": 1, "encoding": encoding, "max_length": 1, "max_distance": 0}
        assert Transformer(1, 1, expansion=1, **options)(torch.zeros(1, 1, dtype=torch.long)).shape == (1, 1)
    assert RecurrentModel(1, 1, d_model=1, hidden=1, num_layers=1)(torch.zeros(1, 1, dtype=torch.long)).shape == (1, 1)


def test_the_two_models_start_from_equal_terms():
    """What both can be asked for is the same unless asked."""
    transformer, recurrent = (inspect.signature(made).parameters for made in (Transformer, RecurrentModel))
    assert {"d_model", "num_layers", "read_out"} <= transformer.keys() & recurrent.keys()
    assert all(transformer[name].default == recurrent[name].default for name in transformer.keys() & recurrent.keys())


@pytest.mark.parametrize("encoding", ["learned", torch.zeros(11, 12)])
def test_too_long_a_sequence_is_refused(encoding):
    assert model(encoding=encoding)(symbols(2, 11)).shape == (2, 5)
    with pytest.raises(ValueError, match="12 tokens.*max_length = 11"):
        model(encoding=encoding)(symbols(2, 12))


def test_empty_inputs():
    assert model(read_out="token")(symbols(2, 0)).shape == (2, 0, 5)
    assert model(read_out="token")(symbols(0, 4)).shape == (0, 4, 5)
    assert model()(symbols(0, 4)).shape == (0, 5)
    for read_out in ("pooled", "last"):
        with pytest.raises(ValueError, match=f"'{read_out}' needs a real token"):
            model(read_out=read_out)(symbols(2, 0))
        with pytest.raises(ValueError, match=f"'{read_out}' needs a real token"):
            model(read_out=read_out)(symbols(0, 0))


# The forward pass, written out


@pytest.mark.parametrize("causal", [False, True])
def test_forward_by_hand(causal):
    net, tokens = model(encoding="sinusoidal", causal=causal, read_out="token"), symbols()
    x = net.embedding.weight[tokens] + sinusoidal_encoding(6, 12, dtype=torch.float64)
    mask = torch.ones(6, 6, dtype=torch.bool).tril() if causal else None
    for block in net.blocks:
        x = x + block.attention(block.attention_norm(x), mask)
        x = x + block.feed_forward(block.feed_forward_norm(x))
    each = net.head(net.final_norm(x))
    close(net(tokens), each)
    close(model(encoding="sinusoidal", causal=causal, read_out="last")(tokens), each[:, -1])
    pooled = net.head(net.final_norm(x).mean(dim=1))
    close(model(encoding="sinusoidal", causal=causal, read_out="pooled")(tokens), pooled)


def test_scaled_embedding_is_scaled_before_the_codes():
    plain, scaled = model(encoding="sinusoidal"), model(encoding="sinusoidal", scale_embedding=True)
    with torch.no_grad():
        plain.embedding.weight.mul_(math.sqrt(12))
    close(plain(symbols()), scaled(symbols()))


def test_attention_maps():
    net, tokens = model(encoding="sinusoidal", causal=True), symbols()
    maps = net.attention_weights(tokens)
    assert [m.shape for m in maps] == [(2, 3, 6, 6)] * 2
    for weights in maps:
        close(weights.sum(dim=-1), torch.ones(2, 3, 6, dtype=torch.float64))
        assert (weights.triu(1) == 0).all()
    assert not torch.allclose(maps[0], maps[1])
    padding = torch.tensor([[True] * 4 + [False] * 2] * 2)
    assert (net.attention_weights(tokens, padding)[0][..., 4:] == 0).all()


# Equal beginnings


@pytest.mark.parametrize("encoding", ["sinusoidal", "learned", torch.ones(11, 12)])
def test_one_seed_gives_one_beginning_whatever_the_encoding(encoding):
    one, other = model(encoding="none"), model(encoding=encoding)
    shared = one.state_dict()
    assert all(torch.equal(shared[name], other.state_dict()[name]) for name in shared)
    assert parameter_count(other) - parameter_count(one) == (11 * 12 if encoding == "learned" else 0)


def test_seeds_and_read_outs():
    assert torch.equal(model(seed=1)(symbols()), model(seed=1)(symbols()))
    assert not torch.equal(model(seed=1)(symbols()), model(seed=2)(symbols()))
    assert torch.equal(model(read_out="last").head.weight, model(read_out="token").head.weight)


def test_checkpoints():
    short = model(encoding="sinusoidal")
    longer = Transformer(**SIZES, encoding="sinusoidal").double()
    longer.load_state_dict(short.state_dict())
    close(longer(symbols(2, 40)), short(symbols(2, 40)))
    assert not any("encoding" in name for name in model(encoding=torch.zeros(11, 12)).state_dict())
    assert "encoding.table" in model(encoding="learned").state_dict()


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_dtype_follows_the_model(encoding, dtype):
    assert model(encoding=encoding).to(dtype)(symbols()).dtype == dtype


def test_short_integers_are_tokens_too():
    assert torch.equal(model()(symbols().int()), model()(symbols()))


# Order


@pytest.mark.parametrize("num_layers", [1, 3])
def test_without_an_encoding_tokens_are_equivariant_and_pools_invariant(num_layers):
    tokens = torch.tensor([[3, 1, 3, 6]])
    per_token = model(encoding="none", read_out="token", num_layers=num_layers)
    pooled = model(encoding="none", num_layers=num_layers)
    for order in all_orders(4):
        assert equivariance_gap(per_token, tokens, order) < 1e-12
        assert invariance_gap(pooled, tokens, order) < 1e-12
    assert invariance_gap(per_token, tokens, [1, 0, 2, 3]) > 1e-3


@pytest.mark.parametrize("encoding", ["sinusoidal", "learned", torch.randn(11, 12, generator=torch.Generator().manual_seed(0))])
def test_an_encoding_breaks_both(encoding):
    tokens = torch.tensor([[3, 1, 3, 6]])
    assert equivariance_gap(model(encoding=encoding, read_out="token"), tokens, [1, 0, 2, 3]) > 1e-3
    assert invariance_gap(model(encoding=encoding), tokens, [1, 0, 2, 3]) > 1e-3


def test_causality_by_influence():
    net, tokens = model(encoding="sinusoidal", causal=True, read_out="token"), symbols()
    changed = tokens.clone()
    changed[:, 3] = (changed[:, 3] + 1) % 7
    moved = (net(changed) - net(tokens)).abs().amax(dim=(0, 2))
    assert (moved[:3] == 0).all() and (moved[3:] > 1e-6).all()


# Padding


@settings(max_examples=25)
@given(st.sampled_from(READ_OUTS), st.sampled_from(ENCODINGS), st.booleans(), st.integers(1, 6), st.integers(1, 5))
def test_padding_behind_changes_nothing(read_out, encoding, causal, length, padding):
    net, tokens = model(encoding=encoding, read_out=read_out, causal=causal), symbols(3, length)
    padded = torch.cat([tokens, symbols(3, padding, seed=5)], dim=1)
    real = torch.arange(length + padding).expand(3, -1) < length
    alone, within = net(tokens), net(padded, real)
    close(within[:, :length] if read_out == "token" else within, alone)


@pytest.mark.parametrize("read_out", ["pooled", "last"])
def test_padding_in_front_and_unequal_lengths(read_out):
    net, tokens = model(encoding="none", read_out=read_out), symbols(3, 6)
    real = torch.tensor([[True] * 6, [False] * 2 + [True] * 4, [True, True, False, True, False, False]])
    batch = net(tokens, real)
    for row in range(3):
        close(batch[row], net(tokens[row, real[row]][None])[0])


def test_a_sequence_of_padding_alone_is_refused():
    real = torch.tensor([[True] * 6, [False] * 6])
    assert model(read_out="token")(symbols(), real).isfinite().all()
    for read_out in ("pooled", "last"):
        with pytest.raises(ValueError, match="one has none"):
            model(read_out=read_out)(symbols(), real)


def test_bad_key_mask_is_refused():
    with pytest.raises(ValueError, match="key_mask must be a boolean"):
        model()(symbols(), torch.ones(2, 6))
    with pytest.raises(ValueError, match=r"key_mask must be \(B, T\) = \(2, 6\)"):
        model()(symbols(), torch.ones(2, 5, dtype=torch.bool))


def test_gradient_reaches_every_parameter():
    net = model(encoding="learned", max_length=6)
    net(symbols(4, 6, seed=3)).square().sum().backward()
    without = {name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()}
    assert without == set()


# The block alone


def test_block_is_two_residual_steps_and_leaves_its_input_alone():
    with seeded(0):
        block = TransformerBlock(12, 3).double()
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    before = x.clone()
    between = x + block.attention(block.attention_norm(x))
    close(block(x), between + block.feed_forward(block.feed_forward_norm(between)))
    assert torch.equal(x, before)


def test_block_has_as_many_numbers_as_its_parts():
    attention, norms, feed_forward = 4 * (12 * 12 + 12), 2 * 2 * 12, 2 * 12 * 48 + 48 + 12
    assert parameter_count(TransformerBlock(12, 3)) == attention + norms + feed_forward
    with pytest.raises(ValueError, match="expansion must be an integer of at least 1, not 0"):
        TransformerBlock(12, 3, expansion=0)


def test_without_a_vocabulary_the_sequence_is_of_numbers():
    numbers = torch.randn(2, 5, generator=torch.Generator().manual_seed(1))
    model = Transformer(None, 1, d_model=6, encoding="none")
    weight, bias = model.embedding.weight[:, 0], model.embedding.bias
    torch.testing.assert_close(model.embedding(numbers)[1, 3], numbers[1, 3] * weight + bias)
    assert model.vocab_size is None and model(numbers).shape == (2, 1)
    torch.testing.assert_close(model(numbers.flip(1)), model(numbers), atol=1e-5, rtol=0)
    for encoding in ENCODINGS:
        assert Transformer(None, 1, d_model=6, encoding=encoding, max_length=5)(numbers).shape == (2, 1)


@pytest.mark.parametrize("wrong", [torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 5, 1), [[0.0]]])
def test_without_a_vocabulary_symbols_are_refused(wrong):
    with pytest.raises(ValueError, match=r"tensor \(B, T\)"):
        Transformer(None, 1, d_model=6)(wrong)
