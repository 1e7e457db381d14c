"""What slides and book share: fonts, notebook to HTML, and writing files safely."""

import ast
import base64
import builtins
import functools
import io
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jinja2
import matplotlib
import nbformat
from fontTools import subset
from fontTools.ttLib import TTFont
from nbconvert import HTMLExporter
from nbconvert.filters import Highlight2HTML
from nbformat import NotebookNode

from minigpt.course.publish import npm
from minigpt.files import write_whole
from minigpt.stored import FOLDER as STORED
from minigpt.tools.page import learned_text, with_story, write_page

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = ROOT / "notebooks"
BUILD = ROOT / "build"
SHELVES = ["", "evidence", "exercises"]
TEMPLATES = Path(__file__).resolve().parent / "templates"
LINK = re.compile(r"\]\((\.\./)?(evidence/|exercises/)?(\d\d\w+)\.ipynb(#[^)]*)?\)")
SPINE = re.compile("0[0-6]b?_")  # the main line, and what it looks up
ASKED = re.compile(r"\*\*(?:Predict|Think first)")
FILE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(minigpt/[^)#\s]*|README\.md)(#[^)\s]*)?\)")
ALWAYS = {chr(code) for code in range(0x20, 0x7F)} | set("–—‘’“”…→←±×·▸▾")

MATHJAX = ("mathjax", "es5/tex-svg-full.js")
SANS = "dist/theme/fonts/source-sans-pro/source-sans-pro-{}.ttf"
# name, weight, style, where from: reveal.js carries Source Sans (Open Font
# License), matplotlib carries DejaVu (free), which also has the rarer signs.
FACES = [
    ("Course Sans", 400, "normal", ("reveal.js", SANS.format("regular"))),
    ("Course Sans", 400, "italic", ("reveal.js", SANS.format("italic"))),
    ("Course Sans", 600, "normal", ("reveal.js", SANS.format("semibold"))),
    ("Course Sans", 600, "italic", ("reveal.js", SANS.format("semibolditalic"))),
    ("Course Mono", 400, "normal", ("matplotlib", "DejaVuSansMono.ttf")),
    ("Course Signs", 400, "normal", ("matplotlib", "DejaVuSans.ttf")),
]


def notebook_paths(folder: Path = NOTEBOOKS, shelf: str = "") -> list[Path]:
    """The notebooks of a shelf ("", "evidence" or "exercises") in reading order.

    Raises ValueError if there are none.
    """
    paths = sorted((Path(folder) / shelf).glob("[0-9][0-9]*_*.ipynb"))
    if not paths:
        raise ValueError(
            f"there is no notebook like 00_name.ipynb in {folder}. Publish from a "
            "clone of the project, installed with: python -m pip install -e ."
        )
    return paths


def every_path(folder: Path = NOTEBOOKS) -> list[Path]:
    """All notebooks: each lesson, then its evidence and its exercises."""
    paths = []
    for path in notebook_paths(folder):
        beside = [
            path.parent / shelf / f"{path.stem}_{shelf}.ipynb" for shelf in SHELVES[1:]
        ]
        paths += [path, *(other for other in beside if other.is_file())]
    return paths


def shelf_of(path: Path) -> str:
    """The shelf on which a notebook stands: "" for the main line."""
    return path.parent.name if path.parent.name in SHELVES else ""


def web_name(name: str) -> str:
    """The file of a notebook's page: 04_heads.html, 04_heads_evidence.html."""
    return f"{name}.html"


def read(path: Path) -> NotebookNode:
    """The notebook in a file, in format 4 of nbformat."""
    return nbformat.read(path, as_version=4)


def write(path: Path, text: str) -> None:
    """Write a text file under another name first, so that no half file is left."""
    write_whole(path, text)


def write_model(path: Path) -> None:
    """The GPT that comes with the course, as `python -m minigpt page` shows it."""
    model, tokenizer, story, _ = with_story(STORED / "gpt.pt")
    story = story._replace(read="Shakespeare")
    text, _ = learned_text("tinyshakespeare", tokenizer)
    write_page(path, model, tokenizer, text=text, stories=[story])


def run_builder(make: Callable, what: str, folder: Path) -> None:
    """Run make(folder), print what was written; end with a sentence, not a trace."""
    try:
        written = make(folder)
    except (OSError, ValueError) as error:
        sys.exit(f"{what} cannot be built: {error}")
    for path in written:
        name = path.relative_to(ROOT)
        print(f"{name}  {path.stat().st_size / 1e6:.1f} MB")


def markdown(notebook: NotebookNode) -> str:
    """All markdown of a notebook as one text."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return "\n\n".join(cells)


def minutes(notebook: NotebookNode, torch_is_new: bool = False) -> int:
    """What a reader needs for a lesson: 150 words a minute, 7 seconds for a line of
    code, 3 for a line of output, a minute for a figure, 1.5 for a prediction. Folded
    answers are left out.

    torch_is_new: 100 words a minute, 15 seconds for a line of code, and 35 for one that
    calls what nothing before it in the notebook called; 5 for a line of output, and 1.5
    minutes for a figure. (For 00 to 06 this gives 534; two readers who knew no torch
    estimated 525 and 545.)
    """
    text = re.sub("<details>.*?</details>", "", markdown(notebook), flags=re.S)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    sources = [cell.source for cell in code]
    outputs = [output for cell in code for output in cell.outputs]
    figures = [o for o in outputs if "image/png" in o.get("data", {})]
    printed = [
        o.get("text") or o.get("data", {}).get("text/plain", "")
        for o in outputs
        if o not in figures
    ]
    words, predictions = len(text.split()), len(ASKED.findall(text))
    lines, results = (sum(map(full_lines, some)) for some in (sources, printed))
    if torch_is_new:
        seconds = 15 * lines + (35 - 15) * first_calls(sources) + 5 * results
        return round(
            words / 100 + seconds / 60 + 1.5 * len(figures) + 1.5 * predictions
        )
    seconds = 7 * lines + 3 * results
    return round(words / 150 + seconds / 60 + len(figures) + 1.5 * predictions)


def range_of(path: Path) -> str:
    """The minutes of a lesson as readers see them: "44–73" in the main line, from one
    who knows torch to one for whom it is new; "46" after it, where nobody is new."""
    notebook = read(path)
    fewest = minutes(notebook)
    if not SPINE.match(path.name):
        return f"{fewest}"
    return f"{fewest}–{minutes(notebook, torch_is_new=True)}"


def first_calls(sources: list[str]) -> int:
    """How many lines of these cells call something that is not Python's own and that no
    line before called; what the cells define themselves counts once, too."""
    met: set[str | None] = {*dir(builtins)}
    lines = set()
    for number, source in enumerate(sources):
        calls = [c for c in ast.walk(ast.parse(source)) if isinstance(c, ast.Call)]
        for call in sorted(calls, key=lambda call: call.func.end_lineno or 0):
            called = getattr(call.func, "attr", getattr(call.func, "id", None))
            if called not in met:
                lines.add((number, call.func.end_lineno))
            met.add(called)
    return len(lines)


def full_lines(text: str) -> int:
    """How many lines of a text are not empty."""
    return sum(bool(line.strip()) for line in text.splitlines())


def title(notebook: NotebookNode) -> str:
    """The text of the notebook's first heading."""
    return re.findall(r"^# (.*)", markdown(notebook), flags=re.M)[0]


def to_html(template: str, notebook: NotebookNode, **resources: Any) -> str:
    """Fill templates/<template>/index.html.j2 with a notebook: the page's body.

    The template finds `resources` under the names given here.
    """
    exporter = HTMLExporter(
        template_name=template,
        extra_template_basedirs=[str(TEMPLATES)],
        extra_template_paths=[str(TEMPLATES)],
        exclude_anchor_links=True,
        filters={"highlight_code": highlight, "mark_questions": mark_questions},
    )
    html, _ = exporter.from_notebook_node(local_links(notebook), dict(resources))
    return html


def whole_page(template: str, **parts: Any) -> str:
    """Put the parts into templates/<template>/page.html; str.

    A step of its own, since nbconvert parses what it renders once more, and that
    takes long with two megabytes of script inside.
    """
    return jinja2.Template(template_file(f"{template}/page.html")).render(**parts)


def highlight(source: str, **_: Any) -> str:
    """Python source as coloured HTML."""
    return Highlight2HTML(pygments_lexer="python3")(source)


def mark_questions(body: str) -> str:
    """HTML in which a paragraph that asks for a prediction has the class "ask"."""
    cue = r"<strong>(Predict|Think first)"
    body = re.sub(rf"<p>(?=(?:(?!</p>).)*{cue})", '<p class="ask">', body, flags=re.S)
    return re.sub(cue, r'<strong class="cue">\1', body)


def local_links(notebook: NotebookNode) -> NotebookNode:
    """The notebook with links to notebooks turned into links to pages."""

    def link(found: re.Match[str]) -> str:
        _, _, name, anchor = found.groups()
        return f"]({web_name(name)}{anchor or ''})"

    changed = nbformat.from_dict(notebook)
    for cell in changed.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(link, to_files(cell.source, repository()))
    return changed


def to_files(source: str, repo: str = "") -> str:
    """A text whose links to other files of the project lead to GitHub, or name the file
    where nothing is published."""

    def link(found: re.Match[str]) -> str:
        text, path, anchor = found.groups()
        if not repo:
            return f"{text} (`{path}`)"
        return f"[{text}](https://github.com/{repo}/blob/HEAD/{path}{anchor or ''})"

    return FILE.sub(link, source)


def repository() -> str:
    """owner/name on GitHub, from pyproject.toml; "" where nothing is published.

    Raises ValueError if it is something else.
    """
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return checked(re.findall(r'^repository = "(.*)"', text, re.M)[0])


def checked(repo: str) -> str:
    """The owner/name as given, or ""; ValueError with the remedy for anything else."""
    if repo and not re.fullmatch(r"[\w.-]+/[\w.-]+", repo):
        raise ValueError(f"REPO is {repo!r}; give it as owner/name.")
    return repo


def site(repo: str) -> str:
    """Address of the book that `.github/workflows/publish.yml` publishes."""
    owner, name = repo.split("/")
    return f"https://{owner.lower()}.github.io/{name}/"


def script(name: str, path: str) -> str:
    """A script of a package of npm, safe to stand inside a page."""
    text = npm.read(name, path).decode("utf-8")
    text = re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.M)
    return text.replace("</script", "<\\/script")


def template_file(name: str) -> str:
    """A style sheet or a script of ours."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def characters(notebooks: Iterable[NotebookNode]) -> frozenset[str]:
    """Every character that occurs in the notebooks, outputs included."""
    return frozenset(ALWAYS | set("".join(map(nbformat.writes, notebooks))))


@functools.lru_cache
def fonts(used: frozenset[str]) -> str:
    """Style sheet with all fonts inside, reduced to the characters in `used`.

    Carried along and not left to the machine, because a wider font would push
    text off the slides.
    """
    rules = []
    for name, weight, style, source in FACES:
        data = base64.b64encode(_reduced(source, used)).decode("ascii")
        rules.append(
            f"@font-face {{ font-family: '{name}'; font-weight: {weight}; "
            f"font-style: {style}; src: url(data:font/woff;base64,{data}); }}"
        )
    return "\n".join(rules)


def _reduced(source: tuple[str, str], used: frozenset[str]) -> bytes:
    package, name = source
    if package == "matplotlib":
        folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        font = TTFont(folder / name)
    else:
        font = TTFont(io.BytesIO(npm.read(package, name)))
    options = subset.Options(notdef_outline=True, hinting=False)
    options.drop_tables += ["FFTM", "webf"]
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[ord(char) for char in used])
    subsetter.subset(font)
    font.flavor = "woff"
    buffer = io.BytesIO()
    font.save(buffer)
    return buffer.getvalue()
