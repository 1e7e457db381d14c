"""Programs with one place changed, as learners change them by a slip of the pen.

Made in the solution, such a change is a wrong program: one that gives what an answer
gives says what its mistake is, though nobody listed it (mutation testing: DeMillo,
Lipton and Sayward, 1978, turned round). Made in an answer, it may mend it.
"""

import ast
import contextlib
import enum
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import CodeType
from typing import Any, NamedTuple

from minigpt.course.checks.reading import copied


class Change(enum.Enum):
    """What kind of place it is that was changed."""

    DIM = enum.auto()
    INDEX = enum.auto()
    NUMBER = enum.auto()
    SIGN = enum.auto()
    OPERATION = enum.auto()
    COMPARISON = enum.auto()
    FUNCTION = enum.auto()
    ORDER = enum.auto()
    PART = enum.auto()  # of an expression: left out, or put in
    NAME = enum.auto()
    LINE = enum.auto()
    PLACE = enum.auto()  # of a line: `was` belongs behind `now`


class Mutant(NamedTuple):
    """A program with one place changed, or with all places that are alike.

    was, now: what was replaced, and by what; "" for nothing. inside: the expression
    that has it. line: its line as it now stands; at: that line's number. times: the
    number of places. code: to exec.
    """

    change: Change
    was: str
    now: str
    inside: str
    line: str
    at: int
    times: int
    code: CodeType


class _Slip(NamedTuple):
    """One change of a tree: owner.field (or owner.field[at]) becomes `new`."""

    likely: int  # 0 first; 9 puts in what the other program has
    change: Change
    owner: ast.AST
    field: str
    at: int | None
    new: Any
    was: str | None = None  # where no text can be made of what stands there
    now: str | None = None

    def texts(self) -> tuple[str, str]:
        """What stands in its place, and what it puts there."""
        if self.was is not None:
            return self.was, self.now
        return _text(self.held, self.owner), _text(self.new, self.owner)

    @property
    def held(self):
        """What stands in its place."""
        held = getattr(self.owner, self.field)
        return held if self.at is None else held[self.at]

    def put(self) -> "_Slip":
        """Make it in its tree; the slip that undoes it."""
        old = self.held
        if self.at is None:
            setattr(self.owner, self.field, self.new)
        else:
            getattr(self.owner, self.field)[self.at] = self.new
        return self._replace(new=old)


def mutants(source: str, right: str = "") -> Iterator[Mutant]:
    """Yield a Mutant of a program's text for each slip, the likeliest first.

    The same slip wherever the same thing stands comes last. Slips that cannot be
    compiled are left out. right: the text of a program that this one should be. What
    brings it nearer comes first, and lines that stand there stay as they are.
    """
    tree, goal, alike = ast.parse(source), ast.parse(right), {}
    slips = [*_slips(tree, _lacks(tree, goal)), *_of_lines(tree, goal)]
    found = sorted(slips, key=lambda slip: slip.likely)
    statement = _statements(tree)
    for slip in found:
        for new in slip.new if isinstance(slip.new, list) else [slip.new]:
            ast.fix_missing_locations(new)
        where = id(slip) if slip.was is not None else 0  # lines are put in once
        alike.setdefault((slip.change, *slip.texts(), where), []).append(slip)
    some = alike.values()
    several = (s for s in some if len(s) == 2 or s[1:] and s[0].likely < 9)
    groups = [*([s] for s in found), *several]
    if right:
        groups = _nearer(groups, statement, goal)
    for some in groups:
        slip, undo = some[0], []
        was, now = slip.texts()
        at = getattr(statement.get(id(slip.owner)), "lineno", 0)
        at = getattr(slip.held, "lineno", at)
        if slip.was is not None:  # the line that is moved, if any
            moved = (n.lineno for n in slip.new if _head(n) == was)
            at = next(moved, 0)
        inside = ast.unparse(slip.owner) if isinstance(slip.owner, ast.expr) else ""
        try:
            undo = [slip.put() for slip in some]
            code = compile(tree, "<mutant>", "exec")
            line = "" if some[1:] else _line(slip, statement)
        except (SyntaxError, ValueError, TypeError):
            continue
        finally:
            for slip in reversed(undo):
                slip.put()
        yield Mutant(some[0].change, was, now, inside, line, at, len(some), code)


def undoes(mutant: Mutant, edits: Sequence[tuple[str, str]]) -> bool:
    """Whether a change takes back one of some edits, each a pair (old, new)."""

    def words(text):
        return " ".join(["", *re.findall(r"\w+|[^\s\w]", text), ""])

    return any(
        words(mutant.now) in words(old)
        and words(mutant.was) in words(new)
        and (words(mutant.now) not in words(new) or words(mutant.was) not in words(old))
        for old, new in edits
    )


# Texts, lines and likeness

HOLE = "hole__"
MODULES = ("F", "torch", "nn", "math", "np")


def _source(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except AttributeError:  # a new statement stands on no line yet
        return ast.unparse(ast.fix_missing_locations(node))


def _head(node: ast.stmt) -> str:
    """A statement's first line."""
    return next(line for line in _source(node).splitlines() if line[:1] != "@")


def _text(node: ast.AST, owner: ast.AST) -> str:
    """A node as a text, with its keyword; "" for nothing."""
    name = f"{owner.arg}=" if isinstance(owner, ast.keyword) else ""
    text = _head(node) if isinstance(node, ast.stmt) else _source(node)
    return "" if isinstance(node, ast.Pass) else name + text


def _statements(tree: ast.AST) -> dict[int, ast.stmt]:
    """id of a node -> the innermost statement that holds it."""
    found = {}
    for node in ast.walk(tree):  # from outside to inside
        if isinstance(node, ast.stmt):
            found |= {id(part): node for part in ast.walk(node)}
    return found


def _line(slip: _Slip, statement: dict[int, ast.stmt]) -> str:
    """The line of a slip, as it now stands; "" for none, or more than a line."""
    held = slip.held
    if isinstance(held, list):
        return slip.now if slip.change is Change.LINE else slip.was
    line = held if isinstance(held, ast.stmt) else statement[id(slip.owner)]
    none = isinstance(line, (ast.FunctionDef, ast.ClassDef, ast.Pass))
    return "" if none else _head(line)


def _nearer(groups, statement, goal) -> list[list[_Slip]]:
    """Those that are in no line of a tree, sorted by how much liker they make it."""
    lines = {_head(n) for n in ast.walk(goal) if isinstance(n, ast.stmt)}
    pairs = _pairs(ast.unparse(goal))

    def likeness(some):
        text = "\n".join(dict.fromkeys(_line(slip, statement) for slip in some))
        return sum(1 if pair in pairs else -1 for pair in _pairs(text))

    def gain(some):
        if some[0].was is not None:  # whole lines
            return True, -5, 3 if some[0].change is Change.LINE else 0
        before, undo = likeness(some), [slip.put() for slip in some]
        more = likeness(some) - before
        for slip in reversed(undo):
            slip.put()
        return more > 0 and some[0].likely < 10, -max(5, some[0].likely), more

    groups = [
        g
        for g in groups
        if g[0].was is not None or not {_line(s, statement) for s in g} & lines
    ]
    return sorted(groups, key=gain, reverse=True)


def _pairs(text: str) -> set[tuple[str, str]]:
    """The pairs of neighbouring words and signs in a text."""
    return set(pairwise(re.findall(r"\w+|\S", text)))


def _lacks(mine: ast.AST, right: ast.AST) -> list[str]:
    """What `right` does more often than `mine`: texts, with a HOLE for what it does
    that to. Only names that `mine` has, too, are in them."""
    known = {n.id for n in ast.walk(mine) if isinstance(n, ast.Name)}
    known |= {n.arg for n in ast.walk(mine) if isinstance(n, ast.arg)}
    known |= {HOLE, *MODULES, "float", "len", "sum"}
    own, theirs = Counter(_ways(mine)), Counter(_ways(right))
    found = []
    for way, count in theirs.items():
        names = {n.id for n in ast.walk(_parsed(way)) if isinstance(n, ast.Name)}
        often = way[0] in "-~" or HOLE not in way  # a sign may be missing anywhere
        if (often or own[way] < count) and names <= known and len(way) < 40:
            found.append(way)
    return found


def _ways(tree: ast.AST) -> Iterator[str]:
    """What a program does to its expressions, as texts."""
    gap = ast.Name(HOLE)
    for node in ast.walk(tree):
        if _is_whole(node) or isinstance(node, ast.Constant):
            yield ast.unparse(node)
        if isinstance(node, ast.BinOp):
            yield ast.unparse(_remade(node, left=gap))
        elif isinstance(node, ast.UnaryOp):
            yield ast.unparse(_remade(node, operand=gap))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if _is_whole(node.func.value):
                yield ast.unparse(_remade(node, func=_remade(node.func, value=gap)))
            elif node.args:
                yield ast.unparse(_remade(node, args=[gap, *node.args[1:]]))


# The slips

SISTERS = [  # names that are taken for each other
    {"mean", "sum", "max", "min", "median"},
    {"softmax", "log_softmax", "sigmoid"},
    {"log", "log2", "log10", "exp"},
    {"zeros", "ones"},
    {"square", "abs", "sqrt", "rsqrt"},
    {"cat", "stack"},
    {"repeat_interleave", "repeat"},
    {"arange", "randperm"},
    {"any", "all"},
    {"argmax", "argmin"},
    {"tril", "triu"},
    {"sum", "len"},
]
OPERATORS = {  # what is taken for what
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div, ast.Add],
    ast.Div: [ast.Mult, ast.FloorDiv],
    ast.FloorDiv: [ast.Div],
    ast.MatMult: [ast.Mult],
    ast.Lt: [ast.LtE, ast.Gt, ast.NotEq],
    ast.LtE: [ast.Lt, ast.GtE],
    ast.Gt: [ast.GtE, ast.Lt, ast.NotEq],
    ast.GtE: [ast.Gt, ast.LtE],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _remade(node, **changed):
    """A new node like it, with other fields; its children are shared."""
    return type(node)(**{**dict(ast.iter_fields(node)), **changed})


def _literal(node: ast.AST) -> int | float | None:
    """A literal's number."""
    if isinstance(node, (ast.Constant, ast.UnaryOp)):
        with contextlib.suppress(ValueError):
            value = ast.literal_eval(node)
            return value if type(value) in (int, float) else None


def _called(node: ast.AST) -> str:
    """The last name of what is called: "softmax" of F.softmax(...)."""
    func = node.func if isinstance(node, ast.Call) else None
    return getattr(func, "attr", getattr(func, "id", ""))


def _slips(owner, lacks=(), names=()) -> Iterator[_Slip]:
    """All slips in a tree; names: what its function is given and assigns.

    lacks: texts of what may be put around expressions (HOLE), or in a number's place.
    """
    if isinstance(owner, ast.FunctionDef):
        given = [a.arg for a in ast.walk(owner.args) if isinstance(a, ast.arg)]
        names = list(dict.fromkeys(given + _stored(owner.body)))
    for field, value in ast.iter_fields(owner):
        if field in ("args", "decorator_list", "returns", "annotation"):
            if isinstance(owner, (ast.FunctionDef, ast.AnnAssign)):
                continue  # signatures and annotations stay
        some = value if isinstance(value, list) else [value]
        if some and isinstance(some[0], ast.stmt):
            for at, line in enumerate(some):
                for likely, change, new in _of_line(line):
                    yield _Slip(likely, change, owner, field, at, new)
        for i, node in enumerate(some):
            if isinstance(node, ast.AST):
                at = i if some is value else None
                for likely, change, new in _changes(node, owner, names):
                    yield _Slip(likely, change, owner, field, at, new)
                if field != "func" and (_is_whole(node) or _literal(node)):
                    for text in (t for t in lacks if _is_whole(node) == (HOLE in t)):
                        new = _parsed(text.replace(HOLE, f"({_source(node)})"))
                        likely = 3 if text[0].isdigit() else 10 - (HOLE in text)
                        likely = 1 if text[0] in "-~" else likely
                        change = Change.SIGN if text[0] in "-~" else Change.PART
                        change = change if HOLE in text else Change.NUMBER
                        yield _Slip(likely, change, owner, field, at, new)
                yield from _slips(node, lacks, names)


def _is_whole(node: ast.AST) -> bool:
    """Whether a node is an expression that a program computes with."""
    if isinstance(node, ast.Name) and node.id in (*MODULES, "self"):
        return False
    stored = isinstance(getattr(node, "ctx", None), ast.Store)
    whole = ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp
    return isinstance(node, whole) and not stored


def _stored(lines: list[ast.stmt]) -> list[str]:
    """The names that some lines assign."""
    nodes = itertools.chain.from_iterable(map(ast.walk, lines))
    names = (n for n in nodes if isinstance(n, ast.Name))
    return [n.id for n in names if isinstance(n.ctx, ast.Store)]


def _changes(node, owner, names):
    """Yield (likely, change, new node) for a node in its place."""
    if isinstance(owner, ast.UnaryOp) and _literal(owner) is not None:
        return  # the whole number was changed
    number = _literal(node)
    if number is not None:
        yield from _numbers(number, owner)
    elif type(node) in RULES:
        yield from RULES[type(node)](node, owner, names)


def _numbers(number, owner):
    change = Change.NUMBER
    if isinstance(owner, ast.keyword) and owner.arg in ("dim", "dims", "axis"):
        change = Change.DIM
        others = [-1, 0, 1, 2, -2, (-2, -1), (0, -1), (0, 1)]
    elif isinstance(owner, ast.Compare) and isinstance(
        owner.ops[0], ast.Eq | ast.NotEq
    ):
        others = []  # another one would only make the branch dead
    elif isinstance(number, int):
        others = [number - 1, number + 1, -number, 0, 2 * number, -1]
    else:
        others = [-number, 1 - number, 1.0, 0.0, 2 * number, number / 2]
    if isinstance(owner, (ast.Slice, ast.Subscript)):
        change = Change.INDEX
    for other in dict.fromkeys(others):
        if other != number or type(other) is not type(number):
            yield 0 if change is Change.DIM else 2, change, _parsed(repr(other))


def _unary(node, owner, names):
    if isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        yield 0, Change.SIGN, node.operand


def _binary(node, owner, names):
    left, right, kind = node.left, node.right, type(node.op)
    yield 1, Change.PART, left
    if not (_literal(right) == 0.5 and kind is ast.Pow):
        yield 2, Change.PART, right
    for new in _nested(right, "left", lambda x: ast.BinOp(left, node.op, x), kind):
        yield 1, Change.ORDER, new
    for new in _nested(left, "right", lambda x: ast.BinOp(x, node.op, right), kind):
        yield 1, Change.ORDER, new
    if kind is ast.Div and _literal(right) is None:
        yield 3, Change.NUMBER, _remade(node, right=_plus(right, 1))
    if kind is ast.Mult and isinstance(left, ast.Name):
        for by in (1, -1):
            yield 3, Change.NUMBER, _remade(node, left=_plus(left, by))
    if _literal(left) is None or _literal(right) is None:
        for other in OPERATORS.get(kind, ()):
            signs = {ast.Add, ast.Sub}
            change = Change.SIGN if {kind, other} == signs else Change.OPERATION
            yield 1, change, ast.BinOp(left, other(), right)
    if kind in (ast.Sub, ast.Div):
        yield 1, Change.ORDER, ast.BinOp(right, node.op, left)


def _plus(node: ast.expr, by: int) -> ast.BinOp:
    sign = ast.Add() if by > 0 else ast.Sub()
    return ast.BinOp(node, sign, ast.Constant(abs(by)))


def _nested(part, side, put, kind):
    """Yield a part with put(x) for each x down one side: with other brackets."""
    if isinstance(part, ast.BinOp) and type(part.op) is not kind:
        end = getattr(part, side)
        for new in (put(end), *_nested(end, side, put, kind)):
            yield _remade(part, **{side: new})


def _boolean(node, owner, names):
    for part in node.values:
        rest = [value for value in node.values if value is not part]
        yield 1, Change.PART, _remade(node, values=rest) if rest[1:] else rest[0]


def _compare(node, owner, names):
    for other in OPERATORS.get(type(node.ops[0]), ()) if len(node.ops) == 1 else ():
        yield 0, Change.COMPARISON, _remade(node, ops=[other()])


def _call(node, owner, names):
    name, args, text = _called(node), node.args, _source(node)
    method = isinstance(node.func, ast.Attribute)
    inner = node.func.value if method else None
    module = isinstance(inner, ast.Name) and inner.id in MODULES
    for part in node.keywords:
        rest = [k for k in node.keywords if k is not part]
        dim = part.arg in ("dim", "axis", "dims", "keepdim", "keepdims")
        change = Change.DIM if dim else Change.PART
        yield 0, change, _remade(node, keywords=rest)
    if method and not module:
        yield 0 if name in ("transpose", "clone") else 1, Change.PART, inner
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            if _is_whole(inner.func.value):  # two methods one behind the other
                yield 2, Change.PART, inner.func.value
    for i, j in itertools.combinations(range(len(args)), 2) if len(args) < 6 else ():
        if ast.dump(args[i]) != ast.dump(args[j]):
            swapped = list(args)
            swapped[i], swapped[j] = swapped[j], swapped[i]
            likely = 1 if len(args) == 2 else 3
            yield likely, Change.ORDER, _remade(node, args=swapped)
    for other in sorted(set().union(*(s for s in SISTERS if name in s)) - {name}):
        func = _remade(node.func, **{"attr" if method else "id": other})
        yield 2, Change.FUNCTION, _remade(node, func=func)
    if name in SISTERS[0] and method and not module and not args + node.keywords:
        word = {"min": "amin", "max": "amax"}.get(name, name)
        for how in ("dim=-1, keepdim=True", "dim=-1", "dim=0", "dim=1"):
            yield 1, Change.DIM, _parsed(f"({_source(inner)}).{word}({how})")
    if name in ("tril", "triu") and len(args) == 1 - (method and not module):
        for by in (-1, 1) if not node.keywords else ():
            more = ast.keyword("diagonal", _parsed(f"{by}"))
            yield 1, Change.INDEX, _remade(node, keywords=[more])
    if name == "range" and len(args) < 3:
        first, stop = args[:-1], args[-1]
        ends = [_plus(stop, 1), _plus(stop, -1)]
        if isinstance(stop, ast.BinOp) and _literal(stop.right) == 1:
            ends.append(stop.left)
        for end in ends if _literal(stop) is None else ():
            yield 1, Change.INDEX, _remade(node, args=[*first, end])
        if not first:
            for end in (stop, *ends):
                yield 3, Change.INDEX, _remade(node, args=[ast.Constant(1), end])
    if name == "repeat" and sum(_literal(n) != 1 for n in args) == 1:  # in turns
        dim = next(i for i, n in enumerate(args) if _literal(n) != 1)
        func = _remade(node.func, attr="repeat_interleave")
        keywords = [ast.keyword("dim", ast.Constant(dim))]
        new = ast.Call(func, [args[dim]], keywords) if method else node
        yield 1, Change.FUNCTION, new
    if text == "float('-inf')":
        yield 3, Change.NUMBER, _parsed("0.0")


def _subscript(node, owner, names):
    where = node.slice
    if isinstance(node.ctx, ast.Load):
        yield 2, Change.PART, node.value
    if isinstance(node.ctx, ast.Load) and isinstance(where, ast.Name):
        yield 3, Change.INDEX, _remade(node, slice=_parsed("-1"))
    if not isinstance(where, ast.Tuple):
        new = _parsed(f"({_source(node.value)})[:, {_source(where)}]")
        new.ctx = node.ctx
        yield 2, Change.INDEX, new
        return
    whole = {0: ast.Slice(), -1: ast.Slice(_parsed("-1"))}
    orders = [where.elts[1:]] * (len(where.elts) > 1)
    orders.append([whole.get(_literal(at), at) for at in where.elts])
    for i, j in itertools.combinations(range(len(where.elts)), 2):
        orders.append([*where.elts])
        orders[-1][i], orders[-1][j] = where.elts[j], where.elts[i]
    for i, at in enumerate(where.elts):
        if isinstance(at, ast.Name):  # one place: all from there on, or the last
            for other in (ast.Slice(at), _parsed("-1")):
                orders.append([*where.elts[:i], other, *where.elts[i + 1 :]])
        if isinstance(at, ast.List) and len(at.elts) == 1:  # [:, [k]] is off by one
            at = at.elts[0]
        if _literal(at) is None and not isinstance(at, (ast.Slice, ast.BinOp)):
            for by in ("+ 1", "- 1"):
                other = _parsed(f"{_source(at)} {by}")
                if isinstance(where.elts[i], ast.List):
                    other = ast.List([other], ast.Load())
                orders.append([*where.elts[:i], other, *where.elts[i + 1 :]])
    for order in orders:
        index = order[0] if len(order) == 1 else _remade(where, elts=order)
        if ast.dump(index) != ast.dump(where):
            yield 1, Change.INDEX, _remade(node, slice=index)


def _slice(node, owner, names):
    for bound, value in (("lower", node.lower), ("upper", node.upper)):
        if value is None:
            continue
        others = [_remade(node, **{bound: None})]
        if _literal(value) is None and not isinstance(value, ast.BinOp):
            for by in ("+ 1", "- 1"):
                more = _parsed(f"{_source(value)} {by}")
                others.append(_remade(node, **{bound: more}))
        if bound == "upper" and node.lower and _literal(value) is None:
            both = ast.BinOp(node.lower, ast.Add(), value)
            others.append(_remade(node, upper=both))  # where a count stands for an end
        if getattr(node, "lower" if bound == "upper" else "upper") is None:
            single = value.left if isinstance(value, ast.BinOp) else value
            others += [single, ast.Slice(node.upper, node.lower)]
        for new in others:
            yield 1, Change.INDEX, new


def _name(node, owner, names):
    called = isinstance(owner, ast.Call) and owner.func is node
    module = node.id in (*MODULES, "self") or called
    if isinstance(node.ctx, ast.Load) and not module:  # a global one, too
        for other in names:
            if other != node.id:
                yield 6, Change.NAME, ast.Name(other, ast.Load())


def _tuple(node, owner, names):
    if isinstance(owner, (ast.Return, ast.Assign, ast.For, ast.Call, ast.Tuple)):
        for i, j in itertools.combinations(range(len(node.elts)), 2):
            order = list(node.elts)
            order[i], order[j] = order[j], order[i]
            likely = 1 if isinstance(node.ctx, ast.Load) else 3
            yield likely, Change.ORDER, _remade(node, elts=order)


def _attribute(node, owner, names):
    if node.attr in ("T", "mT"):
        yield 0, Change.PART, node.value


RULES = {
    ast.Attribute: _attribute,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Name: _name,
    ast.Tuple: _tuple,
    ast.List: _tuple,
}


def _of_line(line):
    """Slips with a whole line."""
    kinds = ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.Break
    if isinstance(line, kinds):
        if not isinstance(getattr(line, "value", None), ast.Constant):
            yield 0, Change.LINE, ast.Pass()
    if isinstance(line, ast.AugAssign):
        new = ast.Assign([line.target], line.value, lineno=0)
        yield 9, Change.OPERATION, new
    elif isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
        new = ast.AugAssign(line.targets[0], ast.Add(), line.value)
        yield 9, Change.OPERATION, new
    if isinstance(line, (ast.Assign, ast.Return)) and line.value is not None:
        for first, second in itertools.combinations(_used(line.value)[:6], 2):
            value = copied(line.value)
            for node in ast.walk(value):
                if isinstance(node, ast.Name):
                    node.id = {first: second, second: first}.get(node.id, node.id)
            yield 2, Change.ORDER, _remade(line, value=value)


def _of_lines(tree: ast.AST, goal: ast.AST) -> Iterator[_Slip]:
    """Lines of `goal` put into a tree that has them not, or elsewhere."""
    simple = ast.Expr, ast.Assign, ast.AugAssign
    own, ours = (
        Counter(_head(n) for n in ast.walk(part) if isinstance(n, simple))
        for part in (tree, goal)
    )
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {"self"}
    names |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    assigned = set(_stored([tree]))
    blocks = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.For))]
    for line in (n for n in ast.walk(goal) if isinstance(n, simple)):
        text = _head(line)
        used = {n.id for n in ast.walk(line) if isinstance(n, ast.Name)}
        docstring = isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
        loads = {n.id for n in ast.walk(line.value) if isinstance(n, ast.Name)}
        anew = set(_stored([line])) & assigned - loads  # it has a value already
        known = used <= names | {*MODULES, "float"}
        if own[text] >= ours[text] or docstring or anew or not known:
            continue
        for block in blocks:
            for i in range(len(block.body) + 1):
                body = [*block.body[:i], copied(line), *block.body[i:]]
                yield _Slip(4, Change.LINE, block, "body", None, body, "", text)
    for block in blocks:
        for i, line in enumerate(block.body):
            rest = block.body[:i] + block.body[i + 1 :]
            for j in range(len(rest) + 1) if isinstance(line, ast.Expr) else ():
                if j != i:
                    body = [*rest[:j], line, *rest[j:]]
                    behind = _head(rest[j - 1]) if j else ""
                    place = Change.PLACE, block, "body", None, body, _head(line), behind
                    yield _Slip(5, *place)


def _used(value: ast.expr) -> list[str]:
    """Names in an expression that are not called."""
    called = [n.func for n in ast.walk(value) if isinstance(n, ast.Call)]
    names = [n for n in ast.walk(value) if isinstance(n, ast.Name) and n not in called]
    return list(dict.fromkeys(n.id for n in names if n.id not in (*MODULES, "self")))
