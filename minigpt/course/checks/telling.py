"""What is said of a Problem: one text, made of its findings.

A Finding's parts may be words already, where only they know what was seen: measuring,
scene and tracing describe values, errors and comparing bring remedies. The sentences
around them stand here, and nothing in the engine reads one.

A miss is helped in two steps. At first the learner hears what is wrong and where; with
`tell`, also what belongs there instead.
"""

import itertools
import re

from minigpt.course.checks.errors import Problem
from minigpt.course.checks.findings import Finding, Kind
from minigpt.course.checks.mutations import Mutant
from minigpt.course.checks.rules import Change

SENTENCES = {  # kind: a sentence with the finding's parts, a hint
    Kind.WRITTEN: ("{says}", ""),
    Kind.KNOWN: ("{says}", ""),
    Kind.AS_KNOWN: ("Your results are those of this mistake: {says}", ""),
    Kind.UNTOUCHED: ("{says}", ""),
    Kind.TWO_KNOWN: (
        "Your results are those of two mistakes at once. {says}\n  "
        "And besides: {other}",
        "",
    ),
    Kind.SYNTAX: (
        "Your cell is no Python (SyntaxError: {error}), so it defined nothing; what is "
        "judged would be the function from before.\n    line {line}: {text}",
        "Mend that line, run the cell again, then the check.",
    ),
    Kind.BEHIND_RETURN: ("`{text}` stands after `return`; nothing gets there.", ""),
    Kind.NOT_CALLED: ("`{text}` alone calls nothing: add the brackets.", ""),
    Kind.NOT_KEPT: ("`{text}` is computed, and nobody keeps it.", ""),
    Kind.ALWAYS_TRUE: (
        "`{text} or …` is always true: a text that is not empty counts as True. Write "
        "both conditions out.",
        "",
    ),
    Kind.RETURN_IN_LOOP: (
        "`{text}` stands inside the loop, which ends there in its first round.",
        "",
    ),
    Kind.NEVER_READ: ("Nothing reads what `{text}` makes.", ""),
    Kind.ARGUMENT_UNREAD: ("Your code never reads its argument `{name}`.", ""),
    Kind.USED_UP: (
        "`{name}` can be gone through only once: the second time, nothing is left.",
        "list(...) keeps all of it, for as many times as you need.",
    ),
    Kind.NO_COPY: ("`{text}` gives one thing a second name; that makes no copy.", ""),
    Kind.RAISED: ("{says}", ""),
    Kind.NOTHING_RETURNED: (
        "It returns nothing (None).",
        "Is `return` missing, or does it stand where it is never reached? A print(...) "
        "shows a value, but hands nothing back.",
    ),
    Kind.ENDLESS: (
        "It was still running after {seconds} seconds and was stopped.",
        "Look for a loop that never ends, or whose end moves away.",
    ),
    Kind.KEPT: (
        "The same inputs give another result the second time: something is kept "
        "between calls, or drawn by chance.",
        "Make anew, inside the function, whatever it fills or draws from.",
    ),
    Kind.KEPT_IN_DEFAULT: (
        "The same inputs give another result the second time: something is kept "
        "between calls. `{text}` is made once, when the function is defined, and "
        "each call finds in it what the calls before have left.",
        "Make it anew, inside the function.",
    ),
    Kind.MISSING_PART: ("Still missing: {part}.", ""),
    Kind.AS_BEFORE: (
        "Of this input your program gives what it gave before you changed it: the "
        "symptom is still there.",
        "",
    ),
    Kind.CHANGED_IN_VAIN: (
        "You have changed the program, but not what it gives.",
        "",
    ),
    Kind.END_TOO_MANY: ("Of the values, the {end} is too many.", ""),
    Kind.END_MISSING: ("Of the values, the {end} is missing.", ""),
    Kind.LENGTH: ("The number of values is {got}, where {expected} should be.", ""),
    Kind.TYPE: (
        "It returns {got}, where {expected} should be.",
        "Call what is a function; list(...) makes a list of a generator.",
    ),
    Kind.COMPLEX: (
        "This answer could not be compared: its numbers are complex.",
        "Return real numbers.",
    ),
    Kind.DTYPE: (
        "The numbers are right, but their dtype is {got}, where {expected} is needed.",
        "dtype=torch.long makes ids; .to(dtype) makes another kind of numbers.",
    ),
    Kind.NAN: (
        "{count} of {of} results are nan, not a number{where}.",
        "Look for the first line that makes a nan: print(x.isnan().any()).",
    ),
    Kind.INFINITE: (
        "Some results are infinite.",
        "",
    ),
    Kind.SHAPE: ("The shape is {got}, but should be {expected}.", ""),
    Kind.SHAPE_ALONE: (
        "The shape is {got}, but should be {expected}. The numbers are right.",
        "squeeze, [0], keepdim or view.",
    ),
    Kind.ENTRY_MISSING: (
        "The shape is {got}, but should be {expected}. One entry is missing in "
        "dimension {dim}.",
        "",
    ),
    Kind.ENTRY_TOO_MANY: (
        "The shape is {got}, but should be {expected}. One entry too many in "
        "dimension {dim}.",
        "",
    ),
    Kind.MINUS: ("The sign is wrong: the numbers are right, with a minus.", ""),
    Kind.TURNED_MASK: (
        "True and False, or 1 and 0, are the wrong way round.",
        "~ turns a mask.",
    ),
    Kind.BITS: ("These are bits: right, but in the unit of log2.", ""),
    Kind.UPSIDE_DOWN: ("Yours is one over what was asked for: upside down.", ""),
    Kind.OFFSET: ("All your numbers are too {more} by {offset:.4g}.", ""),
    Kind.FACTOR: (
        "The numbers are right up to a constant factor{size}.",
        "In this case it is {factor:.4g}.",
    ),
    Kind.EXCHANGED: (
        "The numbers are right, but transposed: dimensions {i}, {j} are exchanged.",
        ".transpose({i}, {j})",
    ),
    Kind.ANOTHER_ORDER: (
        "The right numbers, but in another order.",
        "reshape and view keep the order in memory; transpose and permute exchange "
        "dimensions.",
    ),
    Kind.ROWS_SUM: (
        "{rows} to {got:.4g}; each should sum to {expected:.4g}.",
        "",
    ),
    Kind.MOVES: (
        "Change `{name}` at place {at} of dimension {dim} alone, and {what} moves at "
        "place {other}, too; it should not.",
        "What does each place of the result depend on, and on what should it?",
    ),
    Kind.DOES_NOT_MOVE: (
        "Change `{name}`, and {what} stays as it is; it should depend on it.",
        "",
    ),
    Kind.SOME_PLACES: (
        "{along} (0 to {last}) only {some} {how}.",
        "",
    ),
    Kind.ENTRY: ("The entry {key} has {got}, where {expected} belongs.", ""),
    Kind.PIECE_TOO_MANY: ("At place {at} of your result {piece} is too many.", ""),
    Kind.PIECE_MISSING: ("At place {at} of your result {piece} is missing.", ""),
    Kind.FIRST_WRONG: (
        "At place {at} your result has {got}, where {expected} belongs.",
        "",
    ),
    Kind.LATER_SHAPE: (
        "And of another input ({inputs}) your result has the shape {got}, where "
        "{expected} belongs.",
        "",
    ),
    Kind.CHANGED_PLACES: (
        "Along dimension {dim} your function changes {got}; it should change "
        "{expected}.",
        "",
    ),
    Kind.SOME_RIGHT: (
        "It is right for {right} of {of} inputs. The smallest that goes wrong:",
        "",
    ),
    Kind.UNKNOWN: ("The result is not right yet.", ""),
    Kind.NOT_COMPARED: (
        "This answer could not be compared: the check cannot work with it, or with "
        "what it makes ({error}).",
        "Wanted: {wanted} If yours is that, run the cells above again: a name may have "
        "changed its meaning.",
    ),
}
AT_FIRST = {  # what is said of a changed place at first; of whole lines: see MOVED
    Change.DIM: "a dimension is wrong",
    Change.INDEX: "an index, or the end of a slice, is wrong",
    Change.NUMBER: "a number is wrong",
    Change.SIGN: "a sign is wrong",
    Change.OPERATION: "an operation is wrong",
    Change.COMPARISON: "a comparison is wrong",
    Change.FUNCTION: "a function is taken for another one",
    Change.ORDER: "two things have changed places",
    Change.STEP_ORDER: "two steps are in the wrong order",
    Change.PART: "a part is wrong",
    Change.NAME: "a name is taken for another one",
}


def message(problem: Problem, tell: bool = False) -> str:
    """A Problem as one text: its findings, the case that shows them, a hint."""
    says = "\n  ".join(sentence(one, tell) for one in problem.findings)
    lead = f"{problem.part}: " if problem.part else ""
    last = _last(problem)
    return f"not yet. {lead}{says}{problem.shown}" + (last and f"\n  {last}")


def _last(problem: Problem) -> str:
    """The line with the hint, if any.

    A finding's own comes first. The exercise's was written with its known mistakes in
    mind; behind other findings it is said to be the exercise's; and who hears the place
    needs none.
    """
    if own := next(filter(None, map(hint, problem.findings)), ""):
        return f"Hint: {own}"
    if problem.hint and any(f.kind is Kind.KNOWN for f in problem.findings):
        return f"Hint: {problem.hint}"
    if problem.hint and not any("mutant" in f.parts for f in problem.findings):
        return f"Hint of the exercise: {problem.hint}"
    return ""


def sentence(finding: Finding, tell: bool = False) -> str:
    """What a finding says."""
    parts = finding.parts
    if finding.kind is Kind.OWN_SLIP:
        return _own_slip(tell, **parts)
    if finding.kind is Kind.LIKE_SLIP:
        return _like_slip(parts["mutant"], tell)
    if finding.kind is Kind.INPUT_CHANGED:
        begin = "The result is right, but your" if parts["right"] else "Besides, your"
        first = parts.get("first")
        return (
            f"{'Your' if first else begin} function changes {parts['name']} in place: "
            "whoever called it finds other numbers in what is theirs"
            f"{', and so does every line after that one' if first else ''}."
        )
    return SENTENCES[finding.kind][0].format(**parts)


def hint(finding: Finding) -> str:
    """The finding's own hint, or its kind's; "" for none."""
    if finding.hint or finding.kind not in SENTENCES:
        return finding.hint
    return SENTENCES[finding.kind][1].format(**finding.parts)


def exchanged(wrong: str, right: str, which: str = "") -> str:
    """What must change, where `wrong` stands and `right` belongs; which: of several."""
    if not right:
        return f"{which}`{wrong}` too many"
    if not wrong:
        return f"`{right}` left out"
    if right.startswith(wrong) and not re.match(r"\w", right[len(wrong) :]):
        return f"`{right[len(wrong) :].strip()}` left out after {which}`{wrong}`"
    return f"{which}`{wrong}` where `{right}` belongs"


def _what(mutant: Mutant, wrong: str, right: str) -> str:
    """The kind of a wrong place, in words."""
    if re.sub(r" [+-] 1", "", wrong) == re.sub(r" [+-] 1", "", right):
        index = mutant.change is Change.INDEX
        return f"{'an index' if index else 'a number'} is off by one"
    if mutant.change is Change.LINE or not wrong or not right:
        if mutant.change is not Change.LINE:
            return f"a part is {'left out' if not wrong else 'too many'}"
        return "a line is left out" if not wrong else "the line is too many"
    given = re.fullmatch(r"(\w+=)?-?\d+", wrong)  # 1, where -1 belongs
    if mutant.change in (Change.PART, Change.DIM) and len(wrong) < len(right):
        if _inside(wrong, right) and not given:
            return "something is left out"
    if mutant.change is Change.PART and _inside(right, wrong):
        return "there is something too much"
    return AT_FIRST[mutant.change]


def _inside(short: str, long: str) -> bool:
    """Whether all words of one text stand in another, in their order."""
    rest = iter(re.findall(r"\w+", long))
    return all(word in rest for word in re.findall(r"\w+", short))


OFTEN = {1: "", 2: ", both times"}  # how many places are alike


def _own_slip(tell: bool, mutant: Mutant, line: int, text: str, whole: bool) -> str:
    begin = "One place is wrong: "
    if whole:
        begin = f"Your answer is right but for {'' if tell else 'one place: '}"
    often = OFTEN.get(mutant.times, ", each time")
    shown = f"\n    your line {line}: {text}" if line else ""
    if tell and line and mutant.line and mutant.change not in MOVED:
        right = re.sub(r"--(?=\w)", "", mutant.line)  # a sign that undoes a sign
        shown += f"\n    this would be right: {right}"
    return f"{begin}{_change(mutant, tell, often)}{often}.{shown}"


def _change(mutant: Mutant, tell: bool, often: str) -> str:
    """What must change in an answer; at first only of what kind it is."""
    if mutant.change in MOVED:
        what, where = MOVED[mutant.change]
        if mutant.change is Change.PLACE and not mutant.now:
            where = "first in its block"
        told = f": it belongs {where.format(now=mutant.now)}" if tell else ""
        return f"`{mutant.was}` {what}{told}"
    which = _which(mutant)
    if tell:
        inside = mutant.inside if len(mutant.was) < 8 else ""
        near = 0 < len(inside) < 60 and inside != mutant.was and not often
        was, now = mutant.was, mutant.now
        if now == f"-{was}" and f"-{now}" in mutant.line:
            was, now = now, was  # it has a sign already
        what = exchanged(was, now, which)
        return f"{what} in `{inside}`" if near else what
    what, near = _what(mutant, mutant.was, mutant.now), mutant.inside or mutant.was
    if (which or often) and mutant.was:
        return f"{what} at {which}`{mutant.was}`"
    if mutant.change is not Change.LINE and 0 < len(near) < 60:
        return f"{what} in `{near}`"
    return what


def _which(mutant: Mutant) -> str:
    """As "the second ", of several in a line that read alike; "" for a single one."""
    before, after, wanted = (
        re.findall(r"\w+|[^\s\w]", text)
        for text in (mutant.stood, mutant.line, mutant.was)
    )
    n = len(wanted)
    starts = [i for i in range(len(before)) if before[i : i + n] == wanted]
    if len(starts) < 2 or n > 3 or mutant.times > 1 or not after:
        return ""
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after))
    end = len(list(same))
    nth = sum(start <= end for start in starts) - 1
    return f"the {ORDINALS[nth]} " if 0 <= nth < len(ORDINALS) else ""


ORDINALS = "first", "second", "third", "fourth", "fifth"
MOVED = {  # lines that stand elsewhere: what is said at first, and what belongs
    Change.PLACE: ("in the wrong place", "after `{now}`"),
    Change.INTO_LOOP: ("outside of its loop", "into `{now}`"),
    Change.OUT_OF_LOOP: ("inside the loop, in each of its rounds", "before `{now}`"),
}


def _like_slip(mutant: Mutant, tell: bool) -> str:
    """What an answer's results are those of; when asked, what belongs there.

    That is all that is proven: the answer may be written in another way.
    """
    often = OFTEN.get(mutant.times, ", each time")
    begin = "Your results are those of the solution"
    if mutant.line:
        says, told = f"with this line changed: `{mutant.line}`", mutant.stood
    elif mutant.now:
        says, told = f"with `{mutant.now}` in place of `{mutant.was}`{often}", ""
    else:
        names = re.findall(r"(\w+)\(", mutant.was)
        says = f"without {f'a `{names[0]}`' if names else 'one of its parts'}{often}"
        told = mutant.was
    return f"{begin} {says}." + (
        f"\n  What belongs there: `{told}`." if tell and told else ""
    )
