"""What an answer's error means, and what to do about it."""

import linecache
import re
import traceback

from minigpt.course.checks.values import describe


class Explained(Exception):
    """Raised inside a checker that knows what is wrong: message, then hint.

    share: of the cases, those that are right (0.0 to 1.0, below 1).
    """

    def __init__(self, message, hint="", share=0.0):
        super().__init__(message, hint)
        self.share = share


class NotAttempted(Exception):
    """Raised inside a checker that finds what a skeleton leaves."""


def no_function(what):
    """Explained for an answer that cannot be called."""
    return Explained(
        f"This should be a function (or a module), but it is {what}.",
        "Give the function itself to the check, without calling it.",
    )


def blamed(error, inputs):
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
        if found := re.match(r"'(\w+)' object is not callable", str(error)):
            return no_function(f"of type {found[1]}")
        if not re.search(r"\(\) (takes|missing|got)", str(error)):  # its arguments
            return error
    # A skeleton may raise it; so does torch: softmax "not implemented for 'Long'".
    if isinstance(error, NotImplementedError) and modules[-1] == "__main__":
        if not re.search("not implemented for|Could not run|meta", str(error)):
            return NotAttempted()
    return explain_error(error, inputs)


def _where(error):
    """The learner's last line on the way to an error, or nothing."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__", "__main__") == "__main__":  # the notebook
            text = linecache.getline(frame.f_code.co_filename, line).strip()
            place = f"\n    in {frame.f_code.co_name}, line {line}"
            return f"{place}: {text}" if text else place
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
    r"out of range|out of bounds|IndexError": (
        "An index runs past the end: is the last one size - 1?"
    ),
    r"dtype|scalar type|'Long'|not implemented for 'Bool'|subtract, with a bool": (
        "Integers and floats do not mix here: .float() makes floats of integers. To "
        "turn a mask of True and False round, write ~mask."
    ),
    "": "Try your code on one small input in a cell of its own.",
}
SHAPES = (  # how torch and numpy name two shapes that do not fit
    r"\[[-\d, ]+\]|\(\d+,[\d, ]*\)|\d+x\d+|(?<=\()\d+(?=\))|(?<=size )\d+|(?<=from )\d+"
)
FIT = (
    "Print both shapes before this line. In a product (…, a, b) @ (…, b, c) the inner "
    "sizes must agree; .transpose(-2, -1) exchanges the last two dimensions. Entry by "
    "entry, sizes are compared from the last dimension on and must be equal or 1."
)


def explain_error(error, inputs=()):
    """Explained for what an answer raised; shape mismatches in particular."""
    text, name = (str(error).splitlines() or [""])[0], type(error).__name__
    given = f" (inputs: {', '.join(map(describe, inputs))})" if inputs else ""
    shapes = re.findall(SHAPES, text)
    if len(shapes) > 1:
        says = f"It raised {name}: the shapes {shapes[0]} and {shapes[1]} do not fit "
        return Explained(f"{says}together{given}.{_where(error)}", FIT)
    hint = next(h for p, h in HINTS.items() if re.search(p, f"{name}: {text}"))
    return Explained(f"It raised {name}: {text}{given}{_where(error)}", hint)
