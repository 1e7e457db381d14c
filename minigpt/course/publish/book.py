"""The course as a small web site that opens from the file system, offline.

    python -m minigpt.course.publish.book       writes build/book/index.html and more

One page a notebook, with its figures inside, and before them the model as
`python -m minigpt page` makes it; style, fonts and MathJax stand once
in build/book/assets.
"""

import html
import re

from minigpt.course.publish import page

HEADING = re.compile(r"<h([2-6])>(.*?)</h\1>", re.S)

INTRODUCTION = """<h1>minigpt</h1>
<p>A GPT from nothing, one small notebook at a time. Every number and figure on these
pages was produced by the code above it.</p>
<p><strong>Meet the model first:</strong> <a href="model.html">the GPT that you will
build, opened</a>. It writes in your browser, and you can switch off its parts.</p>
"""
INDEX = {"file": "index.html", "title": "Contents"}


def build(folder=page.BUILD / "book", notebooks=page.NOTEBOOKS):
    """Write the whole site into the folder; list of the pages' paths."""
    paths = page.every_path(notebooks)
    loaded = [page.read(path) for path in paths]
    write_assets(folder / "assets", page.characters(loaded))
    contents = []
    for path, notebook in zip(paths, loaded):
        shelf = page.shelf_of(path)
        file = page.web_name(path.stem, shelf)
        contents.append({"file": file, "title": page.title(notebook), "shelf": shelf})
    page.write_model(folder / "model.html")
    written = [folder / "index.html"]
    page.write(written[0], index(contents, loaded))
    for number, notebook in enumerate(loaded):
        written.append(folder / contents[number]["file"])
        page.write(written[-1], chapter(notebook, contents, number))
    return written


def write_assets(folder, used):
    """What all pages share."""
    style = page.template_file("shared/code.css") + page.template_file("book/book.css")
    page.write(folder / "fonts.css", page.fonts(used))
    page.write(folder / "book.css", style)
    page.write(folder / "book.js", page.template_file("book/book.js"))
    page.write(folder / "before.js", page.template_file("shared/mathjax.js"))
    page.write(folder / "mathjax.js", page.script(*page.MATHJAX))


def chapter(notebook, contents, number):
    """The page of one notebook, the number-th of the contents."""
    own = contents[number]
    body, sections = with_anchors(page.to_html("book", notebook, own["shelf"]))
    return page.whole_page(
        "book",
        title=own["title"],
        body=body,
        contents=[{**entry, "current": entry is own} for entry in contents],
        sections=sections,
        previous=contents[number - 1] if number else INDEX,
        next=contents[number + 1] if number + 1 < len(contents) else None,
    )


def index(contents, loaded):
    """The first page: every notebook, what it promises and how long it takes."""
    cards = []
    for entry, notebook in zip(contents, loaded):
        if entry["shelf"]:
            continue
        source = page.markdown(notebook)
        promise = re.search(r"^\*\*(.+?)\*\*", source, flags=re.M | re.S)
        time = re.search(r"^\| Time \| (.*?) \|", source, flags=re.M)
        cards.append(
            f'<li><a href="{entry["file"]}">{html.escape(entry["title"])}</a>'
            f"<p>{html.escape(promise[1].replace(chr(10), ' ')) if promise else ''}</p>"
            f"<small>{html.escape(time[1]) if time else ''}</small></li>"
        )
    cards = f'<ol class="cards">{"".join(cards)}</ol>'
    body = f'<div class="text">{INTRODUCTION}{cards}</div>'
    return page.whole_page(
        "book",
        title="Contents",
        body=body,
        contents=contents,
        sections=[],
        previous=None,
        next=contents[0],
    )


def with_anchors(body):
    """The page with an id for every heading, as Jupyter forms it, and its outline.

    The outline has levels 2 and 3: a list of level, id and text.
    """
    outline, taken = [], set()

    def anchor(match):
        level, text = match.groups()
        plain = re.sub(r"<[^>]+>", "", text)
        name = html.escape(html.unescape(plain).replace(" ", "-"))
        while name in taken:
            name += "-again"
        taken.add(name)
        if level in "23":
            outline.append({"level": level, "id": name, "text": plain})
        return f'<h{level} id="{name}">{text}</h{level}>'

    return HEADING.sub(anchor, body), outline


if __name__ == "__main__":
    page.build(build, "The book", page.BUILD / "book")
