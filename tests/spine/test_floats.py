"""No test compares two computed floats with `==`: their last bit is the processor's.

The rule reads the tests' syntax. Numbers that are whole in the text (`== 34`, `[2, 2]`)
are exact on all processors. What comes from the same call twice goes through
`small.identical`, which says so.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
COMPUTES = set(  # functions and methods that give numbers with digits behind the point
    """exp log log2 log10 log1p sqrt rsqrt tanh sigmoid erf sin cos softmax log_softmax
    logsumexp mean std var norm cross_entropy entropy dot evaluate estimate_loss model
    probabilities attention_weights""".split()
)
PASSES_ON = set(  # what gives such numbers if it is given some
    """abs clone cumsum detach flatten float item max min numpy reshape squeeze sum
    tolist view list sorted dict next""".split()
)
FLOATS = set("loss losses logits grad val_loss train_loss probs".split())


def named(function):
    return getattr(function, "attr", getattr(function, "id", ""))


def text_in(node):
    """Whether a `/` joins paths or texts: no division."""
    return any(
        isinstance(side, ast.JoinedStr)
        or isinstance(side, ast.Constant)
        and isinstance(side.value, str)
        for side in (node.left, node.right)
    )


def is_computed(node, known):
    """Whether an expression's value is, or holds, a float that was computed."""

    def inner(part):
        return is_computed(part, known)

    match node:
        case ast.BinOp(op=ast.MatMult()):
            return True
        case ast.BinOp(op=ast.Div()):
            return not text_in(node)
        case ast.BinOp(left=left, right=right):
            return inner(left) or inner(right)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="browser" | "page"))):
            return False
        case ast.Call(func=function, args=args):
            if named(function) in PASSES_ON:
                of = [function.value] if isinstance(function, ast.Attribute) else []
                return any(map(inner, [*args, *of]))
            return named(function) in COMPUTES
        case ast.Name(id=name):
            return name in known or name in FLOATS
        case ast.Attribute(value=value, attr=name):
            return name in FLOATS or name in ("data", "T", "mT") and inner(value)
        case ast.Subscript(value=value, slice=place):
            return inner(value) or getattr(place, "value", None) in FLOATS
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return any(map(inner, parts))
        case ast.Dict(values=parts):
            return any(map(inner, parts))
        case ast.DictComp(value=part):
            return inner(part)
        case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part):
            return inner(part)
        case ast.UnaryOp(operand=part) | ast.Starred(value=part):
            return inner(part)
        case ast.IfExp(body=one, orelse=other):
            return inner(one) or inner(other)
    return False


def is_exact(node):
    """A whole number, a text, or a list of such; or a side that has a tolerance."""
    if isinstance(node, ast.Call):
        return named(node.func) == "approx"
    if isinstance(node, ast.List | ast.Tuple):
        return bool(node.elts) and all(map(is_exact, node.elts))
    if isinstance(node, ast.BinOp):
        return is_exact(node.left) and is_exact(node.right)
    return isinstance(node, ast.Constant) and not isinstance(node.value, float)


def computed_names(function):
    """The names to which a function assigns a computed float."""
    known = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and is_computed(node.value, known):
                    known.add(target.id)
    return known


def compared(source):
    """Yield (line, text) of each == or != between floats that are computed."""
    functions = [n for n in ast.walk(ast.parse(source)) if type(n) is ast.FunctionDef]
    for function in functions:
        known = computed_names(function)
        for node in ast.walk(function):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            for op, one, other in zip(node.ops, sides, sides[1:]):
                if not isinstance(op, ast.Eq | ast.NotEq):
                    continue
                if is_exact(one) or is_exact(other):
                    continue
                if is_computed(one, known) or is_computed(other, known):
                    yield node.lineno, ast.unparse(node)


FILES = [p for p in sorted(TESTS.rglob("*.py")) if p.name != "small.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(TESTS)))
def test_no_two_computed_floats_are_compared_with_equals(path):
    assert list(compared(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line, found",
    [
        ("assert loss == other", 1),
        ("assert x.mean().item() == 0.5", 1),
        ("p = z.softmax(-1)\n    assert p[0] == a / b", 1),
        ("assert [v.mean() for v in rows] != [0.25]", 1),
        ("assert loss == pytest.approx(other)", 0),
        ("assert x.grad.tolist() == [2, 2]", 0),
        ("assert x.shape == (2, 3)", 0),
        ("assert path / 'a' == folder / 'a'", 0),
    ],
)
def test_the_rule_finds_them(line, found):
    assert len(list(compared(f"def test_it():\n    {line}\n"))) == found
