"""Whatever the public functions are given: a result, or a ValueError of ours that says what is wrong.

Never an error from inside torch, never NaN out of finite numbers. Arguments are drawn from values that fit and values
that do not, so that often a single one of them is wrong.
"""

import pathlib
import traceback

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import posenc
from posenc import attention, encodings, models, recurrent, series, symmetry, tasks, training

LIBRARY = str(pathlib.Path(posenc.__file__).parent)
HUGE = 10**12
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]

numbers = st.sampled_from([-3, -1, 0, 1, 2, 3, 4, 5, 6, 8, 2.0, 0.5, True, HUGE, -HUGE, float("nan"), float("inf"), "4", None])
words = st.sampled_from(["interleaved", "concat", "", "none", "rotary", "learned", "pooled", "last", "token", "lstm", 3, None])
anything = st.one_of(numbers, words, st.sampled_from([[], [1, 0, 2], (), {}, object(), torch.float32, torch.int64]))


@st.composite
def tensors(draw, dtypes=DTYPES):
    """Of any rank up to four and any size up to four, zero included; some with a NaN or an infinity in it."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    dtype = draw(st.sampled_from(dtypes))
    g = torch.Generator().manual_seed(draw(st.integers(0, 3)))
    x = torch.randint(-2, 5, shape, generator=g).to(dtype)
    if dtype.is_floating_point and x.numel() and draw(st.integers(0, 4)) == 0:
        x.flatten()[0] = draw(st.sampled_from([float("nan"), float("inf"), float("-inf")]))
    return x


@st.composite
def tokens_of(draw, *sizes, dtype=torch.float32):
    """A tensor that fits, or nearly: of these sizes, with one of them changed now and then."""
    sizes = list(sizes)
    if sizes and draw(st.integers(0, 3)) == 0:
        sizes[draw(st.integers(0, len(sizes) - 1))] = draw(st.integers(0, 5))
    return torch.randn(sizes, generator=torch.Generator().manual_seed(0)).to(dtype)


def masks(*sizes):
    return st.one_of(st.none(), tokens_of(*sizes, dtype=torch.bool), tensors())


def finite(value) -> bool:
    if isinstance(value, Tensor):
        return not value.is_floating_point() or bool(value.isfinite().all())
    if isinstance(value, (tuple, list)):
        return all(map(finite, value))
    return not isinstance(value, float) or value == value


def call(function, *arguments, **named):
    """The result, or None if the library refused in words of its own."""
    given_finite = finite(arguments) and finite(list(named.values()))
    try:
        result = function(*arguments, **named)
    except ValueError as error:
        frames = traceback.extract_tb(error.__traceback__)
        assert frames[-1].filename.startswith(LIBRARY), f"refused by {frames[-1].filename}: {error}"
        assert len(str(error).split()) > 2
        return None
    # Where minus infinity may stand as a bias, or half precision overflows, infinity is no surprise, but NaN is.
    if given_finite:
        for tensor in result if isinstance(result, tuple) else (result,):
            if isinstance(tensor, Tensor) and tensor.is_floating_point():
                assert not tensor.isnan().any(), f"NaN out of finite numbers: {function}"
    return result


MODEL = models.Transformer(5, 3, d_model=4, read_out="token")

CASES = {
    "attention": (attention.scaled_dot_product_attention, [tokens_of(2, 3, 4), tokens_of(2, 5, 4), tokens_of(2, 5, 3), masks(3, 5), masks(2, 3, 5)]),
    "causal mask": (attention.causal_mask, [numbers]),
    "multi-head attention": (attention.MultiHeadAttention(4, 2).forward, [tokens_of(2, 3, 4), masks(3, 3), masks(2, 3), st.booleans()]),
    "new multi-head attention": (attention.MultiHeadAttention, [numbers, numbers]),
    "frequencies": (encodings.frequencies, [numbers, numbers]),
    "sinusoidal table": (encodings.sinusoidal_encoding, [numbers, numbers, numbers, words, numbers, st.sampled_from([*DTYPES, None])]),
    "new sinusoidal layer": (encodings.SinusoidalEncoding, [numbers, numbers, words]),
    "sinusoidal layer": (encodings.SinusoidalEncoding(4).forward, [tokens_of(2, 3, 4)]),
    "new learned layer": (encodings.LearnedEncoding, [numbers, numbers]),
    "learned layer": (encodings.LearnedEncoding(3, 4).forward, [tokens_of(2, 3, 4)]),
    "fixed codes": (encodings.FixedCodes, [st.one_of(tensors(), anything)]),
    "random positions": (encodings.RandomPositions, [st.one_of(tensors(), anything), numbers]),
    "rotary": (encodings.apply_rotary, [tokens_of(2, 3, 4), numbers, numbers, words]),
    "rotary layer": (encodings.Rotary().forward, [tokens_of(1, 2, 3, 4), tokens_of(1, 2, 3, 4)]),
    "slopes": (encodings.alibi_slopes, [numbers]),
    "alibi bias": (encodings.alibi_bias, [numbers, numbers, numbers]),
    "alibi layer": (encodings.Alibi().forward, [tokens_of(1, 2, 3, 4), tokens_of(1, 2, 5, 4)]),
    "new relative bias": (encodings.RelativeBias, [numbers, numbers]),
    "relative bias": (encodings.RelativeBias(2, 2).forward, [tokens_of(1, 2, 3, 4), tokens_of(1, 2, 5, 4)]),
    "permute": (symmetry.permute_tokens, [tokens_of(2, 3, 4), st.sampled_from([[0, 2, 1], [0, 1], [0, 0, 1], [0, 1, 3], torch.tensor([2, 0, 1]), torch.eye(3), "012", None, [True, False, 2]])]),
    "equivariance gap": (lambda x, order: symmetry.equivariance_gap(torch.cos, x, order), [tokens_of(2, 3, 4), st.sampled_from([[0, 2, 1], [0, 1], None])]),
    "all orders": (symmetry.all_orders, [numbers]),
    "unseen rows": (symmetry.unseen_rows, [tokens_of(3, 3), st.sampled_from([[0, 2, 1], [0, 1], None])]),
    "unseen orders": (symmetry.unseen_orders, [tokens_of(3, 3)]),
    "blind ceiling": (symmetry.order_blind_ceiling, [tokens_of(2, 3, dtype=torch.int64), tokens_of(2, 3, dtype=torch.int64)]),
    "reversal ceiling": (symmetry.reversal_ceiling, [numbers.filter(lambda n: n != HUGE), numbers.filter(lambda n: n != HUGE)]),
    "first-token ceiling": (symmetry.first_token_ceiling, [numbers.filter(lambda n: n != HUGE), numbers.filter(lambda n: n != HUGE)]),
    "block": (models.TransformerBlock(4, 2).forward, [tokens_of(2, 3, 4), masks(3, 3), masks(2, 3)]),
    "new transformer": (models.Transformer, [numbers.filter(lambda n: n != HUGE)] * 4),
    "transformer": (models.Transformer(5, 3, d_model=4, encoding="learned", max_length=4).forward, [tokens_of(2, 3, dtype=torch.int64), masks(2, 3)]),
    "new recurrent model": (models.RecurrentModel, [numbers.filter(lambda n: n != HUGE)] * 3),
    "recurrent model": (models.RecurrentModel(5, 3, d_model=4).forward, [tokens_of(2, 3, dtype=torch.int64), masks(2, 3)]),
    "elman": (recurrent.ElmanRNN(4, 3).forward, [tokens_of(2, 3, 4), st.one_of(st.none(), tokens_of(2, 3)), st.one_of(st.none(), tokens_of(2, dtype=torch.int64), st.just([3, 1]))]),
    "lstm": (recurrent.LSTM(4, 3).forward, [tokens_of(2, 3, 4), st.one_of(st.none(), st.tuples(tokens_of(2, 3), tokens_of(2, 3))), st.just(torch.tensor([2, 1]))]),
    "gru": (recurrent.GRU(4, 3).forward, [tokens_of(2, 3, 4), st.none(), st.sampled_from([None, [0, 3], [4, 1], [1], "ab", torch.tensor([1.0, 2.0])])]),
    "task": (tasks.TokenBack, [numbers, numbers]),
    "sample": (tasks.TokenBack(2, 3).sample, [numbers.filter(lambda n: n != HUGE), numbers.filter(lambda n: n != HUGE), st.just(torch.Generator())]),
    "score": (lambda tokens, targets: training.score(MODEL, tokens, targets), [tokens_of(2, 3, dtype=torch.int64), tokens_of(2, 3, dtype=torch.int64)]),
    "autoregression": (series.fit_autoregression, [st.one_of(tokens_of(9), tensors()), numbers]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_result_or_a_refusal_in_our_words(name):
    function, strategies = CASES[name]

    @settings(max_examples=60, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*strategies), st.integers(0, 2 * len(strategies)), st.one_of(tensors(), anything))
    def fuzz(arguments, place, odd):
        arguments = list(arguments)
        if place < len(arguments):
            arguments[place] = odd
        call(function, *arguments)

    fuzz()


def test_the_fuzz_sees_what_it_is_for():
    with pytest.raises(RuntimeError):
        call(torch.matmul, torch.zeros(2, 3), torch.zeros(2, 3))
    with pytest.raises(AssertionError, match="NaN"):
        call(torch.Tensor.log, torch.tensor([-1.0]))
    with pytest.raises(AssertionError, match="refused by"):
        call(int, "x")
