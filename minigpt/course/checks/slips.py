"""The search for one slip: which single change makes a learner's program right?

A slip is one change of a program's tree. RULES, a table, says what people take for
what; each row has an example, which the tests run. The rules are applied everywhere in
the learner's own program, the likeliest change comes first, and one that gives the
right results on all cases is the slip, if it looks like one: see is_odd.
"""

import ast
import dataclasses
import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

HOLE = "hole__"  # stands for what something is done to
MODULES = "F", "torch", "nn", "math", "np"


@dataclass
class Slip:
    """One change: in a statement, `was` becomes `now`.

    kind: of the rule that made it. pairs: (node, its new one) in `whole`, the program's
    tree. inside: the expression around it. before, after: the statement's text, ""
    where there is none, as before a line that is put in. at: its number, or 0.
    """

    kind: str
    whole: ast.Module
    pairs: list
    inside: str
    was: str = ""
    now: str = ""
    before: str = ""
    after: str = ""
    at: int = 0

    @functools.cached_property
    def tree(self) -> ast.Module:
        """The program with this change."""
        swaps = {id(old): new for old, new in self.pairs}
        return ast.fix_missing_locations(replaced(self.whole, swaps))


class Place(NamedTuple):
    """A node of a program, and what is around it.

    names: what its function is given and assigns. ways: what the solution does and
    this program does not, as texts with a HOLE: "hole__ / n". parts: the attributes of
    its own that the solution reads, like `key` of self.key.
    """

    node: Any
    owner: Any
    field: str
    names: Sequence[str]
    ways: Sequence[str]
    parts: Sequence[str]


Rule = Callable[[Place], Iterator[Any]]
RULES: list[tuple[str, str, str, Rule]] = []  # kind, an example: before, after; rule


def rule(kind: str, before: str, after: str) -> Callable[[Rule], Rule]:
    """Add a rule to the table, with its example."""

    def decorate(function: Rule) -> Rule:
        RULES.append((kind, before, after, function))
        return function

    return decorate


# Trees: none is ever changed


def replaced(tree: Any, swaps: Mapping[int, Any] = {}) -> Any:
    """A copy of a tree with other nodes in some places; {id of a node: its new one}.

    All trees share one Load(), to which a traceback of IPython's gives a parent: a
    whole file's tree. deepcopy would follow it.
    """
    if isinstance(tree, list):
        return [replaced(part, swaps) for part in tree]
    if not isinstance(tree, ast.AST):
        return tree
    if id(tree) in swaps:
        return swaps[id(tree)]
    parts = {name: replaced(part, swaps) for name, part in ast.iter_fields(tree)}
    return ast.copy_location(type(tree)(**parts), tree)


def remade(node: Any, **changed: Any) -> Any:
    """A new node like it, with other fields; its children are shared."""
    new = type(node)(**{**dict(ast.iter_fields(node)), **changed})
    return ast.copy_location(new, node)


def text_of(node: Any) -> str:
    """A node as a text; of a statement its first line, of nothing ""."""
    if isinstance(node, ast.Pass | type(None)):
        return ""
    try:
        text = ast.unparse(node)
    except AttributeError:  # a new statement has no line yet
        text = ast.unparse(ast.fix_missing_locations(node))
    if isinstance(node, ast.stmt):
        return next(line for line in text.splitlines() if line[:1] != "@")
    return text


def parsed(text: str) -> Any:
    return ast.parse(text, mode="eval").body


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


def is_whole(node: Any) -> bool:
    """Whether a node is an expression that a program computes with."""
    if isinstance(node, ast.Name) and node.id in (*MODULES, "self"):
        return False
    stored = isinstance(getattr(node, "ctx", None), ast.Store)
    whole = ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp
    return isinstance(node, whole) and not stored


def is_method(node: Any) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def plus(node: Any, by: int) -> ast.BinOp:
    sign = ast.Add() if by > 0 else ast.Sub()
    return ast.BinOp(node, sign, ast.Constant(abs(by)))


# The rules, the likeliest first

DIM_FIRST = "cumsum softmax log_softmax sum mean amax argmax stack unsqueeze".split()
REDUCTIONS = "mean sum max min median amax amin any all".split()


@rule("dimension", "x.sum(dim=0)", "x.sum(dim=1)")
def another_dimension(at: Place) -> Iterator[Any]:
    number, named = literal(at.node), getattr(at.owner, "arg", "")
    if isinstance(number, int) and not isinstance(at.owner, ast.UnaryOp):
        if named in ("dim", "dims", "axis") or called(at.owner) in DIM_FIRST:
            for other in (-1, 0, 1, 2, -2, (0, 1), (-2, -1)):
                if other != number:
                    yield parsed(str(other))


@rule("missing dimension", "x.sum()", "x.sum(dim=-1, keepdim=True)")
def a_dimension_is_missing(at: Place) -> Iterator[Any]:
    if called(at.node) in REDUCTIONS and is_method(at.node):
        if not at.node.args + at.node.keywords:
            name = {"min": "amin", "max": "amax"}.get(called(at.node), called(at.node))
            for how in ("dim=-1, keepdim=True", "dim=-1", "dim=0", "dim=1"):
                yield parsed(f"({text_of(at.node.func.value)}).{name}({how})")
    given = [k.arg for k in at.node.keywords] if isinstance(at.node, ast.Call) else []
    if "dim" in given and "keepdim" not in given:
        keep = ast.keyword("keepdim", ast.Constant(True))
        yield remade(at.node, keywords=[*at.node.keywords, keep])


@rule("end", "x[:, :t]", "x[:, :t + 1]")
def another_end(at: Place) -> Iterator[Any]:
    """Of a slice, or of a range."""
    node = at.node
    if isinstance(node, ast.Slice):
        for bound in ("lower", "upper"):
            value = getattr(node, bound)
            if value is None:
                continue
            yield remade(node, **{bound: None})
            for other in _one_more(value):
                yield remade(node, **{bound: other})
        if node.lower and node.upper:
            for by in (-1, 1):
                both = {b: _more(getattr(node, b), by) for b in ("lower", "upper")}
                yield remade(node, **both)
        if node.lower and node.upper and literal(node.upper) is None:
            yield remade(node, upper=ast.BinOp(node.lower, ast.Add(), node.upper))
    if called(node) == "range" and 0 < len(node.args) < 3:
        *first, stop = node.args
        for other in _one_more(stop):
            yield remade(node, args=[*first, other])
        for begin in (1,) if not first else ():
            yield remade(node, args=[ast.Constant(begin), stop])


def _one_more(value: Any) -> Iterator[Any]:
    sums = isinstance(value, ast.BinOp) and literal(value.right) == 1
    yield from (value.left,) if sums else (_more(value, by) for by in (1, -1))


def _more(value: Any, by: int) -> Any:
    """A bound or an index plus by, which is 1 or -1."""
    if isinstance(number := literal(value), int):
        return parsed(str(number + by))
    back = ast.Sub if by > 0 else ast.Add
    if isinstance(value, ast.BinOp) and literal(value.right) == 1:
        if isinstance(value.op, back):
            return value.left
    return plus(value, by)


@rule("index", "x[i]", "x[:, i]")
def another_index(at: Place) -> Iterator[Any]:
    if not isinstance(at.node, ast.Subscript):
        return
    where, of = at.node.slice, at.node.value
    if not isinstance(where, ast.Tuple):
        new = parsed(f"({text_of(of)})[:, {text_of(where)}]")
        new.ctx = at.node.ctx
        yield new
    places = where.elts if isinstance(where, ast.Tuple) else [where]
    for i, j in itertools.combinations(range(len(places)), 2):
        order = [*places]
        order[i], order[j] = places[j], places[i]
        yield remade(at.node, slice=remade(where, elts=order))
    for i, one in enumerate(places):
        if not isinstance(one, ast.Slice | ast.Tuple):
            for other in (*_one_more(one), parsed("-1")):
                order = [*places[:i], other, *places[i + 1 :]]
                new = remade(where, elts=order) if len(places) > 1 else other
                yield remade(at.node, slice=new)
        if literal(one) in (0, -1) and len(places) > 1:
            all_of_it = ast.Slice(None if literal(one) == 0 else parsed("-1"))
            order = [*places[:i], all_of_it, *places[i + 1 :]]
            yield remade(at.node, slice=remade(where, elts=order))


@rule("comparison", "x < 0", "x <= 0")
def another_comparison(at: Place) -> Iterator[Any]:
    if isinstance(at.node, ast.Compare) and len(at.node.ops) == 1:
        for other in COMPARISONS.get(type(at.node.ops[0]), ()):
            yield remade(at.node, ops=[other()])
    if called(at.node) in ("tril", "triu") and not at.node.keywords:
        if len(at.node.args) == (0 if is_method(at.node) and _is_tensor(at) else 1):
            for by in (-1, 1):
                more = ast.keyword("diagonal", parsed(str(by)))
                yield remade(at.node, keywords=[more])


def _is_tensor(at: Place) -> bool:
    """Whether a method is a tensor's, and not a module's function."""
    of = at.node.func.value
    return not (isinstance(of, ast.Name) and of.id in MODULES)


COMPARISONS: dict[type, tuple] = {
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE),
    ast.LtE: (ast.Lt, ast.GtE, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt, ast.LtE),
    ast.GtE: (ast.Gt, ast.LtE, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}


@rule("sign", "-x", "x")
def another_sign(at: Place) -> Iterator[Any]:
    node = at.node
    if isinstance(node, ast.UnaryOp) and literal(node) is None:
        yield node.operand
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield remade(node, op=other)
    if is_whole(node) and not isinstance(at.owner, ast.UnaryOp) and at.field != "func":
        yield from (
            parsed(f"{way[0]}({text_of(node)})") for way in at.ways if way[0] in "-~"
        )
    if isinstance(node, ast.If):
        yield remade(node, test=ast.UnaryOp(ast.Not(), node.test))


@rule("operation", "x * y", "x / y")
def another_operation(at: Place) -> Iterator[Any]:
    if isinstance(at.node, ast.BinOp):
        for other in OPERATIONS.get(type(at.node.op), ()):
            yield remade(at.node, op=other())


OPERATIONS: dict[type, tuple] = {
    ast.Mult: (ast.Div, ast.Add, ast.MatMult),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div,),
    ast.MatMult: (ast.Mult,),
}


@rule("function", "x.sum()", "x.mean()")
def another_function(at: Place) -> Iterator[Any]:
    name = called(at.node)
    for other in sorted(set().union(*(s for s in SISTERS if name in s)) - {name}):
        field = "attr" if isinstance(at.node.func, ast.Attribute) else "id"
        yield remade(at.node, func=remade(at.node.func, **{field: other}))
    if name == "repeat" and sum(literal(n) != 1 for n in at.node.args) == 1:
        dim = next(i for i, n in enumerate(at.node.args) if literal(n) != 1)
        of, n = text_of(at.node.func.value), text_of(at.node.args[dim])
        yield parsed(f"({of}).repeat_interleave({n}, dim={dim})")


SISTERS = [  # functions that are taken for each other
    {"mean", "sum", "max", "min", "median"},
    {"softmax", "log_softmax", "sigmoid"},
    {"log", "log2", "log10", "exp"},
    {"zeros", "ones"},
    {"square", "abs", "sqrt", "rsqrt"},
    {"cat", "stack"},
    {"repeat_interleave", "repeat"},
    {"any", "all"},
    {"argmax", "argmin"},
    {"tril", "triu"},
    {"sum", "len"},
    {"floor", "ceil", "round"},
]


@rule("number", "x + 1", "x + 2")
def another_number(at: Place) -> Iterator[Any]:
    number = literal(at.node)
    if number is None or isinstance(at.owner, ast.UnaryOp | ast.Slice):
        return
    if isinstance(at.owner, ast.Compare) and isinstance(at.owner.ops[0], ast.Eq):
        return  # another one would only make the branch dead
    others: list[Any] = [1 - number, -number, 1.0, 0.0]
    if isinstance(number, int):
        others = [number + 1, number - 1, -number, 0, 2 * number]
    for way in at.ways:
        if literal(parsed(way)) is not None:
            others.append(literal(parsed(way)))
    for other in dict.fromkeys(others):
        if other != number:
            yield parsed(repr(other))


@rule("order", "x - y", "y - x")
def another_order(at: Place) -> Iterator[Any]:
    """Two operands, arguments, values or names have changed places."""
    node = at.node
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Sub | ast.Div | ast.MatMult | ast.Pow):
            yield remade(node, left=node.right, right=node.left)
    field = "args" if isinstance(node, ast.Call) else "elts"
    if isinstance(node, ast.Call | ast.Tuple | ast.List) and at.field != "slice":
        parts = getattr(node, field)
        for i, j in itertools.combinations(range(len(parts[:5])), 2):
            order = [*parts]
            order[i], order[j] = parts[j], parts[i]
            yield remade(node, **{field: order})
    if isinstance(node, ast.Assign | ast.Return) and node.value is not None:
        called_ones = [n.func for n in ast.walk(node.value) if isinstance(n, ast.Call)]
        every = (n for n in ast.walk(node.value) if isinstance(n, ast.Name))
        names = [n.id for n in every if n not in called_ones and is_whole(n)]
        for first, second in itertools.combinations(list(dict.fromkeys(names))[:6], 2):
            value = replaced(node.value)
            for part in ast.walk(value):
                if isinstance(part, ast.Name):
                    part.id = {first: second, second: first}.get(part.id, part.id)
            yield remade(node, value=value)


@rule("brackets", "(x + y) * z", "x + y * z")
def other_brackets(at: Place) -> Iterator[Any]:
    """Brackets, or two steps in the other order: f(a / b) and f(a) / f(b)."""
    node = at.node
    if isinstance(node, ast.BinOp):
        left, right, op = node.left, node.right, node.op
        if isinstance(right, ast.BinOp) and type(right.op) is not type(op):
            yield remade(right, left=ast.BinOp(left, op, right.left))
        if isinstance(left, ast.BinOp) and type(left.op) is not type(op):
            yield remade(left, right=ast.BinOp(left.right, op, right))
        if literal(right) is not None and is_method(left):
            inner = ast.BinOp(left.func.value, op, right)
            yield remade(left, func=remade(left.func, value=inner))
    if is_method(node):
        of = node.func.value
        if is_method(of) and is_whole(of.func.value):  # x.f().g(): x.g().f()
            inner = remade(node, func=remade(node.func, value=of.func.value))
            yield remade(of, func=remade(of.func, value=inner))
        if isinstance(of, ast.BinOp):  # (a / b).f(): a.f() / b.f()
            put = [
                remade(node, func=remade(node.func, value=x))
                for x in (of.left, of.right)
            ]
            right = of.right if literal(of.right) is not None else put[1]
            yield ast.BinOp(put[0], of.op, right)


@rule("too much", "x.float()", "x")
def too_much(at: Place) -> Iterator[Any]:
    node = at.node
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    if isinstance(node, ast.BoolOp) and len(node.values) == 2:
        yield from node.values
    if is_method(node) and is_whole(node.func.value):
        yield node.func.value
    if isinstance(node, ast.Call):
        if len(node.args) == 1 and not node.keywords and is_whole(node.args[0]):
            yield node.args[0]
        for part in node.keywords:
            yield remade(node, keywords=[k for k in node.keywords if k is not part])
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield node.value


@rule("name", "x", "y")
def another_name(at: Place) -> Iterator[Any]:
    node = at.node
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        if at.field != "func" and node.id in at.names:
            for other in at.names:
                if other != node.id:
                    yield ast.Name(other, ast.Load())
    if isinstance(node, ast.Attribute) and node.attr in at.parts:
        for other in at.parts:
            if other != node.attr:
                yield remade(node, attr=other)


@rule("missing", "x", "x / n")
def something_is_missing(at: Place) -> Iterator[Any]:
    """What the solution does, put round an expression, or for a name or a number."""
    node = at.node
    for way in at.ways:
        if HOLE in way and is_whole(node) and at.field != "func":
            yield parsed(way.replace(HOLE, f"({text_of(node)})"))
        elif HOLE not in way and at.field in ("upper", "lower", "args", "value"):
            ends = isinstance(at.owner, ast.Slice) or called(at.owner) == "range"
            if isinstance(node, ast.Name) and ends or literal(node):
                yield parsed(way)


@rule("line too many", "n += 1", "")
def a_line_too_many(at: Place) -> Iterator[Any]:
    lines = ast.Assign, ast.AugAssign, ast.Expr, ast.Break, ast.If
    if isinstance(at.node, lines):
        if not (
            isinstance(at.node, ast.Expr) and isinstance(at.node.value, ast.Constant)
        ):
            yield ast.Pass()


@rule("not kept", "x.masked_fill(m, 0)", "x = x.masked_fill(m, 0)")
def a_result_is_not_kept(at: Place) -> Iterator[Any]:
    """A line computes something and keeps it nowhere, or names a method only."""
    if isinstance(at.node, ast.Expr):
        value = at.node.value
        root = value
        while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(root, ast.Name) and root.id in at.names:
            yield ast.Assign([ast.Name(root.id, ast.Store())], value)
        if isinstance(value, ast.Attribute):
            yield ast.Expr(ast.Call(value, [], []))


# A program's slips


def slips(text: str, goal: str) -> Iterator[Slip]:
    """All slips of a program, the likeliest first; goal: what it should do."""
    tree, right = ast.parse(text), ast.parse(goal)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    found = list(_within(tree, right))
    groups: dict[tuple, list] = {}
    for slip in found:
        if slip.kind in REPEATED or slip.now in (f"{slip.was} + 1", f"{slip.was} - 1"):
            groups.setdefault((slip.kind, slip.was, slip.now), []).append(slip)
    for first, *others in groups.values():
        if 0 < len(others) < 4:
            pairs = [pair for slip in (first, *others) for pair in slip.pairs]
            found.append(dataclasses.replace(first, pairs=pairs))
    found += _lines_moved(tree, right)
    wanted = set(_neighbors(goal))
    order = {kind: i for i, (kind, *_) in enumerate(RULES)}

    def likely(slip: Slip) -> tuple:
        """What brings it nearer to the solution's text comes first."""
        before, after = map(_neighbors, (slip.before, slip.after))
        gain = sum(pair in wanted for pair in after) - sum(
            pair in wanted for pair in before
        )
        gain -= 0.5 * (len(after) - len(before))
        rank = order.get(slip.kind, 5)
        return gain <= 0, rank // 8, len(slip.pairs) > 1, -gain, rank

    seen = set()
    for slip in sorted(found, key=likely):
        key = slip.at, slip.after, len(slip.pairs)
        if not slip.at or key not in seen and slip.after != slip.before:
            seen.add(key)
            yield slip


REPEATED = "dimension", "end", "index", "comparison", "sign", "operation", "function"


def _neighbors(text: str) -> list[tuple[str, str]]:
    """The pairs of neighboring words and signs in a text."""
    return list(itertools.pairwise(re.findall(r"\w+|\S", text)))


def _within(tree: ast.Module, goal: ast.Module) -> Iterator[Slip]:
    """What all rules make of all places."""
    ways = _lacks(tree, goal)
    read = (n.attr for n in ast.walk(goal) if isinstance(n, ast.Attribute))
    parts = sorted({name for name in read if not _is_library(name)})

    def walk(
        owner: Any, line: Any, names: list[str], around: str, outside: str
    ) -> Iterator[Slip]:
        if isinstance(owner, ast.FunctionDef):
            given = [a.arg for a in ast.walk(owner.args) if isinstance(a, ast.arg)]
            names = [*dict.fromkeys(given), *sorted(_stored(owner) - {*given})]
        inside = around or (text_of(owner) if isinstance(owner, ast.expr) else outside)
        for field, node in _parts(owner):
            is_line = isinstance(node, ast.stmt)
            own = node if is_line else line
            place, was = Place(node, owner, field, names, ways, parts), text_of(node)
            for kind, _, _, make in RULES:
                for new in make(place):
                    now = text_of(replaced(own, {id(node): new}))
                    texts = inside, was, text_of(new), text_of(own), now
                    yield Slip(kind, tree, [(node, new)], *texts, own.lineno)
            index = isinstance(node, ast.Tuple | ast.Slice)
            whole = inside if index and (around or field == "slice") else ""
            yield from walk(node, own, names, whole, "" if is_line else inside)

    yield from walk(tree, tree, [], "", "")


def _is_library(name: str) -> bool:
    """Whether an attribute is torch's, and not one of a program's own."""
    return any(
        hasattr(of, name) for of in (torch.Tensor, torch, F, nn, math, list, str)
    )


def _parts(owner: Any) -> Iterator[tuple[str, Any]]:
    """(field, node) for what a node has; signatures and hints are left out."""
    fixed = "args", "decorator_list", "returns", "annotation"
    for field, value in ast.iter_fields(owner):
        if field in fixed and isinstance(owner, ast.FunctionDef | ast.AnnAssign):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield field, node


def _lacks(mine: ast.Module, right: ast.Module) -> list[str]:
    """What the solution does more often, as texts: "hole__ / n", "-hole__", "t + 1"."""
    names = {n.id for n in ast.walk(mine) if isinstance(n, ast.Name)}
    names |= {n.arg for n in ast.walk(mine) if isinstance(n, ast.arg)}
    names |= {HOLE, *MODULES, "float", "len", "sum"}
    own, theirs = Counter(_ways(mine)), Counter(_ways(right))

    def fits(way: str) -> bool:
        used = {n.id for n in ast.walk(parsed(way)) if isinstance(n, ast.Name)}
        return used <= names and len(way) < 40

    return [w for w in theirs if (w[0] in "-~" or own[w] < theirs[w]) and fits(w)]


def _ways(tree: ast.Module) -> Iterator[str]:
    """What a program does to its expressions: of `-x.sum()` it is `-hole__`, ..."""
    gap = ast.Name(HOLE, ast.Load())
    nodes: Iterator[Any] = ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.BinOp):
            yield text_of(remade(node, left=gap))
            if literal(node.right) is not None:
                yield text_of(node)
        elif isinstance(node, ast.UnaryOp) and literal(node) is None:
            yield text_of(remade(node, operand=gap))
        elif is_method(node) and is_whole(node.func.value):
            yield text_of(remade(node, func=remade(node.func, value=gap)))
        elif isinstance(node, ast.Call) and node.args and is_whole(node.args[0]):
            yield text_of(remade(node, args=[gap, *node.args[1:]]))
        elif literal(node) is not None:
            yield text_of(node)


def _lines_moved(tree: ast.Module, goal: ast.Module) -> list[Slip]:
    """Lines put in, or moved."""
    found = []
    simple = ast.Expr, ast.Assign, ast.AugAssign
    own = Counter(text_of(n) for n in ast.walk(tree) if isinstance(n, simple))
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    names |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    lines = [n for n in ast.walk(goal) if isinstance(n, simple)]
    stored = _stored(tree)
    places = (n.targets[0] for n in ast.walk(tree) if isinstance(n, ast.Assign))
    filled = {text_of(place) for place in places if not isinstance(place, ast.Name)}
    missing = [
        line
        for line in lines
        if not own[text_of(line)] and _knows(line, names, stored)
        if not (isinstance(line, ast.Assign) and text_of(line.targets[0]) in filled)
    ]
    blocks = ast.FunctionDef, ast.For, ast.While, ast.If, ast.With
    for block in (n for n in ast.walk(tree) if isinstance(n, blocks)):
        for line in missing if len(lines) > 2 else ():
            for i in range(len(block.body) + 1):
                body = [*block.body[:i], replaced(line), *block.body[i:]]
                new = remade(block, body=body)
                text = text_of(line)
                found.append(
                    Slip("line missing", tree, [(block, new)], text, after=text)
                )
        for line, body in _moves(block.body):
            text, pairs = text_of(line), [(block, remade(block, body=body))]
            found.append(Slip("moved", tree, pairs, text, before=text))
    return found


def _moves(body: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """(a line, the block after it was moved): within it, out of a loop, into one."""
    for i, line in enumerate(body):
        rest = body[:i] + body[i + 1 :]
        places = range(len(body)) if isinstance(line, ast.Expr) else range(i - 1, i)
        for j in places:
            if 0 <= j != i:
                yield line, [*rest[:j], line, *rest[j:]]
        if isinstance(line, ast.For | ast.While | ast.If):
            first, last = line.body[0], line.body[-1]
            if len(line.body) > 1:
                outside = [remade(line, body=line.body[:-1]), last]
                yield last, [*body[:i], *outside, *body[i + 1 :]]
                outside = [first, remade(line, body=line.body[1:])]
                yield first, [*body[:i], *outside, *body[i + 1 :]]
            if i and isinstance(line, ast.For):
                before = body[i - 1]
                into = remade(line, body=[before, *line.body])
                yield before, [*body[: i - 1], into, *body[i + 1 :]]


def _knows(line: Any, names: set[str], stored: set[str]) -> bool:
    """Whether a program has all names that a line reads, and not yet what it makes."""
    if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant):
        return False
    used = {n.id for n in ast.walk(line.value) if isinstance(n, ast.Name)}
    if _stored(line) & stored - used:
        return False
    return used <= names | {*MODULES, "self", "float", "len", "sum", "range"}


def _stored(tree: ast.AST) -> set[str]:
    """The names that a program assigns."""
    names = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


# Which changes look like a slip


def is_odd(slip: Slip, text: str, right: str) -> bool:
    """Whether a change that gives the right results does so by an accident.

    It is odd if it does something twice, cancels itself, or leads away from what the
    solution does, counted in operations; a number or an end may be off by anything.
    """
    nodes: list[Any] = list(ast.walk(slip.tree))
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(
            node.op, ast.Div | ast.Sub | ast.FloorDiv
        ):
            if text_of(node.left) == text_of(node.right) and text_of(node) not in text:
                return True  # n / n
        if is_method(node) and is_method(node.func.value):
            inner, outer = called(node.func.value), called(node)
            if {inner, outer} <= SHAPERS and text_of(node) not in f"{text}{right}":
                return True  # .reshape(...).view(...)
    if slip.kind == "number" and literal(parsed(slip.now or "0")) not in _literals(
        right
    ):
        a, b = (literal(parsed(part or "0")) or 0 for part in (slip.was, slip.now))
        return abs(a - b) != 1 and a != -b
    if slip.kind in LENIENT:
        return False
    before, after, ours = (
        _steps(ast.parse(t)) for t in (text, ast.unparse(slip.tree), right)
    )
    farther = [
        step
        for step in {*before, *after}
        if abs(after[step] - ours[step]) > abs(before[step] - ours[step])
    ]
    return bool(farther)


SHAPERS = {"reshape", "view", "flatten", "squeeze", "unsqueeze", "contiguous"}
LENIENT = "dimension end index comparison sign order number moved name".split()
ALIKE = {"T": "transpose", "mT": "transpose", "permute": "transpose", "sqrt": "Pow"}
ALIKE |= {"pow": "Pow", "square": "Pow", "div": "Div", "mul": "Mult", "norm": "Pow"}


def _literals(text: str) -> set:
    return {literal(node) for node in ast.walk(ast.parse(text))}


def _steps(tree: ast.AST) -> Counter:
    """How often a program does what: calls, transpositions, and operations."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and literal(node.right) is None:
            names.append(type(node.op).__name__)
        elif isinstance(node, ast.Call):
            names.append(called(node))
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            names.append(node.attr)
    return Counter(ALIKE.get(name, name) for name in names)
