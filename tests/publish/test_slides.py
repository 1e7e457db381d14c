"""The slides, gone through one by one in a headless browser without a network."""

import base64
import re
import shutil
import struct
from xml.etree import ElementTree

import chromium
import nbformat
import pytest

from minigpt.course.publish import (
    shared,
    slides,
    slides_after,
    slides_dots,
    slides_layout,
    slides_room,
    slides_talk,
    slides_words,
)

NAMES = ["04_multi_head", "06_full_training", "11_looking_inside"]  # of each kind one
NAMES += ["03_self_attention", "05_residual_blocks"]  # and two with many pictures
SIZE = (1280, 720)
# Each slide has text, all of it in sight, no formula as it was typed, pictures that are
# large and told in words, and no answer before the key press after a question.
FAULTS = ["empty", "beyond", "raw_math", "bad_math", "bare", "answers"]
READY = "document.documentElement.dataset.ready === 'yes'"
CLAIM = "What is claimed in nine words stands on the slide."
needs_browser = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="there is no Chromium on this machine"
)

# Goes through all slides with all fragments shown; what is wrong with each.
WALK = """(() => Reveal.getSlides().map((slide) => {
  const {h, v} = Reveal.getIndices(slide);
  Reveal.slide(h, v, 99);
  const shown = [...slide.querySelectorAll("*")].filter(
    (e) => !e.closest("aside, mjx-assistive-mml, svg") && e.getClientRects().length);
  const name = (e) => e.tagName + " " + e.textContent.slice(0, 40);
  const beyond = shown.filter((e) => {
    const box = e.getBoundingClientRect();
    const cut = /^(PRE|TABLE|FIGURE|SECTION)$/.test(e.tagName)
      && e.scrollWidth > e.clientWidth + 1;
    return cut || box.left < 0 || box.top < 0
      || box.right > innerWidth + 1 || box.bottom > innerHeight + 1;
  }).map(name);
  if (slide.scrollHeight > slide.clientHeight) beyond.push("the slide itself");
  const texts = shown.filter((e) => !e.closest("pre, code")
    && [...e.childNodes].some((n) => n.nodeType === 3 && /\\$|\\\\[a-z]/.test(n.data)));
  const zoom = Reveal.getScale() * 720 / innerHeight;
  const sizes = shown.filter((e) => /^(P|LI|TD|PRE|H[1-3])$/.test(e.tagName))
    .map((e) => parseFloat(getComputedStyle(e).fontSize) * zoom);
  const answers = [...slide.querySelectorAll(".ask")].flatMap((ask) => [
    ...shown.filter((e) => e.matches(".code, pre.output, figure, .text")
      && ask.compareDocumentPosition(e) & 4 && !e.closest(".fragment")),
    ...(ask.nextElementSibling?.matches("p") ? [ask.nextElementSibling] : [])]);
  const bare = [...slide.querySelectorAll("img")].filter(
    (image) => image.alt.length < 30 || /^No description/.test(image.alt)
      || image.getClientRects()[0].width < 300);
  const shares = [...slide.querySelectorAll("img")].map((image) => Math.min(
    image.clientWidth / image.naturalWidth, image.clientHeight / image.naturalHeight));
  const code = shown.filter((e) => e.matches(".code pre"))
    .map((e) => parseFloat(getComputedStyle(e).fontSize) * zoom);
  return {
    cell: slide.dataset.cell, empty: !slide.innerText.trim(), beyond,
    raw_math: texts.map(name), bad_math: slide.querySelectorAll("mjx-merror").length,
    smallest: Math.min(...sizes), code: Math.min(99, ...code),
    bare: bare.map((i) => i.alt), figure: Math.min(9, ...shares),
    answers: answers.map(name),
  };
}))()"""


@pytest.fixture(scope="module")
def decks(tmp_path_factory):
    """Folder with these decks, built as `make slides` builds all."""
    folder, some = tmp_path_factory.mktemp("slides"), tmp_path_factory.mktemp("some")
    for name in NAMES:
        shutil.copy(shared.NOTEBOOKS / f"{name}.ipynb", some)
    try:
        slides.build_slides(folder, some)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return folder


@pytest.fixture(scope="module")
def visits(decks):
    """What a browser sees: a report for each deck."""
    browser, seen = chromium.Chromium(*SIZE), {}
    for name in NAMES:
        browser.open((decks / f"{name}.html").as_uri(), READY)
        seen[name] = {
            "slides": browser.evaluate(WALK),
            "requests": list(browser.requests),
            "errors": list(browser.errors),
            "math": browser.evaluate(
                "document.querySelectorAll('mjx-container').length"
            ),
        }
    browser.close()
    return seen


def wrong(visits, what):
    """{deck and cell: finding} for every slide where the report has one."""
    return {
        f"{name} {row['cell']}": row[what]
        for name, seen in visits.items()
        for row in seen["slides"]
        if row[what]
    }


@needs_browser
def test_every_notebook_becomes_a_deck_of_slides(visits):
    assert all(len(seen["slides"]) >= 5 for seen in visits.values())
    assert visits["06_full_training"]["math"] > 3


def test_decks_link_to_what_lies_beside_them(decks):
    assert (decks / "model.html").is_file()
    for name in NAMES:
        text = (decks / f"{name}.html").read_text("utf-8")
        assert ('href="model.html"' in text) == (name[:2] in slides.WITH_MODEL), name
        assert 'evidence.html"' not in text and 'exercises.html"' not in text


@needs_browser
def test_no_slide_asks_the_network_for_anything(visits):
    for name, seen in visits.items():
        outside = [r for r in seen["requests"] if not r.startswith(("file:", "data:"))]
        files = [r for r in seen["requests"] if r.startswith("file:")]
        assert outside == []
        assert len(files) == 1, f"{name} is more than one file: {files}"


@needs_browser
def test_the_console_shows_no_error(visits):
    assert {
        name: seen["errors"] for name, seen in visits.items() if seen["errors"]
    } == {}


@needs_browser
@pytest.mark.parametrize("what", FAULTS)
def test_no_slide_has_a_fault(visits, what):
    assert wrong(visits, what) == {}


@needs_browser
def test_type_stays_large_enough_to_read_from_the_last_row(visits):
    small = {
        f"{name} {row['cell']}": [row["smallest"], row["code"]]
        for name, seen in visits.items()
        for row in seen["slides"]
        if row["smallest"] < 20 or row["code"] < 21  # of 720 lines
    }
    assert small == {}


@needs_browser
def test_labels_in_figures_stay_readable(visits):
    label = 14 * 100 / 72  # pixels of the house style's 14 points in a stored figure
    small = {
        f"{name} {row['cell']}": row["figure"] * label
        for name, seen in visits.items()
        for row in seen["slides"]
        if row["figure"] * label < 14  # of 720 lines
    }
    assert not small


@needs_browser
def test_the_presenter_sees_the_notes_in_a_window_of_their_own(decks):
    browser = chromium.Chromium(1280, 720)
    browser.open((decks / f"{NAMES[1]}.html").as_uri(), READY)
    h, v, words = browser.evaluate(
        """(() => {
          const aside = document.querySelector("aside.notes");
          const {h, v} = Reveal.getIndices(aside.parentElement);
          Reveal.slide(h, v);
          const open = window.open;
          window.open = (...all) => window.popup = open(...all);
          Reveal.getPlugin("notes").open();
          return [h, v, aside.querySelector("p, td").textContent.slice(0, 20)];
        })()"""
    )
    shown = "popup.document.querySelector('.speaker-controls-notes .value')?.innerText"
    chromium.wait(lambda: words in (browser.evaluate(shown) or ""), "the notes")
    browser.close()


@needs_browser
def test_a_deck_prints_one_slide_a_page(decks):
    browser = chromium.Chromium(1280, 720)
    browser.open((decks / f"{NAMES[0]}.html").as_uri() + "?print-pdf", READY)
    count = "document.querySelectorAll('.pdf-page').length"
    notebook = shared.read(shared.NOTEBOOKS / f"{NAMES[0]}.ipynb")
    talk = slides_talk.read(NAMES[0])
    total = sum(map(len, slides_layout.stacks(notebook, talk)))
    chromium.wait(lambda: browser.evaluate(count) == total, "the printed pages")
    padding = "getComputedStyle(document.querySelector('.sheet')).paddingLeft"
    assert browser.evaluate(padding) == "72px"
    browser.close()


def outline(notebook):
    """[stack: [slide: [what, and "+" if it waits for a key]]]"""

    def parts(slide):
        return [p["what"] + ("+" if p["fragment"] else "") for p in slide["parts"]]

    return [
        [parts(slide) for slide in stack] for stack in slides_layout.stacks(notebook)
    ]


def test_prose_becomes_notes_and_questions_keep_their_answers_back():
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# Title\n\n**The promise.**\n\nSpoken."),
            nbformat.v4.new_markdown_cell(
                f"## One\n\n{CLAIM} Spoken. **Predict:** what?"
            ),
            nbformat.v4.new_code_cell("print(1)"),
            nbformat.v4.new_code_cell("\n".join(["print(2)"] * 16)),
        ]
    )
    assert outline(notebook) == [
        [["text", "text"]],
        [["text", "text", "text", "code+"], ["text", "code"]],
    ]
    (opening,), (section, below) = slides_layout.stacks(notebook)
    notes = [note.source for note in opening["notes"] + section["notes"]]
    assert notes == ["Spoken.", f"{CLAIM} Spoken. "]
    assert section["parts"][1]["cell"].source == f"{CLAIM} Spoken."  # the set-up
    assert opening["kind"] == "opening" and below["running"] == "One"


def made_of(*cells):
    """A notebook: a title, then these markdown cells (str) or code cells."""
    new = nbformat.v4
    cells = [new.new_markdown_cell(c) if isinstance(c, str) else c for c in cells]
    return new.new_notebook(cells=[new.new_markdown_cell("# T"), *cells])


def drawn(source):
    """A code cell that shows a figure."""
    cell = nbformat.v4.new_code_cell(source)
    cell.outputs = [figure(800, 300)]
    return cell


def figure(wide, high):
    """The output of a cell: the head of a picture of this size."""
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", wide, high)
    image = base64.b64encode(head).decode("ascii")
    return nbformat.v4.new_output("display_data", {"image/png": image})


def sources(stack):
    """[slide: [source of each part]]"""
    return [[part["cell"].source for part in slide["parts"]] for slide in stack]


@pytest.mark.parametrize("path", shared.notebook_paths(), ids=lambda path: path.stem)
def test_no_slide_has_nothing_but_a_heading(path):
    bare = []
    for stack in slides_layout.stacks(shared.read(path)):
        for slide in stack:
            texts = [part["cell"].source for part in slide["parts"]]
            kinds = {part["what"] for part in slide["parts"]}
            lines = "\n".join(texts).split("\n")
            if kinds <= {"text"} and all(re.match("#|$", line) for line in lines):
                bare.append(slide["cell"])
    assert bare == []


def all_slides(path):
    """[(slide, all of its words)] of a lesson."""
    notebook = shared.read(path)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = slides_words.without_asides(cell.source)
    return [
        (slide, " ".join(" ".join(sum(sources([slide]), [])).split()))
        for stack in slides_layout.stacks(notebook)
        for slide in stack
    ]


@pytest.mark.parametrize("path", shared.notebook_paths(), ids=lambda path: path.stem)
def test_a_new_word_stands_on_a_slide_in_its_sentence(path):
    slides_of = all_slides(path)
    shown = " ".join(words for _, words in slides_of)
    missing = []
    for slide, _ in slides_of:
        for note in slide["notes"]:
            found, bold = slides_words.emphasised(note.source)
            for sentence in (" ".join(found[n].split()) for n in bold):
                defined = slides_after.DEFINED.search(sentence)
                term = slides_words.TERM.search(sentence)
                if defined and term and term[0] not in shown:
                    missing.append(term[0])
    assert missing == []


@pytest.mark.parametrize("path", shared.notebook_paths(), ids=lambda path: path.stem)
def test_a_slide_has_a_sentence_if_there_is_room_and_its_code_has_notes(path):
    asked = False
    for slide, words in all_slides(path):
        kinds = [part["what"] for part in slide["parts"]]
        full = slides_room.filled(slide) > 560
        assert "text" in kinds or full or asked, slide["cell"]
        assert "code" not in kinds or slide["notes"] or asked, slide["cell"]
        asked = "**Predict" in words or "**Think" in words


def test_code_that_draws_stays_in_the_notebook_where_its_figure_follows():
    drawing = "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot(y)"
    notebook = made_of("## One\n\nClaimed.", drawn(drawing))
    assert outline(notebook)[1] == [["text", "text", "output"]]
    notebook = made_of("## One\n\nClaimed.", drawn(f"y = f(x)\n{drawing}"))
    (section,) = slides_layout.stacks(notebook)[1]
    assert [part["cell"].source for part in section["parts"]][2] == "y = f(x)"
    assert outline(notebook)[1] == [["text", "text", "code", "output+"]]
    notebook = made_of("## One", nbformat.v4.new_code_cell(drawing))
    assert slides_layout.stacks(notebook)[1][0]["parts"][1]["cell"].source == drawing


def test_long_code_goes_on_on_the_next_slide():
    body = [f"    line{n}()" for n in range(36)]
    body[17] = ""
    source = "\n".join(["def train():", *body])
    notebook = made_of("## One", nbformat.v4.new_code_cell(source))
    assert outline(notebook)[1] == [["text", "code"], ["code"]]
    shown = [s["parts"][-1]["cell"].source for s in slides_layout.stacks(notebook)[1]]
    assert "\n\n".join(shown) == source
    assert all(len(piece.splitlines()) <= slides_room.MOST for piece in shown)


def test_the_recap_is_shown_and_its_answers_are_not():
    recap = "## Recap\n\n- One.\n- Two.\n\n**Can you answer these?**\n\n1. Why?\n\n"
    recap += "<details><summary>Answers</summary>\n\n1. So.\n\n</details>"
    seen, asked = slides_layout.stacks(made_of(recap, "**Further reading**: a paper."))[
        1
    ]
    texts = [[part["cell"].source for part in s["parts"]] for s in (seen, asked)]
    assert texts[0] == ["## Recap", "- One.\n- Two."]
    assert texts[1] == ["**Can you answer these?**", "1. Why?"]
    assert "1. So." in asked["notes"][0].source


def test_a_tag_begins_the_second_lecture():
    notebook = made_of("## One\n\nClaimed.", "## Two\n\nClaimed.")
    notebook.cells[2].metadata["tags"] = ["second-lecture"]
    first, one, again, two = slides_layout.stacks(notebook)
    assert again[0]["kind"] == "opening"
    text = again[0]["parts"][0]["cell"].source
    assert text == "# T\n\n**The second lecture.** In the first:\n\n- One"
    assert two[0]["parts"][0]["cell"].source == "## Two"


def test_a_table_above_a_figure_leaves_it_a_slide_of_its_own():
    new = nbformat.v4
    made = []
    for lines in (2, 12):
        cell = new.new_code_cell("show()")
        cell.outputs = [
            new.new_output("stream", text="row\n" * lines),
            figure(800, 350),
        ]
        notebook = new.new_notebook(cells=[new.new_markdown_cell("# T"), cell])
        made.append(outline(notebook)[0])
    assert made == [
        [["text", "code", "output+", "output+"]],  # a line or two leave it room
        [["text", "code", "output+"], ["output"]],
    ]


def test_printed_lines_stand_below_the_end_of_their_code():
    new, made = nbformat.v4, []
    for lines in (3, 17):
        cell = new.new_code_cell("\n".join(["show()"] * lines))
        cell.outputs = [new.new_output("stream", text="row\n" * 5)]
        made.append(outline(made_of("## One\n\nClaimed.", cell))[1])
    assert made == [
        [["text", "text", "code", "output+"]],
        [["text", "text", "code"], ["text", "code", "output+"]],
    ]


def test_a_question_waits_alone_rather_than_that_its_code_loses_what_it_prints():
    new = nbformat.v4
    cell = new.new_code_cell("\n".join(["show()"] * 12))
    cell.outputs = [new.new_output("stream", text="row\n" * 5)]
    made = outline(made_of(f"## One\n\n{CLAIM} **Predict:** what?", cell))[1]
    assert made == [["text", "text", "text"], ["text", "code", "output+"]]


def test_code_is_cut_between_functions_and_never_inside_brackets_or_below_a_for():
    first = ["def first(a):", *["    a.b(", "        c,", "    )"] * 5, ""]
    second = ["def second(a):", "    for b in a:", "        b.c()"]
    source = "\n".join([*first, *second])
    _, pieces = slides_room.in_pieces(source)
    assert pieces == ["\n".join(first[:-1]), "\n".join(second)]
    lines = ["a(", *["    b,"] * 11, ")", "for c in d:", *["    e(c)"] * 12]
    _, pieces = slides_room.in_pieces("\n".join(lines))
    assert pieces == ["\n".join(lines[:13]), "\n".join(lines[13:])]


def test_a_sentence_leads_to_code_that_begins_a_slide():
    def leading(words):
        new = nbformat.v4
        first, second = ["\n".join([call] * 12) for call in ("first()", "second()")]
        cells = [new.new_code_cell(first), words, new.new_code_cell(second)]
        stack = slides_layout.stacks(made_of(f"## One\n\n{CLAIM}", *cells))[1]
        return sources(stack)[1][0]

    assert leading("Explained. Said.\n\nA new function is written here for all.") == (
        "A new function is written here for all."
    )
    assert leading("It was large, as one sees. Its root is what we need now.") == (
        "Its root is what we need now."
    )
    assert leading("They agree with the sum above, and so do all others:") == (
        "They agree with the sum above, and so do all others:"
    )
    assert leading("| a |\n|---|\n| b |") == CLAIM  # as above the first


def test_the_figure_of_a_claim_stands_below_it_and_how_it_was_made_behind_it():
    made = nbformat.v4.new_code_cell("f(y)\ng(y)", outputs=[figure(800, 640)])
    said = "It falls from left to right, as it was promised above."
    notebook = made_of(f"## One\n\n{CLAIM}", made, f"{said} Spoken.")
    assert outline(notebook)[1] == [["text", "text", "output"], ["code", "text"]]
    assert sources(slides_layout.stacks(notebook)[1])[1] == ["f(y)\ng(y)", said]


def test_a_short_remark_in_brackets_behind_a_question_is_said():
    asked = "**Predict:** where are most of them?"
    told = f"{asked} (`f` yields the parts.)"
    assert slides_words.as_shown(told, True) == asked
    needed = f"{asked} (Each of them is {'very ' * 14}large.)"
    assert slides_words.as_shown(needed, True) == needed
    (slide,) = slides_layout.stacks(made_of(f"## One\n\n{CLAIM}\n\n{told}"))[1]
    assert sources([slide])[0][-1] == asked
    assert slide["notes"][-1].source == told


def test_a_formula_behind_a_question_waits_with_the_code():
    text = f"## One\n\n{CLAIM} **Predict:** what?\n\n$$x$$"
    notebook = made_of(text, nbformat.v4.new_code_cell("f(x)"))
    assert outline(notebook)[1] == [["text", "text", "text", "text+", "code+"]]


def test_a_long_paragraph_is_cut_after_a_sentence_and_said_as_a_whole():
    long = (
        f"**Parts.** {CLAIM} " + "P. Gage told it in (1994), et al. too. " * 8 + "So:"
    )
    shown = slides_words.shortened(long)
    assert shown.startswith(f"**Parts.** {CLAIM} P. Gage") and shown.endswith(
        "too. So:"
    )
    assert len(shown.split()) <= slides_words.WORDS < len(long.split())
    (slide,) = slides_layout.stacks(made_of(f"## One\n\n{long}"))[1]
    assert slide["parts"][1]["cell"].source == shown
    assert [note.source for note in slide["notes"]] == [long]


def test_a_section_of_words_alone_shows_its_first_paragraph_and_its_lists():
    words = "## One\n\nClaimed. And why.\n\n| a |\n|---|\n| b |\n\nSpoken."
    (slide,) = slides_layout.stacks(made_of(words))[1]
    texts = [part["cell"].source for part in slide["parts"]]
    assert texts == ["## One", "Claimed. And why.", "| a |\n|---|\n| b |"]
    assert [note.source for note in slide["notes"]][-1] == "Spoken."


def test_the_set_up_stays_in_the_notebook():
    notebook = made_of(drawn("text = course.setup().text\ndrawings.way()"))
    assert outline(notebook) == [[["text", "output"]]]


def test_no_words_are_left_of_a_link_to_the_evidence_or_the_exercises():
    link = "[evidence](evidence/03_evidence.ipynb)"
    told = {
        f"It can hardly change ({link}). More.": "It can hardly change. More.",
        f"It saves it.\n(So does time: {link}.)\nOn.": "It saves it.\nOn.",
        f"One. Four slips stand in the {link}.\n\nTwo (x).": "One.\n\nTwo (x).",
        f"The {link} counts [it](04.ipynb).": "The evidence counts [it](04.ipynb).",
        f"**Beside this notebook:** {link}. **Next:** x.": "**Next:** x.",
        "**Can you answer these without scrolling up?**": "**Can you answer these?**",
    }
    assert [slides_words.without_asides(source) for source in told] == list(
        told.values()
    )


def test_what_a_result_shows_stands_below_it_after_a_click():
    def found(words, result=None):
        cell = nbformat.v4.new_code_cell("show()")
        cell.outputs = [result or nbformat.v4.new_output("stream", text="row\n")]
        stack = slides_layout.stacks(made_of(f"## One\n\n{CLAIM}", cell, words))[1]
        return [part["cell"].source for part in stack[-1]["parts"]], outline(
            made_of(f"## One\n\n{CLAIM}", cell, words)
        )[1]

    texts, kinds = found("It can. In nine words more it is told what follows.")
    assert texts[-1] == "It can. In nine words more it is told what follows."
    assert kinds == [["text", "text", "code", "output+", "text+"]]
    safe = "We keep it for its **safety**, too."  # nothing in bold is left out
    assert found(f"{safe} And so on.")[0][-1] == safe
    assert found("Now for something else. It is new.")[1][0][-1] == "output+"
    assert found("One alone. Two:\n\n- a")[0][-1] == "One alone."
    late = "Half as many are read in the second row as in the first. It is so. "
    assert found(late + "So **half of it** is time.")[0][-1] == (
        "So **half of it** is time."
    )


def test_the_claim_of_a_figure_that_is_alone_stands_above_it():
    alone, words = drawn("plt.plot(x)"), "It falls from left to right, as was promised."
    first = nbformat.v4.new_code_cell("x = 1")
    made = made_of(f"## One\n\n{CLAIM}", first, alone, words)
    assert outline(made)[1] == [["text", "text", "code"], ["text", "output"]]
    assert sources(slides_layout.stacks(made)[1])[1][0] == words


def test_a_sentence_that_needs_the_one_before_it_leads_only_with_that():
    assert slides_words.lead(
        ["The layer stands before each part. This order is new:"]
    ) == ("The layer stands before each part. This order is new:")
    assert slides_words.lead(["So it can be found only where vectors say it."]) == ""
    assert (
        slides_words.lead(["(A text can be cut. We count one of all these cuts.)"])
        == ""
    )


def test_a_short_list_stands_below_the_sentence_that_leads_to_it():
    items = "1. " + "word " * 30 + "\n2. **Bold**: " + "word " * 30 + "\n3. Short."
    words = f"## One\n\n{CLAIM} Then more is said. So each takes three:\n\n{items}"
    made = made_of(words, nbformat.v4.new_code_cell("f(x)"))
    (shown,) = sources(slides_layout.stacks(made)[1])
    short = "1. " + " ".join(["word"] * 14) + " …\n2. **Bold**\n3. Short."
    led = f"{CLAIM} Then more is said. So each takes three:"
    assert shown[1:] == [led, short, "f(x)"]
    assert slides_words.short_list("- a\n" * 5) == ""


def test_code_that_only_loads_and_prints_records_stays_in_the_notebook():
    def printed(source):
        cell = nbformat.v4.new_code_cell(source)
        cell.outputs = [nbformat.v4.new_output("stream", text="row\n" * 18)]
        return cell

    first = printed("runs = record.load('x')\ndef told(v):\n    return min(v)")
    second = printed("for one in runs:\n    print(told(one))")
    third = printed("print(evaluate(runs))")
    made = made_of(f"## One\n\n{CLAIM}", first, second, third)
    (section, more, last) = slides_layout.stacks(made)[1]
    assert outline(made)[1] == [
        ["text", "text", "output"],
        ["text", "output"],
        ["code", "output+"],
    ]
    notes = [note.source for one in (section, more, last) for note in one["notes"]]
    assert "record" not in "".join(notes)


def test_a_finding_is_no_definition_and_a_tag_chooses_another_sentence():
    assert (
        slides_words.findings("The list of all merges is the tokenizer itself.") == []
    )
    assert (
        slides_words.findings("`recipe` is a `TrainConfig`. It can be printed.") == []
    )
    claim = "The loss of the second model is a tenth below that of the first."
    assert slides_words.findings(claim) == [claim, claim]
    cell = nbformat.v4.new_code_cell("show()")
    cell.outputs = [nbformat.v4.new_output("stream", text="row\n")]

    def shown(number):
        words = nbformat.v4.new_markdown_cell(
            "Below stand letters. The last has found."
        )
        words.metadata["tags"] = [f"finding-{number}"]
        notebook = made_of("## One\n\nClaimed.", cell, words.source)
        notebook.cells[-1] = words
        return sources(slides_layout.stacks(notebook)[1])[0][-1]

    assert shown(2) == "The last has found."
    assert shown(0) == "show()"


def test_code_is_cut_so_that_the_finding_has_room_below_what_was_printed():
    cell = nbformat.v4.new_code_cell("\n".join(["show()"] * 12))
    cell.outputs = [nbformat.v4.new_output("stream", text="row\n" * 3)]
    claim = "It falls from left to right, as it was promised."
    (first, second) = outline(made_of(f"## One\n\n{CLAIM}", cell, claim))[1]
    assert first == ["text", "text", "code"]
    assert second == ["code", "output+", "text+"]


def test_a_slide_that_is_nearly_empty_joins_its_neighbour_where_there_is_room():
    def made(lines, between=()):
        new = nbformat.v4
        cells = [new.new_code_cell("\n".join([f"f({n})"] * n)) for n in lines]
        return outline(made_of(f"## One\n\n{CLAIM}", cells[0], *between, *cells[1:]))[1]

    assert made([10, 3]) == [["text", "text", "code", "code"]]
    assert made([10, 12]) == [["text", "text", "code"], ["text", "code"]]
    assert made([16, 3]) == [["text", "text", "code"], ["text", "code"]]  # no room
    asked = made([10, 3], between=["**Predict:** what?"])
    assert asked == [["text", "text", "code"], ["text", "code+"]]  # a question
    assert made([4, 3], between=["### Two\n\nClaimed."])[1] == ["text", "text", "code"]


def test_what_joins_a_slide_that_waits_for_a_click_waits_as_well():
    first, second = nbformat.v4.new_code_cell("f()"), nbformat.v4.new_code_cell("g()")
    first.outputs = [nbformat.v4.new_output("stream", text="row\n")]
    made = outline(made_of(f"## One\n\n{CLAIM}", first, second))[1]
    assert made == [["text", "text", "code", "output+", "code+"]]


def test_a_few_assignments_that_would_make_a_figure_small_stay_in_the_notebook():
    def made(source, high):
        cell = nbformat.v4.new_code_cell(source, outputs=[figure(800, high)])
        first = nbformat.v4.new_code_cell("\n".join(["f()"] * 14))
        return slides_layout.stacks(made_of("## One\n\nClaimed.", first, cell))[1]

    notes = made("x = 1\nmaps = f(x)", 600)
    assert [[part["what"] for part in s["parts"]] for s in notes][1] == [
        "text",
        "output",
    ]
    assert notes[1]["notes"] == []
    small = made("x = 1\nmaps = f(x)", 300)  # both have room
    assert [part["what"] for part in small[1]["parts"]] == ["text", "code", "output"]
    calls = made("f(1)\nf(2)", 600)
    assert [[part["what"] for part in s["parts"]] for s in calls][1:] == [
        ["text", "code"],
        ["text", "output"],
    ]


def test_code_that_prints_nothing_does_not_keep_an_answer_waiting():
    new = nbformat.v4
    body = "    a = a + 1\n" * 14
    define = new.new_code_cell(f"def f(a):\n{body}    return a")
    ready = new.new_code_cell("import math\na = math.pi")
    show = new.new_code_cell("print(f(a))")
    show.outputs = [new.new_output("stream", text="row\n")]
    asked = f"## One\n\n{CLAIM}\n\n**Predict:** what?"
    made = made_of(asked, define, ready, show, "It is three. It is odd.")
    answer, behind = slides_layout.stacks(made)[1]
    texts = sources([answer])[0]
    assert texts[1:4] == [CLAIM, "**Predict:** what?", "print(f(a))"]
    assert texts[-1] == "It is three. It is odd."
    assert answer["notes"][-1].source == "**Answer:** It is three. It is odd."
    assert sources([behind])[0] == ["How it was computed, in `f`:", define.source]


def test_a_formula_stands_below_the_sentence_that_leads_to_it():
    words = f"## One\n\n{CLAIM} And more is said. The root of it moves by\n\n$$x$$"
    (slide,) = slides_layout.stacks(made_of(words))[1]
    assert sources([slide])[0][1:] == [f"{CLAIM} The root of it moves by:", "$$x$$"]


def test_a_word_in_bold_joins_what_is_said_first():
    words = f"## One\n\n{CLAIM} Now more. A **head** is one reader of the text."
    (slide,) = slides_layout.stacks(made_of(words, nbformat.v4.new_code_cell("f()")))[1]
    shown = sources([slide])[0][1]
    assert shown.startswith(CLAIM) and "A **head** is one reader" in shown


def test_checks_and_operators_are_told_and_not_shown():
    check = "def f(a):\n    if a < 0:\n        raise ValueError(a)\n    return a"
    assert slides_words.without_checks(check) == (
        "def f(a):\n    # … checks\n    return a"
    )
    names = ["add", "mul", "pow"]
    alike = [f"    def __{n}__(self, b):\n        return {n}(self, b)" for n in names]
    shown = slides_words.without_checks("\n".join(["class A:", *alike]))
    assert shown == f"class A:\n{alike[0]}\n    # … and so do the other operators"


def test_code_with_a_tag_leaves_its_result_alone_on_the_slide():
    cell = nbformat.v4.new_code_cell("print(1)", metadata={"tags": ["result-only"]})
    cell.outputs = [nbformat.v4.new_output("stream", text="row\n")]
    made = made_of(f"## One\n\n{CLAIM}", cell, "One row is left of it, as you see.")
    assert outline(made)[1] == [["text", "text", "output", "text+"]]
    (slide,) = slides_layout.stacks(made)[1]
    assert "print(1)" not in "".join(note.source for note in slide["notes"])


def test_a_tag_chooses_two_sentences():
    said = "First. Second. Third one."
    assert slides_words.findings(said, (1, 3)) == ["First. Third one.", "First."]
    assert slides_words.findings(said, (0,)) == []


def test_the_title_says_how_long_a_lecture_takes():
    long = [nbformat.v4.new_code_cell("\n".join(["f()"] * 16)) for _ in range(17)]
    claims = ["## One\n\nClaimed.", "## Two\n\nClaimed."]
    notebook = made_of(claims[0], *long[:10], claims[1], *long[10:])
    told = [s[0].get("length") for s in slides_layout.stacks(notebook)]
    assert told == ["about 60 minutes as a lecture", None, None]
    notebook.cells[12].metadata["tags"] = ["second-lecture"]
    told = [s[0].get("length") for s in slides_layout.stacks(notebook)]
    assert told == [
        "part 1 and part 2, about 35 and 25 minutes",
        None,
        "about 25 minutes as a lecture",
        None,
    ]


TABLE = """the recipe   1.96 (spread 0.014)
no warm-up   2.18 (spread 0.02)
no <cosine>: 2.01 (spread 0.03)
no decay     1.90 (spread 0.01)
"""


def test_a_recorded_column_becomes_dots_with_the_same_numbers():
    cell = nbformat.v4.new_code_cell("print(record.load('x'))")
    cell.outputs = [nbformat.v4.new_output("stream", text=TABLE)]
    (slide,) = slides_layout.stacks(made_of(f"## One\n\n{CLAIM}", cell))[1]
    (output,) = slide["parts"][-1]["cell"].outputs
    picture = ElementTree.fromstring(output.data["text/html"])
    texts = [text.text for text in picture.iter("text")]
    labels, numbers, axis = texts[:-1:2], texts[1:-1:2], texts[-1]
    assert axis == "bar: spread of the seeds; axis from 1.90 to 2.19"
    assert labels == ["the recipe", "no warm-up", "no <cosine>", "no decay"]
    assert numbers == ["1.96", "2.18", "2.01", "1.90"]
    at = [float(dot.get("cx")) for dot in picture.iter("circle")]
    assert sorted(range(4), key=at.__getitem__) == [3, 0, 2, 1]
    assert (at[1] - at[0]) / (at[0] - at[3]) == pytest.approx(0.22 / 0.06, rel=0.01)
    assert "no warm-up: 2.18, spread 0.02" in picture.get("aria-label")
    assert [note.source for note in slide["notes"]] == [CLAIM]


def test_other_printed_lines_stay_as_they_are():
    assert slides_dots.rows("a 1.0\nb 2.0\nc 3.0") == []  # few
    assert slides_dots.rows("a 0.0\nb 0.0\nc 0.0\nd 0.1") == []  # alike
    assert slides_dots.rows("a 1.0\nb 2.0\nc 3.0\nd 4.0\nand words") == []
    assert slides_dots.rows("a 1.0\nb 2.0\nc 3.0\nd  e 4.0")[3][0] == "d, e"
    told = slides_dots.rows("600 steps  a 1.0\nb 2.0\nc 3.0\nd 4.0")
    assert "dash" not in slides_dots.svg(told, 200)  # nothing is compared with a part
