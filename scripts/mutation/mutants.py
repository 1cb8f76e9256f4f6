"""The mutants of one module: small changes of its source, each of which some test should notice.

Nothing is changed in docstrings, annotations, decorators, text (f-strings too), log calls, and what
an error is made of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
"""The boundary first, then the opposite."""
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_LOGS = frozenset({"log", "_log", "logger", "logging"})
_WIDTH = 100
_BODIES = ("body", "orelse", "handlers", "finalbody", "cases")


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """``source[start:end]``, in bytes, becomes ``new``.

    ``line``: where that begins, counted from 1. ``first`` and ``last``: the lines of the statement
    that it is in, of a compound one without its blocks; a test that runs none of these lines cannot
    notice.
    """

    start: int
    end: int
    new: str
    old: str
    line: int
    first: int
    last: int

    @property
    def key(self) -> str:
        """Names it among those of one source."""
        return f"{self.start}-{self.end} {self.new}"

    def __str__(self) -> str:
        """``line: old → new``, in one line."""
        return f"{self.line}: {_shown(self.old)} → {_shown(self.new)}"

    def applied(self, source: str) -> str:
        """Return the source with this change."""
        data = source.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()


def mutants_of(source: str, *, with_text: bool = False) -> list[Mutant]:
    """Return all mutants that can be compiled, in the order of their places.

    ``with_text``: also change text, except docstrings, logs and errors.

    SyntaxError: it is no source.
    """
    found = sorted(set(_Finder(source, with_text=with_text).of_block(ast.parse(source).body)))
    return [mutant for mutant in found if _compiles(mutant.applied(source))]


def _compiles(source: str) -> bool:
    try:
        compile(source, "<mutant>", "exec")
    except SyntaxError:
        return False
    return True


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH // 2]} … {line[-_WIDTH // 4 :]}"


class _Finder:
    """Looks through the statements of one source."""

    def __init__(self, source: str, *, with_text: bool) -> None:
        self._with_text = with_text
        self._data = source.encode()
        self._starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._first = self._last = 1

    def of_block(self, block: list[ast.stmt]) -> Iterator[Mutant]:
        """Yield the mutants of these statements and of what is in them."""
        for statement in block:
            yield from self._of_statement(statement)

    def _of_statement(self, node: ast.stmt) -> Iterator[Mutant]:
        if isinstance(node, ast.ClassDef):
            yield from self.of_block(node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._stand_at(node, node.body)
            yield from self._within(node.args)
            yield from self.of_block(node.body)
        elif isinstance(node, ast.Import | ast.ImportFrom) or _is_log(node) or _is_guard(node):
            return
        else:
            yield from self._of_plain(node)

    def _stand_at(self, node: ast.stmt | ast.excepthandler, body: list[ast.stmt]) -> None:
        self._first = node.lineno
        self._last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or 0

    def _of_plain(self, node: ast.stmt) -> Iterator[Mutant]:
        self._stand_at(node, getattr(node, "body", []))
        yield from self._removed(node)
        if isinstance(node, ast.Raise):
            return
        if isinstance(node, ast.If | ast.While):
            yield from self._of_condition(node)
        blocks = [child for name in _BODIES for child in getattr(node, name, [])]
        yield from self._within(node, blocks)
        for child in blocks:
            if isinstance(child, ast.stmt):
                yield from self._of_statement(child)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                yield from self.of_block(child.body)

    def _of_condition(self, node: ast.If | ast.While) -> Iterator[Mutant]:
        if not isinstance(node.test, ast.Constant):
            yield self._mutant(node.test, "False")
            if isinstance(node, ast.If):
                yield self._mutant(node.test, "True")

    def _removed(self, node: ast.stmt) -> Iterator[Mutant]:
        """What becomes of the whole statement."""
        match node:
            case ast.Expr(ast.Yield() | ast.YieldFrom()):
                yield self._mutant(node, "yield from ()")
            case ast.Expr(ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
                yield self._mutant(node, "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield self._mutant(node, "pass")
            case ast.AnnAssign(target=ast.Attribute(), value=ast.expr()):
                yield self._mutant(node, "pass")
            case ast.AugAssign():
                yield self._mutant(node, "pass")
                yield from self._of_sum(node)
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self._mutant(value, "None")
            case ast.Break():
                yield self._mutant(node, "continue")
            case ast.Continue():
                yield self._mutant(node, "break")

    def _within(self, node: ast.AST, but: list[ast.AST] | None = None) -> Iterator[Mutant]:
        """The mutants of the expressions below ``node``, without those of its blocks."""
        for child in ast.iter_child_nodes(node):
            if child in (but or []):
                continue
            if self._with_text and isinstance(child, ast.expr) and _is_wording(node, child):
                yield self._mutant(child, '"XX"')
            if _is_left_alone(node, child):
                continue
            if isinstance(child, ast.expr):
                yield from self._of_expression(node, child)
            yield from self._within(child)

    def _of_expression(self, parent: ast.AST, node: ast.expr) -> Iterator[Mutant]:
        match node:
            case ast.Compare():
                yield from self._of_comparison(parent, node)
            case ast.BoolOp():
                yield from self._of_alternatives(node)
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                yield self._mutant(node, f"({ast.unparse(node.operand)})")
            case ast.BinOp():
                yield from self._of_sum(node)
            case ast.Constant():
                yield from self._of_constant(node)
            case ast.IfExp():
                yield self._mutant(node.test, f"(not ({ast.unparse(node.test)}))")
            case ast.Call():
                named = [keyword for keyword in node.keywords if keyword.arg is not None]
                yield from (self._mutant(keyword, "**{}") for keyword in named)
        if isinstance(parent, ast.comprehension) and node in parent.ifs:
            yield self._mutant(node, "True")

    def _of_constant(self, node: ast.Constant) -> Iterator[Mutant]:
        if isinstance(node.value, bool):
            yield self._mutant(node, str(not node.value))
        elif isinstance(node.value, int | float):
            yield self._mutant(node, repr(node.value + 1))

    def _of_comparison(self, parent: ast.AST, node: ast.Compare) -> Iterator[Mutant]:
        is_whole_test = isinstance(parent, ast.If | ast.While | ast.IfExp) and parent.test is node
        for place, operator in enumerate(node.ops):
            others = _COMPARED[type(operator)]
            # As a whole condition, True and False stand for the opposite.
            for other in others[:-1] if is_whole_test and len(node.ops) == 1 else others:
                ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                changed = ast.Compare(node.left, ops, node.comparators)
                yield self._mutant(node, f"({ast.unparse(changed)})")

    def _of_alternatives(self, node: ast.BoolOp) -> Iterator[Mutant]:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield self._mutant(node, f"({ast.unparse(ast.BoolOp(other, node.values))})")
        for place in range(len(node.values)):
            rest = node.values[:place] + node.values[place + 1 :]
            left = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            yield self._mutant(node, f"({ast.unparse(left)})")

    def _of_sum(self, node: ast.BinOp | ast.AugAssign) -> Iterator[Mutant]:
        other = _COMPUTED.get(type(node.op))
        if other is None:
            return
        if isinstance(node, ast.AugAssign):
            changed: ast.AST = ast.AugAssign(node.target, other(), node.value)
            yield self._mutant(node, ast.unparse(changed))
        elif not any(_is_text(side) or _is_type(side) for side in (node.left, node.right)):
            changed = ast.BinOp(node.left, other(), node.right)
            yield self._mutant(node, f"({ast.unparse(changed)})")

    def _mutant(self, node: ast.stmt | ast.expr | ast.keyword, new: str) -> Mutant:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        old = self._data[start:end].decode()
        return Mutant(start, end, new, old, node.lineno, self._first, self._last)


def _is_left_alone(node: ast.AST, child: ast.AST) -> bool:
    """Whether ``child`` of ``node`` is text, a type, or a statement, which has its own turn."""
    if isinstance(child, ast.JoinedStr | ast.stmt | ast.pattern):
        return True
    if isinstance(node, ast.arg | ast.AnnAssign):
        return child is node.annotation
    return isinstance(node, ast.Subscript) and isinstance(child, ast.Tuple)


def _is_type(node: ast.expr) -> bool:
    """Whether it is the name of a class, as in a union."""
    return isinstance(node, ast.Name) and node.id[:1].isupper() and not node.id.isupper()


def _is_text(node: ast.expr) -> bool:
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_string or isinstance(node, ast.JoinedStr)


def _is_wording(node: ast.AST, child: ast.expr) -> bool:
    """Return whether ``child`` of ``node`` is text that the product writes."""
    if isinstance(node, ast.Expr) or (
        isinstance(node, ast.arg | ast.AnnAssign) and child is node.annotation
    ):
        return False
    is_string = isinstance(child, ast.Constant) and isinstance(child.value, str) and child.value
    return bool(is_string) or isinstance(child, ast.JoinedStr)


def _is_log(node: ast.stmt) -> bool:
    """Whether the statement says something in a log, and nothing else."""
    match node:
        case ast.Expr(ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name.lower() in _LOGS
    return False


def _is_guard(node: ast.stmt) -> bool:
    """Whether the block is for type checkers, or for a module that is a program."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return False
