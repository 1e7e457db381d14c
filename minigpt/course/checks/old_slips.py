"""All slips of the pen that can be made in a program, each as one change of its tree.

Most are made within a line, by the rules of rules.py. Of an answer, what the solution
does and the answer does not may be put in, and lines may be put in or moved.
mutations.py makes programs of the slips.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from minigpt.course.checks.rules import (
    LINE_MOVED,
    LINE_PUT_IN,
    PUT_IN,
    RANKS,
    REPLACED,
    Change,
    changes,
)
from minigpt.course.checks.trees import (
    MODULES,
    called,
    head,
    is_whole,
    literal,
    parsed,
    remade,
    replaced,
    source_of,
)

HOLE = "hole__"  # the name that stands for what something is done to


@dataclass(frozen=True)
class Slip:
    """One change of a program's tree: the node `old` becomes the node `new`.

    change: its kind. rank: 0 for the likeliest. was, now: what is replaced, and by
    what, as texts, "" for nothing; of a line that is moved, the line and where to.
    line: the statement that holds it, None for a whole line that is put in or moved.
    at: that line's number, 0 for one that is put in. inside: the expression around
    it, as a text. put_in: whether `new` has what only the other program does.
    """

    change: Change
    old: ast.AST
    new: ast.AST
    rank: int
    was: str
    now: str
    line: ast.stmt | None = None
    at: int = 0
    inside: str = ""
    put_in: bool = False

    @property
    def of_whole_line(self) -> bool:
        """Whether a line is put in or moved, rather than changed."""
        return self.line is None

    def line_after(self, swaps: Mapping[int, ast.AST] = {}) -> str:
        """The line that it changes; with swaps, after them. "" for more than a line."""
        if self.line is None:
            return self.was or self.now
        line = replaced(self.line, swaps)
        no_line = isinstance(line, (ast.FunctionDef, ast.ClassDef, ast.Pass))
        return "" if no_line else head(line)


def all_slips(tree: ast.Module, goal: ast.Module) -> Iterator[Slip]:
    """Every slip that can be made in a tree; goal: the one that it should be."""
    yield from _within_lines(tree, None, _lacks(tree, goal))
    yield from _lines_put_in(tree, goal)
    if goal.body:  # it is an answer
        yield from _lines_moved(tree)


def _text(node: ast.AST, owner: ast.AST) -> str:
    """A node as a text, with its keyword; "" for nothing."""
    name = f"{owner.arg}=" if isinstance(owner, ast.keyword) else ""
    text = head(node) if isinstance(node, ast.stmt) else source_of(node)
    return "" if isinstance(node, ast.Pass) else name + text


def _stored(lines: Sequence[ast.AST]) -> list[str]:
    """The names that some lines assign."""
    nodes = (node for line in lines for node in ast.walk(line))
    names = (n for n in nodes if isinstance(n, ast.Name))
    return [n.id for n in names if isinstance(n.ctx, ast.Store)]


# What the other program does, and this one does not


def _lacks(mine: ast.AST, right: ast.AST) -> list[str]:
    """What `right` does more often than `mine`, as texts: "hole__ / n", "-hole__", "t".

    The HOLE stands for what that is done to. Only names that `mine` has are in them.
    """
    names = {n.id for n in ast.walk(mine) if isinstance(n, ast.Name)}
    names |= {n.arg for n in ast.walk(mine) if isinstance(n, ast.arg)}
    names |= {HOLE, *MODULES, "float", "len", "sum"}
    own, theirs = Counter(_ways(mine)), Counter(_ways(right))

    def lacks(way: str) -> bool:
        if way[0] in "-~" or HOLE not in way:  # a sign may be missing twice
            return True
        return own[way] < theirs[way]

    def fits(way: str) -> bool:
        used = {n.id for n in ast.walk(parsed(way)) if isinstance(n, ast.Name)}
        return used <= names and len(way) < 40

    return [way for way in theirs if lacks(way) and fits(way)]


def _ways(tree: ast.AST) -> Iterator[str]:
    """What a program does to its expressions, as texts.

    Of `-x.sum() / n` these are `-x.sum() / n`, `hole__ / n`, `-hole__`, `hole__.sum()`,
    `x` and `n`, among others.
    """
    gap = ast.Name(HOLE)
    for node in ast.walk(tree):
        if is_whole(node) or isinstance(node, ast.Constant):
            yield ast.unparse(node)
        if isinstance(node, ast.BinOp):
            yield ast.unparse(remade(node, left=gap))
        elif isinstance(node, ast.UnaryOp) and literal(node) is None:  # no -1
            yield ast.unparse(remade(node, operand=gap))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if is_whole(node.func.value):
                yield ast.unparse(remade(node, func=remade(node.func, value=gap)))
            elif node.args:
                yield ast.unparse(remade(node, args=[gap, *node.args[1:]]))


def _may_hold(node: ast.AST, owner: ast.AST, way: str) -> bool:
    """Whether a way may be put round a node (it has a HOLE), or in its place."""
    if HOLE in way:
        return is_whole(node)
    if isinstance(node, ast.Name):  # `T` where `t + 1` belongs, in x[:T] or range(T)
        end = isinstance(owner, ast.Slice) or called(owner) == "range"
        sum_of = parsed(way)
        return (
            end and isinstance(sum_of, ast.BinOp) and literal(sum_of.right) is not None
        )
    return bool(literal(node))  # not in the place of a 0: too much would fit


class _New(NamedTuple):
    """What may stand in the place of a node; see Slip."""

    change: Change
    node: ast.AST
    rank: int
    put_in: bool = False


def _put_in(node: ast.AST, way: str) -> _New:
    """A way put round a node or in its place: "hole__ / n" makes `x / n` of `x`."""
    new = parsed(way.replace(HOLE, f"({source_of(node)})"))
    if way[0].isdigit():
        return _New(Change.NUMBER, new, RANKS[Change.NUMBER])
    if way[0] in "-~":
        return _New(Change.SIGN, new, RANKS[Change.SIGN])
    if HOLE in way:
        return _New(Change.PART, new, PUT_IN, True)
    if isinstance(node, ast.Name):
        return _New(Change.INDEX, new, PUT_IN, True)
    return _New(Change.NUMBER, new, REPLACED, True)


# Within lines


def _within_lines(
    owner: ast.AST,
    line: ast.stmt | None,
    lacks: Sequence[str],
    names: Sequence[str] = (),
    around: str = "",
) -> Iterator[Slip]:
    """All slips in a part of a tree but those of _lines_put_in and _lines_moved.

    line: the statement that holds it. lacks: see _lacks. names: what its function is
    given and assigns. around: of a part of an index, as `:t`, the whole: `x[:, :t]`.
    """
    if isinstance(owner, ast.stmt):
        line = owner
    if isinstance(owner, ast.FunctionDef):
        given = [a.arg for a in ast.walk(owner.args) if isinstance(a, ast.arg)]
        names = list(dict.fromkeys(given + _stored(owner.body)))
    inside = around or (ast.unparse(owner) if isinstance(owner, ast.expr) else "")
    for field, node in _parts(owner):
        here = node if isinstance(node, ast.stmt) else line
        at = getattr(node, "lineno", getattr(line, "lineno", 0))
        was = _text(node, owner)
        ways = [] if field == "func" else lacks
        fits = [way for way in ways if _may_hold(node, owner, way)]
        for change, new, rank, put_in in _changes_at(node, owner, fits, names):
            now = _text(new, owner)
            yield Slip(change, node, new, rank, was, now, here, at, inside, put_in)
        index = isinstance(node, (ast.Tuple, ast.Slice))
        whole = inside if index and (around or field == "slice") else ""
        yield from _within_lines(node, line, lacks, names, whole)


def _parts(owner: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """(field, node) for what a node has; signatures and annotations are left out."""
    fixed = "args", "decorator_list", "returns", "annotation"
    for field, value in ast.iter_fields(owner):
        if field in fixed and isinstance(owner, (ast.FunctionDef, ast.AnnAssign)):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield field, node


def _changes_at(
    node: ast.AST, owner: ast.AST, ways: Sequence[str], names: Sequence[str]
) -> Iterator[_New]:
    """All that may stand in the place of one node; ways: what may be put in there."""
    for change, new in changes(node, owner, names):
        yield _New(change, new, RANKS[change])
    for way in ways:
        yield _put_in(node, way)


# Whole lines


def _blocks(tree: ast.AST) -> list[Any]:
    return [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.For))]


def _lines_put_in(tree: ast.AST, goal: ast.AST) -> Iterator[Slip]:
    """Lines of `goal` put into a tree that has them not."""
    simple = ast.Expr, ast.Assign, ast.AugAssign
    own, ours = (
        Counter(head(n) for n in ast.walk(part) if isinstance(n, simple))
        for part in (tree, goal)
    )
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {"self"}
    names |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    assigned = set(_stored([tree]))
    for line in (n for n in ast.walk(goal) if isinstance(n, simple)):
        text = head(line)
        used = {n.id for n in ast.walk(line) if isinstance(n, ast.Name)}
        docstring = isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
        loads = {n.id for n in ast.walk(line.value) if isinstance(n, ast.Name)}
        anew = set(_stored([line])) & assigned - loads  # it has a value already
        known = used <= names | {*MODULES, "float"}
        if own[text] >= ours[text] or docstring or anew or not known:
            continue
        for block in _blocks(tree):
            for i in range(len(block.body) + 1):
                body = [*block.body[:i], replaced(line), *block.body[i:]]
                new = remade(block, body=body)
                rank = LINE_PUT_IN
                yield Slip(Change.LINE, block, new, rank, "", text, put_in=True)


def _lines_moved(tree: ast.AST) -> Iterator[Slip]:
    """Lines moved within their block, into a loop behind them, or out of one."""
    for block in _blocks(tree):
        for change, line, body, where in _moves(block.body):
            new, at = remade(block, body=body), line.lineno
            yield Slip(change, block, new, LINE_MOVED, head(line), where, at=at)


def _moves(lines: list[Any]) -> Iterator[tuple[Change, ast.stmt, list, str]]:
    """Yield (change, the line that is moved, the new block, where it then stands)."""
    simple = ast.Assign, ast.Expr
    for i, line in enumerate(lines):
        rest = lines[:i] + lines[i + 1 :]
        for j in range(len(rest) + 1) if isinstance(line, ast.Expr) else ():
            if j != i:
                behind = head(rest[j - 1]) if j else ""
                yield Change.PLACE, line, [*rest[:j], line, *rest[j:]], behind
        for k, one in enumerate(lines[:i]) if isinstance(line, ast.For) else ():
            if isinstance(one, simple):
                loop = remade(line, body=[one, *line.body])
                body = [*lines[:k], *lines[k + 1 : i], loop, *lines[i + 1 :]]
                yield Change.INTO_LOOP, one, body, head(line)
        for k, one in enumerate(line.body) if isinstance(line, ast.For) else ():
            if isinstance(one, simple) and len(line.body) > 1:
                loop = remade(line, body=line.body[:k] + line.body[k + 1 :])
                body = [*lines[:i], one, loop, *lines[i + 1 :]]
                yield Change.OUT_OF_LOOP, one, body, head(line)
