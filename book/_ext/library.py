"""The library page: reference documentation read from the source, which is never imported.

`library-reference` lists the modules of a package in the order given, then all others, each with its public functions,
classes and constants: signature, and docstring in NumPy's form. Reading the source with `ast` means that the page needs
neither torch nor anything else that the library needs, and that a new function is there as soon as it is written. What
is public and has no docstring is a warning, and so fails the build.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)

WIDTH = 78
"""Columns of a signature that fit in a line of the page."""

_UNDERLINE = re.compile(r"^[ \t]*-{3,}[ \t]*$")
_INLINE = re.compile(r"``(?P<code>.+?)``|`(?P<name>[^`]+)`|\*(?P<stress>[^*\s][^*]*)\*", re.DOTALL)
_FIELDS = ("Parameters", "Attributes", "Returns", "Yields", "Raises")

Definition = ast.FunctionDef | ast.ClassDef


class ShowLibrary(SphinxDirective):
    """`library-reference FOLDER`: the public names of a package; the content names the modules to begin with."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        folder = Path(self.env.srcdir) / self.arguments[0]
        modules = public_modules(folder)
        first = [line.strip() for line in self.content if line.strip()]
        for name in first:
            if name not in modules:
                LOGGER.warning('%s has no module "%s"', self.arguments[0], name, location=self.get_location())
        order = [name for name in first if name in modules] + [name for name in modules if name not in first]
        sources, trees = {}, {}
        for name in order:
            self.env.note_dependency(str(modules[name]))
            sources[name] = modules[name].read_text(encoding="utf-8")
            trees[name] = ast.parse(sources[name])
        self.package = folder.name
        self.known = {
            item: f"{name}.{item}" for name, tree in trees.items() for item in (found for found, _ in public(tree))
        }
        return [self.module(name, tree, modules[name], sources[name]) for name, tree in trees.items()]

    def module(self, name: str, tree: ast.Module, path: Path, source: str) -> nodes.section:
        dotted = f"{self.package}.{name}"
        section = self.section(name, nodes.literal("", dotted))
        if not ast.get_docstring(tree):
            self.undocumented(path, 1, dotted)
        section += self.docstring(ast.get_docstring(tree) or "")
        for item, node in public(tree):
            part = self.section(f"{name}.{item}", nodes.literal("", item))
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                part += self.definition(node, path, tree)
            else:
                part += [self.code(ast.get_source_segment(source, node)), *self.docstring(constant_docstring(tree, node))]
            section += part
        return section

    def section(self, identifier: str, *title: nodes.Node) -> nodes.section:
        identifier = f"{self.package}.{identifier}"
        section = nodes.section("", nodes.title("", "", *title), ids=[identifier], names=[identifier])
        self.set_source_info(section)
        self.state.document.ids[identifier] = section
        return section

    def definition(self, node: Definition, path: Path, tree: ast.Module) -> list[nodes.Node]:
        """The signature of a function or class, its docstring, and its public methods."""
        text = ast.get_docstring(node)
        if not text and not is_small(node):
            self.undocumented(path, node.lineno, node.name)
        parts = [self.code(signature(node, tree)), *self.docstring(text or "")]
        if isinstance(node, ast.ClassDef):
            methods = nodes.definition_list("", classes=["methods"])
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_") and ast.get_docstring(method):
                    body = nodes.definition("", *self.docstring(ast.get_docstring(method) or ""))
                    term = nodes.term("", "", nodes.literal("", signature(method, tree, inside=True)))
                    methods += nodes.definition_list_item("", term, body)
            parts += [methods] if len(methods) else []
        return parts

    def undocumented(self, path: Path, line: int, name: str) -> None:
        LOGGER.warning('"%s" is public and has no docstring', name, location=(str(path), line))

    @staticmethod
    def code(text: str) -> nodes.literal_block:
        return nodes.literal_block(text, text, language="python", classes=["signature"])

    def docstring(self, text: str) -> list[nodes.Node]:
        """A docstring as paragraphs and lists of fields."""
        parts: list[nodes.Node] = []
        for heading, lines in sections(text):
            if heading in _FIELDS:
                listing = self.fields(lines, named=heading not in ("Returns", "Yields"))
                parts += [nodes.paragraph("", "", nodes.strong("", heading), classes=["field"]), listing]
            else:
                parts += self.paragraphs(lines)
        return parts

    def fields(self, lines: list[str], named: bool) -> nodes.definition_list:
        """`name : type` lines, each with what is indented below it; unless `named`, one may be a type alone."""
        listing = nodes.definition_list("", classes=["fields"])
        for head, body in blocks(lines):
            name, colon, kind = head.partition(" : ")
            if not colon and not named:
                name, kind = "", head
            term = nodes.term("")
            term += [nodes.literal("", name)] if name else []
            term += [nodes.inline("", "", *self.inline(kind), classes=["kind"])] if kind else []
            listing += nodes.definition_list_item("", term, nodes.definition("", *self.paragraphs(body)))
        return listing

    def paragraphs(self, lines: list[str]) -> list[nodes.Node]:
        """Text between blank lines; what starts with >>> or is indented is code."""
        parts: list[nodes.Node] = []
        for piece in re.split(r"\n[ \t]*\n", "\n".join(lines).strip("\n")):
            if not piece.strip():
                continue
            if piece.lstrip().startswith(">>>") or piece.startswith("    "):
                parts.append(self.code(inspect.cleandoc(piece)))
                continue
            paragraph = nodes.paragraph("", "", *self.inline(" ".join(piece.split())))
            self.set_source_info(paragraph)
            parts.append(paragraph)
        return parts

    def inline(self, text: str) -> Iterator[nodes.Node]:
        """The words of a docstring: ``code``, `names`, which lead to their place on the page, and *stress*."""
        at = 0
        for found in _INLINE.finditer(text):
            if found.start() > at:
                yield nodes.Text(text[at : found.start()])
            name = found["name"]
            if found["stress"]:
                yield nodes.emphasis("", found["stress"])
            elif name and name.split(".")[-1] in self.known:
                target = f"{self.package}.{self.known[name.split('.')[-1]]}"
                yield nodes.reference("", "", nodes.literal("", name), refid=target, internal=True)
            else:
                yield nodes.literal("", name or found["code"])
            at = found.end()
        if at < len(text):
            yield nodes.Text(text[at:])


def public_modules(folder: Path) -> dict[str, Path]:
    """The public modules and packages in `folder`, by name."""
    found = {path.stem: path for path in folder.glob("*.py")}
    found |= {path.parent.name: path for path in folder.glob("*/__init__.py")}
    return {name: found[name] for name in sorted(found) if not name.startswith("_")}


def public(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """The public functions and classes of a module, and its documented constants."""
    listed = declared(tree)
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            name, shown = node.name, True
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name, shown = getattr(target, "id", "_"), bool(constant_docstring(tree, node))
        else:
            continue
        if (name in listed) if listed is not None else (shown and not name.startswith("_")):
            yield name, node


def declared(tree: ast.Module) -> list[str] | None:
    """What `__all__` names, or None."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return None


def constant_docstring(tree: ast.Module, node: ast.stmt) -> str:
    """The string that stands right below an assignment."""
    place = tree.body.index(node) + 1
    after = tree.body[place] if place < len(tree.body) else None
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return inspect.cleandoc(after.value.value)
    return ""


def is_small(node: Definition) -> bool:
    """Whether a class says all there is to say by its name, as an exception does."""
    return isinstance(node, ast.ClassDef) and all(isinstance(part, (ast.Pass, ast.Expr)) for part in node.body)


def signature(node: Definition, tree: ast.Module, inside: bool = False) -> str:
    """The line that defines a function, or that makes an instance of a class, broken where it is too long."""
    if isinstance(node, ast.ClassDef):
        made = next((part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None)
        start, result = f"class {node.name}", ""
        if made is not None:
            listed = arguments(made)[1:]
        elif "dataclass" in decorators(node):
            listed = list(dataclass_fields(node, tree).values())
        else:
            listed = [ast.unparse(base) for base in node.bases]
    else:
        listed = arguments(node)[1:] if inside else arguments(node)
        result = f" -> {ast.unparse(node.returns)}" if node.returns and not inside else ""
        start = node.name if inside else f"def {node.name}"
        if "property" in decorators(node):
            return start
    line = f"{start}({', '.join(listed)}){result}"
    if len(line) <= WIDTH or inside:
        return line
    return f"{start}(\n" + "".join(f"    {argument},\n" for argument in listed) + f"){result}"


def dataclass_fields(node: ast.ClassDef, tree: ast.Module) -> dict[str, str]:
    """What a data class is made from, its bases in the same module included, by name."""
    listed: dict[str, str] = {}
    above = {base.id for base in node.bases if isinstance(base, ast.Name)}
    for part in tree.body:
        if isinstance(part, ast.ClassDef) and part.name in above and "dataclass" in decorators(part):
            listed |= dataclass_fields(part, tree)
    for part in node.body:
        if not isinstance(part, ast.AnnAssign):
            continue
        default, options = part.value, {}
        if isinstance(default, ast.Call) and ast.unparse(default.func) == "field":
            options = {keyword.arg: keyword.value for keyword in default.keywords}
            made = options.get("default_factory")
            default = options.get("default") or (made.body if isinstance(made, ast.Lambda) else made)
        name = ast.unparse(part.target)
        if "init" in options and ast.unparse(options["init"]) == "False":
            listed.pop(name, None)
        else:
            listed[name] = f"{name}: {ast.unparse(part.annotation)}" + (f" = {ast.unparse(default)}" if default else "")
    return listed


def decorators(node: Definition) -> str:
    return " ".join(ast.unparse(decorator) for decorator in node.decorator_list)


def arguments(node: ast.FunctionDef) -> list[str]:
    """The arguments of a function as they are written, with their types and defaults."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    listed = [_argument(one, default) for one, default in zip(plain, defaults)]
    if given.posonlyargs:
        listed.insert(len(given.posonlyargs), "/")
    if given.vararg:
        listed.append("*" + _argument(given.vararg, None))
    elif given.kwonlyargs:
        listed.append("*")
    listed += [_argument(one, default) for one, default in zip(given.kwonlyargs, given.kw_defaults)]
    if given.kwarg:
        listed.append("**" + _argument(given.kwarg, None))
    return listed


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    text = one.arg + (f": {ast.unparse(one.annotation)}" if one.annotation else "")
    if default is None:
        return text
    return text + (" = " if one.annotation else "=") + ast.unparse(default)


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """The parts of a NumPy docstring: the heading, "" before the first, and the lines below it."""
    heading, lines = "", []
    rows = text.split("\n")
    at = 0
    while at < len(rows):
        if at + 1 < len(rows) and rows[at].strip() and _UNDERLINE.match(rows[at + 1]):
            yield heading, lines
            heading, lines = rows[at].strip(), []
            at += 2
            continue
        lines.append(rows[at])
        at += 1
    yield heading, lines


def blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each line at the margin with the indented lines below it."""
    head, body = "", []
    for line in lines:
        if line.strip() and not line.startswith((" ", "\t")):
            if head:
                yield head, inspect.cleandoc("\n".join(["", *body])).split("\n")
            head, body = line.strip(), []
        elif head:
            body.append(line)
    if head:
        yield head, inspect.cleandoc("\n".join(["", *body])).split("\n")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("library-reference", ShowLibrary)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
