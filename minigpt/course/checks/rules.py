"""What learners take for what: tables, and a rule for each kind of node.

A rule looks at one node of a program's tree and yields (Change, what else might stand
there). Behind each yield stands an example: what is there, and what else might be.
slips.py goes through a whole program with the rules.
"""

import ast
import enum
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minigpt.course.checks.trees import (
    MODULES,
    called,
    is_whole,
    literal,
    parsed,
    remade,
    replaced,
    source_of,
)


class Change(enum.Enum):
    """What kind of place it is that was changed.

    A new one needs a rank in RANKS and words in telling_slips.AT_FIRST; one that moves
    a line stands in MOVES and in telling_slips.MOVED. Those that an accident can look
    like are named in accidents.py.
    """

    DIM = enum.auto()
    INDEX = enum.auto()
    NUMBER = enum.auto()
    SIGN = enum.auto()
    OPERATION = enum.auto()
    COMPARISON = enum.auto()
    FUNCTION = enum.auto()
    ORDER = enum.auto()  # of two things
    STEP_ORDER = enum.auto()  # of two steps: a mean of ratios, a ratio of means
    PART = enum.auto()  # of an expression: left out, or put in
    NAME = enum.auto()
    LINE = enum.auto()
    PLACE = enum.auto()  # of a line: `was` belongs behind `now`
    INTO_LOOP = enum.auto()  # `was` belongs into the loop `now`
    OUT_OF_LOOP = enum.auto()  # `was` belongs before the loop `now`


RANKS = {  # of a change within a line, the likeliest first
    Change.DIM: 0,
    Change.COMPARISON: 0,
    Change.LINE: 0,
    Change.SIGN: 1,
    Change.OPERATION: 1,
    Change.INDEX: 1,
    Change.PART: 1,
    Change.ORDER: 1,
    Change.STEP_ORDER: 2,
    Change.NUMBER: 2,
    Change.FUNCTION: 2,
    Change.NAME: 6,
}
LINE_PUT_IN, LINE_MOVED = 4, 5  # ranks of what is done to whole lines
PUT_IN, REPLACED = (
    9,
    10,
)  # of what the other program has, put round a node or in its place
EQUAL = 5  # of an answer, the ranks up to this one are equally likely
MOVES = Change.PLACE, Change.INTO_LOOP, Change.OUT_OF_LOOP
REDUCTIONS = {"mean", "sum", "max", "min", "median"}
SISTERS = [  # names that are taken for each other
    REDUCTIONS,
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
DIM_FIRST = "cumsum", "softmax", "log_softmax", "sum", "mean", "amax", "argmax", "stack"
OPERATORS: dict[type, list[Any]] = {  # what is taken for what
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


def changes(
    node: ast.AST, owner: ast.AST, names: Sequence[str]
) -> Iterator[tuple[Change, Any]]:
    """Yield (change, new node) for a node in its place; names: the function's own."""
    if isinstance(owner, ast.UnaryOp) and literal(owner) is not None:
        return  # the whole number was changed
    number = literal(node)
    if isinstance(node, ast.stmt):
        yield from _statement(node)
    elif number is not None:
        yield from _number(number, owner)
    elif type(node) in RULES:
        yield from RULES[type(node)](node)
    elif isinstance(node, ast.Name):
        yield from _name(node, owner, names)
    elif isinstance(node, (ast.Tuple, ast.List)):
        yield from _tuple(node, owner)


def _number(number: int | float, owner: ast.AST) -> Iterator[tuple[Change, Any]]:
    """Another number, in the place of a literal."""
    change, equal = Change.NUMBER, isinstance(owner, ast.Compare) and owner.ops[0]
    named = isinstance(owner, ast.keyword) and owner.arg in ("dim", "dims", "axis")
    others: list[Any]
    if named or called(owner) in DIM_FIRST:
        change = Change.DIM
        others = [-1, 0, 1, 2, -2, (-2, -1), (0, -1), (0, 1)]
    elif isinstance(equal, (ast.Eq, ast.NotEq)):
        others = []  # another one would only make the branch dead
    elif isinstance(number, int):
        others = [number - 1, number + 1, -number, 0, 2 * number, -1]
    else:
        others = [-number, 1 - number, 1.0, 0.0, 2 * number, number / 2]
    if isinstance(owner, (ast.Slice, ast.Subscript)):
        change = Change.INDEX
    for other in dict.fromkeys(others):
        if other != number or type(other) is not type(number):
            yield change, parsed(repr(other))  # x[1]: x[0]; dim=-1: dim=0


def _unary(node: ast.UnaryOp) -> Iterator[tuple[Change, Any]]:
    if isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        yield Change.SIGN, node.operand  # -x: x


def _binary(node: Any) -> Iterator[tuple[Change, Any]]:
    left, right, kind = node.left, node.right, type(node.op)
    yield Change.PART, left  # a / b: a
    if not (literal(right) == 0.5 and kind is ast.Pow):
        yield Change.PART, right  # a / b: b
    for new in _other_brackets(right, "left", lambda x: ast.BinOp(left, node.op, x)):
        yield Change.ORDER, new  # a * (b + c): a * b + c
    for new in _other_brackets(left, "right", lambda x: ast.BinOp(x, node.op, right)):
        yield Change.ORDER, new  # (a + b) * c: a + b * c
    if literal(right) is not None and _is_method(left):
        inside = ast.BinOp(left.func.value, node.op, right)
        yield Change.STEP_ORDER, _method_of(inside, left)  # x.f() ** 2: (x ** 2).f()
    if literal(left) is None or literal(right) is None:
        for other in OPERATORS.get(kind, ()):
            signs = {kind, other} == {ast.Add, ast.Sub}
            change = Change.SIGN if signs else Change.OPERATION
            yield change, ast.BinOp(left, other(), right)  # a + b: a - b
    if kind in (ast.Sub, ast.Div):
        yield Change.ORDER, ast.BinOp(right, node.op, left)  # a / b: b / a


def _plus(node: ast.expr, by: int) -> ast.BinOp:
    sign = ast.Add() if by > 0 else ast.Sub()
    return ast.BinOp(node, sign, ast.Constant(abs(by)))


def _other_brackets(part: ast.expr, side: str, put: Any) -> Iterator[ast.BinOp]:
    """Yield a * b + c, where a * (b + c) is.

    part: b + c. side: of it, where its neighbour a may go: "left". put(x): a * x.
    """
    if isinstance(part, ast.BinOp) and type(part.op) is not type(put(part).op):
        end = getattr(part, side)
        for new in (put(end), *_other_brackets(end, side, put)):
            yield remade(part, **{side: new})


def _boolean(node: ast.BoolOp) -> Iterator[tuple[Change, Any]]:
    for part in node.values:
        rest = [value for value in node.values if value is not part]
        left = remade(node, values=rest) if rest[1:] else rest[0]
        yield Change.PART, left  # a and b: a


def _compare(node: ast.Compare) -> Iterator[tuple[Change, Any]]:
    for other in OPERATORS.get(type(node.ops[0]), ()) if len(node.ops) == 1 else ():
        yield Change.COMPARISON, remade(node, ops=[other()])  # a < b: a <= b


def _call(node: ast.Call) -> Iterator[tuple[Change, Any]]:
    """A function's name, its arguments and its order with another one."""
    name, args = called(node), node.args
    for other in sorted(set().union(*(s for s in SISTERS if name in s)) - {name}):
        field = "attr" if isinstance(node.func, ast.Attribute) else "id"
        func = remade(node.func, **{field: other})
        yield Change.FUNCTION, remade(node, func=func)  # x.sum(): x.mean()
    for part in node.keywords:
        dim = part.arg in ("dim", "axis", "dims", "keepdim", "keepdims")
        rest = remade(node, keywords=[k for k in node.keywords if k is not part])
        yield Change.DIM if dim else Change.PART, rest  # x.sum(dim=1): x.sum()
    for i, j in itertools.combinations(range(len(args)), 2) if len(args) < 6 else ():
        if ast.dump(args[i]) != ast.dump(args[j]):
            swapped = list(args)
            swapped[i], swapped[j] = swapped[j], swapped[i]
            yield Change.ORDER, remade(node, args=swapped)  # f(a, b): f(b, a)
    if source_of(node) == "float('-inf')":
        yield Change.NUMBER, parsed("0.0")  # what masked_fill puts there
    if name == "range" and len(args) < 3:
        yield from _range(node)
    of = node.func.value if isinstance(node.func, ast.Attribute) else None
    if of is None or isinstance(of, ast.Name) and of.id in MODULES:
        yield from _function(node, name)
    else:
        yield from _method(node, name, of)


def _range(node: ast.Call) -> Iterator[tuple[Change, Any]]:
    """Another end."""
    *first, stop = node.args
    ends = [_plus(stop, 1), _plus(stop, -1)]
    if isinstance(stop, ast.BinOp) and literal(stop.right) == 1:
        ends.append(stop.left)
    for end in ends if literal(stop) is None else ():
        yield Change.INDEX, remade(node, args=[*first, end])  # range(n): range(n - 1)


def _function(node: ast.Call, name: str) -> Iterator[tuple[Change, Any]]:
    """What f(...) is taken for that is no method."""
    if name in ("tril", "triu") and len(node.args) == 1:
        yield from _diagonal(node)
    if len(node.args) == 1 and isinstance(node.args[0], ast.BinOp):
        new = _first(node.args[0], lambda x: remade(node, args=[x]))
        yield Change.STEP_ORDER, new  # f(a / b): f(a) / f(b)


def _method(node: Any, name: str, of: Any) -> Iterator[tuple[Change, Any]]:
    """What x.f(...) is taken for."""
    yield Change.PART, of  # x.f(): x
    inner = of.func.value if _is_method(of) else None
    if inner is not None and is_whole(inner):
        yield Change.PART, inner  # x.f().g(): x
        yield Change.STEP_ORDER, _method_of(_method_of(inner, node), of)  # x.g().f()
    if isinstance(of, ast.BinOp):
        new = _first(of, lambda x: _method_of(x, node))
        yield Change.STEP_ORDER, new  # (a / b).f(): a.f() / b.f()
    if name in ("tril", "triu") and not node.args:
        yield from _diagonal(node)
    if name in REDUCTIONS and not node.args + node.keywords:
        word = {"min": "amin", "max": "amax"}.get(name, name)
        for how in ("dim=-1, keepdim=True", "dim=-1", "dim=0", "dim=1"):
            new = parsed(f"({source_of(of)}).{word}({how})")
            yield Change.DIM, new  # x.sum(): x.sum(dim=-1)
    if name == "repeat" and sum(literal(n) != 1 for n in node.args) == 1:
        dim = next(i for i, n in enumerate(node.args) if literal(n) != 1)
        func = remade(node.func, attr="repeat_interleave")
        keywords = [ast.keyword("dim", ast.Constant(dim))]
        new = ast.Call(func, [node.args[dim]], keywords)
        yield Change.FUNCTION, new  # x.repeat(1, n): x.repeat_interleave(n, dim=1)


def _first(of: ast.BinOp, put: Callable[[ast.expr], ast.expr]) -> ast.BinOp:
    """f(a) * f(b), where f(a * b) is; put(x): f(x)."""
    right = of.right if literal(of.right) is not None else put(of.right)
    return ast.BinOp(put(of.left), of.op, right)


def _method_of(x: ast.expr, node: Any) -> ast.Call:
    """x.f(...), where y.f(...) is."""
    return remade(node, func=remade(node.func, value=x))


def _is_method(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def _diagonal(node: ast.Call) -> Iterator[tuple[Change, Any]]:
    for by in (-1, 1) if not node.keywords else ():
        more = ast.keyword("diagonal", parsed(f"{by}"))
        yield Change.INDEX, remade(node, keywords=[more])  # x.tril(diagonal=-1)


def _subscript(node: Any) -> Iterator[tuple[Change, Any]]:
    where, loaded = node.slice, isinstance(node.ctx, ast.Load)
    if loaded:
        yield Change.PART, node.value  # x[i]: x
    if not isinstance(where, ast.Tuple):
        new: Any = parsed(f"({source_of(node.value)})[:, {source_of(where)}]")
        new.ctx = node.ctx
        yield Change.INDEX, new  # x[i]: x[:, i]
        return
    for order in _other_places(where.elts):
        index = order[0] if len(order) == 1 else remade(where, elts=order)
        if ast.dump(index) != ast.dump(where):
            yield Change.INDEX, remade(node, slice=index)  # x[:, i]: x[:, i + 1]


def _other_places(places: list[ast.expr]) -> Iterator[list[ast.expr]]:
    """What may stand within [a, b] in place of a, b."""
    whole = {0: ast.Slice(), -1: ast.Slice(parsed("-1"))}
    if len(places) > 1:
        yield places[1:]  # x[i, j]: x[j]
    yield [whole.get(literal(at), at) for at in places]  # x[0, j]: x[:, j]
    for i, j in itertools.combinations(range(len(places)), 2):
        order = [*places]
        order[i], order[j] = places[j], places[i]
        yield order  # x[i, j]: x[j, i]
    for i, at in enumerate(places):
        others: list[ast.expr] = []
        if isinstance(at, ast.Name):
            others += [ast.Slice(at), parsed("-1")]  # x[i, j]: x[i:, j], x[-1, j]
        one = at.elts[0] if isinstance(at, ast.List) and len(at.elts) == 1 else at
        if literal(one) is None and not isinstance(one, (ast.Slice, ast.BinOp)):
            for by in (1, -1):  # x[i, j]: x[i + 1, j]; x[:, [k]]: x[:, [k + 1]]
                other = _plus(one, by)
                others.append(other if one is at else ast.List([other], ast.Load()))
        for other in others:
            yield [*places[:i], other, *places[i + 1 :]]


def _slice(node: ast.Slice) -> Iterator[tuple[Change, Any]]:
    for bound, value in (("lower", node.lower), ("upper", node.upper)):
        if value is None:
            continue
        others = [remade(node, **{bound: None})]
        if literal(value) is None and not isinstance(value, ast.BinOp):
            others += [remade(node, **{bound: _plus(value, by)}) for by in (1, -1)]
        if bound == "upper" and node.lower and literal(value) is None:
            both = ast.BinOp(node.lower, ast.Add(), value)
            others.append(remade(node, upper=both))  # x[i:n]: x[i : i + n]
        for new in others:
            yield Change.INDEX, new  # x[:t]: x[:], x[: t + 1]


def _attribute(node: ast.Attribute) -> Iterator[tuple[Change, Any]]:
    if node.attr in ("T", "mT"):
        yield Change.PART, node.value  # x.T: x


RULES: dict[type, Callable[[Any], Iterator[tuple[Change, Any]]]] = {
    ast.Attribute: _attribute,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
}


def _name(
    node: ast.Name, owner: ast.AST, names: Sequence[str]
) -> Iterator[tuple[Change, Any]]:
    """Another name of the function's; a global one may stand there, too."""
    is_called = isinstance(owner, ast.Call) and owner.func is node
    if isinstance(node.ctx, ast.Load) and not is_called:
        for other in names if node.id not in (*MODULES, "self") else ():
            if other != node.id:
                yield Change.NAME, ast.Name(other, ast.Load())  # q: k


def _tuple(node: ast.Tuple | ast.List, owner: ast.AST) -> Iterator[tuple[Change, Any]]:
    """Two of several have changed places."""
    if isinstance(owner, (ast.Return, ast.Assign, ast.For, ast.Call, ast.Tuple)):
        for i, j in itertools.combinations(range(len(node.elts)), 2):
            order = list(node.elts)
            order[i], order[j] = order[j], order[i]
            yield Change.ORDER, remade(node, elts=order)  # return a, b: return b, a


def _statement(line: ast.stmt) -> Iterator[tuple[Change, Any]]:
    """A line that is left out, or two names in it that have changed places."""
    kinds = ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.Break
    if isinstance(line, kinds):
        if not isinstance(getattr(line, "value", None), ast.Constant):
            yield Change.LINE, ast.Pass()  # the line is left out
    if isinstance(line, (ast.Assign, ast.Return)) and line.value is not None:
        for first, second in itertools.combinations(_used(line.value)[:6], 2):
            value = replaced(line.value)
            for node in ast.walk(value):
                if isinstance(node, ast.Name):
                    node.id = {first: second, second: first}.get(node.id, node.id)
            yield Change.ORDER, remade(line, value=value)  # a @ b.T: b @ a.T


def _used(value: ast.expr) -> list[str]:
    """Names in an expression that are not called."""
    functions = [n.func for n in ast.walk(value) if isinstance(n, ast.Call)]
    every = (n for n in ast.walk(value) if isinstance(n, ast.Name))
    names = [n for n in every if n not in functions]
    return list(dict.fromkeys(n.id for n in names if n.id not in (*MODULES, "self")))
