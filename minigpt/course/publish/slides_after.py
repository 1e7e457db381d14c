"""What is put right once all slides of a lesson are laid out: strings of parts in, the
same slides with more words on them, and notes where they belong."""

import re
from itertools import pairwise

import nbformat
from nbformat import NotebookNode

from minigpt.course.publish.slides_parts import (
    asks,
    has_output,
    plain,
    text_part,
)
from minigpt.course.publish.slides_room import HIGH, filled, height
from minigpt.course.publish.slides_words import (
    DANGLES,
    FEW,
    TERM,
    WORDS,
    emphasised,
    only_prepares,
    sentences,
    upright,
    without_remarks,
)

COMPUTED = "How it was computed"
SHORT = 45  # words of a sentence that is said once more, at most
DEFINED = re.compile(  # a new word where a sentence says what it is
    r"(^|\b([Tt]he|[Aa]n?|their|average|called|[Ii]n|and) )"
    r"\*\*[^*\s]+( [^*\s]+){0,2}\*\*"
)


def together(source: str, told: list[str]) -> str:
    """The sentences of a paragraph that are told in one of these texts, in order."""
    told = [plain(one) for one in told]
    found = without_remarks(sentences(source))
    return " ".join(s for s in found if any(plain(s) in one for one in told))


def answered(stack: list[dict]) -> list[dict]:
    """The slides of a stack, where a question's answer is not kept waiting: code in
    between that prints nothing goes into the notes if it only prepares, else behind the
    answer."""
    stack = list(stack)
    for number, slide in enumerate(stack):
        places = [n for n, part in enumerate(slide["parts"]) if asks(part)]
        if not places or any(
            p["what"] == "output" for p in slide["parts"][places[-1] :]
        ):
            continue
        between = []
        for following in stack[number + 1 :]:
            if has_output(following) or any(map(asks, following["parts"])):
                break
            between.append(following)
        rest = stack[number + 1 + len(between) :]
        if not rest or not has_output(rest[0]) or any(map(asks, rest[0]["parts"])):
            continue
        if any(p["cell"].source.startswith("#") for s in between for p in s["parts"]):
            continue
        here = [p for p in slide["parts"][places[-1] :] if p["what"] == "code"]
        later = [told_later(slide, part) for part in here] + between
        if not all(prepares(code) or defines(code) for code in map(code_of, later)):
            continue
        slide["parts"] = [p for p in slide["parts"] if p not in here]
        end = 1
        while rest[end:] and rest[end]["cell"] == rest[0]["cell"]:
            end += 1
        behind = []
        for one in later:
            code = code_of(one)
            if prepares(code):
                rest[0]["notes"] += one["notes"]
            else:
                for part in one["parts"]:
                    part["fragment"] = False
                if all(part["what"] != "text" for part in one["parts"]):
                    one["parts"].insert(0, text_part(computed(code)))
                behind.append(one)
        stack = [*stack[: number + 1], *rest[:end], *behind, *rest[end:]]
        return [*stack[: number + 1], *answered(stack[number + 1 :])]
    return stack


def told_later(slide: dict, part: dict) -> dict:
    """A slide of its own for a part of this one, without its notes."""
    title = (
        slide["running"]
        or slide.get("foot")
        or slide["parts"][0]["cell"].source.split("\n")[0]
    )
    title = re.sub(r"[`*]|^#+ ", "", title)
    cell = part["cell"].get("id", slide["cell"])
    new = {"cell": cell, "kind": "", "running": title, "notes": []}
    return {**new, "parts": [part | {"fragment": False}]}


def own_slide(slide: dict, found: list[str], needed: set[int]) -> dict:
    """A slide for sentences with a new word for which there is no room elsewhere."""
    part = text_part(" ".join(found[n] for n in sorted(needed)))
    return told_later(slide, part) | {"cell": slide["cell"]}


def code_of(slide: dict) -> str:
    """All code of a slide."""
    codes = [p["cell"].source for p in slide["parts"] if p["what"] == "code"]
    return "\n\n".join(codes)


def defines(code: str) -> list[str]:
    """The functions and classes that code defines, if it does nothing else."""
    names = re.findall(r"^(?:def|class) (\w+)", code, re.M)
    works = re.search(r"^(for|while|with|if|%|print)", code, re.M)
    return [] if works else names


def computed(code: str) -> str:
    """What stands above code that comes behind its result: what it defines."""
    told = " and ".join(f"`{name}`" for name in defines(code)[-2:])
    return f"{COMPUTED}, in {told}:"


def prepares(code: str) -> bool:
    """Does code only prepare what the next prints, with small functions at most?"""
    small = re.sub(r"^def .*:\n    return .*$", "", code, flags=re.M)
    return only_prepares(small)


def tell_terms(stacks: list[list[dict]]) -> None:
    """Show each sentence with a word in bold, as far as there is room: with what is
    shown of its paragraph, else where it is said, else on the next slide."""
    shown = plain(
        " ".join(
            p["cell"].source
            for stack in stacks
            for s in stack
            for p in s["parts"]
            if p["what"] == "text"
        )
    )
    for stack in stacks:
        for slide, following in zip(list(stack), [*stack[1:], None]):
            for note in list(slide["notes"]):
                found, needed = emphasised(note.source)
                missing = [
                    n
                    for n in needed
                    if any(t not in shown for t in TERM.findall(plain(found[n])))
                ]
                for number in missing:
                    told = tell_term(slide, following, note, needed[number])
                    if not told and DEFINED.search(plain(found[number])):
                        new = own_slide(slide, found, needed[number])
                        stack.insert(stack.index(slide) + 1, new)
                        told = True
                    shown += plain(found[number]) * told


def tell_term(
    slide: dict, following: dict | None, note: NotebookNode, needed: set[int]
) -> bool:
    """Put these sentences of a note on its slide, or at the top of the one that
    follows; whether there was room."""
    found, _ = emphasised(note.source)
    alone = " ".join(found[n] for n in sorted(needed))
    for one in filter(None, (slide, following)):
        for place, part in enumerate(one["parts"]):
            here = plain(part["cell"].source)
            theirs = {n for n, s in enumerate(found) if plain(s) in here}
            if part["what"] != "text" or not theirs or here.startswith("#"):
                continue
            chosen = sorted(theirs | needed)
            spans = [range(chosen[0], chosen[-1] + 1), chosen]
            both = [" ".join(found[n] for n in span) for span in spans]
            choices = [one for one in both if len(one.split()) <= WORDS]
            if place and not part["fragment"]:
                choices.append(alone)  # a new word counts more than what is said first
            for source in choices:
                new = text_part(source, part["fragment"])
                more = height("text", new["cell"]) - height("text", part["cell"])
                if filled(one) + more <= HIGH:
                    one["parts"][place] = new
                    return True
    new = text_part(alone)
    if filled(slide) + height("text", new["cell"]) <= HIGH:
        added = slide["added"] = slide.get("added", -1) + 1
        place = min(note.metadata.get("at", 0) + added, len(slide["parts"]))
        if place == 0 and slide["parts"][0]["cell"].source.startswith("#"):
            place = 1
        before = slide["parts"][:place]
        new["fragment"] = any(p["fragment"] or asks(p) for p in before)
        slide["parts"].insert(place, new)
        return True
    return False


def tell_leads(stacks: list[list[dict]]) -> None:
    """A sentence on a slide that has none: the one above the piece before, what its
    figure shows, or what is said there and not yet seen."""
    for stack in stacks:
        leads: dict[str, str] = {}  # {id of a cell: the sentence above its first piece}
        for before, slide in zip([None, *stack[:-1]], stack):
            if "foot" not in slide and all(
                part["what"] != "text" for part in slide["parts"]
            ):
                first = slide["parts"][0]["cell"]
                one_cell = len({p["cell"].get("id") for p in slide["parts"]}) == 1
                above = leads.get(first.get("id", ""), "")  # this goes on
                choices = [
                    shows(slide),
                    unseen(slide) if one_cell else "",
                    named(code_of(slide)) if above else "",
                    again(above),
                    *(above_it(before) if before else []),
                ]
                new = text_part(next(filter(None, choices), ""))
                more = height("text", new["cell"])
                if new["cell"].source and filled(slide) + more <= HIGH:
                    slide["parts"].insert(0, new)
            above = ""
            for part in slide["parts"]:
                source = part["cell"].source
                if part["what"] == "text" and not part["fragment"]:
                    above = source if leads_on(source) else above
                elif part["what"] == "code" and above:
                    leads.setdefault(part["cell"].get("id", ""), above)
                elif part["what"] == "output":
                    above = ""


def shows(slide: dict) -> str:
    """What a figure that is alone shows, by its description; "" if that describes."""
    output, *_ = slide["parts"][0]["cell"].get("outputs", []) or [{}]
    told = output.get("data", {}).get("text/plain", "").removeprefix("Figure: ")
    alone = len(slide["parts"]) == 1 and "image/png" in output.get("data", {})
    claims = re.match(r"(?!An? |The (window|graph|way))[^:;]*\.$", told)
    return told if alone and claims and len(told.split()) <= SHORT else ""


def again(source: str) -> str:
    """The sentence above a first piece of code, for the next: its last."""
    found = without_remarks(sentences(source))
    start = upright(found, len(found) - 1)
    return " ".join(found[max(0, start) :]).removesuffix(":") + "." * source.endswith(
        ":"
    )


def named(code: str) -> str:
    """What stands above a further piece of code that only defines."""
    told = " and ".join(f"`{name}`" for name in defines(code)[:2])
    return f"{told}:" if told else ""


def above_it(before: dict) -> list[str]:
    """What of the slide before may stand above a code or result: its text if that is
    all, what is said there, or what it shows last."""
    texts = [p["cell"].source for p in before["parts"] if p["what"] == "text"]
    texts = list(filter(leads_on, texts))
    last = again(texts[-1]) if texts else ""
    only = all(part["what"] == "text" for part in before["parts"])
    return [last if only else "", unseen(before), last]


def leads_on(source: str) -> bool:
    """Has a text a sentence that may stand above code? Not a question or a formula."""
    return bool(sentences(source)) and not re.match(
        r"#|\$\$|\*\*(Predict|Think)", source
    )


def unseen(slide: dict) -> str:
    """The last sentence of a slide's last note that does not stand there, and needs no
    other."""
    shown = plain(" ".join(part["cell"].source for part in slide["parts"]))
    paragraphs = [n.source for n in slide["notes"] if not n.source.startswith("```")]
    for sentence in without_remarks(sentences("".join(paragraphs[-1:])))[::-1]:
        fits = FEW < len(sentence.split()) <= SHORT and sentence[-1] not in ":?"
        if fits and plain(sentence) not in shown and not DANGLES.match(sentence):
            return sentence
    return ""


def mark_notes(stacks: list[list[dict]]) -> None:
    """Put notes on the slide with the code that they name, mark answers, and let no
    code be without a note."""
    for stack in stacks:
        for number, slide in enumerate(stack[:-1]):
            for note in list(slide["notes"]):
                following = max(
                    stack[number:], key=lambda one: count(names_in(note), one)
                )
                names = names_in(note)
                here, there = (count(names, one) for one in (slide, following))
                is_shown = any(
                    plain(p["cell"].source) in plain(note.source)
                    for p in slide["parts"]
                    if p["what"] == "text"
                )
                if there > here and not is_shown and not note.metadata.get("answer"):
                    slide["notes"].remove(note)
                    following["notes"].insert(0, note)
        for before, slide in zip([None, *stack[:-1]], stack):
            for text, formula in pairwise(p["cell"] for p in slide["parts"]):
                if formula.source.startswith("$$") and text.source[-1:].isalnum():
                    text.source += ":"
            for number, note in enumerate(slide["notes"]):
                note.source = re.sub(r"^\| Time \|.*\n", "", note.source, flags=re.M)
                if note.metadata.get("answer"):
                    told = nbformat.v4.new_markdown_cell(f"**Answer:** {note.source}")
                    slide["notes"][number] = told
            silent = not slide["notes"] and not slide.get("say")
            if silent and any(p["what"] == "code" for p in slide["parts"]):
                texts = [p["cell"] for p in slide["parts"] if p["what"] == "text"]
                earlier = before["notes"] if before else []
                told = [n for n in earlier if not n.source.startswith("```")]
                own = [t for t in texts if leads_on(t.source)]
                slide["notes"] += own or told[-1:] or texts[-1:]


def names_in(note: NotebookNode) -> set[str]:
    """The names of code in a text."""
    return set(re.findall(r"`(?:\w+\.)*(\w+)[`(]", note.source))


def count(names: set[str], slide: dict) -> int:
    """How many of these names stand in a slide's code."""
    code = " ".join(p["cell"].source for p in slide["parts"] if p["what"] == "code")
    return sum(bool(re.search(rf"\b{name}\b", code)) for name in names)
