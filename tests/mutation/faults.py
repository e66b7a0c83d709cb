"""Single faults for a piece of Python: a sign, an axis, an exponent, an off-by-one, two arguments changed places, …

`faults` finds every place in a source where one of the kinds below fits. Applying a fault changes that place alone;
comments and layout are lost, which the tests do not see.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fault:
    """One change: where it stands, what was there and what stands there now."""

    where: str
    kind: str
    before: str
    after: str
    occurrence: int
    sound: ast.Module = field(repr=False)
    path: tuple = field(repr=False)
    change: Callable[[ast.AST], ast.AST] = field(repr=False)

    @property
    def is_none(self) -> bool:
        return self.kind == "none"

    @property
    def source(self) -> str:
        """The whole, with the fault in it."""
        tree = copy.deepcopy(self.sound)
        parent, (name, i) = _at(tree, self.path[:-1]), self.path[-1]
        faulty = self.change(_at(tree, self.path))
        if i is None:
            setattr(parent, name, faulty)
        else:
            getattr(parent, name)[i] = faulty
        return ast.unparse(ast.fix_missing_locations(tree))

    @property
    def name(self) -> str:
        """Stays the same when other lines move."""
        again = f" #{self.occurrence + 1}" if self.occurrence else ""
        return f"{self.where}: {self.before} -> {self.after}{again}"


def sound(source: str, where: str) -> Fault:
    """The same code and no fault in it: to see what is noticed where there is nothing to notice."""
    return Fault(where, "none", "", "", 0, ast.parse(source), (("body", 0),), lambda node: node)


BINARY = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
NAMES = {
    "float64": "float32", "sin": "cos", "cos": "sin", "amax": "amin", "argmax": "argmin", "max": "min", "min": "max",
    "any": "all", "all": "any", "tril": "triu", "zeros": "ones", "ones": "zeros", "log": "log2", "sqrt": "exp",
    "mean": "sum", "sum": "mean", "floor": "ceil", "ceil": "floor", "sigmoid": "tanh", "tanh": "sigmoid",
}  # fmt: skip
DROPPED = {
    "transpose", "clone", "detach", "double", "abs", "square", "flip", "exp", "log", "clamp", "cumsum", "softmax",
    "masked_fill", "relu", "sigmoid", "tanh", "flatten", "unflatten", "removesuffix", "strip",
}  # fmt: skip


def faults(source: str, module: str = "") -> list[Fault]:
    """Every fault of the kinds above, in the order of the source."""
    tree = ast.parse(source)
    found, seen = [], {}
    for where, path in _places(tree):
        node = _at(tree, path)
        for kind, change in _changes(node):
            before, after = ast.unparse(node), ast.unparse(ast.fix_missing_locations(change(copy.deepcopy(node))))
            if before == after:
                continue
            key = (where, before, after)
            seen[key] = seen.get(key, -1) + 1
            name = f"{module}.{where}" if module and where else module or where
            found.append(Fault(name, kind, _short(before), _short(after), seen[key], tree, path, change))
    return found


def _short(code: str) -> str:
    code = " ".join(code.split())
    return code if len(code) <= 90 else code[:87] + "..."


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST]]]:
    """The kinds of fault that fit a node, each with what makes it."""
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        yield "operator", lambda n: ast.BinOp(n.left, BINARY[type(n.op)](), n.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Sub | ast.Div):
        yield "order", lambda n: ast.BinOp(n.right, n.op, n.left)
    if isinstance(node, ast.AugAssign) and type(node.op) in BINARY:
        yield "operator", lambda n: ast.AugAssign(n.target, BINARY[type(n.op)](), n.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield "sign", lambda n: n.operand
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        yield "comparison", lambda n: ast.Compare(n.left, [COMPARED[type(n.ops[0])](), *n.ops[1:]], n.comparators)
    if isinstance(node, ast.BoolOp):
        yield "logic", lambda n: ast.BoolOp(ast.And() if isinstance(n.op, ast.Or) else ast.Or(), n.values)
    if isinstance(node, ast.IfExp):
        yield "branch", lambda n: ast.IfExp(n.test, n.orelse, n.body)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "flag", lambda n: ast.Constant(not n.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield "off by one", lambda n: ast.Constant(n.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield "constant", lambda n: ast.Constant(2 * n.value + 1)
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield "name", lambda n: ast.Attribute(n.value, NAMES[n.attr], n.ctx)
    if isinstance(node, ast.Call):
        plain = [a for a in node.args[:2] if not isinstance(a, ast.Constant | ast.Starred)]
        if len(plain) == 2 and ast.unparse(node.func) not in ("isinstance", "issubclass"):
            yield "swapped", lambda n: ast.Call(n.func, [n.args[1], n.args[0], *n.args[2:]], n.keywords)
        if isinstance(node.func, ast.Attribute) and node.func.attr in DROPPED:
            yield "dropped", lambda n: n.func.value
        for i, keyword in enumerate(node.keywords):
            # The tests run on one device, where it makes no difference which is asked for.
            if keyword.arg and keyword.arg != "device":
                yield "left out", lambda n, i=i: ast.Call(n.func, n.args, n.keywords[:i] + n.keywords[i + 1 :])
    if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise) and not node.orelse:
        yield "unchecked", lambda n: ast.Pass()


def _places(tree: ast.Module) -> Iterator[tuple[str, tuple]]:
    """Every node whose value matters when the code runs, with the name of the function or class it stands in."""

    def below(node: ast.AST, path: tuple, where: str) -> Iterator[tuple[str, tuple]]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_params", "type_comment", "ctx", "op", "ops"):
                continue
            items = enumerate(value) if isinstance(value, list) else [(None, value)]
            for i, child in items:
                if not isinstance(child, ast.AST) or _is_idle(node, name, i, child):
                    continue
                inside = where
                if isinstance(child, ast.FunctionDef | ast.ClassDef):
                    inside = f"{where}.{child.name}".lstrip(".")
                here = (*path, (name, i))
                yield inside, here
                yield from below(child, here, inside)

    yield from below(tree, (), "")


def _is_idle(parent: ast.AST, field: str, index: int | None, child: ast.AST) -> bool:
    """Docstrings, the text of an error, decorators and imports: a fault there is no fault of what is computed."""
    if isinstance(child, ast.Import | ast.ImportFrom | ast.Raise | ast.JoinedStr):
        return True
    if field == "decorator_list":
        return True
    if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
        return True
    if isinstance(child, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in child.targets):
        return True
    return isinstance(parent, ast.Assign) and isinstance(child, ast.Subscript) and "Callable" in ast.unparse(child)


def _at(tree: ast.AST, path: tuple) -> ast.AST:
    for name, i in path:
        tree = getattr(tree, name) if i is None else getattr(tree, name)[i]
    return tree
