"""Wrong programs made from a right one: the slips of a pen, one at a time.

A slip changes one place of a solution as learners do: another dim, a slice one too
long, a sign, a line left out. A check runs these programs; one that gives what the
learner's gives says what the mistake is, though nobody listed it (mutation testing,
DeMillo, Lipton and Sayward, 1978, turned round).
"""

import ast
import functools
import itertools
from copy import deepcopy
from typing import Any, NamedTuple

SISTERS = [  # names that are taken for each other
    {"mean", "sum", "max", "min", "median"},
    {"any", "all"},
    {"argmax", "argmin"},
    {"softmax", "log_softmax", "sigmoid"},
    {"log", "log2", "log10", "exp"},
    {"tril", "triu"},
    {"std", "var"},
    {"zeros", "ones", "rand", "randn"},
    {"zeros_", "ones_"},
    {"sum", "len"},
    {"square", "abs", "sqrt", "rsqrt"},
    {"AdamW", "Adam", "SGD"},
    {"floor", "ceil", "round"},
    {"sin", "cos"},
    {"relu", "gelu", "silu", "sigmoid", "tanh"},
    {"cumsum", "cumprod", "cummax"},
    {"argsort", "sort"},
    {"values", "indices"},
    {"row", "column"},
    {"train", "val"},
    {"append", "extend"},
    {"view", "reshape", "transpose"},
    {"cat", "stack"},
]
WORDS = [{"mean", "sum", "none"}, {"train", "val"}, {"first", "second"}]
OPERATORS = {  # what is taken for what
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div, ast.Add],
    ast.Div: [ast.Mult, ast.FloorDiv],
    ast.FloorDiv: [ast.Div, ast.Mod],
    ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
    ast.MatMult: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.GtE],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE],
    ast.Eq: [ast.NotEq, ast.Lt, ast.Gt],
    ast.NotEq: [ast.Eq, ast.Lt, ast.Gt],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}
ORDERED = (ast.List, ast.Tuple, ast.ListComp, ast.JoinedStr)
ONE_WAY = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
SIZES = {"dim", "dims", "axis"}
CHAINED = {  # calls that are made in the wrong order
    *("mean", "sum", "log", "exp", "sqrt", "square", "abs", "softmax", "pow"),
    *("amax", "round", "cumsum"),
}
IN_MEMORY = (
    "a `view` or `reshape` to that shape, which leaves the numbers in memory order,"
)
FORMS = {  # what belongs: what is written instead  # how that is called, if it is
    "_a ** 0.5": ["_a  # the root left out (`** 0.5`)", "_a ** -0.5"],
    "_a ** -0.5": ["_a  # the root left out (`** -0.5`)", "_a ** 0.5"],
    "_a ** 2": ["_a  # the square left out (`** 2`)", "_a.abs()"],
    "_a.pow(2)": ["_a.abs()"],
    "sum(_e for _v in _s) ** 0.5": ["sum(_e ** 0.5 for _v in _s)"],
    "sum(_e for _v in _s).sqrt()": ["sum(_e.sqrt() for _v in _s)"],
    "_a @ _b": [
        f"{new}  # a transpose too many: `{{new}}`"
        for new in ("_a @ _b.mT", "_a.mT @ _b", "_a.mT @ _b.mT")
    ],
    'float("-inf")': ["0.0", "1.0", "-1.0", 'float("inf")'],
    "F.cross_entropy(_x, *_a, **_k)": [
        "F.cross_entropy(F.softmax(_x, dim=-1), *_a, **_k)  # softmax twice: `{new}`"
    ],
    "F.softmax(_x, dim=-1)": [
        "F.one_hot(_x.argmax(-1), _x.shape[-1]).float()  # the largest alone "
        "(`argmax`), where `{old}` lets all of them count"
    ],
    "_x.mean(*_a, **_k)": [
        "-(-_x).exp().mean(*_a, **_k).log()  # the mean of the probabilities, and its "
        "logarithm then, where the mean of their logarithms belongs"
    ],
    "_x.append(_y)": ["_x.insert(0, _y)"],
    "_x.exp()": ["2 ** _x"],
    "torch.exp(_x)": ["2 ** _x"],
    "math.exp(_x)": ["2 ** _x"],
    "range(_n)": [
        *("range(1, _n)", "range(_n - 1)", "range(_n + 1)", "range(1, _n + 1)")
    ],
    "torch.arange(_n, **_k)": [
        *("torch.arange(1, _n + 1, **_k)", "torch.arange(-1, _n - 1, **_k)"),
        *("torch.arange(_n, **_k).flip(0)", "torch.arange(_n, **_k) * 0"),
        "torch.full((_n,), _n - 1)  # the same `{old}` for all: its last number",
    ],
    "enumerate(_x)": ["enumerate(_x, 1)"],
    "_x.index(*_a)": ["_x.index(*_a) + 1", "_x.index(*_a) - 1"],
    "_x.argmax(*_a, **_k)": ["_x.argmax(*_a, **_k) + 1", "_x.argmax(*_a, **_k) - 1"],
    "len(_x)": ["len(_x) + 1", "len(_x) - 1"],
    "_x.bool()": ["~_x.bool()  # the mask the wrong way round: `{new}`"],
    "_x.transpose(_i, _j)": [
        f"_x.reshape(_x.transpose(_i, _j).shape)  # {IN_MEMORY} where `{{old}}` belongs"
    ],
    "_x.transpose(1, 2).reshape(_a, _b, _c)": [
        "_x.reshape(_a, _c, _b).transpose(1, 2)"
    ],
    "_x[:, _i]": [
        "_x.mean(dim=1)  # the mean over dimension 1, where `{old}` belongs",
        "_x[-1:, _i].expand_as(_x[:, _i])  # the last row of the batch for all",
        "_x[:1, _i].expand_as(_x[:, _i])  # the first row of the batch for all",
    ],
    **{
        f"_x.{name}(_n)": [f"_x.{name}(_n + 1)", f"_x.{name}(_n - 1)"]
        for name in ("tril", "triu", "roll")
    },
    **{
        f"{start})": [f"{start}diagonal=-1)", f"{start}diagonal=1)"]
        for start in ("_x.tril(", "_x.triu(", "torch.tril(_x, ", "torch.triu(_x, ")
    },
    **{
        f"_x.{name}()": [
            f"_x.{name}(dim={dim}{keep})"
            for dim in (0, -1)
            for keep in (", keepdim=True", "")
        ]
        for name in ("sum", "mean", "norm", "std", "var")
    },
}
RESULTS = {  # what is done to a result at the end: how that is called, how likely it is
    "x.mean(dim=0)": ("a mean over dimension 0", 3),
    "x.sum(dim=0)": ("a sum over dimension 0", 3),
    "x[-1]": ("nothing but the last entry kept (`[-1]`)", 3),
    "x[0]": ("nothing but the first entry kept (`[0]`)", 3),
    "x.cumsum(dim=0)": ("a running sum", 3),
    "x.cumsum(dim=0) / (x * 0 + 1).cumsum(dim=0)": ("a mean of all entries so far", 3),
    "x.mT": ("a transpose", 5),
    "1 - x": ("`1 - …`", 5),
    "x / 0.6931471805599453": ("a division by ln 2 (bits)", 5),
}


class Slip(NamedTuple):
    """One change of a tree: owner.field (or owner.field[at]) becomes `new`."""

    likely: int  # 0 first; 5 in pairs only, for alone it is a symptom
    says: str  # "`dim=1` where `dim=-1` belongs"
    wrong: str  # what now stands there, to be looked for in the learner's code
    owner: ast.AST
    field: str
    at: int | None
    new: Any


class Mutant(NamedTuple):
    """says, wrong: of its slips; line: as it now stands; program: code to exec.

    wrong: of the first. A pair's line is "".
    """

    says: str
    wrong: str
    line: str
    program: Any


def _made(some):
    """Make slips in their tree; returns what undoes them, the last one first."""
    undo = []
    for slip in some:
        holder = getattr(slip.owner, slip.field)
        if slip.at is None:
            undo.append((setattr, slip.owner, slip.field, holder))
            setattr(slip.owner, slip.field, slip.new)
        elif slip.at < len(holder):  # another slip may have shortened it
            undo.append((list.__setitem__, holder, slip.at, holder[slip.at]))
            holder[slip.at] = slip.new
    return undo[::-1]


def mutants(source, pairs=False, without=()):
    """Yield a Mutant of a program's text for each slip, or pair of slips.

    The likeliest come first. Slips that cannot be compiled are left out, and pairs
    with a slip whose `says` is in `without`.
    """
    tree = ast.parse(source)
    found = sorted(slips(tree), key=lambda slip: slip.likely)
    statement = _statements(tree)
    for slip in found:
        for new in slip.new if isinstance(slip.new, list) else [slip.new]:
            ast.fix_missing_locations(new)
    if pairs:  # names exchanged are many, and two of them explain anything
        chosen = _pairs([s for s in found if s.likely < 6 and s.says not in without])
    else:  # the same slip wherever the same thing stands comes last
        alike = {}
        found = [slip for slip in found if slip.likely != 5]
        for slip in found:
            alike.setdefault(slip.says, []).append(slip)
        every = [some for some in alike.values() if len(some) > 1]
        chosen = [*([slip] for slip in found), *every]
    for some in chosen:
        undo = _made(some)
        try:
            program = compile(tree, "<slip>", "exec")
            line = "" if some[1:] else _shown(some[0], statement)
        except (SyntaxError, ValueError, TypeError):
            continue
        finally:
            for put, *place in undo:
                put(*place)
        says = ", and ".join(dict.fromkeys(slip.says for slip in some))
        if len(some) > 1 and not pairs:
            says += ", each time" if len(some) > 2 else ", both times"
        yield Mutant(says, some[0].wrong, line, program)


def _pairs(found):
    """Yield two slips of different places, the likeliest first, one after the other."""
    groups = {
        likely: list(some)
        for likely, some in itertools.groupby(found, key=lambda slip: slip.likely)
    }
    both = itertools.combinations_with_replacement(groups, 2)
    for low, high in sorted(both, key=sum):
        if low == high:
            pairs = itertools.combinations(groups[low], 2)
        else:
            pairs = itertools.product(groups[low], groups[high])
        for a, b in pairs:
            elsewhere = (a.owner, a.field, a.at) != (b.owner, b.field, b.at)
            if elsewhere and a.says != b.says:
                yield a, b


def _statements(tree):
    """id of a node -> the innermost statement that holds it."""
    found = {}

    def visit(node, statement):
        statement = node if isinstance(node, ast.stmt) else statement
        found[id(node)] = statement
        for child in ast.iter_child_nodes(node):
            visit(child, statement)

    visit(tree, tree)
    return found


def _shown(slip, statement):
    """The line that has a slip, as it now stands; "" where it is more than a line."""
    if isinstance(slip.new, ast.Pass | list):
        return ""
    line = slip.new if isinstance(slip.new, ast.stmt) else statement[id(slip.owner)]
    return "" if isinstance(line, (ast.FunctionDef, ast.ClassDef)) else _head(line)


def _head(node):
    """A statement's first line."""
    try:
        lines = _text(node).splitlines()
    except Exception:  # half of a node
        return ""
    return next((line for line in lines if not line.startswith("@")), "")


class Scope(NamedTuple):
    """What a place of a tree can be mistaken with.

    names: what its function is given and assigns. attributes: of each object, those
    that the program uses. indices, returned: ids of the tuples that stand in an index,
    or behind a return.
    """

    names: list
    attributes: dict
    indices: set
    returned: set


def slips(tree):
    """Yield each Slip that the rules below find in a tree."""
    scope = Scope([], {}, set(), set())
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            scope.indices.add(id(node.slice))
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            scope.returned.add(id(node.value))
        if isinstance(node, ast.Attribute) and not _is_module(node.value):
            scope.attributes.setdefault(ast.dump(node.value), {})[node.attr] = True
    yield from _visit(tree, scope)


def _names_of(function):
    """What a function is given, then what it assigns."""
    given = [a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)]
    return list(dict.fromkeys(given + _stored(function.body)))


def _stored(lines):
    """The names that some lines assign."""
    nodes = itertools.chain.from_iterable(map(ast.walk, lines))
    names = (n for n in nodes if isinstance(n, ast.Name))
    return [n.id for n in names if isinstance(n.ctx, ast.Store)]


def _visit(owner, scope):
    if isinstance(owner, ast.FunctionDef):
        scope = scope._replace(names=_names_of(owner))
        for what, (says, likely) in RESULTS.items() if owner.name != "__init__" else ():
            text = f"lambda f: lambda *a, **k: (lambda x: {what})(f(*a, **k))"
            wrapper = [ast.parse(text, mode="eval").body, *owner.decorator_list]
            says += " at the end"
            yield Slip(likely, says, "", owner, "decorator_list", None, wrapper)
    for field, value in ast.iter_fields(owner):
        if field in ("args", "decorator_list", "returns", "annotation", "type_comment"):
            if isinstance(owner, (ast.FunctionDef, ast.AnnAssign)):
                continue  # signatures and annotations stay
        some = value if isinstance(value, list) else [value]
        if some and isinstance(some[0], ast.stmt):
            yield from _of_lines(owner, field, some, scope)
        for i, node in enumerate(some):
            if isinstance(node, ast.AST):
                at = i if some is value else None
                for likely, says, new in _changes(node, owner, scope):
                    wrong = _text(new) if isinstance(new, ast.expr) else ""
                    if isinstance(owner, ast.keyword):
                        wrong = f"{owner.arg}={wrong}"
                    yield Slip(likely, says, wrong, owner, field, at, new)
                yield from _visit(node, scope)


def _text(node):
    return ast.unparse(ast.fix_missing_locations(node))


def _instead(new, old):
    return f"`{_text(new)}` where `{_text(old)}` belongs"


def _without(part):
    return f"`{part}` left out"


def _number(value):
    """A literal: negative ones as Python writes them."""
    if isinstance(value, tuple):
        return ast.Tuple([_number(part) for part in value], ast.Load())
    if value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def _literal(node):
    """The number that a literal stands for, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inside = _literal(node.operand)
        return None if inside is None else -inside
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    return None


def _copy(node, **changed):
    """A new node like it, with other fields; its children are shared."""
    return type(node)(**{**dict(ast.iter_fields(node)), **changed})


def _is_module(node):
    return isinstance(node, ast.Name) and node.id in ("F", "torch", "nn", "math")


def _called(node):
    """The last name of what is called: "softmax" of F.softmax(...)."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            return node.func.attr
        if isinstance(node.func, ast.Name):
            return node.func.id
    return ""


def _changes(node, owner, scope):
    """Yield (likely, says, new node) for a node in its place."""
    if isinstance(owner, ast.UnaryOp) and _literal(owner) is not None:
        return  # the whole number was changed
    rule = RULES.get(type(node))
    number = _literal(node)
    if number is not None:
        yield from _numbers(node, number, owner, scope)
        return
    for form, new, words in _forms().get(type(node), ()):
        found = {}
        if _fits(form, node, found):
            changed = _Filled(found).visit(deepcopy(new))
            says = words.format(old=_text(node), new=_text(changed))
            yield 0 if words else 3, says or _instead(changed, node), changed
    if rule:
        yield from rule(node, owner, scope)


@functools.cache
def _forms():
    """{type of node: [(the form that fits, what is written instead, words)]}."""
    found = {}
    for form, others in FORMS.items():
        tree = ast.parse(form, mode="eval").body
        for other in others:
            new, _, words = other.partition("  # ")
            one = tree, ast.parse(new, mode="eval").body, words
            found.setdefault(type(tree), []).append(one)
    return found


def _rest(parts):
    """The name of the rest that ends a form's arguments (`*_a`, `**_k`), or None."""
    last = parts[-1] if parts else None
    open_ended = isinstance(last, ast.Starred) or getattr(last, "arg", "") is None
    return last.value.id if open_ended else None


def _fits(form, node, found):
    """Whether a node has a form; `found` gets what stands for its names `_x`."""
    if isinstance(form, ast.Name) and form.id.startswith("_"):
        alike = found.setdefault(form.id, node)
        return isinstance(node, ast.expr) and ast.dump(alike) == ast.dump(node)
    if not isinstance(form, ast.AST):
        return form == node
    if type(form) is not type(node):
        return False
    for field, part in ast.iter_fields(form):
        other = getattr(node, field)
        if isinstance(part, list):
            if rest := _rest(part):
                part = part[:-1]
                found[rest], other = other[len(part) :], other[: len(part)]
            if len(part) != len(other):
                return False
            if not all(_fits(*both, found) for both in zip(part, other)):
                return False
        elif field != "ctx" and not _fits(part, other, found):
            return False
    return True


class _Filled(ast.NodeTransformer):
    """Puts what was found for the names of a form in their places."""

    def __init__(self, found):
        self.found = found

    def visit_Name(self, node):
        return self.found.get(node.id, node)

    def visit_Call(self, node):
        for field in ("args", "keywords"):
            parts = getattr(node, field)
            if rest := _rest(parts):
                parts[-1:] = self.found[rest]
        return self.generic_visit(node)


def _numbers(node, number, owner, scope):
    dim = isinstance(owner, ast.keyword) and owner.arg in SIZES
    if isinstance(number, int):
        if dim:
            others = [-1, 0, 1, 2, -2, (-2, -1), (0, -1), (0, 1)]
        else:
            others = [number - 1, number + 1, -number, 0, 2 * number, -1]
            if number == 4:
                others += [2, 1]
    else:
        others = [-number, 1 - number, 1.0, 0.0, 2 * number, number / 2, number / 10]
    for other in dict.fromkeys(others):
        if other == number and type(other) is type(number):
            continue
        if dim:
            says = f"`{owner.arg}={other}` where `{owner.arg}={number}` belongs"
        elif (
            isinstance(owner, (ast.Slice, ast.Subscript)) or id(owner) in scope.indices
        ):
            says = f"the index `{other}` where `{number}` belongs"
        else:
            says = f"`{other}` where `{number}` belongs"
        yield 0 if dim else 2, says, _number(other)


def _constant(node, owner, scope):
    if isinstance(node.value, bool):
        new = ast.Constant(not node.value)
        key = f"{owner.arg}=" if isinstance(owner, ast.keyword) else ""
        yield 1, f"`{key}{new.value}` where `{key}{node.value}` belongs", new
    if isinstance(node.value, str):
        for words in WORDS:
            for word in sorted(words - {node.value}) if node.value in words else ():
                new = ast.Constant(word)
                yield 2, _instead(new, node), new


def _unary(node, owner, scope):
    sign = {ast.USub: "the minus", ast.Not: "the `not`", ast.Invert: "the `~`"}
    if type(node.op) in sign:
        says = f"{sign[type(node.op)]} before `{_text(node.operand)}` left out"
        yield 0, says, node.operand


def _binary(node, owner, scope):
    left, right, kind = node.left, node.right, type(node.op)
    sign = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b")))[2:-2]
    if kind is not ast.Pow or _literal(right) is None:
        gap = ast.Name("_")  # so that brackets stay
        yield 1, _without(_text(ast.BinOp(gap, node.op, right))[2:]), left
        yield 2, _without(_text(ast.BinOp(left, node.op, gap))[:-2]), right
    literals = _literal(left) is not None and _literal(right) is not None
    for other in OPERATORS.get(kind, ()) if not literals else ():
        new = ast.BinOp(left, other(), right)
        yield 1, _instead(new, node), new
    parts = [part for side in (left, right) for part in ast.walk(side)]
    joined = kind is ast.Add and any(
        isinstance(part, ORDERED) or isinstance(getattr(part, "value", 0), str)
        for part in parts
    )
    if kind in ONE_WAY or joined:
        new = ast.BinOp(right, node.op, left)
        yield 1, f"the two sides of `{sign}` exchanged: `{_text(new)}`", new
    if kind is ast.Div and not isinstance(right, ast.Name):
        for name in scope.names:
            for text in (name, f"len({name})"):
                size = ast.parse(text, mode="eval").body
                new = ast.BinOp(left, node.op, size)
                yield 3, _instead(new, node), new
    if kind in (ast.Mult, ast.Div, ast.FloorDiv, ast.Pow):  # brackets forgotten
        if isinstance(left, ast.BinOp) and isinstance(left.op, (ast.Add, ast.Sub)):
            a, b = left.left, left.right
            for first, second in (
                (a, ast.BinOp(b, node.op, right)),
                (ast.BinOp(a, node.op, right), b),
            ):
                new = ast.BinOp(first, left.op, second)
                yield 1, f"other brackets: `{_text(new)}`", new
        if isinstance(right, ast.BinOp) and not isinstance(right.op, ast.Pow):
            new = ast.BinOp(ast.BinOp(left, node.op, right.left), right.op, right.right)
            yield 1, f"other brackets: `{_text(new)}`", new


def _compare(node, owner, scope):
    if len(node.ops) == 1:
        for other in OPERATORS.get(type(node.ops[0]), ()):
            new = _copy(node, ops=[other()])
            yield 0, _instead(new, node), new


def _bool(node, owner, scope):
    new = _copy(node, op=OPERATORS[type(node.op)][0]())
    yield 1, _instead(new, node), new
    for part in node.values:
        rest = [value for value in node.values if value is not part]
        new = rest[0] if len(rest) == 1 else _copy(node, values=rest)
        yield 1, f"the condition `{_text(part)}` left out", new


def _choice(node, owner, scope):
    yield 1, _instead(node.body, node), node.body
    yield 1, _instead(node.orelse, node), node.orelse
    new = ast.IfExp(node.test, node.orelse, node.body)
    yield 1, f"the two cases exchanged: `{_text(new)}`", new


def _call(node, owner, scope):
    name, args = _called(node), node.args
    method = isinstance(node.func, ast.Attribute)
    inner = node.func.value if method else None
    for at, keyword in enumerate(node.keywords):
        rest = [k for i, k in enumerate(node.keywords) if i != at]
        says = f"`{_text(keyword)}` left out in `{_text(node)}`"
        yield 0, says, _copy(node, keywords=rest)
    if len(node.keywords) > 1:
        says = ", ".join(map(_text, node.keywords))
        yield 1, f"`{says}` left out in `{_text(node)}`", _copy(node, keywords=[])
    module = _is_module(inner)
    if method and not module:
        rest = "." + _text(_copy(node, func=ast.Name(name)))
        yield 0 if name in ("transpose", "clone") else 1, _without(rest), inner
        before = inner.func if isinstance(inner, ast.Call) else None
        if {name, _called(inner)} <= CHAINED and isinstance(before, ast.Attribute):
            if name != before.attr and not _is_module(before.value):
                turned = _copy(node, func=_copy(node.func, value=before.value))
                new = _copy(inner, func=_copy(before, value=turned))
                yield 1, f"`{name}` before `{before.attr}`: `{_text(new)}`", new
    starred = (ast.Starred, ast.Tuple, ast.List, ast.Constant)
    if args and not isinstance(args[0], starred) and not isinstance(owner, ast.Expr):
        if name not in ("range", "zip", "enumerate") and _literal(args[0]) is None:
            says = f"`{_text(args[0])}` itself, without `{_text(node.func)}`,"
            yield 1, f"{says} where `{_text(node)}` belongs", args[0]
    if len(args) >= 1 and method and not module and name not in ("append",):
        says = f"`{_text(args[-1])}` left out in `{_text(node)}`"
        yield 1, says, _copy(node, args=args[:-1])
    if len(args) >= 2:
        for at in range(len(args)):
            rest = args[:at] + args[at + 1 :]
            says = f"`{_text(args[at])}` left out in `{_text(node)}`"
            yield 2, says, _copy(node, args=rest)
    if len(args) <= 5:
        for i, j in itertools.combinations(range(len(args)), 2):
            if ast.dump(args[i]) != ast.dump(args[j]):
                swapped = list(args)
                swapped[i], swapped[j] = swapped[j], swapped[i]
                new = _copy(node, args=swapped)
                kind = 1 if len(args) == 2 else 3
                yield kind, f"two arguments exchanged: `{_text(new)}`", new
    if not (method and not args and not node.keywords and name == "max"):
        for other in _sisters(name):
            func = _copy(node.func, **{"attr" if method else "id": other})
            new = _copy(node, func=func)
            yield 2, f"`{other}` where `{name}` belongs", new


def _sisters(name):
    return sorted(set().union(*(s for s in SISTERS if name in s)) - {name})


def _attribute(node, owner, scope):
    if node.attr in ("T", "mT"):
        yield 0, f"the transpose `.{node.attr}` left out", node.value
        return
    called = isinstance(owner, ast.Call) and owner.func is node
    for other in scope.attributes.get(ast.dump(node.value), ()):
        if other != node.attr and isinstance(node.ctx, ast.Load):
            new = _copy(node, attr=other)
            yield 4, _instead(new, node), new
    for other in () if called else _sisters(node.attr):
        yield 2, f"`.{other}` where `.{node.attr}` belongs", _copy(node, attr=other)


def _subscript(node, owner, scope):
    if isinstance(node.ctx, ast.Load):
        index = _text(_copy(node, value=ast.Name("_")))[1:]
        yield 2, f"the index `{index}` left out", node.value
    where = node.slice
    if isinstance(where, ast.Tuple):
        for i, j in itertools.combinations(range(len(where.elts)), 2):
            order = list(where.elts)
            order[i], order[j] = order[j], order[i]
            if ast.dump(order[i]) != ast.dump(order[j]):
                new = _copy(node, slice=_copy(where, elts=order))
                yield 1, _instead(new, node), new
        rest = where.elts[1:]
        new = _copy(node, slice=rest[0] if len(rest) == 1 else _copy(where, elts=rest))
        yield 1, _instead(new, node), new
    elif isinstance(where, ast.Slice):  # of time, where the batch comes first
        every = ast.Slice()
        for order in ([every, where], [ast.Constant(...), where]):
            new = _copy(node, slice=ast.Tuple(order, ast.Load()))
            yield 2, _instead(new, node), new


def _slice(node, owner, scope):
    def bare(some):
        return f"[{_text(some)}]"

    for bound in ("lower", "upper", "step"):
        value = getattr(node, bound)
        if value is None:
            continue
        new = _copy(node, **{bound: None})
        yield 1, f"`{bare(new)}` where `{bare(node)}` belongs", new
        if _literal(value) is None and bound != "step":
            for op in (ast.Add(), ast.Sub()):
                if isinstance(value, ast.BinOp) and _literal(value.right) == 1:
                    continue  # t + 1: to leave out the 1 is a slip of its own
                moved = ast.BinOp(value, op, ast.Constant(1))
                new = _copy(node, **{bound: moved})
                yield 0, f"`{bare(new)}` where `{bare(node)}` belongs", new
    if node.upper is not None and _literal(node.upper) is None and not node.step:
        moved = isinstance(node.upper, ast.BinOp) and _literal(node.upper.right) == 1
        single = node.upper.left if moved else node.upper
        for new in (ast.Slice(_number(1), node.upper), ast.Slice(single, None), single):
            yield 2, f"`{bare(new)}` where `{bare(node)}` belongs", new
        if node.lower is not None and _literal(node.lower) is None:
            new = node.lower
            yield 2, f"`{bare(new)}` where `{bare(node)}` belongs", new
    if node.lower is not None and node.upper is None:
        new = ast.Slice(None, node.lower)
        yield 1, f"`{bare(new)}` where `{bare(node)}` belongs", new
    if node.upper is not None and node.lower is None:
        new = ast.Slice(node.upper, None)
        yield 1, f"`{bare(new)}` where `{bare(node)}` belongs", new


def _name(node, owner, scope):
    masks = isinstance(owner, ast.keyword) and owner.arg.endswith("mask")
    if masks or (_called(owner) in ("masked_fill", "where") and node in owner.args[:1]):
        new = ast.UnaryOp(ast.Invert(), node)
        yield 1, f"the mask the wrong way round: `{_text(new)}`", new
    index = isinstance(owner, ast.Subscript) and owner.slice is node
    if index or isinstance(owner, ast.keyword) or id(owner) in scope.returned:
        for op in (ast.Add(), ast.Sub()) if isinstance(node.ctx, ast.Load) else ():
            new = ast.BinOp(node, op, ast.Constant(1))
            yield 3, _instead(new, node), new
    if index or id(owner) in scope.indices:
        for new in (ast.Slice(node, None), ast.Slice(None, node)):
            yield 3, f"`[{_text(new)}]` where `[{node.id}]` belongs", new
    if isinstance(node.ctx, ast.Load) and node.id in scope.names:
        for other in scope.names:
            if other != node.id:
                new = ast.Name(other, ast.Load())
                place = _text(owner) if isinstance(owner, ast.expr) else node.id
                says = f"`{other}` where `{node.id}` belongs"
                yield 6, says + f" in `{place}`" * (place != node.id), new


def _tuple(node, owner, scope):
    places = (ast.Return, ast.Assign, ast.For, ast.Call, ast.Tuple)
    if isinstance(owner, places):
        for i, j in itertools.combinations(range(len(node.elts)), 2):
            order = list(node.elts)
            order[i], order[j] = order[j], order[i]
            new = _copy(node, elts=order)
            likely = 1 if isinstance(node.ctx, ast.Load) else 3
            yield likely, f"two values exchanged: `{_text(new)}`", new
    if isinstance(owner, ast.Call) and _called(owner) in ("cat", "stack"):
        for part in node.elts if isinstance(node, ast.List) else ():
            new = _copy(node, elts=[one for one in node.elts if one is not part])
            yield 1, f"`{_text(part)}` left out in `{_text(node)}`", new


def _comprehension(node, owner, scope):
    for condition in node.ifs:
        rest = [c for c in node.ifs if c is not condition]
        says = f"the condition `if {_text(condition)}` left out"
        yield 1, says, _copy(node, ifs=rest)


RULES = {
    ast.Constant: _constant,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.BoolOp: _bool,
    ast.IfExp: _choice,
    ast.Call: _call,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Name: _name,
    ast.Tuple: _tuple,
    ast.List: _tuple,
    ast.comprehension: _comprehension,
}


def _of_lines(owner, field, lines, scope):
    """Slips with whole lines: left out, exchanged, moved into or out of a loop."""
    for at, line in enumerate(lines):
        yield from _of_line(owner, field, lines, at, line, scope)

    def moved(likely, says, new, wrong=""):
        return Slip(likely, says, wrong, owner, field, None, new)

    for at, (line, after) in enumerate(itertools.pairwise(lines)):
        before, rest = lines[:at], lines[at + 2 :]
        if not isinstance(after, (ast.Return, ast.FunctionDef, ast.ClassDef)):
            says = f"`{_head(after)}` before `{_head(line)}`"
            yield moved(1, says, [*before, after, line, *rest])
        if isinstance(line, (ast.For, ast.While, ast.If, ast.With)):
            kind = {ast.For: "loop", ast.While: "loop"}.get(type(line), "block")
            inside = _copy(line, body=[*line.body, after])
            says = f"`{_head(after)}` inside the {kind} in place of behind it"
            yield moved(1, says, [*before, inside, *rest])
            last = line.body[-1]
            if len(line.body) > 1 and not isinstance(last, ast.Return):
                outside = _copy(line, body=line.body[:-1])
                says = f"`{_head(last)}` behind the {kind} in place of inside it"
                yield moved(1, says, [*before, outside, last, after, *rest])
        for i, line in enumerate(lines[: at + 1]):
            if isinstance(after, (ast.For, ast.While)) and isinstance(line, ast.Assign):
                inside = _copy(after, body=[line, *after.body])
                others = lines[:i] + lines[i + 1 : at + 1]
                says = f"`{_head(line)}` inside the loop in place of before it"
                yield moved(1, says, [*others, inside, *rest])
        if isinstance(after, (ast.For, ast.While)):
            for i, inner in enumerate(after.body):
                if isinstance(inner, (ast.Assign, ast.Expr)) and after.body[1:]:
                    body = after.body[:i] + after.body[i + 1 :]
                    says = f"`{_head(inner)}` before the loop in place of inside it"
                    new = [*before, line, inner, _copy(after, body=body), *rest]
                    yield moved(1 + isinstance(inner, ast.Expr), says, new)


class _Exchanged(ast.NodeTransformer):
    """Puts one name for another, and the other for the one."""

    def __init__(self, first, second):
        self.other = {first: second, second: first}

    def visit_Name(self, node):
        return ast.Name(self.other.get(node.id, node.id), node.ctx)


def _used(value):
    """Names in an expression that are not called."""
    called = {id(n.func) for n in ast.walk(value) if isinstance(n, ast.Call)}
    names = [
        n.id
        for n in ast.walk(value)
        if isinstance(n, ast.Name)
        and id(n) not in called
        and n.id not in ("F", "torch", "nn", "math", "self")
    ]
    return list(dict.fromkeys(names))


def _literals(line):
    """The numbers that are written in a line, at most four."""
    nodes = (n for n in ast.walk(line) if isinstance(n, ast.Constant))
    return [n for n in nodes if type(n.value) is float][:4]


def _masked_late(owner, field, lines, at, mask):
    """The mask of a line moved behind the softmax of a later one."""
    for i, later in enumerate(lines[at + 1 :], at + 1):
        for part in ast.walk(later):
            if _called(part) == "softmax":
                func = ast.Attribute(part, "masked_fill", ast.Load())
                cut = ast.Call(func, [mask, _number(0.0)], [])
                new = _Replaced(part, cut).visit(deepcopy(later))
                says = "the mask only after the softmax: the rows no longer sum to one"
                some = [*lines[:at], *lines[at + 1 : i], new, *lines[i + 1 :]]
                yield Slip(0, says, "", owner, field, None, some)


class _Replaced(ast.NodeTransformer):
    """Puts a new node in the place of another one, known by its text."""

    def __init__(self, old, new):
        self.old, self.new = ast.dump(old), new

    def visit_Call(self, node):
        return self.new if ast.dump(node) == self.old else self.generic_visit(node)


def _of_line(owner, field, lines, at, line, scope):
    def slip(likely, says, new, wrong=""):
        return Slip(likely, says, wrong, owner, field, at, new)

    if isinstance(line, (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For)):
        if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)):
            yield slip(0, f"the line `{_head(line)}` left out", ast.Pass())
    if isinstance(line, ast.AugAssign):
        new = ast.Assign([line.target], line.value)
        yield slip(0, f"`=` where `{_head(line)}` needs its operator", new, _text(new))
        for other in OPERATORS.get(type(line.op), ()):
            new = _copy(line, op=other())
            yield slip(1, _instead(new, line), new, _text(new))
    if isinstance(line, ast.If):
        new = _copy(line, test=ast.UnaryOp(ast.Not(), line.test))
        yield slip(1, f"the condition `{_text(line.test)}` the wrong way round", new)
        new = _copy(line, test=ast.Constant(True))
        yield slip(1, f"no condition where `{_head(line)}` belongs", new)
    if isinstance(line, ast.With):
        new = ast.If(ast.Constant(True), line.body, [])
        yield slip(2, f"`{_head(line)}` left out", new)
    if isinstance(line, ast.Return) and line.value is not None:
        inside = _stored(lines[at:])  # of a comprehension
        for name in dict.fromkeys(_stored(lines[:at]) + scope.names):
            if name in inside:
                continue
            new = ast.Return(ast.Name(name, ast.Load()))
            if _text(new) != _text(line):
                says = f"`{_text(new)}` where `{_head(line)}` belongs"
                yield slip(2, says, new, _text(new))
        if isinstance(line.value, ast.Tuple):
            for part in line.value.elts:
                new = ast.Return(part)
                yield slip(1, f"only `{_text(part)}` returned", new, _text(new))
    value = getattr(line, "value", None)
    if _called(value) == "masked_fill":
        yield from _masked_late(owner, field, lines, at, value.args[0])
    if isinstance(line, (ast.Assign, ast.Return)) and isinstance(value, ast.AST):
        for first, second in itertools.combinations(_used(value)[:6], 2):
            new = _copy(line, value=_Exchanged(first, second).visit(deepcopy(value)))
            says = f"`{first}` and `{second}` exchanged in `{_head(line)}`"
            yield slip(2, says, new, _text(new))
    literals = _literals(line) if isinstance(line, (ast.Assign, ast.Return)) else []
    for i, j in itertools.combinations(range(len(literals)), 2):
        new = deepcopy(line)
        first, second = (_literals(new)[k] for k in (i, j))
        if first.value != second.value:
            first.value, second.value = second.value, first.value
            says = f"`{first.value}` and `{second.value}` exchanged in `{_text(new)}`"
            yield slip(3, says, new, _text(new))
    if isinstance(line, ast.For):
        for i, inner in enumerate(line.body):
            if isinstance(inner, ast.If) and any(
                isinstance(n, (ast.Break, ast.Continue)) for n in inner.body
            ):
                rest = line.body[:i] + line.body[i + 1 :] or [ast.Pass()]
                says = f"`{_head(inner)}` left out"
                yield slip(1, says, _copy(line, body=rest))
