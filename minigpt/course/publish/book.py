"""The course as a small web site that opens from the file system, offline.

    python -m minigpt.course.publish.book       writes build/book/index.html and more
    python -m minigpt.course.publish.book --repo owner/name   with links to Colab

One page a notebook, with its figures inside, and before them the model as
`python -m minigpt page` makes it; style, fonts and MathJax stand once
in build/book/assets.
"""

import argparse
import base64
import html
import json
import re
import struct
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from minigpt.course.publish import colab, door, shared

IMAGE = re.compile(r'<figure>(<img [^>]*?src="data:image/png;base64,([^"]{64}))')
HEADING = re.compile(r"<h([2-6])>(.*?)</h\1>", re.S)

INTRODUCTION = """<h1>minigpt</h1>
<p>A GPT from nothing, one small notebook at a time. Every number and figure on these
pages was produced by the code above it.</p>
<p><strong>Meet the model first:</strong> <a href="model.html">the GPT that you will
build, opened</a>. It writes in your browser, and you can switch off its parts.</p>
"""
INDEX = {"file": "index.html", "title": "Contents"}


def build_book(
    folder: Path = shared.BUILD / "book",
    notebooks: Path = shared.NOTEBOOKS,
    repo: str | None = None,
) -> list[Path]:
    """Write the whole site into the folder; list of the pages' paths.

    repo: owner/name, for links to Colab; None: what pyproject.toml says.
    """
    repo = shared.repository() if repo is None else shared.checked(repo)
    paths = shared.every_path(notebooks)
    loaded = [shared.read(path) for path in paths]
    write_assets(folder / "assets", shared.characters(loaded))
    contents: list[dict[str, Any]] = []
    for path, notebook in zip(paths, loaded):
        shelf = shared.shelf_of(path)
        file = shared.web_name(path.stem)
        entry = {"file": file, "title": shared.title(notebook), "shelf": shelf}
        place = path.relative_to(notebooks).as_posix()
        entry["colab"] = colab.address(repo, place) if repo else ""
        contents.append(entry | {"minutes": shared.minutes(notebook)})
    shared.write_model(folder / "model.html")
    written = [folder / "index.html"]
    shared.write(written[0], index(contents, loaded))
    found = []
    for number, notebook in enumerate(loaded):
        written.append(folder / contents[number]["file"])
        text, sections = chapter(notebook, contents, number)
        shared.write(written[-1], text)
        found += [[number, *section] for section in sections]
    data = {"pages": [[e["file"], e["title"]] for e in contents], "found": found}
    text = f"window.EVERYTHING = {json.dumps(data, ensure_ascii=False)};\n"
    shared.write(folder / "assets" / "search.js", text)
    return written


def write_assets(folder: Path, used: frozenset[str]) -> None:
    """Write the styles, scripts and fonts that all pages share."""
    style = shared.template_file("shared/code.css") + shared.template_file(
        "book/book.css"
    )
    shared.write(folder / "fonts.css", shared.fonts(used))
    shared.write(folder / "book.css", style)
    shared.write(folder / "book.js", shared.template_file("book/book.js"))
    shared.write(folder / "before.js", shared.template_file("shared/mathjax.js"))
    shared.write(folder / "mathjax.js", shared.script(*shared.MATHJAX))


def chapter(notebook: NotebookNode, contents: Any, number: int) -> tuple:
    """The page of one notebook, the number-th of the contents, and what a search finds
    there: a list of an anchor, its heading and the text below it."""
    own = contents[number]
    body, sections = with_anchors(shared.to_html("book", notebook))
    body = with_sizes(body)
    whole = shared.whole_page(
        "book",
        title=own["title"],
        body=body,
        contents=[{**entry, "current": entry is own} for entry in contents],
        sections=sections,
        previous=contents[number - 1] if number else INDEX,
        next=contents[number + 1] if number + 1 < len(contents) else None,
        own=own,
    )
    return whole, texts(body)


def index(contents: Any, loaded: Any) -> str:
    """The first page: every notebook, what it promises and how long it takes."""
    cards = []
    for entry, notebook in zip(contents, loaded):
        if entry["shelf"]:
            continue
        source = shared.markdown(notebook)
        promise = re.search(r"^\*\*(.+?)\*\*", source, flags=re.M | re.S)
        time = re.search(r"^\| Time \| (.*?) \|", source, flags=re.M)
        cards.append(
            f'<li><a href="{entry["file"]}">{inline(entry["title"])}</a>'
            f"<p>{inline(promise[1]) if promise else ''}</p>"
            f"<small>{inline(time[1]) if time else ''}</small></li>"
        )
    lessons = [e for e in contents if not e["shelf"]]
    main = [e["minutes"] for e in lessons if re.match("0[0-6]_", e["file"])]
    total = f"<p>00 to 06 take about {door.hours(sum(main))} to read.</p>"
    cards = f'<ol class="cards">{"".join(cards)}</ol>'
    body = f'<div class="text">{INTRODUCTION}{total}{cards}</div>'
    return shared.whole_page(
        "book",
        title="Contents",
        body=body,
        contents=contents,
        sections=[],
        previous=None,
        next=contents[0],
    )


def inline(source: str) -> str:
    """A line of Markdown as HTML: code and emphasis; a link is its text."""
    text = html.escape(re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", source))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*+([^*]+)\*+", r"<em>\1</em>", text)


def with_sizes(body: str) -> str:
    """The page with each picture's own width, so that none shrinks beyond reading."""

    def sized(found: re.Match[str]) -> str:
        width = struct.unpack(">I", base64.b64decode(found[2])[16:20])[0]
        return f'<figure tabindex="0" style="--own: {width}px">{found[1]}'

    return IMAGE.sub(sized, body)


def texts(body: str) -> list:
    """What a search finds on a page: an anchor, its heading and the text below it."""
    parts = re.split(r'<h[1-6] id="([^"]*)">(.*?)</h[1-6]>', body, flags=re.S)[1:]
    return [
        [html.unescape(name), plain(heading), plain(text)]
        for name, heading, text in zip(parts[::3], parts[1::3], parts[2::3])
    ]


def plain(body: str) -> str:
    """The text of some HTML on one line."""
    text = re.sub(r"<(?:img|svg)[^>]*>|<[^>]+>", "", body)
    return " ".join(html.unescape(text).split())


def with_anchors(body: str) -> tuple[str, list]:
    """The page with an id for every heading, as Jupyter forms it, and its outline.

    The outline has levels 2 and 3: a list of level, id and text.
    """
    outline, taken = [], set()

    def anchor(match: re.Match[str]) -> str:
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
    parser = argparse.ArgumentParser(description="Build the book.")
    parser.add_argument("--repo", help="owner/name on GitHub, for links to Colab")
    repo = parser.parse_args().repo
    shared.run_builder(
        lambda folder: build_book(folder, repo=repo), "The book", shared.BUILD / "book"
    )
