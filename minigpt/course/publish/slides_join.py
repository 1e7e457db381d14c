"""What is done once all cells have their places: a section of words alone shows more of
them, a slide that is nearly empty joins its neighbour, a title says how long it takes.
"""

import re
from itertools import pairwise

import nbformat

from minigpt.course.publish.slides_parts import (
    is_figure,
    is_question,
    text_cell,
)
from minigpt.course.publish.slides_room import (
    HIGH,
    RUNNING,
    filled,
    height,
    text_height,
)
from minigpt.course.publish.slides_words import WORDS, shortened

THIN = 270  # pixels: a slide with less in it joins another, where there is room
MINUTES, LINE, QUESTION = 1.2, 0.15, 2  # that a slide, a line of code, a question take
STEP = 0.4  # minutes for each step of a drawing that grows
LIST = re.compile(r"- |\d+\. ")


def tell_more(slide: dict) -> None:
    """Show more of a section that begins with words alone: its first paragraph, lists
    and tables in place of one sentence, as far as there is room."""
    if not slide["parts"]:  # a lecturer will fill it
        return
    heading, *rest = slide["parts"]
    lists = [n for n, part in enumerate(rest) if LIST.match(part["cell"].source)]
    if not re.match("##+ (?!Recap)", heading["cell"].source) or not slide["notes"]:
        return
    if any(
        p["what"] != "text" or re.match(r"\$|#|\*\*(?!Next)", p["cell"].source)
        for p in rest
    ):
        return
    first = lists[-1] + 1 if lists else 1  # the claim, or what leads to the lists
    said, prose, after = [], False, rest[first:]

    def room_for(parts: list[dict]) -> bool:
        return filled({**slide, "parts": [heading, *said, *parts]}) <= HIGH

    for note in list(slide["notes"]):
        is_list = re.match(r"[-|] ?|\d+\. ", note.source)
        text = note.source if is_list else shortened(note.source)
        short = len(text.split()) <= WORDS and not text.startswith("<")
        if not is_list and (prose or not short):
            continue
        part = {"what": "text", "cell": text_cell(text), "fragment": False}
        if after and text.startswith("|") and not room_for([part, *after]):
            slide["notes"] += [one["cell"] for one in after]  # "Next: ..." is said
            after = []
        if not room_for([part, *after]):
            break
        said.append(part)
        prose = prose or not is_list
    if said and said[-1]["cell"].source.endswith(":"):  # its list does not follow
        source = re.sub(r"(?<=[.?!])\s[^.?!]*:$", "", said[-1]["cell"].source)
        said[-1]["cell"] = text_cell(source)
    whole = [part for part in said if LIST.match(part["cell"].source)]
    if prose and len(whole) >= len(lists):
        slide["parts"] = [heading, *said, *after]


def joined(stack: list[dict]) -> list[dict]:
    """The slides of a stack, where those that are nearly empty join a neighbour. What
    waits for a click there lets all wait that follows."""
    kept: list[dict] = []
    for slide in stack:
        if kept and may_join(kept[-1], slide):
            last = kept[-1]
            waits = any(
                p["fragment"] or is_question(p["cell"].source) for p in last["parts"]
            )
            first, end = slide["parts"][0], last["parts"][-1]
            if first["what"] == end["what"] == "code" and same_cell(first, end):
                whole = f"{end['cell'].source}\n\n{first['cell'].source}"
                end["cell"] = nbformat.from_dict(end["cell"] | {"source": whole})
                slide["parts"] = slide["parts"][1:]
            last["parts"] += [
                part | {"fragment": part["fragment"] or waits}
                for part in slide["parts"]
            ]
            last["notes"] += slide["notes"]
        else:
            kept.append(slide)
    return kept


def same_cell(first: dict, second: dict) -> bool:
    """Do two parts come from one cell?"""
    return first["cell"].get("id") == second["cell"].get("id")


def may_join(last: dict, slide: dict) -> bool:
    """Is one of two slides nearly empty, and do both fit on one? Questions, headings,
    figures and the opening keep a slide of their own."""
    begins = slide["parts"][0]["cell"].source
    if (
        last["kind"]
        or not slide["running"]
        or is_question(begins)
        or begins.startswith("#")
    ):
        return False
    if any(is_figure(part) for part in last["parts"] + slide["parts"]):
        return False
    more = filled(slide) - RUNNING
    heading = last["parts"][0]["cell"] if "foot" in last else text_cell("")
    before = filled(last) - RUNNING * bool(last["running"])
    thin = min(before - height("text", heading) * ("foot" in last), more) < THIN
    told = any(part["what"] == "text" for part in last["parts"] + slide["parts"])
    line = 0 if told else text_height("")  # for a sentence above both
    return thin and filled(last) + more + line <= HIGH


def tell_lengths(stacks: list[list[dict]]) -> None:
    """Write on each opening slide how long its lecture takes."""
    begins = [n for n, stack in enumerate(stacks) if stack[0]["kind"] == "opening"]
    told = [
        5 * round(sum(minutes(s) for stack in stacks[start:end] for s in stack) / 5)
        for start, end in pairwise([*begins, len(stacks)])
    ]
    for start, length in zip(begins, told):
        stacks[start][0]["length"] = f"about {length} minutes as a lecture"
    if told[1:]:
        both = " and ".join(map(str, told))
        stacks[0][0]["length"] = f"part 1 and part 2, about {both} minutes"


def minutes(slide: dict) -> float:
    """How long a slide takes in a lecture: more with code, a question, and steps."""
    code = [p["cell"].source for p in slide["parts"] if p["what"] == "code"]
    lines = sum(len([one for one in c.splitlines() if one.strip()]) for c in code)
    asks = any(
        re.match(r"\*\*(Predict|Think)", p["cell"].source) for p in slide["parts"]
    )
    steps = sum(
        len(output.get("metadata", {}).get("steps", []))
        for part in slide["parts"]
        for output in part["cell"].get("outputs", [])
    )
    return MINUTES + LINE * lines + QUESTION * asks + STEP * steps


def second_lecture(titles: list[str], pictured: bool) -> list[str]:
    """What stands on the slide with which the second lecture begins; pictured: the
    sections of the first are said, for a picture stands there."""
    before = "\n".join(f"- {one}" for one in titles[1:])
    begins = f"# {titles[0]}\n\n**The second lecture.**"
    if pictured:
        return [begins, "In the first lecture:", before]
    return [f"{begins} In the first:\n\n{before}"]
