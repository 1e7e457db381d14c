"""Running a learner's code: whatever it does, the check goes on and says it."""

import ast
import copy
import ctypes
import dis
import functools
import inspect
import linecache
import re
import sys
import textwrap
import threading
import time
import traceback

import torch
import torch.nn as nn

from minigpt.checks.values import as_tensor, describe, same

SECONDS = 5  # an answer that takes longer than this hangs


class Explained(Exception):
    """Raised inside a checker that knows what is wrong: message, then hint.

    share: of the cases, those that are right (0.0 to 1.0, below 1).
    """

    def __init__(self, message, hint="", share=0.0):
        super().__init__(message, hint)
        self.share = share


class NotAttempted(Exception):
    """Raised inside a checker that finds what a skeleton leaves."""


def attempted(answer):
    """False for what a skeleton leaves: `...` or None."""
    return answer is not ... and answer is not None


def call(answer, *inputs):
    """answer(*inputs), on copies; errors and endless loops become Explained.

    Raises NotAttempted where the answer is still a skeleton.
    """
    return run(answer, inputs)[0]


def run(answer, inputs, work=None):
    """(what answer(*inputs) returns, the numbers of the inputs that it changed).

    work(answer, *inputs): what to do with the answer in place of calling it.
    """
    if not callable(answer):
        raise no_function(describe(answer))
    given, outcome = copy.deepcopy(inputs), {}

    def act():
        try:
            if work:
                outcome["value"] = work(answer, *given)
            else:
                outcome["value"] = answer(*given)
        except BaseException as error:  # the learner's code may raise anything
            outcome["error"] = error

    if not _in_time(act, SECONDS):
        raise Explained(
            f"It was still running after {SECONDS} seconds and was stopped.",
            "Look for a loop that never ends, or whose end moves away.",
        )
    if "error" in outcome:
        if is_skeleton(answer) and re.search(
            "ellipsis|NoneType", str(outcome["error"])
        ):
            raise NotAttempted
        problem = _blamed(outcome["error"], inputs)
        raise problem from (None if problem is outcome["error"] else outcome["error"])
    value = outcome["value"]
    own = getattr(answer, "__module__", "") or ""  # a check's own wrapping says None
    dots = own.startswith("minigpt.checks.") or is_skeleton(answer)
    several = value if isinstance(value, (tuple, list)) and value else [value]
    if all(part is ... for part in several) or (value is None and dots):
        raise NotAttempted
    if value is None:
        raise Explained(
            "It returns nothing (None).",
            "Is `return` missing, or does it stand where it is never reached? A "
            "print(...) shows a value, but hands nothing back.",
        )
    pairs = zip(given, inputs)
    return value, [i for i, (now, then) in enumerate(pairs) if _changed(now, then)]


def _in_time(act, seconds):
    """Run act(), in a thread where there are any; False if it had to be stopped.

    It gets so many seconds of computing, so that a busy machine does not count against
    it, but at most four times as many by the clock. Importing modules is for nothing:
    the first optimizer of a process imports for seconds.
    """
    if (thread := started(act)) is None:
        return True
    modules = 0
    try:
        while thread.is_alive():
            if len(sys.modules) != modules:
                modules, since = len(sys.modules), time.monotonic()
                busy = time.process_time()
            thread.join(min(0.05, seconds / 4))
            waited, computed = time.monotonic() - since, time.process_time() - busy
            if min(computed, waited) > seconds or waited > 4 * seconds:
                break
        return not thread.is_alive()
    finally:
        stop(thread)


def started(act):
    """A thread that runs act(); None where there are no threads, and it has run."""
    thread = threading.Thread(target=act, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # a browser's Python
        act()
        return None
    return thread


def stop(thread):
    """End a thread that still runs, unless it is deep in a long operation."""
    for _ in range(5):  # an `except:` of the learner's may catch one or two
        if not thread.is_alive():
            return
        interrupt(thread)
        thread.join(0.1)


def interrupt(thread):
    """Raise SystemExit in another thread, as soon as it runs Python again.

    It is the one exception that ends a thread without a word, wherever it strikes.
    """
    end = ctypes.py_object(SystemExit)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), end)


def _changed(now, then):
    """Whether an input, or what is in it, has other numbers than before."""
    if isinstance(then, nn.Module):
        before, after = then.state_dict(), now.state_dict()
        return before.keys() != after.keys() or any(
            _changed(after[key], before[key]) for key in before
        )
    if isinstance(then, dict):
        return now.keys() != then.keys() or any(_changed(now[k], then[k]) for k in then)
    if isinstance(then, (list, tuple)):
        return len(now) != len(then) or any(map(_changed, now, then))
    if isinstance(then, torch.Tensor) or type(then).__name__ == "ndarray":
        return as_tensor(then) is not None and not same(now, then, atol=0.0)
    return False


def _written(answer):
    """The function or class that a learner wrote, out of its wrappings."""
    answer = inspect.unwrap(answer)
    if isinstance(answer, functools.partial):
        return _written(answer.func)
    named = inspect.isroutine(answer) or inspect.isclass(answer)
    return answer if named else type(answer)


def listing(answer):
    """(text of a function or class, dedented, its first line's number); ("", 1)."""
    try:
        answer = _written(answer)
        if inspect.isclass(answer):  # inspect finds no class of a notebook
            lines, first = _class_lines(answer)
        else:
            lines, first = inspect.getsourcelines(answer)
        return textwrap.dedent("".join(lines)), max(first, 1)
    except Exception:
        return "", 1


def surroundings(answer):
    """The names among which a function or class was written."""
    written = _written(answer)
    inside = vars(written).values() if inspect.isclass(written) else [written]
    spaces = (getattr(inspect.unwrap(f), "__globals__", None) for f in inside)
    return next(filter(None, spaces), {})


def _class_lines(cls):
    """A class's lines and the first one's number, found by way of its methods."""
    for method in map(inspect.unwrap, filter(callable, vars(cls).values())):
        code = getattr(method, "__code__", None)
        if code is None or cls.__qualname__ not in method.__qualname__:
            continue
        lines = linecache.getlines(code.co_filename)
        for node in ast.walk(ast.parse("".join(lines))):
            if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                if node.lineno <= code.co_firstlineno <= node.end_lineno:
                    return lines[node.lineno - 1 : node.end_lineno], node.lineno
    raise OSError("a class without methods of its own")


def source(answer):
    """The text of a function or class, dedented; "" where it cannot be found."""
    return listing(answer)[0]


def is_skeleton(answer):
    """Whether a function or class still has its exercise's dots, or no body at all."""
    try:
        for node in ast.walk(ast.parse(source(answer))):
            if isinstance(node, (ast.Expr, ast.Assign, ast.Return)):
                if isinstance(node.value, ast.Constant) and node.value.value is ...:
                    return True
    except SyntaxError:  # a lambda in the middle of something
        pass
    code = getattr(_written(answer), "__code__", None)
    if code is None:
        return False
    steps = {step.opname for step in dis.get_instructions(code)}
    return steps <= {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}


def borrowed(answer):
    """(arguments that it never uses, names of the notebook's data that it uses).

    Functions, classes, modules and names in capitals are no data.
    """
    answer = _written(answer)
    code = getattr(answer, "__code__", None)
    if code is None:
        return [], []
    loaded, outside = _names(code)
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    kinds = (torch.Tensor, int, float, str, list, tuple, dict, nn.Module)
    space = answer.__globals__
    data = [n for n in outside if isinstance(space.get(n), kinds) and not n.isupper()]
    return [name for name in arguments if name not in loaded], data


def _names(code):
    """All names that some code reads, and those of them that are global.

    Some steps load two names at once, and some store one and load another.
    """
    loaded, outside = set(), []
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            outside.append(step.argval)
        elif "LOAD_" in step.opname:
            names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            loaded.update(n for n in names if isinstance(n, str))
    for inner in filter(inspect.iscode, code.co_consts):
        more, further = _names(inner)
        loaded |= more
        outside += further
    return loaded, list(dict.fromkeys(outside))


def without_self(answer):
    """A sentence about a method's local that was meant for the object, or nothing."""
    try:
        tree = ast.parse(source(answer))
    except SyntaxError:
        return ""
    kept = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for method in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        names = [n for n in ast.walk(method) if isinstance(n, ast.Name)]
        read = {n.id for n in names if isinstance(n.ctx, ast.Load)}
        for name in (n.id for n in names if isinstance(n.ctx, ast.Store)):
            if name in kept and name not in read:
                return (
                    f" Nobody reads the `{name}` of {method.name}: is `self.` missing?"
                )
    return ""


def no_function(what):
    """Explained for an answer that cannot be called."""
    return Explained(
        f"This should be a function (or a module), but it is {what}.",
        "Give the function itself to the check, without calling it.",
    )


def _blamed(error, inputs):
    """What to raise for an error: the learner's is explained, the check's own is not.

    A check wraps some answers in a function of its own. An error under such a
    wrapper is the learner's if a line of the learner's is on the way to it.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    modules = [frame.f_globals.get("__name__", "__main__") for frame in frames]
    wrapped = any(
        name.startswith("minigpt.checks.") and name != __name__ for name in modules
    )
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


HINTS = [  # (what an error says, what to do)
    (
        r"'(float|int)' object has no attribute",
        "A Python number has none of a tensor's methods: was .item() or float() "
        "called too early, or is it a number where you expect a tensor?",
    ),
    (
        r"'(list|tuple)' object has no attribute|(list|tuple) indices must be",
        "That is a list or a tuple, not a tensor. Does a call return several values "
        "(a model: logits and loss)? Take the one you need, as in `logits, loss = …`.",
    ),
    (
        r"'NoneType' object",
        "Something is None here: a function that returns nothing (one that ends in "
        "an underscore works in place), a loss without targets, or a p.grad before "
        "backward().",
    ),
    (
        r"only one element tensors|to Scalar|Boolean value of Tensor|ambiguous",
        "A whole tensor stands where one number is wanted (.item(), float, if): "
        "reduce it first, by .mean(), .sum(), .all() or an index.",
    ),
    (
        r"[Dd]imension out of range|dim.* out of range",
        "There is no such dimension: an index or a .sum() may have removed one "
        "(keepdim=True keeps it). Print the shape before this line.",
    ),
    (
        r"not a Module subclass|is not a Module",
        "nn.Sequential and nn.ModuleList take modules: objects such as nn.ReLU(), "
        "with brackets, not functions or classes.",
    ),
    (
        r"cannot assign module before Module.__init__",
        "Begin __init__ with super().__init__().",
    ),
    (
        r"does not require grad|does not have a grad_fn",
        "The way back to the parameters is cut: by no_grad, .detach(), .item() or a "
        "comparison.",
    ),
    (
        r"a leaf Variable that requires grad",
        "A parameter is changed in place while gradients are recorded: put the "
        "change under torch.no_grad().",
    ),
    (
        r"not contiguous|view size is not compatible",
        "After a transpose the numbers lie in another order in memory: use reshape, "
        "or .contiguous() before view.",
    ),
    (
        r"out of range|out of bounds",
        "An index runs past the end: is the last one size - 1?",
    ),
    (
        r"dtype|scalar type|'Long'|not implemented for 'Bool'|subtract, with a bool",
        "Integers and floats do not mix here: .float() makes floats of integers. To "
        "turn a mask of True and False round, write ~mask.",
    ),
    (
        r"must be str, not|can only concatenate",
        "Text and numbers do not mix: str(...) or an f-string makes text.",
    ),
    (
        r"unexpected keyword|positional argument|required argument",
        "Check the number of arguments and what each of them is.",
    ),
    (
        r"not enough values to unpack|too many values to unpack",
        "On the left stand more or fewer names than values on the right: how many "
        "dimensions, or how many returned values, are there?",
    ),
    (
        r"division by zero",
        "Something is divided by 0: by a length that is empty, or a size minus one?",
    ),
    (
        r"modified by an inplace operation",
        "A tensor that backward() still needs was changed in place (+=, *=, x[…] =): "
        "make a new one.",
    ),
]
KINDS = [
    (NameError, "Use the function's own arguments, and import what you need."),
    (IndexError, "An index runs past the end: is the last one size - 1?"),
    (KeyError, "There is no such key: print the dictionary's keys."),
    (TypeError, "Check the number of arguments and what each of them is."),
    (ValueError, "The message names the value that is not accepted: change that one."),
    (BaseException, "Try your code on one small input in a cell of its own."),
]


def explain_error(error, inputs=()):
    """Explained for what an answer raised; shape mismatches in particular."""
    text = (str(error).splitlines() or [""])[0]
    name, line = type(error).__name__, _where(error)
    shapes = two_shapes(text)
    given = f" (inputs: {', '.join(map(describe, inputs))})" if inputs else ""
    if shapes:
        said = (
            f"The shapes {shapes[0]} and {shapes[1]} do not fit together{given}. "
            f"It raised {name}: {text}{line}"
        )
        if "must match" in text:
            hint = (
                "Entry by entry, sizes are compared from the last dimension on and "
                "must be equal or 1. Is a keepdim=True missing, or a transpose?"
            )
        elif "is invalid for input" in text:
            hint = "The sizes of a view must multiply to the number of entries."
        else:
            hint = (
                "In a product (…, a, b) @ (…, b, c) the inner sizes must agree. If "
                "they would after exchanging the last two dimensions of the second "
                "one, a .transpose(-2, -1) belongs there."
            )
        return Explained(said, hint)
    found = (hint for pattern, hint in HINTS if re.search(pattern, text))
    of_kind = next(hint for kind, hint in KINDS if isinstance(error, kind))
    hint = of_kind if isinstance(error, NameError) else next(found, of_kind)
    return Explained(f"It raised {name}: {text}{given}{line}", hint)


def two_shapes(text):
    """The two shapes or sizes named in an error of torch, or None."""
    patterns = [
        r"\((\d+x\d+) and (\d+x\d+)\)",
        r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)",
        r"to be: (\[[\d, ]+\]) but got: (\[[\d, ]+\])",
        r"shape '(\[[-\d, ]+\])' is invalid for input of size (\d+)",
        r"shape mismatch: value tensor of shape (\[[\d, ]+\]).* of shape (\[[\d, ]+\])",
        r"Sizes of tensors must match.* Expected size (\d+) but got size (\d+)",
    ]
    for pattern in patterns:
        found = re.search(pattern, text)
        if found:
            return found.groups()
    return None
