"""The benchmark compares like with like, and its ratios are right on a machine that is not quiet."""

import itertools
import subprocess
import sys
from types import SimpleNamespace

import bench
import library_speed as speed
import pytest
import torch


RIVALS = {
    "attention": lambda: speed.of_attention(5, speed.forward),
    "attention, backward": lambda: speed.of_attention(5, speed.forward_and_backward),
    "encodings": lambda: speed.of_encodings(6),
    "recurrence": lambda: speed.of_recurrence(speed.forward),
    "recurrence, backward": lambda: speed.of_recurrence(speed.forward_and_backward),
}


def tensors(result):
    if isinstance(result, list) and isinstance(result[0], list):
        return [torch.tensor(result)]
    return [part for part in (result if isinstance(result, (list, tuple)) else [result]) if torch.is_tensor(part)]


@pytest.mark.parametrize("subject", RIVALS)
def test_rivals_compute_the_same(subject):
    for name, (ours, theirs) in RIVALS[subject]().items():
        for call in theirs:
            pairs = list(zip(tensors(ours()), tensors(call())))
            assert pairs, name
            # Layers keep their parameters in different pieces; the first gradient is that of the tokens.
            for mine, other in pairs[:1] if "backward" in subject else pairs:
                close = torch.allclose(mine, other.reshape(mine.shape), rtol=0, atol=1e-5)
                assert close, name


@pytest.fixture
def work(monkeypatch):
    """Calls that take as long as they are told to, on a clock of their own; `work.slower` stretches all of them."""
    made = SimpleNamespace(now=0.0, slower=lambda: 1.0)
    monkeypatch.setattr(speed, "time", SimpleNamespace(perf_counter=lambda: made.now))

    def call(seconds):
        def run():
            made.now += seconds * made.slower()

        return run

    made.call = call
    return made


def test_a_ratio_is_ours_over_the_best_of_the_others(work):
    ratio = speed.compare(work.call(0.003), [work.call(0.002), work.call(0.0015), work.call(0.006)])
    assert ratio.median == pytest.approx(2)
    assert ratio.spread == pytest.approx(0)
    assert ratio.rounds == pytest.approx(speed.SECONDS / 0.0125, abs=1)


def test_long_calls_still_have_their_rounds(work):
    assert speed.compare(work.call(60), [work.call(50)]).rounds == speed.ROUNDS


def test_a_ratio_stands_when_the_machine_slows_down_or_stumbles(work):
    drift = itertools.count(1)
    work.slower = lambda: next(drift) ** 0.5
    assert speed.compare(work.call(0.0011), [work.call(0.001)]).median == pytest.approx(1.1, abs=0.01)
    stumbles = itertools.cycle([1] * 12 + [300])
    work.slower = lambda: next(stumbles)
    assert speed.compare(work.call(0.0011), [work.call(0.001)]).median == pytest.approx(1.1)


def test_the_spread_is_half_the_distance_of_the_quartiles(work):
    lengths = itertools.cycle([1, 2, 3, 4, 5])
    ours = work.call(0.001)

    def uneven():
        for _ in range(next(lengths)):
            ours()

    ratio = speed.compare(uneven, [work.call(0.001)])
    assert (ratio.median, ratio.spread) == (pytest.approx(3), pytest.approx(1))
    assert str(ratio) == "3.00 ±1.00"


def test_the_copy_is_built_by_make_and_installs_nothing():
    dry = [*bench.MAKE, "--dry-run", "--what-if=_config.yml"]
    commands = subprocess.run(dry, cwd=bench.notebook_files.ROOT, capture_output=True, text=True, check=True).stdout
    assert "jupyter_book" in commands
    assert "pip" not in commands


def test_a_part_that_does_not_exist_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench.py", "library", "chapter"])
    monkeypatch.setattr(bench, "PARTS", dict.fromkeys(bench.PARTS, lambda: pytest.fail("nothing should run")))
    with pytest.raises(SystemExit, match="no part chapter; there are library, chapters, build, pages"):
        bench.main()
