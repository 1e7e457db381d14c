"""Wrong programs made from a right one: the slips of a pen, one at a time.

A slip changes one place of a solution as learners do: another dim, a slice one too
long, a sign, a line left out. A check runs these programs; one that gives what the
learner's gives says what the mistake is, though nobody listed it (mutation testing,
DeMillo, Lipton and Sayward, 1978, turned round).
"""

import ast
from typing import Any, NamedTuple

from minigpt.course.checks.slips import head, slips


class Mutant(NamedTuple):
    """says, wrong: of its slip; line: as it now stands; program: code to exec.

    was, at: what the slip replaced, and the number of its line.
    """

    says: str
    wrong: str
    line: str
    program: Any
    was: str
    at: int


def mutants(source):
    """Yield a Mutant of a program's text for each slip, the likeliest first.

    The same slip wherever the same thing stands comes last. Slips that cannot be
    compiled are left out.
    """
    tree, alike = ast.parse(source), {}
    found = sorted(slips(tree), key=lambda slip: slip.likely)
    statement = _statements(tree)
    for slip in found:
        for new in slip.new if isinstance(slip.new, list) else [slip.new]:
            ast.fix_missing_locations(new)
        alike.setdefault(slip.says, []).append(slip)
    for some in [[s] for s in found] + [s for s in alike.values() if len(s) > 1]:
        was, at = _was(some[0])
        undo = [_put(slip) for slip in some]
        try:
            program = compile(tree, "<slip>", "exec")
            line = "" if some[1:] else _shown(some[0], statement)
        except (SyntaxError, ValueError, TypeError):
            continue
        finally:
            for slip in reversed(undo):
                _put(slip)
        often = ", each time" * (len(some) > 2) or ", both times" * (len(some) > 1)
        yield Mutant(some[0].says + often, some[0].wrong, line, program, was, at)


def _was(slip):
    """What stands in a slip's place, as a text, and the number of its line."""
    held = getattr(slip.owner, slip.field)
    old = held if slip.at is None else held[slip.at]
    name = f"{slip.owner.arg}=" if isinstance(slip.owner, ast.keyword) else ""
    text = head(old) if isinstance(old, ast.stmt) else ast.unparse(old)
    return name + text, getattr(old, "lineno", 0)


def _put(slip):
    """Make a slip in its tree; the slip that undoes it."""
    holder = getattr(slip.owner, slip.field)
    if slip.at is None:
        setattr(slip.owner, slip.field, slip.new)
        return slip._replace(new=holder)
    old, holder[slip.at] = holder[slip.at], slip.new
    return slip._replace(new=old)


def _statements(tree):
    """id of a node -> the innermost statement that holds it."""
    found = {}
    for node in ast.walk(tree):  # from outside to inside
        if isinstance(node, ast.stmt):
            found |= {id(part): node for part in ast.walk(node)}
    return found


def _shown(slip, statement):
    """The line that has a slip, as it now stands; "" where it is more than a line."""
    if isinstance(slip.new, ast.Pass | list):
        return ""
    line = slip.new if isinstance(slip.new, ast.stmt) else statement[id(slip.owner)]
    return "" if isinstance(line, (ast.FunctionDef, ast.ClassDef)) else head(line)
