"""The models of the book: symbols in, scores for classes out, by attention or by recurrence."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from posenc._checks import check_symbols, check_tokens, checked_count, described
from posenc.attention import MultiHeadAttention, Position, causal_mask
from posenc.encodings import Alibi, FixedCodes, LearnedEncoding, RelativeBias, Rotary, SinusoidalEncoding
from posenc.recurrent import GRU, LSTM, ElmanRNN
from posenc.training import parameter_count

ENCODINGS = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative")
"""The encodings that `Transformer` knows by name."""

READ_OUTS = ("pooled", "last", "token")
"""Where an answer is read: the mean over the tokens, the last token, or every token for itself."""

CELLS = {"elman": ElmanRNN, "lstm": LSTM, "gru": GRU}
"""The recurrent layers that `RecurrentModel` knows by name."""


class TransformerBlock(nn.Module):
    """Attention and a feed-forward network, each after a LayerNorm and around it a residual path.

    Parameters
    ----------
    d_model : int
        Width of the tokens.
    num_heads : int
        Must divide `d_model`.
    position : callable, optional
        An encoding that acts inside attention, see `posenc.attention.Position`.
    expansion : int
        The hidden layer of the feed-forward network is ``expansion * d_model`` wide.

    Raises
    ------
    ValueError
        As `MultiHeadAttention`; and if `expansion` is not a positive integer.

    Notes
    -----
    The norms come first ("pre-norm", Xiong et al., 2020): it trains without a warm-up.
    Apart from attention, everything here treats every token alike and alone, so the block is permutation
    equivariant exactly when its attention is.
    """

    def __init__(
        self, d_model: int, num_heads: int, position: Position | None = None, expansion: int = 4
    ) -> None:
        super().__init__()
        hidden = checked_count("expansion", expansion, 1) * checked_count("d_model", d_model, 1)
        self.attention = MultiHeadAttention(d_model, num_heads, position)
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, hidden), nn.GELU(), nn.Linear(hidden, d_model)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None, key_mask: Tensor | None = None) -> Tensor:
        """(B, T, D) to (B, T, D); masks as in `MultiHeadAttention`."""
        check_tokens(x, self.attention_norm.weight)
        x = x + self.attention(self.attention_norm(x), mask, key_mask)
        return x + self.feed_forward(self.feed_forward_norm(x))


class NumberEmbedding(nn.Linear):
    """Numbers (B, T) as tokens (B, T, D): each number times one trained vector, plus another."""

    def __init__(self, d_model: int) -> None:
        super().__init__(1, checked_count("d_model", d_model, 1))

    def forward(self, numbers: Tensor) -> Tensor:
        return super().forward(numbers[..., None])


class Transformer(nn.Module):
    """Symbols in, scores for classes out: embedding, encoding, blocks, a last LayerNorm, a read-out.

    Parameters
    ----------
    vocab_size : int or None
        Symbols are 0 to ``vocab_size - 1``. None: the sequence is of real numbers, and `NumberEmbedding`
        takes the place of the table.
    num_classes : int
    d_model, num_heads, num_layers : int
        Width of the tokens, heads in a block, blocks.
    encoding : str, Tensor or Module
        A name from `ENCODINGS`, of which the last three act inside attention, in every block; or a table of
        codes `(max_length, d_model)` that stays as it is; or a layer from tokens `(B, T, D)` to the same.
    max_length : int, optional
        Rows of the learned table, which needs it. The other encodings ignore it, so that one call can
        build them all.
    max_distance : int
        Where a relative bias clips offsets; each block has a table of its own.
    causal : bool
        Whether token t attends to tokens 0..t alone.
    read_out : "pooled", "last" or "token"
        Read the classes from the mean of the real tokens, from the last real token, or from every token.
    scale_embedding : bool
        Multiply the embedding by ``sqrt(d_model)`` before the encoding is added, as Vaswani et al. (2017,
        section 3.4) do for embeddings that start out near ``1 / sqrt(d_model)``. The embedding here starts
        out standard normal, as loud as the codes are, so the factor is off.
    expansion : int
        Of the feed-forward networks, see `TransformerBlock`.

    Raises
    ------
    ValueError
        If a name is unknown (the message lists the known ones), a number is out of range, a table is not
        `d_model` wide, or `max_length` is missing for a learned encoding.

    Notes
    -----
    Under one seed, models that differ in their encoding alone start with the same embedding, blocks and
    read-out: the encoding draws its numbers last.
    """

    def __init__(
        self,
        vocab_size: int | None,
        num_classes: int,
        d_model: int = 32,
        num_heads: int = 1,
        num_layers: int = 1,
        encoding: str | Tensor | nn.Module = "none",
        max_length: int | None = None,
        max_distance: int = 16,
        causal: bool = False,
        read_out: str = "pooled",
        scale_embedding: bool = False,
        expansion: int = 4,
    ) -> None:
        super().__init__()
        _check_read_out(read_out)
        self.vocab_size = vocab_size
        self.d_model = checked_count("d_model", d_model, 1)
        self.causal = causal
        self.read_out = read_out
        self.scale_embedding = scale_embedding
        self.embedding = _make_embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, expansion=expansion) for _ in range(checked_count("num_layers", num_layers, 1))
        )
        self.final_norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, checked_count("num_classes", num_classes, 1))
        self.encoding = _make_encoding(encoding, d_model, max_length)
        for block in self.blocks:
            block.attention.position = _make_position(encoding, d_model, num_heads, max_distance)

    def forward(self, tokens: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Score the classes.

        Parameters
        ----------
        tokens : integer Tensor, shape (B, T); floating if `vocab_size` is None
        key_mask : boolean Tensor, shape (B, T), optional
            True for a real symbol, False for padding. Padding is not attended to and not read.

        Returns
        -------
        Tensor, shape (B, num_classes), or (B, T, num_classes) if the read-out is "token"
            Unnormalised: their softmax are the probabilities.

        Raises
        ------
        ValueError
            If `tokens` is not (B, T) integers from the vocabulary (or, without one, numbers), `key_mask` is
            not boolean (B, T), there are more tokens than positions, or a sequence has no real token to
            read from.
        """
        x = self._embed(tokens)
        mask = self._mask(tokens)
        for block in self.blocks:
            x = block(x, mask, key_mask)
        return self.head(_read(self.final_norm(x), key_mask, self.read_out))

    def attention_weights(self, tokens: Tensor, key_mask: Tensor | None = None) -> list[Tensor]:
        """The attention map of every block, first to last: each (B, H, T, T), queries down, keys across."""
        x = self._embed(tokens)
        mask = self._mask(tokens)
        maps = []
        for block in self.blocks:
            maps.append(block.attention(block.attention_norm(x), mask, key_mask, need_weights=True)[1])
            x = block(x, mask, key_mask)
        return maps

    def _embed(self, tokens: Tensor) -> Tensor:
        _check_sequences(tokens, self.vocab_size)
        x = self.embedding(tokens)
        return self.encoding(x * math.sqrt(self.d_model) if self.scale_embedding else x)

    def _mask(self, tokens: Tensor) -> Tensor | None:
        return causal_mask(tokens.shape[1], tokens.device) if self.causal else None


def _make_embedding(vocab_size: int | None, d_model: int) -> nn.Module:
    """From a batch of sequences (B, T) to tokens (B, T, D)."""
    if vocab_size is None:
        return NumberEmbedding(d_model)
    return nn.Embedding(checked_count("vocab_size", vocab_size, 1), d_model)


def _check_sequences(tokens: Tensor, vocab_size: int | None) -> None:
    """ValueError unless `tokens` is (B, T): symbols of the vocabulary, or real numbers if there is none."""
    if vocab_size is not None:
        check_symbols(tokens, vocab_size)
    elif not isinstance(tokens, Tensor) or tokens.dim() != 2 or not tokens.is_floating_point():
        raise ValueError(f"without a vocabulary, tokens must be a floating tensor (B, T), not {described(tokens)}")


class RecurrentModel(nn.Module):
    """Symbols in, scores for classes out: embedding, recurrent layers, a read-out. No positions.

    Parameters
    ----------
    vocab_size : int or None
        As in `Transformer`: None for sequences of real numbers.
    num_classes : int
    d_model : int
        Width of the embedding.
    hidden : int, optional
        Width of the states; `d_model` if not given. See `matching_width` for a fair one.
    cell : "elman", "lstm" or "gru"
    num_layers : int
        Each layer reads the outputs of the one below.
    read_out : "pooled", "last" or "token"
        As in `Transformer`. "last" is the final state of the top layer.
    forget_bias : float, optional
        Where the LSTM's forget gates start, see `posenc.recurrent.LSTM`. Other cells have none.

    Raises
    ------
    ValueError
        If a name is unknown (the message lists the known ones), a number is out of range, or
        `forget_bias` is given for another cell.
    """

    def __init__(
        self,
        vocab_size: int | None,
        num_classes: int,
        d_model: int = 32,
        hidden: int | None = None,
        cell: str = "elman",
        num_layers: int = 1,
        read_out: str = "pooled",
        forget_bias: float | None = None,
    ) -> None:
        super().__init__()
        _check_read_out(read_out)
        if cell not in CELLS:
            raise ValueError(f"unknown cell {cell!r}; known are {', '.join(CELLS)}")
        if forget_bias is not None and cell != "lstm":
            raise ValueError(f"forget_bias is for the lstm; a cell {cell!r} has no forget gate")
        self.vocab_size = vocab_size
        self.d_model = checked_count("d_model", d_model, 1)
        self.hidden = self.d_model if hidden is None else checked_count("hidden", hidden, 1)
        self.read_out = read_out
        options = {} if forget_bias is None else {"forget_bias": forget_bias}
        self.embedding = _make_embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            CELLS[cell](self.hidden if below else self.d_model, self.hidden, **options)
            for below in range(checked_count("num_layers", num_layers, 1))
        )
        self.head = nn.Linear(self.hidden, checked_count("num_classes", num_classes, 1))

    def forward(self, tokens: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Score the classes.

        Parameters
        ----------
        tokens : integer Tensor, shape (B, T); floating if `vocab_size` is None
        key_mask : boolean Tensor, shape (B, T), optional
            True for a real symbol, False for padding, which must come after all real symbols.

        Returns
        -------
        Tensor, shape (B, num_classes), or (B, T, num_classes) if the read-out is "token"
            Unnormalised: their softmax are the probabilities.

        Raises
        ------
        ValueError
            If `tokens` is not (B, T) of the right kind, `key_mask` is not boolean (B, T) with
            padding at the end alone, or a sequence has no real token to read from.
        """
        _check_sequences(tokens, self.vocab_size)
        lengths = None if key_mask is None else _lengths(key_mask, tokens)
        x = self.embedding(tokens)
        for layer in self.layers:
            x, _ = layer(x, lengths=lengths)
        return self.head(_read(x, key_mask, self.read_out))


def matching_width(model: nn.Module, make: Callable[[int], nn.Module]) -> int:
    """The width at which `make` builds a model with as nearly as can be as many parameters as `model`.

    Parameters
    ----------
    model : Module
        What is to be matched, for instance a Transformer.
    make : callable, int to Module
        Builds the other model at a given width, such as
        ``lambda hidden: RecurrentModel(10, 10, 32, hidden, "gru")``. More width must mean more parameters.

    Returns
    -------
    int, at least 1

    Notes
    -----
    The models are built without memory or random numbers, on torch's "meta" device.
    """

    def size(width: int) -> int:
        with torch.device("meta"):
            return parameter_count(make(width))

    target, low, high = parameter_count(model), 1, 2
    while size(high) < target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(middle) < target else (low, middle)
    return min((low, high), key=lambda width: abs(size(width) - target))


def _check_read_out(read_out: str) -> None:
    if read_out not in READ_OUTS:
        raise ValueError(f"read_out must be one of {', '.join(map(repr, READ_OUTS))}, not {read_out!r}")


def _lengths(key_mask: Tensor, tokens: Tensor) -> Tensor:
    """How many symbols of each sequence are real, (B,), when padding comes last."""
    if not isinstance(key_mask, Tensor) or key_mask.dtype != torch.bool or key_mask.shape != tokens.shape:
        raise ValueError(
            f"key_mask must be a boolean tensor (B, T) = {tuple(tokens.shape)}, not {described(key_mask)}"
        )
    if bool((~key_mask[:, :-1] & key_mask[:, 1:]).any()):
        raise ValueError("key_mask must have its padding at the end: a recurrent model reads from the left")
    return key_mask.sum(dim=1)


def _make_encoding(encoding: str | Tensor | nn.Module, d_model: int, max_length: int | None) -> nn.Module:
    if isinstance(encoding, str) and encoding not in ENCODINGS:
        raise ValueError(f"unknown encoding {encoding!r}; known are {', '.join(ENCODINGS)}")
    if isinstance(encoding, str):
        if encoding == "learned":
            if max_length is None:
                raise ValueError("a learned encoding needs max_length, the number of rows of its table")
            return LearnedEncoding(max_length, d_model)
        return SinusoidalEncoding(d_model) if encoding == "sinusoidal" else nn.Identity()
    layer = FixedCodes(encoding) if isinstance(encoding, Tensor) else encoding
    if not isinstance(layer, nn.Module):
        raise ValueError(f"encoding must be a name, a table or a layer, not {type(encoding).__name__}")
    width = getattr(layer, "d_model", d_model)
    if width != d_model:
        raise ValueError(f"the encoding is {width} wide, but d_model is {d_model}")
    return layer


def _make_position(encoding: object, d_model: int, num_heads: int, max_distance: int) -> nn.Module | None:
    if not isinstance(encoding, str) or encoding not in ("rotary", "alibi", "relative"):
        return None
    if encoding == "rotary":
        if d_model // num_heads % 2:
            raise ValueError(
                f"rotary needs an even head width, not {d_model} / {num_heads} = {d_model // num_heads}"
            )
        return Rotary()
    return Alibi() if encoding == "alibi" else RelativeBias(num_heads, max_distance)


def _read(x: Tensor, key_mask: Tensor | None, read_out: str) -> Tensor:
    """The rows that the classes are read from: (B, T, D) to (B, D), or as they are for "token"."""
    if read_out == "token":
        return x
    real = x.new_ones(x.shape[:2], dtype=torch.bool) if key_mask is None else key_mask
    if not x.shape[1] or not bool(real.any(dim=1).all()):
        raise ValueError(f"read_out {read_out!r} needs a real token in every sequence, and one has none")
    if read_out == "pooled":
        # Padding is replaced and not only weighed by zero, which would let NaN and infinity through.
        return x.masked_fill(~real[..., None], 0.0).sum(dim=1) / real.sum(dim=1, keepdim=True)
    place = torch.arange(real.shape[1], device=x.device)
    last = torch.where(real, place, -1).amax(dim=1)
    return x[torch.arange(x.shape[0], device=x.device), last]
