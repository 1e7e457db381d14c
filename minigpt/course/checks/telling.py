"""What is said of a Problem: one text, made of its findings.

A Finding's details may be words already, where only they know what was seen: measuring,
scene and tracing describe values, errors and comparing bring remedies. The sentences
around them stand here, and nothing in the engine reads one.

A miss is helped in two steps. At first the learner hears what is wrong and where; with
`tell`, also what belongs there instead.
"""

from minigpt.course.checks.findings import Finding, Kind
from minigpt.course.checks.old_errors import Problem
from minigpt.course.checks.telling_slips import tell_like_slip, tell_own_slip

SENTENCES = {  # kind: a sentence with the finding's details, a hint
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


def message(problem: Problem, tell: bool = False) -> str:
    """A Problem as one text: its findings, the case that shows them, a hint."""
    says = "\n  ".join(sentence(one, tell) for one in problem.findings)
    lead = f"{problem.value_name}: " if problem.value_name else ""
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
    if problem.hint and not any("mutant" in f.details for f in problem.findings):
        return f"Hint of the exercise: {problem.hint}"
    return ""


def sentence(finding: Finding, tell: bool = False) -> str:
    """What a finding says."""
    details = finding.details
    if finding.kind is Kind.OWN_SLIP:
        return tell_own_slip(tell, **details)
    if finding.kind is Kind.LIKE_SLIP:
        return tell_like_slip(tell, **details)
    if finding.kind is Kind.INPUT_CHANGED:
        begin = "The result is right, but your" if details["right"] else "Besides, your"
        first = details.get("first")
        more = ", and so does every line after that one" if first else ""
        return (
            f"{'Your' if first else begin} function changes {details['name']} in "
            f"place: whoever called it finds other numbers in what is theirs{more}."
        )
    return SENTENCES[finding.kind][0].format(**details)


def hint(finding: Finding) -> str:
    """The finding's own hint, or its kind's; "" for none."""
    if finding.hint or finding.kind not in SENTENCES:
        return finding.hint
    return SENTENCES[finding.kind][1].format(**finding.details)
