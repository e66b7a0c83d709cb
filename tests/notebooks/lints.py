"""What every chapter keeps to, beyond running: each lint takes a chapter and yields what is wrong, in words.

A chapter is plain Markdown, LaTeX math and ``<details>``, so that it reads well in Colab as in the book; its
outputs are stored; its boxes, figures and exercises are numbered in order.
"""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import execute
import harness
import notebook_files
from markdown_it import MarkdownIt

Problems = Iterator[str]


@dataclass
class Chapter:
    """A notebook file: its number, its stored text and what the book says about it elsewhere."""

    number: int
    stored: str
    setup_cell: str
    labels: list[str]

    @cached_property
    def notebook(self) -> dict:
        return json.loads(self.stored)

    @property
    def cells(self) -> list[dict]:
        return self.notebook["cells"]

    @property
    def code(self) -> list[tuple[int, dict, str]]:
        return [(i, c, source(c)) for i, c in enumerate(self.cells, 1) if c["cell_type"] == "code"]

    @property
    def markdown(self) -> list[tuple[int, str]]:
        return [(i, source(c)) for i, c in enumerate(self.cells, 1) if c["cell_type"] == "markdown"]

    @property
    def prose(self) -> list[tuple[int, str]]:
        """The Markdown cells without their code, fenced or in line."""
        return [(i, INLINE_CODE.sub("code", FENCE.sub("", text))) for i, text in self.markdown]


def source(cell: dict) -> str:
    return notebook_files.text(cell["source"])


FENCE = re.compile(r"(?ms)^([> ]*)(```+|~~~+).*?^[> ]*\2[ ]*$\n?")
INLINE_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
DISPLAY_MATH = re.compile(r"(?s)\$\$.+?\$\$")
INLINE_MATH = re.compile(r"(?s)(?<![\\$])\$(?!\$)(?:\\.|[^$\\])+?\$")


# Outputs


def counts_run_from_one(chapter: Chapter) -> Problems:
    for want, (i, cell, _) in enumerate(chapter.code, 1):
        if cell["execution_count"] != want:
            yield f"cell {i}: execution count {cell['execution_count']}, expected {want}: execute the notebook in order"


def outputs_are_clean(chapter: Chapter) -> Problems:
    for i, cell, _ in chapter.code:
        raising = "raises-exception" in cell["metadata"].get("tags", [])
        raised = any(output["output_type"] == "error" for output in cell["outputs"])
        if raised and not raising:
            yield f"cell {i}: its output is an error"
        if raising and not raised:
            yield f"cell {i}: is tagged raises-exception and raises none"
        for output in cell["outputs"]:
            if output.get("name") == "stderr":
                yield f"cell {i}: has output on stderr"
            texts = [notebook_files.text(output.get("text", "")), str(output.get("data", {}).get("text/plain", ""))]
            if any(re.search(r"\bat 0x[0-9a-f]+", text) for text in texts):
                yield f"cell {i}: prints a memory address"
            if set(output.get("data", {})) == {"text/plain"} and "Figure size" in texts[1]:
                yield f"cell {i}: shows a figure as text"


def size_is_modest(chapter: Chapter) -> Problems:
    if (size := len(chapter.stored.encode())) > 1_000_000:
        yield f"the file has {size:,} bytes, more than 1 MB"


MACHINE = re.compile(
    r"(?<![\w./])/(?:bin|content|etc|home|mnt|opt|private|root|srv|tmp|usr|Users|var|work|workspace)(?:/[\w.-]+)+"
    r"|\b[A-Z]:\\\\|site-packages|\b(?:pypi|pythonhosted|npmjs|conda-forge)\b|\blocalhost\b|\b127\.0\.0\.1\b"
)


def no_trace_of_a_machine(chapter: Chapter) -> Problems:
    for i, cell in enumerate(chapter.cells, 1):
        texts = [source(cell)]
        for output in cell.get("outputs", []):
            texts += [notebook_files.text(output.get("text", "")), *output.get("traceback", [])]
            texts += [notebook_files.text(v) for k, v in output.get("data", {}).items() if k.startswith("text/")]
        for found in MACHINE.finditer("\n".join(texts)):
            yield f"cell {i}: {found[0]!r} belongs to a machine or a registry"


# The file


def metadata_is_plain(chapter: Chapter) -> Problems:
    if chapter.notebook["metadata"] != execute.METADATA:
        yield f"the notebook's metadata are not {execute.METADATA} (a private kernel name?)"
    for i, cell in enumerate(chapter.cells, 1):
        if extra := set(cell["metadata"]) - execute.KEPT_CELL_METADATA:
            yield f"cell {i}: has metadata {', '.join(sorted(extra))}"
        if extra := set(cell["metadata"].get("tags", [])) - {"hide-input", "raises-exception"}:
            yield f"cell {i}: has tags {', '.join(sorted(extra))}"
        if re.search(r"NBVAL_|PYTEST_VALIDATE", source(cell)):
            yield f"cell {i}: tells the test not to look"
        if cell["cell_type"] not in ("code", "markdown") or not source(cell).strip():
            yield f"cell {i}: is empty, or neither code nor Markdown"


def file_is_in_stored_form(chapter: Chapter) -> Problems:
    if chapter.stored != notebook_files.dumps(chapter.notebook):
        yield "the JSON is not in the stored form: run `make notebooks`"
    ids = [cell.get("id") for cell in chapter.cells]
    if None in ids or len(set(ids)) < len(ids):
        yield "a cell has no id, or two have the same"


# Code


def setup_cell_is_the_books(chapter: Chapter) -> Problems:
    if len(chapter.cells) < 2 or chapter.cells[1]["cell_type"] != "code":
        yield "the second cell is not the set-up cell"
        return
    cell = chapter.cells[1]
    if source(cell) != chapter.setup_cell:
        yield "the set-up cell differs from book/_tools/setup_cell.py (run `make repository`)"
    if "hide-input" not in cell["metadata"].get("tags", []) or cell["metadata"].get("cellView") != "form":
        yield "the set-up cell lacks the tag hide-input or cellView: form"
    if cell["outputs"]:
        yield "the set-up cell is not silent"


def code_cells_are_short(chapter: Chapter) -> Problems:
    for i, _, text in chapter.code:
        if (count := len(text.split("\n"))) > 15:
            yield f"cell {i}: has {count} lines, more than 15"
    fenced = [(i, block) for i, text in chapter.markdown for block in harness.FENCED_PYTHON.findall(text)]
    for i, text in [(i, text) for i, _, text in chapter.code] + fenced:
        for line in text.split("\n"):
            if len(line) > 78:
                yield f"cell {i}: a line of {len(line)} columns, more than 78: {line[:40]}…"


def code_is_plain_python(chapter: Chapter) -> Problems:
    for i, _, text in chapter.code:
        for line in text.split("\n"):
            if re.match(r"\s*[%!]|.*\?$", line.split("#")[0].rstrip()):
                yield f"cell {i}: a magic or a shell line: {line.strip()}"
            if line.split("#")[0].rstrip().endswith(";"):
                yield f"cell {i}: a trailing semicolon: {line.strip()}"
        try:
            compile(text, "cell", "exec")
        except SyntaxError as error:
            yield f"cell {i}: {error.msg}"


FRONT_ENDS = re.compile(r"google\.colab|\bkaggle|get_ipython|COLAB_|/content\b|ipywidgets")


def code_knows_no_front_end(chapter: Chapter) -> Problems:
    for i, _, text in chapter.code:
        if found := FRONT_ENDS.search(text):
            yield f"cell {i}: {found[0]} is there in one place only; a chapter runs wherever Python does"


def claims_can_fail(chapter: Chapter) -> Problems:
    for i, _, text in chapter.code:
        try:
            tree = ast.parse(text)
        except SyntaxError:  # code_is_plain_python tells
            continue
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "verify":
                evidence = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "condition")]
                if len(evidence) != 1 or isinstance(evidence[0], ast.Constant):
                    yield f"cell {i}: a claim without evidence: {ast.unparse(call)}"


# Markdown


MYST = {
    "a directive": re.compile(r"(?m)^[> ]*(?:```+|~~~+)\{"),
    "a colon fence": re.compile(r"(?m)^[> ]*:::"),
    "a role": re.compile(r"\{[a-zA-Z][\w:+-]*\}`"),
    "a target": re.compile(r"(?m)^[> ]*\([\w-]+\)=\s*$"),
    "an equation label": re.compile(r"\$\$[ ]*\([\w-]+\)\s*$", re.MULTILINE),
    "a substitution": re.compile(r"\{\{\s*\w+\s*\}\}"),
    "a comment": re.compile(r"(?m)^%"),
    "a block break": re.compile(r"(?m)^\+\+\+"),
    "front matter": re.compile(r"\A---\n"),
    "an attribute": re.compile(r"(?m)^\{[.#]|\]\{[.#]"),
}


def markdown_is_not_myst(chapter: Chapter) -> Problems:
    for i, text in chapter.markdown:
        outside_math = INLINE_MATH.sub("math", text)
        for kind, pattern in MYST.items():
            if found := pattern.search(FENCE.sub(_only_opening, outside_math)):
                yield f"cell {i}: {kind} of MyST, which Colab shows as text: {found[0].strip()!r}"


COLAB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
LEFT_OVER = {
    "emphasis that does not end": re.compile(r"\*\*|(?<!\w)[*_](?=\w)|(?<=[\w.])[*_](?![\w/*])"),
    "a code span that does not end": re.compile("`"),
    "strikethrough that does not end": re.compile("~~"),
    "a link without a target": re.compile(r"\]\(|\]\["),
    "a footnote": re.compile(r"\[\^"),
    "a heading without a space": re.compile(r"(?m)^#+\w"),
    "a row of a table": re.compile(r"(?m)^\|.*\|$|\|[ ]*:?-{3,}"),
    "an admonition": re.compile(r"(?m)^\[!\w+\]"),
    "a definition list": re.compile(r"(?m)^: "),
    "a task list": re.compile(r"(?m)^\[[ x]\] "),
    "a dollar sign": re.compile(r"\$"),
    "an entity": re.compile(r"&\w+;|&#\d+;"),
}


def markdown_leaves_nothing_over(chapter: Chapter) -> Problems:
    for i, text in chapter.markdown:
        for leaf in _leaves(COLAB.parse(_with_words_for_math(text))):
            for kind, pattern in LEFT_OVER.items():
                if found := pattern.search(leaf):
                    start = max(found.start() - 20, 0)
                    yield f"cell {i}: {kind}, as Colab shows it: {leaf[start : found.end() + 20]!r}"


def _with_words_for_math(text: str) -> str:
    """The text with a word in the place of each formula that is not in code, as the front ends take math out first."""
    kept: list[str] = []

    def keep(code: re.Match) -> str:
        kept.append(code[0])
        return f"\0{len(kept) - 1}\0"

    text = INLINE_CODE.sub(keep, FENCE.sub(keep, text))
    text = INLINE_MATH.sub("formula", DISPLAY_MATH.sub("formula", text))
    return re.sub("\0(\\d+)\0", lambda mark: kept[int(mark[1])], text)


def _leaves(tokens: list) -> Iterator[str]:
    """What a reader sees as running text: code is left out, and the line breaks stay."""
    for token in tokens:
        if token.type == "inline":
            parts = {"text": lambda part: part.content, "softbreak": lambda _: "\n", "hardbreak": lambda _: "\n"}
            yield "".join(parts.get(part.type, lambda _: "\1")(part) for part in token.children)


def _only_opening(fence: re.Match) -> str:
    return fence[0].split("\n")[0] + "\n"


def html_is_only_details(chapter: Chapter) -> Problems:
    for i, text in chapter.prose:
        plain = INLINE_MATH.sub("math", DISPLAY_MATH.sub("math", text))
        for tag in re.findall(r"</?([a-zA-Z][\w-]*)(?:\s[^<>]*)?/?>|(<!--)", plain):
            if "".join(tag) not in ("details", "summary"):
                yield f"cell {i}: raw HTML <{''.join(tag)}>"
    for i, text in chapter.markdown:
        for kind in ("details", "summary"):
            if text.count(f"<{kind}>") != text.count(f"</{kind}>"):
                yield f"cell {i}: a <{kind}> that is not closed, or has attributes"
        if re.search(r"</summary>[ ]*\S|</summary>[ ]*\n[ ]*\S|\S[ ]*\n</details>|</details>[ ]*\n[ ]*[^\s<]", text):
            yield f"cell {i}: a fold needs an empty line after </summary> and on both sides of </details>"


def links_hold_for_a_lone_notebook(chapter: Chapter) -> Problems:
    for i, text in chapter.prose:
        if "![" in text:
            yield f"cell {i}: a picture from a file; figures are drawn by code"
        for target in re.findall(r"\]\(([^)\s]*)", text):
            if not target.startswith(("https://", "#")):
                yield f"cell {i}: a link that a lone notebook does not have: {target}"


def headings_nest(chapter: Chapter) -> Problems:
    found = [(i, len(h), t) for i, text in chapter.prose for h, t in re.findall(r"(?m)^(#+) (.*)$", text)]
    if not found or found[0][1] != 1 or re.match(r"\d|[Cc]hapter", found[0][2]):
        yield "does not begin with a heading `# Title` without a number"
    if [level for _, level, _ in found].count(1) != 1:
        yield "has not exactly one heading of the first level"
    for (_, above, _), (i, level, heading) in zip(found, found[1:]):
        if level > above + 1:
            yield f"cell {i}: the heading {heading!r} skips a level"
    last = [heading for _, level, heading in found if level == 2][-3:]
    if [name for name in ("Summary", "Exercises", "Sources") if any(name in h for h in last)] != last:
        yield f"does not end with the sections Summary, Exercises, Sources, but with {', '.join(last)}"


def opening_tells_the_reader(chapter: Chapter) -> Problems:
    opening = source(chapter.cells[0]).lower()
    for words in (r"you will be able to", r"\bminutes\b", r"\bneed\b"):
        if not re.search(words, opening):
            yield f"the first cell does not say what you will be able to do, the time, what you need ({words})"


# Math


MACROS = set(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi "
    "varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega "
    "frac tfrac dfrac sqrt binom sum prod int lim max min sup inf log ln exp sin cos tan tanh det dim ker arg Pr "
    "operatorname mathrm mathbf mathbb mathcal mathsf mathtt boldsymbol text textbf textit textrm "
    "cdot cdots ldots vdots ddots dots times div pm mp circ bullet star ast oplus otimes odot "
    "le ge leq geq ne neq ll gg lt gt approx sim simeq equiv cong propto in notin ni subset subseteq cup cap setminus "
    "emptyset forall exists neg lnot land lor to mapsto rightarrow leftarrow Rightarrow Leftarrow leftrightarrow "
    "Leftrightarrow iff implies longrightarrow longmapsto xrightarrow uparrow downarrow infty partial nabla ell top "
    "perp mid nmid parallel prime angle quad qquad hat bar tilde vec widehat widetilde overline underline dot ddot "
    "overbrace underbrace overset underset stackrel substack left right big Big bigg Bigg bigl bigr Bigl Bigr biggl "
    "biggr middle langle rangle lvert rvert lVert rVert lfloor rfloor lceil rceil vert Vert lbrace rbrace "
    "begin end displaystyle textstyle scriptstyle limits nolimits phantom hphantom vphantom square blacksquare "
    "checkmark".split()
)
ENVIRONMENTS = {"aligned", "gathered", "matrix", "pmatrix", "bmatrix", "vmatrix", "smallmatrix", "cases", "array"}


def math_is_known_everywhere(chapter: Chapter) -> Problems:
    for i, text in chapter.prose:
        formulas = DISPLAY_MATH.findall(text) + INLINE_MATH.findall(DISPLAY_MATH.sub("", text))
        rest = INLINE_MATH.sub("", DISPLAY_MATH.sub("", text))
        if re.search(r"(?<!\\)\$", rest):
            yield f"cell {i}: a dollar sign that opens or closes no formula"
        if re.search(r"\\begin\{|\\\[|\\\(", rest):
            yield f"cell {i}: math outside of $…$ and $$…$$"
        for formula in formulas:
            for macro in re.findall(r"\\([a-zA-Z]+)", formula):
                if macro not in MACROS:
                    yield f"cell {i}: \\{macro} is not on the list of macros that both KaTeX and MathJax know"
            for environment in re.findall(r"\\begin\{(.*?)\}", formula):
                if environment not in ENVIRONMENTS:
                    yield f"cell {i}: the environment {environment} does not work everywhere"
        for row in re.findall(r"(?m)^\|.*$", text):
            if any("|" in formula for formula in INLINE_MATH.findall(row)):
                yield f"cell {i}: a | inside a formula splits the cell of the table; write \\mid or \\lvert"


# Numbers


BOX = re.compile(r"^> \*\*(Definition|Theorem|Lemma|Proposition|Corollary|Exercise) (\d+)\.(\d+)\b(.*)$", re.MULTILINE)
LEAD = re.compile(r"^> \*\*([A-Z]\w+).*$", re.MULTILINE)


def boxes_are_numbered_in_order(chapter: Chapter) -> Problems:
    seen: dict[str, int] = {}
    for i, text in chapter.markdown:
        for kind, of, number, rest in BOX.findall(text):
            seen[kind] = seen.get(kind, 0) + 1
            if (int(of), int(number)) != (chapter.number, seen[kind]):
                yield f"cell {i}: {kind} {of}.{number}, expected {kind} {chapter.number}.{seen[kind]}"
            if not rest.startswith((" · ", ".**", "**")):
                yield f"cell {i}: the lead of {kind} {of}.{number} is not `**{kind} N.M · title**`"
        quotes = re.findall(r"(?:^>.*\n?)+", text, re.MULTILINE)
        for quote in quotes:
            first, _, rest = quote.partition("\n")
            if LEAD.match(first) and rest and not rest.startswith(">\n"):
                yield f"cell {i}: no empty `>` line after the lead {first}"


LIVE = 'class="posenc-live"'


def figures_can_be_read_by_everyone(chapter: Chapter) -> Problems:
    number = 0
    for i, cell, text in chapter.code:
        images = [o for o in cell["outputs"] if any(k.startswith("image/") for k in o.get("data", {}))]
        # A live figure describes itself, and the tests compare its numbers with the library's.
        living = [o for o in cell["outputs"] if LIVE in notebook_files.text(o.get("data", {}).get("text/html", ""))]
        alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
        if not images and alt:
            yield f"cell {i}: has alternative text and no figure"
        if not images and not living:
            continue
        number += 1
        if len(images) + len(living) > 1:
            yield f"cell {i}: draws {len(images) + len(living)} figures; one per cell"
        if images:
            if len(alt.split()) < 6 or not alt.rstrip().endswith("."):
                yield f"cell {i}: the alternative text is not a full sentence that says what is seen"
            if text.rstrip().split("\n")[-1] != "plt.show()":
                yield f"cell {i}: does not end with plt.show()"
            if not re.search(r"(?m)^\s*(?:assert\b|verify\()", text):
                yield f"cell {i}: draws values that no assert or verify in the cell has checked"
        after = chapter.cells[i] if i < len(chapter.cells) else {"cell_type": "raw", "source": ""}
        label = f"*Figure {chapter.number}.{number}. "
        caption = source(after).split("\n\n")[0]
        if after["cell_type"] != "markdown" or not caption.startswith(label):
            yield f"cell {i}: the cell below its figure does not begin with {label}…*"
        elif not caption.endswith("*") or caption.endswith("**"):
            yield f"cell {i}: the caption is not one paragraph in emphasis"
    captions = sum(len(re.findall(r"(?m)^\*Figure \d", text)) for _, text in chapter.markdown)
    if captions != number:
        yield f"has {number} figures and {captions} captions"


def tables_have_captions_in_order(chapter: Chapter) -> Problems:
    number = 0
    for i, text in chapter.prose:
        text = harness.FOLDED.sub("", text)
        for found in re.finditer(r"(?m)(?:^\|.*\n?)+", text):
            number += 1
            if not re.match(rf"\s*\*Table {chapter.number}\.{number}\. ", text[found.end() :]):
                yield f"cell {i}: the table is not followed by *Table {chapter.number}.{number}. …*"
    captions = sum(len(re.findall(r"(?m)^\*Table \d", text)) for _, text in chapter.markdown)
    if captions != number:
        yield f"has {number} tables and {captions} captions"


# Exercises


def exercises_are_complete(chapter: Chapter) -> Problems:
    cards = harness.cards(chapter.notebook)
    leads = [f"{of}.{n}" for _, text in chapter.markdown for kind, of, n, _ in BOX.findall(text) if kind == "Exercise"]
    if leads != [card.label for card in cards]:
        yield "an exercise's lead is not `> **Exercise N.M · title** (10 min, ●●○)`, or two share a cell"
    if leads != chapter.labels:
        yield f"has the exercises {leads}, posenc.exercises has {chapter.labels}"
    for card in cards:
        summaries = [summary for summary, _ in card.folds]
        wanted = [f"Hint {i}" for i in range(1, len(card.hints) + 1)] + ["Solution"]
        if not card.hints or summaries != wanted or not all(body.strip() for _, body in card.folds):
            yield f"exercise {card.label}: its folds are {summaries}, expected Hint 1, Hint 2, …, Solution"
        if not card.check_line:
            yield f'exercise {card.label}: expected one line check("{card.label}", …) below it'
        if not card.solution_code:
            yield f"exercise {card.label}: the solution has no fenced python code to put in the stub's place"
        if "".join(card.outputs) != f"○ {card.label} not attempted yet\n":
            yield f"exercise {card.label}: its stub does not read as not attempted: {''.join(card.outputs)!r}"
    checked = re.findall(r'(?m)\bcheck\(\s*["\'](.+?)["\']', "\n".join(text for _, _, text in chapter.code))
    for label in checked:
        if label not in leads:
            yield f'check("{label}", …) has no card'


LINTS = [
    counts_run_from_one,
    outputs_are_clean,
    size_is_modest,
    no_trace_of_a_machine,
    metadata_is_plain,
    file_is_in_stored_form,
    setup_cell_is_the_books,
    code_cells_are_short,
    code_is_plain_python,
    code_knows_no_front_end,
    claims_can_fail,
    markdown_is_not_myst,
    markdown_leaves_nothing_over,
    html_is_only_details,
    links_hold_for_a_lone_notebook,
    headings_nest,
    opening_tells_the_reader,
    math_is_known_everywhere,
    boxes_are_numbered_in_order,
    figures_can_be_read_by_everyone,
    tables_have_captions_in_order,
    exercises_are_complete,
]
