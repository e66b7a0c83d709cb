"""The sunspot numbers are the published ones, forecasts cannot see what is held out, and the fit is least squares."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.models import Transformer
from posenc.series import NextValue, fit_autoregression, sunspots
from posenc.training import fit, seeded


def wave(n=60):
    return torch.sin(torch.arange(n, dtype=torch.float64)) + 0.1 * torch.arange(n, dtype=torch.float64)


def test_the_series_is_the_published_one():
    years, numbers = sunspots()
    assert years.tolist() == list(range(1700, 2009))
    assert numbers.shape == (309,) and numbers.dtype == torch.float64
    known = {1700: 5.0, 1710: 3.0, 1778: 154.4, 1810: 0.0, 1816: 45.8, 1957: 190.2, 1979: 155.4, 2000: 119.6, 2008: 2.9}
    assert {year: round(float(numbers[year - 1700]), 1) for year in known} == known
    assert int(years[numbers.argmax()]) == 1957
    assert float(numbers.mean()) == pytest.approx(49.75, abs=0.01)


@given(st.integers(1, 9), st.integers(1, 30))
def test_windows_are_followed_by_their_targets(window, held_out):
    task = NextValue(torch.arange(60.0, dtype=torch.float64), window, held_out)
    for windows, targets in (task.training_set(), task.test_set()):
        torch.testing.assert_close(windows[:, -1] + 1, targets)
        assert windows.shape == (len(targets), window)
        assert (windows.diff(dim=1) == 1).all()
    assert task.training_set()[1].tolist() == list(range(window, 60 - held_out))
    assert task.test_set()[1].tolist() == list(range(60 - held_out, 60))


def test_training_does_not_see_what_is_held_out():
    series, changed = wave(), wave()
    changed[-10:] = 1e6
    g = torch.Generator
    one, other = (NextValue(s, window=5, held_out=10) for s in (series, changed))
    assert (one.mean, one.deviation) == (other.mean, other.deviation)
    for a, b in zip(one.sample(64, 5, g().manual_seed(1)), other.sample(64, 5, g().manual_seed(1))):
        assert torch.equal(a, b)


def test_a_sample_is_scaled_and_comes_from_the_generator():
    task = NextValue(wave(), window=5, held_out=10)
    windows, targets = task.sample(4000, 5, torch.Generator().manual_seed(0))
    assert windows.dtype == targets.dtype == torch.float32
    assert windows.shape == (4000, 5) and targets.shape == (4000,)
    known = wave()[:50]
    back = windows * task.deviation + task.mean
    assert torch.cdist(back.double(), task.training_set()[0]).amin(dim=1).max() < 1e-4
    assert abs(float(task.scaled(known).mean())) < 1e-6 and abs(float(task.scaled(known).std(correction=0)) - 1) < 1e-6
    again = task.sample(4000, 5, torch.Generator().manual_seed(0))
    assert torch.equal(again[0], windows)
    both = torch.cat([windows, targets[:, None]], dim=1).double() * task.deviation + task.mean
    assert torch.cdist(both, known.unfold(0, 6, 1)).amin(dim=1).max() < 1e-4  # each target came after its window
    assert len(windows.unique(dim=0)) == 45


def test_the_error_is_the_root_of_the_mean_square():
    task = NextValue(wave(), window=5, held_out=4)
    assert task.error(wave()[-4:]) == 0
    assert task.error(wave()[-4:] + torch.tensor([3.0, -3.0, 1.0, 1.0])) == pytest.approx(5**0.5)
    with pytest.raises(ValueError, match=r"\(4,\)"):
        task.error(torch.zeros(4, 1))


def test_a_model_is_scored_in_the_units_of_the_series():
    class LastValue(torch.nn.Module):
        def forward(self, windows):
            assert not self.training
            return windows[:, -1:]

    task, model = NextValue(wave(), window=5, held_out=10), LastValue()
    assert task.model_error(model) == pytest.approx(task.error(task.test_set()[0][:, -1]), rel=1e-5)
    assert model.training
    assert task.model_error(Transformer(None, 1, d_model=4)) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.arange(60), 5, 10), "floating"),
        ((torch.zeros(6, 2), 5, 10), "floating"),
        ((torch.full((60,), float("nan")), 5, 10), "finite"),
        ((wave(), 0, 10), "window must be"),
        ((wave(), 5, 0), "held_out must be"),
        ((wave(), 5, 55), "at least 6, not 5"),
        ((wave(), 5, 10, "token"), "read_out"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        NextValue(*arguments)


def test_sizes_of_a_sample():
    task = NextValue(wave(), 5, 10)
    windows, targets = task.sample(1, 5, torch.Generator())
    assert windows.shape == (1, 5) and targets.shape == (1,)
    with pytest.raises(ValueError, match="5 values, not 6"):
        task.sample(2, 6, torch.Generator())
    with pytest.raises(ValueError, match="batch must be an integer of at least 1, not 0"):
        task.sample(0, 5, torch.Generator())


@given(st.integers(1, 5), st.integers(0, 99))
def test_the_fit_finds_a_series_that_follows_the_rule(order, seed):
    g = torch.Generator().manual_seed(seed)
    true = torch.randn(order, generator=g, dtype=torch.float64)
    true = 0.8 * true / true.abs().sum()  # stable
    x = torch.randn(40, generator=g, dtype=torch.float64)
    x[:order] *= 5
    noise = torch.randn(40, generator=g, dtype=torch.float64)
    for t in range(order, 40):
        x[t] = 2 + (true * x[t - order : t].flip(0)).sum() + noise[t]
    intercept, coefficients = fit_autoregression(x, order)
    design = np.stack([np.ones(40 - order)] + [x[order - k : 40 - k].numpy() for k in range(1, order + 1)], axis=1)
    left = x[order:].numpy() - design @ np.concatenate([[intercept], coefficients])
    np.testing.assert_allclose(design.T @ left, 0, atol=1e-7)  # the normal equations


def test_the_baselines_of_the_sunspots():
    _, numbers = sunspots()
    task = NextValue(numbers)
    windows, _ = task.test_set()
    intercept, coefficients = fit_autoregression(numbers[:-89], 9)
    assert task.error(torch.full((89,), task.mean)) == pytest.approx(53.8, abs=0.05)
    assert task.error(windows[:, -1]) == pytest.approx(30.4, abs=0.05)
    assert task.error(intercept + windows[:, -9:].flip(1) @ coefficients) == pytest.approx(17.3, abs=0.05)


@pytest.mark.parametrize(("series", "order"), [(torch.zeros(5, dtype=torch.int64), 1), (torch.zeros(6), 3), (torch.zeros(6), 0)])
def test_what_cannot_be_fitted_is_refused(series, order):
    with pytest.raises(ValueError):
        fit_autoregression(series, order)


def test_training_on_numbers_reports_the_mean_squared_error_and_lowers_it():
    task = NextValue(wave(), window=5, held_out=10)
    with seeded(0):
        model = Transformer(None, 1, d_model=8, encoding="sinusoidal", read_out="last")
    windows, targets = task.sample(16, 5, _like_the_first_batch())
    first = float((model(windows)[:, 0] - targets).square().mean().detach())
    history = fit(model, task, 60, 0, lengths=5, batch=16)
    assert history.losses[0] == pytest.approx(first, rel=1e-4)
    assert history.final_loss() < 0.5 * history.losses[0]


def _like_the_first_batch():
    generator = torch.Generator().manual_seed(0)
    torch.randint(5, 6, (), generator=generator)  # the length
    return generator


def test_numbers_need_one_score_each():
    task = NextValue(wave(), window=5, held_out=10)
    with pytest.raises(ValueError, match="one score an answer, not 3"):
        fit(Transformer(None, 3, d_model=4), task, 1, 0, lengths=5)
    with pytest.raises(ValueError, match="read_out"):
        fit(Transformer(None, 1, d_model=4, read_out="token"), task, 1, 0, lengths=5)
