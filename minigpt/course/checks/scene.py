"""The line where an answer raised an error, and the values that it had to do with.

seen() tells of them only what the values themselves show.
"""

import ast
import contextlib
import difflib
import inspect
import re
import textwrap
import traceback
from collections.abc import Iterator
from typing import Any

import torch

from minigpt.course.checks.values import describe

REDUCING = "sum", "mean", "amax", "amin", "norm", "std", "var"
HARMLESS = "transpose", "permute", "view", "reshape", "squeeze", "unsqueeze", "len", "t"
HARMLESS += "flatten", *REDUCING  # it may be called again; so may x.cos(), for x.cos_()
PURE = (ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.Tuple)
PURE += (
    ast.List,
    ast.UnaryOp,
    ast.BinOp,
    ast.Call,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)


class Scene:
    """The learner's line where an error was raised: nodes, and values of parts of it.

    function: all nodes of the function that has it. Raises an exception where there is
    no such line, or no text of it.
    """

    def __init__(self, error: BaseException):
        walk = list(traceback.walk_tb(error.__traceback__))
        self.frame, number = [
            (frame, line)
            for frame, line in walk
            if frame.f_globals.get("__name__", "__main__") == "__main__"
        ][-1]
        self.modules = [f.f_globals.get("__name__", "") for f, _ in walk]  # on its way
        code = self.frame.f_code
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
        number -= code.co_firstlineno - 1
        self.function = list(ast.walk(tree))
        some = (n for n in self.function if isinstance(n, ast.stmt))
        here = [n for n in some if n.lineno <= number <= (n.end_lineno or 0)]
        self.nodes = list(ast.walk(here[-1]))

    def value(self, node: ast.expr) -> Any:
        """What a part of the line is worth; only what changes nothing is computed."""
        for part in ast.walk(node):
            name = getattr(part, "func", None)
            name = getattr(name, "attr", getattr(name, "id", ""))
            harmless = name in HARMLESS or hasattr(torch.Tensor, f"{name}_")
            harmless = harmless and name != "add"  # of a set it changes something
            if not isinstance(part, PURE) or name and not harmless:
                raise ValueError(f"it calls {name}")
        code = compile(ast.Expression(node), "<part>", "eval")
        return eval(code, self.frame.f_globals, self.frame.f_locals)

    def operations(self, *kinds: type) -> Iterator[tuple[ast.BinOp, Any, Any]]:
        """(node, left value, right value) of the operations of some kinds."""
        for node in self.nodes:
            if isinstance(node, ast.BinOp) and isinstance(node.op, kinds):
                with contextlib.suppress(Exception):
                    yield node, self.value(node.left), self.value(node.right)

    def unfit(self) -> tuple[ast.BinOp, torch.Tensor, torch.Tensor] | None:
        """The operation of two tensors that fails: (node, left, right)."""
        for node, left, right in self.operations(ast.operator):
            if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
                shapes = left.shape, right.shape
                if isinstance(node.op, ast.MatMult):
                    outer = left.shape[:-2], right.shape[:-2]
                    inner = right.shape[-2:][:1] == left.shape[-1:]
                    fits = inner and _broadcast(*outer)
                else:
                    fits = _broadcast(*shapes)
                if not fits:
                    return node, left, right
        return None


def _broadcast(*shapes: tuple) -> bool:
    """Whether shapes fit together entry by entry."""
    try:
        torch.broadcast_shapes(*shapes)
    except RuntimeError:
        return False
    return True


def unfit(error: BaseException) -> tuple[tuple, tuple] | None:
    """The shapes of the two tensors that do not fit; None where they are not seen."""
    with contextlib.suppress(Exception):  # no text, or no values
        if pair := Scene(error).unfit():
            return tuple(pair[1].shape), tuple(pair[2].shape)
    return None


def seen(error: BaseException) -> str:
    """What the values of an error's line show; "" where that is nothing."""
    for look in (
        _name,
        _zero,
        _sides,
        _none,
        _index,
        _of_math,
        _layer,
        _turned,
        _summed,
    ):
        with contextlib.suppress(Exception):  # no text, or no values
            if says := look(error, Scene(error)):
                return says
    return ""


def _name(error: BaseException, scene: Scene) -> str:
    """A name like the one that is missing."""
    wanted = getattr(error, "name", None)
    if isinstance(error, NameError):
        there = {*scene.frame.f_locals, *scene.frame.f_globals}
    elif isinstance(error, AttributeError):
        there = {*dir(error.obj)}
    else:
        return ""
    like = difflib.get_close_matches(str(wanted), sorted(there), 1, 0.8)
    return f"Nothing is called `{wanted}` here; there is `{like[0]}`." if like else ""


def _zero(error: BaseException, scene: Scene) -> str:
    """Which number divides and is 0, and of what it was made."""
    if not isinstance(error, ZeroDivisionError):
        return ""
    for node, _, divisor in scene.operations(ast.Div, ast.FloorDiv, ast.Mod):
        if divisor == 0:
            names = [n.id for n in ast.walk(node.right) if isinstance(n, ast.Name)]
            values = (
                (name, scene.value(ast.parse(name, mode="eval").body)) for name in names
            )
            some = [f"{n} = {v}" for n, v in values if isinstance(v, (int, float))]
            made = f", with {', '.join(dict.fromkeys(some))}" if some else ""
            return f"`{ast.unparse(node.right)}` is 0 here{made}."
    return ""


def _sides(error: BaseException, scene: Scene) -> str:
    """The two sides of a comparison that was asserted."""
    if not isinstance(error, AssertionError):
        return ""
    test = next(n.test for n in scene.nodes if isinstance(n, ast.Assert))
    if not isinstance(test, ast.Compare):
        return ""
    sides = [test.left, test.comparators[0]]
    values = (scene.value(n) for n in sides)
    some = [tuple(v) if isinstance(v, tuple) else v for v in values]  # torch.Size
    texts = (f"`{ast.unparse(n)}` is {describe(v)}" for n, v in zip(sides, some))
    return f"This is an assert of yours: {', '.join(texts)}."


def _none(error: BaseException, scene: Scene) -> str:
    """What is None."""
    if "NoneType" not in str(error):
        return ""
    for node in scene.nodes:
        if isinstance(node, (ast.Name, ast.Attribute)):
            with contextlib.suppress(Exception):
                if scene.value(node) is None:
                    return f"`{ast.unparse(node)}` is None here."
    return "Something in this line is None."


def _index(error: BaseException, scene: Scene) -> str:
    """The shape or length of what has no such place, and the places asked for."""
    if not isinstance(error, IndexError):
        return ""
    for node in scene.nodes:
        if not isinstance(node, ast.Subscript):
            continue
        whole = scene.value(node.value)
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        sizes = getattr(whole, "shape", None)
        sizes = [len(whole)] if sizes is None else list(sizes)
        what = f"`{ast.unparse(node.value)}`"
        if len(places) > len(sizes):
            return (
                f"{what} has the shape {tuple(sizes)} here, and {len(places)} indices."
            )
        for dim, (place, size) in enumerate(zip(places, sizes)):
            at = None if isinstance(place, ast.Slice) else scene.value(place)
            if isinstance(at, int) and not -size <= at < size:
                where = f"Dimension {dim} of {what}" if len(sizes) > 1 else what
                has = f"{where} has the places 0 to {size - 1}"
                text = ast.unparse(place)
                no = f", but no {at}" if text == str(at) else f"; `{text}` is {at}"
                return f"{has}{no}." if size else f"{where} is empty here."
    return ""


def _of_math(error: BaseException, scene: Scene) -> str:
    """That a function of math's is given a tensor of many numbers."""
    if not re.search("only one element tensors|to Scalar|only length-1", str(error)):
        return ""
    for call in (n for n in scene.nodes if isinstance(n, ast.Call) and n.args):
        name, part = ast.unparse(call.func), ast.unparse(call.args[0])
        method = name.removeprefix("math.")
        if name != method and hasattr(torch.Tensor, method):
            if isinstance(call.args[0], (ast.UnaryOp, ast.BinOp)):
                part = f"({part})"
            return (
                f"`{name}` takes a single number; `{part}.{method}()` does it for "
                "each entry of a tensor."
            )
    return ""


def _layer(error: BaseException, scene: Scene) -> str:
    """That a linear layer gets another number of features than it takes."""
    sizes = re.search(r"\(\d+x(\d+) and (\d+)x\d+\)", str(error))
    if sizes and "torch.nn.modules.linear" in scene.modules:
        return (
            f"A linear layer that takes {sizes[2]} numbers for each position is given "
            f"{sizes[1]}."
        )
    return ""


def _turned(error: BaseException, scene: Scene) -> str:
    """That .T turns more than two dimensions."""
    if (unfit := scene.unfit()) is None:
        return ""
    node, *both = unfit
    for part, value in zip((node.left, node.right), both):
        if isinstance(part, ast.Attribute) and part.attr == "T" and value.dim() > 2:
            return (
                f"`{ast.unparse(part)}` turns all dimensions round: "
                f"{tuple(value.shape[::-1])} becomes {tuple(value.shape)}."
            )
    return ""


def _summed(error: BaseException, scene: Scene) -> str:
    """That a sum has taken away the dimension that is lacking."""
    unfit = scene.unfit()
    if unfit is None or isinstance(unfit[0].op, ast.MatMult):
        return ""
    node, both = unfit[0], unfit[1:]
    for i, part in enumerate((node.left, node.right)):
        for call in _made_by(part, scene):
            ways = {k.arg: k.value for k in call.keywords}
            place = ways.get(
                "dim", ways.get("axis", call.args[0] if call.args else None)
            )
            if getattr(call.func, "attr", "") not in REDUCING or place is None:
                continue
            kept = both[i].unsqueeze(ast.literal_eval(place))
            if not {*ways} - {"dim", "axis"} and _broadcast(
                kept.shape, both[1 - i].shape
            ):
                keep = "keepdims" if "axis" in ways else "keepdim"
                return (
                    f"`{ast.unparse(call)}` takes a dimension away, and "
                    f"{tuple(both[i].shape)} is left. {keep}=True would leave "
                    f"{tuple(kept.shape)}, which fits {tuple(both[1 - i].shape)}."
                )
    return ""


def _made_by(part: ast.expr, scene: Scene) -> list[ast.Call]:
    """The calls in an expression, and in what its names were assigned."""
    names = {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}
    lines = [n for n in scene.function if isinstance(n, ast.Assign)]
    made = [n.value for n in lines if getattr(n.targets[0], "id", "") in names]
    every = (n for value in [part, *made] for n in ast.walk(value))
    return [n for n in every if isinstance(n, ast.Call)]
