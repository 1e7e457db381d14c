"""Changes that make an answer right by an accident, and mend nothing.

An answer that divides by the root twice is right, too, once somebody multiplies by the
root. Who told its author so would mislead. Each function here looks at a change, the
answer's text and the solution's, and says whether it is of one such kind; its docstring
has an example. That a change agrees with the solution on all cases was seen before.
"""

import ast
import re
from collections import Counter

from minigpt.course.checks.mutations import Mutant
from minigpt.course.checks.rules import Change
from minigpt.course.checks.trees import called


def is_accident(mutant: Mutant, text: str, right: str) -> bool:
    """Whether a change of an answer's text, where `right` is the solution's, is one."""
    return any(look(mutant, text, right) for look in ACCIDENTS)


def strange_number(mutant: Mutant, text: str, right: str) -> bool:
    """x * 3 becomes x * 6, and there is no 6 in the solution: it only fits."""
    number = mutant.change is Change.NUMBER and re.fullmatch(r"-?[\d.]+", mutant.now)
    return bool(number) and mutant.now not in {
        *re.findall(r"-?[\w.]+", right),
        "0",
        "1",
    }


def done_twice(mutant: Mutant, text: str, right: str) -> bool:
    """x / n becomes x / n / n ** 0.5, and the answer has a root already.

    So one factor cancels another, or a shape fits.
    """
    if not mutant.put_in or mutant.change is not Change.PART:
        return False
    more = _steps(mutant.now) - _steps(mutant.was)
    own, ours = _steps(text), _steps(right)
    return any(own[step] >= ours[step] for step in more if ours[step])


def takes_away(mutant: Mutant, text: str, right: str) -> bool:
    """x.mean() becomes x.sum(), and the solution has a mean, too."""
    if mutant.change not in (Change.FUNCTION, Change.NAME):
        return False
    own, ours = _words(text), _words(right)
    gone = _words(mutant.was) - _words(mutant.now)
    return any(own[word] <= ours[word] for word in gone)


def overwrites(mutant: Mutant, text: str, right: str) -> bool:
    """x becomes x.fill_(1): something else is written over what the answer has."""
    more = mutant.now.removeprefix(mutant.was)
    added = mutant.was and more != mutant.now and re.match(r"\.(\w+)\(", more)
    made = re.search(r"zeros|ones|full|empty", mutant.was)
    return bool(added) and added[1] in OVERWRITING and not made


def renames(mutant: Mutant, text: str, right: str) -> bool:
    """T, d = 3, 4 becomes d, T = 3, 4: names change places, and no values."""
    if mutant.change is not Change.ORDER:
        return False
    before, after = (
        [(n.targets[0], n.value) for n in _nodes(line)[:2] if isinstance(n, ast.Assign)]
        for line in (mutant.stood, mutant.line)
    )
    if not (before and after):
        return False
    several = all(isinstance(part, (ast.Tuple, ast.List)) for part in before[0])
    return several and ast.dump(before[0][0]) != ast.dump(after[0][0])


def invents(mutant: Mutant, text: str, right: str) -> bool:
    """x * 2 becomes x // 2, and the solution has no // at all."""
    if mutant.change is not Change.OPERATION:
        return False
    ours = {type(n.op).__name__ for n in _nodes(right) if isinstance(n, ast.BinOp)}
    ours |= {*_steps(right)} | ({"Div"} if "mean" in right else set())
    return not set(_steps(mutant.now) - _steps(mutant.was)) <= ours


def doubles(mutant: Mutant, text: str, right: str) -> bool:
    """n + 1 becomes n + 1 + n, which stands nowhere: it makes up for another line."""
    known = {ast.dump(node) for node in [*_nodes(text), *_nodes(right)]}
    sums = [n for n in _nodes(mutant.now) if isinstance(n, ast.BinOp)]
    joined = [_joined(n, type(n.op)) for n in sums if ast.dump(n) not in known]
    return any(len(set(parts)) < len(parts) for parts in joined)


def regroups(mutant: Mutant, text: str, right: str) -> bool:
    """3 * (x + n) becomes 3 * x + n, and the solution has no such sum of a product."""
    if mutant.change is not Change.ORDER or mutant.was == mutant.now:
        return False
    before, after = _nodes(mutant.was), _nodes(mutant.now)
    if not (before and after) or _words(mutant.was) != _words(mutant.now):
        return False
    ours = {_shape(node) for node in _nodes(right) if isinstance(node, ast.BinOp)}
    old, new = (part[2] for part in (before, after))  # behind Module and Expr
    if not (isinstance(old, ast.BinOp) and isinstance(new, ast.BinOp)):
        return False
    return type(old.op) is not type(new.op) and _shape(new) not in ours


ACCIDENTS = (
    strange_number,
    done_twice,
    takes_away,
    overwrites,
    renames,
    invents,
    doubles,
    regroups,
)
OVERWRITING = "scatter", "masked_scatter", "index_copy", "copy_", "fill_", "zero_"
ALIKE = {"T": "transpose", "mT": "transpose", "permute": "transpose", "sqrt": "Pow"}
ALIKE |= {"pow": "Pow", "square": "Pow", "div": "Div", "mul": "Mult", "norm": "Pow"}


def _nodes(text: str) -> list[ast.AST]:
    """All nodes of a program; [] for a part of one that is none itself."""
    try:
        return list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return []


def _words(text: str) -> Counter:
    """How often a program has which name, of values and of methods."""
    every = (getattr(n, "id", getattr(n, "attr", None)) for n in _nodes(text))
    return Counter(name for name in every if name)


def _steps(text: str) -> Counter:
    """How often a program does what: calls, transpositions, and operations.

    Operations with a literal do not count, so that x + 1 is no step.
    """
    names = []
    for node in _nodes(text):
        if isinstance(node, ast.BinOp) and not isinstance(node.right, ast.Constant):
            names.append(type(node.op).__name__)
        elif isinstance(node, ast.Call):
            names.append(called(node))
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            names.append(node.attr)
    return Counter(ALIKE.get(name, name) for name in names)


def _joined(node: ast.expr, kind: type) -> list[str]:
    """What an operation of a kind joins, as a, b and c in a + b + c."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, kind):
        return [ast.dump(node)]
    return _joined(node.left, kind) + _joined(node.right, kind)


def _shape(node: ast.AST) -> str:
    """Which operations an expression is made of, as "Add(Mult(., .), .)"."""
    if not isinstance(node, ast.BinOp):
        return "."
    left, right = _shape(node.left), _shape(node.right)
    return f"{type(node.op).__name__}({left}, {right})"
