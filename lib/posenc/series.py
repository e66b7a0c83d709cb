"""A real series, and forecasting it: the yearly sunspot numbers, and what a forecast has to beat.

Sunspots come and go in a rhythm of about eleven years, irregular in height and in length. The yearly means go
back to 1700 and are in the public domain. The file holds 1700 to 2008 as the National Geophysical Data Center
of the United States gave them out: the numbers of version 1, in use until 2015, when a recalibrated series
took their place (Clette and Lefèvre, 2016).
"""

import csv
from dataclasses import dataclass, field
from importlib import resources

import torch
from torch import Tensor

from posenc._checks import checked_count, described


def sunspots() -> tuple[Tensor, Tensor]:
    """The yearly mean sunspot numbers.

    Returns
    -------
    years : Tensor of int64, shape (309,)
        1700 to 2008.
    numbers : Tensor of float64, shape (309,)
    """
    text = resources.files("posenc").joinpath("data/sunspots.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    years = torch.tensor([int(row["year"]) for row in rows])
    return years, torch.tensor([float(row["sunspots"]) for row in rows], dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class NextValue:
    """From `window` values of a series, foretell the next. A task for `posenc.training.fit` like any other.

    The last `held_out` values are for testing. Nothing that training sees depends on them: neither a window
    nor a target, nor the mean and the deviation that the values are scaled by.

    Parameters
    ----------
    series : floating Tensor, shape (n,)
    window : int, at least 1
    held_out : int, at least 1
        ``n - held_out`` must be above `window`, and above 1.
    read_out : "pooled" or "last"

    Attributes
    ----------
    mean, deviation : float
        Of the training values.
    """

    series: Tensor = field(repr=False)
    window: int = 24
    held_out: int = 89
    read_out: str = "last"
    vocab_size: None = field(default=None, init=False)
    num_classes: int = field(default=1, init=False)
    mean: float = field(init=False)
    deviation: float = field(init=False)

    def __post_init__(self) -> None:
        _check_series(self.series)
        checked_count("window", self.window, 1)
        checked_count("held_out", self.held_out, 1)
        checked_count("len(series) - held_out", len(self.series) - self.held_out, max(2, self.window + 1))
        if self.read_out not in ("pooled", "last"):
            raise ValueError(f"read_out must be 'pooled' or 'last', not {self.read_out!r}")
        known = self.series[: -self.held_out]
        object.__setattr__(self, "mean", float(known.mean()))
        object.__setattr__(self, "deviation", float(known.std(correction=0)))

    def scaled(self, values: Tensor) -> Tensor:
        """In units that a model can take, float32: the training values have mean 0 and deviation 1."""
        return ((values - self.mean) / self.deviation).float()

    def sample(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Scaled training windows (B, T) and what came next (B,). ValueError unless `length` is `window`."""
        checked_count("batch", batch, 1)
        if length != self.window:
            raise ValueError(f"windows have {self.window} values, not {length!r}")
        windows, targets = self.training_set()
        rows = torch.randint(len(windows), (batch,), generator=generator)
        return self.scaled(windows[rows]), self.scaled(targets[rows])

    def training_set(self) -> tuple[Tensor, Tensor]:
        """Every window (N, T) whose next value (N,) is not held out, in the units of the series."""
        return self._windows(self.series[: -self.held_out])

    def test_set(self) -> tuple[Tensor, Tensor]:
        """The windows (H, T) before each held-out value, and those values (H,), in the units of the series.

        The windows reach back into the training years, and hold earlier test values: each forecast is for
        one year ahead, with the past known.
        """
        return self._windows(self.series[-self.held_out - self.window :])

    def error(self, forecast: Tensor) -> float:
        """Root mean square error of forecasts (H,) of the held-out values, in the units of the series."""
        targets = self.series[-self.held_out :]
        if not isinstance(forecast, Tensor) or forecast.shape != targets.shape:
            raise ValueError(f"the forecast must be {tuple(targets.shape)}, not {described(forecast)}")
        return float((forecast.to(targets.dtype) - targets).square().mean().sqrt())

    def model_error(self, model: torch.nn.Module) -> float:
        """Of a model from scaled windows (B, T) to scaled forecasts (B, 1)."""
        was_training = model.training
        model.eval()
        with torch.no_grad():
            scores = model(self.scaled(self.test_set()[0]))
        model.train(was_training)
        return self.error(scores[:, 0].to(self.series.dtype) * self.deviation + self.mean)

    def _windows(self, values: Tensor) -> tuple[Tensor, Tensor]:
        return values[:-1].unfold(0, self.window, 1), values[self.window :]


def fit_autoregression(series: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """The least-squares fit of ``x[t] = intercept + sum_k coefficients[k - 1] x[t - k]``.

    Parameters
    ----------
    series : floating Tensor, shape (n,)
        What the fit may see: leave out what it will be tested on.
    order : int, at least 1
        How many values back the forecast looks; ``n - order`` must be above `order`.

    Returns
    -------
    intercept : Tensor of float64, shape ()
    coefficients : Tensor of float64, shape (order,)
        Of the value one step back first.

    Raises
    ------
    ValueError
        If `series` is not a floating vector, or too short.

    Notes
    -----
    The method is older than this series' use as its example: Yule (1927), who fitted it to sunspots.
    """
    _check_series(series)
    order = checked_count("order", order, 1)
    checked_count("len(series) - order", len(series) - order, order + 1)
    series = series.double()
    past = series[:-1].unfold(0, order, 1).flip(1)
    design = torch.cat([torch.ones(len(past), 1, dtype=torch.float64), past], dim=1)
    solution = torch.linalg.lstsq(design, series[order:, None]).solution[:, 0]
    return solution[0], solution[1:]


def _check_series(series: object) -> None:
    if not isinstance(series, Tensor) or series.dim() != 1 or not series.is_floating_point():
        raise ValueError(f"series must be a floating tensor (n,), not {described(series)}")
    if not bool(torch.isfinite(series).all()):
        raise ValueError("series must be finite")
