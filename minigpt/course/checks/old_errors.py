"""What is told of an answer's error: what it says, its line, and what it shows.

What an error means in general is told here (MEANINGS, UNFIT). What would mend this
answer is not seen in an error: changed answers are tried by search.py.
"""

import linecache
import re
import traceback
from collections.abc import Sequence
from typing import Any

from minigpt.course.checks import scene
from minigpt.course.checks.findings import Finding, Kind, found
from minigpt.course.checks.values import describe


class Problem(Exception):
    """Raised by what knows what is wrong with an answer.

    findings: that. hint: the exercise's, which need not fit. value_name: of the
    value that is meant. shown: the case that shows it. share: of the cases, those that
    are right, 0.0 to 1.0, below 1. asked: the Question, if one was asked.
    """

    def __init__(
        self,
        *findings: Finding,
        hint: str = "",
        value_name: str = "",
        shown: str = "",
        share: float = 0.0,
    ):
        super().__init__(*findings)
        self.findings, self.share = list(findings), share
        self.hint, self.value_name, self.shown = hint, value_name, shown
        self.asked: Any = None


class Explained(Problem):
    """Raised inside a checker that can say itself what is wrong: a sentence, a hint.

    untouched: whether a bug hunt's bug is as it was.
    """

    def __init__(
        self, says: str, hint: str = "", share: float = 0.0, untouched: bool = False
    ):
        kind = Kind.UNTOUCHED if untouched else Kind.WRITTEN
        super().__init__(found(kind, hint, says=says), share=share)


class NotAttempted(Exception):
    """Raised inside a checker that finds what a skeleton leaves."""


def no_function(what: str) -> Explained:
    """Explained for an answer that cannot be called."""
    return Explained(
        f"This should be a function (or a module), but it is {what}.",
        "Give the function itself to the check, without calling it.",
    )


def to_raise(
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
    if isinstance(error, (Problem, NotAttempted)):
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


MEANINGS = {  # what an error says: what that means; the first that fits is told
    r"'(float|int)' object has no attribute": (
        "It is a Python number, which has none of a tensor's methods."
    ),
    r"'(list|tuple)' object has no attribute|(list|tuple) indices must be": (
        "It is a Python list or tuple, which has neither a tensor's methods nor its "
        "indices."
    ),
    r"only one element tensors|to Scalar|Boolean value of Tensor|ambiguous": (
        "A whole tensor stands where one number is wanted."
    ),
    r"does not require grad|does not have a grad_fn": (
        "Torch has not recorded how this number came about. no_grad, .detach(), "
        ".item() and comparisons end its record."
    ),
    r"leaf Variable that requires": (
        "A parameter is changed in place while torch records what is done to it; that "
        "is allowed only under torch.no_grad()."
    ),
    r"modified by an inplace operation": (
        "A tensor that backward() still needs was changed in place: by +=, by "
        "x[…] = …, or by a method whose name ends with _."
    ),
    r"not contiguous|view size is not compatible": (
        "The numbers lie in another order in memory, as after a transpose: view cannot "
        "read them so, reshape makes a copy."
    ),
    r"selected index k out of range": "topk can give no more than there are.",
    r"Dimension out of range": "The tensor has fewer dimensions than that here.",
    r"expected a non-empty list of Tensors": "The list of tensors is empty.",
    r"(size|length) 0$|non-empty|empty (tensor|sequence|list)|is empty|iterable argu": (
        "Something is empty for these inputs: there is nothing in it, not even [0]."
    ),
    r"values to unpack": (
        "On the left stand more or fewer names than there are values. A .shape has as "
        "many as the tensor has dimensions."
    ),
    r"torch\.return_types\.": (
        "With a dim, max, min, sort and topk give two things: .values and .indices."
    ),
    r"einstein sum.*ellipsis": (
        "NumPy's einsum cannot sum over what an ellipsis stands for, but "
        "reshape(-1, C) can make one dimension of all before the last."
    ),
    r"too many indices": (
        "There are more places in the brackets than this tensor has dimensions."
    ),
    r"out of range|out of bounds": "An index runs past the end.",
    r"OverflowError": (
        "A number gets too large for a float, as e to the power of more than 709 is."
    ),
    r"KeyError": "There is no such key in the dictionary.",
    r"number of sizes provided|expanded size|setting an array element": (
        "What is put there has another shape than the place that it is to fill."
    ),
    r"UnicodeDecodeError": (
        "These bytes are no text, or only a part of one: a character may take several "
        "bytes."
    ),
    r"subtract, with a bool": "A mask of True and False is turned round by ~mask.",
    r"'Long'|integral": "These are whole numbers, where floats are needed.",
    r"dtype|scalar type|not implemented for 'Bool'": (
        "Two kinds of numbers (dtypes) meet that do not go together, or one that this "
        "function does not take."
    ),
    r"AssertionError": "This is an assert of yours: what it says is not so here.",
}
UNFIT = {  # how torch names two shapes that do not fit: the rule
    r"\((\d+x\d+) and (\d+x\d+)\)|to be: (\[[\d, ]+\]) but got: (\[[\d, ]+\])"
    r"|\(size (\d+) is different from (\d+)\)": (
        "In a product (…, a, b) @ (…, b, c) the inner sizes must agree, and those "
        "before the last two be equal or 1."
    ),
    r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)"
    r"|broadcast together with shapes (\(.*?\)) (\(.*?\))": (
        "Entry by entry, sizes are compared from the last dimension on and must be "
        "equal or 1."
    ),
    r"mask (\[\d+.*?\]) at index .* tensor (\[.*?\])": (
        "A mask needs an entry for each entry of what it picks from."
    ),
    r"shape '(\[[-\d, ]+\])' is invalid for input of size (\d+)": (
        "The sizes of a view must multiply to the number of entries."
    ),
    r"Expected size (\d+) but got size (\d+)|of shape (\[.*\]).* of shape (\[.*\])": (
        "All sizes but one must be equal."
    ),
}


def explain_error(
    error: BaseException, inputs: Sequence[Any] = (), names: Sequence[str] = ()
) -> Problem:
    """The Problem with what an answer raised; shape mismatches in particular.

    names: what the inputs are called.
    """
    text, name = (str(error).splitlines() or [""])[0], type(error).__name__
    called = [*names, *[""] * len(inputs)]
    each = [
        f"{n} = {describe(x)}" if n else describe(x) for n, x in zip(called, inputs)
    ]
    given = f" (inputs: {', '.join(each[: len(inputs)])})" if inputs else ""
    where, shown = _where(error), scene.seen(error)
    if shown:
        where += f"\n    {shown}"
    for pattern, rule in UNFIT.items():
        if match := re.search(pattern, text):
            shapes = [shape for shape in match.groups() if shape]
            one, two = scene.unfit(error) or shapes
            says = f"It raised {name}: the shapes {one} and {two} do not fit together"
            says = f"{says}{given}.{where}"
            return Problem(found(Kind.RAISED, "" if shown else rule, says=says))
    whole = f"{name}: {text}"
    means = next((m for p, m in MEANINGS.items() if re.search(p, whole)), "")
    says = f"It raised {whole}{given}{where}"
    return Problem(found(Kind.RAISED, "" if shown else means, says=says))
