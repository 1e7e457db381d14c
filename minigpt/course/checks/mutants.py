"""Programs with one place changed: a right one's slips, or a learner's taken back.

A slip changes one place of a solution as learners do: another dim, a slice one too
long, a sign, a line left out. A check runs these programs; one that gives what the
learner's gives says what the mistake is, though nobody listed it (mutation testing,
DeMillo, Lipton and Sayward, 1978, turned round). The same changes, made in the
learner's own program, may mend it.
"""

import ast
import re
from itertools import pairwise
from typing import Any, NamedTuple

from minigpt.course.checks.slips import HOLE, MODULES, head, is_whole, remade, slips


class Mutant(NamedTuple):
    """says: of its slip; line: as it now stands; program: code to exec.

    was, now: what the slip replaced, and by what; inside: the expression that has it;
    at: the number of its line.
    """

    says: str
    line: str
    program: Any
    was: str
    now: str
    inside: str
    at: int


def mutants(source, right=""):
    """Yield a Mutant of a program's text for each slip, the likeliest first.

    The same slip wherever the same thing stands comes last. Slips that cannot be
    compiled are left out. right: the text of a program that this one should be. What
    brings it nearer comes first, and lines that stand there stay as they are.
    """
    tree, goal, alike = ast.parse(source), ast.parse(right), {}
    found = sorted(slips(tree, _left_out(tree, goal)), key=lambda slip: slip.likely)
    statement = _statements(tree)
    for slip in found:
        ast.fix_missing_locations(slip.new)
        alike.setdefault(slip.says, []).append(slip)
    some = alike.values()
    several = (s for s in some if len(s) == 2 or s[1:] and s[0].likely < 9)
    groups = [*([s] for s in found), *several]
    if right:
        groups = _nearer(groups, statement, goal)
    for some in groups:
        was, undo = _held(some[0]), [_put(slip) for slip in some]
        try:
            program = compile(tree, "<slip>", "exec")
            line = "" if some[1:] else _line(some[0], statement)
            now = _text(_held(some[0]), some[0].owner)
        except (SyntaxError, ValueError, TypeError):
            continue
        finally:
            for slip in reversed(undo):
                _put(slip)
        often = ", each time" * (len(some) > 2) or ", both times" * (len(some) > 1)
        owner, at = some[0].owner, getattr(was, "lineno", 0)
        inside = ast.unparse(owner) if isinstance(owner, ast.expr) else ""
        says, was = some[0].says + often, _text(was, owner)
        yield Mutant(says, line, program, was, now, inside, at)


def _left_out(mine, right):
    """What a program does to a HOLE, and this tree less often; what it computes."""
    text, goal, gap, found = ast.unparse(mine), ast.unparse(right), ast.Name(HOLE), []
    known = set(re.findall(r"\w+", text))
    for node in ast.walk(right):
        ways = [node] if is_whole(node) or isinstance(node, ast.Constant) else []
        if isinstance(node, ast.BinOp):
            ways += [remade(node, left=gap)]
        elif isinstance(node, ast.UnaryOp):
            ways += [remade(node, operand=gap)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if is_whole(node.func.value):
                ways += [remade(node, func=remade(node.func, value=gap))]
            elif node.args:
                ways += [remade(node, args=[gap, *node.args[1:]])]
        for way in ways:
            names = {n.id for n in ast.walk(way) if isinstance(n, ast.Name)}
            new = ast.unparse(way)  # of a method its name: `.tril(1)` is .tril()
            rest = [re.sub(r"^(\.\w+\().*", r"\1", part) for part in new.split(HOLE)]
            rare = way is node or isinstance(node, ast.UnaryOp)  # a sign, always
            rare |= any(text.count(p) < goal.count(p) for p in rest)
            if rare and names <= known | {HOLE, *MODULES} and len(new) < 40:
                found.append(new)
    return list(dict.fromkeys(found))


def _nearer(groups, statement, goal):
    """Those that are in no line of a tree, sorted by how much liker they make it."""
    lines = {head(n) for n in ast.walk(goal) if isinstance(n, ast.stmt)}
    pairs = _pairs(ast.unparse(goal))

    def likeness(some):
        text = "\n".join(dict.fromkeys(_line(slip, statement) for slip in some))
        return sum(1 if pair in pairs else -1 for pair in _pairs(text))

    def gain(some):
        before, undo = likeness(some), [_put(slip) for slip in some]
        more = likeness(some) - before
        for slip in reversed(undo):
            _put(slip)
        return more > 0 and some[0].likely < 10, -max(5, some[0].likely), more

    groups = [g for g in groups if not {_line(s, statement) for s in g} & lines]
    return sorted(groups, key=gain, reverse=True)


def _pairs(text):
    """The pairs of neighbouring words and signs in a text."""
    return set(pairwise(re.findall(r"\w+|\S", text)))


def _held(slip):
    """What stands in a slip's place."""
    held = getattr(slip.owner, slip.field)
    return held if slip.at is None else held[slip.at]


def _text(node, owner):
    """A node as a text, with its keyword; "" for nothing."""
    name = f"{owner.arg}=" if isinstance(owner, ast.keyword) else ""
    text = head(node) if isinstance(node, ast.stmt) else ast.unparse(node)
    return "" if isinstance(node, ast.Pass) else name + text


def _put(slip):
    """Make a slip in its tree; the slip that undoes it."""
    old = _held(slip)
    if slip.at is None:
        setattr(slip.owner, slip.field, slip.new)
    else:
        getattr(slip.owner, slip.field)[slip.at] = slip.new
    return slip._replace(new=old)


def _statements(tree):
    """id of a node -> the innermost statement that holds it."""
    found = {}
    for node in ast.walk(tree):  # from outside to inside
        if isinstance(node, ast.stmt):
            found |= {id(part): node for part in ast.walk(node)}
    return found


def _line(slip, statement):
    """The line of a slip, as it now stands; "" for none, or more than a line."""
    held = _held(slip)
    line = held if isinstance(held, ast.stmt) else statement[id(slip.owner)]
    none = isinstance(line, (ast.FunctionDef, ast.ClassDef, ast.Pass))
    return "" if none else head(line)
