"""The slips that learners make: rules that change one place of a right program."""

import ast
import contextlib
import itertools
from typing import Any, NamedTuple

from minigpt.course.checks.reading import copied

SISTERS = [  # names that are taken for each other
    {"mean", "sum", "max", "min", "median"},
    {"softmax", "log_softmax", "sigmoid"},
    {"log", "log2", "log10", "exp"},
    {"zeros", "ones"},
    {"square", "abs", "sqrt", "rsqrt"},
    {"cat", "stack"},
    {"repeat_interleave", "repeat"},
    {"arange", "randperm"},
]
SISTERS += [{"any", "all"}, {"argmax", "argmin"}, {"tril", "triu"}, {"sum", "len"}]
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
    ast.Eq: [ast.NotEq, ast.Lt, ast.Gt],
    ast.NotEq: [ast.Eq, ast.Lt, ast.Gt],
}
OPERATORS |= {ast.In: [ast.NotIn], ast.NotIn: [ast.In]}
HOLE = "hole__"
MODULES = ("F", "torch", "nn", "math")


class Slip(NamedTuple):
    """One change of a tree: owner.field (or owner.field[at]) becomes `new`."""

    likely: int  # 0 first; 9 puts in what the other program has
    says: str  # "`dim=1` where `dim=-1` belongs"
    owner: ast.AST
    field: str
    at: int | None
    new: Any


def _text(node):
    try:
        return ast.unparse(node)
    except AttributeError:  # a new statement stands on no line yet
        return ast.unparse(ast.fix_missing_locations(node))


def head(node):
    """A statement's first line."""
    return next(line for line in _text(node).splitlines() if line[:1] != "@")


def _parsed(text):
    return ast.parse(text, mode="eval").body


def remade(node, **changed):
    """A new node like it, with other fields; its children are shared."""
    return type(node)(**{**dict(ast.iter_fields(node)), **changed})


def _instead(new, old):
    """(what to say, the new one), of a part in place of another."""
    return f"`{_text(new)}` where `{_text(old)}` belongs", new


def _literal(node):
    """A literal's number, or None."""
    if isinstance(node, (ast.Constant, ast.UnaryOp)):
        with contextlib.suppress(ValueError):
            value = ast.literal_eval(node)
            return value if type(value) in (int, float) else None


def _called(node):
    """The last name of what is called: "softmax" of F.softmax(...)."""
    func = node.func if isinstance(node, ast.Call) else None
    return getattr(func, "attr", getattr(func, "id", ""))


def slips(owner, lacks=(), names=()):
    """Yield all slips in a tree; names: what its function is given and assigns.

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
                for likely, says, new in _of_line(line):
                    yield Slip(likely, says, owner, field, at, new)
        for i, node in enumerate(some):
            if isinstance(node, ast.AST):
                at = i if some is value else None
                for likely, says, new in _changes(node, owner, names):
                    yield Slip(likely, says, owner, field, at, new)
                if field != "func" and (is_whole(node) or _literal(node)):
                    for text in (t for t in lacks if is_whole(node) == (HOLE in t)):
                        new = _parsed(text.replace(HOLE, f"({_text(node)})"))
                        likely = 3 if text[0].isdigit() else 10 - (HOLE in text)
                        likely = 1 if text[0] in "-~" else likely
                        says = _instead(new, node)[0]
                        yield Slip(likely, says, owner, field, at, new)
                yield from slips(node, lacks, names)


def is_whole(node):
    """Whether a node is an expression that a program computes with."""
    if isinstance(node, ast.Name) and node.id in (*MODULES, "self"):
        return False
    stored = isinstance(getattr(node, "ctx", None), ast.Store)
    whole = ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp
    return isinstance(node, whole) and not stored


def _stored(lines):
    """The names that some lines assign."""
    nodes = itertools.chain.from_iterable(map(ast.walk, lines))
    names = (n for n in nodes if isinstance(n, ast.Name))
    return [n.id for n in names if isinstance(n.ctx, ast.Store)]


def _changes(node, owner, names):
    """Yield (likely, says, new node) for a node in its place."""
    if isinstance(owner, ast.UnaryOp) and _literal(owner) is not None:
        return  # the whole number was changed
    number = _literal(node)
    if number is not None:
        yield from _numbers(number, owner)
    elif type(node) in RULES:
        yield from RULES[type(node)](node, owner, names)


def _numbers(number, owner):
    key = ""
    if isinstance(owner, ast.keyword) and owner.arg in ("dim", "dims", "axis"):
        key, others = f"{owner.arg}=", [-1, 0, 1, 2, -2, (-2, -1), (0, -1), (0, 1)]
    elif isinstance(number, int):
        others = [number - 1, number + 1, -number, 0, 2 * number, -1]
    else:
        others = [-number, 1 - number, 1.0, 0.0, 2 * number, number / 2]
    index = "the index " * isinstance(owner, (ast.Slice, ast.Subscript))
    for other in dict.fromkeys(others):
        if other != number or type(other) is not type(number):
            says = f"{index}`{key}{other}` where `{key}{number}` belongs"
            yield 0 if key else 2, says, _parsed(repr(other))


def _unary(node, owner, names):
    sign = {ast.USub: "the minus", ast.Not: "the `not`", ast.Invert: "the `~`"}
    if type(node.op) in sign:
        says = f"{sign[type(node.op)]} before `{_text(node.operand)}` left out"
        yield 0, says, node.operand


def _binary(node, owner, names):
    left, right, kind, gap = node.left, node.right, type(node.op), ast.Name("_")
    behind = _text(ast.BinOp(gap, node.op, right))[2:]  # a gap, so that brackets stay
    root = _literal(right) == 0.5 and kind is ast.Pow
    yield 1, f"the root left out (`{behind}`)" if root else f"`{behind}` left out", left
    if not root:
        yield 2, f"`{_text(ast.BinOp(left, node.op, gap))[:-2]}` left out", right
    for new in _nested(right, "left", lambda x: ast.BinOp(left, node.op, x), kind):
        yield 1, *_instead(new, node)
    for new in _nested(left, "right", lambda x: ast.BinOp(x, node.op, right), kind):
        yield 1, *_instead(new, node)
    if kind is ast.Div and isinstance(right, ast.Name):
        new = remade(node, right=_parsed(f"{right.id} + 1"))
        yield 3, *_instead(new, node)
    if _literal(left) is None or _literal(right) is None:
        for other in OPERATORS.get(kind, ()):
            yield 1, *_instead(ast.BinOp(left, other(), right), node)
    if kind in (ast.Sub, ast.Div):
        yield 1, *_instead(ast.BinOp(right, node.op, left), node)


def _nested(part, side, put, kind):
    """Yield a part with put(x) for each x down one side: with other brackets."""
    if isinstance(part, ast.BinOp) and type(part.op) is not kind:
        end = getattr(part, side)
        for new in (put(end), *_nested(end, side, put, kind)):
            yield remade(part, **{side: new})


def _boolean(node, owner, names):
    for part in node.values:
        rest = [value for value in node.values if value is not part]
        new = remade(node, values=rest) if rest[1:] else rest[0]
        yield 1, f"`{_text(part)}` left out in `{_text(node)}`", new


def _compare(node, owner, names):
    for other in OPERATORS.get(type(node.ops[0]), ()) if len(node.ops) == 1 else ():
        yield 0, *_instead(remade(node, ops=[other()]), node)


def _call(node, owner, names):
    name, args, text = _called(node), node.args, _text(node)
    method = isinstance(node.func, ast.Attribute)
    inner = node.func.value if method else None
    module = isinstance(inner, ast.Name) and inner.id in MODULES
    for part in node.keywords:
        rest = [k for k in node.keywords if k is not part]
        yield 0, f"`{_text(part)}` left out in `{text}`", remade(node, keywords=rest)
    if method and not module:
        rest = "." + _text(remade(node, func=ast.Name(name)))
        yield 0 if name in ("transpose", "clone") else 1, f"`{rest}` left out", inner
    for i, j in itertools.combinations(range(len(args)), 2) if len(args) < 6 else ():
        if ast.dump(args[i]) != ast.dump(args[j]):
            swapped = list(args)
            swapped[i], swapped[j] = swapped[j], swapped[i]
            new, likely = remade(node, args=swapped), 1 if len(args) == 2 else 3
            yield likely, f"two arguments exchanged: `{_text(new)}`", new
    for other in sorted(set().union(*(s for s in SISTERS if name in s)) - {name}):
        func = remade(node.func, **{"attr" if method else "id": other})
        yield 2, f"`{other}` where `{name}` belongs", remade(node, func=func)
    if name in SISTERS[0] and method and not module and not args + node.keywords:
        word = {"min": "amin", "max": "amax"}.get(name, name)
        for how in ("dim=-1, keepdim=True", "dim=-1", "dim=0", "dim=1"):
            new = _parsed(f"({_text(inner)}).{word}({how})")
            yield 1, f"`.{word}({how})` where `.{name}()` belongs", new
    if name in ("tril", "triu") and len(args) == 1 - (method and not module):
        for by in (-1, 1) if not node.keywords else ():
            more = ast.keyword("diagonal", _parsed(f"{by}"))
            yield 1, *_instead(remade(node, keywords=[more]), node)
    if text == "float('-inf')":
        yield 3, f"`0.0` where `{text}` belongs", _parsed("0.0")


def _subscript(node, owner, names):
    where = node.slice
    if isinstance(node.ctx, ast.Load):
        index = _text(remade(node, value=ast.Name("_")))[1:]
        yield 2, f"the index `{index}` left out", node.value
    if isinstance(node.ctx, ast.Load) and isinstance(where, ast.Name):
        yield 3, *_instead(remade(node, slice=_parsed("-1")), node)
    if not isinstance(where, ast.Tuple):
        new = _parsed(f"({_text(node.value)})[:, {_text(where)}]")
        new.ctx = node.ctx
        yield 2, *_instead(new, node)
    else:
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
        for order in orders:
            index = order[0] if len(order) == 1 else remade(where, elts=order)
            if ast.dump(index) != ast.dump(where):
                yield 1, *_instead(remade(node, slice=index), node)


def _slice(node, owner, names):
    for bound, value in (("lower", node.lower), ("upper", node.upper)):
        if value is None:
            continue
        others = [remade(node, **{bound: None})]
        if _literal(value) is None and not isinstance(value, ast.BinOp):
            for by in ("+ 1", "- 1"):
                more = _parsed(f"{_text(value)} {by}")
                others.append(remade(node, **{bound: more}))
        if bound == "upper" and node.lower and _literal(value) is None:
            both = ast.BinOp(node.lower, ast.Add(), value)
            others.append(remade(node, upper=both))  # where a count stands for an end
        if getattr(node, "lower" if bound == "upper" else "upper") is None:
            single = value.left if isinstance(value, ast.BinOp) else value
            others += [single, ast.Slice(node.upper, node.lower)]
        for new in others:
            yield 1, f"`[{_text(new)}]` where `[{_text(node)}]` belongs", new


def _name(node, owner, names):
    if not isinstance(node.ctx, ast.Load):
        return
    for other in names if node.id in names else ():
        if other != node.id:
            place = _text(owner) if isinstance(owner, ast.expr) else node.id
            says = f"`{other}` where `{node.id}` belongs"
            inside = f" in `{place}`" * (place != node.id)
            yield 6, says + inside, ast.Name(other, ast.Load())


def _tuple(node, owner, names):
    if isinstance(owner, (ast.Return, ast.Assign, ast.For, ast.Call, ast.Tuple)):
        for i, j in itertools.combinations(range(len(node.elts)), 2):
            order = list(node.elts)
            order[i], order[j] = order[j], order[i]
            new = remade(node, elts=order)
            likely = 1 if isinstance(node.ctx, ast.Load) else 3
            yield likely, f"two values exchanged: `{_text(new)}`", new


def _attribute(node, owner, names):
    if node.attr in ("T", "mT"):
        yield 0, f"`.{node.attr}` left out", node.value


RULES = {ast.Attribute: _attribute, ast.UnaryOp: _unary, ast.BinOp: _binary}
RULES |= {ast.BoolOp: _boolean, ast.Compare: _compare, ast.Call: _call}
RULES |= {ast.Subscript: _subscript, ast.Slice: _slice, ast.Name: _name}
RULES |= {ast.Tuple: _tuple, ast.List: _tuple}


def _of_line(line):
    """Slips with a whole line."""
    kinds = ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.Break
    if isinstance(line, kinds):
        if not isinstance(getattr(line, "value", None), ast.Constant):
            yield 0, f"the line `{head(line)}` left out", ast.Pass()
    if isinstance(line, ast.AugAssign):
        yield 9, *_instead(ast.Assign([line.target], line.value, lineno=0), line)
    elif isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
        more = ast.AugAssign(line.targets[0], ast.Add(), line.value)
        yield 9, *_instead(more, line)
    if isinstance(line, (ast.Assign, ast.Return)) and line.value is not None:
        for first, second in itertools.combinations(_used(line.value)[:6], 2):
            value = copied(line.value)
            for node in ast.walk(value):
                if isinstance(node, ast.Name):
                    node.id = {first: second, second: first}.get(node.id, node.id)
            says = f"`{first}` and `{second}` exchanged in `{head(line)}`"
            yield 2, says, remade(line, value=value)


def _used(value):
    """Names in an expression that are not called."""
    called = [n.func for n in ast.walk(value) if isinstance(n, ast.Call)]
    names = [n for n in ast.walk(value) if isinstance(n, ast.Name) and n not in called]
    return list(dict.fromkeys(n.id for n in names if n.id not in (*MODULES, "self")))
