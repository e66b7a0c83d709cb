"""How fast the library is beside what does the same, as ratios: 1.10 says that ours takes ten percent longer.

Ours and its rivals run in turn, one call each a round, and each round gives a ratio. Printed are their median, half the
distance between their quartiles (how much to trust it: a busy machine shows here), and the number of rounds. Times
would say little about another machine. One thread; in attention one sequence at a time, which shows most of what
surrounds a kernel; layers are in evaluation mode where nothing goes backward.
"""

import functools
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import notebook_files

sys.path.insert(0, str(notebook_files.ROOT / "lib"))

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from posenc import attention, encodings, recurrent  # noqa: E402

LENGTHS = (64, 256, 1024, 4096)
SECONDS, ROUNDS = 0.6, 5
"""How long a comparison goes on, and its least number of rounds."""

Call = Callable[[], object]
Way = Callable[[Call, Iterable[Tensor]], Call]
Rivals = dict[str, tuple[Call, Sequence[Call]]]
"""By name: ours, and what does the same. Of several the one that comes off best counts."""


class Ratio(NamedTuple):
    median: float
    spread: float
    rounds: int

    def __str__(self) -> str:
        return f"{self.median:.2f} ±{self.spread:.2f}"


def compare(ours: Call, theirs: Sequence[Call]) -> Ratio:
    """The time of `ours` over that of the best of `theirs`."""
    calls = [ours, *theirs]
    for call in calls:
        call()
    rounds, end = [], time.perf_counter() + SECONDS
    while len(rounds) < ROUNDS or time.perf_counter() < end:
        spent = {}
        for call in calls if len(rounds) % 2 else reversed(calls):  # so that no one always comes after the same
            start = time.perf_counter()
            call()
            spent[call] = time.perf_counter() - start
        rounds.append([spent[ours] / spent[call] for call in theirs])
    quartiles = max((statistics.quantiles(ratios, n=4) for ratios in zip(*rounds)), key=lambda cuts: cuts[1])
    return Ratio(quartiles[1], (quartiles[2] - quartiles[0]) / 2, len(rounds))


def forward(call: Call, _: Iterable[Tensor] = ()) -> Call:
    return torch.no_grad()(call)


def forward_and_backward(call: Call, leaves: Iterable[Tensor]) -> Call:
    leaves = list(leaves)

    def both() -> object:
        result = call()
        return torch.autograd.grad((result[0] if isinstance(result, tuple) else result).sum(), leaves)

    return both


class Fused(attention.MultiHeadAttention):
    """Our layer with nothing between its projections but torch's kernel."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self._split(project(x)) for project in (self.to_query, self.to_key, self.to_value))
        return self.to_output(self._merge(F.scaled_dot_product_attention(query, key, value)))


def torch_layer(ours: attention.MultiHeadAttention) -> nn.MultiheadAttention:
    """torch's layer with the weights of ours."""
    theirs = nn.MultiheadAttention(ours.d_model, ours.num_heads, batch_first=True)
    parts = ours.to_query, ours.to_key, ours.to_value
    theirs.load_state_dict({
        "in_proj_weight": torch.cat([part.weight for part in parts]),
        "in_proj_bias": torch.cat([part.bias for part in parts]),
        "out_proj.weight": ours.to_output.weight,
        "out_proj.bias": ours.to_output.bias,
    })  # fmt: skip
    return theirs


def scores_scaled(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)
    return weights @ value, weights


def queries_scaled(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    weights = (query / math.sqrt(query.shape[-1]) @ key.mT).softmax(-1)
    return weights @ value, weights


def of_attention(length: int, way: Way) -> Rivals:
    torch.manual_seed(0)
    ours = attention.MultiHeadAttention(64, 4)
    fused, theirs = Fused(64, 4), torch_layer(ours)
    fused.load_state_dict(ours.state_dict())
    x = torch.randn(1, length, 64, requires_grad=True)
    heads = [torch.randn(1, 4, length, 64, requires_grad=True) for _ in range(3)]

    def layer(module: nn.Module, *arguments: Tensor, **options: bool) -> Call:
        module.train(way is forward_and_backward)
        return way(lambda: module(*arguments, **options), [x, *module.parameters()])

    def alone(function: Callable) -> Call:
        return way(lambda: function(*heads), heads)

    with_weights = alone(attention.scaled_dot_product_attention)
    explicit = [alone(form) for form in (scores_scaled, queries_scaled)]
    of_torch = functools.partial(layer, theirs, x, x, x, average_attn_weights=False)
    return {
        "without weights, over the fused kernel in the layer": (layer(ours, x), [layer(fused, x)]),
        "without weights, over nn.MultiheadAttention": (layer(ours, x), [of_torch(need_weights=False)]),
        "with weights, over the best explicit form": (with_weights, explicit),
        "with weights, over the fused kernel": (with_weights, [alone(F.scaled_dot_product_attention)]),
        "with weights, over nn.MultiheadAttention": (layer(ours, x, need_weights=True), [of_torch(need_weights=True)]),
    }


def naive_table(length: int, width: int) -> list[list[float]]:
    table = [[0.0] * width for _ in range(length)]
    for p in range(length):
        for i in range(width // 2):
            angle = p / 10000 ** (2 * i / width)
            table[p][2 * i], table[p][2 * i + 1] = math.sin(angle), math.cos(angle)
    return table


def of_encodings(length: int) -> Rivals:
    """Beside a loop, and beside the reference library, `transformers`.

    The table that GPT-J uses has phases in float32, ours and Marian's in float64. GPT-J keeps it; ours and Llama's
    rotary compute the angles at each call. Bloom's ALiBi is one row, which is right under a causal mask only.
    """
    from transformers import LlamaConfig
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as turn_neighbours
    from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as turn_halves
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding as Marian

    torch.manual_seed(0)
    query, key = torch.randn(2, 1, length, 8, 64).transpose(2, 3)
    scores = torch.randn(8, length, length).masked_fill(~attention.causal_mask(length), -math.inf)
    angles = LlamaRotaryEmbedding(LlamaConfig(hidden_size=512, num_attention_heads=8))
    kept = create_sinusoidal_positions(length, 64)[None].chunk(2, dim=-1)
    positions, real = torch.arange(length)[None], torch.ones(1, length)
    table = functools.partial(encodings.sinusoidal_encoding, length, 64)
    halves = functools.partial(table, layout="concat")

    def turned(layout: str) -> Call:
        encoding = encodings.Rotary(layout=layout)
        return lambda: encoding(query, key)[:2]

    def turned_by_gptj() -> list[Tensor]:
        return [turn_neighbours(x.transpose(1, 2), *kept).transpose(1, 2) for x in (query, key)]

    def turned_by_llama() -> tuple[Tensor, Tensor]:
        return turn_halves(query, key, *angles(query, positions))

    return {
        "sinusoidal table, over a loop": (table, [lambda: naive_table(length, 64)]),
        "sinusoidal table, over Marian's": (halves, [lambda: Marian(length, 64).create_weight()]),
        "sinusoidal table, over GPT-J's": (halves, [lambda: create_sinusoidal_positions(length, 64)]),
        "rotary by halves, over Llama's": (turned("concat"), [turned_by_llama]),
        "rotary by neighbours, over GPT-J's": (turned("interleaved"), [turned_by_gptj]),
        "weights with ALiBi, causal, over Bloom's": (
            lambda: (scores + encodings.alibi_bias(8, length)).softmax(-1),
            [lambda: (scores + build_alibi_tensor(real, 8, torch.float32)).softmax(-1)],
        ),
    }


def of_recurrence(way: Way) -> Rivals:
    torch.manual_seed(0)
    x = torch.randn(8, 128, 64, requires_grad=True)
    rivals = {}
    for name, (ours, theirs) in {
        "Elman": (recurrent.ElmanRNN(64, 64), nn.RNN(64, 64, batch_first=True)),
        "LSTM": (recurrent.LSTM(64, 64), nn.LSTM(64, 64, batch_first=True)),
        "GRU": (recurrent.GRU(64, 64), nn.GRU(64, 64, batch_first=True)),
    }.items():
        theirs.load_state_dict({f"{part}_l0": value for part, value in ours.state_dict().items()})
        calls = [way(functools.partial(module, x), [x, *module.parameters()]) for module in (ours, theirs)]
        rivals[f"{name}, over torch's"] = calls[0], calls[1:]
        if name == "LSTM":  # torch's is one kernel of oneDNN, where it has that library, and else operations like ours
            rivals["LSTM, over torch's without oneDNN"] = calls[0], [without_onednn(calls[1])]
    return rivals


def without_onednn(call: Call) -> Call:
    def run() -> object:
        torch.backends.mkldnn.set_flags(False)
        try:
            return call()
        finally:
            torch.backends.mkldnn.set_flags(True)

    return run


def heading(text: str, columns: Iterable[str]) -> None:
    print(f"\n{text:52}" + "".join(f"{column:>15}" for column in columns) + "   rounds", flush=True)


def line(name: str, ratios: Sequence[Ratio]) -> None:
    rounds = " ".join(str(ratio.rounds) for ratio in ratios)
    print(f"{name:52}" + "".join(f"{ratio!s:>15}" for ratio in ratios) + f"   {rounds}", flush=True)


def report() -> None:
    torch.set_num_threads(1)
    print("the library beside others: time of ours over theirs ± half the distance of the quartiles (above 1: slower)")
    ways = {"forward": forward, "with backward": forward_and_backward}
    for title, way in ways.items():
        heading(f"attention, {title}", (f"n = {length}" for length in LENGTHS))
        for name in of_attention(1, way):
            line(name, [compare(*of_attention(length, way)[name]) for length in LENGTHS])
    heading("encodings, 64 columns, 8 heads", ("n = 64", "n = 1024"))
    for name in of_encodings(2):
        line(name, [compare(*of_encodings(length)[name]) for length in (64, 1024)])
    heading("recurrence, 8 sequences of 128 tokens", ways)
    for name in of_recurrence(forward):
        line(name, [compare(*of_recurrence(way)[name]) for way in ways.values()])


if __name__ == "__main__":
    report()
