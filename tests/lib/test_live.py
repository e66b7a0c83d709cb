"""The live figures as Python makes them; tests/book/test_live.py drives them in a browser."""

import html
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import islice, permutations

import pytest
import torch

from posenc import live
from posenc.attention import scaled_dot_product_attention
from posenc.encodings import sinusoidal_encoding
from posenc.live import data, numbers

MAKERS = {"shuffle": live.shuffle, "dials": live.dials, "offset": live.offset, "symmetry": live.symmetry}
KINDS = pytest.mark.parametrize("kind", MAKERS)
INFINITY = float("inf")


class Reader(HTMLParser):
    """The elements of a piece of HTML, each with its attributes and its own text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.texts: dict[str, str] = {}
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open:
            self.texts[self.open[-1]] = self.texts.get(self.open[-1], "") + text


@KINDS
def test_the_html_is_the_same_every_time_and_well_formed(kind):
    first = MAKERS[kind]()._repr_html_()
    assert first == MAKERS[kind]()._repr_html_()
    reader = Reader(first)
    assert not reader.open
    assert [tag for tag, _ in reader.elements] == ["style", "div", "p", "script"]
    assert not any("id" in attributes for _, attributes in reader.elements), "two on one page would share it"


@KINDS
def test_the_text_form_is_fixed(kind):
    assert repr(MAKERS[kind]()) == f"<live figure: {kind}>"


@KINDS
def test_the_options_survive_the_attribute(kind):
    figure = MAKERS[kind]()
    attributes = dict(Reader(figure._repr_html_()).elements)["div"]
    assert json.loads(attributes["data-options"]) == figure.options
    assert attributes["data-live"] == kind and attributes["data-label"] == figure.label


@KINDS
def test_what_stands_without_scripts_is_a_text(kind):
    still = Reader(MAKERS[kind]()._repr_html_()).texts["p"]
    assert still.startswith("This figure needs scripts, which are off here.") and len(still.split()) > 30


def test_marks_of_html_are_escaped():
    figure = live.LiveFigure("dials", 'a "quoted" <b>', "1 < 2 & </p>", {"text": "</script>'\"<"})
    reader = Reader(figure._repr_html_())
    attributes = dict(reader.elements)["div"]
    assert attributes["data-label"] == 'a "quoted" <b>' and json.loads(attributes["data-options"])["text"] == "</script>'\"<"
    assert reader.texts["p"] == "1 < 2 & </p>"


@KINDS
def test_it_asks_for_nothing_and_is_light(kind):
    text = MAKERS[kind]()._repr_html_()
    addresses = set(re.findall(r"(?:https?:)?//[\w.]+[^\s\"')]*", text))
    assert addresses <= {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(?:import|fetch|XMLHttpRequest|eval|url)\s*\(|\bimport\b.*\bfrom\b|src=", text)
    script = Reader(text).texts["script"]
    assert len(script.encode()) < 20_000
    assert "//" not in re.sub(r"https?://", "", script), "a comment that was left in, or an address"
    assert script.count("\n") > 40, "readable in the page's source"


@pytest.mark.parametrize("name", ["core.js", *(f"{kind}.js" for kind in MAKERS)])
def test_no_script_closes_its_own_element(name):
    text = (files(live) / name).read_text(encoding="utf-8")
    assert "</" not in text and "<!--" not in text


@KINDS
def test_every_colour_has_a_value_for_each_theme(kind):
    theme = (files(live) / "theme.css").read_text(encoding="utf-8")
    styles = "".join((files(live) / name).read_text(encoding="utf-8") for name in ("live.css", f"{kind}.css"))
    defined = set(re.findall(r"(--[\w]+): light-dark\(#[0-9a-f]{6}, #[0-9a-f]{6}\)", theme))
    colours = {name for name in re.findall(r"(?:color|fill|stroke|background|border[\w-]*|outline): ?[^;{}]*?var\((--[\w]+)\)", styles)}
    assert colours - {"--hue", "--much"} <= defined


# Data


def test_draws_are_those_of_the_published_generator():
    """Mulberry32 from seed 1, written out with wide integers."""

    def unsigned(seed):
        a = (seed + 0x6D2B79F5) % 2**32
        t = (a ^ (a >> 15)) * (1 | a) % 2**32
        t = ((t + (t ^ (t >> 7)) * (61 | t) % 2**32) % 2**32) ^ t
        return t ^ (t >> 14)

    assert next(data.draws(1)) == unsigned(1) / 2**31 - 1
    many = torch.tensor(list(islice(data.draws(5), 4000)))
    assert many.min() >= -1 and many.max() < 1 and abs(many.mean()) < 0.03 and abs(many.std() - 3**-0.5) < 0.02


def test_the_sentences_are_the_books_and_every_word_has_a_vector():
    options = data.shuffle_options()
    assert options["sentences"] == ["robot detects anomaly", "the dog chased the cat", "the cat sat on the mat"]
    vectors = torch.tensor([options["vectors"][word] for sentence in options["sentences"] for word in sentence.split()])
    assert vectors.shape == (14, 4) and torch.unique(vectors, dim=0).shape[0] == 10


# Numbers


def test_shuffle_follows_the_definitions():
    options, sentence, order = data.shuffle_options(), "the dog chased the cat", [3, 0, 4, 1, 2]
    x = torch.tensor([options["vectors"][word] for word in sentence.split()], dtype=torch.float64)
    codes = sinusoidal_encoding(5, 4, dtype=torch.float64)
    W = [torch.tensor(options[name], dtype=torch.float64) for name in ("W_Q", "W_K", "W_V")]

    def f(x):
        return scaled_dot_product_attention(*(x @ w for w in W))[0]

    got = {positions: numbers.shuffle(sentence, order, positions) for positions in ("none", "slots", "travel")}
    assert torch.allclose(got["none"]["output"], f(x[order]))
    assert torch.allclose(got["slots"]["output"], f(x[order] + codes))
    assert torch.allclose(got["travel"]["output"], f((x + codes)[order]))
    for positions, result in got.items():
        assert torch.allclose(result["weights"].sum(dim=1), torch.ones(5, dtype=torch.float64))
        apart = (result["output"] - result["moved"]).abs().max().item()
        assert result["gap"] == pytest.approx(apart, abs=1e-12)
        assert (result["gap"] > 0.01) == (positions == "slots")


def test_repeated_words_have_equal_rows_until_codes_tell_them_apart():
    def apart(positions):
        output = numbers.shuffle("the dog chased the cat", [0, 1, 2, 3, 4], positions)["output"]
        return (output[0] - output[3]).abs().max()

    assert apart("none") < 1e-12 < 0.01 < apart("slots")


@pytest.mark.parametrize("base", [100.0, 10000.0])
def test_dials_add_up(base):
    result = numbers.dials(201, base)
    assert sum(bit << i for i, bit in enumerate(result["bits"])) == 201
    assert torch.allclose(result["row"][0::2], result["turned"].sin())
    assert torch.allclose(result["row"][1::2], result["turned"].cos())


@pytest.mark.parametrize("width", [16, 32, 128, 512])
def test_offset_stands_still_unless_a_random_matrix_comes_between(width):
    still = numbers.offset(20, 7, width, 10000.0, "nothing", 1)
    assert still["spread"] < 1e-12 and still["score"] == pytest.approx(still["kernel"])
    assert numbers.offset(20, 7, width, 10000.0, "turns", 1)["spread"] < 1e-12
    assert numbers.offset(20, 7, width, 10000.0, "random", 1)["spread"] > 0.05
    assert still["law"] == pytest.approx(1 - (1.945910149 + 0.577215665) / 9.210340372)


def named_bias(name, n):
    entries = {
        "none": lambda i, j: 0.0,
        "causal": lambda i, j: -INFINITY if j > i else 0.0,
        "distance": lambda i, j: -abs(i - j),
        "signed": lambda i, j: j - i,
        "cyclic": lambda i, j: (j - i) % n,
    }
    return [[float(entries[name](i, j)) for j in range(n)] for i in range(n)]


@pytest.mark.parametrize(
    ("name", "count"), [("none", 24), ("causal", 1), ("distance", 2), ("signed", 1), ("cyclic", 4)]
)
def test_the_orders_that_stay_unseen_are_those_that_attention_does_not_notice(name, count):
    bias = named_bias(name, 4)
    results = {order: numbers.symmetry_of(bias, order) for order in permutations(range(4))}
    assert {result["count"] for result in results.values()} == {count}
    for order, result in results.items():
        assert result["unseen"] == (list(order) in result["kept"])
        assert result["gap"] < 1e-12 if result["unseen"] else result["gap"] > 1e-3


def test_the_sentence_without_scripts_has_the_right_counts():
    counts = {name: numbers.symmetry_of(named_bias(name, 4), range(4))["count"] for name in ("none", "cyclic", "causal")}
    assert counts == {"none": 24, "cyclic": 4, "causal": 1}
    kept = numbers.symmetry_of(named_bias("distance", 4), range(4))["kept"]
    assert kept == [[0, 1, 2, 3], [3, 2, 1, 0]]
    still = html.unescape(live.symmetry().still)
    assert "all 24 without a bias" in still and "its reversal" in still and "four for a cyclic bias" in still


def test_row_constants_and_rows_without_a_key():
    free = [[float(j == i) + 10 * i for j in range(4)] for i in range(4)]
    assert numbers.symmetry_of(free, [1, 0, 3, 2])["count"] == 24
    empty = [[-INFINITY] * 4] + [[0.0] * 4] * 3
    result = numbers.symmetry_of(empty, [0, 2, 1, 3])
    assert result["count"] == 6 and result["unseen"] and result["gap"] < 1e-12
