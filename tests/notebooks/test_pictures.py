"""A changed plot is noticed, and a plot drawn a little otherwise by another machine is not."""

import base64
import io

import matplotlib
import matplotlib.pyplot as plt
import notebook_files
import pytest
from execute import lighter
from pictures import NOTICEABLE, TIMED, difference

from posenc import figures


def drawn(change: str = "", **settings) -> str:
    with matplotlib.rc_context():
        figures.use_house_style()
        plt.rcParams.update(settings)
        fig, ax = figures.new_figure(height=2.4)
        heights = [0.1, 0.5, 0.55, 0.9] if change != "a lower point" else [0.1, 0.5, 0.55, 0.8]
        ax.plot(range(4), heights, "s--" if change == "other marks" else "o-", color="C3" if change == "another colour" else "C0")
        ax.set(xlabel="position", ylabel="another name" if change == "another label" else "weight", ylim=(0, 1))
        if change == "a second line":
            ax.axhline(0.3, color="C1")
        file = io.BytesIO()
        fig.savefig(file, format="png")
        plt.close(fig)
    return lighter(base64.b64encode(file.getvalue()).decode())


@pytest.mark.parametrize("change", ["a lower point", "another colour", "a second line", "another label", "other marks"])
def test_a_changed_plot_is_noticed(change):
    assert difference(drawn(), drawn(change)) > NOTICEABLE


@pytest.mark.parametrize("settings", [{}, {"text.hinting": "none"}, {"lines.antialiased": False}, {"path.simplify": False}], ids=str)
def test_the_same_plot_drawn_a_little_otherwise_is_not(settings):
    assert difference(drawn(), drawn(**settings)) < 0.6 * NOTICEABLE


def test_another_shape_differs_wholly():
    assert difference(drawn(), drawn(**{"savefig.dpi": 60})) == 1


def test_a_single_figure_of_the_book_shows_times():
    cells = [cell for path in notebook_files.paths() for cell in notebook_files.read(path)["cells"] if cell["cell_type"] == "code"]
    drawn = [cell for cell in cells if any("image/png" in output.get("data", {}) for output in cell["outputs"])]
    assert sum(bool(TIMED.search(notebook_files.text(cell["source"]))) for cell in drawn) <= 1
