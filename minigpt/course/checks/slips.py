"""All slips of the pen that can be made in a program, each as one change of its tree.

Most are made within a line, by the rules of rules.py. Of an answer, what the solution
does and the answer does not may be put in, and lines may be put in or moved.
mutations.py makes programs of the slips.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from minigpt.course.checks.reading import copied
from minigpt.course.checks.rules import (
    MODULES,
    Change,
    called,
    changes,
    is_whole,
    literal,
    parsed,
    remade,
    source_of,
)

RANKS = {  # the likeliest first
    Change.DIM: 0,
    Change.COMPARISON: 0,
    Change.LINE: 0,
    Change.SIGN: 1,
    Change.OPERATION: 1,
    Change.INDEX: 1,
    Change.PART: 1,
    Change.ORDER: 1,
    Change.STEPS: 2,
    Change.NUMBER: 2,
    Change.FUNCTION: 2,
    Change.NAME: 6,
}
LINE_PUT_IN, LINE_MOVED, PUT_IN, REPLACED = 4, 5, 9, 10  # ranks
HOLE = "hole__"  # the name that stands for what something is done to


@dataclass(frozen=True)
class Slip:
    """One change of a tree: owner.field (or owner.field[at]) becomes `new`.

    rank: the likeliest 0. put_in: whether `new` has what only the other program does.
    was, now: of whole lines, for which `new` is a block, what is moved, and where to.
    """

    change: Change
    owner: ast.AST
    field: str
    at: int | None
    new: Any
    rank: int
    put_in: bool = False
    was: str = ""
    now: str = ""

    @property
    def of_lines(self) -> bool:
        """Whether a whole block is replaced, to put in a line or to move one."""
        return isinstance(self.new, list)

    @property
    def held(self) -> Any:
        """What stands in its place."""
        held = getattr(self.owner, self.field)
        return held if self.at is None else held[self.at]

    def texts(self) -> tuple[str, str]:
        """What stands in its place, and what it puts there."""
        if self.of_lines:
            return self.was, self.now
        return _text(self.held, self.owner), _text(self.new, self.owner)

    def put(self) -> "Slip":
        """Make it in its tree; the slip that undoes it."""
        old = self.held
        if self.at is None:
            setattr(self.owner, self.field, self.new)
        else:
            getattr(self.owner, self.field)[self.at] = self.new
        return replace(self, new=old)


def all_slips(tree: ast.AST, goal: ast.AST) -> Iterator[Slip]:
    """Every slip that can be made in a tree; goal: the one that it should be."""
    yield from _inside(tree, _lacks(tree, goal), ())
    yield from _lines_put_in(tree, goal)
    if isinstance(goal, ast.Module) and goal.body:  # it is an answer
        yield from _lines_moved(tree)


def head(node: ast.stmt) -> str:
    """A statement's first line, without its decorators."""
    return next(line for line in source_of(node).splitlines() if line[:1] != "@")


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
    """What `right` does more often than `mine`: texts, with a HOLE for what it does
    that to. Only names that `mine` has, too, are in them."""
    known = {n.id for n in ast.walk(mine) if isinstance(n, ast.Name)}
    known |= {n.arg for n in ast.walk(mine) if isinstance(n, ast.arg)}
    known |= {HOLE, *MODULES, "float", "len", "sum"}
    own, theirs = Counter(_ways(mine)), Counter(_ways(right))
    found = []
    for way, count in theirs.items():
        names = {n.id for n in ast.walk(parsed(way)) if isinstance(n, ast.Name)}
        often = way[0] in "-~" or HOLE not in way  # a sign may be missing anywhere
        if (often or own[way] < count) and names <= known and len(way) < 40:
            found.append(way)
    return found


def _ways(tree: ast.AST) -> Iterator[str]:
    """What a program does to its expressions, as texts."""
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


def _put_in(node: ast.AST, text: str) -> tuple[Change, Any, int, bool]:
    """(change, new node, rank, whether it is put in) of a text that is lacking."""
    new = parsed(text.replace(HOLE, f"({source_of(node)})"))
    if text[0].isdigit():
        return Change.NUMBER, new, RANKS[Change.NUMBER], False
    if text[0] in "-~":
        return Change.SIGN, new, 1, False
    if HOLE in text:
        return Change.PART, new, PUT_IN, True
    index = isinstance(node, ast.Name)
    return (Change.INDEX if index else Change.NUMBER), new, REPLACED - index, True


def _may_hold(node: ast.AST, owner: ast.AST, text: str) -> bool:
    """Whether a text that is lacking may be put round a node, or in its place."""
    if HOLE in text:
        return is_whole(node)
    if isinstance(node, ast.Name):  # `T` where `t + 1` belongs
        ends = isinstance(owner, ast.Slice) or called(owner) == "range"
        whole = parsed(text)
        return (
            ends and isinstance(whole, ast.BinOp) and literal(whole.right) is not None
        )
    return bool(literal(node))


# Inside of lines


def _inside(
    owner: ast.AST, lacks: Sequence[str], names: Sequence[str]
) -> Iterator[Slip]:
    """All slips in a tree but those of _lines_put_in and _lines_moved.

    lacks: texts of what may be put around expressions (HOLE), or in a number's place.
    names: what its function is given and assigns.
    """
    if isinstance(owner, ast.FunctionDef):
        given = [a.arg for a in ast.walk(owner.args) if isinstance(a, ast.arg)]
        names = list(dict.fromkeys(given + _stored(owner.body)))
    for field, value in ast.iter_fields(owner):
        if field in ("args", "decorator_list", "returns", "annotation"):
            if isinstance(owner, (ast.FunctionDef, ast.AnnAssign)):
                continue  # signatures and annotations stay
        nodes = value if isinstance(value, list) else [value]
        for i, node in enumerate(nodes):
            if not isinstance(node, ast.AST):
                continue
            at = i if nodes is value else None
            for change, new in changes(node, owner, names):
                yield Slip(change, owner, field, at, new, RANKS[change])
            for text in lacks if field != "func" else ():
                if _may_hold(node, owner, text):
                    change, new, rank, put_in = _put_in(node, text)
                    yield Slip(change, owner, field, at, new, rank, put_in)
            yield from _inside(node, lacks, names)


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
                body = [*block.body[:i], copied(line), *block.body[i:]]
                how = Change.LINE, block, "body", None, body, LINE_PUT_IN
                yield Slip(*how, put_in=True, now=text)


def _lines_moved(tree: ast.AST) -> Iterator[Slip]:
    """Lines moved within their block, into a loop behind them, or out of one."""
    for block in _blocks(tree):
        for change, line, body, where in _moves(block.body):
            how = change, block, "body", None, body, LINE_MOVED
            yield Slip(*how, was=head(line), now=where)


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
