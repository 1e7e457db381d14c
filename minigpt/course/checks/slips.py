"""The search for one slip: which single change makes a learner's program right?

CHANGES is a table of common mix-ups: below each sentence are the changes that it
describes. Capital letters stand for any value (S and T for a slice, too); <-> goes both
ways. Whatever isn't a pattern is a function below: rules about numbers, names,
arguments, dimensions and lines, and about what the solution does and the program
doesn't. All are applied everywhere in the program. One that gives the right results on
all cases is the slip, if it looks like one: see is_odd.
"""

import ast
import contextlib
import dataclasses
import functools
import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

CHANGES = """
`{mine}` in `{inside}` stops one too early
    A:B -> A:B + 1
`{mine}` in `{inside}` stops one too late
    A:B -> A:B - 1
`{mine}` in `{inside}` starts one too early
    A:B -> A + 1:B
`{mine}` in `{inside}` starts one too late
    A:B -> A - 1:B
`{mine}` stops one too early
    range(A) -> range(A + 1)
    range(A, B) -> range(A, B + 1)
`{mine}` stops one too late
    range(A) -> range(A - 1)
    range(A, B) -> range(A, B - 1)
`{mine}` starts too early
    range(A) -> range(1, A)
`{mine}` in `{inside}` stops too early
    A:B -> A:
`{mine}` picks along the wrong dimension
    A[S] <-> A[:, S]
the index in `{mine}` is one too small
    A[B] -> A[B + 1]
    A[S, B] -> A[S, B + 1]
the index in `{mine}` is one too large
    A[B] -> A[B - 1]
    A[S, B] -> A[S, B - 1]
the index in `{mine}` is the wrong one
    A[B] -> A[-1]
    A[S, B] -> A[S, -1]
`{mine}` leaves out the case where both are equal
    A < B -> A <= B
    A > B -> A >= B
`{mine}` is also true when both are equal
    A <= B -> A < B
    A >= B -> A > B
`{mine}` compares the wrong way around
    A < B <-> A > B
    A <= B <-> A >= B
    A < B <-> A >= B
    A > B <-> A <= B
`{mine}` keeps one diagonal too many
    torch.tril(A) -> torch.tril(A, diagonal=-1)
    torch.triu(A) -> torch.triu(A, diagonal=1)
    A.tril() -> A.tril(diagonal=-1)
    A.triu() -> A.triu(diagonal=1)
there's one minus sign too many in `{mine}`
    -A -> A
`{mine}` swaps True and False
    ~A -> A
    not A -> A
`{mine}` adds where it should subtract
    A + B -> A - B
`{mine}` subtracts where it should add
    A - B -> A + B
`{mine}` multiplies where it should divide
    A * B -> A / B
`{mine}` divides where it should multiply
    A / B -> A * B
`{mine}` throws away what's after the decimal point
    A // B -> A / B
`{inside}` is a sum, but it should be a mean
    A.sum -> A.mean
`{inside}` is a mean, but it should be a sum
    A.mean -> A.sum
`{inside}` isn't the natural logarithm
    A.log2 <-> A.log
    A.log10 -> A.log
`{inside}` keeps the wrong triangle
    A.tril <-> A.triu
`{inside}` is true as soon as one is, but all of them have to be
    any -> all
    A.any -> A.all
`{inside}` asks for all, but one is enough
    all -> any
    A.all -> A.any
`{inside}` should start with ones
    A.zeros -> A.ones
`{inside}` should start with zeros
    A.ones -> A.zeros
two things are in the wrong order in `{mine}`
    A - B -> B - A
    A / B -> B / A
    A @ B -> B @ A
    A[S, T] -> A[T, S]
the steps of `{mine}` are in the wrong order
    A + B / C <-> (A + B) / C
there is too much in `{mine}`: `{more}`
    A + B -> A
    A + B -> B
    A - B -> A
    A - B -> B
    A * B -> A
    A * B -> B
    A / B -> A
    A.T -> A
    A.mT -> A
    A[S] -> A
"""
MODULES = "F", "torch", "nn", "math", "np"
HOLE = "hole__"  # stands for what something is done to
DIMENSIONS = "dim dims axis dim0 dim1".split()
DIM_FIRST = "cumsum softmax log_softmax sum mean amax argmax stack unsqueeze".split()
MISSING = {  # what the solution does to `…`, and this program doesn't
    r"… / .*(sqrt|\*\* 0\.5)": "`{mine}` isn't divided by a root",
    r"softmax": "a softmax is missing at `{mine}`",
    r"tril|triu|mask": "the mask is missing at `{mine}`",
    r"sqrt|\*\* 0\.5": "a square root is missing at `{mine}`",
    r"square|\*\* 2|pow": "a square is missing at `{mine}`",
    r"abs": "an absolute value is missing at `{mine}`",
    r"\blog": "a logarithm is missing at `{mine}`",
    r"\bexp": "an exponential is missing at `{mine}`",
    r"transpose|\.m?T\b|permute": "`{mine}` has to be transposed",
    r"clamp|min\(|max\(": "`{mine}` needs a limit that keeps it in its range",
    r"sum\(|mean\(": "a sum or a mean is missing at `{mine}`",
    r"^-": "a minus sign is missing before `{mine}`",
    r"^~|^not ": "`{mine}` swaps True and False",
    r"…\)? / |/ \(?…": "`{mine}` still has to be divided",
    r"…\)? \* |\* \(?…": "`{mine}` still has to be multiplied",
    r"…\)? @ |@ \(?…": "`{mine}` still has to be multiplied by a matrix",
    r"^… \+ 1$": "`{mine}` is one too small",
    r"^… - 1$": "`{mine}` is one too large",
    r"…\)? \+ |\+ \(?…": "something has to be added to `{mine}`",
    r"^… - ": "something has to be subtracted from `{mine}`",
    r"": "something is missing around `{mine}`",
}


@dataclass
class Slip:
    """One change: in a statement, `was` becomes `now`.

    says: what is wrong. tree: the program's. changes: (the node or list that holds
    something, under which name or number, the new node). inside: the expression around
    it. before, after: the statement's text, "" where there is none. at: its line.
    """

    says: str
    tree: ast.Module
    changes: list[tuple[Any, Any, Any]]
    inside: str
    was: str
    now: str
    before: str
    after: str
    at: int

    @functools.cached_property
    def program(self) -> str:
        """The program's text with this change."""
        with changed(self.changes):
            return ast.unparse(self.tree)

    def said(self) -> str:
        return self._said(self.says, self.was, self.now, self.inside)

    def said_of_the_new(self) -> str:
        """What would be wrong with the new program, if this one were right."""
        mine, right = self.now, self.was
        place = Place(parsed(mine), None, "", [], [], [], [])
        says = next((s for s, new in made_of(place) if text_of(new) == right), "")
        if not says and mine in right:
            says = missing(right.replace(mine, "…", 1))
        if not says and "too much" in self.says:
            says = "something is missing in `{mine}`"
        inside = self.inside.replace(right, mine) or self.after
        return self._said(says or self.says, mine, right, inside)

    @staticmethod
    def _said(says: str, mine: str, right: str, inside: str) -> str:
        inside = inside if len(inside) < 60 else mine
        return says.format(mine=mine, inside=inside, more=surplus(mine, right))


def surplus(long: str, short: str) -> str:
    """What a text has, and a shorter one doesn't."""
    if short and short in long:
        return long.replace(short, "…", 1)
    start = len(os.path.commonprefix([long, short]))
    end = len(os.path.commonprefix([long[start:][::-1], short[start:][::-1]]))
    return long[start : len(long) - end].strip(", ") or long


def missing(way: str) -> str:
    return next(says for pattern, says in MISSING.items() if re.search(pattern, way))


class Place(NamedTuple):
    """A node of a program, and what is around it.

    names: what its function is given and assigns. ways: what the solution does and
    this program does not, as texts with a HOLE: "hole__ / n". numbers, parts: literals
    of the solution, and what it reads from objects, like `key` of self.key.
    """

    node: Any
    owner: Any
    field: str
    names: Sequence[str]
    ways: Sequence[str]
    numbers: Sequence[float]
    parts: Sequence[str]


# Trees


@contextlib.contextmanager
def changed(changes: Sequence[tuple[Any, Any, Any]]) -> Generator[None]:
    """Inside, a tree has these changes; afterwards it is as it was."""
    before = [(holder, key, holder[key]) for holder, key, _ in changes]
    for holder, key, new in changes:
        holder[key] = new
    try:
        yield
    finally:
        for holder, key, old in before:
            holder[key] = old


def remade(node: Any, **changed: Any) -> Any:
    """A new node like it, with other fields; its children are shared."""
    return type(node)(**{**dict(ast.iter_fields(node)), **changed})


def text_of(node: Any) -> str:
    """A node as text: only the first line of a statement, "" for nothing."""
    if isinstance(node, ast.Pass | type(None)):
        return ""
    text = ast.unparse(node)
    if isinstance(node, ast.stmt):
        return next(line for line in text.splitlines() if line[:1] != "@")
    return text


def parsed(text: str) -> Any:
    """The node of an expression, or of a slice."""
    return ast.parse(f"_[{text}]", mode="eval").body.slice  # ty: ignore


def literal(node: Any) -> int | float | None:
    """A literal's number."""
    if isinstance(node, ast.Constant | ast.UnaryOp):
        try:
            value = ast.literal_eval(node)
        except ValueError:
            return None
        return value if type(value) in (int, float) else None
    return None


def called(node: Any) -> str:
    """The last name of what is called: "softmax" of F.softmax(...)."""
    func = node.func if isinstance(node, ast.Call) else None
    return getattr(func, "attr", getattr(func, "id", ""))


def is_value(node: Any) -> bool:
    """Whether a node is an expression that a program computes with."""
    if isinstance(node, ast.Name) and node.id in (*MODULES, "self"):
        return False
    stored = isinstance(getattr(node, "ctx", None), ast.Store)
    values = ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp
    return isinstance(node, values) and not stored


# Patterns


def table(text: str) -> Iterator[tuple[str, Any, Any]]:
    """(what is said, before, after) of a table of changes."""
    says = ""
    for line in text.strip().splitlines():
        if not line.startswith(" "):
            says = line
            continue
        before, arrow, after = re.split(" (<?->) ", line.strip())
        yield says, parsed(before), parsed(after)
        if arrow == "<->":
            yield says, parsed(after), parsed(before)


LETTERS = "A", "B", "C", "S", "T"
PATTERNS = list(table(CHANGES))


def fits(pattern: Any, node: Any, found: dict[str, Any]) -> bool:
    """Whether a node is like a pattern; `found` gets what its letters stand for."""
    if isinstance(pattern, ast.Name) and pattern.id in LETTERS:
        if isinstance(node, ast.Slice) and pattern.id not in "ST":
            return False
        earlier = found.setdefault(pattern.id, node)
        return earlier is node or text_of(earlier) == text_of(node)
    if isinstance(pattern, list):
        pairs = zip(pattern, node)
        return len(pattern) == len(node) and all(fits(*pair, found) for pair in pairs)
    if not isinstance(pattern, ast.AST):
        return pattern == node
    return type(pattern) is type(node) and all(
        fits(part, getattr(node, name), found)
        for name, part in ast.iter_fields(pattern)
        if name != "ctx"
    )


def filled(pattern: Any, found: Mapping[str, Any]) -> Any:
    """A pattern with what its letters stand for; LookupError where that's nothing."""
    if isinstance(pattern, list):
        return [filled(part, found) for part in pattern]
    if isinstance(pattern, ast.Name):
        return found.get(pattern.id, pattern)
    if not isinstance(pattern, ast.AST):
        return pattern
    fields = {name: filled(part, found) for name, part in ast.iter_fields(pattern)}
    if isinstance(pattern, ast.BinOp):
        if fields["left"] is None or fields["right"] is None:
            raise LookupError
        if literal(pattern.right) == 1:
            return one_more(
                fields["left"], 1 if isinstance(pattern.op, ast.Add) else -1
            )
    return type(pattern)(**fields)


def one_more(value: Any, by: int) -> Any:
    """An end or an index plus by, which is 1 or -1: of t - 1 and 1 it's t."""
    if isinstance(number := literal(value), int):
        return parsed(str(number + by))
    back = ast.Sub if by > 0 else ast.Add
    if isinstance(value, ast.BinOp) and literal(value.right) == 1:
        if isinstance(value.op, back):
            return value.left
    return ast.BinOp(value, ast.Add() if by > 0 else ast.Sub(), ast.Constant(1))


# Rules that aren't patterns: each yields what is said, and a new node

Rule = Callable[[Place], Iterator[tuple[str, Any]]]


def another_number(at: Place) -> Iterator[tuple[str, Any]]:
    """x.sum(dim=0): x.sum(dim=1), and x + 1: x + 2."""
    number, outside = literal(at.node), (ast.UnaryOp, ast.Slice, ast.Subscript)
    if number is None or isinstance(at.owner, outside):
        return
    if isinstance(at.owner, ast.Compare) and isinstance(at.owner.ops[0], ast.Eq):
        return  # another one would only make the branch dead
    if getattr(at.owner, "arg", "") in DIMENSIONS or called(at.owner) in DIM_FIRST:
        wrong = "dimension {mine} is the wrong one in `{inside}`"
        for other in ("-1", "0", "1", "2", "-2"):
            yield wrong, parsed(other)
        more = "one more dimension belongs beside {mine} in `{inside}`"
        yield more if number in (0, 1) else wrong, parsed("(0, 1)")
    else:
        near = (number + 1, number - 1) if isinstance(number, int) else ()
        for other in dict.fromkeys((*near, -number, *at.numbers)):
            yield "{mine} is the wrong number in `{inside}`", parsed(repr(other))


def another_name(at: Place) -> Iterator[tuple[str, Any]]:
    """x: y, and self.key: self.query."""
    node = at.node
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        if at.field != "func" and node.id in at.names:
            for other in at.names:
                new = ast.Name(other, ast.Load())
                yield "`{mine}` is the wrong variable in `{inside}`", new
    if isinstance(node, ast.Attribute) and node.attr in at.parts:
        for other in at.parts:
            new = remade(node, attr=other)
            yield "`{mine}` is the wrong one in `{inside}`", new


def another_order(at: Place) -> Iterator[tuple[str, Any]]:
    """f(x, y): f(y, x), and return x, y: return y, x."""
    field = "args" if isinstance(at.node, ast.Call) else "elts"
    if isinstance(at.node, ast.Call | ast.Tuple | ast.List) and at.field != "slice":
        parts = getattr(at.node, field)
        for i, j in itertools.combinations(range(len(parts[:5])), 2):
            order = [*parts]
            order[i], order[j] = parts[j], parts[i]
            new = remade(at.node, **{field: order})
            yield "two things are in the wrong order in `{mine}`", new


def a_call(at: Place) -> Iterator[tuple[str, Any]]:
    """x.sum(): x.sum(dim=-1), x.sum(dim=0): x.sum(dim=0, keepdim=True), x.f(): x."""
    if not isinstance(at.node, ast.Call):
        return
    given = {part.arg: part for part in at.node.keywords}
    of = getattr(at.node.func, "value", None)
    if called(at.node) in ("sum", "mean", "amax", "amin") and is_value(of):
        for how in () if at.node.args or given else DIMS:
            new = remade(at.node, keywords=parsed(f"f({how})").keywords)
            yield "`{mine}` combines all the numbers, so it needs a dim", new
    if given.keys() & {"dim", "axis"} and not given.keys() & {"keepdim", "keepdims"}:
        keywords = [*at.node.keywords, *parsed("f(keepdim=True)").keywords]
        new = remade(at.node, keywords=keywords)
        yield "`{mine}` loses a dimension, so it needs keepdim=True", new
    shorter = [of] if is_value(of) else at.node.args[:1] if not given else []
    for name in given:
        others = [part for part in at.node.keywords if part.arg != name]
        shorter.append(remade(at.node, keywords=others))
    for new in shorter:
        yield "there is too much in `{mine}`: `{more}`", new


DIMS = "dim=-1, keepdim=True", "dim=-1", "dim=0", "dim=1"


def something_is_missing(at: Place) -> Iterator[tuple[str, Any]]:
    """x: x / n, if that's what the solution does; and x: t + 1, for an end."""
    ends = isinstance(at.owner, ast.Slice) or called(at.owner) == "range"
    for way in at.ways:
        if HOLE in way and is_value(at.node) and at.field != "func":
            new = parsed(way.replace(HOLE, f"({text_of(at.node)})"))
            yield missing(way.replace(HOLE, "…")), new
        elif HOLE not in way and ends and isinstance(at.node, ast.Name):
            yield "`{mine}` is the wrong end in `{inside}`", parsed(way)


def a_line_too_many(at: Place) -> Iterator[tuple[str, Any]]:
    """n += 1: nothing."""
    text = isinstance(at.node, ast.Expr) and isinstance(at.node.value, ast.Constant)
    lines = ast.Assign, ast.AugAssign, ast.Expr, ast.Break, ast.If
    if isinstance(at.node, lines) and not text:
        yield "the line `{mine}` isn't needed", ast.Pass()


RULES: tuple[tuple[Rule, str, str], ...] = (  # each with an example
    (another_number, "x + 1", "x + 2"),
    (another_name, "x + y", "y + y"),
    (another_order, "f(x, y)", "f(y, x)"),
    (a_call, "x.sum()", "x.sum(dim=-1, keepdim=True)"),
    (something_is_missing, "x", "x / n"),
    (a_line_too_many, "n += 1", ""),
)


def made_of(at: Place) -> Iterator[tuple[str, Any]]:
    """What all patterns and rules make of a place: what is said, and the new node."""
    for says, before, after in PATTERNS if literal(at.node) is None else ():
        found: dict[str, Any] = {}
        if type(before) is type(at.node) and fits(before, at.node, found):
            try:
                new = filled(after, found)
            except LookupError:
                continue
            if isinstance(getattr(at.node, "ctx", None), ast.Store):
                if type(new) is not type(at.node):
                    continue
                new = remade(new, ctx=at.node.ctx)
            if is_value(at.node) <= is_value(new) or not isinstance(new, ast.Name):
                yield says, new
    for rule, _, _ in RULES:
        yield from rule(at)


# A program's slips


def slips(text: str, goal: str) -> list[Slip]:
    """All slips of a program, the likeliest first; goal: what it should do."""
    tree, right = ast.parse(text), ast.parse(goal)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    found = list(_within(tree, right))
    groups: dict[tuple, list[Slip]] = {}
    for slip in found:
        groups.setdefault((slip.says, slip.was, slip.now), []).append(slip)
    for same in groups.values():  # the same slip in up to four places
        if 1 < len(same) < 5 and "variable" not in same[0].says:
            every = [change for slip in same for change in slip.changes]
            found.append(dataclasses.replace(same[0], changes=every))
    wanted = set(_neighbors(goal))

    def likely(slip: Slip) -> tuple:
        """What brings it nearer to the solution's text comes first."""
        before, after = map(_neighbors, (slip.before, slip.after))
        gain = sum(pair in wanted for pair in after)
        gain -= sum(pair in wanted for pair in before)
        gain -= 0.5 * (len(after) - len(before))
        return gain <= 0, len(slip.changes) > 1, -gain

    first = {}
    for slip in sorted(found, key=likely):
        if slip.before != slip.after:
            first.setdefault((slip.at, slip.was, slip.after, len(slip.changes)), slip)
    return list(first.values())


def _neighbors(text: str) -> list[tuple[str, str]]:
    """The pairs of neighboring words and signs in a text."""
    return list(itertools.pairwise(re.findall(r"\w+|\S", text)))


def _within(tree: ast.Module, goal: ast.Module) -> Iterator[Slip]:
    """The slips at all places of a program."""
    ways, nodes = _lacks(tree, goal), list(ast.walk(goal))
    read = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    library = torch.Tensor, torch, F, nn, math, list, str
    parts = sorted(n for n in read if not any(hasattr(of, n) for of in library))
    numbers = {n for n in map(literal, nodes) if n is not None}

    def walk(owner: Any, line: Any, names: list[str], inside: str) -> Iterator[Slip]:
        if isinstance(owner, ast.FunctionDef):
            given = [a.arg for a in ast.walk(owner.args) if isinstance(a, ast.arg)]
            names = [*dict.fromkeys(given), *sorted(_stored(owner) - {*given})]
        for field, holder, key in _parts(owner):
            node = holder[key]
            own = node if isinstance(node, ast.stmt) else line
            was, before = text_of(node), text_of(own)
            place = Place(node, owner, field, names, ways, sorted(numbers), parts)
            for says, new in made_of(place):
                change = [(holder, key, new)]
                with changed(change):
                    now = text_of(new if own is node else own)
                texts = inside or before, was, text_of(new), before, now
                yield Slip(says, tree, change, *texts, own.lineno)
            whole = isinstance(node, ast.expr)
            whole = whole and not isinstance(node, ast.Tuple | ast.Slice)
            yield from walk(node, own, names, was if whole else inside)

    yield from walk(tree, tree, [], "")


def _parts(owner: Any) -> Iterator[tuple[str, Any, Any]]:
    """(field, what holds a node, its key); signatures and hints are left out."""
    fixed = "args", "decorator_list", "returns", "annotation"
    for field, value in ast.iter_fields(owner):
        if field in fixed and isinstance(owner, ast.FunctionDef | ast.AnnAssign):
            continue
        if isinstance(value, list):
            places = [(field, value, i) for i in range(len(value))]
        else:
            places = [(field, vars(owner), field)]
        yield from (p for p in places if isinstance(p[1][p[2]], ast.AST))


def _lacks(mine: ast.Module, right: ast.Module) -> list[str]:
    """What the solution does more often, as texts: "hole__ / n", "-hole__", "t + 1"."""
    names = {n.id for n in ast.walk(mine) if isinstance(n, ast.Name)}
    names |= {n.arg for n in ast.walk(mine) if isinstance(n, ast.arg)}
    names |= {HOLE, *MODULES, "float", "len", "sum"}
    own, theirs = Counter(_ways(mine)), Counter(_ways(right))

    def is_known(way: str) -> bool:
        used = {n.id for n in ast.walk(parsed(way)) if isinstance(n, ast.Name)}
        return used <= names and len(way) < 40

    return [w for w in theirs if (w[0] in "-~" or own[w] < theirs[w]) and is_known(w)]


def _ways(tree: ast.Module) -> Iterator[str]:
    """What a program does to its expressions: for `-x.sum()`, that's `-hole__`, ..."""
    gap = ast.Name(HOLE, ast.Load())
    nodes: Iterator[Any] = ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.BinOp):
            yield text_of(remade(node, left=gap))
            if literal(node.right) is not None:
                yield text_of(node)
        elif isinstance(node, ast.UnaryOp) and literal(node) is None:
            yield text_of(remade(node, operand=gap))
        elif isinstance(node, ast.Call) and is_value(getattr(node.func, "value", 0)):
            yield text_of(remade(node, func=remade(node.func, value=gap)))
        elif isinstance(node, ast.Call) and node.args and is_value(node.args[0]):
            yield text_of(remade(node, args=[gap, *node.args[1:]]))


def _stored(tree: ast.AST) -> set[str]:
    """The names that a program assigns."""
    names = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


# Which changes look like a slip


def is_odd(slip: Slip, text: str, right: str) -> bool:
    """Whether a change that gives the right results does so by accident.

    It is odd if it cancels itself, like n / n, does a thing twice, like
    .reshape(...).view(...), or leads away from what the solution does.
    """
    nodes: list[Any] = list(ast.walk(ast.parse(slip.program)))
    for node in nodes:
        if isinstance(node, ast.BinOp) and text_of(node.left) == text_of(node.right):
            if isinstance(node.op, ast.Div | ast.Sub | ast.FloorDiv):
                if text_of(node) not in text:
                    return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            inner = called(node.func.value)
            if {inner, called(node)} <= SHAPERS:
                if text_of(node) not in f"{text}{right}":
                    return True
    before, after, ours = (_steps(ast.parse(t)) for t in (text, slip.program, right))
    return any(
        abs(after[step] - ours[step]) > abs(before[step] - ours[step])
        for step in {*before, *after}
    )


SHAPERS = {"reshape", "view", "flatten", "squeeze", "unsqueeze", "contiguous"}
ALIKE = {"T": "transpose", "mT": "transpose", "permute": "transpose", "sqrt": "Pow"}
ALIKE |= {"pow": "Pow", "square": "Pow", "div": "Div", "mul": "Mult", "norm": "Pow"}
ALIKE |= {"Sub": "Add"}


def _steps(tree: ast.AST) -> Counter:
    """How often a program does each thing: calls, transpositions, and operations."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and literal(node.right) is None:
            names.append(type(node.op).__name__)
        elif isinstance(node, ast.Call):
            names.append(called(node))
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            names.append(node.attr)
    return Counter(ALIKE.get(name, name) for name in names)
