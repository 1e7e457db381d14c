"""What an answer's error means, and what to do about it."""

import ast
import contextlib
import inspect
import linecache
import re
import textwrap
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.values import describe


class Explained(Exception):
    """Raised inside a checker that knows what is wrong: a sentence or Findings; a hint.

    hint: where the Findings bring none. general: whether this is the exercise's hint,
    which need not fit. part: the value that is meant. shown: the case that shows it.
    share: of the cases, those that are right (0.0 to 1.0, below 1). untouched: whether
    a bug hunt's bug is as it was. asked: the Question, to look for more.
    """

    def __init__(
        self,
        *what: str | Finding,
        hint: str = "",
        general: str = "",
        part: str = "",
        shown: str = "",
        share: float = 0.0,
        untouched: bool = False,
        asked: Any = None,
    ):
        first, *more = what
        if isinstance(first, str):  # a sentence and perhaps its hint
            kind = Kind.UNTOUCHED if untouched else Kind.WRITTEN
            own = str(more[0]) if more else ""
            self.findings = [found(kind, own, says=first)]
        else:
            self.findings = [one for one in what if isinstance(one, Finding)]
        super().__init__(*self.findings)
        self.hint, self.general = hint, general
        self.part, self.shown, self.share, self.asked = part, shown, share, asked


class NotAttempted(Exception):
    """Raised inside a checker that finds what a skeleton leaves."""


def no_function(what: str) -> Explained:
    """Explained for an answer that cannot be called."""
    return Explained(
        f"This should be a function (or a module), but it is {what}.",
        "Give the function itself to the check, without calling it.",
    )


def blamed(
    error: BaseException, inputs: Sequence[Any], names: Sequence[str] = ()
) -> BaseException:
    """What to raise for an error: the learner's is explained, the check's own is not.

    A check wraps some answers in a function of its own. An error under such a
    wrapper is the learner's if a line of the learner's is on the way to it.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    modules = [frame.f_globals.get("__name__", "__main__") for frame in frames]
    ours = "minigpt.course.checks."
    wrapped = any(m.startswith(ours) and m != f"{ours}running" for m in modules)
    if isinstance(error, (Explained, NotAttempted)):
        return error
    if wrapped and "__main__" not in modules:
        if match := re.match(r"'(\w+)' object is not callable", str(error)):
            return no_function(f"of type {match[1]}")
        if not re.search(r"\(\) (takes|missing|got)", str(error)):  # its arguments
            return error
    # A skeleton may raise it; so does torch: softmax "not implemented for 'Long'".
    if isinstance(error, NotImplementedError) and modules[-1] == "__main__":
        if not re.search("not implemented for|Could not run|meta", str(error)):
            return NotAttempted()
    return explain_error(error, inputs, names)


def _where(error: BaseException) -> str:
    """The learner's last line on the way to an error, or nothing."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__", "__main__") == "__main__":  # the notebook
            text = linecache.getline(frame.f_code.co_filename, line).strip()
            place = f"\n    in {frame.f_code.co_name}, line {line}"
            return f"{place}: {text}" if text else place
    return ""


SHAPING = "transpose", "permute", "view", "reshape", "squeeze", "unsqueeze", "len", "t"
PURE = (ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.Tuple)
PURE += ast.UnaryOp, ast.BinOp, ast.Call, ast.operator, ast.unaryop, ast.expr_context


class _Scene:
    """The learner's line where an error was raised: nodes, and values of parts of it.

    Raises an exception where there is no such line, or no text of it.
    """

    def __init__(self, error: BaseException):
        walk = list(traceback.walk_tb(error.__traceback__))
        self.frame, number = [
            (frame, line)
            for frame, line in walk
            if frame.f_globals.get("__name__", "__main__") == "__main__"
        ][-1]
        self.last = walk[-1][0]
        code = self.frame.f_code
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
        number -= code.co_firstlineno - 1
        some = (n for n in ast.walk(tree) if isinstance(n, ast.stmt))
        here = [n for n in some if n.lineno <= number <= (n.end_lineno or 0)]
        self.nodes = list(ast.walk(here[-1]))

    def value(self, node: ast.expr) -> Any:
        """What a part of the line is worth; only what changes nothing is computed."""
        for part in ast.walk(node):
            name = getattr(part, "func", None)
            name = getattr(name, "attr", getattr(name, "id", ""))
            if not isinstance(part, PURE) or name and name not in SHAPING:
                raise ValueError(f"it calls {name}")
        code = compile(ast.Expression(node), "<part>", "eval")
        return eval(code, self.frame.f_globals, self.frame.f_locals)

    def pairs(self, *kinds: type) -> Iterator[tuple[ast.BinOp, Any, Any]]:
        """(node, left value, right value) of the operations of some kinds."""
        for node in self.nodes:
            if isinstance(node, ast.BinOp) and isinstance(node.op, kinds):
                with contextlib.suppress(Exception):
                    yield node, self.value(node.left), self.value(node.right)


def _seen(error: BaseException) -> str:
    """What can be seen of an error in the values of its line, as a line; or ""."""
    try:
        scene = _Scene(error)
        if isinstance(error, ZeroDivisionError):
            says = _zero(scene)
        elif isinstance(error, AssertionError):
            says = _sides(scene)
        else:
            says = _places(scene) if "too many indices" in str(error) else ""
    except Exception:  # no text, or no values
        return ""
    return f"\n    {says}" if says else ""


def _zero(scene: _Scene) -> str:
    """Which number divides and is 0, and of what it was made."""
    for node, _, divisor in scene.pairs(ast.Div, ast.FloorDiv, ast.Mod):
        if divisor == 0:
            names = [n.id for n in ast.walk(node.right) if isinstance(n, ast.Name)]
            values = (
                (name, scene.value(ast.parse(name, mode="eval").body)) for name in names
            )
            some = [f"{n} = {v}" for n, v in values if isinstance(v, (int, float))]
            made = f", with {', '.join(dict.fromkeys(some))}" if some else ""
            return f"`{ast.unparse(node.right)}` is 0 here{made}."
    return ""


def _sides(scene: _Scene) -> str:
    """The two sides of a comparison that was asserted."""
    test = next(n.test for n in scene.nodes if isinstance(n, ast.Assert))
    if not isinstance(test, ast.Compare):
        return ""
    sides = [test.left, test.comparators[0]]
    values = (scene.value(n) for n in sides)
    some = [tuple(v) if isinstance(v, tuple) else v for v in values]  # torch.Size
    texts = (f"`{ast.unparse(n)}` is {describe(v)}" for n, v in zip(sides, some))
    return f"{', '.join(texts)}."


def _places(scene: _Scene) -> str:
    """The tensor that has fewer dimensions than indices."""
    for node in scene.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            shape = tuple(scene.value(node.value).shape)
            if len(node.slice.elts) > len(shape):
                return f"`{ast.unparse(node.value)}` has the shape {shape} here."
    return ""


def _product(error: BaseException) -> tuple[tuple, tuple, str] | None:
    """(one shape, another one, what to do) of the learner's @ that fails."""
    try:
        every = list(_Scene(error).pairs(ast.MatMult))
    except Exception:  # no text, or no values
        return None
    for node, left, right in every:
        one, other = tuple(left.shape), tuple(right.shape)
        name, inner = ast.unparse(node.right), other[-2:][0]
        turned = isinstance(node.right, ast.Attribute) and node.right.attr == "T"
        if turned and len(other) > 2:
            mend = f"{ast.unparse(node.right.value)}.transpose(-2, -1)"
            hint = f"`{name}` turns all dimensions round; `{mend}` only the last two."
        elif one[-1] != inner:
            hint = f"In a product the inner sizes must agree: here {one[-1]}, {inner}."
            if len(other) > 1 and other[-1] == one[-1] and one[:-2] == other[:-2]:
                hint += f" They would with `{name}.transpose(-2, -1)`."
        elif any(
            a != b and 1 not in (a, b) for a, b in zip(one[-3::-1], other[-3::-1])
        ):
            hint = "Before the last two, dimensions must be equal or 1."
        else:
            continue
        return one, other, hint
    return None


def _layer(error: BaseException, text: str) -> str:
    """What a linear layer says that gets another number of features than it takes."""
    last = list(traceback.walk_tb(error.__traceback__))[-1][0]
    sizes = re.search(r"\(\d+x(\d+) and (\d+)x\d+\)", text)
    if sizes and last.f_globals.get("__name__", "") == "torch.nn.modules.linear":
        return (
            f"A linear layer that takes {sizes[2]} numbers for each position is given "
            f"{sizes[1]}: what comes before it?"
        )
    return ""


REDUCING = "sum", "mean", "amax", "amin", "max", "min", "norm", "std", "var"


def _summed(error: BaseException) -> str:
    """What to do about a sum without keepdim that the learner's last line uses."""
    frames = list(traceback.walk_tb(error.__traceback__))
    names = [frame.f_globals.get("__name__", "__main__") for frame, _ in frames]
    try:
        frame, number = [f for f, n in zip(frames, names) if n == "__main__"][-1]
        tree = ast.parse(textwrap.dedent(inspect.getsource(frame.f_code)))
    except Exception:  # no text, or not a whole program
        return ""
    number -= frame.f_code.co_firstlineno - 1
    lines = [n for n in ast.walk(tree) if isinstance(n, (ast.Assign, ast.Return))]
    here = [n for n in lines if n.lineno <= number <= (n.end_lineno or 0)]
    read = {n.id for line in here for n in ast.walk(line) if isinstance(n, ast.Name)}
    for line in lines:
        if line in here or getattr(getattr(line, "targets", [0])[0], "id", "") in read:
            for call in (n for n in ast.walk(line) if isinstance(n, ast.Call)):
                ways = {k.arg for k in call.keywords}
                if getattr(call.func, "attr", "") in REDUCING and ways <= {
                    "dim",
                    "axis",
                }:
                    if ways or call.args:
                        keep = "keepdims" if "axis" in ways else "keepdim"
                        return (
                            f"`{ast.unparse(call)}` takes a dimension away, so what is "
                            f"left is compared with another one: {keep}=True keeps it, "
                            "with size 1."
                        )
    return ""


HINTS = {  # what an error says: what to do
    r"name '\w+' is not defined": (
        "Use the function's own arguments, and import what you need."
    ),
    r"'(float|int)' object has no attribute": (
        "A Python number has none of a tensor's methods: was .item() called too early?"
    ),
    r"'(list|tuple)' object has no attribute|(list|tuple) indices must be": (
        "That is a list or a tuple, not a tensor. A model returns two values, logits "
        "and loss: take the one you need."
    ),
    r"'NoneType' object": (
        "Something is None here: what a function without `return` gives, a loss "
        "without targets, or a p.grad before backward()."
    ),
    r"only one element tensors|to Scalar|Boolean value of Tensor|ambiguous": (
        "A whole tensor stands where one number is wanted: reduce it first, by "
        ".mean(), .sum(), .all() or an index."
    ),
    r"does not require grad|does not have a grad_fn": (
        "The way back to the parameters is cut: by no_grad, .detach(), .item() or a "
        "comparison."
    ),
    r"leaf Variable that requires|modified by an inplace operation": (
        "A tensor that backward() still needs is changed in place: make a new one, or "
        "change a parameter under torch.no_grad()."
    ),
    r"not contiguous|view size is not compatible": (
        "After a transpose the numbers lie in another order in memory: use reshape."
    ),
    r"selected index k out of range": (
        "topk can give no more than there are: min(k, size) is the most to ask for."
    ),
    r"Dimension out of range": (
        "The tensor of this case has fewer dimensions than that; dim=-1 is the last "
        "one, however many there are."
    ),
    r"expected a non-empty list of Tensors": (
        "The list of tensors is empty. What was to be put into it, and did that go "
        "into another list?"
    ),
    r"(size|length) 0$|non-empty|empty (tensor|sequence|list)|is empty|iterable argu": (
        "Something is empty for these inputs: there is nothing in it, not even [0]."
    ),
    r"values to unpack": (
        "On the left stand more or fewer names than there are values. A .shape has as "
        "many as the tensor has dimensions; x.shape[-1] is the last, however many "
        "there are."
    ),
    r"torch\.return_types\.": (
        "With a dim, max, min, sort and topk give two things, values and indices: take "
        ".values, or use amax and amin."
    ),
    r"einstein sum.*ellipsis": (
        "NumPy's einsum cannot sum over what an ellipsis stands for: bring it to "
        "(N, C) with reshape(-1, C), or sum with .sum(axis=...)."
    ),
    r"too many indices": (
        "There are more places in the brackets than this tensor has dimensions."
    ),
    r"out of range|out of bounds|IndexError": (
        "An index runs past the end: is the last one size - 1?"
    ),
    r"OverflowError": (
        "A number gets too large: e to the power of more than 709 is no float any "
        "more. Add logarithms up, and take exp last."
    ),
    r"KeyError": "There is no such key: .get(key, 0) gives 0 where a key is new.",
    r"number of sizes provided|expanded size|setting an array element": (
        "A whole row stands where one number belongs, or the reverse: print both "
        "shapes before this line."
    ),
    r"UnicodeDecodeError": (
        "Some of these bytes are no UTF-8, or end within a character. Pieces of one "
        'text are joined first, and then decoded; decode("utf-8", "replace") puts a � '
        "where bytes are broken even so."
    ),
    r"dtype|scalar type|'Long'|not implemented for 'Bool'|subtract, with a bool": (
        "Integers and floats do not mix here: .float() makes floats of integers. To "
        "turn a mask of True and False round, write ~mask."
    ),
    r"AssertionError": "This is an assert of yours: what it says is not so here.",
    "": "",
}
SHAPES = {  # how torch names two shapes that do not fit: what to do
    r"\((\d+x\d+) and (\d+x\d+)\)|to be: (\[[\d, ]+\]) but got: (\[[\d, ]+\])"
    r"|\(size (\d+) is different from (\d+)\)": (
        "In a product (…, a, b) @ (…, b, c) the inner sizes must agree. Row by row it "
        "is (a * b).sum(-1)."
    ),
    r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)"
    r"|broadcast together with shapes (\(.*?\)) (\(.*?\))": (
        "Entry by entry, sizes are compared from the last dimension on and must be "
        "equal or 1. Print both shapes before this line."
    ),
    r"mask (\[\d+.*?\]) at index .* tensor (\[.*?\])": (
        "A mask needs an entry for each entry of what it picks from."
    ),
    r"shape '(\[[-\d, ]+\])' is invalid for input of size (\d+)": (
        "The sizes of a view must multiply to the number of entries."
    ),
    r"Expected size (\d+) but got size (\d+)|of shape (\[.*\]).* of shape (\[.*\])": (
        "All sizes but one must be equal. Print both shapes before this line."
    ),
}


def explain_error(
    error: BaseException, inputs: Sequence[Any] = (), names: Sequence[str] = ()
) -> Explained:
    """Explained for what an answer raised; shape mismatches in particular.

    names: what the inputs are called.
    """
    text, name = (str(error).splitlines() or [""])[0], type(error).__name__
    called = [*names, *[""] * len(inputs)]
    each = [
        f"{n} = {describe(x)}" if n else describe(x) for n, x in zip(called, inputs)
    ]
    given = f" (inputs: {', '.join(each[: len(inputs)])})" if inputs else ""
    for pattern, hint in SHAPES.items():
        if match := re.search(pattern, text):
            one, two = [shape for shape in match.groups() if shape]
            hint = _layer(error, text) or hint
            if product := _product(error):
                one, two, hint = product
            says = f"It raised {name}: the shapes {one} and {two} do not fit together"
            says = f"{says}{given}.{_where(error)}"
            summed = _summed(error) if "Entry by entry" in hint else ""
            return Explained(found(Kind.RAISED, summed or hint, says=says))
    hint = next(h for p, h in HINTS.items() if re.search(p, f"{name}: {text}"))
    says = f"It raised {name}: {text}{given}{_where(error)}{_seen(error)}"
    hint = _past_the_end(text, dict(zip(names, inputs))) or _of_math(error) or hint
    return Explained(found(Kind.RAISED, hint, says=says))


def _of_math(error: BaseException) -> str:
    """What to do where a function of math's is given a tensor of many numbers."""
    if not re.search("only one element tensors|to Scalar|only length-1", str(error)):
        return ""
    try:
        calls = [n for n in _Scene(error).nodes if isinstance(n, ast.Call) and n.args]
    except Exception:  # no text
        return ""
    for call in calls:
        name, part = ast.unparse(call.func), call.args[0]
        method = name.removeprefix("math.")
        if name != method and hasattr(torch.Tensor, method):
            whole = ast.unparse(part)
            whole = (
                f"({whole})" if isinstance(part, (ast.UnaryOp, ast.BinOp)) else whole
            )
            return (
                f"`{name}` takes a single number; `{whole}.{method}()` does it for "
                "each entry of a tensor. A mean or sum comes after that."
            )
    return ""


def _past_the_end(text: str, inputs: dict[str, Any]) -> str:
    """What to do about an index that is larger than a size, with both numbers."""
    match = re.search(r"index (-?\d+) is out of bounds for .* size (\d+)", text)
    if match is None or match[2] == "0":
        return ""
    index, size = int(match[1]), int(match[2])
    for name, value in inputs.items():
        if type(value) is int and value == abs(index) and value > size:
            return (
                f"`{name}` = {value} asks for more than the {size} that there are: "
                f"min({name}, …) with their number is the most."
            )
    return f"There are {size}, from 0 to {size - 1}: what makes an index of {index}?"
