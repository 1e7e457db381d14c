"""Each lesson as slides: one HTML file with everything inside, for any browser.

    python -m minigpt.course.publish.slides            writes build/slides/NN_name.html

Headings, the first sentence below them, formulas, questions, code, figures and the
recap stand on the slides; the prose is for the speaker's notes (press S). Code that
draws stays in the notebook; code that is longer than a slide goes on on the next.
"""

import ast
import json
import re

import nbformat

from minigpt.course.publish import npm, shared

SCRIPTS = [
    shared.MATHJAX,
    ("reveal.js", "dist/reveal.js"),
    ("reveal.js", "plugin/notes/notes.js"),
]
STYLES = [("reveal.js", "dist/reset.css"), ("reveal.js", "dist/reveal.css")]
WIDTH, HEIGHT = 1280, 720
FULL, TABLE = 16, 5  # lines of code on a slide; lines printed above a figure
MOST = 24  # lines of code that a slide can hold when it is shrunk
ASKS = "**Can you answer"  # the questions at a lesson's end
ROOM = 6  # lines of text that leave room for a figure below them
SECOND = "second-lecture"  # a tag: from this cell on the deck is for another hour
DRAWS = re.compile(r"\b(plt|figs?|ax|axes|drawings)\b|\bplots\.(?!LiveCurve)")
OPENED = """## The model, opened

**[The GPT of this course](model.html)**, in a file beside these slides: it writes, and
a click switches off one of its parts."""
FOLD = re.compile(r"<details.*?</details>", re.S)
ASIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)?(?:evidence|exercises)/[^)]*\)")


def build_slides(folder=shared.BUILD / "slides", notebooks=shared.NOTEBOOKS):
    """Write all decks into the folder, and the model that 06 and 11 open; list of the
    decks' paths."""
    paths = shared.notebook_paths(notebooks)
    loaded = [shared.read(path) for path in paths]
    used = shared.characters(loaded)
    shared.write_model(folder / "model.html")
    written = []
    for path, notebook in zip(paths, loaded):
        if path.stem[:2] in ("06", "11"):
            notebook.cells.append(nbformat.v4.new_markdown_cell(OPENED, id="opened"))
        target = folder / f"{path.stem}.html"
        shared.write(target, deck(notebook, used))
        written.append(target)
    return written


def deck(notebook, used):
    """One notebook as a page of slides; `used`: the characters that fonts need."""
    notebook = nbformat.from_dict(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":  # evidence and exercises: no slides
            cell.source = ASIDE.sub(r"\1", cell.source)
    body = shared.to_html(
        "slides", notebook, stacks=stacks(shared.local_links(notebook))
    )
    return shared.whole_page(
        "slides",
        title=shared.title(notebook),
        body=body,
        fonts=shared.fonts(used),
        styles=[npm.read(*source).decode("utf-8") for source in STYLES]
        + [shared.template_file(f) for f in ("shared/code.css", "slides/deck.css")],
        scripts=[shared.script(*source) for source in SCRIPTS],
        before=shared.template_file("shared/mathjax.js"),
        after=shared.template_file("slides/deck.js"),
        size=json.dumps({"width": WIDTH, "height": HEIGHT}),
    )


def seen_and_said(source, recap=False):
    """The paragraphs of a text in their order, in pieces: ("seen", ...) for headings,
    formulas, drawings in code, the promise and questions; ("said", ...) for prose.

    Of a recap, and of the questions at the end, all is seen but the answers.
    """
    found = []
    for paragraph in re.split(r"\n{2,}", FOLD.sub(_in_one_piece, source)):
        if paragraph.startswith("<details"):
            found.append(("said", paragraph.replace("\0", "\n\n")))
            continue
        seen = re.match(r"#|\$\$|```|\*\*Predict|> |\*\*(?!Further|Beside)", paragraph)
        recap = recap or paragraph.startswith(("## Recap", ASKS))
        if "**Predict" in paragraph and not seen:
            paragraph, _, asked = paragraph.partition("**Predict")
            found += [("said", paragraph), ("seen", "**Predict" + asked)]
        else:
            about = re.match(r"\*\*(Further|Beside)", paragraph)
            seen = seen or recap and not about
            found.append(("seen" if seen else "said", paragraph))
    return [(kind, text) for kind, text in found if text.strip()]


def _in_one_piece(fold):
    return re.sub(r"\n{2,}", "\0", fold[0])


def stacks(notebook):
    """The slides as a list of stacks; a stack is a list of slides, one below the other.

    A section begins a stack, and so does each piece of code a slide below the first
    code; long code or a figure leaves no room for the other. A slide is a dict: cell
    (id of its first cell), kind (a class), running (the section's title, if the slide
    does not begin with it), parts (what, cell, fragment or not) and notes (cells).
    """
    found, section, lines, asked = [], "", 0, False  # lines: how full the slide is
    titles = []  # of the sections of this lecture
    text_cell = nbformat.v4.new_markdown_cell

    def put(what, cell, fragment=False):
        part = {"what": what, "cell": cell, "fragment": fragment}
        found[-1][-1]["parts"].append(part)

    def begin(cell, kind="", running=None):
        running = re.sub(r"[`*]", "", section) if running is None else running
        slide = {"cell": cell.id, "kind": kind, "running": running}
        found[-1].append(slide | {"parts": [], "notes": []})

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            if SECOND in cell.metadata.get("tags", []):
                found.append([])
                begin(cell, "opening", running="")
                put("text", text_cell(second_lecture(titles)))
                titles = titles[:1]
            for kind, source in seen_and_said(cell.source, section == "Recap"):
                if heading := re.match(r"(#{1,3}) (.*)", source):
                    lines = 0
                    if len(heading[1]) < 3:
                        section = heading[2]
                        titles.append(section)
                        found.append([])
                        begin(cell, "opening" if heading[1] == "#" else "", "")
                    elif not only_heading(found):
                        begin(cell)
                elif source.startswith(ASKS):
                    begin(cell)
                if kind == "said":
                    found[-1][-1]["notes"].append(text_cell(source))
                    if (claim := first_sentence(source)) and only_heading(found):
                        put("text", text_cell(claim))
                        lines += 2
                else:
                    put("text", text_cell(source))
                    lines += 2 * source.count("\n\n") + 2
                asked = "**Predict" in source or asked and kind == "said"
            continue
        figures = [o for o in cell.outputs if "image/png" in o.get("data", {})]
        pieces = in_pieces(without_drawing(cell.source, bool(figures)))
        if not pieces and not cell.outputs:
            continue
        long, before = 0, lines
        for piece in pieces:
            long = piece.count("\n") + 1
            if lines + long > FULL and not only_heading(found):
                begin(cell)
                asked, before = False, 0
            put("code", nbformat.from_dict(cell | {"source": piece}), asked)
            lines = FULL
        printed = sum(o.get("text", "").count("\n") for o in cell.outputs)
        alone = figures if printed > TABLE else []  # a table above it: no room for both
        beside = [o for o in cell.outputs if o not in alone]
        full = lines > ROOM if not pieces else figures and not alone
        apart = bool(full) or before + long + printed > MOST
        for outputs, own in ((beside, apart), (alone, True)):
            if outputs:
                if own:
                    begin(cell)
                shown = nbformat.from_dict(cell | {"outputs": outputs})
                put("output", shown, fragment=bool(pieces or asked) and not own)
        lines, asked = FULL, False  # what comes next begins a slide
    return found


def only_heading(found):
    """Does nothing stand on the last slide but a heading of a section?"""
    parts = found[-1][-1]["parts"]
    return bool(parts) and all(re.match("###? ", p["cell"].source) for p in parts)


def first_sentence(source):
    """What a paragraph says first; "" for a list, a table or a fold."""
    sentence = re.match(r"(?![-|<]|\d+\. )(.+?[.:?!])(?=\s|$)", source, re.S)
    return sentence[1] if sentence else ""


def second_lecture(titles):
    """What stands on the slide with which the second lecture begins."""
    before = "\n".join(f"- {one}" for one in titles[1:])
    return f"# {titles[0]}\n\n**The second lecture.** In the first:\n\n{before}"


def without_drawing(source, figure):
    """Python source, without the statements that draw if a figure follows; "" if only
    imports are left."""
    source = re.sub(r"\n{3,}", "\n\n", source)  # slides are low
    kept, lines, start = [], source.splitlines(), 0
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # a magic command of IPython
        return source
    for node in statements:
        text, start = "\n".join(lines[start : node.end_lineno]), node.end_lineno
        if not (figure and DRAWS.search(text)):
            kept.append((node, text))
    if all(isinstance(node, (ast.Import, ast.ImportFrom)) for node, _ in kept):
        return ""
    return "\n".join(text for _, text in kept).strip("\n")


def in_pieces(source):
    """Python source in pieces that fit a slide, cut where a block ends."""
    lines = source.splitlines()
    if len(lines) <= MOST:
        return [source] if source else []
    indents = [len(line) - len(line.lstrip()) for line in lines]
    middle = len(lines) / 2
    cuts = sorted(
        range(1, len(lines)),
        key=lambda n: (indents[n] > 4 or bool(lines[n - 1].strip()), abs(n - middle)),
    )
    cut = next((n for n in cuts if max(n, len(lines) - n) <= MOST), len(lines) // 2)
    first, second = "\n".join(lines[:cut]), "\n".join(lines[cut:])
    return [part.strip("\n") for part in (first, second)]


if __name__ == "__main__":
    shared.run_builder(build_slides, "The slides", shared.BUILD / "slides")
