"""Encodings that are added to the tokens: exact values, an independent table, and what no input may do to them."""

import inspect
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from posenc import encodings
from posenc.encodings import (
    FixedCodes,
    LearnedEncoding,
    RandomPositions,
    SinusoidalEncoding,
    frequencies,
    sinusoidal_encoding,
)
from posenc.training import seeded

PRECISE = {"rtol": 0, "atol": 1e-12}

even_widths = st.integers(1, 20).map(lambda half: 2 * half)
layouts = st.sampled_from(["interleaved", "concat"])


def close(a, b, **tolerance):
    torch.testing.assert_close(a, b, **(tolerance or PRECISE))


def tensor(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def double(length, d_model, **options):
    return sinusoidal_encoding(length, d_model, dtype=torch.float64, **options)


def table_by_hand(length, d_model, base=10000.0, start=0):
    """The formula of the paper, one number at a time, with no tensor in it."""
    rows = []
    for position in range(start, start + length):
        row = []
        for column in range(d_model):
            angle = position / math.pow(base, 2 * (column // 2) / d_model)
            row.append(math.cos(angle) if column % 2 else math.sin(angle))
        rows.append(row)
    return tensor(rows).reshape(length, d_model)


def learned(max_length=6, d_model=4, dtype=torch.float64, seed=0):
    made = LearnedEncoding(max_length, d_model).to(dtype)
    with torch.no_grad():
        made.table.copy_(random(max_length, d_model, seed=seed))
    return made


LAYERS = {
    "sinusoidal": lambda: SinusoidalEncoding(4),
    "learned": lambda: learned(dtype=torch.float32),
    "fixed": lambda: FixedCodes(random(6, 4, dtype=torch.float32)),
}
every_layer = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS.keys())


# Exact values of the sinusoidal table


def test_columns_of_a_pair_share_one_frequency():
    """Column numbers in the exponent instead of pair numbers would give 0.8415, 0.99995, 0.0001, 1."""
    close(double(2, 4)[1], tensor([0.841471, 0.540302, 0.010000, 0.999950]), rtol=0, atol=5e-7)


def test_cosine_has_the_exponent_of_its_sine_and_the_base_is_ten_thousand():
    row = double(2, 4)[1]
    assert float(row[1]) == pytest.approx(math.cos(1), abs=1e-15)  # its own exponent: 0.995004
    assert float(row[2]) == pytest.approx(math.sin(0.01), abs=1e-15)  # base 1000: 0.031618


def test_spacing_is_the_papers_and_not_half_minus_one():
    close(frequencies(8), tensor([1, 0.1, 0.01, 0.001]))
    close(frequencies(4), tensor([1, 0.01]))


def test_narrowest_table_is_one_sine_and_one_cosine():
    close(double(3, 2), tensor([[math.sin(p), math.cos(p)] for p in range(3)]))


@pytest.mark.parametrize("d_model", [2, 4, 32, 128, 256, 512, 1024])
def test_power_and_exponential_form_agree(d_model):
    exponential = torch.exp(-math.log(10000.0) * torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    close(frequencies(d_model), exponential, rtol=1e-14, atol=0)
    single = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    close(frequencies(d_model).float(), single, rtol=2e-6, atol=0)


def test_last_frequency_stops_short_of_the_base():
    assert float(frequencies(256)[-1]) == pytest.approx(10000 ** (-254 / 256), rel=1e-14)
    assert float(2 * math.pi / frequencies(32)[-1]) == pytest.approx(2 * math.pi * 5623.4133, rel=1e-7)
    # (-log(10000) / d) // 2 is -1 at d = 256: frequencies 1, 0.135, 0.018
    close(frequencies(256)[:3], tensor([1, math.exp(-0.0719557841), math.exp(-0.1439115683)]), rtol=1e-9, atol=0)


def test_position_zero_is_zeros_and_ones():
    close(double(1, 6)[0], tensor([0, 1, 0, 1, 0, 1]), rtol=0, atol=0)


def test_layouts_are_one_permutation_of_the_columns_apart():
    close(double(2, 4, layout="concat")[1], tensor([0.841471, 0.010000, 0.540302, 0.999950]), rtol=0, atol=5e-7)
    assert torch.equal(double(9, 4, layout="concat"), double(9, 4)[:, [0, 2, 1, 3]])
    assert torch.equal(double(9, 8, layout="concat"), double(9, 8)[:, [0, 2, 4, 6, 1, 3, 5, 7]])


@pytest.mark.parametrize("d_model", [1, 5, 7, 29, 127])
def test_odd_width_is_refused_by_name(d_model):
    for build in (lambda: sinusoidal_encoding(10000, d_model), lambda: SinusoidalEncoding(d_model)):
        with pytest.raises(ValueError, match=rf"d_model must be even.*not {d_model}$"):
            build()


def test_independent_table():
    close(double(50, 12), table_by_hand(50, 12))
    close(double(7, 10, base=100.0, start=-3), table_by_hand(7, 10, base=100.0, start=-3))
    close(double(3, 6, start=100_000), table_by_hand(3, 6, start=100_000), rtol=0, atol=1e-10)


def test_single_precision_is_the_rounded_double():
    """Phases formed in float32 would be off by up to 2e-4 before position 4096."""
    single = sinusoidal_encoding(4096, 64)
    assert single.dtype == torch.float32
    close(single.double(), double(4096, 64), rtol=0, atol=6e-8)


# Properties


@given(st.integers(0, 40), even_widths, st.floats(2, 1e6), st.integers(-50, 5000), layouts)
def test_every_pair_lies_on_the_unit_circle(length, d_model, base, start, layout):
    table = double(length, d_model, base=base, start=start, layout=layout)
    assert table.shape == (length, d_model)
    pairs = table.unflatten(1, (-1, 2)) if layout == "interleaved" else table.unflatten(1, (2, -1)).transpose(1, 2)
    close((pairs**2).sum(dim=-1), torch.ones(length, d_model // 2, dtype=torch.float64))


@given(even_widths, st.integers(-20, 20), st.integers(1, 30))
def test_shift_is_one_rotation_for_every_position(d_model, offset, length):
    shift = torch.zeros(d_model, d_model, dtype=torch.float64)
    for pair, frequency in enumerate(frequencies(d_model).tolist()):
        cosine, sine = math.cos(offset * frequency), math.sin(offset * frequency)
        block = slice(2 * pair, 2 * pair + 2)
        shift[block, block] = tensor([[cosine, sine], [-sine, cosine]])
    close(double(length, d_model) @ shift.T, double(length, d_model, start=offset), rtol=0, atol=1e-12)
    assert float(torch.linalg.det(shift)) == pytest.approx(1, abs=1e-12)


@given(even_widths, layouts, st.integers(2, 30), st.integers(-10, 1000))
def test_dot_products_depend_on_the_offset_alone(d_model, layout, length, start):
    here = double(length, d_model, layout=layout)
    there = double(length, d_model, layout=layout, start=start)
    close(here @ here.T, there @ there.T, rtol=0, atol=1e-11)
    close((here**2).sum(dim=1), torch.full((length,), d_model / 2, dtype=torch.float64))
    offset = torch.arange(length, dtype=torch.float64)
    close(here @ here[0], (offset[:, None] * frequencies(d_model)).cos().sum(dim=1))


@given(st.integers(0, 30), even_widths, st.integers(-30, 30), st.integers(0, 30), layouts)
def test_start_is_a_row_of_the_longer_table(length, d_model, start, skipped, layout):
    whole = double(length + skipped, d_model, start=start, layout=layout)
    close(double(length, d_model, start=start + skipped, layout=layout), whole[skipped:], rtol=0, atol=0)


@given(even_widths, st.integers(1, 30))
def test_negative_positions_mirror_the_sines(d_model, position):
    forward, back = double(1, d_model, start=position)[0], double(1, d_model, start=-position)[0]
    close(back, forward * tensor([-1, 1] * (d_model // 2)))


# Precision


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_table_is_the_rounded_one(dtype):
    low = sinusoidal_encoding(4096, 128, dtype=dtype)
    assert low.dtype == dtype
    assert torch.equal(low, sinusoidal_encoding(4096, 128).to(dtype))
    assert len(low.unique(dim=0)) == 4096
    assert not torch.equal(low[256], low[257]) and not torch.equal(low[2048], low[2049])


def test_positions_in_low_precision_would_not_be_distinct():
    """What the order of casting saves: so many positions are left if they are rounded first."""
    assert len(torch.arange(258).to(torch.bfloat16).unique()) == 257
    assert len(torch.arange(4096).to(torch.bfloat16).unique()) == 769
    assert len(torch.arange(4096).to(torch.float16).unique()) == 3073
    assert torch.tensor(2048).half() == torch.tensor(2049).half()
    rounded = frequencies(128).to(torch.bfloat16).double()
    worst = ((4095 * rounded).cos() - (4095 * frequencies(128)).cos()).abs().max()
    assert float(worst) == pytest.approx(1.68, abs=0.01)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@every_layer
def test_dtype_follows_the_tokens(make, dtype):
    x = random(2, 5, 4, dtype=dtype)
    assert make()(x).dtype == dtype
    assert make().to(dtype)(x).dtype == dtype


@pytest.mark.parametrize("convert", [nn.Module.half, nn.Module.bfloat16, nn.Module.double])
def test_converting_the_layer_does_not_round_the_table(convert):
    layer = convert(SinusoidalEncoding(4))
    close(layer(torch.zeros(1, 300, 4)), sinusoidal_encoding(300, 4)[None], rtol=0, atol=0)
    assert torch.equal(layer(torch.zeros(1, 300, 4).half())[0], sinusoidal_encoding(300, 4).half())
    close(layer(torch.zeros(1, 300, 4).double())[0], double(300, 4), rtol=0, atol=0)


def test_autocast_does_not_round_the_table():
    x = random(2, 300, 4, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = SinusoidalEncoding(4)(x)
    assert torch.equal(inside, SinusoidalEncoding(4)(x))


@every_layer
def test_linear_layer_accepts_the_result(make):
    """A float64 table would promote the tokens, and the next layer would raise."""
    assert nn.Linear(4, 3)(make()(torch.zeros(2, 5, 4))).dtype == torch.float32


@every_layer
def test_device_follows_the_tokens(make):
    layer = make().to("meta")
    assert layer(torch.zeros(2, 5, 4, device="meta")).device.type == "meta"


def test_default_device_does_not_capture_the_table():
    with torch.device("meta"):
        assert sinusoidal_encoding(3, 4).device.type == "cpu"


# The token axis


@pytest.mark.parametrize("batch, length", [(3, 3), (1, 5), (2, 5), (5, 2), (1, 1), (4, 4)])
@every_layer
def test_codes_vary_along_tokens_and_not_along_the_batch(make, batch, length):
    layer = make()
    codes = layer(torch.zeros(batch, length, 4))
    for sample in codes:
        assert torch.equal(sample, codes[0])
    assert len(codes[0].unique(dim=0)) == length
    assert torch.equal(codes[0], layer(torch.zeros(1, 6, 4))[0, :length])


@every_layer
def test_samples_are_independent_and_only_codes_are_added(make):
    layer, x = make(), random(3, 5, 4, dtype=torch.float32)
    codes = layer(torch.zeros(1, 5, 4))[0]
    close(layer(x), x + codes, rtol=0, atol=0)
    changed = x.clone()
    changed[1] += 1
    assert torch.equal(layer(changed)[0], layer(x)[0])


@every_layer
def test_input_is_left_alone(make):
    x = random(2, 5, 4, dtype=torch.float32)
    before = x.clone()
    make()(x)
    assert torch.equal(x, before)


@every_layer
def test_gradient_reaches_the_tokens(make):
    x = random(2, 5, 4, dtype=torch.float32).requires_grad_()
    weight = random(2, 5, 4, seed=1, dtype=torch.float32)
    (make()(x) * weight).sum().backward()
    close(x.grad, weight, rtol=0, atol=0)


@every_layer
def test_empty_inputs(make):
    assert make()(torch.zeros(2, 0, 4)).shape == (2, 0, 4)
    assert make()(torch.zeros(0, 5, 4)).shape == (0, 5, 4)


def test_empty_table():
    assert sinusoidal_encoding(0, 4).shape == (0, 4)


def test_sinusoid_has_no_longest_sequence():
    assert torch.equal(SinusoidalEncoding(2)(torch.zeros(1, 20_000, 2))[0], sinusoidal_encoding(20_000, 2))


@pytest.mark.parametrize("wrong", [random(2, 4), random(2, 3, 5), random(1, 2, 3, 4), torch.zeros(2, 3, 4, dtype=torch.long), [1.0]])
@every_layer
def test_wrong_tokens_are_refused(make, wrong):
    with pytest.raises(ValueError, match=r"\(B, T, 4\)"):
        make()(wrong)


# The scale of the tokens


def test_scale_is_the_root_of_the_width_before_the_codes():
    x = random(2, 5, 512)
    out = SinusoidalEncoding(512, scale_tokens=True)(x)
    close(out - double(5, 512), math.sqrt(512) * x)
    close(SinusoidalEncoding(512)(x) - double(5, 512), x)


def test_three_root_mean_squares():
    def rms(t):
        return float((t**2).mean().sqrt())

    small = 0.2 * torch.rand(20_000, 512, generator=torch.Generator().manual_seed(0)) - 0.1
    assert rms(small) == pytest.approx(0.0577, abs=5e-5)
    assert math.sqrt(512) * rms(small) == pytest.approx(1.306, abs=1e-3)
    assert rms(double(1, 512, start=77)) == pytest.approx(0.70711, abs=1e-5)


# Nothing to train, nothing to store


@pytest.mark.parametrize("name", ["sinusoidal", "fixed"])
def test_fixed_codes_are_neither_trained_nor_stored(name):
    model = nn.Sequential(nn.Linear(4, 4), LAYERS[name]())
    model.requires_grad_(True)
    assert len(list(model.parameters())) == 2
    assert set(model.state_dict()) == {"0.weight", "0.bias"}


def test_checkpoint_does_not_know_the_length():
    short = nn.Sequential(nn.Linear(4, 4), FixedCodes(random(16, 4)))
    long = nn.Sequential(nn.Linear(4, 4), FixedCodes(random(32, 4)))
    long.load_state_dict(short.state_dict())
    model = nn.Sequential(nn.Linear(4, 4), SinusoidalEncoding(4))
    model(torch.zeros(1, 32, 4))
    model.load_state_dict(short.state_dict())


def test_fixed_codes_are_a_copy():
    codes = random(3, 4)
    layer = FixedCodes(codes)
    codes.zero_()
    assert layer(torch.zeros(1, 3, 4)).abs().sum() > 0


def test_fixed_codes_reproduce_a_table():
    codes = sinusoidal_encoding(9, 4)
    x = random(2, 7, 4, dtype=torch.float32)
    assert torch.equal(FixedCodes(codes)(x), SinusoidalEncoding(4)(x))


def test_fixed_codes_carry_no_gradient_to_their_source():
    codes = random(3, 4).requires_grad_()
    assert not FixedCodes(codes)(torch.zeros(1, 3, 4)).requires_grad


@pytest.mark.parametrize("wrong", [random(3), random(2, 3, 4), torch.zeros(0, 4), torch.arange(4).reshape(2, 2), "codes"])
def test_wrong_codes_are_refused(wrong):
    with pytest.raises(ValueError, match="codes must be a floating tensor"):
        FixedCodes(wrong)


# The learned table


@pytest.mark.parametrize("make", [LAYERS["learned"], LAYERS["fixed"]])
def test_table_serves_its_length_and_names_both_numbers_beyond(make):
    assert make()(torch.zeros(1, 6, 4)).shape == (1, 6, 4)
    with pytest.raises(ValueError, match=r"7 tokens.*max_length = 6 rows"):
        make()(torch.zeros(1, 7, 4))
    with pytest.raises(ValueError, match=r"101 tokens.*max_length = 100 rows"):
        LearnedEncoding(100, 2)(torch.zeros(1, 101, 2))


def test_places_beyond_the_whole_numbers_of_float32():
    start = 2**24  # float32 has this number and not the next
    table = sinusoidal_encoding(2, 4, start=start, dtype=torch.float64)
    wanted = [[math.sin(p), math.cos(p), math.sin(p / 100), math.cos(p / 100)] for p in (start, start + 1)]
    close(table, torch.tensor(wanted, dtype=torch.float64), rtol=0, atol=1e-8)


def test_the_largest_count_and_the_first_that_is_too_large():
    with torch.device("meta"):  # where a table takes no memory
        assert LearnedEncoding(2**31 - 1, 1).table.shape == (2**31 - 1, 1)
        with pytest.raises(ValueError, match="max_length must be at most 2147483647, not 2147483648"):
            LearnedEncoding(2**31, 1)


def test_rows_in_use_get_gradient_and_the_others_none():
    """A padding index on positions would also starve the row of that number."""
    layer = learned(max_length=8, d_model=2)
    weight = random(3, 5, 2, seed=3)
    (layer(torch.zeros(3, 5, 2, dtype=torch.float64)) * weight).sum().backward()
    close(layer.table.grad[:5], weight.sum(dim=0))
    assert (layer.table.grad[:5] != 0).all()
    assert (layer.table.grad[5:] == 0).all()


def test_no_row_starts_as_zero():
    assert (LearnedEncoding(8, 2).table != 0).all()
    assert float(nn.Embedding(8, 2, padding_idx=2).weight[2].detach().abs().sum()) == 0  # what is avoided


def test_learned_table_starts_as_loud_as_the_sinusoid():
    torch.manual_seed(0)
    table = LearnedEncoding(400, 256).table
    assert float(table.detach().std()) == pytest.approx(math.sqrt(0.5), rel=0.01)
    assert float(table.detach().mean()) == pytest.approx(0, abs=0.01)
    assert float(LearnedEncoding(400, 256, std=0.02).table.detach().std()) == pytest.approx(0.02, rel=0.01)
    assert float(LearnedEncoding(4, 2, std=0).table.detach().abs().sum()) == 0


def test_learned_table_is_trained_and_stored():
    layer = learned()
    assert [name for name, _ in layer.named_parameters()] == ["table"]
    other = learned(seed=9)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.table, layer.table)


def test_gradient_through_another_dtype():
    layer = learned(dtype=torch.float32)
    layer(torch.zeros(1, 3, 4, dtype=torch.bfloat16)).float().sum().backward()
    assert layer.table.grad.dtype == torch.float32 and float(layer.table.grad[:3].min()) == 1


def test_learned_codes_pass_gradcheck():
    layer, x = learned(), random(2, 3, 4, seed=5).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, table: torch.func.functional_call(layer, {"table": table}, (x,)), (x, layer.table))


# Bad numbers


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"length": -1}, "length must be an integer of at least 0, not -1"),
        ({"length": 2.0}, "length must be an integer"),
        ({"length": True}, "length must be an integer"),
        ({"d_model": 0}, "d_model must be an integer of at least 1, not 0"),
        ({"d_model": -2}, "d_model"),
        ({"d_model": 4.0}, "d_model"),
        ({"base": 0.0}, "base must be positive and finite, not 0.0"),
        ({"base": -10.0}, "base"),
        ({"base": math.inf}, "base"),
        ({"base": math.nan}, "base"),
        ({"layout": "halves"}, "layout must be one of 'interleaved', 'concat', not 'halves'"),
        ({"layout": None}, "layout"),
        ({"start": 0.5}, "start must be an integer, not 0.5"),
        ({"dtype": torch.int64}, "dtype must be a floating type, not torch.int64"),
        ({"dtype": "float32"}, "dtype"),
    ],
)
def test_bad_numbers_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        sinusoidal_encoding(**{"length": 3, "d_model": 4, **arguments})


@pytest.mark.parametrize("arguments", [{"d_model": 3}, {"base": 0}, {"layout": "other"}])
def test_layer_refuses_at_construction(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        SinusoidalEncoding(**{"d_model": 4, **arguments})


@pytest.mark.parametrize(
    "arguments", [{"max_length": 0}, {"max_length": 2.0}, {"d_model": 0}, {"std": -1.0}, {"std": math.nan}]
)
def test_learned_refuses_by_name(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        LearnedEncoding(**{"max_length": 4, "d_model": 4, **arguments})


def test_every_public_name_says_what_it_does():
    public = [thing for name, thing in vars(encodings).items() if getattr(thing, "__module__", "") == encodings.__name__ and name[0] != "_"]
    assert len(public) == 12
    assert all(inspect.getdoc(thing) and "Raises" in inspect.getdoc(thing) for thing in public)


# Random positions


def test_random_positions_are_rows_of_the_table_in_ascending_order_and_the_same_for_the_batch():
    layer = RandomPositions(LearnedEncoding(9, 4), 9)
    for seed in range(20):
        with seeded(seed):
            codes = layer(torch.zeros(3, 5, 4))
        assert torch.equal(codes, codes[:1].expand(3, -1, -1))
        rows = (codes[0, :, None] == layer.encoding.table).all(dim=-1).nonzero()
        assert rows[:, 0].tolist() == [0, 1, 2, 3, 4] and (rows[:, 1].diff() > 0).all()


def test_random_positions_reach_every_row_and_are_drawn_anew_also_in_evaluation():
    layer = RandomPositions(LearnedEncoding(9, 4), 9).eval()
    with seeded(0):
        drawn = [layer(torch.zeros(1, 5, 4)) for _ in range(40)]
    assert any(not torch.equal(drawn[0], other) for other in drawn)
    sum(drawn).sum().backward()
    assert (layer.encoding.table.grad.abs().sum(dim=1) > 0).all()


def test_all_random_positions_are_the_positions():
    x = torch.randn(2, 9, 4)
    torch.testing.assert_close(RandomPositions(SinusoidalEncoding(4), 9)(x), SinusoidalEncoding(4)(x))


def test_more_tokens_than_random_positions_are_refused():
    with pytest.raises(ValueError, match="the sequence has 10 tokens, but max_length is 9"):
        RandomPositions(SinusoidalEncoding(4), 9)(torch.zeros(1, 10, 4))
    with pytest.raises(ValueError, match="max_length must be an integer of at least 1, not 0"):
        RandomPositions(SinusoidalEncoding(4), 0)
