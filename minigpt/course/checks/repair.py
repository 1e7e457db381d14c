"""What of an answer must change to make it right: the fewest of its own places.

The answer's tree is laid beside the solution's, line by line and part by part. Where
they differ, the solution's part is put in; the smallest set of such changes that makes
the answer right is its mistake (program repair: Weimer and others, 2009). An answer
that goes another way than the solution differs everywhere, and gets none.
"""

import ast
import builtins
import difflib
import itertools
from typing import Any, NamedTuple

from minigpt.course.checks.reading import copied

SKIPPED = {"ctx", "type_comment", "kind", "returns", "annotation", "type_params"}
MOST = 8  # places that differ; with more of them it is another program
SHARE = 0.6  # of the solution that may be put in
WITH_A_PART = (ast.expr, ast.keyword, ast.Assign, ast.Return, ast.AugAssign)
LIBRARIES = {"torch", "nn", "F", "math", "self", "super", *dir(builtins)}
ALIKE = 0.5  # of what is assigned to two locals that stand for each other


class Change(NamedTuple):
    """owner.field, or its entry `at`, becomes `new`; or `new` is inserted there."""

    owner: ast.AST
    field: str
    at: int | None
    new: Any
    inserted: bool = False


class Edit(NamedTuple):
    """What is wrong at a place, in words; the size of what is new; how to mend it.

    old: the size of what stands there.
    """

    says: str
    size: int
    changes: list
    old: int = 8


def repairs(mine, right, name, most=2, largest=99):
    """Yield ([what to say], code, line) of a text that a solution's text makes right.

    name: of the solution's function or class. The fewest and smallest edits come first,
    at most so many at once. What is put in must not be far larger than what it
    replaces, or than `largest`: that would be another program.
    """
    mine = next(node for node in ast.parse(mine).body if hasattr(node, "body"))
    right = next(n for n in ast.parse(right).body if getattr(n, "name", "") == name)
    for node in (*ast.walk(mine), *ast.walk(right)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if ast.get_docstring(node):
                node.body = node.body[1:] or [ast.Pass()]
    mine.name, mine.decorator_list = name, right.decorator_list
    own = {n.id for n in ast.walk(mine) if isinstance(n, ast.Name)}
    aligned = _Alignment(_renamed(mine, right), mine, own)
    stored = {n.id for n in ast.walk(mine) if isinstance(n, ast.Name) and _is_new(n)}
    edits = aligned.moves(aligned.lines(mine, "body", mine.body, right.body)[1])
    if len(edits) > MOST:
        return
    some = [c for n in range(1, most + 1) for c in itertools.combinations(edits, n)]
    for chosen in sorted(some, key=lambda c: (len(c), sum(e.size for e in c))):
        if sum(edit.size for edit in chosen) > SHARE * _size(right):
            continue
        if any(edit.size > min(largest, 1.5 * edit.old + 6) for edit in chosen):
            continue
        if len(chosen) > 1 and min(map(_weight, chosen)) > 2:
            continue  # a program rewritten is no mistake found
        says = [edit.says for edit in chosen]
        if any(_stands(edit, stored) for edit in chosen):
            continue
        if any(" too many" in s for s in says) and any(" left out" in s for s in says):
            continue  # that is the same, said otherwise
        undo = _made([change for edit in chosen for change in edit.changes])
        try:
            module = ast.fix_missing_locations(ast.Module([mine], []))
            code = compile(module, "<mended>", "exec")
        except (SyntaxError, ValueError, TypeError):
            continue
        finally:
            for place in reversed(undo):
                setattr(*place)
        yield list(dict.fromkeys(map(_placed, chosen))), code, _line(chosen[0])


def _is_new(name):
    return isinstance(name.ctx, ast.Store)


def _stands(edit, stored):
    """Whether what is left out has a value in the answer, or only another name."""
    line = edit.changes[0].new
    if isinstance(line, ast.Name) and _is_new(line):
        return True
    if not edit.says.endswith(" left out") or not isinstance(line, ast.Assign):
        return False
    names = [n for n in ast.walk(line) if isinstance(n, ast.Name)]
    made = {n.id for n in names if _is_new(n)}
    used = {n.id for n in names if not _is_new(n)}
    return bool(made) and made <= stored and not made & used


def _placed(edit):
    """What is wrong, and in which method a line is missing."""
    owner = edit.changes[0].owner
    first = owner.args.args[:1] if isinstance(owner, ast.FunctionDef) else []
    method = edit.says.endswith(" left out") and [a.arg for a in first] == ["self"]
    return edit.says + f" in `{owner.name}`" if method else edit.says


def _weight(edit):
    """How much of its own an edit puts in place of something else."""
    return edit.size if "` where `" in edit.says else 0


def _line(edit):
    """The number of the line that an edit changes, 0 where it puts one in."""
    change = edit.changes[0]
    old = getattr(change.owner, change.field)
    old = old if change.at is None or change.inserted else old[change.at]
    return getattr(old, "lineno", 0)


def _made(changes):
    """Make changes in their tree; returns (owner, field, what it was) of each."""

    def place(numbered):  # from the end, so that the places before stay where they are
        at, change = numbered
        return change.at or 0, not change.inserted, at

    undo = []
    for _, change in sorted(enumerate(changes), key=place, reverse=True):
        new = holder = getattr(change.owner, change.field)
        undo.append((change.owner, change.field, holder))
        if change.at is None:
            new = change.new
        else:
            rest = holder[change.at + (not change.inserted) :]
            new = [*holder[: change.at], change.new, *rest]
        setattr(change.owner, change.field, new)
    return undo


def _size(node):
    """How many names, numbers and steps a tree has."""
    return sum(not isinstance(n, ast.expr_context) for n in ast.walk(node))


class _Renamed(ast.NodeTransformer):
    """Gives names other ones: new(name)."""

    def __init__(self, new):
        self.new = new

    def visit_Name(self, node):
        return ast.copy_location(ast.Name(self.new(node.id), node.ctx), node)


def _assigned(tree):
    """{local name: what is first assigned to it, as a text without names}."""
    found, nameless = {}, _Renamed(lambda name: "_")
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.For)):
            value = node.value if isinstance(node, ast.Assign) else node.iter
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            text = ast.dump(nameless.visit(copied(value)))
            names = itertools.chain(*map(ast.walk, targets))
            stored = [n for n in names if isinstance(getattr(n, "ctx", 0), ast.Store)]
            for at, name in enumerate(n for n in stored if isinstance(n, ast.Name)):
                found.setdefault(name.id, f"{type(node).__name__}{at}{text}")
    return found


def _renamed(mine, right):
    """Give locals the names that they have in the solution; returns the way back.

    A name that only the answer has gets one that only the solution has, if both are
    assigned something alike, or if these two are the last ones left.
    """
    own, theirs, new = _assigned(mine), _assigned(right), {}
    taken = {n.id for n in ast.walk(mine) if isinstance(n, ast.Name)}
    given = {n.arg for n in ast.walk(mine) if isinstance(n, ast.arg)}
    taken |= given
    for name in sorted(set(own) - set(theirs) - given):
        alike = [n for n in theirs if theirs[n][0] == own[name][0]]  # or a loop's both
        free = sorted(set(alike) - taken)
        texts = [theirs[n] for n in free]
        match = difflib.get_close_matches(own[name], texts, 1, ALIKE)
        if match:
            new[name] = next(n for n in free if theirs[n] == match[0])
            taken.add(new[name])
    left = set(own) - set(theirs) - given - set(new), set(theirs) - taken
    if [*map(len, left)] == [1, 1]:
        (one,), (other,) = left
        if own[one][0] != "F":  # of a loop
            new[one] = other
    _Renamed(lambda name: new.get(name, name)).visit(mine)
    return {theirs: own for own, theirs in new.items()}


class _Alignment:
    """Lays a tree beside another. names: what the answer, top, calls its locals.

    own: all names that the answer uses.
    """

    def __init__(self, names, top, own):
        self.names = names
        self.known = own | set(names) | {a.arg for a in top_arguments(top)} | LIBRARIES
        lines = [n for n in ast.walk(top) if isinstance(n, ast.Assign)]
        once = [(ast.unparse(n.targets), n) for n in lines]
        self.values = {t: n for t, n in once if t not in ast.unparse(n.value)}

    def shown(self, node):
        """A part's first line, in the answer's own names; "" for half of a part."""
        node = _Renamed(lambda name: self.names.get(name, name)).visit(copied(node))
        line = ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0]
        return line if len(line) <= 72 else line[:70] + " …"

    def lines(self, owner, field, mine, right):
        """(cost, edits) that make one list of lines another."""
        best = {(0, 0): (0, [])}
        for i, j in itertools.product(range(len(mine) + 1), range(len(right) + 1)):
            ways = [best[0, 0]] if i == j == 0 else []
            if i:
                cost, edits = best[i - 1, j]
                change = Change(owner, field, i - 1, ast.Pass())
                edit = Edit(f"`{self.shown(mine[i - 1])}` too many", 1, [change])
                ways.append((cost + _size(mine[i - 1]), [*edits, edit]))
            if j:
                cost, edits = best[i, j - 1]
                line = right[j - 1]
                change = Change(owner, field, i, line, inserted=True)
                edit = Edit(f"`{self.shown(line)}` left out", _size(line), [change])
                if _deeper(line, mine):
                    says = f"`{self.shown(line)}` in the wrong place"
                    edit = edit._replace(says=says)
                ways.append((cost + _size(line), [*edits, edit]))
            if i and j:
                cost, edits = best[i - 1, j - 1]
                pair = mine[i - 1], right[j - 1]
                more, new = self.parts(owner, field, i - 1, *pair)
                ways.append((cost + more, [*edits, *new]))
                if isinstance(pair[0], ast.If) and not isinstance(pair[1], ast.If):
                    inner = self.lines(pair[0], "body", pair[0].body, [pair[1]])
                    more = cost + _size(pair[0].test) + inner[0]
                    ways.append((more, [*edits, *inner[1]]))
            best[i, j] = min(ways, key=lambda way: way[0])
        return best[len(mine), len(right)]

    def parts(self, owner, field, at, mine, right):
        """(cost, edits) that make one line or expression another."""
        if ast.dump(mine) == ast.dump(right):
            return 0, []
        line = self.values.get(getattr(mine, "id", ""))
        if line and type(line.value) is type(right) is not ast.UnaryOp:
            return self.parts(line, "value", None, line.value, right)
        size, says = _size(mine) + _size(right), ""
        if old := self.shown(mine):
            says = f"`{old}` where `{self.shown(right)}` belongs"
            used = {n.id for n in ast.walk(right) if isinstance(n, ast.Name)}
            if used - self.known:
                says = f"`{old}`, which is `{self.shown(right)}` in our version"
            small = min(_size(mine), _size(right)) < 4
            if small and isinstance(owner, WITH_A_PART):
                says += f" in `{self.shown(owner)}`"
        change = Change(owner, field, at, right)
        whole = [Edit(says, _size(right), [change], _size(mine))]
        if type(mine) is not type(right) or isinstance(mine, ast.UnaryOp | ast.keyword):
            return size, whole
        cost, edits = 0, []
        for name in sorted(set(mine._fields) - SKIPPED):
            a, b = getattr(mine, name, None), getattr(right, name, None)
            lists = isinstance(a, list) and isinstance(b, list)
            if lists and any(isinstance(part, ast.stmt) for part in (*a, *b)):
                found = [self.lines(mine, name, a, b)]
            elif lists and len(a) == len(b):
                pairs = enumerate(zip(a, b))
                found = [self.parts(mine, name, i, x, y) for i, (x, y) in pairs]
            elif isinstance(a, ast.AST) and isinstance(b, ast.AST):
                found = [self.parts(mine, name, None, a, b)]
            elif a == b:
                continue
            else:
                return size, whole
            cost += sum(more for more, _ in found)
            edits += [edit for _, some in found for edit in some]
        another = cost > 0.7 * size and not isinstance(mine, ast.stmt)
        if another or not all(edit.says for edit in edits):
            return size, whole
        if isinstance(mine, (ast.Return, ast.Assign)):
            cost *= 0.9  # rather than a line too many here, and one left out there
        return cost, edits

    def moves(self, edits):
        """Of the same line too many here and left out there, one edit."""
        done, missing = [], (" left out", " in the wrong place")
        for edit in edits:
            line = edit.says.removesuffix(" too many")
            others = missing
            if line == edit.says:
                for end in missing:
                    line = line.removesuffix(end)
                others = (" too many",)
            for pair in [e for e in done if e.says in {line + end for end in others}]:
                done.remove(pair)
                changes = pair.changes + edit.changes
                says = f"{line} in the wrong place: it belongs {self.place(changes)}"
                edit = Edit(says, 1, changes)
            done.append(edit)
        return done

    def place(self, changes):
        """Behind what, or where first, a line belongs that is moved."""
        gone, put = sorted(changes, key=lambda change: change.inserted)
        old = getattr(gone.owner, gone.field)[gone.at]
        before = [x for x in getattr(put.owner, put.field)[: put.at] if x is not old]
        if before:
            return f"behind `{self.shown(before[-1])}`"
        return f"first in `{self.shown(put.owner)}`"


def top_arguments(top):
    """The arguments of a function, or of all methods of a class."""
    return [n for n in ast.walk(top) if isinstance(n, ast.arg)]


def _deeper(line, lines):
    """Whether a line stands inside one of these, in a loop or behind an `if`."""
    inner = [node for part in lines for node in ast.walk(part) if node is not part]
    return any(isinstance(n, ast.stmt) and ast.dump(n) == ast.dump(line) for n in inner)
