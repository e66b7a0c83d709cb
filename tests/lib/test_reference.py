"""Our encodings beside those of the reference library, `transformers`: other hands, the same numbers."""

import pytest
import torch
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as turned_by_gptj
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as turned_by_llama
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.t5.configuration_t5 import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from posenc.encodings import RelativeBias, alibi_bias, apply_rotary, frequencies, sinusoidal_encoding


def close(ours, theirs, atol):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("length", "d_model"), [(1, 2), (50, 12), (7, 64)])
def test_the_table_of_marian(length, d_model):
    theirs = MarianSinusoidalPositionalEmbedding(length, d_model).create_weight()
    close(sinusoidal_encoding(length, d_model, layout="concat"), theirs, atol=1e-6)


@pytest.mark.parametrize(("length", "d_model"), [(1, 2), (50, 12), (7, 64)])
def test_the_table_of_gpt_j(length, d_model):
    theirs = create_sinusoidal_positions(length, d_model)  # phases in float32, hence the wider margin
    close(sinusoidal_encoding(length, d_model, layout="concat"), theirs, atol=1e-5)


def test_rotary_by_neighbours_as_gpt_j_has_it():
    x = random(2, 9, 3, 8)  # (B, T, H, d)
    sine, cosine = create_sinusoidal_positions(9, 8)[None].expand(2, -1, -1).chunk(2, dim=-1)
    close(apply_rotary(x.transpose(1, 2)), turned_by_gptj(x, sine, cosine).transpose(1, 2), atol=5e-6)


def test_rotary_by_halves_as_llama_has_it():
    query, key = random(2, 3, 9, 8), 2 * random(2, 3, 9, 8)
    phase = torch.arange(9.0)[:, None] * frequencies(8).float()
    both = torch.cat([phase, phase], dim=-1)[None]
    for ours, theirs in zip((query, key), turned_by_llama(query, key, both.cos(), both.sin())):
        close(apply_rotary(ours, layout="concat"), theirs, atol=5e-6)


@pytest.mark.parametrize("num_heads", [1, 2, 3, 6, 8, 12, 20])
def test_alibi_as_bloom_has_it(num_heads):
    theirs = build_alibi_tensor(torch.ones(1, 5, dtype=torch.long), num_heads, torch.float32)  # one row, by key
    ours = alibi_bias(num_heads, 5)[:, -1:]
    close(ours - ours[..., :1], theirs - theirs[..., :1], atol=1e-6)


@pytest.mark.parametrize(("queries", "keys"), [(8, 8), (3, 6), (1, 8)])
def test_relative_bias_as_t5_has_it_within_seven_places(queries, keys):
    """T5 gives the first eight distances a bucket each, and further ones share buckets that grow."""
    theirs, ours = T5Attention(T5Config(num_heads=3), has_relative_attention_bias=True, layer_idx=0), RelativeBias(3, 7)
    buckets = [-offset if offset <= 0 else 16 + offset for offset in range(-7, 8)]
    with torch.no_grad():
        ours.table.copy_(theirs.relative_attention_bias.weight[buckets].T)
    bias = theirs.compute_bias(queries, keys, past_seen_tokens=keys - queries)[0]
    close(ours(random(1, 3, queries, 4), random(1, 3, keys, 4))[2], bias, atol=0)
