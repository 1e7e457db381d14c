"""Which cells of a lesson stand together on a slide, one slide after the other."""

import re
from collections.abc import Mapping, Sequence, Set

import nbformat
from nbformat import NotebookNode

from minigpt.course.publish import (
    slides_after,
    slides_dots,
    slides_heat,
    slides_shown,
    slides_talk,
)
from minigpt.course.publish.slides_join import (
    joined,
    second_lecture,
    tell_lengths,
    tell_more,
)
from minigpt.course.publish.slides_parts import (
    chosen_finding,
    finding_height,
    is_figure,
    leads_on,
    only_claim,
    plain,
    text_cell,
)
from minigpt.course.publish.slides_room import (
    HIGH,
    LARGE,
    RUNNING,
    filled,
    height,
    in_pieces,
    output_height,
)
from minigpt.course.publish.slides_words import (
    ASKS,
    as_shown,
    before_formula,
    findings,
    first_said,
    lead,
    only_assigns,
    only_prepares,
    only_records,
    seen_and_said,
    sentences,
    set_up,
    short_list,
    without_checks,
    without_drawing,
)

BRIEF = 6  # lines of code that may stand behind the figure they lead to
PREPARES = 3  # lines of assignments above a figure, which may stay in the notebook
LIST = re.compile(r"- |\d+\. ")
HIDDEN = "result-only"  # a tag: of code that is not shown
SECOND = "second-lecture"  # a tag: from this cell on the deck is for another hour
ANSWER = 45  # words of an answer that is shown as a whole


def stacks(notebook: NotebookNode, talk: Sequence[slides_talk.Entry] = ()) -> list:
    """The slides as a list of stacks; a stack is a list of slides, one below the other.

    A section begins a stack, and so does each piece of code a slide below the first
    code; what leaves too little room goes on on another. A slide is a dict: cell (id
    of its first cell), kind (a class), running (the section's title, if the slide does
    not begin with it), length (of a lecture, where one begins), parts (what, cell,
    fragment or not) and notes (cells). talk: what a lecturer wrote for slides; a cell
    that it gives a title begins one, and the section's title goes to its foot.
    """
    codes = {e.cell: e.fields["code"] for e in talk if "code" in e.fields}
    layout = Layout({entry.cell for entry in talk if entry.begins}, codes)
    for cell, following in zip(notebook.cells, [*notebook.cells[1:], None]):
        if cell.cell_type == "markdown":
            layout.add_text(cell)
        else:
            layout.add_code(cell, finding_height(following))
    for stack in layout.stacks:
        for slide in stack:
            tell_more(slide)
    found = [slides_after.answered(stack) for stack in layout.stacks]
    slides_talk.tell(found, talk)
    slides_after.tell_terms(found)
    found = [joined(stack) for stack in found]
    slides_after.tell_leads(found)
    slides_after.mark_notes(found)
    slides_talk.say(found)
    tell_lengths(found)
    return found


class Layout:
    """Puts the cells of a lesson on slides, one after the other."""

    def __init__(
        self, titled: Set[str] = frozenset(), codes: Mapping[str, str] | None = None
    ) -> None:
        self.titled = titled  # ids of cells that begin a slide
        self.codes = codes or {}  # {id: what is shown of its code}; empty: all of all
        self.stacks: list[list[dict]] = []
        self.titles: list[str] = []  # of the sections of this lecture
        self.section = ""  # the last of them
        self.full = False  # code or a result stands there: what comes begins a slide
        self.asked = False  # a question was the last: what comes waits for a click
        self.said: list[str] = []  # the paragraphs that lead to the next cell
        self.last = ""  # the paragraph before this one
        self.owes = False  # is code shown without a word?
        self.result = False  # a result was the last: what comes may say what it shows
        self.told = ""  # the paragraph that said it
        self.answers = False  # that result is a question's: what comes is the answer
        self.found = ""  # what was shown last of that
        self.chosen: tuple[int, ...] | None = None  # which sentences say it
        self.loaded: set[str] = set()  # names that code for records has bound

    @property
    def slide(self) -> dict:
        """The slide on which things are put."""
        return self.stacks[-1][-1]

    def begin(self, cell: NotebookNode, kind: str = "", running: str = "") -> None:
        """A new slide in the last stack; running: what stands small at its top."""
        slide = {"cell": cell.id, "kind": kind, "running": running}
        self.stacks[-1].append({**slide, "parts": [], "notes": []})

    def go_on(self, cell: NotebookNode) -> None:
        """A new slide, which says to which section it belongs."""
        self.begin(cell, running=re.sub(r"[`*]", "", self.section))

    def fits(self, what: str, cell: NotebookNode, more: float = 0) -> bool:
        """Whether there is room for one part more, and so many pixels."""
        return filled(self.slide) + height(what, cell) + more <= HIGH

    def put(self, what: str, cell: NotebookNode, fragment: bool = False) -> None:
        """One part more on the slide; fragment: it appears at a click."""
        part = {"what": what, "cell": cell, "fragment": fragment}
        self.slide["parts"].append(part)

    def only_heading(self) -> bool:
        """Does nothing stand on the slide but a heading of a section?"""
        parts = self.slide["parts"]
        return bool(parts) and all(re.match("###? ", p["cell"].source) for p in parts)

    def add_text(self, cell: NotebookNode) -> None:
        """A markdown cell: what is seen goes on slides, what is said into notes."""
        self.said, self.last = [], ""
        self.chosen = chosen_finding(cell)
        if SECOND in cell.metadata.get("tags", []):
            self.stacks.append([])
            self.begin(cell, "opening")
            shown = [p for p in self.stacks[0][0]["parts"] if is_figure(p)]
            opening, *before = second_lecture(self.titles, bool(shown))
            self.put("text", text_cell(opening))
            self.slide["parts"] += [{**part, "fragment": False} for part in shown]
            self.slide["notes"] += map(text_cell, before)
            self.titles = self.titles[:1]
        self.found = self.told = ""
        asks = "**Predict" in cell.source  # and needs all that stands before it
        apart = cell.id in self.titled and not re.search("^#", cell.source, re.M)
        if apart and not asks:
            self.go_on(cell)
            self.full = self.asked = self.result = False
        for kind, source in seen_and_said(cell.source, self.section == "Recap"):
            if self.result and re.match(r"\*\*[^*]{45,}\*\*", source):
                kind = "said"  # a finding
            heading = re.match(r"(#{1,3}) (.*)", source)
            if heading:
                self.begin_section(cell, depth=len(heading[1]), title=heading[2])
            if kind == "seen":
                shown = text_cell(as_shown(source, asks))
                before = self.before(source)
                wants = (
                    apart and source.startswith("**Predict")
                ) or self.wants_a_slide(source, shown)
                if not heading and wants:
                    self.go_on_to_ask(cell, bool(before))
                    self.full = False
                if before:
                    self.put_before(before, shown)
                if shown.source != source:
                    self.slide["notes"].append(text_cell(source))
                self.said, self.last = [], ""
                self.put("text", shown, fragment=self.asked)
            else:
                self.say(source)
            self.asked = self.asked or "**Predict" in source
            self.owes = self.result = False

    def before(self, source: str) -> str:
        """What of the last paragraph stands above a question or a formula."""
        last = self.last
        if not last or last == self.told or self.asked:
            return ""
        if source.startswith("$$"):
            return before_formula(last)
        return set_up(last) if re.match(r"\*\*(Predict|Think)", source) else ""

    def go_on_to_ask(self, cell: NotebookNode, before: bool) -> None:
        """A new slide for a question, with the notes on what leads to it."""
        moved = [self.slide["notes"].pop()] if before else []
        for note in moved:
            note.metadata["at"] = 0
        self.go_on(cell)
        self.slide["notes"] += moved

    def put_before(self, source: str, below: NotebookNode) -> None:
        """A text above a question or formula, with what already stands of it there."""
        text = text_cell(source)
        for part in self.slide["parts"][-1:]:
            here = plain(part["cell"].source)
            if plain(source) in here:
                return
            if here in plain(self.last) and here:
                both = slides_after.together(self.last, [here, source])
                more = height("text", text_cell(both)) - height("text", part["cell"])
                if self.fits("text", below, more):
                    part["cell"] = text_cell(both)
                elif here in plain(source):
                    return
                elif self.fits("text", below, height("text", text)):
                    part["cell"] = text
                return
        if self.fits("text", below, height("text", text)):
            self.put("text", text)

    def say(self, source: str) -> None:
        """A paragraph for the notes; below a heading, or code without a word, what it
        says first is seen, too."""
        self.said.append(source)
        self.last = source
        note = text_cell(source)
        note.metadata.update(at=len(self.slide["parts"]), answer=self.answers)
        self.slide["notes"].append(note)
        if self.result:
            self.tell_finding(source)
        if LIST.match(source) and not self.full:
            self.put_list(source)
        claim = first_said(source, self.only_heading())
        if self.owes and self.chosen:
            claim = "".join(findings(source, self.chosen)[:1])
        if claim and (self.owes or self.only_heading()):
            self.put("text", text_cell(claim))
            self.said = [source] if self.owes else []

    def put_list(self, source: str) -> None:
        """A short list below the sentence that leads to it, if there is room."""
        before = "".join(note.source for note in self.slide["notes"][-2:-1])
        shown = text_cell(short_list(source))
        if not before.endswith(":") or not shown.source:
            return
        end = re.sub(r"^(?:So|And) (\w)", lambda m: m[1].upper(), sentences(before)[-1])
        leading = text_cell(lead([before]) or end)
        last = leading.source.split("\n")[-1]
        there = any(p["cell"].source.endswith(last) for p in self.slide["parts"])
        above = 0 if there else height("text", leading)
        if last and filled(self.slide) + above + height("text", shown) <= HIGH:
            if not there and self.slide["parts"]:
                end = self.slide["parts"][-1]
                first = sentences(end["cell"].source)
                told = plain(leading.source)
                rest = [s for s in first if plain(s) not in told]
                if end["what"] == "text" and len(rest) < len(first):
                    end["cell"] = text_cell(" ".join(rest))
                    self.slide["parts"] = self.slide["parts"][: None if rest else -1]
            if not there:
                self.put("text", leading, self.asked)
            self.put("text", shown, self.asked)

    def tell_finding(self, source: str) -> None:
        """What a paragraph says a result has shown: above a figure that is alone, else
        below the result, after a click; nothing if there is no room."""
        parts = self.slide["parts"]
        claims = findings(source, self.chosen)
        short = len(source.split()) <= ANSWER and source[-1] not in ":?"
        if self.answers and not self.chosen and short:
            claims = [source, *claims]
        self.answers = False
        for claim in claims:
            text = text_cell(claim)
            if self.chosen and not self.fits("text", text):
                self.go_on_with_result()
                parts = self.slide["parts"]
            if not self.fits("text", text):
                continue
            self.found, self.told = claim, source
            if len(parts) == 1 and is_figure(parts[0]):
                parts.insert(0, {"what": "text", "cell": text, "fragment": False})
            else:
                self.put("text", text, fragment=True)
            return

    def go_on_with_result(self) -> None:
        """A new slide for the result that was shown last, below which there is no room
        for what the author wants to say."""
        result = self.slide["parts"][-1]
        if result["what"] == "output" and len(self.slide["parts"]) > 1:
            notes, self.slide["notes"] = (
                self.slide["notes"][-1:],
                self.slide["notes"][:-1],
            )
            self.slide["parts"].pop()
            self.go_on(result["cell"])
            self.put("output", result["cell"])
            self.slide["notes"] += notes

    def begin_section(self, cell: NotebookNode, depth: int, title: str) -> None:
        """What a heading begins: a stack, or below ### a slide."""
        self.full = self.asked = self.result = False
        if depth < 3:
            self.section = title
            self.titles.append(title)
            self.stacks.append([])
            self.begin(cell, "opening" if depth == 1 else "")
        elif not self.only_heading():
            self.go_on(cell)

    def wants_a_slide(self, source: str, text: NotebookNode) -> bool:
        """Whether a paragraph begins a slide: questions do, and what has no room."""
        if source.startswith(ASKS) or not self.fits("text", text):
            return True
        return self.full and leads_on(source, self.slide)

    def add_code(self, cell: NotebookNode, finding: float = 0) -> None:
        """A code cell: its pieces, then what it printed, then its figures. finding:
        pixels for what is said below about what it printed."""
        figures = [o for o in cell.outputs if "image/png" in o.get("data", {})]
        printed = [o for o in cell.outputs if "image/png" not in o.get("data", {})]
        self.answers = self.asked or (self.answers and not self.result)
        code = nbformat.from_dict(cell)
        code.source = without_drawing(cell.source, bool(figures))
        if self.slide["kind"] == "opening" and not printed:
            code.source = ""  # the set-up
        code.source = without_checks(code.source)
        bound = only_records(code.source, self.loaded) if cell.outputs else None
        hidden = HIDDEN in cell.metadata.get("tags", []) or bound is not None
        if hidden or (figures and not printed and self.only_prepares(code)):
            self.loaded |= bound or set()
            of = slides_dots.quantity(code.source)
            code.source = ""
            printed = [
                slides_dots.drawn(one, of) or slides_heat.drawn(one) or one
                for one in printed
            ]
        told = self.choose(code)
        if told and not cell.outputs and cell.id in self.titled:
            self.go_on(cell)  # a lecturer fills it
            self.full = True
        if cell.id in self.titled and self.slide["parts"]:
            self.full = True
        if len(figures) == 1 and not printed and self.figure_goes_first(code):
            if self.full:
                self.go_on_with_lead(code, 0, "output")
            self.put("output", code)
            self.go_on(cell)
            self.put("code", code)
            self.full, self.owes, self.said = True, True, []
            self.result = False
            return
        below = sum(map(output_height, printed))
        pieces = self.add_pieces(code, below, 0 if figures else finding)
        for output in [*printed, *figures]:
            shown = nbformat.from_dict(cell | {"outputs": [output]})
            more = self.figure_wants(output, finding) if output in figures else 0
            alone = (self.full and not pieces) or not self.fits("output", shown, more)
            if alone and self.slide["parts"]:
                self.go_on_with_lead(shown, 0, "output")
            waits = bool(pieces) or self.asked
            self.put("output", shown, fragment=waits and not alone)
            self.full = True
        self.full = self.full or bool(cell.outputs)
        self.asked = False
        if code.source or cell.outputs:  # else the words lead to what comes next
            self.said = []
        self.result = bool(cell.outputs)
        self.slide["notes"] += told

    def choose(self, code: NotebookNode) -> list[NotebookNode]:
        """Leave of a cell's code what a lecturer shows; a note that says where the rest
        stands."""
        if not self.codes or not code.source:
            return []
        code.source = slides_shown.listing(code.source, self.codes.get(code.id, ""))
        place = code.get("execution_count")
        words = f"The code stands in the notebook, cell [{place}]."
        return [] if code.source or not place else [text_cell(words)]

    def only_prepares(self, code: NotebookNode) -> bool:
        """Is code only a few assignments, which would make the figure below small?"""
        few = 0 < len(code.source.splitlines()) <= PREPARES
        before = RUNNING if self.full else filled(self.slide)
        large = sum(output_height(output, LARGE) for output in code.outputs)
        small = before + height("code", code) + large > HIGH
        return few and only_assigns(code.source) and small

    def figure_wants(self, figure: NotebookNode, finding: float) -> float:
        """How many pixels more than the least a figure takes below code, with what it
        shows: below words alone it takes what is left."""
        if all(part["what"] == "text" for part in self.slide["parts"]):
            return 0
        return finding + output_height(figure, LARGE) - output_height(figure)

    def figure_goes_first(self, code: NotebookNode) -> bool:
        """Whether a figure stands below the claim of its section, and how it was made
        on the next slide: where both leave each other no room."""
        both = height("code", code) + height("output", code)
        if code.id in self.codes:
            return bool(code.source)
        return (
            only_claim(self.slide)
            and 0 < len(code.source.splitlines()) <= BRIEF
            and self.fits("output", code)
            and filled(self.slide) + both > HIGH
        )

    def add_pieces(self, code: NotebookNode, after: float, finding: float) -> list[str]:
        """The code of a cell, cut where it must be; after: the pixels of what it
        prints; finding: of what is said about that. Returns the pieces."""
        lonely = 3 if only_claim(self.slide) else 1
        room, lonely = (0, 0) if self.full else (HIGH - filled(self.slide), lonely)
        new, pieces = in_pieces(code.source, room, after, lonely, finding)
        if pieces[1:] and (after or code.outputs) and only_prepares(pieces[0]):
            code = nbformat.from_dict(code | {"source": "\n".join(pieces[1:])})
            return self.add_pieces(code, after, finding)
        for number, source in enumerate(pieces):
            piece = nbformat.from_dict(code | {"source": source})
            if new or number:
                below = after + finding if number == len(pieces) - 1 else 0
                self.go_on_with_lead(piece, below)
            self.put("code", piece, self.asked)
            self.full, self.said = True, []
        return pieces

    def go_on_with_lead(
        self, code: NotebookNode, below: float, what: str = "code"
    ) -> None:
        """A new slide for code or a result, with the sentence that leads to it if there
        is room."""
        said = [] if self.asked else self.said
        moved = []
        if said and said[-1] != self.told:  # the last leads on, and is said there
            notes = self.slide["notes"]
            start = max(n for n, note in enumerate(notes) if note.source == said[-1])
            self.slide["notes"], moved = notes[:start], notes[start:]
            moved[0].metadata["at"] = 0
        self.go_on(code)
        self.asked = False
        self.slide["notes"] += moved
        first = text_cell(lead(said, self.full))
        if said and said[-1] == self.told and not self.told_before(first.source):
            first.source = ""
        needs = height("text", first) + height(what, code) + below
        if first.source and filled(self.slide) + needs <= HIGH:
            self.put("text", first)
        self.said = []

    def told_before(self, source: str) -> bool:
        """Was a sentence's paragraph shown only as far as to what comes before it?"""
        whole, last = map(slides_after.plain, (self.told, sentences(self.found)[-1]))
        return whole.find(plain(source)) >= whole.find(last) + len(last)
