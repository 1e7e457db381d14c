"""What is said of a place that must change: where it is, then what belongs there."""

import itertools
import re

from minigpt.course.checks.mutations import Mutant
from minigpt.course.checks.rules import Change

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
MOVED = {  # lines that stand elsewhere: what is said at first, and what belongs
    Change.PLACE: ("in the wrong place", "after `{now}`"),
    Change.INTO_LOOP: ("outside of its loop", "into `{now}`"),
    Change.OUT_OF_LOOP: ("inside the loop, in each of its rounds", "before `{now}`"),
}
OFTEN = {1: "", 2: ", both times"}  # in how many places; of more: each time
ORDINALS = "first", "second", "third", "fourth", "fifth"
SHORT = 60  # characters: a longer expression is not shown around the place


def tell_own_slip(tell: bool, mutant: Mutant, line: int, text: str, whole: bool) -> str:
    """Of an OWN_SLIP: what must change in the answer."""
    begin = "One place is wrong: "
    if whole:
        begin = f"Your answer is right but for {'' if tell else 'one place: '}"
    says = what_belongs(mutant) if tell else where_it_is(mutant)
    shown = f"\n    your line {line}: {text}" if line else ""
    if tell and line and mutant.line and mutant.change not in MOVED:
        right = re.sub(r"--(?=\w)", "", mutant.line)  # a sign that undoes a sign
        shown += f"\n    this would be right: {right}"
    return f"{begin}{says}{_often(mutant)}.{shown}"


def tell_like_slip(tell: bool, mutant: Mutant) -> str:
    """Of a LIKE_SLIP: what the answer's results are those of.

    That is all that is proven: the answer may be written in another way.
    """
    begin = "Your results are those of the solution"
    if mutant.line:
        says, told = f"with this line changed: `{mutant.line}`", mutant.stood
    elif mutant.now:
        says = f"with `{mutant.now}` in place of something else{_often(mutant)}"
        told = mutant.was
    else:
        names = re.findall(r"(\w+)\(", mutant.was)
        part = f"a `{names[0]}`" if names else "one of its parts"
        says, told = f"without {part}{_often(mutant)}", mutant.was
    belongs = f"\n  What belongs there: `{told}`." if tell and told else ""
    return f"{begin} {says}.{belongs}"


def where_it_is(mutant: Mutant) -> str:
    """As "an index is off by one in `x[:, :t]`": the kind of a place, and where."""
    if mutant.change in MOVED:
        return f"`{mutant.was}` {MOVED[mutant.change][0]}"
    what, which = _kind(mutant), _which(mutant)
    if (which or _often(mutant)) and mutant.was:
        return f"{what} at {which}`{mutant.was}`"
    around = mutant.inside or mutant.was
    if mutant.change is not Change.LINE and 0 < len(around) < SHORT:
        return f"{what} in `{around}`"
    return what


def what_belongs(mutant: Mutant) -> str:
    """As "`+ 1` left out after `:t` in `x[:, :t]`": the change itself."""
    was, now = mutant.was, mutant.now
    if mutant.change in MOVED:
        says, where = MOVED[mutant.change]
        if mutant.change is Change.PLACE and not now:
            where = "first in its block"
        return f"`{was}` {says}: it belongs {where.format(now=now)}"
    around = mutant.inside if len(was) < 8 else ""
    near = 0 < len(around) < SHORT and around != was and not _often(mutant)
    if now == f"-{was}" and f"-{now}" in mutant.line:
        was, now = now, was  # it has a sign already
    says = exchanged(was, now, _which(mutant))
    return f"{says} in `{around}`" if near else says


def exchanged(wrong: str, right: str, which: str = "") -> str:
    """What must change, where `wrong` stands and `right` belongs; which: of several."""
    if not right:
        return f"{which}`{wrong}` too many"
    if not wrong:
        return f"`{right}` left out"
    if right.startswith(wrong) and not re.match(r"\w", right[len(wrong) :]):
        return f"`{right[len(wrong) :].strip()}` left out after {which}`{wrong}`"
    return f"{which}`{wrong}` where `{right}` belongs"


def _kind(mutant: Mutant) -> str:
    """The kind of a wrong place, in words."""
    change, wrong, right = mutant.change, mutant.was, mutant.now
    if re.sub(r" [+-] 1", "", wrong) == re.sub(r" [+-] 1", "", right):
        return f"{'an index' if change is Change.INDEX else 'a number'} is off by one"
    if change is Change.LINE:
        return "the line is too many" if wrong else "a line is left out"
    if not wrong or not right:
        return f"a part is {'too many' if wrong else 'left out'}"
    number = re.fullmatch(r"(\w+=)?-?\d+", wrong)  # 1 is not left out of -1
    if change in (Change.PART, Change.DIM) and len(wrong) < len(right) and not number:
        if _within(wrong, right):
            return "something is left out"
    if change is Change.PART and _within(right, wrong):
        return "there is something too much"
    return AT_FIRST[change]


def _within(short: str, long: str) -> bool:
    """Whether all words of one text stand in another, in their order."""
    rest = iter(re.findall(r"\w+", long))
    return all(word in rest for word in re.findall(r"\w+", short))


def _often(mutant: Mutant) -> str:
    """That several places are alike; "" for a single one."""
    return OFTEN.get(mutant.times, ", each time")


def _which(mutant: Mutant) -> str:
    """As "the second ", of several in a line that read alike; "" for a single one.

    Of `x[:, t] / t` and `x[:, t] / (t + 1)`, where `t` was replaced, it is the second:
    the two lines are the same up to there.
    """
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
