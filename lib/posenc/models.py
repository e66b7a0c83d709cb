"""The Transformer of the book: attention, and after it the small network that every token passes alone."""

from torch import Tensor, nn

from posenc.attention import MultiHeadAttention, Position


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
        As `MultiHeadAttention`; and if `expansion` is not positive.

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
        if expansion < 1:
            raise ValueError(f"expansion must be positive, not {expansion}")
        self.attention = MultiHeadAttention(d_model, num_heads, position)
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, expansion * d_model), nn.GELU(), nn.Linear(expansion * d_model, d_model)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None, key_mask: Tensor | None = None) -> Tensor:
        """(B, T, D) to (B, T, D); masks as in `MultiHeadAttention`."""
        x = x + self.attention(self.attention_norm(x), mask, key_mask)
        return x + self.feed_forward(self.feed_forward_norm(x))
