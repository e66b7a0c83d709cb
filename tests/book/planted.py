"""Notebooks made for the tests: one that uses everything the pages know, one that gets everything wrong."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from pathlib import Path

URL = "https://github.com/someone/somewhere"
"""Where the book that uses everything is said to be published."""

SECOND = "notebooks/02_everything.html"
"""Its page that holds everything."""


def picture() -> str:
    """A grey PNG of 40 by 20 pixels, in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + b"\x99" * 40) * 20)
    header = struct.pack(">IIBBBBB", 40, 20, 8, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()


def claims() -> str:
    """What the book's other pages show as claims, as the code of a chapter would print it."""
    pages = (path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parents[2] / "book").glob("*.md")))
    return "".join(f"✓ {claim}\n" for page in pages for claim in re.findall(r"```\{claim\}\n(.*)\n```", page))


def text(source: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def code(source: str, printed: str = "", drawn: bool = False, alt: str = "") -> dict:
    outputs: list[dict] = []
    if printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed})
    if drawn:
        data = {"image/png": picture(), "text/plain": "<Figure size 40x20 with 1 Axes>"}
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
    metadata = {"mystnb": {"image": {"alt": alt}}} if alt else {}
    return {"cell_type": "code", "metadata": metadata, "execution_count": 1, "outputs": outputs, "source": source}


def notebook(*cells: dict) -> str:
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": list(cells)})


FIRST = notebook(
    text("# The first\n\nTakes 30 to 40 minutes.\n\n> **Definition 1.1 · A thing**\n>\n> It is $x$."),
    text("Chapter 2 has Theorem 2.1, and chapters 1 and 2 have more. See Definitions 1.1 and 2.1."),
    code("verify(...)", claims()),
)

EVERYTHING = notebook(
    text("# Everything\n\n**Time.** About 45 minutes. You need chapter 1."),
    text(r"""## Boxes

> **Definition 2.1 · Two words**
>
> A map is *equivariant* when $f(PX) = P f(X)$.

> **Theorem 2.1 · About $f(X)$**
>
> For every $P$ and $B$,
>
> $$f(PX; PBP^\top) = P f(X; B).$$

> **Proof of Theorem 2.1.**
>
> By Definition 2.1. Then
>
> $$\begin{aligned} A &= B \\ &= C. \end{aligned}$$

> **Lemma 2.1**
>
> No title.

> **Proposition 2.1 · P**
>
> Text.

> **Corollary 2.1 · C**
>
> Text.

> **Warning · Mind this**
>
> Text.

> **Note · Aside**
>
> Text.

> **Predict · What moves?**
>
> Text.

> **Bridge · Background**
>
> Text.

> **Bold words** that open a quotation and nothing else.

> An ordinary quotation.

> **Exercise 2.1 · Undo it** (10 min, ●●○)
>
> Given `order`, undo it.
"""),
    code("check('2.1', ...)", "○ 2.1 not attempted yet\n"),
    code("check('2.1', 0)", "✗ 2.1 that is the order itself\n"),
    code("check('2.1', 1)", "a plain line\n✓ 2.1 right\n✓ Weights \"sum\" to one (Theorem 9.9).\nanother\n"),
    text("""<details><summary>Hint 1</summary>

<span id="inside"></span>Use Theorem 2.1 and $P^\\top$.

</details>

<details><summary>Solution</summary>

```python
back = order  # Theorem 9.9
```

</details>
"""),
    code("plt.show()", "✓ Drawn.\n", drawn=True, alt="A grey rectangle, twice as wide as it is high."),
    text("*Figure 2.1. A grey rectangle, and $x$ (Vaswani et al., 2017, Figure 9.9).*"),
    text("""| a | b |
|---|---|
| Table 3 | (Shaw et al., 2018, Table 2) |

*Table 2.1. Two columns, as in
Theorem
2.1.*

## References

Vaswani et al. (2017) and (Lee et al., 2019; see Zaheer et al., 2017) and Hahn (2020, section 4), Table 1; also
(Hendrycks & Gimpel, 2016), Kingma and Ba's (2015), Delétang et al. (2022), and Table 2 of Press et al. (2021).
Figures 2.1, Figure 2.1 and Table 2.1. In code, `Theorem 9.9`; in math, $\\text{Theorem 9.9}$; in
[a link to Theorem 9.9](https://example.org). Not ours: (in 2017), March (1999 words), the years 1700–2008.
"""),
    text("""## Words

The **mask**, `mask` and $\\text{mask}$ do not count, nor does [this mask](https://example.org). A mask does, once; masks
come later. *Tokens* do, a token then not; headless is no head.

Said of value and position: nothing. Equivariance was linked above."""),
    text(
        "A formula that is wider than a phone:\n\n"
        + "$$" + " + ".join(f"\\frac{{x_{{{i}}}}}{{\\sqrt{{d}}}}" for i in range(40)) + "$$"
    ),
)

FAULTS = {
    "Theorem 7.7": "See Theorem 7.7.",
    "Figure 7.8": "See Figure 7.8.",
    "chapter 77": "See chapter 77.",
    "Table 33": "See Table 33.",
    "Nobody et al., 2017": "As (Nobody et al., 2017) say.",
    "Vaswani et al., 2018": "As Vaswani et al. (2018) say.",
    "Hahn, 2021": "As they say (see Hahn, 2021).",
    "Lemma 7.9": "By Lemmas 2.1 and 7.9.",
    r"\\nosuchmacro": r"A formula $\nosuchmacro{x}$.",
    '"Theorm 2.5 · Slip" opens no known kind': "> **Theorm 2.5 · Slip**\n>\n> Text.",
    '"Theorem · No number" opens no known kind': "> **Theorem · No number**\n>\n> Text.",
    '"Theorem 2.4" stands where Theorem 2.1 is due': "> **Theorem 2.4 · Out of turn**\n>\n> Text.",
    '"Exercise 2.1 · Bare" does not say how long': "> **Exercise 2.1 · Bare**\n>\n> Text.",
    '"Lemma 2.1" is defined twice': "> **Lemma 2.1 · A**\n>\n> Text.\n\n> **Lemma 2.1 · B**\n>\n> Text.",
    'the caption "Figure 2.8" does not stand right below a cell that draws': "*Figure 2.8. Of nothing.*",
    'the caption "Table 2.8" does not stand right below a table': "*Table 2.8. Of nothing.*",
}
"""What the log must say, and the Markdown that makes it so."""

WRONG = notebook(
    text("# All wrong"),
    code("verify(...)", claims().replace("✓", "✓ not:")),
    *map(text, FAULTS.values()),
    code("plt.show()", drawn=True, alt="A grey rectangle."),
    text("No caption above."),
    code("plt.show()", drawn=True),
    text("*Figure 2.1. No alternative text.*"),
)
DRAWN_FAULTS = ['a figure without a caption', '"Figure 2.1" has no alternative text']
