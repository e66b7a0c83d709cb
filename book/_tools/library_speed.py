"""How fast the library is beside what does the same: ratios of medians, measured turn and turn about in one run.

A ratio of 1.10 says that ours takes ten percent longer than the other. Times alone say little about another machine.
"""

import math
import statistics
import sys
import time
from collections.abc import Callable

import notebook_files

sys.path.insert(0, str(notebook_files.ROOT / "lib"))

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from posenc import attention, encodings, recurrent  # noqa: E402

LENGTHS = (64, 256, 1024, 4096)
SECONDS = 0.3


def ratio(ours: Callable, theirs: Callable) -> float:
    """Median time of `ours` over that of `theirs`."""
    times, end = ([], []), time.perf_counter() + SECONDS
    for call in (ours, theirs):
        call()
    while time.perf_counter() < end or len(times[0]) < 3:
        for call, spent in zip((ours, theirs), times):
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
    return statistics.median(times[0]) / statistics.median(times[1])


def with_gradient(call: Callable, *leaves: torch.Tensor) -> Callable:
    def both() -> None:
        result = call()
        torch.autograd.grad((result[0] if isinstance(result, tuple) else result).sum(), leaves)

    return both


def without_gradient(call: Callable, *_: torch.Tensor) -> Callable:
    def forward() -> None:
        with torch.no_grad():
            call()

    return forward


def explicit_forms(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> dict[str, Callable]:
    """The usual ways to write attention with its weights out."""

    def scores_scaled():
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
        return weights @ v, weights

    def queries_scaled():
        weights = (q / math.sqrt(q.shape[-1]) @ k.mT).softmax(-1)
        return weights @ v, weights

    def by_einsum():
        weights = (torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(q.shape[-1])).softmax(-1)
        return torch.einsum("bhts,bhsd->bhtd", weights, v), weights

    return {"scores scaled": scores_scaled, "queries scaled": queries_scaled, "einsum": by_einsum}


def attention_ratios(length: int, way: Callable) -> tuple[float, float, float]:
    """Ours over the fused kernel in the same layer, over torch's layer, and with weights over the best explicit form."""
    torch.manual_seed(0)
    ours, theirs = attention.MultiHeadAttention(64, 8), nn.MultiheadAttention(64, 8, batch_first=True)
    x = torch.randn(1, length, 64, requires_grad=True)

    def bare():
        q, k, v = (p(x).unflatten(-1, (8, 8)).transpose(1, 2) for p in (ours.to_query, ours.to_key, ours.to_value))
        return ours.to_output(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    fused = ratio(way(lambda: ours(x), x), way(bare, x))
    layer = ratio(way(lambda: ours(x), x), way(lambda: theirs(x, x, x, need_weights=False), x))
    q, k, v = (torch.randn(1, 8, length, 64, requires_grad=True) for _ in range(3))
    leaves = (q, k, v)
    with_weights = way(lambda: attention.scaled_dot_product_attention(q, k, v), *leaves)
    best = max(ratio(with_weights, way(form, *leaves)) for form in explicit_forms(q, k, v).values())
    return fused, layer, best


def naive_table(length: int, width: int) -> list[list[float]]:
    table = [[0.0] * width for _ in range(length)]
    for p in range(length):
        for i in range(width // 2):
            angle = p / 10000 ** (2 * i / width)
            table[p][2 * i], table[p][2 * i + 1] = math.sin(angle), math.cos(angle)
    return table


def encoding_ratios() -> dict[str, float]:
    found = {"sinusoidal table, over a loop": ratio(lambda: encodings.sinusoidal_encoding(512, 64), lambda: naive_table(512, 64))}
    try:
        from transformers import LlamaConfig
        from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
        from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding as Marian
    except ImportError:
        return found

    def marian():
        return Marian(512, 64).create_weight()

    found["sinusoidal table, over the reference library"] = ratio(lambda: encodings.sinusoidal_encoding(512, 64), marian)
    turning = LlamaRotaryEmbedding(LlamaConfig(hidden_size=512, num_attention_heads=8))
    q, places = torch.randn(1, 8, 1024, 64), torch.arange(1024)[None]

    def llama():
        return apply_rotary_pos_emb(q, q, *turning(q, places))

    def rotary():
        return encodings.apply_rotary(q, layout="concat"), encodings.apply_rotary(q, layout="concat")

    found["rotary, over the reference library"] = ratio(rotary, llama)
    return found


def recurrent_ratios(length: int, way: Callable) -> dict[str, float]:
    x = torch.randn(8, length, 64, requires_grad=True)
    pairs = {"Elman": (recurrent.ElmanRNN, nn.RNN), "GRU": (recurrent.GRU, nn.GRU), "LSTM": (recurrent.LSTM, nn.LSTM)}
    found = {}
    for name, (ours, theirs) in pairs.items():
        mine, other = ours(64, 64), theirs(64, 64, batch_first=True)
        found[name] = ratio(way(lambda mine=mine: mine(x), x), way(lambda other=other: other(x), x))
    return found


def report() -> None:
    torch.set_num_threads(1)
    print("the library beside others, as ratios of medians in this run (above 1: ours is slower), one thread")
    ways = {"forward": without_gradient, "forward and backward": with_gradient}
    for name, way in ways.items():
        print(f"attention, {name}:  n   over the fused kernel   over torch's layer   with weights, over the best explicit form")
        for length in LENGTHS:
            fused, layer, explicit = attention_ratios(length, way)
            print(f"{length:>{len(name) + 15}}{fused:24.2f}{layer:21.2f}{explicit:45.2f}", flush=True)
    for name, value in encoding_ratios().items():
        print(f"{value:8.2f}  {name}", flush=True)
    for name, way in ways.items():
        for cell, value in recurrent_ratios(128, way).items():
            print(f"{value:8.2f}  {cell}, 8 sequences of 128, {name}, over torch's", flush=True)


if __name__ == "__main__":
    report()
