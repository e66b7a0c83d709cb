"""posenc: the small library behind *Where Order Comes From*.

Batch first everywhere: token tensors are ``(B, T, D)``, heads ``(B, H, T, d)``.
"""

__version__ = "0.1.0"
