"""What of an answer must change to make it right: one of its own lines.

A line that the solution does not have gets the form of one of the solution's, one that
is missing is put in, one that stands elsewhere is moved. The change that makes the
answer right is its mistake (generate and validate; Weimer and others, 2009). An answer
that goes another way than the solution has no line like it, and gets none.
"""

import ast
import builtins
import difflib
import re
from typing import NamedTuple

from minigpt.course.checks.reading import copied
from minigpt.course.checks.slips import head, remade

INNER = {"body", "orelse"}
SKIPPED = {"ctx", "type_comment", "kind"}
WHOLE = ast.keyword, ast.UnaryOp  # are shown, and not what is inside
SHARE = 0.6  # of the solution that may be put in
LIBRARIES = {"torch", "nn", "F", "math", "self", "super", *dir(builtins)}
ALIKE = 0.45  # of two lines, or the lines of two locals, that stand for each other


class Edit(NamedTuple):
    """What is wrong, in words; the size of what differs; the number of the line.

    blocks: (a list of lines, what it becomes), each.
    """

    says: str
    size: int
    at: int
    blocks: list


def repairs(mine, right, name):
    """Yield (size, what to say, code, line) of edits that bring a text to a right one.

    name: of the solution's function or class. The smallest edits come first, one at a
    time: what needs two is another program.
    """
    mine = next(node for node in ast.parse(mine).body if hasattr(node, "body"))
    right = next(n for n in ast.parse(right).body if getattr(n, "name", "") == name)
    for node in (*ast.walk(mine), *ast.walk(right)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if ast.get_docstring(node):
                node.body = node.body[1:] or [ast.Pass()]
    mine.name, mine.decorator_list = name, right.decorator_list
    used = _names(mine) | _names(mine, new=True)
    words = _Words(_renamed(mine, right), mine, used)
    for edit in sorted(_edits(mine, right, words), key=lambda edit: edit.size):
        if edit.size > SHARE * _size(right):
            continue
        before = [(block, block[:]) for block, _ in edit.blocks]
        try:
            for block, new in edit.blocks:
                block[:] = new
            module = ast.fix_missing_locations(ast.Module([mine], []))
            code = compile(module, "<mended>", "exec")
        except (SyntaxError, ValueError, TypeError):
            continue
        finally:
            for block, old in before:
                block[:] = old
        yield edit.size, edit.says, code, edit.at


def _blocks(tree):
    """All lists of lines in a tree."""
    some = (getattr(n, f, 0) for n in ast.walk(tree) for f in ("body", "orelse"))
    return [block for block in some if isinstance(block, list) and block]


def _places(tree):
    """{a line as a text: the texts of the lines before and after it}, of all lines."""
    found = {}
    for block in _blocks(tree):
        texts = ["", *map(ast.dump, block), ""]
        found |= {b: (a, c) for a, b, c in zip(texts, texts[1:], texts[2:])}
    return found


def _edits(mine, right, words):
    """Yield the Edits of single lines."""
    own, theirs = _places(mine), _places(right)
    lines = [line for block in _blocks(right) for line in block]
    here = [ast.dump(line) for block in _blocks(mine) for line in block]
    texts = [ast.dump(line) for line in lines]
    more = {text for text in texts if texts.count(text) > here.count(text)}
    missing = [line for line, text in zip(lines, texts) if text in more]
    for block in _blocks(mine):
        for i, line in enumerate(block):
            text = ast.dump(line)
            for other in missing if text not in theirs else ():
                if isinstance(other, type(line)) and _alike(line, other, mine):
                    says, size = words.apart(line, other)
                    inner = {f: v for f, v in ast.iter_fields(line) if f in INNER}
                    other = remade(other, **inner)
                    new = [*block[:i], other, *block[i + 1 :]]
                    yield Edit(says, size, line.lineno, [(block, new)])
            for other in missing:  # an `if` around it
                if text in map(ast.dump, getattr(other, "body", ())):
                    new = [*block[:i], other, *block[i + 1 :]]
                    says = f"`{words.shown(other)}` left out"
                    yield Edit(says, _size(other) - _size(line), 0, [(block, new)])
            if text in theirs and not any(map(str.__eq__, own[text], theirs[text])):
                says = f"`{words.shown(line)}` in the wrong place"
                rest = [*block[:i], ast.Pass(), *block[i + 1 :]]
                for other in _blocks(mine):
                    old = rest if other is block else other
                    for at in range(len(old) + 1):
                        new = [*old[:at], line, *old[at:]]
                        yield Edit(says, 1, line.lineno, [(block, rest), (other, new)])
    for line in missing:
        if _stands(line, mine):
            continue
        before, says = theirs[ast.dump(line)][0], f"`{words.shown(line)}` left out"
        for block in _blocks(mine):
            texts = ["", *map(ast.dump, block)]
            for at, text in enumerate(texts):
                if before == text or before and before not in own:
                    new = [*block[:at], line, *block[at:]]
                    yield Edit(says, _size(line), 0, [(block, new)])


def _alike(line, other, mine):
    """Whether a line may become another one, and leaves none before it idle."""
    line, other = (
        remade(part, **dict.fromkeys(INNER & set(part._fields), []))
        for part in (line, other)
    )
    gone, more = _names(line) - _names(other), _names(other) - _names(line)
    loads = [n.id for n in ast.walk(mine) if isinstance(n, ast.Name)]
    stored = _names(mine, new=True)
    if any(loads.count(name) == 2 for name in gone & stored) and not more & stored:
        return False
    matcher = difflib.SequenceMatcher(None, head(line), head(other))
    return matcher.ratio() >= ALIKE


def _stands(line, mine):
    """Whether the answer has what a line brings: a function, a return, a value."""
    if isinstance(line, (ast.FunctionDef, ast.ClassDef)):
        return True
    if isinstance(line, ast.Return):
        return any(isinstance(n, ast.Return) and n.value for n in ast.walk(mine))
    made = _names(line, new=True)
    gives = isinstance(line, ast.Assign) and made
    return gives and made <= _names(mine, new=True) - _names(line)


def _names(tree, new=False):
    """The names that a tree uses, or those that it gives a value."""
    kind, nodes = ast.Store if new else ast.Load, ast.walk(tree)
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, kind)}


def _size(node):
    """How many names, numbers and steps a tree has."""
    return sum(not isinstance(n, ast.expr_context) for n in ast.walk(node))


class _Renamed(ast.NodeTransformer):
    """Gives names others: new, a dict."""

    def __init__(self, new):
        self.new = new

    def visit_Name(self, node):
        name = self.new.get(node.id, node.id)
        return ast.copy_location(ast.Name(name, node.ctx), node)


def _assigned(tree):
    """{local name: the line that first assigns it, without its own name}."""
    found = {}
    for block in reversed(list(_blocks(tree))):  # from the innermost on
        for line in block:
            for name in _names(line, new=True):
                found.setdefault(name, re.sub(rf"\b{name}\b", "_", head(line)))
    return found


def _renamed(mine, right):
    """Give locals the names that they have in the solution; returns the way back.

    A name that only the answer has gets one that only the solution has, if both are
    assigned something alike.
    """
    own, theirs, new = _assigned(mine), _assigned(right), {}
    taken = _names(mine) | _names(mine, new=True)
    taken |= {n.arg for n in ast.walk(mine) if isinstance(n, ast.arg)}
    for name in sorted(set(own) - set(theirs)):
        free = {theirs[n]: n for n in sorted(set(theirs) - taken)}
        for line in difflib.get_close_matches(own[name], free, 1, ALIKE):
            new[name] = free[line]
            taken.add(free[line])
    _Renamed(new).visit(mine)
    return {theirs: own for own, theirs in new.items()}


class _Words:
    """Says what differs. names: what the answer, top, calls the solution's locals.

    used: all names that the answer uses.
    """

    def __init__(self, names, top, used):
        given = {n.arg for n in ast.walk(top) if isinstance(n, ast.arg)}
        self.names, self.known = names, used | set(names) | given | LIBRARIES

    def shown(self, node):
        """A part's first line, in the answer's own names."""
        node = _Renamed(self.names).visit(copied(node))
        line = ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0]
        return line if len(line) <= 72 else line[:70] + " …"

    def apart(self, mine, right, owner=None):
        """(what to say, a size) of two lines: where they differ."""
        lines = INNER if isinstance(mine, ast.stmt) else set()
        fields = [f for f in mine._fields if f not in SKIPPED | lines]
        pairs = [(getattr(mine, f, None), getattr(right, f, None)) for f in fields]
        lists = [pair for pair in pairs if isinstance(pair[0], list)]
        whole = type(mine) is not type(right) or isinstance(mine, WHOLE)
        if not whole and all(len(a) == len(b) for a, b in lists):
            pairs = [pair for pair in pairs if pair not in lists]
            pairs += [pair for a, b in lists for pair in zip(a, b)]
            off = [(a, b) for a, b in pairs if _text(a) != _text(b)]
            if len(off) == 1 and isinstance(off[0][0], (ast.expr, ast.keyword)):
                names = {n.attr for n in off[0] if isinstance(n, ast.Attribute)}
                if len(names) < 2:
                    return self.apart(*off[0], mine)
        old, new = self.shown(mine), self.shown(right)
        says = f"`{old}` where `{new}` belongs"
        if _names(right) - self.known:
            says = f"`{old}`, which is `{new}` in our version"
        if owner is not None and min(_size(mine), _size(right)) < 4:
            says += f" in `{self.shown(owner)}`"
        old, new = _size(mine), _size(right)
        return says, max(old, new) if new < 1.5 * old + 6 else 99


def _text(part):
    return ast.dump(part) if isinstance(part, ast.AST) else repr(part)
